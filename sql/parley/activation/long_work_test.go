package activation_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// claimOne claims one message of the queue jobs and gives the claim, its number and which attempt it is.
func claimOne(s sqltest.Session) (claim string, id int64, attempt int) {
	s.Helper()
	row := s.DB.QueryRow(s.Context(), "select c.claim::text, c.message_id, c.attempt from parley.claim('jobs') as c")
	if err := row.Scan(&claim, &id, &attempt); err != nil {
		s.Fatal(err)
	}
	return claim, id, attempt
}

func TestLongWorkHoldsItsMessageWithoutATransaction(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.set_retry_policy('jobs', first => '1 hour', longest => '1 hour', attempts => 3, losses => 2)")
	b.PutKeyed("k:1", "k:2")
	b.Put("other")
	claim, id, attempt := claimOne(b.Session)
	if attempt != 1 {
		t.Errorf("attempt %d", attempt)
	}
	sqltest.Equal(b.Session, true, `select parley.renew('jobs', $1, progress => '{"done": 5}')`, claim)
	sqltest.Equal(b.Session, true, `select progress = '{"done": 5}' and message_id = $1 from parley.delivery_claims`, id)
	b.RequireTaken(10, "other")
	sqltest.Equal(b.Session, false, "select parley.cancel('jobs', $1)", id)

	// It completes with the results, or not at all.
	tx := b.Begin()
	sqltest.Equal(tx, true, "select parley.complete('jobs', $1)", claim)
	tx.Rollback()
	sqltest.Equal(b.Session, true, "select parley.complete('jobs', $1)", claim)
	sqltest.Equal(b.Session, "f f", "select concat_ws(' ', parley.complete('jobs', $1), parley.renew('jobs', $1))", claim)

	// It fails, and waits; then its worker dies, twice.
	claim, id, _ = claimOne(b.Session)
	sqltest.Equal(b.Session, true, "select retry_at > now() + interval '50 minutes' and not is_set_aside from parley.give_back('jobs', $1, 'refused')", claim)
	for losses := 1; losses <= 2; losses++ {
		b.Exec("update parley._p_message_wait set retry_at = now() - interval '1 second'")
		if claim, _, attempt = claimOne(b.Session); attempt != losses+1 {
			t.Errorf("attempt %d after %d losses", attempt, losses-1)
		}
		b.Exec("update parley._p_message_claim set leased_until = now() - interval '1 second'")
		sqltest.Equal(b.Session, false, "select parley.renew('jobs', $1)", claim)
		sqltest.Equal(b.Session, true, "select retry_at is null and is_set_aside is null from parley.give_back('jobs', $1)", claim)
		sqltest.Equal(b.Session, 0, "select count(*) from parley.claim('jobs')")
	}
	sqltest.Equal(b.Session, "3 refused", "select concat_ws(' ', rollbacks, error) from parley.set_aside_messages where message_id = $1", id)
}

func TestARefusedLeaseIsNamedAsItWasGiven(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	for lease, want := range map[string]string{"null": "lease is null", "'1 year'": "lease is 1 year", "'-1 s'": "lease is -00:00:01"} {
		for _, call := range []string{"parley.claim('jobs', lease => " + lease + ")", "parley.renew('jobs', gen_random_uuid(), " + lease + ")"} {
			if got := b.Refuses(8402, "select "+call); got.Message != want || got.Detail != "Service Broker error 8402. 00:00:00.001 to 01:00:00 are allowed." {
				t.Errorf("%s: %s; %s", call, got.Message, got.Detail)
			}
		}
	}
	if got := b.Refuses(8402, "select parley.set_queue_limits('jobs', rate => 1, per => null)"); got.Message != "per is null" {
		t.Error(got.Message)
	}
}

func TestRunningWorkIsCancelled(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Put("a")
	claim, id, _ := claimOne(b.Session)
	sqltest.Equal(b.Session, true, "select parley.cancel('jobs', $1, running => true)", id)
	sqltest.Equal(b.Session, "f f", "select concat_ws(' ', parley.renew('jobs', $1), parley.complete('jobs', $1))", claim)
	sqltest.Equal(b.Session, 0, "select (select count(*) from parley._p_message) + (select count(*) from parley._p_message_claim)")
	b.Refuses(8402, "select parley.claim('jobs', lease => '2 hours')")
	b.Refuses(8402, "select parley.claim('Answering')")
	b.As(b.Role("nobody")).Refuses(229, "select parley.claim('jobs')")
}
