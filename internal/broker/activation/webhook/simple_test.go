package webhook_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/parley-broker/parley/operate"
)

// newSimpleFixture gives a test a simple queue, target, that is delivered to a web address.
func newSimpleFixture(t *testing.T, settings string, answer func(http.ResponseWriter, request)) *fixture {
	t.Helper()
	b := newFixture(t, "", answer)
	b.exec("select parley.drop_external_activation('target')")
	b.exec("select parley.drop_service('target')")
	b.exec("select parley.drop_queue('target')")
	b.exec("select parley.create_queue('target', kind => 'SIMPLE', retry => 'false')")
	b.exec("select parley.create_webhook_activation('target', '" + b.server.URL + "/in', secret => 'whsec_c2l4dGVlbiBieXRlcyBhcmUgb25lIGtleQ==', " +
		"first_retry_ms => 1, longest_retry_ms => 1" + settings + ")")
	return b
}

func (b *fixture) put(key string, bodies ...string) {
	b.Helper()
	for _, body := range bodies {
		_, err := b.pool.Exec(b.Context(), "select parley.put('target', $1::bytea, key => nullif($2::text, ''))", []byte(body), key)
		b.require(err)
	}
}

func (b *fixture) requireLeft(want int) {
	b.Helper()
	if got := value[int](b, "select count(*) from parley.peek_messages('target', null)"); got != want {
		b.Errorf("%d messages wait, want %d; the log is\n%s", got, want, b.log)
	}
}

// texts gives the bodies of all messages of each request, in the order of the requests.
func (b *fixture) texts() (texts []string) {
	for _, r := range b.seen() {
		var bodies []string
		for _, m := range r.Messages {
			bodies = append(bodies, *cmp.Or(m.Body, new(string)))
		}
		texts = append(texts, strings.Join(bodies, "+"))
	}
	return texts
}

func TestMessagesOfASimpleQueueAreDeliveredAndTaken(t *testing.T) {
	t.Parallel()
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	b := newSimpleFixture(t, "", accept)
	b.put("", "one")
	b.put("ключ", "\x00\xff", "")
	b.exec("select parley.put('target', 'four', trace_context => '" + parent + "', priority => 9)")
	id := value[int64](b, "select message_id from parley.peek_messages('target', 1)")
	b.run(1)
	b.requireLeft(0)
	seen := b.seen()
	if len(seen) != 4 {
		t.Fatalf("%d requests came", len(seen))
	}
	if r := seen[0]; r.text() != "four" || r.header.Get("Traceparent") != parent || r.header.Get("Parley-Message-Priority") != "9" ||
		r.Queue != "target" || r.header.Get("Parley-Queue") != "target" {
		t.Errorf("the first is %s with %v", r.body, r.header)
	}
	var first simpleBody
	b.require(json.Unmarshal(seen[0].body, &first))
	if first.Key != nil || len(first.Messages) != 1 || first.Messages[0].MessageID != id || first.Messages[0].Priority != 9 {
		t.Errorf("the first is %s", seen[0].body)
	}
	for i, want := range []struct{ encoding, body string }{{"text", "one"}, {"base64", "AP8="}, {"none", ""}} {
		if r := seen[i+1]; r.Messages[0].BodyEncoding != want.encoding || r.text() != want.body {
			t.Errorf("request %d is %s", i+1, r.body)
		}
	}
	if got := seen[2].header.Get("Parley-Message-Key"); got != "%D0%BA%D0%BB%D1%8E%D1%87" || !strings.Contains(string(seen[2].body), `"key":"ключ"`) {
		t.Errorf("the key is %q, the body %s", got, seen[2].body)
	}
	if seen[1].header.Get("Webhook-Id") == seen[2].header.Get("Webhook-Id") || seen[1].header.Get("Webhook-Id") == "" {
		t.Error("two messages have the same number")
	}
}

// simpleBody is the envelope of a simple queue as a web address reads it.
type simpleBody struct {
	Key      *string `json:"key"`
	Messages []struct {
		MessageID int64 `json:"message_id"`
		Priority  int   `json:"priority"`
	} `json:"messages"`
}

func TestManyReadersDeliverASimpleQueueInTheOrderOfItsKeys(t *testing.T) {
	t.Parallel()
	b := newSimpleFixture(t, ", max_attempts => 0", func(w http.ResponseWriter, r request) {
		if r.number%3 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	b.put("", "u1", "u2", "u3", "u4")
	for _, n := range []string{"1", "2", "3"} {
		for _, key := range []string{"x", "y", "z"} {
			b.put(key, key+n)
		}
	}
	b.run(4)
	b.requireLeft(0)
	last := map[string]string{}
	for _, text := range b.texts() {
		if key := text[:1]; key != "u" {
			if text < last[key] || last[key] == "" && text != key+"1" {
				t.Errorf("%s came after %s", text, last[key])
			}
			last[key] = text
		}
	}
	if got := len(slices.Compact(slices.Sorted(slices.Values(b.texts())))); got != 13 {
		t.Errorf("%d messages came, want 13", got)
	}
}

func TestRefusedMessageOfASimpleQueueIsSetAsideAlone(t *testing.T) {
	t.Parallel()
	b := newSimpleFixture(t, ", max_attempts => 3, batch_size => 10", func(w http.ResponseWriter, r request) {
		for _, m := range r.Messages {
			if *m.Body == "bad" {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte("no such picture"))
			}
		}
	})
	b.put("", "a", "bad", "c")
	b.put("k", "x", "y")
	b.run(1)
	b.requireLeft(0)
	want := []string{"a+bad+c", "a", "bad", "bad", "bad", "c", "x+y"}
	if got := slices.Sorted(slices.Values(b.texts())); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("delivered were %q", got)
	}
	found, err := operate.ReadFailedMessages(t.Context(), b.pool, operate.FailedMessageFilter{})
	b.require(err)
	if len(found) != 1 || string(found[0].Body) != "bad" || found[0].Rollbacks != 3 || *found[0].Answer != "no such picture" {
		t.Fatalf("set aside are %+v", found)
	}
	if !strings.Contains(b.log.String(), "set aside") {
		t.Errorf("the log does not say so:\n%s", b.log)
	}
	// Put back, it is delivered again.
	b.mu.Lock()
	b.answer = accept
	b.mu.Unlock()
	b.require(operate.RetryMessage(t.Context(), b.pool, "target", found[0].MessageID))
	b.run(1)
	b.requireLeft(0)
	if got := value[int](b, "select count(*) from parley.set_aside_messages"); got != 0 {
		t.Errorf("%d are set aside again", got)
	}
}

func TestUnavailableAddressCountsNothingForASimpleQueue(t *testing.T) {
	t.Parallel()
	b := newSimpleFixture(t, ", max_attempts => 1", func(w http.ResponseWriter, r request) {
		if r.number <= 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	b.put("", "x")
	b.run(1)
	b.requireLeft(0)
	if got := len(b.seen()); got != 5 {
		t.Errorf("%d requests came", got)
	}
	b.leave(", max_attempts => 1")
	b.put("", "y")
	if err := b.reader(1).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "reach the web address") {
		t.Errorf("got %v", err)
	}
	b.requireLeft(1)
}

// A reply has nowhere to go: a reply that is lost in silence would be worse than a message set aside.
func TestReplyToAMessageOfASimpleQueueIsARefusal(t *testing.T) {
	t.Parallel()
	b := newSimpleFixture(t, ", max_attempts => 1", answerJSON(`{"reply": {"message_type": "DEFAULT", "body": "pong"}}`))
	b.put("", "ping")
	b.run(1)
	if got := value[string](b, "select error from parley.set_aside_messages"); !strings.Contains(got, "no conversation") {
		t.Errorf("the error is %q", got)
	}
}

// The retry policy of the queue counts, not the numbers of the web address; limits hold for its requests.
func TestWebAddressFollowsThePolicyAndTheLimitsOfItsQueue(t *testing.T) {
	t.Parallel()
	var underWay, most atomic.Int32
	b := newSimpleFixture(t, ", max_attempts => 0, max_instances => 4", func(w http.ResponseWriter, r request) {
		if now := underWay.Add(1); now > most.Load() {
			most.Store(now)
		}
		defer underWay.Add(-1)
		if *r.Messages[0].Body == "bad" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	b.exec("select parley.set_retry_policy('target', first => '1 ms', longest => '1 ms', attempts => 3)")
	b.exec("select parley.set_queue_limits('target', concurrency => 1)")
	b.put("", "a", "bad", "b", "c", "d")
	b.run(4)
	b.requireLeft(0)
	if got := value[string](b, "select concat_ws(' ', parley.body_text(body), rollbacks, error) from parley.set_aside_messages"); got !=
		"bad 3 the web address answered 500 Internal Server Error" {
		t.Errorf("set aside is %q; the log is\n%s", got, b.log)
	}
	if most.Load() != 1 {
		t.Errorf("%d requests were under way at once", most.Load())
	}
	var attempts []string
	for _, r := range b.seen() {
		if *r.Messages[0].Body == "bad" {
			attempts = append(attempts, r.header.Get("Parley-Message-Attempt"))
		}
	}
	if !slices.Equal(attempts, []string{"1", "2", "3"}) {
		t.Errorf("the attempts were %q", attempts)
	}
}
