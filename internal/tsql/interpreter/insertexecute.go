package interpreter

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// insertExecute compiles INSERT ... EXECUTE: the rows of all result sets are gathered, then put into the table at once.
func (c *compiler) insertExecute(node *ast.Insert) *fault.Error {
	inner := *c
	inner.program = &program{name: c.program.name, variables: c.program.variables}
	if err := inner.execute(node.Execute); err != nil {
		return err
	}
	run := inner.program.instructions[0].run
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		s, outer := a.session, a.session.sink
		if _, nested := outer.(*gatheringSink); nested {
			return fault.New(8164)
		}
		gathered := &gatheringSink{Sink: outer}
		s.sink, s.gathersAt = gathered, s.depth+1
		_, err := run(ctx, a)
		s.sink, s.gathersAt = outer, 0
		if err != nil {
			return err
		}
		return s.external(ctx, a, &gatheredRows{node: node, scope: c, session: s, rows: gathered.rows})
	})
	return nil
}

// A gatheringSink keeps rows in place of giving them to the client; messages pass.
type gatheringSink struct {
	session.Sink
	rows [][]value.Value
}

// Columns, Row and Done keep what they get.
func (*gatheringSink) Columns([]session.Column) error { return nil }

// Row keeps a row.
func (g *gatheringSink) Row(row []value.Value) error {
	g.rows = append(g.rows, append([]value.Value(nil), row...))
	return nil
}

// Done shows no count of the statements inside.
func (*gatheringSink) Done(session.Done) error { return nil }

// gatheredRows is the statement that inserts them.
type gatheredRows struct {
	node    *ast.Insert
	scope   expression.Scope
	session *Session
	rows    [][]value.Value
}

// IsWrite says that a doomed transaction refuses it.
func (*gatheredRows) IsWrite() bool { return true }

// Fires says that the rows go in together, in a transaction with the triggers of the table.
func (*gatheredRows) Fires() bool { return true }

// Run inserts the rows.
func (g *gatheredRows) Run(ctx context.Context, f *expression.Frame, _ session.Sink) (int64, bool, *fault.Error) {
	n, err := g.session.translator.Insert(ctx, g.node, g.scope, f, g.rows)
	return n, true, err
}
