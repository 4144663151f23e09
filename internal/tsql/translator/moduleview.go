package translator

// The options of a module stand between WITH and AS. A parenthesis ends what may be one: WITH of a table or of a common table has some.
const (
	actsAsPattern     = `\mWITH\s+[\w\s,]*?EXEC(?:UTE)?\s+AS\s+(OWNER|SELF|''[^'']*'')`
	recompiledPattern = `\mWITH\s+[\w\s,'']*?RECOMPILE\s*(,\s*(ENCRYPTION|EXEC(UTE)?\s+AS\s+[\w'']+)\s*)*(FOR\s+REPLICATION\s+)?\mAS\M`
)

// The views of modules.
func init() { //nolint:gochecknoinits // the views are registered one by one
	columns, sql := viewOf("("+moduleTexts+") as v left join pg_catalog.pg_proc as p on p.oid = v.object_id::oid"+
		" cross join lateral (select upper((regexp_match(v.definition, '"+actsAsPattern+"', 'i'))[1])) as a (who)", `object_id int
definition nvarchar(max)
uses_ansi_nulls bit = true
uses_quoted_identifier bit = coalesce(p.prosrc !~ '^-- T-SQL [^\n]*"quoted_identifier":false', true)
is_schema_bound bit = v.definition ~* '\mSCHEMABINDING\M'
uses_database_collation bit = false
is_recompiled bit = v.definition ~* '`+recompiledPattern+`'
null_on_null_input bit = v.definition ~* '\mRETURNS\s+NULL\s+ON\s+NULL\s+INPUT\M'
execute_as_principal_id int = case when a.who = 'OWNER' then -2 when a.who = 'SELF' then p.proowner::bigint
  when a.who like '''%' then (select r.oid::bigint from pg_catalog.pg_roles as r where upper(r.rolname) = trim('''' from a.who) limit 1) end
uses_native_compilation bit = false
inline_type bit = false
is_inlineable bit = false`)
	Register("sys.sql_modules", columns, sql)
	Register("sys.all_sql_modules", columns, sql)
	Register("INFORMATION_SCHEMA.ROUTINES", "SPECIFIC_CATALOG sysname, SPECIFIC_SCHEMA sysname, SPECIFIC_NAME sysname, "+
		"ROUTINE_CATALOG sysname, ROUTINE_SCHEMA sysname, ROUTINE_NAME sysname, ROUTINE_TYPE varchar(20), ROUTINE_DEFINITION nvarchar(4000)",
		"select "+textOf(ownDatabase)+", "+textOf("n.nspname")+", o.name, "+textOf(ownDatabase)+", "+textOf("n.nspname")+
			", o.name, "+textOf("case o.type when 'P ' then 'PROCEDURE' else 'FUNCTION' end")+", "+textOf("left(m.definition, 4000)")+
			" from ("+objectsQuery+") as o join pg_catalog.pg_namespace as n on n.oid = o.schema_id"+
			" left join ("+moduleTexts+") as m on m.object_id = o.object_id where o.type in ('P ', 'FN', 'IF')")
	Register("sys.trigger_events", "object_id int, type int, type_desc nvarchar(60)", triggerEvents)
}

// triggerEvents has the events of triggers of tables.
var triggerEvents = `select g.oid::integer as object_id, e.number as type, ` + textOf("e.name") + ` as type_desc
from pg_catalog.pg_trigger as g cross join (values (1, 'INSERT', 4), (2, 'UPDATE', 16), (3, 'DELETE', 8)) as e (number, name, bit)
where not g.tgisinternal and g.tgtype & e.bit > 0 and pg_catalog.obj_description(g.oid, 'pg_trigger') ~* '^\s*(create|alter)'`
