-- Which group is next: the searches that RECEIVE in all its forms and GET CONVERSATION GROUP share.
--
-- The next group is the one with the first message, by priority and then by arrival, that no other transaction has
-- locked. conversation/scan_hints.sql explains why a hint is true.
--   _p_lock_first_group   one statement, as a rule: the first rows of a lane
--   _p_lock_blocked_group   of what the hint names, which was locked, the first that is free
--   _p_lock_next_group   the rest, however much of it is locked: all priorities, and what is set aside
-- A group is locked by its row, so the lock may be taken on a snapshot that is old: whoever has it asks again for the
-- message (keeps S3). A group that is being delivered is passed by as if it were locked (conversation/
-- delivery_claims.sql); its claim alone ever updates the row.
-- No bitmap scans nor sorts: for want of statistics the planner would read all that waits in a lane to sort it.

create function parley._p_lock_first_group(
  lane integer, from_position bigint, rows_max integer,
  out "position" bigint, out endpoint_id bigint, out group_id bigint, out conversation_group_id uuid,
  out bound bigint, out is_lane_over boolean
)
language plpgsql
as $$
declare
  v_is_again pg_catalog.bool;
begin
  loop
    -- Two hundred positions past the hint the first message has nearly always been. An index scan reads all of a page
    -- that is in bounds, for one row.
    bound := from_position
      operator(pg_catalog.+) rows_max::pg_catalog.int8 operator(pg_catalog.*) 6400::pg_catalog.int8;
    select m.position, e.endpoint_id, e.group_id, g.conversation_group_id
    into position, endpoint_id, group_id, conversation_group_id
    from (
      select n.position, n.endpoint_id, n.xmax as taker
      from parley._p_message as n
      where n.lane operator(pg_catalog.=) $1
        and n.position operator(pg_catalog.>=) from_position
        and n.position operator(pg_catalog.<) bound
      order by n.position
      limit rows_max
    ) as m
    join parley._p_endpoint as e
      on e.endpoint_id operator(pg_catalog.=) m.endpoint_id and e.state operator(pg_catalog.<>) 'DO'
    join parley._p_conversation_group as g on g.group_id operator(pg_catalog.=) e.group_id
    -- Not what a reader keeps that went back to a savepoint, nor what awaits a report.
    where m.taker operator(pg_catalog.=) '0' or not parley._p_is_kept(m.taker, $1, m.endpoint_id, m.position)
    order by m.position
    limit 1
    for update of g skip locked;
    if found then
      return;
    end if;
    -- Readers of many messages at a time leave gaps of thousands of rows.
    select
      pg_catalog.count(*) operator(pg_catalog.<) rows_max
        and (pg_catalog.max(r.position) operator(pg_catalog.<) bound) is not false,
      pg_catalog.min(r.position)
    into is_lane_over, from_position
    from (
      select n.position
      from parley._p_message as n
      where n.lane operator(pg_catalog.=) $1 and n.position operator(pg_catalog.>=) from_position
      order by n.position
      limit rows_max
    ) as r;
    exit when v_is_again or from_position is null or from_position operator(pg_catalog.<) bound;
    v_is_again := true;
  end loop;
end
$$;

comment on function parley._p_lock_first_group(integer, bigint, integer) is
'Locks the group of the first row of a lane whose group nobody else has locked, and gives that row; nulls when there is
none among so many rows. bound says up to where it has scanned; is_lane_over, where it has found none, whether it has
left no row out.
Arguments: lane; from_position, before which nothing waits; rows_max, how many rows to scan.';

create function parley._p_lock_blocked_group(hint parley._p_scan_hint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform
  from unnest(hint.blocked_endpoints, hint.blocked_positions) as b (endpoint_id, position)
  join parley._p_endpoint as e
    on e.endpoint_id = b.endpoint_id and e.state <> 'DO'
    and (e.is_plain or parley._p_is_receivable(e.endpoint_id, e.group_id))
  cross join lateral (
    select n.position, n.lane, n.xmax as taker
    from parley._p_message as n
    where n.endpoint_id = e.endpoint_id
      and n.position >= greatest(b.position, hint.low_position)
      and n.position < hint.resume_position
    order by n.position
    limit 1
  ) as m
  join parley._p_conversation_group as g on g.group_id = e.group_id
  where m.lane = hint.lane and (m.taker = '0' or not parley._p_is_kept(m.taker, m.lane, e.endpoint_id, m.position))
  order by m.position
  limit 1
  for update of g skip locked;
  return found;
end
$$;

comment on function parley._p_lock_blocked_group(parley._p_scan_hint) is
'Locks, of the groups that a hint names, the first that has messages and that nobody else has locked, and says whether
there was one.';

create function parley._p_begins_kept(queue_id integer, group_id bigint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_first record;
begin
  select s.taker, parley._p_lane(_p_begins_kept.queue_id, s.priority) as lane, s.endpoint_id, s.position into v_first
  from parley._p_sides_in_order(queue_id, group_id, null) with ordinality as s
  order by s.ordinality
  limit 1;
  return coalesce(
    v_first.taker <> '0'
      and parley._p_is_kept(v_first.taker, v_first.lane, v_first.endpoint_id, v_first.position),
    false
  );
end
$$;

comment on function parley._p_begins_kept(integer, bigint) is
'Reports whether RECEIVE would find first, in a group of several conversations, a message that another session keeps
which went back to a savepoint, or whose report is awaited: then it would take nothing from the group
(receive/receive_group.sql).';

create function parley._p_lock_named_by_hint(
  queue_id integer, lane integer, hint parley._p_scan_hint, inout most integer,
  out group_id bigint, out endpoint_id bigint, out "position" bigint, out seen bigint[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group bigint;
  v_taker xid;
  v_endpoint bigint;
  v_position bigint;
  v_is_plain boolean;
  v_moved integer;
begin
  seen := '{}';
  -- Groups that were locked when a reader passed them by, in the order of their first message.
  for v_group, v_is_plain, v_taker, v_endpoint, v_position in
    select e.group_id, bool_and(e.is_plain), (array_agg(n.taker order by n.position))[1],
      (array_agg(e.endpoint_id order by n.position))[1], min(n.position)
    from unnest(hint.blocked_endpoints, hint.blocked_positions) as b (endpoint_id, position)
    join parley._p_endpoint as e using (endpoint_id)
    left join parley._p_set_aside as s using (endpoint_id)
    cross join lateral (
      -- One probe a conversation, however much waits in it.
      select m.position, m.lane, m.xmax as taker from parley._p_message as m
      where m.endpoint_id = e.endpoint_id
        and m.position >= greatest(b.position, hint.low_position, s.moved_position)
      order by m.position
      limit 1
    ) as n
    where e.state <> 'DO' and n.position < hint.resume_position and n.lane = _p_lock_named_by_hint.lane
    group by e.group_id
    order by min(n.position)
  loop
    perform
    from parley._p_conversation_group as g
    where g.group_id = v_group
      and (v_taker = '0' or not parley._p_is_kept(v_taker, lane, v_endpoint, v_position))
      and (v_is_plain or not parley._p_begins_kept(queue_id, v_group))
      and not exists (
        select from parley._p_delivery_claim as c where c.group_id = v_group and c.leased_until > clock_timestamp()
      )
    for update skip locked;
    if not found then
      seen := seen || parley._p_endpoints_of_group(v_group, 0);
      continue;
    end if;
    select m.endpoint_id, m.position into endpoint_id, position
    from parley._p_endpoint as e
    left join parley._p_set_aside as s using (endpoint_id)
    cross join lateral (
      select n.endpoint_id, n.position from parley._p_message as n
      where n.endpoint_id = e.endpoint_id
        and n.position >= greatest(parley._p_begin_of(hint, e.endpoint_id), s.moved_position)
        and n.lane = _p_lock_named_by_hint.lane
      order by n.position
      limit 1
    ) as m
    where e.group_id = v_group and e.state <> 'DO'
    order by m.position
    limit 1;
    if found then
      v_moved := parley._p_pass_by(queue_id, v_group, endpoint_id, position, most);
      if v_moved is null then
        group_id := v_group;
        return;
      end if;
      if v_moved = most then
        seen := seen || parley._p_endpoints_of_group(v_group, 0);
      end if;
      most := most - v_moved;
    end if;
  end loop;
  endpoint_id := null;
  position := null;
end
$$;

comment on function parley._p_lock_named_by_hint(integer, integer, parley._p_scan_hint, integer) is
'Locks, of the groups that a hint names, the first that can be received from, as _p_lock_next_group does, and gives its
first message; nulls when there is none. seen are the endpoints of those that are locked.
Arguments: queue_id; lane; hint; most, at most so many rows of what is set aside are moved out of the way; it gives how
many are left.';

create function parley._p_lock_next_group(
  queue_id integer, priorities integer, out group_id bigint, out endpoint_id bigint, out "position" bigint
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hint parley._p_scan_hint;
  v_priority integer;
  v_lane integer;
  v_begin bigint;
  v_from bigint;
  v_bound bigint;
  v_safe bigint;
  v_probe record;
  v_seen bigint[];
  v_group bigint;
  v_taker xid;
  v_is_plain boolean;
  v_moved integer;
  v_most integer := 500;
  v_named record;
begin
  for v_priority in select p.n from generate_series(10, 1, -1) as p (n) where priorities & (1 << p.n) > 0 loop
    v_lane := parley._p_lane(queue_id, v_priority);
    select * into v_hint from parley._p_newest_hint(v_lane) as h;
    v_named := parley._p_lock_named_by_hint(queue_id, v_lane, v_hint, v_most);
    v_seen := v_named.seen;
    v_most := v_named.most;
    if v_named.group_id is not null then
      select v_named.group_id, v_named.endpoint_id, v_named.position into group_id, endpoint_id, position;
      return;
    end if;
    v_begin := greatest(0, v_hint.low_position, v_hint.resume_position);
    v_from := v_begin;
    v_bound := v_begin + 4194304;
    v_safe := coalesce(v_hint.safe_position, 0);
    loop
      select m.endpoint_id, m.position, e.group_id, m.xmax, e.is_plain
      into endpoint_id, position, v_group, v_taker, v_is_plain
      from parley._p_message as m
      join parley._p_endpoint as e using (endpoint_id)
      where m.lane = v_lane
        and m.position >= v_from
        and m.position < v_bound
        and e.state <> 'DO'
        and m.endpoint_id <> all (v_seen)
      order by m.position
      limit 1;
      if not found then
        exit when not exists (select from parley._p_message as m where m.lane = v_lane and m.position >= v_bound);
        -- It will be a long scan. If no sender is under way, what it passes by is hinted to others after this scan and
        -- not the next one; it begins anew, because somebody may have committed before v_from since that was scanned.
        select p.position, p.senders into v_probe
        from parley._p_queue as q
        cross join lateral parley._p_probe(q.position_sequence) as p
        where q.queue_id = _p_lock_next_group.queue_id;
        if cardinality(v_probe.senders) = 0 then
          v_safe := greatest(v_safe, v_probe.position);
        end if;
        v_from := v_begin;
        v_bound := 9223372036854775807;
        continue;
      end if;
      perform from parley._p_conversation_group as g
      where g.group_id = v_group
        and (v_taker = '0' or not parley._p_is_kept(v_taker, v_lane, _p_lock_next_group.endpoint_id, position))
        and (v_is_plain or not parley._p_begins_kept(queue_id, v_group))
        and not exists (
          select from parley._p_delivery_claim as c where c.group_id = v_group and c.leased_until > clock_timestamp()
        )
      for update skip locked;
      if not found then
        v_seen := v_seen || endpoint_id || parley._p_endpoints_of_group(v_group, endpoint_id);
        v_from := position;
      else
        -- Between our scan and our lock another reader may have taken it, or MOVE the conversation.
        perform from parley._p_message as m
        join parley._p_endpoint as e using (endpoint_id)
        where m.endpoint_id = _p_lock_next_group.endpoint_id
          and m.position = _p_lock_next_group.position
          and e.group_id = v_group;
        if not found then
          perform parley._p_record_unseen();
          continue;
        end if;
        v_moved := parley._p_pass_by(queue_id, v_group, endpoint_id, position, v_most);
        if v_moved is not null then
          if v_moved = v_most then
            v_seen := v_seen || endpoint_id || parley._p_endpoints_of_group(v_group, endpoint_id);
          end if;
          v_most := v_most - v_moved;
          v_from := position;
        else
          group_id := v_group;
          -- With what our hint named, met or not: this scan began where the hint let it begin.
          perform parley._p_record_scan(
            queue_id, v_lane, position,
            case when cardinality(v_seen) > 0 then v_seen || v_hint.blocked_endpoints else '{}' end,
            least(position, v_safe)
          );
          return;
        end if;
      end if;
    end loop;
  end loop;
end
$$;

comment on function parley._p_lock_next_group(integer, integer) is
'Finds and locks the next group of a queue that no other transaction has locked; gives its first
message, or nulls when there is none.
Arguments: queue_id; priorities, the set of levels that exist in the queue, as bits.
Source: spec 3.6, 4.3.';

create function parley._p_endpoints_of_group(group_id bigint, without bigint) returns bigint[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select e.endpoint_id
    from parley._p_endpoint as e
    where e.group_id = _p_endpoints_of_group.group_id and e.endpoint_id <> without
    limit 63
  );
end
$$;

comment on function parley._p_endpoints_of_group(bigint, bigint) is
'Gives the endpoints of a group but for one, of a large group some: a scan passes these by without a check of each.';
