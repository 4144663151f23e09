-- The items of a lane, and of a lease, for a system that decides by them about the rest.

create function parley_store.leased_items(system text, lease_ids bigint[]) returns setof parley_store.claimed_item
language plpgsql stable
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select
    f.lease_id, l.lane, f.item_id, f.subject, ((f.priority - 1) % 10 + 1)::smallint, f.attempts, f.since, f.expires_at,
    f.data, f.last_error
  from parley_store._p_in_flight as f
  join parley_store._p_lane as l using (lane_id)
  where f.lease_id = any (lease_ids) and l.system = leased_items.system
  order by f.lease_id, (f.priority - 1) % 10 desc, f.priority desc, f.put_by, f.item_id;
end
$$;

comment on function parley_store.leased_items(text, bigint[]) is
'Gives the items of a system that are left under some leases, in the order in which they were claimed; none of a lease
that is over, or of another system.
Arguments: system; lease_ids.';

create function parley_store.has_work(system text, lane text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_lane_id bigint;
begin
  select l.lane_id into v_lane_id
  from parley_store._p_lane as l
  where l.system = has_work.system and l.lane = has_work.lane;
  return exists (select from parley_store._p_item as i where i.lane_id = v_lane_id)
    or exists (
      select
      from parley_store._p_lease as e
      join parley_store._p_in_flight as f on f.lease_id = e.lease_id
      where e.lane_id = v_lane_id
    )
    or exists (select from parley_store._p_delayed_item as d where d.lane_id = v_lane_id)
    or exists (select from parley_store._p_suspended_item as u where u.lane_id = v_lane_id);
end
$$;

comment on function parley_store.has_work(text, text) is
'Reports whether a lane has items: waiting, in somebody''s hands, delayed or suspended. False of one that there is not.
Arguments: system; lane.';

create function parley_store.complete_leased(system text, lease_ids bigint[], items bigint[])
returns setof parley_store.claimed_item
language plpgsql
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_held bigint[];
  v_lanes bigint[];
  v_done parley_store.claimed_item[];
begin
  select array_agg(h.lease_id) into v_held
  from (
    select e.lease_id
    from parley_store._p_lease as e
    join parley_store._p_lane as l on l.lane_id = e.lane_id
    where e.lease_id = any (lease_ids) and l.system = complete_leased.system
    order by e.lease_id
    for update of e
  ) as h;
  with done as (
    delete from parley_store._p_in_flight as f
    using unnest(lease_ids, items) as u (lease_id, item_id)
    where f.lease_id = any (v_held) and f.lease_id = u.lease_id and f.item_id = u.item_id
    returning
      f.lease_id, f.lane_id, f.item_id, f.subject, ((f.priority - 1) % 10 + 1)::smallint as priority, f.attempts,
      f.since, f.expires_at, f.data, f.last_error
  ),

  changed as (
    insert into parley_store._p_lane_change (lane_id, priority, went, tried)
    select d.lane_id, d.priority, count(*), -count(*) filter (where d.attempts > 0)
    from done as d
    group by d.lane_id, d.priority
  )

  select array_agg(
    row(
      d.lease_id, l.lane, d.item_id, d.subject, d.priority, d.attempts, d.since, d.expires_at, d.data, d.last_error
    )::parley_store.claimed_item
  )
  into v_done
  from done as d
  join parley_store._p_lane as l on l.lane_id = d.lane_id;
  with ended as (
    delete from parley_store._p_lease as e
    where e.lease_id = any (v_held)
      and not exists (select from parley_store._p_in_flight as f where f.lease_id = e.lease_id)
    returning e.lane_id
  )
  select array_agg(distinct e.lane_id) into v_lanes from ended as e;
  perform parley_store._p_wake_blocked(v_lanes);
  return query select d.* from unnest(v_done) as d;
end
$$;

comment on function parley_store.complete_leased(text, bigint[], bigint[]) is
'Removes items of leases of a system that are done, as complete_claimed does, and gives them: what is not given was not
in the caller''s hands, and what was to be recorded of it must not be.
Arguments: system; lease_ids and items, an element for each item.
Errors: PS001.';

create function parley_store.replace_subject(system text, lane text, subject bigint, new_subject bigint)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  update parley_store._p_item as i
  set subject = new_subject
  from parley_store._p_lane as l
  where l.system = replace_subject.system and l.lane = replace_subject.lane and i.lane_id = l.lane_id
    and i.subject = replace_subject.subject;
  return found;
end
$$;

comment on function parley_store.replace_subject(text, text, bigint, bigint) is
'Has an item that waits in a lane stand for another subject, in its place; false when none waits there.
Arguments: system; lane; subject; new_subject.';

create view parley_store.systems as
select s.system, s.queue_name, s.created_at from parley_store._p_system as s;

comment on view parley_store.systems is
'The systems that use the store, and the simple queue on which their lanes wait.';
