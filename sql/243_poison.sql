-- Poison messages: messages whose transaction always rolls back.
--
-- A rollback takes everything back that the transaction wrote, so it is noticed afterwards and counted outside. Noticed: a message
-- that was taken and came back still carries the xmax of the transaction that failed, whatever ended it: an error, a deadlock, a
-- kill. Counted: in the queue's rollback sequence, which no rollback resets. Its value holds two entries of 31 bits, each a
-- message (27 bits of its position) and a count (4 bits); an entry whose message is gone makes room for another.
-- When a message has come back as often as the setting says, RECEIVE refuses the queue with 9617 until alter_queue(status => true)
-- (spec 5.6). Being outside, the refusal also needs no commit.

create function parley._p_count_rollback(queue_id integer, endpoint_id bigint, "position" bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
  v_key bigint := (position / 1024) & 134217727;
  v_value bigint;
  v_entry bigint[];
  v_slot integer;
begin
  select * into v_queue from parley._p_queue as q where q.queue_id = _p_count_rollback.queue_id;
  if not v_queue.is_poison_message_handling_enabled or parley._p_is_own_savepoint(endpoint_id, position) then
    return;
  end if;
  -- Two readers that count at once must not lose one: a lock of the session, held for these few lines only and let go of whatever happens.
  begin
    perform pg_advisory_lock(1346458188, queue_id);
    v_value := coalesce(pg_sequence_last_value(v_queue.rollback_sequence), 0);
    v_entry := array[v_value & 2147483647, v_value >> 31];
    v_slot := case v_key when v_entry[1] >> 4 then 1 when v_entry[2] >> 4 then 2 end;
    if v_slot is null then
      for i in 1 .. 2 loop
        if v_slot is null and not parley._p_is_waiting(queue_id, v_entry[i] >> 4) then
          v_slot := i;
          v_entry[i] := v_key << 4;
        end if;
      end loop;
    end if;
    if v_slot is not null and v_entry[v_slot] & 15 < v_queue.rollbacks_before_disable then
      v_entry[v_slot] := v_entry[v_slot] + 1;
      perform setval(v_queue.rollback_sequence, v_entry[2] << 31 | v_entry[1]);
    end if;
    perform pg_advisory_unlock(1346458188, queue_id);
  exception
    when others or query_canceled then
      perform pg_advisory_unlock(1346458188, queue_id);
      raise;
  end;
  if v_slot is not null and v_entry[v_slot] & 15 >= v_queue.rollbacks_before_disable then
    perform parley._p_raise_disabled(queue_id);
  end if;
end
$$;

comment on function parley._p_count_rollback(integer, bigint, bigint) is
'Counts that a message came back after a rollback.
Errors: 9617 when it has come back too often.
Source: spec 5.6.';

create function parley._p_is_waiting(queue_id integer, key bigint) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select key <> 0 and exists (
    select
    from parley._p_queue as q
    cross join generate_series(10, 1, -1) as p (n)
    cross join lateral (
      select (coalesce(parley._p_last_position(q.position_sequence), 0) & ~134217727::bigint) + key as number
    ) as k
    join parley._p_message as m
      on m.lane = parley._p_lane(q.queue_id, p.n)
      and m.position between k.number * 1024 and k.number * 1024 + 1023
    where q.queue_id = $1 and q.priorities & (1 << p.n) > 0
  )
$$;

comment on function parley._p_is_waiting(integer, bigint) is 'Tells whether the message of a rollback entry still waits in the queue.';

create function parley._p_is_own_savepoint(endpoint_id bigint, "position" bigint) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  -- Sub-transactions have later numbers than their transaction. A message that came back with such a number, while this
  -- transaction ran, came back to a savepoint of ours: that does not count (spec 5.6).
  select pg_current_xact_id_if_assigned() is not null
    and age(m.xmax) < age(pg_current_xact_id()::xid)
    and m.xmin <> m.xmax
  from parley._p_message as m
  where m.endpoint_id = $1 and m.position = $2
$$;

comment on function parley._p_is_own_savepoint(bigint, bigint) is 'Tells whether a message came back because this transaction rolled back to a savepoint.';

create function parley._p_is_poisoned(queue_id integer) returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select q.is_poison_message_handling_enabled
    and greatest(r.count & 15, r.count >> 31 & 15) >= q.rollbacks_before_disable
  from parley._p_queue as q
  cross join lateral (select coalesce(pg_sequence_last_value(q.rollback_sequence), 0) as count) as r
  where q.queue_id = $1
$$;

comment on function parley._p_is_poisoned(integer) is 'Tells whether poison message handling has disabled a queue.';
