-- The rights of the integration engine, and the roles that hold them.
--
-- PUBLISH       publish messages (parley_flow.publish): all, those of an application, those of a receive port
-- ANSWER        answer requests by their tokens: all, those of an application, those of a receive port
-- VIEW          see messages without their bodies, failures, tracking, definitions
-- OPERATE       VIEW, and start, stop, resume, terminate, resubmit
-- READ_CONTENT  see bodies of messages and properties that are sensitive; each read is recorded
-- ADMINISTER    PUBLISH, ANSWER, VIEW and OPERATE, definitions, rights, quotas
--
-- VIEW, OPERATE and READ_CONTENT are held for all, or for an application. A right is held by a role, by every role that
-- inherits it, or by everybody (public). An administrator is besides who owns the schema parley_flow or the database.
-- Only ADMINISTER and OPERATE include others, and READ_CONTENT is in none: an owner holds it. To serve a host is no
-- right of this table, but membership in the role of the host. Null refuses.

create table parley_flow._p_right (
  grantee integer not null,
  name text not null check (name in ('PUBLISH', 'ANSWER', 'VIEW', 'OPERATE', 'READ_CONTENT', 'ADMINISTER')),
  scope text not null default 'all' check (scope in ('all', 'application', 'receive port')),
  object text not null default '',
  is_grantable boolean not null default false,
  grantor integer not null,
  primary key (name, grantee, scope, object, grantor)
);

comment on table parley_flow._p_right is
'The rights that were granted: grantee and grantor, by their numbers (parley/base/role_numbers.sql); grantee 0 is
everybody. Each who grants it has a row of his own, so that he takes back what he gave and nothing else.';

create view parley_flow._p_granted as
select r.name, r.scope, r.object, r.grantee, r.is_grantable,
  (select k.role from parley._p_numbered_role as k where k.number = r.grantee) as role
from parley_flow._p_right as r;

comment on view parley_flow._p_granted is
'The rights that were granted, and to whom. role: that of the grantee here, which may be one that is no more; null for
everybody, and for who is gone.';

create function parley_flow._p_is_owner(role oid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select
    from pg_namespace as n
    join pg_database as d on d.datname = current_database()
    where n.nspname = 'parley_flow'
      and (pg_has_role(_p_is_owner.role, n.nspowner, 'usage') or pg_has_role(_p_is_owner.role, d.datdba, 'usage'))
  );
end
$$;

comment on function parley_flow._p_is_owner(oid) is
'Reports whether a role owns the engine: by the schema, by the database, or as a superuser.';

create function parley_flow._p_includes(held text, wanted text) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select held = wanted
    or (held = 'ADMINISTER' and wanted in ('PUBLISH', 'ANSWER', 'VIEW', 'OPERATE'))
    or (held = 'OPERATE' and wanted = 'VIEW')
$$;

comment on function parley_flow._p_includes(text, text) is 'Reports whether one right includes another.';

create function parley_flow._p_holds(
  role oid, name text, application text default null, receive_port text default null
) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
-- Otherwise it is planned at each call, which takes longer than to execute it.
set plan_cache_mode = force_generic_plan
as $$
begin
  return exists (
    select
    from parley_flow._p_granted as r
    where parley_flow._p_includes(r.name, _p_holds.name)
      and (
        r.scope = 'all'
        or (r.scope = 'application' and r.object = _p_holds.application)
        or (r.scope = 'receive port' and r.object = _p_holds.receive_port)
      )
      and (r.grantee = 0 or pg_has_role(_p_holds.role, r.role, 'usage'))
  ) or parley_flow._p_is_owner(_p_holds.role);
end
$$;

comment on function parley_flow._p_holds(oid, text, text, text) is
'Reports whether a role holds a right: by grant, by a right that includes it, or as an owner.
Arguments: role; name, as the table at the head of flow/base/rights.sql has it; application and receive_port, for what:
null asks for the right for all.';

create function parley_flow._p_applications_of(role oid, name text) returns text[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley_flow._p_holds(role, name) then
    return array['*'];
  end if;
  return array(
    select distinct r.object
    from parley_flow._p_granted as r
    where parley_flow._p_includes(r.name, _p_applications_of.name) and r.scope = 'application'
      and (r.grantee = 0 or pg_has_role(_p_applications_of.role, r.role, 'usage'))
  );
end
$$;

comment on function parley_flow._p_applications_of(oid, text) is
'Gives the applications for which a role holds a right; {*} is all, {} none. Views ask it once.';

create function parley_flow._p_require(role oid, name text, application text default null) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley_flow._p_holds(role, name, application) is not true then
    -- Often nothing but the object led to the application: whoever may see nothing of it does not learn of it.
    found := parley_flow._p_raise('right', name, pg_get_userbyid(role), case
      when application is not null and parley_flow._p_holds(role, 'VIEW', application)
        then format(' for application "%s"', application)
      else ''
    end);
  end if;
  return true;
end
$$;

comment on function parley_flow._p_require(oid, text, text) is
'Refuses a role that does not hold a right.
Arguments: role; name; application, null: for all.
Errors: PF001.';

create function parley_flow._p_role(name text) returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_role oid;
begin
  if lower(name collate "C") = 'public' then
    return 0;
  end if;
  select r.oid into v_role from pg_roles as r where r.rolname = _p_role.name;
  if not found then
    found := parley_flow._p_raise('role', coalesce(name, 'null'));
  end if;
  return v_role;
end
$$;

comment on function parley_flow._p_role(text) is
'Finds a role by its exact name; PUBLIC gives 0.
Errors: PF002.';

create function parley_flow._p_numbers_named(name text) returns integer[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_numbers integer[];
begin
  if lower(name collate "C") = 'public' then
    return array[0];
  end if;
  v_numbers := array(
    select k.number
    from parley._p_named_role as k
    where k.name = _p_numbers_named.name and k.role is null and k.number <> 0
  );
  if v_numbers = '{}' then
    v_numbers := parley._p_numbers_of(parley_flow._p_role(name));
  end if;
  return v_numbers;
end
$$;

comment on function parley_flow._p_numbers_named(text) is
'Gives the numbers of the role that has a name, also of one that there is not where the database was restored, so that
what it would have can be taken away; PUBLIC gives 0.
Errors: PF002 no such role.';
