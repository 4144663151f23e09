package mail

import (
	"context"
	"strconv"
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
	Item       int64 `db:"item_id"`
	Body       []byte
	Content    int64 `db:"content_id"`
	BodyHolder int64
}

// ClaimForServices claims messages, at most so many, for five seconds: until [DeliverToServices] begins, or [Renew] says so. db is no
// transaction.
func ClaimForServices(ctx context.Context, db pgdb.DB, messages int) (claimed ForServices, err error) {
	claimed.Leases, err = value[[]int64](ctx, db, "claim messages for services", `
		select parley_mail._p_claim_local(messages => $1::integer)`, messages)
	if err != nil || len(claimed.Leases) == 0 {
		return ForServices{}, err
	}
	claimed.Messages, err = rows[ForService](ctx, db, "read messages for services", `
		select item_id, body, coalesce(content_id, 0) as content_id, coalesce(body_holder, 0) as body_holder
		from parley_mail._p_local_bodies(leases => $1::bigint[])`, claimed.Leases)
	if err != nil {
		ReleaseForServices(ctx, db, claimed.Leases)
		return ForServices{}, err
	}
	return claimed, nil
}

// Delivery is the result of a transaction that delivers to services.
type Delivery struct {
	// Ages is how long ago each of those that it delivered had come.
	Ages []time.Duration
	// HasMore is whether it left some, so that it became not too long.
	HasMore bool
}

// Batcher sends statements together.
type Batcher interface {
	SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults
}

// DeliverToServices delivers some items of what was claimed. parsed is, of each item, what was read of its message, as JSON, or nil. It is
// one transaction, of which the database allows no more than limit; db is none.
func DeliverToServices(
	ctx context.Context, db Batcher, leases, items []int64, parsed [][]byte, limit time.Duration,
) (d Delivery, err error) {
	var seconds []float64
	var batch pgx.Batch
	batch.Queue("select set_config('statement_timeout', $1::text, true)", strconv.FormatInt(limit.Milliseconds(), 10))
	batch.Queue(`
		select ages, has_more from parley_mail._p_deliver_local(
			leases => $1::bigint[], items => $2::bigint[], parsed => $3::bytea[]
		)`, leases, items, parsed).
		QueryRow(func(row pgx.Row) error { return row.Scan(&seconds, &d.HasMore) })
	if err := db.SendBatch(ctx, &batch).Close(); err != nil {
		return Delivery{}, pgdb.StatementError(err, "deliver to services")
	}
	d.Ages = make([]time.Duration, len(seconds))
	for i, age := range seconds {
		d.Ages[i] = time.Duration(age * float64(time.Second))
	}
	return d, nil
}

// DeferForService has an item tried again whose delivery failed with an SQLSTATE where it was alone.
func DeferForService(ctx context.Context, db pgdb.DB, leases []int64, item int64, state, reason string) error {
	return run(ctx, db, "have a message for a service tried again", `
		select parley_mail._p_defer_local(
			leases => $1::bigint[], item => $2::bigint, state => $3::text, reason => $4::text
		)`, leases, item, state, reason)
}

// ReleaseForServices gives back what was claimed and not delivered: nobody died. Items that cannot be given back come back when their lease
// is over.
func ReleaseForServices(ctx context.Context, db pgdb.DB, leases []int64) {
	_, _ = db.Exec(ctx, "select parley_mail._p_release_local(leases => $1::bigint[])", leases)
}
