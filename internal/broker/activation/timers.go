package activation

import (
	"context"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/backoff"
)

const (
	// alarmsAtOnce is small enough that a transaction takes a few milliseconds.
	alarmsAtOnce = 200
	// alarmInterval is how long alarms are left alone at most; the database counts on it (_p_set_alarm).
	alarmInterval = time.Second
	// blindAlarmInterval is for engines that cannot be notified of a timer that is due before the next look.
	blindAlarmInterval = 80 * time.Millisecond
	// careInterval is how often what is not urgent is done: tombstones, messages that were delayed.
	careInterval = 5 * time.Second
)

// fireTimers fires timers and ends lifetimes when they are due, until ctx ends or the term is over.
func fireTimers(ctx context.Context, config Config, term *term, b *bell) {
	failures := backoff.NewFailures(config.Logger, "timers cannot be fired")
	nextCare := time.Now().Add(careInterval)
	for {
		pause, leads := fireOnce(ctx, config, term, &failures)
		if !leads {
			return
		}
		if time.Now().After(nextCare) {
			nextCare = time.Now().Add(care(ctx, config))
		}
		if !b.isListening.Load() {
			pause = min(pause, blindAlarmInterval)
		}
		select {
		case <-ctx.Done():
			return
		case <-b.alarms:
		case <-time.After(pause):
		}
	}
}

// fireOnce fires what is due and tells how long to pause; false means that this engine leads no more.
func fireOnce(ctx context.Context, config Config, term *term, failures *backoff.Failures) (pause time.Duration, leads bool) {
	within, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	fired, next, leads, err := parley.FireDue(within, config.Pool, term.number, alarmsAtOnce, false)
	if err != nil && within.Err() == nil {
		// One of them cannot be fired now; it must not keep the others.
		fired, next, leads, err = parley.FireDue(within, config.Pool, term.number, alarmsAtOnce, true)
	}
	switch {
	case ctx.Err() != nil:
		return 0, false
	case err != nil:
		return failures.Failed(err), true
	case !leads:
		return 0, false
	}
	failures.Succeeded()
	switch {
	case fired > 0 && next <= 0:
		return 0, true
	case next <= 0:
		// Somebody else is at it.
		return 50 * time.Millisecond, true
	}
	return min(next, alarmInterval), true
}

// care does what is not urgent and what anybody may do, so it needs no term. It says when to do it again: the longer it takes, the later.
func care(ctx context.Context, config Config) time.Duration {
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	if _, err := parley.FireTimers(within, config.Pool); err != nil && ctx.Err() == nil {
		config.Logger.Warn("delayed messages could not be looked after; trying again", "error", err)
	}
	return max(careInterval, 20*time.Since(began))
}
