-- Matching: which send ports get a message.
--
-- The messages of a batch that do not differ in what filters name are matched once. internal/flow/match does the same
-- in Go; a test holds the two to each other.
-- Cost: an index probe for each property that filters name, and one for each group that is found.

create function parley_flow._p_routing_key(promoted jsonb) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    jsonb_object_agg(r.property, parley_flow._p_canonical(promoted ->> r.property, r.type)), '{}'
  )
  from parley_flow._p_routed_property as r
  where promoted ->> r.property is not null
$$;

comment on function parley_flow._p_routing_key(jsonb) is
'Gives of the promoted properties of a message those that filters name, as canonical texts.';

create function parley_flow._p_match_keys(keys jsonb[]) returns table (n integer, send_port_id integer)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  with facts as materialized (
    select k.n::integer as n, k.key as facts, f.property, f.value
    from unnest(keys) with ordinality as k (key, n)
    cross join lateral (
      select e.key as property, e.value from jsonb_each_text(k.key) as e
      union all
      select 'MessageID', null
    ) as f
  ),

  candidates as (
    select f.n, f.facts, a.group_id
    from facts as f
    cross join lateral (
      select o.group_id, o.property, o.value
      from parley_flow._p_anchor as o
      where o.hash = parley_flow._p_hash(f.property, f.value)
      offset 0
    ) as a
    where a.property = f.property and a.value is not distinct from f.value
    union all
    select f.n, f.facts, a.group_id
    from facts as f
    cross join lateral (
      select o.group_id, o.property, o.value
      from parley_flow._p_anchor as o
      where o.hash = parley_flow._p_hash(f.property, null)
      offset 0
    ) as a
    where f.value is not null and a.property = f.property and a.value is null
  )

  select distinct c.n, g.send_port_id
  from candidates as c
  join parley_flow._p_group as g on g.group_id = c.group_id
  where g.is_decided or not exists (
    select
    from parley_flow._p_predicate as p
    where p.group_id = c.group_id and p.property <> 'MessageID'
      and not parley_flow._p_satisfies(c.facts ->> p.property, p.operator, p.operand, p.operands, p.type)
  );
end
$$;

comment on function parley_flow._p_match_keys(jsonb[]) is
'Gives the send ports that get messages with some routing keys.
Arguments: keys, as _p_routing_key gives them; n counts them from 1 on.';

create function parley_flow._p_match(promoted jsonb[]) returns table (n integer, send_port_id integer)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_keys jsonb[];
  v_distinct jsonb[];
begin
  v_keys := array(
    select parley_flow._p_routing_key(u.promoted) from unnest(promoted) with ordinality as u (promoted, n) order by u.n
  );
  v_distinct := array(select distinct u.key from unnest(v_keys) as u (key));
  if cardinality(v_distinct) = 1 then
    return query
    select g.n::integer, m.send_port_id
    from parley_flow._p_match_keys(v_distinct) as m
    cross join generate_series(1, cardinality(v_keys)) as g (n);
    return;
  end if;
  return query
  select k.n::integer, m.send_port_id
  from parley_flow._p_match_keys(v_distinct) as m
  join unnest(v_keys) with ordinality as k (key, n) on k.key = v_distinct[m.n];
end
$$;

comment on function parley_flow._p_match(jsonb[]) is
'Gives the send ports that get each of some messages, whose promoted properties are given; n counts them from 1 on.';
