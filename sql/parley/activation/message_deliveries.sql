-- Messages of simple queues that are handed on to somebody outside of the transaction, a webhook above all: shown and
-- claimed, then delivered, then taken.
--
-- As for conversations (activation/deliveries.sql): no transaction is open meanwhile. Without a claim the locks of the
-- rows hold them, to the end of the transaction. A message that was not accepted waits, and those behind it of its key;
-- others go on (activation/refused_messages.sql). The limits of the queue hold as for TAKE (simple/limits.sql).
-- A batch is of messages without keys, or of one key.
-- Invariants, and what keeps each:
--   a message is delivered by one reader at a time    its claim, or the lock of its row, which TAKE passes by too
--   of one key only the first is delivered            the condition of TAKE
-- Locks: a row of _p_limit_slot where the queue is limited; message rows, skip locked; the session that records a claim
-- waits for those of its own messages, since a late reader may hold one to the end of its transaction. Cost: the rows
-- in front that others have in their hands or that wait for a webhook's own time are scanned.

create function parley._p_is_deliverable(queue_id integer, "position" bigint) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return not exists (
    select
    from parley._p_message_failure as f
    where f.queue_id = _p_is_deliverable.queue_id
      and f.position = _p_is_deliverable.position
      and f.retry_at > clock_timestamp()
  ) and not parley._p_is_message_claimed(queue_id, position);
end
$$;

comment on function parley._p_is_deliverable(integer, bigint) is
'Reports whether a message of a simple queue neither waits after a failure nor is being delivered.';

create function parley._p_lock_message_delivery(lane integer, out "position" bigint, out key_id bigint)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue_id constant integer := parley._p_owner_of_lane(lane);
  v_id constant bigint := parley._p_key_id(v_queue_id, null);
  v_begin bigint;
  v_before bigint;
  v_found record;
begin
  select m.position into v_begin
  from parley._p_message as m
  where m.lane = _p_lock_message_delivery.lane
    and m.position >= (parley._p_known_of(_p_lock_message_delivery.lane)).low_position
  order by m.position
  limit 1;
  if not found then
    return;
  end if;
  v_before := v_begin + 1024 * 64;
  select n.position, n.endpoint_id into position, key_id
  from parley._p_message as n
  where n.lane = _p_lock_message_delivery.lane and n.position >= v_begin and n.position < v_before
    and parley._p_is_deliverable(v_queue_id, n.position)
    and parley._p_is_first_of_key(v_queue_id, n.endpoint_id, n.position)
  order by n.position
  limit 1
  for update of n skip locked;
  if found then
    return;
  end if;
  select n.position, n.endpoint_id into position, key_id
  from parley._p_message as n
  where n.endpoint_id = v_id
    -- By the index of keys, whatever statistics say: that of lanes would lead past all that wait.
    and (n.endpoint_id, n.position) >= (v_id, v_before)
    and n.lane + 0 = _p_lock_message_delivery.lane
    and parley._p_is_deliverable(v_queue_id, n.position)
  order by n.endpoint_id, n.position
  limit 1
  for update of n skip locked;
  if found then
    return;
  end if;
  -- More rows than readers have in their hands as a rule, and few that wait; where none of these is free, of any key.
  for v_found in
    select f.row_id, f.position, f.key_id
    from (
      select m.ctid as row_id, m.position, m.endpoint_id as key_id
      from parley._p_message as m
      where m.lane = _p_lock_message_delivery.lane and m.position >= v_before
        and parley._p_is_deliverable(v_queue_id, m.position)
      order by m.position
      limit 64
    ) as f
    where parley._p_is_first_of_key(v_queue_id, f.key_id, f.position)
    union all
    select f.row_id, f.position, f.key_id
    from parley._p_some_first_of_keys(_p_lock_message_delivery.lane) as f
    where f.position >= v_before and parley._p_is_deliverable(v_queue_id, f.position)
  loop
    perform
    from parley._p_message as n
    where n.ctid = v_found.row_id and n.position = v_found.position and n.endpoint_id + 0 = v_found.key_id
    for update of n skip locked;
    if found then
      position := v_found.position;
      key_id := v_found.key_id;
      return;
    end if;
  end loop;
end
$$;

comment on function parley._p_lock_message_delivery(integer) is
'Finds and locks a message of a lane that nobody has taken, is the first of its key, and need not wait after a failure:
the first one among the first rows, then the first without a key, then the first of some keys (simple/keys.sql).';

create function parley._p_lock_waited_delivery(
  queue_id integer, now timestamptz, out "position" bigint, out key_id bigint
)
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select n.position, n.endpoint_id
  from parley._p_message_wait as w
  join parley._p_message as n on n.lane = parley._p_waiting_lane($1) and n.position = w.position
  where w.queue_id = $1
    and w.retry_at <= $2
    and not parley._p_is_message_claimed($1, w.position)
    and parley._p_is_first_of_key($1, n.endpoint_id, n.position)
  order by w.retry_at, w.position
  limit 1
  for update of n skip locked
$$;

comment on function parley._p_lock_waited_delivery(integer, timestamptz) is
'Finds and locks the message of a simple queue whose wait ended first, that nobody has taken, and that is the first of
its key. It reads none whose wait lasts.';

create function parley._p_deliverable_messages(lane integer, first bigint, key_id bigint, top integer)
returns setof parley.taken_message
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select n.position, n.message_key, parley._p_priority_of(n), n.body, n.enqueued_at, n.trace_context,
    coalesce(
      (
        select w.attempts + w.losses
        from parley._p_message_wait as w
        where w.queue_id = parley._p_owner_of_lane($1) and w.position = n.position
          and $1 = parley._p_waiting_lane(parley._p_owner_of_lane($1))
      ),
      0
    ) + 1
  from parley._p_message as n
  where n.lane + 0 = $1
    and n.endpoint_id = $3
    -- By the index of keys, whatever statistics say: that of lanes would lead past all that wait.
    and (n.endpoint_id, n.position) >= ($3, $2)
    -- Two keys may have one endpoint_id: they take turns, and never come together.
    and n.message_key is not distinct from (
      select o.message_key from parley._p_message as o where o.lane = $1 and o.position = $2
    )
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
          and (f.position = n.position or $3 & 2147483647 <> 0)
      )
      and (
        $3 & 2147483647 = 0
        or not exists (
          select
          from parley._p_message as o
          where o.endpoint_id = $3
            and o.position < n.position
            and o.lane not in ($1, parley._p_set_aside_lane(parley._p_owner_of_lane($1)))
        )
      )
    )
  order by n.endpoint_id, n.position
  limit top
  for update of n skip locked
$$;

comment on function parley._p_deliverable_messages(integer, bigint, bigint, integer) is
'Locks and shows messages to deliver together: the first, which is locked already, and what comes next of its key, or
next without a key. One that has failed comes alone.
Arguments: lane; first, its position; key_id, its endpoint_id; top, how many at most.';

create function parley._p_find_message_delivery(
  caller oid, queue parley._p_queue, top integer, claim uuid, lease_ms integer, ageing_ms bigint
) returns setof parley.taken_message
language plpgsql rows 1
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_queue constant parley._p_queue := queue;
  v_waiting_lane constant integer := parley._p_waiting_lane(queue.queue_id);
  -- By turns with the others, so that an outage of what some of them need does not hold up the rest.
  v_is_late constant boolean := random() < 0.5;
  v_lane integer;
  v_found record;
  v_messages parley.taken_message[];
begin
  for v_lane in
    select case when p.n = -1 then v_waiting_lane else parley._p_lane(v_queue.queue_id, p.n) end
    from generate_series(10, -1, -1) as p (n)
    where p.n > 0 and v_queue.priorities & (1 << p.n) > 0 or p.n = -1 and v_queue.has_waits
    order by (p.n > 0) <> v_is_late,
      p.n + coalesce(
        case when p.n > 0 and ageing_ms > 0 then parley._p_age_of_lane(v_queue, p.n) / ageing_ms end, 0
      ) desc
  loop
    loop
      if v_lane = v_waiting_lane then
        select d.position, d.key_id into v_found
        from parley._p_lock_waited_delivery(v_queue.queue_id, clock_timestamp()) as d;
      else
        select d.position, d.key_id into v_found from parley._p_lock_message_delivery(v_lane) as d;
      end if;
      exit when v_found.position is null;
      v_messages := array(
        select d
        from parley._p_deliverable_messages(
          v_lane, v_found.position, v_found.key_id, case when v_lane = v_waiting_lane then 1 else top end
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

comment on function parley._p_find_message_delivery(oid, parley._p_queue, integer, uuid, integer, bigint) is
'Shows and claims messages as next_message_delivery does, whatever the limits of the queue. A message that has waited
after a failure comes alone.
Arguments: those of _p_next_message_delivery; ageing_ms, after how many milliseconds a message counts as one priority
higher, null for never.';

create function parley._p_next_message_delivery(
  caller oid, queue parley._p_queue, top integer, claim uuid, lease_ms integer
) returns setof parley.taken_message
language plpgsql rows 1
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit parley._p_queue_limit;
  v_slot integer;
  v_admitted integer := top;
  v_messages parley.taken_message[] := array[]::parley.taken_message[];
begin
  found := parley._p_require_range('top', top, 1, 100000);
  found := parley._p_require_range('lease_ms', lease_ms, 1, 3600000);
  if not queue.is_receive_enabled
    or queue.poison_action = 'DISABLE_QUEUE' and parley._p_is_poisoned(queue.queue_id) then
    found := parley._p_raise(9617, 'disabled', queue.lookup_name);
  elsif queue.readers_paused_at is not null then
    return;
  end if;
  if coalesce(pg_sequence_last_value('parley._p_next_due'), 0) <= extract(epoch from clock_timestamp()) * 1000000 then
    perform parley._p_deliver_due(queue.queue_id, 1000);
  end if;
  if queue.is_limited then
    select * into v_limit from parley._p_queue_limit as l where l.queue_id = queue.queue_id;
  end if;
  if v_limit.concurrency is null and v_limit.rate is null then
    return query
    select * from parley._p_find_message_delivery(caller, queue, top, claim, lease_ms, v_limit.ageing_ms);
    return;
  elsif not parley._p_has_something(queue) then
    return;
  end if;
  if v_limit.concurrency is not null then
    v_slot := parley._p_take_slot(v_limit.slots, v_limit.concurrency, claim is not null);
    if v_slot is null then
      return;
    end if;
  end if;
  if v_limit.rate is not null then
    v_admitted := parley._p_admit_by_rate(v_limit, top);
  end if;
  if v_admitted > 0 then
    v_messages := array(
      select d
      from parley._p_find_message_delivery(caller, queue, v_admitted, claim, lease_ms, v_limit.ageing_ms) as d
    );
  end if;
  if v_limit.rate is not null and cardinality(v_messages) < v_admitted then
    perform parley._p_admit_by_rate(v_limit, cardinality(v_messages) - v_admitted);
  end if;
  if v_slot is not null and claim is not null and cardinality(v_messages) > 0 then
    update parley._p_limit_slot as s
    set queue_id = queue.queue_id, claim = _p_next_message_delivery.claim
    where s.slots = v_limit.slots and s.slot = v_slot;
  end if;
  return query select * from unnest(v_messages);
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
Nothing is given while the readers of the queue are paused, or its limits hold the caller back. Call it at READ
COMMITTED. Commit, deliver, and renew the lease meanwhile (renew_delivery). Then call finish_message_delivery or
fail_message_delivery. Without a claim the messages stay locked to the end of the transaction; finish there, or roll
back and call fail_message_delivery.
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
