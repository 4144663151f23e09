-- Migration: instances go on with the newest version of their orchestration.
--
-- The state of an instance is a tree of the shapes of its version. A program that knows both versions (parley flow)
-- finds for each shape of the state the one that it is in the new version, or refuses the instance with the place. Here
-- the rows are locked, given, and changed: state, version, waits and timers of an instance in one transaction. So no
-- message is found by a wait of the old version after that, and none that came before is lost: those that no wait of
-- the new version can take are decided about by the next step, as all that are unread.
--
-- The caller sees the state as it is: he needs ADMINISTER and READ_CONTENT, and the calls are recorded.
-- Locks: rows of _p_instance by number, then lanes.

create function parley_flow._p_require_migration(caller oid, orchestration text) returns parley_flow._p_send_port
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_port parley_flow._p_send_port;
begin
  found := parley_flow._p_require(caller, 'ADMINISTER');
  select * into v_port from parley_flow._p_send_port as s where s.name = $2 and s.is_process;
  found := parley_flow._p_require(caller, 'READ_CONTENT', v_port.application);
  if v_port.name is null then
    found := parley_flow._p_raise('absent', 'orchestration', coalesce($2, 'null'));
  end if;
  return v_port;
end
$$;

comment on function parley_flow._p_require_migration(oid, text) is
'Gives an orchestration whose instances a role may migrate.
Errors: PF001, PF004.';

create function parley_flow.instances_to_migrate(
  orchestration text, top integer default 1000, after bigint default null,
  caller parley.caller default parley.current_caller()
) returns table (instance_id bigint, version integer, newest integer, state text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_port constant parley_flow._p_send_port := parley_flow._p_require_migration(v_caller, orchestration);
  v_instances bigint[];
begin
  found := parley_flow._p_require_top(top);
  v_instances := array(
    select i.instance_id
    from parley_flow._p_instance as i
    where i.send_port_id = v_port.send_port_id and i.version <> v_port.version
      and (after is null or i.instance_id > after)
    order by i.instance_id
    limit top
    for update
  );
  if v_instances = '{}' then
    return;
  end if;
  perform parley_flow._p_record_audit(
    v_caller, 'read', 'instances', jsonb_build_object('orchestration', orchestration, 'instances', v_instances)
  );
  return query
  select i.instance_id, i.version, v_port.version, i.state
  from parley_flow._p_instance as i
  where i.instance_id = any (v_instances) and i.version <> v_port.version
  order by i.instance_id;
end
$$;

comment on function parley_flow.instances_to_migrate(text, integer, bigint, parley.caller) is
'Locks and gives instances that began with another version of an orchestration than the newest, with their states, null
before the first step has succeeded. Give what becomes of them to parley_flow.migrate_instances in this transaction.
Arguments: orchestration; top, how many at most; after, the last instance that was given.
Errors: PF001 without ADMINISTER, and READ_CONTENT for its application; PF004 there is no such orchestration, PF010.';

create function parley_flow.migrate_instances(
  orchestration text, steps jsonb, states text[], caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_port constant parley_flow._p_send_port := parley_flow._p_require_migration(v_caller, orchestration);
  v_steps parley_flow._p_step[];
  v_instances bigint[];
  v_woken bigint[];
begin
  if coalesce(jsonb_array_length(steps), 0) = 0 then
    return 0;
  elsif jsonb_array_length(steps) is distinct from cardinality(states) then
    found := parley_flow._p_raise(
      'lengths', 'steps', jsonb_array_length(steps)::text, 'states', coalesce(cardinality(states)::text, 'null')
    );
  end if;
  v_steps := array(
    select s
    from jsonb_array_elements(steps) with ordinality as o (step, n)
    cross join lateral jsonb_populate_record(
      null::parley_flow._p_step, o.step || jsonb_build_object('n', o.n, 'status', 'WAITING')
    ) as s
    order by o.n
  );
  v_instances := array(select s.instance from unnest(v_steps) as s order by s.n);
  perform
  from parley_flow._p_instance as i
  where i.instance_id = any (v_instances)
  order by i.instance_id
  for update;
  update parley_flow._p_instance as i
  set version = v_port.version, state = states[s.n], stands_at = s.stands_at, changed_at = clock_timestamp()
  from unnest(v_steps) as s
  where i.instance_id = s.instance and i.send_port_id = v_port.send_port_id and i.version = s.version
    and (i.state is null) = (states[s.n] is null);
  if not found or (
    select count(*)
    from parley_flow._p_instance as i
    where i.instance_id = any (v_instances) and i.send_port_id = v_port.send_port_id and i.version = v_port.version
  ) < cardinality(v_instances) then
    found := parley_flow._p_raise('migration', orchestration);
  end if;
  v_steps := array(select s from unnest(v_steps) as s where states[s.n] is not null order by s.n);
  perform parley_flow._p_require_waits(v_port, v_steps);
  perform parley_flow._p_change_waits(v_instances, v_steps);
  perform parley_flow._p_migrate_timers(v_port, v_steps);
  v_woken := array(
    select i.instance_id
    from parley_flow._p_instance as i
    where i.instance_id = any (v_instances) and i.status = 'WAITING' and i.state is not null
    order by i.instance_id
  );
  -- The next step sets times and begins branches that the version before did not have.
  insert into parley_flow._p_instance_event (instance_id, kind)
  select u.instance_id, 'RESUMED' from unnest(v_woken) as u (instance_id);
  perform parley_flow._p_wake_instances(v_woken);
  perform parley_flow._p_track_instances('MIGRATE', '', v_port.name, v_instances, array(
    select jsonb_build_object('from', o.step -> 'version', 'to', v_port.version)
    from jsonb_array_elements(steps) with ordinality as o (step, n)
    order by o.n
  ));
  perform parley_flow._p_record_audit(
    v_caller, 'migrate', 'instances', jsonb_build_object('orchestration', orchestration, 'instances', v_instances)
  );
  return cardinality(v_instances);
end
$$;

comment on function parley_flow.migrate_instances(text, jsonb, text[], parley.caller) is
'Has instances go on with the newest version of their orchestration, in this transaction: their states, and what they
wait for. parley flow calls it; it has checked the states against the definition.
Arguments: orchestration; steps, [{"instance", "version", "waits", "timers", "stands_at"}], version: with which the
instance went on until now; states, an element for each, as they are in the newest version, null where it had none.
Errors: PF001, PF004, PF006 a wait is none of the version, PF010, PF015 one is not as instances_to_migrate gave it.';

create function parley_flow._p_migrate_timers(port parley_flow._p_send_port, steps parley_flow._p_step[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- The time of the next attempt of a step that failed, '', stays.
  delete from parley_flow._p_instance_timer as t
  using unnest(steps) as s
  where t.instance_id = s.instance and t.timer <> ''
    and not exists (
      select from jsonb_array_elements(nullif(s.timers, 'null')) as o (timer) where o.timer ->> 'id' = t.timer
    );
  insert into parley_flow._p_instance_timer as t (instance_id, timer, host_id, at)
  select s.instance, o.timer ->> 'id', port.host_id, (o.timer ->> 'at')::timestamptz
  from unnest(steps) as s
  cross join lateral jsonb_array_elements(nullif(s.timers, 'null')) as o (timer)
  where o.timer ->> 'id' <> ''
  on conflict on constraint _p_instance_timer_pkey do update
  set at = excluded.at, is_woken = false
  where t.at <> excluded.at;
end
$$;

comment on function parley_flow._p_migrate_timers(parley_flow._p_send_port, parley_flow._p_step[]) is
'Makes the timers of instances those of the states that they have in another version.';
