-- Conversations that fail, and those that are set aside for it.
--
-- A role that may RECEIVE from a queue sees those of its conversations. Reading locks nothing. Messages are counted up
-- to 10,000 rows.

create function parley._p_failing_conversations(caller parley.caller default parley.current_caller())
returns table (
  conversation_handle uuid,
  conversation_group_id uuid,
  queue_name text,
  service_queue_id integer,
  service_name text,
  far_service text,
  service_contract_name text,
  state text,
  message_type_name text,
  queuing_order bigint,
  message_sequence_number bigint,
  message_enqueue_time timestamptz,
  rollbacks integer,
  set_aside_since timestamptz,
  sqlstate text,
  error text,
  error_time timestamptz,
  waiting_messages bigint,
  is_estimated boolean,
  answer text,
  failures integer,
  attempts integer,
  retry_at timestamptz,
  losses integer
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select
    e.conversation_handle,
    g.conversation_group_id,
    q.lookup_name,
    q.queue_id,
    e.service_name,
    e.far_service,
    e.service_contract_name,
    e.state,
    t.name,
    m.position,
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
    end,
    m.enqueued_at,
    coalesce(
      s.rollbacks,
      case (m.position / 1024) & 134217727
        when r.count >> 4 & 134217727 then r.count & 15
        when r.count >> 35 then r.count >> 31 & 15
        else 0
      end::integer
    ),
    case when s.retry_at is null then s.set_aside_at end,
    f.sqlstate,
    coalesce(f.error, d.last_error),
    coalesce(f.failed_at, d.failed_at),
    w.messages,
    w.rows = 10000,
    case when f.answered_at = f.failed_at then f.answer end,
    d.failures,
    coalesce(d.attempts, y.attempts),
    coalesce(s.retry_at, d.retry_at),
    y.losses
  from (
    select i.endpoint_id from parley._p_set_aside as i
    union
    select i.endpoint_id from parley._p_failure as i
    union
    select i.endpoint_id from parley._p_delivery_failure as i
  ) as c
  join parley._p_endpoint as e on e.endpoint_id = c.endpoint_id and e.state <> 'DO'
  join parley._p_conversation_group as g on g.group_id = e.group_id
  join parley._p_service as v on v.service_id = e.service_id
  join parley._p_queue as q on q.queue_id = v.queue_id
  left join parley._p_set_aside as s on s.endpoint_id = e.endpoint_id
  left join parley._p_failure as f on f.endpoint_id = e.endpoint_id
  left join parley._p_delivery_failure as d on d.endpoint_id = e.endpoint_id
  left join parley._p_conversation_retry as y on y.endpoint_id = e.endpoint_id
  cross join lateral (select coalesce(pg_sequence_last_value(q.rollback_sequence), 0) as count) as r
  cross join lateral parley._p_first_message(q, e) as m
  left join parley._p_message_type as t on t.message_type_id = m.message_type_id
  cross join lateral (
    select count(*) as rows, coalesce(sum(o.messages), 0)::bigint as messages
    from (
      select coalesce(cardinality(n.frame), 1) as messages
      from parley._p_message as n
      where n.endpoint_id = e.endpoint_id and n.position >= m.position
      limit 10000
    ) as o
  ) as w
  -- A failure is over when its message was received.
  where (s.endpoint_id is not null or m.came_back or (d.endpoint_id is not null and m.position is not null))
    and parley._p_has_permission(parley._p_caller(caller), 'RECEIVE', 'queue', q.queue_id, q.owner)
$$;

comment on function parley._p_failing_conversations(parley.caller) is
'Gives the conversations that are set aside, and those whose last reported failure is not over, of the queues
that the caller may receive from.';

create view parley.poison_conversations as
select
  c.conversation_handle,
  c.conversation_group_id,
  c.queue_name,
  c.service_queue_id,
  c.service_name,
  c.far_service,
  c.service_contract_name,
  c.state,
  c.message_type_name,
  c.queuing_order,
  c.message_sequence_number,
  c.message_enqueue_time,
  c.rollbacks,
  c.set_aside_since,
  c.sqlstate,
  c.error,
  c.error_time,
  c.waiting_messages,
  c.is_estimated,
  c.answer
from parley._p_failing_conversations() as c
where c.set_aside_since is not null;

comment on view parley.poison_conversations is
'Conversations that are set aside, because a message of theirs came back too often: nothing is received from them until
parley.retry_poison or parley.discard_poison. Of the queues that you may receive from.';

create view parley.failing_conversations as
select
  c.conversation_handle,
  c.conversation_group_id,
  c.queue_name,
  c.service_queue_id,
  c.service_name,
  c.far_service,
  c.service_contract_name,
  c.state,
  c.message_type_name,
  c.queuing_order,
  c.message_sequence_number,
  c.message_enqueue_time,
  c.rollbacks,
  c.sqlstate,
  c.error,
  c.error_time,
  c.waiting_messages,
  c.is_estimated,
  c.answer,
  c.failures,
  c.attempts,
  c.retry_at,
  c.losses
from parley._p_failing_conversations() as c
where c.set_aside_since is null;

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
    from parley._p_set_aside as s
    join parley._p_endpoint as e using (endpoint_id)
    join parley._p_service as v using (service_id)
    where v.queue_id = q.queue_id and e.state <> 'DO' and s.retry_at is null
  )
  from parley._p_queue as q
  where q.queue_id = $1 and parley._p_is_visible(parley._p_caller(caller), 'queue', q.queue_id, q.owner)
$$;

comment on function parley._p_sees_set_aside(integer, parley.caller) is
'Counts the conversations of a queue that are set aside, for the catalog. Null when the
caller may not see the queue there.';

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
