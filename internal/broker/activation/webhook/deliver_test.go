package webhook_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley"
)

func TestMessagesAreDeliveredInOrderAndReceived(t *testing.T) {
	t.Parallel()
	b := newFixture(t, "", accept)
	handle := b.dialog("one", "", "\x00\xff")
	b.run(1)
	b.requireWaiting(0)
	seen := b.seen()
	if len(seen) != 3 {
		t.Fatalf("%d requests came", len(seen))
	}
	for i, want := range []struct{ encoding, body string }{{"text", "one"}, {"none", ""}, {"base64", "AP8="}} {
		r := seen[i]
		m := r.Messages[0]
		if m.BodyEncoding != want.encoding || r.text() != want.body || m.MessageSequenceNumber != int64(i) || m.MessageTypeName != "DEFAULT" {
			t.Errorf("request %d is %s", i, r.body)
		}
		if r.Queue != "target" || r.ServiceName != "target" || r.ConversationHandle == handle.String() || r.ConversationHandle != r.header.Get("Parley-Conversation-Handle") {
			t.Errorf("request %d is %s with %v", i, r.body, r.header)
		}
		if r.header.Get("Webhook-Id") != m.MessageID || r.header.Get("Idempotency-Key") != m.MessageID {
			t.Errorf("request %d has the headers %v", i, r.header)
		}
	}
}

func TestBatchHoldsMessagesOfOneConversation(t *testing.T) {
	t.Parallel()
	b := newFixture(t, ", batch_size => 3", accept)
	b.dialog("1", "2", "3", "4")
	b.dialog("x")
	b.run(1)
	b.requireWaiting(0)
	var got []string
	for _, r := range b.seen() {
		var bodies []string
		for _, m := range r.Messages {
			bodies = append(bodies, *m.Body)
		}
		got = append(got, strings.Join(bodies, ""))
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"123", "4", "x"}) {
		t.Errorf("delivered were %q", got)
	}
}

func TestRawBodyComesAsItIs(t *testing.T) {
	t.Parallel()
	b := newFixture(t, ", body_format => 'raw'", accept)
	b.dialog("text", "\x00\xff")
	b.run(1)
	seen := b.seen()
	if string(seen[0].body) != "text" || seen[0].header.Get("Content-Type") != "text/plain; charset=utf-8" ||
		string(seen[1].body) != "\x00\xff" || seen[1].header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("delivered were %q %v and %q %v", seen[0].body, seen[0].header, seen[1].body, seen[1].header)
	}
	for name, want := range map[string]string{
		"Parley-Queue": "target", "Parley-Service": "target", "Parley-Message-Type": "DEFAULT", "Parley-Message-Sequence-Number": "1", "Parley-Message-Count": "1",
	} {
		if got := seen[1].header.Get(name); got != want {
			t.Errorf("header %s is %q, want %q", name, got, want)
		}
	}
}

func TestReplyAndEndHappenWithTheReceive(t *testing.T) {
	t.Parallel()
	b := newFixture(t, "", answerJSON(`{"reply": {"message_type": "DEFAULT", "body": "pong"},
		"replies": [{"message_type": "DEFAULT", "body": {"n": 1}}, {"message_type": "DEFAULT", "body_base64": "AP8="}], "end": true}`))
	b.dialog("ping")
	b.run(1)
	got, err := parley.Receive(t.Context(), b.pool, "initiator")
	b.require(err)
	if len(got) != 4 || string(got[0].MessageBody) != "pong" || string(got[1].MessageBody) != `{"n": 1}` || string(got[2].MessageBody) != "\x00\xff" || !got[3].IsEndDialog() {
		t.Errorf("received %+v", got)
	}
}

func TestConversationEndsWithTheErrorThatTheAnswerGives(t *testing.T) {
	t.Parallel()
	b := newFixture(t, "", answerJSON(`{"end_with_error": {"code": 7, "description": "no such order"}}`))
	b.dialog("ping")
	b.run(1)
	got, err := parley.Receive(t.Context(), b.pool, "initiator")
	b.require(err)
	if len(got) != 1 || !got[0].IsError() {
		t.Fatalf("received %+v", got)
	}
	if cause, err := parley.ParseError(got[0].MessageBody); err != nil || cause.Code != 7 || cause.Description != "no such order" {
		t.Errorf("the error is %v %v", cause, err)
	}
}

func TestAnswerThatCannotBeDoneIsARefusal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, answer string }{
		{"malformed", `{"reply": `},
		{"unknown message type", `{"reply": {"message_type": "//none"}}`},
		{"no message type", `{"reply": {"body": "x"}}`},
		{"a message type with a zero byte", `{"reply": {"message_type": "DEFAULT\u0000"}}`},
		{"a reply that can be sent, and one that cannot", `{"replies": [{"message_type": "DEFAULT"}, {"message_type": "//none"}], "end": true}`},
		{"an error without a code", `{"end_with_error": {"description": "x"}}`},
		{"an error that is too long", `{"end_with_error": {"code": 1, "description": "` + strings.Repeat("x", 3001) + `"}}`},
		{"an error with a zero byte", `{"end_with_error": {"code": 1, "description": "\u0000"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newFixture(t, ", max_attempts => 4", answerJSON("%s", c.answer))
			// It is no rollback either, after two of which this queue would be off.
			b.exec("select parley.alter_queue('target', poison_action => 'DISABLE_QUEUE', poison_rollbacks => 2)")
			b.dialog("ping")
			b.run(1)
			if got := value[int](b, "select rollbacks from parley.poison_conversations"); got != 4 {
				t.Errorf("set aside after %d attempts", got)
			}
			if got := len(b.seen()); got != 4 {
				t.Errorf("%d requests came", got)
			}
			if got := value[int](b, "select count(*) from parley.queue_contents('initiator')"); got != 0 {
				t.Errorf("%d messages came back", got)
			}
		})
	}
}

func TestFarSideThatEndsIsAnsweredWithoutARequest(t *testing.T) {
	t.Parallel()
	b := newFixture(t, ", batch_size => 10", accept)
	b.require(parley.EndConversation(t.Context(), b.pool, b.dialog("last")))
	b.require(parley.EndConversationWithError(t.Context(), b.pool, b.dialog("lost"), 5, "gone"))
	b.run(1)
	for _, r := range b.seen() {
		for _, m := range r.Messages {
			if m.MessageTypeName != parley.DefaultMessageType {
				t.Errorf("%s was posted", m.MessageTypeName)
			}
		}
	}
	if seen := b.seen(); len(seen) != 1 || seen[0].text() != "last" {
		t.Errorf("%d requests were posted, want one for what was sent before the end, and none for what the Error has overtaken", len(seen))
	}
	if got := value[int](b, "select count(*) from parley.conversation_endpoints where state <> 'CD'"); got != 0 {
		t.Errorf("%d sides are left open", got)
	}
	if !strings.Contains(b.log.String(), "description=gone") {
		t.Errorf("the error is not in the log:\n%s", b.log)
	}
}

func TestSystemMessagesAreDeliveredWhenAskedFor(t *testing.T) {
	t.Parallel()
	b := newFixture(t, ", system_messages => true", func(w http.ResponseWriter, r request) {
		if r.Messages[0].MessageTypeName == parley.EndDialogMessageType {
			answerJSON(`{"end": true}`)(w, r)
		}
	})
	b.require(parley.EndConversation(t.Context(), b.pool, b.dialog("last")))
	b.run(1)
	seen := b.seen()
	if len(seen) != 2 || seen[1].Messages[0].MessageTypeName != parley.EndDialogMessageType {
		t.Errorf("%d requests came", len(seen))
	}
	if got := value[int](b, "select count(*) from parley.conversation_endpoints where state <> 'CD'"); got != 0 {
		t.Errorf("%d sides are left open", got)
	}
}

func TestManyReadersDeliverEachMessageOnce(t *testing.T) {
	t.Parallel()
	b := newFixture(t, "", accept)
	for range 10 {
		b.dialog("1", "2", "3", "4", "5")
	}
	b.run(4)
	b.requireWaiting(0)
	orders := map[string]string{}
	for _, r := range b.seen() {
		orders[r.ConversationHandle] += r.text()
	}
	if len(orders) != 10 || len(b.seen()) != 50 {
		t.Errorf("%d requests of %d conversations came", len(b.seen()), len(orders))
	}
	for handle, order := range orders {
		if order != "12345" {
			t.Errorf("conversation %s came as %s", handle, order)
		}
	}
}

func TestATraceGoesOnAtTheReceiver(t *testing.T) {
	t.Parallel()
	b := newFixture(t, "", accept)
	handle := b.dialog("untraced")
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	b.require(parley.SendTraced(t.Context(), b.pool, handle, parley.DefaultMessageType, []byte("traced"), parent+" a=b"))
	b.run(1)
	seen := b.seen()
	for i, want := range []string{"", parent} {
		if got := seen[i].header.Get("Traceparent"); got != want {
			t.Errorf("request %d has traceparent %q, want %q", i, got, want)
		}
	}
	if got := seen[1].header.Get("Tracestate"); got != "a=b" {
		t.Errorf("its tracestate is %q", got)
	}
}
