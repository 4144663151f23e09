-- PUT with a deduplication key (conversation/deduplication.sql): what the role put before is not put again.

create function parley._p_put_once(
  caller oid, queue text, body bytea, deduplication_key text, key text, priority integer, deliver_at timestamptz
) returns parley.sent_once
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(caller, queue, 'SEND');
  v_first parley._p_deduplication_key := parley._p_use_key(
    v_queue.queue_id, 'PUT', deduplication_key, v_queue.deduplication_seconds, pg_get_userbyid(caller)
  );
  v_before bigint;
  v_after bigint;
begin
  if v_first.is_answered then
    return row(
      true, null, v_first.message_id, v_first.delayed_id, v_first.used_at
    )::parley.sent_once;
  end if;
  v_before := nextval('parley._p_delayed_message_delayed_id_seq');
  found := parley._p_put(caller, queue, array[body], key, priority, deliver_at, null);
  v_after := currval('parley._p_delayed_message_delayed_id_seq');
  if v_after > v_before then
    return parley._p_record_key(v_first, null, delayed_id => v_after);
  end if;
  return parley._p_record_key(v_first, null, message_id => currval(v_queue.position_sequence) * 1024);
end
$$;

comment on function parley._p_put_once(oid, text, bytea, text, text, integer, timestamptz) is
'Puts a message with a deduplication key, in the name of the caller.
Errors: those of put_once.';

create function parley.put_once(
  queue text, body text, deduplication_key text, key text default null, priority integer default 5,
  deliver_at timestamptz default null, caller parley.caller default parley.current_caller()
) returns parley.sent_once
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley._p_put_once(
    parley._p_caller(caller), queue, convert_to(body, 'UTF8'), deduplication_key, key, priority, deliver_at
  );
end
$$;

comment on function parley.put_once(text, text, text, text, integer, timestamptz, parley.caller) is
'Puts a text into a simple queue, in this transaction, unless this role put a message there with the same deduplication
key before: then nothing is put, whatever the body, and what came of the first is returned. A key counts for
deduplication_seconds of the queue, and for the role that puts alone. Who uses a key that another session of the role is
using waits until that transaction ends.
Arguments: queue; body, null or empty for none; deduplication_key, 1 to 256 characters; key, priority and deliver_at, as
put.
Errors: those of put, 8402 deduplication_key null, empty or too long.
Source: spec P32.';

create function parley.put_binary_once(
  queue text, body bytea, deduplication_key text, key text default null, priority integer default 5,
  deliver_at timestamptz default null, caller parley.caller default parley.current_caller()
) returns parley.sent_once
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley._p_put_once(
    parley._p_caller(caller), queue, body, deduplication_key, key, priority, deliver_at
  );
end
$$;

comment on function parley.put_binary_once(text, bytea, text, text, integer, timestamptz, parley.caller) is
'Puts bytes into a simple queue once, as put_once puts a text.
Arguments: as put_once.
Errors: those of put_once.
Source: spec P32.';
