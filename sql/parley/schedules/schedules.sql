-- Schedules: messages that are put into a simple queue, or with which a conversation is begun, again and again, by a
-- cron expression or every so often.
--
-- The daemon that leads the database puts them. It alone finds out when a cron expression is due (internal/cron), so a
-- new schedule has no time until the daemon has seen it. It puts in the name of the role that made the schedule, which
-- needs the rights of put or of begin_dialog at that time, too.
--
-- Invariants, and what keeps each:
--   one message for each due time, whatever daemons there are   the message, its row of the history and the next time
--     are one transaction, which holds the row of the schedule
--   a schedule that fails or lasts holds up no other   the daemon bounds each; its error stands in fault, and it is
--     tried again a minute later for the same time
--   nothing is counted for a schedule that was paused or dropped meanwhile   its row, read again with the lock
-- Locks: the rows of schedules, skip locked, then those of put. Cost while none is due: one probe of an index a second.

create table parley._p_schedule (
  schedule_id integer generated always as identity primary key,
  name text collate "C" not null unique,
  owner parley._p_role_oid not null,
  queue_id integer references parley._p_queue on delete cascade,
  -- In place of a queue: the conversation that is begun.
  service_id integer references parley._p_service on delete cascade,
  to_service text,
  contract text,
  message_type text,
  cron text,
  every interval,
  time_zone text not null,
  missed text not null check (missed in ('ONCE', 'ALL', 'SKIP')),
  body bytea,
  message_key text,
  priority integer not null,
  started_at timestamptz not null default clock_timestamp(),
  next_at timestamptz,
  -- When the daemon reads it next: now when it has no time yet; null while it is paused.
  wake_at timestamptz,
  fault text,
  check ((cron is null) <> (every is null)),
  check (num_nonnulls(queue_id, service_id) = 1),
  check (num_nonnulls(service_id, to_service, contract, message_type) in (0, 4))
);

comment on table parley._p_schedule is
'Schedules of messages: by cron in time_zone, or every so often from started_at on. A message is put into queue_id, or
begins a conversation from service_id with to_service. missed is what becomes of times that nobody was there for.';

create index on parley._p_schedule (wake_at);

create trigger _p_number_roles after insert or update of owner on parley._p_schedule
for each row execute function parley._p_number_roles('owner');

create table parley._p_schedule_run (
  schedule_id integer not null references parley._p_schedule on delete cascade,
  run_id bigint generated always as identity,
  due_at timestamptz,
  sent_at timestamptz not null default clock_timestamp(),
  message_id bigint,
  conversation_handle uuid,
  missed integer not null,
  error text,
  primary key (schedule_id, run_id)
);

comment on table parley._p_schedule_run is
'The last hundred runs of each schedule: due_at is null where somebody asked for it, missed is how many times before it
were left out, and error says why nothing was put.';

create function parley._p_find_schedule(caller oid, name text) returns parley._p_schedule
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schedule parley._p_schedule;
begin
  select * into v_schedule from parley._p_schedule as s where s.name = _p_find_schedule.name for no key update;
  if not found
    or (pg_has_role(caller, v_schedule.owner, 'usage') or parley._p_is_administrator(caller)) is not true then
    found := parley._p_raise(208, 'schedule', coalesce(name, 'null'));
  end if;
  return v_schedule;
end
$$;

comment on function parley._p_find_schedule(oid, text) is
'Finds and locks a schedule that a role may change: its own, or any as an administrator.
Errors: 208.';

create function parley._p_is_time_zone(time_zone text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Not pg_timezone_names, which reads the files of all zones: 50 ms a call.
  perform now() at time zone time_zone;
  return time_zone ~ '^[A-Z][A-Za-z0-9_+/-]*$';
exception
  when invalid_parameter_value then
    return false;
end
$$;

comment on function parley._p_is_time_zone(text) is 'Reports whether the server knows a time zone by a name.';

create function parley._p_require_schedule(
  name text, cron text, every interval, time_zone text, missed text, key text, priority integer
) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley._p_require_range('the number of characters of name', coalesce(length(name), 0), 1, 128);
  found := parley._p_require_range('priority', priority, 1, 10);
  found := parley._p_require_range('the number of characters of key', coalesce(length(key), 0), 0, 256);
  if num_nonnulls(cron, every) <> 1 then
    found := parley._p_raise(8402, 'schedule without a time');
  elsif every not between interval '1 second' and interval '366 days' or extract(months from every) <> 0
    or extract(years from every) <> 0 then
    found := parley._p_raise(8402, 'range', 'every', every::text, '1 second', '366 days without months');
  elsif cron is not null and not parley._p_is_cron(cron) then
    found := parley._p_raise(8402, 'cron', cron);
  elsif coalesce(upper(missed collate "C"), '') not in ('ONCE', 'ALL', 'SKIP') then
    found := parley._p_raise(8402, 'missed', coalesce(missed, 'null'));
  elsif parley._p_is_time_zone(time_zone) is not true then
    found := parley._p_raise(8402, 'time zone', coalesce(time_zone, 'null'));
  elsif cron is not null and not parley._p_is_cron_ever_due(cron, (now() at time zone time_zone)::date) then
    found := parley._p_raise(8402, 'cron never', cron);
  end if;
  return true;
end
$$;

comment on function parley._p_require_schedule(text, text, interval, text, text, text, integer) is
'Refuses a schedule that cannot be, or is never due.
Errors: 8402.';

create function parley._p_place_of_schedule(
  caller oid, schedule parley._p_schedule, queue text, from_service text
) returns parley._p_schedule
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if num_nonnulls(queue, from_service) <> 1 or num_nonnulls(from_service, schedule.to_service) = 1 then
    found := parley._p_raise(8402, 'schedule without a place');
  elsif from_service is not null and num_nonnulls(schedule.message_key, nullif(schedule.priority, 5)) > 0 then
    found := parley._p_raise(8402, 'schedule of services with a key');
  elsif queue is not null and (schedule.contract, schedule.message_type) is distinct from ('DEFAULT', 'DEFAULT') then
    found := parley._p_raise(8402, 'schedule of a queue with a contract');
  elsif queue is not null then
    schedule.queue_id := (parley._p_find_simple_queue(caller, queue, 'SEND')).queue_id;
    schedule.contract := null;
    schedule.message_type := null;
    return schedule;
  end if;
  found := parley._p_check_dialog(schedule.to_service, schedule.contract, 1, null, null)
    and parley._p_require_range(
      'the number of characters of message_type', coalesce(length(schedule.message_type), 0), 1, 128
    );
  schedule.service_id := (
    parley._p_parts_of_dialog(caller, from_service, schedule.to_service, schedule.contract)
  ).service_id;
  return schedule;
end
$$;

comment on function parley._p_place_of_schedule(oid, parley._p_schedule, text, text) is
'Gives a schedule with the queue or the service that it is for, when the caller may put there, or begin dialogs from it.
Errors: 208, 229, 8402, 8412, 8417, 8421, 8423, 8425, 9609.';

create function parley.schedule(
  name text, queue text default null, body text default null, cron text default null, every interval default null,
  time_zone text default 'UTC', key text default null, priority integer default 5, missed text default 'ONCE',
  from_service text default null, to_service text default null, contract text default 'DEFAULT',
  message_type text default 'DEFAULT', caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_wanted parley._p_schedule;
  v_old parley._p_schedule;
  v_new parley._p_schedule;
begin
  found := parley._p_require_schedule(name, cron, every, time_zone, missed, key, priority);
  v_wanted.to_service := schedule.to_service;
  v_wanted.contract := schedule.contract;
  v_wanted.message_type := schedule.message_type;
  v_wanted.message_key := schedule.key;
  v_wanted.priority := schedule.priority;
  v_wanted := parley._p_place_of_schedule(v_caller, v_wanted, queue, from_service);
  v_wanted.body := nullif(convert_to(schedule.body, 'UTF8'), '');
  v_wanted.missed := upper(schedule.missed collate "C");
  insert into parley._p_schedule as s (
    name, owner, queue_id, service_id, to_service, contract, message_type, cron, every, time_zone, missed, body,
    message_key, priority, wake_at
  )
  values (
    schedule.name, v_caller, v_wanted.queue_id, v_wanted.service_id, v_wanted.to_service, v_wanted.contract,
    v_wanted.message_type, schedule.cron, schedule.every, schedule.time_zone, v_wanted.missed, v_wanted.body,
    schedule.key, schedule.priority, clock_timestamp()
  )
  on conflict on constraint _p_schedule_name_key do nothing;
  if found then
    perform parley._p_wake_readers(0, 'parley._p_alarm_wakeup');
    return true;
  end if;
  select * into v_old from parley._p_schedule as s where s.name = schedule.name;
  if pg_has_role(v_caller, v_old.owner, 'usage') is not true then
    found := parley._p_raise(2714, 'schedule', name);
  end if;
  v_old := parley._p_find_schedule(v_caller, name);
  -- Programs say it at each start: what has not changed keeps its time.
  update parley._p_schedule as s
  set owner = v_caller, queue_id = v_wanted.queue_id, service_id = v_wanted.service_id,
    to_service = v_wanted.to_service, contract = v_wanted.contract, message_type = v_wanted.message_type,
    cron = schedule.cron, every = schedule.every, time_zone = schedule.time_zone, missed = v_wanted.missed,
    body = v_wanted.body, message_key = schedule.key, priority = schedule.priority
  where s.schedule_id = v_old.schedule_id
  returning s.* into v_new;
  if (v_new.cron, v_new.every, v_new.time_zone) is distinct from (v_old.cron, v_old.every, v_old.time_zone) then
    update parley._p_schedule as s
    set started_at = clock_timestamp(), next_at = null, fault = null,
      wake_at = case when v_old.wake_at is not null then clock_timestamp() end
    where s.schedule_id = v_old.schedule_id;
    perform parley._p_wake_readers(0, 'parley._p_alarm_wakeup');
  end if;
  return v_new is distinct from v_old;
end
$$;

comment on function parley.schedule(
  text, text, text, text, interval, text, text, integer, text, text, text, text, text, parley.caller
) is
'Has a message put into a simple queue, or a conversation begun, again and again, in the name of the caller. A schedule
of that name is changed, and keeps its next time unless when it is due changes: so a program may call it at each start.
Arguments: name, 1 to 128 characters; queue, in which the message is put, or in its place from_service and to_service,
as begin_dialog has them: each due time begins a conversation between them and sends the message on it; body; cron, an
expression of five fields, or six with seconds in front, or @hourly, @daily and the like, or else every, an interval of
1 second to 366 days without months, counted from now; time_zone in which cron is meant (an hour that the clock leaves
out in spring is due when the clock has been put forward, one that it has twice in autumn the first time); key and
priority of the message in a queue, as put has them; contract and message_type of the conversation; missed, what becomes
of times for which no daemon was there: ONCE, one message for all of them, ALL, one for each, up to a thousand, SKIP,
none that is older than a minute.
The reader of the queue of from_service ends its side, as of any conversation.
Returns whether it is new or changed.
Errors: 208 no such queue, 229 not allowed, 2714 somebody else has a schedule of this name, 8402 no simple queue, both
or neither of queue and services, an argument of the one given with the other, one out of range, or a time that never
comes, 8412 and 8421 to_service malformed or missing, 8417 contract missing, 8423 no such service, 8425 no such
contract, 9609 malformed name.
Source: spec P32.';

create function parley.unschedule(name text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schedule parley._p_schedule := parley._p_find_schedule(parley._p_caller(caller), name);
begin
  delete from parley._p_schedule as s where s.schedule_id = v_schedule.schedule_id;
end
$$;

comment on function parley.unschedule(text, parley.caller) is
'Removes a schedule and its history. Messages that it has put stay.
Arguments: name.
Errors: 208 no such schedule of the caller.
Source: spec P32.';

create function parley.pause_schedule(name text, caller parley.caller default parley.current_caller()) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schedule parley._p_schedule := parley._p_find_schedule(parley._p_caller(caller), name);
begin
  update parley._p_schedule as s set wake_at = null, next_at = null where s.schedule_id = v_schedule.schedule_id;
  return v_schedule.wake_at is not null;
end
$$;

comment on function parley.pause_schedule(text, parley.caller) is
'Pauses a schedule: times that pass meanwhile are not made up for. Returns whether it was not paused already.
Arguments: name.
Errors: 208 no such schedule of the caller.
Source: spec P32.';

create function parley.resume_schedule(name text, caller parley.caller default parley.current_caller())
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schedule parley._p_schedule := parley._p_find_schedule(parley._p_caller(caller), name);
begin
  if v_schedule.wake_at is not null then
    return false;
  end if;
  update parley._p_schedule as s
  set wake_at = clock_timestamp(), next_at = null
  where s.schedule_id = v_schedule.schedule_id;
  perform parley._p_wake_readers(0, 'parley._p_alarm_wakeup');
  return true;
end
$$;

comment on function parley.resume_schedule(text, parley.caller) is
'Has a schedule that is paused go on with its next time. Returns whether it was paused.
Arguments: name.
Errors: 208 no such schedule of the caller.
Source: spec P32.';

create function parley.run_schedule(name text, caller parley.caller default parley.current_caller()) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schedule parley._p_schedule := parley._p_find_schedule(parley._p_caller(caller), name);
begin
  return parley._p_run_schedule(v_schedule, null, 0);
end
$$;

comment on function parley.run_schedule(text, parley.caller) is
'Puts the message of a schedule now, or begins its conversation, in this transaction and in the name of the role that
made the schedule, also while it is paused. Its next time stays. Returns the message_id, null for a conversation, which
parley.schedule_runs shows.
Arguments: name.
Errors: 208 no such schedule of the caller, 229 that role may not put there, 9617 the queue is disabled, 10928 it is
full; for a conversation those of begin_dialog and send.
Source: spec P32.';
