package mail

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// The statements of this package are called in one way. A call names the arguments of its function. A column has the name of the field that
// takes it (message_id is MessageID), or the name in its tag. SQL makes nothing of null where the field is no pointer. A text says in an
// error what was tried.

// run runs a statement for its effect.
func run(ctx context.Context, db pgdb.DB, what, statement string, arguments ...any) error {
	if _, err := db.Exec(ctx, statement, arguments...); err != nil {
		return pgdb.StatementError(err, what)
	}
	return nil
}

// value gives the only column of the only row.
func value[T any](ctx context.Context, db pgdb.DB, what, statement string, arguments ...any) (T, error) {
	return one(ctx, db, what, pgx.RowTo[T], statement, arguments)
}

// row gives the only row.
func row[T any](ctx context.Context, db pgdb.DB, what, statement string, arguments ...any) (T, error) {
	return one(ctx, db, what, pgx.RowToStructByName[T], statement, arguments)
}

// values gives the only column of all rows.
func values[T any](ctx context.Context, db pgdb.DB, what, statement string, arguments ...any) ([]T, error) {
	return all(ctx, db, what, pgx.RowTo[T], statement, arguments)
}

// rows gives all rows.
func rows[T any](ctx context.Context, db pgdb.DB, what, statement string, arguments ...any) ([]T, error) {
	return all(ctx, db, what, pgx.RowToStructByName[T], statement, arguments)
}

// each gives rows to a function as they come; its error ends that.
func each[T any](ctx context.Context, db pgdb.DB, what string, do func(T) error, statement string, arguments ...any) error {
	found, err := db.Query(ctx, statement, arguments...)
	if err != nil {
		return pgdb.StatementError(err, what)
	}
	defer found.Close()
	for found.Next() {
		read, err := pgx.RowToStructByName[T](found)
		if err != nil {
			return pgdb.StatementError(err, what)
		}
		if err := do(read); err != nil {
			return err
		}
	}
	if err := found.Err(); err != nil {
		return pgdb.StatementError(err, what)
	}
	return nil
}

func one[T any](ctx context.Context, db pgdb.DB, what string, read pgx.RowToFunc[T], statement string, arguments []any) (T, error) {
	found, err := db.Query(ctx, statement, arguments...)
	if err == nil {
		var only T
		if only, err = pgx.CollectExactlyOneRow(found, read); err == nil {
			return only, nil
		}
	}
	var none T
	return none, pgdb.StatementError(err, what)
}

func all[T any](ctx context.Context, db pgdb.DB, what string, read pgx.RowToFunc[T], statement string, arguments []any) ([]T, error) {
	found, err := db.Query(ctx, statement, arguments...)
	if err == nil {
		var list []T
		if list, err = pgx.CollectRows(found, read); err == nil {
			return list, nil
		}
	}
	return nil, pgdb.StatementError(err, what)
}

// document is an argument of the type jsonb.
type document struct{ of any }

// Value writes it.
func (d document) Value() (driver.Value, error) {
	written, err := json.Marshal(d.of)
	if err != nil {
		return nil, fmt.Errorf("write a document: %w", err)
	}
	return string(written), nil
}
