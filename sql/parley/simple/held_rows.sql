-- Rows in others' hands that TAKE need not walk past.
--
-- A message that somebody works on for long stands before all that are taken meanwhile. Its transaction keeps the
-- server from forgetting those, so each TAKE would walk past all of them: 0.2 ms for a thousand. So the hint of a lane
-- (conversation/scan_hints.sql) says where the rows end that are all in somebody's hands, and TAKE begins there.
--
-- Invariants, and what keeps each:
--   what is free is never passed by   a row that nobody has taken ends those rows, so does a position that a sender may
--     still commit: none is beyond what was safe when the scan began
--   what comes back before that place is found   each TAKE asks whether the first of those rows still has its taker;
--     one in twenty looks at all of them, fewer where they are many, so that walking costs all of them together a few
--     microseconds a call; a TAKE that finds nothing else looks at all
--   what has no key is found behind any number that waits for busy keys   what has a key ends the rows that are all in
--     somebody's hands, so the hint says the same of the rows without a key alone, and TAKE begins there where it looks
--     behind the first rows (simple/keys.sql)
--   a key keeps its order   whether a row is the first of its key is asked in the index of keys, from the first on

create function parley._p_is_time_to_look_back(low bigint, resume bigint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- A twentieth for few rows of 1,024 positions each; of a hundred thousand rows one call in 2,500.
  return resume > low and random() < 40960.0 / (819200 + resume - low);
end
$$;

comment on function parley._p_is_time_to_look_back(bigint, bigint) is
'Says now and then, in one call in twenty or fewer, that a TAKE is to look at the rows before where scans begin.
Arguments: low and resume, positions between which all rows were in somebody''s hands.';

create function parley._p_is_first_held(lane integer, low bigint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_taker xid := (
    select m.xmax
    from parley._p_message as m
    where m.lane = _p_is_first_held.lane and m.position >= low
    order by m.position
    limit 1
  );
begin
  return v_taker is null or v_taker <> '0' and parley._p_is_running(v_taker);
end
$$;

comment on function parley._p_is_first_held(integer, bigint) is
'Reports whether the first row of a lane of a simple queue is in the hands of a transaction that is under way, or the
lane has none.
Arguments: lane; low, before which it has no rows.';

create function parley._p_first_untaken(lane integer, from_position bigint, is_keyless boolean) returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id constant bigint := parley._p_key_id(parley._p_owner_of_lane(lane), null);
begin
  if is_keyless then
    return (
      select m.position
      from parley._p_message as m
      where m.endpoint_id = v_id
        and (m.endpoint_id, m.position) >= (v_id, from_position)
        and m.lane + 0 = _p_first_untaken.lane
        and m.xmax = '0'
      order by m.endpoint_id, m.position
      limit 1
    );
  end if;
  -- Every row that nobody has taken, also one that waits behind another of its key.
  return (
    select m.position
    from parley._p_message as m
    where m.lane = _p_first_untaken.lane and m.position >= from_position and m.xmax = '0'
    order by m.position
    limit 1
  );
end
$$;

comment on function parley._p_first_untaken(integer, bigint, boolean) is
'Gives the position of the first row of a lane of a simple queue that nobody has ever taken; null when there is none.
Arguments: lane; from_position, where to begin; is_keyless, of the rows without a key.';

create function parley._p_resume_later(queue_id integer, lane integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hint parley._p_scan_hint;
  v_begin bigint;
  v_keyless bigint;
  v_free bigint;
  v_free_keyless bigint;
begin
  v_hint := parley._p_known_of(lane);
  v_begin := greatest(v_hint.low_position, v_hint.resume_position);
  v_free := parley._p_first_untaken(lane, v_begin, false);
  v_keyless := greatest(v_begin, v_hint.keyless_position);
  v_free_keyless := parley._p_first_untaken(lane, v_keyless, true);
  -- Few rows are walked past faster than a hint about them is recorded.
  if v_free - v_begin < 262144 and v_free_keyless - v_keyless < 262144 then
    return;
  end if;
  -- The hint was read before the scan, and so was safe when that began. Without one nothing is.
  v_begin := greatest(v_begin, least(v_free, v_hint.safe_position));
  v_keyless := greatest(v_keyless, least(v_free_keyless, v_hint.safe_position));
  perform parley._p_record_scan(
    queue_id, lane, coalesce(greatest(v_free, v_free_keyless), v_begin), '{}', v_begin, true, v_keyless
  );
end
$$;

comment on function parley._p_resume_later(integer, integer) is
'Records where the first row of a lane of a simple queue stands that nobody has taken, and the first of those without a
key, as far as that is safe to say.';
