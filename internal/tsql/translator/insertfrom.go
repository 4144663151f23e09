package translator

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// InsertFrom compiles an INSERT of the rows of a query that another Translator has: they do not leave the database.
func (t *Translator) InsertFrom(
	ctx context.Context, node *ast.Insert, s expression.Scope, from interpreter.RowSource,
) (interpreter.Statement, *fault.Error) {
	a := &again{translator: t, node: node, scope: s, from: &from}
	return a, a.compile(ctx)
}

func (t *Translator) insertFrom(
	ctx context.Context, node *ast.Insert, s expression.Scope, from *interpreter.RowSource,
) (interpreter.Statement, *fault.Error) {
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	i, err := t.insertion(ctx, node, s)
	if err != nil {
		return nil, err
	}
	if len(from.Types) != len(i.columns) {
		return nil, i.countFault(len(from.Types), false)
	}
	for _, parameter := range from.Parameters {
		i.parameters = append(i.parameters, textOfGo(func(f *expression.Frame) (value.Value, *fault.Error) {
			text, err := parameter(f)
			if err != nil || text == nil {
				return value.Null(value.Sized(value.NVarChar, value.Max)), err
			}
			return value.NewNVarChar(string(text)), nil
		}))
	}
	i.faults = from.Fault
	name := i.alias("r")
	var cells, results []string
	for n, typ := range from.Types {
		cell := "c" + itoa(n+1)
		cells = append(cells, cell)
		sql := name + "." + cell
		if typ.Kind.IsCharacter() {
			sql = "(" + sql + "::bpchar)"
		}
		e, err := i.convert(sqlExpression{sql: sql, typ: typ}, i.columns[n].typ, implicit)
		if err != nil {
			return nil, err
		}
		results = append(results, e.sql)
	}
	source := "(" + from.SQL + ") as " + name + " (" + strings.Join(cells, ", ") + ")"
	return i.finished("select " + strings.Join(results, ", ") + " from " + source)
}
