-- Broker priorities: which level, 1 to 10, a new endpoint gets.
--
-- The level is fixed when the endpoint is created and never changes (spec 2.9).

create table parley._p_priority (
  priority_id integer primary key,
  name text collate "C" not null unique check (name <> '' and length(name) <= 128),
  service_contract_id integer references parley._p_contract,
  local_service_id integer references parley._p_service,
  remote_service_name text collate "C",
  priority smallint not null check (priority between 1 and 10)
);

comment on table parley._p_priority is 'Broker priorities (spec 2.9); null means ANY.';

create function parley._p_priority_of(
  service_contract_id integer, local_service_id integer, remote_service_name text
) returns smallint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    (
      select p.priority
      from parley._p_priority as p
      where (p.service_contract_id is null or p.service_contract_id = $1)
        and (p.local_service_id is null or p.local_service_id = $2)
        and (p.remote_service_name is null or p.remote_service_name = $3)
      order by p.service_contract_id is null, p.local_service_id is null, p.remote_service_name is null, p.priority_id
      limit 1
    ),
    5::smallint
  );
end
$$;

comment on function parley._p_priority_of(integer, integer, text) is
'Gives the priority of a new endpoint: the best match in the eight ranks of spec 2.9, else 5.';

create function parley._p_priority_parts(
  caller oid, contract_name text, local_service_name text, remote_service_name text, priority_level integer,
  out service_contract_id integer, out local_service_id integer, out remote_name text, out priority smallint
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if upper(contract_name collate "C") <> 'ANY' then
    service_contract_id := (parley._p_find_contract(caller, contract_name, 'REFERENCES')).service_contract_id;
  end if;
  if upper(local_service_name collate "C") <> 'ANY' then
    local_service_id := (parley._p_find_service(caller, local_service_name, 'VIEW DEFINITION')).service_id;
  end if;
  if upper(remote_service_name collate "C") <> 'ANY' then
    remote_name := remote_service_name;
  end if;
  if priority_level is null or priority_level not between 1 and 10 then
    found := parley._p_raise(8402, 'priority level', coalesce(priority_level::text, 'null'));
  end if;
  priority := priority_level;
end
$$;

comment on function parley._p_priority_parts(oid, text, text, text, integer) is
'Checks the parts of a priority and finds what they name.
Errors: 229, 8402, 15151.';

create function parley.create_broker_priority(
  name text,
  contract_name text default 'ANY',
  local_service_name text default 'ANY',
  remote_service_name text default 'ANY',
  priority_level integer default 5,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_id integer;
  v_parts record;
begin
  found := parley._p_require_administrator(v_caller, 'create_broker_priority');
  v_parts := parley._p_priority_parts(v_caller, contract_name, local_service_name, remote_service_name, priority_level);
  name := parley._p_name('broker priority', name);
  insert into parley._p_priority (
    priority_id, name, service_contract_id, local_service_id, remote_service_name, priority
  )
  values (
    nextval('parley._p_object_id'), create_broker_priority.name,
    v_parts.service_contract_id, v_parts.local_service_id, v_parts.remote_name, v_parts.priority
  )
  on conflict do nothing
  returning priority_id into v_id;
  if v_id is null then
    found := parley._p_raise(2714, 'object', 'broker priority', name, 'alter_broker_priority');
  end if;
  return v_id;
end
$$;

comment on function parley.create_broker_priority(text, text, text, text, integer, parley.caller) is
'Creates a broker priority and returns its id. It governs endpoints created from now on.
Arguments: name; contract_name, local_service_name, remote_service_name, a name or ANY;
priority_level, 1 (low) to 10 (high).
Errors: 2714 exists, 8402 level out of range, 9609 bad name, 15151 not found or not an administrator.
Source: spec 2.9.';

create function parley.alter_broker_priority(
  name text,
  contract_name text default null,
  local_service_name text default null,
  remote_service_name text default null,
  priority_level integer default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_old parley._p_priority;
  v_parts record;
begin
  found := parley._p_require_administrator(v_caller, 'alter_broker_priority');
  if coalesce(contract_name, local_service_name, remote_service_name, priority_level::text) is null then
    found := parley._p_raise(8493, 'nothing', 'broker priority', name);
  end if;
  select * into v_old from parley._p_priority as p where p.name = alter_broker_priority.name for update;
  if not found then
    found := parley._p_raise(15151, 'object', 'broker priority', name, '', 'conversation_priorities');
  end if;
  v_parts := parley._p_priority_parts(
    v_caller, coalesce(contract_name, 'ANY'), coalesce(local_service_name, 'ANY'), coalesce(remote_service_name, 'ANY'),
    coalesce(priority_level, v_old.priority)
  );
  update parley._p_priority as p
  set service_contract_id = case
    when contract_name is null then p.service_contract_id
    else v_parts.service_contract_id
  end,
    local_service_id = case when local_service_name is null then p.local_service_id else v_parts.local_service_id end,
    remote_service_name = case
      when alter_broker_priority.remote_service_name is null then p.remote_service_name
      else v_parts.remote_name
    end,
    priority = v_parts.priority
  where p.priority_id = v_old.priority_id;
end
$$;

comment on function parley.alter_broker_priority(text, text, text, text, integer, parley.caller) is
'Changes what is given of a broker priority; existing endpoints keep their level.
Errors: 8402 level out of range, 8493 nothing to change, 15151 not found or not an administrator.
Source: spec 2.9.';

create function parley.drop_broker_priority(
  name text,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  found := parley._p_require_administrator(v_caller, 'drop_broker_priority');
  delete from parley._p_priority as p where p.name = drop_broker_priority.name;
  if not found then
    found := parley._p_raise(15151, 'object', 'broker priority', name, '', 'conversation_priorities');
  end if;
end
$$;

comment on function parley.drop_broker_priority(text, parley.caller) is
'Drops a broker priority.
Errors: 15151 not found or not an administrator.
Source: spec 2.9.';
