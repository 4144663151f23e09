package parley

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// peekColumns are pgdb.MessageColumns, where messages of simple queues have no conversation.
const peekColumns = `status, priority, queuing_order, conversation_group_id, conversation_handle, coalesce(message_sequence_number, 0),
	coalesce(service_name, ''), coalesce(service_id, 0), coalesce(service_contract_name, ''), coalesce(service_contract_id, 0),
	coalesce(message_type_name, ''), message_type_id, coalesce(validation::text, ''), message_body, message_enqueue_time, message_id,
	coalesce(trace_context, '')`

// place is that of a message in its queue.
type place struct {
	priority int16
	number   int64
}

// After makes [Peek] and [PeekMessages] show what comes behind a message, which need not be there any more: the one with this priority,
// 1 to 10, and QueuingOrder, or MessageID in a simple queue. It has no meaning for other calls. With [FromConversation] the number alone
// counts, since all messages of a conversation have one priority.
func After(priority int16, number int64) ReceiveOption {
	return func(r *receive) { r.after = &place{priority, number} }
}

// placed gives the place behind which messages are shown, nil for the beginning.
func (r receive) placed() (priority *int16, number *int64) {
	if r.after == nil {
		return nil, nil
	}
	if r.conversation == nil {
		priority = &r.after.priority
	}
	return priority, &r.after.number
}

// Peek reads the first messages of a queue, by priority and arrival, without taking them and without disturbing
// anybody. Messages of locked groups are among them. Of the options [Top], [FromConversation] and [After] have a meaning;
// without Top it is 10 messages. Messages of a simple queue have no conversation, service or type; [PeekMessages] gives their keys.
//
// Errors: an [Error] with number [QueueNotFound], [PermissionDenied] or [ConversationNotFound].
func Peek(ctx context.Context, db DB, queue string, options ...ReceiveOption) ([]Message, error) {
	var r receive
	for _, option := range options {
		option(&r)
	}
	priority, number := r.placed()
	rows, err := db.Query(ctx, "select "+peekColumns+`
		from parley.peek(
			queue => $1, top => coalesce($2, 10), conversation_handle => $3, after_priority => $4, after_queuing_order => $5
		)`, queue, r.top, r.conversation, priority, number)
	if err != nil {
		return nil, pgdb.StatementError(err, "peek at queue "+queue)
	}
	messages, err := pgx.CollectRows(rows, scanMessage)
	if err != nil {
		return nil, pgdb.StatementError(err, "peek at queue "+queue)
	}
	return messages, nil
}

// PeekMessages reads the first messages of a simple queue, by priority and arrival, without taking them and without disturbing anybody.
// Messages that others have taken and not committed are among them. Of the options [After] has a meaning.
//
// Errors: an [Error] with number [QueueNotFound], [PermissionDenied], or [WrongArgument] when the queue is not simple.
func PeekMessages(ctx context.Context, db DB, queue string, top int, options ...ReceiveOption) ([]TakenMessage, error) {
	var r receive
	for _, option := range options {
		option(&r)
	}
	priority, number := r.placed()
	rows, err := db.Query(ctx, "select "+takenColumns+`
		from parley.peek_messages(queue => $1, top => $2, after_priority => $3, after_message_id => $4)`,
		queue, min(top, 1<<31-1), priority, number)
	if err != nil {
		return nil, pgdb.StatementError(err, "peek at queue "+queue)
	}
	messages, err := pgx.CollectRows(rows, pgx.RowToStructByPos[TakenMessage])
	if err != nil {
		return nil, pgdb.StatementError(err, "peek at queue "+queue)
	}
	return messages, nil
}
