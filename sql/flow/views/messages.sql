-- Views of messages for operators: those that are there, those that are suspended, causes of failures.
--
-- Cost: messages and suspended read their tables themselves, so that a condition on a number, and where a message is
-- suspended one on a port, read what they ask for, and not a million rows. They are barriers: a condition of the reader
-- that could show a row in its error is checked behind the right. The planner reads and sorts all rows of a barrier for
-- an order with a limit; pages come from messages_matching and suspended_matching, which ask the tables for the
-- conditions that are given. Of messages_matching a port with few messages is found by reading back: an index by port
-- took 9 percent of the rate of _p_receive.

create function parley_flow._p_viewed(caller parley.caller default parley.current_caller()) returns text[]
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley_flow._p_applications_of(parley.caller_role(caller), 'VIEW');
end
$$;

comment on function parley_flow._p_viewed(parley.caller) is
'Gives the applications that the caller may see, {*} for all. Views that read tables themselves ask it once.';

create view parley_flow.suspended with (security_barrier) as
select u.suspension_id, u.message_id, u.stage, u.application, u.receive_port, u.location, u.send_port, u.code, u.error,
  u.is_resumable, u.attempts, case
    -- As parley_flow._p_shown_key gives it, which the reader of the view may not call.
    when u.order_key is not null and exists (
      select
      from parley_flow._p_send_port as s
      join parley_flow._p_property as y on y.name = s.order_key
      where s.name = u.send_port and y.is_sensitive
    ) then 'hidden:' || left(encode(sha256(
      (select o.key_secret from parley_flow._p_configuration as o) || convert_to(u.order_key, 'UTF8')
    ), 'hex'), 16)
    else u.order_key
  end as order_key, u.lane is not null as holds_up_order, u.message_type, u.size, u.cause_id, u.suspended_at, c.remedy
from parley_flow._p_suspended as u
left join parley_flow.failure_codes as c on c.code = u.code
where (select parley_flow._p_viewed()) = array['*'] or u.application = any ((select parley_flow._p_viewed())::text[]);

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

create view parley_flow.messages with (security_barrier) as
select m.message_id, coalesce(m.interchange_id, m.message_id) as interchange_id, m.parent_id, m.received_at,
  p.application, p.name as receive_port, l.name as location,
  case
    when m.published_by = 0 then 'public'
    else (select k.name::text from parley._p_role_number as k where k.number = m.published_by)
  end as published_by,
  m.message_type, m.size, m.deliveries::integer as deliveries, coalesce(jsonb_array_length(m.parts), 1) as parts, (
    select coalesce(jsonb_object_agg(o.key, o.value), '{}')
    from jsonb_each(m.promoted) as o
    where not exists (select from parley_flow._p_property as y where y.name = o.key and y.is_sensitive)
  ) as promoted
from parley_flow._p_message as m
left join parley_flow._p_receive_port as p on p.receive_port_id = m.receive_port_id
left join parley_flow._p_receive_location as l on l.location_id = m.location_id
where (select parley_flow._p_viewed()) = array['*'] or p.application = any ((select parley_flow._p_viewed())::text[]);

comment on view parley_flow.messages is
'Messages that are there, for who holds VIEW: with deliveries that are open, suspended or kept. deliveries: with how
many it began; promoted: without what is declared sensitive.';

create function parley_flow.messages_matching(
  filter jsonb default '{}', top integer default 1000, before bigint default null,
  caller parley.caller default parley.current_caller()
) returns setof parley_flow.messages
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_applications constant text[] := parley_flow._p_applications_of(parley.caller_role(caller), 'VIEW');
  v_conditions constant text[] := array['message', 'application', 'receive_port', 'location', 'message_type'];
  v_condition text;
  v_ports integer[];
  v_found bigint[];
begin
  found := parley_flow._p_require_top(top);
  if jsonb_typeof(filter) is distinct from 'object' then
    found := parley_flow._p_raise('filter', coalesce(left(filter::text, 100), 'null'));
  end if;
  select k.key into v_condition
  from jsonb_each(filter) as k
  where k.key <> all (v_conditions)
    or jsonb_typeof(k.value) <> case when k.key = 'message' then 'number' else 'string' end
    or (k.key = 'message' and not parley_flow._p_is_integer(k.value #>> '{}'))
  limit 1;
  if found then
    found := parley_flow._p_raise('condition', v_condition, array_to_string(v_conditions, ', '));
  end if;
  if v_applications is distinct from array['*'] or filter ?| array['application', 'receive_port'] then
    v_ports := array(
      select p.receive_port_id
      from parley_flow._p_receive_port as p
      where (v_applications = array['*'] or p.application = any (v_applications))
        and (not filter ? 'application' or p.application = filter ->> 'application')
        and (not filter ? 'receive_port' or p.name = filter ->> 'receive_port')
    );
  end if;
  execute format(
    'select array(select m.message_id from parley_flow._p_message as m where true%s%s%s%s%s '
      'order by m.message_id desc limit $4)',
    case when v_ports is not null then ' and m.receive_port_id = any ($1)' end,
    case when filter ? 'location' then $c$ and m.location_id = (
      select l.location_id from parley_flow._p_receive_location as l where l.name = $2 ->> 'location'
    )$c$ end,
    case when filter ? 'message_type' then $c$ and m.message_type = $2 ->> 'message_type'$c$ end,
    case when filter ? 'message' then $c$ and m.message_id = ($2 ->> 'message')::bigint$c$ end,
    case when before is not null then ' and m.message_id < $3' end
  ) into v_found using v_ports, filter, before, top;
  return query
  select m.message_id, coalesce(m.interchange_id, m.message_id), m.parent_id, m.received_at, p.application, p.name,
    l.name, parley._p_name_with(m.published_by), m.message_type, m.size, m.deliveries::integer,
    coalesce(jsonb_array_length(m.parts), 1), parley_flow._p_without_sensitive(m.promoted)
  from parley_flow._p_message as m
  left join parley_flow._p_receive_port as p on p.receive_port_id = m.receive_port_id
  left join parley_flow._p_receive_location as l on l.location_id = m.location_id
  where m.message_id = any (v_found)
  order by m.message_id desc;
end
$$;

comment on function parley_flow.messages_matching(jsonb, integer, bigint, parley.caller) is
'Gives messages that a filter matches, the newest first, a page at a time; those that the caller holds VIEW for.
Arguments: filter, with message (a number), application, receive_port, location, message_type; top; before, message_id
of the last that was seen.
Errors: PF010 malformed.';

create function parley_flow._p_routing_failure_rows(caller parley.caller default parley.current_caller())
returns table (
  cause_id bigint, receive_port text, location text, message_type text, explanation text, send_port text,
  port_group text, receive text, missed jsonb, failures bigint, first_at timestamptz, last_at timestamptz,
  sample_message_id bigint, sample jsonb
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select f.cause_id, f.receive_port, f.location, f.message_type, f.explanation,
    case when v.is_shown then f.send_port end, case when v.is_shown then f.port_group end,
    case when v.is_shown then f.receive end,
    case when v.is_shown then f.missed else '[]' end,
    f.failures + coalesce(h.failures, 0), f.first_at, greatest(f.last_at, h.last_at), f.sample_message_id,
    -- A property may have been declared sensitive since.
    parley_flow._p_without_sensitive(f.sample)
  from (
    select parley_flow._p_applications_of(parley.caller_role(caller), 'VIEW') as applications
  ) as a
  cross join parley_flow._p_routing_cause as f
  left join (
    select o.cause_id, sum(o.failures) as failures, max(o.at) as last_at
    from parley_flow._p_routing_hit as o
    group by o.cause_id
  ) as h on h.cause_id = f.cause_id
  left join parley_flow._p_receive_port as p on p.name = f.receive_port
  left join parley_flow._p_send_port as s on s.name = f.send_port
  -- The filter of a send port is a part of its application.
  cross join lateral (
    select (
        a.applications = array['*'] or f.send_port is null or s.application = any (a.applications)
      ) is true as is_shown
  ) as v
  where a.applications = array['*'] or p.application = any (a.applications)
$$;

comment on function parley_flow._p_routing_failure_rows(parley.caller) is
'Gives what parley_flow.routing_failures shows. Of a send port of an application for which the caller does not hold VIEW
neither the name nor the filter.';

create view parley_flow.routing_failures as
select f.cause_id, f.receive_port, f.location, f.message_type, f.explanation, f.send_port, f.port_group, f.receive,
  f.missed, f.failures, f.first_at, f.last_at, f.sample_message_id, f.sample,
  case case
      when f.send_port is null and f.explanation <> 'NO_SUBSCRIPTION' then 'HIDDEN'
      when f.receive is not null then 'WAIT ' || f.explanation
      else f.explanation
    end
    when 'HIDDEN' then
      'A send port of another application was nearest, which this role may not see: ask an administrator of the engine.'
    when 'NO_SUBSCRIPTION' then
      'No send port that is enlisted asks for messages like this one: define one with a filter, or enlist one.'
    when 'NOT_ENLISTED' then case
      when f.port_group is null
        then format('Send port "%s" would get it, and is not enlisted: start it.', f.send_port)
      else format(
        'Send port "%s" would get it by send port group "%s", and one of both is not enlisted: start it.', f.send_port,
        f.port_group
      )
    end
    when 'WAIT NO_INSTANCE' then format(
      'Instances of orchestration "%s" wait at %s for messages like this one, but none for its values of: %s. The '
        || 'instance has ended, has not begun, or its sender gave another value: see parley flow track of a message '
        || 'that has the right one.', f.send_port, f.receive, (
        select string_agg(p.predicate ->> 'property', ', ' order by p.n)
        from jsonb_array_elements(f.missed) with ordinality as p (predicate, n)
      )
    )
    when 'WAIT UNTYPED' then format(
      'Instances of orchestration "%s" wait at %s for %s, which the message has not, because it has no type: give the '
        || 'location or the port a pipeline that takes messages apart, or publish with a type and properties.',
      f.send_port, f.receive, (
        select string_agg(p.predicate ->> 'property', ', ' order by p.n)
        from jsonb_array_elements(f.missed) with ordinality as p (predicate, n)
      )
    )
    when 'WAIT ENCODING' then format(
      'Two charsets were declared for the message, and it was read in one of them. An instance of orchestration "%s" '
        || 'that waits at %s was nearest; not satisfied were: %s. Set the charset of the location, or have the sender '
        || 'declare the one that it uses.', f.send_port, f.receive, f.missed
    )
    when 'WAIT ONE_PREDICATE' then format(
      'An instance of orchestration "%s" that waits at %s was nearest, and one predicate was not satisfied: %s. Change '
        || 'the filter of the receive, or find out why the message has another value.', f.send_port, f.receive, f.missed
    )
    when 'WAIT SEVERAL_PREDICATES' then format(
      'An instance of orchestration "%s" that waits at %s was nearest; not satisfied were: %s.', f.send_port, f.receive,
      f.missed
    )
    when 'UNTYPED' then format(
      case
        when f.location is null
          then 'Send port "%s" asks for %s, which the message has not, because it was published without a type: give '
            || 'message_type and properties to parley_flow.publish, or let it come by a receive location.'
        else 'Send port "%s" asks for %s, which the message has not, because its pipeline passes it through and makes '
          || 'no type: give the location a pipeline that takes messages apart.'
      end, f.send_port, (
        select string_agg(p.predicate ->> 'property', ', ' order by p.n)
        from jsonb_array_elements(f.missed) with ordinality as p (predicate, n)
      )
    )
    when 'ENCODING' then format(
      'Two charsets were declared for the message, and it was read in one of them. Send port "%s" was nearest; not '
        || 'satisfied were: %s. Set the charset of the location, or have the sender declare the one that it uses.',
      f.send_port, f.missed
    )
    when 'ONE_PREDICATE' then format(
      'Send port "%s" was nearest, and one predicate was not satisfied: %s. Change its filter, or find out why the '
        || 'message has another value.', f.send_port, f.missed
    )
    else format('Send port "%s" was nearest; not satisfied were: %s.', f.send_port, f.missed)
  end as remedy
from parley_flow._p_routing_failure_rows() as f;

comment on view parley_flow.routing_failures is
'Why messages matched nothing, one row for a cause, for who holds VIEW. explanation: NO_SUBSCRIPTION, NOT_ENLISTED,
NO_INSTANCE, UNTYPED, ENCODING, ONE_PREDICATE or SEVERAL_PREDICATES; send_port: that was nearest, null where the caller
may not see its application; receive: of an orchestration, the place at which an instance waits; missed: predicates that
were not satisfied, where is_promoted says whether the message has the property, and explanation why it was missed,
UNTYPED, ENCODING or CORRELATION, a value of a correlation set, which is not shown; failures: how many messages.';
