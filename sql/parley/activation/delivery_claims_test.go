package activation_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
)

const (
	ours   = "11111111-1111-4111-8111-111111111111"
	theirs = "22222222-2222-4222-8222-222222222222"
)

// claimed claims the next delivery under a number, commits, and gives its bodies, handle and positions.
func claimed(s sqltest.Session, claim string, leaseMS int) (bodies []string, handle string, orders []int64) {
	s.Helper()
	rows, err := s.DB.Query(s.Context(), `
		select conversation_handle::text, queuing_order, convert_from(message_body, 'UTF8')
		from parley.next_delivery('Answering', top => 10, claim => $1, lease_ms => $2)`, claim, leaseMS)
	if err != nil {
		s.Fatal(sqltest.Describe(err))
	}
	defer rows.Close()
	for rows.Next() {
		var order int64
		var body string
		if err := rows.Scan(&handle, &order, &body); err != nil {
			s.Fatal(err)
		}
		bodies, orders = append(bodies, body), append(orders, order)
	}
	if rows.Err() != nil {
		s.Fatal(sqltest.Describe(rows.Err()))
	}
	return bodies, handle, orders
}

func requireClaimed(s sqltest.Session, claim string, want ...string) (handle string, orders []int64) {
	s.Helper()
	got, handle, orders := claimed(s, claim, 600000)
	if !slices.Equal(got, want) {
		s.Fatalf("claimed are %q, want %q", got, want)
	}
	return handle, orders
}

func recorded(s sqltest.Session, claim, handle string) bool {
	s.Helper()
	return sqltest.Value[bool](s, "select parley.record_delivery('Answering', $1, $2::uuid)", claim, handle)
}

// runOut lets the lease of all claims end now.
func runOut(b *sqltest.Broker) {
	b.Helper()
	b.Exec("update parley._p_delivery_claim set leased_until = clock_timestamp()")
	b.Exec("update parley._p_message_claim set leased_until = clock_timestamp()")
}

// newClaimed gives a test three conversations, of which another daemon delivers the first, whose group has a second one.
func newClaimed(t *testing.T) (b *sqltest.Broker, first []string) {
	t.Helper()
	b = sqltest.NewWorld(t)
	b.Exec(hook)
	handles := []string{b.Dialog(), b.Dialog(), b.Dialog(), b.Dialog()}
	for i, handle := range handles {
		b.Send(handle, sqltest.Request, string(rune('a'+i)))
	}
	b.Exec("select parley.move_conversation($1::uuid, $2::uuid)", b.FarHandle(handles[1]), b.GroupOf(b.FarHandle(handles[0])))
	requireClaimed(b.Session, ours, "a")
	return b, handles[:2]
}

func TestClaimedGroupIsPassedByAndTheOthersAreNot(t *testing.T) {
	t.Parallel()
	const bodies = "select convert_from(message_body, 'UTF8') from "
	for _, c := range []struct{ name, settings, statement, want string }{
		{"RECEIVE", "", bodies + "parley.receive('Answering')", "c"},
		{"RECEIVE with retention", "select parley.alter_queue('Answering', retention => true)", bodies + "parley.receive('Answering')", "c"},
		{"RECEIVE of many groups", "", bodies + "parley.receive('Answering', groups => 10)", "c"},
		{"RECEIVE that waits", "", bodies + "parley.receive('Answering', timeout => 100)", "c"},
		// A reader that has read the queue before the first claim takes the short way, and finds it with the lock held.
		{"RECEIVE by the short way", "update parley._p_queue set has_deliveries = false", bodies + "parley.receive('Answering')", "c"},
		{
			"RECEIVE of many groups by the short way", "update parley._p_queue set has_deliveries = false",
			bodies + "parley.receive('Answering', groups => 10)", "c",
		},
		{"GET CONVERSATION GROUP", "", `
			select parley.body_text(r.message_body) from (select parley.get_conversation_group('Answering') as id) as g
			cross join lateral parley.receive('Answering', conversation_group_id => g.id) as r`, "c"},
		{"GET CONVERSATION GROUP of many", "", `
			select parley.body_text(r.message_body) from parley.get_conversation_groups('Answering', 10) as g (id)
			cross join lateral parley.receive('Answering', conversation_group_id => g.id) as r`, "c d"},
		{"another delivery", "", bodies + "parley.next_delivery('Answering', top => 10, groups => 10)", "c d"},
		{"RECEIVE of the named group that waits", "", bodies + `
			parley.receive('Answering', timeout => 100, conversation_group_id => (
				select c.conversation_group_id from parley.delivery_claims as c
			))`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, first := newClaimed(t)
			if c.settings != "" {
				b.Exec(c.settings)
			}
			tx := b.Begin()
			if got := strings.Join(sqltest.Values[string](tx, c.statement), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if !strings.Contains(c.name, "short way") && !recorded(b.Session, ours, b.FarHandle(first[0])) {
				t.Error("the delivery could not be recorded beside the reader")
			}
			tx.Rollback()
		})
	}
}

// A conversation that is alone in its group is taken by the short way, which asks for no claims, unless its claim has marked it.
func TestShortWayOfReceiveMeetsNoClaimedConversation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	b.Send(b.Dialog(), sqltest.Request, "x")
	b.Send(b.Dialog(), sqltest.Request, "y")
	requireClaimed(b.Session, ours, "x")
	b.Exec("update parley._p_queue set has_deliveries = false")
	for _, groups := range []string{"", ", groups => 10"} {
		tx := b.Begin()
		if got := sqltest.Values[string](tx, "select parley.body_text(message_body) from parley.receive('Answering'"+groups+")"); !slices.Equal(got, []string{"y"}) {
			t.Errorf("received %q", got)
		}
		tx.Rollback()
	}
}

func TestTheHolderOfAClaimRecordsWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "1")
	b.Send(initiator, sqltest.Request, "2")
	handle, orders := requireClaimed(b.Session, ours, "1", "2")
	requireClaimed(b.Session, theirs)
	// A message that comes meanwhile waits behind.
	b.Send(initiator, sqltest.Request, "3")
	tx := b.Begin()
	if recorded(tx, theirs, handle) {
		t.Error("another claim has it")
	}
	if !recorded(tx, ours, handle) || !finish(tx, handle, orders) {
		t.Fatal("it could not be recorded")
	}
	tx.Rollback()
	// With the rollback the claim is there again.
	requireClaimed(b.Session, theirs)
	tx = b.Begin()
	if !recorded(tx, ours, handle) || !finish(tx, handle, orders) {
		t.Fatal("it could not be recorded again")
	}
	tx.Exec("commit")
	if recorded(b.Session, ours, handle) {
		t.Error("it is recorded twice")
	}
	requireClaimed(b.Session, theirs, "3")
}

func TestClaimThatRunsOutIsFreeAndItsHolderRecordsNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	b.Send(b.Dialog(), sqltest.Request, "x")
	handle, orders := requireClaimed(b.Session, ours, "x")
	sqltest.Equal(b.Session, 1, "select parley.renew_delivery('Answering', $1, 600000)", ours)
	runOut(b)
	sqltest.Equal(b.Session, 0, "select parley.renew_delivery('Answering', $1, 600000)", ours)
	// As long as nobody has taken it the outcome counts.
	tx := b.Begin()
	if !recorded(tx, ours, handle) || !finish(tx, handle, orders) {
		t.Error("an outcome that comes late is refused")
	}
	tx.Rollback()
	ids := sqltest.Value[string](b.Session, "select message_id::text from parley.peek('Answering')")
	sqltest.Equal(b.Session, ids, "select message_id::text from parley.next_delivery('Answering', claim => $1)", theirs)
	for _, claim := range []string{ours, "33333333-3333-4333-8333-333333333333"} {
		if recorded(b.Session, claim, handle) {
			t.Errorf("claim %s has it", claim)
		}
		sqltest.Equal(b.Session, "0 f t", `
			select format('%s %s %s', attempts, is_set_aside, is_lost) from parley.fail_delivery('Answering', $1::uuid, 'no', claim => $2)`, handle, claim)
	}
	sqltest.Equal(b.Session, 0, "select count(*) from parley.delivery_failures")
	sqltest.Equal(b.Session, "1 f f", `
		select format('%s %s %s', attempts, is_set_aside, is_lost) from parley.fail_delivery('Answering', $1::uuid, 'no', claim => $2)`, handle, theirs)
	// A reader may take what has run out, and then it is not finished.
	b.Exec("delete from parley._p_delivery_failure")
	handle, orders = requireClaimed(b.Session, ours, "x")
	runOut(b)
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
	tx = b.Begin()
	if recorded(tx, ours, handle) && finish(tx, handle, orders) {
		t.Error("what another reader has received is finished")
	}
	tx.Rollback()
}

func TestReleasedClaimIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	b, _ := newClaimed(t)
	sqltest.Equal(b.Session, 0, "select parley.release_delivery('Answering', $1)", theirs)
	sqltest.Equal(b.Session, 1, "select parley.release_delivery('Answering', claim) from parley.delivery_claims")
	requireClaimed(b.Session, theirs, "a")
}

// Its snapshot does not show the claim.
func TestReaderWithAnOlderSnapshotGetsNothingThatIsClaimed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, claim, receive, want string }{
		{"RECEIVE", "select from parley.next_delivery('Answering', claim => gen_random_uuid())", "select parley.receive('Answering')", "40001"},
		{"GET CONVERSATION GROUP", "select from parley.next_delivery('Answering', claim => gen_random_uuid())", "select parley.get_conversation_group('Answering')", "40001"},
		{"TAKE", "select from parley.next_message_delivery('jobs', claim => gen_random_uuid())", "select parley.take('jobs')", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewJobs(t)
			b.Send(b.Dialog(), sqltest.Request, "x")
			b.Put("x")
			tx := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			sqltest.Equal(tx, 2, "select count(*) from parley._p_message")
			b.Exec(c.claim)
			tag, err := tx.DB.Exec(t.Context(), c.receive)
			if c.want != "" && (err == nil || !strings.Contains(sqltest.Describe(err), c.want)) || c.want == "" && err != nil || tag.RowsAffected() > 0 {
				t.Errorf("it ended with %v, %v", tag, err)
			}
		})
	}
}

// As it waits for a lock. The holder needs the group to record, and gets it.
func TestReaderOfANamedGroupAndMoveWaitForTheEndOfADelivery(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, statement string }{
		{"RECEIVE of a conversation", "select parley.receive('Answering', conversation_handle => $1::uuid)"},
		{"RECEIVE of a group", `
			select parley.receive('Answering', conversation_group_id => e.conversation_group_id)
			from parley.conversation_endpoints as e where e.conversation_handle = $1::uuid`},
		{"MOVE out of it", "select parley.move_conversation($1::uuid, (select conversation_group_id from public.other))"},
		{"MOVE into it", `
			select parley.move_conversation(o.conversation_handle, e.conversation_group_id)
			from parley.conversation_endpoints as e, public.other as o where e.conversation_handle = $1::uuid`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec(hook)
			initiator, other := b.Dialog(), b.Dialog()
			b.Send(initiator, sqltest.Request, "x")
			b.Send(other, sqltest.Request, "other")
			b.Exec(`create table public.other as select e.conversation_handle, e.conversation_group_id
				from parley.conversation_endpoints as e where e.conversation_handle = '` + b.FarHandle(other) + `'`)
			handle, orders := requireClaimed(b.Session, ours, "x")
			w := b.Waiting(c.statement, handle)
			tx := b.Begin()
			if !recorded(tx, ours, handle) || !finish(tx, handle, orders) {
				t.Error("it could not be recorded while somebody waits")
			}
			tx.Exec("commit")
			w.RequireSuccess()
		})
	}
}

func TestEndDoesNotWaitForADeliveryOfWhichNothingIsRecordedThen(t *testing.T) {
	t.Parallel()
	b, first := newClaimed(t)
	handle := b.FarHandle(first[0])
	b.Exec("select parley.end_conversation($1::uuid)", handle)
	if recorded(b.Session, ours, handle) {
		t.Error("the delivery of a conversation that has ended is recorded")
	}
	sqltest.Equal(b.Session, "0 t", "select format('%s %s', attempts, is_lost) from parley.fail_delivery('Answering', $1::uuid, 'no', claim => $2)", handle, ours)
	b.Exec("select parley.release_delivery('Answering', $1)", ours)
	// The other conversation of the group goes on.
	requireClaimed(b.Session, theirs, "b")
}

func TestServiceThatMovesToAnotherQueueTakesTheClaimAlong(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	b.Send(b.Dialog(), sqltest.Request, "x")
	handle, _ := requireClaimed(b.Session, ours, "x")
	b.Exec("select parley.create_queue('Elsewhere')")
	b.Exec("select parley.alter_service('//test/Answerer', queue => 'Elsewhere')")
	if got := b.Bodies("Elsewhere"); len(got) > 0 {
		t.Errorf("received %q beside the delivery", got)
	}
	if recorded(b.Session, ours, handle) {
		t.Error("the delivery from the queue where it was is recorded")
	}
	b.Exec("select parley.release_delivery('Answering', $1)", ours)
	if got := b.Bodies("Elsewhere"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

func TestClaimGoesWithItsService(t *testing.T) {
	t.Parallel()
	b, first := newClaimed(t)
	handle := b.FarHandle(first[0])
	b.Exec("select parley.drop_service('//test/Answerer')")
	if recorded(b.Session, ours, handle) {
		t.Error("the delivery of a conversation that is gone is recorded")
	}
	b.Exec("select parley.drop_queue('Answering')")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_delivery_claim")
	b.Refuses(208, "select parley.renew_delivery('Answering', $1, 1000)", ours)
}

func TestClaimOfNobodyIsForgotten(t *testing.T) {
	t.Parallel()
	b, _ := newClaimed(t)
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, 1, "select count(*) from parley._p_delivery_claim")
	b.Exec("update parley._p_delivery_claim set leased_until = clock_timestamp() - interval '2 minutes'")
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_delivery_claim")
}

// Its readers take the short way again.
func TestQueueThatHasLostItsWebhookHasNoDeliveries(t *testing.T) {
	t.Parallel()
	b, _ := newClaimed(t)
	const has = "select has_deliveries from parley._p_queue where lookup_name = 'Answering'"
	b.Exec("select parley.drop_external_activation('Answering')")
	sqltest.Equal(b.Session, true, has)
	b.Exec(hook)
	b.Exec("select parley.release_delivery('Answering', $1)", ours)
	b.Exec("select parley.drop_external_activation('Answering')")
	sqltest.Equal(b.Session, false, has)
}

func TestRefusalsOfClaimedDeliveriesAreNoPoisonAndRollbacksOfTheirRecordAre(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	b.Exec("select parley.alter_webhook_activation('Answering', max_attempts => 0)")
	b.Send(b.Dialog(), sqltest.Request, "x")
	const rollbacks = "select rollbacks from parley.queue_backlogs('Answering')"
	for range 8 {
		handle, _ := requireClaimed(b.Session, ours, "x")
		b.Exec("select parley.fail_delivery('Answering', $1::uuid, 'no', claim => $2)", handle, ours)
		b.Exec("update parley._p_delivery_failure set retry_at = now()")
	}
	sqltest.Equal(b.Session, 0, rollbacks)
	for range 3 {
		handle, orders := requireClaimed(b.Session, ours, "x")
		tx := b.Begin()
		if !recorded(tx, ours, handle) || !finish(tx, handle, orders) {
			t.Fatal("it could not be recorded")
		}
		tx.Rollback()
		b.Exec("select parley.release_delivery('Answering', $1)", ours)
	}
	// A rollback is counted by the reader that meets the message after it.
	sqltest.Equal(b.Session, 2, rollbacks)
}
