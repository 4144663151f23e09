package sql_test

import "testing"

func TestASimpleQueueThatHoldsMessagesIsDroppedOnlyByForce(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.put("waits")
	b.exec("select parley.put('jobs', 'later'::text, deliver_at => now() + interval '1 hour')")
	for _, force := range []string{"", ", force => false", ", force => null"} {
		b.refuses(3716, "select parley.drop_queue('jobs'"+force+")")
	}
	equal(b.session, 2, "select parley.drop_queue('jobs', force => true)")
	b.exec("select parley.create_queue('jobs', kind => 'SIMPLE')")
	equal(b.session, 0, "select parley.drop_queue('jobs')")
}

func TestMessagesOfASimpleQueueAreSeenWithoutBeingTaken(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.put("a")
	b.putKeyed("k:1")
	b.exec("select parley.put('jobs', 'later'::text, deliver_at => now() + interval '1 hour')")
	b.exec("select parley.put('jobs', 'first'::text, priority => 10)")
	equal(b.session, "first a k:1", "select string_agg(parley.body_text(message_body), ' ') from parley.peek('jobs')")
	equal(b.session, "first a", "select string_agg(parley.body_text(message_body), ' ') from parley.peek('jobs', top => 2)")
	const all = "select string_agg(parley.body_text(message_body), ' ' order by priority desc, queuing_order)"
	equal(b.session, "first a k:1", all+" from parley.queue_contents('jobs')")
	equal(b.session, "first a k:1", all+" from parley_queue.jobs")
	equal(b.session, true, `select bool_and(num_nulls(conversation_handle, conversation_group_id, service_name, message_sequence_number) = 4
		and status = 1 and message_enqueue_time is not null) from parley_queue.jobs`)
	equal(b.session, "a - k:1 k first -", `select string_agg(parley.body_text(message_body) || ' ' || coalesce(message_key, '-'), ' ')
		from parley.passing_messages('jobs', 0)`)
	equal(b.session, "first", `select parley.body_text(message_body) from parley.passing_messages('jobs',
		(select max(queuing_order) from parley.passing_messages('jobs', 0)))`)
	taker := b.role("taker")
	b.as(taker).refuses(229, "select parley.peek('jobs')")
	b.as(taker).refuses(229, "select * from parley_queue.jobs")
}
