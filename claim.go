package parley

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// ErrClaimLost says that what was claimed is in other hands by now, or was cancelled: break off, and roll back.
var ErrClaimLost = errors.New("the claim was lost or cancelled")

// Claimed holds messages of a simple queue that [Claim] has given, for long work: no transaction is open, and nobody else gets them, nor
// those behind them of their key, as long as the lease lasts.
type Claimed struct {
	Queue    string
	ID       UUID
	Lease    time.Duration // from when it was claimed or renewed last
	Messages []TakenMessage
}

// Claim claims up to count messages of a simple queue for long work, of one priority, and of one key or without keys. It returns nil when
// there is nothing to claim, or the limits of the queue hold the caller back. Call it outside of a transaction, or commit, then work, call
// [Renew] before the lease is over, which is at most an hour, and [Complete] in the transaction of the results, or [GiveBack]. A
// [ClaimConsumer] does all of it.
//
// Errors: as [Put].
func Claim(ctx context.Context, db DB, queue string, count int, lease time.Duration) (*Claimed, error) {
	what := "claim from queue " + queue
	rows, err := db.Query(ctx, `
		select c.claim, c.message_id, c.key, c.priority, c.body, c.enqueued_at, c.trace_context, c.attempt
		from parley.claim(queue => $1::text, count => $2::integer, lease => $3::float8 * interval '1 second') as c`,
		queue, min(count, 1<<31-1), lease.Seconds())
	if err != nil {
		return nil, pgdb.StatementError(err, what)
	}
	claimed := &Claimed{Queue: queue, Lease: lease}
	var m TakenMessage
	_, err = pgx.ForEachRow(rows, []any{
		&claimed.ID, &m.MessageID, &m.Key, &m.Priority, &m.Body, &m.EnqueuedAt, &m.TraceContext, &m.Attempt,
	}, func() error {
		claimed.Messages = append(claimed.Messages, m)
		m = TakenMessage{}
		return nil
	})
	switch {
	case err != nil:
		return nil, pgdb.StatementError(err, what)
	case len(claimed.Messages) == 0:
		return nil, nil
	}
	return claimed, nil
}

// Renew renews the lease of a claim from now on, and reports whether anything of it is still held: break off when not. progress, a document
// of JSON, is shown by the view parley.delivery_claims to those who wait; nil leaves it as it was.
//
// Errors: as [Put].
func Renew(ctx context.Context, db DB, claimed *Claimed, progress []byte) (isHeld bool, err error) {
	err = db.QueryRow(ctx, `
		select parley.renew(
			queue => $1::text, claim => $2::uuid, lease => $3::float8 * interval '1 second', progress => $4::text::jsonb
		)`, claimed.Queue, claimed.ID, claimed.Lease.Seconds(), document(progress)).Scan(&isHeld)
	if err != nil {
		return false, pgdb.StatementError(err, "renew a claim of queue "+claimed.Queue)
	}
	return isHeld, nil
}

// Complete takes the messages of a claim, in the transaction of the results. result, a document of JSON or nil, is shown by the view
// parley.finished_messages for as long as the queue keeps what is finished. It returns [ErrClaimLost] when the claim was lost or cancelled:
// then roll back.
//
// Errors: as [Put].
func Complete(ctx context.Context, tx pgx.Tx, claimed *Claimed, result []byte) error {
	var isOurs bool
	err := tx.QueryRow(ctx, "select parley.complete(queue => $1::text, claim => $2::uuid, result => $3::text::jsonb)",
		claimed.Queue, claimed.ID, document(result)).Scan(&isOurs)
	switch {
	case err != nil:
		return pgdb.StatementError(err, "complete a claim of queue "+claimed.Queue)
	case !isOurs:
		return ErrClaimLost
	}
	return nil
}

// GiveBack gives a claim back because the work failed. A message waits for its next attempt by the retry policy of the queue, or as
// [RetryAfter] and [Final] say. Of several nobody knows which was bad: they are free at once, unless the error is of one of these two.
//
// Errors: as [Put].
func GiveBack(ctx context.Context, db DB, claimed *Claimed, failure error) (Retried, error) {
	sqlstate, text := pgdb.DescribeFailure(failure)
	verdict, _ := errors.AsType[*judgment](failure)
	return retried(ctx, db, "give back a claim of queue "+claimed.Queue, `
		select g.retry_at, g.is_set_aside
		from parley.give_back(
			queue => $1::text, claim => $2::uuid, error => $3::text, sqlstate => $4::text,
			delay => $5::float8 * interval '1 second', is_final => $6::boolean
		) as g`, claimed.Queue, claimed.ID, text, sqlstate, verdict.seconds(), verdict != nil && verdict.isFinal)
}

// document gives a document of JSON as a statement takes it; nil is none.
func document(value []byte) *string {
	if value == nil {
		return nil
	}
	text := string(value)
	return &text
}
