-- SEND: the hot path.
--
-- A send on a conversation that has sent before is one statement: it reads the sender's endpoint row, locks it FOR KEY SHARE, and
-- appends the message to the far side's lane. Invariants, and what keeps each:
--   no committed message is lost to END CONVERSATION   the row lock: END takes it FOR UPDATE and so waits for senders
--   a send that begins after another's commit comes later   the position is drawn from the queue's sequence inside the statement
--   rights and states are checked each time   the conditions of the statement; when any fails, _p_send finds out which and why
-- What was tried: see docs/performance.md. Each further statement here costs about a tenth of a bare INSERT; so does
-- a pinned search_path, which is why every name and operator is qualified instead.
--
-- Sequential scans are off, as in every statement that looks for conversations: a session that planned this while there were few
-- would go on reading all of them, until they are analyzed.
--
-- Cost: one index probe, one row lock, one insert with two index entries, one look at the doorbell.

create function parley.send(conversation_handle uuid, message_type text, body bytea) returns void
language plpgsql security definer
set enable_seqscan = off
as $$
begin
  insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body)
  select
    pg_catalog.nextval(e.destination_position) operator(pg_catalog.*) 1024::pg_catalog.int8,
    e.far_endpoint_id,
    case
      when pg_catalog.pg_sequence_last_value(e.destination_doorbell) operator(pg_catalog.>) 0::pg_catalog.int8
        then parley._p_ring_bell(e.destination_lane, e.destination_doorbell)
      else pg_catalog.clock_timestamp()
    end,
    e.destination_lane,
    e.usual_message_type_id,
    case when pg_catalog.octet_length(send.body) operator(pg_catalog.>) 0 then send.body end
  from parley._p_endpoint as e
  where e.conversation_handle operator(pg_catalog.=) send.conversation_handle
    and e.usual_message_type_name operator(pg_catalog.=) send.message_type
    and e.destination_lane is not null
    and pg_catalog.current_setting('role') operator(pg_catalog.=) 'none'
    and pg_catalog.pg_has_role(session_user, e.sender_role, 'usage')
  for key share of e;
  if not found then
    perform parley._p_send(send.conversation_handle, send.message_type, array[send.body]);
  end if;
end
$$;

comment on function parley.send(uuid, text, bytea) is
'Sends a message on a conversation, in this transaction.
Arguments: conversation_handle; message_type, of the conversation''s contract; body, null or empty for none.
Errors: 229 not allowed, 8418 and 8426 handle missing or not found, 8428 message type not found, 8429 the state of the conversation forbids it,
8431 not in the contract, 8432 and 8434 reserved for the other side, 9618 queue disabled with retention on.
A body that fails validation, or a target that refuses, does not make SEND fail: an Error message comes back on the conversation.
Source: spec 4.2.';

create function parley.send(conversation_handle uuid, message_type text default 'DEFAULT', body text default null) returns void
language plpgsql security definer
set enable_seqscan = off
as $$
begin
  -- As above, with the body turned into UTF-8; a call instead of a copy would cost every text sender a tenth.
  insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body)
  select
    pg_catalog.nextval(e.destination_position) operator(pg_catalog.*) 1024::pg_catalog.int8,
    e.far_endpoint_id,
    case
      when pg_catalog.pg_sequence_last_value(e.destination_doorbell) operator(pg_catalog.>) 0::pg_catalog.int8
        then parley._p_ring_bell(e.destination_lane, e.destination_doorbell)
      else pg_catalog.clock_timestamp()
    end,
    e.destination_lane,
    e.usual_message_type_id,
    case when pg_catalog.octet_length(send.body) operator(pg_catalog.>) 0 then pg_catalog.convert_to(send.body, 'UTF8') end
  from parley._p_endpoint as e
  where e.conversation_handle operator(pg_catalog.=) send.conversation_handle
    and e.usual_message_type_name operator(pg_catalog.=) send.message_type
    and e.destination_lane is not null
    and pg_catalog.current_setting('role') operator(pg_catalog.=) 'none'
    and pg_catalog.pg_has_role(session_user, e.sender_role, 'usage')
  for key share of e;
  if not found then
    perform parley._p_send(send.conversation_handle, send.message_type, array[pg_catalog.convert_to(send.body, 'UTF8')]);
  end if;
end
$$;

comment on function parley.send(uuid, text, text) is
'Sends a message whose body is text; it travels as UTF-8.
Arguments: conversation_handle; message_type, default DEFAULT; body, null or empty for none.
Errors: those of send with a bytea body.
Source: spec 4.2.';

create function parley._p_ring_bell(lane integer, doorbell regclass) returns timestamptz
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_ring(lane / 16, doorbell);
  return clock_timestamp();
end
$$;

comment on function parley._p_ring_bell(integer, regclass) is 'Notifies the sleepers of a lane''s queue, if their time is not over, and gives the time.';
