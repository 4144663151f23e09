-- The target's side of a first message: its endpoint, and the short cut that later sends take.

create function parley._p_connect(endpoint parley._p_endpoint) returns parley._p_endpoint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_service parley._p_service;
  v_queue parley._p_queue;
  v_group bigint;
  v_far parley._p_endpoint;
  v_guid text := (select b.service_broker_guid::text from parley._p_broker as b);
  v_type record;
begin
  select * into v_service from parley._p_service as s where s.name = endpoint.far_service;
  if parley._p_keeps_snapshot() then
    -- Fails when the service has been dropped or moved since.
    perform from parley._p_service as s where s.service_id = v_service.service_id for key share;
  end if;
  select * into v_queue from parley._p_queue as q where q.queue_id = v_service.queue_id;
  insert into parley._p_conversation_group (conversation_group_id, service_id)
  values (gen_random_uuid(), v_service.service_id)
  returning group_id into v_group;
  select t.message_type_id, t.name into v_type from parley._p_usual_type(endpoint.service_contract_id, false) as t;
  insert into parley._p_endpoint (
    far_endpoint_id, group_id, usual_message_type_id, usual_message_type_name, state, is_initiator, is_plain, priority,
    service_id, service_contract_id, service_name, service_contract_name, conversation_id, owner, far_service,
    far_broker_instance, is_encrypted, lifetime
  )
  values (
    endpoint.endpoint_id, v_group, v_type.message_type_id, v_type.name, 'CO', false, true,
    parley._p_priority_of(endpoint.service_contract_id, v_service.service_id, endpoint.service_name),
    v_service.service_id, endpoint.service_contract_id, v_service.name, endpoint.service_contract_name,
    endpoint.conversation_id, v_service.owner, endpoint.service_name, v_guid, endpoint.is_encrypted, endpoint.lifetime
  )
  returning * into v_far;
  -- Each side keeps its own clock: the initiator may be gone when the time comes (spec 3.2).
  perform parley._p_set_alarm(v_far.endpoint_id, 'lifetime', coalesce(a.first_due_at, a.due_at))
  from parley._p_alarm as a
  where a.endpoint_id = endpoint.endpoint_id and a.kind = 'lifetime';
  perform parley._p_use_priority(v_queue, v_far.priority);
  select t.message_type_id, t.name into v_type from parley._p_usual_type(endpoint.service_contract_id, true) as t;
  update parley._p_endpoint as e
  set far_endpoint_id = v_far.endpoint_id, far_broker_instance = v_guid, usual_message_type_id = v_type.message_type_id,
    usual_message_type_name = v_type.name
  where e.endpoint_id = endpoint.endpoint_id;
  return v_far;
end
$$;

comment on function parley._p_connect(parley._p_endpoint) is
'Creates the target''s endpoint of a conversation in this database and lets both sides know each other. The caller has
called _p_await_service before he asked whether the target is here.';

create function parley._p_usual_type(
  service_contract_id integer, is_initiator boolean
) returns table (message_type_id integer, name text)
language sql stable
as $$
  select t.message_type_id, t.name
  from parley._p_sendable_type as t
  where t.service_contract_id operator(pg_catalog.=) $1
    and t.is_from_initiator operator(pg_catalog.=) $2
    and not t.is_validated
  order by t.message_type_id
  limit 1
$$;

comment on function parley._p_usual_type(integer, boolean) is
'Gives the message type a side of a conversation is expected to send most: its first one
without validation, if there is one.';

create function parley._p_right_to_send(caller oid, queue parley._p_queue) returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return case
    when pg_has_role(caller, queue.owner, 'usage') then queue.owner
    else coalesce(
      (
        select case p.grantee::oid when 0 then caller else p.grantee end
        from parley._p_permission as p
        where p.class = 'queue'
          and p.object_id = queue.queue_id
          and p.permission in ('RECEIVE', 'CONTROL')
          and (p.grantee = 0::regrole or pg_has_role(caller, p.grantee, 'usage'))
        limit 1
      ),
      (select n.nspowner from pg_namespace as n where n.nspname = 'parley' and pg_has_role(caller, n.nspowner, 'usage'))
    )
  end;
end
$$;

comment on function parley._p_right_to_send(oid, parley._p_queue) is
'Shows through which role a role holds RECEIVE on a queue: who loses that role loses the right, without a notification.
Null when that cannot be said.';

create function parley._p_may_remember_routes(service_name text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return not parley._p_keeps_snapshot()
    and pg_try_advisory_xact_lock_shared(hashtextextended('parley routes ' || service_name, 0));
end
$$;

comment on function parley._p_may_remember_routes(text) is
'Reports whether what the next statement reads about rights and settings may be remembered at sides of a service. Until
the transaction ends, who changes them waits for it in _p_forget_later_routes; while somebody changes them, and where
the snapshot is an old one, nothing is remembered. Waits for nobody.';

create function parley._p_remember_route(caller oid, handle uuid) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not (
    select parley._p_may_remember_routes(e.service_name)
    from parley._p_endpoint as e
    where e.conversation_handle = handle
  ) then
    return;
  end if;
  update parley._p_endpoint as e
  set destination_lane = parley._p_lane(fq.queue_id, f.priority),
    destination_position = fq.position_sequence,
    destination_wakeup = fq.wakeup_sequence,
    sender_role = parley._p_right_to_send(caller, q)
  from parley._p_service as s
  join parley._p_queue as q using (queue_id),
    parley._p_endpoint as f
    join parley._p_service as fs using (service_id)
    join parley._p_queue as fq on fq.queue_id = fs.queue_id
  where e.conversation_handle = handle
    and e.state = 'CO'
    and e.destination_lane is null
    and exists (
      select from parley._p_message_type as t
      where t.message_type_id = e.usual_message_type_id and not t.is_validated
    )
    and s.service_id = e.service_id
    and not q.is_retention_enabled
    and parley._p_right_to_send(caller, q) is not null
    and f.endpoint_id = e.far_endpoint_id;
  if not found then
    perform parley._p_remember_destination(caller, handle);
  end if;
end
$$;

comment on function parley._p_remember_route(oid, uuid) is
'Lets the next send of a conversation take the short way, when nothing stands against it.
Arguments: caller, whose rights were checked; handle of the conversation, whose row is locked.';

create function parley._p_remember_destination(caller oid, handle uuid) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley._p_endpoint as e
  set destination_lane = parley._p_lane(e.destination_id, e.priority),
    destination_position = 'parley._p_transmission_position',
    destination_wakeup = 'parley._p_transmission_wakeup',
    usual_message_type_id = t.message_type_id,
    usual_message_type_name = t.name,
    sender_role = parley._p_right_to_send(caller, q)
  from parley._p_endpoint as o
  join parley._p_service as s using (service_id)
  join parley._p_queue as q using (queue_id)
  cross join lateral parley._p_usual_type(o.service_contract_id, o.is_initiator) as t
  where e.conversation_handle = handle
    and o.endpoint_id = e.endpoint_id
    and e.state = 'CO'
    and e.destination_lane is null
    and e.destination_id is not null
    and t.message_type_id is not null
    and not q.is_retention_enabled
    and parley._p_right_to_send(caller, q) is not null;
end
$$;

comment on function parley._p_remember_destination(oid, uuid) is
'Lets the next send of a conversation with another database take the short way, when nothing stands against it.
Arguments: as _p_remember_route.';

create function parley._p_forget_routes(endpoints bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley._p_endpoint as e set destination_lane = null, sender_role = null
  where e.endpoint_id = any (endpoints) and (e.destination_lane is not null or e.sender_role is not null);
end
$$;

comment on function parley._p_forget_routes(bigint[]) is 'Makes the next send of these endpoints take the long way.';

create function parley._p_forget_routes_of_queue(queue_id integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_forget_later_routes(o.name)
  from (select s.name from parley._p_service as s where s.queue_id = $1 order by s.name) as o;
  perform parley._p_forget_routes(array(
    select e.endpoint_id
    from parley._p_endpoint as e
    join parley._p_service as s using (service_id)
    where s.queue_id = $1
  ));
end
$$;

comment on function parley._p_forget_routes_of_queue(integer) is
'Makes the next send of all endpoints of a queue take the long way: its settings or rights have changed. Waits for first
sends that are under way: they may have read the rights from before.';

create function parley._p_forget_routes_of_type(message_type_id integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_forget_later_routes(o.name)
  from (select s.name from parley._p_service as s order by s.name) as o
  where exists (select from parley._p_message_type as t where t.message_type_id = $1 and t.is_validated);
  update parley._p_endpoint as e
  set usual_message_type_id = null, usual_message_type_name = null, destination_lane = null, sender_role = null
  where e.usual_message_type_id = $1
    and exists (select from parley._p_message_type as t where t.message_type_id = $1 and t.is_validated);
end
$$;

comment on function parley._p_forget_routes_of_type(integer) is
'Makes sends of a message type that now needs validation take the long way. Waits for first sends that are under way:
they may have read that it needs none.';

create view parley._p_delayed_endpoint as
select t.endpoint_id
from parley._p_transmission as t
union
-- All that it sent has its number already, and lost its way since.
select t.endpoint_id
from parley._p_transit as t
join parley._p_endpoint as o using (endpoint_id)
where o.destination_id is null;

comment on view parley._p_delayed_endpoint is 'Sides of conversations of which messages wait for a way.';

create function parley._p_deliver_delayed(service_name text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_id bigint;
begin
  if pg_sequence_last_value('parley._p_broker_switch') is not null then
    return;
  end if;
  for v_id in
    select e.endpoint_id
    from parley._p_endpoint as e
    where e.endpoint_id in (select d.endpoint_id from parley._p_delayed_endpoint as d)
      and (_p_deliver_delayed.service_name is null or e.far_service = _p_deliver_delayed.service_name)
    order by e.endpoint_id
  loop
    perform from parley._p_endpoint as e where e.endpoint_id = v_id for update;
    if found then
      perform parley._p_deliver_delayed_of(v_id);
    end if;
  end loop;
end
$$;

comment on function parley._p_deliver_delayed(text) is
'Finds the way again of what waits in the transmission queue: delivers it here, or puts it on its way to another
database, in the order it was sent.
Arguments: service_name, of the far side, null for any. Conversations that somebody holds are waited for.';

create function parley._p_deliver_delayed_of(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
  v_reason text;
  v_message record;
  v_type parley._p_message_type;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_deliver_delayed_of.endpoint_id;
  -- Messages that are held because the other side has ended, or is parked, stay. The time for which it is parked counts
  -- elsewhere, not here.
  if not found
    or v_endpoint.state in ('DI', 'ER')
      and not exists (
        select from parley._p_transmission as t where t.endpoint_id = v_endpoint.endpoint_id and t.message_type_id = -1
      )
    or exists (select from parley._p_parked as p where p.endpoint_id = v_endpoint.endpoint_id and p.due_at < 'infinity')
      and parley._p_is_at_home(v_endpoint) is not true then
    return;
  elsif v_endpoint.far_endpoint_id is null or v_endpoint.far_endpoint_id < 0 and v_endpoint.destination_id is null then
    v_reason := parley._p_bind(v_endpoint);
    select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_deliver_delayed_of.endpoint_id;
    if v_reason is not null then
      update parley._p_transmission as t set transmission_status = v_reason
      where t.endpoint_id = v_endpoint.endpoint_id and t.transmission_status <> v_reason;
    end if;
  end if;
  if v_reason is not null or v_endpoint.far_endpoint_id < 0 then
    return;
  end if;
  for v_message in
    select t.message_type_id, t.body, t.trace_context
    from parley._p_transmission as t
    where t.endpoint_id = _p_deliver_delayed_of.endpoint_id
    order by t.transmission_id
  loop
    select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_deliver_delayed_of.endpoint_id;
    exit when not found or v_endpoint.state = 'ER';
    if v_message.message_type_id in (1, 2) then
      perform parley._p_send_end(v_endpoint, v_message.message_type_id, v_message.body);
    else
      select * into v_type from parley._p_message_type as t where t.message_type_id = v_message.message_type_id;
      perform parley._p_deliver(v_endpoint, v_type, array[v_message.body], v_message.trace_context, false);
    end if;
  end loop;
  delete from parley._p_transmission as t where t.endpoint_id = _p_deliver_delayed_of.endpoint_id;
end
$$;

comment on function parley._p_deliver_delayed_of(bigint) is
'Delivers what waits in the transmission queue for one endpoint, which the caller has locked, or puts it
on its way, if there is one now.';
