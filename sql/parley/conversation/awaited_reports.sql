-- Reports that are awaited: whoever rolled back what he had taken or received is about to say why.
--
-- A worker rolls back, and then reports in a transaction of its own (parley.retry, parley.record_failure and their
-- like). In between an idle reader would take the message again, and the report would find it in others' hands: a
-- failure more, without its error. So in a queue with a retry policy TAKE and RECEIVE pass by what came back, for half
-- a second from when the first of them meets it, however short the waits of the policy are: a report takes as long. It
-- finds the message as the rollback has left it. When none comes it is a return of which nobody said why.
--
-- Messages that came back together await no report: nobody knows which of them was bad, and each is taken alone at
-- once. Nor does one that a transaction gave back itself, by a rollback to a savepoint; TAKE knows that of no worker.
--
-- Why not a row that says so: the reader that writes it would hold it to the end of its work, off the report, or would
-- have to commit without a message. These are sequences, outside of any transaction: a reader notes a transaction that
-- failed and until when its report is awaited, and goes on with other messages. A note has one of eight places, by the
-- number of the transaction and the queue. Where all eight are in use nothing is awaited: the message comes at once.
--
-- Invariants, and what keeps each:
--   a message is passed by for a bounded time   a note says until when, and stays for longer than that: it makes room
--     for another when it is the oldest of its eight places
--   what nobody has taken costs nothing   callers ask for rows with an xmax alone
-- Locks: none. Cost: eight sequences for each row that came back; the first time the policy, and 200 rows behind it.

create sequence parley._p_report_0 minvalue 0 start 0;
create sequence parley._p_report_1 minvalue 0 start 0;
create sequence parley._p_report_2 minvalue 0 start 0;
create sequence parley._p_report_3 minvalue 0 start 0;
create sequence parley._p_report_4 minvalue 0 start 0;
create sequence parley._p_report_5 minvalue 0 start 0;
create sequence parley._p_report_6 minvalue 0 start 0;
create sequence parley._p_report_7 minvalue 0 start 0;
create sequence parley._p_report_8 minvalue 0 start 0;
create sequence parley._p_report_9 minvalue 0 start 0;
create sequence parley._p_report_10 minvalue 0 start 0;
create sequence parley._p_report_11 minvalue 0 start 0;
create sequence parley._p_report_12 minvalue 0 start 0;
create sequence parley._p_report_13 minvalue 0 start 0;
create sequence parley._p_report_14 minvalue 0 start 0;
create sequence parley._p_report_15 minvalue 0 start 0;
create sequence parley._p_report_16 minvalue 0 start 0;
create sequence parley._p_report_17 minvalue 0 start 0;
create sequence parley._p_report_18 minvalue 0 start 0;
create sequence parley._p_report_19 minvalue 0 start 0;
create sequence parley._p_report_20 minvalue 0 start 0;
create sequence parley._p_report_21 minvalue 0 start 0;
create sequence parley._p_report_22 minvalue 0 start 0;
create sequence parley._p_report_23 minvalue 0 start 0;
create sequence parley._p_report_24 minvalue 0 start 0;
create sequence parley._p_report_25 minvalue 0 start 0;
create sequence parley._p_report_26 minvalue 0 start 0;
create sequence parley._p_report_27 minvalue 0 start 0;
create sequence parley._p_report_28 minvalue 0 start 0;
create sequence parley._p_report_29 minvalue 0 start 0;
create sequence parley._p_report_30 minvalue 0 start 0;
create sequence parley._p_report_31 minvalue 0 start 0;
create sequence parley._p_report_32 minvalue 0 start 0;
create sequence parley._p_report_33 minvalue 0 start 0;
create sequence parley._p_report_34 minvalue 0 start 0;
create sequence parley._p_report_35 minvalue 0 start 0;
create sequence parley._p_report_36 minvalue 0 start 0;
create sequence parley._p_report_37 minvalue 0 start 0;
create sequence parley._p_report_38 minvalue 0 start 0;
create sequence parley._p_report_39 minvalue 0 start 0;
create sequence parley._p_report_40 minvalue 0 start 0;
create sequence parley._p_report_41 minvalue 0 start 0;
create sequence parley._p_report_42 minvalue 0 start 0;
create sequence parley._p_report_43 minvalue 0 start 0;
create sequence parley._p_report_44 minvalue 0 start 0;
create sequence parley._p_report_45 minvalue 0 start 0;
create sequence parley._p_report_46 minvalue 0 start 0;
create sequence parley._p_report_47 minvalue 0 start 0;
create sequence parley._p_report_48 minvalue 0 start 0;
create sequence parley._p_report_49 minvalue 0 start 0;
create sequence parley._p_report_50 minvalue 0 start 0;
create sequence parley._p_report_51 minvalue 0 start 0;
create sequence parley._p_report_52 minvalue 0 start 0;
create sequence parley._p_report_53 minvalue 0 start 0;
create sequence parley._p_report_54 minvalue 0 start 0;
create sequence parley._p_report_55 minvalue 0 start 0;
create sequence parley._p_report_56 minvalue 0 start 0;
create sequence parley._p_report_57 minvalue 0 start 0;
create sequence parley._p_report_58 minvalue 0 start 0;
create sequence parley._p_report_59 minvalue 0 start 0;
create sequence parley._p_report_60 minvalue 0 start 0;
create sequence parley._p_report_61 minvalue 0 start 0;
create sequence parley._p_report_62 minvalue 0 start 0;
create sequence parley._p_report_63 minvalue 0 start 0;

create function parley._p_report_milliseconds() returns bigint
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select 500::bigint
$$;

comment on function parley._p_report_milliseconds() is
'Gives for how many milliseconds a report is awaited.';

create function parley._p_report_key(queue_id integer, taker xid) returns bigint
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select taker::text::bigint # (hashint4(queue_id)::bigint & 4294967295)
$$;

comment on function parley._p_report_key(integer, xid) is
'Gives 32 bits that stand for a transaction in a queue.';

create function parley._p_report_places(key bigint) returns table (sequence regclass, value bigint)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select p.sequence, coalesce(pg_sequence_last_value(p.sequence), 0)
  from (
    select ('parley._p_report_' || (($1 + n.number) & 63))::regclass as sequence
    from generate_series(0, 7) as n (number)
  ) as p
$$;

comment on function parley._p_report_places(bigint) is
'Gives the eight places that a note about a transaction may have, and what stands there: the key of a transaction, and
until when its report is awaited, in milliseconds of 31 bits.';

create function parley._p_milliseconds_left(until bigint) returns bigint
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select ((until & 2147483647) - (extract(epoch from clock_timestamp()) * 1000)::bigint) & 2147483647
$$;

comment on function parley._p_milliseconds_left(bigint) is
'Gives how many milliseconds it is until the time of a note; a number beyond that of
_p_report_milliseconds when it is over.';

create function parley._p_is_report_awaited(queue_id integer, taker xid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key constant bigint := parley._p_report_key(queue_id, taker);
begin
  return exists (
    select
    from parley._p_report_places(v_key) as p
    where p.value >> 31 = v_key and parley._p_milliseconds_left(p.value) between 1 and parley._p_report_milliseconds()
  );
end
$$;

comment on function parley._p_is_report_awaited(integer, xid) is
'Reports whether readers of a queue pass by what a transaction gave back, because they have met it before and its report
is still awaited. It writes nothing.';

create function parley._p_came_back_with_others(
  queue parley._p_queue, lane integer, endpoint_id bigint, "position" bigint, taker xid
) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
begin
  return exists (
    select
    from (
      select m.endpoint_id, m.xmax as taker
      from parley._p_message as m
      where m.lane = _p_came_back_with_others.lane and m.position > _p_came_back_with_others.position
      order by m.position
      limit 200
    ) as n
    where n.taker = _p_came_back_with_others.taker
      and (
        queue.is_simple
        or n.endpoint_id <> _p_came_back_with_others.endpoint_id
        and (select e.group_id from parley._p_endpoint as e where e.endpoint_id = n.endpoint_id)
          <> (
            select e.group_id from parley._p_endpoint as e where e.endpoint_id = _p_came_back_with_others.endpoint_id
          )
      )
  );
end
$$;

comment on function parley._p_came_back_with_others(parley._p_queue, integer, bigint, bigint, xid) is
'Reports whether a transaction that has failed gave back more than one message: one of the 200 rows behind it in its
lane, in a queue of conversations one of another group.
Arguments: queue; lane, endpoint_id and position of the message; taker, its xmax.';

create function parley._p_is_part_of_ours(later xid) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_mark constant bigint := parley._p_last_position(parley._p_savepoint_sequence(later));
begin
  -- RECEIVE has marked it, unless another part has since (receive/savepoints.sql); TAKE marks nothing.
  if v_mark >> 31 = later::text::bigint then
    return v_mark & 2147483647 = pg_current_xact_id()::text::bigint & 2147483647;
  end if;
  -- A worker takes once in each transaction, and has its number since it found a group or a message locked.
  return current_setting('parley.reader', true) is distinct from 'on';
end
$$;

comment on function parley._p_is_part_of_ours(xid) is
'Reports whether a transaction that has failed is taken for a part of this one, which has gone back to a savepoint.
Arguments: later, its number, which is later than that of this transaction.';

create function parley._p_await_report(lane integer, endpoint_id bigint, "position" bigint, taker xid) returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_failed constant bigint := parley._p_full_transaction_id(taker);
  v_key bigint;
  v_until bigint;
  v_queue parley._p_queue;
  v_place regclass;
begin
  if pg_xact_status(v_failed::text::xid8) is distinct from 'aborted'
    or v_failed > pg_current_xact_id_if_assigned()::text::bigint and parley._p_is_part_of_ours(taker) then
    return false;
  end if;
  v_key := parley._p_report_key(parley._p_owner_of_lane(lane), taker);
  select p.value into v_until from parley._p_report_places(v_key) as p where p.value >> 31 = v_key limit 1;
  if found then
    return parley._p_milliseconds_left(v_until) between 1 and parley._p_report_milliseconds();
  end if;
  select * into v_queue from parley._p_queue as q where q.queue_id = parley._p_owner_of_lane(lane);
  if (parley._p_retry_policy_of(v_queue)).queue_id is null then
    return false;
  end if;
  -- The oldest.
  select p.sequence into v_place
  from parley._p_report_places(v_key) as p
  cross join lateral parley._p_milliseconds_left(p.value) as l (left_ms)
  where p.value = 0 or l.left_ms not between 1 and parley._p_report_milliseconds()
  order by p.value <> 0, l.left_ms
  limit 1;
  if not found then
    return false;
  end if;
  v_until := (extract(epoch from clock_timestamp()) * 1000)::bigint;
  if parley._p_came_back_with_others(v_queue, lane, endpoint_id, position, taker) then
    -- Noted too, for those of them that are met when the others are gone.
    perform setval(v_place, v_key << 31 | (v_until & 2147483647));
    return false;
  end if;
  perform setval(v_place, v_key << 31 | ((v_until + parley._p_report_milliseconds()) & 2147483647));
  return true;
end
$$;

comment on function parley._p_await_report(integer, bigint, bigint, xid) is
'Reports whether a reader is to pass by a message that came back after a rollback, as its report may still come, and
notes that when nobody has.
Arguments: lane, endpoint_id and position of the message; taker, its xmax.';

create function parley._p_may_still_be_given_back() returns boolean
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  if clock_timestamp() >= statement_timestamp() + interval '300 ms' then
    return false;
  end if;
  perform pg_sleep(0.01);
  return true;
end
$$;

comment on function parley._p_may_still_be_given_back() is
'Sleeps for a moment, so that a report may look again for what it has found locked, and gives true; gives false when
the statement has run for 300 milliseconds. A worker that was cut off may report before the server has rolled back.';
