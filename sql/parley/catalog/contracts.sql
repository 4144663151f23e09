-- Contracts: which message types a conversation may carry, and which side may send each.
--
-- A contract never changes once created (spec 2.3), so endpoints may remember what it allows.

create table parley._p_contract (
  service_contract_id integer primary key,
  name text collate "C" not null unique check (name <> '' and length(name) <= 128),
  owner parley._p_role_oid not null
);

comment on table parley._p_contract is 'Contracts (spec 2.3).';

create trigger _p_number_roles after insert or update of owner on parley._p_contract
for each row execute function parley._p_number_roles('owner');

create table parley._p_contract_message_type (
  service_contract_id integer not null references parley._p_contract,
  message_type_id integer not null references parley._p_message_type,
  is_sent_by_initiator boolean not null,
  is_sent_by_target boolean not null,
  primary key (service_contract_id, message_type_id),
  check (is_sent_by_initiator or is_sent_by_target)
);

comment on table parley._p_contract_message_type is 'The message types of each contract, and who may send them.';

create function parley._p_create_contract(
  name text, message_types jsonb, "authorization" text, caller parley.caller
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_id integer;
  v_type parley._p_message_type;
  v_usage record;
begin
  found := parley._p_require_permission(v_caller, 'CREATE CONTRACT', 'database', 0, null, null);
  if upper(name collate "C") = 'ANY' then
    found := parley._p_raise(9609, 'ANY', 'contract');
  end if;
  if jsonb_typeof(message_types) is distinct from 'object' then
    found := parley._p_raise(8402, 'message types');
  end if;
  insert into parley._p_contract (service_contract_id, name, owner)
  values (
    nextval('parley._p_object_id'), parley._p_name('contract', _p_create_contract.name),
    parley._p_new_owner(v_caller, "authorization")
  )
  on conflict do nothing
  returning service_contract_id into v_id;
  if v_id is null then
    found := parley._p_raise(2714, 'contract', name);
  end if;
  for v_usage in
    select t.key as name, upper(regexp_replace(t.value, E'^\\s*(sent\\s+by\\s+)?', '', 'i') collate "C") as sent_by
    from jsonb_each_text(message_types) as t
  loop
    if v_usage.sent_by is null or v_usage.sent_by not in ('INITIATOR', 'TARGET', 'ANY') then
      found := parley._p_raise(8402, 'sent by', v_usage.name, v_usage.sent_by);
    end if;
    v_type := parley._p_find_message_type(v_caller, v_usage.name, 'REFERENCES');
    if parley._p_is_system_message(v_type.message_type_id) then
      found := parley._p_raise(9663, 'message type in a contract', v_usage.name);
    end if;
    insert into parley._p_contract_message_type (
      service_contract_id, message_type_id, is_sent_by_initiator, is_sent_by_target
    )
    values (
      v_id, v_type.message_type_id, v_usage.sent_by in ('INITIATOR', 'ANY'), v_usage.sent_by in ('TARGET', 'ANY')
    );
  end loop;
  perform from parley._p_contract_message_type as u where u.service_contract_id = v_id and u.is_sent_by_initiator;
  if not found then
    found := parley._p_raise(8492, 'initiator', name);
  end if;
  return v_id;
end
$$;

comment on function parley._p_create_contract(text, jsonb, text, parley.caller) is
'Does what create_contract does. The argument caller is none of that: with it calls of its three forms
could be taken for one another.
Errors: those of create_contract.';

create function parley.create_contract(
  name text, message_types jsonb, "authorization" text default null
) returns integer
language sql
set search_path = pg_catalog, pg_temp
as $$
  select parley._p_create_contract(name, message_types, "authorization", parley.current_caller())
$$;

comment on function parley.create_contract(text, jsonb, text) is
'Creates a contract and returns its id.
Arguments: name, 1 to 128 characters; message_types, a JSON object of message type to INITIATOR, TARGET or ANY;
authorization, the owner (default: the caller). A JSON value keeps the last of two equal keys; pass the text itself,
as a literal or of type text, to have a message type named twice refused.
Errors: 229 not allowed, 2714 exists, 8402 bad argument, 8492 nothing for the initiator, 9609 bad name, 9663 EndDialog,
Error or DialogTimer, 15151 unknown message type.
Source: spec 2.2, 2.3.';

create function parley.create_contract(
  name text, message_types text[], sent_by text default 'ANY', "authorization" text default null,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_repeated text;
begin
  if exists (select from unnest(message_types) as t (name) where t.name is null) then
    found := parley._p_raise(8402, 'message type null');
  end if;
  select t.name into v_repeated from unnest(message_types) as t (name) group by t.name having count(*) > 1 limit 1;
  if found then
    found := parley._p_raise(8403, 'repeated', v_repeated);
  end if;
  return parley._p_create_contract(
    name, (select coalesce(jsonb_object_agg(t.name, sent_by), '{}') from unnest(message_types) as t (name)),
    "authorization", caller
  );
end
$$;

comment on function parley.create_contract(text, text[], text, text, parley.caller) is
'Creates a contract all of whose message types are sent by the same side.
Arguments: name; message_types, their names; sent_by, INITIATOR, TARGET or ANY; authorization,
the owner (default: the caller).
Errors: 8402 a message type that is null, 8403 one named twice, and those of create_contract with JSON.
Source: spec 2.3.';

create function parley._p_create_contract_of_text(
  name text, message_types text, "authorization" text, caller parley.caller
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_types jsonb;
  v_repeated text;
begin
  begin
    v_types := message_types::jsonb;
    if jsonb_typeof(v_types) = 'object' then
      select t.name into v_repeated
      from json_object_keys(message_types::json) as t (name)
      group by t.name
      having count(*) > 1
      limit 1;
    end if;
  exception
    when data_exception then
      found := parley._p_raise(8402, 'message types as text');
  end;
  if v_repeated is not null then
    found := parley._p_raise(8403, 'repeated', v_repeated);
  end if;
  return parley._p_create_contract(name, v_types, "authorization", caller);
end
$$;

comment on function parley._p_create_contract_of_text(text, text, text, parley.caller) is
'Does what create_contract does with JSON that is written as a literal.
Errors: those of create_contract.';

-- A literal has no type yet; without this one PostgreSQL could not choose between JSON and a list.
create function parley.create_contract(name text, message_types text, "authorization" text default null) returns integer
language sql
set search_path = pg_catalog, pg_temp
as $$
  select parley._p_create_contract_of_text(name, message_types, "authorization", parley.current_caller())
$$;

comment on function parley.create_contract(text, text, text) is
'Creates a contract from JSON that is written as a literal.
Errors: 8402 not JSON, 8403 a message type named twice, and those of create_contract with JSON.
Source: spec 2.3.';

create function parley._p_find_contract(caller oid, name text, permission text) returns parley._p_contract
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_contract parley._p_contract;
begin
  select * into v_contract from parley._p_contract as c where c.name = _p_find_contract.name;
  if not found then
    found := parley._p_raise(
      15151, 'object', 'contract', name, parley._p_did_you_mean(caller, 'contract', name), 'service_contracts'
    );
  end if;
  if v_contract.service_contract_id < 65536 and permission <> 'REFERENCES' then
    found := parley._p_raise(9663, 'object', 'contract', name);
  end if;
  found := parley._p_require_permission(
    caller, permission, 'contract', v_contract.service_contract_id, name, v_contract.owner
  );
  return v_contract;
end
$$;

comment on function parley._p_find_contract(oid, text, text) is
'Finds a contract the caller may use for something.
Errors: 229, 9663 when a system object would be changed, 15151.';

create function parley.drop_contract(name text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_contract parley._p_contract;
  v_user text;
begin
  v_contract := parley._p_find_contract(v_caller, name, 'CONTROL');
  select case
    when parley._p_is_visible(v_caller, 'service', s.service_id, s.owner) then format('service "%s"', s.name)
  end as name
  into v_user
  from parley._p_service_contract as u
  join parley._p_service as s using (service_id)
  where u.service_contract_id = v_contract.service_contract_id
  union all
  select case when parley._p_is_visible(v_caller, 'database', 0, 0) then format('broker priority "%s"', p.name) end
  from parley._p_priority as p
  where p.service_contract_id = v_contract.service_contract_id
  order by 1 nulls last
  limit 1;
  if v_user is not null then
    found := parley._p_raise(3716, 'used', 'contract', name, v_user);
  elsif found then
    found := parley._p_raise(3716, 'used unseen', 'contract', name, 'service or broker priority');
  end if;
  -- No message may be on the way that is not visible yet: the endpoints are locked against their senders.
  perform from parley._p_endpoint as e
  where e.service_contract_id = v_contract.service_contract_id
  order by e.endpoint_id
  for update;
  -- Live conversations on it end with an error on both sides (spec 2.3).
  perform parley._p_break_conversations(
    array(
      select e.endpoint_id from parley._p_endpoint as e where e.service_contract_id = v_contract.service_contract_id
    ),
    parley._p_error_of(8487, 'contract dropped', name),
    parley._p_error_of(8487, 'contract dropped', name)
  );
  delete from parley._p_permission as p where p.class = 'contract' and p.object_id = v_contract.service_contract_id;
  delete from parley._p_contract_message_type as u where u.service_contract_id = v_contract.service_contract_id;
  delete from parley._p_contract as c where c.service_contract_id = v_contract.service_contract_id;
end
$$;

comment on function parley.drop_contract(text, parley.caller) is
'Drops a contract that no service and no priority names; live conversations on it end with error -8487 on both sides.
Errors: 229, 3716 still used, 9663 system object, 15151 not found.
Source: spec 2.3.';
