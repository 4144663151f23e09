package translator

import (
	"strings"

	"github.com/parley-broker/parley/internal/tsql/value"
)

// A SystemView is a view of the system: a query over PostgreSQL's catalog with SQL Server's columns. Its columns are named and typed
// in the order of the query.
type SystemView struct {
	columns    []sourceColumn
	sql        string
	isOfBroker bool // it reads the schema of the broker, which a database may not have
}

// systemViews are found by their schema and name in lower case.
var systemViews = map[string]SystemView{}

// Register adds a view of the system. The columns are written as: name type, name type; text is bpchar in the query.
func Register(name, columns, sql string) {
	v := SystemView{sql: sql}
	for part := range strings.SplitSeq(columns, ", ") {
		column, written, _ := strings.Cut(strings.TrimSpace(part), " ")
		t, ok := readType(written)
		if !ok {
			panic("translator: the column " + part + " of " + name + " has no type")
		}
		v.columns = append(v.columns, sourceColumn{name: column, typ: t})
	}
	systemViews[strings.ToLower(name)] = v
}

// registerEmpty adds a view of what the database has none of.
func registerEmpty(name, columns string) {
	Register(name, columns, "")
	v := systemViews[strings.ToLower(name)]
	v.sql = v.empty()
	systemViews[strings.ToLower(name)] = v
}

// empty gives a query with the columns of the view and no rows: a database without a broker has no objects of one.
func (v SystemView) empty() string {
	var columns []string
	for _, c := range v.columns {
		written := "null::" + databaseType(c.typ)
		if c.typ.Kind.IsCharacter() {
			written = textOf("null")
		}
		columns = append(columns, written+" as "+quote(c.name))
	}
	return "select " + strings.Join(columns, ", ") + " where false"
}

// ownDatabase is the name of the session's database as T-SQL wrote it when it made it.
const ownDatabase = "coalesce(nullif(current_setting('parley.tsql_name', true), ''), current_database()::text)"

var sysname = value.Sized(value.NVarChar, 128)

// visible are the schemas whose objects SQL Server's catalog shows: none of PostgreSQL's own, and none of Parley's.
const visible = `(n.nspname !~ '^(pg_|parley(_|$))' and n.nspname <> 'information_schema')`

// named writes a name of PostgreSQL as text of T-SQL.
func textOf(sql string) string { return "(" + sql + "::text::bpchar collate " + collation + ")" }

// moduleName is the name of the procedure p in its first line. The owner of a procedure may have written anything there, so the name is
// read where the line is as the runner writes it, and no text of one makes the catalog fail for all.
const moduleName = `(case
    when p.prosrc ~ ('^-- T-SQL \{"schema":' || m.text || ',"name":' || m.text || ',"quoted_identifier":(true|false)\}\n')
    then substring(p.prosrc from '^-- T-SQL ([^\n]*)')::jsonb ->> 'name' else p.proname::text end)`

// moduleText is a text of JSON that PostgreSQL takes: no character of number 0, and no half of one.
const moduleText = `"([^"\\\x01-\x1f]|\\(["\\/bfnrt]|u(?!0000|d[89a-f])[0-9a-f]{4}))*"`

// objectsQuery has the tables, views, keys and triggers of the user.
var objectsQuery = `select c.oid::integer as object_id, ` + textOf("c.relname") + ` as name, n.oid::integer as schema_id,
  0 as parent_object_id, ` + textOf("case c.relkind when 'v' then 'V ' else 'U ' end") + ` as type,
  ` + textOf("case c.relkind when 'v' then 'VIEW' else 'USER_TABLE' end") + ` as type_desc,
  timestamp '1900-01-01' as create_date, timestamp '1900-01-01' as modify_date, false as is_ms_shipped
from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'v') and ` + visible + `
union all
select k.oid::integer, ` + textOf("k.conname") + `, n.oid::integer, k.conrelid::integer,
  ` + textOf("case when k.contype = 'p' then 'PK' when k.contype = 'u' then 'UQ' when k.contype = 'f' or "+
	isDisabledKey+" then 'F ' else 'C ' end") + `,
  ` + textOf("case when k.contype = 'p' then 'PRIMARY_KEY_CONSTRAINT' when k.contype = 'u' then 'UNIQUE_CONSTRAINT'"+
	" when k.contype = 'f' or "+isDisabledKey+" then 'FOREIGN_KEY_CONSTRAINT' else 'CHECK_CONSTRAINT' end") + `,
  timestamp '1900-01-01', timestamp '1900-01-01', false
from pg_catalog.pg_constraint as k join pg_catalog.pg_namespace as n on n.oid = k.connamespace
where k.contype in ('p', 'u', 'f', 'c') and k.conrelid <> 0 and k.conname !~ '^(length|range) of ' and ` + visible + `
union all
select d.oid::integer, ` + textOf(defaultName) + `, n.oid::integer, c.oid::integer, ` + textOf("'D '") + `,
  ` + textOf("'DEFAULT_CONSTRAINT'") + `, timestamp '1900-01-01', timestamp '1900-01-01', false
from pg_catalog.pg_attrdef as d join pg_catalog.pg_class as c on c.oid = d.adrelid and c.relkind in ('r', 'p')
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
join pg_catalog.pg_attribute as a on a.attrelid = d.adrelid and a.attnum = d.adnum and a.attgenerated = ''
where ` + typeName + ` not in ('timestamp', 'rowversion') and ` + visible + `
union all
select p.oid::integer, ` + textOf("p.proname") + `, n.oid::integer, 0, ` + textOf("case when p.proretset then 'IF' else 'FN' end") + `,
  ` + textOf("case when p.proretset then 'SQL_INLINE_TABLE_VALUED_FUNCTION' else 'SQL_SCALAR_FUNCTION' end") + `,
  timestamp '1900-01-01', timestamp '1900-01-01', false
from pg_catalog.pg_proc as p join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
where pg_catalog.obj_description(p.oid, 'pg_proc') ~* '^\s*(create|alter)' and ` + visible + `
union all
select g.oid::integer, ` + textOf("g.tgname") + `, n.oid::integer, g.tgrelid::integer, ` + textOf("'TR'") + `,
  ` + textOf("'SQL_TRIGGER'") + `,
  timestamp '1900-01-01', timestamp '1900-01-01', false
from pg_catalog.pg_trigger as g join pg_catalog.pg_class as c on c.oid = g.tgrelid
join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
where not g.tgisinternal and ` + visible + `
union all
select p.oid::integer, ` + textOf(moduleName) + `, n.oid::integer, 0,
  ` + textOf("'P '") + `, ` + textOf("'SQL_STORED_PROCEDURE'") + `, timestamp '1900-01-01', timestamp '1900-01-01', false
from pg_catalog.pg_proc as p join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
cross join (values ('` + moduleText + `')) as m (text)
where p.prokind = 'p' and starts_with(p.prosrc, '-- T-SQL ') and ` + visible + `
union all
select c.oid::integer, ` + textOf("c.relname") + `, to_regnamespace('dbo')::oid::integer, 0, ` + textOf("'SQ'") + `,
  ` + textOf("'SERVICE_QUEUE'") + `, timestamp '1900-01-01', timestamp '1900-01-01',
  c.relname in ('EventNotificationErrorsQueue', 'QueryNotificationErrorsQueue', 'ServiceBrokerQueue')
from pg_catalog.pg_class as c where c.relnamespace = to_regnamespace('parley_queue') and c.relkind = 'v' and strpos(c.relname, '.') = 0
union all
select -c.oid::integer, ` + textOf("'queue_messages_' || c.oid") + `, to_regnamespace('dbo')::oid::integer, c.oid::integer, ` +
	textOf("'IT'") + `, ` + textOf("'INTERNAL_TABLE'") + `, timestamp '1900-01-01', timestamp '1900-01-01', true
from pg_catalog.pg_class as c where c.relnamespace = to_regnamespace('parley_queue') and c.relkind = 'v' and strpos(c.relname, '.') = 0
union all
` + synonymObjects

func init() { //nolint:gochecknoinits // the views are registered one by one, those of the broker too
	Register("sys.schemas", "name sysname, schema_id int, principal_id int", "select "+textOf("n.nspname")+
		", n.oid::integer, n.nspowner::integer from pg_catalog.pg_namespace as n where "+visible)
	Register("INFORMATION_SCHEMA.TABLES", "TABLE_CATALOG sysname, TABLE_SCHEMA sysname, TABLE_NAME sysname, TABLE_TYPE varchar(10)",
		"select "+textOf(ownDatabase)+", "+textOf("n.nspname")+", "+textOf("c.relname")+", "+
			textOf("case c.relkind when 'v' then 'VIEW' else 'BASE TABLE' end")+" from pg_catalog.pg_class as c"+
			" join pg_catalog.pg_namespace as n on n.oid = c.relnamespace where c.relkind in ('r', 'p', 'v') and "+visible)
	Register("INFORMATION_SCHEMA.VIEWS", "TABLE_CATALOG sysname, TABLE_SCHEMA sysname, TABLE_NAME sysname",
		"select "+textOf(ownDatabase)+", "+textOf("n.nspname")+", "+textOf("c.relname")+" from pg_catalog.pg_class as c"+
			" join pg_catalog.pg_namespace as n on n.oid = c.relnamespace where c.relkind = 'v' and "+visible)
	Register("INFORMATION_SCHEMA.SCHEMATA", "CATALOG_NAME sysname, SCHEMA_NAME sysname",
		"select "+textOf(ownDatabase)+", "+textOf("n.nspname")+" from pg_catalog.pg_namespace as n where "+visible)
}
