-- Time: instances whose timers are due are woken, and so are those whose activities are.
--
-- A timer is a row with its time in an index. A host asks every second, and learns when to ask before that. Two hosts
-- may ask at once: each takes rows that the other has not locked.
-- Locks: rows of _p_instance_timer and _p_instance_activity, skip locked; then lanes.

create function parley_flow._p_fire_timers(
  host text, top integer default 1000, caller parley.caller default parley.current_caller(), out woken integer,
  out next_at timestamptz
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(parley.caller_role(caller), host);
  v_instances bigint[];
  v_overdue bigint[];
begin
  found := parley_flow._p_require_read_committed();
  with due as (
    update parley_flow._p_instance_timer as t
    set is_woken = true
    where t.ctid = any (array(
      select o.ctid
      from parley_flow._p_instance_timer as o
      where o.host_id = v_host.host_id and not o.is_woken and o.at <= clock_timestamp()
      order by o.at
      limit top
      for update skip locked
    ))
    returning t.instance_id
  )
  select array_agg(distinct d.instance_id) into v_instances from due as d;
  with due as (
    -- So that it is asked about again in a minute, should nobody have seen to it.
    update parley_flow._p_instance_activity as a
    set due_at = clock_timestamp(), asked_at = clock_timestamp()
    where a.ctid = any (array(
      select o.ctid
      from parley_flow._p_instance_activity as o
      where o.host_id = v_host.host_id and o.done_at is null and o.due_at <= clock_timestamp()
        and (o.due_at > o.asked_at or o.asked_at < clock_timestamp() - interval '1 minute')
      order by o.due_at
      limit top
      for update skip locked
    ))
    returning a.instance_id
  )
  select array_agg(distinct d.instance_id) into v_overdue from due as d;
  perform parley_flow._p_wake_instances(coalesce(v_instances, '{}') || coalesce(v_overdue, '{}'));
  woken := coalesce(cardinality(v_instances), 0) + coalesce(cardinality(v_overdue), 0);
  next_at := least(
    (
      select min(t.at) from parley_flow._p_instance_timer as t where t.host_id = v_host.host_id and not t.is_woken
    ),
    (
      select min(a.due_at)
      from parley_flow._p_instance_activity as a
      where a.host_id = v_host.host_id and a.done_at is null and a.due_at > clock_timestamp()
    )
  );
end
$$;

comment on function parley_flow._p_fire_timers(text, integer, parley.caller) is
'Wakes instances of a host whose timers are due, or whose activities are overdue; gives how many, and when the next is
due. Call it every second.
Arguments: host; top, how many of each at most.
Errors: PF001, PF016.';
