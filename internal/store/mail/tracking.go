package mail

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// EventFilter chooses events of messages; what is empty is no condition. Texts in which * stands for anything are compared without
// regard to case.
type EventFilter struct {
	// Message is the number of a message, MessageID that of its header.
	Message           int64
	MessageID         string
	Sender, Recipient string
	Event, Source     string
	// Tag is the tag that the submitter gave.
	Tag          string
	Since, Until *time.Time
	Limit        int // 0 for all
	// Sort is a column, which may have :desc behind it; without one the oldest event is the first.
	Sort string
}

// EventNames are the kinds of events, and EventSources what sees them, as docs/mail/operations.md has them.
var (
	EventNames = []string{
		"RECEIVE", "SUBMIT", "DSN", "AGENTINFO", "SUBMITDEFER", "RESUBMITDEFER", "SUBMITFAIL", "RESUBMITFAIL", "RESOLVE", "EXPAND", "REDIRECT",
		"DUPLICATEEXPAND", "DUPLICATEREDIRECT", "TRANSFER", "DEFER", "THROTTLE", "UNKNOWN", "SEND", "DELIVER", "DUPLICATEDELIVER", "FAIL",
		"DELIVERFAIL", "BADMAIL", "POISONMESSAGE", "SUSPEND", "RESUME", "RESUBMIT", "DROP", "LOAD",
	}
	EventSources = []string{
		"SMTP", "SQL", "HTTP", "PICKUP", "REPLAY", "DSN", "AGENT", "RESOLVER", "ROUTING", "QUEUE", "STOREDRIVER", "ADMIN", "BOOTLOADER",
		"POISONMESSAGE",
	}
)

// EventColumns are the columns of events, in the order of Event and of message tracking logs.
var EventColumns = []string{
	"date_time", "client_ip", "client_hostname", "server_ip", "server_hostname", "source_context", "connector_id", "source", "event_id",
	"internal_message_id", "message_id", "network_message_id", "recipient_address", "recipient_status", "total_bytes", "recipient_count",
	"related_recipient_address", "reference", "message_subject", "sender_address", "return_path", "message_info", "directionality",
	"original_client_ip", "original_server_ip", "custom_data", "traffic_type", "log_id", "schema_version",
}

// eventOrder gives the text behind ORDER BY: only columns of the list.
func eventOrder(sort string) (string, error) {
	if sort == "" {
		return "", nil
	}
	column, direction, _ := strings.Cut(strings.ToLower(sort), ":")
	if !slices.Contains(EventColumns, column) || !slices.Contains([]string{"", "asc", "desc"}, direction) {
		return "", fmt.Errorf("%q is nothing to sort by: give a column, and :desc behind it for what is last first; columns are %s",
			sort, strings.Join(EventColumns, ", "))
	}
	order := column + " " + direction + " nulls last, "
	if column == "internal_message_id" || column == "log_id" { // Numbers, as texts.
		order = "length(" + column + ") " + direction + ", " + order
	}
	return order, nil
}

// Event is something that has happened to a message, with its fields in the order of message tracking logs.
type Event struct {
	DateTime          time.Time `json:"date_time"`
	ClientIP          *string   `json:"client_ip"`
	ClientHostname    *string   `json:"client_hostname"`
	ServerIP          *string   `json:"server_ip"`
	ServerHostname    *string   `json:"server_hostname"`
	SourceContext     *string   `json:"source_context"`
	ConnectorID       *string   `json:"connector_id"`
	Source            string    `json:"source"`
	EventID           string    `json:"event_id"`
	InternalMessageID *string   `json:"internal_message_id"`
	MessageID         *string   `json:"message_id"`
	NetworkMessageID  *string   `json:"network_message_id"`
	RecipientAddress  []string  `json:"recipient_address"`
	RecipientStatus   []string  `json:"recipient_status"`
	TotalBytes        *int64    `json:"total_bytes"`
	RecipientCount    int       `json:"recipient_count"`
	RelatedRecipient  *string   `json:"related_recipient_address" db:"related_recipient_address"`
	Reference         *string   `json:"reference"`
	MessageSubject    *string   `json:"message_subject"`
	SenderAddress     *string   `json:"sender_address"`
	ReturnPath        *string   `json:"return_path"`
	MessageInfo       *string   `json:"message_info"`
	Directionality    *string   `json:"directionality"`
	OriginalClientIP  *string   `json:"original_client_ip"`
	OriginalServerIP  *string   `json:"original_server_ip"`
	CustomData        *string   `json:"custom_data"`
	TrafficType       *string   `json:"traffic_type"`
	LogID             *string   `json:"log_id"`
	SchemaVersion     *string   `json:"schema_version"`
}

// Events gives events of messages to a function, as they arrive.
func Events(ctx context.Context, db pgdb.DB, f EventFilter, do func(Event) error) error {
	order, err := eventOrder(f.Sort)
	if err != nil {
		return err
	}
	return each(ctx, db, "read events of messages", do, `
		select `+strings.Replace(strings.Join(EventColumns, ", "), "custom_data", "custom_data::text", 1)+`
		from parley_mail.tracking
		where ($1::bigint = 0 or internal_message_id = $1::bigint::text)
			and ($2::text = '' or message_id = $2)
			and ($3::text = '' or lower(sender_address) like $3 escape '!')
			and ($4::text = '' or exists (select from unnest(recipient_address) as r (address) where lower(r.address) like $4 escape '!'))
			and ($5::text = '' or event_id = upper($5))
			and ($6::text = '' or source = upper($6))
			and ($7::timestamptz is null or date_time >= $7)
			and ($8::timestamptz is null or date_time < $8)
			and ($10::text = '' or lower(custom_data ->> 'tag') like $10 escape '!')
		order by `+order+`date_time, internal_message_id
		limit nullif($9::integer, 0)`,
		f.Message, f.MessageID, pattern(f.Sender), pattern(f.Recipient), f.Event, f.Source, f.Since, f.Until, f.Limit,
		pattern(f.Tag))
}

// Unstored is an event of a message that is not stored; what is empty is not known.
type Unstored struct {
	// Event is BADMAIL or DROP.
	Event            string     `json:"event"`
	Source           string     `json:"source"`
	Connector        string     `json:"connector,omitempty"`
	Text             string     `json:"text,omitempty"`
	Sender           string     `json:"sender,omitempty"`
	Recipients       []string   `json:"recipients,omitempty"`
	HeaderMessageID  string     `json:"header_message_id,omitempty"`
	NetworkMessageID string     `json:"network_message_id,omitempty"`
	Subject          string     `json:"subject,omitempty"`
	ClientIP         string     `json:"client_ip,omitempty"`
	ArrivedAt        string     `json:"arrived_at,omitempty"`
	Helo             string     `json:"helo,omitempty"`
	Bytes            int64      `json:"bytes,omitempty"`
	ReceivedAt       *time.Time `json:"received_at,omitempty"`
}

// TrackUnstored records an event of a message that is not stored.
func TrackUnstored(ctx context.Context, db pgdb.DB, event Unstored) error {
	return run(ctx, db, "record an event of a message that is not stored", `
		select parley_mail._p_track_unstored(happened => $1::jsonb)`, document{event})
}

// pattern writes a text in which * stands for anything as LIKE has it.
func pattern(text string) string { return likeEscapes.Replace(strings.ToLower(text)) }

var likeEscapes = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_", "*", "%")
