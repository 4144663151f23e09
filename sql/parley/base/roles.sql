-- The role that asks, and the roles that may do everything.
--
-- The caller is current_user where the statement stands that calls Parley: the role that logged in, the role of
-- SET ROLE, or, inside a function of the user's that is SECURITY DEFINER, its owner. In ANALYZE, autovacuum and
-- the other operations that run functions for somebody else, PostgreSQL makes it the owner of the table. It is
-- never the role of the session.
--
-- A function of Parley's is SECURITY DEFINER itself, and so cannot see it. Its last argument, caller, brings it: the
-- type of that argument is a domain over name whose check demands current_user. The check runs where the value becomes
-- one of the domain, which is where the call stands, also for the default of the argument. So a role can bring its own
-- name and no other. A checked value passes from function to function unchecked, and Parley's functions hand it on.
-- No role can keep one to use it as another: nobody but the owner of the schema may make a column, a function, a view
-- or a domain of the type, and the variables of a session are of a role that it may be anyway.
--
-- Invariants, and what keeps each:
--   nobody calls as a role that he is not   the check of the domain; null passes it and is refused by _p_caller
--   no call is answered before the roles of a restored database are found   _p_caller reads _p_found_roles, whose rows
--     no dump contains. A restore or an operator fills it, and that gives rows the oids of their roles here
--     (base/role_oids.sql)
--
-- An administrator (spec: db_owner, sysadmin) is a superuser, the owner of the database, or a member of the role
-- that owns the schema parley.

create domain parley.caller as name
constraint caller_is_current_user check (value operator(pg_catalog.=) current_user);

comment on domain parley.caller is
'The role that calls a function of Parley. No other name than current_user is one. Leave the argument out.';

revoke usage on domain parley.caller from public;

create materialized view parley._p_found_roles as
select p.place
from parley._p_place as p
where parley._p_find_roles_again(p.place);

comment on materialized view parley._p_found_roles is
'One row: the place at which the roles of this database were found. REFRESH MATERIALIZED VIEW finds them where it came
to since.';

create function parley.current_caller() returns parley.caller
language sql stable
as $$
  select current_user::parley.caller
$$;

comment on function parley.current_caller() is
'Gives the role that calls: the default of the argument caller, the last one of every function of Parley that checks
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

create function parley._p_refuse_caller() returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Fails by itself where the roles were not found yet.
  perform from parley._p_found_roles as f;
  found := parley._p_raise_unknown_caller('The argument caller is null, or of a role that is gone.');
  return null;
end
$$;

comment on function parley._p_refuse_caller() is
'Refuses a call whose caller is no role.
Errors: 42501, 55000 when the roles of a restored database were not found yet; one of them always.';

-- Each call asks this, so it is one expression that the planner puts in line: a function of PL/pgSQL takes three times
-- as much. _p_found_roles has a page when it is filled, and none before; to read it would cost a statement. pg_has_role
-- takes an oid that no role has for a member of itself, so the role is looked up here.
create function parley._p_caller(caller parley.caller) returns oid
language sql
as $$
  select coalesce(
    case
      when pg_catalog.pg_relation_size('parley._p_found_roles') operator(pg_catalog.>) 0::pg_catalog.int8
        then pg_catalog.to_regrole(pg_catalog.quote_ident($1::pg_catalog.text))::pg_catalog.oid
    end,
    parley._p_refuse_caller()
  )
$$;

comment on function parley._p_caller(parley.caller) is
'Gives the role whose rights count for a call. Never null.
Arguments: caller, whose name its type has checked.
Errors: 42501 when there is no such role, 55000 when the roles of a restored database were not found yet.';

create function parley.caller_role(caller parley.caller default parley.current_caller()) returns oid
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley._p_caller(caller);
end
$$;

comment on function parley.caller_role(parley.caller) is
'Gives the role that calls, for systems beside the broker whose functions take the argument caller too.
Arguments: caller, as it came.
Errors: 42501 when there is no such role.';

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
