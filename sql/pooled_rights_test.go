package sql_test

import (
	"fmt"
	"slices"
	"testing"
)

// Rights are those of begin_dialog, each time; another role gets another conversation.
func TestRightsOfGetConversation(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	ours := b.pooled("k", "1")
	name := b.role("sender")
	other := b.as(name)
	other.refuses(229, getConversation, "k")
	other.refuses(229, "select parley.warm_conversations('//test/Asker', '//test/Answerer', '//test/Work')")
	b.exec("select parley.grant('RECEIVE', 'queue', 'Asking', $1)", name)
	other.refuses(229, getConversation, "k")
	b.exec("select parley.grant('REFERENCES', 'contract', '//test/Work', $1)", name)
	theirs := value[string](other, getConversation, "k")
	if theirs == ours {
		t.Error("the conversation of another role is given")
	}
	equal(other, 1, "select count(*)::integer from parley.pooled_conversations")
	equal(b.session, 2, "select count(*)::integer from parley.pooled_conversations")
	b.exec("select parley.revoke('RECEIVE', 'queue', 'Asking', $1)", name)
	other.refuses(229, getConversation, "k")
	equal(b.session, ours, getConversation, "k")
	// Who takes a name that was free is another role.
	b.exec("select parley.grant('RECEIVE', 'queue', 'Asking', $1)", name)
	b.exec("alter role " + quote(name) + " rename to " + quote(name+" old"))
	b.afterwards("alter role " + quote(name+" old") + " rename to " + quote(name))
	equal(other, theirs, getConversation, "k")
}

// Who owns the queue of the service has a quick way; the contract may be another's.
func TestOwnerOfAQueueNeedsTheContractForEachConversation(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	name := b.role("owner")
	b.exec("select parley.grant('REFERENCES', 'contract', '//test/Work', $1)", name)
	b.exec("select parley.grant('SEND', 'service', '//test/Answerer', $1)", name)
	b.exec("select parley.alter_authorization('queue', 'Asking', $1)", name)
	b.exec("select parley.alter_authorization('service', '//test/Asker', $1)", name)
	own := b.as(name)
	handle := value[string](own, getConversation, "k")
	own.exec("select parley.send($1::uuid, $2, 'x')", handle, request)
	equal(own, handle, getConversation, "k")
	b.exec("select parley.revoke('REFERENCES', 'contract', '//test/Work', $1)", name)
	own.refuses(229, getConversation, "k")
}

func TestGetConversationRefusesBadArguments(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.refuses(8423, "select parley.get_conversation('//test/Nobody', '//test/Answerer')")
	b.refuses(8425, "select parley.get_conversation('//test/Asker', '//test/Answerer', '//test/Unknown')")
	b.refuses(8421, "select parley.get_conversation('//test/Asker', null)")
	b.refuses(8417, "select parley.get_conversation('//test/Asker', '//test/Answerer', null)")
	b.refuses(8413, "select parley.get_conversation('//test/Asker', '//test/Answerer', broker_instance => 'x')")
	for _, argument := range []string{"max_age => 0", "max_age => null", "max_messages => 0", "max_messages => null", "conversations => 0", "conversations => null"} {
		b.refuses(8402, "select parley.get_conversation('//test/Asker', '//test/Answerer', "+argument+")")
		b.refuses(8402, "select parley.warm_conversations('//test/Asker', '//test/Answerer', "+argument+")")
	}
	b.refuses(8402, "select parley.get_conversation('//test/Asker', '//test/Answerer', key => repeat('x', 257))")
	equal(b.session, 0, "select count(*) from parley._p_endpoint")
}

func TestWarmConversationsAreOpenBeforeTheirFirstMessage(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	warm := "select parley.warm_conversations('//test/Asker', '//test/Answerer', '//test/Work', conversations => 4)"
	equal(b.session, 4, warm)
	equal(b.session, 0, warm)
	equal(b.session, 4, "select count(*)::integer from parley.pooled_conversations where state = 'CO' and number between 0 and 3 and key is null")
	equal(b.session, 4, "select count(*)::integer from parley._p_endpoint where not is_initiator")
	handle := value[string](b.session, "select parley.get_conversation('//test/Asker', '//test/Answerer', '//test/Work', conversations => 4)::text")
	b.send(handle, request, "warm")
	if got, want := b.bodies("Answering"), []string{"warm"}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	equal(b.session, 4, "select count(*)::integer from parley.pooled_conversations")
	b.makePooledDue()
	for range 4 {
		got := b.receive("Answering")
		if want := []string{endDialog}; !slices.Equal(typesOf(got), want) {
			t.Fatalf("received %q, want %q", typesOf(got), want)
		}
		b.end(got[0].ConversationHandle)
	}
	equal(b.session, 0, "select count(*) from parley._p_endpoint")
}

// A target that is not here, or refuses, is found out by the first message.
func TestWarmConversationsToATargetElsewhere(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.refuses(9796, "select parley.warm_conversations('//test/Asker', '//test/Nowhere', conversations => 2)")
	s := b.connection()
	s.exec(unknownTargets)
	equal(s, 2, "select parley.warm_conversations('//test/Asker', '//test/Nowhere', conversations => 2)")
	b.exec("select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])")
	equal(b.session, 2, "select parley.warm_conversations('//test/Asker', '//test/Answerer', '//test/Work', conversations => 2)")
	equal(b.session, 4, "select count(*)::integer from parley.pooled_conversations where state = 'SO'")
	b.requireNoFinding(runtime, "conversation-not-used")
	b.makePooledDue()
	equal(b.session, 0, "select count(*) from parley._p_endpoint")
}

// Rows of conversations that are gone are removed as others begin.
func TestPoolForgetsWhatIsGone(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	for i := range 30 {
		b.end(value[string](b.session, getConversation, fmt.Sprint(i)))
	}
	b.exec("update parley._p_pooled_conversation set retire_at = now()")
	for i := range 4 {
		b.pooled(fmt.Sprint("new", i), "x")
	}
	equal(b.session, 4, "select count(*)::integer from parley._p_pooled_conversation")
}
