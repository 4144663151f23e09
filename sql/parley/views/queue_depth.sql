-- How many messages wait in a queue, however long it is.
--
-- No function keeps a counter (conversation/messages.sql), so a short lane is counted and a long one estimated.
-- Positions make that easy: every row has taken a number of the queue's sequence, so the lane is a line of known
-- length. Unknown is where rows are left on it: rows that were received or rolled back or went into other lanes are
-- gaps, and a frame is many messages. Short windows are read all along the line, more of them towards its end, because
-- queues empty at the front and fill at the end. Windows are found through the index, so the cost depends neither on
-- what waits nor on what has been received before. They stand on a grid and are drawn by hashing, so that what does not
-- move does not flicker, and two estimates after each other compare.
--
-- Error: none where every row is there and all are alike; a few percent where rows are missing at random or frames
-- differ (docs/internals/measurements.md). Two ways were tried and dropped: a second read where windows differ most,
-- which leans to the low side; PostgreSQL's own statistics, which are as old as the last analyze.
-- Cost: some 2,500 index probes for a lane that is estimated, about 10 ms in memory. Nothing is locked.

create function parley._p_backlog(
  queue parley._p_queue, from_position bigint, up_to_position bigint,
  out messages bigint, out is_estimated boolean, out oldest_enqueue_time timestamptz
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_lane integer;
  v_low bigint;
  v_seen record;
  v_rest record;
begin
  messages := 0;
  is_estimated := false;
  for v_lane in
    select parley._p_lane(queue.queue_id, p.n)
    from generate_series(10, 1, -1) as p (n)
    where queue.priorities & (1 << p.n) > 0
  loop
    select h.low_position into v_low from parley._p_newest_hint(v_lane) as h;
    v_low := greatest(from_position, coalesce(v_low, 0));
    v_seen := parley._p_count_messages(v_lane, v_low, up_to_position, 1000);
    oldest_enqueue_time := least(oldest_enqueue_time, v_seen.oldest);
    messages := messages + v_seen.messages;
    if v_seen.rows = 1000 then
      -- Only now: a read of the sequence leaves a lock, one of which for each of a thousand queues would be too many.
      v_rest := parley._p_estimate_messages(
        v_lane, v_seen.last + 1,
        least(up_to_position, (coalesce(parley._p_last_position(queue.position_sequence), 0) + 1) * 1024)
      );
      if v_rest.rows < 10000 then
        v_rest := parley._p_count_messages(v_lane, v_seen.last + 1, up_to_position, 20000);
        is_estimated := is_estimated or v_rest.rows = 20000;
      else
        is_estimated := true;
      end if;
      messages := messages + v_rest.messages;
    end if;
  end loop;
end
$$;

comment on function parley._p_backlog(parley._p_queue, bigint, bigint) is
'Gives how much stands in a queue from one position up to another (null: to the end): counted up to some 10,000
rows a lane, estimated beyond.';

create function parley._p_count_delayed(queue_id integer) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  select (
    select count(*)
    from (select from parley._p_delayed_message as d where d.queue_id = $1 limit 100000) as m
  ) + (
    select count(*)
    from (
      select
      from parley._p_delayed_send as d
      join parley._p_endpoint as e on e.endpoint_id = d.endpoint_id and e.state in ('CO', 'DO')
      where d.far_queue_id = $1 and d.message_type_id <> 2
      limit 100000
    ) as s
  )
$$;

comment on function parley._p_count_delayed(integer) is
'Counts the messages that will come to a queue and are not due yet, up to some 100,000.';

create function parley._p_count_messages(
  lane integer, from_position bigint, up_to_position bigint, rows_max integer,
  out rows bigint, out messages bigint, out last bigint, out oldest timestamptz
)
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  -- A message that arrives at a side that has ended is never received; one probe an endpoint shows it.
  select coalesce(sum(c.rows), 0)::bigint,
    coalesce(sum(c.messages) filter (where e.state is distinct from 'DO'), 0)::bigint,
    max(c.last),
    min(c.oldest) filter (where e.state is distinct from 'DO')
  from (
    select w.endpoint_id, count(*) as rows, sum(w.messages) as messages, max(w.position) as last,
      min(w.enqueued_at) as oldest
    from (
      select m.endpoint_id, m.position, coalesce(cardinality(m.frame), 1) as messages, m.enqueued_at
      from parley._p_message as m
      where m.lane = $1 and m.position >= from_position and m.position < coalesce(up_to_position, 9223372036854775807)
      order by m.position
      limit rows_max
    ) as w
    group by w.endpoint_id
  ) as c
  left join parley._p_endpoint as e using (endpoint_id)
$$;

comment on function parley._p_count_messages(integer, bigint, bigint, integer) is
'Counts the first rows of a lane from one position up to another (null: to the end), and the messages in them.';

create function parley._p_estimate_messages(
  lane integer, from_position bigint, up_to_position bigint, out rows bigint, out messages bigint
)
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
  with line as (
    -- In numbers of the sequence; the grid has 1,024 to 2,048 lines, each a multiple of 2 ^ scale.
    select n.first, n.last, greatest(0, floor(log(2, greatest(1, n.last - n.first)::numeric))::integer - 10) as scale
    from (select from_position / 1024 as first, (up_to_position + 1023) / 1024 as last) as n
    where n.last > n.first
  ), strata as (
    select b.low, lead(b.low, 1, b.last) over (order by b.low) - b.low as width
    from (
      select l.first as low, l.last from line as l
      union
      select g.low, l.last
      from line as l
      cross join generate_series((l.first >> l.scale) + 1, l.last >> l.scale) as i (number)
      cross join lateral (select i.number << l.scale as low) as g
      union
      -- The last 64 lines of each finer grid.
      select g.low, l.last
      from line as l
      cross join generate_series(greatest(0, l.scale - 16), l.scale - 1) as f (scale)
      cross join generate_series(0, 63) as i (number)
      cross join lateral (select ((l.last >> f.scale) - i.number) << f.scale as low) as g
    ) as b
    cross join line as l
    where b.low >= l.first and b.low < l.last
  ), windows as materialized (
    select s.width, t.taken,
      (s.low + (hashint8extended(s.low, 1) & 9223372036854775807) % (s.width - t.taken + 1)) * 1024 as position
    from strata as s
    cross join lateral (select least(s.width, 2) as taken) as t
  )
  select coalesce(sum(w.width * m.rows / w.taken), 0)::bigint, coalesce(sum(w.width * m.messages / w.taken), 0)::bigint
  from windows as w
  cross join lateral (
    select count(*)::double precision as rows, sum(coalesce(cardinality(n.frame), 1))::double precision as messages
    from parley._p_message as n
    where n.lane = $1 and n.position >= w.position and n.position < w.position + w.taken * 1024
  ) as m
$$;

comment on function parley._p_estimate_messages(integer, bigint, bigint) is
'Estimates how many rows and messages stand in a lane from one position up to another, from samples.';
