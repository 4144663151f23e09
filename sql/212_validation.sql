-- Whether a body is what its message type says.
--
-- Bodies are checked once, when they are delivered. Text is read as UTF-8, with or without a byte order mark, or as
-- UTF-16 when it begins with the byte order mark of that, as T-SQL programs send it.

create function parley.body_text(body bytea) returns text
language plpgsql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is_little boolean := substr(body, 1, 2) = '\xfffe';
  v_text text := '';
  v_high integer := 0;
  v_unit integer;
begin
  if substr(body, 1, 3) = '\xefbbbf' then
    return convert_from(substr(body, 4), 'UTF8');
  elsif not v_is_little and substr(body, 1, 2) <> '\xfeff' then
    return convert_from(body, 'UTF8');
  end if;
  for i in 1 .. octet_length(body) / 2 - 1 loop
    v_unit := case
      when v_is_little then get_byte(body, 2 * i) + 256 * get_byte(body, 2 * i + 1)
      else 256 * get_byte(body, 2 * i) + get_byte(body, 2 * i + 1)
    end;
    if v_unit between 55296 and 56319 then
      v_high := v_unit;
    elsif v_unit between 56320 and 57343 and v_high > 0 then
      v_text := v_text || chr(65536 + (v_high - 55296) * 1024 + v_unit - 56320);
      v_high := 0;
    else
      v_text := v_text || chr(v_unit);
    end if;
  end loop;
  return v_text;
end
$$;

comment on function parley.body_text(bytea) is
'Gives a message body as text: UTF-8, or UTF-16 when it begins with a byte order mark.
Errors: 22021 when it is neither.';

-- Not ours, so it is planned as anything else of its database: SEND and what accepts from afar scan no table from end to end, which can be the best way
-- through a small one, and compile nothing. The options are named here so that they come back at the end; what a session has set for itself is not known.
create function parley._p_call_validation(validation_function oid, body bytea) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = on
set jit = on
set plan_cache_mode = auto
as $$
declare
  v_is_valid boolean;
  v_schema name;
  v_name name;
begin
  set local enable_seqscan to default;
  set local jit to default;
  set local plan_cache_mode to default;
  -- A function that was dropped has no name to put in, which is a data exception: nothing is good any more.
  select n.nspname, p.proname into v_schema, v_name
  from pg_proc as p
  join pg_namespace as n on n.oid = p.pronamespace
  where p.oid = validation_function;
  execute format('select %I.%I($1)', v_schema, v_name) into v_is_valid using body;
  return v_is_valid;
end
$$;

comment on function parley._p_call_validation(oid, bytea) is
'Asks a validation function, under the planner''s settings of the server, the database or the role.
Errors: whatever it raises.';

create function parley._p_is_valid(message_type parley._p_message_type, body bytea) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is_valid boolean := true;
begin
  case message_type.validation
    when 'N' then
      return true;
    when 'E' then
      return body is null;
    when 'X' then
      if body is null or not xml_is_well_formed_document(parley.body_text(body)) then
        return false;
      end if;
    when 'J' then
      if body is null then
        return false;
      end if;
      perform parley.body_text(body)::jsonb;
    else
      null;
  end case;
  if message_type.validation_function is not null then
    v_is_valid := parley._p_call_validation(message_type.validation_function, body);
  end if;
  return coalesce(v_is_valid, false);
exception
  when data_exception or program_limit_exceeded or raise_exception then
    return false;
end
$$;

comment on function parley._p_is_valid(parley._p_message_type, bytea) is
'Tells whether a body is good for a message type (spec 2.2). A validation function that raises a data exception says no.';
