-- Views of ports, hosts, subscriptions, definitions and counters for operators.

create function parley_flow._p_closed(kind text, object text, host text)
returns table (is_closed boolean, opens_at timestamptz)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select true, min((c.closed ->> 'until')::timestamptz)
  from parley_flow._p_host_instance as i
  cross join lateral jsonb_array_elements(
    case when jsonb_typeof(i.report -> 'closed') = 'array' then i.report -> 'closed' else '[]' end
  ) as c (closed)
  where i.host = $3 and i.reported_at > clock_timestamp() - interval '1 minute'
    and c.closed ->> 'kind' = $1 and c.closed ->> 'object' = $2
  having count(*) > 0
$$;

comment on function parley_flow._p_closed(text, text, text) is
'Gives a row for a location or port that its schedule closes now, as nodes report it, with when it opens again; null:
never. No row for one that is open, or of which no node reports.';

create function parley_flow._p_send_port_rows(
  most bigint default null, caller parley.caller default parley.current_caller()
)
returns table (
  name text, application text, host text, state text, stopped_for text, adapter text, address text, pipeline text,
  priority integer, is_ordered boolean, order_key text, on_failure text, retry_policy text, waiting bigint,
  failing bigint, sent_per_second numeric, oldest timestamptz, suspended bigint, held_keys bigint,
  next_attempt_at timestamptz, last_error text, last_error_at timestamptz, recovered_at timestamptz,
  is_closed boolean, opens_at timestamptz
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select s.name, s.application, h.name, s.state, s.stopped_for, s.adapter, s.address, s.pipeline, 11 - s.item_priority,
    s.is_ordered, s.order_key, s.on_failure, s.retry_policy, coalesce(c.items, 0)::bigint, coalesce(c.tried, 0)::bigint,
    coalesce(c.went, 0), c.oldest,
    (
      select count(*)
      from (select from parley_flow._p_suspended as u where u.send_port = s.name limit most) as bounded
    ), (
      select count(*)
      from (select from parley_flow._p_held_key as k where k.send_port_id = s.send_port_id limit most) as bounded
    ),
    l.next_attempt_at, coalesce(n.cause, f.error), coalesce(n.reported_at, f.failed_at),
    case when n.cause is null then f.recovered_at end, coalesce(d.is_closed, false), d.opens_at
  from (
    select parley_flow._p_applications_of(parley.caller_role(caller), 'VIEW') as applications
  ) as a
  cross join parley_flow._p_send_port as s
  join parley_flow._p_host as h on h.host_id = s.host_id
  left join (
    select o.system, parley_flow._p_port_of_lane(o.lane) as port, sum(o.items) as items, sum(o.tried) as tried,
      sum(o.outgoing_rate) as went, min(o.oldest_at) as oldest
    from parley_store.lane_counts as o
    group by 1, 2
  ) as c on c.system = h.system and c.port = s.name
  left join (
    select o.system, parley_flow._p_port_of_lane(o.lane) as port, max(o.next_attempt_at) as next_attempt_at
    from parley_store.lanes as o
    where o.next_attempt_at > clock_timestamp()
      and not exists (select from parley_flow._p_held_key as k where k.system = o.system and k.lane = o.lane)
    group by 1, 2
  ) as l on l.system = h.system and l.port = s.name
  left join parley_flow._p_send_port_failure as f on f.send_port_id = s.send_port_id
  left join lateral (
    select format('on node %s: %s', i.node, left(p.problem ->> 'cause', 1000)) as cause, i.reported_at
    from parley_flow._p_host_instance as i
    cross join lateral jsonb_path_query(i.report, '$.problems[*]') as p (problem)
    where i.host = h.name and i.reported_at > clock_timestamp() - interval '1 minute' and s.state = 'Started'
      and p.problem ->> 'code' = 'flow-node-port' and p.problem ->> 'object' = s.name
    order by i.node
    limit 1
  ) as n on true
  left join lateral parley_flow._p_closed('send port', s.name, h.name) as d on true
  where not s.is_process and (a.applications = array['*'] or s.application = any (a.applications))
$$;

comment on function parley_flow._p_send_port_rows(bigint, parley.caller) is
'Gives what parley_flow.send_ports shows; most: no more than so many suspended messages and held keys of a port are
counted, null: all.';

create view parley_flow.send_ports as
select s.name, s.application, s.host, s.state, s.stopped_for, s.adapter, s.address, s.pipeline, s.priority,
  s.is_ordered, s.order_key, s.on_failure, s.retry_policy, s.waiting, s.failing, s.sent_per_second, s.oldest,
  s.suspended, s.held_keys, s.next_attempt_at, s.last_error, s.last_error_at, s.recovered_at, s.is_closed, s.opens_at
from parley_flow._p_send_port_rows() as s;

comment on view parley_flow.send_ports is
'Send ports, their states and what waits for them, for who holds VIEW. stopped_for: why the engine has stopped it;
waiting: deliveries that are not ended nor suspended; failing: those of them that have failed; held_keys: keys of an
order that wait for their head; next_attempt_at: until when nothing is sent, because the destination was not there;
last_error: why a node leaves the port out, or what the last attempt that failed met, at last_error_at; recovered_at:
when it sent something after that, null: not yet; is_closed: its schedule keeps it from sending now, until opens_at
(null: for good).';

create function parley_flow.port_activity(caller parley.caller default parley.current_caller())
returns table (
  name text, application text, host text, state text, waiting bigint, failing bigint, sent_per_second numeric,
  oldest timestamptz, suspended bigint, held_keys bigint, next_attempt_at timestamptz, last_error text,
  last_error_at timestamptz, recovered_at timestamptz, is_closed boolean
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select s.name, s.application, s.host, s.state, s.waiting, s.failing, s.sent_per_second, s.oldest, s.suspended,
    s.held_keys, s.next_attempt_at, s.last_error, s.last_error_at, s.recovered_at, s.is_closed
  from parley_flow._p_send_port_rows(10000, caller) as s
$$;

comment on function parley_flow.port_activity(parley.caller) is
'Gives what goes on at send ports, for who holds VIEW, at a cost that does not grow with what waits: suspended messages
and held keys are counted up to 10,000 each. The columns are those of parley_flow.send_ports.';

create function parley_flow._p_location_rows(caller parley.caller default parley.current_caller())
returns table (
  name text, receive_port text, application text, host text, is_enabled boolean, adapter text, address text,
  pipeline text, failing_since timestamptz, last_error text, last_error_at timestamptz, recovered_at timestamptz,
  node text, reported_at timestamptz, is_closed boolean, opens_at timestamptz
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select l.name, p.name, p.application, h.name, l.is_enabled, l.adapter, l.address, l.pipeline, r.failing_since,
    r.error, r.failed_at, r.recovered_at, r.node, r.reported_at, coalesce(d.is_closed, false), d.opens_at
  from (
    select parley_flow._p_applications_of(parley.caller_role(caller), 'VIEW') as applications
  ) as a
  cross join parley_flow._p_receive_location as l
  join parley_flow._p_receive_port as p on p.receive_port_id = l.receive_port_id
  join parley_flow._p_host as h on h.host_id = l.host_id
  left join lateral (
    select o.failing_since, o.error, o.failed_at, o.recovered_at, o.node, o.reported_at
    from parley_flow._p_location_report as o
    where o.location = l.name
    -- A node on which it fails comes first, as long as that node reports.
    order by o.failing_since is not null and o.reported_at > clock_timestamp() - interval '5 minutes' desc,
      o.reported_at desc
    limit 1
  ) as r on true
  left join lateral parley_flow._p_closed('receive location', l.name, h.name) as d on true
  where a.applications = array['*'] or p.application = any (a.applications)
$$;

comment on function parley_flow._p_location_rows(parley.caller) is 'Gives what parley_flow.receive_locations shows.';

create view parley_flow.receive_locations as
select l.name, l.receive_port, l.application, l.host, l.is_enabled, l.adapter, l.address, l.pipeline, l.failing_since,
  l.last_error, l.last_error_at, l.recovered_at, l.node, l.reported_at, l.is_closed, l.opens_at
from parley_flow._p_location_rows() as l;

comment on view parley_flow.receive_locations is
'Receive locations, and how they were doing when a node last reported, for who holds VIEW. failing_since: null where the
source can be reached; last_error: why it could not be, at last_error_at; recovered_at: when it could be again;
is_closed: its schedule keeps it from taking in now, until opens_at (null: for good).';

create function parley_flow._p_host_rows(caller parley.caller default parley.current_caller())
returns table (
  host text, role text, node text, is_there boolean, started_at timestamptz, reported_at timestamptz, report jsonb
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select h.name, parley._p_name_with(h.role_number), i.node,
    coalesce(i.reported_at > clock_timestamp() - interval '1 minute', false), i.started_at, i.reported_at,
    -- The problems are of objects of all applications.
    case when s.is_whole then i.report else i.report - 'problems' end
  from (
    select parley.caller_role(caller) as role,
      parley_flow._p_applications_of(parley.caller_role(caller), 'VIEW') as applications
  ) as c
  cross join parley_flow._p_host as h
  cross join lateral (
    select c.applications = array['*']
      or coalesce(pg_has_role(c.role, parley._p_role_with(h.role_number), 'usage'), false) as is_whole
  ) as s
  left join parley_flow._p_host_instance as i on i.host = h.name
  where s.is_whole or c.applications <> '{}'
$$;

comment on function parley_flow._p_host_rows(parley.caller) is 'Gives what parley_flow.hosts shows.';

create view parley_flow.hosts as
select h.host, h.role, h.node, h.is_there, h.started_at, h.reported_at, h.report from parley_flow._p_host_rows() as h;

comment on view parley_flow.hosts is
'Hosts and the nodes that serve them, a row each; node is null of one that was never served. For who holds VIEW, and for
members of its role; report has the problems of a node for those who hold VIEW for all, and for those members.';

create function parley_flow._p_subscription_rows(caller parley.caller default parley.current_caller())
returns table (send_port text, application text, state text, port_group text, ordinal integer, predicates jsonb)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select s.name, s.application, s.state, g.port_group, g.ordinal, (
      select jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
        'property', p.property, 'operator', p.operator, 'value', coalesce(to_jsonb(p.operand), to_jsonb(p.operands))
      )) order by p.ordinal)
      from parley_flow._p_predicate as p
      where p.group_id = g.group_id
    )
  from (
    select parley_flow._p_applications_of(parley.caller_role(caller), 'VIEW') as applications
  ) as a
  cross join parley_flow._p_group as g
  join parley_flow._p_send_port as s on s.send_port_id = g.send_port_id
  where a.applications = array['*'] or s.application = any (a.applications)
$$;

comment on function parley_flow._p_subscription_rows(parley.caller) is 'Gives what parley_flow.subscriptions shows.';

create view parley_flow.subscriptions as
select s.send_port, s.application, s.state, s.port_group, s.ordinal, s.predicates
from parley_flow._p_subscription_rows() as s;

comment on view parley_flow.subscriptions is
'The routes of messages, a row for each AND group, for holders of VIEW.';

create function parley_flow._p_definition_rows(caller parley.caller default parley.current_caller())
returns table (
  kind text, name text, application text, settings jsonb, effective_settings jsonb, version bigint,
  changed_at timestamptz, changed_by text
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select d.kind, d.name, w.application, d.settings, parley_flow._p_effective(d.kind, d.settings), d.version,
    d.changed_at, d.changed_by
  from (
    select parley_flow._p_applications_of(parley.caller_role(caller), 'VIEW') as applications
  ) as a
  cross join parley_flow._p_definition as d
  left join parley_flow._p_receive_port as p on d.kind = 'receive location' and p.name = d.settings ->> 'receive_port'
  cross join lateral (
    select case when d.kind = 'application' then d.name else coalesce(d.settings ->> 'application', p.application) end
      as application
  ) as w
  where a.applications = array['*'] or w.application = any (a.applications)
$$;

comment on function parley_flow._p_definition_rows(parley.caller) is 'Gives what parley_flow.definitions shows.';

create view parley_flow.definitions as
select d.kind, d.name, d.application, d.settings, d.effective_settings, d.version, d.changed_at, d.changed_by
from parley_flow._p_definition_rows() as d;

comment on view parley_flow.definitions is
'Everything that is defined, for who holds VIEW. settings: what was given; effective_settings: with defaults.';
