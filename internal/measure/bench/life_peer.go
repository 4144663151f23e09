package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/measure/driver"
)

const (
	// jobWorkers is how many jobs a peer fetches at once, at most, and completes in one statement.
	jobWorkers = 100
	// jobsWaiting is how many jobs may wait to be worked before the sessions that insert wait too.
	jobsWaiting = 1000
	// jobPatience is how long nothing may be worked on while so many wait: its workers have failed then.
	jobPatience = 20 * time.Second
)

// jobTrial measures a job of a peer that is inserted in a transaction of its own and worked.
func (b *bench) jobTrial(p Peer, variant string, sessions int) trial {
	return trial{
		result: Result{System: p.Name, Variant: variant, Sessions: sessions, Size: b.Size, Batch: 1},
		run: func(ctx context.Context) (float64, error) {
			s, err := b.stage(ctx, "jobs of "+p.Name, func(ctx context.Context, conn *pgx.Conn, _ *stage) error {
				return p.Prepare(ctx, conn)
			})
			if err != nil {
				return 0, err
			}
			return b.onCopy(ctx, s, func(d database) (float64, error) { return b.workJobs(ctx, d, p, sessions) })
		},
	}
}

// workJobs gives the jobs worked a second while the sessions insert as many as are worked. The work on each is to count it.
func (b *bench) workJobs(ctx context.Context, d database, p Peer, sessions int) (rate float64, err error) {
	var worked atomic.Int64
	stop, err := p.start(ctx, d, p.Connections, jobWorkers, func(*pgxpool.Pool) WorkJob {
		return func(context.Context, int64) error {
			worked.Add(1)
			return nil
		}
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	insert, err := p.Inserter()
	if err != nil {
		return 0, err
	}
	return b.drive(ctx, d, sessions, insertingJobs(insert, &worked, strings.Repeat("x", b.Size)))
}

// insertingJobs is the operation that inserts a job and counts those that were worked since.
func insertingJobs(insert InsertJob, working *atomic.Int64, padding string) driver.Operation {
	var inserted, counted atomic.Int64
	return func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return insert(ctx, tx, inserted.Add(1), padding) })
		if err != nil {
			return 0, err
		}
		for seen, since := working.Load(), time.Now(); inserted.Load()-working.Load() > jobsWaiting; {
			if now := working.Load(); now != seen {
				seen, since = now, time.Now()
			} else if time.Since(since) > jobPatience {
				return 0, fmt.Errorf("of %d jobs that wait none was worked on in %s", inserted.Load()-now, jobPatience)
			}
			select {
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			case <-time.After(time.Millisecond):
			}
		}
		worked := working.Load()
		return int(worked - counted.Swap(worked)), nil
	}
}
