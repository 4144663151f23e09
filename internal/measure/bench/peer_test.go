package bench_test

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/measure/bench"
)

// peers are the least that could be compared: a table of jobs, and a worker that takes them from it.
func peers() []bench.Peer {
	return []bench.Peer{{
		Name: "table", Short: "a table of jobs", Connections: 1,
		Prepare: func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "create table jobs (number bigint, padding text)")
			return err
		},
		Inserter: func() (bench.InsertJob, error) {
			return func(ctx context.Context, tx pgx.Tx, number int64, padding string) error {
				_, err := tx.Exec(ctx, "insert into jobs (number, padding) values ($1, $2)", number, padding)
				return err
			}, nil
		},
		Work: workTable,
	}}
}

func workTable(ctx context.Context, pool *pgxpool.Pool, workers int, work bench.WorkJob) (func(context.Context) error, error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- takeJobs(ctx, pool, workers, work) }()
	return func(context.Context) error {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}, nil
}

// takeJobs works on what is in the table until it is canceled.
func takeJobs(ctx context.Context, pool *pgxpool.Pool, workers int, work bench.WorkJob) error {
	for ctx.Err() == nil {
		rows, err := pool.Query(ctx, `
			with taken as (select j.ctid from jobs as j limit $1 for update skip locked)
			delete from jobs as j using taken as t where j.ctid = t.ctid returning j.number`, workers)
		if err != nil {
			return err
		}
		numbers, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			return err
		}
		for _, number := range numbers {
			if err := work(ctx, number); err != nil {
				return err
			}
		}
		if len(numbers) == 0 {
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
	return ctx.Err()
}
