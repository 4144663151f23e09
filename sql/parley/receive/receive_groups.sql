-- RECEIVE from many groups in one call (spec R-PERF-4).
--
-- Its answer is that of RECEIVE called again and again in one transaction, each time for a group that it has not
-- received from, until it has so many messages or groups. A few statements do it, whatever the number of groups.
--
-- 1. _p_lock_first_group: lock the first group that is free. It decides: when its first message has come back from a
--    rollback, or it is not plain, the usual way receives it, alone.
-- 2. _p_lock_heads: lock the groups of the rows behind it, passing by what has come back: so a message that fails is
--    received with others once, and then alone, and it alone is counted.
-- 3. _p_take_heads: with the locks held, a new statement takes the first messages of all of them, in equal parts, so
--    that it reads little that it does not take; _p_take_first_of_each where that is one message each. A group
--    that is not plain there, or has moved or come back since, is left for another RECEIVE.
-- Repeated until it is full, as conversations have few messages or many. A group is locked only when it had a message
-- that would have fitted. A group that was locked in vain (another reader has taken its messages between the scan and
-- the lock) stays locked to the end of the transaction.
--
-- Invariants: those of receive/receive.sql, and what keeps each: no other session takes from a group whose row is
-- locked; rows are read after the lock; no message waits before the place where the hint lets the scan begin.
-- Locks: group rows, skipping locked ones, then message rows. Cost of a call: three statements of a round, of
-- which one or two are usual.

create function parley._p_require_groups(groups integer, is_named boolean) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if is_named then
    found := parley._p_raise(8402, 'groups of one', groups::text);
  end if;
  return parley._p_require_range('groups', groups, 1, 10000);
end
$$;

comment on function parley._p_require_groups(integer, boolean) is
'Gives true when a number of groups may be received from: 1 to 10,000, and no conversation or group is named.
Errors: 8402.';

create function parley._p_lock_heads(
  lane integer, from_position bigint, blocked bigint[], rows_max integer, out endpoints bigint[], out groups bigint[],
  out group_ids uuid[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  select coalesce(array_agg(o.endpoint_id order by o.position), '{}'), array_agg(o.group_id order by o.position),
    array_agg(o.conversation_group_id order by o.position)
  into endpoints, groups, group_ids
  from (
    select h.endpoint_id, h.group_id, h.conversation_group_id, min(h.position) as position
    from (
      select m.position, m.endpoint_id, e.group_id, g.conversation_group_id
      from (
        select n.position, n.endpoint_id, n.xmax as taker
        from parley._p_message as n
        where n.lane = _p_lock_heads.lane and n.position >= from_position
        order by n.position
        limit 1000 + 4 * rows_max
      ) as m
      join parley._p_endpoint as e
        on e.endpoint_id = m.endpoint_id and e.state <> 'DO' and e.is_plain and e.endpoint_id <> all (blocked)
      join parley._p_conversation_group as g on g.group_id = e.group_id
      where m.taker = '0'
      order by m.position
      limit rows_max
      for update of g skip locked
    ) as h
    group by h.endpoint_id, h.group_id, h.conversation_group_id
  ) as o;
end
$$;

comment on function parley._p_lock_heads(integer, bigint, bigint[], integer) is
'Locks the groups of the next rows of a lane that nobody has received and whose groups nobody else has locked, and gives
their conversations by arrival.
Arguments: lane; from_position, where to begin; blocked, the endpoints that the hint names; rows_max, how many rows,
and so at most how many groups.';

create function parley._p_take_first_of_each(
  lane integer, from_position bigint, endpoints bigint[], groups bigint[], group_ids uuid[]
)
returns setof parley.received_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  with gone as (
    delete from parley._p_message as m
    using (
      select u.number, u.conversation_group_id, k.row_id, e.endpoint_id, e.priority, e.conversation_handle,
        e.service_name, e.service_id, e.service_contract_name, e.service_contract_id,
        coalesce(
          (select max(p.sequence) from parley._p_receive_progress as p where p.endpoint_id = e.endpoint_id), 0
        ) as sequence
      from unnest(endpoints, groups, group_ids)
        with ordinality as u (endpoint_id, group_id, conversation_group_id, number)
      -- MOVE may have been quicker than our lock.
      join parley._p_endpoint as e
        on e.endpoint_id = u.endpoint_id and e.group_id = u.group_id and e.is_plain and e.state <> 'DO'
      cross join lateral (
        select n.ctid as row_id,
          n.frame is null and n.xmax = '0' and n.message_type_id not in (1, 5)
            and n.lane = _p_take_first_of_each.lane as is_ours
        from parley._p_message as n
        where n.endpoint_id = e.endpoint_id and n.position >= from_position
        order by n.position
        limit 1
      ) as k
      where k.is_ours
    ) as f
    where m.ctid = f.row_id
    returning f.number, f.conversation_group_id, f.endpoint_id, f.priority, f.conversation_handle, f.service_name,
      f.service_id, f.service_contract_name, f.service_contract_id, f.sequence, m.position, m.message_type_id,
      m.enqueued_at, m.body, m.trace_context
  ), recorded as (
    insert into parley._p_receive_progress (endpoint_id, sequence) select g.endpoint_id, g.sequence + 1 from gone as g
    returning xmin as transaction_id, endpoint_id
  ), kept as (
    select count((select parley._p_keep(r.transaction_id, r.endpoint_id)) is null) as subtransactions
    from (
      select n.* from recorded as n where n.transaction_id <> pg_current_xact_id()::xid limit 1
    ) as r
  ), forgotten as (
    -- As _p_forget_progress does.
    delete from parley._p_receive_progress as p
    using gone as g
    where (g.sequence + 1) % 32 = 0
      and p.endpoint_id = g.endpoint_id
      and p.sequence <= g.sequence
      and p.sequence > case when (g.sequence + 1) % 32768 = 0 then -1 else g.sequence - 1024 end
  )
  select (parley._p_received(
    0::smallint, g.priority, g.position, g.conversation_group_id, g.conversation_handle, g.sequence, g.service_name,
    g.service_id, g.service_contract_name, g.service_contract_id, g.message_type_id, t.name, t.validation::text, g.body,
    g.enqueued_at, null, g.trace_context
  )).*
  from kept
  cross join gone as g
  join parley._p_message_type as t using (message_type_id)
  order by g.number;
end
$$;

comment on function parley._p_take_first_of_each(integer, bigint, bigint[], bigint[], uuid[]) is
'Takes the first message of each of some conversations whose groups are locked, where it was sent alone: of many short
conversations that is all, for a third less than what _p_take_heads costs, which takes the rest.
Arguments: as _p_take_heads; group_ids, the id of the group of each.';

create function parley._p_take_heads(
  lane integer, from_position bigint, endpoints bigint[], groups bigint[], share bigint, top bigint
)
returns setof parley.received_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  with fitting as (
    -- The columns go all the way through: a join of what is deleted with the heads would compare each with each. The
    -- first of each counts before the second of any: nothing is locked in vain.
    select t.*
    from (
      select o.*, sum(o.size) over (order by o.place, o.number rows unbounded preceding) as total
      from (
        select h.*, k.row_id, k.size,
          row_number() over w as place,
          bool_or(k.is_for_others) over w as is_for_others,
          sum(k.size) over w - k.size as before
        from (
          select u.number, e.endpoint_id, e.priority, g.conversation_group_id, e.conversation_handle, e.service_name,
            e.service_id, e.service_contract_name, e.service_contract_id,
            coalesce(
              (select max(p.sequence) from parley._p_receive_progress as p where p.endpoint_id = e.endpoint_id), 0
            ) as sequence
          from unnest(endpoints, groups) with ordinality as u (endpoint_id, group_id, number)
          -- MOVE may have been quicker than our lock.
          join parley._p_endpoint as e
            on e.endpoint_id = u.endpoint_id and e.group_id = u.group_id and e.is_plain and e.state <> 'DO'
          join parley._p_conversation_group as g on g.group_id = e.group_id
        ) as h
        cross join lateral (
          select n.ctid as row_id, n.position, coalesce(cardinality(n.frame), 1) as size,
            n.xmax <> '0' or n.message_type_id in (1, 5) or n.lane <> _p_take_heads.lane as is_for_others
          from parley._p_message as n
          where n.endpoint_id = h.endpoint_id and n.position >= from_position
          order by n.position
          limit share
        ) as k
        window w as (partition by h.number order by k.position rows unbounded preceding)
      ) as o
    ) as t
    where not t.is_for_others and t.total <= top
  ), gone as (
    delete from parley._p_message as m
    using fitting as f
    where m.ctid = f.row_id
    returning f.number, f.endpoint_id, f.priority, f.conversation_group_id, f.conversation_handle, f.service_name,
      f.service_id, f.service_contract_name, f.service_contract_id, f.sequence, f.size, f.before, m.position,
      m.message_type_id, m.enqueued_at, m.body, m.frame, m.trace_context
  ), received as (
    select g.endpoint_id, (g.sequence + sum(g.size))::bigint as next, sum(g.size)::bigint as messages
    from gone as g
    group by g.endpoint_id, g.sequence
  ), recorded as (
    insert into parley._p_receive_progress (endpoint_id, sequence) select r.endpoint_id, r.next from received as r
    returning xmin as transaction_id, endpoint_id
  ), kept as (
    select count((select parley._p_keep(r.transaction_id, r.endpoint_id)) is null) as subtransactions
    from (
      select n.* from recorded as n where n.transaction_id <> pg_current_xact_id()::xid limit 1
    ) as r
  ), forgotten as (
    -- As _p_forget_progress does, for about every 32nd RECEIVE.
    delete from parley._p_receive_progress as p
    using received as r
    where r.next / r.messages / 32 <> (r.next - r.messages) / r.messages / 32
      and p.endpoint_id = r.endpoint_id
      and p.sequence < r.next
      and p.sequence >= case
        when r.next / r.messages / 32768 = (r.next - r.messages) / r.messages / 32768 then r.next - 1024 * r.messages
        else 0
      end
  )
  select (parley._p_received(
    0::smallint, g.priority, g.position + coalesce(b.number - 1, 0), g.conversation_group_id, g.conversation_handle,
    (g.sequence + g.before + coalesce(b.number - 1, 0))::bigint, g.service_name, g.service_id,
    g.service_contract_name, g.service_contract_id, g.message_type_id, t.name, t.validation::text,
    case when g.frame is null then g.body else b.body end, g.enqueued_at, null, g.trace_context
  )).*
  from kept
  cross join gone as g
  join parley._p_message_type as t using (message_type_id)
  left join lateral unnest(g.frame) with ordinality as b (body, number) on true
  order by g.number, g.position, b.number;
end
$$;

comment on function parley._p_take_heads(integer, bigint, bigint[], bigint[], bigint, bigint) is
'Takes the first messages of conversations whose groups are locked, conversation by conversation. It takes whole rows,
and leaves a conversation that is no longer plain, or whose first message has come back from a rollback. In a
subtransaction it keeps them.
Arguments: lane, of all of them; from_position, before which nothing waits; endpoints, and groups, that of each; share,
at most so many rows of each; top, messages of all.';

create function parley._p_receive_groups(
  queue parley._p_queue, top integer, groups integer
) returns setof parley.received_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_left bigint := coalesce(top, 2147483647);
  v_groups integer := groups;
  v_priority integer;
  v_lane integer;
  v_hint parley._p_scan_hint;
  v_low bigint;
  v_first record;
  v_size integer;
  v_share bigint;
  v_found record;
  v_held record;
  v_count integer;
  v_has_locked boolean := false;
begin
  for v_priority in select p.n from generate_series(10, 1, -1) as p (n) where queue.priorities & (1 << p.n) > 0 loop
    v_lane := parley._p_lane(queue.queue_id, v_priority);
    select * into v_hint from parley._p_newest_hint(v_lane) as h;
    -- The group that the hint names comes first, and is received the usual way.
    exit when cardinality(v_hint.blocked_endpoints) > 0 and queue.priorities <> 32;
    v_low := greatest(0, v_hint.low_position, v_hint.resume_position);
    -- Readers side by side may have locked as many as that at the head.
    v_first := parley._p_lock_first_group(v_lane, v_low, 2000);
    continue when v_first.position is null and v_first.is_lane_over;
    exit when v_first.position is null;
    v_has_locked := true;
    select cardinality(m.frame) into v_size
    from parley._p_endpoint as e
    join parley._p_message as m using (endpoint_id)
    where e.endpoint_id = v_first.endpoint_id and e.is_plain
      and m.position = v_first.position and m.xmax = '0' and m.message_type_id not in (1, 5);
    exit when not found or v_size > v_left or v_first.endpoint_id = any (v_hint.blocked_endpoints);
    -- As in RECEIVE of one group: not all readers at once.
    if v_first.position - v_low > 65536
      and (v_first.position - v_low > 524288 or (v_first.position >> 10) % 16 = pg_backend_pid() % 16) then
      perform parley._p_renew_hint(queue.queue_id, v_lane, v_first.position, v_hint);
    end if;
    select '{}'::bigint[] as endpoints, '{}'::bigint[] as groups into v_held;
    for v_round in 0 .. 40 loop
      v_found := v_held;
      if v_groups > 0 then
        -- All rows are taken to be as large as the first.
        v_found := parley._p_lock_heads(
          v_lane, v_first.position, coalesce(v_hint.blocked_endpoints, '{}'),
          least(v_left / coalesce(v_size, 1), v_groups, 10000)::integer
        );
        exit when cardinality(v_found.endpoints) = 0;
        v_groups := v_groups + cardinality(v_held.endpoints);
        if v_round = 0 then
          v_held := v_found;
        else
          select array_agg(u.id) as endpoints, array_agg(u.group_id) as groups into v_held
          from (
            select distinct *
            from unnest(v_held.endpoints || v_found.endpoints, v_held.groups || v_found.groups) as h (id, group_id)
          ) as u;
        end if;
        v_groups := v_groups - cardinality(v_held.endpoints);
      end if;
      -- Twice as much in each round, for when few conversations have much.
      v_share := (v_left + cardinality(v_found.endpoints) - 1) / cardinality(v_found.endpoints) << least(v_round, 20);
      if v_round = 0 and v_share = 1 and v_size is null then
        return query
        select *
        from parley._p_take_first_of_each(v_lane, v_low, v_found.endpoints, v_found.groups, v_found.group_ids);
      else
        return query
        select * from parley._p_take_heads(v_lane, v_low, v_found.endpoints, v_found.groups, v_share, v_left);
      end if;
      get diagnostics v_count = row_count;
      v_left := v_left - v_count;
      -- Nothing at all: others have taken it between the scan and the locks, so scan again.
      exit when v_left = 0 or v_count = 0 and (v_groups = 0 or v_round > 2);
    end loop;
    exit when v_left = 0 or v_groups = 0;
  end loop;
  if v_has_locked and v_left = coalesce(top, 2147483647) then
    perform parley._p_record_unseen();
  end if;
end
$$;

comment on function parley._p_receive_groups(parley._p_queue, integer, integer) is
'Receives from the first groups of a queue that nobody else has locked, as long as all is usual; nothing when the first
of them is not, or when more is locked than is worth passing by: then RECEIVE goes on as ever.
Arguments: queue; top, messages, null for all of the groups; groups, at most so many.
Source: spec R-PERF-4.';
