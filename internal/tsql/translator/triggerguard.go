package translator

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// guardStatements make the function of PostgreSQL's triggers: it refuses a change by a client that does not run T-SQL.
// A session of T-SQL whose knowledge of the triggers is old gets TSQL1, and asks again. Members of the owner may leave the trigger out.
const guardStatements = `do $parley$
begin
  if to_regprocedure('dbo._p_tsql_trigger()') is not null then
    return; -- another role may own it
  end if;
  create function dbo._p_tsql_trigger() returns trigger language plpgsql set search_path = pg_catalog, pg_temp as $guard$
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
end $guard$;
end $parley$`

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
