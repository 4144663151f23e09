package parley

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// reception is the exchange of a [Consumer]: a transaction with what was received in it.
type reception struct {
	execution *consumerExecution
	tx        pgx.Tx // nil before it has begun
	from      source
	then      source // of the next transaction
	messages  []Message
}

func (current *reception) transaction() pgx.Tx { return current.tx }

func (current *reception) found() int { return len(current.messages) }

func (current *reception) begin(ctx context.Context, conn *pgxpool.Conn) (err error) {
	current.from = current.execution.source(0)
	results := sendBegin(ctx, conn, current.from.queue)
	current.tx = results.Tx()
	defer func() { err = closeResults(results, err) }()
	return current.collect(results)
}

func (current *reception) next(ctx context.Context, conn *pgxpool.Conn) (committed bool, err error) {
	handled := current.messages
	results := sendNext(ctx, conn, current.then.queue)
	current.tx, current.from, current.messages = results.Tx(), current.then, nil
	defer func() { err = closeResults(results, err) }()
	if err := readCommit(results); err != nil {
		return false, newHandlerError(handled, len(handled), err)
	}
	current.execution.handled(handled)
	return true, current.collect(results)
}

// collect reads the results of begin and RECEIVE.
func (current *reception) collect(results pgx.BatchResults) (err error) {
	if err := readBegin(results); err != nil {
		return err
	}
	current.messages, err = current.from.collect(results, current.execution.Queue)
	return err
}

// handle calls the handler for each group. The next RECEIVE travels alone where groups went back, and where it is another one.
func (current *reception) handle(ctx context.Context, conn *pgxpool.Conn) (mayGoOn bool, givenBack []*handlerError, err error) {
	if err = current.handleGroups(ctx, conn); err != nil {
		failed, ok := errors.AsType[*handlerError](err)
		if !ok || !current.execution.canGoBack(ctx, conn, current) {
			return false, nil, err
		}
		givenBack, err = current.execution.handleOneByOne(ctx, conn, current, failed)
		return false, givenBack, err
	}
	current.then = current.execution.source(len(current.messages))
	return current.then.statement == current.from.statement, nil, nil
}

func (current *reception) handleGroups(ctx context.Context, conn *pgxpool.Conn) error {
	for _, group := range byGroup(current.messages) {
		if err := current.execution.handle(ctx, current.tx, group); err != nil {
			return newHandlerError(group, len(current.messages), err)
		}
		if current.from.isMany && hasFailed(conn) {
			return newHandlerError(group, len(current.messages), errFailedUnnoticed)
		}
	}
	return nil
}

func (current *reception) commit(ctx context.Context) error {
	err := current.tx.Commit(ctx)
	switch {
	case err != nil && len(current.messages) > 0:
		return newHandlerError(current.messages, len(current.messages), fmt.Errorf("commit: %w", err))
	case err != nil:
		return fmt.Errorf("commit: %w", err)
	}
	current.execution.handled(current.messages)
	return nil
}
