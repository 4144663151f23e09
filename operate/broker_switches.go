package operate

import (
	"context"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// EnableBroker enables the broker of a database under the id it has, and delivers what has waited meanwhile.
//
// Errors: a [parley.Error] with number 5061 when open transactions keep it from being switched, 9772 when the database is a
// copy whose original is on the same server, 15151 for others than administrators.
func EnableBroker(ctx context.Context, db parley.DB) error {
	if _, err := db.Exec(ctx, "select parley.enable_broker()"); err != nil {
		return pgdb.StatementError(err, "enable the broker")
	}
	return nil
}

// DisableBroker stops delivery and activation. Messages that are sent from now on wait in the transmission queue.
//
// Errors: a [parley.Error] with number 5061 or 15151, as [EnableBroker].
func DisableBroker(ctx context.Context, db parley.DB) error {
	if _, err := db.Exec(ctx, "select parley.disable_broker()"); err != nil {
		return pgdb.StatementError(err, "disable the broker")
	}
	return nil
}

// NewBroker gives the broker of a database a new id, enables it, and removes all conversations and messages without
// a message to the far sides: for a copy that is to live beside its original.
//
// Errors: a [parley.Error] with number 5061 or 15151, as [EnableBroker], or 9775 when the database is read-only.
func NewBroker(ctx context.Context, db parley.DB) (parley.UUID, error) {
	var id parley.UUID
	if err := db.QueryRow(ctx, "select parley.new_broker()").Scan(&id); err != nil {
		return parley.UUID{}, pgdb.StatementError(err, "make a new broker")
	}
	return id, nil
}

// ErrorBrokerConversations enables the broker under the id it has and ends every conversation with an Error message,
// for a database that was brought back to an older moment. It returns how many sides of conversations got one.
//
// Errors: as [EnableBroker].
func ErrorBrokerConversations(ctx context.Context, db parley.DB) (int, error) {
	var informed int
	if err := db.QueryRow(ctx, "select parley.error_broker_conversations()").Scan(&informed); err != nil {
		return 0, pgdb.StatementError(err, "end all conversations with an error")
	}
	return informed, nil
}
