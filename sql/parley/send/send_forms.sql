-- SEND in its other forms: bodies of other types, several conversations at once, many messages at once.

-- Each call has one meaning for drivers that send parameters without a type (node-postgres, PDO, Ruby) and for those
-- that ask the server for the types (asyncpg, rust-postgres, postgres.js): of the forms of a name PostgreSQL then takes
-- the one with text. So the first argument of a name is a handle or a list in all its forms, the second is the message
-- type, and a body that is not text says its type: $3::bytea, $3::jsonb. The other
-- options are named arguments with defaults, the same in all forms of a name: two forms that differ in them alone would
-- not be unique.
-- Among arrays PostgreSQL prefers none: a list of texts and a list of bytes have a name each, and one form.

-- The forms that only call another one are put in line by the planner, where the call stands: they
-- cost what the other one costs.

create function parley.send(
  conversation_handle uuid, message_type text, body jsonb, trace_context text default null,
  deliver_at timestamptz default null, deduplication_key text default null
) returns parley.sent_message
language sql
as $$
  select parley.send(
    $1, $2, pg_catalog.convert_to($3::pg_catalog.text, 'UTF8'), $4, $5, $6, caller => current_user
  )
$$;

comment on function parley.send(uuid, text, jsonb, text, timestamptz, text) is
'Sends a JSON body as UTF-8 text. Errors: those of send with a bytea body.';

create function parley.send(
  conversation_handle uuid, message_type text, body json, trace_context text default null,
  deliver_at timestamptz default null, deduplication_key text default null
) returns parley.sent_message
language sql
as $$
  select parley.send(
    $1, $2, pg_catalog.convert_to($3::pg_catalog.text, 'UTF8'), $4, $5, $6, caller => current_user
  )
$$;

comment on function parley.send(uuid, text, json, text, timestamptz, text) is
'Sends a JSON body as it is written, as UTF-8. Errors: those of send with a bytea body.';

create function parley.send(
  conversation_handle uuid, message_type text, body xml, trace_context text default null,
  deliver_at timestamptz default null, deduplication_key text default null
) returns parley.sent_message
language sql
as $$
  select parley.send(
    $1, $2, pg_catalog.convert_to($3::pg_catalog.text, 'UTF8'), $4, $5, $6, caller => current_user
  )
$$;

comment on function parley.send(uuid, text, xml, text, timestamptz, text) is
'Sends an XML body as UTF-8 text. Errors: those of send with a bytea body.';

create function parley.send_to_all(
  conversation_handles uuid[], message_type text, body bytea, caller parley.caller default current_user
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_count integer := coalesce(cardinality(conversation_handles), 0);
  v_repeated uuid;
  v_handle uuid;
  v_position bigint;
  v_rest uuid[];
begin
  if pg_sequence_last_value('parley._p_trace_until') > 0 then
    perform parley._p_record_sent(h.handle, send_to_all.message_type, 1)
    from unnest(conversation_handles) as h (handle);
  end if;
  if v_count = 0 or array_position(conversation_handles, null) is not null then
    found := parley._p_raise(8441, 'null in a list', coalesce(array_position(conversation_handles, null), 0)::text);
  end if;
  select h.handle into v_repeated
  from unnest(conversation_handles) as h (handle)
  group by h.handle
  having count(*) > 1
  limit 1;
  if found then
    found := parley._p_raise(
      8451, 'repeated', v_repeated::text, array_position(conversation_handles, v_repeated)::text
    );
  end if;
  for v_position, v_handle in
    select h.position, h.handle
    from unnest(conversation_handles) with ordinality as h (handle, position)
    where not exists (
      select
      from parley._p_endpoint as e
      where e.conversation_handle = h.handle and (e.bound_version is null or not parley._p_is_hidden(e))
    )
    order by h.position
  loop
    -- A conversation that is remembered as closed gets its own number behind this.
    if not exists (select from parley._p_tombstone as t where t.conversation_handle = v_handle) then
      found := parley._p_raise(8435, 'in a list', v_handle::text, v_position::text);
    end if;
  end loop;
  -- Endpoint rows are locked in their order, so that two such sends cannot wait for each other.
  with ready as materialized (
    select i.conversation_handle, e.endpoint_id, e.far_endpoint_id, e.destination_position, e.destination_wakeup,
      e.destination_lane, e.usual_message_type_id
    from (
      select i.conversation_handle
      from parley._p_endpoint as i
      where i.conversation_handle = any (conversation_handles)
      order by i.endpoint_id
    ) as i
    cross join lateral parley._p_ready_to_send(i.conversation_handle, send_to_all.message_type, caller) as e
  ), sent as (
    insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body)
    select nextval(r.destination_position) * 1024, r.far_endpoint_id,
      parley._p_admit(r.destination_lane, r.destination_wakeup), r.destination_lane, r.usual_message_type_id,
      nullif(body, '')
    from ready as r
  )
  select array_agg(h.handle order by e.endpoint_id nulls first, h.position) into v_rest
  from unnest(conversation_handles) with ordinality as h (handle, position)
  left join parley._p_endpoint as e on e.conversation_handle = h.handle
  left join ready as r on r.conversation_handle = h.handle
  where r.conversation_handle is null;
  for i in 1 .. coalesce(cardinality(v_rest), 0) loop
    found := parley._p_send(v_caller, v_rest[i], send_to_all.message_type, array[body]);
  end loop;
end
$$;

comment on function parley.send_to_all(uuid[], text, bytea, parley.caller) is
'Sends the same message on several conversations: on all of them or, when one cannot send, on none.
Arguments: conversation_handles, each once, no null; message_type; body.
Errors: 8435 a handle not found, 8441 a handle is missing, 8451 a handle is repeated, and
those of send on one conversation.
Source: spec 4.2.';

create function parley.send_to_all(
  conversation_handles uuid[], message_type text default 'DEFAULT', body text default null
) returns void
language sql
as $$
  select parley.send_to_all($1, $2, pg_catalog.convert_to($3, 'UTF8'), caller => current_user)
$$;

comment on function parley.send_to_all(uuid[], text, text) is
'Sends the same text on several conversations: on all of them or on none.
Errors: those of send_to_all with a bytea body.
Source: spec 4.2.';

create function parley.send_batch_binary(
  conversation_handle uuid, message_type text, bodies bytea[], trace_context text default null,
  caller parley.caller default current_user
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_context text := case when trace_context is not null then parley._p_trace_context(trace_context) end;
  v_far bigint;
  v_lane integer;
  v_position regclass;
  v_wakeup regclass;
  v_type integer;
begin
  found := parley._p_require_one_dimension(bodies);
  if pg_sequence_last_value('parley._p_trace_until') > 0 then
    perform parley._p_settle_handle(conversation_handle);
    perform parley._p_record_sent(conversation_handle, message_type, coalesce(cardinality(bodies), 0));
  end if;
  if current_setting('parley.begun', true) <> ''
    and parley._p_send_begun(parley._p_caller(caller), conversation_handle, message_type, bodies, v_context) then
    return;
  end if;
  select e.far_endpoint_id, e.destination_lane, e.destination_position, e.destination_wakeup, e.usual_message_type_id
  into v_far, v_lane, v_position, v_wakeup, v_type
  from parley._p_ready_to_send(conversation_handle, message_type, caller) as e;
  if not found then
    found := parley._p_send(
      parley._p_caller(caller), conversation_handle, message_type, bodies, v_context
    );
    return;
  end if;
  perform parley._p_append(v_far, v_lane, v_position, v_type, bodies, v_context);
  if pg_sequence_last_value(v_wakeup) > 0 then
    perform parley._p_admit(v_lane, v_wakeup, 0);
  end if;
end
$$;

comment on function parley.send_batch_binary(uuid, text, bytea[], text, parley.caller) is
'Sends many messages of one type on one conversation, in the order of the array: the cheapest way to send.
Arguments: conversation_handle; message_type; bodies, null or empty ones stand for messages without body; an array of
none sends nothing; trace_context of each of them, as of send. Each body is validated by itself, in the order of the
array, as if it had been sent alone. The bodies before the first bad one are delivered, that one and those that follow
it are not, and an Error message comes back on the conversation.
Errors: those of send; 8402 an array of several dimensions.
Source: spec 2.2, 4.2, R-PERF-3.';

create function parley.send_batch(
  conversation_handle uuid, message_type text, bodies text[], trace_context text default null
) returns void
language sql
as $$
  select parley.send_batch_binary($1, $2, parley._p_utf8_bodies($3), $4, caller => current_user)
$$;

comment on function parley.send_batch(uuid, text, text[], text) is
'Sends many texts on one conversation, as UTF-8 and in the order of the array, as send_batch_binary sends bytes.
Arguments: conversation_handle; message_type; bodies, JSON as its text, null or empty ones stand for messages without
body; an array of none sends nothing; trace_context of each of them, as of send.
Errors: those of send; 8402 an array of several dimensions.
Source: spec 2.2, 4.2, R-PERF-3.';
