-- Messages of simple queues that wait for another attempt after a failure, by the retry policy of their queue
-- (catalog/retry_policies.sql).
--
-- Such a message stands in the waiting lane of its queue, so that no reader scans it, under the position that it had:
-- so its message_id stays, and those behind it of its key wait with it, because it still is the first of its key. A row
-- of _p_message_wait says until when. When that time has come a reader takes the message from there, alone; nothing has
-- to be moved, and no lock is held in between.
--
-- It is made to wait by the session that saw it fail (simple/retry.sql), or by TAKE, which finds that it came back and
-- that no report came (conversation/awaited_reports.sql). A report that comes still later explains that return.
--
-- Invariants, and what keeps each:
--   a message waits or stands in the lane of its priority, never both   its lane, changed with its row locked
--   the count of failures survives a rollback of whoever takes it   TAKE deletes the row of _p_message_wait in the
--     transaction in which it takes, so both come back together
--   a message that came back from here is found   its xmax, of a transaction that failed: every move writes the row
--     anew, with an xmax of 0 or of the transaction that has moved it
-- Locks: the row of the wait, then that of the message, both skip locked; for the first wait ever of a queue the row
-- of the queue.
-- Cost: TAKE asks for waits in queues that have had one: an index probe.

create table parley._p_message_wait (
  queue_id integer not null references parley._p_queue on delete cascade,
  position bigint not null,
  priority smallint not null,
  attempts integer not null,
  losses integer not null,
  is_unexplained boolean not null default false,
  retry_at timestamptz not null,
  primary key (queue_id, position)
);

comment on table parley._p_message_wait is
'The messages of simple queues that wait for another attempt until retry_at. attempts counts failures that were
reported, losses returns of which nobody said why. The last one was such a return where is_unexplained: a report that
comes after it explains it.';

create index on parley._p_message_wait (queue_id, retry_at, position);
create index on parley._p_message_wait (retry_at);

create function parley._p_lanes(queue_id integer) returns setof integer
language sql immutable rows 11
as $$
  select parley._p_lane($1, p.n) from pg_catalog.generate_series(1, 10) as p (n)
  union all
  select parley._p_waiting_lane($1)
$$;

comment on function parley._p_lanes(integer) is
'Gives the lanes of a simple queue in which messages stand that are not set aside.';

create function parley._p_priority_of(message parley._p_message) returns smallint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if message.lane <> parley._p_waiting_lane(parley._p_owner_of_lane(message.lane)) then
    return 11 - message.lane % 16;
  end if;
  return coalesce(
    (
      select w.priority
      from parley._p_message_wait as w
      where w.queue_id = parley._p_owner_of_lane(message.lane) and w.position = message.position
    ),
    5
  );
end
$$;

comment on function parley._p_priority_of(parley._p_message) is
'Gives the priority of a message of a simple queue, also of one that waits for another attempt.';

create function parley._p_is_wait_free(wait parley._p_message_wait) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  return not parley._p_is_message_claimed(wait.queue_id, wait.position) and not exists (
    select
    from parley._p_message as m
    where m.lane = parley._p_waiting_lane(wait.queue_id)
      and m.position = wait.position
      and m.xmax <> '0'
      and parley._p_is_report_awaited(wait.queue_id, m.xmax)
  );
end
$$;

comment on function parley._p_is_wait_free(parley._p_message_wait) is
'Reports whether a message that waits is neither claimed nor awaits a report of who has rolled it back.';

create function parley._p_has_due_wait(queue_id integer) returns boolean
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
    from parley._p_message_wait as w
    where w.queue_id = _p_has_due_wait.queue_id
      and w.retry_at <= v_now
      and not parley._p_is_running(w.xmax)
      and parley._p_is_wait_free(w)
  );
end
$$;

comment on function parley._p_has_due_wait(integer) is
'Reports whether the wait of a message is over that nobody has taken or claimed already.';

create function parley._p_count_due_waits(
  queue_id integer, messages_max integer, out messages integer, out head bigint
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  select count(*), min(d.position) into messages, head
  from (
    select w.position
    from parley._p_message_wait as w
    where w.queue_id = _p_count_due_waits.queue_id
      and w.retry_at <= v_now
      and not parley._p_is_running(w.xmax)
      and parley._p_is_wait_free(w)
    limit messages_max
  ) as d;
end
$$;

comment on function parley._p_count_due_waits(integer, integer) is
'Counts the messages of a simple queue whose wait is over and that nobody has taken or claimed, up to a number, and
gives the position of the first of them.';

create function parley._p_wake_for_waits(since timestamptz, until timestamptz) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  perform parley._p_wake_readers(q.queue_id, q.wakeup_sequence)
  from (
    select distinct w.queue_id
    from parley._p_message_wait as w
    where w.retry_at > since and w.retry_at <= until
    limit 100
  ) as d
  join parley._p_queue as q using (queue_id);
end
$$;

comment on function parley._p_wake_for_waits(timestamptz, timestamptz) is
'Wakes the readers of queues in which waits have ended between two times.';

create function parley._p_make_message_wait(
  queue parley._p_queue, "position" bigint, row_id tid, lane integer, attempts integer, losses integer, delay interval,
  is_final boolean, out retry_at timestamptz, out is_set_aside boolean
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_policy parley._p_retry_policy := parley._p_retry_policy_of(queue);
  v_wait parley._p_message_wait;
  v_priority smallint := 11 - lane % 16;
begin
  delete from parley._p_message_wait as w
  where w.queue_id = queue.queue_id and w.position = _p_make_message_wait.position
  returning w.* into v_wait;
  if lane = parley._p_waiting_lane(queue.queue_id) then
    v_priority := coalesce(v_wait.priority, 5);
  end if;
  v_wait.attempts := least(coalesce(v_wait.attempts, 0), 1000000) + attempts;
  v_wait.losses := least(coalesce(v_wait.losses, 0), 1000000) + losses;
  is_set_aside := is_final
    or coalesce(v_wait.attempts >= v_policy.attempts or v_wait.losses >= v_policy.losses, false);
  update parley._p_message as m
  set lane = case
      when is_set_aside then parley._p_set_aside_lane(queue.queue_id)
      else parley._p_waiting_lane(queue.queue_id)
    end
  where m.ctid = row_id and m.position = _p_make_message_wait.position;
  if is_set_aside then
    insert into parley._p_set_aside_message (queue_id, position, priority, rollbacks)
    values (queue.queue_id, position, v_priority, v_wait.attempts + v_wait.losses);
    return;
  end if;
  retry_at := clock_timestamp()
    + coalesce(delay, parley._p_retry_wait(v_policy, v_wait.attempts + v_wait.losses), interval '0');
  insert into parley._p_message_wait (queue_id, position, priority, attempts, losses, is_unexplained, retry_at)
  values (queue.queue_id, position, v_priority, v_wait.attempts, v_wait.losses, losses > 0, retry_at);
  if not queue.has_waits then
    update parley._p_queue as q set has_waits = true where q.queue_id = queue.queue_id and not q.has_waits;
  end if;
  perform parley._p_expect_due('parley._p_next_due', retry_at);
end
$$;

comment on function parley._p_make_message_wait(
  parley._p_queue, bigint, tid, integer, integer, integer, interval, boolean
) is
'Makes a message wait, or sets it aside after too many failures. The caller has locked its row.
Arguments: queue; position, row_id and lane of the message; attempts and losses, how many are added, a loss less where a
report explains it; delay, for how long (null: by the policy of the queue); is_final, set it aside now.
It gives retry_at, null when the message is set aside.';

create function parley._p_lock_waited(queue_id integer, at timestamptz) returns parley._p_message_wait
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select w
  from parley._p_message_wait as w
  where w.queue_id = $1 and w.retry_at <= $2 and not parley._p_is_message_claimed($1, w.position)
    and not exists (
      select
      from parley._p_message as m
      where m.lane = parley._p_waiting_lane($1) and m.position = w.position and m.xmax <> '0'
        and parley._p_await_report(m.lane, m.endpoint_id, m.position, m.xmax)
    )
  order by w.retry_at, w.position
  limit 1
  for update skip locked
$$;

comment on function parley._p_lock_waited(integer, timestamptz) is
'Finds and locks the wait of a queue that ended first, that nobody else has in his hands, and whose message awaits no
report.';

create function parley._p_take_waited(queue parley._p_queue) returns setof parley.taken_message
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_now constant timestamptz := clock_timestamp();
  v_lane constant integer := parley._p_waiting_lane(queue.queue_id);
  v_wait parley._p_message_wait;
  v_found record;
  v_failed bigint;
begin
  v_wait := parley._p_lock_waited(queue.queue_id, v_now);
  if v_wait.position is null then
    return;
  end if;
  select m.ctid as row_id, m.xmax as taker, m.endpoint_id as key_id into v_found
  from parley._p_message as m
  where m.lane = v_lane and m.position = v_wait.position
    -- Of two that were put at the same time the first may be in the hands of somebody.
    and parley._p_is_first_of_key(queue.queue_id, m.endpoint_id, m.position)
  for update skip locked;
  if not found then
    delete from parley._p_message_wait as w
    where w.queue_id = queue.queue_id
      and w.position = v_wait.position
      and not exists (
        select from parley._p_message as m where m.lane = v_lane and m.position = v_wait.position
      );
    return;
  end if;
  v_failed := parley._p_full_transaction_id(v_found.taker);
  if v_found.taker <> '0' and pg_xact_status(v_failed::text::xid8) = 'aborted' then
    -- The session that took it has rolled back, and nobody has said why, unless it came back just before our lock.
    if not parley._p_await_report(v_lane, v_found.key_id, v_wait.position, v_found.taker) then
      perform parley._p_make_message_wait(queue, v_wait.position, v_found.row_id, v_lane, 0, 1, null, false);
    end if;
    perform parley._p_end_take(queue);
    return;
  end if;
  delete from parley._p_message_wait as w where w.queue_id = queue.queue_id and w.position = v_wait.position;
  delete from parley._p_message_failure as f where f.queue_id = queue.queue_id and f.position = v_wait.position;
  return query
  delete from parley._p_message as m
  where m.ctid = v_found.row_id and m.position = v_wait.position
  returning m.position, m.message_key, v_wait.priority, m.body, m.enqueued_at, m.trace_context,
    v_wait.attempts + v_wait.losses + 1;
end
$$;

comment on function parley._p_take_waited(parley._p_queue) is
'Takes the first message of a simple queue whose wait is over, alone. One that was taken since and came back, and of
which nobody has said why, waits anew: then the call gives nothing.';

create function parley._p_end_take(queue parley._p_queue) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- A reader that pauses after an empty call is woken by its own commit, like the others.
  perform parley._p_wake_readers(queue.queue_id, queue.wakeup_sequence);
  perform parley._p_record_unseen();
  perform set_config('parley.take', 'over', true);
end
$$;

comment on function parley._p_end_take(parley._p_queue) is
'Has TAKE give nothing, so that the transaction ends soon: it has made a message wait, and its lock would hold off who
reports why that failed.';

create function parley._p_is_take_over() returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(current_setting('parley.take', true) = 'over', false);
end
$$;

comment on function parley._p_is_take_over() is
'Reports whether TAKE is to look for nothing more in this transaction, by _p_end_take.';

create function parley._p_may_not_return(
  queue parley._p_queue, "position" bigint, row_id tid, lane integer, rollbacks integer
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_policy constant parley._p_retry_policy := parley._p_retry_policy_of(queue);
begin
  if v_policy.queue_id is not null then
    -- The first time it is taken again: a bad message may have taken it along, or a restart of the server. After that
    -- it waits. Where there was no room to count it may be the first time: a moment is enough.
    if rollbacks <= 1 then
      return false;
    end if;
    perform parley._p_make_message_wait(
      queue, position, row_id, lane, 0, coalesce(rollbacks, 1),
      case when rollbacks is null then parley._p_moment(v_policy) end, false
    );
    perform parley._p_end_take(queue);
    return true;
  elsif coalesce(rollbacks, 0) < queue.rollbacks_before_disable then
    return false;
  elsif queue.poison_action = 'DISABLE_QUEUE' then
    found := parley._p_raise(9617, 'disabled', queue.lookup_name);
  end if;
  update parley._p_message as m
  set lane = parley._p_set_aside_lane(queue.queue_id)
  where m.ctid = row_id and m.position = _p_may_not_return.position;
  insert into parley._p_set_aside_message (queue_id, position, priority, rollbacks)
  values (queue.queue_id, position, 11 - lane % 16, rollbacks);
  return true;
end
$$;

comment on function parley._p_may_not_return(parley._p_queue, bigint, tid, integer, integer) is
'Reports whether a message that came back must not be taken now: it waits by the retry policy of its queue, or is set
aside, from here on. The caller has locked its row.
Arguments: queue; position, row_id and lane of the message; rollbacks, how many were counted, null for unknown.
Errors: 9617 when it came back too often and the queue is to be disabled.';
