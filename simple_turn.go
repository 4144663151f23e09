package parley

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/pgdb"
)

// actAsReader makes the TAKE behind it that of a reader, which takes nothing while the readers of the queue are paused.
const actAsReader = "set local parley.reader = on"

// taking is the exchange of a [SimpleConsumer]: a transaction with what was taken in it.
type taking struct {
	execution *consumerExecution
	handler   TakenHandler
	tx        pgx.Tx // nil before it has begun
	messages  []TakenMessage
}

func (current *taking) transaction() pgx.Tx { return current.tx }

func (current *taking) found() int { return len(current.messages) }

func (current *taking) begin(ctx context.Context, conn *pgxpool.Conn) (err error) {
	results := sendBegin(ctx, conn, current.queueTake)
	current.tx = results.Tx()
	defer func() { err = closeResults(results, err) }()
	return current.collect(results)
}

func (current *taking) next(ctx context.Context, conn *pgxpool.Conn) (committed bool, err error) {
	handled := current.messages
	results := sendNext(ctx, conn, current.queueTake)
	current.tx, current.messages = results.Tx(), nil
	defer func() { err = closeResults(results, err) }()
	if err := readCommit(results); err != nil {
		return false, newTakenError(handled, err)
	}
	return true, current.collect(results)
}

// queueTake adds what stands behind the begin of a transaction.
func (current *taking) queueTake(batch *pgx.Batch) {
	batch.Queue(actAsReader)
	batch.Queue("select "+takenColumns+" from parley.take(queue => $1::text, count => $2)",
		current.execution.Queue, min(current.execution.Top, 1<<31-1))
}

// collect reads the results of begin, of the setting and of TAKE.
func (current *taking) collect(results pgx.BatchResults) error {
	for range 2 {
		if err := readBegin(results); err != nil {
			return err
		}
	}
	rows, err := results.Query()
	if err == nil {
		current.messages, err = pgx.CollectRows(rows, pgx.RowToStructByPos[TakenMessage])
	}
	if err != nil {
		return pgdb.StatementError(err, "take from queue "+current.execution.Queue)
	}
	return nil
}

func (current *taking) handle(ctx context.Context, _ *pgxpool.Conn) (mayGoOn bool, givenBack []*handlerError, err error) {
	ctx, cancel := current.execution.bounded(ctx)
	defer cancel()
	err = current.execution.call(len(current.messages), func() error { return current.handler(ctx, current.tx, current.messages) })
	if err != nil {
		return false, nil, newTakenError(current.messages, err)
	}
	return true, nil, nil
}

func (current *taking) commit(ctx context.Context) error {
	err := current.tx.Commit(ctx)
	switch {
	case err != nil && len(current.messages) > 0:
		return newTakenError(current.messages, fmt.Errorf("commit: %w", err))
	case err != nil:
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}
