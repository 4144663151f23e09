package connection

import (
	"context"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// maxDeferred is how many statements of a script wait at most.
const maxDeferred = 100

// A queued statement travels with the next one that needs an answer.
type queued struct {
	Statement

	fault func(error) *fault.Error // of a statement of the script; nil for one of this package
}

// wait has a statement travel with the next.
func (c *Connection) wait(sql string) {
	c.waiting = append(c.waiting, queued{Statement: Statement{SQL: sql}})
}

// Defer has a statement of a script travel with the next one. Its error is that of the next one, with its place among those that waited.
func (c *Connection) Defer(s Statement, faultOf func(error) *fault.Error) {
	c.waiting = append(c.waiting, queued{Statement: s, fault: faultOf})
	c.deferred++
	c.isFresh = false
}

// Deferred gives how many statements of the script wait, and whether more may: none behind a commit.
func (c *Connection) Deferred() (n int, isFull bool) {
	return c.deferred, c.deferred >= maxDeferred || c.ending != nil
}

// Settle sends what waits, where a statement of the script does.
func (c *Connection) Settle(ctx context.Context) error {
	if c.deferred == 0 {
		return nil
	}
	_, err := c.Run(ctx, Statement{SQL: "select"})
	return err
}

// Abandon drops statements of the script that were not sent. It reports whether a commit was among them: its transaction is open again.
func (c *Connection) Abandon() (isOpenAgain bool) {
	if c.ending != nil {
		c.waiting, c.transaction, c.ending, isOpenAgain = c.waiting[:c.ending.at], c.ending.of, nil, true
	}
	kept := c.waiting[:0]
	for _, q := range c.waiting {
		if q.fault == nil {
			kept = append(kept, q)
		}
	}
	c.waiting, c.deferred, c.before = kept, 0, nil
	return isOpenAgain
}

// An ending is a commit that waits, with the transaction as it was before.
type ending struct {
	at int // its place among what waits
	of transaction
}

// CommitLater has the commit of the transaction travel with the next statement. False where it cannot: one waits already, or the database
// has nothing to commit, or would not commit.
func (c *Connection) CommitLater() bool {
	isEmpty := !c.isSent && c.deferred == 0
	if c.ending != nil || isEmpty || c.isSent && (c.conn.IsClosed() || c.conn.PgConn().TxStatus() != 'T') {
		return false
	}
	c.ending = &ending{at: len(c.waiting), of: c.transaction}
	c.Defer(Statement{SQL: "commit"}, func(err error) *fault.Error { return Fault(err, "COMMIT") })
	c.transaction = transaction{}
	return true
}

// A lateness is what a statement of the script that failed late leaves to Replay.
type lateness struct {
	of        transaction // that of the statement
	isGoingOn bool        // another transaction began behind it, which is undone
	isOver    bool        // it is the commit: its transaction was rolled back
}

// lateFault gives the error of a flush: that of a statement of the script which waited, with its place. A savepoint
// stands before its statement, so its error is that of the statement.
func (c *Connection) lateFault(waited []queued, at int, ending *ending, err error) error {
	for at < len(waited) && waited[at].fault == nil {
		at++
	}
	if at >= len(waited) {
		return err
	}
	for _, q := range waited[:at] {
		if q.fault != nil {
			c.before = append(c.before, q)
		}
	}
	c.late = lateness{}
	if ending != nil {
		c.late = lateness{of: ending.of, isGoingOn: at < ending.at, isOver: at == ending.at}
		c.late.of.isSent = true
	}
	found := *waited[at].fault(err)
	found.Deferred = len(c.before) + 1
	return &found
}

// Replay undoes the flush in which a statement of the script failed, and has those before it wait once more: one savepoint stood before
// all of them. A commit that failed has taken those before it along.
func (c *Connection) Replay(ctx context.Context) error {
	again, late := c.before, c.late
	c.late, c.isSharing, c.shared = lateness{}, false, nil
	c.Abandon()
	switch {
	case late.isOver:
		c.forget()
		c.forgets()
		c.isRoleSure = !c.isUsed
		return nil
	case late.isGoingOn:
		c.transaction = late.of
	}
	if err := c.Recover(ctx); err != nil {
		return err
	}
	for _, q := range again {
		c.Defer(q.Statement, q.fault)
	}
	return nil
}
