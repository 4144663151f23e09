-- Simple queues (spec P32): messages without conversations, in the message store beside all others.
--
-- A message without a key belongs to nobody: its row alone is claimed and deleted. Messages with one key are taken in
-- their order: only the first that is there may be claimed. As long as the claim is not committed it is there for
-- others, so none behind it is the first. Both need no row but that of the message.
--
-- endpoint_id of a row, which for other messages names the side that is to receive it, is below every number that an
-- endpoint can have: one for all of a queue without a key, one with a hash of the key for the others (simple/keys.sql).
-- Two keys of one hash are one to the order, and nothing else.
--
-- A message that is not due yet stands in _p_delayed_message, and the session that finds that it is due puts it at the
-- end of its queue: readers those of their queue, the daemon all (activation/fire_timers.sql).

create type parley.taken_message as (
  message_id bigint,
  key text,
  priority smallint,
  body bytea,
  enqueued_at timestamptz,
  trace_context text,
  attempt integer
);

comment on type parley.taken_message is
'A message of a simple queue. message_id is its place in the order of arrival; it stays while the message waits for
another attempt, and changes when it is put back after it was set aside. attempt is which attempt this is, as far as
failures were counted: 1 at first.';

create table parley._p_delayed_message (
  delayed_id bigint generated always as identity primary key,
  queue_id integer not null references parley._p_queue on delete cascade,
  due_at timestamptz not null,
  priority smallint not null,
  message_key text,
  body bytea,
  trace_context text
);

comment on table parley._p_delayed_message is 'The messages that were put into simple queues and are not due yet.';

create index on parley._p_delayed_message (queue_id, due_at, delayed_id);
create index on parley._p_delayed_message (due_at);

-- Shows, outside any transaction, when to scan for what is due next: microseconds since 1970. It may be early, never
-- later than a second too late.
create sequence parley._p_next_due minvalue 0 start 0;

create table parley._p_set_aside_message (
  queue_id integer not null references parley._p_queue on delete cascade,
  position bigint not null,
  priority smallint not null,
  rollbacks integer not null,
  set_aside_at timestamptz not null default clock_timestamp(),
  primary key (queue_id, position)
);

create index on parley._p_set_aside_message (set_aside_at);

comment on table parley._p_set_aside_message is
'Messages of simple queues that came back too often. They stand in the set-aside lane of their queue.';

create function parley._p_find_simple_queue(caller oid, queue text, permission text) returns parley._p_queue
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_queue(caller, queue, permission);
begin
  if not v_queue.is_simple then
    found := parley._p_raise(8402, 'not simple', v_queue.lookup_name);
  end if;
  return v_queue;
end
$$;

comment on function parley._p_find_simple_queue(oid, text, text) is
'Finds a simple queue that the caller may use for something.
Errors: 208 not found, 229 not allowed, 8402 no simple queue, 9609 malformed name.';

create function parley._p_renew_next_due(now timestamptz) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_next timestamptz := (select d.due_at from parley._p_delayed_message as d order by d.due_at limit 1);
  v_last timestamptz;
begin
  if v_next <= now then
    return false;
  end if;
  -- A wait that is over stays until somebody takes the message, and must not have all others scan: only the next one
  -- counts. The readers of those that are over since the last time are woken here.
  v_next := least(
    v_next, (select w.retry_at from parley._p_message_wait as w where w.retry_at > now order by w.retry_at limit 1)
  );
  v_last := to_timestamp(coalesce(pg_sequence_last_value('parley._p_next_due'), 0) / 1000000.0);
  perform parley._p_wake_for_waits(greatest(v_last, now - interval '1 minute') - interval '1 second', now);
  -- A message that an uncommitted transaction has put is not seen here: scan again within a second.
  v_next := least(v_next, now + interval '1 second');
  perform setval('parley._p_next_due', (extract(epoch from v_next) * 1000000)::bigint);
  return true;
end
$$;

comment on function parley._p_renew_next_due(timestamptz) is
'Records when to scan for what is due next, and gives true; gives false, and lets all go on scanning, when something is
due now, in any queue: readers of one must not put off those of another.';

create function parley._p_end_turns(has_waited boolean, taken integer) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if taken > 0
    and coalesce(pg_sequence_last_value('parley._p_next_due'), 0) <= extract(epoch from clock_timestamp()) * 1e6 then
    found := parley._p_renew_next_due(clock_timestamp());
  end if;
  return has_waited and parley._p_reach_client();
end
$$;

comment on function parley._p_end_turns(boolean, integer) is
'The rest of the work of a TAKE that was ready to wait: to record when to scan for what is due next, if it has taken
something, and to make sure of its client, if it has waited.
Arguments: has_waited; taken, how many messages.';

create function parley._p_has_due_message(queue_id integer) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  return exists (
    select
    from parley._p_delayed_message as d
    where d.queue_id = _p_has_due_message.queue_id and d.due_at <= v_now and not parley._p_is_running(d.xmax)
  ) or parley._p_has_due_wait(queue_id);
end
$$;

comment on function parley._p_has_due_message(integer) is
'Reports whether something of a simple queue is due that nobody delivers already. It reads, where _p_deliver_due takes a
number of a transaction in any case: who waits for a message asks this first.';

create function parley._p_deliver_due(queue_id integer, top integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_now timestamptz := clock_timestamp();
  v_moved integer;
  v_queue parley._p_queue;
begin
  select * into v_queue from parley._p_queue as q where q.queue_id = _p_deliver_due.queue_id;
  with due as materialized (
    delete from parley._p_delayed_message as d
    where d.delayed_id in (
      select o.delayed_id
      from parley._p_delayed_message as o
      where o.queue_id = v_queue.queue_id and o.due_at <= v_now
      order by o.due_at, o.delayed_id
      limit top
      for update skip locked
    )
    returning d.delayed_id, d.due_at, d.priority, d.message_key, d.body, d.trace_context
  ), placed as materialized (
    select nextval(v_queue.position_sequence) * 1024 as position, s.*
    from (select * from due as d order by d.due_at, d.delayed_id) as s
  ), unique_keys as (
    update parley._p_unique_message as u set position = p.position, delayed_id = null
    from placed as p
    where u.delayed_id = p.delayed_id
  )
  insert into parley._p_message (
    position, endpoint_id, enqueued_at, lane, message_type_id, body, message_key, trace_context
  )
  select p.position, parley._p_key_id(v_queue.queue_id, p.message_key), v_now,
    parley._p_lane(v_queue.queue_id, p.priority), 14, p.body, p.message_key, p.trace_context
  from placed as p
  order by p.position;
  get diagnostics v_moved = row_count;
  if v_moved > 0 then
    perform parley._p_wake_readers(v_queue.queue_id, v_queue.wakeup_sequence);
  end if;
  perform parley._p_renew_next_due(v_now);
  return v_moved;
end
$$;

comment on function parley._p_deliver_due(integer, integer) is
'Puts what is due at the end of a simple queue, in the order of the times, and records when to scan next. Waits for
nobody. Gives how many messages.
Arguments: queue_id; top, how many at most.';

create function parley._p_deliver_all_due(only_queues integer[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_moved integer := 0;
  v_queue_id integer;
  -- Not clock_timestamp() itself, by which an index cannot bound a search.
  v_now timestamptz := clock_timestamp();
begin
  if parley._p_renew_next_due(v_now) then
    return 0;
  end if;
  for v_queue_id in
    select q.queue_id
    from parley._p_queue as q
    where q.is_simple
      and (only_queues is null or q.queue_id = any (only_queues))
      and exists (select from parley._p_delayed_message as d where d.queue_id = q.queue_id and d.due_at <= v_now)
  loop
    v_moved := v_moved + parley._p_deliver_due(v_queue_id, 1000);
  end loop;
  return v_moved;
end
$$;

comment on function parley._p_deliver_all_due(integer[]) is
'Puts what is due at the end of simple queues, up to 1,000 messages of each, and gives how many.
Arguments: only_queues, of these alone; null for all.';

create function parley._p_drop_messages_of_queue() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from parley._p_message as m
  where m.lane between parley._p_lane(old.queue_id, 10) and parley._p_waiting_lane(old.queue_id);
  return null;
end
$$;

comment on function parley._p_drop_messages_of_queue() is 'Drops the messages of a simple queue with it.';

create trigger _p_drop_messages after delete on parley._p_queue
for each row when (old.is_simple) execute function parley._p_drop_messages_of_queue();
