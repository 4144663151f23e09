-- Checking definitions before they are applied: all faults at once, each with its place.
--
-- Cost: each object is gone through once; references are compared with sets of names.

create function parley_flow._p_name_rule(kind text, name text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if octet_length(name) not between 1 and 200 or name ~ '[[:cntrl:]]' or name ~ '^[[:space:]]|[[:space:]]$' then
    return '1 to 200 bytes, without control characters and without blanks at its ends';
  elsif kind in ('send port', 'receive location', 'orchestration') and name ~ '[#*]' then
    return 'without # and *, which have a meaning in the names of lanes';
  elsif kind = 'property schema' and name ~ '#' then
    return 'a namespace, without #';
  end if;
  return null;
end
$$;

comment on function parley_flow._p_name_rule(text, text) is
'Gives what the name of an object has to be, when it is not that; otherwise null.';

create function parley_flow._p_check_shape(definitions jsonb) returns setof parley_flow.fault
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_kind record;
begin
  if jsonb_typeof(definitions) is distinct from 'object' then
    return next parley_flow._p_fault('{}', 'document', parley_flow._p_kind_of_value(definitions));
    return;
  end if;
  for v_kind in select k.key as kind, k.value as objects from jsonb_each(definitions) as k loop
    if v_kind.kind <> all (parley_flow._p_kinds()) then
      return next parley_flow._p_fault(
        array[v_kind.kind], 'kind', v_kind.kind, array_to_string(parley_flow._p_kinds(), ', ')
      );
    elsif jsonb_typeof(v_kind.objects) <> 'object' then
      return next parley_flow._p_fault(
        array[v_kind.kind], 'objects', v_kind.kind, parley_flow._p_kind_of_value(v_kind.objects)
      );
    else
      return query
      select f.*
      from jsonb_each(v_kind.objects) as o (name, settings)
      cross join lateral (
        select parley_flow._p_name_rule(v_kind.kind, o.name) as rule
      ) as r
      cross join lateral parley_flow._p_fault(array[v_kind.kind, o.name], 'name', v_kind.kind, o.name, r.rule) as f
      where r.rule is not null
      union all
      select f.*
      from jsonb_each(v_kind.objects) as o (name, settings)
      cross join lateral parley_flow._p_fault(
        array[v_kind.kind, o.name], 'settings', v_kind.kind, o.name, parley_flow._p_kind_of_value(o.settings)
      ) as f
      where jsonb_typeof(o.settings) not in ('object', 'null');
    end if;
  end loop;
end
$$;

comment on function parley_flow._p_check_shape(jsonb) is
'Gives what keeps a document, or a kind or object in it, from being read, and names that may not be given.';

create function parley_flow._p_check_settings(kind text, name text, settings jsonb) returns setof parley_flow.fault
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_path constant text[] := array[kind, name];
  v_setting record;
  v_demand text;
begin
  for v_setting in
    select s.key as name, s.value, d.type, d.lowest, d.highest, d.choices
    from jsonb_each(settings) as s
    left join parley_flow.setting_definitions as d on d.kind = $1 and d.setting = s.key
  loop
    if v_setting.type is null then
      return next parley_flow._p_fault(
        v_path || v_setting.name, 'setting', kind, v_setting.name, (
          select string_agg(d.setting, ', ' order by d.setting)
          from parley_flow.setting_definitions as d
          where d.kind = $1
        )
      );
      continue;
    end if;
    continue when v_setting.value = 'null';
    v_demand := parley_flow._p_demand(
      v_setting.value, v_setting.type, v_setting.lowest, v_setting.highest, v_setting.choices
    );
    if v_demand is not null then
      return next parley_flow._p_fault(
        v_path || v_setting.name, 'value', v_setting.name, parley_flow._p_kind_of_value(v_setting.value), v_demand
      );
      continue;
    end if;
    return query
    select f.*
    from parley_flow._p_check_secrets(
      v_path || v_setting.name, v_setting.name, v_setting.type, v_setting.value
    ) as f;
  end loop;
  return query
  select f.path, f.situation, f.message, f.cause, f.remedy
  from parley_flow.setting_definitions as d
  cross join lateral parley_flow._p_fault(v_path, 'missing', d.kind, d.setting, d.description) as f
  where d.kind = $1 and d.is_required and coalesce(settings -> d.setting, 'null') = 'null';
end
$$;

comment on function parley_flow._p_check_settings(text, text, jsonb) is
'Gives what is wrong with the settings of an object, each for itself.';

create function parley_flow._p_check_properties(name text, settings jsonb) returns setof parley_flow.fault
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_path constant text[] := array['property schema', name, 'properties'];
  v_property record;
begin
  if settings -> 'properties' = '{}' then
    return next parley_flow._p_fault(v_path, 'no properties', name);
  end if;
  for v_property in select p.key as name, p.value from jsonb_each(settings -> 'properties') as p loop
    if not parley_flow._p_is_property_name(_p_check_properties.name || '#' || v_property.name) then
      return next parley_flow._p_fault(v_path || v_property.name, 'property name', v_property.name);
    end if;
    if jsonb_typeof(v_property.value) <> 'object' then
      return next parley_flow._p_fault(
        v_path || v_property.name, 'value', v_property.name, parley_flow._p_kind_of_value(v_property.value),
        'an object such as {"type": "text"}'
      );
      continue;
    end if;
    return query
    select f.*
    from jsonb_each(v_property.value) as s (key, value)
    cross join lateral (
      select case
        when s.key not in ('type', 'tracked', 'sensitive', 'description')
          then 'one of type, tracked, sensitive, description'
        when s.key = 'type' and s.value #>> '{}' not in ('text', 'integer', 'number', 'boolean', 'timestamp')
          then 'one of text, integer, number, boolean, timestamp'
        when s.key in ('tracked', 'sensitive') and jsonb_typeof(s.value) <> 'boolean' then 'true or false'
      end as demand
    ) as d
    cross join lateral parley_flow._p_fault(
      v_path || v_property.name || s.key, 'value', s.key, parley_flow._p_kind_of_value(s.value), d.demand
    ) as f
    where d.demand is not null;
  end loop;
end
$$;

comment on function parley_flow._p_check_properties(text, jsonb) is
'Gives what is wrong with the properties of a property schema.';

create function parley_flow._p_check_stages(name text, settings jsonb) returns setof parley_flow.fault
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_path constant text[] := array['pipeline', name, 'stages'];
  v_direction constant text := settings ->> 'direction';
  v_stages constant text[] := case v_direction
    when 'receive' then array['decode', 'disassemble', 'validate', 'resolve_party']
    else array['pre_assemble', 'assemble', 'encode']
  end;
begin
  return query
  select f.*
  from jsonb_object_keys(settings -> 'stages') as k (stage)
  cross join lateral parley_flow._p_fault(
    v_path || k.stage, 'stage', v_direction, k.stage, array_to_string(v_stages, ', ')
  ) as f
  where k.stage <> all (v_stages);
  return query
  select f.*
  from jsonb_each(settings -> 'stages') as s (stage, components)
  cross join lateral parley_flow._p_fault(
    v_path || s.stage, 'value', s.stage, parley_flow._p_kind_of_value(s.components), 'an array of components'
  ) as f
  where jsonb_typeof(s.components) <> 'array';
  return query
  select f.*
  from jsonb_each(settings -> 'stages') as s (stage, components)
  cross join lateral jsonb_array_elements(
    case when jsonb_typeof(s.components) = 'array' then s.components else '[]' end
  ) with ordinality as c (component, n)
  cross join lateral parley_flow._p_fault(
    v_path || s.stage || (c.n - 1)::text, 'component', parley_flow._p_kind_of_value(c.component)
  ) as f
  where jsonb_typeof(c.component) <> 'object'
    or jsonb_typeof(c.component -> 'component') is distinct from 'string'
    or jsonb_typeof(coalesce(c.component -> 'settings', '{}')) <> 'object'
    or exists (
      select
      from jsonb_object_keys(case when jsonb_typeof(c.component) = 'object' then c.component else '{}' end) as k (key)
      where k.key not in ('component', 'settings')
    );
end
$$;

comment on function parley_flow._p_check_stages(text, jsonb) is 'Gives what is wrong with the stages of a pipeline.';
