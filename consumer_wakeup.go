package parley

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/notifier"
	"github.com/parley-broker/parley/internal/pgdb"
)

// askedBeyond is how long beyond a poll interval senders are asked to notify. It costs senders throughput, so it
// is short, and renewed for as long as a reader sleeps.
const askedBeyond = 3 * time.Second

// wakeUps wake the sleeping readers of a consumer: when a sender notifies, and once each poll interval.
//
// Each wakes one reader; a reader that finds messages notifies again, so that a burst wakes all of them and a
// single message only one.
type wakeUps struct {
	execution    *consumerExecution
	notifier     *notifier.Notifier
	subscription *notifier.Subscription
	next         notifier.WakeUp
	sleepers     atomic.Int32

	mu         sync.Mutex
	payload    string // what notifications of our queue carry, once it is known
	demand     notifier.Demand
	connection int64 // the one on which notifications arrived when senders were asked
	isRefused  bool  // senders could not be asked the last time
}

func newWakeUps(execution *consumerExecution) *wakeUps {
	listening := notifier.New(notifier.Config{
		Pool: execution.Pool, Direct: execution.ListenConfig, IsTrusted: true, Logger: execution.Logger,
	})
	return &wakeUps{execution: execution, notifier: listening, subscription: listening.Subscribe(0), next: notifier.NewWakeUp()}
}

// notifyOthers wakes one reader if any sleeps now.
func (w *wakeUps) notifyOthers() {
	if w.sleepers.Load() > 0 {
		w.next.Notify()
	}
}

// wait sleeps until the next wake-up, or until listening begins: then senders have to be asked.
func (w *wakeUps) wait(ctx context.Context) {
	w.sleepers.Add(1)
	defer w.sleepers.Add(-1)
	select {
	case <-ctx.Done():
	case <-w.next:
	case <-w.subscription.Missed:
	}
}

// ask asks senders to notify, unless they do already. It returns true when they did not: then the queue has to be
// scanned once more. Readers ask one after the other, so that one does it for all.
func (w *wakeUps) ask(ctx context.Context, logger *slog.Logger) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	connection := w.notifier.Connection()
	if connection != w.connection {
		w.connection = connection
		w.demand.Unasked()
	}
	if connection == 0 || w.demand.IsAsked(now.Add(w.execution.PollInterval)) {
		return false
	}
	lasts := pgdb.Seconds(w.execution.PollInterval + askedBeyond)
	var payload string
	err := w.execution.Pool.QueryRow(ctx, "select parley.listen_for_messages($1::text, $2::integer)", w.execution.Queue, lasts).Scan(&payload)
	if err != nil {
		if ctx.Err() == nil && !w.isRefused {
			logger.Warn("cannot ask senders to notify; scanning at intervals", "error", err, "interval", w.execution.PollInterval)
		}
		w.isRefused = true
		return false
	}
	w.isRefused = false
	if payload != w.payload {
		w.subscription.Off(w.payload)
		w.subscription.On(payload, w.next)
		w.payload = payload
		w.demand.Unasked() // what it was notified of until now is lost
	}
	return w.demand.Asked(now, time.Duration(lasts)*time.Second)
}

// listen wakes readers until ctx ends.
func (w *wakeUps) listen(ctx context.Context) {
	var listening sync.WaitGroup
	listening.Go(func() { w.notifier.Run(ctx) })
	defer listening.Wait()
	for ctx.Err() == nil {
		pause(ctx, backoff.Jitter(w.execution.PollInterval, 0.2))
		w.next.Notify()
	}
}
