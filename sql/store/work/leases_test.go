package work_test

import (
	"fmt"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// lapse lets the terms of all leases run out.
func lapse(s sqltest.Session) {
	s.Helper()
	s.Exec("update parley_store._p_lease set until = clock_timestamp() - interval '1 second'")
}

func requireStates(s sqltest.Session, want string) {
	s.Helper()
	sqltest.Equal(s, want, `select coalesce(string_agg(w.state || ' ' || w.subject, ', ' order by w.subject), '') from parley_store.work_items as w`)
}

// A holder whose term has run out is refused once its items were given back, and never completes those of another.
func TestALeaseThatRanOutIsRefused(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 2)
	b.Claim("a", 2)
	old := sqltest.Value[int64](b.Session, "select lease_id from parley_store._p_lease")
	sqltest.Equal(b.Session, 0, "select parley_store.expire_leases()")
	lapse(b.Session)
	sqltest.Equal(b.Session, 2, "select parley_store.expire_leases()")
	b.RequireClaimed(b.Claim("a", 1), []int64{1})
	for _, call := range []string{
		"complete_work(%d)", "release_work(%d)", "retry_work(%d)", "delay_work(%d, null, now())", "renew_lease(%d)",
		"suspend_claimed(%d, null, 'x')",
	} {
		b.Fails("PS005", "select parley_store."+fmt.Sprintf(call, old))
	}
	b.Fails("PS005", "select parley_store.complete_work(null)")
	requireStates(b.Session, "IN_FLIGHT 1, WAITING 2")
}

// Late, but before anybody else could have the items: that counts.
func TestALateHolderMayStillComplete(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 2)
	b.Claim("a", 2)
	lapse(b.Session)
	sqltest.Equal(b.Session, 2, "select parley_store.complete_work(lease_id) from parley_store._p_lease")
	sqltest.Equal(b.Session, 0, "select parley_store.expire_leases()")
	requireStates(b.Session, "")
}

func TestARenewedLeaseStays(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 1)
	b.Claim("a", 1)
	lapse(b.Session)
	b.Exec("select parley_store.renew_lease(lease_id, '1 minute') from parley_store._p_lease")
	sqltest.Equal(b.Session, 0, "select parley_store.expire_leases()")
	requireStates(b.Session, "IN_FLIGHT 1")
}

// Items that were not tried stand in front of everything else, in their order, whatever came since.
func TestReleasedWorkKeepsItsPlace(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec("select parley_store.set_lane('mail', 'a', lease_max => 1)")
	b.PutWork("a", 1, 4)
	b.RequireClaimed(claimNext(b.Session, 3, 1), []string{"a 1", "a 2", "a 3"})
	b.PutWork("a", 5, 5)
	b.RequireClaimed(claimNext(b.Session, 3, 1), []string{})
	b.Exec("select parley_store.complete_work(lease_id, array(select min(item_id) from parley_store._p_in_flight)) from parley_store._p_lease")
	b.Exec("select parley_store.release_work(lease_id) from parley_store._p_lease")
	b.RequireClaimed(claimNext(b.Session, 10, 1), []string{"a 2", "a 3", "a 4", "a 5"})
	sqltest.Equal(b.Session, 0, "select max(attempts) from parley_store.work_items")
}

// A session that counts leases says that the lane waits for the end of one; a session that ends it meanwhile waits for that.
func TestALaneIsNotLeftWaitingForALeaseThatEndsMeanwhile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ way, end string }{
		{"one lease", "select parley_store.complete_work(lease_id) from parley_store._p_lease"},
		{"leases together", "select parley_store.complete_claimed(array_agg(lease_id), array_agg(item_id)) from parley_store._p_in_flight"},
	} {
		t.Run(c.way, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewStore(t)
			b.Exec("select parley_store.set_lane('mail', 'a', lease_max => 1)")
			b.PutWork("a", 1, 2)
			b.RequireClaimed(claimNext(b.Session, 1, 1), []string{"a 1"})
			counts := b.Begin()
			sqltest.Equal(counts, 0, "select count(*)::int from parley_store.claim_work('mail')")
			ends := b.Blocked(c.end)
			counts.Commit()
			ends.RequireSuccess()
			b.RequireClaimed(claimNext(b.Session, 1, 1), []string{"a 2"})
		})
	}
}

func TestFailedWorkComesBackWhenItIsDue(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 2)
	claimNext(b.Session, 2, 1)
	b.Exec("select parley_store.retry_work(lease_id, null, 'no answer') from parley_store._p_lease")
	requireStates(b.Session, "DELAYED 1, DELAYED 2")
	sqltest.Equal(b.Session, true, "select bool_and(due_at - now() between '40 s' and '70 s' and last_error = 'no answer') from parley_store.work_items")
	b.RequireClaimed(claimNext(b.Session, 10, 10), []string{})
	sqltest.Equal(b.Session, 1, `select parley_store.retry_work_now('mail', '{"subjects": [2]}')`)
	b.RequireClaimed(claimNext(b.Session, 10, 10), []string{"a 2"})
	b.Exec("select parley_store.delay_work(lease_id, null, clock_timestamp() + '50 ms') from parley_store._p_lease")
	b.WaitUntil("select exists (select from parley_store.claim_work('mail') where subject = 2 and attempts = 2)")
}

// Items whose time is over are given to the caller to give up, and no other.
func TestExpiredWorkIsGivenToBeGivenUp(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec("select parley_store.put_work('mail', array['a', 'a'], array[1, 2], expires_at => clock_timestamp() + '100 ms')")
	b.PutWork("a", 3, 3)
	b.Claim("a", 3)
	b.WaitUntil("select bool_and(expires_at < clock_timestamp()) from parley_store.work_items where subject < 3")
	sqltest.Equal(b.Session, 2, "select cardinality(parley_store.retry_work(lease_id, null, 'x')) from parley_store._p_lease")
	requireStates(b.Session, "IN_FLIGHT 1, IN_FLIGHT 2, DELAYED 3")
	b.Exec("select parley_store.release_work(lease_id) from parley_store._p_lease")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley_store.claim_expired('mail')")
	b.Exec("select parley_store.fail_lane('mail', 'a', 'x')")
	sqltest.Equal(b.Session, 2, "select count(*)::int from parley_store.claim_expired('mail')")
}

func TestALaneThatFailsRests(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 2)
	b.PutWork("b", 3, 3)
	b.RequireClaimed(claimNext(b.Session, 1, 1), []string{"a 1"})
	b.Exec("select parley_store.fail_lane('mail', 'a', 'refused'), parley_store.release_work(lease_id) from parley_store._p_lease")
	b.RequireClaimed(claimNext(b.Session, 10, 10), []string{"b 3"})
	b.RequireClaimed(b.Claim("a", 10), []int64{})
	sqltest.Equal(b.Session, "RETRY 1 refused", "select status || ' ' || failures || ' ' || last_error from parley_store.lanes where lane = 'a'")
	// Others that report the failure of the same attempt count for nothing.
	b.Exec("select parley_store.fail_lane('mail', 'a', 'refused', clock_timestamp() - interval '1 second')")
	sqltest.Equal(b.Session, 1, "select failures from parley_store.lanes where lane = 'a'")
	sqltest.Equal(b.Session, true, "select parley_store.retry_lane('mail', 'a', 'ann')")
	b.RequireClaimed(claimNext(b.Session, 10, 10), []string{"a 1", "a 2"})
	b.Exec("select parley_store.succeed_lane('mail', 'a')")
	sqltest.Equal(b.Session, 0, "select failures from parley_store.lanes where lane = 'a'")
	sqltest.Equal(b.Session, "retry lane ann", "select operation || ' ' || done_by from parley_store.operations")
}

func TestASuspendedLaneGivesNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec("select parley_store.set_lane('mail', 'a', is_permanent => true), parley_store.suspend_lane('mail', 'a', 'moving')")
	b.PutWork("a", 1, 1)
	b.RequireClaimed(claimNext(b.Session, 10, 10), []string{})
	b.RequireClaimed(b.Claim("a", 10), []int64{})
	b.Exec("select parley_store.resume_lane('mail', 'a')")
	b.RequireClaimed(claimNext(b.Session, 10, 10), []string{"a 1"})
}

// An operator's wish for items in flight is done when they come back without success.
func TestOperationsOnWorkInFlightWait(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 6)
	b.Claim("a", 5)
	sqltest.Equal(b.Session, 6, `select parley_store.suspend_work('mail', '{}', 'why', dry_run => true)`)
	sqltest.Equal(b.Session, 3, `select parley_store.suspend_work('mail', '{"subjects": [1, 2, 6]}', 'why')`)
	sqltest.Equal(b.Session, 0, `select parley_store.suspend_work('mail', '{"subjects": [1, 2, 6]}', 'why')`)
	sqltest.Equal(b.Session, 0, `select count(*)::int from parley_store.remove_work('mail', '{"subjects": [3]}')`)
	requireStates(b.Session, "IN_FLIGHT 1, IN_FLIGHT 2, IN_FLIGHT 3, IN_FLIGHT 4, IN_FLIGHT 5, SUSPENDED 6")
	b.Exec(`select parley_store.complete_work(lease_id, array(select item_id from parley_store.work_items where subject in (1, 5)))
		from parley_store._p_lease`)
	b.Exec("select parley_store.retry_work(lease_id) from parley_store._p_lease")
	requireStates(b.Session, "SUSPENDED 2, DELAYED 4, SUSPENDED 6")
	sqltest.Equal(b.Session, 2, `select count(*)::int from parley_store.export_work('mail', '{}')`)
	sqltest.Equal(b.Session, 2, `select parley_store.resume_work('mail', '{"reason": "why"}')`)
	sqltest.Equal(b.Session, 1, `select count(*)::int from parley_store.remove_work('mail', '{"lane": "a", "state": "DELAYED"}')`)
	b.RequireClaimed(claimNext(b.Session, 10, 10), []string{"a 2", "a 6"})
	b.Fails("PS002", `select parley_store.remove_work('mail', '{"subject": [1]}')`)
	b.Fails("PS002", `select parley_store.remove_work('mail', null)`)
	b.Fails("PS001", `select parley_store.suspend_work(null, '{}', 'why')`)
}

// An empty lane goes, unless somebody puts work there, and one that is made anew works.
func TestIdleLanesGo(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec("select parley_store.set_lane('mail', 'stays', is_permanent => true)")
	b.PutWork("a", 1, 1)
	claimNext(b.Session, 10, 10)
	b.Exec("select parley_store.complete_work(lease_id) from parley_store._p_lease")
	claimNext(b.Session, 10, 10)
	putter := b.Begin()
	putter.PutWork("a", 2, 2)
	sqltest.Equal(b.Session, 0, "select parley_store.remove_idle_lanes(100, '0 seconds')")
	putter.Rollback()
	sqltest.Equal(b.Session, 1, "select parley_store.remove_idle_lanes(100, '0 seconds')")
	b.PutWork("a", 3, 3)
	b.RequireClaimed(claimNext(b.Session, 10, 10), []string{"a 3"})
	sqltest.Equal(b.Session, 0, "select parley_store.remove_idle_lanes(100, '0 seconds')")
}

// Tokens that are lost, as when somebody takes from the queue of a system by hand, are made anew.
func TestLostTokensAreMadeAnew(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 2)
	b.Exec("select parley.take('parley_store_mail', 10)")
	b.PutWork("b", 3, 3)
	b.RequireClaimed(claimNext(b.Session, 1, 2), []string{"b 3"})
	b.WaitUntil("select parley_store.repair_lanes(10, '10 ms') > 0")
	b.RequireClaimed(claimNext(b.Session, 10, 10), []string{"a 1", "a 2"})
}

// Where nobody claims, one token waits for a lane, however much is put there.
func TestWorkThatNobodyClaimsLeavesOneToken(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	for n := range 20 {
		b.PutWork("a", n, n)
	}
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley.peek_messages('parley_store_mail')")
}

// Work wakes the sessions that wait for it.
func TestClaimWaitsForWork(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	waiter := b.Connection()
	claimed := make(chan []string, 1)
	go func() {
		claimed <- sqltest.Values[string](waiter, "select lane || ' ' || subject from parley_store.claim_work('mail', timeout => 60000)")
	}()
	b.WaitUntil("select exists (select from pg_stat_activity where datname = current_database() and query like '%timeout => 60000%' and pid <> pg_backend_pid())")
	b.PutWork("a", 1, 1)
	b.RequireClaimed(<-claimed, []string{"a 1"})
}

// Items in the hands of a session that is gone stand in front of everything else, in their order, whatever came since and whoever takes
// them back.
func TestWorkOfALeaseThatRanOutKeepsItsPlace(t *testing.T) {
	t.Parallel()
	for _, back := range []string{"expire_leases()", "take_back_leases('mail')", "expire_leases(1)"} {
		t.Run(back, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewStore(t)
			b.Exec("select parley_store.set_lane('mail', 'a', lease_max => 1)")
			b.PutWork("a", 1, 3)
			b.RequireClaimed(claimNext(b.Session, 2, 1), []string{"a 1", "a 2"})
			b.PutWork("a", 4, 5)
			lapse(b.Session)
			b.Exec("select * from parley_store." + back)
			b.RequireClaimed(claimNext(b.Session, 10, 1), []string{"a 1", "a 2", "a 3", "a 4", "a 5"})
			sqltest.Equal(b.Session, 0, "select max(attempts) from parley_store.work_items")
		})
	}
}

// Each failure takes the next step of the policy, from the first on, whether the policy is that of the lane or one that the holder names.
func TestFailedWorkTakesTheStepsOfItsPolicyInOrder(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec("select parley_store.set_retry_policy('steps', 'STEPS', '1 hour', '{1, 2}', '{1 minute, 10 minutes}', jitter => 0, expires_after => '90 days')")
	b.Exec("select parley_store.set_lane('mail', 'a', retry_policy => 'steps'), parley_store.set_lane('mail', 'b')")
	b.PutWork("a", 1, 1)
	b.PutWork("b", 2, 2)
	for failures, minutes := range []int{1, 10, 10, 60, 60} {
		for lane, named := range map[string]string{"a": "", "b": ", retry_policy => 'steps'"} {
			b.Claim(lane, 1)
			b.Exec("select parley_store.retry_work(e.lease_id, error => 'x'" + named + ") from parley_store._p_lease as e")
			sqltest.Equal(b.Session, minutes, `select round(extract(epoch from d.due_at - clock_timestamp()) / 60)::integer
				from parley_store._p_delayed_item as d join parley_store._p_lane as l using (lane_id) where l.lane = $1`, lane)
			sqltest.Equal(b.Session, failures+1, "select d.attempts::integer from parley_store._p_delayed_item as d join parley_store._p_lane as l using (lane_id) where l.lane = $1", lane)
			b.Exec("select parley_store._p_make_ready(array(select d.item_id from parley_store._p_delayed_item as d))")
		}
	}
}

// A lease is renewed from now on, never by what is left of it, and many say which of them are gone; one that another transaction has locked
// holds up none of the others.
func TestManyLeasesAreRenewedTogether(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 4)
	for range 3 {
		b.Claim("a", 1)
	}
	ids := sqltest.Values[int64](b.Session, "select e.lease_id from parley_store._p_lease as e order by e.lease_id")
	b.Exec("update parley_store._p_lease set until = clock_timestamp() + interval '1 hour' where lease_id = $1", ids[0])
	b.Exec("select parley_store.complete_work($1)", ids[2])
	const renew = "select concat_ws(' ', r.renewed, r.gone) from parley_store.renew_leases($1::bigint[], '30 seconds', $2) as r"
	const left = "select round(extract(epoch from e.until - clock_timestamp()))::integer from parley_store._p_lease as e where e.lease_id = $1"
	sqltest.Equal(b.Session, fmt.Sprintf("{%d,%d} {%d,%d}", ids[0], ids[1], ids[2], 99), renew, append(ids, 99), true)
	sqltest.Equal(b.Session, 30, left, ids[0])
	sqltest.Equal(b.Session, 30, left, ids[1])

	busy := b.Begin()
	busy.Exec("select parley_store.complete_work($1)", ids[0])
	b.Exec("update parley_store._p_lease set until = clock_timestamp() + interval '5 seconds' where lease_id = $1", ids[1])
	sqltest.Equal(b.Session, fmt.Sprintf("{%d} {}", ids[1]), renew, ids[:2], false)
	sqltest.Equal(b.Session, 30, left, ids[1])
	busy.Commit()
	sqltest.Equal(b.Session, fmt.Sprintf("{%d} {%d}", ids[1], ids[0]), renew, ids[:2], false)
	for _, lease := range []string{"0.9 seconds", "25 hours", "null"} {
		b.Fails("PS002", fmt.Sprintf("select parley_store.renew_leases('{1}', %s)", map[bool]string{true: "null", false: "interval '" + lease + "'"}[lease == "null"]))
	}
}

// Where one lease is out at a time what is given back stands in front of what was given back before, so that the order is kept.
func TestOrderOfALaneIsKeptWhenAPartComesBack(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec("select parley_store.set_lane('mail', 'one', lease_max => 1)")
	b.Exec("select parley_store.put_work('mail', array_fill('one'::text, array[4]), array[1, 2, 3, 4])")
	const claim = "select lease_id from parley_store.claim_lane('mail', 'one', $1) limit 1"
	for _, items := range []int{3, 1, 2} {
		b.Exec("select parley_store.release_work($1)", sqltest.Value[int64](b.Session, claim, items))
	}
	lease := sqltest.Value[int64](b.Session, claim, 3)
	b.Exec("select parley_store.release_work($1, (select array_agg(item_id) from parley_store.leased_items('mail', array[$1::bigint]) where subject > 1))", lease)
	b.Exec("update parley_store._p_lease set until = clock_timestamp() - interval '1 s'; select parley_store.expire_leases()")
	sqltest.Equal(b.Session, "1 2 3 4", "select string_agg(subject::text, ' ') from parley_store.claim_lane('mail', 'one', 4)")
}
