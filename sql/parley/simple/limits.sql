-- Limits of simple queues: how many may hold messages at once, of a queue or of several together, how many messages may
-- be taken in a time, and how messages that wait for long come before those of higher priority. They are those of TAKE
-- and of claims, which long work and web addresses make (activation/message_deliveries.sql).
--
-- Concurrency: who holds messages has one of so many rows (simple/limit_slots.sql). A session that finds none free
-- takes nothing, as from an empty queue. Queues of one owner that name the same limit share its rows, under the number
-- of the owner (base/role_numbers.sql). It takes the rights of the owner to name one: whoever holds messages of one of
-- them holds up the readers of the others.
-- Rate: a sequence says when the next message may be taken, outside any transaction, so that what was taken and rolled
-- back counts. It is read and set with the row of the limit locked, in a block that gives the lock back.
--
-- Invariants, and what keeps each:
--   no more than allowed hold messages   simple/limit_slots.sql
--   a session that waits holds nobody up   it locks a row when there is something to take, and ends when it got nothing
-- Locks: a row of _p_limit_slot, skip locked, before message rows; that of _p_queue_limit inside one call.
-- Cost: TAKE of a queue without limits compares a column that it has read anyway.

create table parley._p_queue_limit (
  queue_id integer primary key references parley._p_queue on delete cascade,
  concurrency integer check (concurrency between 1 and 1000),
  slots text,
  rate integer check (rate between 1 and 1000000),
  per_ms bigint,
  rate_sequence regclass,
  ageing_ms bigint
);

comment on table parley._p_queue_limit is
'Limits of simple queues: concurrency transactions at once, counted by the rows of _p_limit_slot that have the name
slots; rate messages in per_ms; a message that has waited for ageing_ms counts as one priority higher.';

create function parley._p_admit_by_rate(queue_limit parley._p_queue_limit, messages integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now bigint;
  v_step bigint := greatest(1, queue_limit.per_ms * 1000 / queue_limit.rate);
  v_next bigint;
  v_admitted integer := 0;
begin
  v_now := extract(epoch from clock_timestamp()) * 1000000;
  if messages > 0
    and v_now + queue_limit.per_ms * 1000 - coalesce(pg_sequence_last_value(queue_limit.rate_sequence), 0) < v_step then
    -- Nothing is locked, so that a session that waits goes on waiting.
    return 0;
  end if;
  begin
    perform from parley._p_queue_limit as l where l.queue_id = queue_limit.queue_id for update;
    v_now := extract(epoch from clock_timestamp()) * 1000000;
    v_next := greatest(coalesce(pg_sequence_last_value(queue_limit.rate_sequence), 0), v_now);
    if messages < 0 then
      v_next := v_next + messages * v_step;
    else
      v_admitted := least(messages, greatest(0, (v_now + queue_limit.per_ms * 1000 - v_next) / v_step));
      v_next := v_next + v_admitted * v_step;
    end if;
    perform setval(queue_limit.rate_sequence, greatest(v_next, 0));
    raise exception 'admitted' using errcode = 'PB002';
  exception
    when sqlstate 'PB002' then
      null;
  end;
  return v_admitted;
end
$$;

comment on function parley._p_admit_by_rate(parley._p_queue_limit, integer) is
'Gives how many of so many messages may be taken now by the rate of a queue, and counts them; a negative number gives
back what was counted and not taken.';

create function parley._p_seconds_to_rate(queue_limit parley._p_queue_limit) returns double precision
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select greatest(
    0,
    coalesce(pg_sequence_last_value(queue_limit.rate_sequence), 0) / 1000000.0 - queue_limit.per_ms / 1000.0
      + greatest(1, queue_limit.per_ms * 1000 / queue_limit.rate) / 1000000.0
      - extract(epoch from clock_timestamp())
  )::float8
  where queue_limit.rate is not null
$$;

comment on function parley._p_seconds_to_rate(parley._p_queue_limit) is
'Gives in how many seconds the next message may be taken by the rate of a queue; null when it has none.';

create function parley._p_take_within_limits(queue parley._p_queue, count integer, timeout integer)
returns setof parley.taken_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_limit parley._p_queue_limit;
  v_admitted integer := count;
  v_taken integer;
begin
  if not queue.is_limited then
    return query select * from parley._p_take_by_priority(queue, count, timeout);
    return;
  end if;
  select * into v_limit from parley._p_queue_limit as l where l.queue_id = queue.queue_id;
  if v_limit.concurrency is null and v_limit.rate is null then
    return query select * from parley._p_take_by_priority(queue, count, timeout, v_limit.ageing_ms);
    return;
  end if;
  if not parley._p_has_something(queue) then
    -- Messages that are due are moved; the rest waits for the next call.
    perform parley._p_deliver_due(queue.queue_id, 1000) where parley._p_has_due_message(queue.queue_id);
    return;
  elsif v_limit.concurrency is not null and parley._p_take_slot(v_limit.slots, v_limit.concurrency, false) is null then
    return;
  elsif v_limit.rate is not null then
    v_admitted := parley._p_admit_by_rate(v_limit, count);
  end if;
  v_taken := 0;
  if v_admitted > 0 then
    return query select * from parley._p_take_by_priority(queue, v_admitted, timeout, v_limit.ageing_ms);
    get diagnostics v_taken = row_count;
  end if;
  if v_limit.rate is not null and v_taken < v_admitted then
    perform parley._p_admit_by_rate(v_limit, v_taken - v_admitted);
  end if;
  if v_taken = 0 and v_limit.concurrency is not null then
    perform parley._p_record_unseen();
  end if;
end
$$;

comment on function parley._p_take_within_limits(parley._p_queue, integer, integer) is
'Takes messages from a simple queue as far as its limits allow it.
Arguments: those of _p_take_by_priority.
Errors: 9617.';

create function parley._p_age_of_lane(queue parley._p_queue, priority integer) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane constant integer := parley._p_lane(queue.queue_id, priority);
begin
  return (
    select extract(epoch from clock_timestamp() - m.enqueued_at) * 1000
    from parley._p_message as m
    where m.lane = v_lane and m.position >= coalesce((select h.low_position from parley._p_newest_hint(v_lane) as h), 0)
    order by m.position
    limit 1
  )::bigint;
end
$$;

comment on function parley._p_age_of_lane(parley._p_queue, integer) is
'Gives for how many milliseconds the first message of a priority has waited.';

create function parley._p_has_something(queue parley._p_queue) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  return exists (
    select
    from generate_series(10, 1, -1) as p (n)
    cross join lateral (select parley._p_lane(queue.queue_id, p.n) as lane) as l
    left join lateral parley._p_newest_hint(l.lane) as h on true
    join parley._p_message as m on m.lane = l.lane and m.position >= coalesce(h.low_position, 0)
    where queue.priorities & (1 << p.n) > 0
      and (m.xmax = '0' or not parley._p_is_running(m.xmax))
      and not (queue.has_deliveries and parley._p_is_message_claimed(queue.queue_id, m.position))
  ) or queue.has_waits and parley._p_has_due_wait(queue.queue_id);
end
$$;

comment on function parley._p_has_something(parley._p_queue) is
'Reports whether something stands in a simple queue that nobody has in his hands.';

create function parley._p_shared_slots(owner oid, shared text) returns text
language sql
set search_path = pg_catalog, pg_temp
as $$
  select format('%s: %s', parley._p_number_of(owner), shared)
$$;

comment on function parley._p_shared_slots(oid, text) is
'Gives the name of the rows of a limit that queues of an owner share.';

create function parley._p_share_with_new_owner() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley._p_queue_limit as l
  set slots = parley._p_shared_slots(new.owner, substring(l.slots from '^[0-9]+: (.*)$'))
  where l.queue_id = new.queue_id and l.slots ~ '^[0-9]+: ';
  insert into parley._p_limit_slot (slots, slot)
  select l.slots, n
  from parley._p_queue_limit as l
  cross join generate_series(1, l.concurrency) as n
  where l.queue_id = new.queue_id
  on conflict do nothing;
  return null;
end
$$;

comment on function parley._p_share_with_new_owner() is
'Has a queue that got another owner share its limit with the queues of that one, and no more with those of the one
before.';

create trigger _p_share_with_new_owner after update of owner on parley._p_queue
for each row when (old.owner is distinct from new.owner) execute function parley._p_share_with_new_owner();

create function parley.set_queue_limits(
  queue text, concurrency integer default null, shared text default null, rate integer default null,
  per interval default '1 second', ageing interval default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_simple_queue(v_caller, queue, 'ALTER');
  v_name text := format('_p_queue_%s_rate', v_queue.queue_id);
  v_slots text := case
    when shared is not null then parley._p_shared_slots(v_queue.owner, shared)
    when concurrency is not null then format('queue %s', v_queue.queue_id)
  end;
begin
  found := parley._p_require_range('concurrency', coalesce(concurrency, 1), 1, 1000);
  found := parley._p_require_range('rate', coalesce(rate, 1), 1, 1000000);
  found := parley._p_require_interval('per', per, '1 millisecond', '1 day');
  found := parley._p_require_interval('ageing', coalesce(ageing, '1 second'), '1 millisecond', '7 days');
  if shared is not null and concurrency is null then
    found := parley._p_raise(8402, 'shared without concurrency', shared);
  elsif shared is not null
    and (pg_has_role(v_caller, v_queue.owner, 'usage') or parley._p_is_administrator(v_caller)) is not true then
    found := parley._p_raise(15151, 'shared limit', shared, pg_get_userbyid(v_caller), v_queue.lookup_name);
  elsif rate is null and per is distinct from interval '1 second' then
    found := parley._p_raise(8402, 'per without rate', coalesce(per::text, 'null'));
  end if;
  perform from parley._p_queue as q where q.queue_id = v_queue.queue_id for no key update;
  if rate is not null and to_regclass(format('parley.%I', v_name)) is null then
    execute format('create sequence parley.%I minvalue 0 start 1', v_name);
    perform parley._p_take_back_relation(format('parley.%I', v_name)::regclass);
  elsif rate is not null and not exists (
    select
    from parley._p_queue_limit as l
    where l.queue_id = v_queue.queue_id
      and l.rate = set_queue_limits.rate
      and l.per_ms = parley._p_milliseconds(per)
  ) then
    -- A new rate counts anew, without the debt of the one before. The same rate goes on counting, so that a program
    -- may set it at each start.
    perform setval(format('parley.%I', v_name)::regclass, 1);
  end if;
  delete from parley._p_queue_limit as l where l.queue_id = v_queue.queue_id;
  if num_nonnulls(concurrency, rate, ageing) > 0 then
    insert into parley._p_queue_limit (queue_id, concurrency, slots, rate, per_ms, rate_sequence, ageing_ms)
    values (
      v_queue.queue_id, set_queue_limits.concurrency, v_slots, set_queue_limits.rate, parley._p_milliseconds(per),
      case when rate is not null then format('parley.%I', v_name)::regclass end, parley._p_milliseconds(ageing)
    );
  end if;
  insert into parley._p_limit_slot (slots, slot)
  select v_slots, n from generate_series(1, concurrency) as n
  on conflict do nothing;
  -- Those that a transaction holds go the next time: nobody waits for it.
  delete from parley._p_limit_slot as s
  where (s.slots, s.slot) in (
    select o.slots, o.slot
    from parley._p_limit_slot as o
    where not exists (select from parley._p_queue_limit as l where l.slots = o.slots)
    for update skip locked
  );
  update parley._p_queue as q
  set is_limited = num_nonnulls(concurrency, rate, ageing) > 0
  where q.queue_id = v_queue.queue_id;
end
$$;

comment on function parley.set_queue_limits(
  text, integer, text, integer, interval, interval, parley.caller
) is
'Sets the limits of a simple queue, in place of those that it has; without any it has none. A session that a
limit holds back takes nothing, or waits with its timeout. Messages of one key are taken one transaction at a time in
any queue. The limits hold for parley.claim and for web addresses, too: a claim counts as a transaction as long as it
is held. Those that were made before are not counted.
Arguments: queue; concurrency, how many transactions and claims may hold messages at once, 1 to 1,000; shared, a name:
queues of one owner that give the same one share that number, and only its owner and administrators may give one (null:
it is of this queue alone); rate, how many messages may be taken per interval, 1 to 1,000,000, and per, 1 millisecond to
a day: so many at once, and then evenly, counted anew where the two are others than before;
ageing, a message that has waited for so long counts as one priority higher, 1 millisecond to 7 days.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, out of range, or shared or per without what they
are of, 9609 malformed name, 15151 shared of a queue of another owner.
Source: spec P32.';

create function parley._p_queue_limits(caller parley.caller default parley.current_caller())
returns table (
  queue_name text, concurrency integer, shared text, in_use integer, rate integer, per interval, ageing interval
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select q.lookup_name, l.concurrency, substring(l.slots from '^[0-9]+: (.*)$'),
    parley._p_slots_in_use(l.slots, 0),
    l.rate, case when l.rate is not null then l.per_ms * interval '1 ms' end, l.ageing_ms * interval '1 ms'
  from parley._p_queue_limit as l
  join parley._p_queue as q using (queue_id)
  where parley._p_has_permission(parley._p_caller(caller), 'RECEIVE', 'queue', q.queue_id, q.owner)
$$;

comment on function parley._p_queue_limits(parley.caller) is 'Gives what parley.queue_limits shows.';

create view parley.queue_limits as
select l.queue_name, l.concurrency, l.shared, l.in_use, l.rate, l.per, l.ageing
from parley._p_queue_limits() as l;

comment on view parley.queue_limits is
'The limits of simple queues (parley.set_queue_limits), of queues that the role may take from, and in_use, how many
transactions and claims count towards concurrency just now, of all queues that share it.';
