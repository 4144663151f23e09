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

// Peek reads the first messages of a queue, by priority and arrival, without taking them and without disturbing
// anybody. Messages of locked groups are among them. Of the options [Top] and [FromConversation] have a meaning;
// without Top it is 10 messages. Messages of a simple queue have no conversation, service or type; [PeekMessages] gives their keys.
//
// Errors: an [Error] with number [QueueNotFound], [PermissionDenied] or [ConversationNotFound].
func Peek(ctx context.Context, db DB, queue string, options ...ReceiveOption) ([]Message, error) {
	var r receive
	for _, option := range options {
		option(&r)
	}
	rows, err := db.Query(ctx, "select "+peekColumns+`
		from parley.peek(queue => $1, top => coalesce($2, 10), conversation_handle => $3)`, queue, r.top, r.conversation)
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
// Messages that others have taken and not committed are among them.
//
// Errors: an [Error] with number [QueueNotFound], [PermissionDenied], or [WrongArgument] when the queue is not simple.
func PeekMessages(ctx context.Context, db DB, queue string, top int) ([]TakenMessage, error) {
	rows, err := db.Query(ctx, "select "+takenColumns+" from parley.peek_messages(queue => $1, top => $2)", queue, min(top, 1<<31-1))
	if err != nil {
		return nil, pgdb.StatementError(err, "peek at queue "+queue)
	}
	messages, err := pgx.CollectRows(rows, pgx.RowToStructByPos[TakenMessage])
	if err != nil {
		return nil, pgdb.StatementError(err, "peek at queue "+queue)
	}
	return messages, nil
}
