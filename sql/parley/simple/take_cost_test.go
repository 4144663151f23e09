package simple_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// putNumbered puts so many messages that bear their numbers.
func putNumbered(s sqltest.Session, count int) {
	s.Helper()
	s.Exec("select parley.put_batch('jobs', array(select n::text from generate_series(1, $1::int) as n))", count)
}

// functionCalls gives how many functions a statement calls, those that it calls by others too.
func functionCalls(b *sqltest.Broker, statement string) int {
	b.Helper()
	tx := b.Begin()
	tx.Exec("set local track_functions = 'all'")
	const calls = "select coalesce(sum(calls), 0)::int from pg_stat_xact_user_functions where schemaname = 'parley'"
	before := sqltest.Value[int](tx, calls)
	tx.Exec(statement)
	after := sqltest.Value[int](tx, calls)
	tx.Rollback()
	return after - before
}

// The questions of a call are asked for each transaction that holds messages, never for each message that it holds.
func TestTakeDoesNotAskForEachMessageInOthersHands(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	for _, ask := range []string{
		"select parley.take('jobs', 10)",
		"select parley._p_take_by_priority(q, 10, null) from parley._p_queue as q where q.lookup_name = 'jobs'",
		"select parley._p_receivable(array[q.queue_id], array[10], 1000) from parley._p_queue as q where q.lookup_name = 'jobs'",
	} {
		var few, many int
		for held, calls := range map[int]*int{5: &few, 640: &many} {
			putNumbered(b.Session, held)
			holder := b.Begin()
			sqltest.Equal(holder, held, "select count(*) from parley.take('jobs', 1000)")
			*calls = functionCalls(b, ask)
			holder.Commit()
		}
		// One call in fifty goes another way, which is some calls longer.
		if many > few+20 {
			t.Errorf("%s calls %d functions where others hold 640 messages, %d where they hold 5", ask, many, few)
		}
	}
}

func TestWhatCameBackIsFoundBehindAnyNumberInOthersHands(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	const messages = 6000
	putNumbered(b.Session, messages)
	holder := b.Begin()
	sqltest.Equal(holder, messages, "select count(*) from parley.take('jobs', $1)", messages)
	b.Put("back")
	failed := b.Begin()
	failed.RequireTaken(1, "back")
	b.RequireTaken(1)
	failed.Rollback()
	b.RequireTaken(1, "back")
	holder.Rollback()
	b.RequireTaken(1, "1")
}
