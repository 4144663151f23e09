package translator

// The views of keys, indexes and columns of a kind.
func init() { //nolint:gochecknoinits // the views are registered one by one
	const key = ` from pg_catalog.pg_constraint as k
join pg_catalog.pg_class as c on c.oid = k.conrelid join pg_catalog.pg_namespace as n on n.oid = c.relnamespace`
	const cell = `cross join lateral unnest(k.conkey) with ordinality as u (number, place)
join pg_catalog.pg_attribute as a on a.attrelid = k.conrelid and a.attnum = u.number`
	named := textOf(ownDatabase) + ", " + textOf("n.nspname") + ", " + textOf("k.conname")
	const names = "CONSTRAINT_CATALOG sysname, CONSTRAINT_SCHEMA sysname, CONSTRAINT_NAME sysname"
	table := textOf(ownDatabase) + ", " + textOf("n.nspname") + ", " + textOf("c.relname")
	const tableNames = "TABLE_CATALOG sysname, TABLE_SCHEMA sysname, TABLE_NAME sysname"
	isOwn := " and k.conname !~ '^(length|range) of ' and " + visible

	Register("INFORMATION_SCHEMA.TABLE_CONSTRAINTS", names+", "+tableNames+", CONSTRAINT_TYPE varchar(11), IS_DEFERRABLE varchar(2)",
		"select "+named+", "+table+", "+textOf("case k.contype when 'p' then 'PRIMARY KEY' when 'u' then 'UNIQUE'"+
			" when 'f' then 'FOREIGN KEY' else 'CHECK' end")+", "+textOf("'NO'")+key+" where k.contype in ('p', 'u', 'f', 'c')"+isOwn)
	Register("INFORMATION_SCHEMA.KEY_COLUMN_USAGE", names+", "+tableNames+", COLUMN_NAME sysname, ORDINAL_POSITION int",
		"select "+named+", "+table+", "+textOf("a.attname")+", u.place::integer"+key+" "+cell+" where k.contype in ('p', 'u', 'f')"+isOwn)
	Register("INFORMATION_SCHEMA.CONSTRAINT_COLUMN_USAGE", tableNames+", COLUMN_NAME sysname, "+names,
		"select "+table+", "+textOf("a.attname")+", "+named+key+" "+cell+" where k.contype in ('p', 'u', 'f', 'c')"+isOwn)
	Register("INFORMATION_SCHEMA.CHECK_CONSTRAINTS", names+", CHECK_CLAUSE nvarchar(4000)",
		"select "+named+", "+textOf("pg_catalog.pg_get_expr(k.conbin, k.conrelid)")+key+" where k.contype = 'c'"+isOwn)
	Register("INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS", names+", UNIQUE_CONSTRAINT_CATALOG sysname, UNIQUE_CONSTRAINT_SCHEMA sysname, "+
		"UNIQUE_CONSTRAINT_NAME sysname, MATCH_OPTION varchar(7), UPDATE_RULE varchar(11), DELETE_RULE varchar(11)",
		"select "+named+", "+textOf(ownDatabase)+", "+textOf("n.nspname")+", "+
			textOf("(select i.relname from pg_catalog.pg_class as i where i.oid = k.conindid)")+", "+textOf("'SIMPLE'")+", "+
			textOf(ruleOf("k.confupdtype"))+", "+textOf(ruleOf("k.confdeltype"))+key+" where k.contype = 'f'"+isOwn)
	Register("sys.foreign_key_columns", "constraint_object_id int, constraint_column_id int, parent_object_id int, parent_column_id int, "+
		"referenced_object_id int, referenced_column_id int", "select k.oid::integer, u.place::integer, k.conrelid::integer, "+
		"u.number::integer, k.confrelid::integer, k.confkey[u.place]::integer"+key+
		" cross join lateral unnest(k.conkey) with ordinality as u (number, place) where k.contype = 'f' and "+visible)
	Register("sys.sequences", "name sysname, object_id int, schema_id int, start_value bigint, increment bigint, minimum_value bigint, "+
		"maximum_value bigint, is_cycling bit, current_value bigint, type_desc nvarchar(60)",
		"select "+textOf("c.relname")+", c.oid::integer, n.oid::integer, s.seqstart, s.seqincrement, s.seqmin, s.seqmax, s.seqcycle, "+
			"(case when pg_catalog.has_sequence_privilege(c.oid, 'select, usage') then "+
			"coalesce(pg_catalog.pg_sequence_last_value(s.seqrelid), s.seqstart) end), "+textOf("'SEQUENCE_OBJECT'")+
			" from pg_catalog.pg_sequence as s join pg_catalog.pg_class as c on c.oid = s.seqrelid"+
			" join pg_catalog.pg_namespace as n on n.oid = c.relnamespace where not exists (select from pg_catalog.pg_depend as p"+
			" where p.objid = c.oid and p.deptype in ('a', 'i') and p.refobjsubid > 0) and c.relname !~ '^_p_' and "+visible)
	Register("sys.table_types", "name sysname, user_type_id int, schema_id int, is_user_defined bit, is_table_type bit",
		"select "+textOf("t.typname")+", t.oid::integer, n.oid::integer, true, true from pg_catalog.pg_type as t"+
			" join pg_catalog.pg_namespace as n on n.oid = t.typnamespace"+
			" where t.typtype = 'c' and pg_catalog.obj_description(t.oid, 'pg_type') ~* '^\\s*create' and "+visible)
}

// ruleOf writes what a foreign key does with the rows that refer to a row.
func ruleOf(column string) string {
	return "case " + column + " when 'c' then 'CASCADE' when 'n' then 'SET NULL' when 'd' then 'SET DEFAULT' else 'NO ACTION' end"
}
