-- Leases that ran out, for a system that has to know of which items: somebody may have died of one.

create function parley_store.take_back_leases(system text, leases integer default 1000)
returns table (lane text, subject bigint)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease parley_store._p_lease;
begin
  found := parley_store._p_queue_of(system) is not null;
  found := parley_store._p_require_range('leases', leases, 1, 100000);
  for v_lease in
    select e.*
    from parley_store._p_lease as e
    join parley_store._p_lane as l using (lane_id)
    where e.until < clock_timestamp() and l.system = take_back_leases.system
    order by e.until
    limit leases
    for update of e skip locked
  loop
    return query
    select l.lane, f.subject
    from parley_store._p_in_flight as f
    join parley_store._p_lane as l using (lane_id)
    where f.lease_id = v_lease.lease_id;
    perform parley_store._p_give_back(v_lease, null, true);
    perform parley_store._p_end_lease(v_lease);
  end loop;
end
$$;

comment on function parley_store.take_back_leases(text, integer) is
'Gives the items of leases of one system that have run out back to their lanes, as expire_leases does, and says which.
Arguments: system; leases, how many at most.
Errors: PS001, PS002.';
