-- Delays and expiry: the sender is informed when a message is late, and a message that waited too long is given up.

create function parley_mail._p_report_delays(messages integer default 1000) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_settings jsonb;
  v_delays interval[];
  v_reported integer;
begin
  select o.settings into v_settings from parley_mail._p_organization as o;
  v_delays := array[
    coalesce((v_settings ->> 'delay_notice_high')::integer, 1800) * interval '1 second',
    coalesce((v_settings ->> 'delay_notice')::integer, 14400) * interval '1 second',
    coalesce((v_settings ->> 'delay_notice_low')::integer, 28800) * interval '1 second'
  ];
  with due as (
    select m.message_id, m.sender
    from generate_series(0, 2) as p (priority)
    cross join lateral (
      select l.message_id, l.sender
      from parley_mail._p_message as l
      where l.delay_reported_at is null
        -- A message that is not categorized has no recipient of whom a delay could be reported.
        and exists (select from parley_mail._p_recipient as w where w.message_id = l.message_id)
        and l.priority = p.priority
        and l.received_at < clock_timestamp() - v_delays[p.priority + 1]
        -- A message that is to leave later is not late before.
        and coalesce(l.not_before < clock_timestamp() - v_delays[p.priority + 1], true)
      order by l.received_at
      limit _p_report_delays.messages
      for update skip locked
    ) as m
  ),

  marked as (
    update parley_mail._p_message as m
    set delay_reported_at = clock_timestamp()
    from due as d
    where m.message_id = d.message_id
  ),

  reported as (
    insert into parley_mail._p_report (
      message_id, ordinal, action, address, original_recipient, status, code, reason, host, attempted_at
    )
    select
      r.message_id, r.ordinal, 'DELAYED', r.address, r.original_recipient, coalesce(r.last_status, '4.4.7'),
      r.last_code, coalesce(r.last_text, l.last_error, 'The message is waiting.'),
      case when k.is_local is not true then r.last_host end, r.last_attempt_at
    from due as d
    join parley_mail._p_recipient as r using (message_id)
    cross join parley_mail._p_parts_of_lane(r.lane) as p
    left join parley_mail._p_delivery_kind as k on k.kind = p.kind
    left join parley_store.lanes as l on l.system = 'mail' and l.lane = r.lane
    where parley_mail._p_wants_report(d.sender, r.notify, 'DELAYED')
      and coalesce((v_settings ->> case
        when exists (
          select
          from parley_mail._p_accepted_domain as a
          where a.domain = any (parley_mail._p_domain_patterns(parley_mail._p_domain_of(d.sender)))
        ) then 'delay_notice_internal'
        else 'delay_notice_external'
      end)::boolean, true)
    on conflict do nothing
  )

  select count(*)::integer into v_reported from due;
  return v_reported;
end
$$;

comment on function parley_mail._p_report_delays(integer) is
'Has senders informed, once a message, of what is still waiting, after what the settings delay_notice, delay_notice_high
and delay_notice_low say. Gives how many messages it was about.
Arguments: messages, how many of each priority at most.
Source: spec mail 8.3, 10.';

create function parley_mail._p_expire_waiting(items integer default 1000) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease record;
  v_expired integer := 0;
begin
  for v_lease in
    -- Claimed once, and not for each lane that it is joined with.
    with claimed as materialized (
      select s.system, w.lane, w.lease_id, w.item_id
      from unnest(array['mail', 'mail_service']) as s (system)
      cross join lateral parley_store.claim_expired(s.system, _p_expire_waiting.items) as w
    )

    select c.lease_id, array_agg(c.item_id) as items
    from claimed as c
    join parley_store.lanes as l on l.system = c.system and l.lane = c.lane
    group by l.lane_id, c.lease_id
    -- Ending a lease locks its lane: in the order of all who do that.
    order by l.lane_id
  loop
    v_expired := v_expired + parley_mail._p_expire_items(v_lease.lease_id, v_lease.items);
  end loop;
  return v_expired;
end
$$;

comment on function parley_mail._p_expire_waiting(integer) is
'Gives up what waits in a queue that fails, waits or is suspended, also one of a service or a table, and whose time is
over; gives how many recipients. A message that is being tried is given up when the attempt fails.
Arguments: items, how many work items at most of hosts and mailboxes, and as many of services and tables.
Source: spec mail 8.3.';
