package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// DaemonReport holds the facts that a daemon knows and its database does not.
type DaemonReport struct {
	// Endpoint is where the daemon listens; nil when it does not.
	Endpoint    *EndpointReport
	Connections []ConnectionReport
	Forwarded   []ForwardedReport
	Figures     Figures
}

// EndpointReport is the row of a daemon in parley.service_broker_endpoints and parley.tcp_endpoints.
type EndpointReport struct {
	IPAddress string `json:"ip_address"`
	Port      int    `json:"port"`
	// Forwards reports that messages for others are passed on, of which so many megabytes may be in memory at a time.
	Forwards      bool  `json:"forwards"`
	ForwardSizeMB int64 `json:"forward_size_mb"`
}

// ConnectionReport is a row of parley.dm_broker_connections. Times are nil as long as it has not come so far.
type ConnectionReport struct {
	ConnectionID            pgdb.UUID  `json:"connection_id"`
	State                   int        `json:"state"`
	ConnectTime             *time.Time `json:"connect_time"`
	LoginTime               *time.Time `json:"login_time"`
	LastActivityTime        *time.Time `json:"last_activity_time"`
	AuthenticationMethod    string     `json:"authentication_method"`
	RemoteUserName          string     `json:"remote_user_name"`
	IsAccept                bool       `json:"is_accept"`
	EncryptionAlgorithm     *string    `json:"encryption_algorithm_desc"`
	ReceivesPosted          int        `json:"receives_posted"`
	SendsPosted             int        `json:"sends_posted"`
	IsReceiveFlowControlled bool       `json:"is_receive_flow_controlled"`
	IsSendFlowControlled    bool       `json:"is_send_flow_controlled"`
	TotalBytesSent          int64      `json:"total_bytes_sent"`
	TotalBytesReceived      int64      `json:"total_bytes_received"`
	TotalFragmentsSent      int64      `json:"total_fragments_sent"`
	TotalFragmentsReceived  int64      `json:"total_fragments_received"`
	TotalSends              int64      `json:"total_sends"`
	TotalReceives           int64      `json:"total_receives"`
	Address                 string     `json:"address"`
	Software                string     `json:"software"`
}

// ForwardedReport is a row of parley.dm_broker_forwarded_messages. Times are in seconds.
type ForwardedReport struct {
	ConversationID  pgdb.UUID  `json:"conversation_id"`
	IsInitiator     bool       `json:"is_initiator"`
	ToService       string     `json:"to_service_name"`
	ToBroker        *pgdb.UUID `json:"to_broker_instance"`
	FromService     string     `json:"from_service_name"`
	AdjacentAddress string     `json:"adjacent_broker_address"`
	Sequence        int64      `json:"message_sequence_number"`
	HopsRemaining   int        `json:"hops_remaining"`
	TimeToLive      int        `json:"time_to_live"`
	TimeConsumed    int        `json:"time_consumed"`
}

// ReportDaemon reports to a database what a daemon knows, in place of its earlier reports. The id distinguishes daemons.
func ReportDaemon(ctx context.Context, db pgdb.DB, id pgdb.UUID, name string, report DaemonReport) error {
	var parts [4]string
	for i, part := range []any{report.Endpoint, nonNil(report.Connections), nonNil(report.Forwarded), report.Figures} {
		text, err := json.Marshal(part)
		if err != nil {
			return fmt.Errorf("report to the database: %w", err)
		}
		parts[i] = string(text)
	}
	_, err := db.Exec(ctx,
		`
			select parley._p_report_daemon(
				daemon_id => $1::uuid, daemon => $2::text, endpoint => $3::text::jsonb, connections => $4::text::jsonb,
				forwarded => $5::text::jsonb, figures => $6::text::jsonb
			)`,
		id, name, parts[0], parts[1], parts[2], parts[3])
	if err != nil {
		return pgdb.StatementError(err, "report to the database")
	}
	return nil
}

// ForgetDaemon takes back what a daemon has reported: it stops.
func ForgetDaemon(ctx context.Context, db pgdb.DB, id pgdb.UUID) error {
	if _, err := db.Exec(ctx, "select parley._p_forget_daemon($1::uuid)", id); err != nil {
		return pgdb.StatementError(err, "take a report back")
	}
	return nil
}

// nonNil gives an empty list for none: JSON distinguishes them.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
