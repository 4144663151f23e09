-- PUT: how a message gets into a simple queue.
--
-- As SEND does it (send/send.sql): one statement reads the queue and checks the rights of the argument caller, whose
-- type demands current_user where the call stands (base/roles.sql), another appends. Where the first finds nothing,
-- _p_put finds out why, or does the rest. An insert into a table whose trigger puts cost a twentieth more.
-- A put that begins after another's commit comes later, as the position is drawn from the queue's sequence.
-- Locks: none but that on the sequence, which shows readers who is under way.

create function parley._p_require_room_for_delayed(queue parley._p_queue) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_delayed record;
  v_waiting record;
  v_is_full boolean;
begin
  if queue.quota_sequence is null then
    return true;
  end if;
  select count(*) as messages, coalesce(sum(o.bytes), 0) as bytes into v_delayed
  from (
    select coalesce(octet_length(d.body), 0) as bytes
    from parley._p_delayed_message as d
    where d.queue_id = queue.queue_id
    limit queue.quota_messages + 1
  ) as o;
  v_is_full := v_delayed.messages > queue.quota_messages or v_delayed.bytes > queue.quota_bytes;
  -- Nothing refuses them when they are due: what waits then is at most as much again.
  if v_is_full is not true and not (parley._p_has_room(queue, 0)).room then
    v_waiting := parley._p_count_up_to(
      queue, 2 * queue.quota_messages + 1 - v_delayed.messages, 2 * queue.quota_bytes + 1 - v_delayed.bytes::bigint
    );
    v_is_full := v_waiting.messages + v_delayed.messages > 2 * queue.quota_messages
      or v_waiting.bytes + v_delayed.bytes > 2 * queue.quota_bytes;
  end if;
  if v_is_full then
    found := parley._p_raise(10928, 'quota', queue.lookup_name);
  end if;
  return true;
end
$$;

comment on function parley._p_require_room_for_delayed(parley._p_queue) is
'Refuses what was just put, when more than the quota of the queue is not due yet, or more than twice the quota with what
waits already: nobody is refused when it is due. It counts, up to that.
Errors: 10928.';

create function parley._p_put(
  caller oid, queue text, bodies bytea[], key text, priority integer, deliver_at timestamptz, trace_context text
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(caller, queue, 'SEND');
begin
  found := parley._p_require_range('priority', priority, 1, 10);
  found := parley._p_require_range('the number of characters of key', coalesce(length(key), 0), 0, 256);
  found := parley._p_require_finite(deliver_at);
  found := parley._p_require_one_dimension(bodies);
  if not v_queue.is_enqueue_enabled then
    found := parley._p_raise(9617, 'disabled', v_queue.lookup_name);
  end if;
  if v_queue.priorities & (1 << priority) = 0 then
    update parley._p_queue as q
    set priorities = q.priorities | (1 << _p_put.priority)
    where q.queue_id = v_queue.queue_id and q.priorities & (1 << _p_put.priority) = 0;
  end if;
  if deliver_at > clock_timestamp() then
    insert into parley._p_delayed_message (queue_id, due_at, priority, message_key, body, trace_context)
    select v_queue.queue_id, _p_put.deliver_at, _p_put.priority, _p_put.key, nullif(b.body, ''), _p_put.trace_context
    from unnest(bodies) with ordinality as b (body, number)
    order by b.number;
    found := parley._p_require_room_for_delayed(v_queue);
    perform parley._p_expect_due('parley._p_next_due', deliver_at);
    return null;
  end if;
  insert into parley._p_message (
    position, endpoint_id, enqueued_at, lane, message_type_id, body, message_key, trace_context
  )
  select nextval(v_queue.position_sequence) * 1024, parley._p_key_id(v_queue.queue_id, key), clock_timestamp(),
    parley._p_lane(v_queue.queue_id, priority), 14, nullif(b.body, ''), key, _p_put.trace_context
  from unnest(bodies) with ordinality as b (body, number)
  order by b.number;
  perform parley._p_admit(parley._p_lane(v_queue.queue_id, priority), v_queue.wakeup_sequence, 0);
  return case when cardinality(bodies) > 0 then currval(v_queue.position_sequence) * 1024 end;
end
$$;

comment on function parley._p_put(oid, text, bytea[], text, integer, timestamptz, text) is
'Puts messages into a simple queue in their order, or has them wait until they are due. Gives the message_id of the last
one, null when there is none, or it waits.
Errors: 208 not found, 229 not allowed, 8402 no simple queue, priority, key, deliver_at, dimensions, 9609 malformed
name, 9617 disabled, 10928 full.';

create function parley._p_put_one(
  caller parley.caller, queue text, body bytea, key text, priority integer, trace_context text
) returns parley.sent_message
language plpgsql
set search_path = pg_catalog, pg_temp
set jit = off
as $$
begin
  return row(
    false, null,
    parley._p_put(
      parley._p_caller(caller), queue, array[body], key, priority, null,
      case when trace_context is not null then parley._p_trace_context(trace_context) end
    ),
    null, null
  )::parley.sent_message;
end
$$;

comment on function parley._p_put_one(parley.caller, text, bytea, text, integer, text) is
'Puts a message the long way, and gives what came of it.
Errors: those of parley.put.';

create function parley.put(
  queue text, body bytea, key text default null, priority integer default 5, deliver_at timestamptz default null,
  trace_context text default null, deduplication_key text default null,
  caller parley.caller default current_user
) returns parley.sent_message
language plpgsql security definer
set enable_seqscan = off
as $$
declare
  v_queue_id pg_catalog.int4;
  v_position pg_catalog.int8;
  v_wakeup pg_catalog.regclass;
begin
  if deliver_at is not null or deduplication_key is not null then
    return parley._p_put_later_or_once($1, $2, $3, $4, $5, $6, $7, caller);
  end if;
  -- The position is drawn here, where it costs no expression of its own to give it back.
  select q.queue_id, pg_catalog.nextval(q.position_sequence) operator(pg_catalog.*) 1024::pg_catalog.int8,
    q.wakeup_sequence
  into v_queue_id, v_position, v_wakeup
  from parley._p_queue as q
  where q.lookup_name operator(pg_catalog.=) $1
    and q.is_simple
    and q.is_enqueue_enabled
    and $4 operator(pg_catalog.>=) 1
    and $4 operator(pg_catalog.<=) 10
    -- The first of a priority updates the queue.
    and q.priorities operator(pg_catalog.&) (1 operator(pg_catalog.<<) $4) operator(pg_catalog.<>) 0
    and coalesce(pg_catalog.length($3), 0) operator(pg_catalog.<=) 256
    and (
      pg_catalog.pg_has_role(caller, q.owner, 'usage')
      or exists (
        select
        from parley._p_permission as p
        where p.class operator(pg_catalog.=) 'queue'
          and p.object_id operator(pg_catalog.=) q.queue_id
          and p.permission operator(pg_catalog.=) 'SEND'
          and p.grantee operator(pg_catalog.<>) 0::pg_catalog.oid
          and pg_catalog.pg_has_role(caller, p.grantee, 'usage')
      )
    );
  if not found then
    return parley._p_put_one(caller, $1, $2, $3, $4, $6);
  end if;
  insert into parley._p_message (
    position, endpoint_id, enqueued_at, lane, message_type_id, body, trace_context, message_key
  )
  values (
    v_position,
    -- That of no key is written out as _p_key_id gives it, since most puts have none.
    case
      when $3 is null
        then '-4611686018427387904'::pg_catalog.int8
          operator(pg_catalog.-) (v_queue_id::pg_catalog.int8 operator(pg_catalog.<<) 31)
      else parley._p_key_id(v_queue_id, $3)
    end,
    case
      when pg_catalog.pg_sequence_last_value(v_wakeup) operator(pg_catalog.>) 0::pg_catalog.int8
        then parley._p_admit(parley._p_lane(v_queue_id, $4), v_wakeup)
      else pg_catalog.clock_timestamp()
    end,
    parley._p_lane(v_queue_id, $4),
    14,
    case when pg_catalog.octet_length($2) operator(pg_catalog.>) 0 then $2 end,
    case when $6 is not null then parley._p_trace_context($6) end,
    $3
  );
  return row(false, null, v_position, null, null)::parley.sent_message;
end
$$;

comment on function parley.put(text, bytea, text, integer, timestamptz, text, text, parley.caller) is
'Puts a message into a simple queue, in this transaction.
Arguments: queue; body, null or empty for none; key, messages of one key are taken in their order, one reader at a time
(null: no order with others), of at most 256 characters; priority, 10 first, 1 last; deliver_at, not before that time
(null, or past: now); trace_context, a W3C traceparent, or one with a blank and a tracestate behind it, 600 characters
at most, which TAKE gives back: what is malformed or longer is left out;
deduplication_key, 1 to 256 characters (null: none). When this role put a message there with the same one before,
nothing is put, whatever the body, and what came of the first is returned. It counts for deduplication_seconds of the
queue, and for the role that puts alone. A session that uses one waits for another session of the role that is using it
until the transaction of that one ends.
Returns what came of the message: message_id, which parley.cancel takes, or delayed_id while it is not due, which
parley.withdraw_message takes; sent_at is known with a deduplication key alone.
Errors: 208 not found, 229 not allowed, 8402 no simple queue, priority out of range, key too long, deliver_at infinite,
deduplication_key empty or too long, 9609 malformed name, 9617 the queue is disabled, 10928 the queue is full.
Source: spec P32.';

create function parley.put(
  queue text, body text, key text default null, priority integer default 5, deliver_at timestamptz default null,
  trace_context text default null, deduplication_key text default null
) returns parley.sent_message
language sql
as $$
  select parley.put($1, pg_catalog.convert_to($2, 'UTF8'), $3, $4, $5, $6, $7, caller => current_user)
$$;

comment on function parley.put(text, text, text, integer, timestamptz, text, text) is
'Puts a message whose body is text into a simple queue; it travels as UTF-8.
Arguments: as put with a bytea body.
Errors: those of put with a bytea body.
Source: spec P32.';

create function parley.put(
  queue text, body jsonb, key text default null, priority integer default 5, deliver_at timestamptz default null,
  trace_context text default null, deduplication_key text default null
) returns parley.sent_message
language sql
as $$
  select parley.put($1, pg_catalog.convert_to($2::pg_catalog.text, 'UTF8'), $3, $4, $5, $6, $7, caller => current_user)
$$;

comment on function parley.put(text, jsonb, text, integer, timestamptz, text, text) is
'Puts a JSON body into a simple queue, as UTF-8, as put with a bytea body.
Arguments: as put with a bytea body.
Errors: those of put with a bytea body.
Source: spec P32.';

create function parley.put_batch_binary(
  queue text, bodies bytea[], key text default null, priority integer default 5, deliver_at timestamptz default null,
  trace_context text default null,
  caller parley.caller default current_user
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  perform parley._p_put(
    parley._p_caller(caller), queue, coalesce(bodies, '{}'), key, priority, deliver_at,
    parley._p_trace_context(trace_context)
  );
end
$$;

comment on function parley.put_batch_binary(text, bytea[], text, integer, timestamptz, text, parley.caller) is
'Puts a message for each body into a simple queue, in the order of the array.
Arguments: queue; bodies; key, priority, deliver_at and trace_context of all of them, as in put.
Errors: those of put, and 8402 an array of several dimensions.
Source: spec P32.';

create function parley.put_batch(
  queue text, bodies text[], key text default null, priority integer default 5, deliver_at timestamptz default null,
  trace_context text default null
) returns void
language sql
as $$
  select parley.put_batch_binary($1, parley._p_utf8_bodies($2), $3, $4, $5, $6, caller => current_user)
$$;

comment on function parley.put_batch(text, text[], text, integer, timestamptz, text) is
'Puts a message for each text into a simple queue, in the order of the array.
Arguments: as put_batch_binary.
Errors: those of put_batch_binary.
Source: spec P32.';
