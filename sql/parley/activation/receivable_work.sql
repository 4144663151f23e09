-- For the queue monitors of the daemon: in which queues can messages be received, by how many readers at once.
--
-- The question must not disturb the readers it is asked for. A scan that locked groups, even for an instant, would make
-- a RECEIVE skip them. So it reads the xmax of the group's row instead, where the lock of the row is recorded.
-- pg_xact_status shows whether that transaction is still running (pg_locks does not know all subtransactions, a
-- snapshot knows none). Rows of groups are always locked FOR UPDATE, so xmax is always one transaction. A message that
-- has come back from a savepoint may be kept by its reader (receive/savepoints.sql): its first one says that of a
-- group. One whose report is awaited (conversation/awaited_reports.sql) is not free either.
-- A group or message that is being delivered to a web address has a claim (conversation/delivery_claims.sql).
-- The answer is old when it arrives; a reader too many finds nothing and leaves.
-- Cost: an index probe for each queue without messages; for others the first rows of the lane, rows_max of them
-- at most. No lock, no write.

create function parley._p_free_messages(
  lane integer, from_position bigint, messages_max integer, rows_max integer,
  out groups integer, out head bigint, out rows bigint
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_running xid[];
begin
  -- A session that has claimed a row and still runs is in its xmax, too. Asked once for each, however many rows it
  -- holds.
  v_running := parley._p_running(array(
    select distinct n.taker
    from (
      select m.xmax as taker
      from parley._p_message as m
      where m.lane = _p_free_messages.lane and m.position >= from_position
      order by m.position
      limit rows_max
    ) as n
    where n.taker <> '0'
  ));
  with scanned as materialized (
    select n.position, n.endpoint_id, n.xmax as taker
    from parley._p_message as n
    where n.lane = _p_free_messages.lane and n.position >= from_position
    order by n.position
    limit rows_max
  )
  select count(*), min(f.position), (select count(*) from scanned as s) into groups, head, rows
  from (
    select m.position
    from scanned as m
    where m.taker <> all (v_running)
      and (
        m.taker = '0'
        or not parley._p_is_report_awaited(parley._p_owner_of_lane(_p_free_messages.lane), m.taker)
      )
      and not parley._p_is_message_claimed(parley._p_owner_of_lane(_p_free_messages.lane), m.position)
      and parley._p_is_first_of_key(parley._p_owner_of_lane(_p_free_messages.lane), m.endpoint_id, m.position)
    order by m.position
    limit messages_max
  ) as f;
end
$$;

comment on function parley._p_free_messages(integer, bigint, integer, integer) is
'Gives how many messages of a lane of a simple queue nobody has taken, up to a number, the position of the first, and
how many rows were scanned.
Arguments: lane; from_position, where to begin; messages_max, up to how many are of interest; rows_max, how many rows to
scan.';

create function parley._p_free_groups(
  lane integer, low bigint, resume bigint, blocked_endpoints bigint[], blocked_positions bigint[], rows_max integer,
  out groups integer, out head bigint, out rows bigint
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  select count(*) filter (where w.is_free), min(w.first) filter (where w.is_free),
    coalesce(sum(w.rows), 0)
  into groups, head, rows
  from (
    select f.first, f.rows,
      not parley._p_is_running(g.xmax)
        and (
          f.taker = '0'
          or parley._p_keeper(f.taker, parley._p_owner_of_lane(_p_free_groups.lane)) is null
          and not parley._p_is_report_awaited(parley._p_owner_of_lane(_p_free_groups.lane), f.taker)
        ) as is_free
    from (
      select e.group_id, min(m.position) as first, count(*) as rows,
        (array_agg(m.taker order by m.position))[1] as taker
      from (
        select n.endpoint_id, n.position, n.xmax as taker
        from parley._p_message as n
        where n.lane = _p_free_groups.lane and n.position >= greatest(low, resume)
        order by n.position
        limit rows_max
      ) as m
      join parley._p_endpoint as e
        on e.endpoint_id = m.endpoint_id and e.state <> 'DO'
        and (e.is_plain or parley._p_is_receivable(e.endpoint_id, e.group_id))
      group by e.group_id
      union all
      -- Groups that were locked when a reader passed them by.
      select e.group_id, min(n.position), 0, (array_agg(n.taker order by n.position))[1]
      from unnest(blocked_endpoints, blocked_positions) as b (endpoint_id, position)
      join parley._p_endpoint as e
        on e.endpoint_id = b.endpoint_id and e.state <> 'DO'
        and (e.is_plain or parley._p_is_receivable(e.endpoint_id, e.group_id))
      cross join lateral (
        select m.position, m.lane, m.xmax as taker
        from parley._p_message as m
        where m.endpoint_id = e.endpoint_id and m.position >= greatest(b.position, low)
        order by m.position
        limit 1
      ) as n
      where n.position < resume and n.lane = _p_free_groups.lane
      group by e.group_id
    ) as f
    join parley._p_conversation_group as g on g.group_id = f.group_id
  ) as w;
end
$$;

comment on function parley._p_free_groups(integer, bigint, bigint, bigint[], bigint[], integer) is
'Gives how many groups with messages in a lane no reader holds, the position of the first such message, and how many
rows were scanned.
Arguments: lane; low, resume, blocked_endpoints and blocked_positions, of the hint about it; rows_max, how many rows to
scan.';

create function parley._p_receivable(queue_ids integer[], readers_max integer[], rows_max integer)
returns table (queue_id integer, groups integer, head bigint, is_partial boolean)
language plpgsql stable rows 10
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_lane record;
  v_found record;
  v_given integer[] := '{}'::integer[];
begin
  for v_lane in
    select q.queue_id, q.is_simple, a.lane, w.readers_max, h.blocked_endpoints, h.blocked_positions,
      coalesce(h.low_position, 0) as low, coalesce(h.resume_position, 0) as resume
    from unnest(_p_receivable.queue_ids, _p_receivable.readers_max) as w (queue_id, readers_max)
    join parley._p_queue as q on q.queue_id = w.queue_id
    cross join lateral (
      -- The usual case, one priority, needs no series.
      select parley._p_lane(q.queue_id, 5) as lane where q.priorities = 32
      union all
      select parley._p_lane(q.queue_id, p.n) from generate_series(10, 1, -1) as p (n)
      where q.priorities <> 32 and q.priorities & (1 << p.n) > 0
    ) as a
    left join lateral parley._p_newest_hint(a.lane) as h on true
    where q.is_receive_enabled
      and exists (
        select from parley._p_message as m where m.lane = a.lane and m.position >= coalesce(h.low_position, 0)
      )
    order by q.queue_id, a.lane
  loop
    -- Not among the conditions above: it would be asked for each queue that is empty too.
    continue when parley._p_is_poisoned(v_lane.queue_id);
    if queue_id is distinct from v_lane.queue_id then
      if groups > 0 or is_partial then
        v_given := v_given || queue_id;
        return next;
      end if;
      queue_id := v_lane.queue_id;
      groups := 0;
      head := null;
      is_partial := false;
    end if;
    continue when groups >= v_lane.readers_max;
    if v_lane.is_simple then
      v_found := parley._p_free_messages(v_lane.lane, v_lane.low, v_lane.readers_max - groups, rows_max);
    else
      v_found := parley._p_free_groups(
        v_lane.lane, v_lane.low, v_lane.resume, v_lane.blocked_endpoints, v_lane.blocked_positions, rows_max
      );
    end if;
    groups := groups + v_found.groups;
    head := coalesce(head, v_found.head);
    is_partial := is_partial or v_found.rows >= rows_max;
  end loop;
  if groups > 0 or is_partial then
    v_given := v_given || queue_id;
    return next;
  end if;
  -- Readers take what has waited by turns with the rest, so it counts where there is no rest.
  return query
  select w.queue_id, d.messages, d.head, false
  from unnest(_p_receivable.queue_ids, _p_receivable.readers_max) as w (queue_id, readers_max)
  join parley._p_queue as q on q.queue_id = w.queue_id and q.has_waits and q.is_receive_enabled
  cross join lateral parley._p_count_due_waits(w.queue_id, w.readers_max) as d
  where d.messages > 0 and w.queue_id <> all (v_given);
end
$$;

comment on function parley._p_receivable(integer[], integer[], integer) is
'Shows in which of some queues messages can be received that no reader holds: how many groups have such messages, up to
a number; the position of the first of them; and whether the scan ended at rows_max rows, so that there may be more.
Queues without any are left out.
Arguments: queue_ids; readers_max, how many groups are of interest in each; rows_max, how
many rows to scan in each lane.';

create function parley._p_ask_for_wakeups(queue_ids integer[], seconds integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_until bigint := extract(epoch from clock_timestamp())::bigint + seconds;
begin
  perform set_config('synchronous_commit', 'off', true);
  perform setval(q.wakeup_sequence, parley._p_wakeup_until(q, v_until))
  from parley._p_queue as q
  where q.queue_id = any (queue_ids) and coalesce(pg_sequence_last_value(q.wakeup_sequence), 0) < v_until;
end
$$;

comment on function parley._p_ask_for_wakeups(integer[], integer) is
'Asks the senders to some queues to notify channel parley for so many seconds, unless they do so for longer already.
Not for hundreds of queues in one transaction: it holds a lock on a sequence for each.';

create function parley._p_cancel_wakeups(queue_ids integer[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('synchronous_commit', 'off', true);
  -- SEND asks for the quota of a queue where this is odd.
  perform setval(q.wakeup_sequence, parley._p_wakeup_until(q, 0))
  from parley._p_queue as q
  where q.queue_id = any (queue_ids);
end
$$;

comment on function parley._p_cancel_wakeups(integer[]) is
'Cancels the wake-ups of some queues: readers are at work, and a notification for each message would only slow both
sides down. Others who wait there ask again within seconds (parley.listen_for_messages).';
