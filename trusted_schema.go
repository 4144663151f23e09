package parley

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/sql"
)

// ErrUntrustedSchema means that the schema parley, or something in it, belongs to a role whose code must not run with the
// rights of this connection, or that it is not what Parley makes. Anybody with CREATE on the database can make a schema of that
// name; what its owner puts into it runs with the rights of whoever uses it, and SET ROLE takes nothing of them away.
var ErrUntrustedSchema = errors.New("schema parley is not to be trusted")

// trustedSchemaSQL is the check, as one statement that reads catalogs only and works under any search_path.
//
//go:embed trusted_schema.sql
var trustedSchemaSQL string

// requireTrustSQL is the check of the schemas of all wings.
var requireTrustSQL = sync.OnceValue(func() string {
	const declared = "v_schemas constant pg_catalog.text[] := "
	return strings.Replace(trustedSchemaSQL, declared+"'{}'", declared+sql.SchemaLiteral(), 1)
})

// How a schema is about to be used.
type schemaUse int

const (
	// changeTheSchema: it may be missing, and must belong to the role that the connection acts as, or to one that may no less.
	changeTheSchema schemaUse = iota
	// useTheSchema: it has to be there. A login that has nothing of the database's owner takes it from whoever made it.
	useTheSchema
	// describeTheSchema: as changeTheSchema, for who calls nothing of it and reads nothing but its version; to find what others put
	// into it is what he is there for.
	describeTheSchema
)

// requireTrust refuses a schema parley that was planted, before anything of it is read or called.
func requireTrust(ctx context.Context, db DB, use schemaUse) error {
	text := requireTrustSQL()
	switch use {
	case changeTheSchema:
	case useTheSchema:
		text = strings.NewReplacer(
			"v_must_exist constant boolean := false", "v_must_exist constant boolean := true",
			"v_changes_schema constant boolean := true", "v_changes_schema constant boolean := false",
		).Replace(text)
	case describeTheSchema:
		text = strings.Replace(text, "v_checks_contents constant boolean := true", "v_checks_contents constant boolean := false", 1)
	}
	_, err := db.Exec(ctx, text, pgx.QueryExecModeExec)
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch refused.Code {
		case "3F000":
			return ErrNotInstalled
		case "42501", "42809", "42P06":
			return fmt.Errorf("%w: %w", ErrUntrustedSchema, err)
		}
	}
	if err != nil {
		return fmt.Errorf("check whom schema parley belongs to: %w", err)
	}
	return nil
}

// requireTrustToRead is requireTrust for who reads the row of the installation in the same transaction. The lock comes between two
// checks: what the second one has seen can then neither be dropped nor replaced before it is read. Locking a view or a table calls
// nothing, whoever made it.
func requireTrustToRead(ctx context.Context, tx pgx.Tx, use schemaUse) error {
	if err := requireTrust(ctx, tx, use); err != nil {
		return err
	}
	var exists bool
	var owner string
	err := tx.QueryRow(ctx, `
		select pg_catalog.to_regclass('parley._p_installation') is not null,
			coalesce((
				select pg_catalog.pg_get_userbyid(n.nspowner)::pg_catalog.text
				from pg_catalog.pg_namespace as n
				where n.nspname operator(pg_catalog.=) 'parley'
			), '')`, pgx.QueryExecModeExec).Scan(&exists, &owner)
	if err != nil {
		return fmt.Errorf("find schema parley: %w", err)
	}
	if !exists {
		return nil
	}
	if _, err := tx.Exec(ctx, "lock table parley._p_installation in access share mode", pgx.QueryExecModeExec); err != nil {
		if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == insufficientPrivilege {
			return fmt.Errorf("%w: connect as role %q or as a member of it; parley.databases shows the state of the broker to everybody",
				ErrNotOwner, owner)
		}
		return fmt.Errorf("keep the version of schema parley as it is: %w", err)
	}
	return requireTrust(ctx, tx, use)
}
