-- Checks of readers: is there anybody who receives, does he get anywhere, does he hold up others?
--
-- That a group is held is seen by the xmax of its row, as in activation/receivable_work.sql: reading takes no lock.

create function parley._p_find_missing_daemon(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select 'no-daemon', 'database', current_database()::text,
    format('Activation is on (queue "%s"', min(a.name))
      || case count(*) when 1 then '' when 2 then ' and one other' else format(' and %s others', count(*) - 1) end
      || '), and no daemon runs that starts readers.',
    -- The last one is believed to have lived until its lease was over.
    (
      select to_timestamp(nullif(l.until, 0) / 1000000.0)
      from (select coalesce(pg_sequence_last_value('parley._p_leader_lease'), 0) as until) as l
    ),
    'parley serve --dsn postgres://<host>/' || parley._p_shell_word(current_database())
  from parley._p_activated_queues() as a
  where (scope.queue_ids is null or a.queue_id = any (scope.queue_ids)) and not parley._p_is_led()
  having count(*) > 0
  union all
  select 'no-daemon', 'database', current_database()::text,
    format('There are schedules ("%s"', min(s.name))
      || case count(*) when 1 then '' when 2 then ' and one other' else format(' and %s others', count(*) - 1) end
      || '), and no daemon runs that puts their messages.',
    min(s.next_at) filter (where s.next_at < clock_timestamp()),
    'parley serve --dsn postgres://<host>/' || parley._p_shell_word(current_database())
  from parley._p_schedule as s
  where s.wake_at is not null
    and (scope.queue_ids is null or s.queue_id = any (scope.queue_ids))
    and not parley._p_is_led()
  having count(*) > 0
$$;

comment on function parley._p_find_missing_daemon(parley._p_scope) is
'Finds out whether activation is on, or there are schedules, and nobody does it.';

create function parley._p_find_superuser_daemon(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    'daemon-superuser', 'role', r.rolname::text,
    'The daemon logs in as this superuser. What runs in its sessions, such as a procedure that calls RESET ROLE, '
      || 'gets the rights of the login.',
    l.leads_since,
    format(
      'parley serve --dsn postgres://%s@...  -- as the owner of the schema; see also --procedure-dsn',
      parley._p_shell_word(pg_get_userbyid(n.nspowner))
    )
  from parley._p_leader as l
  join pg_roles as r on r.oid = l.login
  join pg_namespace as n on n.nspname = 'parley'
  where l.leader is not null
    and r.rolsuper
    and parley._p_is_led()
    and scope.queue_ids is null
    and scope.endpoint_ids is null
$$;

comment on function parley._p_find_superuser_daemon(parley._p_scope) is
'Finds out whether the daemon that leads logs in as superuser.';

create function parley._p_find_unread_queues(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  with unread as (
    select q.queue_id, q.lookup_name, q.is_activation_enabled, q.activation_procedure, q.max_readers,
      f.oldest_enqueue_time,
      case when f.is_estimated then 'some ' else '' end || f.waiting_messages as waiting,
      -- A session that asked to be notified may have left before the time was over.
      (
          coalesce(pg_sequence_last_value(q.wakeup_sequence), 0) > extract(epoch from clock_timestamp())
          and parley._p_is_listening(q.queue_id)
        )
        or exists (select from parley._p_waiting_session as s where s.queue_id = q.queue_id) as is_listened_to
    from parley._p_queue as q
    join parley._p_queue_figures() as f using (queue_id)
    where f.oldest_enqueue_time < clock_timestamp() - scope.patience
      and (scope.queue_ids is null or q.queue_id = any (scope.queue_ids))
      and exists (select from parley._p_receivable(array[q.queue_id], array[1], 1000))
  )
  select 'no-reader', 'queue', u.lookup_name,
    format('Messages wait (%s), activation is off, and nobody receives or listens.', u.waiting),
    u.oldest_enqueue_time,
    case
      -- The queues of mail are read by its daemon; a procedure would take from them what it knows nothing of.
      when u.lookup_name ~ '^parley_(mail|store_mail)(_|$)' then 'parley mail serve'
      when u.activation_procedure is not null
        then format(
          'select parley.alter_queue(%L, max_queue_readers => %s, activation => true);', u.lookup_name,
          greatest(u.max_readers, 1)
        )
      else format(
        'select parley.alter_queue(%L, activation_procedure => ''<schema.procedure>'', execute_as => ''OWNER'', '
          || 'max_queue_readers => 1, activation => true);',
        u.lookup_name
      ) || '  -- or start the program that reads it'
    end
  from unread as u
  where not u.is_activation_enabled and not u.is_listened_to
  union all
  select 'reader-slow', 'queue', u.lookup_name,
    case
      when not u.is_activation_enabled
        then format(
          'Messages wait (%s) although somebody listens on the queue: its readers are too slow, or hang.', u.waiting
        )
      else format(
        'Messages wait (%s), and all readers that activation may start (%s) are at work.', u.waiting, m.running_readers
      )
    end,
    u.oldest_enqueue_time,
    case
      when u.is_activation_enabled
        then format('select parley.alter_queue(%L, max_queue_readers => %s);', u.lookup_name, 2 * u.max_readers)
    end
  from unread as u
  left join parley._p_queue_monitor as m on m.queue_id = u.queue_id and m.term = parley._p_current_term()
  where (not u.is_activation_enabled and u.is_listened_to)
    or (u.is_activation_enabled and u.max_readers > 0 and m.failures = 0 and m.running_readers >= u.max_readers)
$$;

comment on function parley._p_find_unread_queues(parley._p_scope) is
'Finds queues in which messages have waited for longer than scope.patience that nobody holds: because
nobody reads, or not fast enough.';

create function parley._p_find_failing_readers(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select 'reader-failing', 'queue', a.name,
    format(
      'Readers failed one after the other (%s); the last error: %s', m.failures,
      coalesce(m.last_error, 'none was reported')
    )
      || coalesce(' (SQLSTATE ' || nullif(m.last_sqlstate, '') || ')', ''),
    m.failing_since,
    case
      when a.procedure_call is not null
        then format('call %s;  -- shows the error; once it is mended the daemon goes on by itself', a.procedure_call)
      when m.last_error ~ 'allow it with parley serve --allow-'
        then format(
          '%s %s  -- the daemon, started again with this flag besides its others, if its operator agrees',
          substring(m.last_error from 'parley serve --allow-[a-z-]+'),
          parley._p_shell_word(
            substring(
              m.last_error from '(?:address|program|working directory|variable) (.*) is not allowed by the operator'
            )
          )
        )
      when a.kind = 'program'
        then '-- its own messages are in the log of parley serve; once it is mended the daemon goes on by itself'
      when a.kind = 'webhook'
        then '-- once the web address can be reached the daemon goes on by itself; parley activation list shows it'
    end
  from parley._p_queue_monitor as m
  join parley._p_activated_queues() as a using (queue_id)
  where m.failures > 0
    and m.term = parley._p_current_term()
    and (scope.queue_ids is null or m.queue_id = any (scope.queue_ids))
  union all
  select 'reader-failing', 'queue', q.lookup_name,
    format(
      'The web address does not accept messages of %s; ', case count(*)
        when 1 then 'a conversation'
        else count(*) || ' conversations'
      end
    )
      || (
        array_agg(
          format('the last one of %s, attempt %s: %s', f.conversation_handle, f.attempts, f.last_error)
            || coalesce('. It said: ' || left(a.answer, 200), '')
          order by f.failed_at desc
        )
      )[1],
    min(f.first_failed_at),
    format(
      '-- once it accepts them they are delivered by themselves; see: parley poison list --failing --queue %s',
      q.lookup_name
    )
  from parley._p_delivery_failure as f
  join parley._p_queue as q using (queue_id)
  left join parley._p_failure as a on a.endpoint_id = f.endpoint_id and a.answered_at = a.failed_at
  where not parley._p_is_set_aside(f.endpoint_id)
    and (scope.queue_ids is null or f.queue_id = any (scope.queue_ids))
    and (scope.endpoint_ids is null or f.endpoint_id = any (scope.endpoint_ids))
    and not exists (
      select from parley._p_queue_monitor as m
      where m.queue_id = f.queue_id and m.failures > 0 and m.term = parley._p_current_term()
    )
  group by q.lookup_name
  union all
  select m.code, m.object_kind, m.object_name, m.cause, m.since, m.cure
  from parley._p_find_refused_messages(scope) as m
$$;

comment on function parley._p_find_failing_readers(parley._p_scope) is
'Finds queues whose activated readers fail, as the daemon reports it.';

create function parley._p_find_held_groups(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  with held as (
    select q.lookup_name, g.conversation_group_id, g.xmax as holder, count(*) as waiting, min(m.enqueued_at) as oldest
    from parley._p_queue as q
    cross join generate_series(1, 10) as p (n)
    cross join lateral (
      select n.endpoint_id, n.enqueued_at
      from parley._p_message as n
      where n.lane = parley._p_lane(q.queue_id, p.n)
      order by n.position
      limit 1000
    ) as m
    -- From each message to its side, and not through all sides.
    cross join lateral (
      select o.group_id from parley._p_endpoint as o where o.endpoint_id = m.endpoint_id and o.state <> 'DO' offset 0
    ) as e
    join parley._p_conversation_group as g using (group_id)
    where q.priorities & (1 << p.n) > 0
      and (scope.queue_ids is null or q.queue_id = any (scope.queue_ids))
      and (scope.endpoint_ids is null or m.endpoint_id = any (scope.endpoint_ids))
      and parley._p_is_running(g.xmax)
    group by q.lookup_name, g.conversation_group_id, g.xmax
  )
  select 'group-held', 'conversation group', h.conversation_group_id::text,
    format(
      '%s holds it, and messages of it wait (%s) in queue "%s".',
      coalesce(
        'Session ' || o.pid, format('The prepared transaction "%s"', o.prepared),
        'One of the sessions ' || array_to_string(o.candidates, ', ')
      ),
      h.waiting, h.lookup_name
    ),
    coalesce(a.xact_start, h.oldest),
    coalesce(
      format('select pg_terminate_backend(%s);', o.pid), format('rollback prepared %L;', o.prepared),
      format('select pg_terminate_backend(<one of %s>);', array_to_string(o.candidates, ', '))
    )
  from held as h
  join parley._p_lock_holders(array(select distinct f.holder from held as f)) as o on o.transaction_id = h.holder
  left join pg_stat_activity as a using (pid)
  where h.oldest < clock_timestamp() - scope.patience
    and coalesce(a.xact_start, h.oldest) < clock_timestamp() - scope.patience
  union all
  select 'group-held', 'conversation group', g.conversation_group_id::text,
    format(
      'A message of it is on its way from queue "%s" to a web address: it is claimed (%s), until %s unless that is '
        || 'renewed.',
      q.lookup_name, c.claimed_by, date_trunc('second', c.leased_until)
    ),
    c.claimed_at,
    format(
      'select parley.release_delivery(%L, %L);  -- it may be delivered again at once, while the request still runs',
      q.lookup_name, c.claim
    )
  from parley._p_delivery_claim as c
  join parley._p_conversation_group as g using (group_id)
  join parley._p_queue as q using (queue_id)
  where c.leased_until > clock_timestamp()
    and c.claimed_at < clock_timestamp() - scope.patience
    and (scope.queue_ids is null or c.queue_id = any (scope.queue_ids))
    and (
      scope.endpoint_ids is null
      or exists (
        select
        from parley._p_endpoint as e
        where e.group_id = c.group_id and e.endpoint_id = any (scope.endpoint_ids)
      )
    )
$$;

comment on function parley._p_find_held_groups(parley._p_scope) is
'Finds groups that a transaction, or the claim of a delivery, has held for longer than scope.patience while their
messages wait.';
