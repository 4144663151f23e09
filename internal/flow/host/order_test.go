package host_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// keyed takes messages in, of keys in turn, numbered within each.
func (e *engine) keyed(keys, each int) {
	e.Helper()
	inputs := []adapter.Input{}
	for n := range each {
		for k := range keys {
			inputs = append(inputs, adapter.Input{
				Body: fmt.Appendf(nil, "%d:%d", k, n), Promoted: map[string]any{"urn:p#Key": fmt.Sprint("k", k)},
			})
		}
	}
	for part := range slices.Chunk(inputs, 50) {
		if _, err := e.intake("Source").Take(e.Context(), part); err != nil {
			e.Fatal(err)
		}
	}
}

// ofKey gives the numbers that were sent of a key.
func ofKey(sent []string, key int) string {
	numbers := []string{}
	for _, text := range sent {
		if k, n, _ := strings.Cut(text, ":"); k == fmt.Sprint(key) {
			numbers = append(numbers, n)
		}
	}
	return strings.Join(numbers, " ")
}

// Of each key messages are sent in their order, also where some fail first; no batch has two of one key, and keys go side by side.
func TestMessagesOfAKeyAreSentInTheirOrder(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.port("Out", `{"ordered": true, "order_key": "urn:p#Key"}`)
	var mu sync.Mutex
	failed := map[string]bool{}
	e.destination("Out", func(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
		keys, deliveries := map[string]bool{}, make([]adapter.Delivery, len(messages))
		for i, m := range messages {
			if keys[m.OrderKey] {
				t.Errorf("a batch has two messages of key %s", m.OrderKey)
			}
			keys[m.OrderKey] = true
			text, _ := body(ctx, m)
			mu.Lock()
			if strings.HasSuffix(text, ":3") && !failed[text] {
				failed[text] = true
				deliveries[i].Err = io.ErrUnexpectedEOF
			} else {
				e.mu.Lock()
				e.sent["Out"] = append(e.sent["Out"], text)
				e.mu.Unlock()
			}
			mu.Unlock()
		}
		return deliveries
	})
	e.serve()
	e.keyed(20, 10)
	sent := e.untilSent(200)
	e.untilEmpty()
	for k := range 20 {
		if got := ofKey(sent, k); got != "0 1 2 3 4 5 6 7 8 9" {
			t.Errorf("of key %d were sent %s", k, got)
		}
	}
}

// Without a key all are sent one after the other.
func TestOrderWithoutAKeyIsOneForAll(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.port("Out", `{"ordered": true}`)
	e.serve()
	want := []string{}
	for n := range 60 {
		want = append(want, fmt.Sprint(n))
	}
	e.take(want...)
	if sent := e.untilSent(60); !slices.Equal(sent, want) {
		t.Errorf("they were sent as %v", sent)
	}
}

// A port that is stopped keeps what comes, and sends it in its order when it is started.
func TestStoppedPortSendsWhenItIsStarted(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.port("Out", `{"ordered": true}`)
	e.serve()
	e.take("0")
	e.untilSent(1)
	e.Exec("select parley_flow.stop('Out')")
	e.take("1", "2", "3")
	sqltest.Equal(e.Session, 3, "select count(*)::integer from parley_flow._p_message where body in ('1', '2', '3')")
	e.Exec("select parley_flow.start('Out')")
	if sent := e.untilSent(4); strings.Join(sent, " ") != "0 1 2 3" {
		t.Errorf("they were sent as %v", sent)
	}
}

// A destination that hangs, or is away, holds up no other port.
func TestDestinationThatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.apply(`{"host": {"Send": {"role": "` + e.Role("x") + `", "in_process_per_cpu": 40}}}`)
	for _, name := range []string{"Hanging 1", "Hanging 2", "Hanging 3", "Away"} {
		e.port(name, `{}`)
	}
	release := make(chan struct{})
	defer close(release)
	for _, name := range []string{"Hanging 1", "Hanging 2", "Hanging 3"} {
		e.destination(name, func(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
			select {
			case <-release:
			case <-ctx.Done():
			}
			return failsWith(adapter.Failure{Code: "send.timeout", Err: io.ErrNoProgress})(ctx, messages)
		})
	}
	e.destination("Away", failsWith(adapter.Failure{Code: "send.unreachable", Err: io.ErrClosedPipe, Unreachable: true}))
	e.serve()
	for n := range 20 {
		texts := []string{}
		for i := range 50 {
			texts = append(texts, fmt.Sprint(n*50+i))
		}
		e.take(texts...)
	}
	e.untilSent(1000)
	sqltest.Equal(e.Session, true, "select bool_and(waiting > 900) from parley_flow.send_ports where name <> 'Out'")
	parleytest.Until(t, "the port that is away waits", func() bool {
		return sqltest.Value[bool](e.Session, "select next_attempt_at is not null from parley_flow.send_ports where name = 'Away'")
	})
}
