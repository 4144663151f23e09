-- A persistence point: inputs are consumed, outputs published, subscriptions changed and states saved, of all instances
-- that a host has run in one transaction.
--
-- An instance that begins and ends in the same step has no row: its message is consumed, what it publishes is
-- published, and tracking has what it went through.
-- Locks: leases and lanes of the store; rows of _p_instance are locked since _p_begin_step.
-- Cost: of instances without rows what _p_complete and publishing cost.

create function parley_flow._p_advance(
  host text, orchestration text, leases bigint[], items bigint[], ended bigint[] default null,
  ended_steps integer[] default null, details jsonb[] default null, copied_ids bigint[] default null,
  bodies bytea[] default null, message_types text[] default null, promoted jsonb[] default null,
  written jsonb[] default null, parents bigint[] default null, send_ports text[] default null,
  publishing_steps integer[] default null, epoch bigint default null, matched_messages integer[] default null,
  matched_ports bigint[] default null, steps jsonb default null, states text[] default null,
  unread jsonb default null, starts jsonb default null, content_types text[] default null,
  charsets text[] default null, caller parley.caller default parley.current_caller()
) returns bigint[]
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
  v_port constant parley_flow._p_send_port := parley_flow._p_require_orchestration(v_host, orchestration);
  v_done parley_store.claimed_item[];
  v_steps parley_flow._p_step[];
  v_instances bigint[] := array[]::bigint[];
  v_publications parley_flow._p_publication[];
begin
  found := parley_flow._p_require_read_committed();
  v_done := array(select d from parley_store.complete_leased(v_host.system, leases, items) as d);
  found := parley_flow._p_require_all(v_host, v_done, leases, items);
  if exists (select from unnest(v_done) as d where parley_flow._p_port_of_lane(d.lane) <> v_port.name) then
    found := parley_flow._p_raise('lease', items[1]::text, v_host.name, leases[1]::text);
  end if;
  perform parley_flow._p_clear_suspects(array(select d.subject from unnest(v_done) as d));
  found := parley_flow._p_require_all_properties(promoted, true);
  found := parley_flow._p_require_all_properties(written, true);
  perform parley_flow._p_require_own(v_host, v_done, ended || copied_ids || parley_flow._p_messages_in(unread));
  if steps is not null then
    v_steps := array(
      select s
      from jsonb_array_elements(steps) with ordinality as o (step, n)
      cross join lateral jsonb_populate_record(null::parley_flow._p_step, o.step || jsonb_build_object('n', o.n)) as s
      order by o.n
    );
    perform parley_flow._p_require_own_steps(v_host, v_port, v_done, v_steps);
    v_instances := parley_flow._p_save_instances(v_host, v_port, v_steps, states);
    perform parley_flow._p_change_waits(v_instances, v_steps);
    perform parley_flow._p_change_timers(v_host, v_instances, v_steps);
    perform parley_flow._p_change_activities(v_host, v_instances, v_steps);
    perform parley_flow._p_change_events(v_port, v_instances, v_steps);
  end if;
  if cardinality(bodies) > 0 then
    v_publications := array(
      select row(
        coalesce(p.step, 0), p.copied_id, p.body, p.message_type, coalesce(p.promoted, '{}'), p.written, p.parent_id,
        p.send_port, p.content_type, p.charset
      )::parley_flow._p_publication
      from unnest(
        publishing_steps, copied_ids, bodies, message_types, promoted, written, parents, send_ports, content_types,
        charsets
      ) with ordinality as p (
        step, copied_id, body, message_type, promoted, written, parent_id, send_port, content_type, charset, n
      )
      order by p.n
    );
    perform parley_flow._p_publish_of_instances(
      v_port, v_publications, v_instances, epoch, matched_messages, matched_ports
    );
  end if;
  if cardinality(ended) > 0 then
    perform parley_flow._p_end_sent(
      v_host.name, v_port.name, ended, array_fill(1, array[cardinality(ended)]), case
        when steps is null then details
        else array(
          select coalesce(u.details, '{}') || case
            when u.step > 0 then jsonb_build_object('instance', v_instances[u.step]) else '{}'
          end
          from unnest(ended, ended_steps, details) with ordinality as u (id, step, details, n)
          order by u.n
        )
      end
    );
  end if;
  if steps is not null then
    perform parley_flow._p_end_steps(v_host, v_port, v_instances, v_steps);
    perform parley_flow._p_wake_instances(array(
      select v_instances[s.n] from unnest(v_steps) as s where s.is_woken
    ));
  end if;
  perform parley_flow._p_give_unread(
    v_port, (u.event -> 'message')::bigint, u.event ->> 'came_by', (u.event -> 'instance')::bigint
  )
  from jsonb_array_elements(unread) as u (event);
  perform parley_flow._p_start_instance(o.start ->> 'orchestration', (o.start -> 'parameters')::text, null)
  from jsonb_array_elements(starts) with ordinality as o (start, n);
  perform parley_flow._p_count(v_host.name, array['documents_processed'], array[cardinality(v_done)]);
  return v_instances;
end
$$;

comment on function parley_flow._p_advance(
  text, text, bigint[], bigint[], bigint[], integer[], jsonb[], bigint[], bytea[], text[], jsonb[], jsonb[], bigint[],
  text[], integer[], bigint, integer[], bigint[], jsonb, text[], jsonb, jsonb, text[], text[], parley.caller
) is
'Makes true what steps of instances have brought, in this transaction, which may be this statement alone where no
instance was begun with _p_begin_step; gives the numbers of the instances of steps.
Arguments: host; orchestration; leases and items, deliveries that are over, an element for each; ended, messages of
which a delivery each was taken, ended_steps and details, of which step, 0 of none, and an object for tracking;
copied_ids to publishing_steps, an element for each message that is published: whose body it has or its body, type,
properties, parent, the send port to which it goes, null: by content, and of which step it is, 0 of none;
content_types and charsets, of bodies, an element for each of these messages, or null; epoch,
matched_messages and matched_ports, as _p_receive has them; steps and states, an element for each instance that has a
row or gets one (flow/process/changes.sql); unread, messages for instances that are over, [{"instance", "message",
"came_by"}]; starts, [{"orchestration", "parameters"}].
Errors: PF001, PF004 an orchestration that is started is not there, PF006, PF007 one is not in the hands of this host:
roll back, PF010, PF016.';

create function parley_flow._p_end_steps(
  host parley_flow._p_host, port parley_flow._p_send_port, instances bigint[], steps parley_flow._p_step[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_over bigint[];
  v_fields jsonb[];
  v_step record;
begin
  for v_step in
    select instances[s.n] as instance_id, coalesce(s.holds, '{}') as holds
    from unnest(steps) as s
    where s.status in ('WAITING', 'SUSPENDED') and exists (
      select
      from parley_flow._p_instance_hold as h
      where h.instance_id = instances[s.n] and h.message_id <> all (coalesce(s.holds, '{}'))
    )
  loop
    perform parley_flow._p_release_holds(port.name, array[v_step.instance_id], v_step.holds);
  end loop;
  select array_agg(instances[s.n] order by s.n),
    array_agg(jsonb_strip_nulls(jsonb_build_object(
      'status', s.status, 'version', coalesce(i.version, s.version),
      'passed', parley_flow._p_added(i.passed, s.passed),
      'began_at', i.began_at, 'steps', i.steps + 1, 'fault', s.fault, 'parent', coalesce(i.parent_id, s.parent)
    )) order by s.n)
  into v_over, v_fields
  from unnest(steps) as s
  left join parley_flow._p_instance as i on i.instance_id = s.instance
  where s.status in ('FINISHED', 'TERMINATED');
  if v_over is not null then
    perform parley_flow._p_end_instances(port, v_over);
    perform parley_flow._p_track_instances('END', host.name, port.name, v_over, v_fields);
  end if;
  select array_agg(instances[s.n] order by s.n), array_agg(jsonb_build_object('fault', s.fault) order by s.n)
  into v_over, v_fields
  from unnest(steps) as s
  where s.fault is not null and s.status in ('SUSPENDED', 'FAILED');
  if v_over is not null then
    perform parley_flow._p_track_instances('FAULT', host.name, port.name, v_over, v_fields);
  end if;
end
$$;

comment on function parley_flow._p_end_steps(
  parley_flow._p_host, parley_flow._p_send_port, bigint[], parley_flow._p_step[]
) is 'Ends the instances whose steps say so, lets go what instances hold no more, and tracks ends and faults.';
