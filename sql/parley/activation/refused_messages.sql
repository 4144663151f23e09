-- Messages of simple queues that were delivered outside of the transaction and not accepted (message_deliveries.sql).
--
-- Where the queue has a retry policy they wait by it, as after a failure of a worker, in the same rows
-- (simple/waits.sql); otherwise by the numbers of the webhook, in the row of their failure (simple/failures.sql). A
-- receiver that is not there says nothing about a message: the wait grows, and no attempt is counted.
-- When a batch is refused nobody knows for which message: nothing is counted, and each of them comes alone after that.
-- Locks: rows of failures, then messages, skip locked, then those of waits.sql.

create function parley._p_record_message_failure(
  queue_id integer, message_ids bigint[], is_attempt boolean, error text, answer text, out attempts integer,
  out failures integer
)
language sql
set search_path = pg_catalog, pg_temp
as $$
  with recorded as (
    insert into parley._p_message_failure as f (
      queue_id, position, key_id, failed_at, sqlstate, error, answer, failures, attempts, retry_at
    )
    select $1, u.position, k.id, clock_timestamp(), case when $3 then '38000' else '08006' end, left($4, 2000),
      left($5, 4096), 1, $3::integer, clock_timestamp()
    from (select distinct unnest($2)) as u (position)
    cross join lateral parley._p_key_of_message($1, u.position) as k (id)
    where k.id is not null
    order by u.position
    on conflict on constraint _p_message_failure_pkey do update
    set failed_at = excluded.failed_at, sqlstate = excluded.sqlstate, error = excluded.error, answer = excluded.answer,
      failures = least(f.failures, 1000000) + 1, attempts = f.attempts + excluded.attempts,
      retry_at = excluded.retry_at
    returning f.failures, f.attempts
  )
  select max(r.attempts), max(r.failures) from recorded as r
$$;

comment on function parley._p_record_message_failure(integer, bigint[], boolean, text, text) is
'Records that messages were delivered and not accepted, and gives the greatest counts; null when none is there any more.
Arguments: queue_id; message_ids; is_attempt, whether it counts towards max_attempts; error; answer.';

create function parley._p_set_aside_message_delivery(queue parley._p_queue, "position" bigint, attempts integer)
returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message record;
begin
  select n.ctid as row_id, parley._p_priority_of(n) as priority into v_message
  from parley._p_message as n
  where n.lane in (select * from parley._p_lanes(queue.queue_id))
    and n.position = _p_set_aside_message_delivery.position
  for update skip locked;
  if not found then
    return false;
  end if;
  update parley._p_message as m set lane = parley._p_set_aside_lane(queue.queue_id) where m.ctid = v_message.row_id;
  insert into parley._p_set_aside_message (queue_id, position, priority, rollbacks)
  values (queue.queue_id, position, v_message.priority, attempts);
  delete from parley._p_message_wait as w
  where w.queue_id = queue.queue_id and w.position = _p_set_aside_message_delivery.position;
  return true;
end
$$;

comment on function parley._p_set_aside_message_delivery(parley._p_queue, bigint, integer) is
'Sets a message aside whose delivery was refused too often; gives false when somebody has it in his hands.';

create function parley._p_make_deliveries_wait(
  queue parley._p_queue, message_ids bigint[], attempts integer, failures integer, retry_ms integer, is_final boolean
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_policy constant parley._p_retry_policy := parley._p_retry_policy_of(queue);
  v_message record;
  v_waits record;
  v_is_set_aside boolean := false;
begin
  -- Its wait is that of the message alone, and stands with it.
  update parley._p_message_failure as f
  set retry_at = null
  where f.queue_id = queue.queue_id and f.position = any (message_ids);
  for v_message in
    select m.position, m.ctid as row_id, m.lane
    from parley._p_message as m
    where m.lane in (select * from parley._p_lanes(queue.queue_id)) and m.position = any (message_ids)
    order by m.position
    for update skip locked
  loop
    select w.is_set_aside into v_waits
    from parley._p_make_message_wait(
      queue, v_message.position, v_message.row_id, v_message.lane, attempts, 0,
      parley._p_delivery_wait(v_policy, null, failures, retry_ms), is_final
    ) as w;
    v_is_set_aside := v_is_set_aside or v_waits.is_set_aside;
  end loop;
  return v_is_set_aside;
end
$$;

comment on function parley._p_make_deliveries_wait(
  parley._p_queue, bigint[], integer, integer, integer, boolean
) is
'Makes messages wait that were delivered and not accepted, by the retry policy of their queue, and reports whether one
was set aside. Those that somebody has in his hands are passed by.
Arguments: queue; message_ids; attempts, how many are added; failures, after how many in a row this wait is; retry_ms,
milliseconds that the receiver asks to wait, null for none; is_final, set them aside now.';

create function parley.fail_message_delivery(
  queue text, message_ids bigint[], error text, is_attempt boolean default true, retry_ms integer default null,
  is_final boolean default false, answer text default null, claim uuid default null,
  caller parley.caller default parley.current_caller(),
  out attempts integer, out is_set_aside boolean, out is_lost boolean
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(parley._p_caller(caller), queue, 'RECEIVE');
  v_is_batch boolean := cardinality(message_ids) > 1;
  v_activation parley._p_external_activation;
  v_policy parley._p_retry_policy := parley._p_retry_policy_of(v_queue);
  v_failures integer;
begin
  if retry_ms is not null and is_final then
    found := parley._p_raise(8402, 'delay of what is final', 'retry_ms');
  end if;
  is_set_aside := false;
  is_attempt := coalesce(is_attempt, true);
  is_final := coalesce(is_final, false);
  is_lost := claim is not null and not parley._p_record_messages(v_queue, claim, message_ids);
  if is_lost then
    attempts := 0;
    return;
  end if;
  select * into v_activation from parley._p_external_activation as a where a.queue_id = v_queue.queue_id;
  if v_activation.first_retry_ms is not null or v_policy.queue_id is not null then
    perform parley._p_remove_old_failures(v_queue.queue_id);
    select r.attempts, r.failures into attempts, v_failures
    from parley._p_record_message_failure(
      v_queue.queue_id, message_ids, is_attempt and not v_is_batch, error, answer
    ) as r;
  end if;
  if attempts is null then
    attempts := 0;
    return;
  end if;
  if v_policy.queue_id is not null then
    -- Of what was refused together each comes alone at once.
    if not (v_is_batch and is_attempt) then
      is_set_aside := parley._p_make_deliveries_wait(
        v_queue, message_ids, is_attempt::integer, v_failures, retry_ms, is_final and not v_is_batch
      );
    end if;
    return;
  end if;
  if not v_is_batch and v_activation.max_attempts > 0 and (is_final or attempts >= v_activation.max_attempts) then
    is_set_aside := parley._p_set_aside_message_delivery(v_queue, message_ids[1], attempts);
  end if;
  -- Of what was refused together each comes alone at once.
  if is_set_aside or v_is_batch and is_attempt then
    return;
  end if;
  update parley._p_message_failure as f
  set retry_at = clock_timestamp() + parley._p_delivery_wait(v_policy, v_activation, v_failures, retry_ms)
  where f.queue_id = v_queue.queue_id and f.position = any (message_ids);
end
$$;

comment on function parley.fail_message_delivery(
  text, bigint[], text, boolean, integer, boolean, text, uuid, parley.caller
) is
'Records that messages of a simple queue were delivered and not accepted. They wait by the retry policy of the queue,
and are set aside as it says. In a queue without one they are passed over for first_retry_ms of the webhook, twice as
long each time up to longest_retry_ms, and after max_attempts a message is set aside, whatever the poison message
handling of the queue. Several that were refused together count nothing, and come alone after that. For messages that
are gone, and queues with neither, nothing is recorded.
It gives up the claim. Where a transaction holds the delivery roll that back before. Returns attempts, how many have
been counted, is_set_aside, and is_lost, whether some of the claim was lost before: then nothing is recorded.
Arguments: queue; message_ids; error, for people; is_attempt, whether it counts as an attempt (a receiver that is not
there says nothing about the message); retry_ms, milliseconds that the receiver asks to wait, at least: with a policy up
to a day, otherwise up to the longest wait; is_final, whether the receiver will never accept it; answer, what the
receiver said, without secrets, of which the first 4,096 characters are kept; claim, its number, null for none.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, retry_ms with is_final, 9609 malformed name.
Source: spec P32.';

create function parley.seconds_to_next_message_delivery(
  queue text, caller parley.caller default parley.current_caller()
) returns double precision
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(parley._p_caller(caller), queue, 'RECEIVE');
  v_next double precision;
begin
  -- greatest() would make 0 of null.
  select case when count(*) > 0 then greatest(0, extract(epoch from min(o.retry_at) - clock_timestamp())) end
  into v_next
  from (
    select f.retry_at
    from parley._p_message_failure as f
    where f.queue_id = v_queue.queue_id
      and f.retry_at is not null
      and not exists (
        select from parley._p_set_aside_message as s where s.queue_id = f.queue_id and s.position = f.position
      )
      and not parley._p_is_message_claimed(f.queue_id, f.position)
      and parley._p_key_of_message(f.queue_id, f.position) is not null
    union all
    (
      select w.retry_at
      from parley._p_message_wait as w
      where w.queue_id = v_queue.queue_id
        and not parley._p_is_message_claimed(w.queue_id, w.position)
        and parley._p_key_of_message(w.queue_id, w.position) is not null
      order by w.retry_at
      limit 1
    )
  ) as o;
  if v_queue.is_limited and parley._p_has_something(v_queue) then
    -- When somebody gives up a place nobody is told.
    v_next := least(
      v_next,
      (
        select greatest(parley._p_seconds_to_rate(l), case when l.concurrency is not null then 0.25 end)
        from parley._p_queue_limit as l
        where l.queue_id = v_queue.queue_id
      )
    );
  end if;
  return v_next;
end
$$;

comment on function parley.seconds_to_next_message_delivery(text, parley.caller) is
'Shows in how many seconds it is worth asking for a delivery of a simple queue again: when a message that failed to be
delivered may be tried, or the limits of the queue may let one through; null when nothing waits for either.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, 9609 malformed name.
Source: spec P32.';
