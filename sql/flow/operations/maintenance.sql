-- Upkeep of the engine: hosts call it every few seconds.
--
-- Invariants, and what keeps each:
--   no task keeps those behind it   each is done in a block of its own, and what fails is reported by its row
--   everything that grows is cut   each table that is appended to has a task here, or goes with a message
-- Locks: those of the tasks, to the end of the transaction; none is waited for longer than a second.

create table parley_flow._p_maintenance_failure (
  task text primary key,
  failing_since timestamptz not null default clock_timestamp(),
  failed_at timestamptz not null default clock_timestamp(),
  error text not null
);

comment on table parley_flow._p_maintenance_failure is
'Tasks of maintenance that have failed when they were last tried.';

create function parley_flow._p_forget_published() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_forgotten integer;
begin
  -- A role that publishes may hold what concerns it, for as long as its transaction is open.
  delete from parley_flow._p_published as p
  where p.ctid = any (array(
    select o.ctid from parley_flow._p_published as o where o.at < clock_timestamp() - interval '2 minutes'
    for update skip locked
  ));
  delete from parley_flow._p_idempotency as i
  where i.ctid = any (array(
    select k.ctid
    from parley_flow._p_idempotency as k
    where k.at < clock_timestamp() - parley_flow._p_retention_of('idempotency keys')
    limit 10000
    for update skip locked
  ));
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end
$$;

comment on function parley_flow._p_forget_published() is
'Removes what is remembered no more of publications: rates, and idempotency keys after their retention; gives how many
keys.';

create function parley_flow._p_forget_failures() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_forgotten integer;
begin
  delete from parley_flow._p_routing_failure as f
  where f.last_at < clock_timestamp() - parley_flow._p_retention_of('routing failures')
    and not exists (select from parley_flow._p_routing_hit as h where h.cause_id = f.cause_id)
    and not exists (select from parley_flow._p_suspended as u where u.cause_id = f.cause_id);
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end
$$;

comment on function parley_flow._p_forget_failures() is
'Removes causes of failures of routing that were not met for their retention; gives how many.';

create function parley_flow._p_forget_audit() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_forgotten integer;
begin
  delete from parley_flow._p_audit as a
  where a.ctid = any (array(
    select p.ctid
    from parley_flow._p_audit as p
    where p.at < clock_timestamp() - parley_flow._p_retention_of('audit')
    order by p.at
    limit 10000
    for update skip locked
  ));
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end
$$;

comment on function parley_flow._p_forget_audit() is
'Removes what administrators and operators did before the retention, some of it; gives how many.';

create function parley_flow._p_forget_pipelines() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_forgotten integer;
begin
  delete from parley_flow._p_pipeline_version as v
  where v.made_at < clock_timestamp() - parley_flow._p_retention_of('pipelines') and v.version > 0
    and (
      exists (
        select from parley_flow._p_pipeline_version as o where o.name = v.name and o.version > v.version
      )
      or not exists (select from parley_flow._p_definition as d where d.kind = 'pipeline' and d.name = v.name)
    );
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end
$$;

comment on function parley_flow._p_forget_pipelines() is
'Removes versions of pipelines that are older than their retention and not the newest, or of a pipeline that was
dropped; gives how many.';

create function parley_flow._p_forget_programs() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_forgotten integer;
begin
  delete from parley_flow._p_orchestration_version as v
  where v.made_at < clock_timestamp() - parley_flow._p_retention_of('pipelines')
    and not exists (
      select from parley_flow._p_send_port as s where s.name = v.name and s.is_process and s.version = v.version
    ) and not exists (
      select
      from parley_flow._p_send_port as s
      join parley_flow._p_instance as i on i.send_port_id = s.send_port_id
      where s.name = v.name and i.version = v.version
    );
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end
$$;

comment on function parley_flow._p_forget_programs() is
'Removes versions of orchestrations that are older than the retention of pipelines, are not the newest, and have no
instances; gives how many.';

create function parley_flow._p_do_task(task text) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return case task
    when 'taken back' then parley_flow._p_take_back()
    when 'strays' then parley_flow._p_gather_strays()
    when 'ended instances' then parley_flow._p_end_marked()
    when 'counted messages' then parley_flow._p_count_messages()
    when 'held keys' then parley_flow._p_sweep_held_keys()
    when 'kept messages' then parley_flow._p_remove_kept()
    when 'originals' then parley_flow._p_forget_originals()
    when 'begun bodies' then parley_flow._p_drop_begun_bodies()
    when 'counters' then parley_flow._p_fold_counters()
    when 'routing failures' then parley_flow._p_fold_routing_failures() + parley_flow._p_forget_failures()
    when 'ledger' then parley_flow._p_forget_ledger()
    when 'idempotency keys' then parley_flow._p_forget_published()
    when 'suspects' then parley_flow._p_forget_suspects()
    when 'nodes' then parley_flow._p_forget_instances()
    when 'pipelines' then parley_flow._p_forget_pipelines() + parley_flow._p_forget_programs()
    when 'roles that are gone' then parley_flow._p_follow_roles()
    when 'requests' then parley_flow._p_sweep_requests()
    when 'audit' then parley_flow._p_forget_audit()
  end;
end
$$;

comment on function parley_flow._p_do_task(text) is 'Does one task of maintenance; gives how much there was to do.';

create function parley_flow._p_follow_roles() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_gone constant integer := parley._p_follow_roles();
begin
  delete from parley_flow._p_right as r
  using parley._p_role_number as k
  where k.number = r.grantee and k.role = 0;
  delete from parley_flow._p_quota as q
  using parley._p_role_number as k
  where k.number = q.role_number and k.role = 0;
  return v_gone;
end
$$;

comment on function parley_flow._p_follow_roles() is
'Follows roles that were renamed or dropped, as the broker does, and takes rights and quotas from those that are gone;
gives how many numbers have become nobody''s.';

create function parley_flow._p_record_failures(tasks text[], errors text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from parley_flow._p_maintenance_failure as f
  where f.task in (
    select o.task
    from parley_flow._p_maintenance_failure as o
    join unnest(tasks, errors) as u (task, error) using (task)
    where u.error is null
    for update of o skip locked
  );
  insert into parley_flow._p_maintenance_failure as f (task, error)
  select u.task, u.error
  from unnest(tasks, errors) as u (task, error)
  where u.error is not null
  order by u.task
  on conflict on constraint _p_maintenance_failure_pkey do update
  set failed_at = excluded.failed_at, error = excluded.error;
end
$$;

comment on function parley_flow._p_record_failures(text[], text[]) is
'Records which tasks of maintenance have failed, for parley diagnose.
Arguments: an element each for each task: its name; its error, null when it was done.';

create function parley_flow._p_maintain_store() returns table (task text, done integer, error text)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Another system on the store has retentions of its own, and its own maintenance.
  v_is_alone constant boolean := not exists (
    select from parley_store.systems as s where s.system !~ '^flow(_[0-9]+)?$'
  );
begin
  return query
  select m.task, m.done, m.error
  from parley_store.maintain(
    leases => false,
    tracking_retention => case when v_is_alone then parley_flow._p_retention_of('tracking') else '100 years' end,
    operation_retention => case when v_is_alone then parley_flow._p_retention_of('operations') else '100 years' end,
    pressure_retention => case when v_is_alone then parley_flow._p_retention_of('pressure') else '100 years' end
  ) as m;
end
$$;

comment on function parley_flow._p_maintain_store() is
'Does the maintenance of the store. Work that is common to all systems, tracking, operations and changes of pressure,
is left to another system where there is one.';

create function parley_flow.maintain(caller parley.caller default parley.current_caller())
returns table (task text, done integer, error text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '1s'
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_tasks text[] := array[]::text[];
  v_errors text[] := array[]::text[];
begin
  if not parley_flow._p_may_maintain(v_caller) then
    found := parley_flow._p_raise('host role', 'of any name', pg_get_userbyid(v_caller));
  end if;
  if not (select c.is_set_up from parley_flow._p_configuration as c) then
    return;
  end if;
  foreach task in array array[
    'taken back', 'strays', 'ended instances', 'counted messages', 'held keys', 'kept messages', 'originals',
    'begun bodies', 'counters', 'routing failures', 'ledger', 'idempotency keys', 'suspects', 'nodes', 'pipelines',
    'roles that are gone', 'audit', 'requests'
  ] loop
    error := null;
    done := 0;
    begin
      done := parley_flow._p_do_task(task);
    exception
      when others then
        error := format('%s (SQLSTATE %s)', sqlerrm, sqlstate);
    end;
    v_tasks := v_tasks || task;
    v_errors := v_errors || error;
    return next;
  end loop;
  -- At the end: generations and days that are truncated and dropped stay locked until the transaction is over.
  for task, done, error in
    select format('store: %s', m.task), m.done, m.error from parley_flow._p_maintain_store() as m
  loop
    v_tasks := v_tasks || task;
    v_errors := v_errors || error;
    return next;
  end loop;
  begin
    perform parley_flow._p_record_failures(v_tasks, v_errors);
  exception
    when lock_not_available then
      -- Another host is recording the same.
      null;
  end;
end
$$;

comment on function parley_flow.maintain(parley.caller) is
'Does what has to be done now and then, of the engine and of the store; hosts call it every few seconds, any number of
them. Gives what was done; a task that fails, or waits for a lock for more than a second, has its error, and the others
are done.
Errors: PF001 who may serve no host.';
