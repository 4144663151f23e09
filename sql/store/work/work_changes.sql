-- Changes of items that are not in flight: another priority, another end, another time.
--
-- An item that waits is never changed where it is, because a mark says that nothing waits before it, and an old token
-- still names a delayed one. It is taken out, and put back under a new number by way of the delayed ones.

create function parley_store._p_take_out(items bigint[]) returns setof parley_store._p_delayed_item
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
  returning i.item_id, i.lane_id, clock_timestamp(), ((i.priority - 1) % 10 + 1)::smallint, i.subject, i.attempts,
    i.since, i.expires_at, i.data, i.last_error;
  return query
  with picked as materialized (
    select d.item_id from parley_store._p_delayed_item as d where d.item_id = any (items) for update skip locked
  )
  delete from parley_store._p_delayed_item as d
  using picked as p
  where d.item_id = p.item_id
  returning d.item_id, d.lane_id, d.due_at, d.priority, d.subject, d.attempts, d.since, d.expires_at, d.data,
    d.last_error;
end
$$;

comment on function parley_store._p_take_out(bigint[]) is
'Takes items that wait or are delayed out of their lanes, but what others have in their hands; those that wait are due
now.';

create function parley_store._p_count_priorities(
  lanes bigint[], priorities smallint[], attempts integer[], sign integer
) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  insert into parley_store._p_lane_change (lane_id, priority, came, tried)
  select u.lane_id, u.priority, count(*) * sign, count(*) filter (where u.attempts > 0) * sign
  from unnest(lanes, priorities, attempts) as u (lane_id, priority, attempts)
  group by u.lane_id, u.priority
$$;

comment on function parley_store._p_count_priorities(bigint[], smallint[], integer[], integer) is
'Counts items under their priorities in their lanes, or with the sign -1 takes them from there; neither is traffic.';

create function parley_store.change_work(
  system text, items bigint[], priority integer default null, expires_at timestamptz default null,
  due_at timestamptz default null, done_by text default null
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_own bigint[];
  v_before record;
  v_taken parley_store._p_delayed_item[];
  v_due record;
  v_changed integer := 0;
begin
  found := parley_store._p_queue_of(system) is not null;
  if priority is not null then
    found := parley_store._p_require_range('priority', priority, 1, 10);
  end if;
  v_own := array(
    select w.item_id
    from parley_store.work_items as w
    where w.system = change_work.system and w.item_id = any (items) and w.state <> 'IN_FLIGHT'
  );
  select array_agg(o.lane_id) as lanes, array_agg(o.priority) as priorities, array_agg(o.attempts) as attempts
  into v_before
  from (
    select u.lane_id, u.priority, u.attempts
    from parley_store._p_suspended_item as u
    where u.item_id = any (v_own)
    for update
  ) as o;
  update parley_store._p_suspended_item as u
  set priority = coalesce(change_work.priority, u.priority), expires_at = coalesce(change_work.expires_at, u.expires_at)
  where u.item_id = any (v_own);
  get diagnostics v_changed = row_count;
  v_taken := array(select t from parley_store._p_take_out(v_own) as t);
  if priority is not null then
    v_before.lanes := v_before.lanes || array(select t.lane_id from unnest(v_taken) as t);
    v_before.priorities := v_before.priorities || array(select t.priority from unnest(v_taken) as t);
    v_before.attempts := v_before.attempts || array(select t.attempts from unnest(v_taken) as t);
    perform parley_store._p_count_priorities(v_before.lanes, v_before.priorities, v_before.attempts, -1);
    perform parley_store._p_count_priorities(
      v_before.lanes, array_fill(priority::smallint, array[cardinality(v_before.lanes)]), v_before.attempts, 1
    );
  end if;
  for v_due in
    with changed as (
      insert into parley_store._p_delayed_item (
        item_id, lane_id, due_at, priority, subject, attempts, since, expires_at, data, last_error
      )
      select
        nextval('parley_store._p_item_id'), t.lane_id, coalesce(change_work.due_at, t.due_at),
        coalesce(change_work.priority, t.priority), t.subject, t.attempts, t.since,
        coalesce(change_work.expires_at, t.expires_at), t.data, t.last_error
      from unnest(v_taken) as t
      returning item_id, lane_id, _p_delayed_item.due_at as at, _p_delayed_item.priority as urgency
    )

    select c.lane_id, c.urgency as priority, c.at as due_at, c.at <= clock_timestamp() as is_due,
      array_agg(c.item_id order by c.item_id) as ids
    from changed as c
    group by c.lane_id, c.urgency, c.at
    order by c.lane_id
  loop
    v_changed := v_changed + cardinality(v_due.ids);
    insert into parley_store._p_lane_priority (lane_id, priority)
    select v_due.lane_id, v_due.priority
    where not exists (
      select from parley_store._p_lane_priority as p where p.lane_id = v_due.lane_id and p.priority = v_due.priority
    );
    if v_due.is_due then
      perform parley_store._p_make_ready(v_due.ids);
    else
      perform parley_store._p_put_due_token(system, v_due.lane_id, v_due.ids, v_due.due_at);
    end if;
  end loop;
  perform parley_store._p_audit(system, 'change', jsonb_build_object('items', items), null, v_changed, done_by);
  return v_changed;
end
$$;

comment on function parley_store.change_work(text, bigint[], integer, timestamptz, timestamptz, text) is
'Changes items that wait, are delayed or suspended; those in flight, and those that somebody claims just now, stay as
they are. An item that waits or was delayed gets a new number. Gives how many.
Arguments: system; items; priority, 1 to 10; expires_at; due_at, when it may be claimed; null: as before; done_by, on
whose behalf.
Errors: PS001, PS002.
Source: spec hub-transport 17.';
