-- Checks of transactions that wait for somebody: prepared ones in doubt, and readers that wait inside a function.
--
-- A prepared transaction holds what its session held, for as long as the coordinator of the distributed transaction
-- does not finish it: the rows that it has locked carry its number in xmax. That of a subtransaction is another one,
-- which nothing shows once the transaction is prepared, so what it holds may be more than is named.

create function parley._p_held_by(transaction_id xid) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  v_held text[] := array[]::text[];
begin
  v_held := v_held || (
    select format('%s conversation groups, such as %s', count(*), min(g.conversation_group_id::text))
    from parley._p_conversation_group as g
    where g.xmax = transaction_id
    having count(*) > 0
  );
  v_held := v_held || array(
    select format('%s messages that were received from queue "%s"', count(*), q.lookup_name)
    from parley._p_message as m
    join parley._p_queue as q on q.queue_id = parley._p_owner_of_lane(m.lane)
    where m.xmax = transaction_id
    group by q.lookup_name
    order by q.lookup_name
  );
  v_held := v_held || array(
    select format('messages to queue "%s"', q.lookup_name)
    from pg_locks as l
    join pg_locks as t
      on t.virtualtransaction = l.virtualtransaction
      and t.locktype = 'transactionid'
      and t.transactionid = transaction_id
    join parley._p_queue as q on q.position_sequence = l.relation
    where l.locktype = 'relation'
      and l.database = parley._p_database_oid()
      and l.mode = 'RowExclusiveLock'
      and l.granted
    order by q.lookup_name
  );
  return coalesce(nullif(array_to_string(array_remove(v_held, null), ', '), '') || ', ', '');
end
$$;

comment on function parley._p_held_by(xid) is
'Lists what a prepared transaction holds of the broker, each followed by a comma: groups, messages that it has received,
and queues to which it has sent. It reads all groups and messages.
Arguments: transaction_id, of pg_prepared_xacts.';

create function parley._p_find_prepared_transactions(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'old-prepared-transaction', 'prepared transaction', x.gid,
    format(
      'Role %s has prepared it, and nobody has finished it: it keeps %sits locks, and dead rows of all tables from '
        || 'being removed.',
      x.owner, parley._p_held_by(x.transaction)
    ),
    x.prepared,
    format(
      'rollback prepared %L;  -- or commit prepared %L; only where its coordinator is gone: what that has decided it '
        || 'finishes itself when it is started again',
      x.gid, x.gid
    )
  from pg_prepared_xacts as x
  where x.database = current_database()
    and x.prepared < clock_timestamp() - scope.patience
    and scope.endpoint_ids is null
$$;

comment on function parley._p_find_prepared_transactions(parley._p_scope) is
'Finds prepared transactions of this database that nobody has finished for longer than scope.patience, and what they
hold.';

create function parley._p_find_waiting_readers(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'reader-keeps-snapshot', 'session', a.pid::text,
    format(
      'It waits for messages of queue "%s" inside a statement (role %s, program "%s"), whose snapshot keeps dead rows '
        || 'of all tables of the server from being removed.',
      q.lookup_name, coalesce(a.usename::text, 'unknown'), a.application_name
    ),
    a.xact_start,
    format('call parley.wait_for_message(%L, 60000);  -- outside of a transaction, then receive without a time-out',
      q.lookup_name)
  from pg_locks as l
  join parley._p_queue as q on q.position_sequence = l.relation
  join pg_stat_activity as a using (pid)
  where l.locktype = 'relation'
    and l.database = parley._p_database_oid()
    and l.mode = 'RowExclusiveLock'
    and l.granted
    and a.state = 'active'
    and a.wait_event = 'PgSleep'
    and a.pid <> pg_backend_pid()
    and a.xact_start < clock_timestamp() - scope.patience
    and (scope.queue_ids is null or q.queue_id = any (scope.queue_ids))
    and scope.endpoint_ids is null
$$;

comment on function parley._p_find_waiting_readers(parley._p_scope) is
'Finds sessions that have waited for messages inside receive, take or get_conversation_group for longer than
scope.patience. A session that waits by wait_for_message begins a transaction twice a second, so it is none.';
