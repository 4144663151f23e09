package sql_test

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/parleytest"
)

// waiter is a statement under way in a session of its own.
type waiter struct {
	session
	backend int
	done    chan error
	ended   chan struct{}
}

// waiting starts a statement and returns when it sleeps.
func (b *broker) waiting(statement string, arguments ...any) *waiter {
	b.Helper()
	w := b.start(statement, arguments...)
	b.waitUntil("select exists (select from pg_stat_activity where pid = $1 and wait_event = 'PgSleep')", w.backend)
	return w
}

// blocked starts a statement and returns when it waits for a lock.
func (b *broker) blocked(statement string, arguments ...any) *waiter {
	b.Helper()
	w := b.start(statement, arguments...)
	b.waitUntil("select exists (select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock')", w.backend)
	return w
}

func (b *broker) start(statement string, arguments ...any) *waiter {
	b.Helper()
	return b.startIn(b.connection(), statement, arguments...)
}

// startIn starts a statement in a session that has begun something before.
func (b *broker) startIn(s session, statement string, arguments ...any) *waiter {
	b.Helper()
	w := &waiter{session: s, done: make(chan error, 1), ended: make(chan struct{})}
	w.backend = value[int](w.session, "select pg_backend_pid()")
	ctx, cancel := context.WithCancel(b.Context())
	// Before the connection closes, which must not be in use then.
	b.Cleanup(func() { cancel(); <-w.ended })
	go func() {
		defer close(w.ended)
		_, err := w.db.Exec(ctx, statement, arguments...)
		w.done <- err
	}()
	return w
}

// requireRefusal waits for the end of the statement.
func (w *waiter) requireRefusal(number int) {
	w.Helper()
	var refusal *pgconn.PgError
	if err := parleytest.Receive(w, w.done, "the end of the statement"); !errors.As(err, &refusal) || refusal.Code != sqlState(number) {
		w.Errorf("the statement ended with %v, want error %d", err, number)
	}
}

func (w *waiter) requireSuccess() {
	w.Helper()
	if err := parleytest.Receive(w, w.done, "the end of the statement"); err != nil {
		w.Errorf("the statement ended with %s", describe(err))
	}
}

// requireCode waits for the end of the statement.
func (w *waiter) requireCode(sqlstate string) {
	w.Helper()
	var refusal *pgconn.PgError
	if err := parleytest.Receive(w, w.done, "the end of the statement"); !errors.As(err, &refusal) || refusal.Code != sqlstate {
		w.Errorf("the statement ended with %v, want SQLSTATE %s", err, sqlstate)
	}
}
