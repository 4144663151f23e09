-- Reading queues from outside: how much waits in each, and what comes first.
--
-- Screens ask this again and again, so neither answer may cost more the longer the queue is: see
-- views/queue_depth.sql for the numbers. Nothing is locked, no body is read that is not shown, and both functions
-- work on queues that are off.

create function parley.queue_backlogs(queue text default null, caller parley.caller default parley.current_caller())
returns table (
  queue_name text,
  service_queue_id integer,
  waiting_messages bigint,
  is_estimated boolean,
  oldest_enqueue_time timestamptz,
  held_messages bigint,
  delayed_messages bigint,
  rollbacks integer,
  rollbacks_before_disable integer
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_only integer;
  v_queue parley._p_queue;
  v_waiting record;
  v_held record;
begin
  if queue_backlogs.queue is not null then
    v_only := (parley._p_find_queue(v_caller, queue_backlogs.queue, 'RECEIVE')).queue_id;
  end if;
  for v_queue in select * from parley._p_queue as q where v_only is null or q.queue_id = v_only order by q.queue_id loop
    continue when parley._p_has_permission(v_caller, 'RECEIVE', 'queue', v_queue.queue_id, v_queue.owner) is not true;
    queue_name := v_queue.lookup_name;
    service_queue_id := v_queue.queue_id;
    v_waiting := parley._p_backlog(v_queue, 0, v_queue.disabled_position);
    waiting_messages := v_waiting.messages;
    is_estimated := v_waiting.is_estimated;
    oldest_enqueue_time := v_waiting.oldest_enqueue_time;
    held_messages := 0;
    if v_queue.disabled_position is not null then
      v_held := parley._p_backlog(v_queue, v_queue.disabled_position, null);
      held_messages := v_held.messages;
      is_estimated := is_estimated or v_held.is_estimated;
    end if;
    delayed_messages := parley._p_count_delayed(v_queue.queue_id);
    -- The two entries of the rollback sequence, see poison/poison.sql, as far as they are of messages
    -- that may still be received.
    select coalesce(max(e.entry & 15), 0)::integer into rollbacks
    from (select coalesce(pg_sequence_last_value(v_queue.rollback_sequence), 0) as value) as s
    cross join unnest(array[s.value & 2147483647, s.value >> 31]) as e (entry)
    where e.entry & 15 > 0 and parley._p_is_waiting(v_queue.queue_id, e.entry >> 4);
    rollbacks_before_disable := v_queue.rollbacks_before_disable;
    return next;
  end loop;
end
$$;

comment on function parley.queue_backlogs(text, parley.caller) is
'Gives how much waits in each queue that the caller may receive from.
The cost does not grow with the queue: beyond some 10,000 rows the number is estimated, within a few percent.
Columns: queue_name, as the other functions take it; service_queue_id; waiting_messages, ready to be received;
is_estimated; oldest_enqueue_time of what is ready; held_messages, which arrived while the queue was off and are still
their senders''; delayed_messages, sent or put here for later and not due, counted up to some 100,000; rollbacks,
counted of a message that keeps coming back; rollbacks_before_disable, at how many of them its conversation is set
aside or the queue disabled.
Arguments: queue, only that one (null: all).
Errors: 208 no such queue, 229 not allowed, 9609 malformed name.';

create function parley._p_next_sequence(endpoint_id bigint, before bigint, counts boolean) returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce((
    select r.sequence
    from parley._p_receive_progress as r
    where r.endpoint_id = _p_next_sequence.endpoint_id
    order by r.sequence desc
    limit 1
  ), 0) + coalesce((
    select sum(coalesce(cardinality(m.frame), 1))
    from parley._p_message as m
    where m.endpoint_id = _p_next_sequence.endpoint_id
      and m.position < before
      and m.message_type_id not in (1, 5)
      and counts
  ), 0);
end
$$;

comment on function parley._p_next_sequence(bigint, bigint, boolean) is
'Gives the message_sequence_number of the first message of a side from a position on.
Arguments: endpoint_id; before, that position; counts, whether something of the side may wait in front of it.';

create function parley._p_peek_at_conversations(
  queue parley._p_queue, top integer, endpoint bigint, after_lane integer, after_position bigint
) returns setof parley.received_message
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_end bigint := coalesce(queue.disabled_position, 9223372036854775807);
begin
  return query
  with first as materialized (
    (
      select m.position, m.endpoint_id, m.lane, m.enqueued_at, m.message_type_id, m.body, m.frame, m.trace_context
      from parley._p_message as m
      join parley._p_endpoint as e on e.endpoint_id = m.endpoint_id and e.state <> 'DO'
      where endpoint is null
        and (e.is_plain or not parley._p_is_set_aside(e.endpoint_id))
        -- The row of a frame stands where its first message does.
        and (m.lane, m.position) >= (after_lane, after_position / 1024 * 1024)
        and (
          m.lane > after_lane or m.position > after_position
          or m.position + cardinality(m.frame) - 1 > after_position
        )
        and m.lane <= parley._p_lane(queue.queue_id, 1)
        and m.position < v_end
      order by m.lane, m.position
      limit top
    )
    union all
    (
      select m.position, m.endpoint_id, m.lane, m.enqueued_at, m.message_type_id, m.body, m.frame, m.trace_context
      from parley._p_message as m
      where m.endpoint_id = endpoint
        and m.lane between parley._p_lane(queue.queue_id, 10) and parley._p_set_aside_lane(queue.queue_id)
        and m.position >= after_position / 1024 * 1024
        and (m.position > after_position or m.position + cardinality(m.frame) - 1 > after_position)
        and m.position < v_end
      order by m.position
      limit top
    )
  ), conversations as materialized (
    select
      f.endpoint_id, parley._p_next_sequence(f.endpoint_id, min(f.position), after_position >= 0) as next_sequence
    from first as f
    group by f.endpoint_id
  )
  select (o.message).*
  from (
    select
      m.lane,
      m.position + b.ordinal - 1 as place,
      parley._p_as_received(
        case when not e.is_plain and parley._p_is_set_aside(e.endpoint_id) then 2 else 1 end::smallint,
        m.position + b.ordinal - 1,
        case
          when m.message_type_id in (1, 5) then -1
          else c.next_sequence - 1 + count(*) filter (where m.message_type_id not in (1, 5)) over (
            partition by m.endpoint_id order by m.position, b.ordinal rows unbounded preceding
          )
        end,
        e, g.conversation_group_id, t, b.body, m.enqueued_at, m.trace_context
      ) as message
    from first as m
    join conversations as c on c.endpoint_id = m.endpoint_id
    join parley._p_endpoint as e on e.endpoint_id = m.endpoint_id
    join parley._p_conversation_group as g using (group_id)
    join parley._p_message_type as t on t.message_type_id = m.message_type_id
    cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
  ) as o
  where o.lane > after_lane or o.place > after_position
  order by case when endpoint is null then o.lane end, o.place
  limit top;
end
$$;

comment on function parley._p_peek_at_conversations(parley._p_queue, integer, bigint, integer, bigint) is
'Gives messages of a queue of conversations for parley.peek.
Arguments: queue; top, at most so many; endpoint, of this side alone, null for all; after_lane and after_position, of
the place behind which they stand; with endpoint the latter counts.';

create function parley.peek(
  queue text, top integer default 10, conversation_handle uuid default null,
  after_priority integer default null, after_queuing_order bigint default null,
  caller parley.caller default parley.current_caller()
) returns setof parley.received_message
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
  v_endpoint bigint;
  v_after record;
begin
  found := parley._p_require_top(top);
  if peek.conversation_handle is null then
    v_after := parley._p_place_in_queue(v_queue, after_priority, after_queuing_order, 'after_queuing_order');
  elsif v_queue.is_simple then
    found := parley._p_raise(8402, 'conversation of a simple queue', v_queue.lookup_name);
  elsif after_priority is not null then
    found := parley._p_raise(8402, 'place in a conversation');
  else
    v_endpoint := (parley._p_find_endpoint(peek.conversation_handle)).endpoint_id;
    select null::integer as lane, coalesce(after_queuing_order, -1) as position into v_after;
  end if;
  if v_queue.is_simple then
    return query
    select (o.message).*
    from (
      select parley._p_put_as_received(1::smallint, m, 11 - m.lane % 16) as message
      from parley._p_message as m
      where (m.lane, m.position) > (v_after.lane, v_after.position)
        and m.lane <= parley._p_lane(v_queue.queue_id, 1)
      order by m.lane, m.position
      limit top
    ) as o;
    return;
  end if;
  return query
  select m.*
  from parley._p_peek_at_conversations(v_queue, top, v_endpoint, v_after.lane, v_after.position) as m;
end
$$;

comment on function parley.peek(text, integer, uuid, integer, bigint, parley.caller) is
'Gives the first messages of a queue, by priority and arrival, or a page behind one, without taking them. It disturbs no
reader, messages of locked groups are shown too, and the cost does not grow with the queue; a later page counts what
stands in front of it of the conversations that it shows, for their message_sequence_number. Messages that retention
keeps are not shown: see queue_contents. A conversation that is set aside is shown, with status 2, when it is asked for
by its handle. Messages of a simple queue have no columns of a conversation: see peek_messages, which gives their keys.
Arguments: queue; top, at most so many messages (null: all); conversation_handle, only messages of that conversation;
after_priority and after_queuing_order, of the last message of the page before, which need not be there any more (null:
the first page), of one conversation the latter alone.
Errors: 127 top negative, 208 no such queue, 229 not allowed, 8402 one of the two alone, after_priority out of range or
with a handle, a handle with a simple queue, 8426 conversation not found, 9609 malformed name.';
