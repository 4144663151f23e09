package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// PooledConversation is a conversation that [parley.GetConversation] returns; as JSON it is a stable format.
type PooledConversation struct {
	ConversationHandle parley.UUID `json:"conversation_handle"`
	FromService        string      `json:"from_service"`
	ToService          string      `json:"to_service"`
	Contract           string      `json:"contract"`
	Key                *string     `json:"key"`    // nil without a key
	Number             *int32      `json:"number"` // among those without a key
	State              string      `json:"state"`  // such as CO
	Messages           int64       `json:"messages"`
	BegunAt            time.Time   `json:"begun_at"`
	RetireAt           time.Time   `json:"retire_at"`
	EndAt              *time.Time  `json:"end_at"` // nil when it is just being ended
}

// ReadPooledConversations reads the conversations that are used again, of the roles that the role is a member of, the oldest first.
// A limit of 0 means all.
func ReadPooledConversations(ctx context.Context, db parley.DB, limit int) ([]PooledConversation, error) {
	rows, err := db.Query(ctx, `
		select c.conversation_handle, c.from_service, c.to_service, c.contract, c.key, c.number, c.state, c.messages,
			c.begun_at, c.retire_at, c.end_at
		from parley.pooled_conversations as c
		order by c.begun_at, c.conversation_handle
		limit nullif($1, 0)`, limit)
	if err != nil {
		return nil, fmt.Errorf("read the pooled conversations: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[PooledConversation])
	if err != nil {
		return nil, fmt.Errorf("read the pooled conversations: %w", err)
	}
	return found, nil
}
