-- Mail that is scheduled for later, and given up before its time (spec mail 4.3, 17): by the role that submitted it
-- (withdraw), or by an operator (remove_messages).
--
-- Until its time a scheduled message is named by a delayed item of the submission queue; one item may name several
-- messages. Giving a message up deletes that item, and puts an item back that names the other messages.
--
-- Invariant: a message is either given up or categorized, never both. Another transaction may be moving the item to the
-- due messages of the queue. Then giving up waits for that transaction and finds the item gone; the message is too late
-- to be given up. The item, the message and its events change in one transaction.

create function parley_mail._p_scheduled() returns bigint[]
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select array_agg(m.message_id)
  from parley.delayed_messages as d
  cross join string_to_table(
    case when d.queue_name = 'parley_mail_submission' then convert_from(d.body, 'UTF8') end, ' '
  ) as i (id)
  join parley_mail._p_message as m on m.message_id = i.id::bigint
  where m.not_before > clock_timestamp() and m.resubmissions = 0
$$;

comment on function parley_mail._p_scheduled() is
'Gives the messages that wait for the time before which they may not go; null for none.';

create function parley_mail._p_take_scheduled(message_ids bigint[]) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_item record;
  v_taken bigint[] := array[]::bigint[];
  v_is_changed boolean := true;
begin
  -- Another session may give up a message of the same item. It puts the rest back as a new item (below), so a pass that
  -- has lost an item reads the items again.
  while v_is_changed loop
    v_is_changed := false;
    for v_item in
      select d.delayed_id, d.due_at, d.priority, b.ids
      from parley.delayed_messages as d
      cross join lateral (
        select case
          when d.queue_name = 'parley_mail_submission' then string_to_array(convert_from(d.body, 'UTF8'), ' ')::bigint[]
        end as ids
      ) as b
      where b.ids && message_ids
      order by d.delayed_id
    loop
      if not parley.withdraw_message(
        'parley_mail_submission', v_item.delayed_id, caller => parley.current_caller()
      ) then
        v_is_changed := true;
        continue;
      end if;
      v_taken := v_taken || array(select i.id from unnest(v_item.ids) as i (id) where i.id = any (message_ids));
      perform parley.put(
        'parley_mail_submission', convert_to(string_agg(i.id::text, ' ' order by i.n), 'UTF8'),
        priority => v_item.priority, deliver_at => v_item.due_at, caller => parley.current_caller()
      )
      from unnest(v_item.ids) with ordinality as i (id, n)
      where i.id <> all (message_ids)
      having count(*) > 0;
    end loop;
  end loop;
  return v_taken;
end
$$;

comment on function parley_mail._p_take_scheduled(bigint[]) is
'Takes messages that are not due out of the submission queue, and gives those that it could take. The others are being
categorized, or were.
Arguments: message_ids.
Errors: 40001 at an older snapshot.';

create function parley_mail._p_give_up_scheduled(
  message_ids bigint[], reason text, source text, with_report boolean, event text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_all record;
begin
  if message_ids is null or message_ids = '{}' then
    return;
  end if;
  select array_agg(m.message_id order by m.message_id, r.n) as ids,
    array_agg(r.address order by m.message_id, r.n) as addresses,
    array_agg(m.source order by m.message_id, r.n) as sources, count(*)::integer as recipients
  into v_all
  from parley_mail._p_message as m
  cross join unnest(m.recipients) with ordinality as r (address, n)
  where m.message_id = any (message_ids);
  -- The categorizer writes this event for other messages; it never sees these.
  perform parley_mail._p_track(
    array_fill('SUBMIT'::text, array[v_all.recipients]), v_all.ids, v_all.addresses, null, null, null, v_all.sources
  );
  if with_report then
    insert into parley_mail._p_recipient (message_id, ordinal, address, notify, original_recipient)
    select m.message_id, r.ordinal, r.address, r.notify, r.original
    from parley_mail._p_message as m
    cross join unnest(m.recipients, m.notify, m.original_recipients) with ordinality
      as r (address, notify, original, ordinal)
    where m.message_id = any (message_ids);
    perform parley_mail._p_fail_recipients(
      array_agg(r.message_id), array_agg(r.ordinal), array_agg('5.7.0'::text), array_agg(reason), source
    )
    from parley_mail._p_recipient as r
    where r.message_id = any (message_ids);
  else
    perform parley_mail._p_track(
      array_fill(event, array[v_all.recipients]), v_all.ids, v_all.addresses,
      case when event = 'FAIL' then array_fill('5.7.0'::text, array[v_all.recipients]) end,
      array_fill(reason, array[v_all.recipients]), null, array_fill(source, array[v_all.recipients])
    );
    perform parley_mail._p_remove_finished(message_ids);
  end if;
end
$$;

comment on function parley_mail._p_give_up_scheduled(bigint[], text, text, boolean, text) is
'Gives up messages that _p_take_scheduled has taken.
Arguments: message_ids; reason; source, the component or operator that gives them up; with_report, whether senders are
informed; event, which is recorded for each recipient when senders are not: FAIL, which the service of on_status gets
too, or DROP.';

create function parley_mail._p_remove_scheduled(filter jsonb, with_report boolean, top integer, dry_run boolean)
returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_scheduled bigint[];
  v_ids bigint[];
begin
  v_scheduled := parley_mail._p_scheduled();
  if filter ? 'messages' then
    v_scheduled := array(
      select s.id
      from unnest(v_scheduled) as s (id)
      where s.id = any ((parley_mail._p_parsed_filter(filter)).messages)
    );
  end if;
  if coalesce(v_scheduled, '{}') = '{}' then
    return 0;
  end if;
  v_ids := array(
    select m.message_id
    from parley_mail._p_listed_messages(
      filter || jsonb_build_object('messages', to_jsonb(v_scheduled)), null, 0, ''
    ) as m
    where m.queue = 'SUBMISSION/-/-' and m.status = 'SCHEDULED'
    order by m.message_id
    limit case when dry_run is false then top end
  );
  if dry_run is false then
    v_ids := parley_mail._p_take_scheduled(v_ids);
    perform parley_mail._p_give_up_scheduled(v_ids, 'removed by an operator', 'ADMIN', with_report, 'DROP');
  end if;
  return cardinality(v_ids);
end
$$;

comment on function parley_mail._p_remove_scheduled(jsonb, boolean, integer, boolean) is
'Gives up the scheduled messages that a filter matches, and gives how many.
Arguments: as remove_messages.
Errors: PM010.';

create function parley_mail.withdraw(message_id bigint, caller parley.caller default parley.current_caller())
returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_numbers integer[] := parley._p_numbers_of(parley.caller_role(caller));
  v_ids bigint[];
begin
  v_ids := array(
    select m.message_id
    from parley_mail._p_message as m
    where (m.message_id = withdraw.message_id or m.parent_message_id = withdraw.message_id)
      and m.submitted_by = any (v_numbers)
    order by m.message_id
  );
  if (withdraw.message_id = any (v_ids)) is not true then
    found := parley_mail._p_raise('message', coalesce(withdraw.message_id::text, 'null'));
  elsif cardinality(parley_mail._p_take_scheduled(v_ids)) < cardinality(v_ids) then
    if not exists (select from parley_mail._p_message as m where m.message_id = withdraw.message_id) then
      found := parley_mail._p_raise('message', withdraw.message_id::text);
    end if;
    found := parley_mail._p_raise('too late', withdraw.message_id::text);
  end if;
  perform parley_mail._p_give_up_scheduled(v_ids, 'withdrawn by its submitter', 'SQL', false, 'FAIL');
  return cardinality(v_ids);
end
$$;

comment on function parley_mail.withdraw(bigint, parley.caller) is
'Withdraws a message that was submitted for later (not_before) and whose time has not come. Where send gave one number
for several recipients with variables, withdraws the messages of all of them. Only for the role that submitted it.
The sender gets no report, and the service of on_status gets an event FAILED. An idempotency key stays used. Gives how
many messages.
Arguments: message_id, as send gave it.
Errors: PM006 no such message of this role, PM016 it is being categorized, or was.
Source: spec mail 4.3.';
