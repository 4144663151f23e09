package security

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/calls"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// ofOwners is the statement, as errors name it.
const ofOwners = "ALTER AUTHORIZATION"

// authorization compiles ALTER AUTHORIZATION. Roles have no owner in PostgreSQL. Page: statements/alter-authorization-transact-sql.
func (t *Translator) authorization(node *ast.Authorization) (*statement, *fault.Error) {
	give := t.givesObject
	class, isBroker := brokerClasses[node.Class]
	switch {
	case isBroker:
		give = func(ctx context.Context, node *ast.Authorization, role string) *fault.Error {
			return t.givesOfBroker(ctx, class, node.On.Object(), role)
		}
	case node.Class == "DATABASE":
		give = t.givesDatabase
	case node.Class == "SCHEMA":
		give = t.givesSchema
	case node.Class == "TYPE":
		give = t.givesType
	case node.Class != "" && node.Class != "OBJECT":
		return nil, refused(ofOwners+" ON "+node.Class, "change the owner by PostgreSQL")
	}
	if node.IsSchemaOwner && (isBroker || node.Class == "DATABASE" || node.Class == "SCHEMA") {
		return nil, refused(ofOwners+" ON "+node.Class+":: TO SCHEMA OWNER", "it is in no schema: name the owner")
	}
	return &statement{run: func(ctx context.Context, _ *expression.Frame, sink session.Sink) *fault.Error {
		if node.Class == "DATABASE" && (strings.EqualFold(node.Owner, "sa") || strings.EqualFold(node.Owner, "dbo")) {
			return inform(sink, ofOwners+" ON DATABASE", "the owner of the database stays")
		}
		if node.IsSchemaOwner {
			return give(ctx, node, "")
		}
		role, err := t.roleOf(ctx, node.Owner)
		if err != nil {
			return err
		}
		return give(ctx, node, role)
	}}, nil
}

// givesOfBroker has the broker ask who may give an object of its own away.
func (t *Translator) givesOfBroker(ctx context.Context, class, object, role string) *fault.Error {
	call := calls.Text(ofOwners, "class => $1", "object => $2", `"owner" => $3`)
	if _, err := t.ask(ctx, "select "+call, class, object, role); err != nil {
		return connection.Fault(err, ofOwners)
	}
	return nil
}

func (t *Translator) givesDatabase(ctx context.Context, node *ast.Authorization, role string) *fault.Error {
	return given(t.written(ctx, "alter database %I owner to %I", strings.ToLower(node.On.Object()), role), "database", node)
}

func (t *Translator) givesSchema(ctx context.Context, node *ast.Authorization, role string) *fault.Error {
	const spelled = "select n.nspname from pg_catalog.pg_namespace as n where n.oid = "
	schema, err := t.ask(ctx, spelled+connection.SchemaNamed("$1::text"), node.On.Object())
	switch {
	case err != nil:
		return connection.Fault(err, ofOwners)
	case schema == "":
		return fault.New(15151, "find", "schema", node.On.Object())
	}
	return given(t.written(ctx, "alter schema %I owner to %I", schema, role), "schema", node)
}

// givesType gives a type of the user to a role, or to the owner of its schema.
func (t *Translator) givesType(ctx context.Context, node *ast.Authorization, role string) *fault.Error {
	found, err := t.ask(ctx, foundType, schemaOr(node.On.Schema()), node.On.Object())
	switch {
	case err != nil:
		return connection.Fault(err, ofOwners)
	case found == "":
		return fault.New(15151, "find", "type", node.On.Object())
	}
	parts := listOf(found, 2)
	return given(t.writtenIn(ctx, "type", parts[0], parts[1], role), "type", node)
}

// givesObject gives a queue, table, view, procedure, function or sequence to a role, or to the owner of its schema.
func (t *Translator) givesObject(ctx context.Context, node *ast.Authorization, role string) *fault.Error {
	found, err := t.ask(ctx, foundObject, schemaOr(node.On.Schema()), node.On.Object())
	switch {
	case err != nil:
		return connection.Fault(err, ofOwners)
	case found == "":
		return fault.New(15151, "find", "object", node.On.Object())
	}
	parts := listOf(found, 3)
	kind, schema, name := parts[0][0], parts[1], parts[2]
	if kind != 'q' {
		word := wordsOf[kind]
		if word == "" {
			word = "table" // of views too
		}
		return given(t.writtenIn(ctx, word, name, schema, role), "object", node)
	}
	if role == "" { // queues are in dbo
		var refusal *fault.Error
		if role, refusal = t.roleOf(ctx, "dbo"); refusal != nil {
			return refusal
		}
	}
	return t.givesOfBroker(ctx, "queue", name, role)
}

// givesAndEnters writes the statements that give what has the name $2 to the role $4, or to the owner of the schema $3 where that is
// empty, and let the new owner enter the schema, which SQL Server does not ask for.
const givesAndEnters = `select pg_catalog.format('do %L', pg_catalog.format('begin alter ' || $1::text || ' %s owner to %I; '
  || 'if pg_catalog.has_schema_privilege(%3$L, ''usage with grant option'') then grant usage on schema %3$I to %2$I; end if; end',
  $2::text, case when $4::text = '' then pg_catalog.pg_get_userbyid(n.nspowner) else $4::text end, n.nspname))
from pg_catalog.pg_namespace as n where n.nspname = $3::text`

// writtenIn gives an object in a schema to a role; no role stands for the owner of the schema.
func (t *Translator) writtenIn(ctx context.Context, kind, name, schema, role string) error {
	command, err := t.ask(ctx, givesAndEnters, kind, name, schema, role)
	if err == nil {
		_, err = t.ask(ctx, command)
	}
	return err
}

// given tells how PostgreSQL took a change of an owner. One that may not make it learns no more than that of what is not there.
func given(err error, kind string, node *ast.Authorization) *fault.Error {
	switch {
	case err == nil:
		return nil
	case stateOf(err) == "42501":
		return fault.New(15151, "find", kind, node.On.Object())
	}
	return connection.Fault(err, ofOwners)
}

// schemaOr gives the schema of a name, dbo where it has none.
func schemaOr(schema string) string {
	if schema == "" {
		return "dbo"
	}
	return schema
}
