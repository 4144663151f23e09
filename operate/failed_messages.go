package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// FailedMessage is a message of a simple queue that is set aside, or that has failed and waits; as JSON it is a stable format.
type FailedMessage struct {
	Queue      string    `json:"queue"` // name as the statements take it
	MessageID  int64     `json:"message_id"`
	Key        *string   `json:"key"`
	Priority   int16     `json:"priority"`
	Body       []byte    `json:"body"` // of one that is set aside; nil otherwise
	EnqueuedAt time.Time `json:"enqueued_at"`

	SetAsideSince *time.Time `json:"set_aside_since"` // nil as long as it is only failing
	Rollbacks     int32      `json:"rollbacks"`       // of one that is set aside: how often it came back, or was refused by a web address
	// The last report; nil when nobody reported anything, as when a reader is killed.
	SQLState  *string    `json:"sqlstate"` // nil too for errors that did not come from the database
	Error     *string    `json:"error"`
	ErrorTime *time.Time `json:"error_time"`
	// Answer is the answer of a web address when it refused the message, its first 4,096 characters.
	Answer *string `json:"answer"`
	// Failures is, of a message that is delivered to a web address and not set aside yet, how often that failed. Attempts is how many
	// failures count: refusals of the web address, or what readers reported. Losses is how often it came back to wait without a
	// report. RetryAt is when it is delivered or taken again.
	Failures *int32     `json:"failures"`
	Attempts *int32     `json:"attempts"`
	RetryAt  *time.Time `json:"retry_at"`
	Losses   *int32     `json:"losses"`
}

// FailedMessageFilter chooses among messages of simple queues that fail; zero values choose all that are set aside.
type FailedMessageFilter struct {
	Queue string
	// Failing chooses those whose last failure was reported and is not over, or that a web address did not accept, but that are not
	// set aside yet.
	Failing bool
	// Limit bounds how many are read; 0 means all.
	Limit int
}

// ReadFailedMessages reads the messages of simple queues that are set aside, or are failing, those of longest ago first. Only
// those of queues that the role may take from are among them.
func ReadFailedMessages(ctx context.Context, db parley.DB, filter FailedMessageFilter) ([]FailedMessage, error) {
	from := `
		select s.queue_name, s.message_id, s.key, s.priority, s.body, s.enqueued_at, s.set_aside_at, s.rollbacks, s.sqlstate,
			s.error, s.error_time, s.answer, null::integer as failures, null::integer as attempts, null::timestamptz as retry_at,
			null::integer as losses
		from parley.set_aside_messages as s`
	if filter.Failing {
		from = `
		select f.queue_name, f.message_id, f.key, f.priority, null::bytea, f.enqueued_at, null::timestamptz as set_aside_at, 0, f.sqlstate,
			f.error, f.error_time, f.answer, f.failures, f.attempts, f.retry_at, f.losses
		from parley.failing_messages as f`
	}
	rows, err := db.Query(ctx, "select m.* from ("+from+`) as m
		where $1 = '' or m.queue_name = $1
		order by coalesce(m.set_aside_at, m.error_time), m.queue_name, m.message_id
		limit nullif($2, 0)`, filter.Queue, filter.Limit)
	if err != nil {
		return nil, fmt.Errorf("read the messages that failed: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[FailedMessage])
	if err != nil {
		return nil, fmt.Errorf("read the messages that failed: %w", err)
	}
	return found, nil
}

// RetryMessage puts a message that is set aside back at the end of its simple queue, under a new number. Its rollbacks are forgotten.
//
// Errors: a [parley.Error] with number [parley.ConversationNotFound] (8426) when it is not set aside, [parley.QueueNotFound] or
// [parley.PermissionDenied].
func RetryMessage(ctx context.Context, db parley.DB, queue string, messageID int64) error {
	if _, err := db.Exec(ctx, "select parley.retry_message($1::text, $2)", queue, messageID); err != nil {
		return pgdb.StatementError(err, "retry a message of queue "+queue)
	}
	return nil
}

// DiscardMessage removes a message that is set aside, and returns it.
//
// Errors: as [RetryMessage].
func DiscardMessage(ctx context.Context, db parley.DB, queue string, messageID int64) (parley.TakenMessage, error) {
	rows, err := db.Query(ctx, `
		select d.message_id, d.key, d.priority, d.body, d.enqueued_at, d.trace_context, coalesce(d.attempt, 0)
		from parley.discard_message($1::text, $2) as d`, queue, messageID)
	if err != nil {
		return parley.TakenMessage{}, pgdb.StatementError(err, "discard a message of queue "+queue)
	}
	message, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[parley.TakenMessage])
	if err != nil {
		return parley.TakenMessage{}, pgdb.StatementError(err, "discard a message of queue "+queue)
	}
	return message, nil
}

// EditMessage gives a message that is set aside another body; nil for none. Its old one stays in parley.edited_messages, with the reason,
// of 1 to 1,000 characters. It takes the rights to take from the queue and to put into it.
//
// Errors: as [RetryMessage], and [parley.WrongArgument] for a reason that is missing or too long.
func EditMessage(ctx context.Context, db parley.DB, queue string, messageID int64, body []byte, reason string) error {
	_, err := db.Exec(ctx, `
		select parley.edit_message(queue => $1::text, message_id => $2::bigint, body => $3::bytea, reason => $4::text)`,
		queue, messageID, body, reason)
	if err != nil {
		return pgdb.StatementError(err, "edit a message of queue "+queue)
	}
	return nil
}
