package metrics

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-broker/parley/internal/pgdb"
)

// BrokerMetrics are figures of a whole broker, for monitoring systems. docs/guides/monitoring.md states what each is made of.
type BrokerMetrics struct {
	SchemaVersion             int      `json:"schema_version"`
	ConversationEndpoints     int64    `json:"conversation_endpoints"` // beyond 10,000 an estimate, as the two below
	TimersPending             int64    `json:"timers_pending"`
	TimersLate                int64    `json:"timers_late"` // due for more than a second, counted up to 10,000
	TimerOldestDueSeconds     *float64 `json:"timer_oldest_due_seconds"`
	TransmissionMessages      int64    `json:"transmission_messages"`
	TransmissionOldestSeconds *float64 `json:"transmission_oldest_seconds"`
	// CertificateNotAfter is when the certificate of a daemon expires, the first of them, in seconds since 1970; nil without any.
	CertificateNotAfter *float64 `json:"certificate_not_after"`
	// Of the message store, by PostgreSQL's statistics: a row is a message or a frame of a batch.
	RowsInserted           int64          `json:"rows_inserted"`
	RowsDeleted            int64          `json:"rows_deleted"`
	RowsDead               int64          `json:"rows_dead"`
	StoreBytes             int64          `json:"store_bytes"`
	Receives               int64          `json:"receives"` // that found messages
	TransactionsRolledBack int64          `json:"transactions_rolled_back"`
	Queues                 []QueueMetrics `json:"queues"` // not the broker's own; by QueueID
}

// QueueMetrics are figures of one queue.
type QueueMetrics struct {
	QueueID          int    `json:"queue_id"`
	Queue            string `json:"queue"`
	IsReceiveEnabled bool   `json:"is_receive_enabled"`
	IsPoisoned       bool   `json:"is_poisoned"`
	SetAside         int64  `json:"set_aside_conversations"` // by poison message handling
	IsActivated      bool   `json:"is_activated"`
	MaxReaders       int    `json:"max_readers"`
	// EnqueuedRows only grows; DequeuedRows may fall a little when it rests on estimates.
	EnqueuedRows    int64    `json:"enqueued_rows"`
	DequeuedRows    int64    `json:"dequeued_rows"`
	WaitingMessages int64    `json:"waiting_messages"`
	IsEstimated     bool     `json:"is_estimated"`
	OldestSeconds   *float64 `json:"oldest_seconds"` // nil when nothing waits
}

// ReadBrokerMetrics reads all figures in one statement, whose cost does not grow with what waits in the queues.
//
// Errors: a [pgdb.Error] with number parley.PermissionDenied for roles that are neither administrators nor members of pg_monitor.
func ReadBrokerMetrics(ctx context.Context, db pgdb.DB) (BrokerMetrics, error) {
	var document []byte
	err := db.QueryRow(ctx, "select parley.broker_metrics()").Scan(&document)
	if err != nil {
		return BrokerMetrics{}, pgdb.StatementError(err, "read the metrics of the broker")
	}
	var m BrokerMetrics
	if err := json.Unmarshal(document, &m); err != nil {
		return BrokerMetrics{}, fmt.Errorf("read the metrics of the broker: %w", err)
	}
	return m, nil
}
