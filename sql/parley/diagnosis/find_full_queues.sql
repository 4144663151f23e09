-- Checks of quotas.

create function parley._p_find_full_queues(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    case when u.used >= 1 then 'queue-full' else 'queue-nearly-full' end,
    'queue', q.lookup_name,
    format(
      'It holds %s messages and %s bytes; its quota is %s messages and %s bytes. %s', c.messages, c.bytes,
      coalesce(q.quota_messages::text, 'any number of'), coalesce(q.quota_bytes::text, 'any number of'),
      case when u.used >= 1 then 'Senders are refused.' else 'Senders are refused when it is used up.' end
    ),
    null::timestamptz,
    format(
      'select parley.set_queue_quota(%L, messages => %s, bytes => %s);  -- or start more readers', q.lookup_name,
      coalesce((2 * q.quota_messages)::text, 'null'), coalesce((2 * q.quota_bytes)::text, 'null')
    )
  from parley._p_queue as q
  cross join lateral parley._p_count_up_to(q, q.quota_messages, q.quota_bytes) as c
  cross join lateral (
    select greatest(c.messages::numeric / q.quota_messages, c.bytes::numeric / q.quota_bytes) as used
  ) as u
  where q.quota_sequence is not null
    and u.used >= 0.8
    and (scope.queue_ids is null or q.queue_id = any (scope.queue_ids))
$$;

comment on function parley._p_find_full_queues(parley._p_scope) is
'Finds queues of whose quota at least four fifths are used.';
