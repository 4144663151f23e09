package activation_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// deliver shows messages as a reader of a web address does, and gives their bodies and numbers.
func deliver(s sqltest.Session, top int) (bodies []string, ids []int64) {
	s.Helper()
	for _, row := range sqltest.Values[string](s, `
		select message_id || ' ' || parley.body_text(body) from parley.next_message_delivery('jobs', $1) order by message_id`, top) {
		number, body, _ := strings.Cut(row, " ")
		id, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			s.Fatal(err)
		}
		bodies, ids = append(bodies, body), append(ids, id)
	}
	return bodies, ids
}

func requireDelivered(s sqltest.Session, top int, want ...string) []int64 {
	s.Helper()
	bodies, ids := deliver(s, top)
	if !slices.Equal(bodies, want) {
		s.Errorf("to deliver are %q, want %q", bodies, want)
	}
	return ids
}

// newDeliveredJobs gives a test a simple queue with a web address, which is never called.
func newDeliveredJobs(t *testing.T, settings string) *sqltest.Broker {
	t.Helper()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.create_webhook_activation('jobs', 'https://example.com/in', secret => 'whsec_c2l4dGVlbiBieXRlcyBhcmUgb25lIGtleQ=='" +
		settings + ")")
	return b
}

func TestReportedFailureOfAMessageIsShownAsLongAsItIsThere(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.PutKeyed("k:1", "k:2")
	id := sqltest.Value[int64](b.Session, "select message_id from parley.peek_messages('jobs', 1)")
	sqltest.Equal(b.Session, true, "select parley.record_message_failure('jobs', $1, '23514', 'no such picture')", id)
	sqltest.Equal(b.Session, "jobs k 5 23514 no such picture", `
		select concat_ws(' ', queue_name, key, priority, sqlstate, error, failures) from parley.failing_messages`)
	for range 3 {
		tx := b.Begin()
		tx.RequireTaken(1, "k:1")
		tx.Rollback()
	}
	b.RequireTaken(1, "k:2")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.failing_messages")
	sqltest.Equal(b.Session, "23514 no such picture 3", "select concat_ws(' ', sqlstate, error, rollbacks) from parley.set_aside_messages")
	sqltest.Equal(b.Session, false, "select parley.record_message_failure('jobs', $1, null, 'gone')", id+1024)
	f := b.RequireFinding(sqltest.Runtime, "messages-set-aside")
	if !strings.Contains(f.Cause, "no such picture") {
		t.Errorf("the cause is %q", f.Cause)
	}
	b.Exec(f.Cure)
	b.RequireNoFinding(sqltest.Runtime, "messages-set-aside")
	b.RequireTaken(1, "k:1")
	b.Put("next")
	next := sqltest.Value[int64](b.Session, "select message_id from parley.peek_messages('jobs', 1)")
	sqltest.Equal(b.Session, true, "select parley.record_message_failure('jobs', $1, 'x', null)", next)
	sqltest.Equal(b.Session, 1, "select count(*) from parley._p_message_failure")
	b.Refuses(208, "select parley.record_message_failure('none', $1, null, 'x')", next)
	b.Refuses(8402, "select parley.record_message_failure('Answering', $1, null, 'x')", next)
}

func TestMessagesAreDeliveredByOneReaderAtATime(t *testing.T) {
	t.Parallel()
	b := newDeliveredJobs(t, "")
	b.Put("a", "b", "c")
	b.PutKeyed("x:1", "x:2", "y:1")
	first, second, third, fourth := b.Begin(), b.Begin(), b.Begin(), b.Begin()
	ids := requireDelivered(first, 2, "a", "b")
	requireDelivered(second, 5, "c")
	requireDelivered(third, 1, "x:1")
	requireDelivered(fourth, 5, "y:1")
	requireDelivered(b.Session, 5)
	b.RequireTaken(5)
	third.Rollback()
	fourth.Rollback()
	requireDelivered(b.Session, 5, "x:1", "x:2")
	sqltest.Equal(first, 2, "select parley.finish_message_delivery('jobs', $1)", ids)
	first.Commit()
	second.Rollback()
	requireDelivered(b.Session, 5, "c")
	sqltest.Equal(b.Session, 4, "select count(*) from parley.peek_messages('jobs')")
	// Those of a key that stand in another priority are in front all the same.
	b.Exec("select parley.put('jobs', 'x:3'::text, key => 'x', priority => 9)")
	requireDelivered(b.Session, 5, "c")
	b.Exec("select parley.pause_readers('jobs')")
	requireDelivered(b.Session, 5)
}

func TestRefusedMessageWaitsAndIsSetAside(t *testing.T) {
	t.Parallel()
	b := newDeliveredJobs(t, ", max_attempts => 2, first_retry_ms => 3600000, longest_retry_ms => 3600000")
	b.PutKeyed("x:1", "x:2")
	b.Put("a")
	tx := b.Begin()
	ids := requireDelivered(tx, 1, "x:1")
	tx.Rollback()
	const refuse = "select concat_ws(' ', attempts, is_set_aside) from parley.fail_message_delivery('jobs', $1, 'answered 500', answer => 'no')"
	sqltest.Equal(b.Session, "1 f", refuse, ids)
	sqltest.Equal(b.Session, true, "select parley.seconds_to_next_message_delivery('jobs') between 3000 and 3600")
	sqltest.Equal(b.Session, "x 38000 answered 500 no 1 1", `
		select concat_ws(' ', key, sqlstate, error, answer, failures, attempts) from parley.failing_messages`)
	b.RequireFinding(sqltest.Runtime, "reader-failing")
	requireDelivered(b.Session, 5, "a")
	sqltest.Equal(b.Session, "1 f", `
		select concat_ws(' ', attempts, is_set_aside) from parley.fail_message_delivery('jobs', $1, 'not there', is_attempt => false)`, ids)
	sqltest.Equal(b.Session, "2 t", refuse, ids)
	sqltest.Equal(b.Session, "x:1 2 answered 500", "select concat_ws(' ', parley.body_text(body), rollbacks, error) from parley.set_aside_messages")
	sqltest.Equal(b.Session, true, "select parley.seconds_to_next_message_delivery('jobs') is null")
	requireDelivered(b.Session, 5, "x:2")
	b.Exec("select parley.retry_message('jobs', $1)", ids[0])
	b.RequireNoFinding(sqltest.Runtime, "reader-failing")
	requireDelivered(b.Session, 5, "x:2", "x:1")
}

// Of several that were refused together nobody knows which was bad: nothing is counted, and each comes alone.
func TestRefusedBatchComesApart(t *testing.T) {
	t.Parallel()
	b := newDeliveredJobs(t, ", max_attempts => 1")
	b.PutKeyed("x:1", "x:2", "x:3")
	b.Put("a")
	tx := b.Begin()
	ids := requireDelivered(tx, 2, "x:1", "x:2")
	tx.Rollback()
	sqltest.Equal(b.Session, "0 f", `
		select concat_ws(' ', attempts, is_set_aside) from parley.fail_message_delivery('jobs', $1, 'answered 410', is_final => true)`, ids)
	// Named twice is once, and null the default.
	sqltest.Equal(b.Session, "0 f", `
		select concat_ws(' ', attempts, is_set_aside) from parley.fail_message_delivery('jobs', $1, 'again', is_attempt => null)`, append(ids, ids...))
	for _, want := range []string{"x:1", "x:2"} {
		sqltest.Equal(b.Session, 1, "select parley.finish_message_delivery('jobs', $1)", requireDelivered(b.Session, 5, want))
	}
	requireDelivered(b.Session, 5, "x:3")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_message_failure")
}

func TestPutCarriesATrace(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	b.Exec("select parley.put('jobs', 'a', trace_context => $1 || ' s=1')", parent)
	b.Exec("select parley.put('jobs', 'b', trace_context => 'malformed', key => 'k')")
	b.Exec("select parley.put_batch_binary('jobs', array['c'::bytea, 'd'], trace_context => $1, key => 'k')", parent)
	b.Exec("select parley.put('jobs', 'e', trace_context => $1, deliver_at => clock_timestamp() + interval '1 millisecond')", parent)
	b.Exec("select pg_sleep(0.01), parley.fire_timers()")
	var got []string
	for range 5 {
		got = append(got, sqltest.Values[string](b.Session, "select concat_ws(' ', parley.body_text(body), trace_context) from parley.take('jobs', 10)")...)
	}
	if want := []string{"a " + parent + " s=1", "b", "c " + parent, "d " + parent, "e " + parent}; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("taken are %q", got)
	}
}
