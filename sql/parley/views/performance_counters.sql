-- The performance counters, under their own names (spec 8.4), each computed when it is read.
--
-- docs/guides/monitoring.md says what each is made of. Counters called /sec are cumulative, with the type by which
-- tools take the difference of two readings. Those of transport and forwarding are what the daemons that live have
-- counted since they began (transport/daemon_reports.sql); _p_transport_counter says of which figures each is made.
-- Transmission objects are 0, since this broker has none.

create view parley._p_activation_totals as
select coalesce(sum(t.started), 0)::bigint as started, coalesce(sum(t.invoked), 0)::bigint as invoked,
  coalesce(sum(t.aborted), 0)::bigint as aborted, coalesce(sum(t.limit_reached), 0)::bigint as limit_reached,
  coalesce(sum(t.running), 0)::bigint as running
from (
  select m.tasks_started as started,
    case when q.activation_procedure is null then 0 else m.tasks_started end as invoked,
    m.tasks_aborted as aborted, m.task_limit_reached as limit_reached,
    -- The readers of an earlier leader are gone with it.
    case when m.term = parley._p_current_term() then m.running_readers end as running
  from parley._p_queue_monitor as m
  join parley._p_queue as q using (queue_id)
  union all
  select d.tasks_started, d.procedures_invoked, d.tasks_aborted, d.task_limit_reached, 0
  from parley._p_dropped_queue as d
) as t;

comment on view parley._p_activation_totals is
'The counts of activation in all queues, those included that are dropped.';

create function parley._p_enqueued_by_priority() returns bigint[]
language sql
set search_path = pg_catalog, pg_temp
as $$
  -- A sequence does not know priorities: where a queue has only one, all of its messages have that.
  with queue as (
    select (case when q.priorities & (q.priorities - 1) = 0 then log(2, q.priorities)::integer else 5 end) as priority,
      d.value
    from (
      select q.priorities, row_number() over (order by q.queue_id) as number from parley._p_queue as q
    ) as q
    join unnest(
      parley._p_last_values((select array_agg(q.position_sequence order by q.queue_id) from parley._p_queue as q))
    ) with ordinality as d (value, number) using (number)
    union all
    select 5, d.enqueued
    from parley._p_dropped_queue as d
    union all
    select 5, parley._p_framed()
  )
  select array_agg(p.value order by p.n)
  from (
    select p.n, coalesce(sum(q.value), 0)::bigint as value
    from generate_series(1, 10) as p (n)
    left join queue as q on q.priority = p.n
    group by p.n
  ) as p
$$;

comment on function parley._p_enqueued_by_priority() is
'Gives how many messages were ever put on queues, by priority from 1 to 10.';

create view parley._p_transport_counter as
select c.object, c.name, c.figures::text[] as figures, c.per::text[] as per
from (
  values
    ('Broker Statistics', 'Enqueued Transport Msgs Total', '{received}', '{}'),
    ('Broker Statistics', 'Enqueued Transport Msgs/sec', '{received}', '{}'),
    ('Broker Statistics', 'Enqueued Transport Msg Frag Tot', '{fragments_received}', '{}'),
    ('Broker Statistics', 'Enqueued Transport Msg Frags/sec', '{fragments_received}', '{}'),
    ('Broker Statistics', 'Corrupted Messages Total', '{corrupted,discarded,forged}', '{}'),
    ('Broker Statistics', 'Dropped Messages Total', '{dropped}', '{}'),
    ('Broker Statistics', 'Forwarded Messages Total', '{forwarded}', '{}'),
    ('Broker Statistics', 'Forwarded Messages/sec', '{forwarded}', '{}'),
    ('Broker Statistics', 'Forwarded Msg Byte Total', '{forwarded_bytes}', '{}'),
    ('Broker Statistics', 'Forwarded Msg Bytes/sec', '{forwarded_bytes}', '{}'),
    ('Broker Statistics', 'Forwarded Msg Discarded Total', '{forward_dropped}', '{}'),
    ('Broker Statistics', 'Forwarded Msgs Discarded/sec', '{forward_dropped}', '{}'),
    ('Broker Statistics', 'Forwarded Pending Msg Bytes', '{forward_pending_bytes}', '{}'),
    ('Broker Statistics', 'Forwarded Pending Msg Count', '{forward_pending}', '{}'),
    ('Broker/DBM Transport', 'Open Connection Count', '{connections}', '{}'),
    -- A message that has left is being sent until the far side has it. One that has come is pending until the database
    -- has it.
    ('Broker/DBM Transport', 'Current Bytes for Recv I/O', '{}', '{}'),
    ('Broker/DBM Transport', 'Current Bytes for Send I/O', '{open_send_bytes}', '{}'),
    ('Broker/DBM Transport', 'Current Msg Frags for Send I/O', '{open_sends}', '{}'),
    ('Broker/DBM Transport', 'Pending Bytes for Recv I/O', '{open_receive_bytes}', '{}'),
    ('Broker/DBM Transport', 'Pending Bytes for Send I/O', '{}', '{}'),
    ('Broker/DBM Transport', 'Pending Msg Frags for Recv I/O', '{open_receives}', '{}'),
    ('Broker/DBM Transport', 'Pending Msg Frags for Send I/O', '{}', '{}'),
    ('Broker/DBM Transport', 'Receive I/O bytes/sec', '{bytes_received}', '{}'),
    ('Broker/DBM Transport', 'Receive I/O Bytes Total', '{bytes_received}', '{}'),
    ('Broker/DBM Transport', 'Receive I/O Len Avg', '{bytes_received}', '{frames_received}'),
    ('Broker/DBM Transport', 'Receive I/Os/sec', '{frames_received}', '{}'),
    ('Broker/DBM Transport', 'Recv I/O Buffer Copies bytes/sec', '{}', '{}'),
    ('Broker/DBM Transport', 'Recv I/O Buffer Copies Count', '{}', '{}'),
    ('Broker/DBM Transport', 'Message Fragment Receives/sec', '{link_messages_received}', '{}'),
    ('Broker/DBM Transport', 'Msg Fragment Recv Size Avg', '{bytes_received}', '{link_messages_received}'),
    ('Broker/DBM Transport', 'Send I/O bytes/sec', '{bytes_sent}', '{}'),
    ('Broker/DBM Transport', 'Send I/O Bytes Total', '{bytes_sent}', '{}'),
    ('Broker/DBM Transport', 'Send I/O Len Avg', '{bytes_sent}', '{frames_sent}'),
    ('Broker/DBM Transport', 'Send I/Os/sec', '{frames_sent}', '{}'),
    ('Broker/DBM Transport', 'Message Fragment Sends/sec', '{link_messages_sent}', '{}'),
    ('Broker/DBM Transport', 'Msg Fragment Send Size Avg', '{bytes_sent}', '{link_messages_sent}')
) as c (object, name, figures, per)
union all
select 'Broker/DBM Transport', format('Message Fragment P%s Sends/sec', p.n), array[format('sent,%s', p.n - 1)], '{}'
from generate_series(1, 10) as p (n);

comment on view parley._p_transport_counter is
'The performance counters that the daemons count: the figures of their reports that a counter adds up (none for one that
is always 0), and those by whose sum it is divided, for averages. A figure is a name of
internal/store/transport/figures.go; behind a comma stands the place in a list.';

create function parley._p_reported(figures text[]) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(sum((r.figures #>> format('{%s}', f.name)::text[])::bigint), 0)::bigint
  from parley._p_recent_report as r
  cross join unnest($1) as f (name)
$$;

comment on function parley._p_reported(text[]) is
'Adds up figures of transport over the daemons that live; since they have begun.';

create function parley._p_transport_counters() returns table (object text, name text, value bigint)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select c.object, c.name,
    case
      when c.per = '{}' then parley._p_reported(c.figures)
      else coalesce(parley._p_reported(c.figures) / nullif(parley._p_reported(c.per), 0), 0)
    end
  from parley._p_transport_counter as c
$$;

comment on function parley._p_transport_counters() is
'Gives the performance counters that the daemons count: those of transport, and
those of messages that come and go by it.';

create function parley._p_performance_counters(caller parley.caller default parley.current_caller())
returns table (object_name text, counter_name text, instance_name text, cntr_value bigint, cntr_type integer)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_activation record;
  v_enqueued bigint;
  v_by_priority bigint[];
  v_received bigint := pg_stat_get_tuples_inserted('parley._p_receive_progress'::regclass);
  v_to_transmission bigint := pg_stat_get_tuples_inserted('parley._p_transmission'::regclass);
  v_from_transmission bigint := pg_stat_get_tuples_deleted('parley._p_transmission'::regclass);
  v_rollbacks bigint := (select s.xact_rollback from pg_stat_database as s where s.datname = current_database());
begin
  if parley._p_may_view_state(v_caller) is not true then
    return;
  end if;
  select * into v_activation from parley._p_activation_totals;
  v_by_priority := parley._p_enqueued_by_priority();
  v_enqueued := (select sum(p.value) from unnest(v_by_priority) as p (value));
  return query
  select 'SQLServer:Broker Activation', c.name, i.name, c.value,
    case when c.name like '%/sec' then 272696576 else 65792 end
  from (
    values
      ('Stored Procedures Invoked/sec', v_activation.invoked),
      ('Task Limit Reached', v_activation.limit_reached),
      ('Task Limit Reached/sec', v_activation.limit_reached),
      ('Tasks Aborted/sec', v_activation.aborted),
      ('Tasks Running', v_activation.running),
      ('Tasks Started/sec', v_activation.started)
  ) as c (name, value)
  cross join (values (current_database()::text), ('_Total')) as i (name);
  return query
  select 'SQLServer:' || c.object, c.name, '', c.value, case when c.name like '%/sec' then 272696576 else 65792 end
  from (
    values
      ('Broker Statistics', 'SQL SENDs/sec', v_enqueued),
      ('Broker Statistics', 'SQL SEND Total', v_enqueued),
      ('Broker Statistics', 'SQL RECEIVEs/sec', v_received),
      ('Broker Statistics', 'SQL RECEIVE Total', v_received),
      ('Broker Statistics', 'Broker Transaction Rollbacks', v_rollbacks),
      ('Broker Statistics', 'Dialog Timer Event Count', parley._p_count_up_to('parley._p_alarm', 10000)),
      ('Broker Statistics', 'Activation Errors Total', v_activation.aborted),
      ('Broker Statistics', 'Enqueued Messages Total', v_enqueued),
      ('Broker Statistics', 'Enqueued Messages/sec', v_enqueued),
      ('Broker Statistics', 'Enqueued Local Messages Total', v_enqueued),
      ('Broker Statistics', 'Enqueued Local Messages/sec', v_enqueued),
      ('Broker Statistics', 'Enqueued Transmission Msgs/sec', v_to_transmission),
      ('Broker Statistics', 'Dequeued Transmission Msgs/sec', v_from_transmission),
      ('Broker TO Statistics', 'Avg. Length of Batched Writes', 0),
      ('Broker TO Statistics', 'Avg. Time Between Batches (ms)', 0),
      ('Broker TO Statistics', 'Avg. Time to Write Batch (ms)', 0),
      ('Broker TO Statistics', 'Tran Object Gets/sec', 0),
      ('Broker TO Statistics', 'Tran Objects Marked Dirty/sec', 0),
      ('Broker TO Statistics', 'Tran Object Writes/sec', 0)
  ) as c (object, name, value)
  union all
  select 'SQLServer:Broker Statistics', format('Enqueued P%s Messages/sec', p.n), '', v_by_priority[p.n], 272696576
  from generate_series(1, 10) as p (n)
  union all
  select 'SQLServer:' || c.object, c.name, '', c.value, case when c.name like '%/sec' then 272696576 else 65792 end
  from parley._p_transport_counters() as c;
end
$$;

comment on function parley._p_performance_counters(parley.caller) is
'Computes the performance counters, for callers that may see them. Spec 8.4.';

create view parley.dm_os_performance_counters as
select c.object_name, c.counter_name, c.instance_name, c.cntr_value, c.cntr_type
from parley._p_performance_counters() as c;

comment on view parley.dm_os_performance_counters is
'Performance counters of the broker under the names of SQL Server, for administrators and members
of pg_monitor; others see none.';

comment on column parley.dm_os_performance_counters.object_name is
'Group of counters, such as SQLServer:Broker Statistics.';
comment on column parley.dm_os_performance_counters.counter_name is 'Counter.';
comment on column parley.dm_os_performance_counters.instance_name is
'Database, or _Total, for counters of activation; empty for the others.';
comment on column parley.dm_os_performance_counters.cntr_value is
'Its value; of a counter called /sec the total, of which two readings make a rate.';
comment on column parley.dm_os_performance_counters.cntr_type is
'65792 for a number as it is, 272696576 for one to take the rate of.';
