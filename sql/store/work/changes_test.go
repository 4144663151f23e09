package work_test

import (
	"fmt"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Work that gets another priority counts under that one, whether it is suspended or waits, and comes in its order.
func TestWorkThatGetsAnotherPriorityCountsUnderIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec(`select parley_store.put_work('mail', array['a', 'a', 'a'], array[1, 2, 3]::bigint[])`)
	b.Exec(`select parley_store.suspend_work('mail', '{"subjects": [3]}', 'x')`)
	counts := func(want string) {
		t.Helper()
		sqltest.Equal(b.Session, want, "select by_priority::text from parley_store.lane_counts where lane = 'a'")
	}
	counts(`{"5": 3}`)
	sqltest.Equal(b.Session, 2, `select parley_store.change_work('mail',
		array(select item_id from parley_store.work_items where subject in (2, 3)), priority => 9)`)
	counts(`{"5": 1, "9": 2}`)
	b.Exec("select parley_store.change_work('mail', array(select item_id from parley_store.work_items where subject = 1), expires_at => now() + interval '1 day')")
	counts(`{"5": 1, "9": 2}`)
	sqltest.Equal(b.Session, "1 5, 2 9, 3 9", "select string_agg(subject || ' ' || priority, ', ' order by subject) from parley_store.work_items")
}

// A lane has no more leases than it may have, of those who claim it by name too.
func TestLeasesOfALaneThatIsClaimedByNameAreBounded(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec("select parley_store.set_lane('mail', 'a', lease_max => 2)")
	b.PutWork("a", 1, 5)
	b.RequireClaimed(b.Claim("a", 1), []int64{1})
	b.RequireClaimed(b.Claim("a", 1), []int64{2})
	b.RequireClaimed(b.Claim("a", 1), []int64{})
}

// Work that has no end of its own is given up when its policy is over, and only that.
func TestWorkWithoutAnEndIsGivenUpByItsPolicy(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 2)
	b.RequireClaimed(b.Claim("a", 2), []int64{1, 2})
	b.Exec("update parley_store._p_in_flight set since = now() - interval '49 hours' where subject = 1")
	sqltest.Equal(b.Session, 1, `select count(*)::int from parley_store._p_in_flight as f
		where f.subject = 1 and array[f.item_id] = parley_store.retry_work(f.lease_id, null, 'x')`)
	sqltest.Equal(b.Session, "DELAYED", "select state from parley_store.work_items where subject = 2")
}

// A body has whole chunks but for the last, and holders that there are.
func TestBodiesHaveWholeChunksAndHolders(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	id := sqltest.Value[int64](b.Session, "select content_id from parley_store.begin_content('mail', 1, 1024)")
	b.Exec("select parley_store.append_content($1, 0, convert_to(repeat('x', 1000), 'UTF8'))", id)
	b.Exec("select parley_store.append_content($1, 1, convert_to(repeat('y', 25), 'UTF8'))", id)
	b.Fails("PS004", fmt.Sprintf("select parley_store.finish_content(%d, 1025, sha256('y'))", id))
	whole := b.PutContent(2, 2000)
	b.Fails("PS002", fmt.Sprintf("select parley_store.share_content(%d, 'mail', 2, null)", whole))
	b.Fails("PS001", fmt.Sprintf("select parley_store.share_content(%d, 'another', 2, 3)", whole))
}
