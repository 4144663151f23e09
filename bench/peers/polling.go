package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/bench"
)

// pollInterval is how long a client that polls waits after it has found nothing.
const pollInterval = time.Millisecond

// numbered is a job as a queue gives it: the queue's own number, and that of the job.
type numbered struct{ ID, Number int64 }

func idsOf(jobs []numbered) []int64 {
	ids := make([]int64, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	return ids
}

// insertBy inserts jobs by a statement, whose parameters are the number and the padding.
func insertBy(statement string) bench.InsertJob {
	return func(ctx context.Context, tx pgx.Tx, number int64, padding string) error {
		_, err := tx.Exec(ctx, statement, number, padding)
		return err
	}
}

// countBy counts by a statement that gives how many jobs came in, and how many of them are left.
func countBy(statement string) func(ctx context.Context, conn *pgx.Conn) (bench.PeerCount, error) {
	return func(ctx context.Context, conn *pgx.Conn) (c bench.PeerCount, err error) {
		err = conn.QueryRow(ctx, statement).Scan(&c.In, &c.Left)
		return c, err
	}
}

// workAll works on jobs side by side.
func workAll(ctx context.Context, work bench.WorkJob, jobs []numbered) error {
	errs := make([]error, len(jobs))
	var working sync.WaitGroup
	for i, j := range jobs {
		working.Go(func() { errs[i] = work(ctx, j.Number) })
	}
	working.Wait()
	return errors.Join(errs...)
}

// loop calls poll until it is stopped, and waits where it found nothing. The function that comes back stops it, and gives its error.
func loop(ctx context.Context, poll func(ctx context.Context) (found int, err error)) (stop func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			found, err := poll(ctx)
			if err != nil {
				done <- err
				return
			}
			if found == 0 {
				sleep(ctx, pollInterval)
			}
		}
		done <- nil
	}()
	return func(stopping context.Context) error {
		cancel()
		select {
		case err := <-done:
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		case <-stopping.Done():
			return context.Cause(stopping)
		}
	}
}

func sleep(ctx context.Context, interval time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(interval):
	}
}

// together stops several in their order.
func together(stops ...func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		for _, stop := range stops {
			err = errors.Join(err, stop(ctx))
		}
		return err
	}
}
