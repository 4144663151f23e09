package poison_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestPoisonConversationsShowWhatIsKnown(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	_, target := b.Poison("second", "third")
	got := sqltest.Value[string](b.Session, `
		select concat_ws(' ', conversation_handle = $1, queue_name, service_name, far_service, service_contract_name, state, message_type_name,
			message_sequence_number, rollbacks, set_aside_since <= clock_timestamp(), sqlstate, error, error_time <= set_aside_since, waiting_messages, is_estimated)
		from parley.poison_conversations`, target)
	if want := "t Answering //test/Answerer //test/Asker //test/Work CO //test/Request 0 2 t 22012 division by zero t 3 f"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	sqltest.Equal(b.Session, "SET_ASIDE 2 1", "select concat_ws(' ', poison_action, poison_rollbacks, set_aside_conversations) from parley.service_queues where name = 'Answering'")
	sqltest.Equal(b.Session, "It is set aside: a message came back 2 times. The last error: division by zero",
		"select reason from parley.stuck_conversations where conversation_handle = $1", target)
	b.Exec(sqltest.Value[string](b.Session, "select remedy from parley.stuck_conversations where conversation_handle = $1", target))
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"first", "second", "third"}) {
		t.Errorf("after the remedy: %q", got)
	}
}

func TestViewsShowWhatIsSetAsideWithStatusTwo(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Poison("second")
	b.Send(initiator, sqltest.Request, "third")
	const want = "first 2 0, second 2 1, third 2 2"
	const shown = "select string_agg(format('%s %s %s', parley.body_text(message_body), status, message_sequence_number), ', ' order by queuing_order) from "
	sqltest.Equal(b.Session, want, shown+`parley_queue."Answering"`)
	sqltest.Equal(b.Session, want, shown+"parley.peek('Answering', 10, $1)", target)
	sqltest.Equal(b.Session, true, "select count(*) = 0 from parley.peek('Answering')")
}

func TestFailureIsReportedBeforeTheConversationIsSetAside(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "x")
	target := b.FarHandle(handle)
	tx := b.Begin()
	tx.Receive("Answering")
	tx.Rollback()
	sqltest.Equal(b.Session, true, "select parley.record_failure($1, '40001', repeat('x', 100000))", target)
	const failing = "select coalesce((select concat_ws(' ', sqlstate, length(error), rollbacks, waiting_messages) from parley.failing_conversations), '')"
	sqltest.Equal(b.Session, "40001 2000 1 1", failing)
	// The failure is over when the message has been received.
	b.Receive("Answering")
	sqltest.Equal(b.Session, "", failing)
}

func TestRecordingAFailureNeverFails(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "x")
	target := b.FarHandle(handle)
	outsider := b.As(b.Role("outsider"))
	for name, c := range map[string]struct {
		s         sqltest.Session
		arguments string
		recorded  bool
	}{
		"NoHandle":      {b.Session, "null, null, null", false},
		"UnknownHandle": {b.Session, "gen_random_uuid(), 'XX000', 'x'", false},
		"NoRight":       {outsider, fmt.Sprintf("'%s', 'XX000', 'x'", target), false},
		"NoError":       {b.Session, fmt.Sprintf("'%s', null, null", target), true},
		"NoSQLState":    {b.Session, fmt.Sprintf("'%s', 'not one', 'x'", target), true},
		"Unread":        {b.Session, fmt.Sprintf("'%s', 'XX000', 'x'", target), true},
	} {
		if got := sqltest.Value[bool](c.s, "select parley.record_failure("+c.arguments+")"); got != c.recorded {
			t.Errorf("%s: recorded %v, want %v", name, got, c.recorded)
		}
	}
	sqltest.Equal(b.Begin(pgx.TxOptions{AccessMode: pgx.ReadOnly}), false, "select parley.record_failure($1, 'XX000', 'x')", target)
}

// A message that was never received has not failed, whatever is reported.
func TestReportsAloneDoNotSetAside(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "x")
	for range 10 {
		b.Exec("select parley.record_failure($1, 'XX000', 'x')", b.FarHandle(handle))
	}
	tx := b.Begin()
	tx.Receive("Answering")
	// Nor is a failure counted that is reported too early, or twice.
	for range 10 {
		b.Exec("select parley.record_failure($1, 'XX000', 'x')", b.FarHandle(handle))
	}
	tx.Rollback()
	for range 10 {
		b.Exec("select parley.record_failure($1, 'XX000', 'x')", b.FarHandle(handle))
	}
	sqltest.Equal(b.Session, "1", "select rollbacks::text from parley.failing_conversations")
	b.Receive("Answering")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.poison_conversations")
}

func TestDiscardingTheMessageAloneLetsTheOthersGoOn(t *testing.T) {
	t.Parallel()
	for _, retention := range []bool{false, true} {
		t.Run(fmt.Sprint("Retention ", retention), func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec("select parley.alter_queue('Answering', retention => $1)", retention)
			_, target := b.Poison("second", "third")
			lost := b.Messages("select * from parley.discard_poison($1, message_only => true)", target)
			if len(lost) != 1 || string(lost[0].MessageBody) != "first" || lost[0].MessageSequenceNumber != 0 || lost[0].MessageTypeName != sqltest.Request {
				t.Errorf("discarded %v", lost)
			}
			rest := b.Receive("Answering")
			if !slices.Equal(sqltest.BodiesOf(rest), []string{"second", "third"}) || rest[0].MessageSequenceNumber != 1 {
				t.Errorf("the others: %v", rest)
			}
			if kept := sqltest.Value[int](b.Session, `select count(*) from parley_queue."Answering" where status = 0 and parley.body_text(message_body) = 'first'`); (kept == 1) != retention {
				t.Errorf("%d copies are kept", kept)
			}
			b.RequireState(target, "CO")
		})
	}
}

func TestDiscardingOneMessageOfABatchLeavesTheRestOfIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.alter_queue('Answering', poison_rollbacks => 2)")
	initiator := b.Dialog()
	b.Exec("select parley.send_batch($1::uuid, $2, array['a', 'b', 'c', 'd'])", initiator, sqltest.Request)
	target := b.FarHandle(initiator)
	if got := sqltest.BodiesOf(b.Messages("select * from parley.receive('Answering', top => 1)")); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("received %q", got)
	}
	b.SetAside(target)
	if lost := sqltest.BodiesOf(b.Messages("select * from parley.discard_poison($1, message_only => true)", target)); !slices.Equal(lost, []string{"b"}) {
		t.Errorf("discarded %q", lost)
	}
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"c", "d"}) {
		t.Errorf("the others: %q", got)
	}
}

func TestDiscardingTheConversationInformsTheOtherSide(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	_, target := b.Poison("second")
	lost := sqltest.BodiesOf(b.Messages("select * from parley.discard_poison($1, error_code => 42, description => 'bad order')", target))
	if !slices.Equal(lost, []string{"first", "second"}) {
		t.Errorf("discarded %q", lost)
	}
	b.RequireState(target, "DO")
	b.RequireError("Asking", 42)
	sqltest.Equal(b.Session, 0, "select count(*) from parley.poison_conversations")
	sqltest.Equal(b.Session, 0, `select count(*) from parley_queue."Answering"`)
}

// The end of a conversation also ends one that is set aside, and leaves nothing behind.
func TestConversationThatIsSetAsideCanBeEnded(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(b *sqltest.Broker, initiator, target string){
		"End":          func(b *sqltest.Broker, initiator, target string) { b.End(target); b.End(initiator) },
		"EndWithError": func(b *sqltest.Broker, initiator, target string) { b.EndWithError(target, 1, "no"); b.End(initiator) },
		"FarSideFirst": func(b *sqltest.Broker, initiator, target string) { b.End(initiator); b.End(target) },
		"Cleanup": func(b *sqltest.Broker, initiator, target string) {
			b.Exec("select parley.end_conversation($1::uuid, true)", target)
			b.Exec("select parley.end_conversation($1::uuid, true)", initiator)
		},
		"DropService": func(b *sqltest.Broker, initiator, _ string) {
			b.Exec("select parley.drop_service('//test/Answerer')")
			b.Exec("select parley.drop_queue('Answering')")
			b.End(initiator)
		},
		"Lifetime": func(b *sqltest.Broker, initiator, target string) {
			b.Exec("insert into parley._p_alarm select endpoint_id, 'lifetime', now() from parley._p_endpoint")
			b.Exec("select parley.fire_timers()")
			b.RequireState(target, "ER")
			b.RequireError("Asking", -8489)
			b.End(target)
			b.End(initiator)
		},
		"Discard": func(b *sqltest.Broker, initiator, target string) {
			b.Exec("select parley.discard_poison($1)", target)
			b.End(initiator)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			initiator, target := b.Poison("second")
			end(b, initiator, target)
			for _, table := range []string{"_p_message", "_p_set_aside", "_p_failure", "_p_endpoint"} {
				sqltest.Equal(b.Session, 0, "select count(*) from parley."+table)
			}
		})
	}
}

func TestWhatHappensToAConversationThatIsSetAsideWaitsWithIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		happen func(b *sqltest.Broker, initiator, target string)
		want   []string
	}{
		"EndOfTheOtherSide": {func(b *sqltest.Broker, initiator, _ string) { b.End(initiator) }, []string{sqltest.Request, sqltest.Request, sqltest.EndDialog}},
		"ErrorOfTheOtherSide": {
			func(b *sqltest.Broker, initiator, _ string) { b.EndWithError(initiator, 7, "no") },
			[]string{sqltest.ErrorMessage, sqltest.Request, sqltest.Request},
		},
		"Timer": {
			func(b *sqltest.Broker, _, target string) {
				b.Exec("select parley.begin_conversation_timer($1, 0)", target)
				b.Exec("select parley.fire_timers()")
			},
			[]string{sqltest.DialogTimer, sqltest.Request, sqltest.Request},
		},
		"Move": {
			func(b *sqltest.Broker, _, target string) {
				other, far := b.Conversation()
				b.Exec("select parley.move_conversation($1, (select conversation_group_id from parley.conversation_endpoints where conversation_handle = $2))", target, far)
				b.End(other)
				b.Receive("Answering")
				b.End(far)
			},
			[]string{sqltest.Request, sqltest.Request},
		},
		"QueueOffAndOn": {
			func(b *sqltest.Broker, _, _ string) {
				b.Exec("select parley.alter_queue('Answering', status => false); select parley.alter_queue('Answering', status => true)")
			},
			[]string{sqltest.Request, sqltest.Request},
		},
		"PoisonHandlingOff": {
			func(b *sqltest.Broker, _, _ string) {
				b.Exec("select parley.alter_queue('Answering', poison_message_handling => false, poison_action => 'DISABLE_QUEUE')")
			},
			[]string{sqltest.Request, sqltest.Request},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			initiator, target := b.Poison("second")
			c.happen(b, initiator, target)
			if got := b.Bodies("Answering"); len(got) != 0 {
				t.Errorf("received %q", got)
			}
			b.Exec("select parley.retry_poison($1)", target)
			var got []string
			for _, m := range b.Receive("Answering") {
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
	b := sqltest.NewWorld(t)
	initiator, target := b.Poison("second")
	b.Exec("select parley.create_queue('Other'); select parley.alter_service('//test/Answerer', 'Other')")
	b.Send(initiator, sqltest.Request, "third")
	if got := b.Bodies("Other"); len(got) != 0 {
		t.Errorf("received %q", got)
	}
	sqltest.Equal(b.Session, "Other first 3", `
		select concat_ws(' ', p.queue_name, (select parley.body_text(c.message_body) from parley.queue_contents('Other') as c where c.queuing_order = p.queuing_order), p.waiting_messages)
		from parley.poison_conversations as p`)
	b.Exec("select parley.retry_poison($1)", target)
	if got := b.Bodies("Other"); !slices.Equal(got, []string{"first", "second", "third"}) {
		t.Errorf("after the retry: %q", got)
	}
}

func TestChangingTheActionChangesWhatBecomesOfPoison(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.alter_queue('Answering', poison_action => 'disable_queue', poison_rollbacks => 2)")
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "poison")
	for range 2 {
		tx := b.Begin()
		tx.Receive("Answering")
		tx.Rollback()
	}
	b.Refuses(9617, "select parley.receive('Answering')")
	sqltest.Equal(b.Session, false, "select is_receive_enabled from parley.service_queues where name = 'Answering'")
	b.Exec("select parley.alter_queue('Answering', poison_action => 'SET_ASIDE')")
	sqltest.Equal(b.Session, true, "select is_receive_enabled from parley.service_queues where name = 'Answering'")
	if got := b.Bodies("Answering"); len(got) != 0 {
		t.Errorf("received %q", got)
	}
	sqltest.Equal(b.Session, 1, "select count(*) from parley.poison_conversations")
}

func TestWhoMayReceiveMayDealWithPoison(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	_, target := b.Poison()
	role := b.Role("operator")
	operator := b.As(role)
	sqltest.Equal(operator, 0, "select count(*) from parley.poison_conversations")
	operator.Refuses(229, "select parley.retry_poison($1)", target)
	operator.Refuses(229, "select parley.discard_poison($1)", target)
	b.Exec("select parley.grant('RECEIVE', 'queue', 'Answering', $1)", role)
	defer b.Exec("select parley.revoke('RECEIVE', 'queue', 'Answering', $1)", role)
	sqltest.Equal(operator, 1, "select count(*) from parley.poison_conversations")
	sqltest.Equal(operator, int64(1), "select parley.retry_poison($1)", target)
	b.SetAside(target)
	sqltest.Equal(operator, 1, "select count(*) from parley.discard_poison($1)", target)
}

func TestOnlyWhatIsSetAsideCanBePutBack(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	_, target := b.Poison()
	_, healthy := b.Conversation()
	for _, function := range []string{"retry_poison", "discard_poison"} {
		b.Refuses(8426, fmt.Sprintf("select parley.%s($1)", function), healthy)
		b.Refuses(8426, fmt.Sprintf("select parley.%s(gen_random_uuid())", function))
		b.Refuses(8418, fmt.Sprintf("select parley.%s(null)", function))
		tx := b.Begin()
		tx.Exec("set transaction isolation level repeatable read")
		tx.Refuses(8402, fmt.Sprintf("select parley.%s($1)", function), target)
		tx.Rollback()
	}
	b.Refuses(8402, "select parley.discard_poison($1, error_code => 0)", target)
	b.Refuses(8402, "select parley.discard_poison($1, message_only => true, error_code => 7)", target)
	b.Refuses(8402, "select parley.discard_poison($1, message_only => true, description => 'no use')", target)
	b.Refuses(8402, "select parley.discard_poison($1, description => $2)", target, strings.Repeat("x", 3001))
	sqltest.Equal(b.Session, 1, "select count(*) from parley.poison_conversations")
}

// A transaction that reports a failure, and stays open, holds up the reports on its own conversation alone: old reports and counts are
// removed by fire_timers, of the queues of its caller.
func TestAReportOfAFailureHoldsUpNoOtherConversation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	mine, others := b.Dialog(), b.Dialog()
	for _, handle := range []string{mine, others} {
		b.Send(handle, sqltest.Request, "x")
	}
	b.Receive("Answering")
	mine, others = b.FarHandle(mine), b.FarHandle(others)
	const report = "select parley.record_failure($1, '40001', 'x')"
	sqltest.Equal(b.Session, true, report, others)
	b.Exec("update parley._p_failure set failed_at = now() - interval '2 days'")
	b.Exec("insert into parley._p_conversation_retry (endpoint_id, position, attempts, losses) select endpoint_id, 1, 1, 1 from parley._p_failure")
	tx := b.Begin()
	sqltest.Equal(tx, true, report, mine)
	tx.Exec("select parley.retry_conversation($1, delay => '1 second')", mine)
	const held = "select count(*) from parley._p_%s where endpoint_id not in (select o.endpoint_id from parley._p_%[1]s as o for update skip locked)"
	for _, table := range []string{"failure", "conversation_retry"} {
		sqltest.Equal(b.Session, 0, fmt.Sprintf(held, table))
	}
	sqltest.Equal(b.Session, true, report, others)
	tx.Commit()
	b.Exec("update parley._p_failure set failed_at = now() - interval '2 days'")
	b.As(b.Role("outsider")).Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, 3, "select (select count(*) from parley._p_failure) + (select count(*) from parley._p_conversation_retry)")
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, 0, "select (select count(*) from parley._p_failure) + (select count(*) from parley._p_conversation_retry)")
}
