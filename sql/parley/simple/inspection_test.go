package simple_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestASimpleQueueThatHoldsMessagesIsDroppedOnlyByForce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Put("waits")
	b.Exec("select parley.put('jobs', 'later'::text, deliver_at => now() + interval '1 hour')")
	for _, force := range []string{"", ", force => false", ", force => null"} {
		b.Refuses(3716, "select parley.drop_queue('jobs'"+force+")")
	}
	sqltest.Equal(b.Session, 2, "select parley.drop_queue('jobs', force => true)")
	b.Exec("select parley.create_queue('jobs', kind => 'SIMPLE')")
	sqltest.Equal(b.Session, 0, "select parley.drop_queue('jobs')")
}

func TestMessagesOfASimpleQueueAreSeenWithoutBeingTaken(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Put("a")
	b.PutKeyed("k:1")
	b.Exec("select parley.put('jobs', 'later'::text, deliver_at => now() + interval '1 hour')")
	b.Exec("select parley.put('jobs', 'first'::text, priority => 10)")
	sqltest.Equal(b.Session, "first a k:1", "select string_agg(parley.body_text(message_body), ' ') from parley.peek('jobs')")
	sqltest.Equal(b.Session, "first a", "select string_agg(parley.body_text(message_body), ' ') from parley.peek('jobs', top => 2)")
	const all = "select string_agg(parley.body_text(message_body), ' ' order by priority desc, queuing_order)"
	sqltest.Equal(b.Session, "first a k:1", all+" from parley.queue_contents('jobs')")
	sqltest.Equal(b.Session, "first a k:1", all+" from parley_queue.jobs")
	sqltest.Equal(b.Session, true, `select bool_and(num_nulls(conversation_handle, conversation_group_id, service_name, message_sequence_number) = 4
		and status = 1 and message_enqueue_time is not null) from parley_queue.jobs`)
	sqltest.Equal(b.Session, "a - k:1 k first -", `select string_agg(parley.body_text(message_body) || ' ' || coalesce(message_key, '-'), ' ')
		from parley.passing_messages('jobs', 0)`)
	sqltest.Equal(b.Session, "first", `select parley.body_text(message_body) from parley.passing_messages('jobs',
		(select max(queuing_order) from parley.passing_messages('jobs', 0)))`)
	taker := b.Role("taker")
	b.As(taker).Refuses(229, "select parley.peek('jobs')")
	b.As(taker).Refuses(229, "select * from parley_queue.jobs")
}

func TestPagesOfASimpleQueueGoOnBehindAMessage(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Put("a", "b", "c")
	b.Exec("select parley.put('jobs', 'first', priority => 10), parley.put('jobs', 'last', priority => 1), parley.put('jobs', 'second', priority => 10)")
	const page = `
		select coalesce(string_agg(parley.body_text(body), ' '), '-')
		from parley.peek_messages('jobs', 2, after_priority => $1, after_message_id => $2)`
	place := func(body string) (priority int16, id int64) {
		return sqltest.Value[int16](b.Session, "select priority from parley.peek_messages('jobs') where parley.body_text(body) = $1", body),
			sqltest.Value[int64](b.Session, "select message_id from parley.peek_messages('jobs') where parley.body_text(body) = $1", body)
	}
	after := func(body, want string) {
		t.Helper()
		priority, id := place(body)
		sqltest.Equal(b.Session, want, page, priority, id)
	}
	sqltest.Equal(b.Session, "first second", page, nil, nil)
	after("second", "a b")
	after("first", "second a")
	after("c", "last")
	after("last", "-")
	priority, id := place("b")
	sqltest.Equal(b.Session, true, "select parley.cancel('jobs', $1)", id)
	sqltest.Equal(b.Session, "c last", page, priority, id)
}

func TestAPageOfASimpleQueueCostsTheSameHoweverMuchStandsInFrontOfIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.put_batch('jobs', array_agg(n::text)) from generate_series(1, 20000) as n")
	b.Exec("analyze parley._p_message")
	b.RequireFewReads(60, `
		select count(*) from parley.peek_messages('jobs', 100, after_priority => 5, after_message_id => 1024 * 19000)`)
}
