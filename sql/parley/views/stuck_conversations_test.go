package views_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// The party for which each side waits, by what happened to it.
func TestStuckConversationsShowReasonAndRemedy(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	idle, idleTarget := b.Conversation()
	begun := b.Dialog()
	delayed := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Missing', allow_unknown_target => true)")
	b.Send(delayed, "DEFAULT", "x")
	_, unread := b.Conversation()
	b.Send(b.FarHandle(unread), sqltest.Request, "x")
	ended, unended := b.Conversation()
	b.End(ended)
	b.Messages("select * from parley.receive('Answering', conversation_handle => $1)", unended)
	_, farEnded := b.Conversation()
	b.End(b.FarHandle(farEnded))
	failed, failing := b.Conversation()
	b.EndWithError(failing, 1, "no")

	for handle, want := range map[string]struct{ reason, remedy string }{
		begun:    {"nothing was sent", "end_conversation"},
		delayed:  {`"//test/Missing" does not exist`, "Create the target service"},
		unread:   {"wait to be received", "Receive"},
		ended:    {"the other side has not", "End the other side"},
		unended:  {"was not ended", "end_conversation"},
		farEnded: {"wait to be received", "Receive"},
		failed:   {"has failed", "Receive"},
	} {
		got := sqltest.Values[string](b.Session, "select reason || ' / ' || remedy from parley.stuck_conversations where conversation_handle = $1", handle)
		if len(got) != 1 || !strings.Contains(got[0], want.reason) || !strings.Contains(got[0], want.remedy) {
			t.Errorf("a side of which %q is expected is stuck by %q", want.reason, got)
		}
	}
	// A side that has sent and read everything waits for nothing.
	sqltest.Equal(b.Session, 0, "select count(*) from parley.stuck_conversations where conversation_handle in ($1, $2)", idle, idleTarget)
}

func TestRemedyOfAStuckConversationHelps(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	begun := b.Dialog()
	b.Exec(sqltest.Value[string](b.Session, "select remedy from parley.stuck_conversations where conversation_handle = $1", begun))
	sqltest.Equal(b.Session, 0, "select count(*) from parley.stuck_conversations")
}

func TestStuckConversationsCountWhatWaits(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Exec("select parley.send_batch($1::uuid, '//test/Request', array(select 'x' from generate_series(1, 2500)))", initiator)
	sqltest.Equal(b.Session, 2500, "select waiting from parley.stuck_conversations where conversation_handle = $1", target)
}

func TestLeakedConversationsAreThoseStuckForLong(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	ended, target := b.Conversation()
	b.End(ended)
	sqltest.Equal(b.Session, 0, "select count(*) from parley.leaked_conversations()")
	sqltest.Equal(b.Session, 2, "select count(*) from parley.leaked_conversations(interval '0')")
	b.Exec("update parley._p_endpoint set state_since = now() - interval '2 hours' where conversation_handle = $1", target)
	sqltest.Equal(b.Session, target, "select conversation_handle::text from parley.leaked_conversations()")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.leaked_conversations(interval '3 hours')")
}
