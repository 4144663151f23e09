-- Holds what was sent against what arrived, message by message. A message is known by its conversation, its sender and
-- its number; the broker promises the order of what one sender sends on one conversation.
with dropped as (
  select message_drop_id, message_val, payload_md5, octet_length(message_val) >= 28 as has_header
  from message_drop
), arrived as materialized (
  select
    d.message_drop_id,
    d.payload_md5,
    octet_length(d.message_val) as bytes,
    encode(substring(d.message_val from 13 for 16), 'hex')::uuid as sent_md5,
    ('x' || encode(substring(d.message_val from 1 for 4), 'hex'))::bit(32)::integer as conversation,
    ('x' || encode(substring(d.message_val from 5 for 4), 'hex'))::bit(32)::integer as sender,
    ('x' || encode(substring(d.message_val from 9 for 4), 'hex'))::bit(32)::integer as sequence
  from dropped as d
  where d.has_header
), first_arrival as materialized (
  select a.conversation, a.sender, a.sequence, min(a.message_drop_id) as message_drop_id, count(*) as times
  from arrived as a
  group by a.conversation, a.sender, a.sequence
), matched as materialized (
  select l.conversation, l.sender, l.sequence, l.body_bytes, f.message_drop_id, f.times, l.conversation is not null as was_sent
  from sent_ledger as l
  full join first_arrival as f on f.conversation = l.conversation and f.sender = l.sender and f.sequence = l.sequence
), ordered as (
  select
    m.conversation,
    m.sender,
    m.sequence,
    max(m.sequence) over (
      partition by m.conversation, m.sender order by m.message_drop_id rows between unbounded preceding and 1 preceding
    ) as newest_before
  from matched as m
  where m.was_sent and m.message_drop_id is not null
), late as materialized (
  select o.conversation, o.sender, o.sequence, o.newest_before from ordered as o where o.sequence < o.newest_before
), damaged as materialized (
  select a.conversation, a.sender, a.sequence, a.bytes, l.body_bytes
  from arrived as a
  join sent_ledger as l on l.conversation = a.conversation and l.sender = a.sender and l.sequence = a.sequence
  where a.sent_md5 is distinct from a.payload_md5 or a.bytes <> least(l.body_bytes, 2000)
)
select
  (select count(*) from sent_ledger) as messages_sent,
  (select count(*) from message_drop) as messages_received,
  (select count(*) from matched as m where m.was_sent and m.message_drop_id is null) as lost,
  (select coalesce(sum(m.times - 1), 0) from matched as m where m.was_sent)::bigint as duplicated,
  (select count(*) from late) as out_of_order,
  (select count(*) from damaged) as corrupted,
  (select coalesce(sum(m.times), 0) from matched as m where not m.was_sent)::bigint
    + (select count(*) from dropped as d where d.has_header is not true) as never_sent,
  array(
    (
      select format('Conversation %s, sender %s, message %s (%s bytes) was sent and did not arrive.', m.conversation, m.sender, m.sequence, m.body_bytes)
      from matched as m where m.was_sent and m.message_drop_id is null order by m.conversation, m.sender, m.sequence limit 3
    )
    union all
    (
      select format('Conversation %s, sender %s, message %s arrived %s times.', m.conversation, m.sender, m.sequence, m.times)
      from matched as m where m.was_sent and m.times > 1 order by m.conversation, m.sender, m.sequence limit 3
    )
    union all
    (
      select format('Conversation %s, sender %s, message %s arrived after message %s.', o.conversation, o.sender, o.sequence, o.newest_before)
      from late as o order by o.conversation, o.sender, o.sequence limit 3
    )
    union all
    (
      select format(
        'Conversation %s, sender %s, message %s of %s bytes arrived changed: %s bytes of it are in the table.',
        d.conversation, d.sender, d.sequence, d.body_bytes, d.bytes
      )
      from damaged as d order by d.conversation, d.sender, d.sequence limit 3
    )
  ) as examples
