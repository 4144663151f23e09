// Package pgdb holds what every statement on the schema parley needs, whether the public package makes it or the daemon: what it runs on,
// UUIDs as parameters and results, errors that the broker raises, and arguments in the broker's units.
package pgdb

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// DB runs statements: a [pgx.Tx], a *pgx.Conn or a *pgxpool.Pool. Statements join the transaction of a Tx; on a connection or a pool each
// is a transaction of its own.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}
