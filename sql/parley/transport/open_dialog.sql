-- The target's side of a first message from another database: what it refuses, and the endpoint it makes.

create function parley._p_refuse_first(run parley._p_arriving_run) returns parley._p_verdict
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_sender oid := parley._p_role_of_identity(run.identity);
  v_service parley._p_service;
  v_queue parley._p_queue;
  v_error parley._p_error;
begin
  if run.message_type in (
    'http://schemas.microsoft.com/SQL/ServiceBroker/Error', 'http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog'
  ) then
    return parley._p_verdict_of('refused', 0, parley._p_error_of(11277, 'begins with its end'));
  end if;
  select * into v_service from parley._p_service as s where s.name = run.to_service;
  if not found and run.to_broker is null then
    return parley._p_verdict_of('unroutable', 0, parley._p_error_of(9796, 'not at the target', run.to_service));
  elsif not found then
    return parley._p_verdict_of('refused', 0, parley._p_error_of(
      8490, 'no service', run.to_service, parley._p_did_you_mean(coalesce(v_sender, 0), 'service', run.to_service)
    ));
  end if;
  v_error := parley._p_refuse_dialog(v_service, run.contract, v_sender);
  select * into v_queue from parley._p_queue as q where q.queue_id = v_service.queue_id;
  -- A sender that may send waits while the queue is off, whatever else stands against it: that may be about to be put
  -- right.
  if v_error.error_number is distinct from 8494 and not v_queue.is_enqueue_enabled then
    return parley._p_verdict_of('held', 0, parley._p_error_of(11219, 'queue disabled', v_queue.lookup_name));
  elsif v_error is not null then
    return parley._p_verdict_of('refused', 0, v_error);
  elsif not (parley._p_has_room(v_queue, 1)).room then
    return parley._p_verdict_of('held', 0, parley._p_error_of(10928, 'full', v_queue.lookup_name));
  end if;
  return null;
end
$$;

comment on function parley._p_refuse_first(parley._p_arriving_run) is
'Explains why this database does not take the first message of a dialog from another one: it is an end (11277), there is
no such service (8490, 9796), the queue is off (11219), or what _p_refuse_dialog says; null when it does.
Source: spec 6.10.';

create function parley._p_open_dialog(broker_instance uuid, run parley._p_arriving_run) returns parley._p_verdict
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_service parley._p_service;
  v_queue parley._p_queue;
  v_contract parley._p_contract;
  v_group bigint;
  v_endpoint parley._p_endpoint;
  v_type record;
begin
  select * into v_service from parley._p_service as s where s.name = run.to_service;
  select * into v_queue from parley._p_queue as q where q.queue_id = v_service.queue_id;
  select * into v_contract from parley._p_contract as c where c.name = run.contract;
  if run.ends_at <= clock_timestamp() then
    return parley._p_verdict_of('refused', 0, parley._p_error_of(8489, 'lifetime'));
  end if;
  insert into parley._p_conversation_group (conversation_group_id, service_id)
  values (gen_random_uuid(), v_service.service_id)
  returning group_id into v_group;
  select t.message_type_id, t.name into v_type from parley._p_usual_type(v_contract.service_contract_id, false) as t;
  insert into parley._p_endpoint (
    group_id, usual_message_type_id, usual_message_type_name, state, is_initiator, is_plain, priority,
    service_id, service_contract_id, service_name, service_contract_name, conversation_id, owner, far_service,
    far_broker_instance, is_encrypted, lifetime
  )
  values (
    v_group, v_type.message_type_id, v_type.name, 'CO', false, true,
    parley._p_priority_of(v_contract.service_contract_id, v_service.service_id, run.from_service),
    v_service.service_id, v_contract.service_contract_id, v_service.name, v_contract.name,
    run.conversation_id, v_service.owner, run.from_service, broker_instance::text, run.is_encrypted,
    coalesce(run.ends_at, clock_timestamp() + make_interval(secs => 2147483647))
  )
  on conflict do nothing
  returning * into v_endpoint;
  if not found then
    delete from parley._p_conversation_group as g where g.group_id = v_group;
    return parley._p_verdict_of('held', 0, parley._p_error_of(0, 'being opened'));
  end if;
  update parley._p_endpoint as e set far_endpoint_id = -e.endpoint_id where e.endpoint_id = v_endpoint.endpoint_id;
  if run.ends_at is not null then
    perform parley._p_set_alarm(v_endpoint.endpoint_id, 'lifetime', run.ends_at);
  end if;
  perform parley._p_use_priority(v_queue, v_endpoint.priority);
  -- A message from a database next door goes back there without asking for a route.
  if run.identity like 'role:%' then
    perform parley._p_bind_to(v_endpoint.endpoint_id, 'broker:' || broker_instance);
  end if;
  return null;
end
$$;

comment on function parley._p_open_dialog(uuid, parley._p_arriving_run) is
'Creates the target''s endpoint of a conversation with another database, in a group of its own. Gives null, or "held"
when somebody else is just doing so, or "refused" when its lifetime is over.
Source: spec 3.2, 3.6.';
