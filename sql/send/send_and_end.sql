-- Send and forget: a dialog that is begun, sent on and ended in one call, so that no open side is left.
--
-- It is BEGIN DIALOG, SEND and END CONVERSATION in the transaction of the caller, with the rules and locks of the three. The sender's side is
-- in state DO afterwards and goes when the target ends its side, or, when that never does, once all is read and the broker's time for
-- abandoned conversations is over (spec 3.6). What comes back, an answer or an Error, is thrown away.

create function parley._p_send_and_end(
  caller oid, from_service text, to_service text, message_type text, body bytea, contract text, broker_instance text, encryption boolean,
  ticket parley.caller
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_handle uuid := parley.begin_dialog(
    from_service => from_service, to_service => to_service, contract => contract, broker_instance => broker_instance,
    encryption => encryption, caller => ticket
  );
begin
  if pg_sequence_last_value('parley._p_trace_until') > extract(epoch from clock_timestamp()) then
    perform parley._p_record_sent(v_handle, message_type, 1);
  end if;
  found := parley._p_send(caller, v_handle, message_type, array[body]);
  found := parley._p_end(caller, v_handle, 2, null);
  return v_handle;
end
$$;

comment on function parley._p_send_and_end(oid, text, text, text, bytea, text, text, boolean, parley.caller) is
'Begins a dialog, sends one message and ends it, in the name of the caller.
Arguments: as send_and_end; ticket of the caller.
Errors: those of begin_dialog, send and end_conversation.';

create function parley.send_and_end(
  from_service text,
  to_service text,
  message_type text default 'DEFAULT',
  body text default null,
  contract text default 'DEFAULT',
  broker_instance text default null,
  encryption boolean default true,
  caller parley.caller default parley.current_caller()
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  return parley._p_send_and_end(
    v_caller, from_service, to_service, message_type, convert_to(body, 'UTF8'), contract, broker_instance, encryption, caller
  );
end
$$;

comment on function parley.send_and_end(text, text, text, text, text, text, boolean, parley.caller) is
'Sends one message that needs no answer: begins a dialog, sends and ends it in one call, in this transaction. No open side is left to be ended.
Returns the handle of the conversation, for trace_conversation; nothing can be sent on it any more. The target receives the message, then EndDialog.
What comes back is thrown away: that the target refuses the message, or answers it, is not learned. To learn it, begin a dialog and end it yourself.
Arguments: from_service, of this database; to_service; message_type, of the contract; body, text that travels as UTF-8, null or empty for none; contract;
broker_instance and encryption, as begin_dialog.
Errors: those of begin_dialog and send.
Source: spec 4.1, 4.2, 4.6.';

create function parley.send_binary_and_end(
  from_service text,
  to_service text,
  message_type text default 'DEFAULT',
  body bytea default null,
  contract text default 'DEFAULT',
  broker_instance text default null,
  encryption boolean default true,
  caller parley.caller default parley.current_caller()
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  return parley._p_send_and_end(
    v_caller, from_service, to_service, message_type, body, contract, broker_instance, encryption, caller
  );
end
$$;

comment on function parley.send_binary_and_end(text, text, text, bytea, text, text, boolean, parley.caller) is
'Sends one message of bytes that needs no answer, as send_and_end sends a text. It has a name of its own, so that bytes from a driver that gives parameters
no type are not taken for text.
Arguments: as send_and_end; body, null or empty for none.
Errors: those of begin_dialog and send.
Source: spec 4.1, 4.2, 4.6.';
