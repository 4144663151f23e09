-- States of ports and locations: start, stop, enlist, unenlist, enable, disable.
--
-- Bound: no subscription. Stopped: a subscription, and the lanes of the port are suspended in the store, so that
-- messages wait there in their order and nothing has to be moved when it is started. Started: they go.
-- Locks: the row of _p_configuration, then lanes of the store.

create function parley_flow._p_lanes_of_port(port text, ever boolean default false)
returns table (system text, lane text, status text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select l.system, l.lane, l.status
  from parley_flow._p_send_port as s
  join parley_flow._p_host as h on h.host_id = s.host_id
  cross join lateral (
    select s.name as lane
    union
    select format('%s#%s', s.name, lpad(g.n::text, 2, '0'))
    from generate_series(0, 15) as g (n)
    where s.order_key is not null or s.is_process or ever
    union
    select k.lane from parley_flow._p_held_key as k where k.send_port_id = s.send_port_id
  ) as n
  join parley_store.lanes as l on l.system = h.system and l.lane = n.lane
  where s.name = port
  order by l.lane_id
$$;

comment on function parley_flow._p_lanes_of_port(text, boolean) is
'Gives the lanes of a send port that there are; ever, also those that it had while its order was another.';

create function parley_flow._p_make_lanes(port text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_port record;
begin
  select s.name, s.is_ordered, s.order_key, s.is_process, h.system into v_port
  from parley_flow._p_send_port as s
  join parley_flow._p_host as h on h.host_id = s.host_id
  where s.name = port;
  if v_port.order_key is null then
    perform parley_store.set_lane(
      v_port.system, port, is_permanent => true, lease_max => case when v_port.is_ordered then 1 else 0 end
    );
  end if;
  if v_port.order_key is null and not v_port.is_process then
    return;
  end if;
  perform parley_store.set_lane(
    v_port.system, format('%s#%s', port, lpad(g.n::text, 2, '0')), is_permanent => true, lease_max => 1
  )
  from generate_series(0, 15) as g (n);
end
$$;

comment on function parley_flow._p_make_lanes(text) is
'Makes the lanes of a send port that is enlisted: one, or 16 of those that share the keys of an order; of an
orchestration all of them. They stay, so that they keep being suspended while they are empty.';

create function parley_flow._p_let_lane(system text, lane text, is_open boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not is_open then
    perform parley_store.suspend_lane(system, lane, reason => 'the send port is stopped');
  -- A key that waits for an operator goes on waiting.
  elsif not exists (
    select
    from parley_flow._p_held_key as k
    where k.system = _p_let_lane.system and k.lane = _p_let_lane.lane and k.is_waiting
  ) then
    perform parley_store.resume_lane(system, lane);
  end if;
end
$$;

comment on function parley_flow._p_let_lane(text, text, boolean) is
'Lets what waits in a lane of a send port go, or holds it.';

create function parley_flow._p_let_lanes(port text, are_open boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Also those of another order: a transaction that published before it changed may be open.
  perform parley_flow._p_let_lane(l.system, l.lane, are_open) from parley_flow._p_lanes_of_port(port, true) as l;
end
$$;

comment on function parley_flow._p_let_lanes(text, boolean) is
'Lets what waits in the lanes of a send port go, or holds it.';

create function parley_flow._p_try_now(port text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane record;
  v_is_tried boolean := false;
  v_items integer;
begin
  for v_lane in select l.system, l.lane from parley_flow._p_lanes_of_port(port, true) as l loop
    v_is_tried := parley_store.retry_lane(v_lane.system, v_lane.lane) or v_is_tried;
    loop
      v_items := parley_store.retry_work_now(v_lane.system, jsonb_build_object('lane', v_lane.lane));
      exit when v_items = 0;
      v_is_tried := true;
    end loop;
  end loop;
  return v_is_tried;
end
$$;

comment on function parley_flow._p_try_now(text) is
'Has all that waits for its next attempt at a send port tried at once: lanes that were put off, and single messages.
Attempts go on being counted, and keys that wait for an operator go on waiting. False when nothing waited so.';

create function parley_flow._p_retire_lanes(port text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley_store.set_lane(l.system, l.lane, is_permanent => false)
  from parley_flow._p_lanes_of_port(port, true) as l;
end
$$;

comment on function parley_flow._p_retire_lanes(text) is
'Has the store remove the lanes of a send port when they are empty: one that is no longer enlisted, or goes.';

create function parley_flow._p_set_port_state(port text, state text, reason text default null) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_port parley_flow._p_send_port;
begin
  select * into v_port from parley_flow._p_send_port as s where s.name = port;
  if v_port.state = _p_set_port_state.state then
    return false;
  end if;
  update parley_flow._p_send_port as s
  set state = _p_set_port_state.state, stopped_for = reason
  where s.send_port_id = v_port.send_port_id;
  if v_port.state = 'Bound' then
    perform parley_flow._p_make_lanes(port);
  end if;
  if state = 'Bound' then
    perform parley_flow._p_let_lanes(port, false);
    perform parley_flow._p_retire_lanes(port);
  else
    perform parley_flow._p_let_lanes(port, state = 'Started');
  end if;
  return true;
end
$$;

comment on function parley_flow._p_set_port_state(text, text, text) is
'Gives a send port a state; false when it has it. Deliveries of a port that becomes Bound stay, and wait. The caller
holds the row of _p_configuration, and makes the subscriptions anew where the port was Bound or becomes so.
Arguments: port; state; reason, why the engine stops it.';

create function parley_flow._p_change_state(
  caller oid, kind text, name text, action text, port_state text, is_enabled boolean
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_application text;
  v_was text;
  v_is_changed boolean := false;
begin
  perform parley_flow._p_begin_change();
  if kind in ('send port', 'orchestration') then
    select s.application, s.state into v_application, v_was
    from parley_flow._p_send_port as s
    where s.name = $3 and s.is_process = (kind = 'orchestration');
  elsif kind = 'send port group' then
    select g.application, g.state into v_application, v_was from parley_flow._p_port_group as g where g.name = $3;
  else
    select p.application into v_application
    from parley_flow._p_receive_location as l
    join parley_flow._p_receive_port as p on p.receive_port_id = l.receive_port_id
    where l.name = $3;
  end if;
  found := parley_flow._p_require(caller, 'OPERATE', v_application);
  if v_application is null then
    found := parley_flow._p_raise('absent', kind, coalesce(name, 'null'));
  end if;
  if kind = 'receive location' then
    update parley_flow._p_receive_location as l
    set is_enabled = $6
    where l.name = $3 and l.is_enabled is distinct from $6;
    v_is_changed := found;
  elsif kind in ('send port', 'orchestration') then
    v_is_changed := parley_flow._p_set_port_state(name, port_state);
    if port_state = 'Started' then
      found := parley_flow._p_try_now(name);
    end if;
    if v_is_changed and 'Bound' in (v_was, port_state) then
      perform parley_flow._p_subscribe(array(
        select s.send_port_id from parley_flow._p_send_port as s where s.name = $3
      ));
    end if;
  elsif v_was <> port_state then
    update parley_flow._p_port_group as g set state = port_state where g.name = $3;
    perform parley_flow._p_subscribe(array(
      select s.send_port_id
      from parley_flow._p_port_group as g
      join parley_flow._p_send_port as s on s.name = any (g.send_ports)
      where g.name = $3
    ));
    v_is_changed := true;
  end if;
  perform parley_flow._p_record_audit(caller, action, format('%s %s', kind, name), jsonb_build_object('was', v_was));
  perform parley_flow._p_notify_configuration();
  return v_is_changed;
end
$$;

comment on function parley_flow._p_change_state(oid, text, text, text, text, boolean) is
'Gives a port, a group or a location another state, when the caller may; false when it has it.
Errors: PF001, PF004.';

create function parley_flow._p_notify_configuration() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley_store.notify('parley_flow_configuration', c.version::text) from parley_flow._p_configuration as c;
end
$$;

comment on function parley_flow._p_notify_configuration() is
'Wakes hosts, so that they read the configuration again. It says no more than a number, which everybody may know.';

create function parley_flow.start(
  name text, kind text default 'send port', caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if kind is null or kind not in ('send port', 'send port group', 'orchestration') then
    found := parley_flow._p_raise('kind of state', coalesce(kind, 'null'), 'started');
  end if;
  return parley_flow._p_change_state(parley.caller_role(caller), kind, name, 'start', 'Started', null);
end
$$;

comment on function parley_flow.start(text, text, parley.caller) is
'Starts a send port or an orchestration, or enlists a group: one that is Bound is enlisted first. Deliveries that wait
are sent, in their order; those that wait for their next attempt are tried at once, also where the port was started
before. False when it is started.
Arguments: name; kind, send port, orchestration or send port group.
Errors: PF001 without OPERATE for its application, PF004.';

create function parley_flow.stop(
  name text, kind text default 'send port', caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if kind is null or kind not in ('send port', 'orchestration') then
    found := parley_flow._p_raise('kind of state', coalesce(kind, 'null'), 'stopped');
  end if;
  return parley_flow._p_change_state(parley.caller_role(caller), kind, name, 'stop', 'Stopped', null);
end
$$;

comment on function parley_flow.stop(text, text, parley.caller) is
'Stops a send port, or an orchestration: messages are routed to it as before, and wait until it is started. Deliveries
that are being sent are not interrupted, nor steps that have begun; instances stand still. One that is Bound is
enlisted. False when it is stopped. A group cannot be stopped: stop its ports, or unenlist it.
Arguments: name; kind, send port or orchestration.
Errors: PF001 without OPERATE for its application, PF004.';

create function parley_flow.enlist(
  name text, kind text default 'send port', caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if kind is null or kind not in ('send port', 'send port group', 'orchestration') then
    found := parley_flow._p_raise('kind of state', coalesce(kind, 'null'), 'enlisted');
  end if;
  if kind in ('send port', 'orchestration') and exists (
    select
    from parley_flow._p_send_port as s
    where s.name = enlist.name and s.state <> 'Bound' and s.is_process = (kind = 'orchestration')
  ) then
    found := parley_flow._p_require(parley.caller_role(caller), 'OPERATE', (
      select s.application from parley_flow._p_send_port as s where s.name = enlist.name
    ));
    return false;
  end if;
  return parley_flow._p_change_state(
    parley.caller_role(caller), kind, name, 'enlist',
    case when kind = 'send port group' then 'Started' else 'Stopped' end, null
  );
end
$$;

comment on function parley_flow.enlist(text, text, parley.caller) is
'Has messages routed to a send port or an orchestration that is Bound, where they wait until it is started; or to the
ports of a group.
False when it is enlisted.
Arguments: name; kind, send port, orchestration or send port group.
Errors: PF001 without OPERATE for its application, PF004.';

create function parley_flow.unenlist(
  name text, kind text default 'send port', caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if kind is null or kind not in ('send port', 'send port group', 'orchestration') then
    found := parley_flow._p_raise('kind of state', coalesce(kind, 'null'), 'unenlisted');
  end if;
  return parley_flow._p_change_state(parley.caller_role(caller), kind, name, 'unenlist', 'Bound', null);
end
$$;

comment on function parley_flow.unenlist(text, text, parley.caller) is
'Has nothing routed to a send port, or to the ports of a group, any more. Deliveries that wait for a port go on waiting:
they are sent when the port is started again. False when it is Bound.
Arguments: name; kind, send port, orchestration or send port group.
Errors: PF001 without OPERATE for its application, PF004.';

create function parley_flow.enable(location text, caller parley.caller default parley.current_caller()) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley_flow._p_change_state(parley.caller_role(caller), 'receive location', location, 'enable', null, true);
end
$$;

comment on function parley_flow.enable(text, parley.caller) is
'Has a receive location take messages in; false when it does.
Errors: PF001 without OPERATE for its application, PF004.';

create function parley_flow.disable(location text, caller parley.caller default parley.current_caller()) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley_flow._p_change_state(parley.caller_role(caller), 'receive location', location, 'disable', null, false);
end
$$;

comment on function parley_flow.disable(text, parley.caller) is
'Has a receive location take nothing any more, from the commit on; false when it does not.
Errors: PF001 without OPERATE for its application, PF004.';
