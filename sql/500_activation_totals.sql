-- What activation has done, in numbers that only grow, kept for the performance counters.
--
-- The daemon that leads adds up what happens and reports it every few seconds, all queues in one statement; nothing that sends or
-- receives writes here. What a daemon had not reported when it was killed is lost. Rows are locked in the order of queue_id. A queue
-- that is dropped leaves its numbers to the row of queue 0, so that no total ever falls.

create table parley._p_activation_total (
  queue_id integer primary key,
  started bigint not null default 0,
  procedures_invoked bigint not null default 0,
  aborted bigint not null default 0,
  limit_reached bigint not null default 0,
  -- Readers that ran at the time of the report; old reports do not count.
  running integer not null default 0,
  reported_at timestamptz not null default clock_timestamp()
) with (fillfactor = 50);

comment on table parley._p_activation_total is 'Cumulative counts of activation for each queue; queue 0 stands for the queues that are gone.';

-- What was enqueued on queues that have been dropped since.
create table parley._p_dropped_queue (
  enqueued bigint not null
);

comment on table parley._p_dropped_queue is 'One row for each queue that was dropped: how much had been put on it.';

create function parley._p_report_activation(
  queue_ids integer[], started bigint[], procedures_invoked bigint[], aborted bigint[], limit_reached bigint[], running integer[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_activation_total as t (queue_id, started, procedures_invoked, aborted, limit_reached, running, reported_at)
  select r.queue_id, r.started, r.procedures_invoked, r.aborted, r.limit_reached, r.running, clock_timestamp()
  from unnest(queue_ids, started, procedures_invoked, aborted, limit_reached, running)
    as r (queue_id, started, procedures_invoked, aborted, limit_reached, running)
  join parley._p_queue as q using (queue_id)
  order by r.queue_id
  on conflict on constraint _p_activation_total_pkey do update
  set started = t.started + excluded.started,
    procedures_invoked = t.procedures_invoked + excluded.procedures_invoked,
    aborted = t.aborted + excluded.aborted,
    limit_reached = t.limit_reached + excluded.limit_reached,
    running = excluded.running,
    reported_at = excluded.reported_at;
end
$$;

comment on function parley._p_report_activation(integer[], bigint[], bigint[], bigint[], bigint[], integer[]) is
'Adds what a daemon has done since its last report, one place of each array for a queue; queues that are gone are passed over.
Arguments: queue_ids, each once; started, procedures_invoked, aborted, limit_reached, how many since then; running, readers now.';

create function parley._p_keep_totals(queue_id integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_dropped_queue (enqueued)
  select parley._p_last_position(q.position_sequence)
  from parley._p_queue as q
  where q.queue_id = $1 and parley._p_last_position(q.position_sequence) > 0;
  with gone as (
    delete from parley._p_activation_total as t
    where t.queue_id = $1
    returning t.started, t.procedures_invoked, t.aborted, t.limit_reached
  )
  insert into parley._p_activation_total as t (queue_id, started, procedures_invoked, aborted, limit_reached)
  select 0, g.started, g.procedures_invoked, g.aborted, g.limit_reached
  from gone as g
  on conflict on constraint _p_activation_total_pkey do update
  set started = t.started + excluded.started,
    procedures_invoked = t.procedures_invoked + excluded.procedures_invoked,
    aborted = t.aborted + excluded.aborted,
    limit_reached = t.limit_reached + excluded.limit_reached;
end
$$;

comment on function parley._p_keep_totals(integer) is 'Keeps the counts of a queue that is about to be dropped.';
