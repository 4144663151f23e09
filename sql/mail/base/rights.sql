-- The rights of mail, and the roles that hold them (spec section 17, roles).
--
-- SEND          submit messages (parley_mail.send)
-- VIEW          see queues, messages, tracking, the configuration without secrets
-- OPERATE       VIEW, and retry, suspend, resume, resubmit, remove, redirect
-- ADMINISTER    all of these, the configuration, rights, quotas
-- READ_CONTENT  see headers and bodies of messages, export them; each read is audited
-- SERVE         be the daemon: claim, deliver, record outcomes, read secrets
--
-- A right is held by a role, by every role that inherits it, or by everybody (public). An administrator is besides who
-- owns the schema parley_mail or the database. Only ADMINISTER includes others, and it does not include READ_CONTENT
-- nor SERVE: an owner holds these, and has to grant them by name. Null refuses.

create table parley_mail._p_right (
  grantee integer not null,
  name text not null check (name in ('SEND', 'VIEW', 'OPERATE', 'ADMINISTER', 'READ_CONTENT', 'SERVE')),
  is_grantable boolean not null default false,
  grantor integer not null,
  primary key (name, grantee, grantor)
);

comment on table parley_mail._p_right is
'The rights that were granted: grantee and grantor, by their numbers (base/role_numbers.sql); grantee 0 is everybody.
Each who grants it has a row of his own, so that he takes back what he gave and nothing else.';

create view parley_mail._p_granted as
select r.name, r.grantee, r.is_grantable,
  (select k.role from parley._p_numbered_role as k where k.number = r.grantee) as role
from parley_mail._p_right as r;

comment on view parley_mail._p_granted is
'The rights that were granted, and to whom. role: that of the grantee here, which may be one that is no more; null for
everybody, and for who is gone.';

create function parley_mail._p_is_owner(role oid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select
    from pg_namespace as n
    join pg_database as d on d.datname = current_database()
    where n.nspname = 'parley_mail'
      and (pg_has_role(_p_is_owner.role, n.nspowner, 'usage') or pg_has_role(_p_is_owner.role, d.datdba, 'usage'))
  );
end
$$;

comment on function parley_mail._p_is_owner(oid) is
'Reports whether a role owns mail transport: by the schema, by the database, or as a superuser.';

create function parley_mail._p_holds(role oid, name text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
-- Otherwise it is planned at each call, which takes longer than to execute it.
set plan_cache_mode = force_generic_plan
as $$
begin
  return exists (
    select
    from parley_mail._p_granted as r
    where (
        r.name = _p_holds.name
        or (r.name = 'ADMINISTER' and _p_holds.name in ('SEND', 'VIEW', 'OPERATE'))
        or (r.name = 'OPERATE' and _p_holds.name = 'VIEW')
      )
      and (r.grantee = 0 or pg_has_role(_p_holds.role, r.role, 'usage'))
  ) or parley_mail._p_is_owner(_p_holds.role);
end
$$;

comment on function parley_mail._p_holds(oid, text) is
'Reports whether a role holds a right: by grant, by a right that includes it, or as an owner.
Arguments: role; name, as the table at the head of base/rights.sql has it.';

create function parley_mail._p_is_superuser(role oid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select from pg_roles as r where r.rolsuper and pg_has_role(_p_is_superuser.role, r.oid, 'member')
  );
end
$$;

comment on function parley_mail._p_is_superuser(oid) is
'Reports whether a role is a superuser, or can become one.';

create function parley_mail._p_require(role oid, name text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley_mail._p_holds(role, name) is not true then
    found := parley_mail._p_raise('right', name, pg_get_userbyid(role));
  end if;
  return true;
end
$$;

comment on function parley_mail._p_require(oid, text) is
'Refuses a role that does not hold a right.
Errors: PM001.';

create function parley_mail._p_role(name text) returns oid
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
    found := parley_mail._p_raise('role', coalesce(name, 'null'));
  end if;
  return v_role;
end
$$;

comment on function parley_mail._p_role(text) is
'Finds a role by its exact name; PUBLIC gives 0.
Errors: PM002.';

create function parley_mail._p_administers_right(role oid, name text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    parley_mail._p_is_owner(role)
    or (name in ('SEND', 'VIEW', 'OPERATE') and parley_mail._p_holds(role, 'ADMINISTER')), false
  );
end
$$;

comment on function parley_mail._p_administers_right(oid, text) is
'Reports whether a role disposes of a right, whoever granted it: the owner of mail of all, an administrator of SEND,
VIEW and OPERATE.';

create function parley_mail._p_require_may_grant(role oid, name text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if name is null or name not in ('SEND', 'VIEW', 'OPERATE', 'ADMINISTER', 'READ_CONTENT', 'SERVE') then
    found := parley_mail._p_raise('unknown right', coalesce(name, 'null'));
  end if;
  if not coalesce(
    parley_mail._p_administers_right(role, name)
    or exists (
      select
      from parley_mail._p_granted as r
      where r.name = _p_require_may_grant.name and r.is_grantable
        and pg_has_role(_p_require_may_grant.role, r.role, 'usage')
    ), false
  ) then
    found := parley_mail._p_raise('grant option', name, pg_get_userbyid(role));
  end if;
  return true;
end
$$;

comment on function parley_mail._p_require_may_grant(oid, text) is
'Refuses a role that may not grant a right. The owner of mail grants all, an administrator SEND, VIEW and OPERATE,
others the rights that they hold with the option to grant them.
Errors: PM001, PM002 no such right.';

create function parley_mail.grant_right(
  name text, role text, with_grant_option boolean default false, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_role oid;
begin
  found := parley_mail._p_require_may_grant(v_caller, name);
  v_role := parley_mail._p_role(role);
  -- Otherwise a role would keep by itself what others take back.
  if not parley_mail._p_administers_right(v_caller, name) and not exists (
    select
    from parley_mail._p_granted as r
    where r.name = grant_right.name and r.is_grantable and r.role <> v_role and pg_has_role(v_caller, r.role, 'usage')
  ) then
    found := parley_mail._p_raise('grant to itself', name, role);
  end if;
  insert into parley_mail._p_right as r (grantee, name, is_grantable, grantor)
  values (
    parley._p_number_at_once(v_role), grant_right.name, with_grant_option is true and v_role <> 0,
    parley._p_number_at_once(v_caller)
  )
  on conflict on constraint _p_right_pkey do update
  set is_grantable = r.is_grantable or excluded.is_grantable;
  perform parley_mail._p_record_audit(
    v_caller, 'grant', name, jsonb_build_object('role', role, 'with_grant_option', with_grant_option is true)
  );
end
$$;

comment on function parley_mail.grant_right(text, text, boolean, parley.caller) is
'Grants a right to a role.
Arguments: name, SEND, VIEW, OPERATE, ADMINISTER, READ_CONTENT or SERVE; role, or public for everybody;
with_grant_option, whether the role may grant it to others.
Errors: PM001 not allowed, or to the role itself that holds the option to grant it, PM002 no such right or role.
Source: spec mail 17.';

create function parley_mail.revoke_right(name text, role text, caller parley.caller default parley.current_caller())
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_numbers integer[];
  v_of_all boolean;
  v_is_revoked boolean;
  v_other text;
begin
  found := parley_mail._p_require_may_grant(v_caller, name);
  v_numbers := parley_mail._p_numbers_named(role);
  v_of_all := parley_mail._p_administers_right(v_caller, name);
  delete from parley_mail._p_right as r
  where r.name = revoke_right.name and r.grantee = any (v_numbers)
    and (v_of_all or pg_has_role(v_caller, parley._p_role_with(r.grantor), 'usage'));
  v_is_revoked := found;
  if not v_is_revoked then
    select parley._p_name_with(r.grantor) into v_other
    from parley_mail._p_right as r
    where r.name = revoke_right.name and r.grantee = any (v_numbers)
    limit 1;
    if found then
      found := parley_mail._p_raise('grant of others', name, role, v_other);
    end if;
  end if;
  perform parley_mail._p_record_audit(v_caller, 'revoke', name, jsonb_build_object('role', role));
  return v_is_revoked;
end
$$;

comment on function parley_mail.revoke_right(text, text, parley.caller) is
'Takes a right from a role, and returns whether it held it itself. An administrator of the right takes it whoever
granted it. A role that holds the option to grant it takes back its own grants, and the grantee keeps the right by the
grants of others. Grants that the role itself made stay.
Arguments: name, as in grant_right; role, or public, or a name that no role has since the database was restored.
Errors: PM001 not allowed, or granted by others alone, PM002 no such right or role.
Source: spec mail 17.';

create function parley_mail._p_rights(caller parley.caller default parley.current_caller())
returns table (name text, role text, is_grantable boolean, granted_by text)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select r.name, e.name, r.is_grantable, parley._p_name_with(r.grantor)
  from parley_mail._p_right as r
  join parley._p_named_role as e on e.number = r.grantee
  cross join (select parley.caller_role(caller) as role) as c
  where r.grantee = 0 or pg_has_role(c.role, e.role, 'usage') or parley_mail._p_holds(c.role, 'VIEW')
$$;

comment on function parley_mail._p_rights(parley.caller) is 'Gives what parley_mail.rights shows.';

create view parley_mail.rights as
select r.name, r.role, r.is_grantable, r.granted_by from parley_mail._p_rights() as r;

comment on view parley_mail.rights is
'The rights held by grant: one''s own, and those of all roles for a holder of VIEW.';

create function parley_mail._p_audit_records(caller parley.caller default parley.current_caller())
returns setof parley_mail._p_audit
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select a.audit_id, a.at, a.role, a.operation, a.object, a.detail
  from parley_mail._p_audit as a
  where parley_mail._p_holds(parley.caller_role(caller), 'ADMINISTER')
$$;

comment on function parley_mail._p_audit_records(parley.caller) is 'Gives what parley_mail.audit shows.';

create view parley_mail.audit as
select a.audit_id, a.at, a.role, a.operation, a.object, a.detail from parley_mail._p_audit_records() as a;

comment on view parley_mail.audit is 'The actions of administrators and operators of mail, for administrators.';
