package activation

import (
	"context"
	"encoding/json"
)

// The kinds of readers a queue can have.
const (
	KindProcedure = "procedure" // a session that runs the activation procedure
	KindProgram   = "program"
	KindWebhook   = "webhook"
)

// Queue is a queue with activation on, as the monitor read it last.
type Queue struct {
	ID         int
	Name       string // as the statements take it
	MaxReaders int    // no more run at once
	MinReaders int    // so many run even when nothing waits; 0 for procedures
	Kind       string // which starter makes its readers

	// Of kind procedure: its name, schema-qualified and quoted as SQL needs it, and the role it runs under.
	Procedure string
	ExecuteAs string

	// Refusal reports why nothing may be started: who said what reads the queue could not do it himself.
	Refusal string

	// External is the definition of an external activation, for the starter of its kind.
	External json.RawMessage
}

// A Reader receives from one queue until it finds nothing.
type Reader interface {
	// Run returns nil when the reader left because the queue was empty, and an error when it failed; the engine starts
	// readers of a queue that fails anew after a growing pause. It is called once.
	//
	// When ctx ends Run must stop receiving, finish or roll back what it has begun, and return soon: the engine waits for it, for the time
	// of grace. Each process that Run started has ended when it returns.
	Run(ctx context.Context) error
}

// A Starter makes the readers of one kind. NewReader only prepares; nothing runs before the reader's Run. The number
// distinguishes the readers of a queue that run at the same time: the lowest that is free, from 1.
//
// An error of NewReader counts as a failure of the queue, like one of Run. Starters are used by several goroutines.
type Starter interface {
	NewReader(q Queue, number int) (Reader, error)
}

// A Keeper is a Starter with something to maintain whenever definitions may have changed, and now and then besides. Keep
// is called by one goroutine at a time, of the engine that leads; what it returns is logged.
type Keeper interface {
	Keep(ctx context.Context) error
}
