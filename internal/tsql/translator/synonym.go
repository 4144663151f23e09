package translator

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
)

// A synonym is an empty composite type whose comment names the object behind it. So it shares the names of tables and views, as in SQL
// Server, a rollback undoes it, and any name may stand behind it.
const synonymMark = "SYNONYM FOR "

// isSynonym holds for the type t of a synonym.
const isSynonym = `t.typtype = 'c' and pg_catalog.starts_with(pg_catalog.obj_description(t.oid, 'pg_type'), '` + synonymMark + `')`

// behindSynonym is the name behind the synonym of the type t.
const behindSynonym = `substring(pg_catalog.obj_description(t.oid, 'pg_type') from 13)`

var synonymQuery = `select ` + behindSynonym + `, quote_ident(n.nspname) || '.' || quote_ident(t.typname)
from pg_catalog.pg_type as t join pg_catalog.pg_namespace as n on n.oid = t.typnamespace
where n.oid = ` + connection.SchemaNamed("$1::text") + ` and lower(t.typname) = lower($2::text) and ` + isSynonym + `
order by t.typname = $2::text desc limit 1`

// synonymOf gives the name behind a synonym and how SQL writes the synonym; both are empty where there is none.
func (t *Translator) synonymOf(ctx context.Context, name ast.Name) (base ast.Name, sql string, err *fault.Error) {
	if err := t.prepare(ctx); err != nil {
		return base, "", err
	}
	schema, written := name.Schema(), ""
	if schema == "" {
		schema = "dbo"
	}
	err = t.rows(ctx, synonymQuery, []string{schema, name.Object()}, func(row []string) { written, sql = row[0], row[1] })
	return ast.Name{Parts: nameParts(written)}, sql, err
}

// Synonym gives the name behind a synonym, which is none itself; it is empty where there is no synonym of the name. Error 470 for one
// that names another one.
func (t *Translator) Synonym(ctx context.Context, name ast.Name) (ast.Name, *fault.Error) {
	base, _, err := t.synonymOf(ctx, name)
	if err != nil || base.IsEmpty() || base.Database() != "" && !t.isCurrent(ctx, base.Database()) {
		return base, err
	}
	if next, _, err := t.synonymOf(ctx, base); err != nil || !next.IsEmpty() {
		if err == nil {
			err = fault.New(470, name.String(), base.String())
		}
		return ast.Name{}, err
	}
	return base, nil
}

// reads resolves the name of a table that a statement reads or changes: a synonym stands for the table behind it, also for one of
// another database where all tables of the statement stand there.
func (t *Translator) reads(ctx context.Context, name ast.Name) (*relation, *fault.Error) {
	if base, is := t.far[farKey(name)]; is {
		return t.relationOf(ctx, base)
	}
	r, err := t.relationOf(ctx, name)
	if err == nil || err.Number != 208 {
		return r, err
	}
	if t.far != nil && name.Database() == "" {
		return nil, expression.Unsupported("a statement over tables of two databases")
	}
	base, failed := t.Synonym(ctx, name)
	switch {
	case failed != nil:
		return nil, failed
	case base.IsEmpty():
		return nil, err
	case base.Server() == "" && base.Database() != "" && !t.isCurrent(ctx, base.Database()):
		if t.nextFar == nil {
			t.nextFar = map[string]ast.Name{}
		}
		t.nextFar[farKey(name)] = base
		elsewhere := expression.Unsupported("a table of another database")
		elsewhere.Elsewhere = base.Database()
		return nil, elsewhere
	}
	if r, err = t.relationOf(ctx, base); err != nil && err.Number == 208 {
		err = fault.New(5313, name.String())
	}
	return r, err
}

func farKey(name ast.Name) string { return strings.ToLower(name.String()) }

// functionNamed finds a function of the user by its name or by a synonym.
func (t *Translator) functionNamed(ctx context.Context, name ast.Name) (*userFunction, *fault.Error) {
	f, _, err := t.functionOf(ctx, name)
	if err != nil || f != nil {
		return f, err
	}
	base, err := t.Synonym(ctx, name)
	if err != nil || base.IsEmpty() {
		return nil, err
	}
	if base.Database() != "" && !t.isCurrent(ctx, base.Database()) {
		return nil, expression.Unsupported("a function of another database")
	}
	if f, _, err = t.functionOf(ctx, base); err == nil && f == nil {
		err = fault.New(5313, name.String())
	}
	return f, err
}

// createSynonym compiles CREATE SYNONYM. The object behind it is looked for when a statement uses the synonym.
func (t *Translator) createSynonym(node *ast.Synonym) (interpreter.Statement, *fault.Error) {
	if node.For.Server() != "" {
		return nil, expression.Unsupported("a name with a server")
	}
	return t.defines("CREATE SYNONYM", func(ctx context.Context) ([]string, *fault.Error) {
		if err := t.prepare(ctx); err != nil {
			return nil, err
		}
		schema, err := t.schemaOf(ctx, node.Name.Schema())
		if err != nil {
			return nil, err
		}
		taken, err := t.objectID(ast.Bracketed(schema)+"."+ast.Bracketed(node.Name.Object()), "")
		if err != nil {
			return nil, err
		}
		if !taken.IsNull() {
			return nil, fault.New(2714, node.Name.Object())
		}
		name := quote(schema) + "." + quote(node.Name.Object())
		parts := make([]string, len(node.For.Parts))
		for i, part := range node.For.Parts {
			if parts[i] = part; part != "" {
				parts[i] = ast.Bracketed(part)
			}
		}
		return []string{
			"create type " + name + " as ()", "comment on type " + name + " is " + quoteText(synonymMark+strings.Join(parts, ".")),
		}, nil
	}), nil
}

func (t *Translator) dropSynonyms(ctx context.Context, node *ast.Drop) ([]string, *fault.Error) {
	return dropEach(node, func(name ast.Name) (string, bool, *fault.Error) {
		_, sql, err := t.synonymOf(ctx, name)
		return "drop type " + sql, sql != "", err
	}, func(name ast.Name) *fault.Error { return fault.New(3701, "drop", "synonym", name.String()) })
}

// synonymObjects has the synonyms as rows of sys.objects.
var synonymObjects = `select t.typrelid::integer, ` + textOf("t.typname") + `, n.oid::integer, 0, ` + textOf("'SN'") + `,
  ` + textOf("'SYNONYM'") + `, timestamp '1900-01-01', timestamp '1900-01-01', false
from pg_catalog.pg_type as t join pg_catalog.pg_namespace as n on n.oid = t.typnamespace
where ` + isSynonym + ` and ` + visible

func init() { //nolint:gochecknoinits // the views are registered one by one
	columns, sql := viewOf("("+objectsQuery+") as v join pg_catalog.pg_type as t on t.typrelid = v.object_id::oid where v.type = 'SN'",
		objectLines+"\nbase_object_name nvarchar(1035) = "+behindSynonym)
	Register("sys.synonyms", columns, sql)
}
