-- Whether a body is valid for its message type.
--
-- Bodies are checked once, when they are delivered. Text is read as UTF-8, with or without a byte order mark, or as
-- UTF-16 when it begins with the byte order mark of that, as T-SQL programs send it.

create function parley.body_text(body bytea) returns text
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
declare
  v_body bytea;
  v_low integer;
  v_parts text[] := array[]::text[];
  v_text text := '';
  v_high integer := 0;
  v_unit integer;
begin
  if substr(body, 1, 3) = E'\\xefbbbf' then
    return convert_from(substr(body, 4), 'UTF8');
  elsif substr(body, 1, 2) not in (E'\\xfffe', E'\\xfeff') then
    return convert_from(body, 'UTF8');
  end if;
  v_low := case when substr(body, 1, 2) = E'\\xfffe' then 0 else 1 end;
  -- A copy in memory: of a stored value each get_byte would unpack all of it.
  v_body := body || ''::bytea;
  for i in 1 .. octet_length(v_body) / 2 - 1 loop
    v_unit := get_byte(v_body, 2 * i + v_low) + 256 * get_byte(v_body, 2 * i + 1 - v_low);
    case
      when v_unit between 56320 and 57343 and v_high > 0 then
        v_text := v_text || chr(65536 + (v_high - 55296) * 1024 + v_unit - 56320);
        v_high := 0;
      when v_unit = 0 then
        perform convert_from(E'\\x00', 'UTF8');
      -- Half of a pair alone.
      when v_high > 0 or v_unit between 56320 and 57343 then
        perform convert_from(E'\\xeda080', 'UTF8');
      when v_unit between 55296 and 56319 then
        v_high := v_unit;
      else
        v_text := v_text || chr(v_unit);
    end case;
    -- Appending copies the text, so it is kept short.
    if i % 1024 = 0 then
      v_parts := v_parts || v_text;
      v_text := '';
    end if;
  end loop;
  if v_high > 0 then
    perform convert_from(E'\\xeda080', 'UTF8');
  end if;
  return array_to_string(v_parts || v_text, '');
exception
  -- One body that is no text must not fail the RECEIVE that reads it, with all that came in the same statement.
  when data_exception then
    return null;
end
$$;

comment on function parley.body_text(bytea) is
'Gives a message body as text: UTF-8, or UTF-16 when it begins with a byte order mark, and null when it is neither:
bytes that are no text, half of a surrogate pair, a NUL. The time it takes grows with the length of the body.
Arguments: body.
Errors: none.';

create function parley._p_xml_text(body bytea) returns text
language sql immutable strict
set search_path = pg_catalog, pg_temp
as $$
  select case substr(body, 1, 4)
    -- A document in UTF-16 without a mark: the first bracket tells it, and nothing else may begin a document.
    when substr(body, 1, 1) || E'\\x00'::bytea || substr(body, 3, 1) || E'\\x00'::bytea
      then parley.body_text(E'\\xfffe'::bytea || body)
    when E'\\x00'::bytea || substr(body, 2, 1) || E'\\x00'::bytea || substr(body, 4, 1)
      then parley.body_text(E'\\xfeff'::bytea || body)
    else parley.body_text(body)
  end
$$;

comment on function parley._p_xml_text(bytea) is
'Gives the text of a body that is to be XML, as body_text does, also of one in UTF-16 that has no byte-order mark: so
T-SQL sends a value of nvarchar. XML has a character of one byte in its first two places.
Arguments: body.
Errors: none.';

create function parley._p_validation_function(schema_name text, name text) returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select p.oid
    from pg_proc as p
    join pg_namespace as n on n.oid = p.pronamespace
    where n.nspname = schema_name
      and p.proname = _p_validation_function.name
      and oidvectortypes(p.proargtypes) = 'bytea'
  );
end
$$;

comment on function parley._p_validation_function(text, text) is
'Finds the validation function that has a name; null when there is none. Unlike to_regprocedure it asks for no right.';

create function parley._p_is_own_validation(message_type parley._p_message_type, validation_function oid)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select p.proowner = message_type.validation_owner or parley._p_may_act_as(p.proowner, n.nspowner)
    from pg_proc as p
    cross join pg_namespace as n
    where p.oid = validation_function and n.nspname = 'parley'
  );
end
$$;

comment on function parley._p_is_own_validation(parley._p_message_type, oid) is
'Reports whether a function belongs to the role that owned the message type''s function when it was set, or to one
that may act as the owner of the broker; null when there is no such function.';

create function parley._p_version(validation_function oid) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select p.xmin::text || ' ' || n.xmin::text
    from pg_proc as p
    join pg_namespace as n on n.oid = p.pronamespace
    where p.oid = validation_function
  );
end
$$;

comment on function parley._p_version(oid) is
'Gives the transactions that wrote a function''s row in the catalog, and that of its schema: while both are the same,
so is all that the function is, its name included. Null when it is gone.';

-- Not ours, so it is planned as anything else of its database: SEND and what accepts from afar scan no table from end
-- to end, which can be the best way through a small one, and compile nothing. The options are named here so that they
-- come back at the end; what a session has set for itself is not known.
--
-- Its owner may take SECURITY DEFINER away while we ask, or give its name to another function by renaming its schema.
-- So the version that was checked is compared once more after the executor has taken the function up and before it is
-- called: the version in between cannot be another.
-- It is compared twice: PostgreSQL reads the function's row for the call from a cache, which it renews where it takes a
-- lock that it does not hold yet; the second time it holds all of them, so nothing is renewed between its snapshot and
-- the call. The subquery keeps the planner from calling an immutable function before that.
-- A snapshot that is kept sees old versions only, so there only a function that may act as the owner of
-- the schema anyway is called.
create function parley._p_call_validation(message_type parley._p_message_type, body bytea) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = on
set jit = on
set plan_cache_mode = auto
as $$
declare
  v_is_valid boolean;
  v_version text;
  v_schema name;
  v_name name;
  v_owner oid;
  v_function oid;
begin
  set local enable_seqscan to default;
  set local jit to default;
  set local plan_cache_mode to default;
  v_function := parley._p_validation_function(message_type.validation_schema, message_type.validation_name);
  v_version := parley._p_version(v_function);
  select n.nspname, p.proname, p.proowner into v_schema, v_name, v_owner
  from pg_proc as p
  join pg_namespace as n on n.oid = p.pronamespace
  where p.oid = v_function;
  if parley._p_may_validate(message_type.validation_setter, v_function) is not true
    or parley._p_is_own_validation(message_type, v_function) is not true then
    return false;
  end if;
  if parley._p_keeps_snapshot()
    and parley._p_may_act_as(
      v_owner, (select n.nspowner from pg_namespace as n where n.nspname = 'parley')
    ) is not true then
    raise exception using
      errcode = 'feature_not_supported',
      message = format('a message of type "%s" is not sent at this isolation level', message_type.name),
      detail = format(
        'Its validation function %s belongs to a role other than the owner of the broker.',
        v_function::regprocedure
      ),
      hint = 'Begin with BEGIN ISOLATION LEVEL READ COMMITTED; parley diagnose names who has set another default.';
  end if;
  execute format(
    'select case when parley._p_version(%1$s) = %2$L and parley._p_version(%1$s) = %2$L then %3$I.%4$I(b.body) end'
    ' from (select $1 as body offset 0) as b',
    v_function, v_version, v_schema, v_name
  )
  into v_is_valid
  using body;
  return v_is_valid;
end
$$;

comment on function parley._p_call_validation(parley._p_message_type, bytea) is
'Asks the validation function of a message type, under the planner''s settings of the server, the database or the role,
and as the owner of the schema, whoever calls: the daemon may log in as a role with more rights.
False when it is gone, or may not run.
Errors: 0A000 in a transaction that keeps its snapshot, and whatever the function raises.';

create function parley._p_validated_bytes_max() returns integer
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select 16 * 1024 * 1024
$$;

comment on function parley._p_validated_bytes_max() is
'Gives the size in bytes of the largest body that is parsed or shown to a validation function;
a larger one is refused unread.';

create function parley._p_is_valid(message_type parley._p_message_type, body bytea) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is_valid boolean := true;
begin
  if message_type.validation not in ('N', 'E') and octet_length(body) > parley._p_validated_bytes_max() then
    return false;
  end if;
  case message_type.validation
    when 'N' then
      return true;
    when 'E' then
      return body is null;
    when 'X' then
      -- An empty body is none, and good for XML too. A body is a value of xml: fragments and text are ones (spec 2.2).
      if body is not null and xml_is_well_formed_content(parley._p_xml_text(body)) is not true then
        return false;
      end if;
    when 'J' then
      if parley.body_text(body)::jsonb is null then
        return false;
      end if;
    else
      null;
  end case;
  if message_type.validation_name is not null then
    v_is_valid := parley._p_call_validation(message_type, body);
  end if;
  return coalesce(v_is_valid, false);
exception
  when data_exception or program_limit_exceeded or raise_exception then
    return false;
end
$$;

comment on function parley._p_is_valid(parley._p_message_type, bytea) is
'Reports whether a body is good for a message type (spec 2.2). A validation function that
raises a data exception says no.';

create function parley._p_count_valid(message_type parley._p_message_type, bodies bytea[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_count integer := 0;
  v_body bytea;
begin
  if not message_type.is_validated or bodies is null then
    return cardinality(bodies);
  end if;
  foreach v_body in array bodies loop
    exit when not parley._p_is_valid(message_type, nullif(v_body, ''));
    v_count := v_count + 1;
  end loop;
  return v_count;
end
$$;

comment on function parley._p_count_valid(parley._p_message_type, bytea[]) is
'Gives how many messages come before the first whose body is not good for its type: those are delivered (spec 2.2).';

create function parley._p_invalid(
  message_type parley._p_message_type, body bytea, is_for_sender boolean
) returns parley._p_error
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is_xml boolean := message_type.validation = 'X';
  v_length text := octet_length(body)::text;
  v_max text := parley._p_validated_bytes_max()::text;
begin
  if message_type.validation <> 'E' and octet_length(body) > parley._p_validated_bytes_max() then
    return case
      when v_is_xml and is_for_sender then parley._p_error_of(9615, 'too long', message_type.name, v_length, v_max)
      when v_is_xml then parley._p_error_of(9616, 'too long', message_type.name, v_length, v_max)
      else parley._p_error_of(8430, 'too long', message_type.name, v_length, v_max)
    end;
  end if;
  return case
    when v_is_xml and is_for_sender then parley._p_error_of(9615, 'not valid', message_type.name)
    when v_is_xml then parley._p_error_of(9616, 'not valid', message_type.name)
    else parley._p_error_of(8430, 'not valid', message_type.name)
  end;
end
$$;

comment on function parley._p_invalid(parley._p_message_type, bytea, boolean) is
'Gives the Error for a body that is not good for its message type: 8430, or, for XML, 9615 for who sent it and 9616
for who received it (spec 2.2).';

create function parley._p_append_valid(
  endpoint parley._p_endpoint, queue parley._p_queue, message_type parley._p_message_type, bodies bytea[],
  trace_context text
) returns bytea
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_valid integer := parley._p_count_valid(message_type, bodies);
begin
  if v_valid > 0 then
    perform parley._p_append(
      endpoint.endpoint_id, parley._p_lane(queue.queue_id, endpoint.priority), queue.position_sequence,
      message_type.message_type_id,
      case when v_valid < cardinality(bodies) then bodies[: array_lower(bodies, 1) + v_valid - 1] else bodies end,
      trace_context
    );
    perform parley._p_wake_readers(queue.queue_id, queue.wakeup_sequence);
  end if;
  return case when v_valid < cardinality(bodies) then coalesce(bodies[array_lower(bodies, 1) + v_valid], '') end;
end
$$;

comment on function parley._p_append_valid(
  parley._p_endpoint, parley._p_queue, parley._p_message_type, bytea[], text
) is
'Appends messages for an endpoint to its queue, up to the first whose body is not good for its type, and gives
that body; null when all are good.';
