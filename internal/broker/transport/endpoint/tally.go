package endpoint

import (
	"sync/atomic"

	"github.com/parley-broker/parley/internal/broker/transport"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// tally counts what a database transmits and takes in.
type tally struct {
	sent                                     [10]atomic.Int64
	received, dropped                        atomic.Int64
	fragmentsSent, fragmentsReceived         atomic.Int64
	fragmentBytesSent, fragmentBytesReceived atomic.Int64
	notAccepted, failedAttempts              atomic.Int64
	superseded                               atomic.Bool
}

// Sent counts what was delivered, by priority.
func (t *tally) Sent(runs []transportstore.Run) {
	for _, run := range runs {
		t.sent[min(max(run.Priority, 1), 10)-1].Add(messages(run))
	}
}

// FragmentSent counts a part of a large message.
func (t *tally) FragmentSent(bytes int) {
	t.fragmentsSent.Add(1)
	t.fragmentBytesSent.Add(int64(bytes))
}

// Answered counts what was not accepted.
func (t *tally) Answered(results []transportstore.Result) {
	for _, result := range results {
		if result.Outcome != transportstore.Accepted {
			t.notAccepted.Add(1)
		}
	}
}

// AttemptFailed counts that a destination could not be reached.
func (t *tally) AttemptFailed(string, error) { t.failedAttempts.Add(1) }

// Superseded records whether another copy of the database speaks for it.
func (t *tally) Superseded(is bool) { t.superseded.Store(is) }

// Arrived counts what was taken in, and what was dropped for good.
func (t *tally) Arrived(runs []transportstore.Run, results []transportstore.Result) {
	for i, run := range runs {
		switch results[i].Outcome {
		case transportstore.Accepted:
			t.received.Add(messages(run))
		case transportstore.Refused, transportstore.Gone, transportstore.Unroutable, transportstore.Superseded:
			t.dropped.Add(messages(run))
		case transportstore.Expected, transportstore.Held:
			// It comes again.
		}
	}
}

// FragmentArrived counts a part of a large message.
func (t *tally) FragmentArrived(bytes int) {
	t.fragmentsReceived.Add(1)
	t.fragmentBytesReceived.Add(int64(bytes))
}

// fill reports what was counted.
func (t *tally) fill(f *transport.Figures) {
	for i := range t.sent {
		f.Sent[i] = t.sent[i].Load()
	}
	f.Received, f.Dropped = t.received.Load(), t.dropped.Load()
	f.FragmentsSent, f.FragmentsReceived = t.fragmentsSent.Load(), t.fragmentsReceived.Load()
	f.FragmentBytesSent, f.FragmentBytesReceived = t.fragmentBytesSent.Load(), t.fragmentBytesReceived.Load()
	f.NotAccepted, f.FailedAttempts, f.IsSuperseded = t.notAccepted.Load(), t.failedAttempts.Load(), t.superseded.Load()
}

func messages(run transportstore.Run) int64 {
	if run.Size > 0 {
		return 1
	}
	return int64(len(run.Bodies))
}
