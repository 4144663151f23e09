-- The first message of a dialog whose target is in this database: the way that most of them go.
--
-- It does what _p_dispatch, _p_deliver, _p_connect and _p_remember_route do one after the other
-- (conversation/deliver.sql, conversation/connect.sql); send/begin_and_send.sql does the same and BEGIN DIALOG in one.
-- The facts of the catalog are found in one row (conversation/local_dialogs.sql). Unusual cases are left to these
-- functions: a route other than LOCAL, a target that refuses, validation, retention, a lifetime, a priority that is new
-- to a queue.
-- Locks: who changes rights or settings that are remembered here waits for us (_p_may_remember_routes). The sender's
-- endpoint row FOR UPDATE, by the caller, before the first statement: who alters a queue or drops a service waits for
-- it, and what he has changed is seen then. The switch of the broker is asked by the caller before that.
-- Cost: docs/internals/measurements.md, "Short conversations".

create function parley._p_role_of_first_sender(
  caller oid, owner oid, queue_id integer, service_contract_id integer, far_service_id integer
) returns oid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select parley._p_right_to_send(caller, q)
    from parley._p_queue as q
    join parley._p_service as f on f.service_id = far_service_id
    where q.queue_id = _p_role_of_first_sender.queue_id
      and parley._p_may_send(_p_role_of_first_sender.owner, f)
      and not exists (
        select
        from parley._p_contract as c
        where c.service_contract_id = _p_role_of_first_sender.service_contract_id
          and c.service_contract_id >= 65536
          and parley._p_has_permission(caller, 'REFERENCES', 'contract', c.service_contract_id, c.owner) is not true
      )
  );
end
$$;

comment on function parley._p_role_of_first_sender(oid, oid, integer, integer, integer) is
'Gives the role through which a role may send the first message of a dialog; null when it may not, when the target
would refuse it, or when that cannot be said.
Arguments: caller; owner of the sender''s side, who needs SEND on the target; queue_id of the sender;
service_contract_id, which the caller needs REFERENCES on, null for a dialog that is begun; far_service_id of the
target.';

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

create function parley._p_insert_target(
  endpoint parley._p_endpoint, dialog parley._p_local_dialog
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group_id bigint;
  v_far_id bigint;
begin
  -- Each row after the one before it: so does a trace have them.
  insert into parley._p_conversation_group (conversation_group_id, service_id)
  values (gen_random_uuid(), dialog.far_service_id)
  returning group_id into v_group_id;
  insert into parley._p_endpoint (
    far_endpoint_id, group_id, usual_message_type_id, usual_message_type_name, state, is_initiator, is_plain, priority,
    service_id, service_contract_id, service_name, service_contract_name, conversation_id, owner, far_service,
    far_broker_instance, is_encrypted, lifetime
  )
  values (
    endpoint.endpoint_id, v_group_id, dialog.far_type_id, dialog.far_type_name, 'CO', false, true, dialog.far_priority,
    dialog.far_service_id, endpoint.service_contract_id, dialog.to_service, endpoint.service_contract_name,
    endpoint.conversation_id, dialog.far_owner, endpoint.service_name, dialog.broker_instance, endpoint.is_encrypted,
    endpoint.lifetime
  )
  returning endpoint_id into v_far_id;
  return v_far_id;
end
$$;

comment on function parley._p_insert_target(parley._p_endpoint, parley._p_local_dialog) is
'Makes the side of the target of a dialog within this database, in a group of its own, and gives its endpoint_id.
Arguments: endpoint, of the initiator; dialog, what is known of its services.';

create function parley._p_send_first(
  caller oid, endpoint parley._p_endpoint, message_type text, body bytea, trace_context text
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  v_version bigint;
  v_dialog parley._p_local_dialog;
  v_role oid;
  v_far_id bigint;
begin
  -- As _p_may_remember_routes does.
  if parley._p_keeps_snapshot()
    or not pg_try_advisory_xact_lock_shared(hashtextextended('parley routes ' || endpoint.service_name, 0))
    or not pg_try_advisory_xact_lock_shared(hashtextextended('parley routes ' || endpoint.far_service, 0)) then
    return false;
  end if;
  v_version := pg_sequence_last_value('parley._p_catalog_version');
  select d.* into v_dialog
  from parley._p_local_dialog as d
  where d.catalog_version = v_version
    and d.from_service = endpoint.service_name
    and d.to_service = endpoint.far_service
    and d.contract = endpoint.service_contract_name
    and d.message_type = _p_send_first.message_type;
  if not found then
    v_dialog := parley._p_find_local_dialog(
      endpoint.service_name, endpoint.far_service, endpoint.service_contract_name, message_type
    );
  end if;
  if v_dialog.service_id is distinct from endpoint.service_id
    or endpoint.far_broker_instance <> v_dialog.broker_instance then
    return false;
  end if;
  -- Asked for by itself: an expression that reads a table is a statement, even where it need not read it.
  if endpoint.lifetime - endpoint.begun_at <> interval '2147483647 seconds' then
    if exists (select from parley._p_alarm as m where m.endpoint_id = endpoint.endpoint_id) then
      return false;
    end if;
  end if;
  v_role := case
    when pg_has_role(caller, v_dialog.queue_owner, 'usage')
      and pg_has_role(endpoint.owner, v_dialog.far_owner, 'usage') then v_dialog.queue_owner
    else parley._p_role_of_first_sender(caller, endpoint.owner, v_dialog.queue_id, null, v_dialog.far_service_id)
  end;
  if v_role is null then
    return false;
  end if;
  v_far_id := parley._p_insert_target(endpoint, v_dialog);
  update parley._p_endpoint as e
  set state = 'CO', state_since = clock_timestamp(), far_endpoint_id = v_far_id,
    far_broker_instance = v_dialog.broker_instance, usual_message_type_id = v_dialog.message_type_id,
    usual_message_type_name = message_type, sender_role = v_role, destination_lane = v_dialog.destination_lane,
    destination_position = v_dialog.destination_position, destination_wakeup = v_dialog.destination_wakeup
  where e.endpoint_id = endpoint.endpoint_id;
  insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body, trace_context)
  values (
    nextval(v_dialog.destination_position) * 1024, v_far_id, clock_timestamp(), v_dialog.destination_lane,
    v_dialog.message_type_id, nullif(_p_send_first.body, ''), _p_send_first.trace_context
  );
  if pg_sequence_last_value(v_dialog.destination_wakeup) > 0 then
    perform parley._p_admit(v_dialog.destination_lane, v_dialog.destination_wakeup, 0);
  end if;
  return true;
end
$$;

comment on function parley._p_send_first(oid, parley._p_endpoint, text, bytea, text) is
'Sends the first message of a dialog, and creates the side of its target, when that is in this database and nothing is
unusual; gives false, and has done nothing, otherwise.
Arguments: caller; endpoint, in state SO and locked FOR UPDATE; message_type, its name; body; trace_context.
Source: spec 3.4, 4.2.';
