-- The findings of parley diagnose about mail: each with the statement that cures it. The broker calls _p_find_faults,
-- which it finds by its name (parley/diagnosis/diagnose.sql). Nothing is locked, and nothing is counted.

create view parley_mail.diagnosis_checks as
select c.code, c.part, c.level, c.patience, c.meaning
from (values
  ('mail-configuration', 'CONFIGURATION', 'ERROR', interval '0', 'A daemon cannot use the configuration.'),
  ('mail-binding', 'CONFIGURATION', 'ERROR', '0', 'A daemon cannot listen where a receive connector says.'),
  ('mail-certificate', 'CONFIGURATION', 'ERROR', '0', 'A daemon cannot read the certificate of a send connector.'),
  ('mail-certificate-expired', 'CONFIGURATION', 'ERROR', '0', 'The certificate of a connector has expired.'),
  ('mail-certificate-expiring', 'CONFIGURATION', 'WARNING', '0',
    'The certificate of a connector expires within 30 days.'),
  ('mail-signing-key-missing', 'CONFIGURATION', 'WARNING', '0',
    'A send connector signs, and an accepted domain has no key: its mail leaves without a signature.'),
  ('mail-service-missing', 'CONFIGURATION', 'WARNING', '0',
    'A service binding names a service that does not exist or does not accept its contract: its mail waits.'),
  ('mail-no-daemon', 'RUNTIME', 'ERROR', '1 minute', 'Mail is configured, and no daemon serves it.'),
  ('mail-daemon-outdated', 'RUNTIME', 'WARNING', '1 minute', 'A daemon uses an older configuration.'),
  ('mail-maintenance', 'RUNTIME', 'WARNING', '1 minute',
    'A task of maintenance fails, or somebody holds what it needs.'),
  ('mail-pressure', 'RUNTIME', 'WARNING', '0', 'A resource is under pressure.'),
  ('mail-submission-backlog', 'RUNTIME', 'WARNING', '1 minute', 'More than 100 messages wait to be categorized.'),
  ('mail-queue-retry', 'RUNTIME', 'WARNING', '1 hour', 'The next hop of a queue has not been reached for long.'),
  ('mail-queue-suspended', 'RUNTIME', 'WARNING', '1 hour', 'A queue is suspended, and messages wait in it.'),
  ('mail-unreachable', 'RUNTIME', 'ERROR', '0', 'No send connector is for where messages are to go.'),
  ('mail-poison', 'RUNTIME', 'ERROR', '0', 'Messages were set aside because they always fail, or are held.'),
  ('mail-service-error', 'RUNTIME', 'WARNING', '0',
    'Conversations with a service ended with an error: what it had not received of them is lost.'),
  ('mail-service-answers', 'RUNTIME', 'WARNING', '0', 'A service answers mail transport, where nobody reads it.'),
  ('mail-generation-held', 'RUNTIME', 'WARNING', '1 hour',
    'A transaction that stays open has read or written a body, and keeps the space of deleted ones.')
) as c (code, part, level, patience, meaning);

comment on view parley_mail.diagnosis_checks is 'Gives the findings of parley diagnose about mail.';

create function parley_mail._p_cure_of_pressure(resource text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when resource in (
      'submission queue', 'process memory', 'system memory', 'memory stalls', 'uncommitted', 'batch points'
    ) then 'parley mail serve  -- one more, on another machine'
    when resource like '%volume' then 'df  -- free some space, or make the volume larger'
    when resource = 'oldest transaction'
      then 'select pid, xact_start, query from pg_stat_activity order by xact_start limit 1;  -- and end it'
    when resource = 'connections' then 'alter system set max_connections = <more>;  -- or end sessions that are idle'
    when resource = 'retained log'
      then 'select slot_name, active, restart_lsn from pg_replication_slots;  -- and drop those that nobody uses'
    when resource = 'replica lag' then 'select * from pg_stat_replication;  -- and see what the standby waits for'
    when resource = 'vacuum debt' then 'vacuum (analyze);'
    else 'select * from parley_mail.pressure;'
  end
$$;

comment on function parley_mail._p_cure_of_pressure(text) is 'Gives what relieves a resource.';

create function parley_mail._p_find_daemon_faults() returns table (
  code text, object_kind text, object_name text, cause text, since timestamptz, cure text
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with daemon as (
    select d.name, d.configuration_version, d.resources, d.problems, d.reported_at,
      d.stopped_at is null and d.reported_at > clock_timestamp() - interval '1 minute' as is_serving
    from parley_mail._p_daemon as d
  )

  select p.code, p.kind as object_kind, p.object as object_name, p.cause, d.reported_at as since,
    case
      when p.cure is not null then p.cure
      when p.code = 'mail-configuration' then 'parley mail apply <corrected file>'
      when p.code = 'mail-binding' then
        'select parley_mail.alter_object(''receive connector'', <name>, ''{"bindings": [<address:port>]}'');'
      else format(
        'select parley_mail.alter_object(%L, %L, ''{"certificate_file": <file>, "certificate_key_file": <file>}'');',
        p.kind, p.object
      )
    end as cure
  from daemon as d
  cross join lateral jsonb_to_recordset(d.problems) as p (code text, kind text, object text, cause text, cure text)
  -- A daemon that is gone says why none serves. Where one serves, it says what is wrong now.
  where d.is_serving
    or (
      not exists (select from daemon as o where o.is_serving)
      and d.reported_at = (select max(o.reported_at) from daemon as o)
    )
  union all
  select 'mail-no-daemon', 'mail', current_database()::text,
    coalesce(
      'The last daemon to serve was ' || (select d.name from daemon as d order by d.reported_at desc limit 1) || '.',
      'None has ever served.'
    ),
    coalesce((select max(d.reported_at) from daemon as d), v.changed_at), 'parley mail serve'
  from parley_mail._p_organization as o
  cross join parley_mail._p_configuration_version as v
  where o.is_set_up and not exists (select from daemon as d where d.is_serving)
  union all
  select 'mail-daemon-outdated', 'daemon', d.name,
    format('It uses version %s of the configuration, and %s is current.', d.configuration_version, v.version),
    v.changed_at, 'select name, problems from parley_mail.daemons;  -- and see its log'
  from daemon as d
  cross join parley_mail._p_configuration_version as v
  where d.is_serving and d.configuration_version < v.version
  union all
  select 'mail-maintenance', 'task', f.task,
    format('It has failed since %s, the last time at %s: %s.', f.failing_since, f.failed_at, f.error),
    f.failing_since,
    'select pid, usename, xact_start, query from pg_stat_activity where xact_start is not null order by xact_start;  '
      '-- and end the transaction that is in its way'
  from parley_mail._p_maintenance_failure as f
  union all
  select 'mail-pressure', 'resource', r.resource,
    format('It is at %s %s on %s: %s.', r.value, r.unit, d.name, r.level), null::timestamptz,
    parley_mail._p_cure_of_pressure(r.resource)
  from daemon as d
  cross join lateral jsonb_to_recordset(d.resources) as r (resource text, value numeric, unit text, level text)
  where d.is_serving and r.level <> 'NORMAL'
$$;

comment on function parley_mail._p_find_daemon_faults() is
'Finds what daemons have reported: what they cannot do, which resources are short; and that none serves.';

create function parley_mail._p_find_unsigned_domains() returns table (
  code text, object_kind text, object_name text, cause text, since timestamptz, cure text
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with setting as (
    select o.kind, o.name, o.changed_at, parley_mail._p_effective(o.kind, o.settings) as settings
    from parley_mail._p_object as o
    where o.kind in ('accepted domain', 'send connector', 'signing key')
  )

  select 'mail-signing-key-missing', 'accepted domain', o.name, 'It has no signing key that is enabled.',
    o.changed_at,
    format(
      'select parley_mail.create_object(''signing key'', %L, ''{"domain": %s, "selector": <selector>, '
        '"private_key": <PEM>}'');',
      o.name, to_json(o.name)
    )
  from setting as o
  where o.kind = 'accepted domain' and o.name not like '*%'
    and exists (
      select
      from setting as s
      where s.kind = 'send connector'
        and (s.settings ->> 'enabled')::boolean and (s.settings ->> 'sign')::boolean
    )
    and not exists (
      select
      from setting as k
      where k.kind = 'signing key'
        and (k.settings ->> 'enabled')::boolean
        and parley_mail._p_folded(k.settings ->> 'domain') = parley_mail._p_folded(o.name)
    )
$$;

comment on function parley_mail._p_find_unsigned_domains() is
'Finds accepted domains without a key, where a send connector signs.';

create function parley_mail._p_find_missing_services() returns table (
  code text, object_kind text, object_name text, cause text, since timestamptz, cure text
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'mail-service-missing', 'service binding', o.name,
    upper(left(w.warning, 1) collate "C") || substr(w.warning, 2) || '.',
    o.changed_at,
    format(
      case
        when exists (select from parley.services as s where s.name = e.settings ->> 'service')
          then 'select parley.alter_service(%1$L, add_contracts => array[%2$L]);'
        else 'select parley.create_service(%1$L, <queue>, array[%2$L]);  -- or correct the name in the binding'
      end, e.settings ->> 'service', e.settings ->> 'contract'
    )
  from parley_mail._p_object as o
  cross join lateral (
    select parley_mail._p_warning_about(o) as warning
    offset 0
  ) as w
  cross join lateral (select parley_mail._p_effective(o.kind, o.settings) as settings) as e
  where o.kind = 'service binding' and w.warning is not null
$$;

comment on function parley_mail._p_find_missing_services() is
'Finds service bindings whose service does not exist, or does not accept their contract.';

create function parley_mail._p_find_unread_replies() returns table (
  code text, object_kind text, object_name text, cause text, since timestamptz, cure text
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case when u.is_error then 'mail-service-error' else 'mail-service-answers' end, 'service', u.service,
    case
      when u.is_error then format(
        'Conversations with it ended with an error (%s), the last at %s: %s', u.replies, u.last_at, u.last_text
      )
      else format(
        'It answers on conversations of mail transport (%s), the last time at %s, and nobody reads it.', u.replies,
        u.last_at
      )
    end,
    u.last_at,
    case
      when u.is_error
        then format('select * from parley.diagnose_configuration(''parley_mail/Status'', %L);', u.service)
      else
        'select parley_mail.alter_object(''service binding'', <name>, ''{"from_service": <a service of yours>}'');'
    end
  from parley_mail._p_unread_reply as u
  -- Lanes that have stopped need nothing.
  where u.last_at > clock_timestamp() - interval '1 day'
$$;

comment on function parley_mail._p_find_unread_replies() is
'Finds services that answer where nobody reads, or whose conversations end with errors.';

create function parley_mail._p_find_held_generations() returns table (
  code text, object_kind text, object_name text, cause text, since timestamptz, cure text
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'mail-generation-held', 'generation', h.generation::text,
    format(
      '%s has read or written in it, or has a snapshot that may show bodies in it, and keeps its transaction open: '
      'its space is not given back.',
      coalesce('Session ' || h.pid, 'A prepared transaction')
    ),
    h.since,
    coalesce(format('select pg_terminate_backend(%s);', h.pid), format('rollback prepared %L;', h.prepared))
  from parley_store.held_generations as h
$$;

comment on function parley_mail._p_find_held_generations() is
'Finds transactions that keep generations of bodies from being given back.';

create function parley_mail._p_find_queue_faults() returns table (
  code text, object_kind text, object_name text, cause text, since timestamptz, cure text
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with lane as materialized (
    select l.lane, l.status, l.failing_since, l.last_error, l.is_permanent, l.suspended_at, l.suspended_for, w.items,
      l.lane_id
    from parley_store.lanes as l
    join parley_store.lane_counts as w using (lane_id)
    where l.system in ('mail', 'mail_service')
  )

  select 'mail-submission-backlog', 'queue', 'SUBMISSION/-/-',
    format('%s messages wait to be categorized.', s.messages),
    (
      select b.oldest_enqueue_time
      from parley.queue_backlogs('parley_mail_submission', caller => parley.current_caller()) as b
    ),
    case
      when o.submission_suspended_at is null then 'parley mail serve  -- one more'
      else 'select parley_mail.resume_queue(''SUBMISSION'');'
    end
  from parley_mail._p_submission_queue() as s
  cross join parley_mail._p_organization as o
  where s.messages > 100
  union all
  select 'mail-queue-retry', 'queue', l.lane,
    format('%s messages wait; the last error is: %s', l.items, coalesce(l.last_error, 'unknown')), l.failing_since,
    format('select parley_mail.retry_queue(%L);', l.lane)
  from lane as l
  where l.status = 'RETRY' and l.items > 0
  union all
  select 'mail-queue-suspended', 'queue', l.lane,
    format('%s messages wait; it is suspended: %s.', l.items, coalesce(l.suspended_for, 'no reason given')),
    l.suspended_at, format('select parley_mail.resume_queue(%L);', l.lane)
  from lane as l
  where l.status = 'SUSPENDED' and not l.is_permanent and l.items > 0
  union all
  select 'mail-' || lower(p.kind collate "C"), 'queue', l.lane,
    format('%s messages are in it.', l.items),
    parley_store.oldest_in_lane(l.lane_id),
    case l.lane
      when 'POISON/-/-' then 'select parley_mail.resume_queue(''POISON/-/-'');  -- once what they fail by is cured'
      else 'select parley_mail.create_object(''send connector'', <name>, ''{"address_spaces": '
        '[{"pattern": <domain>}]}''), parley_mail.resume_queue(''UNREACHABLE/-/-'');'
    end
  from lane as l
  cross join parley_mail._p_parts_of_lane(l.lane) as p
  where l.lane in ('POISON/-/-', 'UNREACHABLE/-/-') and l.items > 0
$$;

comment on function parley_mail._p_find_queue_faults() is 'Finds queues in which messages wait for long.';

create function parley_mail._p_find_faults(part text, patience interval)
returns table (
  code text, level text, object_kind text, object_name text, cause text, since timestamptz, cure text
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select f.code, c.level, f.object_kind, f.object_name, f.cause, f.since, f.cure
  from (
    select d.code, d.object_kind, d.object_name, d.cause, d.since, d.cure from parley_mail._p_find_daemon_faults() as d
    union all
    select u.code, u.object_kind, u.object_name, u.cause, u.since, u.cure
    from parley_mail._p_find_unsigned_domains() as u
    where _p_find_faults.part = 'CONFIGURATION'
    union all
    select m.code, m.object_kind, m.object_name, m.cause, m.since, m.cure
    from parley_mail._p_find_missing_services() as m
    where _p_find_faults.part = 'CONFIGURATION'
    union all
    select r.code, r.object_kind, r.object_name, r.cause, r.since, r.cure
    from parley_mail._p_find_unread_replies() as r
    where _p_find_faults.part = 'RUNTIME'
    union all
    select h.code, h.object_kind, h.object_name, h.cause, h.since, h.cure
    from parley_mail._p_find_held_generations() as h
    where _p_find_faults.part = 'RUNTIME'
    union all
    select q.code, q.object_kind, q.object_name, q.cause, q.since, q.cure
    from parley_mail._p_find_queue_faults() as q
    where _p_find_faults.part = 'RUNTIME'
  ) as f
  join parley_mail.diagnosis_checks as c on c.code = f.code and c.part = _p_find_faults.part
  where coalesce(f.since <= clock_timestamp() - coalesce(_p_find_faults.patience, c.patience), true)
$$;

comment on function parley_mail._p_find_faults(text, interval) is
'Finds what is wrong with mail.
Arguments: part, CONFIGURATION or RUNTIME; patience, for how long it may last (null: as parley_mail.diagnosis_checks
says).
Source: spec mail 5, 14, 17, 18.';
