package parley

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Peek reads the first messages of a queue, by priority and arrival, without taking them and without disturbing
// anybody. Messages of locked groups are among them. Of the options [Top] and [FromConversation] have a meaning;
// without Top it is 10 messages.
//
// Errors: an [Error] with number [QueueNotFound], [PermissionDenied] or [ConversationNotFound].
func Peek(ctx context.Context, db DB, queue string, options ...ReceiveOption) ([]Message, error) {
	var r receive
	for _, option := range options {
		option(&r)
	}
	rows, err := db.Query(ctx, "select "+messageColumns+`
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
