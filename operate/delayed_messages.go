package operate

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// DelayedMessage is a message that is not due yet: one that a service has sent on a conversation ([parley.SentAt]), or one of a simple
// queue
// ([parley.DeliverAt]). As JSON it is a stable format.
type DelayedMessage struct {
	DelayedID int64     `json:"delayed_id"`
	DueAt     time.Time `json:"due_at"`
	Queue     string    `json:"queue"` // that of the sending service, or the simple queue

	// These are nil for a message of a simple queue.
	Service            *string      `json:"service"`
	FarService         *string      `json:"far_service"`
	ConversationHandle *parley.UUID `json:"conversation_handle"`
	MessageType        *string      `json:"message_type"`

	// These are nil for a message of a conversation.
	Key      *string `json:"key"`
	Priority *int16  `json:"priority"`

	Body []byte `json:"body"`
}

// ReadDelayedMessages reads what is not due yet, the first first, up to limit of each kind; of queues that the role may receive from.
func ReadDelayedMessages(ctx context.Context, db parley.DB, limit int) ([]DelayedMessage, error) {
	rows, err := db.Query(ctx, `
		(
			select d.delayed_id, d.due_at, d.queue_name, d.service_name, d.far_service, d.conversation_handle, d.message_type_name,
				null::text, null::smallint, d.body
			from parley.delayed_sends as d
			order by d.due_at, d.delayed_id
			limit $1
		)
		union all
		(
			select m.delayed_id, m.due_at, m.queue_name, null, null, null, null, m.key, m.priority, m.body
			from parley.delayed_messages as m
			order by m.due_at, m.delayed_id
			limit $1
		)
		order by 2, 1`, limit)
	if err != nil {
		return nil, pgdb.StatementError(err, "read the delayed messages")
	}
	delayed, err := pgx.CollectRows(rows, pgx.RowToStructByPos[DelayedMessage])
	if err != nil {
		return nil, pgdb.StatementError(err, "read the delayed messages")
	}
	return delayed, nil
}
