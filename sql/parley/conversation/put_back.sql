-- Putting a conversation that is set aside back into its queue: after it was poisonous (poison/set_aside.sql), or when
-- its wait for another attempt is over.
--
-- A conversation whose message failed waits, by the retry policy of its queue, as one that is set aside: its messages
-- leave the readers' way, it keeps its order, the others go on, and no lock is held. _p_set_aside.retry_at says until
-- when, and an alarm of kind 'retry' ends the wait. All its messages then get new positions at the end of the queue.
-- Failures are counted in _p_conversation_retry, for the message that is first.
-- Locks: the group, then the rows of both sides, the sender's FOR UPDATE, so that no sender of the conversation is
-- under way meanwhile; skip locked.

create table parley._p_conversation_retry (
  endpoint_id bigint primary key,
  position bigint not null,
  attempts integer not null,
  losses integer not null,
  is_unexplained boolean not null default false
);

comment on table parley._p_conversation_retry is
'How often the first message of a conversation failed: position is that of the message, attempts counts failures that
were reported, losses returns of which nobody said why. Where is_unexplained the last one was such a return: a report
that comes after it explains it. A row whose message is gone counts nothing, and is removed a little later.';

create function parley._p_claim_set_aside(endpoint_id bigint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
  v_id bigint;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_claim_set_aside.endpoint_id;
  perform from parley._p_conversation_group as g where g.group_id = v_endpoint.group_id for update skip locked;
  if not found then
    return false;
  end if;
  for v_id in
    select e.endpoint_id
    from parley._p_endpoint as e
    where e.endpoint_id in (v_endpoint.endpoint_id, v_endpoint.far_endpoint_id)
    order by e.endpoint_id
  loop
    if v_id = v_endpoint.endpoint_id then
      perform from parley._p_endpoint as e where e.endpoint_id = v_id for no key update skip locked;
    else
      perform from parley._p_endpoint as e where e.endpoint_id = v_id for update skip locked;
    end if;
    if not found then
      return false;
    end if;
  end loop;
  return exists (
    select
    from parley._p_set_aside as s
    join parley._p_endpoint as e using (endpoint_id)
    join parley._p_conversation_group as g using (group_id)
    where s.endpoint_id = _p_claim_set_aside.endpoint_id and e.state <> 'DO'
  );
end
$$;

comment on function parley._p_claim_set_aside(bigint) is
'Locks a conversation that is set aside, its group, and its far side against senders; false when somebody holds one of
them, or it is not set aside any more. Waits for nobody.';

create function parley._p_put_back(
  queue parley._p_queue, endpoint parley._p_endpoint, keeps_failures boolean default false
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_put_back bigint;
begin
  delete from parley._p_set_aside as s where s.endpoint_id = endpoint.endpoint_id;
  delete from parley._p_alarm as a where a.endpoint_id = endpoint.endpoint_id and a.kind = 'retry';
  if not keeps_failures then
    delete from parley._p_failure as f where f.endpoint_id = endpoint.endpoint_id;
    delete from parley._p_conversation_retry as r where r.endpoint_id = endpoint.endpoint_id;
  end if;
  update parley._p_endpoint as e
  set is_plain = true
  where e.endpoint_id = endpoint.endpoint_id
    and e.state <> 'ER'
    and not exists (
      select from parley._p_endpoint as o where o.group_id = e.group_id and o.endpoint_id <> e.endpoint_id
    )
    and not exists (select from parley._p_alarm as a where a.endpoint_id = e.endpoint_id and a.kind = 'timer')
    and not exists (
      select from parley._p_message as m where m.endpoint_id = e.endpoint_id and m.message_type_id in (1, 5)
    );
  with placed as materialized (
    select o.row_id, nextval(queue.position_sequence) * 1024 as position, o.messages
    from (
      select m.ctid as row_id, coalesce(cardinality(m.frame), 1) as messages
      from parley._p_message as m
      where m.endpoint_id = endpoint.endpoint_id
      order by m.position
    ) as o
  ), moved as (
    update parley._p_message as m
    set position = p.position, lane = parley._p_lane(queue.queue_id, endpoint.priority)
    from placed as p
    where m.ctid = p.row_id
  )
  select coalesce(sum(p.messages), 0) into v_put_back from placed as p;
  perform parley._p_wake_readers(queue.queue_id, queue.wakeup_sequence);
  return v_put_back;
end
$$;

comment on function parley._p_put_back(parley._p_queue, parley._p_endpoint, boolean) is
'Puts a conversation that is set aside back at the end of its queue, its messages in their order, and gives how many
they are. Its group, its own row and, FOR UPDATE, that of the far side are locked.
Arguments: queue; endpoint; keeps_failures, whether its failures go on being counted.';

create function parley._p_postpone_conversation(
  queue parley._p_queue, endpoint_id bigint, attempts integer, losses integer, delay interval, is_final boolean,
  out retry_at timestamptz, out is_set_aside boolean
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_policy parley._p_retry_policy := parley._p_retry_policy_of(queue);
  v_failed parley._p_conversation_retry;
begin
  -- For the message at which it is set aside; what is counted for another one is over.
  select s.endpoint_id, s.position, least(coalesce(r.attempts, 0), 1000000) + _p_postpone_conversation.attempts,
    least(coalesce(r.losses, 0), 1000000) + _p_postpone_conversation.losses, _p_postpone_conversation.losses > 0
  into v_failed
  from parley._p_set_aside as s
  left join parley._p_conversation_retry as r on r.endpoint_id = s.endpoint_id and r.position = s.position
  where s.endpoint_id = _p_postpone_conversation.endpoint_id;
  is_set_aside := is_final
    or coalesce(v_failed.attempts >= v_policy.attempts or v_failed.losses >= v_policy.losses, false);
  if not is_set_aside then
    retry_at := clock_timestamp()
      + coalesce(delay, parley._p_retry_wait(v_policy, v_failed.attempts + v_failed.losses), interval '0');
  end if;
  update parley._p_set_aside as s
  set retry_at = _p_postpone_conversation.retry_at, rollbacks = v_failed.attempts + v_failed.losses,
    set_aside_at = case when _p_postpone_conversation.is_set_aside then clock_timestamp() else s.set_aside_at end
  where s.endpoint_id = _p_postpone_conversation.endpoint_id;
  if is_set_aside then
    delete from parley._p_conversation_retry as r where r.endpoint_id = _p_postpone_conversation.endpoint_id;
    delete from parley._p_alarm as a where a.endpoint_id = _p_postpone_conversation.endpoint_id and a.kind = 'retry';
    return;
  end if;
  insert into parley._p_conversation_retry as r (endpoint_id, position, attempts, losses, is_unexplained)
  values (endpoint_id, v_failed.position, v_failed.attempts, v_failed.losses, v_failed.is_unexplained)
  on conflict on constraint _p_conversation_retry_pkey do update
  set position = excluded.position, attempts = excluded.attempts, losses = excluded.losses,
    is_unexplained = excluded.is_unexplained;
  perform parley._p_set_alarm(endpoint_id, 'retry', retry_at);
end
$$;

comment on function parley._p_postpone_conversation(
  parley._p_queue, bigint, integer, integer, interval, boolean
) is
'Has a conversation that is set aside wait for another attempt, or leaves it so after too many failures. Its group is
locked.
Arguments: queue; endpoint_id; attempts and losses, how many are added, a loss less where a report explains it; delay,
for how long (null: by the policy of the queue); is_final, leave it so now.
It gives retry_at, null when it stays set aside.';

create function parley._p_record_unseen() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('parley.unseen', 'on', true);
end
$$;

comment on function parley._p_record_unseen() is
'Records, to the end of the transaction, that it has locked or changed something that only others need: a group that
had nothing, a conversation that is set aside. They get it when the transaction commits, so it should not wait.';

create function parley._p_is_wait_over(endpoint_id bigint) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select
    from parley._p_set_aside as s
    where s.endpoint_id = _p_is_wait_over.endpoint_id and s.retry_at <= clock_timestamp()
  );
end
$$;

comment on function parley._p_is_wait_over(bigint) is
'Reports whether a conversation is still set aside though its wait is over: a reader that fails then has ended the wait,
and undone that with its rollback.';

create function parley._p_end_conversation_wait(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
  v_queue parley._p_queue;
begin
  if not parley._p_is_wait_over(endpoint_id) then
    return;
  elsif not parley._p_claim_set_aside(endpoint_id) then
    -- Somebody holds it, a sender above all.
    perform parley._p_set_alarm(endpoint_id, 'retry', clock_timestamp() + interval '100 ms');
    return;
  end if;
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_end_conversation_wait.endpoint_id;
  select q.* into v_queue
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  where s.service_id = v_endpoint.service_id;
  -- A sender that waits for our lock may have drawn its position already; this makes it read, and draw, again.
  perform parley._p_forget_routes(array[v_endpoint.far_endpoint_id]);
  -- A reader that ended the wait itself, received, and rolled back has undone both, and nobody has said why. Ending it
  -- writes this row.
  if exists (
    select
    from parley._p_conversation_retry as r
    where r.endpoint_id = v_endpoint.endpoint_id
      and pg_xact_status(
        case when r.xmax <> '0' then parley._p_full_transaction_id(r.xmax)::text::xid8 end
      ) = 'aborted'
  ) then
    perform parley._p_postpone_conversation(v_queue, v_endpoint.endpoint_id, 0, 1, null, false);
    perform parley._p_record_unseen();
    return;
  end if;
  perform parley._p_put_back(v_queue, v_endpoint, true);
  update parley._p_conversation_retry as r
  set position = coalesce(
    (select min(m.position) from parley._p_message as m where m.endpoint_id = v_endpoint.endpoint_id), r.position
  )
  where r.endpoint_id = v_endpoint.endpoint_id;
end
$$;

comment on function parley._p_end_conversation_wait(bigint) is
'Puts a conversation back whose wait for another attempt is over; later when somebody holds it.';
