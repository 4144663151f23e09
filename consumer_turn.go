package parley

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// turnTime bounds how long a reader keeps a connection that brings messages without a pause, so that the pool can replace it one day.
	turnTime = time.Second
	// crowdedTurnTime is the bound while all connections of the pool are in use: somebody may be waiting for one.
	crowdedTurnTime = 10 * time.Millisecond
	// alonePause is how long a reader may take with the first messages of a turn before it wakes another one for what else there may be. Most
	// have received again by then and know: another reader would find nothing.
	alonePause = time.Millisecond
)

const beginReadCommitted = "begin isolation level read committed"

// turn is the work of a reader on one connection: transaction after transaction, as long as there was something to receive.
type turn struct {
	committed    bool // at least one transaction
	foundNothing bool // in the end
	scanTook     time.Duration
	givenBack    []*handlerError // groups that went back alone, out of a transaction that had others
}

// exchange is one transaction after another of a reader: what each receives or takes, and the work on it.
type exchange interface {
	// begin begins a transaction and receives, in one round trip.
	begin(ctx context.Context, conn *pgxpool.Conn) error
	// transaction is the one that has begun last; nil before the first.
	transaction() pgx.Tx
	// found is how many messages it has.
	found() int
	// handle works on them. The next may travel with the commit only where mayGoOn. givenBack are those that went back alone.
	handle(ctx context.Context, conn *pgxpool.Conn) (mayGoOn bool, givenBack []*handlerError, err error)
	// next commits, begins the next transaction and receives, in one round trip. They are one sequence to the server: when the commit
	// fails, it neither begins nor receives anything, so nothing is received that nobody knows of. When the connection breaks before the
	// answer to the commit has come its outcome is not known, as with any commit; the messages then come again or have been handled.
	next(ctx context.Context, conn *pgxpool.Conn) (committed bool, err error)
	// commit ends the last transaction of a turn. An empty one is committed too: it may have fired timers, moved what is due, or set
	// something aside.
	commit(ctx context.Context) error
}

// takeTurn receives, handles and commits on one connection until there is nothing to receive or others may want the connection. A commit
// travels with the RECEIVE or TAKE of the next transaction: in one round trip, and the queue is not left alone between them.
func (execution *consumerExecution) takeTurn(ctx, work context.Context, current exchange) (done turn, err error) {
	conn, err := execution.Pool.Acquire(ctx)
	if err != nil {
		return done, fmt.Errorf("get a connection: %w", err)
	}
	defer conn.Release()
	defer func() {
		// After a commit this does nothing. It runs even when the handler ends the goroutine.
		if current.transaction() == nil {
			return
		}
		if undoErr := rollBack(work, current.transaction()); undoErr != nil {
			err = errors.Join(err, undoErr)
		}
	}()
	var wake *time.Timer
	began := time.Now()
	asked := began
	for err = current.begin(work, conn); err == nil; {
		done.scanTook = time.Since(asked)
		done.foundNothing = current.found() == 0
		wake = execution.wakeOthers(wake, !done.foundNothing)
		mayGoOn := false
		if !done.foundNothing {
			// While messages keep coming, senders are not to notify.
			execution.wakeUps.received(time.Now())
			if mayGoOn, done.givenBack, err = current.handle(work, conn); err != nil {
				break
			}
		}
		if !mayGoOn || ctx.Err() != nil || !execution.mayKeep(conn, began) {
			done.foundNothing = current.found() == 0
			err = current.commit(work)
			done.committed = done.committed || err == nil
			break
		}
		asked = time.Now()
		committed, failure := current.next(work, conn)
		done.committed = done.committed || committed
		err = failure
	}
	return done, err
}

// wakeOthers lets other readers know that there is something to receive: at once where one RECEIVE after the other has found something, and
// otherwise a little later, which wake is for. A reader that finds nothing need not wake another.
func (execution *consumerExecution) wakeOthers(wake *time.Timer, hasReceived bool) *time.Timer {
	switch {
	case wake != nil:
		wake.Stop()
		if hasReceived {
			execution.wakeUps.notifyOthers()
		}
	case hasReceived:
		wake = time.AfterFunc(alonePause, execution.wakeUps.notifyOthers)
	}
	return wake
}

// mayKeep reports whether a reader may go on with its connection, which is whole and in a transaction.
func (execution *consumerExecution) mayKeep(conn *pgxpool.Conn, began time.Time) bool {
	if conn.Conn().IsClosed() || conn.Conn().PgConn().TxStatus() != 'T' {
		return false
	}
	longest := turnTime
	if pool := execution.Pool.Stat(); pool.AcquiredConns() >= pool.MaxConns() {
		longest = crowdedTurnTime
	}
	return time.Since(began) < longest
}

// sendBegin begins a transaction, and sends what follow adds with it, in one round trip. RECEIVE and TAKE have to see what others committed
// after the transaction began.
func sendBegin(ctx context.Context, conn *pgxpool.Conn, follow func(*pgx.Batch)) pgx.BatchResults {
	batch := &pgx.Batch{}
	batch.BeginTx(pgx.TxOptions{BeginQuery: beginReadCommitted})
	follow(batch)
	return conn.SendBatch(ctx, batch)
}

// sendNext is [sendBegin] with the commit of the transaction before in front.
func sendNext(ctx context.Context, conn *pgxpool.Conn, follow func(*pgx.Batch)) pgx.BatchResults {
	batch := &pgx.Batch{}
	// To pgx it is the query that leads into the transaction of the batch.
	batch.BeginTx(pgx.TxOptions{BeginQuery: "commit"})
	batch.Queue(beginReadCommitted)
	follow(batch)
	return conn.SendBatch(ctx, batch)
}

// readCommit reads what came of the commit of [sendNext].
func readCommit(results pgx.BatchResults) error {
	tag, err := results.Exec()
	if err == nil && tag.String() == "ROLLBACK" {
		err = pgx.ErrTxCommitRollback
	}
	if err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// readBegin reads what came of the begin of a transaction.
func readBegin(results pgx.BatchResults) error {
	if _, err := results.Exec(); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	return nil
}

// closeResults ends a batch and gives its first failure.
func closeResults(results pgx.BatchResults, failure error) error {
	if err := results.Close(); err != nil && failure == nil {
		return fmt.Errorf("end the batch: %w", err)
	}
	return failure
}
