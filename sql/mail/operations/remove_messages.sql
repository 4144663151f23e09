-- Having messages categorized anew, and removing them (spec mail 8.2, 17): both take them out of their queues.

create function parley_mail._p_resubmit(system text, items bigint[], caller oid) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_work record;
  v_poison bigint[];
begin
  if items is null or items = '{}' then
    return 0;
  end if;
  select array_agg(w.subject order by w.item_id) as ids, array_agg(w.lane order by w.item_id) as queues
  into v_work
  from parley_store.remove_work(
    system, jsonb_build_object('items', to_jsonb(items)), cardinality(items),
    coalesce(pg_get_userbyid(caller), 'parley_mail')
  ) as w;
  if v_work.ids is null then
    return 0;
  end if;
  v_poison := array(
    select u.message_id
    from unnest(v_work.ids, v_work.queues) as u (message_id, queue)
    where u.queue = 'POISON/-/-'
      and not exists (
        select from parley_mail._p_recipient as p where p.message_id = u.message_id and p.lane = u.queue
      )
  );
  perform parley_mail._p_track_operation(
    'RESUBMIT', v_work.ids, v_work.queues, null, case when caller is null then 'QUEUE' else 'ADMIN' end
  );
  update parley_mail._p_message as m set crash_count = 0 where m.message_id = any (v_work.ids) and m.crash_count > 0;
  perform parley_mail._p_submit_again(r.ids, r.queues)
  from (
    select array_agg(u.message_id) as ids, array_agg(u.queue) as queues
    from unnest(v_work.ids, v_work.queues) as u (message_id, queue)
    where exists (select from parley_mail._p_recipient as p where p.message_id = u.message_id and p.lane = u.queue)
  ) as r
  where r.ids is not null;
  -- A message that was set aside before it was categorized has its recipients in the message alone.
  perform parley_mail._p_submit(s.ids, s.priority, null)
  from (
    select m.priority, array_agg(m.message_id order by m.message_id) as ids
    from unnest(v_poison) as u (message_id)
    join parley_mail._p_message as m using (message_id)
    group by m.priority
  ) as s;
  return cardinality(v_work.ids);
end
$$;

comment on function parley_mail._p_resubmit(text, bigint[], oid) is
'Has messages of some work items categorized anew, but what somebody claims just now; gives how many items.
Arguments: system; items; caller, the operator, null for none.';

create function parley_mail._p_give_up(message_ids bigint[], queues text[], with_report boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_gone record;
begin
  -- A message that was set aside before it was categorized has its recipients in the message alone.
  insert into parley_mail._p_recipient (message_id, ordinal, address, original_recipient, notify, lane)
  select
    m.message_id, r.ordinal + coalesce(o.last, 0), r.address, r.original, r.notify, 'POISON/-/-'
  from unnest(message_ids, queues) as u (message_id, queue)
  join parley_mail._p_message as m on m.message_id = u.message_id
  left join lateral (
    select max(p.ordinal) as last from parley_mail._p_recipient as p where p.message_id = m.message_id
  ) as o on true
  cross join unnest(m.recipients, m.notify, m.original_recipients) with ordinality
    as r (address, notify, original, ordinal)
  where u.queue = 'POISON/-/-'
    and not exists (
      select from parley_mail._p_recipient as p where p.message_id = m.message_id and p.lane = 'POISON/-/-'
    );
  if with_report then
    select array_agg(r.message_id) as ids, array_agg(r.ordinal) as ordinals, array_agg('5.7.0'::text) as statuses,
      array_agg('removed by an operator'::text) as reasons
    into v_gone
    from unnest(message_ids, queues) as u (message_id, queue)
    join parley_mail._p_recipient as r on r.message_id = u.message_id and r.lane = u.queue;
    if v_gone.ids is not null then
      perform parley_mail._p_fail_recipients(v_gone.ids, v_gone.ordinals, v_gone.statuses, v_gone.reasons, 'ADMIN');
    end if;
  else
    perform parley_mail._p_track_operation('DROP', message_ids, queues, 'removed by an operator');
    delete from parley_mail._p_recipient as r
    using unnest(message_ids, queues) as u (message_id, queue)
    where r.message_id = u.message_id and r.lane = u.queue;
  end if;
  perform parley_mail._p_remove_finished(message_ids);
end
$$;

comment on function parley_mail._p_give_up(bigint[], text[], boolean) is
'Gives up the recipients of messages in some queues, whose work items are gone.
Arguments: message_ids and queues, one each; with_report, whether senders are informed.';

create function parley_mail.remove_messages(
  filter jsonb, with_report boolean default true, top integer default 1000, dry_run boolean default false,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_work record;
  v_gone record;
  v_messages integer := 0;
begin
  found := parley_mail._p_require(v_caller, 'OPERATE');
  found := parley_mail._p_require_top(top);
  v_messages := parley_mail._p_remove_scheduled(filter, with_report is not false, top, dry_run is not false);
  if v_messages = 0 and parley_mail._p_queue_named(filter ->> 'queue') = 'SUBMISSION/-/-' then
    found := parley_mail._p_raise('submission');
  elsif dry_run is not false then
    return v_messages + (select count(*) from parley_mail._p_matching(filter, 'remove', null) as w);
  end if;
  for v_work in
    select w.system, array_agg(w.item_id) as items, array_agg(w.message_id) as ids, array_agg(w.queue) as queues,
      array_agg(w.state = 'IN_FLIGHT') as is_in_flight
    from parley_mail._p_matching(filter, 'remove', top - v_messages) as w
    group by w.system
    order by w.system
  loop
    -- A recipient under way goes when its attempt has failed: _p_finish_removals.
    update parley_mail._p_recipient as r
    set removal = case when with_report is false then 'SILENT' else 'REPORT' end
    from unnest(v_work.ids, v_work.queues, v_work.is_in_flight) as u (message_id, queue, is_in_flight)
    where u.is_in_flight and r.message_id = u.message_id and r.lane = u.queue;
    select array_agg(g.subject) as ids, array_agg(g.lane) as queues, count(*)::integer as messages into v_gone
    from parley_store.remove_work(
      v_work.system, jsonb_build_object('items', to_jsonb(v_work.items)), cardinality(v_work.items),
      pg_get_userbyid(v_caller)
    ) as g;
    perform parley_mail._p_give_up(v_gone.ids, v_gone.queues, with_report is not false);
    v_messages := v_messages + v_gone.messages
      + (select count(*)::integer from unnest(v_work.is_in_flight) as f (is_so) where f.is_so);
  end loop;
  perform parley_mail._p_record_audit(
    v_caller, 'remove messages', filter::text,
    jsonb_build_object('messages', v_messages, 'with_report', with_report is not false)
  );
  return v_messages;
end
$$;

comment on function parley_mail.remove_messages(jsonb, boolean, integer, boolean, parley.caller) is
'Gives messages up; what is under way, when its attempt has failed. Gives how many; call it until it gives 0. A message
in the submission queue stays, unless it is scheduled for later.
Arguments: filter; with_report, whether senders are informed, by their own wishes; top, how many in a call; dry_run,
count all that match, and change nothing.
Errors: PM001 not allowed, PM006 nothing in the submission queue is scheduled for later, PM010 malformed filter.
Source: spec mail 2, 17.';

create function parley_mail._p_finish_removals() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_gone record;
  v_messages integer := 0;
begin
  for v_gone in
    select array_agg(g.message_id) as ids, array_agg(g.lane) as queues, g.removal
    from (
      select distinct r.message_id, r.lane, r.removal
      from parley_mail._p_recipient as r
      where r.removal is not null
        and not exists (
          select
          from parley_store.work_items as w
          where w.system in ('mail', 'mail_service') and w.state = 'IN_FLIGHT' and w.subject = r.message_id
            and w.lane = r.lane
        )
      limit 1000
    ) as g
    group by g.removal
  loop
    perform parley_mail._p_give_up(v_gone.ids, v_gone.queues, v_gone.removal = 'REPORT');
    v_messages := v_messages + cardinality(v_gone.ids);
  end loop;
  return v_messages;
end
$$;

comment on function parley_mail._p_finish_removals() is
'Gives up what was removed while it was under way, when the attempt is over; gives how many messages.';
