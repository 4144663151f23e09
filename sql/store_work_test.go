package sql_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// newStore gives a test a database with a system that uses the store.
func newStore(t *testing.T) *broker {
	t.Helper()
	b := newBroker(t)
	b.exec("select parley_store.add_system('mail')")
	return b
}

// fails requires a statement to end with a SQLSTATE.
func (s session) fails(code, statement string) {
	s.Helper()
	_, err := s.db.Exec(s.Context(), statement)
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != code {
		s.Errorf("%s: got %v, want SQLSTATE %s", statement, err, code)
	}
}

// putWork puts items with subjects from one number to another into a lane.
func (s session) putWork(lane string, from, to int) {
	s.Helper()
	s.exec(`select parley_store.put_work('mail', array_agg($1::text), array_agg(n::bigint order by n))
		from generate_series($2::integer, $3::integer) as n`, lane, from, to)
}

// claim gives the subjects of what is claimed from a lane.
func (s session) claim(lane string, items int) []int64 {
	s.Helper()
	return values[int64](s, "select subject from parley_store.claim_lane('mail', $1, $2)", lane, items)
}

// claimNext gives the lanes and subjects of what is claimed from the lanes whose turn it is.
func (s session) claimNext(items, lanes int) []string {
	s.Helper()
	return values[string](s, "select lane || ' ' || subject from parley_store.claim_work('mail', $1, $2)", items, lanes)
}

func (s session) requireClaimed(got, want any) {
	s.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.Errorf("claimed %v, want %v", got, want)
	}
}

func TestClaimedWorkIsThatOfALaneInItsOrder(t *testing.T) {
	t.Parallel()
	b := newStore(t)
	b.putWork("a", 1, 3)
	b.putWork("b", 4, 4)
	b.putWork("a", 5, 5)
	b.exec("select parley_store.put_work('mail', array['a'], array[6], priority => 9)")
	b.requireClaimed(b.claim("a", 3), []int64{6, 1, 2})
	b.requireClaimed(b.claim("a", 10), []int64{3, 5})
	b.requireClaimed(b.claim("b", 10), []int64{4})
	equal(b.session, 0, "select count(*)::int from parley_store.work_items where state = 'WAITING'")
	b.fails("PS006", "select parley_store.claim_lane('mail', 'nothing')")
	b.fails("PS006", "select parley_store.claim_lane('mail', null)")
	b.fails("PS001", "select parley_store.claim_work('unknown')")
	b.fails("PS001", "select parley_store.put_work(null, array['a'], array[1])")
	b.fails("PS002", "select parley_store.put_work('mail', array['a'], array[1], priority => 11)")
	b.fails("PS002", "select parley_store.put_work('mail', array['a', 'b'], array[1])")
	b.fails("PS002", "select parley_store.put_work('mail', array['a', null], array[1, 2])")
}

// renewMarks moves the mark of each lane as far as it may.
const renewMarks = `
	select parley_store._p_renew_mark(l.lane_id, 5, parley_store._p_newest_mark(l.lane_id, 5))
	from parley_store._p_lane as l`

// What a transaction puts that has begun before others and commits after them is claimed, whatever was claimed meanwhile.
func TestLateWorkIsNotMissed(t *testing.T) {
	t.Parallel()
	for _, isolation := range []pgx.TxIsoLevel{pgx.ReadCommitted, pgx.RepeatableRead} {
		t.Run(string(isolation), func(t *testing.T) {
			t.Parallel()
			b := newStore(t)
			b.putWork("a", 1, 1)
			late := b.begin(pgx.TxOptions{IsoLevel: isolation})
			late.putWork("a", 1000, 1001)
			for n := 2; n < 30; n++ {
				b.putWork("a", n, n)
				b.claimNext(10, 1)
				b.exec(renewMarks)
			}
			late.commit()
			b.waitUntil("select exists (select from parley_store.claim_work('mail', 1) where subject = 1000)")
			b.waitUntil("select exists (select from parley_store.claim_work('mail', 1) where subject = 1001)")
			equal(b.session, 0, "select count(*)::int from parley_store.work_items where state = 'WAITING'")
		})
	}
}

// What a transaction that claims puts into the same lane is found by the next.
func TestWorkThatAClaimingTransactionPutsIsNotMissed(t *testing.T) {
	t.Parallel()
	b := newStore(t)
	b.putWork("a", 1, 1)
	for n := 2; n < 20; n++ {
		tx := b.begin()
		tx.requireClaimed(tx.claim("a", 10), []int{n - 1})
		// A transaction that began later and has ended: the mark comes to stand behind this one's number.
		b.exec("select pg_current_xact_id()")
		tx.exec(renewMarks)
		tx.putWork("a", n, n)
		tx.commit()
	}
	b.requireClaimed(b.claim("a", 10), []int{19})
}

// Claims that roll back leave their items, and what they have recorded of the lane is gone with them.
func TestClaimThatRollsBackLeavesItsItems(t *testing.T) {
	t.Parallel()
	b := newStore(t)
	b.putWork("a", 1, 600)
	for range 5 {
		tx := b.begin()
		tx.claim("a", 500)
		tx.rollback()
	}
	b.requireClaimed(len(b.claim("a", 1000)), 600)
}

// A lane is worked off at one cost, with an old snapshot somewhere that keeps all that is deleted, whether it writes or reads.
func TestClaimsDoNotDecayUnderAnOldTransaction(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]string{
		"reader": "select count(*) from parley_store.lanes", "writer": "create table mine (n integer)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newStore(t)
			old := b.begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			old.exec(prepare)
			worker := b.connection()
			for round := range 40 {
				worker.putWork("a", round*500, round*500+499)
				worker.requireClaimed(len(worker.claim("a", 500)), 500)
				worker.exec("select parley_store.complete_work(lease_id) from parley_store._p_lease")
			}
			worker.exec("analyze parley_store._p_item")
			worker.putWork("a", 1, 1)
			// A scan that begins in front of the 20,000 dead items reads some 350 blocks, one behind them 20. A claim would write a mark.
			worker.requireFewReads(150, "select parley_store._p_has_work(lane_id) from parley_store._p_lane")
		})
	}
}

func TestALaneIsServedInItsTurn(t *testing.T) {
	t.Parallel()
	b := newStore(t)
	b.putWork("a", 1, 4)
	b.putWork("b", 11, 12)
	b.requireClaimed(b.claimNext(1, 1), []string{"a 1"})
	b.requireClaimed(b.claimNext(1, 1), []string{"b 11"})
	b.requireClaimed(b.claimNext(2, 1), []string{"a 2", "a 3"})
	b.requireClaimed(b.claimNext(10, 2), []string{"b 12", "a 4"})
	equal(b.session, 2, "select count(*)::int from parley_store.lanes where status = 'READY'")
	b.putWork("a", 5, 5)
	b.requireClaimed(b.claimNext(10, 2), []string{"a 5"})
}

// Of many that claim and put at once nothing is lost and nothing is claimed twice.
func TestWorkIsClaimedOnceByManyAtOnce(t *testing.T) {
	t.Parallel()
	b := newStore(t)
	var workers sync.WaitGroup
	const putters, items = 3, 200
	claimed := make(chan int64, putters*items*2)
	for p := range putters {
		putter := b.connection()
		workers.Go(func() {
			for n := range items {
				putter.putWork(fmt.Sprintf("lane %d", (p+n)%7), p*items+n, p*items+n)
			}
		})
	}
	for range 3 {
		claimer := b.connection()
		workers.Go(func() {
			for range 20000 {
				subjects := values[int64](claimer, "select subject from parley_store.claim_work('mail', 7, 3)")
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
