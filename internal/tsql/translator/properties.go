package translator

import (
	"context"
	"slices"

	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A property is a function of the catalog whose arguments go to a query as $1, $2 and so on, texts; NULL among them gives NULL. An
// argument that is left out is the empty text.
type property struct {
	parameters string // as those of a function: t text, b number
	result     value.Type
	sql        string
}

// moduleTexts has the number of each procedure, function, trigger and view with its text.
const moduleTexts = `select p.oid::integer as object_id, regexp_replace(
    substring(p.prosrc from strpos(p.prosrc, e'\n-- its text:\n--') + 16), '(\r\n|\n|\r)--', '\1', 'g') as definition
  from pg_catalog.pg_proc as p join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
  where p.prokind = 'p' and starts_with(p.prosrc, '-- T-SQL ') and ` + visible + `
union all
  select p.oid::integer, pg_catalog.obj_description(p.oid, 'pg_proc')
  from pg_catalog.pg_proc as p join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
  where pg_catalog.obj_description(p.oid, 'pg_proc') ~* '^\s*(create|alter)' and ` + visible + `
union all
  select g.oid::integer, pg_catalog.obj_description(g.oid, 'pg_trigger') from pg_catalog.pg_trigger as g
  where not g.tgisinternal and pg_catalog.obj_description(g.oid, 'pg_trigger') ~* '^\s*(create|alter)'
union all
  select c.oid::integer, pg_catalog.obj_description(c.oid, 'pg_class')
  from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
  where c.relkind = 'v' and pg_catalog.obj_description(c.oid, 'pg_class') ~* '^\s*(create|alter)' and ` + visible

// oneOrZero writes a condition as 1 and 0.
func oneOrZero(condition string) string { return "(case when " + condition + " then 1 else 0 end)" }

// ofObject finds an object by its number for OBJECTPROPERTY; a property that is not in the list gives NULL.
var ofObject = `select (case lower($2::text)
  when 'istable' then ` + oneOrZero("o.type in ('U ', 'S ')") + ` when 'isusertable' then ` + oneOrZero("o.type = 'U '") + `
  when 'isview' then ` + oneOrZero("o.type = 'V '") + ` when 'isprocedure' then ` + oneOrZero("o.type = 'P '") + `
  when 'istrigger' then ` + oneOrZero("o.type = 'TR'") + ` when 'isscalarfunction' then ` + oneOrZero("o.type = 'FN'") + `
  when 'istablefunction' then ` + oneOrZero("o.type in ('IF', 'TF')") + ` when 'isinlinefunction' then ` + oneOrZero("o.type = 'IF'") + `
  when 'isprimarykey' then ` + oneOrZero("o.type = 'PK'") + ` when 'isforeignkey' then ` + oneOrZero("o.type = 'F '") + `
  when 'isuniquecnst' then ` + oneOrZero("o.type = 'UQ'") + ` when 'ischeckcnst' then ` + oneOrZero("o.type = 'C '") + `
  when 'isconstraint' then ` + oneOrZero("o.type in ('PK', 'UQ', 'F ', 'C ', 'D ')") + `
  when 'isqueue' then ` + oneOrZero("o.type = 'SQ'") + `
  when 'ismsshipped' then 0 when 'issystemtable' then 0 when 'isquotedidenton' then 1 when 'isansinullson' then 1
  when 'schemaid' then o.schema_id when 'ownerid' then o.schema_id
  when 'tablehasprimarykey' then ` + oneOrZero(`exists (select from pg_catalog.pg_index as i
    where i.indrelid = o.object_id::oid and i.indisprimary)`) + `
  when 'tablehasidentity' then ` + oneOrZero(`exists (select from pg_catalog.pg_attribute as a
    where a.attrelid = o.object_id::oid and a.attidentity <> '')`) + `
  when 'tablehasforeignkey' then ` + oneOrZero(`exists (select from pg_catalog.pg_constraint as k
    where k.conrelid = o.object_id::oid and k.contype = 'f')`) + `
  when 'tablehasindex' then ` + oneOrZero(`exists (select from pg_catalog.pg_index as i where i.indrelid = o.object_id::oid)`) + `
  end)::text from (` + objectsQuery + `) as o where o.object_id = $1::text::bigint`

// ofColumn finds a column by the number of its table and its name for COLUMNPROPERTY.
var ofColumn = `select (case lower($3::text) when 'columnid' then a.attnum::integer
  when 'allowsnull' then ` + oneOrZero("not a.attnotnull") + `
  when 'isidentity' then ` + oneOrZero("a.attidentity <> ''") + `
  when 'iscomputed' then ` + oneOrZero("a.attgenerated <> ''") + ` end)::text
from pg_catalog.pg_attribute as a where a.attrelid = $1::text::oid and lower(a.attname) = lower($2::text) and a.attnum > 0`

// schemaOfFirst is the schema of the name $1, or dbo.
const schemaOfFirst = `coalesce((parse_ident($1::text, false))[array_length(parse_ident($1::text, false), 1) - 1], 'dbo')`

// identitySequence finds the sequence of IDENTITY of a table that $1 names.
var identitySequence = `from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
join pg_catalog.pg_attribute as a on a.attrelid = c.oid and a.attidentity <> ''
join pg_catalog.pg_sequences as s on s.schemaname = n.nspname
  and quote_ident(s.schemaname) || '.' || quote_ident(s.sequencename) = pg_get_serial_sequence(c.oid::regclass::text, a.attname)
where n.oid = ` + connection.SchemaNamed(schemaOfFirst) + `
  and lower(c.relname) = lower((parse_ident($1::text, false))[array_length(parse_ident($1::text, false), 1)])
order by c.relname = (parse_ident($1::text, false))[array_length(parse_ident($1::text, false), 1)] desc limit 1`

// roleNamed finds a role that $1 names: dbo is the owner of the database.
const roleNamed = `from pg_catalog.pg_roles as r where lower(r.rolname) = lower($1::text)
  or $1::text = '' and r.rolname = current_user or lower($1::text) = 'dbo' and r.oid = (
    select d.datdba from pg_catalog.pg_database as d where d.datname = current_database()) limit 1`

var properties = map[string]property{
	// Locks of sp_getapplock: their names are no names of functions, so a batch cannot call them.
	"LOCK OF A TRANSACTION":        {"t", value.Of(value.Int), lockOfResource("pg_try_advisory_xact_lock")},
	"LOCK OF A TRANSACTION SHARED": {"t", value.Of(value.Int), lockOfResource("pg_try_advisory_xact_lock_shared")},
	"LOCK OF A SESSION":            {"t", value.Of(value.Int), lockOfResource("pg_try_advisory_lock")},
	"LOCK OF A SESSION SHARED":     {"t", value.Of(value.Int), lockOfResource("pg_try_advisory_lock_shared")},
	"FREE A LOCK":                  {"t", value.Of(value.Int), lockOfResource("pg_advisory_unlock")},

	// Functions of the session that are given a number; those without one are the interpreter's.
	"NAME OF A USER": {"b", sysname, `select case $1::text when '0' then 'public' when '1' then 'dbo' when '2' then 'guest' else (
  select r.rolname::text from pg_catalog.pg_roles as r where r.oid::bigint = $1::text::bigint) end`},
	"NAME OF A LOGIN": {"b", sysname, `select case $1::text when '1' then 'sa' else (
  select r.rolname::text from pg_catalog.pg_roles as r where r.oid::bigint = $1::text::bigint) end`},
	"@@SPID": {"", value.Of(value.SmallInt), "select (pg_catalog.pg_backend_pid() % 32768)::text"},

	"OBJECTPROPERTY":   {"bt", value.Of(value.Int), ofObject},
	"OBJECTPROPERTYEX": {"bt", value.Of(value.Int), ofObject},
	"COLUMNPROPERTY":   {"btt", value.Of(value.Int), ofColumn},
	"OBJECT_DEFINITION": {
		"b", value.Sized(value.NVarChar, value.Max),
		"select m.definition from (" + moduleTexts + ") as m where m.object_id = $1::text::bigint",
	},
	"COL_LENGTH": {"tt", value.Of(value.SmallInt), "select m.max_length::text from (" + columnsQuery + ") as m" + `
where m.schema_name::text collate "C" = (select h.nspname::text from pg_catalog.pg_namespace as h where h.oid = ` +
		connection.SchemaNamed(schemaOfFirst) + `)
  and lower(m.table_name) = lower((parse_ident($1::text, false))[array_length(parse_ident($1::text, false), 1)])
  and lower(m.name) = lower($2::text)`},
	"COL_NAME": {"bb", sysname, `select a.attname from pg_catalog.pg_attribute as a
where a.attrelid = $1::text::oid and a.attnum = $2::text::integer and a.attnum > 0`},
	"TYPE_NAME": {"b", sysname, "select t.name from (" + typesQuery + ") as t (name, id) where t.id = $1::text::bigint" +
		" union all select u.name from (" + userTypes + ") as u where u.id = $1::text::bigint"},
	"IDENT_SEED": {"t", identityType, "select s.start_value::text " + identitySequence},
	"IDENT_INCR": {"t", identityType, "select s.increment_by::text " + identitySequence},
	"IDENT_CURRENT": {"t", identityType, "select coalesce(s.last_value, s.start_value)::text " +
		identitySequence},
	"USER_ID":               {"?t", value.Of(value.Int), "select r.oid::integer::text " + roleNamed},
	"SUSER_ID":              {"?t", value.Of(value.Int), "select r.oid::integer::text " + roleNamed},
	"DATABASE_PRINCIPAL_ID": {"?t", value.Of(value.Int), "select r.oid::integer::text " + roleNamed},
	"SUSER_SID": {
		"?t", value.Sized(value.VarBinary, 85),
		"select '\\x' || lpad(to_hex(r.oid::bigint), 8, '0') " + roleNamed,
	},
	"IS_MEMBER": {"t", value.Of(value.Int), `select ` + oneOrZero(`pg_has_role(r.oid, 'member')`) + `::text
from pg_catalog.pg_roles as r where lower(r.rolname) = lower($1::text)
  or lower($1::text) in ('db_owner', 'dbo') and r.oid = (
    select d.datdba from pg_catalog.pg_database as d where d.datname = current_database()) limit 1`},
	"IS_ROLEMEMBER": {"t?t", value.Of(value.Int), `select ` + oneOrZero(`pg_has_role(
    coalesce((select u.oid from pg_catalog.pg_roles as u where lower(u.rolname) = lower($2::text)), current_user::regrole),
    r.oid, 'member')`) + `::text
from pg_catalog.pg_roles as r where lower(r.rolname) = lower($1::text)
  or lower($1::text) = 'db_owner' and r.oid = (
    select d.datdba from pg_catalog.pg_database as d where d.datname = current_database()) limit 1`},
	"IS_SRVROLEMEMBER": {"t?t", value.Of(value.Int), `select (case lower($1::text)
  when 'sysadmin' then ` + oneOrZero("r.rolsuper") + ` when 'dbcreator' then ` + oneOrZero("r.rolcreatedb or r.rolsuper") + `
  when 'securityadmin' then ` + oneOrZero("r.rolcreaterole or r.rolsuper") + ` when 'public' then 1 end)::text
from pg_catalog.pg_roles as r where case when $2::text = '' then r.rolname = current_user else lower(r.rolname) = lower($2::text) end`},
	"HAS_DBACCESS": {"t", value.Of(value.Int), `select ` + oneOrZero("has_database_privilege(d.oid, 'connect')") + `::text
from pg_catalog.pg_database as d where lower(d.datname) = case lower($1::text) when 'master' then 'postgres' else lower($1::text) end`},
	"DATABASEPROPERTYEX": {"tt", value.Sized(value.NVarChar, 128), `select case lower($2::text)
  when 'status' then 'ONLINE' when 'updateability' then 'READ_WRITE' when 'useraccess' then 'MULTI_USER' when 'recovery' then 'FULL'
  when 'collation' then 'SQL_Latin1_General_CP1_CI_AS' when 'isautoclose' then '0' when 'isautoshrink' then '0' when 'version' then '957'
  end
from pg_catalog.pg_database as d where lower(d.datname) = case lower($1::text) when 'master' then 'postgres' else lower($1::text) end`},
	"SERVERPROPERTY": {"t", value.Sized(value.NVarChar, 128), `select case lower($1::text)
  when 'collation' then 'SQL_Latin1_General_CP1_CI_AS' when 'edition' then 'Parley on PostgreSQL' when 'engineedition' then '3'
  when 'isclustered' then '0' when 'issingleuser' then '0' when 'ishadrenabled' then '0' when 'isintegratedsecurityonly' then '0'
  when 'productversion' then '16.0.1000.6' when 'productlevel' then 'RTM' when 'productmajorversion' then '16'
  when 'servername' then coalesce(nullif(current_setting('cluster_name'), ''), 'parley')
  when 'machinename' then coalesce(nullif(current_setting('cluster_name'), ''), 'parley') end`},
}

// lockOfResource calls a function of advisory locks on the name of a resource.
func lockOfResource(name string) string {
	return "select " + oneOrZero("pg_catalog."+name+"(pg_catalog.hashtextextended('parley tsql ' || $1::text, 0))") + "::text"
}

// askingFunctions are the other functions of the session that may ask the database.
var askingFunctions = []string{"OBJECT_ID", "DB_ID", "DB_NAME", "USER_NAME", "SUSER_NAME", "SUSER_SNAME", "GET_TRANSMISSION_STATUS"}

// asksCatalog reports whether a function of the session asks the database.
func asksCatalog(name string) bool {
	_, isQuery := catalogQueries[name]
	_, isProperty := properties[name]
	return isQuery || isProperty || slices.Contains(askingFunctions, name)
}

// propertyFunction gives a function of the catalog with its arguments.
func (t *Translator) propertyFunction(name string) (*function.Function, bool) {
	p, known := properties[name]
	if !known {
		return nil, false
	}
	return &function.Function{
		Name: name, Parameters: p.parameters, IsVolatile: true,
		Result: func([]function.Argument) (value.Type, *fault.Error) { return p.result, nil },
		Call: func(c *function.Context, _ value.Type, arguments []value.Value) (value.Value, *fault.Error) {
			texts := make([]string, 0, len(p.parameters))
			for _, a := range arguments {
				texts = append(texts, c.Settings.Text(a))
			}
			if takesName[name] {
				written, is := identifiers(texts[0])
				if !is {
					return value.Null(p.result), nil
				}
				texts[0] = written
			}
			for n := range p.parameters {
				if p.parameters[n] != '?' && len(texts) < countOf(p.parameters) {
					texts = append(texts, "")
				}
			}
			return t.answerOrNull(p.result, p.sql, texts...)
		},
	}, true
}

// countOf counts the arguments that letters stand for.
func countOf(letters string) int {
	n := 0
	for _, letter := range letters {
		if letter != '?' {
			n++
		}
	}
	return n
}

// answerOrNull gives the first value of a query of the catalog; NULL without a row, or where its value is NULL.
func (t *Translator) answerOrNull(result value.Type, sql string, arguments ...string) (value.Value, *fault.Error) {
	ctx := context.Background()
	if err := t.prepare(ctx); err != nil {
		return value.Value{}, err
	}
	v := value.Null(result)
	var failed error
	err := t.rows(ctx, "select coalesce('=' || a.v, '') from ("+sql+") as a (v)", arguments, func(row []string) {
		if row[0] != "" {
			v, failed = decode(result, []byte(row[0][1:]))
		}
	})
	if failed != nil {
		return v, &fault.Error{Number: 50000, Severity: 16, State: 1, Message: failed.Error()}
	}
	return v, err
}
