package activation

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// SendDue sends what was sent for later and is due, up to a number of messages, and returns how many. The server ends it after a time:
// validation functions, which anybody may have made, may last.
func SendDue(ctx context.Context, db Beginner, term int64, top int, most time.Duration) (sent int, err error) {
	err = bounded(ctx, db, most, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "select parley._p_send_due_now(term => $1::bigint, top => $2::integer)", term, top).Scan(&sent)
	})
	if err != nil {
		return 0, pgdb.StatementError(err, "send what is due")
	}
	return sent, nil
}

// DueSenders gives the endpoints of which something is due, none when the term is over.
func DueSenders(ctx context.Context, db pgdb.DB, term int64, top int) ([]int64, error) {
	rows, err := db.Query(ctx, "select parley._p_due_senders(term => $1::bigint, top => $2::integer)", term, top)
	if err != nil {
		return nil, pgdb.StatementError(err, "find what is due")
	}
	senders, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, pgdb.StatementError(err, "find what is due")
	}
	return senders, nil
}

// SendDueOf is [SendDue] of one endpoint.
func SendDueOf(ctx context.Context, db Beginner, endpoint int64, top int, most time.Duration) error {
	err := bounded(ctx, db, most, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			select parley._p_send_due_of(endpoint_id => $1::bigint, due_before => pg_catalog.clock_timestamp(), top => $2::integer)`,
			endpoint, top)
		return err
	})
	if err != nil {
		return pgdb.StatementError(err, fmt.Sprintf("send what is due of endpoint %d", endpoint))
	}
	return nil
}

// PutOffSends has what is due of an endpoint tried again after a time.
func PutOffSends(ctx context.Context, db pgdb.DB, endpoint int64, delay time.Duration) error {
	_, err := db.Exec(ctx, `
		select parley._p_put_off_sends(
			endpoint_id => $1::bigint, due_before => pg_catalog.clock_timestamp(), delay => pg_catalog.make_interval(secs => $2::float8)
		)`, endpoint, delay.Seconds())
	if err != nil {
		return pgdb.StatementError(err, fmt.Sprintf("put off what is due of endpoint %d", endpoint))
	}
	return nil
}

// A Beginner begins transactions, as a pool does.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// bounded runs statements in a transaction, each of which the server ends after a time.
func bounded(ctx context.Context, db Beginner, most time.Duration, do func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := pgdb.LimitStatements(ctx, tx, most); err != nil {
			return err
		}
		return do(tx)
	})
}
