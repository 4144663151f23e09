package work_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A token too many is dropped when it comes: a lane has one turn among the others, however often it was repaired.
func TestATokenTooManyIsDropped(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 9)
	for range 3 {
		sqltest.Equal(b.Session, 1, "select parley_store.repair_lanes(10, '0 seconds')")
	}
	const tokens = "select count(*)::int from parley.peek_messages('parley_store_mail')"
	sqltest.Equal(b.Session, 4, tokens)
	claimed := 0
	for range 8 {
		claimed += len(claimNext(b.Session, 1, 1))
	}
	if claimed == 0 {
		t.Error("nothing was claimed")
	}
	sqltest.Equal(b.Session, 1, tokens)
}

// A lane that rests until its next attempt is not overdue before that, and one that was visited a moment ago is not either.
func TestALaneThatRestsIsNotRepaired(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 1)
	for _, c := range []struct {
		visited, next string
		repaired      int
	}{
		{"now() - interval '1 hour'", "now() + interval '1 hour'", 0},
		{"now()", "now() - interval '1 hour'", 0},
		{"now() - interval '1 hour'", "null", 1},
		{"now() - interval '61 seconds'", "now() - interval '61 seconds'", 1},
		{"now() - interval '50 seconds'", "now() - interval '61 seconds'", 0},
	} {
		tx := b.Begin()
		tx.Exec("update parley_store._p_lane_state set is_scheduled = true, visited_at = " + c.visited + ", next_attempt_at = " + c.next)
		sqltest.Equal(tx, c.repaired, "select parley_store.repair_lanes()")
		tx.Rollback()
	}
}

// Of leases that ran out as many are taken back as the caller says, the oldest first, and none that is to be left for later.
func TestLeasesThatRanOutAreTakenBackOldestFirst(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ back, left string }{
		{"take_back_leases('mail', 1)", "a c"},
		{"take_back_leases('mail', 2)", "a"},
		{"take_back_leases('mail', 1, (select array_agg(lease_id) from parley_store._p_lease join parley_store._p_lane using (lane_id) where lane = 'b'))", "a b"},
		{"expire_leases(1)", "a c"},
		{"expire_leases(2)", "a"},
		{"expire_leases(3)", ""},
	} {
		t.Run(c.back, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewStore(t)
			for lane, age := range map[string]int{"a": 1, "b": 3, "c": 2} {
				b.PutWork(lane, age, age)
				b.RequireClaimed(b.Claim(lane, 1), []int{age})
			}
			b.Exec(`update parley_store._p_lease set until = now() - f.subject * interval '1 second'
				from parley_store._p_in_flight as f where f.lease_id = _p_lease.lease_id`)
			b.Exec("select parley_store." + c.back)
			sqltest.Equal(b.Session, c.left, `select coalesce(string_agg(l.lane, ' ' order by l.lane), '')
				from parley_store._p_lease as e join parley_store._p_lane as l using (lane_id)`)
		})
	}
}
