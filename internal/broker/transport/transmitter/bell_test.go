package transmitter

import (
	"testing"
	"time"
)

// While nobody is told of messages somebody has to look: the coordinator often when no worker does, seldom when they look themselves.
func TestHowOftenADestinationIsLookedForWhileAwake(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		cost    time.Duration
		workers int
		want    time.Duration
	}{
		{"nobody else looks", 0, 0, awakePause},
		{"a look costs much", 5 * time.Millisecond, 0, 10 * time.Millisecond},
		{"a look costs very much", time.Second, 0, longestAwake},
		{"workers look themselves", 0, 3, longestAwake},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var b bell
			b.isAwake.Store(true)
			now := time.Now()
			b.looked(now, test.cost, true, test.workers)
			if got := b.next(now, true).Sub(now); got != test.want {
				t.Errorf("the next look is %v later, want %v", got, test.want)
			}
		})
	}
}

// A lane that had something is looked at again while nobody tells, unless something was left aside, which only a new worker reads again.
func TestWhenAWorkerLingers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		isAwake   bool
		filled    time.Duration // ago
		leftAside bool
		want      bool
	}{
		{"something came just now", true, 0, false, true},
		{"nothing came for long", true, 2 * quietTime, false, false},
		{"senders tell", false, 0, false, false},
		{"something was left aside", true, 0, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var b bell
			b.isAwake.Store(test.isAwake)
			w := &worker{window: newWindow(), isAwake: &b.isAwake, filledAt: time.Now().Add(-test.filled)}
			if test.leftAside {
				w.window.aside[key{}] = true
			}
			if got := w.lingers(); got != test.want {
				t.Errorf("it lingers: %v, want %v", got, test.want)
			}
		})
	}
}
