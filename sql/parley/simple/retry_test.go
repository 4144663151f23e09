package simple_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/sqltest"
)

// newRetrying gives a database whose queue jobs has a retry policy: waits of an hour, three failures, four losses.
func newRetrying(t *testing.T) *sqltest.Broker {
	t.Helper()
	b := sqltest.NewJobs(t)
	b.AwaitReportsForAnHour()
	b.Exec("select parley.set_retry_policy('jobs', first => '1 hour', longest => '1 day', factor => 3, jitter => 0, attempts => 3, losses => 4)")
	return b
}

// takeOne takes one message and gives its body, number and attempt.
func takeOne(s sqltest.Session, body string) (id int64, attempt int) {
	s.Helper()
	row := sqltest.Value[string](s, "select concat_ws(' ', coalesce(parley.body_text(body), ''), message_id, attempt) from parley.take('jobs')")
	var got string
	if _, err := fmt.Sscan(row, &got, &id, &attempt); err != nil {
		s.Fatalf("took %q: %v", row, err)
	}
	if got != body {
		s.Fatalf("took %q, want %q", got, body)
	}
	return id, attempt
}

// endWaits lets an hour and more pass.
func endWaits(b *sqltest.Broker) {
	b.Exec("update parley._p_message_wait set retry_at = retry_at - interval '2 days'")
	b.Exec("select setval('parley._p_next_due', 1)")
}

func TestFailedMessageWaitsByThePolicyInOneTransaction(t *testing.T) {
	t.Parallel()
	b := newRetrying(t)
	b.Put("bad", "good")
	tx := b.Begin()
	tx.Exec("savepoint work")
	id, attempt := takeOne(tx, "bad")
	tx.Exec("rollback to work")
	sqltest.Equal(tx, true, "select retry_at between clock_timestamp() + interval '59 minutes' and clock_timestamp() + interval '1 hour' and not is_set_aside from parley.retry('jobs', $1, 'refused', '08006')", id)
	tx.Commit()
	if attempt != 1 {
		t.Errorf("the first attempt is %d", attempt)
	}
	// Others go on, also when they are taken together.
	b.RequireTaken(10, "good")
	b.RequireTaken(10)
	sqltest.Equal(b.Session, "1 0 1", "select concat_ws(' ', retrying_messages, waiting_messages, (next_retry_at > now())::integer) from parley.simple_queues")
	sqltest.Equal(b.Session, "1 0 refused 08006 5", "select concat_ws(' ', attempts, losses, error, sqlstate, priority) from parley.failing_messages where retry_at > now()")
	endWaits(b)
	tx = b.Begin()
	if again, attempt := takeOne(tx, "bad"); again != id || attempt != 2 {
		t.Errorf("message %d, attempt %d; want %d, 2", again, attempt, id)
	}
	// A rollback of everything, and the report in a transaction of its own: three hours.
	tx.Rollback()
	sqltest.Equal(b.Session, true, "select parley.record_message_failure('jobs', $1, '08006', 'refused again')", id)
	sqltest.Equal(b.Session, true, "select retry_at between now() + interval '179 minutes' and now() + interval '3 hours' and attempts = 2 from parley.failing_messages")
	endWaits(b)
	tx = b.Begin()
	takeOne(tx, "bad")
	tx.Rollback()
	sqltest.Equal(b.Session, true, "select is_set_aside and retry_at is null from parley.retry('jobs', $1, 'for good')", id)
	sqltest.Equal(b.Session, "bad 3 5 for good", "select concat_ws(' ', parley.body_text(body), rollbacks, priority, error) from parley.set_aside_messages")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_message_wait")
	// A message that has been put back begins anew.
	b.Exec("select parley.retry_message('jobs', $1)", id)
	if _, attempt := takeOne(b.Session, "bad"); attempt != 1 {
		t.Errorf("attempt %d after it was put back", attempt)
	}
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_message")
	if found := b.Check("check_broker()"); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
}

// A worker that reports an attempt twice, or two of its parts that do, count one failure: in one transaction, and in two.
func TestAnAttemptThatIsReportedTwiceIsCountedOnce(t *testing.T) {
	t.Parallel()
	b := newRetrying(t)
	b.Put("bad")
	const counted = "select concat_ws(' ', attempts, losses, error) from parley.failing_messages"
	tx := b.Begin()
	tx.Exec("savepoint work")
	id, _ := takeOne(tx, "bad")
	tx.Exec("rollback to work")
	at := sqltest.Value[time.Time](tx, "select retry_at from parley.retry('jobs', $1, 'refused')", id)
	sqltest.Equal(tx, true, "select retry_at = $2::timestamptz and not is_set_aside from parley.retry('jobs', $1, 'refused again')", id, at)
	tx.Commit()
	sqltest.Equal(b.Session, "1 0 refused again", counted)
	sqltest.Equal(b.Session, true, "select parley.record_message_failure('jobs', $1, null, 'and again')", id)
	sqltest.Equal(b.Session, true, "select retry_at < clock_timestamp() + interval '1 minute' from parley.retry('jobs', $1, delay => '30 s')", id)
	sqltest.Equal(b.Session, "1 0 and again", counted)
	// The next attempt is counted, and a report for good holds.
	endWaits(b)
	tx = b.Begin()
	tx.Exec("savepoint work")
	if _, attempt := takeOne(tx, "bad"); attempt != 2 {
		t.Errorf("attempt %d, want 2", attempt)
	}
	tx.Exec("rollback to work")
	tx.Exec("select parley.retry('jobs', $1, 'refused')", id)
	tx.Commit()
	sqltest.Equal(b.Session, "2 0 refused", counted)
	sqltest.Equal(b.Session, true, "select parley.fail('jobs', $1, 'in vain')", id)
	sqltest.Equal(b.Session, "2 in vain", "select concat_ws(' ', rollbacks, error) from parley.set_aside_messages")
}

// A loss of which nobody said why stays one when a worker that claims the message later gives it back.
func TestAClaimThatIsGivenBackExplainsNoEarlierLoss(t *testing.T) {
	t.Parallel()
	b := newRetrying(t)
	b.Put("bad")
	claim := sqltest.Value[string](b.Session, "select claim::text from parley.claim('jobs')")
	b.Exec("update parley._p_message_claim set leased_until = clock_timestamp() - interval '1 second'")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.claim('jobs')")
	sqltest.Equal(b.Session, true, "select is_set_aside is null from parley.give_back('jobs', $1::uuid, 'late')", claim)
	for attempt := range 2 {
		endWaits(b)
		claim = sqltest.Value[string](b.Session, "select claim::text from parley.claim('jobs')")
		sqltest.Equal(b.Session, false, "select is_set_aside from parley.give_back('jobs', $1::uuid, 'refused')", claim)
		sqltest.Equal(b.Session, fmt.Sprintf("%d 1", attempt+1), "select concat_ws(' ', attempts, losses) from parley.failing_messages")
	}
}

func TestMessagesOfAKeyWaitBehindTheOneThatFailed(t *testing.T) {
	t.Parallel()
	b := newRetrying(t)
	b.PutKeyed("k:1", "k:2", "l:1")
	id := sqltest.Value[int64](b.Session, "select message_id from parley.peek_messages('jobs', 1)")
	sqltest.Equal(b.Session, true, "select retry_at is not null from parley.retry('jobs', $1)", id)
	b.RequireTaken(10, "l:1")
	b.PutKeyed("k:3")
	b.RequireTaken(10)
	endWaits(b)
	b.RequireTaken(10, "k:1")
	b.RequireTaken(10, "k:2", "k:3")
}

// A wait that is over ends the waiting of a TAKE, and only its own queue is scanned for it.
func TestTakeWaitsForTheEndOfAWait(t *testing.T) {
	t.Parallel()
	b := newRetrying(t)
	b.Exec("select parley.create_queue('others', kind => 'SIMPLE')")
	b.Put("later")
	id := sqltest.Value[int64](b.Session, "select message_id from parley.peek_messages('jobs')")
	retryAt := sqltest.Value[time.Time](b.Session, "select retry_at from parley.retry('jobs', $1, delay => '900 ms')", id)
	sqltest.Equal(b.Session, true, "select $1::timestamptz < clock_timestamp() + interval '1 second'", retryAt)
	sqltest.Equal(b.Session, "later", "select parley.body_text(body) from parley.take('jobs', timeout => 30000)")
	sqltest.Equal(b.Session, true, "select $1::timestamptz <= clock_timestamp()", retryAt)
	b.Put("overdue")
	id = sqltest.Value[int64](b.Session, "select message_id from parley.peek_messages('jobs')")
	b.Exec("select parley.retry('jobs', $1, delay => '0')", id)
	b.Exec("select parley.take('others')")
	sqltest.Equal(b.Session, true, "select pg_sequence_last_value('parley._p_next_due') > extract(epoch from clock_timestamp()) * 1000000")
	b.RequireTaken(1, "overdue")
}

func TestMessageIsFailedAndCancelledAtOnce(t *testing.T) {
	t.Parallel()
	b := newRetrying(t)
	b.Put("a", "b", "c")
	ids := sqltest.Values[int64](b.Session, "select message_id from parley.peek_messages('jobs')")
	tx := b.Begin()
	takeOne(tx, "a")
	for _, call := range []string{"parley.fail('jobs', $1)", "parley.cancel('jobs', $1)"} {
		sqltest.Equal(b.Session, false, "select "+call, ids[0])
	}
	sqltest.Equal(b.Session, true, "select retry_at is null and is_set_aside is null from parley.retry('jobs', $1)", ids[0])
	sqltest.Equal(b.Session, "2 1", "select concat_ws(' ', waiting_messages, taken_messages) from parley.simple_queues")
	tx.Rollback()
	sqltest.Equal(b.Session, true, "select parley.fail('jobs', $1, 'never')", ids[0])
	b.Exec("select parley.retry('jobs', $1)", ids[1])
	sqltest.Equal(b.Session, true, "select parley.cancel('jobs', $1) and parley.cancel('jobs', $2) and not parley.cancel('jobs', $2)", ids[1], ids[2])
	sqltest.Equal(b.Session, "0 1 0", "select concat_ws(' ', waiting_messages, set_aside_messages, retrying_messages) from parley.simple_queues")
	b.RequireTaken(1)
}

func TestSimpleQueueIsMadeWithItsPolicyWhereItIsNotThere(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(`
		select parley.create_queue('a', kind => 'SIMPLE'), parley.create_queue('b', kind => 'SIMPLE', poison_rollbacks => 2),
			parley.create_queue('c', kind => 'SIMPLE', retry => '{"first": "2s", "longest": "1h", "attempts": 7}'),
			parley.create_queue('d', kind => 'SIMPLE', retry => 'false'), parley.create_queue('e', retry => '{}')`)
	sqltest.Equal(b.Session, "a 1000 600000 20 60,c 2000 3600000 7 21,e 1000 600000 20 60", `
		select string_agg(concat_ws(' ', q.name, p.first_ms, p.longest_ms, p.attempts, p.losses), ',' order by q.name)
		from parley._p_retry_policy as p join parley._p_queue as q using (queue_id)`)
	sqltest.Equal(b.Session, true, "select parley.create_queue('a', if_not_exists => true) = (select queue_id from parley._p_queue where name = 'a')")
	b.Refuses(2714, "select parley.create_queue('a')")
	for _, wrong := range []string{`{"frist": "1s"}`, `{"first": "soon"}`, `{"first": "0s"}`, `[]`, `"no"`, `{"factor": 0.5}`, `{"attempts": 0}`, `{"jitter": 2}`} {
		b.Refuses(8402, "select parley.create_queue('f', retry => $1::jsonb)", wrong)
	}
	b.Refuses(8402, "select parley.set_retry_policy('a', attempts => null)")
	b.Exec("select parley.create_queue('g', poison_action => 'DISABLE_QUEUE')")
	b.Refuses(8402, "select parley.set_retry_policy('g')")
	sqltest.Equal(b.Session, true, "select parley.remove_retry_policy('a') and not parley.remove_retry_policy('a')")
}
