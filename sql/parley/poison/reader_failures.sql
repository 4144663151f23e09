-- Failures of readers that the broker started itself: the daemon learns that a reader has failed and why, but
-- not with which conversation.
--
-- The conversation is found by what the failure left behind: of the first messages of the queue, the one that came back
-- last and has not been counted since. Readers of one queue that fail within the same instant may get each other's
-- error. A reader that failed before it received anything has left nothing, and nothing is recorded.
-- Locks: those of record_failure. Cost: the first rows of each lane.

create function parley._p_record_reader_failure(queue_id integer, sqlstate text, message text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_queue parley._p_queue;
  v_counts bigint;
  v_counters bigint;
  v_next bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  v_handle uuid;
begin
  select * into v_queue from parley._p_queue as q where q.queue_id = _p_record_reader_failure.queue_id;
  if not found or not v_queue.is_poison_message_handling_enabled then
    return false;
  end if;
  v_counts := coalesce(pg_sequence_last_value(v_queue.rollback_sequence), 0);
  v_counters := coalesce(pg_sequence_last_value(v_queue.counter_sequence), 0);
  select m.conversation_handle into v_handle
  from generate_series(1, 10) as p (n)
  cross join lateral (
    select e.conversation_handle, (n.position / 1024) & 134217727 as key,
      (v_next - n.xmax::text::bigint) & 4294967295 as age
    from (
      select o.position, o.endpoint_id, o.xmax
      from parley._p_message as o
      where o.lane = parley._p_lane(v_queue.queue_id, p.n)
        and o.position >= coalesce(
          (select h.low_position from parley._p_newest_hint(parley._p_lane(v_queue.queue_id, p.n)) as h), 0
        )
      order by o.position
      limit 64
    ) as n
    join parley._p_endpoint as e on e.endpoint_id = n.endpoint_id and e.state <> 'DO'
    where n.xmax::text <> '0' and not parley._p_is_running(n.xmax)
  ) as m
  where v_queue.priorities & (1 << p.n) > 0
    -- Failures before the beginning of the transaction that counted last are counted already.
    and not coalesce(
      case m.key
        when (v_counts >> 4) & 134217727 then (v_next - v_counters) & 2147483647
        when (v_counts >> 35) then (v_next - (v_counters >> 31)) & 2147483647
      end < m.age,
      false
    )
  order by m.age
  limit 1;
  return v_handle is not null and parley.record_failure(v_handle, sqlstate, message, caller => parley.current_caller());
end
$$;

comment on function parley._p_record_reader_failure(integer, text, text) is
'Reports that a reader of a queue has failed, for the conversation that it most likely failed with. Call
it when its transaction is over.
Arguments: queue_id; sqlstate and message as in record_failure.';
