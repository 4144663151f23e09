package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
)

// latencyQueue is the queue that messages pass whose latency is measured.
const latencyQueue = "latency"

const (
	systemConsumer       = "parley_consumer"
	systemConsumerGroups = "parley_consumer_groups"
	// consumerGroups is from how many conversation groups the latter receives at once.
	consumerGroups = 16
)

// consumerSystem is a Consumer of the Go package, which listens.
func consumerSystem() latencySystem {
	return latencySystem{
		name:       systemConsumer,
		short:      "SEND, to the first statement of the handler of a Consumer of the Go package",
		prepare:    prepareQueue,
		isOnBroker: true,
		work:       consume(1),
		sender:     messageSender,
	}
}

// simpleSystem is a simple queue with a SimpleConsumer of the Go package, which listens.
func simpleSystem() latencySystem {
	return latencySystem{
		name:       systemSimple,
		short:      "PUT into a simple queue, to the first statement of the handler of a SimpleConsumer",
		isOnBroker: true,
		prepare: func(ctx context.Context, conn *pgx.Conn, _ LatencyConfig) error {
			return createSimple(ctx, conn, latencyQueue)
		},
		work: func(ctx context.Context, d database, c LatencyConfig) (func() error, error) {
			pool, err := d.pool(ctx, c.Readers+1)
			if err != nil {
				return nil, err
			}
			stop := running(ctx, (&parley.SimpleConsumer{
				Pool: pool, Queue: latencyQueue, Readers: c.Readers, Logger: slog.New(slog.DiscardHandler),
				Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.TakenMessage) error {
					for _, m := range messages {
						if _, err := tx.Exec(ctx, begunStatement, jobNumber(m.Body)); err != nil {
							return err
						}
					}
					return nil
				},
			}).Run)
			return func() error {
				defer pool.Close()
				return stop(ctx)
			}, nil
		},
		sender: func(_ context.Context, _ *pgx.Conn, c LatencyConfig, _ int) (send, error) {
			padding := strings.Repeat("x", c.Size-leastBody)
			return func(ctx context.Context, tx pgx.Tx, number int64) error {
				_, err := parley.Put(ctx, tx, latencyQueue, jobBody(number, padding))
				return err
			}, nil
		},
	}
}

// groupsSystem is a Consumer that receives from several groups at once.
func groupsSystem() latencySystem {
	s := consumerSystem()
	s.name, s.work = systemConsumerGroups, consume(consumerGroups)
	s.short = "the same, of a Consumer that receives from up to 16 groups in a transaction"
	return s
}

func prepareQueue(ctx context.Context, conn *pgx.Conn, c LatencyConfig) error {
	// Dialogs that are in use already: the first message of each has been sent and received.
	return new(stage{dialogs: map[string][]parley.UUID{}}).addQueue(ctx, conn, latencyQueue, c.Conversations)
}

// messageSender sends on the conversations in turn. The first 8 bytes of a body are the number.
func messageSender(ctx context.Context, conn *pgx.Conn, c LatencyConfig, _ int) (send, error) {
	rows, err := conn.Query(ctx,
		"select e.conversation_handle from parley.conversation_endpoints as e where e.service_name = $1", initiator(latencyQueue))
	if err != nil {
		return nil, fmt.Errorf("read the conversations: %w", err)
	}
	handles, err := pgx.CollectRows(rows, pgx.RowTo[parley.UUID])
	if err != nil {
		return nil, fmt.Errorf("read the conversations: %w", err)
	}
	body := randomBodies(1, c.Size)[0]
	return func(ctx context.Context, tx pgx.Tx, number int64) error {
		binary.BigEndian.PutUint64(body, uint64(number))
		return parley.Send(ctx, tx, handles[number%int64(len(handles))], messageType, body)
	}, nil
}

// consume gives the function that runs a Consumer that receives from so many groups at once.
func consume(groups int) func(ctx context.Context, d database, c LatencyConfig) (func() error, error) {
	return func(ctx context.Context, d database, c LatencyConfig) (func() error, error) {
		pool, err := d.pool(ctx, c.Readers+1)
		if err != nil {
			return nil, err
		}
		stop := running(ctx, (&parley.Consumer{
			Pool: pool, Queue: latencyQueue, Readers: c.Readers, Groups: groups,
			Logger:  slog.New(slog.DiscardHandler),
			Handler: beginWork,
		}).Run)
		return func() error {
			defer pool.Close()
			return stop(ctx)
		}, nil
	}
}

func beginWork(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
	for _, message := range messages {
		if _, err := tx.Exec(ctx, begunStatement, int64(binary.BigEndian.Uint64(message.MessageBody))); err != nil {
			return err
		}
	}
	return nil
}

// pool gives readers so many connections to a database.
func (d database) pool(ctx context.Context, size int) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(d.config.ConnString())
	if err != nil {
		return nil, fmt.Errorf("configure a pool: %w", err)
	}
	config.ConnConfig = d.config.Copy()
	config.MaxConns, config.MinConns = int32(size), int32(size)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open a pool: %w", err)
	}
	return pool, nil
}
