-- Begin and send in one call, and send and forget: a dialog that is begun, sent on and ended in one call,
-- so that no open side is left.
--
-- They are BEGIN DIALOG, SEND and END CONVERSATION in the transaction of the caller, with the rules and locks of the
-- three; the endpoint that was just begun need not be found again. The sender's side of what was ended is in state DO
-- and goes when the target ends its side, or, when that never does, once all is read and the broker's time for
-- abandoned conversations is over (spec 3.6). What comes back, an answer or an Error, is thrown away.

create function parley._p_begin_and_send(
  caller oid, from_service text, to_service text, message_type text, body bytea, contract text, broker_instance text,
  encryption boolean, lifetime integer default 2147483647, deliver_at timestamptz default null,
  deduplication_key text default null
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  -- Before any row, as SEND does.
  v_is_disabled boolean := pg_sequence_last_value('parley._p_broker_switch') is not null;
  v_endpoint parley._p_endpoint;
  v_first parley._p_deduplication_key;
begin
  if deduplication_key is not null then
    v_first := parley._p_use_key_to_begin(caller, from_service, to_service, contract, deduplication_key);
    if v_first.is_answered then
      return v_first.conversation_handle;
    end if;
    return (parley._p_record_key(
      v_first,
      parley._p_begin_and_send(
        caller, from_service, to_service, message_type, body, contract, broker_instance, encryption, lifetime,
        deliver_at
      )
    )).conversation_handle;
  end if;
  v_endpoint := parley._p_begin_dialog(
    caller, from_service, to_service, contract, broker_instance, lifetime, encryption, null, null
  );
  if pg_sequence_last_value('parley._p_trace_until') > extract(epoch from clock_timestamp()) then
    perform parley._p_record_sent(v_endpoint.conversation_handle, message_type, 1);
  end if;
  if deliver_at is not null then
    perform parley._p_send_at(caller, v_endpoint.conversation_handle, message_type, body, deliver_at, null);
  elsif v_is_disabled or not parley._p_send_first(caller, v_endpoint, message_type, body, null) then
    found := parley._p_send(caller, v_endpoint.conversation_handle, message_type, array[body]);
  end if;
  return v_endpoint.conversation_handle;
end
$$;

comment on function parley._p_begin_and_send(
  oid, text, text, text, bytea, text, text, boolean, integer, timestamptz, text
) is
'Begins a dialog and sends its first message, in the name of the caller.
Arguments: as begin_and_send.
Errors: those of begin_dialog and send.';

create function parley.begin_and_send(
  from_service text,
  to_service text,
  message_type text default 'DEFAULT',
  body text default null,
  contract text default 'DEFAULT',
  broker_instance text default null,
  encryption boolean default true,
  lifetime integer default 2147483647,
  deliver_at timestamptz default null,
  deduplication_key text default null,
  caller parley.caller default parley.current_caller()
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley._p_begin_and_send(
    parley._p_caller(caller), from_service, to_service, message_type, convert_to(body, 'UTF8'), contract,
    broker_instance, encryption, lifetime, deliver_at, deduplication_key
  );
end
$$;

comment on function parley.begin_and_send(
  text, text, text, text, text, text, boolean, integer, timestamptz, text, parley.caller
) is
'Begins a dialog and sends its first message in one call, in this transaction: what begin_dialog and send do, for less.
Returns the conversation handle.
Arguments: from_service, of this database; to_service; message_type, of the contract; body, text that travels as UTF-8,
null or empty for none; contract; broker_instance, encryption and lifetime in seconds, as begin_dialog; deliver_at, as
send_at (null: now); deduplication_key, as begin_dialog: with one that was used before, nothing is sent either.
Errors: those of begin_dialog and send_at.
Source: spec 4.1, 4.2.';

create function parley.begin_and_send_binary(
  from_service text,
  to_service text,
  message_type text default 'DEFAULT',
  body bytea default null,
  contract text default 'DEFAULT',
  broker_instance text default null,
  encryption boolean default true,
  lifetime integer default 2147483647,
  deliver_at timestamptz default null,
  deduplication_key text default null,
  caller parley.caller default parley.current_caller()
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley._p_begin_and_send(
    parley._p_caller(caller), from_service, to_service, message_type, body, contract, broker_instance, encryption,
    lifetime, deliver_at, deduplication_key
  );
end
$$;

comment on function parley.begin_and_send_binary(
  text, text, text, bytea, text, text, boolean, integer, timestamptz, text, parley.caller
) is
'Begins a dialog and sends its first message, of bytes, as begin_and_send does with a text. It has a name
of its own, as send_binary has.
Arguments: as begin_and_send; body, null or empty for none.
Errors: those of begin_dialog and send.
Source: spec 4.1, 4.2.';

create function parley._p_send_and_end(
  caller oid, from_service text, to_service text, message_type text, body bytea, contract text, broker_instance text,
  encryption boolean, deliver_at timestamptz, deduplication_key text
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_first parley._p_deduplication_key;
  v_handle uuid;
begin
  if deduplication_key is not null then
    v_first := parley._p_use_key_to_begin(caller, from_service, to_service, contract, deduplication_key);
    if v_first.is_answered then
      return v_first.conversation_handle;
    end if;
    return (parley._p_record_key(
      v_first,
      parley._p_send_and_end(
        caller, from_service, to_service, message_type, body, contract, broker_instance, encryption, deliver_at, null
      )
    )).conversation_handle;
  end if;
  v_handle := parley._p_begin_and_send(
    caller, from_service, to_service, message_type, body, contract, broker_instance, encryption,
    deliver_at => deliver_at
  );
  found := parley._p_end(caller, v_handle, 2, null);
  return v_handle;
end
$$;

comment on function parley._p_send_and_end(
  oid, text, text, text, bytea, text, text, boolean, timestamptz, text
) is
'Begins a dialog, sends one message and ends it, in the name of the caller.
Arguments: as send_and_end.
Errors: those of begin_dialog, send and end_conversation.';

create function parley.send_and_end(
  from_service text,
  to_service text,
  message_type text default 'DEFAULT',
  body text default null,
  contract text default 'DEFAULT',
  broker_instance text default null,
  encryption boolean default true,
  deliver_at timestamptz default null,
  deduplication_key text default null,
  caller parley.caller default parley.current_caller()
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  return parley._p_send_and_end(
    v_caller, from_service, to_service, message_type, convert_to(body, 'UTF8'), contract, broker_instance, encryption,
    deliver_at, deduplication_key
  );
end
$$;

comment on function parley.send_and_end(
  text, text, text, text, text, text, boolean, timestamptz, text, parley.caller
) is
'Sends one message that needs no answer: begins a dialog, sends and ends it in one call, in this transaction. No open
side is left to be ended. Returns the handle of the conversation, for trace_conversation; nothing can be sent on it any
more. The target receives the message, then EndDialog.
What comes back is thrown away: that the target refuses the message, or answers it, is not learned. To learn it,
begin a dialog and end it yourself.
Arguments: from_service, of this database; to_service; message_type, of the contract; body, text that travels as UTF-8,
null or empty for none; contract; broker_instance and encryption, as begin_dialog; deliver_at and deduplication_key, as
begin_and_send.
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
  deliver_at timestamptz default null,
  deduplication_key text default null,
  caller parley.caller default parley.current_caller()
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  return parley._p_send_and_end(
    v_caller, from_service, to_service, message_type, body, contract, broker_instance, encryption,
    deliver_at, deduplication_key
  );
end
$$;

comment on function parley.send_binary_and_end(
  text, text, text, bytea, text, text, boolean, timestamptz, text, parley.caller
) is
'Sends one message of bytes that needs no answer, as send_and_end sends a text. It has a name of its own, so that bytes
from a driver that gives parameters no type are not taken for text.
Arguments: as send_and_end; body, null or empty for none.
Errors: those of begin_dialog and send.
Source: spec 4.1, 4.2, 4.6.';
