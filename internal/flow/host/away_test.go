package host_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/host"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// A destination is away for as long as it takes under load: its messages wait, and nobody else notices. Intake that feeds its port alone is
// throttled at its limit, and goes on when the destination is back.
func TestADestinationThatIsAwayIsNoticedByItsOwnFeedersAlone(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.apply(`{
		"retry policy": {"ever": {"count": 1000, "interval": "1 second", "jitter": 0}},
		"receive port": {"Away": {"application": "Orders"}, "Both": {"application": "Orders"}},
		"receive location": {
			"Away": {"receive_port": "Away", "host": "Receive", "adapter": "FAKE", "address": "source"},
			"Both": {"receive_port": "Both", "host": "Receive", "adapter": "FAKE", "address": "source"}}}`)
	e.port("Away", `{"filter": [[{"property": "ReceivePortName", "operator": "in", "value": ["Away", "Both"]}]], "pause_at": 150, "retry_policy": "ever"}`)
	e.port("Out", `{"filter": [[{"property": "ReceivePortName", "operator": "in", "value": ["In", "Both"]}]]}`)
	// Without what is left out for the port that is away, a third of what waits for it would throttle all.
	e.Exec("select parley_flow.set_threshold('messages waiting', 50, 100, 60, 40)")
	e.Exec("select parley_flow.set_threshold('spool', 50, 100, 60, 40)")
	var isBack atomic.Bool
	e.destination("Away", func(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
		if isBack.Load() {
			return e.record("Away")(ctx, messages)
		}
		return failsWith(adapter.Failure{Code: "send.unreachable", Err: errors.New("nobody is there"), Unreachable: true})(ctx, messages)
	})
	n := e.serve(func(c *host.Config) { c.Poll = 50 * time.Millisecond })
	put := func(location string, count int) {
		t.Helper()
		inputs := make([]adapter.Input, count)
		for i := range inputs {
			inputs[i] = adapter.Input{Body: fmt.Append(nil, location, i)}
		}
		if _, err := e.intake(location).Take(t.Context(), inputs); err != nil {
			t.Fatal(err)
		}
	}
	put("Away", 20)
	parleytest.Until(t, "the destination is found to be away", func() bool {
		return sqltest.Value[bool](e.Session, "select next_attempt_at is not null from parley_flow.send_ports where name = 'Away'")
	})
	e.intake("Both")
	put("Both", 20)
	for range 4 {
		put("Away", 20)
		since := func() float64 {
			return n.Counter("Message Agent", "Receive", "Message publishing throttling state duration")
		}
		before := since()
		parleytest.Until(t, "it is measured again", func() bool { return since() > before+0.06 })
		for _, location := range []string{"Away", "Both", "Source"} {
			if e.intake(location).Throttled() {
				t.Fatalf("%s is throttled below the limit of the port", location)
			}
		}
	}
	put("Away", 40)
	parleytest.Until(t, "its feeder is throttled", func() bool { return e.intake("Away").Throttled() })
	parleytest.Until(t, "diagnosis finds it", func() bool {
		return sqltest.Value[bool](e.Session, `select exists (select from parley_flow._p_find_faults('RUNTIME', '0')
			where code = 'flow-location-paused' and object_name = 'Away')`)
	})
	// The others go on, at once: 20 of Both, and these.
	began := time.Now()
	put("Source", 30)
	e.untilSent(50)
	t.Logf("30 messages took %s while %d waited for the other port", time.Since(began), 160)
	for _, location := range []string{"Both", "Source"} {
		if e.intake(location).Throttled() {
			t.Errorf("%s is throttled", location)
		}
	}
	if state := n.Counter("Message Agent", "Receive", "Message publishing throttling state"); state != 0 {
		t.Errorf("the host is in state %v", state)
	}
	isBack.Store(true)
	e.Exec("select parley_flow.start('Away')")
	parleytest.Until(t, "its messages are sent", func() bool { return len(e.sentBy("Away")) == 160 })
	parleytest.Until(t, "its feeder goes on", func() bool { return !e.intake("Away").Throttled() })
	e.untilEmpty()
}

// While requests are held back, messages that something waits for come in.
func TestCorrelationsComeInWhileActivationsAreHeld(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.apply(`{"receive location": {"Answers": {"receive_port": "In", "host": "Receive", "adapter": "FAKE", "address": "source",
		"brings": "correlations"}}}`)
	e.Exec(`select parley_flow.apply(jsonb_build_object('host', jsonb_build_object('Receive',
		jsonb_build_object('role', $1::text, 'publishing_throttling', 'force'))))`, e.receive)
	e.serve(func(c *host.Config) { c.Poll = 20 * time.Millisecond })
	held := e.intake("Source")
	parleytest.Until(t, "activations are held", func() bool { return held.Throttled() })
	answers := e.intake("Answers")
	if answers.Throttled() {
		t.Error("correlations are held too")
	}
	if err := answers.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := answers.Take(t.Context(), []adapter.Input{{Body: []byte("answer")}}); err != nil {
		t.Fatal(err)
	}
	if sent := e.untilSent(1); sent[0] != "answer" {
		t.Errorf("sent was %v", sent)
	}
	sqltest.Equal(e.Session, "0", `select coalesce(max(report -> 'correlation' ->> 'state'), '0') from parley_flow.hosts where host = 'Receive'`)
}
