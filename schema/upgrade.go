package schema

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/trusted"
)

// Upgrade brings the schema to this package's version, in one transaction: it runs the migrations between the two
// versions, then re-creates functions, views, triggers, comments and grants. Conversations and waiting messages stay.
// It does nothing when the schema has this version already, and may be called from many connections at once.
//
// Senders and receivers may go on while it runs; those that need a table which a migration changes wait for it.
//
// Errors: [parley.ErrNotInstalled], [parley.ErrReleaseTooOld], [ErrOtherBuild], [ErrForeign], [parley.ErrUntrustedSchema].
func Upgrade(ctx context.Context, conn *pgx.Conn) error {
	return currentDefinition().upgrade(ctx, conn, false)
}

// Repair does what [Upgrade] does, and re-creates functions, views, triggers, comments and grants even when the schema
// has this package's version already. It undoes changes to them that [Verify] found, but drops nothing.
func Repair(ctx context.Context, conn *pgx.Conn) error {
	return currentDefinition().upgrade(ctx, conn, true)
}

func (d definition) upgrade(ctx context.Context, conn *pgx.Conn, always bool) error {
	err := changeSchema(ctx, conn, func(tx pgx.Tx) error {
		installed, err := readInstallation(ctx, tx, trusted.ToChange)
		if err != nil {
			return err
		}
		if installed.version > d.version {
			return installed.compare(d)
		}
		if installed.version == d.version {
			if err := installed.compare(d); err != nil || !always {
				return err
			}
		}
		if err := installed.actAsOwner(ctx, tx); err != nil {
			return err
		}
		return d.applyOver(ctx, tx, installed.version)
	})
	if err != nil {
		return fmt.Errorf("upgrade: %w", err)
	}
	return nil
}

// applyOver turns an installed version into this one.
func (d definition) applyOver(ctx context.Context, tx pgx.Tx, version int) error {
	migrations, err := d.migrationsFrom(version)
	if err != nil {
		return err
	}
	replaceable, err := d.replaceable()
	if err != nil {
		return err
	}
	for _, file := range slices.Concat(migrations, replaceable, []sqlFile{d.versionUpdate()}) {
		if err := runSQL(ctx, tx, file); err != nil {
			return err
		}
	}
	return nil
}

func (d definition) versionUpdate() sqlFile {
	return sqlFile{name: "version", text: fmt.Sprintf(
		"update parley._p_installation set schema_version = %d, release = '%s', oldest_client_version = %d, "+
			"fingerprint = '%s', upgraded_at = now();\n",
		d.version, d.release, d.oldestClient, d.fingerprint())}
}
