-- Copies of what is sent, for queues with retention (spec 5.2): status 3.
--
-- A copy has the number that its message gets when it is received. Numbers are not given out at SEND otherwise, so
-- senders of one conversation come one after the other while its queue retains: they hold the endpoint's row FOR NO KEY
-- UPDATE. Where the numbers stand is kept as RECEIVE keeps it: a row is appended for each SEND and its predecessor
-- deleted, and the newest is found from the end, however many dead ones an old snapshot holds. Messages that were sent
-- while retention was off are counted once, when the first copy is made: the transaction that switches retention on, or
-- moves the service, has waited for all senders before (_p_forget_copy_numbers), so all of them are visible then.
-- A transaction at REPEATABLE READ that does not see the newest row fails with 40001, because it deletes a row that is
-- gone or updates an endpoint that was updated.
-- Cost: beside the copy, one row locked, one found, one inserted and one deleted, whatever the conversation has sent.

create table parley._p_copy_progress (
  endpoint_id bigint not null,
  sequence bigint not null
);

comment on table parley._p_copy_progress is
'The number of the next copy of what an endpoint sends under retention: the largest row
counts. No row: it has to be counted.';

alter table parley._p_copy_progress replica identity full;

create index on parley._p_copy_progress (endpoint_id, sequence);

create function parley._p_keep_sent(
  endpoint parley._p_endpoint, queue parley._p_queue, message_type_id integer, bodies bytea[], trace_context text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_count integer := coalesce(cardinality(bodies), 0);
  v_next bigint;
begin
  if v_count = 0 then
    return;
  end if;
  perform from parley._p_endpoint as e where e.endpoint_id = endpoint.endpoint_id for no key update;
  select p.sequence into v_next
  from parley._p_copy_progress as p where p.endpoint_id = endpoint.endpoint_id order by p.sequence desc limit 1;
  if v_next is null then
    v_next := parley._p_count_sent(endpoint.endpoint_id);
    -- So that an older snapshot, which does not see the first row, fails.
    update parley._p_endpoint as e set state_since = e.state_since where e.endpoint_id = endpoint.endpoint_id;
  else
    delete from parley._p_copy_progress as p where p.endpoint_id = endpoint.endpoint_id and p.sequence = v_next;
  end if;
  insert into parley._p_copy_progress (endpoint_id, sequence) values (endpoint.endpoint_id, v_next + v_count);
  insert into parley._p_retained (
    queue_id, endpoint_id, status, position, message_sequence_number, message_type_id, enqueued_at, body, trace_context
  )
  select queue.queue_id, endpoint.endpoint_id, 3, nextval(queue.position_sequence) * 1024, v_next + b.ordinal - 1,
    _p_keep_sent.message_type_id,
    clock_timestamp(), nullif(b.body, ''), _p_keep_sent.trace_context
  from unnest(bodies) with ordinality as b (body, ordinal);
end
$$;

comment on function parley._p_keep_sent(parley._p_endpoint, parley._p_queue, integer, bytea[], text) is
'Keeps copies of what an endpoint, whose row the caller has locked against its end, is about to send, under the
numbers that it will be received with.';

create function parley._p_count_sent(endpoint_id bigint) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    -- The messages that have got their number: received by a far side here, or taken for transmission.
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
    )::bigint + (
      select count(*)
      from parley._p_transmission as t
      where t.endpoint_id = e.endpoint_id and t.message_type_id not in (-1, 1, 5)
    )
  from parley._p_endpoint as e
  where e.endpoint_id = $1
$$;

comment on function parley._p_count_sent(bigint) is
'Counts the messages that an endpoint has sent and whose senders have committed: the
message_sequence_number of the next one.';

create function parley._p_forget_copy_numbers(queue_id integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  perform
  from parley._p_endpoint as e
  where e.service_id in (
    select s.service_id from parley._p_service as s where s.queue_id = _p_forget_copy_numbers.queue_id
  )
  order by e.endpoint_id
  for update;
  delete from parley._p_copy_progress as p
  where p.endpoint_id in (
    select e.endpoint_id
    from parley._p_endpoint as e
    join parley._p_service as s using (service_id)
    where s.queue_id = _p_forget_copy_numbers.queue_id
  );
end
$$;

comment on function parley._p_forget_copy_numbers(integer) is
'Waits for all senders on a queue whose retention is switched, and lets what they have sent be counted
anew when the next copy is made.';
