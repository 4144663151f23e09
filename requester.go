package parley

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Requester waits for the replies to many requests at once, without a connection for each: a notification wakes it, one statement
// finds for which of them something has come, and each takes its own reply. Where no notification can come it polls once each
// PollInterval. Any number of requesters, in any number of processes, may wait on one queue.
type Requester struct {
	// Pool gives a request a connection while it sends and while it takes its reply.
	Pool *pgxpool.Pool
	// Queue is the queue of the services that ask. Nothing else should receive from it.
	Queue string
	// PollInterval, ListenConfig and Logger are as in [Consumer].
	PollInterval time.Duration
	ListenConfig *pgx.ConnConfig
	Logger       *slog.Logger

	mu      sync.Mutex
	waiting map[UUID]chan struct{}
	wakeUps *wakeUps // nil before Run
}

// Run watches for replies until ctx ends. A [Requester.Request] that is under way then goes on, and finds its reply once each
// PollInterval.
//
// Errors: a Requester that lacks a field it needs.
func (r *Requester) Run(ctx context.Context) error {
	switch {
	case r.Pool == nil:
		return errors.New("requester: Pool is missing")
	case r.Queue == "":
		return errors.New("requester: Queue is missing")
	case r.PollInterval < 0:
		return errors.New("requester: PollInterval must not be negative")
	}
	execution := &consumerExecution{Consumer: Consumer{
		Pool: r.Pool, Queue: r.Queue, PollInterval: r.interval(), ListenConfig: r.ListenConfig, Logger: r.Logger,
	}}
	if execution.Logger == nil {
		execution.Logger = slog.Default()
	}
	execution.Logger = execution.Logger.With("queue", r.Queue)
	wakeUps := newWakeUps(execution)
	r.watch(wakeUps)
	defer r.watch(nil)
	var listening sync.WaitGroup
	listening.Go(func() { wakeUps.listen(ctx) })
	defer listening.Wait()
	for ctx.Err() == nil {
		if err := r.wakeReady(ctx); err != nil && ctx.Err() == nil {
			execution.Logger.Warn("cannot find out for which requests replies have come; trying again", "error", err)
		} else if r.isWaiting() && wakeUps.ask(ctx, execution.Logger) {
			continue
		}
		wakeUps.wait(ctx, 0)
	}
	return nil
}

// Request does what the function [Request] does. [Requester.Run] must run meanwhile, or the reply is found at intervals only.
func (r *Requester) Request(ctx context.Context, message RequestMessage, timeout time.Duration) (Message, error) {
	come := make(chan struct{}, 1)
	handle, err := beginRequest(ctx, r.Pool, message, timeout, func(handle UUID) { r.register(handle, come) })
	defer r.forget(handle)
	if err != nil {
		return Message{}, err
	}
	over := time.NewTimer(timeout)
	defer over.Stop()
	poll := time.NewTicker(r.interval())
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return giveUpRequest(ctx, r.Pool, message, handle)
		case <-over.C:
			return giveUpRequest(ctx, r.Pool, message, handle)
		case <-poll.C:
			if r.isWatched() {
				continue
			}
		case <-come:
		}
		reply, err := takeReply(ctx, r.Pool, handle, 0)
		if reply != nil || err != nil {
			return finishRequest(message, reply, err)
		}
	}
}

func (r *Requester) watch(by *wakeUps) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wakeUps = by
}

func (r *Requester) interval() time.Duration { return orDefault(r.PollInterval, defaultPollInterval) }

func (r *Requester) register(handle UUID, come chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == nil {
		r.waiting = map[UUID]chan struct{}{}
	}
	r.waiting[handle] = come
	if r.wakeUps != nil {
		r.wakeUps.next.Notify() // senders may have to be asked for notifications
	}
}

func (r *Requester) forget(handle UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, handle)
}

func (r *Requester) isWaiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting) > 0
}

func (r *Requester) isWatched() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wakeUps != nil
}

// wakeReady wakes the requests for which something has come.
func (r *Requester) wakeReady(ctx context.Context) error {
	r.mu.Lock()
	handles := make([]UUID, 0, len(r.waiting))
	for handle := range r.waiting {
		handles = append(handles, handle)
	}
	r.mu.Unlock()
	if len(handles) == 0 {
		return nil
	}
	rows, err := r.Pool.Query(ctx, `
		select h.handle from parley.conversations_with_messages($1, $2::text::uuid[]) as h (handle)`, r.Queue, arrayLiteral(handles))
	if err != nil {
		return pgdb.StatementError(err, "find the replies in queue "+r.Queue)
	}
	ready, err := pgx.CollectRows(rows, pgx.RowTo[UUID])
	if err != nil {
		return pgdb.StatementError(err, "find the replies in queue "+r.Queue)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, handle := range ready {
		select {
		case r.waiting[handle] <- struct{}{}:
		default:
		}
	}
	return nil
}
