-- The facts of the catalog for a dialog with a service of this database, found once and kept: twelve tables become one
-- row.
--
-- A row holds while the version of the catalog is the one that it has (catalog/catalog_version.sql). It is only ever
-- inserted and deleted, so no session waits for another: two sessions that need the same may each write a row. Facts
-- that depend on the caller, the rights of roles, are asked each time by the function that uses the row, and are not in
-- it. A dialog has a row only if nothing about it is unusual: the route is LOCAL and does not expire, the target
-- accepts the contract, the message type needs no validation, the sender's queue keeps no copies, both queues know
-- their priority.
-- Locks: none. Cost: one search in one index; where there is no row, the joins and a read of the lock table.

create table parley._p_local_dialog (
  catalog_version bigint not null,
  from_service text collate "C" not null,
  to_service text collate "C" not null,
  contract text collate "C" not null,
  message_type text collate "C" not null,
  service_id integer not null,
  owner parley._p_role_oid not null,
  queue_id integer not null,
  queue_owner parley._p_role_oid not null,
  service_contract_id integer not null,
  contract_owner parley._p_role_oid not null,
  priority smallint not null,
  message_type_id integer not null,
  far_service_id integer not null,
  far_owner parley._p_role_oid not null,
  far_priority smallint not null,
  far_type_id integer,
  far_type_name text collate "C",
  broker_instance text not null,
  destination_lane integer not null,
  destination_position regclass not null,
  destination_wakeup regclass not null
);

comment on table parley._p_local_dialog is
'The rows that BEGIN DIALOG and the first SEND find in the catalog for two services of this database, a contract and a
message type. Losing its rows costs time only.';

alter table parley._p_local_dialog replica identity full;

create index on parley._p_local_dialog (catalog_version, from_service, to_service, contract, message_type);

create function parley._p_resolve_local_dialog(
  from_service text, to_service text, contract text, message_type text
) returns parley._p_local_dialog
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
-- The tables are joined as they are written: each by its key.
set join_collapse_limit = 1
as $$
declare
  v_found record;
  v_dialog parley._p_local_dialog;
begin
  select s as service, q as queue, c as contract, f as far_service, fq as far_queue, t.message_type_id, n.priority,
    p.priority as far_priority, b.service_broker_guid::text as broker_instance, o.message_type_id as far_type_id,
    o.name as far_type_name, r.expires
  into v_found
  from parley._p_service as s
  join parley._p_queue as q on q.queue_id = s.queue_id and not q.is_retention_enabled
  join parley._p_contract as c on c.name = _p_resolve_local_dialog.contract
  join parley._p_service as f on f.name = _p_resolve_local_dialog.to_service
  join parley._p_queue as fq on fq.queue_id = f.queue_id
  join parley._p_service_contract as a
    on a.service_id = f.service_id and a.service_contract_id = c.service_contract_id
  join parley._p_sendable_type as t
    on t.service_contract_id = c.service_contract_id
    and t.is_from_initiator
    and t.name = _p_resolve_local_dialog.message_type
    and not t.is_validated
  cross join parley._p_broker as b
  cross join lateral parley._p_priority_of(c.service_contract_id, s.service_id, f.name) as n (priority)
  cross join lateral parley._p_priority_of(c.service_contract_id, f.service_id, s.name) as p (priority)
  cross join lateral (
    select bool_and(w.remote_service_name is null and w.next_hop = 'LOCAL') as is_local,
      bool_or(w.expires_at is not null) as expires
    from parley._p_route as w
    where coalesce(w.remote_service_name, '') = any (array[f.name, 'SQL/ServiceBroker/BrokerConfiguration', ''])
      and not w.is_inbound
      and (w.expires_at is null or w.expires_at > clock_timestamp())
  ) as r
  left join lateral parley._p_usual_type(c.service_contract_id, false) as o on true
  where s.name = _p_resolve_local_dialog.from_service
    and not parley._p_is_system_message(t.message_type_id)
    and q.priorities & (1 << n.priority) > 0
    and fq.priorities & (1 << p.priority) > 0
    and r.is_local;
  if not found then
    return null;
  end if;
  v_dialog.catalog_version := case when not v_found.expires then 0 end;
  v_dialog.from_service := from_service;
  v_dialog.to_service := to_service;
  v_dialog.contract := contract;
  v_dialog.message_type := message_type;
  v_dialog.service_id := (v_found.service).service_id;
  v_dialog.owner := (v_found.service).owner;
  v_dialog.queue_id := (v_found.queue).queue_id;
  v_dialog.queue_owner := (v_found.queue).owner;
  v_dialog.service_contract_id := (v_found.contract).service_contract_id;
  v_dialog.contract_owner := (v_found.contract).owner;
  v_dialog.priority := v_found.priority;
  v_dialog.message_type_id := v_found.message_type_id;
  v_dialog.far_service_id := (v_found.far_service).service_id;
  v_dialog.far_owner := (v_found.far_service).owner;
  v_dialog.far_priority := v_found.far_priority;
  v_dialog.far_type_id := v_found.far_type_id;
  v_dialog.far_type_name := v_found.far_type_name;
  v_dialog.broker_instance := v_found.broker_instance;
  v_dialog.destination_lane := parley._p_lane((v_found.far_queue).queue_id, v_found.far_priority);
  v_dialog.destination_position := (v_found.far_queue).position_sequence;
  v_dialog.destination_wakeup := (v_found.far_queue).wakeup_sequence;
  return v_dialog;
end
$$;

comment on function parley._p_resolve_local_dialog(text, text, text, text) is
'Finds in the catalog what _p_local_dialog keeps of it; null when something about the dialog is unusual. Instead of its
version it has 0, or null when it must not be kept, because a route that counts expires.';

create function parley._p_find_local_dialog(
  from_service text, to_service text, contract text, message_type text
) returns parley._p_local_dialog
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  v_version bigint := pg_sequence_last_value('parley._p_catalog_version');
  v_dialog parley._p_local_dialog;
begin
  select d.* into v_dialog
  from parley._p_local_dialog as d
  where d.catalog_version = v_version
    and d.from_service = _p_find_local_dialog.from_service
    and d.to_service = _p_find_local_dialog.to_service
    and d.contract = _p_find_local_dialog.contract
    and d.message_type = _p_find_local_dialog.message_type;
  if found then
    return v_dialog;
  end if;
  v_dialog := parley._p_resolve_local_dialog(from_service, to_service, contract, message_type);
  if v_dialog.catalog_version is null or parley._p_is_catalog_changing() then
    return v_dialog;
  end if;
  -- Once more: what was being changed while we read the catalog may be done now, and would be missing.
  v_dialog := parley._p_resolve_local_dialog(from_service, to_service, contract, message_type);
  if v_dialog.catalog_version is null then
    return v_dialog;
  end if;
  delete from parley._p_local_dialog as d
  where d.ctid = any (array(
    select o.ctid from parley._p_local_dialog as o where o.catalog_version < v_version limit 100 for update skip locked
  ));
  insert into parley._p_local_dialog (
    catalog_version, from_service, to_service, contract, message_type, service_id, owner, queue_id, queue_owner,
    service_contract_id, contract_owner, priority, message_type_id, far_service_id, far_owner, far_priority,
    far_type_id, far_type_name, broker_instance, destination_lane, destination_position, destination_wakeup
  )
  values (
    v_version, from_service, to_service, contract, message_type, v_dialog.service_id, v_dialog.owner, v_dialog.queue_id,
    v_dialog.queue_owner, v_dialog.service_contract_id, v_dialog.contract_owner, v_dialog.priority,
    v_dialog.message_type_id, v_dialog.far_service_id, v_dialog.far_owner, v_dialog.far_priority, v_dialog.far_type_id,
    v_dialog.far_type_name, v_dialog.broker_instance, v_dialog.destination_lane, v_dialog.destination_position,
    v_dialog.destination_wakeup
  );
  return v_dialog;
end
$$;

comment on function parley._p_find_local_dialog(text, text, text, text) is
'Gives what a dialog of two services of this database has to know of the catalog, and keeps it for the next one; null
when something about it is unusual. It asks for nobody''s rights. Waits for nobody. Not for an old snapshot:
the callers ask _p_keeps_snapshot.
Arguments: from_service; to_service; contract; message_type of the first message.';
