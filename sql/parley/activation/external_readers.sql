-- The programs that the daemon starts outside of the database, and for which queue. It is the one place that shows
-- secrets, and for administrators only.

create function parley._p_external_definition(activation parley._p_external_activation) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case activation.kind
    when 'program' then jsonb_build_object(
      'program', activation.program,
      'environment', activation.environment,
      'working_directory', activation.working_directory,
      'stop_timeout_ms', activation.stop_timeout_ms,
      'schema_name', (select q.schema_name from parley._p_queue as q where q.queue_id = activation.queue_id),
      'queue_name', (select q.name from parley._p_queue as q where q.queue_id = activation.queue_id)
    )
    when 'webhook' then jsonb_build_object(
      'url', activation.url,
      'secret', activation.secret,
      'sealed_secret', encode(activation.sealed_secret, 'base64'),
      'timeout_ms', activation.timeout_ms,
      'batch_size', activation.batch_size,
      'groups', activation.groups,
      'body_format', activation.body_format,
      'system_messages', activation.system_messages,
      'max_attempts', activation.max_attempts,
      'is_simple', (select q.is_simple from parley._p_queue as q where q.queue_id = activation.queue_id),
      'broker_instance', (select b.service_broker_guid from parley._p_broker as b)
    )
  end
$$;

comment on function parley._p_external_definition(parley._p_external_activation) is
'Gives what a starter of readers needs to know, with secrets.';

create function parley._p_external_readers()
returns table (queue_id integer, kind text, min_readers integer, max_readers integer, definition jsonb)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select a.queue_id, a.kind, a.min_instances, a.max_instances, parley._p_external_definition(a)
  from parley._p_external_activation as a
  where a.is_enabled
  union all
  select n.queue_id, 'event', 0, 1, jsonb_build_object('notifications', count(*))
  from parley._p_event_notification as n
  where n.event = 'QUEUE_ACTIVATION'
  group by n.queue_id
$$;

comment on function parley._p_external_readers() is
'Gives for each queue that is activated from outside of the database the kind of its readers (program, webhook,
event), how many run at least and at most, and the definition for whoever starts them, with secrets.';
