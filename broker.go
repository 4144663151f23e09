package parley

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/pgdb"
)

// The values of [Broker.State].
const (
	BrokerEnabled   = "ENABLED"
	BrokerDisabled  = "DISABLED"  // by DISABLE_BROKER: what is sent waits, and nothing is activated
	BrokerElsewhere = "ELSEWHERE" // the database was restored, copied or moved, and nobody has said yet which
)

// ErrBrokerElsewhere means that this is not the database in which its broker was enabled last. Until EnableBroker or
// NewBroker reports whether the broker has moved or was copied, no program may do the work of its queues.
var ErrBrokerElsewhere = errors.New("the broker is not where it was enabled last")

// Broker is what a program learns of the broker of a database when it attaches to it.
type Broker struct {
	ServiceBrokerGUID UUID   `json:"service_broker_guid"`
	State             string `json:"state"`  // ENABLED, DISABLED or ELSEWHERE
	Advice            string `json:"advice"` // what to do when it is not ENABLED
	SchemaVersion     int    `json:"schema_version"`
	Release           string `json:"release"` // that installed the schema
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
	return currentDefinition().attach(ctx, db)
}

func (d definition) attach(ctx context.Context, db DB) (Broker, error) {
	var b Broker
	var oldestClient int
	if err := requireTrust(ctx, db, useTheSchema); err != nil {
		return b, fmt.Errorf("attach to the broker: %w", err)
	}
	err := db.QueryRow(ctx, `
		select a.service_broker_guid, a.broker_state, coalesce(a.advice, ''), a.schema_version, a.oldest_client_version, a.release
		from parley.attach_broker() as a`, pgx.QueryExecModeExec,
	).Scan(&b.ServiceBrokerGUID, &b.State, &b.Advice, &b.SchemaVersion, &oldestClient, &b.Release)
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pgErr.Code {
		case "3F000": // no such schema
			err = ErrNotInstalled
		case "42883": // no such function: the schema is of a time before it
			err = ErrUpgradeNeeded
		}
	}
	switch {
	case err != nil:
		return Broker{}, fmt.Errorf("attach to the broker: %w", err)
	case b.SchemaVersion < d.version:
		return b, fmt.Errorf("attach to the broker: %w (version %d, needed %d)", ErrUpgradeNeeded, b.SchemaVersion, d.version)
	case oldestClient > d.version:
		return b, fmt.Errorf("attach to the broker: %w (version %d, made for programs that know version %d at least; this one knows %d)",
			ErrReleaseTooOld, b.SchemaVersion, oldestClient, d.version)
	}
	return b, nil
}

// EnableBroker enables the broker of a database under the id it has, and delivers what has waited meanwhile.
//
// Errors: an [Error] with number 5061 when open transactions keep it from being switched, 9772 when the database is a
// copy whose original is on the same server, 15151 for others than administrators.
func EnableBroker(ctx context.Context, db DB) error {
	if _, err := db.Exec(ctx, "select parley.enable_broker()"); err != nil {
		return pgdb.StatementError(err, "enable the broker")
	}
	return nil
}

// DisableBroker stops delivery and activation. What is sent from now on waits in the transmission queue.
//
// Errors: an [Error] with number 5061 or 15151, as [EnableBroker].
func DisableBroker(ctx context.Context, db DB) error {
	if _, err := db.Exec(ctx, "select parley.disable_broker()"); err != nil {
		return pgdb.StatementError(err, "disable the broker")
	}
	return nil
}

// NewBroker gives the broker of a database a new id, enables it, and removes all conversations and messages without
// a message to the far sides: for a copy that is to live beside its original.
//
// Errors: an [Error] with number 5061 or 15151, as [EnableBroker], or 9775 when the database is read-only.
func NewBroker(ctx context.Context, db DB) (UUID, error) {
	var id UUID
	if err := db.QueryRow(ctx, "select parley.new_broker()").Scan(&id); err != nil {
		return UUID{}, pgdb.StatementError(err, "make a new broker")
	}
	return id, nil
}

// ErrorBrokerConversations enables the broker under the id it has and ends every conversation with an Error message,
// for a database that was brought back to an older moment. It returns how many sides of conversations got one.
//
// Errors: as [EnableBroker].
func ErrorBrokerConversations(ctx context.Context, db DB) (int, error) {
	var informed int
	if err := db.QueryRow(ctx, "select parley.error_broker_conversations()").Scan(&informed); err != nil {
		return 0, pgdb.StatementError(err, "end all conversations with an error")
	}
	return informed, nil
}
