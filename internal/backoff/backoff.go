// Package backoff says how long to pause after something has failed, and logs failures in a row once.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Policy reports how pauses grow while failures follow one another: each is twice the one before it.
type Policy struct {
	First, Longest time.Duration
	// Jitter is the share of a pause that is drawn: 0.5 gives between half and all of it. Those that failed together then do not return
	// together.
	Jitter float64
}

// The policies of everything that is tried again in Go. Destinations that cannot be reached, and deliveries to web addresses, pause by SQL
// functions: their pauses outlive the process.
var (
	// Statement is for the daemon's own statements, and for its connections to the database.
	Statement = Policy{First: 100 * time.Millisecond, Longest: 5 * time.Second, Jitter: 0.5}
	// Reader is for the readers of a queue that fail, or receive nothing though messages wait.
	Reader = Policy{First: 100 * time.Millisecond, Longest: 30 * time.Second}
	// Consumer is for the handlers of a consumer.
	Consumer = Policy{First: 100 * time.Millisecond, Longest: 10 * time.Second, Jitter: 0.5}
	// Serialization is for a transaction that had to yield to another one, which is about to end.
	Serialization = Policy{First: 10 * time.Millisecond, Longest: 80 * time.Millisecond, Jitter: 0.5}
	// Conversation is for one that the far side could not take in just then, because somebody held it.
	Conversation = Policy{First: 10 * time.Millisecond, Longest: 250 * time.Millisecond}
	// EmptyLane is for a destination whose lane was reported to hold messages and had nothing to take: a scan may be older than the work of
	// another one, or another session holds the rows.
	EmptyLane = Policy{First: 2 * time.Millisecond, Longest: 2 * time.Second}
)

// Pause gives the pause after so many failures in a row, the first one counts 1.
func (p Policy) Pause(failures int) time.Duration {
	pause := p.First
	for ; failures > 1 && pause < p.Longest; failures-- {
		pause *= 2
	}
	return Jitter(min(pause, p.Longest), p.Jitter)
}

// Jitter shortens a time by up to a share of it.
func Jitter(d time.Duration, share float64) time.Duration {
	return d - rand.N(time.Duration(float64(d)*share)+1)
}

// Wait waits for a time, and returns the cause when ctx ends first.
func Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
