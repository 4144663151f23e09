package bench

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const systemRiver = "river"

// riverConnections are what River needs besides those of its workers: to listen, to fetch, to complete, to lead.
const riverConnections = 4

// riverSystem is the job queue that others use for such work. Its fetch cooldown, 100 ms by default, is set to the least it takes.
func riverSystem() latencySystem {
	return latencySystem{
		name:    systemRiver,
		short:   "the same through River: InsertTx, to the first statement of a worker woken by LISTEN/NOTIFY",
		prepare: prepareRiver,
		work:    workRiver,
		sender:  jobSender,
	}
}

// job is a message as River carries it.
type job struct {
	Number  int64  `json:"number"`
	Padding string `json:"padding"`
}

func (job) Kind() string { return "latency" }

type worker struct {
	river.WorkerDefaults[job]
	pool *pgxpool.Pool
}

func (w *worker) Work(ctx context.Context, j *river.Job[job]) error {
	_, err := w.pool.Exec(ctx, begunStatement, j.Args.Number)
	return err
}

func prepareRiver(ctx context.Context, conn *pgx.Conn, _ LatencyConfig) error {
	pool, err := database{config: conn.Config()}.pool(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("prepare River: %w", err)
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return fmt.Errorf("install River: %w", err)
	}
	return nil
}

func riverConfig() *river.Config {
	return &river.Config{FetchCooldown: river.FetchCooldownMin, FetchPollInterval: time.Second, Logger: slog.New(slog.DiscardHandler)}
}

func jobSender(_ context.Context, _ *pgx.Conn, c LatencyConfig, _ int) (send, error) {
	// The pool of a client that only inserts in transactions of others stays unused.
	client, err := river.NewClient(riverpgxv5.New(nil), riverConfig())
	if err != nil {
		return nil, fmt.Errorf("make a client of River: %w", err)
	}
	padding := strings.Repeat("x", c.Size-leastBody)
	return func(ctx context.Context, tx pgx.Tx, number int64) error {
		_, err := client.InsertTx(ctx, tx, job{Number: number, Padding: padding}, nil)
		return err
	}, nil
}

func workRiver(ctx context.Context, d database, c LatencyConfig) (func() error, error) {
	pool, err := d.pool(ctx, c.Readers+riverConnections)
	if err != nil {
		return nil, err
	}
	config := riverConfig()
	config.Workers = river.NewWorkers()
	river.AddWorker(config.Workers, &worker{pool: pool})
	config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: c.Readers}}
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	if err == nil {
		err = client.Start(ctx)
	}
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("start River: %w", err)
	}
	return func() error {
		defer pool.Close()
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), workTimeout)
		defer cancel()
		return client.Stop(stopping)
	}, nil
}
