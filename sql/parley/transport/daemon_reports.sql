-- The knowledge of the daemons that serve this database, which it does not have: their links to other servers, what
-- they pass on, what they have counted.
--
-- A daemon writes one row, once a second while something changes there, and takes it back when it stops. A row of a
-- daemon that was killed is shown no more after some seconds, and removed by the next one that writes. The table is not
-- logged: after a crash of the server daemons write anew.
-- Invariant: a daemon is identified by an id that it draws when it starts, so two of them never share a row.
-- Locks: the daemon's own row, and rows of dead daemons. Cost: one row updated a second, while links are in use.

create unlogged table parley._p_daemon_report (
  daemon_id uuid primary key,
  daemon text not null,
  reported_at timestamptz not null,
  endpoint jsonb not null,
  connections jsonb not null,
  forwarded jsonb not null,
  figures jsonb not null
) with (fillfactor = 20);

comment on table parley._p_daemon_report is 'The last report of each daemon about what it alone knows.';

create function parley._p_report_daemon(
  daemon_id uuid, daemon text, endpoint jsonb, connections jsonb, forwarded jsonb, figures jsonb
)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- No wait for the disk, or for a standby, is needed.
  perform set_config('synchronous_commit', 'off', true);
  insert into parley._p_daemon_report as r (daemon_id, daemon, reported_at, endpoint, connections, forwarded, figures)
  values (
    _p_report_daemon.daemon_id, _p_report_daemon.daemon, clock_timestamp(), _p_report_daemon.endpoint,
    _p_report_daemon.connections,
    _p_report_daemon.forwarded, _p_report_daemon.figures
  )
  on conflict on constraint _p_daemon_report_pkey do update
  set daemon = excluded.daemon, reported_at = excluded.reported_at, endpoint = excluded.endpoint,
    connections = excluded.connections,
    forwarded = excluded.forwarded, figures = excluded.figures;
  delete from parley._p_daemon_report as r where r.reported_at < clock_timestamp() - interval '5 minutes';
end
$$;

comment on function parley._p_report_daemon(uuid, text, jsonb, jsonb, jsonb, jsonb) is
'Takes the report of a daemon, in place of its last one, and removes those of daemons that are silent.
Arguments: daemon_id and daemon, its name; endpoint, where it listens, JSON null for nowhere; connections and forwarded,
arrays with the columns of the views; figures, an object with what the daemon has counted of
transport, by the names of internal/store/transport/figures.go.';

create function parley._p_forget_daemon(daemon_id uuid) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  delete from parley._p_daemon_report as r where r.daemon_id = $1
$$;

comment on function parley._p_forget_daemon(uuid) is 'Takes back what a daemon has reported: it stops.';

create view parley._p_living_report as
select r.daemon_id, r.daemon, r.reported_at, r.connections, r.forwarded, r.figures
from parley._p_daemon_report as r
where r.reported_at > clock_timestamp() - interval '15 seconds';

comment on view parley._p_living_report is 'Reports of daemons that live.';

create view parley._p_recent_report as
select r.daemon_id, r.daemon, r.endpoint, r.figures
from parley._p_daemon_report as r
-- A daemon with nothing else to report reports once a minute.
where r.reported_at > clock_timestamp() - interval '150 seconds';

comment on view parley._p_recent_report is
'The facts that do not change from one second to the next, in reports of daemons that live.';

create view parley.dm_broker_connections with (security_barrier) as
select
  c.connection_id,
  c.connection_id as transport_stream_id,
  c.state,
  case c.state
    when 1 then 'NEW' when 2 then 'CONNECTING' when 3 then 'CONNECTED' when 4 then 'LOGGED_IN' else 'CLOSED'
  end as state_desc,
  c.connect_time,
  c.login_time,
  c.last_activity_time,
  c.authentication_method,
  r.daemon as principal_name,
  c.remote_user_name,
  c.is_accept,
  case c.state when 4 then 12 else 0 end::smallint as login_state,
  case c.state when 4 then 'ONLINE' else 'INITIAL' end as login_state_desc,
  null::integer as peer_certificate_id,
  case when c.encryption_algorithm_desc is null then 0 else 2 end::smallint as encryption_algorithm,
  coalesce(c.encryption_algorithm_desc, 'NONE') as encryption_algorithm_desc,
  c.receives_posted,
  c.sends_posted,
  c.is_receive_flow_controlled,
  c.is_send_flow_controlled,
  c.total_bytes_sent,
  c.total_bytes_received,
  c.total_fragments_sent,
  c.total_fragments_received,
  c.total_sends,
  c.total_receives,
  c.connection_id as peer_arbitration_id,
  c.address,
  c.software
from parley._p_living_report as r
cross join lateral jsonb_to_recordset(r.connections) as c (
  connection_id uuid, state smallint, connect_time timestamptz, login_time timestamptz, last_activity_time timestamptz,
  authentication_method text,
  remote_user_name text, is_accept boolean, encryption_algorithm_desc text, receives_posted integer,
  sends_posted integer,
  is_receive_flow_controlled boolean, is_send_flow_controlled boolean, total_bytes_sent bigint,
  total_bytes_received bigint,
  total_fragments_sent bigint, total_fragments_received bigint, total_sends bigint, total_receives bigint, address text,
  software text
)
where parley._p_may_view_state(parley._p_current_role());

comment on view parley.dm_broker_connections is
'Connections with other servers of the daemons that serve this database, some seconds old at most. For administrators
and members of pg_monitor.';
comment on column parley.dm_broker_connections.connection_id is 'Identity of the connection.';
comment on column parley.dm_broker_connections.transport_stream_id is 'The same.';
comment on column parley.dm_broker_connections.state is '1 to 5; see state_desc.';
comment on column parley.dm_broker_connections.state_desc is 'NEW, CONNECTING, CONNECTED, LOGGED_IN or CLOSED.';
comment on column parley.dm_broker_connections.connect_time is 'When there was a socket.';
comment on column parley.dm_broker_connections.login_time is 'When both ends knew each other.';
comment on column parley.dm_broker_connections.last_activity_time is 'When something went over it last.';
comment on column parley.dm_broker_connections.authentication_method is
'CERTIFICATE, or NONE on a connection without TLS.';
comment on column parley.dm_broker_connections.principal_name is 'Name of the daemon here.';
comment on column parley.dm_broker_connections.remote_user_name is 'Fingerprint of the key at the other end.';
comment on column parley.dm_broker_connections.is_accept is 'Whether the other side has dialled.';
comment on column parley.dm_broker_connections.login_state is '12 when both ends know each other, 0 before.';
comment on column parley.dm_broker_connections.login_state_desc is 'ONLINE or INITIAL.';
comment on column parley.dm_broker_connections.peer_certificate_id is
'Always null: keys of peers are known by their fingerprints.';
comment on column parley.dm_broker_connections.encryption_algorithm is '2 with TLS, 0 without.';
comment on column parley.dm_broker_connections.encryption_algorithm_desc is 'The cipher suite of TLS.';
comment on column parley.dm_broker_connections.receives_posted is
'Batches and fragments that have come and are not answered yet.';
comment on column parley.dm_broker_connections.sends_posted is
'Batches and fragments that were sent and are not answered yet.';
comment on column parley.dm_broker_connections.is_receive_flow_controlled is
'Whether the other end has to wait for room here.';
comment on column parley.dm_broker_connections.is_send_flow_controlled is
'Whether this end has to wait for room there.';
comment on column parley.dm_broker_connections.total_bytes_sent is 'Bytes sent.';
comment on column parley.dm_broker_connections.total_bytes_received is 'Bytes received.';
comment on column parley.dm_broker_connections.total_fragments_sent is
'Messages, and parts of large ones, that were sent.';
comment on column parley.dm_broker_connections.total_fragments_received is
'Messages, and parts of large ones, that were received.';
comment on column parley.dm_broker_connections.total_sends is 'Frames sent.';
comment on column parley.dm_broker_connections.total_receives is 'Frames received.';
comment on column parley.dm_broker_connections.peer_arbitration_id is
'The same as connection_id: connections that cross are both kept.';
comment on column parley.dm_broker_connections.address is 'Address of the other end.';
comment on column parley.dm_broker_connections.software is 'The name that the other end gives itself.';

create view parley.dm_broker_forwarded_messages with (security_barrier) as
select
  f.conversation_id,
  f.is_initiator,
  f.to_service_name,
  f.to_broker_instance,
  f.from_service_name,
  null::text as from_broker_instance,
  f.adjacent_broker_address,
  f.message_sequence_number,
  0 as message_fragment_number,
  null::uuid as message_id,
  f.hops_remaining,
  f.time_to_live,
  f.time_consumed
from parley._p_living_report as r
cross join lateral jsonb_to_recordset(r.forwarded) as f (
  conversation_id uuid, is_initiator boolean, to_service_name text, to_broker_instance text, from_service_name text,
  adjacent_broker_address text,
  message_sequence_number bigint, hops_remaining smallint, time_to_live integer, time_consumed integer
)
where parley._p_may_view_state(parley._p_current_role());

comment on view parley.dm_broker_forwarded_messages is
'Messages for other servers that the daemons which serve this database are passing on just now, the oldest 1,000. For
administrators and members of pg_monitor.';
comment on column parley.dm_broker_forwarded_messages.conversation_id is 'The conversation.';
comment on column parley.dm_broker_forwarded_messages.is_initiator is 'Whether the initiator has sent it.';
comment on column parley.dm_broker_forwarded_messages.to_service_name is 'Service that it is for.';
comment on column parley.dm_broker_forwarded_messages.to_broker_instance is
'Broker instance that it is for, or null when that may be any.';
comment on column parley.dm_broker_forwarded_messages.from_service_name is 'Service that it comes from.';
comment on column parley.dm_broker_forwarded_messages.from_broker_instance is 'Always null.';
comment on column parley.dm_broker_forwarded_messages.adjacent_broker_address is 'Where it goes next.';
comment on column parley.dm_broker_forwarded_messages.message_sequence_number is
'Its number; of several that travel together the first one.';
comment on column parley.dm_broker_forwarded_messages.message_fragment_number is 'Always 0.';
comment on column parley.dm_broker_forwarded_messages.message_id is 'Always null.';
comment on column parley.dm_broker_forwarded_messages.hops_remaining is 'How many more brokers may pass it on.';
comment on column parley.dm_broker_forwarded_messages.time_to_live is
'For how many seconds it may be on its way altogether.';
comment on column parley.dm_broker_forwarded_messages.time_consumed is 'For how many it has been.';
