package bench

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/daemon/timers"
)

const systemActivation = "parley_activation"

// activationSystem is a procedure that the daemon's engine starts while messages wait.
func activationSystem() latencySystem {
	return latencySystem{
		name:       systemActivation,
		short:      "SEND, to the first statement over the message of an activation procedure that the daemon's engine runs",
		isOnBroker: true,
		prepare:    prepareActivation,
		work:       activate,
		sender:     messageSender,
	}
}

func prepareActivation(ctx context.Context, conn *pgx.Conn, c LatencyConfig) error {
	if err := prepareQueue(ctx, conn, c); err != nil {
		return err
	}
	_, err := conn.Exec(ctx, `
		select parley.alter_queue(
			$1, activation_procedure => 'bench.begin_work', max_queue_readers => $2, execute_as => 'OWNER', activation => true
		)`, latencyQueue, c.Readers)
	if err != nil {
		return fmt.Errorf("activate the queue: %w", err)
	}
	return nil
}

// activate runs the engine as the daemon does, in this process.
func activate(ctx context.Context, d database, _ LatencyConfig) (func() error, error) {
	pool, err := d.pool(ctx, engineConnections)
	if err != nil {
		return nil, err
	}
	leader, err := newLeader(pool)
	if err != nil {
		pool.Close()
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- leader.Run(ctx) }()
	return func() error {
		cancel()
		defer pool.Close()
		return <-done
	}, nil
}

// engineConnections are for the statements of the engine itself; its readers have sessions of their own.
const engineConnections = 4

// newLeader makes what the daemon runs for a database.
func newLeader(pool *pgxpool.Pool) (*daemon.Leader, error) {
	log := slog.New(slog.DiscardHandler)
	engine, err := activation.New(activation.Config{Pool: pool, Logger: log})
	if err != nil {
		return nil, err
	}
	return daemon.NewLeader(daemon.LeaderConfig{
		Pool: pool, Parts: []daemon.LedPart{timers.New(pool, log), engine}, Logger: log,
	})
}
