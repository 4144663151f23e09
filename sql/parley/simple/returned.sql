-- Messages of simple queues that have come back after a rollback.
--
-- Such a message is taken alone, and counted, or set aside when it came back too often (poison/poison.sql says how that
-- is noticed and counted). So a bad message takes others along once. Its row says who took it, in its xmax.
--
-- Locks: the row of the message, skip locked. Cost: two reads of the first rows of a lane; behind 4,096 rows the
-- index of keys is read (simple/keys.sql), once nothing in the lane is free.

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

create function parley._p_find_returned(
  queue_id integer, lane integer, from_position bigint, rows_max integer,
  out row_id tid, out "position" bigint, out taker xid
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_takers xid[];
  v_running xid[];
  v_near constant integer := coalesce(rows_max, 4096);
  v_id constant bigint := parley._p_key_id(queue_id, null);
  v_last bigint;
  v_rows tid[];
  v_positions bigint[];
  v_key_ids bigint[];
begin
  -- Those that run have it in their hands; whoever has ended gave it back. Asked once for each taker, however many rows
  -- it holds: asked for each row, 640 rows in others' hands cost 4 ms a call.
  v_takers := array(
    select distinct n.taker
    from (
      select m.xmax as taker
      from parley._p_message as m
      where m.lane = _p_find_returned.lane and m.position >= from_position
      order by m.position
      limit v_near
    ) as n
    where n.taker <> '0'
  );
  v_running := parley._p_running(v_takers);
  if cardinality(v_running) < cardinality(v_takers) then
    select n.ctid, n.position, n.taker into row_id, position, taker
    from (
      select m.ctid, m.position, m.endpoint_id, m.xmax as taker
      from parley._p_message as m
      where m.lane = _p_find_returned.lane and m.position >= from_position
      order by m.position
      limit v_near
    ) as n
    where n.taker = any (v_takers)
      and n.taker <> all (v_running)
      and not parley._p_await_report(_p_find_returned.lane, n.endpoint_id, n.position, n.taker)
      and not parley._p_is_message_claimed(_p_find_returned.queue_id, n.position)
      and parley._p_is_first_of_key(_p_find_returned.queue_id, n.endpoint_id, n.position)
    order by n.position
    limit 1;
  end if;
  if position is not null or rows_max is not null then
    return;
  end if;
  v_last := (
    select m.position
    from parley._p_message as m
    where m.lane = _p_find_returned.lane and m.position >= from_position
    order by m.position
    offset v_near
    limit 1
  );
  if v_last is null then
    return;
  end if;
  -- Nothing there is free, so it is in others' hands, or waits behind one of its key, or came back.
  select array_agg(f.row_id), array_agg(f.position), array_agg(f.taker), array_agg(f.key_id)
  into v_rows, v_positions, v_takers, v_key_ids
  from (
    select m.ctid as row_id, m.position, m.xmax as taker, m.endpoint_id as key_id
    from parley._p_message as m
    where m.endpoint_id = v_id
      and (m.endpoint_id, m.position) >= (v_id, v_last)
      and m.lane + 0 = _p_find_returned.lane
      and m.xmax <> '0'
    union all
    select k.row_id, k.position, k.taker, k.key_id
    from parley._p_some_first_of_keys(_p_find_returned.lane) as k
    where k.taker <> '0'
  ) as f;
  v_running := parley._p_running(array(select distinct u.taker from unnest(v_takers) as u (taker)));
  select u.row_id, u.position, u.taker into row_id, position, taker
  from unnest(v_rows, v_positions, v_takers, v_key_ids) as u (row_id, position, taker, key_id)
  where u.taker <> all (v_running)
    and not parley._p_await_report(_p_find_returned.lane, u.key_id, u.position, u.taker)
    and not parley._p_is_message_claimed(_p_find_returned.queue_id, u.position)
  order by u.position
  limit 1;
end
$$;

comment on function parley._p_find_returned(integer, integer, bigint, integer) is
'Finds the first message of a lane that came back after a rollback, is the first of its key and awaits no report, and
who took it then; nulls when there is none.
Arguments: queue_id; lane; from_position, where to begin; rows_max, among so many rows; null: among all, once nothing in
the lane is free.';

create function parley._p_take_returned(queue parley._p_queue, priority integer, from_position bigint, rows_max integer)
returns setof parley.taken_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane constant integer := parley._p_lane(queue.queue_id, priority);
  v_first record;
  v_failed bigint;
  v_count integer;
begin
  v_first := parley._p_find_returned(queue.queue_id, v_lane, from_position, rows_max);
  if v_first.position is null then
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
came back too often. In a queue with a retry policy one that came back alone is passed by for a moment, for a report,
and it waits from the second time on: then the call gives nothing.
Arguments: queue; priority; from_position, where to begin; rows_max, among so many rows (null: all).
Errors: 9617 when it came back too often and the queue is to be disabled.';
