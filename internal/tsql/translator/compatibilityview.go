package translator

// compatibilityViews are the views of SQL Server 2000, which newer versions keep for older scripts.
var compatibilityViews = map[string]struct{ from, columns string }{
	"sysobjects": {"(" + objectsQuery + ") as v", `name sysname
id int = v.object_id
xtype char(2) = v.type
uid smallint = 1
info smallint = 0
status int = 0
base_schema_ver int = 0
replinfo int = 0
parent_obj int = v.parent_object_id
crdate datetime = timestamptz '1900-01-01 00:00:00+00'
ftcatid smallint = 0
schema_ver int = 0
stats_schema_ver int = 0
type char(2)
userstat smallint = 1
sysstat smallint = 0
indexdel smallint = 0
refdate datetime = timestamptz '1900-01-01 00:00:00+00'
version int = 0
deltrig int = 0
instrig int = 0
updtrig int = 0
seltrig int = 0
category int = 0
cache smallint = 0`},
	"syscolumns": {columnsFrom, `name sysname
id int = v.object_id
xtype tinyint = ` + systemType + `
typestat tinyint = 0
xusertype smallint = t.id
length smallint = v.max_length
xprec tinyint = v.precision
xscale tinyint = v.scale
colid smallint = v.column_id
xoffset smallint = 0
bitpos tinyint = 0
reserved tinyint = 0
colstat smallint = v.is_identity::integer
cdefault int = v.default_object_id
domain int = 0
number smallint = 0
colorder smallint = v.column_id
offset smallint = 0
collationid int = null
language int = 0
status tinyint = 8 * v.is_nullable::integer + 128 * v.is_identity::integer
type tinyint = ` + systemType + `
usertype smallint = t.id
prec smallint = v.precision
scale int
iscomputed int = v.is_computed::integer
isoutparam int = 0
isnullable int = v.is_nullable::integer
collation sysname = v.collation_name`},
	"sysusers": {"pg_catalog.pg_roles as v where v.rolname !~ '^pg_'", `uid smallint = v.oid::bigint % 32768
status smallint = 0
name sysname = v.rolname
createdate datetime = timestamptz '1900-01-01 00:00:00+00'
updatedate datetime = timestamptz '1900-01-01 00:00:00+00'
altuid smallint = 1
gid smallint = 0
hasdbaccess int = v.rolcanlogin::integer
islogin int = v.rolcanlogin::integer
isntname int = 0
isntgroup int = 0
isntuser int = 0
issqluser int = v.rolcanlogin::integer
isaliased int = 0
issqlrole int = (not v.rolcanlogin)::integer
isapprole int = 0`},
	"sysprocesses": {"pg_catalog.pg_stat_activity as v", `spid smallint = v.pid % 32768
kpid smallint = v.pid % 32768
blocked smallint = coalesce((pg_blocking_pids(v.pid))[1] % 32768, 0)
waittime bigint = 0
lastwaittype nchar(32) = coalesce(v.wait_event, 'MISCELLANEOUS')
waitresource nchar(256) = ''
dbid int = ` + databaseNumber + `
uid smallint = 1
cpu int = 0
physical_io bigint = 0
memusage int = 0
login_time datetime = v.backend_start
last_batch datetime = coalesce(v.query_start, v.backend_start)
ecid smallint = 0
open_tran smallint = (v.xact_start is not null)::integer
status nchar(30) = case when v.backend_type <> 'client backend' then 'background' when v.wait_event_type = 'Lock' then 'suspended'
  when v.state = 'active' then 'runnable' else 'sleeping' end
hostname nchar(128) = coalesce(v.client_hostname, host(v.client_addr), '')
program_name nchar(128) = coalesce(v.application_name, '')
hostprocess nchar(10) = ''
cmd nchar(16) = case when v.backend_type <> 'client backend' then upper(v.backend_type)
  when v.state = 'active' then upper(split_part(ltrim(v.query), ' ', 1)) else 'AWAITING COMMAND' end
nt_domain nchar(128) = ''
nt_username nchar(128) = ''
loginame nchar(128) = coalesce(v.usename, 'sa')
request_id int = 0`},
}

func init() { //nolint:gochecknoinits // the views are registered one by one
	for name, view := range compatibilityViews {
		columns, sql := viewOf(view.from, view.columns)
		for _, schema := range []string{"sys.", "dbo.", "."} {
			Register(schema+name, columns, sql)
		}
	}
}
