-- Deliveries: messages that a reader hands to somebody outside of the transaction, such as a
-- webhook, before it receives them.
--
-- A failed delivery must not count as a poison message, and must not hold up other conversations. So a message is shown
-- first (next_delivery), with its group claimed, and received only when it was accepted (finish_delivery), in another
-- transaction: none is open while somebody waits for the network. activation/delivery_claims.sql has the claims. A
-- refusal leaves no trace on the message; fail_delivery records it. A conversation that failed is passed over until its
-- time comes, which keeps its order; the others go on. Without a claim the lock of the group alone holds it, to the end
-- of the transaction.
--
-- Invariants, and what keeps each:
--   nobody else receives from a group meanwhile   its claim; or the lock on its row, as in RECEIVE
--   what is received is what was delivered   finish_delivery compares positions: a sender may have
--     committed in front of them
--   a second delivery can be recognized   message_id is made of endpoint and position, and so the same at each attempt
-- Lock order: the group's row, its claim, then its messages (docs/internals/lock-order.md). Rows of
-- _p_delivery_failure are locked alone. Which conversations are next, and what that costs:
-- activation/find_deliveries.sql.

create function parley.next_delivery(
  queue text, top integer default 1, groups integer default 1, claim uuid default null,
  lease_ms integer default 30000, caller parley.caller default parley.current_caller()
) returns setof parley.received_message
language plpgsql security definer rows 1
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
  v_priority integer;
  v_found record;
  v_group_id bigint;
  v_more record;
  v_count integer;
  v_has_shown boolean;
  v_tries integer := 0;
begin
  found := parley._p_require_top(top);
  found := parley._p_require_groups(groups, false);
  found := parley._p_require_range('lease_ms', lease_ms, 1, 3600000);
  if not v_queue.is_receive_enabled or parley._p_is_poisoned(v_queue.queue_id) then
    found := parley._p_raise_disabled(v_queue.queue_id);
  elsif v_queue.readers_paused_at is not null or top = 0 then
    return;
  end if;
  for v_priority in select p.n from generate_series(10, 1, -1) as p (n) where v_queue.priorities & (1 << p.n) > 0 loop
    loop
      v_found := parley._p_lock_delivery(v_queue, v_priority);
      exit when v_found.endpoint_id is null;
      select '{}'::bigint[] as endpoints, '{}'::bigint[] as groups into v_more;
      if least(groups, top) > 1 and not exists (
        select from parley._p_delivery_failure as f where f.endpoint_id = v_found.endpoint_id
      ) then
        v_more := parley._p_lock_more_deliveries(
          parley._p_lane(v_queue.queue_id, v_priority), v_found.group_id, least(groups, top) - 1
        );
      end if;
      v_count := cardinality(v_more.endpoints);
      v_has_shown := false;
      for v_place in 0 .. v_count loop
        v_group_id := case v_place when 0 then v_found.group_id else v_more.groups[v_place] end;
        continue when claim is not null
          and not parley._p_claim_group(v_caller, v_queue, v_group_id, claim, lease_ms * interval '1 ms');
        return query
        select *
        from parley._p_deliverable(
          case v_place when 0 then v_found.endpoint_id else v_more.endpoints[v_place] end, v_group_id,
          top / (1 + v_count)
        );
        if found then
          v_has_shown := true;
        else
          delete from parley._p_delivery_claim as c
          where c.group_id = v_group_id and c.claim = next_delivery.claim;
        end if;
      end loop;
      if v_has_shown then
        return;
      end if;
      -- Another reader took it, or claimed it, between our scan and our lock; with a new scan it is gone. While a
      -- conversation is being ended it is there for some more scans.
      v_tries := v_tries + 1;
      exit when v_tries > 10;
    end loop;
  end loop;
end
$$;

comment on function parley.next_delivery(text, integer, integer, uuid, integer, parley.caller) is
'Shows the next messages of one conversation without receiving them, or of one of each of several groups, in equal
parts, and claims their conversation groups. A conversation that has failed comes alone. Conversations whose delivery
failed are passed over until it is time to try again; so are groups that are locked or claimed. Nothing is given while
the readers of the queue are paused. Call it at READ COMMITTED. Commit, deliver, and renew the lease meanwhile
(renew_delivery). Then, for each conversation, call in one transaction record_delivery and finish_delivery, or
fail_delivery. Without a claim the groups stay locked to the end of the transaction; finish there, or roll back and
call fail_delivery.
Arguments: queue; top, at most so many messages; groups, of up to so many groups, 1 to 10,000; claim, a number for the
claim that is new, null for none; lease_ms, for how many milliseconds it lasts unless it is renewed, 1 to 3,600,000.
Columns: those of RECEIVE; message_id is the same at each attempt.
Errors: 127 top negative, 208 no such queue, 229 not allowed, 8402 groups or lease_ms out of range, 9609 malformed name,
9617 the queue is disabled.';

create function parley._p_deliverable(
  endpoint_id bigint, group_id bigint, top integer
) returns setof parley.received_message
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select
    parley._p_as_received(
      1::smallint, m.position + b.ordinal - 1,
      case
        when m.message_type_id in (1, 5) then -1
        else coalesce(p.sequence, 0) - 1 + count(*) filter (where m.message_type_id not in (1, 5)) over (
          order by m.ordinality, b.ordinal rows unbounded preceding
        )
      end,
      e, g.conversation_group_id, t, b.body, m.enqueued_at, m.trace_context
    )
  from parley._p_endpoint as e
  join parley._p_conversation_group as g using (group_id)
  join parley._p_service as v on v.service_id = e.service_id
  left join lateral parley._p_newest_hint(parley._p_lane(v.queue_id, e.priority)) as h on true
  cross join lateral parley._p_messages_in_order(e, parley._p_begin_of(h, e.endpoint_id), top) with ordinality as m
  join parley._p_message_type as t on t.message_type_id = m.message_type_id
  left join lateral (
    select r.sequence
    from parley._p_receive_progress as r
    where r.endpoint_id = e.endpoint_id
    order by r.sequence desc
    limit 1
  ) as p on true
  cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
  where e.endpoint_id = $1 and e.group_id = $2 and e.state <> 'DO'
  order by m.ordinality, b.ordinal
  limit top
$$;

comment on function parley._p_deliverable(bigint, bigint, integer) is
'Shows the first messages of a conversation in the order in which RECEIVE takes them, if it still is in the group
given.';

create function parley.finish_delivery(
  queue text, conversation_handle uuid, queuing_orders bigint[],
  caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_received bigint[];
begin
  v_received := array(
    select r.queuing_order
    from parley.receive(
      queue => finish_delivery.queue, top => cardinality(queuing_orders),
      conversation_handle => finish_delivery.conversation_handle, caller => caller
    ) as r
  );
  delete from parley._p_delivery_failure as f where f.conversation_handle = finish_delivery.conversation_handle;
  return v_received @> queuing_orders and queuing_orders @> v_received;
end
$$;

comment on function parley.finish_delivery(text, uuid, bigint[], parley.caller) is
'Receives messages that next_delivery has shown and that were accepted; call record_delivery before it, in the same
transaction. When it returns false a message of another sender has come in front of them meanwhile: then roll back,
release the claim, and deliver again.
Arguments: queue; conversation_handle; queuing_orders, of the messages, all of that conversation.
Errors: 208, 229, 8426, 9609 and 9617 as receive.';

create function parley._p_delivery_wait(
  policy parley._p_retry_policy, activation parley._p_external_activation, failures integer, retry_ms integer
) returns interval
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_longest constant interval := activation.longest_retry_ms * interval '1 ms';
  v_asked constant interval := least(coalesce(retry_ms, 0), 86400000) * interval '1 ms';
begin
  -- Part of a wait is left to chance, so that what failed together does not come back together.
  if policy.queue_id is not null then
    return greatest(parley._p_retry_wait(policy, failures), v_asked * (1 + 0.1 * random()));
  end if;
  return (0.9 + 0.1 * random()) * least(
    v_longest,
    greatest(v_asked, parley._p_back_off(failures, activation.first_retry_ms * interval '1 ms', v_longest))
  );
end
$$;

comment on function parley._p_delivery_wait(
  parley._p_retry_policy, parley._p_external_activation, integer, integer
) is
'Gives for how long a conversation or message waits that was delivered and not accepted: by the retry policy of its
queue, and never shorter than the receiver asks, up to a day; without one by the numbers of the webhook, which bound
what he asks, too.
Arguments: policy, null for none; activation; failures, after how many in a row; retry_ms, what the receiver asks.';

create function parley.fail_delivery(
  queue text, conversation_handle uuid, error text, is_attempt boolean default true, retry_ms integer default null,
  is_final boolean default false, answer text default null, is_alone boolean default true,
  claim uuid default null, caller parley.caller default parley.current_caller(),
  out attempts integer, out is_set_aside boolean, out is_lost boolean
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
  v_endpoint parley._p_endpoint;
  v_activation parley._p_external_activation;
  v_policy parley._p_retry_policy := parley._p_retry_policy_of(v_queue);
  v_failures integer;
  v_attempts_max integer;
begin
  if retry_ms is not null and is_final then
    found := parley._p_raise(8402, 'delay of what is final', 'retry_ms');
  end if;
  attempts := 0;
  is_set_aside := false;
  is_lost := claim is not null
    and not parley._p_record_group(v_queue, claim, fail_delivery.conversation_handle);
  if is_lost then
    return;
  end if;
  -- The right is one on the queue, so the conversation has to be of it.
  select e.* into v_endpoint
  from parley._p_endpoint as e
  join parley._p_service as s using (service_id)
  where e.conversation_handle = fail_delivery.conversation_handle and s.queue_id = v_queue.queue_id;
  select * into v_activation from parley._p_external_activation as a where a.queue_id = v_queue.queue_id;
  if v_endpoint.endpoint_id is null or v_activation.first_retry_ms is null then
    return;
  end if;
  perform parley.record_failure(
    fail_delivery.conversation_handle, case when is_attempt then '38000' else '08006' end, error, caller => caller
  );
  update parley._p_failure as f
  set answer = left(fail_delivery.answer, 4096), answered_at = f.failed_at
  where f.endpoint_id = v_endpoint.endpoint_id;
  -- Those of conversations that are over; there are never many.
  delete from parley._p_delivery_failure as f
  where f.queue_id = v_queue.queue_id
    and not exists (select from parley._p_endpoint as e where e.endpoint_id = f.endpoint_id);
  insert into parley._p_delivery_failure as f (
    endpoint_id, queue_id, conversation_handle, failures, attempts, last_error, first_failed_at, failed_at, retry_at
  )
  -- A batch that was refused together does not wait, and so lengthens no wait.
  values (
    v_endpoint.endpoint_id, v_queue.queue_id, fail_delivery.conversation_handle,
    (is_alone or not is_attempt)::integer, (is_attempt and is_alone)::integer, left(error, 2000),
    clock_timestamp(), clock_timestamp(), clock_timestamp()
  )
  on conflict on constraint _p_delivery_failure_pkey do update
  set failures = least(f.failures, 1000000) + excluded.failures,
    attempts = f.attempts + excluded.attempts,
    last_error = excluded.last_error,
    failed_at = excluded.failed_at
  returning f.failures, f.attempts into v_failures, attempts;
  -- Of what was refused together each comes alone at once.
  if is_attempt and not is_alone then
    return;
  end if;
  v_attempts_max := coalesce(v_policy.attempts, v_activation.max_attempts);
  if is_alone and v_attempts_max > 0 and (is_final or attempts >= v_attempts_max) then
    is_set_aside := parley._p_set_aside_delivery(v_queue, v_endpoint, attempts);
    if is_set_aside then
      return;
    end if;
  end if;
  update parley._p_delivery_failure as f
  set retry_at = clock_timestamp() + parley._p_delivery_wait(v_policy, v_activation, v_failures, retry_ms)
  where f.endpoint_id = v_endpoint.endpoint_id;
end
$$;

comment on function parley.fail_delivery(
  text, uuid, text, boolean, integer, boolean, text, boolean, uuid, parley.caller
) is
'Records that messages of a conversation were delivered and not accepted: it is passed over for a while, by the retry
policy of the queue, and set aside after as many attempts as it allows. In a queue without one the while doubles each
time, from first_retry_ms of the webhook up to longest_retry_ms, and after max_attempts the conversation is set aside,
whatever the poison message handling of the queue. For a conversation that is over, or not of the queue, nothing is
recorded.
It gives up the claim of the group. Where a transaction holds the delivery roll that back before. Returns attempts, how
many have been counted, is_set_aside, and is_lost, whether the claim was lost before: then nothing is recorded.
Arguments: queue; conversation_handle; error, for people; is_attempt, whether it counts as an attempt (a receiver that
is not there says nothing about the message); retry_ms, milliseconds that the receiver asks to wait, at least: with a
policy up to a day, otherwise up to the longest wait; is_final, whether the receiver will never accept it; answer, what
the receiver said, without secrets, of which the first 4,096 characters are kept; is_alone, whether no other
conversation was delivered with it: otherwise nothing is counted, and it comes alone after that; claim, its number,
null for none.
Errors: 208 no such queue, 229 not allowed, 8402 retry_ms with is_final, 9609 malformed name.';

create function parley._p_set_aside_delivery(
  queue parley._p_queue, endpoint parley._p_endpoint, attempts integer
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_head record;
begin
  perform from parley._p_conversation_group as g where g.group_id = endpoint.group_id for update skip locked;
  if not found or parley._p_is_set_aside(endpoint.endpoint_id) then
    return false;
  end if;
  v_head := parley._p_first_message(queue, endpoint);
  if v_head.position is null
    or not parley._p_set_aside_conversation(queue.queue_id, endpoint.endpoint_id, v_head.position, attempts) then
    return false;
  end if;
  -- When it is put back it begins anew.
  delete from parley._p_delivery_failure as f where f.endpoint_id = endpoint.endpoint_id;
  return true;
end
$$;

comment on function parley._p_set_aside_delivery(parley._p_queue, parley._p_endpoint, integer) is
'Sets a conversation aside whose delivery was refused too often; gives false when that cannot be now.';

create function parley.seconds_to_next_delivery(
  queue text,
  caller parley.caller default parley.current_caller()
) returns double precision
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
begin
  return (
    -- greatest() would make 0 of null.
    select case
      when count(*) > 0 then greatest(0, extract(epoch from min(f.retry_at) - clock_timestamp()))
    end::double precision
    from parley._p_delivery_failure as f
    join parley._p_endpoint as e using (endpoint_id)
    where f.queue_id = v_queue.queue_id
      and exists (
        select from parley._p_message as m
        where m.endpoint_id = f.endpoint_id and parley._p_owner_of_lane(m.lane) = v_queue.queue_id
      )
  );
end
$$;

comment on function parley.seconds_to_next_delivery(text, parley.caller) is
'Shows in how many seconds a conversation of a queue that failed to be delivered may be tried
again; null when there is none.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name.';

create view parley.delivery_failures with (security_barrier) as
select
  q.lookup_name as queue_name,
  f.queue_id as service_queue_id,
  f.conversation_handle,
  f.failures,
  f.attempts,
  f.last_error,
  f.first_failed_at,
  f.failed_at,
  f.retry_at,
  a.answer as last_answer
from parley._p_delivery_failure as f
join parley._p_queue as q using (queue_id)
join parley._p_endpoint as e using (endpoint_id)
left join parley._p_failure as a on a.endpoint_id = f.endpoint_id and a.answered_at = a.failed_at
where pg_catalog.pg_has_role(e.owner, 'usage') or (select parley._p_is_administrator(parley._p_current_role()));

comment on view parley.delivery_failures is
'Conversations whose next message was delivered to a webhook and not accepted, and when it is tried again. Everybody
sees those of roles he is a member of.';
comment on column parley.delivery_failures.queue_name is 'Queue, as statements take it.';
comment on column parley.delivery_failures.service_queue_id is 'Identity of the queue.';
comment on column parley.delivery_failures.conversation_handle is 'Conversation that waits.';
comment on column parley.delivery_failures.failures is 'How often its delivery has failed in a row, but for
refusals together with other conversations.';
comment on column parley.delivery_failures.attempts is 'How many of these count towards max_attempts.';
comment on column parley.delivery_failures.last_error is 'The last error.';
comment on column parley.delivery_failures.first_failed_at is 'When it failed first.';
comment on column parley.delivery_failures.failed_at is 'When it failed last.';
comment on column parley.delivery_failures.retry_at is 'When it is tried again.';
comment on column parley.delivery_failures.last_answer is
'The answer of the web address, its first 4,096 characters; null when it said nothing.';
