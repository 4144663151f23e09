package interpreter

import (
	"context"
	"fmt"
	"slices"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A transaction is the session's, as T-SQL counts it.
type transaction struct {
	depth      int    // @@TRANCOUNT
	name       string // of the outermost BEGIN TRANSACTION
	isDoomed   bool   // XACT_STATE() is -1
	savepoints []savepoint
	marks      int // savepoints so far, for their names in the database
}

// A savepoint is one of SAVE TRANSACTION, with its name in the database. Names may occur again; the last one counts.
type savepoint struct{ name, inDatabase string }

// maxNameUnits is how much of the name of a transaction or savepoint counts.
const maxNameUnits = 32

// nameOf gives the name that a statement says, or that its variable holds.
func (c *compiler) nameOf(n ast.TransactionName) (func(*activation) string, *fault.Error) {
	if n.Variable == "" {
		return func(*activation) string { return value.CutUnits(n.Name, 0, maxNameUnits) }, nil
	}
	slot, _, known := c.Variable(n.Variable)
	if !known {
		return nil, fault.New(137, n.Variable)
	}
	return func(a *activation) string {
		return value.CutUnits(a.session.settings.Text(a.frame.Variables[slot]), 0, maxNameUnits)
	}, nil
}

// named compiles a statement of transactions that has a name.
func (c *compiler) named(
	node ast.Statement, n ast.TransactionName, run func(context.Context, *activation, string) *fault.Error,
) *fault.Error {
	name, err := c.nameOf(n)
	if err != nil {
		return err
	}
	c.simply(node, func(ctx context.Context, a *activation) *fault.Error {
		if err := run(ctx, a, name(a)); err != nil {
			return err
		}
		a.session.succeeded(0)
		return nil
	})
	return nil
}

func (s *Session) begin(ctx context.Context, name string) *fault.Error {
	if s.isDoomed {
		return fault.New(3930)
	}
	if s.depth == 0 {
		if err := s.onConnection(func(c Connection) error { return c.Begin(ctx) }); err != nil {
			return err
		}
		s.transaction = transaction{name: name}
	}
	s.depth++
	return nil
}

// commit counts down; the outermost commits. A name is ignored, as SQL Server does.
func (s *Session) commit(ctx context.Context, _ string) *fault.Error {
	switch {
	case s.depth == 0:
		return fault.New(3902)
	case s.isDoomed:
		return fault.New(3930)
	case s.gathersAt > 0 && s.depth < s.gathersAt:
		return fault.New(3916)
	case s.depth > 1:
		s.depth--
		return nil
	}
	s.transaction = transaction{}
	return s.onConnection(func(c Connection) error { return c.Commit(ctx) })
}

// rollbackTo is ROLLBACK: of everything, or to a savepoint.
func (s *Session) rollbackTo(ctx context.Context, name string) *fault.Error {
	if s.depth == 0 {
		return fault.New(3903)
	}
	if name == "" || name == s.name {
		if s.gathersAt > 0 {
			return fault.New(3915)
		}
		s.rollback(ctx)
		return nil
	}
	for i, p := range slices.Backward(s.savepoints) {
		if p.name != name {
			continue
		}
		if s.isDoomed {
			return fault.New(3931)
		}
		s.savepoints = s.savepoints[:i+1]
		s.translator.RollsBack(ctx)
		err := s.onConnection(func(c Connection) error { return c.RollbackTo(ctx, p.inDatabase) })
		s.translator.RolledBack(ctx, false)
		return err
	}
	return fault.New(6401, name)
}

func (s *Session) save(ctx context.Context, name string) *fault.Error {
	switch {
	case s.depth == 0:
		return fault.New(628)
	case s.isDoomed:
		return fault.New(3930)
	}
	s.marks++
	p := savepoint{name: name, inDatabase: fmt.Sprintf("save_%d", s.marks)}
	s.savepoints = append(s.savepoints, p)
	return s.onConnection(func(c Connection) error { return c.Savepoint(ctx, p.inDatabase) })
}

// rollback ends the transaction from any depth. Where the connection is lost, so is the transaction.
func (s *Session) rollback(ctx context.Context) {
	if s.depth == 0 {
		return
	}
	s.transaction = transaction{}
	if s.connection == nil {
		return
	}
	s.abandon()
	ctx = context.WithoutCancel(ctx)
	s.translator.RollsBack(ctx)
	if err := s.connection.Rollback(ctx); err != nil {
		_ = s.stop(fmt.Errorf("rolling back: %w", err))
		return
	}
	s.translator.RolledBack(ctx, true)
}

// onConnection carries out a part of a transaction. A failed commit is an error of T-SQL; all else ends the session.
func (s *Session) onConnection(do func(Connection) error) *fault.Error {
	if s.connection == nil {
		return nil
	}
	err := do(s.connection)
	if err == nil {
		return nil
	}
	if refused, is := asFault(err); is {
		return refused
	}
	return s.stop(fmt.Errorf("the transaction: %w", err))
}

// external runs a statement of the Translator, once more where a definition changed meanwhile.
func (s *Session) external(ctx context.Context, a *activation, compiled Statement) *fault.Error {
	err := s.protected(ctx, a, compiled)
	if err != nil && err.IsOutdated && ctx.Err() == nil {
		return s.protected(ctx, a, compiled)
	}
	return err
}

// protected runs a statement of the Translator: under a savepoint in a transaction, so that an error undoes the statement alone.
func (s *Session) protected(ctx context.Context, a *activation, compiled Statement) *fault.Error {
	if compiled.IsWrite() && s.isDoomed {
		return fault.New(3930)
	}
	if s.options.implicitTransactions && s.depth == 0 {
		if err := s.begin(ctx, ""); err != nil {
			return err
		}
	}
	if f, is := compiled.(firing); is && s.depth == 0 && f.Fires() {
		return s.firingAlone(ctx, a, compiled)
	}
	if waits, err := s.deferred(ctx, a, compiled); waits {
		return err
	}
	isLocal := false
	if l, is := compiled.(Local); is {
		isLocal = l.IsLocal()
	}
	isProtected := s.depth > 0 && !isLocal
	isShared := isProtected && s.shares(compiled)
	if isProtected && !isShared {
		if err := s.onConnection(func(c Connection) error { return c.Protect(ctx) }); err != nil {
			return err
		}
	}
	s.isWrite = changesRows(compiled)
	sink := &resultSink{Sink: s.sink}
	rows, counts, err := compiled.Run(ctx, a.frameOf(ctx), sink)
	if err != nil {
		if isProtected && s.depth > 0 && err.Deferred == 0 {
			return s.recovered(ctx, isShared, err)
		}
		return err
	}
	s.isWrite = false
	s.succeeded(rows)
	return s.done(counts, rows, sink.hasRows)
}

// changesRows reports whether message 3621 follows an error of a statement.
func changesRows(compiled Statement) bool {
	silent, is := compiled.(Silent)
	return compiled.IsWrite() && (!is || !silent.IsSilent())
}

// shares has a statement take the savepoint of those that wait for it, where it may and some do.
func (s *Session) shares(compiled Statement) bool {
	companion, is := compiled.(Companion)
	return is && companion.IsCompanion() && s.connection != nil && s.connection.Share()
}

// recovered undoes a statement that failed, and gives its error. Those that shared its savepoint ran before, so they run again even where
// the batch is cut.
func (s *Session) recovered(ctx context.Context, isShared bool, err *fault.Error) *fault.Error {
	if lost := s.onConnection(func(c Connection) error { return c.Recover(ctx) }); lost != nil {
		return lost
	}
	if isShared {
		if late := s.settle(context.WithoutCancel(ctx)); late != nil {
			return late
		}
	}
	return err
}
