-- The activity of the queues and of the conversations at their heads: for screens that poll.
--
-- Reading locks nothing and takes nothing. The holder of a group stands in its row: nothing in it ever changes, so
-- xmax is the last transaction that has locked it, and pg_locks shows which session a running transaction belongs to
-- (views/lock_holders.sql). Only the first rows of each queue are read, so a lock on a conversation far behind does not
-- show here.
-- Cost: for each queue that of its depth (views/queue_depth.sql), and the first 100 rows of each lane.

create function parley._p_head_conversations(queue_ids integer[], rows_max integer)
returns table (
  queue_id integer, endpoint_id bigint, group_id bigint, "position" bigint, oldest timestamptz, is_locked boolean,
  locked_by integer, locked_by_prepared text, locked_by_one_of integer[], claimed_by text, claimed_at timestamptz
)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_heads record;
begin
  select array_agg(f.queue_id) as queue_ids, array_agg(f.endpoint_id) as endpoint_ids,
    array_agg(f.group_id) as group_ids, array_agg(f.position) as positions, array_agg(f.oldest) as oldest,
    array_agg(f.holder) as holders
  into v_heads
  from (
    select h.queue_id, h.endpoint_id, e.group_id, h.position, h.oldest, g.xmax as holder
    from (
      select q.queue_id, m.endpoint_id, min(m.position) as position, min(m.enqueued_at) as oldest
      from parley._p_queue as q
      cross join generate_series(1, 10) as p (n)
      left join lateral parley._p_newest_hint(parley._p_lane(q.queue_id, p.n)) as h on true
      cross join lateral (
        select r.endpoint_id, r.position, r.enqueued_at
        from parley._p_message as r
        where r.lane = parley._p_lane(q.queue_id, p.n) and r.position >= coalesce(h.low_position, 0)
        order by r.position
        limit _p_head_conversations.rows_max
      ) as m
      where q.queue_id = any (_p_head_conversations.queue_ids) and q.priorities & (1 << p.n) > 0
      group by q.queue_id, m.endpoint_id
    ) as h
    join parley._p_endpoint as e on e.endpoint_id = h.endpoint_id and e.state <> 'DO'
    join parley._p_conversation_group as g on g.group_id = e.group_id
  ) as f;
  -- In a statement of its own, after the rows: a transaction that has begun since the locks were read would have no
  -- session.
  return query
  select h.queue_id, h.endpoint_id, h.group_id, h.position, h.oldest,
    o.transaction_id is not null or c.group_id is not null, o.pid, o.prepared, o.candidates, c.claimed_by, c.claimed_at
  from unnest(
    v_heads.queue_ids, v_heads.endpoint_ids, v_heads.group_ids, v_heads.positions, v_heads.oldest, v_heads.holders
  ) as h (queue_id, endpoint_id, group_id, position, oldest, holder)
  left join parley._p_lock_holders(
    array(select distinct x.holder from unnest(v_heads.holders) as x (holder) where x.holder <> '0')
  ) as o on o.transaction_id = h.holder
  left join parley._p_delivery_claim as c on c.group_id = h.group_id and c.leased_until > clock_timestamp();
end
$$;

comment on function parley._p_head_conversations(integer[], integer) is
'Gives the conversations that the first rows of some queues belong to, and who has them locked, as _p_lock_holders
gives it, or claimed for a delivery.
Arguments: queue_ids; rows_max, how many rows of each lane to read.';

create function parley.queue_activity(caller parley.caller default parley.current_caller()) returns table (
  queue_name text,
  service_queue_id integer,
  status text,
  readers_paused_at timestamptz,
  waiting_messages bigint,
  is_estimated boolean,
  held_messages bigint,
  delayed_messages bigint,
  oldest_enqueue_time timestamptz,
  enqueued_rows bigint,
  messages_per_row double precision,
  max_readers integer,
  running_readers integer,
  failures integer,
  last_error text,
  locked_groups integer,
  lock_holders integer[]
)
language sql volatile security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
  with mine as materialized (
    select q.queue_id, q, row_number() over (order by q.queue_id) as number
    from parley._p_queues_to_receive_from(parley._p_caller(caller)) as q
  ), drawn as materialized (
    select d.value, d.number
    from unnest(
      parley._p_last_values((select array_agg((m.q).position_sequence order by m.queue_id) from mine as m))
    ) with ordinality as d (value, number)
  ), locked as materialized (
    select h.queue_id, count(distinct h.group_id)::integer as groups,
      coalesce(array_agg(distinct h.locked_by) filter (where h.locked_by is not null), '{}') as holders
    from parley._p_head_conversations((select array_agg(m.queue_id) from mine as m), 100) as h
    where h.is_locked
    group by h.queue_id
  )
  select
    (m.q).lookup_name,
    m.queue_id,
    case
      when parley._p_is_poisoned(m.queue_id) then 'POISONED'
      when (m.q).is_receive_enabled then 'ON'
      else 'OFF'
    end,
    (m.q).readers_paused_at,
    b.messages,
    b.is_estimated or coalesce(a.is_estimated, false),
    coalesce(a.messages, 0),
    parley._p_count_delayed(m.queue_id),
    b.oldest_enqueue_time,
    d.value,
    coalesce(t.messages_per_row, 1),
    case when (m.q).is_activation_enabled then (m.q).max_readers else 0 end,
    coalesce(r.running_readers, 0),
    coalesce(r.failures, 0),
    r.last_error,
    coalesce(l.groups, 0),
    coalesce(l.holders, '{}')
  from mine as m
  join drawn as d using (number)
  cross join lateral parley._p_backlog(m.q, 0, (m.q).disabled_position) as b
  left join lateral parley._p_backlog(m.q, (m.q).disabled_position, null) as a on (m.q).disabled_position is not null
  left join lateral (
    select avg(coalesce(cardinality(n.frame), 1))::double precision as messages_per_row
    from (
      select w.frame
      from generate_series(1, 10) as p (n)
      cross join lateral (
        select o.frame
        from parley._p_message as o
        where o.lane = parley._p_lane(m.queue_id, p.n)
        order by o.position desc
        limit 32
      ) as w
      where (m.q).priorities & (1 << p.n) > 0
    ) as n
  ) as t on b.messages > 0
  left join parley._p_queue_monitor as r on r.queue_id = m.queue_id and r.term = parley._p_current_term()
  left join locked as l on l.queue_id = m.queue_id
  order by m.queue_id
$$;

comment on function parley.queue_activity(parley.caller) is
'Shows what goes on in each queue that the caller may receive from. Two readings make rates: enqueued_rows only grows.
Columns: queue_name, service_queue_id; status, ON, OFF or POISONED; readers_paused_at, null when they are not;
waiting_messages, is_estimated, held_messages, delayed_messages and oldest_enqueue_time as queue_backlogs;
enqueued_rows, how many rows were ever put on the queue, where a batch is one row for each page of it;
messages_per_row of the newest rows that wait; max_readers that activation may start, or 0; running_readers of the
daemon, failures of its last readers in a row, last_error of them; locked_groups among the conversations at the head,
and the process ids of the sessions that hold them in lock_holders.
Errors: none of its own.';
