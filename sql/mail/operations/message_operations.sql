-- Operations on messages, by a filter (spec mail 8.2, 17): suspend, resume, retry, resubmit, remove, change.
--
-- Each asks for OPERATE, touches at most so many messages in a call, so that nobody waits for it, and is called until
-- it gives 0. It stands in the audit with its filter and its count, and among the events of each message. An item that
-- another session is claiming is passed over. A message under way is suspended or removed when its attempt has failed.
-- Locks: work items, skip locked.

create function parley_mail._p_operate(
  caller oid, operation text, filter jsonb, top integer, reason text default null
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_work record;
  v_by text := pg_get_userbyid(caller);
  v_touched integer := 0;
begin
  for v_work in
    select w.system, w.is_anew, array_agg(w.item_id) as item_ids,
      jsonb_build_object('items', jsonb_agg(w.item_id)) as items,
      array_agg(w.message_id order by w.item_id) as ids, array_agg(w.queue order by w.item_id) as queues
    from (
      select m.system, m.item_id, m.message_id, m.queue, operation = 'resubmit' or m.queue = 'POISON/-/-' as is_anew
      from parley_mail._p_matching(filter, operation, top) as m
      where m.queue <> 'POISON/-/-' or operation in ('resume', 'resubmit')
    ) as w
    group by w.system, w.is_anew
    order by w.system, w.is_anew desc
  loop
    if v_work.is_anew then
      found := parley_mail._p_require_resubmission();
      v_touched := v_touched + parley_mail._p_resubmit(v_work.system, v_work.item_ids, caller);
      continue;
    end if;
    v_touched := v_touched + case operation
      when 'suspend' then parley_store.suspend_work(v_work.system, v_work.items, reason, top, done_by => v_by)
      when 'resume' then parley_store.resume_work(v_work.system, v_work.items, top, done_by => v_by)
      else parley_store.retry_work_now(v_work.system, v_work.items, top, done_by => v_by)
    end;
    if operation <> 'retry' then
      perform parley_mail._p_track_operation(upper(operation collate "C"), v_work.ids, v_work.queues, reason);
    end if;
  end loop;
  return v_touched;
end
$$;

comment on function parley_mail._p_operate(oid, text, jsonb, integer, text) is
'Suspends, resumes, retries or resubmits messages that a filter matches; gives how many. Resuming has poison
categorized anew; suspending and retrying leave it alone.
Errors: PM010, PM014.';

create function parley_mail._p_operate_and_record(
  caller oid, operation text, filter jsonb, top integer, dry_run boolean, reason text default null
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_messages integer;
begin
  found := parley_mail._p_require(caller, 'OPERATE');
  found := parley_mail._p_require_top(top);
  if dry_run is not false then
    return (select count(*) from parley_mail._p_matching(filter, operation, null) as w);
  end if;
  if operation = 'resubmit' then
    found := parley_mail._p_require_resubmission();
  end if;
  v_messages := parley_mail._p_operate(caller, operation, filter, top, reason);
  perform parley_mail._p_record_audit(
    caller, operation || ' messages', filter::text,
    jsonb_build_object('messages', v_messages)
      || case operation when 'suspend' then jsonb_build_object('reason', reason) else '{}' end
  );
  return v_messages;
end
$$;

comment on function parley_mail._p_operate_and_record(oid, text, jsonb, integer, boolean, text) is
'Has an operator, who has to be allowed to, suspend, resume or resubmit messages, and records it; gives how many. With
dry_run it counts all that match.
Errors: PM001, PM010, PM014.';

create function parley_mail.suspend_messages(
  filter jsonb, reason text default null, top integer default 1000, dry_run boolean default false,
  caller parley.caller default parley.current_caller()
) returns integer
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  select parley_mail._p_operate_and_record(parley.caller_role(caller), 'suspend', filter, top, dry_run, reason)
$$;

comment on function parley_mail.suspend_messages(jsonb, text, integer, boolean, parley.caller) is
'Holds messages in their queues: nothing of them leaves until they are resumed, and they do not expire. A message under
way is held when its attempt has failed. Gives how many; call it until it gives 0.
Arguments: filter, as docs/mail/operations.md lists its conditions; reason; top, how many in a call; dry_run, count all
that match, and change nothing.
Errors: PM001 not allowed, PM010 malformed filter.
Source: spec mail 2, 17.';

create function parley_mail.resume_messages(
  filter jsonb, top integer default 1000, dry_run boolean default false,
  caller parley.caller default parley.current_caller()
) returns integer
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  select parley_mail._p_operate_and_record(parley.caller_role(caller), 'resume', filter, top, dry_run)
$$;

comment on function parley_mail.resume_messages(jsonb, integer, boolean, parley.caller) is
'Has suspended messages go on, at the end of their queues; what is poison or held in quarantine is categorized anew.
Gives how many; call it until it gives 0.
Arguments: as suspend_messages.
Errors: PM001 not allowed, PM010 malformed filter, PM014 there is poison among them, and resources are too short for
messages to be categorized anew.
Source: spec mail 5, 14.3, 17.';

create function parley_mail.resubmit_messages(
  filter jsonb, top integer default 1000, dry_run boolean default false,
  caller parley.caller default parley.current_caller()
) returns integer
language sql security definer
set search_path = pg_catalog, pg_temp
as $$
  select parley_mail._p_operate_and_record(parley.caller_role(caller), 'resubmit', filter, top, dry_run)
$$;

comment on function parley_mail.resubmit_messages(jsonb, integer, boolean, parley.caller) is
'Has messages categorized anew: those that wait for a retry or in a queue that could not be reached, and those that are
unreachable. Suspended messages are left alone. Gives how many; call it until it gives 0.
Arguments: as suspend_messages.
Errors: PM001 not allowed, PM010 malformed filter, PM014 resources are too short for it.
Source: spec mail 8.2, 14.3, 17.';

create function parley_mail._p_retry_queues(caller oid, filter jsonb) returns text[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane record;
  v_retried text[] := array[]::text[];
begin
  for v_lane in
    select l.system, l.lane
    from parley_store.lanes as l
    join (
      select distinct w.system, w.queue from parley_mail._p_matching(filter, 'retry queue', null) as w
    ) as w on w.system = l.system and w.queue = l.lane
    -- In the order in which who records outcomes locks lanes.
    order by l.lane_id
  loop
    if parley_store.retry_lane(v_lane.system, v_lane.lane, pg_get_userbyid(caller)) then
      v_retried := v_retried || v_lane.lane;
    end if;
  end loop;
  return v_retried;
end
$$;

comment on function parley_mail._p_retry_queues(oid, jsonb) is
'Has the next hops tried at once of queues in RETRY in which messages wait that a filter matches; gives the queues.
Errors: PM010.';

create function parley_mail.retry_queues(
  filter jsonb, dry_run boolean default false, caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_queues integer;
begin
  found := parley_mail._p_require(v_caller, 'OPERATE');
  if dry_run is not false then
    return (
      select count(distinct w.queue)::integer from parley_mail._p_matching(filter, 'retry queue', null) as w
    );
  end if;
  v_queues := cardinality(parley_mail._p_retry_queues(v_caller, filter));
  perform parley_mail._p_record_audit(
    v_caller, 'retry queues', filter::text, jsonb_build_object('queues', v_queues)
  );
  return v_queues;
end
$$;

comment on function parley_mail.retry_queues(jsonb, boolean, parley.caller) is
'Has the next hops tried at once of all queues in RETRY in which messages wait that a filter matches; gives how many
queues. A queue that fails again begins its time anew.
Arguments: filter of messages, such as {"queue": "SMART_HOST/*"}; dry_run, count, and change nothing.
Errors: PM001 not allowed, PM010 malformed filter.
Source: spec mail 17.';

create function parley_mail.retry_messages(
  filter jsonb, top integer default 1000, dry_run boolean default false, queues boolean default true,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_messages integer := 0;
  v_waiting_in text[];
  v_queues text[] := array[]::text[];
begin
  found := parley_mail._p_require(v_caller, 'OPERATE');
  found := parley_mail._p_require_top(top);
  if dry_run is not false then
    return (
      select count(*)
      from (
        select w.item_id from parley_mail._p_matching(filter, 'retry', null) as w
        union
        select w.item_id from parley_mail._p_matching(filter, 'retry queue', null) as w where queues is not false
      ) as w
    );
  end if;
  if queues is not false then
    select array_agg(w.queue) into v_waiting_in
    from parley_mail._p_matching(filter, 'retry queue', null) as w
    where w.state = 'WAITING';
    v_queues := parley_mail._p_retry_queues(v_caller, filter);
    v_messages := (select count(*)::integer from unnest(v_waiting_in) as w (queue) where w.queue = any (v_queues));
  end if;
  v_messages := v_messages + parley_mail._p_operate(v_caller, 'retry', filter, top);
  perform parley_mail._p_record_audit(
    v_caller, 'retry messages', filter::text,
    jsonb_build_object('messages', v_messages, 'queues', cardinality(v_queues))
  );
  return v_messages;
end
$$;

comment on function parley_mail.retry_messages(jsonb, integer, boolean, boolean, parley.caller) is
'Has messages tried now that wait for their next attempt, and the next hops of queues in RETRY in which some of them
wait, with all that waits there. Gives how many messages; call it until it gives 0, from the second time on without
queues, which may have failed again meanwhile.
Arguments: filter, top and dry_run, as suspend_messages; queues, whether the wait of queues ends.
Errors: PM001 not allowed, PM010 malformed filter.
Source: spec mail 17.';

create function parley_mail.change_messages(
  filter jsonb, priority text default null, expires timestamptz default null, next_attempt timestamptz default null,
  top integer default 1000, dry_run boolean default false, caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_priority integer := array_position(array['HIGH', 'NORMAL', 'LOW'], upper(priority collate "C")) - 1;
  v_work record;
  v_messages integer := 0;
begin
  found := parley_mail._p_require(v_caller, 'OPERATE');
  found := parley_mail._p_require_top(top);
  if priority is not null and v_priority is null then
    found := parley_mail._p_raise('choice', 'priority', priority, 'HIGH, NORMAL, LOW');
  elsif coalesce(priority, expires::text, next_attempt::text) is null then
    found := parley_mail._p_raise('nothing to change');
  elsif expires not between '0001-01-01Z' and '9999-01-01Z'
    or next_attempt not between '0001-01-01Z' and '9999-01-01Z' then
    found := parley_mail._p_raise('far time');
  end if;
  for v_work in
    select c.system, count(*)::integer as messages, array_agg(c.item_id) filter (where c.n <= top) as items,
      array_agg(c.message_id) filter (where c.n <= top) as ids
    from (
      select w.system, w.item_id, w.message_id, row_number() over (order by w.item_id) as n
      from parley_mail._p_matching(filter, 'change', null) as w
      join parley_mail._p_message as m using (message_id)
      -- A message that is in that state already is left alone, so that calling it again comes to an end.
      where m.priority <> v_priority
        or w.expires_at is distinct from coalesce(date_trunc('second', expires), w.expires_at)
        or (
          w.status <> 'SUSPENDED'
          and case when w.state = 'DELAYED' then w.due_at <> next_attempt else next_attempt > clock_timestamp() end
        )
    ) as c
    group by c.system
    order by c.system
  loop
    if dry_run is not false then
      v_messages := v_messages + v_work.messages;
      continue;
    end if;
    v_messages := v_messages + parley_store.change_work(
      v_work.system, v_work.items, parley_mail._p_priority_of_item(v_priority::smallint),
      date_trunc('second', expires), next_attempt, pg_get_userbyid(v_caller)
    );
    update parley_mail._p_message as m
    set priority = coalesce(v_priority, m.priority), expires_at = coalesce(date_trunc('second', expires), m.expires_at)
    where m.message_id = any (v_work.ids);
  end loop;
  if dry_run is false then
    perform parley_mail._p_record_audit(v_caller, 'change messages', filter::text, jsonb_build_object(
      'messages', v_messages, 'priority', priority, 'expires', expires, 'next_attempt', next_attempt
    ));
  end if;
  return v_messages;
end
$$;

comment on function parley_mail.change_messages(
  jsonb, text, timestamptz, timestamptz, integer, boolean, parley.caller
) is
'Changes the priority, the expiry or the time of the next attempt of messages that wait; those under way stay as they
are. Gives how many; call it until it gives 0.
Arguments: filter; priority, HIGH, NORMAL or LOW; expires; next_attempt; top, how many in a call; dry_run.
Errors: PM001 not allowed, PM010 malformed filter or nothing to change.
Source: spec mail 17.';
