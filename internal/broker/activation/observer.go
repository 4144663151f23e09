package activation

import "time"

// An Observer is informed of what happens, for metrics. Its methods must return at once; several goroutines call them.
type Observer interface {
	// ReaderStarted: a reader begins to run.
	ReaderStarted(q Queue)
	// ReaderEnded: it has left (err is nil) or failed, after it ran for a while.
	ReaderEnded(q Queue, err error, ran time.Duration)
	// TaskLimitReached: messages wait that one more reader could take, but MAX_QUEUE_READERS run already.
	TaskLimitReached(q Queue)
}

// unobserved is the observer of an engine that has none.
type unobserved struct{}

func (unobserved) ReaderStarted(Queue)                     {}
func (unobserved) ReaderEnded(Queue, error, time.Duration) {}
func (unobserved) TaskLimitReached(Queue)                  {}
