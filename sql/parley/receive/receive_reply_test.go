package receive_test

import (
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestReceiveReplyEndsTheConversation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	if got := b.Messages(sqltest.ReceiveReply, initiator); len(got) != 0 {
		t.Errorf("received %q before anything came", sqltest.TypesOf(got))
	}
	b.RequireState(initiator, "CO")
	b.Send(target, sqltest.Reply, "first")
	b.Send(target, sqltest.Reply, "second")
	tx := b.Begin()
	if got, want := sqltest.BodiesOf(tx.Messages(sqltest.ReceiveReply, initiator)), []string{"first"}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	tx.Rollback()
	if got, want := sqltest.BodiesOf(b.Messages(sqltest.ReceiveReply, initiator)), []string{"first"}; !slices.Equal(got, want) {
		t.Errorf("after a rollback received %q, want %q", got, want)
	}
	b.RequireState(initiator, "DO")
	b.RequireState(target, "DI")
	b.End(target)
	b.Refuses(8426, sqltest.ReceiveReply, initiator)
}

func TestReceiveReplyGivesEndDialogAndError(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.End(target)
	if got, want := sqltest.TypesOf(b.Messages(sqltest.ReceiveReply, initiator)), []string{sqltest.EndDialog}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	initiator, target = b.Conversation()
	b.EndWithError(target, 7, "no")
	b.RequireCode(b.Messages(sqltest.ReceiveReply, initiator)[0], 7)
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_endpoint")
	// The timer of the conversation is no reply.
	initiator, _ = b.Conversation()
	b.Exec("select parley.begin_conversation_timer($1, 0)", initiator)
	b.Exec("select parley.fire_timers()")
	if got, want := sqltest.TypesOf(b.Messages(sqltest.ReceiveReply, initiator)), []string{sqltest.DialogTimer}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	b.RequireState(initiator, "CO")
}

func TestReceiveReplyOfSeveralEachItsOwn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	first, firstTarget := b.Conversation()
	second, secondTarget := b.Conversation()
	b.Send(secondTarget, sqltest.Reply, "for the second")
	ready := "select coalesce(string_agg(h::text, ' '), '') from parley.conversations_with_messages('Asking', array[$1, $2, $3]::uuid[]) as h"
	sqltest.Equal(b.Session, second, ready, first, second, firstTarget)
	tx := b.Begin()
	sqltest.Equal(tx, 1, "select count(*)::integer from parley.receive_reply($1, timeout => 0)", second)
	b.Send(firstTarget, sqltest.Reply, "for the first")
	if got, want := sqltest.BodiesOf(b.Messages(sqltest.ReceiveReply, first)), []string{"for the first"}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	tx.Commit()
}
