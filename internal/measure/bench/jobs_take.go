package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
)

// takeTimeout is how long a session waits in one TAKE.
const takeTimeout = 5 * time.Second

// takePeer is a simple queue of ours as a program in any language uses it: each worker has a session, and waits in TAKE.
func takePeer(count int) Peer {
	p := simplePeer(jobsQueue, 1, count)
	p.Name = systemTake
	p.Work = func(ctx context.Context, pool *pgxpool.Pool, workers int, work WorkJob) (func(context.Context) error, error) {
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan error, workers)
		sessions := max(1, workers/count)
		for range sessions {
			go func() {
				done <- pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
					for ctx.Err() == nil {
						if err := takeAndWork(ctx, conn.Conn(), count, work); err != nil {
							return err
						}
					}
					return nil
				})
			}()
		}
		return func(context.Context) error {
			cancel()
			var failed error
			for range sessions {
				if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
					failed = errors.Join(failed, err)
				}
			}
			return failed
		}, nil
	}
	return p
}

// takeAndWork is one transaction of a worker.
func takeAndWork(ctx context.Context, conn *pgx.Conn, count int, work WorkJob) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		messages, err := parley.Take(ctx, tx, jobsQueue, count, parley.Wait(takeTimeout))
		if err != nil {
			return fmt.Errorf("wait for a job: %w", err)
		}
		for _, m := range messages {
			if err := work(ctx, jobNumber(m.Body)); err != nil {
				return err
			}
		}
		return nil
	})
}
