-- The transmission queue as one view (spec 8.2): whatever was sent and is not with its target yet, and why.
--
-- It waits for a way (_p_transmission), for its turn on the lane of a destination (_p_message), for the answer of the far side (_p_transit), or, between
-- services of this database, for the queue of the target to be switched on again.

create view parley.transmission_queue as
select
  e.conversation_handle,
  e.far_service as to_service_name,
  e.far_broker_instance as to_broker_instance,
  e.service_name as from_service_name,
  e.service_contract_name,
  w.enqueued_at as enqueue_time,
  coalesce(
    (select p.sequence from parley._p_send_progress as p where p.endpoint_id = w.endpoint_id order by p.sequence desc limit 1), 0
  ) + row_number() over (partition by w.endpoint_id order by w.stage, w.position, w.ordinal) - w.numbered - 1 as message_sequence_number,
  y.name as message_type_name,
  y.message_type_id = 1 as is_conversation_error,
  y.message_type_id = 2 as is_end_of_dialog,
  w.body as message_body,
  coalesce(w.status, (select p.status from parley._p_parked as p where p.endpoint_id = w.endpoint_id), d.status, '') as transmission_status,
  e.priority,
  d.address,
  coalesce((select p.attempts from parley._p_parked as p where p.endpoint_id = w.endpoint_id), d.attempts, 0) as attempts,
  coalesce((select p.due_at from parley._p_parked as p where p.endpoint_id = w.endpoint_id and p.due_at < 'infinity'), d.due_at) as next_attempt_time
from (
  select t.endpoint_id, 1 as stage, t.first_sequence as position, b.ordinal, t.enqueued_at, t.message_type_id, b.body, null::text as status,
    t.destination_id, sum(case when t.message_type_id = -1 then 0 else 1 end) over (partition by t.endpoint_id) as numbered
  from parley._p_transit as t
  cross join lateral unnest(coalesce(t.frame, array[t.body])) with ordinality as b (body, ordinal)
  union all
  select -m.endpoint_id, 2, m.position, b.ordinal, m.enqueued_at, m.message_type_id, b.body, null::text as status, l.destination_id,
    (
      select coalesce(sum(o.next_sequence - o.first_sequence), 0)
      from parley._p_transit as o where o.endpoint_id = -m.endpoint_id and o.message_type_id <> -1
    )
  from parley._p_destination as l
  join parley._p_message as m on m.lane >= l.destination_id * 16 + 1 and m.lane <= l.destination_id * 16 + 10
  cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
  union all
  select t.endpoint_id, 3, t.transmission_id, 1, t.enqueued_at, t.message_type_id, t.body, t.transmission_status, null::integer as destination_id,
    (
      select coalesce(sum(o.next_sequence - o.first_sequence), 0)
      from parley._p_transit as o where o.endpoint_id = t.endpoint_id and o.message_type_id <> -1
    )
  from parley._p_transmission as t
) as w
join parley._p_endpoint as e on e.endpoint_id = w.endpoint_id
join parley._p_message_type as y on y.message_type_id = abs(w.message_type_id)
left join parley._p_destination as d on d.destination_id = w.destination_id
where parley._p_is_administrator(parley._p_caller())
union all
select
  e.conversation_handle,
  e.far_service,
  e.far_broker_instance,
  e.service_name,
  e.service_contract_name,
  m.enqueued_at,
  row_number() over (partition by m.endpoint_id order by m.position, b.ordinal) - 1,
  y.name,
  m.message_type_id = 1,
  m.message_type_id = 2,
  b.body,
  format('The queue "%s" of the target service is disabled.', q.lookup_name),
  e.priority,
  null::text as address,
  0 as attempts,
  null::timestamptz as next_attempt_time
from parley._p_queue as q
join parley._p_message as m on m.lane >= q.queue_id * 16 + 1 and m.lane <= q.queue_id * 16 + 10 and m.position >= q.disabled_position
join parley._p_endpoint as f on f.endpoint_id = m.endpoint_id
join parley._p_endpoint as e on e.endpoint_id = f.far_endpoint_id
join parley._p_message_type as y on y.message_type_id = m.message_type_id
cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
where q.disabled_position is not null and parley._p_is_administrator(parley._p_caller());

comment on view parley.transmission_queue is
'Messages that were sent and are not with their target yet, and why; for administrators. The last three columns are ours: the address they go to, how
many attempts have failed, and when the next is due. An empty status means: not tried yet, or sent and not answered yet.';
