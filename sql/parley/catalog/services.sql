-- Services: named addresses, each bound to one queue, each with the contracts it accepts as target.

create table parley._p_service (
  service_id integer primary key,
  name text collate "C" not null unique check (name <> '' and length(name) <= 256),
  owner parley._p_role_oid not null,
  queue_id integer not null references parley._p_queue,
  -- For how long a deduplication key of its counts (conversation/deduplication.sql).
  deduplication_seconds integer not null default 300
);

comment on table parley._p_service is 'Services (spec 2.5).';

create trigger _p_number_roles after insert or update of owner on parley._p_service
for each row execute function parley._p_number_roles('owner');

create index on parley._p_service (queue_id);

create table parley._p_service_contract (
  service_id integer not null references parley._p_service,
  service_contract_id integer not null references parley._p_contract,
  primary key (service_id, service_contract_id)
);

comment on table parley._p_service_contract is 'The contracts each service accepts as target.';

create index on parley._p_service_contract (service_contract_id);

create function parley._p_add_service_contracts(caller oid, service_id integer, contracts text[]) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text;
  v_contract parley._p_contract;
begin
  foreach v_name in array coalesce(contracts, '{}') loop
    v_contract := parley._p_find_contract(caller, v_name, 'REFERENCES');
    insert into parley._p_service_contract (service_id, service_contract_id)
    values (_p_add_service_contracts.service_id, v_contract.service_contract_id)
    on conflict do nothing;
    if not found then
      found := parley._p_raise(8404, 'repeated', v_name);
    end if;
  end loop;
  return true;
end
$$;

comment on function parley._p_add_service_contracts(oid, integer, text[]) is
'Lets a service accept more contracts.
Errors: 229, 8404 named twice or accepted already, 15151 not found.';

create function parley.create_service(
  name text, queue text, contracts text[] default '{}', "authorization" text default null,
  deduplication_seconds integer default 300,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_id integer;
  v_owner oid;
  v_queue parley._p_queue;
begin
  found := parley._p_require_permission(v_caller, 'CREATE SERVICE', 'database', 0, null, null);
  if upper(name collate "C") = 'ANY' then
    found := parley._p_raise(9609, 'ANY', 'service');
  end if;
  v_queue := parley._p_find_dialog_queue(v_caller, queue);
  name := parley._p_name('service', name);
  v_owner := parley._p_new_owner(v_caller, "authorization");
  found := parley._p_require_range('deduplication_seconds', deduplication_seconds, 1, 604800);
  insert into parley._p_service (service_id, name, owner, queue_id, deduplication_seconds)
  values (
    nextval('parley._p_object_id'), create_service.name, v_owner, v_queue.queue_id,
    create_service.deduplication_seconds
  )
  on conflict do nothing
  returning service_id into v_id;
  if v_id is null then
    found := parley._p_raise(2714, 'object', 'service', name, 'alter_service');
  end if;
  found := parley._p_add_service_contracts(v_caller, v_id, contracts);
  -- Messages that were sent to this name before it existed can be delivered now.
  perform parley._p_deliver_delayed(name);
  return v_id;
end
$$;

comment on function parley.create_service(text, text, text[], text, integer, parley.caller) is
'Creates a service and returns its id. Messages already sent to that name are delivered.
Arguments: name, 1 to 128 characters, compared byte by byte; queue; contracts it accepts as target (none: it can only
begin dialogs); authorization, the owner (default: the caller); deduplication_seconds, 1 to 604800, for how long a
deduplication key that is used as this service counts.
Errors: 208 no such queue, 229 not allowed, 2714 exists, 8402 deduplication_seconds out of range,
8404 contract named twice, 9609 bad name,
15151 unknown contract or owner.
Source: spec 2.5.';

create function parley._p_find_service(caller oid, name text, permission text) returns parley._p_service
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_service parley._p_service;
begin
  select * into v_service from parley._p_service as s where s.name = _p_find_service.name;
  if not found then
    found := parley._p_raise(
      15151, 'object', 'service', name, parley._p_did_you_mean(caller, 'service', name), 'services'
    );
  end if;
  if v_service.service_id < 65536 and permission in ('ALTER', 'CONTROL') then
    found := parley._p_raise(9663, 'object', 'service', name);
  end if;
  found := parley._p_require_permission(caller, permission, 'service', v_service.service_id, name, v_service.owner);
  return v_service;
end
$$;

comment on function parley._p_find_service(oid, text, text) is
'Finds a service the caller may use for something.
Errors: 229, 9663 when a system object would be changed, 15151.';

create function parley.alter_service(
  name text,
  queue text default null,
  add_contracts text[] default null,
  drop_contracts text[] default null,
  deduplication_seconds integer default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_service parley._p_service := parley._p_find_service(v_caller, name, 'ALTER');
  v_queue parley._p_queue;
  v_dropped integer;
  v_name text;
begin
  if queue is not null or cardinality(drop_contracts) > 0 then
    perform parley._p_forget_later_routes(name);
    -- It may have been dropped, or moved, while we waited.
    v_service := parley._p_find_service(v_caller, name, 'ALTER');
  end if;
  if queue is null and deduplication_seconds is null
    and coalesce(cardinality(add_contracts), 0) + coalesce(cardinality(drop_contracts), 0) = 0 then
    found := parley._p_raise(8493, 'service', name);
  elsif deduplication_seconds is not null then
    found := parley._p_require_range('deduplication_seconds', deduplication_seconds, 1, 604800);
    update parley._p_service as s
    set deduplication_seconds = alter_service.deduplication_seconds
    where s.service_id = v_service.service_id;
  end if;
  foreach v_name in array coalesce(drop_contracts, '{}') loop
    delete from parley._p_service_contract as u
    using parley._p_contract as c
    where u.service_id = v_service.service_id
      and c.service_contract_id = u.service_contract_id
      and c.name = v_name
    returning u.service_contract_id into v_dropped;
    if not found then
      found := parley._p_raise(15151, 'contract of a service', name, v_name);
    end if;
    perform parley._p_break_conversations(
      array(
        select e.endpoint_id
        from parley._p_endpoint as e
        where e.service_id = v_service.service_id and e.service_contract_id = v_dropped and not e.is_initiator
      ),
      parley._p_error_of(8469, 'contract removed', name, v_name),
      parley._p_error_of(8469, 'contract removed', name, v_name)
    );
  end loop;
  found := parley._p_add_service_contracts(v_caller, v_service.service_id, add_contracts);
  if queue is not null then
    v_queue := parley._p_find_dialog_queue(v_caller, queue);
    if v_queue.queue_id <> v_service.queue_id then
      perform parley._p_move_service(v_service, v_queue);
    end if;
  end if;
end
$$;

comment on function parley.alter_service(text, text, text[], text[], integer, parley.caller) is
'Moves a service, with its waiting messages, to another queue; lets it accept more or fewer contracts.
Conversations on a contract it no longer accepts end with error -8469 on both sides. deduplication_seconds counts for
keys that are used from now on.
Errors: 208 no such queue, 229 not allowed, 8402 deduplication_seconds out of range,
8404 accepted already, 8493 nothing to change, 9663
system object, 15151 not found.
Source: spec 2.5.';

create function parley.drop_service(name text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_service parley._p_service := parley._p_find_service(v_caller, name, 'CONTROL');
  v_priority text;
begin
  perform parley._p_forget_later_routes(name);
  -- It may have been dropped while we waited.
  v_service := parley._p_find_service(v_caller, name, 'CONTROL');
  select case
    when parley._p_is_visible(v_caller, 'database', 0, 0) then format('broker priority "%s"', p.name)
  end as name
  into v_priority
  from parley._p_priority as p
  where p.local_service_id = v_service.service_id
  order by 1 nulls last
  limit 1;
  if v_priority is not null then
    found := parley._p_raise(3716, 'used', 'service', name, v_priority);
  elsif found then
    found := parley._p_raise(3716, 'used unseen', 'service', name, 'broker priority');
  end if;
  perform parley._p_drop_endpoints_of_service(v_service.service_id, parley._p_error_of(8470, 'service dropped', name));
  delete from parley._p_permission as p where p.class = 'service' and p.object_id = v_service.service_id;
  delete from parley._p_service_contract as u where u.service_id = v_service.service_id;
  delete from parley._p_service as s where s.service_id = v_service.service_id;
end
$$;

comment on function parley.drop_service(text, parley.caller) is
'Drops a service with its endpoints and its waiting messages; the other sides of its open conversations get error -8470.
Waits for first sends to and from it that are under way.
Errors: 229 not allowed, 3716 a priority names it, 9663 system object, 15151 not found.
Source: spec 2.5.';
