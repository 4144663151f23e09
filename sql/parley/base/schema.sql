-- The schema that holds everything, and the row that has the installed version.
--
-- Every function here is owned by the role that installs it, and runs with that role's rights
-- (security definer), because no other role may touch the private tables. Private tables and
-- functions begin with _p_. Rights are those of the session's role: see base/roles.sql.
--
-- Tables that hold no user data worth dumping do not exist: a dump of the database carries
-- the broker, its conversations and its waiting messages with it.

create schema parley;

comment on schema parley is
'Parley: Service Broker for PostgreSQL. Functions and views are the interface; names that begin with _p_ are private.';

-- The views of single queues have a schema of their own, so that no queue can take the name of a view of Parley.
create schema parley_queue;

comment on schema parley_queue is
'One view for each Parley queue: what waits in it, in the columns that RECEIVE returns.';

create table parley._p_installation (
  installation_id boolean primary key default true check (installation_id),
  schema_version integer not null,
  oldest_client_version integer not null default 1,
  release text not null,
  fingerprint text not null,
  installed_at timestamptz not null default now(),
  upgraded_at timestamptz
);

comment on table parley._p_installation is 'One row: the version of this schema.';
comment on column parley._p_installation.oldest_client_version is
'Programs built for this schema version, and for those from there up to schema_version, work with this schema.';

comment on column parley._p_installation.fingerprint is
'SHA-256 of the script that made the schema, in hexadecimal. While a version is not released, builds of it differ.';

create table parley._p_broker (
  broker_id boolean primary key default true check (broker_id),
  service_broker_guid uuid not null default gen_random_uuid(),
  is_broker_enabled boolean not null default true,
  disabled_at timestamptz,
  system_identifier bigint,
  database_oid oid,
  tombstone_seconds integer not null default 1800 check (tombstone_seconds >= 0),
  abandoned_seconds integer not null default 1800 check (abandoned_seconds >= 0),
  is_priority_honored boolean not null default false,
  epoch bigint not null default 1,
  timeline text,
  remembers_since timestamptz
);

comment on table parley._p_broker is 'One row: this database as a broker instance, and its settings.';
comment on column parley._p_broker.system_identifier is
'Server in which the broker was enabled last; null when it was not known.';
comment on column parley._p_broker.database_oid is
'Database in which the broker was enabled last: in a copy of it these two differ from what is there.';
comment on column parley._p_broker.tombstone_seconds is
'How long a closed target endpoint is kept to recognise replays (spec 3.3).';
comment on column parley._p_broker.abandoned_seconds is
'How long a target endpoint whose initiator has ended, and which has nothing left to read, may stay
(fire-and-forget): parley.end_abandoned_after.';

comment on column parley._p_broker.is_priority_honored is
'HONOR_BROKER_PRIORITY: priorities also govern transmission (spec 6.11).';
comment on column parley._p_broker.epoch is
'Grows when the database goes on from a history that may have lost its end; see transport/epoch.sql.';
comment on column parley._p_broker.timeline is
'The timeline of the server in this epoch; null before anything was transmitted.';
comment on column parley._p_broker.remembers_since is
'Since when this broker knows all that it has done: when it has gone on from an older state last; null when it never
has.';

-- The switch itself (broker/broker_switches.sql): without a value while the broker is enabled. A sequence, because
-- whoever asks for its value sees the present state at any isolation level, and holds a lock until the end of his
-- transaction that lets the switch wait for him.
create sequence parley._p_broker_switch;

-- One number series for message types, contracts, services, queues and priorities, so that id < 65536 means built in.
create sequence parley._p_object_id as integer start with 65536 minvalue 1;
