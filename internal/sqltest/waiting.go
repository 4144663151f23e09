package sqltest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/parleytest"
)

// WaitUntilWaiting waits until the statement with a text in it waits for a lock; should it end instead, the test fails.
func (b *Broker) WaitUntilWaiting(text string, done <-chan error) {
	b.Helper()
	parleytest.Until(b, text+" waits for a lock", func() bool {
		select {
		case err := <-done:
			b.Fatalf("%s did not wait: %v", text, err)
		default:
		}
		return Value[bool](b.Session, `
			select exists (
				select from pg_stat_activity
				where datname = current_database() and pid <> pg_backend_pid() and wait_event_type = 'Lock' and query like '%' || $1 || '%'
			)`, text)
	})
}

// NewWaits gives a test a queue of each kind, "jobs" and "Answering".
func NewWaits(t *testing.T) *Broker {
	t.Helper()
	b := NewJobs(t)
	// So that a wait finds the time of each scan for timers and delayed messages gone by, as after a second without a daemon.
	b.Exec("select setval('parley._p_next_alarm', 1), setval('parley._p_next_due', 1)")
	return b
}

// Waiter is a statement under way in a session of its own.
type Waiter struct {
	Session
	Backend int
	Done    chan error
	Ended   chan struct{}
}

// Waiting starts a statement and returns when it sleeps, or waits for its turn to watch a queue.
func (b *Broker) Waiting(statement string, arguments ...any) *Waiter {
	b.Helper()
	w := b.Start(statement, arguments...)
	b.WaitUntil("select exists (select from pg_stat_activity where pid = $1 and wait_event in ('PgSleep', 'advisory'))", w.Backend)
	return w
}

// Blocked starts a statement and returns when it waits for a lock.
func (b *Broker) Blocked(statement string, arguments ...any) *Waiter {
	b.Helper()
	w := b.Start(statement, arguments...)
	b.WaitUntil("select exists (select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock')", w.Backend)
	return w
}

// PauseBefore has whoever calls a private function wait in front of a part of it, until the session that it gives ends.
func (b *Broker) PauseBefore(function, part string) (gate Session) {
	b.Helper()
	definition := Value[string](b.Session,
		"select pg_get_functiondef(p.oid) from pg_proc as p where p.pronamespace = 'parley'::regnamespace and p.proname = $1", function)
	if strings.Count(definition, part) != 1 {
		b.Fatalf("%q does not stand in %s once: does it read otherwise now?", part, function)
	}
	b.Exec(strings.Replace(definition, part, "perform pg_catalog.pg_advisory_xact_lock(230); "+part, 1))
	gate = b.Begin()
	gate.Exec("select pg_advisory_xact_lock(230)")
	return gate
}

// Start starts a statement in a session of its own.
func (b *Broker) Start(statement string, arguments ...any) *Waiter {
	b.Helper()
	return b.StartIn(b.Connection(), statement, arguments...)
}

// StartIn starts a statement in a session that has begun something before.
func (b *Broker) StartIn(s Session, statement string, arguments ...any) *Waiter {
	b.Helper()
	w := &Waiter{Session: s, Done: make(chan error, 1), Ended: make(chan struct{})}
	w.Backend = Value[int](w.Session, "select pg_backend_pid()")
	ctx, cancel := context.WithCancel(b.Context())
	// Before the connection closes, which must not be in use then.
	b.Cleanup(func() { cancel(); <-w.Ended })
	go func() {
		defer close(w.Ended)
		_, err := w.DB.Exec(ctx, statement, arguments...)
		w.Done <- err
	}()
	return w
}

// RequireRefusal waits for the end of the statement.
func (w *Waiter) RequireRefusal(number int) {
	w.Helper()
	var refusal *pgconn.PgError
	if err := parleytest.Receive(w, w.Done, "the end of the statement"); !errors.As(err, &refusal) || refusal.Code != SQLState(number) {
		w.Errorf("the statement ended with %v, want error %d", err, number)
	}
}

// RequireSuccess waits for the end of the statement.
func (w *Waiter) RequireSuccess() {
	w.Helper()
	if err := parleytest.Receive(w, w.Done, "the end of the statement"); err != nil {
		w.Errorf("the statement ended with %s", Describe(err))
	}
}

// RequireCode waits for the end of the statement.
func (w *Waiter) RequireCode(sqlstate string) {
	w.Helper()
	var refusal *pgconn.PgError
	if err := parleytest.Receive(w, w.Done, "the end of the statement"); !errors.As(err, &refusal) || refusal.Code != sqlstate {
		w.Errorf("the statement ended with %v, want SQLSTATE %s", err, sqlstate)
	}
}

// AwaitReportsForAnHour has readers await the report of what came back for as long as a test may take; EndAwaitedReports ends that.
func (s Session) AwaitReportsForAnHour() {
	s.Helper()
	s.Exec("create or replace function parley._p_report_milliseconds() returns bigint language sql immutable set search_path = pg_catalog, pg_temp as 'select 3600000::bigint'")
}

// EndAwaitedReports lets the time pass for which readers await the report of what came back.
func (s Session) EndAwaitedReports() {
	s.Helper()
	s.Exec(`
		select setval(p.sequence, ((p.value >> 31) << 31) | (((extract(epoch from clock_timestamp()) * 1000)::bigint - 1) & 2147483647))
		from generate_series(0, 63) as n
		cross join lateral (select ('parley._p_report_' || n)::regclass as sequence) as s
		cross join lateral (select s.sequence, pg_sequence_last_value(s.sequence) as value) as p
		where p.value > 0`)
}
