package activation_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

const hook = `select parley.create_webhook_activation('Answering', 'https://example.com', first_retry_ms => 3600000, longest_retry_ms => 7200000)`

// nextOf shows the bodies of the next delivery, with the handle and positions that finishing it needs.
func nextOf(s sqltest.Session, top int) (bodies []string, handle string, orders []int64) {
	s.Helper()
	rows, err := s.DB.Query(s.Context(), `
		select conversation_handle::text, queuing_order, convert_from(message_body, 'UTF8') from parley.next_delivery('Answering', $1)`, top)
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

func requireNext(s sqltest.Session, want ...string) (handle string, orders []int64) {
	s.Helper()
	got, handle, orders := nextOf(s, 100)
	if !slices.Equal(got, want) {
		s.Fatalf("the next delivery is %q, want %q", got, want)
	}
	return handle, orders
}

func finish(s sqltest.Session, handle string, orders []int64) bool {
	s.Helper()
	return sqltest.Value[bool](s, "select parley.finish_delivery('Answering', $1::uuid, $2)", handle, orders)
}

func TestDeliveryIsReceivedWhenItIsFinished(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "1")
	b.Exec("select parley.send_batch($1::uuid, '//test/Request', array['2', '3'])", initiator)

	tx := b.Begin()
	got, handle, orders := nextOf(tx, 2)
	if !slices.Equal(got, []string{"1", "2"}) {
		t.Fatalf("shown were %q", got)
	}
	if !finish(tx, handle, orders) {
		t.Fatal("it could not be finished")
	}
	tx.Commit()
	tx = b.Begin()
	handle, orders = requireNext(tx, "3")
	if !finish(tx, handle, orders) {
		t.Fatal("it could not be finished")
	}
	requireNext(tx)
	tx.Commit()
}

func TestDeliveryShowsSequenceNumbersAndStableIDs(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	initiator := b.Dialog()
	b.Exec("select parley.send_batch($1::uuid, '//test/Request', array['1', '2', '3'])", initiator)
	const next = `select format('%s %s', message_sequence_number, message_id) from parley.next_delivery('Answering', 10)`
	first := sqltest.Values[string](b.Session, next)
	if len(first) != 3 || first[2][:2] != "2 " {
		t.Fatalf("shown were %q", first)
	}
	if again := sqltest.Values[string](b.Session, next); !slices.Equal(first, again) {
		t.Errorf("first %q, then %q", first, again)
	}
	tx := b.Begin()
	_, handle, orders := nextOf(tx, 1)
	finish(tx, handle, orders)
	tx.Commit()
	if rest := sqltest.Values[string](b.Session, next); !slices.Equal(rest, first[1:]) {
		t.Errorf("left are %q, want %q", rest, first[1:])
	}
}

func TestDeliveryLocksItsGroupAgainstReaders(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	first, second := b.Dialog(), b.Dialog()
	b.Send(first, sqltest.Request, "first")
	b.Send(second, sqltest.Request, "second")
	one, two := b.Begin(), b.Begin()
	requireNext(one, "first")
	requireNext(two, "second")
	if got := b.Bodies("Answering"); len(got) > 0 {
		t.Errorf("received %q beside the deliveries", got)
	}
	requireNext(b.Session)
	one.Rollback()
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"first"}) {
		t.Errorf("received %q", got)
	}
}

func TestFailedDeliveryKeepsItsConversationWaitingAndNoOther(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	first, second := b.Dialog(), b.Dialog()
	b.Send(first, sqltest.Request, "first 1")
	b.Send(first, sqltest.Request, "first 2")
	b.Send(second, sqltest.Request, "second")
	_, handle, _ := nextOf(b.Session, 1)
	for attempt := 1; attempt <= 2; attempt++ {
		sqltest.Equal(b.Session, attempt, "select attempts from parley.fail_delivery('Answering', $1::uuid, 'no')", handle)
	}
	sqltest.Equal(b.Session, 2, "select attempts from parley.fail_delivery('Answering', $1::uuid, 'not there', is_attempt => false)", handle)
	sqltest.Equal(b.Session, "3 2 not there t", `
		select format('%s %s %s %s', failures, attempts, last_error, retry_at > now() + interval '1 hour') from parley.delivery_failures`)
	sqltest.Equal(b.Session, true, "select parley.seconds_to_next_delivery('Answering') between 3600 and 7200")

	tx := b.Begin()
	second, orders := requireNext(tx, "second")
	finish(tx, second, orders)
	requireNext(tx)
	tx.Commit()

	// When its time comes it goes on where it was.
	b.Exec("update parley._p_delivery_failure set retry_at = now()")
	tx = b.Begin()
	handle, orders = requireNext(tx, "first 1", "first 2")
	finish(tx, handle, orders)
	tx.Commit()
	sqltest.Equal(b.Session, 0, "select count(*) from parley.delivery_failures")
	sqltest.Equal(b.Session, true, "select parley.seconds_to_next_delivery('Answering') is null")
}

func TestFailedDeliveriesAreNoPoison(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	b.Exec("select parley.alter_webhook_activation('Answering', max_attempts => 0)")
	b.Send(b.Dialog(), sqltest.Request, "x")
	for range 20 {
		tx := b.Begin()
		handle, _ := requireNext(tx, "x")
		tx.Rollback()
		b.Exec("select parley.fail_delivery('Answering', $1::uuid, 'no')", handle)
		b.Exec("update parley._p_delivery_failure set retry_at = now()")
	}
	sqltest.Equal(b.Session, 0, "select rollbacks from parley.queue_backlogs('Answering')")
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

func TestDeliveryFindsWhatStandsBehindAThousandThatWait(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	first, second := b.Dialog(), b.Dialog()
	b.Exec("select parley.send($1::uuid, '//test/Request', 'x') from generate_series(1, 1200)", first)
	b.Send(second, sqltest.Request, "behind")
	_, handle, _ := nextOf(b.Session, 1)
	b.Exec("select parley.fail_delivery('Answering', $1::uuid, 'no')", handle)
	requireNext(b.Session, "behind")
}

func TestSenderThatCommitsInFrontOfADeliveryIsNoticed(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	initiator, _ := b.Conversation()
	late := b.Begin()
	late.Exec("select parley.send($1::uuid, '//test/Request', 'in front')", initiator)
	b.Send(initiator, sqltest.Request, "behind")
	tx := b.Begin()
	handle, orders := requireNext(tx, "behind")
	late.Commit()
	if finish(tx, handle, orders) {
		t.Error("what was not delivered counts as delivered")
	}
	tx.Rollback()
	requireNext(b.Session, "in front", "behind")
}

func TestDisabledQueueDeliversNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	b.Send(b.Dialog(), sqltest.Request, "x")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.next_delivery('Answering', 0, 3)")
	b.Exec("select parley.alter_queue('Answering', status => false)")
	b.Refuses(9617, "select parley.next_delivery('Answering')")
}

func TestFailuresOfConversationsThatAreOverGo(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	b.Send(b.Dialog(), sqltest.Request, "x")
	_, handle, _ := nextOf(b.Session, 1)
	b.Exec("select parley.fail_delivery('Answering', $1::uuid, 'no')", handle)
	b.Exec("select parley.end_conversation($1::uuid, cleanup => true)", handle)
	sqltest.Equal(b.Session, 0, "select count(*) from parley.delivery_failures")
	b.Send(b.Dialog(), sqltest.Request, "y")
	_, handle, _ = nextOf(b.Session, 1)
	b.Exec("select parley.fail_delivery('Answering', $1::uuid, 'no')", handle)
	sqltest.Equal(b.Session, 1, "select count(*) from parley._p_delivery_failure")
}

func TestDeliveryThatIsRefusedTooOftenSetsItsConversationAside(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, settings, last string
		want                 bool
	}{
		{"the last attempt", "", "", true},
		{"a final refusal", "max_attempts => 100", ", is_final => true", true},
		{"no receiver", "", ", is_attempt => false", false},
		{"no limit", "max_attempts => 0", ", is_final => true", false},
		{"a queue without poison message handling", "", "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec(hook)
			b.Exec("select parley.alter_webhook_activation('Answering', max_attempts => 2)")
			if c.settings != "" {
				b.Exec("select parley.alter_webhook_activation('Answering', " + c.settings + ")")
			}
			if c.name == "a queue without poison message handling" {
				b.Exec("select parley.alter_queue('Answering', poison_message_handling => false)")
			}
			b.Send(b.Dialog(), sqltest.Request, "x")
			_, handle, _ := nextOf(b.Session, 1)
			sqltest.Equal(b.Session, false, "select is_set_aside from parley.fail_delivery('Answering', $1::uuid, 'no')", handle)
			sqltest.Equal(b.Session, c.want, "select is_set_aside from parley.fail_delivery('Answering', $1::uuid, 'no'"+c.last+")", handle)
			sqltest.Equal(b.Session, c.want, "select exists (select from parley.poison_conversations where error = 'no')")
			sqltest.Equal(b.Session, !c.want, "select exists (select from parley.delivery_failures)")
		})
	}
}

// The answer is kept with the failure and goes with it: a failure of another kind has no answer, and a delivery that is accepted leaves
// none.
func TestAnswerOfARefusalIsKeptWithItsFailure(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	b.Send(b.Dialog(), sqltest.Request, "x")
	handle, _ := requireNext(b.Session, "x")
	b.Exec("select parley.fail_delivery('Answering', $1::uuid, 'no', answer => repeat('é', 5000))", handle)
	const failing = "select format('%s %s %s %s %s', rollbacks, failures, attempts, sqlstate, length(answer)) from parley.failing_conversations"
	sqltest.Equal(b.Session, "0 1 1 38000 4096", failing)
	sqltest.Equal(b.Session, "1 1 4096", "select format('%s %s %s', failures, attempts, length(last_answer)) from parley.delivery_failures")
	b.Exec("select parley.fail_delivery('Answering', $1::uuid, 'not there', is_attempt => false)", handle)
	sqltest.Equal(b.Session, "0 2 1 08006 ", failing)
	sqltest.Equal(b.Session, 0, "select count(*) from parley.poison_conversations")

	b.Exec("select parley.fail_delivery('Answering', $1::uuid, 'no', is_final => true, answer => 'never')", handle)
	sqltest.Equal(b.Session, "2 never", "select format('%s %s', rollbacks, answer) from parley.poison_conversations")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.failing_conversations")
	b.Exec("select parley.record_failure($1::uuid, '22012', 'division by zero')", handle)
	sqltest.Equal(b.Session, "division by zero ", "select format('%s %s', error, answer) from parley.poison_conversations")

	b.Exec("select parley.retry_poison($1::uuid)", handle)
	tx := b.Begin()
	_, handle, orders := nextOf(tx, 1)
	if !finish(tx, handle, orders) {
		t.Error("another message came in front")
	}
	tx.Exec("commit")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.failing_conversations")
}

// A role that may RECEIVE from one queue reports nothing of the conversations of another one.
func TestFailedDeliveryIsOfAConversationOfItsQueue(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	role := b.Role("thief")
	b.Exec("select parley.create_queue('Own')")
	b.Exec(`select parley.create_webhook_activation('Own', 'https://example.com', first_retry_ms => 3600000, longest_retry_ms => 7200000)`)
	b.Exec("select parley.grant('RECEIVE', 'queue', 'Own', $1)", role)
	b.Exec(hook)
	b.Send(b.Dialog(), sqltest.Request, "message")
	_, handle, _ := nextOf(b.Session, 1)
	b.Exec("select parley.record_failure($1::uuid, '22012', 'division by zero')", handle)
	before := b.Everything()
	thief := b.As(role)
	for _, arguments := range []string{"", ", is_final => true", ", answer => 'made up'"} {
		sqltest.Equal(thief, "0 f", "select format('%s %s', attempts, is_set_aside) from parley.fail_delivery('Own', $1::uuid, 'no'"+arguments+")", handle)
	}
	if after := b.Everything(); after != before {
		t.Errorf("the broker was changed:\n%s", sqltest.Difference(before, after))
	}
	requireNext(b.Session, "message")
}

// They wait, or come alone: either way they do not come with others.
func TestDeliveryOfSeveralGroupsLeavesOutWhatHasFailed(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	handles := b.Fill(3, 2)
	const next = "select parley.body_text(message_body) from parley.next_delivery('Answering', top => 5, groups => 10)"
	for _, c := range []struct{ failure, want string }{{"", "0/0 1/0 2/0"}, {"is_attempt => false", "0/0 0/1 2/0 2/1"}, {"is_attempt => true", "0/0 0/1 2/0 2/1"}} {
		if c.failure != "" {
			b.Exec("select parley.fail_delivery('Answering', $1::uuid, 'no', is_alone => false, "+c.failure+")", b.FarHandle(handles[1]))
		}
		tx := b.Begin()
		if got := strings.Join(sqltest.Values[string](tx, next), " "); got != c.want {
			t.Errorf("after failure %q: %q, want %q", c.failure, got, c.want)
		}
		tx.Rollback()
	}
	sqltest.Equal(b.Session, 1, "select attempts + 1 from parley._p_delivery_failure")
	// The first failure alone has the first wait, whatever was refused together before: here one failure was of a receiver that was away.
	sqltest.Equal(b.Session, 1, "select failures from parley.delivery_failures")
}
