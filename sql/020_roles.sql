-- Who is asking, and who may do everything.
--
-- The rights of a call are those of the session's role: the role of SET ROLE when one is set, otherwise the role that
-- logged in. A function of the user's that is security definer does not change them (docs/differences.md).
-- An administrator (spec: db_owner, sysadmin) is a superuser, the owner of the database, or a member of the role that owns the schema parley.

create function parley._p_caller() returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select r.oid
    from pg_roles as r
    where r.rolname = case current_setting('role') when 'none' then session_user else current_setting('role')::name end
  );
end
$$;

comment on function parley._p_caller() is 'Gives the role whose rights count for this call.';

create function parley._p_is_administrator(role oid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select pg_has_role(role, n.nspowner, 'usage')
      or exists (select from pg_database as d where d.datname = current_database() and pg_has_role(role, d.datdba, 'usage'))
    from pg_namespace as n
    where n.nspname = 'parley'
  );
end
$$;

comment on function parley._p_is_administrator(oid) is 'Tells whether a role may do everything with the broker of this database.';

create function parley._p_require_administrator(what text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not parley._p_is_administrator(parley._p_caller()) then
    perform parley._p_raise(
      15151,
      format('%s is for administrators of the broker', what),
      format('Role %s neither owns this database nor the schema parley.', parley._p_caller()::regrole),
      'Ask the owner of the database, or have its role granted to you.'
    );
  end if;
end
$$;

comment on function parley._p_require_administrator(text) is
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
  if lower(name) = 'public' then
    return 0;
  end if;
  select r.oid into v_role from pg_roles as r where r.rolname = name;
  if not found then
    perform parley._p_raise(
      15151,
      format('role "%s" does not exist', name),
      null,
      'Create it with CREATE ROLE, or correct the name; names are compared exactly.'
    );
  end if;
  return v_role;
end
$$;

comment on function parley._p_role(text) is
'Finds a role by its exact name; PUBLIC gives 0.
Errors: 15151 when there is no such role.';

create function parley._p_new_owner(owner text) returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller();
  v_owner oid;
begin
  if owner is null then
    return v_caller;
  end if;
  v_owner := parley._p_role(owner);
  if v_owner = 0 or not (parley._p_is_administrator(v_caller) or pg_has_role(v_caller, v_owner, 'member')) then
    perform parley._p_raise(
      15151,
      format('cannot make role "%s" the owner', owner),
      format('Role %s is not a member of it.', v_caller::regrole),
      'Name yourself, a role you are a member of, or ask an administrator.'
    );
  end if;
  return v_owner;
end
$$;

comment on function parley._p_new_owner(text) is
'Gives the owner of a new object: the caller, or the named role when the caller may name it (spec 2.0).
Errors: 15151.';
