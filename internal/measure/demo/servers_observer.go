package demo

import "time"

// Flow is where a run on several servers stands.
type Flow struct {
	// Phase reports the senders and what they send.
	Phase string
	// Elapsed is the time since the first message; Duration is how long messages are sent, as asked for.
	Elapsed, Duration time.Duration
	Initiators        []InitiatorFlow
	// Sent and Received count messages since the start of the run, of all initiators.
	Sent, Received    int64
	ReceivedPerSecond float64
}

// InitiatorFlow is where one of the initiators stands.
type InitiatorFlow struct {
	Name          string
	SentPerSecond float64
	// Waiting is how many messages are in its transmission queue.
	Waiting int64
	Link    LinkState
}

// LinkState is the state of the link between an initiator and the target.
type LinkState string

// The states of a link: it carries something, nothing has used it yet, or it is cut.
const (
	LinkUp   LinkState = "up"
	LinkIdle LinkState = "idle"
	LinkCut  LinkState = "CUT"
)
