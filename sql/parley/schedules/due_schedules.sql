-- Schedules that are due: the daemon reads them with their locks, finds out their next times, and runs them, all in one
-- transaction (schedules/schedules.sql).

create function parley._p_begin_scheduled(schedule parley._p_schedule) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_from_service text := (select s.name from parley._p_service as s where s.service_id = schedule.service_id);
  v_endpoint parley._p_endpoint;
begin
  v_endpoint := parley._p_begin_dialog(
    schedule.owner, v_from_service, schedule.to_service, schedule.contract, null, 2147483647, true, null, null, null
  );
  found := parley._p_send(
    schedule.owner, v_endpoint.conversation_handle, schedule.message_type, array[schedule.body]
  );
  return v_endpoint.conversation_handle;
end
$$;

comment on function parley._p_begin_scheduled(parley._p_schedule) is
'Begins the conversation of a schedule and sends its message, in the name of its owner. Gives the handle.
Errors: those of begin_dialog and send.';

create function parley._p_run_schedule(schedule parley._p_schedule, due_at timestamptz, missed integer) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
  v_message_id bigint;
  v_handle uuid;
begin
  if schedule.service_id is not null then
    v_handle := parley._p_begin_scheduled(schedule);
  else
    select * into v_queue from parley._p_queue as q where q.queue_id = schedule.queue_id;
    perform parley._p_put(
      schedule.owner, v_queue.lookup_name, array[schedule.body], schedule.message_key, schedule.priority, null, null
    );
    v_message_id := currval(v_queue.position_sequence) * 1024;
  end if;
  insert into parley._p_schedule_run (schedule_id, due_at, message_id, conversation_handle, missed)
  values (schedule.schedule_id, _p_run_schedule.due_at, v_message_id, v_handle, _p_run_schedule.missed);
  perform parley._p_forget_runs(schedule.schedule_id);
  return v_message_id;
end
$$;

comment on function parley._p_run_schedule(parley._p_schedule, timestamptz, integer) is
'Puts the message of a schedule, or begins its conversation, in the name of its owner, and records that. Gives the
message_id, null for a conversation.
Arguments: schedule; due_at, the time for which it is, null where somebody asked; missed, how many times are left out.
Errors: those of put, or of begin_dialog and send.';

create function parley._p_forget_runs(schedule_id integer) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  delete from parley._p_schedule_run as r
  where r.schedule_id = $1
    and r.run_id <= (
      select o.run_id
      from parley._p_schedule_run as o
      where o.schedule_id = $1
      order by o.run_id desc
      offset 100
      limit 1
    )
$$;

comment on function parley._p_forget_runs(integer) is 'Keeps the last hundred runs of a schedule.';

create function parley._p_due_schedules(term bigint, top integer)
returns table (
  schedule_id integer,
  cron text,
  every_seconds float8,
  time_zone text,
  missed text,
  started_at timestamptz,
  next_at timestamptz,
  now timestamptz
)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  if not parley._p_holds_term(term) then
    return;
  end if;
  return query
  select s.schedule_id, s.cron, extract(epoch from s.every)::float8, s.time_zone, s.missed, s.started_at, s.next_at,
    v_now
  from parley._p_schedule as s
  where s.wake_at <= v_now
  order by s.wake_at, s.schedule_id
  limit top
  for no key update skip locked;
end
$$;

comment on function parley._p_due_schedules(bigint, integer) is
'Locks schedules that are due, or have no time yet, for the leading daemon, and gives when they are due. Nothing when
the term is over.
Arguments: term; top, how many at most.';

create function parley._p_run_due(
  schedule_id integer, due_at timestamptz[], missed integer, next_at timestamptz, fault text
) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schedule parley._p_schedule;
  v_due timestamptz;
  v_error text := fault;
begin
  select * into v_schedule from parley._p_schedule as s where s.schedule_id = _p_run_due.schedule_id;
  if v_error is null then
    begin
      foreach v_due in array due_at loop
        perform parley._p_run_schedule(v_schedule, v_due, case when v_due = due_at[1] then missed else 0 end);
      end loop;
    exception
      when others then
        v_error := sqlerrm;
    end;
  end if;
  if v_error is not null and v_error is distinct from v_schedule.fault then
    insert into parley._p_schedule_run (schedule_id, due_at, missed, error)
    values (v_schedule.schedule_id, coalesce(due_at[1], v_schedule.next_at), 0, left(v_error, 2000));
    perform parley._p_forget_runs(v_schedule.schedule_id);
  end if;
  update parley._p_schedule as s
  set fault = left(v_error, 2000),
    next_at = case when v_error is null then _p_run_due.next_at else s.next_at end,
    wake_at = case when v_error is null then _p_run_due.next_at else clock_timestamp() + interval '1 minute' end
  where s.schedule_id = v_schedule.schedule_id;
  return v_error;
end
$$;

comment on function parley._p_run_due(integer, timestamptz[], integer, timestamptz, text) is
'Puts the messages of a schedule that the caller has locked, and sets its next time. When that fails nothing is put, and
it is tried again after a minute. Gives the error, null when it worked.
Arguments: schedule_id; due_at, the times to put a message for; missed, how many times before them are left out;
next_at, null for never; fault, why its times cannot be found out, null when they can.';

create function parley._p_next_schedule_ms() returns float8
language sql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  select extract(epoch from s.wake_at - clock_timestamp())::float8 * 1000
  from parley._p_schedule as s
  where s.wake_at is not null
  order by s.wake_at
  limit 1
$$;

comment on function parley._p_next_schedule_ms() is
'Gives in how many milliseconds a schedule is due next; null when none is.';

create function parley._p_schedules(caller parley.caller default parley.current_caller())
returns table (
  name text,
  queue_name text,
  cron text,
  every interval,
  time_zone text,
  missed text,
  body bytea,
  key text,
  priority integer,
  owner text,
  is_paused boolean,
  next_at timestamptz,
  last_at timestamptz,
  last_message_id bigint,
  fault text,
  from_service text,
  to_service text,
  contract text,
  message_type text,
  last_conversation_handle uuid
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select s.name, q.lookup_name, s.cron, s.every, s.time_zone, s.missed, s.body, s.message_key, s.priority,
    pg_get_userbyid(s.owner), s.wake_at is null and s.next_at is null, s.next_at, r.sent_at, r.message_id, s.fault,
    f.name, s.to_service, s.contract, s.message_type, r.conversation_handle
  from parley._p_schedule as s
  left join parley._p_service as f using (service_id)
  left join parley._p_queue as q on q.queue_id = s.queue_id
  join parley._p_queue as a on a.queue_id = coalesce(s.queue_id, f.queue_id)
  left join lateral (
    select o.sent_at, o.message_id, o.conversation_handle
    from parley._p_schedule_run as o
    where o.schedule_id = s.schedule_id and o.error is null
    order by o.run_id desc
    limit 1
  ) as r on true
  where pg_has_role(parley._p_caller(caller), s.owner, 'usage')
    or parley._p_has_permission(parley._p_caller(caller), 'RECEIVE', 'queue', a.queue_id, a.owner)
$$;

comment on function parley._p_schedules(parley.caller) is 'Gives what parley.schedules shows.';

create view parley.schedules as
select s.name, s.queue_name, s.cron, s.every, s.time_zone, s.missed, s.body, s.key, s.priority, s.owner, s.is_paused,
  s.next_at, s.last_at, s.last_message_id, s.fault, s.from_service, s.to_service, s.contract, s.message_type,
  s.last_conversation_handle
from parley._p_schedules() as s;

comment on view parley.schedules is
'Schedules of the role, and of queues that it may take from: when each is due next, when it was last, and fault, why it
could not put its message or its times cannot be found out. A new one has no next_at until the daemon has seen it. One
that begins conversations has no queue_name, but from_service and to_service.';

create function parley._p_schedule_runs(caller parley.caller default parley.current_caller())
returns table (
  name text, due_at timestamptz, sent_at timestamptz, message_id bigint, missed integer, error text,
  conversation_handle uuid
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select s.name, r.due_at, r.sent_at, r.message_id, r.missed, r.error, r.conversation_handle
  from parley._p_schedule_run as r
  join parley._p_schedule as s using (schedule_id)
  left join parley._p_service as f using (service_id)
  join parley._p_queue as q on q.queue_id = coalesce(s.queue_id, f.queue_id)
  where pg_has_role(parley._p_caller(caller), s.owner, 'usage')
    or parley._p_has_permission(parley._p_caller(caller), 'RECEIVE', 'queue', q.queue_id, q.owner)
  order by r.run_id
$$;

comment on function parley._p_schedule_runs(parley.caller) is 'Gives what parley.schedule_runs shows.';

create view parley.schedule_runs as
select r.name, r.due_at, r.sent_at, r.message_id, r.missed, r.error, r.conversation_handle
from parley._p_schedule_runs() as r;

comment on view parley.schedule_runs is
'The last hundred runs of each schedule that parley.schedules shows: due_at, null where somebody asked for the run,
missed, how many times before it were left out, and error, why nothing was put. message_id is that of a message in a
queue, conversation_handle that of a conversation that was begun.';
