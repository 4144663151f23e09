package daemon

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley/internal/notifier"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
)

const (
	// lease is how long others wait for a leader that does not renew.
	lease = 5 * time.Second
	// renewInterval leaves room for two renewals that fail.
	renewInterval = 1500 * time.Millisecond
	// retryInterval is when to renew the lease again after a failure.
	retryInterval = 200 * time.Millisecond
)

// Term is the time for which this daemon leads a database.
type Term struct {
	// Number goes with each statement that changes something.
	Number int64
	// Notifier is notified of what happens in the database.
	Notifier *notifier.Notifier

	config  LeaderConfig
	renewed atomic.Int64 // monotonic nanoseconds, from the begin of process
}

var processBegan = time.Now()

// IsFresh reports whether the lease still runs for certain, by this process's clock. When it is false nothing new must be begun: this
// process may have been paused, and another daemon may lead.
func (t *Term) IsFresh() bool { return t.age() < lease-time.Second }

// age reports how long ago the lease was renewed.
func (t *Term) age() time.Duration {
	return time.Since(processBegan) - time.Duration(t.renewed.Load())
}

// keep renews the lease until ctx ends or the term is over.
func (t *Term) keep(ctx context.Context) {
	interval := renewInterval
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
		asked := time.Since(processBegan)
		within, cancel := context.WithTimeout(ctx, lease/2)
		_, leads, err := activationstore.Lead(within, t.config.Pool, t.config.Name, t.Number, lease, t.config.Databases)
		cancel()
		interval = renewInterval
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && t.age() > lease:
			t.config.Logger.Warn("the lease could not be renewed in time", "error", err, "term", t.Number)
			return
		case err != nil:
			interval = retryInterval
		case !leads:
			return
		default:
			t.renewed.Store(int64(asked))
		}
	}
}
