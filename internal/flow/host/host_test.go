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

func TestMessagesGoFromALocationToAPort(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.serve()
	for _, result := range e.take("one", "two", "three") {
		if result.Outcome != adapter.Published || result.Message == 0 || result.Messages != 1 {
			t.Errorf("the result is %+v", result)
		}
	}
	sent := e.untilSent(3)
	slices.Sort(sent)
	if got := strings.Join(sent, " "); got != "one three two" {
		t.Errorf("it has sent %s", got)
	}
	e.untilEmpty()
	large := strings.Repeat("0123456789", 200_000)
	results, err := e.intake("Source").Take(t.Context(), []adapter.Input{{
		Size: int64(len(large)), Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(large)), nil },
	}})
	if err != nil || results[0].Outcome != adapter.Published {
		t.Fatalf("the large one gave %+v, %v", results, err)
	}
	if sent := e.untilSent(4); sent[3] != large {
		t.Errorf("of the large one %d bytes came that are not the same", len(sent[3]))
	}
	e.untilEmpty()
}

// Many calls of Take at the same time become few transactions.
func TestCallsAtTheSameTimeAreStoredTogether(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	n := e.serve()
	in := e.intake("Source")
	var taking sync.WaitGroup
	const count = 400
	for i := range count {
		taking.Go(func() {
			results, err := in.Take(t.Context(), []adapter.Input{{Key: fmt.Sprint(i % 350), Body: fmt.Append(nil, "m", i%350)}})
			if err != nil || results[0].Outcome != adapter.Published && results[0].Outcome != adapter.Repeated {
				t.Errorf("%d gave %+v, %v", i, results, err)
			}
		})
	}
	taking.Wait()
	sent := e.untilSent(350)
	e.untilEmpty()
	slices.Sort(sent)
	if sent = slices.Compact(sent); len(sent) != 350 || len(e.sentBy("Out")) != 350 {
		t.Errorf("%d different ones of %d were sent", len(sent), len(e.sentBy("Out")))
	}
	if batches := n.Counter("Messaging", "Receive", "Receive batches"); batches > count/4 {
		t.Errorf("%d calls took %v transactions", count, batches)
	}
}

// An input that the database refuses is suspended alone, and keeps its bytes.
func TestWhatTheDatabaseRefusesIsSuspendedAlone(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	e.serve()
	results, err := e.intake("Source").Take(t.Context(), []adapter.Input{
		{Body: []byte("good")},
		{Body: []byte("bad"), Promoted: map[string]any{"urn:p#Key": "a\x00b"}},
		{Body: []byte("worse"), Promoted: map[string]any{"MessageID": 1}},
		{Body: []byte("fine")},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{}
	for _, r := range results {
		got = append(got, string(r.Outcome))
	}
	if strings.Join(got, " ") != "PUBLISHED SUSPENDED SUSPENDED PUBLISHED" {
		t.Errorf("the outcomes are %v", got)
	}
	sqltest.Equal(e.Session, "bad worse", `select string_agg(convert_from(m.body, 'UTF8'), ' ' order by m.message_id)
		from parley_flow._p_suspended as s join parley_flow._p_message as m using (message_id)`)
	e.untilSent(2)
}

// A failure is tried again, one that no retry helps is suspended, and an operator resumes it.
func TestFailuresAreRetriedOrSuspended(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	tries := 0
	e.destination("Out", func(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
		deliveries := make([]adapter.Delivery, len(messages))
		for i, m := range messages {
			text, _ := body(ctx, m)
			e.mu.Lock()
			switch {
			case text == "refused" && m.Attempts == 0 && tries == 0:
				deliveries[i].Err = &adapter.Failure{Code: "send.refused", Err: io.ErrNoProgress, Permanent: true}
			case text == "later" && m.Attempts < 2:
				deliveries[i].Err = io.ErrUnexpectedEOF
			default:
				e.sent["Out"] = append(e.sent["Out"], text)
			}
			e.mu.Unlock()
		}
		return deliveries
	})
	e.serve()
	e.take("refused", "later", "good")
	e.untilSent(2)
	parleytest.Until(t, "one is suspended", func() bool { _, suspended := e.inBox(); return suspended == 1 })
	sqltest.Equal(e.Session, "send.refused Out", "select code || ' ' || send_port from parley_flow.suspended")
	e.mu.Lock()
	tries = 1
	e.mu.Unlock()
	sqltest.Equal(e.Session, 1, "select parley_flow.resume_suspended('{}')")
	e.untilSent(3)
	e.untilEmpty()
}
