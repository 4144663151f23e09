package sql_test

import (
	"strings"
	"testing"
)

// What each side waits for, by what happened to it.
func TestStuckConversationsShowReasonAndRemedy(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	idle, idleTarget := b.conversation()
	begun := b.dialog()
	delayed := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Missing', allow_unknown_target => true)")
	b.send(delayed, "DEFAULT", "x")
	_, unread := b.conversation()
	b.send(b.farHandle(unread), request, "x")
	ended, unended := b.conversation()
	b.end(ended)
	b.messages("select * from parley.receive('Answering', conversation_handle => $1)", unended)
	_, farEnded := b.conversation()
	b.end(b.farHandle(farEnded))
	failed, failing := b.conversation()
	b.endWithError(failing, 1, "no")

	for handle, want := range map[string]struct{ reason, remedy string }{
		begun:    {"nothing was sent", "end_conversation"},
		delayed:  {`"//test/Missing" does not exist`, "Create the target service"},
		unread:   {"wait to be received", "Receive"},
		ended:    {"the other side has not", "End the other side"},
		unended:  {"was not ended", "end_conversation"},
		farEnded: {"wait to be received", "Receive"},
		failed:   {"has failed", "Receive"},
	} {
		got := values[string](b.session, "select reason || ' / ' || remedy from parley.stuck_conversations where conversation_handle = $1", handle)
		if len(got) != 1 || !strings.Contains(got[0], want.reason) || !strings.Contains(got[0], want.remedy) {
			t.Errorf("a side of which %q is expected is stuck by %q", want.reason, got)
		}
	}
	// A side that has sent and read everything waits for nothing.
	equal(b.session, 0, "select count(*) from parley.stuck_conversations where conversation_handle in ($1, $2)", idle, idleTarget)
}

func TestRemedyOfAStuckConversationHelps(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	begun := b.dialog()
	b.exec(value[string](b.session, "select remedy from parley.stuck_conversations where conversation_handle = $1", begun))
	equal(b.session, 0, "select count(*) from parley.stuck_conversations")
}

func TestStuckConversationsCountWhatWaits(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.exec("select parley.send_batch($1::uuid, '//test/Request', array(select 'x' from generate_series(1, 2500)))", initiator)
	equal(b.session, 2500, "select waiting from parley.stuck_conversations where conversation_handle = $1", target)
}

func TestLeakedConversationsAreThoseStuckForLong(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	ended, target := b.conversation()
	b.end(ended)
	equal(b.session, 0, "select count(*) from parley.leaked_conversations()")
	equal(b.session, 2, "select count(*) from parley.leaked_conversations(interval '0')")
	b.exec("update parley._p_endpoint set state_since = now() - interval '2 hours' where conversation_handle = $1", target)
	equal(b.session, target, "select conversation_handle::text from parley.leaked_conversations()")
	equal(b.session, 0, "select count(*) from parley.leaked_conversations(interval '3 hours')")
}
