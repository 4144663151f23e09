-- SEND and END when the far side is in another database.
--
-- A conversation is bound to a destination when its first message finds a route. From then on it takes the short way of
-- SEND. Until then its messages wait in _p_transmission, and each sender holds the endpoint's row FOR NO KEY UPDATE: so
-- delayed messages reach the lane before any later one (keeps S4). A conversation has to leave its lane when its far
-- side cannot take from it, its route has changed, or the other side has ended it. Then its row is locked FOR UPDATE,
-- which waits for its senders; a session that may not wait passes the conversation by.

create function parley._p_put_out(
  endpoint parley._p_endpoint, message_type_id integer, bodies bytea[], trace_context text default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_append(
    -endpoint.endpoint_id, parley._p_lane(endpoint.destination_id, endpoint.priority),
    'parley._p_transmission_position', message_type_id, bodies, trace_context
  );
  perform parley._p_wake_readers(endpoint.destination_id, 'parley._p_transmission_wakeup');
end
$$;

comment on function parley._p_put_out(parley._p_endpoint, integer, bytea[], text) is
'Puts messages of an endpoint on the lane of the destination it is bound to, and wakes the daemon.
Type -1 is an Error of the broker.';

create function parley._p_delay_transmission(
  endpoint parley._p_endpoint, message_type_id integer, bodies bytea[], status text, trace_context text default null
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_transmission (
    endpoint_id, message_type_id, enqueued_at, body, transmission_status, trace_context
  )
  select endpoint.endpoint_id, _p_delay_transmission.message_type_id, clock_timestamp(), nullif(b.body, ''), status,
    _p_delay_transmission.trace_context
  from unnest(bodies) with ordinality as b (body, ordinal)
  order by b.ordinal;
  -- The daemon may know a database that SQL does not see.
  if pg_sequence_last_value('parley._p_transmission_wakeup') > extract(epoch from clock_timestamp()) then
    perform parley._p_notify('parley', 'unresolved');
  end if;
end
$$;

comment on function parley._p_delay_transmission(parley._p_endpoint, integer, bytea[], text, text) is
'Keeps messages of an endpoint until there is a way for them; the caller holds its row FOR NO KEY UPDATE.';

create function parley._p_bind_to(endpoint_id bigint, address text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
  v_lane integer;
  v_has_moved boolean;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_bind_to.endpoint_id;
  update parley._p_endpoint as e
  set far_endpoint_id = -e.endpoint_id, destination_id = parley._p_find_destination(address, e.priority),
    destination_lane = null, sender_role = null,
    remote_service_binding_id = case
      -- Of what has been on its way nobody knows who has it already.
      when e.remote_service_binding_id is not null or e.far_endpoint_id is not null or not e.is_initiator
        then e.remote_service_binding_id
      else (
        select b.remote_service_binding_id from parley._p_remote_service_binding as b where b.to_service = e.far_service
      )
    end
  where e.endpoint_id = v_endpoint.endpoint_id
  returning * into v_endpoint;
  v_lane := parley._p_lane(v_endpoint.destination_id, v_endpoint.priority);
  -- The messages that were on their way to another address.
  update parley._p_transit as t set destination_id = v_endpoint.destination_id
  where t.endpoint_id = v_endpoint.endpoint_id and t.destination_id <> v_endpoint.destination_id;
  v_has_moved := found;
  if v_has_moved or exists (select from parley._p_transit as t where t.endpoint_id = v_endpoint.endpoint_id) then
    -- The transmitter has read what was in transit and does not read it again; what is parked and due it does.
    insert into parley._p_parked as p (endpoint_id, destination_id, status, attempts, due_at)
    values (v_endpoint.endpoint_id, v_endpoint.destination_id, '', 0, clock_timestamp())
    on conflict on constraint _p_parked_pkey do update
    set destination_id = excluded.destination_id, status = excluded.status, attempts = excluded.attempts,
      due_at = excluded.due_at
    where v_has_moved;
    perform parley._p_wake_readers(v_endpoint.destination_id, 'parley._p_transmission_wakeup');
  end if;
  with waiting as (
    -- Where the other side has ended or failed, all that may still go is an Error of the broker.
    delete from parley._p_transmission as t
    where t.endpoint_id = v_endpoint.endpoint_id and (v_endpoint.state not in ('DI', 'ER') or t.message_type_id = -1)
    returning t.transmission_id, t.enqueued_at, t.message_type_id, t.body, t.trace_context
  )
  insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body, trace_context)
  select nextval('parley._p_transmission_position') * 1024, -v_endpoint.endpoint_id, w.enqueued_at, v_lane,
    w.message_type_id, w.body, w.trace_context
  from (
    select o.enqueued_at, o.message_type_id, o.body, o.trace_context from waiting as o order by o.transmission_id
  ) as w;
  if found then
    perform parley._p_wake_readers(v_endpoint.destination_id, 'parley._p_transmission_wakeup');
  end if;
end
$$;

comment on function parley._p_bind_to(bigint, text) is
'Binds a conversation, whose row the caller holds, to the destination of an address, and moves what has waited there, in
order. Records which remote service binding counts for it.
Arguments: endpoint_id, not bound before; address, as _p_destination has it.';

create function parley._p_leave_lane(endpoint parley._p_endpoint, status text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  perform parley._p_forget_routes(array[endpoint.endpoint_id]);
  with waiting as (
    delete from parley._p_message as m where m.endpoint_id = -endpoint.endpoint_id
    returning m.position, m.enqueued_at, m.message_type_id, coalesce(m.frame, array[m.body]) as frame, m.trace_context
  )
  insert into parley._p_transmission (
    endpoint_id, message_type_id, enqueued_at, body, transmission_status, trace_context
  )
  select endpoint.endpoint_id, o.message_type_id, o.enqueued_at, b.body, status, o.trace_context
  from (
    select w.position, w.enqueued_at, w.message_type_id, w.frame, w.trace_context from waiting as w order by w.position
  ) as o
  cross join lateral unnest(o.frame) with ordinality as b (body, ordinal)
  order by o.position, b.ordinal;
end
$$;

comment on function parley._p_leave_lane(parley._p_endpoint, text) is
'Takes what has no number yet of a conversation, locked FOR UPDATE by the caller, off the lane of its destination, and
keeps it in _p_transmission with a status.';

create function parley._p_unbind(endpoint parley._p_endpoint, status text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_leave_lane(endpoint, status);
  update parley._p_endpoint as e set destination_id = null where e.endpoint_id = endpoint.endpoint_id;
end
$$;

comment on function parley._p_unbind(parley._p_endpoint, text) is
'Takes a conversation, locked FOR UPDATE by the caller, off its destination; what it sends from now on
waits until it is bound again.';

create function parley._p_bind(endpoint parley._p_endpoint) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_route record;
  v_reason text;
begin
  if pg_sequence_last_value('parley._p_broker_switch') is not null then
    return parley._p_status(9791, 'disabled');
  end if;
  v_route := parley._p_find_route(endpoint.far_service, endpoint.far_broker_instance, endpoint.conversation_id);
  if v_route.address = 'LOCAL' then
    perform parley._p_await_service(endpoint.far_service);
    v_reason := coalesce(v_route.status, parley._p_absence(endpoint));
    if v_reason is null then
      return parley._p_come_back(endpoint);
    end if;
    v_route.address := parley._p_neighbour(endpoint, v_route.broker_instance);
  else
    v_reason := v_route.status;
  end if;
  if v_route.address is null then
    return v_reason;
  end if;
  v_reason := parley._p_await_binding(endpoint, v_route.address);
  if v_reason is not null then
    return v_reason;
  end if;
  perform parley._p_bind_to(endpoint.endpoint_id, v_route.address);
  return null;
end
$$;

comment on function parley._p_bind(parley._p_endpoint) is
'Binds a conversation, whose row the caller holds, to the destination that its route leads to; gives null, or
the reason why it has none. Null also when the far side is in this database: then the conversation has no
destination, and no far side yet.
Source: spec 6.2, 6.3, 6.6.';

create function parley._p_bind_unless_parked(endpoint parley._p_endpoint) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    (
      select p.status
      from parley._p_parked as p
      where p.endpoint_id = endpoint.endpoint_id
        and p.due_at < 'infinity'
        and parley._p_is_at_home(endpoint) is not true
    ),
    parley._p_bind(endpoint)
  );
end
$$;

comment on function parley._p_bind_unless_parked(parley._p_endpoint) is
'Binds a conversation as _p_bind does, unless it waits after a refusal of its far side: then what it sends waits
behind what was refused, for that reason.';

create function parley._p_neighbour(endpoint parley._p_endpoint, broker_instance text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select n.address
  from parley._p_neighbour_service as n
  where n.service_name = endpoint.far_service
    and (_p_neighbour.broker_instance is null or n.address = 'broker:' || _p_neighbour.broker_instance)
  order by md5(n.address || endpoint.conversation_id::text)
  limit 1
$$;

comment on function parley._p_neighbour(parley._p_endpoint, text) is
'Gives the address of a database of the same daemon that has the far service, if one is known; of several one
for each conversation (spec 6.4).
Arguments: broker_instance, that of the conversation or of its route, null for any.';

create function parley._p_absence(endpoint parley._p_endpoint) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if endpoint.far_broker_instance is not null
    and endpoint.far_broker_instance <> (select b.service_broker_guid::text from parley._p_broker as b) then
    return parley._p_status(9795, 'not this database', endpoint.far_broker_instance);
  elsif not exists (select from parley._p_service as s where s.name = endpoint.far_service) then
    return parley._p_status(
      9796, 'not in this database', endpoint.far_service, parley._p_did_you_mean(0, 'service', endpoint.far_service)
    );
  end if;
  return null;
end
$$;

comment on function parley._p_absence(parley._p_endpoint) is
'Explains why the far side of a conversation cannot be in this database; null when it can
(spec 6.4, texts 9795 and 9796).';

create function parley._p_send_far(
  handle uuid, message_type_id integer, bodies bytea[], trace_context text
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
  v_status text;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle;
  if v_endpoint.destination_id is null then
    select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle for no key update;
  end if;
  if v_endpoint.destination_id is null then
    v_status := parley._p_bind_unless_parked(v_endpoint);
    if v_status is not null then
      perform parley._p_delay_transmission(v_endpoint, message_type_id, bodies, v_status, trace_context);
      return false;
    end if;
    select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle;
    if v_endpoint.destination_id is null then
      perform parley._p_delay_transmission(v_endpoint, message_type_id, bodies, '', trace_context);
      perform parley._p_deliver_delayed_of(v_endpoint.endpoint_id);
      return false;
    end if;
  end if;
  perform parley._p_put_out(v_endpoint, message_type_id, bodies, trace_context);
  return true;
end
$$;

comment on function parley._p_send_far(uuid, integer, bytea[], text) is
'Sends messages to a far side in another database, the long way: finds the route when there is none yet. The caller
has checked rights and type. True when nothing was delayed.';

create function parley._p_send_end_far(endpoint_id bigint, message_type_id integer, body bytea) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
  v_status text;
begin
  select * into v_endpoint
  from parley._p_endpoint as e
  where e.endpoint_id = _p_send_end_far.endpoint_id
  for no key update;
  if v_endpoint.destination_id is null then
    v_status := parley._p_bind_unless_parked(v_endpoint);
    if v_status is not null then
      perform parley._p_delay_transmission(v_endpoint, message_type_id, array[body], v_status);
      return;
    end if;
    select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_send_end_far.endpoint_id;
    if v_endpoint.destination_id is null then
      -- It has come back to this database: first what waited. Messages that were never sent need no report of their
      -- failure.
      perform parley._p_deliver_delayed_of(v_endpoint.endpoint_id);
      select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_send_end_far.endpoint_id;
      if found and message_type_id > 0 then
        perform parley._p_send_end(v_endpoint, message_type_id, body);
      elsif v_endpoint.state = 'DO' then
        perform parley._p_remove_endpoint(v_endpoint);
      end if;
      return;
    end if;
  end if;
  perform parley._p_put_out(v_endpoint, message_type_id, array[body]);
end
$$;

comment on function parley._p_send_end_far(bigint, integer, bytea) is
'Sends EndDialog (2), the Error of an application (1) or one of the broker (-1) to a far side in another
database, behind what was sent before.';

create function parley._p_hold_outgoing(endpoint parley._p_endpoint, status text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  delete from parley._p_transit as t where t.endpoint_id = endpoint.endpoint_id;
  delete from parley._p_parked as p where p.endpoint_id = endpoint.endpoint_id;
  update parley._p_transmission as t set transmission_status = status where t.endpoint_id = endpoint.endpoint_id;
  perform parley._p_leave_lane(endpoint, status);
end
$$;

comment on function parley._p_hold_outgoing(parley._p_endpoint, text) is
'Keeps what a conversation has not transmitted from ever being so, because the far side has ended or failed; END
removes it (spec 3.2, texts 9779 and 9784). Messages under way are forgotten: no side waits for them over there. The
caller holds the row FOR UPDATE.';

create function parley._p_forget_far_side(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  delete from parley._p_message as m where m.endpoint_id = -_p_forget_far_side.endpoint_id;
  delete from parley._p_transit as t where t.endpoint_id = _p_forget_far_side.endpoint_id;
  delete from parley._p_parked as p where p.endpoint_id = _p_forget_far_side.endpoint_id;
  delete from parley._p_unresumed as u where u.endpoint_id = _p_forget_far_side.endpoint_id;
  delete from parley._p_compared as c where c.endpoint_id = _p_forget_far_side.endpoint_id;
  delete from parley._p_send_progress as p where p.endpoint_id = _p_forget_far_side.endpoint_id;
  delete from parley._p_accept_progress as p where p.endpoint_id = _p_forget_far_side.endpoint_id;
end
$$;

comment on function parley._p_forget_far_side(bigint) is
'Removes whatever is kept of an endpoint for the sake of its far side in another database.';
