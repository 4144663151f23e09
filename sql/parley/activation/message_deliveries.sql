-- Messages of simple queues that are handed on to somebody outside of the transaction, a webhook above all: shown and
-- claimed, then delivered, then taken.
--
-- As for conversations (activation/deliveries.sql): no transaction is open meanwhile, and fail_message_delivery counts
-- a delivery that fails. Without a claim the locks of the rows hold them, to the end of the transaction. Only that
-- message waits, and those behind it of its key; others go on.
-- A batch is of messages without keys, or of one key. When one is refused nobody knows for which message: nothing is
-- counted, and each of them comes alone after that.
-- Invariants, and what keeps each:
--   a message is delivered by one reader at a time    its claim, or the lock of its row, which TAKE passes by too
--   of one key only the first is delivered            the condition of TAKE
-- Locks: message rows, skip locked. Cost: the rows in front that others have in their hands or that wait are scanned.

create function parley._p_lock_message_delivery(lane integer, out "position" bigint, out key_id bigint)
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select n.position, n.endpoint_id
  from parley._p_message as n
  where n.lane = $1
    and n.position >= coalesce((select h.low_position from parley._p_newest_hint($1) as h), 0)
    and not exists (
      select
      from parley._p_message_failure as f
      where f.queue_id = parley._p_owner_of_lane($1) and f.position = n.position and f.retry_at > clock_timestamp()
    )
    and (
      $1 <> parley._p_waiting_lane(parley._p_owner_of_lane($1))
      or exists (
        select
        from parley._p_message_wait as w
        where w.queue_id = parley._p_owner_of_lane($1) and w.position = n.position
          and w.retry_at <= clock_timestamp()
      )
    )
    and not parley._p_is_message_claimed(parley._p_owner_of_lane($1), n.position)
    and parley._p_is_first_of_key(parley._p_owner_of_lane($1), n.endpoint_id, n.position)
  order by n.position
  limit 1
  for update of n skip locked
$$;

comment on function parley._p_lock_message_delivery(integer) is
'Finds and locks the first message of a lane that nobody has taken, is the first of its key, and need not wait after a
failure.';

create function parley._p_deliverable_messages(lane integer, first bigint, key_id bigint, top integer)
returns setof parley.taken_message
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select n.position, n.message_key, parley._p_priority_of(n), n.body, n.enqueued_at, n.trace_context, 1
  from parley._p_message as n
  where n.lane = $1
    and n.endpoint_id = $3
    and n.position >= $2
    and not parley._p_is_message_claimed(parley._p_owner_of_lane($1), n.position)
    and (
      n.position = $2
      or not exists (
        select
        from parley._p_message_failure as f
        where f.queue_id = parley._p_owner_of_lane($1) and f.position = $2
      )
      and not exists (
        select
        from parley._p_message_failure as f
        where f.queue_id = parley._p_owner_of_lane($1)
          and f.key_id = $3
          and f.position >= $2
          and (f.position = n.position or $3 <> -9223372036854775807)
      )
      and (
        $3 = -9223372036854775807
        or not exists (
          select
          from parley._p_message as o
          where o.endpoint_id = $3
            and o.position < n.position
            and o.lane not in ($1, parley._p_set_aside_lane(parley._p_owner_of_lane($1)))
            and parley._p_owner_of_lane(o.lane) = parley._p_owner_of_lane($1)
        )
      )
    )
  order by n.position
  limit top
  for update of n skip locked
$$;

comment on function parley._p_deliverable_messages(integer, bigint, bigint, integer) is
'Locks and shows messages to deliver together: the first, which is locked already, and what comes next of its key, or
next without a key. One that has failed comes alone.
Arguments: lane; first, its position; key_id, its endpoint_id; top, how many at most.';

create function parley._p_next_message_delivery(
  caller oid, queue parley._p_queue, top integer, claim uuid, lease_ms integer
) returns setof parley.taken_message
language plpgsql rows 1
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_queue constant parley._p_queue := queue;
  v_lane integer;
  v_found record;
  v_messages parley.taken_message[];
begin
  found := parley._p_require_range('top', top, 1, 100000);
  found := parley._p_require_range('lease_ms', lease_ms, 1, 3600000);
  if not v_queue.is_receive_enabled
    or v_queue.poison_action = 'DISABLE_QUEUE' and parley._p_is_poisoned(v_queue.queue_id) then
    found := parley._p_raise(9617, 'disabled', v_queue.lookup_name);
  elsif v_queue.readers_paused_at is not null then
    return;
  end if;
  if coalesce(pg_sequence_last_value('parley._p_next_due'), 0) <= extract(epoch from clock_timestamp()) * 1000000 then
    perform parley._p_deliver_due(v_queue.queue_id, 1000);
  end if;
  -- A message that has waited after a failure of another reader comes first, and alone.
  for v_lane in
    select parley._p_lane(v_queue.queue_id, p.n)
    from generate_series(10, -1, -1) as p (n)
    where p.n > 0 and v_queue.priorities & (1 << p.n) > 0 or p.n = -1 and v_queue.has_waits
    order by p.n > 0, p.n desc
  loop
    loop
      select d.position, d.key_id into v_found from parley._p_lock_message_delivery(v_lane) as d;
      exit when v_found.position is null;
      v_messages := array(
        select d
        from parley._p_deliverable_messages(
          v_lane, v_found.position, v_found.key_id,
          case when v_lane = parley._p_waiting_lane(v_queue.queue_id) then 1 else top end
        ) as d
      );
      -- Somebody has claimed the one that was found between our scan and our lock: what stands behind it waits for it.
      continue when v_messages[1].message_id is distinct from v_found.position;
      if claim is null or parley._p_claim_messages(
        caller, v_queue, array(select u.message_id from unnest(v_messages) as u), claim, lease_ms * interval '1 ms'
      ) then
        return query select * from unnest(v_messages);
        return;
      end if;
    end loop;
  end loop;
end
$$;

comment on function parley._p_next_message_delivery(oid, parley._p_queue, integer, uuid, integer) is
'Shows and claims messages as next_message_delivery does, in the name of a caller that may take from the queue.
Errors: 8402, 9617.';

create function parley.next_message_delivery(
  queue text, top integer default 1, claim uuid default null, lease_ms integer default 30000,
  caller parley.caller default parley.current_caller()
) returns setof parley.taken_message
language plpgsql security definer rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_simple_queue(v_caller, queue, 'RECEIVE');
begin
  return query select * from parley._p_next_message_delivery(v_caller, v_queue, top, claim, lease_ms);
end
$$;

comment on function parley.next_message_delivery(text, integer, uuid, integer, parley.caller) is
'Shows the next messages of a simple queue without taking them, and claims them: of one priority, and of one key or
without keys. A message that others have taken, shown or claimed is passed over, and so are messages whose delivery
failed, and those behind them of their key, until it is time to try again. A message that has failed comes alone.
Nothing is given while the readers of the queue are paused. Call it at READ COMMITTED. Commit, deliver, and renew the
lease meanwhile (renew_delivery). Then call finish_message_delivery or fail_message_delivery. Without a claim the
messages stay locked to the end of the transaction; finish there, or roll back and call fail_message_delivery.
Arguments: queue; top, at most so many messages, 1 to 100,000; claim, a number for the claim that is new, null for none;
lease_ms, for how many milliseconds it lasts unless it is renewed, 1 to 3,600,000.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, top or lease_ms out of range, 9609 malformed name,
9617 the queue is disabled.
Source: spec P32.';

create function parley.finish_message_delivery(
  queue text, message_ids bigint[], claim uuid default null, caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(parley._p_caller(caller), queue, 'RECEIVE');
  v_taken bigint;
begin
  if claim is not null and not parley._p_record_messages(v_queue, claim, message_ids) then
    return 0;
  end if;
  with picked as materialized (
    select n.ctid as row_id, n.position
    from parley._p_message as n
    where n.lane in (select * from parley._p_lanes(v_queue.queue_id))
      and n.position = any (message_ids)
    for update skip locked
  ), taken as (
    delete from parley._p_message as m using picked as p where m.ctid = p.row_id returning m.position
  ), forgotten as (
    delete from parley._p_message_failure as f using taken as t
    where f.queue_id = v_queue.queue_id and f.position = t.position
  ), waited as (
    delete from parley._p_message_wait as w using taken as t
    where w.queue_id = v_queue.queue_id and w.position = t.position
  )
  select count(*) into v_taken from taken;
  return v_taken;
end
$$;

comment on function parley.finish_message_delivery(text, bigint[], uuid, parley.caller) is
'Takes messages that next_message_delivery has shown and that were accepted, and gives up their claim. Returns how many
it has taken. Roll back when these are not all: some have come into other hands meanwhile.
Arguments: queue; message_ids; claim, its number, null for none.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, 9609 malformed name.
Source: spec P32.';

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
  v_failures integer;
  v_longest interval;
begin
  is_set_aside := false;
  is_attempt := coalesce(is_attempt, true);
  is_lost := claim is not null and not parley._p_record_messages(v_queue, claim, message_ids);
  if is_lost then
    attempts := 0;
    return;
  end if;
  select * into v_activation from parley._p_external_activation as a where a.queue_id = v_queue.queue_id;
  if v_activation.first_retry_ms is not null then
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
  if not v_is_batch and v_activation.max_attempts > 0 and (is_final or attempts >= v_activation.max_attempts) then
    is_set_aside := parley._p_set_aside_message_delivery(v_queue, message_ids[1], attempts);
  end if;
  -- Of what was refused together each comes alone at once.
  if is_set_aside or v_is_batch and is_attempt then
    return;
  end if;
  v_longest := v_activation.longest_retry_ms * interval '1 ms';
  -- As for conversations: a tenth is left to chance, so that what failed together does not come back together.
  update parley._p_message_failure as f
  set retry_at = clock_timestamp() + (0.9 + 0.1 * random()) * least(
      v_longest,
      greatest(
        coalesce(retry_ms, 0) * interval '1 ms',
        parley._p_back_off(v_failures, v_activation.first_retry_ms * interval '1 ms', v_longest)
      )
    )
  where f.queue_id = v_queue.queue_id and f.position = any (message_ids);
end
$$;

comment on function parley.fail_message_delivery(
  text, bigint[], text, boolean, integer, boolean, text, uuid, parley.caller
) is
'Records that messages of a simple queue were delivered and not accepted: they are passed over for a while, which
doubles each time. After max_attempts of the webhook a message is set aside, whatever the poison message handling of
the queue. Several that were refused together count nothing, and come alone after that. For messages that are gone, and
queues without a webhook, nothing is recorded.
It gives up the claim. Where a transaction holds the delivery roll that back before. Returns attempts, how many have
been counted, is_set_aside, and is_lost, whether some of the claim was lost before: then nothing is recorded.
Arguments: queue; message_ids; error, for people; is_attempt, whether it counts towards max_attempts (a receiver that is
not there says nothing about the message); retry_ms, milliseconds that the receiver asks to wait; is_final, whether the
receiver will never accept it; answer, what the receiver said, without secrets, of which the first 4,096 characters are
kept; claim, its number, null for none.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, 9609 malformed name.
Source: spec P32.';

create function parley.seconds_to_next_message_delivery(
  queue text, caller parley.caller default parley.current_caller()
) returns double precision
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_queue parley._p_queue := parley._p_find_simple_queue(parley._p_caller(caller), queue, 'RECEIVE');
begin
  return (
    -- greatest() would make 0 of null.
    select case
      when count(*) > 0 then greatest(0, extract(epoch from min(f.retry_at) - clock_timestamp()))
    end::double precision
    from parley._p_message_failure as f
    where f.queue_id = v_queue.queue_id
      and f.retry_at is not null
      and not exists (
        select from parley._p_set_aside_message as s where s.queue_id = f.queue_id and s.position = f.position
      )
      and parley._p_key_of_message(f.queue_id, f.position) is not null
  );
end
$$;

comment on function parley.seconds_to_next_message_delivery(text, parley.caller) is
'Shows in how many seconds a message of a simple queue that failed to be delivered may be tried again; null when there
is none.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, 9609 malformed name.
Source: spec P32.';
