-- The statements of people and programs about poison messages: report a failure, list, put back, discard.
--
-- A role that may RECEIVE from a queue may do all of this with its conversations: it could as well have received the
-- message and committed.
-- Locks: the group, then the rows of both sides in their order, the sender's FOR UPDATE, so that no sender of
-- the conversation is under way while its messages get new positions. A conversation that is only read or
-- reported is not waited for.

create function parley.record_failure(
  conversation_handle uuid, sqlstate text, message text,
  caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set lock_timeout = '1s'
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_endpoint parley._p_endpoint;
  v_queue parley._p_queue;
begin
  select * into v_endpoint
  from parley._p_endpoint as e
  where e.conversation_handle = record_failure.conversation_handle and e.state <> 'DO';
  if not found then
    return false;
  end if;
  select q.* into v_queue
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  where s.service_id = v_endpoint.service_id;
  if parley._p_has_permission(v_caller, 'RECEIVE', 'queue', v_queue.queue_id, v_queue.owner) is not true then
    return false;
  end if;
  insert into parley._p_failure (endpoint_id, failed_at, sqlstate, error)
  values (
    v_endpoint.endpoint_id, clock_timestamp(), substring(record_failure.sqlstate from '^[0-9A-Z]{5}$'),
    left(coalesce(message, ''), 2000)
  )
  on conflict on constraint _p_failure_pkey do update
  set failed_at = excluded.failed_at, sqlstate = excluded.sqlstate, error = excluded.error;
  begin
    perform parley._p_count_failure(v_queue, v_endpoint);
  exception
    when others then
      -- Most likely that the queue is disabled now, which its next reader gets as an error.
      null;
  end;
  return true;
exception
  when others then
    return false;
end
$$;

comment on function parley.record_failure(uuid, text, text, parley.caller) is
'Reports that a transaction that had received from a conversation has failed, and why. Call it afterwards, in a
transaction of its own. The last report of each conversation is kept, for a day or so or as long as the conversation is
set aside. The failure is counted at once, not only when the message is received again, so the fifth sets the
conversation aside without a reader.
Returns whether it was recorded; it never raises an error, and does nothing for a handle that is unknown or of a queue
that the caller may not receive from.
Arguments: conversation_handle, of the side that was received from; sqlstate of the error, null when it came from
elsewhere; message, its text, of which the first 2,000 characters are kept.
Errors: none.
Source: spec 5.6.';

create function parley._p_is_of_queues(endpoint_id bigint, queues integer[]) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return queues is null or exists (
    select
    from parley._p_endpoint as e
    join parley._p_service as s using (service_id)
    where e.endpoint_id = _p_is_of_queues.endpoint_id and s.queue_id = any (queues)
  );
end
$$;

comment on function parley._p_is_of_queues(bigint, integer[]) is
'Reports whether a side of a conversation receives from one of some queues; of null any does, also one that is gone.';

create function parley._p_forget_failures(only_queues integer[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  -- Not by whoever reports: his transaction may stay open for long, and others report on the same conversations.
  delete from parley._p_failure as f
  where f.endpoint_id = any (array(
    select o.endpoint_id
    from parley._p_failure as o
    where o.failed_at < clock_timestamp() - interval '1 day'
      and not parley._p_is_set_aside(o.endpoint_id)
      and parley._p_is_of_queues(o.endpoint_id, only_queues)
    order by o.failed_at
    limit 1000
    for update skip locked
  ));
  delete from parley._p_conversation_retry as r
  where r.endpoint_id = any (array(
    select o.endpoint_id
    from parley._p_conversation_retry as o
    where not exists (
        select from parley._p_message as m where m.endpoint_id = o.endpoint_id and m.position = o.position
      )
      and parley._p_is_of_queues(o.endpoint_id, only_queues)
    limit 1000
    for update skip locked
  ));
end
$$;

comment on function parley._p_forget_failures(integer[]) is
'Removes reports of failures that are older than a day, unless their conversation is set aside, and counts of messages
that are gone. Waits for nobody.
Arguments: only_queues, of these alone; null for all.';

create function parley._p_count_failure(queue parley._p_queue, endpoint parley._p_endpoint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_head record;
  v_is_late boolean;
begin
  -- The holder of the group has received again already, and has counted.
  if not parley._p_lock_reported(endpoint.group_id) then
    return;
  end if;
  v_head := parley._p_first_message(queue, endpoint);
  v_is_late := parley._p_explains_loss(endpoint.endpoint_id, v_head.position, v_head.came_back);
  if parley._p_is_wait_over(endpoint.endpoint_id) or v_is_late and parley._p_is_set_aside(endpoint.endpoint_id) then
    perform parley._p_postpone_conversation(queue, endpoint.endpoint_id, 1, -v_is_late::integer, null, false);
    return;
  elsif parley._p_is_set_aside(endpoint.endpoint_id) then
    return;
  elsif v_is_late then
    perform parley._p_make_conversation_wait(queue, endpoint.endpoint_id, v_head.position, 1, -1, null, false);
    return;
  end if;
  if v_head.came_back and (parley._p_retry_policy_of(queue)).queue_id is not null then
    perform parley._p_make_conversation_wait(queue, endpoint.endpoint_id, v_head.position, 1, 0, null, false);
  else
    perform parley._p_count_rollback(queue.queue_id, endpoint.endpoint_id, v_head.position);
  end if;
end
$$;

comment on function parley._p_count_failure(parley._p_queue, parley._p_endpoint) is
'Counts the failure of the first message of a conversation, if that has come back and nobody receives from it now.
Errors: 9617 when that disables the queue.';

create function parley._p_first_message(
  queue parley._p_queue, endpoint parley._p_endpoint, out "position" bigint, out message_type_id integer,
  out enqueued_at timestamptz, out came_back boolean
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select f.position, f.message_type_id, f.enqueued_at, f.came_back
  -- A row in any case: a record that was given none has no fields to ask for.
  from (select) as always
  left join (
    select m.position, m.message_type_id, m.enqueued_at, m.xmax::text <> '0' as came_back
    from parley._p_message as m
    where m.endpoint_id = endpoint.endpoint_id
      -- A message that is set aside may stand before the hint; one that is received does too.
      and m.position >= coalesce(
        (select s.position from parley._p_set_aside as s where s.endpoint_id = endpoint.endpoint_id),
        (select h.low_position from parley._p_newest_hint(parley._p_lane(queue.queue_id, endpoint.priority)) as h),
        0
      )
    order by m.position
    limit 1
  ) as f on true
$$;

comment on function parley._p_first_message(parley._p_queue, parley._p_endpoint) is
'Gives the first message that waits for a side of a conversation: of a side that is set aside, the poisonous one; nulls
when none waits.';

create function parley.retry_poison(
  conversation_handle uuid,
  caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_endpoint parley._p_endpoint := parley._p_lock_set_aside(v_caller, conversation_handle);
  v_queue parley._p_queue;
begin
  select q.* into v_queue
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  where s.service_id = v_endpoint.service_id;
  return parley._p_put_back(v_queue, v_endpoint);
end
$$;

comment on function parley.retry_poison(uuid, parley.caller) is
'Puts a conversation that is set aside back into its queue: all its messages, in their order, behind what waits there
now. Its rollbacks are forgotten. Returns how many messages that are. Waits for transactions that have sent on the
conversation and are still open.
Arguments: conversation_handle, as parley.poison_conversations shows it.
Errors: 229 not allowed, 8402 not at READ COMMITTED, 8418 missing, 8426 not found or not set aside.
Source: spec 5.6.';

create function parley._p_lock_set_aside(caller oid, handle uuid) returns parley._p_endpoint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint := parley._p_find_endpoint(handle);
  v_queue parley._p_queue;
begin
  select q.* into v_queue
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  where s.service_id = v_endpoint.service_id;
  perform parley._p_require_permission(
    caller, 'RECEIVE', 'queue', v_queue.queue_id, v_queue.lookup_name, v_queue.owner
  );
  if parley._p_keeps_snapshot() then
    found := parley._p_raise(8402, 'isolation');
  end if;
  perform parley._p_lock_group_of(v_endpoint.endpoint_id);
  if v_endpoint.far_endpoint_id < v_endpoint.endpoint_id then
    perform from parley._p_endpoint as e where e.endpoint_id = v_endpoint.far_endpoint_id for update;
  end if;
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = v_endpoint.endpoint_id for no key update;
  if v_endpoint.far_endpoint_id > v_endpoint.endpoint_id then
    perform from parley._p_endpoint as e where e.endpoint_id = v_endpoint.far_endpoint_id for update;
  end if;
  -- A sender that waits for our lock may have drawn its position already; this makes it read, and draw, again.
  perform parley._p_forget_routes(array[v_endpoint.far_endpoint_id]);
  if not parley._p_is_set_aside(v_endpoint.endpoint_id) or v_endpoint.state = 'DO' then
    found := parley._p_raise(8426, 'not set aside', handle::text, v_queue.lookup_name);
  end if;
  return v_endpoint;
end
$$;

comment on function parley._p_lock_set_aside(oid, uuid) is
'Finds and locks a conversation that is set aside, with its group and against its senders.
Errors: 229, 8402, 8418, 8426.';

create function parley.discard_poison(
  conversation_handle uuid,
  message_only boolean default false,
  error_code integer default 1,
  description text default 'A message of this conversation could not be handled.',
  caller parley.caller default parley.current_caller()
) returns setof parley.received_message
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_endpoint parley._p_endpoint := parley._p_lock_set_aside(v_caller, conversation_handle);
  v_queue parley._p_queue;
begin
  select q.* into v_queue
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  where s.service_id = v_endpoint.service_id;
  if message_only and (error_code <> 1 or description <> 'A message of this conversation could not be handled.') then
    found := parley._p_raise(8402, 'error of one message');
  elsif message_only then
    return query select * from parley._p_take_poison(v_queue, v_endpoint);
    perform parley._p_put_back(v_queue, v_endpoint);
  else
    return query select *
    from parley.peek(v_queue.lookup_name, null, discard_poison.conversation_handle, caller => caller);
    perform parley.end_conversation(discard_poison.conversation_handle, error_code, description, caller => caller);
  end if;
end
$$;

comment on function parley.discard_poison(uuid, boolean, integer, text, parley.caller) is
'Gives up on a conversation that is set aside, and returns the messages that are thereby lost, so that they can
be kept elsewhere. Either the poisonous message alone is taken out, as if it had been received, and the rest
goes back into the queue as by retry_poison; or this side is ended with an error, which the other side receives,
and all that waits is removed.
Arguments: conversation_handle; message_only, take out the one message (default: end the conversation); error_code and
description, of the error that the other side gets when the conversation is ended.
Errors: 229 not allowed, 8402 error code or description out of range or with message_only, or not at READ COMMITTED,
8418 missing,
8426 not found or not set aside.
Source: spec 5.6.';

create function parley._p_take_poison(
  queue parley._p_queue, endpoint parley._p_endpoint
) returns setof parley.received_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message parley._p_message;
  v_type parley._p_message_type;
  v_sequence bigint;
  v_row parley.received_message;
begin
  delete from parley._p_message as m
  where m.endpoint_id = endpoint.endpoint_id and m.position = (parley._p_first_message(queue, endpoint)).position
  returning m.* into v_message;
  if not found then
    return;
  end if;
  if cardinality(v_message.frame) > 1 then
    insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, frame, trace_context)
    values (
      v_message.position + 1, v_message.endpoint_id, v_message.enqueued_at, v_message.lane, v_message.message_type_id,
      v_message.frame[2:], v_message.trace_context
    );
  end if;
  select * into v_type from parley._p_message_type as t where t.message_type_id = v_message.message_type_id;
  v_row.status := 0;
  v_row.priority := endpoint.priority;
  v_row.queuing_order := v_message.position;
  v_row.conversation_group_id := (
    select g.conversation_group_id from parley._p_conversation_group as g where g.group_id = endpoint.group_id
  );
  v_row.conversation_handle := endpoint.conversation_handle;
  v_row.service_name := endpoint.service_name;
  v_row.service_id := endpoint.service_id;
  v_row.service_contract_name := endpoint.service_contract_name;
  v_row.service_contract_id := endpoint.service_contract_id;
  v_row.message_type_name := v_type.name;
  v_row.message_type_id := v_type.message_type_id;
  v_row.validation := v_type.validation;
  v_row.message_body := coalesce(v_message.body, v_message.frame[1]);
  v_row.message_enqueue_time := v_message.enqueued_at;
  v_row.trace_context := v_message.trace_context;
  -- Timer messages and Errors stand outside the sequence.
  v_row.message_sequence_number := -1;
  if v_message.message_type_id not in (1, 5) then
    select p.sequence into v_sequence
    from parley._p_receive_progress as p where p.endpoint_id = endpoint.endpoint_id order by p.sequence desc limit 1;
    v_row.message_sequence_number := coalesce(v_sequence, 0);
    insert into parley._p_receive_progress (endpoint_id, sequence)
    values (endpoint.endpoint_id, v_row.message_sequence_number + 1);
  end if;
  if queue.is_retention_enabled then
    insert into parley._p_retained (
      queue_id, endpoint_id, status, position, message_sequence_number, message_type_id, enqueued_at, body,
      trace_context
    )
    values (
      queue.queue_id, endpoint.endpoint_id, 0, v_row.queuing_order, v_row.message_sequence_number,
      v_row.message_type_id, v_row.message_enqueue_time, v_row.message_body, v_message.trace_context
    );
  end if;
  return next v_row;
end
$$;

comment on function parley._p_take_poison(parley._p_queue, parley._p_endpoint) is
'Takes the poisonous message of a conversation that is set aside out of it, as RECEIVE would.';
