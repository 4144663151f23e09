package parley

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// NewMessage is a message for [PutEach].
type NewMessage struct {
	Body             string
	Key              string // "" for none
	DeduplicationKey string // "" for none; otherwise it is put once, as by [PutOnce]
}

// PutEach puts messages into a simple queue, in their order, and returns the outcome of each: its MessageID, which [CancelMessage] takes,
// or its DelayedID while it is not due, which [WithdrawMessage] takes. It costs some statements a message more than [PutBatch], which says
// nothing. Of the options [WithPriority] and [DeliverAt] have a meaning, for all of them.
//
// Errors: as [PutOnce].
func PutEach(ctx context.Context, db DB, queue string, messages []NewMessage, options ...PutOption) ([]SentMessage, error) {
	bodies := make([]string, len(messages))
	keys := make([]*string, len(messages))
	once := make([]*string, len(messages))
	for i, message := range messages {
		bodies[i] = message.Body
		if message.Key != "" {
			keys[i] = &message.Key
		}
		if message.DeduplicationKey != "" {
			once[i] = &message.DeduplicationKey
		}
	}
	p := putting(options)
	rows, err := db.Query(ctx, `
		select s.is_duplicate, s.conversation_handle, s.message_id, s.delayed_id, s.sent_at
		from parley.put_each(
			queue => $1::text, bodies => $2::text[], keys => $3::text[], deduplication_keys => $4::text[], priority => $5::integer,
			deliver_at => $6::timestamptz
		) as s`, queue, bodies, keys, once, p.priority, p.deliverAt)
	if err != nil {
		return nil, pgdb.StatementError(err, "put into queue "+queue)
	}
	sent, err := pgx.CollectRows(rows, pgx.RowToStructByPos[SentMessage])
	if err != nil {
		return nil, pgdb.StatementError(err, "put into queue "+queue)
	}
	return sent, nil
}
