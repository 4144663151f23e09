package parley

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/internal/trusted"
)

// The values of [Broker.State].
const (
	BrokerEnabled   = "ENABLED"
	BrokerDisabled  = "DISABLED"  // by DISABLE_BROKER: what is sent waits, and nothing is activated
	BrokerElsewhere = "ELSEWHERE" // the database was restored, copied or moved, and nobody has said yet which
)

// Why a program cannot work with a database.
var (
	// ErrNotInstalled means that the database has no schema parley.
	ErrNotInstalled = trusted.ErrNotInstalled

	// ErrUntrustedSchema means that the schema parley, or something in it, belongs to a role whose code must not run with the
	// rights of this connection, or that it is not what Parley makes. Anybody with CREATE on the database can make a schema of that
	// name; what its owner puts into it runs with the rights of whoever uses it, and SET ROLE takes nothing of them away.
	ErrUntrustedSchema = trusted.ErrUntrustedSchema

	// ErrUpgradeNeeded means that the schema in the database is older than this package.
	ErrUpgradeNeeded = errors.New("schema parley is older than this release: run parley upgrade")

	// ErrReleaseTooOld means that the schema in the database is newer than this package.
	ErrReleaseTooOld = errors.New("schema parley is newer than this release: use a newer release of Parley")

	// ErrBrokerElsewhere means that this is not the database in which its broker was enabled last. Until EnableBroker or
	// NewBroker reports whether the broker has moved or was copied, no program may do the work of its queues.
	ErrBrokerElsewhere = errors.New("the broker is not where it was enabled last")
)

// Broker describes the broker of a database to a program that attaches to it.
type Broker struct {
	ServiceBrokerGUID UUID   `json:"service_broker_guid"`
	State             string `json:"state"`  // ENABLED, DISABLED or ELSEWHERE
	Advice            string `json:"advice"` // what to do when it is not ENABLED
	SchemaVersion     int    `json:"schema_version"`
	Release           string `json:"release"` // that installed the schema
	Fingerprint       string `json:"-"`       // of the files that made the schema: see package schema
}

// Attach reports whether this package can work with the schema in a database, and what the state of its broker is.
// Programs that work for a broker for long call it first, and again after they have lost their connection. It finds out
// when a database is a copy, and then switches the broker off. Any role may call it.
//
// A state that is not ENABLED is no error: the caller decides what it may do.
//
// Errors: [ErrNotInstalled]; [ErrUntrustedSchema] when the schema belongs to a role that may less than the login;
// [ErrUpgradeNeeded] when the schema is older than this package; [ErrReleaseTooOld] when it is so much newer that it no longer
// serves programs of this version.
func Attach(ctx context.Context, db DB) (Broker, error) {
	return attach(ctx, db, SchemaVersion)
}

// attach is Attach of a program that knows a version of the schema.
func attach(ctx context.Context, db DB, known int) (Broker, error) {
	var b Broker
	var oldestClient int
	if err := trusted.Require(ctx, db, trusted.ToUse); err != nil {
		return b, fmt.Errorf("attach to the broker: %w", err)
	}
	err := db.QueryRow(ctx, `
		select a.service_broker_guid, a.broker_state, coalesce(a.advice, ''), a.schema_version, a.oldest_client_version, a.release,
			a.fingerprint
		from parley.attach_broker() as a`, pgx.QueryExecModeExec,
	).Scan(&b.ServiceBrokerGUID, &b.State, &b.Advice, &b.SchemaVersion, &oldestClient, &b.Release, &b.Fingerprint)
	switch pgdb.SQLState(err) {
	case "3F000": // no such schema
		err = ErrNotInstalled
	case "42883", "42703": // no such function, or no such column of it: the schema is of a time before it
		err = ErrUpgradeNeeded
	}
	switch {
	case err != nil:
		return Broker{}, fmt.Errorf("attach to the broker: %w", err)
	case b.SchemaVersion < known:
		return b, fmt.Errorf("attach to the broker: %w (version %d, needed %d)", ErrUpgradeNeeded, b.SchemaVersion, known)
	case oldestClient > known:
		return b, fmt.Errorf("attach to the broker: %w (version %d, made for programs that know version %d at least; this one knows %d)",
			ErrReleaseTooOld, b.SchemaVersion, oldestClient, known)
	}
	return b, nil
}
