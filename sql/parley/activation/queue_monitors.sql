-- The reports of the daemon about its queue monitors and readers, for the views.
--
-- The daemon reports once a second at most, and only what has changed; a reader that lives shorter than that is
-- counted, but shows in no row. Each report carries the term of the daemon. The reports of an earlier leader show no
-- more.
-- Locks: the leader's row FOR SHARE, then rows of _p_queue_monitor; only the leader writes them.

create table parley._p_queue_monitor (
  queue_id integer primary key,
  term bigint not null,
  state text not null check (state in ('INACTIVE', 'NOTIFIED', 'RECEIVES_OCCURRING')),
  running_readers integer not null,
  last_activated_time timestamptz,
  last_empty_rowset_time timestamptz,
  failing_since timestamptz,
  failures integer not null,
  last_error text,
  last_sqlstate text,
  next_attempt_time timestamptz,
  tasks_started bigint not null,
  tasks_aborted bigint not null,
  task_limit_reached bigint not null,
  modify_date timestamptz not null
);

comment on table parley._p_queue_monitor is
'The queue monitors as the leading daemon reports them; the last three counts go on from one leader to the next.';

create table parley._p_activated_task (
  term bigint not null,
  queue_id integer not null,
  reader integer not null,
  pid integer,
  procedure_name text not null,
  execute_as parley._p_role_oid,
  started_at timestamptz not null,
  primary key (queue_id, reader)
);

comment on table parley._p_activated_task is
'Readers that run for longer, as the leading daemon reports them; pid is null when they are no sessions.';

create function parley._p_report_activation(term bigint, monitors jsonb, tasks jsonb) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not parley._p_holds_term(term) then
    return false;
  end if;
  perform set_config('synchronous_commit', 'off', true);
  insert into parley._p_queue_monitor as q (
    queue_id, term, state, running_readers, last_activated_time, last_empty_rowset_time, failing_since, failures,
    last_error, last_sqlstate, next_attempt_time, tasks_started, tasks_aborted, task_limit_reached, modify_date
  )
  select
    r.queue_id, case when r.is_gone then 0 else _p_report_activation.term end, r.state, r.running_readers,
    n.now - make_interval(secs => r.activated_ago_s),
    n.now - make_interval(secs => r.empty_ago_s), n.now - make_interval(secs => r.failing_for_s), r.failures,
    r.last_error, r.last_sqlstate, n.now + make_interval(secs => r.next_attempt_in_s), r.started, r.aborted,
    r.limit_reached, n.now
  from (select clock_timestamp() as now) as n
  cross join jsonb_to_recordset(monitors) as r (
    queue_id integer, state text, running_readers integer, activated_ago_s float8, empty_ago_s float8,
    failing_for_s float8, failures integer, last_error text, last_sqlstate text, next_attempt_in_s float8,
    started bigint, aborted bigint, limit_reached bigint, is_gone boolean
  )
  where exists (select from parley._p_queue as k where k.queue_id = r.queue_id)
  on conflict on constraint _p_queue_monitor_pkey do update
  set term = excluded.term, state = excluded.state, running_readers = excluded.running_readers,
    last_activated_time = coalesce(excluded.last_activated_time, q.last_activated_time),
    last_empty_rowset_time = coalesce(excluded.last_empty_rowset_time, q.last_empty_rowset_time),
    failing_since = excluded.failing_since, failures = excluded.failures, last_error = excluded.last_error,
    last_sqlstate = excluded.last_sqlstate, next_attempt_time = excluded.next_attempt_time,
    tasks_started = q.tasks_started + excluded.tasks_started, tasks_aborted = q.tasks_aborted + excluded.tasks_aborted,
    task_limit_reached = q.task_limit_reached + excluded.task_limit_reached,
    modify_date = excluded.modify_date;
  if tasks is not null then
    delete from parley._p_activated_task as t
    where t.term <> _p_report_activation.term
      or not exists (
        select
        from jsonb_to_recordset(tasks) as r (queue_id integer, reader integer, pid integer)
        where r.queue_id = t.queue_id and r.reader = t.reader and r.pid is not distinct from t.pid
      );
    insert into parley._p_activated_task as t (term, queue_id, reader, pid, procedure_name, execute_as, started_at)
    select _p_report_activation.term, r.queue_id, r.reader, r.pid, r.procedure_name, o.oid,
      clock_timestamp() - make_interval(secs => r.started_ago_s)
    from jsonb_to_recordset(tasks) as r (
      queue_id integer, reader integer, pid integer, procedure_name text, execute_as text, started_ago_s float8
    )
    left join pg_roles as o on o.rolname = r.execute_as
    on conflict on constraint _p_activated_task_pkey do nothing;
  end if;
  return true;
end
$$;

comment on function parley._p_report_activation(bigint, jsonb, jsonb) is
'Takes a report of the leading daemon; gives false, and changes nothing, when the term is over.
Arguments: term; monitors, the queue monitors that have changed, with counts since the last report; tasks, all
readers that run for longer, or null when these are as they were. Times are given in seconds from now, since the
daemon''s clock does not count.';

create view parley.dm_broker_queue_monitors with (security_barrier) as
select
  d.oid as database_id,
  m.queue_id,
  m.state,
  m.last_empty_rowset_time,
  m.last_activated_time,
  coalesce(w.sessions, 0)::integer as tasks_waiting,
  q.lookup_name as queue_name,
  m.running_readers,
  m.failures,
  m.failing_since,
  m.last_error,
  m.last_sqlstate,
  m.next_attempt_time,
  m.tasks_started,
  m.tasks_aborted,
  m.task_limit_reached,
  l.leader
from parley._p_queue_monitor as m
join parley._p_queue as q using (queue_id)
join parley._p_leader as l on l.term = m.term and l.term = parley._p_current_term()
join pg_catalog.pg_database as d on d.datname = current_database()
left join (
  select s.queue_id, count(*) as sessions
  from parley._p_waiting_session as s
  group by s.queue_id
) as w using (queue_id)
where (select parley._p_is_administrator(parley._p_current_role()));

comment on view parley.dm_broker_queue_monitors is
'The queue monitors of the daemon that leads, one for each queue with activation on; empty when no daemon runs. A
second old at most. For administrators.';
comment on column parley.dm_broker_queue_monitors.database_id is 'Oid of this database.';
comment on column parley.dm_broker_queue_monitors.queue_id is 'The queue that is watched.';
comment on column parley.dm_broker_queue_monitors.state is
'INACTIVE: nothing to do. NOTIFIED: readers were started, but nothing is received yet, or they fail.
RECEIVES_OCCURRING: readers receive.';
comment on column parley.dm_broker_queue_monitors.last_empty_rowset_time is
'When a reader last came back because the queue was empty.';
comment on column parley.dm_broker_queue_monitors.last_activated_time is 'When a reader was last started.';
comment on column parley.dm_broker_queue_monitors.tasks_waiting is
'Sessions that wait in RECEIVE or GET CONVERSATION GROUP on the queue, whoever started them; 0 for roles that may
not see the activity of others.';
comment on column parley.dm_broker_queue_monitors.queue_name is 'Name of the queue, as the statements take it.';
comment on column parley.dm_broker_queue_monitors.running_readers is
'Readers that the daemon has started and that have not left.';
comment on column parley.dm_broker_queue_monitors.failures is
'How many readers failed one after the other; 0 when the last one did not.';
comment on column parley.dm_broker_queue_monitors.failing_since is 'Since when readers fail, or null.';
comment on column parley.dm_broker_queue_monitors.last_error is
'Why the last reader failed; null while readers succeed.';
comment on column parley.dm_broker_queue_monitors.last_sqlstate is 'SQLSTATE of that error, if it has one.';
comment on column parley.dm_broker_queue_monitors.next_attempt_time is
'Until then no further reader is started, because the last ones failed.';
comment on column parley.dm_broker_queue_monitors.tasks_started is 'Readers started so far, by all leaders.';
comment on column parley.dm_broker_queue_monitors.tasks_aborted is 'Readers that failed so far.';
comment on column parley.dm_broker_queue_monitors.task_limit_reached is
'How often messages waited while MAX_QUEUE_READERS readers ran.';
comment on column parley.dm_broker_queue_monitors.leader is 'Name of the daemon.';

create view parley.dm_broker_activated_tasks with (security_barrier) as
select
  t.pid as spid,
  d.oid as database_id,
  t.queue_id,
  t.procedure_name,
  t.execute_as,
  q.lookup_name as queue_name,
  t.started_at
from parley._p_activated_task as t
join parley._p_queue as q using (queue_id)
join pg_catalog.pg_database as d on d.datname = current_database()
where t.term = parley._p_current_term()
  and (t.pid is null or exists (select from pg_catalog.pg_stat_activity as a where a.pid = t.pid and a.datid = d.oid))
  and (select parley._p_is_administrator(parley._p_current_role()));

comment on view parley.dm_broker_activated_tasks is
'The readers that the daemon has started and that have been running for a second or longer. For administrators.';
comment on column parley.dm_broker_activated_tasks.spid is 'Process id of its session; null for programs and webhooks.';
comment on column parley.dm_broker_activated_tasks.database_id is 'Oid of this database.';
comment on column parley.dm_broker_activated_tasks.queue_id is 'The queue that it reads.';
comment on column parley.dm_broker_activated_tasks.procedure_name is 'The procedure, or what else was started.';
comment on column parley.dm_broker_activated_tasks.execute_as is 'Oid of the role that a procedure runs under.';
comment on column parley.dm_broker_activated_tasks.queue_name is 'Name of the queue, as the statements take it.';
comment on column parley.dm_broker_activated_tasks.started_at is 'When it was started.';
