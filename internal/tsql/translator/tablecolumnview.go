package translator

// columnLines are the columns of sys.columns, with which the views of kinds of columns begin too. The type of a column is joined as t.
const columnLines = `object_id int
name sysname
column_id int
system_type_id tinyint = ` + systemType + `
user_type_id int = t.id
max_length smallint
precision tinyint
scale tinyint
collation_name sysname
is_nullable bit
is_ansi_padded bit = true
is_rowguidcol bit = false
is_identity bit
is_computed bit
is_filestream bit = false
is_replicated bit = false
is_non_sql_subscribed bit = false
is_merge_published bit = false
is_dts_replicated bit = false
is_xml_document bit = false
xml_collection_id int = 0
default_object_id int
rule_object_id int = 0
is_sparse bit = false
is_column_set bit = false
generated_always_type tinyint = 0
generated_always_type_desc nvarchar(60) = 'NOT_APPLICABLE'
is_hidden bit = false
is_masked bit = false`

var columnsFrom = "(" + columnsQuery + ") as v left join (" + typesQuery + ") as t (name, id) on t.name = v.type_name"

func init() { //nolint:gochecknoinits // the views are registered one by one
	for _, name := range []string{"sys.columns", "sys.all_columns"} {
		columns, sql := viewOf(columnsFrom, columnLines)
		Register(name, columns, sql)
	}
	columns, sql := viewOf(columnsFrom+` join pg_catalog.pg_depend as p
    on p.refobjid = v.object_id::oid and p.refobjsubid = v.column_id and p.deptype = 'i'
  join pg_catalog.pg_sequence as s on s.seqrelid = p.objid where v.is_identity`, columnLines+`
seed_value bigint = s.seqstart
increment_value bigint = s.seqincrement
last_value bigint = `+lastOfSequence+`
is_not_for_replication bit = false`)
	Register("sys.identity_columns", columns, sql)
	columns, sql = viewOf(columnsFrom+` join pg_catalog.pg_attrdef as d on d.adrelid = v.object_id::oid and d.adnum = v.column_id
where v.is_computed`, columnLines+`
definition nvarchar(max) = pg_catalog.pg_get_expr(d.adbin, d.adrelid)
uses_database_collation bit = true
is_persisted bit = true`)
	Register("sys.computed_columns", columns, sql)
}
