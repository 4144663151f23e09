package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/parley-broker/parley/internal/measure/driver"
)

const (
	// jobWorkers is how many jobs River fetches at once, at most, and completes in one statement.
	jobWorkers = 100
	// jobsWaiting is how many jobs may wait to be worked before the sessions that insert wait too.
	jobsWaiting = 1000
)

// jobTrial measures a job of River that is inserted in a transaction of its own and worked.
func (b *bench) jobTrial(variant string, sessions int) trial {
	return trial{
		result: Result{System: systemRiver, Variant: variant, Sessions: sessions, Size: b.Size, Batch: 1},
		run: func(ctx context.Context) (float64, error) {
			s, err := b.stage(ctx, "jobs", func(ctx context.Context, conn *pgx.Conn, _ *stage) error {
				return prepareRiver(ctx, conn, LatencyConfig{})
			})
			if err != nil {
				return 0, err
			}
			return b.onCopy(ctx, s, func(d database) (float64, error) { return b.workJobs(ctx, d, sessions) })
		},
	}
}

// counting is a worker that does nothing but count.
type counting struct {
	river.WorkerDefaults[job]
	worked atomic.Int64
}

func (w *counting) Work(context.Context, *river.Job[job]) error {
	w.worked.Add(1)
	return nil
}

// workJobs gives the jobs worked a second while the sessions insert as many as are worked.
func (b *bench) workJobs(ctx context.Context, d database, sessions int) (rate float64, err error) {
	pool, err := d.pool(ctx, riverConnections)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	worker := &counting{}
	config := riverConfig()
	config.Workers = river.NewWorkers()
	river.AddWorker(config.Workers, worker)
	config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: jobWorkers}}
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	if err == nil {
		err = client.Start(ctx)
	}
	if err != nil {
		return 0, fmt.Errorf("start River: %w", err)
	}
	defer func() {
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), workTimeout)
		defer cancel()
		err = errors.Join(err, client.Stop(stopping))
	}()
	inserter, err := river.NewClient(riverpgxv5.New(nil), &river.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, fmt.Errorf("make a client of River: %w", err)
	}
	return b.drive(ctx, d, sessions, insertingJobs(inserter, worker, strings.Repeat("x", b.Size)))
}

// insertingJobs is the operation that inserts a job and counts those that were worked since.
func insertingJobs(client *river.Client[pgx.Tx], worker *counting, padding string) driver.Operation {
	var inserted, counted atomic.Int64
	return func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			_, err := client.InsertTx(ctx, tx, job{Number: inserted.Add(1), Padding: padding}, nil)
			return err
		})
		if err != nil {
			return 0, err
		}
		for inserted.Load()-worker.worked.Load() > jobsWaiting {
			select {
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			case <-time.After(time.Millisecond):
			}
		}
		worked := worker.worked.Load()
		return int(worked - counted.Swap(worked)), nil
	}
}
