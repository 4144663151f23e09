-- The reply to a request: what comes back on a conversation that was begun for one question.
--
-- SQL cannot wait for a reply in the transaction that asks: the question leaves when that commits. So the question is
-- one call, and the reply is this one, in a transaction of its own.
-- Locks: as RECEIVE from a named conversation, then as END CONVERSATION.

create function parley.receive_reply(
  conversation_handle uuid, timeout integer default 0,
  caller parley.caller default parley.current_caller()
) returns setof parley.received_message
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_endpoint parley._p_endpoint := parley._p_find_shown(conversation_handle);
  v_queue parley._p_queue;
  v_message parley.received_message;
begin
  select q.* into v_queue
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  where s.service_id = v_endpoint.service_id;
  select * into v_message
  from parley.receive(
    v_queue.lookup_name, top => 1, conversation_handle => receive_reply.conversation_handle,
    timeout => coalesce(receive_reply.timeout, 0), caller => caller
  );
  if not found then
    return;
  end if;
  -- The timer of the conversation is no reply.
  if v_message.message_type_id <> 5 then
    found := parley._p_end(v_caller, conversation_handle, 2, null);
  end if;
  return next v_message;
end
$$;

comment on function parley.receive_reply(uuid, integer, parley.caller) is
'Takes the first message that has come back on a conversation, and ends this side: for a dialog that was begun for one
question. Messages that the other side sends behind it are thrown away. The message may be EndDialog, when the other
side ended without a reply, or Error; the conversation is ended then too.
Gives no row when nothing came in time, and now and then earlier, when a timer had to be fired meanwhile: commit, and
call it again or end the conversation.
Call it in another transaction than the one that has sent: that has to be committed before anybody can answer.
Arguments: conversation_handle; timeout in milliseconds, -1 for ever, 0 to wait for nothing.
Errors: 229 not allowed, 8402 timeout out of range, 8418 missing, 8426 not found or ended, 9617 queue disabled.
Source: spec 4.3, 4.6.';

create function parley.conversations_with_messages(
  queue text, conversation_handles uuid[],
  caller parley.caller default parley.current_caller()
) returns setof uuid
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
begin
  return query
  select e.conversation_handle
  from parley._p_endpoint as e
  join parley._p_service as s using (service_id)
  where e.conversation_handle = any (conversation_handles)
    and s.queue_id = v_queue.queue_id
    and exists (select from parley._p_message as m where m.endpoint_id = e.endpoint_id);
end
$$;

comment on function parley.conversations_with_messages(text, uuid[], parley.caller) is
'Gives those of some conversations for which a message waits in a queue: one call for a program that waits for many
replies. Locks nothing.
Arguments: queue; conversation_handles; those that are unknown or of another queue are passed over.
Errors: 208 not found, 229 not allowed, 9609 malformed name.';
