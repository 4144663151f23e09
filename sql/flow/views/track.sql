-- The path of a message: where it came from, who got it, when, how often, and what it was made of or became.

create function parley_flow._p_related(message_id bigint) returns table (id bigint, relation text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with recursive up (id, depth) as (
    select $1, 0
    union
    select p.parent_id, u.depth + 1
    from up as u
    cross join lateral (
      select m.parent_id from parley_flow._p_message as m where m.message_id = u.id
      union all
      select nullif(parley_flow._p_element(t.fields, 'parents', parley_flow._p_place_of(t.fields, u.id))::bigint, 0)
      from parley_store.tracking as t
      where t.system = 'flow' and t.event = 'SEND' and t.message_id in (u.id::text, parley_flow._p_block(u.id))
        and parley_flow._p_place_of(t.fields, u.id) is not null
    ) as p (parent_id)
    where p.parent_id is not null and u.depth < 100
  ),

  down (id, depth) as (
    select $1, 0
    union
    select c.child, d.depth + 1
    from down as d
    cross join lateral (
      select m.message_id from parley_flow._p_message as m where m.parent_id = d.id
      union all
      select (t.fields ->> 'child')::bigint
      from parley_store.tracking as t
      -- Of what hosts track nothing is believed: it may name anything.
      where t.system = 'flow' and t.event = 'RESUBMIT' and t.message_id = d.id::text and t.fields ? 'child'
    ) as c (child)
    where d.depth < 100
  )

  select distinct on (r.id) r.id, r.relation
  from (
    select $1, 'SELF', 0
    union all
    select u.id, 'ANCESTOR', 1 from up as u where u.depth > 0
    union all
    select d.id, 'DESCENDANT', 2 from down as d where d.depth > 0
  ) as r (id, relation, place)
  order by r.id, r.place
$$;

comment on function parley_flow._p_related(bigint) is
'Gives a message, those that it was made of, and those that were made of it.';

create function parley_flow._p_live_events(ids bigint[]) returns table (
  at timestamptz, id bigint, event text, host text, send_port text, location text, fields jsonb
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_host record;
begin
  return query
  select m.received_at, m.message_id, 'RECEIVE', null::text, null::text, l.name, jsonb_strip_nulls(jsonb_build_object(
      'receive_port', p.name, 'message_type', m.message_type, 'size', m.size, 'interchange_id', m.interchange_id,
      'published_by', parley._p_name_with(m.published_by), 'deliveries', m.deliveries
    ))
  from parley_flow._p_message as m
  left join parley_flow._p_receive_port as p on p.receive_port_id = m.receive_port_id
  left join parley_flow._p_receive_location as l on l.location_id = m.location_id
  where m.message_id = any (ids);
  return query
  select u.suspended_at, u.message_id, 'SUSPENDED', null::text, u.send_port, u.location, jsonb_build_object(
      'suspension_id', u.suspension_id, 'stage', u.stage, 'code', u.code, 'error', u.error, 'attempts', u.attempts
    )
  from parley_flow._p_suspended as u
  where u.message_id = any (ids);
  for v_host in select h.name, h.system from parley_flow._p_host as h order by h.host_id loop
    return query
    select w.since, w.subject, w.state, v_host.name,
      nullif(parley_flow._p_port_of_lane(w.lane), ''), case when starts_with(w.lane, '##') then substr(w.lane, 3) end,
      jsonb_strip_nulls(
        jsonb_build_object('attempts', w.attempts, 'due_at', w.due_at, 'last_error', w.last_error)
      )
    from parley_store.matching_work(v_host.system, jsonb_build_object('subjects', to_jsonb(ids))) as w;
  end loop;
end
$$;

comment on function parley_flow._p_live_events(bigint[]) is
'Gives of messages that are there where they came from and what is open of them: WAITING, DELAYED, IN_FLIGHT or
SUSPENDED.';

create function parley_flow._p_tracked_events(ids bigint[]) returns table (
  at timestamptz, id bigint, event text, host text, send_port text, location text, fields jsonb
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select e.at, e.id,
    case
      when e.event = 'SEND' and exists (
        select from parley_flow._p_send_port as s where s.name = t.fields ->> 'send_port' and s.is_process
      ) then 'PROCESS'
      else e.event
    end, nullif(t.source, ''), t.fields ->> 'send_port', l.name, e.fields
  from unnest(ids) as u (id)
  join parley_store.tracking as t on t.system = 'flow' and t.message_id in (u.id::text, parley_flow._p_block(u.id))
  cross join lateral (
    select t.at, u.id, t.event, jsonb_strip_nulls(jsonb_build_object(
        'received_at', to_timestamp(parley_flow._p_element(t.fields, 'received', m.n)::double precision / 1000),
        'size', parley_flow._p_element(t.fields, 'sizes', m.n),
        'attempts', parley_flow._p_element(t.fields, 'attempts', m.n),
        'details', parley_flow._p_element(t.fields, 'details', m.n),
        'message_type', t.fields -> 'message_type',
        'receive_port', (
          select p.name
          from parley_flow._p_receive_port as p
          where p.receive_port_id = (t.fields ->> 'receive_port_id')::integer
        ),
        'published_by', parley._p_name_with((t.fields ->> 'published_by')::integer)
      )) as fields
    from (select parley_flow._p_place_of(t.fields, u.id) as n) as m
    where t.event = 'SEND' and m.n is not null
    union all
    select t.at, u.id, t.event, t.fields - 'send_port'
    where t.event <> 'SEND' and t.message_id = u.id::text
  ) as e (at, id, event, fields)
  left join parley_flow._p_receive_location as l on l.location_id = case
    when t.event = 'SEND' then (t.fields ->> 'location_id')::integer
  end
$$;

comment on function parley_flow._p_tracked_events(bigint[]) is 'Gives what was tracked of messages.';

create function parley_flow.track(message_id bigint, caller parley.caller default parley.current_caller())
returns table (
  at timestamptz, message bigint, relation text, event text, host text, send_port text, location text, fields jsonb
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
begin
  found := parley_flow._p_require(v_caller, 'VIEW', parley_flow._p_application_of(message_id));
  return query
  select e.at, e.id, r.relation, e.event, e.host, e.send_port, e.location, e.fields
  from (
    select array_agg(o.id) as ids from parley_flow._p_related(message_id) as o
  ) as a
  cross join lateral (
    select l.at, l.id, l.event, l.host, l.send_port, l.location, l.fields from parley_flow._p_live_events(a.ids) as l
    union all
    select t.at, t.id, t.event, t.host, t.send_port, t.location, t.fields from parley_flow._p_tracked_events(a.ids) as t
  ) as e
  join parley_flow._p_related(message_id) as r on r.id = e.id
  order by e.at, e.id, e.event;
end
$$;

comment on function parley_flow.track(bigint, parley.caller) is
'Gives the path of a message, and of those that it was made of or that were made of it, in the order of time: where it
was received, who got it and when, attempts, suspensions, what operators did, and what is open. It goes back as far as
tracking is kept.
Arguments: message_id.
Errors: PF001 without VIEW for its application; of a message that is gone for all.';

create function parley_flow.find_tracked(
  property text, value text, top integer default 100, caller parley.caller default parley.current_caller()
) returns table (message_id bigint, at timestamptz)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_flow._p_require(parley.caller_role(caller), 'VIEW');
  found := parley_flow._p_require_top(top);
  return query
  select e.id::bigint, t.at
  from parley_store.tracking as t
  cross join lateral jsonb_array_elements_text(t.fields -> 'messages') as e (id)
  where t.system = 'flow' and t.event = 'PROPERTY'
    and t.message_id = parley_flow._p_property_number(property, value)
    and t.fields ->> 'property' = property
    -- It may have been tracked before it was declared sensitive.
    and not exists (select from parley_flow._p_property as y where y.name = property and y.is_sensitive)
  order by t.at desc, e.id::bigint
  limit top;
end
$$;

comment on function parley_flow.find_tracked(text, text, integer, parley.caller) is
'Gives the messages that had a value of a property that is tracked, the newest first, as far back as tracking is kept;
parley_flow.track gives the path of each.
Arguments: property, namespace#Name; value, as text; top.
Errors: PF001 without VIEW for all, PF010.';
