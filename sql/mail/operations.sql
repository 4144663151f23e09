-- What operators do to queues (spec mail 17), and what has to be done now and then. Each asks for OPERATE and is
-- audited.

create function parley_mail._p_system_of(queue text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_system text;
begin
  select l.system into v_system
  from parley_store.lanes as l
  where l.system in ('mail', 'mail_service') and l.lane = queue;
  if not found then
    found := parley_mail._p_raise('queue', coalesce(queue, 'null'));
  end if;
  return v_system;
end
$$;

comment on function parley_mail._p_system_of(text) is
'Gives the system of parley_store in which a queue is.
Errors: PM006 no such queue.';

create function parley_mail._p_suspend_unreachable(reason text, caller oid) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if exists (
    select
    from parley_store.lanes as l
    where l.system = 'mail' and l.lane = 'UNREACHABLE/-/-'
      and (l.suspended_for = 'permanent') = (_p_suspend_unreachable.reason = 'permanent')
  ) then
    return false;
  end if;
  perform parley_store.resume_lane('mail', 'UNREACHABLE/-/-', pg_get_userbyid(caller));
  return parley_store.suspend_lane('mail', 'UNREACHABLE/-/-', reason, pg_get_userbyid(caller));
end
$$;

comment on function parley_mail._p_suspend_unreachable(text, oid) is
'Says why the queue UNREACHABLE/-/- is suspended, which it always is: permanent, or what an operator gave as the reason,
and then a new configuration does not have its messages categorized anew. False when it is so already.
Source: spec mail 6.2, 17.';

create function parley_mail.suspend_queue(
  queue text, reason text default null, caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_is_done boolean;
begin
  found := parley_mail._p_require(v_caller, 'OPERATE');
  if queue in ('SUBMISSION', 'SUBMISSION/-/-') then
    update parley_mail._p_organization as o
    set submission_suspended_at = clock_timestamp()
    where o.submission_suspended_at is null;
    v_is_done := found;
  elsif queue = 'UNREACHABLE/-/-' then
    perform parley_mail._p_system_of(queue);
    v_is_done := parley_mail._p_suspend_unreachable(coalesce(nullif(reason, 'permanent'), 'by an operator'), v_caller);
  else
    v_is_done := parley_store.suspend_lane(
      parley_mail._p_system_of(queue), queue, reason, pg_get_userbyid(v_caller)
    );
  end if;
  perform parley_mail._p_record_audit(v_caller, 'suspend queue', queue, jsonb_build_object('reason', reason));
  return v_is_done;
end
$$;

comment on function parley_mail.suspend_queue(text, text, parley.caller) is
'Has nothing leave a queue any more; what is under way goes on, and new messages are taken. From UNREACHABLE/-/- nothing
leaves, and suspended it keeps its messages when the configuration changes too. False when it was suspended.
Arguments: queue, as parley_mail.queues shows it, or SUBMISSION; reason.
Errors: PM001 not allowed, PM006 no such queue.
Source: spec mail 17.';

create function parley_mail.resume_queue(queue text, caller parley.caller default parley.current_caller())
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_is_done boolean;
begin
  found := parley_mail._p_require(v_caller, 'OPERATE');
  if queue in ('SUBMISSION', 'SUBMISSION/-/-') then
    update parley_mail._p_organization as o
    set submission_suspended_at = null
    where o.submission_suspended_at is not null;
    v_is_done := found;
  elsif queue in ('POISON/-/-', 'UNREACHABLE/-/-') then
    found := parley_mail._p_require_resubmission();
    if queue = 'UNREACHABLE/-/-' then
      perform parley_mail._p_suspend_unreachable('permanent', v_caller);
    end if;
    v_is_done := parley_mail._p_resubmit('mail', array(
      select w.item_id from parley_mail._p_waiting_item as w
      where w.queue = resume_queue.queue and w.state in ('WAITING', 'DELAYED')
      order by w.item_id limit 10000
    ), v_caller) > 0;
  else
    v_is_done := parley_store.resume_lane(parley_mail._p_system_of(queue), queue, pg_get_userbyid(v_caller));
  end if;
  perform parley_mail._p_record_audit(v_caller, 'resume queue', queue, null);
  return v_is_done;
end
$$;

comment on function parley_mail.resume_queue(text, parley.caller) is
'Has a suspended queue go on; what is in the queues POISON/-/- and UNREACHABLE/-/- is categorized anew,
10,000 messages in a call. False when there was nothing to do.
Arguments: queue.
Errors: PM001 not allowed, PM006 no such queue, PM014 resources are too short for messages to be categorized anew.
Source: spec mail 8.2, 14.3, 17.';

create function parley_mail.retry_queue(queue text, caller parley.caller default parley.current_caller())
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
begin
  found := parley_mail._p_require(v_caller, 'OPERATE');
  perform parley_mail._p_record_audit(v_caller, 'retry queue', queue, null);
  return parley_store.retry_lane(parley_mail._p_system_of(queue), queue, pg_get_userbyid(v_caller));
end
$$;

comment on function parley_mail.retry_queue(text, parley.caller) is
'Has the next hop of a queue in RETRY tried at once; false when it is in another state.
Arguments: queue.
Errors: PM001 not allowed, PM006 no such queue.
Source: spec mail 17.';

create function parley_mail._p_maintain(
  resubmits boolean default true, caller parley.caller default parley.current_caller()
)
returns table (task text, done integer)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_settings jsonb;
  v_dead record;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  select o.settings into v_settings from parley_mail._p_organization as o;
  return query select 'taken back'::text, parley_mail._p_take_back_lost();
  return query select 'status queue'::text, parley_mail._p_read_status_queue();
  return query select 'removals'::text, parley_mail._p_finish_removals();
  return query select 'held queues'::text, parley_mail._p_suspend_held();
  if resubmits is not false then
    return query select 'configuration'::text, parley_mail._p_follow_configuration();
    return query select 'resubmitted'::text, parley_mail._p_resubmit_retrying();
  end if;
  return query select 'delays'::text, parley_mail._p_report_delays();
  return query select 'expired'::text, parley_mail._p_expire_waiting();
  return query select 'kept bodies'::text, parley_mail._p_remove_kept();
  -- Conversations with services end when their time is over, also where no daemon of the broker runs.
  return query select 'timers'::text, parley_mail._p_fire_timers();
  return query select 'roles that are gone'::text, parley_mail._p_follow_roles();
  return query select 'stored attachments'::text, parley_mail._p_expire_attachments();
  return query select 'remembered deliveries'::text, parley_mail._p_forget_delivered();
  delete from parley_mail._p_submitted as s where s.at < clock_timestamp() - interval '2 minutes';
  delete from parley_mail._p_idempotency as i
  where i.at < clock_timestamp() - coalesce((v_settings ->> 'idempotency_retention')::integer, 604800) * interval '1 s';
  get diagnostics done = row_count;
  task := 'idempotency keys';
  return next;
  delete from parley_mail._p_report_rate as r where r.hour < clock_timestamp() - interval '2 hours';
  delete from parley_mail._p_rate_bucket as b where b.reserved_to < clock_timestamp() - interval '2 days';
  -- What was rolled back again and again while it was categorized. It may have been there by chance when servers were
  -- killed, and a large batch is one item: each message is tried by itself, and the one that is to blame set aside.
  done := 0;
  for v_dead in
    select s.message_id, s.body
    from parley.set_aside_messages as s
    where s.queue_name = 'parley_mail_submission'
  loop
    perform parley.discard_message('parley_mail_submission', v_dead.message_id, caller => parley.current_caller());
    insert into parley_mail._p_categorizing (message_ids, deaths, begun_at)
    select array[i.id], 1, null
    from unnest(string_to_array(convert_from(v_dead.body, 'UTF8'), ' ')::bigint[]) as i (id);
    done := done + 1;
  end loop;
  task := 'poison';
  return next;
  -- At the end: generations and days that are truncated and dropped stay locked until the transaction is over.
  return query
  select m.task, m.done
  from parley_store.maintain(
    coalesce((v_settings ->> 'tracking_retention')::integer, 2592000) * interval '1 s',
    coalesce((v_settings ->> 'idle_queue')::integer, 180) * interval '1 s', leases => false
  ) as m;
end
$$;

comment on function parley_mail._p_maintain(boolean, parley.caller) is
'Does what time asks for: leases that ran out, notices of delay, expiry, old idempotency keys, poison. Call it every few
seconds.
Arguments: resubmits, whether messages may be categorized anew, which waits while resources are short.
Errors: PM001 the role does not hold SERVE, PS009 not READ COMMITTED.';
