-- The first message of a dialog whose target is in this database: the way that most of them go.
--
-- It does what _p_dispatch, _p_deliver, _p_connect and _p_remember_route do one after the other (conversation/deliver.sql, conversation/connect.sql), in
-- two statements: one asks whether nothing speaks against it, the other writes the far side, its group and the message. Whatever is unusual is left to
-- these functions: a route other than LOCAL, a target that refuses, validation, retention, a lifetime, a priority that is new to a queue.
-- Locks: the sender's endpoint row FOR UPDATE, by the caller, before the first statement: who alters a queue or drops a service waits for it, and what he has
-- changed is seen then. The switch of the broker is asked by the caller before that.
-- Cost: of begin_dialog and the first SEND together a third is here, most of it for the rows and their 16 index entries.

create function parley._p_send_first(caller oid, endpoint parley._p_endpoint, message_type text, body bytea, trace_context text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
-- The tables are joined as they are written: each by its key, and no right is asked for a queue or service that is not meant.
set join_collapse_limit = 1
as $$
declare
  v_target record;
  v_lane integer;
begin
  if not parley._p_may_remember_routes(endpoint.service_name)
    or not parley._p_may_remember_routes(endpoint.far_service) then
    return false;
  end if;
  select
    f.service_id, f.name as service_name, f.owner, f.queue_id, fq.position_sequence, fq.wakeup_sequence, t.message_type_id, p.priority,
    b.service_broker_guid::text as broker_instance, o.message_type_id as far_type_id, o.name as far_type_name,
    case when pg_has_role(caller, q.owner, 'usage') then q.owner else parley._p_right_to_send(caller, q) end as sender_role
  into v_target
  from parley._p_service as s
  join parley._p_queue as q on q.queue_id = s.queue_id and not q.is_retention_enabled
  join parley._p_service as f on f.name = endpoint.far_service
  join parley._p_queue as fq on fq.queue_id = f.queue_id
  join parley._p_service_contract as a on a.service_id = f.service_id and a.service_contract_id = endpoint.service_contract_id
  join parley._p_sendable_type as t
    on t.service_contract_id = endpoint.service_contract_id and t.is_from_initiator and t.name = message_type and not t.is_validated
  join parley._p_broker as b on endpoint.far_broker_instance is null or endpoint.far_broker_instance = b.service_broker_guid::text
  cross join lateral (
    select case
      when exists (select from parley._p_priority) then parley._p_priority_of(endpoint.service_contract_id, f.service_id, s.name)
      else 5::smallint
    end as priority
  ) as p
  left join lateral parley._p_usual_type(endpoint.service_contract_id, false) as o on true
  where s.service_id = endpoint.service_id
    and (pg_has_role(caller, q.owner, 'usage') or parley._p_has_permission(caller, 'RECEIVE', 'queue', q.queue_id, q.owner))
    and (pg_has_role(endpoint.owner, f.owner, 'usage') or parley._p_may_send(endpoint.owner, f))
    and not parley._p_is_system_message(t.message_type_id)
    and fq.priorities & (1 << p.priority) > 0
    and (
      select bool_and(r.remote_service_name is null and r.next_hop = 'LOCAL')
      from parley._p_route as r
      where coalesce(r.remote_service_name, '') = any (array[f.name, 'SQL/ServiceBroker/BrokerConfiguration', ''])
        and not r.is_inbound
        and (r.expires_at is null or r.expires_at > clock_timestamp())
    )
    and not exists (select from parley._p_alarm as m where m.endpoint_id = endpoint.endpoint_id);
  if not found or v_target.sender_role is null then
    return false;
  end if;
  v_lane := parley._p_lane(v_target.queue_id, v_target.priority);
  -- Each row after the one before it: so does a trace have them.
  with far_group as (
    insert into parley._p_conversation_group (conversation_group_id, service_id)
    values (gen_random_uuid(), v_target.service_id)
    returning group_id
  ), far_side as (
    insert into parley._p_endpoint (
      far_endpoint_id, group_id, usual_message_type_id, usual_message_type_name, state, is_initiator, is_plain, priority,
      service_id, service_contract_id, service_name, service_contract_name, conversation_id, owner, far_service, far_broker_instance, is_encrypted, lifetime
    )
    select endpoint.endpoint_id, g.group_id, v_target.far_type_id, v_target.far_type_name, 'CO', false, true, v_target.priority,
      v_target.service_id, endpoint.service_contract_id, v_target.service_name, endpoint.service_contract_name,
      endpoint.conversation_id, v_target.owner, endpoint.service_name, v_target.broker_instance, endpoint.is_encrypted, endpoint.lifetime
    from far_group as g
    returning endpoint_id
  ), near_side as (
    update parley._p_endpoint as e
    set state = 'CO', state_since = clock_timestamp(), far_endpoint_id = f.endpoint_id, far_broker_instance = v_target.broker_instance,
      usual_message_type_id = v_target.message_type_id, usual_message_type_name = message_type, sender_role = v_target.sender_role,
      destination_lane = v_lane, destination_position = v_target.position_sequence, destination_wakeup = v_target.wakeup_sequence
    from far_side as f
    where e.endpoint_id = endpoint.endpoint_id
    returning e.far_endpoint_id
  )
  insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body, trace_context)
  select nextval(v_target.position_sequence) * 1024, n.far_endpoint_id, clock_timestamp(), v_lane, v_target.message_type_id, nullif(body, ''),
    _p_send_first.trace_context
  from near_side as n;
  if pg_sequence_last_value(v_target.wakeup_sequence) > 0 then
    perform parley._p_admit(v_lane, v_target.wakeup_sequence, 0);
  end if;
  return true;
end
$$;

comment on function parley._p_send_first(oid, parley._p_endpoint, text, bytea, text) is
'Sends the first message of a dialog, and creates the side of its target, when that is in this database and nothing is unusual; gives false, and has done
nothing, otherwise.
Arguments: caller; endpoint, in state SO and locked FOR UPDATE; message_type, its name; body; trace_context.
Source: spec 3.4, 4.2.';
