-- RECEIVE in the cases that are not plain: a group of several conversations, Error and timer messages, retention, other
-- priorities, locked groups at the head of the queue, a named conversation or group.
--
-- Order (spec 3.4, 4.3): conversation by conversation, by priority and then by their first message; inside one,
-- DialogTimer first, then Error, then the rest in sequence.

create function parley._p_sides_in_order(queue_id integer, group_id bigint, conversation_handle uuid)
returns table (endpoint_id bigint, "position" bigint, taker xid, safe_position bigint, priority smallint)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select e.endpoint_id, m.position, m.taker, coalesce(h.safe_position, 0), e.priority
  from parley._p_endpoint as e
  left join lateral parley._p_newest_hint(parley._p_lane($1, e.priority)) as h on true
  cross join lateral (
    select n.position, n.lane, n.xmax as taker
    from parley._p_message as n
    where n.endpoint_id = e.endpoint_id and n.position >= parley._p_begin_of(h, e.endpoint_id)
    order by n.position
    limit 1
  ) as m
  where e.group_id = $2
    and e.state <> 'DO'
    -- MOVE may have put conversations of two services into the group, and ALTER SERVICE one of these into another
    -- queue.
    and m.lane = parley._p_lane($1, e.priority)
    and ($3 is null or e.conversation_handle = $3)
    and (e.is_plain or parley._p_is_receivable(e.endpoint_id, e.group_id))
  order by e.priority desc, m.position;
end
$$;

comment on function parley._p_sides_in_order(integer, bigint, uuid) is
'Gives the sides of a group from which RECEIVE takes, in its order, each with its first message, the transaction that
has taken that before, the position before which no sender can add one, and its priority.
Arguments: queue_id; group_id; conversation_handle, only this one (null: all).';

create function parley._p_receive_group(
  queue_id integer, top integer, conversation_handle uuid, conversation_group_id uuid,
  awaits_reports boolean default false
) returns setof parley.received_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
  v_group_id bigint;
  v_left integer := top;
  v_endpoint record;
  v_count integer;
  v_is_set_aside boolean;
begin
  conversation_handle := nullif(conversation_handle, parley._p_any());
  conversation_group_id := nullif(conversation_group_id, parley._p_any());
  select * into v_queue from parley._p_queue as q where q.queue_id = _p_receive_group.queue_id;
  loop
    if conversation_handle is not null or conversation_group_id is not null then
      v_group_id := parley._p_lock_named_group(
        queue_id, conversation_handle, conversation_group_id, v_queue.has_deliveries
      );
    else
      v_group_id := (parley._p_lock_next_group(queue_id, v_queue.priorities)).group_id;
      if v_group_id is null then
        return;
      end if;
    end if;
    v_is_set_aside := false;
    v_count := 0;
    for v_endpoint in
      select s.endpoint_id, s.position, s.taker, s.safe_position, s.priority
      from parley._p_sides_in_order(queue_id, v_group_id, conversation_handle) with ordinality as s
      order by s.ordinality
    loop
      exit when v_left <= 0;
      if v_endpoint.taker <> '0' then
        -- A reader that went back to a savepoint keeps it (receive/savepoints.sql), and a message behind it led here.
        exit when parley._p_keeper(v_endpoint.taker, _p_receive_group.queue_id) is not null
          or awaits_reports and parley._p_await_report(
            parley._p_lane(queue_id, v_endpoint.priority), v_endpoint.endpoint_id, v_endpoint.position, v_endpoint.taker
          );
        v_is_set_aside := parley._p_count_rollback(queue_id, v_endpoint.endpoint_id, v_endpoint.position);
        if v_is_set_aside is null then
          return;
        end if;
        continue when v_is_set_aside;
      end if;
      -- Senders that have committed since our scan may have filled places in front of the first message we saw (keeps
      -- S4).
      return query
      select *
      from parley._p_take(
        v_queue, v_endpoint.endpoint_id, least(v_endpoint.position, v_endpoint.safe_position), v_left
      );
      get diagnostics v_count = row_count;
      v_left := v_left - v_count;
    end loop;
    -- All that the group had may have been set aside just now. Another group may have something.
    exit when v_count > 0 or conversation_handle is not null or conversation_group_id is not null or not v_is_set_aside;
  end loop;
end
$$;

comment on function parley._p_receive_group(integer, integer, uuid, uuid, boolean) is
'Receives from the next group of a queue, from a named group, or from a named conversation.
Arguments: queue_id; top; conversation_handle; conversation_group_id; awaits_reports, whether it passes by what came
back when its report may still come: not where the caller of RECEIVE has named it.
Errors: 8414, 8426, 8436, 9617.';

create function parley._p_messages_in_order(endpoint parley._p_endpoint, from_position bigint, rows_max integer)
returns setof parley._p_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not endpoint.is_plain
    and exists (select from parley._p_expedited as x where x.endpoint_id = endpoint.endpoint_id) then
    return query
    select m.*
    from parley._p_message as m
    where m.endpoint_id = endpoint.endpoint_id and m.position >= from_position
    order by case m.message_type_id when 5 then 0 when 1 then 1 else 2 end, m.position
    limit rows_max;
  else
    return query
    select m.*
    from parley._p_message as m
    where m.endpoint_id = endpoint.endpoint_id and m.position >= from_position
    order by m.position
    limit rows_max;
  end if;
end
$$;

comment on function parley._p_messages_in_order(parley._p_endpoint, bigint, integer) is
'Gives the first rows of a conversation in the order in which they are received: DialogTimer, Error, the rest by
position.
Arguments: endpoint; from_position, before which nothing waits; rows_max, each a message or a frame, null for all.';

create function parley._p_take(queue parley._p_queue, endpoint_id bigint, from_position bigint, top integer)
returns setof parley.received_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
  v_sequence bigint;
  v_started bigint;
  v_message record;
  v_row parley.received_message;
  v_group_id uuid;
  v_taken integer;
  v_left integer := top;
  v_rows integer := 16;
  v_asked integer;
  v_seen integer;
  v_expedited bigint[];
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_take.endpoint_id;
  select p.sequence into v_sequence
  from parley._p_receive_progress as p where p.endpoint_id = v_endpoint.endpoint_id order by p.sequence desc limit 1;
  v_sequence := coalesce(v_sequence, 0);
  v_started := v_sequence;
  select g.conversation_group_id into v_group_id
  from parley._p_conversation_group as g
  where g.group_id = v_endpoint.group_id;
  if not v_endpoint.is_plain then
    v_expedited := array(
      select x.expedited_id from parley._p_expedited as x where x.endpoint_id = v_endpoint.endpoint_id
    );
  end if;
  loop
    -- A row may be a frame of many messages: reading a hundred of them is too much to take the first. Each portion
    -- begins in front again, where a sender may have committed meanwhile (keeps S4).
    v_asked := least(v_left, v_rows);
    v_seen := 0;
    for v_message in
      select m.position, m.message_type_id, m.enqueued_at, m.body, m.frame, m.trace_context, t.name, t.validation
      from parley._p_messages_in_order(v_endpoint, from_position, v_asked) with ordinality as m
      join parley._p_message_type as t using (message_type_id)
      order by m.ordinality
    loop
      exit when v_left <= 0;
      v_seen := v_seen + 1;
      if v_message.message_type_id in (1, 5) then
        delete from parley._p_expedited as x where x.expedited_id = v_expedited[1];
        v_expedited := v_expedited[2:];
      elsif cardinality(v_expedited) > 0 then
        -- Those are all received that had arrived when we began.
        delete from parley._p_expedited as x where x.expedited_id = any (v_expedited);
        v_expedited := '{}';
      end if;
      delete from parley._p_message as m
      where m.endpoint_id = v_endpoint.endpoint_id and m.position = v_message.position;
      -- No reader takes from a group that we hold, but for a reader at REPEATABLE READ that saw the conversation in a
      -- group it has left since (keeps S3).
      continue when not found;
      v_taken := least(coalesce(cardinality(v_message.frame), 1), coalesce(v_left, 2147483647));
      for i in 1 .. v_taken loop
        -- Timer messages and Errors stand outside the sequence.
        v_row := parley._p_received(
          0::smallint, v_endpoint.priority, v_message.position + i - 1, v_group_id, v_endpoint.conversation_handle,
          case when v_message.message_type_id in (1, 5) then -1 else v_sequence end, v_endpoint.service_name,
          v_endpoint.service_id, v_endpoint.service_contract_name, v_endpoint.service_contract_id,
          v_message.message_type_id, v_message.name, v_message.validation::text,
          case when v_message.frame is null then v_message.body else v_message.frame[i] end, v_message.enqueued_at,
          null, v_message.trace_context
        );
        if v_message.message_type_id not in (1, 5) then
          v_sequence := v_sequence + 1;
        end if;
        if queue.is_retention_enabled then
          insert into parley._p_retained (
            queue_id, endpoint_id, status, position, message_sequence_number, message_type_id, enqueued_at, body,
            trace_context
          )
          values (
            queue.queue_id, v_endpoint.endpoint_id, 0, v_row.queuing_order, v_row.message_sequence_number,
            v_row.message_type_id, v_row.message_enqueue_time, v_row.message_body, v_row.trace_context
          );
        end if;
        return next v_row;
      end loop;
      if v_taken < cardinality(v_message.frame) then
        perform parley._p_put_rest_back(
          row(
            v_message.position, v_endpoint.endpoint_id, v_message.enqueued_at,
            parley._p_lane(queue.queue_id, v_endpoint.priority), v_message.message_type_id, null, v_message.frame,
            v_message.trace_context, null
          )::parley._p_message, v_taken, top
        );
      end if;
      v_left := v_left - v_taken;
    end loop;
    exit when v_left <= 0 or v_seen < v_asked;
    v_rows := v_rows * 4;
  end loop;
  if v_sequence = v_started then
    -- Timer messages alone move nothing on, and one row is enough.
    delete from parley._p_receive_progress as p
    where p.endpoint_id = v_endpoint.endpoint_id and p.sequence = v_sequence;
  end if;
  found := parley._p_record_received(v_endpoint.endpoint_id, v_sequence, greatest(v_sequence - v_started, 1)::integer);
end
$$;

comment on function parley._p_take(parley._p_queue, bigint, bigint, integer) is
'Takes the messages of one conversation whose group is locked, keeping copies when the queue has retention.';
