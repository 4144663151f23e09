// Package interchange is what disassemblers have in common: a body holds messages, of which some may be bad.
package interchange

import (
	"io"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// Recovery is the fate of the good parts of a body that has bad ones.
type Recovery string

// The recoveries.
const (
	Nothing  Recovery = ""         // a bad part ends the reading
	Messages Recovery = "messages" // good messages go on, a bad message is reported
	Records  Recovery = "records"  // in a message of a flat file, a bad repetition of a record is reported and left out
)

// A Message is a complete message of a body.
type Message struct {
	Number int64  // in the body, from 1
	Type   string // namespace#root, or what a schema says; empty where it is not known
}

// Bad is a part of a body that could not be read as a message or record.
type Bad struct {
	Fault    *fault.Fault
	From, To int64  // bytes of the body
	Raw      []byte // in UTF-8; nil where it is long. Valid until the call returns
}

// UnreadableError is an error behind which nothing of a body can be read, in a record that begins at From.
type UnreadableError struct {
	From int64 // bytes of the text before it
	Err  error
}

func (u *UnreadableError) Error() string { return u.Err.Error() }

func (u *UnreadableError) Unwrap() error { return u.Err }

// A Sink takes the messages of a body.
type Sink interface {
	// Begin is called for each message, numbered from 1, when its first bytes are known.
	Begin(number int64) (io.Writer, error)
	// End is called when the message is complete.
	End(m Message) error
	// Abort is called instead when it turns out bad.
	Abort(number int64) error
	// Bad is called for a part that is passed over, where a Recovery is set.
	Bad(bad Bad) error
}
