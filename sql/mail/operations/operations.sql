-- Operations on queues (spec mail 17), and upkeep. Each asks for OPERATE and is audited.

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
  if parley_mail._p_queue_named(queue) = 'SUBMISSION/-/-' then
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
  if parley_mail._p_queue_named(queue) = 'SUBMISSION/-/-' then
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
