-- PUT of a message that is not due yet, or that has a deduplication key (conversation/deduplication.sql): what the
-- role put with it before is not put again.
--
-- These go as functions of the owner, in the name of the caller.

create function parley._p_put_later(
  caller oid, queue text, body bytea, key text, priority integer, deliver_at timestamptz, trace_context text
) returns parley.sent_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message_id bigint := parley._p_put(caller, queue, array[body], key, priority, deliver_at, trace_context);
begin
  return row(
    false, null, v_message_id,
    case when v_message_id is null then currval('parley._p_delayed_message_delayed_id_seq') end, null
  )::parley.sent_message;
end
$$;

comment on function parley._p_put_later(oid, text, bytea, text, integer, timestamptz, text) is
'Puts a message into a simple queue, in the name of the caller, and gives its message_id, or its delayed_id while it is
not due.
Errors: those of put.';

create function parley._p_put_once(
  caller oid, queue text, body bytea, key text, priority integer, deliver_at timestamptz, trace_context text,
  deduplication_key text
) returns parley.sent_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(caller, queue, 'SEND');
  v_first parley._p_deduplication_key := parley._p_use_key(
    v_queue.queue_id, 'PUT', deduplication_key, v_queue.deduplication_seconds, pg_get_userbyid(caller)
  );
  v_sent parley.sent_message;
begin
  if v_first.is_answered then
    return row(
      true, null, v_first.message_id, v_first.delayed_id, v_first.used_at
    )::parley.sent_message;
  end if;
  v_sent := parley._p_put_later(caller, queue, body, key, priority, deliver_at, trace_context);
  return parley._p_record_key(v_first, null, message_id => v_sent.message_id, delayed_id => v_sent.delayed_id);
end
$$;

comment on function parley._p_put_once(oid, text, bytea, text, integer, timestamptz, text, text) is
'Puts a message with a deduplication key, in the name of the caller.
Errors: those of put.';

create function parley._p_put_later_or_once(
  queue text, body bytea, key text, priority integer, deliver_at timestamptz, trace_context text,
  deduplication_key text, caller parley.caller
) returns parley.sent_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_context text := parley._p_trace_context(trace_context);
begin
  if deduplication_key is not null then
    return parley._p_put_once(v_caller, queue, body, key, priority, deliver_at, v_context, deduplication_key);
  end if;
  return parley._p_put_later(v_caller, queue, body, key, priority, deliver_at, v_context);
end
$$;

comment on function parley._p_put_later_or_once(
  text, bytea, text, integer, timestamptz, text, text, parley.caller
) is
'Puts a message that is not due yet, or that has a deduplication key, for parley.put.
Errors: those of put.';
