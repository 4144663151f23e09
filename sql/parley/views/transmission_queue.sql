-- The transmission queue as one view (spec 8.2): whatever was sent and is not with its target yet, and why.
--
-- It waits for a way (_p_transmission), for its turn on the lane of a destination (_p_message), for the answer of the
-- far side (_p_transit), or, between services of this database, for the queue of the target to be switched on again.
-- The number of a message is the one that it is received with. A message outside the order, an Error of the broker or
-- one between services of this database, has -1, as in RECEIVE. A conversation that waits is read once for where its
-- numbers begin, not once for each of its messages.

create view parley.transmission_queue with (security_barrier) as
select
  e.conversation_handle,
  e.far_service as to_service_name,
  e.far_broker_instance as to_broker_instance,
  e.service_name as from_service_name,
  e.service_contract_name,
  w.enqueued_at as enqueue_time,
  case
    when w.message_type_id = -1 or w.message_type_id = 1 and e.far_endpoint_id > 0 then -1
    else coalesce(
      n.delivered,
      (
        select p.sequence
        from parley._p_send_progress as p
        where p.endpoint_id = w.endpoint_id
        order by p.sequence desc
        limit 1
      ),
      0
    ) + count(*) filter (where w.message_type_id <> -1) over (
      partition by w.endpoint_id order by w.stage, w.position, w.ordinal rows unbounded preceding
    ) - w.numbered - 1
  end as message_sequence_number,
  y.name as message_type_name,
  y.message_type_id = 1 as is_conversation_error,
  y.message_type_id = 2 as is_end_of_dialog,
  w.body as message_body,
  coalesce(
    w.status, (select p.status from parley._p_parked as p where p.endpoint_id = w.endpoint_id), d.status, ''
  ) as transmission_status,
  e.priority,
  d.address,
  coalesce(
    (select p.attempts from parley._p_parked as p where p.endpoint_id = w.endpoint_id), d.attempts, 0
  ) as attempts,
  coalesce(
    (select p.due_at from parley._p_parked as p where p.endpoint_id = w.endpoint_id and p.due_at < 'infinity'), d.due_at
  ) as next_attempt_time
from (
  select t.endpoint_id, 1 as stage, t.first_sequence as position, b.ordinal, t.enqueued_at, t.message_type_id, b.body,
    null::text as status,
    t.destination_id,
    sum(case when t.message_type_id = -1 then 0 else 1 end) over (partition by t.endpoint_id) as numbered
  from parley._p_transit as t
  cross join lateral unnest(coalesce(t.frame, array[t.body])) with ordinality as b (body, ordinal)
  union all
  select -m.endpoint_id, 2, m.position, b.ordinal, m.enqueued_at, m.message_type_id, b.body, null::text as status,
    l.destination_id,
    (
      select coalesce(sum(o.next_sequence - o.first_sequence), 0)
      from parley._p_transit as o where o.endpoint_id = -m.endpoint_id and o.message_type_id <> -1
    )
  from parley._p_destination as l
  join parley._p_message as m on m.lane >= l.destination_id * 16 + 1 and m.lane <= l.destination_id * 16 + 10
  cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
  union all
  select t.endpoint_id, 3, t.transmission_id, 1, t.enqueued_at, t.message_type_id, t.body, t.transmission_status,
    null::integer as destination_id,
    (
      select coalesce(sum(o.next_sequence - o.first_sequence), 0)
      from parley._p_transit as o where o.endpoint_id = t.endpoint_id and o.message_type_id <> -1
    )
  from parley._p_transmission as t
) as w
join parley._p_endpoint as e on e.endpoint_id = w.endpoint_id
join parley._p_message_type as y on y.message_type_id = abs(w.message_type_id)
left join parley._p_destination as d on d.destination_id = w.destination_id
-- Between services of this database it waits behind what was delivered.
left join (
  select k.endpoint_id, coalesce(r.sequence, 0) + l.waiting as delivered
  from (select distinct t.endpoint_id from parley._p_transmission as t) as k
  join parley._p_endpoint as o on o.endpoint_id = k.endpoint_id and o.far_endpoint_id > 0
  left join lateral (
    select p.sequence
    from parley._p_receive_progress as p
    where p.endpoint_id = o.far_endpoint_id
    order by p.sequence desc
    limit 1
  ) as r on true
  cross join lateral (
    select coalesce(sum(coalesce(cardinality(m.frame), 1)), 0)::bigint as waiting
    from parley._p_message as m
    where m.endpoint_id = o.far_endpoint_id and m.message_type_id not in (1, 5)
  ) as l
) as n on n.endpoint_id = w.endpoint_id
where (select parley._p_is_administrator(parley._p_current_role()))
union all
select
  e.conversation_handle,
  e.far_service,
  e.far_broker_instance,
  e.service_name,
  e.service_contract_name,
  m.enqueued_at,
  case
    when m.message_type_id = 1 then -1
    else q.delivered + count(*) filter (where m.message_type_id <> 1) over (
      partition by m.endpoint_id order by m.position, b.ordinal rows unbounded preceding
    ) - 1
  end,
  y.name,
  m.message_type_id = 1,
  m.message_type_id = 2,
  b.body,
  format('The queue "%s" of the target service is disabled.', q.lookup_name),
  e.priority,
  null::text as address,
  0 as attempts,
  null::timestamptz as next_attempt_time
from (
  select h.lookup_name, h.disabled_position, h.endpoint_id, coalesce(r.sequence, 0) + l.waiting as delivered
  from (
    select distinct k.lookup_name, k.disabled_position, o.endpoint_id
    from parley._p_queue as k
    join parley._p_message as o
      on o.lane >= k.queue_id * 16 + 1 and o.lane <= k.queue_id * 16 + 10 and o.position >= k.disabled_position
    where k.disabled_position is not null
  ) as h
  left join lateral (
    select p.sequence
    from parley._p_receive_progress as p
    where p.endpoint_id = h.endpoint_id
    order by p.sequence desc
    limit 1
  ) as r on true
  cross join lateral (
    select coalesce(sum(coalesce(cardinality(o.frame), 1)), 0)::bigint as waiting
    from parley._p_message as o
    where o.endpoint_id = h.endpoint_id and o.position < h.disabled_position and o.message_type_id not in (1, 5)
  ) as l
) as q
-- A timer that fires while the queue is off was sent by no side.
join parley._p_message as m
  on m.endpoint_id = q.endpoint_id and m.position >= q.disabled_position and m.message_type_id <> 5
join parley._p_endpoint as f on f.endpoint_id = m.endpoint_id
join parley._p_endpoint as e on e.endpoint_id = f.far_endpoint_id
join parley._p_message_type as y on y.message_type_id = m.message_type_id
cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
where (select parley._p_is_administrator(parley._p_current_role()));

comment on view parley.transmission_queue is
'Messages that were sent and are not with their target yet, and why; for administrators. The last three columns are
ours: the address they go to, how many attempts have failed, and when the next is due. An empty status means: not
tried yet, or sent and not answered yet.';
comment on column parley.transmission_queue.conversation_handle is 'Side that sent the message.';
comment on column parley.transmission_queue.to_service_name is 'Service it is for.';
comment on column parley.transmission_queue.to_broker_instance is 'Broker instance it is for, or null.';
comment on column parley.transmission_queue.from_service_name is 'Service that sent it.';
comment on column parley.transmission_queue.service_contract_name is 'Contract.';
comment on column parley.transmission_queue.enqueue_time is 'When it was sent.';
comment on column parley.transmission_queue.message_sequence_number is
'Its number in its conversation, from 0; for a target in this database its place among those that wait.';
comment on column parley.transmission_queue.message_type_name is 'Message type.';
comment on column parley.transmission_queue.is_conversation_error is 'Whether it is an Error message.';
comment on column parley.transmission_queue.is_end_of_dialog is 'Whether it is an EndDialog message.';
comment on column parley.transmission_queue.message_body is 'Body, or null.';
comment on column parley.transmission_queue.transmission_status is 'Why it is still here.';
comment on column parley.transmission_queue.priority is 'Level of the side that sent it.';
comment on column parley.transmission_queue.address is
'Where it goes, when a route was found that leads out of the database.';
comment on column parley.transmission_queue.attempts is
'How many attempts to get there have failed since the last that did not.';
comment on column parley.transmission_queue.next_attempt_time is
'When the next attempt is due; null when nothing stands against it.';

create function parley.get_transmission_status(
  conversation_handle uuid,
  caller parley.caller default parley.current_caller()
) returns text
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_endpoint parley._p_endpoint;
begin
  select * into v_endpoint
  from parley._p_endpoint as e
  where e.conversation_handle = get_transmission_status.conversation_handle;
  if not found then
    return '';
  end if;
  if parley._p_may_see_conversation(v_caller, v_endpoint) is not true then
    found := parley._p_raise(229, 'transmission status', v_endpoint.owner::regrole::text, pg_get_userbyid(v_caller));
  end if;
  return coalesce(
    (
      select t.transmission_status
      from parley._p_transmission as t
      where t.endpoint_id = v_endpoint.endpoint_id
      order by t.transmission_id desc
      limit 1
    ),
    (select p.status from parley._p_parked as p where p.endpoint_id = v_endpoint.endpoint_id),
    (
      select nullif(d.status, '')
      from parley._p_destination as d
      where d.destination_id = v_endpoint.destination_id
        and (
          exists (select from parley._p_transit as t where t.endpoint_id = v_endpoint.endpoint_id)
          or exists (select from parley._p_message as m where m.endpoint_id = -v_endpoint.endpoint_id)
        )
    ),
    (
      select format('The queue "%s" of the target service is disabled.', q.lookup_name)
      from parley._p_endpoint as f
      join parley._p_service as s using (service_id)
      join parley._p_queue as q using (queue_id)
      cross join lateral (
        select from parley._p_message as m
        where m.endpoint_id = f.endpoint_id and m.position >= q.disabled_position
        limit 1
      ) as w
      where f.endpoint_id = v_endpoint.far_endpoint_id
    ),
    ''
  );
end
$$;

comment on function parley.get_transmission_status(uuid, parley.caller) is
'Explains why the last message of this side of a conversation is still on its way; empty when nothing is known
against it, or the handle is unknown.
Arguments: conversation_handle.
Errors: 229 neither owner of the conversation nor reader of its queue.
Source: spec 4.8.';
