-- Check of schedules: does the daemon put what is due?

create function parley._p_find_failing_schedules(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'schedule-failing', 'schedule', s.name,
    format('The schedule puts no message: %s', s.fault),
    (
      select r.sent_at
      from parley._p_schedule_run as r
      where r.schedule_id = s.schedule_id and r.error is not null
      order by r.run_id desc
      limit 1
    ),
    format(
      '-- mend it, or set the schedule again with parley.schedule; it is tried again every minute, or at once by: '
        'select parley.run_schedule(%L);',
      s.name
    )
  from parley._p_schedule as s
  where s.fault is not null
    and s.wake_at is not null
    and scope.endpoint_ids is null
    and (scope.queue_ids is null or s.queue_id = any (scope.queue_ids))
$$;

comment on function parley._p_find_failing_schedules(parley._p_scope) is
'Finds schedules whose last due time failed, or that are never due. Those that are paused are left out.';
