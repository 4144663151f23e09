package schema

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/trusted"
	"github.com/parley-broker/parley/sql"
)

// Difference is one way in which the installed schema is not what this package installs.
type Difference struct {
	// Kind is the kind of object: table, column, constraint, index, view, sequence, function, type, schema and so on.
	Kind string `json:"kind"`
	// Object is its qualified name, with the argument types of a function.
	Object string `json:"object"`
	// Problem is "missing", "unexpected" or "different".
	Problem string `json:"problem"`
	// Property reports what is different: source, type, default, grants, comment and so on.
	Property string `json:"property,omitempty"`
	// Installed is the value in the database, Defined the one it should have; either is empty where there is none.
	Installed string `json:"installed,omitempty"`
	Defined   string `json:"defined,omitempty"`
}

// The values of [Difference.Problem].
const (
	Missing    = "missing"
	Unexpected = "unexpected"
	Different  = "different"
)

func (d Difference) String() string {
	if d.Problem == Different {
		return fmt.Sprintf("%s %s: %s is different", d.Kind, d.Object, d.Property)
	}
	return fmt.Sprintf("%s %s is %s", d.Kind, d.Object, d.Problem)
}

// Verify compares every object of the installed schema with its definition in this package. No differences means that
// the broker in the database is the one that was released.
//
// It asks the server itself: inside a transaction that is rolled back it renames the schema,
// installs a fresh one, and compares what the catalogs say of both. Senders and receivers notice nothing. The role must
// be the owner of the schema, or a member of it, and needs the CREATE privilege on the database.
//
// The sequences and views that belong to users' queues are not compared, nor are rows.
//
// Errors: [parley.ErrNotInstalled], [parley.ErrUpgradeNeeded], [parley.ErrReleaseTooOld], [ErrOtherBuild], [ErrForeign],
// [parley.ErrUntrustedSchema].
func Verify(ctx context.Context, conn *pgx.Conn) ([]Difference, error) {
	return currentDefinition().verify(ctx, conn)
}

// errUndo makes the transaction of a verification roll back.
var errUndo = errors.New("roll back")

func (d definition) verify(ctx context.Context, conn *pgx.Conn) ([]Difference, error) {
	var differences []Difference
	err := changeSchema(ctx, conn, func(tx pgx.Tx) error {
		found, err := readInstallation(ctx, tx, trusted.ToDescribe)
		if err != nil {
			return err
		}
		if err := found.compare(d); err != nil {
			return err
		}
		if err := found.actAsOwner(ctx, tx); err != nil {
			return err
		}
		installed, err := describe(ctx, tx)
		if err != nil {
			return err
		}
		if err := runSQL(ctx, tx, sqlFile{name: "rename schemas", text: renameSchemas()}); err != nil {
			return err
		}
		if err := d.create(ctx, tx); err != nil {
			return err
		}
		defined, err := describe(ctx, tx)
		if err != nil {
			return err
		}
		differences = differencesBetween(installed, defined)
		return errUndo
	})
	if !errors.Is(err, errUndo) {
		return nil, fmt.Errorf("verify: %w", err)
	}
	return differences, nil
}

// renameSchemas leaves room for a fresh schema. Renaming a schema locks none of its tables.
func renameSchemas() string {
	return fmt.Sprintf(`do $$
declare
  v_name name;
begin
  for v_name in select n.nspname from pg_namespace as n where n.nspname = any (%s::text[]) loop
    execute format('alter schema %%I rename to %%I', v_name, '_renamed_' || v_name);
  end loop;
end
$$;`, sql.SchemaLiteral())
}

// property is one line of a description.
type property struct {
	kind, object, name, value string
}

//go:embed describe.sql
var describeSQL string

// describe lists the properties of every object in the schema, in the order of kind, object and name.
func describe(ctx context.Context, tx pgx.Tx) ([]property, error) {
	rows, err := tx.Query(ctx, describeSQL, pgx.QueryExecModeExec, sql.Schemas(), sql.UserSchemas())
	if err != nil {
		return nil, fmt.Errorf("describe schema parley: %w", err)
	}
	properties, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (property, error) {
		var p property
		err := row.Scan(&p.kind, &p.object, &p.name, &p.value)
		return p, err
	})
	if err != nil {
		return nil, fmt.Errorf("describe schema parley: %w", err)
	}
	return properties, nil
}
