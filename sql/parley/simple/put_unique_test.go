package simple_test

import (
	"sync"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestMessageIsThereOnceAtATime(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	const put = "select p.is_duplicate from parley.put_unique('jobs', 'a', 'daily') as p"
	sqltest.Equal(b.Session, false, put)
	sqltest.Equal(b.Session, true, put)
	sqltest.Equal(b.Session, false, "select p.is_duplicate from parley.put_unique('jobs', 'b', 'other') as p")
	// In the hands of a reader it is still there, and after a rollback again.
	tx := b.Begin()
	tx.RequireTaken(1, "a")
	sqltest.Equal(b.Session, true, put)
	tx.Rollback()
	sqltest.Equal(b.Session, true, put)
	b.RequireTaken(1, "a")
	// While it waits for another attempt, too; once it is set aside nobody works on it.
	sqltest.Equal(b.Session, false, put)
	b.RequireTaken(1, "b")
	id := sqltest.Value[int64](b.Session, "select message_id from parley.peek_messages('jobs')")
	b.Exec("select parley.retry('jobs', $1, delay => '1 hour')", id)
	sqltest.Equal(b.Session, true, put)
	sqltest.Equal(b.Session, true, "select parley.fail('jobs', $1)", id)
	sqltest.Equal(b.Session, false, put)
	b.RequireTaken(1, "a")

	// One that is not due yet, before and after.
	const later = "select concat_ws(' ', p.is_duplicate, p.delayed_id is not null) from parley.put_unique('jobs', 'c', 'later', deliver_at => now() + interval '1 hour') as p"
	sqltest.Equal(b.Session, "f t", later)
	sqltest.Equal(b.Session, "t t", later)
	b.Exec("update parley._p_delayed_message set due_at = now()")
	b.Exec("select setval('parley._p_next_due', 1)")
	tx = b.Begin()
	tx.RequireTaken(1, "c")
	tx.Commit()
	sqltest.Equal(b.Session, "f t", later)
	b.Exec("select parley.put_unique('jobs', 'x', n::text) from generate_series(1, 50) as n")
	b.Exec("select parley.take('jobs', 100)")
	b.Exec("select parley.put_unique('jobs', 'x', 'y')")
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, "later y", "select string_agg(unique_key, ' ' order by unique_key) from parley._p_unique_message")
}

// A role that puts with a unique key, and leaves its transaction open, holds up those who use the same key alone: its transaction removes
// no key of others, though their messages are gone.
func TestAUniqueKeyHoldsUpNoOtherKey(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.put_unique('jobs', 'a', n::text) from generate_series(1, 30) as n")
	b.Exec("select parley.take('jobs', 20)")
	tx, other := b.Begin(), b.Connection()
	sqltest.Equal(tx, false, "select p.is_duplicate from parley.put_unique('jobs', 'a', 'of an open transaction') as p")
	other.Exec("set lock_timeout = '1s'")
	sqltest.Equal(other, 20, "select count(*) from generate_series(1, 30) as n cross join lateral parley.put_unique('jobs', 'a', n::text) as p where not p.is_duplicate")
	tx.Commit()
	// The daemon removes what is gone, and waits for none that is in use.
	b.Exec("select parley.take('jobs', 100)")
	tx = b.Begin()
	sqltest.Equal(tx, false, "select p.is_duplicate from parley.put_unique('jobs', 'a', '7') as p")
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, "7", "select string_agg(unique_key, ' ') from parley._p_unique_message")
	tx.Commit()
	sqltest.Equal(b.Session, true, "select p.is_duplicate from parley.put_unique('jobs', 'a', '7') as p")
}

func TestOfTwoSessionsWithOneUniqueKeyOnePuts(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			s := b.Unhurried()
			for range 10 {
				s.Exec("select parley.put_unique('jobs', 'a', 'k')")
			}
		})
	}
	all.Wait()
	b.RequireTaken(100, "a")
}
