-- Failures of ordered send ports: the head of a key waits, and what is behind it with it; other keys go on.

create function parley_flow._p_wait_for_head(
  host parley_flow._p_host, held parley_flow._p_held_key, lease_id bigint, behind parley_store.claimed_item[],
  due_at timestamptz
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_items constant bigint[] := array(
    select b.item_id
    from unnest(behind) with ordinality
      as b (lease_id, lane, item_id, subject, priority, attempts, since, expires_at, data, last_error, n)
    order by b.n
  );
begin
  if behind[1].lane = held.lane then
    perform parley_store.release_work(lease_id, v_items);
  else
    perform parley_flow._p_move_behind(
      host.system, lease_id, held.lane, v_items,
      array(
        select b.subject
        from unnest(behind) with ordinality
          as b (lease_id, lane, item_id, subject, priority, attempts, since, expires_at, data, last_error, n)
        order by b.n
      ),
      array_fill(behind[1].data, array[cardinality(v_items)]), behind[1].priority
    );
  end if;
  if due_at is not null then
    perform parley_store.postpone_lane(host.system, held.lane, due_at, held.error);
  end if;
end
$$;

comment on function parley_flow._p_wait_for_head(
  parley_flow._p_host, parley_flow._p_held_key, bigint, parley_store.claimed_item[], timestamptz
) is
'Gives the head of a key and what is behind it back to the lane of the key, in their order, until a time.
Arguments: host; held; lease_id; behind, the head first; due_at, null: somebody else says when.';

create function parley_flow._p_stop_for(port parley_flow._p_send_port, failure parley_flow._p_failure) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley_flow._p_begin_change();
  if parley_flow._p_set_port_state(port.name, 'Stopped', format('%s: %s', failure.code, left(failure.error, 1000))) then
    perform parley_flow._p_record_audit(
      (select n.nspowner from pg_namespace as n where n.nspname = 'parley_flow'), 'stop on failure',
      format('send port %s', port.name), jsonb_build_object('code', failure.code)
    );
    perform parley_flow._p_notify_configuration();
  end if;
end
$$;

comment on function parley_flow._p_stop_for(parley_flow._p_send_port, parley_flow._p_failure) is
'Stops an ordered send port because of the failure of a message.';

create function parley_flow._p_give_up_head(
  host parley_flow._p_host, port parley_flow._p_send_port, held parley_flow._p_held_key, lease_id bigint,
  behind parley_store.claimed_item[], failure parley_flow._p_failure
) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley_flow._p_wait_for_head(host, held, lease_id, behind, null);
  if port.on_failure = 'stop' then
    perform parley_flow._p_stop_for(port, failure);
  end if;
  perform parley_store.suspend_lane(host.system, held.lane, reason => 'its head waits for an operator');
  update parley_flow._p_held_key as k
  set is_waiting = true
  where k.send_port_id = held.send_port_id and k.order_key = held.order_key;
  perform parley_flow._p_suspend_message(
    behind[1].subject, 'SEND', null, port.name, failure.code, failure.error, failure.is_resumable, held.attempts,
    held.order_key, host.system, held.lane
  );
  perform parley_flow._p_track_one('SUSPEND', host.name, port.name, behind[1].subject, jsonb_build_object(
    'code', failure.code, 'error', left(failure.error, 1000),
    'order_key', parley_flow._p_shown_key(port.name, held.order_key)
  ));
  perform parley_flow._p_fail_request_of(behind[1].subject, failure.code);
  perform parley_flow._p_count(host.name, array['documents_suspended'], array[1]);
  return case when port.on_failure = 'stop' then 'STOPPED' else 'HELD' end;
end
$$;

comment on function parley_flow._p_give_up_head(
  parley_flow._p_host, parley_flow._p_send_port, parley_flow._p_held_key, bigint, parley_store.claimed_item[],
  parley_flow._p_failure
) is
'Has the key of a head that failed for good wait for an operator, who finds the head suspended, and stops the port where
its policy says so; gives HELD or STOPPED.';

create function parley_flow._p_fail_head(
  host parley_flow._p_host, port parley_flow._p_send_port, lease_id bigint, behind parley_store.claimed_item[],
  failure parley_flow._p_failure, retries boolean, retry_after interval
) returns table (item_id bigint, outcome text, due_at timestamptz)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_held parley_flow._p_held_key := parley_flow._p_hold_key(
    port, host.system, behind[1].lane, convert_from(behind[1].data, 'UTF8')
  );
  v_due timestamptz := case when retries then parley_flow._p_next_try(port.retry_policy, v_held.attempts + 1) end;
  v_outcome text;
begin
  v_held.attempts := v_held.attempts + 1;
  v_held.error := left(failure.error, 10000);
  update parley_flow._p_held_key as k
  set attempts = v_held.attempts, error = v_held.error
  where k.send_port_id = v_held.send_port_id and k.order_key = v_held.order_key;
  if v_due is not null then
    v_due := coalesce(clock_timestamp() + retry_after, v_due);
    perform parley_flow._p_wait_for_head(host, v_held, lease_id, behind, v_due);
    return query select b.item_id, 'HELD', v_due from unnest(behind) as b;
    return;
  end if;
  if port.routes_failed or port.on_failure = 'park' then
    behind[1].attempts := v_held.attempts - 1;
    v_outcome := parley_flow._p_give_up(host, port, behind[1], failure);
    return query select behind[1].item_id, v_outcome, null::timestamptz;
    -- The next message behind it is sent next, as if it had not been there.
    perform parley_flow._p_let_key_go(v_held.send_port_id, v_held.order_key);
    return;
  end if;
  v_outcome := parley_flow._p_give_up_head(host, port, v_held, lease_id, behind, failure);
  return query select b.item_id, v_outcome, null::timestamptz from unnest(behind) as b;
end
$$;

comment on function parley_flow._p_fail_head(
  parley_flow._p_host, parley_flow._p_send_port, bigint, parley_store.claimed_item[], parley_flow._p_failure, boolean,
  interval
) is
'Records that the head of a key failed; gives what becomes of it and of what is behind it.
Arguments: behind, the head and what of its key stands behind it under the lease, in order; otherwise as _p_fail.';

create function parley_flow._p_fail_in_order(
  host parley_flow._p_host, port parley_flow._p_send_port, lease_id bigint, items parley_store.claimed_item[],
  failure parley_flow._p_failure, retries boolean, retry_after interval
) returns table (item_id bigint, outcome text, due_at timestamptz)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_all constant parley_store.claimed_item[] := array(
    select i from parley_store.leased_items(host.system, array[lease_id]) as i
  );
  v_head record;
begin
  for v_head in
    select i.data, min(array_position(v_all, i)) as place from unnest(items) as i group by i.data order by 2
  loop
    return query
    select f.item_id, f.outcome, f.due_at
    from parley_flow._p_fail_head(
      host, port, lease_id, array(
        select v_all[g.n]
        from generate_series(v_head.place, cardinality(v_all)) as g (n)
        where v_all[g.n].data is not distinct from v_head.data
        order by g.n
      ), failure, retries, retry_after
    ) as f;
  end loop;
end
$$;

comment on function parley_flow._p_fail_in_order(
  parley_flow._p_host, parley_flow._p_send_port, bigint, parley_store.claimed_item[], parley_flow._p_failure, boolean,
  interval
) is 'Records that messages of an ordered port failed, each key by itself; arguments as _p_fail.';

create function parley_flow._p_reached(
  host text, send_port text, caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
  v_port_id integer;
  v_lane record;
  v_lanes integer := 0;
begin
  select s.send_port_id into v_port_id
  from parley_flow._p_send_port as s
  where s.name = send_port and s.host_id = v_host.host_id;
  if not found then
    found := parley_flow._p_raise('port of host', coalesce(send_port, 'null'), host);
  end if;
  for v_lane in
    select l.lane
    from parley_flow._p_lanes_of_port(send_port) as l
    where l.status in ('POSTPONED', 'RETRY')
      and not exists (
        select from parley_flow._p_held_key as k where k.system = l.system and k.lane = l.lane
      )
  loop
    v_lanes := v_lanes + parley_store.retry_lane(v_host.system, v_lane.lane)::integer;
  end loop;
  update parley_flow._p_send_port_failure as f
  set recovered_at = clock_timestamp()
  where f.send_port_id = v_port_id and f.recovered_at is null;
  return v_lanes;
end
$$;

comment on function parley_flow._p_reached(text, text, parley.caller) is
'Says that a port has sent something after a failure: lanes of it that were put off are tried at once, but those of keys
that are held, and its last error is over. Gives how many lanes.
Errors: PF001, PF006.';

create function parley_flow._p_try_again(
  host text, send_port text, caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
begin
  if not exists (
    select from parley_flow._p_send_port as s where s.name = send_port and s.host_id = v_host.host_id
  ) then
    found := parley_flow._p_raise('port of host', coalesce(send_port, 'null'), host);
  end if;
  return parley_flow._p_try_now(send_port);
end
$$;

comment on function parley_flow._p_try_again(text, text, parley.caller) is
'Has all that waits for its next attempt at a port tried at once, because a node uses another definition of the port.
False when nothing waited so.
Errors: PF001, PF006.';
