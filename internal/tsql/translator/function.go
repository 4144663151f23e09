package translator

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/parser"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A userFunction is a function of the user: the comment of a function of PostgreSQL has its text.
type userFunction struct {
	node       *ast.Function
	parameters []value.Type
	result     value.Type
}

// functionQuery finds a function by its names without regard to case.
var functionQuery = `select pg_catalog.obj_description(p.oid, 'pg_proc'), quote_ident(n.nspname) || '.' || quote_ident(p.proname)
from pg_catalog.pg_proc as p join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
where n.oid = ` + connection.SchemaNamed("$1::text") + ` and lower(p.proname) = lower($2::text) and p.pronargs = 0
  and pg_catalog.has_function_privilege(p.oid, 'execute')
  and pg_catalog.obj_description(p.oid, 'pg_proc') ~* '^\s*(create|alter)'
order by p.proname = $2::text desc limit 1`

// functionOf finds a function of the user; nil where there is none.
func (t *Translator) functionOf(ctx context.Context, name ast.Name) (*userFunction, string, *fault.Error) {
	if err := t.prepare(ctx); err != nil {
		return nil, "", err
	}
	schema := name.Schema()
	if schema == "" {
		schema = "dbo"
	}
	text, place := "", ""
	err := t.rows(ctx, functionQuery, []string{schema, name.Object()}, func(row []string) { text, place = row[0], row[1] })
	if err != nil || text == "" {
		return nil, "", err
	}
	parsed, failed := parser.Parse(text, parser.Options{})
	if failed != nil || len(parsed.Statements) != 1 {
		return nil, "", fault.New(208, name.String())
	}
	node, is := parsed.Statements[0].(*ast.Function)
	if !is {
		return nil, "", nil
	}
	f := &userFunction{node: node}
	for _, p := range node.Parameters {
		typ, err := t.typeOf(ctx, p.Type)
		if err != nil {
			return nil, "", err
		}
		f.parameters = append(f.parameters, typ)
	}
	if !node.IsTable {
		f.result, err = t.typeOf(ctx, node.Returns)
	}
	return f, place, err
}

// createFunction compiles CREATE, ALTER and CREATE OR ALTER FUNCTION. A client that runs no T-SQL cannot call it.
func (t *Translator) createFunction(node *ast.Function) interpreter.Statement {
	return t.defines(node.Verb+" FUNCTION", func(ctx context.Context) ([]string, *fault.Error) {
		if node.External != nil {
			return nil, expression.Unsupported("EXTERNAL NAME of a function")
		}
		for _, option := range node.Options {
			if strings.HasPrefix(option.Words, "EXECUTE AS") && !strings.HasSuffix(option.Words, "CALLER") {
				return nil, expression.Unsupported("EXECUTE AS of a function")
			}
		}
		for _, p := range node.Parameters {
			if _, err := t.typeOf(ctx, p.Type); err != nil {
				return nil, err
			}
		}
		existing, place, err := t.functionOf(ctx, node.Name)
		switch {
		case err != nil:
			return nil, err
		case existing != nil && node.Verb == "CREATE":
			return nil, fault.New(2714, node.Name.Object())
		case existing == nil && node.Verb == "ALTER":
			return nil, fault.New(208, node.Name.String())
		case existing == nil:
			schema, err := t.schemaOf(ctx, node.Name.Schema())
			if err != nil {
				return nil, err
			}
			place = quote(schema) + "." + quote(node.Name.Object())
		}
		set := ""
		if node.IsTable {
			set = "setof "
		}
		made := []string{
			"create or replace function " + place + "() returns " + set + "text language plpgsql set search_path = pg_catalog, pg_temp as " +
				quoteText("begin raise exception 'the T-SQL function runs through parley tsql alone' using errcode = 'feature_not_supported'; end"),
			"comment on function " + place + "() is " + quoteText(node.Text),
		}
		if existing == nil { // only its owner may execute a new one
			made = append(made, "revoke execute on function "+place+"() from public")
		}
		return made, nil
	})
}

func (t *Translator) dropFunctions(ctx context.Context, node *ast.Drop) ([]string, *fault.Error) {
	return dropEach(node, func(name ast.Name) (string, bool, *fault.Error) {
		f, place, err := t.functionOf(ctx, name)
		return "drop function " + place + "()", f != nil, err
	}, func(name ast.Name) *fault.Error { return fault.New(3701, "drop", "function", name.String()) })
}

// arguments compiles the arguments of a call of the user's: errors 313 and 8144 for their number.
func (f *userFunction) arguments(name ast.Name, nodes []ast.Expression, scope expression.Scope) ([]*expression.Expression, *fault.Error) {
	switch {
	case len(nodes) < len(f.parameters):
		return nil, fault.New(313, name.String())
	case len(nodes) > len(f.parameters):
		return nil, fault.New(8144, name.String())
	}
	compiled := make([]*expression.Expression, len(nodes))
	for i, node := range nodes {
		if literal, is := node.(*ast.Literal); is && literal.Kind == ast.Default {
			node = f.node.Parameters[i].Default
			if node == nil {
				node = &ast.Literal{Kind: ast.Null}
			}
		}
		e, err := expression.CompileAs(node, f.parameters[i], scope)
		if err != nil {
			return nil, err
		}
		compiled[i] = e
	}
	return compiled, nil
}

// called compiles a call of a scalar function, which the interpreter runs.
func (b *builder) called(node *ast.Call, scope expression.Scope) (*expression.Expression, *fault.Error) {
	f, err := b.translator.functionNamed(b.ctx, node.Name)
	if err != nil {
		return nil, err
	}
	if f == nil || f.node.IsTable {
		return nil, fault.New(4121, node.Name.Schema(), node.Name.String())
	}
	arguments, err := f.arguments(node.Name, node.Arguments, scope)
	if err != nil {
		return nil, err
	}
	b.callsModules = true
	host := b.translator.host
	return &expression.Expression{Type: f.result, Evaluate: func(frame *expression.Frame) (value.Value, *fault.Error) {
		values, err := evaluateAll(arguments, frame)
		if err != nil {
			return value.Value{}, err
		}
		ctx, _ := frame.Outside.(context.Context)
		return host.Call(ctx, f.node, f.result, values)
	}}, nil
}

func evaluateAll(arguments []*expression.Expression, frame *expression.Frame) ([]value.Value, *fault.Error) {
	values := make([]value.Value, len(arguments))
	for i, a := range arguments {
		v, err := a.Evaluate(frame)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

// userFunction makes a parameter of a call that reads no rows; PostgreSQL itself cannot run T-SQL.
func (b *builder) userFunction(node *ast.Call) (sqlExpression, *fault.Error) {
	for _, a := range node.Arguments {
		if b.readsRows(a) {
			return sqlExpression{}, expression.Unsupported(node.Name.String() + "() of rows in the database")
		}
	}
	e, err := b.called(node, goScope{builder: b})
	if err != nil {
		return sqlExpression{}, err
	}
	return b.parameter(e, ""), nil
}

// userTable translates a table function in FROM: one that is a single query takes part in the statement, one of several statements
// runs before it.
func (b *builder) userTable(node *ast.Call, alias ast.Alias) (string, *fault.Error) {
	f, err := b.translator.functionNamed(b.ctx, node.Name)
	if err != nil {
		return "", err
	}
	if f == nil || !f.node.IsTable {
		return "", fault.New(208, node.Name.String())
	}
	if f.node.Query == nil {
		return b.ranTable(f, node, alias)
	}
	inline := map[string]sqlExpression{}
	if len(node.Arguments) != len(f.parameters) {
		return "", fault.New(313, node.Name.String())
	}
	for i, argument := range node.Arguments {
		e, err := b.expression(argument)
		if err != nil {
			return "", err
		}
		if e, err = b.convert(e, f.parameters[i], implicit); err != nil {
			return "", err
		}
		inline[strings.ToLower(f.node.Parameters[i].Name)] = e
	}
	outerNames, outerInline := b.names, b.inline
	b.names, b.inline = nil, inline
	prefix, done, err := b.with(f.node.With)
	sql, columns := "", []sourceColumn(nil)
	if err == nil {
		sql, columns, err = b.derived(f.node.Query)
	}
	done()
	b.names, b.inline = outerNames, outerInline
	if err != nil {
		return "", err
	}
	return b.named("("+prefix+sql+")", columns, alias)
}

// ranTable runs a function of several statements when the statement begins; its rows travel as one parameter.
func (b *builder) ranTable(f *userFunction, node *ast.Call, alias ast.Alias) (string, *fault.Error) {
	shape, err := b.translator.shapeOf(b.ctx, f.node.Variable, f.node.Table)
	if err != nil {
		return "", err
	}
	for _, a := range node.Arguments {
		if b.readsRows(a) {
			return b.appliedTable(f, node, alias, shape)
		}
	}
	arguments, err := f.arguments(node.Name, node.Arguments, goScope{builder: b})
	if err != nil {
		return "", err
	}
	t := b.translator
	rows := b.parameter(&expression.Expression{
		Type: value.Sized(value.NVarChar, value.Max), Evaluate: func(frame *expression.Frame) (value.Value, *fault.Error) {
			values, err := evaluateAll(arguments, frame)
			if err != nil {
				return value.Value{}, err
			}
			ctx, _ := frame.Outside.(context.Context)
			rows, err := t.host.CallTable(ctx, f.node, values, func(v value.Value) ([][]string, *fault.Error) { return t.rowsOf(ctx, v) })
			if err != nil {
				return value.Value{}, err
			}
			list, _ := json.Marshal(rows)
			return value.NewNVarChar(string(list)), nil
		},
	}, "")
	columns, cells := b.resultCells(shape, 0)
	return b.named("(select "+cells+" from json_array_elements("+plain(rows.sql)+"::json) as u (r))", columns, alias)
}

// rowsOf gives the rows of a table variable as text; NULL is a mark that no text has.
func (t *Translator) rowsOf(ctx context.Context, v value.Value) ([][]string, *fault.Error) {
	object, is := v.Object().(*tableObject)
	if !is {
		return [][]string{}, nil
	}
	var cells []string
	for _, c := range object.shape.columns {
		cells = append(cells, cellText(quote(c.name), c.typ))
	}
	rows := [][]string{}
	sql := "select " + strings.Join(cells, ", ") + " from pg_temp." + quote(object.name)
	err := t.rows(ctx, sql, nil, func(row []string) { rows = append(rows, row) })
	return rows, err
}
