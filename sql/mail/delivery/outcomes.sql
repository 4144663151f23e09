-- Outcomes: what became of messages that were claimed.
--
-- All that follows from an outcome is one transaction with it: the recipient's row, the work item, events, reports to
-- the sender. An outcome counts only while its lease does; that something was delivered is true also after that
-- (delivery/unknown_outcomes.sql).

create function parley_mail._p_event_of(outcome text, is_local boolean) returns text
language sql immutable parallel safe
as $$
  select case
    when outcome operator(pg_catalog.=) 'FAILED' then case when is_local then 'DELIVERFAIL' else 'FAIL' end
    when outcome operator(pg_catalog.=) 'DUPLICATE' then 'DUPLICATEDELIVER'
    when outcome operator(pg_catalog.=) 'DELIVERED' or outcome operator(pg_catalog.=) 'RELAYED' then
      case when is_local then 'DELIVER' else 'SEND' end
    when outcome operator(pg_catalog.=) 'UNKNOWN' then 'UNKNOWN'
    else 'DEFER'
  end
$$;

comment on function parley_mail._p_event_of(text, boolean) is
'Gives the event of an attempt to deliver a message.
Arguments: outcome; is_local, as the kind of delivery has it.
Source: spec mail 16.';

create function parley_mail._p_finish_recipients(outcomes parley_mail._p_outcome[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_tried record;
begin
  with finished as (
    delete from parley_mail._p_recipient as r
    using unnest(outcomes) with ordinality as u
    where r.message_id = u.message_id and r.ordinal = u.ordinal
      and u.outcome in ('DELIVERED', 'DUPLICATE', 'RELAYED', 'FAILED')
    returning
      r.message_id, r.ordinal, r.address, r.original_recipient, r.notify, r.lane, r.queued_at, u.outcome, u.code,
      u.status, u.reason, u.host, u.server_ip, u.connect_ms, u.transfer_ms, u.ordinality as n,
      case u.outcome when 'DUPLICATE' then 'DELIVERED' else u.outcome end as action
  ),

  deferred as (
    update parley_mail._p_recipient as r
    set attempts = r.attempts + 1, last_attempt_at = clock_timestamp(), last_code = u.code, last_status = u.status,
      last_text = u.reason, last_host = u.host, deaths = 0
    from unnest(outcomes) with ordinality as u
    where r.message_id = u.message_id and r.ordinal = u.ordinal
      and u.outcome not in ('DELIVERED', 'DUPLICATE', 'RELAYED', 'FAILED')
    returning
      r.message_id, r.ordinal, r.address, r.original_recipient, r.notify, r.lane, r.queued_at, u.outcome, u.code,
      u.status, u.reason, u.host, u.server_ip, u.connect_ms, u.transfer_ms, u.ordinality as n, null::text as action
  ),

  tried as (
    select a.message_id, a.ordinal, a.address, a.original_recipient, a.notify, a.lane, a.queued_at, a.outcome, a.code,
      a.status, a.reason, a.host, a.server_ip, a.connect_ms, a.transfer_ms, a.n, a.action, p.connector,
      coalesce(k.is_local, false) as is_local, coalesce(k.tracking_source, 'SMTP') as source, k.keeps_duplicates
    from (table finished union all table deferred) as a
    cross join parley_mail._p_parts_of_lane(a.lane) as p
    -- A delivery that is reported after its lease may stand in a queue from which nothing leaves, or in none.
    left join parley_mail._p_delivery_kind as k on k.kind = p.kind
  ),

  reported as (
    insert into parley_mail._p_report (
      message_id, ordinal, action, address, original_recipient, status, code, reason, host, attempted_at
    )
    select
      t.message_id, t.ordinal, t.action, t.address, t.original_recipient, t.status, t.code, t.reason,
      case when not t.is_local then t.host end, clock_timestamp()
    from tried as t
    join parley_mail._p_message as m using (message_id)
    where t.action is not null and parley_mail._p_wants_report(m.sender, t.notify, t.action)
      -- A host that knows reports makes this one itself.
      and (t.action <> 'DELIVERED' or t.is_local)
    on conflict do nothing
  )

  select array_agg(o.event) as events, array_agg(o.message_id) as ids, array_agg(o.address) as addresses,
    array_agg(o.status) as statuses, array_agg(o.reason) as reasons, array_agg(o.host) as hosts,
    array_agg(o.source) as sources, array_agg(o.connector) as connectors, array_agg(o.details) as details,
    array_agg(o.message_id) filter (where o.is_kept) as kept_ids,
    array_agg(o.address) filter (where o.is_kept) as kept_addresses,
    array_agg(o.lane) filter (where o.is_kept) as kept_lanes
  into v_tried
  from (
    select parley_mail._p_event_of(t.outcome, t.is_local) as event, t.message_id, t.address, t.status, t.reason, t.host,
      t.source, t.connector, jsonb_build_object(
        'server_ip', t.server_ip, 'queued_at', t.queued_at, 'connect_ms', t.connect_ms, 'transfer_ms', t.transfer_ms
      ) as details, t.lane, t.keeps_duplicates and t.outcome = 'DELIVERED' as is_kept
    from tried as t
    order by t.n
  ) as o;
  if v_tried.kept_ids is not null then
    perform parley_mail._p_remember_delivered(v_tried.kept_ids, v_tried.kept_addresses, v_tried.kept_lanes);
  end if;
  perform parley_mail._p_track(
    v_tried.events, v_tried.ids, v_tried.addresses, v_tried.statuses, v_tried.reasons, v_tried.hosts, v_tried.sources,
    v_tried.connectors, v_tried.details
  );
end
$$;

comment on function parley_mail._p_finish_recipients(parley_mail._p_outcome[]) is
'Writes the outcomes of recipients: rows of those whose outcome is final go, others have an attempt counted; reports to
senders; events; the messages that mailboxes have got.
Arguments: outcomes, of which leases, items and addresses are not needed.';

create function parley_mail._p_record_lease(
  lease_id bigint, outcomes parley_mail._p_outcome[], released bigint[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_completed bigint[];
  v_unknown jsonb;
  v_group record;
begin
  v_unknown := parley_mail._p_unknown_lanes(outcomes);
  -- A recipient whose time is over is not taken elsewhere: it is given up like one that is deferred.
  outcomes := parley_mail._p_given_up(array(
    select (
      u.lease_id, u.item_id, u.message_id, u.ordinal,
      case when u.outcome = 'REROUTED' and m.expires_at <= clock_timestamp() then 'DEFERRED' else u.outcome end,
      u.code, u.status, u.reason, u.host, u.server_ip, u.connect_ms, u.transfer_ms, u.address
    )::parley_mail._p_outcome
    from unnest(outcomes) as u
    left join parley_mail._p_message as m on m.message_id = u.message_id
  ));
  select array_agg(g.item_id) into v_completed
  from (
    select u.item_id
    from unnest(outcomes) as u
    group by u.item_id
    having bool_and(u.outcome in ('DELIVERED', 'DUPLICATE', 'RELAYED', 'FAILED', 'REROUTED'))
  ) as g;
  -- First what is refused when the lease is over.
  if v_completed is not null then
    perform parley_store.complete_work(lease_id, v_completed);
  end if;
  if released is not null then
    perform parley_store.release_work(lease_id, released);
  end if;
  if outcomes <> '{}' then
    perform parley_mail._p_finish_recipients(outcomes);
  end if;
  -- Not at once: the directory may learn later than the store that a mailbox has moved.
  select array_agg(u.message_id) as ids, array_agg(u.ordinal) as ordinals, array_agg(r.lane) as queues into v_group
  from unnest(outcomes) as u
  join parley_mail._p_recipient as r on r.message_id = u.message_id and r.ordinal = u.ordinal
  where u.outcome = 'REROUTED';
  if v_group.ids is not null then
    perform parley_mail._p_submit_again(
      v_group.ids, v_group.queues, v_group.ordinals, clock_timestamp() + interval '5 minutes'
    );
  end if;
  for v_group in
    select d.policy, array_agg(d.item_id) as items, min(d.reason) as reason
    from (
      select u.item_id, min(concat_ws(' ', nullif(u.status, split_part(u.reason, ' ', 1)), u.reason)) as reason,
        case
          when count(r.message_id) = 0 then 'GONE'
          when bool_or(u.outcome = 'UNKNOWN' and parley_mail._p_unknown_policy(r.lane) = 'HOLD') then 'HOLD'
          else parley_mail._p_message_policy(min(r.lane), min(m.priority), min(u.status))
        end as policy
      from unnest(outcomes) as u
      left join parley_mail._p_message as m on m.message_id = u.message_id
      left join parley_mail._p_recipient as r on r.message_id = u.message_id and r.ordinal = u.ordinal
      where u.outcome in ('DEFERRED', 'UNKNOWN')
      group by u.item_id
    ) as d
    group by d.policy
  loop
    if v_group.policy = 'GONE' then
      -- Somebody has delivered it meanwhile, and came late with that.
      perform parley_store.complete_work(lease_id, v_group.items);
    elsif v_group.policy = 'HOLD' then
      perform parley_store.suspend_claimed(lease_id, v_group.items, 'unknown outcome', v_group.reason);
    else
      perform parley_mail._p_expire_items(
        lease_id, parley_store.retry_work(lease_id, v_group.items, v_group.reason, v_group.policy)
      );
    end if;
  end loop;
  -- Behind what is locked before lanes are.
  perform parley_store.record_lane_error('mail', u.key, u.value) from jsonb_each_text(v_unknown) as u order by u.key;
end
$$;

comment on function parley_mail._p_record_lease(bigint, parley_mail._p_outcome[], bigint[]) is
'Records the outcomes under one lease. The caller removes what is finished.
Arguments: lease_id; outcomes; released, items that were not tried.
Errors: PS005 the lease is over.';

create function parley_mail._p_record_final(outcomes parley_mail._p_outcome[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_held bigint[] := parley_store.complete_claimed(
    array(select u.lease_id from unnest(outcomes) with ordinality as u order by u.ordinality),
    array(select u.item_id from unnest(outcomes) with ordinality as u order by u.ordinality)
  );
  v_kept parley_mail._p_outcome[];
begin
  if not exists (select from unnest(outcomes) as u where u.lease_id <> all (v_held)) then
    perform parley_mail._p_finish_recipients(outcomes);
    return 0;
  end if;
  v_kept := array(select u from unnest(outcomes) as u where u.lease_id = any (v_held));
  if v_kept <> '{}' then
    perform parley_mail._p_finish_recipients(v_kept);
  end if;
  perform parley_mail._p_finish_late(array(select u from unnest(outcomes) as u where u.lease_id <> all (v_held)));
  return cardinality(outcomes) - cardinality(v_kept);
end
$$;

comment on function parley_mail._p_record_final(parley_mail._p_outcome[]) is
'Records outcomes under many leases that are all final; gives how many were refused because their lease is over. The
caller removes messages that are finished.';

create function parley_mail._p_record_outcomes(
  leases bigint[], items bigint[], message_ids bigint[], ordinals integer[], outcomes text[], codes integer[],
  statuses text[], texts text[], hosts text[], released_leases bigint[], released_items bigint[],
  server_ips text[] default null, connect_ms integer[] default null, transfer_ms integer[] default null,
  addresses text[] default null, lanes text[] default null, caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease record;
  v_outcomes parley_mail._p_outcome[] := array(
    select (
      u.lease, u.item, u.id, u.ordinal, u.outcome, u.code, u.status, u.reason, u.host, u.server_ip, u.connect_ms,
      u.transfer_ms, u.address
    )::parley_mail._p_outcome
    from unnest(
      leases, items, message_ids, ordinals, outcomes, codes, statuses, texts, hosts, server_ips,
      _p_record_outcomes.connect_ms, _p_record_outcomes.transfer_ms, addresses
    ) with ordinality as u (
      lease, item, id, ordinal, outcome, code, status, reason, host, server_ip, connect_ms, transfer_ms, address, n
    )
    order by u.n
  );
  v_final parley_mail._p_outcome[];
  v_mixed bigint[] := array(
    select u.lease_id
    from unnest(v_outcomes) as u
    where u.outcome not in ('DELIVERED', 'DUPLICATE', 'RELAYED', 'FAILED')
    union
    select u.lease from unnest(released_leases) as u (lease)
  );
  v_refused integer := 0;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  perform parley_mail._p_commit_durably();
  -- Most leases have nothing but final outcomes: those are recorded together, however many they are.
  v_final := v_outcomes;
  if v_mixed <> '{}' then
    v_final := array(select u from unnest(v_outcomes) as u where u.lease_id <> all (v_mixed));
  end if;
  -- Lease by lease, or with reports of hops behind it, lanes would be locked in any order.
  if v_mixed <> '{}' or cardinality(lanes) > 0 then
    perform parley_store.lock_lanes('mail', leases || released_leases, lanes);
  end if;
  if v_final <> '{}' then
    v_refused := parley_mail._p_record_final(v_final);
  end if;
  for v_lease in
    select coalesce(o.lease, r.lease) as lease, coalesce(o.outcomes, '{}') as outcomes, r.items as released
    from (
      select u.lease_id as lease, array_agg(u::parley_mail._p_outcome) as outcomes
      from unnest(v_outcomes) as u
      where u.lease_id = any (v_mixed)
      group by u.lease_id
    ) as o
    full join (
      select u.lease, array_agg(u.item order by u.item) as items
      from unnest(released_leases, released_items) as u (lease, item)
      group by u.lease
    ) as r on r.lease = o.lease
    order by 1
  loop
    begin
      perform parley_mail._p_record_lease(v_lease.lease, v_lease.outcomes, v_lease.released);
    exception when sqlstate 'PS005' then
      v_refused := v_refused + cardinality(v_lease.outcomes);
      perform parley_mail._p_finish_late(v_lease.outcomes);
    end;
  end loop;
  -- All at once, so that messages are locked in their order: who delivers to services locks them too.
  perform parley_mail._p_remove_finished(message_ids);
  return v_refused;
end
$$;

comment on function parley_mail._p_record_outcomes(
  bigint[], bigint[], bigint[], integer[], text[], integer[], text[], text[], text[], bigint[], bigint[], text[],
  integer[], integer[], text[], text[], parley.caller
) is
'Records what became of claimed messages, and gives back those that were not tried. Gives how many outcomes were refused
because their lease is over: somebody else has these messages, or will; what was delivered is not sent again even so,
where its address is given.
Arguments: the first nine have an element for each recipient; codes may be null; released_leases and released_items, an
element for each message that was not tried; server_ips, connect_ms, transfer_ms and addresses, for each recipient, of
which none has to be known; lanes, which the same transaction reports on after this.
Errors: PM001 the role does not hold SERVE.
Source: spec mail 1 (rule 3), 8.1, 9, 15.3, 16.';
