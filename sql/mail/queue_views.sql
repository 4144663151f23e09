-- What operators see: queues, messages, recipients (spec mail 7, 17). Each view is for who holds VIEW.

create function parley_mail._p_queues(caller parley.caller default parley.current_caller())
returns table (
  queue text, delivery_type text, connector text, next_hop text, status text, messages bigint, deferred bigint,
  next_retry_at timestamptz, failing_since timestamptz, failures integer, last_error text, suspended_for text,
  oldest_at timestamptz, bytes bigint
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select l.lane, split_part(l.lane, '/', 1), split_part(l.lane, '/', 2), split_part(l.lane, '/', 3), l.status,
    w.messages, w.deferred, l.next_attempt_at, l.failing_since, l.failures, l.last_error, l.suspended_for, w.oldest_at,
    w.bytes
  from parley_store.lanes as l
  cross join lateral (
    select count(*) as messages, count(*) filter (where i.attempts > 0) as deferred, min(i.since) as oldest_at,
      coalesce(sum(m.size), 0)::bigint as bytes
    from parley_store.work_items as i
    left join parley_mail._p_message as m on m.message_id = i.subject
    where i.system = l.system and i.lane = l.lane
  ) as w
  where l.system in ('mail', 'mail_service') and parley_mail._p_holds(parley.caller_role(caller), 'VIEW')
  union all
  select 'SUBMISSION/-/-', 'SUBMISSION', '-', '-',
    case when o.submission_suspended_at is null then 'READY' else 'SUSPENDED' end, w.messages, 0, null, null, 0, null,
    null, w.oldest_at, w.bytes
  from parley_mail._p_organization as o
  cross join (
    select count(*) as messages, min(m.received_at) as oldest_at, coalesce(sum(m.size), 0)::bigint as bytes
    from parley.peek_messages('parley_mail_submission', null, caller => parley.current_caller()) as p
    cross join unnest(string_to_array(convert_from(p.body, 'UTF8'), ' ')::bigint[]) as i (id)
    join parley_mail._p_message as m on m.message_id = i.id
  ) as w
  where parley_mail._p_holds(parley.caller_role(caller), 'VIEW')
$$;

comment on function parley_mail._p_queues(parley.caller) is 'Gives what parley_mail.queues shows.';

create view parley_mail.queues as
select q.queue, q.delivery_type, q.connector, q.next_hop, q.status, q.messages, q.deferred, q.next_retry_at,
  q.failing_since, q.failures, q.last_error, q.suspended_for, q.oldest_at, q.bytes
from parley_mail._p_queues() as q;

comment on view parley_mail.queues is
'Queues by next hop, with the submission queue, for who holds VIEW. Reading it counts what waits.
Columns: status ACTIVE, READY, RETRY or SUSPENDED; messages, what waits or is under way; deferred, of these what was
tried; next_retry_at, failing_since, failures, last_error, of the connection; oldest_at; bytes.';

create function parley_mail._p_waiting_recipients(caller parley.caller default parley.current_caller())
returns table (
  message_id bigint, ordinal integer, address text, queue text, attempts integer, last_attempt_at timestamptz,
  last_status text, last_text text, last_host text, sender text, subject text, tag text, priority text, size bigint,
  received_at timestamptz, expires_at timestamptz, network_message_id uuid
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select r.message_id, r.ordinal, r.address, r.lane, r.attempts, r.last_attempt_at, r.last_status, r.last_text,
    r.last_host, m.sender, m.subject, m.tag, (array['HIGH', 'NORMAL', 'LOW'])[m.priority + 1], m.size, m.received_at,
    m.expires_at, m.network_message_id
  from parley_mail._p_recipient as r
  join parley_mail._p_message as m using (message_id)
  cross join (select parley.caller_role(caller) as role) as c
  where m.submitted_by = c.role or parley_mail._p_holds(c.role, 'VIEW')
$$;

comment on function parley_mail._p_waiting_recipients(parley.caller) is
'Gives what parley_mail.waiting_recipients shows.';

create view parley_mail.waiting_recipients as
select r.message_id, r.ordinal, r.address, r.queue, r.attempts, r.last_attempt_at, r.last_status, r.last_text,
  r.last_host, r.sender, r.subject, r.tag, r.priority, r.size, r.received_at, r.expires_at, r.network_message_id
from parley_mail._p_waiting_recipients() as r;

comment on view parley_mail.waiting_recipients is
'Recipients whose outcome is not final, and what was tried: all for who holds VIEW, those of one''s own submissions for
others.';
