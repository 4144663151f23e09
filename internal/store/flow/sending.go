package flow

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// The stages of claimed messages.
const (
	StageSend    = "SEND"
	StageReceive = "RECEIVE" // resubmitted into the pipeline of a location
)

// Claimed is a message in the hands of a host.
type Claimed struct {
	Lease, Item                  int64
	Stage                        string
	SendPort, Location           string
	OrderKey                     *string
	Message, Interchange, Parent int64
	Type                         *string
	ReceivedAt                   time.Time
	Attempts                     int
	Size                         int64
	Promoted, Written, Parts     json.RawMessage
	Content                      int64 // 0 where Body has it
	Body                         []byte
	Request                      int64 `db:"-"` // of which it is the answer; 0 for a message that was claimed
}

// Claim has the arguments of a claim.
type Claim struct {
	Host, Holder string
	Lanes, Each  int
	Lease        time.Duration
	Timeout      time.Duration // how long to wait for work
	PassedBy     []string      // send ports from which nothing is wanted now
	Top          int           // the most of all lanes
}

// ClaimMessages claims messages of send ports whose turn it is, in the order in which they are to be sent.
func ClaimMessages(ctx context.Context, db pgdb.DB, c Claim) ([]Claimed, error) {
	return collect[Claimed](ctx, db, "claim messages of host "+c.Host, `
		select lease_id, item_id, stage, coalesce(send_port, ''), coalesce(location, ''), order_key, coalesce(message_id, 0),
			coalesce(interchange_id, 0), coalesce(parent_id, 0), message_type, coalesce(received_at, clock_timestamp()), attempts,
			coalesce(size, 0), coalesce(promoted, '{}'), coalesce(written, '{}'),
			coalesce(parts, 'null'), coalesce(content_id, 0), body
		from parley_flow._p_claim(
			host => $1::text, holder => $2::text, lanes => $3::integer, each => $4::integer, lease => $5::interval,
			timeout => $6::integer, passed_by => $7::text[], top => $8::integer
		)
		order by n`, c.Host, c.Holder, c.Lanes, c.Each, c.Lease, pgdb.Milliseconds(c.Timeout), c.PassedBy, c.Top)
}

// Complete records that messages were sent; the slices have an element for each. details are objects, nil for none.
func Complete(ctx context.Context, db pgdb.DB, host string, leases, items []int64, details []*string) error {
	_, err := one[int](ctx, db, "record what was sent", `select parley_flow._p_complete(
		host => $1::text, leases => $2::bigint[], items => $3::bigint[], details => $4::text[]::jsonb[])`, host, leases, items, details)
	return err
}

// Ended has the outcome of a message that was not sent.
type Ended struct {
	Item    int64
	Outcome string
}

// Failure is why messages were not sent.
type Failure struct {
	Code, Error   string
	RetryAfter    time.Duration // 0: as the policy of the port says
	IsUnreachable bool
}

// Retry records that messages of a lease could not be sent this time.
func Retry(ctx context.Context, db pgdb.DB, host string, lease int64, items []int64, f Failure) ([]Ended, error) {
	var after *time.Duration
	if f.RetryAfter > 0 {
		after = &f.RetryAfter
	}
	return collect[Ended](ctx, db, "record what could not be sent", `
		select item_id, outcome from parley_flow._p_retry(
			host => $1::text, lease_id => $2::bigint, items => $3::bigint[], code => $4::text, error => $5::text,
			retry_after => $6::interval, is_unreachable => $7::boolean
		)`, host, lease, items, f.Code, pgdb.Storable(f.Error), after, f.IsUnreachable)
}

// Suspend gives messages of a lease up, which no retry helps.
func Suspend(ctx context.Context, db pgdb.DB, host string, lease int64, items []int64, f Failure, isResumable bool) ([]Ended, error) {
	return collect[Ended](ctx, db, "suspend messages", `
		select item_id, outcome from parley_flow._p_suspend(
			host => $1::text, lease_id => $2::bigint, items => $3::bigint[], code => $4::text, error => $5::text, is_resumable => $6::boolean
		)`, host, lease, items, f.Code, pgdb.Storable(f.Error), isResumable)
}

// Release gives messages of a lease back, which were not tried.
func Release(ctx context.Context, db pgdb.DB, host string, lease int64, items []int64) error {
	_, err := one[int](ctx, db, "give messages back", `select parley_flow._p_release(
		host => $1::text, lease_id => $2::bigint, items => $3::bigint[])`, host, lease, items)
	return err
}

// Renew extends leases, and gives those that are gone.
func Renew(ctx context.Context, db pgdb.DB, host string, leases []int64, lease time.Duration) (gone []int64, err error) {
	err = db.QueryRow(ctx, `select gone from parley_flow._p_renew(host => $1::text, leases => $2::bigint[], lease => $3::interval)`,
		host, leases, lease).Scan(&gone)
	if err != nil {
		return nil, pgdb.StatementError(err, "renew leases")
	}
	return gone, nil
}

// Reached records that the destination of a port is there again.
func Reached(ctx context.Context, db pgdb.DB, host, port string) error {
	_, err := one[int](ctx, db, "record that "+port+" is reached",
		"select parley_flow._p_reached(host => $1::text, send_port => $2::text)", host, port)
	return err
}

// TryAgain has what waits for its next attempt at a port tried at once.
func TryAgain(ctx context.Context, db pgdb.DB, host, port string) error {
	_, err := one[bool](ctx, db, "have "+port+" tried again",
		"select parley_flow._p_try_again(host => $1::text, send_port => $2::text)", host, port)
	return err
}

// Chunk is a piece of a body; Chunks and Bytes are those of the whole.
type Chunk struct {
	Number int
	Body   []byte
	Chunks int
	Bytes  int64
}

// ReadBody gives chunks of a body of a message that the host has claimed, or that answers a request of it, both ends included.
func ReadBody(ctx context.Context, db pgdb.DB, host string, message, content, request int64, from, to int) ([]Chunk, error) {
	return collect[Chunk](ctx, db, "read a body", `
		select number, body, chunks, bytes from parley_flow._p_read_body(
			host => $1::text, message_id => $2::bigint, content_id => $3::bigint, from_number => $4::integer, to_number => $5::integer,
			request_id => nullif($6::bigint, 0)
		)
		order by number`, host, message, content, from, to, request)
}
