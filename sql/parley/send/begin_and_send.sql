-- Begin and send in one call, and send and forget: a dialog that is begun, sent on and ended in one call,
-- so that no open side is left.
--
-- They are BEGIN DIALOG, SEND and END CONVERSATION in the transaction of the caller, with the rules and locks of the
-- three. Where nothing about the dialog is unusual (conversation/local_dialogs.sql), both groups, both endpoints and
-- the message are inserted as they stay, and nothing is updated. The sender's side of what was ended is in state DO and
-- goes when the target ends its side, or, when that never does, once all is read and the broker's time for abandoned
-- conversations is over (spec 3.6). A message that comes back, an answer or an Error, is thrown away.

create function parley._p_begin_then_send(
  caller oid, from_service text, to_service text, message_type text, body bytea, contract text, broker_instance text,
  encryption boolean, lifetime integer, deliver_at timestamptz, deduplication_key text, allow_unknown_target boolean
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
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
        deliver_at, null, allow_unknown_target
      )
    )).conversation_handle;
  end if;
  v_endpoint := parley._p_begin_dialog(
    caller, from_service, to_service, contract, broker_instance, lifetime, encryption, null, null,
    allow_unknown_target
  );
  if pg_sequence_last_value('parley._p_trace_until') > extract(epoch from clock_timestamp()) then
    perform parley._p_record_sent(v_endpoint.conversation_handle, message_type, 1);
  end if;
  if deliver_at is not null then
    perform parley._p_send_at(caller, v_endpoint.conversation_handle, message_type, body, deliver_at, null);
  elsif v_is_disabled
    or not parley._p_send_first(caller, v_endpoint, message_type, body, null)
    and not parley._p_send_begun(caller, v_endpoint.conversation_handle, message_type, array[body], null) then
    found := parley._p_send(caller, v_endpoint.conversation_handle, message_type, array[body]);
  end if;
  return v_endpoint.conversation_handle;
end
$$;

comment on function parley._p_begin_then_send(
  oid, text, text, text, bytea, text, text, boolean, integer, timestamptz, text, boolean
) is
'Begins a dialog and sends its first message one after the other, in the name of the caller.
Arguments: as begin_and_send.
Errors: those of begin_dialog and send.';

create function parley._p_begin_and_send(
  caller oid, from_service text, to_service text, message_type text, body bytea, contract text, broker_instance text,
  encryption boolean, lifetime integer default 2147483647, deliver_at timestamptz default null,
  deduplication_key text default null, allow_unknown_target boolean default null
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  v_now timestamptz := clock_timestamp();
  v_version bigint;
  v_dialog record;
  v_role oid;
  v_id bigint;
  v_far_id bigint;
  v_group_id bigint;
  v_far_group_id bigint;
  v_handle uuid;
  v_conversation_id uuid;
begin
  -- The switch of the broker before any row, as SEND does; then as _p_may_remember_routes.
  if pg_sequence_last_value('parley._p_broker_switch') is null and broker_instance is null and lifetime = 2147483647
    and encryption is not null and deliver_at is null and deduplication_key is null
    and (pg_sequence_last_value('parley._p_trace_until') > extract(epoch from v_now)) is not true
    and not parley._p_keeps_snapshot()
    and pg_try_advisory_xact_lock_shared(hashtextextended('parley routes ' || from_service, 0))
    and pg_try_advisory_xact_lock_shared(hashtextextended('parley routes ' || to_service, 0)) then
    v_version := pg_sequence_last_value('parley._p_catalog_version');
    select d.* into v_dialog
    from parley._p_local_dialog as d
    where (d.catalog_version, d.from_service, d.to_service, d.contract, d.message_type)
      = (v_version, _p_begin_and_send.from_service, _p_begin_and_send.to_service, _p_begin_and_send.contract,
      _p_begin_and_send.message_type);
    if not found then
      select d.* into v_dialog
      from parley._p_find_local_dialog(from_service, to_service, contract, message_type) as d;
    end if;
    v_role := case
      when pg_has_role(caller, v_dialog.queue_owner, 'usage')
        and (v_dialog.service_contract_id < 65536 or pg_has_role(caller, v_dialog.contract_owner, 'usage'))
        and pg_has_role(v_dialog.owner, v_dialog.far_owner, 'usage') then v_dialog.queue_owner
      when v_dialog.service_id is not null then parley._p_role_of_first_sender(
        caller, v_dialog.owner, v_dialog.queue_id, v_dialog.service_contract_id, v_dialog.far_service_id
      )
    end;
  end if;
  if v_role is null then
    return parley._p_begin_then_send(
      caller, from_service, to_service, message_type, body, contract, broker_instance, encryption, lifetime,
      deliver_at, deduplication_key, allow_unknown_target
    );
  end if;
  v_handle := gen_random_uuid();
  v_conversation_id := gen_random_uuid();
  v_group_id := nextval('parley._p_conversation_group_group_id_seq');
  v_far_group_id := nextval('parley._p_conversation_group_group_id_seq');
  v_id := nextval('parley._p_endpoint_endpoint_id_seq');
  v_far_id := nextval('parley._p_endpoint_endpoint_id_seq');
  insert into parley._p_conversation_group (group_id, conversation_group_id, service_id) overriding system value
  values (v_group_id, gen_random_uuid(), v_dialog.service_id),
    (v_far_group_id, gen_random_uuid(), v_dialog.far_service_id);
  insert into parley._p_endpoint (
    endpoint_id, far_endpoint_id, group_id, conversation_handle, state, is_initiator, is_plain, priority, service_id,
    owner, service_name, far_service, usual_message_type_id, usual_message_type_name, sender_role, destination_lane,
    destination_position, destination_wakeup, service_contract_id, service_contract_name, conversation_id,
    far_broker_instance, is_encrypted, lifetime, begun_at
  ) overriding system value
  values (v_id, v_far_id, v_group_id, v_handle, 'CO', true, true, v_dialog.priority, v_dialog.service_id,
    v_dialog.owner, from_service, to_service, v_dialog.message_type_id, message_type, v_role, v_dialog.destination_lane,
    v_dialog.destination_position, v_dialog.destination_wakeup, v_dialog.service_contract_id, contract,
    v_conversation_id, v_dialog.broker_instance, encryption, v_now + make_interval(secs => lifetime), v_now),
  (v_far_id, v_id, v_far_group_id, gen_random_uuid(), 'CO', false, true, v_dialog.far_priority, v_dialog.far_service_id,
    v_dialog.far_owner, to_service, from_service, v_dialog.far_type_id, v_dialog.far_type_name, null, null, null, null,
    v_dialog.service_contract_id, contract, v_conversation_id, v_dialog.broker_instance, encryption,
    v_now + make_interval(secs => lifetime), v_now);
  insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body)
  values (nextval(v_dialog.destination_position) * 1024, v_far_id, clock_timestamp(), v_dialog.destination_lane,
    v_dialog.message_type_id, nullif(body, ''));
  if pg_sequence_last_value(v_dialog.destination_wakeup) > 0 then
    perform parley._p_admit(v_dialog.destination_lane, v_dialog.destination_wakeup, 0);
  end if;
  return v_handle;
end
$$;

comment on function parley._p_begin_and_send(
  oid, text, text, text, bytea, text, text, boolean, integer, timestamptz, text, boolean
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
  allow_unknown_target boolean default null,
  caller parley.caller default current_user
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley._p_begin_and_send(
    parley._p_caller(caller), from_service, to_service, message_type, convert_to(body, 'UTF8'), contract,
    broker_instance, encryption, lifetime, deliver_at, deduplication_key, allow_unknown_target
  );
end
$$;

comment on function parley.begin_and_send(
  text, text, text, text, text, text, boolean, integer, timestamptz, text, boolean, parley.caller
) is
'Begins a dialog and sends its first message in one call, in this transaction: what begin_dialog and send do, for less.
Returns the conversation handle.
Arguments: from_service, of this database; to_service; message_type, of the contract; body, text that travels as UTF-8,
null or empty for none; contract; broker_instance, encryption and lifetime in seconds, as begin_dialog; deliver_at, as
send (null: now); deduplication_key, as begin_dialog: with one that was used before, nothing is sent either;
allow_unknown_target, as begin_dialog.
Errors: those of begin_dialog and send.
Source: spec 4.1, 4.2.';

create function parley.begin_and_send(
  from_service text,
  to_service text,
  message_type text,
  body bytea,
  contract text default 'DEFAULT',
  broker_instance text default null,
  encryption boolean default true,
  lifetime integer default 2147483647,
  deliver_at timestamptz default null,
  deduplication_key text default null,
  allow_unknown_target boolean default null,
  caller parley.caller default current_user
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley._p_begin_and_send(
    parley._p_caller(caller), from_service, to_service, message_type, body, contract, broker_instance, encryption,
    lifetime, deliver_at, deduplication_key, allow_unknown_target
  );
end
$$;

comment on function parley.begin_and_send(
  text, text, text, bytea, text, text, boolean, integer, timestamptz, text, boolean, parley.caller
) is
'Begins a dialog and sends its first message, of bytes, as begin_and_send does with a text.
Arguments: as begin_and_send with a text; message_type and body have to be given, body null or empty for none.
Errors: those of begin_dialog and send.
Source: spec 4.1, 4.2.';

create function parley._p_send_and_end(
  caller oid, from_service text, to_service text, message_type text, body bytea, contract text, broker_instance text,
  encryption boolean, deliver_at timestamptz, deduplication_key text, allow_unknown_target boolean
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
        caller, from_service, to_service, message_type, body, contract, broker_instance, encryption, deliver_at, null,
        allow_unknown_target
      )
    )).conversation_handle;
  end if;
  v_handle := parley._p_begin_and_send(
    caller, from_service, to_service, message_type, body, contract, broker_instance, encryption,
    deliver_at => deliver_at, allow_unknown_target => allow_unknown_target
  );
  found := parley._p_end(caller, v_handle, 2, null);
  return v_handle;
end
$$;

comment on function parley._p_send_and_end(
  oid, text, text, text, bytea, text, text, boolean, timestamptz, text, boolean
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
  allow_unknown_target boolean default null,
  caller parley.caller default current_user
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  return parley._p_send_and_end(
    v_caller, from_service, to_service, message_type, convert_to(body, 'UTF8'), contract, broker_instance, encryption,
    deliver_at, deduplication_key, allow_unknown_target
  );
end
$$;

comment on function parley.send_and_end(
  text, text, text, text, text, text, boolean, timestamptz, text, boolean, parley.caller
) is
'Sends one message that needs no answer: begins a dialog, sends and ends it in one call, in this transaction. No open
side is left to be ended. Returns the handle of the conversation, for trace_conversation; nothing can be sent on it any
more. The target receives the message, then EndDialog.
Messages that come back are thrown away: the caller does not learn that the target refuses the message, or answers it.
To learn it, begin a dialog and end it yourself.
Arguments: from_service, of this database; to_service; message_type, of the contract; body, text that travels as UTF-8,
null or empty for none; contract; broker_instance, encryption and allow_unknown_target, as begin_dialog; deliver_at and
deduplication_key, as begin_and_send.
Errors: those of begin_dialog and send.
Source: spec 4.1, 4.2, 4.6.';

create function parley.send_and_end(
  from_service text,
  to_service text,
  message_type text,
  body bytea,
  contract text default 'DEFAULT',
  broker_instance text default null,
  encryption boolean default true,
  deliver_at timestamptz default null,
  deduplication_key text default null,
  allow_unknown_target boolean default null,
  caller parley.caller default current_user
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  return parley._p_send_and_end(
    v_caller, from_service, to_service, message_type, body, contract, broker_instance, encryption,
    deliver_at, deduplication_key, allow_unknown_target
  );
end
$$;

comment on function parley.send_and_end(
  text, text, text, bytea, text, text, boolean, timestamptz, text, boolean, parley.caller
) is
'Sends one message of bytes that needs no answer, as send_and_end sends a text.
Arguments: as send_and_end with a text; message_type and body have to be given, body null or empty for none.
Errors: those of begin_dialog and send.
Source: spec 4.1, 4.2, 4.6.';
