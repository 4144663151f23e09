-- SEND: the hot path.
--
-- A send on a conversation that has sent before is two statements: one reads the sender's endpoint row and locks it FOR
-- KEY SHARE, the other appends the message to the far side's lane. As one statement it took a fourteenth more.
-- Invariants, and what keeps each:
--   no committed message is lost to END CONVERSATION   the row lock: END takes it FOR UPDATE and so waits for senders
--   a send that begins after another's commit comes later   the position is drawn from the queue's
--     sequence inside the statement that appends
--   rights and states are checked each time   the conditions of the statement; when any fails, _p_send
--     finds out which and why
--   the rights are those of the caller   the argument caller, whose type demands current_user where the call stands
--     (base/roles.sql); all that is asked here is asked for that role
-- Which conversations take the short way, and under whose rights, is asked in one place, _p_ready_to_send, which the
-- planner puts in line: 3 percent of the instructions of a SEND.
-- docs/internals/measurements.md lists the variants that were tried. Each further statement here costs about a tenth of
-- a bare INSERT; so does a pinned search_path, which is why every name and operator is qualified instead. An insert
-- into a table whose trigger sends cost a sixth more than this function.
--
-- Sequential scans are off, as in every statement that finds conversations: a session that planned this while there
-- were few would go on reading all of them, until they are analyzed.
--
-- Cost: one index probe, one row lock, one insert with two index entries, a read of the sequence of traces and of that
-- of the wake-up.

create function parley._p_ready_to_send(conversation_handle uuid, message_type text, caller name)
returns table (
  endpoint_id bigint, far_endpoint_id bigint, destination_lane integer, destination_position regclass,
  destination_wakeup regclass, usual_message_type_id integer
)
language sql stable
as $$
  select e.endpoint_id, e.far_endpoint_id, e.destination_lane, e.destination_position, e.destination_wakeup,
    e.usual_message_type_id
  from parley._p_endpoint as e
  where e.conversation_handle operator(pg_catalog.=) $1
    and e.usual_message_type_name operator(pg_catalog.=) $2
    and e.destination_lane is not null
    and (
      e.bound_version is null
      or not e.is_initiator
      or e.bound_version operator(pg_catalog.=) pg_catalog.pg_sequence_last_value('parley._p_catalog_version')
    )
    and pg_catalog.pg_has_role($3, e.sender_role, 'usage')
  for key share of e
$$;

comment on function parley._p_ready_to_send(uuid, text, name) is
'The endpoint on which SEND may append with nothing more to ask, locked; none where _p_send has to find out what to do.
The planner puts this in line: called by itself it fails, as it locks.
Arguments: conversation_handle; message_type; caller, whose rights count.';

create function parley._p_send_one(
  caller parley.caller, handle uuid, message_type text, body bytea, trace_context text
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  return parley._p_send(
    parley._p_caller(caller), handle, message_type, array[body],
    case when trace_context is not null then parley._p_trace_context(trace_context) end
  );
end
$$;

comment on function parley._p_send_one(parley.caller, uuid, text, bytea, text) is
'Sends a message the long way.
Errors: those of parley.send.';

create function parley._p_send_unusually(
  caller parley.caller, handle uuid, message_type text, body bytea, trace_context text
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  if pg_sequence_last_value('parley._p_trace_until') > 0 then
    perform parley._p_settle_handle(handle);
    perform parley._p_record_sent(handle, message_type, 1);
  end if;
  return current_setting('parley.begun', true) <> '' and parley._p_send_begun(
    parley._p_caller(caller), handle, message_type, array[body],
    case when trace_context is not null then parley._p_trace_context(trace_context) end
  );
end
$$;

comment on function parley._p_send_unusually(parley.caller, uuid, text, bytea, text) is
'Writes a message down that is traced, and sends it when it is of a dialog that a serializable transaction has begun;
gives whether it did that.
Errors: those of parley.send.';

create function parley.send(
  conversation_handle uuid, message_type text, body bytea, trace_context text default null,
  deliver_at timestamptz default null, deduplication_key text default null,
  caller parley.caller default current_user
) returns parley.sent_message
language plpgsql security definer
set enable_seqscan = off
as $$
declare
  v_far_id pg_catalog.int8;
  v_lane pg_catalog.int4;
  v_position pg_catalog.regclass;
  v_wakeup pg_catalog.regclass;
  v_type_id pg_catalog.int4;
begin
  if deliver_at is not null or deduplication_key is not null then
    return parley._p_send_later_or_once($1, $2, $3, $4, $5, $6, caller);
  end if;
  -- Both are unusual, and asked together, because an expression costs a thirtieth of a bare INSERT.
  if pg_catalog.pg_sequence_last_value('parley._p_trace_until') operator(pg_catalog.>) 0::pg_catalog.int8
    or pg_catalog.current_setting('parley.begun', true) operator(pg_catalog.<>) '' then
    if parley._p_send_unusually(caller, $1, $2, $3, $4) then
      return null;
    end if;
  end if;
  select e.far_endpoint_id, e.destination_lane, e.destination_position, e.destination_wakeup, e.usual_message_type_id
  into v_far_id, v_lane, v_position, v_wakeup, v_type_id
  from parley._p_ready_to_send($1, $2, caller) as e;
  if not found then
    found := parley._p_send_one(caller, $1, $2, $3, $4);
    return null;
  end if;
  insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body, trace_context)
  values (
    pg_catalog.nextval(v_position) operator(pg_catalog.*) 1024::pg_catalog.int8,
    v_far_id,
    case
      when pg_catalog.pg_sequence_last_value(v_wakeup) operator(pg_catalog.>) 0::pg_catalog.int8
        then parley._p_admit(v_lane, v_wakeup)
      else pg_catalog.clock_timestamp()
    end,
    v_lane,
    v_type_id,
    case when pg_catalog.octet_length($3) operator(pg_catalog.>) 0 then $3 end,
    case when $4 is not null then parley._p_trace_context($4) end
  );
  return null;
end
$$;

comment on function parley.send(uuid, text, bytea, text, timestamptz, text, parley.caller) is
'Sends a message on a conversation, in this transaction.
Arguments: conversation_handle; message_type, of the conversation''s contract; body, null or empty for none;
trace_context, a W3C traceparent, or one with a blank and a tracestate behind it, which RECEIVE gives back: one that is
malformed or longer than 600 characters is left out, without an error;
deliver_at, not before that time (null, or past: now). The message waits on this side, in parley.delayed_sends, and is
sent behind what is due before; what send sends meanwhile does not wait for it. The daemon sends it, or who calls
parley.fire_timers. After END CONVERSATION it is sent all the same, and EndDialog behind it; when the conversation
fails, or the other side ends it, it is dropped;
deduplication_key, 1 to 256 characters (null: none). When a message was sent with the same key before, nothing is sent,
whatever the body, and what came of the first is returned. A key is of the sending service, over all of its
conversations, and counts for deduplication_seconds of the service. A session that uses a key waits for another one that
is using it until the transaction of that one ends.
Returns null; with deliver_at or deduplication_key what came of the message, in which delayed_id is known while it is
not due, message_id and sent_at with a deduplication key alone.
Errors: 229 not allowed, 8402 deliver_at infinite, deduplication_key empty or too long, 8410 deliver_at after the
lifetime of the conversation, 8418 and 8426 handle missing or not found, 8428 message type not found, 8429 the state of
the conversation forbids it, 8431 not in the contract, 8432 and 8434 reserved for the other side, 9618 queue disabled
with retention on, 10928 the queue of the target is full.
A body that fails validation, or a target that refuses, does not make SEND fail: an Error message
comes back on the conversation.
Source: spec 4.2; trace_context is ours, OpenTelemetry.';

create function parley.send(
  conversation_handle uuid, message_type text default 'DEFAULT', body text default null,
  trace_context text default null,
  deliver_at timestamptz default null, deduplication_key text default null
) returns parley.sent_message
language sql
as $$
  select parley.send($1, $2, pg_catalog.convert_to($3, 'UTF8'), $4, $5, $6, caller => current_user)
$$;

comment on function parley.send(uuid, text, text, text, timestamptz, text) is
'Sends a message whose body is text; it travels as UTF-8.
Arguments: as send with a bytea body; message_type, default DEFAULT; body, null or empty for none.
Errors: those of send with a bytea body.
Source: spec 4.2.';
