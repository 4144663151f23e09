package schema

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/trusted"
)

// Install creates the schema parley in the connection's database, in one transaction. It does nothing when the schema
// is there already in this package's version, and may be called from many connections at once.
//
// The role needs the CREATE privilege on the database, nothing more; it becomes the owner of the schema.
//
// Errors: [parley.ErrUpgradeNeeded] and [parley.ErrReleaseTooOld] when another version is installed, [ErrOtherBuild], [ErrForeign],
// [parley.ErrUntrustedSchema].
func Install(ctx context.Context, conn *pgx.Conn) error {
	return currentDefinition().install(ctx, conn)
}

func (d definition) install(ctx context.Context, conn *pgx.Conn) error {
	err := changeSchema(ctx, conn, func(tx pgx.Tx) error {
		installed, err := readInstallation(ctx, tx, trusted.ToChange)
		if errors.Is(err, parley.ErrNotInstalled) {
			return d.create(ctx, tx)
		}
		if err != nil {
			return err
		}
		return installed.compare(d)
	})
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	return nil
}

// create builds the whole schema inside a transaction.
func (d definition) create(ctx context.Context, tx pgx.Tx) error {
	if err := requireCreate(ctx, tx); err != nil {
		return err
	}
	for _, file := range slices.Concat(d.files, []sqlFile{d.versionRow()}) {
		if err := runSQL(ctx, tx, file); err != nil {
			return err
		}
	}
	return nil
}

// requireCreate refuses a role that may not create schemas, and says how it comes to that right.
func requireCreate(ctx context.Context, tx pgx.Tx) error {
	var may bool
	var role, grant string
	err := tx.QueryRow(ctx, `
		select has_database_privilege(current_database(), 'CREATE'), current_user::text,
			format('grant create on database %I to %I', current_database(), current_user)`, pgx.QueryExecModeExec).Scan(&may, &role, &grant)
	if err != nil {
		return fmt.Errorf("ask for the right to create schemas: %w", err)
	}
	if !may {
		return fmt.Errorf("%w: as the owner of the database let role %q: %s", ErrMayNotCreate, role, grant)
	}
	return nil
}

// versionRow is the statement by which later releases know what they find.
func (d definition) versionRow() sqlFile {
	return sqlFile{name: "version", text: fmt.Sprintf(
		"insert into parley._p_installation (schema_version, release, oldest_client_version, fingerprint) values (%d, '%s', %d, '%s');\n",
		d.version, d.release, d.oldestClient, d.fingerprint())}
}
