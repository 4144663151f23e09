// Package checker decides whether a history of sends and receives keeps what Parley promises.
//
// It knows nothing of Parley and believes none of its numbers. A workload keeps a ledger in tables of its own: each row is written in
// the very transaction that sent or received, so that it is there exactly when the message was, also when the
// client never learned whether its commit succeeded. The rows make a [History], and [Check] reports what is wrong with it.
package checker

import "time"

// Direction is one side of a dialog as a sender.
type Direction struct {
	// Dialog is the conversation id, the same on both sides.
	Dialog string
	// FromInitiator reports the side that sends.
	FromInitiator bool
}

// Sent is a message whose sender has committed.
type Sent struct {
	Direction
	// Stream distinguishes senders that share a side of a dialog. Each numbers its messages from 1, without a gap.
	Stream string
	N      int64
	// Hash is that of the body.
	Hash string
	// Begun is when the sender called SEND, Committed when it knew that its transaction had committed, both by one
	// clock; zero when that is not known.
	Begun, Committed time.Duration
	// Handle is the sender's, to find it again; it decides nothing.
	Handle string
}

// Received is a message whose receiver has committed, as the receiver read it.
type Received struct {
	Direction
	Stream string
	N      int64
	Hash   string
	// Seq numbers what was received of a direction, ends too, in the order it was received.
	Seq int64
}

// EndKind is how a dialog ends.
type EndKind int

const (
	// EndDialog is the end without an error.
	EndDialog EndKind = iota
	// EndError is the end with an error.
	EndError
)

// Ended is an END CONVERSATION that has committed: the direction will send no more, and what comes the other way may vanish.
type Ended struct {
	Direction
	Kind EndKind
	// Text is the description of an error.
	Text string
}

// EndReceived is an EndDialog or Error message that was received.
type EndReceived struct {
	Direction
	Kind EndKind
	Text string
	// Code is that of an error; negative when a broker made it and not the other side.
	Code int32
	Seq  int64
}

// History is everything that a run has committed.
type History struct {
	Sent         []Sent
	Received     []Received
	Ended        []Ended
	EndsReceived []EndReceived
	// Waiting are the messages that are in a queue still when the run is over.
	Waiting []Received
	// Observed holds the observations made while the run went on, besides the ledgers.
	Observed
}
