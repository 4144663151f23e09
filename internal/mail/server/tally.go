package server

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley/internal/mail/send"
)

// tally counts what the daemon has done since it began.
type tally struct {
	remote, mailbox carried
	commits, commitFailures, committed,
	categorized, categorizerFailures, setAside, toServices,
	failureReports, delayReports, successReports atomic.Int64
	commitTime atomic.Int64 // nanoseconds, of the commits
	resolved   resolved
	// serviceLatency is from receipt to the service or table.
	serviceLatency latencies
}

// carried counts what went to next hops of one kind.
type carried struct {
	connections, connectionFailures, open, messages, bytes, duplicates atomic.Int64
	byClass                                                            [send.Rerouted + 1]atomic.Int64 // recipients

	attempts atomic.Int64
	latency  latencies // from receipt to the next hop
}

// batch counts a batch of arriving messages, as the committer reports it.
func (t *tally) batch(messages int, took time.Duration, err error) {
	if err != nil {
		t.commitFailures.Add(1)
		return
	}
	t.commits.Add(1)
	t.committed.Add(int64(messages))
	t.commitTime.Add(int64(took))
}

// reported counts a delivery report by its action.
func (t *tally) reported(action string) {
	switch action {
	case "FAILED":
		t.failureReports.Add(1)
	case "DELAYED":
		t.delayReports.Add(1)
	default:
		t.successReports.Add(1)
	}
}

// countingCarrier counts what a carrier does.
type countingCarrier struct {
	send.Carrier
	carried *carried
}

// Connect opens a way that counts what is sent on it.
func (c countingCarrier) Connect(ctx context.Context, hop send.Hop) (send.Way, error) {
	way, err := c.Carrier.Connect(ctx, hop)
	if err != nil {
		c.carried.connectionFailures.Add(1)
		return nil, err
	}
	c.carried.connections.Add(1)
	c.carried.open.Add(1)
	return countingWay{Way: way, carried: c.carried}, nil
}

// countingWay counts what is sent on a way.
type countingWay struct {
	send.Way
	carried *carried
}

// Send sends, and counts what became of the recipients.
func (w countingWay) Send(ctx context.Context, message send.Message) []send.Result {
	w.carried.attempts.Add(1)
	results := w.Way.Send(ctx, message)
	isTaken := false
	for _, result := range results {
		w.carried.byClass[result.Class].Add(1)
		if result.Class == send.Delivered {
			w.carried.latency.Observe(time.Since(message.Received))
			isTaken = true
		}
		if result.Duplicate {
			w.carried.duplicates.Add(1)
		}
	}
	if isTaken {
		w.carried.messages.Add(1)
		w.carried.bytes.Add(message.Size)
	}
	return results
}

// Close ends the way.
func (w countingWay) Close() {
	w.carried.open.Add(-1)
	w.Way.Close()
}
