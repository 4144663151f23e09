-- Where messages for other databases go, and how far each conversation has come on the way.
--
-- A conversation whose far side is in another database has far_endpoint_id = -endpoint_id. Its messages stand in
-- _p_message under that number, on a lane of the destination its route leads to, so SEND to another server is the same
-- single insert as SEND next door. The daemon takes messages from the lane into _p_transit, where each gets its number
-- for good (transport/take_runs.sql); that transaction has committed before anything leaves the server. Runs that the
-- far side has acknowledged are deleted there.
--
-- Numbers are kept as RECEIVE keeps them: the newest row of an endpoint counts, none is ever updated, so an old
-- snapshot has no chain of dead versions to grow. _p_send_progress: the next number to give. _p_accept_progress: the
-- next number to take from the far side.
-- Locks: see docs/internals/lock-order.md; destinations are locked after everything else, and only when their state
-- changes.

create table parley._p_destination (
  destination_id integer primary key default nextval('parley._p_object_id'),
  address text collate "C" not null unique,
  -- Bit n is set when a message of priority n has gone there, as in _p_queue.
  priorities integer not null default 32,
  attempts integer not null default 0,
  status text not null default '',
  failing_since timestamptz,
  attempted_at timestamptz,
  -- When to try again; null when it may be tried now.
  due_at timestamptz
);

comment on table parley._p_destination is
'Addresses to which messages are transmitted: tcp://host:port, or broker:GUID for another database that the same
daemon serves. Attempts and status are about the link, not of one message.';

-- One series for all destinations: what matters is the order within a conversation.
create sequence parley._p_transmission_position minvalue 0 start 1;
-- Until when the daemon sleeps, in seconds since 1970, like the wake-up sequence of a queue.
create sequence parley._p_transmission_wakeup minvalue 0 start 0;

create table parley._p_transit (
  endpoint_id bigint not null,
  first_sequence bigint not null,
  next_sequence bigint not null,
  destination_id integer not null,
  enqueued_at timestamptz not null,
  message_type_id integer not null,
  body bytea,
  frame bytea[],
  trace_context text
) with (
  toast_tuple_target = 8160,
  autovacuum_vacuum_scale_factor = 0.1,
  autovacuum_vacuum_threshold = 10000,
  autovacuum_analyze_scale_factor = 0.5,
  autovacuum_analyze_threshold = 100000
);

comment on table parley._p_transit is
'Messages that have their number and are on their way: first_sequence up to, not including, next_sequence. A
bounded window for each destination.';

alter table parley._p_transit replica identity full;

alter table parley._p_transit alter column body set storage external;
alter table parley._p_transit alter column frame set storage external;

create index on parley._p_transit (endpoint_id, first_sequence);

create table parley._p_send_progress (
  endpoint_id bigint not null,
  sequence bigint not null
);

comment on table parley._p_send_progress is
'The next message_sequence_number of each endpoint that transmits: the largest row counts.';

alter table parley._p_send_progress replica identity full;

create index on parley._p_send_progress (endpoint_id, sequence);

create table parley._p_accept_progress (
  endpoint_id bigint not null,
  sequence bigint not null
);

comment on table parley._p_accept_progress is
'The next number that each endpoint takes from its far side in another database: the largest row counts.';

alter table parley._p_accept_progress replica identity full;

create index on parley._p_accept_progress (endpoint_id, sequence);

-- Conversations that the far side cannot take from now: its queue is off, it does not know the service.
create table parley._p_parked (
  endpoint_id bigint primary key,
  destination_id integer not null,
  status text not null,
  attempts integer not null,
  due_at timestamptz not null
);

comment on table parley._p_parked is
'Conversations that are not transmitted until due_at, though their destination is well. Their runs in transit stay
there; the rest waits in _p_transmission. At infinity a conversation is being tried again.';

create index on parley._p_parked (destination_id, due_at);

-- Conversations that have to be compared with their far side first, because this database goes on from a history
-- that may have lost its end.
create table parley._p_unresumed (
  endpoint_id bigint primary key
);

comment on table parley._p_unresumed is
'Conversations with other databases that nothing is transmitted for until both sides were found to agree.';

-- The results of the comparisons.
create table parley._p_compared (
  endpoint_id bigint primary key,
  epoch bigint not null
);

comment on table parley._p_compared is
'The epoch of the far broker in which both sides of a conversation were found to agree last: what asks again
in that epoch is a repetition.';

-- Services of other databases that the same daemon serves, as far as it has reported.
create table parley._p_neighbour_service (
  service_name text collate "C" not null,
  address text collate "C" not null,
  primary key (service_name, address)
);

comment on table parley._p_neighbour_service is
'Where LOCAL routes were found to lead besides this database: a conversation that begins later need not
wait for the daemon to find it.';

create function parley._p_back_off(
  failures integer, first interval default '4 seconds', longest interval default '64 seconds'
) returns interval
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select make_interval(
    secs => least(extract(epoch from longest), extract(epoch from first) * 2 ^ least(failures - 1, 40))
  )
$$;

comment on function parley._p_back_off(integer, interval, interval) is
'Gives how long to wait after so many failures: twice as long each time, up to the longest. Destinations and parked
conversations are tried again after 4 to 64 seconds (spec 6.9), deliveries as their activation says.
Arguments: failures, at least 1; first and longest, how long to wait.';

create function parley._p_find_destination(address text, priority integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_destination parley._p_destination;
begin
  loop
    select * into v_destination from parley._p_destination as d where d.address = _p_find_destination.address;
    exit when found;
    insert into parley._p_destination (address) values (address) on conflict do nothing;
  end loop;
  if v_destination.priorities & (1 << priority) = 0 then
    update parley._p_destination as d
    set priorities = d.priorities | (1 << priority)
    where d.destination_id = v_destination.destination_id;
  end if;
  return v_destination.destination_id;
end
$$;

comment on function parley._p_find_destination(text, integer) is
'Gives the id of the destination for an address, which it creates when it is new, and records that
messages of a priority go there.';

create function parley._p_is_next_door(service_name text) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  select exists (select from parley._p_neighbour_service as n where n.service_name = _p_is_next_door.service_name)
    -- One of them has answered, though the daemon may have searched others since.
    or exists (
      select
      from parley._p_endpoint as e
      where e.far_service = _p_is_next_door.service_name
        and e.far_endpoint_id < 0
        and e.destination_id is not null
        and e.far_broker_instance is not null
        and e.state = 'CO'
    )
$$;

comment on function parley._p_is_next_door(text) is
'Reports whether another database that the same daemon serves is known to have a service: LOCAL leads there
when this one does not have it.';
