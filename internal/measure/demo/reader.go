package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/daemon/timers"
)

// terminated is the SQLSTATE that a session gets for its farewell (admin_shutdown).
const terminated = "57P01"

// readers are the sessions that the queue monitor starts while messages wait: they run the receive procedure. No other part starts any. The
// type is the observer of the engine that starts them.
type readers struct {
	db *database
	// fail ends the run.
	fail func(error)
	// attacked is set before a reader is killed; a reader that dies without it is a failure.
	attacked        atomic.Bool
	started, killed atomic.Int64
	// done is set when there is nothing left to come, and the readers should leave.
	done atomic.Bool
}

// engineConnections are for the statements of the engine itself; readers have sessions of their own.
const engineConnections = 4

// run is the daemon's part, played in this process: it watches the queues until ctx ends.
func (r *readers) run(ctx context.Context, readersMax int) error {
	config, err := pgxpool.ParseConfig(r.db.config.ConnString())
	if err != nil {
		return fmt.Errorf("configure the engine: %w", err)
	}
	config.ConnConfig = r.db.config.Copy()
	config.MaxConns = engineConnections
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connect the engine: %w", err)
	}
	defer pool.Close()
	log := slog.New(slog.DiscardHandler)
	engine, err := activation.New(activation.Config{
		Pool: pool, SessionsMax: readersMax, Observer: r, Logger: log,
	})
	if err != nil {
		return err
	}
	leader, err := daemon.NewLeader(daemon.LeaderConfig{
		Pool: pool, Name: "parley demo", Parts: []daemon.LedPart{timers.New(pool, log), engine}, Logger: log,
	})
	if err != nil {
		return err
	}
	return leader.Run(ctx)
}

func (r *readers) ReaderStarted(activation.Queue) { r.started.Add(1) }

func (r *readers) ReaderEnded(_ activation.Queue, err error, _ time.Duration) {
	var pgErr *pgconn.PgError
	switch {
	case err == nil || r.done.Load():
	case errors.As(err, &pgErr) && pgErr.Code == terminated && r.attacked.CompareAndSwap(true, false):
		r.killed.Add(1)
	default:
		r.fail(fmt.Errorf("receive: %w", err))
	}
}

func (r *readers) TaskLimitReached(activation.Queue) {}

// killPoll is how often the killer polls for a victim.
const killPoll = 5 * time.Millisecond

// killOne kills a reader in the middle of its transaction and returns its process id.
//
// It locks the table that readers write last. A reader that waits for it has received messages and inserted them, and
// has not committed; that one is killed. The others wait a few milliseconds.
func (r *readers) killOne(ctx context.Context) (int32, error) {
	conn, err := r.db.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer closeConn(ctx, conn)
	tx, err := conn.Begin(ctx)
	if err != nil {
		return 0, fmt.Errorf("kill a reader: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, "lock table receive_log in share row exclusive mode"); err != nil {
		return 0, fmt.Errorf("hold the readers before their commit: %w", err)
	}
	victim, err := awaitVictim(ctx, tx)
	if err != nil {
		return 0, err
	}
	r.attacked.Store(true)
	var gone bool
	if err := tx.QueryRow(ctx, "select pg_terminate_backend($1, 10000)", victim).Scan(&gone); err != nil {
		return 0, fmt.Errorf("kill reader %d: %w", victim, err)
	}
	if !gone {
		return 0, fmt.Errorf("reader %d did not end when it was killed", victim)
	}
	return victim, nil
}

// awaitVictim waits until a reader has written (it has a transaction id) and is held by our lock.
func awaitVictim(ctx context.Context, tx pgx.Tx) (victim int32, err error) {
	poll := time.NewTicker(killPoll)
	defer poll.Stop()
	for {
		// Without it the whole transaction sees the sessions as they were at first.
		if _, err := tx.Exec(ctx, "select pg_stat_clear_snapshot()"); err != nil {
			return 0, fmt.Errorf("find a reader in mid-transaction: %w", err)
		}
		err := tx.QueryRow(ctx, `
			select a.pid
			from pg_stat_activity as a
			where pg_backend_pid() = any (pg_blocking_pids(a.pid)) and a.backend_xid is not null and a.query like 'call %receive_lab_test()'
			limit 1`).Scan(&victim)
		switch {
		case err == nil:
			return victim, nil
		case !errors.Is(err, pgx.ErrNoRows):
			return 0, fmt.Errorf("find a reader in mid-transaction: %w", err)
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-poll.C:
		}
	}
}
