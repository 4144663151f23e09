package simple_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// endBatches looks at all batches now.
func endBatches(b *sqltest.Broker) {
	b.Helper()
	b.Exec("update parley._p_batch set check_at = now()")
	b.Exec("select parley.fire_timers()")
}

func TestMessageIsPutWhenAllOfABatchAreDone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.create_queue('after', kind => 'SIMPLE')")
	owner := b.Role("batcher")
	b.Exec("select parley.grant('SEND', 'queue', q, $1) from unnest(array['jobs', 'after']) as q", owner)
	b.As(owner).Exec("select parley.put_group('jobs', array['a', 'b', 'c'], 'after', 'all done', keys => array['k', null, 'k'])")
	left := func(want string) {
		b.Helper()
		endBatches(b)
		sqltest.Equal(b.Session, want, "select coalesce(string_agg(concat_ws(' of ', left_messages, messages), ', '), 'none') from parley.batches")
	}
	left("3 of 3")
	tx := b.Begin()
	tx.RequireTaken(10, "a", "b", "c")
	left("3 of 3")
	tx.Rollback()
	b.RequireTaken(1, "a")
	left("2 of 3")
	// One waits for another attempt, is set aside, and is put back under another number: it is not done.
	id := sqltest.Value[int64](b.Session, "select message_id from parley.peek_messages('jobs') where parley.body_text(body) = 'b'")
	b.Exec("select parley.retry('jobs', $1, delay => '1 hour')", id)
	b.RequireTaken(10, "c")
	left("1 of 3")
	b.Exec("select parley.fail('jobs', $1)", id)
	left("1 of 3")
	b.Exec("select parley.retry_message('jobs', $1)", id)
	left("1 of 3")
	b.RequireTaken(10, "b")
	// The role that made it may not put any more, and then may again.
	b.Exec("select parley.revoke('SEND', 'queue', 'after', $1)", owner)
	left("0 of 3")
	sqltest.Equal(b.Session, true, "select fault like '%permission denied%' from parley.batches")
	b.Exec("select parley.grant('SEND', 'queue', 'after', $1)", owner)
	left("none")
	sqltest.Equal(b.Session, "all done", "select string_agg(parley.body_text(body), ',') from parley.take('after', 10)")
	// One without messages is done at once.
	b.Exec("select parley.put_group('jobs', '{}', 'after', 'nothing to do')")
	left("none")
	sqltest.Equal(b.Session, 1, "select count(*) from parley.take('after', 10)")
}

func TestWorkThatIsDoneIsKeptForATime(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Put("a", "b", "c")
	sqltest.Equal(b.Session, false, "select parley.done('jobs', message_id) from parley.take('jobs')")
	b.Exec("select parley.keep_finished('jobs', '1 hour')")
	tx := b.Begin()
	tx.Exec(`select parley.done('jobs', message_id, '{"pages": 3}') from parley.take('jobs')`)
	sqltest.Equal(b.Session, 0, "select count(*) from parley.finished_messages")
	tx.Commit()
	claim := sqltest.Value[string](b.Session, "select claim::text from parley.claim('jobs')")
	sqltest.Equal(b.Session, true, `select parley.complete('jobs', $1, result => '{"pages": 5}')`, claim)
	sqltest.Equal(b.Session, `{"pages": 3} t,{"pages": 5} t`, `
		select string_agg(concat_ws(' ', result, duration > '0'), ',' order by message_id) from parley.finished_messages`)
	sqltest.Equal(b.As(b.Role("nobody")), 0, "select count(*) from parley.finished_messages")
	b.Exec("update parley._p_finished_message set expires_at = now()")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.finished_messages")
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_finished_message")
	b.Refuses(8402, "select parley.keep_finished('jobs', '0')")
}
