-- GET CONVERSATION GROUP for many groups: they are locked first, and then received from one by one.
--
-- RECEIVE from many groups deletes what it takes in one statement, which can only be undone as a whole. A caller that
-- wants to give back one group of many locks them here, and receives from each by name behind a savepoint of its own.
-- Going back to it gives back the messages of that group alone, and no lock, as all were taken before.
--
-- Free and in order are the same as for RECEIVE. Groups that have come back from a rollback are among them, and so are
-- groups of several conversations, because each is received by itself. When nothing is free among the first rows of the
-- lanes, _p_lock_next_group searches the rest, and moves what is set aside out of the way.
-- Locks: group rows, skipping locked ones, kept to the end of the transaction. Cost: two statements for each priority,
-- which read the first rows of its lane.

create function parley._p_lock_groups_of_lane(
  hint parley._p_scan_hint, without bigint[], groups_max integer, out groups bigint[], out head_position bigint
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  select array_agg(h.group_id order by h.position), min(h.position) into groups, head_position
  from (
    select f.group_id, f.position
    from (
      select e.group_id, min(m.position) as position, (array_agg(m.taker order by m.position))[1] as taker,
        (array_agg(m.endpoint_id order by m.position))[1] as endpoint_id
      from (
        (
          select n.endpoint_id, n.position, n.xmax as taker
          from parley._p_message as n
          where n.lane = hint.lane and n.position >= greatest(hint.low_position, hint.resume_position)
          order by n.position
          limit 1000 + 4 * groups_max
        )
        union all
        -- The group that the hint names was locked when it was written.
        select b.endpoint_id, k.position, k.taker
        from unnest(hint.blocked_endpoints, hint.blocked_positions) as b (endpoint_id, position)
        cross join lateral (
          select n.position, n.lane, n.xmax as taker
          from parley._p_message as n
          where n.endpoint_id = b.endpoint_id
            and n.position >= greatest(b.position, hint.low_position)
            and n.position < hint.resume_position
          order by n.position
          limit 1
        ) as k
        where k.lane = hint.lane
      ) as m
      join parley._p_endpoint as e
        on e.endpoint_id = m.endpoint_id
        and e.state <> 'DO'
        and (e.is_plain or parley._p_is_receivable(e.endpoint_id, e.group_id))
      where e.group_id <> all (without)
      group by e.group_id
    ) as f
    join parley._p_conversation_group as g on g.group_id = f.group_id
    where f.taker = '0' or not parley._p_is_kept(f.taker, hint.lane, f.endpoint_id, f.position)
    order by f.position
    limit groups_max
    for update of g skip locked
  ) as h;
end
$$;

comment on function parley._p_lock_groups_of_lane(parley._p_scan_hint, bigint[], integer) is
'Locks the groups of the first rows of a lane whose groups nobody else has locked, and gives them in their order, with
the position of the first row.
Arguments: hint of the lane; without, groups that are not wanted; groups_max, at most so many.';

create function parley._p_has_messages(group_id bigint, hint parley._p_scan_hint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select
    from parley._p_endpoint as e
    cross join lateral (
      select n.lane
      from parley._p_message as n
      where n.endpoint_id = e.endpoint_id and n.position >= parley._p_begin_of(hint, e.endpoint_id)
      order by n.position
      limit 1
    ) as m
    where e.group_id = _p_has_messages.group_id and e.state <> 'DO' and m.lane = hint.lane
      and (e.is_plain or parley._p_is_receivable(e.endpoint_id, e.group_id))
  );
end
$$;

comment on function parley._p_has_messages(bigint, parley._p_scan_hint) is
'Reports whether a group has a message in the lane of a hint that can be received.';

create function parley._p_lock_groups(queue parley._p_queue, groups_max integer) returns uuid[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane integer;
  v_hint parley._p_scan_hint;
  v_found record;
  v_ahead bigint;
  v_group_ids uuid[];
  v_locked bigint[] := array[]::bigint[];
  v_all uuid[] := array[]::uuid[];
begin
  for v_lane in
    select parley._p_lane(queue.queue_id, p.n)
    from generate_series(10, 1, -1) as p (n)
    where queue.priorities & (1 << p.n) > 0
  loop
    select * into v_hint from parley._p_newest_hint(v_lane) as h;
    v_hint.lane := v_lane;
    v_hint.low_position := coalesce(v_hint.low_position, 0);
    v_found := parley._p_lock_groups_of_lane(v_hint, v_locked, groups_max - cardinality(v_locked));
    continue when v_found.groups is null;
    -- As in RECEIVE: not all readers at once.
    v_ahead := v_found.head_position - greatest(v_hint.low_position, v_hint.resume_position);
    if v_ahead > 524288 or v_ahead > 65536 and (v_found.head_position >> 10) % 16 = pg_backend_pid() % 16 then
      perform parley._p_renew_hint(queue.queue_id, v_lane, v_found.head_position, v_hint);
    end if;
    -- Between the scan and the locks others may have received all of it, or MOVE may have come.
    select array_agg(g.conversation_group_id order by u.number) into v_group_ids
    from unnest(v_found.groups) with ordinality as u (group_id, number)
    join parley._p_conversation_group as g on g.group_id = u.group_id
    where parley._p_has_messages(g.group_id, v_hint);
    v_all := v_all || v_group_ids;
    v_locked := v_locked || v_found.groups;
    exit when cardinality(v_locked) >= groups_max;
  end loop;
  if cardinality(v_all) < cardinality(v_locked) then
    perform parley._p_record_unseen();
  end if;
  if cardinality(v_all) = 0 then
    select array_agg(g.conversation_group_id) into v_all
    from parley._p_lock_next_group(queue.queue_id, queue.priorities) as l
    join parley._p_conversation_group as g on g.group_id = l.group_id;
  end if;
  return v_all;
end
$$;

comment on function parley._p_lock_groups(parley._p_queue, integer) is
'Locks the first groups of a queue that have messages and that nobody else has locked, by priority and arrival, and
gives their ids; null when there is none.
Arguments: queue; groups_max, at most so many.
Source: spec 4.4.';

create function parley.get_conversation_groups(
  queue text, groups integer, timeout integer default null,
  caller parley.caller default parley.current_caller()
) returns setof uuid
language plpgsql security definer rows 100
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue;
  v_group_ids uuid[];
  v_has_fired boolean;
  v_wait parley._p_wait;
begin
  loop
    v_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
    found := parley._p_require_receivable(v_caller, v_queue);
    found := parley._p_require_groups(groups, false);
    found := parley._p_require_timeout(timeout);
    exit when parley._p_is_paused(v_queue, coalesce(timeout, 0));
    if coalesce(timeout, 0) <> 0 then
      v_wait := parley._p_begin_scan(null, timeout, v_wait);
    end if;
    v_has_fired := (coalesce(timeout, 0) = 0 or parley._p_has_due_alarm(v_queue.queue_id))
      and parley._p_fire_alarms(v_queue.queue_id, 8) > 0;
    v_group_ids := parley._p_lock_groups(v_queue, groups);
    exit when v_group_ids is not null
      or coalesce(timeout, 0) = 0 or parley._p_has_unseen() or v_has_fired;
    v_wait := parley._p_wait_for_turn(v_queue, timeout, v_wait);
    exit when v_wait.is_over;
  end loop;
  return query select unnest(v_group_ids);
end
$$;

comment on function parley.get_conversation_groups(text, integer, integer, parley.caller) is
'Locks the next groups that have messages, to the end of the transaction, and returns their ids, in the order in which
RECEIVE would take them; nothing when there is none. Receive from each by its id, behind a savepoint of its own: who
goes back to that gives back the messages of this group and keeps all the locks.
Arguments: queue; groups, at most so many, 1 to 10,000; timeout in milliseconds (null or 0: do not wait, -1: for ever);
like receive it returns nothing before its time when there is something to commit. It may lock fewer than there are:
it scans the first rows of each priority, a thousand and four for each group.
Errors: 208 no such queue, 229 not allowed, 8402 groups out of range, timeout negative and not -1, 9609 malformed
name, 9617 the queue is disabled.
Source: spec 4.4.';
