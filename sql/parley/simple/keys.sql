-- Keys of simple queues, and how TAKE gets past messages that wait behind one of their key.
--
-- Of a key only the first message may be taken. So a million messages of two keys that readers are at work on are a
-- million rows that nobody may take, in front of all others. TAKE reads the first rows of a lane alone, and then looks
-- for the rest where it is:
--   what has no key   has an endpoint_id of its own in each queue, so an index gives it by arrival
--   the first of each key   the endpoint_ids of a queue are a range of their own, so an index gives one key after the
--     other
-- So messages without a key that stand behind many others come before the first of keys that stand there, too, and of
-- many such keys those come first that the scan meets, which begins with any of them.
-- An endpoint_id has 30 bits of a hash of the key. So two keys of a queue may have one: a million keys that wait at
-- once have some 470 such pairs. Their messages wait for one another as those of one key do, and never come in one
-- batch. Unique keys go by their text, results and withdrawals by positions.
--
-- Invariant: of one key only the first is taken   the first of a key is what stands first by position, whoever has it,
--   but for what is set aside
-- Cost: the first rows, and a probe of an index; where nothing without a key is free, two probes for each key, of 1,000
-- at most.

create function parley._p_key_id(queue_id integer, key text) returns bigint
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return -4611686018427387904 - (
    queue_id::bigint << 31 | case when key is null then 0 else hashtextextended(key, queue_id) & 2147483646 | 1 end
  );
end
$$;

comment on function parley._p_key_id(integer, text) is
'Gives the endpoint_id of messages of a simple queue: one for all of the queue without a key, whose last 31 bits are 0,
and one for each key, which it seldom shares with another key.';

create function parley._p_is_first_of_key(queue_id integer, key_id bigint, "position" bigint) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Not "does one exist": where few keys have many messages the planner would look for it in the index of lanes.
  return key_id & 2147483647 = 0 or coalesce(
    (
      select m.position
      from parley._p_message as m
      where m.endpoint_id = key_id and m.lane <> parley._p_set_aside_lane(_p_is_first_of_key.queue_id)
      order by m.position
      limit 1
    ) >= position,
    true
  );
end
$$;

comment on function parley._p_is_first_of_key(integer, bigint, bigint) is
'Reports whether no message of the same key stands before one in its queue, but what is set aside.';

create function parley._p_end_of_first_rows("position" bigint, taker xid, key_id bigint, count integer) returns bigint
language sql immutable
as $$
  -- Asking whether a row is the first of its key takes 15 to 25 microseconds where many of the key wait.
  select position operator(pg_catalog.+) 1024::pg_catalog.int8 operator(pg_catalog.*) case
      when taker operator(pg_catalog.=) '0' or key_id operator(pg_catalog.&) 2147483647 operator(pg_catalog.=) 0
        then 64 operator(pg_catalog.+) count::pg_catalog.int8
      else 16
    end
$$;

comment on function parley._p_end_of_first_rows(bigint, xid, bigint, integer) is
'Gives where the first rows of a lane end: few, when the first of them has a key and is in somebody''s hands.
Arguments: position, taker and key_id of the first row; count, how many messages are wanted.';

create function parley._p_claim_without_key(
  lane integer, from_position bigint, count integer, has_deliveries boolean
) returns setof parley.taken_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue_id constant integer := parley._p_owner_of_lane(lane);
  v_id constant bigint := parley._p_key_id(v_queue_id, null);
  v_priority constant smallint := 11 - lane % 16;
begin
  return query
  with picked as materialized (
    select n.ctid as row_id
    from parley._p_message as n
    where n.endpoint_id = v_id
      -- By the index of keys, whatever statistics say: that of lanes would lead past all that wait.
      and (n.endpoint_id, n.position) >= (v_id, from_position)
      and n.lane + 0 = _p_claim_without_key.lane
      and n.xmax = '0'
      and not (has_deliveries and parley._p_is_message_claimed(v_queue_id, n.position))
    order by n.endpoint_id, n.position
    limit count
    for update skip locked
  )
  delete from parley._p_message as m
  using picked as p
  where m.ctid = p.row_id
  returning m.position, m.message_key, v_priority, m.body, m.enqueued_at, m.trace_context, 1;
end
$$;

comment on function parley._p_claim_without_key(integer, bigint, integer, boolean) is
'Takes the first messages without a key of a lane, as _p_claim does.
Arguments: lane; from_position, where to begin; count, how many at most; has_deliveries of the queue: what is being
delivered is passed by.';

create function parley._p_first_of_keys(queue_id integer, after bigint, before bigint, keys_max integer)
returns table (row_id tid, lane integer, "position" bigint, key_id bigint, taker xid)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_sort = off
as $$
declare
  v_set_aside_lane constant integer := parley._p_set_aside_lane(queue_id);
begin
  return query
  with recursive keys as (
    (
      select m.endpoint_id as id, 1 as number
      from parley._p_message as m
      where m.endpoint_id > after and m.endpoint_id < before
      order by m.endpoint_id, m.position
      limit 1
    )
    union all
    select n.id, k.number + 1
    from keys as k
    cross join lateral (
      select m.endpoint_id as id
      from parley._p_message as m
      where m.endpoint_id > k.id and m.endpoint_id < before
      order by m.endpoint_id, m.position
      limit 1
    ) as n
    where k.number < keys_max
  )
  select f.row_id, f.lane, f.position, k.id, f.taker
  from keys as k
  cross join lateral (
    select m.ctid as row_id, m.lane, m.position, m.xmax as taker
    from parley._p_message as m
    where m.endpoint_id = k.id and m.lane <> v_set_aside_lane
    order by m.position
    limit 1
  ) as f;
end
$$;

comment on function parley._p_first_of_keys(integer, bigint, bigint, integer) is
'Gives the first message of each key of a simple queue whose endpoint_id is between two, whoever has it.
Arguments: queue_id; after and before, endpoint_ids that are not among them; keys_max, of so many keys at most.';

create function parley._p_some_first_of_keys(lane integer)
returns table (row_id tid, "position" bigint, key_id bigint, taker xid)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue_id constant integer := parley._p_owner_of_lane(lane);
  v_last constant bigint := parley._p_key_id(v_queue_id, null);
  -- Any of them, so that no key is always met after a thousand others.
  v_begin constant bigint := v_last - 1 - floor(random() * 2147483647)::bigint;
begin
  return query
  select f.row_id, f.position, f.key_id, f.taker
  from parley._p_first_of_keys(v_queue_id, v_begin, v_last, 500) as f
  where f.lane = _p_some_first_of_keys.lane
  union all
  select f.row_id, f.position, f.key_id, f.taker
  from parley._p_first_of_keys(v_queue_id, v_last - 2147483648, v_begin + 1, 500) as f
  where f.lane = _p_some_first_of_keys.lane;
end
$$;

comment on function parley._p_some_first_of_keys(integer) is
'Gives the first messages of up to 1,000 keys of a queue that stand in a lane, whoever has them.';

create function parley._p_claim_of_keys(lane integer, from_position bigint, count integer, has_deliveries boolean)
returns setof parley.taken_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_priority constant smallint := 11 - lane % 16;
  v_queue_id constant integer := parley._p_owner_of_lane(lane);
  v_rows tid[];
  v_positions bigint[];
begin
  -- More rows than readers have in their hands as a rule, and few that wait.
  select array_agg(p.row_id), array_agg(p.position) into v_rows, v_positions
  from (
    select n.ctid as row_id, n.position
    from (
      select m.ctid, m.position, m.endpoint_id
      from parley._p_message as m
      where m.lane = _p_claim_of_keys.lane
        and m.position >= from_position
        and m.position < from_position + 4194304
        and m.xmax = '0'
      order by m.position
      limit 64
    ) as n
    where parley._p_is_first_of_key(v_queue_id, n.endpoint_id, n.position)
      and not (has_deliveries and parley._p_is_message_claimed(v_queue_id, n.position))
    order by n.position
    limit count
  ) as p;
  if v_rows is null then
    select array_agg(p.row_id), array_agg(p.position) into v_rows, v_positions
    from (
      select f.row_id, f.position
      from parley._p_some_first_of_keys(lane) as f
      where f.taker = '0' and not (has_deliveries and parley._p_is_message_claimed(v_queue_id, f.position))
      order by f.position
      limit count
    ) as p;
  end if;
  return query
  with picked as materialized (
    select n.ctid as row_id
    from parley._p_message as n
    where n.ctid = any (v_rows)
      and n.position = any (v_positions)
      and n.lane + 0 = _p_claim_of_keys.lane
      and n.xmax = '0'
    for update skip locked
  )
  delete from parley._p_message as m
  using picked as p
  where m.ctid = p.row_id
  returning m.position, m.message_key, v_priority, m.body, m.enqueued_at, m.trace_context, 1;
end
$$;

comment on function parley._p_claim_of_keys(integer, bigint, integer, boolean) is
'Takes the first messages of some keys: those that come next in a lane, or, where none of the next rows is free, any.
Arguments: those of _p_claim_without_key.';

create function parley._p_claim_far(
  lane integer, from_position bigint, keyless bigint, count integer, has_deliveries boolean
) returns setof parley.taken_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Now and then from the first on: one that came back looks as if nobody had ever taken it once its row is frozen.
  return query select * from parley._p_claim_without_key(
    lane, case when parley._p_is_time_to_look_back(from_position, keyless) then from_position
      else greatest(from_position, keyless) end, count, has_deliveries
  );
  if not found then
    return query select * from parley._p_claim_of_keys(lane, from_position, count, has_deliveries);
  end if;
end
$$;

comment on function parley._p_claim_far(integer, bigint, bigint, integer, boolean) is
'Takes messages that stand behind the first rows of a lane, all of which are in others'' hands or wait behind one of
their key.
Arguments: those of _p_claim_without_key; keyless, where to begin with what has no key, null for no later.';
