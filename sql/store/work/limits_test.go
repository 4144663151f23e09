package work_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Each limit of an argument holds where docs and comments say: the last value that is allowed is, and the next one is refused.
func TestLimitsOfTheStoreHoldAtTheirEnds(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec("select parley_store.set_lane('mail', 'a')")
	for _, c := range []struct {
		call                          string // with a place for the value
		below, least, largest, beyond string
	}{
		{"begin_content('mail', 1, chunk_bytes => %s)", "1023", "1024", "16777216", "16777217"},
		{"begin_content('mail', 1, term => %s)", "'0.9 seconds'", "'1 second'", "'7 days'", "'7 days 1 second'"},
		{"collect_content(%s)", "0", "1", "1000000", "1000001"},
		{"claim_lane('mail', 'a', %s)", "0", "1", "10000", "10001"},
		{"claim_lane('mail', 'a', lease => %s)", "'0.9 seconds'", "'1 second'", "'1 day'", "'25 hours'"},
		{"claim_work('mail', %s)", "0", "1", "10000", "10001"},
		{"claim_work('mail', lanes => %s)", "0", "1", "1000", "1001"},
		{"claim_work('mail', each => %s)", "0", "1", "10000", "10001"},
		{"claim_work('mail', lease => %s)", "'0.9 seconds'", "'1 second'", "'1 day'", "'25 hours'"},
		{"renew_leases('{}', %s)", "'0.9 seconds'", "'1 second'", "'1 day'", "'25 hours'"},
		{"expire_leases(%s)", "0", "1", "100000", "100001"},
		{"take_back_leases('mail', %s)", "0", "1", "100000", "100001"},
		{"retry_interval('default', %s)", "0", "1", "1000000", "1000001"},
		{"repair_lanes(%s)", "0", "1", "100000", "100001"},
		{"remove_idle_lanes(%s)", "0", "1", "100000", "100001"},
		{"set_lane('mail', 'b', lease_max => %s)", "-1", "0", "100000", "100001"},
		{"put_work('mail', array['a'], array[1]::bigint[], priority => %s)", "0", "1", "10", "11"},
		{"maintain_tracking(%s)", "-1", "0", "100", "101"},
		{"maintain(%s)", "'23 hours'", "'1 day'", "'100 years'", "'101 years'"},
	} {
		for value, allowed := range map[string]bool{c.below: false, c.least: true, c.largest: true, c.beyond: false, "null": strings.Contains(c.call, "each") || strings.Contains(c.call, "lease_max")} {
			_, err := b.DB.Exec(t.Context(), "select parley_store."+fmt.Sprintf(c.call, value))
			refused, is := errors.AsType[*pgconn.PgError](err)
			if allowed && err != nil || !allowed && (!is || refused.Code != "PS002") {
				t.Errorf(c.call+" gives %v", value, err)
			}
		}
		b.Exec("delete from parley_store._p_content")
	}
}

// The defaults of a call are those of the page of the store.
func TestDefaultsOfTheStoreAreThoseOfItsPage(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	for function, want := range map[string]string{
		"begin_content":     "chunk_bytes integer DEFAULT 524288, term interval DEFAULT '01:00:00'::interval",
		"collect_content":   "bodies integer DEFAULT 10000, generation_age interval DEFAULT '01:00:00'::interval, straggler_age interval DEFAULT '06:00:00'::interval",
		"claim_lane":        "items integer DEFAULT 100, lease interval DEFAULT '00:01:00'::interval",
		"claim_work":        "items integer DEFAULT 100, lanes integer DEFAULT 1, lease interval DEFAULT '00:01:00'::interval",
		"renew_lease":       "lease interval DEFAULT '00:01:00'::interval",
		"renew_leases":      "lease interval DEFAULT '00:01:00'::interval, waits boolean DEFAULT true",
		"remove_idle_lanes": "lanes integer DEFAULT 1000, idle interval DEFAULT '00:03:00'::interval",
		"repair_lanes":      "lanes integer DEFAULT 1000, overdue interval DEFAULT '00:01:00'::interval",
		"maintain":          "tracking_retention interval DEFAULT '30 days'::interval, lane_idle interval DEFAULT '00:03:00'::interval, leases boolean DEFAULT true",
	} {
		sqltest.Equal(b.Session, true, `select strpos(pg_get_function_arguments(p.oid), $2) > 0 from pg_proc as p
			where p.pronamespace = 'parley_store'::regnamespace and p.proname = $1`, function, want)
	}
}

// A generation is left after its age and no sooner, its stragglers are moved after theirs, and an idle lane goes after its time.
func TestAgesOfTheStoreCount(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutContent(1, 600000)
	// The template that the database was made of may be older.
	b.Exec("update parley_store._p_content_generation set opened_at = clock_timestamp() where opened_at > '-infinity'")
	age := func(by string) {
		b.Exec("update parley_store._p_content_generation set opened_at = opened_at - $1::interval where opened_at > '-infinity'", by)
	}
	slot := func() int16 { return sqltest.Value[int16](b.Session, "select parley_store._p_current_slot()") }
	age("59 minutes 30 seconds")
	b.Exec("select parley_store.collect_content()")
	if slot() != 1 {
		t.Error("a generation is left before its hour is over")
	}
	age("31 seconds")
	b.Exec("select parley_store.collect_content()")
	if slot() != 2 {
		t.Error("a generation is not left when its hour is over")
	}
	age("4 hours 59 minutes")
	b.Exec("select parley_store.collect_content()")
	sqltest.Equal(b.Session, 0, sqltest.LongLived)
	age("1 minute")
	b.Exec("select parley_store.collect_content()")
	sqltest.Equal(b.Session, 2, sqltest.LongLived)

	// A body that was begun has its term, from when it was begun.
	b.Exec("select parley_store.begin_content('mail', 7, term => '90 seconds')")
	sqltest.Equal(b.Session, true, "select begun_until between clock_timestamp() + interval '80 seconds' and clock_timestamp() + interval '90 seconds' from parley_store._p_content where begun_until is not null")
	b.Exec("select parley_store.set_lane('mail', 'p'), parley_store.put_work('mail', array['a'], array[1]::bigint[])")
	b.Claim("a", 1)
	sqltest.Equal(b.Session, true, "select until between clock_timestamp() + interval '50 seconds' and clock_timestamp() + interval '60 seconds' from parley_store._p_lease")
}

// A lane that is idle stays for its time, and goes when that is over; a share of the leases that is no whole number is rounded up, and is one
// at least.
func TestTimesAndSharesOfLanesCount(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.PutWork("a", 1, 1)
	claimNext(b.Session, 10, 10)
	b.Exec("select parley_store.complete_work(lease_id) from parley_store._p_lease")
	claimNext(b.Session, 10, 10)
	for visited, removed := range map[string]int{"2 minutes 50 seconds": 0, "3 minutes 1 second": 1} {
		tx := b.Begin()
		tx.Exec("update parley_store._p_lane_state set visited_at = clock_timestamp() - $1::interval", visited)
		sqltest.Equal(tx, removed, "select parley_store.remove_idle_lanes()")
		tx.Rollback()
	}
	for share, leases := range map[int]int{1: 1, 20: 1, 21: 2, 50: 3, 100: 5} {
		tx := b.Begin()
		tx.Exec("select parley_store.set_lane('mail', 'b', lease_max => 5, priority_shares => array_fill($1::integer, array[10]))", share)
		tx.PutWork("b", 1, 10)
		for range 6 {
			tx.Claim("b", 1)
		}
		sqltest.Equal(tx, leases, "select count(*)::int from parley_store._p_lease")
		tx.Rollback()
	}
}
