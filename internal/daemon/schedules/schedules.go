// Package schedules puts the messages of schedules when they are due, for the daemon that leads a database.
package schedules

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/notifier"
	"github.com/parley-broker/parley/internal/pgdb"
	schedulesstore "github.com/parley-broker/parley/internal/store/schedules"
)

const (
	// atOnce is how many schedules a transaction runs.
	atOnce = 100
	// interval is how long schedules are left alone at most: a daemon that is not notified finds a new one within it.
	interval = time.Second
	// statementTimeout bounds each transaction.
	statementTimeout = 30 * time.Second
	// runMost bounds each schedule. Its owner may make it last: by a lock on the queue, by a validation function.
	runMost = 5 * time.Second
	// takesMost is after which time a transaction takes on no more schedules.
	takesMost = 10 * time.Second
)

// Schedules is a part of a daemon.
type Schedules struct {
	daemon.Simple

	pool   *pgxpool.Pool
	logger *slog.Logger
}

var _ daemon.LedPart = (*Schedules)(nil)

// New makes the part for a database.
func New(pool *pgxpool.Pool, logger *slog.Logger) *Schedules {
	return &Schedules{pool: pool, logger: logger}
}

// Lead runs what is due until ctx ends. When the term is over it finds nothing any more.
func (s *Schedules) Lead(ctx context.Context, term *daemon.Term) {
	subscription := term.Notifier.Subscribe(0)
	defer subscription.Close()
	changed := subscription.On("0", notifier.NewWakeUp())
	failures := backoff.NewFailures(s.logger, "schedules cannot be run")
	for {
		pause, err := s.once(ctx, term.Number)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = failures.Failed(err)
		default:
			failures.Succeeded()
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-time.After(pause):
		}
	}
}

// once runs what is due and says when to come back.
func (s *Schedules) once(ctx context.Context, term int64) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	next, isAny, err := schedulesstore.Wait(ctx, s.pool)
	switch {
	case err != nil:
		return 0, fmt.Errorf("read schedules: %w", err)
	case !isAny:
		return interval, nil
	case next > 0:
		return min(next, interval), nil
	}
	found := 0
	err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		due, err := schedulesstore.Find(ctx, tx, term, atOnce)
		if err != nil {
			return err
		}
		found = len(due)
		began := time.Now()
		for _, one := range due {
			if time.Since(began) > takesMost {
				break
			}
			fault, err := run(ctx, tx, one)
			if err != nil {
				return err
			}
			if fault != "" {
				s.logger.Warn("a schedule could not be run; trying again in a minute", "schedule_id", one.ID, "error", fault)
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("run schedules: %w", err)
	}
	if found == 0 {
		// Somebody else is at it, or the term is over.
		return 100 * time.Millisecond, nil
	}
	return 0, nil
}

// run puts the messages of a schedule, or says why it could not. One that takes too long is undone, and holds up no other.
func run(ctx context.Context, tx pgx.Tx, one schedulesstore.Due) (fault string, err error) {
	err = pgx.BeginFunc(ctx, tx, func(part pgx.Tx) error {
		if err := pgdb.LimitStatements(ctx, part, runMost); err != nil {
			return err
		}
		fault, err = schedulesstore.Put(ctx, part, one.ID, plan(one))
		return err
	})
	if !pgdb.TookTooLong(err) || ctx.Err() != nil {
		return fault, err
	}
	late := fmt.Sprintf("it took longer than %v: somebody holds the queue, or a validation function does not return", runMost)
	return schedulesstore.Put(ctx, tx, one.ID, schedulesstore.Run{Fault: late})
}
