-- Items of work whose subject is gone: taken out of their lanes without an operation, because no operator did it.

create function parley_store.drop_work(system text, items bigint[]) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_own bigint[];
  v_dropped bigint[];
begin
  found := parley_store._p_queue_of(system) is not null;
  v_own := array(
    select w.item_id
    from parley_store.work_items as w
    where w.system = drop_work.system and w.item_id = any (items) and w.state <> 'IN_FLIGHT'
  );
  with picked as materialized (
    select u.item_id from parley_store._p_suspended_item as u where u.item_id = any (v_own) for update skip locked
  ),

  suspended as (
    delete from parley_store._p_suspended_item as u
    using picked as p
    where u.item_id = p.item_id
    returning u.item_id, u.lane_id, u.priority, u.attempts
  ),

  dropped as (
    select s.item_id, s.lane_id, s.priority, s.attempts from suspended as s
    union all
    select w.item_id, w.lane_id, w.priority, w.attempts from parley_store._p_delete_waiting(v_own) as w
  ),

  counted as (
    insert into parley_store._p_lane_change (lane_id, priority, went, tried)
    select d.lane_id, d.priority, count(*), -count(*) filter (where d.attempts > 0)
    from dropped as d
    group by d.lane_id, d.priority
  )

  select coalesce(array_agg(d.item_id), '{}') into v_dropped from dropped as d;
  return v_dropped;
end
$$;

comment on function parley_store.drop_work(text, bigint[]) is
'Takes items out whose subject is gone, and gives those that it could take: what is in flight, or in the hands of
another session, is left. No operation is recorded.
Arguments: system; items.
Errors: PS001.';
