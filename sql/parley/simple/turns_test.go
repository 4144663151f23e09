package simple_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

const takeLong = "select from parley.take('jobs', timeout => 600000)"

// sleeping gives how many sessions poll, and waiting how many wait for their turn.
const (
	sleeping = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'"
	waiting  = "select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'advisory'"
)

func TestOneOfTheWaitingSessionsWatchesTheQueueForAll(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	var waiters []*sqltest.Waiter
	for range 4 {
		waiters = append(waiters, b.Start(takeLong))
	}
	b.WaitUntil("select (" + waiting + ") = 3 and (" + sleeping + ") = 1")
	// Each gets one, whoever has the turn.
	b.Put("a", "b", "c", "d")
	for _, w := range waiters {
		w.RequireSuccess()
	}
	b.RequireTaken(10)
}

// The lock goes with the statement, and not with the session.
func TestCancelledWatcherGivesItsTurnAway(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	first := b.Waiting(takeLong)
	second := b.Blocked(takeLong)
	b.Exec("select pg_cancel_backend($1)", first.Backend)
	first.RequireCode("57014")
	b.WaitUntil("select exists (select from pg_stat_activity where pid = $1 and wait_event = 'PgSleep')", second.Backend)
	sqltest.Equal(first.Session, 0, "select count(*) from pg_locks where pid = pg_backend_pid() and locktype = 'advisory'")
	b.Put("a")
	second.RequireSuccess()
}

func TestMessageIsTakenThoughAnOutsiderHoldsTheTurn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	outsider := b.Begin()
	outsider.Exec("select pg_advisory_xact_lock(hashtextextended('parley turn', queue_id)) from parley._p_queue where lookup_name = 'jobs'")
	w := b.Blocked(takeLong)
	b.Put("a")
	w.RequireSuccess()
	outsider.Rollback()
}

func TestWaitingSessionTakesNoNumberOfATransaction(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	for _, w := range []*sqltest.Waiter{b.Waiting(takeLong), b.Blocked(takeLong)} {
		sqltest.Equal(b.Session, true, "select backend_xid is null from pg_stat_activity where pid = $1", w.Backend)
	}
}

// A message that is there and may not be taken makes the watcher poll ever more seldom.
func TestMessageBehindAnotherOfItsKeyMakesNoWatcherSpin(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.put_batch('jobs', array['first', 'second'], key => 'k')")
	holder := b.Begin()
	holder.RequireTaken(1, "first")
	calls := functionCalls(b, "select from parley.take('jobs', timeout => 1000)")
	// Without a pause between its scans it would make thousands.
	if calls > 400 {
		t.Errorf("a second of waiting took %d calls of functions", calls)
	}
	holder.Commit()
	b.RequireTaken(1, "second")
}

// Disabling, pauses and what is put aside are found by all who wait.
func TestWaitingSessionsNoticeThatTheirQueueIsDisabled(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	first, second := b.Waiting(takeLong), b.Blocked(takeLong)
	b.Exec("select parley.alter_queue('jobs', status => false)")
	first.RequireRefusal(9617)
	second.RequireRefusal(9617)
}
