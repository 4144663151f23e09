-- Claims of messages of simple queues: those that are on their way to a web address, while no transaction is open.
--
-- As for conversation groups (conversation/delivery_claims.sql): a row here stands for the lock of the message, as long
-- as its lease lasts. TAKE and other deliveries pass it by; it still is the first of its key. Views and peeks show it,
-- as they show what others have taken and not committed.
--
-- Invariants, and what keeps each:
--   nobody takes a claimed message   a claim is made with the row of the message locked. TAKE of a queue from which a
--     webhook delivers asks for claims in its scan.
--   a scan that began before the claim takes none either   the claim updates the row and locks it, so its xmax is not 0
--     any more: the scan reads an updated row again when it locks it, and takes rows of xmax 0 alone
--   a transaction with an older snapshot takes none   to it that xmax is of a transaction that runs
-- Locks: message rows, then claims.

create table parley._p_message_claim (
  queue_id integer not null references parley._p_queue on delete cascade,
  position bigint not null,
  claim uuid not null,
  claimed_by text not null,
  claimed_at timestamptz not null,
  leased_until timestamptz not null,
  -- How far the holder is, as it said.
  progress jsonb,
  primary key (queue_id, position)
);

comment on table parley._p_message_claim is
'Messages of simple queues that are being delivered to a web address, or worked on for long, by whom, and until
when nobody else has them.';

create function parley._p_is_message_claimed(queue_id integer, "position" bigint) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select
    from parley._p_message_claim as c
    where c.queue_id = _p_is_message_claimed.queue_id and c.position = _p_is_message_claimed.position
      and c.leased_until > clock_timestamp()
  );
end
$$;

comment on function parley._p_is_message_claimed(integer, bigint) is
'Reports whether a message of a simple queue is being delivered, so that nobody else may take it.';

create function parley._p_take_unclaimed(lane integer, from_position bigint, before bigint, count integer)
returns setof parley.taken_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue_id constant integer := parley._p_owner_of_lane(lane);
begin
  return query
  with picked as materialized (
    select n.ctid as row_id
    from parley._p_message as n
    where n.lane = _p_take_unclaimed.lane
      and n.position >= from_position
      and n.position < before
      and n.xmax = '0'
      and not exists (
        select
        from parley._p_message_claim as c
        where c.queue_id = v_queue_id and c.position = n.position and c.leased_until > clock_timestamp()
      )
      and parley._p_is_first_of_key(v_queue_id, n.endpoint_id, n.position)
    order by n.position
    limit count
    for update of n skip locked
  )
  delete from parley._p_message as m
  using picked as p
  where m.ctid = p.row_id
  returning m.position, m.message_key, (11 - _p_take_unclaimed.lane % 16)::smallint, m.body, m.enqueued_at,
    m.trace_context, 1;
end
$$;

comment on function parley._p_take_unclaimed(integer, bigint, bigint, integer) is
'Takes messages as _p_claim does, beside deliveries: those that are being delivered it passes by.
Arguments: those of _p_claim.';
