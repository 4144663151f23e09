-- BEGIN DIALOG: the initiator's endpoint, and its group when that is new.
--
-- Nothing is sent, and the target need not exist (spec 4.1), but where nothing could lead to it the dialog is refused
-- (conversation/unknown_targets.sql). Where nothing is unusual the side of the target is made too, and not shown until
-- something is sent (conversation/first_send.sql).
-- Locks: the names of both services, shared, by trying. The group row of a new group is locked by being uncommitted;
-- the row of an existing one is locked FOR UPDATE.

create function parley._p_lock_group(conversation_group_id uuid) returns parley._p_conversation_group
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group parley._p_conversation_group;
begin
  select * into v_group
  from parley._p_conversation_group as g
  where g.conversation_group_id = _p_lock_group.conversation_group_id
  for update;
  return v_group;
end
$$;

comment on function parley._p_lock_group(uuid) is
'Locks a group to the end of the transaction, waiting for its holder; gives null when there is none.';

create function parley._p_make_group_shared(group_id bigint, joining bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Both sides of each, in the order of END, which may follow in this transaction, and for which the far side's
  -- END may be waiting by then.
  perform
  from parley._p_endpoint as e
  where e.endpoint_id in (
    select unnest(array[o.endpoint_id, o.far_endpoint_id])
    from parley._p_endpoint as o
    where o.endpoint_id = joining or (o.group_id = _p_make_group_shared.group_id and o.is_plain)
  )
  order by e.endpoint_id
  for no key update;
  update parley._p_endpoint as e set is_plain = false where e.group_id = _p_make_group_shared.group_id and e.is_plain;
end
$$;

comment on function parley._p_make_group_shared(bigint, bigint) is
'Records that a conversation is not alone in its group any more, whose lock the caller has. Only the first time that
locks anything but the one that joins.
Arguments: group_id; joining, the endpoint that the caller moves into it, or null for one that is new.';

create function parley._p_join_group(conversation_group_id uuid, service_id integer) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group parley._p_conversation_group;
begin
  loop
    insert into parley._p_conversation_group (conversation_group_id, service_id)
    values (_p_join_group.conversation_group_id, _p_join_group.service_id)
    on conflict do nothing
    returning * into v_group;
    if found then
      return v_group.group_id;
    end if;
    v_group := parley._p_lock_group(conversation_group_id);
    exit when v_group.group_id is not null;
  end loop;
  if v_group.service_id <> service_id then
    found := parley._p_raise(9610, 'other service', conversation_group_id::text);
  end if;
  perform parley._p_make_group_shared(v_group.group_id, null);
  return v_group.group_id;
end
$$;

comment on function parley._p_join_group(uuid, integer) is
'Finds and locks a group, or creates it, for a new endpoint.
Errors: 9610 the group belongs to another service.';

create function parley._p_remember_begun(handle uuid, place tid) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- The last twenty or so: one that is cut off is found by its handle.
  perform set_config(
    'parley.begun', left(handle || '=' || place || ' ' || coalesce(current_setting('parley.begun', true), ''), 1000),
    true
  );
end
$$;

comment on function parley._p_remember_begun(uuid, tid) is
'Keeps, to the end of the transaction, where the row of a dialog is that it has begun or changed.';

create function parley._p_begun_place(handle uuid) returns tid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return substring(current_setting('parley.begun', true) from handle || '=([(][0-9]{1,9},[0-9]{1,4}[)])')::tid;
end
$$;

comment on function parley._p_begun_place(uuid) is
'Gives the place that _p_remember_begun has kept last for a handle; null when there is none.';

create function parley._p_begin_dialog(
  caller oid, from_service text, to_service text, contract text, broker_instance text, lifetime integer,
  encryption boolean, related_conversation uuid, related_conversation_group uuid, allow_unknown_target boolean
) returns parley._p_endpoint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parts record;
  v_group_id bigint;
  v_is_alone boolean := true;
  v_made record;
  v_endpoint parley._p_endpoint;
  v_now timestamptz := clock_timestamp();
  v_lifetime timestamptz := v_now + make_interval(secs => _p_begin_dialog.lifetime);
begin
  found := parley._p_check_dialog(to_service, contract, lifetime, related_conversation, related_conversation_group);
  if broker_instance is not null then
    broker_instance := parley._p_broker_instance(broker_instance);
  end if;
  v_parts := parley._p_parts_of_dialog(caller, from_service, to_service, contract);
  if not v_parts.is_here or broker_instance is not null then
    found := parley._p_require_target(caller, to_service, broker_instance, allow_unknown_target);
  end if;
  if related_conversation is not null then
    select g.conversation_group_id into related_conversation_group
    from parley._p_endpoint as e
    join parley._p_conversation_group as g using (group_id)
    where e.conversation_handle = related_conversation and not parley._p_is_hidden(e);
    if not found then
      found := parley._p_raise_unknown_handle(related_conversation);
    end if;
  end if;
  if related_conversation_group is null then
    insert into parley._p_conversation_group (conversation_group_id, service_id)
    values (gen_random_uuid(), v_parts.service_id)
    returning group_id into v_group_id;
  else
    v_group_id := parley._p_join_group(related_conversation_group, v_parts.service_id);
    v_is_alone := not exists (select from parley._p_endpoint as e where e.group_id = v_group_id);
  end if;
  insert into parley._p_endpoint as e (
    group_id, state, is_initiator, is_plain, priority, service_id, service_contract_id, service_name,
    service_contract_name, conversation_id, owner, far_service, far_broker_instance, is_encrypted, lifetime, begun_at
  )
  values (
    v_group_id, 'SO', true, v_is_alone, v_parts.priority, v_parts.service_id, v_parts.service_contract_id, from_service,
    contract, gen_random_uuid(), v_parts.owner, to_service, _p_begin_dialog.broker_instance, coalesce(encryption, true),
    v_lifetime, v_now
  )
  returning e as endpoint, e.ctid as place into v_made;
  v_endpoint := v_made.endpoint;
  if current_setting('transaction_isolation') = 'serializable' then
    perform parley._p_remember_begun(v_endpoint.conversation_handle, v_made.place);
  end if;
  if lifetime < 2147483647 then
    perform parley._p_set_alarm(v_endpoint.endpoint_id, 'lifetime', v_lifetime);
  end if;
  return v_endpoint;
end
$$;

comment on function parley._p_begin_dialog(oid, text, text, text, text, integer, boolean, uuid, uuid, boolean) is
'Begins a dialog for a role, and gives the endpoint.
Arguments: caller; the others as begin_dialog.
Errors: those of begin_dialog.';

create function parley.begin_dialog(
  from_service text,
  to_service text,
  contract text default 'DEFAULT',
  broker_instance text default null,
  lifetime integer default 2147483647,
  encryption boolean default true,
  related_conversation uuid default null,
  related_conversation_group uuid default null,
  deduplication_key text default null,
  allow_unknown_target boolean default null,
  caller parley.caller default current_user
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
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
  -- The usual dialog within this database: both of its sides, by the facts that are kept of the catalog, so that its
  -- first SEND is like any other (conversation/first_send.sql). Where something is unusual or not allowed, nothing
  -- is found here, and the other way says why. The switch of the broker before any row, as SEND does.
  if broker_instance is null and lifetime = 2147483647 and related_conversation is null
    and related_conversation_group is null and deduplication_key is null
    and pg_sequence_last_value('parley._p_broker_switch') is null
    and (pg_sequence_last_value('parley._p_trace_until') > 0) is not true
    and current_setting('transaction_isolation') <> 'serializable'
    and pg_try_advisory_xact_lock_shared(hashtextextended('parley routes ' || from_service, 0))
    and pg_try_advisory_xact_lock_shared(hashtextextended('parley routes ' || to_service, 0)) then
    v_version := pg_sequence_last_value('parley._p_catalog_version');
    select d.* into v_dialog
    from parley._p_local_dialog as d
    where d.catalog_version = v_version
      and d.from_service = begin_dialog.from_service
      and d.to_service = begin_dialog.to_service
      and d.contract = begin_dialog.contract
    limit 1;
    v_role := case
      when pg_has_role(v_caller, v_dialog.queue_owner, 'usage')
        and (v_dialog.service_contract_id < 65536 or pg_has_role(v_caller, v_dialog.contract_owner, 'usage'))
        and pg_has_role(v_dialog.owner, v_dialog.far_owner, 'usage') then v_dialog.queue_owner
      when v_dialog.service_id is not null then parley._p_role_of_first_sender(
        v_caller, v_dialog.owner, v_dialog.queue_id, v_dialog.service_contract_id, v_dialog.far_service_id
      )
    end;
    if v_role is not null then
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
        endpoint_id, far_endpoint_id, group_id, conversation_handle, state, is_initiator, is_plain, priority,
        service_id, owner, service_name, far_service, usual_message_type_id, usual_message_type_name, sender_role,
        destination_lane, destination_position, destination_wakeup, service_contract_id, service_contract_name,
        conversation_id, far_broker_instance, is_encrypted, lifetime, bound_version, begun_at, state_since
      ) overriding system value
      values (v_id, v_far_id, v_group_id, v_handle, 'CO', true, true, v_dialog.priority, v_dialog.service_id,
        v_dialog.owner, from_service, to_service, v_dialog.message_type_id, v_dialog.message_type, v_role,
        v_dialog.destination_lane, v_dialog.destination_position, v_dialog.destination_wakeup,
        v_dialog.service_contract_id, contract, v_conversation_id, v_dialog.broker_instance, coalesce(encryption, true),
        v_now + interval '2147483647 seconds', v_version, v_now, v_now),
      (v_far_id, v_id, v_far_group_id, gen_random_uuid(), 'CO', false, true, v_dialog.far_priority,
        v_dialog.far_service_id, v_dialog.far_owner, to_service, from_service, v_dialog.far_type_id,
        v_dialog.far_type_name, null, null, null, null, v_dialog.service_contract_id, contract, v_conversation_id,
        v_dialog.broker_instance, coalesce(encryption, true), v_now + interval '2147483647 seconds', v_version, v_now,
        v_now);
      return v_handle;
    end if;
  end if;
  if deduplication_key is not null then
    return (parley._p_begin_dialog_once(
      v_caller, from_service, to_service, deduplication_key, contract, broker_instance, lifetime,
      encryption, related_conversation, related_conversation_group, allow_unknown_target
    )).conversation_handle;
  end if;
  return (parley._p_begin_dialog(
    v_caller, from_service, to_service, contract, broker_instance, lifetime, encryption,
    related_conversation, related_conversation_group, allow_unknown_target
  )).conversation_handle;
end
$$;

comment on function parley.begin_dialog(
  text, text, text, text, integer, boolean, uuid, uuid, text, boolean, parley.caller
) is
'Begins a dialog and returns its conversation handle. Nothing is sent yet. The target need not answer, but a way to it
must exist: a service of this database, a route that names it, one for any service to another broker, the broker
configuration service, or another database of the same daemon. A notice names a service that is like one not found.
Arguments: from_service, of this database; to_service, compared byte by byte; contract; broker_instance, the id of the
target database, CURRENT DATABASE, or null for any; lifetime in seconds, 2147483647 for none; encryption, whether
messages that leave the database must be encrypted (null: they must); related_conversation, a handle whose group to
join, or related_conversation_group, the group itself, created when unknown; deduplication_key, 1 to 256 characters:
when it was used for a dialog from this service before, no longer ago than deduplication_seconds of the service, none is
begun, and the handle of the first is returned (null: always begin one): begin_dialog_once says which it was;
allow_unknown_target, whether to begin where
nothing leads to the target, so that messages wait until something does (null: as the setting
parley.allow_unknown_targets says, off by default).
Errors: 229 not allowed, 8402 deduplication_key empty or too long,
8406 lifetime null, 8411 lifetime out of range, 8412 and 8421 to_service malformed or missing,
8413 broker_instance malformed, 8414 unusable group, 8417 contract missing, 8423 from_service not found, 8425 contract
not found, 8426 related_conversation not found, 9601 two relations, 9610 the group is of another service, 9750, 9785,
9795 and 9796 nothing leads to the target, as transmission_status would say.
Source: spec 4.1.';

create function parley._p_check_dialog(
  to_service text, contract text, lifetime integer, related_conversation uuid, related_conversation_group uuid
) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if to_service is null then
    found := parley._p_raise(8421, 'null');
  elsif to_service = '' or length(to_service) > 256 then
    found := parley._p_raise(8412, 'length', length(to_service)::text);
  elsif contract is null then
    found := parley._p_raise(8417, 'null');
  elsif lifetime is null then
    found := parley._p_raise(8406, 'null');
  elsif lifetime <= 0 then
    found := parley._p_raise(8411, 'range', lifetime::text);
  elsif related_conversation is not null and related_conversation_group is not null then
    found := parley._p_raise(9601, 'relations');
  elsif related_conversation_group in (
    '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'
  ) then
    -- The one is what programs have before they have an id; with the other RECEIVE takes from any group.
    found := parley._p_raise(8414, 'unusable');
  end if;
  return true;
end
$$;

comment on function parley._p_check_dialog(text, text, integer, uuid, uuid) is
'Checks the arguments of begin_dialog that no table is read for.
Errors: 8406, 8411, 8412, 8414, 8417, 8421, 9601.';

create function parley._p_parts_of_dialog(
  caller oid, from_service text, to_service text, contract text,
  out service_id integer, out owner oid, out service_contract_id integer, out priority smallint, out is_here boolean
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parts record;
begin
  select s.service_id, s.owner, q as queue, c as contract,
    case
      when exists (select from parley._p_priority)
        then parley._p_priority_of(c.service_contract_id, s.service_id, _p_parts_of_dialog.to_service)
      else 5::smallint
    end as priority,
    exists (select from parley._p_service as f where f.name = _p_parts_of_dialog.to_service) as is_here
  into v_parts
  from parley._p_service as s
  join parley._p_queue as q on q.queue_id = s.queue_id
  left join parley._p_contract as c on c.name = _p_parts_of_dialog.contract
  where s.name = _p_parts_of_dialog.from_service;
  if not found then
    found := parley._p_raise(8423, 'service', from_service, parley._p_did_you_mean(caller, 'service', from_service));
  elsif pg_has_role(caller, (v_parts.queue).owner, 'usage') is not true then
    found := parley._p_require_permission(
      caller, 'RECEIVE', 'queue', (v_parts.queue).queue_id, (v_parts.queue).lookup_name, (v_parts.queue).owner
    );
  end if;
  service_contract_id := (v_parts.contract).service_contract_id;
  if service_contract_id is null then
    found := parley._p_raise(8425, 'contract', contract, parley._p_did_you_mean(caller, 'contract', contract));
  elsif service_contract_id >= 65536 and pg_has_role(caller, (v_parts.contract).owner, 'usage') is not true then
    found := parley._p_require_permission(
      caller, 'REFERENCES', 'contract', service_contract_id, contract, (v_parts.contract).owner
    );
  end if;
  service_id := v_parts.service_id;
  owner := v_parts.owner;
  priority := v_parts.priority;
  is_here := v_parts.is_here;
  if (v_parts.queue).priorities & (1 << priority) = 0 then
    perform parley._p_use_priority(v_parts.queue, priority);
  end if;
end
$$;

comment on function parley._p_parts_of_dialog(oid, text, text, text) is
'Finds what a dialog is begun with, and asks whether the caller may. Gives the service with its owner, the contract,
the priority of the new endpoint, in whose lane readers scan from now on, and whether a service of the name
to_service is in this database.
Errors: 229, 8423, 8425.';

create function parley._p_use_priority(queue parley._p_queue, priority integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if queue.priorities & (1 << priority) = 0 then
    update parley._p_queue as q set priorities = q.priorities | (1 << priority) where q.queue_id = queue.queue_id;
  end if;
end
$$;

comment on function parley._p_use_priority(parley._p_queue, integer) is
'Remembers that a queue has endpoints of a priority, so that readers scan its lane.';
