-- Figures of all queues at once, for counters and metrics.
--
-- Nothing is counted for them when messages are sent or received. How many rows were ever put on a queue is the last
-- number of its position sequence, which SEND draws anyway; how many are gone is that less those that wait. A row is a
-- message, or a frame of up to 1,000 messages that were sent in one batch: rows, not messages, are what these two
-- numbers count. A send that rolled back has drawn its number too, and after a crash of the server up to 32 numbers of
-- a sequence are passed over.
-- Cost: one read of each sequence, and for each queue one index range of at most 1,000 rows; some 10 ms
-- for each queue that is longer.

create function parley._p_queue_figures()
returns table (
  queue_id integer,
  enqueued_rows bigint,
  waiting_rows bigint,
  waiting_messages bigint,
  is_estimated boolean,
  oldest_enqueue_time timestamptz
)
language sql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  with drawn as (
    select d.value, d.number
    from unnest(
      parley._p_last_values((select array_agg(q.position_sequence order by q.queue_id) from parley._p_queue as q))
    ) with ordinality as d (value, number)
  ), counted as materialized (
    select k.queue_id, d.value as enqueued_rows, w.rows, w.messages, w.oldest, w.longest
    from (
      select q.queue_id, q.priorities, q.disabled_position, row_number() over (order by q.queue_id) as number
      from parley._p_queue as q
    ) as k
    join drawn as d using (number)
    cross join lateral (
      select sum(c.rows)::bigint as rows, sum(c.messages)::bigint as messages, min(c.oldest) as oldest,
        max(c.rows) as longest
      from generate_series(1, 10) as p (n)
      left join lateral parley._p_newest_hint(parley._p_lane(k.queue_id, p.n)) as h on true
      cross join lateral parley._p_count_messages(
        parley._p_lane(k.queue_id, p.n), coalesce(h.low_position, 0), k.disabled_position, 1000
      ) as c
      where k.priorities & (1 << p.n) > 0
    ) as w
  ), long as materialized (
    select c.queue_id, l.messages, l.is_estimated
    from (select o.queue_id from counted as o where o.longest >= 1000) as c
    join parley._p_queue as q using (queue_id)
    cross join lateral parley._p_backlog(q, 0, q.disabled_position) as l
  )
  select c.queue_id, c.enqueued_rows,
    case
      when c.longest < 1000 then c.rows
      else least(c.enqueued_rows, (c.rows * b.messages::numeric / greatest(c.messages, 1))::bigint)
    end,
    case when c.longest < 1000 then c.messages else b.messages end,
    c.longest >= 1000 and b.is_estimated,
    c.oldest
  from counted as c
  left join long as b using (queue_id)
$$;

comment on function parley._p_queue_figures() is
'Gives for each queue how many rows were ever put on it, how many wait, and since when; of long queues these are
estimates, see views/queue_depth.sql.';

create function parley._p_count_up_to(relation regclass, rows_max integer) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rows bigint;
begin
  execute format('select count(*) from (select from %s limit %s) as r', relation, rows_max) into v_rows;
  if v_rows = rows_max then
    v_rows := (select greatest(c.reltuples, rows_max) from pg_class as c where c.oid = relation)::bigint;
  end if;
  return v_rows;
end
$$;

comment on function parley._p_count_up_to(regclass, integer) is
'Counts the rows of a table, and where there are more than so many takes the estimate of ANALYZE.';
