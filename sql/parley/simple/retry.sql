-- RETRY and FAIL of a message of a simple queue: whoever saw it fail says so, and the message waits for its next
-- attempt, or is set aside.
--
-- The message has to be in the queue again: after a rollback, also one to a savepoint, of the transaction that took it.
-- Then both can stand in one transaction: savepoint, take, work; when the work fails, rollback to the savepoint, retry,
-- commit. Others that have taken it meanwhile report themselves.
-- Readers leave what came back alone to the report for a moment (conversation/awaited_reports.sql). A report that comes
-- before the server has rolled back, as after a cut of the connection, looks again for 0.3 seconds.
-- Locks: the row of the message, skip locked, then those of waits.sql.

create function parley._p_fail_message(
  queue parley._p_queue, message_id bigint, error text, sqlstate text, delay interval, is_final boolean,
  was_claimed boolean, out retry_at timestamptz, out is_set_aside boolean
)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_message record;
  v_key_id bigint;
  v_wait parley._p_message_wait;
begin
  if not is_final and delay is null and (parley._p_retry_policy_of(queue)).queue_id is null then
    -- Nothing is locked: a lock would take the place of the transaction that failed in the row, which is to be counted.
    v_key_id := parley._p_key_of_message(queue.queue_id, message_id);
    if v_key_id is not null and not exists (
      select from parley._p_set_aside_message as s where s.queue_id = queue.queue_id and s.position = message_id
    ) then
      perform parley._p_keep_error(queue.queue_id, message_id, v_key_id, error, sqlstate);
      is_set_aside := false;
    end if;
    return;
  end if;
  loop
    select m.ctid as row_id, m.lane, m.endpoint_id, m.xmax as taker into v_message
    from parley._p_message as m
    where m.lane in (select * from parley._p_lanes(queue.queue_id)) and m.position = message_id
    for update skip locked;
    exit when found;
    if parley._p_key_of_message(queue.queue_id, message_id) is null
      or parley._p_is_message_claimed(queue.queue_id, message_id)
      or not parley._p_may_still_be_given_back() then
      return;
    end if;
  end loop;
  if parley._p_is_message_claimed(queue.queue_id, message_id) then
    return;
  end if;
  -- The wait that it has, where nobody has taken it since. The transaction that made it wait may still be in its xmax,
  -- as it had locked it.
  if not was_claimed and (
    v_message.taker = '0'
    or pg_xact_status(parley._p_full_transaction_id(v_message.taker)::text::xid8) is distinct from 'aborted'
  ) then
    select * into v_wait
    from parley._p_message_wait as w
    where w.queue_id = queue.queue_id and w.position = message_id;
  end if;
  perform parley._p_keep_error(queue.queue_id, message_id, v_message.endpoint_id, error, sqlstate);
  if not is_final and delay is null and not v_wait.is_unexplained then
    retry_at := v_wait.retry_at;
    is_set_aside := false;
    return;
  end if;
  select w.retry_at, w.is_set_aside into retry_at, is_set_aside
  from parley._p_make_message_wait(
    queue, message_id, v_message.row_id, v_message.lane,
    -- An attempt that was reported counts once; one of which nobody had said why is no loss any more.
    coalesce(v_wait.is_unexplained, true)::integer, -coalesce(v_wait.is_unexplained, false)::integer, delay, is_final
  ) as w;
end
$$;

comment on function parley._p_fail_message(parley._p_queue, bigint, text, text, interval, boolean, boolean) is
'Records that a message failed, and makes it wait, by the policy of its queue or for a time, or sets it aside. A return
of which nobody had said why, and after which nobody has taken it, is this failure, and is counted as such; so is a
failure that was reported before, which is not counted again. Gives nulls when it is gone or in the hands of others, and
retry_at null when it is set aside, or need not wait.
Arguments: queue; message_id; error; sqlstate; delay; is_final; was_claimed, whether the caller had claimed it: then
this is an attempt of its own.';

create function parley._p_keep_error(queue_id integer, message_id bigint, key_id bigint, error text, sqlstate text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_message_failure as f (queue_id, position, key_id, failed_at, sqlstate, error)
  values (
    queue_id, message_id, key_id, clock_timestamp(), substring(sqlstate from '^[0-9A-Z]{5}$'),
    left(coalesce(error, ''), 2000)
  )
  on conflict on constraint _p_message_failure_pkey do update
  set failed_at = excluded.failed_at, sqlstate = coalesce(excluded.sqlstate, f.sqlstate),
    error = case when _p_keep_error.error is null then f.error else excluded.error end, answer = null;
  perform parley._p_remove_old_failures(queue_id);
end
$$;

comment on function parley._p_keep_error(integer, bigint, bigint, text, text) is
'Keeps the last error of a message of a simple queue.';

create function parley.retry(
  queue text, message_id bigint, error text default null, sqlstate text default null, delay interval default null,
  caller parley.caller default parley.current_caller(),
  out retry_at timestamptz, out is_set_aside boolean
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(parley._p_caller(caller), queue, 'RECEIVE');
begin
  found := parley._p_require_delay(delay);
  select f.retry_at, f.is_set_aside into retry_at, is_set_aside
  from parley._p_fail_message(v_queue, message_id, error, sqlstate, delay, false, false) as f;
end
$$;

comment on function parley.retry(text, bigint, text, text, interval, parley.caller) is
'Reports that the work on a message of a simple queue failed, and has it wait for its next attempt, by the retry policy
of the queue. Call it when the message is in the queue again: after a rollback, or in the same transaction after a
rollback to a savepoint before TAKE. It keeps its message_id, and those behind it of its key wait with it.
Arguments: queue; message_id; error, the text to keep, of which 2,000 characters are; sqlstate, of the error; delay, for
how long it waits, 0 to 7 days (null: by the policy).
Returns retry_at, when it is taken again at the earliest, null when it need not wait; and is_set_aside, whether it was
set aside, because it has failed as often as the policy allows. Both are null when the message is gone, or others have
taken it meanwhile: they report themselves. Readers leave what came back alone to this call for half a second. Another
report of the same attempt is not counted: its error is kept, and its delay holds, where it has one.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue or delay out of range, 9609 malformed name.
Source: spec P32, 5.6.';

create function parley.fail(
  queue text, message_id bigint, error text default null, sqlstate text default null,
  caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(parley._p_caller(caller), queue, 'RECEIVE');
begin
  return coalesce(
    (parley._p_fail_message(v_queue, message_id, error, sqlstate, null, true, false)).is_set_aside, false
  );
end
$$;

comment on function parley.fail(text, bigint, text, text, parley.caller) is
'Sets a message of a simple queue aside at once, because another attempt would be in vain:
parley.set_aside_messages. Call it as parley.retry.
Arguments: queue; message_id; error, the text to keep, of which 2,000 characters are; sqlstate, of the error.
Returns whether it did: not when the message is gone or in the hands of others.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, 9609 malformed name.
Source: spec P32, 5.6.';

create function parley.cancel(
  queue text, message_id bigint, running boolean default false,
  caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(parley._p_caller(caller), queue, 'RECEIVE');
  v_row_id tid;
begin
  select m.ctid into v_row_id
  from parley._p_message as m
  where m.lane in (select * from parley._p_lanes(v_queue.queue_id)) and m.position = message_id
  for update skip locked;
  if not found or not coalesce(running, false) and parley._p_is_message_claimed(v_queue.queue_id, message_id) then
    return false;
  end if;
  -- The worker learns from its next renewal that there is nothing to complete.
  delete from parley._p_message_claim as c where c.queue_id = v_queue.queue_id and c.position = message_id;
  delete from parley._p_message as m where m.ctid = v_row_id and m.position = message_id;
  delete from parley._p_message_wait as w where w.queue_id = v_queue.queue_id and w.position = message_id;
  delete from parley._p_message_failure as f where f.queue_id = v_queue.queue_id and f.position = message_id;
  return true;
end
$$;

comment on function parley.cancel(text, bigint, boolean, parley.caller) is
'Withdraws a message that waits in a simple queue, for its turn or for another attempt. One that is not due yet
parley.withdraw_message withdraws, one that is set aside parley.discard_message.
Arguments: queue; message_id, as put with a deduplication key, parley.put_each, parley.peek_messages and
parley.failing_messages give it; running, also when somebody has claimed it (parley.claim), who finds that out when he
renews or completes.
Returns whether it did: not when it is gone, or somebody has it in his hands.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, 9609 malformed name.
Source: spec P32.';

create function parley.record_message_failure(
  queue text, message_id bigint, sqlstate text, message text, caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set lock_timeout = '1s'
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(parley._p_caller(caller), queue, 'RECEIVE');
  v_key_id bigint := parley._p_key_of_message(v_queue.queue_id, message_id);
begin
  if v_key_id is null then
    return false;
  end if;
  if (parley._p_fail_message(v_queue, message_id, message, sqlstate, null, false, false)).is_set_aside is null then
    -- Others have it, or it is set aside: they count.
    perform parley._p_keep_error(v_queue.queue_id, message_id, v_key_id, message, sqlstate);
  end if;
  return true;
exception
  when others then
    return false;
end
$$;

comment on function parley.record_message_failure(text, bigint, text, text, parley.caller) is
'Reports that a transaction that had taken a message from a simple queue has failed, and why. Call it afterwards, in a
transaction of its own, when it had taken that message alone: of several nobody knows which was bad. The last report of
each message is kept, for a day or as long as the message waits or is set aside; parley.set_aside_messages and
parley.failing_messages show it. In a queue with a retry policy the message waits then, as by parley.retry. In another
one it counts nothing: the rollback is counted when the message is taken again.
Returns whether it was recorded: not when the message is gone.
Arguments: queue; message_id; sqlstate of the error, null when it came from elsewhere; message, its text, of which the
first 2,000 characters are kept.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, 9609 malformed name.
Source: spec P32, 5.6.';
