-- The role that asks, and the roles that may do everything.
--
-- The caller is current_user where the statement stands that calls Parley: the role that logged in, the role of
-- SET ROLE, or, inside a function of the user's that is SECURITY DEFINER, its owner. In ANALYZE, autovacuum and
-- the other operations that run functions for somebody else, PostgreSQL makes it the owner of the table. It is
-- never the role of the session.
--
-- A function of Parley's is SECURITY DEFINER itself, and so cannot see it. Its last argument, caller, brings it. The
-- default of an argument is evaluated where the call stands: it reads _p_caller_ticket, and current_user in a view is
-- that of whoever reads the view, while the table behind it is read with the rights of the view's owner. The ticket
-- names the role and is sealed with a secret, the backend and the transaction; nobody but the owner of the schema can
-- read the secret, so a role can make tickets of its own only. A ticket is good in one transaction of one backend.
--
-- The secret is a materialized view: a dump does not contain its rows, and the database that is restored makes another,
-- together with the oids of its roles (base/role_oids.sql).
--
-- An administrator (spec: db_owner, sysadmin) is a superuser, the owner of the database, or a member of the role
-- that owns the schema parley.

create domain parley.caller as bytea;

comment on domain parley.caller is
'Proof of the role that calls a function of Parley. Do not make one up: leave the argument out.';

create materialized view parley._p_caller_secret as
select uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) as secret
from parley._p_place as p
where parley._p_find_roles_again(p.place);

comment on materialized view parley._p_caller_secret is
'The key that seals tickets: 244 random bits. REFRESH MATERIALIZED VIEW makes another.';

create view parley._p_caller_ticket with (security_barrier) as
select
  pg_catalog.sha256(
    s.secret
    operator(pg_catalog.||) pg_catalog.int4send(pg_catalog.pg_backend_pid())
    operator(pg_catalog.||) pg_catalog.timestamptz_send(pg_catalog.transaction_timestamp())
    operator(pg_catalog.||) pg_catalog.convert_to(current_user, pg_catalog.getdatabaseencoding())
    operator(pg_catalog.||) s.secret
  ) operator(pg_catalog.||) pg_catalog.convert_to(current_user, pg_catalog.getdatabaseencoding()) as ticket
from parley._p_caller_secret as s;

comment on view parley._p_caller_ticket is
'One row: the ticket of whoever reads it, good until the end of the transaction. 32 bytes of
SHA-256, then the name of the role.';

create function parley.current_caller() returns parley.caller
language plpgsql stable
-- Callers have search_paths of their own, and a plan is made anew each time that is another one.
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select t.ticket from parley._p_caller_ticket as t);
end
$$;

comment on function parley.current_caller() is
'Proves which role calls: the default of the argument caller, the last one of every function of Parley that checks
rights.
Errors: 42704 when the current role was dropped.';

create function parley._p_raise_unknown_caller(detail text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception using
    errcode = 'insufficient_privilege',
    message = 'it is not known which role calls',
    detail = detail,
    hint = 'Leave the argument caller out. If the role of SET ROLE was dropped, RESET ROLE.';
end
$$;

comment on function parley._p_raise_unknown_caller(text) is
'Refuses a call of which the role is not known.
Errors: 42501, always.';

create function parley._p_caller(caller parley.caller) returns oid
language plpgsql stable
as $$
declare
  v_secret pg_catalog.bytea;
  v_name pg_catalog.bytea := pg_catalog.substr(caller, 33);
  v_role pg_catalog.oid;
begin
  -- Expressions, because each further statement would cost as much as all of this. No search_path of its own, because
  -- each that is set makes the statements behind it plan again. pg_has_role takes an oid that no role has for a member
  -- of itself, so the role is looked up here.
  select s.secret into v_secret from parley._p_caller_secret as s;
  if pg_catalog.substr(caller, 1, 32) operator(pg_catalog.=) pg_catalog.sha256(
    v_secret
    operator(pg_catalog.||) pg_catalog.int4send(pg_catalog.pg_backend_pid())
    operator(pg_catalog.||) pg_catalog.timestamptz_send(pg_catalog.transaction_timestamp())
    operator(pg_catalog.||) v_name
    operator(pg_catalog.||) v_secret
  ) then
    v_role := pg_catalog.to_regrole(
      pg_catalog.quote_ident(pg_catalog.convert_from(v_name, pg_catalog.getdatabaseencoding()))
    );
  end if;
  if v_role is null then
    found := parley._p_raise_unknown_caller(
      'The argument caller is null or made up, of another session or transaction, or of a role that is gone.'
    );
  end if;
  return v_role;
end
$$;

comment on function parley._p_caller(parley.caller) is
'Gives the role whose rights count for a call. Never null.
Arguments: caller, the ticket.
Errors: 42501 when it proves no role that there is.';

create function parley.caller_role(caller parley.caller default parley.current_caller()) returns oid
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley._p_caller(caller);
end
$$;

comment on function parley.caller_role(parley.caller) is
'Gives the role that a ticket proves, for systems beside the broker whose functions take the argument caller too.
Arguments: caller, the ticket.
Errors: 42501 when it proves no role that there is.';

create function parley._p_role_of(caller name) returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_role oid;
begin
  select r.oid into v_role from pg_roles as r where r.rolname = caller;
  if not found then
    found := parley._p_raise_unknown_caller(format('Role "%s" was dropped or renamed.', caller));
  end if;
  return v_role;
end
$$;

comment on function parley._p_role_of(name) is
'Gives the role whose name current_user was. Never null.
Errors: 42501 when it is gone.';

create function parley._p_current_role() returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select r.oid from pg_roles as r where r.rolname = current_user);
end
$$;

comment on function parley._p_current_role() is
'Gives the role that reads a view, for the conditions of views. In a function that is SECURITY DEFINER it would give
the function''s owner: these use _p_caller. Null for a role that is gone.';

create function parley._p_is_administrator(role oid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select pg_has_role(role, n.nspowner, 'usage')
      or exists (
        select from pg_database as d where d.datname = current_database() and pg_has_role(role, d.datdba, 'usage')
      )
    from pg_namespace as n
    where n.nspname = 'parley'
  );
end
$$;

comment on function parley._p_is_administrator(oid) is
'Reports whether a role may do everything with the broker of this database.';

create function parley._p_require_administrator(caller oid, what text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley._p_is_administrator(caller) is not true then
    found := parley._p_raise(15151, 'administrators', what, pg_get_userbyid(caller));
  end if;
  return true;
end
$$;

comment on function parley._p_require_administrator(oid, text) is
'Refuses callers that are not administrators.
Arguments: what, the statement, for the message.
Errors: 15151.';

create function parley._p_role(name text) returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_role oid;
begin
  if lower(name collate "C") = 'public' then
    return 0;
  end if;
  select r.oid into v_role from pg_roles as r where r.rolname = name;
  if not found then
    found := parley._p_raise(15151, 'role', name);
  end if;
  return v_role;
end
$$;

comment on function parley._p_role(text) is
'Finds a role by its exact name; PUBLIC gives 0.
Errors: 15151 when there is no such role.';

create function parley._p_new_owner(caller oid, owner text) returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_owner oid;
begin
  if owner is null then
    return caller;
  end if;
  v_owner := parley._p_role(owner);
  if v_owner = 0 or (parley._p_is_administrator(caller) or parley._p_may_act_as(caller, v_owner)) is not true then
    found := parley._p_raise(15151, 'owner', owner, pg_get_userbyid(caller));
  end if;
  return v_owner;
end
$$;

comment on function parley._p_new_owner(oid, text) is
'Gives the owner of a new object: the caller, or the named role when the caller may name it (spec 2.0).
Errors: 15151.';
