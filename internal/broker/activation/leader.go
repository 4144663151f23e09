package activation

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/backoff"
)

const (
	// lease is how long others wait for a leader that is not heard of.
	lease = 5 * time.Second
	// renewInterval leaves room for two renewals that fail.
	renewInterval = 1500 * time.Millisecond
	// campaignInterval is how often a daemon that does not lead asks whether it can.
	campaignInterval = time.Second
)

// term is the time for which this engine leads.
type term struct {
	config  Config
	number  int64
	renewed atomic.Int64 // monotonic nanoseconds, from the begin of process
}

var processBegan = time.Now()

// isFresh tells whether the lease still runs for certain, by this process's clock. An engine that was paused learns here that it
// must not start a reader before it has asked the database.
func (t *term) isFresh() bool {
	return time.Since(processBegan)-time.Duration(t.renewed.Load()) < lease-time.Second
}

// keep renews the lease until ctx ends or the term is over.
func (t *term) keep(ctx context.Context) {
	interval := renewInterval
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
		asked := time.Since(processBegan)
		within, cancel := context.WithTimeout(ctx, lease/2)
		_, leads, err := parley.Lead(within, t.config.Pool, t.config.Name, t.number, lease)
		cancel()
		interval = renewInterval
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && time.Since(processBegan)-time.Duration(t.renewed.Load()) > lease:
			t.config.Logger.Warn("the lease could not be renewed in time", "error", err, "term", t.number)
			return
		case err != nil:
			interval = 200 * time.Millisecond
		case !leads:
			return
		default:
			t.renewed.Store(int64(asked))
		}
	}
}

// campaign is how an engine comes to lead.
type campaign struct {
	config Config
	bell   *bell
}

// win returns the term when this engine leads, or false when ctx has ended.
func (c *campaign) win(ctx context.Context) (*term, bool) {
	failures := backoff.NewFailures(c.config.Logger, "the database cannot be asked who leads")
	waits := false
	for ctx.Err() == nil {
		asked := time.Since(processBegan)
		within, cancel := context.WithTimeout(ctx, statementTimeout)
		number, leads, err := parley.Lead(within, c.config.Pool, c.config.Name, 0, lease)
		cancel()
		pause := backoff.Jitter(campaignInterval, 0.2)
		switch {
		case ctx.Err() != nil:
			return nil, false
		case err != nil:
			pause = failures.Failed(err)
		case leads:
			failures.Succeeded()
			t := &term{config: c.config, number: number}
			t.renewed.Store(int64(asked))
			return t, true
		default:
			failures.Succeeded()
			if !waits {
				c.config.Logger.Info("another daemon leads; waiting to take over")
			}
			waits = true
		}
		select {
		case <-ctx.Done():
		case <-c.bell.resigned:
		case <-time.After(pause):
		}
	}
	return nil, false
}
