package security

import "context"

// leavingBlock has the server write a block that takes the rights of a role in this database back, and ends with the statement $2: in SQL
// Server the rights of a user go with it. It is empty where there is nothing to do.
const leavingBlock = `select case when w.statements is not null then pg_catalog.format('do %L', 'begin ' || w.statements || '; end') end
from (
  select string_agg(x.statement, '; ' order by x.place) as statements from (
    select 1 as place, case s.classid
      when 'pg_catalog.pg_class'::regclass then (select pg_catalog.format('revoke all on %s %I.%I from %I',
          case c.relkind when 'S' then 'sequence' else 'table' end, n.nspname, c.relname, $1::text)
        from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace where c.oid = s.objid)
      when 'pg_catalog.pg_namespace'::regclass then (select pg_catalog.format('revoke all on schema %I from %I', n.nspname, $1::text)
        from pg_catalog.pg_namespace as n where n.oid = s.objid)
      when 'pg_catalog.pg_proc'::regclass then pg_catalog.format('revoke all on routine %s from %I', s.objid::regprocedure, $1::text)
      when 'pg_catalog.pg_type'::regclass then (select pg_catalog.format('revoke all on type %I.%I from %I', n.nspname, t.typname, $1::text)
        from pg_catalog.pg_type as t join pg_catalog.pg_namespace as n on n.oid = t.typnamespace where t.oid = s.objid)
      when 'pg_catalog.pg_database'::regclass then pg_catalog.format('revoke all on database %I from %I', current_database(), $1::text)
      when 'pg_catalog.pg_default_acl'::regclass then (
        select pg_catalog.format('alter default privileges for role %I in schema %I revoke all on %s from %I',
          pg_catalog.pg_get_userbyid(d.defaclrole), n.nspname,
          case d.defaclobjtype when 'r' then 'tables' when 'f' then 'routines' when 'S' then 'sequences' else 'types' end, $1::text)
        from pg_catalog.pg_default_acl as d join pg_catalog.pg_namespace as n on n.oid = d.defaclnamespace where d.oid = s.objid)
      end as statement
    from pg_catalog.pg_shdepend as s
    where s.deptype = 'a' and s.refclassid = 'pg_catalog.pg_authid'::regclass
      and s.refobjid = (select r.oid from pg_catalog.pg_roles as r where r.rolname = $1)
      and (select d.oid from pg_catalog.pg_database as d where d.datname = current_database())
        = case s.classid when 'pg_catalog.pg_database'::regclass then s.objid else s.dbid end
    union all
    select 2, nullif(pg_catalog.format($2::text, $1::text, current_database()), '')
  ) as x where x.statement is not null
) as w`

// leaves takes the rights of a role in this database back and runs a last statement, whose names are the role and the database.
func (t *Translator) leaves(ctx context.Context, role, last string) error {
	block, err := t.ask(ctx, leavingBlock, role, last)
	if err == nil && block != "" {
		_, err = t.ask(ctx, block)
	}
	return err
}
