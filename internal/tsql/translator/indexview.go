package translator

// indexNumber numbers the index i of a table: 1 is its clustered one, which the primary key has; those without one begin at 2, and 0 is
// the heap of a table without a primary key.
const indexNumber = `(case when i.indisprimary then 1
  else 1 + row_number() over (partition by i.indrelid, i.indisprimary order by i.indexrelid) end)::integer`

// indexNumberOf writes the number of an index that an expression names.
func indexNumberOf(index string) string {
	return `(select u.number from (select i.indexrelid, ` + indexNumber + ` as number from pg_catalog.pg_index as i
  where i.indrelid = (select o.indrelid from pg_catalog.pg_index as o where o.indexrelid = ` + index + `)) as u
  where u.indexrelid = ` + index + `)`
}

// tableIndexes has the indexes of tables, and the heap of each table without a primary key.
const tableIndexes = `select i.indrelid as object_id, split_part(c.relname, chr(160), 1) as name, ` + indexNumber + ` as index_id,
  i.indexrelid as place, i.indisunique as is_unique, i.indisprimary as is_primary_key,
  exists (select from pg_catalog.pg_constraint as k where k.conindid = i.indexrelid and k.contype = 'u') as is_unique_constraint,
  pg_catalog.pg_get_expr(i.indpred, i.indrelid) as filter
from pg_catalog.pg_index as i join pg_catalog.pg_class as c on c.oid = i.indexrelid
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace where ` + visible + `
union all
select c.oid, null, 0, c.oid, false, false, false, null
from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where c.relkind in ('r', 'p') and ` + visible + `
  and not exists (select from pg_catalog.pg_index as i where i.indrelid = c.oid and i.indisprimary)`

// rowsOfTable counts the rows of the table c. Those of a large table, or of one that the role may not read, are the estimate of PostgreSQL.
const rowsOfTable = `(case when pg_catalog.pg_relation_size(c.oid) > 67108864 or not pg_catalog.has_table_privilege(c.oid, 'select')
  then greatest(c.reltuples, 0)::bigint
  else (xpath('/row/n/text()', query_to_xml(format('select count(*) as n from %I.%I', n.nspname, c.relname), false, true,
    '')))[1]::text::bigint
  end)`

// partitionsFrom has the indexes of tables, and the messages of queues: the table inside a queue has its number with a minus.
const partitionsFrom = `(select i.object_id::integer, i.name, i.index_id, i.place from (` + tableIndexes + `) as i
  union all
  select -q.oid::integer, 'queue_clustered_index', 1, q.oid from pg_catalog.pg_class as q
  where q.relnamespace = to_regnamespace('parley_queue') and q.relkind = 'v' and strpos(q.relname, '.') = 0
) as v join pg_catalog.pg_class as c on c.oid = abs(v.object_id)::oid
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace`

func init() { //nolint:gochecknoinits // the views are registered one by one
	columns, sql := viewOf("("+tableIndexes+") as v", `object_id int
name sysname
index_id int
type tinyint = least(v.index_id, 2)
type_desc nvarchar(60) = case v.index_id when 0 then 'HEAP' when 1 then 'CLUSTERED' else 'NONCLUSTERED' end
is_unique bit
data_space_id int = 1
ignore_dup_key bit = false
is_primary_key bit
is_unique_constraint bit
fill_factor tinyint = 0
is_padded bit = false
is_disabled bit = false
is_hypothetical bit = false
is_ignored_in_optimization bit = false
allow_row_locks bit = true
allow_page_locks bit = true
has_filter bit = v.filter is not null
filter_definition nvarchar(max) = v.filter
compression_delay int = null
suppress_dup_key_messages bit = false
auto_created bit = false
optimize_for_sequential_key bit = false`)
	Register("sys.indexes", columns, sql)

	Register("sys.index_columns", "object_id int, index_id int, index_column_id int, column_id int, key_ordinal tinyint, "+
		"partition_ordinal tinyint, is_descending_key bit, is_included_column bit", `select i.object_id, i.index_id, u.place::integer,
  u.number::integer, (case when u.place <= i.keys then u.place else 0 end)::smallint, 0::smallint,
  coalesce((i.options[u.place - 1] & 1) = 1, false), u.place > i.keys
from (select i.indrelid::integer as object_id, `+indexNumber+` as index_id, i.indkey::smallint[] as numbers,
    i.indoption::smallint[] as options, i.indnkeyatts as keys
  from pg_catalog.pg_index as i join pg_catalog.pg_class as c on c.oid = i.indexrelid
  join pg_catalog.pg_namespace as n on n.oid = c.relnamespace where `+visible+`) as i
cross join lateral unnest(i.numbers) with ordinality as u (number, place)`)

	columns, sql = viewOf(partitionsFrom, `partition_id bigint = v.place
object_id int
index_id int
partition_number int = 1
hobt_id bigint = v.place
rows bigint = `+rowsOfTable+`
filestream_filegroup_id smallint = 0
data_compression tinyint = 0
data_compression_desc nvarchar(60) = 'NONE'
xml_compression bit = false
xml_compression_desc varchar(3) = 'OFF'`)
	Register("sys.partitions", columns, sql)

	columns, sql = viewOf(partitionsFrom, `partition_id bigint = v.place
object_id int
index_id int
partition_number int = 1
in_row_data_page_count bigint = pg_catalog.pg_relation_size(v.place) / 8192
in_row_used_page_count bigint = pg_catalog.pg_relation_size(v.place) / 8192
in_row_reserved_page_count bigint = pg_catalog.pg_relation_size(v.place) / 8192
lob_used_page_count bigint = 0
lob_reserved_page_count bigint = 0
row_overflow_used_page_count bigint = 0
row_overflow_reserved_page_count bigint = 0
used_page_count bigint = pg_catalog.pg_relation_size(v.place) / 8192
reserved_page_count bigint = pg_catalog.pg_relation_size(v.place) / 8192
row_count bigint = `+rowsOfTable)
	Register("sys.dm_db_partition_stats", columns, sql)

	columns, sql = viewOf(partitionsFrom, `id int = v.object_id
status int = 0
indid smallint = v.index_id
rowcnt bigint = `+rowsOfTable+`
rows int = `+rowsOfTable+`
name sysname`)
	for _, name := range []string{"sys.sysindexes", "dbo.sysindexes", ".sysindexes"} {
		Register(name, columns, sql)
	}
}
