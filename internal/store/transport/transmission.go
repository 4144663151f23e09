package transport

import (
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Messages between brokers, in the shapes in which the daemon carries them from a database to a link and from a link to a database. The
// functions of the schema alone decide their meaning; a daemon moves them.

// Speaker says in whose name a daemon transmits: a broker instance, and which of the daemons, and which history of the database, speaks for
// it. A speaker that is older than the Epoch and Term that a receiver knows changes nothing there.
type Speaker struct {
	// Instance is the service_broker_guid of the database.
	Instance pgdb.UUID
	// Epoch grows when the database goes on from a history that may have lost its end: after a failover or a restore.
	Epoch int64
	// Term is that of the daemon that leads, within the epoch; Token distinguishes two copies of a database that have both
	// come to the same term.
	Term  int64
	Token pgdb.UUID
}

// Run is one or more messages of one direction of one conversation, with numbers that follow each other, on their way
// between brokers.
type Run struct {
	// EndpointID names the sending side in its own database, for Acknowledge; it does not travel.
	EndpointID int64

	ConversationID pgdb.UUID
	// FromInitiator is the direction.
	FromInitiator bool
	// FirstSequence is the number of the first message, from 0; [Unsequenced] for an Error that the broker itself made, which
	// is taken whatever came before.
	FirstSequence int64
	// MessageType is that of all messages in the run.
	MessageType string
	// Bodies has one entry a message, nil for a message without body. In a run with Size > 0 it is empty.
	Bodies [][]byte
	// Size is the length of the body of the only message in the run when that is too large to travel in one piece; then its
	// fragments go before it.
	Size int64

	FromService, ToService, Contract string
	// ToBroker is the instance that the conversation is bound to, zero as long as it may be any.
	ToBroker pgdb.UUID
	Priority int16
	// EnqueuedAt is when the first of the messages was sent.
	EnqueuedAt time.Time
	// EndsAt is the end of the lifetime, zero for one that was not limited.
	EndsAt time.Time
	// TraceContext is that of all messages in the run; empty when they have none.
	TraceContext string

	// Owner is the role that owns the sending service. It counts only between databases of one server, served by one daemon.
	Owner string
	// IsEncrypted reports that the dialog was begun with encryption, so it must not leave the server unsecured.
	IsEncrypted bool
	// IsBound shows the sending daemon that a remote service binding counts for the dialog, so that it has to ask how to seal it. It does
	// not travel.
	IsBound bool
	// Probe is set in a run without messages that compares both sides of a conversation after the sender's epoch has changed.
	Probe *Probe
	// SealedAt is when the run was sealed for this transmission, as its seal proves; zero for one in clear. It is read out of Security by who
	// opens it, and does not travel by itself.
	SealedAt time.Time
	// Security is the security header of a secured dialog: who has sealed the bodies, and for whom. Nil when the bodies are
	// in clear. At most [SecurityMax] bytes; whatever stands between the two databases passes it on as it is.
	Security []byte
}

// The bytes that sealing adds to a message: at most SecurityMax for the header of a run, of a fragment or of a result, and SealSize for
// each body.
const (
	SecurityMax = 512
	SealSize    = 16
)

// Probe is the knowledge that one side of a conversation has of it. The run that carries it has the lowest number that the sender still
// keeps as its FirstSequence.
type Probe struct {
	// Given is the next number that the sender will give; Expected the next one that it expects of the other side.
	Given, Expected int64
}

// Unsequenced is the number of an Error message that a broker made. It stands outside the order of its conversation.
const Unsequenced int64 = 1<<63 - 1

// Outcome is the receiving broker's decision about a run.
type Outcome string

// The outcomes.
const (
	// Accepted: every message numbered below Next is with the target, or was dropped for good. Also the answer to a duplicate.
	Accepted Outcome = "accepted"
	// Expected: the run does not follow what is there; the next number is Next. Nothing was taken.
	Expected Outcome = "expected"
	// Held: the target cannot take it now, for the reason in Description. Other conversations go on. With ErrorNumber 0 it is
	// just in use: send it again after some milliseconds. Otherwise the sending database puts the conversation aside for some seconds.
	Held Outcome = "held"
	// Refused: it never will be taken; the conversation is to end with ErrorNumber (spec 6.10).
	Refused Outcome = "refused"
	// Gone: the other side has forgotten the conversation.
	Gone Outcome = "gone"
	// Unroutable: nobody behind this address takes messages for the service or the instance, for the reason in Description.
	Unroutable Outcome = "unroutable"
	// Superseded: the speaker's epoch or term is over: another daemon, or another copy of the database, speaks for it now.
	Superseded Outcome = "superseded"
)

// Result answers a [Run], in the order of the runs of a batch.
type Result struct {
	Outcome Outcome
	// Next is the number of the next message that the receiver expects of this direction of the conversation.
	Next int64
	// ErrorNumber and Description explain a refusal; Description also the other outcomes but Accepted.
	ErrorNumber int32
	Description string
	// Broker and Epoch are those of the database that has answered; zero when none has.
	Broker pgdb.UUID
	Epoch  int64
	// Security proves to the sender of a secured run that the result comes from where the run was opened. Nil when the run was in
	// clear, or could not be opened. Passed on as it is.
	Security []byte
}

// Arrival is a batch of runs as a database takes it in.
type Arrival struct {
	Speaker Speaker
	Runs    []Run
	// Identities reports who has sent each run, as far as that was proven: "certificate:" and a fingerprint for the signer of a
	// secured dialog, "peer:" and a fingerprint for the broker at the other end of the link, "role:", [ServedDatabase].Keepers and a name
	// between databases of one server; "" for nobody. The database maps it to a role, whose grants decide.
	Identities []string
}

// Fragment is a part of a message that is too large for one piece.
type Fragment struct {
	Speaker        Speaker
	ConversationID pgdb.UUID
	FromInitiator  bool
	Sequence       int64
	// Offset and Size are counted in bytes of the body; Data is at most 1 MiB, and [SealSize] more when it is sealed.
	Offset, Size int64
	Data         []byte
	ToService    string
	ToBroker     pgdb.UUID
	// SealedAt is as in [Run].
	SealedAt time.Time
	// Security is that of the run to which the fragment belongs; nil when Data is in clear.
	Security []byte
	// Identity is as whom the sender was recognised, as in [Arrival.Identities]; it does not travel.
	Identity string
	// Owner is that of the [Run] that the fragment belongs to.
	Owner string
}

// Destination is an address to which a database has messages to transmit.
type Destination struct {
	ID int32
	// Address is tcp://host:port, with a second one behind a comma for a mirror; or broker:GUID for another database that the
	// same daemon serves.
	Address string
	// Due is how long to wait before the next attempt; zero when it may be tried now.
	Due time.Duration
	// Attempts is how many have failed one after the other.
	Attempts int32
	// HasProbes reports that conversations have to be compared with their far sides before they go on: see [Probe].
	HasProbes bool
}

// Acknowledgement is the answer to a run, for the database that has sent it.
type Acknowledgement struct {
	EndpointID    int64
	FirstSequence int64
	// IsAlone reports that nothing else of the conversation was under way while the run was. Only then may the answer
	// [Expected] show that the other side has lost messages; until then it may just be old.
	IsAlone bool
	// IsProbe reports that the run was one with a Probe.
	IsProbe bool
	Result  Result
}

// Unresolved is a conversation whose route says LOCAL, while its own database does not have the service: another database of the
// same daemon may.
type Unresolved struct {
	EndpointID     int64
	ConversationID pgdb.UUID
	ToService      string
	ToBroker       pgdb.UUID
}
