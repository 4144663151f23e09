package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// Endpoint is one side of a conversation; as JSON it is a stable format.
type Endpoint struct {
	ConversationHandle  parley.UUID `json:"conversation_handle"`
	ConversationID      parley.UUID `json:"conversation_id"` // the same on both sides
	ConversationGroupID parley.UUID `json:"conversation_group_id"`
	IsInitiator         bool        `json:"is_initiator"`
	ServiceName         string      `json:"service_name"`
	FarService          string      `json:"far_service"`
	ServiceContractName string      `json:"service_contract_name"`
	State               string      `json:"state"` // such as CO
	StateDesc           string      `json:"state_desc"`
	StateSince          *time.Time  `json:"state_since"` // nil once closed
	BegunAt             *time.Time  `json:"begun_at"`    // nil once closed
	Lifetime            time.Time   `json:"lifetime"`    // its end
	Priority            int16       `json:"priority"`
}

// EndpointFilter chooses among the sides of conversations; zero values choose all.
type EndpointFilter struct {
	ServiceName string
	State       string // a code such as CO
	// LeaveOutClosed leaves out sides that are closed (CD) and only remembered for a while.
	LeaveOutClosed bool
	// Limit bounds how many are read; 0 means all.
	Limit int
}

// ReadEndpoints reads sides of conversations, those that changed their state last first, closed ones last. Only those of
// the role's own services, and of roles it is a member of, are among them; administrators see all.
func ReadEndpoints(ctx context.Context, db parley.DB, filter EndpointFilter) ([]Endpoint, error) {
	rows, err := db.Query(ctx, `
		select e.conversation_handle, e.conversation_id, e.conversation_group_id, e.is_initiator = 1, coalesce(e.service_name, ''),
			e.far_service, coalesce(e.service_contract_name, ''), e.state, e.state_desc, e.state_since, e.begun_at, e.lifetime, e.priority
		from parley.conversation_endpoints as e
		where ($1 = '' or e.service_name = $1) and ($2 = '' or e.state = $2) and not ($4 and e.state = 'CD')
		order by e.state_since desc nulls last, e.conversation_handle
		limit nullif($3, 0)`, filter.ServiceName, filter.State, filter.Limit, filter.LeaveOutClosed)
	if err != nil {
		return nil, fmt.Errorf("read the conversations: %w", err)
	}
	endpoints, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e Endpoint, err error) {
		err = row.Scan(
			&e.ConversationHandle, &e.ConversationID, &e.ConversationGroupID, &e.IsInitiator, &e.ServiceName,
			&e.FarService, &e.ServiceContractName, &e.State, &e.StateDesc, &e.StateSince, &e.BegunAt, &e.Lifetime, &e.Priority,
		)
		return e, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the conversations: %w", err)
	}
	return endpoints, nil
}

// StuckConversation is one side of a conversation that waits for somebody; as JSON it is a stable format.
type StuckConversation struct {
	ConversationHandle  parley.UUID `json:"conversation_handle"`
	ConversationGroupID parley.UUID `json:"conversation_group_id"`
	ServiceName         string      `json:"service_name"`
	FarService          string      `json:"far_service"`
	State               string      `json:"state"`
	StateSince          time.Time   `json:"state_since"`
	Waiting             int64       `json:"waiting"` // messages to be received on this side
	Reason              string      `json:"reason"`
	Remedy              string      `json:"remedy"` // what to do, often a statement
}

// ReadStuckConversations reads the sides of conversations that wait for somebody: not ended, not read, not deliverable;
// those that have waited longest first.
func ReadStuckConversations(ctx context.Context, db parley.DB, filter EndpointFilter) ([]StuckConversation, error) {
	rows, err := db.Query(ctx, `
		select s.conversation_handle, s.conversation_group_id, s.service_name, s.far_service, s.state, s.state_since,
			s.waiting, s.reason, s.remedy
		from parley.stuck_conversations as s
		where ($1 = '' or s.service_name = $1) and ($2 = '' or s.state = $2)
		order by s.state_since, s.conversation_handle
		limit nullif($3, 0)`, filter.ServiceName, filter.State, filter.Limit)
	if err != nil {
		return nil, fmt.Errorf("read the stuck conversations: %w", err)
	}
	stuck, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s StuckConversation, err error) {
		err = row.Scan(
			&s.ConversationHandle, &s.ConversationGroupID, &s.ServiceName, &s.FarService, &s.State, &s.StateSince,
			&s.Waiting, &s.Reason, &s.Remedy,
		)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the stuck conversations: %w", err)
	}
	return stuck, nil
}
