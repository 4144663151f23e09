package simple_test

import (
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestConcurrencyLimitHoldsForQueuesTogether(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.AwaitReportsForAnHour()
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
	// It awaits a report, and its place is free.
	sqltest.Equal(third, "y", takeMore)
	third.Commit()
	first.Commit()
	// A session that finds nothing holds nobody up.
	b.EndAwaitedReports()
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
	b.Exec("select parley.set_queue_limits('jobs', rate => 2, per => '1 hour')")
	const last = "select setval('parley._p_queue_' || queue_id || '_rate', $1) from parley._p_queue where name = 'jobs'"
	b.Exec(last, 1)
	b.RequireTaken(1, "b")
	b.RequireTaken(10, "c")
	b.RequireTaken(10)
	// So many microseconds since 1970 as two messages of just now leave.
	b.Exec("select parley.set_queue_limits('jobs', rate => 2, per => '500 ms')")
	b.Exec(last, time.Now().Add(500*time.Millisecond).UnixMicro())
	sqltest.Equal(b.Session, "d", "select parley.body_text(body) from parley.take('jobs', timeout => 30000)")
	b.Exec("select parley.set_queue_limits('jobs')")
	sqltest.Equal(b.Session, false, "select is_limited from parley._p_queue where name = 'jobs'")
	b.Refuses(8402, "select parley.set_queue_limits('jobs', concurrency => 0)")
	b.Refuses(8402, "select parley.set_queue_limits('jobs', rate => 1, per => '0')")
	b.Refuses(8402, "select parley.set_queue_limits('jobs', ageing => '-1 s')")
}

// A new rate has no debt of the one before; the same rate, set again, goes on counting.
func TestANewRateCountsAnew(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Put("a", "b", "c", "d", "e")
	b.Exec("select parley.set_queue_limits('jobs', rate => 1, per => '1 day')")
	b.RequireTaken(10, "a")
	b.Exec("select parley.set_queue_limits('jobs', rate => 1, per => '1 day')")
	b.RequireTaken(10)
	b.Exec("select parley.set_queue_limits('jobs', rate => 2, per => '1 hour')")
	b.RequireTaken(10, "b", "c")
	b.Exec("select parley.set_queue_limits('jobs')")
	b.Exec("select parley.set_queue_limits('jobs', rate => 2, per => '1 hour')")
	b.RequireTaken(10, "d", "e")
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

// Work that was begun while more was allowed counts until it ends, whichever places it has.
func TestWhatIsHeldCountsAfterTheConcurrencyWasLowered(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.set_queue_limits('jobs', concurrency => 3)")
	b.Put("a", "b", "c", "d", "e")
	first, second := b.Begin(), b.Begin()
	first.RequireTaken(1, "a")
	second.RequireTaken(1, "b")
	claim := sqltest.Value[string](b.Session, "select claim from parley.claim('jobs')")
	b.Exec("select parley.set_queue_limits('jobs', concurrency => 2)")
	const inUse = "select in_use from parley.queue_limits"
	sqltest.Equal(b.Session, 3, inUse)
	first.Commit()
	// Two go on, one of them in a place that is not allowed any more.
	b.RequireTaken(1)
	sqltest.Equal(b.Session, 0, "select count(*) from parley.claim('jobs')")
	second.Commit()
	third, fourth := b.Begin(), b.Begin()
	third.RequireTaken(1, "d")
	third.RequireTaken(1, "e")
	b.Put("f")
	fourth.RequireTaken(1)
	sqltest.Equal(b.Session, 2, inUse)
	sqltest.Equal(b.Session, true, "select parley.complete('jobs', $1)", claim)
	fourth.RequireTaken(1, "f")
	sqltest.Equal(b.Session, 2, inUse)
	third.Rollback()
	fourth.Commit()
	sqltest.Equal(b.Session, 0, inUse)
}

// Of many sessions that take at once while something is held from before no more than allowed get something.
func TestSessionsThatTakeAtOnceKeepALoweredConcurrency(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.set_queue_limits('jobs', concurrency => 6)")
	b.Exec("select parley.put('jobs', 'm') from generate_series(1, 126)")
	var held []string
	for range 6 {
		held = append(held, sqltest.Value[string](b.Session, "select claim from parley.claim('jobs')"))
	}
	b.Exec("select parley.set_queue_limits('jobs', concurrency => 3)")
	for _, claim := range held[:5] {
		sqltest.Equal(b.Session, true, "select parley.complete('jobs', $1)", claim)
	}
	var workers sync.WaitGroup
	for range 6 {
		s := b.Connection()
		workers.Go(func() {
			for sqltest.Value[bool](s, "select exists (select from parley.peek_messages('jobs', 2) offset 1)") {
				rows := sqltest.Values[string](s, "select claim::text from parley.claim('jobs')")
				if len(rows) == 0 {
					continue
				}
				if got := sqltest.Value[int](s, "select count(distinct claim) from parley.delivery_claims"); got > 3 {
					s.Errorf("%d claims are held", got)
				}
				if !sqltest.Value[bool](s, "select parley.complete('jobs', $1)", rows[0]) {
					s.Error("a claim was lost")
				}
			}
		})
	}
	workers.Wait()
}

// The lock of a place is that of the savepoint, whose number is not that of the transaction.
func TestATransactionThatTakesBehindSavepointsHasOnePlace(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.set_queue_limits('jobs', concurrency => 2)")
	b.Put("a", "b", "c", "d", "e")
	first, second := b.Begin(), b.Begin()
	first.RequireTaken(1, "a")
	takeBehind := func(savepoint, want string) {
		t.Helper()
		second.Exec("savepoint " + savepoint)
		second.RequireTaken(1, want)
		second.Exec("release savepoint " + savepoint)
	}
	takeBehind("one", "b")
	// Another place is free from now on, and stays so.
	first.Commit()
	takeBehind("two", "c")
	second.RequireTaken(1, "d")
	sqltest.Equal(b.Session, 1, "select in_use from parley.queue_limits")
	b.RequireTaken(1, "e")
	second.Commit()
	sqltest.Equal(b.Session, 0, "select in_use from parley.queue_limits")
}

// A limit that queues share is their owner's: a reader that holds messages of one of them holds up the readers of the others. So the right
// to alter one queue is not enough to name it, and a queue that gets another owner leaves it.
func TestALimitIsSharedByQueuesOfOneOwnerAlone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.create_queue('more', kind => 'SIMPLE')")
	b.Exec("select parley.set_queue_limits(q, concurrency => 1, shared => 'api') from unnest(array['jobs', 'more']) as q")
	helper, heir := b.Role("helper"), b.Role("heir")
	b.Exec("select parley.grant(p, 'queue', 'more', $1) from unnest(array['ALTER', 'RECEIVE']) as p", helper)
	helps := b.As(helper)
	helps.Refuses(15151, "select parley.set_queue_limits('more', concurrency => 1000, shared => 'api')")
	helps.Refuses(15151, "select parley.set_queue_limits('more', concurrency => 1000, shared => 'another')")
	helps.Exec("select parley.set_queue_limits('more', concurrency => 2)")
	b.Exec("select parley.set_queue_limits('more', concurrency => 1, shared => 'api')")
	b.Put("a")
	b.Exec("select parley.put('more', 'x'::text)")
	tx := b.Begin()
	tx.RequireTaken(1, "a")
	const takeMore = "select coalesce(string_agg(parley.body_text(body), ' '), 'nothing') from parley.take('more')"
	sqltest.Equal(b.Session, "nothing", takeMore)
	b.Exec("select parley.alter_authorization('queue', 'more', $1)", heir)
	inherits := b.As(heir)
	sqltest.Equal(inherits, "api 0", "select concat_ws(' ', shared, in_use) from parley.queue_limits")
	sqltest.Equal(inherits, "x", takeMore)
	tx.Commit()
}
