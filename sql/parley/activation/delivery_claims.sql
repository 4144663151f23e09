-- Claim, deliver, record: how messages are handed to a web address while no transaction is open.
--
-- 1. next_delivery and next_message_delivery claim what they show, under a number that the caller has made up. He
--    commits.
-- 2. He delivers, and renews the lease of the claim meanwhile. When some of it is lost he breaks off and records
--    nothing.
-- 3. In one transaction he records: record_delivery gives the claim up, which only its holder can, then come replies,
--    finish_delivery and the end; or fail_delivery. When that rolls back the claim is there again.
-- A claim whose lease has run out is like none for everybody else. Its holder may still record, as long as nobody has
-- received from the group or claimed it since.
-- The claims themselves: conversation/delivery_claims.sql, simple/message_claims.sql. Locks: groups in their order, or
-- messages; then claims; then endpoints.

create function parley._p_claimant(caller oid) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select concat_ws(
    ', ', nullif(current_setting('application_name'), ''), 'role ' || pg_get_userbyid(caller),
    'from ' || host(inet_client_addr())
  )
$$;

comment on function parley._p_claimant(oid) is 'Says, for people, who claims messages for a delivery.';

create function parley._p_use_deliveries(queue parley._p_queue) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not queue.has_deliveries then
    update parley._p_queue as q set has_deliveries = true where q.queue_id = queue.queue_id and not q.has_deliveries;
  end if;
end
$$;

comment on function parley._p_use_deliveries(parley._p_queue) is
'Lets the readers of a queue ask for claims from now on, before the first is made.';

create function parley._p_claim_group(
  caller oid, queue parley._p_queue, group_id bigint, claim uuid, lease interval
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_use_deliveries(queue);
  -- The far side may just be ending, and holds the row: then not now, because nobody waits here.
  with plain as (
    select e.endpoint_id
    from parley._p_endpoint as e
    where e.group_id = _p_claim_group.group_id and e.is_plain
    for no key update skip locked
  )
  update parley._p_endpoint as e set is_plain = false from plain as p where e.endpoint_id = p.endpoint_id;
  if exists (select from parley._p_endpoint as e where e.group_id = _p_claim_group.group_id and e.is_plain) then
    return false;
  end if;
  insert into parley._p_delivery_claim as c (group_id, queue_id, claim, claimed_by, claimed_at, leased_until)
  values (
    _p_claim_group.group_id, queue.queue_id, _p_claim_group.claim, parley._p_claimant(caller), clock_timestamp(),
    clock_timestamp() + lease
  )
  on conflict on constraint _p_delivery_claim_pkey do update
  set queue_id = excluded.queue_id, claim = excluded.claim, claimed_by = excluded.claimed_by,
    claimed_at = excluded.claimed_at, leased_until = excluded.leased_until
  where c.leased_until <= clock_timestamp();
  if not found then
    return false;
  end if;
  -- A reader with an older snapshot would not see the claim: his lock of the group has to fail.
  update parley._p_conversation_group as g set service_id = g.service_id where g.group_id = _p_claim_group.group_id;
  return true;
end
$$;

comment on function parley._p_claim_group(oid, parley._p_queue, bigint, uuid, interval) is
'Claims a group, which the caller has locked, for a delivery. Gives false when another claim of it lasts, or an end of a
conversation in it is under way.
Arguments: caller; queue; group_id; claim, its number; lease, for how long it lasts unless it is renewed.';

create function parley._p_claim_messages(
  caller oid, queue parley._p_queue, positions bigint[], claim uuid, lease interval
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_claimed integer;
begin
  perform parley._p_use_deliveries(queue);
  insert into parley._p_message_claim as c (queue_id, position, claim, claimed_by, claimed_at, leased_until)
  select queue.queue_id, u.position, _p_claim_messages.claim, parley._p_claimant(caller), clock_timestamp(),
    clock_timestamp() + lease
  from unnest(positions) as u (position)
  on conflict on constraint _p_message_claim_pkey do update
  set claim = excluded.claim, claimed_by = excluded.claimed_by, claimed_at = excluded.claimed_at,
    leased_until = excluded.leased_until
  where c.leased_until <= clock_timestamp();
  get diagnostics v_claimed = row_count;
  if v_claimed < cardinality(positions) then
    -- Somebody has claimed some of them between our scan and our locks. Of a key the first must not be left out.
    delete from parley._p_message_claim as c
    where c.queue_id = queue.queue_id and c.claim = _p_claim_messages.claim;
    return false;
  end if;
  update parley._p_message as m
  set lane = m.lane
  where m.lane in (select * from parley._p_lanes(queue.queue_id))
    and m.position = any (positions);
  perform
  from parley._p_message as m
  where m.lane in (select * from parley._p_lanes(queue.queue_id))
    and m.position = any (positions)
  for update;
  return true;
end
$$;

comment on function parley._p_claim_messages(oid, parley._p_queue, bigint[], uuid, interval) is
'Claims messages of a simple queue, whose rows the caller has locked, for a delivery: all of them, or none and false.
Arguments: caller; queue; positions; claim, its number; lease, for how long it lasts unless it is renewed.';

create function parley.renew_delivery(
  queue text, claim uuid, lease_ms integer, caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_queue parley._p_queue := parley._p_find_queue(parley._p_caller(caller), queue, 'RECEIVE');
  v_now constant timestamptz := clock_timestamp();
  v_groups bigint;
  v_messages bigint;
begin
  found := parley._p_require_range('lease_ms', lease_ms, 1, 3600000);
  update parley._p_delivery_claim as c
  set leased_until = v_now + lease_ms * interval '1 ms'
  where c.queue_id = v_queue.queue_id and c.claim = renew_delivery.claim and c.leased_until > v_now;
  get diagnostics v_groups = row_count;
  update parley._p_message_claim as c
  set leased_until = v_now + lease_ms * interval '1 ms'
  where c.queue_id = v_queue.queue_id and c.claim = renew_delivery.claim and c.leased_until > v_now;
  get diagnostics v_messages = row_count;
  return v_groups + v_messages;
end
$$;

comment on function parley.renew_delivery(text, uuid, integer, parley.caller) is
'Renews the lease of what was claimed under a number, and gives how many groups, or messages of a simple queue, it still
has. When that is less than there were, the rest is in other hands: break off, and record nothing.
Arguments: queue; claim, the number; lease_ms, milliseconds from now, 1 to 3,600,000.
Errors: 208 no such queue, 229 not allowed, 8402 lease_ms out of range, 9609 malformed name.';

create function parley.release_delivery(
  queue text, claim uuid, caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_queue parley._p_queue := parley._p_find_queue(parley._p_caller(caller), queue, 'RECEIVE');
  v_groups bigint;
  v_messages bigint;
begin
  delete from parley._p_delivery_claim as c
  where c.queue_id = v_queue.queue_id and c.claim = release_delivery.claim;
  get diagnostics v_groups = row_count;
  delete from parley._p_message_claim as c
  where c.queue_id = v_queue.queue_id and c.claim = release_delivery.claim;
  get diagnostics v_messages = row_count;
  return v_groups + v_messages;
end
$$;

comment on function parley.release_delivery(text, uuid, parley.caller) is
'Gives up what is claimed under a number, and gives how many groups or messages that were. They are free at once; who
was delivering them records nothing. parley.delivery_claims shows the numbers.
Arguments: queue; claim, the number.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name.';

create function parley._p_record_group(queue parley._p_queue, claim uuid, conversation_handle uuid) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- All of the claim, in their order: who records several does not meet who moves between them.
  perform
  from parley._p_conversation_group as g
  where g.group_id in (
    select c.group_id
    from parley._p_delivery_claim as c
    where c.queue_id = queue.queue_id and c.claim = _p_record_group.claim
  )
  order by g.group_id
  for update;
  delete from parley._p_delivery_claim as c
  using parley._p_endpoint as e, parley._p_service as s
  where c.queue_id = queue.queue_id
    and c.claim = _p_record_group.claim
    and c.group_id = e.group_id
    and e.conversation_handle = _p_record_group.conversation_handle
    and e.state <> 'DO'
    and s.service_id = e.service_id
    and s.queue_id = queue.queue_id;
  return found;
end
$$;

comment on function parley._p_record_group(parley._p_queue, uuid, uuid) is
'Locks the groups of a claim and gives up that of a conversation; false when it was lost, or the conversation has ended
or is of another queue.';

create function parley.record_delivery(
  queue text, claim uuid, conversation_handle uuid, caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  return parley._p_record_group(
    parley._p_find_queue(parley._p_caller(caller), queue, 'RECEIVE'), claim, conversation_handle
  );
end
$$;

comment on function parley.record_delivery(text, uuid, uuid, parley.caller) is
'Begins to record, in this transaction, what became of messages that next_delivery has claimed: locks their group and
gives up its claim. False when the claim was lost, or the conversation has ended or is of another queue meanwhile: then
nothing is to be recorded.
Arguments: queue; claim, its number; conversation_handle.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name.';

create function parley._p_record_messages(queue parley._p_queue, claim uuid, message_ids bigint[]) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_left integer;
begin
  perform
  from parley._p_message as m
  where m.lane in (select * from parley._p_lanes(queue.queue_id))
    and m.position = any (message_ids)
  order by m.position
  for update;
  delete from parley._p_message_claim as c
  where c.queue_id = queue.queue_id and c.claim = _p_record_messages.claim and c.position = any (message_ids);
  get diagnostics v_left = row_count;
  return v_left = cardinality(message_ids);
end
$$;

comment on function parley._p_record_messages(parley._p_queue, uuid, bigint[]) is
'Locks messages of a simple queue and gives up their claim; false when some of it was lost.';

create function parley._p_forget_claims(queue_ids integer[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before constant timestamptz := clock_timestamp() - interval '1 minute';
begin
  delete from parley._p_delivery_claim as c
  where c.group_id = any (array(
    select o.group_id
    from parley._p_delivery_claim as o
    where o.leased_until < v_before and (queue_ids is null or o.queue_id = any (queue_ids))
    for update skip locked
  ));
  delete from parley._p_message_claim as c
  where (c.queue_id, c.position) in (
    select o.queue_id, o.position
    from parley._p_message_claim as o
    where o.leased_until < v_before and (queue_ids is null or o.queue_id = any (queue_ids))
    for update skip locked
  );
end
$$;

comment on function parley._p_forget_claims(integer[]) is
'Removes claims that ran out more than a minute ago: of groups that are gone, and of daemons that never came back.
Arguments: queue_ids, of these queues alone; null for all.';

create function parley._p_delivery_claims(caller parley.caller default parley.current_caller())
returns table (
  queue_name text, claim uuid, conversation_group_id uuid, message_id bigint, claimed_by text, claimed_at timestamptz,
  leased_until timestamptz, progress jsonb
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select q.lookup_name, c.claim, c.conversation_group_id, c.position, c.claimed_by, c.claimed_at, c.leased_until,
    c.progress
  from (
    select d.queue_id, d.claim, g.conversation_group_id, null::bigint as position, d.claimed_by, d.claimed_at,
      d.leased_until, null::jsonb as progress
    from parley._p_delivery_claim as d
    join parley._p_conversation_group as g using (group_id)
    union all
    select m.queue_id, m.claim, null, m.position, m.claimed_by, m.claimed_at, m.leased_until, m.progress
    from parley._p_message_claim as m
  ) as c
  join parley._p_queue as q using (queue_id)
  where c.leased_until > clock_timestamp()
    and parley._p_has_permission(parley._p_caller(caller), 'RECEIVE', 'queue', q.queue_id, q.owner)
$$;

comment on function parley._p_delivery_claims(parley.caller) is 'Gives what parley.delivery_claims shows.';

create view parley.delivery_claims as
select c.queue_name, c.claim, c.conversation_group_id, c.message_id, c.claimed_by, c.claimed_at, c.leased_until,
  c.progress
from parley._p_delivery_claims() as c;

comment on view parley.delivery_claims is
'Conversation groups, and messages of simple queues, that are being delivered to a web address just now, or worked
on by whoever has claimed them: nobody else receives them. No transaction holds them; a daemon or worker that has died
holds them until leased_until. Of queues that the role may receive from.';
comment on column parley.delivery_claims.queue_name is 'Queue, as statements take it.';
comment on column parley.delivery_claims.claim is 'Number of the claim, as parley.release_delivery takes it.';
comment on column parley.delivery_claims.conversation_group_id is 'Group that is claimed; null for a simple queue.';
comment on column parley.delivery_claims.message_id is 'Message that is claimed; null unless the queue is simple.';
comment on column parley.delivery_claims.claimed_by is 'The session that claimed it: its program, role and address.';
comment on column parley.delivery_claims.claimed_at is 'Since when.';
comment on column parley.delivery_claims.progress is 'How far the holder is, as it said by parley.renew.';
comment on column parley.delivery_claims.leased_until is 'Until when, unless the holder renews it.';
