-- Routes: which address leads to a service, or to a broker instance (spec 2.6).
--
-- Two tables in one. Routes that are not inbound are those of this database: they govern messages of conversations that
-- have an end here. Inbound ones are the share of this database in the table of the server: they govern what arrives
-- from the network (transport/inbound_routes.sql). A route keeps its address as it was written, and beside it what
-- follows from it: next_hop, the address in the form that links are named by, and rank, its place in the order of spec
-- 6.3. Expired routes stay, are not found, and are revived by alter_route.
-- Locks: the row of the route; then, when it was changed, of the conversations that it concerns
-- (transport/destination_statements.sql).

create table parley._p_route (
  route_id integer primary key,
  name text collate "C" not null unique check (name <> '' and length(name) <= 128),
  owner parley._p_role_oid not null,
  is_inbound boolean not null,
  remote_service_name text collate "C",
  broker_instance text,
  expires_at timestamptz,
  address text not null,
  mirror_address text,
  next_hop text collate "C" not null,
  rank smallint not null check (rank between 1 and 4),
  check (remote_service_name is not null or broker_instance is null)
);

comment on table parley._p_route is 'Routes (spec 2.6); a null service or instance means any, a null expiry never.';

create trigger _p_number_roles after insert or update of owner on parley._p_route
for each row execute function parley._p_number_roles('owner');
comment on column parley._p_route.next_hop is
'LOCAL, TRANSPORT, tcp://host:port, or tcp://host:port,host:port with the mirror; hosts in lower case.';
comment on column parley._p_route.rank is
'Which is preferred among candidates (spec 6.3): 1 with a mirror, 2 LOCAL, 3 network, 4 TRANSPORT.';

create index on parley._p_route (coalesce(remote_service_name, ''), is_inbound);

create function parley._p_network_address(address text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parts text[] := regexp_match(
    lower(address collate "C"), E'^tcp://(?:\\[([0-9a-f.]*:[0-9a-f:.]+)\\]|([a-z0-9_.-]+)):([0-9]{1,5})/?$'
  );
  v_host text;
begin
  if v_parts is null or v_parts[3]::integer not between 1 and 65535 then
    return null;
  elsif v_parts[1] is not null then
    -- No way to write IPv4, and nobody is reached at no address.
    v_host := case
      when v_parts[1]::inet = '::1' or not v_parts[1]::inet << '::/96' then format('[%s]', host(v_parts[1]::inet))
    end;
  elsif v_parts[2] ~ '^[0-9.]+$' then
    -- Else inet would take less than four numbers, and octal ones.
    v_host := case
      when v_parts[2] ~ E'^(0|[1-9][0-9]*)(\\.(0|[1-9][0-9]*)){3}$' then nullif(host(v_parts[2]::inet), '0.0.0.0')
    end;
  elsif length(v_parts[2]) <= 253
    and v_parts[2] ~ E'^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\\.?$' then
    v_host := v_parts[2];
  end if;
  return 'tcp://' || v_host || ':' || v_parts[3]::integer;
exception
  when invalid_text_representation then
    return null;
end
$$;

comment on function parley._p_network_address(text) is
'Gives tcp://host:port in the form that links are named by: lower case, numbers in their short form. Null
when it is none: the host must be a name of DNS or NetBIOS, an IPv4 address, or an IPv6 address in
brackets; the port must be given.
Source: spec 2.6.';

create function parley._p_check_route_text(name text, clause text, value text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if value = '' then
    found := parley._p_raise(9659, 'empty', name, clause);
  elsif length(value) > 256 then
    found := parley._p_raise(9660, 'long', name, clause, length(value)::text);
  end if;
  return true;
end
$$;

comment on function parley._p_check_route_text(text, text, text) is
'Checks the length of a clause.
Errors: 9659, 9660.';

create function parley._p_check_route(route parley._p_route) returns parley._p_route
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_word text := upper(route.address collate "C");
  v_is_word boolean := v_word in ('LOCAL', 'TRANSPORT');
  v_mirror text;
begin
  found := parley._p_check_route_text(route.name, 'service_name', route.remote_service_name);
  found := parley._p_check_route_text(route.name, 'address', coalesce(route.address, ''));
  found := parley._p_check_route_text(route.name, 'mirror_address', route.mirror_address);
  if route.broker_instance is not null and route.remote_service_name is null then
    found := parley._p_raise(9662, 'service missing', route.name);
  elsif route.broker_instance is not null and route.remote_service_name = 'SQL/ServiceBroker/BrokerConfiguration' then
    found := parley._p_raise(9662, 'broker configuration', route.name);
  elsif route.mirror_address is not null and (route.remote_service_name is null or route.broker_instance is null) then
    found := parley._p_raise(9661, 'mirror', route.name);
  elsif route.mirror_address is not null
    and (v_is_word or upper(route.mirror_address collate "C") in ('LOCAL', 'TRANSPORT')) then
    found := parley._p_raise(9743, 'mirror', route.name, route.address, route.mirror_address);
  elsif v_word = 'TRANSPORT' and route.remote_service_name is not null then
    found := parley._p_raise(9745, 'transport', route.name);
  end if;
  route.next_hop := case when v_is_word then v_word else parley._p_network_address(route.address) end;
  v_mirror := parley._p_network_address(route.mirror_address);
  if route.next_hop is null or (route.mirror_address is not null and v_mirror is null) then
    found := parley._p_raise(
      9744, 'address', route.name, case when route.next_hop is null then route.address else route.mirror_address end
    );
  elsif route.next_hop = v_mirror then
    found := parley._p_raise(9747, 'same address', route.name);
  end if;
  route.rank := case
    when route.mirror_address is not null then 1
    when v_word = 'LOCAL' then 2
    when v_word = 'TRANSPORT' then 4
    else 3
  end;
  route.next_hop := route.next_hop || coalesce(',' || substr(v_mirror, 7), '');
  return route;
end
$$;

comment on function parley._p_check_route(parley._p_route) is
'Checks the clauses of a route together, and fills in next_hop and rank.
Errors: 9659, 9660, 9661, 9662, 9743, 9744, 9745, 9747.
Source: spec 2.6.';

create function parley._p_route_expiry(name text, lifetime integer) returns timestamptz
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if lifetime <= 0 then
    found := parley._p_raise(9746, 'lifetime', name, lifetime::text);
  end if;
  return clock_timestamp() + make_interval(secs => lifetime);
end
$$;

comment on function parley._p_route_expiry(text, integer) is
'Gives when a route of a lifetime in seconds expires, null for null.
Errors: 9746.';

create function parley._p_follow_route(route parley._p_route) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- The broker configuration service is asked for every service.
  v_service text := nullif(route.remote_service_name, 'SQL/ServiceBroker/BrokerConfiguration');
begin
  if route.is_inbound then
    perform parley._p_notify('parley', 'routes');
  else
    perform parley._p_reroute(v_service);
    perform parley._p_deliver_delayed(v_service);
  end if;
end
$$;

comment on function parley._p_follow_route(parley._p_route) is
'Finds the way of the messages again that a route concerns, after it was created, dropped or
changed, and notifies the daemons.';

create function parley.create_route(
  name text,
  address text,
  service_name text default null,
  broker_instance text default null,
  lifetime integer default null,
  mirror_address text default null,
  is_inbound boolean default false,
  "authorization" text default null,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_route parley._p_route;
  v_id integer;
begin
  if coalesce(is_inbound, false) then
    found := parley._p_require_administrator(v_caller, 'create_route of an inbound route');
  else
    found := parley._p_require_permission(v_caller, 'CREATE ROUTE', 'database', 0, null, null);
  end if;
  v_route.name := parley._p_name('route', create_route.name);
  v_route.owner := parley._p_new_owner(v_caller, "authorization");
  v_route.is_inbound := coalesce(create_route.is_inbound, false);
  v_route.remote_service_name := service_name;
  v_route.broker_instance := parley._p_broker_instance(create_route.broker_instance);
  v_route.expires_at := parley._p_route_expiry(create_route.name, lifetime);
  v_route.address := create_route.address;
  v_route.mirror_address := create_route.mirror_address;
  v_route := parley._p_check_route(v_route);
  insert into parley._p_route (
    route_id, name, owner, is_inbound, remote_service_name, broker_instance, expires_at, address, mirror_address,
    next_hop, rank
  )
  values (
    nextval('parley._p_object_id'), v_route.name, v_route.owner, v_route.is_inbound, v_route.remote_service_name,
    v_route.broker_instance, v_route.expires_at, v_route.address, v_route.mirror_address, v_route.next_hop, v_route.rank
  )
  on conflict do nothing
  returning route_id into v_id;
  if v_id is null then
    found := parley._p_raise(2714, 'object', 'route', name, 'alter_route');
  end if;
  perform parley._p_follow_route(v_route);
  return v_id;
end
$$;

comment on function parley.create_route(text, text, text, text, integer, text, boolean, text, parley.caller) is
'Creates a route and returns its id. Messages that wait for one go where it leads.
Arguments: name; address, tcp://host:port of the broker at the other end or of one that forwards, LOCAL for this
server, or TRANSPORT for services whose names begin with the address; service_name, compared byte by byte (null: any
service); broker_instance, the service_broker_guid of the target database, or CURRENT DATABASE (null: any); lifetime
in seconds (null: for ever); mirror_address, tcp://host:port of the second server of a database, which needs
service_name and broker_instance; is_inbound, whether it is for messages that arrive from the network, which only an
administrator may say; authorization, the owner (default: the caller). Service SQL/ServiceBroker/BrokerConfiguration
is the one that is asked for missing routes.
Errors: 229 not allowed, 2714 exists, 8413 malformed broker_instance, 9609 bad name, 9659 empty address or service, 9660
longer than 256 characters, 9661 mirror without service and instance, 9662 instance without service, 9743 mirror of
LOCAL or TRANSPORT, 9744 malformed address, 9745 TRANSPORT with a service, 9746 lifetime out of range, 9747 both
addresses the same, 15151 unknown owner or not an administrator.
Source: spec 2.6.';

create function parley._p_route_to_change(caller oid, name text, permission text) returns parley._p_route
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_route parley._p_route;
begin
  select * into v_route from parley._p_route as r where r.name = _p_route_to_change.name for update;
  if not found then
    found := parley._p_raise(15151, 'object', 'route', name, parley._p_did_you_mean(caller, 'route', name), 'routes');
  end if;
  if v_route.is_inbound then
    found := parley._p_require_administrator(caller, 'changing an inbound route');
  else
    found := parley._p_require_permission(caller, permission, 'route', v_route.route_id, name, v_route.owner);
  end if;
  return v_route;
end
$$;

comment on function parley._p_route_to_change(oid, text, text) is
'Finds and locks a route that the caller may change.
Errors: 229, 15151.';

create function parley.alter_route(
  name text,
  address text default null,
  service_name text default null,
  broker_instance text default null,
  lifetime integer default null,
  mirror_address text default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_old parley._p_route := parley._p_route_to_change(v_caller, name, 'ALTER');
  v_route parley._p_route := v_old;
begin
  if coalesce(address, service_name, broker_instance, lifetime::text, mirror_address) is null then
    found := parley._p_raise(8493, 'nothing', 'route', name);
  end if;
  v_route.address := coalesce(alter_route.address, v_route.address);
  v_route.remote_service_name := coalesce(service_name, v_route.remote_service_name);
  v_route.broker_instance := coalesce(parley._p_broker_instance(alter_route.broker_instance), v_route.broker_instance);
  v_route.expires_at := coalesce(parley._p_route_expiry(name, lifetime), v_route.expires_at);
  v_route.mirror_address := coalesce(alter_route.mirror_address, v_route.mirror_address);
  v_route := parley._p_check_route(v_route);
  update parley._p_route as r
  set remote_service_name = v_route.remote_service_name, broker_instance = v_route.broker_instance,
    expires_at = v_route.expires_at,
    address = v_route.address, mirror_address = v_route.mirror_address, next_hop = v_route.next_hop, rank = v_route.rank
  where r.route_id = v_route.route_id;
  perform parley._p_follow_route(v_route);
  if v_old.remote_service_name is distinct from v_route.remote_service_name then
    perform parley._p_follow_route(v_old);
  end if;
end
$$;

comment on function parley.alter_route(text, text, text, text, integer, text, parley.caller) is
'Changes what is given of a route; a lifetime counts from now, so it revives a route that has expired. The statement can
change a name that a route has, and cannot remove it: for any service, any instance, no mirror or for ever, drop the
route and create it anew.
Arguments: as create_route; null leaves what is there.
Errors: 229 not allowed, 8413 malformed broker_instance, 8493 nothing to change, 9659, 9660, 9661, 9662, 9743, 9744,
9745, 9746, 9747 as create_route, 15151 not found, or inbound and the caller is not an administrator.
Source: spec 2.6.';

create function parley.drop_route(name text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_route parley._p_route := parley._p_route_to_change(v_caller, name, 'CONTROL');
begin
  delete from parley._p_permission as p where p.class = 'route' and p.object_id = v_route.route_id;
  delete from parley._p_route as r where r.route_id = v_route.route_id;
  perform parley._p_follow_route(v_route);
end
$$;

comment on function parley.drop_route(text, parley.caller) is
'Drops a route. Conversations that went by it wait until another leads to their far side.
Errors: 229 not allowed, 15151 not found, or inbound and the caller is not an administrator.
Source: spec 2.6.';
