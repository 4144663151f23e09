package parley

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// DB is what statements run on: a [pgx.Tx], a *pgx.Conn or a *pgxpool.Pool. Statements join the transaction of a Tx;
// on a connection or a pool each is a transaction of its own.
//
// Receive and GetConversationGroup lock the conversation group to the end of the transaction, and see only what was
// committed before they began when it is at READ COMMITTED, PostgreSQL's default, which is the level to use.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}
