-- RECEIVE from a named conversation or group: what is named, whether it can be received from now, and its lock.
--
-- Without a time-out RECEIVE waits for the lock of the group, and holds it to the end of the transaction, whether
-- there is something or not. It waits as well while the group is being delivered (conversation/delivery_claims.sql).
-- With a time-out it waits for a message, and that may be for ever. END, ALTER SERVICE, DROP, MOVE, timers and other
-- readers need the lock meanwhile. So it reads without a lock, takes the lock only when a message is there and the
-- lock is free, and asks at each poll whether its conversation or group is still there (spec 4.3). Between poll and
-- lock a message may go, the group may be claimed, and MOVE may take the conversation out of it. Then RECEIVE has the
-- lock for nothing, and returns at once: whoever delivers needs that lock to record.
-- Locks: the group row. Cost of a poll: two statements, ten times a second at first and twice a second later.

create function parley._p_find_named(
  queue_id integer, conversation_handle uuid, conversation_group_id uuid, waited_service_id integer,
  out service_id integer, out group_id bigint
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
  v_group parley._p_conversation_group;
  v_is_here boolean;
begin
  if conversation_handle is not null then
    select * into v_endpoint
    from parley._p_endpoint as e
    where e.conversation_handle = _p_find_named.conversation_handle
      and (e.bound_version is null or not parley._p_is_hidden(e));
    service_id := v_endpoint.service_id;
    group_id := v_endpoint.group_id;
    select s.queue_id = _p_find_named.queue_id into v_is_here
    from parley._p_service as s
    where s.service_id = v_endpoint.service_id;
  end if;
  if conversation_group_id is not null then
    select * into v_group
    from parley._p_conversation_group as g
    where g.conversation_group_id = _p_find_named.conversation_group_id;
  end if;
  if conversation_handle is null then
    service_id := v_group.service_id;
    group_id := v_group.group_id;
    v_is_here := exists (
      select
      from parley._p_service as s
      where s.queue_id = _p_find_named.queue_id
        and (
          s.service_id = v_group.service_id
          or exists (
            select from parley._p_endpoint as e where e.group_id = v_group.group_id and e.service_id = s.service_id
          )
        )
    );
  end if;
  if waited_service_id is not null
    and not exists (select from parley._p_service as s where s.service_id = waited_service_id) then
    found := parley._p_raise(
      8470, 'dropped meanwhile',
      coalesce('conversation handle ' || conversation_handle, 'conversation group ' || conversation_group_id)
    );
  elsif waited_service_id is not null and group_id is not null and not v_is_here then
    found := parley._p_raise(
      8468, 'moved meanwhile',
      coalesce('conversation handle ' || conversation_handle, 'conversation group ' || conversation_group_id)
    );
  elsif conversation_handle is not null and group_id is null then
    found := parley._p_raise_unknown_handle(conversation_handle);
  elsif conversation_handle is not null and not v_is_here then
    found := parley._p_raise(8426, 'other queue', conversation_handle::text, v_endpoint.service_name);
  elsif waited_service_id is not null and v_endpoint.state = 'DO' then
    found := parley._p_raise(8426, 'ended meanwhile', conversation_handle::text);
  elsif conversation_handle is not null
    and conversation_group_id is not null
    and v_group.group_id is distinct from group_id then
    found := parley._p_raise(8414, 'not of the group', conversation_handle::text, conversation_group_id::text);
  elsif conversation_handle is null and (group_id is null or not v_is_here) then
    found := parley._p_raise(8436, 'of this queue', conversation_group_id::text);
  end if;
end
$$;

comment on function parley._p_find_named(integer, uuid, uuid, integer) is
'Finds the group of a conversation or of a group id, without a lock, and the service that it is of.
Arguments: queue_id; conversation_handle and conversation_group_id, null for one that was not given; waited_service_id,
what was found before somebody waited, null when nobody has.
Errors: 8414 the conversation is not in the group, 8426 and 8436 not found or not of this queue, or ended since, 8468
its service has another queue since, 8470 its service was dropped since.';

create function parley._p_poll_named(
  queue_id integer, conversation_handle uuid, conversation_group_id uuid, waited_service_id integer, timeout integer,
  out service_id integer, out is_ready boolean, out has_locked boolean
)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_handle constant uuid := nullif(conversation_handle, parley._p_any());
  v_named_group constant uuid := nullif(conversation_group_id, parley._p_any());
  v_for_message constant boolean := coalesce(timeout, 0) <> 0 and not parley._p_keeps_snapshot();
  v_named record;
  v_group_id bigint;
  v_keeper integer;
begin
  if conversation_handle is null then
    found := parley._p_raise(8418, 'null in RECEIVE');
  elsif conversation_group_id is null then
    found := parley._p_raise(8420, 'null in RECEIVE');
  end if;
  for v_try in 1 .. 2147483647 loop
    v_named := parley._p_find_named(queue_id, v_handle, v_named_group, waited_service_id);
    service_id := v_named.service_id;
    v_group_id := v_named.group_id;
    select count(*) > 0, max(parley._p_keeper(m.taker, _p_poll_named.queue_id)) filter (where m.taker <> '0')
    into is_ready, v_keeper
    from parley._p_endpoint as e
    left join lateral parley._p_newest_hint(parley._p_lane(_p_poll_named.queue_id, e.priority)) as h on true
    cross join lateral (
      select n.lane, n.xmax as taker
      from parley._p_message as n
      where n.endpoint_id = e.endpoint_id and n.position >= parley._p_begin_of(h, e.endpoint_id)
      order by n.position
      limit 1
    ) as m
    where e.group_id = v_group_id
      and e.state <> 'DO'
      and m.lane = parley._p_lane(_p_poll_named.queue_id, e.priority)
      and (v_handle is null or e.conversation_handle = v_handle)
      and (e.is_plain or parley._p_is_receivable(e.endpoint_id, e.group_id));
    if v_keeper is null then
      exit;
    elsif v_for_message then
      is_ready := false;
      return;
    end if;
    perform parley._p_raise_deadlock(v_keeper) where v_try % 100 = 0;
    perform pg_sleep(0.01);
  end loop;
  if not v_for_message then
    -- RECEIVE waits for the lock, and holds it.
    is_ready := true;
  elsif is_ready then
    perform from parley._p_conversation_group as g where g.group_id = v_group_id for update skip locked;
    has_locked := found;
    is_ready := has_locked and not parley._p_is_claimed(v_group_id) and (
      v_handle is null or exists (
        select from parley._p_endpoint as e where e.conversation_handle = v_handle and e.group_id = v_group_id
      )
    );
  end if;
end
$$;

comment on function parley._p_poll_named(integer, uuid, uuid, integer, integer) is
'Reports whether it is worth receiving from a named conversation or group now.
Arguments: queue_id; conversation_handle and conversation_group_id as receive got them; waited_service_id, the service
found at the last poll, null at the first; timeout of receive, in milliseconds: with one, is_ready is given only when
there is a message and the lock was free and has been taken, and has_locked says whether it has; without, RECEIVE waits
for the lock.
Errors: 8414, 8418, 8420, 8426, 8436, 8468, 8470; 40P01 when it waits for somebody who waits for us.';

create function parley._p_lock_named_group(
  queue_id integer, conversation_handle uuid, conversation_group_id uuid, has_deliveries boolean
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group_id bigint;
begin
  loop
    v_group_id := (parley._p_find_named(queue_id, conversation_handle, conversation_group_id, null)).group_id;
    if has_deliveries then
      perform parley._p_lock_unclaimed(array[v_group_id]);
    end if;
    perform from parley._p_conversation_group as g where g.group_id = v_group_id for update;
    -- While we waited it may have moved to another group, or ended; the group may have gone.
    exit when found
      and (parley._p_find_named(queue_id, conversation_handle, conversation_group_id, null)).group_id = v_group_id;
  end loop;
  return v_group_id;
end
$$;

comment on function parley._p_lock_named_group(integer, uuid, uuid, boolean) is
'Locks a group or that of a conversation, waiting for its holder.
Arguments: queue_id; conversation_handle and conversation_group_id, null for one that was not given; has_deliveries,
whether it may be claimed: then this waits for the end of that, too.
Errors: 8414, 8426 and 8436 not found or not of this queue.';
