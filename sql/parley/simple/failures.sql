-- The messages of simple queues that fail: the last error of each, and when a web address gets it again.
--
-- A row is there for few messages, for a day at most unless the message is set aside or waits for a delivery. It is
-- written outside of the transaction that failed, and TAKE reads none of it. Only deliveries to programs outside of the
-- database (activation/message_deliveries.sql) and views for people read it.
-- Rows of messages that are gone are removed a little later, by the next failure in their queue.

create table parley._p_message_failure (
  queue_id integer not null references parley._p_queue on delete cascade,
  position bigint not null,
  key_id bigint not null,
  failed_at timestamptz not null,
  sqlstate text,
  error text not null,
  answer text,
  -- Of deliveries alone.
  failures integer not null default 0,
  attempts integer not null default 0,
  retry_at timestamptz,
  primary key (queue_id, position)
);

comment on table parley._p_message_failure is
'The last failure of messages of simple queues. A message that is delivered to a web address is not delivered before
retry_at.';

create index on parley._p_message_failure (queue_id, key_id);

create function parley._p_key_of_message(queue_id integer, "position" bigint) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select m.endpoint_id
  from parley._p_message as m
  where m.position = $2
    and m.lane in (
      select parley._p_lane($1, p.n) from generate_series(1, 10) as p (n)
      union all
      select parley._p_set_aside_lane($1)
    )
$$;

comment on function parley._p_key_of_message(integer, bigint) is
'Gives the endpoint_id of a message of a simple queue, also of one that is set aside; null when it is not there.';

create function parley._p_remove_old_failures(queue_id integer) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  delete from parley._p_message_failure as f
  where f.queue_id = $1
    and f.position in (
      select o.position
      from parley._p_message_failure as o
      where o.queue_id = $1
      order by o.failed_at
      limit 100
      for update skip locked
    )
    and (
      parley._p_key_of_message(f.queue_id, f.position) is null
      or f.failures = 0
      and f.failed_at < clock_timestamp() - interval '1 day'
      and not exists (
        select from parley._p_set_aside_message as s where s.queue_id = f.queue_id and s.position = f.position
      )
    )
$$;

comment on function parley._p_remove_old_failures(integer) is
'Removes the failures of messages that are gone, of the oldest 100 of a queue, and reports that are older than a day.';

create function parley.record_message_failure(
  queue text, message_id bigint, sqlstate text, message text, caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set lock_timeout = '1s'
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(parley._p_caller(caller), queue, 'RECEIVE');
  v_key_id bigint := parley._p_key_of_message(v_queue.queue_id, message_id);
begin
  if v_key_id is null then
    return false;
  end if;
  insert into parley._p_message_failure as f (queue_id, position, key_id, failed_at, sqlstate, error)
  values (
    v_queue.queue_id, message_id, v_key_id, clock_timestamp(),
    substring(record_message_failure.sqlstate from '^[0-9A-Z]{5}$'), left(coalesce(message, ''), 2000)
  )
  on conflict on constraint _p_message_failure_pkey do update
  set failed_at = excluded.failed_at, sqlstate = excluded.sqlstate, error = excluded.error, answer = null;
  perform parley._p_remove_old_failures(v_queue.queue_id);
  return true;
exception
  when others then
    return false;
end
$$;

comment on function parley.record_message_failure(text, bigint, text, text, parley.caller) is
'Reports that a transaction that had taken a message from a simple queue has failed, and why. Call it afterwards, in a
transaction of its own, when it had taken that message alone: of several nobody knows which was bad. The last report of
each message is kept, for a day or as long as the message is set aside; parley.set_aside_messages and
parley.failing_messages show it. It counts nothing: the rollback is counted when the message is taken again.
Returns whether it was recorded: not when the message is gone.
Arguments: queue; message_id; sqlstate of the error, null when it came from elsewhere; message, its text, of which the
first 2,000 characters are kept.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, 9609 malformed name.
Source: spec P32, 5.6.';
