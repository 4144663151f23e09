-- RETRY and FAIL of a conversation: whoever saw the work on its first message fail says so, and the conversation waits
-- for its next attempt (conversation/put_back.sql), or is set aside.
--
-- The message has to be in the queue again: after a rollback, also one to a savepoint, of the transaction that received
-- it. A reader that locked the group before the savepoint (GET CONVERSATION GROUP) keeps it until it commits.
-- Locks: the group, skip locked, then the row of the side.

create function parley._p_make_conversation_wait(
  queue parley._p_queue, endpoint_id bigint, "position" bigint, attempts integer, losses integer, delay interval,
  is_final boolean, out waits boolean, out retry_at timestamptz, out is_set_aside boolean
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  waits := parley._p_set_aside_conversation(queue.queue_id, endpoint_id, position, attempts + losses);
  if not waits then
    -- Its row is held, as while the other side ends: then not now.
    is_set_aside := false;
    return;
  end if;
  select p.retry_at, p.is_set_aside into retry_at, is_set_aside
  from parley._p_postpone_conversation(queue, endpoint_id, attempts, losses, delay, is_final) as p;
end
$$;

comment on function parley._p_make_conversation_wait(
  parley._p_queue, bigint, bigint, integer, integer, interval, boolean
) is
'Makes a side of a conversation wait, or sets it aside after too many failures. Its group is locked, and it is not set
aside.
Arguments: queue; endpoint_id; position of its first message; attempts and losses, how many are added; delay, for how
long (null: by the policy of the queue); is_final, set it aside now.
It gives waits, whether it is out of the way now, and retry_at, null when it is set aside.';

create function parley._p_lock_reported(group_id bigint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  loop
    perform from parley._p_conversation_group as g where g.group_id = _p_lock_reported.group_id for update skip locked;
    exit when found;
    perform from parley._p_conversation_group as g where g.group_id = _p_lock_reported.group_id;
    if not found or parley._p_is_claimed(group_id) or not parley._p_may_still_be_given_back() then
      return false;
    end if;
  end loop;
  return true;
end
$$;

comment on function parley._p_lock_reported(bigint) is
'Locks the group of a conversation that is reported to have failed; false when others hold it, and not for a moment
only.';

create function parley._p_explains_loss(endpoint_id bigint, "position" bigint, came_back boolean) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return came_back is not true and exists (
    select
    from parley._p_conversation_retry as r
    where r.endpoint_id = _p_explains_loss.endpoint_id and r.position = _p_explains_loss.position and r.is_unexplained
  );
end
$$;

comment on function parley._p_explains_loss(bigint, bigint, boolean) is
'Reports whether a failure that is reported has been counted as a return of which nobody said why: nobody has received
the message since.
Arguments: endpoint_id; position of its first message; came_back, whether that was received since and came back.';

create function parley._p_fail_conversation(
  caller oid, handle uuid, error text, sqlstate text, delay interval, is_final boolean,
  out retry_at timestamptz, out is_set_aside boolean
)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint := parley._p_find_endpoint(handle);
  v_queue parley._p_queue;
  v_head record;
  v_is_late boolean;
begin
  select q.* into v_queue
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  where s.service_id = v_endpoint.service_id;
  perform parley._p_require_permission(
    caller, 'RECEIVE', 'queue', v_queue.queue_id, v_queue.lookup_name, v_queue.owner
  );
  if not parley._p_lock_reported(v_endpoint.group_id) or parley._p_is_claimed(v_endpoint.group_id) then
    return;
  end if;
  v_head := parley._p_first_message(v_queue, v_endpoint);
  v_is_late := parley._p_explains_loss(v_endpoint.endpoint_id, v_head.position, v_head.came_back);
  if v_head.position is null
    or parley._p_is_set_aside(v_endpoint.endpoint_id) and not parley._p_is_wait_over(v_endpoint.endpoint_id)
    and not v_is_late then
    return;
  end if;
  insert into parley._p_failure as f (endpoint_id, failed_at, sqlstate, error)
  values (
    v_endpoint.endpoint_id, clock_timestamp(), substring(_p_fail_conversation.sqlstate from '^[0-9A-Z]{5}$'),
    left(coalesce(_p_fail_conversation.error, ''), 2000)
  )
  on conflict on constraint _p_failure_pkey do update
  set failed_at = excluded.failed_at, sqlstate = coalesce(excluded.sqlstate, f.sqlstate),
    error = case when _p_fail_conversation.error is null then f.error else excluded.error end;
  if not is_final and delay is null and (parley._p_retry_policy_of(v_queue)).queue_id is null then
    is_set_aside := false;
    return;
  end if;
  if parley._p_is_set_aside(v_endpoint.endpoint_id) then
    select p.retry_at, p.is_set_aside into retry_at, is_set_aside
    from parley._p_postpone_conversation(
      v_queue, v_endpoint.endpoint_id, 1, -v_is_late::integer, delay, is_final
    ) as p;
    return;
  end if;
  select w.retry_at, w.is_set_aside into retry_at, is_set_aside
  from parley._p_make_conversation_wait(
    v_queue, v_endpoint.endpoint_id, v_head.position, 1, -v_is_late::integer, delay, is_final
  ) as w;
end
$$;

comment on function parley._p_fail_conversation(oid, uuid, text, text, interval, boolean) is
'Records that the first message of a conversation failed, and makes the conversation wait, by the policy of its queue or
for a time, or sets it aside. A return of which nobody had said why, and after which nobody has received it, is this
failure, and is counted as such. Gives nulls when others have it, or it waits or is set aside already.
Errors: 229, 8418, 8426.';

create function parley.retry_conversation(
  conversation_handle uuid, error text default null, sqlstate text default null, delay interval default null,
  caller parley.caller default parley.current_caller(),
  out retry_at timestamptz, out is_set_aside boolean
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley._p_require_delay(delay);
  select f.retry_at, f.is_set_aside into retry_at, is_set_aside
  from parley._p_fail_conversation(
    parley._p_caller(caller), conversation_handle, error, sqlstate, delay, false
  ) as f;
end
$$;

comment on function parley.retry_conversation(uuid, text, text, interval, parley.caller) is
'Reports that the work on the first message of a conversation failed, and has the conversation wait for its next
attempt, by the retry policy of its queue; the others go on. Call it when the message is in the queue again: after a
rollback, or in the same transaction after a rollback to a savepoint before RECEIVE.
Arguments: conversation_handle; error, the text to keep, of which 2,000 characters are; sqlstate, of the error; delay,
for how long it waits, 0 to 7 days (null: by the policy).
Returns retry_at, when it is received again at the earliest, null when it need not wait; and is_set_aside, whether it
was set aside, because it has failed as often as the policy allows. Both are null when nothing of it waits to be
received, it is set aside or waits already by a report, or others have its group: they report themselves.
Errors: 229 not allowed, 8402 delay out of range, 8418 and 8426 handle missing or not found.
Source: spec 5.6.';

create function parley.fail_conversation(
  conversation_handle uuid, error text default null, sqlstate text default null,
  caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    (
      parley._p_fail_conversation(parley._p_caller(caller), conversation_handle, error, sqlstate, null, true)
    ).is_set_aside,
    false
  );
end
$$;

comment on function parley.fail_conversation(uuid, text, text, parley.caller) is
'Sets a conversation aside at once, because another attempt at its first message would be in vain:
parley.poison_conversations. Call it as parley.retry_conversation.
Arguments: conversation_handle; error, the text to keep, of which 2,000 characters are; sqlstate, of the error.
Returns whether it did.
Errors: 229 not allowed, 8418 and 8426 handle missing or not found.
Source: spec 5.6.';
