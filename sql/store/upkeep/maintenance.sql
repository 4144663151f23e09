-- The upkeep that a daemon has to call now and then, in one place.
--
-- Each task is done for itself, in a block of its own, and waits for no lock longer than lock_timeout: one that fails,
-- or that somebody holds up, keeps none behind it.

create function parley_store.maintain(
  tracking_retention interval default '30 days', lane_idle interval default '3 minutes',
  leases boolean default true, operation_retention interval default '1 year',
  pressure_retention interval default '90 days'
) returns table (task text, done integer, error text)
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '1s'
as $$
declare
  v_content record;
begin
  found := parley_store._p_require_read_committed();
  found := parley_store._p_require_range('retention', tracking_retention, '1 day', '100 years');
  found := parley_store._p_require_range('operation_retention', operation_retention, '1 day', '100 years');
  found := parley_store._p_require_range('pressure_retention', pressure_retention, '1 day', '100 years');
  -- Bodies at the end: the lock of a generation that is truncated stops its readers until the transaction is over.
  foreach task in array array[
    'leases expired', 'lane counts', 'lanes repaired', 'lanes removed', 'tracking days dropped',
    'operations forgotten', 'pressure forgotten', 'bodies removed'
  ] loop
    continue when task = 'leases expired' and leases is not true;
    done := null;
    error := null;
    begin
      case task
        when 'leases expired' then
          done := parley_store.expire_leases();
        when 'lane counts' then
          done := parley_store.fold_lane_counts();
        when 'lanes repaired' then
          done := parley_store.repair_lanes();
        when 'lanes removed' then
          done := parley_store.remove_idle_lanes(1000, lane_idle);
        when 'tracking days dropped' then
          done := parley_store.maintain_tracking(3, tracking_retention);
        when 'operations forgotten' then
          done := parley_store._p_forget_operations(operation_retention);
        when 'pressure forgotten' then
          done := parley_store._p_forget_pressure(pressure_retention);
        else
          select c.removed, c.moved, c.generations_emptied into v_content from parley_store.collect_content() as c;
          done := v_content.removed;
      end case;
    exception
      when others then
        error := sqlerrm;
    end;
    return next;
  end loop;
  if error is null then
    return query
    select t.task, t.done, null::text
    from (values
      ('bodies moved', v_content.moved), ('generations emptied', v_content.generations_emptied)
    ) as t (task, done);
  end if;
end
$$;

comment on function parley_store.maintain(interval, interval, boolean, interval, interval) is
'Does all that has to be done now and then, as a daemon does every few seconds: leases that ran out, lanes, bodies,
partitions. A task that fails, or waits for a lock for more than a second, gives its error, and the others are done;
several may call it at once.
Arguments: tracking_retention, how long events of messages are kept; lane_idle, how long an empty lane stays;
leases, false where the caller calls take_back_leases for its system; operation_retention, how long it is kept what
operators did; pressure_retention, how long changes of the level of a resource are.
Errors: PS002, PS009 not READ COMMITTED.';
