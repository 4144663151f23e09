-- Messages that are submitted once more: those of their recipients that wait somewhere are categorized anew.
--
-- The row of the message has the recipients that are still to be categorized. When it is submitted again, from another
-- queue say, before the categorizer has come to it, these are added to, and its one item in the submission queue stands
-- for all.
--
-- Invariants, and what keeps each:
--   no recipient is lost or gets the message twice   is_resubmitted, which is set, and taken back by the categorizer,
--     under a lock on the row of the message, before the recipients are read

create function parley_mail._p_submit_again(
  message_ids bigint[], queues text[], ordinals integer[] default null, not_before timestamptz default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pending bigint[];
  v_group record;
begin
  perform
  from parley_mail._p_message as m
  where m.message_id = any (message_ids)
  order by m.message_id
  for update;
  select coalesce(array_agg(m.message_id), '{}') into v_pending
  from parley_mail._p_message as m
  where m.message_id = any (message_ids) and m.is_resubmitted;
  with taken as (
    delete from parley_mail._p_recipient as p
    using unnest(message_ids, queues, ordinals) as u (message_id, queue, ordinal)
    where p.message_id = u.message_id and p.lane = u.queue and (ordinals is null or p.ordinal = u.ordinal)
    returning p.message_id, p.ordinal, p.address, p.notify, p.original_recipient
  )

  update parley_mail._p_message as m
  set recipients = case when m.is_resubmitted then m.recipients else '{}' end || r.addresses,
    notify = case
        when m.is_resubmitted then coalesce(m.notify, array_fill(null::text, array[cardinality(m.recipients)]))
        else '{}'
      end || r.notify,
    original_recipients = case
        when m.is_resubmitted
          then coalesce(m.original_recipients, array_fill(null::text, array[cardinality(m.recipients)]))
        else '{}'
      end || r.originals,
    is_resubmitted = true, resubmissions = least(m.resubmissions, 1000) + 1, crash_count = 0
  from (
    select t.message_id, array_agg(t.address order by t.ordinal) as addresses,
      array_agg(t.notify order by t.ordinal) as notify, array_agg(t.original_recipient order by t.ordinal) as originals
    from taken as t
    group by t.message_id
  ) as r
  where m.message_id = r.message_id;
  for v_group in
    select m.priority, array_agg(m.message_id order by m.message_id) as ids
    from parley_mail._p_message as m
    where m.message_id = any (message_ids) and m.message_id <> all (v_pending)
    group by m.priority
  loop
    perform parley_mail._p_submit(v_group.ids, v_group.priority, not_before);
  end loop;
end
$$;

comment on function parley_mail._p_submit_again(bigint[], text[], integer[], timestamptz) is
'Has recipients of messages categorized anew that wait in some queues. Their work items are the caller''s to remove.
Arguments: message_ids and queues, an element for each message and queue; ordinals, null for all recipients there, or
one for each element; not_before, not before that time (null: now).
Source: spec mail 8.2.';
