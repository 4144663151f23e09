-- Parley 0.1.0, Service Broker for PostgreSQL: schema version 1.
--
-- Run it as any role that may create schemas in the database:
--   psql --set ON_ERROR_STOP=1 --file parley.sql
-- It is one transaction: all of it happens or nothing. To change an installed schema, use parley upgrade.

begin;
set local client_min_messages = warning;
set local search_path = pg_catalog, pg_temp;
set local check_function_bodies = off;
set local standard_conforming_strings = on;
set local default_tablespace = '';
set local default_table_access_method = heap;
do $$
begin
  if current_setting('server_version_num')::integer < 140000 then
    raise exception 'Parley needs PostgreSQL 14 or newer; this server is %', current_setting('server_version');
  end if;
end
$$;
select pg_advisory_xact_lock(123563833845113);

-- Nothing that somebody else has made is taken for ours.
do $trust$
declare
  -- Until the path is pinned each name is spelled in full, so that nothing of another schema is called.
  v_path pg_catalog.text := pg_catalog.current_setting('search_path');
  v_must_exist constant boolean := false;
  v_changes_schema constant boolean := true;
  v_checks_contents constant boolean := true;
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
    where n.nspname in ('parley', 'parley_queue')
      and (
        -- What the owner of a schema puts into it runs with the rights of the session that uses it, SET ROLE or not.
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
    select 'schema', quote_ident(q.nspname), q.nspowner from pg_namespace as q where q.nspname = 'parley_queue'
  ) as x
  where v_checks_contents and n.nspname in ('parley', 'parley_queue') and x.owner <> n.nspowner
  order by 1
  limit 1;
  if found then
    raise exception using
      errcode = '42501',
      message = 'schema parley holds what its owner did not make',
      detail = format('Found: %s.', v_planted),
      hint = 'Drop it, and take the right to create objects in the schemas parley and parley_queue from everybody but their owner.';
  end if;

  if exists (select from pg_namespace as n where n.nspname = 'parley_queue') and not exists (select from pg_namespace as n where n.nspname = 'parley') then
    raise exception using
      errcode = '42P06',
      message = 'schema parley_queue exists, and schema parley does not',
      hint = 'Rename or drop schema parley_queue: Parley makes its own.';
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

-- sql/000_schema.sql

-- The schema that holds everything, and the row that says which version is installed.
--
-- Every function here is owned by the role that installs it, and runs with that role's rights
-- (security definer), because nobody else may touch the private tables. Private tables and
-- functions begin with _p_. Rights are those of the session's role: see 020_roles.sql.
--
-- Tables that hold no user data worth dumping do not exist: a dump of the database carries
-- the broker, its conversations and its waiting messages with it.

create schema parley;

comment on schema parley is 'Parley: Service Broker for PostgreSQL. Functions and views are the interface; names that begin with _p_ are private.';

-- The views that let each queue be looked at live apart, so that no queue can take the name of a view of ours.
create schema parley_queue;

comment on schema parley_queue is 'One view for each Parley queue: what waits in it, in the columns that RECEIVE returns.';

create table parley._p_installation (
  installation_id boolean primary key default true check (installation_id),
  schema_version integer not null,
  oldest_client_version integer not null default 1,
  release text not null,
  installed_at timestamptz not null default now(),
  upgraded_at timestamptz
);

comment on table parley._p_installation is 'One row: the version of this schema.';
comment on column parley._p_installation.oldest_client_version is
'Programs built for this schema version, and for those from there up to schema_version, work with this schema.';

create table parley._p_broker (
  broker_id boolean primary key default true check (broker_id),
  service_broker_guid uuid not null default gen_random_uuid(),
  is_broker_enabled boolean not null default true,
  disabled_at timestamptz,
  system_identifier bigint,
  database_oid oid,
  tombstone_seconds integer not null default 1800 check (tombstone_seconds >= 0),
  abandoned_seconds integer not null default 1800 check (abandoned_seconds >= 0),
  is_priority_honored boolean not null default false,
  epoch bigint not null default 1,
  timeline text,
  remembers_since timestamptz
);

comment on table parley._p_broker is 'One row: this database as a broker instance, and its settings.';
comment on column parley._p_broker.system_identifier is 'Server in which the broker was enabled last; null when it did not tell.';
comment on column parley._p_broker.database_oid is 'Database in which the broker was enabled last: in a copy of it these two differ from what is there.';
comment on column parley._p_broker.tombstone_seconds is 'How long a closed target endpoint is kept to recognise replays (spec 3.3).';
comment on column parley._p_broker.abandoned_seconds is
'How long a target endpoint whose initiator has ended, and which has nothing left to read, may stay (fire-and-forget).';

comment on column parley._p_broker.is_priority_honored is 'HONOR_BROKER_PRIORITY: priorities also govern transmission (spec 6.11).';
comment on column parley._p_broker.epoch is 'Grows when the database goes on from a history that may have lost its end; see 291_epoch.sql.';
comment on column parley._p_broker.timeline is 'The timeline of the server in this epoch; null before anything was transmitted.';
comment on column parley._p_broker.remembers_since is
'Since when this broker knows all that it has done: when it has gone on from an older state last; null when it never has.';

-- The switch itself (430_broker_switches.sql): without a value while the broker is enabled. A sequence, because whoever asks for its value sees
-- the present state at any isolation level, and holds a lock until the end of his transaction that lets the switch wait for him.
create sequence parley._p_broker_switch;

-- One number series for message types, contracts, services, queues and priorities, so that id < 65536 means built in.
create sequence parley._p_object_id as integer start with 65536 minvalue 1;

-- sql/010_errors.sql

-- How errors leave the broker.
--
-- Each error of the broker carries the SQL Server error number twice: in its SQLSTATE (class SB, then the number
-- in base 36, three digits) and at the start of its DETAIL. The text states the fact, the HINT says what to do.
-- Source: spec section 4.10.

create function parley.sqlstate_of(error_number integer) returns text
language sql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select 'SB'
    || substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', error_number / 1296 + 1, 1)
    || substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', (error_number / 36) % 36 + 1, 1)
    || substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', error_number % 36 + 1, 1)
$$;

comment on function parley.sqlstate_of(integer) is
'Gives the SQLSTATE under which a Service Broker error is raised.
Arguments: error_number, the SQL Server number (0 to 46655).
Source: spec 4.10.';

create function parley._p_raise(error_number integer, message text, detail text, hint text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception using
    errcode = parley.sqlstate_of(error_number),
    message = message,
    detail = 'Service Broker error ' || error_number || '.' || coalesce(' ' || detail, ''),
    hint = coalesce(hint, '');
end
$$;

comment on function parley._p_raise(integer, text, text, text) is
'Raises one error of the broker; never returns.
Arguments: error_number, the SQL Server number; message, the fact; detail, the values; hint, the remedy.
Errors: always, with sqlstate_of(error_number).';

-- sql/020_roles.sql

-- Who is asking, and who may do everything.
--
-- The caller is current_user where the statement stands that calls Parley: the role that logged in, the role of SET ROLE, or, inside a
-- function of the user's that is SECURITY DEFINER, its owner. In ANALYZE, autovacuum and the other operations that
-- run functions for somebody else, PostgreSQL makes it the owner of the table. It is never the role of the session.
--
-- A function of Parley's is SECURITY DEFINER itself, and so cannot see it. Its last argument, caller, brings it. The default of an
-- argument is evaluated where the call stands: it reads _p_caller_ticket, and current_user in a view is that of whoever reads
-- the view, while the table behind it is read with the rights of the view's owner. The ticket names the role and is sealed with a secret, the
-- backend and the transaction; nobody but the owner of the schema can read the secret, so a role can make tickets of its own only.
-- A ticket is good in one transaction of one backend.
--
-- The secret is a materialized view: a dump does not contain its rows, and the database that is restored makes another.
--
-- An administrator (spec: db_owner, sysadmin) is a superuser, the owner of the database, or a member of the role that owns the schema parley.

create domain parley.caller as bytea;

comment on domain parley.caller is 'Proof of the role that calls a function of Parley. Do not make one up: leave the argument out.';

create materialized view parley._p_caller_secret as
select uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) as secret;

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
'One row: the ticket of whoever reads it, good until the end of the transaction. 32 bytes of SHA-256, then the name of the role.';

create function parley.current_caller() returns parley.caller
language plpgsql stable
as $$
begin
  return (select t.ticket from parley._p_caller_ticket as t);
end
$$;

comment on function parley.current_caller() is
'Proves which role calls: the default of the argument caller, with which every function of Parley that looks at rights ends.
Errors: 42704 when the current role was dropped.';

create function parley._p_raise_unknown_caller(detail text) returns void
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
set search_path = pg_catalog, pg_temp
as $$
declare
  v_secret bytea;
  v_name bytea := substr(caller, 33);
  v_role oid;
begin
  select s.secret into v_secret from parley._p_caller_secret as s;
  -- Expressions, because each further statement would cost as much as all of this. pg_has_role takes an oid that no role has for a member of itself, so
  -- the role is looked up here.
  if substr(caller, 1, 32) = sha256(v_secret || int4send(pg_backend_pid()) || timestamptz_send(transaction_timestamp()) || v_name || v_secret) then
    v_role := to_regrole(quote_ident(convert_from(v_name, getdatabaseencoding())));
  end if;
  if v_role is null then
    perform parley._p_raise_unknown_caller(
      'The argument caller is null, was made up, comes from another session or transaction, or names a role that was dropped or renamed.'
    );
  end if;
  return v_role;
end
$$;

comment on function parley._p_caller(parley.caller) is
'Gives the role whose rights count for a call. Never null.
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
    perform parley._p_raise_unknown_caller(format('Role "%s" was dropped or renamed.', caller));
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
'Gives the role that reads a view, for the conditions of views. In a function that is SECURITY DEFINER it would give the function''s owner: these
use _p_caller. Null for a role that is gone.';

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

create function parley._p_require_administrator(caller oid, what text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley._p_is_administrator(caller) is not true then
    perform parley._p_raise(
      15151,
      format('%s is for administrators of the broker', what),
      format('Role %s neither owns this database nor the schema parley.', caller::regrole),
      'Ask the owner of the database, or have its role granted to you.'
    );
  end if;
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
    perform parley._p_raise(
      15151,
      format('cannot make role "%s" the owner', owner),
      format('Role %s is not a member of it.', caller::regrole),
      'Name yourself, a role you are a member of, or ask an administrator.'
    );
  end if;
  return v_owner;
end
$$;

comment on function parley._p_new_owner(oid, text) is
'Gives the owner of a new object: the caller, or the named role when the caller may name it (spec 2.0).
Errors: 15151.';

-- sql/021_acting_as.sql

-- Who may act as which role: the one place that knows what a membership is worth on each version of PostgreSQL.

create function parley._p_may_act_as(caller oid, role oid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  -- pg_has_role takes an oid for a member of itself whether there is such a role or not.
  if not exists (select from pg_roles as r where r.oid = caller) or not exists (select from pg_roles as r where r.oid = role) then
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
'Tells whether a role may become another one by SET ROLE: itself, a role that it is a member of and may set, any as superuser. Never null: false when either
of the two does not exist.
Arguments: caller, the role that acts; role, the one it would act as.';

-- sql/022_default_privileges.sql

-- What ALTER DEFAULT PRIVILEGES has given away of objects of ours.
--
-- Whoever installs may have said that some role may read all tables that he will make, call all his functions, create in all his schemas.
-- That was not said of a broker: who reads the secret of 020_roles.sql may do everything, and so may who makes a function in the schema parley.
-- So the schema takes back what it has not granted itself, when it is installed and from each sequence and view that it makes later.
-- A grant that somebody makes by name is his own decision.

create function parley._p_grantees(acl aclitem[], owner oid) returns setof regrole
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select distinct x.grantee::regrole from aclexplode(acl) as x where x.grantee not in (0, owner)
$$;

comment on function parley._p_grantees(aclitem[], oid) is 'Gives the roles other than the owner that hold a right to an object. PUBLIC is none of them.';

create function parley._p_take_back_relation(relation regclass) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_grantee regrole;
begin
  execute format('revoke all on table %s from public', relation);
  for v_grantee in
    select g.grantee from pg_class as c cross join parley._p_grantees(c.relacl, c.relowner) as g (grantee) where c.oid = relation
  loop
    execute format('revoke all on table %s from %s', relation, v_grantee);
  end loop;
end
$$;

comment on function parley._p_take_back_relation(regclass) is 'Takes all rights to a table, a view or a sequence from everybody but its owner.';

create function parley._p_take_back_all() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schemas oid[] := array['parley'::regnamespace, 'parley_queue'::regnamespace];
  v_schema regnamespace;
  v_function regprocedure;
  v_grantee regrole;
begin
  revoke all on schema parley, parley_queue from public;
  for v_schema, v_grantee in
    select n.oid, g.grantee from pg_namespace as n cross join parley._p_grantees(n.nspacl, n.nspowner) as g (grantee) where n.oid = any (v_schemas)
  loop
    execute format('revoke all on schema %s from %s', v_schema, v_grantee);
  end loop;
  perform parley._p_take_back_relation(c.oid) from pg_class as c where c.relnamespace = any (v_schemas) and c.relacl is not null;
  revoke all on all functions in schema parley, parley_queue from public;
  for v_function, v_grantee in
    select p.oid, g.grantee from pg_proc as p cross join parley._p_grantees(p.proacl, p.proowner) as g (grantee) where p.pronamespace = any (v_schemas)
  loop
    execute format('revoke all on function %s from %s', v_function, v_grantee);
  end loop;
end
$$;

comment on function parley._p_take_back_all() is
'Takes all rights to the schemas parley and parley_queue, and to what is in them, from everybody but their owner: what is granted is granted afterwards.';

-- sql/030_permissions.sql

-- Permissions on the broker's objects.
--
-- A permission row says that a grantee (0 = PUBLIC) holds a permission on one object. Owners and administrators hold all.
-- CONTROL includes every other permission of its object, ALTER includes VIEW DEFINITION.
-- Permissions on the class 'database' are the rights to create things, with ALTER ANY to alter all of a kind, and to view all
-- definitions. Source: spec 7.6, 7.7.

create table parley._p_permission (
  class text not null check (
    class in ('database', 'message type', 'contract', 'queue', 'service', 'route', 'certificate', 'remote service binding')
  ),
  object_id integer not null,
  permission text not null,
  grantee regrole not null,
  grantor regrole not null,
  is_grantable boolean not null default false,
  primary key (class, object_id, permission, grantee)
);

comment on table parley._p_permission is 'Who was granted what on which object; grantee 0 is PUBLIC.';

create function parley._p_has_permission(role oid, permission text, class text, object_id integer, owner oid) returns boolean
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
        and (p.permission = 'ALTER ANY ' || upper($3) or ($2 = 'VIEW DEFINITION' and p.permission = $2))
        and (p.grantee = 0::regrole or pg_has_role(role, p.grantee, 'usage'))
    ))
    or parley._p_is_administrator(role);
end
$$;

comment on function parley._p_has_permission(oid, text, text, integer, oid) is
'Tells whether a role holds a permission: by ownership, by grant (to it, to a role it inherits, to PUBLIC), or as administrator.
Arguments: role; permission, such as SEND; class, such as service; object_id; owner, the owner of the object or null.';

create function parley._p_require_permission(caller oid, permission text, class text, object_id integer, name text, owner oid) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley._p_has_permission(caller, permission, class, object_id, owner) is not true then
    if class = 'database' then
      perform parley._p_raise(
        229,
        format('permission denied: %s', permission),
        format('Role %s may not do this in this database.', caller::regrole),
        format('An administrator can allow it: select parley.grant(%L, ''database'', null, %L);', permission, pg_get_userbyid(caller))
      );
    end if;
    perform parley._p_raise(
      229,
      format('permission denied: %s on %s "%s"', permission, class, name),
      format('Role %s does not hold it.', caller::regrole),
      format(
        'Its owner or an administrator can grant it: select parley.grant(%L, %L, %L, %L);',
        permission, class, name, pg_get_userbyid(caller)
      )
    );
  end if;
end
$$;

comment on function parley._p_require_permission(oid, text, text, integer, text, oid) is
'Refuses a caller that lacks a permission.
Errors: 229.';

-- sql/031_visible_objects.sql

-- Which objects the catalog shows to whom (spec 7.6, VIEW DEFINITION).
--
-- A view of the catalog has a row for the owner of its object, for whoever holds any permission on it, for who may see all objects of the class, and
-- for administrators. What the system owns (ids below 65536) is shown to everybody. The rights are those of current_user, who reads the view.
--
-- Cost: the views below stand in subqueries that do not depend on the row. PostgreSQL answers them once for each query, so a row of the catalog
-- costs one question about its owner and one look into a hash table. Locks: none.

create view parley._p_permitted_object with (security_barrier) as
select p.class, p.object_id, p.permission
from parley._p_permission as p
where p.grantee = 0::regrole or pg_catalog.pg_has_role(p.grantee, 'usage');

comment on view parley._p_permitted_object is 'Permissions that whoever reads this holds by a grant: to the role, to one that it inherits, to PUBLIC.';

create view parley._p_visible_class with (security_barrier) as
select c.class
from (
  values ('database'), ('message type'), ('contract'), ('queue'), ('service'), ('route'), ('certificate'), ('remote service binding')
) as c (class)
where (select parley._p_is_administrator(parley._p_current_role()))
  or exists (
    select
    from parley._p_permitted_object as p
    where p.class = 'database' and p.permission in ('VIEW DEFINITION', 'ALTER ANY ' || pg_catalog.upper(c.class))
  );

comment on view parley._p_visible_class is
'Classes of which whoever reads this sees every object: all for administrators and with VIEW DEFINITION on the database, else those with ALTER ANY.
The class database stands for what belongs to no class, such as priorities and peers.';

-- sql/040_message_types.sql

-- Message types: a name, and what a body of that type must be.
--
-- Validation letters: N none, E empty, X XML, J JSON, F what a function of the user's says. The first three are Service
-- Broker's; the others are ours. A body is checked when it is delivered, not by SEND (spec 2.2): see 210_deliver.sql.

create table parley._p_message_type (
  message_type_id integer primary key,
  name text collate "C" not null unique check (name <> '' and length(name) <= 128),
  owner regrole not null,
  validation "char" not null check (validation in ('N', 'E', 'X', 'J', 'F')),
  validation_function regprocedure,
  validation_setter regrole,
  schema_collection text,
  check ((validation_function is null) = (validation_setter is null)),
  check ((validation = 'F') <= (validation_function is not null))
);

comment on table parley._p_message_type is 'Message types (spec 2.2).';
comment on column parley._p_message_type.validation_setter is
'Who set the validation function: it runs only while this role may act as the one whose rights it has.';

create function parley._p_name(kind text, name text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if name is null or name = '' or length(name) > 128 then
    perform parley._p_raise(
      9609,
      format('this is no name for a %s', kind),
      format('It has %s characters; 1 to 128 are allowed.', coalesce(length(name), 0)),
      'Choose a shorter, non-empty name.'
    );
  end if;
  return name;
end
$$;

comment on function parley._p_name(text, text) is
'Checks the length of a new name (spec 2.0).
Errors: 9609.';

create function parley._p_validation(caller oid, validation text, validation_function regprocedure) returns "char"
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_letter "char" := case upper(replace(validation, ' ', '_'))
    when 'NONE' then 'N'
    when 'EMPTY' then 'E'
    when 'WELL_FORMED_XML' then 'X'
    when 'VALID_XML' then 'X'
    when 'JSON' then 'J'
    when 'JSON_SCHEMA' then 'J'
    when 'FUNCTION' then 'F'
  end;
begin
  if v_letter is null then
    perform parley._p_raise(
      8402,
      format('unknown validation "%s"', validation),
      null,
      'Use NONE, EMPTY, WELL_FORMED_XML, VALID_XML, JSON, JSON_SCHEMA or FUNCTION.'
    );
  end if;
  if upper(replace(validation, ' ', '_')) in ('FUNCTION', 'JSON_SCHEMA') and validation_function is null then
    perform parley._p_raise(
      8402,
      format('validation %s needs a function', upper(validation)),
      null,
      'Give validation_function => ''schema.name(bytea)''::regprocedure, a function that returns true for a good body.'
    );
  end if;
  if upper(replace(validation, ' ', '_')) = 'VALID_XML' and validation_function is null then
    perform parley._p_raise(
      8402,
      'validation VALID_XML needs a function',
      'PostgreSQL has no XML Schema validator and no schema collections: without a function a body would only have to be well-formed.',
      'Give validation_function => ''schema.name(bytea)''::regprocedure, or say WELL_FORMED_XML.'
    );
  end if;
  if validation_function is not null then
    if parley._p_may_validate(caller, validation_function) is not true then
      perform parley._p_raise(
        8402,
        format('function %s cannot validate messages', validation_function),
        'It must take one bytea and return boolean. It runs with the rights of its owner when it is SECURITY DEFINER, '
          || 'otherwise with those of the owner of schema parley; you and its owner must be able to act as that role.',
        format('alter function %s security definer; it must belong to you, or to a role that you are a member of.', validation_function)
      );
    end if;
  end if;
  return v_letter;
end
$$;

comment on function parley._p_validation(oid, text, regprocedure) is
'Turns the words of a validation into its letter and checks that its function can serve.
Arguments: caller, who sets it; validation; validation_function.
Errors: 8402.';

create function parley.create_message_type(
  name text,
  validation text default 'NONE',
  validation_function regprocedure default null,
  schema_collection text default null,
  "authorization" text default null,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_id integer;
begin
  perform parley._p_require_permission(v_caller, 'CREATE MESSAGE TYPE', 'database', 0, null, null);
  insert into parley._p_message_type (message_type_id, name, owner, validation, validation_function, validation_setter, schema_collection)
  values (
    nextval('parley._p_object_id'),
    parley._p_name('message type', create_message_type.name),
    parley._p_new_owner(v_caller, "authorization"),
    parley._p_validation(v_caller, create_message_type.validation, create_message_type.validation_function),
    create_message_type.validation_function,
    case when create_message_type.validation_function is not null then v_caller end,
    create_message_type.schema_collection
  )
  on conflict do nothing
  returning message_type_id into v_id;
  if v_id is null then
    perform parley._p_raise(
      2714,
      format('message type "%s" exists already', name),
      null,
      'Use alter_message_type to change its validation, or choose another name.'
    );
  end if;
  return v_id;
end
$$;

comment on function parley.create_message_type(text, text, regprocedure, text, text, parley.caller) is
'Creates a message type and returns its id.
Arguments: name, 1 to 128 characters, compared byte by byte; validation, NONE, EMPTY, WELL_FORMED_XML, VALID_XML, JSON, JSON_SCHEMA or FUNCTION;
validation_function, takes the body as bytea, null when it is empty, and returns whether it is good (required for VALID_XML, JSON_SCHEMA and FUNCTION);
it should be SECURITY DEFINER and belong to the caller, and is asked about bodies of up to 16 MiB;
schema_collection, only kept, for VALID_XML;
authorization, the owner (default: the caller).
Errors: 229 not allowed, 2714 exists, 8402 bad validation, 9609 bad name, 15151 unknown owner.
Source: spec 2.2.';

create function parley.alter_message_type(
  name text,
  validation text,
  validation_function regprocedure default null,
  schema_collection text default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_type parley._p_message_type;
begin
  v_type := parley._p_find_message_type(v_caller, name, 'ALTER');
  update parley._p_message_type as t
  set validation = parley._p_validation(v_caller, alter_message_type.validation, alter_message_type.validation_function),
    validation_function = alter_message_type.validation_function,
    validation_setter = case when alter_message_type.validation_function is not null then v_caller end,
    schema_collection = alter_message_type.schema_collection
  where t.message_type_id = v_type.message_type_id;
  -- Senders that skip validation must look again.
  perform parley._p_forget_routes_of_type(v_type.message_type_id);
end
$$;

comment on function parley.alter_message_type(text, text, regprocedure, text, parley.caller) is
'Changes the validation of a message type; messages already in a queue stay as they are.
Arguments: as create_message_type.
Errors: 229, 8402, 9663 system object, 15151 not found.
Source: spec 2.2.';

create function parley.drop_message_type(name text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_type parley._p_message_type;
  v_contract text;
begin
  v_type := parley._p_find_message_type(v_caller, name, 'CONTROL');
  select c.name into v_contract
  from parley._p_contract_message_type as u
  join parley._p_contract as c using (service_contract_id)
  where u.message_type_id = v_type.message_type_id
  limit 1;
  if found then
    perform parley._p_raise(
      3716,
      format('message type "%s" is still used', name),
      format('A contract names it: "%s".', v_contract),
      'Drop the contract first.'
    );
  end if;
  -- What was sent on a contract that is gone may still be received, and must then have a type.
  if exists (select from parley._p_message as m where m.message_type_id = v_type.message_type_id)
    or exists (select from parley._p_transmission as t where t.message_type_id = v_type.message_type_id)
    or exists (select from parley._p_transit as t where t.message_type_id = v_type.message_type_id)
    or exists (select from parley._p_retained as r where r.message_type_id = v_type.message_type_id) then
    perform parley._p_raise(
      3716,
      format('message type "%s" is still used', name),
      'Messages of this type wait to be received, or are kept by retention.',
      'Receive them or end their conversations first: see parley.stuck_conversations.'
    );
  end if;
  delete from parley._p_permission as p where p.class = 'message type' and p.object_id = v_type.message_type_id;
  delete from parley._p_message_type as t where t.message_type_id = v_type.message_type_id;
end
$$;

comment on function parley.drop_message_type(text, parley.caller) is
'Drops a message type that no contract lists and no waiting message has.
Errors: 229, 3716 still used, 9663 system object, 15151 not found.
Source: spec 2.2.';

create function parley._p_find_message_type(caller oid, name text, permission text) returns parley._p_message_type
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_type parley._p_message_type;
begin
  select * into v_type from parley._p_message_type as t where t.name = _p_find_message_type.name;
  if not found then
    perform parley._p_raise(
      15151,
      format('message type "%s" does not exist', name),
      'Names are compared byte by byte.' || parley._p_did_you_mean(name, array(select t.name from parley._p_message_type as t)),
      'See parley.service_message_types.'
    );
  end if;
  if v_type.message_type_id < 65536 and permission <> 'REFERENCES' then
    perform parley._p_raise(9663, format('message type "%s" belongs to the system', name), null, 'System objects cannot be changed.');
  end if;
  perform parley._p_require_permission(caller, permission, 'message type', v_type.message_type_id, name, v_type.owner);
  return v_type;
end
$$;

comment on function parley._p_find_message_type(oid, text, text) is
'Finds a message type the caller may use for something.
Errors: 229, 9663 when a system object would be changed, 15151.';

create function parley._p_is_system_message(message_type_id integer) returns boolean
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select message_type_id in (1, 2, 5)
$$;

comment on function parley._p_is_system_message(integer) is
'Tells whether only the broker sends messages of a type: Error, EndDialog, DialogTimer (spec 2.2).';

create function parley._p_did_you_mean(name text, names text[]) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    (select format(' Did you mean "%s"?', n.name) from unnest(names) as n (name) where lower(n.name) = lower($1) and n.name <> $1 limit 1),
    ''
  )
$$;

comment on function parley._p_did_you_mean(text, text[]) is 'Names the object that differs by case only, for a message.';

-- sql/050_contracts.sql

-- Contracts: which message types a conversation may carry, and which side may send each.
--
-- A contract never changes once created (spec 2.3), so endpoints may remember what it allows.

create table parley._p_contract (
  service_contract_id integer primary key,
  name text collate "C" not null unique check (name <> '' and length(name) <= 128),
  owner regrole not null
);

comment on table parley._p_contract is 'Contracts (spec 2.3).';

create table parley._p_contract_message_type (
  service_contract_id integer not null references parley._p_contract,
  message_type_id integer not null references parley._p_message_type,
  is_sent_by_initiator boolean not null,
  is_sent_by_target boolean not null,
  primary key (service_contract_id, message_type_id),
  check (is_sent_by_initiator or is_sent_by_target)
);

comment on table parley._p_contract_message_type is 'The message types of each contract, and who may send them.';

create function parley._p_create_contract(name text, message_types jsonb, "authorization" text, caller parley.caller) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_id integer;
  v_type parley._p_message_type;
  v_usage record;
begin
  perform parley._p_require_permission(v_caller, 'CREATE CONTRACT', 'database', 0, null, null);
  if upper(name) = 'ANY' then
    perform parley._p_raise(
      9609,
      'a contract cannot be called ANY',
      null,
      'ANY stands for every contract in a broker priority; choose another name.'
    );
  end if;
  if jsonb_typeof(message_types) is distinct from 'object' then
    perform parley._p_raise(
      8402,
      'message_types must be a JSON object',
      null,
      'Write {"message type": "INITIATOR" or "TARGET" or "ANY", ...}.'
    );
  end if;
  insert into parley._p_contract (service_contract_id, name, owner)
  values (nextval('parley._p_object_id'), parley._p_name('contract', _p_create_contract.name), parley._p_new_owner(v_caller, "authorization"))
  on conflict do nothing
  returning service_contract_id into v_id;
  if v_id is null then
    perform parley._p_raise(
      2714,
      format('contract "%s" exists already', name),
      null,
      'A contract cannot be altered: drop it and create it again, or choose another name.'
    );
  end if;
  for v_usage in
    select t.key as name, upper(regexp_replace(t.value, '^\s*(sent\s+by\s+)?', '', 'i')) as sent_by
    from jsonb_each_text(message_types) as t
  loop
    if v_usage.sent_by is null or v_usage.sent_by not in ('INITIATOR', 'TARGET', 'ANY') then
      perform parley._p_raise(
        8402,
        format('message type "%s" is sent by "%s"', v_usage.name, v_usage.sent_by),
        null,
        'Use INITIATOR, TARGET or ANY.'
      );
    end if;
    v_type := parley._p_find_message_type(v_caller, v_usage.name, 'REFERENCES');
    if parley._p_is_system_message(v_type.message_type_id) then
      perform parley._p_raise(
        9663,
        format('message type "%s" belongs to the system', v_usage.name),
        'The broker itself sends messages of this type, on every conversation, whatever its contract says.',
        'Leave it out of the contract; end_conversation and begin_conversation_timer bring such messages about.'
      );
    end if;
    insert into parley._p_contract_message_type (service_contract_id, message_type_id, is_sent_by_initiator, is_sent_by_target)
    values (v_id, v_type.message_type_id, v_usage.sent_by in ('INITIATOR', 'ANY'), v_usage.sent_by in ('TARGET', 'ANY'));
  end loop;
  perform from parley._p_contract_message_type as u where u.service_contract_id = v_id and u.is_sent_by_initiator;
  if not found then
    perform parley._p_raise(
      8492,
      format('contract "%s" gives the initiator nothing to send', name),
      null,
      'Let at least one message type be sent by INITIATOR or ANY.'
    );
  end if;
  return v_id;
end
$$;

comment on function parley._p_create_contract(text, jsonb, text, parley.caller) is
'Does what create_contract does. The ticket is no argument of that: with it calls of its three forms could be taken for one another.
Errors: those of create_contract.';

create function parley.create_contract(name text, message_types jsonb, "authorization" text default null) returns integer
language sql
set search_path = pg_catalog, pg_temp
as $$
  select parley._p_create_contract(name, message_types, "authorization", parley.current_caller())
$$;

comment on function parley.create_contract(text, jsonb, text) is
'Creates a contract and returns its id.
Arguments: name, 1 to 128 characters; message_types, a JSON object of message type to INITIATOR, TARGET or ANY; authorization, the owner (default: the caller).
A JSON value keeps the last of two equal keys; pass the text itself, as a literal or of type text, to have a message type named twice refused.
Errors: 229 not allowed, 2714 exists, 8402 bad argument, 8492 nothing for the initiator, 9609 bad name, 9663 EndDialog, Error or DialogTimer,
15151 unknown message type.
Source: spec 2.2, 2.3.';

create function parley.create_contract(
  name text, message_types text[], sent_by text default 'ANY', "authorization" text default null,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_repeated text;
begin
  select t.name into v_repeated from unnest(message_types) as t (name) group by t.name having count(*) > 1 limit 1;
  if found then
    perform parley._p_raise_repeated_message_type(v_repeated);
  end if;
  return parley._p_create_contract(
    name, (select coalesce(jsonb_object_agg(t.name, sent_by), '{}') from unnest(message_types) as t (name)), "authorization", caller
  );
end
$$;

comment on function parley.create_contract(text, text[], text, text, parley.caller) is
'Creates a contract all of whose message types are sent by the same side.
Arguments: name; message_types, their names; sent_by, INITIATOR, TARGET or ANY; authorization, the owner (default: the caller).
Errors: 8403 a message type named twice, and those of create_contract with JSON.
Source: spec 2.3.';

create function parley._p_create_contract_of_text(name text, message_types text, "authorization" text, caller parley.caller) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_types jsonb;
  v_repeated text;
begin
  begin
    v_types := message_types::jsonb;
    if jsonb_typeof(v_types) = 'object' then
      select t.name into v_repeated from json_object_keys(message_types::json) as t (name) group by t.name having count(*) > 1 limit 1;
    end if;
  exception
    when data_exception then
      perform parley._p_raise(8402, 'message_types is not JSON', null, 'Write {"message type": "INITIATOR" or "TARGET" or "ANY", ...}.');
  end;
  if v_repeated is not null then
    perform parley._p_raise_repeated_message_type(v_repeated);
  end if;
  return parley._p_create_contract(name, v_types, "authorization", caller);
end
$$;

comment on function parley._p_create_contract_of_text(text, text, text, parley.caller) is
'Does what create_contract does with JSON that is written as a literal.
Errors: those of create_contract.';

-- A literal has no type yet; without this one PostgreSQL could not choose between JSON and a list.
create function parley.create_contract(name text, message_types text, "authorization" text default null) returns integer
language sql
set search_path = pg_catalog, pg_temp
as $$
  select parley._p_create_contract_of_text(name, message_types, "authorization", parley.current_caller())
$$;

comment on function parley.create_contract(text, text, text) is
'Creates a contract from JSON that is written as a literal.
Errors: 8402 not JSON, 8403 a message type named twice, and those of create_contract with JSON.
Source: spec 2.3.';

create function parley._p_raise_repeated_message_type(name text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_raise(
    8403,
    format('message type "%s" is named twice', name),
    null,
    'Name each message type once; ANY lets both sides send it.'
  );
end
$$;

comment on function parley._p_raise_repeated_message_type(text) is
'Refuses a contract that names a message type twice.
Errors: 8403, always.';

create function parley._p_find_contract(caller oid, name text, permission text) returns parley._p_contract
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_contract parley._p_contract;
begin
  select * into v_contract from parley._p_contract as c where c.name = _p_find_contract.name;
  if not found then
    perform parley._p_raise(
      15151,
      format('contract "%s" does not exist', name),
      'Names are compared byte by byte.' || parley._p_did_you_mean(name, array(select c.name from parley._p_contract as c)),
      'See parley.service_contracts.'
    );
  end if;
  if v_contract.service_contract_id < 65536 and permission <> 'REFERENCES' then
    perform parley._p_raise(9663, format('contract "%s" belongs to the system', name), null, 'System objects cannot be changed.');
  end if;
  perform parley._p_require_permission(caller, permission, 'contract', v_contract.service_contract_id, name, v_contract.owner);
  return v_contract;
end
$$;

comment on function parley._p_find_contract(oid, text, text) is
'Finds a contract the caller may use for something.
Errors: 229, 9663 when a system object would be changed, 15151.';

create function parley.drop_contract(name text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_contract parley._p_contract;
  v_user text;
begin
  v_contract := parley._p_find_contract(v_caller, name, 'CONTROL');
  select format('service "%s"', s.name) into v_user
  from parley._p_service_contract as u
  join parley._p_service as s using (service_id)
  where u.service_contract_id = v_contract.service_contract_id
  union all
  select format('broker priority "%s"', p.name)
  from parley._p_priority as p
  where p.service_contract_id = v_contract.service_contract_id
  limit 1;
  if found then
    perform parley._p_raise(
      3716,
      format('contract "%s" is still used', name),
      format('It is named by %s.', v_user),
      'Drop or alter that first.'
    );
  end if;
  -- No message may be on the way that nobody could see yet: the endpoints are locked against their senders.
  perform from parley._p_endpoint as e where e.service_contract_id = v_contract.service_contract_id order by e.endpoint_id for update;
  -- Live conversations on it end with an error on both sides (spec 2.3).
  perform parley._p_break_conversations(
    array(select e.endpoint_id from parley._p_endpoint as e where e.service_contract_id = v_contract.service_contract_id),
    8487,
    format('The contract "%s" was dropped.', name),
    8487
  );
  delete from parley._p_permission as p where p.class = 'contract' and p.object_id = v_contract.service_contract_id;
  delete from parley._p_contract_message_type as u where u.service_contract_id = v_contract.service_contract_id;
  delete from parley._p_contract as c where c.service_contract_id = v_contract.service_contract_id;
end
$$;

comment on function parley.drop_contract(text, parley.caller) is
'Drops a contract that no service and no priority names; live conversations on it end with error -8487 on both sides.
Errors: 229, 3716 still used, 9663 system object, 15151 not found.
Source: spec 2.3.';

-- sql/060_queues.sql

-- Queues: where messages wait. This file holds the objects; what waits is in 100_messages.sql.
--
-- Each queue owns four sequences. Its position sequence numbers messages in the order of arrival; senders hold a lock
-- on it to the end of their transaction, which tells readers who is still on the way (docs/architecture.md).
-- Its doorbell tells senders until when somebody sleeps on the queue, so that nobody is notified for nothing.
-- Its rollback sequence remembers, outside any transaction, how often a message came back (spec 5.6); its counter sequence, who counted that.

create table parley._p_queue (
  queue_id integer primary key,
  lookup_name text collate "C" not null unique,
  schema_name text not null,
  name text not null,
  owner regrole not null,
  position_sequence regclass not null,
  doorbell_sequence regclass not null,
  rollback_sequence regclass not null,
  counter_sequence regclass not null,
  is_receive_enabled boolean not null,
  is_enqueue_enabled boolean not null,
  is_retention_enabled boolean not null,
  is_poison_message_handling_enabled boolean not null,
  rollbacks_before_disable integer not null default 5 check (rollbacks_before_disable between 1 and 15),
  poison_action text not null default 'SET_ASIDE' check (poison_action in ('SET_ASIDE', 'DISABLE_QUEUE')),
  is_activation_enabled boolean not null default false,
  activation_procedure text,
  max_readers integer not null default 0 check (max_readers between 0 and 32767),
  execute_as text,
  -- Who set these two; each of them must be able to act as the role that the procedure runs as, whenever it is called.
  procedure_set_by regrole,
  execute_as_set_by regrole,
  -- Bit n is set when an endpoint of priority n has existed here; a queue that only knows priority 5 is the fast case.
  priorities integer not null default 32,
  -- Messages that arrived while the queue was off stand at or after this position; they are still the sender's.
  disabled_position bigint,
  create_date timestamptz not null default now(),
  modify_date timestamptz not null default now()
);

comment on table parley._p_queue is 'Queues (spec 2.4).';

create function parley._p_queue_name(queue text, out schema_name text, out name text)
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parts text[] := '{}'::text[];
  v_part text;
begin
  -- What does not parse to its end must not be taken for the queue that a part of it names.
  if queue !~ '^(\[([^\]]|\]\])*\]|"([^"]|"")*"|[^.\["]+)(\.(\[([^\]]|\]\])*\]|"([^"]|"")*"|[^.\["]+))*$' then
    perform parley._p_raise(
      9609,
      format('queue name "%s" is malformed', queue),
      'A part that contains a point, a bracket or a double quote stands in brackets, with ] doubled.',
      format('For a queue of that very name write [%s].', replace(queue, ']', ']]'))
    );
  end if;
  for v_part in
    select coalesce(replace(m[2], ']]', ']'), replace(m[3], '""', '"'), m[4])
    from regexp_matches(coalesce(queue, ''), '(\[((?:[^\]]|\]\])*)\]|"((?:[^"]|"")*)"|([^.\["]+))(?:\.|$)', 'g') as m
  loop
    v_parts := v_parts || v_part;
  end loop;
  if cardinality(v_parts) > 3 or (cardinality(v_parts) = 3 and v_parts[1] <> current_database()) then
    perform parley._p_raise(
      9609,
      format('queue name "%s" has too many parts or names another database', queue),
      null,
      'Write queue, schema.queue or [schema].[queue].'
    );
  end if;
  name := v_parts[cardinality(v_parts)];
  schema_name := coalesce(nullif(v_parts[cardinality(v_parts) - 1], ''), 'dbo');
  if name is null or name = '' or length(name) > 128 or length(schema_name) > 128 or left(name, 1) = '#' then
    perform parley._p_raise(
      9609,
      format('"%s" is no name for a queue', queue),
      'A queue name has 1 to 128 characters and does not begin with #.',
      'Write queue, schema.queue or [schema].[queue].'
    );
  end if;
end
$$;

comment on function parley._p_queue_name(text) is
'Takes a queue name of one to three parts apart; parts may be in brackets or double quotes, the default schema is dbo.
Errors: 9609.';

create function parley._p_lookup_name(schema_name text, name text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select string_agg(case when p.part ~ '[.\["]' then '[' || replace(p.part, ']', ']]') || ']' else p.part end, '.' order by p.ordinal)
    from unnest(array[nullif(schema_name, 'dbo'), name]) with ordinality as p (part, ordinal)
    where p.part is not null
  );
end
$$;

comment on function parley._p_lookup_name(text, text) is
'Gives the name under which a queue is found, which no other queue can have: its own, with the schema in front unless that is dbo;
in brackets where that is needed.';

create function parley._p_find_queue(queue text) returns parley._p_queue
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
  v_name record;
begin
  select * into v_queue from parley._p_queue as q where q.lookup_name = queue;
  if not found then
    v_name := parley._p_queue_name(queue);
    select * into v_queue from parley._p_queue as q where q.lookup_name = parley._p_lookup_name(v_name.schema_name, v_name.name);
  end if;
  if not found then
    perform parley._p_raise(
      208,
      format('queue "%s" does not exist', queue),
      'Names are compared exactly.' || parley._p_did_you_mean(queue, array(select q.lookup_name from parley._p_queue as q)),
      'See parley.service_queues, or create it with parley.create_queue.'
    );
  end if;
  return v_queue;
end
$$;

comment on function parley._p_find_queue(text) is
'Finds a queue by its name in one to three parts.
Errors: 208 not found, 9609 malformed name.';

create function parley._p_find_queue(caller oid, queue text, permission text) returns parley._p_queue
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
begin
  v_queue := parley._p_find_queue(queue);
  if v_queue.queue_id < 65536 and permission in ('ALTER', 'CONTROL') then
    perform parley._p_raise(9663, format('queue "%s" belongs to the system', queue), null, 'System objects cannot be changed.');
  end if;
  perform parley._p_require_permission(caller, permission, 'queue', v_queue.queue_id, v_queue.lookup_name, v_queue.owner);
  return v_queue;
end
$$;

comment on function parley._p_find_queue(oid, text, text) is
'Finds a queue the caller may use for something.
Errors: 208, 229, 9609, 9663 when a system object would be changed.';

create function parley._p_add_queue(queue_id integer, schema_name text, name text, owner oid) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_what text;
begin
  foreach v_what in array array['position', 'doorbell', 'rollback', 'counter'] loop
    execute format('create sequence parley.%I minvalue 0 start 1', format('_p_queue_%s_%s', queue_id, v_what));
    perform parley._p_take_back_relation(format('parley.%I', format('_p_queue_%s_%s', queue_id, v_what))::regclass);
  end loop;
  insert into parley._p_queue (
    queue_id, lookup_name, schema_name, name, owner, position_sequence, doorbell_sequence, rollback_sequence, counter_sequence,
    is_receive_enabled, is_enqueue_enabled, is_retention_enabled, is_poison_message_handling_enabled
  )
  values (
    queue_id, parley._p_lookup_name(schema_name, name), schema_name, name, owner,
    format('parley._p_queue_%s_position', queue_id)::regclass,
    format('parley._p_queue_%s_doorbell', queue_id)::regclass,
    format('parley._p_queue_%s_rollback', queue_id)::regclass,
    format('parley._p_queue_%s_counter', queue_id)::regclass,
    true, true, false, true
  );
end
$$;

comment on function parley._p_add_queue(integer, text, text, oid) is 'Creates a queue with its sequences and the settings every new queue has.';

create function parley.create_queue(
  queue text,
  status boolean default true,
  retention boolean default false,
  poison_message_handling boolean default true,
  activation_procedure text default null,
  max_queue_readers integer default null,
  execute_as text default null,
  activation boolean default null,
  "authorization" text default null,
  poison_action text default null,
  poison_rollbacks integer default null,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_id integer;
  v_name record := parley._p_queue_name(queue);
begin
  perform parley._p_require_permission(v_caller, 'CREATE QUEUE', 'database', 0, null, null);
  -- Serialises two creations of the same name, so that the second gets our error and not one of a sequence.
  perform pg_advisory_xact_lock(hashtextextended('parley queue ' || parley._p_lookup_name(v_name.schema_name, v_name.name), 0));
  perform from parley._p_queue as q where q.lookup_name = parley._p_lookup_name(v_name.schema_name, v_name.name);
  if found then
    perform parley._p_raise(
      2714,
      format('queue "%s" exists already', queue),
      null,
      'Use alter_queue to change it, or choose another name.'
    );
  end if;
  v_id := nextval('parley._p_object_id');
  perform parley._p_add_queue(v_id, v_name.schema_name, v_name.name, parley._p_new_owner(v_caller, "authorization"));
  perform parley._p_create_queue_view(v_id);
  perform parley._p_alter_queue(
    v_caller, v_id, status, retention, poison_message_handling, activation_procedure, max_queue_readers, execute_as,
    coalesce(activation, activation_procedure is not null), poison_action, poison_rollbacks
  );
  return v_id;
end
$$;

comment on function parley.create_queue(text, boolean, boolean, boolean, text, integer, text, boolean, text, text, integer, parley.caller) is
'Creates a queue, and a view of it in schema parley_queue, and returns its id.
Arguments: queue, its name in one or two parts; status, off means that nothing can be received or enqueued; retention, keep copies until the conversation ends;
poison_message_handling, count the rollbacks of a message; activation_procedure, a procedure without arguments; max_queue_readers, 0 to 32767;
execute_as, SELF, OWNER or a role that the caller may act as; activation, whether it is on (default: when a procedure is given);
authorization, the owner (default: the caller);
poison_action, what becomes of a message that has come back too often: SET_ASIDE (the default), its conversation is passed by until
parley.retry_poison or parley.discard_poison, or DISABLE_QUEUE, as SQL Server does; poison_rollbacks, 1 to 15, how often is too often (default 5).
Errors: 229 not allowed, 2714 exists, 8402 poison_action, poison_rollbacks or max_queue_readers out of range, 9609 bad name,
9613 no execute_as, 9614 no valid procedure, 9620 a function, 9653 arguments, 9742 temporary, 15151 unknown owner or role,
15517 the caller may not act as the role that the procedure would run as.
Source: spec 2.4.';

create function parley.alter_queue(
  queue text,
  status boolean default null,
  retention boolean default null,
  poison_message_handling boolean default null,
  activation_procedure text default null,
  max_queue_readers integer default null,
  execute_as text default null,
  activation boolean default null,
  poison_action text default null,
  poison_rollbacks integer default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'ALTER');
begin
  perform parley._p_alter_queue(
    v_caller, v_queue.queue_id, status, retention, poison_message_handling, activation_procedure, max_queue_readers, execute_as, activation,
    poison_action, poison_rollbacks
  );
end
$$;

comment on function parley.alter_queue(text, boolean, boolean, boolean, text, integer, text, boolean, text, integer, parley.caller) is
'Changes what is given of a queue; what is null stays as it is. Switching status on forgets the rollbacks counted so far.
What is set aside stays so, whatever becomes of the settings.
Arguments: as create_queue.
Errors: 208 not found, 229 not allowed, 8402 out of range, 9613, 9614, 9620, 9653, 9742 activation, 9663 system object,
9717 and 9718 the queue is activated in another way, 15151 unknown role,
15517 the caller may not act as the role that the procedure would run as.
Source: spec 2.4, 5.1.';

create function parley.drop_activation(queue text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'ALTER');
begin
  update parley._p_queue as q
  set activation_procedure = null, max_readers = 0, execute_as = null, procedure_set_by = null, execute_as_set_by = null,
    is_activation_enabled = false, modify_date = now()
  where q.queue_id = v_queue.queue_id;
end
$$;

comment on function parley.drop_activation(text, parley.caller) is
'Removes all activation settings of a queue.
Errors: 208 not found, 229 not allowed, 9663 system object.
Source: spec 2.4, ACTIVATION (DROP).';

create function parley._p_drop_unused_sequences() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '10ms'
as $$
declare
  v_sequence regclass;
begin
  for v_sequence in
    select c.oid
    from pg_class as c
    where c.relnamespace = 'parley'::regnamespace
      and c.relkind = 'S'
      and c.relname like '\_p\_queue\_%'
      and not exists (select from parley._p_queue as q where c.oid in (q.position_sequence, q.doorbell_sequence, q.rollback_sequence, q.counter_sequence))
  loop
    begin
      execute format('drop sequence %s', v_sequence);
    exception
      when lock_not_available then
        null;
    end;
  end loop;
end
$$;

comment on function parley._p_drop_unused_sequences() is
'Drops the sequences of queues that are gone. Whoever waits in RECEIVE on such a queue still holds a lock on them, and learns that it is
gone only when that has committed: so what is locked is left to the next call.';

create function parley.drop_queue(queue text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'CONTROL');
  v_service text;
begin
  select s.name into v_service from parley._p_service as s where s.queue_id = v_queue.queue_id limit 1;
  if found then
    perform parley._p_raise(
      3716,
      format('queue "%s" is still used', queue),
      format('Service "%s" is bound to it.', v_service),
      'Drop the service, or move it with alter_service.'
    );
  end if;
  perform parley._p_drop_event_notifications(array(
    select n.notification_id from parley._p_event_notification as n where n.queue_id = v_queue.queue_id
  ));
  execute format('drop view if exists parley_queue.%I', parley._p_queue_view_name(v_queue.queue_id));
  delete from parley._p_permission as p where p.class = 'queue' and p.object_id = v_queue.queue_id;
  delete from parley._p_scan_hint as h where h.lane / 16 = v_queue.queue_id;
  perform parley._p_keep_totals(v_queue.queue_id);
  delete from parley._p_queue as q where q.queue_id = v_queue.queue_id;
  perform parley._p_drop_unused_sequences();
end
$$;

comment on function parley.drop_queue(text, parley.caller) is
'Drops a queue that no service uses; sessions waiting in RECEIVE on it fail at once.
Errors: 208 not found, 229 not allowed, 3716 still used, 9663 system object.
Source: spec 2.4.';

-- sql/061_alter_queue.sql

-- The settings of a queue, their rules, and what changing them sets off.
--
-- Locks: the queue's row. Switching retention on or off waits for the senders on the queue and makes them look again (_p_forget_routes).

create function parley._p_check_activation(procedure text, execute_as text) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_kind "char";
  v_arguments smallint;
  v_is_temporary boolean;
begin
  if procedure is null then
    perform parley._p_raise(
      9614,
      'activation is on but there is no procedure',
      null,
      'Give activation_procedure, or leave activation off.'
    );
  end if;
  if execute_as is null then
    perform parley._p_raise(9613, 'activation is on but nobody to execute as', null, 'Give execute_as: SELF, OWNER or the name of a role.');
  end if;
  select p.prokind, p.pronargs, n.nspname like 'pg\_temp\_%' into v_kind, v_arguments, v_is_temporary
  from pg_proc as p
  join pg_namespace as n on n.oid = p.pronamespace
  where p.oid = to_regproc(procedure);
  if not found then
    perform parley._p_raise(
      9614,
      format('procedure %s does not exist', procedure),
      'Its name must be qualified with its schema and must not be overloaded.',
      'Create it with CREATE PROCEDURE, then try again.'
    );
  elsif v_is_temporary then
    perform parley._p_raise(
      9742,
      format('procedure %s is temporary', procedure),
      'It is known to the session that has created it, and gone with it.',
      'Create it in a schema that lasts.'
    );
  elsif v_kind <> 'p' then
    perform parley._p_raise(
      9620,
      format('%s is not a procedure', procedure),
      null,
      'Activation runs CALL procedure(): create it with CREATE PROCEDURE.'
    );
  elsif v_arguments > 0 then
    perform parley._p_raise(9653, format('procedure %s takes arguments', procedure), null, 'An activation procedure takes none.');
  end if;
end
$$;

comment on function parley._p_check_activation(text, text) is
'Checks that activation can be switched on.
Errors: 9613, 9614, 9620, 9653, 9742.
Source: spec 2.4.';

create function parley._p_execute_as(execute_as text, owner oid) returns oid
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select r.oid
  from pg_roles as r
  where case execute_as when 'OWNER' then r.oid = owner else execute_as in (r.rolname, quote_ident(r.rolname)) end
  order by execute_as = r.rolname desc
  limit 1
$$;

comment on function parley._p_execute_as(text, oid) is
'Gives the role that a procedure runs as, or null when there is none.
Arguments: execute_as, as a queue has it; owner of the queue.';

create function parley._p_acting_refusal(queue parley._p_queue) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select format(
      'role %s, which set %s of the activation, may not act as role %s, which the procedure runs as',
      coalesce(pg_get_userbyid(s.setter), 'that nobody knows'), s.what, pg_get_userbyid(r.role)
    )
  from (select parley._p_execute_as(queue.execute_as, queue.owner) as role) as r
  cross join (values (queue.procedure_set_by::oid, 'the procedure'), (queue.execute_as_set_by::oid, 'execute_as')) as s (setter, what)
  where r.role is not null and parley._p_may_act_as(s.setter, r.role) is not true
  order by s.what desc
  limit 1
$$;

comment on function parley._p_acting_refusal(parley._p_queue) is
'Says why the procedure of a queue must not be run as the role that it would be: because who set it, or the role, could not act as that role himself.
Null when nothing speaks against it.';

create function parley._p_require_acting(queue parley._p_queue) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_refusal text := parley._p_acting_refusal(queue);
begin
  if v_refusal is not null then
    perform parley._p_raise(
      15517,
      format('cannot execute as role "%s"', pg_get_userbyid(parley._p_execute_as(queue.execute_as, queue.owner))),
      'In this activation ' || v_refusal || '.',
      'Let a member of that role set both: select parley.alter_queue(queue, activation_procedure => ..., execute_as => ...); or choose execute_as => ''SELF''.'
    );
  end if;
end
$$;

comment on function parley._p_require_acting(parley._p_queue) is
'Refuses an activation whose procedure would run as a role that who set it could not act as.
Errors: 15517.';

create function parley._p_alter_queue(
  caller oid, queue_id integer,
  status boolean,
  retention boolean,
  poison_message_handling boolean,
  activation_procedure text,
  max_queue_readers integer,
  execute_as text,
  activation boolean,
  poison_action text,
  poison_rollbacks integer
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_old parley._p_queue;
  v_new parley._p_queue;
begin
  select * into v_old from parley._p_queue as q where q.queue_id = _p_alter_queue.queue_id for no key update;
  if max_queue_readers is not null and max_queue_readers not between 0 and 32767 then
    perform parley._p_raise(
      8402,
      format('max_queue_readers is %s', max_queue_readers),
      '0 to 32767 are allowed.',
      'Give a number in that range.'
    );
  end if;
  if upper(poison_action) not in ('SET_ASIDE', 'DISABLE_QUEUE') then
    perform parley._p_raise(
      8402,
      format('poison_action is "%s"', poison_action),
      'It says what becomes of a message that has come back too often.',
      'Give SET_ASIDE or DISABLE_QUEUE.'
    );
  elsif poison_rollbacks not between 1 and 15 then
    perform parley._p_raise(8402, format('poison_rollbacks is %s', poison_rollbacks), '1 to 15 are allowed.', 'Give a number in that range.');
  end if;
  if upper(execute_as) not in ('SELF', 'OWNER') then
    perform parley._p_role(execute_as);
  end if;
  update parley._p_queue as q
  set is_receive_enabled = coalesce(status, q.is_receive_enabled),
    is_enqueue_enabled = coalesce(status, q.is_enqueue_enabled),
    is_retention_enabled = coalesce(retention, q.is_retention_enabled),
    is_poison_message_handling_enabled = coalesce(poison_message_handling, q.is_poison_message_handling_enabled),
    poison_action = coalesce(upper(_p_alter_queue.poison_action), q.poison_action),
    rollbacks_before_disable = coalesce(poison_rollbacks, q.rollbacks_before_disable),
    activation_procedure = coalesce(_p_alter_queue.activation_procedure, q.activation_procedure),
    max_readers = coalesce(max_queue_readers, q.max_readers),
    execute_as = coalesce(
      case upper(_p_alter_queue.execute_as) when 'SELF' then caller::regrole::text when 'OWNER' then 'OWNER' else _p_alter_queue.execute_as end,
      q.execute_as
    ),
    procedure_set_by = case when _p_alter_queue.activation_procedure is null then q.procedure_set_by else caller::regrole end,
    execute_as_set_by = case when _p_alter_queue.execute_as is null then q.execute_as_set_by else caller::regrole end,
    is_activation_enabled = coalesce(activation, q.is_activation_enabled),
    disabled_position = case
      when coalesce(status, q.is_enqueue_enabled) then null
      else coalesce(q.disabled_position, (coalesce(pg_sequence_last_value(q.position_sequence), 0) + 1) * 1024)
    end,
    modify_date = now()
  where q.queue_id = _p_alter_queue.queue_id
  returning * into v_new;
  -- To change one of the two is to choose what runs as the role, whatever the other was set by.
  if num_nonnulls(activation_procedure, execute_as, nullif(activation, false)) > 0 and v_new.activation_procedure is not null then
    perform parley._p_require_acting(v_new);
  end if;
  if v_new.is_activation_enabled then
    perform parley._p_check_activation(v_new.activation_procedure, v_new.execute_as);
    perform parley._p_require_sole_activator(v_new.queue_id, 'procedure');
    if v_new.max_readers = 0 then
      raise warning using
        message = format('activation of queue "%s" is on but max_queue_readers is 0', v_new.lookup_name),
        detail = 'Service Broker error 9648. No reader will be started.',
        hint = 'Give max_queue_readers.';
    end if;
  end if;
  if status then
    perform setval(v_new.rollback_sequence, 0);
    update parley._p_event_notification as n set is_told = false where n.queue_id = _p_alter_queue.queue_id and n.is_told;
  end if;
  if v_new.is_retention_enabled is distinct from v_old.is_retention_enabled then
    perform parley._p_forget_copy_numbers(queue_id);
    perform parley._p_forget_routes_of_queue(queue_id);
  end if;
end
$$;

comment on function parley._p_alter_queue(oid, integer, boolean, boolean, boolean, text, integer, text, boolean, text, integer) is
'Changes the settings of a queue; null leaves a setting as it is.
Errors: 8402, 9613, 9614, 9620, 9653, 9742, 9717, 9718, 15151, 15517.';

-- sql/070_services.sql

-- Services: named addresses, each bound to one queue, each with the contracts it accepts as target.

create table parley._p_service (
  service_id integer primary key,
  name text collate "C" not null unique check (name <> '' and length(name) <= 256),
  owner regrole not null,
  queue_id integer not null references parley._p_queue
);

comment on table parley._p_service is 'Services (spec 2.5).';

create index on parley._p_service (queue_id);

create table parley._p_service_contract (
  service_id integer not null references parley._p_service,
  service_contract_id integer not null references parley._p_contract,
  primary key (service_id, service_contract_id)
);

comment on table parley._p_service_contract is 'The contracts each service accepts as target.';

create index on parley._p_service_contract (service_contract_id);

create function parley._p_add_service_contracts(caller oid, service_id integer, contracts text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text;
  v_contract parley._p_contract;
begin
  foreach v_name in array coalesce(contracts, '{}') loop
    v_contract := parley._p_find_contract(caller, v_name, 'REFERENCES');
    insert into parley._p_service_contract (service_id, service_contract_id)
    values (_p_add_service_contracts.service_id, v_contract.service_contract_id)
    on conflict do nothing;
    if not found then
      perform parley._p_raise(8404, format('contract "%s" is named twice', v_name), null, 'Name each contract of a service once.');
    end if;
  end loop;
end
$$;

comment on function parley._p_add_service_contracts(oid, integer, text[]) is
'Lets a service accept more contracts.
Errors: 229, 8404 named twice or accepted already, 15151 not found.';

create function parley.create_service(
  name text, queue text, contracts text[] default '{}', "authorization" text default null,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_id integer;
  v_queue parley._p_queue;
begin
  perform parley._p_require_permission(v_caller, 'CREATE SERVICE', 'database', 0, null, null);
  if upper(name) = 'ANY' then
    perform parley._p_raise(
      9609,
      'a service cannot be called ANY',
      null,
      'ANY stands for every service in a broker priority; choose another name.'
    );
  end if;
  v_queue := parley._p_find_queue(v_caller, queue, 'REFERENCES');
  insert into parley._p_service (service_id, name, owner, queue_id)
  values (nextval('parley._p_object_id'), parley._p_name('service', create_service.name), parley._p_new_owner(v_caller, "authorization"), v_queue.queue_id)
  on conflict do nothing
  returning service_id into v_id;
  if v_id is null then
    perform parley._p_raise(
      2714,
      format('service "%s" exists already', name),
      null,
      'Use alter_service to change it, or choose another name.'
    );
  end if;
  perform parley._p_add_service_contracts(v_caller, v_id, contracts);
  -- What was sent to this name before it existed can be delivered now.
  perform parley._p_deliver_delayed(name);
  return v_id;
end
$$;

comment on function parley.create_service(text, text, text[], text, parley.caller) is
'Creates a service and returns its id. Messages already sent to that name are delivered.
Arguments: name, 1 to 128 characters, compared byte by byte; queue; contracts it accepts as target (none: it can only begin dialogs);
authorization, the owner (default: the caller).
Errors: 208 no such queue, 229 not allowed, 2714 exists, 8404 contract named twice, 9609 bad name, 15151 unknown contract or owner.
Source: spec 2.5.';

create function parley._p_find_service(caller oid, name text, permission text) returns parley._p_service
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_service parley._p_service;
begin
  select * into v_service from parley._p_service as s where s.name = _p_find_service.name;
  if not found then
    perform parley._p_raise(
      15151,
      format('service "%s" does not exist', name),
      'Names are compared byte by byte.' || parley._p_did_you_mean(name, array(select s.name from parley._p_service as s)),
      'See parley.services.'
    );
  end if;
  if v_service.service_id < 65536 and permission in ('ALTER', 'CONTROL') then
    perform parley._p_raise(9663, format('service "%s" belongs to the system', name), null, 'System objects cannot be changed.');
  end if;
  perform parley._p_require_permission(caller, permission, 'service', v_service.service_id, name, v_service.owner);
  return v_service;
end
$$;

comment on function parley._p_find_service(oid, text, text) is
'Finds a service the caller may use for something.
Errors: 229, 9663 when a system object would be changed, 15151.';

create function parley.alter_service(
  name text,
  queue text default null,
  add_contracts text[] default null,
  drop_contracts text[] default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_service parley._p_service := parley._p_find_service(v_caller, name, 'ALTER');
  v_queue parley._p_queue;
  v_dropped integer;
  v_name text;
begin
  if queue is null and coalesce(cardinality(add_contracts), 0) + coalesce(cardinality(drop_contracts), 0) = 0 then
    perform parley._p_raise(
      8493,
      format('nothing to change in service "%s"', name),
      null,
      'Give a queue, add_contracts or drop_contracts.'
    );
  end if;
  foreach v_name in array coalesce(drop_contracts, '{}') loop
    delete from parley._p_service_contract as u
    using parley._p_contract as c
    where u.service_id = v_service.service_id
      and c.service_contract_id = u.service_contract_id
      and c.name = v_name
    returning u.service_contract_id into v_dropped;
    if not found then
      perform parley._p_raise(
        15151,
        format('service "%s" does not accept contract "%s"', name, v_name),
        null,
        'See parley.service_contract_usages.'
      );
    end if;
    perform parley._p_break_conversations(
      array(
        select e.endpoint_id
        from parley._p_endpoint as e
        where e.service_id = v_service.service_id and e.service_contract_id = v_dropped and not e.is_initiator
      ),
      8469,
      format('The service "%s" no longer accepts the contract "%s".', name, v_name),
      8469
    );
  end loop;
  perform parley._p_add_service_contracts(v_caller, v_service.service_id, add_contracts);
  if queue is not null then
    v_queue := parley._p_find_queue(v_caller, queue, 'REFERENCES');
    if v_queue.queue_id <> v_service.queue_id then
      perform parley._p_move_service(v_service, v_queue);
    end if;
  end if;
end
$$;

comment on function parley.alter_service(text, text, text[], text[], parley.caller) is
'Moves a service, with its waiting messages, to another queue; lets it accept more or fewer contracts.
Conversations on a contract it no longer accepts end with error -8469 on both sides.
Errors: 208 no such queue, 229 not allowed, 8404 accepted already, 8493 nothing to change, 9663 system object, 15151 not found.
Source: spec 2.5.';

create function parley.drop_service(name text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_service parley._p_service := parley._p_find_service(v_caller, name, 'CONTROL');
  v_priority text;
begin
  select p.name into v_priority from parley._p_priority as p where p.local_service_id = v_service.service_id limit 1;
  if found then
    perform parley._p_raise(
      3716,
      format('service "%s" is still used', name),
      format('Broker priority "%s" names it.', v_priority),
      'Drop the priority first.'
    );
  end if;
  perform parley._p_drop_endpoints_of_service(v_service.service_id, format('The service "%s" was dropped.', name));
  delete from parley._p_permission as p where p.class = 'service' and p.object_id = v_service.service_id;
  delete from parley._p_service_contract as u where u.service_id = v_service.service_id;
  delete from parley._p_service as s where s.service_id = v_service.service_id;
end
$$;

comment on function parley.drop_service(text, parley.caller) is
'Drops a service with its endpoints and its waiting messages; the other sides of its open conversations get error -8470.
Errors: 229 not allowed, 3716 a priority names it, 9663 system object, 15151 not found.
Source: spec 2.5.';

-- sql/080_priorities.sql

-- Broker priorities: which level, 1 to 10, a new endpoint gets.
--
-- The level is fixed when the endpoint is created and never changes (spec 2.9).

create table parley._p_priority (
  priority_id integer primary key,
  name text collate "C" not null unique check (name <> '' and length(name) <= 128),
  service_contract_id integer references parley._p_contract,
  local_service_id integer references parley._p_service,
  remote_service_name text collate "C",
  priority smallint not null check (priority between 1 and 10)
);

comment on table parley._p_priority is 'Broker priorities (spec 2.9); null means ANY.';

create function parley._p_priority_of(service_contract_id integer, local_service_id integer, remote_service_name text) returns smallint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    (
      select p.priority
      from parley._p_priority as p
      where (p.service_contract_id is null or p.service_contract_id = $1)
        and (p.local_service_id is null or p.local_service_id = $2)
        and (p.remote_service_name is null or p.remote_service_name = $3)
      order by p.service_contract_id is null, p.local_service_id is null, p.remote_service_name is null, p.priority_id
      limit 1
    ),
    5::smallint
  );
end
$$;

comment on function parley._p_priority_of(integer, integer, text) is
'Gives the priority of a new endpoint: the best match in the eight ranks of spec 2.9, else 5.';

create function parley._p_priority_parts(
  caller oid, contract_name text, local_service_name text, remote_service_name text, priority_level integer,
  out service_contract_id integer, out local_service_id integer, out remote_name text, out priority smallint
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if upper(contract_name) <> 'ANY' then
    service_contract_id := (parley._p_find_contract(caller, contract_name, 'REFERENCES')).service_contract_id;
  end if;
  if upper(local_service_name) <> 'ANY' then
    local_service_id := (parley._p_find_service(caller, local_service_name, 'VIEW DEFINITION')).service_id;
  end if;
  if upper(remote_service_name) <> 'ANY' then
    remote_name := remote_service_name;
  end if;
  if priority_level is null or priority_level not between 1 and 10 then
    perform parley._p_raise(
      8402,
      format('priority level %s is out of range', coalesce(priority_level::text, 'null')),
      'Levels are 1 (low) to 10 (high).',
      'Give a level from 1 to 10.'
    );
  end if;
  priority := priority_level;
end
$$;

comment on function parley._p_priority_parts(oid, text, text, text, integer) is
'Checks the parts of a priority and finds what they name.
Errors: 229, 8402, 15151.';

create function parley.create_broker_priority(
  name text,
  contract_name text default 'ANY',
  local_service_name text default 'ANY',
  remote_service_name text default 'ANY',
  priority_level integer default 5,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_id integer;
  v_parts record;
begin
  perform parley._p_require_administrator(v_caller, 'create_broker_priority');
  v_parts := parley._p_priority_parts(v_caller, contract_name, local_service_name, remote_service_name, priority_level);
  insert into parley._p_priority (priority_id, name, service_contract_id, local_service_id, remote_service_name, priority)
  values (
    nextval('parley._p_object_id'), parley._p_name('broker priority', create_broker_priority.name),
    v_parts.service_contract_id, v_parts.local_service_id, v_parts.remote_name, v_parts.priority
  )
  on conflict do nothing
  returning priority_id into v_id;
  if v_id is null then
    perform parley._p_raise(2714, format('broker priority "%s" exists already', name), null, 'Use alter_broker_priority to change it.');
  end if;
  return v_id;
end
$$;

comment on function parley.create_broker_priority(text, text, text, text, integer, parley.caller) is
'Creates a broker priority and returns its id. It governs endpoints created from now on.
Arguments: name; contract_name, local_service_name, remote_service_name, a name or ANY; priority_level, 1 (low) to 10 (high).
Errors: 2714 exists, 8402 level out of range, 9609 bad name, 15151 not found or not an administrator.
Source: spec 2.9.';

create function parley.alter_broker_priority(
  name text,
  contract_name text default null,
  local_service_name text default null,
  remote_service_name text default null,
  priority_level integer default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_old parley._p_priority;
  v_parts record;
begin
  perform parley._p_require_administrator(v_caller, 'alter_broker_priority');
  if coalesce(contract_name, local_service_name, remote_service_name, priority_level::text) is null then
    perform parley._p_raise(8493, format('nothing to change in broker priority "%s"', name), null, 'Give at least one item.');
  end if;
  select * into v_old from parley._p_priority as p where p.name = alter_broker_priority.name for update;
  if not found then
    perform parley._p_raise(15151, format('broker priority "%s" does not exist', name), null, 'See parley.conversation_priorities.');
  end if;
  v_parts := parley._p_priority_parts(
    v_caller, coalesce(contract_name, 'ANY'), coalesce(local_service_name, 'ANY'), coalesce(remote_service_name, 'ANY'),
    coalesce(priority_level, v_old.priority)
  );
  update parley._p_priority as p
  set service_contract_id = case when contract_name is null then p.service_contract_id else v_parts.service_contract_id end,
    local_service_id = case when local_service_name is null then p.local_service_id else v_parts.local_service_id end,
    remote_service_name = case when alter_broker_priority.remote_service_name is null then p.remote_service_name else v_parts.remote_name end,
    priority = v_parts.priority
  where p.priority_id = v_old.priority_id;
end
$$;

comment on function parley.alter_broker_priority(text, text, text, text, integer, parley.caller) is
'Changes what is given of a broker priority; existing endpoints keep their level.
Errors: 8402 level out of range, 8493 nothing to change, 15151 not found or not an administrator.
Source: spec 2.9.';

create function parley.drop_broker_priority(
  name text,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  perform parley._p_require_administrator(v_caller, 'drop_broker_priority');
  delete from parley._p_priority as p where p.name = drop_broker_priority.name;
  if not found then
    perform parley._p_raise(15151, format('broker priority "%s" does not exist', name), null, 'See parley.conversation_priorities.');
  end if;
end
$$;

comment on function parley.drop_broker_priority(text, parley.caller) is
'Drops a broker priority.
Errors: 15151 not found or not an administrator.
Source: spec 2.9.';

-- sql/090_routes.sql

-- Routes: which address leads to a service, or to a broker instance (spec 2.6).
--
-- Two tables in one. Routes that are not inbound are those of this database: they govern messages of conversations that have an end here.
-- Inbound ones are the share of this database in the table of the server: they govern what arrives from the network (092_inbound_routes.sql).
-- A route keeps its address as it was written, and beside it what follows from it: next_hop, the address in the form that links are named
-- by, and rank, its place in the order of spec 6.3. Expired routes stay, are not found, and are revived by alter_route.
-- Locks: the row of the route; then, when it was changed, of the conversations that it concerns (604_destination_statements.sql).

create table parley._p_route (
  route_id integer primary key,
  name text collate "C" not null unique check (name <> '' and length(name) <= 128),
  owner regrole not null,
  is_inbound boolean not null,
  remote_service_name text collate "C",
  broker_instance text,
  expires_at timestamptz,
  address text not null,
  mirror_address text,
  next_hop text collate "C" not null,
  rank smallint not null check (rank between 1 and 4),
  check (remote_service_name is not null or broker_instance is null)
);

comment on table parley._p_route is 'Routes (spec 2.6); a null service or instance means any, a null expiry never.';
comment on column parley._p_route.next_hop is 'LOCAL, TRANSPORT, tcp://host:port, or tcp://host:port,host:port with the mirror; hosts in lower case.';
comment on column parley._p_route.rank is 'Which is preferred among candidates (spec 6.3): 1 with a mirror, 2 LOCAL, 3 network, 4 TRANSPORT.';

create index on parley._p_route (coalesce(remote_service_name, ''), is_inbound);

create function parley._p_network_address(address text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parts text[] := regexp_match(lower(address collate "C"), '^tcp://(?:\[([0-9a-f.]*:[0-9a-f:.]+)\]|([a-z0-9_.-]+)):([0-9]{1,5})/?$');
  v_host text;
begin
  if v_parts is null or v_parts[3]::integer not between 1 and 65535 then
    return null;
  elsif v_parts[1] is not null then
    -- No way to write IPv4, and nobody is reached at no address.
    v_host := case when v_parts[1]::inet = '::1' or not v_parts[1]::inet << '::/96' then format('[%s]', host(v_parts[1]::inet)) end;
  elsif v_parts[2] ~ '^[0-9.]+$' then
    -- Else inet would take less than four numbers, and octal ones.
    v_host := case when v_parts[2] ~ '^(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){3}$' then nullif(host(v_parts[2]::inet), '0.0.0.0') end;
  elsif length(v_parts[2]) <= 253 and v_parts[2] ~ '^([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.?$' then
    v_host := v_parts[2];
  end if;
  return 'tcp://' || v_host || ':' || v_parts[3]::integer;
exception
  when invalid_text_representation then
    return null;
end
$$;

comment on function parley._p_network_address(text) is
'Gives tcp://host:port in the form that links are named by: lower case, numbers in their short form. Null when it is none: the host must be a name of
DNS or NetBIOS, an IPv4 address, or an IPv6 address in brackets; the port must be given.
Source: spec 2.6.';

create function parley._p_check_route_text(name text, clause text, value text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if value = '' then
    perform parley._p_raise(
      9659, format('route "%s": %s is empty', name, clause), null, 'Give a value; what is left out means any service, any instance, no mirror.'
    );
  elsif length(value) > 256 then
    perform parley._p_raise(
      9660, format('route "%s": %s is too long', name, clause), format('It has %s characters; 256 are allowed.', length(value)), 'Shorten it.'
    );
  end if;
end
$$;

comment on function parley._p_check_route_text(text, text, text) is
'Checks the length of a clause.
Errors: 9659, 9660.';

create function parley._p_check_route(route parley._p_route) returns parley._p_route
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_word text := upper(route.address);
  v_is_word boolean := v_word in ('LOCAL', 'TRANSPORT');
  v_mirror text;
begin
  perform parley._p_check_route_text(route.name, 'service_name', route.remote_service_name);
  perform parley._p_check_route_text(route.name, 'address', coalesce(route.address, ''));
  perform parley._p_check_route_text(route.name, 'mirror_address', route.mirror_address);
  if route.broker_instance is not null and route.remote_service_name is null then
    perform parley._p_raise(
      9662, format('route "%s" names a broker instance and no service', route.name), null, 'Give service_name too, or leave broker_instance out.'
    );
  elsif route.broker_instance is not null and route.remote_service_name = 'SQL/ServiceBroker/BrokerConfiguration' then
    perform parley._p_raise(
      9662,
      format('route "%s" leads to the broker configuration service and names a broker instance', route.name),
      'The broker asks whichever instance offers that service.',
      'Leave broker_instance out.'
    );
  elsif route.mirror_address is not null and (route.remote_service_name is null or route.broker_instance is null) then
    perform parley._p_raise(
      9661,
      format('route "%s" has a mirror and does not say of what', route.name),
      'A mirror is the second place of one database.',
      'Give service_name and broker_instance too.'
    );
  elsif route.mirror_address is not null and (v_is_word or upper(route.mirror_address) in ('LOCAL', 'TRANSPORT')) then
    perform parley._p_raise(
      9743,
      format('route "%s": with a mirror, both addresses must be network addresses', route.name),
      format('They are "%s" and "%s".', route.address, route.mirror_address),
      'Give both as tcp://host:port, or leave mirror_address out.'
    );
  elsif v_word = 'TRANSPORT' and route.remote_service_name is not null then
    perform parley._p_raise(
      9745,
      format('route "%s" takes the address from the service name, and names a service', route.name),
      'TRANSPORT is for every service whose name begins with tcp://host:port.',
      'Leave service_name out, or give the address itself.'
    );
  end if;
  route.next_hop := case when v_is_word then v_word else parley._p_network_address(route.address) end;
  v_mirror := parley._p_network_address(route.mirror_address);
  if route.next_hop is null or (route.mirror_address is not null and v_mirror is null) then
    perform parley._p_raise(
      9744,
      format('route "%s": "%s" is no address', route.name, case when route.next_hop is null then route.address else route.mirror_address end),
      'An address is LOCAL, TRANSPORT, or tcp://host:port; the host is a name, an IPv4 address, or an IPv6 address in brackets.',
      'Correct it; brokers usually listen on port 4022.'
    );
  elsif route.next_hop = v_mirror then
    perform parley._p_raise(
      9747, format('route "%s": the mirror is at the same address', route.name), null, 'Give the address of the other server, or leave mirror_address out.'
    );
  end if;
  route.rank := case when route.mirror_address is not null then 1 when v_word = 'LOCAL' then 2 when v_word = 'TRANSPORT' then 4 else 3 end;
  route.next_hop := route.next_hop || coalesce(',' || substr(v_mirror, 7), '');
  return route;
end
$$;

comment on function parley._p_check_route(parley._p_route) is
'Checks the clauses of a route together, and fills in next_hop and rank.
Errors: 9659, 9660, 9661, 9662, 9743, 9744, 9745, 9747.
Source: spec 2.6.';

create function parley._p_route_expiry(name text, lifetime integer) returns timestamptz
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if lifetime <= 0 then
    perform parley._p_raise(
      9746,
      format('route "%s": lifetime %s is out of range', name, lifetime),
      'It is counted in seconds, 1 to 2147483647.',
      'Give a positive number of seconds, or leave it out.'
    );
  end if;
  return clock_timestamp() + make_interval(secs => lifetime);
end
$$;

comment on function parley._p_route_expiry(text, integer) is
'Gives when a route of a lifetime in seconds expires, null for null.
Errors: 9746.';

create function parley._p_follow_route(route parley._p_route) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- The broker configuration service is asked for every service.
  v_service text := nullif(route.remote_service_name, 'SQL/ServiceBroker/BrokerConfiguration');
begin
  if route.is_inbound then
    perform pg_notify('parley', 'routes');
  else
    perform parley._p_reroute(v_service);
    perform parley._p_deliver_delayed(v_service);
  end if;
end
$$;

comment on function parley._p_follow_route(parley._p_route) is
'Looks again where the messages go that a route concerns, now that it has come, gone or changed; tells the daemons.';

create function parley.create_route(
  name text,
  address text,
  service_name text default null,
  broker_instance text default null,
  lifetime integer default null,
  mirror_address text default null,
  is_inbound boolean default false,
  "authorization" text default null,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_route parley._p_route;
  v_id integer;
begin
  if coalesce(is_inbound, false) then
    perform parley._p_require_administrator(v_caller, 'create_route of an inbound route');
  else
    perform parley._p_require_permission(v_caller, 'CREATE ROUTE', 'database', 0, null, null);
  end if;
  v_route.name := parley._p_name('route', create_route.name);
  v_route.owner := parley._p_new_owner(v_caller, "authorization");
  v_route.is_inbound := coalesce(create_route.is_inbound, false);
  v_route.remote_service_name := service_name;
  v_route.broker_instance := parley._p_broker_instance(create_route.broker_instance);
  v_route.expires_at := parley._p_route_expiry(create_route.name, lifetime);
  v_route.address := create_route.address;
  v_route.mirror_address := create_route.mirror_address;
  v_route := parley._p_check_route(v_route);
  insert into parley._p_route (
    route_id, name, owner, is_inbound, remote_service_name, broker_instance, expires_at, address, mirror_address, next_hop, rank
  )
  values (
    nextval('parley._p_object_id'), v_route.name, v_route.owner, v_route.is_inbound, v_route.remote_service_name, v_route.broker_instance,
    v_route.expires_at, v_route.address, v_route.mirror_address, v_route.next_hop, v_route.rank
  )
  on conflict do nothing
  returning route_id into v_id;
  if v_id is null then
    perform parley._p_raise(2714, format('route "%s" exists already', name), null, 'Use alter_route to change it, or choose another name.');
  end if;
  perform parley._p_follow_route(v_route);
  return v_id;
end
$$;

comment on function parley.create_route(text, text, text, text, integer, text, boolean, text, parley.caller) is
'Creates a route and returns its id. Messages that wait for one go where it leads.
Arguments: name; address, tcp://host:port of the broker at the other end or of one that forwards, LOCAL for this server, or TRANSPORT for services whose
names begin with the address; service_name, compared byte by byte (null: any service); broker_instance, the service_broker_guid of the target database, or
CURRENT DATABASE (null: any); lifetime in seconds (null: for ever); mirror_address, tcp://host:port of the second server of a database, which needs
service_name and broker_instance; is_inbound, whether it is for messages that arrive from the network, which only an administrator may say;
authorization, the owner (default: the caller). Service SQL/ServiceBroker/BrokerConfiguration is the one that is asked for missing routes.
Errors: 229 not allowed, 2714 exists, 8413 malformed broker_instance, 9609 bad name, 9659 empty address or service, 9660 longer than 256 characters,
9661 mirror without service and instance, 9662 instance without service, 9743 mirror of LOCAL or TRANSPORT, 9744 malformed address, 9745 TRANSPORT with
a service, 9746 lifetime out of range, 9747 both addresses the same, 15151 unknown owner or not an administrator.
Source: spec 2.6.';

create function parley._p_route_to_change(caller oid, name text, permission text) returns parley._p_route
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_route parley._p_route;
begin
  select * into v_route from parley._p_route as r where r.name = _p_route_to_change.name for update;
  if not found then
    perform parley._p_raise(
      15151,
      format('route "%s" does not exist', name),
      'Names are compared byte by byte.' || parley._p_did_you_mean(name, array(select r.name from parley._p_route as r)),
      'See parley.routes.'
    );
  end if;
  if v_route.is_inbound then
    perform parley._p_require_administrator(caller, 'changing an inbound route');
  else
    perform parley._p_require_permission(caller, permission, 'route', v_route.route_id, name, v_route.owner);
  end if;
  return v_route;
end
$$;

comment on function parley._p_route_to_change(oid, text, text) is
'Finds and locks a route that the caller may change.
Errors: 229, 15151.';

create function parley.alter_route(
  name text,
  address text default null,
  service_name text default null,
  broker_instance text default null,
  lifetime integer default null,
  mirror_address text default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_old parley._p_route := parley._p_route_to_change(v_caller, name, 'ALTER');
  v_route parley._p_route := v_old;
begin
  if coalesce(address, service_name, broker_instance, lifetime::text, mirror_address) is null then
    perform parley._p_raise(8493, format('nothing to change in route "%s"', name), null, 'Give at least one item.');
  end if;
  v_route.address := coalesce(alter_route.address, v_route.address);
  v_route.remote_service_name := coalesce(service_name, v_route.remote_service_name);
  v_route.broker_instance := coalesce(parley._p_broker_instance(alter_route.broker_instance), v_route.broker_instance);
  v_route.expires_at := coalesce(parley._p_route_expiry(name, lifetime), v_route.expires_at);
  v_route.mirror_address := coalesce(alter_route.mirror_address, v_route.mirror_address);
  v_route := parley._p_check_route(v_route);
  update parley._p_route as r
  set remote_service_name = v_route.remote_service_name, broker_instance = v_route.broker_instance, expires_at = v_route.expires_at,
    address = v_route.address, mirror_address = v_route.mirror_address, next_hop = v_route.next_hop, rank = v_route.rank
  where r.route_id = v_route.route_id;
  perform parley._p_follow_route(v_route);
  if v_old.remote_service_name is distinct from v_route.remote_service_name then
    perform parley._p_follow_route(v_old);
  end if;
end
$$;

comment on function parley.alter_route(text, text, text, text, integer, text, parley.caller) is
'Changes what is given of a route; a lifetime counts from now, so it revives a route that has expired. What a route names it can name otherwise, not leave
open again: for any service, any instance, no mirror or for ever, drop the route and create it anew.
Arguments: as create_route; null leaves what is there.
Errors: 229 not allowed, 8413 malformed broker_instance, 8493 nothing to change, 9659, 9660, 9661, 9662, 9743, 9744, 9745, 9746, 9747 as create_route,
15151 not found, or inbound and the caller is not an administrator.
Source: spec 2.6.';

create function parley.drop_route(name text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_route parley._p_route := parley._p_route_to_change(v_caller, name, 'CONTROL');
begin
  delete from parley._p_permission as p where p.class = 'route' and p.object_id = v_route.route_id;
  delete from parley._p_route as r where r.route_id = v_route.route_id;
  perform parley._p_follow_route(v_route);
end
$$;

comment on function parley.drop_route(text, parley.caller) is
'Drops a route. Conversations that went by it wait until another leads to their far side.
Errors: 229 not allowed, 15151 not found, or inbound and the caller is not an administrator.
Source: spec 2.6.';

-- sql/091_find_route.sql

-- Which way messages of a conversation go: the candidates of spec 6.2, and the choice among them of 6.3.
--
-- One statement ranks all candidates of all steps, so the ordinary case costs one index probe for each of three keys: the service, any
-- service, and the broker configuration service. Among equals a hash of the conversation and the address decides (the lowest wins): so a
-- conversation always goes the same way, conversations spread evenly, and a route that comes or goes moves only those that it concerns.
-- The daemon has the same rule for inbound routes, in memory (inbound_route.go), so the hash is one that both can reckon: this is its owner.
-- This database cannot know whether another one of the same daemon has a service. Then the answer is LOCAL, and beside it where else the
-- conversation goes (otherwise), or why it waits (status), when none has.
-- Locks: none, but for those of a request to the broker configuration service (425_dynamic_routing.sql).

create function parley._p_best_route(
  far_service text, far_broker_instance text, conversation_id uuid, is_inbound boolean, may_ask boolean, beside_local integer,
  out step integer, out next_hop text, out broker_instance text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  select c.step, c.next_hop, c.broker_instance into step, next_hop, broker_instance
  from (
    select
      case
        when r.remote_service_name = far_service and r.broker_instance = far_broker_instance then 1
        when r.remote_service_name = far_service and r.broker_instance is null then 2
        when r.remote_service_name = far_service and far_broker_instance is null then 3
        when r.remote_service_name is null then 5
        when r.remote_service_name <> far_service and may_ask then 4
      end as step,
      r.next_hop, r.rank, r.broker_instance, r.route_id
    from parley._p_route as r
    where coalesce(r.remote_service_name, '') = any (array[far_service, 'SQL/ServiceBroker/BrokerConfiguration', ''])
      and r.is_inbound = _p_best_route.is_inbound
      and (r.expires_at is null or r.expires_at > clock_timestamp())
  ) as c
  where c.step is not null
    and (beside_local is null or (c.step = beside_local and c.rank > 2))
  order by c.step,
    case c.step when 3 then sha256(uuid_send(conversation_id) || convert_to(c.broker_instance, 'UTF8')) end,
    c.broker_instance,
    c.rank,
    sha256(uuid_send(conversation_id) || convert_to(c.next_hop, 'UTF8')),
    c.route_id
  limit 1;
end
$$;

comment on function parley._p_best_route(text, text, uuid, boolean, boolean, integer) is
'Gives the best route that has not expired, by the steps of spec 6.2 and, among those of the first step that has any, the ranks of 6.3; nulls when there is
none. Step 4 means that the broker configuration service can be asked.
Arguments: far_service and far_broker_instance (null: any); conversation_id, which spreads conversations; is_inbound, which table; may_ask, whether step 4
counts; beside_local, only what is left of a step when LOCAL is not to be had (null: everything).
Source: spec 6.2, 6.3.';

create function parley._p_address_of(next_hop text, service_name text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return case next_hop when 'TRANSPORT' then parley._p_network_address(substring(service_name from '^[^:/]+://[^/]+')) else next_hop end;
end
$$;

comment on function parley._p_address_of(text, text) is
'Gives the address that a next hop means for a service: for TRANSPORT, that with which its name begins, or null when it does not.';

create function parley._p_is_here(service_name text, broker_instance text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (select from parley._p_service as s where s.name = service_name)
    and (broker_instance is null or broker_instance = (select b.service_broker_guid::text from parley._p_broker as b));
end
$$;

comment on function parley._p_is_here(text, text) is 'Tells whether this database has a service, and is the broker instance that is asked for (null: any).';

create function parley._p_why_no_route(far_service text, far_broker_instance text, is_local boolean) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley._p_is_asking(far_service) then
    return format('The broker configuration service was asked for a route to the service "%s", and has not answered yet.', far_service);
  elsif far_broker_instance <> (select b.service_broker_guid::text from parley._p_broker as b) then
    return format('The broker instance %s is not this database, and there is no route to it.', far_broker_instance);
  elsif is_local then
    return format('The target service "%s" does not exist in this database, and there is no route to it.', far_service)
      || parley._p_did_you_mean(far_service, array(select s.name from parley._p_service as s));
  end if;
  return format('There is no route to the service "%s".', far_service)
    || parley._p_did_you_mean(far_service, array(select r.remote_service_name from parley._p_route as r where r.remote_service_name is not null));
end
$$;

comment on function parley._p_why_no_route(text, text, boolean) is
'Tells why a message waits for a route: 9770 asked, 9795 another instance, 9796 LOCAL and no such service (is_local), 9750 no route (spec 6.12).';

create function parley._p_look_for_route(
  far_service text, far_broker_instance text, conversation_id uuid, may_ask boolean,
  out step integer, out address text, out status text, out otherwise text, out broker_instance text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_route record := parley._p_best_route(far_service, far_broker_instance, conversation_id, false, may_ask, null);
  v_own text;
begin
  step := v_route.step;
  if step = 4 then
    return;
  end if;
  broker_instance := coalesce(far_broker_instance, v_route.broker_instance);
  if step is null and far_broker_instance is not null then
    select b.service_broker_guid::text into v_own from parley._p_broker as b;
    if far_broker_instance <> v_own or parley._p_is_here(far_service, v_own) then
      -- Step 6. Whether another instance is at hand only the daemon knows.
      v_route.next_hop := 'LOCAL';
    end if;
  end if;
  address := parley._p_address_of(v_route.next_hop, far_service);
  if address is null and v_route.next_hop = 'TRANSPORT' then
    status := format('The service name "%s" does not begin with tcp://host:port, as the route to it, TRANSPORT, requires.', far_service);
  elsif address is null then
    status := parley._p_why_no_route(far_service, broker_instance, false);
  elsif address = 'LOCAL' and not parley._p_is_here(far_service, broker_instance) then
    status := parley._p_why_no_route(far_service, broker_instance, true);
    otherwise := parley._p_address_of(
      (parley._p_best_route(far_service, broker_instance, conversation_id, false, false, case step when 3 then 1 else step end)).next_hop, far_service
    );
  end if;
end
$$;

comment on function parley._p_look_for_route(text, text, uuid, boolean) is
'Finds the way of a conversation to its far side, as _p_find_route, and asks nobody: step 4 is told when the broker configuration service is to be asked.
Arguments: those of _p_find_route; may_ask, whether step 4 counts.
Source: spec 6.2, 6.3.';

create function parley._p_find_route(
  far_service text, far_broker_instance text, conversation_id uuid,
  out address text, out status text, out otherwise text, out broker_instance text
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_route record := parley._p_look_for_route(far_service, far_broker_instance, conversation_id, true);
begin
  if v_route.step = 4 then
    if parley._p_ask_broker_configuration(far_service) then
      status := parley._p_why_no_route(far_service, far_broker_instance, false);
      return;
    end if;
    v_route := parley._p_look_for_route(far_service, far_broker_instance, conversation_id, false);
  end if;
  address := v_route.address;
  status := v_route.status;
  otherwise := v_route.otherwise;
  broker_instance := v_route.broker_instance;
end
$$;

comment on function parley._p_find_route(text, text, uuid) is
'Finds the way of a conversation to its far side, and asks the broker configuration service when that is the next step.
Arguments: far_service; far_broker_instance in canonical form, null as long as it may be any; conversation_id.
Gives address: LOCAL, or tcp://host:port in lower case, with ,host:port of a mirror behind it, or null when it has to wait, for the reason in status.
With LOCAL, when this database does not have the service or is not the instance: otherwise, the address to go to when no other database of the daemon has
it, and status, why it waits when that is null too. broker_instance: the instance, as the conversation or else the route says.
Source: spec 6.2, 6.3, 6.5, 6.12.';

-- sql/092_certificates.sql

-- Certificates of roles, for dialogs (spec 2.11, 7.3 to 7.5): whom a sealed message is for, and who has signed it.
--
-- A certificate is a pair of public keys, X25519 to seal for and Ed25519 to verify with, a subject and a validity, in one value of bytes:
-- PARLEYC1, start and expiry as 8 bytes each (seconds since 1970, big-endian), the signing key and the sealing key (32 bytes each), the subject in
-- UTF-8. The SHA-256 of these bytes is its fingerprint. Nobody has signed it: it is trusted because it was installed, under a role, and what it
-- proves is that somebody acts for that role (spec 7.2). The same bytes are installed at both ends; here and there the role may differ.
-- A private key is only ever here sealed under a master key that lives outside the database, in a file of the daemon, so the database and its backups
-- open nothing. Its first bytes name the master key: 1, then the first 8 bytes of that key's SHA-256.
-- Locks: the certificate's row. Cost: none for who sends or receives; the daemon looks once a second for what it uses.

create table parley._p_certificate (
  certificate_id integer primary key,
  name text collate "C" not null unique check (name <> '' and length(name) <= 128),
  owner regrole not null,
  fingerprint bytea not null unique,
  certificate bytea not null,
  subject text not null,
  signing_key bytea not null,
  sealing_key bytea not null,
  start_date timestamptz not null,
  expiry_date timestamptz not null,
  private_key bytea,
  is_active_for_begin_dialog boolean not null,
  revoked_at timestamptz,
  create_date timestamptz not null default now()
);

comment on table parley._p_certificate is 'Certificates of dialogs (spec 2.11); with a sealed private key when they are ours.';

create index on parley._p_certificate (owner);

create function parley._p_read_certificate(
  certificate bytea,
  out fingerprint bytea, out subject text, out signing_key bytea, out sealing_key bytea, out start_date timestamptz, out expiry_date timestamptz
)
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_dates bigint[];
begin
  if length(certificate) not between 89 and 344 or substring(certificate from 1 for 8) <> convert_to('PARLEYC1', 'UTF8') then
    perform parley._p_raise(15297, 'this is no certificate', null, 'Give what parley certificate export writes, without the lines around it.');
  end if;
  v_dates := array[
    ('x' || encode(substring(certificate from 9 for 8), 'hex'))::bit(64)::bigint,
    ('x' || encode(substring(certificate from 17 for 8), 'hex'))::bit(64)::bigint
  ];
  if v_dates[1] < 0 or v_dates[1] >= v_dates[2] or v_dates[2] > 253402300799 then
    perform parley._p_raise(15297, 'the certificate is malformed', 'Its validity ends before it begins, or is out of range.', 'Ask its owner for a good one.');
  end if;
  fingerprint := sha256(certificate);
  start_date := to_timestamp(v_dates[1]);
  expiry_date := to_timestamp(v_dates[2]);
  signing_key := substring(certificate from 25 for 32);
  sealing_key := substring(certificate from 57 for 32);
  subject := convert_from(substring(certificate from 89), 'UTF8');
exception
  when character_not_in_repertoire or untranslatable_character then
    perform parley._p_raise(15297, 'the certificate is malformed', 'Its subject is no UTF-8.', 'Ask its owner for a good one.');
end
$$;

comment on function parley._p_read_certificate(bytea) is
'Takes a certificate apart.
Errors: 15297 malformed.';

create function parley._p_find_certificate(caller oid, name text, permission text) returns parley._p_certificate
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_certificate parley._p_certificate;
begin
  select * into v_certificate from parley._p_certificate as c where c.name = _p_find_certificate.name for update;
  if not found then
    perform parley._p_raise(
      15151,
      format('certificate "%s" does not exist', name),
      'Names are compared byte by byte.' || parley._p_did_you_mean(name, array(select c.name from parley._p_certificate as c)),
      'See parley.certificates.'
    );
  end if;
  perform parley._p_require_permission(caller, permission, 'certificate', v_certificate.certificate_id, name, v_certificate.owner);
  return v_certificate;
end
$$;

comment on function parley._p_find_certificate(oid, text, text) is
'Finds and locks a certificate that the caller may use for something.
Errors: 229, 15151.';

create function parley._p_tell_security() returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  select pg_notify('parley', 'transmission')
$$;

comment on function parley._p_tell_security() is 'Tells the daemons that messages which could not be sealed may be tried again.';

create function parley._p_add_certificate(name text, certificate bytea, owner oid, private_key bytea, active_for_begin_dialog boolean) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id integer;
  v_parts record := parley._p_read_certificate(certificate);
begin
  insert into parley._p_certificate (
    certificate_id, name, owner, fingerprint, certificate, subject, signing_key, sealing_key, start_date, expiry_date, private_key,
    is_active_for_begin_dialog
  )
  values (
    nextval('parley._p_object_id'), name, owner, v_parts.fingerprint, certificate, v_parts.subject, v_parts.signing_key, v_parts.sealing_key,
    v_parts.start_date, v_parts.expiry_date, private_key, active_for_begin_dialog
  )
  on conflict do nothing
  returning certificate_id into v_id;
  return v_id;
end
$$;

comment on function parley._p_add_certificate(text, bytea, oid, bytea, boolean) is
'Adds a certificate, and gives its id; null when there is one of this name, or the same one.
Errors: 15297 malformed.';

create function parley.create_certificate(
  name text,
  certificate bytea,
  "authorization" text default null,
  private_key bytea default null,
  active_for_begin_dialog boolean default true,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_id integer;
  v_owner oid;
begin
  perform parley._p_require_permission(v_caller, 'CREATE CERTIFICATE', 'database', 0, null, null);
  v_owner := parley._p_new_owner(v_caller, "authorization");
  -- 1 and the id of the master key (9 bytes), nonce (12), two keys (64) and the tag (16).
  if length(private_key) <> 101 or substring(private_key from 1 for 1) <> '\x01' then
    perform parley._p_raise(
      15297, 'the private key is not sealed under a master key', null, 'Let the daemon''s program make it: parley certificate create.'
    );
  end if;
  v_id := parley._p_add_certificate(
    parley._p_name('certificate', create_certificate.name), certificate, v_owner, private_key, active_for_begin_dialog
  );
  if v_id is null then
    perform parley._p_raise(
      2714,
      format('certificate "%s" exists already', name),
      format('There is one of this name, or the same certificate under another: fingerprint %s.', encode(sha256(certificate), 'hex')),
      'See parley.certificates; change it with alter_certificate, or choose another name.'
    );
  end if;
  perform parley._p_tell_security();
  return v_id;
end
$$;

comment on function parley.create_certificate(text, bytea, text, bytea, boolean, parley.caller) is
'Installs a certificate and returns its id: of somebody else, whom its owner stands for here, or our own with its private key. New ones of our own are
made by the command parley certificate create, which has the master key.
Arguments: name; certificate, the bytes that parley certificate export writes; authorization, the owner (default: the caller): what
is signed with it is done in the name of this role; private_key, sealed under the master key, or null; active_for_begin_dialog, whether new messages may
be sealed for it or signed with it: what arrives is opened in either case.
Errors: 229 not allowed, 2714 exists, 9609 bad name, 15151 unknown owner, 15297 malformed.
Source: spec 2.11, CREATE CERTIFICATE.';

create function parley.alter_certificate(
  name text,
  active_for_begin_dialog boolean default null,
  revoked boolean default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_certificate parley._p_certificate := parley._p_find_certificate(v_caller, name, 'ALTER');
begin
  if active_for_begin_dialog is null and revoked is null then
    perform parley._p_raise(8493, format('nothing to change in certificate "%s"', name), null, 'Give active_for_begin_dialog or revoked.');
  end if;
  update parley._p_certificate as c
  set is_active_for_begin_dialog = coalesce(active_for_begin_dialog, c.is_active_for_begin_dialog),
    revoked_at = case when revoked is null then c.revoked_at when revoked then coalesce(c.revoked_at, clock_timestamp()) end
  where c.certificate_id = v_certificate.certificate_id;
  perform parley._p_tell_security();
end
$$;

comment on function parley.alter_certificate(text, boolean, boolean, parley.caller) is
'Changes what is given of a certificate. Daemons know within a second.
Arguments: name; active_for_begin_dialog, whether new messages may be sealed for it or signed with it; revoked, whether nothing that it has to do with
is opened or sealed any more.
Errors: 229 not allowed, 8493 nothing to change, 15151 not found.
Source: spec 2.11, 7.5, ALTER CERTIFICATE.';

create function parley.drop_certificate(name text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_certificate parley._p_certificate := parley._p_find_certificate(v_caller, name, 'CONTROL');
begin
  delete from parley._p_permission as p where p.class = 'certificate' and p.object_id = v_certificate.certificate_id;
  delete from parley._p_certificate as c where c.certificate_id = v_certificate.certificate_id;
  perform parley._p_tell_security();
end
$$;

comment on function parley.drop_certificate(text, parley.caller) is
'Drops a certificate with its private key. What was sealed for it and has not arrived yet cannot be opened any more; its sender seals it again for
the certificate that is left.
Errors: 229 not allowed, 15151 not found.
Source: spec 7.5, DROP CERTIFICATE.';

create view parley.certificates with (security_barrier) as
select
  c.name,
  c.certificate_id,
  c.owner::oid as principal_id,
  case when c.private_key is null then 'NA' else 'MK' end as pvt_key_encryption_type,
  case when c.private_key is null then 'NO_PRIVATE_KEY' else 'ENCRYPTED_BY_MASTER_KEY' end as pvt_key_encryption_type_desc,
  c.is_active_for_begin_dialog,
  c.subject as issuer_name,
  pg_catalog.encode(pg_catalog.substring(c.fingerprint, 1, 16), 'hex') as cert_serial_number,
  c.subject,
  c.start_date,
  c.expiry_date,
  c.fingerprint as thumbprint,
  c.certificate,
  pg_catalog.encode(pg_catalog.substring(c.private_key, 2, 8), 'hex') as master_key,
  c.revoked_at,
  case
    when c.revoked_at is not null then 'REVOKED'
    when c.expiry_date <= pg_catalog.clock_timestamp() then 'EXPIRED'
    when c.start_date > pg_catalog.clock_timestamp() then 'NOT YET VALID'
    when not c.is_active_for_begin_dialog then 'NOT ACTIVE'
    else 'VALID'
  end as state
from parley._p_certificate as c
where pg_catalog.pg_has_role(c.owner, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'certificate')
  or c.certificate_id in (select v.object_id from parley._p_permitted_object as v where v.class = 'certificate');

comment on view parley.certificates is
'Certificates of dialogs. They are made by their owners, so issuer_name is the subject. The columns from certificate on are ours.';
comment on column parley.certificates.name is 'Compared byte by byte.';
comment on column parley.certificates.certificate_id is 'Identity of the certificate.';
comment on column parley.certificates.principal_id is 'Oid of the owner, in whose name it signs.';
comment on column parley.certificates.pvt_key_encryption_type is 'MK when the private key is here, sealed under the master key; NA when it is not.';
comment on column parley.certificates.pvt_key_encryption_type_desc is 'ENCRYPTED_BY_MASTER_KEY or NO_PRIVATE_KEY.';
comment on column parley.certificates.is_active_for_begin_dialog is 'Whether new messages may be sealed for it or signed with it.';
comment on column parley.certificates.issuer_name is 'As subject.';
comment on column parley.certificates.cert_serial_number is 'The first half of the fingerprint, in hexadecimal digits.';
comment on column parley.certificates.subject is 'What its owner calls it.';
comment on column parley.certificates.start_date is 'From when it is valid.';
comment on column parley.certificates.expiry_date is 'Until when it is valid.';
comment on column parley.certificates.thumbprint is 'Fingerprint: the SHA-256 of certificate.';
comment on column parley.certificates.certificate is 'The certificate itself, for parley.create_certificate elsewhere. It is no secret.';
comment on column parley.certificates.master_key is 'Which master key seals the private key, in hexadecimal digits; null without private key.';
comment on column parley.certificates.revoked_at is 'When it was revoked.';
comment on column parley.certificates.state is 'VALID, NOT ACTIVE, NOT YET VALID, EXPIRED or REVOKED.';

-- sql/092_inbound_routes.sql

-- Inbound routes: what becomes of what arrives from the network (spec 6.1; SQL Server keeps them in msdb).
--
-- The table of a server is made of the inbound routes of all databases that one daemon serves; usually they stand in one of them. Where none
-- matches, LOCAL applies: the databases of the daemon are looked at. A message whose broker instance lives here needs no route.
-- The daemon decides in memory (FindInboundRoute of the Go package), for a link must not wait for a query for each conversation. What it does
-- is defined here, and a test holds it to that. Dynamic routing is for conversations of this database only, so step 4 does not exist here.

create function parley._p_find_inbound_route(
  to_service text, to_broker_instance text, conversation_id uuid, out address text, out otherwise text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_route record := parley._p_best_route(to_service, to_broker_instance, conversation_id, true, false, null);
begin
  address := case when v_route.step is null then 'LOCAL' else parley._p_address_of(v_route.next_hop, to_service) end;
  if address = 'LOCAL' and v_route.step is not null then
    otherwise := parley._p_address_of(
      (
        parley._p_best_route(
          to_service, coalesce(to_broker_instance, v_route.broker_instance), conversation_id, true, false,
          case v_route.step when 3 then 1 else v_route.step end
        )
      ).next_hop,
      to_service
    );
  end if;
end
$$;

comment on function parley._p_find_inbound_route(text, text, uuid) is
'Finds where a message that has arrived from the network goes, by the inbound routes of this database.
Arguments: to_service; to_broker_instance in canonical form, null as long as it may be any; conversation_id.
Gives address: LOCAL, also when no route matches, or tcp://host:port with ,host:port of a mirror behind it, or null when the service name has not the address
that its only route, TRANSPORT, requires. otherwise: where it goes when address is LOCAL and no database here has the service; null: it is dropped.
Source: spec 6.1 to 6.3.';

-- sql/093_peers.sql

-- Peers: the brokers elsewhere whose keys this database trusts (spec 7.2), as logins with certificates in SQL Server's master.
--
-- A peer is known by the fingerprint of its public key: the SHA-256 of the SubjectPublicKeyInfo, in hex. It may have several, so that the key can
-- be changed while the old one is in use. A peer is mapped to a role of this database, whose grants count for what it sends; without a role only
-- what is granted to PUBLIC counts. A revoked peer stays in the list, so that neither a certificate authority nor a successor of its key
-- lets it in again.
-- The daemon reads the list and decides on links; the functions in 095_identities.sql decide on what arrives over them.
-- Locks: the peer's row. Everything that changes it notifies the daemons. Cost: none for who sends or receives.

create table parley._p_peer (
  peer_id integer primary key,
  name text collate "C" not null unique check (name <> '' and length(name) <= 128),
  role regrole,
  address text,
  broker_instances uuid[] not null default '{}',
  is_forwarder boolean not null default false,
  revoked_at timestamptz,
  create_date timestamptz not null default now(),
  modify_date timestamptz not null default now()
);

comment on table parley._p_peer is 'Brokers elsewhere that are, or were, trusted here.';
comment on column parley._p_peer.role is 'Role whose grants count for what the peer sends; null: only PUBLIC.';
comment on column parley._p_peer.address is 'Where it listens: at this address nobody else may answer. Null when it is not known.';
comment on column parley._p_peer.broker_instances is
'Brokers in whose name this peer alone, and forwarders, may speak, as an operator or a pairing has said; see also _p_peer_broker.';

create table parley._p_peer_certificate (
  fingerprint text collate "C" primary key check (fingerprint ~ '^[0-9a-f]{64}$'),
  peer_id integer not null references parley._p_peer on delete cascade,
  certificate bytea,
  not_before timestamptz,
  not_after timestamptz,
  succeeds text collate "C",
  added_at timestamptz not null default now()
);

comment on table parley._p_peer_certificate is 'The keys of peers; one for each, two while it changes.';
comment on column parley._p_peer_certificate.certificate is 'X.509 in DER, for people to look at; only the key counts. Null when nobody gave it.';
comment on column parley._p_peer_certificate.not_after is 'When trust in the key ends; null: when the certificate does that the peer shows.';
comment on column parley._p_peer_certificate.succeeds is 'Fingerprint of the key of the same peer that has signed this one; null when a person added it.';

create index on parley._p_peer_certificate (peer_id);

create table parley._p_peer_broker (
  broker_instance uuid primary key,
  peer_id integer references parley._p_peer on delete cascade,
  authority_name text collate "C",
  fingerprint text collate "C",
  first_used_at timestamptz not null default clock_timestamp(),
  check (num_nonnulls(peer_id, authority_name, fingerprint) = 1)
);

comment on table parley._p_peer_broker is
'Brokers of which nobody has said whose they are, and who has spoken in their name first: from then on nobody else may (095_identities.sql).';
comment on column parley._p_peer_broker.peer_id is 'The peer, whatever its keys are.';
comment on column parley._p_peer_broker.authority_name is
'Name for which a certificate authority vouches, of a broker that is no peer of this database; keys may change.';
comment on column parley._p_peer_broker.fingerprint is 'Key of a broker that only another database of the daemon trusts.';

create index on parley._p_peer_broker (peer_id);

create function parley._p_fingerprint(fingerprint text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fingerprint text := lower(replace(regexp_replace(fingerprint, '^sha256:', '', 'i'), ':', ''));
begin
  if v_fingerprint is null or v_fingerprint !~ '^[0-9a-f]{64}$' then
    perform parley._p_raise(
      8402,
      'this is no fingerprint',
      'A fingerprint is the SHA-256 of a public key: 64 hexadecimal digits, with or without colons.',
      'See it at the peer: parley certificate list.'
    );
  end if;
  return v_fingerprint;
end
$$;

comment on function parley._p_fingerprint(text) is
'Gives a fingerprint in the one way it is stored: 64 hexadecimal digits in lower case.
Errors: 8402.';

create function parley._p_find_peer(name text) returns parley._p_peer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_peer parley._p_peer;
begin
  select * into v_peer from parley._p_peer as p where p.name = _p_find_peer.name for update;
  if not found then
    perform parley._p_raise(
      15151,
      format('peer "%s" does not exist', name),
      'Names are compared exactly.' || parley._p_did_you_mean(name, array(select p.name from parley._p_peer as p)),
      'See parley.peers.'
    );
  end if;
  return v_peer;
end
$$;

comment on function parley._p_find_peer(text) is
'Finds a peer by its name and locks its row.
Errors: 15151.';

create function parley._p_peer_role(role text) returns regrole
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  -- What is granted to PUBLIC counts for everybody anyway.
  return case when role is not null then nullif(parley._p_role(role), 0)::regrole end;
end
$$;

comment on function parley._p_peer_role(text) is
'Finds the role that a peer is to be mapped to; null and PUBLIC give null.
Errors: 15151 when there is no such role.';

create function parley._p_peer_address(address text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  -- As routes write it, so that who lives at an address is found whichever way it was written.
  v_address text := parley._p_network_address(address);
begin
  if address is not null and (v_address is null or length(address) > 256) then
    perform parley._p_raise(
      8402,
      format('"%s" is no address of a peer', left(address, 256)),
      null,
      'Write tcp://host:port with a host that others can reach; 0.0.0.0 and [::] stand for all addresses of a machine, and lead nowhere.'
    );
  end if;
  return v_address;
end
$$;

comment on function parley._p_peer_address(text) is
'Checks the address of a peer, and gives it as routes write theirs; null for null.
Errors: 8402.';

create function parley._p_add_peer_certificate(
  peer_id integer, fingerprint text, certificate bytea, not_before timestamptz, not_after timestamptz, succeeds text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_other text;
begin
  if not_after <= clock_timestamp() or not_after <= not_before then
    perform parley._p_raise(
      28055,
      'the certificate of the peer cannot be used',
      case when not_after <= clock_timestamp() then format('It has expired at %s.', not_after) else 'Its end is before its beginning.' end,
      'Let the peer make a new one: parley certificate rotate.'
    );
  end if;
  insert into parley._p_peer_certificate (fingerprint, peer_id, certificate, not_before, not_after, succeeds)
  values (fingerprint, peer_id, certificate, not_before, not_after, succeeds)
  on conflict on constraint _p_peer_certificate_pkey do nothing;
  if not found then
    select p.name || case when p.revoked_at is null then '' else ', which is revoked' end into v_other
    from parley._p_peer_certificate as c
    join parley._p_peer as p using (peer_id)
    where c.fingerprint = _p_add_peer_certificate.fingerprint;
    perform parley._p_raise(
      2714,
      'a peer with this key exists already',
      format('The key belongs to peer %s.', v_other),
      'Change that one with parley.alter_peer, or drop it with parley.drop_peer first.'
    );
  end if;
end
$$;

comment on function parley._p_add_peer_certificate(integer, text, bytea, timestamptz, timestamptz, text) is
'Adds a key to a peer.
Errors: 2714 the key is known, 28055 its validity is over.';

create view parley.peers with (security_barrier) as
select
  p.peer_id,
  p.name,
  p.role::oid as principal_id,
  case when p.role is not null then pg_catalog.pg_get_userbyid(p.role)::text end as role_name,
  case
    when p.revoked_at is not null then 'REVOKED'
    when c.certificates = 0 then 'WITHOUT KEY'
    when c.not_after <= pg_catalog.clock_timestamp() then 'EXPIRED'
    else 'TRUSTED'
  end as state,
  c.fingerprints,
  case when c.not_after < 'infinity' then c.not_after end as not_after,
  p.address,
  array(
    select i.instance
    from (
      select u.instance from pg_catalog.unnest(p.broker_instances) as u (instance)
      union
      select b.broker_instance from parley._p_peer_broker as b where b.peer_id = p.peer_id
    ) as i
    order by i.instance
  ) as broker_instances,
  p.is_forwarder,
  p.create_date,
  p.modify_date,
  p.revoked_at
from parley._p_peer as p
cross join lateral (
  select
    pg_catalog.count(*) as certificates,
    coalesce(pg_catalog.array_agg(k.fingerprint order by k.added_at desc, k.fingerprint), '{}') as fingerprints,
    pg_catalog.max(coalesce(k.not_after, 'infinity')) as not_after
  from parley._p_peer_certificate as k
  where k.peer_id = p.peer_id
) as c
where pg_catalog.pg_has_role(p.role, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'database');

comment on view parley.peers is 'Brokers elsewhere whose keys are, or were, trusted here (spec 7.2).';
comment on column parley.peers.peer_id is 'Identity of the peer.';
comment on column parley.peers.name is 'Name, as statements take it.';
comment on column parley.peers.principal_id is 'Oid of the role whose grants count for what it sends; null: only what is granted to PUBLIC.';
comment on column parley.peers.role_name is 'Name of that role.';
comment on column parley.peers.state is 'TRUSTED, EXPIRED, REVOKED, or WITHOUT KEY.';
comment on column parley.peers.fingerprints is 'Its keys, the newest first; more than one while it changes its key.';
comment on column parley.peers.not_after is 'When the last of them expires; null when that is not limited here.';
comment on column parley.peers.address is 'Where it listens, tcp://host:port: at this address nobody else may answer. Null when it is not known.';
comment on column parley.peers.broker_instances is
'Brokers in whose name no other peer may speak, unless it forwards: what was said of it, and in whose name it has spoken first (parley.peer_brokers).';
comment on column parley.peers.is_forwarder is 'Whether it may pass on what other brokers send.';
comment on column parley.peers.create_date is 'When it was trusted first.';
comment on column parley.peers.modify_date is 'When it was changed last.';
comment on column parley.peers.revoked_at is 'When it was revoked.';

create view parley.peer_certificates with (security_barrier) as
select
  k.fingerprint,
  k.peer_id,
  p.name as peer_name,
  case
    when p.revoked_at is not null then 'REVOKED'
    when k.not_after <= pg_catalog.clock_timestamp() then 'EXPIRED'
    when k.not_before > pg_catalog.clock_timestamp() then 'NOT YET VALID'
    else 'TRUSTED'
  end as state,
  k.not_before,
  k.not_after,
  k.succeeds,
  k.certificate,
  k.added_at
from parley._p_peer_certificate as k
join parley._p_peer as p using (peer_id)
where pg_catalog.pg_has_role(p.role, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'database');

comment on view parley.peer_certificates is 'The keys of peers.';
comment on column parley.peer_certificates.fingerprint is 'SHA-256 of the public key (SubjectPublicKeyInfo), in hexadecimal digits.';
comment on column parley.peer_certificates.peer_id is 'Identity of the peer.';
comment on column parley.peer_certificates.peer_name is 'Name of the peer.';
comment on column parley.peer_certificates.state is 'TRUSTED, NOT YET VALID, EXPIRED or REVOKED.';
comment on column parley.peer_certificates.not_before is 'From when it is trusted; null: as its certificate says.';
comment on column parley.peer_certificates.not_after is 'Until when it is trusted; null: as its certificate says.';
comment on column parley.peer_certificates.succeeds is 'Key of the same peer that has signed this one; null when a person added it.';
comment on column parley.peer_certificates.certificate is 'X.509 certificate in DER, or null.';
comment on column parley.peer_certificates.added_at is 'When it was added.';

create view parley.peer_brokers with (security_barrier) as
select
  u.instance as broker_instance,
  p.peer_id,
  p.name as peer_name,
  null::text as authority_name,
  null::text as fingerprint,
  null::timestamp with time zone as first_used_at
from parley._p_peer as p
cross join lateral pg_catalog.unnest(p.broker_instances) as u (instance)
where pg_catalog.pg_has_role(p.role, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'database')
union all
select b.broker_instance, b.peer_id, p.name, b.authority_name, b.fingerprint, b.first_used_at
from parley._p_peer_broker as b
left join parley._p_peer as p using (peer_id)
where pg_catalog.pg_has_role(p.role, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'database');

comment on view parley.peer_brokers is 'Which broker elsewhere may speak in the name of which broker instance, and since when, where that was learned.';
comment on column parley.peer_brokers.broker_instance is 'The broker instance.';
comment on column parley.peer_brokers.peer_id is 'Peer that may speak in its name; null for a broker that is no peer of this database.';
comment on column parley.peer_brokers.peer_name is 'Name of that peer.';
comment on column parley.peer_brokers.authority_name is 'Name for which a certificate authority vouches, of a broker that was let in by that.';
comment on column parley.peer_brokers.fingerprint is 'Key of a broker that was let in because another database of the daemon trusts it.';
comment on column parley.peer_brokers.first_used_at is 'When it spoke in that name first; null where an operator or a pairing has said so.';

-- sql/094_peer_statements.sql

-- Trusting peers, changing, revoking and dropping them. For administrators.
--
-- Every change notifies the daemons, which close the links of peers that are no longer trusted and let in those that are; a daemon that misses
-- the notice looks every few seconds.

create function parley._p_tell_peers() returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  select pg_notify('parley', 'peers')
$$;

comment on function parley._p_tell_peers() is 'Tells the daemons that the list of peers has changed.';

create function parley.trust_peer(
  fingerprint text,
  name text,
  role text default null,
  certificate bytea default null,
  not_before timestamptz default null,
  not_after timestamptz default null,
  address text default null,
  broker_instances uuid[] default null,
  is_forwarder boolean default false,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_id integer;
begin
  perform parley._p_require_administrator(v_caller, 'trust_peer');
  insert into parley._p_peer (peer_id, name, role, address, broker_instances, is_forwarder)
  values (
    nextval('parley._p_object_id'), parley._p_name('peer', trust_peer.name), parley._p_peer_role(trust_peer.role),
    parley._p_peer_address(trust_peer.address), coalesce(trust_peer.broker_instances, '{}'), coalesce(trust_peer.is_forwarder, false)
  )
  on conflict do nothing
  returning peer_id into v_id;
  if v_id is null then
    perform parley._p_raise(
      2714,
      format('peer "%s" exists already', name),
      null,
      'Give it a further key with parley.alter_peer(name, add_fingerprint => ...), or drop it with parley.drop_peer first.'
    );
  end if;
  perform parley._p_add_peer_certificate(v_id, parley._p_fingerprint(fingerprint), certificate, not_before, not_after, null);
  perform parley._p_settle_brokers(v_id, trust_peer.broker_instances);
  perform parley._p_tell_peers();
  return v_id;
end
$$;

comment on function parley.trust_peer(text, text, text, bytea, timestamptz, timestamptz, text, uuid[], boolean, parley.caller) is
'Trusts a broker elsewhere: links with it are allowed, and what it sends is judged by the grants of a role. Returns the id of the peer.
Arguments: fingerprint, the SHA-256 of its public key in hexadecimal digits, as parley certificate list shows it there; name, any name for it;
role, the role of this database that it acts as (null or PUBLIC: none, only what is granted to PUBLIC counts); certificate, X.509 in DER, to be looked
at; not_before and not_after, when the key may be used (null: as the certificate says that the peer shows); address, where it listens,
tcp://host:port: there nobody else may answer (null: any trusted peer may); broker_instances, the brokers in whose name it alone may speak (those of
which nobody has said anything become those of the peer that speaks in their name first);
is_forwarder, whether it may pass on what other brokers send, although these are peers themselves.
Errors: 2714 name or key exists, 8402 malformed fingerprint or address, 9609 bad name, 15151 no such role or not an administrator,
28055 the key has expired.
Source: spec 7.2.';

create function parley.alter_peer(
  name text,
  new_name text default null,
  role text default null,
  add_fingerprint text default null,
  certificate bytea default null,
  not_before timestamptz default null,
  not_after timestamptz default null,
  drop_fingerprint text default null,
  address text default null,
  broker_instances uuid[] default null,
  is_forwarder boolean default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_peer parley._p_peer;
  v_role regrole;
begin
  perform parley._p_require_administrator(v_caller, 'alter_peer');
  if coalesce(new_name, role, add_fingerprint, drop_fingerprint, address, broker_instances::text, is_forwarder::text) is null then
    perform parley._p_raise(8493, format('nothing to change in peer "%s"', name), null, 'Give at least one item.');
  end if;
  v_peer := parley._p_find_peer(alter_peer.name);
  if v_peer.revoked_at is not null then
    perform parley._p_raise(
      28034,
      format('peer "%s" is revoked', name),
      format('It was revoked at %s.', v_peer.revoked_at),
      'Drop it with parley.drop_peer; then it may be trusted anew.'
    );
  end if;
  if new_name <> v_peer.name and exists (select from parley._p_peer as p where p.name = alter_peer.new_name) then
    perform parley._p_raise(2714, format('peer "%s" exists already', new_name), null, 'Choose another name.');
  end if;
  if add_fingerprint is not null then
    perform parley._p_add_peer_certificate(v_peer.peer_id, parley._p_fingerprint(add_fingerprint), certificate, not_before, not_after, null);
  end if;
  if drop_fingerprint is not null then
    delete from parley._p_peer_certificate as c
    where c.peer_id = v_peer.peer_id and c.fingerprint = parley._p_fingerprint(drop_fingerprint);
    if not found then
      perform parley._p_raise(15151, format('peer "%s" has no such key', name), null, 'See parley.peer_certificates.');
    end if;
  end if;
  update parley._p_peer as p
  set name = case when new_name is null then p.name else parley._p_name('peer', new_name) end,
    role = case when alter_peer.role is null then p.role else parley._p_peer_role(alter_peer.role) end,
    address = case when alter_peer.address is null then p.address when alter_peer.address = '' then null else parley._p_peer_address(alter_peer.address) end,
    broker_instances = coalesce(alter_peer.broker_instances, p.broker_instances),
    is_forwarder = coalesce(alter_peer.is_forwarder, p.is_forwarder),
    modify_date = clock_timestamp()
  where p.peer_id = v_peer.peer_id
  returning p.role into v_role;
  if alter_peer.broker_instances is not null then
    perform parley._p_settle_brokers(v_peer.peer_id, alter_peer.broker_instances);
    delete from parley._p_peer_broker as b where b.peer_id = v_peer.peer_id;
  end if;
  if v_role is distinct from v_peer.role then
    perform parley._p_map_dialog_certificates(v_peer.peer_id, v_role);
  end if;
  perform parley._p_tell_peers();
end
$$;

comment on function parley.alter_peer(text, text, text, text, bytea, timestamptz, timestamptz, text, text, uuid[], boolean, parley.caller) is
'Changes what is given of a peer; what is null stays as it is. A dialog certificate that came with it stands for its new role; it is dropped when that is
none, or has other certificates.
Arguments: name; new_name; role, PUBLIC for none; add_fingerprint, a further key, with certificate, not_before and not_after as trust_peer takes them;
drop_fingerprint, a key that is no longer trusted; address, empty for none; broker_instances, all of them,
also those that it has spoken for first; is_forwarder.
Errors: 2714 name or key exists, 8402 malformed fingerprint or address, 8493 nothing to change, 9609 bad name, 15151 not found or not an administrator,
28034 the peer is revoked, 28055 the key has expired.
Source: spec 7.2, 7.5.';

create function parley.revoke_peer(name text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_peer parley._p_peer;
begin
  perform parley._p_require_administrator(v_caller, 'revoke_peer');
  v_peer := parley._p_find_peer(revoke_peer.name);
  update parley._p_peer as p
  set revoked_at = clock_timestamp(), modify_date = clock_timestamp()
  where p.peer_id = v_peer.peer_id and p.revoked_at is null;
  delete from parley._p_peer_broker as b where b.peer_id = v_peer.peer_id;
  perform parley._p_revoke_dialog_certificates(v_peer.peer_id);
  perform parley._p_tell_peers();
end
$$;

comment on function parley.revoke_peer(text, parley.caller) is
'Trusts a peer no more, with all its keys: nothing that it sends is accepted from now on, and its links are closed within seconds. It stays in the list,
so that its keys are refused whoever vouches for them. A dialog certificate that came with it is revoked too. To trust it anew, drop it first.
Errors: 15151 not found or not an administrator.
Source: spec 7.2.';

create function parley.drop_peer(name text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_peer parley._p_peer;
begin
  perform parley._p_require_administrator(v_caller, 'drop_peer');
  v_peer := parley._p_find_peer(drop_peer.name);
  perform parley._p_drop_dialog_certificates(v_peer.peer_id);
  delete from parley._p_peer as p where p.peer_id = v_peer.peer_id;
  perform parley._p_tell_peers();
end
$$;

comment on function parley.drop_peer(text, parley.caller) is
'Forgets a peer, with the dialog certificate that came with it: it is a stranger again. Where a certificate authority admits peers,
strangers come in when it vouches for them: there revoke_peer keeps one out, this does not.
Errors: 15151 not found or not an administrator.
Source: spec 7.2.';

-- sql/094_remote_service_bindings.sql

-- Remote service bindings: which role stands for a remote service (spec 2.7).
--
-- What is sent to the service is sealed for the newest certificate of that role, so whoever answers has its private key. There is at most
-- one binding for a service; it is looked at when the first message of a dialog leaves the server, and never again for that dialog.
-- Locks: the binding's row. Cost: none for SEND.

create table parley._p_remote_service_binding (
  remote_service_binding_id integer primary key,
  name text collate "C" not null unique check (name <> '' and length(name) <= 128),
  owner regrole not null,
  to_service text collate "C" not null unique check (to_service <> '' and length(to_service) <= 256),
  remote_principal regrole not null,
  is_anonymous boolean not null,
  create_date timestamptz not null default clock_timestamp()
);

comment on table parley._p_remote_service_binding is 'Remote service bindings (spec 2.7).';

create function parley._p_binding_principal(caller oid, with_user text) returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_role oid;
begin
  if lower(with_user) = 'public' or with_user like 'pg\_%' then
    perform parley._p_raise(
      28083,
      format('"%s" cannot stand for a remote service', with_user),
      'It is no role that can own a certificate.',
      'Create a role for the remote side: create role somebody nologin;'
    );
  end if;
  select r.oid into v_role from pg_roles as r where r.rolname = with_user;
  if not found then
    perform parley._p_raise(
      9611,
      format('role "%s" does not exist', with_user),
      null,
      'Create it with CREATE ROLE, or correct the name; names are compared exactly.'
    );
  end if;
  if (parley._p_is_administrator(caller) or parley._p_may_act_as(caller, v_role)) is not true then
    perform parley._p_raise(
      229,
      format('permission denied: a remote service cannot be bound to role "%s"', with_user),
      format('Role %s is not a member of it.', caller::regrole),
      'Name a role that you are a member of, or ask an administrator.'
    );
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
    perform parley._p_raise(
      15151,
      format('remote service binding "%s" does not exist', name),
      'Names are compared byte by byte.' || parley._p_did_you_mean(name, array(select b.name from parley._p_remote_service_binding as b)),
      'See parley.remote_service_bindings.'
    );
  end if;
  perform parley._p_require_permission(caller, permission, 'remote service binding', v_binding.remote_service_binding_id, name, v_binding.owner);
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
  perform parley._p_require_permission(v_caller, 'CREATE REMOTE SERVICE BINDING', 'database', 0, null, null);
  v_owner := parley._p_new_owner(v_caller, "authorization");
  if to_service is null or to_service = '' or length(to_service) > 256 then
    perform parley._p_raise(
      8412,
      'the target service is malformed',
      format('It has %s characters; 1 to 256 are allowed.', coalesce(length(to_service), 0)),
      'Give the name of the remote service.'
    );
  end if;
  v_principal := parley._p_binding_principal(v_caller, with_user);
  if exists (select from parley._p_remote_service_binding as b where b.name = v_name) then
    perform parley._p_raise(2714, format('remote service binding "%s" exists already', name), null, 'Use alter_remote_service_binding to change it.');
  end if;
  insert into parley._p_remote_service_binding (remote_service_binding_id, name, owner, to_service, remote_principal, is_anonymous)
  values (nextval('parley._p_object_id'), v_name, v_owner, create_remote_service_binding.to_service, v_principal, anonymous)
  on conflict do nothing
  returning remote_service_binding_id into v_id;
  if v_id is null then
    perform parley._p_raise(
      9619,
      format('service "%s" is bound already', to_service),
      'A service has at most one remote service binding.',
      'Change that one with alter_remote_service_binding; see parley.remote_service_bindings.'
    );
  end if;
  perform parley._p_tell_security();
  return v_id;
end
$$;

comment on function parley.create_remote_service_binding(text, text, text, boolean, text, parley.caller) is
'Creates a remote service binding and returns its id: dialogs with that service are sealed for the certificate of the role when they leave the server,
whatever ENCRYPTION says. Messages that waited for it are sealed and sent; dialogs under way stay as they are.
Arguments: name; to_service, compared byte by byte; with_user, the role that stands for it and owns its certificate; anonymous, whether the initiator does
not prove who it is; authorization, the owner (default: the caller).
Errors: 229 not allowed, 2714 exists, 8412 to_service malformed, 9609 bad name, 9611 no such role, 9619 the service is bound already, 15151 unknown owner,
28083 with_user cannot own certificates.
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
    perform parley._p_raise(8493, format('nothing to change in remote service binding "%s"', name), null, 'Give with_user or anonymous.');
  end if;
  if with_user is not null then
    v_principal := parley._p_binding_principal(v_caller, with_user);
  end if;
  update parley._p_remote_service_binding as b
  set remote_principal = v_principal, is_anonymous = coalesce(anonymous, b.is_anonymous)
  where b.remote_service_binding_id = v_binding.remote_service_binding_id;
  perform parley._p_tell_security();
end
$$;

comment on function parley.alter_remote_service_binding(text, text, boolean, parley.caller) is
'Changes what is given of a remote service binding, for dialogs begun from now on.
Arguments: as create_remote_service_binding.
Errors: 229 not allowed, 8493 nothing to change, 9611 no such role, 15151 not found, 28083 with_user cannot own certificates.
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
  delete from parley._p_permission as p where p.class = 'remote service binding' and p.object_id = v_binding.remote_service_binding_id;
  delete from parley._p_remote_service_binding as b where b.remote_service_binding_id = v_binding.remote_service_binding_id;
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
  or b.remote_service_binding_id in (select v.object_id from parley._p_permitted_object as v where v.class = 'remote service binding');

comment on view parley.remote_service_bindings is 'Remote service bindings.';
comment on column parley.remote_service_bindings.name is 'Compared byte by byte.';
comment on column parley.remote_service_bindings.remote_service_binding_id is 'Identity of the binding.';
comment on column parley.remote_service_bindings.principal_id is 'Oid of the owner.';
comment on column parley.remote_service_bindings.remote_service_name is 'Service that is bound.';
comment on column parley.remote_service_bindings.service_contract_id is 'Always 0: all contracts.';
comment on column parley.remote_service_bindings.remote_principal_id is 'Oid of the role that stands for the service.';
comment on column parley.remote_service_bindings.is_anonymous_on is 'Whether the initiator stays unknown to the target.';

-- sql/095_identities.sql

-- Who has sent what arrives from another broker, and in whose name he may speak.
--
-- An identity is what the daemon has seen proven: "certificate:" and the fingerprint of whoever has signed a secured dialog, "peer:" and the
-- fingerprint of the key at the other end of the link, with " named " and a name where an authority vouches for it, "role:" and the owner of the
-- sending service between databases of one server, "" for nobody. What was signed and has come over a link has both, "certificate:... over peer:...".
-- Here it becomes a role, whose grants decide (spec 7.1); nothing else about a sender is believed.
-- What comes from a peer that is revoked or expired is not taken at all: _p_refusal_of_identity says so before anything is judged. An expired
-- key must not end conversations; what it sent waits at the sender until the key is changed.
--
-- In whose name a sender may speak: what trust_peer, alter_peer or a pairing says counts first. Of a broker of which nobody has said anything the first
-- one who speaks in its name is noted (_p_peer_broker), and nobody else may from then on: neither write into its conversations nor shut it out with a
-- newer epoch. A peer may have any number of brokers, as its daemon serves any number of databases. Forwarders speak for all, and are noted for
-- none. A broker that is let in by a certificate authority alone is noted under the name in its certificate ("peer:FINGERPRINT named NAME").

create function parley._p_role_of_identity(identity text) returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_kind text := split_part(identity, ':', 1);
  v_value text := substr(identity, length(split_part(identity, ':', 1)) + 2);
  v_role oid;
begin
  case v_kind
    when 'peer' then
      select p.role::oid into v_role
      from parley._p_peer_certificate as c
      join parley._p_peer as p using (peer_id)
      where c.fingerprint = split_part(v_value, ' ', 1)
        and p.revoked_at is null
        and (c.not_before is null or c.not_before <= clock_timestamp())
        and (c.not_after is null or c.not_after > clock_timestamp());
    when 'role' then
      select r.oid into v_role from pg_roles as r where r.rolname = v_value;
    when 'certificate' then
      v_role := parley._p_role_of_certificate(split_part(v_value, ' ', 1));
    else
      v_role := null;
  end case;
  -- The role may have been dropped since.
  return (select r.oid from pg_roles as r where r.oid = v_role);
end
$$;

comment on function parley._p_role_of_identity(text) is
'Gives the role that a sender acts as, null for nobody: unknown, revoked, expired, mapped to no role, or to one that is gone. Then only what is granted to
PUBLIC counts.
Arguments: identity, certificate:FINGERPRINT of who has signed a dialog, peer:FINGERPRINT or role:NAME, as the daemon has it proven.
Source: spec 7.1.';

create function parley._p_refusal_of_identity(identity text, speaker uuid) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fingerprint text := substring(identity from '^(?:certificate:[0-9a-f]+ over )?peer:([^ ]*)');
  v_name text := substring(identity from ' named (.*)$');
  v_key record;
  v_pin parley._p_peer_broker;
begin
  if v_fingerprint is null then
    return null;
  end if;
  select p.peer_id, p.name, p.revoked_at, p.is_forwarder, c.not_before, c.not_after into v_key
  from parley._p_peer_certificate as c
  join parley._p_peer as p using (peer_id)
  where c.fingerprint = v_fingerprint;
  if v_key.revoked_at is not null then
    return '28034: this broker does not accept the other side any more: the peer was revoked.';
  elsif v_key.not_before > clock_timestamp() then
    return '28022: the key of the sending broker is not yet valid here.';
  elsif v_key.not_after <= clock_timestamp() then
    return '28023: the key of the sending broker has expired here.';
  elsif v_key.is_forwarder then
    return null;
  end if;
  perform from parley._p_peer as own where own.peer_id = v_key.peer_id and array[speaker] <@ own.broker_instances;
  if found then
    return null;
  end if;
  perform from parley._p_peer as p where array[speaker] <@ p.broker_instances and p.revoked_at is null;
  if found then
    return '28047: the sending broker may not speak for this broker instance, which belongs to another peer. If it forwards, say so there: parley.alter_peer.';
  end if;
  select * into v_pin from parley._p_peer_broker as b where b.broker_instance = speaker;
  if found then
    if v_pin.peer_id = v_key.peer_id or v_pin.fingerprint = v_fingerprint or v_pin.authority_name = v_name then
      return null;
    end if;
    return '28047: the sending broker may not speak for this broker instance: another one has done so first. See parley.peer_brokers there; if it has moved,'
      || ' or is served by a daemon with a key of its own, say so: parley.alter_peer(name, broker_instances => ...).';
  end if;
  perform from parley._p_known_broker as k where k.broker_instance = speaker and k.is_beside;
  if found then
    return '28047: the sending broker may not speak for this broker instance: a database beside this one has done so. If it has moved, say so there:'
      || ' parley.alter_peer(name, broker_instances => ...).';
  end if;
  return null;
end
$$;

comment on function parley._p_refusal_of_identity(text, uuid) is
'Tells why nothing is taken from a sender just now, with the number of the underlying message; null when it is. The sender keeps its messages.
Arguments: identity, as _p_role_of_identity takes it; speaker, the broker instance in whose name it speaks.
Source: spec 6.12, 7.2.';

create function parley._p_claim_broker(identity text, speaker uuid) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_fingerprint text := substring(identity from '^(?:certificate:[0-9a-f]+ over )?peer:([^ ]*)');
  v_name text := substring(identity from ' named (.*)$');
  v_peer parley._p_peer;
  v_count bigint;
begin
  select p.* into v_peer from parley._p_peer_certificate as c join parley._p_peer as p using (peer_id) where c.fingerprint = v_fingerprint;
  if v_fingerprint is null or v_peer.is_forwarder or array[speaker] <@ v_peer.broker_instances then
    return null;
  end if;
  v_name := case when v_peer.peer_id is null then v_name end;
  v_fingerprint := case when v_peer.peer_id is null and v_name is null then v_fingerprint end;
  select count(*) into v_count
  from parley._p_peer_broker as b
  where b.peer_id = v_peer.peer_id or b.authority_name = v_name or b.fingerprint = v_fingerprint;
  if v_count >= 1000 then
    return '28047: the sending broker has spoken for a thousand broker instances already. If it forwards, say so there: parley.alter_peer.';
  end if;
  insert into parley._p_peer_broker (broker_instance, peer_id, authority_name, fingerprint)
  values (speaker, v_peer.peer_id, v_name, v_fingerprint)
  on conflict do nothing;
  -- Somebody else may have been faster.
  return parley._p_refusal_of_identity(identity, speaker);
end
$$;

comment on function parley._p_claim_broker(text, uuid) is
'Notes that a sender is the first who speaks in the name of a broker of which nobody has said whose it is; a thousand for each sender. Gives why it may not,
when somebody else was faster.
Arguments: identity, which _p_refusal_of_identity does not refuse; speaker.
Source: spec 7.2.';

create function parley._p_settle_brokers(peer integer, instances uuid[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- What somebody else has claimed to be the newest counts no more.
  delete from parley._p_known_broker as k
  using parley._p_peer_broker as b
  where k.broker_instance = b.broker_instance and b.broker_instance = any (instances) and b.peer_id is distinct from peer;
  delete from parley._p_peer_broker as b where b.broker_instance = any (instances);
  update parley._p_known_broker as k set is_beside = false where k.broker_instance = any (instances) and k.is_beside;
end
$$;

comment on function parley._p_settle_brokers(integer, uuid[]) is
'Forgets who has spoken first in the name of brokers of which an operator or a pairing says now whose they are.
Arguments: peer, whose; instances.';

create function parley._p_refusal_of_identities(identities text[], speaker uuid) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_identity text;
  v_refusal text;
begin
  -- All of a batch has come over one link; what does not come over links costs nothing here.
  if array_to_string(identities, ' ') !~ 'peer:' then
    return null;
  end if;
  for v_identity in select distinct u.identity from unnest(identities) as u (identity) loop
    v_refusal := parley._p_refusal_of_identity(v_identity, speaker);
    if v_refusal is null and not exists (select from parley._p_peer_broker as b where b.broker_instance = speaker) then
      v_refusal := parley._p_claim_broker(v_identity, speaker);
    end if;
    if v_refusal is not null then
      return v_refusal;
    end if;
  end loop;
  return null;
end
$$;

comment on function parley._p_refusal_of_identities(text[], uuid) is
'Tells why nothing is taken of a batch just now; null when it is, and notes who is the first to speak in the name of a broker. It has to be asked before the
speaker is believed in anything.
Arguments: identities of the runs; speaker, the broker instance in whose name they come.
Source: spec 6.12, 7.2.';

create function parley._p_refusal_of_speaker(identities text[], speaker uuid, epoch bigint) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if epoch > extract(epoch from clock_timestamp() + interval '10 minutes') * 1000000 then
    return format(
      '28047: the epoch of broker instance %s lies ahead of the time here by more than ten minutes. Compare the clocks: here it is %s.',
      speaker, to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"')
    );
  end if;
  return parley._p_refusal_of_identities(identities, speaker);
end
$$;

comment on function parley._p_refusal_of_speaker(text[], uuid, bigint) is
'Tells why nothing is taken of a speaker just now: for who sends it, or for its epoch, which is a time and cannot be one to come; null when it is. So nobody,
not even a forwarder, can shut a broker out with an epoch that this one will not have for long.
Arguments: identities, of the runs; speaker; epoch, in microseconds since 1970, as 291_epoch.sql makes it.
Source: spec 6.12, 7.2.';

create function parley._p_succeed_peer_key(
  predecessor text, fingerprint text, certificate bytea, not_before timestamptz, not_after timestamptz
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_peer_id integer;
begin
  select p.peer_id into v_peer_id
  from parley._p_peer_certificate as c
  join parley._p_peer as p using (peer_id)
  where c.fingerprint = predecessor
    and p.revoked_at is null
    and (c.not_before is null or c.not_before <= clock_timestamp())
    and (c.not_after is null or c.not_after > clock_timestamp())
  for update of p;
  if v_peer_id is null
    or exists (
      select from parley._p_peer_certificate as c
      where c.fingerprint = _p_succeed_peer_key.fingerprint and c.peer_id <> v_peer_id
    ) then
    return false;
  end if;
  insert into parley._p_peer_certificate (fingerprint, peer_id, certificate, not_before, not_after, succeeds)
  values (fingerprint, v_peer_id, certificate, not_before, not_after, predecessor)
  on conflict do nothing;
  if found then
    -- What has expired for long is of no use to anybody.
    delete from parley._p_peer_certificate as c where c.peer_id = v_peer_id and c.not_after < clock_timestamp() - interval '90 days';
    update parley._p_peer as p set modify_date = clock_timestamp() where p.peer_id = v_peer_id;
    perform parley._p_tell_peers();
  end if;
  return true;
end
$$;

comment on function parley._p_succeed_peer_key(text, text, bytea, timestamptz, timestamptz) is
'Adds a key to the peer whose key has signed it; both are trusted then. The daemon has checked the signature. False when the predecessor is not trusted
just now, or the key is another peer''s.
Arguments: predecessor and fingerprint, 64 hexadecimal digits each; certificate of the new key, with its not_before and not_after.
Source: spec 7.5.';

-- sql/096_dialog_security.sql

-- Which dialogs are secured, how, and with whose certificates (spec 7.3, 7.4).
--
-- The question is asked once for a dialog, by the daemon of the initiator, when its first message is about to leave the server; the answer
-- stands in _p_dialog_security as long as the dialog lives, and with it is_encrypted of the endpoint is true. A target learns it with the first message
-- that it can open. From then on a message counts only when it was sealed the same way, and by the same role: _p_bind_dialog.
-- Inside one server nothing is sealed, and nothing of this is looked at (docs/differences.md).
-- Secrets come in here sealed under the master key of the daemon and leave as they came.
-- Locks: the dialog's row in _p_dialog_security, before its endpoint. Cost: none for SEND; one row for each secured dialog.

create table parley._p_dialog_security (
  conversation_id uuid not null,
  is_initiator boolean not null,
  mode text not null check (mode in ('anonymous', 'full')),
  far_principal oid check ((mode = 'anonymous') or (far_principal is not null)),
  key_id bytea check ((mode = 'anonymous') = (key_id is not null)),
  secured_at timestamptz not null default clock_timestamp(),
  opened_at timestamptz,
  primary key (conversation_id, is_initiator)
);

comment on table parley._p_dialog_security is 'The sides here of dialogs that are secured: for whom, and by whom, messages are sealed (spec 7.3).';
comment on column parley._p_dialog_security.far_principal is 'Role that stands for the other side; null for an initiator that is anonymous.';
comment on column parley._p_dialog_security.key_id is 'The session key of an anonymous dialog, which both sides use; in full security each side makes its own.';
comment on column parley._p_dialog_security.opened_at is
'When the dialog began at a target; null where it has not, and for initiators. Such a row outlives its dialog: see 615_replays.sql.';

create index on parley._p_dialog_security (key_id) where key_id is not null;

create function parley._p_security_mode(has_certificate boolean, is_encrypted boolean, is_bound boolean, is_anonymous boolean) returns text
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select case
    when is_bound and is_anonymous then 'anonymous'
    when is_bound and has_certificate then 'full'
    when is_bound then '9731'
    when is_encrypted then '9727'
    else 'none'
  end
$$;

comment on function parley._p_security_mode(boolean, boolean, boolean, boolean) is
'The table of decisions: none, anonymous or full, or the number of the reason why messages must not leave.
Arguments: has_certificate, whether the owner of the initiator''s service has one to sign with; is_encrypted, ENCRYPTION of BEGIN DIALOG; is_bound,
whether a remote service binding names the target; is_anonymous, its ANONYMOUS.
Source: spec 7.3.';

create function parley._p_security_status(error_number integer, principal oid, service text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select error_number || ': ' || case error_number
    when 9727 then format(
      'the dialog is to be encrypted outside of this server, and nothing says for whom: create a remote service binding for service "%s",'
        || ' or begin dialogs with encryption => false.', service
    )
    when 9728 then format('the role with oid %s, which stands for one side of the dialog, was dropped.', principal)
    when 9731 then format('role "%s" has no certificate: parley certificate create, or import that of the other side.', pg_get_userbyid(principal))
    when 9733 then format('the certificate of role "%s" has no private key here.', pg_get_userbyid(principal))
    when 9767 then format('no certificate of role "%s" is active for begin_dialog.', pg_get_userbyid(principal))
    when 28024 then format('the certificate of role "%s" is not yet valid.', pg_get_userbyid(principal))
    when 28025 then format('the certificate of role "%s" has expired.', pg_get_userbyid(principal))
    when 28056 then format('role "%s", for whose certificate the message is sealed, does not control service "%s".', pg_get_userbyid(principal), service)
  end
$$;

comment on function parley._p_security_status(integer, oid, text) is
'Says why a message is not sealed or not opened, as transmission_status has it.
Arguments: error_number, of the underlying message; principal, whose certificate it is about; service, for 9727 and 28056 the target.
Source: spec 6.12.';

create function parley._p_find_dialog_certificate(
  principal oid, is_own boolean, out fingerprint bytea, out certificate bytea, out private_key bytea, out status text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_problem integer;
begin
  select c.fingerprint, c.certificate, c.private_key into fingerprint, certificate, private_key
  from parley._p_certificate as c
  where c.owner = principal
    and c.revoked_at is null
    and c.is_active_for_begin_dialog
    and c.start_date <= clock_timestamp()
    and c.expiry_date > clock_timestamp()
    and (c.private_key is not null or not is_own)
  order by c.expiry_date desc, c.certificate_id desc
  limit 1;
  if found then
    return;
  end if;
  -- The best of those that will not do tells why.
  select max(
    case
      when is_own and c.private_key is null then 9733
      when c.expiry_date <= clock_timestamp() then 28025
      when c.start_date > clock_timestamp() then 28024
      else 9767
    end
  ) into v_problem
  from parley._p_certificate as c
  where c.owner = principal and c.revoked_at is null;
  if not exists (select from pg_roles as r where r.oid = principal) then
    v_problem := 9728;
  end if;
  status := parley._p_security_status(coalesce(v_problem, 9731), principal, null);
end
$$;

comment on function parley._p_find_dialog_certificate(oid, boolean) is
'Picks the certificate of a role that is good to sign with, or to seal for: active, valid now, the latest to expire. Otherwise status says what is wrong.
Arguments: principal, the role; is_own, whether the private key is needed.
Source: spec 7.4.';

create function parley._p_plan_dialogs(
  endpoint_ids bigint[], is_link_encrypted boolean,
  out endpoint_id bigint, out mode text, out own_principal oid, out far_principal oid, out key_id bytea, out is_recorded boolean, out status text
) returns setof record
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint record;
  v_has_certificate boolean;
begin
  for v_endpoint in
    select e.endpoint_id, e.conversation_id, e.is_initiator, e.is_encrypted, e.owner, e.far_service,
      s.mode, s.far_principal, s.key_id, b.remote_principal, b.is_anonymous
    from parley._p_endpoint as e
    left join parley._p_dialog_security as s using (conversation_id, is_initiator)
    -- What has begun unsealed goes on unsealed, or the target would not know what to believe.
    left join parley._p_remote_service_binding as b
      on b.to_service = e.far_service and e.is_initiator and (b.create_date < e.begun_at or e.is_encrypted and not is_link_encrypted)
    where e.endpoint_id = any (endpoint_ids)
  loop
    endpoint_id := v_endpoint.endpoint_id;
    own_principal := v_endpoint.owner;
    mode := v_endpoint.mode;
    far_principal := v_endpoint.far_principal;
    key_id := v_endpoint.key_id;
    status := null;
    is_recorded := mode is not null;
    if not is_recorded and v_endpoint.is_initiator then
      v_has_certificate := v_endpoint.remote_principal is not null and not v_endpoint.is_anonymous
        and (parley._p_find_dialog_certificate(v_endpoint.owner, true)).status is null;
      far_principal := v_endpoint.remote_principal;
      mode := parley._p_security_mode(
        v_has_certificate, v_endpoint.is_encrypted and not is_link_encrypted, far_principal is not null, v_endpoint.is_anonymous
      );
      if mode = '9731' then
        -- There it says "no certificate"; which one is missing or not usable is what the owner wants to know.
        status := (parley._p_find_dialog_certificate(v_endpoint.owner, true)).status;
        mode := null;
      elsif mode = '9727' then
        status := parley._p_security_status(9727, null, v_endpoint.far_service);
        mode := null;
      end if;
    elsif not is_recorded then
      mode := 'none';
      if v_endpoint.is_encrypted and not is_link_encrypted then
        mode := null;
        status := '9727: the dialog is to be encrypted outside of this server, and its first message was not: it cannot be told for whom to do it.';
      end if;
    end if;
    return next;
  end loop;
end
$$;

comment on function parley._p_plan_dialogs(bigint[], boolean) is
'Tells how the messages of endpoints are to be sealed: mode none, anonymous or full; own_principal, whose certificate signs in full security; far_principal, for
whose certificate; key_id, with which key in an anonymous dialog that has one. is_recorded is false for a dialog that is not secured yet
(_p_secure_dialog). When they must not leave now, mode is null and status says why. An endpoint that is gone has no row.
Arguments: endpoint_ids; is_link_encrypted, whether the link to the next broker is: then a dialog that is to be encrypted needs no binding, and the next
broker does not pass on what is unsealed.
Source: spec 7.3.';

create function parley._p_secure_dialog(
  inout endpoint_id bigint, inout mode text, inout far_principal oid, inout key_id bytea
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_secure_dialog.endpoint_id;
  if not found then
    endpoint_id := null;
    return;
  end if;
  insert into parley._p_dialog_security (conversation_id, is_initiator, mode, far_principal, key_id)
  values (v_endpoint.conversation_id, v_endpoint.is_initiator, mode, far_principal, key_id)
  on conflict do nothing;
  select s.mode, s.far_principal, s.key_id into mode, far_principal, key_id
  from parley._p_dialog_security as s
  where s.conversation_id = v_endpoint.conversation_id and s.is_initiator = v_endpoint.is_initiator;
  if not v_endpoint.is_encrypted then
    update parley._p_endpoint as e set is_encrypted = true where e.endpoint_id = v_endpoint.endpoint_id;
  end if;
end
$$;

comment on function parley._p_secure_dialog(bigint, text, oid, bytea) is
'Notes for good how a dialog is secured, before its first message leaves, and gives what is noted, which may be what another daemon was faster to note.
Gives endpoint_id null when the endpoint is gone.
Arguments: endpoint_id; mode, anonymous or full; far_principal; key_id of an anonymous dialog.';

create function parley._p_bind_dialog(conversation_id uuid, is_initiator boolean, mode text, far_principal oid, key_id bytea) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_noted parley._p_dialog_security;
  v_is_new boolean := false;
  v_is_open boolean;
begin
  if not is_initiator then
    insert into parley._p_dialog_security (conversation_id, is_initiator, mode, far_principal, key_id)
    values (conversation_id, is_initiator, mode, far_principal, key_id)
    on conflict do nothing;
    v_is_new := found;
  end if;
  select * into v_noted
  from parley._p_dialog_security as s
  where s.conversation_id = _p_bind_dialog.conversation_id and s.is_initiator = _p_bind_dialog.is_initiator
  for update;
  if not found then
    return false;
  end if;
  v_is_open := exists (
    select from parley._p_endpoint as e
    where e.conversation_id = _p_bind_dialog.conversation_id and e.is_initiator = _p_bind_dialog.is_initiator
  );
  if v_is_new then
    if v_is_open then
      -- It was begun in clear.
      delete from parley._p_dialog_security as s
      where s.conversation_id = _p_bind_dialog.conversation_id and s.is_initiator = _p_bind_dialog.is_initiator;
    end if;
    return not v_is_open;
  -- An initiator that is anonymous knows the target by the key alone: nobody else could unseal it.
  elsif v_noted.mode = mode and v_noted.key_id is not distinct from key_id and (mode = 'anonymous' or v_noted.far_principal = far_principal) then
    return true;
  -- Somebody who has never been let in may have taken the place: what counts is who comes in.
  elsif is_initiator or v_is_open or v_noted.opened_at is not null then
    return false;
  end if;
  update parley._p_dialog_security as s
  set mode = _p_bind_dialog.mode, far_principal = _p_bind_dialog.far_principal, key_id = _p_bind_dialog.key_id, secured_at = clock_timestamp()
  where s.conversation_id = _p_bind_dialog.conversation_id and s.is_initiator = _p_bind_dialog.is_initiator;
  return true;
end
$$;

comment on function parley._p_bind_dialog(uuid, boolean, text, oid, bytea) is
'Tells whether a message that was opened comes from the other side of its dialog: sealed the same way, by a certificate of the same role or with the same
key. The first message of a dialog settles it for the target. It belongs in the transaction in which the message is accepted: it holds the dialog''s row until
then, so nobody else comes between.
Arguments: conversation_id; is_initiator, of the side here; mode; far_principal, who has signed; key_id.
Source: spec 7.3.';

create function parley._p_secured_services(out services text[], out has_secured_dialogs boolean)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select array(select b.to_service from parley._p_remote_service_binding as b), exists (select from parley._p_dialog_security as s)
$$;

comment on function parley._p_secured_services() is
'Tells what there is to do at all: services that remote service bindings name, and whether any dialog is secured.';

create function parley._p_find_downgraded(conversation_ids uuid[], is_initiators boolean[]) returns setof bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select r.ordinal
  from unnest(conversation_ids, is_initiators) with ordinality as r (conversation_id, is_initiator, ordinal)
  join parley._p_dialog_security as s using (conversation_id, is_initiator)
  join parley._p_endpoint as e using (conversation_id, is_initiator)
$$;

comment on function parley._p_find_downgraded(uuid[], boolean[]) is
'Finds the messages that came in clear for a dialog that is secured, by their place in the arrays, from 1. They are not of the other side.
Arguments: conversation_ids; is_initiators, of the sides here.';

create function parley._p_judge_certificates(
  signer bytea, receiver bytea, service text, out signer_principal oid, out signer_certificate bytea, out private_key bytea, out status text
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_receiver parley._p_certificate;
  v_signer parley._p_certificate;
  v_service parley._p_service;
begin
  select * into v_receiver from parley._p_certificate as c where c.fingerprint = receiver;
  private_key := v_receiver.private_key;
  if v_receiver.fingerprint is null or v_receiver.revoked_at is not null or private_key is null then
    status := format('9733: there is no private key here for the certificate %s, for which the message is sealed.', encode(receiver, 'hex'));
  elsif v_receiver.expiry_date <= clock_timestamp() then
    status := parley._p_security_status(28025, v_receiver.owner, null);
  elsif v_receiver.start_date > clock_timestamp() then
    status := parley._p_security_status(28024, v_receiver.owner, null);
  end if;
  select * into v_service from parley._p_service as s where s.name = service;
  -- A service that does not exist is refused for that reason.
  if status is null and v_service.service_id is not null
    and parley._p_has_permission(v_receiver.owner, 'CONTROL', 'service', v_service.service_id, v_service.owner) is not true then
    status := parley._p_security_status(28056, v_receiver.owner, service);
  end if;
  if signer is null or status is not null then
    return;
  end if;
  select * into v_signer from parley._p_certificate as c where c.fingerprint = signer;
  signer_principal := v_signer.owner;
  signer_certificate := v_signer.certificate;
  if v_signer.fingerprint is null or v_signer.revoked_at is not null then
    status := format('9731: the certificate %s, which has signed the message, is not known here, or revoked.', encode(signer, 'hex'));
  elsif v_signer.expiry_date <= clock_timestamp() then
    status := parley._p_security_status(28025, v_signer.owner, null);
  elsif v_signer.start_date > clock_timestamp() then
    status := parley._p_security_status(28024, v_signer.owner, null);
  end if;
end
$$;

comment on function parley._p_judge_certificates(bytea, bytea, text) is
'Looks up by fingerprint the certificates that a sealed message names, whether they are active or not: signer_principal, in whose name it was signed, the
certificate that verifies it, and the sealed private key that opens it. Where the message must not be opened status says why.
Arguments: signer, null in an anonymous dialog; receiver, for whom it is sealed; service, to which it goes.
Source: spec 7.4.';

create function parley._p_role_of_certificate(fingerprint text) returns oid
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select c.owner::oid
  from parley._p_certificate as c
  where c.fingerprint = decode(_p_role_of_certificate.fingerprint, 'hex')
    and c.revoked_at is null
    and c.start_date <= clock_timestamp()
    and c.expiry_date > clock_timestamp()
$$;

comment on function parley._p_role_of_certificate(text) is
'Gives the role in whose name a certificate signs; null when it is unknown, revoked or not valid now.
Arguments: fingerprint, 64 hexadecimal digits.';

-- sql/096_peer_dialog_certificates.sql

-- Dialog certificates that came with a peer when it was paired with (docs/dialog-security.md).
--
-- Such a certificate stands for the role that the peer acts as, so who has its private key may do what the peer may do, and no more. It shares
-- the peer's fate: with the peer it is revoked, dropped, and mapped to another role. One that somebody has installed by hand is left alone.
-- Invariant: it is taken only when nothing that is sealed or signed today changes by it. So the role has no other certificate (what is sealed for a role
-- is sealed for the one that expires last), and the peer offers one, not those of several roles.
-- Locks: the table, against two pairings for one role, then certificates. Cost: none for who sends or receives.

create table parley._p_peer_dialog_certificate (
  certificate_id integer primary key references parley._p_certificate on delete cascade,
  peer_id integer not null references parley._p_peer on delete cascade
);

comment on table parley._p_peer_dialog_certificate is 'The dialog certificates that came with peers.';

create index on parley._p_peer_dialog_certificate (peer_id);

create view parley.peer_dialog_certificates with (security_barrier) as
select
  d.peer_id,
  p.name as peer_name,
  d.certificate_id,
  c.name,
  pg_catalog.encode(c.thumbprint, 'hex') as fingerprint,
  pg_catalog.pg_get_userbyid(c.principal_id)::text as role_name,
  c.state,
  c.expiry_date
from parley._p_peer_dialog_certificate as d
join parley._p_peer as p using (peer_id)
join parley.certificates as c using (certificate_id)
where pg_catalog.pg_has_role(p.role, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'database');

comment on view parley.peer_dialog_certificates is 'Dialog certificates that came with peers when they were paired with.';
comment on column parley.peer_dialog_certificates.peer_id is 'Identity of the peer.';
comment on column parley.peer_dialog_certificates.peer_name is 'Name of the peer.';
comment on column parley.peer_dialog_certificates.certificate_id is 'Identity of the certificate in parley.certificates.';
comment on column parley.peer_dialog_certificates.name is 'Name of the certificate.';
comment on column parley.peer_dialog_certificates.fingerprint is 'SHA-256 of the certificate, in hexadecimal digits: what people saw when they confirmed.';
comment on column parley.peer_dialog_certificates.role_name is 'Role that it stands for: that of the peer.';
comment on column parley.peer_dialog_certificates.state is 'VALID, NOT ACTIVE, NOT YET VALID, EXPIRED or REVOKED.';
comment on column parley.peer_dialog_certificates.expiry_date is 'Until when it is valid.';

create function parley._p_own_dialog_certificates() returns setof bytea
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select c.certificate
  from (select distinct s.owner from parley._p_service as s where s.service_id >= 65536) as o
  cross join lateral parley._p_find_dialog_certificate(o.owner, true) as c
  where c.status is null
  order by c.fingerprint
$$;

comment on function parley._p_own_dialog_certificates() is
'Gives the certificates with which the owners of services here sign, and for which others seal: one for each owner that has one.';

create function parley._p_dialog_certificate_obstacle(peer text, fingerprints text[]) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when cardinality(fingerprints) = 0 then 'the other side has none'
    when cardinality(fingerprints) > 1 then 'the other side has those of several roles: import each under the role that stands for it'
    when p.role is null then 'the peer acts as no role, for which it could stand'
    when c.owner <> p.role then format('it is here already, and stands for role %s', c.owner)
    when c.revoked_at is not null then 'it is here already, and revoked'
    when o.name is not null then format('role %s has another one already: %s', p.role, o.name)
  end
  from parley._p_peer as p
  left join parley._p_certificate as c on c.fingerprint = decode(fingerprints[1], 'hex')
  left join lateral (
    select o.name
    from parley._p_certificate as o
    where o.owner = p.role and o.certificate_id is distinct from c.certificate_id and o.revoked_at is null and o.expiry_date > clock_timestamp()
      and not exists (select from parley._p_peer_dialog_certificate as d where d.certificate_id = o.certificate_id and d.peer_id = p.peer_id)
    order by o.name
    limit 1
  ) as o on true
  where p.name = peer
$$;

comment on function parley._p_dialog_certificate_obstacle(text, text[]) is
'Tells why the dialog certificate that a peer offers is not taken; null when it is, or can be.
Arguments: peer, its name; fingerprints, of all that it offers.';

create function parley._p_take_dialog_certificate(peer parley._p_peer, offer jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_shown text[] := array(select jsonb_array_elements_text(coalesce(offer->'dialog_certificates', '[]')));
  v_certificates bytea[] := array(
    select decode(c.value, 'base64')
    from jsonb_array_elements(coalesce(offer->'databases', '[]')) as d
    cross join lateral jsonb_array_elements_text(coalesce(d.value->'certificates', '[]')) as c
  );
  v_fingerprints text[] := array(select encode(sha256(c), 'hex') from unnest(v_certificates) as c order by 1);
  v_parts record;
  v_id integer;
begin
  if not (v_fingerprints <@ v_shown and v_shown <@ v_fingerprints) then
    perform parley._p_raise(
      28055,
      'the dialog certificates of the other side are not those that it has shown',
      format('It has shown %s and sent %s.', v_shown, v_fingerprints),
      'Pair again. When that happens twice, the other side cannot be trusted, or its program does not do what it should.'
    );
  end if;
  lock table parley._p_peer_dialog_certificate in share row exclusive mode;
  if parley._p_dialog_certificate_obstacle(peer.name, v_fingerprints) is not null then
    return;
  end if;
  v_parts := parley._p_read_certificate(v_certificates[1]);
  if v_parts.expiry_date <= clock_timestamp() then
    return;
  end if;
  -- What the peer has used before may still have signed something that is on its way; nothing is sealed for it any more.
  update parley._p_certificate as c
  set is_active_for_begin_dialog = c.fingerprint = v_parts.fingerprint
  from parley._p_peer_dialog_certificate as d
  where d.peer_id = peer.peer_id and c.certificate_id = d.certificate_id;
  v_id := parley._p_add_certificate(
    left(peer.name, 100) || ' ' || left(v_fingerprints[1], 8), v_certificates[1], peer.role, null, true
  );
  if v_id is not null then
    insert into parley._p_peer_dialog_certificate (certificate_id, peer_id) values (v_id, peer.peer_id);
  end if;
  perform parley._p_tell_security();
end
$$;

comment on function parley._p_take_dialog_certificate(parley._p_peer, jsonb) is
'Installs the dialog certificate that a peer has offered, under the role of the peer, unless something stands in the way.
Arguments: peer, as it is now; offer, with the certificates, and the fingerprints that people have seen.
Errors: 15297 malformed, 28055 they are others than those that were shown.';

create function parley._p_map_dialog_certificates(peer_id integer, role regrole) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  lock table parley._p_peer_dialog_certificate in share row exclusive mode;
  if role is null or exists (
    select
    from parley._p_certificate as c
    where c.owner = role and not exists (
      select from parley._p_peer_dialog_certificate as d where d.certificate_id = c.certificate_id and d.peer_id = _p_map_dialog_certificates.peer_id
    )
  ) then
    perform parley._p_drop_dialog_certificates(peer_id);
    return;
  end if;
  update parley._p_certificate as c
  set owner = role
  from parley._p_peer_dialog_certificate as d
  where d.peer_id = _p_map_dialog_certificates.peer_id and c.certificate_id = d.certificate_id and c.owner <> role;
  if found then
    perform parley._p_tell_security();
  end if;
end
$$;

comment on function parley._p_map_dialog_certificates(integer, regrole) is
'Lets the dialog certificates of a peer stand for the role that it is mapped to now. They are dropped when there is none, or it has other certificates: the peer
must not go on as the role that it was.
Arguments: peer_id; role, null for none.';

create function parley._p_drop_dialog_certificates(peer_id integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from parley._p_permission as p
  using parley._p_peer_dialog_certificate as d
  where d.peer_id = _p_drop_dialog_certificates.peer_id and p.class = 'certificate' and p.object_id = d.certificate_id;
  delete from parley._p_certificate as c
  using parley._p_peer_dialog_certificate as d
  where d.peer_id = _p_drop_dialog_certificates.peer_id and c.certificate_id = d.certificate_id;
  if found then
    perform parley._p_tell_security();
  end if;
end
$$;

comment on function parley._p_drop_dialog_certificates(integer) is 'Drops the dialog certificates that came with a peer.';

create function parley._p_revoke_dialog_certificates(peer_id integer) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update parley._p_certificate as c
  set revoked_at = clock_timestamp()
  from parley._p_peer_dialog_certificate as d
  where d.peer_id = _p_revoke_dialog_certificates.peer_id and c.certificate_id = d.certificate_id and c.revoked_at is null
$$;

comment on function parley._p_revoke_dialog_certificates(integer) is
'Revokes the dialog certificates that came with a peer: what it signs comes in over no other way either.';

-- sql/097_pairing.sql

-- Pairing: two brokers that have never met learn each other's keys, with no authority that both believe in (docs/security.md).
--
-- The daemon lets a stranger speak of nothing but pairing, and only while a pairing is open here. There are two kinds. An INVITATION has a secret
-- that is shown once, to be carried to the other side by people; who proves to have it, for this very connection, is trusted. A WINDOW lets
-- anybody ask; a code is shown on both sides, and nobody is trusted before people on both sides have said that it is the same.
-- Each is good once, for minutes. The database is where the daemon, which holds the connection, and the operator, who may sit elsewhere, meet.
-- Locks: the pairing's row, then that of the request, then peers. Cost: none while nothing is open.

create table parley._p_pairing (
  pairing_id uuid primary key default gen_random_uuid(),
  secret bytea,
  peer_name text,
  role regrole,
  is_routed boolean not null default false,
  is_certified boolean not null default true,
  failures integer not null default 0,
  opened_at timestamptz not null default now(),
  expires_at timestamptz not null,
  closed_at timestamptz
);

comment on table parley._p_pairing is 'Pairings that are or were open, for a day.';
comment on column parley._p_pairing.secret is 'Secret of an invitation; null for a window.';

create table parley._p_pairing_request (
  request_id uuid primary key default gen_random_uuid(),
  pairing_id uuid not null references parley._p_pairing on delete cascade,
  fingerprint text collate "C" not null,
  certificate bytea not null,
  offer jsonb not null,
  code text not null,
  remote text not null,
  state text not null default 'WAITING' check (state in ('WAITING', 'CONFIRMED', 'REFUSED', 'GONE', 'DONE')),
  peer_name text,
  role regrole,
  is_routed boolean not null default false,
  is_certified boolean not null default true,
  requested_at timestamptz not null default now()
);

comment on table parley._p_pairing_request is 'Brokers that have asked to be trusted while a window was open.';

create index on parley._p_pairing_request (pairing_id);

create function parley._p_is_pairing_open(pairing parley._p_pairing) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select pairing.closed_at is null and pairing.expires_at > clock_timestamp() and pairing.failures < 5
$$;

comment on function parley._p_is_pairing_open(parley._p_pairing) is 'Tells whether a pairing can still be used.';

create function parley._p_add_pairing(
  valid_seconds integer, secret bytea, name text, role text, with_routes boolean, with_certificates boolean
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id uuid;
begin
  perform parley._p_require_range('valid_seconds', valid_seconds, 10, 86400);
  delete from parley._p_pairing as p where p.expires_at < clock_timestamp() - interval '1 day';
  insert into parley._p_pairing (secret, peer_name, role, is_routed, is_certified, expires_at)
  values (
    secret, case when name is not null then parley._p_name('peer', name) end, parley._p_peer_role(role), coalesce(with_routes, false),
    coalesce(with_certificates, true), clock_timestamp() + make_interval(secs => valid_seconds)
  )
  returning pairing_id into v_id;
  return v_id;
end
$$;

comment on function parley._p_add_pairing(integer, bytea, text, text, boolean, boolean) is
'Opens a pairing.
Errors: 8402 valid_seconds out of range, 9609 bad name, 15151 no such role.';

create function parley.invite_peer(
  valid_seconds integer default 900, role text default null, name text default null, with_routes boolean default false,
  with_certificates boolean default true,
  caller parley.caller default parley.current_caller()
) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  -- Two random UUIDs have 244 random bits; their hash has 128 of them, evenly.
  v_secret bytea := substr(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 1, 16);
begin
  perform parley._p_require_administrator(v_caller, 'invite_peer');
  return 'parley1-' || encode(
    uuid_send(parley._p_add_pairing(valid_seconds, v_secret, invite_peer.name, invite_peer.role, with_routes, with_certificates)) || v_secret,
    'hex'
  );
end
$$;

comment on function parley.invite_peer(integer, text, text, boolean, boolean, parley.caller) is
'Invites a broker elsewhere: gives a token, to be given to parley pair there with --token. Who has it is trusted here, once; it is a secret.
Arguments: valid_seconds, for how long, 10 to 86400; role, what the peer acts as (null: only what is granted to PUBLIC counts); name of the
peer (null: what it calls itself; the name of a peer that there is gives that one a further key); with_routes, whether routes to its services are made;
with_certificates, whether its dialog certificate is taken too, under that role.
Errors: 8402 out of range, 9609 bad name, 15151 no such role or not an administrator.';

create function parley.open_pairing(
  valid_seconds integer default 600,
  caller parley.caller default parley.current_caller()
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  perform parley._p_require_administrator(v_caller, 'open_pairing');
  return parley._p_add_pairing(valid_seconds, null, null, null, false, true);
end
$$;

comment on function parley.open_pairing(integer, parley.caller) is
'Lets brokers elsewhere ask to be trusted, until one has been, or the time is over; gives the id of the pairing. Nobody is trusted before confirm_pairing.
Arguments: valid_seconds, for how long, 10 to 86400.
Errors: 8402 out of range, 15151 not an administrator.';

create function parley.close_pairing(pairing uuid, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  perform parley._p_require_administrator(v_caller, 'close_pairing');
  update parley._p_pairing as p set closed_at = clock_timestamp() where p.pairing_id = pairing and p.closed_at is null;
end
$$;

comment on function parley.close_pairing(uuid, parley.caller) is
'Ends a pairing before its time. One that has ended already is left alone.
Errors: 15151 not an administrator.';

create function parley.pairing_requests(pairing uuid, caller parley.caller default parley.current_caller())
returns table (request_id uuid, fingerprint text, code text, offer jsonb, remote text, state text, requested_at timestamptz)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  perform parley._p_require_administrator(v_caller, 'pairing_requests');
  return query
  select r.request_id, r.fingerprint, r.code, r.offer, r.remote, r.state, r.requested_at
  from parley._p_pairing_request as r
  where r.pairing_id = pairing
  order by r.requested_at, r.request_id;
end
$$;

comment on function parley.pairing_requests(uuid, parley.caller) is
'Gives who has asked while a pairing was open: request_id; fingerprint of its key; code, which has to be the same on both sides; offer, what it says about
itself; remote, the address it came from; state, WAITING, CONFIRMED, REFUSED, GONE (it left) or DONE (it is trusted).
Errors: 15151 not an administrator.';

create function parley.confirm_pairing(
  request uuid, role text default null, name text default null, with_routes boolean default false, with_certificates boolean default true,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  perform parley._p_require_administrator(v_caller, 'confirm_pairing');
  update parley._p_pairing_request as r
  set state = 'CONFIRMED', role = parley._p_peer_role(confirm_pairing.role), is_routed = coalesce(with_routes, false),
    is_certified = coalesce(with_certificates, true),
    peer_name = case when confirm_pairing.name is not null then parley._p_name('peer', confirm_pairing.name) end
  where r.request_id = request and r.state = 'WAITING';
  if not found then
    perform parley._p_raise(15151, 'nobody waits to be confirmed', 'The request is unknown, or over.', 'See parley.pairing_requests(pairing).');
  end if;
end
$$;

comment on function parley.confirm_pairing(uuid, text, text, boolean, boolean, parley.caller) is
'Says that the code of a request is the one that the other side shows. The peer is trusted as soon as the other side has said so too.
Arguments: request; role, name, with_routes and with_certificates, as invite_peer takes them.
Errors: 9609 bad name, 15151 no such request or role, or not an administrator.';

create function parley.refuse_pairing(request uuid, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  perform parley._p_require_administrator(v_caller, 'refuse_pairing');
  update parley._p_pairing_request as r set state = 'REFUSED' where r.request_id = request and r.state in ('WAITING', 'CONFIRMED');
end
$$;

comment on function parley.refuse_pairing(uuid, parley.caller) is
'Sends a broker away that has asked to be trusted. What is over is left alone.
Errors: 15151 not an administrator.';

create function parley.pair_peer(
  fingerprint text,
  certificate bytea,
  not_before timestamptz,
  not_after timestamptz,
  offer jsonb,
  role text default null,
  name text default null,
  with_routes boolean default false,
  with_certificates boolean default true,
  caller parley.caller default parley.current_caller()
) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  perform parley._p_require_administrator(v_caller, 'pair_peer');
  return parley._p_pair(
    parley._p_fingerprint(fingerprint), certificate, not_before, not_after, offer,
    case when name is not null then parley._p_name('peer', name) end, parley._p_peer_role(role), coalesce(with_routes, false),
    coalesce(with_certificates, true)
  );
end
$$;

comment on function parley.pair_peer(text, bytea, timestamptz, timestamptz, jsonb, text, text, boolean, boolean, parley.caller) is
'Trusts a broker that has been paired with from here, as parley pair does, and gives the name of the peer. One that is known already is brought up to date.
Arguments: fingerprint, certificate, not_before and not_after, as trust_peer; offer, what the broker says about itself; role, name,
with_routes and with_certificates, as invite_peer.
Errors: 2714 it says that it is the broker of another peer, or is reached at the address of one, 8402 malformed fingerprint or address, 9609 bad name,
15151 no such role or not an administrator, 15297 its dialog certificate is malformed, 28034 the peer is revoked, 28055 the key
has expired, or its dialog certificate is not the one that was shown.';

-- sql/098_pairing_daemon.sql

-- What the daemon, and the command that has called another broker, do with pairings; see 097_pairing.sql.
--
-- An offer is what a broker says about itself: {"name", "address", "dialog_certificates", "databases": [{"instance", "database", "services",
-- "certificates"}]}. The certificates come last, to who is trusted; dialog_certificates are their fingerprints, which people see first.
-- It was proven only to come from whoever has the key, so nothing in it may reach further than the peer itself: a name that is taken is not the same
-- peer unless an operator has said so, and a broker instance or an address that is another peer's is refused.

create function parley._p_own_offer() returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'name', current_database(),
    'dialog_certificates', (
      select coalesce(jsonb_agg(encode(sha256(c), 'hex') order by sha256(c)), '[]') from parley._p_own_dialog_certificates() as c
    ),
    'databases', jsonb_build_array(jsonb_build_object(
      'instance', b.service_broker_guid,
      'database', current_database(),
      'services', (select coalesce(jsonb_agg(s.name order by s.name), '[]') from parley._p_service as s where s.service_id >= 65536),
      'certificates', (
        select coalesce(jsonb_agg(translate(encode(c, 'base64'), E'\n', '') order by sha256(c)), '[]') from parley._p_own_dialog_certificates() as c
      )
    ))
  )
  from parley._p_broker as b
$$;

comment on function parley._p_own_offer() is 'Gives what this database says about itself to a peer.';

create function parley._p_is_pairing_open() returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (select from parley._p_pairing as p where parley._p_is_pairing_open(p))
$$;

comment on function parley._p_is_pairing_open() is 'Tells whether strangers may ask to be trusted just now.';

create function parley._p_is_pairing_window_open() returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (select from parley._p_pairing as p where p.secret is null and parley._p_is_pairing_open(p))
$$;

comment on function parley._p_is_pairing_window_open() is 'Tells whether strangers without an invitation may ask to be trusted just now.';

create function parley._p_route_to_peer(peer_name text, offer jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_service record;
  v_name text;
begin
  if offer->>'address' is null then
    return;
  end if;
  for v_service in
    select s.name, d.value->>'instance' as instance
    from jsonb_array_elements(offer->'databases') as d
    cross join lateral jsonb_array_elements_text(d.value->'services') as s (name)
    order by s.name
  loop
    v_name := left(peer_name || ' ' || v_service.name, 128);
    begin
      perform parley.create_route(
        name => v_name, address => offer->>'address', service_name => v_service.name, broker_instance => v_service.instance,
        caller => parley.current_caller()
      );
    exception
      -- 2714: made by an earlier pairing.
      when sqlstate 'SB23E' then
        perform parley.alter_route(name => v_name, address => offer->>'address', broker_instance => v_service.instance,
          caller => parley.current_caller());
    end;
  end loop;
end
$$;

comment on function parley._p_route_to_peer(text, jsonb) is
'Makes routes to the services that a peer has offered, at its address; none when it has not said where it listens.
Errors: those of create_route.';

create function parley._p_pair(
  fingerprint text, certificate bytea, not_before timestamptz, not_after timestamptz, offer jsonb, peer_name text, role oid, with_routes boolean,
  with_certificates boolean
) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_offered text := left(coalesce(nullif(offer->>'name', ''), 'peer'), 100);
  v_instances uuid[] := array(
    select (d.value->>'instance')::uuid from jsonb_array_elements(coalesce(offer->'databases', '[]')) as d order by 1
  );
  v_address text := parley._p_peer_address(offer->>'address');
  v_peer parley._p_peer;
  v_name text;
begin
  select p.name into v_name
  from parley._p_peer_certificate as c
  join parley._p_peer as p using (peer_id)
  where c.fingerprint = _p_pair.fingerprint;
  v_name := coalesce(
    v_name, peer_name,
    case when exists (select from parley._p_peer as p where p.name = v_offered) then v_offered || ' ' || left(fingerprint, 8) else v_offered end
  );
  select * into v_peer from parley._p_peer as p where p.name = v_name for update;
  if v_peer.revoked_at is not null then
    perform parley._p_raise(
      28034, format('peer "%s" is revoked', v_name), null, 'Drop it with parley.drop_peer; then it may be trusted anew.'
    );
  end if;
  perform
  from parley._p_peer as p
  where (
      p.broker_instances && v_instances
      or exists (select from parley._p_peer_broker as b where b.peer_id = p.peer_id and b.broker_instance = any (v_instances))
    )
    and p.name <> v_name and p.revoked_at is null;
  if found then
    perform parley._p_raise(
      2714,
      'the other side says that it is the broker of another peer',
      (
        select format('That is peer "%s".', p.name)
        from parley._p_peer as p
        where (
            p.broker_instances && v_instances
            or exists (select from parley._p_peer_broker as b where b.peer_id = p.peer_id and b.broker_instance = any (v_instances))
          )
          and p.name <> v_name and p.revoked_at is null
        limit 1
      ),
      'If it is the same broker with another key, pair again and give the name of that peer; if it has taken its place, drop that peer first.'
    );
  end if;
  -- At the address of a peer nobody else may answer: who could claim it would be let in there.
  perform from parley._p_peer as p where p.address = v_address and p.name <> v_name and p.revoked_at is null;
  if found then
    perform parley._p_raise(
      2714,
      'the other side says that it is reached at the address of another peer',
      (
        select format('At %s lives peer "%s".', v_address, p.name)
        from parley._p_peer as p where p.address = v_address and p.name <> v_name and p.revoked_at is null limit 1
      ),
      'If it is the same broker with another key, pair again and give the name of that peer; if it has taken its place, drop that peer first.'
    );
  end if;
  if v_peer.peer_id is null then
    insert into parley._p_peer (peer_id, name, role, address, broker_instances)
    values (nextval('parley._p_object_id'), v_name, role::regrole, v_address, v_instances)
    returning * into v_peer;
  else
    update parley._p_peer as p
    set role = coalesce(_p_pair.role::regrole, p.role), address = coalesce(v_address, p.address),
      broker_instances = array(select distinct i from unnest(p.broker_instances || v_instances) as i order by i), modify_date = clock_timestamp()
    where p.peer_id = v_peer.peer_id;
    if role <> v_peer.role::oid then
      perform parley._p_map_dialog_certificates(v_peer.peer_id, role::regrole);
    end if;
    select * into v_peer from parley._p_peer as p where p.peer_id = v_peer.peer_id;
  end if;
  perform parley._p_settle_brokers(v_peer.peer_id, v_instances);
  if not exists (select from parley._p_peer_certificate as c where c.fingerprint = _p_pair.fingerprint) then
    perform parley._p_add_peer_certificate(v_peer.peer_id, fingerprint, certificate, not_before, not_after, null);
  end if;
  if with_routes then
    perform parley._p_route_to_peer(v_name, offer);
  end if;
  if with_certificates then
    perform parley._p_take_dialog_certificate(v_peer, offer);
  end if;
  perform parley._p_tell_peers();
  return v_name;
end
$$;

comment on function parley._p_pair(text, bytea, timestamptz, timestamptz, jsonb, text, oid, boolean, boolean) is
'Trusts a broker that has been paired with, and gives the name under which. One that is known already is brought up to date.
Arguments: fingerprint, certificate and its dates; offer; peer_name, as an operator has said, or null; role or null; with_routes; with_certificates.
Errors: 2714 its broker instance or its address is that of another peer, 8402 malformed address, 15297 and 28055 of dialog certificates, 28034 revoked,
28055 expired, and those of create_route.';

create function parley._p_find_invitation(invitation uuid) returns bytea
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select p.secret from parley._p_pairing as p where p.pairing_id = invitation and p.secret is not null and parley._p_is_pairing_open(p)
$$;

comment on function parley._p_find_invitation(uuid) is 'Gives the secret of an invitation that can still be used, null otherwise.';

create function parley._p_note_pairing_failure(invitation uuid) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update parley._p_pairing as p set failures = p.failures + 1 where p.pairing_id = invitation
$$;

comment on function parley._p_note_pairing_failure(uuid) is 'Counts a wrong proof; the fifth one ends an invitation.';

create function parley._p_redeem_invitation(
  invitation uuid, fingerprint text, certificate bytea, not_before timestamptz, not_after timestamptz, offer jsonb
) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pairing parley._p_pairing;
begin
  select * into v_pairing from parley._p_pairing as p where p.pairing_id = invitation for update;
  if not found or v_pairing.secret is null or not parley._p_is_pairing_open(v_pairing) then
    return null;
  end if;
  update parley._p_pairing as p set closed_at = clock_timestamp() where p.pairing_id = invitation;
  return parley._p_pair(fingerprint, certificate, not_before, not_after, offer, v_pairing.peer_name, v_pairing.role, v_pairing.is_routed,
    v_pairing.is_certified);
end
$$;

comment on function parley._p_redeem_invitation(uuid, text, bytea, timestamptz, timestamptz, jsonb) is
'Trusts who has proven to have an invitation, once: gives the name of the peer, null when the invitation is used or over.
Errors: those of _p_pair.';

create function parley._p_request_pairing(fingerprint text, certificate bytea, offer jsonb, code text, remote text) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_pairing parley._p_pairing;
  v_request uuid;
begin
  select * into v_pairing
  from parley._p_pairing as p
  where p.secret is null and parley._p_is_pairing_open(p)
  order by p.opened_at desc
  limit 1
  for update;
  -- Strangers must not fill the table or the operator's screen.
  if not found or (select count(*) from parley._p_pairing_request as r where r.pairing_id = v_pairing.pairing_id) >= 20 then
    return null;
  end if;
  insert into parley._p_pairing_request (pairing_id, fingerprint, certificate, offer, code, remote)
  values (v_pairing.pairing_id, fingerprint, certificate, offer, code, remote)
  returning request_id into v_request;
  return v_request;
end
$$;

comment on function parley._p_request_pairing(text, bytea, jsonb, text, text) is
'Notes that a broker asks to be trusted; gives the id of the request, null when no window is open, or too many have asked.';

create function parley._p_pairing_request_state(request uuid) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case when r.state in ('WAITING', 'CONFIRMED') and not parley._p_is_pairing_open(p) then 'GONE' else r.state end
  from parley._p_pairing_request as r
  join parley._p_pairing as p using (pairing_id)
  where r.request_id = request
$$;

comment on function parley._p_pairing_request_state(uuid) is 'Gives the state of a request; GONE too when its window is over.';

create function parley._p_leave_pairing(request uuid) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update parley._p_pairing_request as r set state = 'GONE' where r.request_id = request and r.state in ('WAITING', 'CONFIRMED')
$$;

comment on function parley._p_leave_pairing(uuid) is 'Notes that the broker that has asked does not wait any more.';

create function parley._p_complete_pairing(request uuid, not_before timestamptz, not_after timestamptz, offer jsonb) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_request parley._p_pairing_request;
  v_pairing parley._p_pairing;
begin
  select p.* into v_pairing
  from parley._p_pairing_request as r
  join parley._p_pairing as p using (pairing_id)
  where r.request_id = request
  for update of p;
  if not found or not parley._p_is_pairing_open(v_pairing) then
    return null;
  end if;
  update parley._p_pairing_request as r set state = 'DONE' where r.request_id = request and r.state = 'CONFIRMED' returning * into v_request;
  if not found then
    return null;
  end if;
  update parley._p_pairing as p set closed_at = clock_timestamp() where p.pairing_id = v_request.pairing_id;
  return parley._p_pair(
    v_request.fingerprint, v_request.certificate, not_before, not_after,
    -- What people have confirmed is what they saw.
    offer || jsonb_build_object('dialog_certificates', coalesce(v_request.offer->'dialog_certificates', '[]')),
    v_request.peer_name, v_request.role, v_request.is_routed, v_request.is_certified
  );
end
$$;

comment on function parley._p_complete_pairing(uuid, timestamptz, timestamptz, jsonb) is
'Trusts a broker that has asked, once both sides have confirmed, and closes the window: gives the name of the peer, null when it is not confirmed or over.
Errors: those of _p_pair.';

-- sql/099_broker_certificates.sql

-- The certificates with which the daemons of this database prove who they are: told by the daemons, so that the database can warn of their end.
--
-- The keys are with the daemons; here stand the dates. A daemon tells its certificate when it begins, when it has another one, and every hour;
-- what was not told for a day is forgotten: that daemon is gone, or is called otherwise.
-- Beside it stands the address under which others reach the daemon, when its operator has said so (parley serve --advertise).
-- Locks: its row. Cost: a row an hour for each daemon that listens.

create table parley._p_broker_certificate (
  daemon text collate "C" primary key,
  fingerprint text collate "C" not null,
  not_before timestamptz not null,
  not_after timestamptz not null,
  reported_at timestamptz not null,
  address text
);

comment on table parley._p_broker_certificate is 'Certificates of the daemons that serve this database, as they were told last.';

create function parley._p_report_certificate(
  daemon text, fingerprint text, not_before timestamptz, not_after timestamptz, address text default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from parley._p_broker_certificate as c where c.reported_at < clock_timestamp() - interval '1 day';
  insert into parley._p_broker_certificate as c (daemon, fingerprint, not_before, not_after, reported_at, address)
  values (daemon, fingerprint, not_before, not_after, clock_timestamp(), parley._p_peer_address(address))
  on conflict on constraint _p_broker_certificate_pkey do update
  set fingerprint = excluded.fingerprint, not_before = excluded.not_before, not_after = excluded.not_after, reported_at = excluded.reported_at,
    address = excluded.address;
end
$$;

comment on function parley._p_report_certificate(text, text, timestamptz, timestamptz, text) is
'Notes the certificate that a daemon uses.
Arguments: daemon, its name, such as that of its host; fingerprint of the key; not_before and not_after of the certificate; address, tcp://host:port,
where others reach it, null when its operator has not said.
Errors: 8402 malformed address.';

create view parley.broker_certificates with (security_barrier) as
select
  c.daemon,
  c.fingerprint,
  case
    when c.not_after <= pg_catalog.clock_timestamp() then 'EXPIRED'
    when c.not_before > pg_catalog.clock_timestamp() then 'NOT YET VALID'
    else 'VALID'
  end as state,
  c.not_before,
  c.not_after,
  c.reported_at,
  c.address
from parley._p_broker_certificate as c
where c.reported_at > pg_catalog.clock_timestamp() - interval '1 day'
  and exists (select from parley._p_visible_class as v where v.class = 'database');

comment on view parley.broker_certificates is 'Certificates with which the daemons of this database prove to other brokers who they are.';
comment on column parley.broker_certificates.daemon is 'Name of the daemon.';
comment on column parley.broker_certificates.fingerprint is 'SHA-256 of its public key, in hexadecimal digits: what peers trust.';
comment on column parley.broker_certificates.state is 'VALID, NOT YET VALID or EXPIRED.';
comment on column parley.broker_certificates.not_before is 'From when it is valid.';
comment on column parley.broker_certificates.not_after is 'Until when it is valid.';
comment on column parley.broker_certificates.reported_at is 'When the daemon told it last; it does every hour.';
comment on column parley.broker_certificates.address is
'Where other brokers reach it, tcp://host:port, as its operator has said with --advertise; null when nobody has.';

create function parley._p_advertised_address(fingerprint text default null) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case when count(distinct c.address) = 1 then min(c.address) end
  from parley.broker_certificates as c
  where c.fingerprint = coalesce(_p_advertised_address.fingerprint, c.fingerprint) and c.address is not null
$$;

comment on function parley._p_advertised_address(text) is
'Gives the address under which the daemons of this database say that others reach them; null when none says so, or they say different things.
Arguments: fingerprint, of the key of the daemon that is meant; null: any.';

-- sql/099_master_keys.sql

-- Changing the master key: every secret in the database is sealed anew, by a program that has the old key and the new one.
--
-- Here are only the bytes. A secret that was changed meanwhile is left alone, and is told apart by the key that its first bytes name.
-- Locks: the rows of the secrets, all of them, in one transaction.

create function parley._p_sealed_secrets() returns table (kind text, id bytea, sealed bytea)
language sql
set search_path = pg_catalog, pg_temp
as $$
  select 'certificate', c.fingerprint, c.private_key
  from parley._p_certificate as c
  where c.private_key is not null
  union all
  select 'session key', k.key_id, k.sealed_key
  from parley._p_session_key as k
  union all
  select 'webhook', int4send(a.queue_id), a.sealed_secret
  from parley._p_external_activation as a
  where a.sealed_secret is not null
$$;

comment on function parley._p_sealed_secrets() is
'Gives every secret that is sealed under a master key: kind, certificate, session key or webhook; id, of a webhook that of its queue; sealed.';

create function parley._p_replace_sealed_secret(kind text, id bytea, sealed bytea, sealed_anew bytea) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if kind = 'certificate' then
    update parley._p_certificate as c
    set private_key = sealed_anew
    where c.fingerprint = id and c.private_key = sealed;
  elsif kind = 'webhook' then
    -- As _p_seal_webhook_secret: nobody puts back a secret that he read before.
    perform from parley._p_queue as q where int4send(q.queue_id) = id for no key update;
    update parley._p_external_activation as a
    set sealed_secret = sealed_anew
    where int4send(a.queue_id) = id and a.sealed_secret = sealed;
  else
    update parley._p_session_key as k
    set sealed_key = sealed_anew
    where k.key_id = id and k.sealed_key = sealed;
  end if;
  return found;
end
$$;

comment on function parley._p_replace_sealed_secret(text, bytea, bytea, bytea) is
'Replaces a secret by itself, sealed under another master key; false when it has been changed meanwhile.
Arguments: kind and id, as _p_sealed_secrets gives them; sealed, as it was; sealed_anew.';

-- sql/099_session_keys.sql

-- Session keys of anonymous dialogs, and the end of what is noted of dialogs.
--
-- In full security each daemon makes its own keys, and nothing has to be kept. In an anonymous dialog the target can only use the key of the initiator, so
-- both sides keep it as long as a dialog has it, sealed under the master key of each side.
-- Locks: none but the rows themselves. Cost: one row for some hours of dialogs.

create table parley._p_session_key (
  key_id bytea primary key,
  sealed_key bytea not null,
  created_at timestamptz not null default clock_timestamp()
);

comment on table parley._p_session_key is
'Session keys of anonymous dialogs, sealed under the master key: replies are sealed with the initiator''s key, also after a restart (spec 7.3).';

create function parley._p_keep_session_key(key_id bytea, sealed_key bytea) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  insert into parley._p_session_key as k (key_id, sealed_key) values ($1, $2) on conflict on constraint _p_session_key_pkey do nothing
$$;

comment on function parley._p_keep_session_key(bytea, bytea) is
'Stores the session key of anonymous dialogs.
Arguments: key_id; sealed_key, sealed under the master key.';

create function parley._p_read_session_key(key_id bytea) returns bytea
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select k.sealed_key from parley._p_session_key as k where k.key_id = $1
$$;

comment on function parley._p_read_session_key(bytea) is 'Gives a session key, sealed under the master key, or null.';

create function parley._p_forget_dialogs(dialogs_max integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_forgotten integer;
begin
  delete from parley._p_dialog_security as s
  using (
    select d.conversation_id, d.is_initiator
    from parley._p_dialog_security as d
    where d.secured_at < clock_timestamp() - interval '10 minutes'
      and (d.opened_at is null or d.opened_at < clock_timestamp() - parley._p_replay_memory())
      and not exists (
        select from parley._p_endpoint as e where e.conversation_id = d.conversation_id and e.is_initiator = d.is_initiator
      )
    limit dialogs_max
    for update skip locked
  ) as g
  where s.conversation_id = g.conversation_id and s.is_initiator = g.is_initiator;
  get diagnostics v_forgotten = row_count;
  -- A daemon uses a key for new dialogs for some hours.
  delete from parley._p_session_key as k
  where k.created_at < clock_timestamp() - interval '12 hours'
    and not exists (select from parley._p_dialog_security as s where s.key_id = k.key_id);
  return v_forgotten;
end
$$;

comment on function parley._p_forget_dialogs(integer) is
'Removes what is noted of secured dialogs that have ended, once a replay is recognised by its age, and session keys that no dialog has any more; gives
the number of dialogs.
Arguments: dialogs_max, how many at most.';

-- sql/100_conversations.sql

-- Conversations: groups, endpoints, and what remains of an endpoint that is closed.
--
-- Who writes what. A SEND writes nothing here after the first on a conversation: it locks the sender's endpoint row FOR KEY SHARE,
-- so that any number of senders share it and END CONVERSATION (FOR UPDATE) waits for them. A RECEIVE locks only the group's row,
-- which nobody ever updates. State changes update endpoint rows; counters never do, so an old snapshot has no chain of
-- dead versions to grow here.
-- Lock order: group rows (by group_id), then endpoint rows (by endpoint_id), then messages.

create table parley._p_conversation_group (
  group_id bigint generated always as identity primary key,
  conversation_group_id uuid not null unique,
  service_id integer not null
);

comment on table parley._p_conversation_group is 'Conversation groups (spec 3.6). Its rows are the group locks; they are never updated.';

-- The columns that SEND reads stand first.
create table parley._p_endpoint (
  endpoint_id bigint generated always as identity primary key,
  far_endpoint_id bigint,
  group_id bigint not null,
  conversation_handle uuid not null default gen_random_uuid() unique,
  destination_lane integer,
  destination_position regclass,
  destination_doorbell regclass,
  usual_message_type_id integer,
  sender_role regrole,
  usual_message_type_name text collate "C",
  state text not null,
  is_initiator boolean not null,
  is_plain boolean not null,
  priority smallint not null,
  service_id integer not null,
  service_contract_id integer not null,
  service_name text collate "C" not null,
  service_contract_name text collate "C" not null,
  conversation_id uuid not null,
  owner regrole not null,
  far_service text collate "C" not null,
  far_broker_instance text,
  is_encrypted boolean not null,
  lifetime timestamptz not null,
  destination_id integer,
  begun_at timestamptz not null default clock_timestamp(),
  state_since timestamptz not null default clock_timestamp(),
  check (state in ('SO', 'SI', 'CO', 'DI', 'DO', 'ER')),
  check (destination_lane is null or state = 'CO')
);

comment on table parley._p_endpoint is 'One row for each side of a conversation (spec 3.1). A side that is closed lives on in _p_tombstone.';
comment on column parley._p_endpoint.destination_lane is 'The lane of the far side, or null when SEND must look closer; see 200_send.sql.';
comment on column parley._p_endpoint.far_endpoint_id is
'The other side when that is in this database; null as long as there is none; -endpoint_id when it is in another one.';
comment on column parley._p_endpoint.destination_id is 'Where messages for a far side in another database go; null as long as no route was found.';
comment on column parley._p_endpoint.usual_message_type_id is
'The message type that SEND finds without a look-up: the first of the contract that this side may send and that needs no validation.';
comment on column parley._p_endpoint.sender_role is 'The role through which a sender is known to hold RECEIVE on the queue of this side.';
comment on column parley._p_endpoint.is_plain is 'Whether RECEIVE may take messages just by position: alone in its group, no Error, no timer.';

create unique index on parley._p_endpoint (conversation_id, is_initiator);
create index on parley._p_endpoint (group_id);
create index on parley._p_endpoint (service_id);

create table parley._p_tombstone (
  conversation_handle uuid primary key,
  conversation_id uuid not null,
  is_initiator boolean not null,
  service_contract_id integer not null,
  conversation_group_id uuid not null,
  service_id integer not null,
  far_service text collate "C" not null,
  owner regrole not null,
  lifetime timestamptz not null,
  priority smallint not null,
  expires_at timestamptz not null
);

comment on table parley._p_tombstone is
'Closed target endpoints, kept until expires_at so that a replayed first message cannot open the conversation again (spec 3.3).';

create index on parley._p_tombstone (expires_at);
create index on parley._p_tombstone (conversation_id);

-- Conversation timers, lifetimes and abandoned endpoints: whatever is due at a time.
create table parley._p_alarm (
  endpoint_id bigint not null,
  kind text not null check (kind in ('timer', 'lifetime', 'abandoned')),
  due_at timestamptz not null,
  -- When it was due before it was put off; null for all others.
  first_due_at timestamptz,
  primary key (endpoint_id, kind)
);

comment on table parley._p_alarm is 'What is due when, for which endpoint (spec 3.5).';

create index on parley._p_alarm (due_at);

create index on parley._p_alarm (first_due_at) where first_due_at is not null;

-- Tells, outside any transaction, when to look for alarms next: microseconds since 1970. It may be early, never later than a second too late.
create sequence parley._p_next_alarm minvalue 0 start 0;

-- Until when the daemon sleeps between alarms, in seconds since 1970: an alarm that is due soon has to wake it (payload 0).
create sequence parley._p_alarm_doorbell minvalue 0 start 0;

create function parley._p_set_alarm(endpoint_id bigint, kind text, due_at timestamptz) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_due bigint := least(extract(epoch from due_at) * 1000000, 9000000000000000)::bigint;
begin
  insert into parley._p_alarm as a (endpoint_id, kind, due_at)
  values (_p_set_alarm.endpoint_id, _p_set_alarm.kind, _p_set_alarm.due_at)
  on conflict on constraint _p_alarm_pkey do update set due_at = excluded.due_at, first_due_at = null;
  if v_due < coalesce(pg_sequence_last_value('parley._p_next_alarm'), 0) then
    perform setval('parley._p_next_alarm', v_due);
  end if;
  -- Later ones the daemon finds by itself: it looks once a second.
  if due_at < clock_timestamp() + interval '2 seconds' then
    perform parley._p_ring(0, 'parley._p_alarm_doorbell');
  end if;
end
$$;

comment on function parley._p_set_alarm(bigint, text, timestamptz) is 'Sets or replaces an alarm of an endpoint.';

create function parley._p_lane(queue_id integer, priority integer) returns integer
language sql immutable parallel safe
as $$
  select queue_id operator(pg_catalog.*) 16 operator(pg_catalog.+) 11 operator(pg_catalog.-) priority
$$;

comment on function parley._p_lane(integer, integer) is
'Gives the lane of a queue for a priority: lanes of one queue in ascending order are priorities 10 to 1.';

create function parley._p_keeps_snapshot() returns boolean
language sql stable parallel safe
as $$
  select pg_catalog.current_setting('transaction_isolation') operator(pg_catalog.<>) all (array['read committed', 'read uncommitted'])
$$;

comment on function parley._p_keeps_snapshot() is
'Tells whether this transaction sees only what was there when it began: REPEATABLE READ, SERIALIZABLE.';

create function parley._p_find_endpoint(handle uuid) returns parley._p_endpoint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  if handle is null then
    perform parley._p_raise(8418, 'the conversation handle is missing', null, 'Give the handle that begin_dialog or receive returned.');
  end if;
  select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle;
  if not found then
    perform parley._p_raise_unknown_handle(handle);
  end if;
  return v_endpoint;
end
$$;

comment on function parley._p_find_endpoint(uuid) is
'Finds an endpoint by its handle, without locking it.
Errors: 8418 null, 8426 not found.';

create function parley._p_raise_unknown_handle(handle uuid) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_raise(
    8426,
    format('conversation handle "%s" not found', handle),
    case
      when exists (select from parley._p_tombstone as t where t.conversation_handle = handle) then 'The conversation is closed.'
      else 'It never existed here, was rolled back, or its conversation has ended.'
    end,
    'See parley.conversation_endpoints; begin a new dialog to go on.'
  );
end
$$;

comment on function parley._p_raise_unknown_handle(uuid) is
'Says that a handle leads nowhere.
Errors: 8426, always.';

create function parley._p_state_name(state text) returns text
language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
begin
  return case state
    when 'SO' then 'STARTED_OUTBOUND'
    when 'SI' then 'STARTED_INBOUND'
    when 'CO' then 'CONVERSING'
    when 'DI' then 'DISCONNECTED_INBOUND'
    when 'DO' then 'DISCONNECTED_OUTBOUND'
    when 'ER' then 'ERROR'
    when 'CD' then 'CLOSED'
  end;
end
$$;

comment on function parley._p_state_name(text) is 'Gives the long name of an endpoint state (spec 3.1).';

-- sql/105_destinations.sql

-- Where messages for other databases go, and how far each conversation has come on the way.
--
-- A conversation whose far side is in another database has far_endpoint_id = -endpoint_id. What it sends stands in _p_message under that
-- number, on a lane of the destination its route leads to, so SEND to another server is the same single insert as SEND next door.
-- The daemon takes messages from the lane into _p_transit, where each gets its number for good (600_take_runs.sql); that transaction has committed
-- before anything leaves the server. What the far side has acknowledged is deleted there.
--
-- Numbers are kept as RECEIVE keeps them: the newest row of an endpoint counts, none is ever updated, so an old snapshot has no chain of dead
-- versions to grow. _p_send_progress: the next number to give. _p_accept_progress: the next number to take from the far side.
-- Locks: see docs/architecture.md; destinations are locked after everything else, and only when their state changes.

create table parley._p_destination (
  destination_id integer primary key default nextval('parley._p_object_id'),
  address text collate "C" not null unique,
  -- Bit n is set when a message of priority n has gone there, as in _p_queue.
  priorities integer not null default 32,
  attempts integer not null default 0,
  status text not null default '',
  failing_since timestamptz,
  attempted_at timestamptz,
  -- When to try again; null when it may be tried now.
  due_at timestamptz
);

comment on table parley._p_destination is
'Addresses to which messages are transmitted: tcp://host:port, or broker:GUID for another database that the same daemon serves. Attempts and
status tell of the link, not of one message.';

-- One series for all destinations: what matters is the order within a conversation.
create sequence parley._p_transmission_position minvalue 0 start 1;
-- Until when the daemon sleeps, in seconds since 1970, as the doorbell of a queue.
create sequence parley._p_transmission_doorbell minvalue 0 start 0;

create table parley._p_transit (
  endpoint_id bigint not null,
  first_sequence bigint not null,
  next_sequence bigint not null,
  destination_id integer not null,
  enqueued_at timestamptz not null,
  message_type_id integer not null,
  body bytea,
  frame bytea[],
  trace_context text
) with (
  toast_tuple_target = 8160,
  autovacuum_vacuum_scale_factor = 0.1,
  autovacuum_vacuum_threshold = 10000,
  autovacuum_analyze_scale_factor = 0.5,
  autovacuum_analyze_threshold = 100000
);

comment on table parley._p_transit is
'Messages that have their number and are on their way: first_sequence up to, not including, next_sequence. A bounded window for each destination.';

alter table parley._p_transit alter column body set storage external;
alter table parley._p_transit alter column frame set storage external;

create index on parley._p_transit (endpoint_id, first_sequence);

create table parley._p_send_progress (
  endpoint_id bigint not null,
  sequence bigint not null
);

comment on table parley._p_send_progress is 'The next message_sequence_number of each endpoint that transmits: the largest row counts.';

create index on parley._p_send_progress (endpoint_id, sequence);

create table parley._p_accept_progress (
  endpoint_id bigint not null,
  sequence bigint not null
);

comment on table parley._p_accept_progress is 'The next number that each endpoint takes from its far side in another database: the largest row counts.';

create index on parley._p_accept_progress (endpoint_id, sequence);

-- Conversations that the far side cannot take from now: its queue is off, it does not know the service.
create table parley._p_parked (
  endpoint_id bigint primary key,
  destination_id integer not null,
  status text not null,
  attempts integer not null,
  due_at timestamptz not null
);

comment on table parley._p_parked is
'Conversations that are not transmitted until due_at, though their destination is well. What they have in transit stays there; the rest waits in
_p_transmission. At infinity a conversation is being tried again.';

create index on parley._p_parked (destination_id, due_at);

-- Conversations that have to be compared with their far side first, because this database goes on from a history that may have lost its end.
create table parley._p_unresumed (
  endpoint_id bigint primary key
);

comment on table parley._p_unresumed is 'Conversations with other databases that nothing is transmitted for until both sides were found to agree.';

-- What the comparisons have found.
create table parley._p_compared (
  endpoint_id bigint primary key,
  epoch bigint not null
);

comment on table parley._p_compared is
'The epoch of the far broker in which both sides of a conversation were found to agree last: what asks again in that epoch is a repetition.';

-- Services of other databases that the same daemon serves, as far as it has told.
create table parley._p_neighbour_service (
  service_name text collate "C" not null,
  address text collate "C" not null,
  primary key (service_name, address)
);

comment on table parley._p_neighbour_service is
'Where LOCAL routes were found to lead besides this database: a conversation that begins later need not wait for the daemon to look.';

create function parley._p_back_off(attempts integer) returns interval
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select make_interval(secs => 2 ^ least(attempts + 1, 6))
$$;

comment on function parley._p_back_off(integer) is
'Tells how long to wait after so many failures: 4 seconds, doubling to 64 (spec 6.9).
Arguments: attempts, that have failed, at least 1.';

create function parley._p_find_destination(address text, priority integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_destination parley._p_destination;
begin
  loop
    select * into v_destination from parley._p_destination as d where d.address = _p_find_destination.address;
    exit when found;
    insert into parley._p_destination (address) values (address) on conflict do nothing;
  end loop;
  if v_destination.priorities & (1 << priority) = 0 then
    update parley._p_destination as d set priorities = d.priorities | (1 << priority) where d.destination_id = v_destination.destination_id;
  end if;
  return v_destination.destination_id;
end
$$;

comment on function parley._p_find_destination(text, integer) is
'Gives the id of the destination for an address, which it creates when it is new, and notes that messages of a priority go there.';

-- sql/110_messages.sql

-- The message store: one append-only table for every queue.
--
-- position    order of arrival in the queue: 1024 times a number of the queue's sequence, so that a frame, a row that holds
--             up to 1,000 consecutive messages of one conversation, gives each of them a position of its own.
-- lane        queue and priority in one number, ascending from the highest priority; see _p_lane.
-- endpoint_id who is to receive it. Its group is looked up, so MOVE CONVERSATION touches no message.
--
-- Two indexes: (lane, position) finds the next group in order of arrival, (endpoint_id, position) its messages.
-- Receiving deletes. Nothing is ever updated, and no counter is kept in a row: see _p_scan_hint and _p_receive_progress for how
-- readers stay clear of the dead rows that an old snapshot holds back.

create table parley._p_message (
  position bigint not null,
  endpoint_id bigint not null,
  enqueued_at timestamptz not null,
  lane integer not null,
  message_type_id integer not null,
  body bytea,
  frame bytea[],
  -- W3C trace context of the sender (202_send_traced.sql); where it is null it takes no room. Frames have none.
  trace_context text
) with (
  toast_tuple_target = 8160,
  autovacuum_vacuum_scale_factor = 0.1,
  autovacuum_vacuum_threshold = 10000,
  autovacuum_vacuum_insert_scale_factor = 0.5,
  autovacuum_analyze_scale_factor = 0.5,
  autovacuum_analyze_threshold = 100000
);

comment on table parley._p_message is 'Messages that wait to be received: one in body, or several in frame.';

alter table parley._p_message alter column body set storage external;
alter table parley._p_message alter column frame set storage external;

create index on parley._p_message (lane, position);
create index on parley._p_message (endpoint_id, position);

-- How many messages each endpoint has received. Each RECEIVE appends a row; the newest is found first, scanning backwards.
create table parley._p_receive_progress (
  endpoint_id bigint not null,
  sequence bigint not null
);

comment on table parley._p_receive_progress is 'The next message_sequence_number of each endpoint: the largest row counts (spec 3.4).';

create index on parley._p_receive_progress (endpoint_id, sequence);

create function parley._p_forget_progress(endpoint_id bigint, sequence bigint, count integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- What an old snapshot holds back, dead, is not walked through each time: only now and then, for what was left when calls took now more and now less.
  v_first bigint := case
    when sequence / count / 32768 = (sequence - count) / count / 32768 then sequence - 1024::bigint * count
    else 0
  end;
begin
  delete from parley._p_receive_progress as p
  where p.endpoint_id = _p_forget_progress.endpoint_id and p.sequence >= v_first and p.sequence < _p_forget_progress.sequence;
end
$$;

comment on function parley._p_forget_progress(bigint, bigint, integer) is
'Removes older rows of _p_receive_progress: only the newest is needed. For about every 32nd RECEIVE.
Arguments: endpoint_id; sequence, of the newest row; count, how many messages this RECEIVE took, at least 1.';

-- Where a reader may begin to look. All rows of the lane before low_position are received for good. Such a claim is only made
-- up to safe_position: all senders with positions up to there have finished. How that is known: see _p_note_scan.
-- Rows from low_position to resume_position belong to blocked_endpoints, which were locked; each of them has none before its blocked_position.
create table parley._p_scan_hint (
  hint_id bigint generated always as identity,
  lane integer not null,
  low_position bigint not null,
  safe_position bigint not null,
  probe_position bigint not null,
  probe_senders text[] not null,
  blocked_endpoints bigint[] not null,
  blocked_positions bigint[] not null,
  resume_position bigint not null
);

comment on table parley._p_scan_hint is 'Append-only hints for readers; the newest of a lane counts. Losing them costs time, not messages.';

create unique index on parley._p_scan_hint (lane, hint_id);

-- DialogTimer and Error messages go before all others of their conversation. RECEIVE sorts a conversation only when it is said here that there may be
-- one: sorting takes reading all that waits in it.
create table parley._p_expedited (
  expedited_id bigint generated always as identity primary key,
  endpoint_id bigint not null
);

comment on table parley._p_expedited is 'Endpoints that may have a DialogTimer or Error message waiting: a row for each that has arrived and was not received.';

create index on parley._p_expedited (endpoint_id);

-- Copies that a queue with retention keeps until the conversation ends (spec 5.2): 0 received, 3 sent.
create table parley._p_retained (
  queue_id integer not null,
  endpoint_id bigint not null,
  status smallint not null check (status in (0, 3)),
  position bigint not null,
  message_sequence_number bigint not null,
  message_type_id integer not null,
  enqueued_at timestamptz not null,
  body bytea,
  trace_context text
);

comment on table parley._p_retained is 'Messages kept by retention.';

create index on parley._p_retained (endpoint_id);

-- Messages that cannot be delivered yet.
create table parley._p_transmission (
  transmission_id bigint generated always as identity primary key,
  endpoint_id bigint not null,
  message_type_id integer not null,
  enqueued_at timestamptz not null,
  body bytea,
  transmission_status text not null,
  trace_context text
);

comment on table parley._p_transmission is
'What has been sent and has no way to go yet, in the order of transmission_id for each endpoint. The type -1 stands for an Error of the broker.';

create index on parley._p_transmission (endpoint_id, transmission_id);

-- When to look for a way for them again at the earliest, in microseconds since 1970.
create sequence parley._p_delayed_look minvalue 0 start 0;

create function parley._p_enqueue(endpoint parley._p_endpoint, message_type_id integer, body bytea) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body)
  select nextval(q.position_sequence) * 1024, endpoint.endpoint_id, clock_timestamp(), parley._p_lane(q.queue_id, endpoint.priority),
    _p_enqueue.message_type_id, nullif(_p_enqueue.body, '')
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  where s.service_id = endpoint.service_id;
  if message_type_id in (1, 5) then
    insert into parley._p_expedited (endpoint_id) values (endpoint.endpoint_id);
  end if;
  perform parley._p_ring(q.queue_id, q.doorbell_sequence)
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  where s.service_id = endpoint.service_id;
end
$$;

comment on function parley._p_enqueue(parley._p_endpoint, integer, bytea) is 'Puts one message on the queue of an endpoint.';

create function parley._p_ring(queue_id integer, doorbell regclass) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if pg_sequence_last_value(doorbell) > extract(epoch from clock_timestamp()) then
    perform pg_notify('parley', queue_id::text);
  end if;
end
$$;

comment on function parley._p_ring(integer, regclass) is 'Notifies the sleepers of a queue, if there are any (parley.listen_for_messages).';

create function parley.listen_for_messages(
  queue text, seconds integer default 10,
  caller parley.caller default parley.current_caller()
) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
  v_until bigint := extract(epoch from clock_timestamp())::bigint + seconds;
begin
  -- Others may sleep longer than this caller.
  if seconds <= 0 or coalesce(pg_sequence_last_value(v_queue.doorbell_sequence), 0) < v_until then
    perform setval(v_queue.doorbell_sequence, greatest(0, v_until));
  end if;
  return v_queue.queue_id::text;
end
$$;

comment on function parley.listen_for_messages(text, integer, parley.caller) is
'Asks senders to notify channel parley for some seconds, and returns the payload to expect: the id of the queue.
Call LISTEN parley first, then this, then look at the queue once more, then sleep. A sender that looked just before may not notify: look again after
a second at the latest. Not undone by a rollback.
Arguments: queue; seconds, how long to be notified; 0 or less ends it.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name.';

-- sql/111_framed_messages.sql

-- How many messages travel in frames beside the first of each.
--
-- Counters take the number of rows from the position sequences, which are drawn anyway. A frame is one row, so the messages in it but one are
-- counted here, when it is written: in units of 1, 2, 4 and so on up to 256, a sequence for each unit, since a sequence cannot be moved on by
-- more than its own step and a row would make senders wait for each other.
-- As with positions, what rolls back is counted too, and a crash of the server may pass over up to 32 numbers of each sequence: some 16,000 messages.
-- Cost: up to eight numbers drawn for a batch, and one more for each 256 messages: a fiftieth of what a batch of 1,000 costs.

create sequence parley._p_framed_1 minvalue 0 start 1;
create sequence parley._p_framed_2 minvalue 0 start 1;
create sequence parley._p_framed_4 minvalue 0 start 1;
create sequence parley._p_framed_8 minvalue 0 start 1;
create sequence parley._p_framed_16 minvalue 0 start 1;
create sequence parley._p_framed_32 minvalue 0 start 1;
create sequence parley._p_framed_64 minvalue 0 start 1;
create sequence parley._p_framed_128 minvalue 0 start 1;
create sequence parley._p_framed_256 minvalue 0 start 1;

create function parley._p_count_framed(messages bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Assignments cost less than statements.
  v_drawn bigint := 0;
begin
  for i in 1 .. messages / 256 loop
    v_drawn := v_drawn + nextval('parley._p_framed_256');
  end loop;
  if messages & 1 > 0 then
    v_drawn := v_drawn + nextval('parley._p_framed_1');
  end if;
  if messages & 2 > 0 then
    v_drawn := v_drawn + nextval('parley._p_framed_2');
  end if;
  if messages & 4 > 0 then
    v_drawn := v_drawn + nextval('parley._p_framed_4');
  end if;
  if messages & 8 > 0 then
    v_drawn := v_drawn + nextval('parley._p_framed_8');
  end if;
  if messages & 16 > 0 then
    v_drawn := v_drawn + nextval('parley._p_framed_16');
  end if;
  if messages & 32 > 0 then
    v_drawn := v_drawn + nextval('parley._p_framed_32');
  end if;
  if messages & 64 > 0 then
    v_drawn := v_drawn + nextval('parley._p_framed_64');
  end if;
  if messages & 128 > 0 then
    v_drawn := v_drawn + nextval('parley._p_framed_128');
  end if;
end
$$;

comment on function parley._p_count_framed(bigint) is
'Counts messages that were put on a queue in frames. Arguments: messages, without the first of each frame. Not undone by a rollback.';

create function parley._p_framed() returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select sum(u.unit * u.drawn)::bigint
    from unnest(
      array[1, 2, 4, 8, 16, 32, 64, 128, 256],
      parley._p_last_values(array[
        'parley._p_framed_1', 'parley._p_framed_2', 'parley._p_framed_4', 'parley._p_framed_8', 'parley._p_framed_16', 'parley._p_framed_32',
        'parley._p_framed_64', 'parley._p_framed_128', 'parley._p_framed_256'
      ]::regclass[])
    ) as u (unit, drawn)
  );
end
$$;

comment on function parley._p_framed() is 'Gives how many messages were ever put on queues in frames, without the first of each frame.';

-- sql/118_set_aside.sql

-- What is known of conversations that fail: which are set aside, and the last error of each.
--
-- A row of _p_set_aside says that RECEIVE passes a side of a conversation by (spec 5.6; docs/differences.md). Its messages
-- leave the lanes of the queue for one of their own, and keep their positions; see 244_set_aside.sql.
-- Both tables have few rows, and are read only for conversations that are not plain, or after a failure.

create table parley._p_set_aside (
  endpoint_id bigint primary key,
  position bigint not null,
  moved_position bigint not null,
  rollbacks integer not null,
  set_aside_at timestamptz not null default clock_timestamp(),
  set_aside_by xid8 not null default pg_current_xact_id()
);

comment on table parley._p_set_aside is 'Sides of conversations that are set aside. What waits for them before moved_position has left the lanes of the queue.';

create table parley._p_failure (
  endpoint_id bigint primary key,
  failed_at timestamptz not null,
  sqlstate text,
  error text not null
);

comment on table parley._p_failure is
'The last error that a reader of a conversation reported (parley.note_failure). Rows of endpoints that are gone are removed a little later.';

-- sql/120_begin_dialog.sql

-- BEGIN DIALOG: the initiator's endpoint, and its group when that is new.
--
-- Nothing is sent, and nothing tells whether the target exists (spec 4.1). The group row of a new group is locked by being
-- uncommitted; the row of an existing one is locked FOR UPDATE.

create function parley._p_lock_group(conversation_group_id uuid) returns parley._p_conversation_group
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group parley._p_conversation_group;
begin
  select * into v_group from parley._p_conversation_group as g where g.conversation_group_id = _p_lock_group.conversation_group_id for update;
  return v_group;
end
$$;

comment on function parley._p_lock_group(uuid) is 'Locks a group to the end of the transaction, waiting for its holder; gives null when there is none.';

create function parley._p_make_group_shared(group_id bigint, joining bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Both sides of each, in the order of END, which may follow in this transaction, and for which the far side's END may be waiting by then.
  perform
  from parley._p_endpoint as e
  where e.endpoint_id in (
    select unnest(array[o.endpoint_id, o.far_endpoint_id])
    from parley._p_endpoint as o
    where o.endpoint_id = joining or (o.group_id = _p_make_group_shared.group_id and o.is_plain)
  )
  order by e.endpoint_id
  for no key update;
  update parley._p_endpoint as e set is_plain = false where e.group_id = _p_make_group_shared.group_id and e.is_plain;
end
$$;

comment on function parley._p_make_group_shared(bigint, bigint) is
'Notes that a conversation is not alone in its group any more, whose lock the caller has. Only the first time that locks anything but the one that joins.
Arguments: group_id; joining, the endpoint that the caller moves into it, or null for one that is new.';

create function parley._p_join_group(conversation_group_id uuid, service_id integer) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group parley._p_conversation_group;
begin
  loop
    insert into parley._p_conversation_group (conversation_group_id, service_id)
    values (_p_join_group.conversation_group_id, _p_join_group.service_id)
    on conflict do nothing
    returning * into v_group;
    if found then
      return v_group.group_id;
    end if;
    v_group := parley._p_lock_group(conversation_group_id);
    exit when v_group.group_id is not null;
  end loop;
  if v_group.service_id <> service_id then
    perform parley._p_raise(
      9610,
      'the group belongs to another service',
      format('Group %s is not of the service the dialog is begun from.', conversation_group_id),
      'Begin the dialog from the service of the group, or in a group of its own.'
    );
  end if;
  perform parley._p_make_group_shared(v_group.group_id, null);
  return v_group.group_id;
end
$$;

comment on function parley._p_join_group(uuid, integer) is
'Finds and locks a group, or creates it, for a new endpoint.
Errors: 9610 the group belongs to another service.';

create function parley._p_broker_instance(broker_instance text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if broker_instance is null then
    return null;
  elsif upper(broker_instance) = 'CURRENT DATABASE' then
    return (select b.service_broker_guid::text from parley._p_broker as b);
  end if;
  return broker_instance::uuid::text;
exception
  when invalid_text_representation then
    perform parley._p_raise(
      8413,
      format('"%s" is no broker instance', left(broker_instance, 60)),
      null,
      'Give the service_broker_guid of the target (parley.databases), or CURRENT DATABASE.'
    );
end
$$;

comment on function parley._p_broker_instance(text) is
'Gives a broker instance in its canonical form; CURRENT DATABASE is this one.
Errors: 8413 malformed.';

create function parley.begin_dialog(
  from_service text,
  to_service text,
  contract text default 'DEFAULT',
  broker_instance text default null,
  lifetime integer default 2147483647,
  encryption boolean default true,
  related_conversation uuid default null,
  related_conversation_group uuid default null,
  caller parley.caller default parley.current_caller()
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_handle uuid;
  v_service parley._p_service;
  v_queue parley._p_queue;
  v_contract parley._p_contract;
  v_group bigint;
  v_is_alone boolean := true;
  v_endpoint bigint;
  v_priority smallint;
  v_lifetime timestamptz := clock_timestamp() + make_interval(secs => begin_dialog.lifetime);
begin
  perform parley._p_check_dialog(to_service, contract, lifetime, related_conversation, related_conversation_group);
  select * into v_service from parley._p_service as s where s.name = from_service;
  if not found then
    perform parley._p_raise(
      8423,
      format('service "%s" not found', from_service),
      'Names are compared byte by byte.' || parley._p_did_you_mean(from_service, array(select s.name from parley._p_service as s)),
      'FROM SERVICE must be a service of this database: see parley.services.'
    );
  end if;
  select * into v_queue from parley._p_queue as q where q.queue_id = v_service.queue_id;
  perform parley._p_require_permission(v_caller, 'RECEIVE', 'queue', v_queue.queue_id, v_queue.lookup_name, v_queue.owner);
  select * into v_contract from parley._p_contract as c where c.name = begin_dialog.contract;
  if not found then
    perform parley._p_raise(
      8425,
      format('contract "%s" not found', contract),
      'Names are compared byte by byte.' || parley._p_did_you_mean(contract, array(select c.name from parley._p_contract as c)),
      'See parley.service_contracts.'
    );
  end if;
  if v_contract.service_contract_id >= 65536 then
    perform parley._p_require_permission(v_caller, 'REFERENCES', 'contract', v_contract.service_contract_id, contract, v_contract.owner);
  end if;
  if related_conversation is not null then
    select g.conversation_group_id into related_conversation_group
    from parley._p_endpoint as e
    join parley._p_conversation_group as g using (group_id)
    where e.conversation_handle = related_conversation;
    if not found then
      perform parley._p_raise_unknown_handle(related_conversation);
    end if;
  end if;
  if related_conversation_group is null then
    insert into parley._p_conversation_group (conversation_group_id, service_id)
    values (gen_random_uuid(), v_service.service_id)
    returning group_id into v_group;
  else
    v_group := parley._p_join_group(related_conversation_group, v_service.service_id);
    v_is_alone := not exists (select from parley._p_endpoint as e where e.group_id = v_group);
  end if;
  v_priority := parley._p_priority_of(v_contract.service_contract_id, v_service.service_id, to_service);
  perform parley._p_use_priority(v_queue, v_priority);
  insert into parley._p_endpoint (
    group_id, state, is_initiator, is_plain, priority, service_id, service_contract_id, service_name, service_contract_name,
    conversation_id, owner, far_service, far_broker_instance, is_encrypted, lifetime
  )
  values (
    v_group, 'SO', true, v_is_alone, v_priority, v_service.service_id, v_contract.service_contract_id, v_service.name, v_contract.name,
    gen_random_uuid(), v_service.owner, to_service, parley._p_broker_instance(broker_instance), encryption, v_lifetime
  )
  returning conversation_handle, endpoint_id into v_handle, v_endpoint;
  if lifetime < 2147483647 then
    perform parley._p_set_alarm(v_endpoint, 'lifetime', v_lifetime);
  end if;
  return v_handle;
end
$$;

comment on function parley.begin_dialog(text, text, text, text, integer, boolean, uuid, uuid, parley.caller) is
'Begins a dialog and returns its conversation handle. Nothing is sent yet, and the target need not exist.
Arguments: from_service, of this database; to_service, compared byte by byte; contract; broker_instance, the id of the target database,
CURRENT DATABASE, or null for any; lifetime in seconds, 2147483647 for none; encryption, whether messages that leave the database must be encrypted;
related_conversation, a handle whose group to join, or related_conversation_group, the group itself, created when unknown.
Errors: 229 not allowed, 8406 lifetime null, 8411 lifetime out of range, 8412 and 8421 to_service malformed or missing, 8413 broker_instance malformed,
8414 unusable group, 8417 contract missing, 8423 from_service not found, 8425 contract not found, 8426 related_conversation not found, 9601 two relations,
9610 the group is of another service.
Source: spec 4.1.';

create function parley._p_check_dialog(
  to_service text, contract text, lifetime integer, related_conversation uuid, related_conversation_group uuid
) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if to_service is null then
    perform parley._p_raise(8421, 'the target service is missing', null, 'Give to_service.');
  elsif to_service = '' or length(to_service) > 256 then
    perform parley._p_raise(
      8412,
      'the target service is malformed',
      format('It has %s characters; 1 to 256 are allowed.', length(to_service)),
      'Give the name of a service.'
    );
  elsif contract is null then
    perform parley._p_raise(8417, 'the contract is missing', null, 'Give a contract, or leave it out for DEFAULT.');
  elsif lifetime is null then
    perform parley._p_raise(8406, 'the lifetime is null', null, 'Give a positive number of seconds, or leave lifetime out for none.');
  elsif lifetime <= 0 then
    perform parley._p_raise(
      8411,
      format('lifetime %s is out of range', lifetime),
      'It is counted in seconds, 1 to 2147483647.',
      'Give a positive number of seconds.'
    );
  elsif related_conversation is not null and related_conversation_group is not null then
    perform parley._p_raise(9601, 'a dialog can be related to a conversation or to a group, not to both', null, 'Give one of the two.');
  elsif related_conversation_group = '00000000-0000-0000-0000-000000000000' then
    perform parley._p_raise(
      8414,
      'this conversation group cannot be used',
      'Its id is all zeros.',
      'Give an id made by gen_random_uuid().'
    );
  end if;
end
$$;

comment on function parley._p_check_dialog(text, text, integer, uuid, uuid) is
'Checks the arguments of begin_dialog that need no look-up.
Errors: 8406, 8411, 8412, 8414, 8417, 8421, 9601.';

create function parley._p_use_priority(queue parley._p_queue, priority integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if queue.priorities & (1 << priority) = 0 then
    update parley._p_queue as q set priorities = q.priorities | (1 << priority) where q.queue_id = queue.queue_id;
  end if;
end
$$;

comment on function parley._p_use_priority(parley._p_queue, integer) is 'Remembers that a queue has endpoints of a priority, so that readers look in its lane.';

-- sql/200_send.sql

-- SEND: the hot path.
--
-- A send on a conversation that has sent before is one statement: it reads the sender's endpoint row, locks it FOR KEY SHARE, and
-- appends the message to the far side's lane. Invariants, and what keeps each:
--   no committed message is lost to END CONVERSATION   the row lock: END takes it FOR UPDATE and so waits for senders
--   a send that begins after another's commit comes later   the position is drawn from the queue's sequence inside the statement
--   rights and states are checked each time   the conditions of the statement; when any fails, _p_send finds out which and why
--   the rights are those of the caller   he inserts into _p_outgoing; its column caller, into which nobody may write, has
--     current_user as its default, and its trigger runs with the rights of the schema's owner. See 020_roles.sql. A view over the table
--     can have another default, and PostgreSQL asks for no right to a column that a default fills: the trigger's WHEN compares once more,
--     before the rights change. Where it does not hold, the table's check refuses the row.
-- What was tried: see docs/performance.md. Each further statement here costs about a tenth of a bare INSERT; so does
-- a pinned search_path, which is why every name and operator is qualified instead. The insert with its trigger costs 1 microsecond
-- more than a function that is SECURITY DEFINER, a ticket of 020_roles.sql 5.
--
-- Sequential scans are off, as in every statement that looks for conversations: a session that planned this while there were few
-- would go on reading all of them, until they are analyzed.
--
-- Cost: one trigger with its condition, one index probe, one row lock, one insert with two index entries, one scan of the doorbell.

create table parley._p_outgoing (
  conversation_handle uuid,
  message_type text,
  body bytea,
  trace_context text,
  caller name not null default current_user,
  constraint _p_outgoing_is_empty check (false)
);

comment on table parley._p_outgoing is
'Takes one message from SEND. It never holds a row: its trigger sends the message instead, and if it did not, the check would refuse the row.';
comment on column parley._p_outgoing.caller is
'Who sends. Nobody may insert into this column, so that its default decides; the trigger takes no row in which it is not current_user.';

create function parley._p_send_outgoing() returns trigger
language plpgsql security definer
set enable_seqscan = off
as $$
begin
  insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body, trace_context)
  select
    pg_catalog.nextval(e.destination_position) operator(pg_catalog.*) 1024::pg_catalog.int8,
    e.far_endpoint_id,
    case
      when pg_catalog.pg_sequence_last_value(e.destination_doorbell) operator(pg_catalog.>) 0::pg_catalog.int8
        then parley._p_ring_bell(e.destination_lane, e.destination_doorbell)
      else pg_catalog.clock_timestamp()
    end,
    e.destination_lane,
    e.usual_message_type_id,
    case when pg_catalog.octet_length(new.body) operator(pg_catalog.>) 0 then new.body end,
    case when new.trace_context is not null then parley._p_trace_context(new.trace_context) end
  from parley._p_endpoint as e
  where e.conversation_handle operator(pg_catalog.=) new.conversation_handle
    and e.usual_message_type_name operator(pg_catalog.=) new.message_type
    and e.destination_lane is not null
    and pg_catalog.pg_has_role(new.caller, e.sender_role, 'usage')
  for key share of e;
  if not found then
    perform parley._p_send(
      parley._p_role_of(new.caller), new.conversation_handle, new.message_type, array[new.body], parley._p_trace_context(new.trace_context)
    );
  end if;
  return null;
end
$$;

comment on function parley._p_send_outgoing() is
'Sends what was inserted into _p_outgoing, with the rights of its column caller.
Errors: those of parley.send.';

create trigger _p_send before insert on parley._p_outgoing
for each row when (new.caller operator(pg_catalog.=) current_user) execute function parley._p_send_outgoing();

-- A replication worker and a restore turn ordinary triggers off.
do $$
begin
  alter table parley._p_outgoing enable always trigger _p_send;
end
$$;

create function parley.send(conversation_handle uuid, message_type text, body bytea) returns void
language plpgsql
as $$
begin
  insert into parley._p_outgoing (conversation_handle, message_type, body)
  values (send.conversation_handle, send.message_type, send.body);
end
$$;

comment on function parley.send(uuid, text, bytea) is
'Sends a message on a conversation, in this transaction.
Arguments: conversation_handle; message_type, of the conversation''s contract; body, null or empty for none.
Errors: 229 not allowed, 8418 and 8426 handle missing or not found, 8428 message type not found, 8429 the state of the conversation forbids it,
8431 not in the contract, 8432 and 8434 reserved for the other side, 9618 queue disabled with retention on.
A body that fails validation, or a target that refuses, does not make SEND fail: an Error message comes back on the conversation.
Source: spec 4.2.';

create function parley.send(conversation_handle uuid, message_type text default 'DEFAULT', body text default null) returns void
language plpgsql
as $$
begin
  insert into parley._p_outgoing (conversation_handle, message_type, body)
  values (send.conversation_handle, send.message_type, pg_catalog.convert_to(send.body, 'UTF8'));
end
$$;

comment on function parley.send(uuid, text, text) is
'Sends a message whose body is text; it travels as UTF-8.
Arguments: conversation_handle; message_type, default DEFAULT; body, null or empty for none.
Errors: those of send with a bytea body.
Source: spec 4.2.';

create function parley._p_ring_bell(lane integer, doorbell regclass) returns timestamptz
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_ring(lane / 16, doorbell);
  return clock_timestamp();
end
$$;

comment on function parley._p_ring_bell(integer, regclass) is 'Notifies the sleepers of a lane''s queue, if their time is not over, and gives the time.';

-- sql/201_send_forms.sql

-- SEND in its other forms: bodies of other types, several conversations at once, many messages at once.

-- Each call has one meaning for drivers that send parameters without a type (node-postgres, PDO, Ruby) and for those that ask the server for the
-- types (asyncpg, rust-postgres, postgres.js): of the forms of a name PostgreSQL then takes the one with text. So the first argument of a name is
-- a handle or a list in all its forms, the second is the message type, and where a body is not text its form has a name of its own besides.
-- Among arrays PostgreSQL prefers none: send_batch has one form for each name.

create function parley.send(conversation_handle uuid, message_type text, body jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_outgoing (conversation_handle, message_type, body)
  values (send.conversation_handle, send.message_type, convert_to(send.body::text, 'UTF8'));
end
$$;

comment on function parley.send(uuid, text, jsonb) is 'Sends a JSON body as UTF-8 text. Errors: those of send with a bytea body.';

create function parley.send(conversation_handle uuid, message_type text, body json) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_outgoing (conversation_handle, message_type, body)
  values (send.conversation_handle, send.message_type, convert_to(send.body::text, 'UTF8'));
end
$$;

comment on function parley.send(uuid, text, json) is 'Sends a JSON body as it is written, as UTF-8. Errors: those of send with a bytea body.';

create function parley.send(conversation_handle uuid, message_type text, body xml) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_outgoing (conversation_handle, message_type, body)
  values (send.conversation_handle, send.message_type, convert_to(send.body::text, 'UTF8'));
end
$$;

comment on function parley.send(uuid, text, xml) is 'Sends an XML body as UTF-8 text. Errors: those of send with a bytea body.';

create function parley.send_binary(conversation_handle uuid, message_type text, body bytea) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_outgoing (conversation_handle, message_type, body)
  values (send_binary.conversation_handle, send_binary.message_type, send_binary.body);
end
$$;

comment on function parley.send_binary(uuid, text, bytea) is
'Sends bytes: send with a bytea body, under a name that has no other form. A driver that leaves the types of parameters to the server calls this.
Arguments: conversation_handle; message_type; body, null or empty for none.
Errors: those of send.
Source: spec 4.2.';

create function parley.send_json(conversation_handle uuid, message_type text, body jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_outgoing (conversation_handle, message_type, body)
  values (send_json.conversation_handle, send_json.message_type, convert_to(send_json.body::text, 'UTF8'));
end
$$;

comment on function parley.send_json(uuid, text, jsonb) is
'Sends a JSON body as UTF-8 text: send with a jsonb body, under a name that has no other form.
Arguments: conversation_handle; message_type; body, null for none.
Errors: those of send.
Source: spec 4.2.';

create table parley._p_outgoing_to_many (
  conversation_handles uuid[],
  message_type text,
  body bytea,
  caller name not null default current_user,
  constraint _p_outgoing_to_many_is_empty check (false)
);

comment on table parley._p_outgoing_to_many is
'Takes one message for several conversations from SEND, as _p_outgoing takes one for one.';

create function parley._p_send_outgoing_to_many() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_count integer := coalesce(cardinality(new.conversation_handles), 0);
  v_repeated uuid;
  v_handle uuid;
  v_position bigint;
  v_rest uuid[];
begin
  if v_count = 0 or array_position(new.conversation_handles, null) is not null then
    perform parley._p_raise(
      8441,
      'a conversation handle is missing',
      format('Position %s of the list is null, or the list is empty.', coalesce(array_position(new.conversation_handles, null), 0)),
      'Give at least one handle, and no null.'
    );
  end if;
  select h.handle into v_repeated from unnest(new.conversation_handles) as h (handle) group by h.handle having count(*) > 1 limit 1;
  if found then
    perform parley._p_raise(
      8451,
      format('conversation handle "%s" is named twice', v_repeated),
      format('It stands at position %s and again later.', array_position(new.conversation_handles, v_repeated)),
      'Name each conversation once.'
    );
  end if;
  for v_position, v_handle in
    select h.position, h.handle
    from unnest(new.conversation_handles) with ordinality as h (handle, position)
    where not exists (select from parley._p_endpoint as e where e.conversation_handle = h.handle)
    order by h.position
  loop
    -- A conversation that is remembered as closed gets its own number behind this.
    if not exists (select from parley._p_tombstone as t where t.conversation_handle = v_handle) then
      perform parley._p_raise(
        8435,
        format('conversation handle "%s" at position %s of the list not found', v_handle, v_position),
        'It never existed here, was rolled back, or its conversation has ended.',
        'See parley.conversation_endpoints; nothing was sent on the others.'
      );
    end if;
  end loop;
  -- Endpoint rows are locked in their order, so that two such sends cannot wait for each other.
  with ready as materialized (
    select e.endpoint_id, e.conversation_handle, e.far_endpoint_id, e.destination_position, e.destination_doorbell, e.destination_lane, e.usual_message_type_id
    from parley._p_endpoint as e
    where e.conversation_handle = any (new.conversation_handles)
      and e.usual_message_type_name = new.message_type
      and e.destination_lane is not null
      and pg_has_role(new.caller, e.sender_role, 'usage')
    order by e.endpoint_id
    for key share of e
  ), sent as (
    insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body)
    select nextval(r.destination_position) * 1024, r.far_endpoint_id,
      parley._p_ring_bell(r.destination_lane, r.destination_doorbell), r.destination_lane, r.usual_message_type_id, nullif(new.body, '')
    from ready as r
  )
  select array_agg(h.handle order by e.endpoint_id nulls first, h.position) into v_rest
  from unnest(new.conversation_handles) with ordinality as h (handle, position)
  left join parley._p_endpoint as e on e.conversation_handle = h.handle
  left join ready as r on r.conversation_handle = h.handle
  where r.conversation_handle is null;
  for i in 1 .. coalesce(cardinality(v_rest), 0) loop
    perform parley._p_send(parley._p_role_of(new.caller), v_rest[i], new.message_type, array[new.body]);
  end loop;
  return null;
end
$$;

comment on function parley._p_send_outgoing_to_many() is
'Sends what was inserted into _p_outgoing_to_many, with the rights of its column caller: on all conversations or on none.
Errors: 8435, 8441, 8451, and those of parley.send.';

create trigger _p_send before insert on parley._p_outgoing_to_many
for each row when (new.caller operator(pg_catalog.=) current_user) execute function parley._p_send_outgoing_to_many();

do $$
begin
  alter table parley._p_outgoing_to_many enable always trigger _p_send;
end
$$;

create function parley.send_to_all(conversation_handles uuid[], message_type text, body bytea) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_outgoing_to_many (conversation_handles, message_type, body)
  values (send_to_all.conversation_handles, send_to_all.message_type, send_to_all.body);
end
$$;

comment on function parley.send_to_all(uuid[], text, bytea) is
'Sends the same message on several conversations: on all of them or, when one cannot send, on none.
Arguments: conversation_handles, each once, no null; message_type; body.
Errors: 8435 a handle not found, 8441 a handle is missing, 8451 a handle is repeated, and those of send on one conversation.
Source: spec 4.2.';

create function parley.send_to_all(conversation_handles uuid[], message_type text default 'DEFAULT', body text default null) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_outgoing_to_many (conversation_handles, message_type, body)
  values (send_to_all.conversation_handles, send_to_all.message_type, convert_to(send_to_all.body, 'UTF8'));
end
$$;

comment on function parley.send_to_all(uuid[], text, text) is
'Sends the same text on several conversations: on all of them or on none.
Errors: those of send_to_all with a bytea body.
Source: spec 4.2.';

create table parley._p_outgoing_batch (
  conversation_handle uuid,
  message_type text,
  bodies bytea[],
  trace_context text,
  caller name not null default current_user,
  constraint _p_outgoing_batch_is_empty check (false)
);

comment on table parley._p_outgoing_batch is
'Takes many messages for one conversation from send_batch, as _p_outgoing takes one.';

create function parley._p_send_outgoing_batch() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_context text := case when new.trace_context is not null then parley._p_trace_context(new.trace_context) end;
  v_far bigint;
  v_lane integer;
  v_position regclass;
  v_doorbell regclass;
  v_type integer;
begin
  select e.far_endpoint_id, e.destination_lane, e.destination_position, e.destination_doorbell, e.usual_message_type_id
  into v_far, v_lane, v_position, v_doorbell, v_type
  from parley._p_endpoint as e
  where e.conversation_handle = new.conversation_handle
    and e.usual_message_type_name = new.message_type
    and e.destination_lane is not null
    and pg_has_role(new.caller, e.sender_role, 'usage')
  for key share of e;
  if not found then
    perform parley._p_send(parley._p_role_of(new.caller), new.conversation_handle, new.message_type, new.bodies, v_context);
    return null;
  end if;
  perform parley._p_append(v_far, v_lane, v_position, v_type, new.bodies, v_context);
  if pg_sequence_last_value(v_doorbell) > 0 then
    perform parley._p_ring_bell(v_lane, v_doorbell);
  end if;
  return null;
end
$$;

comment on function parley._p_send_outgoing_batch() is
'Sends what was inserted into _p_outgoing_batch, with the rights of its column caller.
Errors: those of parley.send.';

create trigger _p_send before insert on parley._p_outgoing_batch
for each row when (new.caller operator(pg_catalog.=) current_user) execute function parley._p_send_outgoing_batch();

do $$
begin
  alter table parley._p_outgoing_batch enable always trigger _p_send;
end
$$;

create function parley.send_batch_binary(conversation_handle uuid, message_type text, bodies bytea[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_outgoing_batch (conversation_handle, message_type, bodies)
  values (send_batch_binary.conversation_handle, send_batch_binary.message_type, send_batch_binary.bodies);
end
$$;

comment on function parley.send_batch_binary(uuid, text, bytea[]) is
'Sends many messages of one type on one conversation, in the order of the array: the cheapest way to send.
Arguments: conversation_handle; message_type; bodies, null or empty ones stand for messages without body.
Each body is validated by itself, in the order of the array, as if it had been sent alone: what comes before the first bad one is delivered, that one and
what follows it are not, and an Error message comes back on the conversation.
Errors: those of send.
Source: spec 2.2, 4.2, R-PERF-3.';

create function parley.send_batch(conversation_handle uuid, message_type text, bodies text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_outgoing_batch (conversation_handle, message_type, bodies)
  values (
    send_batch.conversation_handle,
    send_batch.message_type,
    array(select convert_to(b.body, 'UTF8') from unnest(send_batch.bodies) with ordinality as b (body, position) order by b.position)
  );
end
$$;

comment on function parley.send_batch(uuid, text, text[]) is
'Sends many texts on one conversation, as UTF-8 and in the order of the array, as send_batch_binary sends bytes.
Arguments: conversation_handle; message_type; bodies, null or empty ones stand for messages without body.
Errors: those of send.
Source: spec 2.2, 4.2, R-PERF-3.';

create function parley.send_batch_json(conversation_handle uuid, message_type text, bodies jsonb[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_outgoing_batch (conversation_handle, message_type, bodies)
  values (
    send_batch_json.conversation_handle,
    send_batch_json.message_type,
    array(select convert_to(b.body::text, 'UTF8') from unnest(send_batch_json.bodies) with ordinality as b (body, position) order by b.position)
  );
end
$$;

comment on function parley.send_batch_json(uuid, text, jsonb[]) is
'Sends many JSON bodies on one conversation, as UTF-8, as send_batch_binary sends bytes.
Arguments: conversation_handle; message_type; bodies, null ones stand for messages without body.
Errors: those of send.
Source: spec 2.2, 4.2.';

create function parley._p_append(
  endpoint_id bigint, lane integer, position_sequence regclass, message_type_id integer, bodies bytea[], trace_context text default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_count integer := coalesce(cardinality(bodies), 0);
  v_now timestamptz := clock_timestamp();
  -- A frame fills one page: that is where a row costs least for what it carries.
  v_frame integer;
begin
  if v_count = 0 then
    return;
  end if;
  if array_position(bodies, '') is not null then
    bodies := array_replace(bodies, '', null);
  end if;
  v_frame := greatest(1, least(v_count, 1000, 7800::bigint * v_count / greatest(pg_column_size(bodies), 1)));
  if v_frame = 1 then
    insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body, trace_context)
    select nextval(position_sequence) * 1024, _p_append.endpoint_id, v_now, _p_append.lane, _p_append.message_type_id, b.body, _p_append.trace_context
    from unnest(bodies) with ordinality as b (body, ordinal)
    order by b.ordinal;
  elsif v_count <= 4000 and array_lower(bodies, 1) = 1 then
    insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, frame, trace_context)
    select nextval(position_sequence) * 1024, _p_append.endpoint_id, v_now, _p_append.lane, _p_append.message_type_id, bodies[f.first : f.first + v_frame - 1],
      _p_append.trace_context
    from generate_series(1, v_count, v_frame) as f (first);
  else
    -- Slicing walks the array from its start each time; for long ones this is quicker.
    insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, frame, trace_context)
    select nextval(position_sequence) * 1024, _p_append.endpoint_id, v_now, _p_append.lane, _p_append.message_type_id, f.frame, _p_append.trace_context
    from (
      select array_agg(b.body order by b.ordinal) as frame
      from unnest(bodies) with ordinality as b (body, ordinal)
      group by (b.ordinal - 1) / v_frame
      order by (b.ordinal - 1) / v_frame
    ) as f;
  end if;
  if v_frame > 1 and position_sequence <> 'parley._p_transmission_position'::regclass then
    perform parley._p_count_framed(v_count - (v_count + v_frame - 1) / v_frame);
  end if;
end
$$;

comment on function parley._p_append(bigint, integer, regclass, integer, bytea[], text) is
'Appends messages to a lane in their order, as frames of up to a page when they are small; all of them carry the trace context.';

-- sql/202_send_traced.sql

-- SEND with the sender's trace context, so that one trace shows the send, the wait and the work of the reader.
--
-- A trace context is what W3C Trace Context calls traceparent, and behind a blank the tracestate if there is one. It travels in a column of its
-- own beside the message: a send without it writes a null, which takes no room, and runs none of this. A trace is never worth a
-- message: what is no trace context, or too long, is left out, and the message is sent.

create function parley._p_trace_context(trace_context text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when octet_length(trace_context) <= 600
      and trace_context ~ '^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}( [ -~]*)?$'
      then trace_context
  end
$$;

comment on function parley._p_trace_context(text) is
'Gives a trace context that is well-formed and of at most 600 characters as it is, and null for any other.';

create function parley.send_traced(conversation_handle uuid, message_type text, body bytea, trace_context text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_outgoing (conversation_handle, message_type, body, trace_context)
  values (send_traced.conversation_handle, send_traced.message_type, send_traced.body, send_traced.trace_context);
end
$$;

comment on function parley.send_traced(uuid, text, bytea, text) is
'Sends a message as send does, and with it the trace that it belongs to: RECEIVE gives it back as trace_context.
Arguments: conversation_handle; message_type; body, null or empty for none; trace_context, a W3C traceparent, a blank and a tracestate or the first alone.
A trace context that is malformed or longer than 600 characters is left out, without an error.
Errors: those of send.
Source: ours; OpenTelemetry.';

create function parley.send_batch_traced(conversation_handle uuid, message_type text, bodies bytea[], trace_context text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_outgoing_batch (conversation_handle, message_type, bodies, trace_context)
  values (send_batch_traced.conversation_handle, send_batch_traced.message_type, send_batch_traced.bodies, send_batch_traced.trace_context);
end
$$;

comment on function parley.send_batch_traced(uuid, text, bytea[], text) is
'Sends many messages as send_batch does, and with each of them the trace that all belong to: RECEIVE gives it back as trace_context.
Arguments: conversation_handle; message_type; bodies, null or empty ones stand for messages without body; trace_context, as of send_traced.
Errors: those of send.
Source: ours; OpenTelemetry.';

-- sql/203_copies.sql

-- Copies of what is sent, for queues with retention (spec 5.2): status 3.
--
-- A copy has the number that its message gets when it is received. Numbers are not given out at SEND otherwise, so senders of one conversation come one
-- after the other while its queue retains: they hold the endpoint's row FOR NO KEY UPDATE. Where the numbers stand is kept as RECEIVE keeps
-- it: a row is appended for each SEND and its predecessor deleted, and the newest is found from the end, however many dead ones an old snapshot holds.
-- What was sent while retention was off is counted once, when the first copy is made: whoever switches retention on, or moves the service,
-- has waited for all senders before (_p_forget_copy_numbers), so all of it is visible then.
-- A transaction at REPEATABLE READ that does not see the newest row fails with 40001, because it deletes a row that is gone or updates an endpoint that
-- was updated.
-- Cost: beside the copy, one row locked, one found, one inserted and one deleted, whatever the conversation has sent.

create table parley._p_copy_progress (
  endpoint_id bigint not null,
  sequence bigint not null
);

comment on table parley._p_copy_progress is
'The number of the next copy of what an endpoint sends under retention: the largest row counts. No row: it has to be counted.';

create index on parley._p_copy_progress (endpoint_id, sequence);

create function parley._p_keep_sent(
  endpoint parley._p_endpoint, queue parley._p_queue, message_type_id integer, bodies bytea[], trace_context text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_count integer := coalesce(cardinality(bodies), 0);
  v_next bigint;
begin
  if v_count = 0 then
    return;
  end if;
  perform from parley._p_endpoint as e where e.endpoint_id = endpoint.endpoint_id for no key update;
  select p.sequence into v_next
  from parley._p_copy_progress as p where p.endpoint_id = endpoint.endpoint_id order by p.sequence desc limit 1;
  if v_next is null then
    v_next := parley._p_count_sent(endpoint.endpoint_id);
    -- So that an older snapshot, which does not see the first row, fails.
    update parley._p_endpoint as e set state_since = e.state_since where e.endpoint_id = endpoint.endpoint_id;
  else
    delete from parley._p_copy_progress as p where p.endpoint_id = endpoint.endpoint_id and p.sequence = v_next;
  end if;
  insert into parley._p_copy_progress (endpoint_id, sequence) values (endpoint.endpoint_id, v_next + v_count);
  insert into parley._p_retained (
    queue_id, endpoint_id, status, position, message_sequence_number, message_type_id, enqueued_at, body, trace_context
  )
  select queue.queue_id, endpoint.endpoint_id, 3, nextval(queue.position_sequence) * 1024, v_next + b.ordinal - 1, _p_keep_sent.message_type_id,
    clock_timestamp(), nullif(b.body, ''), _p_keep_sent.trace_context
  from unnest(bodies) with ordinality as b (body, ordinal);
end
$$;

comment on function parley._p_keep_sent(parley._p_endpoint, parley._p_queue, integer, bytea[], text) is
'Keeps copies of what an endpoint, whose row the caller has locked against its end, is about to send, under the numbers that it will be received with.';

create function parley._p_count_sent(endpoint_id bigint) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    -- What has got its number: received by a far side here, or taken for transmission.
    coalesce(
      (select p.sequence from parley._p_receive_progress as p where p.endpoint_id = e.far_endpoint_id order by p.sequence desc limit 1),
      (select p.sequence from parley._p_send_progress as p where p.endpoint_id = e.endpoint_id order by p.sequence desc limit 1),
      0
    ) + coalesce(
      (
        select sum(coalesce(cardinality(m.frame), 1))
        from parley._p_message as m
        where m.endpoint_id = e.far_endpoint_id and m.message_type_id not in (-1, 1, 5)
      ), 0
    )::bigint + (
      select count(*) from parley._p_transmission as t where t.endpoint_id = e.endpoint_id and t.message_type_id not in (-1, 1, 5)
    )
  from parley._p_endpoint as e
  where e.endpoint_id = $1
$$;

comment on function parley._p_count_sent(bigint) is
'Counts the messages that an endpoint has sent and whose senders have committed: the message_sequence_number of the next one.';

create function parley._p_forget_copy_numbers(queue_id integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  perform
  from parley._p_endpoint as e
  where e.service_id in (select s.service_id from parley._p_service as s where s.queue_id = _p_forget_copy_numbers.queue_id)
  order by e.endpoint_id
  for update;
  delete from parley._p_copy_progress as p
  where p.endpoint_id in (
    select e.endpoint_id
    from parley._p_endpoint as e
    join parley._p_service as s using (service_id)
    where s.queue_id = _p_forget_copy_numbers.queue_id
  );
end
$$;

comment on function parley._p_forget_copy_numbers(integer) is
'Waits for all senders on a queue whose retention is switched, and lets what they have sent be counted anew when the next copy is made.';

-- sql/210_deliver.sql

-- SEND when something has to be looked at: the first message of a conversation, unusual message types, validation, retention,
-- targets that are not there; and the reasons why a send is refused.
--
-- Delivery inside the database happens in the sender's transaction (spec 3.4). What cannot be delivered waits in
-- _p_transmission with a status text. What must not be delivered comes back as an Error message (spec 2.2, 4.10).
-- Locks: the sender's endpoint row, FOR KEY SHARE, or FOR UPDATE for the first message; FOR NO KEY UPDATE as long as there is no far
-- side, so that a message that is delayed and one that is delivered keep their order (S4), and under retention (203_copies.sql).

create function parley._p_send(caller oid, handle uuid, message_type text, bodies bytea[], trace_context text default null) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_type parley._p_message_type;
  v_queue parley._p_queue;
begin
  -- Before any row: whoever throws the switch waits for us holding nothing that we need.
  perform pg_sequence_last_value('parley._p_broker_switch');
  v_endpoint := parley._p_find_sender(handle);
  select q.* into v_queue from parley._p_service as s join parley._p_queue as q using (queue_id) where s.service_id = v_endpoint.service_id;
  perform parley._p_require_permission(caller, 'RECEIVE', 'queue', v_queue.queue_id, v_queue.lookup_name, v_queue.owner);
  v_type := parley._p_sendable_type(v_endpoint, message_type);
  if v_queue.is_retention_enabled then
    if not v_queue.is_enqueue_enabled then
      perform parley._p_raise(
        9618,
        format('queue "%s" is disabled and keeps what is sent', v_queue.lookup_name),
        'With retention on, a message that is sent is copied to the sender''s queue, which is off.',
        format('Switch it on: select parley.alter_queue(%L, status => true);', v_queue.lookup_name)
      );
    end if;
    perform parley._p_keep_sent(v_endpoint, v_queue, v_type.message_type_id, bodies, trace_context);
  end if;
  if v_endpoint.state = 'SO' then
    update parley._p_endpoint as e set state = 'CO', state_since = clock_timestamp() where e.endpoint_id = v_endpoint.endpoint_id;
  end if;
  if parley._p_dispatch(handle, v_type, bodies, trace_context) then
    perform parley._p_remember_route(caller, handle);
  end if;
end
$$;

comment on function parley._p_send(oid, uuid, text, bytea[], text) is
'Sends messages the long way: checks everything, creates the target''s endpoint when it is the first message, validates, keeps copies, delays.
Errors: those of parley.send.';

create function parley._p_dispatch(handle uuid, message_type parley._p_message_type, bodies bytea[], trace_context text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is_disabled boolean := pg_sequence_last_value('parley._p_broker_switch') is not null;
  v_endpoint parley._p_endpoint;
  v_route record;
  v_reason text;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle;
  if v_endpoint.far_endpoint_id is null or v_is_disabled and v_endpoint.far_endpoint_id > 0 then
    select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle for no key update;
  end if;
  if v_endpoint.far_endpoint_id < 0 then
    return parley._p_send_far(handle, message_type.message_type_id, bodies, trace_context);
  elsif v_endpoint.far_endpoint_id is null and not v_is_disabled then
    v_route := parley._p_find_route(v_endpoint.far_service, v_endpoint.far_broker_instance, v_endpoint.conversation_id);
    if v_route.address <> 'LOCAL'
      or v_route.address = 'LOCAL' and v_route.status is not null and parley._p_neighbour(v_endpoint, v_route.broker_instance) is not null then
      return parley._p_send_far(handle, message_type.message_type_id, bodies, trace_context);
    end if;
    v_reason := v_route.status;
  end if;
  v_reason := coalesce(v_reason, parley._p_delay_reason(v_endpoint));
  if v_reason is not null then
    perform parley._p_put_aside(v_endpoint, message_type.message_type_id, bodies, v_reason, trace_context);
    return false;
  end if;
  if v_endpoint.far_endpoint_id is null
    and exists (select from parley._p_transmission as t where t.endpoint_id = v_endpoint.endpoint_id) then
    -- What was delayed goes first. It may turn out that the target refuses.
    perform parley._p_deliver_delayed_of(v_endpoint.endpoint_id);
    select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = v_endpoint.endpoint_id;
    if v_endpoint.state <> 'CO' then
      return false;
    end if;
  end if;
  perform parley._p_deliver(v_endpoint, message_type, bodies, trace_context);
  return true;
end
$$;

comment on function parley._p_dispatch(uuid, parley._p_message_type, bytea[], text) is
'Delivers messages here, puts them on their way to another database, or delays them, behind what was sent before. The caller holds the row of the
endpoint, has checked what there is to check, and has asked for the switch of the broker before that.
True when nothing of this side was delayed, so that later sends may take the short way.
Source: spec 3.4, 6.2.';

create function parley._p_find_sender(handle uuid) returns parley._p_endpoint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle;
  if not found and exists (select from parley._p_tombstone as t where t.conversation_handle = handle) then
    perform parley._p_raise(
      8429,
      'the conversation cannot send: its state is CLOSED',
      format('Conversation handle %s, state CD.', handle),
      'Both sides have ended it: begin a new dialog to go on.'
    );
  elsif not found then
    v_endpoint := parley._p_find_endpoint(handle);
  end if;
  -- Only one may send the first message; asking for the stronger lock at once keeps two first senders from waiting for each other.
  if v_endpoint.state = 'SO' then
    select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle for update;
  else
    select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle for key share;
  end if;
  if not found then
    perform parley._p_raise_unknown_handle(handle);
  end if;
  if v_endpoint.state not in ('SO', 'CO') then
    perform parley._p_raise(
      8429,
      format('the conversation cannot send: its state is %s', parley._p_state_name(v_endpoint.state)),
      format('Conversation handle %s, state %s.', handle, v_endpoint.state),
      case v_endpoint.state
        when 'DI' then 'The other side has ended the conversation: receive what is left, then end it too, and begin a new one to go on.'
        when 'ER' then 'It has failed: receive its Error message, then end it, and begin a new one to go on.'
        else 'This side has ended it: begin a new dialog to go on.'
      end
    );
  end if;
  return v_endpoint;
end
$$;

comment on function parley._p_find_sender(uuid) is
'Finds and locks an endpoint that is to send.
Errors: 8418, 8426, 8429.';

create function parley._p_sendable_type(endpoint parley._p_endpoint, message_type text) returns parley._p_message_type
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_type parley._p_message_type;
  v_usage parley._p_contract_message_type;
begin
  select * into v_type from parley._p_message_type as t where t.name = message_type;
  if not found then
    perform parley._p_raise(
      8428,
      format('message type "%s" not found', message_type),
      'Names are compared byte by byte.' || parley._p_did_you_mean(message_type, array(select t.name from parley._p_message_type as t)),
      'See parley.service_message_types. The body is the third argument of send.'
    );
  end if;
  select * into v_usage
  from parley._p_contract_message_type as u
  where u.service_contract_id = endpoint.service_contract_id
    and u.message_type_id = v_type.message_type_id
    and not parley._p_is_system_message(u.message_type_id);
  if not found then
    perform parley._p_raise(
      8431,
      format('message type "%s" is not part of the contract', message_type),
      format('The conversation is on contract "%s".', endpoint.service_contract_name),
      'Send a message type of the contract, or begin the dialog on another contract.'
    );
  elsif endpoint.is_initiator and not v_usage.is_sent_by_initiator then
    perform parley._p_raise(
      8432,
      format('message type "%s" is for the target to send', message_type),
      format('Contract "%s".', endpoint.service_contract_name),
      'Send another message type.'
    );
  elsif not endpoint.is_initiator and not v_usage.is_sent_by_target then
    perform parley._p_raise(
      8434,
      format('message type "%s" is for the initiator to send', message_type),
      format('Contract "%s".', endpoint.service_contract_name),
      'Send another message type.'
    );
  end if;
  return v_type;
end
$$;

comment on function parley._p_sendable_type(parley._p_endpoint, text) is
'Finds a message type that this side of a conversation may send.
Errors: 8428, 8431, 8432, 8434.';

create function parley._p_delay_reason(endpoint parley._p_endpoint) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if pg_sequence_last_value('parley._p_broker_switch') is not null then
    return 'The broker is disabled in this database.';
  elsif endpoint.far_endpoint_id is not null then
    return null;
  end if;
  return parley._p_absence(endpoint);
end
$$;

comment on function parley._p_delay_reason(parley._p_endpoint) is
'Tells why messages of an endpoint cannot be delivered yet, or null when they can. The switch of the broker cannot be thrown until the transaction ends.';

create function parley._p_deliver(
  endpoint parley._p_endpoint, message_type parley._p_message_type, bodies bytea[], trace_context text default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_far parley._p_endpoint;
  v_queue parley._p_queue;
  v_valid integer;
  v_refusal record;
begin
  if endpoint.far_endpoint_id is null then
    v_refusal := parley._p_refusal(endpoint);
    if v_refusal.error_number is not null then
      perform parley._p_break_conversations(array[endpoint.endpoint_id], v_refusal.error_number, v_refusal.description);
      return;
    end if;
    v_far := parley._p_connect(endpoint);
  else
    select * into v_far from parley._p_endpoint as e where e.endpoint_id = endpoint.far_endpoint_id;
    if not found then
      perform parley._p_break_conversations(array[endpoint.endpoint_id], 8462, 'The other side of the conversation no longer exists.');
      return;
    end if;
  end if;
  v_valid := parley._p_count_valid(message_type, bodies);
  select q.* into v_queue from parley._p_service as s join parley._p_queue as q using (queue_id) where s.service_id = v_far.service_id;
  perform parley._p_append(
    v_far.endpoint_id, parley._p_lane(v_queue.queue_id, v_far.priority), v_queue.position_sequence, message_type.message_type_id,
    case when v_valid < cardinality(bodies) then bodies[: array_lower(bodies, 1) + v_valid - 1] else bodies end, trace_context
  );
  perform parley._p_ring(v_queue.queue_id, v_queue.doorbell_sequence);
  if v_valid < cardinality(bodies) then
    v_refusal := parley._p_invalid(message_type, bodies[array_lower(bodies, 1) + v_valid]);
    perform parley._p_break_conversations(
      array[endpoint.endpoint_id], v_refusal.error_number, v_refusal.description, parley._p_number_of_receiver(v_refusal.error_number)
    );
  end if;
end
$$;

comment on function parley._p_deliver(parley._p_endpoint, parley._p_message_type, bytea[], text) is
'Delivers messages to the far side in this database, or breaks the conversation when the target refuses them; what comes before a bad body is delivered.';

-- sql/211_connect.sql

-- The target's side of a first message: what it refuses, its endpoint, and the short cut that later sends take.

create function parley._p_refusal(endpoint parley._p_endpoint, out error_number integer, out description text)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_service parley._p_service;
begin
  select * into v_service from parley._p_service as s where s.name = endpoint.far_service;
  if parley._p_has_permission(endpoint.owner, 'SEND', 'service', v_service.service_id, v_service.owner) is not true then
    error_number := 8494;
    description := format('%s, the owner of service "%s", may not SEND to service "%s".', endpoint.owner, endpoint.service_name, endpoint.far_service);
  elsif not exists (
    select
    from parley._p_service_contract as u
    where u.service_id = v_service.service_id and u.service_contract_id = endpoint.service_contract_id
  ) then
    error_number := 8408;
    description := format('Service "%s" does not accept the contract "%s".', endpoint.far_service, endpoint.service_contract_name);
  end if;
end
$$;

comment on function parley._p_refusal(parley._p_endpoint) is
'Tells why a target in this database refuses a conversation: no permission (8494) or contract not accepted (8408); nulls when it takes it.';

create function parley._p_connect(endpoint parley._p_endpoint) returns parley._p_endpoint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_service parley._p_service;
  v_queue parley._p_queue;
  v_group bigint;
  v_far parley._p_endpoint;
  v_guid text := (select b.service_broker_guid::text from parley._p_broker as b);
  v_type record;
begin
  select * into v_service from parley._p_service as s where s.name = endpoint.far_service;
  select * into v_queue from parley._p_queue as q where q.queue_id = v_service.queue_id;
  insert into parley._p_conversation_group (conversation_group_id, service_id)
  values (gen_random_uuid(), v_service.service_id)
  returning group_id into v_group;
  select t.message_type_id, t.name into v_type from parley._p_usual_type(endpoint.service_contract_id, false) as t;
  insert into parley._p_endpoint (
    far_endpoint_id, group_id, usual_message_type_id, usual_message_type_name, state, is_initiator, is_plain, priority,
    service_id, service_contract_id, service_name, service_contract_name, conversation_id, owner, far_service, far_broker_instance, is_encrypted, lifetime
  )
  values (
    endpoint.endpoint_id, v_group, v_type.message_type_id, v_type.name, 'CO', false, true,
    parley._p_priority_of(endpoint.service_contract_id, v_service.service_id, endpoint.service_name),
    v_service.service_id, endpoint.service_contract_id, v_service.name, endpoint.service_contract_name,
    endpoint.conversation_id, v_service.owner, endpoint.service_name, v_guid, endpoint.is_encrypted, endpoint.lifetime
  )
  returning * into v_far;
  -- Each side keeps its own clock: the initiator may be gone when the time comes (spec 3.2).
  perform parley._p_set_alarm(v_far.endpoint_id, 'lifetime', coalesce(a.first_due_at, a.due_at))
  from parley._p_alarm as a
  where a.endpoint_id = endpoint.endpoint_id and a.kind = 'lifetime';
  perform parley._p_use_priority(v_queue, v_far.priority);
  select t.message_type_id, t.name into v_type from parley._p_usual_type(endpoint.service_contract_id, true) as t;
  update parley._p_endpoint as e
  set far_endpoint_id = v_far.endpoint_id, far_broker_instance = v_guid, usual_message_type_id = v_type.message_type_id, usual_message_type_name = v_type.name
  where e.endpoint_id = endpoint.endpoint_id;
  return v_far;
end
$$;

comment on function parley._p_connect(parley._p_endpoint) is
'Creates the target''s endpoint of a conversation in this database and lets both sides know each other.';

create function parley._p_usual_type(service_contract_id integer, is_initiator boolean, out message_type_id integer, out name text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select t.message_type_id, t.name
  from parley._p_contract_message_type as u
  join parley._p_message_type as t using (message_type_id)
  where u.service_contract_id = $1
    and t.validation = 'N'
    and case when $2 then u.is_sent_by_initiator else u.is_sent_by_target end
  order by t.message_type_id
  limit 1
$$;

comment on function parley._p_usual_type(integer, boolean) is
'Gives the message type a side of a conversation is expected to send most: its first one without validation, if there is one.';

create function parley._p_right_to_send(caller oid, queue parley._p_queue) returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return case
    when pg_has_role(caller, queue.owner, 'usage') then queue.owner
    else coalesce(
      (
        select case p.grantee::oid when 0 then caller else p.grantee end
        from parley._p_permission as p
        where p.class = 'queue'
          and p.object_id = queue.queue_id
          and p.permission in ('RECEIVE', 'CONTROL')
          and (p.grantee = 0::regrole or pg_has_role(caller, p.grantee, 'usage'))
        limit 1
      ),
      (select n.nspowner from pg_namespace as n where n.nspname = 'parley' and pg_has_role(caller, n.nspowner, 'usage'))
    )
  end;
end
$$;

comment on function parley._p_right_to_send(oid, parley._p_queue) is
'Tells through which role a role holds RECEIVE on a queue: who loses that role loses the right, without our being told.
Null when that cannot be said.';

create function parley._p_remember_route(caller oid, handle uuid) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley._p_endpoint as e
  set destination_lane = parley._p_lane(fq.queue_id, f.priority),
    destination_position = fq.position_sequence,
    destination_doorbell = fq.doorbell_sequence,
    sender_role = parley._p_right_to_send(caller, q)
  from parley._p_service as s
  join parley._p_queue as q using (queue_id),
    parley._p_endpoint as f
    join parley._p_service as fs using (service_id)
    join parley._p_queue as fq on fq.queue_id = fs.queue_id
  where e.conversation_handle = handle
    and e.state = 'CO'
    and e.destination_lane is null
    and e.usual_message_type_id is not null
    and s.service_id = e.service_id
    and not q.is_retention_enabled
    and parley._p_right_to_send(caller, q) is not null
    and f.endpoint_id = e.far_endpoint_id;
  if not found then
    perform parley._p_remember_destination(caller, handle);
  end if;
end
$$;

comment on function parley._p_remember_route(oid, uuid) is
'Lets the next send of a conversation take the short way, when nothing stands against it.
Arguments: caller, whose rights were checked; handle of the conversation, whose row is locked.';

create function parley._p_remember_destination(caller oid, handle uuid) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley._p_endpoint as e
  set destination_lane = parley._p_lane(e.destination_id, e.priority),
    destination_position = 'parley._p_transmission_position',
    destination_doorbell = 'parley._p_transmission_doorbell',
    usual_message_type_id = t.message_type_id,
    usual_message_type_name = t.name,
    sender_role = parley._p_right_to_send(caller, q)
  from parley._p_endpoint as o
  join parley._p_service as s using (service_id)
  join parley._p_queue as q using (queue_id)
  cross join lateral parley._p_usual_type(o.service_contract_id, o.is_initiator) as t
  where e.conversation_handle = handle
    and o.endpoint_id = e.endpoint_id
    and e.state = 'CO'
    and e.destination_lane is null
    and e.destination_id is not null
    and t.message_type_id is not null
    and not q.is_retention_enabled
    and parley._p_right_to_send(caller, q) is not null;
end
$$;

comment on function parley._p_remember_destination(oid, uuid) is
'Lets the next send of a conversation with another database take the short way, when nothing stands against it.
Arguments: as _p_remember_route.';

create function parley._p_forget_routes(endpoints bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley._p_endpoint as e set destination_lane = null, sender_role = null
  where e.endpoint_id = any (endpoints) and (e.destination_lane is not null or e.sender_role is not null);
end
$$;

comment on function parley._p_forget_routes(bigint[]) is 'Makes the next send of these endpoints take the long way.';

create function parley._p_forget_routes_of_queue(queue_id integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_forget_routes(array(
    select e.endpoint_id
    from parley._p_endpoint as e
    join parley._p_service as s using (service_id)
    where s.queue_id = $1
  ));
end
$$;

comment on function parley._p_forget_routes_of_queue(integer) is
'Makes the next send of all endpoints of a queue take the long way: its settings or rights have changed.';

create function parley._p_forget_routes_of_type(message_type_id integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley._p_endpoint as e set usual_message_type_id = null, usual_message_type_name = null, destination_lane = null, sender_role = null
  where e.usual_message_type_id = $1
    and exists (select from parley._p_message_type as t where t.message_type_id = $1 and t.validation <> 'N');
end
$$;

comment on function parley._p_forget_routes_of_type(integer) is 'Makes sends of a message type that now needs validation take the long way.';

create function parley._p_deliver_delayed(service_name text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_id bigint;
begin
  if pg_sequence_last_value('parley._p_broker_switch') is not null then
    return;
  end if;
  for v_id in
    select e.endpoint_id
    from parley._p_endpoint as e
    where (_p_deliver_delayed.service_name is null or e.far_service = _p_deliver_delayed.service_name)
      and e.endpoint_id in (
        select t.endpoint_id from parley._p_transmission as t
        union
        -- All that it sent has its number already, and lost its way since.
        select t.endpoint_id
        from parley._p_transit as t
        join parley._p_endpoint as o using (endpoint_id)
        where o.destination_id is null
      )
    order by e.endpoint_id
    for update of e
  loop
    perform parley._p_deliver_delayed_of(v_id);
  end loop;
end
$$;

comment on function parley._p_deliver_delayed(text) is
'Looks again for a way for what waits in the transmission queue for a service, or for any (null): delivers it here, or puts it on its way to another
database, in the order it was sent.';

create function parley._p_deliver_delayed_of(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
  v_reason text;
  v_message record;
  v_type parley._p_message_type;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_deliver_delayed_of.endpoint_id;
  -- What is held because the other side has ended, or is parked, stays. The time for which it is parked counts elsewhere, not here.
  if not found
    or v_endpoint.state in ('DI', 'ER')
      and not exists (select from parley._p_transmission as t where t.endpoint_id = v_endpoint.endpoint_id and t.message_type_id = -1)
    or exists (select from parley._p_parked as p where p.endpoint_id = v_endpoint.endpoint_id and p.due_at < 'infinity')
      and parley._p_is_at_home(v_endpoint) is not true then
    return;
  elsif v_endpoint.far_endpoint_id is null or v_endpoint.far_endpoint_id < 0 and v_endpoint.destination_id is null then
    v_reason := parley._p_bind(v_endpoint);
    select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_deliver_delayed_of.endpoint_id;
    if v_reason is not null then
      update parley._p_transmission as t set transmission_status = v_reason
      where t.endpoint_id = v_endpoint.endpoint_id and t.transmission_status <> v_reason;
    end if;
  end if;
  if v_reason is not null or v_endpoint.far_endpoint_id < 0 then
    return;
  end if;
  for v_message in
    select t.message_type_id, t.body, t.trace_context
    from parley._p_transmission as t
    where t.endpoint_id = _p_deliver_delayed_of.endpoint_id
    order by t.transmission_id
  loop
    select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_deliver_delayed_of.endpoint_id;
    exit when not found or v_endpoint.state = 'ER';
    if v_message.message_type_id in (1, 2) then
      perform parley._p_tell_end(v_endpoint, v_message.message_type_id, v_message.body);
    else
      select * into v_type from parley._p_message_type as t where t.message_type_id = v_message.message_type_id;
      perform parley._p_deliver(v_endpoint, v_type, array[v_message.body], v_message.trace_context);
    end if;
  end loop;
  delete from parley._p_transmission as t where t.endpoint_id = _p_deliver_delayed_of.endpoint_id;
end
$$;

comment on function parley._p_deliver_delayed_of(bigint) is
'Delivers what waits in the transmission queue for one endpoint, which the caller has locked, or puts it on its way, if there is one now.';

-- sql/212_validation.sql

-- Whether a body is what its message type says.
--
-- Bodies are checked once, when they are delivered. Text is read as UTF-8, with or without a byte order mark, or as
-- UTF-16 when it begins with the byte order mark of that, as T-SQL programs send it.

create function parley.body_text(body bytea) returns text
language plpgsql immutable strict
set search_path = pg_catalog, pg_temp
as $$
declare
  v_body bytea;
  v_low integer;
  v_parts text[] := array[]::text[];
  v_text text := '';
  v_high integer := 0;
  v_unit integer;
begin
  if substr(body, 1, 3) = '\xefbbbf' then
    return convert_from(substr(body, 4), 'UTF8');
  elsif substr(body, 1, 2) not in ('\xfffe', '\xfeff') then
    return convert_from(body, 'UTF8');
  end if;
  v_low := case when substr(body, 1, 2) = '\xfffe' then 0 else 1 end;
  -- A copy in memory: of a stored value each get_byte would unpack all of it.
  v_body := body || ''::bytea;
  for i in 1 .. octet_length(v_body) / 2 - 1 loop
    v_unit := get_byte(v_body, 2 * i + v_low) + 256 * get_byte(v_body, 2 * i + 1 - v_low);
    case
      when v_unit between 56320 and 57343 and v_high > 0 then
        v_text := v_text || chr(65536 + (v_high - 55296) * 1024 + v_unit - 56320);
        v_high := 0;
      when v_unit = 0 then
        perform convert_from('\x00', 'UTF8');
      -- Half of a pair alone.
      when v_high > 0 or v_unit between 56320 and 57343 then
        perform convert_from('\xeda080', 'UTF8');
      when v_unit between 55296 and 56319 then
        v_high := v_unit;
      else
        v_text := v_text || chr(v_unit);
    end case;
    -- Appending copies the text, so it is kept short.
    if i % 1024 = 0 then
      v_parts := v_parts || v_text;
      v_text := '';
    end if;
  end loop;
  if v_high > 0 then
    perform convert_from('\xeda080', 'UTF8');
  end if;
  return array_to_string(v_parts || v_text, '');
exception
  -- One body that is no text must not fail the RECEIVE that reads it, with all that came in the same statement.
  when data_exception then
    return null;
end
$$;

comment on function parley.body_text(bytea) is
'Gives a message body as text: UTF-8, or UTF-16 when it begins with a byte order mark, and null when it is neither: bytes that are no text, half of a
surrogate pair, a NUL. The time it takes grows with the length of the body.
Arguments: body.
Errors: none.';

create function parley._p_may_validate(setter oid, validation_function oid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    (
      select parley._p_may_act_as(setter, r.role) and parley._p_may_act_as(p.proowner, r.role)
      from pg_proc as p
      cross join lateral (
        select case when p.prosecdef then p.proowner else (select n.nspowner from pg_namespace as n where n.nspname = 'parley') end as role
      ) as r
      where p.oid = validation_function
        and p.prokind = 'f'
        and p.pronargs = 1
        and p.proargtypes[0] = 'bytea'::regtype
        and p.prorettype = 'boolean'::regtype
    ),
    false
  );
end
$$;

comment on function parley._p_may_validate(oid, oid) is
'Tells whether a function may judge messages for the role that set it. Never null.
It runs inside functions that are SECURITY DEFINER, so with the rights of the schema''s owner unless it is SECURITY DEFINER itself: whoever set it and whoever
owns it must be able to act as the role whose rights it has.';

create function parley._p_version(validation_function oid) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select p.xmin::text || ' ' || n.xmin::text
    from pg_proc as p
    join pg_namespace as n on n.oid = p.pronamespace
    where p.oid = validation_function
  );
end
$$;

comment on function parley._p_version(oid) is
'Gives the transactions that wrote a function''s row in the catalog, and that of its schema: while both are the same, so is all that the function is, its
name included. Null when it is gone.';

-- Not ours, so it is planned as anything else of its database: SEND and what accepts from afar scan no table from end to end, which can be the best way
-- through a small one, and compile nothing. The options are named here so that they come back at the end; what a session has set for itself is not known.
--
-- Its owner may take SECURITY DEFINER away while we ask, or give its name to another function by renaming its schema. So the version that was
-- checked is compared once more after the executor has taken the function up and before it is called: the version in between cannot be another.
-- It is compared twice: PostgreSQL reads the function's row for the call from a cache, which it renews where it takes a lock that it does not hold
-- yet; the second time it holds all of them, so nothing is renewed between its snapshot and the call. The subquery keeps the planner from calling
-- an immutable function before that.
-- A snapshot that is kept sees old versions only, so there only a function that may act as the owner of the schema anyway is called.
create function parley._p_call_validation(message_type parley._p_message_type, body bytea) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = on
set jit = on
set plan_cache_mode = auto
as $$
declare
  v_is_valid boolean;
  v_version text;
  v_schema name;
  v_name name;
  v_owner oid;
begin
  set local enable_seqscan to default;
  set local jit to default;
  set local plan_cache_mode to default;
  v_version := parley._p_version(message_type.validation_function);
  select n.nspname, p.proname, p.proowner into v_schema, v_name, v_owner
  from pg_proc as p
  join pg_namespace as n on n.oid = p.pronamespace
  where p.oid = message_type.validation_function;
  if parley._p_may_validate(message_type.validation_setter, message_type.validation_function) is not true then
    return false;
  end if;
  if parley._p_keeps_snapshot()
    and parley._p_may_act_as(v_owner, (select n.nspowner from pg_namespace as n where n.nspname = 'parley')) is not true then
    raise exception using
      errcode = 'feature_not_supported',
      message = format('a message of type "%s" is not sent at this isolation level', message_type.name),
      detail = format('Its validation function %s belongs to a role other than the owner of the broker.', message_type.validation_function),
      hint = 'Send it at READ COMMITTED.';
  end if;
  execute format(
    'select case when parley._p_version(%1$s) = %2$L and parley._p_version(%1$s) = %2$L then %3$I.%4$I(b.body) end from (select $1 as body offset 0) as b',
    message_type.validation_function::oid, v_version, v_schema, v_name
  )
  into v_is_valid
  using body;
  return v_is_valid;
end
$$;

comment on function parley._p_call_validation(parley._p_message_type, bytea) is
'Asks the validation function of a message type, under the planner''s settings of the server, the database or the role. False when it is gone, or may not run.
Errors: 0A000 in a transaction that keeps its snapshot, and whatever the function raises.';

create function parley._p_validated_bytes_max() returns integer
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select 16 * 1024 * 1024
$$;

comment on function parley._p_validated_bytes_max() is
'Gives the size in bytes of the largest body that is parsed or shown to a validation function; a larger one is refused unread.';

create function parley._p_is_valid(message_type parley._p_message_type, body bytea) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is_valid boolean := true;
begin
  if message_type.validation not in ('N', 'E') and octet_length(body) > parley._p_validated_bytes_max() then
    return false;
  end if;
  case message_type.validation
    when 'N' then
      return true;
    when 'E' then
      return body is null;
    when 'X' then
      -- An empty body is none, and good for XML too (spec 2.2).
      if body is not null and xml_is_well_formed_document(parley.body_text(body)) is not true then
        return false;
      end if;
    when 'J' then
      if parley.body_text(body)::jsonb is null then
        return false;
      end if;
    else
      null;
  end case;
  if message_type.validation_function is not null then
    v_is_valid := parley._p_call_validation(message_type, body);
  end if;
  return coalesce(v_is_valid, false);
exception
  when data_exception or program_limit_exceeded or raise_exception then
    return false;
end
$$;

comment on function parley._p_is_valid(parley._p_message_type, bytea) is
'Tells whether a body is good for a message type (spec 2.2). A validation function that raises a data exception says no.';

create function parley._p_count_valid(message_type parley._p_message_type, bodies bytea[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_count integer := 0;
  v_body bytea;
begin
  if message_type.validation = 'N' or bodies is null then
    return cardinality(bodies);
  end if;
  foreach v_body in array bodies loop
    exit when not parley._p_is_valid(message_type, nullif(v_body, ''));
    v_count := v_count + 1;
  end loop;
  return v_count;
end
$$;

comment on function parley._p_count_valid(parley._p_message_type, bytea[]) is
'Tells how many messages come before the first whose body is not good for its type: those are delivered (spec 2.2).';

create function parley._p_invalid(message_type parley._p_message_type, body bytea, out error_number integer, out description text)
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select
    case message_type.validation when 'X' then 9615 else 8430 end,
    case
      when message_type.validation <> 'E' and octet_length(body) > parley._p_validated_bytes_max() then format(
        'A message of type "%s" has %s bytes; at most %s are validated.', message_type.name, octet_length(body), parley._p_validated_bytes_max()
      )
      else format('A message of type "%s" failed its validation.', message_type.name)
    end
$$;

comment on function parley._p_invalid(parley._p_message_type, bytea) is 'Gives number and text of the Error for a body that is not good for its message type.';

create function parley._p_number_of_receiver(error_number integer) returns integer
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case error_number when 9615 then 9616 else error_number end
$$;

comment on function parley._p_number_of_receiver(integer) is
'Gives the number of the Error that the receiver of a refused message gets, where the sender gets the one that is given: XML that failed its validation
is 9615 for who sent it and 9616 for who received it (spec 2.2).';

-- sql/213_far_side.sql

-- SEND and END when the far side is in another database.
--
-- A conversation is bound to a destination when its first message finds a route. From then on it takes the short way of SEND. As long as
-- it is not bound, what it sends waits in _p_transmission, and whoever sends holds its row FOR NO KEY UPDATE, so that what was delayed is put on
-- the lane before anything else gets there (keeps S4). A conversation that has to leave its lane (its far side cannot take from it, its route has
-- changed, it has ended from the other side) is locked FOR UPDATE, which waits for its senders; whoever may not wait passes it by.

create function parley._p_put_out(endpoint parley._p_endpoint, message_type_id integer, bodies bytea[], trace_context text default null) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_append(
    -endpoint.endpoint_id, parley._p_lane(endpoint.destination_id, endpoint.priority), 'parley._p_transmission_position', message_type_id, bodies,
    trace_context
  );
  perform parley._p_ring(endpoint.destination_id, 'parley._p_transmission_doorbell');
end
$$;

comment on function parley._p_put_out(parley._p_endpoint, integer, bytea[], text) is
'Puts messages of an endpoint on the lane of the destination it is bound to, and wakes the daemon. Type -1 is an Error of the broker.';

create function parley._p_put_aside(endpoint parley._p_endpoint, message_type_id integer, bodies bytea[], status text, trace_context text default null)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_transmission (endpoint_id, message_type_id, enqueued_at, body, transmission_status, trace_context)
  select endpoint.endpoint_id, _p_put_aside.message_type_id, clock_timestamp(), nullif(b.body, ''), status, _p_put_aside.trace_context
  from unnest(bodies) with ordinality as b (body, ordinal)
  order by b.ordinal;
  -- The daemon may know a database that SQL does not see.
  if pg_sequence_last_value('parley._p_transmission_doorbell') > extract(epoch from clock_timestamp()) then
    perform pg_notify('parley', 'unresolved');
  end if;
end
$$;

comment on function parley._p_put_aside(parley._p_endpoint, integer, bytea[], text, text) is
'Keeps messages of an endpoint until there is a way for them; the caller holds its row FOR NO KEY UPDATE.';

create function parley._p_bind_to(endpoint_id bigint, address text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
  v_lane integer;
  v_has_moved boolean;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_bind_to.endpoint_id;
  update parley._p_endpoint as e
  set far_endpoint_id = -e.endpoint_id, destination_id = parley._p_find_destination(address, e.priority), destination_lane = null, sender_role = null
  where e.endpoint_id = v_endpoint.endpoint_id
  returning * into v_endpoint;
  v_lane := parley._p_lane(v_endpoint.destination_id, v_endpoint.priority);
  -- What was on its way to another address.
  update parley._p_transit as t set destination_id = v_endpoint.destination_id
  where t.endpoint_id = v_endpoint.endpoint_id and t.destination_id <> v_endpoint.destination_id;
  v_has_moved := found;
  if v_has_moved or exists (select from parley._p_transit as t where t.endpoint_id = v_endpoint.endpoint_id) then
    -- Who transmits there has read long ago what was in transit, and does not look again; of what is parked and due it hears.
    insert into parley._p_parked as p (endpoint_id, destination_id, status, attempts, due_at)
    values (v_endpoint.endpoint_id, v_endpoint.destination_id, '', 0, clock_timestamp())
    on conflict on constraint _p_parked_pkey do update
    set destination_id = excluded.destination_id, status = excluded.status, attempts = excluded.attempts, due_at = excluded.due_at
    where v_has_moved;
    perform parley._p_ring(v_endpoint.destination_id, 'parley._p_transmission_doorbell');
  end if;
  with waiting as (
    -- Where the other side has ended or failed, all that may still go is an Error of the broker.
    delete from parley._p_transmission as t
    where t.endpoint_id = v_endpoint.endpoint_id and (v_endpoint.state not in ('DI', 'ER') or t.message_type_id = -1)
    returning t.transmission_id, t.enqueued_at, t.message_type_id, t.body, t.trace_context
  )
  insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body, trace_context)
  select nextval('parley._p_transmission_position') * 1024, -v_endpoint.endpoint_id, w.enqueued_at, v_lane, w.message_type_id, w.body, w.trace_context
  from (select o.enqueued_at, o.message_type_id, o.body, o.trace_context from waiting as o order by o.transmission_id) as w;
  if found then
    perform parley._p_ring(v_endpoint.destination_id, 'parley._p_transmission_doorbell');
  end if;
end
$$;

comment on function parley._p_bind_to(bigint, text) is
'Binds a conversation, whose row the caller holds, to the destination of an address, and moves what has waited there, in order.
Arguments: endpoint_id, not bound before; address, as _p_destination has it.';

create function parley._p_leave_lane(endpoint parley._p_endpoint, status text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  perform parley._p_forget_routes(array[endpoint.endpoint_id]);
  with waiting as (
    delete from parley._p_message as m where m.endpoint_id = -endpoint.endpoint_id
    returning m.position, m.enqueued_at, m.message_type_id, coalesce(m.frame, array[m.body]) as frame, m.trace_context
  )
  insert into parley._p_transmission (endpoint_id, message_type_id, enqueued_at, body, transmission_status, trace_context)
  select endpoint.endpoint_id, o.message_type_id, o.enqueued_at, b.body, status, o.trace_context
  from (select w.position, w.enqueued_at, w.message_type_id, w.frame, w.trace_context from waiting as w order by w.position) as o
  cross join lateral unnest(o.frame) with ordinality as b (body, ordinal)
  order by o.position, b.ordinal;
end
$$;

comment on function parley._p_leave_lane(parley._p_endpoint, text) is
'Takes what has no number yet of a conversation, locked FOR UPDATE by the caller, off the lane of its destination, and keeps it in _p_transmission with
a status.';

create function parley._p_unbind(endpoint parley._p_endpoint, status text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_leave_lane(endpoint, status);
  update parley._p_endpoint as e set destination_id = null where e.endpoint_id = endpoint.endpoint_id;
end
$$;

comment on function parley._p_unbind(parley._p_endpoint, text) is
'Takes a conversation, locked FOR UPDATE by the caller, off its destination; what it sends from now on waits until it is bound again.';

create function parley._p_bind(endpoint parley._p_endpoint) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_route record;
  v_reason text;
begin
  if pg_sequence_last_value('parley._p_broker_switch') is not null then
    return 'The broker is disabled in this database.';
  end if;
  v_route := parley._p_find_route(endpoint.far_service, endpoint.far_broker_instance, endpoint.conversation_id);
  if v_route.address = 'LOCAL' then
    v_reason := coalesce(v_route.status, parley._p_absence(endpoint));
    if v_reason is null then
      return parley._p_come_back(endpoint);
    end if;
    v_route.address := parley._p_neighbour(endpoint, v_route.broker_instance);
  else
    v_reason := v_route.status;
  end if;
  if v_route.address is null then
    return v_reason;
  end if;
  perform parley._p_bind_to(endpoint.endpoint_id, v_route.address);
  return null;
end
$$;

comment on function parley._p_bind(parley._p_endpoint) is
'Binds a conversation, whose row the caller holds, to the destination that its route leads to; gives null, or the reason why it has none. Null also when
the far side is in this database: then the conversation has no destination, and no far side yet.
Source: spec 6.2, 6.3.';

create function parley._p_bind_unless_parked(endpoint parley._p_endpoint) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    (
      select p.status
      from parley._p_parked as p
      where p.endpoint_id = endpoint.endpoint_id and p.due_at < 'infinity' and parley._p_is_at_home(endpoint) is not true
    ),
    parley._p_bind(endpoint)
  );
end
$$;

comment on function parley._p_bind_unless_parked(parley._p_endpoint) is
'Binds a conversation as _p_bind does, unless it waits after a refusal of its far side: then what it sends waits behind what was refused, for that reason.';

create function parley._p_neighbour(endpoint parley._p_endpoint, broker_instance text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select n.address
  from parley._p_neighbour_service as n
  where n.service_name = endpoint.far_service
    and (_p_neighbour.broker_instance is null or n.address = 'broker:' || _p_neighbour.broker_instance)
  order by md5(n.address || endpoint.conversation_id::text)
  limit 1
$$;

comment on function parley._p_neighbour(parley._p_endpoint, text) is
'Gives the address of a database of the same daemon that has the far service, if one is known; of several one for each conversation (spec 6.4).
Arguments: broker_instance, that of the conversation or of its route, null for any.';

create function parley._p_absence(endpoint parley._p_endpoint) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if endpoint.far_broker_instance is not null
    and endpoint.far_broker_instance <> (select b.service_broker_guid::text from parley._p_broker as b) then
    return format('The broker instance %s is not this database, and there is no route to it.', endpoint.far_broker_instance);
  elsif not exists (select from parley._p_service as s where s.name = endpoint.far_service) then
    return format('The target service "%s" does not exist in this database, and there is no route to it.', endpoint.far_service)
      || parley._p_did_you_mean(endpoint.far_service, array(select s.name from parley._p_service as s));
  end if;
  return null;
end
$$;

comment on function parley._p_absence(parley._p_endpoint) is
'Tells why the far side of a conversation cannot be in this database; null when it can (spec 6.4, texts 9795 and 9796).';

create function parley._p_send_far(
  handle uuid, message_type_id integer, bodies bytea[], trace_context text
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
  v_status text;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle;
  if v_endpoint.destination_id is null then
    select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle for no key update;
  end if;
  if v_endpoint.destination_id is null then
    v_status := parley._p_bind_unless_parked(v_endpoint);
    if v_status is not null then
      perform parley._p_put_aside(v_endpoint, message_type_id, bodies, v_status, trace_context);
      return false;
    end if;
    select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle;
    if v_endpoint.destination_id is null then
      perform parley._p_put_aside(v_endpoint, message_type_id, bodies, '', trace_context);
      perform parley._p_deliver_delayed_of(v_endpoint.endpoint_id);
      return false;
    end if;
  end if;
  perform parley._p_put_out(v_endpoint, message_type_id, bodies, trace_context);
  return true;
end
$$;

comment on function parley._p_send_far(uuid, integer, bytea[], text) is
'Sends messages to a far side in another database, the long way: finds the route when there is none yet. The caller has checked rights and type.
True when nothing was delayed.';

create function parley._p_tell_far(endpoint_id bigint, message_type_id integer, body bytea) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
  v_status text;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_tell_far.endpoint_id for no key update;
  if v_endpoint.destination_id is null then
    v_status := parley._p_bind_unless_parked(v_endpoint);
    if v_status is not null then
      perform parley._p_put_aside(v_endpoint, message_type_id, array[body], v_status);
      return;
    end if;
    select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_tell_far.endpoint_id;
    if v_endpoint.destination_id is null then
      -- It has come back to this database: first what waited. Of what was never sent nobody needs to hear that it has failed.
      perform parley._p_deliver_delayed_of(v_endpoint.endpoint_id);
      select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_tell_far.endpoint_id;
      if found and message_type_id > 0 then
        perform parley._p_tell_end(v_endpoint, message_type_id, body);
      elsif v_endpoint.state = 'DO' then
        perform parley._p_remove_endpoint(v_endpoint);
      end if;
      return;
    end if;
  end if;
  perform parley._p_put_out(v_endpoint, message_type_id, array[body]);
end
$$;

comment on function parley._p_tell_far(bigint, integer, bytea) is
'Sends EndDialog (2), the Error of an application (1) or one of the broker (-1) to a far side in another database, behind what was sent before.';

create function parley._p_hold_outgoing(endpoint parley._p_endpoint, status text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  delete from parley._p_transit as t where t.endpoint_id = endpoint.endpoint_id;
  delete from parley._p_parked as p where p.endpoint_id = endpoint.endpoint_id;
  update parley._p_transmission as t set transmission_status = status where t.endpoint_id = endpoint.endpoint_id;
  perform parley._p_leave_lane(endpoint, status);
end
$$;

comment on function parley._p_hold_outgoing(parley._p_endpoint, text) is
'Keeps what a conversation has not transmitted from ever being so, because the far side has ended or failed; END removes it (spec 3.2, texts 9779
and 9784). What was under way is forgotten: nobody waits for it over there. The caller holds the row FOR UPDATE.';

create function parley._p_forget_far_side(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  delete from parley._p_message as m where m.endpoint_id = -_p_forget_far_side.endpoint_id;
  delete from parley._p_transit as t where t.endpoint_id = _p_forget_far_side.endpoint_id;
  delete from parley._p_parked as p where p.endpoint_id = _p_forget_far_side.endpoint_id;
  delete from parley._p_unresumed as u where u.endpoint_id = _p_forget_far_side.endpoint_id;
  delete from parley._p_compared as c where c.endpoint_id = _p_forget_far_side.endpoint_id;
  delete from parley._p_send_progress as p where p.endpoint_id = _p_forget_far_side.endpoint_id;
  delete from parley._p_accept_progress as p where p.endpoint_id = _p_forget_far_side.endpoint_id;
end
$$;

comment on function parley._p_forget_far_side(bigint) is 'Removes whatever is kept of an endpoint for the sake of its far side in another database.';

-- sql/214_drop_unsent.sql

-- What has been sent and is not with the far side yet, dropped because this side ends with an Error (spec 3.2, 4.6).
--
-- Here that is what came while the queue of the target is off. In another database it is all that was not acknowledged. Dropping what has its number
-- already leaves a hole in the order that the far side would wait behind for ever, so the Error then stands outside the order, as those of the broker do.
-- Locks: the endpoint's row FOR UPDATE, by the caller, so that nobody sends; rows of the lane, for which the daemon is waited; rows that readers and
-- acknowledgements delete SKIP LOCKED.

create function parley._p_drop_unsent(endpoint parley._p_endpoint) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  delete from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id;
  if endpoint.far_endpoint_id > 0 then
    -- What came while the queue of the target is off. A reader that has got at it since, because the queue is on again, keeps it.
    delete from parley._p_message as m
    where m.ctid = any (array(
      select o.ctid
      from parley._p_endpoint as f
      join parley._p_service as s using (service_id)
      join parley._p_queue as q using (queue_id)
      join parley._p_message as o on o.endpoint_id = f.endpoint_id and o.position >= q.disabled_position
      where f.endpoint_id = endpoint.far_endpoint_id and not parley._p_is_system_message(o.message_type_id)
      order by o.position
      for update of o skip locked
    ));
  elsif endpoint.far_endpoint_id < 0 then
    return parley._p_drop_untransmitted(endpoint);
  end if;
  return 1;
end
$$;

comment on function parley._p_drop_unsent(parley._p_endpoint) is
'Drops what a side, locked FOR UPDATE by the caller, has sent and the far side does not have yet, because it ends with an Error. Gives the type of message
that has to tell of the Error: 1 in the order, -1 outside of it, null when nobody has heard of the conversation.
Source: spec 3.2, 4.6.';

create function parley._p_drop_outgoing(endpoint parley._p_endpoint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  perform parley._p_forget_routes(array[endpoint.endpoint_id]);
  delete from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id;
  -- First the lane: what the daemon is just giving its number is waited for, and is in transit then.
  delete from parley._p_message as m where m.endpoint_id = -endpoint.endpoint_id;
  -- An acknowledgement locks what it deletes, in an order of its own.
  delete from parley._p_transit as t
  where t.ctid = any (array(select o.ctid from parley._p_transit as o where o.endpoint_id = endpoint.endpoint_id for update skip locked));
  delete from parley._p_parked as p where p.endpoint_id = endpoint.endpoint_id;
end
$$;

comment on function parley._p_drop_outgoing(parley._p_endpoint) is
'Forgets what a conversation, locked FOR UPDATE by the caller, has not transmitted.';

create function parley._p_drop_untransmitted(endpoint parley._p_endpoint) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  -- As in _p_drop_outgoing, what is just given its number is waited for.
  delete from parley._p_message as m where m.endpoint_id = -endpoint.endpoint_id;
  if endpoint.is_initiator and not exists (select from parley._p_send_progress as p where p.endpoint_id = endpoint.endpoint_id) then
    return null;
  elsif not exists (select from parley._p_transit as t where t.endpoint_id = endpoint.endpoint_id) then
    return 1;
  elsif endpoint.is_initiator
    and exists (select from parley._p_transit as t where t.endpoint_id = endpoint.endpoint_id and t.first_sequence = 0)
    and not exists (select from parley._p_parked as p where p.endpoint_id = endpoint.endpoint_id and p.due_at < 'infinity') then
    -- The first message may arrive any moment, and nobody remembers an Error that came before it: the Error has to follow it.
    return 1;
  end if;
  -- What has a number and is forgotten leaves a hole, which only a message outside the order gets across.
  perform parley._p_drop_outgoing(endpoint);
  return -1;
end
$$;

comment on function parley._p_drop_untransmitted(parley._p_endpoint) is
'Drops what the far side in another database has not acknowledged; all that the daemon may be sending stays when the far side may be made by it.
The result is that of _p_drop_unsent.';

create function parley._p_is_telling_far(endpoint parley._p_endpoint) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select endpoint.far_endpoint_id < 0
    and (
      exists (select from parley._p_transit as t where t.endpoint_id = endpoint.endpoint_id and t.message_type_id = -1)
      or exists (select from parley._p_message as m where m.endpoint_id = -endpoint.endpoint_id and m.message_type_id = -1)
      or exists (select from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id and t.message_type_id = -1)
    )
$$;

comment on function parley._p_is_telling_far(parley._p_endpoint) is
'Tells whether an Error of the broker is still on its way to a far side in another database.';

-- sql/215_come_back.sql

-- A conversation that was routed to another database and whose target is in this one now.
--
-- No message may have two far sides. One that has its number may be with another database already, so a conversation that has begun elsewhere stays
-- there, but for one case: its target has answered that it did not take even the first message, and nothing was sent to anybody since. Then the
-- numbers are forgotten and all goes the way of what was never sent. That is the case of a conversation that is put aside (_p_parked) and has not been
-- bound again; a route that was changed leaves no such answer behind.
-- Should a copy of the first message be under way all the same, in the memory of a server in between, and be taken there later, the second of the two
-- targets is refused when it answers: 8495 (spec 6.5).
-- Locks: the endpoint's row, by the caller.

create function parley._p_come_back(endpoint parley._p_endpoint) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  if endpoint.far_endpoint_id < 0 then
    if not parley._p_was_never_taken(endpoint) then
      return format('The conversation has begun with another database, and now there is no route to its service "%s" but here.', endpoint.far_service);
    end if;
    with numbered as (
      delete from parley._p_transit as t where t.endpoint_id = endpoint.endpoint_id
      returning t.first_sequence as position, t.enqueued_at, t.message_type_id, coalesce(t.frame, array[t.body]) as frame, t.trace_context
    ), waiting as (
      delete from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id
      returning t.transmission_id as position, t.enqueued_at, t.message_type_id, array[t.body] as frame, t.trace_context
    )
    insert into parley._p_transmission (endpoint_id, message_type_id, enqueued_at, body, transmission_status, trace_context)
    select endpoint.endpoint_id, o.message_type_id, o.enqueued_at, b.body, '', o.trace_context
    from (
      select 1 as stage, n.position, n.enqueued_at, n.message_type_id, n.frame, n.trace_context from numbered as n
      union all
      select 2, w.position, w.enqueued_at, w.message_type_id, w.frame, w.trace_context from waiting as w
    ) as o
    cross join lateral unnest(o.frame) with ordinality as b (body, ordinal)
    -- Nobody needs to hear an Error about what he never heard of.
    where o.message_type_id <> -1
    order by o.stage, o.position, b.ordinal;
    delete from parley._p_send_progress as p where p.endpoint_id = endpoint.endpoint_id;
    delete from parley._p_parked as p where p.endpoint_id = endpoint.endpoint_id;
    update parley._p_endpoint as e set far_endpoint_id = null where e.endpoint_id = endpoint.endpoint_id;
    if endpoint.state = 'DO' and not exists (select from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id) then
      endpoint.far_endpoint_id := null;
      perform parley._p_remove_endpoint(endpoint);
    end if;
  end if;
  return null;
end
$$;

comment on function parley._p_come_back(parley._p_endpoint) is
'Lets a conversation whose route leads to this database now have its far side here, unless another database may have messages of it; then gives that as
the reason why it waits. The caller holds the row.
Source: spec 2.5, 6.2.';

create function parley._p_was_never_taken(endpoint parley._p_endpoint) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select not exists (select from parley._p_send_progress as p where p.endpoint_id = endpoint.endpoint_id)
      and not exists (select from parley._p_accept_progress as p where p.endpoint_id = endpoint.endpoint_id)
    or endpoint.is_initiator
      and endpoint.destination_id is null
      -- At infinity it is being sent again.
      and exists (select from parley._p_parked as p where p.endpoint_id = endpoint.endpoint_id and p.due_at < 'infinity')
      and not exists (select from parley._p_accept_progress as p where p.endpoint_id = endpoint.endpoint_id)
      -- All that ever got a number is still here.
      and (select max(p.sequence) from parley._p_send_progress as p where p.endpoint_id = endpoint.endpoint_id) = (
        select sum(t.next_sequence - t.first_sequence)
        from parley._p_transit as t
        where t.endpoint_id = endpoint.endpoint_id and t.message_type_id <> -1
      )
$$;

comment on function parley._p_was_never_taken(parley._p_endpoint) is
'Tells whether it is sure that no other database has taken a message of a conversation: none has a number, or the target has refused the first for now
and nothing was acknowledged or sent since.';

create function parley._p_is_at_home(endpoint parley._p_endpoint) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select r.address = 'LOCAL' and r.status is null and parley._p_absence(endpoint) is null
  from parley._p_look_for_route(endpoint.far_service, endpoint.far_broker_instance, endpoint.conversation_id, false) as r
$$;

comment on function parley._p_is_at_home(parley._p_endpoint) is
'Tells whether the route of a conversation leads to a service of this database now.';

-- sql/219_conversation_rights.sql

-- Who may work on a conversation, and who may read about it (spec 7.7).

create function parley._p_require_conversation_owner(caller oid, endpoint parley._p_endpoint, what text) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
begin
  if pg_has_role(caller, endpoint.owner, 'usage') then
    return;
  end if;
  -- Whoever may receive from the queue does the work of the service; it must be able to finish it.
  select q.* into v_queue from parley._p_service as s join parley._p_queue as q using (queue_id) where s.service_id = endpoint.service_id;
  if parley._p_has_permission(caller, 'RECEIVE', 'queue', v_queue.queue_id, v_queue.owner) is not true then
    perform parley._p_raise(
      229,
      format('permission denied: %s', what),
      format('The conversation belongs to %s; role %s may not receive from queue "%s" either.', endpoint.owner, caller::regrole, v_queue.lookup_name),
      format('Its owner can allow it: select parley.grant(''RECEIVE'', ''queue'', %L, %L);', v_queue.lookup_name, pg_get_userbyid(caller))
    );
  end if;
end
$$;

comment on function parley._p_require_conversation_owner(oid, parley._p_endpoint, text) is
'Refuses callers that neither own a conversation nor read its queue (spec 7.7 and docs/differences.md).
Errors: 229.';

create function parley._p_may_look_at(caller oid, endpoint parley._p_endpoint) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select pg_has_role(caller, endpoint.owner, 'usage')
    or coalesce((
      select parley._p_has_permission(caller, 'RECEIVE', 'queue', q.queue_id, q.owner)
      from parley._p_service as s
      join parley._p_queue as q using (queue_id)
      where s.service_id = endpoint.service_id
    ), parley._p_is_administrator(caller))
$$;

comment on function parley._p_may_look_at(oid, parley._p_endpoint) is
'Tells whether the caller may look at a side of a conversation: its owner, whoever may RECEIVE from its queue, administrators.';

-- sql/220_end_conversation.sql

-- END CONVERSATION in its three forms, and what ends conversations from the broker's side.
--
-- Locks: the group of this side, then both endpoint rows in the order of their ids; this side's FOR UPDATE, so that no send on it
-- is under way, the far side's FOR NO KEY UPDATE, so that its senders are not held up. A reader of the far side holds only its
-- group row and is never waited for: when a side that ended before goes too, its group is locked only if it is free, and otherwise the
-- alarms remove that side a little later.

create function parley._p_lock_group_of(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group_id bigint;
begin
  loop
    select e.group_id into v_group_id from parley._p_endpoint as e where e.endpoint_id = _p_lock_group_of.endpoint_id;
    exit when not found;
    perform from parley._p_conversation_group as g where g.group_id = v_group_id for update;
    -- MOVE may have changed the group while we waited. Now it cannot any more (keeps S9).
    exit when exists (select from parley._p_endpoint as e where e.endpoint_id = _p_lock_group_of.endpoint_id and e.group_id = v_group_id);
  end loop;
end
$$;

comment on function parley._p_lock_group_of(bigint) is
'Locks the group that an endpoint is in, waiting for its holder; does nothing when the endpoint is gone.';

create function parley._p_lock_to_end(handle uuid) returns parley._p_endpoint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint := parley._p_find_endpoint_to_end(handle);
  v_far bigint;
begin
  perform parley._p_lock_group_of(v_endpoint.endpoint_id);
  v_endpoint := parley._p_find_endpoint_to_end(handle);
  loop
    v_far := v_endpoint.far_endpoint_id;
    if v_far < v_endpoint.endpoint_id then
      perform from parley._p_endpoint as e where e.endpoint_id = v_far for no key update;
    end if;
    perform from parley._p_endpoint as e where e.endpoint_id = v_endpoint.endpoint_id for update;
    if v_far > v_endpoint.endpoint_id then
      perform from parley._p_endpoint as e where e.endpoint_id = v_far for no key update;
    end if;
    v_endpoint := parley._p_find_endpoint_to_end(handle);
    -- While we waited, the first send may have made the far side.
    exit when v_endpoint.far_endpoint_id is not distinct from v_far;
  end loop;
  return v_endpoint;
end
$$;

comment on function parley._p_lock_to_end(uuid) is
'Locks a side of a conversation, its group and its far side, in the order that all follow.
Errors: 8418, 8426, 8427.';

create function parley._p_find_endpoint_to_end(handle uuid) returns parley._p_endpoint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle;
  if not found and exists (select from parley._p_tombstone as t where t.conversation_handle = handle) then
    perform parley._p_raise_cannot_end(handle, 'CD');
  elsif not found then
    return parley._p_find_endpoint(handle);
  end if;
  return v_endpoint;
end
$$;

comment on function parley._p_find_endpoint_to_end(uuid) is
'Finds an endpoint that is to end.
Errors: 8418 null, 8426 not found, 8427 closed already.';

create function parley._p_raise_cannot_end(handle uuid, state text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_raise(
    8427,
    format('the conversation cannot be ended: its state is %s', parley._p_state_name(state)),
    format('Conversation handle %s, state %s.', handle, state),
    'It has been ended here already; an administrator can remove what is left with end_conversation(handle, cleanup => true).'
  );
end
$$;

comment on function parley._p_raise_cannot_end(uuid, text) is
'Says that a conversation has been ended already.
Errors: 8427, always.';

create function parley._p_end_without_error(conversation_handle uuid, caller parley.caller) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_end(parley._p_caller(caller), conversation_handle, 2, null);
end
$$;

comment on function parley._p_end_without_error(uuid, parley.caller) is
'Does what end_conversation does. The ticket is no argument of that: with it calls of its three forms could be taken for one another.
Errors: those of end_conversation.';

create function parley.end_conversation(conversation_handle uuid) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_end_without_error(conversation_handle, parley.current_caller());
end
$$;

comment on function parley.end_conversation(uuid) is
'Ends this side of a conversation: what waits for it is removed, and the other side gets an EndDialog message after everything sent before.
Arguments: conversation_handle.
Errors: 229 not allowed, 8418 missing, 8426 not found, 8427 ended already.
Source: spec 4.6.';

create function parley.end_conversation(
  conversation_handle uuid, error_code integer, description text,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  if error_code is null and description is null then
    perform parley._p_raise(8424, 'error code and description are missing', null, 'Give both, or end the conversation without an error.');
  elsif error_code is null then
    perform parley._p_raise(8419, 'the error code is missing', null, 'Give a code greater than zero with the description.');
  elsif description is null then
    perform parley._p_raise(8422, 'the error description is missing', null, 'Give a description with the code.');
  elsif error_code <= 0 then
    perform parley._p_raise(
      8402,
      format('error code %s is not greater than zero', error_code),
      'Negative codes are the broker''s.',
      'Give a code from 1 to 2147483647.'
    );
  elsif length(description) > 3000 then
    perform parley._p_raise(
      8402,
      'the error description is too long',
      format('It has %s characters; 3000 are allowed.', length(description)),
      'Shorten it.'
    );
  end if;
  perform parley._p_end(v_caller, conversation_handle, 1, parley._p_error_body(error_code, description));
end
$$;

comment on function parley.end_conversation(uuid, integer, text, parley.caller) is
'Ends this side of a conversation with an error: the other side gets an Error message. What was sent before and is not delivered yet is dropped.
Arguments: conversation_handle; error_code, greater than zero; description, at most 3000 characters.
Errors: 229 not allowed, 8402 code or description out of range, 8418 missing,
8419, 8422 and 8424 code or description missing, 8426 not found, 8427 ended already.
Source: spec 4.6.';

create function parley._p_error_body(error_code integer, description text) returns bytea
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return convert_to(
    xmlelement(
      name "Error",
      xmlattributes('http://schemas.microsoft.com/SQL/ServiceBroker/Error' as xmlns),
      xmlelement(name "Code", error_code),
      xmlelement(name "Description", regexp_replace(description, '[\u0001-\u0008\u000b\u000c\u000e-\u001f]', '?', 'g'))
    )::text,
    'UTF8'
  );
end
$$;

comment on function parley._p_error_body(integer, text) is 'Gives the body of an Error message (spec 4.9), in UTF-8.';

create function parley._p_end(caller oid, handle uuid, message_type_id integer, body bytea) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  -- Before any row, as SEND does.
  perform pg_sequence_last_value('parley._p_broker_switch');
  v_endpoint := parley._p_lock_to_end(handle);
  perform parley._p_require_conversation_owner(caller, v_endpoint, 'END CONVERSATION');
  perform parley._p_end_side(v_endpoint, message_type_id, body);
end
$$;

comment on function parley._p_end(oid, uuid, integer, bytea) is
'Ends one side with EndDialog (2) or Error (1), when the caller may.
Errors: 229, 8418, 8426, 8427.';

create function parley._p_end_side(endpoint parley._p_endpoint, message_type_id integer, body bytea) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  case endpoint.state
    when 'SO' then
      perform parley._p_remove_endpoint(endpoint);
    when 'CO' then
      perform parley._p_discard_messages(endpoint.endpoint_id);
      if message_type_id = 1 then
        message_type_id := parley._p_drop_unsent(endpoint);
      end if;
      perform parley._p_set_state(endpoint.endpoint_id, 'DO');
      if message_type_id is null then
        perform parley._p_remove_endpoint(endpoint);
      else
        perform parley._p_tell_end(endpoint, message_type_id, body);
      end if;
    when 'DI' then
      perform parley._p_close_both(endpoint);
    when 'ER' then
      if exists (select from parley._p_endpoint as f where f.endpoint_id = endpoint.far_endpoint_id and f.state in ('CO', 'DI')) then
        perform parley._p_discard_messages(endpoint.endpoint_id);
        perform parley._p_set_state(endpoint.endpoint_id, 'DO');
        perform parley._p_tell_end(endpoint, message_type_id, body);
      elsif parley._p_is_telling_far(endpoint) then
        perform parley._p_discard_messages(endpoint.endpoint_id);
        perform parley._p_set_state(endpoint.endpoint_id, 'DO');
      else
        perform parley._p_close_both(endpoint);
      end if;
    else
      perform parley._p_raise_cannot_end(endpoint.conversation_handle, endpoint.state);
  end case;
end
$$;

comment on function parley._p_end_side(parley._p_endpoint, integer, bytea) is
'Ends one side, locked by _p_lock_to_end, with EndDialog (2) or Error (1); the transitions of spec 3.2.
Errors: 8427.';

create function parley._p_tell_end(endpoint parley._p_endpoint, message_type_id integer, body bytea) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_far parley._p_endpoint;
  v_reason text := parley._p_delay_reason(endpoint);
begin
  if endpoint.far_endpoint_id < 0 then
    perform parley._p_tell_far(endpoint.endpoint_id, message_type_id, body);
    return;
  elsif endpoint.far_endpoint_id is null or v_reason is not null then
    if endpoint.far_endpoint_id is not null
      or (message_type_id = 2 and exists (select from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id)) then
      insert into parley._p_transmission (endpoint_id, message_type_id, enqueued_at, body, transmission_status)
      values (endpoint.endpoint_id, message_type_id, clock_timestamp(), body, coalesce(v_reason, ''));
    else
      -- Nobody over there ever heard of this conversation.
      perform parley._p_remove_endpoint(endpoint);
    end if;
    return;
  end if;
  select * into v_far from parley._p_endpoint as e where e.endpoint_id = endpoint.far_endpoint_id for no key update;
  if not found then
    perform parley._p_remove_endpoint(endpoint);
  elsif v_far.state = 'DO' then
    perform parley._p_close_both(endpoint);
  elsif v_far.state in ('CO', 'SO') then
    perform parley._p_enqueue(v_far, message_type_id, body);
    perform parley._p_set_state(v_far.endpoint_id, case message_type_id when 2 then 'DI' else 'ER' end);
    if not v_far.is_initiator then
      perform parley._p_set_alarm(v_far.endpoint_id, 'abandoned', clock_timestamp() + make_interval(secs => b.abandoned_seconds))
      from parley._p_broker as b;
    end if;
  end if;
end
$$;

comment on function parley._p_tell_end(parley._p_endpoint, integer, bytea) is
'Tells the far side that this side has ended, with EndDialog (2) or Error (1), after everything sent before; a far side in another database also with an
Error that stands outside the order (-1).';

create function parley._p_set_state(endpoint_id bigint, state text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley._p_endpoint as e
  set state = $2, state_since = clock_timestamp(), is_plain = e.is_plain and $2 <> 'ER', destination_lane = null
  where e.endpoint_id = $1;
end
$$;

comment on function parley._p_set_state(bigint, text) is 'Changes the state of an endpoint; sends on it take the long way from now on.';

create function parley._p_discard_messages(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from parley._p_message as m where m.endpoint_id = $1;
  delete from parley._p_retained as r where r.endpoint_id = $1;
  if found then
    delete from parley._p_copy_progress as p where p.endpoint_id = $1;
  end if;
  delete from parley._p_alarm as a where a.endpoint_id = $1;
  delete from parley._p_expedited as x where x.endpoint_id = $1;
end
$$;

comment on function parley._p_discard_messages(bigint) is 'Removes whatever waits for an endpoint, is kept for it, or would ring for it.';

create function parley._p_remove_endpoint(endpoint parley._p_endpoint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- A sender of the far side holds its row until he commits, and what he has appended is not seen before. A side that has ended has none.
  v_has_senders boolean := exists (select from parley._p_endpoint as f where f.endpoint_id = endpoint.far_endpoint_id and f.state <> 'DO');
begin
  if v_has_senders then
    perform from parley._p_endpoint as f where f.endpoint_id = endpoint.far_endpoint_id for update skip locked;
    v_has_senders := not found;
  end if;
  perform parley._p_discard_messages(endpoint.endpoint_id);
  if v_has_senders then
    perform parley._p_set_state(endpoint.endpoint_id, 'DO');
    perform parley._p_set_alarm(endpoint.endpoint_id, 'abandoned', clock_timestamp() + interval '1 second');
    return;
  end if;
  -- Who holds the group may be about to begin a dialog in it, which must not find it gone (keeps S2).
  -- When this is our own side we hold it ourselves.
  -- An older snapshot does not see all that belongs to it.
  perform from parley._p_conversation_group as g where g.group_id = endpoint.group_id for update skip locked;
  if not found or parley._p_keeps_snapshot() then
    perform parley._p_set_state(endpoint.endpoint_id, 'DO');
    perform parley._p_set_alarm(endpoint.endpoint_id, 'abandoned', clock_timestamp());
    return;
  end if;
  delete from parley._p_receive_progress as p where p.endpoint_id = endpoint.endpoint_id;
  delete from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id;
  if endpoint.far_endpoint_id < 0 then
    perform parley._p_forget_far_side(endpoint.endpoint_id);
  end if;
  if not endpoint.is_plain then
    delete from parley._p_set_aside as s where s.endpoint_id = endpoint.endpoint_id;
    delete from parley._p_failure as f where f.endpoint_id = endpoint.endpoint_id;
  end if;
  delete from parley._p_endpoint as e where e.endpoint_id = endpoint.endpoint_id;
  if not endpoint.is_initiator then
    insert into parley._p_tombstone (
      conversation_handle, conversation_id, is_initiator, service_contract_id, conversation_group_id, service_id, far_service,
      owner, lifetime, priority, expires_at
    )
    select endpoint.conversation_handle, endpoint.conversation_id, false, endpoint.service_contract_id, g.conversation_group_id, endpoint.service_id,
      endpoint.far_service, endpoint.owner, endpoint.lifetime, endpoint.priority, clock_timestamp() + make_interval(secs => b.tombstone_seconds)
    from parley._p_broker as b, parley._p_conversation_group as g
    where g.group_id = endpoint.group_id;
  end if;
  delete from parley._p_conversation_group as g
  where g.group_id = endpoint.group_id
    and not exists (select from parley._p_endpoint as e where e.group_id = g.group_id);
end
$$;

comment on function parley._p_remove_endpoint(parley._p_endpoint) is
'Removes one side of a conversation with all that belongs to it; a target leaves a tombstone, an empty group goes (spec 3.3, 3.6).
When somebody else holds the group or sends to it just now, or at REPEATABLE READ, the endpoint is closed now and removed by an alarm.';

-- sql/221_break_conversation.sql

-- What ends conversations from outside: cleanup by an administrator, and errors of the broker.

create function parley._p_close_both(endpoint parley._p_endpoint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_far parley._p_endpoint;
begin
  select * into v_far from parley._p_endpoint as e where e.endpoint_id = endpoint.far_endpoint_id;
  perform parley._p_remove_endpoint(endpoint);
  if v_far.state = 'DO' then
    perform parley._p_remove_endpoint(v_far);
  end if;
end
$$;

comment on function parley._p_close_both(parley._p_endpoint) is 'Closes a side, and the far side too when that had ended before.';

create function parley._p_clean_up(conversation_handle uuid, cleanup boolean, caller parley.caller) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_endpoint parley._p_endpoint;
begin
  if not coalesce(cleanup, false) then
    perform parley._p_end_without_error(conversation_handle, caller);
    return;
  end if;
  if exists (select from parley._p_tombstone as t where t.conversation_handle = _p_clean_up.conversation_handle) then
    if parley._p_is_administrator(v_caller) is not true then
      perform parley._p_raise_no_cleanup(conversation_handle, 'CD');
    end if;
    delete from parley._p_tombstone as t where t.conversation_handle = _p_clean_up.conversation_handle;
    return;
  end if;
  perform parley._p_find_endpoint(conversation_handle);
  v_endpoint := parley._p_lock_to_end(conversation_handle);
  if parley._p_is_administrator(v_caller) is not true
    and (pg_has_role(v_caller, v_endpoint.owner, 'usage') and v_endpoint.state <> 'DO') is not true then
    perform parley._p_raise_no_cleanup(conversation_handle, v_endpoint.state);
  end if;
  perform parley._p_forget_routes(array[v_endpoint.far_endpoint_id]);
  perform parley._p_remove_endpoint(v_endpoint);
  -- Removed is removed: not even a tombstone stays (spec 3.2).
  delete from parley._p_tombstone as t where t.conversation_handle = _p_clean_up.conversation_handle;
end
$$;

comment on function parley._p_clean_up(uuid, boolean, parley.caller) is
'Does what end_conversation with cleanup does.
Errors: those of end_conversation with cleanup.';

create function parley.end_conversation(conversation_handle uuid, cleanup boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_clean_up(conversation_handle, cleanup, parley.current_caller());
end
$$;

comment on function parley.end_conversation(uuid, boolean) is
'Removes one side of a conversation at once, without telling the other side: for administrators, when nothing else helps.
Arguments: conversation_handle; cleanup, true (false: the plain form).
Errors: 8418 missing, 8426 not found, 28006 not an administrator.
Source: spec 4.6.';

create function parley._p_raise_no_cleanup(handle uuid, state text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_raise(
    28006,
    'only an administrator may clean up this conversation',
    format('Conversation handle %s, state %s.', handle, state),
    'End it without cleanup, or ask the owner of the database.'
  );
end
$$;

comment on function parley._p_raise_no_cleanup(uuid, text) is
'Refuses a cleanup.
Errors: 28006, always.';

create function parley._p_break_conversations(
  endpoints bigint[], error_number integer, description text, far_error_number integer default null
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_broken integer := 0;
begin
  -- Both sides of each, locked in their order; against senders too where their messages are held from now on.
  perform
  from parley._p_endpoint as e
  where e.endpoint_id = any (endpoints) and e.far_endpoint_id < 0
  order by e.endpoint_id
  for update of e;
  for v_endpoint in
    select e.*
    from parley._p_endpoint as e
    where e.endpoint_id = any (endpoints)
      or e.endpoint_id in (select f.far_endpoint_id from parley._p_endpoint as f where f.endpoint_id = any (endpoints))
    order by e.endpoint_id
    for no key update of e
  loop
    case v_endpoint.state
      when 'CO', 'SO', 'DI', 'SI' then
        perform parley._p_enqueue(v_endpoint, 1, parley._p_error_body(
          -case when v_endpoint.endpoint_id = any (endpoints) then error_number else coalesce(nullif(far_error_number, 0), error_number) end, description
        ));
        perform parley._p_set_state(v_endpoint.endpoint_id, 'ER');
        v_broken := v_broken + 1;
        if v_endpoint.far_endpoint_id < 0 then
          perform parley._p_hold_outgoing(v_endpoint, 'An Error was received or made: the message is held until the conversation is ended.');
          if far_error_number <> 0 then
            perform parley._p_tell_far(v_endpoint.endpoint_id, -1, parley._p_error_body(-far_error_number, description));
          end if;
        end if;
        if not v_endpoint.is_initiator then
          perform parley._p_set_alarm(v_endpoint.endpoint_id, 'abandoned', clock_timestamp() + make_interval(secs => b.abandoned_seconds))
          from parley._p_broker as b;
        end if;
      when 'DO' then
        -- It said that it does not want to know (spec 3.2).
        perform parley._p_remove_endpoint(v_endpoint);
      else
        null;
    end case;
  end loop;
  return v_broken;
end
$$;

comment on function parley._p_break_conversations(bigint[], integer, text, integer) is
'Ends conversations with an error of the broker: both sides get an Error message with the negative number and are in state ER (spec 3.2).
A far side gets far_error_number, when that is neither 0 nor null; one in another database is told nothing otherwise: it has its own clock, or has said
so itself.
Gives the number of sides that were told.';

create function parley._p_drop_endpoints_of_service(service_id integer, description text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_far parley._p_endpoint;
begin
  perform
  from parley._p_conversation_group as g
  where g.service_id = _p_drop_endpoints_of_service.service_id
  order by g.group_id
  for update;
  for v_endpoint in
    select e.* from parley._p_endpoint as e where e.service_id = _p_drop_endpoints_of_service.service_id order by e.endpoint_id for update
  loop
    select * into v_far from parley._p_endpoint as e where e.endpoint_id = v_endpoint.far_endpoint_id for no key update;
    if v_far.state in ('CO', 'DI', 'SO') and v_far.service_id <> v_endpoint.service_id then
      perform parley._p_enqueue(v_far, 1, parley._p_error_body(-8470, description));
      perform parley._p_set_state(v_far.endpoint_id, 'ER');
    elsif v_far.state = 'DO' and v_far.service_id <> v_endpoint.service_id then
      -- It only waited for this side to end.
      perform parley._p_remove_endpoint(v_far);
    end if;
    if v_endpoint.far_endpoint_id < 0 and v_endpoint.state = 'CO' then
      -- It stays until the far side has heard of it.
      perform parley._p_discard_messages(v_endpoint.endpoint_id);
      perform parley._p_set_state(v_endpoint.endpoint_id, 'DO');
      perform parley._p_drop_outgoing(v_endpoint);
      perform parley._p_tell_far(v_endpoint.endpoint_id, -1, parley._p_error_body(-8470, description));
    else
      perform parley._p_remove_endpoint(v_endpoint);
    end if;
  end loop;
  delete from parley._p_tombstone as t where t.service_id = _p_drop_endpoints_of_service.service_id;
end
$$;

comment on function parley._p_drop_endpoints_of_service(integer, text) is
'Removes all endpoints of a service that is dropped and tells the far sides, with error -8470.';

create function parley._p_move_service(service parley._p_service, queue parley._p_queue) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  -- Nobody may be on the way to the old queue: the far sides' rows are locked against their senders.
  perform from parley._p_endpoint as e
  where e.endpoint_id in (select f.far_endpoint_id from parley._p_endpoint as f where f.service_id = service.service_id)
  order by e.endpoint_id
  for update;
  -- What comes from other databases, and a timer that fires, lock the receiving row itself.
  perform from parley._p_endpoint as e where e.service_id = service.service_id order by e.endpoint_id for update;
  perform parley._p_forget_routes(array(select f.far_endpoint_id from parley._p_endpoint as f where f.service_id = service.service_id));
  perform parley._p_forget_routes(array(select e.endpoint_id from parley._p_endpoint as e where e.service_id = service.service_id));
  update parley._p_service as s set queue_id = queue.queue_id where s.service_id = service.service_id;
  for v_endpoint in select e.* from parley._p_endpoint as e where e.service_id = service.service_id order by e.endpoint_id loop
    perform from parley._p_conversation_group as g where g.group_id = v_endpoint.group_id for update;
    perform parley._p_use_priority(queue, v_endpoint.priority);
    -- Copies come first: their positions would be given once more in the other queue.
    update parley._p_retained as r
    set queue_id = queue.queue_id, position = o.position
    from (
      select k.row_id, nextval(queue.position_sequence) * 1024 as position
      from (
        select c.ctid as row_id from parley._p_retained as c where c.endpoint_id = v_endpoint.endpoint_id order by c.position, c.status
      ) as k
    ) as o
    where r.ctid = o.row_id;
    if found then
      delete from parley._p_copy_progress as p where p.endpoint_id = v_endpoint.endpoint_id;
    end if;
    with moved as (
      delete from parley._p_message as m where m.endpoint_id = v_endpoint.endpoint_id
      returning m.position, m.enqueued_at, m.message_type_id, m.body, m.frame, m.trace_context
    )
    insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body, frame, trace_context)
    select nextval(queue.position_sequence) * 1024, v_endpoint.endpoint_id, o.enqueued_at, parley._p_lane(queue.queue_id, v_endpoint.priority),
      o.message_type_id, o.body, o.frame, o.trace_context
    from (select m.position, m.enqueued_at, m.message_type_id, m.body, m.frame, m.trace_context from moved as m order by m.position) as o;
    -- What is set aside stays so: in the new queue it gets out of the way again.
    update parley._p_set_aside as a set position = 0, moved_position = 0 where a.endpoint_id = v_endpoint.endpoint_id;
  end loop;
end
$$;

comment on function parley._p_move_service(parley._p_service, parley._p_queue) is
'Moves a service, its waiting messages and the copies that retention keeps, in their order, to another queue.';

-- sql/230_find_group.sql

-- Which group is next: the search that RECEIVE and GET CONVERSATION GROUP share.
--
-- The next group is the one with the first message, by priority and then by arrival, that no other transaction has locked.
-- RECEIVE looks at the first rows of the lane itself; this file is for the rest: locked groups at the head, several priorities.
--
-- Why a hint may be believed (keeps S2, S19). A sender draws its position from the queue's sequence, and so holds a lock on that
-- sequence until its transaction ends. If all who held that lock when the sequence stood at P have let go of it, then every row
-- up to P is there to be seen or never will be. _p_note_scan notes P and the holders (the probe); a later reader that finds none of
-- them left declares P safe; and readers whose look began after that may skip what they find gone or locked up to P. A look that began
-- before may have missed a row that is safe by now, so each look is judged by what was safe when it began.
-- What a look has passed by it remembers by conversation, not by group: a conversation that MOVE puts into another group while its row is
-- locked is still found where it was left. A conversation that a hint names stays named as long as anything of it waits before where the next
-- look begins, whatever the look has met: nobody else would find that.
-- With each goes where it begins: others that were received from since must not be searched from where the locked ones begin (a holder's
-- transaction keeps what was received dead, and not gone).
-- A hint is an ordinary row: if the transaction that consumed the rows rolls back, so does its claim that they are consumed.

create function parley._p_lock_next_group(
  queue_id integer, priorities integer, out group_id bigint, out endpoint_id bigint, out "position" bigint
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hint parley._p_scan_hint;
  v_priority integer;
  v_lane integer;
  v_begin bigint;
  v_from bigint;
  v_bound bigint;
  v_safe bigint;
  v_probe record;
  v_seen bigint[];
  v_group bigint;
  v_moved integer;
  v_most integer := 500;
begin
  for v_priority in select p.n from generate_series(10, 1, -1) as p (n) where priorities & (1 << p.n) > 0 loop
    v_lane := parley._p_lane(queue_id, v_priority);
    select * into v_hint from parley._p_scan_hint as h where h.lane = v_lane order by h.lane desc, h.hint_id desc limit 1;
    v_seen := '{}';
    -- Groups that were locked when somebody passed them by, in the order of their first message.
    for v_group in
      select e.group_id
      from unnest(v_hint.blocked_endpoints, v_hint.blocked_positions) as b (endpoint_id, position)
      join parley._p_endpoint as e using (endpoint_id)
      left join parley._p_set_aside as s using (endpoint_id)
      cross join lateral (
        -- One probe a conversation, however much waits in it.
        select m.position, m.lane
        from parley._p_message as m
        where m.endpoint_id = e.endpoint_id and m.position >= greatest(b.position, v_hint.low_position, s.moved_position)
        order by m.position
        limit 1
      ) as n
      where e.state <> 'DO' and n.position < v_hint.resume_position and n.lane = v_lane
      group by e.group_id
      order by min(n.position)
    loop
      perform from parley._p_conversation_group as g where g.group_id = v_group for update skip locked;
      if not found then
        v_seen := v_seen || parley._p_endpoints_of_group(v_group, 0);
        continue;
      end if;
      select m.endpoint_id, m.position into endpoint_id, position
      from parley._p_endpoint as e
      left join parley._p_set_aside as s using (endpoint_id)
      cross join lateral (
        select n.endpoint_id, n.position
        from parley._p_message as n
        where n.endpoint_id = e.endpoint_id
          and n.position >= greatest(parley._p_begin_of(v_hint, e.endpoint_id), s.moved_position)
          and n.lane = v_lane
        order by n.position
        limit 1
      ) as m
      where e.group_id = v_group and e.state <> 'DO'
      order by m.position
      limit 1;
      if found then
        v_moved := parley._p_pass_by(queue_id, v_group, endpoint_id, position, v_most);
        if v_moved is null then
          group_id := v_group;
          return;
        end if;
        if v_moved = v_most then
          v_seen := v_seen || parley._p_endpoints_of_group(v_group, 0);
        end if;
        v_most := v_most - v_moved;
      end if;
    end loop;
    v_begin := greatest(0, v_hint.low_position, v_hint.resume_position);
    v_from := v_begin;
    v_bound := v_begin + 4194304;
    v_safe := coalesce(v_hint.safe_position, 0);
    loop
      select m.endpoint_id, m.position, e.group_id into endpoint_id, position, v_group
      from parley._p_message as m
      join parley._p_endpoint as e using (endpoint_id)
      where m.lane = v_lane
        and m.position >= v_from
        and m.position < v_bound
        and e.state <> 'DO'
        and m.endpoint_id <> all (v_seen)
      order by m.position
      limit 1;
      if not found then
        exit when not exists (select from parley._p_message as m where m.lane = v_lane and m.position >= v_bound);
        -- It will be a long walk. If no sender is under way, what it passes by is told to others after this walk and not the next one; it begins
        -- anew, because somebody may have committed before v_from since that was looked at.
        select p.position, p.senders into v_probe
        from parley._p_queue as q
        cross join lateral parley._p_probe(q.position_sequence) as p
        where q.queue_id = _p_lock_next_group.queue_id;
        if cardinality(v_probe.senders) = 0 then
          v_safe := greatest(v_safe, v_probe.position);
        end if;
        v_from := v_begin;
        v_bound := 9223372036854775807;
        continue;
      end if;
      perform from parley._p_conversation_group as g where g.group_id = v_group for update skip locked;
      if not found then
        v_seen := v_seen || endpoint_id || parley._p_endpoints_of_group(v_group, endpoint_id);
        v_from := position;
      else
        -- Between our look and our lock another reader may have taken it, or MOVE the conversation.
        perform
        from parley._p_message as m
        join parley._p_endpoint as e using (endpoint_id)
        where m.endpoint_id = _p_lock_next_group.endpoint_id
          and m.position = _p_lock_next_group.position
          and e.group_id = v_group;
        if not found then
          continue;
        end if;
        v_moved := parley._p_pass_by(queue_id, v_group, endpoint_id, position, v_most);
        if v_moved is not null then
          if v_moved = v_most then
            v_seen := v_seen || endpoint_id || parley._p_endpoints_of_group(v_group, endpoint_id);
          end if;
          v_most := v_most - v_moved;
          v_from := position;
        else
          group_id := v_group;
          -- With what our hint named, whether we have met it or not: we did not look before where the hint let us begin.
          perform parley._p_note_scan(
            queue_id, v_lane, position, case when cardinality(v_seen) > 0 then v_seen || v_hint.blocked_endpoints else '{}' end,
            least(position, v_safe)
          );
          return;
        end if;
      end if;
    end loop;
  end loop;
  group_id := null;
  endpoint_id := null;
  position := null;
end
$$;

comment on function parley._p_lock_next_group(integer, integer) is
'Finds and locks the next group of a queue that no other transaction has locked; gives its first message, or nulls when there is none.
Arguments: queue_id; priorities, the set of levels that exist in the queue, as bits.
Source: spec 3.6, 4.3.';

create function parley._p_begin_of(hint parley._p_scan_hint, endpoint_id bigint) returns bigint
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return greatest(
    0, hint.low_position, coalesce(hint.blocked_positions[array_position(hint.blocked_endpoints, endpoint_id)], hint.resume_position)
  );
end
$$;

comment on function parley._p_begin_of(parley._p_scan_hint, bigint) is
'Gives the position before which a conversation has no messages in a lane, by a hint; 0 without a hint.';

create function parley._p_endpoints_of_group(group_id bigint, without bigint) returns bigint[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select e.endpoint_id
    from parley._p_endpoint as e
    where e.group_id = _p_endpoints_of_group.group_id and e.endpoint_id <> without
    limit 63
  );
end
$$;

comment on function parley._p_endpoints_of_group(bigint, bigint) is
'Gives the endpoints of a group but for one, of a large group some: a look passes these by without asking for each.';

-- When the next reader may look who is under way, in microseconds since 1970.
create sequence parley._p_next_probe minvalue 0 start 0;

create function parley._p_note_scan(queue_id integer, lane integer, head_position bigint, blocked bigint[], resume bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  v_old parley._p_scan_hint;
  v_new parley._p_scan_hint;
  v_probes boolean;
  v_walk bigint;
  v_sequence regclass;
  v_probe record;
  v_is_same boolean;
  v_started timestamptz := clock_timestamp();
begin
  -- An older snapshot sees less than is there: it may not tell others what to skip.
  if parley._p_keeps_snapshot() then
    return;
  end if;
  select * into v_old from parley._p_scan_hint as h where h.lane = _p_note_scan.lane order by h.lane desc, h.hint_id desc limit 1;
  v_old.low_position := coalesce(v_old.low_position, 0);
  v_old.safe_position := coalesce(v_old.safe_position, 0);
  v_old.resume_position := coalesce(v_old.resume_position, 0);
  v_old.blocked_endpoints := coalesce(v_old.blocked_endpoints, '{}');
  -- With hundreds of sessions asking the lock table takes milliseconds. A hint that is a little old costs less: so this takes a twentieth
  -- of the time, of all readers together. In between, a hint that spares every reader a long walk is made of what is known to be safe.
  v_probes := v_old.probe_senders is null or coalesce(pg_sequence_last_value('parley._p_next_probe'), 0) <= extract(epoch from v_started) * 1000000;
  v_walk := case
    when cardinality(blocked) > 0 then resume - greatest(v_old.low_position, v_old.resume_position)
    else least(head_position, v_old.safe_position) - v_old.low_position
  end;
  if not v_probes and v_walk < 262144 then
    return;
  end if;
  v_new.low_position := v_old.low_position;
  v_new.safe_position := greatest(v_old.safe_position, resume);
  if head_position - v_old.low_position > 65536 then
    -- Our own look, begun now: the first row of all, though somebody may hold its group.
    select least(m.position, v_old.safe_position) into v_new.low_position
    from parley._p_message as m
    where m.lane = _p_note_scan.lane
      and m.position >= v_old.low_position
      and (m.endpoint_id < 0 or exists (select from parley._p_endpoint as e where e.endpoint_id = m.endpoint_id and e.state <> 'DO'))
    order by m.position
    limit 1;
    v_new.low_position := greatest(v_old.low_position, v_new.low_position);
  end if;
  v_new.blocked_endpoints := '{}';
  v_new.blocked_positions := '{}';
  v_new.resume_position := 0;
  if cardinality(blocked) > 0 and resume - v_new.low_position >= 65536 then
    -- A few rows, such as readers side by side have locked all the time, are passed by faster than a hint about them is read: only what
    -- begins long before the head is named, and the next look begins with the first of the rest.
    select array_agg(b.endpoint_id) filter (where b.is_far), array_agg(b.position) filter (where b.is_far),
      least(resume, min(b.position) filter (where not b.is_far))
    into v_new.blocked_endpoints, v_new.blocked_positions, v_new.resume_position
    from (
      select s.endpoint_id, n.position, n.position <= resume - 65536 as is_far
      from (select distinct u.endpoint_id from unnest(blocked || v_old.blocked_endpoints) as u (endpoint_id)) as s
      left join parley._p_set_aside as a using (endpoint_id)
      cross join lateral (
        select m.position, m.lane
        from parley._p_message as m
        where m.endpoint_id = s.endpoint_id and m.position >= greatest(parley._p_begin_of(v_old, s.endpoint_id), a.moved_position)
        order by m.position
        limit 1
      ) as n
      where n.lane = _p_note_scan.lane
    ) as b;
    if v_new.blocked_endpoints is null or cardinality(v_new.blocked_endpoints) > 64 then
      v_new.blocked_endpoints := '{}';
      v_new.blocked_positions := '{}';
      v_new.resume_position := 0;
    end if;
  end if;
  v_is_same := v_new.low_position - v_old.low_position < 65536
    and v_new.resume_position - v_old.resume_position < 65536
    and (cardinality(v_new.blocked_endpoints) = 0) = (cardinality(v_old.blocked_endpoints) = 0);
  if v_is_same and (head_position - v_old.safe_position < 65536 or not v_probes) then
    return;
  end if;
  v_new.probe_position := v_old.probe_position;
  v_new.probe_senders := v_old.probe_senders;
  if v_probes then
    -- The lanes of destinations have one sequence for all.
    v_sequence := coalesce(
      (select q.position_sequence from parley._p_queue as q where q.queue_id = _p_note_scan.queue_id), 'parley._p_transmission_position'
    );
    select p.position, p.senders into v_probe from parley._p_probe(v_sequence) as p;
    -- A prepared transaction that has outlived a restart (-1/xid) may be any of the old ones.
    if v_old.probe_senders is null or not (v_old.probe_senders && v_probe.senders or v_probe.senders::text like '%-1/%') then
      v_new.safe_position := greatest(v_new.safe_position, coalesce(v_old.probe_position, 0));
      v_new.probe_position := v_probe.position;
      v_new.probe_senders := v_probe.senders;
    end if;
    if cardinality(v_new.probe_senders) = 0 then
      v_new.safe_position := greatest(v_new.safe_position, v_new.probe_position);
    end if;
    perform setval('parley._p_next_probe', (extract(epoch from clock_timestamp() + 20 * (clock_timestamp() - v_started)) * 1000000)::bigint);
    if v_is_same and v_new.probe_position = v_old.probe_position then
      return;
    end if;
  end if;
  insert into parley._p_scan_hint (
    lane, low_position, safe_position, probe_position, probe_senders, blocked_endpoints, blocked_positions, resume_position
  )
  values (
    lane, v_new.low_position, v_new.safe_position, v_new.probe_position, v_new.probe_senders, v_new.blocked_endpoints,
    v_new.blocked_positions, v_new.resume_position
  );
  if v_old.hint_id % 64 = 0 then
    -- Somebody else may be at it, and may wait for a group that we hold: leave him his.
    delete from parley._p_scan_hint as h
    where h.lane = _p_note_scan.lane
      and h.hint_id in (
        select o.hint_id
        from parley._p_scan_hint as o
        where o.lane = _p_note_scan.lane and o.hint_id < v_old.hint_id
        for update skip locked
      );
  end if;
end
$$;

comment on function parley._p_note_scan(integer, integer, bigint, bigint[], bigint) is
'Tells the readers after this one where to begin to look.
Arguments: queue_id, lane; head_position, of the first message found in a group that was free; blocked, the endpoints whose groups were found locked before it;
resume, up to where only they have messages, and no further than was safe when the look began.';

create function parley._p_renew_hint(queue_id integer, lane integer, head_position bigint, hint parley._p_scan_hint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  v_resume bigint := 0;
begin
  if cardinality(hint.blocked_endpoints) > 0 then
    -- The first row of all the others, though somebody may hold its group. Without one before the head all of that belongs to the blocked ones; what
    -- the hint says already stays true.
    v_resume := greatest(
      hint.resume_position,
      least(
        hint.safe_position, head_position, (
          select m.position
          from parley._p_message as m
          where m.lane = _p_renew_hint.lane and m.position >= hint.resume_position and m.position < head_position
            and m.endpoint_id <> all (hint.blocked_endpoints)
          order by m.position
          limit 1
        )
      )
    );
  end if;
  perform parley._p_note_scan(queue_id, lane, head_position, coalesce(hint.blocked_endpoints, '{}'), v_resume);
end
$$;

comment on function parley._p_renew_hint(integer, integer, bigint, parley._p_scan_hint) is
'Tells the readers after this one that they need not begin where a hint says any more.
Arguments: queue_id; lane; head_position, of the first message found in a group that was free, beginning where the hint says; hint, which was read before
that look.';

create function parley._p_probe(position_sequence regclass, out "position" bigint, out senders text[])
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  -- The position first, then who is under way: the other way round would miss a sender between the two.
  position := (coalesce(parley._p_last_position(position_sequence), 0) + 1) * 1024;
  senders := (
    select coalesce(array_agg(l.virtualtransaction), '{}')
    from pg_locks as l
    where l.locktype = 'relation'
      and l.relation = position_sequence
      and l.database = (select d.oid from pg_database as d where d.datname = current_database())
      and l.mode = 'RowExclusiveLock'
      and l.granted
      and l.pid is distinct from pg_backend_pid()
  );
end
$$;

comment on function parley._p_probe(regclass) is
'Gives a position behind all that have been drawn from a queue''s sequence, and the transactions that have drawn one and not ended yet, prepared ones
included; not our own. When none of these is left, a look that begins then sees all that will ever be before that position.
A prepared transaction that has outlived a restart of the server is named anew, -1/xid.';

-- sql/240_receive.sql

-- RECEIVE: the other hot path.
--
-- 1. Look at the first rows of the lane and lock the first group that is free, in one statement (skip locked).
-- 2. With the lock held, a new statement sees all that earlier holders did: is the conversation still in this group, how far has it
--    been received, what is its first message? Nobody else takes from it now.
-- 3. Take: one message by its position, a frame by its own, or many rows that were sent one by one.
-- A group is locked by its row, which nobody updates, so step 1 may run on a snapshot that is already old: then step 2 finds
-- nothing, or a message in front of the one that step 1 found: senders may have committed since, and a group that was locked when we passed
-- its first message may be free when we come to its second. Therefore steps 2 and 3 begin where the hint says, before which nothing is left but
-- of conversations that it names as blocked (keeps S4, S19); those are tried first, in a statement of their own. Where a look can end is said
-- as well: an index scan reads all of a page that is in bounds, for one row.
-- Whatever is unusual (several conversations in the group, an Error or a timer message, retention, other priorities, a named or blocked
-- conversation) goes through 241_receive_group.sql.
-- No bitmap scans (nor sorts, in 230_find_group.sql): where the planner expects few rows in a lane, for want of better statistics, it would read
-- all that waits there to sort it.
--
-- Cost of a call: what starting a statement costs, five times, six beside a blocked conversation; see docs/performance.md. Several small ones are
-- cheaper here than few large ones, and their plans have no second choice that stale statistics could tempt the planner to.

create type parley.received_message as (
  status smallint,
  priority smallint,
  queuing_order bigint,
  conversation_group_id uuid,
  conversation_handle uuid,
  message_sequence_number bigint,
  service_name text,
  service_id integer,
  service_contract_name text,
  service_contract_id integer,
  message_type_name text,
  message_type_id integer,
  validation text,
  message_body bytea,
  message_enqueue_time timestamptz,
  message_id uuid,
  trace_context text
);

comment on type parley.received_message is 'A message as RECEIVE and the view of a queue show it (spec 4.3).';

create function parley.receive(
  queue text,
  top integer default null,
  conversation_handle uuid default null,
  conversation_group_id uuid default null,
  timeout integer default null,
  caller parley.caller default parley.current_caller()
) returns setof parley.received_message
language plpgsql security definer rows 100
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_look record;
  v_queue parley._p_queue;
  v_rollbacks bigint;
  v_is_poisoned boolean := false;
  v_low bigint;
  v_hint parley._p_scan_hint;
  v_is_blocked boolean;
  v_lane integer;
  v_first bigint;
  v_bound bigint;
  v_position bigint;
  v_endpoint_id bigint;
  v_group_id bigint;
  v_conversation_group_id uuid;
  v_endpoint parley._p_endpoint;
  v_message parley._p_message;
  v_counted bigint;
  v_type_name text;
  v_validation text;
  v_size integer;
  v_sequence bigint;
  v_left integer := coalesce(top, 2147483647);
  v_count integer;
  v_look_past boolean := false;
  v_looked timestamptz;
  v_started timestamptz;
  v_sent timestamptz;
  v_seen timestamptz;
  v_lost integer := 0;
  v_last bigint;
begin
  loop
    -- A column of its own costs more than a whole row.
    select
      q as queue,
      (
        select h
        from parley._p_scan_hint as h
        where h.lane = q.queue_id * 16 + 6
        order by h.lane desc, h.hint_id desc
        limit 1
      ) as hint
    into v_look
    from parley._p_queue as q
    where q.lookup_name = queue;
    if not found then
      queue := (parley._p_find_queue(queue)).lookup_name;
      continue;
    end if;
    v_queue := v_look.queue;
    v_hint := v_look.hint;
    v_low := coalesce(v_hint.low_position, 0);
    v_is_blocked := cardinality(v_hint.blocked_endpoints) > 0;
    if pg_has_role(v_caller, v_queue.owner, 'usage') is not true then
      perform parley._p_require_permission(v_caller, 'RECEIVE', 'queue', v_queue.queue_id, v_queue.lookup_name, v_queue.owner);
    end if;
    if v_queue.is_poison_message_handling_enabled and v_queue.poison_action = 'DISABLE_QUEUE' then
      v_rollbacks := coalesce(pg_sequence_last_value(v_queue.rollback_sequence), 0);
      v_is_poisoned := greatest(v_rollbacks & 15, v_rollbacks >> 31 & 15) >= v_queue.rollbacks_before_disable;
    end if;
    if v_is_poisoned or not v_queue.is_receive_enabled then
      perform parley._p_raise_disabled(v_queue.queue_id);
    end if;
    if coalesce(pg_sequence_last_value('parley._p_next_alarm'), 0) <= extract(epoch from clock_timestamp()) * 1000000 then
      perform parley._p_fire_alarms(v_queue.queue_id, 8);
    end if;
    if top < 1 then
      return;
    end if;
    -- Read before we look: a sender that draws its position after this makes us look again while we wait.
    if timeout <> 0 then
      v_looked := clock_timestamp();
      v_last := parley._p_last_position(v_queue.position_sequence);
    end if;

    if v_is_blocked and v_queue.priorities = 32 and not v_queue.is_retention_enabled and not v_look_past
      and conversation_handle is null and conversation_group_id is null then
      -- Groups that were locked when somebody passed them by come first when their holders have let go; they are not looked for otherwise.
      perform
      from unnest(v_hint.blocked_endpoints, v_hint.blocked_positions) as b (endpoint_id, position)
      join parley._p_endpoint as e
        on e.endpoint_id = b.endpoint_id and e.state <> 'DO' and (e.is_plain or not parley._p_is_set_aside(e.endpoint_id))
      cross join lateral (
        select n.position, n.lane
        from parley._p_message as n
        where n.endpoint_id = e.endpoint_id and n.position >= greatest(b.position, v_hint.low_position) and n.position < v_hint.resume_position
        order by n.position
        limit 1
      ) as m
      join parley._p_conversation_group as g on g.group_id = e.group_id
      where m.lane = v_hint.lane
      order by m.position
      limit 1
      for update of g skip locked;
      v_look_past := found;
      if not found then
        v_low := greatest(v_low, v_hint.resume_position);
      end if;
    end if;

    if v_queue.priorities <> 32 or v_queue.is_retention_enabled or v_look_past
      or conversation_handle is not null or conversation_group_id is not null then
      v_look_past := false;
      return query
      select * from parley._p_receive_group(v_queue.queue_id, top, receive.conversation_handle, receive.conversation_group_id);
      if found then
        return;
      end if;
    else
      v_lane := v_queue.queue_id * 16 + 6;
      -- What the index has on a page is all read, unless it is out of bounds: two hundred positions past the hint the first one has nearly always been.
      v_first := v_low;
      v_bound := v_low + 204800;
      for v_try in 1 .. 2 loop
        select m.position, e.endpoint_id, e.group_id, g.conversation_group_id
        into v_position, v_endpoint_id, v_group_id, v_conversation_group_id
        from (
          select n.position, n.endpoint_id
          from parley._p_message as n
          where n.lane = v_lane and n.position >= v_first and n.position < v_bound
          order by n.position
          limit 32
        ) as m
        join parley._p_endpoint as e on e.endpoint_id = m.endpoint_id and e.state <> 'DO'
        join parley._p_conversation_group as g on g.group_id = e.group_id
        order by m.position
        limit 1
        for update of g skip locked;
        exit when found or v_try = 2;
        -- Readers of many messages at a time leave gaps of thousands of rows: walk through it once.
        select m.position into v_first from parley._p_message as m where m.lane = v_lane and m.position >= v_first order by m.position limit 1;
        exit when v_first is null or v_first < v_bound;
        v_bound := v_first + 204800;
      end loop;
      if v_position is null then
        -- All that the look saw is locked. If nothing is there there is nothing to search.
        if v_first is not null then
          return query select * from parley._p_receive_group(v_queue.queue_id, top, null, null);
          if found then
            return;
          end if;
        end if;
      else
        -- The hint is 64 rows old: renew it, but not all readers at once.
        if v_position - v_low > 65536 and (v_position - v_low > 262144 or (v_position >> 10) % 16 = pg_backend_pid() % 16) then
          perform parley._p_renew_hint(v_queue.queue_id, v_lane, v_position, v_hint);
        end if;
        select e as endpoint, m.message, m.came_back,
          coalesce(
            (select p.sequence from parley._p_receive_progress as p where p.endpoint_id = e.endpoint_id order by p.sequence desc limit 1),
            0
          ) as sequence
        into v_look
        from parley._p_endpoint as e
        cross join lateral (
          select n as message, n.xmax <> '0' as came_back
          from parley._p_message as n
          where n.endpoint_id = e.endpoint_id and n.position >= v_low and n.position < v_bound
          order by n.position
          limit 1
        ) as m
        where e.endpoint_id = v_endpoint_id and e.group_id = v_group_id and e.state <> 'DO';
        continue when not found;
        v_endpoint := v_look.endpoint;
        v_message := v_look.message;
        v_sequence := v_look.sequence;
        if not v_endpoint.is_plain or v_message.message_type_id in (1, 5) or v_is_blocked and v_endpoint_id = any (v_hint.blocked_endpoints) then
          return query select * from parley._p_receive_group(v_queue.queue_id, top, null, v_conversation_group_id);
          if found then
            return;
          end if;
          -- It is set aside, and more of it may stand in front of the others.
          v_look_past := true;
          continue;
        end if;
        -- ALTER SERVICE may have given its messages to another queue between the look and the lock.
        continue when v_message.lane <> v_lane;
        if v_look.came_back and v_counted is distinct from v_message.position then
          -- Counting may have waited for another reader's, or have set the conversation aside, so look again.
          if parley._p_count_rollback(v_queue.queue_id, v_endpoint_id, v_message.position) is null then
            return;
          end if;
          v_counted := v_message.position;
          continue;
        end if;
        loop
          v_size := cardinality(v_message.frame);
          if v_message.message_type_id = v_endpoint.usual_message_type_id then
            v_type_name := v_endpoint.usual_message_type_name;
            v_validation := 'N';
          else
            select t.name, t.validation into v_type_name, v_validation
            from parley._p_message_type as t
            where t.message_type_id = v_message.message_type_id;
          end if;
          if v_size is null and v_left > 1 then
            -- All that were sent one by one, up to the first frame. An Error or a timer message may have come since we looked: it is for the
            -- next RECEIVE, which will see that the conversation is not plain any more.
            return query
            delete from parley._p_message as m
            using (
              select o.row_id, o.number
              from (
                select k.ctid as row_id,
                  row_number() over (order by k.position rows unbounded preceding) as number,
                  count(k.frame) over (order by k.position rows unbounded preceding) as frames
                from (
                  select n.ctid, n.position, n.frame
                  from parley._p_message as n
                  where n.endpoint_id = v_endpoint_id and n.position >= v_low and n.message_type_id not in (1, 5)
                  order by n.position
                  limit v_left
                ) as k
              ) as o
              where o.frames = 0
            ) as p
            where m.ctid = p.row_id
            returning
              0::smallint, v_endpoint.priority, m.position, v_conversation_group_id, v_endpoint.conversation_handle, v_sequence + p.number - 1,
              v_endpoint.service_name, v_endpoint.service_id, v_endpoint.service_contract_name, v_endpoint.service_contract_id,
              case
                when m.message_type_id = v_message.message_type_id then v_type_name
                else (select t.name from parley._p_message_type as t where t.message_type_id = m.message_type_id)
              end,
              m.message_type_id,
              case
                when m.message_type_id = v_message.message_type_id then v_validation
                else (select t.validation::text from parley._p_message_type as t where t.message_type_id = m.message_type_id)
              end,
              m.body, m.enqueued_at, null::uuid, m.trace_context;
            get diagnostics v_count = row_count;
          elsif v_size <= v_left / 8 then
            -- Many frames, and what stands between them, as far as whole rows go; a few are cheaper one by one.
            return query
            with gone as (
              delete from parley._p_message as m
              using (
                select o.row_id, o.before
                from (
                  select k.row_id, k.size, sum(k.size) over (order by k.position rows unbounded preceding) - k.size as before
                  from (
                    select n.ctid as row_id, n.position, coalesce(cardinality(n.frame), 1) as size
                    from parley._p_message as n
                    where n.endpoint_id = v_endpoint_id and n.position >= v_low and n.message_type_id not in (1, 5)
                    order by n.position
                    limit v_left::bigint / v_size + 1
                  ) as k
                ) as o
                where o.before + o.size <= v_left
              ) as p
              where m.ctid = p.row_id
              returning m.position, m.message_type_id, m.enqueued_at, coalesce(m.frame, array[m.body]) as frame, m.trace_context, p.before
            ), opened as (
              select g.position, g.message_type_id, g.enqueued_at, g.trace_context, g.before,
                unnest(g.frame) as body, generate_series(0, cardinality(g.frame) - 1) as ordinal
              from gone as g
            )
            select
              0::smallint, v_endpoint.priority, p.position + p.ordinal, v_conversation_group_id, v_endpoint.conversation_handle,
              v_sequence + p.before + p.ordinal, v_endpoint.service_name, v_endpoint.service_id, v_endpoint.service_contract_name,
              v_endpoint.service_contract_id,
              case
                when p.message_type_id = v_message.message_type_id then v_type_name
                else (select t.name from parley._p_message_type as t where t.message_type_id = p.message_type_id)
              end,
              p.message_type_id,
              case
                when p.message_type_id = v_message.message_type_id then v_validation
                else (select t.validation::text from parley._p_message_type as t where t.message_type_id = p.message_type_id)
              end,
              p.body, p.enqueued_at, null::uuid, p.trace_context
            from opened as p;
            get diagnostics v_count = row_count;
          else
            v_count := 0;
            delete from parley._p_message as m where m.endpoint_id = v_endpoint_id and m.position = v_message.position;
            -- Nobody takes from a group that we hold, but for a reader at REPEATABLE READ that saw the conversation in a group it has
            -- left since (keeps S3).
            if found and v_size is null then
              return next row(
                0, v_endpoint.priority, v_message.position, v_conversation_group_id, v_endpoint.conversation_handle, v_sequence,
                v_endpoint.service_name, v_endpoint.service_id, v_endpoint.service_contract_name, v_endpoint.service_contract_id,
                v_type_name, v_message.message_type_id, v_validation, v_message.body, v_message.enqueued_at, null, v_message.trace_context
              )::parley.received_message;
              v_count := 1;
            elsif found then
              v_count := least(v_size, v_left);
              return query
              select
                0::smallint, v_endpoint.priority, v_message.position + f.number - 1, v_conversation_group_id, v_endpoint.conversation_handle,
                v_sequence + f.number - 1, v_endpoint.service_name, v_endpoint.service_id, v_endpoint.service_contract_name,
                v_endpoint.service_contract_id, v_type_name, v_message.message_type_id, v_validation, f.body, v_message.enqueued_at,
                null::uuid, v_message.trace_context
              from (select unnest(v_message.frame[:v_count]) as body, generate_series(1, v_count) as number) as f;
              if v_count < v_size then
                -- What is left of a frame goes back in pieces no larger than this reader may take: the next one like it takes whole rows.
                insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body, frame, trace_context)
                select v_message.position + f.first - 1, v_endpoint_id, v_message.enqueued_at, v_lane, v_message.message_type_id,
                  case when top = 1 then v_message.frame[f.first] end,
                  case when top > 1 then v_message.frame[f.first : f.first + top - 1] end, v_message.trace_context
                from generate_series(v_count + 1, v_size, top) as f (first);
              end if;
            end if;
          end if;
          v_left := v_left - v_count;
          v_sequence := v_sequence + v_count;
          exit when v_left = 0;
          select n as message
          into v_look
          from parley._p_message as n
          where n.endpoint_id = v_endpoint_id and n.position >= v_low and n.message_type_id not in (1, 5)
          order by n.position
          limit 1;
          exit when not found;
          v_message := v_look.message;
        end loop;
        insert into parley._p_receive_progress (endpoint_id, sequence) values (v_endpoint_id, v_sequence);
        v_count := greatest(coalesce(top, 2147483647) - v_left, 1);
        if v_sequence / v_count / 32 <> (v_sequence - v_count) / v_count / 32 then
          perform parley._p_forget_progress(v_endpoint_id, v_sequence, v_count);
        end if;
        return;
      end if;
    end if;
    exit when coalesce(timeout, 0) = 0;
    v_started := coalesce(v_started, clock_timestamp());
    v_lost := v_lost + case when v_sent > v_seen then 1 else 0 end;
    v_seen := coalesce(v_sent, v_started);
    v_sent := parley._p_wait_for_message(v_queue.position_sequence, v_last, v_seen, v_looked, v_started, timeout, v_lost);
    exit when v_sent is null;
  end loop;
end
$$;

comment on function parley.receive(text, integer, uuid, uuid, integer, parley.caller) is
'Receives messages: removes them from the queue, in this transaction, and locks their conversation group to its end.
All messages come from one group, conversation by conversation; the group is the first, by priority and arrival, that nobody else has locked.
Arguments: queue, its name; top, at most so many messages (null: all of the group); conversation_handle or conversation_group_id, receive only from that one,
waiting for its lock; timeout in milliseconds to wait for a message (null or 0: do not wait, -1: for ever).
Errors: 208 no such queue, 229 not allowed, 8426 and 8436 conversation or group not found in this queue, 9609 malformed name, 9617 the queue is disabled.
Call it at READ COMMITTED: an older snapshot does not see what came later, and never waits.
Source: spec 4.3.';

-- sql/241_receive_group.sql

-- RECEIVE in the cases that are not plain: a group of several conversations, Error and timer messages, retention, other priorities,
-- locked groups at the head of the queue, a named conversation or group.
--
-- Order (spec 3.4, 4.3): conversation by conversation, by priority and then by their first message; inside one, DialogTimer first,
-- then Error, then the rest in sequence.

create function parley._p_receive_group(queue_id integer, top integer, conversation_handle uuid, conversation_group_id uuid)
returns setof parley.received_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
  v_group_id bigint;
  v_left integer := top;
  v_endpoint record;
  v_count integer;
  v_is_aside boolean;
begin
  select * into v_queue from parley._p_queue as q where q.queue_id = _p_receive_group.queue_id;
  loop
    if conversation_handle is not null then
      v_group_id := parley._p_lock_group_of_handle(queue_id, conversation_handle);
    elsif conversation_group_id is not null then
      v_group_id := parley._p_lock_named_group(queue_id, conversation_group_id);
    else
      v_group_id := (parley._p_lock_next_group(queue_id, v_queue.priorities)).group_id;
      if v_group_id is null then
        return;
      end if;
    end if;
    v_is_aside := false;
    v_count := 0;
    for v_endpoint in
      select e.endpoint_id, e.is_plain, m.position, m.came_back, coalesce((h.hint).safe_position, 0) as safe_position
      from parley._p_endpoint as e
      left join lateral (
        select s as hint
        from parley._p_scan_hint as s
        where s.lane = parley._p_lane(v_queue.queue_id, e.priority)
        order by s.lane desc, s.hint_id desc
        limit 1
      ) as h on true
      cross join lateral (
        select n.position, n.lane, n.xmax::text <> '0' as came_back
        from parley._p_message as n
        where n.endpoint_id = e.endpoint_id and n.position >= parley._p_begin_of(h.hint, e.endpoint_id)
        order by n.position
        limit 1
      ) as m
      where e.group_id = v_group_id
        and e.state <> 'DO'
        -- MOVE may have put conversations of two services into the group, and ALTER SERVICE one of these into another queue.
        and m.lane = parley._p_lane(v_queue.queue_id, e.priority)
        and (_p_receive_group.conversation_handle is null or e.conversation_handle = _p_receive_group.conversation_handle)
        and (e.is_plain or not parley._p_is_set_aside(e.endpoint_id))
      order by e.priority desc, m.position
    loop
      exit when v_left <= 0;
      if v_endpoint.came_back then
        v_is_aside := parley._p_count_rollback(queue_id, v_endpoint.endpoint_id, v_endpoint.position);
        if v_is_aside is null then
          return;
        end if;
        continue when v_is_aside;
      end if;
      -- Senders that have committed since we looked may have filled places in front of the first message we saw (keeps S4).
      return query
      select * from parley._p_take(v_queue, v_endpoint.endpoint_id, least(v_endpoint.position, v_endpoint.safe_position), v_left);
      get diagnostics v_count = row_count;
      v_left := v_left - v_count;
    end loop;
    -- All that the group had may have been set aside just now. Another group may have something.
    exit when v_count > 0 or conversation_handle is not null or conversation_group_id is not null or not v_is_aside;
  end loop;
end
$$;

comment on function parley._p_receive_group(integer, integer, uuid, uuid) is
'Receives from the next group of a queue, from a named group, or from a named conversation.
Errors: 8426, 8436, 9617.';

create function parley._p_lock_group_of_handle(queue_id integer, handle uuid) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint := parley._p_find_endpoint(handle);
  v_queue_id integer;
begin
  loop
    select s.queue_id into v_queue_id from parley._p_service as s where s.service_id = v_endpoint.service_id;
    if v_queue_id <> queue_id then
      perform parley._p_raise(
        8426,
        format('conversation handle "%s" is not of this queue', handle),
        format('Its service is "%s".', v_endpoint.service_name),
        'Receive from the queue of that service: see parley.service_queue_usages.'
      );
    end if;
    perform from parley._p_conversation_group as g where g.group_id = v_endpoint.group_id for update;
    -- It may have moved to another group, or ended, while we waited.
    exit when exists (
      select from parley._p_endpoint as e where e.endpoint_id = v_endpoint.endpoint_id and e.group_id = v_endpoint.group_id
    );
    v_endpoint := parley._p_find_endpoint(handle);
  end loop;
  return v_endpoint.group_id;
end
$$;

comment on function parley._p_lock_group_of_handle(integer, uuid) is
'Locks the group of a conversation, waiting for its holder.
Errors: 8418, 8426 not found or not of this queue.';

create function parley._p_lock_named_group(queue_id integer, conversation_group_id uuid) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group parley._p_conversation_group := parley._p_lock_group(conversation_group_id);
begin
  perform
  from parley._p_service as s
  where s.queue_id = _p_lock_named_group.queue_id
    and (
      s.service_id = v_group.service_id
      or exists (select from parley._p_endpoint as e where e.group_id = v_group.group_id and e.service_id = s.service_id)
    );
  if not found then
    perform parley._p_raise(
      8436,
      format('conversation group "%s" not found in this queue', conversation_group_id),
      null,
      'See parley.conversation_groups; a group goes with its last conversation.'
    );
  end if;
  return v_group.group_id;
end
$$;

comment on function parley._p_lock_named_group(integer, uuid) is
'Locks a group, waiting for its holder.
Errors: 8436 not found or not of this queue.';

create function parley._p_messages_in_order(endpoint parley._p_endpoint, from_position bigint, rows_max integer)
returns setof parley._p_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not endpoint.is_plain and exists (select from parley._p_expedited as x where x.endpoint_id = endpoint.endpoint_id) then
    return query
    select m.*
    from parley._p_message as m
    where m.endpoint_id = endpoint.endpoint_id and m.position >= from_position
    order by case m.message_type_id when 5 then 0 when 1 then 1 else 2 end, m.position
    limit rows_max;
  else
    return query
    select m.*
    from parley._p_message as m
    where m.endpoint_id = endpoint.endpoint_id and m.position >= from_position
    order by m.position
    limit rows_max;
  end if;
end
$$;

comment on function parley._p_messages_in_order(parley._p_endpoint, bigint, integer) is
'Gives the first rows of a conversation in the order in which they are received: DialogTimer, Error, the rest by position.
Arguments: endpoint; from_position, before which nothing waits; rows_max, each a message or a frame, null for all.';

create function parley._p_take(queue parley._p_queue, endpoint_id bigint, from_position bigint, top integer)
returns setof parley.received_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
  v_sequence bigint;
  v_started bigint;
  v_message record;
  v_row parley.received_message;
  v_taken integer;
  v_left integer := top;
  v_rows integer := 16;
  v_asked integer;
  v_seen integer;
  v_lane integer;
  v_expedited bigint[];
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_take.endpoint_id;
  v_lane := parley._p_lane(queue.queue_id, v_endpoint.priority);
  select p.sequence into v_sequence
  from parley._p_receive_progress as p where p.endpoint_id = v_endpoint.endpoint_id order by p.sequence desc limit 1;
  v_sequence := coalesce(v_sequence, 0);
  v_started := v_sequence;
  v_row.status := 0;
  v_row.priority := v_endpoint.priority;
  v_row.conversation_handle := v_endpoint.conversation_handle;
  v_row.service_name := v_endpoint.service_name;
  v_row.service_id := v_endpoint.service_id;
  v_row.service_contract_name := v_endpoint.service_contract_name;
  v_row.service_contract_id := v_endpoint.service_contract_id;
  select g.conversation_group_id into v_row.conversation_group_id from parley._p_conversation_group as g where g.group_id = v_endpoint.group_id;
  if not v_endpoint.is_plain then
    v_expedited := array(select x.expedited_id from parley._p_expedited as x where x.endpoint_id = v_endpoint.endpoint_id);
  end if;
  loop
    -- A row may be a frame of many messages: nobody wants to read a hundred of them to take the first. Each portion begins in front again, where a
    -- sender may have committed meanwhile (keeps S4).
    v_asked := least(v_left, v_rows);
    v_seen := 0;
    for v_message in
      select m.position, m.message_type_id, m.enqueued_at, m.body, m.frame, m.trace_context, t.name, t.validation
      from parley._p_messages_in_order(v_endpoint, from_position, v_asked) with ordinality as m
      join parley._p_message_type as t using (message_type_id)
      order by m.ordinality
    loop
      exit when v_left <= 0;
      v_seen := v_seen + 1;
      if v_message.message_type_id in (1, 5) then
        delete from parley._p_expedited as x where x.expedited_id = v_expedited[1];
        v_expedited := v_expedited[2:];
      elsif cardinality(v_expedited) > 0 then
        -- Those are all received that had arrived when we began.
        delete from parley._p_expedited as x where x.expedited_id = any (v_expedited);
        v_expedited := '{}';
      end if;
      delete from parley._p_message as m where m.endpoint_id = v_endpoint.endpoint_id and m.position = v_message.position;
      -- Nobody takes from a group that we hold, but for a reader at REPEATABLE READ that saw the conversation in a group it has left
      -- since (keeps S3).
      continue when not found;
      v_taken := least(coalesce(cardinality(v_message.frame), 1), coalesce(v_left, 2147483647));
      v_row.message_type_id := v_message.message_type_id;
      v_row.message_type_name := v_message.name;
      v_row.validation := v_message.validation;
      v_row.message_enqueue_time := v_message.enqueued_at;
      v_row.trace_context := v_message.trace_context;
      for i in 1 .. v_taken loop
        v_row.queuing_order := v_message.position + i - 1;
        v_row.message_body := case when v_message.frame is null then v_message.body else v_message.frame[i] end;
        -- Timer messages and Errors stand outside the sequence.
        v_row.message_sequence_number := case when v_message.message_type_id in (1, 5) then -1 else v_sequence end;
        if v_message.message_type_id not in (1, 5) then
          v_sequence := v_sequence + 1;
        end if;
        if queue.is_retention_enabled then
          insert into parley._p_retained (
            queue_id, endpoint_id, status, position, message_sequence_number, message_type_id, enqueued_at, body, trace_context
          )
          values (
            queue.queue_id, v_endpoint.endpoint_id, 0, v_row.queuing_order, v_row.message_sequence_number, v_row.message_type_id,
            v_row.message_enqueue_time, v_row.message_body, v_row.trace_context
          );
        end if;
        return next v_row;
      end loop;
      if v_taken < cardinality(v_message.frame) then
        insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body, frame, trace_context)
        select v_message.position + f.first - 1, v_endpoint.endpoint_id, v_message.enqueued_at, v_lane, v_message.message_type_id,
          case when top = 1 then v_message.frame[f.first] end,
          case when top > 1 then v_message.frame[f.first : f.first + top - 1] end, v_message.trace_context
        from generate_series(v_taken + 1, cardinality(v_message.frame), top) as f (first);
      end if;
      v_left := v_left - v_taken;
    end loop;
    exit when v_left <= 0 or v_seen < v_asked;
    v_rows := v_rows * 4;
  end loop;
  if v_sequence = v_started then
    -- Timer messages alone move nothing on, and one row is enough.
    delete from parley._p_receive_progress as p where p.endpoint_id = v_endpoint.endpoint_id and p.sequence = v_sequence;
  end if;
  insert into parley._p_receive_progress (endpoint_id, sequence) values (v_endpoint.endpoint_id, v_sequence);
  v_taken := greatest(v_sequence - v_started, 1);
  if v_sequence / v_taken / 32 <> v_started / v_taken / 32 then
    perform parley._p_forget_progress(v_endpoint.endpoint_id, v_sequence, v_taken);
  end if;
end
$$;

comment on function parley._p_take(parley._p_queue, bigint, bigint, integer) is
'Takes the messages of one conversation whose group is locked, keeping copies when the queue has retention.';

-- sql/242_client_checks.sql

-- Whether the client is still there while RECEIVE and GET CONVERSATION GROUP wait for it.
--
-- In autocommit a RECEIVE commits before its client has the messages. A client that is killed while it waits must therefore be noticed before
-- a message is taken. PostgreSQL looks at the connection every client_connection_check_interval, but it starts that timer at the beginning
-- of a statement only: what a function sets, in its body or in its SET clause, comes too late for the statement that calls it (seen on 14
-- to 18). There is nothing else that a function could ask. So the interval is set where the statement finds it when it begins:
--   for the database, when the schema is installed by a role that may, and nobody has set it: new sessions have it from the first statement on
--   for the session, by its first wait, where the database has none: a schema that was restored or whose owner does not own the database
-- What an administrator has set, in the configuration or for the database, stays. A check is one poll() of the socket.

create function parley._p_check_client() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('client_connection_check_interval', '100ms', false);
exception
  -- Some systems cannot tell: PostgreSQL 14 outside Linux, and any on Windows.
  when invalid_parameter_value then
    null;
end
$$;

comment on function parley._p_check_client() is
'Lets the following statements of this session notice within 100 milliseconds that their client has gone, where the system can tell.';

do $$
begin
  if current_setting('client_connection_check_interval') = '0'
    and (select pg_has_role(d.datdba, 'usage') from pg_catalog.pg_database as d where d.datname = current_database())
    and not exists (
      select
      from pg_catalog.pg_db_role_setting as s
      join pg_catalog.pg_database as d on d.oid = s.setdatabase
      where d.datname = current_database() and s.setrole = 0 and array_to_string(s.setconfig, ',') like '%client\_connection\_check\_interval=%'
    ) then
    execute format('alter database %I set client_connection_check_interval = %L', current_database(), '100ms');
  end if;
exception
  when invalid_parameter_value then
    null;
end
$$;

-- sql/242_wait_for_message.sql

-- Waiting inside RECEIVE and GET CONVERSATION GROUP.
--
-- A function cannot be notified, so it sleeps for a few milliseconds at a time and looks at the queue's sequence in between: no
-- statement, no snapshot, no lock. It sleeps for a sixteenth of the time that nothing has come, half a millisecond to ten, and 25 after some
-- seconds: a queue that is busy wakes its reader at once, and a reader that waits for nothing costs some 50 rounds a second and not 330 (on a
-- virtual machine each is 100 microseconds of the processor, most of it the kernel's).
-- Each message wakes all who wait, and one gets it. Who finds nothing after that sleeps twice as long from then on, 4 ms at most, until its RECEIVE has
-- something: so as many readers are alert as there is work for.
-- It looks at the queue itself when a sender has drawn a position, for as long as that sender may need to commit, and otherwise ten times a
-- second at first and twice a second later, for groups that were let go of; the longer a look takes the more seldom. Clients that hold a
-- connection wait better: they LISTEN (parley.listen_for_messages), and the Go package does.

create function parley._p_last_position(position_sequence regclass) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_last bigint;
begin
  execute format('select case when s.is_called then s.last_value end from %s as s', position_sequence) into v_last;
  return v_last;
end
$$;

comment on function parley._p_last_position(regclass) is
'Gives the last value of a queue''s position sequence.
Unlike pg_sequence_last_value this leaves no lock behind that looks like a sender''s.';

create function parley._p_wait_for_message(
  position_sequence regclass, last bigint, sent timestamptz, looked timestamptz, started timestamptz, timeout integer, lost integer
) returns timestamptz
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := clock_timestamp();
  -- A sender that has drawn a position commits at once as a rule; if it does not, look for its message ever more seldom.
  v_look timestamptz := v_now + least(
    greatest((v_now - sent) / 2, interval '1 ms'), greatest((v_now - sent) / 10, interval '100 ms'), interval '500 ms'
  );
  -- Where everything belongs to others, or messages come faster than they can be looked for, looking takes a third of the time at most.
  v_rested timestamptz := v_now + least(2 * (v_now - looked), interval '100 ms');
  v_until timestamptz := case when timeout < 0 then 'infinity' else started + make_interval(secs => timeout / 1000.0) end;
  v_next timestamptz := least(greatest(v_look, v_rested), v_until);
  v_least float8 := 0.0005 * (1 << least(lost, 3));
  v_quiet float8;
begin
  if parley._p_keeps_snapshot() then
    return null;
  end if;
  if current_setting('client_connection_check_interval') = '0' then
    perform parley._p_check_client();
  end if;
  loop
    if v_now >= v_until then
      return null;
    elsif pg_sequence_last_value(position_sequence) is distinct from last then
      perform pg_sleep(greatest(0.001, extract(epoch from least(v_rested, v_until) - v_now)));
      return v_now;
    elsif v_now >= v_next then
      return sent;
    end if;
    v_quiet := date_part('epoch', v_now - sent);
    perform pg_sleep(greatest(v_least, least(date_part('epoch', v_next - v_now), v_quiet / 16, greatest(v_quiet / 200, 0.01), 0.025)));
    v_now := clock_timestamp();
  end loop;
end
$$;

comment on function parley._p_wait_for_message(regclass, bigint, timestamptz, timestamptz, timestamptz, integer, integer) is
'Sleeps until it is worth looking for messages again and gives what to give as sent next time, or null when the time is over.
Arguments: position_sequence of the queue; last, its value before the last look; sent, when somebody last drew a position, or when the wait began;
looked, when that look began; started, when the wait began; timeout in milliseconds, negative for ever; lost, how often nothing was found after
somebody had drawn a position: the message was gone, or not committed yet.';

create function parley._p_raise_disabled(queue_id integer) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text := (select q.lookup_name from parley._p_queue as q where q.queue_id = _p_raise_disabled.queue_id);
begin
  perform parley._p_raise(
    9617,
    format('queue "%s" is disabled', v_name),
    'Nothing can be received from it or put into it; messages sent meanwhile wait with their senders.',
    format('Switch it on: select parley.alter_queue(%L, status => true); if a message keeps failing, end its conversation first.', v_name)
  );
end
$$;

comment on function parley._p_raise_disabled(integer) is
'Says that a queue is disabled.
Errors: 9617, always.';

-- sql/243_poison.sql

-- Poison messages: messages whose transaction always rolls back. Here they are noticed and counted; 244_set_aside.sql says what
-- becomes of their conversation, 245_poison_statements.sql how somebody brings it back.
--
-- A rollback takes everything back that the transaction wrote, so it is noticed afterwards and counted outside. Noticed: a message
-- that was taken and came back still carries the xmax of the transaction that failed, whatever ended it: an error, a deadlock, a
-- kill. Counted: in two sequences of the queue, which no rollback resets. The rollback sequence holds two entries of 31 bits, each a
-- message (27 bits of its position) and a count (4 bits); an entry whose message is gone makes room for another. The counter sequence
-- holds for each entry the last 31 bits of the transaction that counted last, and took the message then: whether that one committed
-- tells a failure from a rollback to a savepoint (spec 5.6), and what it has counted is not counted twice.
--
-- When a message has come back as often as the setting says, either its conversation is set aside, or the queue is disabled: RECEIVE
-- refuses it with 9617 until alter_queue(status => true). The count being outside, the refusal needs no commit, and setting aside happens
-- again when the transaction that did it rolls back.
--
-- Lock: an advisory lock of the session around the sequences, for a few lines.

create function parley._p_count_rollback(queue_id integer, endpoint_id bigint, "position" bigint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
  v_failed bigint;
  v_count integer;
begin
  select * into v_queue from parley._p_queue as q where q.queue_id = _p_count_rollback.queue_id;
  -- Sub-transactions have later numbers than their transaction, so all numbers are compared at their full length.
  select n.next - (n.next - m.xmax::text::bigint & 4294967295) into v_failed
  from parley._p_message as m
  cross join (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint as next) as n
  where m.endpoint_id = _p_count_rollback.endpoint_id and m.position = _p_count_rollback.position and m.xmax::text <> '0';
  if not found or not v_queue.is_poison_message_handling_enabled then
    return false;
  elsif parley._p_is_set_aside(endpoint_id) then
    return true;
  end if;
  -- Two readers that count at once must not lose one: a lock of the session, held for these few lines only and let go of whatever happens.
  begin
    perform pg_advisory_lock(1346458188, queue_id);
    v_count := parley._p_add_rollback(v_queue, (position / 1024) & 134217727, v_failed);
    perform pg_advisory_unlock(1346458188, queue_id);
  exception
    when others or query_canceled then
      perform pg_advisory_unlock(1346458188, queue_id);
      raise;
  end;
  if v_count >= v_queue.rollbacks_before_disable then
    if v_queue.poison_action = 'DISABLE_QUEUE' then
      perform parley._p_raise_disabled(queue_id);
    end if;
    return parley._p_set_aside_conversation(queue_id, endpoint_id, position, v_count);
  end if;
  -- Both entries are taken. If it is by what this very transaction has set aside, it had better end here: taking one more message that has
  -- failed before, and failing with it, would undo that and be counted nowhere, for ever.
  if v_count is null
    and v_queue.poison_action = 'SET_ASIDE'
    and exists (select from parley._p_set_aside as s where s.set_aside_by = pg_current_xact_id()) then
    return null;
  end if;
  return false;
end
$$;

comment on function parley._p_count_rollback(integer, bigint, bigint) is
'Counts that a message came back after a rollback. Call it with the group of the message locked.
Gives false: take the message; true: its conversation has just been set aside, look for another; null: take nothing more in this transaction.
Errors: 9617 when it has come back too often and the queue is to be disabled.
Source: spec 5.6.';

create function parley._p_add_rollback(queue parley._p_queue, key bigint, failed bigint) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_value bigint := coalesce(pg_sequence_last_value(queue.rollback_sequence), 0);
  v_entry bigint[] := array[v_value & 2147483647, v_value >> 31];
  v_self bigint := pg_current_xact_id()::text::bigint;
  v_slot integer := case key when v_entry[1] >> 4 then 1 when v_entry[2] >> 4 then 2 end;
  v_counter bigint[];
  v_last bigint;
  v_is_failure boolean;
begin
  v_value := coalesce(pg_sequence_last_value(queue.counter_sequence), 0);
  v_counter := array[v_value & 2147483647, v_value >> 31];
  if v_slot is not null then
    v_last := v_self - (v_self - v_counter[v_slot] & 2147483647);
    -- Before the last count: counted then. Afterwards: by the transaction that counted, or by a part of it. When that committed, or is our own, it
    -- went back to a savepoint. Its end may be too long ago to be known, or be that of another server, from which this one was restored.
    v_is_failure := failed >= v_last
      and v_last <> v_self
      and coalesce(pg_xact_status(case when v_last > 2 then v_last::text::xid8 end), 'aborted') = 'aborted';
  else
    -- Nobody has noted who took it. A number after ours is of a sub-transaction of ours.
    v_is_failure := failed < v_self;
    v_slot := case
      when not parley._p_is_waiting(queue.queue_id, v_entry[1] >> 4) then 1
      when not parley._p_is_waiting(queue.queue_id, v_entry[2] >> 4) then 2
    end;
    if v_slot is null then
      return null;
    end if;
    v_entry[v_slot] := key << 4;
  end if;
  if v_is_failure and v_entry[v_slot] & 15 < queue.rollbacks_before_disable then
    v_entry[v_slot] := v_entry[v_slot] + 1;
  end if;
  v_counter[v_slot] := v_self & 2147483647;
  perform setval(queue.rollback_sequence, v_entry[2] << 31 | v_entry[1]);
  perform setval(queue.counter_sequence, v_counter[2] << 31 | v_counter[1]);
  return v_entry[v_slot] & 15;
end
$$;

comment on function parley._p_add_rollback(parley._p_queue, bigint, bigint) is
'Counts one more rollback of a message, if it was one, and gives the count; null when there is no room to count it.
Arguments: queue; key of the message; failed, the transaction that it came back from, at its full length.';

create function parley._p_is_waiting(queue_id integer, key bigint) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select key <> 0 and (
    exists (
      select
      from parley._p_queue as q
      cross join generate_series(10, 1, -1) as p (n)
      cross join lateral (
        select (coalesce(parley._p_last_position(q.position_sequence), 0) & ~134217727::bigint) + key as number
      ) as k
      join parley._p_message as m
        on m.lane = parley._p_lane(q.queue_id, p.n)
        and m.position between k.number * 1024 and k.number * 1024 + 1023
      where q.queue_id = $1 and q.priorities & (1 << p.n) > 0
    )
    -- What this transaction has set aside may come back with it.
    or exists (
      select
      from parley._p_set_aside as s
      where s.set_aside_by = pg_current_xact_id_if_assigned() and (s.position / 1024) & 134217727 = key
    )
  )
$$;

comment on function parley._p_is_waiting(integer, bigint) is 'Tells whether the message of a rollback entry still waits in the queue.';

create function parley._p_is_poisoned(queue_id integer) returns boolean
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select q.is_poison_message_handling_enabled
      and q.poison_action = 'DISABLE_QUEUE'
      and greatest(r.count & 15, r.count >> 31 & 15) >= q.rollbacks_before_disable
    from parley._p_queue as q
    cross join lateral (select coalesce(pg_sequence_last_value(q.rollback_sequence), 0) as count) as r
    where q.queue_id = $1
  );
end
$$;

comment on function parley._p_is_poisoned(integer) is 'Tells whether poison message handling has disabled a queue.';

-- sql/244_set_aside.sql

-- Setting a conversation aside: one message that always fails must not hold up the others (spec 5.6, pains P14 and P17).
--
-- An endpoint that is set aside is not plain and has a row in _p_set_aside. RECEIVE and GET CONVERSATION GROUP pass it by, and its
-- senders notice nothing: they go on appending to the usual lane. Whoever meets its messages there puts some hundreds of
-- them into a lane of their own, where no reader looks, and then looks past what is left as if the group were locked.
-- A lane is changed, and not a position: so the order of a conversation is that of its positions at all times. To put it back, all
-- its messages get new positions at the end of the queue, in their old order, while no sender of it is under way: readers may believe
-- that nothing waits before their hints.
--
-- Invariants, and what keeps each:
--   only the holder of the group sets aside, moves and puts back   the lock of the group row
--   a message moves or is received, not both   the same
--   what a sender appends while its conversation is put back comes last   the lock FOR UPDATE of the sender's endpoint row
--   a conversation is set aside again when whoever did it rolls back   the count, which is outside
-- Locks: groups before, endpoint rows in their order. Cost: a row moved is one update; see 230_find_group.sql for looking past.

create function parley._p_aside_lane(queue_id integer) returns integer
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select queue_id * 16 + 11
$$;

comment on function parley._p_aside_lane(integer) is 'Gives the lane of a queue for messages of conversations that are set aside; readers never look there.';

create function parley._p_set_aside_conversation(queue_id integer, endpoint_id bigint, "position" bigint, rollbacks integer) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- The far side may just be ending. Then its EndDialog or Error is for the reader to see, and nobody waits here.
  perform from parley._p_endpoint as e where e.endpoint_id = _p_set_aside_conversation.endpoint_id for no key update skip locked;
  if not found then
    return false;
  end if;
  update parley._p_endpoint as e set is_plain = false where e.endpoint_id = _p_set_aside_conversation.endpoint_id and e.is_plain;
  insert into parley._p_set_aside (endpoint_id, position, moved_position, rollbacks)
  values (_p_set_aside_conversation.endpoint_id, _p_set_aside_conversation.position, 0, _p_set_aside_conversation.rollbacks);
  perform parley._p_move_aside(queue_id, endpoint_id, position, 500);
  perform setval('parley._p_poison_found', 1);
  return true;
end
$$;

comment on function parley._p_set_aside_conversation(integer, bigint, bigint, integer) is
'Sets a side of a conversation aside; its group is locked. Gives false when somebody holds its row: then not now.
Arguments: queue_id; endpoint_id; position of the message that fails; rollbacks counted.';

-- Tells, outside any transaction, that a conversation was found to be poisonous, and is perhaps not set aside for good: 1, otherwise 0.
create sequence parley._p_poison_found minvalue 0 start 0;

create function parley._p_is_set_aside(endpoint_id bigint) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (select from parley._p_set_aside as s where s.endpoint_id = _p_is_set_aside.endpoint_id);
end
$$;

comment on function parley._p_is_set_aside(bigint) is 'Tells whether a side of a conversation is set aside.';

create function parley._p_move_aside(queue_id integer, endpoint_id bigint, from_position bigint, most integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
  v_lane integer := parley._p_aside_lane(queue_id);
  v_moved integer;
  v_last bigint;
begin
  -- Along the index to the limit, and no plan that reads all of a long conversation first: so the settings above.
  with picked as (
    select n.ctid as row_id, n.position
    from parley._p_message as n
    where n.endpoint_id = _p_move_aside.endpoint_id and n.position >= from_position and n.lane <> v_lane
    order by n.position
    limit most
  ), moved as (
    update parley._p_message as m set lane = v_lane where m.ctid = any (array(select p.row_id from picked as p)) returning m.position
  )
  select count(*), max(m.position) into v_moved, v_last from moved as m;
  update parley._p_set_aside as s set moved_position = v_last + 1
  where s.endpoint_id = _p_move_aside.endpoint_id and s.moved_position <= v_last;
  return v_moved;
end
$$;

comment on function parley._p_move_aside(integer, bigint, bigint, integer) is
'Moves messages of a conversation that is set aside out of the readers'' way, and gives how many. Its group is locked.
Arguments: queue_id; endpoint_id; from_position, of the first one met; most, at most so many rows.';

create function parley._p_pass_by(queue_id integer, group_id bigint, endpoint_id bigint, "position" bigint, most integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_moved integer;
begin
  if not parley._p_is_set_aside(endpoint_id) then
    return null;
  end if;
  v_moved := parley._p_move_aside(queue_id, endpoint_id, position, most);
  -- Other conversations of the group go on.
  perform
  from parley._p_endpoint as e
  where e.group_id = _p_pass_by.group_id
    and e.endpoint_id <> _p_pass_by.endpoint_id
    and e.state <> 'DO'
    and not parley._p_is_set_aside(e.endpoint_id)
    and exists (select from parley._p_message as m where m.endpoint_id = e.endpoint_id and m.lane / 16 = _p_pass_by.queue_id);
  return case when not found then v_moved end;
end
$$;

comment on function parley._p_pass_by(integer, bigint, bigint, bigint, integer) is
'Tells whether a reader that has found and locked a group has to pass it by, because all that waits in it is set aside: gives how many
rows it has moved out of the way, and null when the group is to be received.
Arguments: queue_id; group_id; endpoint_id and position of the message found; most, at most so many rows.';

create function parley._p_put_back(queue parley._p_queue, endpoint parley._p_endpoint) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_put_back bigint;
begin
  delete from parley._p_set_aside as s where s.endpoint_id = endpoint.endpoint_id;
  delete from parley._p_failure as f where f.endpoint_id = endpoint.endpoint_id;
  update parley._p_endpoint as e
  set is_plain = true
  where e.endpoint_id = endpoint.endpoint_id
    and e.state <> 'ER'
    and not exists (select from parley._p_endpoint as o where o.group_id = e.group_id and o.endpoint_id <> e.endpoint_id)
    and not exists (select from parley._p_alarm as a where a.endpoint_id = e.endpoint_id and a.kind = 'timer')
    and not exists (select from parley._p_message as m where m.endpoint_id = e.endpoint_id and m.message_type_id in (1, 5));
  with placed as materialized (
    select o.row_id, nextval(queue.position_sequence) * 1024 as position, o.messages
    from (
      select m.ctid as row_id, coalesce(cardinality(m.frame), 1) as messages
      from parley._p_message as m
      where m.endpoint_id = endpoint.endpoint_id
      order by m.position
    ) as o
  ), moved as (
    update parley._p_message as m
    set position = p.position, lane = parley._p_lane(queue.queue_id, endpoint.priority)
    from placed as p
    where m.ctid = p.row_id
  )
  select coalesce(sum(p.messages), 0) into v_put_back from placed as p;
  perform parley._p_ring(queue.queue_id, queue.doorbell_sequence);
  return v_put_back;
end
$$;

comment on function parley._p_put_back(parley._p_queue, parley._p_endpoint) is
'Puts a conversation that is set aside back at the end of its queue, its messages in their order, and gives how many they are.
Its group, its own row and, FOR UPDATE, that of the far side are locked.';

create function parley._p_set_aside_found() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
  v_value bigint;
  v_head record;
  v_number integer := 0;
begin
  if coalesce(pg_sequence_last_value('parley._p_poison_found'), 0) = 0 then
    return 0;
  end if;
  perform setval('parley._p_poison_found', 0);
  for v_queue in select * from parley._p_queue as q where q.is_poison_message_handling_enabled and q.poison_action = 'SET_ASIDE' loop
    v_value := coalesce(pg_sequence_last_value(v_queue.rollback_sequence), 0);
    continue when v_value = 0;
    for v_head in
      select m.endpoint_id, m.position, r.entry & 15 as rollbacks
      from unnest(array[v_value & 2147483647, v_value >> 31]) as r (entry)
      cross join lateral (
        select (coalesce(parley._p_last_position(v_queue.position_sequence), 0) & ~134217727::bigint) + (r.entry >> 4) as number
      ) as k
      cross join generate_series(1, 10) as p (n)
      join parley._p_message as m
        on m.lane = parley._p_lane(v_queue.queue_id, p.n)
        and m.position between k.number * 1024 and k.number * 1024 + 1023
      join parley._p_endpoint as e on e.endpoint_id = m.endpoint_id
      join parley._p_conversation_group as g on g.group_id = e.group_id
      where r.entry & 15 >= v_queue.rollbacks_before_disable
        and m.xmax::text <> '0'
        and e.state <> 'DO'
      for update of g skip locked
    loop
      -- With the lock held we look again: it may have gone, or been set aside.
      continue when parley._p_is_set_aside(v_head.endpoint_id);
      perform from parley._p_message as m where m.endpoint_id = v_head.endpoint_id and m.position = v_head.position and m.xmax::text <> '0';
      if found and parley._p_set_aside_conversation(v_queue.queue_id, v_head.endpoint_id, v_head.position, v_head.rollbacks::integer) then
        v_number := v_number + 1;
      end if;
    end loop;
  end loop;
  return v_number;
end
$$;

comment on function parley._p_set_aside_found() is
'Sets aside, in this transaction, what readers have found to be poisonous: theirs may have rolled back. Gives how many conversations.';

-- sql/245_poison_statements.sql

-- What people and programs do about poison messages: report a failure, look, put back, discard.
--
-- Who may RECEIVE from a queue may do all of this with its conversations: he could as well have received the message and committed.
-- Locks: the group, then the rows of both sides in their order, the sender's FOR UPDATE, so that no sender of the conversation is
-- under way while its messages get new positions. A conversation that is only looked at or reported is not waited for.

create function parley.note_failure(
  conversation_handle uuid, sqlstate text, message text,
  caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set lock_timeout = '1s'
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_endpoint parley._p_endpoint;
  v_queue parley._p_queue;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = note_failure.conversation_handle and e.state <> 'DO';
  if not found then
    return false;
  end if;
  select q.* into v_queue from parley._p_service as s join parley._p_queue as q using (queue_id) where s.service_id = v_endpoint.service_id;
  if parley._p_has_permission(v_caller, 'RECEIVE', 'queue', v_queue.queue_id, v_queue.owner) is not true then
    return false;
  end if;
  insert into parley._p_failure (endpoint_id, failed_at, sqlstate, error)
  values (
    v_endpoint.endpoint_id, clock_timestamp(), substring(note_failure.sqlstate from '^[0-9A-Z]{5}$'), left(coalesce(message, ''), 2000)
  )
  on conflict on constraint _p_failure_pkey do update
  set failed_at = excluded.failed_at, sqlstate = excluded.sqlstate, error = excluded.error;
  begin
    perform parley._p_count_failure(v_queue, v_endpoint);
  exception
    when others then
      -- Most likely that the queue is disabled now, which its next reader is told.
      null;
  end;
  delete from parley._p_failure as f
  where f.endpoint_id in (
    select o.endpoint_id
    from parley._p_failure as o
    where o.failed_at < clock_timestamp() - interval '1 day'
      and not parley._p_is_set_aside(o.endpoint_id)
    order by o.failed_at
    limit 10
  );
  return true;
exception
  when others then
    return false;
end
$$;

comment on function parley.note_failure(uuid, text, text, parley.caller) is
'Reports that a transaction that had received from a conversation has failed, and why. Call it afterwards, in a transaction of its own.
The last report of each conversation is kept, for a day or as long as the conversation is set aside. The failure is counted at once, not only
when the message is received again, so the fifth sets the conversation aside without a reader.
Returns whether it was noted; it never raises an error, and does nothing for a handle that is unknown or of a queue that the caller may not receive from.
Arguments: conversation_handle, of the side that was received from; sqlstate of the error, null when it came from elsewhere;
message, its text, of which the first 2,000 characters are kept.
Errors: none.
Source: spec 5.6.';

create function parley._p_count_failure(queue parley._p_queue, endpoint parley._p_endpoint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_head record;
begin
  -- Whoever has the group has received again already, and has counted.
  perform from parley._p_conversation_group as g where g.group_id = endpoint.group_id for update skip locked;
  if not found or parley._p_is_set_aside(endpoint.endpoint_id) then
    return;
  end if;
  v_head := parley._p_first_message(queue, endpoint);
  if v_head.came_back then
    perform parley._p_count_rollback(queue.queue_id, endpoint.endpoint_id, v_head.position);
  end if;
end
$$;

comment on function parley._p_count_failure(parley._p_queue, parley._p_endpoint) is
'Counts the failure of the first message of a conversation, if that has come back and nobody receives from it now.
Errors: 9617 when that disables the queue.';

create function parley._p_first_message(
  queue parley._p_queue, endpoint parley._p_endpoint, out "position" bigint, out message_type_id integer, out enqueued_at timestamptz, out came_back boolean
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select m.position, m.message_type_id, m.enqueued_at, m.xmax::text <> '0'
  from parley._p_message as m
  where m.endpoint_id = endpoint.endpoint_id
    -- What is set aside may stand before the hint; what is received does too.
    and m.position >= coalesce(
      (select s.position from parley._p_set_aside as s where s.endpoint_id = endpoint.endpoint_id),
      (
        select h.low_position
        from parley._p_scan_hint as h
        where h.lane = parley._p_lane(queue.queue_id, endpoint.priority)
        order by h.lane desc, h.hint_id desc
        limit 1
      ),
      0
    )
  order by m.position
  limit 1
$$;

comment on function parley._p_first_message(parley._p_queue, parley._p_endpoint) is
'Gives the first message that waits for a side of a conversation: of a side that is set aside, the poisonous one.';

create function parley.retry_poison(
  conversation_handle uuid,
  caller parley.caller default parley.current_caller()
) returns bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_endpoint parley._p_endpoint := parley._p_lock_set_aside(v_caller, conversation_handle);
  v_queue parley._p_queue;
begin
  select q.* into v_queue from parley._p_service as s join parley._p_queue as q using (queue_id) where s.service_id = v_endpoint.service_id;
  return parley._p_put_back(v_queue, v_endpoint);
end
$$;

comment on function parley.retry_poison(uuid, parley.caller) is
'Puts a conversation that is set aside back into its queue: all its messages, in their order, behind what waits there now. Its rollbacks are forgotten.
Returns how many messages that are. Waits for transactions that have sent on the conversation and are still open.
Arguments: conversation_handle, as parley.poison_conversations shows it.
Errors: 229 not allowed, 8402 not at READ COMMITTED, 8418 missing, 8426 not found or not set aside.
Source: spec 5.6.';

create function parley._p_lock_set_aside(caller oid, handle uuid) returns parley._p_endpoint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint := parley._p_find_endpoint(handle);
  v_queue parley._p_queue;
begin
  select q.* into v_queue from parley._p_service as s join parley._p_queue as q using (queue_id) where s.service_id = v_endpoint.service_id;
  perform parley._p_require_permission(caller, 'RECEIVE', 'queue', v_queue.queue_id, v_queue.lookup_name, v_queue.owner);
  if parley._p_keeps_snapshot() then
    perform parley._p_raise(
      8402,
      'this needs a transaction at READ COMMITTED',
      'An older snapshot does not see all messages of the conversation.',
      'Call it outside a transaction, or begin one at READ COMMITTED.'
    );
  end if;
  perform parley._p_lock_group_of(v_endpoint.endpoint_id);
  if v_endpoint.far_endpoint_id < v_endpoint.endpoint_id then
    perform from parley._p_endpoint as e where e.endpoint_id = v_endpoint.far_endpoint_id for update;
  end if;
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = v_endpoint.endpoint_id for no key update;
  if v_endpoint.far_endpoint_id > v_endpoint.endpoint_id then
    perform from parley._p_endpoint as e where e.endpoint_id = v_endpoint.far_endpoint_id for update;
  end if;
  -- A sender that waits for our lock may have drawn its position already; this makes it look, and draw, again.
  perform parley._p_forget_routes(array[v_endpoint.far_endpoint_id]);
  if not parley._p_is_set_aside(v_endpoint.endpoint_id) or v_endpoint.state = 'DO' then
    perform parley._p_raise(
      8426,
      format('conversation handle "%s" is not set aside', handle),
      format('It is of queue "%s", and nothing of it was found to be poisonous.', v_queue.lookup_name),
      'See parley.poison_conversations.'
    );
  end if;
  return v_endpoint;
end
$$;

comment on function parley._p_lock_set_aside(oid, uuid) is
'Finds and locks a conversation that is set aside, with its group and against its senders.
Errors: 229, 8402, 8418, 8426.';

create function parley.discard_poison(
  conversation_handle uuid,
  message_only boolean default false,
  error_code integer default 1,
  description text default 'A message of this conversation could not be handled.',
  caller parley.caller default parley.current_caller()
) returns setof parley.received_message
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_endpoint parley._p_endpoint := parley._p_lock_set_aside(v_caller, conversation_handle);
  v_queue parley._p_queue;
begin
  select q.* into v_queue from parley._p_service as s join parley._p_queue as q using (queue_id) where s.service_id = v_endpoint.service_id;
  if message_only then
    return query select * from parley._p_take_poison(v_queue, v_endpoint);
    perform parley._p_put_back(v_queue, v_endpoint);
  else
    return query select * from parley.peek(v_queue.lookup_name, null, discard_poison.conversation_handle, caller => caller);
    perform parley.end_conversation(discard_poison.conversation_handle, error_code, description, caller => caller);
  end if;
end
$$;

comment on function parley.discard_poison(uuid, boolean, integer, text, parley.caller) is
'Gives up on a conversation that is set aside, and returns the messages that are thereby lost, so that they can be kept elsewhere.
Either the poisonous message alone is taken out, as if it had been received, and the rest goes back into the queue as by retry_poison;
or this side is ended with an error, which the other side receives, and all that waits is removed.
Arguments: conversation_handle; message_only, take out the one message (default: end the conversation); error_code and description, of the
error that the other side gets when the conversation is ended.
Errors: 229 not allowed, 8402 error code or description out of range or not at READ COMMITTED, 8418 missing, 8426 not found or not set aside.
Source: spec 5.6.';

create function parley._p_take_poison(queue parley._p_queue, endpoint parley._p_endpoint) returns setof parley.received_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message parley._p_message;
  v_type parley._p_message_type;
  v_sequence bigint;
  v_row parley.received_message;
begin
  delete from parley._p_message as m
  where m.endpoint_id = endpoint.endpoint_id and m.position = (parley._p_first_message(queue, endpoint)).position
  returning m.* into v_message;
  if not found then
    return;
  end if;
  if cardinality(v_message.frame) > 1 then
    insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, frame, trace_context)
    values (
      v_message.position + 1, v_message.endpoint_id, v_message.enqueued_at, v_message.lane, v_message.message_type_id, v_message.frame[2:],
      v_message.trace_context
    );
  end if;
  select * into v_type from parley._p_message_type as t where t.message_type_id = v_message.message_type_id;
  v_row.status := 0;
  v_row.priority := endpoint.priority;
  v_row.queuing_order := v_message.position;
  v_row.conversation_group_id := (select g.conversation_group_id from parley._p_conversation_group as g where g.group_id = endpoint.group_id);
  v_row.conversation_handle := endpoint.conversation_handle;
  v_row.service_name := endpoint.service_name;
  v_row.service_id := endpoint.service_id;
  v_row.service_contract_name := endpoint.service_contract_name;
  v_row.service_contract_id := endpoint.service_contract_id;
  v_row.message_type_name := v_type.name;
  v_row.message_type_id := v_type.message_type_id;
  v_row.validation := v_type.validation;
  v_row.message_body := coalesce(v_message.body, v_message.frame[1]);
  v_row.message_enqueue_time := v_message.enqueued_at;
  v_row.trace_context := v_message.trace_context;
  -- Timer messages and Errors stand outside the sequence.
  v_row.message_sequence_number := -1;
  if v_message.message_type_id not in (1, 5) then
    select p.sequence into v_sequence
    from parley._p_receive_progress as p where p.endpoint_id = endpoint.endpoint_id order by p.sequence desc limit 1;
    v_row.message_sequence_number := coalesce(v_sequence, 0);
    insert into parley._p_receive_progress (endpoint_id, sequence) values (endpoint.endpoint_id, v_row.message_sequence_number + 1);
  end if;
  if queue.is_retention_enabled then
    insert into parley._p_retained (
      queue_id, endpoint_id, status, position, message_sequence_number, message_type_id, enqueued_at, body, trace_context
    )
    values (
      queue.queue_id, endpoint.endpoint_id, 0, v_row.queuing_order, v_row.message_sequence_number, v_row.message_type_id,
      v_row.message_enqueue_time, v_row.message_body, v_message.trace_context
    );
  end if;
  return next v_row;
end
$$;

comment on function parley._p_take_poison(parley._p_queue, parley._p_endpoint) is
'Takes the poisonous message of a conversation that is set aside out of it, as RECEIVE would.';

-- sql/246_reader_failures.sql

-- Failures of readers that the broker started itself: the daemon learns that a reader has failed and why, but not with which conversation.
--
-- The conversation is found by what the failure left behind: of the first messages of the queue, the one that came back last and has not been
-- counted since. Readers of one queue that fail within the same instant may get each other's error. A reader that failed before it
-- received anything has left nothing, and nothing is noted.
-- Locks: those of note_failure. Cost: the first rows of each lane.

create function parley._p_note_reader_failure(queue_id integer, sqlstate text, message text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_queue parley._p_queue;
  v_counts bigint;
  v_counters bigint;
  v_next bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  v_handle uuid;
begin
  select * into v_queue from parley._p_queue as q where q.queue_id = _p_note_reader_failure.queue_id;
  if not found or not v_queue.is_poison_message_handling_enabled then
    return false;
  end if;
  v_counts := coalesce(pg_sequence_last_value(v_queue.rollback_sequence), 0);
  v_counters := coalesce(pg_sequence_last_value(v_queue.counter_sequence), 0);
  select m.conversation_handle into v_handle
  from generate_series(1, 10) as p (n)
  cross join lateral (
    select e.conversation_handle, (n.position / 1024) & 134217727 as key, (v_next - n.xmax::text::bigint) & 4294967295 as age
    from (
      select o.position, o.endpoint_id, o.xmax
      from parley._p_message as o
      where o.lane = parley._p_lane(v_queue.queue_id, p.n)
        and o.position >= coalesce(
          (
            select h.low_position
            from parley._p_scan_hint as h
            where h.lane = parley._p_lane(v_queue.queue_id, p.n)
            order by h.lane desc, h.hint_id desc
            limit 1
          ),
          0
        )
      order by o.position
      limit 64
    ) as n
    join parley._p_endpoint as e on e.endpoint_id = n.endpoint_id and e.state <> 'DO'
    where n.xmax::text <> '0' and not parley._p_is_running(n.xmax)
  ) as m
  where v_queue.priorities & (1 << p.n) > 0
    -- Counted is what failed before the transaction that counted last began.
    and not coalesce(
      case m.key
        when (v_counts >> 4) & 134217727 then (v_next - v_counters) & 2147483647
        when (v_counts >> 35) then (v_next - (v_counters >> 31)) & 2147483647
      end < m.age,
      false
    )
  order by m.age
  limit 1;
  return v_handle is not null and parley.note_failure(v_handle, sqlstate, message, caller => parley.current_caller());
end
$$;

comment on function parley._p_note_reader_failure(integer, text, text) is
'Reports that a reader of a queue has failed, for the conversation that it most likely failed with. Call it when its transaction is over.
Arguments: queue_id; sqlstate and message as in note_failure.';

-- sql/250_group_statements.sql

-- GET CONVERSATION GROUP and MOVE CONVERSATION.

create function parley.get_conversation_group(
  queue text, timeout integer default null,
  caller parley.caller default parley.current_caller()
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue;
  v_group bigint;
  v_last bigint;
  v_sent timestamptz;
  v_seen timestamptz;
  v_lost integer := 0;
  v_looked timestamptz;
  v_started timestamptz := clock_timestamp();
begin
  loop
    v_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
    if not v_queue.is_receive_enabled or parley._p_is_poisoned(v_queue.queue_id) then
      perform parley._p_raise_disabled(v_queue.queue_id);
    end if;
    perform parley._p_fire_alarms(v_queue.queue_id, 8);
    if coalesce(timeout, 0) <> 0 then
      v_looked := clock_timestamp();
      v_last := parley._p_last_position(v_queue.position_sequence);
    end if;
    v_group := (parley._p_lock_next_group(v_queue.queue_id, v_queue.priorities)).group_id;
    if v_group is not null then
      return (select g.conversation_group_id from parley._p_conversation_group as g where g.group_id = v_group);
    end if;
    if coalesce(timeout, 0) = 0 then
      return null;
    end if;
    v_lost := v_lost + case when v_sent > v_seen then 1 else 0 end;
    v_seen := coalesce(v_sent, v_started);
    v_sent := parley._p_wait_for_message(v_queue.position_sequence, v_last, v_seen, v_looked, v_started, timeout, v_lost);
    if v_sent is null then
      return null;
    end if;
  end loop;
end
$$;

comment on function parley.get_conversation_group(text, integer, parley.caller) is
'Locks the next group that has messages, to the end of the transaction, and returns its id; null when there is none.
Arguments: queue; timeout in milliseconds (null or 0: do not wait, -1: for ever).
Errors: 208 no such queue, 229 not allowed, 9609 malformed name, 9617 the queue is disabled.
Source: spec 4.4.';

create function parley.move_conversation(
  conversation_handle uuid, conversation_group_id uuid,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_endpoint parley._p_endpoint := parley._p_find_endpoint(conversation_handle);
  v_target parley._p_conversation_group;
  v_same_queue boolean;
  v_group_id bigint;
begin
  if conversation_group_id is null then
    perform parley._p_raise(8420, 'the conversation group is missing', null, 'Give conversation_group_id.');
  end if;
  perform parley._p_require_conversation_owner(v_caller, v_endpoint, 'MOVE CONVERSATION');
  loop
    v_group_id := v_endpoint.group_id;
    perform
    from parley._p_conversation_group as g
    where g.group_id = v_group_id or g.conversation_group_id = move_conversation.conversation_group_id
    order by g.group_id
    for update;
    v_endpoint := parley._p_find_endpoint(conversation_handle);
    -- Another MOVE may have come first while we waited.
    exit when v_endpoint.group_id = v_group_id;
  end loop;
  select * into v_target from parley._p_conversation_group as g where g.conversation_group_id = move_conversation.conversation_group_id;
  if v_target.group_id <> v_endpoint.group_id then
    perform parley._p_make_group_shared(v_target.group_id, v_endpoint.endpoint_id);
    v_endpoint := parley._p_find_endpoint(conversation_handle);
  end if;
  if v_target.group_id is null then
    perform parley._p_raise(
      8436,
      format('conversation group "%s" not found', conversation_group_id),
      null,
      'See parley.conversation_groups.'
    );
  end if;
  select t.queue_id = s.queue_id into v_same_queue
  from parley._p_service as s, parley._p_service as t
  where s.service_id = v_endpoint.service_id and t.service_id = v_target.service_id;
  if not v_same_queue then
    perform parley._p_raise(
      8439,
      'the conversation group is of another queue',
      format('Group %s.', conversation_group_id),
      'Move conversations only between groups of one queue.'
    );
  elsif v_endpoint.state = 'DO' then
    perform parley._p_raise(
      8438,
      format('the conversation cannot be moved: its state is %s', parley._p_state_name(v_endpoint.state)),
      format('Conversation handle %s.', conversation_handle),
      'It has ended on this side.'
    );
  elsif v_target.group_id = v_endpoint.group_id then
    return;
  end if;
  update parley._p_endpoint as e set group_id = v_target.group_id, is_plain = false where e.endpoint_id = v_endpoint.endpoint_id;
  delete from parley._p_conversation_group as g
  where g.group_id = v_endpoint.group_id and not exists (select from parley._p_endpoint as e where e.group_id = g.group_id);
end
$$;

comment on function parley.move_conversation(uuid, uuid, parley.caller) is
'Moves a conversation to another group of the same queue; locks both groups.
Arguments: conversation_handle, conversation_group_id.
Errors: 229 not allowed, 8418 and 8420 missing arguments, 8426 conversation not found, 8436 group not found, 8438 it has ended, 8439 a group of another queue.
Source: spec 4.5.';

-- sql/260_timers.sql

-- Conversation timers, lifetimes, abandoned endpoints and tombstones: what happens because time passes.
--
-- parley.fire_timers does what is due; anybody who may may call it, as often as he likes: a cron job, the daemon. RECEIVE calls it for its
-- own queue when _p_next_alarm says that something is due somewhere. Several callers at once share the work: each passes by what another holds.

create function parley.begin_conversation_timer(
  conversation_handle uuid, timeout integer,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_endpoint parley._p_endpoint := parley._p_find_endpoint(conversation_handle);
  v_due timestamptz;
begin
  perform parley._p_require_conversation_owner(v_caller, v_endpoint, 'BEGIN CONVERSATION TIMER');
  perform parley._p_lock_group_of(v_endpoint.endpoint_id);
  v_endpoint := parley._p_find_endpoint(conversation_handle);
  if timeout is null or timeout < 0 then
    perform parley._p_raise(
      8402,
      format('timer timeout %s is out of range', coalesce(timeout::text, 'null')),
      'It is counted in seconds, 0 to 2147483647.',
      'Give a number of seconds.'
    );
  end if;
  v_due := clock_timestamp() + make_interval(secs => timeout);
  if v_endpoint.state not in ('SO', 'CO', 'DI') then
    perform parley._p_raise(
      8458,
      format('the conversation cannot have a timer: its state is %s', parley._p_state_name(v_endpoint.state)),
      format('Conversation handle %s.', conversation_handle),
      'It has ended or failed; end it, and begin a new one to go on.'
    );
  elsif v_due > v_endpoint.lifetime then
    perform parley._p_raise(
      8410,
      'the timer would fire after the end of the conversation''s life',
      format('It would fire at %s; the lifetime ends at %s.', v_due, v_endpoint.lifetime),
      'Give a shorter timeout.'
    );
  end if;
  -- Here, so that firing need not; an older snapshot has to fail when somebody has made it plain since. Both sides, in the order of END, which
  -- may follow in this transaction.
  if v_endpoint.is_plain or parley._p_keeps_snapshot() then
    perform
    from parley._p_endpoint as e
    where e.endpoint_id in (v_endpoint.endpoint_id, v_endpoint.far_endpoint_id)
    order by e.endpoint_id
    for no key update;
    update parley._p_endpoint as e set is_plain = false where e.endpoint_id = v_endpoint.endpoint_id;
  end if;
  perform parley._p_set_alarm(v_endpoint.endpoint_id, 'timer', v_due);
end
$$;

comment on function parley.begin_conversation_timer(uuid, integer, parley.caller) is
'Sets the timer of this side of a conversation, in place of an earlier one: when it fires, a DialogTimer message arrives here.
Arguments: conversation_handle; timeout in seconds, 0 for at once.
Errors: 229 not allowed, 8402 out of range, 8410 after the lifetime, 8418 and 8426 handle missing or not found, 8458 the state forbids it.
Source: spec 4.7.';

create function parley.fire_timers(
  top integer default 1000,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_now timestamptz := clock_timestamp();
begin
  delete from parley._p_tombstone as t
  where t.conversation_handle in (
    select o.conversation_handle from parley._p_tombstone as o where o.expires_at <= v_now order by o.expires_at limit top for update skip locked
  );
  perform parley._p_set_aside_found();
  if exists (select from parley._p_transmission)
    and coalesce(pg_sequence_last_value('parley._p_delayed_look'), 0) <= extract(epoch from v_now) * 1000000 then
    perform parley._p_deliver_delayed(null);
    -- However many wait, looking for a way for them takes a twentieth of the time and no more.
    perform setval('parley._p_delayed_look', (extract(epoch from clock_timestamp() + 20 * (clock_timestamp() - v_now)) * 1000000)::bigint);
  end if;
  delete from parley._p_fragment as f where f.stored_at < v_now - interval '1 day';
  perform parley._p_notify_disabled_queues(v_caller) where exists (select from parley._p_event_notification);
  perform parley._p_take_configuration_answers() where exists (select from parley._p_configuration_request);
  -- Last: the rest may wait for a conversation, and must not hold many then.
  return parley._p_fire_alarms(null, top);
end
$$;

comment on function parley.fire_timers(integer, parley.caller) is
'Does what is due in all queues: conversation timers, ends of lifetimes, abandoned endpoints, expired tombstones, messages that can be delivered now,
conversations that have to be set aside, event notifications of queues that were disabled.
Returns how many alarms fired; call again at once when that is top.
Arguments: top, how many to handle at most.
Errors: none of its own.
Source: spec 3.3, 3.5.';

create function parley._p_fire_alarms(queue_id integer, top integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_alarm record;
  v_is_claimed boolean;
  v_fired integer := 0;
  v_held integer := 0;
  v_next timestamptz;
  -- Not clock_timestamp() itself: the index could not bound a search by it, and the ones that are not due would all be read.
  v_now timestamptz := clock_timestamp();
begin
  for v_alarm in
    select a.endpoint_id, a.kind
    from parley._p_alarm as a
    where a.due_at <= v_now
      and (
        _p_fire_alarms.queue_id is null
        or exists (
          select
          from parley._p_endpoint as e
          join parley._p_service as s using (service_id)
          where e.endpoint_id = a.endpoint_id and s.queue_id = _p_fire_alarms.queue_id
        )
      )
    order by a.due_at
    limit case when _p_fire_alarms.queue_id is null then 10 else 100 end::bigint * top
  loop
    -- Others are at it, and each that cannot be claimed costs a subtransaction: a look tells of most that are held.
    continue when v_held >= 20 and queue_id is not null and parley._p_is_group_held(v_alarm.endpoint_id);
    v_is_claimed := case
      when queue_id is null then parley._p_claim_alarm(v_alarm.endpoint_id, v_alarm.kind)
      else parley._p_claim_alarm_and_groups(v_alarm.endpoint_id, v_alarm.kind)
    end;
    if v_is_claimed then
      perform parley._p_fire_alarm(v_alarm.endpoint_id, v_alarm.kind);
      v_fired := v_fired + 1;
      exit when v_fired = top;
      continue;
    end if;
    v_held := v_held + 1;
    if queue_id is null then
      -- What is held for long must not keep the rest.
      perform parley._p_put_off_alarm(v_alarm.endpoint_id, v_alarm.kind, v_now - interval '1 second', interval '1 second');
    else
      exit when v_held >= 40;
    end if;
  end loop;
  -- A timer set by a transaction that has not committed is not seen here, so look again within a second in any case.
  select a.due_at into v_next from parley._p_alarm as a order by a.due_at limit 1;
  v_next := greatest(coalesce(v_next, 'infinity'), clock_timestamp() + case when v_held > v_fired then interval '20 ms' else interval '1 ms' end);
  v_next := least(v_next, clock_timestamp() + interval '1 second');
  perform setval('parley._p_next_alarm', (extract(epoch from v_next) * 1000000)::bigint);
  return v_fired;
end
$$;

comment on function parley._p_fire_alarms(integer, integer) is
'Handles alarms that are due, of one queue for its reader or of all (null), and notes when to look next. Waits for nobody. Gives how many.';

create function parley._p_is_group_held(endpoint_id bigint) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select
    from parley._p_endpoint as e
    join parley._p_endpoint as s on s.endpoint_id in (e.endpoint_id, e.far_endpoint_id)
    join parley._p_conversation_group as g on g.group_id = s.group_id
    where e.endpoint_id = $1 and parley._p_is_running(g.xmax)
  )
$$;

comment on function parley._p_is_group_held(bigint) is
'Tells whether somebody, this transaction too, has locked the group of either side of a conversation. Locks nothing; see 401_receivable_work.sql.';

create function parley._p_claim_alarm(endpoint_id bigint, kind text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_far bigint;
begin
  select e.far_endpoint_id into v_far from parley._p_endpoint as e where e.endpoint_id = _p_claim_alarm.endpoint_id;
  if found then
    -- Read again with the lock: the first send may have made the far side since.
    if kind = 'timer' and not parley._p_keeps_snapshot() then
      perform from parley._p_endpoint as e where e.endpoint_id = _p_claim_alarm.endpoint_id for key share skip locked;
    elsif kind = 'timer' or kind = 'lifetime' and v_far > 0 then
      -- Sending goes on. An older snapshot has to fail when the state has changed.
      select e.far_endpoint_id into v_far
      from parley._p_endpoint as e where e.endpoint_id = _p_claim_alarm.endpoint_id for no key update skip locked;
    else
      select e.far_endpoint_id into v_far from parley._p_endpoint as e where e.endpoint_id = _p_claim_alarm.endpoint_id for update skip locked;
    end if;
    if not found then
      return false;
    end if;
    if kind <> 'timer' and v_far > 0 then
      perform from parley._p_endpoint as e where e.endpoint_id = v_far for no key update skip locked;
      if not found and exists (select from parley._p_endpoint as e where e.endpoint_id = v_far) then
        return false;
      end if;
    end if;
  end if;
  perform
  from parley._p_alarm as a
  where a.endpoint_id = _p_claim_alarm.endpoint_id and a.kind = _p_claim_alarm.kind and a.due_at <= clock_timestamp()
  for update skip locked;
  return found;
end
$$;

comment on function parley._p_claim_alarm(bigint, text) is
'Locks what firing an alarm takes, and the alarm last; false when somebody holds any of it, or it is not due any more: what was locked by then stays
so. Waits for nobody: who fires many alarms holds many conversations, and must not wait for another one.';

create function parley._p_claim_alarm_and_groups(endpoint_id bigint, kind text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_groups bigint[];
  v_locked integer := -1;
begin
  if parley._p_claim_alarm(endpoint_id, kind) then
    -- A timer concerns its own side alone.
    v_groups := array(
      select e.group_id
      from parley._p_endpoint as e
      where e.endpoint_id = _p_claim_alarm_and_groups.endpoint_id
      union
      select f.group_id
      from parley._p_endpoint as e
      join parley._p_endpoint as f on f.endpoint_id = e.far_endpoint_id
      where e.endpoint_id = _p_claim_alarm_and_groups.endpoint_id and _p_claim_alarm_and_groups.kind <> 'timer'
    );
    perform from parley._p_conversation_group as g where g.group_id = any (v_groups) for update skip locked;
    get diagnostics v_locked = row_count;
  end if;
  if v_locked = cardinality(v_groups) then
    return true;
  end if;
  raise exception 'held' using errcode = 'lock_not_available';
exception
  when lock_not_available then
    return false;
end
$$;

comment on function parley._p_claim_alarm_and_groups(bigint, text) is
'Claims an alarm for a reader, whose transaction goes on and may wait for others: nobody may have received from the groups, and be about to end
what the reader holds then. What cannot be claimed is let go of.';

create function parley._p_put_off_alarm(endpoint_id bigint, kind text, due_before timestamptz, delay interval) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform
  from parley._p_alarm as a
  where a.endpoint_id = _p_put_off_alarm.endpoint_id and a.kind = _p_put_off_alarm.kind and a.due_at < due_before
  for update skip locked;
  if found then
    update parley._p_alarm as a
    set due_at = clock_timestamp() + delay, first_due_at = coalesce(a.first_due_at, a.due_at)
    where a.endpoint_id = _p_put_off_alarm.endpoint_id and a.kind = _p_put_off_alarm.kind;
  end if;
end
$$;

comment on function parley._p_put_off_alarm(bigint, text, timestamptz, interval) is
'Makes an alarm that was due before a time due after a delay, unless somebody holds it. When it was due first is kept: it is late since then.';

create function parley._p_fire_alarm(endpoint_id bigint, kind text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from parley._p_alarm as a where a.endpoint_id = _p_fire_alarm.endpoint_id and a.kind = _p_fire_alarm.kind;
  case kind
    when 'timer' then
      perform parley._p_fire_timer(endpoint_id);
    when 'lifetime' then
      perform parley._p_break_conversations(array[endpoint_id], 8489, 'The dialog has exceeded its lifetime.');
    when 'abandoned' then
      perform parley._p_end_abandoned(endpoint_id);
  end case;
end
$$;

comment on function parley._p_fire_alarm(bigint, text) is 'Handles one alarm, which the caller has claimed.';

create function parley._p_fire_timer(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_fire_timer.endpoint_id and e.state in ('SO', 'CO', 'DI');
  if found then
    perform parley._p_enqueue(v_endpoint, 5, null);
  end if;
end
$$;

comment on function parley._p_fire_timer(bigint) is 'Puts a DialogTimer message on the queue of an endpoint.';

create function parley._p_end_abandoned(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
  v_seconds integer := (select b.abandoned_seconds from parley._p_broker as b);
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_end_abandoned.endpoint_id;
  if not found or v_endpoint.state not in ('DI', 'ER', 'DO') then
    return;
  elsif v_endpoint.state = 'DO' then
    -- It was to be removed when its group was held.
    perform parley._p_remove_endpoint(v_endpoint);
    return;
  end if;
  perform from parley._p_conversation_group as g where g.group_id = v_endpoint.group_id for update skip locked;
  if not found or exists (select from parley._p_message as m where m.endpoint_id = v_endpoint.endpoint_id) then
    -- Somebody reads it, or it still has something to read: later.
    perform parley._p_set_alarm(endpoint_id, 'abandoned', clock_timestamp() + make_interval(secs => greatest(v_seconds, 1)));
  else
    v_endpoint := parley._p_lock_to_end(v_endpoint.conversation_handle);
    perform parley._p_close_both(v_endpoint);
  end if;
end
$$;

comment on function parley._p_end_abandoned(bigint) is
'Ends a target whose initiator has ended, that has read everything and never ended itself: fire-and-forget must not leak (spec 3.3).';

-- sql/270_queue_views.sql

-- A view for each queue: what waits in it, and what retention keeps, in the columns of RECEIVE.
--
-- Looking disturbs nobody: it is a plain query under MVCC. The view is named like the queue; a queue in a schema other than dbo
-- has the schema's name and a point in front of it, and names too long for PostgreSQL are cut and end in the queue's id.

create function parley._p_queue_contents(queue_id integer) returns setof parley.received_message
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select
    case when not e.is_plain and parley._p_is_set_aside(e.endpoint_id) then 2 else 1 end::smallint,
    e.priority,
    m.position + b.ordinal - 1,
    g.conversation_group_id,
    e.conversation_handle,
    case
      when m.message_type_id in (1, 5) then -1
      else coalesce(p.sequence, 0) - 1 + count(*) filter (where m.message_type_id not in (1, 5)) over (
        partition by m.endpoint_id order by m.position, b.ordinal rows unbounded preceding
      )
    end,
    e.service_name,
    e.service_id,
    e.service_contract_name,
    e.service_contract_id,
    t.name,
    m.message_type_id,
    t.validation::text,
    b.body,
    m.enqueued_at,
    (lpad(to_hex(m.endpoint_id), 16, '0') || to_hex(m.position + b.ordinal - 1 + 1152921504606846976))::uuid,
    m.trace_context
  from parley._p_queue as q
  join parley._p_message as m on m.lane between q.queue_id * 16 + 1 and q.queue_id * 16 + 11
  join parley._p_endpoint as e on e.endpoint_id = m.endpoint_id and e.state <> 'DO'
  join parley._p_conversation_group as g using (group_id)
  join parley._p_message_type as t on t.message_type_id = m.message_type_id
  left join lateral (
    select r.sequence from parley._p_receive_progress as r where r.endpoint_id = m.endpoint_id order by r.sequence desc limit 1
  ) as p on true
  cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
  where q.queue_id = $1
    and (q.disabled_position is null or m.position < q.disabled_position)
  union all
  select
    r.status,
    e.priority,
    r.position,
    g.conversation_group_id,
    e.conversation_handle,
    r.message_sequence_number,
    e.service_name,
    e.service_id,
    e.service_contract_name,
    e.service_contract_id,
    t.name,
    r.message_type_id,
    t.validation::text,
    r.body,
    r.enqueued_at,
    (lpad(to_hex(r.endpoint_id), 16, '0') || to_hex(r.position + 1152921504606846976))::uuid,
    r.trace_context
  from parley._p_retained as r
  join parley._p_endpoint as e using (endpoint_id)
  join parley._p_conversation_group as g using (group_id)
  join parley._p_message_type as t on t.message_type_id = r.message_type_id
  where r.queue_id = $1
$$;

comment on function parley._p_queue_contents(integer) is
'Gives what is in a queue: messages ready (status 1), of conversations set aside (2), received and retained (0), copies of sent ones (3). Spec 4.3, 5.2.';

create function parley.queue_contents(
  queue text,
  caller parley.caller default parley.current_caller()
) returns setof parley.received_message
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
begin
  return query select * from parley._p_queue_contents(v_queue.queue_id);
end
$$;

comment on function parley.queue_contents(text, parley.caller) is
'Looks at a queue without disturbing its readers; the same as the queue''s view in schema parley_queue.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name.';

create function parley._p_queue_view_name(queue_id integer) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when octet_length(q.lookup_name) <= 63 then q.lookup_name
    else (
      select left(q.lookup_name, max(n.characters)) || '_' || q.queue_id
      from generate_series(1, 50) as n (characters)
      where octet_length(left(q.lookup_name, n.characters)) <= 50
    )
  end
  from parley._p_queue as q
  where q.queue_id = $1
$$;

comment on function parley._p_queue_view_name(integer) is 'Gives the name of a queue''s view in schema parley_queue.';

create function parley._p_create_queue_view(queue_id integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_view text := parley._p_queue_view_name(queue_id);
begin
  execute format('create view parley_queue.%I as select * from parley.queue_contents(%L)', v_view, (
    select format('[%s].[%s]', replace(q.schema_name, ']', ']]'), replace(q.name, ']', ']]')) from parley._p_queue as q where q.queue_id = $1
  ));
  perform parley._p_take_back_relation(format('parley_queue.%I', v_view)::regclass);
  -- The function asks for the right to RECEIVE each time.
  execute format('grant select on parley_queue.%I to public', v_view);
end
$$;

comment on function parley._p_create_queue_view(integer) is 'Creates the view of a queue.';

-- sql/271_queue_inspection.sql

-- Looking at queues from outside: how much waits in each, and what comes first.
--
-- Screens ask this again and again, so neither answer may cost more the longer the queue is: see 272_queue_depth.sql for the
-- numbers. Nothing is locked, no body is read that is not shown, and both functions work on queues that are off.

create function parley.queue_backlogs(queue text default null, caller parley.caller default parley.current_caller())
returns table (
  queue_name text,
  service_queue_id integer,
  waiting_messages bigint,
  is_estimated boolean,
  oldest_enqueue_time timestamptz,
  held_messages bigint,
  rollbacks integer,
  rollbacks_before_disable integer
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_only integer;
  v_queue parley._p_queue;
  v_waiting record;
  v_held record;
begin
  if queue_backlogs.queue is not null then
    v_only := (parley._p_find_queue(v_caller, queue_backlogs.queue, 'RECEIVE')).queue_id;
  end if;
  for v_queue in select * from parley._p_queue as q where v_only is null or q.queue_id = v_only order by q.queue_id loop
    continue when parley._p_has_permission(v_caller, 'RECEIVE', 'queue', v_queue.queue_id, v_queue.owner) is not true;
    queue_name := v_queue.lookup_name;
    service_queue_id := v_queue.queue_id;
    v_waiting := parley._p_backlog(v_queue, 0, v_queue.disabled_position);
    waiting_messages := v_waiting.messages;
    is_estimated := v_waiting.is_estimated;
    oldest_enqueue_time := v_waiting.oldest_enqueue_time;
    held_messages := 0;
    if v_queue.disabled_position is not null then
      v_held := parley._p_backlog(v_queue, v_queue.disabled_position, null);
      held_messages := v_held.messages;
      is_estimated := is_estimated or v_held.is_estimated;
    end if;
    -- The two entries of the rollback sequence, see 243_poison.sql, as far as they are of messages that may still be received.
    select coalesce(max(e.entry & 15), 0)::integer into rollbacks
    from (select coalesce(pg_sequence_last_value(v_queue.rollback_sequence), 0) as value) as s
    cross join unnest(array[s.value & 2147483647, s.value >> 31]) as e (entry)
    where e.entry & 15 > 0 and parley._p_is_waiting(v_queue.queue_id, e.entry >> 4);
    rollbacks_before_disable := v_queue.rollbacks_before_disable;
    return next;
  end loop;
end
$$;

comment on function parley.queue_backlogs(text, parley.caller) is
'Tells how much waits in each queue that the caller may receive from.
The cost does not grow with the queue: beyond some 10,000 rows the number is estimated, within a few percent.
Columns: queue_name, as the other functions take it; service_queue_id; waiting_messages, ready to be received; is_estimated;
oldest_enqueue_time of what is ready; held_messages, which arrived while the queue was off and are still their senders'';
rollbacks, counted of a message that keeps coming back; rollbacks_before_disable, at how many of them its conversation is set aside or the queue disabled.
Arguments: queue, only that one (null: all).
Errors: 208 no such queue, 229 not allowed, 9609 malformed name.';

create function parley.peek(
  queue text, top integer default 10, conversation_handle uuid default null,
  caller parley.caller default parley.current_caller()
) returns setof parley.received_message
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
  v_end bigint := coalesce(v_queue.disabled_position, 9223372036854775807);
  v_endpoint bigint;
begin
  if peek.conversation_handle is not null then
    v_endpoint := (parley._p_find_endpoint(peek.conversation_handle)).endpoint_id;
  end if;
  return query
  with first as materialized (
    (
      select m.position, m.endpoint_id, m.lane, m.enqueued_at, m.message_type_id, m.body, m.frame, m.trace_context
      from parley._p_message as m
      join parley._p_endpoint as e on e.endpoint_id = m.endpoint_id and e.state <> 'DO'
      where v_endpoint is null
        and (e.is_plain or not parley._p_is_set_aside(e.endpoint_id))
        and m.lane between v_queue.queue_id * 16 + 1 and v_queue.queue_id * 16 + 10
        and m.position < v_end
      order by m.lane, m.position
      limit top
    )
    union all
    (
      select m.position, m.endpoint_id, m.lane, m.enqueued_at, m.message_type_id, m.body, m.frame, m.trace_context
      from parley._p_message as m
      where m.endpoint_id = v_endpoint
        and m.lane between v_queue.queue_id * 16 + 1 and v_queue.queue_id * 16 + 11
        and m.position < v_end
      order by m.position
      limit top
    )
  )
  select
    case when not e.is_plain and parley._p_is_set_aside(e.endpoint_id) then 2 else 1 end::smallint,
    e.priority,
    m.position + b.ordinal - 1,
    g.conversation_group_id,
    e.conversation_handle,
    case
      when m.message_type_id in (1, 5) then -1
      else coalesce(p.sequence, 0) - 1 + count(*) filter (where m.message_type_id not in (1, 5)) over (
        partition by m.endpoint_id order by m.position, b.ordinal rows unbounded preceding
      )
    end,
    e.service_name,
    e.service_id,
    e.service_contract_name,
    e.service_contract_id,
    t.name,
    m.message_type_id,
    t.validation::text,
    b.body,
    m.enqueued_at,
    (lpad(to_hex(m.endpoint_id), 16, '0') || to_hex(m.position + b.ordinal - 1 + 1152921504606846976))::uuid,
    m.trace_context
  from first as m
  join parley._p_endpoint as e on e.endpoint_id = m.endpoint_id
  join parley._p_conversation_group as g using (group_id)
  join parley._p_message_type as t on t.message_type_id = m.message_type_id
  left join lateral (
    select r.sequence from parley._p_receive_progress as r where r.endpoint_id = m.endpoint_id order by r.sequence desc limit 1
  ) as p on true
  cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
  order by case when v_endpoint is null then m.lane end, m.position, b.ordinal
  limit top;
end
$$;

comment on function parley.peek(text, integer, uuid, parley.caller) is
'Looks at the first messages of a queue, by priority and arrival, without taking them. Nobody is disturbed, messages of locked
groups are shown too, and the cost does not grow with the queue. What retention keeps is not shown: see queue_contents.
A conversation that is set aside is shown, with status 2, when it is asked for by its handle.
Arguments: queue; top, at most so many messages (null: all); conversation_handle, only messages of that conversation.
Errors: 208 no such queue, 229 not allowed, 8426 conversation not found, 9609 malformed name.';

-- sql/272_queue_depth.sql

-- How many messages wait in a queue, however long it is.
--
-- Nobody keeps a counter (110_messages.sql), so a short lane is counted and a long one estimated. Positions make that easy: every row has
-- taken a number of the queue's sequence, so the lane is a line of known length, and what is unknown is how much of it is left where:
-- rows that were received or rolled back or went into other lanes are gaps, and a frame is many messages. We look at short windows all
-- along the line, more of them towards its end, because queues empty at the front and fill at the end.
-- Windows are found through the index, so the cost depends neither on what waits nor on what has been received before. They stand
-- on a grid and are drawn by hashing, so that what does not move does not flicker, and two looks after each other compare.
--
-- Error: none where every row is there and all are alike; a few percent where rows are missing at random or frames differ
-- (docs/performance.md). What was tried and dropped: a second look where windows differ most, which leans to the low side; PostgreSQL's
-- own statistics, which are as old as the last analyze.
-- Cost: some 2,500 index probes for a lane that is estimated, about 10 ms in memory. Nothing is locked.

create function parley._p_backlog(
  queue parley._p_queue, from_position bigint, up_to_position bigint,
  out messages bigint, out is_estimated boolean, out oldest_enqueue_time timestamptz
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_lane integer;
  v_low bigint;
  v_seen record;
  v_rest record;
begin
  messages := 0;
  is_estimated := false;
  for v_lane in
    select parley._p_lane(queue.queue_id, p.n) from generate_series(10, 1, -1) as p (n) where queue.priorities & (1 << p.n) > 0
  loop
    select h.low_position into v_low from parley._p_scan_hint as h where h.lane = v_lane order by h.lane desc, h.hint_id desc limit 1;
    v_low := greatest(from_position, coalesce(v_low, 0));
    v_seen := parley._p_count_messages(v_lane, v_low, up_to_position, 1000);
    oldest_enqueue_time := least(oldest_enqueue_time, v_seen.oldest);
    messages := messages + v_seen.messages;
    if v_seen.rows = 1000 then
      -- Only now: a look at the sequence leaves a lock, one of which for each of a thousand queues would be too many.
      v_rest := parley._p_estimate_messages(
        v_lane, v_seen.last + 1, least(up_to_position, (coalesce(parley._p_last_position(queue.position_sequence), 0) + 1) * 1024)
      );
      if v_rest.rows < 10000 then
        v_rest := parley._p_count_messages(v_lane, v_seen.last + 1, up_to_position, 20000);
        is_estimated := is_estimated or v_rest.rows = 20000;
      else
        is_estimated := true;
      end if;
      messages := messages + v_rest.messages;
    end if;
  end loop;
end
$$;

comment on function parley._p_backlog(parley._p_queue, bigint, bigint) is
'Tells how much stands in a queue from one position up to another (null: to the end): counted up to some 10,000 rows a lane, estimated beyond.';

create function parley._p_count_messages(
  lane integer, from_position bigint, up_to_position bigint, rows_max integer,
  out rows bigint, out messages bigint, out last bigint, out oldest timestamptz
)
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  -- What arrives at a side that has ended is never received; one look an endpoint tells.
  select coalesce(sum(c.rows), 0)::bigint, coalesce(sum(c.messages) filter (where e.state <> 'DO'), 0)::bigint, max(c.last),
    min(c.oldest) filter (where e.state <> 'DO')
  from (
    select w.endpoint_id, count(*) as rows, sum(w.messages) as messages, max(w.position) as last, min(w.enqueued_at) as oldest
    from (
      select m.endpoint_id, m.position, coalesce(cardinality(m.frame), 1) as messages, m.enqueued_at
      from parley._p_message as m
      where m.lane = $1 and m.position >= from_position and m.position < coalesce(up_to_position, 9223372036854775807)
      order by m.position
      limit rows_max
    ) as w
    group by w.endpoint_id
  ) as c
  join parley._p_endpoint as e using (endpoint_id)
$$;

comment on function parley._p_count_messages(integer, bigint, bigint, integer) is
'Counts the first rows of a lane from one position up to another (null: to the end), and the messages in them.';

create function parley._p_estimate_messages(
  lane integer, from_position bigint, up_to_position bigint, out rows bigint, out messages bigint
)
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
  with line as (
    -- In numbers of the sequence; the grid has 1,024 to 2,048 lines, each a multiple of 2 ^ scale.
    select n.first, n.last, greatest(0, floor(log(2, greatest(1, n.last - n.first)::numeric))::integer - 10) as scale
    from (select from_position / 1024 as first, (up_to_position + 1023) / 1024 as last) as n
    where n.last > n.first
  ), strata as (
    select b.low, lead(b.low, 1, b.last) over (order by b.low) - b.low as width
    from (
      select l.first as low, l.last from line as l
      union
      select g.low, l.last
      from line as l
      cross join generate_series((l.first >> l.scale) + 1, l.last >> l.scale) as i (number)
      cross join lateral (select i.number << l.scale as low) as g
      union
      -- The last 64 lines of each finer grid.
      select g.low, l.last
      from line as l
      cross join generate_series(greatest(0, l.scale - 16), l.scale - 1) as f (scale)
      cross join generate_series(0, 63) as i (number)
      cross join lateral (select ((l.last >> f.scale) - i.number) << f.scale as low) as g
    ) as b
    cross join line as l
    where b.low >= l.first and b.low < l.last
  ), windows as materialized (
    select s.width, t.taken, (s.low + (hashint8extended(s.low, 1) & 9223372036854775807) % (s.width - t.taken + 1)) * 1024 as position
    from strata as s
    cross join lateral (select least(s.width, 2) as taken) as t
  )
  select coalesce(sum(w.width * m.rows / w.taken), 0)::bigint, coalesce(sum(w.width * m.messages / w.taken), 0)::bigint
  from windows as w
  cross join lateral (
    select count(*)::double precision as rows, sum(coalesce(cardinality(n.frame), 1))::double precision as messages
    from parley._p_message as n
    where n.lane = $1 and n.position >= w.position and n.position < w.position + w.taken * 1024
  ) as m
$$;

comment on function parley._p_estimate_messages(integer, bigint, bigint) is
'Estimates how many rows and messages stand in a lane from one position up to another, from samples.';

-- sql/280_grant.sql

-- GRANT and REVOKE on the broker's objects.

create function parley._p_securable(
  class text, object text, out canonical_class text, out object_id integer, out owner oid, out permissions text[]
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  canonical_class := lower(replace(class, '_', ' '));
  permissions := array['CONTROL', 'TAKE OWNERSHIP', 'ALTER', 'VIEW DEFINITION'];
  case canonical_class
    when 'database' then
      object_id := 0;
      permissions := array[
        'CREATE MESSAGE TYPE', 'CREATE CONTRACT', 'CREATE QUEUE', 'CREATE SERVICE', 'CREATE ROUTE',
        'CREATE CERTIFICATE', 'CREATE REMOTE SERVICE BINDING',
        'ALTER ANY MESSAGE TYPE', 'ALTER ANY CONTRACT', 'ALTER ANY QUEUE', 'ALTER ANY SERVICE', 'ALTER ANY ROUTE',
        'ALTER ANY CERTIFICATE', 'ALTER ANY REMOTE SERVICE BINDING', 'VIEW DEFINITION'
      ];
    when 'message type' then
      select t.message_type_id, t.owner into object_id, owner from parley._p_message_type as t where t.name = object;
      permissions := permissions || 'REFERENCES'::text;
    when 'contract' then
      select c.service_contract_id, c.owner into object_id, owner from parley._p_contract as c where c.name = object;
      permissions := permissions || 'REFERENCES'::text;
    when 'queue' then
      object_id := (parley._p_find_queue(object)).queue_id;
      owner := (parley._p_find_queue(object)).owner;
      permissions := permissions || array['RECEIVE', 'REFERENCES'];
    when 'service' then
      select s.service_id, s.owner into object_id, owner from parley._p_service as s where s.name = object;
      permissions := permissions || 'SEND'::text;
    when 'route' then
      select r.route_id, r.owner into object_id, owner from parley._p_route as r where r.name = object;
    when 'certificate' then
      select c.certificate_id, c.owner into object_id, owner from parley._p_certificate as c where c.name = object;
    when 'remote service binding' then
      select b.remote_service_binding_id, b.owner into object_id, owner from parley._p_remote_service_binding as b where b.name = object;
    else
      perform parley._p_raise(
        15151, format('there is nothing of the class "%s" to grant on', class), null,
        'Use database, message type, contract, queue, service, route, certificate or remote service binding.'
      );
  end case;
  if object_id is null then
    perform parley._p_raise(
      15151,
      format('%s "%s" does not exist', canonical_class, object),
      'Names are compared byte by byte.',
      'Correct the name.'
    );
  end if;
end
$$;

comment on function parley._p_securable(text, text) is
'Finds what a permission is granted on, and which permissions it has.
Errors: 208, 9609, 15151.';

create function parley._p_require_grantor(caller oid, permission text, class text, object_id integer, owner oid, object text) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley._p_has_permission(caller, 'CONTROL', class, object_id, owner) then
    return;
  end if;
  perform
  from parley._p_permission as p
  where p.class = _p_require_grantor.class
    and p.object_id = _p_require_grantor.object_id
    and p.permission = _p_require_grantor.permission
    and p.is_grantable
    and pg_has_role(caller, p.grantee, 'usage');
  if not found then
    perform parley._p_raise(
      15151,
      format('permission denied: cannot grant or revoke %s on %s "%s"', permission, class, object),
      format('Role %s neither owns it, controls it, nor holds the permission with the right to grant it.', caller::regrole),
      'Ask its owner or an administrator.'
    );
  end if;
end
$$;

comment on function parley._p_require_grantor(oid, text, text, integer, oid, text) is
'Refuses callers that may not grant a permission.
Errors: 15151.';

create function parley.grant(
  permission text, class text, object text, grantee text, with_grant_option boolean default false,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_on record := parley._p_securable(class, object);
  v_permission text := upper(permission);
begin
  if v_permission <> all (v_on.permissions) then
    perform parley._p_raise(
      15151,
      format('there is no permission "%s" on a %s', permission, v_on.canonical_class),
      null,
      'Use one of: ' || array_to_string(v_on.permissions, ', ') || '.'
    );
  end if;
  perform parley._p_require_grantor(v_caller, v_permission, v_on.canonical_class, v_on.object_id, v_on.owner, object);
  insert into parley._p_permission as p (class, object_id, permission, grantee, grantor, is_grantable)
  values (v_on.canonical_class, v_on.object_id, v_permission, parley._p_role(grantee), v_caller, with_grant_option)
  on conflict on constraint _p_permission_pkey do update set is_grantable = p.is_grantable or excluded.is_grantable;
end
$$;

comment on function parley.grant(text, text, text, text, boolean, parley.caller) is
'Grants a permission: parley.grant(''SEND'', ''service'', ''//example.com/orders'', ''web'').
Arguments: permission; class, database, message type, contract, queue, service, route, certificate or remote service binding;
object, its name (null for database); grantee, a role or PUBLIC; with_grant_option.
Permissions: CREATE and ALTER ANY of MESSAGE TYPE, CONTRACT, QUEUE, SERVICE, ROUTE, CERTIFICATE, REMOTE SERVICE BINDING, and
VIEW DEFINITION, which shows the whole catalog, on the database;
CONTROL, TAKE OWNERSHIP, ALTER, VIEW DEFINITION on all else;
REFERENCES on message types, contracts and queues; RECEIVE on queues; SEND on services.
Errors: 208 and 15151 not found, no such permission, or not allowed to grant it.
Source: spec 7.6.';

create function parley.revoke(
  permission text, class text, object text, grantee text,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_on record := parley._p_securable(class, object);
begin
  perform parley._p_require_grantor(v_caller, upper(permission), v_on.canonical_class, v_on.object_id, v_on.owner, object);
  delete from parley._p_permission as p
  where p.class = v_on.canonical_class
    and p.object_id = v_on.object_id
    and p.permission = upper(revoke.permission)
    and p.grantee = parley._p_role(revoke.grantee)::regrole;
  -- Senders that were known to hold the right must be asked again.
  if v_on.canonical_class = 'queue' then
    perform parley._p_forget_routes_of_queue(v_on.object_id);
  end if;
end
$$;

comment on function parley.revoke(text, text, text, text, parley.caller) is
'Takes a permission back; nothing happens when it was not granted.
Arguments: as grant.
Errors: 208 and 15151 not found, or not allowed to revoke it.
Source: spec 7.6.';

create function parley.alter_authorization(
  class text, object text, "owner" text,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_on record := parley._p_securable(class, object);
  v_owner oid;
begin
  if v_on.object_id < 65536 then
    perform parley._p_raise(9663, format('%s "%s" belongs to the system', class, object), null, 'System objects cannot be changed.');
  end if;
  perform parley._p_require_permission(v_caller, 'TAKE OWNERSHIP', v_on.canonical_class, v_on.object_id, object, v_on.owner);
  v_owner := parley._p_new_owner(v_caller, "owner");
  case v_on.canonical_class
    when 'message type' then
      update parley._p_message_type as t set owner = v_owner where t.message_type_id = v_on.object_id;
    when 'contract' then
      update parley._p_contract as c set owner = v_owner where c.service_contract_id = v_on.object_id;
    when 'queue' then
      update parley._p_queue as q set owner = v_owner, modify_date = now() where q.queue_id = v_on.object_id;
      perform parley._p_forget_routes_of_queue(v_on.object_id);
    when 'service' then
      update parley._p_service as s set owner = v_owner where s.service_id = v_on.object_id;
    when 'route' then
      update parley._p_route as r set owner = v_owner where r.route_id = v_on.object_id;
    when 'certificate' then
      update parley._p_certificate as c set owner = v_owner where c.certificate_id = v_on.object_id;
    when 'remote service binding' then
      update parley._p_remote_service_binding as b set owner = v_owner where b.remote_service_binding_id = v_on.object_id;
  end case;
end
$$;

comment on function parley.alter_authorization(text, text, text, parley.caller) is
'Gives an object another owner. Conversations keep the owner they were begun under.
Arguments: class, message type, contract, queue, service, route, certificate or remote service binding; object, its name; owner, a role.
Errors: 208, 229, 9663 system object, 15151 not found or may not be the owner.
Source: spec 2.0.';

-- sql/290_broker_identity.sql

-- Which broker this is, and whether it is where it was.
--
-- The id of the broker lives in the database, and so a copy of the database has it too: CREATE DATABASE ... TEMPLATE, a dump that is restored,
-- a base backup that becomes a second server. Beside the id stands where the broker was enabled last: the identifier of the server and the oid of
-- the database. Where these differ nobody can know whether the broker has moved or was copied, so it is switched off and somebody has to say
-- (spec 9.1). A copy of a whole server, made by its files, has both: that one cannot be told from the original.

create function parley._p_system_identifier() returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (select c.system_identifier from pg_control_system() as c);
exception
  when insufficient_privilege then
    return null;
end
$$;

comment on function parley._p_system_identifier() is 'Gives the identifier that the server got when it was created, or null where it is kept from us.';

create function parley._p_database_oid() returns oid
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select d.oid from pg_database as d where d.datname = current_database()
$$;

comment on function parley._p_database_oid() is 'Gives the oid of this database.';

create function parley._p_is_elsewhere() returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select b.database_oid <> parley._p_database_oid() or coalesce(b.system_identifier <> parley._p_system_identifier(), false)
  from parley._p_broker as b
$$;

comment on function parley._p_is_elsewhere() is 'Tells whether this is another database than the one in which the broker was enabled last.';

create function parley._p_original() returns name
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select d.datname
  from parley._p_broker as b
  join pg_database as d on d.oid = b.database_oid
  where b.system_identifier = parley._p_system_identifier()
    and d.oid <> parley._p_database_oid()
$$;

comment on function parley._p_original() is
'Gives the name of the database that this one is a copy of, when it is still there, on the same server; otherwise null.';

create function parley._p_broker_state() returns text
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select case when parley._p_is_elsewhere() then 'ELSEWHERE' when b.is_broker_enabled then 'ENABLED' else 'DISABLED' end
  from parley._p_broker as b
$$;

comment on function parley._p_broker_state() is
'Gives the state of the broker: ENABLED, DISABLED, or ELSEWHERE when this is not the database in which it was enabled last.';

create function parley._p_advice_when_elsewhere() returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select format('This database is not the one in which the broker %s was enabled last: it was restored, copied or moved. ', b.service_broker_guid)
    || case
      when parley._p_original() is null
        then 'If it is the same broker in a new place: select parley.enable_broker(); if it is a copy: select parley.new_broker();'
      else format('The original is still there, database "%s". For a copy: select parley.new_broker();', parley._p_original())
    end
  from parley._p_broker as b
$$;

comment on function parley._p_advice_when_elsewhere() is 'Tells what to do with a broker that is not where it was.';

create function parley.attach_broker(
  out schema_version integer, out oldest_client_version integer, out release text,
  out service_broker_guid uuid, out broker_state text, out advice text
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
as $$
declare
  v_is_enabled boolean;
begin
  select i.schema_version, i.oldest_client_version, i.release into schema_version, oldest_client_version, release
  from parley._p_installation as i;
  select b.service_broker_guid, b.is_broker_enabled into service_broker_guid, v_is_enabled from parley._p_broker as b;
  broker_state := parley._p_broker_state();
  if broker_state = 'ELSEWHERE' then
    advice := parley._p_advice_when_elsewhere();
    if v_is_enabled and not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off' then
      begin
        perform parley._p_switch_off();
      exception
        -- Somebody sends just now. The next one who attaches tries again.
        when lock_not_available then
          null;
      end;
    end if;
  elsif broker_state = 'DISABLED' then
    advice := 'The broker is disabled: messages are neither delivered nor read by activation. Switch it on: select parley.enable_broker();';
  end if;
end
$$;

comment on function parley.attach_broker() is
'Every program that works for this broker for long calls this first, and again when it has lost its connection. A broker that finds itself in another
database than the one in which it was enabled last is switched off, until somebody says whether it has moved or was copied. Anybody may call it.
Gives schema_version; oldest_client_version, which programs need to know at least; release; service_broker_guid;
broker_state, ENABLED, DISABLED or ELSEWHERE; advice, what to do when the state is not ENABLED.
Errors: none of its own.
Source: spec 9.1.';

insert into parley._p_broker (system_identifier, database_oid) values (parley._p_system_identifier(), parley._p_database_oid());

-- sql/291_epoch.sql

-- The epoch of a broker, and who speaks for it.
--
-- What a database has told another one must never be taken back, and still can be: a standby that is promoted may lack the last transactions, a
-- backup lacks whatever came after it. Such a database would give numbers a second time, to other messages. So everything that is transmitted
-- carries an epoch, which grows whenever the server begins a new timeline (each promotion and each recovery to a point in time does) and whenever
-- the broker is enabled in another place. With a new epoch all conversations with other databases stop, until each was compared with its far side
-- (620_resume.sql). Who is told of a newer epoch takes nothing of an older one any more, so a primary that comes back finds nobody to talk to.
-- An epoch is a time, in microseconds since 1970, so that two servers which begin one apart from each other do not call it the same. So one that lies
-- ahead of the clock here, by more than clocks differ, is not believed: nobody can shut a broker out for longer than that.

create function parley._p_timeline() returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
exception
  -- Some servers do not tell, and one in recovery cannot.
  when insufficient_privilege or object_not_in_prerequisite_state or undefined_function then
    return null;
end
$$;

comment on function parley._p_timeline() is 'Gives the timeline of the server, or null when it does not tell.';

create function parley._p_is_epoch_current() returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(b.timeline = parley._p_timeline(), true) from parley._p_broker as b
$$;

comment on function parley._p_is_epoch_current() is
'Tells whether the server is still on the timeline of the epoch; until the daemon has noted the new one nothing may be transmitted.';

create function parley._p_begin_epoch() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley._p_broker as b
  set epoch = greatest(b.epoch + 1, (extract(epoch from clock_timestamp()) * 1000000)::bigint), timeline = parley._p_timeline(),
    remembers_since = clock_timestamp();
  perform parley._p_doubt(null);
end
$$;

comment on function parley._p_begin_epoch() is
'Begins a new epoch: nothing more is transmitted for any conversation with another database until both sides were found to agree.';

create function parley._p_doubt(broker_instance uuid) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  -- Where the far side has not answered yet there is nothing to compare.
  insert into parley._p_unresumed (endpoint_id)
  select e.endpoint_id
  from parley._p_endpoint as e
  where e.far_endpoint_id < 0
    and e.far_broker_instance is not null
    and (_p_doubt.broker_instance is null or e.far_broker_instance = _p_doubt.broker_instance::text)
  on conflict do nothing;
  -- One that has only ever listened asks too, if there is a way.
  for v_endpoint in
    select e.*
    from parley._p_endpoint as e
    join parley._p_unresumed as u using (endpoint_id)
    where e.destination_id is null
    order by e.endpoint_id
    for no key update of e skip locked
  loop
    perform parley._p_bind(v_endpoint);
  end loop;
end
$$;

comment on function parley._p_doubt(uuid) is
'Lets nothing more be transmitted for the conversations with a broker, or with any (null), until both sides were found to agree.';

create function parley._p_note_timeline() returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not parley._p_is_epoch_current() then
    perform parley._p_begin_epoch();
  else
    update parley._p_broker as b set timeline = parley._p_timeline() where b.timeline is null and parley._p_timeline() is not null;
  end if;
  return (select b.epoch from parley._p_broker as b);
end
$$;

comment on function parley._p_note_timeline() is
'Gives the epoch, and begins a new one when the server is on another timeline than that of the last.';

-- The newest that each broker has said of itself.
create table parley._p_known_broker (
  broker_instance uuid primary key,
  epoch bigint not null,
  term bigint not null,
  token uuid not null,
  is_beside boolean not null default false
);

comment on table parley._p_known_broker is
'Brokers that have sent something here: the newest epoch, in it the newest term of the daemon that speaks for them, and its token.';
comment on column parley._p_known_broker.is_beside is 'Whether it was heard of from a database of the same daemon first, and so over no link.';

create function parley._p_hear(broker_instance uuid, epoch bigint, term bigint, token uuid, is_beside boolean) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_known parley._p_known_broker;
begin
  if broker_instance = (select b.service_broker_guid from parley._p_broker as b) then
    return 'Another database speaks under the broker instance of this one: it is a copy. In the copy: select parley.new_broker();';
  end if;
  select * into v_known from parley._p_known_broker as k where k.broker_instance = _p_hear.broker_instance;
  if not found then
    insert into parley._p_known_broker (broker_instance, epoch, term, token, is_beside)
    values (_p_hear.broker_instance, _p_hear.epoch, _p_hear.term, _p_hear.token, _p_hear.is_beside)
    on conflict do nothing;
  elsif (v_known.epoch, v_known.term) < (epoch, term) then
    update parley._p_known_broker as k
    set epoch = _p_hear.epoch, term = _p_hear.term, token = _p_hear.token
    where k.broker_instance = _p_hear.broker_instance and (k.epoch, k.term) < (_p_hear.epoch, _p_hear.term);
    -- It asks about the conversations that it knows. About those that it has forgotten only this side can ask.
    if found and v_known.epoch < epoch then
      perform parley._p_doubt(broker_instance);
    end if;
  end if;
  select * into v_known from parley._p_known_broker as k where k.broker_instance = _p_hear.broker_instance for share;
  if (v_known.epoch, v_known.term) > (epoch, term) then
    return format(
      'Broker %s has spoken in epoch %s, term %s since: what comes from epoch %s, term %s is not taken. If two copies of its database are alive,'
        || ' keep one, and in the other: select parley.new_broker();',
      broker_instance, v_known.epoch, v_known.term, epoch, term
    );
  elsif v_known.token <> token then
    return format('Two copies of the database of broker %s are alive. Keep one, and in the other: select parley.new_broker();', broker_instance);
  end if;
  return null;
end
$$;

comment on function parley._p_hear(uuid, bigint, bigint, uuid, boolean) is
'Tells why what a broker says must not be heard: somebody newer speaks for it, or two copies of its database do; null when it may. It stays so to the
end of the transaction.
Arguments: broker_instance, epoch, term, token: Speaker in Go; is_beside, whether it has come from a database of the same daemon. Who speaks was
looked at before (_p_refusal_of_speaker).';

create function parley._p_speaker(term bigint, out instance uuid, out epoch bigint, out token uuid)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley._p_holds_term(term) then
    epoch := parley._p_note_timeline();
    select b.service_broker_guid, l.token into instance, token from parley._p_broker as b, parley._p_leader as l;
  end if;
end
$$;

comment on function parley._p_speaker(bigint) is
'Gives in whose name the daemon with a term may transmit; nulls when the term is over. Notes a new timeline first.';

-- sql/299_poison_views.sql

-- Conversations that fail, and those that are set aside for it.
--
-- Whoever may RECEIVE from a queue sees those of its conversations. Looking locks nothing. Messages are counted up to 10,000 rows.

create function parley._p_failing_conversations(caller parley.caller default parley.current_caller())
returns table (
  conversation_handle uuid,
  conversation_group_id uuid,
  queue_name text,
  service_queue_id integer,
  service_name text,
  far_service text,
  service_contract_name text,
  state text,
  message_type_name text,
  queuing_order bigint,
  message_sequence_number bigint,
  message_enqueue_time timestamptz,
  rollbacks integer,
  set_aside_since timestamptz,
  sqlstate text,
  error text,
  error_time timestamptz,
  waiting_messages bigint,
  is_estimated boolean
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select
    e.conversation_handle,
    g.conversation_group_id,
    q.lookup_name,
    q.queue_id,
    e.service_name,
    e.far_service,
    e.service_contract_name,
    e.state,
    t.name,
    m.position,
    case
      when m.message_type_id in (1, 5) then -1
      else coalesce((select p.sequence from parley._p_receive_progress as p where p.endpoint_id = e.endpoint_id order by p.sequence desc limit 1), 0)
    end,
    m.enqueued_at,
    coalesce(
      s.rollbacks,
      case (m.position / 1024) & 134217727 when r.count >> 4 & 134217727 then r.count & 15 when r.count >> 35 then r.count >> 31 & 15 else 0 end::integer
    ),
    s.set_aside_at,
    f.sqlstate,
    f.error,
    f.failed_at,
    w.messages,
    w.rows = 10000
  from (select i.endpoint_id from parley._p_set_aside as i union select i.endpoint_id from parley._p_failure as i) as c
  join parley._p_endpoint as e on e.endpoint_id = c.endpoint_id and e.state <> 'DO'
  join parley._p_conversation_group as g on g.group_id = e.group_id
  join parley._p_service as v on v.service_id = e.service_id
  join parley._p_queue as q on q.queue_id = v.queue_id
  left join parley._p_set_aside as s on s.endpoint_id = e.endpoint_id
  left join parley._p_failure as f on f.endpoint_id = e.endpoint_id
  cross join lateral (select coalesce(pg_sequence_last_value(q.rollback_sequence), 0) as count) as r
  cross join lateral parley._p_first_message(q, e) as m
  left join parley._p_message_type as t on t.message_type_id = m.message_type_id
  cross join lateral (
    select count(*) as rows, coalesce(sum(o.messages), 0)::bigint as messages
    from (
      select coalesce(cardinality(n.frame), 1) as messages
      from parley._p_message as n
      where n.endpoint_id = e.endpoint_id and n.position >= m.position
      limit 10000
    ) as o
  ) as w
  -- A failure is over when its message was received.
  where (s.endpoint_id is not null or m.came_back)
    and parley._p_has_permission(parley._p_caller(caller), 'RECEIVE', 'queue', q.queue_id, q.owner)
$$;

comment on function parley._p_failing_conversations(parley.caller) is
'Gives the conversations that are set aside, and those whose last reported failure is not over, of the queues that the caller may receive from.';

create view parley.poison_conversations as
select
  c.conversation_handle,
  c.conversation_group_id,
  c.queue_name,
  c.service_queue_id,
  c.service_name,
  c.far_service,
  c.service_contract_name,
  c.state,
  c.message_type_name,
  c.queuing_order,
  c.message_sequence_number,
  c.message_enqueue_time,
  c.rollbacks,
  c.set_aside_since,
  c.sqlstate,
  c.error,
  c.error_time,
  c.waiting_messages,
  c.is_estimated
from parley._p_failing_conversations() as c
where c.set_aside_since is not null;

comment on view parley.poison_conversations is
'Conversations that are set aside, because a message of theirs came back too often: nothing is received from them until
parley.retry_poison or parley.discard_poison. Of the queues that you may receive from.';

create view parley.failing_conversations as
select
  c.conversation_handle,
  c.conversation_group_id,
  c.queue_name,
  c.service_queue_id,
  c.service_name,
  c.far_service,
  c.service_contract_name,
  c.state,
  c.message_type_name,
  c.queuing_order,
  c.message_sequence_number,
  c.message_enqueue_time,
  c.rollbacks,
  c.sqlstate,
  c.error,
  c.error_time,
  c.waiting_messages,
  c.is_estimated
from parley._p_failing_conversations() as c
where c.set_aside_since is null;

comment on view parley.failing_conversations is
'Conversations of which a reader has reported a failure (parley.note_failure), whose message is in the queue again and not set aside yet.';

create function parley._p_count_set_aside(queue_id integer) returns bigint
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select count(*)
  from parley._p_set_aside as s
  join parley._p_endpoint as e using (endpoint_id)
  join parley._p_service as v using (service_id)
  where v.queue_id = $1 and e.state <> 'DO'
$$;

comment on function parley._p_count_set_aside(integer) is 'Counts the conversations of a queue that are set aside.';

comment on column parley.poison_conversations.conversation_handle is 'Side that is set aside: what retry_poison and discard_poison take.';
comment on column parley.poison_conversations.conversation_group_id is 'Its group.';
comment on column parley.poison_conversations.queue_name is 'Its queue, as statements take it.';
comment on column parley.poison_conversations.service_queue_id is 'Identity of the queue.';
comment on column parley.poison_conversations.service_name is 'Its service.';
comment on column parley.poison_conversations.far_service is 'Service of the other side.';
comment on column parley.poison_conversations.service_contract_name is 'Name of the contract.';
comment on column parley.poison_conversations.state is 'State of this side.';
comment on column parley.poison_conversations.message_type_name is 'Message type of the message that came back.';
comment on column parley.poison_conversations.queuing_order is 'Its position; putting it back gives it another.';
comment on column parley.poison_conversations.message_sequence_number is 'Its number in the conversation; -1 for Error and DialogTimer.';
comment on column parley.poison_conversations.message_enqueue_time is 'When it arrived.';
comment on column parley.poison_conversations.rollbacks is 'How often it came back.';
comment on column parley.poison_conversations.set_aside_since is 'When it was set aside.';
comment on column parley.poison_conversations.sqlstate is 'SQLSTATE of the last failure that was reported; null when none was, or it had none.';
comment on column parley.poison_conversations.error is 'Its text; null when nobody reported it, as when the reader was killed.';
comment on column parley.poison_conversations.error_time is 'When it was reported.';
comment on column parley.poison_conversations.waiting_messages is 'Messages that wait in the conversation, the poisonous one included.';
comment on column parley.poison_conversations.is_estimated is 'Whether there are more: 10,000 rows are counted.';

comment on column parley.failing_conversations.conversation_handle is 'Side that was received from.';
comment on column parley.failing_conversations.conversation_group_id is 'Its group.';
comment on column parley.failing_conversations.queue_name is 'Its queue, as statements take it.';
comment on column parley.failing_conversations.service_queue_id is 'Identity of the queue.';
comment on column parley.failing_conversations.service_name is 'Its service.';
comment on column parley.failing_conversations.far_service is 'Service of the other side.';
comment on column parley.failing_conversations.service_contract_name is 'Name of the contract.';
comment on column parley.failing_conversations.state is 'State of this side.';
comment on column parley.failing_conversations.message_type_name is 'Message type of its first message.';
comment on column parley.failing_conversations.queuing_order is 'Position of that message.';
comment on column parley.failing_conversations.message_sequence_number is 'Its number in the conversation; -1 for Error and DialogTimer.';
comment on column parley.failing_conversations.message_enqueue_time is 'When it arrived.';
comment on column parley.failing_conversations.rollbacks is 'How often it came back, as far as that is counted.';
comment on column parley.failing_conversations.sqlstate is 'SQLSTATE of the last failure that was reported, or null.';
comment on column parley.failing_conversations.error is 'Its text.';
comment on column parley.failing_conversations.error_time is 'When it was reported.';
comment on column parley.failing_conversations.waiting_messages is 'Messages that wait in the conversation.';
comment on column parley.failing_conversations.is_estimated is 'Whether there are more: 10,000 rows are counted.';

-- sql/300_catalog_views.sql

-- The catalog under Service Broker's own names and columns (spec 8.1). Who sees which row: 031_visible_objects.sql.

create view parley.databases as
select current_database() as name, d.oid as database_id, b.service_broker_guid, b.is_broker_enabled,
  b.is_priority_honored as is_honor_broker_priority_on,
  parley._p_broker_state() as broker_state, b.disabled_at
from parley._p_broker as b
join pg_catalog.pg_database as d on d.datname = current_database();

comment on view parley.databases is
'This database as a broker instance: its id, whether it is enabled, and whether it is where it was. The last two columns are ours.';

create view parley.service_message_types with (security_barrier) as
select
  t.name,
  t.message_type_id,
  t.owner::oid as principal_id,
  t.validation::text as validation,
  case t.validation when 'N' then 'NONE' when 'E' then 'EMPTY' when 'X' then 'XML' when 'J' then 'JSON' when 'F' then 'FUNCTION' end as validation_desc,
  null::integer as xml_collection_id,
  t.validation_function
from parley._p_message_type as t
where t.message_type_id < 65536
  or pg_catalog.pg_has_role(t.owner, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'message type')
  or t.message_type_id in (select v.object_id from parley._p_permitted_object as v where v.class = 'message type');

comment on view parley.service_message_types is 'Message types. principal_id is the oid of the owner; validation_function is ours.';

create view parley.service_contracts with (security_barrier) as
select c.name, c.service_contract_id, c.owner::oid as principal_id
from parley._p_contract as c
where c.service_contract_id < 65536
  or pg_catalog.pg_has_role(c.owner, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'contract')
  or c.service_contract_id in (select v.object_id from parley._p_permitted_object as v where v.class = 'contract');

comment on view parley.service_contracts is 'Contracts.';

create view parley.service_contract_message_usages with (security_barrier) as
select u.service_contract_id, u.message_type_id, u.is_sent_by_initiator, u.is_sent_by_target
from parley._p_contract_message_type as u
join parley.service_contracts as c using (service_contract_id);

comment on view parley.service_contract_message_usages is 'Which message types each contract has and who may send them.';

create view parley.services with (security_barrier) as
select s.name, s.service_id, s.owner::oid as principal_id, s.queue_id as service_queue_id
from parley._p_service as s
where s.service_id < 65536
  or pg_catalog.pg_has_role(s.owner, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'service')
  or s.service_id in (select v.object_id from parley._p_permitted_object as v where v.class = 'service');

comment on view parley.services is 'Services.';

create view parley.service_contract_usages with (security_barrier) as
select u.service_id, u.service_contract_id
from parley._p_service_contract as u
join parley.services as s using (service_id);

comment on view parley.service_contract_usages is 'Which contracts each service accepts as target.';

create view parley.service_queue_usages with (security_barrier) as
select s.service_id, s.service_queue_id
from parley.services as s;

comment on view parley.service_queue_usages is 'Which queue each service is bound to.';

create view parley.service_queues with (security_barrier) as
select
  q.name,
  q.queue_id as object_id,
  q.owner::oid as principal_id,
  q.schema_name,
  0 as parent_object_id,
  'SQ'::text as type,
  'SERVICE_QUEUE'::text as type_desc,
  q.create_date,
  q.modify_date,
  q.queue_id < 65536 as is_ms_shipped,
  false as is_published,
  false as is_schema_published,
  q.max_readers,
  q.activation_procedure,
  case q.execute_as
    when 'OWNER' then -2
    else (select r.oid::bigint from pg_catalog.pg_roles as r where pg_catalog.quote_ident(r.rolname) = q.execute_as or r.rolname = q.execute_as limit 1)
  end as execute_as_principal_id,
  q.is_activation_enabled,
  q.is_receive_enabled and not parley._p_is_poisoned(q.queue_id) as is_receive_enabled,
  q.is_enqueue_enabled,
  q.is_retention_enabled,
  q.is_poison_message_handling_enabled,
  q.poison_action,
  q.rollbacks_before_disable as poison_rollbacks,
  parley._p_count_set_aside(q.queue_id) as set_aside_conversations
from parley._p_queue as q
where q.queue_id < 65536
  or pg_catalog.pg_has_role(q.owner, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'queue')
  or q.queue_id in (select v.object_id from parley._p_permitted_object as v where v.class = 'queue');

comment on view parley.service_queues is
'Queues. is_receive_enabled is false too when poison message handling has disabled the queue. The last three columns are ours.';

create view parley.conversation_priorities with (security_barrier) as
select
  p.priority_id, p.name, p.service_contract_id, p.local_service_id, p.remote_service_name, p.priority
from parley._p_priority as p
where exists (select from parley._p_visible_class as v where v.class = 'database');

comment on view parley.conversation_priorities is 'Broker priorities; null means ANY.';

create view parley.permissions with (security_barrier) as
select
  p.class,
  p.object_id,
  o.name as object_name,
  p.permission,
  case p.grantee::oid when 0 then 'PUBLIC' else pg_catalog.pg_get_userbyid(p.grantee)::text end as grantee,
  pg_catalog.pg_get_userbyid(p.grantor)::text as grantor,
  p.is_grantable
from parley._p_permission as p
left join (
  select 'message type' as class, t.message_type_id as object_id, t.name, t.owner from parley._p_message_type as t
  union all
  select 'contract', c.service_contract_id, c.name, c.owner from parley._p_contract as c
  union all
  select 'queue', q.queue_id, q.lookup_name, q.owner from parley._p_queue as q
  union all
  select 'service', s.service_id, s.name, s.owner from parley._p_service as s
  union all
  select 'route', r.route_id, r.name, r.owner from parley._p_route as r
  union all
  select 'certificate', c.certificate_id, c.name, c.owner from parley._p_certificate as c
  union all
  select 'remote service binding', b.remote_service_binding_id, b.name, b.owner from parley._p_remote_service_binding as b
) as o on o.class = p.class and o.object_id = p.object_id
where p.grantee = 0::regrole
  or pg_catalog.pg_has_role(p.grantee, 'usage')
  or pg_catalog.pg_has_role(p.grantor, 'usage')
  or pg_catalog.pg_has_role(o.owner, 'usage')
  or p.class in (select v.class from parley._p_visible_class as v)
  or (p.class, p.object_id) in (
    select v.class, v.object_id from parley._p_permitted_object as v where v.permission in ('CONTROL', 'ALTER', 'VIEW DEFINITION')
  );

comment on view parley.permissions is
'What was granted to whom, besides the rights of owners and administrators: what you hold or have granted, and all that was granted on objects that you
own, control, may alter, or whose definition you may view.';

-- sql/305_route_views.sql

-- Routes under Service Broker's own names and columns (spec 8.1).

create view parley.routes with (security_barrier) as
select
  r.name,
  r.route_id,
  r.owner::oid as principal_id,
  r.remote_service_name,
  r.broker_instance,
  r.expires_at as lifetime,
  r.address,
  r.mirror_address,
  r.is_inbound,
  r.expires_at is not null and r.expires_at <= pg_catalog.clock_timestamp() as is_expired
from parley._p_route as r
where pg_catalog.pg_has_role(r.owner, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'route')
  or r.route_id in (select v.object_id from parley._p_permitted_object as v where v.class = 'route');

comment on view parley.routes is 'Routes, those for what arrives from the network too. The last two columns are ours.';
comment on column parley.routes.name is 'Its name.';
comment on column parley.routes.route_id is 'Identity of the route.';
comment on column parley.routes.principal_id is 'Oid of the owner.';
comment on column parley.routes.remote_service_name is 'Service that it leads to, compared byte by byte; null for any.';
comment on column parley.routes.broker_instance is 'Broker instance that it leads to; null for any.';
comment on column parley.routes.lifetime is 'When it expires; null for never.';
comment on column parley.routes.address is 'LOCAL, TRANSPORT, or tcp://host:port.';
comment on column parley.routes.mirror_address is 'Address of the second server of the target database, or null.';
comment on column parley.routes.is_inbound is 'Whether it is for what arrives from the network; others are for conversations of this database.';
comment on column parley.routes.is_expired is 'Whether it is not found any more; alter_route with a lifetime revives it.';

-- sql/310_conversation_views.sql

-- Conversations at run time, under Service Broker's own names and columns (spec 8.2), and what is wrong with them.
--
-- Everybody sees the conversations of roles he is a member of; administrators see all.

create view parley.conversation_endpoints with (security_barrier) as
select
  e.conversation_handle,
  e.conversation_id,
  e.is_initiator::integer::smallint as is_initiator,
  e.service_contract_id,
  g.conversation_group_id,
  e.service_id,
  e.lifetime,
  e.state,
  parley._p_state_name(e.state) as state_desc,
  e.far_service,
  e.far_broker_instance,
  e.owner::oid as principal_id,
  coalesce(d.far_principal, 0::oid) as far_principal_id,
  k.identifier as outbound_session_key_identifier,
  k.identifier as inbound_session_key_identifier,
  d.secured_at as security_timestamp,
  (select coalesce(a.first_due_at, a.due_at) from parley._p_alarm as a where a.endpoint_id = e.endpoint_id and a.kind = 'timer') as dialog_timer,
  coalesce(
    (select p.sequence from parley._p_receive_progress as p where p.endpoint_id = e.far_endpoint_id order by p.sequence desc limit 1),
    (select p.sequence from parley._p_send_progress as p where p.endpoint_id = e.endpoint_id order by p.sequence desc limit 1),
    0
  ) + coalesce(
    (
      select sum(coalesce(cardinality(m.frame), 1))
      from parley._p_message as m
      where m.endpoint_id = e.far_endpoint_id and m.message_type_id not in (-1, 1, 5)
    ), 0
  )::bigint + (select count(*) from parley._p_transmission as t where t.endpoint_id = e.endpoint_id) as send_sequence,
  null::bytea as last_send_tran_id,
  -1::bigint as end_dialog_sequence,
  coalesce((
    select p.sequence from parley._p_receive_progress as p where p.endpoint_id = e.endpoint_id order by p.sequence desc limit 1
  ), 0) as receive_sequence,
  0 as receive_sequence_frag,
  0::bigint as system_sequence,
  -1::bigint as first_out_of_order_sequence,
  -1::bigint as last_out_of_order_sequence,
  -1 as last_out_of_order_frag,
  e.service_id < 65536 as is_system,
  e.priority,
  e.begun_at,
  e.state_since,
  e.service_name,
  e.service_contract_name
from parley._p_endpoint as e
join parley._p_conversation_group as g using (group_id)
left join parley._p_dialog_security as d on d.conversation_id = e.conversation_id and d.is_initiator = e.is_initiator
cross join lateral (
  select case
    when d.mode is null then '00000000-0000-0000-0000-000000000000'::uuid
    when d.mode = 'full' then d.conversation_id
    else pg_catalog.encode(pg_catalog.substring(d.key_id, 1, 16), 'hex')::uuid
  end as identifier
) as k
where pg_catalog.pg_has_role(e.owner, 'usage') or (select parley._p_is_administrator(parley._p_current_role()))
union all
select
  t.conversation_handle,
  t.conversation_id,
  t.is_initiator::integer::smallint,
  t.service_contract_id,
  t.conversation_group_id,
  t.service_id,
  t.lifetime,
  'CD'::text,
  'CLOSED'::text,
  t.far_service,
  null::text,
  t.owner::oid,
  0::oid,
  '00000000-0000-0000-0000-000000000000'::uuid,
  '00000000-0000-0000-0000-000000000000'::uuid,
  t.expires_at,
  null::timestamptz,
  0::bigint,
  null::bytea,
  -1::bigint,
  0::bigint,
  0,
  0::bigint,
  -1::bigint,
  -1::bigint,
  -1,
  t.service_id < 65536,
  t.priority,
  null::timestamptz,
  null::timestamptz,
  s.name,
  c.name
from parley._p_tombstone as t
left join parley._p_service as s using (service_id)
left join parley._p_contract as c using (service_contract_id)
where pg_catalog.pg_has_role(t.owner, 'usage') or (select parley._p_is_administrator(parley._p_current_role()));

comment on view parley.conversation_endpoints is
'Both sides of all conversations. Closed targets (CD) are shown until security_timestamp, when they are forgotten. The last four columns are ours.';

create view parley.conversation_groups with (security_barrier) as
select g.conversation_group_id, g.service_id, g.service_id < 65536 as is_system
from parley._p_conversation_group as g
join parley._p_service as s using (service_id)
where pg_catalog.pg_has_role(s.owner, 'usage') or (select parley._p_is_administrator(parley._p_current_role()));

comment on view parley.conversation_groups is 'Conversation groups.';

create view parley.stuck_conversations as
select
  e.conversation_handle,
  e.conversation_group_id,
  e.service_name,
  e.far_service,
  e.state,
  case when a.endpoint_id is not null then a.set_aside_at when e.state = 'CO' then coalesce(t.oldest, w.oldest) else e.state_since end as state_since,
  w.waiting,
  case
    when a.endpoint_id is not null then format(
      'It is set aside: a message came back %s times.%s',
      a.rollbacks,
      coalesce((select format(' The last error: %s', f.error) from parley._p_failure as f where f.endpoint_id = a.endpoint_id), '')
    )
    when e.state = 'DI' and w.waiting = 0 then 'The other side has ended and everything was received, but this side was not ended.'
    when e.state = 'DI' then 'The other side has ended; messages wait to be received.'
    when e.state = 'ER' then 'The conversation has failed; its Error message was not answered by END CONVERSATION.'
    when e.state = 'DO' then 'This side has ended; the other side has not.'
    when e.state = 'CO' and t.oldest is not null then 'Messages cannot be delivered: ' || t.status
    when e.state = 'SO' then 'The dialog was begun, but nothing was sent.'
    else 'Messages wait to be received.'
  end as reason,
  case
    when a.endpoint_id is not null then format('select parley.retry_poison(%L);', e.conversation_handle)
    when e.state = 'DO' then 'End the other side.'
    when e.state = 'CO' and t.oldest is not null then 'Create the target service, or end the conversation.'
    when w.waiting > 0 then 'Receive from the queue of the service.'
    else format('select parley.end_conversation(%L);', e.conversation_handle)
  end as remedy
from parley.conversation_endpoints as e
join parley._p_endpoint as p using (conversation_handle)
left join lateral (
  select coalesce(sum(coalesce(cardinality(m.frame), 1)), 0)::bigint as waiting, min(m.enqueued_at) as oldest
  from parley._p_message as m
  where m.endpoint_id = p.endpoint_id
) as w on true
left join lateral (
  select min(x.enqueued_at) as oldest, max(x.transmission_status) as status from parley._p_transmission as x where x.endpoint_id = p.endpoint_id
) as t on true
left join parley._p_set_aside as a on a.endpoint_id = p.endpoint_id and e.state <> 'DO'
where e.state in ('DI', 'DO', 'ER', 'SO') or t.oldest is not null or w.waiting > 0;

comment on view parley.stuck_conversations is
'Conversations that wait for somebody: not ended, not read, not deliverable, set aside; with the reason, since when, and what to do.
While both sides may send, state_since is the age of the oldest message that waits.';

create function parley.leaked_conversations(older_than interval default '1 hour') returns setof parley.stuck_conversations
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select s.* from parley.stuck_conversations as s where s.state_since < clock_timestamp() - older_than
$$;

comment on function parley.leaked_conversations(interval) is
'Gives the conversations that have been stuck in their state for longer than an interval.
Arguments: older_than, default one hour.';

-- sql/311_transmission_queue.sql

-- The transmission queue as one view (spec 8.2): whatever was sent and is not with its target yet, and why.
--
-- It waits for a way (_p_transmission), for its turn on the lane of a destination (_p_message), for the answer of the far side (_p_transit), or, between
-- services of this database, for the queue of the target to be switched on again.
-- The number of a message is the one that it is received with. What stands outside the order, an Error of the broker or one between services of this
-- database, has -1, as in RECEIVE. A conversation that waits is looked at once for where its numbers begin, not once for each of its messages.

create view parley.transmission_queue with (security_barrier) as
select
  e.conversation_handle,
  e.far_service as to_service_name,
  e.far_broker_instance as to_broker_instance,
  e.service_name as from_service_name,
  e.service_contract_name,
  w.enqueued_at as enqueue_time,
  case
    when w.message_type_id = -1 or w.message_type_id = 1 and e.far_endpoint_id > 0 then -1
    else coalesce(
      n.delivered, (select p.sequence from parley._p_send_progress as p where p.endpoint_id = w.endpoint_id order by p.sequence desc limit 1), 0
    ) + count(*) filter (where w.message_type_id <> -1) over (
      partition by w.endpoint_id order by w.stage, w.position, w.ordinal rows unbounded preceding
    ) - w.numbered - 1
  end as message_sequence_number,
  y.name as message_type_name,
  y.message_type_id = 1 as is_conversation_error,
  y.message_type_id = 2 as is_end_of_dialog,
  w.body as message_body,
  coalesce(w.status, (select p.status from parley._p_parked as p where p.endpoint_id = w.endpoint_id), d.status, '') as transmission_status,
  e.priority,
  d.address,
  coalesce((select p.attempts from parley._p_parked as p where p.endpoint_id = w.endpoint_id), d.attempts, 0) as attempts,
  coalesce((select p.due_at from parley._p_parked as p where p.endpoint_id = w.endpoint_id and p.due_at < 'infinity'), d.due_at) as next_attempt_time
from (
  select t.endpoint_id, 1 as stage, t.first_sequence as position, b.ordinal, t.enqueued_at, t.message_type_id, b.body, null::text as status,
    t.destination_id, sum(case when t.message_type_id = -1 then 0 else 1 end) over (partition by t.endpoint_id) as numbered
  from parley._p_transit as t
  cross join lateral unnest(coalesce(t.frame, array[t.body])) with ordinality as b (body, ordinal)
  union all
  select -m.endpoint_id, 2, m.position, b.ordinal, m.enqueued_at, m.message_type_id, b.body, null::text as status, l.destination_id,
    (
      select coalesce(sum(o.next_sequence - o.first_sequence), 0)
      from parley._p_transit as o where o.endpoint_id = -m.endpoint_id and o.message_type_id <> -1
    )
  from parley._p_destination as l
  join parley._p_message as m on m.lane >= l.destination_id * 16 + 1 and m.lane <= l.destination_id * 16 + 10
  cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
  union all
  select t.endpoint_id, 3, t.transmission_id, 1, t.enqueued_at, t.message_type_id, t.body, t.transmission_status, null::integer as destination_id,
    (
      select coalesce(sum(o.next_sequence - o.first_sequence), 0)
      from parley._p_transit as o where o.endpoint_id = t.endpoint_id and o.message_type_id <> -1
    )
  from parley._p_transmission as t
) as w
join parley._p_endpoint as e on e.endpoint_id = w.endpoint_id
join parley._p_message_type as y on y.message_type_id = abs(w.message_type_id)
left join parley._p_destination as d on d.destination_id = w.destination_id
-- Between services of this database it waits behind what was delivered.
left join (
  select k.endpoint_id, coalesce(r.sequence, 0) + l.waiting as delivered
  from (select distinct t.endpoint_id from parley._p_transmission as t) as k
  join parley._p_endpoint as o on o.endpoint_id = k.endpoint_id and o.far_endpoint_id > 0
  left join lateral (
    select p.sequence from parley._p_receive_progress as p where p.endpoint_id = o.far_endpoint_id order by p.sequence desc limit 1
  ) as r on true
  cross join lateral (
    select coalesce(sum(coalesce(cardinality(m.frame), 1)), 0)::bigint as waiting
    from parley._p_message as m
    where m.endpoint_id = o.far_endpoint_id and m.message_type_id not in (1, 5)
  ) as l
) as n on n.endpoint_id = w.endpoint_id
where (select parley._p_is_administrator(parley._p_current_role()))
union all
select
  e.conversation_handle,
  e.far_service,
  e.far_broker_instance,
  e.service_name,
  e.service_contract_name,
  m.enqueued_at,
  case
    when m.message_type_id = 1 then -1
    else q.delivered + count(*) filter (where m.message_type_id <> 1) over (
      partition by m.endpoint_id order by m.position, b.ordinal rows unbounded preceding
    ) - 1
  end,
  y.name,
  m.message_type_id = 1,
  m.message_type_id = 2,
  b.body,
  format('The queue "%s" of the target service is disabled.', q.lookup_name),
  e.priority,
  null::text as address,
  0 as attempts,
  null::timestamptz as next_attempt_time
from (
  select h.lookup_name, h.disabled_position, h.endpoint_id, coalesce(r.sequence, 0) + l.waiting as delivered
  from (
    select distinct k.lookup_name, k.disabled_position, o.endpoint_id
    from parley._p_queue as k
    join parley._p_message as o on o.lane >= k.queue_id * 16 + 1 and o.lane <= k.queue_id * 16 + 10 and o.position >= k.disabled_position
    where k.disabled_position is not null
  ) as h
  left join lateral (
    select p.sequence from parley._p_receive_progress as p where p.endpoint_id = h.endpoint_id order by p.sequence desc limit 1
  ) as r on true
  cross join lateral (
    select coalesce(sum(coalesce(cardinality(o.frame), 1)), 0)::bigint as waiting
    from parley._p_message as o
    where o.endpoint_id = h.endpoint_id and o.position < h.disabled_position and o.message_type_id not in (1, 5)
  ) as l
) as q
-- A timer that fires while the queue is off was sent by nobody.
join parley._p_message as m on m.endpoint_id = q.endpoint_id and m.position >= q.disabled_position and m.message_type_id <> 5
join parley._p_endpoint as f on f.endpoint_id = m.endpoint_id
join parley._p_endpoint as e on e.endpoint_id = f.far_endpoint_id
join parley._p_message_type as y on y.message_type_id = m.message_type_id
cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
where (select parley._p_is_administrator(parley._p_current_role()));

comment on view parley.transmission_queue is
'Messages that were sent and are not with their target yet, and why; for administrators. The last three columns are ours: the address they go to, how
many attempts have failed, and when the next is due. An empty status means: not tried yet, or sent and not answered yet.';

create function parley.get_transmission_status(
  conversation_handle uuid,
  caller parley.caller default parley.current_caller()
) returns text
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_endpoint parley._p_endpoint;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = get_transmission_status.conversation_handle;
  if not found then
    return '';
  end if;
  if parley._p_may_look_at(v_caller, v_endpoint) is not true then
    perform parley._p_raise(
      229,
      'permission denied: GET_TRANSMISSION_STATUS',
      format('The conversation belongs to %s; role %s may not receive from its queue either.', v_endpoint.owner, v_caller::regrole),
      'Ask the owner of the service, or an administrator.'
    );
  end if;
  return coalesce(
    (
      select t.transmission_status
      from parley._p_transmission as t where t.endpoint_id = v_endpoint.endpoint_id order by t.transmission_id desc limit 1
    ),
    (select p.status from parley._p_parked as p where p.endpoint_id = v_endpoint.endpoint_id),
    (
      select nullif(d.status, '')
      from parley._p_destination as d
      where d.destination_id = v_endpoint.destination_id
        and (
          exists (select from parley._p_transit as t where t.endpoint_id = v_endpoint.endpoint_id)
          or exists (select from parley._p_message as m where m.endpoint_id = -v_endpoint.endpoint_id)
        )
    ),
    (
      select format('The queue "%s" of the target service is disabled.', q.lookup_name)
      from parley._p_endpoint as f
      join parley._p_service as s using (service_id)
      join parley._p_queue as q using (queue_id)
      cross join lateral (
        select from parley._p_message as m where m.endpoint_id = f.endpoint_id and m.position >= q.disabled_position limit 1
      ) as w
      where f.endpoint_id = v_endpoint.far_endpoint_id
    ),
    ''
  );
end
$$;

comment on function parley.get_transmission_status(uuid, parley.caller) is
'Tells why the last message of this side of a conversation is still on its way; empty when nothing is known against it, or the handle is unknown.
Arguments: conversation_handle.
Errors: 229 neither owner of the conversation nor reader of its queue.
Source: spec 4.8.';

-- sql/320_view_columns.sql

-- What the columns of the views mean. The names are Service Broker's, and so are the meanings; a column whose subject this
-- broker does not have keeps its place with the value that Service Broker gives to a conversation without it.

comment on column parley.databases.name is 'This database.';
comment on column parley.databases.database_id is 'Its oid.';
comment on column parley.databases.service_broker_guid is 'Its identity as a broker instance, which BEGIN DIALOG may name.';
comment on column parley.databases.is_broker_enabled is 'Whether the broker is enabled.';
comment on column parley.databases.is_honor_broker_priority_on is 'Whether priorities also order what leaves the database (parley.honor_broker_priority).';
comment on column parley.databases.broker_state is
'ENABLED, DISABLED, or ELSEWHERE: this is not the database in which the broker was enabled last (parley.attach_broker).';
comment on column parley.databases.disabled_at is 'Since when the broker is disabled; null while it is enabled.';

comment on column parley.service_message_types.name is 'Compared byte by byte.';
comment on column parley.service_message_types.message_type_id is 'Below 65536 when built in.';
comment on column parley.service_message_types.principal_id is 'Oid of the owner.';
comment on column parley.service_message_types.validation is 'What a body must be: N anything, E nothing, X XML, J JSON, F what validation_function says.';
comment on column parley.service_message_types.validation_desc is 'NONE, EMPTY, XML, JSON or FUNCTION.';
comment on column parley.service_message_types.xml_collection_id is 'Always null: PostgreSQL has no XML schema collections.';
comment on column parley.service_message_types.validation_function is 'Function that says whether a body is good, or null.';

comment on column parley.service_contracts.name is 'Compared byte by byte.';
comment on column parley.service_contracts.service_contract_id is 'Below 65536 when built in.';
comment on column parley.service_contracts.principal_id is 'Oid of the owner.';

comment on column parley.service_contract_message_usages.service_contract_id is 'Contract.';
comment on column parley.service_contract_message_usages.message_type_id is 'Message type that is part of it.';
comment on column parley.service_contract_message_usages.is_sent_by_initiator is 'Whether the initiator may send it.';
comment on column parley.service_contract_message_usages.is_sent_by_target is 'Whether the target may send it; both is SENT BY ANY.';

comment on column parley.services.name is 'Compared byte by byte.';
comment on column parley.services.service_id is 'Below 65536 when built in.';
comment on column parley.services.principal_id is 'Oid of the owner.';
comment on column parley.services.service_queue_id is 'Queue that its messages arrive in.';

comment on column parley.service_contract_usages.service_id is 'Service.';
comment on column parley.service_contract_usages.service_contract_id is 'Contract that it accepts as target.';

comment on column parley.service_queue_usages.service_id is 'Service.';
comment on column parley.service_queue_usages.service_queue_id is 'Queue that it is bound to.';

comment on column parley.service_queues.name is 'Name without its schema.';
comment on column parley.service_queues.object_id is 'Identity of the queue; below 65536 when built in.';
comment on column parley.service_queues.principal_id is 'Oid of the owner.';
comment on column parley.service_queues.schema_name is 'Schema of the queue, a part of its name only; dbo may be left out.';
comment on column parley.service_queues.parent_object_id is 'Always 0.';
comment on column parley.service_queues.type is 'Always SQ.';
comment on column parley.service_queues.type_desc is 'Always SERVICE_QUEUE.';
comment on column parley.service_queues.create_date is 'When it was created.';
comment on column parley.service_queues.modify_date is 'When its settings were changed last.';
comment on column parley.service_queues.is_ms_shipped is 'Whether it is the broker''s own.';
comment on column parley.service_queues.is_published is 'Always false.';
comment on column parley.service_queues.is_schema_published is 'Always false.';
comment on column parley.service_queues.max_readers is 'MAX_QUEUE_READERS of activation.';
comment on column parley.service_queues.activation_procedure is 'Procedure that activation runs, or null.';
comment on column parley.service_queues.execute_as_principal_id is 'Oid of the role that activation runs as; -2 is the owner of the queue.';
comment on column parley.service_queues.is_activation_enabled is 'Whether activation is on.';
comment on column parley.service_queues.is_receive_enabled is 'Whether messages can be received.';
comment on column parley.service_queues.is_enqueue_enabled is 'Whether messages can arrive.';
comment on column parley.service_queues.is_retention_enabled is 'Whether copies are kept until the conversation ends.';
comment on column parley.service_queues.is_poison_message_handling_enabled is 'Whether rollbacks of a message are counted.';
comment on column parley.service_queues.poison_action is 'What becomes of a message that has come back too often: SET_ASIDE or DISABLE_QUEUE.';
comment on column parley.service_queues.poison_rollbacks is 'How often is too often.';
comment on column parley.service_queues.set_aside_conversations is 'Conversations that are set aside: see parley.poison_conversations.';

comment on column parley.conversation_priorities.priority_id is 'Identity of the priority.';
comment on column parley.conversation_priorities.name is 'Its name.';
comment on column parley.conversation_priorities.service_contract_id is 'Contract it is for, or null for ANY.';
comment on column parley.conversation_priorities.local_service_id is 'Service on this side, or null for ANY.';
comment on column parley.conversation_priorities.remote_service_name is 'Service on the other side, or null for ANY.';
comment on column parley.conversation_priorities.priority is 'Level that a new endpoint gets: 1 (low) to 10 (high).';

comment on column parley.permissions.class is 'What it is on: database, message type, contract, queue, service or route.';
comment on column parley.permissions.object_id is 'Identity of the object; 0 for the database.';
comment on column parley.permissions.object_name is 'Name of the object; null for the database.';
comment on column parley.permissions.permission is 'Such as SEND or RECEIVE.';
comment on column parley.permissions.grantee is 'Role that holds it, or PUBLIC.';
comment on column parley.permissions.grantor is 'Role that granted it.';
comment on column parley.permissions.is_grantable is 'Whether the grantee may grant it on.';

comment on column parley.conversation_endpoints.conversation_handle is 'What statements call this side by; each side has its own.';
comment on column parley.conversation_endpoints.conversation_id is 'Identity of the conversation, the same on both sides.';
comment on column parley.conversation_endpoints.is_initiator is '1 on the side that began the dialog, 0 on the target''s.';
comment on column parley.conversation_endpoints.service_contract_id is 'Contract.';
comment on column parley.conversation_endpoints.conversation_group_id is 'Group that this side is received and locked with.';
comment on column parley.conversation_endpoints.service_id is 'Service of this side.';
comment on column parley.conversation_endpoints.lifetime is 'When the conversation ends with an error if it is still open.';
comment on column parley.conversation_endpoints.state is 'SO, SI, CO, DI, DO, ER or CD; see the page on concepts.';
comment on column parley.conversation_endpoints.state_desc is 'The same in words.';
comment on column parley.conversation_endpoints.far_service is 'Service of the other side.';
comment on column parley.conversation_endpoints.far_broker_instance is 'Broker instance of the other side; null before it is known.';
comment on column parley.conversation_endpoints.principal_id is 'Oid of the owner of this side.';
comment on column parley.conversation_endpoints.far_principal_id is
'Oid of the role that stands for the other side of a secured dialog; 0 when it is not secured, or the initiator is anonymous.';
comment on column parley.conversation_endpoints.outbound_session_key_identifier is
'All zeros: not secured. In an anonymous dialog it names the session key; in full security keys do not last, and it is the conversation_id.';
comment on column parley.conversation_endpoints.inbound_session_key_identifier is 'As outbound_session_key_identifier.';
comment on column parley.conversation_endpoints.security_timestamp is
'When the dialog was secured, null when it is not; of a closed target: when it is forgotten.';
comment on column parley.conversation_endpoints.dialog_timer is 'When the conversation timer of this side fires, or null.';
comment on column parley.conversation_endpoints.send_sequence is 'Number of the next message sent, as far as it is known.';
comment on column parley.conversation_endpoints.last_send_tran_id is 'Always null.';
comment on column parley.conversation_endpoints.end_dialog_sequence is 'Always -1.';
comment on column parley.conversation_endpoints.receive_sequence is 'Number of the next message received.';
comment on column parley.conversation_endpoints.receive_sequence_frag is 'Always 0: messages are not cut into fragments.';
comment on column parley.conversation_endpoints.system_sequence is 'Always 0.';
comment on column parley.conversation_endpoints.first_out_of_order_sequence is 'Always -1: nothing arrives out of order.';
comment on column parley.conversation_endpoints.last_out_of_order_sequence is 'Always -1.';
comment on column parley.conversation_endpoints.last_out_of_order_frag is 'Always -1.';
comment on column parley.conversation_endpoints.is_system is 'Whether it is the broker''s own.';
comment on column parley.conversation_endpoints.priority is 'Level of this side, 1 to 10, fixed when it was created.';
comment on column parley.conversation_endpoints.begun_at is 'When this side was created; null when closed.';
comment on column parley.conversation_endpoints.state_since is 'When it got into this state; null when closed.';
comment on column parley.conversation_endpoints.service_name is 'Name of the service of this side.';
comment on column parley.conversation_endpoints.service_contract_name is 'Name of the contract.';

comment on column parley.conversation_groups.conversation_group_id is 'Identity of the group, a key for state of your own.';
comment on column parley.conversation_groups.service_id is 'Service whose conversations it holds.';
comment on column parley.conversation_groups.is_system is 'Whether it is the broker''s own.';

comment on column parley.transmission_queue.conversation_handle is 'Side that sent the message.';
comment on column parley.transmission_queue.to_service_name is 'Service it is for.';
comment on column parley.transmission_queue.to_broker_instance is 'Broker instance it is for, or null.';
comment on column parley.transmission_queue.from_service_name is 'Service that sent it.';
comment on column parley.transmission_queue.service_contract_name is 'Contract.';
comment on column parley.transmission_queue.enqueue_time is 'When it was sent.';
comment on column parley.transmission_queue.message_sequence_number is
'Its number in its conversation, from 0; for a target in this database its place among those that wait.';
comment on column parley.transmission_queue.message_type_name is 'Message type.';
comment on column parley.transmission_queue.is_conversation_error is 'Whether it is an Error message.';
comment on column parley.transmission_queue.is_end_of_dialog is 'Whether it is an EndDialog message.';
comment on column parley.transmission_queue.message_body is 'Body, or null.';
comment on column parley.transmission_queue.transmission_status is 'Why it is still here.';
comment on column parley.transmission_queue.priority is 'Level of the side that sent it.';
comment on column parley.transmission_queue.address is 'Where it goes, when a route was found that leads out of the database.';
comment on column parley.transmission_queue.attempts is 'How many attempts to get there have failed since the last that did not.';
comment on column parley.transmission_queue.next_attempt_time is 'When the next attempt is due; null when nothing stands against it.';

comment on column parley.stuck_conversations.conversation_handle is 'Side that waits.';
comment on column parley.stuck_conversations.conversation_group_id is 'Its group.';
comment on column parley.stuck_conversations.service_name is 'Its service.';
comment on column parley.stuck_conversations.far_service is 'Service of the other side.';
comment on column parley.stuck_conversations.state is 'State of this side.';
comment on column parley.stuck_conversations.state_since is 'Since when it has been in that state.';
comment on column parley.stuck_conversations.waiting is 'Messages that this side has to receive.';
comment on column parley.stuck_conversations.reason is 'Whom it waits for.';
comment on column parley.stuck_conversations.remedy is 'What to do, often as a statement.';

comment on column parley.received_message.status is
'1 ready, 2 of a conversation that is set aside, 0 received (and retained), 3 copy of a sent message; RECEIVE gives 0.';
comment on column parley.received_message.priority is 'Of the conversation: 1 (low) to 10 (high).';
comment on column parley.received_message.queuing_order is 'Position in the queue; later arrivals have larger ones.';
comment on column parley.received_message.conversation_group_id is 'Group, locked to the end of the transaction by RECEIVE.';
comment on column parley.received_message.conversation_handle is 'Handle of the side that receives: answer and end with it.';
comment on column parley.received_message.message_sequence_number is 'Number in this direction, from 0 without gaps; -1 for Error and DialogTimer.';
comment on column parley.received_message.service_name is 'Service that it arrived at.';
comment on column parley.received_message.service_id is 'Identity of that service.';
comment on column parley.received_message.service_contract_name is 'Contract of the conversation.';
comment on column parley.received_message.service_contract_id is 'Identity of that contract.';
comment on column parley.received_message.message_type_name is 'Message type.';
comment on column parley.received_message.message_type_id is 'Identity of the message type.';
comment on column parley.received_message.validation is 'What the message type asks of a body: N, E, X, J or F.';
comment on column parley.received_message.message_body is 'Body, or null when there is none; parley.body_text reads it as text.';
comment on column parley.received_message.message_enqueue_time is 'When it arrived.';
comment on column parley.received_message.message_id is 'Identity of the message, in views of queues; RECEIVE leaves it null.';
comment on column parley.received_message.trace_context is 'W3C trace context that the sender gave it with send_traced, or null.';

-- sql/400_leadership.sql

-- Which daemon leads: any number may run on one database, and one of them starts readers and fires timers.
--
-- The row holds the term, which grows with each change of leader and with each clean stop. Whatever the leader changes, it changes in a
-- transaction that first calls _p_holds_term: that locks the row FOR SHARE, and taking over waits for it, so a leader that was paused
-- and whose term is over changes nothing any more. Until when the leader is believed to live stands in a sequence, because it is renewed
-- every other second: a row would leave a dead version each time, and an old snapshot would keep them all. A renewal by a leader
-- that was just replaced may slip through; it lengthens the lease of the new one, no more.
-- Clocks: leases are set and judged by the server's clock. A lease that ends in the far future, after the clock was set back, counts as over.
-- Locks: the row, FOR SHARE by the leader's statements, FOR UPDATE by who takes over or resigns.

create table parley._p_leader (
  leader_id boolean primary key default true check (leader_id),
  term bigint not null default 0,
  leader text,
  leads_since timestamptz,
  -- Tells apart two copies of this database in which a daemon leads under the same term.
  token uuid not null default gen_random_uuid(),
  -- The role that it logged in as.
  login regrole
);

comment on table parley._p_leader is 'One row: the daemon that leads, and its term. Until when it leads: the sequence _p_leader_lease.';

insert into parley._p_leader (leader_id) values (true);

-- Until when the leader is believed to live: microseconds since 1970.
create sequence parley._p_leader_lease minvalue 0 start 0;

create function parley._p_is_led() returns boolean
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select l.until > n.now and l.until < n.now + 60000000
  from (select coalesce(pg_sequence_last_value('parley._p_leader_lease'), 0) as until) as l
  cross join (select extract(epoch from clock_timestamp()) * 1000000 as now) as n
$$;

comment on function parley._p_is_led() is 'Tells whether a daemon leads whose lease is not over.';

create function parley._p_current_term() returns bigint
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select l.term from parley._p_leader as l where parley._p_is_led()
$$;

comment on function parley._p_current_term() is 'Gives the term of the daemon that leads, or null when none does.';

create function parley._p_holds_term(term bigint) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform from parley._p_leader as l where l.term = _p_holds_term.term and l.leader is not null for share;
  return found;
end
$$;

comment on function parley._p_holds_term(bigint) is
'Tells whether a term is the current one, and keeps it so to the end of the transaction.
Arguments: term, as _p_lead gave it.';

create function parley._p_lease(milliseconds integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform setval('parley._p_leader_lease', (extract(epoch from clock_timestamp()) * 1000000)::bigint + milliseconds * 1000::bigint);
end
$$;

comment on function parley._p_lease(integer) is 'Lets the lease of the leader end so many milliseconds from now.';

create function parley._p_lead(leader text, term bigint, milliseconds integer) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_term bigint;
begin
  select l.term into v_term from parley._p_leader as l where l.term = _p_lead.term and l.leader is not null;
  if found then
    -- Nothing is lost when a crash takes the renewal back.
    perform set_config('synchronous_commit', 'off', true);
    perform parley._p_lease(milliseconds);
    perform parley._p_note_timeline();
    return v_term;
  elsif parley._p_is_led() then
    return null;
  end if;
  perform from parley._p_leader as l for update;
  -- Somebody else may have taken over while we waited for the row.
  if parley._p_is_led() then
    return null;
  end if;
  update parley._p_leader as l
  set term = l.term + 1, leader = _p_lead.leader, leads_since = clock_timestamp(), token = gen_random_uuid(),
    login = (select r.oid::regrole from pg_roles as r where r.rolname = session_user)
  returning l.term into v_term;
  perform parley._p_lease(milliseconds);
  perform parley._p_note_timeline();
  -- A copy of a database must not do the work of the original: see 290_broker_identity.sql.
  perform parley.attach_broker();
  return v_term;
end
$$;

comment on function parley._p_lead(text, bigint, integer) is
'Renews the lease of the leader whose term this is, or takes over when nobody leads; gives the term, or null when another daemon leads.
Arguments: leader, the name of the daemon; term that it held, or 0; milliseconds that the lease lasts.';

create function parley._p_may_begin_reader(term bigint, queue_id integer, role text, milliseconds integer) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_left_ms bigint;
begin
  if not parley._p_holds_term(term) then
    return false;
  end if;
  v_left_ms := (pg_sequence_last_value('parley._p_leader_lease') - extract(epoch from clock_timestamp()) * 1000000) / 1000;
  if v_left_ms is null or v_left_ms < milliseconds then
    return false;
  end if;
  perform parley._p_require_reader(queue_id);
  return role is null or exists (
    select
    from parley._p_queue as q
    join pg_roles as r on r.oid = parley._p_execute_as(q.execute_as, q.owner)
    where q.queue_id = _p_may_begin_reader.queue_id and q.is_activation_enabled and r.rolname = role
  );
end
$$;

comment on function parley._p_may_begin_reader(bigint, integer, text, integer) is
'Tells whether the daemon that has a term may start a reader of a queue now: its lease lasts, and the queue still says that role.
Arguments: term, as _p_lead gave it; queue_id; role that a procedure runs as, or null for another kind of reader; milliseconds that the lease must last.
Errors: SQLSTATE 42501 when who said what reads may not, or no longer.';

create function parley._p_begin_reader(term bigint, queue_id integer, role text, is_direct boolean) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_left_ms bigint;
begin
  if not parley._p_may_begin_reader(term, queue_id, role, 1000) then
    return false;
  end if;
  if is_direct then
    -- The call has to come while nobody else can lead: a daemon that is paused in between finds that its session has ended.
    v_left_ms := (pg_sequence_last_value('parley._p_leader_lease') - extract(epoch from clock_timestamp()) * 1000000) / 1000;
    perform set_config('idle_session_timeout', greatest(1, least(v_left_ms - 500, 2000))::text, false);
    perform set_config('role', case when role = session_user then 'none' else role end, false);
  end if;
  return true;
end
$$;

comment on function parley._p_begin_reader(bigint, integer, text, boolean) is
'Tells whether the daemon that has a term may start a reader in this session now, which is then ended by the server unless a statement comes before the
lease can be over, two seconds at most. Neither the daemon''s clock nor its being awake matters.
Arguments: term, as _p_lead gave it; queue_id; role that the reader runs as; is_direct, false behind a pooler, where nothing can be set for a session.
Errors: SQLSTATE 42501 when who said what reads may not, or no longer.';

create function parley._p_resign(term bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley._p_leader as l set term = l.term + 1, leader = null, leads_since = null where l.term = _p_resign.term and l.leader is not null;
  if found then
    perform setval('parley._p_leader_lease', 0);
    perform pg_notify('parley', 'leader');
  end if;
end
$$;

comment on function parley._p_resign(bigint) is
'Ends a term before its time, and tells the other daemons that nobody leads. The statements of that term are refused from now on.';

-- sql/401_receivable_work.sql

-- What the queue monitors of the daemon ask: in which queues can messages be received, by how many readers at once?
--
-- The question must not disturb the readers it is asked for. A look that locked groups, even for an instant, would make a RECEIVE skip
-- them; so it reads the xmax of the group's row instead: whoever has the row locked is there, and pg_xact_status tells whether that
-- transaction is still running (pg_locks does not know all subtransactions, a snapshot knows none). Rows of groups are never updated, and
-- always locked FOR UPDATE, so xmax is always one transaction.
-- The answer is old when it arrives; a reader too many finds nothing and leaves.
-- Cost: an index probe for each queue without messages; for others the first rows of the lane, rows_max of them at most. No lock, no write.

create function parley._p_is_running(transaction_id xid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_next bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  v_age bigint := (v_next - transaction_id::text::bigint) & 4294967295;
begin
  if transaction_id::text in ('0', '1', '2') then
    return false;
  elsif v_age = 0 or v_age > 2147483647 then
    -- It has begun since we began to look.
    return true;
  end if;
  return coalesce(pg_xact_status((v_next - v_age)::text::xid8) = 'in progress', false);
end
$$;

comment on function parley._p_is_running(xid) is 'Tells whether a transaction or subtransaction, such as the xmax of a row, has not ended yet.';

create function parley._p_receivable(queue_ids integer[], readers_max integer[], rows_max integer)
returns table (queue_id integer, groups integer, head bigint, is_partial boolean)
language plpgsql stable rows 10
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_lane record;
  v_found record;
begin
  for v_lane in
    select q.queue_id, a.lane, w.readers_max, h.blocked_endpoints, h.blocked_positions, coalesce(h.low_position, 0) as low,
      coalesce(h.resume_position, 0) as resume
    from unnest(_p_receivable.queue_ids, _p_receivable.readers_max) as w (queue_id, readers_max)
    join parley._p_queue as q on q.queue_id = w.queue_id
    cross join lateral (
      -- The lanes of _p_lane, spelled out for the usual case.
      select q.queue_id * 16 + 6 as lane where q.priorities = 32
      union all
      select q.queue_id * 16 + 11 - p.n from generate_series(10, 1, -1) as p (n) where q.priorities <> 32 and q.priorities & (1 << p.n) > 0
    ) as a
    left join lateral (
      select s.blocked_endpoints, s.blocked_positions, s.low_position, s.resume_position
      from parley._p_scan_hint as s
      where s.lane = a.lane
      order by s.lane desc, s.hint_id desc
      limit 1
    ) as h on true
    where q.is_receive_enabled
      and exists (select from parley._p_message as m where m.lane = a.lane and m.position >= coalesce(h.low_position, 0))
    order by q.queue_id, a.lane
  loop
    -- Not among the conditions above: it would be asked for each queue that is empty too.
    continue when parley._p_is_poisoned(v_lane.queue_id);
    if queue_id is distinct from v_lane.queue_id then
      if groups > 0 or is_partial then
        return next;
      end if;
      queue_id := v_lane.queue_id;
      groups := 0;
      head := null;
      is_partial := false;
    end if;
    continue when groups >= v_lane.readers_max;
    select count(*) filter (where w.is_free) as groups, min(w.first) filter (where w.is_free) as head, coalesce(sum(w.rows), 0) as rows
    into v_found
    from (
      select f.first, f.rows, not parley._p_is_running(g.xmax) as is_free
      from (
        select e.group_id, min(m.position) as first, count(*) as rows
        from (
          select n.endpoint_id, n.position
          from parley._p_message as n
          where n.lane = v_lane.lane and n.position >= greatest(v_lane.low, v_lane.resume)
          order by n.position
          limit rows_max
        ) as m
        join parley._p_endpoint as e
          on e.endpoint_id = m.endpoint_id and e.state <> 'DO' and (e.is_plain or not parley._p_is_set_aside(e.endpoint_id))
        group by e.group_id
        union all
        -- Groups that were locked when a reader passed them by.
        select e.group_id, min(n.position), 0
        from unnest(v_lane.blocked_endpoints, v_lane.blocked_positions) as b (endpoint_id, position)
        join parley._p_endpoint as e
          on e.endpoint_id = b.endpoint_id and e.state <> 'DO' and (e.is_plain or not parley._p_is_set_aside(e.endpoint_id))
        cross join lateral (
          select m.position, m.lane
          from parley._p_message as m
          where m.endpoint_id = e.endpoint_id and m.position >= greatest(b.position, v_lane.low)
          order by m.position
          limit 1
        ) as n
        where n.position < v_lane.resume and n.lane = v_lane.lane
        group by e.group_id
      ) as f
      join parley._p_conversation_group as g on g.group_id = f.group_id
    ) as w;
    groups := groups + v_found.groups;
    head := coalesce(head, v_found.head);
    is_partial := is_partial or v_found.rows >= rows_max;
  end loop;
  if groups > 0 or is_partial then
    return next;
  end if;
end
$$;

comment on function parley._p_receivable(integer[], integer[], integer) is
'Tells in which of some queues messages can be received that no reader holds: how many groups have such messages, up to a number; the position
of the first of them; and whether the look ended at rows_max rows, so that there may be more. Queues without any are left out.
Arguments: queue_ids; readers_max, how many groups are of interest in each; rows_max, how many rows to look at in each lane.';

create function parley._p_arm_doorbells(queue_ids integer[], seconds integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_until bigint := extract(epoch from clock_timestamp())::bigint + seconds;
begin
  perform set_config('synchronous_commit', 'off', true);
  perform setval(q.doorbell_sequence, v_until)
  from parley._p_queue as q
  where q.queue_id = any (queue_ids) and coalesce(pg_sequence_last_value(q.doorbell_sequence), 0) < v_until;
end
$$;

comment on function parley._p_arm_doorbells(integer[], integer) is
'Asks the senders to some queues to notify channel parley for so many seconds, unless they do so for longer already.
Not for hundreds of queues in one transaction: it holds a lock on a sequence for each.';

create function parley._p_disarm_doorbells(queue_ids integer[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('synchronous_commit', 'off', true);
  perform setval(q.doorbell_sequence, 0)
  from parley._p_queue as q
  where q.queue_id = any (queue_ids);
end
$$;

comment on function parley._p_disarm_doorbells(integer[]) is
'Tells the senders to some queues that nobody sleeps there: readers are at work, and a notification for each message would only slow both down.
Others who sleep there ask again within seconds (parley.listen_for_messages).';

-- sql/402_queue_monitors.sql

-- What the daemon tells about its queue monitors and readers, for the views.
--
-- The daemon reports once a second at most, and only what has changed; a reader that lives shorter than that is counted, but shows in no row.
-- Each report carries the term of the daemon. What an earlier leader reported shows no more.
-- Locks: the leader's row FOR SHARE, then rows of _p_queue_monitor; nobody but the leader writes them.

create table parley._p_queue_monitor (
  queue_id integer primary key,
  term bigint not null,
  state text not null check (state in ('INACTIVE', 'NOTIFIED', 'RECEIVES_OCCURRING')),
  running_readers integer not null,
  last_activated_time timestamptz,
  last_empty_rowset_time timestamptz,
  failing_since timestamptz,
  failures integer not null,
  last_error text,
  last_sqlstate text,
  next_attempt_time timestamptz,
  tasks_started bigint not null,
  tasks_aborted bigint not null,
  task_limit_reached bigint not null,
  modify_date timestamptz not null
);

comment on table parley._p_queue_monitor is 'The queue monitors as the leading daemon reports them; the last three counts go on from one leader to the next.';

create table parley._p_activated_task (
  term bigint not null,
  queue_id integer not null,
  reader integer not null,
  pid integer,
  procedure_name text not null,
  execute_as oid,
  started_at timestamptz not null,
  primary key (queue_id, reader)
);

comment on table parley._p_activated_task is 'Readers that run for longer, as the leading daemon reports them; pid is null when they are no sessions.';

create function parley._p_report_activation(term bigint, monitors jsonb, tasks jsonb) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not parley._p_holds_term(term) then
    return false;
  end if;
  perform set_config('synchronous_commit', 'off', true);
  insert into parley._p_queue_monitor as q (
    queue_id, term, state, running_readers, last_activated_time, last_empty_rowset_time, failing_since, failures, last_error, last_sqlstate,
    next_attempt_time, tasks_started, tasks_aborted, task_limit_reached, modify_date
  )
  select
    r.queue_id, case when r.is_gone then 0 else _p_report_activation.term end, r.state, r.running_readers,
    n.now - make_interval(secs => r.activated_ago_s),
    n.now - make_interval(secs => r.empty_ago_s), n.now - make_interval(secs => r.failing_for_s), r.failures, r.last_error, r.last_sqlstate,
    n.now + make_interval(secs => r.next_attempt_in_s), r.started, r.aborted, r.limit_reached, n.now
  from (select clock_timestamp() as now) as n
  cross join jsonb_to_recordset(monitors) as r (
    queue_id integer, state text, running_readers integer, activated_ago_s float8, empty_ago_s float8, failing_for_s float8, failures integer,
    last_error text, last_sqlstate text, next_attempt_in_s float8, started bigint, aborted bigint, limit_reached bigint, is_gone boolean
  )
  where exists (select from parley._p_queue as k where k.queue_id = r.queue_id)
  on conflict on constraint _p_queue_monitor_pkey do update
  set term = excluded.term, state = excluded.state, running_readers = excluded.running_readers,
    last_activated_time = coalesce(excluded.last_activated_time, q.last_activated_time),
    last_empty_rowset_time = coalesce(excluded.last_empty_rowset_time, q.last_empty_rowset_time),
    failing_since = excluded.failing_since, failures = excluded.failures, last_error = excluded.last_error, last_sqlstate = excluded.last_sqlstate,
    next_attempt_time = excluded.next_attempt_time, tasks_started = q.tasks_started + excluded.tasks_started,
    tasks_aborted = q.tasks_aborted + excluded.tasks_aborted, task_limit_reached = q.task_limit_reached + excluded.task_limit_reached,
    modify_date = excluded.modify_date;
  if tasks is not null then
    delete from parley._p_activated_task as t
    where t.term <> _p_report_activation.term
      or not exists (
        select
        from jsonb_to_recordset(tasks) as r (queue_id integer, reader integer, pid integer)
        where r.queue_id = t.queue_id and r.reader = t.reader and r.pid is not distinct from t.pid
      );
    insert into parley._p_activated_task as t (term, queue_id, reader, pid, procedure_name, execute_as, started_at)
    select _p_report_activation.term, r.queue_id, r.reader, r.pid, r.procedure_name, o.oid,
      clock_timestamp() - make_interval(secs => r.started_ago_s)
    from jsonb_to_recordset(tasks) as r (
      queue_id integer, reader integer, pid integer, procedure_name text, execute_as text, started_ago_s float8
    )
    left join pg_roles as o on o.rolname = r.execute_as
    on conflict on constraint _p_activated_task_pkey do nothing;
  end if;
  return true;
end
$$;

comment on function parley._p_report_activation(bigint, jsonb, jsonb) is
'Takes a report of the leading daemon; gives false, and changes nothing, when the term is over.
Arguments: term; monitors, the queue monitors that have changed, with counts since the last report; tasks, all readers that run for longer, or null
when these are as they were. Times are given in seconds from now, since the daemon''s clock does not count.';

create view parley.dm_broker_queue_monitors with (security_barrier) as
select
  d.oid as database_id,
  m.queue_id,
  m.state,
  m.last_empty_rowset_time,
  m.last_activated_time,
  coalesce(w.sessions, 0)::integer as tasks_waiting,
  q.lookup_name as queue_name,
  m.running_readers,
  m.failures,
  m.failing_since,
  m.last_error,
  m.last_sqlstate,
  m.next_attempt_time,
  m.tasks_started,
  m.tasks_aborted,
  m.task_limit_reached,
  l.leader
from parley._p_queue_monitor as m
join parley._p_queue as q using (queue_id)
join parley._p_leader as l on l.term = m.term and l.term = parley._p_current_term()
join pg_catalog.pg_database as d on d.datname = current_database()
left join (
  -- Whoever waits in RECEIVE sleeps, and holds a lock on the sequence that it watches.
  select k.relation, k.database, count(*) as sessions
  from pg_catalog.pg_locks as k
  join pg_catalog.pg_stat_activity as a using (pid)
  where k.locktype = 'relation' and k.mode = 'RowExclusiveLock' and k.granted and a.wait_event = 'PgSleep'
  group by k.relation, k.database
) as w on w.relation = q.position_sequence and w.database = d.oid
where (select parley._p_is_administrator(parley._p_current_role()));

comment on view parley.dm_broker_queue_monitors is
'The queue monitors of the daemon that leads, one for each queue with activation on; empty when no daemon runs. A second old at most. For administrators.';
comment on column parley.dm_broker_queue_monitors.database_id is 'Oid of this database.';
comment on column parley.dm_broker_queue_monitors.queue_id is 'The queue that is watched.';
comment on column parley.dm_broker_queue_monitors.state is
'INACTIVE: nothing to do. NOTIFIED: readers were started, but nothing is received yet, or they fail. RECEIVES_OCCURRING: readers receive.';
comment on column parley.dm_broker_queue_monitors.last_empty_rowset_time is 'When a reader last came back because the queue was empty.';
comment on column parley.dm_broker_queue_monitors.last_activated_time is 'When a reader was last started.';
comment on column parley.dm_broker_queue_monitors.tasks_waiting is
'Sessions that wait in RECEIVE or GET CONVERSATION GROUP on the queue, whoever started them; 0 for roles that may not see the activity of others.';
comment on column parley.dm_broker_queue_monitors.queue_name is 'Name of the queue, as the statements take it.';
comment on column parley.dm_broker_queue_monitors.running_readers is 'Readers that the daemon has started and that have not left.';
comment on column parley.dm_broker_queue_monitors.failures is 'How many readers failed one after the other; 0 when the last one did not.';
comment on column parley.dm_broker_queue_monitors.failing_since is 'Since when readers fail, or null.';
comment on column parley.dm_broker_queue_monitors.last_error is 'Why the last reader failed; null while readers succeed.';
comment on column parley.dm_broker_queue_monitors.last_sqlstate is 'SQLSTATE of that error, if it has one.';
comment on column parley.dm_broker_queue_monitors.next_attempt_time is 'Until then no further reader is started, because the last ones failed.';
comment on column parley.dm_broker_queue_monitors.tasks_started is 'Readers started so far, by all leaders.';
comment on column parley.dm_broker_queue_monitors.tasks_aborted is 'Readers that failed so far.';
comment on column parley.dm_broker_queue_monitors.task_limit_reached is 'How often messages waited while MAX_QUEUE_READERS readers ran.';
comment on column parley.dm_broker_queue_monitors.leader is 'Name of the daemon.';

create view parley.dm_broker_activated_tasks with (security_barrier) as
select
  t.pid as spid,
  d.oid as database_id,
  t.queue_id,
  t.procedure_name,
  t.execute_as,
  q.lookup_name as queue_name,
  t.started_at
from parley._p_activated_task as t
join parley._p_queue as q using (queue_id)
join pg_catalog.pg_database as d on d.datname = current_database()
where t.term = parley._p_current_term()
  and (t.pid is null or exists (select from pg_catalog.pg_stat_activity as a where a.pid = t.pid and a.datid = d.oid))
  and (select parley._p_is_administrator(parley._p_current_role()));

comment on view parley.dm_broker_activated_tasks is
'The readers that the daemon has started and that have been running for a second or longer. For administrators.';
comment on column parley.dm_broker_activated_tasks.spid is 'Process id of its session; null for programs and webhooks.';
comment on column parley.dm_broker_activated_tasks.database_id is 'Oid of this database.';
comment on column parley.dm_broker_activated_tasks.queue_id is 'The queue that it reads.';
comment on column parley.dm_broker_activated_tasks.procedure_name is 'The procedure, or what else was started.';
comment on column parley.dm_broker_activated_tasks.execute_as is 'Oid of the role that a procedure runs under.';
comment on column parley.dm_broker_activated_tasks.queue_name is 'Name of the queue, as the statements take it.';
comment on column parley.dm_broker_activated_tasks.started_at is 'When it was started.';

-- sql/403_due_alarms.sql

-- Timers on time: what the daemon calls when the next alarm is due.
--
-- The daemon sleeps until the next alarm, and for a second at most; an alarm that is set for earlier than that rings _p_alarm_doorbell. Alarms
-- are fired many in a transaction. When one of them raises an error, nothing of that transaction stays; then the daemon asks for them one by one:
-- each has a subtransaction, and those that fail are put off, alone.
-- Locks: as _p_fire_alarms, which waits for nobody; no other lock is waited for longer than lock_timeout.

create function parley._p_fire_due(term bigint, top integer, one_by_one boolean, out fired integer, out next_ms float8)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set lock_timeout = '30ms'
as $$
declare
  v_now float8 := extract(epoch from clock_timestamp());
begin
  if not parley._p_holds_term(term) then
    return;
  end if;
  -- What a crash takes back is due again.
  perform set_config('synchronous_commit', 'off', true);
  if coalesce(pg_sequence_last_value('parley._p_alarm_doorbell'), 0) < v_now + 20 then
    perform setval('parley._p_alarm_doorbell', v_now::bigint + 40);
  end if;
  fired := 0;
  if one_by_one then
    fired := parley._p_fire_alarms_one_by_one(top);
  elsif coalesce(pg_sequence_last_value('parley._p_next_alarm'), 0) <= v_now * 1000000 then
    fired := parley._p_fire_alarms(null, top);
  end if;
  next_ms := pg_sequence_last_value('parley._p_next_alarm') / 1000.0 - extract(epoch from clock_timestamp()) * 1000;
end
$$;

comment on function parley._p_fire_due(bigint, integer, boolean) is
'Fires what is due, for the leading daemon; tells how many, and in how many milliseconds to call again. Nulls mean that the term is over.
Arguments: term; top, how many at most; one_by_one, whether those that cannot be fired are put off, each for itself.';

create function parley._p_fire_alarms_one_by_one(top integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_alarm record;
  v_fired integer := 0;
  v_now timestamptz := clock_timestamp();
begin
  for v_alarm in
    select a.endpoint_id, a.kind from parley._p_alarm as a where a.due_at <= v_now order by a.due_at limit 10::bigint * top
  loop
    begin
      if parley._p_claim_alarm(v_alarm.endpoint_id, v_alarm.kind) then
        perform parley._p_fire_alarm(v_alarm.endpoint_id, v_alarm.kind);
        v_fired := v_fired + 1;
      end if;
      exit when v_fired = top;
    exception
      when lock_not_available or deadlock_detected then
        perform parley._p_put_off_alarm(v_alarm.endpoint_id, v_alarm.kind, 'infinity', interval '1 second');
      when others then
        raise warning using
          message = format('the %s of endpoint %s could not be fired', v_alarm.kind, v_alarm.endpoint_id),
          detail = sqlerrm,
          hint = 'It is tried again after 30 seconds.';
        perform parley._p_put_off_alarm(v_alarm.endpoint_id, v_alarm.kind, 'infinity', interval '30 seconds');
    end;
  end loop;
  return v_fired;
end
$$;

comment on function parley._p_fire_alarms_one_by_one(integer) is
'Handles alarms that are due, each in a subtransaction, and puts off those that fail. Gives how many were handled.';

-- sql/410_external_activation.sql

-- External activation: what the daemon starts for a queue outside of the database, a program or a web address.
--
-- Here stands only what is wanted. Whether a program may run on a host, or an address be called from it, is the decision of whoever
-- operates that host: the daemon starts nothing that its operator has not allowed (docs/activation.md). So no definition is a way onto the host.
-- It is a way to the messages, which go to whoever reads: so who says what reads must be able to act as the queue's owner, or be an
-- administrator, then and whenever it is started. For numbers and times the right to ALTER the queue is enough.
--
-- A queue has one kind of activation: a procedure that is enabled, an external activation, or QUEUE_ACTIVATION event notifications.
-- Secrets of webhooks and values of environments are shown by no view; only the daemon reads them (_p_external_definition). A daemon with a master
-- key seals the secrets of webhooks (413_webhook_secrets.sql): until then, or without one, they stand here as they are.
-- Locks: the queue's row, as alter_queue takes it.

create table parley._p_external_activation (
  queue_id integer primary key references parley._p_queue on delete cascade,
  kind text not null check (kind in ('program', 'webhook')),
  is_enabled boolean not null,
  min_instances integer not null,
  max_instances integer not null,
  program text[],
  environment jsonb,
  working_directory text,
  stop_timeout_ms integer,
  url text,
  secret_name text,
  secret text,
  sealed_secret bytea,
  timeout_ms integer,
  batch_size integer,
  body_format text,
  system_messages boolean,
  max_attempts integer,
  first_retry_ms integer,
  longest_retry_ms integer,
  -- Who said what reads.
  set_by regrole,
  create_date timestamptz not null default now(),
  modify_date timestamptz not null default now(),
  check ((kind = 'program') = (program is not null)),
  check ((kind = 'webhook') = (url is not null and num_nonnulls(secret, sealed_secret) = 1))
);

comment on table parley._p_external_activation is 'What the daemon starts outside of the database to read a queue; secrets and environment are for it alone.';

create function parley._p_require_range(name text, value integer, least_value integer, largest_value integer) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if value is null or value < least_value or value > largest_value then
    perform parley._p_raise(
      8402,
      format('%s is %s', name, coalesce(value::text, 'null')),
      format('%s to %s are allowed.', least_value, largest_value),
      'Give a number in that range.'
    );
  end if;
end
$$;

comment on function parley._p_require_range(text, integer, integer, integer) is
'Refuses a number that is out of range, or null.
Errors: 8402.';

create function parley._p_check_program(activation parley._p_external_activation) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  -- NUL cannot be in a text; an argument may be empty, but not missing.
  if cardinality(activation.program) = 0 or array_position(activation.program, null) is not null or activation.program[1] !~ '^([A-Za-z]:\\|/)' then
    perform parley._p_raise(
      8402,
      'program is no command',
      'The first element is the full path of the program, the others are its arguments; no shell reads them.',
      'Write array[''/opt/shop/reader'', ''--verbose''].'
    );
  elsif jsonb_typeof(activation.environment) <> 'object'
    or exists (
      select
      from jsonb_each(case jsonb_typeof(activation.environment) when 'object' then activation.environment else '{}' end) as v
      where jsonb_typeof(v.value) <> 'string' or v.key !~ '^[A-Za-z_][A-Za-z0-9_]*$' or upper(v.key) ~ '^PARLEY_'
    ) then
    perform parley._p_raise(
      8402,
      'environment is no set of variables',
      'Names are letters, digits and _, without PARLEY_ in front, which is the daemon''s; values are strings.',
      'Write {"REGION": "north"}.'
    );
  elsif activation.working_directory !~ '^([A-Za-z]:\\|/)' then
    perform parley._p_raise(8402, 'working_directory is no full path', null, 'Write it from the root on, or leave it out for the folder of the program.');
  end if;
  perform parley._p_require_range('stop_timeout_ms', activation.stop_timeout_ms, 0, 3600000);
end
$$;

comment on function parley._p_check_program(parley._p_external_activation) is
'Checks what an activation says about its program.
Errors: 8402.';

create function parley._p_check_webhook(activation parley._p_external_activation) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if activation.url !~* '^https?://[^/?#@[:space:]]+([/?][^#[:space:]]*)?$' or length(activation.url) > 2000 then
    perform parley._p_raise(
      8402,
      'url is no web address',
      'It begins with http:// or https://, has no user, no fragment and no blanks in it, and at most 2000 characters.',
      'Write https://shop.example.com/messages.'
    );
  elsif activation.body_format is null or activation.body_format not in ('envelope', 'raw') then
    perform parley._p_raise(8402, format('unknown body_format "%s"', activation.body_format), null, 'Use envelope or raw.');
  elsif activation.body_format = 'raw' and activation.batch_size > 1 then
    perform parley._p_raise(
      8402,
      'a raw body is that of one message',
      format('batch_size is %s.', activation.batch_size),
      'Use body_format envelope, or batch_size 1.'
    );
  elsif length(activation.secret) not between 16 and 500 or activation.secret ~ '[[:cntrl:]]' then
    perform parley._p_raise(8402, 'the secret is no secret', 'It has 16 to 500 characters.', 'Leave it out to be given one.');
  end if;
  perform parley._p_require_range('timeout_ms', activation.timeout_ms, 100, 600000);
  perform parley._p_require_range('batch_size', activation.batch_size, 1, 1000);
  perform parley._p_require_range('max_attempts', activation.max_attempts, 0, 1000000);
  perform parley._p_require_range('first_retry_ms', activation.first_retry_ms, 1, 86400000);
  perform parley._p_require_range('longest_retry_ms', activation.longest_retry_ms, activation.first_retry_ms, 86400000);
end
$$;

comment on function parley._p_check_webhook(parley._p_external_activation) is
'Checks what an activation says about its web address.
Errors: 8402.';

create function parley._p_put_external_activation(activation parley._p_external_activation) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_require_range('min_instances', activation.min_instances, 0, activation.max_instances);
  perform parley._p_require_range('max_instances', activation.max_instances, 0, 32767);
  case activation.kind
    when 'program' then
      perform parley._p_check_program(activation);
    when 'webhook' then
      perform parley._p_check_webhook(activation);
  end case;
  delete from parley._p_external_activation as a where a.queue_id = activation.queue_id;
  insert into parley._p_external_activation (
    queue_id, kind, is_enabled, min_instances, max_instances, program, environment, working_directory, stop_timeout_ms,
    url, secret_name, secret, sealed_secret, timeout_ms, batch_size, body_format, system_messages, max_attempts, first_retry_ms, longest_retry_ms,
    set_by, create_date, modify_date
  )
  values (
    activation.queue_id, activation.kind, activation.is_enabled, activation.min_instances, activation.max_instances,
    activation.program, activation.environment, activation.working_directory, activation.stop_timeout_ms,
    activation.url, activation.secret_name, activation.secret, activation.sealed_secret, activation.timeout_ms, activation.batch_size,
    activation.body_format, activation.system_messages, activation.max_attempts, activation.first_retry_ms, activation.longest_retry_ms,
    activation.set_by, coalesce(activation.create_date, now()), clock_timestamp()
  );
end
$$;

comment on function parley._p_put_external_activation(parley._p_external_activation) is
'Stores the external activation of a queue, in place of an earlier one, when it makes sense.
Errors: 8402.';

create function parley._p_external_refusal(activation parley._p_external_activation) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select format(
      'role %s, which set the %s, may not act as role %s, which owns the queue, and is no administrator of the broker',
      coalesce(pg_get_userbyid(activation.set_by), 'that nobody knows'), activation.kind, pg_get_userbyid(q.owner)
    )
  from parley._p_queue as q
  where q.queue_id = activation.queue_id
    and parley._p_may_act_as(activation.set_by, q.owner) is not true
    and (exists (select from pg_roles as r where r.oid = activation.set_by) and parley._p_is_administrator(activation.set_by)) is not true
$$;

comment on function parley._p_external_refusal(parley._p_external_activation) is
'Says why what an external activation names must not be started: because who named it could not
act as the owner of the queue. Null when nothing speaks against it.';

create function parley._p_set_external_reader(caller oid, activation parley._p_external_activation) returns regrole
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_refusal text;
begin
  activation.set_by := caller;
  v_refusal := parley._p_external_refusal(activation);
  if v_refusal is not null then
    perform parley._p_raise(
      15517,
      format('cannot let a %s read for the owner of the queue', activation.kind),
      'In this activation ' || v_refusal || '.',
      'Let a member of that role or an administrator set it; the right to ALTER the queue is enough for numbers, times, and switching it on and off.'
    );
  end if;
  return activation.set_by;
end
$$;

comment on function parley._p_set_external_reader(oid, parley._p_external_activation) is
'Gives the caller, as who says what reads a queue, if he may.
Errors: 15517.';

create function parley._p_require_sole_activator(queue_id integer, activator text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
begin
  -- Two that switch on different kinds at once must not both find the other one off.
  select * into v_queue from parley._p_queue as q where q.queue_id = _p_require_sole_activator.queue_id for no key update;
  if activator <> 'procedure' and v_queue.is_activation_enabled then
    perform parley._p_raise(
      9718,
      format('queue "%s" has internal activation', v_queue.lookup_name),
      format('Procedure %s is run for its messages.', v_queue.activation_procedure),
      format('Switch it off first: select parley.alter_queue(%L, activation => false);', v_queue.lookup_name)
    );
  elsif activator <> 'external' and exists (select from parley._p_external_activation as a where a.queue_id = v_queue.queue_id and a.is_enabled) then
    perform parley._p_raise(
      9718,
      format('queue "%s" has external activation', v_queue.lookup_name),
      (
        select format('The daemon starts a %s for its messages.', a.kind)
        from parley._p_external_activation as a where a.queue_id = v_queue.queue_id
      ),
      format('Drop it first: select parley.drop_external_activation(%L);', v_queue.lookup_name)
    );
  elsif activator <> 'event' and parley._p_notifies_activation(v_queue.queue_id) then
    perform parley._p_raise(
      9717,
      format('queue "%s" has a QUEUE_ACTIVATION event notification', v_queue.lookup_name),
      'Whoever receives the notifications starts the readers.',
      'Drop the notification first: select parley.drop_event_notification(name, queue); see parley.event_notifications.'
    );
  end if;
end
$$;

comment on function parley._p_require_sole_activator(integer, text) is
'Refuses a second kind of activation on a queue, and keeps others from adding one to the end of the transaction.
Arguments: queue_id; activator, the kind that is to be on: procedure, external or event.
Errors: 9717 a QUEUE_ACTIVATION event notification is there, 9718 internal or external activation is on.
Source: spec 2.4.';

-- sql/411_activation_statements.sql

-- The statements of external activation: create, alter and drop; what is left out of an ALTER stays as it is.

create function parley._p_new_external_activation(caller oid, queue text, kind text) returns parley._p_external_activation
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_queue(caller, queue, 'ALTER');
  v_activation parley._p_external_activation;
begin
  perform from parley._p_queue as q where q.queue_id = v_queue.queue_id for no key update;
  if exists (select from parley._p_external_activation as a where a.queue_id = v_queue.queue_id) then
    perform parley._p_raise(
      2714,
      format('queue "%s" has an external activation already', v_queue.lookup_name),
      null,
      'Alter it, or drop it with drop_external_activation.'
    );
  end if;
  v_activation.queue_id := v_queue.queue_id;
  v_activation.kind := kind;
  v_activation.set_by := parley._p_set_external_reader(caller, v_activation);
  return v_activation;
end
$$;

comment on function parley._p_new_external_activation(oid, text, text) is
'Begins the external activation of a queue that has none.
Errors: 208, 229, 2714, 9609, 9663, 15517.';

create function parley._p_existing_external_activation(caller oid, queue text, kind text) returns parley._p_external_activation
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_queue(caller, queue, 'ALTER');
  v_activation parley._p_external_activation;
begin
  perform from parley._p_queue as q where q.queue_id = v_queue.queue_id for no key update;
  select * into v_activation from parley._p_external_activation as a where a.queue_id = v_queue.queue_id;
  if v_activation.kind is null or v_activation.kind <> coalesce(_p_existing_external_activation.kind, v_activation.kind) then
    perform parley._p_raise(
      15151,
      format('queue "%s" has no %s activation', v_queue.lookup_name, coalesce(_p_existing_external_activation.kind, 'external')),
      'It has a ' || v_activation.kind || '.',
      'See parley.external_activations.'
    );
  end if;
  return v_activation;
end
$$;

comment on function parley._p_existing_external_activation(oid, text, text) is
'Finds the external activation of a queue, of a kind or of any (null), and locks it.
Errors: 208, 229, 9609, 9663, 15151 there is none.';

create function parley.create_program_activation(
  queue text,
  program text[],
  environment jsonb default '{}',
  working_directory text default null,
  min_instances integer default 0,
  max_instances integer default 1,
  stop_timeout_ms integer default 10000,
  activation boolean default true,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_activation parley._p_external_activation := parley._p_new_external_activation(v_caller, queue, 'program');
begin
  if activation then
    perform parley._p_require_sole_activator(v_activation.queue_id, 'external');
  end if;
  v_activation.is_enabled := coalesce(activation, true);
  v_activation.min_instances := min_instances;
  v_activation.max_instances := max_instances;
  v_activation.program := coalesce(program, '{}');
  v_activation.environment := coalesce(environment, '{}');
  v_activation.working_directory := working_directory;
  v_activation.stop_timeout_ms := stop_timeout_ms;
  perform parley._p_put_external_activation(v_activation);
end
$$;

comment on function parley.create_program_activation(text, text[], jsonb, text, integer, integer, integer, boolean, parley.caller) is
'Lets the daemon start a program when messages wait in a queue. It runs only where the operator of the daemon allows it: parley serve --allow-program.
Arguments: queue; program, its full path and its arguments, which no shell reads; environment, variables as a JSON object of strings, as far as
the operator allows them; working_directory, a full path (null: the folder of the program); min_instances, how many always run;
max_instances, how many run at most; stop_timeout_ms, milliseconds from SIGTERM to SIGKILL; activation, whether it is on.
Errors: 208 no such queue, 229 not allowed, 2714 the queue has an external activation, 8402 out of range or malformed, 9609 malformed name,
9663 system object, 9717 and 9718 the queue is activated in another way, 15517 the caller may not act as the owner of the queue.
Source: spec 5.5.';

create function parley.alter_program_activation(
  queue text,
  program text[] default null,
  environment jsonb default null,
  working_directory text default null,
  min_instances integer default null,
  max_instances integer default null,
  stop_timeout_ms integer default null,
  activation boolean default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_activation parley._p_external_activation := parley._p_existing_external_activation(v_caller, queue, 'program');
begin
  if activation then
    perform parley._p_require_sole_activator(v_activation.queue_id, 'external');
  end if;
  if num_nonnulls(program, environment, working_directory) > 0 then
    v_activation.set_by := parley._p_set_external_reader(v_caller, v_activation);
  end if;
  v_activation.is_enabled := coalesce(activation, v_activation.is_enabled);
  v_activation.min_instances := coalesce(min_instances, v_activation.min_instances);
  v_activation.max_instances := coalesce(max_instances, v_activation.max_instances);
  v_activation.program := coalesce(program, v_activation.program);
  v_activation.environment := coalesce(environment, v_activation.environment);
  v_activation.working_directory := coalesce(working_directory, v_activation.working_directory);
  v_activation.stop_timeout_ms := coalesce(stop_timeout_ms, v_activation.stop_timeout_ms);
  perform parley._p_put_external_activation(v_activation);
end
$$;

comment on function parley.alter_program_activation(text, text[], jsonb, text, integer, integer, integer, boolean, parley.caller) is
'Changes what is given of the program that reads a queue; what is null stays as it is. Programs that run already are left alone.
Arguments: as create_program_activation.
Errors: 208 no such queue, 229 not allowed, 8402 out of range or malformed, 9609 malformed name, 9663 system object,
9717 and 9718 the queue is activated in another way, 15151 the queue has no program,
15517 the caller may not act as the owner of the queue.
Source: spec 5.5.';

create function parley._p_new_secret() returns text
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  -- Four random UUIDs have 488 random bits; of their hash 256 are kept.
  select 'whsec_' || encode(
    sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'base64'
  )
$$;

comment on function parley._p_new_secret() is 'Gives a new secret to sign webhooks with: whsec_ and 32 random bytes in base64.';

create function parley.create_webhook_activation(
  queue text,
  url text,
  secret text default null,
  secret_name text default null,
  timeout_ms integer default 15000,
  max_instances integer default 4,
  batch_size integer default 1,
  body_format text default 'envelope',
  system_messages boolean default false,
  max_attempts integer default 10,
  first_retry_ms integer default 1000,
  longest_retry_ms integer default 300000,
  activation boolean default true,
  caller parley.caller default parley.current_caller()
) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_activation parley._p_external_activation := parley._p_new_external_activation(v_caller, queue, 'webhook');
begin
  if activation then
    perform parley._p_require_sole_activator(v_activation.queue_id, 'external');
  end if;
  v_activation.is_enabled := coalesce(activation, true);
  v_activation.min_instances := 0;
  v_activation.max_instances := max_instances;
  v_activation.url := coalesce(url, '');
  v_activation.secret := coalesce(secret, parley._p_new_secret());
  v_activation.secret_name := secret_name;
  v_activation.timeout_ms := timeout_ms;
  v_activation.batch_size := batch_size;
  v_activation.body_format := body_format;
  v_activation.system_messages := coalesce(system_messages, false);
  v_activation.max_attempts := max_attempts;
  v_activation.first_retry_ms := first_retry_ms;
  v_activation.longest_retry_ms := longest_retry_ms;
  perform parley._p_put_external_activation(v_activation);
  return v_activation.secret;
end
$$;

comment on function parley.create_webhook_activation(
  text, text, text, text, integer, integer, integer, text, boolean, integer, integer, integer, boolean, parley.caller
) is
'Lets the daemon deliver the messages of a queue to a web address, and returns the secret that signs them, which nothing shows again.
An address is called only where the operator of the daemon allows it: parley serve --allow-webhook.
Arguments: queue; url, http or https; secret, 16 to 500 characters (null: a new one); secret_name, a name for it that views show;
timeout_ms, milliseconds for one request; max_instances, requests at once, each of another conversation group; batch_size, messages of one
conversation in a request; body_format, envelope (JSON) or raw; system_messages, whether EndDialog and Error are delivered too, instead of ending the
conversation; max_attempts, after how many refusals a conversation is set aside (0: never); first_retry_ms and longest_retry_ms, milliseconds that a
conversation waits after its first refusal, doubling up to the longest; activation, whether it is on.
Errors: 208 no such queue, 229 not allowed, 2714 the queue has an external activation, 8402 out of range or malformed, 9609 malformed name,
9663 system object, 9717 and 9718 the queue is activated in another way, 15517 the caller may not act as the owner of the queue.
Source: spec 5.5.';

create function parley.alter_webhook_activation(
  queue text,
  url text default null,
  secret text default null,
  secret_name text default null,
  timeout_ms integer default null,
  max_instances integer default null,
  batch_size integer default null,
  body_format text default null,
  system_messages boolean default null,
  max_attempts integer default null,
  first_retry_ms integer default null,
  longest_retry_ms integer default null,
  activation boolean default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_activation parley._p_external_activation := parley._p_existing_external_activation(v_caller, queue, 'webhook');
begin
  if activation then
    perform parley._p_require_sole_activator(v_activation.queue_id, 'external');
  end if;
  if num_nonnulls(url, secret, body_format, system_messages) > 0 then
    v_activation.set_by := parley._p_set_external_reader(v_caller, v_activation);
  end if;
  v_activation.is_enabled := coalesce(activation, v_activation.is_enabled);
  v_activation.max_instances := coalesce(max_instances, v_activation.max_instances);
  v_activation.url := coalesce(url, v_activation.url);
  if secret is not null then
    v_activation.secret := secret;
    v_activation.sealed_secret := null;
  end if;
  v_activation.secret_name := coalesce(secret_name, v_activation.secret_name);
  v_activation.timeout_ms := coalesce(timeout_ms, v_activation.timeout_ms);
  v_activation.batch_size := coalesce(batch_size, v_activation.batch_size);
  v_activation.body_format := coalesce(body_format, v_activation.body_format);
  v_activation.system_messages := coalesce(system_messages, v_activation.system_messages);
  v_activation.max_attempts := coalesce(max_attempts, v_activation.max_attempts);
  v_activation.first_retry_ms := coalesce(first_retry_ms, v_activation.first_retry_ms);
  v_activation.longest_retry_ms := coalesce(longest_retry_ms, v_activation.longest_retry_ms);
  perform parley._p_put_external_activation(v_activation);
end
$$;

comment on function parley.alter_webhook_activation(
  text, text, text, text, integer, integer, integer, text, boolean, integer, integer, integer, boolean, parley.caller
) is
'Changes what is given of the webhook that reads a queue; what is null stays as it is. A request on its way is left alone.
Arguments: as create_webhook_activation; secret, a new one.
Errors: 208 no such queue, 229 not allowed, 8402 out of range or malformed, 9609 malformed name, 9663 system object,
9717 and 9718 the queue is activated in another way, 15151 the queue has no webhook,
15517 the caller may not act as the owner of the queue.
Source: spec 5.5.';

create function parley.drop_external_activation(
  queue text,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_activation parley._p_external_activation := parley._p_existing_external_activation(v_caller, queue, null);
begin
  delete from parley._p_external_activation as a where a.queue_id = v_activation.queue_id;
end
$$;

comment on function parley.drop_external_activation(text, parley.caller) is
'Removes the external activation of a queue. Nothing new is started; what runs already leaves when it finds nothing.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name, 9663 system object, 15151 there is none.
Source: spec 5.5.';

create function parley._p_sees_definition(
  queue_id integer,
  caller parley.caller default parley.current_caller()
) returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select parley._p_has_permission(parley._p_caller(caller), 'VIEW DEFINITION', 'queue', q.queue_id, q.owner) is true
  from parley._p_queue as q
  where q.queue_id = _p_sees_definition.queue_id
$$;

comment on function parley._p_sees_definition(integer, parley.caller) is
'Tells whether a role may see how a queue is read: VIEW DEFINITION, ALTER or CONTROL on it, its owner, or an administrator.';

create view parley.external_activations with (security_barrier = true) as
select
  q.lookup_name as queue_name,
  a.queue_id as service_queue_id,
  a.kind,
  a.is_enabled,
  a.min_instances,
  a.max_instances,
  a.program,
  array(select e.name from jsonb_object_keys(a.environment) as e (name) order by e.name) as environment_names,
  a.working_directory,
  a.stop_timeout_ms,
  regexp_replace(a.url, '\?.*', '?...') as url,
  a.secret_name,
  a.timeout_ms,
  a.batch_size,
  a.body_format,
  a.system_messages,
  a.max_attempts,
  a.first_retry_ms,
  a.longest_retry_ms,
  a.create_date,
  a.modify_date
from parley._p_external_activation as a
join parley._p_queue as q using (queue_id)
where parley._p_sees_definition(a.queue_id) is true;

comment on view parley.external_activations is
'What the daemon starts outside of the database, for each queue that has such an activation and whose definition the caller may view.
Secrets, values of environments and the query of a url are
shown to nobody.';

-- sql/412_deliveries.sql

-- Deliveries: messages that a reader hands to somebody outside of the transaction, such as a webhook, before it receives them.
--
-- A delivery that fails must not look like a poison message, and must not hold up other conversations. So a message is shown first
-- (next_delivery), with its group locked to the end of the transaction, and received only when it was accepted (finish_delivery): a
-- refusal leaves no trace on the message, and what it does leave (fail_delivery) is written in a transaction of its own. A
-- conversation that failed is passed over until its time comes, which keeps its order; the others go on.
--
-- Invariants, and what keeps each:
--   nobody else receives from a group meanwhile   the lock on its row, as in RECEIVE
--   what is received is what was delivered   finish_delivery compares positions: a sender may have committed in front of them
--   accepted twice is told apart   message_id is made of endpoint and position, and so the same at each attempt
-- Lock order: the group's row, then its messages (docs/architecture.md). Rows of _p_delivery_failure are locked alone.
-- Cost: one look at the first 1000 messages of each lane; when all of these belong to conversations that wait or are locked, one probe
-- for each conversation of the queue.

create table parley._p_delivery_failure (
  endpoint_id bigint primary key,
  queue_id integer not null references parley._p_queue on delete cascade,
  conversation_handle uuid not null,
  failures integer not null,
  attempts integer not null,
  last_error text not null,
  first_failed_at timestamptz not null,
  failed_at timestamptz not null,
  retry_at timestamptz not null
);

comment on table parley._p_delivery_failure is 'Conversations whose next message was delivered and not accepted: not before retry_at.';

create index on parley._p_delivery_failure (queue_id);

create function parley._p_lock_delivery(queue parley._p_queue, priority integer, out endpoint_id bigint, out group_id bigint)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane integer := parley._p_lane(queue.queue_id, priority);
  v_low bigint;
begin
  select h.low_position into v_low from parley._p_scan_hint as h where h.lane = v_lane order by h.lane desc, h.hint_id desc limit 1;
  select e.endpoint_id, e.group_id into endpoint_id, group_id
  from (
    select n.endpoint_id, n.position
    from parley._p_message as n
    where n.lane = v_lane and n.position >= coalesce(v_low, 0)
    order by n.position
    limit 1000
  ) as m
  join parley._p_endpoint as e on e.endpoint_id = m.endpoint_id and e.state <> 'DO'
  join parley._p_conversation_group as g on g.group_id = e.group_id
  where not exists (select from parley._p_delivery_failure as f where f.endpoint_id = e.endpoint_id and f.retry_at > clock_timestamp())
    and not parley._p_is_set_aside(e.endpoint_id)
  order by m.position
  limit 1
  for update of g skip locked;
  if endpoint_id is null and exists (
    select from parley._p_message as n where n.lane = v_lane and n.position >= coalesce(v_low, 0) order by n.position offset 1000 limit 1
  ) then
    select e.endpoint_id, e.group_id into endpoint_id, group_id
    from parley._p_service as s
    join parley._p_endpoint as e on e.service_id = s.service_id and e.state <> 'DO' and e.priority = _p_lock_delivery.priority
    join parley._p_conversation_group as g on g.group_id = e.group_id
    cross join lateral (
      select n.position, n.lane from parley._p_message as n where n.endpoint_id = e.endpoint_id order by n.position limit 1
    ) as m
    where s.queue_id = queue.queue_id
      and m.lane = v_lane
      and not exists (select from parley._p_delivery_failure as f where f.endpoint_id = e.endpoint_id and f.retry_at > clock_timestamp())
      and not parley._p_is_set_aside(e.endpoint_id)
    order by m.position
    limit 1
    for update of g skip locked;
  end if;
end
$$;

comment on function parley._p_lock_delivery(parley._p_queue, integer) is
'Finds and locks the first conversation of a priority that has a message, is not locked, and need not wait after a failure.';

create function parley.next_delivery(
  queue text, top integer default 1,
  caller parley.caller default parley.current_caller()
) returns setof parley.received_message
language plpgsql security definer rows 1
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
  v_priority integer;
  v_idle_ms integer;
  v_found record;
begin
  if not v_queue.is_receive_enabled or parley._p_is_poisoned(v_queue.queue_id) then
    perform parley._p_raise_disabled(v_queue.queue_id);
  end if;
  -- The session is idle while the request is under way; a daemon that has vanished must not hold the group for ever.
  select a.timeout_ms + 60000 into v_idle_ms from parley._p_external_activation as a where a.queue_id = v_queue.queue_id;
  perform set_config('idle_in_transaction_session_timeout', coalesce(v_idle_ms, 660000)::text, true);
  for v_priority in select p.n from generate_series(10, 1, -1) as p (n) where v_queue.priorities & (1 << p.n) > 0 loop
    loop
      v_found := parley._p_lock_delivery(v_queue, v_priority);
      exit when v_found.endpoint_id is null;
      return query select * from parley._p_deliverable(v_found.endpoint_id, v_found.group_id, top);
      if found then
        return;
      end if;
      -- Another reader took it between our look and our lock; with a new look it is gone.
    end loop;
  end loop;
end
$$;

comment on function parley.next_delivery(text, integer, parley.caller) is
'Shows the next messages of one conversation without receiving them, and locks their conversation group to the end of the transaction.
Conversations whose delivery failed are passed over until it is time to try again; so are groups that are locked.
Call it at READ COMMITTED. Then deliver, and call finish_delivery in the same transaction, or roll back and call fail_delivery.
Arguments: queue; top, at most so many messages.
Columns: those of RECEIVE; message_id is the same at each attempt.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name, 9617 the queue is disabled.';

create function parley._p_deliverable(endpoint_id bigint, group_id bigint, top integer) returns setof parley.received_message
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select
    1::smallint,
    e.priority,
    m.position + b.ordinal - 1,
    g.conversation_group_id,
    e.conversation_handle,
    case
      when m.message_type_id in (1, 5) then -1
      else coalesce(p.sequence, 0) - 1 + count(*) filter (where m.message_type_id not in (1, 5)) over (
        order by m.ordinality, b.ordinal rows unbounded preceding
      )
    end,
    e.service_name,
    e.service_id,
    e.service_contract_name,
    e.service_contract_id,
    t.name,
    m.message_type_id,
    t.validation::text,
    b.body,
    m.enqueued_at,
    (lpad(to_hex(e.endpoint_id), 16, '0') || to_hex(m.position + b.ordinal - 1 + 1152921504606846976))::uuid,
    m.trace_context
  from parley._p_endpoint as e
  join parley._p_conversation_group as g using (group_id)
  left join lateral (
    select s as hint
    from parley._p_scan_hint as s
    where s.lane = parley._p_lane((select v.queue_id from parley._p_service as v where v.service_id = e.service_id), e.priority)
    order by s.lane desc, s.hint_id desc
    limit 1
  ) as h on true
  cross join lateral parley._p_messages_in_order(e, parley._p_begin_of(h.hint, e.endpoint_id), top) with ordinality as m
  join parley._p_message_type as t on t.message_type_id = m.message_type_id
  left join lateral (
    select r.sequence from parley._p_receive_progress as r where r.endpoint_id = e.endpoint_id order by r.sequence desc limit 1
  ) as p on true
  cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
  where e.endpoint_id = $1 and e.group_id = $2 and e.state <> 'DO'
  order by m.ordinality, b.ordinal
  limit top
$$;

comment on function parley._p_deliverable(bigint, bigint, integer) is
'Shows the first messages of a conversation in the order in which RECEIVE takes them, if it still is in the group given.';

create function parley.finish_delivery(
  queue text, conversation_handle uuid, queuing_orders bigint[],
  caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_received bigint[];
begin
  v_received := array(
    select r.queuing_order
    from parley.receive(
      queue => finish_delivery.queue, top => cardinality(queuing_orders), conversation_handle => finish_delivery.conversation_handle,
      caller => caller
    ) as r
  );
  delete from parley._p_delivery_failure as f where f.conversation_handle = finish_delivery.conversation_handle;
  return v_received @> queuing_orders and queuing_orders @> v_received;
end
$$;

comment on function parley.finish_delivery(text, uuid, bigint[], parley.caller) is
'Receives messages that next_delivery has shown in this transaction and that were accepted. When it returns false a message of another sender has come
in front of them meanwhile: then roll back, and deliver again.
Arguments: queue; conversation_handle; queuing_orders, of the messages, all of that conversation.
Errors: 208, 229, 8426, 9609 and 9617 as receive.';

create function parley.fail_delivery(
  queue text, conversation_handle uuid, error text, is_attempt boolean default true, retry_ms integer default null, is_final boolean default false,
  caller parley.caller default parley.current_caller(),
  out attempts integer, out is_set_aside boolean
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
  v_endpoint parley._p_endpoint;
  v_activation parley._p_external_activation;
  v_failures integer;
begin
  attempts := 0;
  is_set_aside := false;
  select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = fail_delivery.conversation_handle;
  select * into v_activation from parley._p_external_activation as a where a.queue_id = v_queue.queue_id;
  if v_endpoint.endpoint_id is null or v_activation.first_retry_ms is null then
    return;
  end if;
  perform parley.note_failure(fail_delivery.conversation_handle, case when is_attempt then '38000' else '08006' end, error, caller => caller);
  -- Those of conversations that are over; there are never many.
  delete from parley._p_delivery_failure as f
  where f.queue_id = v_queue.queue_id and not exists (select from parley._p_endpoint as e where e.endpoint_id = f.endpoint_id);
  insert into parley._p_delivery_failure as f (
    endpoint_id, queue_id, conversation_handle, failures, attempts, last_error, first_failed_at, failed_at, retry_at
  )
  values (
    v_endpoint.endpoint_id, v_queue.queue_id, fail_delivery.conversation_handle, 1, is_attempt::integer, left(error, 2000),
    clock_timestamp(), clock_timestamp(), clock_timestamp()
  )
  on conflict on constraint _p_delivery_failure_pkey do update
  set failures = least(f.failures, 1000000) + 1,
    attempts = f.attempts + excluded.attempts,
    last_error = excluded.last_error,
    failed_at = excluded.failed_at
  returning f.failures, f.attempts into v_failures, attempts;
  if v_activation.max_attempts > 0 and (is_final or attempts >= v_activation.max_attempts) then
    is_set_aside := parley._p_set_delivery_aside(v_queue, v_endpoint, attempts);
    if is_set_aside then
      return;
    end if;
  end if;
  -- Twice as long each time, up to the longest; what the receiver asks for counts up to the longest too. A tenth is left to
  -- chance, so that conversations that failed together do not come back together.
  update parley._p_delivery_failure as f
  set retry_at = clock_timestamp() + make_interval(secs => (0.9 + 0.1 * random()) / 1000 * least(
      v_activation.longest_retry_ms,
      greatest(coalesce(retry_ms, 0), v_activation.first_retry_ms * power(2::double precision, least(v_failures - 1, 40)))
    ))
  where f.endpoint_id = v_endpoint.endpoint_id;
end
$$;

comment on function parley.fail_delivery(text, uuid, text, boolean, integer, boolean, parley.caller) is
'Notes that messages of a conversation were delivered and not accepted: it is passed over for a while, which doubles each time. After max_attempts of the
webhook it is set aside, as a poison message is, whatever the poison message handling of the queue.
Call it after the transaction of the delivery was rolled back. Returns attempts, how many have been counted, and is_set_aside.
Arguments: queue; conversation_handle; error, for people; is_attempt, whether it counts towards max_attempts (a receiver that is not there says nothing about
the message); retry_ms, milliseconds that the receiver asks to wait; is_final, whether the receiver will never accept it.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name.';

create function parley._p_set_delivery_aside(queue parley._p_queue, endpoint parley._p_endpoint, attempts integer) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_head record;
begin
  perform from parley._p_conversation_group as g where g.group_id = endpoint.group_id for update skip locked;
  if not found or parley._p_is_set_aside(endpoint.endpoint_id) then
    return false;
  end if;
  v_head := parley._p_first_message(queue, endpoint);
  if v_head.position is null or not parley._p_set_aside_conversation(queue.queue_id, endpoint.endpoint_id, v_head.position, attempts) then
    return false;
  end if;
  -- Should somebody put it back it begins anew.
  delete from parley._p_delivery_failure as f where f.endpoint_id = endpoint.endpoint_id;
  return true;
end
$$;

comment on function parley._p_set_delivery_aside(parley._p_queue, parley._p_endpoint, integer) is
'Sets a conversation aside whose delivery was refused too often; gives false when that cannot be now.';

create function parley.seconds_to_next_delivery(
  queue text,
  caller parley.caller default parley.current_caller()
) returns double precision
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
begin
  return (
    -- greatest() would make 0 of null.
    select case when count(*) > 0 then greatest(0, extract(epoch from min(f.retry_at) - clock_timestamp())) end::double precision
    from parley._p_delivery_failure as f
    join parley._p_endpoint as e using (endpoint_id)
    where f.queue_id = v_queue.queue_id
      and exists (select from parley._p_message as m where m.endpoint_id = f.endpoint_id and m.lane / 16 = v_queue.queue_id)
  );
end
$$;

comment on function parley.seconds_to_next_delivery(text, parley.caller) is
'Tells in how many seconds a conversation of a queue that failed to be delivered may be tried again; null when there is none.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name.';

create view parley.delivery_failures with (security_barrier) as
select
  q.lookup_name as queue_name,
  f.queue_id as service_queue_id,
  f.conversation_handle,
  f.failures,
  f.attempts,
  f.last_error,
  f.first_failed_at,
  f.failed_at,
  f.retry_at
from parley._p_delivery_failure as f
join parley._p_queue as q using (queue_id)
join parley._p_endpoint as e using (endpoint_id)
where pg_catalog.pg_has_role(e.owner, 'usage') or (select parley._p_is_administrator(parley._p_current_role()));

comment on view parley.delivery_failures is
'Conversations whose next message was delivered to a webhook and not accepted, and when it is tried again. Everybody sees those of roles he is a member of.';

-- sql/413_webhook_secrets.sql

-- Secrets of webhooks, until a daemon seals them.
--
-- Whoever defines a webhook does so in SQL, where no master key is: the secret is stored as it is, and the daemon, which has the key and is told of
-- each change of an activation, replaces it by itself, sealed. A daemon without a master key leaves it alone, and parley.diagnose_configuration tells
-- (webhook-secret-plain). Sealing needs no term: it changes only how the same secret is written down.
-- Locks: the queue's row, as the statements of activation take it, so that none of these puts back a secret that it read before.

create function parley._p_plain_secrets() returns table (queue_id integer, secret text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select a.queue_id, a.secret
  from parley._p_external_activation as a
  where a.secret is not null
$$;

comment on function parley._p_plain_secrets() is 'Gives the secrets of webhooks that are not sealed, of those that are switched off too.';

create function parley._p_seal_webhook_secret(queue_id integer, secret text, sealed_secret bytea) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Whoever holds the queue is not waited for: the daemon looks again, and has other things to do.
  perform from parley._p_queue as q where q.queue_id = _p_seal_webhook_secret.queue_id for no key update skip locked;
  if not found then
    return false;
  end if;
  update parley._p_external_activation as a
  set secret = null, sealed_secret = _p_seal_webhook_secret.sealed_secret
  where a.queue_id = _p_seal_webhook_secret.queue_id and a.secret = _p_seal_webhook_secret.secret;
  return found;
end
$$;

comment on function parley._p_seal_webhook_secret(integer, text, bytea) is
'Replaces the secret of a webhook by itself, sealed; false when it has been changed or sealed meanwhile, or somebody holds the queue.
Arguments: queue_id; secret, as _p_plain_secrets gave it; sealed_secret, the same sealed under the master key for this queue.';

-- sql/420_event_notifications.sql

-- Event notifications: subscriptions of a service to what happens to a queue, QUEUE_ACTIVATION or BROKER_QUEUE_DISABLED.
--
-- Each notification has a conversation of its own, from the built-in EventNotificationService, begun when the notification is
-- created and open until it is dropped. Whoever receives must not end it: a conversation that is over takes its notification with it.
-- What is sent when stands in 421_event_messages.sql.
-- Locks: the queue's row, then those of the notification's conversation, as END CONVERSATION takes them.

create table parley._p_event_notification (
  notification_id integer primary key,
  queue_id integer not null references parley._p_queue,
  name text collate "C" not null,
  owner regrole not null,
  event text not null check (event in ('QUEUE_ACTIVATION', 'BROKER_QUEUE_DISABLED')),
  is_fan_in boolean not null,
  to_service text collate "C" not null,
  broker_instance text,
  conversation_handle uuid not null,
  -- Whether it was told that the queue is disabled now: each disabling is told once.
  is_told boolean not null default false,
  create_date timestamptz not null default now(),
  unique (queue_id, name)
);

comment on table parley._p_event_notification is 'Event notifications (spec 2.10).';

create function parley._p_notifies_activation(queue_id integer) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (select from parley._p_event_notification as n where n.queue_id = $1 and n.event = 'QUEUE_ACTIVATION')
$$;

comment on function parley._p_notifies_activation(integer) is 'Tells whether a queue has a QUEUE_ACTIVATION event notification.';

create function parley._p_begin_notices(
  to_service text, broker_instance text, service_id integer default 2, service_contract_id integer default 2, lifetime integer default null
) returns uuid
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_handle uuid;
  v_endpoint bigint;
  v_lifetime timestamptz := clock_timestamp() + make_interval(secs => coalesce(lifetime, 2147483647));
  v_group bigint;
  v_service parley._p_service;
  v_queue parley._p_queue;
  v_contract parley._p_contract;
  v_priority smallint;
begin
  -- Not by begin_dialog, which would ask for rights on the broker's own queue.
  select * into v_service from parley._p_service as s where s.service_id = _p_begin_notices.service_id;
  select * into v_queue from parley._p_queue as q where q.queue_id = v_service.queue_id;
  select * into v_contract from parley._p_contract as c where c.service_contract_id = _p_begin_notices.service_contract_id;
  v_priority := parley._p_priority_of(v_contract.service_contract_id, v_service.service_id, to_service);
  perform parley._p_use_priority(v_queue, v_priority);
  insert into parley._p_conversation_group (conversation_group_id, service_id)
  values (gen_random_uuid(), v_service.service_id)
  returning group_id into v_group;
  insert into parley._p_endpoint (
    group_id, state, is_initiator, is_plain, priority, service_id, service_contract_id, service_name, service_contract_name,
    conversation_id, owner, far_service, far_broker_instance, is_encrypted, lifetime
  )
  values (
    v_group, 'SO', true, true, v_priority, v_service.service_id, v_contract.service_contract_id, v_service.name, v_contract.name,
    gen_random_uuid(), v_service.owner, to_service, broker_instance, true, v_lifetime
  )
  returning conversation_handle, endpoint_id into v_handle, v_endpoint;
  if lifetime is not null then
    perform parley._p_set_alarm(v_endpoint, 'lifetime', v_lifetime);
  end if;
  return v_handle;
end
$$;

comment on function parley._p_begin_notices(text, text, integer, integer, integer) is
'Begins a conversation from a service of the broker''s own: that of event notifications, or another one by its id and contract; lifetime in seconds.';

create function parley._p_require_event_service(to_service text, broker_instance text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_service parley._p_service;
begin
  if to_service is null or to_service = '' then
    perform parley._p_raise(8421, 'the service to be notified is missing', null, 'Name a service that accepts the contract PostEventNotification.');
  elsif broker_instance is distinct from (select b.service_broker_guid::text from parley._p_broker as b) then
    -- Of another database nothing is known: the broker there refuses, or takes it.
    return;
  end if;
  select * into v_service from parley._p_service as s where s.name = to_service;
  if not found then
    perform parley._p_raise(
      15151,
      format('service "%s" does not exist', to_service),
      'Names are compared byte by byte.' || parley._p_did_you_mean(to_service, array(select s.name from parley._p_service as s)),
      'See parley.services.'
    );
  elsif not exists (
    select from parley._p_service_contract as u where u.service_id = v_service.service_id and u.service_contract_id = 2
  ) then
    perform parley._p_raise(
      8408,
      format('service "%s" does not accept event notifications', to_service),
      'It must accept the contract http://schemas.microsoft.com/SQL/Notifications/PostEventNotification.',
      format(
        'Add it: select parley.alter_service(%L, add_contracts => array[''http://schemas.microsoft.com/SQL/Notifications/PostEventNotification'']);',
        to_service
      )
    );
  end if;
end
$$;

comment on function parley._p_require_event_service(text, text) is
'Refuses a service of this database that cannot be notified.
Errors: 8408 it does not accept the contract, 8421 missing, 15151 not found.';

create function parley.create_event_notification(
  name text,
  queue text,
  event text,
  to_service text,
  broker_instance text default 'current database',
  fan_in boolean default false,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'ALTER');
  v_event text := upper(event);
  v_instance text := parley._p_broker_instance(broker_instance);
  v_id integer;
begin
  perform parley._p_name('event notification', create_event_notification.name);
  if v_event is null or v_event not in ('QUEUE_ACTIVATION', 'BROKER_QUEUE_DISABLED') then
    perform parley._p_raise(
      8402,
      format('there is no event "%s" of a queue', event),
      null,
      'Use QUEUE_ACTIVATION or BROKER_QUEUE_DISABLED.'
    );
  end if;
  perform parley._p_require_event_service(to_service, v_instance);
  if v_event = 'QUEUE_ACTIVATION' then
    perform parley._p_require_sole_activator(v_queue.queue_id, 'event');
  end if;
  perform from parley._p_queue as q where q.queue_id = v_queue.queue_id for no key update;
  if exists (
    select from parley._p_event_notification as n where n.queue_id = v_queue.queue_id and n.name = create_event_notification.name
  ) then
    perform parley._p_raise(
      2714,
      format('queue "%s" has an event notification "%s" already', v_queue.lookup_name, name),
      null,
      'Drop it, or choose another name.'
    );
  end if;
  v_id := nextval('parley._p_object_id');
  insert into parley._p_event_notification (
    notification_id, queue_id, name, owner, event, is_fan_in, to_service, broker_instance, conversation_handle
  )
  values (
    v_id, v_queue.queue_id, create_event_notification.name, v_caller, v_event, coalesce(fan_in, false),
    create_event_notification.to_service, v_instance, parley._p_begin_notices(to_service, v_instance)
  );
  return v_id;
end
$$;

comment on function parley.create_event_notification(text, text, text, text, text, boolean, parley.caller) is
'Sends a service a message when something happens to a queue, and returns the id of the notification.
Arguments: name, one for each queue; queue; event, QUEUE_ACTIVATION (messages wait that nobody receives) or BROKER_QUEUE_DISABLED (by poison message
handling); to_service, which must accept the contract http://schemas.microsoft.com/SQL/Notifications/PostEventNotification; broker_instance, the id of
its database, ''current database'', or null for any; fan_in, whether notifications alike, of one owner to one service, are sent as one message.
The conversation stays open; when the receiver ends it, or it breaks, the notification is dropped.
Errors: 208 no such queue, 229 not allowed, 2714 exists, 8402 unknown event, 8408 contract not accepted, 8413 malformed broker_instance,
8421 to_service missing, 9609 bad name, 9663 system object, 9718 the queue has another activation, 15151 service not found.
Source: spec 2.10.';

create function parley.drop_event_notification(
  name text, queue text,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(queue);
  v_notification parley._p_event_notification;
begin
  select * into v_notification
  from parley._p_event_notification as n
  where n.queue_id = v_queue.queue_id and n.name = drop_event_notification.name;
  if v_notification.notification_id is null or pg_has_role(v_caller, v_notification.owner, 'usage') is not true then
    perform parley._p_find_queue(v_caller, queue, 'ALTER');
  end if;
  if v_notification.notification_id is null then
    perform parley._p_raise(
      15151,
      format('queue "%s" has no event notification "%s"', v_queue.lookup_name, name),
      'Names are compared byte by byte. It goes by itself when its conversation ends.',
      'See parley.event_notifications.'
    );
  end if;
  perform parley._p_drop_event_notifications(array[v_notification.notification_id]);
end
$$;

comment on function parley.drop_event_notification(text, text, parley.caller) is
'Drops an event notification of a queue and ends its conversation. Its owner may, and whoever may ALTER the queue.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name, 15151 not found.
Source: spec 2.10.';

create function parley._p_drop_event_notifications(notifications integer[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_handle uuid;
  v_endpoint parley._p_endpoint;
begin
  for v_handle in
    delete from parley._p_event_notification as n where n.notification_id = any (notifications) returning n.conversation_handle
  loop
    if exists (select from parley._p_endpoint as e where e.conversation_handle = v_handle) then
      v_endpoint := parley._p_lock_to_end(v_handle);
      if v_endpoint.state <> 'DO' then
        perform parley._p_end_side(v_endpoint, 2, null);
      end if;
    end if;
  end loop;
end
$$;

comment on function parley._p_drop_event_notifications(integer[]) is 'Drops event notifications and ends their conversations.';

create view parley.event_notifications with (security_barrier) as
select
  n.name,
  n.notification_id as object_id,
  1::smallint as parent_class,
  'OBJECT_OR_COLUMN'::text as parent_class_desc,
  n.queue_id as parent_id,
  n.create_date,
  n.create_date as modify_date,
  false as is_ms_shipped,
  n.to_service as service_name,
  n.broker_instance,
  null::bytea as creator_sid,
  n.owner::oid as principal_id,
  n.event as type_desc,
  n.is_fan_in,
  n.conversation_handle,
  q.lookup_name as queue_name
from parley._p_event_notification as n
join parley._p_queue as q using (queue_id)
where pg_catalog.pg_has_role(n.owner, 'usage')
  or n.queue_id in (select v.object_id from parley.service_queues as v);

comment on view parley.event_notifications is
'Event notifications; those of the catalog of events are told in type_desc. The last four columns are ours.';

-- sql/421_event_messages.sql

-- The messages of event notifications: when they are sent, and what is in them.
--
-- A failure to notify is a warning in the log, never an error of whoever caused the event (spec 2.10).
-- QUEUE_ACTIVATION is raised by the daemon, which knows when messages wait that nobody receives. BROKER_QUEUE_DISABLED is noticed
-- by fire_timers: the disabling itself happens outside of any transaction (243_poison.sql), in a session that is about to fail.

create function parley._p_event_body(caller oid, event text, queue parley._p_queue) returns bytea
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select convert_to(
    xmlelement(
      name "EVENT_INSTANCE",
      xmlelement(name "EventType", event),
      xmlelement(name "PostTime", to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS')),
      xmlelement(name "SPID", pg_backend_pid()),
      xmlelement(name "ServerName", coalesce(nullif(current_setting('cluster_name'), ''), host(inet_server_addr()), 'localhost')),
      xmlelement(name "LoginName", session_user),
      xmlelement(name "UserName", pg_get_userbyid(caller)),
      xmlelement(name "DatabaseName", current_database()),
      xmlelement(name "SchemaName", queue.schema_name),
      xmlelement(name "ObjectName", queue.name),
      xmlelement(name "ObjectType", 'QUEUE')
    )::text,
    'UTF8'
  )
$$;

comment on function parley._p_event_body(oid, text, parley._p_queue) is 'Gives the body of an event notification, in UTF-8; times are UTC (spec 2.10).';

create function parley._p_post_notice(handle uuid, type parley._p_message_type, body bytea) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle for update;
  if not found or v_endpoint.state not in ('SO', 'CO') then
    return false;
  end if;
  if v_endpoint.state = 'SO' then
    update parley._p_endpoint as e set state = 'CO', state_since = clock_timestamp() where e.endpoint_id = v_endpoint.endpoint_id;
  end if;
  perform parley._p_dispatch(handle, type, array[body], null);
  -- The target may have refused.
  return exists (select from parley._p_endpoint as e where e.conversation_handle = handle and e.state = 'CO');
end
$$;

comment on function parley._p_post_notice(uuid, parley._p_message_type, bytea) is
'Sends a message of the broker''s own on a conversation of _p_begin_notices; gives false when that conversation is over.';

create function parley._p_post_events(caller oid, queue_id integer, event text) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
  v_type parley._p_message_type;
  v_notification record;
  v_posted integer := 0;
begin
  select * into v_queue from parley._p_queue as q where q.queue_id = _p_post_events.queue_id;
  select * into v_type from parley._p_message_type as t where t.message_type_id = 4;
  for v_notification in
    select n.notification_id, n.name, n.conversation_handle,
      n.is_fan_in and exists (
        select
        from parley._p_event_notification as o
        where o.queue_id = n.queue_id
          and o.event = n.event
          and o.is_fan_in
          and o.owner = n.owner
          and o.to_service = n.to_service
          and o.broker_instance is not distinct from n.broker_instance
          and o.notification_id < n.notification_id
      ) as is_merged
    from parley._p_event_notification as n
    where n.queue_id = v_queue.queue_id and n.event = _p_post_events.event
    order by n.notification_id
  loop
    continue when v_notification.is_merged;
    begin
      if parley._p_post_notice(v_notification.conversation_handle, v_type, parley._p_event_body(caller, event, v_queue)) then
        v_posted := v_posted + 1;
      else
        perform parley._p_drop_event_notifications(array[v_notification.notification_id]);
        raise warning 'event notification "%" of queue "%" is dropped: its conversation is over', v_notification.name, v_queue.lookup_name;
      end if;
    exception
      when others then
        raise warning 'event notification "%" of queue "%" failed: %', v_notification.name, v_queue.lookup_name, sqlerrm;
    end;
  end loop;
  return v_posted;
end
$$;

comment on function parley._p_post_events(oid, integer, text) is
'Sends an event of a queue to all who asked for it, and gives how many messages that were. Fails with a warning only.';

create function parley.notify_activation(
  queue text,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(queue);
begin
  perform parley._p_require_administrator(v_caller, 'raising QUEUE_ACTIVATION');
  return parley._p_post_events(v_caller, v_queue.queue_id, 'QUEUE_ACTIVATION');
end
$$;

comment on function parley.notify_activation(text, parley.caller) is
'Raises QUEUE_ACTIVATION for a queue and returns how many messages were sent. For the daemon, when messages wait that nobody receives.
Errors: 208 no such queue, 9609 malformed name, 15151 not an administrator.
Source: spec 2.10, 5.5.';

create function parley._p_notify_disabled_queues(caller oid) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_told record;
  v_posted integer := 0;
  v_over integer[];
begin
  update parley._p_event_notification as n set is_told = false where n.is_told and not parley._p_is_poisoned(n.queue_id);
  for v_told in
    select n.queue_id, array_agg(n.notification_id order by n.notification_id) as notifications
    from parley._p_event_notification as n
    where n.event = 'BROKER_QUEUE_DISABLED' and not n.is_told and parley._p_is_poisoned(n.queue_id)
    group by n.queue_id
  loop
    -- Of two at once one tells.
    perform
    from parley._p_event_notification as n
    where n.notification_id = any (v_told.notifications) and not n.is_told
    order by n.notification_id
    for no key update skip locked;
    continue when not found;
    update parley._p_event_notification as n set is_told = true where n.notification_id = any (v_told.notifications);
    v_posted := v_posted + parley._p_post_events(caller, v_told.queue_id, 'BROKER_QUEUE_DISABLED');
  end loop;
  -- A conversation that is over takes its notification with it.
  v_over := array(
    select n.notification_id
    from parley._p_event_notification as n
    left join parley._p_endpoint as e using (conversation_handle)
    where e.state is null or e.state not in ('SO', 'CO')
  );
  if cardinality(v_over) > 0 then
    perform parley._p_drop_event_notifications(v_over);
    raise warning '% event notifications are dropped: their conversations are over', cardinality(v_over);
  end if;
  return v_posted;
end
$$;

comment on function parley._p_notify_disabled_queues(oid) is
'Raises BROKER_QUEUE_DISABLED for queues that poison message handling has disabled, once for each time, and drops notifications whose conversation is over.
Gives how many messages were sent.
Source: spec 2.10, 5.6.';

-- sql/422_external_readers.sql

-- What the daemon starts outside of the database, for which queue. It is the one place that shows secrets, and for administrators only.

create function parley._p_external_definition(activation parley._p_external_activation) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case activation.kind
    when 'program' then jsonb_build_object(
      'program', activation.program,
      'environment', activation.environment,
      'working_directory', activation.working_directory,
      'stop_timeout_ms', activation.stop_timeout_ms,
      'schema_name', (select q.schema_name from parley._p_queue as q where q.queue_id = activation.queue_id),
      'queue_name', (select q.name from parley._p_queue as q where q.queue_id = activation.queue_id)
    )
    when 'webhook' then jsonb_build_object(
      'url', activation.url,
      'secret', activation.secret,
      'sealed_secret', encode(activation.sealed_secret, 'base64'),
      'timeout_ms', activation.timeout_ms,
      'batch_size', activation.batch_size,
      'body_format', activation.body_format,
      'system_messages', activation.system_messages,
      'max_attempts', activation.max_attempts
    )
  end
$$;

comment on function parley._p_external_definition(parley._p_external_activation) is 'Gives what a starter of readers needs to know, with secrets.';

create function parley._p_external_readers()
returns table (queue_id integer, kind text, min_readers integer, max_readers integer, definition jsonb)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select a.queue_id, a.kind, a.min_instances, a.max_instances, parley._p_external_definition(a)
  from parley._p_external_activation as a
  where a.is_enabled
  union all
  select n.queue_id, 'event', 0, 1, jsonb_build_object('notifications', count(*))
  from parley._p_event_notification as n
  where n.event = 'QUEUE_ACTIVATION'
  group by n.queue_id
$$;

comment on function parley._p_external_readers() is
'Gives for each queue that is activated from outside of the database the kind of its readers (program, webhook, event), how many run at least and at most,
and the definition for whoever starts them, with secrets.';

-- sql/423_activation_view_columns.sql

-- What the columns of the views of external activation and of event notifications mean; 320_view_columns.sql holds the others.

comment on column parley.external_activations.queue_name is 'Queue, as statements take it.';
comment on column parley.external_activations.service_queue_id is 'Identity of the queue.';
comment on column parley.external_activations.kind is 'program or webhook.';
comment on column parley.external_activations.is_enabled is 'Whether anything is started.';
comment on column parley.external_activations.min_instances is 'How many always run; 0 for webhooks.';
comment on column parley.external_activations.max_instances is 'How many run at most; for a webhook, requests at once.';
comment on column parley.external_activations.program is 'Program and its arguments; null for webhooks.';
comment on column parley.external_activations.environment_names is 'Names of the variables that it is given.';
comment on column parley.external_activations.working_directory is 'Where it runs; null is the folder of the program.';
comment on column parley.external_activations.stop_timeout_ms is 'Milliseconds from SIGTERM to SIGKILL.';
comment on column parley.external_activations.url is 'Address of the webhook, without its query; null for programs.';
comment on column parley.external_activations.secret_name is 'Name of the secret, or null; the secret itself is not shown.';
comment on column parley.external_activations.timeout_ms is 'Milliseconds for one request.';
comment on column parley.external_activations.batch_size is 'Messages in one request, at most.';
comment on column parley.external_activations.body_format is 'envelope or raw.';
comment on column parley.external_activations.system_messages is 'Whether EndDialog and Error are delivered too.';
comment on column parley.external_activations.max_attempts is 'Refusals after which a conversation is set aside; 0 is never.';
comment on column parley.external_activations.first_retry_ms is 'Milliseconds that a conversation waits after its first refusal.';
comment on column parley.external_activations.longest_retry_ms is 'Milliseconds that it waits at most.';
comment on column parley.external_activations.create_date is 'When it was created.';
comment on column parley.external_activations.modify_date is 'When it was changed last.';

comment on column parley.delivery_failures.queue_name is 'Queue, as statements take it.';
comment on column parley.delivery_failures.service_queue_id is 'Identity of the queue.';
comment on column parley.delivery_failures.conversation_handle is 'Conversation that waits.';
comment on column parley.delivery_failures.failures is 'How often its delivery has failed in a row.';
comment on column parley.delivery_failures.attempts is 'How many of these count towards max_attempts.';
comment on column parley.delivery_failures.last_error is 'What was wrong the last time.';
comment on column parley.delivery_failures.first_failed_at is 'When it failed first.';
comment on column parley.delivery_failures.failed_at is 'When it failed last.';
comment on column parley.delivery_failures.retry_at is 'When it is tried again.';

comment on column parley.event_notifications.name is 'Name, one for each queue.';
comment on column parley.event_notifications.object_id is 'Identity of the notification.';
comment on column parley.event_notifications.parent_class is 'Always 1.';
comment on column parley.event_notifications.parent_class_desc is 'Always OBJECT_OR_COLUMN.';
comment on column parley.event_notifications.parent_id is 'Identity of the queue.';
comment on column parley.event_notifications.create_date is 'When it was created.';
comment on column parley.event_notifications.modify_date is 'The same: a notification is never altered.';
comment on column parley.event_notifications.is_ms_shipped is 'Always false.';
comment on column parley.event_notifications.service_name is 'Service that is notified.';
comment on column parley.event_notifications.broker_instance is 'Its database, or null for any.';
comment on column parley.event_notifications.creator_sid is 'Always null: roles have no sid.';
comment on column parley.event_notifications.principal_id is 'Oid of the owner.';
comment on column parley.event_notifications.type_desc is 'QUEUE_ACTIVATION or BROKER_QUEUE_DISABLED.';
comment on column parley.event_notifications.is_fan_in is 'Whether it shares its messages with others like it.';
comment on column parley.event_notifications.conversation_handle is 'Conversation that the messages are sent on.';
comment on column parley.event_notifications.queue_name is 'Queue, as statements take it.';

-- sql/425_dynamic_routing.sql

-- Dynamic routing: asking the broker configuration service for what is missing (spec 6.6).
--
-- A database that has a route to the service SQL/ServiceBroker/BrokerConfiguration asks it for routes that are missing, with a message of the
-- built-in service on the contract BrokerConfigurationNotice. The service creates what is missing and ends the conversation; that
-- end, with an error or without, is the answer. Whoever cannot be helped by it goes on with the steps that follow, and is
-- not asked for again for a minute, else a service that knows nothing would be asked without end.
-- Invariant: one conversation for each service name. Of two who find the same thing missing at once, one asks, and the other waits for
-- nobody: he behaves as if it were asked, which is true or will be found out when delayed messages are looked at again.
-- Locks: an advisory lock for the name, only tried; then the row of the request; then those of its conversation.

create table parley._p_configuration_request (
  service_name text collate "C" primary key,
  conversation_handle uuid not null,
  asked_at timestamptz not null default clock_timestamp(),
  answered_at timestamptz
);

comment on table parley._p_configuration_request is 'What the broker configuration service was asked for, until a while after its answer.';

create function parley._p_is_asking(service_name text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select
    from parley._p_configuration_request as q
    join parley._p_endpoint as e using (conversation_handle)
    where q.service_name = _p_is_asking.service_name and q.answered_at is null and e.state in ('SO', 'CO')
  );
end
$$;

comment on function parley._p_is_asking(text) is
'Tells whether the broker configuration service was asked for a route and has not answered.
Arguments: service_name, the service to which there is no route.';

create function parley._p_ask_broker_configuration(service_name text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_request parley._p_configuration_request;
  v_type parley._p_message_type;
  v_handle uuid;
begin
  if not pg_try_advisory_xact_lock(hashtextextended(format('parley MissingRoute %s', service_name), 0)) then
    return false;
  end if;
  select * into v_request
  from parley._p_configuration_request as q
  where q.service_name = _p_ask_broker_configuration.service_name;
  if parley._p_is_asking(service_name)
    or (v_request.asked_at is not null and coalesce(v_request.answered_at, clock_timestamp()) > clock_timestamp() - interval '1 minute') then
    return false;
  end if;
  v_handle := parley._p_begin_notices('SQL/ServiceBroker/BrokerConfiguration', null, 3, 3, 3600);
  insert into parley._p_configuration_request as q (service_name, conversation_handle)
  values (_p_ask_broker_configuration.service_name, v_handle)
  on conflict on constraint _p_configuration_request_pkey do update
  set conversation_handle = excluded.conversation_handle, asked_at = excluded.asked_at, answered_at = null;
  select * into v_type from parley._p_message_type as t where t.message_type_id = 6;
  perform parley._p_post_notice(v_handle, v_type, parley._p_missing_route_body(service_name));
  return true;
end
$$;

comment on function parley._p_ask_broker_configuration(text) is
'Asks the broker configuration service for a route, unless it was asked already or has answered within a minute. Tells whether it was asked now.
Arguments: service_name, the service to which there is no route.
Source: spec 6.6.';

create function parley._p_missing_route_body(service_name text) returns bytea
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select convert_to(
    xmlelement(
      name "MissingRoute",
      xmlattributes('http://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice/MissingRoute' as xmlns),
      xmlelement(name "SERVICE_NAME", service_name)
    )::text,
    'UTF8'
  )
$$;

comment on function parley._p_missing_route_body(text) is 'Gives the body of the message that asks for a missing route, in UTF-8.';

create function parley._p_take_configuration_answers() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_request record;
  v_endpoint parley._p_endpoint;
  v_answers integer := 0;
begin
  for v_request in
    select q.service_name, q.conversation_handle
    from parley._p_configuration_request as q
    left join parley._p_endpoint as e using (conversation_handle)
    where q.answered_at is null and (e.state is null or e.state not in ('SO', 'CO'))
    order by q.service_name
    for update of q skip locked
  loop
    update parley._p_configuration_request as q set answered_at = clock_timestamp()
    where q.service_name = v_request.service_name;
    if exists (select from parley._p_endpoint as e where e.conversation_handle = v_request.conversation_handle) then
      v_endpoint := parley._p_lock_to_end(v_request.conversation_handle);
      if v_endpoint.state <> 'DO' then
        perform parley._p_end_side(v_endpoint, 2, null);
      end if;
    end if;
    perform parley._p_deliver_delayed(v_request.service_name);
    v_answers := v_answers + 1;
  end loop;
  delete from parley._p_configuration_request as q where q.answered_at < clock_timestamp() - interval '1 minute';
  return v_answers;
end
$$;

comment on function parley._p_take_configuration_answers() is
'Ends the conversations in which the broker configuration service has answered, and looks again at what waited for it. An end with an error, or of the
lifetime, means that it does not know. Gives the number of answers.
Source: spec 6.6.';

-- sql/430_broker_switches.sql

-- ALTER DATABASE ... SET ENABLE_BROKER, DISABLE_BROKER, NEW_BROKER, ERROR_BROKER_CONVERSATIONS (spec 9.1).
--
-- While the broker is disabled a SEND is taken and waits in the transmission queue, and so does END CONVERSATION. The short way of SEND asks for
-- nothing but its endpoint's row, so disabling takes the routes out of all of these rows; the long way asks the switch.
-- Keeps S4, order within a conversation: whoever has asked the switch keeps it from being thrown until his transaction ends. So no message is
-- delayed by a sender that saw it off and overtaken by one that saw it on: enabling delivers everything delayed before it lets anybody pass.
-- Locks: the switch, then endpoints by endpoint_id. Senders that began before are waited for, ten seconds unless the caller says otherwise.
-- Cost for SEND: none on the short way; the lock of one more relation on the long way.

create function parley._p_wait_at_most(seconds integer) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  select set_config('lock_timeout', case when seconds is null then '0' else greatest(seconds * 1000, 1)::text end, true)
$$;

comment on function parley._p_wait_at_most(integer) is
'Limits how long locks are waited for. The callers have a setting of their own in their definition, so that the limit ends with them.';

create function parley._p_throw_switch(is_enabled boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  alter sequence parley._p_broker_switch restart;
  if not is_enabled then
    perform setval('parley._p_broker_switch', 1);
  end if;
  -- Daemons have to begin or to stop activation.
  perform pg_notify('parley', 'queues');
end
$$;

comment on function parley._p_throw_switch(boolean) is
'Throws the switch of the broker, once everybody who has asked for its position has finished.
Errors: 55P03 when somebody does not finish within lock_timeout.';

create function parley._p_raise_in_use() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_holders text;
begin
  select string_agg(distinct coalesce(l.pid::text, 'a prepared transaction'), ', ') into v_holders
  from pg_locks as l
  join pg_class as c on c.oid = l.relation
  where l.database = parley._p_database_oid()
    and c.relnamespace = 'parley'::regnamespace
    and c.relkind in ('r', 'S')
    and l.granted
    and l.mode in ('RowExclusiveLock', 'AccessExclusiveLock')
    and l.pid is distinct from pg_backend_pid();
  perform parley._p_raise(
    5061,
    'the broker is in use',
    'Open transactions send or receive; their process ids: ' || coalesce(v_holders, 'unknown, they have just ended') || '.',
    'Try again when they have finished, or end them: select pg_terminate_backend(pid);'
  );
end
$$;

comment on function parley._p_raise_in_use() is
'Says that open transactions keep the broker from being switched, and whose they are.
Errors: 5061, always.';

create function parley._p_switch_off() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_throw_switch(false);
  perform from parley._p_endpoint as e where e.destination_lane is not null order by e.endpoint_id for no key update;
  perform parley._p_forget_routes(array(select e.endpoint_id from parley._p_endpoint as e where e.destination_lane is not null));
  update parley._p_broker as b set is_broker_enabled = false, disabled_at = clock_timestamp();
end
$$;

comment on function parley._p_switch_off() is 'Disables the broker. Errors: 55P03 when senders do not finish within lock_timeout.';

create function parley._p_switch_on() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is_elsewhere boolean := parley._p_is_elsewhere();
begin
  perform parley._p_throw_switch(true);
  update parley._p_broker as b
  set is_broker_enabled = true, disabled_at = null,
    system_identifier = parley._p_system_identifier(), database_oid = parley._p_database_oid();
  -- What it was restored from may be older than what other brokers know of it.
  if v_is_elsewhere then
    perform parley._p_begin_epoch();
  end if;
end
$$;

comment on function parley._p_switch_on() is
'Enables the broker, and notes that it lives here. Errors: 55P03 when senders do not finish within lock_timeout.';

create function parley._p_require_no_original(original_is_disabled boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley._p_original() is not null and not original_is_disabled then
    perform parley._p_raise(
      9772,
      'a broker with the same id is on this server already',
      format('This database is a copy of "%s", which is still there.', parley._p_original()),
      'For a copy: select parley.new_broker(); when this one takes the place of the original, drop that or disable its broker, and then:'
        || ' select parley.enable_broker(original_is_disabled => true);'
    );
  end if;
end
$$;

comment on function parley._p_require_no_original(boolean) is
'Refuses to enable a second broker of the same id on one server.
Errors: 9772.';

create function parley.disable_broker(
  wait_seconds integer default 10,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '10s'
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  perform parley._p_require_administrator(v_caller, 'DISABLE_BROKER');
  perform parley._p_wait_at_most(wait_seconds);
  perform parley._p_switch_off() from parley._p_broker as b where b.is_broker_enabled;
exception
  when lock_not_available then
    perform parley._p_raise_in_use();
end
$$;

comment on function parley.disable_broker(integer, parley.caller) is
'Disables the broker of this database: messages are no longer delivered, services are no longer found, activation stops. SEND and END CONVERSATION are
still accepted; what they send waits in the transmission queue. What has been delivered can be received. Transactions that send are waited for.
Arguments: wait_seconds, for how long (0: not at all, null: for ever).
Errors: 5061 in use, 15151 not an administrator.
Source: spec 9.1, DISABLE_BROKER.';

create function parley.enable_broker(
  original_is_disabled boolean default false, wait_seconds integer default 10,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '10s'
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  perform parley._p_require_administrator(v_caller, 'ENABLE_BROKER');
  perform parley._p_wait_at_most(wait_seconds);
  perform parley._p_require_no_original(original_is_disabled);
  if parley._p_broker_state() <> 'ENABLED' then
    perform parley._p_switch_on();
    perform parley._p_deliver_delayed(null);
  end if;
exception
  when lock_not_available then
    perform parley._p_raise_in_use();
end
$$;

comment on function parley.enable_broker(boolean, integer, parley.caller) is
'Enables the broker of this database under the id it has, and delivers what has waited, in order. For a broker that has moved: restored for recovery,
on another server. Transactions that send are waited for.
Arguments: original_is_disabled, true when this database takes the place of the one it was copied from on the same server;
wait_seconds, as disable_broker.
Errors: 5061 in use, 9772 the original is on this server, 15151 not an administrator.
Source: spec 9.1, ENABLE_BROKER.';

create function parley.error_broker_conversations(
  original_is_disabled boolean default false, wait_seconds integer default 10,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '10s'
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_told integer;
begin
  perform parley._p_require_administrator(v_caller, 'ERROR_BROKER_CONVERSATIONS');
  perform parley._p_wait_at_most(wait_seconds);
  perform parley._p_require_no_original(original_is_disabled);
  perform parley._p_switch_on();
  delete from parley._p_transmission as t;
  v_told := parley._p_break_conversations(
    array(select e.endpoint_id from parley._p_endpoint as e), 9719, 'The database of one side of the conversation was restored or attached.', 9720
  );
  return v_told;
exception
  when lock_not_available then
    perform parley._p_raise_in_use();
end
$$;

comment on function parley.error_broker_conversations(boolean, integer, parley.caller) is
'Enables the broker under the id it has, and ends every conversation with an Error message of code -9719: for a database that was brought back to an older
moment. Each side then has to end its conversation, and may begin a new one. What waits in the transmission queue is dropped. A far side in another
database gets code -9720.
Gives the number of sides of this database that were told.
Arguments: original_is_disabled and wait_seconds, as enable_broker.
Errors: 5061 in use, 9772 the original is on this server, 15151 not an administrator.
Source: spec 9.1, ERROR_BROKER_CONVERSATIONS.';

create function parley.new_broker(
  wait_seconds integer default 10,
  caller parley.caller default parley.current_caller()
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '10s'
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_old text := (select b.service_broker_guid::text from parley._p_broker as b);
  v_guid uuid;
  v_table text;
  v_is_used boolean;
begin
  perform parley._p_require_administrator(v_caller, 'NEW_BROKER');
  perform parley._p_wait_at_most(wait_seconds);
  if current_setting('transaction_read_only') = 'on' then
    perform parley._p_raise(9775, 'a broker cannot get a new id in a read-only database', null, 'Do it where the database can be written.');
  end if;
  perform parley._p_switch_on();
  -- An invitation is to the broker that made it.
  delete from parley._p_pairing as p;
  foreach v_table in array array[
    '_p_message', '_p_transmission', '_p_transit', '_p_send_progress', '_p_accept_progress', '_p_parked', '_p_unresumed', '_p_compared',
    '_p_fragment', '_p_expedited',
    '_p_destination', '_p_neighbour_service', '_p_retained', '_p_copy_progress', '_p_receive_progress', '_p_scan_hint', '_p_alarm', '_p_tombstone',
    '_p_set_aside', '_p_failure',
    '_p_delivery_failure', '_p_daemon_report', '_p_configuration_request', '_p_session_key', '_p_endpoint',
    '_p_conversation_group'
  ] loop
    -- Emptying an empty table costs a file and locks out everybody for nothing.
    execute format('select exists (select from parley.%I)', v_table) into v_is_used;
    if v_is_used then
      execute format('truncate parley.%I', v_table);
    end if;
  end loop;
  -- What would open a dialog a second time is still recognised, also in a copy of the database that has got it first.
  delete from parley._p_dialog_security as s where s.opened_at is null or s.opened_at < clock_timestamp() - parley._p_replay_memory();
  perform setval(q.rollback_sequence, 0) from parley._p_queue as q where pg_sequence_last_value(q.rollback_sequence) > 0;
  -- A broker of a new id has forgotten nothing.
  update parley._p_broker as b set service_broker_guid = gen_random_uuid(), remembers_since = null returning b.service_broker_guid into v_guid;
  -- Event notifications are definitions; the conversations that they speak through were among those removed.
  update parley._p_event_notification as n
  set conversation_handle = parley._p_begin_notices(n.to_service, i.instance), broker_instance = i.instance, is_told = false
  from (
    select e.notification_id, case e.broker_instance when v_old then v_guid::text else e.broker_instance end as instance
    from parley._p_event_notification as e
  ) as i
  where i.notification_id = n.notification_id;
  return v_guid;
exception
  when lock_not_available then
    perform parley._p_raise_in_use();
end
$$;

comment on function parley.new_broker(integer, parley.caller) is
'Gives the broker of this database a new id, enables it, and removes all conversations and all messages, telling nobody: for a copy of a database that is to
live beside the original. Definitions and rights stay. Returns the new id. Whoever named the old one (routes, BEGIN DIALOG) must learn it.
Arguments: wait_seconds, as disable_broker.
Errors: 5061 in use, 9775 read-only, 15151 not an administrator.
Source: spec 9.1, NEW_BROKER.';

-- sql/440_activated_queues.sql

-- Which queues have activation on, and what the daemon is to start for them; and how it learns of changes.

create function parley._p_activated_queues() returns table (
  queue_id integer, name text, max_readers integer, min_readers integer, kind text, procedure_call text, procedure_name text, execute_as text,
  external jsonb, version text, refusal text
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    q.queue_id,
    q.lookup_name,
    q.max_readers,
    0,
    'procedure',
    -- Printed by the system, so it is a name and nothing else.
    p.oid::regprocedure::text,
    q.activation_procedure,
    r.rolname::text,
    null::jsonb,
    concat_ws(' ', q.modify_date::text, p.oid::text, p.xmin::text, r.rolname::text, f.refusal),
    f.refusal
  from parley._p_queue as q
  left join pg_proc as p on p.oid = to_regproc(q.activation_procedure) and p.prokind = 'p' and p.pronargs = 0
  left join pg_roles as r on r.oid = parley._p_execute_as(q.execute_as, q.owner)
  cross join lateral (select parley._p_acting_refusal(q) as refusal) as f
  where q.is_activation_enabled and (select b.is_broker_enabled from parley._p_broker as b)
  union all
  select
    q.queue_id,
    q.lookup_name,
    x.max_readers,
    x.min_readers,
    x.kind,
    null,
    null,
    null,
    x.definition,
    concat_ws(' ', q.modify_date::text, x.kind, x.min_readers::text, x.max_readers::text, md5(x.definition::text), f.refusal),
    f.refusal
  from parley._p_external_readers() as x
  left join parley._p_external_activation as e on e.queue_id = x.queue_id and x.kind in ('program', 'webhook')
  left join lateral (select parley._p_external_refusal(e) as refusal where e.queue_id is not null) as f on true
  join parley._p_queue as q on q.queue_id = x.queue_id
  where (select b.is_broker_enabled from parley._p_broker as b)
$$;

comment on function parley._p_activated_queues() is
'Gives the queues with activation on, in an enabled broker, and what to start for each. procedure_call is null when the procedure is gone, execute_as
when the role is. refusal says why nothing may be started, because who said what is could not do it himself. version
changes whenever the definition does, that of the procedure included.';

create function parley._p_reader_refusal(queue_id integer) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select parley._p_acting_refusal(q)
  from parley._p_queue as q
  where q.queue_id = _p_reader_refusal.queue_id and q.is_activation_enabled
  union all
  select parley._p_external_refusal(a)
  from parley._p_external_activation as a
  where a.queue_id = _p_reader_refusal.queue_id and a.is_enabled
$$;

comment on function parley._p_reader_refusal(integer) is 'Says why no reader of a queue may be started now; null when one may.';

create function parley._p_require_reader(queue_id integer) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_refusal text := parley._p_reader_refusal(queue_id);
begin
  if v_refusal is not null then
    raise exception using
      errcode = '42501',
      message = v_refusal,
      detail = 'The rights that count are those of now, not those of when it was set.',
      hint = 'Let a role that may set the activation again, or grant the membership.';
  end if;
end
$$;

comment on function parley._p_require_reader(integer) is 'Refuses to start a reader of a queue when who said what reads it may not, or no longer.
Errors: SQLSTATE 42501.';

create function parley._p_notify_daemon() returns trigger
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_notify('parley', 'queues');
  return null;
end
$$;

comment on function parley._p_notify_daemon() is 'Tells the daemons that what they work by has changed.';

create trigger _p_notify_daemon after insert or update or delete on parley._p_queue
for each statement execute function parley._p_notify_daemon();

create trigger _p_notify_daemon after insert or update or delete on parley._p_external_activation
for each statement execute function parley._p_notify_daemon();

create trigger _p_notify_daemon after insert or delete on parley._p_event_notification
for each statement execute function parley._p_notify_daemon();

create trigger _p_notify_daemon after update on parley._p_broker
for each statement execute function parley._p_notify_daemon();

-- sql/500_dropped_queues.sql

-- What queues that are gone have counted, so that no total ever falls.

create table parley._p_dropped_queue (
  enqueued bigint not null,
  tasks_started bigint not null,
  procedures_invoked bigint not null,
  tasks_aborted bigint not null,
  task_limit_reached bigint not null
);

comment on table parley._p_dropped_queue is
'One row for each queue that was used and then dropped: how much had been put on it, and what activation did for it.';

create function parley._p_keep_totals(queue_id integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_dropped_queue (enqueued, tasks_started, procedures_invoked, tasks_aborted, task_limit_reached)
  select t.enqueued, t.started, case when q.activation_procedure is null then 0 else t.started end, t.aborted, t.limit_reached
  from parley._p_queue as q
  left join parley._p_queue_monitor as m on m.queue_id = q.queue_id
  cross join lateral (
    select coalesce(parley._p_last_position(q.position_sequence), 0) as enqueued, coalesce(m.tasks_started, 0) as started,
      coalesce(m.tasks_aborted, 0) as aborted, coalesce(m.task_limit_reached, 0) as limit_reached
  ) as t
  where q.queue_id = $1 and greatest(t.enqueued, t.started, t.aborted, t.limit_reached) > 0;
  delete from parley._p_queue_monitor as m where m.queue_id = $1;
end
$$;

comment on function parley._p_keep_totals(integer) is 'Keeps the counts of a queue that is about to be dropped, and forgets its monitor.';

-- sql/501_queue_figures.sql

-- Figures of all queues at once, for counters and metrics.
--
-- Nothing is counted for them when messages are sent or received. How many rows were ever put on a queue is the last number of its
-- position sequence, which SEND draws anyway; how many are gone is that less those that wait. A row is a message, or a frame of up
-- to 1,000 messages that were sent in one batch: rows, not messages, are what these two numbers count. A send that rolled back
-- has drawn its number too, and after a crash of the server up to 32 numbers of a sequence are passed over.
-- Cost: one look at each sequence, and for each queue one index range of at most 1,000 rows; some 10 ms for each queue that is longer.

create function parley._p_last_values(sequences regclass[]) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_values bigint[] := array[]::bigint[];
begin
  for i in 1 .. coalesce(cardinality(sequences), 0) by 100 loop
    -- The savepoint, rolled back, lets go of the locks on the sequences: a thousand would crowd the server's lock table, and their queues
    -- could not be dropped meanwhile.
    begin
      for n in i .. least(i + 99, cardinality(sequences)) loop
        v_values := v_values || coalesce(parley._p_last_position(sequences[n]), 0);
      end loop;
      raise exception 'read' using errcode = 'PB001';
    exception
      when sqlstate 'PB001' then
        null;
    end;
  end loop;
  return v_values;
end
$$;

comment on function parley._p_last_values(regclass[]) is
'Gives the last values of sequences, 0 for those never used, and leaves no lock behind.
Errors: none of its own.';

create function parley._p_queue_figures()
returns table (
  queue_id integer,
  enqueued_rows bigint,
  waiting_rows bigint,
  waiting_messages bigint,
  is_estimated boolean,
  oldest_enqueue_time timestamptz
)
language sql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  with drawn as (
    select d.value, d.number
    from unnest(
      parley._p_last_values((select array_agg(q.position_sequence order by q.queue_id) from parley._p_queue as q))
    ) with ordinality as d (value, number)
  ), counted as materialized (
    select k.queue_id, d.value as enqueued_rows, w.rows, w.messages, w.oldest, w.longest
    from (select q.queue_id, q.priorities, q.disabled_position, row_number() over (order by q.queue_id) as number from parley._p_queue as q) as k
    join drawn as d using (number)
    cross join lateral (
      select sum(c.rows)::bigint as rows, sum(c.messages)::bigint as messages, min(c.oldest) as oldest, max(c.rows) as longest
      from generate_series(1, 10) as p (n)
      left join lateral (
        select s.low_position
        from parley._p_scan_hint as s
        where s.lane = parley._p_lane(k.queue_id, p.n)
        order by s.lane desc, s.hint_id desc
        limit 1
      ) as h on true
      cross join lateral parley._p_count_messages(
        parley._p_lane(k.queue_id, p.n), coalesce(h.low_position, 0), k.disabled_position, 1000
      ) as c
      where k.priorities & (1 << p.n) > 0
    ) as w
  ), long as materialized (
    select c.queue_id, l.messages, l.is_estimated
    from (select o.queue_id from counted as o where o.longest >= 1000) as c
    join parley._p_queue as q using (queue_id)
    cross join lateral parley._p_backlog(q, 0, q.disabled_position) as l
  )
  select c.queue_id, c.enqueued_rows,
    case when c.longest < 1000 then c.rows else least(c.enqueued_rows, (c.rows * b.messages::numeric / greatest(c.messages, 1))::bigint) end,
    case when c.longest < 1000 then c.messages else b.messages end,
    c.longest >= 1000 and b.is_estimated,
    c.oldest
  from counted as c
  left join long as b using (queue_id)
$$;

comment on function parley._p_queue_figures() is
'Gives for each queue how many rows were ever put on it, how many wait, and since when; of long queues these are estimates, see 272_queue_depth.sql.';

create function parley._p_count_up_to(relation regclass, rows_max integer) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rows bigint;
begin
  execute format('select count(*) from (select from %s limit %s) as r', relation, rows_max) into v_rows;
  if v_rows = rows_max then
    v_rows := (select greatest(c.reltuples, rows_max) from pg_class as c where c.oid = relation)::bigint;
  end if;
  return v_rows;
end
$$;

comment on function parley._p_count_up_to(regclass, integer) is
'Counts the rows of a table, and where there are more than so many takes the estimate of ANALYZE.';

create function parley._p_may_view_state(role oid) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select parley._p_is_administrator(role) or pg_has_role(role, 'pg_monitor', 'usage')
$$;

comment on function parley._p_may_view_state(oid) is
'Tells whether a role may see the figures of the whole broker, as VIEW SERVER STATE allows: administrators and members of pg_monitor.';

-- sql/502_performance_counters.sql

-- The performance counters, under their own names (spec 8.4), each computed when somebody looks.
--
-- What each is made of stands in docs/monitoring.md. Counters called /sec are cumulative, with the type that tells tools to take the
-- difference of two looks. Those of transport
-- and forwarding are what the daemons that live have counted since they began (630_daemon_reports.sql); transmission objects are 0, since
-- this broker has none.

create function parley._p_performance_counters(caller parley.caller default parley.current_caller())
returns table (object_name text, counter_name text, instance_name text, cntr_value bigint, cntr_type integer)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_activation record;
  v_enqueued bigint;
  v_by_priority bigint[];
  v_received bigint;
  v_to_transmission bigint;
  v_from_transmission bigint;
  v_rollbacks bigint;
begin
  if parley._p_may_view_state(v_caller) is not true then
    return;
  end if;
  select coalesce(sum(t.started), 0)::bigint as started, coalesce(sum(t.invoked), 0)::bigint as invoked,
    coalesce(sum(t.aborted), 0)::bigint as aborted, coalesce(sum(t.limit_reached), 0)::bigint as limit_reached,
    coalesce(sum(t.running), 0)::bigint as running
  into v_activation
  from (
    select m.tasks_started as started, case when q.activation_procedure is null then 0 else m.tasks_started end as invoked,
      m.tasks_aborted as aborted, m.task_limit_reached as limit_reached,
      -- What an earlier leader ran is gone with it.
      case when m.term = parley._p_current_term() then m.running_readers end as running
    from parley._p_queue_monitor as m
    join parley._p_queue as q using (queue_id)
    union all
    select d.tasks_started, d.procedures_invoked, d.tasks_aborted, d.task_limit_reached, 0
    from parley._p_dropped_queue as d
  ) as t;
  -- A sequence does not know priorities: where a queue has only one, all of its messages have that.
  with queue as (
    select (case when q.priorities & (q.priorities - 1) = 0 then log(2, q.priorities)::integer else 5 end) as priority, d.value
    from (
      select q.priorities, row_number() over (order by q.queue_id) as number from parley._p_queue as q
    ) as q
    join unnest(
      parley._p_last_values((select array_agg(q.position_sequence order by q.queue_id) from parley._p_queue as q))
    ) with ordinality as d (value, number) using (number)
    union all
    select 5, d.enqueued
    from parley._p_dropped_queue as d
    union all
    select 5, parley._p_framed()
  )
  select sum(p.value), array_agg(p.value order by p.n) into v_enqueued, v_by_priority
  from (
    select p.n, coalesce(sum(q.value), 0)::bigint as value
    from generate_series(1, 10) as p (n)
    left join queue as q on q.priority = p.n
    group by p.n
  ) as p;
  v_received := pg_stat_get_tuples_inserted('parley._p_receive_progress'::regclass);
  v_to_transmission := pg_stat_get_tuples_inserted('parley._p_transmission'::regclass);
  v_from_transmission := pg_stat_get_tuples_deleted('parley._p_transmission'::regclass);
  v_rollbacks := (select s.xact_rollback from pg_stat_database as s where s.datname = current_database());

  return query
  select 'SQLServer:Broker Activation', c.name, i.name, c.value, case when c.name like '%/sec' then 272696576 else 65792 end
  from (
    values
      ('Stored Procedures Invoked/sec', v_activation.invoked),
      ('Task Limit Reached', v_activation.limit_reached),
      ('Task Limit Reached/sec', v_activation.limit_reached),
      ('Tasks Aborted/sec', v_activation.aborted),
      ('Tasks Running', v_activation.running),
      ('Tasks Started/sec', v_activation.started)
  ) as c (name, value)
  cross join (values (current_database()::text), ('_Total')) as i (name);

  return query
  select 'SQLServer:' || c.object, c.name, '', c.value, case when c.name like '%/sec' then 272696576 else 65792 end
  from (
    values
      ('Broker Statistics', 'SQL SENDs/sec', v_enqueued),
      ('Broker Statistics', 'SQL SEND Total', v_enqueued),
      ('Broker Statistics', 'SQL RECEIVEs/sec', v_received),
      ('Broker Statistics', 'SQL RECEIVE Total', v_received),
      ('Broker Statistics', 'Broker Transaction Rollbacks', v_rollbacks),
      ('Broker Statistics', 'Dialog Timer Event Count', parley._p_count_up_to('parley._p_alarm', 10000)),
      ('Broker Statistics', 'Activation Errors Total', v_activation.aborted),
      ('Broker Statistics', 'Enqueued Messages Total', v_enqueued),
      ('Broker Statistics', 'Enqueued Messages/sec', v_enqueued),
      ('Broker Statistics', 'Enqueued Local Messages Total', v_enqueued),
      ('Broker Statistics', 'Enqueued Local Messages/sec', v_enqueued),
      ('Broker Statistics', 'Enqueued Transport Msgs Total', parley._p_transport_counter('Enqueued Transport Msgs Total')),
      ('Broker Statistics', 'Enqueued Transport Msgs/sec', parley._p_transport_counter('Enqueued Transport Msgs Total')),
      ('Broker Statistics', 'Enqueued Transport Msg Frag Tot', parley._p_transport_counter('Enqueued Transport Msg Frag Tot')),
      ('Broker Statistics', 'Enqueued Transport Msg Frags/sec', parley._p_transport_counter('Enqueued Transport Msg Frag Tot')),
      ('Broker Statistics', 'Enqueued Transmission Msgs/sec', v_to_transmission),
      ('Broker Statistics', 'Dequeued Transmission Msgs/sec', v_from_transmission),
      ('Broker Statistics', 'Corrupted Messages Total', parley._p_transport_counter('Corrupted Messages Total')),
      ('Broker Statistics', 'Dropped Messages Total', parley._p_transport_counter('Dropped Messages Total')),
      ('Broker Statistics', 'Forwarded Messages Total', parley._p_transport_counter('Forwarded Messages Total')),
      ('Broker Statistics', 'Forwarded Messages/sec', parley._p_transport_counter('Forwarded Messages Total')),
      ('Broker Statistics', 'Forwarded Msg Byte Total', parley._p_transport_counter('Forwarded Msg Byte Total')),
      ('Broker Statistics', 'Forwarded Msg Bytes/sec', parley._p_transport_counter('Forwarded Msg Byte Total')),
      ('Broker Statistics', 'Forwarded Msg Discarded Total', parley._p_transport_counter('Forwarded Msg Discarded Total')),
      ('Broker Statistics', 'Forwarded Msgs Discarded/sec', parley._p_transport_counter('Forwarded Msg Discarded Total')),
      ('Broker Statistics', 'Forwarded Pending Msg Bytes', parley._p_transport_counter('Forwarded Pending Msg Bytes')),
      ('Broker Statistics', 'Forwarded Pending Msg Count', parley._p_transport_counter('Forwarded Pending Msg Count')),
      ('Broker TO Statistics', 'Avg. Length of Batched Writes', 0),
      ('Broker TO Statistics', 'Avg. Time Between Batches (ms)', 0),
      ('Broker TO Statistics', 'Avg. Time to Write Batch (ms)', 0),
      ('Broker TO Statistics', 'Tran Object Gets/sec', 0),
      ('Broker TO Statistics', 'Tran Objects Marked Dirty/sec', 0),
      ('Broker TO Statistics', 'Tran Object Writes/sec', 0)
  ) as c (object, name, value)
  union all
  select 'SQLServer:Broker Statistics', format('Enqueued P%s Messages/sec', p.n), '', v_by_priority[p.n], 272696576
  from generate_series(1, 10) as p (n)
  union all
  select 'SQLServer:Broker/DBM Transport', c.name, '', parley._p_transport_value(c.name), case when c.name like '%/sec' then 272696576 else 65792 end
  from unnest(array[
    'Open Connection Count', 'Current Bytes for Recv I/O', 'Current Bytes for Send I/O', 'Current Msg Frags for Send I/O',
    'Pending Bytes for Recv I/O', 'Pending Bytes for Send I/O', 'Pending Msg Frags for Recv I/O', 'Pending Msg Frags for Send I/O',
    'Receive I/O bytes/sec', 'Receive I/O Bytes Total', 'Receive I/O Len Avg', 'Receive I/Os/sec', 'Recv I/O Buffer Copies bytes/sec',
    'Recv I/O Buffer Copies Count', 'Message Fragment Receives/sec', 'Msg Fragment Recv Size Avg', 'Send I/O bytes/sec',
    'Send I/O Bytes Total', 'Send I/O Len Avg', 'Send I/Os/sec', 'Message Fragment Sends/sec', 'Msg Fragment Send Size Avg'
  ] || array(select format('Message Fragment P%s Sends/sec', p.n) from generate_series(1, 10) as p (n))) as c (name);
end
$$;

comment on function parley._p_performance_counters(parley.caller) is 'Computes the performance counters, for callers that may see them. Spec 8.4.';

create view parley.dm_os_performance_counters as
select c.object_name, c.counter_name, c.instance_name, c.cntr_value, c.cntr_type
from parley._p_performance_counters() as c;

comment on view parley.dm_os_performance_counters is
'Performance counters of the broker under the names of SQL Server, for administrators and members of pg_monitor; others see none.';

comment on column parley.dm_os_performance_counters.object_name is 'Group of counters, such as SQLServer:Broker Statistics.';
comment on column parley.dm_os_performance_counters.counter_name is 'Counter.';
comment on column parley.dm_os_performance_counters.instance_name is 'Database, or _Total, for counters of activation; empty for the others.';
comment on column parley.dm_os_performance_counters.cntr_value is 'Its value; of a counter called /sec the total, of which two looks make a rate.';
comment on column parley.dm_os_performance_counters.cntr_type is '65792 for a number as it is, 272696576 for one to take the rate of.';

-- sql/503_broker_metrics.sql

-- All that a monitoring system asks a database for, in one statement.

create function parley.broker_metrics(caller parley.caller default parley.current_caller()) returns jsonb
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  if parley._p_may_view_state(v_caller) is not true then
    perform parley._p_raise(
      229,
      'permission denied: broker_metrics',
      format('Role %s is no administrator of the broker and no member of pg_monitor.', v_caller::regrole),
      format('Grant it: grant pg_monitor to %I;', pg_get_userbyid(v_caller))
    );
  end if;
  return jsonb_build_object(
    'schema_version', (select i.schema_version from parley._p_installation as i),
    'conversation_endpoints', parley._p_count_up_to('parley._p_endpoint', 10000),
    'timers_pending', parley._p_count_up_to('parley._p_alarm', 10000),
    'timers_late', (
      select count(*)
      from (
        -- The time as a value of its own: the index could not bound a search by the function.
        (select a.endpoint_id, a.kind from parley._p_alarm as a where a.due_at < (select clock_timestamp() - interval '1 s') limit 10000)
        union
        -- Those that were put off.
        (select a.endpoint_id, a.kind from parley._p_alarm as a where a.first_due_at < (select clock_timestamp() - interval '1 s') limit 10000)
      ) as a
    ),
    'timer_oldest_due_seconds', (
      select greatest(extract(epoch from clock_timestamp() - least(d.due_at, f.first_due_at)), 0)
      from (select min(a.due_at) as due_at from parley._p_alarm as a) as d
      cross join (select min(a.first_due_at) as first_due_at from parley._p_alarm as a) as f
    ),
    'transmission_messages', parley._p_count_up_to('parley._p_transmission', 10000),
    'transmission_oldest_seconds', (
      select extract(epoch from clock_timestamp() - t.enqueued_at) from parley._p_transmission as t order by t.transmission_id limit 1
    ),
    'certificate_not_after', (select extract(epoch from min(c.not_after)) from parley.broker_certificates as c),
    'rows_inserted', pg_stat_get_tuples_inserted('parley._p_message'::regclass),
    'rows_deleted', pg_stat_get_tuples_deleted('parley._p_message'::regclass),
    'rows_dead', pg_stat_get_dead_tuples('parley._p_message'::regclass),
    'store_bytes', pg_total_relation_size('parley._p_message'),
    'receives', pg_stat_get_tuples_inserted('parley._p_receive_progress'::regclass),
    'transactions_rolled_back', (select s.xact_rollback from pg_stat_database as s where s.datname = current_database()),
    'queues', (
      select coalesce(
        jsonb_agg(
          jsonb_build_object(
            'queue_id', q.queue_id,
            'queue', q.lookup_name,
            'is_receive_enabled', q.is_receive_enabled,
            -- What is poison waits; asking locks a sequence, which should not happen for thousands of queues in one transaction.
            'is_poisoned', f.waiting_messages > 0 and parley._p_is_poisoned(q.queue_id),
            'set_aside_conversations', coalesce(a.conversations, 0),
            'is_activated', q.is_activation_enabled,
            'max_readers', q.max_readers,
            'enqueued_rows', f.enqueued_rows,
            'dequeued_rows', f.enqueued_rows - f.waiting_rows,
            'waiting_messages', f.waiting_messages,
            'is_estimated', f.is_estimated,
            'oldest_seconds', extract(epoch from clock_timestamp() - f.oldest_enqueue_time)
          )
          order by q.queue_id
        ),
        '[]'
      )
      from parley._p_queue as q
      join parley._p_queue_figures() as f using (queue_id)
      left join (
        select s.queue_id, count(*) as conversations
        from parley._p_set_aside as p
        join parley._p_endpoint as e using (endpoint_id)
        join parley._p_service as s using (service_id)
        group by s.queue_id
      ) as a using (queue_id)
      where q.queue_id >= 65536
    )
  );
end
$$;

comment on function parley.broker_metrics(parley.caller) is
'Gives figures of the broker and of each queue for monitoring, as one JSON object; docs/monitoring.md tells what each is. It reads no more
than 1,000 rows of a queue, and leaves no locks.
Errors: 229 for callers that are neither administrators nor members of pg_monitor.
Source: spec 8.4, 9.5.';

-- sql/510_diagnosis_checks.sql

-- Diagnosis: what is wrong with the broker, and the statement that cures it (spec 9.4).
--
-- A check is a row of parley.diagnosis_checks and a function _p_find_... that gives findings of that code; one function may give several codes.
-- To add a check, add both: everything else (level, part, number, patience, --ignore, the command line) follows from the row. The functions
-- look, lock nothing that others need, and change nothing. Each runs by itself: when one fails the others still tell what they find.
-- Cost: that of a look at every conversation and every queue; nothing that sends or receives waits for it.

create type parley.finding as (
  code text,
  level text,
  part text,
  object_kind text,
  object_name text,
  cause text,
  since timestamptz,
  cure text,
  error_number integer
);

comment on type parley.finding is 'What diagnosis finds: one thing that is wrong with one object.';
comment on column parley.finding.code is 'Which check found it; see parley.diagnosis_checks.';
comment on column parley.finding.level is 'ERROR: something does not work. WARNING: it works, but not for ever or not well. INFO: worth knowing.';
comment on column parley.finding.part is 'CONFIGURATION, RUNTIME, or PROBLEM when a check could not look.';
comment on column parley.finding.object_kind is 'Such as queue, service, conversation, session or database.';
comment on column parley.finding.object_name is 'Name of the object, as statements take it.';
comment on column parley.finding.cause is 'What is wrong with it.';
comment on column parley.finding.since is 'Since when; null when nobody knows.';
comment on column parley.finding.cure is
'What cures it, ready to paste: SQL, or a command that begins with parley. What has to be filled in stands in <>; behind -- stands what to think of.';
comment on column parley.finding.error_number is 'Number that Service Broker gives to this, or null.';

-- What to look at: nulls mean everything.
create type parley._p_scope as (
  from_service text,
  to_service text,
  contract text,
  queue_ids integer[],
  endpoint_ids bigint[],
  patience interval
);

comment on type parley._p_scope is 'What a check looks at, and how long things may last before they are wrong.';

create view parley.diagnosis_checks as
select c.code, c.part, c.level, c.error_number, c.patience, c.meaning, c.check_function
from (
  values
    ('broker-disabled', 'CONFIGURATION', 'ERROR', 9791, interval '0', '_p_find_broker_state', 'The broker is disabled in this database.'),
    ('broker-elsewhere', 'CONFIGURATION', 'ERROR', 9776, interval '0', '_p_find_broker_state',
      'The database was restored, copied or moved, and nobody has said which.'),
    ('damaged', 'CONFIGURATION', 'ERROR', null, interval '0', '_p_find_damage', 'A definition refers to something that does not exist.'),
    ('rights-lost', 'CONFIGURATION', 'ERROR', null, interval '0', '_p_find_lost_rights',
      'The grants of the schema are not there, as after a restore without privileges.'),
    ('owner-missing', 'CONFIGURATION', 'ERROR', 15517, interval '0', '_p_find_missing_owners', 'The owner of an object does not exist any more.'),
    ('autovacuum-off', 'CONFIGURATION', 'WARNING', null, interval '0', '_p_find_autovacuum', 'Dead rows of the broker are not removed.'),
    ('service-missing', 'CONFIGURATION', 'ERROR', 9796, interval '0', '_p_find_dialog_faults', 'A service does not exist in this database.'),
    ('route-missing', 'CONFIGURATION', 'ERROR', 9750, interval '0', '_p_find_missing_routes', 'No route leads to a service that is wanted.'),
    ('route-expired', 'CONFIGURATION', 'WARNING', 9750, interval '0', '_p_find_route_faults', 'The route to a service that is wanted has expired.'),
    ('route-to-nowhere', 'CONFIGURATION', 'WARNING', 9796, interval '0', '_p_find_route_faults',
      'A route says that a service is in this server, and this database does not have it.'),
    ('route-to-old-broker', 'CONFIGURATION', 'WARNING', 9795, interval '0', '_p_find_route_faults',
      'A route to a service of this database names another broker instance, as after NEW_BROKER.'),
    ('contract-missing', 'CONFIGURATION', 'ERROR', 8425, interval '0', '_p_find_dialog_faults', 'A contract does not exist.'),
    ('contract-not-accepted', 'CONFIGURATION', 'ERROR', 8408, interval '0', '_p_find_dialog_faults', 'The target service does not accept the contract.'),
    ('send-not-permitted', 'CONFIGURATION', 'ERROR', 8494, interval '0', '_p_find_dialog_faults',
      'The owner of the initiating service may not SEND to the target service.'),
    ('queue-off', 'CONFIGURATION', 'ERROR', 9617, interval '0', '_p_find_queues_off', 'A queue is switched off.'),
    ('queue-poisoned', 'CONFIGURATION', 'ERROR', 9617, interval '0', '_p_find_queues_off', 'Poison message handling has disabled a queue.'),
    ('activation-without-readers', 'CONFIGURATION', 'ERROR', 9648, interval '0', '_p_find_activation_faults',
      'Activation is on, but max_queue_readers is 0.'),
    ('activation-procedure-missing', 'CONFIGURATION', 'ERROR', 9706, interval '0', '_p_find_activation_faults',
      'The procedure of activation does not exist, or is none that can be called without arguments.'),
    ('activation-role-missing', 'CONFIGURATION', 'ERROR', 9707, interval '0', '_p_find_activation_faults',
      'The role that activation runs as does not exist.'),
    ('activation-not-permitted', 'CONFIGURATION', 'ERROR', 229, interval '0', '_p_find_activation_faults',
      'The role that activation runs as may not call the procedure, or who set it may not act as that role.'),
    ('receive-not-permitted', 'CONFIGURATION', 'ERROR', 229, interval '0', '_p_find_activation_faults',
      'The role that activation runs as may not RECEIVE from the queue.'),

    ('send-not-granted', 'CONFIGURATION', 'WARNING', 8494, interval '0', '_p_find_security_faults',
      'A dialog comes from another database, and nobody but its owner may SEND to the target service.'),
    ('binding-role-missing', 'CONFIGURATION', 'ERROR', 9728, interval '0', '_p_find_security_faults',
      'The role that stands for a remote service does not exist.'),
    ('binding-certificate-missing', 'CONFIGURATION', 'ERROR', 9731, interval '0', '_p_find_security_faults',
      'The role that stands for a remote service has no certificate that messages can be sealed for.'),
    ('dialog-certificate-missing', 'CONFIGURATION', 'ERROR', 9731, interval '0', '_p_find_security_faults',
      'The owner of an initiating service has no certificate to sign with, and a remote service binding asks for one.'),
    ('certificate-expired', 'CONFIGURATION', 'ERROR', 28023, interval '0', '_p_find_certificate_faults',
      'The certificate of a daemon has expired.'),
    ('certificate-expiring', 'CONFIGURATION', 'WARNING', 28023, interval '0', '_p_find_certificate_faults',
      'The certificate of a daemon expires within 30 days.'),
    ('peer-expired', 'CONFIGURATION', 'ERROR', 28023, interval '0', '_p_find_certificate_faults', 'The last key of a peer has expired.'),
    ('peer-expiring', 'CONFIGURATION', 'WARNING', 28023, interval '0', '_p_find_certificate_faults',
      'The last key of a peer expires within 30 days.'),
    ('peer-role-missing', 'CONFIGURATION', 'ERROR', 9728, interval '0', '_p_find_certificate_faults',
      'The role that a peer acts as does not exist.'),

    ('no-daemon', 'RUNTIME', 'ERROR', null, interval '0', '_p_find_missing_daemon', 'Activation is on for some queues, and no daemon runs.'),
    ('daemon-superuser', 'RUNTIME', 'WARNING', null, interval '0', '_p_find_superuser_daemon',
      'The daemon logs in as a superuser, which code that it runs can take on.'),
    ('no-reader', 'RUNTIME', 'ERROR', null, interval '1 minute', '_p_find_unread_queues', 'Messages wait, and nobody receives from the queue.'),
    ('reader-slow', 'RUNTIME', 'WARNING', null, interval '1 minute', '_p_find_unread_queues',
      'Messages wait although somebody listens on the queue, or activation has as many readers as it may have.'),
    ('reader-failing', 'RUNTIME', 'ERROR', 28087, interval '0', '_p_find_failing_readers', 'The readers that activation starts fail.'),
    ('webhook-secret-plain', 'RUNTIME', 'WARNING', null, interval '1 minute', '_p_find_plain_secrets',
      'The secret of a webhook stands in the database as it is: no daemon with a master key has sealed it.'),
    ('group-held', 'RUNTIME', 'WARNING', null, interval '1 minute', '_p_find_held_groups',
      'A session has held a conversation group for long, and messages wait for it.'),
    ('poison', 'RUNTIME', 'ERROR', null, interval '0', '_p_find_poison', 'A conversation was set aside because its message always fails.'),
    ('undeliverable', 'RUNTIME', 'ERROR', null, interval '1 minute', '_p_find_undeliverable', 'Messages wait in the transmission queue.'),
    ('destination-unreachable', 'RUNTIME', 'ERROR', 9753, interval '1 minute', '_p_find_unreachable_destinations',
      'Another database or server to which messages go cannot be reached.'),
    ('transmission-backlog', 'RUNTIME', 'WARNING', null, interval '1 minute', '_p_find_transmission_backlog',
      'Messages to another database or server wait, although it can be reached.'),
    ('conversation-not-ended', 'RUNTIME', 'WARNING', null, interval '1 hour', '_p_find_leaks',
      'Conversations that the other side has ended, or that have failed, were read to the end and not ended here.'),
    ('conversation-not-used', 'RUNTIME', 'WARNING', null, interval '1 hour', '_p_find_leaks', 'Dialogs were begun, and nothing was ever sent.'),
    ('timers-late', 'RUNTIME', 'WARNING', null, interval '10 seconds', '_p_find_late_timers', 'Timers or ends of lifetimes are overdue: nobody fires them.'),
    ('tombstones', 'RUNTIME', 'WARNING', null, interval '5 minutes', '_p_find_tombstones',
      'Closed conversations are remembered past their time: nobody fires timers.'),
    ('sender-open', 'RUNTIME', 'WARNING', null, interval '1 minute', '_p_find_open_senders',
      'A transaction that has sent is open for long, and readers of the queue have to look at more than they need.'),
    ('old-snapshot', 'RUNTIME', 'WARNING', null, interval '5 minutes', '_p_find_old_snapshots', 'A session keeps dead rows from being removed.'),
    ('old-slot', 'RUNTIME', 'WARNING', null, interval '5 minutes', '_p_find_old_snapshots',
      'A replication slot that nobody uses keeps dead rows from being removed.'),
    ('old-prepared-transaction', 'RUNTIME', 'WARNING', null, interval '5 minutes', '_p_find_old_snapshots',
      'A prepared transaction keeps its locks, and dead rows from being removed.'),
    ('messages-from-the-future', 'RUNTIME', 'WARNING', null, interval '1 second', '_p_find_clock_faults',
      'Messages arrived later than it is now: the clock of the server was set back.')
) as c (code, part, level, error_number, patience, check_function, meaning);

comment on view parley.diagnosis_checks is 'What parley.diagnose_configuration and parley.diagnose_runtime look for.';
comment on column parley.diagnosis_checks.code is 'Names the check, in findings and in what is ignored.';
comment on column parley.diagnosis_checks.part is 'CONFIGURATION or RUNTIME.';
comment on column parley.diagnosis_checks.level is 'ERROR, WARNING or INFO.';
comment on column parley.diagnosis_checks.error_number is 'Number that Service Broker gives to this, or null.';
comment on column parley.diagnosis_checks.patience is 'For how long it may last before it is a finding.';
comment on column parley.diagnosis_checks.meaning is 'What a finding says.';
comment on column parley.diagnosis_checks.check_function is 'Function that looks.';

-- sql/511_diagnose.sql

-- Running the checks of 510_diagnosis_checks.sql, each by itself.

create function parley._p_diagnose(caller oid, part text, scope parley._p_scope, level text, ignore text[]) returns setof parley.finding
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_levels text[] := case upper(level)
    when 'ERROR' then array['ERROR'] when 'WARNING' then array['ERROR', 'WARNING'] when 'INFO' then array['ERROR', 'WARNING', 'INFO']
  end;
  v_check record;
  v_scope parley._p_scope;
begin
  perform parley._p_require_administrator(caller, 'diagnosis');
  if v_levels is null then
    perform parley._p_raise(8402, format('there is no level "%s"', level), null, 'Use ERROR, WARNING or INFO.');
  end if;
  for v_check in
    select c.check_function, c.patience, array_agg(c.code) as codes
    from parley.diagnosis_checks as c
    where c.part = _p_diagnose.part and c.level = any (v_levels) and c.code <> all (coalesce(ignore, '{}'))
    group by c.check_function, c.patience
    order by min(case c.level when 'ERROR' then 1 when 'WARNING' then 2 else 3 end), c.check_function
  loop
    v_scope := scope;
    v_scope.patience := coalesce(scope.patience, v_check.patience);
    begin
      return query execute format(
        'select f.code, c.level, c.part, f.object_kind, f.object_name, f.cause, f.since, f.cure, c.error_number
        from parley.%I($1) as f join parley.diagnosis_checks as c using (code)
        where f.code = any ($2)
        order by f.code, f.since nulls last, f.object_name',
        v_check.check_function
      ) using v_scope, v_check.codes;
    exception
      when others then
        return next (
          array_to_string(v_check.codes, ','), 'ERROR', 'PROBLEM', 'check', v_check.check_function, sqlerrm, null, null, null
        )::parley.finding;
    end;
  end loop;
end
$$;

comment on function parley._p_diagnose(oid, text, parley._p_scope, text, text[]) is
'Runs the checks of one part.
Errors: 8402 unknown level, 15151 not an administrator.';

create function parley.diagnose_configuration(
  from_service text default null,
  to_service text default null,
  contract text default null,
  level text default 'WARNING',
  ignore text[] default '{}',
  caller parley.caller default parley.current_caller()
) returns setof parley.finding
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_scope parley._p_scope;
begin
  v_scope.from_service := from_service;
  v_scope.to_service := to_service;
  v_scope.contract := coalesce(contract, case when from_service is not null and to_service is not null then 'DEFAULT' end);
  if from_service is not null or to_service is not null then
    v_scope.queue_ids := array(select s.queue_id from parley._p_service as s where s.name in (from_service, to_service));
  end if;
  return query select * from parley._p_diagnose(v_caller, 'CONFIGURATION', v_scope, level, ignore);
end
$$;

comment on function parley.diagnose_configuration(text, text, text, text, text[], parley.caller) is
'Finds what is wrong with the definitions: of everything, or of a dialog that is to be begun between two services.
Arguments: from_service and to_service, the initiator and the target, either may be left out; contract of the dialog (null: DEFAULT when both services are
given); level, WARNING (errors too), ERROR (only these) or INFO (everything); ignore, codes of parley.diagnosis_checks.
Errors: 8402 unknown level, 15151 not an administrator.
Source: spec 9.4, CONFIGURATION.';

create function parley.diagnose_runtime(
  conversation uuid default null,
  level text default 'WARNING',
  ignore text[] default '{}',
  patience interval default null,
  caller parley.caller default parley.current_caller()
) returns setof parley.finding
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_scope parley._p_scope;
begin
  if conversation is not null then
    v_scope.endpoint_ids := parley._p_endpoints_of(conversation);
    v_scope.queue_ids := array(
      select s.queue_id
      from parley._p_endpoint as e
      join parley._p_service as s using (service_id)
      where e.endpoint_id = any (v_scope.endpoint_ids)
    );
  end if;
  v_scope.patience := patience;
  return query select * from parley._p_diagnose(v_caller, 'RUNTIME', v_scope, level, ignore);
end
$$;

comment on function parley.diagnose_runtime(uuid, text, text[], interval, parley.caller) is
'Finds what is wrong just now: what is not read, not delivered, not ended, not fired, and who holds it up.
Arguments: conversation, only what concerns one: a handle, a group or a conversation id (null: everything); level and ignore, as diagnose_configuration;
patience, for how long things may last before they are findings (null: as parley.diagnosis_checks says).
Errors: 8402 unknown level, 8426 conversation not found, 15151 not an administrator.
Source: spec 9.4, RUNTIME.';

create function parley._p_endpoints_of(conversation uuid) returns bigint[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoints bigint[];
begin
  v_endpoints := array(
    select e.endpoint_id
    from parley._p_endpoint as e
    where e.conversation_id in (
      select h.conversation_id from parley._p_endpoint as h where h.conversation_handle = conversation
      union all
      select h.conversation_id
      from parley._p_conversation_group as g
      join parley._p_endpoint as h using (group_id)
      where g.conversation_group_id = conversation
      union all
      select t.conversation_id from parley._p_tombstone as t where t.conversation_handle = conversation
      union all
      select conversation
    )
    order by e.endpoint_id
  );
  if cardinality(v_endpoints) = 0
    and not exists (select from parley._p_tombstone as t where conversation in (t.conversation_handle, t.conversation_id, t.conversation_group_id)) then
    perform parley._p_raise_unknown_handle(conversation);
  end if;
  return v_endpoints;
end
$$;

comment on function parley._p_endpoints_of(uuid) is
'Finds the sides of a conversation by a handle, its id, or a group, in which case of all conversations that are in it. None when only tombstones are left.
Errors: 8426 there is nothing by that name.';

-- sql/512_find_broker_faults.sql

-- Checks of the broker as a whole: its switch, its grants, its owners, its tables.

create function parley._p_find_broker_state(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    case parley._p_broker_state() when 'DISABLED' then 'broker-disabled' else 'broker-elsewhere' end,
    'database', current_database()::text,
    case parley._p_broker_state()
      when 'DISABLED' then 'The broker is disabled: messages are neither delivered nor read by activation.'
      else parley._p_advice_when_elsewhere()
    end,
    b.disabled_at,
    case when parley._p_original() is null then 'select parley.enable_broker();' else 'select parley.new_broker();' end
  from parley._p_broker as b
  where parley._p_broker_state() <> 'ENABLED'
$$;

comment on function parley._p_find_broker_state(parley._p_scope) is 'Finds a broker that is not enabled here.';

create function parley._p_find_damage(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'damaged', d.object_kind, d.object_name, d.finding, null::timestamptz, 'select * from parley.check_broker(repair => true);'
  from parley._p_check_definitions() as d
  -- These have checks of their own, with gentler cures.
  where d.error_number not in (9706, 9707)
$$;

comment on function parley._p_find_damage(parley._p_scope) is 'Finds definitions that check_broker would repair.';

create function parley._p_find_lost_rights(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    'rights-lost', 'schema', 'parley',
    case
      when has_schema_privilege('public', 'parley', 'usage') is not true then 'Nobody but the owner may use the schema parley.'
      else format('Everybody may call private functions, %s of them.', p.functions)
    end,
    null::timestamptz,
    'parley upgrade --repair'
  from (
    -- Functions whose grants were never touched are everybody's.
    select count(*) as functions
    from pg_proc as f
    where f.pronamespace = 'parley'::regnamespace and f.proname like '\_p\_%' and f.proacl is null
  ) as p
  where (p.functions > 0 or has_schema_privilege('public', 'parley', 'usage') is not true)
$$;

comment on function parley._p_find_lost_rights(parley._p_scope) is 'Finds out whether the grants of the schema are lost.';

create function parley._p_find_missing_owners(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    'owner-missing', o.class, o.name,
    'Its owner was dropped: nobody but an administrator may use it'
      || case o.class when 'service' then ', and dialogs that begin from it are refused by their targets.' else '.' end,
    null::timestamptz,
    format('select parley.alter_authorization(%L, %L, %L);', o.class, o.name, pg_get_userbyid(n.nspowner))
  from (
    select 'message type' as class, t.name, t.owner, null::integer as queue_id from parley._p_message_type as t
    union all
    select 'contract', c.name, c.owner, null from parley._p_contract as c
    union all
    select 'queue', q.lookup_name, q.owner, q.queue_id from parley._p_queue as q
    union all
    select 'service', s.name, s.owner, s.queue_id from parley._p_service as s
    union all
    select 'route', r.name, r.owner, null from parley._p_route as r
  ) as o
  join pg_namespace as n on n.nspname = 'parley'
  where not exists (select from pg_roles as r where r.oid = o.owner)
    and (scope.queue_ids is null or o.queue_id = any (scope.queue_ids))
$$;

comment on function parley._p_find_missing_owners(parley._p_scope) is 'Finds objects whose owner does not exist.';

create function parley._p_find_autovacuum(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    'autovacuum-off', 'table', c.oid::regclass::text,
    'Autovacuum is off for it: it grows with every message that is received.',
    null::timestamptz,
    format('alter table %s reset (autovacuum_enabled);', c.oid::regclass)
  from pg_class as c
  cross join lateral pg_options_to_table(c.reloptions) as o
  where c.relnamespace = 'parley'::regnamespace
    and c.relkind = 'r'
    and o.option_name = 'autovacuum_enabled'
    and not o.option_value::boolean
  union all
  select
    'autovacuum-off', 'server', 'autovacuum', 'Autovacuum is off in the whole server.', null,
    'alter system set autovacuum = on; select pg_reload_conf();'
  where current_setting('autovacuum') = 'off'
$$;

comment on function parley._p_find_autovacuum(parley._p_scope) is 'Finds out where autovacuum is switched off.';

-- sql/513_find_definition_faults.sql

-- Checks of services, contracts and queues: can a dialog be begun, is the queue on, may activation do what it is to do?

create function parley._p_find_dialog_faults(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with dialog as (
    -- The one that was asked for; or all that were begun and have not reached their target yet.
    select scope.from_service, scope.to_service, scope.contract, null::timestamptz as since
    where scope.from_service is not null or scope.to_service is not null
    union all
    select e.service_name, e.far_service, e.service_contract_name, min(e.begun_at)
    from parley._p_endpoint as e
    where e.is_initiator
      and e.far_endpoint_id is null
      and e.state in ('SO', 'CO')
      and scope.from_service is null
      and scope.to_service is null
      and (e.far_broker_instance is null or e.far_broker_instance = (select b.service_broker_guid::text from parley._p_broker as b))
    group by e.service_name, e.far_service, e.service_contract_name
  ), known as (
    select d.from_service, d.to_service, d.contract, d.since, f.service_id as from_id, f.owner as from_owner, t.service_id as to_id, t.owner as to_owner,
      c.service_contract_id
    from dialog as d
    left join parley._p_service as f on f.name = d.from_service
    left join parley._p_service as t on t.name = d.to_service and parley._p_leads_to(d.to_service, null) in ('LOCAL', 'ASK')
    left join parley._p_contract as c on c.name = d.contract
  )
  select 'service-missing', 'service', m.name,
    format('The service "%s" does not exist in this database, and no other database of the same daemon is known to have it.', m.name)
      || parley._p_did_you_mean(m.name, array(select s.name from parley._p_service as s)),
    min(m.since),
    format(
      'select parley.create_service(%L, ''<queue>'', %L);  -- only where it belongs: in this database it takes all that is sent from here',
      m.name, array_remove(array_agg(distinct m.contract), null)
    )
  from (
    select k.from_service as name, null as contract, k.since from known as k where k.from_service is not null and k.from_id is null
    union all
    select k.to_service, k.contract, k.since from known as k where k.to_service is not null and k.to_id is null
  ) as m
  where parley._p_leads_to(m.name, null) = 'LOCAL' and not parley._p_is_next_door(m.name)
  group by m.name
  union all
  select distinct 'contract-missing', 'contract', k.contract,
    format('The contract "%s" does not exist.', k.contract) || parley._p_did_you_mean(k.contract, array(select c.name from parley._p_contract as c)),
    null::timestamptz,
    format('select parley.create_contract(%L, ''{"<message type>": "ANY"}''::jsonb);', k.contract)
  from known as k
  where k.contract is not null and k.service_contract_id is null
  union all
  select distinct 'contract-not-accepted', 'service', k.to_service,
    format('It does not accept the contract "%s": dialogs on it end with error -8408.', k.contract),
    k.since,
    format('select parley.alter_service(%L, add_contracts => array[%L]);', k.to_service, k.contract)
  from known as k
  where k.to_id is not null
    and k.service_contract_id is not null
    and not exists (
      select from parley._p_service_contract as u where u.service_id = k.to_id and u.service_contract_id = k.service_contract_id
    )
  union all
  select distinct 'send-not-permitted', 'service', k.to_service,
    format('%s, the owner of service "%s", may not SEND to it: dialogs end with error -8494.', k.from_owner, k.from_service),
    k.since,
    format('select parley.grant(''SEND'', ''service'', %L, %L);', k.to_service, pg_get_userbyid(k.from_owner))
  from known as k
  join pg_roles as r on r.oid = k.from_owner
  where k.to_id is not null and parley._p_has_permission(k.from_owner, 'SEND', 'service', k.to_id, k.to_owner) is not true
$$;

comment on function parley._p_find_dialog_faults(parley._p_scope) is
'Finds what would make a dialog fail: the services and the contract, whether the target accepts it, whether the initiator may send.';

create function parley._p_is_next_door(service_name text) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  select exists (select from parley._p_neighbour_service as n where n.service_name = _p_is_next_door.service_name)
    -- One of them has answered, though the daemon may have looked for others since.
    or exists (
      select
      from parley._p_endpoint as e
      where e.far_service = _p_is_next_door.service_name
        and e.far_endpoint_id < 0
        and e.destination_id is not null
        and e.far_broker_instance is not null
        and e.state = 'CO'
    )
$$;

comment on function parley._p_is_next_door(text) is
'Tells whether another database that the same daemon serves is known to have a service: LOCAL leads there when this one does not have it.';

create function parley._p_find_queues_off(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    case when q.is_receive_enabled then 'queue-poisoned' else 'queue-off' end,
    'queue', q.lookup_name,
    case
      when q.is_receive_enabled
        then format('A message was rolled back %s times, so the queue is disabled. Look at it with parley peek.', q.rollbacks_before_disable)
      else 'The queue is switched off: nothing can be received, and what arrives is held for its senders.'
    end,
    case when not q.is_receive_enabled then q.modify_date end,
    format('select parley.alter_queue(%L, status => true);', q.lookup_name)
      || case when q.is_receive_enabled then '  -- mend the reader or end the conversation first, or it comes back' else '' end
  from parley._p_queue as q
  where (not q.is_receive_enabled or parley._p_is_poisoned(q.queue_id))
    and (scope.queue_ids is null or q.queue_id = any (scope.queue_ids))
$$;

comment on function parley._p_find_queues_off(parley._p_scope) is 'Finds queues that are off, by ALTER QUEUE or by poison message handling.';

create function parley._p_find_activation_faults(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with activated as (
    select a.queue_id, a.name, a.max_readers, a.kind, a.procedure_call, a.procedure_name, a.execute_as, a.refusal, q.owner, q.modify_date,
      r.oid as role, p.oid as procedure, p.pronamespace as namespace
    from parley._p_activated_queues() as a
    join parley._p_queue as q on q.queue_id = a.queue_id
    left join pg_roles as r on r.rolname = a.execute_as
    left join pg_proc as p on p.oid = to_regprocedure(a.procedure_call)
    where scope.queue_ids is null or a.queue_id = any (scope.queue_ids)
  )
  select 'activation-without-readers', 'queue', a.name, 'Activation is on, but max_queue_readers is 0: no reader is started.', a.modify_date,
    format('select parley.alter_queue(%L, max_queue_readers => 1);', a.name)
  from activated as a
  where a.max_readers = 0 and a.kind = 'procedure'
  union all
  select 'activation-procedure-missing', 'queue', a.name,
    format('The procedure %s does not exist, or takes arguments, or is a function.', a.procedure_name),
    null,
    format('select parley.alter_queue(%L, activation => false);  -- or create the procedure', a.name)
  from activated as a
  where a.kind = 'procedure' and a.procedure_call is null
  union all
  select 'activation-role-missing', 'queue', a.name, 'The role that activation runs as does not exist.', null,
    format('select parley.alter_queue(%L, execute_as => ''OWNER'');', a.name)
  from activated as a
  where a.kind = 'procedure' and a.execute_as is null
  union all
  select 'activation-not-permitted', 'queue', a.name, 'No reader is started: ' || a.refusal || '.', null,
    case
      when a.kind = 'procedure' then format(
        'select parley.alter_queue(%L, activation_procedure => %L, execute_as => ''SELF'');  -- as a role that may be trusted with it', a.name, a.procedure_name
      )
      else format('select parley.drop_external_activation(%L);  -- and let the owner of the queue define it again', a.name)
    end
  from activated as a
  where a.refusal is not null
  union all
  select 'activation-not-permitted', 'queue', a.name,
    format('The role "%s" may not %s.', a.execute_as, t.what), null, t.cure
  from activated as a
  cross join lateral (
    select format('call the procedure %s', a.procedure) as what,
      format('grant execute on procedure %s to %I;', a.procedure::regprocedure, a.execute_as) as cure
    where has_function_privilege(a.role, a.procedure, 'execute') is not true
    union all
    select format('use the schema %s, in which the procedure is', a.namespace::regnamespace),
      format('grant usage on schema %s to %I;', a.namespace::regnamespace, a.execute_as)
    where has_schema_privilege(a.role, a.namespace, 'usage') is not true
  ) as t
  where a.role is not null and a.procedure is not null
  union all
  select 'receive-not-permitted', 'queue', a.name,
    format('The role "%s", which activation runs as, may not RECEIVE from the queue.', a.execute_as), null,
    format('select parley.grant(''RECEIVE'', ''queue'', %L, %L);', a.name, a.execute_as)
  from activated as a
  where a.kind = 'procedure' and a.role is not null and parley._p_has_permission(a.role, 'RECEIVE', 'queue', a.queue_id, a.owner) is not true
$$;

comment on function parley._p_find_activation_faults(parley._p_scope) is
'Finds what would make activated readers fail: no procedure, no role, no right to call it or to RECEIVE, no reader allowed.';

create function parley._p_find_plain_secrets(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'webhook-secret-plain', 'queue', q.lookup_name,
    'The secret of its webhook stands in the database as it is, and in every backup: no daemon with a master key has sealed it.',
    a.modify_date,
    'parley serve --master-key <file>'
  from parley._p_external_activation as a
  join parley._p_queue as q using (queue_id)
  where a.secret is not null
    and a.modify_date < clock_timestamp() - scope.patience
    and (scope.queue_ids is null or a.queue_id = any (scope.queue_ids))
$$;

comment on function parley._p_find_plain_secrets(parley._p_scope) is 'Finds webhooks whose secret has not been sealed for longer than scope.patience.';

-- sql/514_find_route_faults.sql

-- Checks of routes: is there one to each service that is wanted, and do those that there are lead anywhere?
--
-- What is wanted are the services of a dialog that was asked for, of the side that is not here the way back too; or else those of conversations
-- that have not reached their far side. What is behind an address nobody can see from here; the run-time checks tell when it does not answer.

create function parley._p_leads_to(service_name text, broker_instance text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case when r.step = 4 then 'ASK' else coalesce(r.otherwise, r.address) end
  from parley._p_look_for_route(service_name, broker_instance, '00000000-0000-0000-0000-000000000000', true) as r
$$;

comment on function parley._p_leads_to(text, text) is
'Tells where a conversation would go, for diagnosis, asking nobody: an address, LOCAL, ASK for the broker configuration service, null for nowhere.
Of several ways it tells one.
Arguments: service_name; broker_instance, null for any.';

create function parley._p_wanted_services(scope parley._p_scope) returns table (service_name text, broker_instance text, since timestamptz)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select s.name, null::text, null::timestamptz
  from unnest(array[scope.to_service, scope.from_service]) with ordinality as s (name, n)
  -- The initiator's side is wanted where it is far away.
  where s.name is not null and (s.n = 1 or not parley._p_is_here(s.name, null))
  union all
  select e.far_service, e.far_broker_instance, min(e.begun_at)
  from parley._p_endpoint as e
  where scope.from_service is null
    and scope.to_service is null
    and e.far_endpoint_id is null
    and e.state in ('SO', 'CO')
  group by e.far_service, e.far_broker_instance
$$;

comment on function parley._p_wanted_services(parley._p_scope) is 'Gives the far sides to which there should be routes.';

create function parley._p_find_missing_routes(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'route-missing', 'service', w.service_name,
    format('No route leads to the service "%s"', w.service_name) || coalesce(format(' of broker instance %s.', w.broker_instance), '.')
      || case
        when parley._p_is_here(w.service_name, null) then ' It is in this database: the route AutoCreatedLocal was dropped.'
        else parley._p_did_you_mean(
          w.service_name, array(select r.remote_service_name from parley._p_route as r where r.remote_service_name is not null and not r.is_inbound)
        )
      end,
    w.since,
    case
      when parley._p_is_here(w.service_name, null) then format('select parley.create_route(%L, ''LOCAL'', %L);', left(w.service_name, 128), w.service_name)
      else format('select parley.create_route(%L, ''tcp://<host>:4022'', %L);', left(w.service_name, 128), w.service_name)
    end
  from parley._p_wanted_services(scope) as w
  where parley._p_leads_to(w.service_name, w.broker_instance) is null
$$;

comment on function parley._p_find_missing_routes(parley._p_scope) is 'Finds services that are wanted and to which no route leads.';

create function parley._p_find_route_faults(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'route-expired', 'route', r.name,
    format('It leads to the service "%s" and expired at %s: what goes there waits, or takes another way.', r.remote_service_name, r.expires_at),
    r.expires_at,
    format('select parley.alter_route(%L, lifetime => 86400);  -- seconds', r.name)
  from parley._p_route as r
  where r.expires_at <= clock_timestamp()
    and not r.is_inbound
    and exists (
      select
      from parley._p_wanted_services(scope) as w
      where w.service_name = r.remote_service_name and (w.broker_instance is null or coalesce(r.broker_instance, w.broker_instance) = w.broker_instance)
    )
    and not exists (
      select
      from parley._p_route as o
      where o.remote_service_name = r.remote_service_name
        and o.broker_instance is not distinct from r.broker_instance
        and not o.is_inbound
        and (o.expires_at is null or o.expires_at > clock_timestamp())
    )
  union all
  select
    case when l.is_here then 'route-to-old-broker' else 'route-to-nowhere' end,
    'route', l.name,
    case
      when l.is_here then format(
        'It leads to the service "%s", which is here, and names the broker instance %s, which this database is not: nothing goes that way.',
        l.remote_service_name, l.broker_instance
      )
      else format('It leads to the service "%s" in this server, and this database has no such service.', l.remote_service_name)
        || parley._p_did_you_mean(l.remote_service_name, array(select s.name from parley._p_service as s))
    end,
    null,
    case
      when l.is_here then format('select parley.alter_route(%L, broker_instance => ''current database'');', l.name)
      else format('select parley.create_service(%L, ''<queue>'');  -- or mend the route; or another database of the daemon has it', l.remote_service_name)
    end
  from (
    select r.name, r.remote_service_name, r.broker_instance, parley._p_is_here(r.remote_service_name, null) as is_here,
      r.broker_instance = b.service_broker_guid::text as is_own
    from parley._p_route as r
    cross join parley._p_broker as b
    where r.next_hop = 'LOCAL' and r.remote_service_name is not null and not r.is_inbound and (r.expires_at is null or r.expires_at > clock_timestamp())
  ) as l
  -- A service that is not here may be in the database that a route names.
  where (coalesce(scope.to_service, scope.from_service) is null or l.remote_service_name in (scope.to_service, scope.from_service))
    and ((l.is_here and not l.is_own) or (not l.is_here and l.is_own is distinct from false))
$$;

comment on function parley._p_find_route_faults(parley._p_scope) is
'Finds routes that have expired and are missed, and LOCAL routes that lead nowhere, or to a broker instance that this database is not.';

-- sql/515_find_certificate_faults.sql

-- Checks of certificates: our own, those of peers, and the roles that peers act as.

create function parley._p_find_certificate_faults(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    case when c.not_after <= clock_timestamp() then 'certificate-expired' else 'certificate-expiring' end,
    'daemon', c.daemon,
    case
      when c.not_after <= clock_timestamp() then format('Its certificate has expired at %s: no link to another broker can be opened.', c.not_after)
      else format('Its certificate expires at %s.', c.not_after)
    end,
    case when c.not_after <= clock_timestamp() then c.not_after end,
    'parley certificate rotate'
  from parley.broker_certificates as c
  where c.not_after < clock_timestamp() + interval '30 days'
  union all
  select
    case when p.not_after <= clock_timestamp() then 'peer-expired' else 'peer-expiring' end,
    'peer', p.name,
    case
      when p.not_after <= clock_timestamp() then format('Its last key has expired at %s: there are no links with it.', p.not_after)
      else format('Its last key expires at %s. It takes a new one when its operator says parley certificate rotate.', p.not_after)
    end,
    case when p.not_after <= clock_timestamp() then p.not_after end,
    format(
      'select parley.alter_peer(%L, add_fingerprint => ''<fingerprint>''); -- %s', p.name,
      case
        when p.not_after <= clock_timestamp() then 'or parley pair; see parley certificate list there'
        else 'not needed once the peer has rotated and called'
      end
    )
  from parley.peers as p
  where p.not_after < clock_timestamp() + interval '30 days' and p.state in ('TRUSTED', 'EXPIRED')
  union all
  select
    'peer-role-missing', 'peer', p.name,
    'The role that it acts as was dropped: only what is granted to PUBLIC counts for what it sends.', null,
    format('select parley.alter_peer(%L, role => ''<role>''); -- PUBLIC for none', p.name)
  from parley._p_peer as p
  where p.role is not null and p.revoked_at is null and not exists (select from pg_roles as r where r.oid = p.role)
$$;

comment on function parley._p_find_certificate_faults(parley._p_scope) is
'Finds certificates of daemons and keys of peers that have expired or expire within 30 days, and peers whose role is gone.';

-- sql/516_find_security_faults.sql

-- Checks of dialog security (spec 9.4: ENCRYPTION ON, ANONYMOUS and OFF), as far as this database knows: remote service bindings, the certificates on both
-- ends of them, and who may send to a service here from another database. The far database knows the rest, and is asked itself.

create function parley._p_find_security_faults(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with binding as (
    select b.name, b.to_service, b.remote_principal, b.is_anonymous, exists (select from pg_roles as r where r.oid = b.remote_principal) as has_role
    from parley._p_remote_service_binding as b
    -- A binding counts also for a target that is named alone; for an initiator alone all may.
    where scope.to_service is null or b.to_service = scope.to_service
  )
  select 'binding-role-missing', 'remote service binding', b.name,
    format('The role that stands for the service "%s" was dropped: what is sent there waits.', b.to_service),
    null::timestamptz,
    format('select parley.alter_remote_service_binding(%L, with_user => ''<role>'');', b.name)
  from binding as b
  where not b.has_role
  union all
  select 'binding-certificate-missing', 'remote service binding', b.name,
    format('Messages to the service "%s" cannot be sealed: %s', b.to_service, substring(c.status from '^\d+: (.*)$')),
    null,
    format('parley dialog-certificate import <file> --role %I  -- the file comes from the other side', pg_get_userbyid(b.remote_principal))
  from binding as b
  cross join lateral parley._p_find_dialog_certificate(b.remote_principal, false) as c
  where b.has_role and c.status is not null
  union all
  select distinct 'dialog-certificate-missing', 'service', s.name,
    format('Dialogs with the service "%s" are to be signed by its owner: %s', b.to_service, substring(c.status from '^\d+: (.*)$')),
    null::timestamptz,
    format('parley dialog-certificate create --role %I', pg_get_userbyid(s.owner))
  from binding as b
  join parley._p_service as s
    on s.name = scope.from_service
    or scope.from_service is null and s.service_id in (select e.service_id from parley._p_endpoint as e where e.is_initiator and e.far_service = b.to_service)
  cross join lateral parley._p_find_dialog_certificate(s.owner, true) as c
  where not b.is_anonymous and c.status is not null and exists (select from pg_roles as r where r.oid = s.owner)
  union all
  select 'send-not-granted', 'service', s.name,
    format(
      'The service "%s" is not in this database, and nobody but the owner of the target holds SEND: its dialogs end with error -8494.',
      scope.from_service
    ),
    null,
    format('select parley.grant(''SEND'', ''service'', %L, ''public'');  -- or the role that stands for the sender', s.name)
  from parley._p_service as s
  where s.name = scope.to_service
    and not parley._p_is_here(scope.from_service, null)
    and not exists (
      select
      from parley._p_permission as p
      where p.class = 'service' and p.object_id = s.service_id and p.permission in ('SEND', 'CONTROL')
    )
$$;

comment on function parley._p_find_security_faults(parley._p_scope) is
'Finds bindings whose role or certificate is missing or of no use, initiators that cannot sign, and targets to which nobody elsewhere may send.';

-- sql/520_find_reader_faults.sql

-- Checks of readers: is there anybody who receives, does he get anywhere, does he hold up others?
--
-- That a group is held is seen by the xmax of its row, as in 401_receivable_work.sql: looking takes no lock.

create function parley._p_find_missing_daemon(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select 'no-daemon', 'database', current_database()::text,
    format('Activation is on (queue "%s" and %s others), and no daemon runs that starts readers.', min(a.name), count(*) - 1),
    -- The last one is believed to have lived until its lease was over.
    (
      select to_timestamp(nullif(l.until, 0) / 1000000.0)
      from (select coalesce(pg_sequence_last_value('parley._p_leader_lease'), 0) as until) as l
    ),
    'parley serve'
  from parley._p_activated_queues() as a
  where (scope.queue_ids is null or a.queue_id = any (scope.queue_ids)) and not parley._p_is_led()
  having count(*) > 0
$$;

comment on function parley._p_find_missing_daemon(parley._p_scope) is 'Finds out whether activation is on and nobody does it.';

create function parley._p_find_superuser_daemon(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    'daemon-superuser', 'role', r.rolname::text,
    'The daemon logs in as this superuser. What runs in its sessions, such as a procedure that calls RESET ROLE, gets the rights of the login.',
    l.leads_since,
    format('parley serve --dsn postgres://%s@...  -- as the owner of the schema; see also --procedure-dsn', pg_get_userbyid(n.nspowner))
  from parley._p_leader as l
  join pg_roles as r on r.oid = l.login
  join pg_namespace as n on n.nspname = 'parley'
  where l.leader is not null and r.rolsuper and parley._p_is_led() and scope.queue_ids is null and scope.endpoint_ids is null
$$;

comment on function parley._p_find_superuser_daemon(parley._p_scope) is 'Finds out whether the daemon that leads logs in as superuser.';

create function parley._p_find_unread_queues(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  with unread as (
    select q.queue_id, q.lookup_name, q.is_activation_enabled, q.activation_procedure, q.max_readers, f.oldest_enqueue_time,
      case when f.is_estimated then 'some ' else '' end || f.waiting_messages as waiting,
      coalesce(pg_sequence_last_value(q.doorbell_sequence), 0) > extract(epoch from clock_timestamp())
        or exists (
          -- Whoever waits in RECEIVE sleeps, and holds a lock on the sequence that it watches.
          select
          from pg_locks as l
          join pg_stat_activity as a using (pid)
          where l.locktype = 'relation'
            and l.database = parley._p_database_oid()
            and l.relation = q.position_sequence
            and l.granted
            and a.wait_event = 'PgSleep'
        ) as is_listened_to
    from parley._p_queue as q
    join parley._p_queue_figures() as f using (queue_id)
    where f.oldest_enqueue_time < clock_timestamp() - scope.patience
      and (scope.queue_ids is null or q.queue_id = any (scope.queue_ids))
      and exists (select from parley._p_receivable(array[q.queue_id], array[1], 1000))
  )
  select 'no-reader', 'queue', u.lookup_name,
    format('Messages wait (%s), activation is off, and nobody receives or listens.', u.waiting),
    u.oldest_enqueue_time,
    case
      when u.activation_procedure is not null
        then format('select parley.alter_queue(%L, max_queue_readers => %s, activation => true);', u.lookup_name, greatest(u.max_readers, 1))
      else format(
        'select parley.alter_queue(%L, activation_procedure => ''<schema.procedure>'', execute_as => ''OWNER'', max_queue_readers => 1, activation => true);',
        u.lookup_name
      ) || '  -- or start the program that reads it'
    end
  from unread as u
  where not u.is_activation_enabled and not u.is_listened_to
  union all
  select 'reader-slow', 'queue', u.lookup_name,
    case
      when not u.is_activation_enabled then format('Messages wait (%s) although somebody listens on the queue: its readers are too slow, or hang.', u.waiting)
      else format('Messages wait (%s), and all readers that activation may start (%s) are at work.', u.waiting, m.running_readers)
    end,
    u.oldest_enqueue_time,
    case when u.is_activation_enabled then format('select parley.alter_queue(%L, max_queue_readers => %s);', u.lookup_name, 2 * u.max_readers) end
  from unread as u
  left join parley._p_queue_monitor as m on m.queue_id = u.queue_id and m.term = parley._p_current_term()
  where (not u.is_activation_enabled and u.is_listened_to)
    or (u.is_activation_enabled and u.max_readers > 0 and m.failures = 0 and m.running_readers >= u.max_readers)
$$;

comment on function parley._p_find_unread_queues(parley._p_scope) is
'Finds queues in which messages have waited for longer than scope.patience that nobody holds: because nobody reads, or not fast enough.';

create function parley._p_find_failing_readers(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select 'reader-failing', 'queue', a.name,
    format('Readers failed one after the other (%s); the last error: %s', m.failures, coalesce(m.last_error, 'none was reported'))
      || coalesce(format(' (SQLSTATE %s)', m.last_sqlstate), ''),
    m.failing_since,
    case
      when a.procedure_call is not null
        then format('call %s;  -- shows the error; once it is mended the daemon goes on by itself', a.procedure_call)
      else format('select parley.alter_queue(%L, activation => false);', a.name)
    end
  from parley._p_queue_monitor as m
  join parley._p_activated_queues() as a using (queue_id)
  where m.failures > 0
    and m.term = parley._p_current_term()
    and (scope.queue_ids is null or m.queue_id = any (scope.queue_ids))
$$;

comment on function parley._p_find_failing_readers(parley._p_scope) is 'Finds queues whose activated readers fail, as the daemon reports it.';

create function parley._p_find_held_groups(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  with held as (
    select q.lookup_name, g.conversation_group_id, g.xmax as holder, count(*) as waiting, min(m.enqueued_at) as oldest
    from parley._p_queue as q
    cross join generate_series(1, 10) as p (n)
    cross join lateral (
      select n.endpoint_id, n.enqueued_at
      from parley._p_message as n
      where n.lane = parley._p_lane(q.queue_id, p.n)
      order by n.position
      limit 1000
    ) as m
    join parley._p_endpoint as e on e.endpoint_id = m.endpoint_id and e.state <> 'DO'
    join parley._p_conversation_group as g using (group_id)
    where q.priorities & (1 << p.n) > 0
      and (scope.queue_ids is null or q.queue_id = any (scope.queue_ids))
      and (scope.endpoint_ids is null or e.endpoint_id = any (scope.endpoint_ids))
      and parley._p_is_running(g.xmax)
    group by q.lookup_name, g.conversation_group_id, g.xmax
  )
  select 'group-held', 'conversation group', h.conversation_group_id::text,
    format('%s holds it, and messages of it wait (%s) in queue "%s".', coalesce('Session ' || l.pid, 'A prepared transaction'), h.waiting, h.lookup_name),
    coalesce(a.xact_start, h.oldest),
    coalesce(format('select pg_terminate_backend(%s);', l.pid), (
      select format('rollback prepared %L;', x.gid) from pg_prepared_xacts as x where x.transaction = h.holder
    ))
  from held as h
  left join pg_locks as l on l.locktype = 'transactionid' and l.transactionid = h.holder and l.granted
  left join pg_stat_activity as a using (pid)
  where h.oldest < clock_timestamp() - scope.patience
    and coalesce(a.xact_start, h.oldest) < clock_timestamp() - scope.patience
$$;

comment on function parley._p_find_held_groups(parley._p_scope) is
'Finds groups that a transaction has held for longer than scope.patience while their messages wait.';

-- sql/520_queue_activity.sql

-- What goes on in the queues and in the conversations at their heads: for screens that look again and again.
--
-- Whoever looks locks nothing and takes nothing. Who holds a group stands in its row: group rows are never updated, so xmax is the last
-- transaction that has locked it, and pg_locks tells which session a running transaction belongs to.
-- Only the first rows of each queue are looked at, so a lock on a conversation far behind does not show here.
-- Cost: for each queue that of its depth (272_queue_depth.sql), and the first 100 rows of each lane.

create function parley._p_head_conversations(queue_ids integer[], rows_max integer)
returns table (queue_id integer, endpoint_id bigint, group_id bigint, "position" bigint, oldest timestamptz, is_locked boolean, locked_by integer)
language sql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  with holder as materialized (
    select l.transactionid, max(l.pid) as pid
    from pg_locks as l
    where l.locktype = 'transactionid' and l.mode = 'ExclusiveLock' and l.granted
    group by l.transactionid
  ), head as (
    select q.queue_id, m.endpoint_id, min(m.position) as position, min(m.enqueued_at) as oldest
    from parley._p_queue as q
    cross join generate_series(1, 10) as p (n)
    left join lateral (
      select s.low_position
      from parley._p_scan_hint as s
      where s.lane = parley._p_lane(q.queue_id, p.n)
      order by s.lane desc, s.hint_id desc
      limit 1
    ) as h on true
    cross join lateral (
      select r.endpoint_id, r.position, r.enqueued_at
      from parley._p_message as r
      where r.lane = parley._p_lane(q.queue_id, p.n) and r.position >= coalesce(h.low_position, 0)
      order by r.position
      limit rows_max
    ) as m
    where q.queue_id = any (queue_ids) and q.priorities & (1 << p.n) > 0
    group by q.queue_id, m.endpoint_id
  )
  select h.queue_id, h.endpoint_id, e.group_id, h.position, h.oldest, o.pid is not null or parley._p_is_running(g.xmax), o.pid
  from head as h
  join parley._p_endpoint as e on e.endpoint_id = h.endpoint_id and e.state <> 'DO'
  join parley._p_conversation_group as g on g.group_id = e.group_id
  left join holder as o on o.transactionid = g.xmax
$$;

comment on function parley._p_head_conversations(integer[], integer) is
'Gives the conversations that the first rows of some queues belong to, and who has them locked. locked_by is null when that session cannot be told.
Arguments: queue_ids; rows_max, how many rows of each lane to look at.';

create function parley._p_queues_to_receive_from(caller oid) returns setof parley._p_queue
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_sees_all boolean := parley._p_is_administrator(caller);
begin
  return query
  select *
  from parley._p_queue as q
  where v_sees_all or parley._p_has_permission(caller, 'RECEIVE', 'queue', q.queue_id, q.owner);
end
$$;

comment on function parley._p_queues_to_receive_from(oid) is 'Gives the queues that the caller may receive from.';

create function parley.queue_activity(caller parley.caller default parley.current_caller()) returns table (
  queue_name text,
  service_queue_id integer,
  status text,
  waiting_messages bigint,
  is_estimated boolean,
  held_messages bigint,
  oldest_enqueue_time timestamptz,
  enqueued_rows bigint,
  messages_per_row double precision,
  max_readers integer,
  running_readers integer,
  failures integer,
  last_error text,
  locked_groups integer,
  lock_holders integer[]
)
language sql volatile security definer
set search_path = pg_catalog, pg_temp
set jit = off
as $$
  with mine as materialized (
    select q.queue_id, q, row_number() over (order by q.queue_id) as number from parley._p_queues_to_receive_from(parley._p_caller(caller)) as q
  ), drawn as materialized (
    select d.value, d.number
    from unnest(
      parley._p_last_values((select array_agg((m.q).position_sequence order by m.queue_id) from mine as m))
    ) with ordinality as d (value, number)
  ), locked as materialized (
    select h.queue_id, count(distinct h.group_id)::integer as groups,
      coalesce(array_agg(distinct h.locked_by) filter (where h.locked_by is not null), '{}') as holders
    from parley._p_head_conversations((select array_agg(m.queue_id) from mine as m), 100) as h
    where h.is_locked
    group by h.queue_id
  )
  select
    (m.q).lookup_name,
    m.queue_id,
    case
      when parley._p_is_poisoned(m.queue_id) then 'POISONED'
      when (m.q).is_receive_enabled then 'ON'
      else 'OFF'
    end,
    b.messages,
    b.is_estimated or coalesce(a.is_estimated, false),
    coalesce(a.messages, 0),
    b.oldest_enqueue_time,
    d.value,
    coalesce(t.messages_per_row, 1),
    case when (m.q).is_activation_enabled then (m.q).max_readers else 0 end,
    coalesce(r.running_readers, 0),
    coalesce(r.failures, 0),
    r.last_error,
    coalesce(l.groups, 0),
    coalesce(l.holders, '{}')
  from mine as m
  join drawn as d using (number)
  cross join lateral parley._p_backlog(m.q, 0, (m.q).disabled_position) as b
  left join lateral parley._p_backlog(m.q, (m.q).disabled_position, null) as a on (m.q).disabled_position is not null
  left join lateral (
    select avg(coalesce(cardinality(n.frame), 1))::double precision as messages_per_row
    from (
      select w.frame
      from generate_series(1, 10) as p (n)
      cross join lateral (
        select o.frame
        from parley._p_message as o
        where o.lane = parley._p_lane(m.queue_id, p.n)
        order by o.position desc
        limit 32
      ) as w
      where (m.q).priorities & (1 << p.n) > 0
    ) as n
  ) as t on b.messages > 0
  left join parley._p_queue_monitor as r on r.queue_id = m.queue_id and r.term = parley._p_current_term()
  left join locked as l on l.queue_id = m.queue_id
  order by m.queue_id
$$;

comment on function parley.queue_activity(parley.caller) is
'Tells what goes on in each queue that the caller may receive from. Two looks make rates: enqueued_rows only grows.
Columns: queue_name, service_queue_id; status, ON, OFF or POISONED; waiting_messages, is_estimated, held_messages and oldest_enqueue_time as queue_backlogs;
enqueued_rows, how many rows were ever put on the queue, where a batch is one row for each page of it; messages_per_row of the newest rows that wait;
max_readers that activation may start, or 0; running_readers of the daemon, failures of its last readers in a row, last_error of them;
locked_groups among the conversations at the head, and the process ids of the sessions that hold them in lock_holders.
Errors: none of its own.';

-- sql/521_conversation_activity.sql

-- The conversations at the heads of the queues, and the sessions that work with the broker: who waits, and for whom.

create function parley.conversation_activity(
  top integer default 100,
  caller parley.caller default parley.current_caller()
) returns table (
  conversation_handle uuid,
  conversation_group_id uuid,
  queue_name text,
  service_name text,
  far_service text,
  state text,
  waiting_messages bigint,
  is_more boolean,
  oldest_enqueue_time timestamptz,
  is_locked boolean,
  locked_by integer
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  select
    e.conversation_handle,
    g.conversation_group_id,
    q.lookup_name,
    e.service_name,
    e.far_service,
    e.state,
    coalesce(w.messages, 0),
    w.rows = 1000,
    c.oldest,
    c.is_locked,
    c.locked_by
  from (
    select h.queue_id, h.endpoint_id, h.group_id, h.position, h.oldest, h.is_locked, h.locked_by
    from parley._p_head_conversations(array(select q.queue_id from parley._p_queues_to_receive_from(parley._p_caller(caller)) as q), 100) as h
    order by h.is_locked desc, h.oldest, h.endpoint_id
    limit conversation_activity.top
  ) as c
  join parley._p_queue as q on q.queue_id = c.queue_id
  join parley._p_endpoint as e on e.endpoint_id = c.endpoint_id
  join parley._p_conversation_group as g on g.group_id = c.group_id
  cross join lateral (
    select count(*) as rows, sum(r.messages)::bigint as messages
    from (
      select coalesce(cardinality(m.frame), 1) as messages
      from parley._p_message as m
      where m.endpoint_id = c.endpoint_id and m.position >= c.position
      limit 1000
    ) as r
  ) as w
  order by c.is_locked desc, c.oldest, c.endpoint_id
$$;

comment on function parley.conversation_activity(integer, parley.caller) is
'Tells which conversations stand at the heads of the queues that the caller may receive from: those that somebody has locked first, then by age.
Columns: conversation_handle, conversation_group_id, queue_name, service_name, far_service, state; waiting_messages, counted up to 1,000 rows, and
is_more, whether there may be more; oldest_enqueue_time; is_locked, and locked_by, the process id of the session that holds the group, null when that
cannot be told.
Arguments: top, at most so many.
Errors: 42501 unknown caller.';

create view parley.broker_sessions as
select
  a.pid,
  a.usename::text as role_name,
  a.application_name,
  a.state,
  a.wait_event_type,
  a.wait_event,
  b.blocked_by,
  (
    -- Whoever waits in RECEIVE sleeps, and holds a lock on the sequence that it watches.
    select min(q.lookup_name)
    from pg_catalog.pg_locks as l
    join parley._p_queue as q on q.position_sequence = l.relation
    where a.wait_event = 'PgSleep' and l.pid = a.pid and l.locktype = 'relation' and l.database = a.datid and l.granted
  ) as waits_in_queue,
  extract(epoch from clock_timestamp() - a.xact_start)::double precision as transaction_seconds,
  extract(epoch from clock_timestamp() - a.state_change)::double precision as state_seconds,
  left(a.query, 500) as statement
from pg_catalog.pg_stat_activity as a
cross join lateral (
  select case when a.wait_event_type = 'Lock' then pg_catalog.pg_blocking_pids(a.pid) else '{}' end as blocked_by
) as b
where a.datname = current_database()
  and a.pid <> pg_catalog.pg_backend_pid()
  and a.pid in (
    select l.pid
    from pg_catalog.pg_locks as l
    join pg_catalog.pg_class as c on c.oid = l.relation
    where l.locktype = 'relation' and l.database = a.datid and c.relnamespace = 'parley'::regnamespace
  );

comment on view parley.broker_sessions is
'Sessions in whose transactions the broker was used, and whom they wait for. A role that may not see the activity of others finds little of them.';
comment on column parley.broker_sessions.pid is 'Process id of the session.';
comment on column parley.broker_sessions.role_name is 'Who has logged in.';
comment on column parley.broker_sessions.application_name is 'What the client calls itself.';
comment on column parley.broker_sessions.state is 'Such as active, or idle in transaction, as in pg_stat_activity.';
comment on column parley.broker_sessions.wait_event_type is 'What kind of thing the session waits for, as in pg_stat_activity.';
comment on column parley.broker_sessions.wait_event is 'What it waits for.';
comment on column parley.broker_sessions.blocked_by is 'Process ids of the sessions that hold the lock it waits for; empty when it waits for no lock.';
comment on column parley.broker_sessions.waits_in_queue is 'Queue in which the session waits for messages, inside RECEIVE or GET CONVERSATION GROUP.';
comment on column parley.broker_sessions.transaction_seconds is 'For how long its transaction has been open.';
comment on column parley.broker_sessions.state_seconds is 'For how long it has been in its state.';
comment on column parley.broker_sessions.statement is 'The statement that runs, or the last one that ran; 500 characters at most.';

-- sql/521_find_conversation_faults.sql

-- Checks of conversations: what cannot be delivered, what was not ended, what is overdue.

create function parley._p_find_undeliverable(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with waiting as (
    select e.far_service, e.far_broker_instance, coalesce(e.far_endpoint_id < 0, false) as has_begun_elsewhere, p.status as held_because,
      array_agg(distinct e.service_contract_name) as contracts, count(*) as messages, min(t.enqueued_at) as since
    from parley._p_transmission as t
    join parley._p_endpoint as e using (endpoint_id)
    left join parley._p_parked as p using (endpoint_id)
    where (scope.endpoint_ids is null or e.endpoint_id = any (scope.endpoint_ids))
      -- What is held because the other side has ended goes when this side ends.
      and (e.state not in ('DI', 'ER') or t.message_type_id = -1)
    group by e.far_service, e.far_broker_instance, coalesce(e.far_endpoint_id < 0, false), p.status
    having min(t.enqueued_at) < clock_timestamp() - scope.patience
  ), explained as (
    select w.far_service, w.far_broker_instance, w.held_because, w.contracts, w.messages, w.since,
      case
        when not b.is_broker_enabled then 'disabled'
        when w.held_because is not null then 'held'
        when parley._p_is_asking(w.far_service) then 'asked'
        when l.address is null then 'unrouted'
        when l.address <> 'LOCAL' or (parley._p_is_here(w.far_service, w.far_broker_instance) and not w.has_begun_elsewhere) then 'deliverable'
        when w.far_broker_instance <> b.service_broker_guid::text then 'elsewhere'
        when w.has_begun_elsewhere then 'unrouted'
        else 'missing'
      end as reason
    from waiting as w
    cross join parley._p_broker as b
    cross join lateral parley._p_leads_to(w.far_service, w.far_broker_instance) as l (address)
  )
  select 'undeliverable', 'service', x.far_service,
    format('Messages to it wait (%s) in the transmission queue: ', x.messages) || case x.reason
      when 'disabled' then 'the broker is disabled (9791).'
      when 'held' then 'the far side cannot take them now. ' || x.held_because
      when 'asked' then 'the broker configuration service was asked for a route, and has not answered (9770).'
      when 'unrouted' then 'no route leads there (9750).'
      when 'elsewhere' then format('the broker instance %s is not this database, and there is no route to it (9795).', x.far_broker_instance)
      when 'missing' then 'there is no such service in this database, and no route to it (9796).'
        || parley._p_did_you_mean(x.far_service, array(select s.name from parley._p_service as s))
      else 'nothing is in the way any more, and nobody has looked since.'
    end,
    x.since,
    case x.reason
      when 'disabled' then 'select parley.enable_broker();'
      when 'held' then '-- look at the database of that service; it is tried again within 64 seconds'
      when 'asked' then 'select * from parley.receive(''<queue>'');  -- of service SQL/ServiceBroker/BrokerConfiguration, and end the conversation'
      when 'missing' then format('select parley.create_service(%L, ''<queue>'', %L);', x.far_service, x.contracts)
      when 'deliverable' then 'select parley.fire_timers();'
      else format(
        'select parley.create_route(%L, ''tcp://<host>:4022'', %L%s);',
        left(x.far_service, 128), x.far_service, coalesce(format(', %L', x.far_broker_instance), '')
      )
    end
  from explained as x
$$;

comment on function parley._p_find_undeliverable(parley._p_scope) is
'Finds what has been in the transmission queue for longer than scope.patience, by target and reason.';

create function parley._p_find_leaks(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    case l.state when 'SO' then 'conversation-not-used' else 'conversation-not-ended' end,
    case when l.conversations = 1 then 'conversation' else 'service' end,
    case when l.conversations = 1 then l.handle else l.service_name end,
    format('With "%s" it', l.far_service)
      || case when l.conversations > 1 then format(' has %s conversations; one of them', l.conversations) else '' end
      || case l.state
        when 'DI' then ' was ended by the other side; everything is received, and this side was not ended.'
        when 'ER' then ' failed; the Error message is received, and this side was not ended.'
        else ' was begun, and nothing was ever sent.'
      end,
    l.since,
    case
      when l.conversations = 1 then format('select parley.end_conversation(%L);', l.handle)
      else format(
        'select parley.end_conversation(conversation_handle) from parley.leaked_conversations(%L) '
        'where service_name = %L and far_service = %L and state = %L and waiting = 0;',
        scope.patience, l.service_name, l.far_service, l.state
      )
    end
  from (
    select e.service_name, e.far_service, e.state, count(*) as conversations, min(e.conversation_handle::text) as handle, min(e.state_since) as since
    from parley._p_endpoint as e
    where e.state in ('DI', 'ER', 'SO')
      -- Event notifications have said nothing for as long as nothing has happened.
      and e.service_id >= 65536
      and e.state_since < clock_timestamp() - scope.patience
      and (scope.endpoint_ids is null or e.endpoint_id = any (scope.endpoint_ids))
      and not exists (select from parley._p_message as m where m.endpoint_id = e.endpoint_id)
    group by e.service_name, e.far_service, e.state
  ) as l
$$;

comment on function parley._p_find_leaks(parley._p_scope) is
'Finds conversations that nobody ends, in the same state for longer than scope.patience: one by itself, several by service, far service and state.';

create function parley._p_find_late_timers(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'timers-late', 'database', current_database()::text,
    format(
      'Timers, ends of lifetimes or of abandoned conversations are overdue (%s): no daemon runs and nobody calls fire_timers, or they are held.',
      count(*)
    ),
    min(coalesce(a.first_due_at, a.due_at)),
    'select parley.fire_timers(10000);'
  from parley._p_alarm as a
  where (a.due_at < clock_timestamp() - scope.patience or a.first_due_at < clock_timestamp() - scope.patience)
    and (scope.endpoint_ids is null or a.endpoint_id = any (scope.endpoint_ids))
  having count(*) > 0
$$;

comment on function parley._p_find_late_timers(parley._p_scope) is 'Finds out whether what is due has been so for longer than scope.patience.';

create function parley._p_find_tombstones(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'tombstones', 'database', current_database()::text,
    format('Closed conversations should have been forgotten (%s): no daemon runs, and nobody calls fire_timers.', count(*)),
    min(t.expires_at),
    'select parley.fire_timers(100000);'
  from parley._p_tombstone as t
  where t.expires_at < clock_timestamp() - scope.patience and scope.endpoint_ids is null
  having count(*) > 0
$$;

comment on function parley._p_find_tombstones(parley._p_scope) is 'Finds out whether expired tombstones pile up.';

create function parley._p_find_clock_faults(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'messages-from-the-future', 'queue', q.lookup_name,
    format('Its newest message arrived at %s, and it is %s now: the clock of the server was set back, so ages and timers are wrong until then.',
      max(m.enqueued_at), clock_timestamp()),
    null::timestamptz,
    '-- set the clock of the database server right'
  from parley._p_queue as q
  cross join generate_series(1, 10) as p (n)
  cross join lateral (
    select n.enqueued_at from parley._p_message as n where n.lane = parley._p_lane(q.queue_id, p.n) order by n.lane desc, n.position desc limit 1
  ) as m
  where q.priorities & (1 << p.n) > 0
    and m.enqueued_at > clock_timestamp() + scope.patience
    and (scope.queue_ids is null or q.queue_id = any (scope.queue_ids))
  group by q.lookup_name
$$;

comment on function parley._p_find_clock_faults(parley._p_scope) is 'Finds queues whose newest message is from the future.';
create function parley._p_find_poison(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'poison', 'conversation', e.conversation_handle::text,
    format('It is set aside in queue "%s": its message was rolled back %s times', q.lookup_name, a.rollbacks)
      || coalesce(format('; the last error: %s (SQLSTATE %s).', f.error, f.sqlstate), '.'),
    a.set_aside_at,
    format('select parley.retry_poison(%L);  -- once the reader is mended; otherwise parley.discard_poison', e.conversation_handle)
  from parley._p_set_aside as a
  join parley._p_endpoint as e using (endpoint_id)
  join parley._p_service as s using (service_id)
  join parley._p_queue as q using (queue_id)
  left join parley._p_failure as f using (endpoint_id)
  where scope.endpoint_ids is null or a.endpoint_id = any (scope.endpoint_ids)
$$;

comment on function parley._p_find_poison(parley._p_scope) is 'Finds conversations that are set aside.';

-- sql/522_find_old_transactions.sql

-- Checks of what sessions outside of the broker do to it: old snapshots and transactions that stay open.
--
-- Of the sessions of other roles PostgreSQL tells an ordinary owner that they are there and how old their snapshot is, not since when: grant
-- pg_read_all_stats to the owner of the schema to see more. Such a session shows here once 100,000 transactions have begun since.

create function parley._p_find_old_snapshots(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'old-snapshot', 'session', a.pid::text,
    format('Its snapshot keeps dead rows of all tables from being removed; role %s, program "%s", %s.',
      coalesce(a.usename::text, 'unknown'), a.application_name, coalesce(a.state, a.backend_type, 'state unknown')),
    a.xact_start,
    format('select pg_terminate_backend(%s);', a.pid)
  from pg_stat_activity as a
  where a.backend_xmin is not null
    and (a.datid = parley._p_database_oid() or a.backend_type = 'walsender')
    and a.pid <> pg_backend_pid()
    and case
      when a.xact_start is not null then a.xact_start < clock_timestamp() - scope.patience
      else age(a.backend_xmin) > 100000
    end
    and scope.endpoint_ids is null
  union all
  select 'old-slot', 'replication slot', s.slot_name::text,
    format('Nobody uses it, and it keeps what was dead %s transactions ago from being removed.', age(coalesce(s.xmin, s.catalog_xmin))),
    null,
    format('select pg_drop_replication_slot(%L);', s.slot_name)
  from pg_replication_slots as s
  where not s.active
    and coalesce(s.xmin, s.catalog_xmin) is not null
    and (s.database is null or s.database = current_database())
    and scope.endpoint_ids is null
  union all
  select 'old-prepared-transaction', 'prepared transaction', x.gid,
    format('Role %s has prepared it, and nobody has finished it: it keeps its locks, and dead rows from being removed.', x.owner),
    x.prepared,
    format('rollback prepared %L;  -- or commit prepared %L;', x.gid, x.gid)
  from pg_prepared_xacts as x
  where x.database = current_database()
    and x.prepared < clock_timestamp() - scope.patience
    and scope.endpoint_ids is null
$$;

comment on function parley._p_find_old_snapshots(parley._p_scope) is
'Finds sessions, replication slots and prepared transactions that have kept dead rows from being removed for longer than scope.patience.';

create function parley._p_find_open_senders(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'sender-open', 'session', a.pid::text,
    format('It has sent to queue "%s" and has neither committed nor rolled back (%s): readers of the queue cannot pass by what is received beyond that.',
      q.lookup_name, coalesce(a.state, 'state unknown')),
    a.xact_start,
    format('select pg_terminate_backend(%s);', a.pid)
  from pg_locks as l
  join parley._p_queue as q on q.position_sequence = l.relation
  join pg_stat_activity as a using (pid)
  where l.locktype = 'relation'
    and l.database = parley._p_database_oid()
    and l.mode = 'RowExclusiveLock'
    and l.granted
    and a.wait_event is distinct from 'PgSleep'
    and a.pid <> pg_backend_pid()
    and a.xact_start < clock_timestamp() - scope.patience
    and (scope.queue_ids is null or q.queue_id = any (scope.queue_ids))
$$;

comment on function parley._p_find_open_senders(parley._p_scope) is
'Finds sessions that have sent and stayed in their transaction for longer than scope.patience.';

-- sql/522_passing_messages.sql

-- Watching messages as they pass through a queue, without taking them.
--
-- Whoever watches remembers the position up to which everything is settled: nothing can appear there any more. A sender that draws a
-- position holds a lock on the queue's sequence until its transaction ends, so when none of those is left that held it when the
-- sequence stood at P, everything up to P is there to be seen or never will be (as in 230_find_group.sql). Up to there a watcher need not
-- look again; behind it he has to, for messages may appear between those that he has seen.
-- Only committed messages show, and only while they wait: what is received between two looks is never seen.
-- Cost: one index range a lane for each look. Nothing is locked.

create function parley.queue_end(
  queue text,
  caller parley.caller default parley.current_caller(),
  out service_queue_id integer,
  out "position" bigint,
  out senders text[]
)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
begin
  service_queue_id := v_queue.queue_id;
  select p.position, p.senders into position, senders from parley._p_probe(v_queue.position_sequence) as p;
end
$$;

comment on function parley.queue_end(text, parley.caller) is
'Tells up to where positions of a queue have been given out: those of later messages are not less. What senders had drawn before shows when their
transactions have ended, which are named in senders. Not undone by anything, and no lock that looks like a sender''s remains.
Arguments: queue.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name.';

create function parley.passing_messages(
  queue text, from_position bigint, top integer default 100,
  caller parley.caller default parley.current_caller()
) returns table (
  queuing_order bigint,
  priority smallint,
  conversation_handle uuid,
  conversation_group_id uuid,
  service_name text,
  far_service text,
  service_contract_name text,
  message_type_name text,
  message_enqueue_time timestamptz,
  message_body bytea
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
begin
  return query
  select
    m.position + b.ordinal - 1,
    e.priority,
    e.conversation_handle,
    g.conversation_group_id,
    e.service_name,
    e.far_service,
    e.service_contract_name,
    t.name,
    m.enqueued_at,
    b.body
  from generate_series(1, 10) as p (n)
  cross join lateral (
    select w.position, w.endpoint_id, w.message_type_id, w.enqueued_at, w.body, w.frame
    from parley._p_message as w
    where w.lane = parley._p_lane(v_queue.queue_id, p.n)
      -- The row of a frame stands where its first message does.
      and w.position >= passing_messages.from_position / 1024 * 1024
      and w.position + coalesce(cardinality(w.frame), 1) > passing_messages.from_position
    order by w.position
    limit top
  ) as m
  join parley._p_endpoint as e on e.endpoint_id = m.endpoint_id and e.state <> 'DO'
  join parley._p_conversation_group as g using (group_id)
  join parley._p_message_type as t on t.message_type_id = m.message_type_id
  cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
  where v_queue.priorities & (1 << p.n) > 0
    and m.position + b.ordinal - 1 >= passing_messages.from_position
  order by 1
  limit top;
end
$$;

comment on function parley.passing_messages(text, bigint, integer, parley.caller) is
'Looks at the messages of a queue from one position on, in the order of their positions whatever their priority, without taking them. Those of locked
groups are among them, and those that are held because the queue is off; not what retention keeps.
Arguments: queue; from_position, a queuing_order or what queue_end gave, 0 for the beginning; top, at most so many messages.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name.';

-- sql/523_transmission_destinations.sql

-- How much waits for each address that messages are transmitted to: for screens and monitors that look again and again.
--
-- parley.transmission_queue has a row for each message and works out what number it will have; it is for looking at messages. What waits in the
-- lane of a destination is counted up to some 10,000 rows and estimated beyond, as the depth of a queue is (272_queue_depth.sql).
-- Nothing is locked. Cost: for each destination one index range of at most 10,000 rows a priority, and the bounded number that is in transit.

create function parley._p_transmission_backlog(
  destination parley._p_destination, out messages bigint, out is_estimated boolean, out oldest timestamptz
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_lane integer;
  v_seen record;
begin
  messages := 0;
  is_estimated := false;
  for v_lane in
    select parley._p_lane(destination.destination_id, p.n) from generate_series(10, 1, -1) as p (n) where destination.priorities & (1 << p.n) > 0
  loop
    select count(*) as rows, coalesce(sum(w.messages), 0) as messages, max(w.position) as last, min(w.enqueued_at) as oldest into v_seen
    from (
      select m.position, coalesce(cardinality(m.frame), 1) as messages, m.enqueued_at
      from parley._p_message as m
      where m.lane = v_lane
        and m.position >= coalesce(
          (select h.low_position from parley._p_scan_hint as h where h.lane = v_lane order by h.lane desc, h.hint_id desc limit 1), 0
        )
      order by m.position
      limit 10000
    ) as w;
    messages := messages + v_seen.messages;
    oldest := least(oldest, v_seen.oldest);
    if v_seen.rows = 10000 then
      is_estimated := true;
      messages := messages + (
        select r.messages
        from parley._p_estimate_messages(
          v_lane, v_seen.last + 1, (coalesce(parley._p_last_position('parley._p_transmission_position'), 0) + 1) * 1024
        ) as r
      );
    end if;
  end loop;
end
$$;

comment on function parley._p_transmission_backlog(parley._p_destination) is
'Tells how many messages wait in the lanes of a destination, and since when.';

create function parley.transmission_destinations(caller parley.caller default parley.current_caller()) returns table (
  address text,
  waiting_messages bigint,
  is_estimated boolean,
  messages_in_transit bigint,
  oldest_enqueue_time timestamptz,
  transmission_status text,
  attempts integer,
  failing_since timestamptz,
  next_attempt_time timestamptz
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  perform parley._p_require_administrator(v_caller, 'transmission_destinations');
  return query
  select d.address::text, b.messages, b.is_estimated, t.messages, least(t.oldest, b.oldest), d.status, d.attempts, d.failing_since, d.due_at
  from parley._p_destination as d
  cross join lateral parley._p_transmission_backlog(d) as b
  left join (
    select x.destination_id, sum(x.next_sequence - x.first_sequence)::bigint as messages, min(x.enqueued_at) as oldest
    from parley._p_transit as x
    group by x.destination_id
  ) as i on i.destination_id = d.destination_id
  cross join lateral (select coalesce(i.messages, 0) as messages, i.oldest) as t
  order by d.address;
end
$$;

comment on function parley.transmission_destinations(parley.caller) is
'Gives the addresses that messages are transmitted to, with what waits for them, what is on its way and not acknowledged, and how the last attempts went.
What has no address yet is only in parley.transmission_queue.
Result: address, tcp://host:port, or broker:GUID for another database that the same daemon serves; waiting_messages, counted up to 10,000 rows and
is_estimated beyond; messages_in_transit, at most some thousands; oldest_enqueue_time of both; transmission_status, empty when all is well; attempts that
failed, failing_since, next_attempt_time.
Errors: 15151 not an administrator.';

-- sql/524_find_destination_faults.sql

-- Checks of destinations: what is to be transmitted to other databases, and is not.
--
-- What has no destination is in the transmission queue with its own reason, and is found there (521_find_conversation_faults.sql). Here are links that
-- fail, and messages that wait although nothing fails. Cost: one row of each destination; the oldest row of its lanes and of what is in transit.

create function parley._p_find_unreachable_destinations(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'destination-unreachable', 'destination', d.address,
    format(
      'Messages cannot be transmitted to it: %s (%s attempts, the next one %s)', d.status, d.attempts,
      case when d.due_at > clock_timestamp() then format('in %s seconds', ceil(extract(epoch from d.due_at - clock_timestamp()))) else 'is due' end
    ),
    d.failing_since,
    case
      when d.status like '%(9666)' then 'parley serve --listen :4022 -- the daemon of this database has no broker endpoint'
      when d.address like 'broker:%' then 'parley serve -- with one --dsn more, that of the other database'
      else coalesce(
        (
          select format('select parley.alter_route(%L, ''tcp://<host>:4022'');  -- if it has moved; otherwise see that a daemon listens there', r.name)
          from parley._p_route as r
          where r.next_hop = d.address and not r.is_inbound
          order by r.route_id
          limit 1
        ),
        '-- see that a daemon listens there'
      )
    end
  from parley._p_destination as d
  where d.attempts > 0
    and d.failing_since < clock_timestamp() - scope.patience
    and d.destination_id in (select w.destination_id from parley._p_destinations() as w)
    and (
      scope.endpoint_ids is null
      or exists (select from parley._p_endpoint as e where e.destination_id = d.destination_id and e.endpoint_id = any (scope.endpoint_ids))
    )
$$;

comment on function parley._p_find_unreachable_destinations(parley._p_scope) is
'Finds destinations that something waits for, and to which every attempt has failed for longer than scope.patience.';

create function parley._p_find_transmission_backlog(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'transmission-backlog', 'destination', d.address,
    case
      when parley._p_current_term() is null then 'Messages wait to be transmitted to it, and no daemon runs.'
      when w.is_transit then 'Messages were transmitted to it, and the other side has not acknowledged them.'
      else 'Messages wait longer and longer to be transmitted to it: they are sent faster than they are taken in there.'
    end,
    w.since,
    case
      when parley._p_current_term() is null then 'parley serve'
      else format('select * from parley.transmission_queue as t where t.transmission_status <> %L limit 100;', '')
    end
  from parley._p_destination as d
  cross join lateral (
    select o.since, o.is_transit
    from (
      (
        select t.enqueued_at as since, true as is_transit
        from parley._p_transit as t
        where t.destination_id = d.destination_id
          and not exists (select from parley._p_parked as k where k.endpoint_id = t.endpoint_id)
        order by t.enqueued_at
        limit 1
      )
      union all
      select f.enqueued_at, false
      from generate_series(1, 10) as p (priority)
      cross join lateral (
        select m.enqueued_at
        from parley._p_message as m
        where m.lane = parley._p_lane(d.destination_id, p.priority)
        order by m.lane, m.position
        limit 1
      ) as f
      where d.priorities & (1 << p.priority) <> 0
    ) as o
    order by o.since
    limit 1
  ) as w
  where d.attempts = 0
    and w.since < clock_timestamp() - scope.patience
    and (
      scope.endpoint_ids is null
      or exists (select from parley._p_endpoint as e where e.destination_id = d.destination_id and e.endpoint_id = any (scope.endpoint_ids))
    )
$$;

comment on function parley._p_find_transmission_backlog(parley._p_scope) is
'Finds destinations that are well, and for which messages have waited for longer than scope.patience.';

-- sql/530_check_broker.sql

-- The consistency check of spec 9.2: does everything refer to something that exists?
--
-- Constraints keep most of this from ever happening. It happens all the same: after a restore of parts, after repairs by hand, after roles and
-- procedures were dropped, which know nothing of us. Definitions are few and are looked at by diagnosis too; contents are every row there is.
-- Each look is one statement, so what others do meanwhile is seen as a whole or not at all.

create function parley._p_check_definitions()
returns table (error_number integer, object_kind text, object_id bigint, object_name text, finding text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 9677, 'contract', c.service_contract_id::bigint, c.name::text, format('Its message type %s does not exist.', u.message_type_id)
  from parley._p_contract_message_type as u
  join parley._p_contract as c using (service_contract_id)
  where not exists (select from parley._p_message_type as t where t.message_type_id = u.message_type_id)
  union all
  select 9678, 'service', s.service_id, s.name, format('Its contract %s does not exist.', u.service_contract_id)
  from parley._p_service_contract as u
  join parley._p_service as s using (service_id)
  where not exists (select from parley._p_contract as c where c.service_contract_id = u.service_contract_id)
  union all
  select 9679, 'service', s.service_id, s.name, format('Its queue %s does not exist.', s.queue_id)
  from parley._p_service as s
  where not exists (select from parley._p_queue as q where q.queue_id = s.queue_id)
  union all
  select case when a.procedure_call is null then 9706 else 9707 end, 'queue', a.queue_id, a.name,
    case
      when a.procedure_call is null then format('Its activation procedure %s does not exist.', a.procedure_name)
      else 'Its activation user does not exist.'
    end
  from parley._p_activated_queues() as a
  where a.kind = 'procedure' and (a.procedure_call is null or a.execute_as is null)
  union all
  select 9713, 'message type', t.message_type_id, t.name, 'Its validation function does not exist: every message of this type fails.'
  from parley._p_message_type as t
  where t.validation_function is not null and not exists (select from pg_proc as p where p.oid = t.validation_function)
  union all
  select 9607, 'priority', p.priority_id, p.name, format('Its service %s does not exist.', p.local_service_id)
  from parley._p_priority as p
  where p.local_service_id is not null and not exists (select from parley._p_service as s where s.service_id = p.local_service_id)
  union all
  select 9608, 'priority', p.priority_id, p.name, format('Its contract %s does not exist.', p.service_contract_id)
  from parley._p_priority as p
  where p.service_contract_id is not null and not exists (select from parley._p_contract as c where c.service_contract_id = p.service_contract_id)
  union all
  select 208, 'queue', q.queue_id, q.lookup_name, 'It has no view in schema parley_queue.'
  from parley._p_queue as q
  where not exists (
    select
    from pg_class as c
    where c.relnamespace = to_regnamespace('parley_queue') and c.relname = parley._p_queue_view_name(q.queue_id) and c.relkind = 'v'
  )
$$;

comment on function parley._p_check_definitions() is 'Finds definitions that refer to something that does not exist. Source: spec 9.2.';

create function parley._p_check_contents()
returns table (error_number integer, object_kind text, object_id bigint, object_name text, finding text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select f.error_number, 'conversation', e.endpoint_id, e.conversation_handle::text, f.finding
  from parley._p_endpoint as e
  left join parley._p_conversation_group as g using (group_id)
  left join parley._p_service as s on s.service_id = e.service_id
  left join parley._p_endpoint as o on o.endpoint_id = e.far_endpoint_id
  cross join lateral (
    select 8443 as error_number, 'Its conversation group does not exist.' as finding where g.group_id is null
    union all
    select 9681, 'Its contract does not exist.'
    where not exists (select from parley._p_contract as c where c.service_contract_id = e.service_contract_id)
    union all
    select 9682, 'Its service does not exist.' where s.service_id is null
    union all
    select 9710, 'Its conversation group belongs to another queue.'
    from parley._p_service as r
    where r.service_id = g.service_id and r.queue_id <> s.queue_id
    union all
    select 8445, 'Its far side belongs to another conversation.'
    where o.endpoint_id is not null
      and (o.conversation_id, not o.is_initiator, o.far_endpoint_id) is distinct from (e.conversation_id, e.is_initiator, e.endpoint_id)
    union all
    select 9715, 'Its state is inconsistent: it has sent nothing, but has a far side.' where e.state = 'SO' and e.far_endpoint_id is not null
    union all
    select 9715, 'Its state is inconsistent: it is bound to a destination that does not exist.'
    where e.destination_id is not null
      and not exists (select from parley._p_destination as d where d.destination_id = e.destination_id)
  ) as f
  union all
  select case when s.service_id is null then 9683 else 9716 end, 'conversation group', g.group_id, g.conversation_group_id::text,
    case when s.service_id is null then 'Its service does not exist.' else 'No conversation is in it.' end
  from parley._p_conversation_group as g
  left join parley._p_service as s using (service_id)
  where s.service_id is null or not exists (select from parley._p_endpoint as e where e.group_id = g.group_id)
  union all
  select f.error_number, 'queue', m.lane / 16, coalesce(q.lookup_name, 'lane ' || m.lane), format('%s messages in it are of %s.', count(*), f.finding)
  from parley._p_message as m
  left join parley._p_queue as q on q.queue_id = m.lane / 16
  left join parley._p_endpoint as e on e.endpoint_id = abs(m.endpoint_id)
  left join parley._p_service as s on s.service_id = e.service_id
  cross join lateral (
    select 9705 as error_number, 'conversations that do not exist' as finding where e.endpoint_id is null or m.endpoint_id < 0 and q.queue_id is not null
    union all
    select 9709, 'message types that do not exist'
    where not exists (select from parley._p_message_type as t where t.message_type_id = abs(m.message_type_id))
    union all
    select 8444, 'services on other queues' where s.queue_id <> m.lane / 16 and m.endpoint_id > 0
  ) as f
  group by f.error_number, f.finding, m.lane / 16, q.lookup_name, coalesce(q.lookup_name, 'lane ' || m.lane)
  union all
  select 9711, 'transmission queue', null, 'transmission queue', format('%s messages in it are of conversations that do not exist.', count(*))
  from (select w.endpoint_id from parley._p_transmission as w union all select r.endpoint_id from parley._p_transit as r) as t
  where not exists (select from parley._p_endpoint as e where e.endpoint_id = t.endpoint_id)
  having count(*) > 0
$$;

comment on function parley._p_check_contents() is 'Finds conversations, groups and messages that refer to something that does not exist. Source: spec 9.2.';

-- sql/531_repair_broker.sql

-- CHECK and REPAIR: what the check of 530_check_broker.sql found, told with what can be done, or done (spec 9.2).

create function parley.check_broker(repair boolean default false, caller parley.caller default parley.current_caller())
returns table (
  error_number integer, level text, object_kind text, object_name text, finding text, repair_number integer, repaired boolean
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_found record;
begin
  perform parley._p_require_administrator(v_caller, 'CHECK');
  for v_found in
    select d.error_number, d.object_kind, d.object_id, d.object_name, d.finding from parley._p_check_definitions() as d
    union all
    select c.error_number, c.object_kind, c.object_id, c.object_name, c.finding from parley._p_check_contents() as c
  loop
    error_number := v_found.error_number;
    level := 'ERROR';
    object_kind := v_found.object_kind;
    object_name := v_found.object_name;
    finding := v_found.finding;
    repair_number := case
      when error_number in (9607, 9608) then 9606
      when error_number in (9678, 9679) then 9684
      when error_number = 9677 then 9685
      when object_kind = 'conversation' then 9686
      when object_kind = 'conversation group' then 9687
      when error_number = 9713 then 9725
      when error_number = 9711 then 9671
      when error_number in (9705, 9709, 8444) then 9672
      when error_number in (9706, 9707) then 9673
    end;
    repaired := coalesce(repair, false);
    if repaired then
      perform parley._p_repair(error_number, v_found.object_kind, v_found.object_id);
    end if;
    return next;
  end loop;
  return query
  select t.error_number, 'INFO', 'total', t.what, t.total || ' ' || t.what, null::integer, false
  from (
    values
      (9605, 'priorities', (select count(*) from parley._p_priority)),
      (9667, 'services', (select count(*) from parley._p_service)),
      (9668, 'queues', (select count(*) from parley._p_queue)),
      (9669, 'conversation endpoints', (select count(*) from parley._p_endpoint)),
      (9670, 'remote service bindings', 0),
      (9674, 'conversation groups', (select count(*) from parley._p_conversation_group)),
      (9675, 'message types', (select count(*) from parley._p_message_type)),
      (9676, 'contracts', (select count(*) from parley._p_contract))
  ) as t (error_number, what, total);
end
$$;

comment on function parley.check_broker(boolean, parley.caller) is
'Checks that everything in the broker refers to something that exists, and repairs it by dropping what does not. Reads every row there is.
Columns: error_number, what is wrong; level, ERROR, or INFO for the totals at the end; object_kind and object_name; finding, in words; repair_number, the number
that Service Broker gives to the repair; repaired, whether it was done just now.
Repairs: priorities, services, contracts, conversations and groups are dropped or lose what does not exist; validation functions are detached; rows of
queues and of the transmission queue removed; activation switched off; missing views of queues created. Far sides get an Error message.
Arguments: repair, whether to repair what is found.
Errors: 15151 not an administrator.
Source: spec 9.2.';

create function parley._p_repair(error_number integer, object_kind text, object_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  case
    when error_number = 9677 then
      delete from parley._p_contract_message_type as u
      where u.service_contract_id = object_id
        and not exists (select from parley._p_message_type as t where t.message_type_id = u.message_type_id);
    when error_number = 9678 then
      delete from parley._p_service_contract as u
      where u.service_id = object_id
        and not exists (select from parley._p_contract as c where c.service_contract_id = u.service_contract_id);
    when error_number = 9679 then
      perform parley._p_drop_endpoint(e.endpoint_id) from parley._p_endpoint as e where e.service_id = object_id;
      delete from parley._p_permission as p where p.class = 'service' and p.object_id = _p_repair.object_id;
      delete from parley._p_service_contract as u where u.service_id = object_id;
      delete from parley._p_priority as p where p.local_service_id = object_id;
      delete from parley._p_service as s where s.service_id = object_id;
    when error_number in (9706, 9707) then
      update parley._p_queue as q set is_activation_enabled = false, modify_date = now() where q.queue_id = object_id;
    when error_number = 9713 then
      update parley._p_message_type as t
      set validation_function = null, validation_setter = null, validation = case t.validation when 'F' then 'N' else t.validation end
      where t.message_type_id = object_id;
    when error_number in (9607, 9608) then
      delete from parley._p_priority as p where p.priority_id = object_id;
    when error_number = 208 then
      if to_regnamespace('parley_queue') is null then
        create schema parley_queue;
        grant usage on schema parley_queue to public;
      end if;
      perform parley._p_create_queue_view(object_id::integer);
    when object_kind = 'conversation' then
      perform parley._p_drop_endpoint(object_id);
    when object_kind = 'conversation group' then
      -- Who holds it may be about to begin a dialog in it.
      perform from parley._p_conversation_group as g where g.group_id = object_id for update skip locked;
      if found then
        perform parley._p_drop_endpoint(e.endpoint_id) from parley._p_endpoint as e where e.group_id = object_id;
        delete from parley._p_conversation_group as g where g.group_id = object_id;
      end if;
    when object_kind = 'queue' then
      delete from parley._p_message as m
      where m.lane / 16 = object_id
        and case error_number
          when 9705 then not exists (select from parley._p_endpoint as e where e.endpoint_id = m.endpoint_id)
          when 9709 then not exists (select from parley._p_message_type as t where t.message_type_id = abs(m.message_type_id))
          else exists (
            select
            from parley._p_endpoint as e
            join parley._p_service as s using (service_id)
            where e.endpoint_id = m.endpoint_id and s.queue_id <> object_id
          )
        end;
    when error_number = 9711 then
      delete from parley._p_transmission as t where not exists (select from parley._p_endpoint as e where e.endpoint_id = t.endpoint_id);
      delete from parley._p_transit as t where not exists (select from parley._p_endpoint as e where e.endpoint_id = t.endpoint_id);
  end case;
end
$$;

comment on function parley._p_repair(integer, text, bigint) is 'Repairs one thing that the check has found.';

create function parley._p_drop_endpoint(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  perform parley._p_discard_messages(endpoint_id);
  delete from parley._p_receive_progress as p where p.endpoint_id = $1;
  delete from parley._p_transmission as t where t.endpoint_id = $1;
  perform parley._p_forget_far_side($1);
  delete from parley._p_endpoint as e where e.endpoint_id = $1 returning * into v_endpoint;
  delete from parley._p_conversation_group as g
  where g.group_id = v_endpoint.group_id
    and not exists (select from parley._p_endpoint as e where e.group_id = g.group_id);
  perform parley._p_break_conversations(array[e.endpoint_id], 8462, 'The other side of the conversation was damaged and has been dropped.')
  from parley._p_endpoint as e
  where e.far_endpoint_id = $1;
end
$$;

comment on function parley._p_drop_endpoint(bigint) is 'Drops a side of a conversation that is damaged, and tells the far side, with error -8462.';

-- sql/540_explain_conversation.sql

-- Where is my message? The steps that one walks to find a message that did not arrive (spec 9.3), for both directions of a conversation.
--
-- Steps 4 and 5 of the spec (duplicates, other brokers) are about dialogs between databases and have nothing to look at here. What keeps a
-- message in a queue is asked of the checks of diagnosis, so both tell the same.

create function parley._p_visible_endpoints(caller oid, conversation uuid) returns setof parley._p_endpoint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[] := parley._p_endpoints_of(conversation);
begin
  return query
  select e.*
  from parley._p_endpoint as e
  where e.endpoint_id = any (v_ids) and parley._p_may_look_at(caller, e)
  order by e.conversation_id, e.is_initiator desc;
  if not found and cardinality(v_ids) > 0 then
    perform parley._p_raise(
      229,
      'permission denied: looking at the conversation',
      format('Role %s neither owns a side of it nor may receive from the queue of one.', caller::regrole),
      'Ask the owner of the service, or an administrator.'
    );
  end if;
end
$$;

comment on function parley._p_visible_endpoints(oid, uuid) is
'Gives the sides of a conversation that the caller may look at.
Errors: 229 none of them, 8426 not found.';

create function parley.explain_conversation(conversation uuid, caller parley.caller default parley.current_caller())
returns table (step integer, conversation_handle uuid, side text, answer text, is_finding boolean, cure text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_end parley._p_endpoint;
  v_far parley._p_endpoint;
  v_scope parley._p_scope;
  v_delayed bigint;
  v_waiting bigint;
  v_received bigint;
  v_count integer := 0;
begin
  for v_end in select * from parley._p_visible_endpoints(v_caller, conversation) loop
    v_count := v_count + 1;
    conversation_handle := v_end.conversation_handle;
    side := case when v_end.is_initiator then 'initiator' else 'target' end;
    select * into v_far from parley._p_endpoint as e where e.endpoint_id = v_end.far_endpoint_id;
    v_delayed := (select count(*) from parley._p_transmission as t where t.endpoint_id = v_end.endpoint_id);
    if v_end.far_endpoint_id < 0 then
      return query select * from parley._p_explain_far_side(v_end, side);
      continue;
    end if;
    v_waiting := (select coalesce(sum(coalesce(cardinality(m.frame), 1)), 0) from parley._p_message as m where m.endpoint_id = v_far.endpoint_id);
    v_received := coalesce((
      select p.sequence from parley._p_receive_progress as p where p.endpoint_id = v_far.endpoint_id order by p.sequence desc limit 1
    ), 0);
    v_scope.endpoint_ids := array[v_end.endpoint_id];
    v_scope.patience := interval '0';

    step := 1;
    is_finding := v_end.state = 'SO';
    answer := case
      when is_finding then 'Nothing that it has sent is committed.'
      else format('It is in state %s (%s) since %s. Of its messages, received: %s, waiting there: %s, on their way: %s.',
        v_end.state, parley._p_state_name(v_end.state), date_trunc('second', v_end.state_since), v_received, v_waiting, v_delayed)
    end;
    cure := null;
    return next;

    step := 2;
    is_finding := true;
    for answer, cure in select f.cause, f.cure from parley._p_find_undeliverable(v_scope) as f loop
      return next;
    end loop;

    -- 3: it is there, but it still is the sender's.
    v_scope.endpoint_ids := array[v_far.endpoint_id];
    v_scope.queue_ids := array(select s.queue_id from parley._p_service as s where s.service_id = v_far.service_id);
    if v_waiting > 0 then
      step := 3;
      for answer, cure in select f.object_name || ': ' || f.cause, f.cure from parley._p_find_queues_off(v_scope) as f loop
        return next;
      end loop;
    end if;

    step := 6;
    if v_far.endpoint_id is null and v_end.far_endpoint_id is not null then
      answer := 'Its far side is closed or was removed: what it had received is processed, and nothing can be sent to it any more.';
      cure := format('select parley.end_conversation(%L);', v_end.conversation_handle);
      return next;
    elsif v_waiting = 0 and v_delayed = 0 and v_far.state in ('DI', 'ER') then
      answer := format('Everything was received there, and the far side is in state %s and not ended.', parley._p_state_name(v_far.state));
      cure := format('select parley.end_conversation(%L);', v_far.conversation_handle);
      return next;
    elsif v_waiting = 0 and v_delayed = 0 and v_received > 0 then
      is_finding := false;
      answer := 'Everything that is committed was received there.';
      cure := null;
      return next;
    end if;

    if v_waiting > 0 then
      step := 7;
      is_finding := true;
      for answer, cure in
        select f.cause, f.cure from parley._p_find_poison(v_scope) as f
        union all
        select f.cause, f.cure from parley._p_find_held_groups(v_scope) as f
        union all
        select f.cause, f.cure from parley._p_find_failing_readers(v_scope) as f
        union all
        select f.cause, f.cure from parley._p_find_missing_daemon(v_scope) as f
        union all
        select f.cause, f.cure from parley._p_find_unread_queues(v_scope) as f
      loop
        return next;
      end loop;
    end if;
  end loop;
  if v_count = 0 then
    step := 1;
    answer := 'Both sides are closed; what was sent was received, or dropped by who ended its side.';
    is_finding := false;
    return next;
  end if;
end
$$;

comment on function parley.explain_conversation(uuid, parley.caller) is
'Tells where the messages of a conversation are and what keeps them there, side by side, in the order of the steps in which one looks for a lost message:
1 is it committed, 2 is it in the transmission queue, 3 is the queue of the other side off, 6 was it received, 7 does it wait to be received.
Columns: step; conversation_handle and side (initiator or target), the sender; answer; is_finding, whether that is what is wrong; cure, a statement.
Arguments: conversation, a handle, a conversation id, or a group.
Errors: 229 not allowed, 8426 not found: never begun, rolled back, or forgotten.
Source: spec 9.3.';

-- sql/541_trace_conversation.sql

-- The life of one conversation, in order, as far as the database remembers it.
--
-- A broker that keeps no history remembers what is there: when the sides were begun, what state they are in and since when, what waits, what is
-- kept by retention, who holds the group, what failed. What was received and not retained is a number without a time.

create function parley.trace_conversation(conversation uuid, caller parley.caller default parley.current_caller())
returns table (
  at timestamptz, conversation_handle uuid, side text, event text, message_type_name text, body_bytes integer, detail text
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  return query
  with ends as materialized (
    select e.*, case when e.is_initiator then 'initiator' else 'target' end as side, g.conversation_group_id, g.xmax as holder
    from parley._p_visible_endpoints(v_caller, conversation) as e
    left join parley._p_conversation_group as g using (group_id)
  ), events as (
    select 1 as rank, e.begun_at as at, e.conversation_handle, e.side, 'begun' as event, null::integer as type_id, null::bytea as body,
      format('%s "%s" with "%s" on contract "%s", priority %s, group %s', e.side, e.service_name, e.far_service, e.service_contract_name,
        e.priority, e.conversation_group_id) as detail
    from ends as e
    union all
    select 2, e.begun_at, e.conversation_handle, e.side, 'received', null, null, format('%s messages so far', p.sequence)
    from ends as e
    cross join lateral (
      select r.sequence from parley._p_receive_progress as r where r.endpoint_id = e.endpoint_id order by r.sequence desc limit 1
    ) as p
    union all
    select 3, r.enqueued_at, e.conversation_handle, e.side, case r.status when 3 then 'sent' else 'received' end, r.message_type_id, r.body,
      format('number %s, kept by retention', r.message_sequence_number)
    from ends as e
    join parley._p_retained as r using (endpoint_id)
    union all
    select 4, w.enqueued_at, e.conversation_handle, e.side, case w.message_type_id when 1 then 'error waits' else 'message waits' end, w.message_type_id,
      w.body, format('position %s in the queue', w.position)
        || case w.message_type_id when 1 then ': ' || parley.body_text(w.body) else '' end
    from ends as e
    cross join lateral (
      select m.position + b.ordinal - 1 as position, m.enqueued_at, m.message_type_id, b.body
      from parley._p_message as m
      cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
      where m.endpoint_id = e.endpoint_id
      order by m.position, b.ordinal
      limit 1000
    ) as w
    union all
    select 5, t.enqueued_at, e.conversation_handle, e.side, 'message delayed', abs(t.message_type_id), t.body, t.transmission_status
    from ends as e
    join parley._p_transmission as t using (endpoint_id)
    union all
    select 5, o.enqueued_at, e.conversation_handle, e.side, o.event, abs(o.message_type_id), o.body,
      concat_ws(': ', format('number %s to %s', o.number, o.address), nullif(o.status, ''))
    from ends as e
    cross join lateral (
      select t.enqueued_at, 'message in transit' as event, t.message_type_id, b.body, (t.first_sequence + b.ordinal - 1)::text as number, d.address, d.status
      from parley._p_transit as t
      join parley._p_destination as d using (destination_id)
      cross join lateral unnest(coalesce(t.frame, array[t.body])) with ordinality as b (body, ordinal)
      where t.endpoint_id = e.endpoint_id
      union all
      select w.enqueued_at, 'message to transmit', w.message_type_id, w.body, 'not given yet', d.address, d.status
      from (
        select m.enqueued_at, m.message_type_id, b.body, m.lane
        from parley._p_message as m
        cross join lateral unnest(coalesce(m.frame, array[m.body])) with ordinality as b (body, ordinal)
        where m.endpoint_id = -e.endpoint_id
        order by m.position, b.ordinal
        limit 1000
      ) as w
      join parley._p_destination as d on d.destination_id = w.lane / 16
    ) as o
    union all
    select 6, f.failed_at, e.conversation_handle, e.side, 'reader failed', null, null, format('%s (SQLSTATE %s)', f.error, f.sqlstate)
    from ends as e
    join parley._p_failure as f using (endpoint_id)
    union all
    select 7, a.set_aside_at, e.conversation_handle, e.side, 'set aside', null, null, format('after %s rollbacks', a.rollbacks)
    from ends as e
    join parley._p_set_aside as a using (endpoint_id)
    union all
    select 8, e.state_since, e.conversation_handle, e.side, 'state', null, null, format('%s, %s', e.state, parley._p_state_name(e.state))
    from ends as e
    union all
    select 9, coalesce(a.xact_start, clock_timestamp()), e.conversation_handle, e.side, 'group locked', null, null,
      case when l.pid is null then 'by a prepared transaction' else format('by session %s (%s)', l.pid, coalesce(a.application_name, 'unknown')) end
    from ends as e
    left join pg_locks as l on l.locktype = 'transactionid' and l.transactionid = e.holder and l.granted
    left join pg_stat_activity as a using (pid)
    where parley._p_is_running(e.holder)
    union all
    select 10, m.due_at, e.conversation_handle, e.side,
      case m.kind when 'timer' then 'timer fires' when 'lifetime' then 'lifetime ends' else 'ends by itself' end, null, null,
      case m.kind when 'abandoned' then 'unless it is ended before, or something is left to read' end
    from ends as e
    join parley._p_alarm as m using (endpoint_id)
    union all
    select 11, t.expires_at, t.conversation_handle, 'target', 'forgotten', null, null, 'closed; remembered until then'
    from parley._p_tombstone as t
    where (conversation in (t.conversation_handle, t.conversation_id, t.conversation_group_id)
        or t.conversation_id in (select e.conversation_id from ends as e))
      and (pg_has_role(v_caller, t.owner, 'usage') or parley._p_is_administrator(v_caller))
  )
  select v.at, v.conversation_handle, v.side, v.event, t.name::text, octet_length(v.body), v.detail
  from events as v
  left join parley._p_message_type as t on t.message_type_id = v.type_id
  order by v.at, v.rank, v.side;
end
$$;

comment on function parley.trace_conversation(uuid, parley.caller) is
'Tells the life of a conversation in order, as far as the database remembers it: begun, received, waiting, delayed and retained messages, failures,
states, who holds its group, timers and ends to come. At most 1,000 waiting messages of each side.
Columns: at; conversation_handle and side, initiator or target; event; message_type_name and body_bytes of a message; detail.
What was received and is not retained is counted at the time when its side was begun.
Arguments: conversation, a handle, a conversation id, or a group, for all conversations in it.
Errors: 229 not allowed, 8426 not found.';

-- sql/542_explain_far_side.sql

-- explain_conversation where the far side is in another database: this one knows what it has sent and what was acknowledged, and asks the operator to
-- look there for the rest (spec 9.3).

create function parley._p_explain_far_side(endpoint parley._p_endpoint, side text)
returns table (step integer, conversation_handle uuid, side_of text, answer text, is_finding boolean, cure text)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_here record;
  v_destination parley._p_destination;
  v_parked parley._p_parked;
  v_transit bigint;
  v_lane bigint;
  v_delayed bigint;
begin
  v_here := parley._p_positions(endpoint.endpoint_id);
  select * into v_destination from parley._p_destination as d where d.destination_id = endpoint.destination_id;
  select * into v_parked from parley._p_parked as p where p.endpoint_id = endpoint.endpoint_id;
  v_transit := (
    select coalesce(sum(t.next_sequence - t.first_sequence), 0) from parley._p_transit as t where t.endpoint_id = endpoint.endpoint_id
  );
  v_lane := (
    select coalesce(sum(coalesce(cardinality(m.frame), 1)), 0) from parley._p_message as m where m.endpoint_id = -endpoint.endpoint_id
  );
  v_delayed := (select count(*) from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id);
  conversation_handle := endpoint.conversation_handle;
  side_of := side;

  step := 1;
  is_finding := false;
  answer := format(
    'It is in state %s (%s) since %s. Its far side is in another database%s. Of its messages, acknowledged there: %s, sent and not acknowledged: %s,'
      || ' waiting to be sent: %s, without a way: %s. Received from there: %s.',
    endpoint.state, parley._p_state_name(endpoint.state), date_trunc('second', endpoint.state_since),
    coalesce(', broker ' || endpoint.far_broker_instance, ''), v_here.given - v_transit, v_transit, v_lane, v_delayed, v_here.expected
  );
  return next;

  step := 2;
  is_finding := true;
  if v_parked.endpoint_id is not null then
    answer := format('The far side cannot take it now, after %s attempts: %s Next attempt: %s.', v_parked.attempts, v_parked.status,
      date_trunc('second', nullif(v_parked.due_at, 'infinity')));
    return next;
  elsif v_destination.status <> '' then
    answer := format('%s cannot be reached since %s, after %s attempts: %s Next attempt: %s.', v_destination.address,
      date_trunc('second', v_destination.failing_since), v_destination.attempts, v_destination.status, date_trunc('second', v_destination.due_at));
    return next;
  elsif v_delayed > 0 then
    answer := (
      select t.transmission_status from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id order by t.transmission_id limit 1
    );
    return next;
  elsif v_transit + v_lane > 0 and not parley._p_is_led() then
    answer := 'No daemon transmits what waits.';
    cure := 'Start one for this database: parley serve --dsn ...';
    return next;
  end if;

  if v_transit + v_lane + v_delayed = 0 and v_here.given > 0 then
    step := 6;
    is_finding := false;
    answer := format(
      'Everything that is committed is with the far side. Whether it was received there, its database tells: select * from'
        || ' parley.explain_conversation(%L);', endpoint.conversation_id
    );
    return next;
  end if;
end
$$;

comment on function parley._p_explain_far_side(parley._p_endpoint, text) is
'Tells where the messages of a conversation with another database are: steps 1, 2 and 6 of explain_conversation.';

-- sql/600_take_runs.sql

-- From the lane of a destination into transit: what the daemon is to transmit next.
--
-- Taking gives each message its number, for good: rows leave the lane and stand in _p_transit under their numbers, in one transaction, which has
-- committed before the daemon sends anything. So a message travels under one number however often it is sent, and a daemon that dies leaves to the
-- next one exactly what it had taken (keeps T2, T5).
-- Order: rows are taken by position. Senders that commit late find their place behind what was taken before; a send that began after another's
-- commit has the higher position and is never taken before it (keeps S19).
-- A row that somebody else holds is being removed by END CONVERSATION, or moved: it is passed by, nobody waits.
-- Locks: the leader's row FOR SHARE; the destination's row, so that takes of one destination come one after the other; rows of the lane SKIP LOCKED.
-- Cost for a row: one deletion and one insertion, whatever it holds; one row of _p_send_progress for a conversation and call. Plans are nested
-- loops over indexes: a plan made while tables were empty must do when they are not.

create type parley._p_run as (
  endpoint_id bigint,
  conversation_id uuid,
  is_initiator boolean,
  first_sequence bigint,
  message_type_name text,
  bodies bytea[],
  body_size bigint,
  from_service text,
  to_service text,
  contract text,
  to_broker uuid,
  priority smallint,
  enqueued_at timestamptz,
  ends_at timestamptz,
  trace_context text,
  owner text,
  is_encrypted boolean
);

comment on type parley._p_run is 'Messages of one conversation with numbers that follow each other, as they travel between brokers; Run in Go.';

create view parley._p_run_in_transit as
select
  t.endpoint_id,
  e.conversation_id,
  e.is_initiator,
  t.first_sequence,
  y.name as message_type_name,
  case
    when t.frame is not null then t.frame
    when octet_length(t.body) > 262144 then '{}'::bytea[]
    else array[t.body]
  end as bodies,
  case when octet_length(t.body) > 262144 then octet_length(t.body) else 0 end::bigint as body_size,
  e.service_name as from_service,
  e.far_service as to_service,
  e.service_contract_name as contract,
  e.far_broker_instance::uuid as to_broker,
  e.priority,
  t.enqueued_at,
  case when e.lifetime < e.begun_at + '68 years'::interval then e.lifetime end as ends_at,
  t.trace_context,
  pg_get_userbyid(e.owner)::text as owner,
  e.is_encrypted,
  t.destination_id
from parley._p_transit as t
join parley._p_endpoint as e on e.endpoint_id = t.endpoint_id
join parley._p_message_type as y on y.message_type_id = abs(t.message_type_id);

comment on view parley._p_run_in_transit is
'Messages in transit as they travel. A body of more than 256 KiB stays behind and goes in fragments, so that nothing has to wait for it.';

create function parley._p_runs(endpoint_ids bigint[], first_sequences bigint[]) returns setof parley._p_run
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
begin
  return query
  select r.endpoint_id, r.conversation_id, r.is_initiator, r.first_sequence, r.message_type_name, r.bodies, r.body_size, r.from_service, r.to_service,
    r.contract, r.to_broker, r.priority, r.enqueued_at, r.ends_at, r.trace_context, r.owner, r.is_encrypted
  from unnest(endpoint_ids, first_sequences) with ordinality as k (endpoint_id, first_sequence, ordinal)
  join parley._p_run_in_transit as r on r.endpoint_id = k.endpoint_id and r.first_sequence = k.first_sequence
  order by k.ordinal;
end
$$;

comment on function parley._p_runs(bigint[], bigint[]) is 'Gives messages in transit as they travel, in the order asked for.';

create function parley._p_take_runs(term bigint, destination_id integer, rows_max integer, bytes_max bigint) returns setof parley._p_run
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  v_destination parley._p_destination;
  v_lanes integer[];
  v_lows bigint[];
  v_endpoints bigint[];
  v_sequences bigint[];
  v_rows integer := rows_max;
  v_count integer;
begin
  if not parley._p_holds_term(term)
    or pg_sequence_last_value('parley._p_broker_switch') is not null
    or not parley._p_is_epoch_current() then
    return;
  end if;
  -- Another take may still be at it, whose client was cut off. Passing by what it holds would number later messages first (keeps S4).
  select * into v_destination
  from parley._p_destination as d
  where d.destination_id = _p_take_runs.destination_id
  for no key update;
  return query select r.* from parley._p_unpark(destination_id, rows_max) as r;
  for v_lanes in select l.lanes from parley._p_lanes_to_take(v_destination) as l loop
    exit when v_rows <= 0;
    v_lows := array(
      select parley._p_low_position(destination_id, l.lane) from unnest(v_lanes) with ordinality as l (lane, number) order by l.number
    );
    continue when array_remove(v_lows, null) = '{}';
    with head as (
      select h.row_id, h.position, h.size
      from unnest(v_lanes, v_lows) as l (lane, low)
      cross join lateral (
        select m.ctid as row_id, m.position, coalesce(octet_length(m.body), pg_column_size(m.frame), 0) + 100 as size
        from parley._p_message as m
        where m.lane = l.lane
          and m.position >= l.low
          and not exists (select from parley._p_unresumed as u where u.endpoint_id = -m.endpoint_id)
          and not exists (select from parley._p_parked as p where p.endpoint_id = -m.endpoint_id and p.due_at < 'infinity')
        order by m.position
        limit v_rows
        for update of m skip locked
      ) as h
      order by h.position
      limit v_rows
    ), fitting as (
      select h.row_id, sum(h.size) over (order by h.position rows unbounded preceding) - h.size as before from head as h
    ), taken as (
      delete from parley._p_message as m
      using fitting as f
      where m.ctid = f.row_id and f.before < bytes_max
      returning m.position, -m.endpoint_id as endpoint_id, m.enqueued_at, m.message_type_id, m.body, m.frame, m.trace_context
    ), counted as (
      -- Joining what was taken with itself would cost its square.
      select t.position, t.endpoint_id, t.enqueued_at, t.message_type_id, t.body, t.frame, t.trace_context, c.count, p.sequence as started,
        coalesce(p.sequence, 0) + sum(c.count) over (partition by t.endpoint_id order by t.position rows unbounded preceding) as after,
        row_number() over (partition by t.endpoint_id order by t.position desc) as ordinal_from_last
      from taken as t
      cross join lateral (select case when t.message_type_id < 0 then 0 else coalesce(cardinality(t.frame), 1) end as count) as c
      left join lateral (
        select s.sequence from parley._p_send_progress as s where s.endpoint_id = t.endpoint_id order by s.sequence desc limit 1
      ) as p on true
    ), gone_on as (
      insert into parley._p_send_progress (endpoint_id, sequence)
      select c.endpoint_id, c.after from counted as c where c.ordinal_from_last = 1 and c.after > coalesce(c.started, 0)
    ), forgotten as (
      delete from parley._p_send_progress as p
      using counted as c
      where c.ordinal_from_last = 1 and c.after > c.started and p.endpoint_id = c.endpoint_id and p.sequence = c.started
    ), kept as (
      insert into parley._p_transit (
        endpoint_id, first_sequence, next_sequence, destination_id, enqueued_at, message_type_id, body, frame, trace_context
      )
      select c.endpoint_id, case when c.count = 0 then 9223372036854775807 else c.after - c.count end,
        case when c.count = 0 then 9223372036854775807 else c.after end, _p_take_runs.destination_id, c.enqueued_at, c.message_type_id, c.body,
        c.frame, c.trace_context
      from counted as c
      order by c.position
    )
    select array_agg(c.endpoint_id order by c.position),
      array_agg(case when c.count = 0 then 9223372036854775807 else c.after - c.count end order by c.position), count(*)
    into v_endpoints, v_sequences, v_count
    from counted as c;
    return query select r.* from parley._p_runs(v_endpoints, v_sequences) as r;
    v_rows := v_rows - v_count;
  end loop;
end
$$;

comment on function parley._p_take_runs(bigint, integer, integer, bigint) is
'Gives the next messages for a destination their numbers and puts them into transit; gives them in the order in which they have to be sent.
Nothing when the term is over, the broker is disabled, or conversations have to be compared with their far sides first.
Arguments: term of the daemon that leads; destination_id; rows_max, rows of the lane, each a message or a frame; bytes_max, bytes of bodies for each
priority, at least one row is taken.
Source: spec 6.9, 6.11.';

create function parley._p_low_position(destination_id integer, lane integer) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_low bigint := coalesce(
    (select h.low_position from parley._p_scan_hint as h where h.lane = _p_low_position.lane order by h.lane desc, h.hint_id desc limit 1), 0
  );
  v_first bigint;
begin
  select m.position into v_first
  from parley._p_message as m
  where m.lane = _p_low_position.lane and m.position >= v_low
  order by m.position
  limit 1;
  if v_first - v_low > 65536 then
    perform parley._p_note_scan(destination_id, lane, v_first, '{}', 0);
  end if;
  -- Not v_first: a sender that commits before the lane is looked at again may have positions on both sides of it (keeps S4).
  return case when v_first is not null then v_low end;
end
$$;

comment on function parley._p_low_position(integer, integer) is
'Gives a position on a lane of a destination before which nothing is left, null when the lane is empty, and notes a better one now and then.';

create function parley._p_lanes_to_take(destination parley._p_destination) returns table (lanes integer[])
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is_honored boolean;
  v_direction integer;
begin
  -- The usual case needs no query: one priority, 5.
  if destination.priorities = 32 then
    lanes := array[parley._p_lane(destination.destination_id, 5)];
    return next;
    return;
  end if;
  v_is_honored := (select b.is_priority_honored from parley._p_broker as b);
  -- One call of eight begins at the other end, so that low priorities get out under any load.
  v_direction := case when extract(microseconds from clock_timestamp())::bigint % 8 = 0 then -1 else 1 end;
  return query
  -- Lanes stand from priority 10 down to 1.
  select array_agg(l.lane)
  from (
    select parley._p_lane(destination.destination_id, p.priority) as lane
    from generate_series(1, 10) as p (priority)
    where destination.priorities & (1 << p.priority) <> 0
  ) as l
  group by case when v_is_honored then l.lane * v_direction end
  order by case when v_is_honored then l.lane * v_direction end;
end
$$;

comment on function parley._p_lanes_to_take(parley._p_destination) is
'Gives the lanes of a destination in the order in which to take from them: by priority when that is honored, otherwise all as one.
Source: spec 6.11.';

create function parley._p_unacknowledged_runs(
  destination_id integer, after_endpoint bigint, after_sequence bigint, rows_max integer, bytes_max bigint
) returns setof parley._p_run
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  -- Nobody takes what belongs to an endpoint that is gone.
  delete from parley._p_transit as t
  where t.destination_id = _p_unacknowledged_runs.destination_id
    and after_endpoint = 0
    and not exists (select from parley._p_endpoint as e where e.endpoint_id = t.endpoint_id);
  return query
  with next as (
    select t.endpoint_id, t.first_sequence, coalesce(octet_length(t.body), pg_column_size(t.frame), 0) + 100 as size
    from parley._p_transit as t
    where t.destination_id = _p_unacknowledged_runs.destination_id
      and (t.endpoint_id, t.first_sequence) > (after_endpoint, after_sequence)
      and not exists (select from parley._p_unresumed as u where u.endpoint_id = t.endpoint_id)
      and not exists (select from parley._p_parked as p where p.endpoint_id = t.endpoint_id and p.due_at < 'infinity')
    order by t.endpoint_id, t.first_sequence
    limit rows_max
  ), fitting as (
    select n.endpoint_id, n.first_sequence,
      sum(n.size) over (order by n.endpoint_id, n.first_sequence rows unbounded preceding) - n.size as before
    from next as n
  ), chosen as (
    select array_agg(f.endpoint_id order by f.endpoint_id, f.first_sequence) as endpoint_ids,
      array_agg(f.first_sequence order by f.endpoint_id, f.first_sequence) as first_sequences
    from fitting as f
    where f.before < bytes_max
  )
  select r.* from chosen as c cross join lateral parley._p_runs(c.endpoint_ids, c.first_sequences) as r;
end
$$;

comment on function parley._p_unacknowledged_runs(integer, bigint, bigint, integer, bigint) is
'Gives what is in transit to a destination and not acknowledged, in the order of conversation and number: a daemon that begins sends it again.
Arguments: destination_id; after_endpoint and after_sequence, the endpoint_id and first_sequence of the last one seen, 0 and -1 to begin; rows_max;
bytes_max.';

create function parley._p_read_body_part(endpoint_id bigint, sequence bigint, first_byte bigint, bytes integer) returns bytea
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select substr(t.body, $3::integer + 1, $4)
  from parley._p_transit as t
  where t.endpoint_id = $1 and t.first_sequence = $2
$$;

comment on function parley._p_read_body_part(bigint, bigint, bigint, integer) is
'Gives a part of a large body in transit; null when it has been acknowledged.
Arguments: endpoint_id and sequence of the message; first_byte, from 0; bytes.';

-- sql/601_parked.sql

-- Conversations that the far side cannot take from for now, while its server is well.
--
-- Its queue is off, it does not know the service, nobody there is served by that name: such a conversation is put aside, so that the others go on
-- and nothing of it is sent in vain. It leaves the lane, and what it sends from then on waits in _p_transmission. When its time has come it is
-- classified again, which may find another route, and what it had in transit is sent again first.
-- Locks: the endpoint's row FOR UPDATE SKIP LOCKED. When somebody is just sending, the lane is left as it is and passed over until the next time.

create function parley._p_park(endpoint_id bigint, destination_id integer, status text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  -- It may have moved; the daemon looks again.
  delete from parley._p_neighbour_service as n
  using parley._p_endpoint as e, parley._p_destination as d
  where e.endpoint_id = _p_park.endpoint_id
    and d.destination_id = _p_park.destination_id
    and n.service_name = e.far_service
    and n.address = d.address;
  insert into parley._p_parked as p (endpoint_id, destination_id, status, attempts, due_at)
  values (_p_park.endpoint_id, _p_park.destination_id, _p_park.status, 1, clock_timestamp() + parley._p_back_off(1))
  on conflict on constraint _p_parked_pkey do update
  set status = excluded.status, attempts = p.attempts + 1, due_at = clock_timestamp() + parley._p_back_off(p.attempts + 1);
  select * into v_endpoint
  from parley._p_endpoint as e
  where e.endpoint_id = _p_park.endpoint_id and e.destination_id is not null
  for update skip locked;
  if found then
    perform parley._p_unbind(v_endpoint, status);
  end if;
end
$$;

comment on function parley._p_park(bigint, integer, text) is
'Puts a conversation aside for 4 to 64 seconds, longer each time, with the reason.
Arguments: endpoint_id; destination_id that it had; status, for the transmission queue.';

create function parley._p_unpark(destination_id integer, rows_max integer) returns setof parley._p_run
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parked parley._p_parked;
  v_endpoint parley._p_endpoint;
begin
  for v_parked in
    select p.*
    from parley._p_parked as p
    where p.destination_id = _p_unpark.destination_id and p.due_at <= clock_timestamp()
    order by p.due_at
    limit 100
    for update skip locked
  loop
    select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = v_parked.endpoint_id for update skip locked;
    if not found then
      update parley._p_parked as p set due_at = clock_timestamp() + interval '1 second' where p.endpoint_id = v_parked.endpoint_id;
      continue;
    end if;
    if v_endpoint.destination_id is null and parley._p_is_at_home(v_endpoint) then
      -- Before anything of it is sent again. When it cannot come back it goes on below.
      perform parley._p_deliver_delayed_of(v_endpoint.endpoint_id);
      continue when not exists (select from parley._p_parked as p where p.endpoint_id = v_parked.endpoint_id);
    end if;
    -- Its row stays, for the count of attempts, until the far side has taken something.
    update parley._p_parked as p set due_at = 'infinity' where p.endpoint_id = v_parked.endpoint_id;
    if v_endpoint.destination_id is null then
      perform parley._p_bind(v_endpoint);
    end if;
    update parley._p_transit as t
    set destination_id = e.destination_id
    from parley._p_endpoint as e
    where e.endpoint_id = v_parked.endpoint_id
      and t.endpoint_id = e.endpoint_id
      and e.destination_id is not null
      and t.destination_id <> e.destination_id;
    return query
    select r.*
    from (
      select array_agg(o.endpoint_id order by o.first_sequence) as endpoint_ids, array_agg(o.first_sequence order by o.first_sequence) as sequences
      from (
        select t.endpoint_id, t.first_sequence
        from parley._p_transit as t
        where t.endpoint_id = v_parked.endpoint_id and t.destination_id = _p_unpark.destination_id
        order by t.first_sequence
        limit rows_max
      ) as o
    ) as c
    cross join lateral parley._p_runs(c.endpoint_ids, c.sequences) as r;
  end loop;
end
$$;

comment on function parley._p_unpark(integer, integer) is
'Lets conversations of a destination that were put aside try again when their time has come; gives what they have in transit.';

-- sql/603_acknowledge.sql

-- What the far side has said to what was sent.
--
-- An acknowledgement is cumulative: everything numbered below next_sequence is with the far side, durably. It is deleted here, and
-- never before (keeps T2). Answers may come late, twice, or in another order than the questions: each of them only ever confirms less than is true.
-- That a side has lost history shows when one has, or expects, a number that the other never gave, or has forgotten already; a number that seems
-- forgotten may just be an old answer, so it counts only for a run that was sent while nothing else of its conversation was under way (is_alone).
-- Locks: the leader's row FOR SHARE; rows of _p_transit; endpoints FOR UPDATE SKIP LOCKED when their state changes. What is locked by somebody
-- else is done at the next occasion: the conversation is parked for some seconds, or an alarm removes it.

create function parley._p_acknowledge(
  term bigint, endpoint_ids bigint[], first_sequences bigint[], are_alone boolean[], are_probes boolean[], outcomes text[], next_sequences bigint[],
  error_numbers integer[], descriptions text[], brokers uuid[], epochs bigint[]
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  v_impossible bigint[];
  v_unbound bigint[];
  v_answer record;
begin
  if not parley._p_holds_term(term) then
    return false;
  end if;
  -- Nobody has what was never given: this side has gone back without noticing, and what it sends anew counts as a duplicate there. Or it is a lie.
  v_impossible := array(
    select e.endpoint_id
    from unnest(endpoint_ids, first_sequences, outcomes, next_sequences, brokers, epochs)
      as a (endpoint_id, first_sequence, outcome, next_sequence, broker, epoch)
    join parley._p_endpoint as e on e.endpoint_id = a.endpoint_id
    where a.outcome = 'accepted' and a.first_sequence < 9223372036854775807 and e.far_endpoint_id < 0
      and a.next_sequence > coalesce(
        (select p.sequence from parley._p_send_progress as p where p.endpoint_id = a.endpoint_id order by p.sequence desc limit 1), 0
      )
      and not exists (select from parley._p_known_broker as k where k.broker_instance = a.broker and k.epoch > a.epoch)
    group by e.endpoint_id
    order by e.endpoint_id
  );
  delete from parley._p_unresumed as u
  using unnest(endpoint_ids, are_probes, outcomes) as a (endpoint_id, is_probe, outcome)
  where u.endpoint_id = a.endpoint_id and a.is_probe and a.outcome in ('accepted', 'refused', 'gone');
  delete from parley._p_transit as t
  using (
    select a.endpoint_id, min(a.first_sequence) as first_sequence, max(a.next_sequence) as next_sequence
    from unnest(endpoint_ids, first_sequences, outcomes, next_sequences, brokers, epochs)
      as a (endpoint_id, first_sequence, outcome, next_sequence, broker, epoch)
    where a.outcome = 'accepted' and a.endpoint_id <> all (v_impossible)
      and not exists (select from parley._p_known_broker as k where k.broker_instance = a.broker and k.epoch > a.epoch)
    group by a.endpoint_id
  ) as o
  where t.endpoint_id = o.endpoint_id and t.first_sequence >= o.first_sequence and t.next_sequence <= o.next_sequence;
  -- What waits for its time is not what was accepted: it may have been put aside, or have got another address, since it was sent.
  delete from parley._p_parked as p
  using unnest(endpoint_ids, outcomes) as a (endpoint_id, outcome)
  where p.endpoint_id = a.endpoint_id and a.outcome = 'accepted' and p.due_at = 'infinity';
  if cardinality(v_impossible) > 0 then
    perform parley._p_disbelieve(v_impossible);
  end if;
  -- The first answer says which instance has the conversation; it stays with that one (spec 6.5).
  v_unbound := array(
    select e.endpoint_id
    from parley._p_endpoint as e
    where e.endpoint_id = any (endpoint_ids) and e.far_broker_instance is null and e.far_endpoint_id < 0
    for no key update skip locked
  );
  if cardinality(v_unbound) > 0 then
    update parley._p_endpoint as e
    set far_broker_instance = a.broker::text
    from unnest(endpoint_ids, outcomes, brokers) as a (endpoint_id, outcome, broker)
    where e.endpoint_id = any (v_unbound) and a.endpoint_id = e.endpoint_id and a.outcome = 'accepted' and a.broker is not null;
  end if;
  -- The end of a conversation has arrived.
  for v_answer in
    select e.endpoint_id
    from parley._p_endpoint as e
    where e.endpoint_id = any (endpoint_ids) and e.state = 'DO' and e.far_endpoint_id < 0
    order by e.endpoint_id
  loop
    perform parley._p_close_when_told(v_answer.endpoint_id);
  end loop;
  for v_answer in
    select a.endpoint_id, a.first_sequence, a.is_alone, a.outcome, a.next_sequence, a.error_number, a.description
    from unnest(endpoint_ids, first_sequences, are_alone, outcomes, next_sequences, error_numbers, descriptions)
      as a (endpoint_id, first_sequence, is_alone, outcome, next_sequence, error_number, description)
    where a.outcome in ('expected', 'held', 'refused', 'gone', 'unroutable')
  loop
    perform parley._p_answer(
      v_answer.endpoint_id, v_answer.first_sequence, v_answer.is_alone, v_answer.outcome, v_answer.next_sequence, v_answer.error_number,
      v_answer.description
    );
  end loop;
  return true;
end
$$;

comment on function parley._p_acknowledge(bigint, bigint[], bigint[], boolean[], boolean[], text[], bigint[], integer[], text[], uuid[], bigint[]) is
'Takes in what the far side has answered to runs: deletes what it has, binds conversations to the instance that has answered, ends those whose end has
arrived, breaks those that were refused, puts aside those that cannot be taken now. False when the term is over.
Arguments: term; for each run its endpoint_id, first_sequence, whether nothing else of its conversation was under way, whether it was a probe, and the
fields of its Result.';

create function parley._p_disbelieve(endpoint_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_locked bigint[];
begin
  v_locked := array(
    select e.endpoint_id from parley._p_endpoint as e where e.endpoint_id = any (endpoint_ids) order by e.endpoint_id for update skip locked
  );
  perform parley._p_break_lost(l.endpoint_id, 'this side') from unnest(v_locked) as l (endpoint_id);
  -- Of those that somebody holds nothing is forgotten; asking again brings the same answer.
  perform parley._p_park(e.endpoint_id, e.destination_id, 'The other side has acknowledged what was never sent.')
  from parley._p_endpoint as e
  where e.endpoint_id = any (endpoint_ids) and e.endpoint_id <> all (v_locked) and e.destination_id is not null;
end
$$;

comment on function parley._p_disbelieve(bigint[]) is
'Ends conversations whose far side has acknowledged numbers that were never given, with an Error on both sides.
Arguments: endpoint_ids.
Source: reliability T2, F2.';

create function parley._p_close_when_told(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_close_when_told.endpoint_id;
  if v_endpoint.state = 'DO'
    and not exists (select from parley._p_transit as t where t.endpoint_id = v_endpoint.endpoint_id)
    and not exists (select from parley._p_message as m where m.endpoint_id = -v_endpoint.endpoint_id)
    and not exists (select from parley._p_transmission as t where t.endpoint_id = v_endpoint.endpoint_id) then
    perform from parley._p_endpoint as e where e.endpoint_id = v_endpoint.endpoint_id for update skip locked;
    if found then
      perform parley._p_remove_endpoint(v_endpoint);
    else
      -- Nobody will be told anything any more, so nothing else would come back to it.
      perform parley._p_set_alarm(v_endpoint.endpoint_id, 'abandoned', clock_timestamp());
    end if;
  end if;
end
$$;

comment on function parley._p_close_when_told(bigint) is
'Removes a side that has ended when the far side in another database has taken all that it had to say; a little later when somebody holds it.';

create function parley._p_answer(
  endpoint_id bigint, first_sequence bigint, is_alone boolean, outcome text, next_sequence bigint, error_number integer, description text
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_given bigint;
  v_kept bigint;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_answer.endpoint_id for update skip locked;
  if not found then
    if exists (select from parley._p_endpoint as e where e.endpoint_id = _p_answer.endpoint_id) then
      -- Somebody sends or ends just now. Asking again brings the same answer.
      if outcome <> 'expected' and not (outcome = 'held' and error_number = 0) then
        perform parley._p_park(e.endpoint_id, e.destination_id, description)
        from parley._p_endpoint as e
        where e.endpoint_id = _p_answer.endpoint_id and e.destination_id is not null;
      end if;
    else
      perform parley._p_forget_far_side(endpoint_id);
    end if;
    return;
  end if;
  if v_endpoint.far_endpoint_id is null or v_endpoint.far_endpoint_id > 0 then
    -- It has come back since; what was said of it elsewhere is no answer any more.
    return;
  end if;
  v_given := coalesce(
    (select p.sequence from parley._p_send_progress as p where p.endpoint_id = v_endpoint.endpoint_id order by p.sequence desc limit 1), 0
  );
  v_kept := coalesce((select min(t.first_sequence) from parley._p_transit as t where t.endpoint_id = v_endpoint.endpoint_id), v_given);
  case
    when outcome = 'expected' and next_sequence > v_given then
      perform parley._p_break_lost(v_endpoint.endpoint_id, 'this side');
    when outcome = 'expected' and is_alone and next_sequence < least(v_kept, first_sequence) then
      if next_sequence = 0 then
        perform parley._p_end_refused(v_endpoint, 8462, 'The other side of the conversation no longer exists.');
      else
        perform parley._p_break_lost(v_endpoint.endpoint_id, 'the other side');
      end if;
    when outcome in ('held', 'unroutable') and error_number is distinct from 0 and v_endpoint.destination_id is not null then
      perform parley._p_park(v_endpoint.endpoint_id, v_endpoint.destination_id, description);
    when outcome in ('held', 'unroutable') and error_number is distinct from 0 and parley._p_is_at_home(v_endpoint) then
      -- It was sent once more before its way was found, and that leads here now.
      perform parley._p_park(v_endpoint.endpoint_id, p.destination_id, description)
      from parley._p_parked as p where p.endpoint_id = v_endpoint.endpoint_id;
      perform parley._p_deliver_delayed_of(v_endpoint.endpoint_id);
    when outcome = 'refused' then
      perform parley._p_end_refused(v_endpoint, error_number, description);
    when outcome = 'gone' then
      perform parley._p_end_refused(v_endpoint, 8462, coalesce(description, 'The other side of the conversation no longer exists.'));
    else
      null;
  end case;
end
$$;

comment on function parley._p_answer(bigint, bigint, boolean, text, bigint, integer, text) is
'Takes in one answer other than that a run was accepted. Held with error number 0 means busy: the daemon just tries again.
Source: spec 6.10; reliability F2.';

create function parley._p_end_refused(endpoint parley._p_endpoint, error_number integer, description text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  case
    when endpoint.state = 'DO' then
      perform parley._p_remove_endpoint(endpoint);
    when endpoint.state in ('DI', 'ER') then
      perform parley._p_hold_outgoing(endpoint, 'The conversation has ended: the message is held until END CONVERSATION.');
      -- There is nobody to tell of an error any more.
      delete from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id and t.message_type_id = -1;
    else
      perform parley._p_break_conversations(array[endpoint.endpoint_id], error_number, description);
  end case;
end
$$;

comment on function parley._p_end_refused(parley._p_endpoint, integer, text) is
'Ends a conversation whose far side in another database does not take part in it, with an Error message; one that has ended anyway just goes.
The caller holds the row FOR UPDATE.';

create function parley._p_break_lost(endpoint_id bigint, whose text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_text text := 'Messages of this conversation were lost: the database of one side goes on from an older state.';
  v_endpoint parley._p_endpoint;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_break_lost.endpoint_id;
  if v_endpoint.state = 'DO' then
    -- It does not want to know; the other side does.
    perform parley._p_drop_outgoing(v_endpoint);
    perform parley._p_tell_far(v_endpoint.endpoint_id, -1, parley._p_error_body(case whose when 'this side' then -9720 else -9719 end, v_text));
  else
    perform parley._p_break_conversations(
      array[endpoint_id], case whose when 'this side' then 9719 else 9720 end, v_text, case whose when 'this side' then 9720 else 9719 end
    );
  end if;
end
$$;

comment on function parley._p_break_lost(bigint, text) is
'Ends a conversation of which one side has lost messages, with an Error on both sides: nothing is skipped or repeated in silence.
Arguments: endpoint_id, whose row the caller holds; whose, "this side" or "the other side".
Source: reliability F2; spec 9.1 for the codes.';

-- sql/604_destination_statements.sql

-- What the daemon asks about destinations and tells of them.

create function parley._p_destinations() returns table (
  destination_id integer, address text, due_ms double precision, attempts integer, has_probes boolean
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
begin
  return query
  select d.destination_id, d.address::text, coalesce(greatest(extract(epoch from d.due_at - clock_timestamp()) * 1000, 0), 0)::double precision, d.attempts,
    d.destination_id in (select e.destination_id from parley._p_unresumed as u join parley._p_endpoint as e using (endpoint_id))
  from parley._p_destination as d
  where exists (
      select
      from generate_series(1, 10) as p (priority)
      where d.priorities & (1 << p.priority) <> 0
        and exists (
          select
          from parley._p_message as m
          where m.lane = parley._p_lane(d.destination_id, p.priority)
            and m.position >= coalesce(
              (
                select h.low_position
                from parley._p_scan_hint as h
                where h.lane = parley._p_lane(d.destination_id, p.priority)
                order by h.lane desc, h.hint_id desc
                limit 1
              ), 0
            )
        )
    )
    or exists (select from parley._p_parked as k where k.destination_id = d.destination_id and k.due_at <= clock_timestamp())
    or exists (
      select
      from parley._p_transit as t
      where t.destination_id = d.destination_id
        and not exists (
          select from parley._p_parked as k where k.endpoint_id = t.endpoint_id and k.due_at > clock_timestamp() and k.due_at < 'infinity'
        )
    )
    or d.destination_id in (select e.destination_id from parley._p_unresumed as u join parley._p_endpoint as e using (endpoint_id));
end
$$;

comment on function parley._p_destinations() is
'Gives the destinations for which something waits or is in transit, in how many milliseconds the next attempt is due, and whether conversations have
to be compared with their far sides first.';

create function parley._p_report_attempt(term bigint, destination_id integer, failure text) returns double precision
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_due double precision;
begin
  if not parley._p_holds_term(term) then
    return null;
  elsif coalesce(failure, '') = '' then
    update parley._p_destination as d
    set attempts = 0, status = '', failing_since = null, attempted_at = clock_timestamp(), due_at = null
    where d.destination_id = _p_report_attempt.destination_id and (d.attempts > 0 or d.status <> '');
    return 0;
  end if;
  update parley._p_destination as d
  set attempts = d.attempts + 1, status = failure, failing_since = coalesce(d.failing_since, clock_timestamp()), attempted_at = clock_timestamp(),
    due_at = clock_timestamp() + parley._p_back_off(d.attempts + 1)
  where d.destination_id = _p_report_attempt.destination_id
  returning extract(epoch from d.due_at - clock_timestamp()) * 1000 into v_due;
  return v_due;
end
$$;

comment on function parley._p_report_attempt(bigint, integer, text) is
'Notes that a destination could not be reached, and gives in how many milliseconds to try again; or, with an empty failure, that it has answered.
Null when the term is over.
Arguments: term; destination_id; failure, the text that the transmission queue shows.
Source: spec 6.9, 6.12.';

create function parley._p_unresolved(top integer) returns table (endpoint_id bigint, conversation_id uuid, to_service text, to_broker uuid)
language sql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  select e.endpoint_id, e.conversation_id, e.far_service, r.broker_instance::uuid
  from parley._p_endpoint as e
  cross join lateral parley._p_find_route(e.far_service, e.far_broker_instance, e.conversation_id) as r
  where e.endpoint_id in (
      select t.endpoint_id
      from parley._p_transmission as t
      join parley._p_endpoint as o using (endpoint_id)
      where o.state not in ('DI', 'ER') or t.message_type_id = -1
      union
      -- All that was sent may have its number already, and be put aside.
      select t.endpoint_id
      from parley._p_transit as t
      where not exists (select from parley._p_parked as p where p.endpoint_id = t.endpoint_id and p.due_at < 'infinity')
    )
    and e.destination_id is null
    and (e.far_endpoint_id is null or e.far_endpoint_id < 0)
    and pg_sequence_last_value('parley._p_broker_switch') is null
    and r.address = 'LOCAL'
    and r.status is not null
  limit top
$$;

comment on function parley._p_unresolved(integer) is
'Gives conversations whose route says LOCAL, though this database does not have the service: the daemon may know another one that does (spec 6.4).
Arguments: top, how many at most.';

create function parley._p_bind_conversations(term bigint, endpoint_ids bigint[], address text, status text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set lock_timeout = '100ms'
as $$
declare
  v_id bigint;
  v_endpoint parley._p_endpoint;
  v_route record;
  v_address text;
  v_status text;
begin
  if not parley._p_holds_term(term) then
    return false;
  end if;
  if coalesce(address, '') <> '' then
    insert into parley._p_neighbour_service (service_name, address)
    select distinct e.far_service, _p_bind_conversations.address from parley._p_endpoint as e where e.endpoint_id = any (endpoint_ids)
    on conflict do nothing;
  end if;
  foreach v_id in array endpoint_ids loop
    begin
      -- A sender is waited for, but not for long: the others wait for us.
      select * into v_endpoint
      from parley._p_endpoint as e
      where e.endpoint_id = v_id and e.destination_id is null and (e.far_endpoint_id is null or e.far_endpoint_id < 0)
      for no key update;
      continue when not found;
      v_address := nullif(address, '');
      if v_address is null then
        v_route := parley._p_look_for_route(v_endpoint.far_service, v_endpoint.far_broker_instance, v_endpoint.conversation_id, false);
        v_address := v_route.otherwise;
      end if;
      if v_address is not null then
        perform parley._p_bind_to(v_id, v_address);
        -- What was in transit when it was put aside is due, be it at the same address, unless it waits for its time.
        update parley._p_parked as p
        set destination_id = e.destination_id, due_at = case when p.due_at = 'infinity' then clock_timestamp() else p.due_at end
        from parley._p_endpoint as e
        where p.endpoint_id = v_id and e.endpoint_id = v_id and exists (select from parley._p_transit as t where t.endpoint_id = v_id);
      else
        v_status := coalesce(nullif(status, ''), v_route.status, '');
        update parley._p_transmission as t set transmission_status = v_status where t.endpoint_id = v_id and t.transmission_status <> v_status;
      end if;
    exception
      when lock_not_available then
        null;
    end;
  end loop;
  return true;
end
$$;

comment on function parley._p_bind_conversations(bigint, bigint[], text, text) is
'Binds conversations that have no destination yet to one, and remembers that their services are there; or notes why there is none. One that somebody
else holds is left for the next time. False when the term is over.
Without an address they go where their routes lead when LOCAL is not to be had (spec 6.3), if anywhere.
Arguments: term; endpoint_ids; address, broker:GUID, or empty; status, for the transmission queue, or empty for what the routes say.';

create function parley._p_arm_transmission(seconds integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform setval('parley._p_transmission_doorbell', case when seconds > 0 then extract(epoch from clock_timestamp())::bigint + seconds else 0 end);
end
$$;

comment on function parley._p_arm_transmission(integer) is
'Asks whoever sends to another database to notify channel parley, with the id of the destination, or "unresolved". 0 seconds end it.';

create function parley._p_reroute(service_name text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  for v_endpoint in
    select e.*
    from parley._p_endpoint as e
    left join parley._p_parked as p on p.endpoint_id = e.endpoint_id and e.destination_id is null
    join parley._p_destination as d on d.destination_id = coalesce(e.destination_id, p.destination_id)
    cross join lateral parley._p_look_for_route(e.far_service, e.far_broker_instance, e.conversation_id, false) as r
    where (_p_reroute.service_name is null or e.far_service = _p_reroute.service_name)
      and e.state in ('CO', 'DO')
      -- To another database of the daemon it went by LOCAL.
      and case
        when d.address like 'broker:%' then r.address is distinct from 'LOCAL'
        else d.address not in (coalesce(r.address, ''), coalesce(r.otherwise, ''))
      end
    order by e.endpoint_id
    for update of e
  loop
    if v_endpoint.destination_id is not null then
      perform parley._p_unbind(v_endpoint, '');
    end if;
    delete from parley._p_parked as p where p.endpoint_id = v_endpoint.endpoint_id;
    select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = v_endpoint.endpoint_id;
    perform parley._p_bind(v_endpoint);
  end loop;
  perform pg_notify('parley', 'routes');
end
$$;

comment on function parley._p_reroute(text) is
'Takes conversations with other databases to where their routes lead now: to another address with all that is not acknowledged, or, without a route, to
wait for one. Waits for senders.
Arguments: service_name, only those with this far side (null: all).
Source: spec 6.2, 6.5.';

create function parley.honor_broker_priority(
  is_honored boolean,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  perform parley._p_require_administrator(v_caller, 'HONOR_BROKER_PRIORITY');
  update parley._p_broker as b set is_priority_honored = coalesce(is_honored, false);
end
$$;

comment on function parley.honor_broker_priority(boolean, parley.caller) is
'Lets priorities govern in which order messages leave for other databases, or not, as when it is new. RECEIVE follows them in any case.
Arguments: is_honored.
Errors: 15151 not an administrator.
Source: spec 6.11, HONOR_BROKER_PRIORITY.';

-- sql/610_accept_runs.sql

-- Messages that come from other databases.
--
-- One transaction for a batch; the answer leaves after its commit. What is in the database decides, never the connection: a run is taken when it begins
-- at the number that its endpoint expects, whatever came before it over whichever link, and is answered with the next number otherwise. So a run
-- may come any number of times, in any order, from two daemons at once, and has the effect of one (keeps S3, S4, T4, T5).
-- Nobody is waited for: an endpoint that somebody else holds (another link delivers, END is under way) is answered "held", and the others go on.
-- Locks: the row of the speaking broker FOR SHARE; endpoints FOR NO KEY UPDATE SKIP LOCKED by endpoint_id, so a local sender and a reader
-- are not disturbed; FOR UPDATE SKIP LOCKED when the state changes, because what this side has not sent yet is held then.
-- Cost of a run to an open conversation: one endpoint locked, one row inserted, one row of progress inserted and one deleted, in one statement for all.
-- Whatever is unusual goes through 611_accept_run.sql, one by one.

create function parley._p_accept_runs(
  broker_instance uuid, epoch bigint, term bigint, token uuid,
  conversation_ids uuid[], from_initiators boolean[], first_sequences bigint[], message_types text[], body_counts integer[], body_sizes bigint[],
  bodies bytea[], from_services text[], to_services text[], contracts text[], to_brokers uuid[], ends_at timestamptz[], trace_contexts text[],
  identities text[], are_encrypted boolean[], probes_given bigint[], probes_expected bigint[], sealed_at timestamptz[]
) returns table (ordinal integer, outcome text, next_sequence bigint, error_number integer, description text)
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  -- Who may not speak for a broker must not shut out the one who does.
  v_barred text := parley._p_refusal_of_speaker(identities, broker_instance, epoch);
  v_refusal text := case when v_barred is null then parley._p_hear(
    broker_instance, epoch, term, token, array_to_string(identities, ' ') !~ 'peer:'
  ) end;
  v_locked bigint[];
  v_taken integer[];
  v_next bigint[];
  v_starts integer[];
  v_framed bigint;
begin
  if array_position(bodies, '') is not null then
    bodies := array_replace(bodies, '', null);
  end if;
  if v_barred is not null then
    return query
    select r.ordinal, 'held'::text, 0::bigint, substring(v_barred from '^\d+')::integer, substr(v_barred, 8)
    from generate_subscripts(conversation_ids, 1) as r (ordinal);
    return;
  elsif v_refusal is not null then
    return query select r.ordinal, 'superseded'::text, 0::bigint, 9772, v_refusal from generate_subscripts(conversation_ids, 1) as r (ordinal);
    return;
  elsif pg_sequence_last_value('parley._p_broker_switch') is not null then
    return query
    select r.ordinal, 'held'::text, 0::bigint, 28012, 'The broker is disabled in the target database.'::text
    from generate_subscripts(conversation_ids, 1) as r (ordinal);
    return;
  end if;
  v_locked := array(
    select e.endpoint_id
    from parley._p_endpoint as e
    where (e.conversation_id, e.is_initiator) in (
        select r.conversation_id, not r.from_initiator from unnest(conversation_ids, from_initiators) as r (conversation_id, from_initiator)
      )
    order by e.endpoint_id
    for no key update skip locked
  );
  -- The first body of each run.
  v_starts := array(
    select coalesce(sum(c.count) over (order by c.number rows between unbounded preceding and 1 preceding), 0)::integer + 1
    from unnest(body_counts) with ordinality as c (count, number)
    order by c.number
  );
  -- A new statement, so that it sees what whoever held the endpoints before has done.
  with run as (
    select r.ordinal, r.conversation_id, r.from_initiator, r.first_sequence, r.message_type, r.count, r.trace_context, r.start
    from unnest(conversation_ids, from_initiators, first_sequences, message_types, body_counts, body_sizes, trace_contexts, v_starts)
      with ordinality as r (conversation_id, from_initiator, first_sequence, message_type, count, size, trace_context, start, ordinal)
    where r.size = 0 and r.count > 0
  ), place as (
    select r.ordinal, r.first_sequence, r.count, r.trace_context, r.start, e.endpoint_id, e.priority, q.queue_id, q.position_sequence, q.doorbell_sequence,
      t.message_type_id, coalesce(p.sequence, 0) as expected, r.first_sequence + r.count as after
    from run as r
    join parley._p_endpoint as e
      on e.conversation_id = r.conversation_id
      and e.is_initiator = not r.from_initiator
      and e.endpoint_id = any (v_locked)
      and e.state = 'CO'
      and e.far_endpoint_id < 0
      and e.far_broker_instance = _p_accept_runs.broker_instance::text
      and not exists (select from parley._p_unresumed as w where w.endpoint_id = e.endpoint_id)
    join parley._p_service as s on s.service_id = e.service_id
    join parley._p_queue as q on q.queue_id = s.queue_id and q.is_enqueue_enabled
    join parley._p_message_type as t on t.name = r.message_type and t.validation = 'N'
    join parley._p_contract_message_type as u
      on u.service_contract_id = e.service_contract_id
      and u.message_type_id = t.message_type_id
      and case when r.from_initiator then u.is_sent_by_initiator else u.is_sent_by_target end
    left join lateral (
      select o.sequence from parley._p_accept_progress as o where o.endpoint_id = e.endpoint_id order by o.sequence desc limit 1
    ) as p on true
  ), chained as (
    -- A run is taken when it, and all of its conversation before it in this batch, follows without a hole.
    select c.*, bool_and(c.first_sequence <= c.next) over (partition by c.endpoint_id order by c.ordinal rows unbounded preceding) as is_taken
    from (
      select p.*,
        greatest(
          p.expected, coalesce(max(p.after) over (partition by p.endpoint_id order by p.ordinal rows between unbounded preceding and 1 preceding), 0)
        ) as next
      from place as p
    ) as c
  ), taken as (
    select c.*, greatest(c.next - c.first_sequence, 0)::integer as skipped from chained as c where c.is_taken
  ), inserted as (
    insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body, frame, trace_context)
    select nextval(o.position_sequence) * 1024, o.endpoint_id, clock_timestamp(), parley._p_lane(o.queue_id, o.priority), o.message_type_id,
      case when o.count - o.skipped = 1 then bodies[o.start + o.skipped] end,
      -- Slicing walks the array from its start; a daemon sends some thousand bodies at once at most.
      case when o.count - o.skipped > 1 then bodies[o.start + o.skipped : o.start + o.count - 1] end,
      -- Daemons say nothing with an empty text.
      nullif(o.trace_context, '')
    from (
      select k.position_sequence, k.endpoint_id, k.queue_id, k.priority, k.message_type_id, k.trace_context, k.count, k.skipped, k.start
      from taken as k
      where k.skipped < k.count
      order by k.ordinal
    ) as o
  ), moved as (
    select k.endpoint_id, k.expected, max(k.after) as after from taken as k group by k.endpoint_id, k.expected having max(k.after) > k.expected
  ), gone_on as (
    insert into parley._p_accept_progress (endpoint_id, sequence) select m.endpoint_id, m.after from moved as m
  ), forgotten as (
    delete from parley._p_accept_progress as p using moved as m where p.endpoint_id = m.endpoint_id and p.sequence = m.expected
  ), rung as (
    select parley._p_ring(d.queue_id, d.doorbell_sequence) from (select distinct k.queue_id, k.doorbell_sequence from taken as k) as d
  )
  select array_agg(k.ordinal::integer order by k.ordinal), array_agg(greatest(k.next, k.after) order by k.ordinal),
    sum(greatest(k.count - k.skipped - 1, 0))
  into v_taken, v_next, v_framed
  from taken as k
  -- An outer join would be left out by the planner, and nobody be woken.
  cross join (select count(*) from rung) as r;
  if v_framed > 0 then
    perform parley._p_count_framed(v_framed);
  end if;
  return query
  select k.ordinal, 'accepted'::text, k.next, null::integer, null::text from unnest(v_taken, v_next) as k (ordinal, next);
  for ordinal in
    select r.ordinal from generate_subscripts(conversation_ids, 1) as r (ordinal) where r.ordinal <> all (coalesce(v_taken, '{}')) order by r.ordinal
  loop
    if probes_given[ordinal] is not null then
      select a.outcome, a.next_sequence, a.error_number, a.description
      into outcome, next_sequence, error_number, description
      from parley._p_compare(
        broker_instance, epoch, conversation_ids[ordinal], from_initiators[ordinal], first_sequences[ordinal], probes_given[ordinal],
        probes_expected[ordinal]
      ) as a;
      return next;
      continue;
    end if;
    select a.outcome, a.next_sequence, a.error_number, a.description
    into outcome, next_sequence, error_number, description
    from parley._p_accept_run(
      broker_instance, conversation_ids[ordinal], from_initiators[ordinal], first_sequences[ordinal], message_types[ordinal],
      bodies[v_starts[ordinal] : v_starts[ordinal] + body_counts[ordinal] - 1], body_sizes[ordinal], from_services[ordinal], to_services[ordinal],
      contracts[ordinal], to_brokers[ordinal], ends_at[ordinal], trace_contexts[ordinal], identities[ordinal], are_encrypted[ordinal], sealed_at[ordinal]
    ) as a;
    return next;
  end loop;
end
$$;

comment on function parley._p_accept_runs(
  uuid, bigint, bigint, uuid, uuid[], boolean[], bigint[], text[], integer[], bigint[], bytea[], text[], text[], text[], uuid[], timestamptz[], text[],
  text[], boolean[], bigint[], bigint[], timestamptz[]
) is
'Takes in what another broker has sent, and gives an answer for each run: accepted, expected, held (error number 0: busy), refused, gone, unroutable or
superseded, with the number that is expected next.
Arguments: broker_instance, epoch, term and token of the speaker; then for each run its fields (Run in Go), where body_counts says how many of bodies
belong to it and body_sizes is above 0 for a body that came in fragments; identities, as whom the sender was recognised; probes_given and
probes_expected for a run that compares instead of carrying messages (620_resume.sql), null otherwise; sealed_at, when it was sealed, as its seal proves,
null for one in clear.
Source: spec 6.9, 6.10.';

-- sql/611_accept_run.sql

-- One run from another database when something has to be looked at: the first message of a conversation, EndDialog and Error, validation, a target that
-- refuses, a hole. What is refused is refused in the same way however often it comes (spec 6.10).
-- Locks: the endpoint FOR NO KEY UPDATE or, for an end, FOR UPDATE, SKIP LOCKED; its group not at all: arrival does not take the group's lock (spec 3.6).

create type parley._p_verdict as (
  outcome text,
  next_sequence bigint,
  error_number integer,
  description text
);

comment on type parley._p_verdict is 'What became of a run: Result in Go.';

create function parley._p_accept_run(
  broker_instance uuid, conversation_id uuid, from_initiator boolean, first_sequence bigint, message_type text, bodies bytea[], body_size bigint,
  from_service text, to_service text, contract text, to_broker uuid, ends_at timestamptz, trace_context text, identity text, is_encrypted boolean,
  sealed_at timestamptz
) returns parley._p_verdict
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_count integer := greatest(coalesce(cardinality(bodies), 0), case when body_size > 0 then 1 else 0 end);
  v_refusal parley._p_verdict;
begin
  if to_broker <> (select b.service_broker_guid from parley._p_broker as b) then
    return ('unroutable', 0, 9795, format('The broker instance %s is not this one.', to_broker))::parley._p_verdict;
  end if;
  -- Messages do not disturb local senders; an end or an error takes effect behind them.
  if first_sequence = 9223372036854775807 or message_type like 'http://schemas.microsoft.com/SQL/ServiceBroker/E%' then
    select * into v_endpoint
    from parley._p_endpoint as e
    where e.conversation_id = _p_accept_run.conversation_id and e.is_initiator = not from_initiator
    for update skip locked;
  else
    select * into v_endpoint
    from parley._p_endpoint as e
    where e.conversation_id = _p_accept_run.conversation_id and e.is_initiator = not from_initiator
    for no key update skip locked;
  end if;
  if v_endpoint.endpoint_id is null then
    if exists (
      select from parley._p_endpoint as e where e.conversation_id = _p_accept_run.conversation_id and e.is_initiator = not from_initiator
    ) then
      return ('held', 0, 0, 'The conversation is in use.')::parley._p_verdict;
    elsif exists (
      select from parley._p_tombstone as t where t.conversation_id = _p_accept_run.conversation_id and t.is_initiator = not from_initiator
    ) or from_initiator and parley._p_was_opened(conversation_id) then
      -- A replay of what is over.
      return ('accepted', case when first_sequence < 9223372036854775807 then first_sequence + v_count else first_sequence end, null, null)::parley._p_verdict;
    elsif not from_initiator then
      return ('gone', 0, 8462, 'The initiator has forgotten the conversation.')::parley._p_verdict;
    elsif first_sequence = 9223372036854775807 then
      return ('accepted', first_sequence, null, null)::parley._p_verdict;
    elsif first_sequence > 0 then
      return ('expected', 0, null, 'The conversation does not exist here.')::parley._p_verdict;
    end if;
    v_refusal := parley._p_refuse_replay(sealed_at);
    if v_refusal.outcome is null then
      v_refusal := parley._p_refuse_dialog(to_service, contract, message_type, to_broker, identity);
    end if;
    if v_refusal.outcome is null then
      v_refusal := parley._p_open_dialog(
        broker_instance, conversation_id, from_service, to_service, contract, ends_at, identity, is_encrypted
      );
      select * into v_endpoint
      from parley._p_endpoint as e
      where e.conversation_id = _p_accept_run.conversation_id and not e.is_initiator;
    end if;
    if v_refusal.outcome is not null then
      return v_refusal;
    end if;
    if sealed_at is not null then
      perform parley._p_note_opened(conversation_id);
    end if;
  end if;
  if v_endpoint.far_endpoint_id is null then
    return ('gone', 0, 8462, 'The conversation has never left its database.')::parley._p_verdict;
  end if;
  if v_endpoint.far_endpoint_id > 0 then
    return ('refused', 0, 8495, 'The conversation is with a service of the target database itself.')::parley._p_verdict;
  elsif v_endpoint.far_broker_instance <> broker_instance::text and v_endpoint.far_endpoint_id < 0 then
    -- Two instances have got the first message; the other one has answered first (spec 6.5).
    return ('refused', 0, 8495, format('The conversation is with broker %s.', v_endpoint.far_broker_instance))::parley._p_verdict;
  elsif v_endpoint.far_broker_instance is null then
    update parley._p_endpoint as e set far_broker_instance = _p_accept_run.broker_instance::text where e.endpoint_id = v_endpoint.endpoint_id;
    v_endpoint.far_broker_instance := broker_instance;
  end if;
  return parley._p_accept_in_order(v_endpoint, first_sequence, message_type, bodies, body_size, nullif(trace_context, ''));
end
$$;

comment on function parley._p_accept_run(
  uuid, uuid, boolean, bigint, text, bytea[], bigint, text, text, text, uuid, timestamptz, text, text, boolean, timestamptz
) is
'Takes in one run, the long way, and says what became of it. Arguments: those of _p_accept_runs, for one run.
Source: spec 6.10.';

create function parley._p_accept_in_order(
  endpoint parley._p_endpoint, first_sequence bigint, message_type text, bodies bytea[], body_size bigint, trace_context text
) returns parley._p_verdict
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_expected bigint := coalesce(
    (select p.sequence from parley._p_accept_progress as p where p.endpoint_id = endpoint.endpoint_id order by p.sequence desc limit 1), 0
  );
  v_count integer := greatest(coalesce(cardinality(bodies), 0), case when body_size > 0 then 1 else 0 end);
  v_next bigint;
  v_is_unsequenced boolean := first_sequence = 9223372036854775807;
  v_valid integer;
  v_type parley._p_message_type;
  v_queue parley._p_queue;
  v_refusal parley._p_verdict;
begin
  v_next := case when v_is_unsequenced then first_sequence else first_sequence + v_count end;
  if not v_is_unsequenced and first_sequence > v_expected then
    return ('expected', v_expected, null, null)::parley._p_verdict;
  elsif v_next <= v_expected or v_is_unsequenced and endpoint.state = 'ER' then
    return ('accepted', greatest(v_next, v_expected), null, null)::parley._p_verdict;
  elsif v_is_unsequenced and message_type <> 'http://schemas.microsoft.com/SQL/ServiceBroker/Error' then
    return ('refused', v_expected, 8457, 'Only an Error may stand outside the order.')::parley._p_verdict;
  end if;
  -- What is compared must not move meanwhile. Who has no way to ask is not asked, and goes on.
  if not v_is_unsequenced
    and endpoint.destination_id is not null
    and exists (select from parley._p_unresumed as u where u.endpoint_id = endpoint.endpoint_id) then
    return ('held', v_expected, 0, 'Both sides of the conversation have to be compared first.')::parley._p_verdict;
  end if;
  select q.* into v_queue from parley._p_service as s join parley._p_queue as q using (queue_id) where s.service_id = endpoint.service_id;
  if endpoint.state in ('CO', 'SO', 'SI', 'DI') and not v_queue.is_enqueue_enabled then
    return ('held', v_expected, 11219, format('The queue "%s" of the target service is disabled.', v_queue.lookup_name))::parley._p_verdict;
  end if;
  if body_size > 0 then
    bodies := parley._p_assemble(endpoint.conversation_id, not endpoint.is_initiator, first_sequence, body_size);
    if bodies is null then
      return ('held', v_expected, 0, 'Fragments of the message are missing.')::parley._p_verdict;
    end if;
  elsif v_expected > first_sequence and not v_is_unsequenced then
    bodies := bodies[(v_expected - first_sequence + 1)::integer :];
  end if;
  select * into v_type from parley._p_message_type as t where t.name = _p_accept_in_order.message_type;
  case
    when endpoint.state = 'DO' then
      -- It does not want to know any more (spec 3.2); both have ended when the other side has too.
      if v_type.message_type_id in (1, 2) then
        perform parley._p_remove_endpoint(endpoint);
        return ('accepted', v_next, null, null)::parley._p_verdict;
      end if;
    when endpoint.state in ('DI', 'ER') and not v_is_unsequenced then
      null;
    when v_type.message_type_id in (1, 2) then
      perform parley._p_enqueue(endpoint, v_type.message_type_id, bodies[array_lower(bodies, 1)]);
      perform parley._p_set_state(endpoint.endpoint_id, case v_type.message_type_id when 2 then 'DI' else 'ER' end);
      perform parley._p_hold_outgoing(
        endpoint,
        case v_type.message_type_id
          when 2 then 'The other side has ended the conversation: the message is held until it is ended here too.'
          else 'An Error was received: the message is held until the conversation is ended.'
        end
      );
      if not endpoint.is_initiator then
        perform parley._p_set_alarm(endpoint.endpoint_id, 'abandoned', clock_timestamp() + make_interval(secs => b.abandoned_seconds))
        from parley._p_broker as b;
      end if;
    else
      v_refusal := parley._p_refuse_message(endpoint, v_type, message_type);
      if v_refusal.outcome is null then
        v_valid := parley._p_count_valid(v_type, bodies);
        if v_valid < cardinality(bodies) then
          select 'refused', 0, i.error_number, i.description into v_refusal
          from parley._p_invalid(v_type, bodies[array_lower(bodies, 1) + v_valid]) as i;
        end if;
      end if;
      if v_valid > 0 then
        perform parley._p_append(
          endpoint.endpoint_id, parley._p_lane(v_queue.queue_id, endpoint.priority), v_queue.position_sequence, v_type.message_type_id,
          bodies[array_lower(bodies, 1) : array_lower(bodies, 1) + v_valid - 1], trace_context
        );
        perform parley._p_ring(v_queue.queue_id, v_queue.doorbell_sequence);
      end if;
      if v_refusal.outcome is not null then
        -- Both sides get their Error (spec 2.2). The result may be lost on its way, and is not given a second time; the message is not.
        perform parley._p_break_conversations(
          array[endpoint.endpoint_id], parley._p_number_of_receiver(v_refusal.error_number), v_refusal.description, v_refusal.error_number
        );
        return v_refusal;
      end if;
  end case;
  if not v_is_unsequenced then
    insert into parley._p_accept_progress (endpoint_id, sequence) values (endpoint.endpoint_id, v_next);
    delete from parley._p_accept_progress as p where p.endpoint_id = endpoint.endpoint_id and p.sequence = v_expected;
  end if;
  return ('accepted', v_next, null, null)::parley._p_verdict;
end
$$;

comment on function parley._p_accept_in_order(parley._p_endpoint, bigint, text, bytea[], bigint, text) is
'Takes in a run for an endpoint that the caller has locked, when it is its turn: enqueues, changes the state, or drops it.
Source: spec 3.2, 5.1, 6.10.';

create function parley._p_refuse_message(
  endpoint parley._p_endpoint, message_type parley._p_message_type, message_type_name text
) returns parley._p_verdict
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_usage parley._p_contract_message_type;
begin
  if message_type.message_type_id is null then
    return ('refused', 0, 8428, format('The target does not know the message type "%s".', message_type_name))::parley._p_verdict;
  end if;
  select * into v_usage
  from parley._p_contract_message_type as u
  where u.service_contract_id = endpoint.service_contract_id and u.message_type_id = message_type.message_type_id;
  if not found then
    return (
      'refused', 0, 8498, format('The message type "%s" is not part of the contract "%s" there.', message_type_name, endpoint.service_contract_name)
    )::parley._p_verdict;
  elsif endpoint.is_initiator and not v_usage.is_sent_by_target then
    return ('refused', 0, 8457, format('The message type "%s" is for the initiator to send.', message_type_name))::parley._p_verdict;
  elsif not endpoint.is_initiator and not v_usage.is_sent_by_initiator then
    return ('refused', 0, 8437, format('The message type "%s" is for the target to send.', message_type_name))::parley._p_verdict;
  end if;
  return null;
end
$$;

comment on function parley._p_refuse_message(parley._p_endpoint, parley._p_message_type, text) is
'Tells why a side of a conversation refuses messages of a type: unknown (8428), not in the contract (8498), of the wrong direction (8457, 8437);
null when it takes them. Bodies are another question: _p_count_valid.
Source: spec 6.10.';

-- sql/612_open_dialog.sql

-- The target's side of a first message from another database: what it refuses, and the endpoint it makes.

create function parley._p_refuse_dialog(to_service text, contract text, message_type text, to_broker uuid, identity text) returns parley._p_verdict
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_service parley._p_service;
  v_contract parley._p_contract;
  v_queue parley._p_queue;
begin
  if message_type in ('http://schemas.microsoft.com/SQL/ServiceBroker/Error', 'http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog') then
    return ('refused', 0, 11277, 'A conversation cannot begin with its end.')::parley._p_verdict;
  end if;
  select * into v_service from parley._p_service as s where s.name = to_service;
  if not found then
    return case
      when to_broker is not null then (
        'refused', 0, 8490, format('The target database has no service "%s".', to_service)
          || parley._p_did_you_mean(to_service, array(select s.name from parley._p_service as s))
      )::parley._p_verdict
      else ('unroutable', 0, 9796, format('The service "%s" does not exist at the target.', to_service))::parley._p_verdict
    end;
  end if;
  if not parley._p_may_send_from_afar(parley._p_role_of_identity(identity), v_service) then
    return ('refused', 0, 8494, format('The sender may not SEND to service "%s".', to_service))::parley._p_verdict;
  end if;
  select q.* into v_queue from parley._p_queue as q where q.queue_id = v_service.queue_id;
  if not v_queue.is_enqueue_enabled then
    return ('held', 0, 11219, 'The queue of the target service is disabled.')::parley._p_verdict;
  end if;
  select * into v_contract from parley._p_contract as c where c.name = contract;
  if not found then
    return ('refused', 0, 8425, format('The target does not know the contract "%s".', contract))::parley._p_verdict;
  elsif not exists (
    select
    from parley._p_service_contract as u
    where u.service_id = v_service.service_id and u.service_contract_id = v_contract.service_contract_id
  ) then
    return ('refused', 0, 8408, format('Service "%s" does not accept the contract "%s".', to_service, contract))::parley._p_verdict;
  end if;
  return null;
end
$$;

comment on function parley._p_refuse_dialog(text, text, text, uuid, text) is
'Tells why this database does not take a dialog from another one: no such service (8490), no permission (8494), contract unknown (8425) or not
accepted (8408); null when it does.
Arguments: the fields of the run; identity, as whom the sender was recognised.
Source: spec 6.10.';

create function parley._p_may_send_from_afar(role oid, service parley._p_service) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when role is not null then parley._p_has_permission(role, 'SEND', 'service', service.service_id, service.owner)
    else exists (
      select
      from parley._p_permission as p
      where p.class = 'service' and p.object_id = service.service_id and p.permission in ('SEND', 'CONTROL') and p.grantee = 0::regrole
    )
  end
$$;

comment on function parley._p_may_send_from_afar(oid, parley._p_service) is
'Tells whether a sender in another database may SEND to a service here: as the role it stands for, or, when it stands for none, as PUBLIC (spec 7.3).';

create function parley._p_open_dialog(
  broker_instance uuid, conversation_id uuid, from_service text, to_service text, contract text, ends_at timestamptz, identity text, is_encrypted boolean
) returns parley._p_verdict
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_service parley._p_service;
  v_queue parley._p_queue;
  v_contract parley._p_contract;
  v_group bigint;
  v_endpoint parley._p_endpoint;
  v_type record;
begin
  select * into v_service from parley._p_service as s where s.name = to_service;
  select * into v_queue from parley._p_queue as q where q.queue_id = v_service.queue_id;
  select * into v_contract from parley._p_contract as c where c.name = contract;
  if ends_at <= clock_timestamp() then
    return ('refused', 0, 8489, 'The dialog has exceeded its lifetime.')::parley._p_verdict;
  end if;
  insert into parley._p_conversation_group (conversation_group_id, service_id)
  values (gen_random_uuid(), v_service.service_id)
  returning group_id into v_group;
  select t.message_type_id, t.name into v_type from parley._p_usual_type(v_contract.service_contract_id, false) as t;
  insert into parley._p_endpoint (
    group_id, usual_message_type_id, usual_message_type_name, state, is_initiator, is_plain, priority,
    service_id, service_contract_id, service_name, service_contract_name, conversation_id, owner, far_service, far_broker_instance, is_encrypted, lifetime
  )
  values (
    v_group, v_type.message_type_id, v_type.name, 'CO', false, true,
    parley._p_priority_of(v_contract.service_contract_id, v_service.service_id, from_service),
    v_service.service_id, v_contract.service_contract_id, v_service.name, v_contract.name,
    conversation_id, v_service.owner, from_service, broker_instance::text, is_encrypted,
    coalesce(ends_at, clock_timestamp() + make_interval(secs => 2147483647))
  )
  on conflict do nothing
  returning * into v_endpoint;
  if not found then
    delete from parley._p_conversation_group as g where g.group_id = v_group;
    return ('held', 0, 0, 'The conversation is being opened.')::parley._p_verdict;
  end if;
  update parley._p_endpoint as e set far_endpoint_id = -e.endpoint_id where e.endpoint_id = v_endpoint.endpoint_id;
  if ends_at is not null then
    perform parley._p_set_alarm(v_endpoint.endpoint_id, 'lifetime', ends_at);
  end if;
  perform parley._p_use_priority(v_queue, v_endpoint.priority);
  -- What came from a database next door goes back there without asking for a route.
  if identity like 'role:%' then
    perform parley._p_bind_to(v_endpoint.endpoint_id, 'broker:' || broker_instance);
  end if;
  return null;
end
$$;

comment on function parley._p_open_dialog(uuid, uuid, text, text, text, timestamptz, text, boolean) is
'Creates the target''s endpoint of a conversation with another database, in a group of its own. Gives null, or "held" when somebody else is just
doing so, or "refused" when its lifetime is over.
Source: spec 3.2, 3.6.';

-- sql/613_fragments.sql

-- Messages that are too large to travel in one piece.
--
-- Fragments are stored as they come, each in a transaction of its own, and put together when the run itself comes, which names the size. A link that is
-- lost continues where the stored part ends. Those of a message that never comes are deleted after a day (fire_timers).

create table parley._p_fragment (
  conversation_id uuid not null,
  from_initiator boolean not null,
  sequence bigint not null,
  first_byte bigint not null,
  size bigint not null,
  data bytea not null,
  stored_at timestamptz not null default clock_timestamp(),
  primary key (conversation_id, from_initiator, sequence, first_byte)
);

comment on table parley._p_fragment is 'Parts of messages that are not complete yet.';

alter table parley._p_fragment alter column data set storage external;

create function parley._p_accept_fragment(
  broker_instance uuid, epoch bigint, term bigint, token uuid,
  conversation_id uuid, from_initiator boolean, sequence bigint, first_byte bigint, size bigint, data bytea,
  to_service text, to_broker uuid, identity text, sealed_at timestamptz
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_stored bigint;
  v_service parley._p_service;
begin
  if parley._p_refusal_of_speaker(array[identity], broker_instance, epoch) is not null
    or parley._p_hear(broker_instance, epoch, term, token, identity !~ 'peer:') is not null then
    return null;
  end if;
  if not exists (
    select
    from parley._p_endpoint as e
    where e.conversation_id = _p_accept_fragment.conversation_id
      and e.is_initiator = not from_initiator
      and e.far_broker_instance = _p_accept_fragment.broker_instance::text
  ) then
    -- The first message of a dialog: who may not send it may not fill our disk with it either.
    select * into v_service from parley._p_service as s where s.name = to_service;
    if not found or not from_initiator or sequence <> 0
      or to_broker <> (select b.service_broker_guid from parley._p_broker as b)
      or parley._p_was_opened(conversation_id)
      or (parley._p_refuse_replay(sealed_at)).outcome is not null
      or not parley._p_may_send_from_afar(parley._p_role_of_identity(identity), v_service) then
      return null;
    end if;
  end if;
  select coalesce(sum(octet_length(f.data)), 0) into v_stored
  from parley._p_fragment as f
  where f.conversation_id = _p_accept_fragment.conversation_id
    and f.from_initiator = _p_accept_fragment.from_initiator
    and f.sequence = _p_accept_fragment.sequence;
  if first_byte = v_stored and octet_length(data) > 0 and first_byte + octet_length(data) <= size then
    insert into parley._p_fragment (conversation_id, from_initiator, sequence, first_byte, size, data)
    values (conversation_id, from_initiator, sequence, first_byte, size, data)
    on conflict do nothing;
    v_stored := v_stored + octet_length(data);
  end if;
  return v_stored;
end
$$;

comment on function parley._p_accept_fragment(
  uuid, bigint, bigint, uuid, uuid, boolean, bigint, bigint, bigint, bytea, text, uuid, text, timestamptz
) is
'Stores the next part of a large message, and gives how many bytes of it there are, from the first on: where to go on. A part that is not the next one
is not stored. Null when it is not wanted: the speaker is superseded, or may not send there; the run itself will be told why.
Arguments: the speaker; conversation_id, from_initiator, sequence of the message; first_byte of the part; size of the message in bytes; data;
to_service, to_broker, identity and sealed_at, as for a run.
Source: spec 6.9.';

create function parley._p_assemble(conversation_id uuid, from_initiator boolean, sequence bigint, size bigint) returns bytea[]
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_body bytea;
begin
  select string_agg(f.data, '' order by f.first_byte) into v_body
  from parley._p_fragment as f
  where f.conversation_id = _p_assemble.conversation_id
    and f.from_initiator = _p_assemble.from_initiator
    and f.sequence = _p_assemble.sequence;
  if octet_length(v_body) is distinct from size then
    return null;
  end if;
  delete from parley._p_fragment as f
  where f.conversation_id = _p_assemble.conversation_id
    and f.from_initiator = _p_assemble.from_initiator
    and f.sequence = _p_assemble.sequence;
  return array[v_body];
end
$$;

comment on function parley._p_assemble(uuid, boolean, bigint, bigint) is
'Puts the fragments of a message together and removes them; null when they are not all there.
Arguments: the message; size in bytes.';

-- sql/614_sealed_fragments.sql

-- Large messages of secured dialogs: each part is sealed by itself, and the run that stands for all of them brings a sealed digest of the whole. So
-- parts that somebody else has slipped in are found, whoever they came from, before the message is put together.
-- Cost: the body is read once more on each side, in one statement.

create function parley._p_digest_body(endpoint_id bigint, sequence bigint) returns bytea
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select sha256(t.body)
    from parley._p_transit as t
    where t.endpoint_id = _p_digest_body.endpoint_id and t.first_sequence = sequence
  );
end
$$;

comment on function parley._p_digest_body(bigint, bigint) is
'Gives the SHA-256 of a body in transit, null when it has been acknowledged.
Arguments: endpoint_id and sequence of the message.';

create function parley._p_verify_fragments(conversation_id uuid, from_initiator boolean, sequence bigint, size bigint, digest bytea) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_body bytea;
begin
  select string_agg(f.data, '' order by f.first_byte) into v_body
  from parley._p_fragment as f
  where f.conversation_id = _p_verify_fragments.conversation_id
    and f.from_initiator = _p_verify_fragments.from_initiator
    and f.sequence = _p_verify_fragments.sequence;
  if octet_length(v_body) = size and sha256(v_body) = digest then
    return true;
  elsif octet_length(v_body) is null or octet_length(v_body) < size then
    return true;
  end if;
  delete from parley._p_fragment as f
  where f.conversation_id = _p_verify_fragments.conversation_id
    and f.from_initiator = _p_verify_fragments.from_initiator
    and f.sequence = _p_verify_fragments.sequence;
  return false;
end
$$;

comment on function parley._p_verify_fragments(uuid, boolean, bigint, bigint, bytea) is
'Tells whether the stored fragments of a message are parts of the body with a digest, as far as that can be told: false, when they are complete and
are not. Then they are deleted, and the sender begins again.
Arguments: the message; size in bytes and digest of the whole body.';

-- sql/615_replays.sql

-- First messages of secured dialogs that come again.
--
-- Whoever forwards a dialog that he cannot read can still keep its first message, and bring it again when both sides have ended and forgotten it. Then
-- the target would begin the dialog, and do the work, a second time. So each transmission is sealed with its time (dialogsecurity), and the target
-- (1) remembers which secured dialogs it has begun, for longer than (2) it takes their first messages after they were sealed. The memory is
-- opened_at in _p_dialog_security: not the tombstone, whose time is a setting, and which goes with its service or by a cleanup.
-- A database that goes on from an older state has lost some of its memory: it takes only (3) what was sealed after it has begun its epoch.
-- All of it allows for clocks of senders that are ahead by a minute. One that is behind, by half an hour, or ahead by more, begins no dialog.
-- An honest sender that is refused seals its message anew at the next attempt, so nothing is lost however long it has waited before.
-- Cost: an update for each secured dialog that is begun here, none for others or for further messages.

create function parley._p_replay_memory() returns interval
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select interval '40 minutes'
$$;

comment on function parley._p_replay_memory() is
'Gives how long a target remembers at least that it has begun a secured dialog. It is longer than a first message is taken after it was sealed (half an hour),
by more than the clocks of senders may be ahead (a minute).';

create function parley._p_was_opened(conversation_id uuid) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select
    from parley._p_dialog_security as s
    where s.conversation_id = _p_was_opened.conversation_id and not s.is_initiator and s.opened_at is not null
  )
$$;

comment on function parley._p_was_opened(uuid) is 'Tells whether a secured dialog has begun here, also when it is over, as far as that is remembered.';

create function parley._p_note_opened(conversation_id uuid) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update parley._p_dialog_security as s
  set opened_at = clock_timestamp()
  where s.conversation_id = _p_note_opened.conversation_id and not s.is_initiator
$$;

comment on function parley._p_note_opened(uuid) is 'Notes that a secured dialog has begun here.';

create function parley._p_refuse_replay(sealed_at timestamptz) returns parley._p_verdict
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := clock_timestamp();
  v_reason text;
begin
  if sealed_at is null then
    return null;
  end if;
  -- What was restored must have its epoch before it says what it remembers.
  perform parley._p_note_timeline()
  from parley._p_broker as b
  where b.timeline is null or not parley._p_is_epoch_current();
  select case
      when sealed_at > v_now + interval '1 minute' then 'by a clock that is ahead of the one here'
      when sealed_at <= v_now - interval '30 minutes' then 'longer ago than this server remembers dialogs'
      when sealed_at <= b.remembers_since + interval '1 minute' then 'before this database has gone on from an older state'
    end
  into v_reason
  from parley._p_broker as b;
  if v_reason is null then
    return null;
  end if;
  return (
    'held', 0, 28066,
    format(
      '28066: the first message of the dialog was sealed at %s, %s: it may be a replay. '
        || 'A sender seals it anew each time; if this stays, compare the clocks, here it is %s.',
      to_char(sealed_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"'), v_reason, to_char(v_now at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"')
    )
  )::parley._p_verdict;
end
$$;

comment on function parley._p_refuse_replay(timestamptz) is
'Tells why what would begin a dialog is not taken for the time at which it was sealed (28066): it may have been here already, and be forgotten. Null when
it is taken, and for what was not sealed.
Arguments: sealed_at, as the seal proves it.
Source: spec 3.3, 7.3.';

-- sql/620_resume.sql

-- Going on in a new epoch: each conversation is compared with its far side first.
--
-- The side that has a new epoch sends a probe: the lowest number that it still keeps, the next that it will give, and the next that it expects. The
-- far side compares these with its own. Both agree when each expects a number that the other one still keeps or is about to give. If not, one of them
-- has lost what the other knows it had, and the conversation ends with an Error on both sides (keeps F2). Until the answer has come this side
-- transmits nothing of the conversation and takes in nothing, so that what was asked stays true. Who hears of a new epoch asks too: a database that has
-- forgotten a conversation altogether does not ask about it. A probe may come late and again, when numbers have gone on: once both sides were found to
-- agree in an epoch they do (keeps T5).

create function parley._p_positions(endpoint_id bigint, out kept bigint, out given bigint, out expected bigint)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  given := coalesce(
    (select p.sequence from parley._p_send_progress as p where p.endpoint_id = _p_positions.endpoint_id order by p.sequence desc limit 1), 0
  );
  -- What was dropped is not asked for any more when an Error outside the order follows.
  kept := case
    when exists (
      select from parley._p_endpoint as e where e.endpoint_id = _p_positions.endpoint_id and parley._p_is_telling_far(e)
    ) then 0
    else coalesce(
      (
        select min(t.first_sequence)
        from parley._p_transit as t
        where t.endpoint_id = _p_positions.endpoint_id and t.first_sequence < 9223372036854775807
      ), given
    )
  end;
  expected := coalesce(
    (select p.sequence from parley._p_accept_progress as p where p.endpoint_id = _p_positions.endpoint_id order by p.sequence desc limit 1), 0
  );
end
$$;

comment on function parley._p_positions(bigint) is
'Gives where an endpoint stands with its far side: the lowest number it keeps, the next it will give, the next it expects.';

create function parley._p_probes(destination_id integer, top integer)
returns table (run parley._p_run, given bigint, expected bigint)
language sql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  select
    row(
      e.endpoint_id, e.conversation_id, e.is_initiator, p.kept, '', '{}'::bytea[], 0, e.service_name, e.far_service, e.service_contract_name,
      e.far_broker_instance::uuid, e.priority, clock_timestamp(), null, null, pg_get_userbyid(e.owner)::text, e.is_encrypted
    )::parley._p_run,
    p.given, p.expected
  from parley._p_unresumed as u
  join parley._p_endpoint as e using (endpoint_id)
  cross join lateral parley._p_positions(e.endpoint_id) as p
  where e.destination_id = _p_probes.destination_id
  order by e.endpoint_id
  limit top
$$;

comment on function parley._p_probes(integer, integer) is
'Gives the probes to send to a destination: runs without messages, for conversations that have to be compared with their far side.';

create function parley._p_compare(
  broker_instance uuid, epoch bigint, conversation_id uuid, from_initiator boolean, kept bigint, given bigint, expected bigint
) returns parley._p_verdict
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_here record;
begin
  select * into v_endpoint
  from parley._p_endpoint as e
  where e.conversation_id = _p_compare.conversation_id and e.is_initiator = not from_initiator and e.far_endpoint_id < 0
  for update skip locked;
  if not found then
    if exists (
      select from parley._p_endpoint as e where e.conversation_id = _p_compare.conversation_id and e.is_initiator = not from_initiator
    ) then
      return ('held', 0, 0, 'The conversation is in use.')::parley._p_verdict;
    elsif given = 0 and expected = 0 or from_initiator and kept = 0 then
      -- Its first message has not arrived yet.
      return ('accepted', 0, null, null)::parley._p_verdict;
    end if;
    return ('gone', 0, 8462, 'The other side of the conversation no longer exists.')::parley._p_verdict;
  elsif v_endpoint.far_broker_instance <> broker_instance::text then
    return ('refused', 0, 8495, format('The conversation is with broker %s.', v_endpoint.far_broker_instance))::parley._p_verdict;
  end if;
  v_here := parley._p_positions(v_endpoint.endpoint_id);
  if v_endpoint.state = 'ER'
    or exists (select from parley._p_compared as c where c.endpoint_id = v_endpoint.endpoint_id and c.epoch >= _p_compare.epoch)
    or v_here.expected between kept and given and expected between v_here.kept and v_here.given then
    insert into parley._p_compared as c (endpoint_id, epoch) values (v_endpoint.endpoint_id, epoch)
    on conflict on constraint _p_compared_pkey do update set epoch = greatest(c.epoch, excluded.epoch);
    return ('accepted', v_here.expected, null, null)::parley._p_verdict;
  end if;
  -- The result may be lost, so the other side is told with a message too.
  perform parley._p_break_conversations(
    array[v_endpoint.endpoint_id], 9720, 'Messages of this conversation were lost: the database of one side goes on from an older state.', 9719
  );
  return (
    'refused', 0, 9719, 'Messages of this conversation were lost: the database of one side goes on from an older state.'
  )::parley._p_verdict;
end
$$;

comment on function parley._p_compare(uuid, bigint, uuid, boolean, bigint, bigint, bigint) is
'Answers a probe: accepted when both sides agree on what was said, refused when history was lost; then the conversation is broken here too.
Arguments: the speaking broker and its epoch; the conversation, and whether its initiator asks; kept, given and expected of the asking side.
Source: reliability F2.';

-- sql/630_daemon_reports.sql

-- What the daemons that serve this database know and it does not: their links to other servers, what they pass on, what they have counted.
--
-- A daemon writes one row, once a second while something changes there, and takes it back when it stops. A row of a daemon that was killed is shown
-- no more after some seconds, and removed by the next one that writes. The table is not logged: after a crash of the server daemons write anew.
-- Invariant: a daemon is told apart by an id that it draws when it starts, so two of them never share a row.
-- Locks: the daemon's own row, and rows of dead daemons. Cost: one row updated a second, while links are in use.

create unlogged table parley._p_daemon_report (
  daemon_id uuid primary key,
  daemon text not null,
  reported_at timestamptz not null,
  endpoint jsonb not null,
  connections jsonb not null,
  forwarded jsonb not null,
  counters jsonb not null
) with (fillfactor = 20);

comment on table parley._p_daemon_report is 'The last report of each daemon about what it alone knows.';

create function parley._p_report_daemon(daemon_id uuid, daemon text, endpoint jsonb, connections jsonb, forwarded jsonb, counters jsonb)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Nobody has to wait for the disk, or for a standby.
  perform set_config('synchronous_commit', 'off', true);
  insert into parley._p_daemon_report as r (daemon_id, daemon, reported_at, endpoint, connections, forwarded, counters)
  values (
    _p_report_daemon.daemon_id, _p_report_daemon.daemon, clock_timestamp(), _p_report_daemon.endpoint, _p_report_daemon.connections,
    _p_report_daemon.forwarded, _p_report_daemon.counters
  )
  on conflict on constraint _p_daemon_report_pkey do update
  set daemon = excluded.daemon, reported_at = excluded.reported_at, endpoint = excluded.endpoint, connections = excluded.connections,
    forwarded = excluded.forwarded, counters = excluded.counters;
  delete from parley._p_daemon_report as r where r.reported_at < clock_timestamp() - interval '5 minutes';
end
$$;

comment on function parley._p_report_daemon(uuid, text, jsonb, jsonb, jsonb, jsonb) is
'Takes the report of a daemon, in place of its last one, and removes those of daemons that are silent.
Arguments: daemon_id and daemon, its name; endpoint, where it listens, JSON null for nowhere; connections and forwarded, arrays with the columns of the
views; counters, performance counters of transport by their names.';

create function parley._p_forget_daemon(daemon_id uuid) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  delete from parley._p_daemon_report as r where r.daemon_id = $1
$$;

comment on function parley._p_forget_daemon(uuid) is 'Takes back what a daemon has reported: it stops.';

create view parley._p_living_report as
select r.daemon_id, r.daemon, r.reported_at, r.connections, r.forwarded, r.counters
from parley._p_daemon_report as r
where r.reported_at > clock_timestamp() - interval '15 seconds';

comment on view parley._p_living_report is 'Reports of daemons that live.';

create view parley._p_recent_report as
select r.daemon_id, r.daemon, r.endpoint, r.counters
from parley._p_daemon_report as r
-- A daemon with nothing else to tell reports once a minute.
where r.reported_at > clock_timestamp() - interval '150 seconds';

comment on view parley._p_recent_report is 'What does not change from one second to the next, in reports of daemons that live.';

create function parley._p_transport_counter(name text) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(sum((r.counters ->> $1)::bigint), 0)::bigint from parley._p_recent_report as r
$$;

comment on function parley._p_transport_counter(text) is 'Adds up a counter of transport over the daemons that live; since they have begun.';

create function parley._p_transport_average(total text, count text) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(parley._p_transport_counter(total) / nullif(parley._p_transport_counter(count), 0), 0)
$$;

comment on function parley._p_transport_average(text, text) is 'Divides one counter of transport by another one; 0 while nothing was counted.';

create function parley._p_transport_value(name text) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case name
    when 'Receive I/O Len Avg' then parley._p_transport_average('Receive I/O Bytes Total', 'Receive I/Os/sec')
    when 'Send I/O Len Avg' then parley._p_transport_average('Send I/O Bytes Total', 'Send I/Os/sec')
    when 'Msg Fragment Recv Size Avg' then parley._p_transport_average('Receive I/O Bytes Total', 'Message Fragment Receives/sec')
    when 'Msg Fragment Send Size Avg' then parley._p_transport_average('Send I/O Bytes Total', 'Message Fragment Sends/sec')
    else parley._p_transport_counter(name)
  end
$$;

comment on function parley._p_transport_value(text) is 'Gives a counter of transport by its name; averages are made of what all daemons have counted.';

create view parley.dm_broker_connections with (security_barrier) as
select
  c.connection_id,
  c.connection_id as transport_stream_id,
  c.state,
  case c.state when 1 then 'NEW' when 2 then 'CONNECTING' when 3 then 'CONNECTED' when 4 then 'LOGGED_IN' else 'CLOSED' end as state_desc,
  c.connect_time,
  c.login_time,
  c.last_activity_time,
  c.authentication_method,
  r.daemon as principal_name,
  c.remote_user_name,
  c.is_accept,
  case c.state when 4 then 12 else 0 end::smallint as login_state,
  case c.state when 4 then 'ONLINE' else 'INITIAL' end as login_state_desc,
  null::integer as peer_certificate_id,
  case when c.encryption_algorithm_desc is null then 0 else 2 end::smallint as encryption_algorithm,
  coalesce(c.encryption_algorithm_desc, 'NONE') as encryption_algorithm_desc,
  c.receives_posted,
  c.sends_posted,
  c.is_receive_flow_controlled,
  c.is_send_flow_controlled,
  c.total_bytes_sent,
  c.total_bytes_received,
  c.total_fragments_sent,
  c.total_fragments_received,
  c.total_sends,
  c.total_receives,
  c.connection_id as peer_arbitration_id,
  c.address,
  c.software
from parley._p_living_report as r
cross join lateral jsonb_to_recordset(r.connections) as c (
  connection_id uuid, state smallint, connect_time timestamptz, login_time timestamptz, last_activity_time timestamptz, authentication_method text,
  remote_user_name text, is_accept boolean, encryption_algorithm_desc text, receives_posted integer, sends_posted integer,
  is_receive_flow_controlled boolean, is_send_flow_controlled boolean, total_bytes_sent bigint, total_bytes_received bigint,
  total_fragments_sent bigint, total_fragments_received bigint, total_sends bigint, total_receives bigint, address text, software text
)
where parley._p_may_view_state(parley._p_current_role());

comment on view parley.dm_broker_connections is
'Connections with other servers of the daemons that serve this database, some seconds old at most. For administrators and members of pg_monitor.';
comment on column parley.dm_broker_connections.connection_id is 'Identity of the connection.';
comment on column parley.dm_broker_connections.transport_stream_id is 'The same.';
comment on column parley.dm_broker_connections.state is '1 to 5; see state_desc.';
comment on column parley.dm_broker_connections.state_desc is 'NEW, CONNECTING, CONNECTED, LOGGED_IN or CLOSED.';
comment on column parley.dm_broker_connections.connect_time is 'When there was a socket.';
comment on column parley.dm_broker_connections.login_time is 'When both ends knew each other.';
comment on column parley.dm_broker_connections.last_activity_time is 'When something went over it last.';
comment on column parley.dm_broker_connections.authentication_method is 'CERTIFICATE, or NONE on a connection without TLS.';
comment on column parley.dm_broker_connections.principal_name is 'Name of the daemon here.';
comment on column parley.dm_broker_connections.remote_user_name is 'Fingerprint of the key at the other end.';
comment on column parley.dm_broker_connections.is_accept is 'Whether the other side has dialled.';
comment on column parley.dm_broker_connections.login_state is '12 when both ends know each other, 0 before.';
comment on column parley.dm_broker_connections.login_state_desc is 'ONLINE or INITIAL.';
comment on column parley.dm_broker_connections.peer_certificate_id is 'Always null: keys of peers are known by their fingerprints.';
comment on column parley.dm_broker_connections.encryption_algorithm is '2 with TLS, 0 without.';
comment on column parley.dm_broker_connections.encryption_algorithm_desc is 'The cipher suite of TLS.';
comment on column parley.dm_broker_connections.receives_posted is 'Batches and fragments that have come and are not answered yet.';
comment on column parley.dm_broker_connections.sends_posted is 'Batches and fragments that were sent and are not answered yet.';
comment on column parley.dm_broker_connections.is_receive_flow_controlled is 'Whether the other end has to wait for room here.';
comment on column parley.dm_broker_connections.is_send_flow_controlled is 'Whether this end has to wait for room there.';
comment on column parley.dm_broker_connections.total_bytes_sent is 'Bytes sent.';
comment on column parley.dm_broker_connections.total_bytes_received is 'Bytes received.';
comment on column parley.dm_broker_connections.total_fragments_sent is 'Messages, and parts of large ones, that were sent.';
comment on column parley.dm_broker_connections.total_fragments_received is 'Messages, and parts of large ones, that were received.';
comment on column parley.dm_broker_connections.total_sends is 'Frames sent.';
comment on column parley.dm_broker_connections.total_receives is 'Frames received.';
comment on column parley.dm_broker_connections.peer_arbitration_id is 'The same as connection_id: connections that cross are both kept.';
comment on column parley.dm_broker_connections.address is 'Address of the other end.';
comment on column parley.dm_broker_connections.software is 'What the other end calls itself.';

create view parley.dm_broker_forwarded_messages with (security_barrier) as
select
  f.conversation_id,
  f.is_initiator,
  f.to_service_name,
  f.to_broker_instance,
  f.from_service_name,
  null::text as from_broker_instance,
  f.adjacent_broker_address,
  f.message_sequence_number,
  0 as message_fragment_number,
  null::uuid as message_id,
  f.hops_remaining,
  f.time_to_live,
  f.time_consumed
from parley._p_living_report as r
cross join lateral jsonb_to_recordset(r.forwarded) as f (
  conversation_id uuid, is_initiator boolean, to_service_name text, to_broker_instance text, from_service_name text, adjacent_broker_address text,
  message_sequence_number bigint, hops_remaining smallint, time_to_live integer, time_consumed integer
)
where parley._p_may_view_state(parley._p_current_role());

comment on view parley.dm_broker_forwarded_messages is
'Messages for other servers that the daemons which serve this database are passing on just now, the oldest 1,000. For administrators and members of
pg_monitor.';
comment on column parley.dm_broker_forwarded_messages.conversation_id is 'The conversation.';
comment on column parley.dm_broker_forwarded_messages.is_initiator is 'Whether the initiator has sent it.';
comment on column parley.dm_broker_forwarded_messages.to_service_name is 'Service that it is for.';
comment on column parley.dm_broker_forwarded_messages.to_broker_instance is 'Broker instance that it is for, or null when that may be any.';
comment on column parley.dm_broker_forwarded_messages.from_service_name is 'Service that it comes from.';
comment on column parley.dm_broker_forwarded_messages.from_broker_instance is 'Always null.';
comment on column parley.dm_broker_forwarded_messages.adjacent_broker_address is 'Where it goes next.';
comment on column parley.dm_broker_forwarded_messages.message_sequence_number is 'Its number; of several that travel together the first one.';
comment on column parley.dm_broker_forwarded_messages.message_fragment_number is 'Always 0.';
comment on column parley.dm_broker_forwarded_messages.message_id is 'Always null.';
comment on column parley.dm_broker_forwarded_messages.hops_remaining is 'How many more brokers may pass it on.';
comment on column parley.dm_broker_forwarded_messages.time_to_live is 'For how many seconds it may be on its way altogether.';
comment on column parley.dm_broker_forwarded_messages.time_consumed is 'For how many it has been.';

-- sql/631_endpoint_views.sql

-- Broker endpoints: the daemons that listen for other servers and serve this database (spec 2.8, 8.1).
--
-- An endpoint is not an object of the database: it is there while a daemon runs that was started with --listen.

create view parley._p_listening_report as
select r.daemon_id, r.daemon, r.endpoint from parley._p_recent_report as r where r.endpoint <> 'null';

comment on view parley._p_listening_report is 'Reports of daemons that listen for other servers.';

create view parley.service_broker_endpoints with (security_barrier) as
select
  r.daemon as name,
  hashtext(r.daemon_id::text) & 2147483647 as endpoint_id,
  null::integer as principal_id,
  2::smallint as protocol,
  'TCP' as protocol_desc,
  3::smallint as type,
  'SERVICE_BROKER' as type_desc,
  0::smallint as state,
  'STARTED' as state_desc,
  false as is_admin_endpoint,
  (r.endpoint ->> 'forwards')::boolean as is_message_forwarding_enabled,
  (r.endpoint ->> 'forward_size_mb')::integer as message_forwarding_size,
  4::smallint as connection_auth,
  'CERTIFICATE' as connection_auth_desc,
  null::integer as certificate_id,
  2::smallint as encryption_algorithm,
  'AES' as encryption_algorithm_desc
from parley._p_listening_report as r
where parley._p_may_view_state(parley._p_current_role());

comment on view parley.service_broker_endpoints is
'Broker endpoints that serve this database, a row for each daemon that listens; up to two minutes old. For administrators and members of pg_monitor.';
comment on column parley.service_broker_endpoints.name is 'The daemon that listens.';
comment on column parley.service_broker_endpoints.endpoint_id is 'Tells endpoints apart; another one after the daemon has started anew.';
comment on column parley.service_broker_endpoints.principal_id is 'Null: a daemon is nobody in the database.';
comment on column parley.service_broker_endpoints.protocol is '2.';
comment on column parley.service_broker_endpoints.protocol_desc is 'TCP.';
comment on column parley.service_broker_endpoints.type is '3.';
comment on column parley.service_broker_endpoints.type_desc is 'SERVICE_BROKER.';
comment on column parley.service_broker_endpoints.state is '0: one that does not listen is not here.';
comment on column parley.service_broker_endpoints.state_desc is 'STARTED.';
comment on column parley.service_broker_endpoints.is_admin_endpoint is 'False.';
comment on column parley.service_broker_endpoints.is_message_forwarding_enabled is 'Whether the daemon passes messages on (`parley serve --forward`).';
comment on column parley.service_broker_endpoints.message_forwarding_size is 'How many megabytes of them may be in its memory at a time.';
comment on column parley.service_broker_endpoints.connection_auth is '4.';
comment on column parley.service_broker_endpoints.connection_auth_desc is 'CERTIFICATE: both sides of a connection show one.';
comment on column parley.service_broker_endpoints.certificate_id is 'Null: the certificate of a broker is with its daemon.';
comment on column parley.service_broker_endpoints.encryption_algorithm is '2.';
comment on column parley.service_broker_endpoints.encryption_algorithm_desc is 'AES: what TLS 1.3 agrees on is in dm_broker_connections.';

create view parley.tcp_endpoints with (security_barrier) as
select
  r.daemon as name,
  hashtext(r.daemon_id::text) & 2147483647 as endpoint_id,
  null::integer as principal_id,
  2::smallint as protocol,
  'TCP' as protocol_desc,
  3::smallint as type,
  'SERVICE_BROKER' as type_desc,
  0::smallint as state,
  'STARTED' as state_desc,
  false as is_admin_endpoint,
  (r.endpoint ->> 'port')::integer as port,
  false as is_dynamic_port,
  nullif(nullif(r.endpoint ->> 'ip_address', '::'), '0.0.0.0') as ip_address
from parley._p_listening_report as r
where parley._p_may_view_state(parley._p_current_role());

comment on view parley.tcp_endpoints is
'Where the broker endpoints that serve this database listen. For administrators and members of pg_monitor.';
comment on column parley.tcp_endpoints.name is 'The daemon that listens.';
comment on column parley.tcp_endpoints.endpoint_id is 'Tells endpoints apart; another one after the daemon has started anew.';
comment on column parley.tcp_endpoints.principal_id is 'Null: a daemon is nobody in the database.';
comment on column parley.tcp_endpoints.protocol is '2.';
comment on column parley.tcp_endpoints.protocol_desc is 'TCP.';
comment on column parley.tcp_endpoints.type is '3.';
comment on column parley.tcp_endpoints.type_desc is 'SERVICE_BROKER.';
comment on column parley.tcp_endpoints.state is '0: one that does not listen is not here.';
comment on column parley.tcp_endpoints.state_desc is 'STARTED.';
comment on column parley.tcp_endpoints.is_admin_endpoint is 'False.';
comment on column parley.tcp_endpoints.port is 'The port it listens on.';
comment on column parley.tcp_endpoints.is_dynamic_port is 'False.';
comment on column parley.tcp_endpoints.ip_address is 'The address it listens on; null for all addresses of its machine.';

-- sql/900_built_in.sql

-- The built-in objects (spec 2.1), and who may use the schema.

select parley._p_take_back_all();

insert into parley._p_message_type (message_type_id, name, owner, validation)
select t.id, t.name, current_user::regrole, t.validation
from (
  values
    (1, 'http://schemas.microsoft.com/SQL/ServiceBroker/Error', 'X'::"char"),
    (2, 'http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog', 'E'),
    (3, 'http://schemas.microsoft.com/SQL/Notifications/QueryNotification', 'X'),
    (4, 'http://schemas.microsoft.com/SQL/Notifications/EventNotification', 'X'),
    (5, 'http://schemas.microsoft.com/SQL/ServiceBroker/DialogTimer', 'E'),
    (6, 'http://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice/MissingRoute', 'X'),
    (7, 'http://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice/FailedRoute', 'X'),
    (8, 'http://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice/MissingRemoteServiceBinding', 'X'),
    (9, 'http://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice/FailedRemoteServiceBinding', 'X'),
    (10, 'http://schemas.microsoft.com/SQL/ServiceBroker/ServiceEcho/Echo', 'N'),
    (11, 'http://schemas.microsoft.com/SQL/ServiceBroker/ServiceDiagnostic/Query', 'X'),
    (12, 'http://schemas.microsoft.com/SQL/ServiceBroker/ServiceDiagnostic/Status', 'X'),
    (13, 'http://schemas.microsoft.com/SQL/ServiceBroker/ServiceDiagnostic/Description', 'N'),
    (14, 'DEFAULT', 'N')
) as t (id, name, validation);

insert into parley._p_contract (service_contract_id, name, owner)
select c.id, c.name, current_user::regrole
from (
  values
    (1, 'http://schemas.microsoft.com/SQL/Notifications/PostQueryNotification'),
    (2, 'http://schemas.microsoft.com/SQL/Notifications/PostEventNotification'),
    (3, 'http://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice'),
    (4, 'http://schemas.microsoft.com/SQL/ServiceBroker/ServiceEcho'),
    (5, 'http://schemas.microsoft.com/SQL/ServiceBroker/ServiceDiagnostic'),
    (6, 'DEFAULT')
) as c (id, name);

insert into parley._p_contract_message_type (service_contract_id, message_type_id, is_sent_by_initiator, is_sent_by_target)
values
  (1, 3, true, false),
  (2, 4, true, false),
  (3, 6, true, false),
  (3, 7, true, false),
  (3, 8, true, false),
  (3, 9, true, false),
  (4, 10, true, true),
  (5, 11, true, false),
  (5, 12, false, true),
  (5, 13, false, true),
  (6, 14, true, true);

select parley._p_add_queue(q.id, 'dbo', q.name, current_user::regrole)
from (values (1, 'QueryNotificationErrorsQueue'), (2, 'EventNotificationErrorsQueue'), (3, 'ServiceBrokerQueue')) as q (id, name);

select parley._p_create_queue_view(q.queue_id) from parley._p_queue as q;

insert into parley._p_service (service_id, name, owner, queue_id)
select s.id, s.name, current_user::regrole, s.id
from (
  values
    (1, 'http://schemas.microsoft.com/SQL/Notifications/QueryNotificationService'),
    (2, 'http://schemas.microsoft.com/SQL/Notifications/EventNotificationService'),
    (3, 'http://schemas.microsoft.com/SQL/ServiceBroker/ServiceBroker')
) as s (id, name);

insert into parley._p_service_contract (service_id, service_contract_id)
values (1, 1), (2, 2), (3, 3), (3, 4), (3, 5);

-- An ordinary route: it may be changed and dropped.
insert into parley._p_route (route_id, name, owner, is_inbound, address, next_hop, rank)
values (nextval('parley._p_object_id'), 'AutoCreatedLocal', current_user::regrole, false, 'LOCAL', 'LOCAL', 2);

-- Everybody may call the interface; each function looks at rights itself. The private functions are nobody's business.
grant usage on schema parley, parley_queue to public;

-- The tables into which SEND inserts, but for their column caller; and the ticket of whoever reads it.
grant insert (conversation_handle, message_type, body, trace_context) on parley._p_outgoing to public;

grant insert (conversation_handle, message_type, bodies, trace_context) on parley._p_outgoing_batch to public;

grant insert (conversation_handles, message_type, body) on parley._p_outgoing_to_many to public;

grant select on parley._p_caller_ticket to public;

do $$
declare
  v_function regprocedure;
  v_view regclass;
begin
  for v_function in
    select p.oid::regprocedure from pg_catalog.pg_proc as p where p.pronamespace = 'parley'::regnamespace and p.proname not like '\_p\_%'
  loop
    execute format('grant execute on function %s to public', v_function);
  end loop;
  for v_view in
    select c.oid::regclass
    from pg_catalog.pg_class as c
    where c.relnamespace = 'parley'::regnamespace and c.relkind = 'v' and c.relname not like '\_p\_%'
  loop
    execute format('grant select on %s to public', v_view);
  end loop;
  -- What the views call for whoever looks at them.
  grant execute on function parley._p_current_role(), parley._p_is_administrator(oid), parley._p_state_name(text), parley._p_is_poisoned(integer) to public;
  grant execute on function parley._p_performance_counters(parley.caller), parley._p_may_view_state(oid) to public;
  grant execute on function parley._p_current_term() to public;
  grant execute on function parley._p_broker_state() to public;
  -- What ask who calls, behind functions of several forms.
  grant execute on function parley._p_end_without_error(uuid, parley.caller), parley._p_clean_up(uuid, boolean, parley.caller) to public;
  grant execute on function parley._p_create_contract(text, jsonb, text, parley.caller) to public;
  grant execute on function parley._p_create_contract_of_text(text, text, text, parley.caller) to public;
  grant execute on function parley._p_sees_definition(integer, parley.caller) to public;
  grant execute on function parley._p_failing_conversations(parley.caller), parley._p_count_set_aside(integer) to public;
end
$$;

-- version

insert into parley._p_installation (schema_version, release, oldest_client_version) values (1, '0.1.0', 1);

commit;
