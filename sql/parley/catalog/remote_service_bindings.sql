-- Remote service bindings: which role stands for a remote service (spec 2.7).
--
-- Messages to the service are sealed for the newest certificate of that role, so the side that answers has its private
-- key. There is at most one binding for a service; it is read when a dialog first finds its way out of the database,
-- and never again for that dialog.
-- Locks: the binding's row; creating one locks the conversations that wait for it. Cost: one read for the first
-- message that leaves the database.

create table parley._p_remote_service_binding (
  remote_service_binding_id integer primary key,
  name text collate "C" not null unique check (name <> '' and length(name) <= 128),
  owner parley._p_role_oid not null,
  to_service text collate "C" not null unique check (to_service <> '' and length(to_service) <= 256),
  remote_principal parley._p_role_oid not null,
  is_anonymous boolean not null,
  create_date timestamptz not null default clock_timestamp()
);

comment on table parley._p_remote_service_binding is 'Remote service bindings (spec 2.7).';

create trigger _p_number_roles after insert or update of owner, remote_principal on parley._p_remote_service_binding
for each row execute function parley._p_number_roles('owner', 'remote_principal');

create function parley._p_binding_principal(caller oid, with_user text) returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_role oid;
begin
  if lower(with_user collate "C") = 'public' or with_user like E'pg\\_%' then
    found := parley._p_raise(28083, 'role', with_user);
  end if;
  select r.oid into v_role from pg_roles as r where r.rolname = with_user;
  if not found then
    found := parley._p_raise(9611, 'role', with_user);
  end if;
  if (parley._p_is_administrator(caller) or parley._p_may_act_as(caller, v_role)) is not true then
    found := parley._p_raise(229, 'bound role', with_user, pg_get_userbyid(caller));
  end if;
  return v_role;
end
$$;

comment on function parley._p_binding_principal(oid, text) is
'Finds the role that is to stand for a remote service. Being a member of it takes the place of IMPERSONATE.
Errors: 229 not a member, 9611 not found, 28083 no role that can own certificates.';

create function parley._p_find_binding(caller oid, name text, permission text) returns parley._p_remote_service_binding
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_binding parley._p_remote_service_binding;
begin
  select * into v_binding from parley._p_remote_service_binding as b where b.name = _p_find_binding.name for update;
  if not found then
    found := parley._p_raise(
      15151, 'object', 'remote service binding', name, parley._p_did_you_mean(caller, 'remote service binding', name),
      'remote_service_bindings'
    );
  end if;
  found := parley._p_require_permission(
    caller, permission, 'remote service binding', v_binding.remote_service_binding_id, name, v_binding.owner
  );
  return v_binding;
end
$$;

comment on function parley._p_find_binding(oid, text, text) is
'Finds and locks a remote service binding that the caller may use for something.
Errors: 229, 15151.';

create function parley.create_remote_service_binding(
  name text, to_service text, with_user text, anonymous boolean default false, "authorization" text default null,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_id integer;
  v_name text := parley._p_name('remote service binding', create_remote_service_binding.name);
  v_owner oid;
  v_principal oid;
begin
  found := parley._p_require_permission(v_caller, 'CREATE REMOTE SERVICE BINDING', 'database', 0, null, null);
  v_owner := parley._p_new_owner(v_caller, "authorization");
  if to_service is null or to_service = '' or length(to_service) > 256 then
    found := parley._p_raise(8412, 'length', coalesce(length(to_service), 0)::text);
  end if;
  v_principal := parley._p_binding_principal(v_caller, with_user);
  if exists (select from parley._p_remote_service_binding as b where b.name = v_name) then
    found := parley._p_raise(2714, 'object', 'remote service binding', name, 'alter_remote_service_binding');
  end if;
  insert into parley._p_remote_service_binding (
    remote_service_binding_id, name, owner, to_service, remote_principal, is_anonymous
  )
  values (
    nextval('parley._p_object_id'), v_name, v_owner, create_remote_service_binding.to_service, v_principal, anonymous
  )
  on conflict do nothing
  returning remote_service_binding_id into v_id;
  if v_id is null then
    found := parley._p_raise(9619, 'bound', to_service);
  end if;
  perform parley._p_notify_security_change();
  perform parley._p_deliver_delayed(create_remote_service_binding.to_service);
  return v_id;
end
$$;

comment on function parley.create_remote_service_binding(text, text, text, boolean, text, parley.caller) is
'Creates a remote service binding and returns its id: dialogs with that service are sealed for the certificate of the
role when they leave the server, whatever ENCRYPTION says. Messages that waited for it, or for a route, are sealed and
sent; dialogs under way stay as they are.
Arguments: name; to_service, compared byte by byte; with_user, the role that stands for it and owns its certificate;
anonymous, whether the initiator does not prove who it is; authorization, the owner (default: the caller).
Errors: 229 not allowed, 2714 exists, 8412 to_service malformed, 9609 bad name, 9611 no such role, 9619 the service is
bound already, 15151 unknown owner, 28083 with_user cannot own certificates.
Source: spec 2.7.';

create function parley.alter_remote_service_binding(
  name text, with_user text default null, anonymous boolean default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_binding parley._p_remote_service_binding := parley._p_find_binding(v_caller, name, 'ALTER');
  v_principal oid := v_binding.remote_principal;
begin
  if with_user is null and anonymous is null then
    found := parley._p_raise(8493, 'binding', name);
  end if;
  if with_user is not null then
    v_principal := parley._p_binding_principal(v_caller, with_user);
  end if;
  update parley._p_remote_service_binding as b
  set remote_principal = v_principal, is_anonymous = coalesce(anonymous, b.is_anonymous)
  where b.remote_service_binding_id = v_binding.remote_service_binding_id;
  perform parley._p_notify_security_change();
end
$$;

comment on function parley.alter_remote_service_binding(text, text, boolean, parley.caller) is
'Changes what is given of a remote service binding, for dialogs begun from now on.
Arguments: as create_remote_service_binding.
Errors: 229 not allowed, 8493 nothing to change, 9611 no such role, 15151 not found, 28083
with_user cannot own certificates.
Source: spec 2.7.';

create function parley.drop_remote_service_binding(
  name text,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_binding parley._p_remote_service_binding := parley._p_find_binding(v_caller, name, 'CONTROL');
begin
  delete from parley._p_permission as p
  where p.class = 'remote service binding' and p.object_id = v_binding.remote_service_binding_id;
  delete from parley._p_remote_service_binding as b
  where b.remote_service_binding_id = v_binding.remote_service_binding_id;
end
$$;

comment on function parley.drop_remote_service_binding(text, parley.caller) is
'Drops a remote service binding. Dialogs that are secured stay so.
Errors: 229 not allowed, 15151 not found.
Source: spec 2.7.';

create view parley.remote_service_bindings with (security_barrier) as
select
  b.name,
  b.remote_service_binding_id,
  b.owner::oid as principal_id,
  b.to_service as remote_service_name,
  0 as service_contract_id,
  b.remote_principal::oid as remote_principal_id,
  b.is_anonymous as is_anonymous_on
from parley._p_remote_service_binding as b
where pg_catalog.pg_has_role(b.owner, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'remote service binding')
  or b.remote_service_binding_id in (
    select v.object_id from parley._p_permitted_object as v where v.class = 'remote service binding'
  );

comment on view parley.remote_service_bindings is 'Remote service bindings.';
comment on column parley.remote_service_bindings.name is 'Compared byte by byte.';
comment on column parley.remote_service_bindings.remote_service_binding_id is 'Identity of the binding.';
comment on column parley.remote_service_bindings.principal_id is 'Oid of the owner.';
comment on column parley.remote_service_bindings.remote_service_name is 'Service that is bound.';
comment on column parley.remote_service_bindings.service_contract_id is 'Always 0: all contracts.';
comment on column parley.remote_service_bindings.remote_principal_id is 'Oid of the role that stands for the service.';
comment on column parley.remote_service_bindings.is_anonymous_on is
'Whether the initiator stays unknown to the target.';
