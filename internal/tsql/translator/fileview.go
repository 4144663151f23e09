package translator

// filesFrom has two files for each database, as SQL Server has them: PostgreSQL keeps a database in a folder. Scripts ask for them to
// write the files of a new database, which have no effect.
var filesFrom = databasesFrom + ` cross join (values (1, 0, 'ROWS', '', '.mdf'), (2, 1, 'LOG', '_log', '.ldf'))
  as f (id, type, kind, word, ending)`

const fileLines = `file_id int = f.id
file_guid uniqueidentifier = null
type tinyint = f.type
type_desc nvarchar(60) = f.kind
data_space_id int = 1 - f.type
name sysname = case when v.name = 'master' and f.id = 2 then 'mastlog' when v.name = 'master' then v.name else v.name || f.word end
physical_name nvarchar(260) = case when v.name = 'master' and f.id = 2 then 'mastlog' when v.name = 'master' then v.name
  else v.name || f.word end || f.ending
state tinyint = 0
state_desc nvarchar(60) = 'ONLINE'
size int = case when f.id = 2 or not has_database_privilege(v.oid, 'connect') then 0 else pg_database_size(v.oid) / 8192 end
max_size int = -1
growth int = 8192
is_media_read_only bit = false
is_read_only bit = false
is_sparse bit = false
is_percent_growth bit = false
is_name_reserved bit = false`

func init() { //nolint:gochecknoinits // the views are registered one by one
	columns, sql := viewOf(filesFrom, "database_id int = case v.datname when 'postgres' then 1 else v.oid::bigint end\n"+fileLines)
	Register("sys.master_files", columns, sql)
	columns, sql = viewOf(filesFrom+" where v.datname = current_database()", fileLines)
	Register("sys.database_files", columns, sql)
}
