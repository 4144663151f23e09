package security

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// everyone is the role that stands for all.
const everyone = "public"

// rightsOf are the rights on an object that PostgreSQL has too, by the letter of its kind: r a table or view, p a procedure, f a scalar
// function, t a table function, S a sequence. ALL is those of SQL Server's ALL.
var rightsOf = map[byte]map[string]string{
	'r': {
		"SELECT": "select", "INSERT": "insert", "UPDATE": "update", "DELETE": "delete", "REFERENCES": "references",
		"ALL": "select, insert, update, delete, references",
	},
	'p': {"EXECUTE": "execute", "EXEC": "execute", "ALL": "execute"},
	'f': {"EXECUTE": "execute", "EXEC": "execute", "ALL": "execute"},
	't': {"SELECT": "execute", "ALL": "execute"},
	'S': {"UPDATE": "usage, select", "ALL": "usage, select"},
}

// wordsOf are the words before the name of an object in GRANT.
var wordsOf = map[byte]string{'r': "", 'p': "procedure ", 'f': "function ", 't': "function ", 'S': "sequence "}

// foundObject tells which object a name is: q for a queue or a letter of rightsOf, then its schema and its name in the database.
var foundObject = `select json_build_array(k.kind, k.schema, k.name) from (
  select 'q' as kind, '' as schema, pg_catalog.format('[%s].[%s]', replace(n.name, ']', ']]'), replace(c.relname, ']', ']]')) as name,
    1 as place
  from (select case when lower($1) = 'dbo' then 'dbo' else $1 end as name) as n
  join pg_catalog.pg_class as c on c.relnamespace = to_regnamespace('parley_queue') and c.relkind = 'v'
    and lower(c.relname) = lower($2) and lower($1) = 'dbo'
  union all
  select case when p.prokind = 'p' then 'p' when p.proretset then 't' else 'f' end, n.nspname,
    pg_catalog.format('%I.%I()', n.nspname, p.proname), 2
  from pg_catalog.pg_proc as p join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
  where n.oid = ` + connection.SchemaNamed("$1::text") + ` and p.pronargs = 0 and (p.prokind = 'p' and p.proname = lower($2)
    or lower(p.proname) = lower($2) and pg_catalog.obj_description(p.oid, 'pg_proc') ~* '^\s*(create|alter)')
  union all
  select case when c.relkind = 'S' then 'S' else 'r' end, n.nspname, pg_catalog.format('%I.%I', n.nspname, c.relname), 3
  from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
  where n.oid = ` + connection.SchemaNamed("$1::text") + ` and lower(c.relname) = lower($2) and c.relkind in ('r', 'p', 'v', 'S')
) as k
order by k.kind = 'q' desc, k.place, rtrim(k.name, '()') = pg_catalog.format('%I.%I', k.schema, $2::text) desc
limit 1`

// columnList gives columns of the table $1 as the database spells them, quoted; the first that is not there behind a blank.
const columnList = `select coalesce((select ' ' || w.name from json_array_elements_text($2::json) as w (name) where not exists (
    select from pg_catalog.pg_attribute as a
    where a.attrelid = $1::regclass and a.attnum > 0 and lower(a.attname) = lower(w.name)) limit 1),
  (select string_agg(quote_ident(a.attname), ', ' order by a.attnum) from pg_catalog.pg_attribute as a
    where a.attrelid = $1::regclass and a.attnum > 0 and lower(a.attname) in (
      select lower(w.name) from json_array_elements_text($2::json) as w (name))))`

// ofObject grants on a queue, a procedure, a function, a sequence or a table.
func (t *Translator) ofObject(ctx context.Context, g *grant) *fault.Error {
	found, err := t.ask(ctx, foundObject, schemaOr(g.node.On.Schema()), g.node.On.Object())
	if err != nil {
		return connection.Fault(err, g.node.Verb)
	}
	if found == "" {
		return fault.New(15151, "find", "object", g.node.On.Object())
	}
	parts := listOf(found, 3)
	kind, place, name := parts[0][0], parts[1], parts[2]
	if kind == 'q' {
		return t.ofBroker(ctx, g, "queue", name)
	}
	if g.isView() {
		return g.informs()
	}
	word := rightsOf[kind][strings.TrimSuffix(g.right(), " PRIVILEGES")]
	if word == "" {
		return refused(g.node.Verb+" "+g.right(), "PostgreSQL has no such right on this object")
	}
	columns, refusal := t.columnsOf(ctx, g, kind, name)
	if refusal != nil {
		return refusal
	}
	query := grantsOnFunction
	if kind == 'r' || kind == 'S' {
		query = grantsOnTable
	}
	if err := t.needsCascade(ctx, g, query, name, word, columns); err != nil {
		return err
	}
	if columns != "" {
		word += " (%3$s)"
	}
	command := g.verb() + word + " on " + wordsOf[kind] + "%1$s" + g.direction()
	if g.node.Verb == "GRANT" {
		command += "; " + entersSchema
	}
	if err := t.change(ctx, g, command, name, columns, place); err != nil {
		return err
	}
	parameters := []string{name}
	if columns != "" && g.denies {
		parameters = append(parameters, columns)
	}
	return t.denied(ctx, g, heldObject(kind, rightsOf[kind][strings.TrimSuffix(g.right(), " PRIVILEGES")], columns), parameters...)
}

// columnsOf gives the columns to which a right is restricted, quoted; empty for the whole object. Error 1911 for one that is missing.
func (t *Translator) columnsOf(ctx context.Context, g *grant, kind byte, name string) (string, *fault.Error) {
	if len(g.columns()) == 0 {
		return "", nil
	}
	if kind != 'r' || g.right() == "INSERT" || g.right() == "DELETE" {
		return "", fault.New(1020)
	}
	list := make([]string, len(g.columns()))
	for i, c := range g.columns() {
		list[i] = quotedJSON(c)
	}
	columns, err := t.ask(ctx, columnList, name, "["+strings.Join(list, ",")+"]")
	if err != nil {
		return "", connection.Fault(err, g.node.Verb)
	}
	if missing, is := strings.CutPrefix(columns, " "); is {
		return "", fault.New(1911, missing)
	}
	return columns, nil
}

// verb begins the statement of PostgreSQL.
func (g *grant) verb() string {
	switch {
	case g.node.Verb == "GRANT":
		return "grant "
	case g.node.OptionFor:
		return "revoke grant option for "
	}
	return "revoke "
}

// direction ends the statement of PostgreSQL.
func (g *grant) direction() string {
	switch {
	case g.node.Verb == "GRANT" && g.node.GrantOption:
		return " to %2$s with grant option"
	case g.node.Verb == "GRANT":
		return " to %2$s"
	case g.node.Cascade:
		return " from %2$s cascade"
	}
	return " from %2$s"
}

// entersSchema lets the role enter the schema of the object, which SQL Server does not ask for.
const entersSchema = "if pg_catalog.has_schema_privilege(%4$L, 'usage with grant option') then grant usage on schema %4$I to %2$s; end if"

// change has the server write a block of statements and runs it: %1$s is the object and %3$s its columns, both quoted by the server,
// %2$s is the role, %4 the name of the schema.
func (t *Translator) change(ctx context.Context, g *grant, statements, object, columns, schema string) *fault.Error {
	command, err := t.ask(ctx, `select pg_catalog.format('do %L', pg_catalog.format('begin ' || $5::text || '; end', $1::text,
  case when $2::text = 'public' then 'public' else quote_ident($2::text) end, $3::text, $4::text))`,
		object, g.role, columns, schema, statements)
	if err == nil {
		_, err = t.ask(ctx, command)
	}
	if err != nil {
		return connection.Fault(err, g.node.Verb)
	}
	return nil
}
