package translator

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// handleOf writes the handle of the text that a session sent last. It is a hash of the text, as that of a batch is.
func handleOf(session string) string {
	return `('\x02000000'::bytea || sha256(convert_to(` + session + `.query, 'UTF8')))`
}

// requestViews are the views of sessions and of what they do. PostgreSQL shows a role the texts and the waits of its own sessions alone,
// unless it is a member of pg_read_all_stats.
var requestViews = []struct{ name, from, columns string }{
	{"sys.dm_exec_requests", `pg_catalog.pg_stat_activity as v
where v.state = 'active' and v.backend_type = 'client backend'`, `session_id smallint = v.pid % 32768
request_id int = 0
start_time datetime = v.query_start
status nvarchar(30) = case when v.wait_event_type = 'Lock' then 'suspended' else 'running' end
command nvarchar(32) = upper(split_part(ltrim(v.query), ' ', 1))
sql_handle varbinary(64) = ` + handleOf("v") + `
statement_start_offset int = 0
statement_end_offset int = -1
plan_handle varbinary(64) = null
database_id int = ` + databaseNumber + `
user_id int = 1
connection_id uniqueidentifier = null
blocking_session_id smallint = coalesce((pg_blocking_pids(v.pid))[1] % 32768, 0)
wait_type nvarchar(60) = v.wait_event
wait_time int = case when v.wait_event_type = 'Lock' then least(2147483647, 1000 * extract(epoch from clock_timestamp() -
  coalesce((select min(l.waitstart) from pg_catalog.pg_locks as l where l.pid = v.pid and not l.granted), v.query_start))) else 0 end
last_wait_type nvarchar(60) = coalesce(v.wait_event, 'MISCELLANEOUS')
wait_resource nvarchar(256) = ''
open_transaction_count int = (v.xact_start is not null)::integer
open_resultset_count int = 1
transaction_id bigint = coalesce(v.backend_xid::text::bigint, 0)
percent_complete real = 0
estimated_completion_time bigint = 0
cpu_time int = 0
total_elapsed_time int = least(extract(epoch from clock_timestamp() - v.query_start) * 1000, 2147483647)
reads bigint = 0
writes bigint = 0
logical_reads bigint = 0
row_count bigint = 0
granted_query_memory int = 0
group_id int = 2`},
	{"sys.dm_exec_connections", "pg_catalog.pg_stat_activity as v where v.backend_type = 'client backend'", `session_id int = v.pid % 32768
connect_time datetime = v.backend_start
net_transport nvarchar(40) = case when v.client_addr is null then 'Shared memory' else 'TCP' end
protocol_type nvarchar(40) = 'TSQL'
client_net_address varchar(48) = coalesce(host(v.client_addr), '<local machine>')
client_tcp_port int = nullif(v.client_port, -1)
most_recent_sql_handle varbinary(64) = ` + handleOf("v")},
	{"sys.dm_exec_sessions", "pg_catalog.pg_stat_activity as v", `session_id smallint = v.pid % 32768
login_time datetime = v.backend_start
host_name nvarchar(128) = v.client_hostname
program_name nvarchar(128) = v.application_name
login_name nvarchar(128) = v.usename
status nvarchar(30) = case when v.state = 'active' then 'running' else 'sleeping' end
last_request_start_time datetime = v.query_start
last_request_end_time datetime = case when v.state <> 'active' then v.state_change end
is_user_process bit = v.backend_type = 'client backend'
database_id int = ` + databaseNumber + `
open_transaction_count int = (v.xact_start is not null)::integer`},
}

func init() { //nolint:gochecknoinits // the views are registered one by one
	for _, v := range requestViews {
		columns, sql := viewOf(v.from, v.columns)
		Register(v.name, columns, sql)
	}
}

// isTextOfHandle reports whether a function in FROM is sys.dm_exec_sql_text.
func isTextOfHandle(call *ast.Call) bool {
	return len(call.Name.Parts) == 2 && strings.EqualFold(call.Name.String(), "sys.dm_exec_sql_text")
}

// textOfHandle translates sys.dm_exec_sql_text: the text that a session sends or has sent last, as PostgreSQL got it.
func (b *builder) textOfHandle(call *ast.Call, alias ast.Alias) (string, *fault.Error) {
	if len(call.Arguments) != 1 {
		return "", fault.New(174, "dm_exec_sql_text", 1)
	}
	handle, err := b.expression(call.Arguments[0])
	if err == nil {
		handle, err = b.convert(handle, value.Sized(value.VarBinary, 64), implicit)
	}
	if err != nil {
		return "", err
	}
	sql := "(select null::smallint, null::integer, null::smallint, false, " + textOf("a.query") +
		" from pg_catalog.pg_stat_activity as a where " + handleOf("a") + " = " + handle.sql + " limit 1)"
	return b.named(sql, []sourceColumn{
		{name: "dbid", typ: value.Of(value.SmallInt)},
		{name: "objectid", typ: value.Of(value.Int)},
		{name: "number", typ: value.Of(value.SmallInt)},
		{name: "encrypted", typ: value.Of(value.Bit)},
		{name: "text", typ: document},
	}, alias)
}
