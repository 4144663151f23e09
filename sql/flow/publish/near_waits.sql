-- Why a message that matched nothing reached no instance: the wait that was nearest, and what it missed.
--
-- Values by which instances wait are data of messages: an explanation names their properties alone. So it shows nobody
-- what another instance works on, and the messages that come too late for a thousand instances have one cause.
-- Cost: of waits that share a value with the message, and of some instances of each orchestration, a bounded number.

create function parley_flow._p_wait_predicates(wait parley_flow._p_instance_wait)
returns table (is_equality boolean, predicate parley_flow._p_predicate)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with equalities as (
    select wait.property as property, wait.value as value
    union all
    select o.key, o.value from jsonb_each_text(wait.others) as o
  )

  select true, row(
      null, row_number() over (order by e.property), e.property, coalesce(y.type, 'text'), '=', e.value, null, null
    )::parley_flow._p_predicate
  from equalities as e
  left join parley_flow._p_property as y on y.name = e.property
  union all
  select false, row(
      null, 1000 + f.n, f.predicate ->> 'property', coalesce(y.type, 'text'), f.predicate ->> 'operator', case
        when f.predicate ->> 'operator' not in ('in', 'exists')
          then parley_flow._p_canonical(f.predicate ->> 'value', coalesce(y.type, 'text'))
      end, case
        when f.predicate ->> 'operator' = 'in' then array(
          select parley_flow._p_canonical(e.value, coalesce(y.type, 'text'))
          from jsonb_array_elements_text(f.predicate -> 'value') as e (value)
        )
      end, null
    )::parley_flow._p_predicate
  from jsonb_array_elements(wait.filter) with ordinality as f (predicate, n)
  left join parley_flow._p_property as y on y.name = f.predicate ->> 'property'
$$;

comment on function parley_flow._p_wait_predicates(parley_flow._p_instance_wait) is
'Gives what a wait asks for: its equalities, whose values are data of messages, and the predicates of its filter.';

create function parley_flow._p_near_waits(draft parley_flow._p_draft) returns table (
  send_port_id integer, receive text, missed jsonb, reasons text[], satisfied bigint
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  v_facts jsonb;
begin
  if not exists (select from parley_flow._p_awaited_property) then
    return;
  end if;
  select coalesce(jsonb_object_agg(a.property, parley_flow._p_canonical(draft.promoted ->> a.property, a.type)), '{}')
  into v_facts
  from parley_flow._p_awaited_property as a
  where draft.promoted ->> a.property is not null;
  return query
  with near as (
    -- A wait for a value that the message has, or any of some instances of each orchestration.
    (
      select w.instance_id, w.wait
      from jsonb_each_text(v_facts) as f
      cross join lateral (
        select o.instance_id, o.wait
        from parley_flow._p_instance_wait as o
        where o.hash = parley_flow._p_hash(f.key, f.value) and o.property = f.key and o.value = f.value
        limit 50
      ) as w
    )
    union
    (
      select w.instance_id, w.wait
      from (select s.send_port_id from parley_flow._p_send_port as s where s.is_process limit 50) as s
      cross join lateral (
        select i.instance_id from parley_flow._p_instance as i where i.send_port_id = s.send_port_id limit 10
      ) as i
      join parley_flow._p_instance_wait as w on w.instance_id = i.instance_id
      limit 500
    )
  )

  select i.send_port_id, w.receive,
    jsonb_agg(
      jsonb_strip_nulls(jsonb_build_object(
        'property', (p.predicate).property, 'operator', (p.predicate).operator,
        'value', case
          when not p.is_equality then coalesce(to_jsonb((p.predicate).operand), to_jsonb((p.predicate).operands))
        end,
        'is_promoted', draft.promoted ? (p.predicate).property,
        'explanation', s.reason
      ))
      order by (p.predicate).ordinal
    ) filter (where s.reason is distinct from 'SATISFIED'),
    array_agg(distinct coalesce(s.reason, format('predicate %s', (p.predicate).ordinal)))
      filter (where s.reason is distinct from 'SATISFIED'),
    count(*) filter (where s.reason = 'SATISFIED')
  from near as n
  join parley_flow._p_instance_wait as w on w.instance_id = n.instance_id and w.wait = n.wait
  join parley_flow._p_instance as i on i.instance_id = w.instance_id
  cross join lateral parley_flow._p_wait_predicates(w) as p
  cross join lateral (
    select parley_flow._p_reason(
      p.predicate, case
        when draft.promoted ->> (p.predicate).property is null then '{}'
        else jsonb_build_object(
          (p.predicate).property,
          parley_flow._p_canonical(draft.promoted ->> (p.predicate).property, (p.predicate).type)
        )
      end, draft
    ) as reason
  ) as r
  cross join lateral (
    select case when p.is_equality then coalesce(r.reason, 'CORRELATION') else r.reason end as reason
  ) as s
  group by i.send_port_id, w.instance_id, w.wait, w.receive
  -- Waits for failed messages are near to those alone; and what misses nothing is of the instance that published it.
  having (
      draft.promoted ? 'ErrorReport.ErrorType' or not bool_or(starts_with((p.predicate).property, 'ErrorReport.'))
    ) and bool_or(s.reason is distinct from 'SATISFIED')
  order by cardinality(array_agg(distinct coalesce(s.reason, format('predicate %s', (p.predicate).ordinal)))
      filter (where s.reason is distinct from 'SATISFIED')),
    count(*) filter (where s.reason = 'SATISFIED') desc, i.send_port_id, w.receive
  limit 1;
end
$$;

comment on function parley_flow._p_near_waits(parley_flow._p_draft) is
'Gives the wait of an instance that was nearest to a message: missed for the fewest reasons, and of those with the most
predicates that were satisfied. All values of correlation sets that differ are one reason, CORRELATION.
Arguments: draft, the message.';
