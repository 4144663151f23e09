package send_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestFirstSendCreatesTheTarget(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "x")
	b.RequireState(handle, "CO")
	b.RequireState(b.FarHandle(handle), "CO")
	sqltest.Equal(b.Session, "//test/Answerer from //test/Asker", `
		select format('%s from %s', service_name, far_service) from parley.conversation_endpoints where conversation_handle = $1`, b.FarHandle(handle))
}

func TestSendIsVisibleAfterCommitOnly(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	tx := b.Begin()
	handle := tx.Dialog()
	tx.Send(handle, sqltest.Request, "x")
	if got := b.Receive("Answering"); len(got) > 0 {
		t.Errorf("received %v before commit", got)
	}
	tx.Commit()
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

// Sequence numbers count each direction from 0 (spec 3.4).
func TestSequenceNumbersCountEachDirectionFromZero(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator := b.Dialog()
	for i := range 3 {
		b.Send(initiator, sqltest.Request, fmt.Sprint(i))
	}
	target := b.FarHandle(initiator)
	sequence := func(list []sqltest.Message) []int64 {
		numbers := []int64{}
		for _, m := range list {
			numbers = append(numbers, m.MessageSequenceNumber)
		}
		return numbers
	}
	if got := sequence(b.Messages("select * from parley.receive('Answering', 2)")); !slices.Equal(got, []int64{0, 1}) {
		t.Errorf("the target received %v", got)
	}
	b.Send(initiator, sqltest.Request, "3")
	if got := sequence(b.Messages("select * from parley.queue_contents('Answering') order by queuing_order")); !slices.Equal(got, []int64{2, 3}) {
		t.Errorf("the queue shows %v", got)
	}
	b.Send(target, sqltest.Reply, "0")
	b.Send(target, sqltest.Reply, "1")
	b.End(target)
	if got := sequence(b.Receive("Asking")); !slices.Equal(got, []int64{0, 1, 2}) {
		t.Errorf("the initiator received %v", got)
	}
}

func TestRolledBackSendLeavesNoGap(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	tx := b.Begin()
	tx.Send(initiator, sqltest.Request, "undone")
	tx.Rollback()
	b.Send(initiator, sqltest.Request, "kept")
	got := b.Receive("Answering")
	if len(got) != 1 || got[0].MessageSequenceNumber != 1 || string(got[0].MessageBody) != "kept" {
		t.Errorf("received %v", got)
	}
}

func TestBodiesOfEveryTypeArriveAsBytes(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer')")
	for _, c := range []struct{ statement, want string }{
		{"select parley.send($1::uuid, 'DEFAULT', 'é'::text)", "é"},
		{"select parley.send($1::uuid, 'DEFAULT', 'é')", "é"},
		{`select parley.send($1::uuid, 'DEFAULT', '\x00ff27'::bytea)`, "\x00\xff'"},
		{`select parley.send($1::uuid, 'DEFAULT', '{"b": 1, "a": "é"}'::jsonb)`, `{"a": "é", "b": 1}`},
		{`select parley.send($1::uuid, 'DEFAULT', '{"b":1,  "a":2}'::json)`, `{"b":1,  "a":2}`},
		{"select parley.send($1::uuid, 'DEFAULT', '<a>é</a>'::xml)", "<a>é</a>"},
		{`select parley.send($1::uuid, 'DEFAULT', '\x0102'::bytea, trace_context => null)`, "\x01\x02"},
		{`select parley.send($1::uuid, 'DEFAULT', '{"b":  1}'::jsonb, trace_context => null)`, `{"b": 1}`},
		{"select parley.send_to_all(array[$1::uuid], 'DEFAULT', 'list'::text)", "list"},
		{`select parley.send_to_all(array[$1::uuid], 'DEFAULT', '\x04'::bytea)`, "\x04"},
	} {
		b.Exec(c.statement, handle)
		if got := b.Bodies("Answering"); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s arrives as %q", c.statement, got)
		}
	}
	b.Exec("select parley.send('" + handle + "', 'DEFAULT', 'all literals')")
	b.Exec("select parley.send(conversation_handle => '" + handle + "', body => 'named')")
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"all literals", "named"}) {
		t.Errorf("literals arrive as %q", got)
	}
}

// Zero length is stored and received as NULL (spec 4.2), on the first send of a conversation and on later ones.
func TestEmptyBodiesArriveAsNull(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer')")
	for range 2 {
		for _, statement := range []string{
			"select parley.send($1::uuid)",
			"select parley.send($1::uuid, 'DEFAULT')",
			"select parley.send($1::uuid, 'DEFAULT', ''::text)",
			"select parley.send($1::uuid, 'DEFAULT', null::text)",
			"select parley.send($1::uuid, 'DEFAULT', ''::bytea)",
			"select parley.send($1::uuid, 'DEFAULT', null::bytea)",
			"select parley.send_to_all(array[$1::uuid], 'DEFAULT', ''::bytea)",
			"select parley.send_batch_binary($1::uuid, 'DEFAULT', array['', null]::bytea[])",
			"select parley.send_batch($1::uuid, 'DEFAULT', array['']::text[])",
		} {
			b.Exec(statement, handle)
			for _, m := range b.Receive("Answering") {
				if m.MessageBody != nil {
					t.Errorf("%s arrives as %q", statement, m.MessageBody)
				}
			}
		}
	}
	sqltest.Equal(b.Session, 20, "select receive_sequence from parley.conversation_endpoints where is_initiator = 0")
}

// A message that cannot be delivered yet waits in the transmission queue, in order, with the reason; SEND does not fail (spec 4).
func TestMessagesForAMissingServiceWaitForIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Late', '//test/Work', allow_unknown_target => true)")
	want := []string{}
	for i := range 5 {
		b.Send(handle, sqltest.Request, fmt.Sprint(i))
		want = append(want, fmt.Sprint(i))
	}
	b.Exec("select parley.send_batch($1::uuid, '//test/Note', array['5', '6'])", handle)
	want = append(want, "5", "6")
	b.RequireState(handle, "CO")
	got := sqltest.Values[string](b.Session, `
		select format('%s %s %s %s %s', message_sequence_number, to_service_name, from_service_name, message_type_name, convert_from(message_body, 'UTF8'))
		from parley.transmission_queue where transmission_status like '%"//test/Late" does not exist%' order by message_sequence_number`)
	if len(got) != 7 || got[6] != "6 //test/Late //test/Asker //test/Note 6" {
		t.Errorf("the transmission queue holds %q", got)
	}

	b.Exec("select parley.create_service('//test/Late', 'Answering', array['//test/Work'])")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.transmission_queue")
	sqltest.Equal(b.Session, "", "select parley.get_transmission_status($1)", handle)
	b.Send(handle, sqltest.Request, "7")
	if got := b.Bodies("Answering"); !slices.Equal(got, append(want, "7")) {
		t.Errorf("received %q", got)
	}
}

func TestDelayedEndArrivesBehindDelayedMessages(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Late', '//test/Work', allow_unknown_target => true)")
	b.Send(handle, sqltest.Request, "x")
	b.End(handle)
	b.RequireState(handle, "DO")
	sqltest.Equal(b.Session, true, "select is_end_of_dialog from parley.transmission_queue where message_sequence_number = 1")
	b.Exec("select parley.create_service('//test/Late', 'Answering', array['//test/Work'])")
	got := b.Receive("Answering")
	if !slices.Equal(sqltest.TypesOf(got), []string{sqltest.Request, sqltest.EndDialog}) {
		t.Fatalf("received %q", sqltest.TypesOf(got))
	}
	b.End(got[0].ConversationHandle)
	b.RequireState(handle, "")
}

// Unsent messages are dropped; then no side is informed, as an Error cannot come first (spec 3.2).
func TestErrorForAMissingServiceDropsWhatWaits(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Late', '//test/Work', allow_unknown_target => true)")
	b.Send(handle, sqltest.Request, "x")
	b.EndWithError(handle, 1, "never mind")
	b.RequireState(handle, "")
	b.Exec("select parley.create_service('//test/Late', 'Answering', array['//test/Work'])")
	if got := b.Receive("Answering"); len(got) > 0 {
		t.Errorf("received %v", got)
	}
}

func TestTargetThatRefusesSendsAnError(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_service('//test/Deaf', 'Answering')")
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Deaf')")
	b.Send(handle, "DEFAULT", "x")
	b.RequireState(handle, "ER")
	b.RequireError("Asking", -8408)
	sqltest.Equal(b.Session, 0, "select count(*) from parley.conversation_endpoints where is_initiator = 0")
	b.Refuses(8429, "select parley.send($1::uuid, 'DEFAULT', 'y')", handle)
	b.End(handle)
	b.RequireState(handle, "")
}

// A delayed conversation learns the same when the service is there and refuses.
func TestLateTargetThatRefusesSendsAnError(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Late', '//test/Work', allow_unknown_target => true)")
	b.Send(handle, sqltest.Request, "x")
	b.Send(handle, sqltest.Request, "y")
	b.Exec("select parley.create_service('//test/Late', 'Answering', array['DEFAULT'])")
	b.RequireError("Asking", -8408)
	sqltest.Equal(b.Session, 0, "select count(*) from parley.transmission_queue")
	if got := b.Receive("Asking"); len(got) > 0 {
		t.Errorf("received more: %v", got)
	}
}

func TestSendToASideThatWasCleanedUpFailsTheConversation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Send(initiator, sqltest.Request, "by the short way")
	b.Exec("select parley.end_conversation($1::uuid, cleanup => true)", target)
	b.Send(initiator, sqltest.Request, "to nobody")
	b.RequireError("Asking", -8462)
	b.RequireState(initiator, "ER")
}
