package parleytest

import (
	"testing"
	"time"
)

// Patience is how long a test waits for what must come: a state, a message, a lock. It is no measure of speed: a slow
// machine needs a small part of it. It is there so that a test whose wait is in vain fails with a message, and not with the
// package's time-out. Statements of the sessions that [Database] and [EmptyDatabase] give are cancelled after it, too.
const Patience = 3 * time.Minute

// pollInterval is how often [Until] asks.
const pollInterval = 5 * time.Millisecond

// Receive gives the next value of a channel, the zero value when it is closed. The test fails with what it waited for when
// nothing comes.
func Receive[T any](t testing.TB, from <-chan T, what string) T {
	t.Helper()
	return receive(t, from, what, Patience)
}

func receive[T any](t testing.TB, from <-chan T, what string, patience time.Duration) (v T) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	select {
	case v = <-from:
	case <-deadline.C:
		t.Fatalf("waited %v in vain for %s", patience, what)
	}
	return v
}

// Until asks until holds returns true. The test fails with what it waited for when that never happens.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	until(t, what, holds, Patience)
}

func until(t testing.TB, what string, holds func() bool, patience time.Duration) {
	t.Helper()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for deadline := time.Now().Add(patience); !holds(); <-poll.C {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v in vain until %s", patience, what)
		}
	}
}
