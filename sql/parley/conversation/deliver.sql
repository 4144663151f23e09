-- SEND when something has to be checked: the first message of a conversation, unusual message types, validation,
-- retention, targets that are not there; and the reasons why a send is refused.
--
-- Delivery inside the database happens in the sender's transaction (spec 3.4). A message that cannot be delivered waits
-- in _p_transmission with a status text. A message that must not be delivered comes back as an Error message (spec 2.2,
-- 4.10).
-- Locks: the sender's endpoint row, FOR KEY SHARE, or FOR UPDATE for the first message; FOR NO KEY UPDATE as long
-- as there is no far side, so that a message that is delayed and one that is delivered keep their order (S4), and under
-- retention (conversation/copies.sql).

create function parley._p_send(
  caller oid, handle uuid, message_type text, bodies bytea[], trace_context text default null
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_type parley._p_message_type;
  v_queue parley._p_queue;
  -- Before any row: whoever throws the switch waits for us holding nothing that we need.
  v_is_disabled boolean := pg_sequence_last_value('parley._p_broker_switch') is not null;
begin
  v_endpoint := parley._p_find_sender(handle);
  if v_endpoint.state = 'SO' and not v_is_disabled and cardinality(bodies) = 1
    and parley._p_send_first(caller, v_endpoint, message_type, bodies[array_lower(bodies, 1)], trace_context) then
    return true;
  end if;
  select q.* into v_queue
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  where s.service_id = v_endpoint.service_id;
  found := parley._p_require_permission(
    caller, 'RECEIVE', 'queue', v_queue.queue_id, v_queue.lookup_name, v_queue.owner
  );
  v_type := parley._p_find_sendable(caller, v_endpoint, message_type);
  -- A batch of none begins no conversation at the target: EndDialog would be the first that it receives.
  if coalesce(cardinality(bodies), 0) = 0 then
    return true;
  end if;
  if v_queue.is_retention_enabled then
    if not v_queue.is_enqueue_enabled then
      found := parley._p_raise(9618, 'retention', v_queue.lookup_name);
    end if;
    perform parley._p_keep_sent(v_endpoint, v_queue, v_type.message_type_id, bodies, trace_context);
  end if;
  if v_endpoint.state = 'SO' then
    update parley._p_endpoint as e
    set state = 'CO', state_since = clock_timestamp()
    where e.endpoint_id = v_endpoint.endpoint_id;
  end if;
  if parley._p_dispatch(handle, v_type, bodies, trace_context) then
    perform parley._p_remember_route(caller, handle);
  end if;
  return true;
end
$$;

comment on function parley._p_send(oid, uuid, text, bytea[], text) is
'Sends messages the long way: checks everything, creates the target''s endpoint when it is the first message,
validates, keeps copies, delays.
Errors: those of parley.send.';

create function parley._p_dispatch(
  handle uuid, message_type parley._p_message_type, bodies bytea[], trace_context text
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is_disabled boolean := pg_sequence_last_value('parley._p_broker_switch') is not null;
  v_endpoint parley._p_endpoint;
  v_route record;
  v_reason text;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle;
  if v_endpoint.far_endpoint_id is null or v_is_disabled and v_endpoint.far_endpoint_id > 0 then
    select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle for no key update;
  end if;
  if v_endpoint.far_endpoint_id < 0 then
    return parley._p_send_far(handle, message_type.message_type_id, bodies, trace_context);
  elsif v_endpoint.far_endpoint_id is null and not v_is_disabled then
    v_route := parley._p_find_route(v_endpoint.far_service, v_endpoint.far_broker_instance, v_endpoint.conversation_id);
    if v_route.address <> 'LOCAL'
      or v_route.address = 'LOCAL'
      and v_route.status is not null
      and parley._p_neighbour(v_endpoint, v_route.broker_instance) is not null then
      return parley._p_send_far(handle, message_type.message_type_id, bodies, trace_context);
    end if;
    v_reason := v_route.status;
  end if;
  v_reason := coalesce(v_reason, parley._p_delay_reason(v_endpoint));
  if v_reason is not null then
    -- A message that waits has been sent, though nothing shows it at the target (conversation/first_send.sql).
    update parley._p_endpoint as e set bound_version = null
    where e.endpoint_id = v_endpoint.endpoint_id and e.bound_version is not null;
    perform parley._p_delay_transmission(v_endpoint, message_type.message_type_id, bodies, v_reason, trace_context);
    return false;
  end if;
  if v_endpoint.far_endpoint_id is null
    and exists (select from parley._p_transmission as t where t.endpoint_id = v_endpoint.endpoint_id) then
    -- Delayed messages go first. It may turn out that the target refuses.
    perform parley._p_deliver_delayed_of(v_endpoint.endpoint_id);
    select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = v_endpoint.endpoint_id;
    if (v_endpoint.state in ('CO', 'DO')) is not true then
      return false;
    end if;
  end if;
  found := parley._p_deliver(v_endpoint, message_type, bodies, trace_context, true);
  return true;
end
$$;

comment on function parley._p_dispatch(uuid, parley._p_message_type, bytea[], text) is
'Delivers messages here, puts them on their way to another database, or delays them, behind what was sent before. The
caller holds the row of the endpoint, has checked what there is to check, and has asked for the switch of the broker
before that. True when nothing of this side was delayed, so that later sends may take the short way.
Source: spec 3.4, 6.2.';

create function parley._p_is_outdated(endpoint parley._p_endpoint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return endpoint.is_initiator and endpoint.bound_version <> pg_sequence_last_value('parley._p_catalog_version');
end
$$;

comment on function parley._p_is_outdated(parley._p_endpoint) is
'Reports whether the catalog has changed since BEGIN DIALOG made both sides of a dialog; null where the first message
made the target, or something is known to have been sent.';

create function parley._p_find_sender(handle uuid) returns parley._p_endpoint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  -- Only one may send the first message; asking for the stronger lock at once keeps two first senders
  -- from waiting for each other.
  select * into v_endpoint
  from parley._p_endpoint as e
  where e.conversation_handle = handle and e.state = 'SO'
  for update;
  if found then
    return v_endpoint;
  end if;
  v_endpoint := parley._p_find_shown(handle, 'SEND');
  if v_endpoint.bound_version is not null and parley._p_is_outdated(v_endpoint) then
    v_endpoint := parley._p_settle_to_send(v_endpoint);
    if v_endpoint.state = 'SO' then
      return v_endpoint;
    end if;
  end if;
  select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle for key share;
  if not found then
    found := parley._p_raise_unknown_handle(handle);
  end if;
  if v_endpoint.state not in ('SO', 'CO') then
    found := case v_endpoint.state
      when 'DI' then parley._p_raise(8429, 'ended there', handle::text)
      when 'ER' then parley._p_raise(8429, 'failed', handle::text)
      else parley._p_raise(8429, 'ended here', handle::text, parley._p_state_name(v_endpoint.state), v_endpoint.state)
    end;
  end if;
  return v_endpoint;
end
$$;

comment on function parley._p_find_sender(uuid) is
'Finds and locks an endpoint that is to send.
Errors: 8418, 8426, 8429.';

create function parley._p_find_sendable(
  caller oid, endpoint parley._p_endpoint, message_type text
) returns parley._p_message_type
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_type parley._p_message_type;
begin
  select * into v_type from parley._p_message_type as t where t.name = message_type;
  if not found then
    found := parley._p_raise(
      8428, 'message type', message_type, parley._p_did_you_mean(caller, 'message type', message_type)
    );
  end if;
  case parley._p_type_fault(endpoint.service_contract_id, v_type.message_type_id, endpoint.is_initiator)
    when 'not in the contract' then
      found := parley._p_raise(8431, 'contract', message_type, endpoint.service_contract_name);
    when 'other side' then
      found := case
        when endpoint.is_initiator then parley._p_raise(8432, 'target', message_type, endpoint.service_contract_name)
        else parley._p_raise(8434, 'initiator', message_type, endpoint.service_contract_name)
      end;
    else
      null;
  end case;
  return v_type;
end
$$;

comment on function parley._p_find_sendable(oid, parley._p_endpoint, text) is
'Finds a message type that this side of a conversation may send.
Errors: 8428, 8431, 8432, 8434.';

create function parley._p_delay_reason(endpoint parley._p_endpoint) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if pg_sequence_last_value('parley._p_broker_switch') is not null then
    return parley._p_status(9791, 'disabled');
  elsif endpoint.far_endpoint_id is not null then
    return null;
  end if;
  perform parley._p_await_service(endpoint.far_service);
  return parley._p_absence(endpoint);
end
$$;

comment on function parley._p_delay_reason(parley._p_endpoint) is
'Explains why messages of an endpoint cannot be delivered yet, or null when they can. The switch of the broker cannot
be thrown until the transaction ends.';

create function parley._p_deliver(
  endpoint parley._p_endpoint, message_type parley._p_message_type, bodies bytea[], trace_context text,
  is_refused_when_full boolean
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_far parley._p_endpoint;
  v_service parley._p_service;
  v_queue parley._p_queue;
  v_error parley._p_error;
  v_invalid bytea;
begin
  if endpoint.far_endpoint_id is null then
    select * into v_service from parley._p_service as s where s.name = endpoint.far_service;
    v_error := parley._p_refuse_dialog(
      v_service, endpoint.service_contract_name, endpoint.owner, endpoint.service_name
    );
    if v_error is not null then
      perform parley._p_break_conversations(array[endpoint.endpoint_id], v_error);
      return true;
    end if;
    v_far := parley._p_connect(endpoint);
  else
    select * into v_far from parley._p_endpoint as e where e.endpoint_id = endpoint.far_endpoint_id;
    if not found then
      perform parley._p_break_conversations(array[endpoint.endpoint_id], parley._p_error_of(8462, 'gone'));
      return true;
    end if;
  end if;
  select q.* into v_queue
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  where s.service_id = v_far.service_id;
  v_invalid := parley._p_append_valid(v_far, v_queue, message_type, bodies, trace_context);
  -- Asked for together, because an expression costs a thirtieth of a bare INSERT.
  if v_invalid is not null or v_queue.quota_sequence is not null then
    if v_invalid is not null then
      -- Both sides get an Error, also where this would have been the first message.
      update parley._p_endpoint as e set bound_version = null
      where e.endpoint_id = endpoint.endpoint_id and e.bound_version is not null;
      perform parley._p_break_conversations(
        array[endpoint.endpoint_id], parley._p_invalid(message_type, v_invalid, true),
        parley._p_invalid(message_type, v_invalid, false)
      );
    end if;
    if is_refused_when_full then
      found := parley._p_require_room(v_queue.queue_id, 0);
    end if;
  end if;
  return true;
end
$$;

comment on function parley._p_deliver(parley._p_endpoint, parley._p_message_type, bytea[], text, boolean) is
'Delivers messages to the far side in this database, or breaks the conversation when the target refuses them; what
comes before a bad body is delivered. Gives true.
Arguments: endpoint; message_type; bodies; trace_context; is_refused_when_full, whether what is above the quota of the
target''s queue is refused: not what was delayed.
Errors: 10928.';
