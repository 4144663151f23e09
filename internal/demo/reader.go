package demo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// terminated is the SQLSTATE that a session gets for its farewell (admin_shutdown).
const terminated = "57P01"

// readers are the sessions that run the receive procedure, and what they have in common.
type readers struct {
	db *database
	// attacked is set before a reader is killed; a reader that dies without it is a failure.
	attacked atomic.Bool
	killed   atomic.Int64
	// done is set when there is nothing left to come; readers then leave when they next find nothing.
	done atomic.Bool
}

// run is one reader. When it is killed another takes its place.
func (r *readers) run(ctx context.Context) error {
	for {
		replaced, err := r.session(ctx)
		if err != nil || !replaced {
			return err
		}
		r.killed.Add(1)
	}
}

// session calls the receive procedure until there is nothing left, or it is killed on purpose.
func (r *readers) session(ctx context.Context) (killed bool, err error) {
	conn, err := r.db.connect(ctx)
	if err != nil {
		return false, err
	}
	defer closeConn(ctx, conn)
	for {
		last := r.done.Load()
		_, err := conn.Exec(ctx, "call receive_lab_test()")
		var pgErr *pgconn.PgError
		switch {
		case errors.As(err, &pgErr) && pgErr.Code == terminated && r.attacked.CompareAndSwap(true, false):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("receive: %w", err)
		case last || r.done.Load():
			return false, nil
		}
	}
}

// killPoll is how often the killer looks for a victim.
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
			return 0, fmt.Errorf("look for a reader in mid-transaction: %w", err)
		}
		err := tx.QueryRow(ctx, `
			select a.pid
			from pg_stat_activity as a
			where pg_backend_pid() = any (pg_blocking_pids(a.pid)) and a.backend_xid is not null and a.query like 'call receive_lab_test%'
			limit 1`).Scan(&victim)
		switch {
		case err == nil:
			return victim, nil
		case !errors.Is(err, pgx.ErrNoRows):
			return 0, fmt.Errorf("look for a reader in mid-transaction: %w", err)
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-poll.C:
		}
	}
}
