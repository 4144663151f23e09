-- Failures of routing: one row for a cause, with a count, never one for a message.
--
-- The cause is where the messages came from, their type, and which subscription was nearest by what it missed. A
-- publisher whose message fails appends to _p_routing_hit, and waits only for a session that meets the same cause for
-- the first time; maintenance adds up.

create table parley_flow._p_routing_failure (
  cause_id bigint generated always as identity primary key,
  cause_hash bytea not null unique,
  receive_port text,
  location text,
  message_type text,
  explanation text not null,
  send_port text,
  port_group text,
  missed jsonb,
  failures bigint not null default 0,
  first_at timestamptz not null default clock_timestamp(),
  last_at timestamptz not null default clock_timestamp(),
  sample_message_id bigint not null,
  sample jsonb not null
);

comment on table parley_flow._p_routing_failure is
'Causes for which messages matched nothing. explanation: NO_SUBSCRIPTION, NOT_ENLISTED, UNTYPED, ENCODING, ONE_PREDICATE
or SEVERAL_PREDICATES; send_port and port_group: whose filter was nearest; missed: its predicates that were not
satisfied; sample: the promoted properties of the newest message that was added up.';

create index _p_routing_failure_last on parley_flow._p_routing_failure (last_at);

create table parley_flow._p_routing_hit (
  cause_id bigint not null,
  at timestamptz not null default clock_timestamp(),
  failures integer not null,
  message_id bigint not null,
  sample jsonb not null
);

comment on table parley_flow._p_routing_hit is 'Failures of routing that have not been added up yet.';

alter table parley_flow._p_routing_hit replica identity full;

create function parley_flow._p_near_misses(key jsonb) returns table (
  send_port_id integer, port_group text, missed jsonb, misses integer, satisfied integer
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set jit = off
as $$
begin
  return query
  with near as (
    -- A predicate that shares a value with the message, else one that names a property that it has, else any.
    (
      select p.group_id, 0 as distance
      from jsonb_each_text(key) as f
      cross join lateral (
        select o.group_id
        from parley_flow._p_predicate as o
        where o.hash = parley_flow._p_hash(f.key, f.value) and o.property = f.key and o.operand = f.value
        limit 50
      ) as p
    )
    union all
    (
      select p.group_id, 1
      from jsonb_each_text(key) as f
      cross join lateral (
        select o.group_id from parley_flow._p_predicate as o where o.property = f.key limit 50
      ) as p
    )
    union all
    (select g.group_id, 2 from parley_flow._p_group as g limit 50)
  )

  select g.send_port_id, g.port_group,
    jsonb_agg(
      jsonb_strip_nulls(jsonb_build_object(
        'property', p.property, 'operator', p.operator, 'value', coalesce(to_jsonb(p.operand), to_jsonb(p.operands)),
        'is_promoted', key ? p.property
      ))
      order by p.ordinal
    ) filter (where not s.is_satisfied),
    count(*) filter (where not s.is_satisfied)::integer, count(*) filter (where s.is_satisfied)::integer
  from (select distinct n.group_id from near as n) as n
  join parley_flow._p_group as g using (group_id)
  join parley_flow._p_predicate as p using (group_id)
  cross join lateral (
    select p.property = 'MessageID'
      or parley_flow._p_satisfies(key ->> p.property, p.operator, p.operand, p.operands, p.type) as is_satisfied
  ) as s
  group by g.group_id, g.send_port_id, g.port_group
  -- A port for failed messages is never near to a message that has not failed.
  having key ? 'ErrorReport.ErrorType' or not bool_or(starts_with(p.property, 'ErrorReport.'))
  -- Of those that miss as little, one that asks for the type that the message has not.
  order by 4, bool_or(p.property = 'MessageType' and not key ? 'MessageType') desc, 5 desc, g.group_id
  limit 1;
end
$$;

comment on function parley_flow._p_near_misses(jsonb) is
'Gives the subscription that was nearest to a message: with the fewest predicates that were not satisfied, and of those
the most that were.
Arguments: key, as _p_routing_key gives it.';

create type parley_flow._p_explanation as (
  explanation text, send_port text, port_group text, missed jsonb
);

comment on type parley_flow._p_explanation is 'Why a message matched nothing.';

create function parley_flow._p_bound_matching(promoted jsonb) returns parley_flow._p_explanation
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_port record;
begin
  for v_port in
    select f.name, f.port_group, f.filter
    from (
      select s.send_port_id, s.name, null::text as port_group, d.settings -> 'filter' as filter
      from parley_flow._p_send_port as s
      join parley_flow._p_definition as d on d.kind = 'send port' and d.name = s.name
      where s.state = 'Bound'
      union all
      select s.send_port_id, s.name, g.name, d.settings -> 'filter'
      from parley_flow._p_port_group as g
      join parley_flow._p_definition as d on d.kind = 'send port group' and d.name = g.name
      join parley_flow._p_send_port as s on s.name = any (g.send_ports)
      where 'Bound' in (s.state, g.state)
    ) as f
    where jsonb_typeof(f.filter) = 'array'
    order by f.send_port_id, f.port_group nulls first
    limit 200
  loop
    if exists (
      select
      from jsonb_array_elements(v_port.filter) as g (predicates)
      where not exists (
        select
        from jsonb_array_elements(g.predicates) as p (predicate)
        left join parley_flow._p_property as y on y.name = p.predicate ->> 'property'
        where p.predicate ->> 'property' <> 'MessageID' and not parley_flow._p_satisfies(
          parley_flow._p_canonical(promoted ->> (p.predicate ->> 'property'), y.type), p.predicate ->> 'operator',
          parley_flow._p_canonical(p.predicate ->> 'value', y.type),
          case
            when p.predicate ->> 'operator' = 'in'
              then array(
                select parley_flow._p_canonical(e.value, y.type)
                from jsonb_array_elements_text(p.predicate -> 'value') as e (value)
              )
          end, y.type
        )
      )
    ) then
      return row('NOT_ENLISTED', v_port.name, v_port.port_group, null)::parley_flow._p_explanation;
    end if;
  end loop;
  return null;
end
$$;

comment on function parley_flow._p_bound_matching(jsonb) is
'Gives a send port that would get a message with these promoted properties, if it were enlisted, or its group, by whose
filter it would; null: none.';

create function parley_flow._p_explain(draft parley_flow._p_draft) returns parley_flow._p_explanation
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_explanation parley_flow._p_explanation := parley_flow._p_bound_matching(draft.promoted);
  v_near record;
begin
  if v_explanation.explanation is not null then
    return v_explanation;
  end if;
  select s.name, n.port_group, n.missed, n.misses into v_near
  from parley_flow._p_near_misses(parley_flow._p_routing_key(draft.promoted)) as n
  join parley_flow._p_send_port as s on s.send_port_id = n.send_port_id;
  v_explanation.send_port := v_near.name;
  v_explanation.port_group := v_near.port_group;
  v_explanation.missed := v_near.missed;
  v_explanation.explanation := case
    when v_near.name is null then 'NO_SUBSCRIPTION'
    when draft.written ? 'urn:parley:pipeline#Warning' and exists (
      -- Text that is ASCII, which has a byte for each character, is the same in each charset.
      select
      from jsonb_array_elements(v_near.missed) as p (predicate)
      cross join lateral (select draft.promoted ->> (p.predicate ->> 'property')) as v (value)
      where octet_length(convert_to(v.value, 'UTF8')) > length(v.value)
    ) then 'ENCODING'
    when draft.message_type is null and v_near.missed @> '[{"property": "MessageType"}]' then 'UNTYPED'
    when v_near.misses = 1 then 'ONE_PREDICATE'
    else 'SEVERAL_PREDICATES'
  end;
  return v_explanation;
end
$$;

comment on function parley_flow._p_explain(parley_flow._p_draft) is
'Finds out why a message matched nothing: a send port that would get it is not enlisted; there is no subscription; two
charsets were declared for it, and a value that was missed is not ASCII; it has no type, because its pipeline passes it
through; one predicate, or several, of the nearest subscription were not satisfied.';

create function parley_flow._p_record_routing_failure(
  draft parley_flow._p_draft, origin parley_flow._p_origin, failures integer
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_explanation constant parley_flow._p_explanation := parley_flow._p_explain(draft);
  v_port constant text := (
    select p.name from parley_flow._p_receive_port as p where p.receive_port_id = origin.receive_port_id
  );
  v_location constant text := (
    select l.name from parley_flow._p_receive_location as l where l.location_id = origin.location_id
  );
  v_hash constant bytea := sha256(convert_to(
    jsonb_build_array(v_port, v_location, draft.message_type, to_jsonb(v_explanation))::text, 'UTF8'
  ));
  v_cause bigint;
begin
  select f.cause_id into v_cause from parley_flow._p_routing_failure as f where f.cause_hash = v_hash;
  if not found then
    insert into parley_flow._p_routing_failure as f (
      cause_hash, receive_port, location, message_type, explanation, send_port, port_group, missed, sample_message_id,
      sample
    )
    values (
      v_hash, v_port, v_location, draft.message_type, v_explanation.explanation, v_explanation.send_port,
      v_explanation.port_group, v_explanation.missed, draft.message_id, parley_flow._p_without_sensitive(draft.promoted)
    )
    on conflict on constraint _p_routing_failure_cause_hash_key do nothing
    returning f.cause_id into v_cause;
    if v_cause is null then
      select f.cause_id into v_cause from parley_flow._p_routing_failure as f where f.cause_hash = v_hash;
    end if;
  end if;
  insert into parley_flow._p_routing_hit (cause_id, failures, message_id, sample)
  values (v_cause, failures, draft.message_id, parley_flow._p_without_sensitive(draft.promoted));
  return v_cause;
end
$$;

comment on function parley_flow._p_record_routing_failure(parley_flow._p_draft, parley_flow._p_origin, integer) is
'Counts messages that matched nothing under their cause, and gives the cause.
Arguments: draft, one of them; origin; failures, how many.';

create function parley_flow._p_without_sensitive(promoted jsonb) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(p.key, p.value), '{}')
  from jsonb_each(promoted) as p
  where not exists (select from parley_flow._p_property as y where y.name = p.key and y.is_sensitive)
$$;

comment on function parley_flow._p_without_sensitive(jsonb) is
'Gives properties without those that are declared sensitive.';

create function parley_flow._p_fold_routing_failures() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_folded integer;
begin
  with taken as (
    delete from parley_flow._p_routing_hit as h
    where h.ctid = any (array(select o.ctid from parley_flow._p_routing_hit as o limit 10000 for update skip locked))
    returning h.cause_id, h.at, h.failures, h.message_id, h.sample
  ),

  summed as (
    select t.cause_id, sum(t.failures) as failures, max(t.at) as last_at,
      (array_agg(t.message_id order by t.at desc))[1] as message_id,
      (array_agg(t.sample order by t.at desc))[1] as sample
    from taken as t
    group by t.cause_id
  ),

  added as (
    update parley_flow._p_routing_failure as f
    set failures = f.failures + s.failures, last_at = greatest(f.last_at, s.last_at), sample_message_id = s.message_id,
      sample = s.sample
    from summed as s
    where f.cause_id = s.cause_id
  )

  select count(*)::integer into v_folded from taken as t;
  return v_folded;
end
$$;

comment on function parley_flow._p_fold_routing_failures() is
'Adds up failures of routing; gives how many rows.';
