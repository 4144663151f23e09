-- Doing what is due because somebody asks for it: a cron job, the daemon, a reader.
--
-- An alarm that has fired is held until the transaction ends. So a caller that is no administrator fires what concerns
-- the queues that he may RECEIVE from, whose conversations he may hold anyway, and moves no clock that sets when others
-- poll next. An alarm that another transaction holds is passed by.

create function parley._p_queues_to_fire(role oid) returns integer[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley._p_is_administrator(role) then
    return null;
  end if;
  return array(
    select q.queue_id
    from parley._p_queue as q
    where parley._p_has_permission(role, 'RECEIVE', 'queue', q.queue_id, q.owner)
  );
end
$$;

comment on function parley._p_queues_to_fire(oid) is
'Gives the queues of which a role may fire what is due: those that it may RECEIVE from. Null for an
administrator, who may fire everything.';

create function parley._p_take_care(caller oid, only_queues integer[], top integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  -- A fragment a day old may still be completed, and which service it is for is not known: for administrators.
  delete from parley._p_tombstone as t
  where t.conversation_handle in (
    select o.conversation_handle
    from parley._p_tombstone as o
    where o.expires_at <= v_now
      and (
        only_queues is null or o.service_id in (
          select s.service_id from parley._p_service as s where s.queue_id = any (only_queues)
        )
      )
    order by o.expires_at
    limit top
    for update skip locked
  );
  perform parley._p_follow_roles() where only_queues is null;
  perform parley._p_forget_keys(coalesce(20 * top, 100000)) where only_queues is null;
  perform parley._p_set_aside_found(only_queues);
  perform parley._p_forget_claims(only_queues);
  perform parley._p_forget_finished(only_queues);
  perform parley._p_forget_edits(only_queues);
  perform parley._p_forget_unique(only_queues);
  perform parley._p_forget_failures(only_queues);
  delete from parley._p_fragment as f
  where only_queues is null
    and f.ctid = any (
      array(
        select o.ctid from parley._p_fragment as o where o.stored_at < v_now - interval '1 day' for update skip locked
      )
    );
  perform parley._p_notify_disabled_queues(caller, only_queues) where exists (select from parley._p_event_notification);
  return case
    when only_queues is null and exists (select from parley._p_configuration_request)
    then parley._p_take_configuration_answers()
    else 0
  end;
end
$$;

comment on function parley._p_take_care(oid, integer[], integer) is
'Does what is not urgent and runs no function that others have made: the part of parley.fire_timers that neither sends
nor delivers nor fires alarms. Gives how many answers of the broker configuration service it took: messages may have a
way now.
Arguments: caller; only_queues, of these alone, null for all; top, how many of a kind at most.';

create function parley.fire_timers(
  top integer default 1000,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_now timestamptz := clock_timestamp();
  v_queues integer[] := parley._p_queues_to_fire(v_caller);
  v_answers integer;
begin
  found := parley._p_require_top(top);
  v_answers := parley._p_take_care(v_caller, v_queues, top);
  perform parley._p_deliver_all_due(v_queues);
  perform parley._p_end_batches(v_queues);
  perform parley._p_send_due(v_queues, coalesce(top, 2147483647));
  if exists (select from parley._p_transmission)
    and (
      v_answers > 0
      or coalesce(pg_sequence_last_value('parley._p_next_delayed_check'), 0) <= extract(epoch from v_now) * 1000000
    ) then
    perform parley._p_deliver_delayed_of_each(array(select * from parley._p_delayed_senders(v_queues)));
    -- However many wait, classifying them takes a twentieth of the time and no more.
    perform setval(
      'parley._p_next_delayed_check',
      (extract(epoch from clock_timestamp() + 20 * (clock_timestamp() - v_now)) * 1000000)::bigint
    )
    where v_queues is null;
  end if;
  -- Last: the rest may wait for a conversation, and must not hold many then.
  return parley._p_fire_alarms(null, top, v_queues);
end
$$;

comment on function parley.fire_timers(integer, parley.caller) is
'Does what is due: conversation timers, ends of lifetimes, abandoned endpoints, expired tombstones and deduplication
keys, unique keys and old reports of failures, messages that were sent for later, messages that can be delivered now,
conversations that have to be set aside, event notifications of queues that were disabled. For an administrator in all
queues; for others in those that they may RECEIVE from, and what their conversations have sent. An alarm that another
transaction holds is passed by. Returns how many alarms fired; call again at once when that is top.
Arguments: top, how many to handle at most.
Errors: 127 top negative.
Source: spec 3.3, 3.5.';
