package interpreter

import (
	"context"
	"slices"
	"time"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// Statements without a result (SEND, END CONVERSATION) wait for the next one that has one, so that a loop over messages takes half the
// trips to the database. The program goes on meanwhile as if they had succeeded, over instructions that nobody sees from outside. Where
// one of them fails, the database has run none behind it, and the program goes back to it: to its instruction, with the variables,
// cursors and counts of that moment. So an error comes where it belongs. One savepoint guards all that wait together; those before the
// one that failed run again.

// A checkpoint is the state of the session behind a statement that waits.
type checkpoint struct {
	at          int
	variables   []value.Value
	rowCount    int64
	lastError   int
	failures    int
	transaction transaction
	ended       transaction // the one that a commit ended; it has none of its own
	back        func()
}

// commitPatience is how long a COMMIT waits for the next statement: others wait for its locks, and for what it makes visible.
const commitPatience = time.Millisecond

// deferred has a statement wait, if it can; false where it has to run now.
func (s *Session) deferred(ctx context.Context, a *activation, compiled Statement) (waits bool, err *fault.Error) {
	d, is := compiled.(Deferrable)
	if !is || !d.CanWait() || s.depth == 0 || s.connection == nil || a.isLast() {
		return false, nil
	}
	n, isFull := s.connection.Deferred()
	if isFull {
		return false, nil
	}
	if n == 0 {
		if err := s.onConnection(func(c Connection) error { return c.Protect(ctx) }); err != nil {
			return true, err
		}
	}
	kept := s.checkpoint(a)
	if err := d.Defer(ctx, a.frameOf(ctx)); err != nil {
		return true, err
	}
	s.pending = append(s.pending, kept)
	s.succeeded(0)
	return true, s.done(false, 0, false)
}

// checkpoint gives the state of the session before the statement that runs.
func (s *Session) checkpoint(a *activation) checkpoint {
	kept := checkpoint{
		at: a.at, variables: slices.Clone(a.frame.Variables), rowCount: s.rowCount, lastError: s.lastError, failures: s.failures,
		transaction: s.transaction, back: s.translator.Mark(),
	}
	kept.transaction.savepoints = slices.Clone(s.savepoints)
	return kept
}

// commitSoon is COMMIT of the batch: that of the outermost transaction waits for the next statement, where one may follow it at once. The
// loop that receives, works and commits takes one trip to the database a turn.
func (s *Session) commitSoon(ctx context.Context, a *activation, name string) *fault.Error {
	if s.depth != 1 || s.isDoomed || s.gathersAt > 0 || s.connection == nil || a.isLast() || !s.connection.CommitLater() {
		return s.commit(ctx, name)
	}
	kept := s.checkpoint(a)
	kept.ended, kept.transaction = kept.transaction, transaction{}
	s.pending = append(s.pending, kept)
	s.transaction, s.commitBy = transaction{}, time.Now().Add(commitPatience)
	return nil
}

// isOverdue reports whether a COMMIT has waited long enough.
func (s *Session) isOverdue() bool {
	return !s.commitBy.IsZero() && time.Now().After(s.commitBy)
}

// isLast reports whether an instruction is the last one of its program: nothing follows that it could wait for.
func (a *activation) isLast() bool { return a.at == len(a.program.instructions)-1 }

// settle sends the statements that wait. The error is that of the first one that failed.
func (s *Session) settle(ctx context.Context) *fault.Error {
	if len(s.pending) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return s.cut(ctx)
	}
	err := s.onConnection(func(c Connection) error { return c.Settle(ctx) })
	if err == nil {
		s.arrived()
	}
	return err
}

// arrived notes that nothing waits.
func (s *Session) arrived() { s.pending, s.commitBy = s.pending[:0], time.Time{} }

// sent notes that an instruction sent what waited.
func (s *Session) sent() {
	if len(s.pending) == 0 {
		return
	}
	if n, _ := s.connection.Deferred(); n == 0 {
		s.arrived()
	}
}

// rewind goes back to the statement whose error came late, and gives the error as that statement's own.
func (s *Session) rewind(ctx context.Context, a *activation, late *fault.Error) *fault.Error {
	at := late.Deferred - 1
	own := *late
	own.Deferred = 0
	if at < 0 || at >= len(s.pending) {
		return &own
	}
	kept := s.pending[at]
	s.pending, s.commitBy = s.pending[:at], time.Time{}
	if kept.ended.depth > 0 {
		s.pending = s.pending[:0] // what waited before a commit that failed is gone with it
	}
	a.at = kept.at
	copy(a.frame.Variables, kept.variables)
	s.rowCount, s.lastError, s.failures, s.transaction = kept.rowCount, kept.lastError, kept.failures, kept.transaction
	kept.back()
	s.isWrite = false
	if lost := s.onConnection(func(c Connection) error { return c.Replay(ctx) }); lost != nil {
		return lost
	}
	return &own
}

// abandon drops statements that wait where the batch was cut. The transaction of a COMMIT among them is open again.
func (s *Session) abandon() {
	if len(s.pending) == 0 {
		return
	}
	last := s.pending[len(s.pending)-1]
	s.arrived()
	if s.connection.Abandon() {
		s.transaction = last.ended
	}
}

// quiet marks the instruction that was emitted last as one over which statements may wait: it asks no table and shows nothing.
func (c *compiler) quiet(nodes ...ast.Node) {
	if c.asksTables(nodes...) {
		return
	}
	c.program.instructions[len(c.program.instructions)-1].isQuiet = true
}

// joining marks the instruction that was emitted last as one whose only statement goes out with those that wait.
func (c *compiler) joining() { c.program.instructions[len(c.program.instructions)-1].joins = true }

// translatedIn marks a statement of the Translator by what it is.
func (c *compiler) translatedIn(node ast.Statement) {
	switch node := node.(type) {
	case *ast.Send, *ast.EndConversation, *ast.Receive, *ast.WaitFor:
		c.joining()
	case *ast.Fetch:
		if node.Cursor.Variable == "" && node.Into != nil {
			c.quiet()
		}
	}
}
