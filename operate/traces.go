package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// Classes of events that [StartTrace] traces, under the names that SQL Server's profiler gives them.
const (
	EventConversation      = "Broker:Conversation"       // 124
	EventConversationGroup = "Broker:Conversation Group" // 136
	EventMessageClassify   = "Broker:Message Classify"   // 141
)

// TraceSettings say what is traced, and for how long at most. The zero value traces everything for an hour.
type TraceSettings struct {
	Events       []string      // such as [EventConversation]; nil for all
	Conversation *parley.UUID  // a handle, a conversation id or a group; nil for all
	Duration     time.Duration // after which nothing more is traced, in whole seconds; 0 for an hour
	MaxEvents    int           // after which nothing more is traced, either; 0 for a million
}

// StartTrace begins to trace, and removes what was traced before. Until [StopTrace] each message costs its sender and its reader more.
//
// Errors: a [parley.Error] with number [parley.PermissionDenied] for whoever has no ALTER TRACE, 5061 when transactions that send or
// receive do
// not finish within ten seconds, 8402 for settings that make no sense.
func StartTrace(ctx context.Context, db parley.DB, settings TraceSettings) error {
	if settings.Duration == 0 {
		settings.Duration = time.Hour
	}
	if settings.MaxEvents == 0 {
		settings.MaxEvents = 1_000_000
	}
	_, err := db.Exec(ctx, `
		select parley.start_trace(
			events => $1::text[], conversation => $2::uuid, seconds => $3::integer, max_events => $4::integer
		)`,
		settings.Events, settings.Conversation, int(settings.Duration/time.Second), settings.MaxEvents)
	if err != nil {
		return pgdb.StatementError(err, "start a trace")
	}
	return nil
}

// StopTrace ends the trace, if one runs. Its events stay until the next one begins.
//
// Errors: as of [StartTrace].
func StopTrace(ctx context.Context, db parley.DB) error {
	if _, err := db.Exec(ctx, "select parley.stop_trace()"); err != nil {
		return pgdb.StatementError(err, "stop the trace")
	}
	return nil
}

// TracedEvent is an event of a trace; as JSON it is a stable format. Fields that an event does not have are nil.
type TracedEvent struct {
	Sequence            int64        `json:"event_sequence"`
	StartTime           time.Time    `json:"start_time"`
	EventClass          int32        `json:"event_class"` // 124, 136 or 141
	EventName           string       `json:"event_name"`
	EventSubclass       int32        `json:"event_subclass"`
	EventSubclassName   string       `json:"event_subclass_name"` // such as "SEND Message"
	ConversationID      *parley.UUID `json:"conversation_id"`
	ConversationHandle  *parley.UUID `json:"conversation_handle"`
	ConversationGroupID *parley.UUID `json:"conversation_group_id"`
	Role                *string      `json:"role_name"` // initiator or target
	State               *string      `json:"state"`     // of that side, afterwards
	ServiceName         *string      `json:"service_name"`
	FarService          *string      `json:"far_service"`
	NextHop             *string      `json:"next_hop"`
	MessageTypeName     *string      `json:"message_type_name"`
	Messages            *int32       `json:"messages"`
	Error               *int32       `json:"error"`
	Text                *string      `json:"text_data"`
	SPID                int32        `json:"spid"`
	LoginName           string       `json:"login_name"`
	ApplicationName     string       `json:"application_name"`
}

// ReadTracedEvents reads what was traced, in order, behind the event with a number; 0 for all. A role that may not trace sees nothing.
func ReadTracedEvents(ctx context.Context, db parley.DB, after int64) ([]TracedEvent, error) {
	rows, err := db.Query(ctx, `
		select e.event_sequence, e.start_time, e.event_class, e.event_name, e.event_subclass, e.event_subclass_name, e.conversation_id,
			e.conversation_handle, e.conversation_group_id, e.role_name, e.state, e.service_name, e.far_service, e.next_hop,
			e.message_type_name, e.messages, e.error, e.text_data, e.spid, e.login_name::text, e.application_name
		from parley.traced_events as e
		where e.event_sequence > $1
		order by e.event_sequence`, after)
	if err != nil {
		return nil, fmt.Errorf("read traced events: %w", err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowToStructByPos[TracedEvent])
	if err != nil {
		return nil, fmt.Errorf("read traced events: %w", err)
	}
	return events, nil
}
