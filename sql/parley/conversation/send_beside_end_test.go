package conversation_test

import (
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A message of a type that is not the usual one is sent the long way, each time. It shares the row of its side too.
func TestEndWaitsForASendThatTakesTheLongWay(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for _, end := range []string{
		"select parley.end_conversation($1::uuid)", "select parley.end_conversations(array[$1::uuid])",
	} {
		handle, target := b.Conversation()
		sender := b.Begin()
		sender.Send(handle, sqltest.Note, "before the end")
		w := b.Blocked(end, handle)
		sender.Commit()
		w.RequireSuccess()
		if got := sqltest.TypesOf(b.Receive("Answering")); !slices.Equal(got, []string{sqltest.Note, sqltest.EndDialog}) {
			t.Errorf("received %q", got)
		}
		b.End(target)
	}
}

// SEND finds its side and then locks it. In between that may go.
func TestSendOnASideThatGoesWhileItIsFoundIsRefused(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle, target := b.Conversation()
	gate := b.PauseBefore("_p_find_sender", "select * into v_endpoint from parley._p_endpoint as e where e.conversation_handle = handle for key share;")
	w := b.Blocked("select parley.send($1::uuid, '//test/Note', 'x')", handle)
	for _, side := range []string{handle, target} {
		b.Exec("select parley.end_conversation($1::uuid, cleanup => true)", side)
	}
	gate.Rollback()
	w.RequireRefusal(8426)
}
