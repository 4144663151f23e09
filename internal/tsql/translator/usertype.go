package translator

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/parser"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// userTypeQuery finds a type of CREATE TYPE by its names without regard to case: its comment has the text.
var userTypeQuery = `select pg_catalog.obj_description(t.oid, 'pg_type'), t.typtype::text,
  quote_ident(n.nspname) || '.' || quote_ident(t.typname)
from pg_catalog.pg_type as t join pg_catalog.pg_namespace as n on n.oid = t.typnamespace
where n.oid = ` + connection.SchemaNamed("$1::text") + ` and lower(t.typname) = lower($2::text) and t.typtype in ('d', 'c')
  and pg_catalog.obj_description(t.oid, 'pg_type') ~* '^\s*create'
order by t.typname = $2::text desc limit 1`

// foundType gives the statement that made a type, and how SQL drops it; nil where there is none.
func (t *Translator) foundType(ctx context.Context, name ast.Name) (node *ast.CreateType, drop string, err *fault.Error) {
	if err := t.prepare(ctx); err != nil {
		return nil, "", err
	}
	schema := name.Schema()
	if schema == "" {
		schema = "dbo"
	}
	text := ""
	err = t.rows(ctx, userTypeQuery, []string{schema, name.Object()}, func(row []string) {
		text, drop = row[0], "drop type "+row[2]
		if row[1] == "d" {
			drop = "drop domain " + row[2]
		}
	})
	if err != nil || text == "" {
		return nil, "", err
	}
	parsed, failed := parser.Parse(text, parser.Options{})
	if failed != nil || len(parsed.Statements) != 1 {
		return nil, "", fault.New(218, name.String())
	}
	node, _ = parsed.Statements[0].(*ast.CreateType)
	return node, drop, nil
}

// UserType gives a type that the user defined; nil where there is none of this name, or no database to ask.
func (t *Translator) UserType(ctx context.Context, name ast.Name) *interpreter.UserType {
	node, _, err := t.foundType(ctx, name)
	switch {
	case err != nil || node == nil:
		return nil
	case node.Table != nil:
		return &interpreter.UserType{Table: node.Table}
	}
	alias, err := expression.TypeOf(node.Base, value.Declaration)
	if err != nil {
		return nil
	}
	return &interpreter.UserType{Alias: alias, IsNotNull: node.Nullable == "NOT NULL"}
}

// typeOf gives a type: of the system, or an alias of the user's.
func (t *Translator) typeOf(ctx context.Context, node ast.DataType) (value.Type, *fault.Error) {
	found, _, err := t.columnType(ctx, node)
	return found, err
}

// columnType gives a type, and whether a column of it is NOT NULL where it does not say so.
func (t *Translator) columnType(ctx context.Context, node ast.DataType) (value.Type, bool, *fault.Error) {
	found, err := expression.TypeOf(node, value.Declaration)
	if err == nil || err.Number != 2715 || len(node.Arguments) > 0 {
		return found, false, err
	}
	own := t.UserType(ctx, node.Name)
	switch {
	case own == nil:
		return found, false, err
	case own.Table != nil:
		return found, false, fault.New(350, node.Name.Object())
	}
	return own.Alias, own.IsNotNull, nil
}

// createType compiles CREATE TYPE: an alias is a domain of PostgreSQL, a table type a composite type, each with its text as a comment.
// The columns of tables and the variables of batches have the type behind it, so a type may be dropped while they are there.
func (t *Translator) createType(node *ast.CreateType) (interpreter.Statement, *fault.Error) {
	if node.External != nil {
		return nil, expression.Unsupported("EXTERNAL NAME of a type")
	}
	return t.defines("CREATE TYPE", func(ctx context.Context) ([]string, *fault.Error) {
		known, _, err := t.foundType(ctx, node.Name)
		if err != nil {
			return nil, err
		}
		if known != nil {
			return nil, fault.New(219, node.Name.String())
		}
		schema, err := t.schemaOf(ctx, node.Name.Schema())
		if err != nil {
			return nil, err
		}
		name := quote(schema) + "." + quote(node.Name.Object())
		if node.Table != nil {
			// The shape is checked as that of a table variable is.
			shape, _, err := t.tableOf(ctx, &relation{schema: "pg_temp", name: node.Name.Object(), sql: name}, node.Table, true)
			if err != nil {
				return nil, err
			}
			var columns []string
			for _, c := range shape.columns {
				columns = append(columns, quote(c.name)+" "+databaseType(c.typ))
			}
			return []string{
				"create type " + name + " as (" + strings.Join(columns, ", ") + ")", "comment on type " + name + " is " + quoteText(node.Text),
			}, nil
		}
		base, err := expression.TypeOf(node.Base, value.Declaration)
		if err != nil {
			return nil, err
		}
		if base.Kind == value.Variant || base.Kind == value.XML || base.Kind >= value.Table {
			return nil, fault.New(222, base.Kind)
		}
		return []string{
			"create domain " + name + " as " + databaseType(base), "comment on domain " + name + " is " + quoteText(node.Text),
		}, nil
	}), nil
}

func (t *Translator) dropTypes(ctx context.Context, node *ast.Drop) ([]string, *fault.Error) {
	return dropEach(node, func(name ast.Name) (string, bool, *fault.Error) {
		known, drop, err := t.foundType(ctx, name)
		return drop, known != nil, err
	}, func(name ast.Name) *fault.Error { return fault.New(218, name.String()) })
}
