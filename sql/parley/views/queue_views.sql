-- The rows of a queue's view: what waits in it, and what retention keeps, in the columns of RECEIVE
-- (conversation/received_message.sql). catalog/queue_view_names.sql creates the view.
--
-- Reading disturbs no reader: it is a plain query under MVCC. The view is named like the queue; a queue in a
-- schema other than dbo has the schema's name and a point in front of it, and names too long for PostgreSQL are
-- cut and end in the queue's id.

create function parley._p_queue_contents(queue_id integer) returns setof parley.received_message
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select
    parley._p_as_received(
      case when not e.is_plain and parley._p_is_set_aside(e.endpoint_id) then 2 else 1 end::smallint,
      m.position + b.ordinal - 1,
      case
        when m.message_type_id in (1, 5) then -1
        else coalesce(p.sequence, 0) - 1 + count(*) filter (where m.message_type_id not in (1, 5)) over (
          partition by m.endpoint_id order by m.position, b.ordinal rows unbounded preceding
        )
      end,
      e, g.conversation_group_id, t, b.body, m.enqueued_at, m.trace_context
    )
  from parley._p_queue as q
  join parley._p_message as m on m.lane between parley._p_lane(q.queue_id, 10) and parley._p_set_aside_lane(q.queue_id)
  join parley._p_endpoint as e on e.endpoint_id = m.endpoint_id and e.state <> 'DO'
  join parley._p_conversation_group as g using (group_id)
  join parley._p_message_type as t on t.message_type_id = m.message_type_id
  left join lateral (
    select r.sequence
    from parley._p_receive_progress as r
    where r.endpoint_id = m.endpoint_id
    order by r.sequence desc
    limit 1
  ) as p on true
  cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
  where q.queue_id = $1
    and (q.disabled_position is null or m.position < q.disabled_position)
  union all
  select
    parley._p_as_received(
      r.status, r.position,
      r.message_sequence_number,
      e, g.conversation_group_id, t, r.body, r.enqueued_at, r.trace_context
    )
  from parley._p_retained as r
  join parley._p_endpoint as e using (endpoint_id)
  join parley._p_conversation_group as g using (group_id)
  join parley._p_message_type as t on t.message_type_id = r.message_type_id
  where r.queue_id = $1
  union all
  select
    parley._p_put_as_received(
      case when s.position is null then 1 else 2 end::smallint, m,
      coalesce(s.priority, parley._p_priority_of(m))::integer
    )
  from parley._p_queue as q
  join parley._p_message as m on m.lane between parley._p_lane(q.queue_id, 10) and parley._p_waiting_lane(q.queue_id)
  left join parley._p_set_aside_message as s
    on s.queue_id = q.queue_id and s.position = m.position and m.lane = parley._p_set_aside_lane(q.queue_id)
  where q.queue_id = $1 and q.is_simple
$$;

comment on function parley._p_queue_contents(integer) is
'Gives what is in a queue: messages ready (status 1), of conversations set aside (2), received and retained (0),
copies of sent ones (3). Of a simple queue: what waits (1) and is set aside (2), without the columns of a conversation;
not what is not due yet. Spec 4.3, 5.2.';

create function parley.queue_contents(
  queue text,
  caller parley.caller default parley.current_caller()
) returns setof parley.received_message
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
begin
  return query select * from parley._p_queue_contents(v_queue.queue_id);
end
$$;

comment on function parley.queue_contents(text, parley.caller) is
'Gives the messages of a queue without disturbing its readers; the same as the queue''s view in schema parley_queue.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name.';
