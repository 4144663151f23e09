-- Permissions on the broker's objects.
--
-- A permission row records that a grantee (0 = PUBLIC) holds a permission on one object. Owners and administrators hold
-- all. CONTROL includes every other permission of its object, ALTER includes VIEW DEFINITION.
-- Permissions on the class 'database' are the rights to create things, with ALTER ANY to alter all of a kind, and to
-- view all definitions. Source: spec 7.6, 7.7.

create table parley._p_permission (
  class text not null check (
    class in (
      'database', 'message type', 'contract', 'queue', 'service', 'route', 'certificate', 'remote service binding'
    )
  ),
  object_id integer not null,
  permission text not null,
  grantee parley._p_role_oid not null,
  grantor parley._p_role_oid not null,
  is_grantable boolean not null default false,
  primary key (class, object_id, permission, grantee)
);

comment on table parley._p_permission is 'The permissions that were granted, and on which object; grantee 0 is PUBLIC.';

create trigger _p_number_roles after insert or update of grantee, grantor on parley._p_permission
for each row execute function parley._p_number_roles('grantee', 'grantor');

create function parley._p_has_permission(
  role oid, permission text, class text, object_id integer, owner oid
) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (owner is not null and pg_has_role(role, owner, 'usage'))
    or exists (
      select
      from parley._p_permission as p
      where p.class = $3
        and p.object_id = $4
        and (
          p.permission in ($2, 'CONTROL')
          or ($2 = 'VIEW DEFINITION' and p.permission = 'ALTER')
          or ($3 = 'database' and p.permission = replace($2, 'CREATE ', 'ALTER ANY '))
        )
        and (p.grantee = 0::regrole or pg_has_role(role, p.grantee, 'usage'))
    )
    or ($2 in ('ALTER', 'VIEW DEFINITION') and exists (
      select
      from parley._p_permission as p
      where p.class = 'database'
        and (p.permission = 'ALTER ANY ' || upper($3 collate "C") or ($2 = 'VIEW DEFINITION' and p.permission = $2))
        and (p.grantee = 0::regrole or pg_has_role(role, p.grantee, 'usage'))
    ))
    or parley._p_is_administrator(role);
end
$$;

comment on function parley._p_has_permission(oid, text, text, integer, oid) is
'Reports whether a role holds a permission: by ownership, by grant (to it, to a role it inherits,
to PUBLIC), or as administrator.
Arguments: role; permission, such as SEND; class, such as service; object_id; owner, the owner of the object or null.';

create function parley._p_require_permission(
  caller oid, permission text, class text, object_id integer, name text, owner oid
) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley._p_has_permission(caller, permission, class, object_id, owner) is not true then
    if class = 'database' then
      found := parley._p_raise(229, 'in the database', permission, pg_get_userbyid(caller));
    end if;
    found := parley._p_raise(229, 'on an object', permission, class, name, pg_get_userbyid(caller));
  end if;
  return true;
end
$$;

comment on function parley._p_require_permission(oid, text, text, integer, text, oid) is
'Refuses a caller that lacks a permission.
Errors: 229.';

create function parley._p_may_view_state(role oid) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select parley._p_is_administrator(role) or pg_has_role(role, 'pg_monitor', 'usage')
$$;

comment on function parley._p_may_view_state(oid) is
'Reports whether a role may see the figures of the whole broker, as VIEW SERVER STATE allows:
administrators and members of pg_monitor.';
