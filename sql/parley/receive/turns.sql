-- Turns: one of the sessions that wait for a queue watches it, and the others sleep until it is their turn.
--
-- A session that waits in RECEIVE, GET CONVERSATION GROUP or TAKE asks for the lock of the queue's turn, in a block
-- that gives it back however it ends. The session that has it asks by one cheap statement, again and again, whether
-- something is free; then it ends its turn and scans. So a message wakes the session that gets it and the next in line,
-- and not all of them, and eight sessions poll no more often than one. The statement reads rows and not the queue's
-- sequence: what is not committed wakes nobody, and a session that waits is not taken for a sender
-- (conversation/scan_hints.sql). Of a simple queue a row is free that nobody has taken; of another one, a row whose
-- group nobody holds. The xmax of the row says so, as to the queue monitors: a lock would have others skip the group.
-- RECEIVE of a named conversation or group waits for that alone, and so by itself (receive/wait_for_message.sql).
--
-- Invariants, and what keeps each:
--   a message is found whoever has the turn   no turn, and no wait for one, lasts longer than half a second, and all
--     scan after each: what came back, what is due, what stands between many rows of others, and that the queue was
--     disabled is found then. An outsider who holds the advisory lock has them scan twice a second.
--   nothing is held but the turn, and that by a session that waits for no other lock   the block is rolled back before
--     the session does anything else; waits for the lock end before the server would search for deadlocks or log them
--   a session that is cancelled or fails keeps no turn   the lock belongs to the block's subtransaction
--   what is free and cannot be had, as a row of a key or one that is being delivered, makes nobody spin   the session
--     that finds one and takes nothing sleeps twice as long before it asks again
-- It writes nothing, so the block takes no number of a transaction.
-- Cost: 50 microseconds for a turn, and as much for a poll of the one who has it, which is a sleep above all. With
-- eight sessions that work on 200 or 800 messages of a simple queue a second their backends spend two thirds of what
-- they spend when all of them poll.

create function parley._p_has_free_group(lane integer, from_position bigint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select
    from (
      (
        select n.endpoint_id, n.xmax as taker
        from parley._p_message as n
        where n.lane = _p_has_free_group.lane and n.position >= from_position
        order by n.position
        limit 32
      )
      union all
      -- The last rows are those that have just come, however many of others stand before them.
      (
        select n.endpoint_id, n.xmax as taker
        from parley._p_message as n
        where n.lane = _p_has_free_group.lane and n.position >= from_position
        order by n.position desc
        limit 32
      )
    ) as m
    join parley._p_endpoint as e
      on e.endpoint_id = m.endpoint_id
      and e.state <> 'DO'
      and (e.is_plain or parley._p_is_receivable(e.endpoint_id, e.group_id))
    join parley._p_conversation_group as g on g.group_id = e.group_id
    where (g.xmax = '0' or not parley._p_is_running(g.xmax))
      and (
        m.taker = '0'
        or parley._p_keeper(m.taker, parley._p_owner_of_lane(_p_has_free_group.lane)) is null
        and not parley._p_is_report_awaited(parley._p_owner_of_lane(_p_has_free_group.lane), m.taker)
      )
  );
end
$$;

comment on function parley._p_has_free_group(integer, bigint) is
'Reports whether a group that nobody holds has one of the first or of the last 32 messages of a lane. It locks nothing.
Arguments: lane; from_position, before which nothing waits.';

create function parley._p_watch_in_turn(queue parley._p_queue, until timestamptz, wait parley._p_wait)
returns parley._p_wait
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  v_lane constant integer := parley._p_lane(queue.queue_id, 5);
  v_low bigint;
  v_others integer[];
  v_now timestamptz := clock_timestamp();
  v_asked timestamptz;
  v_is_free boolean;
  v_quiet float8;
  -- The session that had the turn before takes at this moment what ended it.
  v_sleep float8 := 0.0003 * (1 << wait.lost);
begin
  -- A scan finds what the hint names before that, once it is free again.
  v_low := coalesce(
    (select greatest(h.low_position, h.resume_position) from parley._p_newest_hint(v_lane) as h), 0
  );
  if queue.priorities <> 32 then
    v_others := array(
      select parley._p_lane(queue.queue_id, p.n)
      from generate_series(1, 10) as p (n)
      where queue.priorities & (1 << p.n) > 0 and p.n <> 5
    );
  end if;
  loop
    v_sleep := least(v_sleep, extract(epoch from until - v_now));
    exit when v_sleep <= 0;
    found := pg_sleep(v_sleep) is null;
    v_asked := clock_timestamp();
    v_is_free := exists (
      select
      from parley._p_message as m
      where m.lane = v_lane and m.position >= v_low and (m.xmax = '0' or not queue.is_simple)
    ) and (queue.is_simple or parley._p_has_free_group(v_lane, v_low));
    if not v_is_free and v_others is not null then
      v_is_free := exists (
        select
        from unnest(v_others) as l (lane)
        cross join lateral (
          select coalesce(max(greatest(h.low_position, h.resume_position)), 0) as low
          from parley._p_newest_hint(l.lane) as h
        ) as h
        where case
            when not queue.is_simple then parley._p_has_free_group(l.lane, h.low)
            else exists (
              select from parley._p_message as m where m.lane = l.lane and m.position >= h.low and m.xmax = '0'
            )
          end
      );
    end if;
    v_now := clock_timestamp();
    if v_is_free then
      wait.lost := least(wait.lost + 1, 8);
      wait.sent_at := v_now;
      exit;
    end if;
    wait.lost := 0;
    v_quiet := extract(epoch from v_now - wait.seen_at);
    v_sleep := greatest(
      0.001, least(v_quiet / 16, greatest(v_quiet / 200, 0.01), 0.025), 2 * extract(epoch from v_now - v_asked)
    );
  end loop;
  return wait;
end
$$;

comment on function parley._p_watch_in_turn(parley._p_queue, timestamptz, parley._p_wait) is
'Polls a queue until a message in it is free, or a group with messages, or until a time. The caller has the turn. A
message that waits behind another of its key, or that a limit holds back, counts as free.';

create function parley._p_wait_for_turn(queue parley._p_queue, timeout integer, wait parley._p_wait)
returns parley._p_wait
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := clock_timestamp();
  v_end timestamptz;
  v_until timestamptz;
begin
  wait.is_over := true;
  -- As in _p_wait_for_message.
  if parley._p_keeps_snapshot() or not wait.has_written and pg_current_xact_id_if_assigned() is not null then
    return wait;
  end if;
  if current_setting('client_connection_check_interval') = '0' then
    perform parley._p_check_client();
  end if;
  wait.lost := coalesce(wait.lost, 0);
  wait.started_at := coalesce(wait.started_at, wait.scanned_at);
  wait.seen_at := coalesce(wait.sent_at, wait.started_at);
  v_end := case
    when timeout < 0 then 'infinity'
    else wait.started_at + make_interval(secs => timeout / 1000.0)
  end;
  if v_now >= v_end then
    perform set_config('parley.unwatched', '', true);
    return wait;
  end if;
  wait.is_over := false;
  v_until := least(v_end, v_now + least(greatest((v_now - wait.seen_at) / 10, interval '100 ms'), interval '500 ms'));
  begin
    if not pg_try_advisory_xact_lock(hashtextextended('parley turn', queue.queue_id)) then
      perform set_config(
        'lock_timeout',
        greatest(
          1,
          1000 * least(
            -- The one who has the turn scans sooner, for all.
            extract(epoch from least(v_end, v_now + interval '500 ms') - v_now),
            extract(epoch from current_setting('deadlock_timeout')::interval) / 2
          )
        )::integer::text,
        true
      );
      perform pg_advisory_xact_lock(hashtextextended('parley turn', queue.queue_id));
      -- A turn has ended, for a message as a rule.
      wait.seen_at := clock_timestamp();
      v_until := least(v_end, wait.seen_at + (v_until - v_now));
    end if;
    wait := parley._p_watch_in_turn(queue, v_until, wait);
    raise exception 'the turn is over' using errcode = 'PB004';
  exception
    when lock_not_available or sqlstate 'PB004' then
      return wait;
  end;
end
$$;

comment on function parley._p_wait_for_turn(parley._p_queue, integer, parley._p_wait) is
'Waits until it is this session''s turn to watch a queue, and then until a message is there, the time is over, or
half a second has passed. It gives how it has waited.
Arguments: queue, as it was read last; timeout in milliseconds, negative for ever; wait, as it was.';

create function parley._p_wait_in_receive(
  queue parley._p_queue, is_named boolean, timeout integer, wait parley._p_wait
) returns parley._p_wait
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if is_named then
    return parley._p_wait_for_message(queue.position_sequence, timeout, wait);
  end if;
  return parley._p_wait_for_turn(queue, timeout, wait);
end
$$;

comment on function parley._p_wait_in_receive(parley._p_queue, boolean, integer, parley._p_wait) is
'Waits in RECEIVE: by turns, or alone where it is of a named conversation or group.
Arguments: those of _p_wait_for_turn; is_named.';
