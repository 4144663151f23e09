-- Message tracking: what has happened to each message (spec mail 16).
--
-- Events are appended in the transaction that does what they report, those of one statement at once, and recipients of
-- one message with the same event are one row. So they cost no commit of their own. No content is kept, and subjects
-- only where track_subjects of the organization is on. A row says what it needs of its message, which is gone soon:
-- also how long each part of its way took, in milliseconds. Which events there are is said in docs/mail/operations.md.

create function parley_mail._p_track(
  events text[], message_ids bigint[], addresses text[], statuses text[], texts text[], hosts text[], sources text[],
  connectors text[] default null, details jsonb[] default null
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_tracked record;
  v_has_subjects boolean;
begin
  if events is null or events = '{}' then
    return 0;
  end if;
  select coalesce((o.settings ->> 'track_subjects')::boolean, true) into v_has_subjects
  from parley_mail._p_organization as o;
  select
    array_agg(g.event order by g.first) as events, array_agg(g.message_id::text order by g.first) as ids,
    jsonb_agg(g.addresses order by g.first) as recipients, array_agg(g.source order by g.first) as sources,
    -- A message that came is tracked when it is categorized, and came before.
    array_agg(case when g.event in ('RECEIVE', 'SUBMIT', 'DSN') then m.received_at end order by g.first) as times,
    jsonb_agg(jsonb_strip_nulls(jsonb_build_object(
      'status', g.status, 'text', g.text, 'host', g.host, 'connector', coalesce(g.connector, m.connector),
      'sender', m.sender, 'network_message_id', m.network_message_id, 'header_message_id', m.header_message_id,
      'bytes', m.size, 'received_at', m.received_at, 'client_ip', host(m.source_ip), 'helo', m.helo,
      'direction', m.directionality, 'submitted_by', m.submitted_by, 'parent', m.parent_message_id, 'tag', m.tag,
      'came_by', m.source, 'subject', case when v_has_subjects then m.subject end, 'arrived_at', host(m.server_ip),
      'server_ip', g.details ->> 'server_ip',
      'agents', case when g.event = 'AGENTINFO' then m.verdicts -> 'filters' end,
      'latency', case when g.details ? 'queued_at' then jsonb_build_object(
        'receive', m.receive_ms, 'categorize', l.categorize, 'connect', l.connect, 'transfer', l.transfer,
        'queue', greatest(
          l.total - l.categorize - coalesce(m.receive_ms, 0) - coalesce(l.connect, 0) - coalesce(l.transfer, 0), 0
        ), 'total', l.total
      ) end
    )) order by g.first) as fields
  into v_tracked
  from (
    select
      u.event, u.message_id, u.source, u.status, u.text, u.host, u.connector, min(u.n) as first,
      -- Recipients differ in nothing but some microseconds.
      (array_agg(u.details order by u.n))[1] as details,
      jsonb_agg(u.address order by u.n) filter (where u.address is not null) as addresses
    from unnest(events, message_ids, addresses, statuses, texts, hosts, sources, connectors, details) with ordinality
      as u (event, message_id, address, status, text, host, source, connector, details, n)
    group by u.event, u.message_id, u.source, u.status, u.text, u.host, u.connector
  ) as g
  left join parley_mail._p_message as m using (message_id)
  cross join lateral (
    -- From when it may go: who asks for later does not wait till then. A daemon's clock may go ahead of the server's.
    select w.connect, w.transfer, greatest(extract(epoch from clock_timestamp() - w.at) * 1000, 0)::bigint as total,
      greatest(extract(epoch from w.queued_at - w.at) * 1000 - coalesce(m.receive_ms, 0), 0)::bigint as categorize
    from (
      select greatest(m.received_at, m.not_before) as at, (g.details ->> 'queued_at')::timestamptz as queued_at,
        (g.details ->> 'connect_ms')::integer as connect, (g.details ->> 'transfer_ms')::integer as transfer
    ) as w
  ) as l;
  perform parley_mail._p_send_status(events, message_ids, addresses, statuses, texts);
  return parley_store.track(
    'mail', v_tracked.events, v_tracked.ids, recipients => v_tracked.recipients, fields => v_tracked.fields,
    sources => v_tracked.sources, times => v_tracked.times
  );
end
$$;

comment on function parley_mail._p_track(text[], bigint[], text[], text[], text[], text[], text[], text[], jsonb[]) is
'Records events in the message tracking log: recipients of one message with the same event are one row. Gives how many.
Arguments: an event, a message, an address and so on for each recipient; sources, such as SMTP or ROUTING; connectors,
null for that by which the message came; details, objects that may have server_ip and, for the latency, queued_at,
connect_ms and transfer_ms.
Source: spec mail 16.';

create function parley_mail._p_track_unstored(
  happened jsonb, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  if (happened ->> 'event' in ('BADMAIL', 'DROP')) is not true then
    found := parley_mail._p_raise('choice', 'event', coalesce(happened ->> 'event', 'null'), 'BADMAIL, DROP');
  end if;
  if exists (select from parley_mail._p_organization as o where not (o.settings ->> 'track_subjects')::boolean) then
    happened := happened - 'subject';
  end if;
  perform parley_store.track(
    'mail', array[happened ->> 'event'], array[null::text],
    jsonb_build_array(coalesce(happened -> 'recipients', '[]')),
    jsonb_build_array(happened - array['event', 'source', 'recipients']), array[happened ->> 'source']
  );
end
$$;

comment on function parley_mail._p_track_unstored(jsonb, parley.caller) is
'Records an event of a message that is not stored: a file that is none (BADMAIL), or what a filter wanted discarded
(DROP).
Arguments: happened, an object with event, source, recipients, and the fields of an event of a message as _p_track
writes them.
Errors: PM001 the role does not hold SERVE, PM010 another event.
Source: spec mail 3.6, 4.1, 16.';

create function parley_mail._p_sees_tracking(caller parley.caller default parley.current_caller()) returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select parley_mail._p_holds(parley.caller_role(caller), 'VIEW')
$$;

comment on function parley_mail._p_sees_tracking(parley.caller) is
'Reports whether the caller sees the events of all messages.';

create function parley_mail._p_submitter_numbers(caller parley.caller default parley.current_caller()) returns text[]
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select parley._p_numbers_of(parley.caller_role(caller))::text[]
$$;

comment on function parley_mail._p_submitter_numbers(parley.caller) is
'Gives the numbers of the caller''s role, as events have them.';

create view parley_mail._p_tracked with (security_barrier) as
select
  t.at, t.event, t.source, t.message_id,
  case
    when t.sees_all or (s.recipients @> t.recipients and s.recipients <@ t.recipients) then t.recipients
    else s.recipients
  end as recipients,
  case
    when t.sees_all or s.is_routing or (s.recipients @> t.recipients and s.recipients <@ t.recipients) then t.fields
    -- The text of a host about a recipient, and the host itself, can give its address away.
    else (
      select jsonb_object_agg(f.key, f.value)
      from jsonb_each(t.fields) as f
      where f.key in (
          'status', 'sender', 'network_message_id', 'header_message_id', 'bytes', 'received_at', 'client_ip', 'helo',
          'direction', 'submitted_by', 'parent', 'tag', 'came_by', 'subject', 'latency'
        )
    )
  end as fields,
  t.log_id
from (
  select r.at, r.event, r.source, r.message_id, r.recipients, r.fields, r.log_id, v.sees_all
  from parley_store.tracking as r
  cross join (
    select (select parley_mail._p_sees_tracking()) as sees_all,
      (select parley_mail._p_submitter_numbers()) as submitters
  ) as v
  where r.system = 'mail' and (v.sees_all or r.fields ->> 'submitted_by' = any (v.submitters))
) as t
left join lateral (
  select a.is_routing, array(
      select distinct m.address
      from unnest(t.recipients) as w (address)
      cross join lateral (
        select regexp_replace(t.fields ->> 'text', '^(rfc822|utf-8);', '') as address
        where a.is_routing and t.fields ? 'text'
        union all
        select w.address
        from parley_store.tracking as e
        where e.system = 'mail' and e.message_id = coalesce(t.fields ->> 'parent', t.message_id)
          and e.event in ('SUBMIT', 'RECEIVE') and w.address = any (e.recipients)
        union all
        select regexp_replace(e.fields ->> 'text', '^(rfc822|utf-8);', '')
        from parley_store.tracking as e
        where e.system = 'mail' and e.message_id = t.message_id and w.address = any (e.recipients)
          and e.event in ('RESOLVE', 'EXPAND', 'REDIRECT', 'DUPLICATEEXPAND', 'DUPLICATEREDIRECT')
        limit 1
      ) as m
    ) as recipients
  from (
    select t.event in ('RESOLVE', 'EXPAND', 'REDIRECT', 'DUPLICATEEXPAND', 'DUPLICATEREDIRECT') as is_routing
  ) as a
) as s on t.sees_all is not true;

comment on view parley_mail._p_tracked is
'Events of messages for parley_mail.tracking. A role that does not hold VIEW sees the events of its own submissions.
In them it sees the addresses that it wrote, and not those to which a group, an alias or forwarding led. An address of
which neither is known is not shown.';

create view parley_mail.tracking with (security_barrier) as
select
  t.at as date_time,
  case when t.event in ('RECEIVE', 'SUBMIT') then t.fields ->> 'client_ip' end as client_ip,
  case when t.event in ('RECEIVE', 'SUBMIT') then t.fields ->> 'helo' end as client_hostname,
  case when t.event = 'RECEIVE' then t.fields ->> 'arrived_at' else t.fields ->> 'server_ip' end as server_ip,
  t.fields ->> 'host' as server_hostname,
  case when t.event not in ('RESOLVE', 'EXPAND', 'REDIRECT', 'DUPLICATEEXPAND', 'DUPLICATEREDIRECT', 'TRANSFER')
    then t.fields ->> 'text' end as source_context,
  t.fields ->> 'connector' as connector_id,
  t.source,
  t.event as event_id,
  t.message_id as internal_message_id,
  t.fields ->> 'header_message_id' as message_id,
  t.fields ->> 'network_message_id' as network_message_id,
  t.recipients as recipient_address,
  case when t.fields ? 'status'
    then array_fill(concat_ws(' ', t.fields ->> 'status', t.fields ->> 'text'), array[cardinality(t.recipients)])
  end as recipient_status,
  (t.fields ->> 'bytes')::bigint as total_bytes,
  cardinality(t.recipients) as recipient_count,
  case when t.event in ('RESOLVE', 'EXPAND', 'REDIRECT', 'DUPLICATEEXPAND', 'DUPLICATEREDIRECT')
    then regexp_replace(t.fields ->> 'text', '^(rfc822|utf-8);', '') end as related_recipient_address,
  case when t.event in ('TRANSFER', 'DSN') then t.fields ->> 'parent' end as reference,
  t.fields ->> 'subject' as message_subject,
  t.fields ->> 'sender' as sender_address,
  t.fields ->> 'sender' as return_path,
  t.fields ->> 'received_at' as message_info,
  t.fields ->> 'direction' as directionality,
  t.fields ->> 'client_ip' as original_client_ip,
  t.fields ->> 'arrived_at' as original_server_ip,
  jsonb_strip_nulls(jsonb_build_object(
    'tag', t.fields -> 'tag', 'came_by', t.fields -> 'came_by', 'agents', t.fields -> 'agents',
    'latency', t.fields -> 'latency'
  )) as custom_data,
  'Email'::text as traffic_type,
  t.log_id::text as log_id,
  '1'::text as schema_version
from parley_mail._p_tracked as t;

comment on view parley_mail.tracking is
'Events of messages, in the order of fields that message tracking logs have: all for who holds VIEW, those of one''s own
submissions for others, who see the addresses that they wrote and not where groups, aliases and forwarding led. Name a
date_time or an internal_message_id: without them all partitions are read.
Columns: date_time; client_ip, client_hostname, from where it came; server_hostname, where it went; source_context, why;
source, what saw it; event_id; internal_message_id, the number of the message; message_id, of its header;
network_message_id, the same for forks; message_info, when it came first; reference, of a fork its parent and of a
report what it is about; server_ip, the address that took the message, ours or that of the next hop;
original_server_ip, ours; custom_data, the tag of the submitter, by what it came, what filters did and the latency of
each part of the way.';

create view parley_mail.latencies as
select t.date_time, t.internal_message_id, t.network_message_id, t.event_id, t.connector_id, t.server_hostname,
  t.recipient_address, l.receive as receive_ms, l.categorize as categorize_ms, l.queue as queue_ms,
  l.connect as connect_ms, l.transfer as transfer_ms, l.total as total_ms
from parley_mail.tracking as t
cross join lateral jsonb_to_record(t.custom_data -> 'latency') as l (
  receive bigint, categorize bigint, queue bigint, connect bigint, transfer bigint, total bigint
)
where t.custom_data ? 'latency';

comment on view parley_mail.latencies is
'How many milliseconds each part of the way of a message took until it was delivered, deferred or given up, from
parley_mail.tracking, of which it has the rights: name a date_time.
Columns: receive_ms, from MAIL FROM to the end of the data; categorize_ms, until it was in the queue of its next hop;
queue_ms, there, with attempts that failed; connect_ms and transfer_ms, of the last attempt; total_ms, all of it, from
when the message came or might go.';

create function parley_mail._p_track_operation(
  event text, message_ids bigint[], queues text[], reason text, source text default 'ADMIN'
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_events record;
begin
  select array_agg(u.message_id order by u.n) as ids, array_agg(r.address order by u.n) as addresses,
    count(*)::integer as events
  into v_events
  from unnest(message_ids, queues) with ordinality as u (message_id, queue, n)
  left join parley_mail._p_recipient as r on r.message_id = u.message_id and r.lane = u.queue;
  if v_events.events > 0 then
    perform parley_mail._p_track(
      array_fill(event, array[v_events.events]), v_events.ids, v_events.addresses, null,
      array_fill(reason, array[v_events.events]), null, array_fill(source, array[v_events.events])
    );
  end if;
end
$$;

comment on function parley_mail._p_track_operation(text, bigint[], text[], text, text) is
'Records what was done to messages in some queues, as an event of each.
Arguments: event; message_ids and queues, one each; reason; source, who did it.';
