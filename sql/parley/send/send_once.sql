-- SEND with a deduplication key (conversation/deduplication.sql): what was sent before is not sent again.

create function parley._p_position_drawn(position_sequence regclass) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return currval(position_sequence) * 1024;
exception
  when object_not_in_prerequisite_state then
    return null;
end
$$;

comment on function parley._p_position_drawn(regclass) is
'Gives the last position that this session has drawn in a queue; null when it never has.';

create function parley._p_send_once(
  caller oid, handle uuid, message_type text, body bytea, key text, deliver_at timestamptz
) returns parley.sent_once
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint := parley._p_find_endpoint(handle, 'SEND');
  v_queue parley._p_queue;
  v_seconds integer;
  v_first parley._p_deduplication_key;
  v_position bigint;
  v_delayed bigint;
begin
  select q.* into v_queue
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  where s.service_id = v_endpoint.service_id;
  select s.deduplication_seconds into v_seconds
  from parley._p_service as s where s.service_id = v_endpoint.service_id;
  found := parley._p_require_permission(
    caller, 'RECEIVE', 'queue', v_queue.queue_id, v_queue.lookup_name, v_queue.owner
  );
  -- Before any row, as SEND does.
  perform pg_sequence_last_value('parley._p_broker_switch');
  v_first := parley._p_use_key(v_endpoint.service_id, 'SEND', key, v_seconds);
  if v_first.is_answered then
    return row(
      true, v_first.conversation_handle, v_first.message_id, v_first.delayed_id,
      v_first.used_at
    )::parley.sent_once;
  end if;
  v_delayed := parley._p_send_at(caller, handle, message_type, body, deliver_at, null);
  if v_delayed is null then
    select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle;
    v_position := parley._p_position_drawn((parley._p_find_target_queue(v_endpoint)).position_sequence);
    -- It may not have come so far.
    select m.position into v_position
    from parley._p_message as m
    where m.endpoint_id = v_endpoint.far_endpoint_id and m.position = v_position;
  end if;
  return parley._p_record_key(v_first, handle, v_position, v_delayed);
end
$$;

comment on function parley._p_send_once(oid, uuid, text, bytea, text, timestamptz) is
'Sends a message with a key, in the name of the caller.
Errors: those of send_once.';

create function parley.send_once(
  conversation_handle uuid, message_type text, body text, deduplication_key text,
  deliver_at timestamptz default null, caller parley.caller default parley.current_caller()
) returns parley.sent_once
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley._p_send_once(
    parley._p_caller(caller), conversation_handle, message_type, convert_to(body, 'UTF8'), deduplication_key, deliver_at
  );
end
$$;

comment on function parley.send_once(uuid, text, text, text, timestamptz, parley.caller) is
'Sends a text on a conversation, in this transaction, unless a message was sent with the same key before: then nothing
is sent, whatever the body, and what came of the first is returned. A key is of the sending service, over all of its
conversations, and counts for deduplication_seconds of the service. Who uses a key that somebody is using waits until
that transaction ends.
Arguments: conversation_handle; message_type; body, null or empty for none; deduplication_key, 1 to 256 characters;
deliver_at, as send_at (null: now).
Errors: those of send_at, 8402 deduplication_key null, empty or too long.
Source: spec 4.2.';

create function parley.send_binary_once(
  conversation_handle uuid, message_type text, body bytea, deduplication_key text,
  deliver_at timestamptz default null, caller parley.caller default parley.current_caller()
) returns parley.sent_once
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley._p_send_once(
    parley._p_caller(caller), conversation_handle, message_type, body, deduplication_key, deliver_at
  );
end
$$;

comment on function parley.send_binary_once(uuid, text, bytea, text, timestamptz, parley.caller) is
'Sends bytes on a conversation once, as send_once sends a text.
Arguments: as send_once.
Errors: those of send_once.
Source: spec 4.2.';
