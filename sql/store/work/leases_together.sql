-- Completing under many leases at once: what senders to many hosts have done, in as many statements as one lease takes.
--
-- Invariants, and what keeps each:
--   nothing is recorded under a lease that is over   the leases that are there are locked, and only these are given
--   two that record at once do not wait for each other   who goes on to other leases and lanes in the same transaction
--     locks all of them before, with lock_lanes
-- Locks: leases in the order of their numbers, then states of lanes in the order of theirs, then items.

create function parley_store.complete_claimed(lease_ids bigint[], items bigint[]) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_held bigint[];
  v_lanes bigint[];
begin
  select array_agg(h.lease_id) into v_held
  from (
    select e.lease_id
    from parley_store._p_lease as e
    where e.lease_id = any (lease_ids)
    order by e.lease_id
    for update
  ) as h;
  with done as (
    delete from parley_store._p_in_flight as f
    using unnest(lease_ids, items) as u (lease_id, item_id)
    where f.lease_id = any (v_held) and f.lease_id = u.lease_id and f.item_id = u.item_id
    returning f.lane_id, (f.priority - 1) % 10 + 1 as priority, f.attempts
  )

  insert into parley_store._p_lane_change (lane_id, priority, went, tried)
  select d.lane_id, d.priority, count(*), -count(*) filter (where d.attempts > 0)
  from done as d
  group by d.lane_id, d.priority;
  with ended as (
    delete from parley_store._p_lease as e
    where e.lease_id = any (v_held)
      and not exists (select from parley_store._p_in_flight as f where f.lease_id = e.lease_id)
    returning e.lane_id
  )
  select array_agg(distinct e.lane_id) into v_lanes from ended as e;
  perform parley_store._p_wake_blocked(v_lanes);
  return coalesce(v_held, '{}');
end
$$;

comment on function parley_store.complete_claimed(bigint[], bigint[]) is
'Removes items of many leases that are done, in the transaction that records what came of them, as complete_work does
for one. Gives the leases that are not over: what was to be recorded under others must not be.
Arguments: lease_ids and items, an element for each item.
Errors: PS001.';

create function parley_store.renew_leases(
  lease_ids bigint[], lease interval default '1 minute', waits boolean default true,
  out renewed bigint[], out gone bigint[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_store._p_require_range('lease', lease, '1 second', '1 day');
  if waits is not false then
    perform from parley_store._p_lease as e where e.lease_id = any (lease_ids) order by e.lease_id for update;
    renewed := array(
      select e.lease_id from parley_store._p_lease as e where e.lease_id = any (lease_ids) order by e.lease_id
    );
  else
    renewed := array(
      select e.lease_id
      from parley_store._p_lease as e
      where e.lease_id = any (lease_ids)
      order by e.lease_id
      for update skip locked
    );
  end if;
  update parley_store._p_lease as e set until = clock_timestamp() + lease where e.lease_id = any (renewed);
  gone := array(
    select u.lease_id
    from unnest(lease_ids) as u (lease_id)
    where not exists (select from parley_store._p_lease as e where e.lease_id = u.lease_id)
    order by u.lease_id
  );
end
$$;

comment on function parley_store.renew_leases(bigint[], interval, boolean) is
'Extends many leases from now on, and says which it has extended and which are over: their items are given back or
completed, and whoever goes on with them does so beside another holder.
Arguments: lease_ids; lease, 1 second to 1 day; waits, for a lease that another transaction has locked. Without, such a
one keeps nobody from renewing the others: it is in neither of the two, and asked for again.
Errors: PS002.';

create function parley_store.lock_lanes(system text, lease_ids bigint[], lanes text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lanes bigint[];
begin
  perform from parley_store._p_lease as e where e.lease_id = any (lease_ids) order by e.lease_id for update;
  v_lanes := array(
    select e.lane_id from parley_store._p_lease as e where e.lease_id = any (lease_ids)
    union
    select l.lane_id from parley_store._p_lane as l where l.system = lock_lanes.system and l.lane = any (lanes)
  );
  -- One lane has no order.
  if cardinality(v_lanes) > 1 then
    perform from parley_store._p_lane_state as s where s.lane_id = any (v_lanes) order by s.lane_id for update;
  end if;
end
$$;

comment on function parley_store.lock_lanes(text, bigint[], text[]) is
'Locks leases and their lanes, and lanes besides, for a transaction that ends the one and reports the other: whatever it
does with them after that, in whatever order, cannot come to a deadlock with others that do the same.
Arguments: system of lanes; lease_ids, of which those that are over are passed over; lanes, of which those that are not
there are.';
