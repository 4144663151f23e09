package sql_test

import (
	"slices"
	"testing"
)

// sendAndEnd sends one request that needs no answer and gives the handle.
func (s session) sendAndEnd(to, body string) string {
	s.Helper()
	return value[string](s, "select parley.send_and_end('//test/Asker', $1, $2, $3, '//test/Work')::text", to, request, body)
}

func TestSendAndEndLeavesNothing(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.sendAndEnd("//test/Answerer", "once")
	b.requireState(handle, "DO")
	got := b.receive("Answering")
	if want := []string{request, endDialog}; !slices.Equal(typesOf(got), want) {
		t.Fatalf("received %q, want %q", typesOf(got), want)
	}
	b.end(got[0].ConversationHandle)
	equal(b.session, 0, "select count(*) from parley._p_endpoint")
	equal(b.session, 0, "select count(*) from parley._p_conversation_group where service_id >= 65536")
}

// A target that reads and never ends leaves nothing either, once the time for abandoned conversations is over.
func TestSendAndEndLeavesNothingWhenTheTargetNeverEnds(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.sendAndEnd("//test/Answerer", "once")
	b.receive("Answering")
	b.exec("update parley._p_alarm set due_at = clock_timestamp() where kind = 'abandoned'")
	b.exec("select parley.fire_timers()")
	equal(b.session, 0, "select count(*) from parley._p_endpoint")
}

// What cannot be delivered yet is kept until it can.
func TestSendAndEndWaitsForItsTarget(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	s := b.connection()
	s.exec(unknownTargets)
	s.sendAndEnd("//test/Later", "early")
	b.exec("select parley.create_service('//test/Later', 'Answering', array['//test/Work'])")
	if got := b.bodies("Answering"); len(got) != 2 || got[0] != "early" {
		t.Errorf("received %q, want the message and EndDialog", got)
	}
}

func TestSendAndEndIsUndoneByARollback(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	tx := b.begin()
	tx.sendAndEnd("//test/Answerer", "never")
	tx.rollback()
	equal(b.session, 0, "select count(*) from parley._p_endpoint")
	equal(b.session, 0, "select count(*) from parley._p_message")
}

func TestSendAndEndRefusesAsItsPartsDo(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.refuses(8423, "select parley.send_and_end('//test/Nobody', '//test/Answerer')")
	b.refuses(8428, "select parley.send_and_end('//test/Asker', '//test/Answerer', '//test/Unknown', 'x', '//test/Work')")
	b.refuses(8432, "select parley.send_binary_and_end('//test/Asker', '//test/Answerer', $1, '\\x00', '//test/Work')", reply)
	equal(b.session, 0, "select count(*) from parley._p_endpoint")
}

// The rights are those of the role that calls, in both forms.
func TestSendAndEndAsksForTheRightsOfItsCaller(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	outsider := b.as(b.role("outsider"))
	outsider.refuses(229, "select parley.send_and_end('//test/Asker', '//test/Answerer', $1, 'x', '//test/Work')", request)
	outsider.refuses(229, "select parley.send_binary_and_end('//test/Asker', '//test/Answerer', $1, 'x', '//test/Work')", request)
	equal(b.session, 0, "select count(*) from parley._p_endpoint")
}

func TestSendBinaryAndEndKeepsEveryByte(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	body := []byte{0, 255, 0, 128}
	b.exec("select parley.send_binary_and_end('//test/Asker', '//test/Answerer', $1, $2, '//test/Work')", request, body)
	equal(b.session, true, "select message_body = $1 from parley.receive('Answering', top => 1)", body)
}

// A dialog is one-way only while one message was read, nothing came back, and nothing is to come.
func TestOneWayConversationsAreThoseThatNobodyGoesOnWith(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	oneWay := func() int { return value[int](b.session, "select count(*) from parley.one_way_conversations") }
	require := func(want int, when string) {
		t.Helper()
		if got := oneWay(); got != want {
			t.Errorf("%d one-way conversations %s, want %d", got, when, want)
		}
	}
	read := func(target string) {
		b.messages("select * from parley.receive('Answering', conversation_handle => $1)", target)
	}
	initiator := b.dialog()
	b.send(initiator, request, "1")
	require(0, "while the message waits")
	read(b.farHandle(initiator))
	require(1, "once it is read")
	b.exec("select parley.begin_conversation_timer($1::uuid, 3600)", initiator)
	require(0, "while a timer runs")
	b.exec("select parley.end_conversation($1::uuid)", initiator)
	require(0, "once it is ended")

	initiator, target := b.conversation()
	b.send(initiator, request, "2")
	read(target)
	require(0, "on a dialog that goes on")

	_, target = b.conversation()
	b.send(target, reply, "answer")
	require(0, "when the answer waits")
	b.receive("Asking")
	require(0, "when the answer was read")

	b.sendAndEnd("//test/Answerer", "x")
	b.receive("Answering")
	require(0, "after send_and_end")
}
