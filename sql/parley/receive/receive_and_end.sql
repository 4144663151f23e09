-- RECEIVE and END CONVERSATION in one call: for conversations that are over with what is received.
--
-- All that waits in a group is received, since END removes what is left.
-- Locks and cost: those of RECEIVE, then those of conversation/end_conversations.sql.

create function parley.receive_and_end(
  queue text, timeout integer default null, groups integer default null, caller parley.caller default current_user
) returns setof parley.received_message
language plpgsql security definer rows 100
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message parley.received_message;
  v_handles uuid[] := '{}'::uuid[];
begin
  for v_message in
    select *
    from parley.receive(
      queue => receive_and_end.queue, timeout => receive_and_end.timeout, groups => receive_and_end.groups,
      caller => receive_and_end.caller
    )
  loop
    v_handles := v_handles || v_message.conversation_handle;
    return next v_message;
  end loop;
  found := parley.end_conversations(v_handles, caller => caller) > 0;
end
$$;

comment on function parley.receive_and_end(text, integer, integer, parley.caller) is
'Receives all messages of a group, or of several, and ends this side of their conversations, in one call: for messages
that are the last of their conversation, whatever comes after them. The other sides get EndDialog.
Arguments: queue; timeout and groups, as receive.
Errors: those of receive and end_conversation.
Source: spec 4.3, 4.6.';
