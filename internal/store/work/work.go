package work

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/pgdb"
)

// ErrLeaseOver means that a lease has run out and its items were given back, or that all of them are completed. What was to be
// recorded under it is to be rolled back: somebody else may have the items.
var ErrLeaseOver = errors.New("the lease is over")

// Item is something to do, on its way into a lane.
type Item struct {
	Lane    string
	Subject int64  // a number of the system's own
	Data    []byte // up to a few hundred bytes
}

// PutOptions say when and in which order items come. The zero value is priority 5, at once, for ever.
type PutOptions struct {
	Priority  int // 10 first, 1 last; 0 is 5
	DeliverAt time.Time
	ExpiresAt time.Time
}

// Put puts items into lanes, which are made when there are none, and returns their numbers. It waits for nobody.
func Put(ctx context.Context, db pgdb.DB, system string, items []Item, options PutOptions) ([]int64, error) {
	lanes, subjects, data := make([]string, len(items)), make([]int64, len(items)), make([][]byte, len(items))
	for i, item := range items {
		lanes[i], subjects[i], data[i] = item.Lane, item.Subject, item.Data
	}
	if options.Priority == 0 {
		options.Priority = 5
	}
	var ids []int64
	err := db.QueryRow(ctx, `
		select parley_store.put_work($1::text, $2::text[], $3::bigint[], $4::bytea[], $5::integer, $6::timestamptz, $7::timestamptz)`,
		system, lanes, subjects, data, options.Priority, orNull(options.DeliverAt), orNull(options.ExpiresAt)).Scan(&ids)
	if err != nil {
		return nil, pgdb.StatementError(err, "put work")
	}
	return ids, nil
}

// Claimed is an item in the hands of whoever has the lease.
type Claimed struct {
	LeaseID   int64 // grows: the fence
	Lane      string
	ItemID    int64
	Subject   int64
	Priority  int16
	Attempts  int // that have failed
	Since     time.Time
	ExpiresAt *time.Time
	Data      []byte
	LastError *string
}

// ClaimOptions say how much to claim, and for how long.
type ClaimOptions struct {
	Items   int           // of all lanes, 100 if it is 0
	Lanes   int           // 1 if it is 0
	Lease   time.Duration // a minute if it is 0
	Holder  string        // a name for who works on them
	Timeout time.Duration // how long to wait for work; negative for ever
}

func (o ClaimOptions) withDefaults() ClaimOptions {
	if o.Items == 0 {
		o.Items = 100
	}
	if o.Lanes == 0 {
		o.Lanes = 1
	}
	if o.Lease == 0 {
		o.Lease = time.Minute
	}
	return o
}

const claimedColumns = `
	select c.lease_id, c.lane, c.item_id, c.subject, c.priority, c.attempts, c.since, c.expires_at, c.data, c.last_error`

// Claim claims items of the lanes whose turn it is, each lane under a lease of its own. It may return none although something
// waits: ask again. On a connection or a pool it is a transaction of its own, as it should be.
func Claim(ctx context.Context, db pgdb.DB, system string, options ClaimOptions) ([]Claimed, error) {
	o := options.withDefaults()
	return claimed(ctx, db, "claim work", claimedColumns+`
		from parley_store.claim_work($1::text, $2::integer, $3::integer, make_interval(secs => $4), $5::text, $6::integer) as c`,
		system, o.Items, o.Lanes, o.Lease.Seconds(), o.Holder, pgdb.Milliseconds(o.Timeout))
}

// ClaimLane claims items of one lane. It returns none when the lane is empty, suspended, in retry, or has as many leases as it may.
func ClaimLane(ctx context.Context, db pgdb.DB, system, lane string, options ClaimOptions) ([]Claimed, error) {
	o := options.withDefaults()
	return claimed(ctx, db, "claim work of lane "+lane, claimedColumns+`
		from parley_store.claim_lane($1::text, $2::text, $3::integer, make_interval(secs => $4), $5::text) as c`,
		system, lane, o.Items, o.Lease.Seconds(), o.Holder)
}

// ClaimExpired claims items whose time is over, of lanes from which nothing else is claimed now, for the system to give them up.
func ClaimExpired(ctx context.Context, db pgdb.DB, system string, options ClaimOptions) ([]Claimed, error) {
	o := options.withDefaults()
	return claimed(ctx, db, "claim expired work", claimedColumns+`
		from parley_store.claim_expired($1::text, $2::integer, make_interval(secs => $3), $4::text) as c`,
		system, o.Items, o.Lease.Seconds(), o.Holder)
}

func claimed(ctx context.Context, db pgdb.DB, what, query string, arguments ...any) ([]Claimed, error) {
	rows, err := db.Query(ctx, query, arguments...)
	if err != nil {
		return nil, pgdb.StatementError(err, what)
	}
	items, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Claimed])
	if err != nil {
		return nil, pgdb.StatementError(err, what)
	}
	return items, nil
}

// Complete removes items that are done, in the transaction that records what came of them; nil for all that are left of the
// lease. It returns how many there were.
//
// Errors: [ErrLeaseOver].
func Complete(ctx context.Context, db pgdb.DB, leaseID int64, items []int64) (int, error) {
	return count(ctx, db, "complete work", "select parley_store.complete_work($1::bigint, $2::bigint[])", leaseID, items)
}

// Release gives items back that were not tried, in front of all others of their lane.
//
// Errors: [ErrLeaseOver].
func Release(ctx context.Context, db pgdb.DB, leaseID int64, items []int64) (int, error) {
	return count(ctx, db, "release work", "select parley_store.release_work($1::bigint, $2::bigint[])", leaseID, items)
}

// Delay has items tried again at a time; counts says whether it was an attempt.
//
// Errors: [ErrLeaseOver].
func Delay(ctx context.Context, db pgdb.DB, leaseID int64, items []int64, dueAt time.Time, failure string, counts bool) (int, error) {
	const statement = "select parley_store.delay_work($1::bigint, $2::bigint[], $3::timestamptz, nullif($4::text, ''), $5::boolean)"
	return count(ctx, db, "delay work", statement, leaseID, items, dueAt, failure, counts)
}

// Retry has items tried again when a retry policy says, the lane's own when it is empty. It returns those whose time is over:
// they stay under the lease, to be given up and completed.
//
// Errors: [ErrLeaseOver].
func Retry(ctx context.Context, db pgdb.DB, leaseID int64, items []int64, failure, policy string) (expired []int64, err error) {
	err = db.QueryRow(ctx, "select parley_store.retry_work($1::bigint, $2::bigint[], nullif($3::text, ''), nullif($4::text, ''))",
		leaseID, items, failure, policy).Scan(&expired)
	if err != nil {
		return nil, failed(err, "retry work")
	}
	return expired, nil
}

// SetAside sets items aside that nobody can go on with, until an operator resumes them.
//
// Errors: [ErrLeaseOver].
func SetAside(ctx context.Context, db pgdb.DB, leaseID int64, items []int64, reason, failure string) (int, error) {
	return count(ctx, db, "set work aside", "select parley_store.suspend_claimed($1::bigint, $2::bigint[], $3::text, nullif($4::text, ''))",
		leaseID, items, reason, failure)
}

// Renew extends a lease from now on, and returns until when.
//
// Errors: [ErrLeaseOver].
func Renew(ctx context.Context, db pgdb.DB, leaseID int64, lease time.Duration) (until time.Time, err error) {
	err = db.QueryRow(ctx, "select parley_store.renew_lease($1::bigint, make_interval(secs => $2))", leaseID, lease.Seconds()).Scan(&until)
	if err != nil {
		return time.Time{}, failed(err, "renew a lease")
	}
	return until, nil
}

func count(ctx context.Context, db pgdb.DB, what, query string, arguments ...any) (n int, err error) {
	if err := db.QueryRow(ctx, query, arguments...).Scan(&n); err != nil {
		return 0, failed(err, what)
	}
	return n, nil
}

// failed says what was tried, and makes an error of ours of one that callers ask for.
func failed(err error, what string) error {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok && refused.Code == "PS005" {
		return fmt.Errorf("%s: %w: %w", what, ErrLeaseOver, err)
	}
	return pgdb.StatementError(err, what)
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
