package security

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// quotedJSON writes a text as JSON does.
func quotedJSON(text string) string {
	written, _ := json.Marshal(text) // a text has a form in JSON
	return string(written)
}

// listOf reads texts that the database gave as JSON; there are at least so many.
func listOf(written string, least int) []string {
	var list []string
	_ = json.Unmarshal([]byte(written), &list) // the database writes JSON as it should be
	return append(list, make([]string, max(0, least-len(list)))...)
}

// isOfUser tells the schemas of the user from those of PostgreSQL and of Parley.
const isOfUser = `n.nspname !~ '^(pg_|parley(_|$))' and n.nspname <> 'information_schema'`

// ofSchema grants on the objects of a schema: on those that are there, and on those that the role that grants makes later.
func (t *Translator) ofSchema(ctx context.Context, g *grant) *fault.Error {
	schema, err := t.ask(ctx, "select n.nspname from pg_catalog.pg_namespace as n where n.oid = "+connection.SchemaNamed("$1::text")+
		" and "+isOfUser, g.node.On.Object())
	if err != nil {
		return connection.Fault(err, g.node.Verb)
	}
	if schema == "" {
		return fault.New(15151, "find", "schema", g.node.On.Object())
	}
	return t.inSchema(ctx, g, schema)
}

func (t *Translator) inSchema(ctx context.Context, g *grant, schema string) *fault.Error {
	word, objects := rightsOf['r'][g.right()], "tables"
	if word == "" {
		word, objects = rightsOf['p'][g.right()], "routines"
	}
	var statements string
	switch {
	case g.isView():
		return g.informs()
	case g.right() == "ALTER": // who may alter a schema makes objects in it
		statements = g.verb() + "create on schema %4$I" + g.direction()
	case word == "" || g.right() == "ALL":
		return refused(g.node.Verb+" "+g.right()+" ON SCHEMA::", "PostgreSQL has no such right on a schema")
	default:
		statements = g.verb() + word + " on all " + objects + " in schema %4$I" + g.direction() +
			"; alter default privileges in schema %4$I " + g.verb() + word + " on " + objects + g.direction()
	}
	if g.node.Verb == "GRANT" {
		statements += "; " + entersSchema
	}
	if err := t.change(ctx, g, statements, "", "", schema); err != nil {
		return err
	}
	if g.right() == "ALTER" {
		return t.denied(ctx, g, notOwned("nspowner", "pg_namespace", "pg_catalog.quote_ident($2::text)::regnamespace")+
			" and pg_catalog.has_schema_privilege(m.oid, $2::text, 'create')", schema)
	}
	return t.denied(ctx, g, heldInSchema(word, objects), schema)
}

var foundType = `select json_build_array(quote_ident(n.nspname) || '.' || quote_ident(t.typname), n.nspname)
from pg_catalog.pg_type as t join pg_catalog.pg_namespace as n on n.oid = t.typnamespace
where n.oid = ` + connection.SchemaNamed("$1::text") + ` and lower(t.typname) = lower($2) and t.typtype in ('d', 'c')
  and pg_catalog.obj_description(t.oid, 'pg_type') ~* '^\s*create'
order by t.typname = $2 desc limit 1`

// ofType grants the use of a type that the user made. PostgreSQL gives it to all at first.
func (t *Translator) ofType(ctx context.Context, g *grant) *fault.Error {
	found, err := t.ask(ctx, foundType, schemaOr(g.node.On.Schema()), g.node.On.Object())
	if err != nil {
		return connection.Fault(err, g.node.Verb)
	}
	if found == "" {
		return fault.New(15151, "find", "type", g.node.On.Object())
	}
	if g.isView() {
		return g.informs()
	}
	if g.right() != "EXECUTE" && g.right() != "REFERENCES" {
		return refused(g.node.Verb+" "+g.right()+" ON TYPE::", "PostgreSQL has no such right on a type")
	}
	parts := listOf(found, 2)
	statements := g.verb() + "usage on type %1$s" + g.direction()
	if g.node.Verb == "GRANT" {
		statements += "; " + entersSchema
	}
	if err := t.change(ctx, g, statements, parts[0], "", parts[1]); err != nil {
		return err
	}
	return t.denied(ctx, g, notOwned("typowner", "pg_type", "$2::text::regtype")+
		" and pg_catalog.has_type_privilege(m.oid, $2::text, 'usage')", parts[0])
}

// isBrokerCreation has the kinds of objects that the broker has a right to create for.
var isBrokerCreation = map[string]bool{
	"QUEUE": true, "SERVICE": true, "CONTRACT": true, "MESSAGE TYPE": true, "ROUTE": true, "REMOTE SERVICE BINDING": true,
	"CERTIFICATE": true,
}

// inSchemas are objects that a role may create which may create in their schema.
var inSchemas = []string{"TABLE", "VIEW", "PROCEDURE", "FUNCTION", "TYPE", "SYNONYM", "DEFAULT", "RULE", "AGGREGATE", "SEQUENCE"}

// ofDatabase grants a right on the database as a whole: one that the broker has, or one on the objects of all schemas.
func (t *Translator) ofDatabase(ctx context.Context, g *grant) *fault.Error {
	found, err := t.ask(ctx, "select json_build_array(current_database(), to_regnamespace('parley'))")
	if err != nil {
		return connection.Fault(err, g.node.Verb)
	}
	parts := listOf(found, 2)
	current, hasBroker := parts[0], parts[1] != ""
	if named := g.node.On.Object(); named != "" && !strings.EqualFold(named, current) {
		return fault.New(15151, "find", "database", named)
	}
	created, creates := strings.CutPrefix(g.right(), "CREATE ")
	switch {
	case g.right() == "CONNECT":
		return nil // PostgreSQL asks for it when a role connects
	case g.isView() && (g.right() != "VIEW DEFINITION" || !hasBroker):
		return g.informs()
	case creates && isBrokerCreation[created], g.isView():
		return t.ofBroker(ctx, g, "database", "")
	case creates && created == "SCHEMA":
		if err := t.change(ctx, g, g.verb()+"create on database %4$I"+g.direction(), "", "", current); err != nil {
			return err
		}
		return t.denied(ctx, g, notOwned("datdba", "pg_database", "(select d.oid from pg_catalog.pg_database as d where d.datname = $2::text)")+
			" and pg_catalog.has_database_privilege(m.oid, $2::text, 'create')", current)
	case creates && slices.Contains(inSchemas, created):
		return inform(g.sink, g.node.Verb+" "+g.right(), "a role may create it in a schema on which it has ALTER")
	case rightsOf['r'][g.right()] == "" && rightsOf['p'][g.right()] == "" || g.right() == "ALL":
		return refused(g.node.Verb+" "+g.right(), "rights on a database and on the server are those of PostgreSQL")
	}
	schemas, err := t.ask(ctx, "select coalesce(json_agg(n.nspname), '[]')::text from pg_catalog.pg_namespace as n where "+isOfUser+
		" and pg_catalog.has_schema_privilege(n.oid, 'create')")
	if err != nil {
		return connection.Fault(err, g.node.Verb)
	}
	for _, name := range listOf(schemas, 0) {
		if err := t.inSchema(ctx, g, name); err != nil {
			return err
		}
	}
	return nil
}
