-- How a serializable transaction sends on the dialogs that it has begun.
--
-- PostgreSQL keeps which pages of an index a serializable transaction has read, and fails one of several transactions
-- of which each has read a page to which the next one adds. New conversations add to the pages by which conversations
-- are found. So a transaction that begins a dialog and finds it again to send on it would fail others that do the same.
-- BEGIN DIALOG therefore keeps the place of its row, in a setting of the transaction (_p_remember_begun), and SEND
-- reads the row there: a read of one's own row leaves no trace.
--
-- Invariants, and what keeps each:
--   a setting that somebody has made up changes nothing   the row at a place counts only if it has the handle; rights
--     are asked for as in any SEND
--   what was rolled back to a savepoint is not sent on   the setting goes back with the row; a row that has been
--     changed since is not at its place any more, and SEND goes its usual way
--   nothing is remembered for later sends   a transaction that keeps its snapshot reads settings that may be old
-- At READ COMMITTED and REPEATABLE READ no page is kept, and there is no such setting.
-- Locks: the names of both services, shared; the row of the target's service FOR KEY SHARE.

create function parley._p_lasts_for_ever(endpoint parley._p_endpoint) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return endpoint.lifetime - endpoint.begun_at = interval '2147483647 seconds';
end
$$;

comment on function parley._p_lasts_for_ever(parley._p_endpoint) is
'Reports whether a dialog was begun without a lifetime: then no alarm of one is set.';

create function parley._p_send_begun(
  caller oid, handle uuid, message_type text, bodies bytea[], trace_context text
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_dialog parley._p_local_dialog;
  v_far_id bigint;
  v_place tid;
begin
  select e.* into v_endpoint
  from parley._p_endpoint as e
  where e.ctid = parley._p_begun_place(handle) and e.conversation_handle = handle;
  if not found or v_endpoint.state not in ('SO', 'CO') or v_endpoint.state = 'CO' and v_endpoint.far_endpoint_id is null
    or v_endpoint.far_endpoint_id < 0 or not parley._p_lasts_for_ever(v_endpoint)
    or coalesce(cardinality(bodies), 0) = 0
    or pg_sequence_last_value('parley._p_broker_switch') is not null then
    return false;
  end if;
  perform parley._p_await_service(v_endpoint.service_name), parley._p_await_service(v_endpoint.far_service);
  v_dialog := parley._p_resolve_local_dialog(
    v_endpoint.service_name, v_endpoint.far_service, v_endpoint.service_contract_name, message_type
  );
  if v_dialog.service_id is distinct from v_endpoint.service_id
    or v_endpoint.far_broker_instance <> v_dialog.broker_instance
    or parley._p_role_of_first_sender(
      caller, v_endpoint.owner, v_dialog.queue_id, null, v_dialog.far_service_id
    ) is null then
    return false;
  end if;
  -- Fails when the service has been dropped or moved since.
  perform from parley._p_service as s where s.service_id = v_dialog.far_service_id for key share;
  v_far_id := v_endpoint.far_endpoint_id;
  if v_far_id is null then
    v_far_id := parley._p_insert_target(v_endpoint, v_dialog);
    update parley._p_endpoint as e
    set state = 'CO', state_since = clock_timestamp(), far_endpoint_id = v_far_id,
      far_broker_instance = v_dialog.broker_instance, usual_message_type_id = v_dialog.message_type_id,
      usual_message_type_name = message_type
    where e.ctid = parley._p_begun_place(handle)
    returning e.ctid into v_place;
    perform parley._p_remember_begun(handle, v_place);
  end if;
  perform parley._p_append(
    v_far_id, v_dialog.destination_lane, v_dialog.destination_position, v_dialog.message_type_id, bodies, trace_context
  );
  if pg_sequence_last_value(v_dialog.destination_wakeup) > 0 then
    perform parley._p_admit(v_dialog.destination_lane, v_dialog.destination_wakeup, 0);
  end if;
  return true;
end
$$;

comment on function parley._p_send_begun(oid, uuid, text, bytea[], text) is
'Sends messages on a dialog that this transaction has begun, when it is serializable, the target is in this database and
nothing is unusual; gives false, and has done nothing, otherwise.
Arguments: caller; handle; message_type, its name; bodies; trace_context of each.';
