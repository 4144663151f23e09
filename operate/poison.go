package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// PoisonConversation is one side of a conversation of which a message was rolled back again and again; as JSON it is a
// stable format. When it is set aside, nothing is received from it until somebody puts it back or gives it up.
type PoisonConversation struct {
	ConversationHandle  parley.UUID `json:"conversation_handle"`
	ConversationGroupID parley.UUID `json:"conversation_group_id"`
	Queue               string      `json:"queue"` // name as the statements take it
	ServiceName         string      `json:"service_name"`
	FarService          string      `json:"far_service"`
	ServiceContractName string      `json:"service_contract_name"`
	State               string      `json:"state"` // such as CO

	// The message that came back. There is none when it was taken away otherwise.
	MessageTypeName       *string    `json:"message_type_name"`
	QueuingOrder          *int64     `json:"queuing_order"`
	MessageSequenceNumber *int64     `json:"message_sequence_number"`
	MessageEnqueueTime    *time.Time `json:"message_enqueue_time"`

	Rollbacks     int32      `json:"rollbacks"`
	SetAsideSince *time.Time `json:"set_aside_since"` // nil as long as it is only failing
	// The last report; nil when nobody reported anything, as when a reader is killed.
	SQLState  *string    `json:"sqlstate"` // nil too for errors that did not come from the database
	Error     *string    `json:"error"`
	ErrorTime *time.Time `json:"error_time"`

	WaitingMessages int64 `json:"waiting_messages"` // the one that came back included
	IsEstimated     bool  `json:"is_estimated"`     // there are more: 10,000 rows are counted

	// Answer is the answer of a web address when it refused the message, its first 4,096 characters.
	Answer *string `json:"answer"`
	// Of a message that is delivered to a web address and not set aside yet: how often that failed, how many of these failures were
	// refusals, which count, and when it is delivered again.
	Failures *int32     `json:"failures"`
	Attempts *int32     `json:"attempts"`
	RetryAt  *time.Time `json:"retry_at"`
}

// PoisonFilter chooses among conversations that fail; zero values choose all that are set aside.
type PoisonFilter struct {
	Queue        string
	Conversation parley.UUID
	ServiceName  string
	Contract     string
	SQLState     string // of the last failure that was reported
	ErrorText    string // a part of its text, in any case
	// SetAsideBefore chooses those that are set aside since before that time.
	SetAsideBefore time.Time
	// Failing chooses those whose last failure was reported and is not over, or whose message a web address did not accept, but that are
	// not set aside yet.
	Failing bool
	// Limit bounds how many are read; 0 means all.
	Limit int
}

// ReadPoisonConversations reads the conversations that are set aside, or are failing, those of longest ago first. Only those
// of queues that the role may receive from are among them.
func ReadPoisonConversations(ctx context.Context, db parley.DB, filter PoisonFilter) ([]PoisonConversation, error) {
	from := `(select p.*, null::integer as failures, null::integer as attempts, null::timestamptz as retry_at
		from parley.poison_conversations as p) as c`
	if filter.Failing {
		from = `(select f.*, null::timestamptz as set_aside_since from parley.failing_conversations as f) as c`
	}
	rows, err := db.Query(ctx, `
		select c.conversation_handle, c.conversation_group_id, c.queue_name, c.service_name, c.far_service, c.service_contract_name,
			c.state, c.message_type_name, c.queuing_order, c.message_sequence_number, c.message_enqueue_time, c.rollbacks,
			c.set_aside_since, c.sqlstate, c.error, c.error_time, c.waiting_messages, c.is_estimated, c.answer,
			c.failures, c.attempts, c.retry_at
		from `+from+`
		where ($1 = '' or c.queue_name = $1) and ($2::uuid is null or c.conversation_handle = $2)
			and ($4 = '' or c.service_name = $4) and ($5 = '' or c.service_contract_name = $5) and ($6 = '' or c.sqlstate = $6)
			and ($7 = '' or strpos(lower(c.error), lower($7)) > 0) and ($8::timestamptz is null or c.set_aside_since < $8)
		order by coalesce(c.set_aside_since, c.error_time), c.conversation_handle
		limit nullif($3, 0)`, filter.Queue, filter.Conversation, filter.Limit, filter.ServiceName, filter.Contract, filter.SQLState,
		filter.ErrorText, moment(filter.SetAsideBefore))
	if err != nil {
		return nil, fmt.Errorf("read the poison conversations: %w", err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c PoisonConversation, err error) {
		err = row.Scan(
			&c.ConversationHandle, &c.ConversationGroupID, &c.Queue, &c.ServiceName, &c.FarService, &c.ServiceContractName,
			&c.State, &c.MessageTypeName, &c.QueuingOrder, &c.MessageSequenceNumber, &c.MessageEnqueueTime, &c.Rollbacks,
			&c.SetAsideSince, &c.SQLState, &c.Error, &c.ErrorTime, &c.WaitingMessages, &c.IsEstimated, &c.Answer,
			&c.Failures, &c.Attempts, &c.RetryAt,
		)
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the poison conversations: %w", err)
	}
	return found, nil
}

// RetryPoison puts a conversation that is set aside back into its queue: all its messages, in their order, behind what
// waits there. Its rollbacks are forgotten. It returns how many messages that are.
//
// Errors: a [parley.Error] with number [parley.ConversationNotFound] when it is not set aside, or [parley.PermissionDenied].
func RetryPoison(ctx context.Context, db parley.DB, handle parley.UUID) (int64, error) {
	var messages int64
	if err := db.QueryRow(ctx, "select parley.retry_poison($1::uuid)", handle).Scan(&messages); err != nil {
		return 0, pgdb.StatementError(err, "retry conversation "+handle.String())
	}
	return messages, nil
}

// DiscardPoisonMessage takes the poisonous message out of a conversation that is set aside, as if it had been received, and
// puts the rest back as [RetryPoison] does. It returns the message.
//
// Errors: as [RetryPoison].
func DiscardPoisonMessage(ctx context.Context, db parley.DB, handle parley.UUID) ([]parley.Message, error) {
	return discardPoison(ctx, db, handle, "conversation_handle => $1, message_only => true")
}

// DiscardPoisonConversation ends a conversation that is set aside with an error, which the far side receives, and returns
// the messages that waited in it. Code and description are as in [parley.EndConversationWithError].
//
// Errors: as [RetryPoison].
func DiscardPoisonConversation(
	ctx context.Context, db parley.DB, handle parley.UUID, code int32, description string,
) ([]parley.Message, error) {
	return discardPoison(ctx, db, handle, "conversation_handle => $1, error_code => $2, description => $3", code, description)
}

func discardPoison(ctx context.Context, db parley.DB, handle parley.UUID, arguments string, values ...any) ([]parley.Message, error) {
	statement := "select " + pgdb.MessageColumns + " from parley.discard_poison(" + arguments + ")"
	rows, err := db.Query(ctx, statement, append([]any{handle}, values...)...)
	if err != nil {
		return nil, pgdb.StatementError(err, "discard conversation "+handle.String())
	}
	messages, err := pgx.CollectRows(rows, pgx.RowToStructByPos[parley.Message])
	if err != nil {
		return nil, pgdb.StatementError(err, "discard conversation "+handle.String())
	}
	return messages, nil
}
