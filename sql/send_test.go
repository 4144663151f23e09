package sql_test

import (
	"fmt"
	"slices"
	"testing"
)

func TestFirstSendCreatesTheTarget(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	b.send(handle, request, "x")
	b.requireState(handle, "CO")
	b.requireState(b.farHandle(handle), "CO")
	equal(b.session, "//test/Answerer from //test/Asker", `
		select format('%s from %s', service_name, far_service) from parley.conversation_endpoints where conversation_handle = $1`, b.farHandle(handle))
}

func TestSendIsVisibleAfterCommitOnly(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	tx := b.begin()
	handle := tx.dialog()
	tx.send(handle, request, "x")
	if got := b.receive("Answering"); len(got) > 0 {
		t.Errorf("received %v before commit", got)
	}
	tx.commit()
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

// Sequence numbers count each direction from 0 (spec 3.4).
func TestSequenceNumbersCountEachDirectionFromZero(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator := b.dialog()
	for i := range 3 {
		b.send(initiator, request, fmt.Sprint(i))
	}
	target := b.farHandle(initiator)
	sequence := func(list []message) []int64 {
		numbers := []int64{}
		for _, m := range list {
			numbers = append(numbers, m.MessageSequenceNumber)
		}
		return numbers
	}
	if got := sequence(b.messages("select * from parley.receive('Answering', 2)")); !slices.Equal(got, []int64{0, 1}) {
		t.Errorf("the target received %v", got)
	}
	b.send(initiator, request, "3")
	if got := sequence(b.messages("select * from parley.queue_contents('Answering') order by queuing_order")); !slices.Equal(got, []int64{2, 3}) {
		t.Errorf("the queue shows %v", got)
	}
	b.send(target, reply, "0")
	b.send(target, reply, "1")
	b.end(target)
	if got := sequence(b.receive("Asking")); !slices.Equal(got, []int64{0, 1, 2}) {
		t.Errorf("the initiator received %v", got)
	}
}

func TestRolledBackSendLeavesNoGap(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, _ := b.conversation()
	tx := b.begin()
	tx.send(initiator, request, "undone")
	tx.rollback()
	b.send(initiator, request, "kept")
	got := b.receive("Answering")
	if len(got) != 1 || got[0].MessageSequenceNumber != 1 || string(got[0].MessageBody) != "kept" {
		t.Errorf("received %v", got)
	}
}

func TestBodiesOfEveryTypeArriveAsBytes(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer')")
	for _, c := range []struct{ statement, want string }{
		{"select parley.send($1::uuid, 'DEFAULT', 'é'::text)", "é"},
		{"select parley.send($1::uuid, 'DEFAULT', 'é')", "é"},
		{`select parley.send($1::uuid, 'DEFAULT', '\x00ff27'::bytea)`, "\x00\xff'"},
		{`select parley.send($1::uuid, 'DEFAULT', '{"b": 1, "a": "é"}'::jsonb)`, `{"a": "é", "b": 1}`},
		{`select parley.send($1::uuid, 'DEFAULT', '{"b":1,  "a":2}'::json)`, `{"b":1,  "a":2}`},
		{"select parley.send($1::uuid, 'DEFAULT', '<a>é</a>'::xml)", "<a>é</a>"},
		{`select parley.send_binary($1, 'DEFAULT', '\x0102')`, "\x01\x02"},
		{`select parley.send_json($1, 'DEFAULT', '{"b":  1}')`, `{"b": 1}`},
		{"select parley.send_to_all(array[$1::uuid], 'DEFAULT', 'list'::text)", "list"},
		{`select parley.send_to_all(array[$1::uuid], 'DEFAULT', '\x04'::bytea)`, "\x04"},
	} {
		b.exec(c.statement, handle)
		if got := b.bodies("Answering"); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s arrives as %q", c.statement, got)
		}
	}
	b.exec("select parley.send('" + handle + "', 'DEFAULT', 'all literals')")
	b.exec("select parley.send(conversation_handle => '" + handle + "', body => 'named')")
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"all literals", "named"}) {
		t.Errorf("literals arrive as %q", got)
	}
}

// Zero length is stored and received as NULL (spec 4.2), on the first send of a conversation and on later ones.
func TestEmptyBodiesArriveAsNull(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer')")
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
			b.exec(statement, handle)
			for _, m := range b.receive("Answering") {
				if m.MessageBody != nil {
					t.Errorf("%s arrives as %q", statement, m.MessageBody)
				}
			}
		}
	}
	equal(b.session, 20, "select receive_sequence from parley.conversation_endpoints where is_initiator = 0")
}

// What cannot be delivered yet waits in the transmission queue, in order, with the reason; SEND does not fail (spec 4).
func TestMessagesForAMissingServiceWaitForIt(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Late', '//test/Work', allow_unknown_target => true)")
	want := []string{}
	for i := range 5 {
		b.send(handle, request, fmt.Sprint(i))
		want = append(want, fmt.Sprint(i))
	}
	b.exec("select parley.send_batch($1::uuid, '//test/Note', array['5', '6'])", handle)
	want = append(want, "5", "6")
	b.requireState(handle, "CO")
	got := values[string](b.session, `
		select format('%s %s %s %s %s', message_sequence_number, to_service_name, from_service_name, message_type_name, convert_from(message_body, 'UTF8'))
		from parley.transmission_queue where transmission_status like '%"//test/Late" does not exist%' order by message_sequence_number`)
	if len(got) != 7 || got[6] != "6 //test/Late //test/Asker //test/Note 6" {
		t.Errorf("the transmission queue holds %q", got)
	}

	b.exec("select parley.create_service('//test/Late', 'Answering', array['//test/Work'])")
	equal(b.session, 0, "select count(*) from parley.transmission_queue")
	equal(b.session, "", "select parley.get_transmission_status($1)", handle)
	b.send(handle, request, "7")
	if got := b.bodies("Answering"); !slices.Equal(got, append(want, "7")) {
		t.Errorf("received %q", got)
	}
}

func TestDelayedEndArrivesBehindDelayedMessages(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Late', '//test/Work', allow_unknown_target => true)")
	b.send(handle, request, "x")
	b.end(handle)
	b.requireState(handle, "DO")
	equal(b.session, true, "select is_end_of_dialog from parley.transmission_queue where message_sequence_number = 1")
	b.exec("select parley.create_service('//test/Late', 'Answering', array['//test/Work'])")
	got := b.receive("Answering")
	if !slices.Equal(typesOf(got), []string{request, endDialog}) {
		t.Fatalf("received %q", typesOf(got))
	}
	b.end(got[0].ConversationHandle)
	b.requireState(handle, "")
}

// Unsent messages are dropped; then no side is informed, as an Error cannot come first (spec 3.2).
func TestErrorForAMissingServiceDropsWhatWaits(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Late', '//test/Work', allow_unknown_target => true)")
	b.send(handle, request, "x")
	b.endWithError(handle, 1, "never mind")
	b.requireState(handle, "")
	b.exec("select parley.create_service('//test/Late', 'Answering', array['//test/Work'])")
	if got := b.receive("Answering"); len(got) > 0 {
		t.Errorf("received %v", got)
	}
}

func TestTargetThatRefusesSendsAnError(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_service('//test/Deaf', 'Answering')")
	handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Deaf')")
	b.send(handle, "DEFAULT", "x")
	b.requireState(handle, "ER")
	b.requireError("Asking", -8408)
	equal(b.session, 0, "select count(*) from parley.conversation_endpoints where is_initiator = 0")
	b.refuses(8429, "select parley.send($1::uuid, 'DEFAULT', 'y')", handle)
	b.end(handle)
	b.requireState(handle, "")
}

// A delayed conversation learns the same when the service is there and refuses.
func TestLateTargetThatRefusesSendsAnError(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Late', '//test/Work', allow_unknown_target => true)")
	b.send(handle, request, "x")
	b.send(handle, request, "y")
	b.exec("select parley.create_service('//test/Late', 'Answering', array['DEFAULT'])")
	b.requireError("Asking", -8408)
	equal(b.session, 0, "select count(*) from parley.transmission_queue")
	if got := b.receive("Asking"); len(got) > 0 {
		t.Errorf("received more: %v", got)
	}
}

func TestSendToASideThatWasCleanedUpFailsTheConversation(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.send(initiator, request, "by the short way")
	b.exec("select parley.end_conversation($1::uuid, cleanup => true)", target)
	b.send(initiator, request, "to nobody")
	b.requireError("Asking", -8462)
	b.requireState(initiator, "ER")
}
