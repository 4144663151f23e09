-- The rows of limits: who has one may hold messages of queues with that limit.
--
-- TAKE locks a row to the end of its transaction, whatever ends that. A claim writes its number into the row, which is
-- in use as long as something of that claim is held: nothing has to be given back.
-- Invariants, and what keeps each:
--   a row is of one transaction or claim   its lock, and the claim that it names: whether that lasts is read anew when
--     the lock has been got
--   no more have one than are allowed   their number; while rows above it are in use, those of a time when more were
--     allowed, a session counts all with the one that it has locked. Others see that lock when they count, so that of
--     two sessions at least the later one finds too many
-- Locks: a row, skip locked, before message rows. Cost: a probe of an index for rows above the number.

create table parley._p_limit_slot (
  slots text,
  slot integer,
  -- The claim that has it, where no transaction has.
  queue_id integer,
  claim uuid,
  primary key (slots, slot)
);

comment on table parley._p_limit_slot is
'Rows whose locks count the transactions that hold messages of limited queues, and which name the claims that do.';

create function parley._p_claim_lasts(queue_id integer, claim uuid) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  return claim is not null and exists (
    select
    from parley._p_message_claim as c
    where c.queue_id = _p_claim_lasts.queue_id
      and c.claim = _p_claim_lasts.claim
      and c.leased_until > clock_timestamp()
  );
end
$$;

comment on function parley._p_claim_lasts(integer, uuid) is
'Reports whether something of a claim of a simple queue is held still. It is volatile, so that it sees what others have
committed since the statement began that calls it.';

create function parley._p_is_slot_in_use(slots text, slot integer) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_row record;
  v_is_in_use boolean;
begin
  while v_is_in_use is null loop
    select s.ctid as row_id, s.xmax as taker, s.queue_id, s.claim into v_row
    from parley._p_limit_slot as s
    where s.slots = _p_is_slot_in_use.slots and s.slot = _p_is_slot_in_use.slot;
    if not found then
      v_is_in_use := false;
    elsif parley._p_is_running(v_row.taker) or parley._p_claim_lasts(v_row.queue_id, v_row.claim) then
      v_is_in_use := true;
    else
      -- A transaction that had the row then may have written its claim since.
      perform from parley._p_limit_slot as s where s.ctid = v_row.row_id;
      v_is_in_use := case when found then false end;
    end if;
  end loop;
  return v_is_in_use;
end
$$;

comment on function parley._p_is_slot_in_use(text, integer) is
'Reports whether a transaction or a claim has a row of a limit. It reads it anew for each step, so that it misses none
that goes from one to the other.';

create function parley._p_slots_in_use(slots text, above integer) returns integer
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select count(*)
    from parley._p_limit_slot as s
    where s.slots = _p_slots_in_use.slots and s.slot > above and parley._p_is_slot_in_use(s.slots, s.slot)
  );
end
$$;

comment on function parley._p_slots_in_use(text, integer) is
'Counts the rows of a limit that transactions or claims have, of those with a number above one.';

create function parley._p_lock_free_slot(slots text, concurrency integer, is_claim boolean) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_slot integer;
  -- A transaction without a number has locked nothing.
  v_may_have_one boolean := not is_claim and pg_current_xact_id_if_assigned() is not null;
begin
  select s.slot into v_slot
  from parley._p_limit_slot as s
  where s.slots = _p_lock_free_slot.slots
    and s.slot <= concurrency
    and not parley._p_claim_lasts(s.queue_id, s.claim)
  -- A row whose lock lasts is passed by, unless the lock is our own: of a savepoint, whose number is not ours.
  order by v_may_have_one and s.xmax <> '0' and parley._p_is_running(s.xmax) desc, s.slot
  limit 1
  for update skip locked;
  return v_slot;
end
$$;

comment on function parley._p_lock_free_slot(text, integer, boolean) is
'Locks a row of a limit that nobody else has, to the end of the transaction, and gives its number; null when all are in
use. A transaction that has taken behind a savepoint gets the row that it has.';

create function parley._p_take_slot_beside(slots text, concurrency integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_slot integer;
begin
  v_slot := parley._p_lock_free_slot(slots, concurrency, false);
  if parley._p_slots_in_use(slots, 0) > concurrency then
    raise exception 'too many' using errcode = 'PB002';
  end if;
  return v_slot;
exception
  when sqlstate 'PB002' then
    return null;
end
$$;

comment on function parley._p_take_slot_beside(text, integer) is
'Locks a row as _p_lock_free_slot does, unless more are in use with it than are allowed: then it gives the lock back.';

create function parley._p_take_slot(slots text, concurrency integer, is_claim boolean) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_slot integer;
begin
  -- A transaction that takes again has one already.
  if not is_claim then
    select s.slot into v_slot
    from parley._p_limit_slot as s
    where s.slots = _p_take_slot.slots
      and s.xmax::text::bigint = (pg_current_xact_id_if_assigned()::text::bigint & 4294967295)
    limit 1;
    if found then
      return v_slot;
    end if;
  end if;
  if parley._p_slots_in_use(slots, concurrency) = 0 then
    return parley._p_lock_free_slot(slots, concurrency, is_claim);
  elsif not is_claim then
    return parley._p_take_slot_beside(slots, concurrency);
  end if;
  -- A row that a subtransaction has locked must not be written by another one: its xmax would name both.
  v_slot := parley._p_lock_free_slot(slots, concurrency, true);
  return case when parley._p_slots_in_use(slots, 0) <= concurrency then v_slot end;
end
$$;

comment on function parley._p_take_slot(text, integer, boolean) is
'Locks one of the rows that count who holds messages, to the end of the transaction, and gives its number; null when all
are in use. While rows above the number that is allowed are in use, those count: they are of a time when more were
allowed, or of a queue that shares the limit and has a higher number.
Arguments: slots, the name of the limit; concurrency, how many are allowed; is_claim, whether a claim is to have it,
which outlives the transaction.';
