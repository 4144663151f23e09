package send_test

import (
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestSendAndEndLeavesNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.SendAndEnd("//test/Answerer", "once")
	b.RequireState(handle, "DO")
	got := b.Receive("Answering")
	if want := []string{sqltest.Request, sqltest.EndDialog}; !slices.Equal(sqltest.TypesOf(got), want) {
		t.Fatalf("received %q, want %q", sqltest.TypesOf(got), want)
	}
	b.End(got[0].ConversationHandle)
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_endpoint")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_conversation_group where service_id >= 65536")
}

// A target that reads and never ends leaves nothing either, once the time for abandoned conversations is over.
func TestSendAndEndLeavesNothingWhenTheTargetNeverEnds(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.SendAndEnd("//test/Answerer", "once")
	b.Receive("Answering")
	b.Exec("update parley._p_alarm set due_at = clock_timestamp() where kind = 'abandoned'")
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_endpoint")
}

// Messages that cannot be delivered yet are kept until they can.
func TestSendAndEndWaitsForItsTarget(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	s := b.Connection()
	s.Exec(sqltest.UnknownTargets)
	s.SendAndEnd("//test/Later", "early")
	b.Exec("select parley.create_service('//test/Later', 'Answering', array['//test/Work'])")
	if got := b.Bodies("Answering"); len(got) != 2 || got[0] != "early" {
		t.Errorf("received %q, want the message and EndDialog", got)
	}
}

func TestSendAndEndIsUndoneByARollback(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	tx := b.Begin()
	tx.SendAndEnd("//test/Answerer", "never")
	tx.Rollback()
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_endpoint")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_message")
}

func TestSendAndEndRefusesAsItsPartsDo(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Refuses(8423, "select parley.send_and_end('//test/Nobody', '//test/Answerer')")
	b.Refuses(8428, "select parley.send_and_end('//test/Asker', '//test/Answerer', '//test/Unknown', 'x', '//test/Work')")
	b.Refuses(8432, "select parley.send_and_end('//test/Asker', '//test/Answerer', $1, '\\x00'::bytea, '//test/Work')", sqltest.Reply)
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_endpoint")
}

// The rights are those of the role that calls, in both forms.
func TestSendAndEndAsksForTheRightsOfItsCaller(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	outsider := b.As(b.Role("outsider"))
	outsider.Refuses(229, "select parley.send_and_end('//test/Asker', '//test/Answerer', $1, 'x', '//test/Work')", sqltest.Request)
	outsider.Refuses(229, "select parley.send_and_end('//test/Asker', '//test/Answerer', $1, 'x'::bytea, '//test/Work')", sqltest.Request)
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_endpoint")
}

func TestSendBinaryAndEndKeepsEveryByte(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	body := []byte{0, 255, 0, 128}
	b.Exec("select parley.send_and_end('//test/Asker', '//test/Answerer', $1, $2::bytea, '//test/Work')", sqltest.Request, body)
	sqltest.Equal(b.Session, true, "select message_body = $1 from parley.receive('Answering', top => 1)", body)
}

// A dialog is one-way only while one message was read, nothing came back, and nothing is to come.
func TestOneWayConversationsAreThoseThatNobodyGoesOnWith(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	oneWay := func() int { return sqltest.Value[int](b.Session, "select count(*) from parley.one_way_conversations") }
	require := func(want int, when string) {
		t.Helper()
		if got := oneWay(); got != want {
			t.Errorf("%d one-way conversations %s, want %d", got, when, want)
		}
	}
	read := func(target string) {
		b.Messages("select * from parley.receive('Answering', conversation_handle => $1)", target)
	}
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "1")
	require(0, "while the message waits")
	read(b.FarHandle(initiator))
	require(1, "once it is read")
	b.Exec("select parley.begin_conversation_timer($1::uuid, 3600)", initiator)
	require(0, "while a timer runs")
	b.Exec("select parley.end_conversation($1::uuid)", initiator)
	require(0, "once it is ended")

	initiator, target := b.Conversation()
	b.Send(initiator, sqltest.Request, "2")
	read(target)
	require(0, "on a dialog that goes on")

	_, target = b.Conversation()
	b.Send(target, sqltest.Reply, "answer")
	require(0, "when the answer waits")
	b.Receive("Asking")
	require(0, "when the answer was read")

	b.SendAndEnd("//test/Answerer", "x")
	b.Receive("Answering")
	require(0, "after send_and_end")
}
