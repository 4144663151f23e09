package interpreter

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/session"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A Translator compiles what needs tables. It is asked when a statement is reached for the first time, so that a missing object is
// an error of that statement and not of the batch.
type Translator interface {
	// Statement compiles a statement; error 40510 names one that it does not know.
	Statement(ctx context.Context, node ast.Statement, scope expression.Scope) (Statement, *fault.Error)
	// Expression and Condition compile a subquery and its relatives, when their statement is reached for the first time.
	Expression(ctx context.Context, node ast.Expression, scope expression.Scope) (*expression.Expression, *fault.Error)
	Condition(ctx context.Context, node ast.Condition, scope expression.Scope) (*expression.Condition, *fault.Error)
	// UserType gives a type that the user defined; nil where there is none of this name, or no database to ask.
	UserType(ctx context.Context, name ast.Name) *UserType
	// Synonym gives the name behind a synonym, empty where there is none of the name. Error 470 for a synonym of a synonym.
	Synonym(ctx context.Context, name ast.Name) (ast.Name, *fault.Error)
	// Function gives a function of the session that the Translator keeps, such as SCOPE_IDENTITY.
	Function(name string) (*function.Function, bool)
	// Enter and Leave surround a module or a text that is executed: temporary tables and cursors end with it.
	Enter()
	Leave(ctx context.Context)
	// Moved says that the session is in another database than before.
	Moved()
	// RollsBack and RolledBack surround a rollback, of a savepoint too: table variables keep their rows.
	RollsBack(ctx context.Context)
	// Mark gives what takes the cursors back to where they are now.
	Mark() (back func())
	RolledBack(ctx context.Context, isWhole bool)
	// Insert puts rows that were gathered elsewhere into the target of a statement: INSERT ... EXECUTE.
	Insert(ctx context.Context, node *ast.Insert, scope expression.Scope, f *expression.Frame, rows [][]value.Value) (int64, *fault.Error)
	// InsertFrom compiles the same of rows that the database has: RECEIVE ... INTO.
	InsertFrom(ctx context.Context, node *ast.Insert, scope expression.Scope, from RowSource) (Statement, *fault.Error)
}

// A RowSource is a query of PostgreSQL whose rows go into a table.
type RowSource struct {
	SQL        string // gives a column for each type
	Types      []value.Type
	Parameters []func(*expression.Frame) ([]byte, *fault.Error) // as text, from $1 on; nil is NULL
	// Fault gives the error for one of the database that only the query can cause, nil for all others.
	Fault func(error) *fault.Error
}

// A UserType is a type that CREATE TYPE made: another name of a type of the system, or the definition of a table.
type UserType struct {
	Alias     value.Type
	IsNotNull bool                 // where a column does not say so
	Table     *ast.TableDefinition // nil for an alias
}

// A RowTarget is a table variable that takes rows whose values are in the order of its columns; it converts them as INSERT does.
type RowTarget interface {
	Insert(ctx context.Context, frame *expression.Frame, rows [][]value.Value) *fault.Error
}

// A TableScope is the Scope that the interpreter gives to a Translator.
type TableScope interface {
	expression.Scope
	// Table gives the slot and the definition of a table variable.
	Table(name string) (slot int, definition *ast.TableDefinition, known bool)
}

// A Statement is compiled by a Translator.
type Statement interface {
	// IsWrite says that a doomed transaction refuses it.
	IsWrite() bool
	// Run runs it and gives the rows that it gave or changed; counts is false for statements that count none.
	Run(ctx context.Context, frame *expression.Frame, sink session.Sink) (rows int64, counts bool, err *fault.Error)
}

// A Deferrable statement has no result: it may be sent with the next one that has, and its error comes with that.
type Deferrable interface {
	CanWait() bool
	// Defer evaluates the values of the statement and has it wait.
	Defer(ctx context.Context, frame *expression.Frame) *fault.Error
}

// A Local statement may run without the database, so that no savepoint guards it.
type Local interface{ IsLocal() bool }

// A Companion may run under the savepoint of the statements that wait for it: it ends soon, so that they run again where it fails.
type Companion interface{ IsCompanion() bool }

// A Silent statement is one whose errors message 3621 does not follow.
type Silent interface{ IsSilent() bool }

// A SilentWrite is embedded by statements that a doomed transaction refuses and that are Silent: those of Service Broker, of modules, of
// databases and of rights.
type SilentWrite struct{}

// IsWrite says that a doomed transaction refuses it.
func (SilentWrite) IsWrite() bool { return true }

// IsSilent says that message 3621 follows none of its errors.
func (SilentWrite) IsSilent() bool { return true }

// A Connection carries out what transactions are in the database. Names of savepoints are plain identifiers. The calls need not
// reach the database before the next statement does, except Commit.
type Connection interface {
	Begin(ctx context.Context) error
	Commit(ctx context.Context) error
	Rollback(ctx context.Context) error
	Savepoint(ctx context.Context, name string) error
	RollbackTo(ctx context.Context, name string) error
	// Protect begins a statement whose error must leave the transaction usable, and Recover undoes what it did. Share does the same for one
	// that goes out with those that wait: Recover has them wait again. False where none does.
	Protect(ctx context.Context) error
	Share() bool
	Recover(ctx context.Context) error
	// Use goes on in another database and gives its name.
	Use(ctx context.Context, database string) (string, error)
	// Visit goes on in another database until back is called.
	Visit(ctx context.Context, database string) (name string, back func(context.Context), err error)
	// SetIsolation sets the level of the transactions that follow, in PostgreSQL's words.
	SetIsolation(ctx context.Context, level string) error
	// RoleToActAs finds the role that EXECUTE AS names, where its author (empty for the role of the session) may name it and, for one
	// that is to be acted as now, the login may act as it. ActAs goes on as such a role, empty for the one at the beginning.
	RoleToActAs(ctx context.Context, name, author string, isNow bool) (role string, err error)
	ActAs(role string)
	// Deferred gives how many statements wait that a Deferrable one had wait, and whether no more may. Settle sends them; where one
	// fails, its place is Deferred of the error; then Replay has those before it wait again. Abandon drops them.
	Deferred() (n int, isFull bool)
	Settle(ctx context.Context) error
	Replay(ctx context.Context) error
	// CommitLater has the commit wait as the last of them, where it can. Abandon reports whether it dropped one.
	CommitLater() bool
	Abandon() (isOpenAgain bool)
	// SetLockTimeout says how many milliseconds a statement waits for a lock: 0 not at all, -1 without end.
	SetLockTimeout(milliseconds int64)
	Close(ctx context.Context) error
}

// none is the Translator of a session without a database: it refuses each construct by its name.
type none struct{}

// None gives the Translator that refuses each construct by its name.
func None() Translator { return none{} }

func (none) Statement(_ context.Context, node ast.Statement, _ expression.Scope) (Statement, *fault.Error) {
	return nil, fault.New(40510, Construct(node))
}

func (none) Expression(_ context.Context, node ast.Expression, _ expression.Scope) (*expression.Expression, *fault.Error) {
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

func (none) Condition(_ context.Context, node ast.Condition, _ expression.Scope) (*expression.Condition, *fault.Error) {
	return nil, expression.Unsupported(Construct(node)).At(node.At().Line, "")
}

func (none) UserType(context.Context, ast.Name) *UserType { return nil }

func (none) Synonym(context.Context, ast.Name) (ast.Name, *fault.Error) { return ast.Name{}, nil }

func (none) Function(string) (*function.Function, bool) { return nil, false }
func (none) Enter()                                     {}
func (none) Leave(context.Context)                      {}
func (none) Moved()                                     {}
func (none) RollsBack(context.Context)                  {}
func (none) Mark() func()                               { return func() {} }
func (none) RolledBack(context.Context, bool)           {}

func (none) Insert(
	_ context.Context, node *ast.Insert, _ expression.Scope, _ *expression.Frame, _ [][]value.Value,
) (int64, *fault.Error) {
	return 0, fault.New(40510, Construct(node))
}

func (none) InsertFrom(_ context.Context, node *ast.Insert, _ expression.Scope, _ RowSource) (Statement, *fault.Error) {
	return nil, fault.New(40510, Construct(node))
}
