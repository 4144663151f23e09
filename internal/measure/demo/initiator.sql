-- The sending side: its queue and service, the conversations in use, and the procedure that the senders call.

select parley.create_queue('MySSBLabSenderQueue');
select parley.create_service('//MySSB.com/Lab/S_Sender', 'MySSBLabSenderQueue');

-- The conversations in use. The paper keeps every 150th here and leaves the others idle; nothing asks for that trick here.
create table dialogs (
  dialog_number integer primary key,
  conversation_handle uuid not null
);

-- A body begins with four-byte numbers of conversation, sender and message, and the MD5 of the rest.
create procedure send_lab_test(handle uuid, conversation integer, sender integer, sequence integer, body bytea)
language plpgsql
as $$
begin
  insert into sent_ledger (conversation, sender, sequence, body_bytes) values (conversation, sender, sequence, octet_length(body));
  perform parley.send(handle, '//MySSB.com/Lab/M_Test', body);
end
$$;
