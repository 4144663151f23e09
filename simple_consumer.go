package parley

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// TakenHandler works on messages of a simple queue that were taken together, in their order. Its work in tx happens together with taking
// them, or not at all. It must neither commit nor roll back tx.
//
// An error or a panic rolls back, and the messages come again, each in a call of its own, so that a bad one takes the others along
// once. It waits by the retry policy of the queue, or as [RetryAfter] and [Final] say, and after too many attempts the broker sets it
// aside with the last error. Without a policy it comes again at once.
type TakenHandler func(ctx context.Context, tx pgx.Tx, messages []TakenMessage) error

// SimpleConsumer takes from one simple queue for as long as it runs, as [Consumer] receives from a queue of dialogs: each of its
// readers begins a transaction, takes, calls the handler and commits. Any number of consumers may work on one queue, in any number
// of processes.
type SimpleConsumer struct {
	// Pool gives each reader a connection while it takes and handles, and takes it back while the reader waits.
	Pool *pgxpool.Pool
	// Queue is the name of the queue.
	Queue string
	// Handler works on the messages.
	Handler TakenHandler

	// Count bounds the messages of one call of the handler; 0 means 1. Messages of one transaction succeed and fail together.
	Count int
	// Readers is how many transactions are under way at once; 0 means 1.
	Readers int
	// HandlerTimeout, GraceTime, PollInterval, ListenConfig and Logger are those of [Consumer].
	HandlerTimeout time.Duration
	GraceTime      time.Duration
	PollInterval   time.Duration
	ListenConfig   *pgx.ConnConfig
	Logger         *slog.Logger
}

// Run takes messages until ctx ends. Then it lets running handlers finish, for GraceTime at most, and returns nil when they did.
// Failures while it runs are logged and tried again, never returned.
//
// Errors: those of [Consumer.Run].
func (c *SimpleConsumer) Run(ctx context.Context) error {
	if c.Handler == nil {
		return errors.New("consumer: Handler is missing")
	}
	execution, err := newConsumerExecution(Consumer{
		Pool: c.Pool, Queue: c.Queue, Top: orDefault(c.Count, 1), Readers: c.Readers, HandlerTimeout: c.HandlerTimeout,
		GraceTime: c.GraceTime, PollInterval: c.PollInterval, ListenConfig: c.ListenConfig, Logger: c.Logger,
	})
	if err != nil {
		return err
	}
	execution.workOnce = func(ctx, work context.Context) (turn, error) {
		began := time.Now()
		taken, err := execution.takeOnce(ctx, work, c.Handler)
		return turn{committed: err == nil, foundNothing: err == nil && !taken, scanTook: time.Since(began)}, err
	}
	return execution.run(ctx)
}

// takeOnce does one transaction: take, handle, commit. It reports whether there was anything to take.
func (execution *consumerExecution) takeOnce(ctx, work context.Context, handler TakenHandler) (taken bool, err error) {
	conn, err := execution.Pool.Acquire(ctx)
	if err != nil {
		return false, fmt.Errorf("get a connection: %w", err)
	}
	defer conn.Release()
	// TAKE has to see what others committed after the transaction began.
	tx, err := conn.BeginTx(work, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return false, fmt.Errorf("begin a transaction: %w", err)
	}
	// After a commit this does nothing. It runs even when the handler ends the goroutine.
	defer func() {
		if undoErr := rollBack(work, tx); undoErr != nil {
			err = errors.Join(err, undoErr)
		}
	}()
	messages, err := Take(work, tx, execution.Queue, execution.Top, asReader())
	if err != nil {
		return false, err
	}
	if len(messages) > 0 {
		// Where one message is there may be others. While they keep coming, senders are not to notify.
		execution.wakeUps.received(time.Now())
		execution.wakeUps.notifyOthers()
		if err := execution.handleTaken(work, tx, messages, handler); err != nil {
			return false, newTakenError(messages, err)
		}
	}
	// An empty TAKE is committed too: it may have set a message aside, or moved what is due.
	err = tx.Commit(work)
	switch {
	case err != nil && len(messages) > 0:
		return false, newTakenError(messages, fmt.Errorf("commit: %w", err))
	case err != nil:
		return false, fmt.Errorf("commit: %w", err)
	}
	return len(messages) > 0, nil
}

func newTakenError(messages []TakenMessage, cause error) *handlerError {
	return &handlerError{taken: messageIDs(messages), cause: cause}
}

func (execution *consumerExecution) handleTaken(
	ctx context.Context, tx pgx.Tx, messages []TakenMessage, handler TakenHandler,
) (err error) {
	if execution.HandlerTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, execution.HandlerTimeout)
		defer cancel()
	}
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value: value, stack: debug.Stack()}
		}
	}()
	return handler(ctx, tx, messages)
}
