-- Operations on suspended messages: resume, terminate, edit and resubmit, in slices and recorded.
--
-- Each call touches at most top messages, by their numbers, and is called until it gives 0. One message is one row:
-- what is done to it touches no other, but that those behind it in its order may go on.
-- Locks: rows of _p_suspended by suspension_id, those that others have locked are passed by; then lanes.

create function parley_flow._p_next_matching(caller oid, filter jsonb, after bigint, top integer) returns bigint[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_flow._p_require_top(top);
  return array(
    select m.suspension_id
    from parley_flow._p_matching(filter, parley_flow._p_applications_of(caller, 'OPERATE'), after, top) as m
    order by m.suspension_id
  );
end
$$;

comment on function parley_flow._p_next_matching(oid, jsonb, bigint, integer) is
'Gives the numbers of the next suspended messages that a filter matches, of applications that the caller operates.
Arguments: caller; filter; after, the number behind which they stand; top, how many at most.
Errors: PF010.';

create function parley_flow._p_lock_suspended(suspensions bigint[]) returns setof parley_flow._p_suspended
language sql
set search_path = pg_catalog, pg_temp
as $$
  select u.*
  from parley_flow._p_suspended as u
  where u.suspension_id = any (suspensions)
  order by u.suspension_id
  for update skip locked
$$;

comment on function parley_flow._p_lock_suspended(bigint[]) is
'Locks and gives suspended messages, without those that others have locked.';

create function parley_flow._p_require_operator(caller oid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley_flow._p_applications_of(caller, 'OPERATE') = '{}' then
    found := parley_flow._p_require(caller, 'OPERATE');
  end if;
  return true;
end
$$;

comment on function parley_flow._p_require_operator(oid) is
'Refuses who operates no application.
Errors: PF001.';

create function parley_flow._p_resume_send(suspended parley_flow._p_suspended, due_at timestamptz default null)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_port parley_flow._p_send_port;
begin
  select * into v_port from parley_flow._p_send_port as s where s.name = suspended.send_port;
  if not found then
    return false;
  end if;
  if suspended.lane is not null then
    update parley_flow._p_held_key as k
    set attempts = 0, is_waiting = false
    where k.send_port_id = v_port.send_port_id and k.order_key = coalesce(suspended.order_key, '');
    if v_port.state = 'Started' then
      perform parley_store.resume_lane(suspended.system, suspended.lane);
    end if;
    return true;
  end if;
  perform parley_flow._p_deliver(
    array[m.message_id], array[m.promoted], array[1], array[v_port.send_port_id], due_at
  )
  from parley_flow._p_message as m
  where m.message_id = suspended.message_id;
  return true;
end
$$;

comment on function parley_flow._p_resume_send(parley_flow._p_suspended, timestamptz) is
'Has a message tried again by its send port: where its order waits for it, at once and in its place, otherwise behind
what waits; false when the port is gone.';

create function parley_flow._p_resume_route(suspended parley_flow._p_suspended, due_at timestamptz) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message parley_flow._p_message;
  v_ports integer[];
  v_instances bigint[];
  v_waiting_ports integer[];
begin
  select * into v_message from parley_flow._p_message as m where m.message_id = suspended.message_id;
  v_ports := array(select m.send_port_id from parley_flow._p_match(array[v_message.promoted]) as m);
  select coalesce(w.instances, '{}'), w.ports into v_instances, v_waiting_ports
  from parley_flow._p_waiting_for(
    array[v_message.promoted], array_fill(1, array[cardinality(v_ports)]), v_ports, null, null
  ) as w;
  if v_ports = '{}' and v_instances = '{}' then
    return false;
  end if;
  perform parley_flow._p_add_deliveries(
    v_message.message_id, cardinality(v_ports) + cardinality(v_instances) - 1
  );
  perform parley_flow._p_deliver_to_instances(
    array[v_message.message_id], array_fill(1, array[cardinality(v_instances)]), v_instances, v_waiting_ports, due_at
  );
  perform parley_flow._p_deliver(
    array[v_message.message_id], array[v_message.promoted], array_fill(1, array[cardinality(v_ports)]), v_ports,
    due_at
  );
  return true;
end
$$;

comment on function parley_flow._p_resume_route(parley_flow._p_suspended, timestamptz) is
'Routes a message that matched nothing again; false when it matches nothing still.';

create function parley_flow._p_resume_receive(suspended parley_flow._p_suspended, due_at timestamptz default null)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_system text;
begin
  select h.system into v_system
  from parley_flow._p_receive_location as l
  join parley_flow._p_host as h on h.host_id = l.host_id
  where l.name = suspended.location;
  if not found then
    return false;
  end if;
  perform parley_store.put_work(
    v_system, array['##' || suspended.location], array[suspended.message_id], deliver_at => due_at
  );
  return true;
end
$$;

comment on function parley_flow._p_resume_receive(parley_flow._p_suspended, timestamptz) is
'Has the host of a receive location run its pipeline over a message again; false when the location is gone.';

create function parley_flow._p_resume_one(caller oid, suspended parley_flow._p_suspended, due_at timestamptz)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is_resumed boolean;
begin
  if not suspended.is_resumable then
    return false;
  end if;
  v_is_resumed := case suspended.stage
    when 'SEND' then parley_flow._p_resume_send(suspended, due_at)
    when 'PROCESS' then parley_flow._p_resume_send(suspended, due_at)
    when 'RECEIVE' then parley_flow._p_resume_receive(suspended, due_at)
    else parley_flow._p_resume_route(suspended, due_at)
  end;
  if not v_is_resumed then
    return false;
  end if;
  delete from parley_flow._p_suspended as u where u.suspension_id = suspended.suspension_id;
  perform parley_flow._p_track_one('RESUME', '', coalesce(suspended.send_port, ''), suspended.message_id,
    jsonb_build_object('by', pg_get_userbyid(caller)));
  return true;
end
$$;

comment on function parley_flow._p_resume_one(oid, parley_flow._p_suspended, timestamptz) is
'Resumes a suspended message, not before a time; false when it cannot be, or matches nothing still.';

create function parley_flow.resume_suspended(
  filter jsonb, top integer default 1000, dry_run boolean default false, rate integer default null,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_suspended parley_flow._p_suspended;
  v_page bigint[];
  v_resumed integer := 0;
  v_now constant timestamptz := clock_timestamp();
begin
  found := parley_flow._p_require_operator(v_caller);
  found := parley_flow._p_require_filter(filter);
  if (rate > 0) is false then
    found := parley_flow._p_raise('rate', rate::text);
  end if;
  -- Messages that stay, because they match nothing still, keep none of those behind them from being resumed.
  loop
    v_page := parley_flow._p_next_matching(
      v_caller, '{"is_resumable": true}' || filter, v_page[cardinality(v_page)], top
    );
    exit when v_page = '{}';
    for v_suspended in select l.* from parley_flow._p_lock_suspended(v_page) as l loop
      exit when v_resumed = top;
      if dry_run is not false then
        v_resumed := v_resumed + 1;
      elsif parley_flow._p_resume_one(
        v_caller, v_suspended, v_now + v_resumed::double precision / rate * interval '1 second'
      ) then
        v_resumed := v_resumed + 1;
      end if;
    end loop;
    exit when v_resumed = top;
  end loop;
  if dry_run is false and v_resumed > 0 then
    perform parley_flow._p_count('', array['documents_resubmitted'], array[v_resumed]);
    perform parley_flow._p_record_audit(
      v_caller, 'resume', 'suspended messages', jsonb_build_object('filter', filter, 'messages', v_resumed)
    );
  end if;
  return v_resumed;
end
$$;

comment on function parley_flow.resume_suspended(jsonb, integer, boolean, integer, parley.caller) is
'Has suspended messages tried again: by their send port; by the pipeline of their location; or routed anew, where they
matched nothing. Gives how many were: call it until it gives 0. A message that cannot be resumed stays: its port or
location is gone, or it matches nothing still.
Arguments: filter, conditions as docs/internals/flow.md lists them; top, how many at most; dry_run, only count; rate,
how many a second are tried (null: all at once): the others are delayed as long.
Errors: PF001 without OPERATE, PF010 malformed.';

create function parley_flow._p_terminate_one(caller oid, suspended parley_flow._p_suspended) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if suspended.lane is not null then
    perform parley_store.remove_work(
      suspended.system,
      jsonb_build_object('lane', suspended.lane, 'subjects', jsonb_build_array(suspended.message_id)), 1,
      pg_get_userbyid(caller)
    );
    perform parley_flow._p_resume_send(suspended);
    perform parley_flow._p_let_keys_go(suspended.system, array[suspended.lane]);
  end if;
  delete from parley_flow._p_suspended as u where u.suspension_id = suspended.suspension_id;
  perform parley_flow._p_track_one('TERMINATE', '', coalesce(suspended.send_port, ''), suspended.message_id,
    jsonb_build_object('by', pg_get_userbyid(caller), 'code', suspended.code));
  perform parley_flow._p_end_deliveries(array[suspended.message_id], suspended.send_port);
end
$$;

comment on function parley_flow._p_terminate_one(oid, parley_flow._p_suspended) is
'Ends the delivery that a suspended message stands for; what waits behind it in its order goes on.';

create function parley_flow.terminate_suspended(
  filter jsonb, top integer default 1000, dry_run boolean default false,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_suspended parley_flow._p_suspended;
  v_terminated integer := 0;
begin
  found := parley_flow._p_require_operator(v_caller);
  for v_suspended in
    select l.* from parley_flow._p_lock_suspended(parley_flow._p_next_matching(v_caller, filter, 0, top)) as l
  loop
    v_terminated := v_terminated + 1;
    if dry_run is false then
      perform parley_flow._p_terminate_one(v_caller, v_suspended);
    end if;
  end loop;
  if dry_run is false and v_terminated > 0 then
    perform parley_flow._p_record_audit(
      v_caller, 'terminate', 'suspended messages', jsonb_build_object('filter', filter, 'messages', v_terminated)
    );
  end if;
  return v_terminated;
end
$$;

comment on function parley_flow.terminate_suspended(jsonb, integer, boolean, parley.caller) is
'Gives suspended messages up for good: each by itself, and what waits behind it in its order goes on. A message that
others still send stays for them. Gives how many; call it until it gives 0.
Arguments: filter, conditions as docs/internals/flow.md lists them; top, how many at most; dry_run, only count.
Errors: PF001 without OPERATE, PF010 malformed.';
