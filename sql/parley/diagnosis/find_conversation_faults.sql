-- Checks of conversations: messages that cannot be delivered, sides that were not ended, timers that are overdue.

create function parley._p_find_undeliverable(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with waiting as (
    select e.far_service, e.far_broker_instance, coalesce(e.far_endpoint_id < 0, false) as has_begun_elsewhere,
      p.status as held_because,
      array_agg(distinct e.service_contract_name) as contracts, count(*) as messages, min(t.enqueued_at) as since
    from parley._p_transmission as t
    join parley._p_endpoint as e using (endpoint_id)
    left join parley._p_parked as p using (endpoint_id)
    where (scope.endpoint_ids is null or e.endpoint_id = any (scope.endpoint_ids))
      -- A message that is held because the other side has ended goes when this side ends.
      and (e.state not in ('DI', 'ER') or t.message_type_id = -1)
    group by e.far_service, e.far_broker_instance, coalesce(e.far_endpoint_id < 0, false), p.status
    having min(t.enqueued_at) < clock_timestamp() - scope.patience
  ), explained as (
    select w.far_service, w.far_broker_instance, w.held_because, w.contracts, w.messages, w.since,
      case
        when not b.is_broker_enabled then 'disabled'
        when w.held_because is not null then 'held'
        when parley._p_is_asking(w.far_service, 8) then 'asked for a binding'
        when parley._p_is_asking(w.far_service, 6) then 'asked'
        when l.address is null then 'unrouted'
        when l.address <> 'LOCAL'
          or (parley._p_is_here(w.far_service, w.far_broker_instance) and not w.has_begun_elsewhere)
          then 'deliverable'
        when w.far_broker_instance <> b.service_broker_guid::text then 'elsewhere'
        when w.has_begun_elsewhere then 'unrouted'
        else 'missing'
      end as reason
    from waiting as w
    cross join parley._p_broker as b
    cross join lateral parley._p_leads_to(w.far_service, w.far_broker_instance) as l (address)
  )
  select 'undeliverable', 'service', x.far_service,
    format('Messages to it wait (%s) in the transmission queue: ', x.messages) || case x.reason
      when 'disabled' then 'the broker is disabled (9791).'
      when 'held' then 'the far side cannot take them now. ' || x.held_because
      when 'asked' then 'the broker configuration service was asked for a route, and has not answered (9770).'
      when 'asked for a binding'
        then 'the broker configuration service was asked for a remote service binding, and has not answered (9770).'
      when 'unrouted' then 'no route leads there (9750).'
      when 'elsewhere'
        then format(
          'the broker instance %s is not this database, and there is no route to it (9795).', x.far_broker_instance
        )
      when 'missing' then 'there is no such service in this database, and no route to it (9796).'
        || coalesce(' Did you mean "' || parley._p_near_service(coalesce(scope.reader, 0), x.far_service) || '"?', '')
        || case when parley._p_is_led() then '' else ' No daemon runs that could find it in another database.' end
      else 'nothing is in the way any more, and the daemon has not tried again since.'
    end,
    x.since,
    case x.reason
      when 'disabled' then 'select parley.enable_broker();'
      when 'held' then '-- see the database of that service; it is tried again within 64 seconds'
      when 'asked for a binding' then format(
        'select parley.create_remote_service_binding(%L, %L, ''<role>'');'
          || '  -- or let the service SQL/ServiceBroker/BrokerConfiguration end its conversation',
        left(x.far_service, 128), x.far_service
      )
      when 'asked'
        then 'select * from parley.receive(''<queue>'');  -- of service SQL/ServiceBroker/BrokerConfiguration, and '
          || 'end the conversation'
      -- A service that is created here takes the messages that are meant for another database. A daemon that serves
      -- both would have found it there.
      when 'missing' then parley._p_cure_of_slip(scope.reader, x.far_service, null, case
        when parley._p_is_led()
          then format('select parley.create_service(%L, ''<queue>'', %L);', x.far_service, x.contracts)
          || '  -- only if it belongs here: no database of the daemon has it'
        else format(
          'parley serve --dsn postgres://<host>/%s --dsn postgres://<host>/<database that has it>  -- if none has '
            || 'it, create it where it belongs',
          parley._p_shell_word(current_database())
        )
      end)
      when 'deliverable' then 'select parley.fire_timers();'
      else parley._p_cure_of_slip(scope.reader, x.far_service, x.far_broker_instance, format(
        'select parley.create_route(%L, ''tcp://<host>:4022'', %L%s);',
        left(x.far_service, 128), x.far_service, coalesce(format(', %L', x.far_broker_instance), '')
      ))
    end
  from explained as x
$$;

comment on function parley._p_find_undeliverable(parley._p_scope) is
'Finds what has been in the transmission queue for longer than scope.patience, by target and reason.';

create function parley._p_find_leaks(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    case l.state when 'SO' then 'conversation-not-used' else 'conversation-not-ended' end,
    case when l.conversations = 1 then 'conversation' else 'service' end,
    case when l.conversations = 1 then l.handle else l.service_name end,
    format('With "%s" it', l.far_service)
      || case when l.conversations > 1 then format(' has %s conversations; one of them', l.conversations) else '' end
      || case l.state
        when 'DI' then ' was ended by the other side; everything is received, and this side was not ended.'
        when 'ER' then ' failed; the Error message is received, and this side was not ended.'
        else ' was begun, and nothing was ever sent.'
      end,
    l.since,
    case
      when l.conversations = 1 then format('select parley.end_conversation(%L);', l.handle)
      else format(
        'select parley.end_conversation(conversation_handle) from parley.leaked_conversations(%L) '
        'where service_name = %L and far_service = %L and state = %L and waiting = 0;',
        scope.patience, l.service_name, l.far_service, l.state
      )
    end
  from (
    select e.service_name, e.far_service, e.state, count(*) as conversations,
      min(e.conversation_handle::text) as handle, min(e.state_since) as since
    from parley._p_shown_endpoint as e
    where e.state in ('DI', 'ER', 'SO')
      -- Event notifications have said nothing for as long as nothing has happened.
      and e.service_id >= 65536
      and e.state_since < clock_timestamp() - scope.patience
      and (scope.endpoint_ids is null or e.endpoint_id = any (scope.endpoint_ids))
      and not exists (select from parley._p_message as m where m.endpoint_id = e.endpoint_id)
      -- A conversation that get_conversation gives ends by itself.
      and not exists (select from parley._p_alarm as a where a.endpoint_id = e.endpoint_id and a.kind = 'pooled')
    group by e.service_name, e.far_service, e.state
  ) as l
$$;

comment on function parley._p_find_leaks(parley._p_scope) is
'Finds conversations that nobody ends, in the same state for longer than scope.patience: one by itself, several by
service, far service and state.';

create function parley._p_find_one_way(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    'conversation-one-way',
    case when l.conversations = 1 then 'conversation' else 'service' end,
    case when l.conversations = 1 then l.handle else l.service_name end,
    case when l.conversations = 1 then 'It began a dialog' else format('It began dialogs (%s)', l.conversations) end
      || format(
        ' with "%s" for one message, which was read; nobody has answered or ended, and the open sides stay. ',
        l.far_service
      )
      || 'If no answer is wanted, send with parley.send_and_end.',
    l.since,
    case
      when l.conversations = 1 then format('select parley.end_conversation(%L);', l.handle)
      else format(
        'select parley.end_conversation(conversation_handle) from parley.one_way_conversations '
        'where service_name = %L and far_service = %L and clock_timestamp() - state_since > interval %L;',
        l.service_name, l.far_service, scope.patience
      )
    end || '  -- unless an answer is still to come'
  from (
    select w.service_name, w.far_service, count(*) as conversations, min(w.conversation_handle::text) as handle,
      min(w.state_since) as since
    from parley.one_way_conversations as w
    where w.state_since < clock_timestamp() - scope.patience
      and (scope.endpoint_ids is null or exists (
        select from parley._p_endpoint as e
        where e.conversation_handle = w.conversation_handle and e.endpoint_id = any (scope.endpoint_ids)
      ))
    group by w.service_name, w.far_service
  ) as l
$$;

comment on function parley._p_find_one_way(parley._p_scope) is
'Finds dialogs that were left open after one message for longer than scope.patience: one by itself,
several by service and far service.';

create function parley._p_find_late_timers(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'timers-late', 'database', current_database()::text,
    format(
      'Timers, ends of lifetimes or of abandoned conversations, or messages that were to come later are overdue (%s): '
        || 'no daemon runs and nobody calls fire_timers, or they are held.',
      count(*)
    ),
    min(o.due_at),
    'select parley.fire_timers(10000);'
  from (
    select coalesce(a.first_due_at, a.due_at) as due_at
    from parley._p_alarm as a
    where (a.due_at < clock_timestamp() - scope.patience or a.first_due_at < clock_timestamp() - scope.patience)
      and (scope.endpoint_ids is null or a.endpoint_id = any (scope.endpoint_ids))
    union all
    -- A message that waits for room at its target is tried again all the time.
    select d.due_at
    from parley._p_delayed_send as d
    where d.try_at < (select clock_timestamp() - scope.patience)
      and (scope.endpoint_ids is null or d.endpoint_id = any (scope.endpoint_ids))
    union all
    select d.due_at
    from parley._p_delayed_message as d
    where d.due_at < (select clock_timestamp() - scope.patience)
      and scope.endpoint_ids is null
      and (scope.queue_ids is null or d.queue_id = any (scope.queue_ids))
  ) as o
  having count(*) > 0
$$;

comment on function parley._p_find_late_timers(parley._p_scope) is
'Finds out whether what is due, timers or messages, has been so for longer than scope.patience.';

create function parley._p_find_tombstones(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'tombstones', 'database', current_database()::text,
    format(
      'Closed conversations should have been forgotten (%s): no daemon runs, and nobody calls fire_timers.', count(*)
    ),
    min(t.expires_at),
    'select parley.fire_timers(100000);'
  from parley._p_tombstone as t
  where t.expires_at < clock_timestamp() - scope.patience and scope.endpoint_ids is null
  having count(*) > 0
$$;

comment on function parley._p_find_tombstones(parley._p_scope) is 'Finds out whether expired tombstones pile up.';

create function parley._p_find_clock_faults(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'messages-from-the-future', 'queue', q.lookup_name,
    format('Its newest message arrived at %s, and it is %s now: the clock of the server was set back, so ages and '
      || 'timers are wrong until then.',
      max(m.enqueued_at), clock_timestamp()),
    null::timestamptz,
    '-- set the clock of the database server right'
  from parley._p_queue as q
  cross join generate_series(1, 10) as p (n)
  cross join lateral (
    select n.enqueued_at
    from parley._p_message as n
    where n.lane = parley._p_lane(q.queue_id, p.n)
    order by n.lane desc, n.position desc
    limit 1
  ) as m
  where q.priorities & (1 << p.n) > 0
    and m.enqueued_at > clock_timestamp() + scope.patience
    and (scope.queue_ids is null or q.queue_id = any (scope.queue_ids))
  group by q.lookup_name
$$;

comment on function parley._p_find_clock_faults(parley._p_scope) is
'Finds queues whose newest message is from the future.';
create function parley._p_find_poison(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'poison', 'conversation', e.conversation_handle::text,
    format(
        'It is set aside in queue "%s": its message was %s %s time%s', q.lookup_name,
        case when f.answered_at = f.failed_at then 'refused by its web address' else 'rolled back' end,
        a.rollbacks, case a.rollbacks when 1 then '' else 's' end
      )
      || case
        when f.answered_at = f.failed_at
          then format('; the last error: %s', f.error) || coalesce('. It said: ' || left(f.answer, 200), '.')
        else coalesce(
          format('; the last error: %s', f.error) || coalesce(' (SQLSTATE ' || nullif(f.sqlstate, '') || ')', '')
            || '.',
          '.'
        )
      end,
    a.set_aside_at,
    format(
      'select parley.retry_poison(%L);  -- once the reader is mended; otherwise parley.discard_poison',
      e.conversation_handle
    )
  from parley._p_set_aside as a
  join parley._p_endpoint as e using (endpoint_id)
  join parley._p_service as s on s.service_id = a.service_id
  join parley._p_queue as q using (queue_id)
  left join parley._p_failure as f using (endpoint_id)
  where a.retry_at is null and (scope.endpoint_ids is null or a.endpoint_id = any (scope.endpoint_ids))
$$;

comment on function parley._p_find_poison(parley._p_scope) is 'Finds conversations that are set aside.';
