package translator

// objectLines are the columns of sys.objects, with which every view of a kind of objects begins.
const objectLines = `name sysname
object_id int
principal_id int = null
schema_id int
parent_object_id int
type char(2)
type_desc nvarchar(60)
create_date datetime = timestamptz '1900-01-01 00:00:00+00'
modify_date datetime = timestamptz '1900-01-01 00:00:00+00'
is_ms_shipped bit
is_published bit = false
is_schema_published bit = false`

// objectViews are the views of kinds of objects: their types, what is joined to sys.objects, and the columns behind those of it.
var objectViews = []struct{ name, types, from, columns string }{
	{"sys.objects", "", "", ""},
	{"sys.all_objects", "", "", ""},
	{"sys.procedures", "'P '", "", `
is_auto_executed bit = false
is_execution_replicated bit = false
is_repl_serializable_only bit = false
skips_repl_constraints bit = false`},
	{"sys.tables", "'U '", "", `
lob_data_space_id int = 0
filestream_data_space_id int = null
max_column_id_used int = (select max(a.attnum) from pg_catalog.pg_attribute as a where a.attrelid = v.object_id::oid)
lock_on_bulk_load bit = false
uses_ansi_nulls bit = true
is_replicated bit = false
has_replication_filter bit = false
is_merge_published bit = false
is_sync_tran_subscribed bit = false
has_unchecked_assembly_data bit = false
text_in_row_limit int = 0
large_value_types_out_of_row bit = false
is_tracked_by_cdc bit = false
lock_escalation tinyint = 0
lock_escalation_desc nvarchar(60) = 'TABLE'
is_filetable bit = false
is_memory_optimized bit = false
durability tinyint = 0
durability_desc nvarchar(60) = 'SCHEMA_AND_DATA'
temporal_type tinyint = 0
temporal_type_desc nvarchar(60) = 'NON_TEMPORAL_TABLE'
history_table_id int = null`},
	{"sys.views", "'V '", "", `
is_replicated bit = false
has_replication_filter bit = false
has_opaque_metadata bit = false
has_unchecked_assembly_data bit = false
with_check_option bit = exists (select from pg_catalog.pg_class as w
  where w.oid = v.object_id::oid and w.reloptions::text like '%check_option%')
is_date_correlation_view bit = false`},
	{"sys.foreign_keys", "'F '", " join pg_catalog.pg_constraint as k on k.oid = v.object_id::oid", `
referenced_object_id int = k.confrelid
key_index_id int = ` + indexNumberOf("k.conindid") + `
is_disabled bit = ` + isDisabled + `
is_not_for_replication bit = false
is_not_trusted bit = not k.convalidated
delete_referential_action tinyint = strpos('acnd', k.confdeltype::text) - 1
delete_referential_action_desc nvarchar(60) = replace(` + ruleOf("k.confdeltype") + `, ' ', '_')
update_referential_action tinyint = strpos('acnd', k.confupdtype::text) - 1
update_referential_action_desc nvarchar(60) = replace(` + ruleOf("k.confupdtype") + `, ' ', '_')
is_system_named bit = starts_with(k.conname, 'FK__')`},
	{"sys.check_constraints", "'C '", " join pg_catalog.pg_constraint as k on k.oid = v.object_id::oid", `
is_disabled bit = ` + isDisabled + `
is_not_for_replication bit = false
is_not_trusted bit = not k.convalidated
parent_column_id int = case when array_length(k.conkey, 1) = 1 then k.conkey[1] else 0 end
definition nvarchar(max) = pg_catalog.pg_get_expr(k.conbin, k.conrelid)
uses_database_collation bit = true
is_system_named bit = starts_with(k.conname, 'CK__')`},
	{"sys.key_constraints", "'PK', 'UQ'", " join pg_catalog.pg_constraint as k on k.oid = v.object_id::oid", `
unique_index_id int = ` + indexNumberOf("k.conindid") + `
is_system_named bit = k.conname ~ '^(PK|UQ)__'
is_enforced bit = true`},
	{"sys.internal_tables", "'IT'", "", `
internal_type tinyint = 201
internal_type_desc nvarchar(60) = 'QUEUE_MESSAGES'
parent_id int = v.parent_object_id
parent_minor_id int = 0
lob_data_space_id int = 0
filestream_data_space_id int = null`},
	{"sys.triggers", "'TR'", " join pg_catalog.pg_trigger as g on g.oid = v.object_id::oid", `
parent_class tinyint = 1
parent_class_desc nvarchar(60) = 'OBJECT_OR_COLUMN'
parent_id int = v.parent_object_id
is_disabled bit = g.tgenabled = 'D'
is_not_for_replication bit = false
is_instead_of_trigger bit = g.tgnargs > 0`},
}

func init() { //nolint:gochecknoinits // the views are registered one by one
	for _, v := range objectViews {
		from := "(" + objectsQuery + ") as v" + v.from
		if v.types != "" {
			from += " where v.type in (" + v.types + ")"
		}
		columns, sql := viewOf(from, objectLines+v.columns)
		Register(v.name, columns, sql)
	}
	columns, sql := viewOf("("+objectsQuery+`) as v join pg_catalog.pg_attrdef as d on d.oid = v.object_id::oid
join pg_catalog.pg_attribute as a on a.attrelid = d.adrelid and a.attnum = d.adnum where v.type = 'D '`, objectLines+`
parent_column_id int = a.attnum
definition nvarchar(max) = pg_catalog.pg_get_expr(d.adbin, d.adrelid)
is_system_named bit = split_part(coalesce(pg_catalog.col_description(a.attrelid, a.attnum), ''), e'\n', 2) = ''`)
	Register("sys.default_constraints", columns, sql)
}
