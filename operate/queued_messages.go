package operate

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// QueuedMessage is a message that waits, with the beginning of its body.
type QueuedMessage struct {
	Order              int64        // its number in the queue
	ConversationHandle *parley.UUID // nil in a simple queue
	Key                *string      // of a message of a simple queue that has one
	MessageType        string       // empty in a simple queue
	EnqueuedAt         time.Time
	Priority           int16
	Body               []byte // as far as it was asked for; nil for none
	BodyBytes          int64  // of the whole body
}

// ReadQueuedMessages reads the first messages of a queue, of conversations or simple, without taking them and without disturbing
// anybody; of each body at most so many bytes. With after it reads those behind a message, of which Priority and Order count and which need
// not be there any more.
//
// Errors: a [parley.Error] with number [parley.QueueNotFound] or [parley.PermissionDenied].
func ReadQueuedMessages(
	ctx context.Context, db parley.DB, queue string, top, bodyBytes int, after *QueuedMessage,
) ([]QueuedMessage, error) {
	var priority *int16
	var order *int64
	if after != nil {
		priority, order = &after.Priority, &after.Order
	}
	messages, err := collectQueued(ctx, db, `
		select p.queuing_order, p.conversation_handle, null::text, coalesce(p.message_type_name, ''), p.message_enqueue_time, p.priority,
			substring(p.message_body for $3), coalesce(octet_length(p.message_body), 0)
		from parley.peek($1::text, top => $2, after_priority => $4, after_queuing_order => $5) as p`,
		queue, top, bodyBytes, priority, order)
	if err != nil || len(messages) == 0 || messages[0].ConversationHandle != nil {
		return messages, err
	}
	return collectQueued(ctx, db, `
		select t.message_id, null::uuid, t.key, '', t.enqueued_at, t.priority,
			substring(t.body for $3), coalesce(octet_length(t.body), 0)
		from parley.peek_messages($1::text, top => $2, after_priority => $4, after_message_id => $5) as t`,
		queue, top, bodyBytes, priority, order)
}

func collectQueued(ctx context.Context, db parley.DB, statement, queue string, parameters ...any) ([]QueuedMessage, error) {
	rows, err := db.Query(ctx, statement, append([]any{queue}, parameters...)...)
	if err != nil {
		return nil, pgdb.StatementError(err, "read the messages of queue "+queue)
	}
	messages, err := pgx.CollectRows(rows, pgx.RowToStructByPos[QueuedMessage])
	if err != nil {
		return nil, pgdb.StatementError(err, "read the messages of queue "+queue)
	}
	return messages, nil
}
