-- Completing under many leases at once: what senders to many hosts have done, in as many statements as one lease takes.
--
-- Invariants, and what keeps each:
--   nothing is recorded under a lease that is over   the leases that are there are locked, and only these are given
-- Locks: as complete_work, the leases in the order of their numbers.

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
