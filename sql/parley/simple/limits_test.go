package simple_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestConcurrencyLimitHoldsForQueuesTogether(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.create_queue('more', kind => 'SIMPLE')")
	b.Exec("select parley.set_queue_limits(q, concurrency => 2, shared => 'api') from unnest(array['jobs', 'more']) as q")
	b.Put("a", "b", "c", "d")
	b.Exec("select parley.put_batch('more', array['x', 'y'])")
	takeMore := "select coalesce(string_agg(parley.body_text(body), ' '), 'nothing') from parley.take('more')"
	first, second, third := b.Begin(), b.Begin(), b.Begin()
	first.RequireTaken(1, "a")
	// A transaction that takes again has its place already.
	first.RequireTaken(1, "b")
	sqltest.Equal(second, "x", takeMore)
	third.RequireTaken(1)
	sqltest.Equal(third, "nothing", takeMore)
	second.Rollback()
	sqltest.Equal(third, "x", takeMore)
	third.Commit()
	first.Commit()
	// A session that finds nothing holds nobody up.
	idle := b.Begin()
	b.Exec("select * from parley.take('more', 10)")
	sqltest.Equal(idle, "nothing", takeMore)
	a, c := b.Begin(), b.Begin()
	a.RequireTaken(1, "c")
	c.RequireTaken(1, "d")
}

func TestRateOfAQueueIsHeld(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.set_queue_limits('jobs', rate => 3, per => '1 hour')")
	b.Put("a", "b", "c", "d")
	tx := b.Begin()
	tx.RequireTaken(2, "a", "b")
	// A message that is rolled back counts: it was tried.
	tx.Rollback()
	b.RequireTaken(10, "a")
	b.RequireTaken(10)
	b.Exec("select parley.set_queue_limits('jobs', rate => 2, per => '500 ms')")
	b.Exec("select setval('parley._p_queue_' || queue_id || '_rate', 1) from parley._p_queue where name = 'jobs'")
	b.RequireTaken(1, "b")
	b.RequireTaken(10, "c")
	sqltest.Equal(b.Session, "d", "select parley.body_text(body) from parley.take('jobs', timeout => 30000)")
	b.Exec("select parley.set_queue_limits('jobs')")
	sqltest.Equal(b.Session, false, "select is_limited from parley._p_queue where name = 'jobs'")
	b.Refuses(8402, "select parley.set_queue_limits('jobs', concurrency => 0)")
	b.Refuses(8402, "select parley.set_queue_limits('jobs', rate => 1, per => '0')")
	b.Refuses(8402, "select parley.set_queue_limits('jobs', ageing => '-1 s')")
}

func TestMessagesThatWaitForLongComeBeforeHigherPriorities(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.set_queue_limits('jobs', ageing => '1 hour')")
	b.Put("old", "older")
	b.Exec("select parley.put('jobs', 'high'::text, priority => 7)")
	b.RequireTaken(1, "high")
	b.Exec("update parley._p_message set enqueued_at = now() - interval '3 hours'")
	b.Exec("select parley.put('jobs', 'high'::text, priority => 7)")
	b.RequireTaken(2, "old", "older")
	b.RequireTaken(1, "high")
}
