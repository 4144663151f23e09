package sql_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// deliver shows messages as a reader of a web address does, and gives their bodies and numbers.
func (s session) deliver(top int) (bodies []string, ids []int64) {
	s.Helper()
	for _, row := range values[string](s, `
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

func (s session) requireDelivered(top int, want ...string) []int64 {
	s.Helper()
	bodies, ids := s.deliver(top)
	if !slices.Equal(bodies, want) {
		s.Errorf("to deliver are %q, want %q", bodies, want)
	}
	return ids
}

// newDeliveredJobs gives a test a simple queue with a web address, which is never called.
func newDeliveredJobs(t *testing.T, settings string) *broker {
	t.Helper()
	b := newJobs(t)
	b.exec("select parley.create_webhook_activation('jobs', 'https://example.com/in', secret => 'whsec_c2l4dGVlbiBieXRlcyBhcmUgb25lIGtleQ=='" +
		settings + ")")
	return b
}

func TestReportedFailureOfAMessageIsShownAsLongAsItIsThere(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.putKeyed("k:1", "k:2")
	id := value[int64](b.session, "select message_id from parley.peek_messages('jobs', 1)")
	equal(b.session, true, "select parley.record_message_failure('jobs', $1, '23514', 'no such picture')", id)
	equal(b.session, "jobs k 5 23514 no such picture", `
		select concat_ws(' ', queue_name, key, priority, sqlstate, error, failures) from parley.failing_messages`)
	for range 3 {
		tx := b.begin()
		tx.requireTaken(1, "k:1")
		tx.rollback()
	}
	b.requireTaken(1, "k:2")
	equal(b.session, 0, "select count(*) from parley.failing_messages")
	equal(b.session, "23514 no such picture 3", "select concat_ws(' ', sqlstate, error, rollbacks) from parley.set_aside_messages")
	equal(b.session, false, "select parley.record_message_failure('jobs', $1, null, 'gone')", id+1024)
	f := b.requireFinding(runtime, "messages-set-aside")
	if !strings.Contains(f.Cause, "no such picture") {
		t.Errorf("the cause is %q", f.Cause)
	}
	b.exec(f.Cure)
	b.requireNoFinding(runtime, "messages-set-aside")
	b.requireTaken(1, "k:1")
	b.put("next")
	next := value[int64](b.session, "select message_id from parley.peek_messages('jobs', 1)")
	equal(b.session, true, "select parley.record_message_failure('jobs', $1, 'x', null)", next)
	equal(b.session, 1, "select count(*) from parley._p_message_failure")
	b.refuses(208, "select parley.record_message_failure('none', $1, null, 'x')", next)
	b.refuses(8402, "select parley.record_message_failure('Answering', $1, null, 'x')", next)
}

func TestMessagesAreDeliveredByOneReaderAtATime(t *testing.T) {
	t.Parallel()
	b := newDeliveredJobs(t, "")
	b.put("a", "b", "c")
	b.putKeyed("x:1", "x:2", "y:1")
	first, second, third, fourth := b.begin(), b.begin(), b.begin(), b.begin()
	ids := first.requireDelivered(2, "a", "b")
	second.requireDelivered(5, "c")
	third.requireDelivered(1, "x:1")
	fourth.requireDelivered(5, "y:1")
	b.requireDelivered(5)
	b.requireTaken(5)
	third.rollback()
	fourth.rollback()
	b.requireDelivered(5, "x:1", "x:2")
	equal(first, 2, "select parley.finish_message_delivery('jobs', $1)", ids)
	first.commit()
	second.rollback()
	b.requireDelivered(5, "c")
	equal(b.session, 4, "select count(*) from parley.peek_messages('jobs')")
	// Those of a key that stand in another priority are in front all the same.
	b.exec("select parley.put('jobs', 'x:3'::text, key => 'x', priority => 9)")
	b.requireDelivered(5, "c")
	b.exec("select parley.pause_readers('jobs')")
	b.requireDelivered(5)
}

func TestRefusedMessageWaitsAndIsSetAside(t *testing.T) {
	t.Parallel()
	b := newDeliveredJobs(t, ", max_attempts => 2, first_retry_ms => 3600000, longest_retry_ms => 3600000")
	b.putKeyed("x:1", "x:2")
	b.put("a")
	tx := b.begin()
	ids := tx.requireDelivered(1, "x:1")
	tx.rollback()
	const refuse = "select concat_ws(' ', attempts, is_set_aside) from parley.fail_message_delivery('jobs', $1, 'answered 500', answer => 'no')"
	equal(b.session, "1 f", refuse, ids)
	equal(b.session, true, "select parley.seconds_to_next_message_delivery('jobs') between 3000 and 3600")
	equal(b.session, "x 38000 answered 500 no 1 1", `
		select concat_ws(' ', key, sqlstate, error, answer, failures, attempts) from parley.failing_messages`)
	b.requireFinding(runtime, "reader-failing")
	b.requireDelivered(5, "a")
	equal(b.session, "1 f", `
		select concat_ws(' ', attempts, is_set_aside) from parley.fail_message_delivery('jobs', $1, 'not there', is_attempt => false)`, ids)
	equal(b.session, "2 t", refuse, ids)
	equal(b.session, "x:1 2 answered 500", "select concat_ws(' ', parley.body_text(body), rollbacks, error) from parley.set_aside_messages")
	equal(b.session, true, "select parley.seconds_to_next_message_delivery('jobs') is null")
	b.requireDelivered(5, "x:2")
	b.exec("select parley.retry_message('jobs', $1)", ids[0])
	b.requireNoFinding(runtime, "reader-failing")
	b.requireDelivered(5, "x:2", "x:1")
}

// Of several that were refused together nobody knows which was bad: nothing is counted, and each comes alone.
func TestRefusedBatchComesApart(t *testing.T) {
	t.Parallel()
	b := newDeliveredJobs(t, ", max_attempts => 1")
	b.putKeyed("x:1", "x:2", "x:3")
	b.put("a")
	tx := b.begin()
	ids := tx.requireDelivered(2, "x:1", "x:2")
	tx.rollback()
	equal(b.session, "0 f", `
		select concat_ws(' ', attempts, is_set_aside) from parley.fail_message_delivery('jobs', $1, 'answered 410', is_final => true)`, ids)
	// Named twice is once, and null the default.
	equal(b.session, "0 f", `
		select concat_ws(' ', attempts, is_set_aside) from parley.fail_message_delivery('jobs', $1, 'again', is_attempt => null)`, append(ids, ids...))
	for _, want := range []string{"x:1", "x:2"} {
		equal(b.session, 1, "select parley.finish_message_delivery('jobs', $1)", b.requireDelivered(5, want))
	}
	b.requireDelivered(5, "x:3")
	equal(b.session, 0, "select count(*) from parley._p_message_failure")
}

func TestPutCarriesATrace(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	b.exec("select parley.put_traced('jobs', 'a', $1 || ' s=1')", parent)
	b.exec("select parley.put_traced('jobs', 'b', 'malformed', key => 'k')")
	b.exec("select parley.put_batch_traced('jobs', array['c'::bytea, 'd'], $1, key => 'k')", parent)
	b.exec("select parley.put_traced('jobs', 'e', $1, deliver_at => clock_timestamp() + interval '1 millisecond')", parent)
	b.exec("select pg_sleep(0.01), parley.fire_timers()")
	var got []string
	for range 5 {
		got = append(got, values[string](b.session, "select concat_ws(' ', parley.body_text(body), trace_context) from parley.take('jobs', 10)")...)
	}
	if want := []string{"a " + parent + " s=1", "b", "c " + parent, "d " + parent, "e " + parent}; !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("taken are %q", got)
	}
}
