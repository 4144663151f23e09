package parleytest

import (
	"testing"
	"time"
)

// Patience is how long a test waits for what must come: a state, a message, a lock. It is no measure of speed: a slow
// machine needs a small part of it. It is there so that a test whose wait is in vain fails with a message, and not with the
// package's time-out. Statements of the sessions that [Database] and [EmptyDatabase] give are cancelled after it, too.
const Patience = 3 * time.Minute

const (
	// pollShortest is how long [Until] waits at least before it asks again, pollLongest how long at most.
	pollShortest = 5 * time.Millisecond
	pollLongest  = 100 * time.Millisecond
)

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
	for began, asked := time.Now(), time.Now(); !holds(); asked = time.Now() {
		waited := time.Since(began)
		if waited > patience {
			t.Fatalf("waited %v in vain until %s", patience, what)
		}
		<-time.After(pause(waited, time.Since(asked)))
	}
}

// pause is how long is waited before something is asked again: longer the longer the wait goes on, and the longer the answer took. Many
// tests wait beside each other, and to ask takes the processor from what they wait for. A wait ends a tenth later for that.
func pause(waited, took time.Duration) time.Duration {
	return min(max(pollShortest, waited/10, 2*took), pollLongest)
}
