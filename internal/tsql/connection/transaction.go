package connection

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// statementMark is the savepoint of the statement that runs; T-SQL's own have other names.
const statementMark = "tsql_statement"

// A mark is where the statement that runs goes back to when it fails.
type mark int

const (
	unmarked    mark = iota
	atSavepoint      // the savepoint of statements
	atBeginning      // nothing came before in the transaction: it begins again
)

// A transaction is what the connection knows of the one that is open.
type transaction struct {
	isOpen  bool   // a transaction has begun, perhaps not yet in the database
	isSent  bool   // it has begun in the database
	opening string // the statement that began it
	mark    mark
	isFresh bool // nothing ran behind the mark
}

// opened is how a transaction begins, before its level; readCommitted is the one at which each statement sees what others have committed.
const (
	opened        = "begin isolation level "
	readCommitted = "read committed"
)

// Begin begins a transaction.
func (c *Connection) Begin(context.Context) error {
	c.transaction = transaction{isOpen: true, opening: opened + c.level}
	c.begun++
	c.wait(c.opening)
	return nil
}

// Begun gives how many transactions have begun, a number of the last one.
func (c *Connection) Begun() int { return c.begun }

// SetIsolation sets the level of transactions that begin later.
func (c *Connection) SetIsolation(_ context.Context, level string) error {
	c.level = level
	return nil
}

// Commit commits, and reports a transaction that the database rolled back in place of it.
func (c *Connection) Commit(ctx context.Context) error {
	if !c.isSent && c.deferred == 0 {
		c.forget()
		return nil
	}
	tag, err := c.Run(ctx, Statement{SQL: "commit"})
	if late, is := errors.AsType[*fault.Error](err); is && late.Deferred > 0 {
		return err // the transaction goes on: nothing was committed
	}
	c.forget()
	switch {
	case err != nil:
		return err
	case tag.String() != "COMMIT":
		return fault.New(3930)
	}
	return nil
}

// Rollback rolls back. Statements that wait are dropped.
func (c *Connection) Rollback(ctx context.Context) error {
	isSent := c.isSent
	c.forget()
	if !isSent {
		return nil
	}
	c.set, c.isRoleSure = c.patience, true // nothing may stand before the rollback of a transaction that failed
	_, err := c.Run(ctx, Statement{SQL: "rollback"})
	c.isRoleSure = !c.isUsed
	c.forgets()
	return err
}

// forget ends the transaction on this side.
func (c *Connection) forget() {
	c.waiting, c.deferred, c.transaction, c.ending = nil, 0, transaction{}, nil
	c.isSharing, c.shared = false, nil
}

// Savepoint sets a savepoint of T-SQL. The one of the last statement is released before it: later it would take this one with it.
func (c *Connection) Savepoint(_ context.Context, name string) error {
	c.release()
	c.wait("savepoint " + pgx.Identifier{name}.Sanitize())
	return nil
}

// RollbackTo goes back to a savepoint of T-SQL; that of a statement, which came later, is gone.
func (c *Connection) RollbackTo(_ context.Context, name string) error {
	c.forgets()
	c.wait("rollback to savepoint " + pgx.Identifier{name}.Sanitize())
	c.mark, c.isRoleSure = unmarked, !c.isUsed
	c.isSharing, c.shared = false, nil
	return nil
}

func (c *Connection) release() {
	if c.mark == atSavepoint {
		c.wait("release savepoint " + statementMark)
	}
	c.mark = unmarked
}

// Protect sets the savepoint of a statement, unless nothing has run since it was set. The first statement of a transaction needs none: the
// transaction can begin again. At other levels than READ COMMITTED it would see what others did meanwhile.
func (c *Connection) Protect(context.Context) error {
	c.isSharing, c.shared = false, nil
	if c.mark != unmarked && c.isFresh {
		return nil
	}
	last := len(c.waiting) - 1
	if !c.isSent && c.opening == opened+readCommitted && last >= 0 && c.waiting[last].SQL == c.opening {
		c.mark, c.isFresh = atBeginning, true
		return nil
	}
	c.release()
	c.wait("savepoint " + statementMark)
	c.mark, c.isFresh = atSavepoint, true
	return nil
}

// IsProtected reports whether the statement that runs can be undone alone.
func (c *Connection) IsProtected() bool { return c.mark != unmarked }

// Share has the statement that runs take the savepoint of those that wait for it. False where it needs its own: behind a commit nothing
// has one.
func (c *Connection) Share() bool {
	if c.mark == unmarked || c.deferred == 0 {
		return false
	}
	c.isSharing, c.shared = true, nil
	return true
}

// shares notes the statements of the script that go out under the savepoint of the one that runs.
func (c *Connection) shares(waited []queued) {
	if !c.isSharing {
		return
	}
	for _, q := range waited {
		if q.fault != nil {
			c.shared = append(c.shared, q)
		}
	}
}

// Recover undoes the statement that failed. Those that shared its savepoint wait again.
func (c *Connection) Recover(context.Context) error {
	if c.isSharing && c.deferred > 0 {
		return nil // it failed before it went out
	}
	c.forgets()
	if c.mark == atBeginning {
		c.wait("rollback")
		c.wait(c.opening)
	} else {
		c.wait("rollback to savepoint " + statementMark)
	}
	c.isFresh, c.isRoleSure = true, !c.isUsed
	again := c.shared
	c.shared = nil
	for _, q := range again {
		c.Defer(q.Statement, q.fault)
	}
	return nil
}

// Undo undoes the statement that runs now, where there is a transaction.
func (c *Connection) Undo(ctx context.Context) error {
	if !c.IsProtected() {
		return nil
	}
	return c.Recover(ctx)
}
