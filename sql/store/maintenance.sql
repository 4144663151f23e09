-- What a daemon has to call now and then, in one place.

create function parley_store.maintain(
  tracking_retention interval default '30 days', lane_idle interval default '3 minutes',
  leases boolean default true
) returns table (task text, done integer)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_store._p_require_read_committed();
  if leases then
    return query select 'leases expired', parley_store.expire_leases();
  end if;
  return query select 'lane counts', parley_store.fold_lane_counts();
  return query select 'lanes repaired', parley_store.repair_lanes();
  return query select 'lanes removed', parley_store.remove_idle_lanes(1000, lane_idle);
  return query select 'tracking days dropped', parley_store.maintain_tracking(3, tracking_retention);
  -- At the end: the lock of a generation that is truncated stops its readers until the transaction is over.
  return query
  select t.task, t.done
  from parley_store.collect_content() as c
  cross join lateral (values
    ('bodies removed', c.removed), ('bodies moved', c.moved), ('generations emptied', c.generations_emptied)
  ) as t (task, done);
end
$$;

comment on function parley_store.maintain(interval, interval, boolean) is
'Does all that has to be done now and then, as a daemon does every few seconds: leases that ran out, lanes, bodies,
partitions. It waits for nobody, and several may call it at once.
Arguments: tracking_retention, how long events of messages are kept; lane_idle, how long an empty lane stays;
leases, false where the caller calls take_back_leases for its system.
Errors: PS002, PS009 not READ COMMITTED.';
