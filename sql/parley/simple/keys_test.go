package simple_test

import (
	"fmt"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// newBusyKeys gives a queue in which so many messages of the keys "a" and "b" stand first, and a session that has the first of each.
func newBusyKeys(t *testing.T, messages int) (b *sqltest.Broker, holder sqltest.Session) {
	t.Helper()
	b = sqltest.NewJobs(t)
	b.PutKeyed("a:first", "b:first")
	for _, key := range []string{"a", "b"} {
		b.Exec("select parley.put_batch('jobs', array(select $1 || n from generate_series(1, $2::int / 2) as n), key => $1)", key, messages)
	}
	holder = b.Begin()
	holder.RequireTaken(2, "a:first", "b:first")
	return b, holder
}

// However many wait behind the first of their key, the others are found without reading them.
func TestTakeGetsPastMessagesOfBusyKeys(t *testing.T) {
	t.Parallel()
	const messages = 20_000
	b, holder := newBusyKeys(t, messages)
	b.RequireTaken(1)
	b.PutKeyed("c:1", "c:2", "d:1")
	b.Put("x", "y")
	// The first without a key, as many as there are, then the first of each key.
	b.RequireTaken(10, "x", "y")
	b.RequireTaken(1, "c:1")
	b.RequireTaken(10, "c:2", "d:1")
	b.Exec("select parley.put_batch('jobs', array(select n::text from generate_series(1, 8) as n))")
	b.RequireFewReads(messages/10, "select from parley.take('jobs')")
	b.PutKeyed("c:3", "c:4", "d:2", "d:3")
	// Of keys alone it reads the next thousands first.
	b.RequireFewReads(3*messages, "select from parley.take('jobs')")
	holder.Commit()
	b.RequireTaken(1, "a1")
}

// A message that came back is found behind them, with a key or without.
func TestWhatCameBackIsFoundBehindMessagesOfBusyKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", "c"} {
		t.Run("key "+key, func(t *testing.T) {
			t.Parallel()
			b, holder := newBusyKeys(t, 10_000)
			b.Exec("select parley.put('jobs', 'back'::text, key => nullif($1, ''))", key)
			failed := b.Begin()
			failed.RequireTaken(1, "back")
			b.RequireTaken(1)
			failed.Rollback()
			b.RequireTaken(1, "back")
			b.RequireTaken(1)
			holder.Rollback()
		})
	}
}

// Messages that are set aside stand in the way of nobody, and those of a key in other priorities do.
func TestFirstOfAKeyFarBehindIsFirstOfAllPriorities(t *testing.T) {
	t.Parallel()
	b, holder := newBusyKeys(t, 10_000)
	b.Exec("select parley.put('jobs', 'first'::text, key => 'c', priority => 2)")
	b.PutKeyed("c:2")
	b.RequireTaken(1, "first")
	taker := b.Begin()
	taker.RequireTaken(1, "c:2")
	taker.Rollback()
	b.Exec("update parley._p_message set lane = parley._p_set_aside_lane(parley._p_owner_of_lane(lane)) where body = 'c:2'")
	b.PutKeyed("c:3")
	b.RequireTaken(1, "c:3")
	holder.Rollback()
}

// The numbers of keys are of their queue alone, whatever the key is.
func TestKeysOfAQueueHaveNumbersOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for _, queue := range []int{1, 2, 70_000, 2147483646} {
		without := fmt.Sprintf("parley._p_key_id(%d, null)", queue)
		sqltest.Equal(b.Session, true, fmt.Sprintf(`
			select bool_and(id < %[1]s and id > %[1]s - 2147483648) and bool_and(id < -4611686018427387903) and count(distinct id) > 990
			from (select parley._p_key_id(%[2]d, n::text) as id from generate_series(1, 1000) as n) as k`, without, queue))
		sqltest.Equal(b.Session, true, fmt.Sprintf("select %s > parley._p_key_id(%d, null) and %s & 2147483647 = 0", without, queue+1, without))
	}
}
