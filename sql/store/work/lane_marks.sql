-- Marks: where in a lane to scan for the first item.
--
-- Claiming deletes from the front of a lane, and an old snapshot keeps the deleted rows there. A mark (_p_lane_mark)
-- says from where on to scan: everything before it, by transactions that had ended, is gone. It is exact, because an
-- item carries the transaction that put it there. A snapshot shows all items that transactions before it will ever
-- have, and those that were running are named in the mark. Marks are appended and read from the newest end. A mark of
-- another server counts for nothing: there transactions have other numbers.
--
-- Invariants, and what keeps each:
--   nothing waits before a mark   a mark is written by who has scanned, of what one statement has seen: it ends at the
--     first item that statement saw, free or not, and names the transactions that were running, its own among them
--   an item that comes back stands behind the mark   it is inserted anew, by the transaction that gives it back
-- Cost: a mark for some hundred items claimed.

create table parley_store._p_lane_mark (
  lane_id bigint not null,
  priority smallint not null,
  mark_id bigint generated always as identity,
  from_xact xid8 not null,
  from_item bigint not null,
  other_xacts xid8[] not null,
  other_items bigint[] not null,
  system_identifier bigint not null,
  primary key (lane_id, priority, mark_id)
);

comment on table parley_store._p_lane_mark is
'Where to scan for the first item of a lane: from (from_xact, from_item) on, and among those of other_xacts, each from
its item of other_items on.';

create function parley_store._p_server() returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select c.system_identifier from pg_control_system() as c);
end
$$;

comment on function parley_store._p_server() is
'Gives the number of the server: transactions of another one are numbered differently.';

create function parley_store._p_newest_mark(lane_id bigint, priority integer) returns parley_store._p_lane_mark
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_mark parley_store._p_lane_mark;
begin
  select * into v_mark
  from parley_store._p_lane_mark as m
  where m.lane_id = _p_newest_mark.lane_id and m.priority = _p_newest_mark.priority
  order by m.mark_id desc
  limit 1;
  if not found or v_mark.system_identifier <> parley_store._p_server() then
    v_mark.from_xact := '0';
    v_mark.from_item := 0;
    v_mark.other_xacts := '{}';
    v_mark.other_items := '{}';
  end if;
  return v_mark;
end
$$;

comment on function parley_store._p_newest_mark(bigint, integer) is
'Gives from where on to scan for items of a priority in a lane.';

create function parley_store._p_first_of(
  lane_id bigint, priority integer, from_xact xid8, from_item bigint, to_xact xid8
) returns table (put_by xid8, item_id bigint, seen pg_snapshot)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select f.put_by, f.item_id, pg_current_snapshot()
  from (values (true)) as one (is_one)
  left join lateral (
    select i.put_by, i.item_id
    from parley_store._p_item as i
    where i.lane_id = _p_first_of.lane_id
      and i.priority = _p_first_of.priority
      and (i.put_by, i.item_id) >= (from_xact, from_item)
      and i.put_by <= to_xact
    order by i.put_by, i.item_id
    limit 1
  ) as f on true;
end
$$;

comment on function parley_store._p_first_of(bigint, integer, xid8, bigint, xid8) is
'Gives the first item that is left in a range, nulls when there is none, and what the snapshot was that showed it.';

create function parley_store._p_renew_mark(lane_id bigint, priority integer, old parley_store._p_lane_mark) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_first record;
  v_other record;
  v_xacts xid8[];
  v_items bigint[];
  v_from xid8;
begin
  -- An old snapshot does not show what is there.
  if not parley_store._p_sees_all() then
    return;
  end if;
  select f.put_by, f.item_id, f.seen into v_first
  from parley_store._p_first_of(lane_id, priority, old.from_xact, old.from_item, '18446744073709551615') as f;
  -- An item of another server may have a number that transactions here get only later; a mark that began with it would
  -- pass by what they put.
  v_from := least(v_first.put_by, greatest(pg_snapshot_xmax(v_first.seen), old.from_xact));
  -- Items put by transactions that were running then, and by this one, may still come.
  v_xacts := array(
    select x.running from pg_snapshot_xip(v_first.seen) as x (running) where x.running < v_from
    union
    select o.own from pg_current_xact_id_if_assigned() as o (own) where o.own < v_from
  );
  v_items := array_fill(0::bigint, array[cardinality(v_xacts)]);
  for v_other in select o.put_by, o.item_id from unnest(old.other_xacts, old.other_items) as o (put_by, item_id) loop
    continue when v_other.put_by = any (v_xacts);
    select v_other.put_by as put_by, f.item_id into v_other
    from parley_store._p_first_of(lane_id, priority, v_other.put_by, v_other.item_id, v_other.put_by) as f;
    if v_other.item_id is not null then
      v_xacts := v_xacts || v_other.put_by;
      v_items := v_items || v_other.item_id;
    end if;
  end loop;
  insert into parley_store._p_lane_mark (
    lane_id, priority, from_xact, from_item, other_xacts, other_items, system_identifier
  )
  values (
    _p_renew_mark.lane_id, _p_renew_mark.priority, v_from,
    case when v_first.put_by = v_from then v_first.item_id else 0 end, v_xacts, v_items,
    parley_store._p_server()
  );
  delete from parley_store._p_lane_mark as m
  where m.lane_id = _p_renew_mark.lane_id and m.priority = _p_renew_mark.priority and m.mark_id = old.mark_id;
end
$$;

comment on function parley_store._p_renew_mark(bigint, integer, parley_store._p_lane_mark) is
'Writes a new mark for a priority of a lane: everything before it is gone. It is part of the transaction that has
claimed, and gone with it when that rolls back.';

create function parley_store._p_has_work(lane_id bigint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_priority integer;
  v_mark parley_store._p_lane_mark;
begin
  for v_priority in
    select distinct p.priority from parley_store._p_lane_priority as p where p.lane_id = _p_has_work.lane_id
  loop
    v_mark := parley_store._p_newest_mark(lane_id, v_priority);
    if exists (
      select
      from (
        select v_mark.from_xact as put_by, v_mark.from_item as item_id, '18446744073709551615'::xid8 as to_xact
        union all
        select o.put_by, o.item_id, o.put_by from unnest(v_mark.other_xacts, v_mark.other_items) as o (put_by, item_id)
      ) as r
      cross join lateral parley_store._p_first_of(_p_has_work.lane_id, v_priority, r.put_by, r.item_id, r.to_xact) as f
      where f.item_id is not null
    ) then
      return true;
    end if;
  end loop;
  return false;
end
$$;

comment on function parley_store._p_has_work(bigint) is
'Reports whether items wait in a lane, claimed or not by a transaction that is open.';
