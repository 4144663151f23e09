// Package pipeline puts messages through the components of a pipeline, on their way in and on their way out.
//
// A pipeline is compiled once from its definition and the message types that it uses, and is then used by any number of inputs at the
// same time. Everything streams: a receive pipeline writes each message while it reads the body of the input, a send pipeline makes the
// body while its reader reads it.
package pipeline

import (
	"context"
	"encoding/json"
	"io"
)

// Source is a body with its properties: an input on its way in, a message on its way out.
type Source struct {
	// Open gives the body from its beginning, each time.
	Open        func(ctx context.Context) (io.ReadCloser, error)
	Size        int64 // bytes, -1 where it is not known
	ContentType string
	Charset     string
	Type        string // namespace#root, empty where it is not known
	// Promoted and Written are properties, namespace#Name, or those of the engine by their names. Values are scalars of JSON.
	Promoted map[string]any
	Written  map[string]any
}

// Message is a complete message behind a receive pipeline. Its body was written to the writer that Begin of the sink gave.
type Message struct {
	Number      int64 // in the input, from 1; a bad one has a number of its own
	Type        string
	ContentType string
	Charset     string
	// Promoted and Written are those of the source and those that the pipeline found. The sink may keep and change them.
	Promoted map[string]any
	Written  map[string]any
}

// Sink takes the messages of an input. An error of it ends the run, and is the error of the run. Several messages may be open at a time: a
// bad record within the message that is being written has a number of its own.
type Sink interface {
	// Begin is called for each message when its first bytes are known. It is called again with a number that is open when the message turned
	// out to be bad: what was written is discarded, and the part of the input that it came from is written instead.
	Begin(number int64) (io.Writer, error)
	// End is called when the message is complete and valid.
	End(m Message) error
	// Bad is called instead of End when the message is bad and the others go on. raw is its body, a part of the input in the charset of m,
	// in place of whatever was written; valid until the call returns. Where raw is nil the body is what was written. failure is an
	// adapter.Failure around a fault.
	Bad(m Message, raw []byte, failure error) error
}

// Definition is a pipeline as definitions have it.
type Definition struct {
	Name      string           `json:"-"`
	Direction string           `json:"direction"` // receive or send
	Stages    map[string][]Use `json:"stages"`
}

// Use is a component in a stage of a pipeline, with its settings there.
type Use struct {
	Component string          `json:"component"`
	Settings  json.RawMessage `json:"settings"` // an object; nil: all have their defaults
}

// Result is how a send pipeline writes a message.
type Result struct {
	ContentType string
	Charset     string // empty where no component says it
	Size        int64  // bytes, -1 where the body is made while it is read
}
