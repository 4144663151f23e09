-- Simple queues at a glance: how much waits, what is not due yet, what is set aside.

create function parley._p_simple_queues(caller parley.caller default parley.current_caller())
returns table (
  queue_name text,
  service_queue_id integer,
  waiting_messages bigint,
  is_estimated boolean,
  oldest_enqueue_time timestamptz,
  delayed_messages bigint,
  next_due_at timestamptz,
  set_aside_messages bigint
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select q.lookup_name, q.queue_id, b.messages, b.is_estimated, b.oldest_enqueue_time, d.messages, d.next_due_at,
    (select count(*) from parley._p_set_aside_message as s where s.queue_id = q.queue_id)
  from parley._p_queue as q
  cross join lateral parley._p_backlog(q, 0, null) as b
  cross join lateral (
    select count(*) as messages, min(o.due_at) as next_due_at
    from parley._p_delayed_message as o
    where o.queue_id = q.queue_id
  ) as d
  where q.is_simple
    and parley._p_has_permission(parley._p_caller(caller), 'RECEIVE', 'queue', q.queue_id, q.owner)
$$;

comment on function parley._p_simple_queues(parley.caller) is 'Gives what parley.simple_queues shows.';

create view parley.simple_queues as
select s.queue_name, s.service_queue_id, s.waiting_messages, s.is_estimated, s.oldest_enqueue_time, s.delayed_messages,
  s.next_due_at, s.set_aside_messages
from parley._p_simple_queues() as s;

comment on view parley.simple_queues is
'Simple queues that the role may take from: how much waits, what is not due yet, what is set aside. Long queues are
estimated (is_estimated).';
