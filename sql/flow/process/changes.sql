-- The changes that steps make: rows of instances, waits, timers, activities, holds, events, of all instances of a call
-- at once.

create type parley_flow._p_step as (
  n integer,
  instance bigint,
  version integer,
  convoy_key text,
  parent bigint,
  status text,
  waits jsonb,
  timers jsonb,
  activities jsonb,
  cancelled text[],
  holds bigint[],
  taken bigint[],
  done_activities text[],
  parked jsonb,
  unread jsonb,
  passed jsonb,
  stands_at text[],
  fault jsonb,
  is_woken boolean
);

comment on type parley_flow._p_step is
'The changes that a step makes of an instance. instance: null of a new one; status: WAITING, FINISHED, SUSPENDED,
TERMINATED; FAILED, which is tried again; or PARKED, of one that has not run; waits and timers: all that there are then;
taken: events; done_activities: those whose outcome was taken; parked: messages that it cannot take yet, [{"kind",
"message", "receive", "came_by"}]; unread: those that it will never take; passed: {path: times}; is_woken: it is to go
on at once. Of one that FAILED only parked, fault and what was there before count.';

create function parley_flow._p_added(passed jsonb, more jsonb) returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(p.path, p.times), '{}')
  from (
    select e.key as path, sum(e.value::bigint) as times
    from (
      select o.key, o.value from jsonb_each_text(passed) as o
      union all
      select o.key, o.value from jsonb_each_text(more) as o
    ) as e
    group by e.key
  ) as p
$$;

comment on function parley_flow._p_added(jsonb, jsonb) is
'Adds up how often shapes were gone through, {path: times}.';

create function parley_flow._p_save_instances(
  host parley_flow._p_host, port parley_flow._p_send_port, steps parley_flow._p_step[], states text[]
) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[] := array_fill(null::bigint, array[cardinality(steps)]);
  v_next timestamptz;
  v_attempts integer;
begin
  for i in 1..cardinality(steps) loop
    v_ids[i] := coalesce(steps[i].instance, nextval('parley_flow._p_instance_id'));
    continue when steps[i].status <> 'FAILED';
    v_attempts := coalesce((select o.attempts from parley_flow._p_instance as o where o.instance_id = v_ids[i]), 0) + 1;
    v_next := case
      -- The same step would grow as large again, and kill its host again.
      when coalesce(steps[i].fault ->> 'code' not in ('process.killed', 'size'), true)
        then parley_flow._p_next_try(port.retry_policy, v_attempts)
    end;
    steps[i].status := case when v_next is null then 'SUSPENDED' else 'RETRYING' end;
    insert into parley_flow._p_instance as o (
      instance_id, send_port_id, version, status, convoy_key, parent_id, attempts, fault
    )
    values (
      v_ids[i], port.send_port_id, steps[i].version, steps[i].status, steps[i].convoy_key, steps[i].parent, v_attempts,
      steps[i].fault
    )
    on conflict on constraint _p_instance_pkey do update
    set status = excluded.status, attempts = excluded.attempts, fault = excluded.fault, changed_at = clock_timestamp();
    delete from parley_flow._p_instance_timer as t where t.instance_id = v_ids[i] and t.timer = '';
    if v_next is not null then
      insert into parley_flow._p_instance_timer (instance_id, timer, host_id, at)
      values (v_ids[i], '', host.host_id, v_next);
    end if;
  end loop;
  insert into parley_flow._p_instance (
    instance_id, send_port_id, version, status, convoy_key, parent_id, steps, passed, stands_at, fault, state
  )
  select v_ids[s.n], port.send_port_id, s.version, s.status, s.convoy_key, s.parent, 1, coalesce(s.passed, '{}'),
    s.stands_at, s.fault, states[s.n]
  from unnest(steps) as s
  where s.instance is null and s.status in ('WAITING', 'SUSPENDED')
    and not exists (select from parley_flow._p_instance as o where o.instance_id = v_ids[s.n]);
  update parley_flow._p_instance as o
  set status = s.status, state = states[s.n], steps = o.steps + 1, attempts = 0, changed_at = clock_timestamp(),
    fault = s.fault, passed = parley_flow._p_added(o.passed, s.passed), stands_at = s.stands_at
  from unnest(_p_save_instances.steps) as s
  where o.instance_id = s.instance and s.status in ('WAITING', 'SUSPENDED') and states[s.n] is not null;
  return v_ids;
end
$$;

comment on function parley_flow._p_save_instances(
  parley_flow._p_host, parley_flow._p_send_port, parley_flow._p_step[], text[]
) is
'Writes the rows of instances that go on, and gives the numbers of all. One whose step failed is tried again by the
policy of its orchestration, and suspended when that is over; at once where another try cannot help.';

create function parley_flow._p_change_waits(instances bigint[], steps parley_flow._p_step[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from parley_flow._p_instance_wait as w
  using unnest(steps) as s
  where w.instance_id = instances[s.n] and s.status in ('WAITING', 'SUSPENDED')
    and not exists (
      select from jsonb_array_elements(s.waits) as o (wait) where o.wait ->> 'id' = w.wait
    );
  with asked as (
    select instances[s.n] as instance_id, o.wait ->> 'id' as wait, o.wait ->> 'receive' as receive,
      coalesce((o.wait -> 'is_open')::boolean, false) as is_open,
      case when jsonb_array_length(coalesce(nullif(o.wait -> 'filter', 'null'), '[]')) > 0 then o.wait -> 'filter' end
        as filter,
      e.property, parley_flow._p_canonical(e.value, coalesce(y.type, 'text')) as value,
      coalesce(y.type, 'text') as type,
      case when e.others <> '{}' then e.others end as others
    from unnest(steps) as s
    cross join lateral jsonb_array_elements(s.waits) as o (wait)
    cross join lateral (
      select p.key as property, p.value, (o.wait -> 'equal') - p.key as others
      from jsonb_each_text(o.wait -> 'equal') as p
      order by p.key
      limit 1
    ) as e
    left join parley_flow._p_property as y on y.name = e.property
    where s.status in ('WAITING', 'SUSPENDED')
  ),

  named as (
    insert into parley_flow._p_awaited_property (property, type)
    select distinct a.property, a.type
    from asked as a
    where not exists (select from parley_flow._p_awaited_property as p where p.property = a.property)
    on conflict on constraint _p_awaited_property_pkey do nothing
  )

  insert into parley_flow._p_instance_wait as w (
    instance_id, wait, receive, hash, property, value, others, filter, is_open
  )
  select a.instance_id, a.wait, a.receive, parley_flow._p_hash(a.property, a.value), a.property, a.value, a.others,
    a.filter, a.is_open
  from asked as a
  on conflict on constraint _p_instance_wait_pkey do update
  set receive = excluded.receive, hash = excluded.hash, property = excluded.property, value = excluded.value,
    others = excluded.others, filter = excluded.filter, is_open = excluded.is_open
  where (w.hash, w.property, w.value, w.is_open, w.receive)
    is distinct from (excluded.hash, excluded.property, excluded.value, excluded.is_open, excluded.receive)
    or w.others is distinct from excluded.others or w.filter is distinct from excluded.filter;
end
$$;

comment on function parley_flow._p_change_waits(bigint[], parley_flow._p_step[]) is
'Makes the waits of instances those of their steps.';

create function parley_flow._p_change_timers(
  host parley_flow._p_host, instances bigint[], steps parley_flow._p_step[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from parley_flow._p_instance_timer as t
  using unnest(steps) as s
  where t.instance_id = instances[s.n] and s.status in ('WAITING', 'SUSPENDED')
    and not exists (
      select from jsonb_array_elements(s.timers) as o (timer) where o.timer ->> 'id' = t.timer
    );
  insert into parley_flow._p_instance_timer as t (instance_id, timer, host_id, at)
  select instances[s.n], o.timer ->> 'id', host.host_id, (o.timer ->> 'at')::timestamptz
  from unnest(steps) as s
  cross join lateral jsonb_array_elements(s.timers) as o (timer)
  where s.status in ('WAITING', 'SUSPENDED') and o.timer ->> 'id' <> ''
  on conflict on constraint _p_instance_timer_pkey do update
  set at = excluded.at, is_woken = false
  where t.at <> excluded.at;
end
$$;

comment on function parley_flow._p_change_timers(parley_flow._p_host, bigint[], parley_flow._p_step[]) is
'Makes the timers of instances those of their steps.';

create function parley_flow._p_change_activities(
  host parley_flow._p_host, instances bigint[], steps parley_flow._p_step[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from parley_flow._p_instance_activity as a
  using unnest(steps) as s
  where a.instance_id = instances[s.n] and (a.activity = any (s.cancelled) or a.activity = any (s.done_activities));
  insert into parley_flow._p_instance_activity as a (
    activity, instance_id, host_id, name, queue, input, time_out, attempt, attempts, due_at, error
  )
  select o.activity ->> 'id', instances[s.n], host.host_id, o.activity ->> 'name', o.activity ->> 'queue',
    (o.activity -> 'input')::text, t.time_out, coalesce((o.activity -> 'attempt')::integer, 1),
    greatest((o.activity -> 'attempts')::integer, 1),
    clock_timestamp() + t.time_out + coalesce((o.activity -> 'pause_ms')::bigint, 0) * interval '1 millisecond',
    o.activity ->> 'error'
  from unnest(steps) as s
  cross join lateral jsonb_array_elements(s.activities) as o (activity)
  cross join lateral (
    select nullif((o.activity -> 'time_out_ms')::bigint, 0) * interval '1 millisecond' as time_out
  ) as t
  where s.status in ('WAITING', 'SUSPENDED', 'PARKED')
  on conflict on constraint _p_instance_activity_pkey do update
  set attempt = excluded.attempt, due_at = excluded.due_at, done_at = null, error = excluded.error
  where a.instance_id = excluded.instance_id;
end
$$;

comment on function parley_flow._p_change_activities(parley_flow._p_host, bigint[], parley_flow._p_step[]) is
'Records which work instances have asked for, again or for the first time, and forgets work whose outcome they have
taken or want no more. The host puts the messages into the queues, with the rights of its role.';

create function parley_flow._p_change_events(
  port parley_flow._p_send_port, instances bigint[], steps parley_flow._p_step[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_unread record;
begin
  delete from parley_flow._p_instance_event as e
  using unnest(steps) as s
  where e.instance_id = instances[s.n] and e.event_id = any (s.taken);
  insert into parley_flow._p_instance_event (instance_id, kind, message_id, receive, came_by)
  select instances[s.n], o.event ->> 'kind', (o.event -> 'message')::bigint, o.event ->> 'receive',
    o.event ->> 'came_by'
  from unnest(steps) as s
  cross join lateral jsonb_array_elements(s.parked) with ordinality as o (event, n)
  order by s.n, o.n;
  insert into parley_flow._p_instance_hold (instance_id, message_id)
  select instances[s.n], h.message_id
  from unnest(steps) as s
  cross join lateral unnest(s.holds) as h (message_id)
  where s.status in ('WAITING', 'SUSPENDED')
  on conflict on constraint _p_instance_hold_pkey do nothing;
  for v_unread in
    select instances[s.n] as instance_id, (o.event -> 'message')::bigint as message_id,
      o.event ->> 'came_by' as came_by
    from unnest(steps) as s
    cross join lateral jsonb_array_elements(s.unread) with ordinality as o (event, n)
    order by s.n, o.n
  loop
    perform parley_flow._p_give_unread(port, v_unread.message_id, v_unread.came_by, v_unread.instance_id);
  end loop;
end
$$;

comment on function parley_flow._p_change_events(parley_flow._p_send_port, bigint[], parley_flow._p_step[]) is
'Removes events that instances have taken, keeps those that they cannot take yet, and decides about messages that they
will never take.';
