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

const (
	// askedBeyond is how long beyond a poll interval senders are asked to notify. It costs senders throughput, so it
	// is short, and renewed for as long as a reader sleeps.
	askedBeyond = 3 * time.Second
	// quietTime is how long nothing must have been received before a pause counts as one.
	quietTime = 50 * time.Millisecond
	// longestScanPause bounds the pause between two scans of a consumer that polls, however long they take.
	longestScanPause = 20 * time.Millisecond
)

// wakeUps wake the sleeping readers of a consumer: when a sender notifies, and once each poll interval.
//
// Each wakes one reader; a reader that finds messages again and again, or takes long over them, wakes another one, so that a burst wakes
// all of them and a single message only one.
//
// Notifications make senders wait for each other's commits. So while messages keep coming senders are not asked again, and one of the
// readers that found nothing scans every few milliseconds ([notifier.Demand]). They are not asked to stop: other consumers may have asked.
type wakeUps struct {
	execution    *consumerExecution
	notifier     *notifier.Notifier
	subscription *notifier.Subscription
	next         notifier.WakeUp
	sleepers     atomic.Int32
	isScanned    atomic.Bool // one of the readers scans while the others sleep

	mu         sync.Mutex
	receivedAt time.Time // when something was received last
	payload    string    // what notifications of our queue carry, once it is known
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

// received records that a reader has got messages.
func (w *wakeUps) received(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.demand.Notified(now, now.Sub(w.receivedAt) > quietTime)
	w.receivedAt = now
}

// polls reports whether to scan instead of asking senders to notify. The mutex is held.
func (w *wakeUps) polls(now time.Time) bool {
	switch {
	case w.demand.IsTooHigh(now):
		w.demand.Poll()
	case w.demand.IsPolling() && now.Sub(w.receivedAt) > quietTime:
		w.demand.EndPolling()
	}
	return w.demand.IsPolling()
}

// wait sleeps until the next wake-up, or until listening begins: then senders have to be asked. While the consumer polls one of those who
// sleep scans again soon; the last scan took so long.
func (w *wakeUps) wait(ctx context.Context, scanTook time.Duration) {
	w.sleepers.Add(1)
	defer w.sleepers.Add(-1)
	var due <-chan time.Time
	if w.demand.IsPolling() && w.isScanned.CompareAndSwap(false, true) {
		defer w.isScanned.Store(false)
		due = time.After(notifier.PollAfter(scanTook, 1, notifier.PollInterval, longestScanPause))
	}
	select {
	case <-ctx.Done():
	case <-w.next:
	case <-w.subscription.Missed:
	case <-due:
	}
}

// ask asks senders to notify, unless they do already. It returns true when they did not: then the queue has to be
// scanned once more. Readers ask one after the other, so that one does it for all.
func (w *wakeUps) ask(ctx context.Context, logger *slog.Logger) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.polls(now) {
		return false
	}
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
		_ = backoff.Wait(ctx, backoff.Jitter(w.execution.PollInterval, 0.2))
		w.next.Notify()
	}
}
