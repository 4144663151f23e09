package pgdb

import (
	"context"
	"time"
)

// LimitStatements has the server end each statement that follows in the transaction of db after a time.
func LimitStatements(ctx context.Context, db DB, most time.Duration) error {
	_, err := db.Exec(ctx, "select pg_catalog.set_config('statement_timeout', $1::integer::text, true)", Milliseconds(most))
	if err != nil {
		return StatementError(err, "limit the time of statements")
	}
	return nil
}
