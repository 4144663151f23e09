package parley

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/backoff"
)

const (
	defaultLease = time.Minute
	// beatsPerLease is how often a claim is renewed in the time of its lease.
	beatsPerLease = 3
)

// WorkHandler works on claimed messages, while no transaction is open. It writes its results in [Work.Transaction]; when it returns without
// one, the messages are taken then, with what it returns, a document of JSON or nil, as their result. Its context ends when the messages
// were cancelled or are in other hands by now; the cause is [ErrClaimLost].
//
// An error or a panic gives the messages back: each waits by the retry policy of the queue, or as [RetryAfter] and [Final] say. Several
// that were claimed together come again at once, each in a call of its own.
type WorkHandler func(ctx context.Context, work *Work) (result []byte, err error)

// ClaimConsumer claims messages of a simple queue for long work, for as long as it runs. A heartbeat renews the claims while handlers work,
// so that no transaction is open meanwhile, and a process that dies gives its messages back when their lease is over. Any number of
// consumers may work on one queue, in any number of processes, beside those that take. The limits of the queue hold for all of them.
type ClaimConsumer struct {
	// Pool gives a connection for each statement: none is kept while a handler works.
	Pool *pgxpool.Pool
	// Queue is the name of the queue.
	Queue string
	// Handler works on the messages.
	Handler WorkHandler

	// Count bounds the messages of one call of the handler; 0 means 1. After a failure it is 1 for a while.
	Count int
	// Lease is for how long messages are out of reach when this process dies, at most an hour; 0 means 1 minute.
	Lease time.Duration
	// Readers is how many handlers are under way at once; 0 means 1.
	Readers int
	// HandlerTimeout, GraceTime, PollInterval, ListenConfig, Logger and Observer are those of [Consumer].
	HandlerTimeout time.Duration
	GraceTime      time.Duration
	PollInterval   time.Duration
	ListenConfig   *pgx.ConnConfig
	Logger         *slog.Logger
	Observer       func(Turn)
}

// Run claims messages until ctx ends. Then it lets running handlers finish, for GraceTime at most, and returns nil when they did.
// Failures while it runs are logged and tried again, never returned.
//
// Errors: those of [Consumer.Run].
func (c *ClaimConsumer) Run(ctx context.Context) error {
	switch {
	case c.Handler == nil:
		return errors.New("consumer: Handler is missing")
	case c.Lease < 0 || c.Lease > time.Hour:
		return errors.New("consumer: Lease must be between 0 and an hour")
	}
	execution, err := newConsumerExecution(Consumer{
		Pool: c.Pool, Queue: c.Queue, Top: orDefault(c.Count, 1), Readers: c.Readers, HandlerTimeout: c.HandlerTimeout,
		GraceTime: c.GraceTime, PollInterval: c.PollInterval, ListenConfig: c.ListenConfig, Logger: c.Logger, Observer: c.Observer,
	})
	if err != nil {
		return err
	}
	lease := orDefault(c.Lease, defaultLease)
	execution.workOnce = func(ctx, work context.Context) (turn, error) {
		if ctx.Err() != nil {
			return turn{}, ctx.Err()
		}
		return execution.claimTurn(work, lease, c.Handler)
	}
	return execution.run(ctx)
}

// claimTurn claims messages and has them worked on.
func (execution *consumerExecution) claimTurn(work context.Context, lease time.Duration, handler WorkHandler) (done turn, err error) {
	count := execution.Top
	if execution.singles.Load() > 0 {
		count = 1
	}
	asked := time.Now()
	claimed, err := Claim(work, execution.Pool, execution.Queue, count, lease)
	if err != nil {
		return done, err
	}
	done.scanTook = time.Since(asked)
	if claimed == nil {
		done.committed, done.foundNothing = true, true
		return done, nil
	}
	execution.wakeUps.received(time.Now())
	execution.wakeUps.notifyOthers()
	if err := execution.workOn(work, claimed, asked, handler); err != nil {
		return done, err
	}
	done.committed = true
	if execution.singles.Load() > 0 {
		execution.singles.Add(-int64(len(claimed.Messages)))
	}
	return done, nil
}

// workOn calls the handler with messages that were claimed, and keeps them meanwhile. That they were lost is no failure: others have them.
func (execution *consumerExecution) workOn(work context.Context, claimed *Claimed, asked time.Time, handler WorkHandler) error {
	held, lose := context.WithCancelCause(work)
	defer lose(nil)
	w := &Work{Messages: claimed.Messages, pool: execution.Pool, claimed: claimed, lose: lose}
	var beating sync.WaitGroup
	beat, stopBeating := context.WithCancel(held)
	beating.Go(func() { execution.keep(beat, w, asked) })
	ctx, cancel := execution.bounded(held)
	defer cancel()
	err := execution.call(len(claimed.Messages), func() error {
		result, err := handler(ctx, w)
		if err != nil || w.isComplete.Load() {
			return err
		}
		return w.Transaction(ctx, result, func(pgx.Tx) error { return nil })
	})
	stopBeating()
	beating.Wait()
	switch {
	case err == nil:
		return nil
	case w.isComplete.Load():
		execution.Logger.Error("handler failed after its work was complete", "error", err)
		return nil
	case errors.Is(err, ErrClaimLost), errors.Is(context.Cause(held), ErrClaimLost):
		execution.Logger.Warn("messages were cancelled, or others have them; their work is broken off",
			"message_ids", messageIDs(claimed.Messages))
		return nil
	}
	failed := newTakenError(claimed.Messages, err)
	failed.claimed = claimed
	failed.isCutOff = work.Err() != nil
	failed.messages = len(claimed.Messages)
	return failed
}

// keep renews a claim, which was asked for at a time, until ctx ends. A claim that could not be renewed for as long as its lease is lost.
func (execution *consumerExecution) keep(ctx context.Context, w *Work, asked time.Time) {
	renewed := asked
	for {
		if backoff.Wait(ctx, w.claimed.Lease/beatsPerLease) != nil {
			return
		}
		began := time.Now()
		err := w.beat(ctx)
		switch {
		case err == nil:
			renewed = began
		case ctx.Err() != nil:
			return
		default:
			execution.Logger.Warn("a claim could not be renewed", "error", err)
			if time.Since(renewed) >= w.claimed.Lease {
				w.lose(ErrClaimLost)
				return
			}
		}
	}
}
