-- Conversations at run time, under Service Broker's own names and columns (spec 8.2), and what is wrong with them.
--
-- Everybody sees the conversations of roles he is a member of; administrators see all.

create view parley.conversation_endpoints with (security_barrier) as
select
  e.conversation_handle,
  e.conversation_id,
  e.is_initiator::integer::smallint as is_initiator,
  e.service_contract_id,
  g.conversation_group_id,
  e.service_id,
  e.lifetime,
  e.state,
  parley._p_state_name(e.state) as state_desc,
  e.far_service,
  e.far_broker_instance,
  e.owner::oid as principal_id,
  coalesce(d.far_principal, 0::oid) as far_principal_id,
  k.identifier as outbound_session_key_identifier,
  k.identifier as inbound_session_key_identifier,
  d.secured_at as security_timestamp,
  (
    select coalesce(a.first_due_at, a.due_at)
    from parley._p_alarm as a
    where a.endpoint_id = e.endpoint_id and a.kind = 'timer'
  ) as dialog_timer,
  coalesce(
    (
      select p.sequence
      from parley._p_receive_progress as p
      where p.endpoint_id = e.far_endpoint_id
      order by p.sequence desc
      limit 1
    ),
    (
      select p.sequence
      from parley._p_send_progress as p
      where p.endpoint_id = e.endpoint_id
      order by p.sequence desc
      limit 1
    ),
    0
  ) + coalesce(
    (
      select sum(coalesce(cardinality(m.frame), 1))
      from parley._p_message as m
      where m.endpoint_id = e.far_endpoint_id and m.message_type_id not in (-1, 1, 5)
    ), 0
  )::bigint + (select count(*) from parley._p_transmission as t where t.endpoint_id = e.endpoint_id) as send_sequence,
  null::bytea as last_send_tran_id,
  -1::bigint as end_dialog_sequence,
  coalesce((
    select p.sequence
    from parley._p_receive_progress as p
    where p.endpoint_id = e.endpoint_id
    order by p.sequence desc
    limit 1
  ), 0) as receive_sequence,
  0 as receive_sequence_frag,
  0::bigint as system_sequence,
  -1::bigint as first_out_of_order_sequence,
  -1::bigint as last_out_of_order_sequence,
  -1 as last_out_of_order_frag,
  e.service_id < 65536 as is_system,
  e.priority,
  e.begun_at,
  e.state_since,
  e.service_name,
  e.service_contract_name
from parley._p_shown_endpoint as e
join parley._p_conversation_group as g using (group_id)
left join parley._p_dialog_security as d on d.conversation_id = e.conversation_id and d.is_initiator = e.is_initiator
cross join lateral (
  select case
    when d.mode is null then '00000000-0000-0000-0000-000000000000'::uuid
    when d.mode = 'full' then d.conversation_id
    else pg_catalog.encode(pg_catalog.substring(d.key_id, 1, 16), 'hex')::uuid
  end as identifier
) as k
where pg_catalog.pg_has_role(e.owner, 'usage') or (select parley._p_is_administrator(parley._p_current_role()))
union all
select
  t.conversation_handle,
  t.conversation_id,
  t.is_initiator::integer::smallint,
  t.service_contract_id,
  t.conversation_group_id,
  t.service_id,
  t.lifetime,
  'CD'::text,
  'CLOSED'::text,
  t.far_service,
  null::text,
  t.owner::oid,
  0::oid,
  '00000000-0000-0000-0000-000000000000'::uuid,
  '00000000-0000-0000-0000-000000000000'::uuid,
  t.expires_at,
  null::timestamptz,
  0::bigint,
  null::bytea,
  -1::bigint,
  0::bigint,
  0,
  0::bigint,
  -1::bigint,
  -1::bigint,
  -1,
  t.service_id < 65536,
  t.priority,
  null::timestamptz,
  null::timestamptz,
  s.name,
  c.name
from parley._p_tombstone as t
left join parley._p_service as s using (service_id)
left join parley._p_contract as c using (service_contract_id)
where pg_catalog.pg_has_role(t.owner, 'usage') or (select parley._p_is_administrator(parley._p_current_role()));

comment on view parley.conversation_endpoints is
'Both sides of all conversations. Closed targets (CD) are shown until security_timestamp, when they are forgotten.
The last four columns are ours.';
comment on column parley.conversation_endpoints.conversation_handle is
'The handle by which statements name this side; each side has its own.';
comment on column parley.conversation_endpoints.conversation_id is
'Identity of the conversation, the same on both sides.';
comment on column parley.conversation_endpoints.is_initiator is
'1 on the side that began the dialog, 0 on the target''s.';
comment on column parley.conversation_endpoints.service_contract_id is 'Contract.';
comment on column parley.conversation_endpoints.conversation_group_id is
'Group that this side is received and locked with.';
comment on column parley.conversation_endpoints.service_id is 'Service of this side.';
comment on column parley.conversation_endpoints.lifetime is
'When the conversation ends with an error if it is still open.';
comment on column parley.conversation_endpoints.state is 'SO, SI, CO, DI, DO, ER or CD; see the page on concepts.';
comment on column parley.conversation_endpoints.state_desc is 'The same in words.';
comment on column parley.conversation_endpoints.far_service is 'Service of the other side.';
comment on column parley.conversation_endpoints.far_broker_instance is
'Broker instance of the other side; null before it is known.';
comment on column parley.conversation_endpoints.principal_id is 'Oid of the owner of this side.';
comment on column parley.conversation_endpoints.far_principal_id is
'Oid of the role that stands for the other side of a secured dialog; 0 when it is not secured,
or the initiator is anonymous.';
comment on column parley.conversation_endpoints.outbound_session_key_identifier is
'All zeros: not secured. In an anonymous dialog it names the session key; in full security keys do not last,
and it is the conversation_id.';
comment on column parley.conversation_endpoints.inbound_session_key_identifier is 'As outbound_session_key_identifier.';
comment on column parley.conversation_endpoints.security_timestamp is
'When the dialog was secured, null when it is not; of a closed target: when it is forgotten.';
comment on column parley.conversation_endpoints.dialog_timer is
'When the conversation timer of this side fires, or null.';
comment on column parley.conversation_endpoints.send_sequence is
'Number of the next message sent, as far as it is known.';
comment on column parley.conversation_endpoints.last_send_tran_id is 'Always null.';
comment on column parley.conversation_endpoints.end_dialog_sequence is 'Always -1.';
comment on column parley.conversation_endpoints.receive_sequence is 'Number of the next message received.';
comment on column parley.conversation_endpoints.receive_sequence_frag is
'Always 0: messages are not cut into fragments.';
comment on column parley.conversation_endpoints.system_sequence is 'Always 0.';
comment on column parley.conversation_endpoints.first_out_of_order_sequence is
'Always -1: nothing arrives out of order.';
comment on column parley.conversation_endpoints.last_out_of_order_sequence is 'Always -1.';
comment on column parley.conversation_endpoints.last_out_of_order_frag is 'Always -1.';
comment on column parley.conversation_endpoints.is_system is 'Whether it is the broker''s own.';
comment on column parley.conversation_endpoints.priority is 'Level of this side, 1 to 10, fixed when it was created.';
comment on column parley.conversation_endpoints.begun_at is
'When this side was created, for a target often when the dialog was begun; null when closed.';
comment on column parley.conversation_endpoints.state_since is
'When it got into this state, in state CO often when the dialog was begun; null when closed.';
comment on column parley.conversation_endpoints.service_name is 'Name of the service of this side.';
comment on column parley.conversation_endpoints.service_contract_name is 'Name of the contract.';

create view parley.conversation_groups with (security_barrier) as
select g.conversation_group_id, g.service_id, g.service_id < 65536 as is_system
from parley._p_conversation_group as g
join parley._p_service as s using (service_id)
where exists (select from parley._p_shown_endpoint as e where e.group_id = g.group_id)
  and (pg_catalog.pg_has_role(s.owner, 'usage') or (select parley._p_is_administrator(parley._p_current_role())));

comment on view parley.conversation_groups is 'Conversation groups.';
comment on column parley.conversation_groups.conversation_group_id is
'Identity of the group, a key for state of your own.';
comment on column parley.conversation_groups.service_id is 'Service whose conversations it holds.';
comment on column parley.conversation_groups.is_system is 'Whether it is the broker''s own.';

create view parley.stuck_conversations as
select
  e.conversation_handle,
  e.conversation_group_id,
  e.service_name,
  e.far_service,
  e.state,
  case
    when a.endpoint_id is not null then a.set_aside_at
    when e.state = 'CO' then coalesce(t.oldest, w.oldest, d.due_at)
    else e.state_since
  end as state_since,
  w.waiting,
  case
    when a.endpoint_id is not null then format(
      'It is set aside: a message came back %s times.%s',
      a.rollbacks,
      coalesce(
        (select format(' The last error: %s', f.error) from parley._p_failure as f where f.endpoint_id = a.endpoint_id),
        ''
      )
    )
    when e.state = 'DI' and w.waiting = 0
      then 'The other side has ended and everything was received, but this side was not ended.'
    when e.state = 'DI' then 'The other side has ended; messages wait to be received.'
    when e.state = 'ER' then 'The conversation has failed; its Error message was not answered by END CONVERSATION.'
    when d.due_at < clock_timestamp() and w.waiting = 0 and e.state in ('CO', 'DO')
      then 'Messages that were sent for later are due, and nobody sends them.'
    when e.state = 'DO' and t.oldest is not null
      then 'This side has ended; that cannot be delivered: ' || t.status
    when e.state = 'DO' then 'This side has ended; the other side has not.'
    when e.state = 'CO' and t.oldest is not null then 'Messages cannot be delivered: ' || t.status
    when e.state = 'SO' then 'The dialog was begun, but nothing was sent.'
    else 'Messages wait to be received.'
  end as reason,
  case
    when a.endpoint_id is not null then format('select parley.retry_poison(%L);', e.conversation_handle)
    when d.due_at < clock_timestamp() and w.waiting = 0 and e.state in ('CO', 'DO')
      then 'select parley.fire_timers();'
    when e.state in ('CO', 'DO') and t.oldest is not null then format(
      'Create the target service or a route to it, or give up what waits: '
        || 'select parley.end_conversation(%L, cleanup => true);',
      e.conversation_handle
    )
    when e.state = 'DO' then 'End the other side.'
    when w.waiting > 0 then 'Receive from the queue of the service.'
    else format('select parley.end_conversation(%L);', e.conversation_handle)
  end as remedy
from parley.conversation_endpoints as e
join parley._p_endpoint as p using (conversation_handle)
left join lateral (
  select coalesce(sum(coalesce(cardinality(m.frame), 1)), 0)::bigint as waiting, min(m.enqueued_at) as oldest
  from parley._p_message as m
  where m.endpoint_id = p.endpoint_id
) as w on true
left join lateral (
  select min(x.enqueued_at) as oldest, max(x.transmission_status) as status
  from parley._p_transmission as x
  where x.endpoint_id = p.endpoint_id
) as t on true
left join lateral (
  select min(x.due_at) as due_at
  from parley._p_delayed_send as x
  where p.has_delayed and x.endpoint_id = p.endpoint_id
) as d on true
left join parley._p_set_aside as a
  on a.endpoint_id = p.endpoint_id and e.state <> 'DO' and a.retry_at is null
where e.state in ('DI', 'ER', 'SO')
  -- A side that has ended is kept by messages that are to come later, and nobody has to do anything.
  or e.state = 'DO' and (d.due_at < clock_timestamp()) is not false
  or t.oldest is not null
  or w.waiting > 0 and not exists (
    -- It waits for another attempt: parley.failing_conversations.
    select from parley._p_set_aside as y where y.endpoint_id = p.endpoint_id and y.retry_at is not null
  )
  or e.state = 'CO' and d.due_at < clock_timestamp() - interval '10 seconds';

comment on view parley.stuck_conversations is
'Conversations that wait for somebody: not ended, not read, not deliverable, set aside, or with messages for later that
are overdue; with the reason, since when, and what to do. While both sides may send, state_since is the age of the
oldest message that waits.';
comment on column parley.stuck_conversations.conversation_handle is 'Side that waits.';
comment on column parley.stuck_conversations.conversation_group_id is 'Its group.';
comment on column parley.stuck_conversations.service_name is 'Its service.';
comment on column parley.stuck_conversations.far_service is 'Service of the other side.';
comment on column parley.stuck_conversations.state is 'State of this side.';
comment on column parley.stuck_conversations.state_since is 'Since when it has been in that state.';
comment on column parley.stuck_conversations.waiting is 'Messages that this side has to receive.';
comment on column parley.stuck_conversations.reason is 'The sessions for which it waits.';
comment on column parley.stuck_conversations.remedy is 'The remedy, often as a statement.';

create view parley.one_way_conversations with (security_barrier) as
select e.conversation_handle, e.service_name, e.far_service, e.state_since
from parley.conversation_endpoints as e
join parley._p_endpoint as p using (conversation_handle)
where p.state = 'CO'
  and p.is_initiator
  and p.service_id >= 65536
  -- Exactly one message has gone to the other side, and nothing has come back.
  and case
    when p.far_endpoint_id > 0 then (
      select max(r.sequence) = 1 and not exists (
        select from parley._p_message as m where m.endpoint_id = p.far_endpoint_id
      )
      from parley._p_receive_progress as r
      where r.endpoint_id = p.far_endpoint_id
    )
    when p.far_endpoint_id < 0 then (
      select max(s.sequence) = 1
        and not exists (select from parley._p_transit as t where t.endpoint_id = p.endpoint_id)
        and not exists (select from parley._p_message as m where m.endpoint_id = p.far_endpoint_id)
      from parley._p_send_progress as s
      where s.endpoint_id = p.endpoint_id
    )
  end
  and not exists (select from parley._p_receive_progress as r where r.endpoint_id = p.endpoint_id)
  and not exists (select from parley._p_message as m where m.endpoint_id = p.endpoint_id)
  and not exists (select from parley._p_transmission as t where t.endpoint_id = p.endpoint_id)
  -- A timer or a lifetime says that somebody will come back to it.
  and not exists (select from parley._p_alarm as a where a.endpoint_id in (p.endpoint_id, p.far_endpoint_id));

comment on view parley.one_way_conversations is
'Dialogs on which one message was sent and read, which nobody has answered or ended: what send(begin_dialog(...))
leaves when no answer comes. parley.send_and_end sends without leaving them.';
comment on column parley.one_way_conversations.conversation_handle is 'Side that began the dialog and sent.';
comment on column parley.one_way_conversations.service_name is 'Its service.';
comment on column parley.one_way_conversations.far_service is 'Service of the other side.';
comment on column parley.one_way_conversations.state_since is 'When it sent.';

create function parley.leaked_conversations(
  older_than interval default '1 hour'
) returns setof parley.stuck_conversations
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select s.* from parley.stuck_conversations as s where s.state_since < clock_timestamp() - older_than
$$;

comment on function parley.leaked_conversations(interval) is
'Gives the conversations that have been stuck in their state for longer than an interval.
Arguments: older_than, default one hour.';
