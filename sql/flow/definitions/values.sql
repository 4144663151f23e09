-- Values of properties: which names there are, and the canonical texts that are compared.
--
-- internal/flow/match has the same rules in Go, and a test holds the two to each other. Nothing here is asked for each
-- message but _p_canonical, for the properties that filters name.

create function parley_flow._p_is_property_name(name text) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select octet_length(name) between 1 and 1000 and name !~ '[[:cntrl:]]' and name ~ '^[^#]+(#[^#]+)?$'
$$;

comment on function parley_flow._p_is_property_name(text) is
'Reports whether this may be the name of a property: namespace#Name, or without # one of the engine.';

create function parley_flow._p_canonical_number(value text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_value constant text := btrim(value, E' \t\r\n');
begin
  -- A number of any length is a text that is compared, but none with so many digits is worth computing with.
  if v_value ~ '^[-+]?([0-9]{1,200}([.][0-9]{0,200})?|[.][0-9]{1,200})$' then
    return trim_scale(v_value::numeric)::text;
  elsif v_value ~ '^[-+]?([0-9]{1,100}([.][0-9]{0,100})?|[.][0-9]{1,100})[eE][-+]?[0-9]{1,2}$' then
    return trim_scale(v_value::numeric)::text;
  end if;
  return value;
end
$$;

comment on function parley_flow._p_canonical_number(text) is
'Gives a number without exponent, superfluous zeros and plus; another text as it is.';

create function parley_flow._p_is_time(value text) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$ select value ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{6}Z$' $$;

comment on function parley_flow._p_is_time(text) is 'Reports whether a canonical text is that of a time.';

create function parley_flow._p_canonical_time(value text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_value text := btrim(value, E' \t\r\n');
  v_canonical text;
begin
  -- A day with an offset begins at its midnight; digits behind the microsecond are cut.
  v_value := regexp_replace(v_value, '^([0-9]{4}-[0-9]{2}-[0-9]{2})(Z|[-+][0-9]{2}:?[0-9]{2})$',
    E'\\1T00:00:00\\2');
  v_value := regexp_replace(v_value, '([.][0-9]{6})[0-9]{1,20}(Z|[-+])', E'\\1\\2');
  -- An offset has to be there: a time without one means another to everybody.
  if v_value ~ ('^[1-9][0-9]{3}-[01][0-9]-[0-3][0-9][T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?'
      || '(Z|[-+](0[0-9]|1[0-4]):?[0-5][0-9])$') then
    begin
      v_canonical := to_char(v_value::timestamptz at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');
    exception
      when datetime_field_overflow or invalid_datetime_format then
        return value;
    end;
  end if;
  return case when parley_flow._p_is_time(v_canonical) then v_canonical else value end;
end
$$;

comment on function parley_flow._p_canonical_time(text) is
'Gives a time of ISO 8601 that has an offset in UTC, with six digits of a second, and a day that has one as its
midnight; another text as it is.';

create function parley_flow._p_canonical(value text, type text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if type = 'text' then
    return value;
  elsif type in ('integer', 'number') then
    return parley_flow._p_canonical_number(value);
  elsif type = 'boolean' then
    return case
      when btrim(lower(value collate "C"), E' \t\r\n') in ('true', '1') then 'true'
      when btrim(lower(value collate "C"), E' \t\r\n') in ('false', '0') then 'false'
      else value end;
  elsif type = 'timestamp' then
    return parley_flow._p_canonical_time(value);
  end if;
  return value;
end
$$;

comment on function parley_flow._p_canonical(text, text) is
'Gives the text by which a value of a property is compared. A value that cannot be read as the type is compared as it
is.
Arguments: value; type, text, integer, number, boolean or timestamp.';

create function parley_flow._p_is_number(value text) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$ select value ~ '^-?[0-9]{1,200}([.][0-9]{1,200})?$' $$;

comment on function parley_flow._p_is_number(text) is 'Reports whether a canonical text is that of a number.';

create function parley_flow._p_is_integer(value text) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$ select value ~ '^-?[0-9]{1,18}$' $$;

comment on function parley_flow._p_is_integer(text) is
'Reports whether a canonical text is that of an integer of 64 bits, whose bits can be asked for.';

create function parley_flow._p_compare(value text, operand text, type text) returns integer
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if type in ('integer', 'number') then
    if not parley_flow._p_is_number(value) or not parley_flow._p_is_number(operand) then
      return null;
    end if;
    return sign(value::numeric - operand::numeric)::integer;
  elsif type = 'timestamp' and not (parley_flow._p_is_time(value) and parley_flow._p_is_time(operand)) then
    return null;
  end if;
  -- Canonical times compare as their bytes do.
  return case
    when value collate "C" < operand collate "C" then -1 when value collate "C" > operand collate "C" then 1 else 0
  end;
end
$$;

comment on function parley_flow._p_compare(text, text, text) is
'Compares two canonical texts by the type of a property: -1, 0 or 1; null when one of them is not of the type.';

create function parley_flow._p_satisfies(value text, operator text, operand text, operands text[], type text)
returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if value is null then
    return false;
  end if;
  return coalesce(case operator
    when '=' then value = operand
    when 'exists' then true
    when '<>' then value <> operand
    when '<' then parley_flow._p_compare(value, operand, type) < 0
    when '<=' then parley_flow._p_compare(value, operand, type) <= 0
    when '>' then parley_flow._p_compare(value, operand, type) > 0
    when '>=' then parley_flow._p_compare(value, operand, type) >= 0
    when '&' then case
      when parley_flow._p_is_integer(value) and parley_flow._p_is_integer(operand)
        then (value::bigint & operand::bigint) <> 0
    end
    when 'in' then value = any (operands)
    when 'prefix' then starts_with(value, operand)
  end, false);
end
$$;

comment on function parley_flow._p_satisfies(text, text, text, text[], text) is
'Reports whether the canonical text of a property satisfies a predicate; null, which is a property that is not promoted,
satisfies none.
Arguments: value; operator; operand and, of in, operands, canonical too; type, of the property.';
