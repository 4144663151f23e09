package parley

import (
	"context"
	"errors"
	"log/slog"
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
	// HandlerTimeout, GraceTime, PollInterval, ListenConfig, Logger and Observer are those of [Consumer].
	HandlerTimeout time.Duration
	GraceTime      time.Duration
	PollInterval   time.Duration
	ListenConfig   *pgx.ConnConfig
	Logger         *slog.Logger
	Observer       func(Turn)
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
		Observer: c.Observer,
	})
	if err != nil {
		return err
	}
	execution.workOnce = func(ctx, work context.Context) (turn, error) {
		return execution.takeTurn(ctx, work, &taking{execution: execution, handler: c.Handler})
	}
	return execution.run(ctx)
}

func newTakenError(messages []TakenMessage, cause error) *handlerError {
	return &handlerError{taken: messageIDs(messages), cause: cause}
}
