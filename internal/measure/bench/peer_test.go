package bench_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/record"
)

// peers are the least that could be compared: a table of jobs, and a worker that takes them from it.
func peers() []bench.Peer {
	return []bench.Peer{{
		Name: "table", Short: "a table of jobs", Connections: 1,
		Prepare: func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, "create table jobs (number bigint, padding text)")
			return err
		},
		Count: func(ctx context.Context, conn *pgx.Conn) (c bench.PeerCount, err error) {
			err = conn.QueryRow(ctx, "select -1, count(*) from jobs").Scan(&c.In, &c.Left)
			return c, err
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

// The counts of a peer decide: where they differ from those of the clients, the run says nothing of the broker.
func TestRunThatIsMiscountedIsInvalid(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]func(c *bench.PeerCount){
		"agrees":               func(*bench.PeerCount) {},
		"misses one":           func(c *bench.PeerCount) { c.In -= c.In / 2 },
		"has some left for it": func(c *bench.PeerCount) { c.Left++ },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := small(t)
			config.Variants, config.Repeat, config.Peers = []string{"rate"}, 1, peers()
			config.Peers[0].Prepare = func(ctx context.Context, conn *pgx.Conn) error {
				_, err := conn.Exec(ctx, "create table jobs (number bigint, padding text); create table taken (number bigint)")
				return err
			}
			insert := config.Peers[0].Inserter
			config.Peers[0].Inserter = func() (bench.InsertJob, error) {
				one, err := insert()
				return func(ctx context.Context, tx pgx.Tx, number int64, padding string) error {
					if _, err := tx.Exec(ctx, "insert into taken (number) values ($1)", number); err != nil {
						return err
					}
					return one(ctx, tx, number, padding)
				}, err
			}
			config.Peers[0].Count = func(ctx context.Context, conn *pgx.Conn) (c bench.PeerCount, err error) {
				err = conn.QueryRow(ctx, "select (select count(*) from taken), (select count(*) from jobs)").Scan(&c.In, &c.Left)
				wrong(&c)
				return c, err
			}
			report, err := scenario(t, "queues").Run(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			reasons := strings.Join(report.Verdict.Reasons, "\n")
			isNamed := strings.Contains(reasons, "the counts differ: table: the clients inserted ")
			if isInvalid := report.Verdict.Grade == record.Invalid; isInvalid != (name != "agrees") || isNamed != isInvalid {
				t.Errorf("the verdict is %s: %s", report.Verdict.Grade, reasons)
			}
		})
	}
}
