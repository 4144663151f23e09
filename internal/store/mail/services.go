package mail

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// ForServices are messages that were claimed for services and tables of the database.
type ForServices struct {
	Leases   []int64
	Messages []ForService
}

// ForService is one of them. Body is there, or has to be read with [ReadBody] from Content, of which BodyHolder is the holder; of a message
// that is gone meanwhile there is none of them.
type ForService struct {
	Item                int64
	Body                []byte
	Content, BodyHolder int64
}

// ClaimForServices claims messages, at most so many, for five seconds: until [DeliverToServices] begins, or [Renew] says so. db is no
// transaction.
func ClaimForServices(ctx context.Context, db pgdb.DB, messages int) (claimed ForServices, err error) {
	if err := db.QueryRow(ctx, "select parley_mail._p_claim_local($1::integer)", messages).Scan(&claimed.Leases); err != nil {
		return ForServices{}, pgdb.StatementError(err, "claim messages for services")
	}
	if len(claimed.Leases) == 0 {
		return ForServices{}, nil
	}
	rows, err := db.Query(ctx, `
		select item_id, body, coalesce(content_id, 0), coalesce(body_holder, 0) from parley_mail._p_local_bodies($1::bigint[])`, claimed.Leases)
	if err == nil {
		claimed.Messages, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m ForService, err error) {
			err = row.Scan(&m.Item, &m.Body, &m.Content, &m.BodyHolder)
			return m, err //nolint:wrapcheck // Wrapped below.
		})
	}
	if err != nil {
		ReleaseForServices(ctx, db, claimed.Leases)
		return ForServices{}, pgdb.StatementError(err, "read messages for services")
	}
	return claimed, nil
}

// DeliverToServices delivers some items of what was claimed, and returns how long ago each of those that it delivered had come. parsed is,
// of each item, what was read of its message, as JSON, or nil. It is one transaction; db is none.
func DeliverToServices(ctx context.Context, db pgdb.DB, leases, items []int64, parsed [][]byte) ([]time.Duration, error) {
	var seconds []float64
	err := db.QueryRow(ctx, "select parley_mail._p_deliver_local($1::bigint[], $2::bigint[], $3::bytea[])", leases, items, parsed).
		Scan(&seconds)
	if err != nil {
		return nil, pgdb.StatementError(err, "deliver to services")
	}
	ages := make([]time.Duration, len(seconds))
	for i, age := range seconds {
		ages[i] = time.Duration(age * float64(time.Second))
	}
	return ages, nil
}

// ReleaseForServices gives back what was claimed and not delivered: nobody died. What cannot be given back comes back when its lease is
// over.
func ReleaseForServices(ctx context.Context, db pgdb.DB, leases []int64) {
	_, _ = db.Exec(ctx, "select parley_mail._p_release_local($1::bigint[])", leases)
}
