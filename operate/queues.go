package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// Status of a queue, as [QueueStatus] returns it.
const (
	QueueOn       = "ON"
	QueueOff      = "OFF"      // by ALTER QUEUE
	QueuePoisoned = "POISONED" // by poison message handling
)

// QueueStatus is the state of a queue as seen from outside; as JSON it is a stable format.
type QueueStatus struct {
	Queue    string   `json:"queue"` // name as the statements take it
	QueueID  int32    `json:"queue_id"`
	IsSystem bool     `json:"is_system"` // the broker's own
	Status   string   `json:"status"`    // ON, OFF or POISONED
	Services []string `json:"services"`  // bound to the queue, by name
	// ReadersPausedAt is since when its readers are paused; nil when they are not.
	ReadersPausedAt *time.Time `json:"readers_paused_at"`
	// How much it may hold before senders are refused; nil is no limit.
	QuotaMessages *int64 `json:"quota_messages"`
	QuotaBytes    *int64 `json:"quota_bytes"`

	Retention             bool    `json:"retention"`
	PoisonMessageHandling bool    `json:"poison_message_handling"`
	PoisonAction          string  `json:"poison_action"` // SET_ASIDE or DISABLE_QUEUE
	PoisonRollbacks       int32   `json:"poison_rollbacks"`
	SetAsideConversations int64   `json:"set_aside_conversations"`
	Activation            bool    `json:"activation"`
	ActivationProcedure   *string `json:"activation_procedure"`
	MaxQueueReaders       int32   `json:"max_queue_readers"`

	// The program or address that the daemon starts outside of the database; nil and 0 when that is nothing, or the role may not view the
	// queue's definition.
	ExternalActivation *string `json:"external_activation"` // program or webhook
	ExternalEnabled    bool    `json:"external_enabled"`
	MaxInstances       int32   `json:"max_instances"`

	// The backlog is nil for roles that may not receive from the queue.
	Backlog *QueueBacklog `json:"backlog"`
}

// QueueBacklog counts the messages that wait in a queue.
type QueueBacklog struct {
	WaitingMessages int64 `json:"waiting_messages"` // ready to be received
	HeldMessages    int64 `json:"held_messages"`    // arrived while the queue was off, still the senders'
	DelayedMessages int64 `json:"delayed_messages"` // not due yet
	// Of a simple queue, how many failed and wait for another attempt, and how many are set aside; counted up to 100,000.
	RetryingMessages int64 `json:"retrying_messages"`
	SetAsideMessages int64 `json:"set_aside_messages"`
	// IsEstimated reports that the numbers are estimates, within a few percent: beyond some 10,000 rows nothing is counted.
	IsEstimated       bool       `json:"is_estimated"`
	OldestEnqueueTime *time.Time `json:"oldest_enqueue_time"`
	OldestSeconds     *float64   `json:"oldest_seconds"` // since then, by the clock of the database
	// Rollbacks counts how often the message at the head came back; at RollbacksBeforeDisable its conversation is set
	// aside, or the queue disabled.
	Rollbacks              int32 `json:"rollbacks"`
	RollbacksBeforeDisable int32 `json:"rollbacks_before_disable"`
}

// ReadQueues reads the status of all queues, the broker's own last. The cost does not grow with what waits in them.
func ReadQueues(ctx context.Context, db parley.DB) ([]QueueStatus, error) {
	return readQueues(ctx, db, true)
}

// ReadQueueSettings reads what [ReadQueues] does but how much waits in the queues: each Backlog is nil.
func ReadQueueSettings(ctx context.Context, db parley.DB) ([]QueueStatus, error) {
	return readQueues(ctx, db, false)
}

func readQueues(ctx context.Context, db parley.DB, withBacklogs bool) ([]QueueStatus, error) {
	rows, err := db.Query(ctx, `
		select
			case q.schema_name when 'dbo' then q.name else q.schema_name || '.' || q.name end,
			q.object_id, q.is_ms_shipped,
			case when q.is_receive_enabled then 'ON' when q.is_enqueue_enabled then 'POISONED' else 'OFF' end,
			q.readers_paused_at, q.quota_messages, q.quota_bytes,
			array(select s.name from parley.services as s where s.service_queue_id = q.object_id order by s.name),
			q.is_retention_enabled, q.is_poison_message_handling_enabled,
			q.poison_action, q.poison_rollbacks, q.set_aside_conversations, q.is_activation_enabled, q.activation_procedure, q.max_readers,
			x.kind, coalesce(x.is_enabled, false), coalesce(x.max_instances, 0),
			b.service_queue_id is not null, coalesce(b.waiting_messages, 0), coalesce(b.held_messages, 0), coalesce(b.delayed_messages, 0),
			coalesce(m.retrying_messages, 0), coalesce(m.set_aside_messages, 0),
			coalesce(b.is_estimated, false),
			b.oldest_enqueue_time, extract(epoch from clock_timestamp() - b.oldest_enqueue_time)::float8,
			coalesce(b.rollbacks, 0), coalesce(b.rollbacks_before_disable, 0)
		from parley.service_queues as q
		left join (
			select n.*
			from parley.queue_backlogs() as n
			where $1::boolean
		) as b on b.service_queue_id = q.object_id
		left join (
			select n.service_queue_id, n.retrying_messages, n.set_aside_messages
			from parley.simple_queues as n
			where $1::boolean
		) as m on m.service_queue_id = q.object_id
		left join parley.external_activations as x on x.service_queue_id = q.object_id
		order by q.is_ms_shipped, q.schema_name <> 'dbo', q.schema_name, q.name`, withBacklogs)
	if err != nil {
		return nil, fmt.Errorf("read the queues: %w", err)
	}
	queues, err := pgx.CollectRows(rows, scanQueueStatus)
	if err != nil {
		return nil, fmt.Errorf("read the queues: %w", err)
	}
	return queues, nil
}

func scanQueueStatus(row pgx.CollectableRow) (QueueStatus, error) {
	var q QueueStatus
	var b QueueBacklog
	var maySee bool
	err := row.Scan(
		&q.Queue, &q.QueueID, &q.IsSystem, &q.Status, &q.ReadersPausedAt, &q.QuotaMessages, &q.QuotaBytes, &q.Services, &q.Retention,
		&q.PoisonMessageHandling, &q.PoisonAction, &q.PoisonRollbacks, &q.SetAsideConversations,
		&q.Activation, &q.ActivationProcedure, &q.MaxQueueReaders,
		&q.ExternalActivation, &q.ExternalEnabled, &q.MaxInstances,
		&maySee, &b.WaitingMessages, &b.HeldMessages, &b.DelayedMessages, &b.RetryingMessages, &b.SetAsideMessages,
		&b.IsEstimated, &b.OldestEnqueueTime, &b.OldestSeconds,
		&b.Rollbacks, &b.RollbacksBeforeDisable,
	)
	if maySee {
		q.Backlog = &b
	}
	return q, err
}
