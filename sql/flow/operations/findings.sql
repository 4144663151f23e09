-- The findings of parley diagnose about the engine: each with the statement that cures it. The broker calls
-- _p_find_faults, which it finds by its name (parley/diagnosis/diagnose.sql). Nothing is locked.

create view parley_flow.diagnosis_checks as
select c.code, c.part, c.level, c.patience, c.meaning
from (values
  ('flow-host-role', 'CONFIGURATION', 'ERROR', interval '0',
    'The role of a host is gone: nobody but an owner may serve it.'),
  ('flow-property-values', 'CONFIGURATION', 'WARNING', '0', 'Filters name a property that no message type promotes.'),
  ('flow-no-node', 'RUNTIME', 'ERROR', '1 minute', 'A host has ports or locations, and no node serves it.'),
  ('flow-location', 'RUNTIME', 'ERROR', '2 seconds', 'The source of a receive location cannot be reached.'),
  ('flow-node-port', 'RUNTIME', 'ERROR', '1 minute', 'A node cannot serve a send port.'),
  ('flow-node-definitions', 'RUNTIME', 'ERROR', '1 minute', 'A node cannot use the definitions.'),
  ('flow-throttled', 'RUNTIME', 'WARNING', '1 minute', 'A node takes less in, or sends less, than it could.'),
  ('flow-location-paused', 'RUNTIME', 'WARNING', '0',
    'A receive location is throttled, because too many messages wait for the send ports that it feeds.'),
  ('flow-port-unreachable', 'RUNTIME', 'WARNING', '0', 'The destination of a send port was not there.'),
  ('flow-port-stopped', 'RUNTIME', 'WARNING', '0', 'A send port is stopped, and messages wait for it.'),
  ('flow-orchestration-stopped', 'RUNTIME', 'WARNING', '0',
    'An orchestration is stopped, and messages wait for it.'),
  ('flow-instances-suspended', 'RUNTIME', 'WARNING', '0', 'Instances of an orchestration are suspended.'),
  ('flow-order-held', 'RUNTIME', 'ERROR', '0', 'Messages wait behind one of their order that needs an operator.'),
  ('flow-suspended', 'RUNTIME', 'WARNING', '0', 'Messages are suspended.'),
  ('flow-no-subscription', 'RUNTIME', 'WARNING', '0', 'Messages matched nothing in the last day.'),
  ('flow-source-left', 'RUNTIME', 'WARNING', '1 hour', 'Sources that were taken are still there.'),
  ('flow-maintenance', 'RUNTIME', 'WARNING', '1 minute',
    'A task of maintenance fails, or somebody holds what it needs.')
) as c (code, part, level, patience, meaning);

comment on view parley_flow.diagnosis_checks is 'Gives the findings of parley diagnose about the integration engine.';

create function parley_flow._p_find_definition_faults() returns table (
  code text, object_kind text, object_name text, cause text, since timestamptz, cure text
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'flow-host-role', 'host', h.name,
    format('Role "%s" does not exist any more.', parley._p_name_with(h.role_number)), null::timestamptz,
    format('select parley_flow.apply(''{"host": {%s: {"role": <role>}}}'');', to_json(h.name))
  from parley_flow._p_host as h
  where parley._p_role_with(h.role_number) is null
  union all
  select 'flow-property-values', 'property', r.property, 'No message type promotes it, and it is none of the engine.',
    null::timestamptz, 'Promote it in a message type, or in parley_flow.publish.'
  from parley_flow._p_routed_property as r
  where r.property ~ '#' and not exists (
    select
    from parley_flow._p_definition as d
    where d.kind = 'message type' and d.settings -> 'promotions' ? r.property
  )
$$;

comment on function parley_flow._p_find_definition_faults() is 'Finds definitions that cannot do what they say.';

create function parley_flow._p_find_host_faults() returns table (
  code text, object_kind text, object_name text, cause text, since timestamptz, cure text
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'flow-no-node', 'host', h.name,
    coalesce((
      select format('The last node to serve it was %s.', i.node)
      from parley_flow._p_host_instance as i
      where i.host = h.name
      order by i.reported_at desc
      limit 1
    ), 'None has ever served it.'),
    coalesce((
      select max(i.reported_at) from parley_flow._p_host_instance as i where i.host = h.name
    ), c.changed_at), format('parley flow serve --host %s', h.name)
  from parley_flow._p_host as h
  cross join parley_flow._p_configuration as c
  where not exists (
      select
      from parley_flow._p_host_instance as i
      where i.host = h.name and i.reported_at > clock_timestamp() - interval '1 minute'
    )
    and (
      exists (select from parley_flow._p_send_port as s where s.host_id = h.host_id and s.state = 'Started')
      or exists (select from parley_flow._p_receive_location as l where l.host_id = h.host_id and l.is_enabled)
    )
  union all
  select 'flow-location', 'receive location', r.location, format('On node %s: %s', r.node, r.error), r.failing_since,
    format('select * from parley_flow.receive_locations where name = %L;  -- and see its source', r.location)
  from parley_flow._p_location_report as r
  where r.failing_since is not null and r.reported_at > clock_timestamp() - interval '5 minutes'
  union all
  -- A node may report anything of itself: nothing is expected of its form.
  select p.problem ->> 'code', p.problem ->> 'kind', p.problem ->> 'object',
    format('On node %s: %s', i.node, left(p.problem ->> 'cause', 1000)), null,
    case p.problem ->> 'code'
      when 'flow-location-paused'
        then 'select name, waiting, last_error from parley_flow.send_ports order by waiting desc;  '
          '-- have the destination work again, or raise pause_at'
      when 'flow-node-port' then 'Permit what the node may use, or mend the definition; see parley flow hosts.'
      else 'Mend the definitions, or upgrade the node.'
    end
  from parley_flow._p_host_instance as i
  cross join lateral jsonb_path_query(i.report, '$.problems[*]') as p (problem)
  where i.reported_at > clock_timestamp() - interval '1 minute'
    and p.problem ->> 'code' in ('flow-node-port', 'flow-node-definitions', 'flow-location-paused')
  union all
  select 'flow-throttled', 'host', i.host,
    format(
      'Node %s throttles %s in state %s, with a delay of %s ms.', i.node, d.direction,
      left(d.throttling ->> 'state', 10), left(d.throttling ->> 'delay_ms', 20)
    ), null, 'select * from parley_flow.thresholds;  -- docs/flow/hosts.md says which state is which'
  from parley_flow._p_host_instance as i
  cross join lateral (
    values ('publishing', i.report -> 'publishing'), ('correlation', i.report -> 'correlation'),
      ('delivery', i.report -> 'delivery')
  ) as d (direction, throttling)
  where i.reported_at > clock_timestamp() - interval '1 minute' and d.throttling ->> 'state' <> '0'
  union all
  select 'flow-source-left', 'receive location', l.name,
    format('%s of its sources were taken and are not reported to be removed.', count(*)), min(g.taken_at),
    'Give the role of the host the right to remove them, or start the host again.'
  from parley_flow._p_ledger as g
  join parley_flow._p_receive_location as l on l.location_id = g.location_id
  where g.removed_at is null
  group by l.name
  union all
  select 'flow-maintenance', 'task', f.task,
    format('It has failed since %s, the last time at %s: %s.', f.failing_since, f.failed_at, f.error),
    f.failing_since,
    'select pid, usename, xact_start, query from pg_stat_activity where xact_start is not null order by xact_start;  '
      '-- and end the transaction that is in its way'
  from parley_flow._p_maintenance_failure as f
$$;

comment on function parley_flow._p_find_host_faults() is
'Finds hosts that nobody serves, sources that cannot be reached or removed, and maintenance that fails.';

create function parley_flow._p_find_message_faults() returns table (
  code text, object_kind text, object_name text, cause text, since timestamptz, cure text
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case
      when s.state <> 'Stopped' then 'flow-port-unreachable'
      when s.is_process then 'flow-orchestration-stopped'
      else 'flow-port-stopped'
    end, case when s.is_process then 'orchestration' else 'send port' end, s.name,
    case
      when s.state = 'Stopped' then coalesce('The engine has stopped it: ' || s.stopped_for, 'It is stopped.')
      else format('Nothing is sent until %s: %s', l.next_attempt_at, coalesce(l.last_error, 'no reason was given'))
    end, null::timestamptz,
    case
      when s.state = 'Stopped' and s.is_process then format('select parley_flow.start(%L, ''orchestration'');', s.name)
      when s.state = 'Stopped' then format('select parley_flow.start(%L);', s.name)
      else format('select * from parley_flow.send_ports where name = %L;  -- and see its destination', s.name)
    end
  from parley_flow._p_send_port as s
  join parley_flow._p_host as h on h.host_id = s.host_id
  join lateral (
    select o.next_attempt_at, o.last_error
    from parley_store.lanes as o
    where o.system = h.system and (o.lane = s.name or starts_with(o.lane, s.name || '#'))
      and (o.next_attempt_at > clock_timestamp() or (s.state = 'Stopped' and parley_store.has_work(o.system, o.lane)))
    order by o.next_attempt_at desc nulls last
    limit 1
  ) as l on true
  where s.state = 'Stopped' or l.next_attempt_at is not null
  union all
  select 'flow-order-held', 'send port', s.name,
    format(
      'Key "%s" waits: %s', parley_flow._p_shown_key(s.name, k.order_key), coalesce(k.error, 'no reason was given')
    ), k.held_at,
    format('select parley_flow.resume_suspended(%L);  -- or terminate_suspended', jsonb_build_object(
      'send_port', s.name, 'order_key', parley_flow._p_shown_key(s.name, k.order_key)
    ))
  from parley_flow._p_held_key as k
  join parley_flow._p_send_port as s on s.send_port_id = k.send_port_id
  where k.is_waiting
  union all
  select 'flow-suspended', case
      when u.send_port is null then 'receive location'
      when (u.stage = 'PROCESS') then 'orchestration'
      else 'send port'
    end,
    coalesce(u.send_port, u.location, u.receive_port, 'SQL'), format('%s messages with code %s.', count(*), u.code),
    min(u.suspended_at),
    'select * from parley_flow.suspended_groups();  -- and resume, resubmit or terminate them'
  from parley_flow._p_suspended as u
  group by u.send_port, u.location, u.receive_port, u.code, (u.stage = 'PROCESS')
  union all
  select 'flow-instances-suspended', 'orchestration', s.name,
    format('%s instances with code %s.', count(*), coalesce(i.fault ->> 'code', '(none)')), min(i.changed_at),
    format(
      'select * from parley_flow.instances_matching(%L);  -- and resume or terminate them',
      jsonb_build_object('orchestration', s.name, 'status', 'SUSPENDED')
    )
  from parley_flow._p_instance as i
  join parley_flow._p_send_port as s on s.send_port_id = i.send_port_id
  where i.status = 'SUSPENDED'
  group by s.name, i.fault ->> 'code'
  union all
  select 'flow-no-subscription', 'cause', f.cause_id::text,
    format('%s: %s messages of type %s.', f.explanation, f.failures + (
      select coalesce(sum(t.failures), 0) from parley_flow._p_routing_hit as t where t.cause_id = f.cause_id
    ), coalesce(f.message_type, '(none)')), f.first_at,
    format('select remedy from parley_flow.routing_failures where cause_id = %s;', f.cause_id)
  from parley_flow._p_routing_cause as f
  where f.last_at > clock_timestamp() - interval '1 day'
$$;

comment on function parley_flow._p_find_message_faults() is
'Finds ports that do not send, orders that wait, and messages and instances that are suspended or matched nothing.';

create function parley_flow._p_find_faults(part text, patience interval)
returns table (
  code text, level text, object_kind text, object_name text, cause text, since timestamptz, cure text
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select f.code, c.level, f.object_kind, f.object_name, f.cause, f.since, f.cure
  from (
    select d.code, d.object_kind, d.object_name, d.cause, d.since, d.cure
    from parley_flow._p_find_definition_faults() as d
    where _p_find_faults.part = 'CONFIGURATION'
    union all
    select h.code, h.object_kind, h.object_name, h.cause, h.since, h.cure
    from parley_flow._p_find_host_faults() as h
    where _p_find_faults.part = 'RUNTIME'
    union all
    select m.code, m.object_kind, m.object_name, m.cause, m.since, m.cure
    from parley_flow._p_find_message_faults() as m
    where _p_find_faults.part = 'RUNTIME'
  ) as f
  join parley_flow.diagnosis_checks as c on c.code = f.code and c.part = _p_find_faults.part
  where coalesce(f.since <= clock_timestamp() - coalesce(_p_find_faults.patience, c.patience), true)
$$;

comment on function parley_flow._p_find_faults(text, interval) is
'Finds what is wrong with the engine.
Arguments: part, CONFIGURATION or RUNTIME; patience, for how long it may last (null: as parley_flow.diagnosis_checks
says).
Source: spec integration 16.';
