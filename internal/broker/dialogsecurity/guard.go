package dialogsecurity

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// Beginner is a database in which statements and transactions can be run: a *pgxpool.Pool or a *pgx.Conn.
type Beginner interface {
	parley.DB
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Guard stands between a database and the network. Messages between databases of one daemon do not pass it (spec 7.3: inside the
// server nothing is encrypted). It is safe for concurrent use, and changes nothing that it is given.
type Guard interface {
	// Seal prepares runs to leave the server: those of secured dialogs are sealed, others come back as they are. A run that must not leave
	// now is in held, not in sealed, with an outcome and a status text for AcknowledgeRuns. Call it again for a run that is sent again:
	// each sealing is good for one batch and its answer.
	Seal(
		ctx context.Context, db parley.DB, speaker transportstore.Speaker, runs []transportstore.Run,
	) (sealed []transportstore.Run, held []Held, err error)
	// SealFragment seals a part of the large message that a run stands for; the run is as Seal returned it.
	SealFragment(run transportstore.Run, fragment transportstore.Fragment) (transportstore.Fragment, error)
	// Verify checks the results for runs that Seal returned. A result that does not come from where the run was opened is replaced
	// by one that acknowledges nothing, and counted as forged.
	Verify(
		speaker transportstore.Speaker, runs []transportstore.Run, results []transportstore.Result,
	) (verified []transportstore.Result, forged int)

	// Accept opens what arrived and gives it to the database (transportstore.AcceptArrival). Identities has the sender of each run, as far as
	// the link knows; the signer of a dialog with full security takes its place. A run that cannot be opened is not given to the
	// database, and its result acknowledges nothing.
	Accept(ctx context.Context, db Beginner, arrival transportstore.Arrival) ([]transportstore.Result, error)
	// AcceptFragment opens a fragment and gives it to the database (transportstore.AcceptFragment).
	AcceptFragment(ctx context.Context, db Beginner, fragment transportstore.Fragment) (stored int64, err error)

	// Counts returns what the guard has done so far.
	Counts() Counts
}

// Held is a run that must not leave the server now.
type Held struct {
	EndpointID    int64
	FirstSequence int64
	Result        transportstore.Result
}
