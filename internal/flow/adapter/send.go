package adapter

import (
	"context"
	"encoding/json"
	"io"
	"time"
)

// Sender sends the messages of a port. One sender may be asked to send several batches at the same time, of which none has two messages
// that have to stay in order.
type Sender interface {
	// Send sends messages, and gives as many deliveries, in their order. It returns when all were acknowledged or have failed; what ctx ends
	// before is a failure of those that are not acknowledged.
	Send(ctx context.Context, messages []*Message) []Delivery
	// Close gives back what the sender holds, such as connections. No Send is running then.
	Close() error
}

// TransactionSender is a sender that writes into the database of the host. A message is sent when the transaction commits in which the
// host records that it was: exactly once.
type TransactionSender interface {
	Sender
	// InTransaction says whether the port writes into the database of the host; where it does not, the host calls Send.
	InTransaction() bool
	// SendIn writes messages in a transaction of the host. An error of one message is in its delivery; the sender has set a savepoint
	// before it and gone back to it. An error returned makes the host roll back: nothing of it happened.
	SendIn(ctx context.Context, tx Transaction, messages []*Message) ([]Delivery, error)
}

// Message is a message on its way out, behind the pipeline of its port.
type Message struct {
	ID          int64
	Interchange int64
	Parent      int64 // 0 for none
	Type        string
	ReceivedAt  time.Time
	Attempts    int    // how often it was sent before, without an acknowledgement
	OrderKey    string // empty for none
	ContentType string // empty where no component says it
	Charset     string // empty where no component says it
	Promoted    map[string]string
	Written     map[string]string
	// Size is the number of bytes of the body, -1 where the pipeline makes it while it is read.
	Size int64
	// Open gives the body from its beginning. An error of reading it may be a [Failure] of the pipeline, which the adapter passes on.
	Open func(ctx context.Context) (io.ReadCloser, error)
}

// Property gives a property, promoted or written; empty where the message has none of that name.
func (m *Message) Property(name string) string {
	if value, ok := m.Promoted[name]; ok {
		return value
	}
	return m.Written[name]
}

// Delivery is the outcome of a message: it was sent where Err is nil.
type Delivery struct {
	// Detail is kept by tracking, an object, such as the name of the file that was written; nil for none.
	Detail json.RawMessage
	// Answer is that of the destination, of a port that responds; nil for none. Its key and entry are not used.
	Answer *Input
	// Err says why it was not sent; a [Failure] says what should follow, any other error is tried again as the port's policy says.
	Err error
}
