-- Why a message matched nothing: the subscription that was nearest, and what it missed. It is a filter of a send port,
-- or a wait of an instance (flow/publish/near_waits.sql).
--
-- Predicates that are missed for one reason count once: all that a message lacks because it has no type, and all values
-- that may have been read in the wrong charset. So the nearest subscription is the one that one remedy would satisfy.

create function parley_flow._p_near_misses(key jsonb, draft parley_flow._p_draft) returns table (
  send_port_id integer, port_group text, missed jsonb, reasons text[], satisfied bigint
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
        'is_promoted', key ? p.property, 'explanation', s.reason
      ))
      order by p.ordinal
    ) filter (where s.reason is distinct from 'SATISFIED'),
    -- One for a reason, and one for each predicate without any.
    array_agg(distinct coalesce(s.reason, format('predicate %s', p.ordinal)))
      filter (where s.reason is distinct from 'SATISFIED') as reasons,
    count(*) filter (where s.reason = 'SATISFIED')
  from (select distinct n.group_id from near as n) as n
  join parley_flow._p_group as g using (group_id)
  join parley_flow._p_predicate as p using (group_id)
  cross join lateral (select parley_flow._p_reason(p, key, draft) as reason) as s
  group by g.group_id, g.send_port_id, g.port_group
  -- A port for failed messages is never near to a message that has not failed.
  having key ? 'ErrorReport.ErrorType' or not bool_or(starts_with(p.property, 'ErrorReport.'))
  order by cardinality(array_agg(distinct coalesce(s.reason, format('predicate %s', p.ordinal)))
      filter (where s.reason is distinct from 'SATISFIED')),
    bool_or(s.reason = 'UNTYPED') desc nulls last, bool_or(s.reason = 'ENCODING') desc nulls last,
    count(*) filter (where s.reason = 'SATISFIED') desc, g.group_id
  limit 1;
end
$$;

comment on function parley_flow._p_near_misses(jsonb, parley_flow._p_draft) is
'Gives the subscription that was nearest to a message: missed for the fewest reasons, and of those one that is missed
for a reason of the whole message, and with the most predicates that were satisfied.
Arguments: key, as _p_routing_key gives it; draft, the message.';

create type parley_flow._p_explanation as (
  explanation text, send_port text, port_group text, missed jsonb, receive text
);

comment on type parley_flow._p_explanation is
'Why a message matched nothing. send_port and port_group: whose filter was nearest, or, with the place of a receive, an
orchestration whose instance waits there.';

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
      return row('NOT_ENLISTED', v_port.name, v_port.port_group, null, null)::parley_flow._p_explanation;
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
  select s.name, n.port_group, n.missed, n.reasons, n.receive into v_near
  from (
    select p.send_port_id, p.port_group, null as receive, p.missed, p.reasons, p.satisfied
    from parley_flow._p_near_misses(parley_flow._p_routing_key(draft.promoted), draft) as p
    union all
    select w.send_port_id, null, w.receive, w.missed, w.reasons, w.satisfied
    from parley_flow._p_near_waits(draft) as w
  ) as n
  join parley_flow._p_send_port as s on s.send_port_id = n.send_port_id
  order by cardinality(n.reasons), 'UNTYPED' = any (n.reasons) desc, 'ENCODING' = any (n.reasons) desc,
    n.satisfied desc, n.receive nulls first
  limit 1;
  v_explanation.send_port := v_near.name;
  v_explanation.port_group := v_near.port_group;
  v_explanation.missed := v_near.missed;
  v_explanation.receive := v_near.receive;
  v_explanation.explanation := case
    when v_near.name is null then 'NO_SUBSCRIPTION'
    when cardinality(v_near.reasons) > 1 then 'SEVERAL_PREDICATES'
    when v_near.reasons[1] = 'CORRELATION' then 'NO_INSTANCE'
    when v_near.reasons[1] in ('UNTYPED', 'ENCODING') then v_near.reasons[1]
    else 'ONE_PREDICATE'
  end;
  return v_explanation;
end
$$;

comment on function parley_flow._p_explain(parley_flow._p_draft) is
'Finds out why a message matched nothing: a send port that would get it is not enlisted; there is no subscription; of
the nearest one all that was missed is what a message without a type has not, or values that may have been read in the
wrong charset; or one predicate, or several for as many reasons. The nearest may be a wait of an instance: when all that
it missed are values of correlation sets, no instance waits for those of the message.';
