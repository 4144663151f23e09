package checker

import "time"

// Observed holds the observations of a run beside the ledgers: the knowledge of its clients, the messages on the way at some instant, and
// how long it took to become quiet. Values that were not read stay empty, and are not judged.
type Observed struct {
	// Prefixes are samples of running streams: S6.
	Prefixes []Prefix
	// Undone are messages that were sent and then rolled back, as their sender knows for certain: S7.
	Undone []Undone
	// PutBack are messages that were received and then rolled back, as their receiver knows for certain: S8.
	PutBack []Received

	// Acknowledged is the number that the receiver's broker has acknowledged; Expects what it expected next later, when it had been stopped
	// and started, and so is durable: T1.
	Acknowledged, Expects []Mark
	// Forgotten is the number below which the sender's broker keeps nothing, seen before Expects: T2.
	Forgotten []Mark

	// Survived are messages whose sender received the result of its commit, SurvivedReceipts those whose receiver did: F1.
	Survived         []Sent
	SurvivedReceipts []Received

	// LostHistory are the codes of the Errors with which dialogs end whose history a database has lost, none when none has: then
	// such an end is as bad as any other that nobody asked for.
	LostHistory []int32
	// Untouched are dialogs of which nothing was on the way while history was lost: F2.
	Untouched []string

	// Outcasts are streams of databases that may not speak: F3 and F4.
	Outcasts []Outcast

	// Healed is when the last fault was, and Quiet when nothing was on the way any more, both by the clock of the run; QuietMax is how much
	// later that may be. Quiet stays zero when it never became quiet: L1.
	Healed, Quiet, QuietMax time.Duration
	// Left lists the remains then, though everything has ended, as texts: L1.
	Left []string
}

// Prefix is how much of a stream had been received at some instant, and then, a little later, how much had been sent.
type Prefix struct {
	Direction
	Stream         string
	Received, Sent int64
}

// Undone is a message that was never sent.
type Undone struct {
	Direction
	Hash string
}

// Mark is a place in a direction of a dialog: everything below Next, counted from 0, lies before it.
type Mark struct {
	Direction
	Next int64
}

// Outcast is a stream of which no other database may take anything.
type Outcast struct {
	Direction
	Stream string
	// Invariant is which one: F3 for a copy, F4 for an old primary.
	Invariant string
}
