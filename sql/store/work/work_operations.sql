-- Operations on items of work: find, retry, suspend, resume, remove, export; by a filter, in bounded steps, and first
-- as a count of what would be touched.
--
-- A filter is a JSON object whose conditions must all hold; {} is every item of the system:
--   lane      a name, in which * stands for anything
--   state     WAITING, DELAYED, IN_FLIGHT or SUSPENDED, or an array of them
--   items     an array of item numbers
--   subjects  an array of the system's numbers
--   error     a part of last_error
--   reason    a part of the reason of a suspension
--   attempts  so many failed attempts at least
--   older     an interval: it came longer ago
--   priority  one of 1 to 10
-- An item in flight is changed when it comes back without success. Waiting items that others are claiming are
-- skipped. Each step is recorded in parley_store.operations.
-- Cost: a filter without items reads all items of the system.

create view parley_store.work_items as
select
  l.system, l.lane, 'WAITING' as state, i.item_id, i.subject, ((i.priority - 1) % 10 + 1)::smallint as priority,
  i.attempts, i.since, null::timestamptz as due_at, i.expires_at, i.last_error, null as reason,
  null::bigint as lease_id, i.data, null::boolean as is_to_suspend
from parley_store._p_item as i
join parley_store._p_lane as l using (lane_id)
union all
select
  l.system, l.lane, 'DELAYED', d.item_id, d.subject, d.priority, d.attempts, d.since, d.due_at, d.expires_at,
  d.last_error, null, null, d.data, null
from parley_store._p_delayed_item as d
join parley_store._p_lane as l using (lane_id)
union all
select
  l.system, l.lane, 'IN_FLIGHT', f.item_id, f.subject, ((f.priority - 1) % 10 + 1)::smallint, f.attempts, f.since,
  null, f.expires_at, f.last_error, f.reason, f.lease_id, f.data, f.is_to_suspend
from parley_store._p_in_flight as f
join parley_store._p_lane as l using (lane_id)
union all
select
  l.system, l.lane, 'SUSPENDED', u.item_id, u.subject, u.priority, u.attempts, u.since, null, u.expires_at,
  u.last_error, u.reason, null, u.data, null
from parley_store._p_suspended_item as u
join parley_store._p_lane as l using (lane_id);

comment on view parley_store.work_items is 'Every item of work: where it is and what has become of it so far.';
comment on column parley_store.work_items.state is
'WAITING to be claimed, DELAYED until due_at, IN_FLIGHT under lease_id, or SUSPENDED for a reason.';
comment on column parley_store.work_items.is_to_suspend is
'The operator''s wish for an item in flight when it comes back without success: true suspend it, false remove it.';

create function parley_store._p_require_filter(filter jsonb) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_known constant text[] := array[
    'lane', 'state', 'items', 'subjects', 'error', 'reason', 'attempts', 'older', 'priority'
  ];
  v_key text;
begin
  if jsonb_typeof(filter) is distinct from 'object' then
    found := parley_store._p_raise('missing', 'filter');
  end if;
  select k.key into v_key from jsonb_object_keys(filter) as k (key) where k.key <> all (v_known) order by 1 limit 1;
  if found then
    found := parley_store._p_raise('filter', v_key, array_to_string(v_known, ', '));
  end if;
  return true;
end
$$;

comment on function parley_store._p_require_filter(jsonb) is
'Refuses a filter with a condition that is not known: it would match too much.
Errors: PS002.';

create function parley_store._p_numbers(filter jsonb, key text) returns bigint[]
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not filter ? key then
    return null;
  end if;
  return array(select e.value::bigint from jsonb_array_elements_text(filter -> key) as e (value));
end
$$;

comment on function parley_store._p_numbers(jsonb, text) is
'Gives the numbers of a condition; null when there is none.';

create function parley_store.matching_work(system text, filter jsonb, top integer default null)
returns setof parley_store.work_items
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane constant text := replace(replace(replace(replace(
    filter ->> 'lane', '!', '!!'), '%', '!%'), '_', '!_'), '*', '%');
  v_states constant text[] := case jsonb_typeof(filter -> 'state')
    when 'array' then array(select upper(e.value collate "C") from jsonb_array_elements_text(filter -> 'state') as e)
    when 'string' then array[upper((filter ->> 'state') collate "C")]
  end;
  v_items constant bigint[] := parley_store._p_numbers(filter, 'items');
  v_subjects constant bigint[] := parley_store._p_numbers(filter, 'subjects');
  v_before constant timestamptz := clock_timestamp() - (filter ->> 'older')::interval;
begin
  found := parley_store._p_queue_of(system) is not null;
  found := parley_store._p_require_filter(filter);
  return query
  select w.*
  from parley_store.work_items as w
  where w.system = matching_work.system
    and (v_lane is null or w.lane like v_lane escape '!')
    and (v_states is null or w.state = any (v_states))
    and (v_items is null or w.item_id = any (v_items))
    and (v_subjects is null or w.subject = any (v_subjects))
    and (not filter ? 'error' or strpos(w.last_error, filter ->> 'error') > 0)
    and (not filter ? 'reason' or strpos(w.reason, filter ->> 'reason') > 0)
    and (not filter ? 'attempts' or w.attempts >= (filter ->> 'attempts')::integer)
    and (not filter ? 'older' or w.since < v_before)
    and (not filter ? 'priority' or w.priority = (filter ->> 'priority')::integer)
  order by w.item_id
  limit top;
end
$$;

comment on function parley_store.matching_work(text, jsonb, integer) is
'Gives the items of a system that a filter matches, the oldest numbers first.
Arguments: system; filter, an object of conditions as docs/internals/store.md lists them; top, how many at most (null:
all).
Errors: PS001, PS002.
Source: spec hub-transport 17.';

create function parley_store.export_work(system text, filter jsonb, top integer default 1000, done_by text default null)
returns setof parley_store.work_items
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_items integer;
begin
  return query
  select m.*
  from parley_store.matching_work(system, filter || '{"state": "SUSPENDED"}', top) as m;
  get diagnostics v_items = row_count;
  perform parley_store._p_audit(system, 'export', filter, null, v_items, done_by);
end
$$;

comment on function parley_store.export_work(text, jsonb, integer, text) is
'Gives suspended items for the system to write out what they stand for; they stay. An item that is not suspended is not
given.
Arguments: system; filter, as for matching_work; top, how many at most; done_by, on whose behalf.
Errors: PS001, PS002.
Source: spec hub-transport 17.';

create function parley_store._p_delete_waiting(items bigint[]) returns setof parley_store._p_suspended_item
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  with picked as materialized (
    select i.ctid as row_id from parley_store._p_item as i where i.item_id = any (items) for update skip locked
  )
  delete from parley_store._p_item as i
  using picked as p
  where i.ctid = p.row_id
  returning i.item_id, i.lane_id, ((i.priority - 1) % 10 + 1)::smallint, i.subject, i.attempts, i.since, i.expires_at,
    i.data, i.last_error, null::text, clock_timestamp();
  return query
  with picked as materialized (
    select d.item_id from parley_store._p_delayed_item as d where d.item_id = any (items) for update skip locked
  )
  delete from parley_store._p_delayed_item as d
  using picked as p
  where d.item_id = p.item_id
  returning d.item_id, d.lane_id, d.priority, d.subject, d.attempts, d.since, d.expires_at, d.data, d.last_error,
    null::text, clock_timestamp();
end
$$;

comment on function parley_store._p_delete_waiting(bigint[]) is
'Takes items out of those that wait or are delayed, but what others have in their hands.';

create function parley_store.suspend_work(
  system text, filter jsonb, reason text, top integer default 1000, dry_run boolean default false,
  done_by text default null
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_items bigint[];
  v_touched integer;
  v_marked integer;
begin
  select array_agg(m.item_id) into v_items
  from parley_store.matching_work(system, filter, null) as m
  where m.state <> 'SUSPENDED' and m.is_to_suspend is null;
  if dry_run then
    return coalesce(cardinality(v_items), 0);
  end if;
  v_items := v_items[1:top];
  insert into parley_store._p_suspended_item (
    item_id, lane_id, priority, subject, attempts, since, expires_at, data, last_error, reason
  )
  select
    w.item_id, w.lane_id, w.priority, w.subject, w.attempts, w.since, w.expires_at, w.data, w.last_error,
    coalesce(suspend_work.reason, '')
  from parley_store._p_delete_waiting(v_items) as w;
  get diagnostics v_touched = row_count;
  update parley_store._p_in_flight as f
  set is_to_suspend = true, reason = coalesce(suspend_work.reason, '')
  where f.item_id = any (v_items);
  get diagnostics v_marked = row_count;
  perform parley_store._p_audit(system, 'suspend', filter, reason, v_touched + v_marked, done_by);
  return v_touched + v_marked;
end
$$;

comment on function parley_store.suspend_work(text, jsonb, text, integer, boolean, text) is
'Suspends items that match; those in flight when they come back without success. Gives how many; call it until it gives
0.
Arguments: system; filter, as for matching_work; reason; top, how many at a time; dry_run, only count all that match;
done_by, on whose behalf.
Errors: PS001, PS002.
Source: spec hub-transport 2, 17.';

create function parley_store.resume_work(
  system text, filter jsonb, top integer default 1000, dry_run boolean default false, done_by text default null
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_items bigint[];
  v_touched integer;
begin
  select array_agg(m.item_id) into v_items
  from parley_store.matching_work(system, filter || '{"state": "SUSPENDED"}', null) as m;
  if dry_run then
    return coalesce(cardinality(v_items), 0);
  end if;
  v_items := v_items[1:top];
  -- By way of the delayed ones: that is how items come to the end of their lanes.
  with resumed as (
    delete from parley_store._p_suspended_item as u
    where u.item_id = any (v_items)
    returning u.item_id, u.lane_id, u.priority, u.subject, u.attempts, u.since, u.expires_at, u.data, u.last_error
  )
  insert into parley_store._p_delayed_item (
    item_id, lane_id, due_at, priority, subject, attempts, since, expires_at, data, last_error
  )
  select
    r.item_id, r.lane_id, clock_timestamp(), r.priority, r.subject, r.attempts, r.since, r.expires_at, r.data,
    r.last_error
  from resumed as r;
  get diagnostics v_touched = row_count;
  perform parley_store._p_make_ready(v_items);
  perform parley_store._p_audit(system, 'resume', filter, null, v_touched, done_by);
  return v_touched;
end
$$;

comment on function parley_store.resume_work(text, jsonb, integer, boolean, text) is
'Puts suspended items that match at the end of their lanes. Gives how many; call it until it gives 0.
Arguments: as suspend_work.
Errors: PS001, PS002.
Source: spec hub-transport 17.';

create function parley_store.retry_work_now(
  system text, filter jsonb, top integer default 1000, dry_run boolean default false, done_by text default null
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_items bigint[];
  v_touched integer;
begin
  select array_agg(m.item_id) into v_items
  from parley_store.matching_work(system, filter || '{"state": "DELAYED"}', null) as m;
  if dry_run then
    return coalesce(cardinality(v_items), 0);
  end if;
  v_touched := parley_store._p_make_ready(v_items[1:top]);
  perform parley_store._p_audit(system, 'retry now', filter, null, v_touched, done_by);
  return v_touched;
end
$$;

comment on function parley_store.retry_work_now(text, jsonb, integer, boolean, text) is
'Puts delayed items that match at the end of their lanes at once. Gives how many; call it until it gives 0. For a lane
in retry there is retry_lane.
Arguments: as suspend_work.
Errors: PS001, PS002.
Source: spec hub-transport 17.';

create function parley_store.remove_work(
  system text, filter jsonb, top integer default 1000, done_by text default null
) returns setof parley_store.work_items
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_items bigint[];
  v_matching parley_store.work_items[];
  v_gone bigint[];
  v_marked integer;
begin
  select array_agg(m.item_id), array_agg(m) into v_items, v_matching
  from parley_store.matching_work(system, filter, top) as m
  where m.is_to_suspend is distinct from false;
  select array_agg(w.item_id) into v_gone from parley_store._p_delete_waiting(v_items) as w;
  with removed as (
    delete from parley_store._p_suspended_item as u where u.item_id = any (v_items) returning u.item_id
  )
  select coalesce(v_gone, '{}') || coalesce(array_agg(r.item_id), '{}') into v_gone from removed as r;
  insert into parley_store._p_lane_change (lane_id, priority, went, tried)
  select l.lane_id, w.priority, count(*), -count(*) filter (where w.attempts > 0)
  from unnest(v_matching) as w
  join parley_store._p_lane as l on l.system = w.system and l.lane = w.lane
  where w.item_id = any (v_gone)
  group by l.lane_id, w.priority;
  update parley_store._p_in_flight as f
  set is_to_suspend = false, reason = 'removed'
  where f.item_id = any (v_items) and f.is_to_suspend is distinct from false;
  get diagnostics v_marked = row_count;
  perform parley_store._p_audit(system, 'remove', filter, null, cardinality(v_gone) + v_marked, done_by);
  return query select w.* from unnest(v_matching) as w where w.item_id = any (v_gone);
end
$$;

comment on function parley_store.remove_work(text, jsonb, integer, text) is
'Removes items that match and gives them, so that the system can remove what they stand for in the same transaction.
Those in flight are removed when they come back without success, and are not given. Call it until it gives none; for a
count beforehand, count matching_work.
Arguments: system; filter, as for matching_work; top, how many at a time; done_by, on whose behalf.
Errors: PS001, PS002.
Source: spec hub-transport 2, 17.';

create function parley_store.claim_expired(
  system text, items integer default 100, lease interval default '1 minute', holder text default ''
) returns setof parley_store.claimed_item
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane record;
  v_lease_id bigint;
  v_leases bigint[] := '{}'::bigint[];
  v_left integer := items;
  v_claimed integer;
begin
  found := parley_store._p_queue_of(system) is not null;
  found := parley_store._p_require_range('items', items, 1, 10000);
  found := parley_store._p_require_range('lease', lease, '1 second', '1 day');
  for v_lane in
    select l.lane_id, array_agg(i.item_id) as ids
    from parley_store._p_lane as l
    join parley_store._p_lane_state as s using (lane_id)
    cross join lateral (
      select o.item_id, o.expires_at
      from parley_store._p_item as o
      where o.lane_id = l.lane_id
      order by o.priority, o.put_by, o.item_id
      limit items
    ) as i
    where l.system = claim_expired.system
      and (s.failures > 0 or s.suspended_at is not null or s.next_attempt_at > clock_timestamp())
      and i.expires_at < clock_timestamp()
    group by l.lane_id
    limit items
  loop
    exit when v_left <= 0;
    v_lease_id := parley_store._p_open_lease(v_lane.lane_id, lease, coalesce(holder, ''));
    insert into parley_store._p_in_flight (
      lease_id, item_id, lane_id, priority, put_by, subject, attempts, since, expires_at, data, last_error
    )
    select
      v_lease_id, w.item_id, w.lane_id, w.priority, '0', w.subject, w.attempts, w.since, w.expires_at, w.data,
      w.last_error
    from parley_store._p_delete_waiting(v_lane.ids[1:v_left]) as w;
    get diagnostics v_claimed = row_count;
    v_left := v_left - v_claimed;
    v_leases := v_leases || v_lease_id;
    if v_claimed = 0 then
      delete from parley_store._p_lease as e where e.lease_id = v_lease_id;
    end if;
  end loop;
  return query select c.* from parley_store._p_claimed(v_leases) as c;
end
$$;

comment on function parley_store.claim_expired(text, integer, interval, text) is
'Claims items whose time is over and whose lanes are in retry, put off or suspended, from which nothing else is claimed:
for the system to give them up. Items of other lanes come by claim_work, with their expires_at.
Arguments: as claim_work.
Errors: PS001, PS002.
Source: spec hub-transport 8.3.';
