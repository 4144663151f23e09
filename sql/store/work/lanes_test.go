package work_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestALowPriorityDoesNotStarve(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec("select parley_store.put_work('mail', array['a'], array[1000], priority => 1)")
	b.Exec("select parley_store.put_work('mail', array_fill('a'::text, array[200]), array(select generate_series(1, 200)), priority => 10)")
	claims := 0
	for ; claims < 30; claims++ {
		if slices.Contains(claimNext(b.Session, 2, 1), "a 1000") {
			break
		}
	}
	if claims == 0 || claims > 10 {
		t.Errorf("the lowest priority came after %d claims of the highest", claims)
	}
}

// A backlog of one priority leaves room for the others, and goes on when it has room itself.
func TestPrioritiesHaveSharesOfTheLeases(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec("select parley_store.set_lane('mail', 'a', lease_max => 10, priority_shares => '{20, 70, 70, 70, 70, 70, 70, 70, 70, 10}')")
	b.Exec("select parley_store.put_work('mail', array_fill('a'::text, array[50]), array(select generate_series(1, 50)), priority => 1)")
	if n := leasesOut(b); n != 2 {
		t.Errorf("%d of 10 leases are of the lowest priority", n)
	}
	b.PutWork("a", 100, 149)
	b.Exec("select parley_store.put_work('mail', array_fill('a'::text, array[50]), array(select generate_series(200, 249)), priority => 10)")
	b.WaitUntil("select exists (select from parley_store.claim_work('mail', 1, 1) where subject >= 200)")
	for leasesOut(b) > 0 {
	}
	sqltest.Equal(b.Session, "1 2, 5 7, 10 1", `select string_agg(p.priority || ' ' || p.n, ', ' order by p.priority)
		from (select priority, count(*) as n from parley_store._p_lease group by priority) as p`)
	b.Exec("select parley_store.complete_work(lease_id) from parley_store._p_lease where priority = 1")
	b.WaitUntil("select exists (select from parley_store.claim_work('mail', 1, 1) where subject < 100)")
	b.Fails("PS002", "select parley_store.set_lane('mail', 'a', priority_shares => '{1, 2}')")
	b.Fails("PS002", "select parley_store.set_lane('mail', 'a', priority_shares => '{0, 1, 1, 1, 1, 1, 1, 1, 1, 1}')")
}

func TestReleasedWorkKeepsItsPriority(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 2)
	b.RequireClaimed(b.Claim("a", 2), []int64{1, 2})
	b.PutWork("a", 3, 3)
	b.Exec("select parley_store.put_work('mail', array['a'], array[9], priority => 9)")
	b.Exec("select parley_store.release_work(lease_id) from parley_store._p_lease")
	sqltest.Equal(b.Session, "5 5 5 9", "select string_agg(priority::text, ' ' order by priority) from parley_store.work_items")
	b.RequireClaimed(b.Claim("a", 10), []int64{9, 1, 2, 3})
}

// leasesOut claims one item a lease until nothing more is given, and gives how many leases that made.
func leasesOut(b *sqltest.Broker) (leases int) {
	b.Helper()
	for len(claimNext(b.Session, 1, 1)) > 0 {
		leases++
	}
	return leases
}

func TestNumberOfLeasesAdaptsToWhatTheNextHopBears(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec("select parley_store.set_lane('mail', 'a', lease_max => 8, lease_start => 3)")
	b.PutWork("a", 1, 200)
	release := func() {
		b.Exec("select parley_store.release_work(lease_id) from parley_store._p_lease")
	}
	succeed := func() {
		b.Exec("update parley_store._p_lane_state set succeeded_at = succeeded_at - interval '1 minute'")
		b.Exec("select parley_store.succeed_lane('mail', 'a')")
	}
	allowed := func(want int) {
		t.Helper()
		sqltest.Equal(b.Session, want, "select leases_allowed from parley_store.lanes")
		if got := leasesOut(b); got != want {
			t.Errorf("%d leases are out, want %d", got, want)
		}
	}
	allowed(3)
	succeed()
	sqltest.Equal(b.Session, 3, "select leases_allowed from parley_store.lanes")
	// A lane that waited because it had as many as it may goes on at once when it may have one more.
	succeed()
	sqltest.Equal(b.Session, 4, "select leases_allowed from parley_store.lanes")
	if more := leasesOut(b); more != 1 {
		t.Errorf("%d more leases, want 1", more)
	}
	for range 10 {
		succeed()
	}
	release()
	allowed(8)
	release()
	b.Exec("select parley_store.fail_lane('mail', 'a', 'no answer', clock_timestamp())")
	b.Exec("select parley_store.retry_lane('mail', 'a')")
	// A lane that failed is tried by one; when that succeeds, half as many as before.
	allowed(1)
	succeed()
	release()
	allowed(4)
}

func TestALaneCanBePutOffWithoutAFailure(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 1)
	sqltest.Equal(b.Session, true, "select parley_store.postpone_lane('mail', 'a', now() + interval '1 hour', 'rate')")
	sqltest.Equal(b.Session, false, "select parley_store.postpone_lane('mail', 'a', now() + interval '1 minute')")
	b.RequireClaimed(claimNext(b.Session, 1, 1), []string{})
	sqltest.Equal(b.Session, "POSTPONED 0 rate", "select concat_ws(' ', status, failures, last_error) from parley_store.lanes")
	b.Exec("select parley_store.succeed_lane('mail', 'a')")
	sqltest.Equal(b.Session, "POSTPONED", "select status from parley_store.lanes")
	sqltest.Equal(b.Session, true, "select parley_store.fail_lane('mail', 'a', 'no answer') > now() + interval '59 minutes'")
	sqltest.Equal(b.Session, "RETRY 1", "select concat_ws(' ', status, failures) from parley_store.lanes")
	b.Exec("select parley_store.retry_lane('mail', 'a')")
	b.RequireClaimed(claimNext(b.Session, 1, 1), []string{"a 1"})
}

func TestLanesThatAreLeftToOthersKeepTheirWork(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("one/a", 1, 1)
	b.PutWork("two/a", 2, 2)
	b.RequireClaimed(sqltest.Values[string](b.Session, "select lane from parley_store.claim_work('mail', 10, 10, passed_by => '{one/}')"), []string{"two/a"})
	b.WaitUntil("select exists (select from parley_store.claim_work('mail', 10, 10) where subject = 1)")
}

// Counters say what is there, whatever happens to items, with changes that are added up and that are not.
func TestCountsOfLanesAreThoseOfTheirItems(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec("select parley_store.set_retry_policy('soon', 'STEPS', '1 second', expires_after => '1 day')")
	requireEqual := func(step string) {
		t.Helper()
		const difference = `
			select coalesce(string_agg(format('%s: %s counted, %s there', l.lane, (l.items, l.tried, l.by_priority), (w.items, w.tried, w.by_priority)), '; '), '')
			from parley_store.lane_counts as l
			left join (
				select p.lane, sum(p.items) as items, sum(p.tried) as tried, jsonb_object_agg(p.priority, p.items) as by_priority
				from (
					select i.lane, i.priority, count(*) as items, count(*) filter (where i.attempts > 0) as tried
					from parley_store.work_items as i group by i.lane, i.priority
				) as p group by p.lane
			) as w on w.lane = l.lane
			where (l.items, l.tried, l.by_priority) is distinct from (coalesce(w.items, 0), coalesce(w.tried, 0), coalesce(w.by_priority, '{}'))`
		if wrong := sqltest.Value[string](b.Session, difference); wrong != "" {
			t.Fatalf("after %s: %s", step, wrong)
		}
	}
	// Items that have failed and are completed, removed or suspended in the end.
	for _, end := range []string{
		"select parley_store.complete_work(lease_id) from parley_store._p_lease",
		"select parley_store.complete_claimed(array_agg(lease_id), array_agg(item_id)) from parley_store._p_in_flight", `select parley_store.remove_work('mail', '{}')`,
		`select parley_store.suspend_work('mail', '{}', 'held')`,
	} {
		for _, step := range []string{
			"select parley_store.put_work('mail', array['a', 'b'], array[1, 2])", "select parley_store.claim_work('mail', 10, 10)",
			"select parley_store.retry_work(lease_id, null, 'later', 'soon') from parley_store._p_lease", `select parley_store.retry_work_now('mail', '{}')`,
			"select parley_store.claim_work('mail', 10, 10)", end, "select parley_store.release_work(lease_id) from parley_store._p_lease",
			`select parley_store.remove_work('mail', '{}')`,
		} {
			b.Exec(step)
			requireEqual(step)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 120 {
		step := []string{
			"select parley_store.put_work('mail', array_fill('%s'::text, array[5]), array(select generate_series(1, 5)), priority => 1, weights => '{10,10,10,10,10}')",
			"select parley_store.put_work('mail', array['%s', 'c'], array[6, 7], priority => 9, deliver_at => now() + interval '1 hour')",
			"select parley_store.claim_work('mail', 6, 2, holder => '%s')",
			"select parley_store.complete_work(lease_id, array(select item_id from parley_store._p_in_flight as f where f.lease_id = e.lease_id limit 2)) from parley_store._p_lease as e limit 1 -- %s",
			"select parley_store.release_work(lease_id) from parley_store._p_lease limit 1 -- %s",
			"select parley_store.retry_work(lease_id, null, 'later', 'soon') from parley_store._p_lease limit 1 -- %s",
			"select parley_store.delay_work(lease_id, null, now() + interval '1 hour', 'rate', false) from parley_store._p_lease limit 1 -- %s",
			`select parley_store.remove_work('mail', '{"lane": "%s"}', 3)`,
			`select parley_store.suspend_work('mail', '{"lane": "%s"}', 'held', 2)`,
			`select parley_store.resume_work('mail', '{"lane": "%s"}')`,
			`select parley_store.retry_work_now('mail', '{"lane": "%s"}', 2)`,
			"select parley_store.fold_lane_counts() -- %s",
		}[random.IntN(12)]
		step = fmt.Sprintf(step, []string{"a", "b"}[random.IntN(2)])
		b.Exec(step)
		requireEqual(step)
	}
	old := b.Begin()
	old.Exec("select parley_store.put_work('mail', array['a'], array[8])")
	b.PutWork("a", 1, 3)
	b.Exec("select parley_store.fold_lane_counts()")
	requireEqual("a fold beside a transaction that is open")
	old.Commit()
	requireEqual("its commit")
	b.WaitUntil("select parley_store.fold_lane_counts() > 0 or not exists (select from parley_store._p_lane_change)")
	sqltest.Equal(b.Session, true, "select incoming_rate > 0 from parley_store.lane_counts where lane = 'a'")
}
