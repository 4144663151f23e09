package receive_test

import (
	"fmt"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestReceiveAndEndGivesWhatWaitsAndEndsItsConversations(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for i := range 3 {
		handle := b.Dialog()
		b.Send(handle, sqltest.Request, fmt.Sprint(i))
		b.Send(handle, sqltest.Request, "more")
	}
	// One group unless more are asked for.
	got := b.Messages("select * from parley.receive_and_end('Answering')")
	if bodies := fmt.Sprint(sqltest.BodiesOf(got)); bodies != "[0 more]" {
		t.Errorf("received %s", bodies)
	}
	b.RequireState(got[0].ConversationHandle, "DO")
	got = b.Messages("select * from parley.receive_and_end('Answering', groups => 5)")
	if bodies := fmt.Sprint(sqltest.BodiesOf(got)); bodies != "[1 more 2 more]" {
		t.Errorf("received %s", bodies)
	}
	if got = b.Messages("select * from parley.receive_and_end('Answering', groups => 5)"); len(got) != 0 {
		t.Errorf("received %v of an empty queue", got)
	}
	// The EndDialogs end the other sides, and nothing is left.
	got = b.Messages("select * from parley.receive_and_end('Asking', groups => 5)")
	if types := fmt.Sprint(sqltest.TypesOf(got)); types != fmt.Sprint([]string{sqltest.EndDialog, sqltest.EndDialog, sqltest.EndDialog}) {
		t.Errorf("received %s", types)
	}
	sqltest.Equal(b.Session, 0, "select count(*) from parley.conversation_endpoints where state <> 'CD'")
}

// A rollback gives the messages back, and the conversations are as open as before.
func TestReceiveAndEndIsTakenBackAsOne(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "only")
	tx := b.Begin()
	if got := fmt.Sprint(sqltest.BodiesOf(tx.Messages("select * from parley.receive_and_end('Answering')"))); got != "[only]" {
		t.Errorf("received %s", got)
	}
	tx.Rollback()
	b.RequireState(initiator, "CO")
	reader := b.As(b.Role("reader"))
	reader.Refuses(229, "select * from parley.receive_and_end('Answering')")
	if got := fmt.Sprint(b.Bodies("Answering")); got != "[only]" {
		t.Errorf("received %s", got)
	}
}
