-- All that a monitoring system asks a database for, in one statement.

create function parley.broker_metrics(caller parley.caller default parley.current_caller()) returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  if parley._p_may_view_state(v_caller) is not true then
    found := parley._p_raise(229, 'metrics', pg_get_userbyid(v_caller));
  end if;
  return jsonb_build_object(
    'schema_version', (select i.schema_version from parley._p_installation as i),
    'conversation_endpoints', parley._p_count_up_to('parley._p_endpoint', 10000),
    'timers_pending', parley._p_count_up_to('parley._p_alarm', 10000),
    'timers_late', (
      select count(*)
      from (
        -- The time as a value of its own: the index could not bound a search by the function.
        (select a.endpoint_id,
          a.kind from parley._p_alarm as a where a.due_at < (select clock_timestamp() - interval '1 s') limit 10000)
        union
        -- Those that were put off.
        (select a.endpoint_id,
          a.kind from parley._p_alarm as a where a.first_due_at < (
            select clock_timestamp() - interval '1 s'
          ) limit 10000)
      ) as a
    ),
    'timer_oldest_due_seconds', (
      select greatest(extract(epoch from clock_timestamp() - least(d.due_at, f.first_due_at)), 0)
      from (select min(a.due_at) as due_at from parley._p_alarm as a) as d
      cross join (select min(a.first_due_at) as first_due_at from parley._p_alarm as a) as f
    ),
    'transmission_messages', parley._p_count_up_to('parley._p_transmission', 10000),
    'transmission_oldest_seconds', (
      select extract(epoch from clock_timestamp() - t.enqueued_at)
      from parley._p_transmission as t
      order by t.transmission_id
      limit 1
    ),
    'certificate_not_after', (select extract(epoch from min(c.not_after)) from parley.broker_certificates as c),
    'rows_inserted', pg_stat_get_tuples_inserted('parley._p_message'::regclass),
    'rows_deleted', pg_stat_get_tuples_deleted('parley._p_message'::regclass),
    'rows_dead', pg_stat_get_dead_tuples('parley._p_message'::regclass),
    'store_bytes', pg_total_relation_size('parley._p_message'),
    'receives', pg_stat_get_tuples_inserted('parley._p_receive_progress'::regclass),
    'transactions_rolled_back',
    (select s.xact_rollback from pg_stat_database as s where s.datname = current_database()),
    'queues', (
      select coalesce(
        jsonb_agg(
          jsonb_build_object(
            'queue_id', q.queue_id,
            'queue', q.lookup_name,
            'is_receive_enabled', q.is_receive_enabled,
            -- Poison messages wait; asking locks a sequence, which should not happen for thousands of queues in one
            -- transaction.
            'is_poisoned', f.waiting_messages > 0 and parley._p_is_poisoned(q.queue_id),
            'set_aside_conversations', coalesce(a.conversations, 0),
            'is_activated', q.is_activation_enabled,
            'max_readers', q.max_readers,
            'enqueued_rows', f.enqueued_rows,
            'dequeued_rows', f.enqueued_rows - f.waiting_rows,
            'waiting_messages', f.waiting_messages,
            'is_estimated', f.is_estimated,
            'oldest_seconds', extract(epoch from clock_timestamp() - f.oldest_enqueue_time)
          )
          order by q.queue_id
        ),
        '[]'
      )
      from parley._p_queue as q
      join parley._p_queue_figures() as f using (queue_id)
      left join (
        select s.queue_id, count(*) as conversations
        from parley._p_set_aside as p
        join parley._p_service as s on s.service_id = p.service_id and p.retry_at is null
        group by s.queue_id
      ) as a using (queue_id)
      where q.queue_id >= 65536
    )
  );
end
$$;

comment on function parley.broker_metrics(parley.caller) is
'Gives figures of the broker and of each queue for monitoring, as one JSON object; docs/guides/monitoring.md defines
each. It reads no more than 1,000 rows of a queue, and leaves no locks.
Errors: 229 for callers that are neither administrators nor members of pg_monitor.
Source: spec 8.4, 9.5.';
