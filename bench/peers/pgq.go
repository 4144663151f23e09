package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/measure/bench"
)

// pgqTick is how often events become a batch. PgQ's own daemon asks each second; its consumers see nothing before a tick.
const pgqTick = 10 * time.Millisecond

// pgqPeer is PgQ: events of a queue come in batches that a ticker cuts.
func pgqPeer() bench.Peer {
	return bench.Peer{
		Name:        "pgq",
		Short:       "the same through PgQ: insert_event, to a consumer of batches that are cut each 10 ms",
		Promise:     "a batch is finished as a whole, and events wait for the tick that cuts it",
		Version:     ofExtension("pgq"),
		Connections: 4,
		Missing: func(ctx context.Context, conn *pgx.Conn) (string, error) {
			isThere, err := hasExtension(ctx, conn, "pgq")
			if err != nil || isThere {
				return "", err
			}
			return "install the extension pgq on the server: Debian's package postgresql-15-pgq3", nil
		},
		Prepare: func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, `
				create extension pgq;
				select pgq.create_queue('jobs');
				select pgq.set_queue_config('jobs', 'ticker_max_lag', '0 seconds');
				select pgq.set_queue_config('jobs', 'ticker_idle_period', '0 seconds');
				select pgq.register_consumer('jobs', 'worker')`)
			if err != nil {
				return fmt.Errorf("install PgQ: %w", err)
			}
			return nil
		},
		Inserter: func() (bench.InsertJob, error) {
			return insertBy("select pgq.insert_event('jobs', ($1::bigint)::text, $2::text)"), nil
		},
		Work: func(ctx context.Context, pool *pgxpool.Pool, _ int, work bench.WorkJob) (func(context.Context) error, error) {
			ticker := loop(ctx, func(ctx context.Context) (int, error) {
				_, err := pool.Exec(ctx, "select pgq.ticker('jobs')")
				sleep(ctx, pgqTick)
				return 1, err
			})
			consumer := loop(ctx, func(ctx context.Context) (int, error) { return nextBatch(ctx, pool, work) })
			return together(consumer, ticker), nil
		},
	}
}

// nextBatch works on a batch, if there is one.
func nextBatch(ctx context.Context, pool *pgxpool.Pool, work bench.WorkJob) (int, error) {
	var batch *int64
	if err := pool.QueryRow(ctx, "select pgq.next_batch('jobs', 'worker')").Scan(&batch); err != nil || batch == nil {
		return 0, err
	}
	rows, err := pool.Query(ctx, "select e.ev_id, e.ev_type::bigint from pgq.get_batch_events($1) as e", *batch)
	if err != nil {
		return 0, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[numbered])
	if err != nil {
		return 0, err
	}
	if err := workAll(ctx, work, found); err != nil {
		return 0, err
	}
	_, err = pool.Exec(ctx, "select pgq.finish_batch($1)", *batch)
	return 1, err
}
