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

// reception is a transaction with what was received in it.
type reception struct {
	tx       pgx.Tx // nil before it has begun
	from     source
	messages []Message
}

// takeTurn receives, handles and commits on one connection until there is nothing to receive or others may want the connection. A commit
// travels with the RECEIVE of the next transaction: in one round trip, and the queue is not left alone between them.
func (execution *consumerExecution) takeTurn(ctx, work context.Context) (done turn, err error) {
	conn, err := execution.Pool.Acquire(ctx)
	if err != nil {
		return done, fmt.Errorf("get a connection: %w", err)
	}
	defer conn.Release()
	var current reception
	defer func() {
		// After a commit this does nothing. It runs even when the handler ends the goroutine.
		if current.tx == nil {
			return
		}
		if undoErr := rollBack(work, current.tx); undoErr != nil {
			err = errors.Join(err, undoErr)
		}
	}()
	var wake *time.Timer
	began := time.Now()
	asked := began
	for err = execution.beginAndReceive(work, conn, &current); err == nil; {
		done.scanTook = time.Since(asked)
		wake = execution.wakeOthers(wake, len(current.messages) > 0)
		isWhole := true
		if err = execution.handleReceived(work, conn, &current); err != nil {
			failed, ok := errors.AsType[*handlerError](err)
			if !ok || !execution.canGoBack(work, conn, &current) {
				break
			}
			isWhole = false
			if done.givenBack, err = execution.handleOneByOne(work, conn, &current, failed); err != nil {
				break
			}
		}
		from := execution.source(len(current.messages))
		if ctx.Err() != nil || !isWhole || from.statement != current.from.statement || !execution.mayGoOn(conn, &current, began) {
			done.foundNothing = len(current.messages) == 0
			err = execution.commit(work, &current)
			done.committed = done.committed || err == nil
			break
		}
		asked = time.Now()
		committed, failure := execution.commitAndReceive(work, conn, &current, from)
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

// mayGoOn reports whether the next RECEIVE may travel with the commit. A transaction that the handler has ended, or that has failed without
// its knowledge, is committed alone: what comes of that is known before anything else is sent.
func (execution *consumerExecution) mayGoOn(conn *pgxpool.Conn, current *reception, began time.Time) bool {
	if len(current.messages) == 0 || conn.Conn().IsClosed() || conn.Conn().PgConn().TxStatus() != 'T' {
		return false
	}
	longest := turnTime
	if pool := execution.Pool.Stat(); pool.AcquiredConns() >= pool.MaxConns() {
		longest = crowdedTurnTime
	}
	return time.Since(began) < longest
}

// beginAndReceive begins a transaction and receives, in one round trip.
func (execution *consumerExecution) beginAndReceive(ctx context.Context, conn *pgxpool.Conn, current *reception) (err error) {
	batch := &pgx.Batch{}
	// RECEIVE has to see what others committed after the transaction began.
	batch.BeginTx(pgx.TxOptions{BeginQuery: beginReadCommitted})
	current.from = execution.source(0)
	current.from.queue(batch)
	results := conn.SendBatch(ctx, batch)
	current.tx = results.Tx()
	defer func() { err = closeResults(results, err) }()
	if _, err := results.Exec(); err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	current.messages, err = current.from.collect(results, execution.Queue)
	return err
}

// commitAndReceive commits, begins the next transaction and receives, in one round trip. They are one sequence to the server: when the
// commit fails, it neither begins nor receives anything, so nothing is received that nobody knows of. When the connection breaks before the
// answer to the commit has come its outcome is not known, as with any commit; the messages then come again or have been handled.
func (execution *consumerExecution) commitAndReceive(
	ctx context.Context, conn *pgxpool.Conn, current *reception, from source,
) (committed bool, err error) {
	handled := current.messages
	batch := &pgx.Batch{}
	// To pgx it is the query that leads into the transaction of the batch.
	batch.BeginTx(pgx.TxOptions{BeginQuery: "commit"})
	batch.Queue(beginReadCommitted)
	from.queue(batch)
	results := conn.SendBatch(ctx, batch)
	current.tx, current.from, current.messages = results.Tx(), from, nil
	defer func() { err = closeResults(results, err) }()
	tag, err := results.Exec()
	if err == nil && tag.String() == "ROLLBACK" {
		err = pgx.ErrTxCommitRollback
	}
	if err != nil {
		return false, newHandlerError(handled, len(handled), fmt.Errorf("commit: %w", err))
	}
	execution.handled(handled)
	if _, err := results.Exec(); err != nil {
		return true, fmt.Errorf("begin a transaction: %w", err)
	}
	current.messages, err = from.collect(results, execution.Queue)
	return true, err
}

// closeResults ends a batch and gives its first failure.
func closeResults(results pgx.BatchResults, failure error) error {
	if err := results.Close(); err != nil && failure == nil {
		return fmt.Errorf("end the batch: %w", err)
	}
	return failure
}

// handleReceived calls the handler for each group.
func (execution *consumerExecution) handleReceived(ctx context.Context, conn *pgxpool.Conn, current *reception) error {
	if len(current.messages) == 0 {
		return nil
	}
	execution.wakeUps.received(time.Now())
	for _, group := range byGroup(current.messages) {
		if err := execution.handle(ctx, current.tx, group); err != nil {
			return newHandlerError(group, len(current.messages), err)
		}
		if current.from.isMany && hasFailed(conn) {
			return newHandlerError(group, len(current.messages), errFailedUnnoticed)
		}
	}
	return nil
}

// commit ends the last transaction of a turn. An empty RECEIVE is committed too: it may have fired timers, or set a conversation aside.
func (execution *consumerExecution) commit(ctx context.Context, current *reception) error {
	err := current.tx.Commit(ctx)
	switch {
	case err != nil && len(current.messages) > 0:
		return newHandlerError(current.messages, len(current.messages), fmt.Errorf("commit: %w", err))
	case err != nil:
		return fmt.Errorf("commit: %w", err)
	}
	execution.handled(current.messages)
	return nil
}
