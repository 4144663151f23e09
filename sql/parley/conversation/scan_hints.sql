-- Scan hints: where the search for a group begins.
--
-- Why a hint may be believed (keeps S2, S19). A sender draws its position from the queue's sequence, and so holds a
-- lock on that sequence until its transaction ends. If all who held that lock when the sequence stood at P have let go
-- of it, then every row up to P is there to be seen or never will be. _p_record_scan records P and the holders (the
-- probe). A later reader that finds none of them left declares P safe. Readers whose scan began after that may skip
-- rows that they find gone or locked up to P. A scan that began before may have missed a row that is safe by now, so
-- each scan is judged by what was safe when it began. A scan remembers the messages that it has passed by through their
-- conversation, not through their group: a conversation that MOVE puts into another group while its row is locked is
-- still found where it was left. A conversation that a hint names stays named as long as anything of it waits before
-- where the next scan begins, whatever the scan has met: no other scan would find that.
-- With each goes where it begins: others that were received from since must not be searched from there (what a
-- holder received is not gone yet).
-- A hint is an ordinary row: if the transaction that consumed the rows rolls back, so does its
-- claim that they are consumed.

-- When the next reader may read the senders under way, in microseconds since 1970.
create sequence parley._p_next_probe minvalue 0 start 0;

create function parley._p_newest_hint(lane integer) returns setof parley._p_scan_hint
language sql stable
as $$
  select *
  from parley._p_scan_hint as h
  where h.lane operator(pg_catalog.=) $1
  order by h.lane desc, h.hint_id desc
  limit 1
$$;

comment on function parley._p_newest_hint(integer) is
'Gives the newest hint about a lane: no row without one. It is put in line where it stands in FROM, unless
its argument holds a sub-select.';

create function parley._p_begin_of(hint parley._p_scan_hint, endpoint_id bigint) returns bigint
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return greatest(
    0, hint.low_position,
    coalesce(hint.blocked_positions[array_position(hint.blocked_endpoints, endpoint_id)], hint.resume_position)
  );
end
$$;

comment on function parley._p_begin_of(parley._p_scan_hint, bigint) is
'Gives the position before which a conversation has no messages in a lane, by a hint; 0 without a hint.';

create function parley._p_probe(position_sequence regclass, out "position" bigint, out senders text[])
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  -- The position first, then who is under way: the other way round would miss a sender between the two.
  position := (coalesce(parley._p_last_position(position_sequence), 0) + 1) * 1024;
  senders := (
    select coalesce(array_agg(l.virtualtransaction), '{}')
    from pg_locks as l
    where l.locktype = 'relation'
      and l.relation = position_sequence
      and l.database = (select d.oid from pg_database as d where d.datname = current_database())
      and l.mode = 'RowExclusiveLock'
      and l.granted
      and l.pid is distinct from pg_backend_pid()
  );
end
$$;

comment on function parley._p_probe(regclass) is
'Gives a position behind all that have been drawn from a queue''s sequence, and the transactions that have
drawn one and not ended yet, prepared ones included; not our own. When none of these is left, a scan that
begins then sees all that will ever be before that position. A prepared transaction that has outlived a
restart of the server is named anew, -1/xid.';

create function parley._p_known_of(lane integer) returns parley._p_scan_hint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hint parley._p_scan_hint;
begin
  select * into v_hint from parley._p_newest_hint(_p_known_of.lane) as h;
  v_hint.low_position := coalesce(v_hint.low_position, 0);
  v_hint.safe_position := coalesce(v_hint.safe_position, 0);
  v_hint.resume_position := coalesce(v_hint.resume_position, 0);
  v_hint.keyless_position := coalesce(v_hint.keyless_position, 0);
  v_hint.blocked_endpoints := coalesce(v_hint.blocked_endpoints, '{}');
  return v_hint;
end
$$;

comment on function parley._p_known_of(integer) is
'Gives the newest hint about a lane; without one, a hint that knows nothing: its probe_senders are null.';

create function parley._p_record_scan(
  queue_id integer, lane integer, head_position bigint, blocked bigint[], resume bigint,
  is_simple boolean default false, keyless bigint default 0
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  v_old parley._p_scan_hint;
  v_new parley._p_scan_hint;
  v_probes boolean;
  v_walk bigint;
  v_sequence regclass;
  v_probe record;
  v_is_same boolean;
  v_started timestamptz := clock_timestamp();
begin
  -- An older snapshot sees less than is there: it may not hint others what to skip.
  if parley._p_keeps_snapshot() then
    return;
  end if;
  v_old := parley._p_known_of(lane);
  -- Asking the lock table takes milliseconds with hundreds of sessions, so probes take a twentieth of the time of all
  -- readers. In between, a hint that saves every reader a long walk is made of what is known to be safe.
  v_probes := v_old.probe_senders is null
    or coalesce(pg_sequence_last_value('parley._p_next_probe'), 0) <= extract(epoch from v_started) * 1000000;
  v_walk := case
    when cardinality(blocked) > 0 or is_simple
      then greatest(resume - greatest(v_old.low_position, v_old.resume_position), keyless - v_old.keyless_position)
    else least(head_position, v_old.safe_position) - v_old.low_position
  end;
  if not v_probes and v_walk < 262144 then
    return;
  end if;
  v_new.low_position := v_old.low_position;
  v_new.safe_position := greatest(v_old.safe_position, resume);
  if head_position - v_old.low_position > 65536 then
    -- Our own scan, begun now: the first row of all, though its group may be held.
    select least(m.position, v_old.safe_position) into v_new.low_position
    from parley._p_message as m
    where m.lane = _p_record_scan.lane
      and m.position >= v_old.low_position
      and (m.endpoint_id < 0
        or exists (select from parley._p_endpoint as e where e.endpoint_id = m.endpoint_id and e.state <> 'DO'))
    order by m.position
    limit 1;
    v_new.low_position := greatest(v_old.low_position, v_new.low_position);
  end if;
  if cardinality(blocked) > 0 and resume - v_new.low_position >= 65536 then
    -- A few rows, such as readers side by side have locked all the time, are passed by faster than a hint about them is
    -- read: only what begins long before the head is named, and the next scan begins with the first of the rest.
    select array_agg(b.endpoint_id) filter (where b.is_far), array_agg(b.position) filter (where b.is_far),
      least(resume, min(b.position) filter (where not b.is_far))
    into v_new.blocked_endpoints, v_new.blocked_positions, v_new.resume_position
    from (
      select s.endpoint_id, n.position, n.position <= resume - 65536 as is_far
      from (select distinct u.endpoint_id from unnest(blocked || v_old.blocked_endpoints) as u (endpoint_id)) as s
      left join parley._p_set_aside as a using (endpoint_id)
      cross join lateral (
        select m.position, m.lane from parley._p_message as m
        where m.endpoint_id = s.endpoint_id
          and m.position >= greatest(parley._p_begin_of(v_old, s.endpoint_id), a.moved_position)
        order by m.position
        limit 1
      ) as n
      where n.lane = _p_record_scan.lane
    ) as b;
  end if;
  if coalesce(cardinality(v_new.blocked_endpoints), 65) > 64 then
    v_new.blocked_endpoints := '{}';
    v_new.blocked_positions := '{}';
    v_new.resume_position := case when is_simple and resume - v_new.low_position >= 262144 then resume else 0 end;
  end if;
  v_new.keyless_position := greatest(v_old.keyless_position, keyless);
  v_is_same := v_new.low_position - v_old.low_position < 65536
    and v_new.keyless_position - v_old.keyless_position < 262144
    and v_new.resume_position - v_old.resume_position < 65536
    and (cardinality(v_new.blocked_endpoints) = 0) = (cardinality(v_old.blocked_endpoints) = 0);
  if v_is_same and (head_position - v_old.safe_position < 65536 or not v_probes) then
    return;
  end if;
  v_new.probe_position := v_old.probe_position;
  v_new.probe_senders := v_old.probe_senders;
  if v_probes then
    -- The lanes of destinations have one sequence for all.
    v_sequence := (select q.position_sequence from parley._p_queue as q where q.queue_id = _p_record_scan.queue_id);
    select p.position, p.senders into v_probe
    from parley._p_probe(coalesce(v_sequence, 'parley._p_transmission_position')) as p;
    -- A prepared transaction that has outlived a restart (-1/xid) may be any of the old ones.
    if v_old.probe_senders is null
      or not (v_old.probe_senders && v_probe.senders or v_probe.senders::text like '%-1/%') then
      v_new.safe_position := greatest(v_new.safe_position, coalesce(v_old.probe_position, 0));
      v_new.probe_position := v_probe.position;
      v_new.probe_senders := v_probe.senders;
    end if;
    if cardinality(v_new.probe_senders) = 0 then
      v_new.safe_position := greatest(v_new.safe_position, v_new.probe_position);
    end if;
    perform setval('parley._p_next_probe',
      (extract(epoch from clock_timestamp() + 20 * (clock_timestamp() - v_started)) * 1000000)::bigint);
    if v_is_same and v_new.probe_position = v_old.probe_position then
      return;
    end if;
  end if;
  insert into parley._p_scan_hint (
    lane, low_position, safe_position, probe_position, probe_senders, blocked_endpoints, blocked_positions,
    resume_position, keyless_position
  )
  values (
    lane, v_new.low_position, v_new.safe_position, v_new.probe_position, v_new.probe_senders, v_new.blocked_endpoints,
    v_new.blocked_positions, v_new.resume_position, v_new.keyless_position
  );
  if v_old.hint_id % 64 = 0 then
    -- Another session may move it, and may wait for a group that we hold: leave it that.
    delete from parley._p_scan_hint as h
    where h.lane = _p_record_scan.lane
      and h.hint_id in (
        select o.hint_id from parley._p_scan_hint as o
        where o.lane = _p_record_scan.lane and o.hint_id < v_old.hint_id
        for update skip locked
      );
  end if;
end
$$;

comment on function parley._p_record_scan(integer, integer, bigint, bigint[], bigint, boolean, bigint) is
'Records for the readers after this one where a scan may begin.
Arguments: queue_id, lane; head_position, of the first message found in a group that was free; blocked, the
endpoints whose groups were found locked before it; resume, up to where only they have messages, and no further
than was safe when the scan began; is_simple, whether it is a simple queue: before resume stands nothing there but what
somebody has taken; keyless, the same of what has no key.';

create function parley._p_renew_hint(
  queue_id integer, lane integer, head_position bigint, hint parley._p_scan_hint
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  v_resume bigint := 0;
begin
  if cardinality(hint.blocked_endpoints) > 0 then
    -- The first row of all the others, though its group may be held. Without one before the head all of that belongs to
    -- the blocked ones; what the hint claims already stays true.
    v_resume := greatest(
      hint.resume_position,
      least(
        hint.safe_position, head_position, (
          select m.position
          from parley._p_message as m
          where m.lane = _p_renew_hint.lane and m.position >= hint.resume_position and m.position < head_position
            and m.endpoint_id <> all (hint.blocked_endpoints)
          order by m.position
          limit 1
        )
      )
    );
  end if;
  if hint.resume_position > 0 and v_resume = 0 then
    -- Of a simple queue, whose rows before that place are found in other ways.
    perform parley._p_record_scan(queue_id, lane, head_position, '{}', hint.resume_position, true);
    return;
  end if;
  perform parley._p_record_scan(queue_id, lane, head_position, coalesce(hint.blocked_endpoints, '{}'), v_resume);
end
$$;

comment on function parley._p_renew_hint(integer, integer, bigint, parley._p_scan_hint) is
'Records for the readers after this one that they need not begin where a hint says any more.
Arguments: queue_id; lane; head_position, of the first message found in a group that was free, beginning where the
hint says; hint, which was read before that scan.';
