package mailcheck

import "time"

// Outcome is the submitter's knowledge about a letter.
type Outcome int

const (
	// NotAccepted letters were refused, or never came to their final dot, or their transaction did not commit.
	NotAccepted Outcome = iota
	// Accepted letters got their 250, or their transaction committed.
	Accepted
	// Unknown letters were sent whole, and no reply came.
	Unknown
)

// Submission is a letter that was submitted.
type Submission struct {
	Key        string
	Sender     string
	Recipients []string
	// Hash is that of the body, by [Hash] or [HashText].
	Hash    string
	Outcome Outcome
	// Via says how, for people.
	Via string
}

// Ending is how the transaction ended in which a letter arrived.
type Ending int

const (
	// Stored letters are in a table, a queue or a mailbox, where each has to be once.
	Stored Ending = iota
	// Acknowledged is for a reply that the peer has read: it has said something after it.
	Acknowledged
	// Unread is for a reply after which the peer said nothing more: it may not have read it.
	Unread
	// Unanswered is for a connection that died between the final dot and the reply.
	Unanswered
)

// Arrival is a letter, or a report, at one recipient.
type Arrival struct {
	Key       string
	Recipient string
	Hash      string
	// Report is the content of a report, when it is no letter.
	Report *Report
	// Place says where, for people.
	Place  string
	Ending Ending
	// At is when it was taken, and Ended when the connection ended; zero for what is stored.
	At, Ended time.Time
}

// Span is a time in which something was not there.
type Span struct{ From, To time.Time }

// Faults are the faults injected into mail transport that may explain why a letter came twice.
type Faults struct {
	// Killed are the times at which a process was killed that sends.
	Killed []time.Time
	// Away are the times in which the database took no commits.
	Away []Span
}

const (
	// recording bounds how long a process may take to record what a host has acknowledged, while the database is there, on a slow machine
	// too: only in this time may a kill have it sent again.
	recording = 10 * time.Second
	// closing bounds how long a connection may outlive the process at its other end: a host that hangs for a second learns of its end
	// after that.
	closing = 2 * time.Second
	// reading bounds how long a reply may be under way that nobody reads any more.
	reading = 2 * time.Second
)

// explain is whether a process may have been killed before it had recorded an arrival.
func (f Faults) explain(a Arrival) bool {
	for _, killed := range f.Killed {
		if killed.Before(a.At) || (!a.Ended.IsZero() && a.Ended.After(killed.Add(closing))) {
			continue // It lived on: its connection did.
		}
		left := killed.Sub(a.At)
		for _, away := range f.Away {
			from, to := later(away.From, a.At), earlier(away.To, killed)
			if to.After(from) {
				left -= to.Sub(from)
			}
		}
		if left <= recording {
			return true
		}
	}
	return false
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
