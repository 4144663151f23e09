-- Checks of messages of simple queues: what is set aside, what a web address refuses. One finding for each queue.

create function parley._p_find_set_aside_messages(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'messages-set-aside', 'queue', q.lookup_name,
    format(
        '%s set aside because %s again and again; ',
        case count(*) when 1 then 'A message is' else count(*) || ' messages are' end,
        case count(*) when 1 then 'it failed' else 'they failed' end
      )
      || (
        array_agg(
          format('the last one is %s: ', s.position) || coalesce(
            f.error || coalesce(' (SQLSTATE ' || f.sqlstate || ')', '')
              || coalesce('. It said: ' || left(f.answer, 200), ''),
            'no error was reported'
          )
          order by s.set_aside_at desc
        )
      )[1],
    min(s.set_aside_at),
    format(
      'select parley.retry_message(queue_name, message_id) from parley.set_aside_messages where queue_name = %L;'
      '  -- once the reader is mended; otherwise parley.discard_message',
      q.lookup_name
    )
  from parley._p_set_aside_message as s
  join parley._p_queue as q using (queue_id)
  left join parley._p_message_failure as f on f.queue_id = s.queue_id and f.position = s.position
  where scope.endpoint_ids is null and (scope.queue_ids is null or s.queue_id = any (scope.queue_ids))
  group by q.lookup_name
$$;

comment on function parley._p_find_set_aside_messages(parley._p_scope) is
'Finds simple queues of which messages are set aside.';

create function parley._p_find_refused_messages(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'reader-failing', 'queue', q.lookup_name,
    format(
        'The web address does not accept %s; ', case count(*) when 1 then 'a message' else count(*) || ' messages' end
      )
      || (
        array_agg(
          format('the last one is %s, attempt %s: %s', f.position, f.attempts, f.error)
            || coalesce('. It said: ' || left(f.answer, 200), '')
          order by f.failed_at desc
        )
      )[1],
    min(f.failed_at),
    format(
      '-- once it accepts them they are delivered by themselves; see: parley poison messages --failing --queue %s',
      q.lookup_name
    )
  from parley._p_message_failure as f
  join parley._p_queue as q using (queue_id)
  where f.failures > 0
    and scope.endpoint_ids is null
    and (scope.queue_ids is null or f.queue_id = any (scope.queue_ids))
    and not exists (
      select from parley._p_set_aside_message as s where s.queue_id = f.queue_id and s.position = f.position
    )
    and parley._p_key_of_message(f.queue_id, f.position) is not null
    and not exists (
      select from parley._p_queue_monitor as m
      where m.queue_id = f.queue_id and m.failures > 0 and m.term = parley._p_current_term()
    )
  group by q.lookup_name
$$;

comment on function parley._p_find_refused_messages(parley._p_scope) is
'Finds simple queues whose web address does not accept messages.';
