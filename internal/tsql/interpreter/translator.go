package interpreter

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// A Translator compiles what needs tables. It is asked when a statement is reached for the first time, so that a missing object is
// an error of that statement and not of the batch.
type Translator interface {
	// Statement compiles a statement; error 40510 names one that it does not know.
	Statement(ctx context.Context, node ast.Statement, scope expression.Scope) (Statement, *fault.Error)
	// Expression and Condition compile a subquery and its relatives. They run when the batch is compiled.
	Expression(node ast.Expression, scope expression.Scope) (*expression.Expression, *fault.Error)
	Condition(node ast.Condition, scope expression.Scope) (*expression.Condition, *fault.Error)
}

// A Statement is compiled by a Translator.
type Statement interface {
	// IsWrite says that a doomed transaction refuses it.
	IsWrite() bool
	// Run runs it and gives the rows that it gave or changed; counts is false for statements that count none.
	Run(ctx context.Context, frame *expression.Frame, sink session.Sink) (rows int64, counts bool, err *fault.Error)
}

// A Connection carries out what transactions are in the database. Names of savepoints are plain identifiers. The calls need not
// reach the database before the next statement does, except Commit.
type Connection interface {
	Begin(ctx context.Context) error
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
	Savepoint(ctx context.Context, name string) error
	RollbackTo(ctx context.Context, name string) error
	// Protect begins a statement whose error must leave the transaction usable, and Recover undoes what it did.
	Protect(ctx context.Context) error
	Recover(ctx context.Context) error
	// Use goes on in another database.
	Use(ctx context.Context, database string) error
	// SetIsolation sets the level of the transactions that follow, in PostgreSQL's words.
	SetIsolation(ctx context.Context, level string) error
	Close(ctx context.Context) error
}

// none is the Translator of a session without a database: it refuses each construct by its name.
type none struct{}

func (none) Statement(_ context.Context, node ast.Statement, _ expression.Scope) (Statement, *fault.Error) {
	return nil, fault.New(40510, Construct(node))
}

func (none) Expression(node ast.Expression, _ expression.Scope) (*expression.Expression, *fault.Error) {
	if call, isCall := node.(*ast.Call); isCall && len(call.Name.Parts) == 1 && call.Over == nil {
		return nil, fault.New(195, call.Name.Object(), "built-in function name").At(node.At().Line, "")
	}
	if column, isColumn := node.(*ast.ColumnReference); isColumn {
		return nil, notAColumn(column).At(node.At().Line, "")
	}
	return nil, expression.Unsupported(Construct(node)).At(node.At().Line, "")
}

// notAColumn gives error 207 for a column, 128 where a name stands in an expression without a table.
func notAColumn(column *ast.ColumnReference) *fault.Error {
	if len(column.Name.Parts) > 1 {
		return fault.New(4104, column.Name.String())
	}
	return fault.New(207, column.Name.Object())
}

func (none) Condition(node ast.Condition, _ expression.Scope) (*expression.Condition, *fault.Error) {
	return nil, expression.Unsupported(Construct(node)).At(node.At().Line, "")
}
