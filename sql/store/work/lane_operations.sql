-- The outcomes of a lane's next hop, and the operations on lanes.

create function parley_store.fail_lane(
  system text, lane text, error text, failed_at timestamptz default clock_timestamp()
) returns timestamptz
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane_id bigint := parley_store._p_lane_id(system, lane);
  v_state parley_store._p_lane_state;
  v_next timestamptz;
begin
  select * into v_state from parley_store._p_lane_state as s where s.lane_id = v_lane_id for update;
  -- A failure of before the last success, or of an attempt that others have reported already, says nothing new.
  if failed_at is null or failed_at < v_state.succeeded_at
    or v_state.failures > 0 and v_state.next_attempt_at > failed_at then
    return v_state.next_attempt_at;
  end if;
  -- Items expire, lanes do not. A lane that was put off is not tried before that time either.
  v_next := greatest(
    parley_store.next_attempt(v_state.retry_policy, v_state.failures + 1, null), v_state.next_attempt_at
  );
  update parley_store._p_lane_state as s
  set failures = s.failures + 1, failing_since = coalesce(s.failing_since, failed_at), next_attempt_at = v_next,
    last_error = error,
    lease_limit = case
      when s.lease_start is not null then greatest(least(coalesce(s.lease_limit, s.lease_start), s.lease_max) / 2, 1)
    end
  where s.lane_id = v_lane_id;
  if v_state.suspended_at is null then
    perform parley_store._p_schedule(v_lane_id, v_next);
  end if;
  return v_next;
end
$$;

comment on function parley_store.fail_lane(text, text, text, timestamptz) is
'Reports that the next hop of a lane could not be reached: nothing is claimed from it until the time that this gives, by
its retry policy. Items that were claimed are given back by release_work. Several that report one failure count once.
Arguments: system; lane; error, what went wrong; failed_at, when the attempt began.
Errors: PS006.
Source: spec hub-transport 8.1.';

create function parley_store.succeed_lane(system text, lane text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane_id bigint := parley_store._p_lane_id(system, lane);
  v_state parley_store._p_lane_state;
begin
  -- The row is written when something changes, and once in ten seconds; in one while the number of leases grows.
  select * into v_state
  from parley_store._p_lane_state as s
  where s.lane_id = v_lane_id
    and (
      s.failures > 0 or s.succeeded_at is null or s.succeeded_at < clock_timestamp() - interval '10 seconds'
      or s.lease_start is not null
      and coalesce(s.lease_limit, s.lease_start) < coalesce(s.lease_max, 100000)
      and s.succeeded_at < clock_timestamp() - interval '1 second'
    )
  for update;
  if not found then
    return;
  end if;
  -- After a failure it begins where the failure has left it; otherwise there is one more.
  update parley_store._p_lane_state as s
  set failures = 0, failing_since = null,
    next_attempt_at = case when v_state.failures = 0 then s.next_attempt_at end,
    succeeded_at = clock_timestamp(),
    lease_limit = case
      when s.lease_start is null then null
      when v_state.succeeded_at is null or v_state.failures > 0 then coalesce(s.lease_limit, s.lease_start)
      else least(coalesce(s.lease_limit, s.lease_start) + 1, coalesce(s.lease_max, 100000))
    end
  where s.lane_id = v_lane_id;
  if v_state.suspended_at is null
    and (v_state.is_blocked or v_state.failures > 0 and v_state.next_attempt_at > clock_timestamp()) then
    perform parley_store._p_schedule(v_lane_id, null);
  end if;
end
$$;

comment on function parley_store.succeed_lane(text, text) is
'Reports that the next hop of a lane was reached: its count of failures begins anew, and where the number of its leases
adapts there may be one more, at most each second.
Arguments: system; lane.
Errors: PS006.
Source: spec hub-transport 8.1, 11.2.';

create function parley_store.postpone_lane(system text, lane text, until timestamptz, reason text default null)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane_id bigint := parley_store._p_lane_id(system, lane);
  v_state parley_store._p_lane_state;
begin
  select * into v_state from parley_store._p_lane_state as s where s.lane_id = v_lane_id for update;
  if until is null or until <= greatest(clock_timestamp(), v_state.next_attempt_at) then
    return false;
  end if;
  update parley_store._p_lane_state as s
  set next_attempt_at = until, last_error = coalesce(reason, s.last_error)
  where s.lane_id = v_lane_id;
  if v_state.suspended_at is null then
    perform parley_store._p_schedule(v_lane_id, until);
  end if;
  return true;
end
$$;

comment on function parley_store.postpone_lane(text, text, timestamptz, text) is
'Has nothing claimed from a lane until a time, without a failure of its next hop: because of a rate, say. False when it
waits as long already.
Arguments: system; lane; until; reason.
Errors: PS006.
Source: spec hub-transport 11.3.';

create function parley_store.record_lane_error(system text, lane text, error text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley_store._p_lane_state as s
  set last_error = error
  where s.lane_id = parley_store._p_lane_id(system, lane) and s.last_error is distinct from error;
end
$$;

comment on function parley_store.record_lane_error(text, text, text) is
'Records what was wrong with the next hop of a lane, which was reached: as the last error, and without a failure.
Arguments: system; lane; error, what went wrong.
Errors: PS006.
Source: spec hub-transport 15.3.';

create function parley_store.retry_lane(system text, lane text, done_by text default null) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane_id bigint := parley_store._p_lane_id(system, lane);
begin
  perform
  from parley_store._p_lane_state as s
  where s.lane_id = v_lane_id and s.next_attempt_at > clock_timestamp() and s.suspended_at is null
  for update;
  if not found then
    return false;
  end if;
  update parley_store._p_lane_state as s set next_attempt_at = null where s.lane_id = v_lane_id;
  perform parley_store._p_schedule(v_lane_id, null);
  perform parley_store._p_audit(system, 'retry lane', jsonb_build_object('lane', lane), null, 0, done_by);
  return true;
end
$$;

comment on function parley_store.retry_lane(text, text, text) is
'Has a lane in retry tried at once; false when it is not in retry. The count of failures stays.
Arguments: system; lane; done_by, on whose behalf.
Errors: PS006.
Source: spec hub-transport 17.';

create function parley_store.suspend_lane(system text, lane text, reason text default null, done_by text default null)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane_id bigint := parley_store._p_lane_id(system, lane);
begin
  update parley_store._p_lane_state as s
  set suspended_at = clock_timestamp(), suspended_for = reason
  where s.lane_id = v_lane_id and s.suspended_at is null;
  if not found then
    return false;
  end if;
  perform parley_store._p_audit(system, 'suspend lane', jsonb_build_object('lane', lane), reason, 0, done_by);
  return true;
end
$$;

comment on function parley_store.suspend_lane(text, text, text, text) is
'Has nothing claimed from a lane any more; what is claimed goes on, and work may be put. False when it is suspended.
Arguments: system; lane; reason; done_by, on whose behalf.
Errors: PS006.
Source: spec hub-transport 17.';

create function parley_store.resume_lane(system text, lane text, done_by text default null) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane_id bigint := parley_store._p_lane_id(system, lane);
begin
  update parley_store._p_lane_state as s
  set suspended_at = null, suspended_for = null
  where s.lane_id = v_lane_id and s.suspended_at is not null;
  if not found then
    return false;
  end if;
  perform parley_store._p_schedule(v_lane_id, null);
  perform parley_store._p_audit(system, 'resume lane', jsonb_build_object('lane', lane), null, 0, done_by);
  return true;
end
$$;

comment on function parley_store.resume_lane(text, text, text) is
'Takes a suspension of a lane back; false when there is none.
Arguments: system; lane; done_by, on whose behalf.
Errors: PS006.
Source: spec hub-transport 17.';

create function parley_store.repair_lanes(lanes integer default 1000, overdue interval default '1 minute')
returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane_id bigint;
  v_repaired integer := 0;
begin
  found := parley_store._p_require_range('lanes', lanes, 1, 100000);
  for v_lane_id in
    select s.lane_id
    from parley_store._p_lane_state as s
    where s.suspended_at is null
      and not (s.is_blocked and exists (select from parley_store._p_lease as e where e.lane_id = s.lane_id))
      and greatest(s.visited_at, s.next_attempt_at) < clock_timestamp() - overdue
      and (
        s.is_scheduled
        or exists (
          select
          from parley_store._p_activation as a
          where a.lane_id = s.lane_id and a.activation_id > s.activated_to
            and a.created_at < clock_timestamp() - overdue
        )
      )
    order by s.lane_id
    limit lanes
    for update skip locked
  loop
    perform parley_store._p_schedule(v_lane_id, null);
    v_repaired := v_repaired + 1;
  end loop;
  perform parley_store._p_make_ready(array(
    select d.item_id from parley_store._p_delayed_item as d where d.due_at < clock_timestamp() - overdue limit lanes
  ));
  return v_repaired;
end
$$;

comment on function parley_store.repair_lanes(integer, interval) is
'Gives lanes a new token that nobody has come for in time, as when somebody emptied the queue, or that wait for a lease
where none is out, and puts delayed items that are overdue at the end of their lanes. Gives how many lanes. A token too
many is dropped.
Arguments: lanes, how many at most; overdue, how late they must be.
Errors: PS002.';

create function parley_store.remove_idle_lanes(lanes integer default 1000, idle interval default '3 minutes')
returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_locked bigint[];
  v_removed integer;
begin
  found := parley_store._p_require_range('lanes', lanes, 1, 100000);
  found := parley_store._p_require_read_committed();
  select array_agg(i.lane_id) into v_locked
  from (
    select l.lane_id
    from parley_store._p_lane as l
    join parley_store._p_lane_state as s using (lane_id)
    where not s.is_scheduled and not s.is_permanent and s.suspended_at is null
      and s.visited_at < clock_timestamp() - idle
    order by l.lane_id
    limit lanes
    for update of l, s skip locked
  ) as i;
  delete from parley_store._p_lane as l
  where l.lane_id = any (v_locked)
    and not parley_store._p_has_work(l.lane_id)
    and not exists (select from parley_store._p_lease as e where e.lane_id = l.lane_id)
    and not exists (select from parley_store._p_delayed_item as d where d.lane_id = l.lane_id)
    and not exists (select from parley_store._p_suspended_item as u where u.lane_id = l.lane_id);
  get diagnostics v_removed = row_count;
  delete from parley_store._p_activation as a
  where a.lane_id = any (v_locked) and not exists (select from parley_store._p_lane as l where l.lane_id = a.lane_id);
  delete from parley_store._p_lane_mark as m
  where m.lane_id = any (v_locked) and not exists (select from parley_store._p_lane as l where l.lane_id = m.lane_id);
  return v_removed;
end
$$;

comment on function parley_store.remove_idle_lanes(integer, interval) is
'Removes lanes that have been empty for a while and are not permanent; gives how many. It waits for nobody.
Arguments: lanes, how many at most; idle, for how long.
Errors: PS002, PS009 not READ COMMITTED.
Source: spec hub-transport 2.';
