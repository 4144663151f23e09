package adapter

import (
	"fmt"
	"time"
)

// Failure is an error that says what should follow it.
type Failure struct { //nolint:errname // the field of integration calls it a failure
	// Code is one of parley_flow.failure_codes, or begins with x-.
	Code string
	Err  error
	// Permanent says that trying again does not help: the message is suspended, or routed as failed.
	Permanent bool
	// Unreachable says that the destination as a whole is away: the port waits, and no other message of it is tried meanwhile.
	Unreachable bool
	// RetryAfter is when the destination asked to be tried again, 0 where it said nothing.
	RetryAfter time.Duration
}

func (f *Failure) Error() string { return fmt.Sprintf("%s: %v", f.Code, f.Err) }

func (f *Failure) Unwrap() error { return f.Err }
