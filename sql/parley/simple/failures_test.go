package simple_test

import (
	"strconv"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// An outage has every message of a queue fail: each failure costs what the first did.
func TestFailureOfAMessageCostsTheSameHoweverManyHaveFailed(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	putNumbered(b.Session, 700)
	calls := map[int]int{}
	for _, failed := range []int{5, 450} {
		b.Exec("select parley.fail('jobs', p.message_id, 'the far side is away') from parley.peek_messages('jobs', $1) as p", failed)
		b.Exec("analyze parley._p_message_failure")
		next := sqltest.Value[int64](b.Session, "select p.message_id from parley.peek_messages('jobs', 1) as p")
		calls[failed] = functionCalls(b, "select parley.fail('jobs', "+strconv.FormatInt(next, 10)+", 'the far side is away')")
	}
	if calls[450] > calls[5]+20 {
		t.Errorf("a failure calls %d functions behind 455 others, %d behind 5", calls[450], calls[5])
	}
}
