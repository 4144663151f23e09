-- Readers that go back to a savepoint keep their group (spec 5.6).
--
-- ROLLBACK TO SAVEPOINT, and a block of PL/pgSQL with EXCEPTION that ends by an error, give away each row lock and each
-- advisory lock of the transaction that was taken since. An advisory lock of the session would stay, and outlive the
-- transaction too, in a session that a pooler lends to others. One lock stays to the end of the transaction, and not
-- longer, that of setval on a sequence: the server gives it to the top transaction, whatever part of it calls. It
-- excludes nobody; but pg_locks shows it.
--
-- So: a RECEIVE in a subtransaction, and no other, marks one of 32 sequences, chosen by the number of the
-- subtransaction: it writes that number and the one of its transaction into it. A message that it gives back carries
-- that number in xmax. A reader that finds a message with an aborted xmax reads its sequence. When that names the same
-- subtransaction, it identifies the transaction, which keeps the group as long as it runs. When another one has written
-- there since, then whoever runs, has marked that sequence, holds the lock on the counter sequence of the queue, and
-- began before the message was taken, is taken for the keeper. That may be too many: the message waits for the end of
-- a transaction that does not keep it. It is never too few. None but readers of the queue get that lock, with a mark or
-- when they count what came back (poison/poison.sql): a reader of another queue holds nothing up. A reader that has
-- marked the same sequence itself asks currval, which is its own last mark and never goes back: the message is its own
-- when that names the subtransaction.
--
-- The messages that were received are kept, and their group for RECEIVE and GET CONVERSATION GROUP: they pass it by.
-- END, MOVE and timers of other sessions find the row of the group free, as does a RECEIVE that begins with a message
-- of the group which the reader had not received. GET CONVERSATION GROUP before the savepoint locks all of it.
-- Cost: a RECEIVE outside of subtransactions compares two numbers; inside, one setval. A check of a message that came
-- back: one sequence, and pg_locks if that names a transaction or was written since.

create function parley._p_keep(transaction_id xid, endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_sequence_last_value(q.counter_sequence)
  from parley._p_endpoint as e
  join parley._p_service as s using (service_id)
  join parley._p_queue as q using (queue_id)
  where e.endpoint_id = _p_keep.endpoint_id;
  perform setval(
    parley._p_savepoint_sequence(transaction_id),
    transaction_id::text::bigint << 31 | (pg_current_xact_id()::text::bigint & 2147483647)
  );
end
$$;

comment on function parley._p_keep(xid, bigint) is
'Records that this transaction keeps what it has received in a subtransaction, though it may go back to the savepoint.
Arguments: transaction_id, of the subtransaction; endpoint_id, a side that was received from.';

create function parley._p_keeper(transaction_id xid, queue_id integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_next bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  v_age bigint := (v_next - transaction_id::text::bigint) & 4294967295;
  v_sequence regclass;
  v_counter regclass;
  v_mark bigint;
begin
  -- A session that still works on it has the lock of the group.
  if v_age = 0 or v_age > 2147483647 or pg_xact_status((v_next - v_age)::text::xid8) is distinct from 'aborted' then
    return null;
  end if;
  v_sequence := parley._p_savepoint_sequence(transaction_id);
  v_mark := parley._p_last_position(v_sequence);
  if v_mark is null then
    return null;
  elsif v_mark >> 31 = transaction_id::text::bigint then
    return (
      select coalesce(l.pid, 0)
      from pg_locks as l
      where l.locktype = 'transactionid'
        and l.mode = 'ExclusiveLock'
        and l.transactionid::text::bigint = (v_mark >> 31) - ((v_mark >> 31) - v_mark & 2147483647) & 4294967295
        and l.pid is distinct from pg_backend_pid()
    );
  end if;
  v_counter := (select q.counter_sequence from parley._p_queue as q where q.queue_id = _p_keeper.queue_id);
  return (
    select min(coalesce(l.pid, 0)) filter (
      where l.pid is distinct from pg_backend_pid() and exists (
        select
        from pg_locks as t
        where t.virtualtransaction = l.virtualtransaction
          and t.locktype = 'transactionid'
          and t.mode = 'ExclusiveLock'
          and (v_next - t.transactionid::text::bigint) & 4294967295 between v_age and 2147483647
      ) and exists (
        select
        from pg_locks as c
        where c.virtualtransaction = l.virtualtransaction
          and c.locktype = 'relation'
          and c.database = l.database
          and c.relation = v_counter
          and c.mode = 'RowExclusiveLock'
      )
    )
    from pg_locks as l
    where l.locktype = 'relation'
      and l.relation = v_sequence
      and l.database = (select d.oid from pg_database as d where d.datname = current_database())
      and l.mode = 'RowExclusiveLock'
    -- Our own mark, that another one has written over: nobody else keeps the message.
    having case
      when bool_or(l.pid = pg_backend_pid()) then currval(v_sequence) >> 31 <> transaction_id::text::bigint
      else true
    end
  );
end
$$;

comment on function parley._p_keeper(xid, integer) is
'Shows which backend keeps a message that has come back from a savepoint of a transaction that still runs; null when no
other does, 0 for a prepared transaction.
Arguments: transaction_id, the xmax of the message; queue_id, its queue.';

create function parley._p_raise_deadlock(keeper integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if pg_backend_pid() = any (pg_blocking_pids(keeper)) then
    raise exception 'deadlock detected' using
      errcode = 'deadlock_detected',
      detail = format('Process %s waits for this one, which waits for a conversation group that it keeps.', keeper);
  end if;
end
$$;

comment on function parley._p_raise_deadlock(integer) is
'Ends a wait for a keeper that waits for us: the server, which sees only one of the two waits, would not.
Errors: 40P01.';

create function parley._p_is_kept(taker xid, lane integer, endpoint_id bigint, "position" bigint) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley._p_keeper(taker, parley._p_owner_of_lane(lane)) is not null
    or parley._p_await_report(lane, endpoint_id, position, taker);
end
$$;

comment on function parley._p_is_kept(xid, integer, bigint, bigint) is
'Reports whether RECEIVE passes by a message that came back, as if its group were locked: a reader that went back to a
savepoint keeps it (receive/savepoints.sql), or a report is awaited.
Arguments: taker, its xmax; lane, endpoint_id and position of the message.';
