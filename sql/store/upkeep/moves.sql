-- The steps of the store when its database goes on in another server: after a dump, pg_upgrade or logical replication.
--
-- Sequences may be behind the rows that have their numbers, which the broker asks for (_p_sequence_floors). And
-- transactions have other numbers there, lower ones as a rule: what waits gets the number of the transaction that
-- settles it, all of it the same one, and keeps its order by item_id. Marks of another server count for nothing anyway.
-- And partitions of tracking that were made or dropped meanwhile are not made or dropped there, while the rows that
-- list them are there, or are not.

create function parley_store._p_sequence_floors() returns table (sequence regclass, floor bigint)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'parley_store._p_item_id'::regclass, greatest(
    (select max(i.item_id) from parley_store._p_item as i),
    (select max(i.item_id) from parley_store._p_in_flight as i),
    (select max(i.item_id) from parley_store._p_delayed_item as i),
    (select max(i.item_id) from parley_store._p_suspended_item as i)
  )
  union all
  select 'parley_store._p_content_id'::regclass, greatest(
    (select max(c.content_id) from parley_store._p_content as c),
    (select max(c.collected_to) from parley_store._p_content_cursor as c)
  )
  union all
  -- The newest events have the highest numbers, but for what a session has in store.
  select 'parley_store._p_tracking_log_id'::regclass, max(t.log_id)
  from (select k.log_id from parley_store._p_tracking as k order by k.at desc limit 10000) as t
$$;

comment on function parley_store._p_sequence_floors() is
'Gives the highest number that a row has of each sequence of the store which is no identity column.';

create function parley_store._p_go_on_elsewhere() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_day date;
begin
  update parley_store._p_item as i set put_by = pg_current_xact_id();
  update parley_store._p_in_flight as i set put_by = pg_current_xact_id();
  update parley_store._p_lane_change as c set changed_by = pg_current_xact_id();
  delete from parley_store._p_lane_mark as m;
  for v_day in
    delete from parley_store._p_tracking_day as d
    where to_regclass(format('parley_store._p_tracking_%s', to_char(d.day, 'YYYYMMDD'))) is null
    returning d.day
  loop
    perform parley_store._p_make_tracking_day(v_day);
  end loop;
  insert into parley_store._p_tracking_day (day)
  select to_date(right(c.relname, 8), 'YYYYMMDD')
  from pg_inherits as i
  join pg_class as c on c.oid = i.inhrelid
  where i.inhparent = 'parley_store._p_tracking'::regclass
  on conflict do nothing;
end
$$;

comment on function parley_store._p_go_on_elsewhere() is
'Gives what waits the number of a transaction of this server, and makes the partitions that tracking lacks. The broker
calls it when it is enabled where it was not before.
Errors: 42P07 when somebody has made a table of that name.';
