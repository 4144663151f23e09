package views_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A view of messages is a plain query: what is filtered is found by an index, and what is cut short is not read to its end.
func TestViewsOfMessagesReadNoMoreThanTheyShow(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec(`
		select parley.create_queue('others', kind => 'SIMPLE'), parley.keep_finished('others', '1 day');
		insert into parley._p_delayed_message (queue_id, due_at, priority, body)
			select q.queue_id, now() + n * interval '1 hour', 5, repeat('x', 1000)::bytea
			from parley._p_queue as q, generate_series(1, 10000) as n where q.lookup_name = 'others';
		insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body)
			select 1024 * n, parley._p_key_id(q.queue_id, null), now(), parley._p_lane(q.queue_id, l.priority), 14, repeat('x', 1000)::bytea
			from parley._p_queue as q, generate_series(1, 10000) as n, (values (0), (-1)) as l (priority) where q.lookup_name = 'others';
		insert into parley._p_set_aside_message (queue_id, position, priority, rollbacks)
			select q.queue_id, 1024 * n, 5, 3 from parley._p_queue as q, generate_series(1, 10000) as n where q.lookup_name = 'others';
		insert into parley._p_message_wait (queue_id, position, priority, attempts, losses, retry_at)
			select q.queue_id, 1024 * n, 5, 1, 0, now() + interval '1 day'
			from parley._p_queue as q, generate_series(1, 10000) as n where q.lookup_name = 'others';
		insert into parley._p_finished_message (queue_id, position, started_at, finished_at, expires_at)
			select q.queue_id, 1024 * n, now(), now(), now() + interval '1 day'
			from parley._p_queue as q, generate_series(1, 10000) as n where q.lookup_name = 'others';
		analyze`)
	for view, key := range map[string]string{
		"delayed_messages": "delayed_id", "set_aside_messages": "message_id", "failing_messages": "message_id", "finished_messages": "message_id",
	} {
		b.RequireFewReads(400, "select * from parley."+view+" where queue_name = 'others' and "+key+" = 5120")
		b.RequireFewReads(3500, "select * from parley."+view+" limit 100")
	}
	b.Exec("set enable_sort = off") // as a console does, whose lists are cut short
	for view, order := range map[string]string{
		"delayed_messages": "due_at, delayed_id", "set_aside_messages": "set_aside_at desc, queue_name, message_id", "finished_messages": "finished_at desc",
	} {
		b.RequireFewReads(1000, "select * from parley."+view+" order by "+order+" limit 100")
	}
}

// Conversations are in the order in which they were set aside, and what a list does not show of them is not read.
func TestViewsOfConversationsThatFailReadNoMoreThanTheyShow(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec(`
		select parley.create_queue('from'), parley.create_queue('to');
		select parley.create_service('from', 'from'), parley.create_service('to', 'to', array['DEFAULT']);
		select parley.begin_and_send('from', 'to', 'DEFAULT', n::text) from generate_series(1, 4000) as n;
		insert into parley._p_set_aside (endpoint_id, service_id, position, moved_position, rollbacks, set_aside_at, retry_at)
			select m.endpoint_id, e.service_id, m.position, 0, 5, clock_timestamp(), case when m.position % 2048 = 0 then now() + interval '1 hour' end
			from parley._p_message as m join parley._p_endpoint as e using (endpoint_id) order by m.position;
		analyze`)
	sqltest.Equal(b.Session, 2000, "select count(*)::integer from parley.poison_conversations")
	sqltest.Equal(b.Session, 2000, "select count(*)::integer from parley.failing_conversations")
	sqltest.Equal(b.Session, 2000, "select set_aside_conversations::integer from parley.service_queues where name = 'to'")
	b.Exec("set enable_sort = off")
	b.RequireFewReads(4000, "select * from parley.poison_conversations order by set_aside_since desc, conversation_handle limit 100")
	b.RequireFewReads(4000, "select * from parley.failing_conversations limit 100")
	for _, view := range []string{"poison_conversations", "failing_conversations"} {
		handle := sqltest.Value[string](b.Session, "select conversation_handle::text from parley."+view+" limit 1")
		b.RequireFewReads(400, "select * from parley."+view+" where conversation_handle = $1", handle)
	}
}
