package sql_test

import (
	"slices"
	"strings"
	"testing"
)

const hook = `select parley.create_webhook_activation('Answering', 'https://example.com', first_retry_ms => 3600000, longest_retry_ms => 7200000)`

// next shows the bodies of the next delivery, with the handle and positions that finishing it needs.
func (s session) next(top int) (bodies []string, handle string, orders []int64) {
	s.Helper()
	rows, err := s.db.Query(s.Context(), `
		select conversation_handle::text, queuing_order, convert_from(message_body, 'UTF8') from parley.next_delivery('Answering', $1)`, top)
	if err != nil {
		s.Fatal(describe(err))
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
		s.Fatal(describe(rows.Err()))
	}
	return bodies, handle, orders
}

func (s session) requireNext(want ...string) (handle string, orders []int64) {
	s.Helper()
	got, handle, orders := s.next(100)
	if !slices.Equal(got, want) {
		s.Fatalf("the next delivery is %q, want %q", got, want)
	}
	return handle, orders
}

func (s session) finish(handle string, orders []int64) bool {
	s.Helper()
	return value[bool](s, "select parley.finish_delivery('Answering', $1::uuid, $2)", handle, orders)
}

func TestDeliveryIsReceivedWhenItIsFinished(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(hook)
	initiator := b.dialog()
	b.send(initiator, request, "1")
	b.exec("select parley.send_batch($1::uuid, '//test/Request', array['2', '3'])", initiator)

	tx := b.begin()
	got, handle, orders := tx.next(2)
	if !slices.Equal(got, []string{"1", "2"}) {
		t.Fatalf("shown were %q", got)
	}
	if !tx.finish(handle, orders) {
		t.Fatal("it could not be finished")
	}
	tx.commit()
	tx = b.begin()
	handle, orders = tx.requireNext("3")
	if !tx.finish(handle, orders) {
		t.Fatal("it could not be finished")
	}
	tx.requireNext()
	tx.commit()
}

func TestDeliveryShowsSequenceNumbersAndStableIDs(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(hook)
	initiator := b.dialog()
	b.exec("select parley.send_batch($1::uuid, '//test/Request', array['1', '2', '3'])", initiator)
	const next = `select format('%s %s', message_sequence_number, message_id) from parley.next_delivery('Answering', 10)`
	first := values[string](b.session, next)
	if len(first) != 3 || first[2][:2] != "2 " {
		t.Fatalf("shown were %q", first)
	}
	if again := values[string](b.session, next); !slices.Equal(first, again) {
		t.Errorf("first %q, then %q", first, again)
	}
	tx := b.begin()
	_, handle, orders := tx.next(1)
	tx.finish(handle, orders)
	tx.commit()
	if rest := values[string](b.session, next); !slices.Equal(rest, first[1:]) {
		t.Errorf("left are %q, want %q", rest, first[1:])
	}
}

func TestDeliveryLocksItsGroupAgainstReaders(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(hook)
	first, second := b.dialog(), b.dialog()
	b.send(first, request, "first")
	b.send(second, request, "second")
	one, two := b.begin(), b.begin()
	one.requireNext("first")
	two.requireNext("second")
	if got := b.bodies("Answering"); len(got) > 0 {
		t.Errorf("received %q beside the deliveries", got)
	}
	b.requireNext()
	one.rollback()
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"first"}) {
		t.Errorf("received %q", got)
	}
}

func TestFailedDeliveryKeepsItsConversationWaitingAndNoOther(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(hook)
	first, second := b.dialog(), b.dialog()
	b.send(first, request, "first 1")
	b.send(first, request, "first 2")
	b.send(second, request, "second")
	_, handle, _ := b.next(1)
	for attempt := 1; attempt <= 2; attempt++ {
		equal(b.session, attempt, "select attempts from parley.fail_delivery('Answering', $1::uuid, 'no')", handle)
	}
	equal(b.session, 2, "select attempts from parley.fail_delivery('Answering', $1::uuid, 'not there', is_attempt => false)", handle)
	equal(b.session, "3 2 not there t", `
		select format('%s %s %s %s', failures, attempts, last_error, retry_at > now() + interval '1 hour') from parley.delivery_failures`)
	equal(b.session, true, "select parley.seconds_to_next_delivery('Answering') between 3600 and 7200")

	tx := b.begin()
	second, orders := tx.requireNext("second")
	tx.finish(second, orders)
	tx.requireNext()
	tx.commit()

	// When its time comes it goes on where it was.
	b.exec("update parley._p_delivery_failure set retry_at = now()")
	tx = b.begin()
	handle, orders = tx.requireNext("first 1", "first 2")
	tx.finish(handle, orders)
	tx.commit()
	equal(b.session, 0, "select count(*) from parley.delivery_failures")
	equal(b.session, true, "select parley.seconds_to_next_delivery('Answering') is null")
}

func TestFailedDeliveriesAreNoPoison(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(hook)
	b.exec("select parley.alter_webhook_activation('Answering', max_attempts => 0)")
	b.send(b.dialog(), request, "x")
	for range 20 {
		tx := b.begin()
		handle, _ := tx.requireNext("x")
		tx.rollback()
		b.exec("select parley.fail_delivery('Answering', $1::uuid, 'no')", handle)
		b.exec("update parley._p_delivery_failure set retry_at = now()")
	}
	equal(b.session, 0, "select rollbacks from parley.queue_backlogs('Answering')")
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

func TestDeliveryFindsWhatStandsBehindAThousandThatWait(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(hook)
	first, second := b.dialog(), b.dialog()
	b.exec("select parley.send($1::uuid, '//test/Request', 'x') from generate_series(1, 1200)", first)
	b.send(second, request, "behind")
	_, handle, _ := b.next(1)
	b.exec("select parley.fail_delivery('Answering', $1::uuid, 'no')", handle)
	b.requireNext("behind")
}

func TestSenderThatCommitsInFrontOfADeliveryIsNoticed(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(hook)
	initiator, _ := b.conversation()
	late := b.begin()
	late.exec("select parley.send($1::uuid, '//test/Request', 'in front')", initiator)
	b.send(initiator, request, "behind")
	tx := b.begin()
	handle, orders := tx.requireNext("behind")
	late.commit()
	if tx.finish(handle, orders) {
		t.Error("what was not delivered counts as delivered")
	}
	tx.rollback()
	b.requireNext("in front", "behind")
}

func TestDisabledQueueDeliversNothing(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(hook)
	b.send(b.dialog(), request, "x")
	equal(b.session, 0, "select count(*)::int from parley.next_delivery('Answering', 0, 3)")
	b.exec("select parley.alter_queue('Answering', status => false)")
	b.refuses(9617, "select parley.next_delivery('Answering')")
}

func TestFailuresOfConversationsThatAreOverGo(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(hook)
	b.send(b.dialog(), request, "x")
	_, handle, _ := b.next(1)
	b.exec("select parley.fail_delivery('Answering', $1::uuid, 'no')", handle)
	b.exec("select parley.end_conversation($1::uuid, cleanup => true)", handle)
	equal(b.session, 0, "select count(*) from parley.delivery_failures")
	b.send(b.dialog(), request, "y")
	_, handle, _ = b.next(1)
	b.exec("select parley.fail_delivery('Answering', $1::uuid, 'no')", handle)
	equal(b.session, 1, "select count(*) from parley._p_delivery_failure")
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
			b := newWorld(t)
			b.exec(hook)
			b.exec("select parley.alter_webhook_activation('Answering', max_attempts => 2)")
			if c.settings != "" {
				b.exec("select parley.alter_webhook_activation('Answering', " + c.settings + ")")
			}
			if c.name == "a queue without poison message handling" {
				b.exec("select parley.alter_queue('Answering', poison_message_handling => false)")
			}
			b.send(b.dialog(), request, "x")
			_, handle, _ := b.next(1)
			equal(b.session, false, "select is_set_aside from parley.fail_delivery('Answering', $1::uuid, 'no')", handle)
			equal(b.session, c.want, "select is_set_aside from parley.fail_delivery('Answering', $1::uuid, 'no'"+c.last+")", handle)
			equal(b.session, c.want, "select exists (select from parley.poison_conversations where error = 'no')")
			equal(b.session, !c.want, "select exists (select from parley.delivery_failures)")
		})
	}
}

// What was answered is kept with the failure and goes with it: a failure of another kind has no answer, and a delivery that is accepted
// leaves none.
func TestAnswerOfARefusalIsKeptWithItsFailure(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(hook)
	b.send(b.dialog(), request, "x")
	handle, _ := b.requireNext("x")
	b.exec("select parley.fail_delivery('Answering', $1::uuid, 'no', answer => repeat('é', 5000))", handle)
	const failing = "select format('%s %s %s %s %s', rollbacks, failures, attempts, sqlstate, length(answer)) from parley.failing_conversations"
	equal(b.session, "0 1 1 38000 4096", failing)
	equal(b.session, "1 1 4096", "select format('%s %s %s', failures, attempts, length(last_answer)) from parley.delivery_failures")
	b.exec("select parley.fail_delivery('Answering', $1::uuid, 'not there', is_attempt => false)", handle)
	equal(b.session, "0 2 1 08006 ", failing)
	equal(b.session, 0, "select count(*) from parley.poison_conversations")

	b.exec("select parley.fail_delivery('Answering', $1::uuid, 'no', is_final => true, answer => 'never')", handle)
	equal(b.session, "2 never", "select format('%s %s', rollbacks, answer) from parley.poison_conversations")
	equal(b.session, 0, "select count(*) from parley.failing_conversations")
	b.exec("select parley.record_failure($1::uuid, '22012', 'division by zero')", handle)
	equal(b.session, "division by zero ", "select format('%s %s', error, answer) from parley.poison_conversations")

	b.exec("select parley.retry_poison($1::uuid)", handle)
	tx := b.begin()
	_, handle, orders := tx.next(1)
	if !tx.finish(handle, orders) {
		t.Error("another message came in front")
	}
	tx.exec("commit")
	equal(b.session, 0, "select count(*) from parley.failing_conversations")
}

// A role that may RECEIVE from one queue reports nothing of the conversations of another one.
func TestFailedDeliveryIsOfAConversationOfItsQueue(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	role := b.role("thief")
	b.exec("select parley.create_queue('Own')")
	b.exec(`select parley.create_webhook_activation('Own', 'https://example.com', first_retry_ms => 3600000, longest_retry_ms => 7200000)`)
	b.exec("select parley.grant('RECEIVE', 'queue', 'Own', $1)", role)
	b.exec(hook)
	b.send(b.dialog(), request, "message")
	_, handle, _ := b.next(1)
	b.exec("select parley.record_failure($1::uuid, '22012', 'division by zero')", handle)
	before := b.everything()
	thief := b.as(role)
	for _, arguments := range []string{"", ", is_final => true", ", answer => 'made up'"} {
		equal(thief, "0 f", "select format('%s %s', attempts, is_set_aside) from parley.fail_delivery('Own', $1::uuid, 'no'"+arguments+")", handle)
	}
	if after := b.everything(); after != before {
		t.Errorf("the broker was changed:\n%s", difference(before, after))
	}
	b.requireNext("message")
}

// They wait, or come alone: either way they do not come with others.
func TestDeliveryOfSeveralGroupsLeavesOutWhatHasFailed(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(hook)
	handles := b.fill(3, 2)
	const next = "select parley.body_text(message_body) from parley.next_delivery('Answering', top => 5, groups => 10)"
	for _, c := range []struct{ failure, want string }{{"", "0/0 1/0 2/0"}, {"is_attempt => false", "0/0 0/1 2/0 2/1"}, {"is_attempt => true", "0/0 0/1 2/0 2/1"}} {
		if c.failure != "" {
			b.exec("select parley.fail_delivery('Answering', $1::uuid, 'no', is_alone => false, "+c.failure+")", b.farHandle(handles[1]))
		}
		tx := b.begin()
		if got := strings.Join(values[string](tx, next), " "); got != c.want {
			t.Errorf("after failure %q: %q, want %q", c.failure, got, c.want)
		}
		tx.rollback()
	}
	equal(b.session, 1, "select attempts + 1 from parley._p_delivery_failure")
	// The first failure alone has the first wait, whatever was refused together before: here one failure was of a receiver that was away.
	equal(b.session, 1, "select failures from parley.delivery_failures")
}
