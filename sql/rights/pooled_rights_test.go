package rights_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Rights are those of begin_dialog, each time; another role gets another conversation.
func TestRightsOfGetConversation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	ours := b.Pooled("k", "1")
	name := b.Role("sender")
	other := b.As(name)
	other.Refuses(229, sqltest.GetConversation, "k")
	other.Refuses(229, "select parley.warm_conversations('//test/Asker', '//test/Answerer', '//test/Work')")
	b.Exec("select parley.grant('RECEIVE', 'queue', 'Asking', $1)", name)
	other.Refuses(229, sqltest.GetConversation, "k")
	b.Exec("select parley.grant('REFERENCES', 'contract', '//test/Work', $1)", name)
	theirs := sqltest.Value[string](other, sqltest.GetConversation, "k")
	if theirs == ours {
		t.Error("the conversation of another role is given")
	}
	sqltest.Equal(other, 1, "select count(*)::integer from parley.pooled_conversations")
	sqltest.Equal(b.Session, 2, "select count(*)::integer from parley.pooled_conversations")
	b.Exec("select parley.revoke('RECEIVE', 'queue', 'Asking', $1)", name)
	other.Refuses(229, sqltest.GetConversation, "k")
	sqltest.Equal(b.Session, ours, sqltest.GetConversation, "k")
	// A role that takes a name that was free is another one.
	b.Exec("select parley.grant('RECEIVE', 'queue', 'Asking', $1)", name)
	b.Exec("alter role " + sqltest.Quote(name) + " rename to " + sqltest.Quote(name+" old"))
	b.Afterwards("alter role " + sqltest.Quote(name+" old") + " rename to " + sqltest.Quote(name))
	sqltest.Equal(other, theirs, sqltest.GetConversation, "k")
}

// The owner of the queue of the service has a quick way; the contract may be another's.
func TestOwnerOfAQueueNeedsTheContractForEachConversation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	name := b.Role("owner")
	b.Exec("select parley.grant('REFERENCES', 'contract', '//test/Work', $1)", name)
	b.Exec("select parley.grant('SEND', 'service', '//test/Answerer', $1)", name)
	b.Exec("select parley.alter_authorization('queue', 'Asking', $1)", name)
	b.Exec("select parley.alter_authorization('service', '//test/Asker', $1)", name)
	own := b.As(name)
	handle := sqltest.Value[string](own, sqltest.GetConversation, "k")
	own.Exec("select parley.send($1::uuid, $2, 'x')", handle, sqltest.Request)
	sqltest.Equal(own, handle, sqltest.GetConversation, "k")
	b.Exec("select parley.revoke('REFERENCES', 'contract', '//test/Work', $1)", name)
	own.Refuses(229, sqltest.GetConversation, "k")
}

func TestGetConversationRefusesBadArguments(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Refuses(8423, "select parley.get_conversation('//test/Nobody', '//test/Answerer')")
	b.Refuses(8425, "select parley.get_conversation('//test/Asker', '//test/Answerer', '//test/Unknown')")
	b.Refuses(8421, "select parley.get_conversation('//test/Asker', null)")
	b.Refuses(8417, "select parley.get_conversation('//test/Asker', '//test/Answerer', null)")
	b.Refuses(8413, "select parley.get_conversation('//test/Asker', '//test/Answerer', broker_instance => 'x')")
	for _, argument := range []string{"max_age => 0", "max_age => null", "max_messages => 0", "max_messages => null", "conversations => 0", "conversations => null"} {
		b.Refuses(8402, "select parley.get_conversation('//test/Asker', '//test/Answerer', "+argument+")")
		b.Refuses(8402, "select parley.warm_conversations('//test/Asker', '//test/Answerer', "+argument+")")
	}
	b.Refuses(8402, "select parley.get_conversation('//test/Asker', '//test/Answerer', key => repeat('x', 257))")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_endpoint")
}

func TestWarmConversationsAreOpenBeforeTheirFirstMessage(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	warm := "select parley.warm_conversations('//test/Asker', '//test/Answerer', '//test/Work', conversations => 4)"
	sqltest.Equal(b.Session, 4, warm)
	sqltest.Equal(b.Session, 0, warm)
	sqltest.Equal(b.Session, 4, "select count(*)::integer from parley.pooled_conversations where state = 'CO' and number between 0 and 3 and key is null")
	sqltest.Equal(b.Session, 4, "select count(*)::integer from parley._p_endpoint where not is_initiator")
	handle := sqltest.Value[string](b.Session, "select parley.get_conversation('//test/Asker', '//test/Answerer', '//test/Work', conversations => 4)::text")
	b.Send(handle, sqltest.Request, "warm")
	if got, want := b.Bodies("Answering"), []string{"warm"}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	sqltest.Equal(b.Session, 4, "select count(*)::integer from parley.pooled_conversations")
	b.MakePooledDue()
	for range 4 {
		got := b.Receive("Answering")
		if want := []string{sqltest.EndDialog}; !slices.Equal(sqltest.TypesOf(got), want) {
			t.Fatalf("received %q, want %q", sqltest.TypesOf(got), want)
		}
		b.End(got[0].ConversationHandle)
	}
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_endpoint")
}

// A target that is not here, or refuses, is found out by the first message.
func TestWarmConversationsToATargetElsewhere(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Refuses(9796, "select parley.warm_conversations('//test/Asker', '//test/Nowhere', conversations => 2)")
	s := b.Connection()
	s.Exec(sqltest.UnknownTargets)
	sqltest.Equal(s, 2, "select parley.warm_conversations('//test/Asker', '//test/Nowhere', conversations => 2)")
	b.Exec("select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])")
	sqltest.Equal(b.Session, 2, "select parley.warm_conversations('//test/Asker', '//test/Answerer', '//test/Work', conversations => 2)")
	sqltest.Equal(b.Session, 4, "select count(*)::integer from parley.pooled_conversations where state = 'SO'")
	b.RequireNoFinding(sqltest.Runtime, "conversation-not-used")
	b.MakePooledDue()
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_endpoint")
}

// Rows of conversations that are gone are removed as others begin.
func TestPoolForgetsWhatIsGone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for i := range 30 {
		b.End(sqltest.Value[string](b.Session, sqltest.GetConversation, fmt.Sprint(i)))
	}
	b.Exec("update parley._p_pooled_conversation set retire_at = now()")
	for i := range 4 {
		b.Pooled(fmt.Sprint("new", i), "x")
	}
	sqltest.Equal(b.Session, 4, "select count(*)::integer from parley._p_pooled_conversation")
}
