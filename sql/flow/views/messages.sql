-- Views of messages for operators: those that are there, those that are suspended, causes of failures.

create function parley_flow._p_suspended_rows(caller parley.caller default parley.current_caller())
returns setof parley_flow._p_suspended
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select u.*
  from parley_flow._p_matching(
    '{}', parley_flow._p_applications_of(parley.caller_role(caller), 'VIEW'), 0, null
  ) as u
$$;

comment on function parley_flow._p_suspended_rows(parley.caller) is 'Gives what parley_flow.suspended shows.';

create view parley_flow.suspended as
select u.suspension_id, u.message_id, u.stage, u.application, u.receive_port, u.location, u.send_port, u.code, u.error,
  u.is_resumable, u.attempts, u.order_key, u.lane is not null as holds_up_order, u.message_type, u.size, u.cause_id,
  u.suspended_at, c.remedy
from parley_flow._p_suspended_rows() as u
left join parley_flow.failure_codes as c on c.code = u.code;

comment on view parley_flow.suspended is
'Messages that wait for an operator, for who holds VIEW: where they failed, why, and what to do. stage: RECEIVE, ROUTE
or SEND; holds_up_order: messages wait behind it; cause_id: in parley_flow.routing_failures.';

create function parley_flow.suspended_matching(
  filter jsonb default '{}', top integer default 1000, after bigint default null,
  caller parley.caller default parley.current_caller()
) returns setof parley_flow.suspended
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_flow._p_require_top(top);
  return query
  select u.suspension_id, u.message_id, u.stage, u.application, u.receive_port, u.location, u.send_port, u.code,
    u.error, u.is_resumable, u.attempts, u.order_key, u.lane is not null, u.message_type, u.size, u.cause_id,
    u.suspended_at, c.remedy
  from parley_flow._p_matching(
    filter, parley_flow._p_applications_of(parley.caller_role(caller), 'VIEW'), after, top
  ) as u
  left join parley_flow.failure_codes as c on c.code = u.code
  order by u.suspension_id;
end
$$;

comment on function parley_flow.suspended_matching(jsonb, integer, bigint, parley.caller) is
'Gives suspended messages that a filter matches, the oldest first, a page at a time.
Arguments: filter, conditions as docs/internals/flow.md lists them; top; after, suspension_id of the last that was seen.
Errors: PF010 malformed.';

create function parley_flow.suspended_groups(
  filter jsonb default '{}', caller parley.caller default parley.current_caller()
) returns table (
  application text, stage text, location text, send_port text, code text, message_type text, messages bigint,
  bytes numeric, oldest timestamptz, newest timestamptz, sample bigint
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select u.application, u.stage, u.location, u.send_port, u.code, u.message_type, count(*), sum(u.size),
    min(u.suspended_at), max(u.suspended_at), min(u.suspension_id)
  from parley_flow._p_matching(
    filter, parley_flow._p_applications_of(parley.caller_role(caller), 'VIEW'), 0, null
  ) as u
  group by u.application, u.stage, u.location, u.send_port, u.code, u.message_type
  order by count(*) desc, min(u.suspension_id);
end
$$;

comment on function parley_flow.suspended_groups(jsonb, parley.caller) is
'Counts suspended messages that a filter matches, by where and why they failed, the largest group first. sample: the
suspension_id of the oldest.
Arguments: filter, conditions as docs/internals/flow.md lists them.
Errors: PF010 malformed.';

create function parley_flow._p_message_rows(caller parley.caller default parley.current_caller())
returns table (
  message_id bigint, interchange_id bigint, parent_id bigint, received_at timestamptz, application text,
  receive_port text, location text, published_by text, message_type text, size bigint, deliveries integer,
  parts integer, promoted jsonb
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select m.message_id, coalesce(m.interchange_id, m.message_id), m.parent_id, m.received_at, p.application, p.name,
    l.name, parley._p_name_with(m.published_by), m.message_type, m.size, m.deliveries::integer,
    coalesce(jsonb_array_length(m.parts), 1), parley_flow._p_without_sensitive(m.promoted)
  from (
    select parley_flow._p_applications_of(parley.caller_role(caller), 'VIEW') as applications
  ) as a
  cross join parley_flow._p_message as m
  left join parley_flow._p_receive_port as p on p.receive_port_id = m.receive_port_id
  left join parley_flow._p_receive_location as l on l.location_id = m.location_id
  where a.applications = array['*'] or p.application = any (a.applications)
$$;

comment on function parley_flow._p_message_rows(parley.caller) is 'Gives what parley_flow.messages shows.';

create view parley_flow.messages as
select m.message_id, m.interchange_id, m.parent_id, m.received_at, m.application, m.receive_port, m.location,
  m.published_by, m.message_type, m.size, m.deliveries, m.parts, m.promoted
from parley_flow._p_message_rows() as m;

comment on view parley_flow.messages is
'Messages that are there, for who holds VIEW: with deliveries that are open, suspended or kept. deliveries: with how
many it began; promoted: without what is declared sensitive.';

create function parley_flow._p_routing_failure_rows(caller parley.caller default parley.current_caller())
returns table (
  cause_id bigint, receive_port text, location text, message_type text, explanation text, send_port text,
  port_group text, missed jsonb, failures bigint, first_at timestamptz, last_at timestamptz, sample_message_id bigint,
  sample jsonb
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select f.cause_id, f.receive_port, f.location, f.message_type, f.explanation, f.send_port, f.port_group, f.missed,
    f.failures + coalesce(h.failures, 0), f.first_at, greatest(f.last_at, h.last_at), f.sample_message_id, f.sample
  from (
    select parley_flow._p_applications_of(parley.caller_role(caller), 'VIEW') as applications
  ) as a
  cross join parley_flow._p_routing_failure as f
  left join (
    select o.cause_id, sum(o.failures) as failures, max(o.at) as last_at
    from parley_flow._p_routing_hit as o
    group by o.cause_id
  ) as h on h.cause_id = f.cause_id
  left join parley_flow._p_receive_port as p on p.name = f.receive_port
  where a.applications = array['*'] or p.application = any (a.applications)
$$;

comment on function parley_flow._p_routing_failure_rows(parley.caller) is
'Gives what parley_flow.routing_failures shows.';

create view parley_flow.routing_failures as
select f.cause_id, f.receive_port, f.location, f.message_type, f.explanation, f.send_port, f.port_group, f.missed,
  f.failures, f.first_at, f.last_at, f.sample_message_id, f.sample,
  case f.explanation
    when 'NO_SUBSCRIPTION' then 'No send port is enlisted at all: define one with a filter, or enlist one.'
    when 'NOT_ENLISTED' then format('Send port "%s" would get it, and is not enlisted: start it.', f.send_port)
    when 'UNTYPED' then format(
      'Send port "%s" asks for a type, and the message has none, because its pipeline passes it through: give the '
        || 'location a pipeline that takes messages apart.', f.send_port
    )
    when 'ENCODING' then 'The charset that was declared is not that of the message, so that it was not understood: '
      || 'set the charset of the location, or have the sender declare it.'
    when 'ONE_PREDICATE' then format(
      'Send port "%s" was nearest, and one predicate was not satisfied: %s. Change its filter, or find out why the '
        || 'message has another value.', f.send_port, f.missed
    )
    else format('Send port "%s" was nearest; not satisfied were: %s.', f.send_port, f.missed)
  end as remedy
from parley_flow._p_routing_failure_rows() as f;

comment on view parley_flow.routing_failures is
'Why messages matched nothing, one row for a cause, for who holds VIEW. explanation: NO_SUBSCRIPTION, NOT_ENLISTED,
UNTYPED, ENCODING, ONE_PREDICATE or SEVERAL_PREDICATES; send_port: that was nearest; missed: its predicates that were
not satisfied, where is_promoted says whether the message has the property; failures: how many messages.';
