package webhook_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/parley-broker/parley"
)

func TestRefusedMessageComesAgainUnderTheSameID(t *testing.T) {
	t.Parallel()
	b := newFixture(t, "", func(w http.ResponseWriter, r request) {
		if r.number < 4 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	b.dialog("one", "two")
	b.run(1)
	b.requireWaiting(0)
	seen := b.seen()
	if len(seen) != 5 || seen[4].text() != "two" {
		t.Fatalf("%d requests came", len(seen))
	}
	for _, r := range seen[:4] {
		if r.text() != "one" || r.header.Get("Idempotency-Key") != seen[0].header.Get("Idempotency-Key") {
			t.Errorf("came %s with %v", r.body, r.header)
		}
	}
	if got := value[int](b, "select count(*) from parley.delivery_failures"); got != 0 {
		t.Errorf("%d conversations wait", got)
	}
}

// One conversation fails for as long as others have anything; theirs arrive meanwhile, and its own come in their order afterwards.
func TestConversationThatFailsWaitsAndOthersGoOn(t *testing.T) {
	t.Parallel()
	const others = 5
	var mu sync.Mutex
	delivered := 0
	b := newFixture(t, ", max_attempts => 0", func(w http.ResponseWriter, r request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case !strings.HasPrefix(r.text(), "bad"):
			delivered++
		case delivered < 2*others:
			w.WriteHeader(http.StatusBadRequest)
		}
	})
	b.dialog("bad 1", "bad 2", "bad 3")
	for range others {
		b.dialog("good 1", "good 2")
	}
	b.run(2)
	b.requireWaiting(0)
	orders := map[string][]string{}
	for _, r := range b.seen() {
		order := orders[r.ConversationHandle]
		if len(order) == 0 || order[len(order)-1] != r.text() {
			orders[r.ConversationHandle] = append(order, r.text())
		}
	}
	for _, order := range orders {
		if got := strings.Join(order, " "); got != "bad 1 bad 2 bad 3" && got != "good 1 good 2" {
			t.Errorf("a conversation came as %s", got)
		}
	}
}

func TestRefusalsSetTheConversationAside(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status, requests int
	}{{http.StatusInternalServerError, 3}, {http.StatusNotFound, 3}, {http.StatusFound, 3}, {http.StatusGone, 1}} {
		t.Run(http.StatusText(c.status), func(t *testing.T) {
			t.Parallel()
			b := newFixture(t, ", max_attempts => 3", status(c.status))
			b.dialog("x")
			b.run(1)
			if got := len(b.seen()); got != c.requests {
				t.Errorf("%d requests came, want %d", got, c.requests)
			}
			if got := value[string](b, "select error from parley.poison_conversations"); !strings.Contains(got, http.StatusText(c.status)) {
				t.Errorf("the error is %q", got)
			}
			if !strings.Contains(b.log.String(), "set aside") {
				t.Errorf("the log does not say so:\n%s", b.log)
			}
			// Put back, it is delivered again.
			b.mu.Lock()
			b.answer = accept
			b.mu.Unlock()
			b.exec("select parley.retry_poison(conversation_handle) from parley.poison_conversations")
			b.run(1)
			b.requireWaiting(0)
		})
	}
}

func TestUnavailableAddressCountsNothing(t *testing.T) {
	t.Parallel()
	b := newFixture(t, ", max_attempts => 2", func(w http.ResponseWriter, r request) {
		if r.number <= 4 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	b.dialog("x")
	b.run(1)
	b.requireWaiting(0)
	if got := len(b.seen()); got != 5 {
		t.Errorf("%d requests came", got)
	}
}

func TestReaderFailsWhenTheAddressIsNotAvailableAgainAndAgain(t *testing.T) {
	t.Parallel()
	b := newFixture(t, "", status(http.StatusServiceUnavailable))
	b.dialog("x")
	if err := b.reader(1).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("got %v", err)
	}
	b.requireWaiting(1)
	if got := value[int](b, "select attempts from parley.delivery_failures"); got != 0 {
		t.Errorf("%d attempts were counted", got)
	}
}

func TestReaderFailsWhenThereIsNobody(t *testing.T) {
	t.Parallel()
	b := newFixture(t, "", accept)
	b.dialog("x")
	b.leave("")
	err := b.reader(1).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "reach the web address") || strings.Contains(err.Error(), "/in") {
		t.Errorf("got %v", err)
	}
	b.requireWaiting(1)
	if got := value[int](b, "select count(*) from parley.delivery_failures"); got != 0 {
		t.Error("the conversation is blamed")
	}
}

// No answer comes to the first conversation's message until the other's message has arrived.
func TestAddressThatIsTooSlowIsNotWaitedForForEver(t *testing.T) {
	t.Parallel()
	others := make(chan struct{})
	arrived := sync.OnceFunc(func() { close(others) })
	b := newFixture(t, ", timeout_ms => 2000", func(_ http.ResponseWriter, r request) {
		if r.text() == "quick" {
			arrived()
			return
		}
		r.await(others)
	})
	b.exec("select parley.alter_webhook_activation('target', longest_retry_ms => 1000, first_retry_ms => 1000)")
	b.dialog("slow")
	b.dialog("quick")
	b.run(1)
	b.requireWaiting(0)
	if !strings.Contains(b.log.String(), "no answer within 2s") {
		t.Errorf("the log does not say so:\n%s", b.log)
	}
}

func TestConnectionThatBreaksCountsAsAnAttempt(t *testing.T) {
	t.Parallel()
	b := newFixture(t, ", max_attempts => 2", func(w http.ResponseWriter, _ request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.(*net.TCPConn).SetLinger(0)
			_ = conn.Close()
		}
	})
	b.dialog("x")
	b.run(1)
	if got := value[int](b, "select count(*) from parley.poison_conversations"); got != 1 {
		t.Errorf("%d conversations are set aside:\n%s", got, b.log)
	}
}

func TestReaderThatIsStoppedFinishesItsRequest(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}), make(chan struct{})
	arrive := sync.OnceFunc(func() { close(arrived) })
	b := newFixture(t, "", func(_ http.ResponseWriter, r request) {
		arrive()
		r.await(release)
	})
	b.dialog("one", "two")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	reader := b.reader(1)
	go func() { ended <- reader.Run(ctx) }()
	select {
	case <-arrived:
	case err := <-ended:
		t.Fatalf("the reader ended before its request arrived: %v", err)
	}
	cancel()
	close(release)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	b.requireWaiting(1)
}

func TestReaderThatWaitsForARetryStopsAtOnce(t *testing.T) {
	t.Parallel()
	b := newFixture(t, "", status(http.StatusBadRequest))
	b.exec("select parley.alter_webhook_activation('target', longest_retry_ms => 3600000, first_retry_ms => 3600000)")
	b.dialog("x")
	stops := []func() error{b.start(1), b.start(2)}
	b.waitUntil("it was refused", func() bool { return strings.Contains(b.log.String(), "its conversation waits") })
	for _, stop := range stops {
		if err := stop(); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func TestSenderThatComesInFrontIsDeliveredInFront(t *testing.T) {
	t.Parallel()
	var b *fixture
	var late interface{ Commit(context.Context) error }
	b = newFixture(t, "", func(_ http.ResponseWriter, r request) {
		if r.number == 1 {
			if err := late.Commit(context.Background()); err != nil {
				b.Error(err)
			}
		}
	})
	handle := b.dialog("first")
	_, err := parley.Receive(t.Context(), b.pool, "target")
	b.require(err)
	tx, err := b.pool.Begin(t.Context())
	b.require(err)
	b.require(parley.Send(t.Context(), tx, handle, parley.DefaultMessageType, []byte("in front")))
	late = tx
	b.send(handle, "behind")
	b.run(1)
	b.requireWaiting(0)
	var got []string
	for _, r := range b.seen() {
		got = append(got, r.text())
	}
	if strings.Join(got, ", ") != "behind, in front, behind" {
		t.Errorf("delivered were %q", got)
	}
}
