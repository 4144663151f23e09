-- Broker endpoints: the daemons that listen for other servers and serve this database (spec 2.8, 8.1).
--
-- An endpoint is not an object of the database: it is there while a daemon runs that was started with --listen.

create view parley._p_listening_report as
select r.daemon_id, r.daemon, r.endpoint from parley._p_recent_report as r where r.endpoint <> 'null';

comment on view parley._p_listening_report is 'Reports of daemons that listen for other servers.';

create view parley.service_broker_endpoints with (security_barrier) as
select
  r.daemon as name,
  hashtext(r.daemon_id::text) & 2147483647 as endpoint_id,
  null::integer as principal_id,
  2::smallint as protocol,
  'TCP' as protocol_desc,
  3::smallint as type,
  'SERVICE_BROKER' as type_desc,
  0::smallint as state,
  'STARTED' as state_desc,
  false as is_admin_endpoint,
  (r.endpoint ->> 'forwards')::boolean as is_message_forwarding_enabled,
  (r.endpoint ->> 'forward_size_mb')::integer as message_forwarding_size,
  4::smallint as connection_auth,
  'CERTIFICATE' as connection_auth_desc,
  null::integer as certificate_id,
  2::smallint as encryption_algorithm,
  'AES' as encryption_algorithm_desc
from parley._p_listening_report as r
where parley._p_may_view_state(parley._p_current_role());

comment on view parley.service_broker_endpoints is
'Broker endpoints that serve this database, a row for each daemon that listens; up to two minutes old. For
administrators and members of pg_monitor.';
comment on column parley.service_broker_endpoints.name is 'The daemon that listens.';
comment on column parley.service_broker_endpoints.endpoint_id is
'Distinguishes endpoints; another one after the daemon has started anew.';
comment on column parley.service_broker_endpoints.principal_id is 'Null: a daemon is nobody in the database.';
comment on column parley.service_broker_endpoints.protocol is '2.';
comment on column parley.service_broker_endpoints.protocol_desc is 'TCP.';
comment on column parley.service_broker_endpoints.type is '3.';
comment on column parley.service_broker_endpoints.type_desc is 'SERVICE_BROKER.';
comment on column parley.service_broker_endpoints.state is '0: one that does not listen is not here.';
comment on column parley.service_broker_endpoints.state_desc is 'STARTED.';
comment on column parley.service_broker_endpoints.is_admin_endpoint is 'False.';
comment on column parley.service_broker_endpoints.is_message_forwarding_enabled is
'Whether the daemon passes messages on (`parley serve --forward`).';
comment on column parley.service_broker_endpoints.message_forwarding_size is
'How many megabytes of them may be in its memory at a time.';
comment on column parley.service_broker_endpoints.connection_auth is '4.';
comment on column parley.service_broker_endpoints.connection_auth_desc is
'CERTIFICATE: both sides of a connection show one.';
comment on column parley.service_broker_endpoints.certificate_id is
'Null: the certificate of a broker is with its daemon.';
comment on column parley.service_broker_endpoints.encryption_algorithm is '2.';
comment on column parley.service_broker_endpoints.encryption_algorithm_desc is
'AES: what TLS 1.3 agrees on is in dm_broker_connections.';

create view parley.tcp_endpoints with (security_barrier) as
select
  r.daemon as name,
  hashtext(r.daemon_id::text) & 2147483647 as endpoint_id,
  null::integer as principal_id,
  2::smallint as protocol,
  'TCP' as protocol_desc,
  3::smallint as type,
  'SERVICE_BROKER' as type_desc,
  0::smallint as state,
  'STARTED' as state_desc,
  false as is_admin_endpoint,
  (r.endpoint ->> 'port')::integer as port,
  false as is_dynamic_port,
  nullif(nullif(r.endpoint ->> 'ip_address', '::'), '0.0.0.0') as ip_address
from parley._p_listening_report as r
where parley._p_may_view_state(parley._p_current_role());

comment on view parley.tcp_endpoints is
'Where the broker endpoints that serve this database listen. For administrators and members of pg_monitor.';
comment on column parley.tcp_endpoints.name is 'The daemon that listens.';
comment on column parley.tcp_endpoints.endpoint_id is
'Distinguishes endpoints; another one after the daemon has started anew.';
comment on column parley.tcp_endpoints.principal_id is 'Null: a daemon is nobody in the database.';
comment on column parley.tcp_endpoints.protocol is '2.';
comment on column parley.tcp_endpoints.protocol_desc is 'TCP.';
comment on column parley.tcp_endpoints.type is '3.';
comment on column parley.tcp_endpoints.type_desc is 'SERVICE_BROKER.';
comment on column parley.tcp_endpoints.state is '0: one that does not listen is not here.';
comment on column parley.tcp_endpoints.state_desc is 'STARTED.';
comment on column parley.tcp_endpoints.is_admin_endpoint is 'False.';
comment on column parley.tcp_endpoints.port is 'The port it listens on.';
comment on column parley.tcp_endpoints.is_dynamic_port is 'False.';
comment on column parley.tcp_endpoints.ip_address is
'The address it listens on; null for all addresses of its machine.';
