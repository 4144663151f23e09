-- The first message of a dialog within this database, and how it is known whether there was one.
--
-- BEGIN DIALOG inserts both sides of a usual dialog within this database, both in state CO and ready for SEND, so that
-- the first SEND is like any other: one statement, which writes no endpoint. As long as no message has arrived at the
-- target the dialog is unsent: views show the initiator in state SO and the target not at all. No session can know
-- the handle of such a target.
--
-- Invariants, and what keeps each:
--   what was sent is never taken for unsent   a message at the target, or the row that RECEIVE leaves of how far it was
--     received, says that something was sent; a message that waits on the side of the initiator, for a way or for its
--     time, takes the version off its row. A statement that acts on it locks that row FOR UPDATE before it asks, and so
--     waits for its senders. At a level that keeps its snapshot that is not enough, and nothing is taken for unsent
--   a change of the catalog counts for the first SEND as if the target were made by it   the dialog has the version of
--     the catalog; where that has changed SEND takes the long way, and an unsent dialog loses its target first. An old
--     snapshot does no harm to BEGIN DIALOG: a row that is kept with the present version is as new as that
--   a right to send to the target that is revoked counts for the first SEND   GRANT and REVOKE change the version of
--     the catalog. A role that leaves another one after BEGIN DIALOG may still send, as on any open conversation
--   nobody is told of the end of an unsent dialog (spec 3.2)   END and statements that end conversations from outside
--     remove the target first
-- Locks: the initiator FOR UPDATE, then the rows of the target. A session that waits here holds no lock of the row.
--
-- _p_send_first sends the first message of a dialog whose target BEGIN DIALOG has not made. It does what _p_dispatch,
-- _p_deliver, _p_connect and _p_remember_route do one after the other (conversation/deliver.sql,
-- conversation/connect.sql); send/begin_and_send.sql does the same and BEGIN DIALOG in one. The facts of the catalog
-- are found in one row (conversation/local_dialogs.sql). Unusual cases are left to these functions: a route other than
-- LOCAL, a target that refuses, validation, retention, a lifetime, a priority that is new to a queue.
-- Its locks: who changes rights or settings that are remembered here waits for us (_p_may_remember_routes). The
-- sender's endpoint row FOR UPDATE, by the caller, before the first statement: who alters a queue or drops a service
-- waits for it, and what he has changed is seen then. The switch of the broker is asked by the caller before that.
-- Cost: docs/internals/measurements.md, "Short conversations".

create view parley._p_shown_endpoint as
select
  e.endpoint_id,
  e.far_endpoint_id,
  e.group_id,
  e.conversation_handle,
  case when u.is_unsent then 'SO' else e.state end as state,
  e.is_initiator,
  e.priority,
  e.service_id,
  e.service_contract_id,
  e.service_name,
  e.service_contract_name,
  e.conversation_id,
  e.owner,
  e.far_service,
  case when not u.is_unsent then e.far_broker_instance end as far_broker_instance,
  e.lifetime,
  e.begun_at,
  e.state_since
from parley._p_endpoint as e
cross join lateral (
  select e.bound_version is not null
    and e.state = 'CO'
    -- The order keeps to the index: statistics of one large backlog make a plain EXISTS read the whole table.
    and (
      select m.position
      from parley._p_message as m
      where m.endpoint_id = case when e.is_initiator then e.far_endpoint_id else e.endpoint_id end
      order by m.position
      limit 1
    ) is null
    and (
      select p.sequence
      from parley._p_receive_progress as p
      where p.endpoint_id = case when e.is_initiator then e.far_endpoint_id else e.endpoint_id end
      order by p.sequence
      limit 1
    ) is null as is_unsent
) as u
where e.is_initiator or not u.is_unsent;

comment on view parley._p_shown_endpoint is
'The sides of conversations as views show them: an unsent dialog is in state SO, and has no target.';

create function parley._p_was_sent_nothing(endpoint_id bigint) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return not exists (select from parley._p_receive_progress as p where p.endpoint_id = $1)
    and not exists (select from parley._p_message as m where m.endpoint_id = $1);
end
$$;

comment on function parley._p_was_sent_nothing(bigint) is
'Reports whether this transaction sees no message that a side was ever sent.';

create function parley._p_is_unsent(endpoint parley._p_endpoint) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  return endpoint.bound_version is not null and endpoint.is_initiator and endpoint.state = 'CO'
    and parley._p_was_sent_nothing(endpoint.far_endpoint_id);
end
$$;

comment on function parley._p_is_unsent(parley._p_endpoint) is
'Reports whether this transaction sees no message on a dialog whose sides BEGIN DIALOG has made; others may have sent.
Arguments: endpoint, of the initiator; false for any other.';

create function parley._p_is_hidden(endpoint parley._p_endpoint) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  -- A rollback may have taken back the message by which somebody has learnt the handle.
  return endpoint.bound_version is not null and not endpoint.is_initiator and endpoint.state = 'CO'
    and parley._p_was_sent_nothing(endpoint.endpoint_id);
end
$$;

comment on function parley._p_is_hidden(parley._p_endpoint) is
'Reports whether an endpoint is the target of an unsent dialog, as this transaction sees it: then it is not there for
anybody.';

create function parley._p_find_shown(handle uuid, statement text default null) returns parley._p_endpoint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint := parley._p_find_endpoint(handle, statement);
begin
  if v_endpoint.bound_version is not null and parley._p_is_hidden(v_endpoint) then
    found := parley._p_raise_unknown_handle(handle);
  end if;
  return v_endpoint;
end
$$;

comment on function parley._p_find_shown(uuid, text) is
'Does what _p_find_endpoint does, for a statement to which the target of an unsent dialog is unknown.
Errors: those of _p_find_endpoint.';

create function parley._p_unbind(endpoint parley._p_endpoint) returns parley._p_endpoint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group_id bigint;
  v_endpoint parley._p_endpoint;
begin
  delete from parley._p_endpoint as f where f.endpoint_id = endpoint.far_endpoint_id
  returning f.group_id into v_group_id;
  delete from parley._p_conversation_group as g where g.group_id = v_group_id;
  update parley._p_endpoint as e
  set state = 'SO', far_endpoint_id = null, far_broker_instance = null, bound_version = null, destination_lane = null,
    destination_position = null, destination_wakeup = null, usual_message_type_id = null,
    usual_message_type_name = null, sender_role = null
  where e.endpoint_id = endpoint.endpoint_id
  returning e.* into v_endpoint;
  return v_endpoint;
end
$$;

comment on function parley._p_unbind(parley._p_endpoint) is
'Removes the target of an unsent dialog, whose initiator the caller has locked FOR UPDATE, and gives that as it is now:
in state SO, as if BEGIN DIALOG had made it alone.';

create function parley._p_settle(endpoint parley._p_endpoint) returns parley._p_endpoint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if endpoint.bound_version is null or not endpoint.is_initiator or endpoint.state <> 'CO' then
    return endpoint;
  elsif parley._p_is_unsent(endpoint) and not parley._p_keeps_snapshot() then
    return parley._p_unbind(endpoint);
  end if;
  update parley._p_endpoint as e set bound_version = null where e.endpoint_id = endpoint.endpoint_id
  returning e.* into endpoint;
  return endpoint;
end
$$;

comment on function parley._p_settle(parley._p_endpoint) is
'Finds out whether something was sent on a dialog whose initiator the caller has locked FOR UPDATE. An unsent one loses
its target; any other is a conversation like all others from now on. Gives the initiator as it is now.';

create function parley._p_settle_to_send(endpoint parley._p_endpoint) returns parley._p_endpoint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  -- Sessions that have sent on it share its row, and would wait for one another to lock it. Each of them sees what it
  -- has sent itself, and goes on.
  if parley._p_keeps_snapshot() then
    return endpoint;
  elsif not parley._p_is_unsent(endpoint) then
    perform from parley._p_endpoint as e where e.endpoint_id = endpoint.endpoint_id for no key update skip locked;
    if found then
      update parley._p_endpoint as e set bound_version = null where e.endpoint_id = endpoint.endpoint_id;
    end if;
    return endpoint;
  end if;
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = endpoint.endpoint_id for update;
  return parley._p_settle(v_endpoint);
end
$$;

comment on function parley._p_settle_to_send(parley._p_endpoint) is
'Does what _p_settle does for a session that is going to send and has not locked the row. Gives the initiator as it is
now, a row of nulls when it has gone.';

create function parley._p_settle_handle(handle uuid) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_settle_to_send(e)
  from parley._p_endpoint as e
  where e.conversation_handle = handle and parley._p_is_unsent(e);
end
$$;

comment on function parley._p_settle_handle(uuid) is
'Removes the target of a dialog that is unsent, for a session that sends on it in a way in which the first message makes
the target.';

create function parley._p_settle_unsent(endpoints bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  for v_endpoint in
    select e.*
    from parley._p_endpoint as e
    where e.endpoint_id in (
        select unnest(array[o.endpoint_id, o.far_endpoint_id])
        from parley._p_endpoint as o
        where o.endpoint_id = any (endpoints) and o.bound_version is not null
      )
      and e.is_initiator
      and e.bound_version is not null
      and e.state = 'CO'
    order by e.endpoint_id
    for update
  loop
    if parley._p_is_unsent(v_endpoint) then
      v_endpoint := parley._p_settle(v_endpoint);
    end if;
  end loop;
end
$$;

comment on function parley._p_settle_unsent(bigint[]) is
'Removes the targets of those of some dialogs that are unsent. Waits for their senders.
Arguments: endpoints, of either side.';

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
