package schema

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/trusted"
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

	// Conversations is how many sides of conversations there are that are not closed. Up to 100,000 are counted; what is more is
	// estimated, if PostgreSQL's statistics have more.
	Conversations            int64 `json:"conversations"`
	ConversationsAreEstimate bool  `json:"conversations_are_estimated"`
	// ClosedConversations is how many sides are closed and remembered for a while, counted likewise.
	ClosedConversations            int64 `json:"closed_conversations"`
	ClosedConversationsAreEstimate bool  `json:"closed_conversations_are_estimated"`
}

// countedMax is how many conversations are counted one by one.
const countedMax = 100_000

// UpgradeNeeded reports whether the schema is older than this package.
func (s Status) UpgradeNeeded() bool { return s.Installed && s.SchemaVersion < s.CurrentSchemaVersion }

// ReadStatus reads what is installed. A database without the schema is no error.
//
// Errors: [ErrForeign], [parley.ErrUntrustedSchema].
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
		found, err := readInstallation(ctx, tx, trusted.ToChange)
		if errors.Is(err, parley.ErrNotInstalled) {
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

// count reads the small catalogs of the broker, and counts conversations as far as that is quick.
func (s *Status) count(ctx context.Context, tx pgx.Tx) error {
	var estimate, closedEstimate int64
	err := tx.QueryRow(ctx, `
		select
			(select count(*) from parley._p_message_type where message_type_id >= 65536),
			(select count(*) from parley._p_contract where service_contract_id >= 65536),
			(select count(*) from parley._p_queue where queue_id >= 65536),
			(select count(*) from parley._p_service where service_id >= 65536),
			(select count(*) from (select from parley._p_endpoint limit $1::bigint + 1) as e),
			(select c.reltuples::bigint from pg_class as c where c.oid = 'parley._p_endpoint'::regclass),
			(select count(*) from (select from parley._p_tombstone limit $1::bigint + 1) as t),
			(select c.reltuples::bigint from pg_class as c where c.oid = 'parley._p_tombstone'::regclass)`,
		pgx.QueryExecModeExec, countedMax).
		Scan(&s.MessageTypes, &s.Contracts, &s.Queues, &s.Services, &s.Conversations, &estimate, &s.ClosedConversations, &closedEstimate)
	if err != nil {
		return fmt.Errorf("count the broker's objects: %w", err)
	}
	if s.Conversations > countedMax {
		s.Conversations, s.ConversationsAreEstimate = max(s.Conversations, estimate), true
	}
	if s.ClosedConversations > countedMax {
		s.ClosedConversations, s.ClosedConversationsAreEstimate = max(s.ClosedConversations, closedEstimate), true
	}
	return nil
}
