-- Checks of what sessions outside of the broker do to it: old snapshots and transactions that stay open.
--
-- Of the sessions of other roles PostgreSQL shows an ordinary owner that they exist and how old their snapshot is, not
-- since when: grant pg_read_all_stats to the owner of the schema to see more. Such a session shows here once 100,000
-- transactions have begun since.

create function parley._p_find_old_snapshots(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'old-snapshot', 'session', a.pid::text,
    format('Its snapshot keeps dead rows of all tables from being removed; role %s, program "%s", %s.',
      coalesce(a.usename::text, 'unknown'), a.application_name, coalesce(a.state, a.backend_type, 'state unknown')),
    a.xact_start,
    format('select pg_terminate_backend(%s);', a.pid)
  from pg_stat_activity as a
  where a.backend_xmin is not null
    and (a.datid = parley._p_database_oid() or a.backend_type = 'walsender')
    and a.pid <> pg_backend_pid()
    and case
      when a.xact_start is not null then a.xact_start < clock_timestamp() - scope.patience
      else age(a.backend_xmin) > 100000
    end
    and scope.endpoint_ids is null
  union all
  select 'old-slot', 'replication slot', s.slot_name::text,
    format(
      'No client uses it, and it keeps rows that died %s transactions ago from being removed.',
      age(coalesce(s.xmin, s.catalog_xmin))
    ),
    null,
    format('select pg_drop_replication_slot(%L);', s.slot_name)
  from pg_replication_slots as s
  where not s.active
    and coalesce(s.xmin, s.catalog_xmin) is not null
    and (s.database is null or s.database = current_database())
    and scope.endpoint_ids is null
$$;

comment on function parley._p_find_old_snapshots(parley._p_scope) is
'Finds sessions and replication slots that have kept dead rows from being removed for longer than scope.patience.';

create function parley._p_find_open_senders(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'sender-open', 'session', a.pid::text,
    format('It has sent to queue "%s" and has neither committed nor rolled back (%s): readers of the queue cannot '
      || 'pass by what is received beyond that.',
      q.lookup_name, coalesce(a.state, 'state unknown')),
    a.xact_start,
    format('select pg_terminate_backend(%s);', a.pid)
  from pg_locks as l
  join parley._p_queue as q on q.position_sequence = l.relation
  join pg_stat_activity as a using (pid)
  where l.locktype = 'relation'
    and l.database = parley._p_database_oid()
    and l.mode = 'RowExclusiveLock'
    and l.granted
    and a.wait_event is distinct from 'PgSleep'
    and a.pid <> pg_backend_pid()
    and a.xact_start < clock_timestamp() - scope.patience
    and (scope.queue_ids is null or q.queue_id = any (scope.queue_ids))
$$;

comment on function parley._p_find_open_senders(parley._p_scope) is
'Finds sessions that have sent and stayed in their transaction for longer than scope.patience.';
