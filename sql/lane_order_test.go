package sql_test

import "testing"

// Daemons that record at once, and who takes back leases meanwhile, lock lanes in one order, that of their numbers, whatever their names are
// and whatever they did under which lease: none of them waits for another one that waits for it.
func TestLanesAreLockedInOneOrder(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	const first, second = "DNS/internet/z.example", "DNS/internet/a.example"
	b.delivery(first, "", "x@z.example")
	b.delivery(second, "", "x@a.example")
	claim := func() (leases, items map[string]int64) {
		leases, items = map[string]int64{}, map[string]int64{}
		for _, lane := range []string{first, second} {
			var lease, item int64
			if err := b.db.QueryRow(t.Context(), "select lease_id, item_id from parley_store.claim_lane('mail', $1)", lane).Scan(&lease, &item); err != nil {
				t.Fatalf("claim %s: %v", lane, describe(err))
			}
			leases[lane], items[lane] = lease, item
		}
		return leases, items
	}
	lock := func(s session, lane string) {
		s.exec("select from parley_store._p_lane_state where lane_id = (select lane_id from parley_store.lanes where system = 'mail' and lane = $1) for update", lane)
	}
	reports := "select parley_mail._p_report_hops(array['" + second + "', '" + first + "'], array[null, null], array[now(), now()])"
	for _, statement := range []string{reports, "select parley_store.expire_leases()", "select parley_store.take_back_leases('mail')"} {
		if statement != reports {
			leases, _ := claim()
			b.exec("update parley_store._p_lane_state set is_blocked = true")
			b.exec("update parley_store._p_lease set until = now() - case lease_id when $1 then interval '1 hour' else interval '1 minute' end", leases[second])
		}
		holder := b.begin()
		holder.exec("set local lock_timeout = '3s'")
		lock(holder, first)
		waiter := b.blocked(statement)
		lock(holder, second)
		holder.commit()
		waiter.requireSuccess()
		if t.Failed() {
			t.FailNow()
		}
	}
	leases, items := claim()
	const record = "select parley_mail._p_record_outcomes('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', array[$1::bigint], array[$2::bigint], lanes => array[$3])"
	daemon := b.begin()
	daemon.exec("set local lock_timeout = '3s'")
	daemon.exec(record, leases[first], items[first], second)
	other := b.blocked(record, leases[second], items[second], first)
	daemon.exec("select parley_mail._p_report_hops(array[$1], array['no answer'], array[clock_timestamp()])", second)
	daemon.commit()
	other.requireSuccess()
}
