package activation_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// claimMessages claims messages of the queue "jobs" under a number, commits, and gives their bodies and numbers.
func claimMessages(s sqltest.Session, claim string, top int) (bodies []string, ids []int64) {
	s.Helper()
	rows, err := s.DB.Query(s.Context(), `
		select message_id, parley.body_text(body) from parley.next_message_delivery('jobs', $1, claim => $2) order by message_id`, top, claim)
	if err != nil {
		s.Fatal(sqltest.Describe(err))
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var body string
		if err := rows.Scan(&id, &body); err != nil {
			s.Fatal(err)
		}
		bodies, ids = append(bodies, body), append(ids, id)
	}
	if rows.Err() != nil {
		s.Fatal(sqltest.Describe(rows.Err()))
	}
	return bodies, ids
}

func requireMessagesClaimed(s sqltest.Session, claim string, top int, want ...string) []int64 {
	s.Helper()
	bodies, ids := claimMessages(s, claim, top)
	if !slices.Equal(bodies, want) {
		s.Fatalf("claimed are %q, want %q", bodies, want)
	}
	return ids
}

func taken(s sqltest.Session, claim string, ids []int64) bool {
	s.Helper()
	return sqltest.Value[int](s, "select parley.finish_message_delivery('jobs', $1, claim => $2)", ids, claim) == len(ids)
}

func TestClaimedMessageIsPassedByAndTheOthersAreNot(t *testing.T) {
	t.Parallel()
	b := newDeliveredJobs(t, "")
	b.PutKeyed("k:1", "k:2")
	b.Put("a", "b", "c")
	ids := requireMessagesClaimed(b.Session, ours, 1, "k:1")
	requireMessagesClaimed(b.Session, theirs, 2, "a", "b")
	// Peeks show what is in hand, and so does the count.
	sqltest.Equal(b.Session, 5, "select count(*) from parley.peek_messages('jobs')")
	sqltest.Equal(b.Session, 3, "select count(*) from parley.delivery_claims where queue_name = 'jobs' and conversation_group_id is null")
	// Freezing takes away what a row shows of who has locked it.
	b.Exec("vacuum (freeze) parley._p_message")
	// Recording goes on beside a reader.
	tx := b.Begin()
	tx.RequireTaken(100, "c")
	if !taken(b.Session, ours, ids) {
		t.Error("it could not be taken")
	}
	tx.Rollback()
	requireMessagesClaimed(b.Session, ours, 10, "k:2")
	runOut(b)
	var got []string
	for range 4 {
		got = append(got, b.Take(100)...) // what has come back comes alone
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"a", "b", "c", "k:2"}) {
		t.Errorf("taken were %q", got)
	}
	sqltest.Equal(b.Session, 0, "select count(*) from parley.peek_messages('jobs')")
}

// A late reader, whose lock came after the claim, holds the row to the end of its transaction: recording waits for it, so that what was
// delivered is not left to be delivered again.
func TestDeliveryIsRecordedBehindALateReader(t *testing.T) {
	t.Parallel()
	b := newDeliveredJobs(t, "")
	b.Put("a", "b")
	ids := requireMessagesClaimed(b.Session, ours, 2, "a", "b")
	late := b.Connection()
	late.Exec("begin")
	late.Exec("select from parley._p_message as m where m.position = $1 for update", ids[1])
	recorder := b.Connection()
	recorded := make(chan bool, 1)
	pid := sqltest.Value[int](recorder, "select pg_backend_pid()")
	go func() {
		var count int
		err := recorder.DB.QueryRow(context.WithoutCancel(t.Context()), "select parley.finish_message_delivery('jobs', $1, claim => $2)", ids, ours).Scan(&count)
		recorded <- err == nil && count == len(ids)
	}()
	parleytest.Until(t, "recording waits, or has ended", func() bool {
		return len(recorded) > 0 || sqltest.Value[bool](b.Session, "select cardinality(pg_blocking_pids($1)) > 0", pid)
	})
	late.Exec("commit")
	if !parleytest.Receive(t, recorded, "the record") {
		t.Error("messages that were delivered are left")
	}
	sqltest.Equal(b.Session, 0, "select count(*) from parley.peek_messages('jobs')")
}

// A scan that read the queue before the first claim takes nothing that is claimed.
func TestTakeByTheShortWayPassesAClaimedMessageBy(t *testing.T) {
	t.Parallel()
	b := newDeliveredJobs(t, "")
	b.Put("a", "b")
	requireMessagesClaimed(b.Session, ours, 1, "a")
	b.Exec("update parley._p_queue set has_deliveries = false")
	b.RequireTaken(100, "b")
}

func TestClaimOfMessagesIsLostAsAWhole(t *testing.T) {
	t.Parallel()
	b := newDeliveredJobs(t, "")
	b.PutKeyed("k:1", "k:2", "k:3")
	ids := requireMessagesClaimed(b.Session, ours, 2, "k:1", "k:2")
	sqltest.Equal(b.Session, 2, "select parley.renew_delivery('jobs', $1, 600000)", ours)
	tx := b.Begin()
	if taken(tx, theirs, ids) || !taken(tx, ours, ids) {
		t.Error("the holder alone takes it")
	}
	tx.Rollback()
	// Half of it is in other hands.
	b.Exec("update parley._p_message_claim set leased_until = clock_timestamp() where position = $1", ids[0])
	sqltest.Equal(b.Session, 1, "select parley.renew_delivery('jobs', $1, 600000)", ours)
	requireMessagesClaimed(b.Session, theirs, 1, "k:1")
	if taken(b.Session, ours, ids) {
		t.Error("it is taken by who has lost it")
	}
	sqltest.Equal(b.Session, 3, "select count(*) from parley.peek_messages('jobs')")
	sqltest.Equal(b.Session, "0 f t", `
		select format('%s %s %s', attempts, is_set_aside, is_lost) from parley.fail_message_delivery('jobs', $1, 'no', claim => $2)`, ids[:1], ours)
	sqltest.Equal(b.Session, "1 f f", `
		select format('%s %s %s', attempts, is_set_aside, is_lost) from parley.fail_message_delivery('jobs', $1, 'no', claim => $2)`, ids[:1], theirs)
	// Those behind it of its key wait with it.
	requireMessagesClaimed(b.Session, ours, 10)
	b.Exec("update parley._p_message_failure set retry_at = clock_timestamp()")
	requireMessagesClaimed(b.Session, ours, 10, "k:1")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.set_aside_messages")
}

func TestQueueIsDroppedWithWhatIsClaimed(t *testing.T) {
	t.Parallel()
	b := newDeliveredJobs(t, "")
	b.Put("a")
	ids := requireMessagesClaimed(b.Session, ours, 1, "a")
	b.Exec("select parley.drop_queue('jobs', force => true)")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_message_claim")
	err := b.Refuses(208, "select parley.finish_message_delivery('jobs', $1, claim => $2)", ids, ours)
	if !strings.Contains(err.Message, "jobs") {
		t.Errorf("refused with %s", err.Message)
	}
}
