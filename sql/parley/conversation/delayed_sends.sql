-- Messages of conversations that are not due yet (deliver_at of parley.send), and how they are sent when they are.
--
-- They wait with the sender, so a far side in another database need not know. The daemon, or a caller of
-- parley.fire_timers, sends the due ones in the order of their times, and of one time in that of the calls. A send
-- meanwhile goes before. send_at has checked rights; route, target and bodies are judged when the message is sent.
--
-- Invariants, and what keeps each:
--   of one conversation in order   one transaction at a time sends, withdraws or reschedules: it holds the endpoint's
--     row FOR NO KEY UPDATE, which senders do not wait for
--   END loses nothing   END waits for senders, so it sees what waits; EndDialog then waits behind the last of it as a
--     message of type 2, and the side, in state DO, stays that long. At REPEATABLE READ END may not see all: there
--     EndDialog waits whatever is seen, and whoever would send it reads again
--   a conversation without any pays nothing   has_delayed of its endpoint, set by the first one and never reset
-- Locks: the endpoint's row, in the daemon and in fire_timers skip locked; then what SEND takes.

create table parley._p_delayed_send (
  delayed_id bigint generated always as identity primary key,
  endpoint_id bigint not null,
  due_at timestamptz not null,
  -- When to try: due_at, or later when it could not be sent then.
  try_at timestamptz not null,
  message_type_id integer not null,
  body bytea,
  trace_context text,
  -- That of a target in this database, for its depth and its quota.
  far_queue_id integer
);

comment on table parley._p_delayed_send is 'The messages that were sent on conversations and are not due yet.';

create index on parley._p_delayed_send (endpoint_id, due_at, delayed_id);
create index on parley._p_delayed_send (try_at);
create index on parley._p_delayed_send (far_queue_id) where far_queue_id is not null;

-- When to scan next: see conversation/due_times.sql.
create sequence parley._p_next_due_send minvalue 0 start 0;

create function parley._p_find_target_queue(endpoint parley._p_endpoint) returns parley._p_queue
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
begin
  if endpoint.far_endpoint_id < 0 then
    return null;
  end if;
  select q.* into v_queue
  from parley._p_service as s join parley._p_queue as q using (queue_id)
  where s.service_id = coalesce(
    (select f.service_id from parley._p_endpoint as f where f.endpoint_id = endpoint.far_endpoint_id),
    (select o.service_id from parley._p_service as o where o.name = endpoint.far_service)
  );
  return v_queue;
end
$$;

comment on function parley._p_find_target_queue(parley._p_endpoint) is
'Gives the queue that messages of an endpoint will come to, if that is in this database; a row of nulls otherwise.';

create function parley._p_require_room_later(queue parley._p_queue) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_waiting record;
begin
  if queue.quota_sequence is null then
    return true;
  end if;
  select count(*) as messages, coalesce(sum(o.bytes), 0) as bytes into v_waiting
  from (
    select coalesce(octet_length(d.body), 0) as bytes
    from parley._p_delayed_send as d
    -- A message that the other side's end has overtaken is dropped when it is due.
    join parley._p_endpoint as e on e.endpoint_id = d.endpoint_id and e.state in ('SO', 'CO', 'DO')
    where d.far_queue_id = queue.queue_id
    limit queue.quota_messages + 1
  ) as o;
  if v_waiting.messages > queue.quota_messages or v_waiting.bytes > queue.quota_bytes then
    found := parley._p_raise(10928, 'quota', queue.lookup_name);
  end if;
  return true;
end
$$;

comment on function parley._p_require_room_later(parley._p_queue) is
'Refuses what was just sent for later, when more than the quota of its queue is not due yet. It counts that, up to the
quota.
Errors: 10928.';

create function parley._p_send_at(
  caller oid, handle uuid, message_type text, body bytea, deliver_at timestamptz, trace_context text
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_queue parley._p_queue;
  v_type parley._p_message_type;
  v_id bigint;
begin
  found := parley._p_require_finite(deliver_at);
  if (deliver_at > clock_timestamp()) is not true then
    found := parley._p_send(caller, handle, message_type, array[body], trace_context);
    return null;
  end if;
  -- Before any row, as SEND does.
  perform pg_sequence_last_value('parley._p_broker_switch');
  perform parley._p_settle_handle(handle);
  v_endpoint := parley._p_find_sender(handle);
  select q.* into v_queue
  from parley._p_service as s join parley._p_queue as q using (queue_id)
  where s.service_id = v_endpoint.service_id;
  found := parley._p_require_permission(
    caller, 'RECEIVE', 'queue', v_queue.queue_id, v_queue.lookup_name, v_queue.owner
  );
  v_type := parley._p_find_sendable(caller, v_endpoint, message_type);
  if deliver_at > v_endpoint.lifetime then
    found := parley._p_raise(8410, 'late message', deliver_at::text, v_endpoint.lifetime::text);
  end if;
  v_queue := parley._p_find_target_queue(v_endpoint);
  insert into parley._p_delayed_send (
    endpoint_id, due_at, try_at, message_type_id, body, trace_context, far_queue_id
  )
  values (
    v_endpoint.endpoint_id, deliver_at, deliver_at, v_type.message_type_id, nullif(body, ''), _p_send_at.trace_context,
    v_queue.queue_id
  )
  returning delayed_id into v_id;
  found := parley._p_require_room_later(v_queue);
  if not v_endpoint.has_delayed then
    update parley._p_endpoint as e
    set has_delayed = true, state = 'CO', bound_version = null,
      state_since = case when e.state = 'SO' then clock_timestamp() else e.state_since end
    where e.endpoint_id = v_endpoint.endpoint_id;
  end if;
  perform parley._p_expect_due('parley._p_next_due_send', deliver_at);
  return v_id;
end
$$;

comment on function parley._p_send_at(oid, uuid, text, bytea, timestamptz, text) is
'Has a message wait until it is due, and gives its delayed_id; or sends it now and gives null, when it is due already.
Errors: those of parley.send.';

create function parley._p_end_later(endpoint parley._p_endpoint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_last timestamptz := (
    select d.due_at from parley._p_delayed_send as d
    where d.endpoint_id = endpoint.endpoint_id
    order by d.due_at desc
    limit 1
  );
begin
  if v_last is null and not parley._p_keeps_snapshot() then
    return false;
  end if;
  perform parley._p_discard_messages(endpoint.endpoint_id), parley._p_set_state(endpoint.endpoint_id, 'DO');
  -- Without what it had not received its dialog would look unsent (conversation/first_send.sql).
  update parley._p_endpoint as e set bound_version = null
  where e.endpoint_id = endpoint.far_endpoint_id and e.bound_version is not null;
  v_last := coalesce(v_last, clock_timestamp());
  insert into parley._p_delayed_send (endpoint_id, due_at, try_at, message_type_id)
  values (endpoint.endpoint_id, v_last, v_last, 2);
  perform parley._p_expect_due('parley._p_next_due_send', v_last);
  return true;
end
$$;

comment on function parley._p_end_later(parley._p_endpoint) is
'Ends a side, locked by _p_lock_to_end, of which messages are not due yet: EndDialog waits behind them. Gives false, and
has done nothing, when there are none.
Source: spec 4.6.';

create function parley._p_drop_delayed_sends(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  delete from parley._p_delayed_send as d where d.endpoint_id = $1;
end
$$;

comment on function parley._p_drop_delayed_sends(bigint) is
'Drops what an endpoint, locked by the caller, has sent and is not due.';

create function parley._p_send_delayed(endpoint parley._p_endpoint, message parley._p_delayed_send) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_type parley._p_message_type;
  v_queue parley._p_queue := parley._p_find_target_queue(endpoint);
begin
  if v_queue.quota_sequence is not null and not (parley._p_has_room(v_queue, 1)).room then
    return false;
  end if;
  delete from parley._p_delayed_send as d where d.delayed_id = message.delayed_id;
  select * into v_type from parley._p_message_type as t where t.message_type_id = message.message_type_id;
  select q.* into v_queue
  from parley._p_service as s join parley._p_queue as q using (queue_id)
  where s.service_id = endpoint.service_id;
  if v_queue.is_retention_enabled and endpoint.state = 'CO' then
    perform parley._p_keep_sent(endpoint, v_queue, v_type.message_type_id, array[message.body], message.trace_context);
  end if;
  perform parley._p_dispatch(endpoint.conversation_handle, v_type, array[message.body], message.trace_context);
  return true;
end
$$;

comment on function parley._p_send_delayed(parley._p_endpoint, parley._p_delayed_send) is
'Sends a message that is due, of an endpoint that the caller has locked; false when the queue of the target is full.';

create function parley._p_put_off_sends(endpoint_id bigint, due_before timestamptz, delay interval) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley._p_delayed_send as d
  set try_at = clock_timestamp() + delay
  where d.delayed_id = any (array(
    select o.delayed_id
    from parley._p_delayed_send as o
    where o.endpoint_id = _p_put_off_sends.endpoint_id and o.due_at <= due_before
    for update skip locked
  ));
end
$$;

comment on function parley._p_put_off_sends(bigint, timestamptz, interval) is
'Has the due messages of an endpoint tried after a delay; messages that another session holds stay as they are.';

create function parley._p_send_due_of(endpoint_id bigint, due_before timestamptz, top integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_message parley._p_delayed_send;
  v_sent integer := 0;
begin
  -- Before any row, as SEND does.
  perform pg_sequence_last_value('parley._p_broker_switch');
  loop
    select * into v_endpoint
    from parley._p_endpoint as e where e.endpoint_id = _p_send_due_of.endpoint_id for no key update skip locked;
    exit when not found and exists (
      select from parley._p_endpoint as e where e.endpoint_id = _p_send_due_of.endpoint_id
    );
    if (
      v_endpoint.state = 'CO'
      or v_endpoint.state = 'DO' and exists (
        select from parley._p_delayed_send as d
        where d.endpoint_id = v_endpoint.endpoint_id and d.message_type_id = 2
      )
    ) is not true then
      -- The conversation is over, or has failed.
      perform parley._p_drop_delayed_sends(_p_send_due_of.endpoint_id);
      return v_sent;
    end if;
    exit when v_sent >= top;
    select * into v_message
    from parley._p_delayed_send as d
    where d.endpoint_id = v_endpoint.endpoint_id and d.due_at <= due_before and d.message_type_id <> 2
    order by d.due_at, d.delayed_id
    limit 1;
    if not found then
      if v_endpoint.state = 'DO' then
        perform parley._p_send_delayed_end(v_endpoint);
      end if;
      return v_sent;
    end if;
    exit when not parley._p_send_delayed(v_endpoint, v_message);
    v_sent := v_sent + 1;
  end loop;
  if v_sent < top then
    -- Held by somebody, or the target is full: later, and not in the way of others meanwhile.
    perform parley._p_put_off_sends(endpoint_id, due_before, interval '1 second');
  end if;
  return v_sent;
end
$$;

comment on function parley._p_send_due_of(bigint, timestamptz, integer) is
'Sends what is due of one endpoint, in order, and EndDialog behind the last of it; or has it tried a second later. Gives
how many messages. Passes by an endpoint that somebody holds.
Arguments: endpoint_id; due_before, what is due by then; top, how many at most.';

create function parley._p_send_delayed_end(endpoint parley._p_endpoint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_last timestamptz;
  v_is_held boolean;
begin
  select d.due_at into v_last
  from parley._p_delayed_send as d
  where d.endpoint_id = endpoint.endpoint_id and d.message_type_id <> 2
  order by d.due_at desc
  limit 1;
  if v_last is null then
    -- As END locks them. A conversation of which another session holds one is passed by.
    perform from parley._p_endpoint as e where e.endpoint_id = endpoint.endpoint_id for update skip locked;
    v_is_held := not found;
    if endpoint.far_endpoint_id > 0 and not v_is_held then
      perform from parley._p_endpoint as e where e.endpoint_id = endpoint.far_endpoint_id for no key update skip locked;
      v_is_held := not found
        and exists (select from parley._p_endpoint as e where e.endpoint_id = endpoint.far_endpoint_id);
    end if;
    if not v_is_held then
      perform parley._p_drop_delayed_sends(endpoint.endpoint_id);
      perform parley._p_send_end(endpoint, 2, null);
      return;
    end if;
    v_last := clock_timestamp() + interval '1 second';
  end if;
  update parley._p_delayed_send as d
  set due_at = v_last, try_at = v_last
  where d.endpoint_id = endpoint.endpoint_id and d.message_type_id = 2;
end
$$;

comment on function parley._p_send_delayed_end(parley._p_endpoint) is
'Sends EndDialog of a side that has ended, when nothing of it waits any more; has it wait behind what does otherwise.';
