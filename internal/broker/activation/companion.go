package activation

// Leadership is what a companion of an engine may rely on while that leads.
type Leadership struct {
	// Term goes with each statement that changes something.
	Term int64
	// IsFresh tells whether the lease still runs for certain. When it is false nothing new must be begun: another daemon may lead.
	IsFresh func() bool
	// IsListening tells whether notifications arrive.
	IsListening func() bool
	// Rung brings what was notified: ids that belong to no queue with activation on. Missed has a signal when some were lost or may
	// have been, and Unresolved when a conversation waits for a database that this daemon may know.
	Rung               <-chan int32
	Missed, Unresolved <-chan struct{}
}

// share gives a companion its part in a term.
func (t *term) share(b *bell) Leadership {
	return Leadership{
		Term: t.number, IsFresh: t.isFresh, IsListening: b.isListening.Load,
		Rung: b.companion.rung, Missed: b.companion.missed, Unresolved: b.companion.unresolved,
	}
}
