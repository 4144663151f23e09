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
