// Package timers fires timers and ends lifetimes for the daemon that leads a database.
package timers

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/notifier"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
)

const (
	// alarmsAtOnce is small enough that a transaction takes a few milliseconds.
	alarmsAtOnce = 200
	// alarmInterval is how long alarms are left alone at most; the database counts on it (_p_set_alarm).
	alarmInterval = time.Second
	// blindAlarmInterval is for daemons that cannot be notified of a timer that is due before the next call.
	blindAlarmInterval = 80 * time.Millisecond
	// careInterval is how often what is not urgent is done: tombstones, messages that were delayed.
	careInterval = 5 * time.Second
	// statementTimeout bounds each statement.
	statementTimeout = 10 * time.Second
)

// Timers is a part of a daemon.
type Timers struct {
	daemon.Simple

	pool   *pgxpool.Pool
	logger *slog.Logger
}

var _ daemon.LedPart = (*Timers)(nil)

// New makes the timers of a database.
func New(pool *pgxpool.Pool, logger *slog.Logger) *Timers { return &Timers{pool: pool, logger: logger} }

// Lead fires what is due until ctx ends or the term is over.
func (t *Timers) Lead(ctx context.Context, term *daemon.Term) {
	subscription := term.Notifier.Subscribe(0)
	defer subscription.Close()
	earlier := subscription.On("0", notifier.NewWakeUp())
	failures := backoff.NewFailures(t.logger, "timers cannot be fired")
	nextCare := time.Now().Add(careInterval)
	for {
		pause, leads := t.fireOnce(ctx, term, &failures)
		if !leads {
			return
		}
		if time.Now().After(nextCare) {
			nextCare = time.Now().Add(t.care(ctx))
		}
		select {
		case <-ctx.Done():
			return
		case <-earlier:
		case <-time.After(pause):
		}
	}
}

// fireOnce fires what is due and returns how long to pause; false means that this daemon leads no more.
func (t *Timers) fireOnce(ctx context.Context, term *daemon.Term, failures *backoff.Failures) (pause time.Duration, leads bool) {
	within, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	fired, next, leads, err := activationstore.FireDue(within, t.pool, term.Number, alarmsAtOnce, false)
	if _, isRefused := errors.AsType[*pgconn.PgError](err); isRefused && within.Err() == nil {
		// One of them cannot be fired now; it must not keep the others.
		fired, next, leads, err = activationstore.FireDue(within, t.pool, term.Number, alarmsAtOnce, true)
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
	if !term.Notifier.IsListening() {
		return min(next, blindAlarmInterval), true
	}
	return min(next, alarmInterval), true
}

// care does what is not urgent and what anybody may do, so it needs no term. It says when to do it again: the longer it takes, the later.
func (t *Timers) care(ctx context.Context) time.Duration {
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	if _, err := parley.FireTimers(within, t.pool); err != nil && ctx.Err() == nil {
		t.logger.Warn("delayed messages could not be classified; trying again", "error", err)
	}
	return max(careInterval, 20*time.Since(began))
}
