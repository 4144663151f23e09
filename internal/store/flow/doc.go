// Package flow holds the statements of the integration engine: its definitions, what operators see of it and what they do.
package flow

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

func collect[T any](ctx context.Context, db pgdb.DB, what, statement string, arguments ...any) ([]T, error) {
	rows, err := db.Query(ctx, statement, arguments...)
	if err != nil {
		return nil, pgdb.StatementError(err, what)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	if err != nil {
		return nil, pgdb.StatementError(err, what)
	}
	return found, nil
}

func one[T any](ctx context.Context, db pgdb.DB, what, statement string, arguments ...any) (got T, err error) {
	if err := db.QueryRow(ctx, statement, arguments...).Scan(&got); err != nil {
		return got, pgdb.StatementError(err, what)
	}
	return got, nil
}
