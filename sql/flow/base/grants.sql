-- Granting and revoking the rights of flow/base/rights.sql.

create function parley_flow._p_administers_right(role oid, name text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    parley_flow._p_is_owner(role)
    or (name in ('PUBLISH', 'ANSWER', 'VIEW', 'OPERATE') and parley_flow._p_holds(role, 'ADMINISTER')), false
  );
end
$$;

comment on function parley_flow._p_administers_right(oid, text) is
'Reports whether a role disposes of a right, whoever granted it: the owner of the engine of all, an administrator of
PUBLISH, ANSWER, VIEW and OPERATE.';

create function parley_flow._p_may_pass_on(role oid, name text, scope text, object text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select
    from parley_flow._p_granted as r
    where r.name = _p_may_pass_on.name and r.is_grantable
      and (r.scope = 'all' or (r.scope = _p_may_pass_on.scope and r.object = _p_may_pass_on.object))
      and pg_has_role(_p_may_pass_on.role, r.role, 'usage')
  );
end
$$;

comment on function parley_flow._p_may_pass_on(oid, text, text, text) is
'Reports whether a role holds a right with the option to grant it, for as much.';

create function parley_flow._p_require_may_grant(role oid, name text, scope text, object text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if name is null or name not in ('PUBLISH', 'ANSWER', 'VIEW', 'OPERATE', 'READ_CONTENT', 'ADMINISTER') then
    found := parley_flow._p_raise('unknown right', coalesce(name, 'null'));
  end if;
  if (
    parley_flow._p_administers_right(role, name) or parley_flow._p_may_pass_on(role, name, scope, object)
  ) is not true then
    found := parley_flow._p_raise('grant option', name, pg_get_userbyid(role));
  end if;
  return true;
end
$$;

comment on function parley_flow._p_require_may_grant(oid, text, text, text) is
'Refuses a role that may not grant a right. The owner of the engine grants all, an administrator PUBLISH, ANSWER,
VIEW and OPERATE, others the rights that they hold with the option to grant them.
Errors: PF001, PF002 no such right.';

create function parley_flow._p_scope(name text, application text, receive_port text, out scope text, out object text)
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if application is not null and receive_port is not null then
    found := parley_flow._p_raise('scope', name, 'both', 'An application and a receive port were named.');
  elsif application is not null then
    scope := 'application';
    object := application;
    if name = 'ADMINISTER' then
      found := parley_flow._p_raise('scope', name, 'an application', 'Definitions of applications share hosts.');
    end if;
  elsif receive_port is not null then
    scope := 'receive port';
    object := receive_port;
    if name is null or name not in ('PUBLISH', 'ANSWER') then
      found := parley_flow._p_raise(
        'scope', coalesce(name, 'null'), 'a receive port', 'It is for PUBLISH and ANSWER alone.'
      );
    end if;
  else
    scope := 'all';
    object := '';
  end if;
end
$$;

comment on function parley_flow._p_scope(text, text, text) is
'Gives for what a right is granted.
Errors: PF002 there is no such right for that.';

create function parley_flow.grant_right(
  name text, role text, application text default null, receive_port text default null,
  with_grant_option boolean default false, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_scope record;
  v_role oid;
begin
  v_scope := parley_flow._p_scope(name, application, receive_port);
  found := parley_flow._p_require_may_grant(v_caller, name, v_scope.scope, v_scope.object);
  v_role := parley_flow._p_role(role);
  -- Otherwise a role would keep by itself what others take back.
  if not parley_flow._p_administers_right(v_caller, name) and not exists (
    select
    from parley_flow._p_granted as r
    where r.name = grant_right.name and r.is_grantable
      and (r.scope = 'all' or (r.scope = v_scope.scope and r.object = v_scope.object))
      and r.role <> v_role and pg_has_role(v_caller, r.role, 'usage')
  ) then
    found := parley_flow._p_raise('grant to itself', name, role);
  end if;
  insert into parley_flow._p_right as r (grantee, name, scope, object, is_grantable, grantor)
  values (
    parley._p_number_at_once(v_role), grant_right.name, v_scope.scope, v_scope.object,
    with_grant_option is true and v_role <> 0, parley._p_number_at_once(v_caller)
  )
  on conflict on constraint _p_right_pkey do update
  set is_grantable = r.is_grantable or excluded.is_grantable;
  perform parley_flow._p_record_audit(
    v_caller, 'grant', name, jsonb_strip_nulls(jsonb_build_object(
      'role', role, 'application', application, 'receive_port', receive_port,
      'with_grant_option', with_grant_option is true
    ))
  );
end
$$;

comment on function parley_flow.grant_right(text, text, text, text, boolean, parley.caller) is
'Grants a right to a role.
Arguments: name, PUBLISH, VIEW, OPERATE, READ_CONTENT or ADMINISTER; role, or public for everybody; application or
receive_port, for what (null: for all), which need not be defined yet; with_grant_option, whether the role may grant it
to others.
Errors: PF001 not allowed, or to the role itself that holds the option to grant it, PF002 no such right or role.';

create function parley_flow.revoke_right(
  name text, role text, application text default null, receive_port text default null,
  caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_scope record;
  v_numbers integer[];
  v_of_all boolean;
  v_is_revoked boolean;
  v_other text;
begin
  v_scope := parley_flow._p_scope(name, application, receive_port);
  found := parley_flow._p_require_may_grant(v_caller, name, v_scope.scope, v_scope.object);
  v_numbers := parley_flow._p_numbers_named(role);
  v_of_all := parley_flow._p_administers_right(v_caller, name);
  delete from parley_flow._p_right as r
  where r.name = revoke_right.name and r.scope = v_scope.scope and r.object = v_scope.object
    and r.grantee = any (v_numbers)
    and (v_of_all or pg_has_role(v_caller, parley._p_role_with(r.grantor), 'usage'));
  v_is_revoked := found;
  if not v_is_revoked then
    select parley._p_name_with(r.grantor) into v_other
    from parley_flow._p_right as r
    where r.name = revoke_right.name and r.scope = v_scope.scope and r.object = v_scope.object
      and r.grantee = any (v_numbers)
    limit 1;
    if found then
      found := parley_flow._p_raise('grant of others', name, role, v_other);
    end if;
  end if;
  perform parley_flow._p_record_audit(
    v_caller, 'revoke', name, jsonb_strip_nulls(jsonb_build_object(
      'role', role, 'application', application, 'receive_port', receive_port
    ))
  );
  return v_is_revoked;
end
$$;

comment on function parley_flow.revoke_right(text, text, text, text, parley.caller) is
'Takes a right from a role, and returns whether it held it itself, for just that. An administrator of the right takes it
whoever granted it. A role that holds the option to grant it takes back its own grants, and the grantee keeps the right
by the grants of others. Grants that the role itself made stay.
Arguments: as in grant_right; role may be a name that no role has since the database was restored.
Errors: PF001 not allowed, or granted by others alone, PF002 no such right or role.';

create function parley_flow._p_rights(caller parley.caller default parley.current_caller())
returns table (
  name text, role text, application text, receive_port text, is_grantable boolean, granted_by text
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select r.name, e.name, case when r.scope = 'application' then r.object end,
    case when r.scope = 'receive port' then r.object end, r.is_grantable, parley._p_name_with(r.grantor)
  from parley_flow._p_right as r
  join parley._p_named_role as e on e.number = r.grantee
  cross join (select parley.caller_role(caller) as role) as c
  where r.grantee = 0 or pg_has_role(c.role, e.role, 'usage') or parley_flow._p_holds(c.role, 'VIEW')
$$;

comment on function parley_flow._p_rights(parley.caller) is 'Gives what parley_flow.rights shows.';

create view parley_flow.rights as
select r.name, r.role, r.application, r.receive_port, r.is_grantable, r.granted_by from parley_flow._p_rights() as r;

comment on view parley_flow.rights is
'The rights held by grant: one''s own, and those of all roles for a holder of VIEW. Without an application and a
receive port it is for all.';

create function parley_flow._p_audit_records(caller parley.caller default parley.current_caller())
returns setof parley_flow._p_audit
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select a.audit_id, a.at, a.role, a.operation, a.object, a.detail
  from parley_flow._p_audit as a
  where parley_flow._p_holds(parley.caller_role(caller), 'ADMINISTER')
$$;

comment on function parley_flow._p_audit_records(parley.caller) is 'Gives what parley_flow.audit shows.';

create view parley_flow.audit as
select a.audit_id, a.at, a.role, a.operation, a.object, a.detail from parley_flow._p_audit_records() as a;

comment on view parley_flow.audit is 'The actions of administrators and operators of the engine, for administrators.';
