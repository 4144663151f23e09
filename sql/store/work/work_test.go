package work_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
)

// claimNext gives the lanes and subjects of what is claimed from the lanes whose turn it is.
func claimNext(s sqltest.Session, items, lanes int) []string {
	s.Helper()
	return sqltest.Values[string](s, "select lane || ' ' || subject from parley_store.claim_work('mail', $1, $2)", items, lanes)
}

func TestClaimedWorkIsThatOfALaneInItsOrder(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 3)
	b.PutWork("b", 4, 4)
	b.PutWork("a", 5, 5)
	b.Exec("select parley_store.put_work('mail', array['a'], array[6], priority => 9)")
	b.RequireClaimed(b.Claim("a", 3), []int64{6, 1, 2})
	b.RequireClaimed(b.Claim("a", 10), []int64{3, 5})
	b.RequireClaimed(b.Claim("b", 10), []int64{4})
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_store.work_items where state = 'WAITING'")
	b.Fails("PS006", "select parley_store.claim_lane('mail', 'nothing')")
	b.Fails("PS006", "select parley_store.claim_lane('mail', null)")
	b.Fails("PS001", "select parley_store.claim_work('unknown')")
	b.Fails("PS001", "select parley_store.put_work(null, array['a'], array[1])")
	b.Fails("PS002", "select parley_store.put_work('mail', array['a'], array[1], priority => 11)")
	b.Fails("PS002", "select parley_store.put_work('mail', array['a', 'b'], array[1])")
	b.Fails("PS002", "select parley_store.put_work('mail', array['a', null], array[1, 2])")
}

// renewMarks moves the mark of each lane as far as it may.
const renewMarks = `
	select parley_store._p_renew_mark(l.lane_id, 5, parley_store._p_newest_mark(l.lane_id, 5))
	from parley_store._p_lane as l`

// An item of a transaction that has begun before others and commits after them is claimed, whatever was claimed meanwhile.
func TestLateWorkIsNotMissed(t *testing.T) {
	t.Parallel()
	for _, isolation := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		t.Run(string(isolation), func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewStore(t)
			b.PutWork("a", 1, 1)
			late := b.Begin(pgx.TxOptions{IsoLevel: isolation})
			late.PutWork("a", 1000, 1001)
			for n := 2; n < 30; n++ {
				b.PutWork("a", n, n)
				claimNext(b.Session, 10, 1)
				b.Exec(renewMarks)
			}
			late.Commit()
			b.WaitUntil("select exists (select from parley_store.claim_work('mail', 1) where subject = 1000)")
			b.WaitUntil("select exists (select from parley_store.claim_work('mail', 1) where subject = 1001)")
			sqltest.Equal(b.Session, 0, "select count(*)::int from parley_store.work_items where state = 'WAITING'")
		})
	}
}

// An item that a transaction that claims puts into the same lane is found by the next.
func TestWorkThatAClaimingTransactionPutsIsNotMissed(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 1)
	for n := 2; n < 20; n++ {
		tx := b.Begin()
		tx.RequireClaimed(tx.Claim("a", 10), []int{n - 1})
		// A transaction that began later and has ended: the mark comes to stand behind this one's number.
		b.Exec("select pg_current_xact_id()")
		tx.Exec(renewMarks)
		tx.PutWork("a", n, n)
		tx.Commit()
	}
	b.RequireClaimed(b.Claim("a", 10), []int{19})
}

// Claims that roll back leave their items, and what they have recorded of the lane is gone with them.
func TestClaimThatRollsBackLeavesItsItems(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 600)
	for range 5 {
		tx := b.Begin()
		tx.Claim("a", 500)
		tx.Rollback()
	}
	b.RequireClaimed(len(b.Claim("a", 1000)), 600)
}

// A lane is worked off at one cost, with an old snapshot somewhere that keeps all that is deleted, whether it writes or reads.
func TestClaimsDoNotDecayUnderAnOldTransaction(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]string{
		"reader": "select count(*) from parley_store.lanes", "writer": "create table mine (n integer)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewStore(t)
			old := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			old.Exec(prepare)
			worker := b.Connection()
			for round := range 40 {
				worker.PutWork("a", round*500, round*500+499)
				worker.RequireClaimed(len(worker.Claim("a", 500)), 500)
				worker.Exec("select parley_store.complete_work(lease_id) from parley_store._p_lease")
			}
			worker.Exec("analyze parley_store._p_item")
			worker.PutWork("a", 1, 1)
			// A scan that begins in front of the 20,000 dead items reads some 350 blocks, one behind them 20. A claim would write a mark.
			worker.RequireFewReads(150, "select parley_store._p_has_work(lane_id) from parley_store._p_lane")
		})
	}
}

func TestALaneIsServedInItsTurn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 4)
	b.PutWork("b", 11, 12)
	b.RequireClaimed(claimNext(b.Session, 1, 1), []string{"a 1"})
	b.RequireClaimed(claimNext(b.Session, 1, 1), []string{"b 11"})
	b.RequireClaimed(claimNext(b.Session, 2, 1), []string{"a 2", "a 3"})
	b.RequireClaimed(claimNext(b.Session, 10, 2), []string{"b 12", "a 4"})
	sqltest.Equal(b.Session, 2, "select count(*)::int from parley_store.lanes where status = 'READY'")
	b.PutWork("a", 5, 5)
	b.RequireClaimed(claimNext(b.Session, 10, 2), []string{"a 5"})
}

// Of many that claim and put at once nothing is lost and nothing is claimed twice.
func TestWorkIsClaimedOnceByManyAtOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	var workers sync.WaitGroup
	const putters, items = 3, 200
	claimed := make(chan int64, putters*items*2)
	for p := range putters {
		putter := b.Connection()
		workers.Go(func() {
			for n := range items {
				putter.PutWork(fmt.Sprintf("lane %d", (p+n)%7), p*items+n, p*items+n)
			}
		})
	}
	for range 3 {
		claimer := b.Connection()
		workers.Go(func() {
			for range 20000 {
				subjects := sqltest.Values[int64](claimer, "select subject from parley_store.claim_work('mail', 7, 3)")
				for _, subject := range subjects {
					claimed <- subject
				}
				if len(claimed) >= putters*items {
					return
				}
			}
		})
	}
	workers.Wait()
	close(claimed)
	var got []int64
	for subject := range claimed {
		got = append(got, subject)
	}
	slices.Sort(got)
	if len(got) != putters*items || len(slices.Compact(got)) != putters*items {
		t.Errorf("%d items were claimed, want each of %d once", len(got), putters*items)
	}
}

// The mark of a priority says what is left of that one: what waits behind others stays behind, and a claim does not pass by it again and
// again. An old snapshot does not show what is there, and leaves the mark as it is.
func TestMarkOfAPriorityCountsItsOwnItems(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec("select parley_store.put_work('mail', array['a'], array[1], priority => 1)")
	b.PutWork("a", 2, 3)
	b.RequireClaimed(b.Claim("a", 1), []int64{2})
	const marks = "select count(*)::int from parley_store._p_lane_mark"
	old := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	old.Exec(renewMarks)
	sqltest.Equal(old, 0, marks)
	old.Rollback()
	b.Exec(renewMarks)
	sqltest.Equal(b.Session, 1, marks)
	sqltest.Equal(b.Session, int64(3), `select i.subject from parley_store._p_lane_mark as m join parley_store._p_item as i
		on i.lane_id = m.lane_id and (i.put_by, i.item_id) = (m.from_xact, m.from_item)`)
}
