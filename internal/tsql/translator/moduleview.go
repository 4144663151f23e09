package translator

// The views of modules.
func init() { //nolint:gochecknoinits // the views are registered one by one
	Register("sys.sql_modules", "object_id int, definition nvarchar(max), uses_ansi_nulls bit, uses_quoted_identifier bit",
		"select m.object_id, "+textOf("m.definition")+", true, true from ("+moduleTexts+") as m")
	Register("INFORMATION_SCHEMA.ROUTINES", "SPECIFIC_CATALOG sysname, SPECIFIC_SCHEMA sysname, SPECIFIC_NAME sysname, "+
		"ROUTINE_CATALOG sysname, ROUTINE_SCHEMA sysname, ROUTINE_NAME sysname, ROUTINE_TYPE varchar(20), ROUTINE_DEFINITION nvarchar(4000)",
		"select "+textOf(ownDatabase)+", "+textOf("n.nspname")+", o.name, "+textOf(ownDatabase)+", "+textOf("n.nspname")+
			", o.name, "+textOf("case o.type when 'P ' then 'PROCEDURE' else 'FUNCTION' end")+", "+textOf("left(m.definition, 4000)")+
			" from ("+objectsQuery+") as o join pg_catalog.pg_namespace as n on n.oid = o.schema_id"+
			" left join ("+moduleTexts+") as m on m.object_id = o.object_id where o.type in ('P ', 'FN', 'IF')")
	Register("sys.trigger_events", "object_id int, type int, type_desc nvarchar(60)",
		"select g.oid::integer, e.number, "+textOf("e.name")+` from pg_catalog.pg_trigger as g
cross join (values (1, 'INSERT', 4), (2, 'UPDATE', 16), (3, 'DELETE', 8)) as e (number, name, bit)
where not g.tgisinternal and g.tgtype & e.bit > 0 and pg_catalog.obj_description(g.oid, 'pg_trigger') ~* '^\s*(create|alter)'`)
}
