package demo

import "time"

// Observer receives the progress of a demo, from one goroutine at a time.
type Observer[P any] interface {
	// Progress comes several times a second while the demo runs.
	Progress(progress P)
	// Notice comes once for each thing that happens.
	Notice(text string)
}

// Progress is where a run stands.
type Progress struct {
	// Phase counts the payload sizes from 0. PayloadBytes is its size.
	Phase, PayloadBytes int
	// Elapsed is the time since the first message; Duration is how long messages are sent, as asked for.
	Elapsed, Duration time.Duration
	// Sent and Received count messages since the start of the run.
	Sent, Received int64
	// SentPerSecond and ReceivedPerSecond are the rates of late.
	SentPerSecond, ReceivedPerSecond float64
}
