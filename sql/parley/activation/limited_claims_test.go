package activation_test

import (
	"sync"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

const claims = "select count(*) from parley.claim('jobs', 10)"

// A claim counts as long as it is held, whatever ends it, and not only to the end of its transaction.
func TestClaimsCountTowardsTheConcurrencyOfTheirQueue(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(b *sqltest.Broker, claim string, id int64){
		"complete": func(b *sqltest.Broker, claim string, _ int64) {
			sqltest.Equal(b.Session, true, "select parley.complete('jobs', $1)", claim)
		},
		"given back": func(b *sqltest.Broker, claim string, _ int64) {
			b.Exec("select parley.give_back('jobs', $1, delay => '1 hour')", claim)
		},
		"cancelled": func(b *sqltest.Broker, _ string, id int64) {
			sqltest.Equal(b.Session, true, "select parley.cancel('jobs', $1, running => true)", id)
		},
		"lost": func(b *sqltest.Broker, _ string, id int64) {
			b.Exec("update parley._p_message_claim set leased_until = now() - interval '1 second' where position = $1", id)
		},
		"released": func(b *sqltest.Broker, claim string, _ int64) {
			sqltest.Equal(b.Session, 1, "select parley.release_delivery('jobs', $1)", claim)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewJobs(t)
			b.Exec("select parley.set_queue_limits('jobs', concurrency => 2)")
			b.Put("a", "b", "c", "d")
			claim, id, _ := claimOne(b.Session)
			taking := b.Begin()
			taking.RequireTaken(1, "b")
			sqltest.Equal(b.Session, 0, claims)
			b.RequireTaken(1)
			end(b, claim, id)
			sqltest.Equal(b.Session, 1, "select count(*) from parley.claim('jobs')")
			sqltest.Equal(b.Session, 0, claims)
			taking.Rollback()
			sqltest.Equal(b.Session, 1, "select count(*) from parley.claim('jobs')")
			b.RequireTaken(1)
		})
	}
}

// A role that may take from a queue sees its limits and how many places are in use; others do not.
func TestLimitsAreShown(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.set_queue_limits('jobs', concurrency => 3, shared => 'api: 2', rate => 7, per => '1 minute', ageing => '1 hour')")
	b.Put("a", "b")
	taking := b.Begin()
	taking.RequireTaken(1, "a")
	sqltest.Equal(b.Session, 1, "select count(*) from parley.claim('jobs')")
	sqltest.Equal(b.Session, "jobs 3 api: 2 2 7 00:01:00 01:00:00", `
		select concat_ws(' ', queue_name, concurrency, shared, in_use, rate, per, ageing) from parley.queue_limits`)
	sqltest.Equal(b.As(b.Role("nobody")), 0, "select count(*) from parley.queue_limits")
	b.Exec("select parley.set_queue_limits('jobs', ageing => '1 hour')")
	sqltest.Equal(b.Session, "0 01:00:00", "select concat_ws(' ', concurrency, shared, in_use, rate, per, ageing) from parley.queue_limits")
}

func TestClaimThatIsRolledBackGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.create_queue('more', kind => 'SIMPLE')")
	b.Exec("select parley.set_queue_limits(q, concurrency => 1, shared => 'api') from unnest(array['jobs', 'more']) as q")
	b.Put("a", "b")
	b.Exec("select parley.put('more', 'x')")
	tx := b.Begin()
	sqltest.Equal(tx, 2, claims)
	sqltest.Equal(b.Session, 0, "select count(*) from parley.claim('more')")
	tx.Rollback()
	sqltest.Equal(b.Session, 1, "select count(*) from parley.claim('more')")
	sqltest.Equal(b.Session, 0, claims)
	// A queue that is dropped takes its claims with it.
	b.Exec("select parley.drop_queue('more', force => true)")
	sqltest.Equal(b.Session, 2, claims)
}

// Of many that ask at once no more than allowed get something: who waits for the lock of a place sees who has it by then.
func TestSessionsThatClaimAtOnceKeepTheConcurrency(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.set_queue_limits('jobs', concurrency => 3)")
	b.Exec("select parley.put('jobs', 'm') from generate_series(1, 120)")
	var workers sync.WaitGroup
	for range 6 {
		s := b.Connection()
		workers.Go(func() {
			for sqltest.Value[bool](s, "select exists (select from parley.peek_messages('jobs', 1))") {
				rows := sqltest.Values[string](s, "select claim::text from parley.claim('jobs')")
				if len(rows) == 0 {
					continue
				}
				if held := sqltest.Value[int](s, "select count(distinct claim) from parley.delivery_claims"); held > 3 {
					s.Errorf("%d claims are held", held)
				}
				if !sqltest.Value[bool](s, "select parley.complete('jobs', $1)", rows[0]) {
					s.Error("a claim was lost")
				}
			}
		})
	}
	workers.Wait()
}

func TestClaimsCountTowardsTheRateOfTheirQueue(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.set_queue_limits('jobs', rate => 3, per => '1 hour')")
	b.Put("a")
	// A message that was admitted and not there is not counted.
	sqltest.Equal(b.Session, 1, claims)
	b.Put("b", "c", "d")
	sqltest.Equal(b.Session, true, "select parley.seconds_to_next_message_delivery('jobs') = 0")
	sqltest.Equal(b.Session, 2, claims)
	sqltest.Equal(b.Session, 0, claims)
	b.RequireTaken(1)
	sqltest.Equal(b.Session, true, "select parley.seconds_to_next_message_delivery('jobs') between 600 and 1200")
}

// Messages age for long work and web addresses as they do for TAKE.
func TestClaimedMessagesAge(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.set_queue_limits('jobs', ageing => '1 hour')")
	b.Put("old")
	b.Exec("update parley._p_message set enqueued_at = now() - interval '3 hours'")
	b.Exec("select parley.put('jobs', 'high'::text, priority => 7)")
	const claim = "select parley.body_text(body) from parley.claim('jobs')"
	sqltest.Equal(b.Session, "old", claim)
	sqltest.Equal(b.Session, "high", claim)
}

// Work that would be in vain is set aside at once, and counted as one failure.
func TestWorkThatIsInVainIsSetAside(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.set_retry_policy('jobs')")
	b.Put("a", "b", "c")
	claim := sqltest.Value[string](b.Session, "select claim from parley.claim('jobs', 2) limit 1")
	sqltest.Equal(b.Session, true, "select is_set_aside and retry_at is null from parley.give_back('jobs', $1, 'in vain', is_final => true)", claim)
	sqltest.Equal(b.Session, "a 1 in vain,b 1 in vain", `
		select string_agg(concat_ws(' ', parley.body_text(body), rollbacks, error), ',' order by message_id) from parley.set_aside_messages`)
	sqltest.Equal(b.Session, true, "select is_set_aside is null from parley.give_back('jobs', $1, is_final => true)", claim)
	b.RequireTaken(5, "c")
}

func TestClaimedMessagesDoNotWait(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.set_retry_policy('jobs', first => '1 hour', longest => '1 hour')")
	b.Put("a", "b", "c")
	claim, _, _ := claimOne(b.Session)
	const counts = "select concat_ws(' ', waiting_messages, taken_messages, retrying_messages) from parley.simple_queues where queue_name = 'jobs'"
	sqltest.Equal(b.Session, "2 1 0", counts)
	b.Exec("select parley.give_back('jobs', $1)", claim)
	sqltest.Equal(b.Session, "2 0 1", counts)
	b.Exec("update parley._p_message_wait set retry_at = now() - interval '1 second'")
	sqltest.Equal(b.Session, 3, "select count(*) from generate_series(1, 3) as n, lateral (select parley.claim('jobs') where n > 0) as c")
	sqltest.Equal(b.Session, "0 3 0", counts)
}
