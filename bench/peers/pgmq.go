package main

import (
	"context"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/measure/bench"
)

// pgmqVariable names a file with the SQL of pgmq, for servers that do not have its extension.
const pgmqVariable = "PARLEY_BENCH_PGMQ"

// pgmqPeer is the queue of pgmq. One reader reads and deletes many messages at once, as its documentation recommends for throughput.
func pgmqPeer() bench.Peer {
	return bench.Peer{
		Name:        "pgmq",
		Short:       "the same through pgmq: send, to a reader that polls each millisecond, reads and deletes many at once",
		Promise:     "no conversations and no order of them; a message that is read comes again after its visibility time-out",
		Version:     ofPGMQ,
		Connections: 2,
		Missing: func(ctx context.Context, conn *pgx.Conn) (string, error) {
			if os.Getenv(pgmqVariable) != "" {
				return "", nil
			}
			isThere, err := hasExtension(ctx, conn, "pgmq")
			if err != nil || isThere {
				return "", err
			}
			return "install the extension pgmq on the server, or name its file pgmq.sql in " + pgmqVariable, nil
		},
		Prepare: func(ctx context.Context, conn *pgx.Conn) error {
			install := "create extension pgmq cascade"
			if file := os.Getenv(pgmqVariable); file != "" {
				written, err := os.ReadFile(file)
				if err != nil {
					return fmt.Errorf("read the SQL of pgmq: %w", err)
				}
				install = "create schema if not exists pgmq;\n" + string(written)
			}
			if _, err := conn.Exec(ctx, install); err != nil {
				return fmt.Errorf("install pgmq: %w", err)
			}
			_, err := conn.Exec(ctx, "select pgmq.create('jobs')")
			return err
		},
		// The numbers of messages are given without a gap where no transaction is rolled back.
		Count: countBy(`
			select coalesce(pg_sequence_last_value(pg_get_serial_sequence('pgmq.q_jobs', 'msg_id')), 0), (select count(*) from pgmq.q_jobs)`),
		Inserter: func() (bench.InsertJob, error) {
			return insertBy("select pgmq.send('jobs', jsonb_build_object('number', $1::bigint, 'padding', $2::text))"), nil
		},
		Work: func(ctx context.Context, pool *pgxpool.Pool, workers int, work bench.WorkJob) (func(context.Context) error, error) {
			return loop(ctx, func(ctx context.Context) (int, error) {
				rows, err := pool.Query(ctx, "select r.msg_id, (r.message ->> 'number')::bigint from pgmq.read('jobs', 60, $1) as r", workers)
				if err != nil {
					return 0, err
				}
				found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[numbered])
				if err != nil || len(found) == 0 {
					return 0, err
				}
				if err := workAll(ctx, work, found); err != nil {
					return 0, err
				}
				_, err = pool.Exec(ctx, "select pgmq.delete('jobs', $1::bigint[])", idsOf(found))
				return len(found), err
			}), nil
		},
	}
}

func hasExtension(ctx context.Context, conn *pgx.Conn, name string) (isThere bool, err error) {
	err = conn.QueryRow(ctx, "select exists (select from pg_available_extensions as e where e.name = $1)", name).Scan(&isThere)
	return isThere, err
}
