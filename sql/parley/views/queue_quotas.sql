-- The quotas of queues, and what is used of them. Reading counts what waits, up to the quota, and locks nothing.

create function parley._p_queue_quotas(caller parley.caller default parley.current_caller())
returns table (
  queue_name text, service_queue_id integer, quota_messages bigint, quota_bytes bigint, messages bigint, bytes bigint,
  is_full boolean
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select q.lookup_name, q.queue_id, q.quota_messages, q.quota_bytes, c.messages, c.bytes,
    (c.messages < q.quota_messages and c.bytes < q.quota_bytes) is false
  from parley._p_queue as q
  cross join lateral parley._p_count_up_to(q, q.quota_messages, q.quota_bytes) as c
  where q.quota_sequence is not null
    and parley._p_has_permission(parley._p_caller(caller), 'RECEIVE', 'queue', q.queue_id, q.owner)
$$;

comment on function parley._p_queue_quotas(parley.caller) is
'Gives the queues with a quota that the caller may receive from.';

create view parley.queue_quotas as
select q.queue_name, q.service_queue_id, q.quota_messages, q.quota_bytes, q.messages, q.bytes, q.is_full
from parley._p_queue_quotas() as q;

comment on view parley.queue_quotas is
'Queues that have a quota (parley.set_queue_quota), and what waits in them, counted up to the quota. Of the queues that
you may receive from.';

comment on column parley.queue_quotas.queue_name is 'Queue, as statements take it.';
comment on column parley.queue_quotas.service_queue_id is 'Identity of the queue.';
comment on column parley.queue_quotas.quota_messages is 'How many messages it may hold; null for any number.';
comment on column parley.queue_quotas.quota_bytes is 'How long their bodies may be in all; null for any length.';
comment on column parley.queue_quotas.messages is 'Messages that wait, counted up to the quota.';
comment on column parley.queue_quotas.bytes is 'Bytes of their bodies, counted up to the quota.';
comment on column parley.queue_quotas.is_full is 'Whether senders are refused.';
