-- Setting a conversation aside: one message that always fails must not hold up the others
-- (spec 5.6, pains P14 and P17).
--
-- An endpoint that is set aside is not plain and has a row in _p_set_aside. RECEIVE and GET CONVERSATION GROUP pass it
-- by, and its senders notice nothing: they go on appending to the usual lane. A reader that meets its messages there
-- puts some hundreds of them into a lane of their own, that no reader scans, and then passes by what is left as if the
-- group were locked. A lane is changed, and not a position: so the order of a conversation is that of its positions at
-- all times. To put it back, all its messages get new positions at the end of the queue, in their old order, while no
-- sender of it is under way: readers may believe that nothing waits before their hints.
--
-- Invariants, and what keeps each:
--   only the holder of the group sets aside, moves and puts back   the lock of the group row
--   a message moves or is received, not both   the same
--   what a sender appends while its conversation is put back comes last   the lock FOR UPDATE of
--     the sender's endpoint row
--   a conversation is set aside again when whoever did it rolls back   the count, which is outside
-- Locks: groups before, endpoint rows in their order. Cost: a row moved is one update; see
-- receive/find_group.sql for passing by.

create function parley._p_set_aside_conversation(
  queue_id integer, endpoint_id bigint, "position" bigint, rollbacks integer
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_service integer;
begin
  -- The far side may just be ending. Then its EndDialog or Error is for the reader to see, and nobody waits here.
  select e.service_id into v_service
  from parley._p_endpoint as e
  where e.endpoint_id = _p_set_aside_conversation.endpoint_id
  for no key update skip locked;
  if not found then
    return false;
  end if;
  update parley._p_endpoint as e
  set is_plain = false
  where e.endpoint_id = _p_set_aside_conversation.endpoint_id and e.is_plain;
  insert into parley._p_set_aside (endpoint_id, service_id, position, moved_position, rollbacks)
  values (
    _p_set_aside_conversation.endpoint_id, v_service, _p_set_aside_conversation.position, 0,
    _p_set_aside_conversation.rollbacks
  );
  perform parley._p_move_to_set_aside_lane(queue_id, endpoint_id, position, 500);
  perform setval('parley._p_poison_found', 1);
  perform parley._p_record_unseen();
  return true;
end
$$;

comment on function parley._p_set_aside_conversation(integer, bigint, bigint, integer) is
'Sets a side of a conversation aside; its group is locked. Gives false when somebody holds its row: then not now.
Arguments: queue_id; endpoint_id; position of the message that fails; rollbacks counted.';

-- Records, outside any transaction, that a conversation was found to be poisonous and setting it aside may have been
-- rolled back: 1, otherwise 0.
create sequence parley._p_poison_found minvalue 0 start 0;

create function parley._p_is_set_aside(endpoint_id bigint) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (select from parley._p_set_aside as s where s.endpoint_id = _p_is_set_aside.endpoint_id);
end
$$;

comment on function parley._p_is_set_aside(bigint) is 'Reports whether a side of a conversation is set aside.';

create function parley._p_move_to_set_aside_lane(
  queue_id integer, endpoint_id bigint, from_position bigint, most integer
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  v_lane integer := parley._p_set_aside_lane(queue_id);
  v_moved integer;
  v_last bigint;
begin
  -- Along the index to the limit, and no plan that reads all of a long conversation first: so the settings above.
  with picked as (
    select n.ctid as row_id, n.position
    from parley._p_message as n
    where n.endpoint_id = _p_move_to_set_aside_lane.endpoint_id and n.position >= from_position and n.lane <> v_lane
    order by n.position
    limit most
  ), moved as (
    update parley._p_message as m
    set lane = v_lane
    where m.ctid = any (array(select p.row_id from picked as p))
    returning m.position
  )
  select count(*), max(m.position) into v_moved, v_last from moved as m;
  update parley._p_set_aside as s set moved_position = v_last + 1
  where s.endpoint_id = _p_move_to_set_aside_lane.endpoint_id and s.moved_position <= v_last;
  return v_moved;
end
$$;

comment on function parley._p_move_to_set_aside_lane(integer, bigint, bigint, integer) is
'Moves messages of a conversation that is set aside out of the readers'' way, and gives how many. Its group is locked.
Arguments: queue_id; endpoint_id; from_position, of the first one met; most, at most so many rows.';

create function parley._p_pass_by(
  queue_id integer, group_id bigint, endpoint_id bigint, "position" bigint, most integer
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_moved integer;
begin
  if parley._p_is_receivable(endpoint_id, group_id) then
    return null;
  elsif parley._p_is_claimed(group_id) then
    return most;
  end if;
  v_moved := parley._p_move_to_set_aside_lane(queue_id, endpoint_id, position, most);
  -- The group is locked now, and what waits for it should not wait with a reader.
  perform parley._p_record_unseen();
  -- Other conversations of the group go on.
  perform
  from parley._p_endpoint as e
  where e.group_id = _p_pass_by.group_id
    and e.endpoint_id <> _p_pass_by.endpoint_id
    and e.state <> 'DO'
    and not parley._p_is_set_aside(e.endpoint_id)
    and exists (
      select from parley._p_message as m
      where m.endpoint_id = e.endpoint_id and parley._p_owner_of_lane(m.lane) = _p_pass_by.queue_id
    );
  return case when not found then v_moved end;
end
$$;

comment on function parley._p_pass_by(integer, bigint, bigint, bigint, integer) is
'Reports whether a reader that has found and locked a group has to pass it by, because it is being delivered, or all
that waits in it is set aside: gives how many rows it has moved out of the way, and null when the group is to be
received. Of a group that is being delivered it gives most.
Arguments: queue_id; group_id; endpoint_id and position of the message found; most, at most so many rows.';

create function parley._p_set_aside_found(only_queues integer[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
  v_value bigint;
  v_head record;
  v_number integer := 0;
begin
  if coalesce(pg_sequence_last_value('parley._p_poison_found'), 0) = 0 then
    return 0;
  end if;
  perform setval('parley._p_poison_found', 0) where only_queues is null;
  for v_queue in
    select *
    from parley._p_queue as q
    where q.is_poison_message_handling_enabled
      and q.poison_action = 'SET_ASIDE'
      and not exists (select from parley._p_retry_policy as p where p.queue_id = q.queue_id)
      and (only_queues is null or q.queue_id = any (only_queues))
  loop
    v_value := coalesce(pg_sequence_last_value(v_queue.rollback_sequence), 0);
    continue when v_value = 0;
    for v_head in
      select m.endpoint_id, m.position, r.entry & 15 as rollbacks
      from unnest(array[v_value & 2147483647, v_value >> 31]) as r (entry)
      cross join lateral (
        select (
          coalesce(parley._p_last_position(v_queue.position_sequence), 0) & ~134217727::bigint
        ) + (r.entry >> 4) as number
      ) as k
      cross join generate_series(1, 10) as p (n)
      join parley._p_message as m
        on m.lane = parley._p_lane(v_queue.queue_id, p.n)
        and m.position between k.number * 1024 and k.number * 1024 + 1023
      join parley._p_endpoint as e on e.endpoint_id = m.endpoint_id
      join parley._p_conversation_group as g on g.group_id = e.group_id
      where r.entry & 15 >= v_queue.rollbacks_before_disable
        and m.xmax::text <> '0'
      for update of g skip locked
    loop
      -- With the lock held we read again: it may have gone, or been set aside, also by us for its other message.
      continue when parley._p_is_set_aside(v_head.endpoint_id);
      perform from parley._p_message as m
      where m.endpoint_id = v_head.endpoint_id and m.position = v_head.position;
      if found
        and parley._p_set_aside_conversation(
          v_queue.queue_id, v_head.endpoint_id, v_head.position, v_head.rollbacks::integer
        ) then
        v_number := v_number + 1;
      end if;
    end loop;
  end loop;
  return v_number;
end
$$;

comment on function parley._p_set_aside_found(integer[]) is
'Sets aside, in this transaction, what readers have found to be poisonous: theirs may have rolled
back. Gives how many conversations.
Arguments: only_queues, of these alone; null for all.';
