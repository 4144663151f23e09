package translator

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// again is a statement that is translated anew when a definition or a rollback may have changed its tables.
type again struct {
	translator *Translator
	node       ast.Statement
	scope      expression.Scope
	from       *interpreter.RowSource // of RECEIVE ... INTO
	compiled   interpreter.Statement
	generation int
	isCut      bool // it was translated while SET ROWCOUNT limited statements
}

func (a *again) compile(ctx context.Context) *fault.Error {
	compiled, err := a.translated(ctx)
	if err != nil {
		return err.At(a.node.At().Line, "")
	}
	a.compiled, a.generation, a.isCut = compiled, a.translator.generation, a.translator.isCutting()
	return nil
}

func (a *again) translated(ctx context.Context) (interpreter.Statement, *fault.Error) {
	if insert, is := a.node.(*ast.Insert); is && a.from != nil {
		return a.translator.insertFrom(ctx, insert, a.scope, a.from)
	}
	return a.translator.statement(ctx, a.node, a.scope)
}

// IsWrite says that a doomed transaction refuses it.
func (a *again) IsWrite() bool { return a.compiled.IsWrite() }

// Fires says that the statement needs a transaction around it and its triggers.
func (a *again) Fires() bool {
	c, is := a.compiled.(*change)
	return is && c.Fires()
}

// IsSilent says that message 3621 follows none of its errors: definitions.
func (a *again) IsSilent() bool {
	s, is := a.compiled.(interpreter.Silent)
	return is && s.IsSilent()
}

// IsLocal says that it asks no database.
func (a *again) IsLocal() bool {
	l, is := a.compiled.(interpreter.Local)
	return is && l.IsLocal() && a.generation == a.translator.generation
}

// Run translates the statement again where it must, and runs it.
func (a *again) Run(ctx context.Context, f *expression.Frame, sink session.Sink) (int64, bool, *fault.Error) {
	if a.generation != a.translator.generation || a.isCut != a.translator.isCutting() {
		if err := a.compile(ctx); err != nil {
			return 0, false, err
		}
		if a.Fires() && !a.translator.connection.IsOpen() { // a trigger came meanwhile: the statement begins again, in a transaction
			return 0, false, &fault.Error{Number: 50000, Severity: 16, State: 1, IsOutdated: true, Message: "A definition changed meanwhile."}
		}
	}
	rows, counts, err := a.compiled.Run(ctx, f, sink)
	if err != nil && err.IsOutdated {
		// The transaction is to go on, so that the tables can be asked for.
		if undone := a.translator.connection.Undo(ctx); undone != nil {
			return 0, false, lost(undone)
		}
		a.translator.forget()
		if failed := a.compile(ctx); failed != nil {
			return 0, false, failed
		}
	}
	return rows, counts, err
}

// A definitionStatement defines an object, or does something else that counts no rows.
type definitionStatement struct {
	run func(ctx context.Context, f *expression.Frame) *fault.Error
}

// IsWrite says that a doomed transaction refuses it.
func (*definitionStatement) IsWrite() bool { return true }

// IsSilent says that message 3621 follows none of its errors.
func (*definitionStatement) IsSilent() bool { return true }

// Run runs it.
func (d *definitionStatement) Run(ctx context.Context, f *expression.Frame, _ session.Sink) (int64, bool, *fault.Error) {
	return 0, false, d.run(ctx, f)
}
