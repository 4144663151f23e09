package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/measure/bench"
)

// pgqTick is how long a consumer that has found no batch waits before it cuts the next one. PgQ's own daemon asks each second, and its
// consumers see nothing before a tick. A ticker beside the consumer gets ahead of it where a batch takes longer than a tick, and leaves it
// hundreds of batches with nothing in them.
const pgqTick = 10 * time.Millisecond

// pgqPeer is PgQ: events of a queue come in batches that a ticker cuts.
func pgqPeer() bench.Peer {
	return bench.Peer{
		Name:        "pgq",
		Short:       "the same through PgQ: insert_event, to a consumer that cuts a batch 10 ms after it has found none",
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
		Count: countEvents,
		Inserter: func() (bench.InsertJob, error) {
			return insertBy("select pgq.insert_event('jobs', ($1::bigint)::text, $2::text)"), nil
		},
		Work: func(ctx context.Context, pool *pgxpool.Pool, _ int, work bench.WorkJob) (func(context.Context) error, error) {
			return loop(ctx, func(ctx context.Context) (int, error) {
				found, err := nextBatch(ctx, pool, work)
				if err != nil || found > 0 {
					return found, err
				}
				sleep(ctx, pgqTick)
				_, err = pool.Exec(ctx, "select pgq.ticker('jobs')")
				return 1, err
			}), nil
		},
	}
}

// countEvents counts the events of the queue, and those that are in no batch that the consumer has finished.
func countEvents(ctx context.Context, conn *pgx.Conn) (c bench.PeerCount, err error) {
	var table string
	if err := conn.QueryRow(ctx, "select q.queue_data_pfx from pgq.queue as q where q.queue_name = 'jobs'").Scan(&table); err != nil {
		return c, err
	}
	err = conn.QueryRow(ctx, fmt.Sprintf(`
		select count(*), count(*) filter (where not txid_visible_in_snapshot(e.ev_txid, t.tick_snapshot))
		from %s as e
		cross join (
			select k.tick_snapshot from pgq.subscription as s join pgq.tick as k on (k.tick_queue, k.tick_id) = (s.sub_queue, s.sub_last_tick)
		) as t`, table)).Scan(&c.In, &c.Left)
	return c, err
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
