package demo

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// PayloadBytes are the paper's payload sizes. Each has a phase of the run.
var PayloadBytes = []int{100, 1024, 4096, 8192}

// Config reports how much of the workload to play.
type Config struct {
	// Senders is how many sessions send at once, Readers how many may run the receive procedure (MAX_QUEUE_READERS).
	Senders, Readers int
	// Conversations is how many the senders share out. With fewer than senders, several send on one.
	Conversations int
	// Duration is the time in which messages are sent, for all payload sizes together.
	Duration time.Duration
	// Database is the name of the database that is made for the run. One that an earlier run left is dropped.
	Database string
	// Keep leaves the database there for inspection; else it is dropped at the end.
	Keep bool
	// Observer receives the progress; it may be nil.
	Observer Observer[Progress]
}

const (
	sessionsMax      = 150
	conversationsMax = 100_000
)

// A plain name needs no quotes in a DSN or a shell.
var plainName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// Validate reports what cannot be played.
func (c Config) Validate() error {
	switch {
	case c.Senders < 1 || c.Readers < 1:
		return errors.New("a run needs at least one sender and one reader")
	case c.Senders+c.Readers > sessionsMax:
		return fmt.Errorf("%d senders and readers are too many, at most %d in all", c.Senders+c.Readers, sessionsMax)
	case c.Conversations < 1 || c.Conversations > conversationsMax:
		return fmt.Errorf("%d conversations cannot be used, only 1 to %d", c.Conversations, conversationsMax)
	case c.Duration < time.Duration(len(PayloadBytes))*time.Millisecond:
		return fmt.Errorf("%v is too short a run", c.Duration)
	case !plainName.MatchString(c.Database):
		return fmt.Errorf("database name %q needs quotes: use lower case letters, digits and _", c.Database)
	}
	return nil
}
