-- Checks of transactions that wait for somebody: prepared ones in doubt, readers that wait inside a function, and
-- commits that wait for a standby.
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
  from parley._p_waiting_session as s
  join parley._p_queue as q using (queue_id)
  join pg_stat_activity as a using (pid)
  where a.state = 'active'
    and a.pid <> pg_backend_pid()
    and a.xact_start < clock_timestamp() - scope.patience
    and (scope.queue_ids is null or q.queue_id = any (scope.queue_ids))
    and scope.endpoint_ids is null
$$;

comment on function parley._p_find_waiting_readers(parley._p_scope) is
'Finds sessions that have waited for messages inside receive, take or get_conversation_group for longer than
scope.patience. A session that waits by wait_for_message begins a transaction twice a second, so it is none.';

create function parley._p_find_waiting_commits(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'commit-waits-for-standby', 'setting', 'synchronous_standby_names',
    format(
      '%s sessions, such as %s (role %s, program "%s"), have committed and wait until a standby has it: '
        || 'synchronous_standby_names is "%s" and synchronous_commit asks for it, and %s standbys are connected of '
        || 'which %s may confirm.',
      w.sessions, w.pid, w.role, w.program, current_setting('synchronous_standby_names'), s.connected, s.confirming
    ),
    w.since,
    'alter system set synchronous_standby_names = '''';  -- then select pg_reload_conf(), and a commit is durable on '
      || 'this server alone; or bring the standby back, and they end by themselves'
  from (
    select count(*) as sessions, min(a.pid) as pid,
      (array_agg(coalesce(a.usename::text, 'unknown') order by a.pid))[1] as role,
      (array_agg(a.application_name order by a.pid))[1] as program, min(a.query_start) as since
    from pg_stat_activity as a
    where a.datname = current_database()
      and a.wait_event = 'SyncRep'
      and a.query_start < clock_timestamp() - scope.patience
    having count(*) > 0
  ) as w
  cross join (
    select count(*) as connected, count(*) filter (where r.sync_state in ('sync', 'quorum')) as confirming
    from pg_stat_replication as r
  ) as s
  where scope.queue_ids is null and scope.endpoint_ids is null
$$;

comment on function parley._p_find_waiting_commits(parley._p_scope) is
'Finds sessions of this database whose commit has waited for a synchronous standby for longer than scope.patience: what
they sent is not seen by anybody before that ends.';
