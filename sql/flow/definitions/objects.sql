-- The objects with which the box works: hosts, ports, locations, properties, versions of pipelines, as definitions say,
-- with their states.
--
-- Each row is derived from one definition (flow/definitions/derive.sql). Numbers stay as long as the object is defined.
-- Locks: whoever changes any of them holds the row of _p_configuration (flow/base/schema.sql).

create table parley_flow._p_host (
  host_id integer generated always as identity primary key,
  name text not null unique,
  role_number integer not null,
  system text not null default ''
);

comment on table parley_flow._p_host is
'Hosts. system: that of the store in which its work waits; role_number: the role whose members may serve it
(parley/base/role_numbers.sql).';

create table parley_flow._p_receive_port (
  receive_port_id integer generated always as identity primary key,
  name text not null unique,
  application text not null,
  routes_failed boolean not null,
  responds boolean not null,
  response_timeout interval not null,
  late_answers text not null,
  keep_answers interval not null
);

comment on table parley_flow._p_receive_port is
'Receive ports. routes_failed: what fails is published, not suspended; responds: clients of its locations wait for an
answer, for response_timeout; late_answers: suspend or drop; keep_answers: how long answers stay for repeats.';

create table parley_flow._p_receive_location (
  location_id integer generated always as identity primary key,
  name text not null unique,
  receive_port_id integer not null,
  host_id integer not null,
  adapter text not null,
  address text not null,
  pipeline text not null,
  is_enabled boolean not null,
  ledger_retention interval not null
);

comment on table parley_flow._p_receive_location is 'Receive locations, enabled or not.';

create index _p_receive_location_host on parley_flow._p_receive_location (host_id);

create table parley_flow._p_send_port (
  send_port_id integer generated always as identity primary key,
  name text not null unique,
  application text not null,
  host_id integer not null,
  adapter text not null,
  address text not null,
  pipeline text not null,
  state text not null check (state in ('Bound', 'Stopped', 'Started')),
  item_priority smallint not null,
  is_ordered boolean not null,
  order_key text,
  on_failure text not null,
  retry_policy text,
  routes_failed boolean not null,
  is_tracked boolean not null default true,
  pause_at bigint not null default 500000,
  resume_at bigint not null default 400000,
  stopped_for text,
  is_process boolean not null default false,
  convoy text[],
  version integer
);

comment on table parley_flow._p_send_port is
'Send ports and orchestrations, which are subscribers alike, and their states. item_priority: that of its items in the
store, 10 first; is_tracked: as its application says; pause_at and resume_at: between how many messages that wait intake
is throttled that feeds it alone; stopped_for: why the engine has stopped it, null when an operator did. Of an
orchestration: is_process; convoy, the properties by whose values messages that begin instances belong together, null:
each by itself; version, the newest.';

create index _p_send_port_host on parley_flow._p_send_port (host_id);

-- No foreign key: a failure is recorded under locks of lanes, which come behind those of ports. Maintenance removes the
-- rows of ports that are gone.
create table parley_flow._p_send_port_failure (
  send_port_id integer primary key,
  failed_at timestamptz not null default clock_timestamp(),
  error text not null,
  recovered_at timestamptz
);

comment on table parley_flow._p_send_port_failure is
'The last failure of each send port that has had one. recovered_at: the first success after it; null: none yet.';

create table parley_flow._p_port_group (
  name text primary key,
  application text not null,
  state text not null check (state in ('Bound', 'Started')),
  send_ports text[] not null
);

comment on table parley_flow._p_port_group is 'Send port groups, their states and the names of their ports.';

create table parley_flow._p_property (
  name text primary key,
  type text not null,
  is_tracked boolean not null default false,
  is_sensitive boolean not null default false
);

comment on table parley_flow._p_property is 'Properties that are declared, and those of the engine.';

create table parley_flow._p_retry_policy (
  name text primary key,
  tries integer not null,
  first_interval interval not null,
  factor double precision not null,
  max_interval interval not null,
  jitter double precision not null
);

comment on table parley_flow._p_retry_policy is
'When a message is tried again: so many times, after first_interval, then factor times as long each.';

create table parley_flow._p_pipeline_version (
  name text not null,
  version integer not null,
  direction text not null,
  stages jsonb not null,
  made_at timestamptz not null default clock_timestamp(),
  primary key (name, version)
);

comment on table parley_flow._p_pipeline_version is
'Pipelines, present and past: running work keeps the version that it began with, and tracking names it.';

create table parley_flow._p_orchestration_version (
  name text not null,
  version integer not null,
  settings jsonb not null,
  awaited_properties text[] not null default '{}',
  awaited_types text[],
  made_at timestamptz not null default clock_timestamp(),
  primary key (name, version)
);

comment on table parley_flow._p_orchestration_version is
'Orchestrations, present and past: an instance keeps the version with which it began. awaited_properties: those of its
correlation sets, by which alone its instances wait; awaited_types: those of the messages that it receives, null: any.';

-- The token of a request is half of what an answer needs.
insert into parley_flow._p_property (name, type, is_sensitive)
select e.name, e.type, e.name = 'CorrelationToken' from parley_flow._p_engine_property as e;

insert into parley_flow._p_pipeline_version (name, version, direction, stages)
select b.name, 0, b.direction, b.stages from parley_flow._p_built_in_pipeline as b;

create function parley_flow._p_require_host(caller oid, host text) returns parley_flow._p_host
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_host parley_flow._p_host;
begin
  select * into v_host from parley_flow._p_host as h where h.name = _p_require_host.host;
  -- Most often the number is that of the caller, given here: one probe.
  if found and exists (
    select
    from parley._p_role_number as k
    join parley._p_place as p on p.place = k.place
    where k.number = v_host.role_number and k.role = caller
  ) then
    return v_host;
  elsif v_host.host_id is null or (
    pg_has_role(caller, parley._p_role_with(v_host.role_number), 'usage') or parley_flow._p_is_owner(caller)
  ) is not true then
    found := parley_flow._p_raise('host role', coalesce(host, 'null'), pg_get_userbyid(caller));
  end if;
  return v_host;
end
$$;

comment on function parley_flow._p_require_host(oid, text) is
'Gives a host, or refuses who may not serve it: who is no member of its role, nor an owner of the engine.
Errors: PF001, the same where there is no such host.';

create function parley_flow._p_key_of(value text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when octet_length(value) > 200 then format('sha256:%s', encode(sha256(convert_to(value, 'UTF8')), 'hex'))
    else coalesce(value, '')
  end
$$;

comment on function parley_flow._p_key_of(text) is
'Gives the key of an order for a value of its property: the value, or the hash of one of more than 200 bytes, because it
becomes a part of the name of a lane; '''' for a message without one.';

create function parley_flow._p_lane_of_port(port text, order_key text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when order_key is null then port
    else format('%s#%s', port, lpad((get_byte(sha256(convert_to(order_key, 'UTF8')), 0) % 16)::text, 2, '0'))
  end
$$;

comment on function parley_flow._p_lane_of_port(text, text) is
'Gives the lane in which a message waits for a send port.
Arguments: port; order_key, null where the port has none. Keys share 16 lanes: a lane for each would cost a token and a
lease for each message. One whose head fails has a lane of its own meanwhile (flow/send/held_keys.sql).';

create function parley_flow._p_port_of_lane(lane text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$ select split_part(lane, '#', 1) $$;

comment on function parley_flow._p_port_of_lane(text) is 'Gives the name of the send port to which a lane belongs.';

create function parley_flow._p_may_maintain(caller oid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(parley_flow._p_is_owner(caller) or exists (
    select
    from parley_flow._p_host as h
    where pg_has_role(caller, parley._p_role_with(h.role_number), 'usage')
  ), false);
end
$$;

comment on function parley_flow._p_may_maintain(oid) is
'Reports whether a role may serve any host, or owns the engine.';
