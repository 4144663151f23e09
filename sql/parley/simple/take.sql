-- TAKE: how messages leave a simple queue.
--
-- 1. _p_take_returned: a message that has come back after a rollback is taken alone (simple/returned.sql).
-- 2. _p_claim, in each round the next of each key (simple/claim.sql). It stands in TAKE too, for the usual queue: rows
--    of a function are copied once more.
-- 3. _p_claim_far, behind the first rows of a lane (simple/keys.sql).
-- Both can be called by what claims messages in another way.
--
-- Invariants, and what keeps each:
--   a message is taken once, and of one key only the first   simple/claim.sql
--   nothing that waits stands before where a scan begins   conversation/scan_hints.sql
-- A message that is being delivered to a web address is passed by (simple/message_claims.sql).
-- Locks: message rows, skip locked. Cost of a call: three statements as a rule.

create function parley._p_take_rest(
  queue parley._p_queue, priority integer, from_position bigint, before bigint, keyless bigint, count integer,
  taken integer
) returns setof parley.taken_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane constant integer := parley._p_lane(queue.queue_id, priority);
begin
  if exists (select from parley._p_message as m where m.lane = v_lane and m.position >= before) then
    if not queue.has_deliveries and random() < 0.25 then
      perform parley._p_resume_later(queue.queue_id, v_lane);
    end if;
    return query select * from parley._p_claim_far(v_lane, before, keyless, count - taken, queue.has_deliveries);
    if found then
      return;
    end if;
  end if;
  -- All rows: behind any number in others' hands something may have come back.
  if taken = 0 then
    return query select * from parley._p_take_returned(queue, priority, from_position, null);
  end if;
end
$$;

comment on function parley._p_take_rest(parley._p_queue, integer, bigint, bigint, bigint, integer, integer) is
'Takes messages of one priority from a simple queue that are not among the first rows of its lane; or one that came
back, alone.
Arguments: queue; priority; from_position, where the lane begins; before, where the first rows end; keyless, where to
begin behind them with what has no key; count, how many at most; taken, how many of these were taken from the first
rows.
Errors: 9617.';

create function parley._p_take_from_lane(queue parley._p_queue, priority integer, count integer)
returns setof parley.taken_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane constant integer := parley._p_lane(queue.queue_id, priority);
  v_hint parley._p_scan_hint;
  v_low bigint;
  v_begin bigint;
  v_first record;
  v_before bigint;
  v_left integer := count;
  v_taken integer;
begin
  select * into v_hint from parley._p_newest_hint(v_lane) as h;
  v_low := coalesce(v_hint.low_position, 0);
  v_begin := greatest(v_low, v_hint.resume_position);
  select m.position, m.xmax as taker, m.endpoint_id into v_first
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
  if v_begin > v_low
    and (
      v_first.taker = '0' or not parley._p_is_running(v_first.taker)
      or parley._p_is_time_to_look_back(v_low, v_begin)
    ) then
    v_begin := v_low;
  end if;
  -- Behind what others have in their hands something may have come back, too.
  if v_first.taker <> '0' then
    return query
    select * from parley._p_take_returned(queue, priority, v_begin, case when random() < 0.9 then 8 else 2000 end);
    if found or parley._p_is_take_over() then
      return;
    end if;
  end if;
  v_begin := greatest(v_begin, v_first.position);
  v_before := parley._p_end_of_first_rows(v_begin, v_first.taker, v_first.endpoint_id, count);
  -- In each round the next of each key.
  while v_left > 0 loop
    if queue.has_deliveries then
      return query select * from parley._p_take_unclaimed(v_lane, v_begin, v_before, v_left);
    else
      return query select * from parley._p_claim(v_lane, v_begin, v_before, v_left);
    end if;
    get diagnostics v_taken = row_count;
    exit when v_taken = 0;
    v_left := v_left - v_taken;
  end loop;
  if v_left > 0 then
    return query select * from parley._p_take_rest(
      queue, priority, v_low, v_before, v_hint.keyless_position, count, count - v_left
    );
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
    if found or parley._p_is_take_over() then
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
    if found or parley._p_is_take_over() then
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

create function parley._p_require_takeable(caller oid, queue parley._p_queue) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if pg_has_role(caller, queue.owner, 'usage') is not true or not queue.is_simple then
    queue := parley._p_find_simple_queue(caller, queue.lookup_name, 'RECEIVE');
  end if;
  if not queue.is_receive_enabled or parley._p_is_poisoned(queue.queue_id) then
    found := parley._p_raise(9617, 'disabled', queue.lookup_name);
  end if;
  return true;
end
$$;

comment on function parley._p_require_takeable(oid, parley._p_queue) is
'Gives true when somebody may take from a queue, and it is on.
Errors: 229 not allowed, 8402 no simple queue, 9617 disabled.';

create function parley._p_begin_later(queue_id integer, lane integer, head_position bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hint parley._p_scan_hint;
begin
  select * into v_hint from parley._p_newest_hint(lane) as h;
  perform parley._p_renew_hint(queue_id, lane, head_position, v_hint);
end
$$;

comment on function parley._p_begin_later(integer, integer, bigint) is
'Records that scans of a lane may begin later than its hint says. Asking who is under way takes long with many sessions:
one caller in four is soon enough.
Arguments: queue_id; lane; head_position, of the first message there.';

create function parley._p_look_back(
  queue parley._p_queue, lane integer, low bigint, resume bigint, first_position bigint, keyless bigint, count integer
) returns setof parley.taken_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if first_position - resume > 262144 and random() < 0.25 then
    if resume = low then
      perform parley._p_begin_later(queue.queue_id, lane, first_position);
    else
      perform parley._p_resume_later(queue.queue_id, lane);
    end if;
  end if;
  if parley._p_is_time_to_look_back(low, resume) then
    return query select * from parley._p_take_returned(queue, 5, low, 2000);
  elsif keyless is not null and random() < 0.9 then
    -- Keys in others' hands have a long backlog: one call in ten asks its first rows whether something is free.
    return query select * from parley._p_claim_without_key(lane, keyless, count, false);
  end if;
end
$$;

comment on function parley._p_look_back(parley._p_queue, integer, bigint, bigint, bigint, bigint, integer) is
'Records now and then where the next TAKE of the usual lane may begin, and takes a message that came back before that;
or most of the time, past a backlog of keys in others'' hands, what has no key.
Arguments: queue; lane; low and resume, where its rows and where scans begin; first_position, of the first row that the
scan found, null for none; keyless, where what has no key begins far behind a first row in others'' hands, null for no
such backlog; count, how many at most.
Errors: 9617.';

create function parley.take(
  queue text, count integer default 1, timeout integer default null,
  caller parley.caller default current_user
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
  loop
    -- With the first row of the usual lane: then one more statement is enough as a rule.
    select q as queue, f.* into v_scan from parley._p_queue as q
    left join lateral (
      select m.position, m.xmax as taker, l.lane, coalesce(h.low_position, 0) as low,
        greatest(h.low_position, h.resume_position, 0) as resume,
        parley._p_end_of_first_rows(m.position, m.xmax, m.endpoint_id, count) as before,
        case when h.keyless_position - m.position > 262144 and m.xmax <> '0' then h.keyless_position end as keyless
      from (select parley._p_lane(q.queue_id, 5) as lane) as l
      left join lateral parley._p_newest_hint(l.lane) as h on true
      left join lateral (
        select n.position, n.endpoint_id, n.xmax
        from parley._p_message as n
        where n.lane = l.lane and n.position >= greatest(h.low_position, h.resume_position, 0)
        order by n.position limit 1
      ) as m on true
    ) as f on true
    where q.lookup_name = queue;
    if not found then
      queue := (parley._p_find_queue(v_caller, queue)).lookup_name;
      continue;
    end if;
    v_queue := v_scan.queue;
    if pg_has_role(v_caller, v_queue.owner, 'usage') is not true or not v_queue.is_simple
      or not v_queue.is_receive_enabled or v_queue.poison_action = 'DISABLE_QUEUE'
      or count is null or count < 1 or count > 100000 or timeout < -1 then
      found := parley._p_require_takeable(v_caller, v_queue)
        and parley._p_require_range('count', count, 1, 100000) and parley._p_require_timeout(timeout);
    end if;
    exit when v_queue.readers_paused_at is not null and parley._p_is_paused(v_queue, coalesce(timeout, 0));
    v_wait.scanned_at := case when timeout <> 0 then clock_timestamp() end;
    v_wait.has_written := coalesce(v_wait.has_written, pg_current_xact_id_if_assigned() is not null);
    if v_queue.priorities = 32 and not (v_queue.has_deliveries or v_queue.is_limited)
      and (not v_queue.has_waits or not parley._p_has_due_wait(v_queue.queue_id))
      and (v_scan.taker = '0' or parley._p_is_running(v_scan.taker) and random() < 0.98) is not false
      and (v_scan.resume = v_scan.low or parley._p_is_first_held(v_scan.lane, v_scan.low)) is not false
      and (
        pg_sequence_last_value('parley._p_next_due') > extract(epoch from clock_timestamp()) * 1000000
        or timeout <> 0 and not parley._p_has_due_message(v_queue.queue_id)
      ) then
      if v_scan.position - v_scan.resume > 262144 or v_scan.resume > v_scan.low or v_scan.keyless is not null then
        return query select * from parley._p_look_back(
          v_queue, v_scan.lane, v_scan.low, v_scan.resume, v_scan.position, v_scan.keyless, count);
        get diagnostics v_taken = row_count;
        exit when v_taken > 0 or parley._p_is_take_over();
      end if;
      while v_scan.position is not null loop
        return query
        with picked as materialized (
          select row_id from parley._p_free_rows(v_scan.lane, v_scan.resume, v_scan.before, count - v_taken)
        )
        delete from parley._p_message as m using picked as p where m.ctid = p.row_id
        returning m.position, m.message_key, 5::smallint, m.body, m.enqueued_at, m.trace_context, 1;
        get diagnostics v_claimed = row_count;
        v_taken := v_taken + v_claimed;
        exit when v_claimed = 0 or v_taken = count;
      end loop;
      if v_taken < count and (v_scan.position is not null or v_scan.resume > v_scan.low) then
        return query
        select * from parley._p_take_rest(v_queue, 5, v_scan.low, v_scan.before, v_scan.keyless, count, v_taken);
        v_taken := v_taken + found::integer;
      end if;
    else
      return query select * from parley._p_take_within_limits(v_queue, count, timeout);
      get diagnostics v_taken = row_count;
    end if;
    exit when v_taken > 0 or coalesce(timeout, 0) = 0 or parley._p_has_unseen();
    v_wait := parley._p_wait_for_turn(v_queue, timeout, v_wait);
    exit when v_wait.is_over;
  end loop;
  found := v_wait.scanned_at is not null and parley._p_end_turns(v_wait.started_at is not null, v_taken);
end
$$;

comment on function parley.take(text, integer, integer, parley.caller) is
'Takes messages from a simple queue: removes them, in this transaction. A message that others have taken and not
committed is passed by. Messages come by priority and arrival, of one priority in a call, those of one key always in the
order in which they were put. A message that came back after a rollback is taken alone. In a queue with a retry policy
it is passed by for half a second, for a report (parley.retry), unless others came back with it; without a report it
waits from the second time on, and those behind it of its key with it. The call that makes it wait gives nothing:
commit, and call it again. After too many it is set aside: parley.set_aside_messages. A message whose wait is over is
taken alone, by turns with the others.
Arguments: queue; count, how many at most, 1 to 100,000; timeout in milliseconds to wait for a message (null or 0: do
not wait, -1: for ever).
It waits with its snapshot, as receive does: for more than some seconds wait with parley.wait_for_message. When it had
to move what is due, it gives nothing before its time: commit, and call it again.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, count or timeout out of range, 9609 malformed name,
9617 the queue is disabled.
Call it at READ COMMITTED: an older snapshot does not see what came later, and never waits.
Source: spec P32.';
