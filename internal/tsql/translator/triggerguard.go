package translator

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// guardBody is the function of PostgreSQL's triggers: it refuses a change by a client that does not run T-SQL.
// A session of T-SQL whose knowledge of the triggers is old gets TSQL1, and asks again. Members of the owner may leave the trigger out.
const guardBody = `
declare
  v_mode text := coalesce(current_setting('parley.tsql', true), '');
begin
  if v_mode = 'on' then
    if position((select concat(',', g.oid, '/') from pg_trigger as g where g.tgrelid = tg_relid and g.tgname = tg_name)
        in concat(',', current_setting('parley.tsql_fires', true))) = 0 then
      raise exception 'the session does not know the T-SQL trigger %', tg_name using errcode = 'TSQL1';
    end if;
  elsif tg_level = 'ROW' or v_mode <> 'skip' or not pg_has_role((select c.relowner from pg_class as c where c.oid = tg_relid), 'usage') then
    raise exception 'table %.% has the T-SQL trigger %', tg_table_schema, tg_table_name, tg_name
      using errcode = 'feature_not_supported',
        detail = 'Only parley tsql runs the trigger; a change by this client would leave it out.',
        hint = 'Change the table through parley tsql. The owner of the table may leave the trigger out with: set parley.tsql = ''skip''.';
  end if;
  return null;
end `

// guardedTrigger makes a trigger that calls the guard. The guard runs as whoever changes the table, and its owner may replace its body:
// so one is used that belongs to a role that may change the triggers of the table anyway, and never another's, whatever its name.
const guardedTrigger = `
declare
  v_relation constant oid := %[1]d;
  v_schema name;
  v_name name;
begin
  select n.nspname, p.proname into v_schema, v_name
  from pg_class as c
  join pg_namespace as n on n.oid in (to_regnamespace('dbo'), c.relnamespace)
  join pg_proc as p on p.pronamespace = n.oid
  join pg_roles as o on o.oid = p.proowner
  where c.oid = v_relation and starts_with(p.proname::text, '_p_tsql_trigger') and p.pronargs = 0
    and p.prorettype = 'trigger'::regtype and p.prosrc = $guard$%[2]s$guard$
    and not p.prosecdef and p.proconfig = array['search_path=pg_catalog, pg_temp']
    and (o.oid = c.relowner or o.rolname = current_user or o.rolsuper)
  order by p.oid
  limit 1;
  if not found then
    select n.nspname, '_p_tsql_trigger' into v_schema, v_name
    from pg_class as c
    join pg_namespace as n on n.oid in (to_regnamespace('dbo'), c.relnamespace)
    where c.oid = v_relation
    order by has_schema_privilege(n.oid, 'create') desc, n.nspname = 'dbo' desc
    limit 1;
    if to_regprocedure(format('%%I.%%I()', v_schema, v_name)) is not null then
      v_name := '_p_tsql_trigger_' || gen_random_uuid(); -- another role has the name
    end if;
    execute format('create function %%I.%%I() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as %%L',
      v_schema, v_name, $guard$%[2]s$guard$);
  end if;
  execute %[3]s || format('%%I.%%I', v_schema, v_name) || %[4]s;
end`

// outdatedState is the SQLSTATE of the guard for a session that does not know the trigger.
const outdatedState = "TSQL1"

// announceQuery has the guard know which triggers a change fires, and gives them as the table has them now.
const announceQuery = `select set_config('parley.tsql_fires', v.list, false) from (
  select coalesce(string_agg(concat(g.oid, '/', g.tgenabled, ','), '' order by g.oid), '') as list
  from pg_catalog.pg_trigger as g where g.tgrelid = $1::text::oid and not g.tgisinternal
    and pg_catalog.obj_description(g.oid, 'pg_trigger') ~* '^\s*(create|alter)'
) as v`

// announce is asked before a change of a table with triggers: another session may have changed them since they were read.
func (t *Translator) announce(ctx context.Context, r *relation) *fault.Error {
	now := ""
	if err := t.rows(ctx, announceQuery, []string{itoa(int(r.oid))}, func(row []string) { now = row[0] }); err != nil {
		return err
	}
	if now != r.fires {
		return outdated(r)
	}
	return nil
}

// outdated is the error of a change of a table whose triggers have changed; it is seen only where they change all the time.
func outdated(r *relation) *fault.Error {
	return &fault.Error{
		Number: 50000, Severity: 16, State: 1, IsOutdated: true,
		Message: "The triggers of table '" + r.name + "' were changed meanwhile. Run the statement again.",
	}
}
