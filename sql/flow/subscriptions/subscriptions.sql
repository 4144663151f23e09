-- Subscriptions: what is routed where, in the form in which it is found.
--
-- A send port that is enlisted has a row of _p_group for each AND group of its filter, and of those of its groups. A
-- group is found by its anchors: rows of _p_anchor, by the hash of a property and a canonical value, or of a property
-- that has to be there. Then its other predicates are checked. So a match costs what matches, and not how many
-- subscriptions there are.
--
-- Invariants, and what keeps each:
--   a group that is satisfied is found   each way to satisfy it satisfies one of its anchors: an equality, each value
--     of a list, or the presence of a property; all predicates demand that their property is there
--   who matches sees one set of subscriptions   one statement; the epoch says which
-- Locks: who changes any of it holds the row of _p_configuration. Publishing only reads.

create sequence parley_flow._p_group_id;

create table parley_flow._p_group (
  group_id bigint primary key default nextval('parley_flow._p_group_id'),
  send_port_id integer not null,
  port_group text,
  ordinal integer not null,
  is_decided boolean not null
);

comment on table parley_flow._p_group is
'AND groups of filters. port_group: the send port group whose filter it is, null: the filter of the port; ordinal: which
of it, from 0 on; is_decided: its anchor is all there is to it.';

create index _p_group_port on parley_flow._p_group (send_port_id);

create table parley_flow._p_predicate (
  group_id bigint not null,
  ordinal integer not null,
  property text not null,
  type text not null,
  operator text not null,
  operand text,
  operands text[],
  hash bigint,
  primary key (group_id, ordinal)
);

comment on table parley_flow._p_predicate is
'Predicates of groups, with canonical operands. hash: of the property and the operand of an equality.';

create index _p_predicate_hash on parley_flow._p_predicate (hash) where hash is not null;
create index _p_predicate_property on parley_flow._p_predicate (property);

create table parley_flow._p_anchor (
  hash bigint not null,
  group_id bigint not null,
  property text not null,
  value text,
  primary key (hash, group_id)
);

comment on table parley_flow._p_anchor is
'How groups are found: by a property and a value, or, where value is null, by a property that is there.';

create index _p_anchor_group on parley_flow._p_anchor (group_id);

create table parley_flow._p_routed_property (
  property text primary key,
  type text not null
);

comment on table parley_flow._p_routed_property is
'The properties that filters name: nothing else of a message counts for where it goes.';

create function parley_flow._p_hash(property text, value text) returns bigint
language sql immutable parallel safe
as $$
  select case
    when value is null then pg_catalog.hashtextextended(property, 1)
    else pg_catalog.hashtextextended(value, pg_catalog.hashtextextended(property, 0))
  end
$$;

comment on function parley_flow._p_hash(text, text) is
'Gives the hash by which an anchor is found; value null: the property is there. Predicates that are found are compared
whole.';

create function parley_flow._p_activation_filter(orchestration text) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(g.predicates order by a.n, g.n), '[]')
  from parley_flow._p_definition as d
  cross join lateral jsonb_array_elements(coalesce(d.settings -> 'activations', '[]')) with ordinality
    as a (activation, n)
  cross join lateral jsonb_array_elements(a.activation -> 'filter') with ordinality as g (predicates, n)
  where d.kind = 'orchestration' and d.name = $1
$$;

comment on function parley_flow._p_activation_filter(text) is
'Gives the AND groups of all receives of an orchestration that begin instances.';

create function parley_flow._p_filters_of(ports integer[])
returns table (send_port_id integer, port_group text, filter jsonb)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select s.send_port_id, null::text, d.settings -> 'filter'
  from parley_flow._p_send_port as s
  join parley_flow._p_definition as d on d.kind = 'send port' and d.name = s.name
  where s.state <> 'Bound' and (ports is null or s.send_port_id = any (ports))
    and jsonb_typeof(d.settings -> 'filter') = 'array'
  union all
  select s.send_port_id, g.name, d.settings -> 'filter'
  from parley_flow._p_port_group as g
  join parley_flow._p_definition as d on d.kind = 'send port group' and d.name = g.name
  join parley_flow._p_send_port as s on s.name = any (g.send_ports)
  where s.state <> 'Bound' and g.state <> 'Bound' and (ports is null or s.send_port_id = any (ports))
    and jsonb_typeof(d.settings -> 'filter') = 'array'
  union all
  select s.send_port_id, null::text, a.filter
  from parley_flow._p_send_port as s
  cross join lateral parley_flow._p_activation_filter(s.name) as a (filter)
  where s.is_process and s.state <> 'Bound' and (ports is null or s.send_port_id = any (ports)) and a.filter <> '[]'
$$;

comment on function parley_flow._p_filters_of(integer[]) is
'Gives the filters by which some send ports, or all, get messages: their own and those of their groups.';

create function parley_flow._p_insert_groups(ports integer[]) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_groups bigint[];
begin
  with made as (
    select nextval('parley_flow._p_group_id') as group_id, f.send_port_id, f.port_group, g.n - 1 as ordinal,
      g.predicates
    from parley_flow._p_filters_of(ports) as f
    cross join lateral jsonb_array_elements(f.filter) with ordinality as g (predicates, n)
  ),

  groups as (
    insert into parley_flow._p_group (group_id, send_port_id, port_group, ordinal, is_decided)
    select m.group_id, m.send_port_id, m.port_group, m.ordinal,
      jsonb_array_length(m.predicates) = 1 and m.predicates -> 0 ->> 'operator' in ('=', 'exists', 'in')
    from made as m
    returning group_id
  ),

  predicates as (
    insert into parley_flow._p_predicate (group_id, ordinal, property, type, operator, operand, operands, hash)
    select m.group_id, p.n - 1, p.predicate ->> 'property', y.type, p.predicate ->> 'operator', v.operand, v.operands,
      case when p.predicate ->> 'operator' = '=' then parley_flow._p_hash(p.predicate ->> 'property', v.operand) end
    from made as m
    cross join lateral jsonb_array_elements(m.predicates) with ordinality as p (predicate, n)
    join parley_flow._p_property as y on y.name = p.predicate ->> 'property'
    cross join lateral (
      select
        case
          when p.predicate ->> 'operator' not in ('in', 'exists')
            then parley_flow._p_canonical(p.predicate ->> 'value', y.type)
        end as operand,
        case
          when p.predicate ->> 'operator' = 'in'
            then array(
              select distinct parley_flow._p_canonical(e.value, y.type)
              from jsonb_array_elements_text(p.predicate -> 'value') as e (value)
            )
        end as operands
    ) as v
  )

  select array_agg(g.group_id) into v_groups from groups as g;
  return coalesce(v_groups, '{}');
end
$$;

comment on function parley_flow._p_insert_groups(integer[]) is
'Writes the groups of some send ports, or of all, with their predicates; gives their numbers.';

create function parley_flow._p_insert_anchors(groups bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- The rarest equality; without one the values of a list; without that the presence of the rarest property.
  with ranked as (
    select p.group_id, p.property, p.operator, p.operand, p.operands,
      row_number() over (
        partition by p.group_id
        order by
          case p.operator when '=' then 0 when 'in' then 1 else 2 end,
          case
            when p.operator = '=' then (
              select count(*) from parley_flow._p_predicate as o where o.hash = p.hash
            )
            when p.operator = 'in' then cardinality(p.operands)
            else (
              select count(*) from parley_flow._p_predicate as o where o.property = p.property and o.operator <> '='
            )
          end,
          p.ordinal
      ) as place
    from parley_flow._p_predicate as p
    where p.group_id = any (groups)
  )

  insert into parley_flow._p_anchor (hash, group_id, property, value)
  select parley_flow._p_hash(r.property, v.value), r.group_id, r.property, v.value
  from ranked as r
  cross join lateral (
    select r.operand as value where r.operator = '='
    union all
    select u.value from unnest(r.operands) as u (value) where r.operator = 'in'
    union all
    select null where r.operator not in ('=', 'in')
  ) as v
  where r.place = 1
  on conflict do nothing;
end
$$;

comment on function parley_flow._p_insert_anchors(bigint[]) is 'Writes how some groups are found.';

create function parley_flow._p_subscribe(ports integer[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_gone bigint[];
begin
  with gone as (
    delete from parley_flow._p_group as g
    where ports is null or g.send_port_id = any (ports)
    returning g.group_id
  )
  select array_agg(g.group_id) into v_gone from gone as g;
  delete from parley_flow._p_predicate as p where p.group_id = any (v_gone);
  delete from parley_flow._p_anchor as a where a.group_id = any (v_gone);
  perform parley_flow._p_insert_anchors(parley_flow._p_insert_groups(ports));
  delete from parley_flow._p_routed_property as r;
  insert into parley_flow._p_routed_property (property, type)
  select y.name, y.type
  from parley_flow._p_property as y
  where exists (select from parley_flow._p_predicate as p where p.property = y.name);
  perform parley_flow._p_next_epoch();
end
$$;

comment on function parley_flow._p_subscribe(integer[]) is
'Makes the subscriptions of some send ports, or of all (null), what their filters, groups and states say. The caller
holds the row of _p_configuration.';
