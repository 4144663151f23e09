-- Whether what definitions name is there, in what they would make of all objects together.

create type parley_flow._p_scene as (names jsonb, types jsonb, directions jsonb);

comment on type parley_flow._p_scene is
'The objects that would exist: names, {kind: {name: true}}; types of properties by their names; directions of
pipelines.';

create function parley_flow._p_scene_after(definitions jsonb, prune boolean) returns parley_flow._p_scene
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_scene parley_flow._p_scene;
begin
  select jsonb_object_agg(k.kind, k.names) into v_scene.names
  from (
    select a.kind, jsonb_object_agg(a.name, true) as names
    from parley_flow._p_names_after(definitions, prune) as a
    group by a.kind
  ) as k;
  select coalesce(jsonb_object_agg(p.name, p.type), '{}') into v_scene.types
  from (
    select e.name, e.type from parley_flow._p_engine_property as e
    union all
    select a.name || '#' || s.name, coalesce(s.value ->> 'type', 'text')
    from parley_flow._p_names_after(definitions, prune) as a
    cross join lateral jsonb_each(
      case when jsonb_typeof(a.settings -> 'properties') = 'object' then a.settings -> 'properties' else '{}' end
    ) as s (name, value)
    where a.kind = 'property schema' and jsonb_typeof(s.value) = 'object'
  ) as p;
  select jsonb_object_agg(p.name, p.direction) into v_scene.directions
  from (
    select b.name, b.direction from parley_flow._p_built_in_pipeline as b
    union all
    select a.name, a.settings ->> 'direction'
    from parley_flow._p_names_after(definitions, prune) as a
    where a.kind = 'pipeline'
  ) as p;
  v_scene.names := coalesce(v_scene.names, '{}') || jsonb_build_object('pipeline', v_scene.directions);
  return v_scene;
end
$$;

comment on function parley_flow._p_scene_after(jsonb, boolean) is
'Gives what there would be after definitions were applied.';

create function parley_flow._p_check_references(
  kind text, name text, settings jsonb, scene parley_flow._p_scene
) returns setof parley_flow.fault
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select f.path, f.situation, f.message, f.cause, f.remedy
  from parley_flow.setting_definitions as d
  cross join lateral (
    select array[$1, $2, d.setting] as path, settings ->> d.setting as name
    where d.type = 'reference' and jsonb_typeof(settings -> d.setting) = 'string'
    union all
    select array[$1, $2, d.setting, (e.n - 1)::text], e.value
    from jsonb_array_elements_text(
      case when d.type = 'references' and jsonb_typeof(settings -> d.setting) = 'array' then settings -> d.setting
        else '[]' end
    ) with ordinality as e (value, n)
  ) as r
  cross join lateral parley_flow._p_fault(
    r.path, 'reference', d.refers_to, r.name, coalesce((
      select string_agg(k.name, ', ' order by k.name)
      from (
        select o.name
        from jsonb_object_keys(coalesce(scene.names -> d.refers_to, '{}')) as o (name)
        order by o.name
        limit 10
      ) as k
    ), '(none)')
  ) as f
  where d.kind = $1 and not coalesce(scene.names -> d.refers_to ? r.name, false);
  if kind in ('receive port', 'receive location', 'send port') then
    -- A port that responds has a pipeline of the other direction besides.
    return query
    select f.*
    from (
      select 'pipeline' as setting, case when $1 = 'send port' then 'send' else 'receive' end as wanted
      union all
      select 'response_pipeline', case when $1 = 'send port' then 'receive' else 'send' end
    ) as p
    cross join lateral parley_flow._p_fault(
      array[$1, $2, p.setting], 'direction', settings ->> p.setting, scene.directions ->> (settings ->> p.setting),
      p.wanted
    ) as f
    where scene.directions ->> (settings ->> p.setting) <> p.wanted;
  elsif kind = 'host' and jsonb_typeof(settings -> 'role') = 'string' and not exists (
    select from pg_roles as r where r.rolname = settings ->> 'role'
  ) then
    return next parley_flow._p_fault(array[kind, name, 'role'], 'role', settings ->> 'role');
  end if;
end
$$;

comment on function parley_flow._p_check_references(text, text, jsonb, parley_flow._p_scene) is
'Gives what an object names that there is not.
Arguments: kind, name, settings; scene, what there would be.';

create function parley_flow._p_check_promotions(
  kind text, name text, settings jsonb, scene parley_flow._p_scene
) returns setof parley_flow.fault
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select f.*
  from unnest('{promotions,written}'::text[]) as s (setting)
  cross join lateral jsonb_each(
    case when jsonb_typeof(settings -> s.setting) = 'object' then settings -> s.setting else '{}' end
  ) as p (property, path)
  cross join lateral (
    select case
      when not parley_flow._p_is_property_name(p.property) then
        parley_flow._p_fault(array[$1, $2, s.setting, p.property], 'property name', p.property)
      when p.property !~ '#' then
        parley_flow._p_fault(array[$1, $2, s.setting, p.property], 'unpromoted', p.property)
      when s.setting = 'promotions' and not scene.types ? p.property then
        parley_flow._p_fault(
          array[$1, $2, s.setting, p.property], 'property', p.property, 'those of its filters alone'
        )
      when jsonb_typeof(p.path) <> 'string' or p.path = '""' then
        parley_flow._p_fault(
          array[$1, $2, s.setting, p.property], 'value', p.property, parley_flow._p_kind_of_value(p.path), 'a path'
        )
    end as fault
  ) as c
  cross join lateral (select (c.fault).*) as f
  where f.situation is not null;
end
$$;

comment on function parley_flow._p_check_promotions(text, text, jsonb, parley_flow._p_scene) is
'Gives what is wrong with the promotions of a message type. Paths are checked by the host, which reads them.';

create function parley_flow._p_check_orchestration(name text, settings jsonb, scene parley_flow._p_scene)
returns setof parley_flow.fault
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_path constant text[] := array['orchestration', name, 'activations'];
  v_activations constant jsonb := case
    when jsonb_typeof(settings -> 'activations') = 'array' then settings -> 'activations' else '[]'
  end;
  v_one record;
begin
  if scene.names -> 'send port' ? name then
    return next parley_flow._p_fault(array['orchestration', name], 'name taken', name);
  end if;
  for v_one in
    select (a.n - 1)::text as n, a.activation as value,
      coalesce(nullif(a.activation -> 'convoy', 'null'), '[]') as convoy
    from jsonb_array_elements(v_activations) with ordinality as a (activation, n)
  loop
    if jsonb_typeof(v_one.value) <> 'object' or jsonb_typeof(v_one.value -> 'receive') is distinct from 'string'
      or jsonb_typeof(v_one.value -> 'filter') is distinct from 'array' or jsonb_typeof(v_one.convoy) <> 'array' then
      return next parley_flow._p_fault(
        v_path || v_one.n, 'activation', v_one.n, parley_flow._p_kind_of_value(v_one.value)
      );
      return;
    end if;
    return query
    select f.*
    from parley_flow._p_check_filter(v_path || v_one.n || 'filter'::text, v_one.value -> 'filter', scene.types) as f;
    return query
    select f.*
    from jsonb_array_elements_text(v_one.convoy) as p (property)
    cross join lateral parley_flow._p_fault(
      v_path || v_one.n || 'convoy'::text, 'property', p.property,
      (select string_agg(e.name, ', ') from parley_flow._p_engine_property as e)
    ) as f
    where not scene.types ? p.property;
  end loop;
  if (
    select count(distinct c.convoy)
    from jsonb_array_elements(v_activations) as a (activation)
    cross join lateral (
      select array(
          select p.name from jsonb_array_elements_text(a.activation -> 'convoy') as p (name) order by 1
        ) as convoy
    ) as c
    where jsonb_array_length(coalesce(nullif(a.activation -> 'convoy', 'null'), '[]')) > 0
  ) > 1 then
    return next parley_flow._p_fault(v_path, 'convoys', name);
  end if;
end
$$;

comment on function parley_flow._p_check_orchestration(text, jsonb, parley_flow._p_scene) is
'Gives what is wrong with the activations of an orchestration. Its body is checked by the host, which
compiles it.';

create function parley_flow._p_check_object(
  kind text, name text, settings jsonb, scene parley_flow._p_scene
) returns setof parley_flow.fault
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query select f.* from parley_flow._p_check_settings(kind, name, settings) as f;
  return query select f.* from parley_flow._p_check_references(kind, name, settings, scene) as f;
  if kind = 'property schema' and jsonb_typeof(settings -> 'properties') = 'object' then
    return query select f.* from parley_flow._p_check_properties(name, settings) as f;
  elsif kind = 'pipeline' and jsonb_typeof(settings -> 'stages') = 'object'
    and settings ->> 'direction' in ('receive', 'send') then
    return query select f.* from parley_flow._p_check_stages(name, settings) as f;
  elsif kind = 'message type' then
    return query select f.* from parley_flow._p_check_promotions(kind, name, settings, scene) as f;
  elsif kind in ('send port', 'send port group') and jsonb_typeof(settings -> 'filter') = 'array' then
    return query
    select f.* from parley_flow._p_check_filter(array[kind, name, 'filter'], settings -> 'filter', scene.types) as f;
  end if;
  if kind = 'orchestration' then
    return query select f.* from parley_flow._p_check_orchestration(name, settings, scene) as f;
  end if;
  if kind = 'send port' and jsonb_typeof(settings -> 'order_key') = 'string' then
    if settings -> 'ordered' is distinct from 'true' then
      return next parley_flow._p_fault(array[kind, name, 'order_key'], 'order key');
    elsif not scene.types ? (settings ->> 'order_key') then
      return next parley_flow._p_fault(
        array[kind, name, 'order_key'], 'property', settings ->> 'order_key',
        (select string_agg(e.name, ', ') from parley_flow._p_engine_property as e)
      );
    end if;
  end if;
end
$$;

comment on function parley_flow._p_check_object(text, text, jsonb, parley_flow._p_scene) is
'Gives what is wrong with an object, by itself and among the others.';

create function parley_flow._p_faults(definitions jsonb, prune boolean) returns setof parley_flow.fault
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fault parley_flow.fault;
  v_readable jsonb := definitions;
  v_is_part boolean := false;
  v_prune boolean := prune;
  v_scene parley_flow._p_scene;
begin
  for v_fault in select f.* from parley_flow._p_check_shape(definitions) as f loop
    return next v_fault;
    if v_fault.path = '{}' then
      return;
    end if;
    if v_fault.situation <> 'name' then
      v_readable := v_readable #- v_fault.path;
      v_is_part := true;
      v_prune := false;
    end if;
  end loop;
  v_scene := parley_flow._p_scene_after(v_readable, v_prune);
  -- Objects that are not given are checked too: they may name one that goes, or that changes. The part that cannot be
  -- read may have the object that a reference names.
  return query
  select f.*
  from parley_flow._p_names_after(v_readable, v_prune) as a
  cross join lateral parley_flow._p_check_object(a.kind, a.name, a.settings, v_scene) as f
  where not (v_is_part and f.situation in ('reference', 'property'))
  order by array_position(parley_flow._p_kinds(), a.kind), a.name;
end
$$;

comment on function parley_flow._p_faults(jsonb, boolean) is
'Gives everything that is wrong with definitions. A part that cannot be read hides only what names something in it.
Arguments: definitions; prune, as parley_flow.apply.';
