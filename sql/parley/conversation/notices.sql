-- Notices: conversations that the broker itself begins, in the name of a built-in service, to notify the service of an
-- event notification or to ask the broker configuration service.

create function parley._p_begin_notices(
  to_service text, broker_instance text, service_id integer default 2, service_contract_id integer default 2,
  lifetime integer default null
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_handle uuid;
  v_endpoint bigint;
  v_lifetime timestamptz := clock_timestamp() + make_interval(secs => coalesce(lifetime, 2147483647));
  v_group bigint;
  v_service parley._p_service;
  v_queue parley._p_queue;
  v_contract parley._p_contract;
  v_priority smallint;
begin
  -- Not by begin_dialog, which would ask for rights on the broker's own queue.
  select * into v_service from parley._p_service as s where s.service_id = _p_begin_notices.service_id;
  select * into v_queue from parley._p_queue as q where q.queue_id = v_service.queue_id;
  select * into v_contract
  from parley._p_contract as c
  where c.service_contract_id = _p_begin_notices.service_contract_id;
  v_priority := parley._p_priority_of(v_contract.service_contract_id, v_service.service_id, to_service);
  perform parley._p_use_priority(v_queue, v_priority);
  insert into parley._p_conversation_group (conversation_group_id, service_id)
  values (gen_random_uuid(), v_service.service_id)
  returning group_id into v_group;
  insert into parley._p_endpoint (
    group_id, state, is_initiator, is_plain, priority, service_id, service_contract_id, service_name,
    service_contract_name, conversation_id, owner, far_service, far_broker_instance, is_encrypted, lifetime
  )
  values (
    v_group, 'SO', true, true, v_priority, v_service.service_id, v_contract.service_contract_id, v_service.name,
    v_contract.name, gen_random_uuid(), v_service.owner, to_service, broker_instance, true, v_lifetime
  )
  returning conversation_handle, endpoint_id into v_handle, v_endpoint;
  if lifetime is not null then
    perform parley._p_set_alarm(v_endpoint, 'lifetime', v_lifetime);
  end if;
  return v_handle;
end
$$;

comment on function parley._p_begin_notices(text, text, integer, integer, integer) is
'Begins a conversation from a service of the broker''s own: that of event notifications, or another one by its id and
contract; lifetime in seconds.';

create function parley._p_post_notice(handle uuid, type parley._p_message_type, body bytea) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle for update;
  if not found or v_endpoint.state not in ('SO', 'CO') then
    return false;
  end if;
  if v_endpoint.state = 'SO' then
    update parley._p_endpoint as e
    set state = 'CO', state_since = clock_timestamp()
    where e.endpoint_id = v_endpoint.endpoint_id;
  end if;
  perform parley._p_dispatch(handle, type, array[body], null);
  -- The target may have refused.
  return exists (select from parley._p_endpoint as e where e.conversation_handle = handle and e.state = 'CO');
end
$$;

comment on function parley._p_post_notice(uuid, parley._p_message_type, bytea) is
'Sends a message of the broker''s own on a conversation of _p_begin_notices; gives false
when that conversation is over.';
