-- Work that is done, kept for a time where a queue says so: its result, and how long it took.
--
-- A message that was taken is gone when its transaction commits; a worker says in that transaction what came of it.
-- Nothing is written for queues that keep nothing.
-- Locks: none. Rows whose time is over are removed by fire_timers.

create table parley._p_finished_message (
  queue_id integer not null references parley._p_queue on delete cascade,
  position bigint not null,
  started_at timestamptz not null,
  finished_at timestamptz not null default clock_timestamp(),
  result jsonb,
  expires_at timestamptz not null,
  primary key (queue_id, position)
);

comment on table parley._p_finished_message is 'Messages of simple queues that were worked on, kept until expires_at.';

create index on parley._p_finished_message (expires_at);
create index on parley._p_finished_message (finished_at);

create function parley.keep_finished(
  queue text, keep interval, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(parley._p_caller(caller), queue, 'ALTER');
begin
  if keep is not null and not (keep between interval '1 second' and interval '366 days') then
    found := parley._p_raise(8402, 'range', 'keep', keep::text, '1 second', '366 days');
  end if;
  update parley._p_queue as q set keep_finished = keep where q.queue_id = v_queue.queue_id;
end
$$;

comment on function parley.keep_finished(text, interval, parley.caller) is
'Says for how long a simple queue keeps what parley.done and parley.complete say of work that is done.
Arguments: queue; keep, 1 second to 366 days, null for nothing, as in a new queue. Rows that are kept already keep
their time.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue or keep out of range, 9609 malformed name.
Source: spec P32.';

create function parley._p_keep_done(
  queue parley._p_queue, "position" bigint, started_at timestamptz, result jsonb
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if queue.keep_finished is null then
    return false;
  end if;
  insert into parley._p_finished_message as f (queue_id, position, started_at, result, expires_at)
  values (queue.queue_id, position, started_at, result, clock_timestamp() + queue.keep_finished)
  on conflict on constraint _p_finished_message_pkey do update
  set started_at = excluded.started_at, finished_at = excluded.finished_at, result = excluded.result,
    expires_at = excluded.expires_at;
  return true;
end
$$;

comment on function parley._p_keep_done(parley._p_queue, bigint, timestamptz, jsonb) is
'Keeps that a message is done, where its queue says so.';

create function parley.done(
  queue text, message_id bigint, result jsonb default null, caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(parley._p_caller(caller), queue, 'RECEIVE');
begin
  return parley._p_keep_done(v_queue, message_id, now(), result);
end
$$;

comment on function parley.done(text, bigint, jsonb, parley.caller) is
'Says what came of a message, in the transaction that took it: parley.finished_messages shows that, for as long as its
queue keeps it. Returns whether the queue keeps anything.
Arguments: queue; message_id; result, for those who wait.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, 9609 malformed name.
Source: spec P32.';

create function parley._p_forget_finished(only_queues integer[]) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  delete from parley._p_finished_message as f
  where (f.queue_id, f.position) in (
    select o.queue_id, o.position
    from parley._p_finished_message as o
    where o.expires_at <= clock_timestamp() and ($1 is null or o.queue_id = any ($1))
    order by o.expires_at
    limit 10000
    for update skip locked
  )
$$;

comment on function parley._p_forget_finished(integer[]) is
'Removes what was kept of work that is done and whose time is over, up to 10,000 rows.';

create view parley.finished_messages with (security_barrier) as
select
  q.lookup_name as queue_name,
  f.position as message_id,
  f.started_at,
  f.finished_at,
  f.finished_at - f.started_at as duration,
  f.result
from parley._p_finished_message as f
join parley._p_queue as q using (queue_id)
where f.expires_at > clock_timestamp()
  and f.queue_id = any ((select parley._p_ids_of_queues_to_receive_from())::integer[])
order by f.finished_at desc;

comment on view parley.finished_messages is
'Work on messages of simple queues that is done, as its workers said it (parley.done, parley.complete): when it began
and ended, and its result, the last first. For as long as the queue keeps it, of queues that the role may take from.';
