-- Messages that were sent for later (conversation/delayed_sends.sql), and what can be done about them until they are
-- due.
--
-- A role that may RECEIVE from the queue of the sending side, and so may send on the conversation, sees, withdraws and
-- reschedules the messages that wait there.

create function parley._p_lock_delayed_send(caller oid, handle uuid, delayed_id bigint) returns parley._p_delayed_send
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint := parley._p_find_shown(handle);
  v_queue parley._p_queue;
  v_message parley._p_delayed_send;
begin
  select q.* into v_queue
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  where s.service_id = v_endpoint.service_id;
  found := parley._p_require_permission(
    caller, 'RECEIVE', 'queue', v_queue.queue_id, v_queue.lookup_name, v_queue.owner
  );
  select * into v_endpoint
  from parley._p_endpoint as e where e.endpoint_id = v_endpoint.endpoint_id for no key update;
  -- When the conversation is over nothing is sent any more.
  select * into v_message
  from parley._p_delayed_send as d
  where d.delayed_id = _p_lock_delayed_send.delayed_id
    and d.endpoint_id = v_endpoint.endpoint_id
    and d.message_type_id <> 2
    and v_endpoint.state in ('CO', 'DO')
  for update;
  return v_message;
end
$$;

comment on function parley._p_lock_delayed_send(oid, uuid, bigint) is
'Finds a message that is not due yet, and locks its side of the conversation; a row of nulls when it is gone, or will
not be sent because the conversation is over.
Errors: 229, 8418, 8426.';

create function parley.withdraw_send(
  conversation_handle uuid, delayed_id bigint, caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message parley._p_delayed_send := parley._p_lock_delayed_send(
    parley._p_caller(caller), conversation_handle, delayed_id
  );
begin
  delete from parley._p_delayed_send as d where d.delayed_id = v_message.delayed_id;
  if not found then
    return false;
  end if;
  -- The end of the conversation, which stood behind it.
  update parley._p_delayed_send as d
  set due_at = clock_timestamp(), try_at = clock_timestamp()
  where d.endpoint_id = v_message.endpoint_id and d.message_type_id = 2;
  if found then
    perform parley._p_expect_due('parley._p_next_due_send', null);
  end if;
  return true;
end
$$;

comment on function parley.withdraw_send(uuid, bigint, parley.caller) is
'Withdraws a message that was sent for later and is not due yet, and returns whether it was still there.
Arguments: conversation_handle; delayed_id, as send gave it and parley.delayed_sends shows it.
Errors: 229 not allowed, 8418 and 8426 handle missing or not found.
Source: spec 4.2.';

create function parley.reschedule_send(
  conversation_handle uuid, delayed_id bigint, deliver_at timestamptz,
  caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message parley._p_delayed_send := parley._p_lock_delayed_send(
    parley._p_caller(caller), conversation_handle, delayed_id
  );
  v_due timestamptz := coalesce(deliver_at, clock_timestamp());
  v_lifetime timestamptz;
begin
  found := parley._p_require_finite(v_due);
  select e.lifetime into v_lifetime from parley._p_endpoint as e where e.endpoint_id = v_message.endpoint_id;
  if v_due > v_lifetime then
    found := parley._p_raise(8410, 'late message', v_due::text, v_lifetime::text);
  end if;
  update parley._p_delayed_send as d set due_at = v_due, try_at = v_due where d.delayed_id = v_message.delayed_id;
  if not found then
    return false;
  end if;
  perform parley._p_expect_due('parley._p_next_due_send', v_due);
  return true;
end
$$;

comment on function parley.reschedule_send(uuid, bigint, timestamptz, parley.caller) is
'Changes when a message that was sent for later is due, and returns whether it was still there.
Arguments: conversation_handle; delayed_id, as send gave it; deliver_at, the new time (null, or past: now).
Errors: 229 not allowed, 8402 deliver_at infinite, 8410 after the lifetime, 8418 and 8426 handle missing or not found.
Source: spec 4.2.';

-- For the order of the view.
create index on parley._p_delayed_send (due_at);

create view parley.delayed_sends with (security_barrier) as
select
  q.lookup_name as queue_name,
  e.service_name,
  e.far_service,
  e.conversation_handle,
  d.delayed_id,
  d.due_at,
  t.name as message_type_name,
  d.body
from parley._p_delayed_send as d
join parley._p_endpoint as e on e.endpoint_id = d.endpoint_id and e.state in ('CO', 'DO')
join parley._p_service as s on s.service_id = e.service_id
join parley._p_queue as q on q.queue_id = s.queue_id
join parley._p_message_type as t on t.message_type_id = d.message_type_id
where q.queue_id = any ((select parley._p_ids_of_queues_to_receive_from())::integer[])
order by d.due_at;

comment on view parley.delayed_sends is
'Messages that were sent on conversations for later (deliver_at of parley.send) and are not due yet, and EndDialog where
it waits behind such a message, by their time; of services whose queue the role may receive from.';
