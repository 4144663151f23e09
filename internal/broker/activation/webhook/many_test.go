package webhook_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley"
)

// An answer says for each conversation what it asks; what cannot be is the refusal of one.
func TestRequestHoldsMessagesOfSeveralGroups(t *testing.T) {
	t.Parallel()
	b := newFixture(t, ", batch_size => 8, groups => 4, max_attempts => 2", func(w http.ResponseWriter, r request) {
		var answers []string
		for _, c := range r.Conversations {
			messageType := parley.DefaultMessageType
			if c.bodies() == "nono" {
				messageType = "//none"
			}
			answers = append(answers, fmt.Sprintf(`{"conversation_handle": %q, "reply": {"message_type": %q, "body": "to %s"}, "end": true}`,
				c.ConversationHandle, messageType, c.bodies()))
		}
		answerJSON(`{"conversations": [%s]}`, strings.Join(answers, ","))(w, r)
	})
	for _, body := range []string{"a", "no", "c"} {
		b.dialog(body, body)
	}
	b.require(parley.EndConversationWithError(t.Context(), b.pool, b.dialog("lost"), 5, "gone"))
	b.dialog("d")
	b.run(1)
	b.requireWaiting(2) // set aside
	seen := b.seen()
	if first := seen[0]; len(first.Conversations) != 3 || first.Conversations[0].bodies() != "aa" || first.Conversations[2].bodies() != "cc" ||
		first.header.Get("Parley-Conversation-Count") != "3" || first.header.Get("Parley-Message-Count") != "6" || first.Queue != "target" {
		t.Errorf("the first request is %s with %v", first.body, first.header)
	}
	if got := value[string](b, "select string_agg(body, ' ' order by body) from (select parley.body_text(message_body) as body from parley.queue_contents('initiator') where message_body is not null) as m"); got != "to aa to cc to d" {
		t.Errorf("the replies are %q", got)
	}
	if got := value[int](b, "select rollbacks from parley.poison_conversations"); got != 2 {
		t.Errorf("set aside after %d attempts", got)
	}
}

// A message that was refused together with others comes alone, counts from there, and takes nothing along any more.
func TestRefusedRequestOfSeveralGroupsComesOneByOne(t *testing.T) {
	t.Parallel()
	b := newFixture(t, ", batch_size => 10, groups => 10, max_attempts => 2", func(w http.ResponseWriter, r request) {
		for _, c := range r.Conversations {
			if c.bodies() == "bad" {
				w.WriteHeader(http.StatusBadRequest)
			}
		}
	})
	for _, body := range []string{"a", "b", "bad", "d"} {
		b.dialog(body)
	}
	b.run(1)
	b.requireWaiting(1)
	var got []string
	ids := map[string]bool{}
	for _, r := range b.seen() {
		var together []string
		for _, c := range r.Conversations {
			together = append(together, c.bodies())
		}
		got = append(got, strings.Join(together, "+"))
		ids[r.header.Get("Webhook-Id")] = true
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"a", "a+b+bad+d", "b", "bad", "bad", "d"}) {
		t.Errorf("delivered were %q", got)
	}
	if len(ids) != 5 {
		t.Errorf("%d identities, want one for all of them and one of each", len(ids))
	}
	if got := value[int](b, "select rollbacks from parley.poison_conversations"); got != 2 {
		t.Errorf("set aside after %d attempts", got)
	}
	b.dialog("e")
	b.dialog("f")
	b.run(1)
	if last := b.seen()[len(b.seen())-1]; len(last.Conversations) != 2 {
		t.Errorf("then came %s", last.body)
	}
}
