do $trust$
declare
  -- Until the path is pinned each name is spelled in full, so that nothing of another schema is called.
  v_path pg_catalog.text := pg_catalog.current_setting('search_path');
  v_must_exist constant boolean := false;
  v_changes_schema constant boolean := true;
  v_checks_contents constant boolean := true;
  v_schemas constant pg_catalog.text[] := '{}';
  v_login pg_catalog.pg_roles;
  v_schema record;
  v_planted pg_catalog.text;
  v_table pg_catalog.oid;
begin
  perform pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
  select r.* into v_login from pg_roles as r where r.rolname = session_user;

  if v_must_exist and not exists (select from pg_namespace as n where n.nspname = 'parley') then
    raise exception using errcode = '3F000', message = 'schema parley is not installed', hint = 'Run parley install.';
  end if;

  for v_schema in
    select n.oid, n.nspname, n.nspowner, o.rolname as owner
    from pg_namespace as n
    join pg_roles as o on o.oid = n.nspowner
    join pg_database as d on d.datname = current_database()
    where n.nspname = any (v_schemas)
      and (
        -- Objects that the owner of a schema puts into it run with the rights of the session that uses them, SET ROLE
        -- or not.
        o.rolsuper
        or o.oid = v_login.oid
        or (
          not v_login.rolsuper
          and (
            o.oid = d.datdba
            or o.rolname = current_user
            or (not v_changes_schema and not pg_has_role(v_login.oid, d.datdba, 'member'))
          )
        )
      ) is not true
    order by n.nspname
  loop
    raise exception using
      errcode = '42501',
      message = format('schema %s belongs to role "%s", which this connection must not trust', v_schema.nspname, v_schema.owner),
      detail = format(
        'The connection logged in as "%s", which may more than the owner. What the owner has put into the schema would run with the rights of the login.',
        v_login.rolname
      ),
      hint = format(
        'If Parley was installed by "%1$s", connect as that role; a login that is a member of it and no superuser may act as it, '
          || 'with options=''-c role=%1$s'' in the connection string. If not, drop or rename the schema.',
        v_schema.owner
      );
  end loop;

  -- An owner that may be trusted can have let others create objects in the schema.
  select format('%s %s of role "%s"', x.kind, x.name, pg_get_userbyid(x.owner)) into v_planted
  from pg_namespace as n
  cross join lateral (
    select 'relation' as kind, format('%I.%I', n.nspname, c.relname) as name, c.relowner as owner from pg_class as c where c.relnamespace = n.oid
    union all
    select 'function', format('%I.%I', n.nspname, p.proname), p.proowner from pg_proc as p where p.pronamespace = n.oid
    union all
    select 'type', format('%I.%I', n.nspname, t.typname), t.typowner from pg_type as t where t.typnamespace = n.oid
    union all
    select 'operator', format('%I.%s', n.nspname, o.oprname), o.oprowner from pg_operator as o where o.oprnamespace = n.oid
    union all
    select 'schema', quote_ident(q.nspname), q.nspowner from pg_namespace as q where q.nspname = any (v_schemas) and q.nspname <> 'parley'
  ) as x
  where v_checks_contents and n.nspname = any (v_schemas) and x.owner <> n.nspowner
  order by 1
  limit 1;
  if found then
    raise exception using
      errcode = '42501',
      message = 'schema parley holds what its owner did not make',
      detail = format('Found: %s.', v_planted),
      hint = format(
        'Drop it, and take the right to create objects in the schemas %s from everybody but their owner.', array_to_string(v_schemas, ', ')
      );
  end if;

  select n.nspname into v_planted
  from pg_namespace as n
  where n.nspname = any (v_schemas) and n.nspname <> 'parley' and not exists (select from pg_namespace as o where o.nspname = 'parley')
  order by 1
  limit 1;
  if found then
    raise exception using
      errcode = '42P06',
      message = format('schema %s exists, and schema parley does not', v_planted),
      hint = format('Rename or drop schema %s: Parley makes its own.', v_planted);
  end if;

  -- The one table that is read before the version is known must be ours in every respect in which reading could run something.
  select c.oid into v_table
  from pg_class as c
  join pg_namespace as n on n.oid = c.relnamespace
  where n.nspname = 'parley' and c.relname = '_p_installation';
  if found and (
    select
      c.relkind = 'r' and c.relowner = (select n.nspowner from pg_namespace as n where n.oid = c.relnamespace)
      and not c.relrowsecurity and not c.relispartition and c.reloftype = 0
      and not exists (select from pg_rewrite as w where w.ev_class = c.oid)
      and not exists (select from pg_policy as y where y.polrelid = c.oid)
      and not exists (
        select from pg_trigger as g join pg_proc as p on p.oid = g.tgfoid join pg_roles as o on o.oid = p.proowner
        where g.tgrelid = c.oid and p.proowner <> c.relowner and not o.rolsuper
      )
      and not exists (select from pg_inherits as i where c.oid in (i.inhrelid, i.inhparent))
      -- The planner evaluates expressions of indexes and statistics, which may call functions.
      and not exists (select from pg_index as i where i.indrelid = c.oid and (i.indexprs is not null or i.indpred is not null))
      and not exists (select from pg_statistic_ext as s where s.stxrelid = c.oid)
      and not exists (
        select from pg_constraint as k join pg_depend as d on d.classid = 'pg_constraint'::regclass and d.objid = k.oid
        where k.conrelid = c.oid and d.refclassid in ('pg_proc'::regclass, 'pg_operator'::regclass)
      )
      and (
        select
          count(*) filter (
            where a.attname in ('schema_version', 'release', 'installed_at', 'upgraded_at') and t.typnamespace = 'pg_catalog'::regnamespace
          ) = 4 and bool_and(a.attgenerated = '')
          -- Builds of a version that was not released lack it.
          and bool_and(a.attname <> 'fingerprint' or t.typnamespace = 'pg_catalog'::regnamespace)
        from pg_attribute as a
        join pg_type as t on t.oid = a.atttypid
        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      )
    from pg_class as c
    where c.oid = v_table
  ) is not true then
    raise exception using
      errcode = '42809',
      message = 'parley._p_installation is not the table that Parley makes',
      detail = 'It is a view or a table of another kind, or it has rules, triggers, policies, children, or other columns or expressions.',
      hint = 'Find out who changed it. If Parley did not make the schema, drop or rename it.';
  end if;
  perform set_config('search_path', v_path, true);
end
$trust$;
