-- The messages that wait, one by one: the rows that operators see, and on which their statements work (spec mail 2,
-- 17).
--
-- A message that waits in several queues has a row for each. Those of the submission queue have no work item.
-- Cost: a filter reads all work items of mail, but those of other queues where it names one without *.

create view parley_mail._p_waiting_item as
select
  w.system, w.item_id, w.subject as message_id, w.lane as queue, w.state,
  case
    when w.state = 'IN_FLIGHT' and w.is_to_suspend then 'PENDING_SUSPEND'
    when w.state = 'IN_FLIGHT' and not w.is_to_suspend then 'PENDING_REMOVE'
    when w.state = 'IN_FLIGHT' then 'ACTIVE'
    when w.state = 'SUSPENDED' or w.lane = 'POISON/-/-' then 'SUSPENDED'
    when w.state = 'DELAYED' or (l.failures > 0 and l.next_attempt_at > clock_timestamp()) then 'RETRY'
    else 'READY'
  end as status,
  l.status = 'RETRY' as is_lane_in_retry, w.attempts, w.since, w.expires_at, w.due_at,
  greatest(w.due_at, case when l.next_attempt_at > clock_timestamp() then l.next_attempt_at end) as next_attempt_at,
  case
    when w.lane = 'POISON/-/-' then coalesce(w.last_error, convert_from(w.data, 'UTF8'))
    else coalesce(w.last_error, case when l.failures > 0 then l.last_error end)
  end as last_error,
  w.reason
from parley_store.work_items as w
join parley_store.lanes as l on l.system = w.system and l.lane = w.lane
where w.system in ('mail', 'mail_service');

comment on view parley_mail._p_waiting_item is 'Work items of mail, with the status that their message has there.';

create function parley_mail._p_shown_message(item parley_mail._p_waiting_item) returns jsonb
language sql stable cost 10000
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'message_id', m.message_id, 'queue', item.queue, 'status', item.status, 'sender', m.sender,
    'recipient_count', coalesce(r.recipients, cardinality(m.recipients)), 'subject', m.subject, 'size', m.size,
    'priority', (array['HIGH', 'NORMAL', 'LOW'])[m.priority + 1], 'source', m.source, 'tag', m.tag,
    'attempts', greatest(item.attempts, r.attempts), 'next_attempt_at', item.next_attempt_at,
    'last_error', coalesce(item.last_error, r.error), 'reason', item.reason, 'received_at', m.received_at,
    'expires_at', coalesce(item.expires_at, m.expires_at), 'network_message_id', m.network_message_id,
    'header_message_id', m.header_message_id, 'parent_message_id', m.parent_message_id,
    'submitted_by', parley._p_name_with(m.submitted_by)
  )
  from parley_mail._p_message as m
  cross join lateral (
    select nullif(count(*), 0) as recipients, max(q.attempts) as attempts,
      min(concat_ws(' ', q.last_status, q.last_text)) filter (where q.attempts > 0) as error
    from parley_mail._p_recipient as q
    where q.message_id = item.message_id and q.lane = item.queue
  ) as r
  where m.message_id = item.message_id
$$;

comment on function parley_mail._p_shown_message(parley_mail._p_waiting_item) is
'Gives what parley_mail.messages shows of a message in a queue, but its recipients, for conditions on it.';

create function parley_mail._p_shown_attempts(item parley_mail._p_waiting_item) returns integer
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select greatest(item.attempts, (
    select max(r.attempts)
    from parley_mail._p_recipient as r
    where r.message_id = item.message_id and r.lane = item.queue
  ))
$$;

comment on function parley_mail._p_shown_attempts(parley_mail._p_waiting_item) is
'Gives the attempts that parley_mail.messages shows of a message in a queue: an item that was held or given back counts
none of its own.';

create function parley_mail._p_matching(filter jsonb, operation text, top integer)
returns setof parley_mail._p_waiting_item
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
  v_is parley_mail._p_filter := parley_mail._p_parsed_filter(filter);
  v_not parley_mail._p_filter := case when filter ? 'not' then parley_mail._p_parsed_filter(filter -> 'not') end;
begin
  return query
  select w.*
  from parley_mail._p_waiting_item as w
  join parley_mail._p_message as m using (message_id)
  cross join lateral (
    select lower(concat_ws(' ', w.last_error, (
      select string_agg(concat_ws(' ', r.last_status, r.last_text), ' ')
      from parley_mail._p_recipient as r
      where r.message_id = w.message_id and r.lane = w.queue
    ))) as error
    where v_is.error is not null or v_not.error is not null
    union all
    select null where v_is.error is null and v_not.error is null
  ) as e
  where (v_is.queue is null or lower(w.queue) like v_is.queue escape '!')
    and (v_is.messages is null or w.message_id = any (v_is.messages))
    and (v_is.statuses is null or w.status = any (v_is.statuses))
    and (v_is.sender is null or lower(m.sender) like v_is.sender escape '!')
    and (v_is.subject is null or lower(m.subject) like v_is.subject escape '!')
    and (v_is.tag is null or lower(m.tag) like v_is.tag escape '!')
    and (v_is.source is null or lower(m.source) like v_is.source escape '!')
    and (v_is.priority is null or m.priority = v_is.priority)
    and (v_is.before is null or m.received_at < v_is.before)
    and (v_is.larger is null or m.size > v_is.larger)
    and (v_is.attempts is null or parley_mail._p_shown_attempts(w) >= v_is.attempts)
    and (v_is.error is null or e.error like v_is.error escape '!')
    and (
      v_is.conditions is null and v_not.conditions is null
      or parley_mail._p_is_chosen(parley_mail._p_shown_message(w), v_is.conditions, v_not.conditions)
    )
    and (
      v_is.recipient is null
      or exists (
        select
        from parley_mail._p_recipient as r
        where r.message_id = w.message_id and r.lane = w.queue and lower(r.address) like v_is.recipient escape '!'
      )
      or w.queue = 'POISON/-/-'
      and exists (select from unnest(m.recipients) as r (address) where lower(r.address) like v_is.recipient escape '!')
    )
    and (v_not.queue is null or lower(w.queue) not like v_not.queue escape '!')
    and (v_not.messages is null or w.message_id <> all (v_not.messages))
    and (v_not.statuses is null or w.status <> all (v_not.statuses))
    and (v_not.sender is null or lower(m.sender) not like v_not.sender escape '!')
    and (v_not.subject is null or coalesce(lower(m.subject) not like v_not.subject escape '!', true))
    and (v_not.tag is null or coalesce(lower(m.tag) not like v_not.tag escape '!', true))
    and (v_not.source is null or lower(m.source) not like v_not.source escape '!')
    and (v_not.priority is null or m.priority <> v_not.priority)
    and (v_not.before is null or m.received_at >= v_not.before)
    and (v_not.larger is null or m.size <= v_not.larger)
    and (v_not.attempts is null or parley_mail._p_shown_attempts(w) < v_not.attempts)
    and (v_not.error is null or coalesce(e.error not like v_not.error escape '!', true))
    and (
      v_not.recipient is null
      or not exists (
        select
        from parley_mail._p_recipient as r
        where r.message_id = w.message_id and r.lane = w.queue and lower(r.address) like v_not.recipient escape '!'
      )
    )
    and case operation
      when 'list' then true
      when 'suspend' then w.status in ('READY', 'RETRY', 'ACTIVE')
      when 'resume' then w.status = 'SUSPENDED'
      when 'retry' then w.state = 'DELAYED'
      when 'retry queue' then w.is_lane_in_retry and w.state in ('WAITING', 'DELAYED')
      when 'resubmit' then
        w.status in ('READY', 'RETRY')
        and (w.queue = 'UNREACHABLE/-/-' or w.is_lane_in_retry or w.status = 'RETRY')
      when 'remove' then w.status <> 'PENDING_REMOVE'
      when 'change' then w.state <> 'IN_FLIGHT'
      when 'export' then w.status = 'SUSPENDED'
    end
  order by w.item_id
  limit top;
end
$$;

comment on function parley_mail._p_matching(jsonb, text, integer) is
'Gives the work items of messages that a filter matches and that an operation is for, the oldest first.
Arguments: filter; operation: list, suspend, resume, retry, retry queue (what waits in queues in RETRY), resubmit,
remove, change or export; top, how many at most.
Errors: PM010 malformed filter.';
