-- Memberships: which role may act as which. It is the one place that knows what a membership is worth on each version
-- of PostgreSQL.

create function parley._p_may_act_as(caller oid, role oid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  -- pg_has_role takes an oid for a member of itself whether there is such a role or not.
  if not exists (select from pg_roles as r where r.oid = caller)
    or not exists (select from pg_roles as r where r.oid = role) then
    return false;
  end if;
  if current_setting('server_version_num')::integer >= 160000 then
    -- A membership WITH SET FALSE is one that does not allow SET ROLE.
    return coalesce(pg_has_role(caller, role, 'SET'), false);
  end if;
  return coalesce(pg_has_role(caller, role, 'MEMBER'), false);
end
$$;

comment on function parley._p_may_act_as(oid, oid) is
'Reports whether a role may become another one by SET ROLE: itself, a role that it is a member of and may set, any
as superuser. Never null: false when either of the two does not exist.
Arguments: caller, the role that acts; role, the one it would act as.';
