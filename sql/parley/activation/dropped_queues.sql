-- Dropping a queue, and what queues that are gone have counted, so that no total ever falls.

create table parley._p_dropped_queue (
  enqueued bigint not null,
  tasks_started bigint not null,
  procedures_invoked bigint not null,
  tasks_aborted bigint not null,
  task_limit_reached bigint not null
);

comment on table parley._p_dropped_queue is
'The counts of queues that were used and then dropped: how much had been put on them, and what activation did for
them. A row for each, of which some are added up into one when there are a hundred.';

alter table parley._p_dropped_queue replica identity full;

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
  if (select count(*) from parley._p_dropped_queue as d) >= 100 then
    -- Those that others add up just now are left to them.
    with added as (
      delete from parley._p_dropped_queue as d
      where d.ctid = any (array(select o.ctid from parley._p_dropped_queue as o for update skip locked))
      returning d.enqueued, d.tasks_started, d.procedures_invoked, d.tasks_aborted, d.task_limit_reached
    )

    insert into parley._p_dropped_queue (
      enqueued, tasks_started, procedures_invoked, tasks_aborted, task_limit_reached
    )
    select sum(a.enqueued), sum(a.tasks_started), sum(a.procedures_invoked), sum(a.tasks_aborted),
      sum(a.task_limit_reached)
    from added as a
    having count(*) > 0;
  end if;
end
$$;

comment on function parley._p_keep_totals(integer) is
'Keeps the counts of a queue that is about to be dropped, and forgets its monitor.';

create function parley._p_drop_unused_sequences() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '10ms'
as $$
declare
  v_sequence regclass;
begin
  for v_sequence in
    select c.oid
    from pg_class as c
    where c.relnamespace = 'parley'::regnamespace
      and c.relkind = 'S'
      and c.relname like E'\\_p\\_queue\\_%'
      and not exists (
        select from parley._p_queue as q
        where c.oid = q.quota_sequence
          or c.oid in (q.position_sequence, q.wakeup_sequence, q.rollback_sequence, q.counter_sequence)
          or c.relname = format('_p_queue_%s_rate', q.queue_id)
      )
  loop
    begin
      execute format('drop sequence %s', v_sequence);
    exception
      when lock_not_available then
        null;
    end;
  end loop;
end
$$;

comment on function parley._p_drop_unused_sequences() is
'Drops the sequences of queues that are gone. A reader that waits in RECEIVE on such a queue still holds a lock on
them, and learns that it is gone only when that has committed: so a locked sequence is left to the next call.';

create function parley._p_count_messages_of_queue(queue_id integer) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select (
    select count(*)
    from parley._p_message as m
    where m.lane between parley._p_lane($1, 10) and parley._p_waiting_lane($1)
  ) + (
    select count(*) from parley._p_delayed_message as d where d.queue_id = $1
  )
$$;

comment on function parley._p_count_messages_of_queue(integer) is
'Counts the messages of a simple queue: those that wait, are set aside or are not due yet.';

create function parley.drop_queue(
  queue text, force boolean default false, caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'CONTROL');
  v_service text;
  v_messages bigint := 0;
begin
  select case
    when parley._p_is_visible(v_caller, 'service', s.service_id, s.owner) then format('service "%s"', s.name)
  end as name
  into v_service
  from parley._p_service as s
  where s.queue_id = v_queue.queue_id
  order by 1 nulls last
  limit 1;
  if v_service is not null then
    found := parley._p_raise(3716, 'used', 'queue', queue, v_service);
  elsif found then
    found := parley._p_raise(3716, 'used unseen', 'queue', queue, 'service');
  end if;
  if v_queue.is_simple then
    v_messages := parley._p_count_messages_of_queue(v_queue.queue_id);
    if v_messages > 0 and force is not true then
      found := parley._p_raise(3716, 'queue holds messages', v_queue.lookup_name, v_messages::text);
    end if;
  end if;
  perform parley._p_drop_event_notifications(array(
    select n.notification_id from parley._p_event_notification as n where n.queue_id = v_queue.queue_id
  ));
  execute format('drop view if exists parley_queue.%I', parley._p_queue_view_name(v_queue.queue_id));
  delete from parley._p_permission as p where p.class = 'queue' and p.object_id = v_queue.queue_id;
  delete from parley._p_scan_hint as h where parley._p_owner_of_lane(h.lane) = v_queue.queue_id;
  perform parley._p_keep_totals(v_queue.queue_id);
  delete from parley._p_queue as q where q.queue_id = v_queue.queue_id;
  perform parley._p_drop_unused_sequences();
  return v_messages;
end
$$;

comment on function parley.drop_queue(text, boolean, parley.caller) is
'Drops a queue that no service uses; sessions waiting in RECEIVE on it fail at once. A simple queue that holds messages
is dropped with them only where force says so. Gives how many messages were dropped: those that committed before.
Arguments: queue; force, whether messages may be dropped (null: no).
Errors: 208 not found, 229 not allowed, 3716 still used, or messages wait in it, 9663 system object.
Source: spec 2.4.';
