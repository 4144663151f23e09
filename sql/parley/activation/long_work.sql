-- Long work on messages of simple queues: no transaction is open meanwhile, and a lease says how long nobody else has
-- the message (simple/message_claims.sql).
--
-- A worker claims, commits, works, renews the lease now and then, and completes in the transaction of its results. A
-- worker that dies lets the lease run out: whoever claims next finds that, counts a loss, and the message waits by the
-- retry policy of the queue. Cancelling removes message and claim, and the worker learns it from its next renewal.
-- These functions say for a worker of any language what next_message_delivery and its like say for a web address.
--
-- Invariants, and what keeps each:
--   a result and the end of its message are one transaction   complete, which gives false when the claim was lost
--   a worker whose lease ran out completes nothing   the number of the claim, compared with the message locked
-- Locks: message rows, then claims.

create function parley._p_lose_expired(queue parley._p_queue) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_expired record;
begin
  for v_expired in
    select c.position, c.claim
    from parley._p_message_claim as c
    where c.queue_id = queue.queue_id and c.leased_until <= clock_timestamp()
    order by c.position
    limit 100
  loop
    declare
      v_message record;
    begin
      select m.ctid as row_id, m.lane into v_message
      from parley._p_message as m
      where m.lane in (select * from parley._p_lanes(queue.queue_id)) and m.position = v_expired.position
      for update skip locked;
      continue when not found;
      -- With the message locked: somebody may have claimed it anew.
      delete from parley._p_message_claim as c
      where c.queue_id = queue.queue_id
        and c.position = v_expired.position
        and c.claim = v_expired.claim
        and c.leased_until <= clock_timestamp();
      continue when not found;
      perform parley._p_make_message_wait(
        queue, v_expired.position, v_message.row_id, v_message.lane, 0, 1, null, false
      );
    end;
  end loop;
end
$$;

comment on function parley._p_lose_expired(parley._p_queue) is
'Counts a loss for each message of a queue with a retry policy whose lease ran out, and makes it wait.';

create function parley.claim(
  queue text, count integer default 1, lease interval default '1 minute',
  caller parley.caller default parley.current_caller()
) returns table (
  claim uuid, message_id bigint, key text, priority smallint, body bytea, enqueued_at timestamptz,
  trace_context text, attempt integer
)
language plpgsql security definer rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_simple_queue(v_caller, queue, 'RECEIVE');
  v_claim constant uuid := gen_random_uuid();
begin
  found := parley._p_require_interval('lease', lease, '1 millisecond', '1 hour');
  if (parley._p_retry_policy_of(v_queue)).queue_id is not null then
    perform parley._p_lose_expired(v_queue);
  end if;
  return query
  select v_claim, m.message_id, m.key, m.priority, m.body, m.enqueued_at, m.trace_context, m.attempt
  from parley._p_next_message_delivery(
    v_caller, v_queue, count, v_claim, parley._p_milliseconds(lease)::integer
  ) as m;
end
$$;

comment on function parley.claim(text, integer, interval, parley.caller) is
'Claims messages of a simple queue for long work, of one priority, and of one key or without keys. Commit, work, and
call parley.renew before the lease is over; then parley.complete in the transaction of the results, or parley.give_back.
They are in no other hands meanwhile, nor are those behind them of their key. When the lease runs out they are free
again, which counts as a loss where the queue has a retry policy. Nothing is given while the readers of the queue are
paused.
Arguments: queue; count, how many at most, 1 to 100,000; lease, for how long, up to an hour.
Columns: claim, the number that all of them have; the others as those of take.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, count or lease out of range, 9609 malformed name, 9617
the queue is disabled.
Source: spec P32.';

create function parley.renew(
  queue text, claim uuid, lease interval default '1 minute', progress jsonb default null,
  caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(parley._p_caller(caller), queue, 'RECEIVE');
  v_now constant timestamptz := clock_timestamp();
begin
  found := parley._p_require_interval('lease', lease, '1 millisecond', '1 hour');
  update parley._p_message_claim as c
  set leased_until = v_now + renew.lease, progress = coalesce(renew.progress, c.progress)
  where c.queue_id = v_queue.queue_id and c.claim = renew.claim and c.leased_until > v_now;
  return found;
end
$$;

comment on function parley.renew(text, uuid, interval, jsonb, parley.caller) is
'Renews the lease of what parley.claim gave, and returns whether anything of it is still held: break off when not,
because it was cancelled, or the lease was over and others have it.
Arguments: queue; claim; lease, from now on, up to an hour; progress, which parley.delivery_claims shows to those who
wait (null: as it was).
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue or lease out of range, 9609 malformed name.
Source: spec P32.';

create function parley.complete(
  queue text, claim uuid, result jsonb default null, caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(parley._p_caller(caller), queue, 'RECEIVE');
  v_ids bigint[] := array(
    select c.position
    from parley._p_message_claim as c
    where c.queue_id = v_queue.queue_id and c.claim = complete.claim and c.leased_until > clock_timestamp()
  );
begin
  perform parley._p_keep_done(v_queue, c.position, c.claimed_at, complete.result)
  from parley._p_message_claim as c
  where v_queue.keep_finished is not null and c.queue_id = v_queue.queue_id and c.claim = complete.claim;
  return cardinality(v_ids) > 0
    and parley.finish_message_delivery(queue, v_ids, claim, caller) = cardinality(v_ids);
end
$$;

comment on function parley.complete(text, uuid, jsonb, parley.caller) is
'Takes the messages that parley.claim gave, in this transaction, which is that of the results. Returns false when the
claim was lost or cancelled: then roll back.
Arguments: queue; claim; result, which parley.finished_messages shows where the queue keeps it.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, 9609 malformed name.
Source: spec P32.';

create function parley.give_back(
  queue text, claim uuid, error text default null, sqlstate text default null, delay interval default null,
  is_final boolean default false, caller parley.caller default parley.current_caller(),
  out retry_at timestamptz, out is_set_aside boolean
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(parley._p_caller(caller), queue, 'RECEIVE');
  v_ids bigint[] := array(
    select c.position
    from parley._p_message_claim as c
    where c.queue_id = v_queue.queue_id and c.claim = give_back.claim and c.leased_until > clock_timestamp()
  );
begin
  found := parley._p_require_delay(delay);
  if delay is not null and is_final then
    found := parley._p_raise(8402, 'delay of what is final', 'delay');
  elsif cardinality(v_ids) = 0 or not parley._p_record_messages(v_queue, claim, v_ids) then
    return;
  elsif cardinality(v_ids) > 1 and delay is null and is_final is not true then
    -- It is not known which of them was bad: each may be claimed again.
    is_set_aside := false;
    return;
  end if;
  select min(f.retry_at), bool_or(f.is_set_aside) into retry_at, is_set_aside
  from unnest(v_ids) as i (message_id)
  cross join lateral parley._p_fail_message(
    v_queue, i.message_id, error, sqlstate, delay, coalesce(is_final, false), true
  ) as f;
end
$$;

comment on function parley.give_back(text, uuid, text, text, interval, boolean, parley.caller) is
'Gives back what parley.claim gave, because the work failed: a message waits for its next attempt, as by parley.retry.
Of several nobody knows which was bad; they are free at once, unless delay or is_final is given.
Arguments: queue; claim; error, the text to keep; sqlstate, of the error; delay, for how long it waits, 0 to 7 days
(null: by the retry policy of the queue); is_final, whether another attempt would be in vain: they are set aside at
once.
Returns retry_at and is_set_aside as parley.retry; both are null when the claim was lost.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, delay out of range or with is_final, 9609 malformed
name.
Source: spec P32.';
