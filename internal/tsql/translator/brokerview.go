package translator

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/value"
)

// databaseNumber writes the number of the database of a session v, as sys.databases has it; 0 for a process of none. Those of
// PostgreSQL need more room than a smallint has.
const databaseNumber = "case v.datname when 'postgres' then 1 else coalesce(v.datid, 0)::bigint end"

// queueObject gives the number that sys.objects and OBJECT_ID have for a queue, from that of the schema: the number of its view.
func queueObject(id string) string {
	return "coalesce((select c.oid::integer from parley.service_queues as q join pg_catalog.pg_class as c" +
		" on c.relnamespace = to_regnamespace('parley_queue')" +
		" and c.relname = case q.schema_name when 'dbo' then q.name else q.schema_name || '.' || q.name end" +
		" where q.object_id = " + id + "), " + id + ")"
}

// brokerViews are the catalog views and the dynamic views of Service Broker with SQL Server's columns. Each line of columns has a
// name, its type, and behind = the expression that gives it, where that is not the column of the same name in schema parley.
var brokerViews = []struct{ name, from, columns string }{
	{"sys.service_message_types", "parley.service_message_types as v", `name sysname
message_type_id int
principal_id int
validation char(2)
validation_desc nvarchar(60)
xml_collection_id int`},
	{"sys.service_contracts", "parley.service_contracts as v", `name sysname
service_contract_id int
principal_id int`},
	{"sys.service_contract_message_usages", "parley.service_contract_message_usages as v", `service_contract_id int
message_type_id int
is_sent_by_initiator bit
is_sent_by_target bit`},
	{"sys.services", "parley.services as v", `name sysname
service_id int
principal_id int
service_queue_id int = ` + queueObject("v.service_queue_id")},
	{"sys.service_contract_usages", "parley.service_contract_usages as v", `service_id int
service_contract_id int`},
	{"sys.service_queue_usages", "parley.service_queue_usages as v", `service_id int
service_queue_id int = ` + queueObject("v.service_queue_id")},
	{
		"sys.service_queues", "parley.service_queues as v", `name sysname
object_id int = ` + queueObject("v.object_id") + `
principal_id int
schema_id int = coalesce((select n.oid from pg_catalog.pg_namespace as n where n.nspname = v.schema_name), 0)
parent_object_id int
type char(2)
type_desc nvarchar(60)
create_date datetime
modify_date datetime
is_ms_shipped bit
is_published bit
is_schema_published bit
max_readers smallint
activation_procedure nvarchar(776) = coalesce((select '[' || n.nspname || '].[' || replace(` + moduleName + `, ']', ']]') || ']'
  from pg_catalog.pg_proc as p join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
  cross join (values ('` + moduleText + `')) as m (text)
  where p.oid = to_regprocedure(v.activation_procedure || '()') and starts_with(p.prosrc, '-- T-SQL ')),
  pg_catalog.regexp_replace(v.activation_procedure, '"((?:[^"]|"")*)"', '[\1]', 'g'))
execute_as_principal_id int
is_activation_enabled bit
is_receive_enabled bit
is_enqueue_enabled bit
is_retention_enabled bit
is_poison_message_handling_enabled bit`,
	},
	{
		"sys.conversation_endpoints", "parley.conversation_endpoints as v", `conversation_handle uniqueidentifier
conversation_id uniqueidentifier
is_initiator tinyint
service_contract_id int
conversation_group_id uniqueidentifier
service_id int
lifetime datetime = case when v.lifetime < timestamptz '9999-01-01' then v.lifetime end
state char(2)
state_desc nvarchar(60)
far_service nvarchar(256)
far_broker_instance nvarchar(128) = upper(v.far_broker_instance::text)
principal_id int
far_principal_id int
outbound_session_key_identifier uniqueidentifier
inbound_session_key_identifier uniqueidentifier
security_timestamp datetime
dialog_timer datetime
send_sequence bigint
last_send_tran_id binary(6)
end_dialog_sequence bigint
receive_sequence bigint
receive_sequence_frag int
system_sequence bigint
first_out_of_order_sequence bigint
last_out_of_order_sequence bigint
last_out_of_order_frag int
is_system bit
priority tinyint`,
	},
	{"sys.conversation_groups", "parley.conversation_groups as v", `conversation_group_id uniqueidentifier
service_id int
is_system bit`},
	{"sys.conversation_priorities", "parley.conversation_priorities as v", `priority_id int
name sysname
service_contract_id int
local_service_id int
remote_service_name nvarchar(256)
priority tinyint`},
	{
		"sys.transmission_queue", "parley.transmission_queue as v", `conversation_handle uniqueidentifier
to_service_name nvarchar(256)
to_broker_instance nvarchar(128) = upper(v.to_broker_instance::text)
from_service_name nvarchar(256)
service_contract_name nvarchar(256)
enqueue_time datetime
message_sequence_number bigint
message_type_name nvarchar(256)
is_conversation_error bit
is_end_of_dialog bit
message_body varbinary(max)
transmission_status nvarchar(4000)
priority tinyint`,
	},
	{"sys.routes", "parley.routes as v where not v.is_inbound", `name sysname
route_id int
principal_id int
remote_service_name nvarchar(256)
broker_instance nvarchar(128) = upper(v.broker_instance::text)
lifetime datetime
address nvarchar(256)
mirror_address nvarchar(256)`},
	{"sys.remote_service_bindings", "parley.remote_service_bindings as v", `name sysname
remote_service_binding_id int
principal_id int
remote_service_name nvarchar(256)
service_contract_id int
remote_principal_id int
is_anonymous_on bit`},
	{"sys.event_notifications", "parley.event_notifications as v", `name sysname
object_id int
parent_class tinyint
parent_class_desc nvarchar(60)
parent_id int = ` + queueObject("v.parent_id") + `
create_date datetime
modify_date datetime
is_ms_shipped bit
service_name nvarchar(256)
broker_instance nvarchar(128)
principal_id int`},
	{"sys.events", `(select e.* from parley.events as e union all
  select t.object_id, t.type, t.type_desc::text, true, null, null from (` + triggerEvents + `) as t) as v`, `object_id int
type int
type_desc nvarchar(60)
is_trigger_event bit
event_group_type int
event_group_type_desc nvarchar(60)`},
	{"sys.service_broker_endpoints", "parley.service_broker_endpoints as v", `name sysname
endpoint_id int
principal_id int
protocol tinyint
protocol_desc nvarchar(60)
type tinyint
type_desc nvarchar(60)
state tinyint
state_desc nvarchar(60)
is_admin_endpoint bit
is_message_forwarding_enabled bit`},
	{"sys.dm_broker_queue_monitors", "parley.dm_broker_queue_monitors as v", `database_id int
queue_id int = ` + queueObject("v.queue_id") + `
state nvarchar(32)
last_empty_rowset_time datetime
last_activated_time datetime
tasks_waiting int`},
	{"sys.dm_broker_activated_tasks", "parley.dm_broker_activated_tasks as v", `spid int
database_id smallint = v.database_id::bigint % 32768
queue_id int = ` + queueObject("v.queue_id") + `
procedure_name nvarchar(650)
execute_as int = 0`},
	{"sys.dm_os_performance_counters", "parley.dm_os_performance_counters as v", `object_name nchar(128)
counter_name nchar(128)
instance_name nchar(128)
cntr_value bigint
cntr_type int`},
	{"sys.database_principals", "pg_catalog.pg_roles as v where v.rolname !~ '^pg_'", `name sysname = v.rolname
principal_id int = v.oid
type char(1) = case when v.rolcanlogin then 'S' else 'R' end
type_desc nvarchar(60) = case when v.rolcanlogin then 'SQL_USER' else 'DATABASE_ROLE' end
default_schema_name sysname = 'dbo'`},
	{"sys.server_principals", "pg_catalog.pg_roles as v where v.rolname !~ '^pg_' and v.rolcanlogin", `name sysname = v.rolname
principal_id int = v.oid
type char(1) = 'S'
type_desc nvarchar(60) = 'SQL_LOGIN'
is_disabled bit = false`},
	{"sys.sql_logins", "pg_catalog.pg_roles as v where v.rolname !~ '^pg_' and v.rolcanlogin", `name sysname = v.rolname
principal_id int = v.oid
is_disabled bit = false`},
	{"sys.database_role_members", `pg_catalog.pg_auth_members as v
join pg_catalog.pg_roles as r on r.oid = v.roleid and r.rolname !~ '^pg_'`, `role_principal_id int = v.roleid
member_principal_id int = v.member`},
	{"sys.certificates", "parley.certificates as v", `name sysname
certificate_id int
principal_id int
pvt_key_encryption_type char(2)
pvt_key_encryption_type_desc nvarchar(60)
is_active_for_begin_dialog bit
issuer_name nvarchar(442)
cert_serial_number nvarchar(64)
sid varbinary(85) = null::bytea
string_sid nvarchar(128) = null
subject nvarchar(4000)
expiry_date datetime
start_date datetime
thumbprint varbinary(32)
attested_by nvarchar(260) = null
pvt_key_last_backup_date datetime = null::timestamptz
key_length int = 256`},
	{"sys.endpoints", "(select) as v", `name sysname = 'TSQL Default TCP'
endpoint_id int = 4
principal_id int = 1
protocol tinyint = 2
protocol_desc nvarchar(60) = 'TCP'
type tinyint = 2
type_desc nvarchar(60) = 'TSQL'
state tinyint = 0
state_desc nvarchar(60) = 'STARTED'
is_admin_endpoint bit = false`},
	{"sys.dm_broker_forwarded_messages", "(select) as v where false", `conversation_id uniqueidentifier = null
is_initiator bit = null
to_service_name nvarchar(256) = null
to_broker_instance nvarchar(256) = null
from_service_name nvarchar(256) = null
from_broker_instance nvarchar(256) = null
adjacent_broker_address nvarchar(256) = null
message_sequence_number bigint = null
message_fragment_number int = null
hops_remaining tinyint = null
time_to_live int = null
time_consumed int = null
message_id uniqueidentifier = null`},
	{"sys.symmetric_keys", "(select) as v where false", `name sysname = ''
principal_id int = 0
symmetric_key_id int = 0`},
	{"sys.dm_broker_connections", "parley.dm_broker_connections as v", `connection_id uniqueidentifier
transport_stream_id uniqueidentifier
state smallint
state_desc nvarchar(60)
connect_time datetime
login_time datetime
authentication_method nvarchar(128)
principal_name nvarchar(128)
remote_user_name nvarchar(128)
last_activity_time datetime
is_accept bit
login_state smallint
login_state_desc nvarchar(60)`},
}

// messageView has the columns of a queue, which SELECT reads without receiving.
const messageView = `status tinyint
priority tinyint
queuing_order bigint
conversation_group_id uniqueidentifier
conversation_handle uniqueidentifier
message_sequence_number bigint
service_name nvarchar(256)
service_id int
service_contract_name nvarchar(128)
service_contract_id int
message_type_name nvarchar(128)
message_type_id int
validation nchar(2)
message_body varbinary(max)
message_enqueue_time datetime = v.message_enqueue_time at time zone current_setting('timezone') at time zone 'UTC'`

// viewOf writes a view: its columns for Register, and its query. A line that begins with blanks goes on with the one before.
func viewOf(from, lines string) (columns, sql string) {
	var declared, selected []string
	for line := range strings.SplitSeq(strings.ReplaceAll(lines, "\n  ", " "), "\n") {
		head, expression, isComputed := strings.Cut(line, " = ")
		name, written, _ := strings.Cut(head, " ")
		if !isComputed {
			expression = "v." + name
		}
		t, _ := readType(written)
		declared = append(declared, name+" "+written)
		selected = append(selected, shaped(t, expression)+" as "+name)
	}
	return strings.Join(declared, ", "), "select " + strings.Join(selected, ", ") + " from " + from
}

// shaped gives an expression of PostgreSQL as the type in which values of T-SQL are kept. Times are those of UTC.
func shaped(t value.Type, expression string) string {
	switch {
	case t.Kind.IsCharacter():
		return textOf("(" + expression + ")")
	case t.Kind == value.DateTime:
		return "((" + expression + ") at time zone 'UTC')::timestamp(3)"
	case t.Kind.IsInteger():
		return "(" + expression + ")::bigint::" + databaseType(t)
	}
	return "(" + expression + ")::" + databaseType(t)
}

// databaseSetting reads a setting that a database keeps about itself for sessions in others.
func databaseSetting(name string) string {
	return `(select substr(c.setting, length('` + name + `=') + 1)
  from pg_catalog.pg_db_role_setting as s cross join lateral unnest(s.setconfig) as c (setting)
  where s.setdatabase = d.oid and s.setrole = 0::oid and starts_with(c.setting, '` + name + `='))`
}

// databasesFrom has the databases of the server with their broker: of the one of the session as it is, of others as it was when T-SQL
// changed it last. A database may have no broker, so its view is named in a text alone.
var databasesFrom = `(
  select d.oid, case d.datname when 'postgres' then 'master'
    else coalesce(` + databaseSetting("parley.tsql_name") + `, d.datname::text) end as name,
    coalesce(
      case when d.datname = current_database() and to_regclass('parley.databases') is not null then
        (xpath('/row/b/text()', query_to_xml('select service_broker_guid || case when is_broker_enabled then '' on'' else '' off'' end as b
          from parley.databases', false, true, '')))[1]::text
      end, ` + databaseSetting("parley.tsql_broker") + `) as broker, d.datname
  from pg_catalog.pg_database as d where d.datallowconn and not d.datistemplate) as v`

const databaseColumns = `name sysname
database_id int = case v.datname when 'postgres' then 1 else v.oid::bigint end
create_date datetime = timestamptz '2000-01-01'
compatibility_level tinyint = 160
collation_name sysname = 'SQL_Latin1_General_CP1_CI_AS'
user_access tinyint = 0
user_access_desc nvarchar(60) = 'MULTI_USER'
is_read_only bit = false
state tinyint = 0
state_desc nvarchar(60) = 'ONLINE'
snapshot_isolation_state tinyint = 1
is_read_committed_snapshot_on bit = true
recovery_model tinyint = 1
recovery_model_desc nvarchar(60) = 'FULL'
is_trustworthy_on bit = false
is_master_key_encrypted_by_server bit = false
service_broker_guid uniqueidentifier = coalesce(split_part(v.broker, ' ', 1), '00000000-0000-0000-0000-000000000000')
is_broker_enabled bit = coalesce(split_part(v.broker, ' ', 2) = 'on', false)
is_honor_broker_priority_on bit = false`

// oldLoginColumns are those of the view of logins that old versions of SQL Server had.
const oldLoginColumns = `name sysname = v.rolname
dbname sysname = 'master'
loginname sysname = v.rolname
createdate datetime = timestamptz '2000-01-01'
hasaccess int = 1
isntname int = 0
sysadmin int = v.rolsuper::integer`

func init() { //nolint:gochecknoinits // the views are registered one by one
	for _, v := range brokerViews {
		columns, sql := viewOf(v.from, v.columns)
		Register(v.name, columns, sql)
		view := systemViews[strings.ToLower(v.name)]
		view.isOfBroker = strings.HasPrefix(v.from, "parley.") || strings.Contains(v.from, " from parley.")
		systemViews[strings.ToLower(v.name)] = view
	}
	columns, sql := viewOf("pg_catalog.pg_roles as v where v.rolname !~ '^pg_' and v.rolcanlogin", oldLoginColumns)
	for _, name := range []string{"sys.syslogins", "dbo.syslogins", ".syslogins"} {
		Register(name, columns, sql)
	}
	columns, sql = viewOf(databasesFrom, databaseColumns)
	Register("sys.databases", columns, sql)
	for _, name := range []string{"sys.sysdatabases", "dbo.sysdatabases", ".sysdatabases"} {
		Register(name, "name sysname, dbid int", "select m.name, m.database_id from ("+sql+") as m")
	}
}
