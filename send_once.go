package parley

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// sending holds the options of a send.
type sending struct {
	deliverAt *time.Time
	key       *string
}

// SendOption changes how [SendWith] sends.
type SendOption func(*sending)

// SentAt has a message sent not before a time, by the clock of the database. Until then it waits with the sender.
func SentAt(due time.Time) SendOption {
	return func(s *sending) { s.deliverAt = &due }
}

// SentOnce gives a message a deduplication key, of 1 to 256 characters: when the service has sent one with the same key before, no
// longer ago than its DeduplicationSeconds, nothing is sent, whatever the body.
func SentOnce(key string) SendOption {
	return func(s *sending) { s.key = &key }
}

// SentMessage is the outcome of a message; as JSON it is a stable format.
type SentMessage struct {
	// IsDuplicate reports that its key was used before: nothing was sent, and the rest is of the first message.
	IsDuplicate        bool       `json:"is_duplicate"`
	ConversationHandle *UUID      `json:"conversation_handle"` // nil in a simple queue
	MessageID          *int64     `json:"message_id"`          // its place in a queue of this database, as far as it is known
	DelayedID          *int64     `json:"delayed_id"`          // as long as it is not due
	SentAt             *time.Time `json:"sent_at"`             // known of messages with a key
}

// SendWith sends a message on a conversation, as [Send] does, at a time or once for a key. A tracer of sends is not informed of it.
//
// Errors: as [Send], and 8402 for a key that is empty or too long, 8410 for a time after the end of the conversation's life.
func SendWith(
	ctx context.Context, db DB, handle UUID, messageType string, body []byte, options ...SendOption,
) (sent SentMessage, err error) {
	var s sending
	for _, option := range options {
		option(&s)
	}
	// Without a time and a key there is nothing to be given.
	sent, err = readSent(db.QueryRow(ctx, `
		select coalesce(s.is_duplicate, false), coalesce(s.conversation_handle, $1::uuid), s.message_id, s.delayed_id, s.sent_at
		from parley.send(
			conversation_handle => $1::uuid, message_type => $2::text, body => $3::bytea, deliver_at => $4::timestamptz,
			deduplication_key => $5::text
		) as s`, handle, messageType, body, s.deliverAt, s.key))
	if err != nil {
		return SentMessage{}, pgdb.StatementError(err, "send on conversation "+handle.String())
	}
	return sent, nil
}

func readSent(row pgx.Row) (sent SentMessage, err error) {
	err = row.Scan(&sent.IsDuplicate, &sent.ConversationHandle, &sent.MessageID, &sent.DelayedID, &sent.SentAt)
	return sent, err
}

// PutOnce puts a message into a simple queue, as [Put] does, unless one was put there with the same deduplication key before, no longer ago
// than the queue's DeduplicationSeconds: then nothing is put, whatever the body.
//
// Errors: as [Put], and 8402 for a deduplication key that is empty or too long.
func PutOnce(
	ctx context.Context, db DB, queue string, body []byte, deduplicationKey string, options ...PutOption,
) (SentMessage, error) {
	p := putting(options)
	sent, err := readSent(db.QueryRow(ctx, `
		select s.is_duplicate, s.conversation_handle, s.message_id, s.delayed_id, s.sent_at
		from parley.put(
			queue => $1, body => $2::bytea, key => $3, priority => $4, deliver_at => $5, deduplication_key => $6
		) as s`, queue, body, p.key, p.priority, p.deliverAt, deduplicationKey))
	if err != nil {
		return SentMessage{}, pgdb.StatementError(err, "put into queue "+queue)
	}
	return sent, nil
}
