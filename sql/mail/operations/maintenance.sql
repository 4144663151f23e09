-- Upkeep of mail: daemons call it every few seconds.
--
-- Invariants, and what keeps each:
--   no task keeps those behind it   each is done in a block of its own, and what fails is reported by its row, by the
--     daemon in its log and by parley diagnose
--   nobody holds maintenance up   rows that ordinary roles can hold are passed by (for update skip locked); no other
--     lock is waited for longer than lock_timeout. So a task costs a second at most where somebody is in its way
-- Locks: those of the tasks, in the order in which they stand, to the end of the transaction; then rows of
-- _p_maintenance_failure.

create table parley_mail._p_maintenance_failure (
  task text primary key,
  failing_since timestamptz not null default clock_timestamp(),
  failed_at timestamptz not null default clock_timestamp(),
  error text not null
);

comment on table parley_mail._p_maintenance_failure is
'Tasks of maintenance that have failed when they were last tried.';

create function parley_mail._p_forget_submitted() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_forgotten integer;
begin
  -- A role that sends may hold what concerns it, for as long as its transaction is open.
  delete from parley_mail._p_submitted as s
  where s.ctid = any (array(
    select o.ctid from parley_mail._p_submitted as o where o.at < clock_timestamp() - interval '2 minutes'
    for update skip locked
  ));
  delete from parley_mail._p_report_rate as r
  where r.ctid = any (array(
    select o.ctid from parley_mail._p_report_rate as o where o.hour < clock_timestamp() - interval '2 hours'
    for update skip locked
  ));
  delete from parley_mail._p_rate_bucket as b
  where b.ctid = any (array(
    select o.ctid from parley_mail._p_rate_bucket as o where o.reserved_to < clock_timestamp() - interval '2 days'
    for update skip locked
  ));
  delete from parley_mail._p_idempotency as i
  where i.ctid = any (array(
    select k.ctid
    from parley_mail._p_organization as o
    join parley_mail._p_idempotency as k
      on k.at < clock_timestamp() - coalesce((o.settings ->> 'idempotency_retention')::integer, 604800) * interval '1 s'
    for update of k skip locked
  ));
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end
$$;

comment on function parley_mail._p_forget_submitted() is
'Removes what is remembered no more of submissions: rates, and idempotency keys; gives how many keys.';

create function parley_mail._p_take_dead() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_dead record;
  v_done integer := 0;
begin
  -- A batch that was rolled back again and again while it was categorized. A message may have been there by chance when
  -- servers were killed, and a large batch is one item: each message is tried by itself, and the one that is to blame
  -- set aside.
  for v_dead in
    select s.message_id, s.body
    from parley.set_aside_messages as s
    where s.queue_name = 'parley_mail_submission'
  loop
    perform parley.discard_message('parley_mail_submission', v_dead.message_id, caller => parley.current_caller());
    insert into parley_mail._p_categorizing (message_ids, deaths, begun_at)
    select array[i.id], 1, null
    from unnest(string_to_array(convert_from(v_dead.body, 'UTF8'), ' ')::bigint[]) as i (id);
    v_done := v_done + 1;
  end loop;
  return v_done;
end
$$;

comment on function parley_mail._p_take_dead() is
'Has messages categorized, each by itself, that the submission queue has set aside; gives how many of its items.';

create function parley_mail._p_do_task(task text) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return case task
    when 'taken back' then parley_mail._p_take_back_lost()
    when 'removals' then parley_mail._p_finish_removals()
    when 'orphaned work' then parley_mail._p_sweep_orphans()
    when 'held queues' then parley_mail._p_suspend_held()
    when 'configuration' then parley_mail._p_follow_configuration()
    when 'resubmitted' then parley_mail._p_resubmit_retrying()
    when 'delays' then parley_mail._p_report_delays()
    when 'expired' then parley_mail._p_expire_waiting()
    when 'kept bodies' then parley_mail._p_remove_kept()
    when 'timers' then parley_mail._p_fire_timers()
    when 'roles that are gone' then parley_mail._p_follow_roles()
    when 'stored attachments' then parley_mail._p_expire_attachments()
    when 'remembered deliveries' then parley_mail._p_forget_delivered()
    when 'idempotency keys' then parley_mail._p_forget_submitted()
    when 'audit' then parley_mail._p_forget_audit()
    when 'poison' then parley_mail._p_take_dead()
    when 'status queue' then parley_mail._p_receive_replies()
    when 'ended conversations' then parley_mail._p_end_conversations()
  end;
end
$$;

comment on function parley_mail._p_do_task(text) is 'Does one task of maintenance; gives how much there was to do.';

create function parley_mail._p_record_failures(tasks text[], errors text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from parley_mail._p_maintenance_failure as f
  where f.task in (
    select o.task
    from parley_mail._p_maintenance_failure as o
    join unnest(tasks, errors) as u (task, error) using (task)
    where u.error is null
    for update of o skip locked
  );
  insert into parley_mail._p_maintenance_failure as f (task, error)
  select u.task, u.error
  from unnest(tasks, errors) as u (task, error)
  where u.error is not null
  order by u.task
  on conflict on constraint _p_maintenance_failure_pkey do update
  set failed_at = excluded.failed_at, error = excluded.error;
end
$$;

comment on function parley_mail._p_record_failures(text[], text[]) is
'Records which tasks of maintenance have failed, for parley diagnose.
Arguments: an element each for each task: its name; its error, null when it was done.';

create function parley_mail._p_maintain(
  resubmits boolean default true, caller parley.caller default parley.current_caller()
)
returns table (task text, done integer, error text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '1s'
as $$
declare
  v_settings jsonb;
  v_tasks text[] := array[]::text[];
  v_errors text[] := array[]::text[];
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  -- Conversations with services end when their time is over, also where no daemon of the broker runs: timers. The part
  -- over which other roles wait most is last.
  foreach task in array array[
    'taken back', 'removals', 'held queues', 'configuration', 'resubmitted', 'delays', 'expired', 'kept bodies',
    'stored attachments', 'remembered deliveries', 'idempotency keys', 'audit', 'poison', 'orphaned work',
    'roles that are gone', 'timers', 'status queue', 'ended conversations'
  ] loop
    continue when task in ('configuration', 'resubmitted') and resubmits is false;
    done := null;
    error := null;
    begin
      done := parley_mail._p_do_task(task);
    exception
      when others then
        error := sqlerrm;
    end;
    v_tasks := v_tasks || task;
    v_errors := v_errors || error;
    return next;
  end loop;
  select o.settings into v_settings from parley_mail._p_organization as o;
  -- At the end: generations and days that are truncated and dropped stay locked until the transaction is over.
  for task, done, error in
    select m.task, m.done, m.error
    from parley_store.maintain(
      coalesce((v_settings ->> 'tracking_retention')::integer, 2592000) * interval '1 s',
      coalesce((v_settings ->> 'idle_queue')::integer, 180) * interval '1 s', leases => false,
      operation_retention => coalesce((v_settings ->> 'audit_retention')::integer, 31536000) * interval '1 s',
      pressure_retention => coalesce((v_settings ->> 'pressure_retention')::integer, 7776000) * interval '1 s'
    ) as m
  loop
    v_tasks := v_tasks || task;
    v_errors := v_errors || error;
    return next;
  end loop;
  begin
    perform parley_mail._p_record_failures(v_tasks, v_errors);
  exception
    when lock_not_available then
      -- Another daemon is recording the same.
      null;
  end;
end
$$;

comment on function parley_mail._p_maintain(boolean, parley.caller) is
'Does what time asks for: leases that ran out, notices of delay, expiry, old idempotency keys, poison. Call it every few
seconds. A task that fails, or waits for a lock for more than a second, gives its error, and the others are done.
Arguments: resubmits, whether messages may be categorized anew, which waits while resources are short.
Errors: PM001 the role does not hold SERVE, PS009 not READ COMMITTED.';
