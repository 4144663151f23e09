package transport

import (
	"context"

	"github.com/parley-broker/parley/internal/pgdb"
)

// ServedDatabase holds the facts that a daemon needs to bring messages to a database.
type ServedDatabase struct {
	// Broker is its service_broker_guid, Epoch as in [Speaker].
	Broker pgdb.UUID
	Epoch  int64
	// IsEnabled reports whether its broker takes part at all.
	IsEnabled bool
	// Server distinguishes the servers that a daemon is connected to: databases for which it is the same share their roles.
	Server string
	// Keepers are the oids of the database and of the role that owns its schema parley, with a blank between: who can say there who owns
	// what.
	Keepers string
}

// ReadServedDatabase reads which broker a database is, and on which server.
func ReadServedDatabase(ctx context.Context, db pgdb.DB) (d ServedDatabase, err error) {
	err = db.QueryRow(ctx, `
		select b.service_broker_guid, b.epoch, parley._p_broker_state() = 'ENABLED',
			pg_postmaster_start_time()::text || ' ' || coalesce(parley._p_system_identifier()::text, current_setting('data_directory', true), ''),
			(select oid::text from pg_catalog.pg_database where datname = current_database()) || ' '
				|| (select nspowner::text from pg_catalog.pg_namespace where nspname = 'parley')
		from parley._p_broker as b`).Scan(&d.Broker, &d.Epoch, &d.IsEnabled, &d.Server, &d.Keepers)
	if err != nil {
		return ServedDatabase{}, pgdb.StatementError(err, "read which broker this is")
	}
	return d, nil
}

// HasService reports whether a database has a service that others may send to.
func HasService(ctx context.Context, db pgdb.DB, name string) (has bool, err error) {
	err = db.QueryRow(ctx, "select exists (select from parley._p_service as s where s.name = $1::text)", name).Scan(&has)
	if err != nil {
		return false, pgdb.StatementError(err, "find a service")
	}
	return has, nil
}
