package operate

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// TraceEvent is one moment in the life of a conversation; as JSON it is a stable format.
type TraceEvent struct {
	At                 *time.Time  `json:"at"`
	ConversationHandle parley.UUID `json:"conversation_handle"`
	Side               string      `json:"side"`  // initiator or target
	Event              string      `json:"event"` // such as "message waits"
	MessageTypeName    *string     `json:"message_type_name"`
	BodyBytes          *int32      `json:"body_bytes"`
	Detail             *string     `json:"detail"`
}

// TraceConversation returns the life of a conversation in order, as far as the database remembers it. The conversation is
// named by a handle, its id, or a group.
//
// Errors: a [parley.Error] with number [parley.ConversationNotFound] or [parley.PermissionDenied].
func TraceConversation(ctx context.Context, db parley.DB, conversation parley.UUID) ([]TraceEvent, error) {
	rows, err := db.Query(ctx, `
		select t.at, t.conversation_handle, t.side, t.event, t.message_type_name, t.body_bytes, t.detail
		from parley.trace_conversation($1) as t`, conversation)
	if err != nil {
		return nil, pgdb.StatementError(err, "trace conversation "+conversation.String())
	}
	events, err := pgx.CollectRows(rows, pgx.RowToStructByPos[TraceEvent])
	if err != nil {
		return nil, pgdb.StatementError(err, "trace conversation "+conversation.String())
	}
	return events, nil
}

// Explanation is the answer to one of the steps by which a lost message is found; as JSON it is a stable format.
type Explanation struct {
	Step               int32        `json:"step"`
	ConversationHandle *parley.UUID `json:"conversation_handle"` // of the side that sends; nil when both are closed
	Side               *string      `json:"side"`
	Answer             string       `json:"answer"`
	IsFinding          bool         `json:"is_finding"` // this is the fault
	Cure               *string      `json:"cure"`
}

// ExplainConversation reports where the messages of a conversation are and what keeps them there.
//
// Errors: a [parley.Error] with number [parley.ConversationNotFound] or [parley.PermissionDenied].
func ExplainConversation(ctx context.Context, db parley.DB, conversation parley.UUID) ([]Explanation, error) {
	rows, err := db.Query(ctx, `
		select x.step, x.conversation_handle, x.side, x.answer, x.is_finding, x.cure
		from parley.explain_conversation($1) as x`, conversation)
	if err != nil {
		return nil, pgdb.StatementError(err, "explain conversation "+conversation.String())
	}
	steps, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Explanation])
	if err != nil {
		return nil, pgdb.StatementError(err, "explain conversation "+conversation.String())
	}
	return steps, nil
}
