-- Recipients: a row for each recipient of a message that was categorized, until its outcome is final.
--
-- Where a recipient goes next is a lane of parley_store, KIND/CONNECTOR/NEXT_HOP; base/delivery_kinds.sql has the
-- kinds. A work item of a lane is a message: it stands for all recipients of that message in that lane, which travel in
-- one transaction of SMTP. Recipients that are services and tables of this database have the system mail_service, whose
-- work is claimed, done and completed in one transaction; all others the system mail.
--
-- Invariants, and what keeps each:
--   a recipient has an item   row and item are written in one transaction, and removed in one
--   a message stays as long as a recipient, a report or a fork needs it, or it is to be categorized anew
--     _p_remove_finished

create table parley_mail._p_recipient (
  message_id bigint not null,
  ordinal integer not null,
  address text not null,
  original_recipient text,
  notify text,
  lane text,
  queued_at timestamptz not null default clock_timestamp(),
  attempts integer not null default 0,
  last_attempt_at timestamptz,
  last_code integer,
  last_status text,
  last_text text,
  last_host text,
  deaths smallint not null default 0,
  removal text check (removal in ('REPORT', 'SILENT')),
  primary key (message_id, ordinal)
);

comment on table parley_mail._p_recipient is
'Recipients whose outcome is not final. notify: NEVER or a list of SUCCESS, FAILURE, DELAY, null when the sender said
nothing; lane: where the work item is, null while it is not routed; queued_at: when it was categorized; attempts: how
many were made for the recipient, not counting those that did not reach its next hop; deaths: how often somebody died
who had it in his hands, since an attempt came to an end (categorizer/suspects.sql).';
comment on column parley_mail._p_recipient.removal is
'Set while the message is under way: the recipient is given up, with a report or without, when the attempt fails.';

create index _p_recipient_suspect on parley_mail._p_recipient (message_id) where deaths > 0;
create index _p_recipient_removal on parley_mail._p_recipient (message_id) where removal is not null;

create type parley_mail._p_outcome as (
  lease_id bigint,
  item_id bigint,
  message_id bigint,
  ordinal integer,
  outcome text,
  code integer,
  status text,
  reason text,
  host text,
  server_ip text,
  connect_ms integer,
  transfer_ms integer,
  address text
);

comment on type parley_mail._p_outcome is
'The outcome of a recipient: DELIVERED, DUPLICATE (the mailbox has the message already), RELAYED (to a host that makes
no reports), FAILED, DEFERRED, UNKNOWN (sent and not answered), or REROUTED (to be categorized anew, because the
mailbox is elsewhere now). connect_ms and transfer_ms: how long that took in the last attempt.';

create function parley_mail._p_remove_finished(message_ids bigint[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
  v_bodies bigint[];
  v_with_content bigint[];
  v_removed integer;
begin
  -- Locked, so that of two transactions that finish a message's last recipients the second sees what the first did.
  select array_agg(m.message_id) into v_ids
  from (
    select l.message_id
    from parley_mail._p_message as l
    where l.message_id = any (message_ids)
    order by l.message_id
    for update
  ) as m;
  with removed as (
    delete from parley_mail._p_message as m
    where m.message_id = any (v_ids)
      and not m.is_resubmitted
      and not exists (select from parley_mail._p_recipient as r where r.message_id = m.message_id)
      and not exists (select from parley_mail._p_report as r where r.message_id = m.message_id)
      and not exists (select from parley_mail._p_message as f where f.body_message_id = m.message_id)
    returning m.message_id, m.content_id, m.body_message_id
  )
  select
    count(*), array_agg(d.message_id) filter (where d.content_id is not null),
    array_agg(distinct d.body_message_id) filter (where d.body_message_id is not null)
  into v_removed, v_with_content, v_bodies
  from removed as d;
  if v_with_content is not null then
    perform parley_store.release_content('mail', v_with_content);
  end if;
  if v_bodies is not null then
    v_removed := v_removed + parley_mail._p_remove_finished(v_bodies);
  end if;
  return v_removed;
end
$$;

comment on function parley_mail._p_remove_finished(bigint[]) is
'Removes those of some categorized messages that nothing needs any more, with their bodies: no recipient, no report and
no fork. Gives how many.';
