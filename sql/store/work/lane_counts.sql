-- Counts of lanes: how much waits in each, how much comes and goes, without counting items.
--
-- A transaction that puts, completes or removes work appends a row to _p_lane_change; no session waits for another. Now
-- and then the rows of transactions that have ended are added up in _p_lane_count and, for the rates, in _p_lane_rate.
-- A reader of the counts adds the few rows that are not added up yet.
--
-- Invariants, and what keeps each:
--   each change counts once   folded_to: what transactions before it have appended is in the sums and gone; those after
--     it are not. It moves to the oldest transaction that was running, under a lock on its row, in the transaction that
--     adds up
--   no scan over what is gone   it begins at folded_to, in the index; an old snapshot costs space, not time
-- Cost: a row for each call that puts or completes work, for each lane and priority that it touches.

create table parley_store._p_lane_change (
  changed_by xid8 not null default pg_current_xact_id(),
  change_id bigint generated always as identity,
  lane_id bigint not null,
  priority smallint not null,
  came integer not null default 0,
  went integer not null default 0,
  tried integer not null default 0,
  weight bigint not null default 0,
  at timestamptz not null default clock_timestamp(),
  primary key (changed_by, change_id)
);

comment on table parley_store._p_lane_change is
'The work that came to lanes and went, until it is added up. tried: how many items more have a failed attempt; weight:
that of what came, in units of the system.';

create table parley_store._p_lane_count (
  lane_id bigint not null references parley_store._p_lane on delete cascade,
  priority smallint not null,
  items bigint not null,
  tried bigint not null,
  came bigint not null,
  weight bigint not null,
  primary key (lane_id, priority)
) with (fillfactor = 50);

comment on table parley_store._p_lane_count is
'How many items a lane has, and of these how many have a failed attempt; came and weight: of all that ever came.';

create table parley_store._p_lane_rate (
  lane_id bigint not null references parley_store._p_lane on delete cascade,
  slot timestamptz not null,
  came bigint not null,
  went bigint not null,
  primary key (lane_id, slot)
) with (fillfactor = 50);

comment on table parley_store._p_lane_rate is
'The work that came to a lane and went in ten seconds, for the last two minutes.';

create index on parley_store._p_lane_rate (slot);

create table parley_store._p_lane_fold (
  is_only boolean primary key default true check (is_only),
  folded_to xid8 not null,
  system_identifier bigint not null
);

comment on table parley_store._p_lane_fold is 'One row: changes of transactions before folded_to are added up.';

insert into parley_store._p_lane_fold (folded_to, system_identifier) values ('0', 0);

create function parley_store._p_folded_to() returns xid8
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when f.system_identifier = (select c.system_identifier from pg_control_system() as c) then f.folded_to
    else '0'::xid8
  end
  from parley_store._p_lane_fold as f
$$;

comment on function parley_store._p_folded_to() is
'Gives the first transaction whose changes are not added up. On another server, where numbers differ, all that is left
is not.';

create function parley_store.fold_lane_counts() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_from xid8;
  v_to xid8;
  v_folded integer;
begin
  found := parley_store._p_require_read_committed();
  perform from parley_store._p_lane_fold as f for update skip locked;
  if not found then
    return 0;
  end if;
  v_from := parley_store._p_folded_to();
  v_to := pg_snapshot_xmin(pg_current_snapshot());
  with gone as (
    delete from parley_store._p_lane_change as c
    where c.changed_by >= v_from and c.changed_by < v_to
    returning c.lane_id, c.priority, c.came, c.went, c.tried, c.weight, c.at
  ),

  counted as (
    insert into parley_store._p_lane_count as o (lane_id, priority, items, tried, came, weight)
    select g.lane_id, g.priority, sum(g.came - g.went), sum(g.tried), sum(g.came), sum(g.weight)
    from gone as g
    where exists (select from parley_store._p_lane as l where l.lane_id = g.lane_id)
    group by g.lane_id, g.priority
    order by g.lane_id, g.priority
    on conflict on constraint _p_lane_count_pkey do update
    set items = o.items + excluded.items, tried = o.tried + excluded.tried, came = o.came + excluded.came,
      weight = o.weight + excluded.weight
  ),

  rated as (
    insert into parley_store._p_lane_rate as r (lane_id, slot, came, went)
    select g.lane_id, date_bin('10 seconds', g.at, '2000-01-01'), sum(g.came), sum(g.went)
    from gone as g
    where g.at > clock_timestamp() - interval '2 minutes'
      and exists (select from parley_store._p_lane as l where l.lane_id = g.lane_id)
    group by 1, 2
    having sum(g.came) > 0 or sum(g.went) > 0
    on conflict on constraint _p_lane_rate_pkey do update
    set came = r.came + excluded.came, went = r.went + excluded.went
  )

  select count(*)::integer into v_folded from gone as g;
  update parley_store._p_lane_fold as f
  set folded_to = v_to, system_identifier = (select c.system_identifier from pg_control_system() as c)
  where f.folded_to <> v_to;
  delete from parley_store._p_lane_rate as r where r.slot < clock_timestamp() - interval '2 minutes';
  return v_folded;
end
$$;

comment on function parley_store.fold_lane_counts() is
'Adds up what came to lanes and went; gives how many changes. One does it at a time, others have nothing to do.
Errors: PS009 not READ COMMITTED.
Source: spec hub-transport 7.';

create function parley_store.oldest_in_lane(lane_id bigint) returns timestamptz
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_priority integer;
  v_mark parley_store._p_lane_mark;
  v_since timestamptz;
  v_oldest timestamptz;
begin
  for v_priority in
    select distinct p.priority from parley_store._p_lane_priority as p where p.lane_id = oldest_in_lane.lane_id
  loop
    v_mark := parley_store._p_newest_mark(lane_id, v_priority);
    select i.since into v_since
    from parley_store._p_item as i
    where i.lane_id = oldest_in_lane.lane_id and i.priority = v_priority
      and (i.put_by, i.item_id) >= (v_mark.from_xact, v_mark.from_item)
    order by i.put_by, i.item_id
    limit 1;
    v_oldest := least(v_oldest, v_since);
  end loop;
  select d.since into v_since
  from parley_store._p_delayed_item as d
  where d.lane_id = oldest_in_lane.lane_id
  order by d.item_id
  limit 1;
  return least(v_oldest, v_since);
end
$$;

comment on function parley_store.oldest_in_lane(bigint) is
'Gives when the first item of a lane came that waits or is delayed: the oldest, but for what was given back.';

create view parley_store.lane_counts as
with folded as materialized (
  select parley_store._p_folded_to() as folded_to
),

left_over as (
  select c.lane_id, c.priority, c.came, c.went, c.tried, c.weight, c.at
  from folded as f
  join parley_store._p_lane_change as c on c.changed_by >= f.folded_to
),

counted as (
  select a.lane_id, a.priority, sum(a.items)::bigint as items, sum(a.tried)::bigint as tried,
    sum(a.came)::bigint as came, sum(a.weight)::bigint as weight
  from (
    select o.lane_id, o.priority, o.items, o.tried, o.came, o.weight from parley_store._p_lane_count as o
    union all
    select l.lane_id, l.priority, l.came - l.went, l.tried, l.came, l.weight from left_over as l
  ) as a
  group by a.lane_id, a.priority
),

rated as (
  select a.lane_id, sum(a.came) / 60.0 as came, sum(a.went) / 60.0 as went,
    max(a.at) filter (where a.went > 0) as went_at
  from (
    select r.lane_id, r.came, r.went, r.slot + interval '10 seconds' as at
    from parley_store._p_lane_rate as r
    where r.slot > clock_timestamp() - interval '1 minute'
    union all
    select l.lane_id, l.came, l.went, l.at from left_over as l where l.at > clock_timestamp() - interval '1 minute'
  ) as a
  group by a.lane_id
)

select
  l.lane_id, l.system, l.lane, coalesce(t.items, 0) as items, coalesce(t.tried, 0) as tried,
  coalesce(t.by_priority, '{}'::jsonb) as by_priority, coalesce(t.weight, 0) as weight,
  coalesce(r.came, 0) as incoming_rate, coalesce(r.went, 0) as outgoing_rate, coalesce(e.leases, 0) as leases,
  case when t.items > 0 then parley_store.oldest_in_lane(l.lane_id) end as oldest_at,
  e.claimed_at, case when r.went_at is not null then least(r.went_at, clock_timestamp()) end as went_at
from parley_store._p_lane as l
left join (
  select c.lane_id, greatest(sum(c.items), 0)::bigint as items, greatest(sum(c.tried), 0)::bigint as tried,
    jsonb_object_agg(c.priority, c.items) filter (where c.items > 0) as by_priority,
    (greatest(sum(c.items), 0) * sum(c.weight) / nullif(sum(c.came), 0))::bigint as weight
  from counted as c
  group by c.lane_id
) as t using (lane_id)
left join rated as r using (lane_id)
left join (
  select o.lane_id, count(*)::integer as leases, max(o.claimed_at) as claimed_at
  from parley_store._p_lease as o
  group by o.lane_id
) as e using (lane_id);

comment on view parley_store.lane_counts is
'How much is in each lane, waiting, delayed, in flight or suspended, from counters.
Columns: items; tried, how many of them have a failed attempt; by_priority, items of each priority; weight, items times
the mean weight of all that came; incoming_rate and outgoing_rate, items a second over the last minute; leases that are
out; oldest_at, but for what was given back; claimed_at, when the newest lease that is out began; went_at, when an item
last went, within the last minute and to ten seconds.';
