package sql_test

import (
	"slices"
	"testing"
)

const receiveReply = "select * from parley.receive_reply($1, timeout => 0)"

func TestReceiveReplyEndsTheConversation(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	if got := b.messages(receiveReply, initiator); len(got) != 0 {
		t.Errorf("received %q before anything came", typesOf(got))
	}
	b.requireState(initiator, "CO")
	b.send(target, reply, "first")
	b.send(target, reply, "second")
	tx := b.begin()
	if got, want := bodiesOf(tx.messages(receiveReply, initiator)), []string{"first"}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	tx.rollback()
	if got, want := bodiesOf(b.messages(receiveReply, initiator)), []string{"first"}; !slices.Equal(got, want) {
		t.Errorf("after a rollback received %q, want %q", got, want)
	}
	b.requireState(initiator, "DO")
	b.requireState(target, "DI")
	b.end(target)
	b.refuses(8426, receiveReply, initiator)
}

func TestReceiveReplyGivesEndDialogAndError(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.end(target)
	if got, want := typesOf(b.messages(receiveReply, initiator)), []string{endDialog}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	initiator, target = b.conversation()
	b.endWithError(target, 7, "no")
	b.requireCode(b.messages(receiveReply, initiator)[0], 7)
	equal(b.session, 0, "select count(*) from parley._p_endpoint")
	// The timer of the conversation is no reply.
	initiator, _ = b.conversation()
	b.exec("select parley.begin_conversation_timer($1, 0)", initiator)
	b.exec("select parley.fire_timers()")
	if got, want := typesOf(b.messages(receiveReply, initiator)), []string{dialogTimer}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	b.requireState(initiator, "CO")
}

func TestReceiveReplyOfSeveralEachItsOwn(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	first, firstTarget := b.conversation()
	second, secondTarget := b.conversation()
	b.send(secondTarget, reply, "for the second")
	ready := "select coalesce(string_agg(h::text, ' '), '') from parley.conversations_with_messages('Asking', array[$1, $2, $3]::uuid[]) as h"
	equal(b.session, second, ready, first, second, firstTarget)
	tx := b.begin()
	equal(tx, 1, "select count(*)::integer from parley.receive_reply($1, timeout => 0)", second)
	b.send(firstTarget, reply, "for the first")
	if got, want := bodiesOf(b.messages(receiveReply, first)), []string{"for the first"}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	tx.commit()
}

func TestRightsOfReceiveReply(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.send(target, reply, "secret")
	outsider := b.as(b.role("outsider"))
	outsider.refuses(229, receiveReply, initiator)
	outsider.refuses(229, "select parley.conversations_with_messages('Asking', array[$1]::uuid[])", initiator)
	outsider.refuses(8418, receiveReply, nil)
	b.refuses(8402, "select * from parley.receive_reply($1, timeout => -2)", initiator)
	equal(b.session, 1, "select count(*)::integer from parley.receive_reply($1, timeout => null)", initiator)
}
