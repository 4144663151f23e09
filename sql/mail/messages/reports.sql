-- Delivery status notifications: what is to be reported to senders, until the report is made.
--
-- The outcome of a recipient puts a row here where the sender wants a report. Rows of one message and one action that
-- come within the setting dsn_window are one report. A daemon composes it (internal/mail/report) and accepts it as a
-- message, in the transaction that removes the rows: so each is made once.
--
-- A report names the host to which the last attempt came, but not where the message arrives in a mailbox store or a
-- service, which is no host of the DNS (RFC 3464 section 2.3.5): is_local of the kind of delivery.
--
-- Never reported: what has the null sender, recipients with NOTIFY=NEVER, an action that was not asked for.

create function parley_mail._p_report_window() returns interval
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce((o.settings ->> 'dsn_window')::integer, 5) * interval '1 second' from parley_mail._p_organization as o
$$;

comment on function parley_mail._p_report_window() is
'Gives how long reports about one message are collected.
Source: spec mail 8.3.';

create table parley_mail._p_report (
  message_id bigint not null,
  ordinal integer not null,
  action text not null check (action in ('FAILED', 'DELAYED', 'DELIVERED', 'RELAYED', 'EXPANDED')),
  address text not null,
  original_recipient text,
  status text not null,
  code integer,
  reason text,
  host text,
  attempted_at timestamptz,
  due_at timestamptz not null default clock_timestamp() + parley_mail._p_report_window(),
  primary key (message_id, action, ordinal)
);

comment on table parley_mail._p_report is 'Recipients that are to be reported to the sender of their message.';

create index _p_report_due on parley_mail._p_report (due_at);

create function parley_mail._p_wants_report(sender text, notify text, action text) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select sender <> '' and case action
    when 'FAILED' then coalesce(notify like '%FAILURE%', true)
    when 'DELAYED' then coalesce(notify like '%DELAY%', true)
    else coalesce(notify like '%SUCCESS%', false)
  end
$$;

comment on function parley_mail._p_wants_report(text, text, text) is
'Reports whether the sender of a message is to be informed of what became of a recipient.
Arguments: sender, empty for the null sender; notify, of the recipient; action, FAILED, DELAYED, DELIVERED, RELAYED or
EXPANDED.
Source: RFC 3461 section 4.1; spec mail 9.';

create function parley_mail._p_fail_recipients(
  message_ids bigint[], ordinals integer[], statuses text[], texts text[], source text default 'ROUTING'
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_failed record;
begin
  with failed as (
    delete from parley_mail._p_recipient as r
    using unnest(message_ids, ordinals, statuses, texts) as u (message_id, ordinal, status, reason)
    where r.message_id = u.message_id and r.ordinal = u.ordinal
    returning
      r.message_id, r.ordinal, r.address, r.original_recipient, r.notify, u.status, u.reason, r.last_attempt_at,
      r.lane, r.last_host, r.last_text
  ),

  reported as (
    insert into parley_mail._p_report (
      message_id, ordinal, action, address, original_recipient, status, code, reason, host, attempted_at
    )
    select
      f.message_id, f.ordinal, 'FAILED', f.address, f.original_recipient, f.status, null,
      concat_ws('; last attempt: ', f.reason, f.last_text), case when k.is_local is not true then f.last_host end,
      f.last_attempt_at
    from failed as f
    join parley_mail._p_message as m using (message_id)
    cross join parley_mail._p_parts_of_lane(f.lane) as p
    left join parley_mail._p_delivery_kind as k on k.kind = p.kind
    where parley_mail._p_wants_report(m.sender, f.notify, 'FAILED')
    on conflict do nothing
  )

  select
    array_agg(f.message_id) as message_ids, array_agg(f.address) as addresses, array_agg(f.status) as statuses,
    array_agg(f.reason) as reasons, count(*)::integer as recipients
  into v_failed
  from failed as f;
  perform parley_mail._p_track(
    array_fill('FAIL'::text, array[v_failed.recipients]), v_failed.message_ids, v_failed.addresses, v_failed.statuses,
    v_failed.reasons, null, array_fill(source, array[v_failed.recipients])
  );
  perform parley_mail._p_remove_finished(v_failed.message_ids);
  return v_failed.recipients;
end
$$;

comment on function parley_mail._p_fail_recipients(bigint[], integer[], text[], text[], text) is
'Gives up recipients: a report to the sender where he wants one, an event, and the message is removed when nothing of it
is left. Gives how many. The caller completes the rest of their work items.
Arguments: message_ids and ordinals, which recipients; statuses, codes of RFC 3463; texts, why; source, what gave up.
Source: spec mail 9.';

create function parley_mail._p_expire_items(lease_id bigint, items bigint[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_expired record;
begin
  if cardinality(items) = 0 then
    return 0;
  end if;
  select
    array_agg(r.message_id) as ids, array_agg(r.ordinal) as ordinals, array_agg('5.4.7'::text) as statuses,
    -- Why its next hop was not reached stands at the queue alone; what a host said of a recipient, at that.
    array_agg(concat_ws(
      '; last attempt: ', 'The message waited as long as it may and could not be delivered.',
      case when r.last_text is null and l.failing_since is not null then l.last_error end
    )) as texts
  into v_expired
  from parley_store.work_items as w
  join parley_mail._p_recipient as r on r.message_id = w.subject and r.lane = w.lane
  left join parley_store.lanes as l on l.system = w.system and l.lane = w.lane
  where w.system in ('mail', 'mail_service') and w.lease_id = _p_expire_items.lease_id and w.item_id = any (items);
  perform parley_store.complete_work(lease_id, items);
  if v_expired.ids is null then
    return 0;
  end if;
  return parley_mail._p_fail_recipients(
    v_expired.ids, v_expired.ordinals, v_expired.statuses, v_expired.texts, 'QUEUE'
  );
end
$$;

comment on function parley_mail._p_expire_items(bigint, bigint[]) is
'Gives up the recipients of work items whose time is over, and completes the items; gives how many recipients.
Errors: PS005 the lease is over.
Source: spec mail 8.3.';
