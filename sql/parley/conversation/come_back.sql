-- A conversation that was routed to another database and whose target is in this one now.
--
-- No message may have two far sides. One that has its number may be with another database already, so a conversation
-- that has begun elsewhere stays there, but for one case: its target has answered that it did not take even the first
-- message, and nothing was sent to anybody since. Then the numbers are forgotten and all goes the way of what was
-- never sent. That is the case of a conversation that is parked and has not been bound again; a route that was
-- changed leaves no such answer behind.
-- Should a copy of the first message be under way all the same, in the memory of a server in between, and be taken
-- there later, the second of the two targets is refused when it answers: 8495 (spec 6.5).
-- Locks: the endpoint's row, by the caller.

create function parley._p_come_back(endpoint parley._p_endpoint) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  if endpoint.far_endpoint_id < 0 then
    if not parley._p_was_never_taken(endpoint) then
      return parley._p_status(9750, 'begun elsewhere', endpoint.far_service);
    end if;
    with numbered as (
      delete from parley._p_transit as t where t.endpoint_id = endpoint.endpoint_id
      returning t.first_sequence as position, t.enqueued_at, t.message_type_id,
        coalesce(t.frame, array[t.body]) as frame, t.trace_context
    ), waiting as (
      delete from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id
      returning t.transmission_id as position, t.enqueued_at, t.message_type_id, array[t.body] as frame, t.trace_context
    )
    insert into parley._p_transmission (
      endpoint_id, message_type_id, enqueued_at, body, transmission_status, trace_context
    )
    select endpoint.endpoint_id, o.message_type_id, o.enqueued_at, b.body, '', o.trace_context
    from (
      select 1 as stage, n.position, n.enqueued_at, n.message_type_id, n.frame, n.trace_context from numbered as n
      union all
      select 2, w.position, w.enqueued_at, w.message_type_id, w.frame, w.trace_context from waiting as w
    ) as o
    cross join lateral unnest(o.frame) with ordinality as b (body, ordinal)
    -- A side that never knew of it gets no Error.
    where o.message_type_id <> -1
    order by o.stage, o.position, b.ordinal;
    delete from parley._p_send_progress as p where p.endpoint_id = endpoint.endpoint_id;
    delete from parley._p_parked as p where p.endpoint_id = endpoint.endpoint_id;
    update parley._p_endpoint as e set far_endpoint_id = null where e.endpoint_id = endpoint.endpoint_id;
    if endpoint.state = 'DO'
      and not exists (select from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id)
      and not exists (select from parley._p_delayed_send as d where d.endpoint_id = endpoint.endpoint_id) then
      endpoint.far_endpoint_id := null;
      perform parley._p_remove_endpoint(endpoint);
    end if;
  end if;
  return null;
end
$$;

comment on function parley._p_come_back(parley._p_endpoint) is
'Lets a conversation whose route leads to this database now have its far side here, unless another database may have
messages of it; then gives that as the reason why it waits. The caller holds the row.
Source: spec 2.5, 6.2.';

create function parley._p_was_never_taken(endpoint parley._p_endpoint) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select not exists (select from parley._p_send_progress as p where p.endpoint_id = endpoint.endpoint_id)
      and not exists (select from parley._p_accept_progress as p where p.endpoint_id = endpoint.endpoint_id)
    or endpoint.is_initiator
      and endpoint.destination_id is null
      -- At infinity it is being sent again.
      and exists (
        select from parley._p_parked as p where p.endpoint_id = endpoint.endpoint_id and p.due_at < 'infinity'
      )
      and not exists (select from parley._p_accept_progress as p where p.endpoint_id = endpoint.endpoint_id)
      -- All that ever got a number is still here.
      and (select max(p.sequence) from parley._p_send_progress as p where p.endpoint_id = endpoint.endpoint_id) = (
        select sum(t.next_sequence - t.first_sequence)
        from parley._p_transit as t
        where t.endpoint_id = endpoint.endpoint_id and t.message_type_id <> -1
      )
$$;

comment on function parley._p_was_never_taken(parley._p_endpoint) is
'Reports whether it is sure that no other database has taken a message of a conversation: none has a number, or the
target has refused the first for now and nothing was acknowledged or sent since.';

create function parley._p_is_at_home(endpoint parley._p_endpoint) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select r.address = 'LOCAL' and r.status is null and parley._p_absence(endpoint) is null
  from parley._p_find_known_route(
    endpoint.far_service, endpoint.far_broker_instance, endpoint.conversation_id, false
  ) as r
$$;

comment on function parley._p_is_at_home(parley._p_endpoint) is
'Reports whether the route of a conversation leads to a service of this database now.';
