-- Message types: a name, and what a body of that type must be.
--
-- Validation letters: N none, E empty, X XML, J JSON, F what a function of the user's says. The first three
-- are Service Broker's; the others are ours. A body is checked when it is delivered, not by SEND (spec 2.2):
-- see conversation/deliver.sql.
--
-- A validation function is known by its name, as an activation procedure is: pg_upgrade refuses columns of type
-- regprocedure, and an oid would be another function where a dump is restored. A function that takes the name of one
-- that is gone gains nothing by it, not even a look at the bodies: it must belong to the same role, and its rights are
-- asked, at each call.

create table parley._p_message_type (
  message_type_id integer primary key,
  name text collate "C" not null unique check (name <> '' and length(name) <= 128),
  owner parley._p_role_oid not null,
  validation "char" not null check (validation in ('N', 'E', 'X', 'J', 'F')),
  validation_schema text,
  validation_name text,
  validation_setter parley._p_role_oid,
  validation_owner parley._p_role_oid,
  schema_collection text,
  is_validated boolean not null generated always as (validation <> 'N') stored,
  check (num_nulls(validation_schema, validation_name, validation_setter, validation_owner) in (0, 4)),
  check ((validation = 'F') <= (validation_name is not null))
);

comment on table parley._p_message_type is 'Message types (spec 2.2).';

create trigger _p_number_roles after insert or update of owner, validation_setter, validation_owner
on parley._p_message_type
for each row execute function parley._p_number_roles('owner', 'validation_setter', 'validation_owner');
comment on column parley._p_message_type.is_validated is
'Whether a body is checked before it is taken; the short ways are for those that are not.';
comment on column parley._p_message_type.validation_setter is
'The role that set the validation function: it runs only while this role may act as the one whose rights it has.';
comment on column parley._p_message_type.validation_owner is
'To whom the validation function belonged then: a function of another role that has taken its name is not called.';

create function parley._p_may_validate(setter oid, validation_function oid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    (
      select parley._p_may_act_as(setter, r.role) and parley._p_may_act_as(p.proowner, r.role)
      from pg_proc as p
      cross join lateral (
        select case
          when p.prosecdef then p.proowner
          else (select n.nspowner from pg_namespace as n where n.nspname = 'parley')
        end as role
      ) as r
      where p.oid = validation_function
        and p.prokind = 'f'
        and p.pronargs = 1
        and p.proargtypes[0] = 'bytea'::regtype
        and p.prorettype = 'boolean'::regtype
    ),
    false
  );
end
$$;

comment on function parley._p_may_validate(oid, oid) is
'Reports whether a function may judge messages for the role that set it. Never null.
It runs inside functions that are SECURITY DEFINER, so with the rights of the schema''s owner unless it is SECURITY
DEFINER itself. The role that set it and the role that owns it must be able to act as the role whose rights it has.';

create function parley._p_validation(caller oid, validation text, validation_function regprocedure) returns "char"
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_letter "char" := case upper(replace(validation, ' ', '_') collate "C")
    when 'NONE' then 'N'
    when 'EMPTY' then 'E'
    when 'WELL_FORMED_XML' then 'X'
    when 'VALID_XML' then 'X'
    when 'JSON' then 'J'
    when 'JSON_SCHEMA' then 'J'
    when 'FUNCTION' then 'F'
  end;
begin
  if v_letter is null then
    found := parley._p_raise(8402, 'validation', validation);
  end if;
  if upper(replace(validation, ' ', '_') collate "C") in ('FUNCTION', 'JSON_SCHEMA')
    and validation_function is null then
    found := parley._p_raise(8402, 'validation function missing', upper(validation collate "C"));
  end if;
  if upper(replace(validation, ' ', '_') collate "C") = 'VALID_XML' and validation_function is null then
    found := parley._p_raise(8402, 'XML schema missing');
  end if;
  if validation_function is not null then
    if parley._p_may_validate(caller, validation_function) is not true then
      found := parley._p_raise(8402, 'validation function', validation_function::text);
    end if;
  end if;
  return v_letter;
end
$$;

comment on function parley._p_validation(oid, text, regprocedure) is
'Turns the words of a validation into its letter and checks that its function can serve.
Arguments: caller, who sets it; validation; validation_function.
Errors: 8402.';

create function parley.create_message_type(
  name text,
  validation text default 'NONE',
  validation_function regprocedure default null,
  schema_collection text default null,
  "authorization" text default null,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_owner oid;
  v_validation "char";
  v_id integer;
begin
  found := parley._p_require_permission(v_caller, 'CREATE MESSAGE TYPE', 'database', 0, null, null);
  name := parley._p_name('message type', name);
  v_owner := parley._p_new_owner(v_caller, "authorization");
  v_validation := parley._p_validation(v_caller, validation, validation_function);
  insert into parley._p_message_type (
    message_type_id, name, owner, validation, validation_schema, validation_name, validation_setter, validation_owner,
    schema_collection
  )
  select
    nextval('parley._p_object_id'), create_message_type.name, v_owner, v_validation, n.nspname, p.proname,
    case when p.oid is not null then v_caller end, p.proowner, create_message_type.schema_collection
  from (select create_message_type.validation_function::oid as oid) as f
  left join pg_proc as p using (oid)
  left join pg_namespace as n on n.oid = p.pronamespace
  on conflict do nothing
  returning message_type_id into v_id;
  if v_id is null then
    found := parley._p_raise(2714, 'object', 'message type', name, 'alter_message_type');
  end if;
  return v_id;
end
$$;

comment on function parley.create_message_type(text, text, regprocedure, text, text, parley.caller) is
'Creates a message type and returns its id.
Arguments: name, 1 to 128 characters, compared byte by byte; validation, NONE, EMPTY, WELL_FORMED_XML, VALID_XML,
JSON, JSON_SCHEMA or FUNCTION; validation_function, takes the body as bytea, null when it is empty, and returns
whether it is good (required for VALID_XML, JSON_SCHEMA and FUNCTION); it should be SECURITY DEFINER and belong to
the caller, and is asked about bodies of up to 16 MiB; schema_collection, only kept, for VALID_XML; authorization,
the owner (default: the caller).
Errors: 229 not allowed, 2714 exists, 8402 bad validation, 9609 bad name, 15151 unknown owner.
Source: spec 2.2.';

create function parley.alter_message_type(
  name text,
  validation text,
  validation_function regprocedure default null,
  schema_collection text default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_type parley._p_message_type;
  v_validation "char";
begin
  v_type := parley._p_find_message_type(v_caller, name, 'ALTER');
  v_validation := parley._p_validation(v_caller, validation, validation_function);
  update parley._p_message_type as t
  set validation = v_validation,
    validation_schema = n.nspname, validation_name = p.proname,
    validation_setter = case when p.oid is not null then v_caller end, validation_owner = p.proowner,
    schema_collection = alter_message_type.schema_collection
  from (select alter_message_type.validation_function::oid as oid) as f
  left join pg_proc as p using (oid)
  left join pg_namespace as n on n.oid = p.pronamespace
  where t.message_type_id = v_type.message_type_id;
  -- Senders that skip validation must read again.
  perform parley._p_forget_routes_of_type(v_type.message_type_id);
end
$$;

comment on function parley.alter_message_type(text, text, regprocedure, text, parley.caller) is
'Changes the validation of a message type; messages already in a queue stay as they are.
Arguments: as create_message_type.
Errors: 229, 8402, 9663 system object, 15151 not found.
Source: spec 2.2.';

create function parley.drop_message_type(name text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_type parley._p_message_type;
  v_contract text;
begin
  v_type := parley._p_find_message_type(v_caller, name, 'CONTROL');
  select case
    when parley._p_is_visible(v_caller, 'contract', c.service_contract_id, c.owner) then format('contract "%s"', c.name)
  end as name
  into v_contract
  from parley._p_contract_message_type as u
  join parley._p_contract as c using (service_contract_id)
  where u.message_type_id = v_type.message_type_id
  order by 1 nulls last
  limit 1;
  if v_contract is not null then
    found := parley._p_raise(3716, 'used', 'message type', name, v_contract);
  elsif found then
    found := parley._p_raise(3716, 'used unseen', 'message type', name, 'contract');
  end if;
  -- Messages that were sent on a contract that is gone may still be received, and must then have a type.
  if exists (select from parley._p_message as m where m.message_type_id = v_type.message_type_id)
    or exists (select from parley._p_transmission as t where t.message_type_id = v_type.message_type_id)
    or exists (select from parley._p_transit as t where t.message_type_id = v_type.message_type_id)
    or exists (select from parley._p_retained as r where r.message_type_id = v_type.message_type_id) then
    found := parley._p_raise(3716, 'messages wait', name);
  end if;
  delete from parley._p_permission as p where p.class = 'message type' and p.object_id = v_type.message_type_id;
  delete from parley._p_message_type as t where t.message_type_id = v_type.message_type_id;
end
$$;

comment on function parley.drop_message_type(text, parley.caller) is
'Drops a message type that no contract lists and no waiting message has.
Errors: 229, 3716 still used, 9663 system object, 15151 not found.
Source: spec 2.2.';

create function parley._p_find_message_type(caller oid, name text, permission text) returns parley._p_message_type
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_type parley._p_message_type;
begin
  select * into v_type from parley._p_message_type as t where t.name = _p_find_message_type.name;
  if not found then
    found := parley._p_raise(
      15151, 'object', 'message type', name, parley._p_did_you_mean(caller, 'message type', name),
      'service_message_types'
    );
  end if;
  if v_type.message_type_id < 65536 and permission <> 'REFERENCES' then
    found := parley._p_raise(9663, 'object', 'message type', name);
  end if;
  found := parley._p_require_permission(caller, permission, 'message type', v_type.message_type_id, name, v_type.owner);
  return v_type;
end
$$;

comment on function parley._p_find_message_type(oid, text, text) is
'Finds a message type the caller may use for something.
Errors: 229, 9663 when a system object would be changed, 15151.';

create function parley._p_is_system_message(message_type_id integer) returns boolean
language sql immutable parallel safe
as $$
  select message_type_id operator(pg_catalog.=) any (array[1, 2, 5])
$$;

comment on function parley._p_is_system_message(integer) is
'Reports whether only the broker sends messages of a type: Error, EndDialog, DialogTimer (spec 2.2).';
