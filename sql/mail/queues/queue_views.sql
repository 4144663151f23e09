-- Views for operators: queues, recipients (spec mail 7, 17). Each view is for who holds VIEW.

create function parley_mail._p_queues(caller parley.caller default parley.current_caller())
returns table (
  queue text, delivery_type text, connector text, next_hop text, status text, messages bigint, deferred bigint,
  next_retry_at timestamptz, failing_since timestamptz, failures integer, last_error text, suspended_for text,
  bytes bigint, high bigint, normal bigint, low bigint, incoming_rate numeric,
  outgoing_rate numeric, velocity numeric, connections integer, max_connections integer, succeeded_at timestamptz
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select l.lane, p.kind, p.connector, p.next_hop,
    case
      when l.status in ('SUSPENDED', 'RETRY') then l.status
      when l.status = 'POSTPONED' then 'READY'
      when w.leases > 0 and (l.failures > 0 or l.succeeded_at is null) then 'CONNECTING'
      when w.leases > 0 or w.items > 0 then 'ACTIVE'
      else 'READY'
    end,
    w.items, w.tried, l.next_attempt_at, l.failing_since, l.failures, l.last_error, l.suspended_for,
    w.weight, coalesce((w.by_priority ->> '10')::bigint, 0), coalesce((w.by_priority ->> '5')::bigint, 0),
    coalesce((w.by_priority ->> '1')::bigint, 0), round(w.incoming_rate, 3), round(w.outgoing_rate, 3),
    round(w.outgoing_rate - w.incoming_rate, 3), w.leases, l.leases_allowed, l.succeeded_at
  from parley_store.lanes as l
  join parley_store.lane_counts as w using (lane_id)
  cross join parley_mail._p_parts_of_lane(l.lane) as p
  where l.system in ('mail', 'mail_service') and parley_mail._p_holds(parley.caller_role(caller), 'VIEW')
  union all
  select p.lane, p.kind, p.connector, p.next_hop,
    case
      when o.submission_suspended_at is not null then 'SUSPENDED' when w.messages > 0 then 'ACTIVE' else 'READY'
    end,
    w.messages, 0, null, null, 0, null, null, w.bytes, null, null, null, null, null, null, null, null, null
  from parley_mail._p_organization as o
  cross join parley_mail._p_submission_queue() as w
  cross join (
    select n.lane, t.kind, t.connector, t.next_hop
    from (values ('SUBMISSION/-/-')) as n (lane)
    cross join parley_mail._p_parts_of_lane(n.lane) as t
  ) as p
  where parley_mail._p_holds(parley.caller_role(caller), 'VIEW')
$$;

comment on function parley_mail._p_queues(parley.caller) is 'Gives what parley_mail.queues shows.';

create function parley_mail._p_oldest_in(queue text, caller parley.caller default parley.current_caller())
returns timestamptz
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if not parley_mail._p_holds(parley.caller_role(caller), 'VIEW') then
    return null;
  elsif queue = 'SUBMISSION/-/-' then
    return (
      select k.oldest_enqueue_time
      from parley.queue_backlogs('parley_mail_submission', caller => parley.current_caller()) as k
    );
  end if;
  return (
    select parley_store.oldest_in_lane(l.lane_id)
    from parley_store.lanes as l
    where l.system in ('mail', 'mail_service') and l.lane = queue
  );
end
$$;

comment on function parley_mail._p_oldest_in(text, parley.caller) is
'Gives since when the oldest message of a queue waits; null for who does not hold VIEW. It is asked for the queues alone
that a query shows.';

create view parley_mail.queues as
select q.queue, q.delivery_type, q.connector, q.next_hop, q.status, q.messages, q.deferred, q.next_retry_at,
  q.failing_since, q.failures, q.last_error, q.suspended_for,
  case when q.messages > 0 then parley_mail._p_oldest_in(q.queue) end as oldest_at, q.bytes, q.high, q.normal, q.low,
  q.incoming_rate, q.outgoing_rate, q.velocity, q.connections, q.max_connections, q.succeeded_at
from parley_mail._p_queues() as q;

comment on view parley_mail.queues is
'Queues by next hop, with the submission queue, for who holds VIEW; from counters, so that reading it costs no more the
more waits.
Columns: status ACTIVE, CONNECTING, READY, RETRY or SUSPENDED; messages, what waits or is under way; deferred, of these
what was tried; next_retry_at, of a queue in RETRY, or of one that was put off by a rate; failing_since, failures,
last_error, of the connection; oldest_at; bytes, by the mean size of what came; high, normal, low, messages of each
priority; incoming_rate and outgoing_rate, messages a second over the last minute; velocity, the second without the
first: negative when the queue grows; connections, which are out, of max_connections that are allowed now; succeeded_at,
when the next hop was reached last. Of the submission queue messages and bytes are estimates beyond a hundred.
Source: spec mail 7.';

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
  where m.submitted_by = any ((select parley._p_numbers_of(parley.caller_role(caller)))::integer[])
    or parley_mail._p_holds(c.role, 'VIEW')
$$;

comment on function parley_mail._p_waiting_recipients(parley.caller) is
'Gives what parley_mail.waiting_recipients shows.';

create view parley_mail.waiting_recipients as
select r.message_id, r.ordinal, r.address, r.queue, r.attempts, r.last_attempt_at, r.last_status, r.last_text,
  r.last_host, r.sender, r.subject, r.tag, r.priority, r.size, r.received_at, r.expires_at, r.network_message_id
from parley_mail._p_waiting_recipients() as r;

comment on view parley_mail.waiting_recipients is
'Recipients whose outcome is not final, and their attempts: all for holders of VIEW, those of one''s own submissions
for others.';
