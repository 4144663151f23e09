-- ALTER DATABASE ... SET ENABLE_BROKER, DISABLE_BROKER, NEW_BROKER, ERROR_BROKER_CONVERSATIONS (spec 9.1).
--
-- While the broker is disabled a SEND is taken and waits in the transmission queue, and so does END CONVERSATION. The
-- short way of SEND asks for nothing but its endpoint's row, so disabling takes the routes out of all of these rows;
-- the long way asks the switch. Keeps S4, order within a conversation: whoever has asked the switch keeps it from being
-- thrown until his transaction ends. So no message is delayed by a sender that saw it off and overtaken by one that saw
-- it on: enabling delivers everything delayed before it lets any sender pass.
-- Locks: the switch, then endpoints by endpoint_id. Senders that began before are waited for, ten seconds
-- unless the caller says otherwise.
-- Cost for SEND: none on the short way; the lock of one more relation on the long way.

create function parley._p_wait_at_most(seconds integer) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- lock_timeout is an integer, in milliseconds.
  if seconds not between 0 and 2147483 then
    found := parley._p_raise(8402, 'wait', seconds::text);
  end if;
  perform set_config('lock_timeout', coalesce(greatest(seconds * 1000, 1), 0)::text, true);
  return true;
end
$$;

comment on function parley._p_wait_at_most(integer) is
'Limits how long locks are waited for, and gives true. The callers have a setting of their own in their definition, so
that the limit ends with them.
Errors: 8402 negative, or more than 24 days.';

create function parley._p_switch_on() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is_elsewhere boolean := parley._p_is_elsewhere();
  v_schema text;
begin
  perform parley._p_throw_switch(true);
  update parley._p_broker as b
  set is_broker_enabled = true, disabled_at = null,
    system_identifier = parley._p_system_identifier(), database_oid = parley._p_database_oid();
  perform parley._p_advance_sequences();
  -- The backup from which it was restored may be older than the knowledge that other brokers have of it.
  if v_is_elsewhere then
    for v_schema in
      select s.schema from parley._p_moving_systems as s where s.function = '_p_go_on_elsewhere' order by s.schema
    loop
      execute format('select %I._p_go_on_elsewhere()', v_schema);
    end loop;
    perform parley._p_begin_epoch();
  end if;
end
$$;

comment on function parley._p_switch_on() is
'Enables the broker, and records that it lives here. Errors: 55P03 when senders do not finish within lock_timeout.';

create function parley._p_require_no_original(original_is_disabled boolean) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley._p_original() is not null and not original_is_disabled then
    found := parley._p_raise(9772, 'copy', parley._p_original());
  end if;
  return true;
end
$$;

comment on function parley._p_require_no_original(boolean) is
'Refuses to enable a second broker of the same id on one server.
Errors: 9772.';

create function parley.disable_broker(
  wait_seconds integer default 10,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '10s'
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  found := parley._p_require_administrator(v_caller, 'DISABLE_BROKER');
  found := parley._p_wait_at_most(wait_seconds);
  perform parley._p_switch_off() from parley._p_broker as b where b.is_broker_enabled;
exception
  when lock_not_available then
    found := parley._p_raise_in_use();
end
$$;

comment on function parley.disable_broker(integer, parley.caller) is
'Disables the broker of this database: messages are no longer delivered, services are no longer found, activation stops.
SEND and END CONVERSATION are still accepted; what they send waits in the transmission queue. Messages that have been
delivered can be received. Transactions that send are waited for.
Arguments: wait_seconds, for how long (0: not at all, null: for ever).
Errors: 5061 in use, 8402 wait_seconds out of range, 15151 not an administrator.
Source: spec 9.1, DISABLE_BROKER.';

create function parley.enable_broker(
  original_is_disabled boolean default false, wait_seconds integer default 10,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '10s'
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  found := parley._p_require_administrator(v_caller, 'ENABLE_BROKER');
  found := parley._p_wait_at_most(wait_seconds);
  found := parley._p_require_no_original(original_is_disabled);
  if parley._p_broker_state() <> 'ENABLED' then
    perform parley._p_switch_on();
    perform parley._p_deliver_delayed(null);
  else
    perform parley._p_advance_sequences();
  end if;
exception
  when lock_not_available then
    found := parley._p_raise_in_use();
end
$$;

comment on function parley.enable_broker(boolean, integer, parley.caller) is
'Enables the broker of this database under the id it has, and delivers what has waited, in order. For a broker that has
moved: restored for recovery, on another server. Transactions that send are waited for. Puts every sequence that is
behind the rows with its numbers before them, as in a copy by logical replication, also of a broker that is enabled.
Arguments: original_is_disabled, true when this database takes the place of the one it was copied from on the same
server; wait_seconds, as disable_broker.
Errors: 5061 in use, 8402 wait_seconds out of range, 9772 the original is on this server, 15151 not an administrator.
Source: spec 9.1, ENABLE_BROKER.';

create function parley.error_broker_conversations(
  original_is_disabled boolean default false, wait_seconds integer default 10,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '10s'
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_broken integer;
begin
  found := parley._p_require_administrator(v_caller, 'ERROR_BROKER_CONVERSATIONS');
  found := parley._p_wait_at_most(wait_seconds);
  found := parley._p_require_no_original(original_is_disabled);
  perform parley._p_switch_on();
  delete from parley._p_transmission as t;
  v_broken := parley._p_break_conversations(
    array(select e.endpoint_id from parley._p_endpoint as e), parley._p_error_of(9719, 'restored'),
      parley._p_error_of(9720, 'restored')
  );
  return v_broken;
exception
  when lock_not_available then
    found := parley._p_raise_in_use();
end
$$;

comment on function parley.error_broker_conversations(boolean, integer, parley.caller) is
'Enables the broker under the id it has, and ends every conversation with an Error message of code -9719: for a database
that was brought back to an older moment. Each side then has to end its conversation, and may begin a new one. Messages
in the transmission queue are dropped. A far side in another database gets code -9720.
Gives the number of sides of this database that got the error.
Arguments: original_is_disabled and wait_seconds, as enable_broker.
Errors: 5061 in use, 8402 wait_seconds out of range, 9772 the original is on this server, 15151 not an administrator.
Source: spec 9.1, ERROR_BROKER_CONVERSATIONS.';

create function parley.new_broker(
  wait_seconds integer default 10,
  caller parley.caller default parley.current_caller()
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '10s'
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_old text := (select b.service_broker_guid::text from parley._p_broker as b);
  v_guid uuid;
  v_table text;
  v_is_used boolean;
begin
  found := parley._p_require_administrator(v_caller, 'NEW_BROKER');
  found := parley._p_wait_at_most(wait_seconds);
  if current_setting('transaction_read_only') = 'on' then
    found := parley._p_raise(9775, 'read-only');
  end if;
  perform parley._p_switch_on();
  -- An invitation is to the broker that made it.
  delete from parley._p_pairing as p;
  delete from parley._p_batch as b;
  foreach v_table in array array[
    '_p_message', '_p_transmission', '_p_transit', '_p_send_progress', '_p_accept_progress', '_p_parked',
    '_p_unresumed', '_p_compared', '_p_fragment', '_p_expedited',
    '_p_destination', '_p_neighbour_service', '_p_retained', '_p_copy_progress', '_p_receive_progress', '_p_scan_hint',
    '_p_alarm', '_p_tombstone', '_p_set_aside', '_p_failure',
    '_p_delivery_failure', '_p_delayed_message', '_p_set_aside_message', '_p_message_wait',
    '_p_unique_message', '_p_finished_message', '_p_edited_message', '_p_conversation_retry', '_p_daemon_report',
    '_p_configuration_request', '_p_session_key', '_p_endpoint', '_p_conversation_group'
  ] loop
    -- Emptying an empty table costs a file and locks out everybody for nothing.
    execute format('select exists (select from parley.%I)', v_table) into v_is_used;
    if v_is_used then
      execute format('truncate parley.%I', v_table);
    end if;
  end loop;
  -- A message that would open a dialog a second time is still recognised, also in a copy of the database that has got
  -- it first.
  delete from parley._p_dialog_security as s
  where s.opened_at is null or s.opened_at < clock_timestamp() - parley._p_replay_memory();
  perform setval(q.rollback_sequence, 0)
  from parley._p_queue as q
  where pg_sequence_last_value(q.rollback_sequence) > 0;
  -- A broker of a new id has forgotten nothing.
  update parley._p_broker as b
  set service_broker_guid = gen_random_uuid(), remembers_since = null
  returning b.service_broker_guid
  into v_guid;
  -- Event notifications are definitions; the conversations that they speak through were among those removed.
  update parley._p_event_notification as n
  set conversation_handle = parley._p_begin_notices(n.to_service, i.instance), broker_instance = i.instance,
    is_reported = false
  from (
    select e.notification_id, case e.broker_instance when v_old then v_guid::text else e.broker_instance end as instance
    from parley._p_event_notification as e
  ) as i
  where i.notification_id = n.notification_id;
  return v_guid;
exception
  when lock_not_available then
    found := parley._p_raise_in_use();
end
$$;

comment on function parley.new_broker(integer, parley.caller) is
'Gives the broker of this database a new id, enables it, and removes all conversations and all messages without a
message to the far sides: for a copy of a database that is to live beside the original. Definitions and rights stay.
Returns the new id. Routes and programs (BEGIN DIALOG) that name the old one must be changed.
Arguments: wait_seconds, as disable_broker.
Errors: 5061 in use, 8402 wait_seconds out of range, 9775 read-only, 15151 not an administrator.
Source: spec 9.1, NEW_BROKER.';
