-- The messages that come next in simple queues, those that wait for their time there or are set aside, and the
-- statements that act on them.
--
-- A role that may RECEIVE from a queue sees all of it, and may put back, give up or withdraw a message: it could as
-- well have taken it.
--
-- The order of a view is that in which people look at it: no order from outside reaches an index through the barrier of
-- its rights, but one that is that of the view needs no sort, and a list that is cut short reads no more than it shows.

create view parley.set_aside_messages with (security_barrier) as
select
  q.lookup_name as queue_name,
  s.position as message_id,
  m.message_key as key,
  s.priority,
  m.body,
  m.enqueued_at,
  s.rollbacks,
  s.set_aside_at,
  f.sqlstate,
  f.error,
  f.failed_at as error_time,
  f.answer
from parley._p_set_aside_message as s
join parley._p_queue as q using (queue_id)
left join parley._p_message_failure as f on f.queue_id = s.queue_id and f.position = s.position
-- In the lane of what is set aside, see base/lanes.sql; one by one, in the order of the view.
cross join lateral (
  select o.message_key, o.body, o.enqueued_at
  from parley._p_message as o
  where o.lane = s.queue_id * 16 + 11 and o.position = s.position
  limit 1
) as m
where s.queue_id = any ((select parley._p_ids_of_queues_to_receive_from())::integer[])
order by s.set_aside_at desc;

comment on view parley.set_aside_messages is
'Messages of simple queues that came back too often, or were refused too often by a web address, with the last error
that was reported, the newest first. Of queues that the role may take from.';

create view parley.failing_messages with (security_barrier) as
-- Those that wait come first: of the failures many may be of messages that are set aside.
select
  q.lookup_name as queue_name,
  w.position as message_id,
  m.message_key as key,
  case m.lane % 16 when 12 then w.priority else 11 - m.lane % 16 end::smallint as priority,
  m.enqueued_at,
  f.sqlstate,
  f.error,
  f.failed_at as error_time,
  f.answer,
  nullif(f.failures, 0) as failures,
  w.attempts,
  w.retry_at,
  w.losses
from parley._p_message_wait as w
join parley._p_queue as q using (queue_id)
-- The lanes of what is not set aside, see base/lanes.sql.
cross join lateral (
  select o.lane, o.message_key, o.enqueued_at
  from parley._p_message as o
  where o.lane = any (array[
      w.queue_id * 16 + 1, w.queue_id * 16 + 2, w.queue_id * 16 + 3, w.queue_id * 16 + 4,
      w.queue_id * 16 + 5, w.queue_id * 16 + 6, w.queue_id * 16 + 7, w.queue_id * 16 + 8,
      w.queue_id * 16 + 9, w.queue_id * 16 + 10, w.queue_id * 16 + 12
    ])
    and o.position = w.position
  limit 1
) as m
left join lateral (
  select o.sqlstate, o.error, o.failed_at, o.answer, o.failures
  from parley._p_message_failure as o
  where o.queue_id = w.queue_id and o.position = w.position
  limit 1
) as f on true
where w.queue_id = any ((select parley._p_ids_of_queues_to_receive_from())::integer[])
union all
select q.lookup_name, f.position, m.message_key,
  case m.lane % 16 when 12 then 5 else 11 - m.lane % 16 end::smallint, m.enqueued_at, f.sqlstate, f.error, f.failed_at,
  f.answer, nullif(f.failures, 0), case when f.failures > 0 then f.attempts end, f.retry_at, null
from parley._p_message_failure as f
join parley._p_queue as q using (queue_id)
cross join lateral (
  select o.lane, o.message_key, o.enqueued_at
  from parley._p_message as o
  where o.lane = any (array[
      f.queue_id * 16 + 1, f.queue_id * 16 + 2, f.queue_id * 16 + 3, f.queue_id * 16 + 4,
      f.queue_id * 16 + 5, f.queue_id * 16 + 6, f.queue_id * 16 + 7, f.queue_id * 16 + 8,
      f.queue_id * 16 + 9, f.queue_id * 16 + 10, f.queue_id * 16 + 12
    ])
    and o.position = f.position
  limit 1
) as m
where f.queue_id = any ((select parley._p_ids_of_queues_to_receive_from())::integer[])
  and not exists (
    select from parley._p_message_wait as w where w.queue_id = f.queue_id and w.position = f.position
  )
  and not exists (
    select from parley._p_set_aside_message as s where s.queue_id = f.queue_id and s.position = f.position
  );

comment on view parley.failing_messages is
'Messages of simple queues that wait in their queue after a failure and are not set aside yet: a reader has reported
the failure (parley.retry, parley.record_message_failure), they came back without a word, or a web address has not
accepted them. attempts is how many failures were reported, losses how often they came back without a report, as when a
reader is killed, and retry_at when they are taken again at the earliest. failures is how often they were delivered to a
web address and not accepted; then attempts is how many of these count. Of queues that the role may take from.';

create view parley.delayed_messages with (security_barrier) as
select q.lookup_name as queue_name, d.delayed_id, d.due_at, d.message_key as key, d.priority, d.body
from parley._p_delayed_message as d
join parley._p_queue as q using (queue_id)
where d.queue_id = any ((select parley._p_ids_of_queues_to_receive_from())::integer[])
order by d.due_at;

comment on view parley.delayed_messages is
'Messages of simple queues that are not due yet, by their time, of queues that the role may take from.';

create function parley._p_place_in_queue(
  queue parley._p_queue, after_priority integer, after bigint, name text, out lane integer, out "position" bigint
)
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if num_nulls(after_priority, after) = 1 then
    found := parley._p_raise(8402, 'place in a queue', name);
  end if;
  found := parley._p_require_range('after_priority', coalesce(after_priority, 10), 1, 10);
  lane := parley._p_lane(queue.queue_id, coalesce(after_priority, 10));
  position := coalesce(after, -1);
end
$$;

comment on function parley._p_place_in_queue(parley._p_queue, integer, bigint, text) is
'Gives the lane and the position behind which a page of a queue begins: those of its beginning without a page before.
Arguments: queue; after_priority and after, of the last message of the page before, null for none; name, how the caller
calls the latter.
Errors: 8402 one of them alone, after_priority out of range.';

create function parley.peek_messages(
  queue text, top integer default 10, after_priority integer default null, after_message_id bigint default null,
  caller parley.caller default parley.current_caller()
) returns setof parley.taken_message
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(parley._p_caller(caller), queue, 'RECEIVE');
  v_after record := parley._p_place_in_queue(v_queue, after_priority, after_message_id, 'after_message_id');
begin
  found := parley._p_require_top(top);
  return query
  select m.position, m.message_key, (11 - m.lane % 16)::smallint, m.body, m.enqueued_at, m.trace_context, 1
  from parley._p_message as m
  where (m.lane, m.position) > (v_after.lane, v_after.position)
    and m.lane <= parley._p_lane(v_queue.queue_id, 1)
  order by m.lane, m.position
  limit top;
end
$$;

comment on function parley.peek_messages(text, integer, integer, bigint, parley.caller) is
'Gives the first messages of a simple queue, by priority and arrival, or a page behind one, without taking them; those
that others have taken and not committed too. A page costs the same wherever it begins.
Arguments: queue; top, at most so many messages (null: all); after_priority and after_message_id, of the last message of
the page before, which need not be there any more (null: the first page).
Errors: 127 top negative, 208 no such queue, 229 not allowed, 8402 no simple queue, one of the two alone, after_priority
out of range, 9609 malformed name.';

create function parley._p_take_set_aside(caller oid, queue text, message_id bigint) returns parley._p_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(caller, queue, 'RECEIVE');
  v_scan record;
  v_message parley._p_message;
begin
  delete from parley._p_set_aside_message as s
  where s.queue_id = v_queue.queue_id and s.position = message_id
  returning s.priority into v_scan;
  if not found then
    found := parley._p_raise(8426, 'message not set aside', message_id::text, v_queue.lookup_name);
  end if;
  delete from parley._p_message as m
  where m.lane = parley._p_set_aside_lane(v_queue.queue_id) and m.position = message_id
  returning m.position, m.endpoint_id, m.enqueued_at, m.lane, m.message_type_id, m.body, m.frame, m.trace_context,
    m.message_key
  into v_message;
  v_message.lane := parley._p_lane(v_queue.queue_id, v_scan.priority);
  return v_message;
end
$$;

comment on function parley._p_take_set_aside(oid, text, bigint) is
'Takes a message that is set aside out of its queue, and gives it with the lane that it came from.
Errors: 208, 229, 8402, 8426 it is not set aside, 9609.';

create function parley.retry_message(
  queue text, message_id bigint, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message parley._p_message := parley._p_take_set_aside(parley._p_caller(caller), queue, message_id);
  v_queue parley._p_queue;
begin
  select * into v_queue from parley._p_queue as q where q.queue_id = parley._p_owner_of_lane(v_message.lane);
  insert into parley._p_message (
    position, endpoint_id, enqueued_at, lane, message_type_id, body, trace_context, message_key
  )
  values (
    nextval(v_queue.position_sequence) * 1024, v_message.endpoint_id, v_message.enqueued_at, v_message.lane,
    v_message.message_type_id, v_message.body, v_message.trace_context, v_message.message_key
  );
  update parley._p_batch_member as b
  set position = currval(v_queue.position_sequence) * 1024
  where b.position = message_id
    and b.batch_id in (select o.batch_id from parley._p_batch as o where o.queue_id = v_queue.queue_id);
  perform parley._p_wake_readers(v_queue.queue_id, v_queue.wakeup_sequence);
end
$$;

comment on function parley.retry_message(text, bigint, parley.caller) is
'Puts a message that is set aside back at the end of its simple queue, under a new message_id. Its rollbacks are
forgotten.
Arguments: queue; message_id, as parley.set_aside_messages shows it.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, 8426 not set aside, 9609 malformed name.
Source: spec P32, 5.6.';

create function parley.discard_message(
  queue text, message_id bigint, caller parley.caller default parley.current_caller()
) returns parley.taken_message
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message parley._p_message := parley._p_take_set_aside(parley._p_caller(caller), queue, message_id);
begin
  return row(
    v_message.position, v_message.message_key, 11 - v_message.lane % 16, v_message.body, v_message.enqueued_at,
    v_message.trace_context, null
  )::parley.taken_message;
end
$$;

comment on function parley.discard_message(text, bigint, parley.caller) is
'Removes a message that is set aside from its simple queue, and returns it.
Arguments: queue; message_id, as parley.set_aside_messages shows it.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, 8426 not set aside, 9609 malformed name.
Source: spec P32, 5.6.';

create function parley.withdraw_message(
  queue text, delayed_id bigint, caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(parley._p_caller(caller), queue, 'RECEIVE');
begin
  delete from parley._p_delayed_message as d
  where d.queue_id = v_queue.queue_id and d.delayed_id = withdraw_message.delayed_id;
  return found;
end
$$;

comment on function parley.withdraw_message(text, bigint, parley.caller) is
'Withdraws a message of a simple queue that is not due yet, and returns whether it was still there.
Arguments: queue; delayed_id, as parley.delayed_messages shows it.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, 9609 malformed name.
Source: spec P32.';

create function parley.reschedule_message(
  queue text, delayed_id bigint, deliver_at timestamptz, caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(parley._p_caller(caller), queue, 'RECEIVE');
begin
  found := parley._p_require_finite(deliver_at);
  update parley._p_delayed_message as d
  set due_at = coalesce(reschedule_message.deliver_at, clock_timestamp())
  where d.queue_id = v_queue.queue_id and d.delayed_id = reschedule_message.delayed_id;
  if not found then
    return false;
  end if;
  perform parley._p_expect_due('parley._p_next_due', deliver_at);
  return true;
end
$$;

comment on function parley.reschedule_message(text, bigint, timestamptz, parley.caller) is
'Changes when a message of a simple queue that is not due yet will be, and returns whether it was still there.
Arguments: queue; delayed_id, as parley.delayed_messages shows it; deliver_at, the new time (null, or past: now).
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, deliver_at infinite, 9609 malformed name.
Source: spec P32.';
