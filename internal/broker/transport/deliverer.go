package transport

import (
	"context"
	"time"

	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// Passage reports what a batch or a fragment has come through.
type Passage struct {
	// Identity is the fingerprint of the broker at the other end of the link on which it came: the SHA-256 of its public key, in
	// the spelling of the link. "" between databases of one daemon, and on a link without TLS. The receiving side fills it in; it
	// does not travel.
	Identity string
	// Name is that in its certificate, when it was let in because a certificate authority vouches for that; like Identity it does not travel.
	Name string
	// HopsRemaining is how many more brokers may pass it on; at zero it can only be delivered.
	HopsRemaining int
	// TimeToLive is how long it may be with forwarders altogether, and TimeConsumed how long it has been with those before.
	TimeToLive, TimeConsumed time.Duration
}

// Limits of the passage of what leaves its own database.
const (
	OutsetHops       = 15
	OutsetTimeToLive = time.Minute
)

// Outset is the passage of what leaves its own database.
func Outset() Passage {
	return Passage{HopsRemaining: OutsetHops, TimeToLive: OutsetTimeToLive}
}

// Batch holds the runs that one broker transmits at once.
type Batch struct {
	Passage

	Speaker transportstore.Speaker
	Runs    []transportstore.Run
}

// Deliverer takes messages to a database: the database itself, a link to another server, or a forwarder. It is safe for concurrent use. The
// head of the package states its guarantees.
type Deliverer interface {
	// Deliver brings the runs of a batch to their database and returns one result a run. An error means that the outcome is
	// unknown: send the batch again later.
	Deliver(ctx context.Context, batch Batch) ([]transportstore.Result, error)
	// DeliverFragment brings a part of a large message to its database, which keeps it until the run for the message comes. Stored
	// is how many bytes of the body are there without a hole from the beginning, so the next fragment to send begins there; -1 when
	// the database refuses it, with the reason in its answer to the run. An error means the same as for Deliver.
	DeliverFragment(ctx context.Context, fragment transportstore.Fragment, passage Passage) (stored int64, err error)
}
