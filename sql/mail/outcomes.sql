-- Outcomes: what became of messages that were claimed.
--
-- All that follows from an outcome is one transaction with it: the recipient's row, the work item, events, reports to
-- the sender. An outcome counts only while its lease does.

create function parley_mail._p_finish_recipients(
  message_ids bigint[], ordinals integer[], outcomes text[], codes integer[], statuses text[], texts text[],
  hosts text[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_events record;
begin
  with finished as (
    delete from parley_mail._p_recipient as r
    using unnest(message_ids, ordinals, outcomes, codes, statuses, texts, hosts) with ordinality
      as u (message_id, ordinal, outcome, code, status, reason, host, n)
    where r.message_id = u.message_id and r.ordinal = u.ordinal
      and u.outcome in ('DELIVERED', 'RELAYED', 'FAILED')
    returning
      r.message_id, r.ordinal, r.address, r.original_recipient, r.notify, r.lane, u.outcome, u.code, u.status,
      u.reason, u.host, u.n
  ),

  reported as (
    insert into parley_mail._p_report (
      message_id, ordinal, action, address, original_recipient, status, code, reason, host, attempted_at
    )
    select
      f.message_id, f.ordinal, f.outcome, f.address, f.original_recipient, f.status, f.code, f.reason, f.host,
      clock_timestamp()
    from finished as f
    join parley_mail._p_message as m using (message_id)
    where parley_mail._p_wants_report(m.sender, f.notify, f.outcome)
      -- A host that knows reports makes this one itself.
      and (f.outcome <> 'DELIVERED' or f.lane ~ '^(MAILBOX|SERVICE)/')
    on conflict do nothing
  ),

  deferred as (
    update parley_mail._p_recipient as r
    set attempts = r.attempts + 1, last_attempt_at = clock_timestamp(), last_code = u.code, last_status = u.status,
      last_text = u.reason, last_host = u.host, deaths = 0
    from unnest(message_ids, ordinals, outcomes, codes, statuses, texts, hosts) with ordinality
      as u (message_id, ordinal, outcome, code, status, reason, host, n)
    where r.message_id = u.message_id and r.ordinal = u.ordinal
      and u.outcome not in ('DELIVERED', 'RELAYED', 'FAILED')
    returning r.message_id, r.address, r.lane, u.outcome, u.status, u.reason, u.host, u.n
  ),

  happened as (
    select
      case
        when f.outcome = 'FAILED' then 'FAIL' when f.lane ~ '^(MAILBOX|SERVICE)/' then 'DELIVER' else 'SEND'
      end as event,
      f.message_id, f.address, f.status, f.reason, f.host, f.n,
      case when f.lane ~ '^(MAILBOX|SERVICE)/' then 'STOREDRIVER' else 'SMTP' end as source,
      split_part(f.lane, '/', 2) as connector
    from finished as f
    union all
    select 'DEFER', d.message_id, d.address, d.status, d.reason, d.host, d.n,
      case when d.lane ~ '^(MAILBOX|SERVICE)/' then 'STOREDRIVER' else 'SMTP' end, split_part(d.lane, '/', 2)
    from deferred as d
  )

  select
    array_agg(h.event order by h.n) as events, array_agg(h.message_id order by h.n) as ids,
    array_agg(h.address order by h.n) as addresses, array_agg(h.status order by h.n) as statuses,
    array_agg(h.reason order by h.n) as reasons, array_agg(h.host order by h.n) as hosts,
    array_agg(h.source order by h.n) as sources, array_agg(h.connector order by h.n) as connectors
  into v_events
  from happened as h;
  perform parley_mail._p_track(
    v_events.events, v_events.ids, v_events.addresses, v_events.statuses, v_events.reasons, v_events.hosts,
    v_events.sources, v_events.connectors
  );
end
$$;

comment on function parley_mail._p_finish_recipients(
  bigint[], integer[], text[], integer[], text[], text[], text[]
) is
'Writes what became of recipients: rows of those whose outcome is final go, others have an attempt counted; reports to
senders; events.
Arguments: an element for each recipient; outcomes, DELIVERED, RELAYED (to a host that makes no reports), FAILED,
DEFERRED, UNKNOWN, or REROUTED (to be categorized anew, because the mailbox is elsewhere now).';

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
  where w.system = 'mail' and w.lease_id = _p_expire_items.lease_id and w.item_id = any (items);
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

create function parley_mail._p_record_lease(
  lease_id bigint, items bigint[], message_ids bigint[], ordinals integer[], outcomes text[], codes integer[],
  statuses text[], texts text[], hosts text[], released bigint[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_completed bigint[];
  v_group record;
begin
  -- What is over is not taken elsewhere: it is given up like what is deferred.
  outcomes := array(
    select case
        when u.outcome = 'REROUTED' and m.expires_at <= clock_timestamp() then 'DEFERRED' else u.outcome
      end
    from unnest(outcomes, message_ids) with ordinality as u (outcome, id, n)
    left join parley_mail._p_message as m on m.message_id = u.id
    order by u.n
  );
  select array_agg(g.item) into v_completed
  from (
    select u.item
    from unnest(items, outcomes) as u (item, outcome)
    group by u.item
    having bool_and(u.outcome in ('DELIVERED', 'RELAYED', 'FAILED', 'REROUTED'))
  ) as g;
  -- First what is refused when the lease is over.
  if v_completed is not null then
    perform parley_store.complete_work(lease_id, v_completed);
  end if;
  if released is not null then
    perform parley_store.release_work(lease_id, released);
  end if;
  if message_ids is not null then
    perform parley_mail._p_finish_recipients(message_ids, ordinals, outcomes, codes, statuses, texts, hosts);
  end if;
  -- Not at once: the directory may learn later than the store that a mailbox has moved.
  select array_agg(u.id) as ids, array_agg(u.ordinal) as ordinals, array_agg(r.lane) as queues into v_group
  from unnest(message_ids, ordinals, outcomes) as u (id, ordinal, outcome)
  join parley_mail._p_recipient as r on r.message_id = u.id and r.ordinal = u.ordinal
  where u.outcome = 'REROUTED';
  if v_group.ids is not null then
    perform parley_mail._p_submit_again(
      v_group.ids, v_group.queues, v_group.ordinals, clock_timestamp() + interval '5 minutes'
    );
  end if;
  for v_group in
    select d.policy, array_agg(d.item) as items, min(d.reason) as reason
    from (
      select u.item, min(concat_ws(' ', u.status, u.reason)) as reason,
        parley_mail._p_message_policy(min(r.lane), min(m.priority), min(u.status)) as policy
      from unnest(items, message_ids, ordinals, outcomes, statuses, texts)
        as u (item, message_id, ordinal, outcome, status, reason)
      join parley_mail._p_message as m on m.message_id = u.message_id
      join parley_mail._p_recipient as r on r.message_id = u.message_id and r.ordinal = u.ordinal
      where u.outcome in ('DEFERRED', 'UNKNOWN')
      group by u.item
    ) as d
    group by d.policy
  loop
    perform parley_mail._p_expire_items(
      lease_id, parley_store.retry_work(lease_id, v_group.items, v_group.reason, v_group.policy)
    );
  end loop;
end
$$;

comment on function parley_mail._p_record_lease(
  bigint, bigint[], bigint[], integer[], text[], integer[], text[], text[], text[], bigint[]
) is
'Records the outcomes under one lease. The caller removes what is finished.
Errors: PS005 the lease is over.';

create function parley_mail._p_record_final(
  leases bigint[], items bigint[], message_ids bigint[], ordinals integer[], outcomes text[], codes integer[],
  statuses text[], texts text[], hosts text[]
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_held bigint[] := parley_store.complete_claimed(leases, items);
  v_kept record;
begin
  select
    array_agg(u.id order by u.n) as ids, array_agg(u.ordinal order by u.n) as ordinals,
    array_agg(u.outcome order by u.n) as outcomes, array_agg(u.code order by u.n) as codes,
    array_agg(u.status order by u.n) as statuses, array_agg(u.reason order by u.n) as texts,
    array_agg(u.host order by u.n) as hosts
  into v_kept
  from unnest(leases, message_ids, ordinals, outcomes, codes, statuses, texts, hosts) with ordinality
    as u (lease, id, ordinal, outcome, code, status, reason, host, n)
  where u.lease = any (v_held);
  if v_kept.ids is not null then
    perform parley_mail._p_finish_recipients(
      v_kept.ids, v_kept.ordinals, v_kept.outcomes, v_kept.codes, v_kept.statuses, v_kept.texts, v_kept.hosts
    );
  end if;
  return cardinality(leases) - coalesce(cardinality(v_kept.ids), 0);
end
$$;

comment on function parley_mail._p_record_final(
  bigint[], bigint[], bigint[], integer[], text[], integer[], text[], text[], text[]
) is
'Records outcomes under many leases that are all final; gives how many were refused because their lease is over. The
caller removes messages that are finished.';

create function parley_mail._p_record_outcomes(
  leases bigint[], items bigint[], message_ids bigint[], ordinals integer[], outcomes text[], codes integer[],
  statuses text[], texts text[], hosts text[], released_leases bigint[], released_items bigint[],
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease record;
  v_final record;
  v_mixed bigint[] := array(
    select u.lease
    from unnest(leases, outcomes) as u (lease, outcome)
    where u.outcome not in ('DELIVERED', 'RELAYED', 'FAILED')
    union
    select u.lease from unnest(released_leases) as u (lease)
  );
  v_refused integer := 0;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  perform parley_mail._p_commit_durably();
  -- Most leases have nothing but final outcomes: those are recorded together, however many they are.
  select
    array_agg(u.lease order by u.n) as leases, array_agg(u.item order by u.n) as items,
    array_agg(u.id order by u.n) as ids, array_agg(u.ordinal order by u.n) as ordinals,
    array_agg(u.outcome order by u.n) as outcomes, array_agg(u.code order by u.n) as codes,
    array_agg(u.status order by u.n) as statuses, array_agg(u.reason order by u.n) as texts,
    array_agg(u.host order by u.n) as hosts
  into v_final
  from unnest(leases, items, message_ids, ordinals, outcomes, codes, statuses, texts, hosts) with ordinality
    as u (lease, item, id, ordinal, outcome, code, status, reason, host, n)
  where u.lease <> all (v_mixed);
  if v_final.leases is not null then
    v_refused := parley_mail._p_record_final(
      v_final.leases, v_final.items, v_final.ids, v_final.ordinals, v_final.outcomes, v_final.codes, v_final.statuses,
      v_final.texts, v_final.hosts
    );
  end if;
  for v_lease in
    select
      coalesce(o.lease, r.lease) as lease, o.items, o.ids, o.ordinals, o.outcomes, o.codes, o.statuses, o.texts,
      o.hosts, r.items as released
    from (
      select
        u.lease, array_agg(u.item order by u.n) as items, array_agg(u.id order by u.n) as ids,
        array_agg(u.ordinal order by u.n) as ordinals, array_agg(u.outcome order by u.n) as outcomes,
        array_agg(u.code order by u.n) as codes, array_agg(u.status order by u.n) as statuses,
        array_agg(u.reason order by u.n) as texts, array_agg(u.host order by u.n) as hosts
      from unnest(leases, items, message_ids, ordinals, outcomes, codes, statuses, texts, hosts) with ordinality
        as u (lease, item, id, ordinal, outcome, code, status, reason, host, n)
      where u.lease = any (v_mixed)
      group by u.lease
    ) as o
    full join (
      select u.lease, array_agg(u.item order by u.item) as items
      from unnest(released_leases, released_items) as u (lease, item)
      group by u.lease
    ) as r on r.lease = o.lease
    order by 1
  loop
    begin
      perform parley_mail._p_record_lease(
        v_lease.lease, v_lease.items, v_lease.ids, v_lease.ordinals, v_lease.outcomes, v_lease.codes,
        v_lease.statuses, v_lease.texts, v_lease.hosts, v_lease.released
      );
    exception when sqlstate 'PS005' then
      v_refused := v_refused + coalesce(cardinality(v_lease.items), 0);
    end;
  end loop;
  -- All at once, so that messages are locked in their order: who delivers to services locks them too.
  perform parley_mail._p_remove_finished(message_ids);
  return v_refused;
end
$$;

comment on function parley_mail._p_record_outcomes(
  bigint[], bigint[], bigint[], integer[], text[], integer[], text[], text[], text[], bigint[], bigint[], parley.caller
) is
'Records what became of claimed messages, and gives back those that were not tried. Gives how many outcomes were refused
because their lease is over: somebody else has these messages, or will.
Arguments: the first nine have an element for each recipient; codes may be null; released_leases and released_items, an
element for each message that was not tried.
Errors: PM001 the role does not hold SERVE.
Source: spec mail 1 (rule 3), 8.1, 9.';

create function parley_mail._p_report_hops(
  lanes text[], errors text[], began timestamptz[], caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hop record;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  -- In one order, so that two daemons do not wait for each other.
  for v_hop in
    select u.lane, u.error, u.began
    from unnest(lanes, errors, began) as u (lane, error, began)
    where exists (select from parley_store.lanes as l where l.system = 'mail' and l.lane = u.lane)
    order by u.lane
  loop
    if v_hop.error is null then
      perform parley_store.succeed_lane('mail', v_hop.lane);
    else
      perform parley_store.fail_lane('mail', v_hop.lane, v_hop.error, v_hop.began);
    end if;
  end loop;
end
$$;

comment on function parley_mail._p_report_hops(text[], text[], timestamptz[], parley.caller) is
'Reports whether next hops were reached: one that was not is left alone for as long as its retry policy says.
Arguments: lanes; errors, null for a hop that was reached; began, when the connection was begun.
Errors: PM001 the role does not hold SERVE.
Source: spec mail 8.1.';
