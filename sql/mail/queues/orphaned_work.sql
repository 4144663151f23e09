-- Work items whose recipients are gone, and recipients that no work item stands for.
--
-- Each recipient in a queue belongs to the work item of its message there. An item without recipients is completed when
-- it is claimed. A suspended item is never claimed: there it would be counted for ever, and no operation would reach
-- it.
--
-- Invariants, and what keeps each:
--   an item goes with its last recipient   _p_finish_late drops it with an outcome that comes after its lease, which
--     finds the item wherever it has come to meanwhile; every other outcome completes the item that it came under
--   what is left all the same goes   the sweep of maintenance, and check_broker
-- The queue of poison differs: a message that was never categorized stands there without a recipient.
-- Locks: items, skip locked. Cost of a sweep: that of the suspended items and those of suspended queues; sweeps take a
-- hundredth of the time.

create sequence parley_mail._p_next_sweep minvalue 0 start 0;

create view parley_mail._p_orphaned_item as
select w.system, w.lane, w.item_id, w.subject, w.state
from parley_store.work_items as w
where w.system in ('mail', 'mail_service') and w.state in ('WAITING', 'DELAYED', 'SUSPENDED')
  and case
    when w.lane = 'POISON/-/-'
      then not exists (select from parley_mail._p_message as m where m.message_id = w.subject)
    else not exists (
      select from parley_mail._p_recipient as r where r.message_id = w.subject and r.lane = w.lane
    )
  end;

comment on view parley_mail._p_orphaned_item is
'Work items of recipients, or in the queue of poison of messages, that are gone. An item in flight is left out: it is
completed when it comes back.';

create function parley_mail._p_drop_orphans(message_ids bigint[], queues text[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_orphans record;
  v_dropped integer := 0;
begin
  for v_orphans in
    select w.system, array_agg(w.item_id) as items
    from (
      select distinct u.message_id, u.queue from unnest(message_ids, queues) as u (message_id, queue)
    ) as o
    join parley_store.work_items as w on w.lane = o.queue and w.subject = o.message_id
    where w.system in ('mail', 'mail_service')
      and not exists (
        select from parley_mail._p_recipient as r where r.message_id = o.message_id and r.lane = o.queue
      )
    group by w.system
    order by w.system
  loop
    v_dropped := v_dropped + cardinality(parley_store.drop_work(v_orphans.system, v_orphans.items));
  end loop;
  return v_dropped;
end
$$;

comment on function parley_mail._p_drop_orphans(bigint[], text[]) is
'Drops the work items of messages in queues in which the caller has just finished their recipients, where none is left;
gives how many. An item in flight is completed by its holder.
Arguments: message_ids and queues, one each.';

create function parley_mail._p_sweep_orphans() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_began constant timestamptz := clock_timestamp();
  v_orphans record;
  v_dropped integer := 0;
begin
  if coalesce(pg_sequence_last_value('parley_mail._p_next_sweep'), 0) > extract(epoch from v_began) * 1000000 then
    return 0;
  end if;
  for v_orphans in
    select o.system, array_agg(o.item_id) as items
    from (
      select s.system, s.item_id from parley_mail._p_orphaned_item as s where s.state = 'SUSPENDED'
      union all
      select w.system, w.item_id
      from parley_store.lanes as l
      join parley_mail._p_orphaned_item as w on w.system = l.system and w.lane = l.lane
      where l.suspended_at is not null and w.state in ('WAITING', 'DELAYED')
      limit 10000
    ) as o
    group by o.system
    order by o.system
  loop
    v_dropped := v_dropped + cardinality(parley_store.drop_work(v_orphans.system, v_orphans.items));
  end loop;
  perform setval('parley_mail._p_next_sweep',
    (extract(epoch from clock_timestamp() + 100 * (clock_timestamp() - v_began)) * 1000000)::bigint);
  return v_dropped;
end
$$;

comment on function parley_mail._p_sweep_orphans() is
'Drops work items that nobody would claim and whose recipients or messages are gone; gives how many.';

create function parley_mail._p_check_contents(repair boolean)
returns table (object_kind text, object_name text, finding text)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane record;
begin
  for v_lane in
    select o.system, o.lane, array_agg(o.item_id) as items
    from parley_mail._p_orphaned_item as o
    group by o.system, o.lane
    order by o.system, o.lane
  loop
    if repair then
      perform parley_store.drop_work(v_lane.system, v_lane.items);
    end if;
    object_kind := 'mail queue';
    object_name := v_lane.lane;
    finding := format('%s work items in it are of messages that are gone.', cardinality(v_lane.items));
    return next;
  end loop;
  for v_lane in
    select r.lane, array_agg(r.message_id order by r.message_id) as ids
    from (
      select distinct p.message_id, p.lane
      from parley_mail._p_recipient as p
      where p.lane is not null and p.removal is null
    ) as r
    left join parley_store.work_items as w
      on w.system in ('mail', 'mail_service') and w.subject = r.message_id and w.lane = r.lane
    where w.item_id is null
    group by r.lane
    order by r.lane
  loop
    if repair then
      perform parley_mail._p_submit_again(v_lane.ids, array_fill(v_lane.lane, array[cardinality(v_lane.ids)]));
    end if;
    object_kind := 'mail queue';
    object_name := v_lane.lane;
    finding := format('%s messages in it have no work item: nobody would deliver them.', cardinality(v_lane.ids));
    return next;
  end loop;
end
$$;

comment on function parley_mail._p_check_contents(boolean) is
'Finds work items whose messages are gone, and recipients that no work item stands for. parley.check_broker calls it.
Arguments: repair, whether the items are dropped, and the messages categorized anew.';
