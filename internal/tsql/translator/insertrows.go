package translator

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// rows inserts rows that Go has, in one statement.
func (i *insertion) rows(ctx context.Context, f *expression.Frame, rows [][]value.Value, sink session.Sink) (int64, *fault.Error) {
	if len(rows) == 0 {
		return 0, nil
	}
	b := i.translator.builder(ctx, i.scope)
	b.names, b.tables, b.isCut = &names{}, i.tables, i.isCut
	again := *i
	again.builder = b
	var written []string
	for _, row := range rows {
		if len(row) != len(i.columns) {
			return 0, i.countFault(len(row), false)
		}
		var cells []string
		for n, v := range row {
			constant := func(*expression.Frame) (value.Value, *fault.Error) { return v, nil }
			cell, err := b.stored(&expression.Expression{Type: v.Type(), Evaluate: constant}, i.columns[n])
			if err != nil {
				return 0, err
			}
			cells = append(cells, cell.sql)
		}
		written = append(written, "("+strings.Join(cells, ", ")+")")
		if len(b.parameters) > maxParameters {
			return 0, expression.Unsupported("INSERT of so many values through the runner")
		}
	}
	c, err := again.finished("values " + strings.Join(written, ", "))
	if err != nil {
		return 0, err
	}
	if c.fires != nil {
		return c.withTables(ctx, f, sink)
	}
	return c.run(ctx, f, sink)
}

// maxParameters is the limit of PostgreSQL for one statement.
const maxParameters = 65_000

// Insert puts rows of EXECUTE into the target of INSERT.
func (t *Translator) Insert(
	ctx context.Context, node *ast.Insert, s expression.Scope, f *expression.Frame, rows [][]value.Value,
) (int64, *fault.Error) {
	if err := t.prepare(ctx); err != nil {
		return 0, err
	}
	i, err := t.insertion(ctx, node, s)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		if len(row) != len(i.columns) { // of EXECUTE: nothing of its rows can be kept
			return 0, &fault.Error{Number: 213, Severity: 16, State: 7, Message: fault.New(213).Message, Reach: fault.Batch}
		}
	}
	total := int64(0)
	batch := max(1, maxParameters/max(1, len(i.columns)))
	for len(rows) > 0 {
		n := min(batch, len(rows))
		inserted, err := i.rows(ctx, f, rows[:n], nil)
		if err != nil {
			return total, err
		}
		total, rows = total+inserted, rows[n:]
	}
	return total, nil
}
