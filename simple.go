package parley

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// TakenMessage is a message of a simple queue; as JSON it is a stable format.
type TakenMessage struct {
	MessageID    int64     `json:"message_id"` // its place in the order of arrival
	Key          *string   `json:"key"`        // nil without one
	Priority     int16     `json:"priority"`   // 1 to 10
	Body         []byte    `json:"body"`       // nil when the message has none
	EnqueuedAt   time.Time `json:"enqueued_at"`
	TraceContext *string   `json:"trace_context"`
	Attempt      int32     `json:"attempt"` // which one this is, as far as failures were counted: 1 at first
}

// put holds the arguments of PUT that may be left out.
type put struct {
	key       *string
	priority  int32
	deliverAt *time.Time
}

// PutOption changes what [Put] and [PutBatch] do.
type PutOption func(*put)

// WithKey gives a message a key: messages of one key are taken in the order in which they were put, and as long as one of them
// is taken and not committed the others wait.
func WithKey(key string) PutOption {
	return func(p *put) { p.key = &key }
}

// WithPriority gives a message a priority, from 1, which is last, to 10; it is 5 otherwise.
func WithPriority(priority int) PutOption {
	return func(p *put) { p.priority = int32(min(priority, 1<<31-1)) }
}

// DeliverAt keeps a message back until a time, by the clock of the database.
func DeliverAt(due time.Time) PutOption {
	return func(p *put) { p.deliverAt = &due }
}

func putting(options []PutOption) put {
	p := put{priority: 5}
	for _, option := range options {
		option(&p)
	}
	return p
}

// Put puts a message into a simple queue: one that was created with kind SIMPLE, and knows no conversations. A nil or empty body
// arrives as none. The outcome has the MessageID, which [CancelMessage] takes, or the DelayedID of a message that is not due yet, which
// [WithdrawMessage] takes.
//
// Errors: an [Error] with number [QueueNotFound], [PermissionDenied], [QueueDisabled], or 8402 when the queue is not simple or the
// priority out of range.
func Put(ctx context.Context, db DB, queue string, body []byte, options ...PutOption) (sent SentMessage, err error) {
	err = putUnder(ctx, queue, func(ctx context.Context, traceContext string) (err error) {
		sent, err = PutTraced(ctx, db, queue, body, traceContext, options...)
		return err
	})
	return sent, err
}

// PutBatch puts a message for each body into a simple queue, in their order; the options are of all of them.
//
// Errors: as [Put].
func PutBatch(ctx context.Context, db DB, queue string, bodies [][]byte, options ...PutOption) error {
	return putUnder(ctx, queue, func(ctx context.Context, traceContext string) error {
		if traceContext != "" {
			return PutBatchTraced(ctx, db, queue, bodies, traceContext, options...)
		}
		p := putting(options)
		_, err := db.Exec(ctx, `
			select parley.put_batch_binary(queue => $1, bodies => $2, key => $3, priority => $4, deliver_at => $5)`,
			queue, bodies, p.key, p.priority, p.deliverAt)
		if err != nil {
			return pgdb.StatementError(err, "put into queue "+queue)
		}
		return nil
	})
}

// takenColumns are the columns of TAKE in the order of the fields of TakenMessage.
const takenColumns = "message_id, key, priority, body, enqueued_at, trace_context, coalesce(attempt, 1)"

// Take takes up to count messages from a simple queue, in this transaction: when it rolls back they are in the queue again. Messages that
// others have taken and not committed are passed by. Of the options of [Receive] only [Wait] has a meaning.
//
// Errors: as [Put].
func Take(ctx context.Context, db DB, queue string, count int, options ...ReceiveOption) ([]TakenMessage, error) {
	var r receive
	for _, option := range options {
		option(&r)
	}
	from := "parley.take(queue => $1::text, count => $2, timeout => $3)"
	if r.isReader {
		// TAKE is called with what the setting is made with, so after it.
		from = `(select $1::text as reads, set_config('parley.reader', 'on', true)) as x
			cross join lateral parley.take(queue => x.reads, count => $2, timeout => $3)`
	}
	rows, err := db.Query(ctx, "select "+takenColumns+" from "+from,
		queue, min(count, 1<<31-1), r.timeout)
	if err != nil {
		return nil, pgdb.StatementError(err, "take from queue "+queue)
	}
	messages, err := pgx.CollectRows(rows, pgx.RowToStructByPos[TakenMessage])
	if err != nil {
		return nil, pgdb.StatementError(err, "take from queue "+queue)
	}
	return messages, nil
}
