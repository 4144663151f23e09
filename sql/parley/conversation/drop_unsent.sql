-- Messages that have been sent and are not with the far side yet, dropped because this side ends with an Error (spec
-- 3.2, 4.6).
--
-- Here that is what came while the queue of the target is off. In another database it is all that was not acknowledged.
-- Dropping what has its number already leaves a hole in the order that the far side would wait behind for ever, so the
-- Error then stands outside the order, as those of the broker do.
-- Locks: the endpoint's row FOR UPDATE, by the caller, so that nobody sends; rows of the lane, for which the daemon is
-- waited; rows that readers and acknowledgements delete SKIP LOCKED.

create function parley._p_drop_unsent(endpoint parley._p_endpoint) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  delete from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id;
  if endpoint.has_delayed then
    perform parley._p_drop_delayed_sends(endpoint.endpoint_id);
  end if;
  if endpoint.far_endpoint_id > 0 then
    -- The messages that came while the queue of the target is off. A reader that has got at it since, because the queue
    -- is on again, keeps it.
    delete from parley._p_message as m
    where m.ctid = any (array(
      select o.ctid
      from parley._p_endpoint as f
      join parley._p_service as s using (service_id)
      join parley._p_queue as q using (queue_id)
      join parley._p_message as o on o.endpoint_id = f.endpoint_id and o.position >= q.disabled_position
      where f.endpoint_id = endpoint.far_endpoint_id and not parley._p_is_system_message(o.message_type_id)
      order by o.position
      for update of o skip locked
    ));
  elsif endpoint.far_endpoint_id < 0 then
    return parley._p_drop_untransmitted(endpoint);
  end if;
  return 1;
end
$$;

comment on function parley._p_drop_unsent(parley._p_endpoint) is
'Drops what a side, locked FOR UPDATE by the caller, has sent and the far side does not have yet, because it ends with
an Error. Gives the type of message that has to report the Error: 1 in the order, -1 outside of it, null when no other
database knows the conversation.
Source: spec 3.2, 4.6.';

create function parley._p_drop_outgoing(endpoint parley._p_endpoint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  perform parley._p_forget_routes(array[endpoint.endpoint_id]);
  delete from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id;
  if endpoint.has_delayed then
    perform parley._p_drop_delayed_sends(endpoint.endpoint_id);
  end if;
  -- First the lane: what the daemon is just giving its number is waited for, and is in transit then.
  delete from parley._p_message as m where m.endpoint_id = -endpoint.endpoint_id;
  -- An acknowledgement locks what it deletes, in an order of its own.
  delete from parley._p_transit as t
  where t.ctid = any (
    array(select o.ctid from parley._p_transit as o where o.endpoint_id = endpoint.endpoint_id for update skip locked)
  );
  delete from parley._p_parked as p where p.endpoint_id = endpoint.endpoint_id;
end
$$;

comment on function parley._p_drop_outgoing(parley._p_endpoint) is
'Forgets what a conversation, locked FOR UPDATE by the caller, has not transmitted.';

create function parley._p_drop_untransmitted(endpoint parley._p_endpoint) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  -- As in _p_drop_outgoing, what is just given its number is waited for.
  delete from parley._p_message as m where m.endpoint_id = -endpoint.endpoint_id;
  if endpoint.is_initiator
    and not exists (select from parley._p_send_progress as p where p.endpoint_id = endpoint.endpoint_id) then
    return null;
  elsif not exists (select from parley._p_transit as t where t.endpoint_id = endpoint.endpoint_id) then
    return 1;
  elsif endpoint.is_initiator
    and exists (select from parley._p_transit as t where t.endpoint_id = endpoint.endpoint_id and t.first_sequence = 0)
    and not exists (
      select from parley._p_parked as p where p.endpoint_id = endpoint.endpoint_id and p.due_at < 'infinity'
    ) then
    -- The first message may arrive any moment, and nobody remembers an Error that came before it: the
    -- Error has to follow it.
    return 1;
  end if;
  -- A message that has a number and is forgotten leaves a hole, which only a message outside the order gets across.
  perform parley._p_drop_outgoing(endpoint);
  return -1;
end
$$;

comment on function parley._p_drop_untransmitted(parley._p_endpoint) is
'Drops what the far side in another database has not acknowledged; all that the daemon may be sending stays when the
far side may be made by it. The result is that of _p_drop_unsent.';

create function parley._p_has_unacknowledged_error(endpoint parley._p_endpoint) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select endpoint.far_endpoint_id < 0
    and (
      exists (select from parley._p_transit as t where t.endpoint_id = endpoint.endpoint_id and t.message_type_id = -1)
      or exists (
        select from parley._p_message as m where m.endpoint_id = -endpoint.endpoint_id and m.message_type_id = -1
      )
      or exists (
        select from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id and t.message_type_id = -1
      )
    )
$$;

comment on function parley._p_has_unacknowledged_error(parley._p_endpoint) is
'Reports whether an Error of the broker is still on its way to a far side in another database.';
