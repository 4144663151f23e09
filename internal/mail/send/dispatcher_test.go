package send_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/send"
)

// queue is a store that gives the batches of a test, one each claim.
type queue struct {
	batches chan send.Batch
	permits []int64

	mu       sync.Mutex
	passedBy []string
	outcomes []send.Outcome
	reports  []send.HopReport
	recorded chan struct{}
	// recording is the channel that each record waits for, nil for none; most is how many outcomes one had.
	recording chan struct{}
	most      int
}

func newQueue() *queue {
	return &queue{batches: make(chan send.Batch, 100), recorded: make(chan struct{}, 1000)}
}

func (q *queue) Claim(_ context.Context, _, _ int, _ time.Duration, passedBy []string) ([]send.Batch, error) {
	q.mu.Lock()
	q.passedBy = append(q.passedBy, passedBy...)
	q.mu.Unlock()
	select {
	case batch := <-q.batches:
		return []send.Batch{batch}, nil
	default:
		return nil, nil
	}
}

func (q *queue) Permit(context.Context, send.Batch, send.Ends) ([]int64, error) {
	return q.permits, nil
}

func (q *queue) Renew(_ context.Context, leases []int64, _ time.Duration) (renewed, gone []int64, err error) {
	return leases, nil, nil
}

func (q *queue) Record(_ context.Context, outcomes []send.Outcome, hops []send.HopReport) (int, error) {
	if q.recording != nil {
		<-q.recording
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.most = max(q.most, len(outcomes))
	q.outcomes, q.reports = append(q.outcomes, outcomes...), append(q.reports, hops...)
	for range outcomes {
		q.recorded <- struct{}{}
	}
	return 0, nil
}

// road is a carrier whose ways deliver everything, and answer 421 to what says so.
type road struct {
	limits send.Limits
	mu     sync.Mutex
	opened int
	sent   atomic.Int32
	// refusal is why there is no way; nil where there is one.
	refusal *send.OpenError
	// held is the channel that each message waits for; nil for none.
	held chan struct{}
}

type roadWay struct {
	road     *road
	messages int
	broken   bool
}

func (r *road) Limits(send.Hop) send.Limits { return r.limits }

func (r *road) Connect(context.Context, send.Hop) (send.Way, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened++
	if r.refusal != nil {
		return nil, r.refusal
	}
	return &roadWay{road: r}, nil
}

func (w *roadWay) Send(ctx context.Context, message send.Message) []send.Result {
	if w.road.held != nil {
		select {
		case <-w.road.held:
		case <-ctx.Done():
		}
	}
	w.messages++
	w.road.sent.Add(1)
	switch message.ID {
	case "closes":
		return []send.Result{{Class: send.Deferred, Code: 421, HostFailed: true}}
	case "poisons": // The host closes at one recipient, and has said nothing of the others.
		return w.poisoned(message)
	case "breaks":
		return []send.Result{{Class: send.Deferred, HostFailed: true}}
	}
	for _, recipient := range message.Recipients[min(1, len(message.Recipients)):] {
		if recipient.Address != "left out" {
			w.messages++
		}
	}
	return slices.Repeat([]send.Result{{Class: send.Delivered, Code: 250}}, max(1, len(message.Recipients)))
}

// poisoned answers 421 to the recipient poor, and says nothing of others beside him.
func (w *roadWay) poisoned(message send.Message) []send.Result {
	results := slices.Repeat([]send.Result{{Class: send.Delivered, Code: 250}}, len(message.Recipients))
	for i, recipient := range message.Recipients {
		if recipient.Address == "poor" {
			results = slices.Repeat([]send.Result{{Enhanced: "4.4.2", Untried: true}}, len(message.Recipients))
			results[i] = send.Result{Code: 421, Enhanced: "4.7.0"}
			w.broken = true
			break
		}
	}
	return results
}

func (w *roadWay) Usable() bool       { return !w.broken }
func (w *roadWay) Messages() int      { return w.messages }
func (w *roadWay) Offers(string) bool { return true }
func (w *roadWay) Ends() send.Ends    { return send.Ends{Host: "mx.b.example"} }
func (w *roadWay) Close()             {}

func (r *road) connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.opened
}

func hopTo(connector, name string) send.Hop {
	return send.Hop{Kind: "DNS", Connector: connector, Name: name}
}

func (q *queue) put(hop send.Hop, ids ...string) {
	batch := send.Batch{Lease: int64(len(q.batches) + 1), Hop: hop}
	for i, id := range ids {
		batch.Deliveries = append(batch.Deliveries, send.Delivery{Item: int64(i + 1), Ordinals: []int32{1}, Message: send.Message{ID: id}})
	}
	q.batches <- batch
}

// dispatch runs a dispatcher until the test ends, or stop is called.
func dispatch(t *testing.T, q *queue, r *road) (stop func()) {
	t.Helper()
	d, err := send.NewDispatcher(send.Config{Store: q, Carriers: map[string]send.Carrier{"DNS": r}, Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = d.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(stop)
	return stop
}

func (q *queue) await(t *testing.T, outcomes int) {
	t.Helper()
	for range outcomes {
		select {
		case <-q.recorded:
		case <-time.After(time.Minute):
			t.Fatal("an outcome did not come")
		}
	}
}

func TestConnectionCarriesAsManyMessagesAsItMay(t *testing.T) {
	t.Parallel()
	q, r := newQueue(), &road{limits: send.Limits{MessagesEach: 3, Idle: time.Hour}}
	q.put(hopTo("internet", "b.example"), "1", "2", "3", "4", "5", "6", "7")
	dispatch(t, q, r)
	q.await(t, 7)
	if n := r.connections(); n != 3 {
		t.Errorf("%d connections for 7 messages of 3 each", n)
	}
}

// Outcomes that wait to be recorded are recorded in transactions of a bounded size.
func TestOutcomesAreRecordedTwoHundredAtOnce(t *testing.T) {
	t.Parallel()
	q, r := newQueue(), &road{}
	q.recording = make(chan struct{})
	q.put(hopTo("internet", "b.example"), slices.Repeat([]string{"1"}, 401)...)
	dispatch(t, q, r)
	for deadline := time.After(time.Minute); r.sent.Load() < 401; {
		select {
		case <-deadline:
			t.Fatalf("%d of 401 messages were sent", r.sent.Load())
		case <-time.After(time.Millisecond):
		}
	}
	close(q.recording)
	q.await(t, 401)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.most != 200 {
		t.Errorf("%d outcomes were recorded in one transaction", q.most)
	}
}

func TestConnectionIsKeptForTheNextMessages(t *testing.T) {
	t.Parallel()
	q, r := newQueue(), &road{limits: send.Limits{MessagesEach: 10, Idle: time.Hour}}
	stop := dispatch(t, q, r)
	for range 3 {
		q.put(hopTo("internet", "b.example"), "1", "2")
		q.await(t, 2)
	}
	// The way is put back when the worker ends, which may be after the next batch was begun.
	if n := r.connections(); n > 2 {
		t.Errorf("%d connections for 6 messages one after the other", n)
	}
	q.put(hopTo("internet", "c.example"), "1")
	q.await(t, 1)
	stop()
}

func TestMessagesBehindOneThatClosesTheConnectionGoBackUntried(t *testing.T) {
	t.Parallel()
	q, r := newQueue(), &road{}
	q.put(hopTo("internet", "b.example"), "1", "closes", "3", "4")
	stop := dispatch(t, q, r)
	q.await(t, 4)
	stop()
	tried := 0
	for _, outcome := range q.outcomes {
		if outcome.Results != nil {
			tried++
		}
	}
	if failed := slices.ContainsFunc(q.reports, func(r send.HopReport) bool { return r.Failure != nil }); tried != 2 || !failed {
		t.Errorf("%d messages were tried; the host failed: %v", tried, failed)
	}
}

// A host that closes the connection at one recipient gets the message for the others, and the messages behind it, over new connections.
func TestRecipientAtWhomTheHostClosesKeepsUpNoOther(t *testing.T) {
	t.Parallel()
	to := func(addresses ...string) (recipients []send.Recipient, ordinals []int32) {
		for i, address := range addresses {
			recipients, ordinals = append(recipients, send.Recipient{Address: address}), append(ordinals, int32(i+1))
		}
		return recipients, ordinals
	}
	for _, c := range []struct {
		addresses []string
		want      string
		opened    int
	}{
		{[]string{"poor"}, "421", 2},
		{[]string{"a", "poor", "b"}, "250 421 250", 2},
		{[]string{"poor", "a", "poor"}, "421 250 421", 3},
		{[]string{"poor", "poor", "poor", "poor"}, "421 421 421 0", 4}, // whose turn does not come waits
	} {
		q, r := newQueue(), &road{}
		batch := send.Batch{Lease: 1, Hop: hopTo("internet", "b.example")}
		recipients, ordinals := to(c.addresses...)
		others, ordinal := to("x")
		batch.Deliveries = []send.Delivery{
			{Item: 1, Ordinals: ordinals, Message: send.Message{ID: "poisons", Recipients: recipients}},
			{Item: 2, Ordinals: ordinal, Message: send.Message{ID: "2", Recipients: others}},
		}
		q.batches <- batch
		stop := dispatch(t, q, r)
		q.await(t, 2)
		stop()
		var codes []string
		for _, result := range q.outcomes[0].Results {
			codes = append(codes, strconv.Itoa(result.Code))
		}
		if got := strings.Join(codes, " "); got != c.want || r.connections() != c.opened {
			t.Errorf("%q: %s over %d connections, want %s over %d", c.addresses, got, r.connections(), c.want, c.opened)
		}
		if after := q.outcomes[1].Results; len(after) != 1 || after[0].Class != send.Delivered {
			t.Errorf("%q: the message behind it came to %v", c.addresses, after)
		}
		if slices.ContainsFunc(q.reports, func(r send.HopReport) bool { return r.Failure != nil }) {
			t.Errorf("%q: the whole next hop waits", c.addresses)
		}
	}
}

// A host that closes, and one that refuses everybody, are left alone with all that waits for them. One whose connection broke is tried
// again, and a domain that takes no mail fails its message alone.
func TestFailureIsThatOfTheHostOrOfTheMessage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		ids       []string
		refusal   *send.OpenError
		tried     int
		hasFailed bool
	}{
		{name: "the connection breaks", ids: []string{"1", "breaks", "3"}, tried: 3},
		{
			name: "it refuses everybody", ids: []string{"1", "2"}, hasFailed: true,
			refusal: &send.OpenError{Result: send.Result{Class: send.Failed, Code: 554, HostFailed: true}},
		},
		{
			name: "the domain takes no mail", ids: []string{"1", "2"}, tried: 2,
			refusal: &send.OpenError{Result: send.Result{Class: send.Failed, Enhanced: "5.1.10"}},
		},
	} {
		q, r := newQueue(), &road{refusal: c.refusal}
		q.put(hopTo("internet", "b.example"), c.ids...)
		stop := dispatch(t, q, r)
		q.await(t, len(c.ids))
		stop()
		tried := 0
		for _, outcome := range q.outcomes {
			if outcome.Results != nil {
				tried++
			}
		}
		if failed := slices.ContainsFunc(q.reports, func(r send.HopReport) bool { return r.Failure != nil }); tried != c.tried || failed != c.hasFailed {
			t.Errorf("%s: %d messages were tried; the host failed: %v", c.name, tried, failed)
		}
	}
}

func TestWhatMayNotLeaveNowIsNotTouched(t *testing.T) {
	t.Parallel()
	for _, byHost := range []bool{false, true} {
		q, r := newQueue(), &road{limits: send.Limits{IsRated: true, IsRatedByHost: byHost}}
		q.permits = []int64{1, 3}
		q.put(hopTo("internet", "b.example"), "1", "2", "3", "4")
		stop := dispatch(t, q, r)
		q.await(t, 2)
		stop()
		if len(q.outcomes) != 2 || q.outcomes[0].Delivery.Item != 1 || q.outcomes[1].Delivery.Item != 3 {
			t.Errorf("by host %v: outcomes %+v", byHost, q.outcomes)
		}
	}
}

// A connector that has all its connections takes no more work, and other connectors go on.
func TestConnectorThatIsFullIsPassedBy(t *testing.T) {
	t.Parallel()
	q, r := newQueue(), &road{limits: send.Limits{Connections: 1}, held: make(chan struct{})}
	q.put(hopTo("full", "a.example"), "1")
	q.put(hopTo("full", "b.example"), "1")
	q.put(hopTo("other", "b.example"), "1")
	dispatch(t, q, r)
	deadline := time.After(time.Minute)
	for {
		q.mu.Lock()
		passedBy := slices.Clone(q.passedBy)
		q.mu.Unlock()
		if slices.Contains(passedBy, "DNS/full/") && slices.Contains(passedBy, "DNS/other/") {
			break
		}
		select {
		case <-deadline:
			t.Fatalf("passed by %v", passedBy)
		case <-time.After(time.Millisecond):
		}
	}
	if n := r.connections(); n > 2 {
		t.Errorf("%d connections of connectors that may have one each", n)
	}
	close(r.held)
	q.await(t, 3)
}
