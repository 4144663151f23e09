-- Operations on instances: operators resume those that are suspended or wait for another attempt, and terminate any.
--
-- Locks: rows of _p_instance by number, those that a step has locked are passed by and left for the next call; then
-- their timers; then lanes.

create function parley_flow._p_instance_conditions() returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select array[
    'instances', 'orchestration', 'application', 'host', 'status', 'version', 'code', 'older', 'newer'
  ]
$$;

comment on function parley_flow._p_instance_conditions() is 'The conditions of a filter of instances.';

create function parley_flow._p_require_instance_filter(filter jsonb) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_condition text;
begin
  if jsonb_typeof(filter) is distinct from 'object' then
    found := parley_flow._p_raise('filter', coalesce(left(filter::text, 100), 'null'));
  end if;
  select k.key into v_condition
  from jsonb_each(filter) as k
  where k.key <> all (parley_flow._p_instance_conditions()) or k.value = 'null'
  limit 1;
  if found then
    found := parley_flow._p_raise(
      'condition', left(v_condition, 100), array_to_string(parley_flow._p_instance_conditions(), ', ')
    );
  elsif filter ? 'version' and filter ->> 'version' !~ '^[0-9]{1,9}$' then
    found := parley_flow._p_raise('filter value', 'version', left(filter ->> 'version', 100));
  end if;
  return true;
end
$$;

comment on function parley_flow._p_require_instance_filter(jsonb) is
'Refuses what is no filter of instances.
Errors: PF010.';

create function parley_flow._p_instances_matching(filter jsonb, applications text[], after bigint, top integer)
returns bigint[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_instances constant bigint[] := parley_flow._p_checked_numbers(filter, 'instances');
  v_older constant timestamptz := parley_flow._p_checked_interval(filter, 'older');
  v_newer constant timestamptz := parley_flow._p_checked_interval(filter, 'newer');
begin
  return array(
    select i.instance_id
    from parley_flow._p_instance as i
    join parley_flow._p_send_port as s on s.send_port_id = i.send_port_id
    join parley_flow._p_host as h on h.host_id = s.host_id
    where (applications = array['*'] or s.application = any (applications))
      and (after is null or i.instance_id > after)
      and (v_instances is null or i.instance_id = any (v_instances))
      and (not filter ? 'orchestration' or s.name = filter ->> 'orchestration')
      and (not filter ? 'application' or s.application = filter ->> 'application')
      and (not filter ? 'host' or h.name = filter ->> 'host')
      and (not filter ? 'status' or i.status = filter ->> 'status')
      and (not filter ? 'version' or i.version = (filter ->> 'version')::integer)
      and (not filter ? 'code' or i.fault ->> 'code' = filter ->> 'code')
      and (v_older is null or i.began_at < v_older)
      and (v_newer is null or i.began_at >= v_newer)
    order by i.instance_id
    limit top
  );
end
$$;

comment on function parley_flow._p_instances_matching(jsonb, text[], bigint, integer) is
'Gives the numbers of the next instances that a filter matches, of some applications.
Errors: PF010.';

create function parley_flow.resume_instances(
  filter jsonb, top integer default 1000, dry_run boolean default false,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_applications text[];
  v_instances bigint[];
begin
  found := parley_flow._p_require_operator(v_caller);
  found := parley_flow._p_require_instance_filter(filter);
  found := parley_flow._p_require_top(top);
  v_applications := parley_flow._p_applications_of(v_caller, 'OPERATE');
  v_instances := array(
    select m.instance_id
    from unnest(array['SUSPENDED', 'RETRYING']) as r (status)
    cross join lateral unnest(parley_flow._p_instances_matching(
      filter || jsonb_build_object('status', r.status), v_applications, null, top
    )) as m (instance_id)
    where not filter ? 'status' or filter ->> 'status' = r.status
    order by m.instance_id
    limit top
  );
  if dry_run is not false then
    return cardinality(v_instances);
  end if;
  v_instances := array(
    select i.instance_id
    from parley_flow._p_instance as i
    where i.instance_id = any (v_instances) and i.status in ('SUSPENDED', 'RETRYING')
    order by i.instance_id
    for update skip locked
  );
  if v_instances = '{}' then
    return 0;
  end if;
  update parley_flow._p_instance as i
  set status = case when i.state is null then 'NEW' else 'WAITING' end, attempts = 0, changed_at = clock_timestamp()
  where i.instance_id = any (v_instances);
  delete from parley_flow._p_instance_timer as t where t.instance_id = any (v_instances) and t.timer = '';
  insert into parley_flow._p_instance_event (instance_id, kind)
  select i.instance_id, 'RESUMED'
  from parley_flow._p_instance as i
  where i.instance_id = any (v_instances) and i.state is not null;
  perform parley_flow._p_wake_instances(v_instances);
  perform parley_flow._p_record_audit(
    v_caller, 'resume', 'instances', jsonb_build_object('filter', filter, 'instances', v_instances)
  );
  return cardinality(v_instances);
end
$$;

comment on function parley_flow.resume_instances(jsonb, integer, boolean, parley.caller) is
'Has instances that are suspended go on where they stand: a step that failed is tried again, and messages that came
meanwhile are taken. Those that wait for their next attempt have it at once, and count attempts from the first again.
Gives how many: call it until it gives 0.
Arguments: filter, conditions as docs/internals/orchestrations.md lists them; top, how many at most; dry_run, only
count.
Errors: PF001 without OPERATE, PF010 malformed.';

create function parley_flow.terminate_instances(
  filter jsonb, top integer default 1000, dry_run boolean default false,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_instances bigint[];
  v_terminated integer;
begin
  found := parley_flow._p_require_operator(v_caller);
  found := parley_flow._p_require_instance_filter(filter);
  found := parley_flow._p_require_top(top);
  v_instances := parley_flow._p_instances_matching(
    filter, parley_flow._p_applications_of(v_caller, 'OPERATE'), null, top
  );
  if dry_run is not false then
    return cardinality(v_instances);
  end if;
  v_terminated := parley_flow._p_terminate_instances(v_instances, pg_get_userbyid(v_caller));
  if v_terminated > 0 then
    perform parley_flow._p_record_audit(
      v_caller, 'terminate', 'instances', jsonb_build_object('filter', filter, 'instances', v_instances)
    );
  end if;
  return v_terminated;
end
$$;

comment on function parley_flow.terminate_instances(jsonb, integer, boolean, parley.caller) is
'Ends instances where they stand: nothing is compensated, they wait for nothing any more, and what they have not read is
decided about as their orchestration says. Gives how many: call it until it gives 0; one of which a step is running is
left for the next call.
Arguments: filter, conditions as docs/internals/orchestrations.md lists them; top, how many at most; dry_run, only
count.
Errors: PF001 without OPERATE, PF010 malformed.';

create function parley_flow._p_terminate_instances(instances bigint[], by_whom text) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group record;
  v_terminated integer := 0;
begin
  for v_group in
    select (i.port).name as name, array_agg(i.instance_id order by i.instance_id) as instances,
      array_agg(jsonb_strip_nulls(jsonb_build_object(
        'status', 'TERMINATED', 'by', by_whom, 'version', i.version, 'passed', i.passed, 'began_at', i.began_at,
        'steps', i.steps, 'fault', i.fault, 'parent', i.parent_id
      )) order by i.instance_id) as fields, min(i.send_port_id) as send_port_id
    from (
      select o.instance_id, o.version, o.passed, o.began_at, o.steps, o.fault, o.parent_id, o.send_port_id, s as port
      from parley_flow._p_instance as o
      join parley_flow._p_send_port as s on s.send_port_id = o.send_port_id
      where o.instance_id = any (instances)
      order by o.instance_id
      for update of o skip locked
    ) as i
    group by (i.port).name
    order by 1
  loop
    perform parley_flow._p_end_instances(s, v_group.instances)
    from parley_flow._p_send_port as s
    where s.send_port_id = v_group.send_port_id;
    perform parley_flow._p_track_instances('END', '', v_group.name, v_group.instances, v_group.fields);
    v_terminated := v_terminated + cardinality(v_group.instances);
  end loop;
  return v_terminated;
end
$$;

comment on function parley_flow._p_terminate_instances(bigint[], text) is
'Ends instances where they stand, but those that a step has locked; gives how many.';

create function parley_flow._p_end_marked() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_marked bigint[] := array(
    select m.instance_id from parley_flow._p_instance_to_end as m order by m.instance_id limit 1000
  );
  v_ended integer;
begin
  if v_marked = '{}' then
    return 0;
  end if;
  v_ended := parley_flow._p_terminate_instances(v_marked, null);
  delete from parley_flow._p_instance_to_end as m
  where m.instance_id = any (v_marked)
    and not exists (select from parley_flow._p_instance as i where i.instance_id = m.instance_id);
  return v_ended;
end
$$;

comment on function parley_flow._p_end_marked() is
'Ends instances that are to end because of a change of their orchestration, some of them; gives how many.';
