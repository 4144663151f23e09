-- Watching messages as they pass through a queue, without taking them.
--
-- A watcher remembers the position up to which everything is settled: nothing can appear there any more. A sender that
-- draws a position holds a lock on the queue's sequence until its transaction ends. When none of the holders is left
-- that held it when the sequence stood at P, everything up to P is there to be seen or never will be (as in
-- receive/find_group.sql). Up to there a watcher need not poll again; behind it it has to, for messages may appear
-- between those that it has seen.
-- Only committed messages show, and only while they wait: what is received between two polls is never seen.
-- Cost: one index range a lane for each poll. Nothing is locked.

create function parley.queue_end(
  queue text,
  caller parley.caller default parley.current_caller(),
  out service_queue_id integer,
  out "position" bigint,
  out senders text[]
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
begin
  service_queue_id := v_queue.queue_id;
  select p.position, p.senders into position, senders from parley._p_probe(v_queue.position_sequence) as p;
end
$$;

comment on function parley.queue_end(text, parley.caller) is
'Shows up to where positions of a queue have been given out: those of later messages are not less. The positions that
senders had drawn before show when their transactions have ended, which are named in senders. Not undone by anything,
and no lock remains that could be taken for a sender''s.
Arguments: queue.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name.';

create function parley.passing_messages(
  queue text, from_position bigint, top integer default 100,
  caller parley.caller default parley.current_caller()
) returns table (
  queuing_order bigint,
  priority smallint,
  conversation_handle uuid,
  conversation_group_id uuid,
  service_name text,
  far_service text,
  service_contract_name text,
  message_type_name text,
  message_enqueue_time timestamptz,
  message_body bytea,
  message_key text
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
begin
  found := parley._p_require_top(top);
  if v_queue.is_simple then
    return query
    select m.position, (11 - m.lane % 16)::smallint, null::uuid, null::uuid, null::text, null::text, null::text,
      null::text, m.enqueued_at, m.body, m.message_key
    from generate_series(1, 10) as p (n)
    cross join lateral (
      select w.position, w.lane, w.enqueued_at, w.body, w.message_key
      from parley._p_message as w
      where w.lane = parley._p_lane(v_queue.queue_id, p.n) and w.position >= passing_messages.from_position
      order by w.position
      limit top
    ) as m
    order by 1
    limit top;
    return;
  end if;
  return query
  select
    m.position + b.ordinal - 1,
    e.priority,
    e.conversation_handle,
    g.conversation_group_id,
    e.service_name,
    e.far_service,
    e.service_contract_name,
    t.name,
    m.enqueued_at,
    b.body,
    null::text
  from generate_series(1, 10) as p (n)
  cross join lateral (
    select w.position, w.endpoint_id, w.message_type_id, w.enqueued_at, w.body, w.frame
    from parley._p_message as w
    where w.lane = parley._p_lane(v_queue.queue_id, p.n)
      -- The row of a frame stands where its first message does.
      and w.position >= passing_messages.from_position / 1024 * 1024
      and w.position + coalesce(cardinality(w.frame), 1) > passing_messages.from_position
    order by w.position
    limit top
  ) as m
  join parley._p_endpoint as e on e.endpoint_id = m.endpoint_id and e.state <> 'DO'
  join parley._p_conversation_group as g using (group_id)
  join parley._p_message_type as t on t.message_type_id = m.message_type_id
  cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
  where v_queue.priorities & (1 << p.n) > 0
    and m.position + b.ordinal - 1 >= passing_messages.from_position
  order by 1
  limit top;
end
$$;

comment on function parley.passing_messages(text, bigint, integer, parley.caller) is
'Gives the messages of a queue from one position on, in the order of their positions whatever their
priority, without taking them. Those of locked groups are among them, and those that are held because the
queue is off; not what retention keeps. Messages of a simple queue have a key, or null, and no columns of a
conversation.
Arguments: queue; from_position, a queuing_order or what queue_end gave, 0 for the beginning;
top, at most so many messages.
Errors: 127 top negative, 208 no such queue, 229 not allowed, 9609 malformed name.';
