package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Scope chooses rows of views; what is empty chooses all.
type Scope struct {
	Application, Host, ReceivePort, Location, SendPort, State, MessageType string
}

// SendPort is a send port and what waits for it.
type SendPort struct {
	Name          string     `json:"name"`
	Application   string     `json:"application"`
	Host          string     `json:"host"`
	State         string     `json:"state"`
	StoppedFor    *string    `json:"stopped_for"`
	Adapter       string     `json:"adapter"`
	Address       string     `json:"address"`
	Pipeline      string     `json:"pipeline"`
	Priority      int        `json:"priority"`
	IsOrdered     bool       `json:"is_ordered"`
	OrderKey      *string    `json:"order_key"`
	OnFailure     string     `json:"on_failure"`
	RetryPolicy   *string    `json:"retry_policy"`
	Waiting       int64      `json:"waiting"`
	Failing       int64      `json:"failing"`
	SentPerSecond float64    `json:"sent_per_second"`
	Oldest        *time.Time `json:"oldest"`
	Suspended     int64      `json:"suspended"`
	HeldKeys      int64      `json:"held_keys"`
	NextAttemptAt *time.Time `json:"next_attempt_at"`
	LastError
	IsClosed bool       `json:"is_closed"`
	OpensAt  *time.Time `json:"opens_at"`
}

// LastError is the last failure of a port or location. RecoveredAt is when it worked after that; nil: it has not yet.
type LastError struct {
	Text        *string    `json:"last_error"`
	At          *time.Time `json:"last_error_at"`
	RecoveredAt *time.Time `json:"recovered_at"`
}

// SendPorts gives send ports by their names.
func SendPorts(ctx context.Context, db pgdb.DB, scope Scope) ([]SendPort, error) {
	return collect[SendPort](ctx, db, "read send ports", `
		select name, application, host, state, stopped_for, adapter, address, pipeline, priority, is_ordered, order_key,
			on_failure, retry_policy, waiting, failing, sent_per_second::float8, oldest, suspended, held_keys, next_attempt_at, last_error,
			last_error_at, recovered_at, is_closed, opens_at
		from parley_flow.send_ports
		where ($1::text = '' or application = $1::text) and ($2::text = '' or host = $2::text)
			and ($3::text = '' or lower(state) = lower($3::text))
		order by name`, scope.Application, scope.Host, scope.State)
}

// Location is a receive location, and how it was doing when a node last reported.
type Location struct {
	Name         string     `json:"name"`
	ReceivePort  string     `json:"receive_port"`
	Application  string     `json:"application"`
	Host         string     `json:"host"`
	IsEnabled    bool       `json:"is_enabled"`
	Adapter      string     `json:"adapter"`
	Address      string     `json:"address"`
	Pipeline     string     `json:"pipeline"`
	FailingSince *time.Time `json:"failing_since"`
	LastError
	Node       *string    `json:"node"`
	ReportedAt *time.Time `json:"reported_at"`
	IsClosed   bool       `json:"is_closed"`
	OpensAt    *time.Time `json:"opens_at"`
}

// Locations gives receive locations by their names.
func Locations(ctx context.Context, db pgdb.DB, scope Scope) ([]Location, error) {
	return collect[Location](ctx, db, "read receive locations", `
		select name, receive_port, application, host, is_enabled, adapter, address, pipeline, failing_since, last_error, last_error_at,
			recovered_at, node, reported_at, is_closed, opens_at
		from parley_flow.receive_locations
		where ($1::text = '' or application = $1::text) and ($2::text = '' or host = $2::text) and ($3::text = '' or receive_port = $3::text)
		order by name`, scope.Application, scope.Host, scope.ReceivePort)
}

// HostNode is a host and a node that serves it, or served it last; Node is nil where none ever did.
type HostNode struct {
	Host       string          `json:"host"`
	Role       *string         `json:"role"`
	Node       *string         `json:"node"`
	IsThere    bool            `json:"is_there"`
	StartedAt  *time.Time      `json:"started_at"`
	ReportedAt *time.Time      `json:"reported_at"`
	Report     json.RawMessage `json:"report"`
}

// Hosts gives hosts by their names, with the nodes that serve them.
func Hosts(ctx context.Context, db pgdb.DB, scope Scope) ([]HostNode, error) {
	return collect[HostNode](ctx, db, "read hosts", `
		select host, role, node, is_there, started_at, reported_at, coalesce(report, '{}')
		from parley_flow.hosts
		where $1::text = '' or host = $1::text
		order by host, is_there desc, node`, scope.Host)
}

// Message is a message that is there, without its body.
type Message struct {
	MessageID     int64           `json:"message_id"`
	InterchangeID int64           `json:"interchange_id"`
	ParentID      *int64          `json:"parent_id"`
	ReceivedAt    time.Time       `json:"received_at"`
	Application   *string         `json:"application"`
	ReceivePort   *string         `json:"receive_port"`
	Location      *string         `json:"location"`
	PublishedBy   *string         `json:"published_by"`
	MessageType   *string         `json:"message_type"`
	Size          int64           `json:"size"`
	Deliveries    int             `json:"deliveries"`
	Parts         int             `json:"parts"`
	Promoted      json.RawMessage `json:"promoted"`
}

// Messages gives messages that are there, the newest first, of those with smaller numbers than before; 0 is no bound.
func Messages(ctx context.Context, db pgdb.DB, scope Scope, top int, before int64) ([]Message, error) {
	filter := map[string]string{}
	for condition, value := range map[string]string{
		"application": scope.Application, "receive_port": scope.ReceivePort, "location": scope.Location, "message_type": scope.MessageType,
	} {
		if value != "" {
			filter[condition] = value
		}
	}
	written, err := json.Marshal(filter)
	if err != nil {
		return nil, fmt.Errorf("write the filter: %w", err)
	}
	return collect[Message](ctx, db, "read messages", `
		select message_id, interchange_id, parent_id, received_at, application, receive_port, location, published_by, message_type, size,
			deliveries, parts, promoted
		from parley_flow.messages_matching(filter => $1::jsonb, top => $2::integer, before => nullif($3::bigint, 0))`,
		written, top, before)
}

// RoutingFailure is a cause for which messages matched nothing.
type RoutingFailure struct {
	CauseID         int64           `json:"cause_id"`
	ReceivePort     *string         `json:"receive_port"`
	Location        *string         `json:"location"`
	MessageType     *string         `json:"message_type"`
	Explanation     string          `json:"explanation"`
	SendPort        *string         `json:"send_port"`
	PortGroup       *string         `json:"port_group"`
	Receive         *string         `json:"receive"`
	Missed          json.RawMessage `json:"missed"`
	Failures        int64           `json:"failures"`
	FirstAt         time.Time       `json:"first_at"`
	LastAt          time.Time       `json:"last_at"`
	SampleMessageID *int64          `json:"sample_message_id"`
	Sample          json.RawMessage `json:"sample"`
	Remedy          string          `json:"remedy"`
}

// RoutingFailures gives causes, the one that struck last first.
func RoutingFailures(ctx context.Context, db pgdb.DB, scope Scope) ([]RoutingFailure, error) {
	return collect[RoutingFailure](ctx, db, "read failures of routing", `
		select cause_id, receive_port, location, message_type, explanation, send_port, port_group, receive, coalesce(missed, 'null'),
			failures::bigint, first_at, last_at, sample_message_id, coalesce(sample, 'null'), remedy
		from parley_flow.routing_failures
		where ($1::text = '' or receive_port = $1::text) and ($2::text = '' or location = $2::text)
			and ($3::text = '' or message_type = $3::text)
		order by last_at desc, cause_id`, scope.ReceivePort, scope.Location, scope.MessageType)
}

// Subscription is an AND group of a filter, by which messages are routed to a send port.
type Subscription struct {
	SendPort    string          `json:"send_port"`
	Application string          `json:"application"`
	State       string          `json:"state"`
	PortGroup   *string         `json:"port_group"`
	Ordinal     int             `json:"ordinal"`
	Predicates  json.RawMessage `json:"predicates"`
}

// Subscriptions gives the AND groups of send ports.
func Subscriptions(ctx context.Context, db pgdb.DB, scope Scope) ([]Subscription, error) {
	return collect[Subscription](ctx, db, "read subscriptions", `
		select send_port, application, state, port_group, ordinal, coalesce(predicates, '[]')
		from parley_flow.subscriptions
		where ($1::text = '' or application = $1::text) and ($2::text = '' or send_port = $2::text)
		order by send_port, port_group nulls first, ordinal`, scope.Application, scope.SendPort)
}

// Event is a step on the way of a message.
type Event struct {
	At       time.Time       `json:"at"`
	Message  int64           `json:"message_id"`
	Relation string          `json:"relation"`
	Event    string          `json:"event"`
	Host     *string         `json:"host"`
	SendPort *string         `json:"send_port"`
	Location *string         `json:"location"`
	Fields   json.RawMessage `json:"fields"`
}

// Track gives the way of a message, and of those that it was made of or that were made of it.
func Track(ctx context.Context, db pgdb.DB, message int64) ([]Event, error) {
	return collect[Event](ctx, db, "track a message", `
		select at, message, relation, event, host, send_port, location, coalesce(fields, '{}')
		from parley_flow.track($1::bigint)`, message)
}

// Tracked is a message with a value of a tracked property.
type Tracked struct {
	MessageID int64     `json:"message_id"`
	At        time.Time `json:"at"`
}

// TrackedProperties gives the properties that are tracked, and whether one is declared.
func TrackedProperties(ctx context.Context, db pgdb.DB, property string) (tracked []string, isDeclared bool, err error) {
	err = db.QueryRow(ctx, `
		select coalesce(array_agg(p.name order by p.name) filter (where p.is_tracked), '{}'), coalesce(bool_or(p.name = $1), false)
		from (
			select d.name || '#' || e.key as name, (e.value ->> 'tracked')::boolean as is_tracked
			from parley_flow.definitions as d
			cross join lateral jsonb_each(d.effective_settings -> 'properties') as e
			where d.kind = 'property schema'
		) as p`, property).Scan(&tracked, &isDeclared)
	if err != nil {
		return nil, false, pgdb.StatementError(err, "find properties that are tracked")
	}
	return tracked, isDeclared, nil
}

// FindTracked gives messages with a value of a tracked property.
func FindTracked(ctx context.Context, db pgdb.DB, property, value string, top int) ([]Tracked, error) {
	return collect[Tracked](ctx, db, "find messages by a property", `
		select message_id, at from parley_flow.find_tracked(property => $1::text, value => $2::text, top => $3::integer)`, property, value, top)
}
