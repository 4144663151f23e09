package simple_test

import (
	"fmt"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// failOne takes one message, rolls back, and has a reader find nothing.
func failOne(b *sqltest.Broker, body string) (id int64) {
	b.Helper()
	tx := b.Begin()
	id, _ = takeOne(tx, body)
	tx.Rollback()
	b.RequireTaken(1)
	return id
}

// failuresOf gives how often each message that waits failed, with its error.
const failuresOf = "select coalesce(string_agg(concat_ws(' ', attempts, losses, error), ', ' order by message_id), 'none') from parley.failing_messages where retry_at > now()"

func TestWhatCameBackAloneAwaitsItsReport(t *testing.T) {
	t.Parallel()
	for name, report := range map[string]string{
		"retry":                  "select parley.retry('jobs', $1, 'refused')",
		"record_message_failure": "select parley.record_message_failure('jobs', $1, null, 'refused')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newRetrying(t)
			b.Put("bad")
			id := failOne(b, "bad")
			// No reader is told to come, and others go on.
			sqltest.Equal(b.Session, false, "select parley._p_is_worth_receiving(q) from parley._p_queue as q where q.lookup_name = 'jobs'")
			b.Put("good")
			b.RequireTaken(10, "good")
			b.Exec(report, id)
			sqltest.Equal(b.Session, "1 0 refused", failuresOf)
			// So it is after a wait, too.
			endWaits(b)
			failOne(b, "bad")
			b.Exec(report, id)
			sqltest.Equal(b.Session, "2 0 refused", failuresOf)
		})
	}
}

func TestWhatAwaitsItsReportIsSetAsideByIt(t *testing.T) {
	t.Parallel()
	b := newRetrying(t)
	b.Put("bad")
	id := failOne(b, "bad")
	sqltest.Equal(b.Session, true, "select parley.fail('jobs', $1, 'never')", id)
	sqltest.Equal(b.Session, "1 never", "select concat_ws(' ', rollbacks, error) from parley.set_aside_messages")
}

func TestMessagesBehindOneThatAwaitsItsReportWaitForItsKey(t *testing.T) {
	t.Parallel()
	b := newRetrying(t)
	b.PutKeyed("k:1", "k:2", "l:1")
	tx := b.Begin()
	tx.RequireTaken(1, "k:1")
	tx.Rollback()
	b.RequireTaken(10, "l:1")
	b.RequireTaken(10)
	b.EndAwaitedReports()
	b.RequireTaken(10, "k:1")
}

func TestWhatCameBackTogetherIsTakenAloneAtOnce(t *testing.T) {
	t.Parallel()
	b := newRetrying(t)
	b.Put("a", "b", "c")
	tx := b.Begin()
	tx.RequireTaken(10, "a", "b", "c")
	tx.Rollback()
	b.RequireTaken(10, "a")
	b.RequireTaken(10, "b")
	b.RequireTaken(10, "c")
}

func TestWhatATransactionGaveBackItselfItTakesAtOnce(t *testing.T) {
	t.Parallel()
	b := newRetrying(t)
	b.Put("bad")
	tx := b.Begin()
	for range 3 {
		tx.Exec("savepoint work")
		tx.RequireTaken(1, "bad")
		tx.Exec("rollback to work")
	}
	// To others it has come back.
	b.RequireTaken(1)
	tx.Exec("select parley.retry('jobs', message_id, 'refused') from parley.peek_messages('jobs')")
	tx.Commit()
	sqltest.Equal(b.Session, "1 0 refused", failuresOf)
}

// A worker that met something locked before has a number, and what a later transaction gives back is not its own.
func TestWorkerThatHasANumberAwaitsTheReportOfALaterTransaction(t *testing.T) {
	t.Parallel()
	b := newRetrying(t)
	b.Put("bad")
	reader := b.Begin()
	reader.Exec("set local parley.reader = on")
	reader.Exec("select pg_current_xact_id()")
	tx := b.Begin()
	takeOne(tx, "bad")
	tx.Rollback()
	reader.RequireTaken(1)
}

func TestQueueWithoutAPolicyAwaitsNoReport(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Put("bad")
	tx := b.Begin()
	tx.RequireTaken(1, "bad")
	tx.Rollback()
	b.RequireTaken(1, "bad")
}

// Of a worker that was killed nobody says why: its message comes once more, as a restart of the server may have been to blame.
func TestMessageThatComesBackWithoutAWordWaitsFromTheSecondTimeOn(t *testing.T) {
	t.Parallel()
	b := newRetrying(t)
	b.Put("bad")
	for range 2 {
		failOne(b, "bad")
		b.EndAwaitedReports()
	}
	// The reader that makes it wait takes nothing else, so that it commits.
	b.Put("good")
	b.RequireTaken(1)
	sqltest.Equal(b.Session, "0 2", failuresOf)
	b.RequireTaken(1, "good")
	endWaits(b)
	for losses := 3; losses <= 4; losses++ {
		tx := b.Begin()
		if _, attempt := takeOne(tx, "bad"); attempt != losses {
			t.Errorf("attempt %d, want %d", attempt, losses)
		}
		tx.Rollback()
		b.RequireTaken(1)
		b.EndAwaitedReports()
		b.RequireTaken(1)
		endWaits(b)
	}
	sqltest.Equal(b.Session, "4", "select string_agg(rollbacks::text, ' ') from parley.set_aside_messages")
}

func TestReportThatComesLateExplainsTheLoss(t *testing.T) {
	t.Parallel()
	b := newRetrying(t)
	b.Put("bad")
	id := failOne(b, "bad")
	b.EndAwaitedReports()
	failOne(b, "bad")
	b.EndAwaitedReports()
	b.RequireTaken(1)
	sqltest.Equal(b.Session, "0 2", failuresOf)
	sqltest.Equal(b.Session, true, "select retry_at is not null from parley.retry('jobs', $1, 'late')", id)
	sqltest.Equal(b.Session, "1 1 late", failuresOf)
	// Another report, as nobody has taken it since, is of the same attempt.
	b.Exec("select parley.retry('jobs', $1, 'again')", id)
	sqltest.Equal(b.Session, "1 1 again", failuresOf)
}

func TestReportAfterAnotherAttemptDoesNotExplainTheLossBefore(t *testing.T) {
	t.Parallel()
	b := newRetrying(t)
	b.Put("bad")
	id := failOne(b, "bad")
	b.EndAwaitedReports()
	failOne(b, "bad")
	b.EndAwaitedReports()
	b.RequireTaken(1)
	endWaits(b)
	failOne(b, "bad")
	b.Exec("select parley.retry('jobs', $1, 'of the third')", id)
	sqltest.Equal(b.Session, "1 2 of the third", failuresOf)
}

// Two failures are counted outside of transactions, of more nobody knows whether it is the first time: then a policy of an hour puts off nothing.
func TestWhatCannotBeCountedWaitsForAMoment(t *testing.T) {
	t.Parallel()
	b := newRetrying(t)
	for _, body := range []string{"a", "b"} {
		b.Put(body)
		failOne(b, body)
		b.EndAwaitedReports()
		b.Begin().RequireTaken(1, body)
	}
	b.Put("c")
	failOne(b, "c")
	b.EndAwaitedReports()
	b.RequireTaken(1)
	sqltest.Equal(b.Session, "t 1", "select concat_ws(' ', retry_at < clock_timestamp() + interval '1 minute', losses) from parley.failing_messages")
}

// A worker whose connection was cut may report before the server has rolled back.
func TestReportLooksAgainForWhatIsAboutToComeBack(t *testing.T) {
	t.Parallel()
	b := newRetrying(t)
	b.Put("bad")
	definition := sqltest.Value[string](b.Session, "select replace(pg_get_functiondef('parley._p_may_still_be_given_back()'::regprocedure), '300 ms', '1 hour')")
	b.Exec(definition)
	tx := b.Begin()
	id, _ := takeOne(tx, "bad")
	report := b.Waiting("select parley.retry('jobs', " + fmt.Sprint(id) + ", 'cut off')")
	tx.Rollback()
	report.RequireSuccess()
	sqltest.Equal(b.Session, "1 0 cut off", failuresOf)
}
