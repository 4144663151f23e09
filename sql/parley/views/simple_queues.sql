-- Simple queues at a glance: how much waits, what is not due yet, what is set aside.

create function parley._p_count_taken(queue parley._p_queue) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
  with taken as materialized (
    select m.taker
    from generate_series(10, 1, -1) as p (n)
    cross join lateral (select parley._p_lane(queue.queue_id, p.n) as lane) as l
    left join lateral parley._p_newest_hint(l.lane) as h on true
    cross join lateral (
      select o.xmax as taker
      from parley._p_message as o
      where o.lane = l.lane and o.position >= coalesce(h.low_position, 0)
      order by o.position
      limit 1000
    ) as m
    where queue.priorities & (1 << p.n) > 0 and m.taker <> '0'
  )
  select count(*)
  from taken as t
  where t.taker = any (parley._p_running(array(select distinct o.taker from taken as o)))
$$;

comment on function parley._p_count_taken(parley._p_queue) is
'Counts the messages of a simple queue, of the first thousand of each priority, that somebody has taken and not
committed.';

create function parley._p_simple_queues(caller parley.caller default parley.current_caller())
returns table (
  queue_name text,
  service_queue_id integer,
  waiting_messages bigint,
  is_estimated boolean,
  oldest_enqueue_time timestamptz,
  delayed_messages bigint,
  next_due_at timestamptz,
  set_aside_messages bigint,
  retrying_messages bigint,
  next_retry_at timestamptz,
  taken_messages bigint
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select q.lookup_name, q.queue_id, greatest(b.messages - t.messages - c.claimed, 0), b.is_estimated,
    b.oldest_enqueue_time, d.messages, d.next_due_at,
    (
      select count(*)
      from (select from parley._p_set_aside_message as s where s.queue_id = q.queue_id limit 100000) as n
    ),
    greatest(w.messages - c.retried, 0), w.next_retry_at, t.messages + c.claimed + c.retried
  from parley._p_queue as q
  cross join lateral parley._p_backlog(q, 0, null) as b
  cross join lateral (
    -- The first ones, in the order of the index.
    select count(*) as messages, min(n.due_at) as next_due_at
    from (
      select o.due_at
      from parley._p_delayed_message as o
      where o.queue_id = q.queue_id
      order by o.due_at
      limit 100000
    ) as n
  ) as d
  cross join lateral (
    select count(*) as messages, min(n.retry_at) as next_retry_at
    from (
      select o.retry_at
      from parley._p_message_wait as o
      where o.queue_id = q.queue_id
      order by o.retry_at
      limit 100000
    ) as n
  ) as w
  cross join lateral parley._p_count_taken(q) as t (messages)
  cross join lateral (
    -- One that has waited for another attempt still has the row of its wait.
    select count(*) filter (where n.position is null) as claimed, count(n.position) as retried
    from parley._p_message_claim as m
    left join parley._p_message_wait as n using (queue_id, position)
    where m.queue_id = q.queue_id and m.leased_until > clock_timestamp()
  ) as c
  where q.is_simple
    and parley._p_has_permission(parley._p_caller(caller), 'RECEIVE', 'queue', q.queue_id, q.owner)
$$;

comment on function parley._p_simple_queues(parley.caller) is 'Gives what parley.simple_queues shows.';

create view parley.simple_queues as
select s.queue_name, s.service_queue_id, s.waiting_messages, s.is_estimated, s.oldest_enqueue_time, s.delayed_messages,
  s.next_due_at, s.set_aside_messages, s.retrying_messages, s.next_retry_at, s.taken_messages
from parley._p_simple_queues() as s;

comment on view parley.simple_queues is
'Simple queues that the role may take from: how much waits, what is not due yet, what waits for another attempt, what
is set aside, and how many somebody has in his hands (taken_messages), which do not wait: those that are claimed, and
of the first thousand messages of each priority those that were taken and not committed. Long queues are estimated
(is_estimated); what is not due, waits for another attempt or is set aside is counted up to 100,000.';
