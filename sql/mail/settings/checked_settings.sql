-- One value of one setting: whether it has the type, the range and the choices that the definition asks for, and the
-- form in which it is kept. Times are kept in seconds, sizes in bytes, names of domains and choices in one case.

create function parley_mail._p_wanted(definition parley_mail.setting_definitions) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return case definition.type
      when 'boolean' then 'true or false'
      when 'integer' then 'a whole number'
      when 'bytes' then 'a number of bytes, or a text such as "10 MB"'
      when 'seconds' then 'a number of seconds, or a text such as "5 minutes"'
      when 'choice' then 'one of ' || array_to_string(definition.choices, ', ')
      when 'choices' then 'a list of ' || array_to_string(definition.choices, ', ')
      when 'texts' then 'a list of texts'
      when 'domain' then 'a domain'
      when 'address' then 'a mail address'
      when 'addresses' then 'a list of mail addresses'
      when 'ranges' then 'a list of networks such as "10.0.0.0/8", or ranges such as "10.0.0.1-10.0.0.9"'
      when 'bindings' then 'a list of addresses with a port, such as "0.0.0.0:25" or "[::]:25"'
      when 'objects' then 'a list of objects'
      else 'a text of one line'
    end
    || case when definition.least is not null then
      format(' from %s to %s', definition.least, definition.largest) else '' end;
end
$$;

comment on function parley_mail._p_wanted(parley_mail.setting_definitions) is
'Says in words which values a setting takes.';

create function parley_mail._p_checked_number(definition parley_mail.setting_definitions, value jsonb) returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_number numeric;
begin
  if jsonb_typeof(value) = 'number' then
    v_number := value::text::numeric;
  elsif jsonb_typeof(value) = 'string' and definition.type = 'bytes' then
    v_number := pg_size_bytes(value #>> '{}');
  elsif jsonb_typeof(value) = 'string' and definition.type = 'seconds' then
    v_number := extract(epoch from (value #>> '{}')::interval);
  end if;
  return case
    when v_number = trunc(v_number) and v_number between definition.least and definition.largest
      then to_jsonb(v_number::bigint)
  end;
exception
  when data_exception or feature_not_supported or syntax_error_or_access_rule_violation then
    return null;
end
$$;

comment on function parley_mail._p_checked_number(parley_mail.setting_definitions, jsonb) is
'Gives a number of a setting in its unit, or null where the value is none or out of range.';

create function parley_mail._p_range(written text) returns inet[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_low inet;
  v_high inet;
begin
  if written ~ '-' then
    v_low := split_part(written, '-', 1)::inet;
    v_high := split_part(written, '-', 2)::inet;
  else
    v_low := host(network(written::inet))::inet;
    v_high := host(broadcast(written::inet))::inet;
  end if;
  if family(v_low) = family(v_high) and v_low <= v_high and masklen(v_low) = masklen(v_high)
    and masklen(v_low) = (case family(v_low) when 4 then 32 else 128 end) then
    return array[v_low, v_high];
  end if;
  return null;
exception
  when data_exception then
    return null;
end
$$;

comment on function parley_mail._p_range(text) is
'Gives the first and the last address of a network or a range; null when it is none.';

create function parley_mail._p_checked_text(definition parley_mail.setting_definitions, value text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if value = '' or length(value) > 10000 or (value ~ '[[:cntrl:]]' and not definition.is_secret) then
    return null;
  end if;
  return case definition.type
    when 'domain' then case when parley_mail._p_is_domain(value) then parley_mail._p_folded(value) end
    when 'address' then case when parley_mail._p_is_address(value) then parley_mail._p_with_a_labels(value) end
    when 'addresses' then case when parley_mail._p_is_address(value) then parley_mail._p_folded(value) end
    when 'choice' then case when upper(value collate "C") = any (definition.choices) then upper(value collate "C") end
    when 'choices' then case when upper(value collate "C") = any (definition.choices) then upper(value collate "C") end
    when 'ranges' then case when parley_mail._p_range(value) is not null then value end
    when 'bindings' then
      case when value ~ E'^(\\[[0-9a-fA-F:.]+\\]|[0-9.]+):[0-9]{1,5}$' and split_part(value, ':', -1)::integer < 65536
        then value
      end
    else value
  end;
end
$$;

comment on function parley_mail._p_checked_text(parley_mail.setting_definitions, text) is
'Gives a text of a setting in the form in which it is kept, or null where it is not of its type.';

create function parley_mail._p_checked_value(definition parley_mail.setting_definitions, value jsonb) returns jsonb
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_kept jsonb;
begin
  if definition.type in ('integer', 'bytes', 'seconds') then
    return parley_mail._p_checked_number(definition, value);
  elsif definition.type = 'boolean' then
    return case when jsonb_typeof(value) = 'boolean' then value end;
  elsif definition.type = 'objects' then
    return case
      when jsonb_typeof(value) = 'array'
        and not exists (select from jsonb_array_elements(value) as e (v) where jsonb_typeof(e.v) <> 'object') then value
    end;
  elsif definition.type in ('text', 'domain', 'address', 'choice') then
    return case
      when jsonb_typeof(value) = 'string' then to_jsonb(parley_mail._p_checked_text(definition, value #>> '{}'))
    end;
  end if;
  if jsonb_typeof(value) = 'string' then
    value := jsonb_build_array(value);
  elsif jsonb_typeof(value) <> 'array' then
    return null;
  end if;
  select coalesce(jsonb_agg(parley_mail._p_checked_text(definition, e.v #>> '{}') order by e.n), '[]') into v_kept
  from jsonb_array_elements(value) with ordinality as e (v, n);
  return case
    when not v_kept @> '[null]' and not exists (
      select from jsonb_array_elements(value) as e (v) where jsonb_typeof(e.v) <> 'string'
    ) then v_kept
  end;
end
$$;

comment on function parley_mail._p_checked_value(parley_mail.setting_definitions, jsonb) is
'Gives a value of a setting in the form in which it is kept, or null where it does not fit the definition.';

create function parley_mail._p_checked_settings(kind text, name text, settings jsonb) returns jsonb
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_given record;
  v_definition parley_mail.setting_definitions;
  v_value jsonb;
  v_kept jsonb := jsonb_build_object();
begin
  if jsonb_typeof(settings) is distinct from 'object' then
    found := parley_mail._p_raise(
      'configuration', format('The settings of %s "%s" are %s.', kind, name, coalesce(jsonb_typeof(settings), 'null'))
    );
  end if;
  for v_given in select s.key, s.value from jsonb_each(settings) as s order by s.key loop
    select * into v_definition
    from parley_mail.setting_definitions as d
    where d.kind = _p_checked_settings.kind and d.setting = v_given.key;
    if not found then
      found := parley_mail._p_raise('setting', kind, v_given.key, (
        select string_agg(d.setting, ', ' order by d.setting)
        from parley_mail.setting_definitions as d
        where d.kind = _p_checked_settings.kind
      ));
    end if;
    v_value := 'null';
    if v_given.value <> 'null' then
      v_value := parley_mail._p_checked_value(v_definition, v_given.value);
    end if;
    if v_value is null then
      found := parley_mail._p_raise(
        'type', kind, name, v_given.key,
        case when v_definition.is_secret then 'malformed' else left(v_given.value::text, 100) end,
        parley_mail._p_wanted(v_definition)
      );
    end if;
    v_kept := v_kept || jsonb_build_object(v_given.key, v_value);
  end loop;
  return v_kept;
end
$$;

comment on function parley_mail._p_checked_settings(text, text, jsonb) is
'Gives settings in the form in which they are kept; null stays, for the default.
Errors: PM003 no such setting, not of its type, out of range.';
