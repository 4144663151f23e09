-- Leases: how claimed items are completed, given back or tried again, and what becomes of a holder that is gone.
--
-- A lease is there as long as items of it are in flight. Its number only grows, and is the fence: when its term is over
-- it is deleted and its items go back to their lane, so whatever its holder says after that is refused with PS005.
-- Until then a holder that is late may still complete: nobody else has the items.
--
-- Locks: the row of the lease for update, then its items, then the state of the lane; of several leases, all of them,
-- and then lanes in the order of their numbers.

create function parley_store._p_hold_lease(lease_id bigint) returns parley_store._p_lease
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease parley_store._p_lease;
begin
  select * into v_lease from parley_store._p_lease as e where e.lease_id = _p_hold_lease.lease_id for update;
  if not found then
    found := parley_store._p_raise('lease', coalesce(lease_id::text, 'null'));
  end if;
  return v_lease;
end
$$;

comment on function parley_store._p_hold_lease(bigint) is
'Finds a lease that is not over, and keeps it from being ended.
Errors: PS005.';

create function parley_store._p_make_ready(delayed bigint[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lanes bigint[];
  v_items integer;
begin
  perform
  from parley_store._p_lane as l
  where l.lane_id in (select d.lane_id from parley_store._p_delayed_item as d where d.item_id = any (delayed))
  order by l.lane_id
  for key share;
  with due as (
    delete from parley_store._p_delayed_item as d
    where d.item_id = any (delayed)
    returning d.item_id, d.lane_id, d.priority, d.subject, d.attempts, d.since, d.expires_at, d.data, d.last_error
  ),

  moved as (
    insert into parley_store._p_item (
      lane_id, priority, item_id, subject, attempts, since, expires_at, data, last_error
    )
    select d.lane_id, d.priority, d.item_id, d.subject, d.attempts, d.since, d.expires_at, d.data, d.last_error
    from due as d
    returning lane_id
  )

  select array_agg(distinct m.lane_id), count(*)::integer into v_lanes, v_items from moved as m;
  perform parley_store._p_wake_lanes(v_lanes);
  return v_items;
end
$$;

comment on function parley_store._p_make_ready(bigint[]) is
'Puts delayed items at the end of their lanes; gives how many.';

create function parley_store._p_end_lease(lease parley_store._p_lease) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if exists (select from parley_store._p_in_flight as f where f.lease_id = lease.lease_id) then
    return;
  end if;
  delete from parley_store._p_lease as e where e.lease_id = lease.lease_id;
  perform parley_store._p_wake_blocked(array[lease.lane_id]);
end
$$;

comment on function parley_store._p_end_lease(parley_store._p_lease) is
'Ends a lease of which no item is left, and has its lane go on when that has waited for it.';

create function parley_store._p_give_back(
  lease parley_store._p_lease, items bigint[], at_front boolean
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Where one lease is out at a time what comes back stood in front of all that waits, of what came back before too.
  v_is_first constant boolean := at_front and (
    select s.lease_max = 1 from parley_store._p_lane_state as s where s.lane_id = lease.lane_id
  );
  v_items integer;
  v_priorities integer[];
begin
  perform from parley_store._p_lane as l where l.lane_id = lease.lane_id for key share;
  with returned as (
    delete from parley_store._p_in_flight as f
    where f.lease_id = lease.lease_id and (items is null or f.item_id = any (items))
    returning
      f.item_id, f.lane_id, f.priority, f.put_by, f.subject, f.attempts, f.since, f.expires_at, f.data, f.last_error,
      f.is_to_suspend, f.reason
  ),

  suspended as (
    insert into parley_store._p_suspended_item (
      item_id, lane_id, priority, subject, attempts, since, expires_at, data, last_error, reason
    )
    select
      r.item_id, r.lane_id, (r.priority - 1) % 10 + 1, r.subject, r.attempts, r.since, r.expires_at, r.data,
      r.last_error, r.reason
    from returned as r
    where r.is_to_suspend
  ),

  removed as (
    insert into parley_store._p_lane_change (lane_id, priority, went, tried)
    select r.lane_id, (r.priority - 1) % 10 + 1, count(*), -count(*) filter (where r.attempts > 0)
    from returned as r
    where r.is_to_suspend is false
    group by 1, 2
  ),

  behind as (
    delete from parley_store._p_item as i
    where v_is_first and i.lane_id = lease.lane_id and i.priority > 10
    returning i.item_id, i.priority, i.put_by, i.subject, i.attempts, i.since, i.expires_at, i.data, i.last_error
  ),

  -- Numbered anew in their order: what was claimed before stands in front of what was claimed after it.
  put_back as (
    insert into parley_store._p_item (
      lane_id, priority, item_id, subject, attempts, since, expires_at, data, last_error
    )
    select
      lease.lane_id, (r.priority - 1) % 10 + case when at_front then 11 else 1 end,
      nextval('parley_store._p_item_id'), r.subject, r.attempts, r.since, r.expires_at, r.data, r.last_error
    from (
      select
        o.priority, o.put_by, o.item_id, o.subject, o.attempts, o.since, o.expires_at, o.data, o.last_error, 1 as place
      from returned as o
      where o.is_to_suspend is null
      union all
      select b.priority, b.put_by, b.item_id, b.subject, b.attempts, b.since, b.expires_at, b.data, b.last_error, 2
      from behind as b
      order by place, priority desc, put_by, item_id
    ) as r
  )

  select count(*)::integer, array_agg(distinct (r.priority - 1) % 10 + 11) into v_items, v_priorities
  from returned as r;
  if at_front then
    insert into parley_store._p_lane_priority (lane_id, priority)
    select lease.lane_id, p.priority
    from unnest(v_priorities) as p (priority)
    where not exists (
      select from parley_store._p_lane_priority as o where o.lane_id = lease.lane_id and o.priority = p.priority
    );
  end if;
  perform parley_store._p_wake_lanes(array[lease.lane_id]);
  return v_items;
end
$$;

comment on function parley_store._p_give_back(parley_store._p_lease, bigint[], boolean) is
'Gives items of a lease back to their lane, with new numbers; those that an operator wanted suspended or removed
meanwhile are. Gives how many.
Arguments: lease, locked by the caller; items, null for all; at_front, in front of all others, or at the end.';

create function parley_store.renew_lease(lease_id bigint, lease interval default '1 minute') returns timestamptz
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease parley_store._p_lease := parley_store._p_hold_lease(lease_id);
  v_until timestamptz := clock_timestamp() + lease;
begin
  found := parley_store._p_require_range('lease', lease, '1 second', '1 day');
  update parley_store._p_lease as e set until = v_until where e.lease_id = v_lease.lease_id;
  return v_until;
end
$$;

comment on function parley_store.renew_lease(bigint, interval) is
'Extends a lease from now on, and gives until when.
Arguments: lease_id; lease, 1 second to 1 day.
Errors: PS002, PS005 it is over.';

create function parley_store.complete_work(lease_id bigint, items bigint[] default null) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease parley_store._p_lease := parley_store._p_hold_lease(lease_id);
  v_completed integer;
begin
  with done as (
    delete from parley_store._p_in_flight as f
    where f.lease_id = v_lease.lease_id and (items is null or f.item_id = any (items))
    returning f.lane_id, (f.priority - 1) % 10 + 1 as priority, f.attempts
  ),

  changed as (
    insert into parley_store._p_lane_change (lane_id, priority, went, tried)
    select d.lane_id, d.priority, count(*), -count(*) filter (where d.attempts > 0)
    from done as d
    group by d.lane_id, d.priority
  )

  select count(*)::integer into v_completed from done as d;
  perform parley_store._p_end_lease(v_lease);
  return v_completed;
end
$$;

comment on function parley_store.complete_work(bigint, bigint[]) is
'Removes items that are done, in the transaction that records what came of them; gives how many. Items that were
completed or given back before are passed over.
Arguments: lease_id; items, null for all that are left of the lease.
Errors: PS005 the lease is over: roll back what was to be recorded.';

create function parley_store.release_work(lease_id bigint, items bigint[] default null) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease parley_store._p_lease := parley_store._p_hold_lease(lease_id);
  v_released integer := parley_store._p_give_back(v_lease, items, true);
begin
  perform parley_store._p_end_lease(v_lease);
  return v_released;
end
$$;

comment on function parley_store.release_work(bigint, bigint[]) is
'Gives items back that were not tried, in front of all others of their priority and in their order; no attempt is
counted.
Arguments: lease_id; items, null for all that are left of the lease.
Errors: PS005 the lease is over.';

create function parley_store.delay_work(
  lease_id bigint, items bigint[], due_at timestamptz, error text default null, counts boolean default true
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease parley_store._p_lease := parley_store._p_hold_lease(lease_id);
  v_delayed bigint[];
  v_returned integer;
begin
  if due_at is null then
    found := parley_store._p_raise('missing', 'due_at');
  end if;
  with failed as (
    update parley_store._p_in_flight as f
    set attempts = f.attempts + counts::integer, last_error = coalesce(error, f.last_error)
    where f.lease_id = v_lease.lease_id and (items is null or f.item_id = any (items))
    returning f.lane_id, (f.priority - 1) % 10 + 1 as priority, f.attempts
  ),

  changed as (
    insert into parley_store._p_lane_change (lane_id, priority, tried)
    select f.lane_id, f.priority, count(*)
    from failed as f
    where counts and f.attempts = 1
    group by f.lane_id, f.priority
  )

  select count(*)::integer into v_returned from failed as f;
  with returned as (
    delete from parley_store._p_in_flight as f
    where f.lease_id = v_lease.lease_id
      and (items is null or f.item_id = any (items))
      and f.is_to_suspend is null
    returning f.item_id, f.lane_id, f.priority, f.subject, f.attempts, f.since, f.expires_at, f.data, f.last_error
  ),

  delayed as (
    insert into parley_store._p_delayed_item (
      item_id, lane_id, due_at, priority, subject, attempts, since, expires_at, data, last_error
    )
    select
      r.item_id, r.lane_id, delay_work.due_at, (r.priority - 1) % 10 + 1, r.subject, r.attempts, r.since, r.expires_at,
      r.data, r.last_error
    from returned as r
    returning item_id
  )

  select array_agg(d.item_id) into v_delayed from delayed as d;
  if v_delayed is not null then
    perform parley_store._p_put_due_token(l.system, l.lane_id, v_delayed, due_at)
    from parley_store._p_lane as l
    where l.lane_id = v_lease.lane_id;
  end if;
  if v_returned > coalesce(cardinality(v_delayed), 0) then
    perform parley_store._p_give_back(v_lease, items, false);
  end if;
  perform parley_store._p_end_lease(v_lease);
  return v_returned;
end
$$;

comment on function parley_store.delay_work(bigint, bigint[], timestamptz, text, boolean) is
'Has items tried again at a time that the caller gives; what an operator wanted suspended or removed meanwhile is. Gives
how many.
Arguments: lease_id; items, null for all that are left of the lease; due_at; error, what went wrong; counts, whether it
was an attempt.
Errors: PS002, PS005 the lease is over.';

create function parley_store.retry_work(
  lease_id bigint, items bigint[] default null, error text default null, retry_policy text default null
) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease parley_store._p_lease := parley_store._p_hold_lease(lease_id);
  v_expired bigint[];
  v_policy text;
  v_due record;
begin
  select coalesce(retry_work.retry_policy, s.retry_policy) into v_policy
  from parley_store._p_lane_state as s
  where s.lane_id = v_lease.lane_id;
  select array_agg(f.item_id order by f.item_id) into v_expired
  from parley_store._p_in_flight as f
  where f.lease_id = v_lease.lease_id
    and (items is null or f.item_id = any (items))
    and (
      f.expires_at <= clock_timestamp()
      or f.expires_at is null and parley_store.next_attempt(v_policy, f.attempts + 1, f.since) is null
    );
  -- Items that have failed as often are due together, so that one token is enough for them.
  for v_due in
    select array_agg(f.item_id) as items, max(f.expires_at) as expires_at,
      parley_store.next_attempt(v_policy, f.attempts + 1, null) as due_at
    from parley_store._p_in_flight as f
    where f.lease_id = v_lease.lease_id
      and (items is null or f.item_id = any (items))
      and (f.item_id = any (v_expired)) is not true
    group by f.attempts
  loop
    perform parley_store.delay_work(v_lease.lease_id, v_due.items, v_due.due_at, error, true);
  end loop;
  return coalesce(v_expired, '{}');
end
$$;

comment on function parley_store.retry_work(bigint, bigint[], text, text) is
'Has items tried again when the policy says. Gives the numbers of those whose time is over: these stay under the lease,
for the caller to give them up and complete them.
Arguments: lease_id; items, null for all that are left of the lease; error, what went wrong; retry_policy, null for that
of the lane.
Errors: PS005 the lease is over, PS007.
Source: spec hub-transport 8.1, 8.3.';

create function parley_store.suspend_claimed(lease_id bigint, items bigint[], reason text, error text default null)
returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease parley_store._p_lease := parley_store._p_hold_lease(lease_id);
  v_suspended integer;
begin
  update parley_store._p_in_flight as f
  set is_to_suspend = coalesce(f.is_to_suspend, true), reason = suspend_claimed.reason,
    last_error = coalesce(error, f.last_error)
  where f.lease_id = v_lease.lease_id and (items is null or f.item_id = any (items));
  v_suspended := parley_store._p_give_back(v_lease, items, false);
  perform parley_store._p_end_lease(v_lease);
  return v_suspended;
end
$$;

comment on function parley_store.suspend_claimed(bigint, bigint[], text, text) is
'Sets items aside that whoever works on them cannot go on with, such as poison; they wait for an operator. An item of
them that an operator wanted removed meanwhile is removed.
Arguments: lease_id; items, null for all that are left of the lease; reason; error, what went wrong.
Errors: PS005 the lease is over.';
