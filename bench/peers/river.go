package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/parley-broker/parley/internal/measure/bench"
)

// riverConnections are the connections that River needs besides those of its workers: to listen, to fetch, to complete, to lead.
const riverConnections = 4

// riverPeer is the job queue for Go that others use for such work. Its fetch cooldown, 100 ms by default, is set to the least it takes.
func riverPeer() bench.Peer {
	return bench.Peer{
		Name:        "river",
		Short:       "the same through River: InsertTx, to the first statement of a worker woken by LISTEN/NOTIFY",
		Version:     ofModule("github.com/riverqueue/river"),
		Promise:     "no conversations and no order of them; it promises more of a job: retries, schedules, unique jobs",
		Connections: riverConnections,
		Prepare:     installRiver,
		Count: countBy(`
			select count(*), count(*) filter (where j.state not in ('completed', 'cancelled', 'discarded')) from river_job as j`),
		Inserter: insertThroughRiver,
		Work:     workThroughRiver,
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
	work bench.WorkJob
}

func (w *worker) Work(ctx context.Context, j *river.Job[job]) error {
	return w.work(ctx, j.Args.Number)
}

func installRiver(ctx context.Context, conn *pgx.Conn) error {
	config, err := pgxpool.ParseConfig(conn.Config().ConnString())
	if err != nil {
		return fmt.Errorf("configure a pool: %w", err)
	}
	config.ConnConfig, config.MaxConns = conn.Config(), 1
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("open a pool: %w", err)
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

func insertThroughRiver() (bench.InsertJob, error) {
	// The pool of a client that only inserts in transactions of others stays unused.
	client, err := river.NewClient(riverpgxv5.New(nil), riverConfig())
	if err != nil {
		return nil, fmt.Errorf("make a client of River: %w", err)
	}
	return func(ctx context.Context, tx pgx.Tx, number int64, padding string) error {
		_, err := client.InsertTx(ctx, tx, job{Number: number, Padding: padding}, nil)
		return err
	}, nil
}

func workThroughRiver(ctx context.Context, pool *pgxpool.Pool, workers int, work bench.WorkJob) (func(context.Context) error, error) {
	config := riverConfig()
	config.Workers = river.NewWorkers()
	river.AddWorker(config.Workers, &worker{work: work})
	config.Queues = map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}}
	client, err := river.NewClient(riverpgxv5.New(pool), config)
	if err != nil {
		return nil, fmt.Errorf("make a client of River: %w", err)
	}
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	return client.Stop, nil
}
