package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// EventNotification is a subscription of a service to an event of a queue; as JSON it is a stable format.
type EventNotification struct {
	Name               string      `json:"name"`
	Queue              string      `json:"queue"`
	Event              string      `json:"event"`
	ToService          string      `json:"to_service"`
	BrokerInstance     *string     `json:"broker_instance"` // nil for any
	FanIn              bool        `json:"fan_in"`
	ConversationHandle parley.UUID `json:"conversation_handle"`
	CreatedAt          time.Time   `json:"created_at"`
}

// ReadEventNotifications reads all event notifications, sorted by queue and name.
func ReadEventNotifications(ctx context.Context, db parley.DB) ([]EventNotification, error) {
	rows, err := db.Query(ctx, `
		select n.name, n.queue_name, n.type_desc, n.service_name, n.broker_instance, n.is_fan_in, n.conversation_handle, n.create_date
		from parley.event_notifications as n
		order by n.queue_name, n.name`)
	if err != nil {
		return nil, fmt.Errorf("read the event notifications: %w", err)
	}
	notifications, err := pgx.CollectRows(rows, pgx.RowToStructByPos[EventNotification])
	if err != nil {
		return nil, fmt.Errorf("read the event notifications: %w", err)
	}
	return notifications, nil
}
