-- Pressure: from which values on hosts take less in, or send less (spec integration 13).
--
-- A node measures and decides (internal/store/governor, internal/flow/host). Thresholds, actions and the history are
-- those of parley_store, for the system flow. A holder of VIEW and a host read them here, a holder of ADMINISTER
-- changes them. How much waits and is in the box is estimated from counters, never counted.

create function parley_flow._p_may_see_pressure(role oid) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select parley_flow._p_holds(role, 'VIEW') or parley_flow._p_may_maintain(role)
$$;

comment on function parley_flow._p_may_see_pressure(oid) is 'Reports whether a role holds VIEW or may serve a host.';

create function parley_flow._p_thresholds(caller parley.caller default parley.current_caller())
returns setof parley_store.thresholds
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select t.system, t.resource, t.unit, t.medium_at, t.high_at, t.medium_below, t.normal_below, t.floor_at,
    t.reserve_bytes, t.history_polls, t.is_watched
  from parley_store.thresholds as t
  where t.system = 'flow' and parley_flow._p_may_see_pressure(parley.caller_role(caller))
$$;

comment on function parley_flow._p_thresholds(parley.caller) is 'Gives what parley_flow.thresholds shows.';

create view parley_flow.thresholds as
select t.resource, t.unit, t.medium_at, t.high_at, t.medium_below, t.normal_below, t.history_polls, t.is_watched
from parley_flow._p_thresholds() as t;

comment on view parley_flow.thresholds is
'From which values on a resource is under pressure, for holders of VIEW and members of the roles of hosts. Set with
parley_flow.set_threshold.
Columns: medium_at, high_at, above which the level rises; medium_below, normal_below, below which it falls;
history_polls, after how many polls above Normal later actions begin.';

create function parley_flow._p_pressure_actions(caller parley.caller default parley.current_caller())
returns setof parley_store.pressure_actions
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select a.system, a.resource, a.action, a.from_level, a.after_history
  from parley_store.pressure_actions as a
  where a.system = 'flow' and parley_flow._p_may_see_pressure(parley.caller_role(caller))
$$;

comment on function parley_flow._p_pressure_actions(parley.caller) is 'Gives what parley_flow.pressure_actions shows.';

create view parley_flow.pressure_actions as
select a.resource, a.action, a.from_level, a.after_history from parley_flow._p_pressure_actions() as a;

comment on view parley_flow.pressure_actions is
'The actions of hosts while a resource is at a level or above it: throttle publishing, throttle delivery. For holders of
VIEW and members of the roles of hosts.';

create function parley_flow.set_threshold(
  resource text, medium_at double precision, high_at double precision, medium_below double precision,
  normal_below double precision, history_polls integer default 0, is_watched boolean default true,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_unit text;
begin
  found := parley_flow._p_require(v_caller, 'ADMINISTER');
  if not (select c.is_set_up from parley_flow._p_configuration as c) then
    found := parley_flow._p_raise('set up');
  end if;
  select d.unit into v_unit from parley_flow._p_default_thresholds() as d where d.resource = set_threshold.resource;
  if not found then
    found := parley_flow._p_raise(
      'choice', 'resource', coalesce(resource, 'null'),
      (select string_agg(d.resource, ', ') from parley_flow._p_default_thresholds() as d)
    );
  end if;
  perform parley_store.set_threshold(
    'flow', resource, medium_at, high_at, medium_below, normal_below, history_polls, v_unit, is_watched
  );
  perform parley_flow._p_record_audit(v_caller, 'set threshold', resource, jsonb_build_object(
    'medium_at', medium_at, 'high_at', high_at, 'medium_below', medium_below, 'normal_below', normal_below,
    'history_polls', history_polls, 'is_watched', is_watched
  ));
end
$$;

comment on function parley_flow.set_threshold(
  text, double precision, double precision, double precision, double precision, integer, boolean, parley.caller
) is
'Says from which values on a resource is under pressure; nodes read it within ten seconds.
Arguments: resource, one of parley_flow.thresholds; medium_at and high_at, above which the level rises; medium_below and
normal_below, below which it falls; history_polls, after how many polls above Normal later actions begin; is_watched.
Errors: PF001, PF005 nothing is defined yet, PF010 no such resource, PS008 the values contradict each other.
Source: spec integration 13.2.';

create function parley_flow._p_backlogs() returns table (
  send_port_id integer, waiting bigint, counted bigint, pause_at bigint, resume_at bigint
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select s.send_port_id, c.items,
    -- Of a port that is away nothing counts up to its own limit, and of others nothing that has failed. One is away too
    -- whose destination hangs: nothing has gone for long, though messages have failed, or are in somebody's hands.
    greatest(
      c.items - least(
        s.pause_at, case
          when c.is_away or s.state = 'Stopped'
            or coalesce(c.went_at < clock_timestamp() - interval '15 seconds', true)
            and (c.tried > 0 or c.claimed_at < clock_timestamp() - interval '15 seconds') then c.items
          else c.tried
        end
      ), 0
    ), s.pause_at, s.resume_at
  from parley_flow._p_send_port as s
  join parley_flow._p_host as h on h.host_id = s.host_id
  join (
    select l.system, parley_flow._p_port_of_lane(l.lane) as port, sum(o.items)::bigint as items,
      sum(o.tried)::bigint as tried, max(o.went_at) as went_at, max(o.claimed_at) as claimed_at,
      -- Between two attempts the port is as far away as it was.
      bool_or(coalesce(
        l.next_attempt_at > clock_timestamp() - interval '1 minute' and l.last_error is not null
          or l.suspended_at is not null, false
      )) as is_away
    from parley_store.lane_counts as o
    join parley_store.lanes as l on l.lane_id = o.lane_id
    group by 1, 2
  ) as c on c.system = h.system and c.port = s.name
$$;

comment on function parley_flow._p_backlogs() is
'Gives how many messages wait for each send port, and how many of them count for the pressure on all: of a port whose
destination is away or hangs, or that is stopped, those beyond pause_at; of others those that have not failed.';

create function parley_flow._p_measure_ports(caller parley.caller default parley.current_caller())
returns table (send_port bigint, is_over boolean)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if not parley_flow._p_may_maintain(parley.caller_role(caller)) then
    found := parley_flow._p_raise('host role', 'of any name', pg_get_userbyid(parley.caller_role(caller)));
  end if;
  return query
  select b.send_port_id::bigint, b.waiting >= b.pause_at
  from parley_flow._p_backlogs() as b
  where b.waiting > b.resume_at;
end
$$;

comment on function parley_flow._p_measure_ports(parley.caller) is
'Gives the send ports for which more messages wait than resume_at, and whether as many do as pause_at: what feeds such a
port alone is throttled from the one on until the other.
Errors: PF001.
Source: spec integration 13.2.';

create function parley_flow._p_measure(caller parley.caller default parley.current_caller())
returns table (resource text, value double precision)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if not parley_flow._p_may_maintain(parley.caller_role(caller)) then
    found := parley_flow._p_raise('host role', 'of any name', pg_get_userbyid(parley.caller_role(caller)));
  end if;
  return query select m.resource, m.value from parley_store.measure('flow') as m where m.resource = 'connections';
  return query
  select 'messages waiting'::text, coalesce(sum(b.counted), 0)::double precision from parley_flow._p_backlogs() as b;
  -- Suspended messages wait for people, those of ports that are away for their destinations: both slow nothing down.
  return query
  select 'spool'::text, greatest(
    pg_stat_get_live_tuples('parley_flow._p_message'::regclass)
      - pg_stat_get_live_tuples('parley_flow._p_suspended'::regclass)
      - (select coalesce(sum(b.waiting - b.counted), 0) from parley_flow._p_backlogs() as b), 0
  )::double precision;
end
$$;

comment on function parley_flow._p_measure(parley.caller) is
'Gives what the database knows of its pressure: sessions in percent, how many messages wait for send ports, and how many
are in the box, estimated. Messages that are suspended, and those of ports that are away, are left out.
Errors: PF001.
Source: spec integration 13.4.';

create function parley_flow._p_record_pressure(
  node text, resource text, event_id integer, from_level text, to_level text, measured double precision,
  actions text[], message text, caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if not parley_flow._p_may_maintain(parley.caller_role(caller)) then
    found := parley_flow._p_raise('host role', 'of any name', pg_get_userbyid(parley.caller_role(caller)));
  end if;
  return parley_store.record_pressure(
    'flow', node, resource, event_id, from_level, to_level, measured, actions, message
  );
end
$$;

comment on function parley_flow._p_record_pressure(
  text, text, integer, text, text, double precision, text[], text, parley.caller
) is
'Records a change of a level, as parley_store.record_pressure does.
Errors: PF001.';
