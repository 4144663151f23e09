package process

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/flow/match"
)

// Activation is a receive that begins instances. Messages that satisfy its filter wait in the lanes of the orchestration.
type Activation struct {
	Receive string              // path of the shape in the definition
	Filter  [][]match.Predicate // AND groups, as filters of send ports have them
	Convoy  []string            // properties by which messages belong together: a lane each; empty: each message by itself
}

// Message is a message as an instance sees it. One of the box has a number; one that was constructed has a body and no number.
type Message struct {
	ID       int64          `json:"id,omitempty"`
	Type     string         `json:"type,omitempty"`
	Promoted map[string]any `json:"promoted,omitempty"`
	Written  map[string]any `json:"written,omitempty"`
	Body     []byte         `json:"body,omitempty"` // constructed, and not published yet
	Size     int64          `json:"size,omitempty"` // bytes
	Charset  string         `json:"charset,omitempty"`
	Content  string         `json:"content_type,omitempty"` // media type
	Received time.Time      `json:"received,omitzero"`
}

// EventKind says why an instance runs.
type EventKind string

// The events.
const (
	Activated    EventKind = "ACTIVATED"     // a message began it
	Started      EventKind = "STARTED"       // another instance, or a user, began it with parameters
	Received     EventKind = "RECEIVED"      // a message for one of its waits
	TimerFired   EventKind = "TIMER_FIRED"   // the time of one of its timers has come
	ActivityDone EventKind = "ACTIVITY_DONE" // a worker has answered, or failed for good
	Resumed      EventKind = "RESUMED"       // an operator lets a suspended instance try again
)

// Event is why an instance runs. Only the fields of its kind are set.
type Event struct {
	Kind       EventKind
	Receive    string          // ACTIVATED: of the activation
	Wait       string          // RECEIVED: id of the wait
	Message    *Message        // ACTIVATED, RECEIVED
	Parameters json.RawMessage // STARTED
	Timer      string          // TIMER_FIRED: id
	Activity   string          // ACTIVITY_DONE: id
	Result     json.RawMessage // ACTIVITY_DONE
	Error      string          // ACTIVITY_DONE: of a worker that failed for good
}

// World gives a running instance bodies, types, maps, statements, time and identifiers. All of it belongs to the transaction of the step.
//
// An error that is or wraps a [*Fault] is one of the instance, which it may catch: a map that refuses its input, a statement that violates
// a constraint. Every other error ends the run, and the step with it: what serialization or a lost connection needs.
type World interface {
	// Open gives the body of a message of the box.
	Open(ctx context.Context, m Message) (io.ReadCloser, error)
	// Type gives a constructed message its type and promoted properties by its body, as a receive pipeline would.
	Type(ctx context.Context, m Message) (Message, error)
	// Transform runs a map of the definitions; several inputs where the map takes several.
	Transform(ctx context.Context, name string, inputs []Message) (Message, error)
	// Query runs a statement of an atomic scope with the rights of the host's role, and gives its rows, as JSON would hold their values.
	// A fault leaves the transaction as it was before the statement.
	Query(ctx context.Context, sql string, arguments []any) (rows []map[string]any, err error)
	// Savepoint begins an atomic scope; back undoes all statements since then, and release keeps them. It has the isolation of the step,
	// read committed.
	Savepoint(ctx context.Context) (release, back func(ctx context.Context) error, err error)
	// Now is the time of the step, the same for all of it.
	Now() time.Time
	// NewID gives an identifier that nobody can guess.
	NewID() string
}

// Status is where an instance stands after a step.
type Status string

// The statuses.
const (
	Waiting    Status = "WAITING"
	Finished   Status = "FINISHED"
	Suspended  Status = "SUSPENDED"  // by a fault that nothing caught, or by its suspend shape: an operator resumes or terminates it
	Terminated Status = "TERMINATED" // by its terminate shape
)

// Wait is a receive that an instance may still reach. A message for it is kept in the instance's lane until it is reached. It lives from
// when its correlation set is initialised until no path leads to its receive any more, so that nothing is missed in between.
type Wait struct {
	ID      string            `json:"id"`      // within the instance
	Receive string            `json:"receive"` // path of the shape
	Equal   map[string]string `json:"equal"`   // property to canonical text: its correlation sets, never empty
	Filter  []match.Predicate `json:"filter"`  // what else a message must satisfy
	IsOpen  bool              `json:"is_open"` // the instance stands there now and takes the next
}

// Timer is a time at which an instance goes on.
type Timer struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

// Publication is a message that a step publishes. Its properties may name a dynamic port, or answer a request.
type Publication struct {
	Message
	Port     string // path of the logical port in the definition
	SendPort string // of a logical port that is bound to one: delivered there whatever is subscribed; empty: routed by content
}

// Start begins an instance of another orchestration. Its parameters are values alone, never messages of the box.
type Start struct {
	Orchestration string
	Parameters    json.RawMessage
}

// Activity is work for a worker outside, by a Parley queue.
type Activity struct {
	ID       string // of this request: a worker that gets it twice knows
	Name     string
	Queue    string
	Input    json.RawMessage
	TimeOut  time.Duration // 0: none
	Attempts int           // 0: one
}

// Passed is a shape that a step went through, for tracking and for the picture of the instance.
type Passed struct {
	Path string `json:"path"`          // of the shape
	Way  string `json:"way,omitempty"` // the branch taken, or how it ended
}

// Step is the result of a run: everything that becomes true with the commit.
type Step struct {
	State        json.RawMessage // snapshot; null when the instance is over
	Status       Status
	Waits        []Wait  // all that there are now, not only the new ones
	Timers       []Timer // the same
	Publications []Publication
	Starts       []Start
	Activities   []Activity
	Cancelled    []string // activities whose results nobody wants any more
	Holds        []int64  // messages of the box that the state refers to: they stay as long
	Passed       []Passed
	At           []string // paths of the shapes where it stands, for what it waits for and for its picture
	IsLarge      bool     // the state has more than 10 MB
	Fault        *Fault   // SUSPENDED, TERMINATED: why
}

// Fault is an error of an instance. In a step it is one that nothing caught.
type Fault struct { //nolint:errname // a fault is what catch and throw call it
	Code    string `json:"code"`
	Path    string `json:"path"` // of the shape
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

func (f *Fault) Error() string { return f.Message }

// ErrNotWaiting says that an instance does not take an event: its wait is not open, its timer is gone, nobody wants the result. A message
// stays where it is; every other event has come too late, and counts as done.
var ErrNotWaiting = errors.New("the instance does not wait for that")

// Known has the names that an orchestration may use. Orchestrations that it calls become part of it, so a host gives those
// of the version that an instance began with.
type Known struct {
	Orchestrations map[string]json.RawMessage // settings by name
	Properties     map[string]string          // types of properties by namespace#Name, and of those of the engine
	MessageTypes   map[string]bool
	Maps           map[string]bool
	SendPorts      map[string]bool
	ReceivePorts   map[string]bool
}

// Problem is something wrong with a definition. The path begins with the kind, as in other definitions.
type Problem struct {
	Path    []string
	Message string
	Remedy  string
}

func (p Problem) String() string { return strings.Join(p.Path, "/") + ": " + p.Message }
