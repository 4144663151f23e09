// Package timers fires timers and ends lifetimes for the daemon that leads a database.
package timers

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/notifier"
	"github.com/parley-broker/parley/internal/pgdb"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
)

const (
	// alarmsAtOnce is small enough that a transaction takes a few milliseconds.
	alarmsAtOnce = 200
	// caresAtOnce is how many of a kind are removed at once when they have expired.
	caresAtOnce = 1000
	// alarmInterval is how long alarms are left alone at most; the database counts on it (_p_set_alarm).
	alarmInterval = time.Second
	// blindAlarmInterval is for daemons that cannot be notified of a timer that is due before the next call.
	blindAlarmInterval = 80 * time.Millisecond
	// careInterval is how often what is not urgent is done: tombstones, messages that were delayed.
	careInterval = 5 * time.Second
	// statementTimeout bounds each statement but those that send.
	statementTimeout = 10 * time.Second
	// sendMost bounds what is sent at once of messages for later, or of one endpoint when that took too long, and oneMost one message;
	// sendsMost is after how long no other endpoint follows then, and lateDelay when one that took too long is tried again.
	sendMost  = time.Second
	oneMost   = 5 * time.Second
	sendsMost = 3 * time.Second
	lateDelay = time.Minute
	// deliveredAtOnce is of how many endpoints what was delayed is delivered at once.
	deliveredAtOnce = 200
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
	ctx, cancel := context.WithCancel(ctx)
	var caring sync.WaitGroup
	caring.Go(func() { t.takeCare(ctx) })
	defer caring.Wait()
	defer cancel()
	for {
		pause, leads := t.fireOnce(ctx, term, &failures)
		if !leads {
			return
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
	if err == nil && leads && next <= 0 {
		var sent int
		sent, err = t.send(ctx, term)
		fired += sent
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

// send sends what was sent for later and is due. When that takes too long, it sends for one endpoint after another, and puts off those
// that take too long: a validation function that somebody has made must not keep timers and messages from others.
func (t *Timers) send(ctx context.Context, term *daemon.Term) (sent int, err error) {
	ctx, cancel := context.WithTimeout(ctx, sendMost+sendsMost+3*oneMost)
	defer cancel()
	sent, err = activationstore.SendDue(ctx, t.pool, term.Number, alarmsAtOnce, sendMost)
	if !pgdb.TookTooLong(err) || ctx.Err() != nil {
		return sent, err
	}
	began := time.Now()
	senders, err := activationstore.DueSenders(ctx, t.pool, term.Number, alarmsAtOnce)
	for _, endpoint := range senders {
		if err != nil || time.Since(began) > sendsMost {
			break
		}
		late := t.sendOf(ctx, endpoint)
		if late == nil || ctx.Err() != nil {
			continue
		}
		t.logger.Warn("messages that were sent for later could not be sent; trying again in a minute", "endpoint", endpoint, "error", late)
		err = activationstore.PutOffSends(ctx, t.pool, endpoint, lateDelay)
	}
	return 0, err
}

// sendOf sends what is due of an endpoint: one message alone where more of them take too long, as they do on a busy machine, too.
func (t *Timers) sendOf(ctx context.Context, endpoint int64) error {
	err := activationstore.SendDueOf(ctx, t.pool, endpoint, alarmsAtOnce, sendMost)
	if !pgdb.TookTooLong(err) || ctx.Err() != nil {
		return err
	}
	return activationstore.SendDueOf(ctx, t.pool, endpoint, 1, oneMost)
}
