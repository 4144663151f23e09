// Package session says what a session of T-SQL is to those who use it, be it a runner of scripts or a listener for drivers: a batch
// goes in; result sets, messages, errors and row counts come out, in their order, to a sink.
package session

import (
	"context"
	"errors"

	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// A Session runs batches one after another. It keeps its options, its transaction and its temporary objects between them.
type Session interface {
	// Run runs one batch and gives what comes of it to the sink. Errors of T-SQL go to the sink too. An error is returned where
	// the session cannot go on: the context ended, the connection was lost, or a severity of 20 and more closed it.
	Run(ctx context.Context, batch string, sink Sink) error
	// Close ends the session; a transaction that is open is rolled back.
	Close(ctx context.Context) error
}

// ErrAttention is the cause with which the context of a batch is cancelled to end the batch alone: the session goes on with the next one.
// A transaction that is open stays open, unless XACT_ABORT is ON.
var ErrAttention = errors.New("the batch was cancelled")

// A Column is a column of a result set. One without a name has an empty one.
type Column struct {
	Name string
	Type value.Type
}

// A Sink takes what a batch gives, in its order. An error from it ends the batch.
type Sink interface {
	// Columns begins a result set.
	Columns(columns []Column) error
	// Row gives one row of the result set that has begun; the values have the types of its columns.
	Row(row []value.Value) error
	// Done ends a statement, and its result set if it has one.
	Done(done Done) error
	// Message gives an error, or the text of PRINT and other messages of severities up to 10.
	Message(message *fault.Error) error
	// Flush asks that what was given so far is shown now.
	Flush() error
}

// Silent takes what a batch gives, and shows nothing of it. A sink for messages alone has it in itself.
type Silent struct{}

// Columns shows nothing.
func (Silent) Columns([]Column) error { return nil }

// Row shows nothing.
func (Silent) Row([]value.Value) error { return nil }

// Done shows nothing.
func (Silent) Done(Done) error { return nil }

// Message shows nothing.
func (Silent) Message(*fault.Error) error { return nil }

// Flush shows nothing.
func (Silent) Flush() error { return nil }

// Done is how a statement ended.
type Done struct {
	HasRows  bool  // it gave a result set
	HasCount bool  // it counts rows, and NOCOUNT is OFF
	Count    int64 // rows that it gave or changed
}
