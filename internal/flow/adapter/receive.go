package adapter

import (
	"context"
	"encoding/json"
	"io"
)

// Receiver takes messages in for a location.
type Receiver interface {
	// Run takes in until ctx ends, and returns nil then. An error says that the location cannot work as it is, such as a folder that is
	// not there; the host reports it and begins again after a pause. A bad input is no error of the location.
	Run(ctx context.Context, in Intake) error
}

// Intake is a host as receivers see it. Its methods may be called at the same time.
type Intake interface {
	// Await returns when the host takes messages: it waits while intake is throttled or the location is disabled. Receivers call it before
	// they read.
	Await(ctx context.Context) error
	// Throttled says whether intake is throttled now, for receivers that have to answer instead of waiting.
	Throttled() bool
	// Known gives those of keys that the ledger of the location has: they were taken and are not read again.
	Known(ctx context.Context, keys []string) (map[string]bool, error)
	// Taken gives what was published and whose source is still there, oldest first: after a crash a receiver removes these first.
	Taken(ctx context.Context) ([]Entry, error)
	// Removed records that sources were removed, moved or acknowledged.
	Removed(ctx context.Context, keys []string) error
	// Take puts inputs through the pipeline of the location and publishes their messages in one transaction, with their keys. The results
	// are parallel to the inputs. An error says that nothing of it happened, such as a database that is away; a bad input is no error.
	Take(ctx context.Context, inputs []Input) ([]Result, error)
	// TakeIn does the same in a transaction of the caller, who commits or rolls back. Bodies are small: they stay in memory.
	TakeIn(ctx context.Context, tx Transaction, inputs []Input) ([]Result, error)
	// Responds says whether clients of the location wait for answers: then each input is given to Request.
	Responds() bool
	// Request does what Take does with an input, and waits for the answer to it: until gone is closed, since the client has left, or the
	// time of the port is over. An error is as that of Take.
	Request(ctx context.Context, input Input, gone <-chan struct{}) (Reply, error)
}

// Reply is the outcome of a request, for its client.
type Reply struct {
	Result
	// Answer is behind the pipeline of the response; nil: none has come.
	Answer *Message
	// Refused says why the client gets no answer, though its time is not over: the pipeline of the response has refused it, or the message
	// of the request was given up.
	Refused error
	// End says what became of the answer, where there is one: whether the client has got it. Call it once.
	End func(isGiven bool)
}

// Input is something that a receiver has found: a file, a request, a row. It holds one message or, for a disassembler, several.
type Input struct {
	// Key is under which the ledger keeps it, so that it is taken once; empty for none. Up to 1,024 bytes.
	Key string
	// Entry is an object that the ledger keeps beside the key, such as name and size of a file. Taken gives it after a crash.
	Entry json.RawMessage
	// Body is the input where it is small. Otherwise Open gives it, from its beginning each time.
	Body []byte
	Open func(ctx context.Context) (io.ReadCloser, error)
	// Size is the number of bytes of what Open gives, or -1 where it is not known. A body that ends earlier or later is an error of the
	// input: its source has changed.
	Size int64
	// Failure is set where the receiver itself finds the input bad, such as an empty file: the input does not go through the pipeline, and
	// is suspended, or routed as failed, for this reason.
	Failure     *Failure
	ContentType string // a media type, empty where the adapter is not told
	Charset     string // empty where the adapter is not told
	MessageType string // empty unless the source says it
	// Promoted and Written are properties, namespace#Name, or those of the engine by their names. Values are scalars of JSON.
	Promoted map[string]any
	Written  map[string]any
}

// Entry is an input in the ledger.
type Entry struct {
	Key   string
	Entry json.RawMessage
}

// Outcome is the end of an input.
type Outcome string

// The outcomes.
const (
	Published    Outcome = "PUBLISHED"
	Suspended    Outcome = "SUSPENDED"     // all of it, or some of its messages; an operator finds them
	FailedRouted Outcome = "FAILED_ROUTED" // published as a failed message
	Repeated     Outcome = "REPEATED"      // its key was in the ledger; nothing of it was stored
	Joined       Outcome = "JOINED"        // the same of a request, whose answer is yet to come, or is there
	Consumed     Outcome = "CONSUMED"      // the pipeline made no message of it
)

// Result has the outcome of an input. Suspended of several messages means that at least one was.
type Result struct {
	Outcome  Outcome
	Message  int64 // the first that came of it, 0 for none
	Messages int   // how many came of it
	Failure  error // why it, or one of its messages, was suspended or routed as failed
}
