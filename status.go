package parley

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Status reports what is installed in a database, and what this package would install.
type Status struct {
	Installed            bool       `json:"installed"`
	SchemaVersion        int        `json:"schema_version,omitempty"` // installed, 0 when nothing is
	Release              string     `json:"release,omitempty"`        // that installed it
	Owner                string     `json:"owner,omitempty"`          // role that owns the schema
	InstalledAt          *time.Time `json:"installed_at,omitempty"`
	UpgradedAt           *time.Time `json:"upgraded_at,omitempty"` // nil before the first upgrade
	CurrentSchemaVersion int        `json:"current_schema_version"`
	CurrentRelease       string     `json:"current_release"`

	// Objects that users created, by kind; what the broker brings with it is not counted.
	MessageTypes int `json:"message_types"`
	Contracts    int `json:"contracts"`
	Queues       int `json:"queues"`
	Services     int `json:"services"`

	// Conversations is how many conversation endpoints there are, as PostgreSQL's statistics estimate it.
	Conversations int64 `json:"conversations"`
}

// UpgradeNeeded reports whether the schema is older than this package.
func (s Status) UpgradeNeeded() bool { return s.Installed && s.SchemaVersion < s.CurrentSchemaVersion }

// ReadStatus reads what is installed. A database without the schema is no error.
//
// Errors: [ErrForeignSchema], [ErrUntrustedSchema].
func ReadStatus(ctx context.Context, conn *pgx.Conn) (Status, error) {
	status, err := currentDefinition().status(ctx, conn)
	if err != nil {
		return Status{}, fmt.Errorf("status: %w", err)
	}
	return status, nil
}

func (d definition) status(ctx context.Context, conn *pgx.Conn) (Status, error) {
	status := Status{CurrentSchemaVersion: d.version, CurrentRelease: d.release}
	// READ COMMITTED, so that the catalogs are checked as they are now, not as an older snapshot has them.
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error {
		found, err := readInstallation(ctx, tx, changeTheSchema)
		if errors.Is(err, ErrNotInstalled) {
			return nil
		}
		if err != nil {
			return err
		}
		status.Installed, status.SchemaVersion, status.Release = true, found.version, found.release
		status.Owner, status.InstalledAt, status.UpgradedAt = found.owner, &found.installedAt, found.upgradedAt
		return status.count(ctx, tx)
	})
	return status, err
}

// count reads the small catalogs of the broker; counting conversations exactly would read them all.
func (s *Status) count(ctx context.Context, tx pgx.Tx) error {
	err := tx.QueryRow(ctx, `
		select
			(select count(*) from parley._p_message_type where message_type_id >= 65536),
			(select count(*) from parley._p_contract where service_contract_id >= 65536),
			(select count(*) from parley._p_queue where queue_id >= 65536),
			(select count(*) from parley._p_service where service_id >= 65536),
			(
				select greatest(c.reltuples, 0)::bigint
				from pg_class as c
				where c.oid = 'parley._p_endpoint'::regclass
			)`, pgx.QueryExecModeExec).
		Scan(&s.MessageTypes, &s.Contracts, &s.Queues, &s.Services, &s.Conversations)
	if err != nil {
		return fmt.Errorf("count the broker's objects: %w", err)
	}
	return nil
}
