// Package trusted finds out whether the schemas of Parley that a database has are those that Parley made, before anything of them is
// read or called.
package trusted

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/sql"
)

// ErrNotInstalled means that the database has no schema parley.
var ErrNotInstalled = errors.New("schema parley is not installed: run parley install")

// ErrNotOwner means that what was asked for is for the owner of the schema and the members of that role.
var ErrNotOwner = errors.New("this is for the owner of schema parley")

// ErrUntrustedSchema means that the schema parley, or something in it, belongs to a role whose code must not run with the
// rights of this connection, or that it is not what Parley makes. Anybody with CREATE on the database can make a schema of that
// name; what its owner puts into it runs with the rights of whoever uses it, and SET ROLE takes nothing of them away.
var ErrUntrustedSchema = errors.New("schema parley is not to be trusted")

// schemaSQL is the check, as one statement that reads catalogs only and works under any search_path.
//
//go:embed schema.sql
var schemaSQL string

// SQL is the check of the schemas of all wings, before they are changed.
var SQL = sync.OnceValue(func() string {
	const declared = "v_schemas constant pg_catalog.text[] := "
	return strings.Replace(schemaSQL, declared+"'{}'", declared+sql.SchemaLiteral(), 1)
})

// Use is how a schema is about to be used.
type Use int

const (
	// ToChange: it may be missing, and must belong to the role that the connection acts as, or to one that may no less.
	ToChange Use = iota
	// ToUse: it has to be there. A login that has nothing of the database's owner takes it from whoever made it.
	ToUse
	// ToDescribe: as ToChange, for a caller that calls nothing of it and reads nothing but its version; it is there to find the objects of
	// others in it.
	ToDescribe
)

// Require refuses a schema parley that was planted, before anything of it is read or called.
func Require(ctx context.Context, db pgdb.DB, use Use) error {
	text := SQL()
	switch use {
	case ToChange:
	case ToUse:
		text = strings.NewReplacer(
			"v_must_exist constant boolean := false", "v_must_exist constant boolean := true",
			"v_changes_schema constant boolean := true", "v_changes_schema constant boolean := false",
		).Replace(text)
	case ToDescribe:
		text = strings.Replace(text, "v_checks_contents constant boolean := true", "v_checks_contents constant boolean := false", 1)
	}
	_, err := db.Exec(ctx, text, pgx.QueryExecModeExec)
	switch pgdb.SQLState(err) {
	case "3F000":
		return ErrNotInstalled
	case "42501", "42809", "42P06":
		return fmt.Errorf("%w: %w", ErrUntrustedSchema, err)
	}
	if err != nil {
		return fmt.Errorf("check whom schema parley belongs to: %w", err)
	}
	return nil
}

// RequireToRead is Require for who reads the row of the installation in the same transaction. The lock comes between two
// checks: what the second one has seen can then neither be dropped nor replaced before it is read. Locking a view or a table calls
// nothing, whoever made it.
func RequireToRead(ctx context.Context, tx pgx.Tx, use Use) error {
	if err := Require(ctx, tx, use); err != nil {
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
		if pgdb.SQLState(err) == "42501" {
			return fmt.Errorf("%w: connect as role %q or as a member of it; parley.databases shows the state of the broker to everybody",
				ErrNotOwner, owner)
		}
		return fmt.Errorf("keep the version of schema parley as it is: %w", err)
	}
	return Require(ctx, tx, use)
}
