package sql_test

import "testing"

// putNumbered puts so many messages that bear their numbers.
func (s session) putNumbered(count int) {
	s.Helper()
	s.exec("select parley.put_batch('jobs', array(select n::text from generate_series(1, $1::int) as n))", count)
}

// functionCalls gives how many functions a statement calls, those that it calls by others too.
func (b *broker) functionCalls(statement string) int {
	b.Helper()
	tx := b.begin()
	tx.exec("set local track_functions = 'all'")
	const calls = "select coalesce(sum(calls), 0)::int from pg_stat_xact_user_functions where schemaname = 'parley'"
	before := value[int](tx, calls)
	tx.exec(statement)
	after := value[int](tx, calls)
	tx.rollback()
	return after - before
}

// What a call asks is asked for each transaction that holds messages, never for each message that it holds.
func TestTakeDoesNotAskForEachMessageInOthersHands(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	for _, ask := range []string{
		"select parley.take('jobs', 10)",
		"select parley._p_take_by_priority(q, 10, null) from parley._p_queue as q where q.lookup_name = 'jobs'",
		"select parley._p_receivable(array[q.queue_id], array[10], 1000) from parley._p_queue as q where q.lookup_name = 'jobs'",
	} {
		var few, many int
		for held, calls := range map[int]*int{5: &few, 640: &many} {
			b.putNumbered(held)
			holder := b.begin()
			equal(holder, held, "select count(*) from parley.take('jobs', 1000)")
			*calls = b.functionCalls(ask)
			holder.commit()
		}
		// One call in twenty goes another way, which is some calls longer.
		if many > few+20 {
			t.Errorf("%s calls %d functions where others hold 640 messages, %d where they hold 5", ask, many, few)
		}
	}
}

func TestWhatCameBackIsFoundBehindAnyNumberInOthersHands(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.putNumbered(2500)
	holder := b.begin()
	equal(holder, 2500, "select count(*) from parley.take('jobs', 2500)")
	b.put("back")
	failed := b.begin()
	failed.requireTaken(1, "back")
	b.requireTaken(1)
	failed.rollback()
	b.requireTaken(1, "back")
	holder.rollback()
	b.requireTaken(1, "1")
}
