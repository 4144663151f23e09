package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/measure/bench"
)

// outboxConnections are those of the relay and of the consumers, which write the inbox.
const outboxConnections = 10

// outboxBatch is how many rows the relay publishes in a transaction.
const outboxBatch = 100

// outboxPeer is the usual pipeline: a row of an outbox in the sender's transaction, a relay that publishes it to RabbitMQ, and a consumer
// that writes an inbox, by which it knows what came before.
func outboxPeer(broker *rabbit) bench.Peer {
	return bench.Peer{
		Name:        "outbox-rabbitmq-inbox",
		Short:       "the same through an outbox, a relay that polls each millisecond, RabbitMQ with confirms, and an inbox: exactly once",
		Promise:     "no order once a message comes twice; inbox and outbox are for the team to keep small",
		Version:     rabbitVersion,
		Connections: outboxConnections,
		Missing:     broker.missing,
		Prepare: func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, `
				create table outbox (number bigint primary key, body text not null);
				create table inbox (number bigint primary key, received_at timestamptz not null default clock_timestamp())`)
			if err != nil {
				return fmt.Errorf("make outbox and inbox: %w", err)
			}
			return broker.start(ctx)
		},
		Count: func(ctx context.Context, conn *pgx.Conn) (c bench.PeerCount, err error) {
			waiting, err := broker.waiting()
			if err != nil {
				return c, err
			}
			var out, in int64
			err = conn.QueryRow(ctx, "select (select count(*) from outbox), (select count(*) from inbox)").Scan(&out, &in)
			return bench.PeerCount{In: in + out + waiting, Left: out + waiting}, err
		},
		Inserter: func() (bench.InsertJob, error) {
			return insertBy("insert into outbox (number, body) values ($1, $2)"), nil
		},
		Work: func(ctx context.Context, pool *pgxpool.Pool, workers int, work bench.WorkJob) (func(context.Context) error, error) {
			if err := broker.purge(); err != nil {
				return nil, err
			}
			stopConsumers, err := broker.consume(ctx, workers, func(ctx context.Context, number int64) error {
				tag, err := pool.Exec(ctx, "insert into inbox (number) values ($1) on conflict do nothing", number)
				if err != nil || tag.RowsAffected() == 0 {
					return err
				}
				return work(ctx, number)
			})
			if err != nil {
				return nil, err
			}
			publish, err := broker.publisher()
			if err != nil {
				return nil, err
			}
			relay := loop(ctx, func(ctx context.Context) (int, error) { return relayOutbox(ctx, pool, publish) })
			return together(relay, stopConsumers), nil
		},
	}
}

// relayOutbox publishes some rows and deletes them when all are confirmed.
func relayOutbox(ctx context.Context, pool *pgxpool.Pool, publish func(ctx context.Context, body []byte) error) (found int, err error) {
	err = pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			with taken as (select o.number from outbox as o order by o.number limit $1 for update skip locked)
			delete from outbox as o using taken as t where o.number = t.number returning o.number, o.body`, outboxBatch)
		if err != nil {
			return err
		}
		type row struct {
			Number int64
			Body   string
		}
		taken, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		if err != nil {
			return err
		}
		found = len(taken)
		jobs, bodies := make([]numbered, found), make(map[int64]string, found)
		for i, t := range taken {
			jobs[i], bodies[t.Number] = numbered{Number: t.Number}, t.Body
		}
		return workAll(ctx, func(ctx context.Context, number int64) error {
			return publish(ctx, fmt.Appendf(nil, "%d %s", number, bodies[number]))
		}, jobs)
	})
	return found, err
}
