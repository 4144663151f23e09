-- What queues that are gone have counted, so that no total ever falls.

create table parley._p_dropped_queue (
  enqueued bigint not null,
  tasks_started bigint not null,
  procedures_invoked bigint not null,
  tasks_aborted bigint not null,
  task_limit_reached bigint not null
);

comment on table parley._p_dropped_queue is
'One row for each queue that was used and then dropped: how much had been put on it, and what activation did for it.';

create function parley._p_keep_totals(queue_id integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_dropped_queue (enqueued, tasks_started, procedures_invoked, tasks_aborted, task_limit_reached)
  select t.enqueued, t.started, case when q.activation_procedure is null then 0 else t.started end, t.aborted,
    t.limit_reached
  from parley._p_queue as q
  left join parley._p_queue_monitor as m on m.queue_id = q.queue_id
  cross join lateral (
    select coalesce(parley._p_last_position(q.position_sequence), 0) as enqueued,
      coalesce(m.tasks_started, 0) as started,
      coalesce(m.tasks_aborted, 0) as aborted, coalesce(m.task_limit_reached, 0) as limit_reached
  ) as t
  where q.queue_id = $1 and greatest(t.enqueued, t.started, t.aborted, t.limit_reached) > 0;
  delete from parley._p_queue_monitor as m where m.queue_id = $1;
end
$$;

comment on function parley._p_keep_totals(integer) is
'Keeps the counts of a queue that is about to be dropped, and forgets its monitor.';
