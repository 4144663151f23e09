-- TAKE: how messages leave a simple queue.
--
-- 1. _p_take_returned: a message that has come back after a rollback is taken alone, and counted, or set aside when it
--    came back too often (poison/poison.sql says how that is noticed and counted). So a bad message takes others
--    along once.
-- 2. _p_claim: one statement locks the first rows that are free, skipping what others hold, and deletes them. Nothing
--    else is locked, so that readers side by side do not meet.
-- Both can be called by what claims messages in another way.
--
-- Invariants, and what keeps each:
--   a message is taken once   the lock of its row
--   of one key only the first is taken   the condition of the scan: what another transaction has taken and not
--     committed is still the first; messages of one key whose puts overlapped may be taken at once
--   nothing that waits stands before where a scan begins   conversation/scan_hints.sql
-- A message that is being delivered to a web address is passed by (simple/message_claims.sql).
-- Locks: message rows, skip locked. Cost of a call: four statements; what is in others' hands before the first free row
-- is walked past in the index, 0.1 ms for 640 rows.

create function parley._p_take_row(row_id tid, "position" bigint, priority integer, attempt integer)
returns setof parley.taken_message
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  delete from parley._p_message as m
  where m.ctid = $1 and m.position = $2
  returning m.position, m.message_key, $3::smallint, m.body, m.enqueued_at, m.trace_context, $4
$$;

comment on function parley._p_take_row(tid, bigint, integer, integer) is
'Takes a message whose row the caller has locked.
Arguments: row_id, position and priority of the message; attempt, which one it is.';

create function parley._p_take_returned(queue parley._p_queue, priority integer, from_position bigint, rows_max integer)
returns setof parley.taken_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane constant integer := parley._p_lane(queue.queue_id, priority);
  v_takers xid[];
  v_running xid[];
  v_first record;
  v_failed bigint;
  v_count integer;
begin
  -- Those that run have it in their hands; whoever has ended gave it back. Asked once for each taker, however many rows
  -- it holds: asked for each row, 640 rows in others' hands cost 4 ms a call.
  v_takers := array(
    select distinct n.taker
    from (
      select m.xmax as taker
      from parley._p_message as m
      where m.lane = v_lane and m.position >= from_position
      order by m.position
      limit rows_max
    ) as n
    where n.taker <> '0'
  );
  v_running := parley._p_running(v_takers);
  if cardinality(v_running) = cardinality(v_takers) then
    return;
  end if;
  select n.ctid as row_id, n.position, n.taker into v_first
  from (
    select m.ctid, m.position, m.endpoint_id, m.xmax as taker
    from parley._p_message as m
    where m.lane = v_lane and m.position >= from_position
    order by m.position
    limit rows_max
  ) as n
  where n.taker = any (v_takers)
    and n.taker <> all (v_running)
    and not parley._p_is_message_claimed(queue.queue_id, n.position)
    and parley._p_is_first_of_key(queue.queue_id, n.endpoint_id, n.position)
  order by n.position
  limit 1;
  if not found then
    return;
  end if;
  perform
  from parley._p_message as m
  where m.ctid = v_first.row_id and m.position = v_first.position
  for update skip locked;
  if not found or parley._p_is_message_claimed(queue.queue_id, v_first.position) then
    return;
  end if;
  v_failed := parley._p_full_transaction_id(v_first.taker);
  v_count := 0;
  if queue.is_poison_message_handling_enabled and pg_xact_status(v_failed::text::xid8) = 'aborted' then
    v_count := parley._p_count_returned(queue, v_first.position, v_failed);
    if parley._p_may_not_return(queue, v_first.position, v_first.row_id, v_lane, v_count) then
      perform parley._p_record_unseen();
      return;
    end if;
  end if;
  return query
  select * from parley._p_take_row(v_first.row_id, v_first.position, priority, coalesce(v_count, 0) + 1);
end
$$;

comment on function parley._p_take_returned(parley._p_queue, integer, bigint, integer) is
'Takes the first message of a lane that came back after a rollback, alone, and counts that; or sets it aside when it
came back too often. In a queue with a retry policy it waits from the second time on.
Arguments: queue; priority; from_position, where to begin; rows_max, among so many rows (null: all).
Errors: 9617 when it came back too often and the queue is to be disabled.';

create function parley._p_is_first_of_key(queue_id integer, key_id bigint, "position" bigint) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return key_id = -9223372036854775807 or not exists (
    select
    from parley._p_message as m
    where m.endpoint_id = key_id
      and m.position < _p_is_first_of_key.position
      and m.lane <> parley._p_set_aside_lane(_p_is_first_of_key.queue_id)
      and parley._p_owner_of_lane(m.lane) = _p_is_first_of_key.queue_id
  );
end
$$;

comment on function parley._p_is_first_of_key(integer, bigint, bigint) is
'Reports whether no message of the same key stands before one in its queue, but what is set aside. The hash of a key can
be that of a key of another queue: whoever may put there can make one that is.';

create function parley._p_claim(lane integer, from_position bigint, count integer) returns setof parley.taken_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_priority constant smallint := 11 - lane % 16;
  v_queue_id constant integer := parley._p_owner_of_lane(lane);
  v_set_aside_lane constant integer := parley._p_set_aside_lane(v_queue_id);
begin
  return query
  with picked as materialized (
    select n.ctid as row_id
    from parley._p_message as n
    where n.lane = _p_claim.lane
      and n.position >= from_position
      and n.xmax = '0'
      and (
        n.endpoint_id = -9223372036854775807
        or not exists (
          select
          from parley._p_message as o
          where o.endpoint_id = n.endpoint_id
            and o.position < n.position
            and o.lane <> v_set_aside_lane
            and parley._p_owner_of_lane(o.lane) = v_queue_id
        )
      )
    order by n.position
    limit count
    for update skip locked
  )
  delete from parley._p_message as m
  using picked as p
  where m.ctid = p.row_id
  returning m.position, m.message_key, v_priority, m.body, m.enqueued_at, m.trace_context, 1;
end
$$;

comment on function parley._p_claim(integer, bigint, integer) is
'Takes the first messages of a lane that nobody else has taken and that never came back, by arrival; of each key the
first.
Arguments: lane; from_position, where to begin; count, how many at most.';

create function parley._p_take_from_lane(queue parley._p_queue, priority integer, count integer)
returns setof parley.taken_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane constant integer := parley._p_lane(queue.queue_id, priority);
  v_hint parley._p_scan_hint;
  v_low bigint;
  v_first record;
  v_left integer := count;
  v_taken integer;
begin
  select * into v_hint from parley._p_newest_hint(v_lane) as h;
  v_low := coalesce(v_hint.low_position, 0);
  select m.position, m.xmax as taker into v_first
  from parley._p_message as m
  where m.lane = v_lane and m.position >= v_low
  order by m.position
  limit 1;
  if not found then
    return;
  end if;
  if v_first.position - v_low > 262144 then
    perform parley._p_renew_hint(queue.queue_id, v_lane, v_first.position, v_hint);
  end if;
  -- Behind what others have in their hands something may have come back, too.
  if v_first.taker <> '0' then
    return query
    select * from parley._p_take_returned(queue, priority, v_low, case when random() < 0.9 then 8 else 2000 end);
    if found then
      return;
    end if;
  end if;
  -- In each round the next of each key.
  while v_left > 0 loop
    if queue.has_deliveries then
      return query select * from parley._p_take_unclaimed(v_lane, v_low, v_left);
    else
      return query select * from parley._p_claim(v_lane, v_low, v_left);
    end if;
    get diagnostics v_taken = row_count;
    exit when v_taken = 0;
    v_left := v_left - v_taken;
  end loop;
  -- All rows: behind any number in others' hands something may have come back.
  if v_left = count then
    return query select * from parley._p_take_returned(queue, priority, v_low, null);
  end if;
end
$$;

comment on function parley._p_take_from_lane(parley._p_queue, integer, integer) is
'Takes messages of one priority from a simple queue, by arrival; or one that came back, alone.
Arguments: queue; priority; count, how many at most.
Errors: 9617.';

create function parley._p_take_by_priority(
  queue parley._p_queue, count integer, timeout integer, ageing_ms bigint default null
) returns setof parley.taken_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_priority integer;
  v_is_late boolean := random() < 0.5;
begin
  if coalesce(pg_sequence_last_value('parley._p_next_due'), 0) <= extract(epoch from clock_timestamp()) * 1000000
    and (coalesce(timeout, 0) = 0 or parley._p_has_due_message(queue.queue_id)) then
    perform parley._p_deliver_due(queue.queue_id, 1000);
  end if;
  -- By turns with the others, so that an outage of what some of them need does not hold up the rest.
  if queue.has_waits and not v_is_late then
    return query select * from parley._p_take_waited(queue);
    if found then
      return;
    end if;
  end if;
  for v_priority in
    select p.n
    from generate_series(10, 1, -1) as p (n)
    where queue.priorities & (1 << p.n) > 0
    order by p.n + coalesce(case when ageing_ms > 0 then parley._p_age_of_lane(queue, p.n) / ageing_ms end, 0) desc
  loop
    return query select * from parley._p_take_from_lane(queue, v_priority, count);
    -- Of one priority at a time: what came back stays alone.
    if found then
      return;
    end if;
  end loop;
  if queue.has_waits and v_is_late then
    return query select * from parley._p_take_waited(queue);
  end if;
end
$$;

comment on function parley._p_take_by_priority(parley._p_queue, integer, integer, bigint) is
'Takes messages from a simple queue, of the highest priority that has some, after what is due was put there.
Arguments: queue; count, how many at most; timeout of take: who waits writes nothing when nothing is due; ageing_ms,
after how many milliseconds a message counts as one priority higher, null for never.
Errors: 9617.';

create function parley.take(
  queue text, count integer default 1, timeout integer default null,
  caller parley.caller default parley.current_caller()
) returns setof parley.taken_message
language plpgsql security definer rows 100
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_scan record;
  v_queue parley._p_queue;
  v_taken integer := 0;
  v_claimed integer;
  v_wait parley._p_wait;
begin
  if count is null or count < 1 or count > 100000 or timeout < -1 then
    found := parley._p_require_range('count', count, 1, 100000) and parley._p_require_timeout(timeout);
  end if;
  loop
    -- With the first row of the usual lane: then one more statement is enough as a rule.
    select q as queue, f.position, f.taker, f.low into v_scan
    from parley._p_queue as q
    left join lateral (
      select m.position, m.xmax as taker, coalesce(h.low_position, 0) as low
      from (select parley._p_lane(q.queue_id, 5) as lane) as l
      left join lateral parley._p_newest_hint(l.lane) as h on true
      cross join lateral (
        select n.position, n.xmax
        from parley._p_message as n
        where n.lane = l.lane and n.position >= coalesce(h.low_position, 0)
        order by n.position
        limit 1
      ) as m
    ) as f on true
    where q.lookup_name = queue;
    if not found then
      queue := (parley._p_find_queue(v_caller, queue)).lookup_name;
      continue;
    end if;
    v_queue := v_scan.queue;
    if pg_has_role(v_caller, v_queue.owner, 'usage') is not true or not v_queue.is_simple then
      found := (parley._p_find_simple_queue(v_caller, queue, 'RECEIVE')).is_simple;
    end if;
    if not v_queue.is_receive_enabled
      or v_queue.poison_action = 'DISABLE_QUEUE' and parley._p_is_poisoned(v_queue.queue_id) then
      found := parley._p_raise(9617, 'disabled', v_queue.lookup_name);
    end if;
    exit when v_queue.readers_paused_at is not null and parley._p_is_paused(v_queue, coalesce(timeout, 0));
    if timeout <> 0 then
      v_wait := parley._p_begin_scan(v_queue.position_sequence, timeout, v_wait);
    end if;
    if v_queue.priorities = 32 and not (v_queue.has_deliveries or v_queue.is_limited)
      and (not v_queue.has_waits or not parley._p_has_due_wait(v_queue.queue_id))
      and v_scan.position - v_scan.low <= 262144
      and (v_scan.taker = '0' or parley._p_is_running(v_scan.taker) and random() < 0.95)
      and (
        pg_sequence_last_value('parley._p_next_due') > extract(epoch from clock_timestamp()) * 1000000
        or timeout <> 0 and not parley._p_has_due_message(v_queue.queue_id)
      ) then
      -- In each round the next of each key.
      loop
        return query
        select * from parley._p_claim(parley._p_lane(v_queue.queue_id, 5), v_scan.low, count - v_taken);
        get diagnostics v_claimed = row_count;
        v_taken := v_taken + v_claimed;
        exit when v_claimed = 0 or v_taken = count;
      end loop;
      if v_taken = 0 then
        return query select * from parley._p_take_returned(v_queue, 5, v_scan.low, null);
        get diagnostics v_taken = row_count;
      end if;
    else
      return query select * from parley._p_take_within_limits(v_queue, count, timeout);
      get diagnostics v_taken = row_count;
    end if;
    exit when v_taken > 0 or coalesce(timeout, 0) = 0 or parley._p_has_unseen();
    v_wait := parley._p_wait_for_message(v_queue.position_sequence, timeout, v_wait);
    exit when v_wait.is_over;
  end loop;
  if v_wait.scanned_at is not null then
    found := v_wait.started_at is not null and parley._p_reach_client();
    if v_taken > 0
      and coalesce(pg_sequence_last_value('parley._p_next_due'), 0) <= extract(epoch from clock_timestamp()) * 1e6 then
      found := parley._p_renew_next_due(clock_timestamp());
    end if;
  end if;
end
$$;

comment on function parley.take(text, integer, integer, parley.caller) is
'Takes messages from a simple queue: removes them, in this transaction. A message that others have taken and not
committed is passed by. Messages come by priority and arrival, of one priority in a call, those of one key always in the
order in which they were put. A message that came back after a rollback is taken alone; in a queue with a retry policy
it waits from the second time on, and those behind it of its key with it. After too many it is set aside:
parley.set_aside_messages. A message whose wait is over is taken alone, by turns with the others.
Arguments: queue; count, how many at most, 1 to 100,000; timeout in milliseconds to wait for a message (null or 0: do
not wait, -1: for ever).
It waits with its snapshot, as receive does: for more than some seconds wait with parley.wait_for_message. When it had
to move what is due, it gives nothing before its time: commit, and call it again.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, count or timeout out of range, 9609 malformed name,
9617 the queue is disabled.
Call it at READ COMMITTED: an older snapshot does not see what came later, and never waits.
Source: spec P32.';
