-- Whether values of settings are what their types demand.

create function parley_flow._p_is_interval(value text, lowest text, highest text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return value::interval between lowest::interval and highest::interval;
exception
  when invalid_datetime_format or datetime_field_overflow or interval_field_overflow then
    return false;
end
$$;

comment on function parley_flow._p_is_interval(text, text, text) is
'Reports whether a text is an interval within bounds.';

create function parley_flow._p_demand(
  value jsonb, type text, lowest text, highest text, choices text[]
) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is constant text := jsonb_typeof(value);
  v_text constant text := value #>> '{}';
begin
  if type in ('integer', 'number') then
    if v_is <> 'number' or v_text::numeric not between lowest::numeric and highest::numeric
      or (type = 'integer' and v_text !~ '^-?[0-9]+$') then
      return format(
        '%s from %s to %s', case when type = 'integer' then 'an integer' else 'a number' end, lowest, highest
      );
    end if;
  elsif type = 'boolean' and v_is <> 'boolean' then
    return 'true or false';
  elsif type = 'interval' then
    if v_is <> 'string' or not parley_flow._p_is_interval(v_text, lowest, highest) then
      return format('an interval from %s to %s, such as "5 minutes"', lowest, highest);
    end if;
  elsif type = 'choice' then
    if v_is <> 'string' or v_text <> all (choices) then
      return 'one of ' || array_to_string(choices, ', ');
    end if;
  elsif type in ('text', 'reference', 'role', 'property') then
    if v_is <> 'string' or v_text = '' or octet_length(v_text) > 10000 then
      return 'a text of 1 to 10000 bytes';
    end if;
  elsif type in ('object', 'secrets', 'properties', 'promotions', 'stages', 'declarations') and v_is <> 'object' then
    return 'an object';
  elsif type = 'filter' and v_is <> 'array' then
    return 'an array of AND groups';
  elsif type = 'shapes' and v_is <> 'array' then
    return 'a list of shapes';
  elsif type = 'activations' and v_is <> 'array' then
    return 'an array of {"receive", "filter", "convoy"}';
  elsif type = 'references' and (
    v_is <> 'array' or exists (select from jsonb_array_elements(value) as e (e) where jsonb_typeof(e.e) <> 'string')
  ) then
    return 'an array of names';
  end if;
  return null;
end
$$;

comment on function parley_flow._p_demand(jsonb, text, text, text, text[]) is
'Gives what the value of a setting has to be, when it is not that; otherwise null.
Arguments: as parley_flow.setting_definitions has them.';

create function parley_flow._p_check_operand(path text[], operator text, type text, value jsonb)
returns setof parley_flow.fault
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_text constant text := parley_flow._p_canonical(value #>> '{}', type);
  v_is constant text := coalesce(jsonb_typeof(value), 'null');
  v_shown constant text := parley_flow._p_kind_of_value(value);
begin
  if operator = 'exists' then
    if v_is <> 'null' then
      return next parley_flow._p_fault(path, 'operand', operator, v_shown, 'none');
    end if;
  elsif operator = 'in' then
    if v_is <> 'array' or jsonb_array_length(value) not between 1 and 1000 or exists (
      select from jsonb_array_elements(value) as e (e) where jsonb_typeof(e.e) not in ('string', 'number', 'boolean')
    ) then
      return next parley_flow._p_fault(path, 'operand', operator, v_shown, 'an array of 1 to 1000 values');
    end if;
  elsif v_is not in ('string', 'number', 'boolean') or octet_length(v_text) > 8192 then
    return next parley_flow._p_fault(path, 'operand', operator, v_shown, 'a value of at most 8192 bytes');
  elsif operator = '&' and not parley_flow._p_is_integer(v_text) then
    return next parley_flow._p_fault(path, 'operand', operator, v_shown, 'an integer');
  elsif operator in ('<', '<=', '>', '>=') and (
    (type in ('integer', 'number') and not parley_flow._p_is_number(v_text))
    or (type = 'timestamp' and not parley_flow._p_is_time(v_text))
  ) then
    return next parley_flow._p_fault(path, 'operand', operator, v_shown, case
      when type = 'timestamp' then 'a time with an offset, such as 2026-11-28T08:30:00Z' else 'a number'
    end);
  end if;
end
$$;

comment on function parley_flow._p_check_operand(text[], text, text, jsonb) is
'Gives what is wrong with the value of a predicate.
Arguments: path, of the value; operator; type, of the property; value.';

create function parley_flow._p_check_predicate(path text[], predicate jsonb, types jsonb)
returns setof parley_flow.fault
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_property constant text := predicate ->> 'property';
  v_operator constant text := predicate ->> 'operator';
  v_operators constant text[] := array['exists', '=', '<>', '<', '<=', '>', '>=', '&', 'in', 'prefix'];
begin
  if jsonb_typeof(predicate) <> 'object' then
    return next parley_flow._p_fault(path, 'predicate', parley_flow._p_kind_of_value(predicate));
    return;
  end if;
  return query
  select f.*
  from jsonb_object_keys(predicate) as k (key)
  cross join lateral parley_flow._p_fault(path || k.key, 'predicate key', k.key) as f
  where k.key not in ('property', 'operator', 'value');
  if v_operator is null or v_operator <> all (v_operators) then
    return next parley_flow._p_fault(path || 'operator'::text, 'operator', coalesce(v_operator, 'null'));
  end if;
  if v_property is null or not parley_flow._p_is_property_name(v_property) then
    return next parley_flow._p_fault(path || 'property'::text, 'property name', coalesce(v_property, 'null'));
  elsif v_property in ('InterchangeID', 'ParentMessageID', 'ReceivedTime') or (
    v_property = 'MessageID' and v_operator <> 'exists'
  ) then
    return next parley_flow._p_fault(path || 'property'::text, 'unpromoted', v_property);
  elsif not types ? v_property then
    return next parley_flow._p_fault(path || 'property'::text, 'property', v_property,
      (select string_agg(e.name, ', ') from parley_flow._p_engine_property as e));
  elsif v_operator = any (v_operators) then
    return query
    select f.*
    from parley_flow._p_check_operand(
      path || 'value'::text, v_operator, types ->> v_property, predicate -> 'value'
    ) as f;
  end if;
end
$$;

comment on function parley_flow._p_check_predicate(text[], jsonb, jsonb) is
'Gives what is wrong with a predicate of a filter.
Arguments: path; predicate; types, of the properties that there are, by their names.';

create function parley_flow._p_check_filter(path text[], filter jsonb, types jsonb) returns setof parley_flow.fault
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group record;
begin
  for v_group in
    select g.predicates, path || (g.n - 1)::text as path
    from jsonb_array_elements(filter) with ordinality as g (predicates, n)
  loop
    if jsonb_typeof(v_group.predicates) <> 'array' or jsonb_array_length(v_group.predicates) = 0 then
      return next parley_flow._p_fault(
        v_group.path, 'group', case
          when v_group.predicates = '[]' then 'empty' else parley_flow._p_kind_of_value(v_group.predicates)
        end
      );
      continue;
    end if;
    return query
    select f.*
    from jsonb_array_elements(v_group.predicates) with ordinality as p (predicate, n)
    cross join lateral parley_flow._p_check_predicate(v_group.path || (p.n - 1)::text, p.predicate, types) as f;
  end loop;
end
$$;

comment on function parley_flow._p_check_filter(text[], jsonb, jsonb) is
'Gives what is wrong with a filter.
Arguments: path; filter, an array; types, of the properties that there are.';

create function parley_flow._p_secret_keys(path text[], value jsonb) returns setof text[]
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with recursive part (path, value) as (
    select $1, $2
    union all
    select p.path || n.key, n.value
    from part as p
    cross join lateral (
      select o.key, o.value
      from jsonb_each(case when jsonb_typeof(p.value) = 'object' then p.value else '{}' end) as o (key, value)
      union all
      select (a.n - 1)::text, a.value
      from jsonb_array_elements(case when jsonb_typeof(p.value) = 'array' then p.value else '[]' end)
        with ordinality as a (value, n)
    ) as n
  )

  select p.path
  from part as p
  where jsonb_typeof(p.value) in ('string', 'number')
    and p.path[cardinality(p.path)] ~* (
      '(^|[-_ .]|[a-z])(password|passwd|pwd|passphrase|secret|token|api[-_]?key|private[-_]?key|credentials?'
        || '|authorization|cookie)$'
    )
    and cardinality(p.path) > cardinality($1)
$$;

comment on function parley_flow._p_secret_keys(text[], jsonb) is
'Gives the places in settings, at any depth, that are called like secrets and have a value.
Arguments: path, of the settings; value.';

create function parley_flow._p_check_secrets(path text[], setting text, type text, value jsonb)
returns setof parley_flow.fault
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if type = 'secrets' then
    return query
    select f.*
    from jsonb_each(value) as s (name, value)
    cross join lateral parley_flow._p_fault(path || s.name, 'secret', s.name) as f
    where jsonb_typeof(s.value) <> 'string'
      or s.value #>> '{}' !~ '^(file:.|env:[A-Za-z_][A-Za-z0-9_]*$|command:.)';
  elsif type in ('object', 'stages') then
    return query
    select f.*
    from parley_flow._p_secret_keys(path, value) as k (path)
    cross join lateral parley_flow._p_fault(k.path, 'secret setting', k.path[cardinality(k.path)]) as f;
  elsif setting = 'address' and value #>> '{}' ~ '(://[^/@ ]*:[^/@ ]+@|(password|pwd)[ ]*=)' then
    return next parley_flow._p_fault(path, 'secret address');
  end if;
end
$$;

comment on function parley_flow._p_check_secrets(text[], text, text, jsonb) is
'Gives what of a setting is, or seems to be, a secret in clear.';
