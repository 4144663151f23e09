-- Conversations that fail, and those that are set aside for it.
--
-- A role that may RECEIVE from a queue sees those of its conversations. Reading locks nothing. Messages are counted up
-- to 10,000 rows. A column that costs something for each conversation is a subquery: a list without the column, or one
-- that is cut short, does not wait for it.

create function parley._p_sees_rollbacks(
  queue_id integer, "position" bigint, caller parley.caller default parley.current_caller()
) returns integer
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select case (position / 1024) & 134217727
    when r.count >> 4 & 134217727 then r.count & 15
    when r.count >> 35 then r.count >> 31 & 15
    else 0
  end::integer
  from parley._p_queue as q
  cross join lateral (select coalesce(pg_sequence_last_value(q.rollback_sequence), 0) as count) as r
  where q.queue_id = $1
    and parley._p_has_permission(parley._p_caller(caller), 'RECEIVE', 'queue', q.queue_id, q.owner)
$$;

comment on function parley._p_sees_rollbacks(integer, bigint, parley.caller) is
'Gives how often a message of a queue came back, as far as that is counted. Null when the caller may not receive from
the queue.';

create view parley.poison_conversations with (security_barrier) as
select
  e.conversation_handle,
  (
    select g.conversation_group_id from parley._p_conversation_group as g where g.group_id = e.group_id
  ) as conversation_group_id,
  q.lookup_name as queue_name,
  q.queue_id as service_queue_id,
  e.service_name,
  e.far_service,
  e.service_contract_name,
  e.state,
  (
    select t.name
    from parley._p_message as n
    join parley._p_message_type as t using (message_type_id)
    where n.endpoint_id = e.endpoint_id and n.position >= s.position
    order by n.position
    limit 1
  ) as message_type_name,
  (
    select n.position
    from parley._p_message as n
    where n.endpoint_id = e.endpoint_id and n.position >= s.position
    order by n.position
    limit 1
  ) as queuing_order,
  case
    when (
      select n.message_type_id
      from parley._p_message as n
      where n.endpoint_id = e.endpoint_id and n.position >= s.position
      order by n.position
      limit 1
    ) in (1, 5) then -1
    else coalesce(
      (
        select p.sequence
        from parley._p_receive_progress as p
        where p.endpoint_id = e.endpoint_id
        order by p.sequence desc
        limit 1
      ),
      0
    )
  end as message_sequence_number,
  (
    select n.enqueued_at
    from parley._p_message as n
    where n.endpoint_id = e.endpoint_id and n.position >= s.position
    order by n.position
    limit 1
  ) as message_enqueue_time,
  s.rollbacks,
  s.set_aside_at as set_aside_since,
  f.sqlstate,
  coalesce(f.error, d.last_error) as error,
  coalesce(f.failed_at, d.failed_at) as error_time,
  (
    select coalesce(sum(o.messages), 0)::bigint
    from (
      select coalesce(cardinality(n.frame), 1) as messages
      from parley._p_message as n
      where n.endpoint_id = e.endpoint_id and n.position >= s.position
      limit 10000
    ) as o
  ) as waiting_messages,
  (
    select count(*) = 10000
    from (
      select
      from parley._p_message as n
      where n.endpoint_id = e.endpoint_id and n.position >= s.position
      limit 10000
    ) as o
  ) as is_estimated,
  case when f.answered_at = f.failed_at then f.answer end as answer
from parley._p_set_aside as s
join parley._p_endpoint as e on e.endpoint_id = s.endpoint_id and e.state <> 'DO'
join parley._p_service as v on v.service_id = s.service_id
join parley._p_queue as q on q.queue_id = v.queue_id
left join parley._p_failure as f on f.endpoint_id = e.endpoint_id
left join parley._p_delivery_failure as d on d.endpoint_id = e.endpoint_id
where s.retry_at is null
  and q.queue_id = any ((select parley._p_ids_of_queues_to_receive_from())::integer[])
order by s.set_aside_at desc;

comment on view parley.poison_conversations is
'Conversations that are set aside, because a message of theirs came back too often: nothing is received from them until
parley.retry_poison or parley.discard_poison. The newest first, of the queues that you may receive from.';

create view parley.failing_conversations with (security_barrier) as
select
  e.conversation_handle,
  (
    select g.conversation_group_id from parley._p_conversation_group as g where g.group_id = e.group_id
  ) as conversation_group_id,
  q.lookup_name as queue_name,
  q.queue_id as service_queue_id,
  e.service_name,
  e.far_service,
  e.service_contract_name,
  e.state,
  (
    select t.name from parley._p_message_type as t where t.message_type_id = m.message_type_id
  ) as message_type_name,
  m.position as queuing_order,
  case
    when m.message_type_id in (1, 5) then -1
    else coalesce(
      (
        select p.sequence
        from parley._p_receive_progress as p
        where p.endpoint_id = e.endpoint_id
        order by p.sequence desc
        limit 1
      ),
      0
    )
  end as message_sequence_number,
  m.enqueued_at as message_enqueue_time,
  coalesce(s.rollbacks, parley._p_sees_rollbacks(q.queue_id, m.position)) as rollbacks,
  f.sqlstate,
  coalesce(f.error, d.last_error) as error,
  coalesce(f.failed_at, d.failed_at) as error_time,
  (
    select coalesce(sum(o.messages), 0)::bigint
    from (
      select coalesce(cardinality(n.frame), 1) as messages
      from parley._p_message as n
      where n.endpoint_id = e.endpoint_id and n.position >= m.position
      limit 10000
    ) as o
  ) as waiting_messages,
  (
    select count(*) = 10000
    from (
      select
      from parley._p_message as n
      where n.endpoint_id = e.endpoint_id and n.position >= m.position
      limit 10000
    ) as o
  ) as is_estimated,
  case when f.answered_at = f.failed_at then f.answer end as answer,
  d.failures,
  coalesce(d.attempts, y.attempts) as attempts,
  coalesce(s.retry_at, d.retry_at) as retry_at,
  y.losses
from (
  select i.endpoint_id from parley._p_set_aside as i where i.retry_at is not null
  union all
  select i.endpoint_id
  from parley._p_failure as i
  where not exists (select from parley._p_set_aside as o where o.endpoint_id = i.endpoint_id)
  union all
  select i.endpoint_id
  from parley._p_delivery_failure as i
  where not exists (select from parley._p_set_aside as o where o.endpoint_id = i.endpoint_id)
    and not exists (select from parley._p_failure as o where o.endpoint_id = i.endpoint_id)
) as c
join parley._p_endpoint as e on e.endpoint_id = c.endpoint_id and e.state <> 'DO'
join parley._p_service as v on v.service_id = e.service_id
join parley._p_queue as q on q.queue_id = v.queue_id
left join parley._p_set_aside as s on s.endpoint_id = e.endpoint_id
left join parley._p_failure as f on f.endpoint_id = e.endpoint_id
left join parley._p_delivery_failure as d on d.endpoint_id = e.endpoint_id
left join parley._p_conversation_retry as y on y.endpoint_id = e.endpoint_id
left join lateral (
  -- Of one that waits, a message that is received may stand before.
  select n.position, n.message_type_id, n.enqueued_at, n.xmax::pg_catalog.text <> '0' as came_back
  from parley._p_message as n
  where n.endpoint_id = e.endpoint_id and n.position >= coalesce(s.position, 0)
  order by n.position
  limit 1
) as m on true
-- A failure is over when its message was received.
where (s.endpoint_id is not null or m.came_back or d.endpoint_id is not null and m.position is not null)
  and q.queue_id = any ((select parley._p_ids_of_queues_to_receive_from())::integer[]);

comment on view parley.failing_conversations is
'Conversations of which a reader has reported a failure (parley.record_failure), or whose message a web address has
refused (parley.delivery_failures), and whose message is in the queue and not set aside yet; and those that wait for
another attempt (retry_at).';

create function parley._p_sees_set_aside(
  queue_id integer,
  caller parley.caller default parley.current_caller()
) returns bigint
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select (
    select count(*)
    from (
      select
      from parley._p_service as v
      join parley._p_set_aside as s on s.service_id = v.service_id and s.retry_at is null
      join parley._p_endpoint as e on e.endpoint_id = s.endpoint_id and e.state <> 'DO'
      where v.queue_id = q.queue_id
      limit 10000
    ) as n
  )
  from parley._p_queue as q
  where q.queue_id = $1 and parley._p_is_visible(parley._p_caller(caller), 'queue', q.queue_id, q.owner)
$$;

comment on function parley._p_sees_set_aside(integer, parley.caller) is
'Counts the conversations of a queue that are set aside, up to 10,000, for the catalog. Null when the caller may not see
the queue there.';

comment on column parley.poison_conversations.conversation_handle is
'Side that is set aside: what retry_poison and discard_poison take.';
comment on column parley.poison_conversations.conversation_group_id is 'Its group.';
comment on column parley.poison_conversations.queue_name is 'Its queue, as statements take it.';
comment on column parley.poison_conversations.service_queue_id is 'Identity of the queue.';
comment on column parley.poison_conversations.service_name is 'Its service.';
comment on column parley.poison_conversations.far_service is 'Service of the other side.';
comment on column parley.poison_conversations.service_contract_name is 'Name of the contract.';
comment on column parley.poison_conversations.state is 'State of this side.';
comment on column parley.poison_conversations.message_type_name is 'Message type of the message that came back.';
comment on column parley.poison_conversations.queuing_order is 'Its position; putting it back gives it another.';
comment on column parley.poison_conversations.message_sequence_number is
'Its number in the conversation; -1 for Error and DialogTimer.';
comment on column parley.poison_conversations.message_enqueue_time is 'When it arrived.';
comment on column parley.poison_conversations.rollbacks is 'How often it came back, or was refused by a web address.';
comment on column parley.poison_conversations.set_aside_since is 'When it was set aside.';
comment on column parley.poison_conversations.sqlstate is
'SQLSTATE of the last failure that was reported; null when none was, or it had none.';
comment on column parley.poison_conversations.error is
'Its text; null when nobody reported it, as when the reader was killed.';
comment on column parley.poison_conversations.error_time is 'When it was reported.';
comment on column parley.poison_conversations.waiting_messages is
'Messages that wait in the conversation, the poisonous one included.';
comment on column parley.poison_conversations.is_estimated is 'Whether there are more: 10,000 rows are counted.';
comment on column parley.poison_conversations.answer is
'The answer of the web address when it refused, its first 4,096 characters; null when it said nothing.';

comment on column parley.failing_conversations.conversation_handle is 'Side that was received from.';
comment on column parley.failing_conversations.conversation_group_id is 'Its group.';
comment on column parley.failing_conversations.queue_name is 'Its queue, as statements take it.';
comment on column parley.failing_conversations.service_queue_id is 'Identity of the queue.';
comment on column parley.failing_conversations.service_name is 'Its service.';
comment on column parley.failing_conversations.far_service is 'Service of the other side.';
comment on column parley.failing_conversations.service_contract_name is 'Name of the contract.';
comment on column parley.failing_conversations.state is 'State of this side.';
comment on column parley.failing_conversations.message_type_name is 'Message type of its first message.';
comment on column parley.failing_conversations.queuing_order is 'Position of that message.';
comment on column parley.failing_conversations.message_sequence_number is
'Its number in the conversation; -1 for Error and DialogTimer.';
comment on column parley.failing_conversations.message_enqueue_time is 'When it arrived.';
comment on column parley.failing_conversations.rollbacks is 'How often it came back, as far as that is counted.';
comment on column parley.failing_conversations.sqlstate is 'SQLSTATE of the last failure that was reported, or null.';
comment on column parley.failing_conversations.error is 'Its text.';
comment on column parley.failing_conversations.error_time is 'When it was reported.';
comment on column parley.failing_conversations.waiting_messages is 'Messages that wait in the conversation.';
comment on column parley.failing_conversations.is_estimated is 'Whether there are more: 10,000 rows are counted.';
comment on column parley.failing_conversations.answer is
'The answer of the web address when it refused, its first 4,096 characters; null when it said nothing.';
comment on column parley.failing_conversations.failures is
'How often it was delivered to a web address and not accepted; null when it is not delivered.';
comment on column parley.failing_conversations.attempts is
'How many of these count towards max_attempts: those in which the web address refused. Of a conversation that waits by
a retry policy, how many failures were reported.';
comment on column parley.failing_conversations.retry_at is
'When it is delivered, or received, again at the earliest; null when it need not wait.';
comment on column parley.failing_conversations.losses is
'How often it came back to wait without a report; null where no retry policy made it wait.';
