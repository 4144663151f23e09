-- The conversations that parley.get_conversation gives.
--
-- Everybody sees those of roles he is a member of: of who began them, or owns their service. Administrators see all.
-- Reading locks nothing.

create view parley.pooled_conversations with (security_barrier) as
select
  e.conversation_handle,
  e.service_name as from_service,
  e.far_service as to_service,
  e.service_contract_name as contract,
  case when p.slot < 0 then p.key end as key,
  nullif(p.slot, -1) as number,
  p.begun_by::oid as begun_by,
  e.state,
  coalesce(
    (
      select r.sequence from parley._p_receive_progress as r
      where r.endpoint_id = e.far_endpoint_id order by r.sequence desc limit 1
    ),
    (
      select r.sequence
      from parley._p_send_progress as r
      where r.endpoint_id = e.endpoint_id
      order by r.sequence desc
      limit 1
    ),
    0
  ) as messages,
  e.begun_at,
  p.retire_at,
  (
    select coalesce(a.first_due_at, a.due_at)
    from parley._p_alarm as a
    where a.endpoint_id = e.endpoint_id and a.kind = 'pooled'
  ) as end_at
from parley._p_pooled_conversation as p
join parley._p_endpoint as e using (endpoint_id)
where pg_catalog.pg_has_role(p.begun_by, 'usage')
  or pg_catalog.pg_has_role(e.owner, 'usage')
  or (select parley._p_is_administrator(parley._p_current_role()));

comment on view parley.pooled_conversations is
'Conversations that parley.get_conversation and parley.warm_conversations have begun and that have not ended on this
side. You see those of roles that you
are a member of.';

comment on column parley.pooled_conversations.conversation_handle is 'Handle of the side of from_service.';
comment on column parley.pooled_conversations.from_service is 'Service that sends.';
comment on column parley.pooled_conversations.to_service is 'Service of the other side.';
comment on column parley.pooled_conversations.contract is 'Name of the contract.';
comment on column parley.pooled_conversations.key is 'Key for which it is given; null for those without a key.';
comment on column parley.pooled_conversations.number is
'Its number among those without a key, from 0 on; null with a key.';
comment on column parley.pooled_conversations.begun_by is 'Oid of the role that began it, and alone is given it.';
comment on column parley.pooled_conversations.state is 'State of this side: in DI and ER it is not given any more.';
comment on column parley.pooled_conversations.messages is
'Messages that the other side has received, or, in another database, that were transmitted.';
comment on column parley.pooled_conversations.begun_at is 'When it was begun.';
comment on column parley.pooled_conversations.retire_at is 'When it gets too old to be given.';
comment on column parley.pooled_conversations.end_at is
'When it is ended, unless it is in use or an answer waits for it.';
