-- Poison messages: messages whose transaction always rolls back. RECEIVE notices and counts the rollbacks here;
-- poison/set_aside.sql sets their conversation aside, and poison/poison_statements.sql brings it back.
--
-- A rollback undoes all that the transaction wrote. So RECEIVE notices it afterwards, and counts it outside of the
-- transaction.
-- Noticed: a message that was taken and came back still carries the xmax of the transaction that failed, whatever ended
-- that transaction: an error, a deadlock, a kill.
-- Counted: in two sequences of the queue, which no rollback resets. The rollback sequence holds two entries of 31 bits,
-- each a message (27 bits of its position) and a count (4 bits). An entry whose message is gone makes room for another.
-- The counter sequence holds for each entry the last 31 bits of the transaction that took the message and counted last.
--
-- Each transaction counts once. While it runs it may go back to savepoints as often as it likes (spec 5.6). When it is
-- over and the message is still there, that is a failure, even if it committed: a reader that catches each error and
-- commits would otherwise fail for ever.
--
-- Why bits of sequences: a row would roll back with the failure that it counts, and a connection of its own would need
-- a password or an extension. A sequence holds one number; two of them hold all of it, and RECEIVE finds out with one
-- call whether a queue counts any failure.
--
-- When a message has come back as often as the queue's setting says, its conversation is set aside, or the queue is
-- disabled: RECEIVE then fails with 9617 until alter_queue(status => true). The count is outside of the transaction, so
-- the refusal needs no commit. When the transaction that sets a conversation aside rolls back, the next one repeats it.
--
-- Lock: a row of _p_rollback_counter around the reading and writing of the sequences. It is taken after all other
-- locks, and no other lock is taken under it.

create function parley._p_count_rollback(
  queue_id integer, endpoint_id bigint, "position" bigint, awaits_report boolean default false
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
  v_policy parley._p_retry_policy;
  v_failed bigint;
  v_found record;
  v_count integer;
  v_has_waited boolean;
begin
  select * into v_queue from parley._p_queue as q where q.queue_id = _p_count_rollback.queue_id;
  select m.lane, m.xmax as taker into v_found
  from parley._p_message as m
  where m.endpoint_id = _p_count_rollback.endpoint_id
    and m.position = _p_count_rollback.position
    and m.xmax::text <> '0';
  if not found or not v_queue.is_poison_message_handling_enabled then
    return false;
  elsif parley._p_is_set_aside(endpoint_id) then
    return true;
  elsif awaits_report and parley._p_await_report(v_found.lane, endpoint_id, position, v_found.taker) then
    -- It came back between our scan and our lock, which must not hold off the report. A reader that pauses after an
    -- empty call is woken by its own commit.
    perform parley._p_wake_readers(queue_id, v_queue.wakeup_sequence);
    perform parley._p_record_unseen();
    return null;
  end if;
  -- A subtransaction has a later number than its transaction, so numbers are compared at their full length.
  v_failed := parley._p_full_transaction_id(v_found.taker);
  v_count := parley._p_count_returned(v_queue, position, v_failed);
  v_policy := parley._p_retry_policy_of(v_queue);
  if v_policy.queue_id is not null then
    -- The first time it is received again: a bad message of another conversation may have taken it along, or a restart
    -- of the server. After that it waits. Where there is no room to count it may be the first time: a moment is enough.
    v_has_waited := exists (
      select
      from parley._p_conversation_retry as r
      where r.endpoint_id = _p_count_rollback.endpoint_id and r.position = _p_count_rollback.position
    );
    return (v_has_waited or v_count is distinct from 1 and v_count is distinct from 0) and (
      parley._p_make_conversation_wait(
        v_queue, endpoint_id, position, 0, greatest(v_count, 1),
        case when v_count is null and not v_has_waited then parley._p_moment(v_policy) end, false
      )
    ).waits;
  end if;
  if v_count >= v_queue.rollbacks_before_disable then
    if v_queue.poison_action = 'DISABLE_QUEUE' then
      found := parley._p_raise_disabled(queue_id);
    end if;
    return parley._p_set_aside_conversation(queue_id, endpoint_id, position, v_count);
  end if;
  -- Both entries are in use, so this message cannot be counted. If this transaction has set a conversation aside, it
  -- must end here: if it took one more message that fails, the rollback would undo the setting aside, for ever.
  if v_count is null
    and v_queue.poison_action = 'SET_ASIDE'
    and exists (select from parley._p_set_aside as s where s.set_aside_by = pg_current_xact_id()) then
    return null;
  end if;
  return false;
end
$$;

comment on function parley._p_count_rollback(integer, bigint, bigint, boolean) is
'Counts that a message came back after a rollback. Call it with the group of the message locked.
Arguments: queue_id; endpoint_id; position of the message; awaits_report, whether nothing is counted as long as a report
may come.
Gives false: take the message; true: its conversation has just been set aside, find another; null: take
nothing more in this transaction.
Errors: 9617 the message has come back too often, and the queue''s setting is to disable it.
Source: spec 5.6.';

create table parley._p_rollback_counter (slot integer primary key);

comment on table parley._p_rollback_counter is
'Rows whose locks protect the counting of rollbacks: that of a queue is queue_id % 16. They stand in place of an
advisory lock, which any role could take.';

insert into parley._p_rollback_counter (slot) select n from generate_series(0, 15) as n;

create function parley._p_count_returned(queue parley._p_queue, "position" bigint, failed bigint) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_count integer;
begin
  -- Two readers that count at once must not lose a count, so each locks a row. Held to the end of the transaction, the
  -- lock would hold up all readers of the queue. It is therefore taken in a block that always ends by an error, which
  -- gives the lock back; the sequences keep their new values.
  begin
    perform from parley._p_rollback_counter as k where k.slot = queue.queue_id % 16 for update;
    v_count := parley._p_add_rollback(queue, (position / 1024) & 134217727, failed);
    raise exception 'counted' using errcode = 'PB002';
  exception
    when sqlstate 'PB002' then
      null;
  end;
  return v_count;
end
$$;

comment on function parley._p_count_returned(parley._p_queue, bigint, bigint) is
'Counts that a message came back, and gives how often it has; null when there is no room to count it.
Arguments: queue; position of the message; failed, the transaction that it came back from, at its full length.';

create function parley._p_add_rollback(queue parley._p_queue, key bigint, failed bigint) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_value bigint := coalesce(pg_sequence_last_value(queue.rollback_sequence), 0);
  v_entry bigint[] := array[v_value & 2147483647, v_value >> 31];
  v_self bigint := pg_current_xact_id()::text::bigint;
  v_slot integer := case key when v_entry[1] >> 4 then 1 when v_entry[2] >> 4 then 2 end;
  v_counter bigint[];
  v_last bigint;
  v_is_failure boolean;
begin
  v_value := coalesce(pg_sequence_last_value(queue.counter_sequence), 0);
  v_counter := array[v_value & 2147483647, v_value >> 31];
  if v_slot is not null then
    v_last := v_self - (v_self - v_counter[v_slot] & 2147483647);
    -- A failure before the last count was counted then. A later one is of the transaction that counted last, or of a
    -- part of it, and counts when that transaction is over. Its end may be unknown: it was too long ago, or on the
    -- server from which this one was restored.
    v_is_failure := failed >= v_last
      and v_last <> v_self
      and coalesce(pg_xact_status(case when v_last > 2 then v_last::text::xid8 end), 'aborted') <> 'in progress';
  else
    -- No transaction is recorded for this message. A number after ours is of a subtransaction of ours: no failure.
    v_is_failure := failed < v_self;
    v_slot := case
      when not parley._p_is_waiting(queue.queue_id, v_entry[1] >> 4) then 1
      when not parley._p_is_waiting(queue.queue_id, v_entry[2] >> 4) then 2
    end;
    if v_slot is null then
      return null;
    end if;
    v_entry[v_slot] := key << 4;
  end if;
  if v_is_failure and v_entry[v_slot] & 15 < queue.rollbacks_before_disable then
    v_entry[v_slot] := v_entry[v_slot] + 1;
  end if;
  v_counter[v_slot] := v_self & 2147483647;
  perform setval(queue.rollback_sequence, v_entry[2] << 31 | v_entry[1]);
  perform setval(queue.counter_sequence, v_counter[2] << 31 | v_counter[1]);
  return v_entry[v_slot] & 15;
end
$$;

comment on function parley._p_add_rollback(parley._p_queue, bigint, bigint) is
'Counts one more rollback of a message, if the transaction it came back from has failed, and gives the count; null when
there is no room to count it.
Arguments: queue; key of the message, 27 bits of its position; failed, the transaction that it came back from, at its
full length.';

create function parley._p_is_waiting(queue_id integer, key bigint) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select key <> 0 and (
    exists (
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
    -- A message that this transaction has set aside comes back if this transaction rolls back.
    or exists (
      select
      from parley._p_set_aside as s
      where s.set_aside_by = pg_current_xact_id_if_assigned() and (s.position / 1024) & 134217727 = key
    )
  )
$$;

comment on function parley._p_is_waiting(integer, bigint) is
'Reports whether the message of a rollback entry still waits in the queue.';

create function parley._p_is_poisoned(queue_id integer) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select q.is_poison_message_handling_enabled
      and q.poison_action = 'DISABLE_QUEUE'
      and greatest(r.count & 15, r.count >> 31 & 15) >= q.rollbacks_before_disable
    from parley._p_queue as q
    cross join lateral (select coalesce(pg_sequence_last_value(q.rollback_sequence), 0) as count) as r
    where q.queue_id = $1
  );
end
$$;

comment on function parley._p_is_poisoned(integer) is 'Reports whether poison message handling has disabled a queue.';

create function parley._p_sees_poisoned(
  queue_id integer,
  caller parley.caller default parley.current_caller()
) returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select parley._p_is_poisoned(q.queue_id)
  from parley._p_queue as q
  where q.queue_id = $1 and parley._p_is_visible(parley._p_caller(caller), 'queue', q.queue_id, q.owner)
$$;

comment on function parley._p_sees_poisoned(integer, parley.caller) is
'Reports whether poison message handling has disabled a queue, for the catalog. Null when the
caller may not see the queue there.';
