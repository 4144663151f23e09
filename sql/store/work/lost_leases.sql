-- Leases that ran out, for a system that has to know of which items: somebody may have died of one.

create function parley_store.in_hand(system text, subjects bigint[])
returns table (lease_id bigint, holder text, lane text, subject bigint, claimed_at timestamptz, until timestamptz)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_store._p_queue_of(system) is not null;
  return query
  select e.lease_id, e.holder, l.lane, f.subject, e.claimed_at, e.until
  from parley_store._p_in_flight as f
  join parley_store._p_lease as e using (lease_id)
  join parley_store._p_lane as l on l.lane_id = f.lane_id
  where l.system = in_hand.system and f.subject = any (subjects);
end
$$;

comment on function parley_store.in_hand(text, bigint[]) is
'Says which items of some subjects are in somebody''s hands: under which lease, whose, since when, and until when.
Arguments: system; subjects.
Errors: PS001.';

create function parley_store.take_back_leases(
  system text, leases integer default 1000, except_leases bigint[] default null
) returns table (holder text, lane text, subject bigint)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease parley_store._p_lease;
begin
  found := parley_store._p_queue_of(system) is not null;
  found := parley_store._p_require_range('leases', leases, 1, 100000);
  for v_lease in
    select *
    from parley_store._p_lease as e
    where e.lease_id = any (array(
      select o.lease_id
      from parley_store._p_lease as o
      join parley_store._p_lane as l using (lane_id)
      where o.until < clock_timestamp() and l.system = take_back_leases.system
        and (o.lease_id = any (except_leases)) is not true
      order by o.until
      limit leases
      for update of o skip locked
    ))
    order by e.lane_id, e.lease_id
  loop
    return query
    select v_lease.holder, l.lane, f.subject
    from parley_store._p_in_flight as f
    join parley_store._p_lane as l using (lane_id)
    where f.lease_id = v_lease.lease_id;
    perform parley_store._p_give_back(v_lease, null, true);
    perform parley_store._p_end_lease(v_lease);
  end loop;
end
$$;

comment on function parley_store.take_back_leases(text, integer, bigint[]) is
'Gives the items of leases of one system that have run out back to their lanes, as expire_leases does, and says which,
and who had them.
Arguments: system; leases, how many at most; except_leases, those that are left for later.
Errors: PS001, PS002.';

create function parley_store.expire_leases(leases integer default 1000) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease parley_store._p_lease;
  v_items integer := 0;
begin
  found := parley_store._p_require_range('leases', leases, 1, 100000);
  for v_lease in
    select *
    from parley_store._p_lease as e
    where e.lease_id = any (array(
      select o.lease_id
      from parley_store._p_lease as o
      where o.until < clock_timestamp()
      order by o.until
      limit leases
      for update skip locked
    ))
    order by e.lane_id, e.lease_id
  loop
    v_items := v_items + parley_store._p_give_back(v_lease, null, true);
    perform parley_store._p_end_lease(v_lease);
  end loop;
  return v_items;
end
$$;

comment on function parley_store.expire_leases(integer) is
'Gives the items of leases that have run out back to their lanes, in front of all others; gives how many items. Their
holders are refused from then on. It waits for nobody. Call it every few seconds.
Arguments: leases, how many at most.
Errors: PS002.';
