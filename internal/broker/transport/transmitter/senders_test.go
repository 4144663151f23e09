package transmitter

import (
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/notifier"
)

// While nobody is notified of messages somebody has to scan: the coordinator often when no worker does, seldom when they scan themselves.
func TestHowOftenDestinationsAreScannedForWhilePolling(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		cost    time.Duration
		workers int
		want    time.Duration
	}{
		{"nobody else scans", 0, 0, notifier.PollInterval},
		{"a scan costs much", 5 * time.Millisecond, 0, 10 * time.Millisecond},
		{"a scan costs very much", time.Second, 0, longestPollInterval},
		{"workers scan themselves", 0, 3, longestPollInterval},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var s senders
			s.demand.Poll()
			now := time.Now()
			s.scanned(now, test.cost, true, test.workers)
			if got := s.next(now, true).Sub(now); got != test.want {
				t.Errorf("the next scan is %v later, want %v", got, test.want)
			}
		})
	}
}

// A worker tries an empty lane again that had something while nobody notifies, unless something was left alone, which only a new worker reads again.
func TestWhenAWorkerLingers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		isPolling bool
		filled    time.Duration // ago
		isLeft    bool
		want      bool
	}{
		{"something came just now", true, 0, false, true},
		{"nothing came for long", true, 2 * quietTime, false, false},
		{"senders notify", false, 0, false, false},
		{"something was left alone", true, 0, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var s senders
			if test.isPolling {
				s.demand.Poll()
			}
			w := &worker{window: newWindow(), demand: &s.demand, filledAt: time.Now().Add(-test.filled)}
			if test.isLeft {
				w.window.left[key{}] = true
			}
			if got := w.lingers(); got != test.want {
				t.Errorf("it lingers: %v, want %v", got, test.want)
			}
		})
	}
}
