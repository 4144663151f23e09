package sql_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// poison gives both handles of a conversation that is set aside: "first" is received and came back twice, with some messages behind it.
func (b *broker) poison(behind ...string) (initiator, target string) {
	b.Helper()
	b.exec("select parley.alter_queue('Answering', poison_rollbacks => 2)")
	initiator = b.dialog()
	b.send(initiator, request, "first")
	for _, body := range behind {
		b.send(initiator, request, body)
	}
	target = b.farHandle(initiator)
	b.setAside(target)
	return initiator, target
}

// setAside receives from a conversation, rolls back, and reports, twice.
func (b *broker) setAside(handle string) {
	b.Helper()
	for range 2 {
		tx := b.begin()
		if len(tx.messages("select * from parley.receive('Answering', top => 1, conversation_handle => $1)", handle)) != 1 {
			b.Fatal("there is nothing to receive")
		}
		tx.rollback()
		equal(b.session, true, "select parley.record_failure($1, '22012', 'division by zero')", handle)
	}
	if got := values[string](b.session, "select conversation_handle::text from parley.poison_conversations"); !slices.Contains(got, handle) {
		b.Fatalf("set aside are %v, want %s", got, handle)
	}
}

func TestPoisonConversationsShowWhatIsKnown(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	_, target := b.poison("second", "third")
	got := value[string](b.session, `
		select concat_ws(' ', conversation_handle = $1, queue_name, service_name, far_service, service_contract_name, state, message_type_name,
			message_sequence_number, rollbacks, set_aside_since <= clock_timestamp(), sqlstate, error, error_time <= set_aside_since, waiting_messages, is_estimated)
		from parley.poison_conversations`, target)
	if want := "t Answering //test/Answerer //test/Asker //test/Work CO //test/Request 0 2 t 22012 division by zero t 3 f"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	equal(b.session, "SET_ASIDE 2 1", "select concat_ws(' ', poison_action, poison_rollbacks, set_aside_conversations) from parley.service_queues where name = 'Answering'")
	equal(b.session, "It is set aside: a message came back 2 times. The last error: division by zero",
		"select reason from parley.stuck_conversations where conversation_handle = $1", target)
	b.exec(value[string](b.session, "select remedy from parley.stuck_conversations where conversation_handle = $1", target))
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"first", "second", "third"}) {
		t.Errorf("after the remedy: %q", got)
	}
}

func TestViewsShowWhatIsSetAsideWithStatusTwo(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.poison("second")
	b.send(initiator, request, "third")
	const want = "first 2 0, second 2 1, third 2 2"
	const shown = "select string_agg(format('%s %s %s', parley.body_text(message_body), status, message_sequence_number), ', ' order by queuing_order) from "
	equal(b.session, want, shown+`parley_queue."Answering"`)
	equal(b.session, want, shown+"parley.peek('Answering', 10, $1)", target)
	equal(b.session, true, "select count(*) = 0 from parley.peek('Answering')")
}

func TestFailureIsReportedBeforeTheConversationIsSetAside(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	b.send(handle, request, "x")
	target := b.farHandle(handle)
	tx := b.begin()
	tx.receive("Answering")
	tx.rollback()
	equal(b.session, true, "select parley.record_failure($1, '40001', repeat('x', 100000))", target)
	const failing = "select coalesce((select concat_ws(' ', sqlstate, length(error), rollbacks, waiting_messages) from parley.failing_conversations), '')"
	equal(b.session, "40001 2000 1 1", failing)
	// The failure is over when the message has been received.
	b.receive("Answering")
	equal(b.session, "", failing)
}

func TestRecordingAFailureNeverFails(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	b.send(handle, request, "x")
	target := b.farHandle(handle)
	outsider := b.as(b.role("outsider"))
	for name, c := range map[string]struct {
		s         session
		arguments string
		recorded  bool
	}{
		"NoHandle":      {b.session, "null, null, null", false},
		"UnknownHandle": {b.session, "gen_random_uuid(), 'XX000', 'x'", false},
		"NoRight":       {outsider, fmt.Sprintf("'%s', 'XX000', 'x'", target), false},
		"NoError":       {b.session, fmt.Sprintf("'%s', null, null", target), true},
		"NoSQLState":    {b.session, fmt.Sprintf("'%s', 'not one', 'x'", target), true},
		"Unread":        {b.session, fmt.Sprintf("'%s', 'XX000', 'x'", target), true},
	} {
		if got := value[bool](c.s, "select parley.record_failure("+c.arguments+")"); got != c.recorded {
			t.Errorf("%s: recorded %v, want %v", name, got, c.recorded)
		}
	}
	equal(b.begin(pgx.TxOptions{AccessMode: pgx.ReadOnly}), false, "select parley.record_failure($1, 'XX000', 'x')", target)
}

// What was never received has not failed, whatever is reported.
func TestReportsAloneDoNotSetAside(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	b.send(handle, request, "x")
	for range 10 {
		b.exec("select parley.record_failure($1, 'XX000', 'x')", b.farHandle(handle))
	}
	tx := b.begin()
	tx.receive("Answering")
	// Nor is a failure counted that is reported too early, or twice.
	for range 10 {
		b.exec("select parley.record_failure($1, 'XX000', 'x')", b.farHandle(handle))
	}
	tx.rollback()
	for range 10 {
		b.exec("select parley.record_failure($1, 'XX000', 'x')", b.farHandle(handle))
	}
	equal(b.session, "1", "select rollbacks::text from parley.failing_conversations")
	b.receive("Answering")
	equal(b.session, 0, "select count(*) from parley.poison_conversations")
}

func TestDiscardingTheMessageAloneLetsTheOthersGoOn(t *testing.T) {
	t.Parallel()
	for _, retention := range []bool{false, true} {
		t.Run(fmt.Sprint("Retention ", retention), func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			b.exec("select parley.alter_queue('Answering', retention => $1)", retention)
			_, target := b.poison("second", "third")
			lost := b.messages("select * from parley.discard_poison($1, message_only => true)", target)
			if len(lost) != 1 || string(lost[0].MessageBody) != "first" || lost[0].MessageSequenceNumber != 0 || lost[0].MessageTypeName != request {
				t.Errorf("discarded %v", lost)
			}
			rest := b.receive("Answering")
			if !slices.Equal(bodiesOf(rest), []string{"second", "third"}) || rest[0].MessageSequenceNumber != 1 {
				t.Errorf("the others: %v", rest)
			}
			if kept := value[int](b.session, `select count(*) from parley_queue."Answering" where status = 0 and parley.body_text(message_body) = 'first'`); (kept == 1) != retention {
				t.Errorf("%d copies are kept", kept)
			}
			b.requireState(target, "CO")
		})
	}
}

func TestDiscardingOneMessageOfABatchLeavesTheRestOfIt(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.alter_queue('Answering', poison_rollbacks => 2)")
	initiator := b.dialog()
	b.exec("select parley.send_batch($1::uuid, $2, array['a', 'b', 'c', 'd'])", initiator, request)
	target := b.farHandle(initiator)
	if got := bodiesOf(b.messages("select * from parley.receive('Answering', top => 1)")); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("received %q", got)
	}
	b.setAside(target)
	if lost := bodiesOf(b.messages("select * from parley.discard_poison($1, message_only => true)", target)); !slices.Equal(lost, []string{"b"}) {
		t.Errorf("discarded %q", lost)
	}
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"c", "d"}) {
		t.Errorf("the others: %q", got)
	}
}

func TestDiscardingTheConversationInformsTheOtherSide(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	_, target := b.poison("second")
	lost := bodiesOf(b.messages("select * from parley.discard_poison($1, error_code => 42, description => 'bad order')", target))
	if !slices.Equal(lost, []string{"first", "second"}) {
		t.Errorf("discarded %q", lost)
	}
	b.requireState(target, "DO")
	b.requireError("Asking", 42)
	equal(b.session, 0, "select count(*) from parley.poison_conversations")
	equal(b.session, 0, `select count(*) from parley_queue."Answering"`)
}

// What ends a conversation ends one that is set aside too, and leaves nothing behind.
func TestConversationThatIsSetAsideCanBeEnded(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(b *broker, initiator, target string){
		"End":          func(b *broker, initiator, target string) { b.end(target); b.end(initiator) },
		"EndWithError": func(b *broker, initiator, target string) { b.endWithError(target, 1, "no"); b.end(initiator) },
		"FarSideFirst": func(b *broker, initiator, target string) { b.end(initiator); b.end(target) },
		"Cleanup": func(b *broker, initiator, target string) {
			b.exec("select parley.end_conversation($1::uuid, true)", target)
			b.exec("select parley.end_conversation($1::uuid, true)", initiator)
		},
		"DropService": func(b *broker, initiator, _ string) {
			b.exec("select parley.drop_service('//test/Answerer')")
			b.exec("select parley.drop_queue('Answering')")
			b.end(initiator)
		},
		"Lifetime": func(b *broker, initiator, target string) {
			b.exec("insert into parley._p_alarm select endpoint_id, 'lifetime', now() from parley._p_endpoint")
			b.exec("select parley.fire_timers()")
			b.requireState(target, "ER")
			b.requireError("Asking", -8489)
			b.end(target)
			b.end(initiator)
		},
		"Discard": func(b *broker, initiator, target string) {
			b.exec("select parley.discard_poison($1)", target)
			b.end(initiator)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			initiator, target := b.poison("second")
			end(b, initiator, target)
			for _, table := range []string{"_p_message", "_p_set_aside", "_p_failure", "_p_endpoint"} {
				equal(b.session, 0, "select count(*) from parley."+table)
			}
		})
	}
}

func TestWhatHappensToAConversationThatIsSetAsideWaitsWithIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happen func(b *broker, initiator, target string)
		want   []string
	}{
		"EndOfTheOtherSide": {func(b *broker, initiator, _ string) { b.end(initiator) }, []string{request, request, endDialog}},
		"ErrorOfTheOtherSide": {
			func(b *broker, initiator, _ string) { b.endWithError(initiator, 7, "no") },
			[]string{errorMessage, request, request},
		},
		"Timer": {
			func(b *broker, _, target string) {
				b.exec("select parley.begin_conversation_timer($1, 0)", target)
				b.exec("select parley.fire_timers()")
			},
			[]string{dialogTimer, request, request},
		},
		"Move": {
			func(b *broker, _, target string) {
				other, far := b.conversation()
				b.exec("select parley.move_conversation($1, (select conversation_group_id from parley.conversation_endpoints where conversation_handle = $2))", target, far)
				b.end(other)
				b.receive("Answering")
				b.end(far)
			},
			[]string{request, request},
		},
		"QueueOffAndOn": {
			func(b *broker, _, _ string) {
				b.exec("select parley.alter_queue('Answering', status => false); select parley.alter_queue('Answering', status => true)")
			},
			[]string{request, request},
		},
		"PoisonHandlingOff": {
			func(b *broker, _, _ string) {
				b.exec("select parley.alter_queue('Answering', poison_message_handling => false, poison_action => 'DISABLE_QUEUE')")
			},
			[]string{request, request},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			initiator, target := b.poison("second")
			c.happen(b, initiator, target)
			if got := b.bodies("Answering"); len(got) != 0 {
				t.Errorf("received %q", got)
			}
			b.exec("select parley.retry_poison($1)", target)
			var got []string
			for _, m := range b.receive("Answering") {
				got = append(got, m.MessageTypeName)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("after the retry: %q, want %q", got, c.want)
			}
		})
	}
}

func TestConversationThatIsSetAsideMovesWithItsServiceToAnotherQueue(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.poison("second")
	b.exec("select parley.create_queue('Other'); select parley.alter_service('//test/Answerer', 'Other')")
	b.send(initiator, request, "third")
	if got := b.bodies("Other"); len(got) != 0 {
		t.Errorf("received %q", got)
	}
	equal(b.session, "Other first 3", `
		select concat_ws(' ', p.queue_name, (select parley.body_text(c.message_body) from parley.queue_contents('Other') as c where c.queuing_order = p.queuing_order), p.waiting_messages)
		from parley.poison_conversations as p`)
	b.exec("select parley.retry_poison($1)", target)
	if got := b.bodies("Other"); !slices.Equal(got, []string{"first", "second", "third"}) {
		t.Errorf("after the retry: %q", got)
	}
}

func TestChangingTheActionChangesWhatBecomesOfPoison(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.alter_queue('Answering', poison_action => 'disable_queue', poison_rollbacks => 2)")
	handle := b.dialog()
	b.send(handle, request, "poison")
	for range 2 {
		tx := b.begin()
		tx.receive("Answering")
		tx.rollback()
	}
	b.refuses(9617, "select parley.receive('Answering')")
	equal(b.session, false, "select is_receive_enabled from parley.service_queues where name = 'Answering'")
	b.exec("select parley.alter_queue('Answering', poison_action => 'SET_ASIDE')")
	equal(b.session, true, "select is_receive_enabled from parley.service_queues where name = 'Answering'")
	if got := b.bodies("Answering"); len(got) != 0 {
		t.Errorf("received %q", got)
	}
	equal(b.session, 1, "select count(*) from parley.poison_conversations")
}

func TestWhoMayReceiveMayDealWithPoison(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	_, target := b.poison()
	role := b.role("operator")
	operator := b.as(role)
	equal(operator, 0, "select count(*) from parley.poison_conversations")
	operator.refuses(229, "select parley.retry_poison($1)", target)
	operator.refuses(229, "select parley.discard_poison($1)", target)
	b.exec("select parley.grant('RECEIVE', 'queue', 'Answering', $1)", role)
	defer b.exec("select parley.revoke('RECEIVE', 'queue', 'Answering', $1)", role)
	equal(operator, 1, "select count(*) from parley.poison_conversations")
	equal(operator, int64(1), "select parley.retry_poison($1)", target)
	b.setAside(target)
	equal(operator, 1, "select count(*) from parley.discard_poison($1)", target)
}

func TestOnlyWhatIsSetAsideCanBePutBack(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	_, target := b.poison()
	_, healthy := b.conversation()
	for _, function := range []string{"retry_poison", "discard_poison"} {
		b.refuses(8426, fmt.Sprintf("select parley.%s($1)", function), healthy)
		b.refuses(8426, fmt.Sprintf("select parley.%s(gen_random_uuid())", function))
		b.refuses(8418, fmt.Sprintf("select parley.%s(null)", function))
		tx := b.begin()
		tx.exec("set transaction isolation level repeatable read")
		tx.refuses(8402, fmt.Sprintf("select parley.%s($1)", function), target)
		tx.rollback()
	}
	b.refuses(8402, "select parley.discard_poison($1, error_code => 0)", target)
	b.refuses(8402, "select parley.discard_poison($1, description => $2)", target, strings.Repeat("x", 3001))
	equal(b.session, 1, "select count(*) from parley.poison_conversations")
}
