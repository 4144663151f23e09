-- SEND of a message that is not due yet, or that has a deduplication key.
--
-- These go as functions of the owner: what is not due waits (conversation/delayed_sends.sql), and the key is asked for
-- (conversation/deduplication.sql), in the name of the caller.

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
  caller oid, handle uuid, message_type text, body bytea, trace_context text, deliver_at timestamptz, key text
) returns parley.sent_message
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint := parley._p_find_shown(handle, 'SEND');
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
    )::parley.sent_message;
  end if;
  v_delayed := parley._p_send_at(caller, handle, message_type, body, deliver_at, trace_context);
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

comment on function parley._p_send_once(oid, uuid, text, bytea, text, timestamptz, text) is
'Sends a message with a deduplication key, in the name of the caller.
Errors: those of send.';

create function parley._p_send_later_or_once(
  conversation_handle uuid, message_type text, body bytea, trace_context text, deliver_at timestamptz,
  deduplication_key text, caller parley.caller default parley.current_caller()
) returns parley.sent_message
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_context text := parley._p_trace_context(trace_context);
begin
  if deduplication_key is not null then
    return parley._p_send_once(
      v_caller, conversation_handle, message_type, body, v_context, deliver_at, deduplication_key
    );
  end if;
  return row(
    false, conversation_handle, null,
    parley._p_send_at(v_caller, conversation_handle, message_type, body, deliver_at, v_context), null
  )::parley.sent_message;
end
$$;

comment on function parley._p_send_later_or_once(uuid, text, bytea, text, timestamptz, text, parley.caller) is
'Sends a message that is not due yet, or that has a deduplication key, for parley.send.
Errors: those of send.';
