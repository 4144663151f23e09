// Package retry asks retry policies of the store when to try again.
package retry

import (
	"context"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Next returns when to try again what came at a time and has failed so many times, from 1 on; false when its time is over. A
// zero since never expires.
func Next(ctx context.Context, db pgdb.DB, policy string, attempts int, since time.Time) (next time.Time, isInTime bool, err error) {
	var came, at *time.Time
	if !since.IsZero() {
		came = &since
	}
	err = db.QueryRow(ctx, "select parley_store.next_attempt($1::text, $2::integer, $3::timestamptz)", policy, attempts, came).Scan(&at)
	if err != nil {
		return time.Time{}, false, pgdb.StatementError(err, "ask retry policy "+policy)
	}
	if at == nil {
		return time.Time{}, false, nil
	}
	return *at, true, nil
}
