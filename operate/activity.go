package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// Activity is the activity of a broker at one moment; as JSON it is a stable format.
type Activity struct {
	At            time.Time              `json:"at"` // by the clock of the database
	Database      string                 `json:"database"`
	Queues        []QueueActivity        `json:"queues"`
	Conversations []ConversationActivity `json:"conversations"`
	Sessions      []SessionActivity      `json:"sessions"`
}

// QueueActivity is the activity of a queue.
type QueueActivity struct {
	Queue           string `json:"queue"` // name as the statements take it
	QueueID         int32  `json:"queue_id"`
	Status          string `json:"status"` // ON, OFF or POISONED
	WaitingMessages int64  `json:"waiting_messages"`
	HeldMessages    int64  `json:"held_messages"`    // arrived while the queue was off
	DelayedMessages int64  `json:"delayed_messages"` // not due yet
	IsEstimated     bool   `json:"is_estimated"`     // within a few percent
	// ReadersPausedAt is since when its readers are paused; nil when they are not.
	ReadersPausedAt *time.Time `json:"readers_paused_at"`
	// OldestSeconds is for how long the oldest message that is ready has waited; nil when there is none.
	OldestSeconds *float64 `json:"oldest_seconds"`
	// EnqueuedRows is how many rows were ever put on the queue; a batch is one row for each page of it.
	EnqueuedRows int64 `json:"enqueued_rows"`
	// MessagesPerRow is of the newest rows that wait.
	MessagesPerRow float64 `json:"messages_per_row"`
	MaxReaders     int32   `json:"max_readers"`     // that activation may start
	RunningReaders int32   `json:"running_readers"` // of the daemon
	Failures       int32   `json:"failures"`        // of its last readers, in a row
	LastError      *string `json:"last_error"`      // of the last of these
	LockedGroups   int32   `json:"locked_groups"`   // among the conversations at the head of the queue
	LockHolders    []int32 `json:"lock_holders"`    // process ids
}

// Rates gives what came and went a second since an earlier reading, so many seconds ago. Rows that were put on the queue count as many
// messages as the rows that wait, or waited, have on average; what came and does not wait any more has gone.
func (q QueueActivity) Rates(earlier QueueActivity, seconds float64) (in, out float64) {
	perRow := q.MessagesPerRow
	if q.WaitingMessages == 0 && earlier.WaitingMessages > 0 {
		perRow = earlier.MessagesPerRow
	}
	came := max(0, float64(q.EnqueuedRows-earlier.EnqueuedRows)*perRow)
	more := float64(q.WaitingMessages + q.HeldMessages - earlier.WaitingMessages - earlier.HeldMessages)
	return came / seconds, max(0, came-more) / seconds
}

// ConversationActivity is a conversation at the head of a queue.
type ConversationActivity struct {
	ConversationHandle  parley.UUID `json:"conversation_handle"`
	ConversationGroupID parley.UUID `json:"conversation_group_id"`
	Queue               string      `json:"queue"`
	ServiceName         string      `json:"service_name"`
	FarService          string      `json:"far_service"`
	State               string      `json:"state"` // such as CO
	WaitingMessages     int64       `json:"waiting_messages"`
	// IsMore reports that more may wait: at most 1,000 rows are counted.
	IsMore        bool    `json:"is_more"`
	OldestSeconds float64 `json:"oldest_seconds"`
	IsLocked      bool    `json:"is_locked"`
	LockedBy      *int32  `json:"locked_by"` // process id; nil when it is unknown
	// LockedByOneOf are the process ids of sessions one of which holds it, in a subtransaction that it has released: PostgreSQL does not
	// show whose that was.
	LockedByOneOf    []int32     `json:"locked_by_one_of"`
	LockedByPrepared *string     `json:"locked_by_prepared"` // name of the prepared transaction that holds it
	Holder           *LockHolder `json:"holder"`             // the session of LockedBy, when it is still there
	// ClaimedBy is the session that has claimed it to deliver messages of it to a web address, and for how long: no transaction holds
	// it then. Both are nil when none has.
	ClaimedBy      *string  `json:"claimed_by"`
	ClaimedSeconds *float64 `json:"claimed_seconds"`
}

// LockHolder is the session that holds a group.
type LockHolder struct {
	Role            string `json:"role"`
	ApplicationName string `json:"application_name"`
	State           string `json:"state"` // as in pg_stat_activity
	// TransactionSeconds is for how long its transaction is open.
	TransactionSeconds float64 `json:"transaction_seconds"`
	// IsHidden reports that the role that asks may not see the state of the session and since when it is in it: it is neither a member of
	// Role nor of pg_read_all_stats.
	IsHidden bool `json:"is_hidden"`
}

// SessionActivity is a session in whose transaction the broker was used.
type SessionActivity struct {
	PID             int32   `json:"pid"`
	Role            string  `json:"role"`
	ApplicationName string  `json:"application_name"`
	State           string  `json:"state"` // as in pg_stat_activity
	WaitEventType   string  `json:"wait_event_type"`
	WaitEvent       string  `json:"wait_event"`
	BlockedBy       []int32 `json:"blocked_by"` // process ids of the holders of the lock it waits for
	// WaitsInQueue is the queue where the session waits for messages, inside RECEIVE; nil when it does not.
	WaitsInQueue       *string `json:"waits_in_queue"`
	TransactionSeconds float64 `json:"transaction_seconds"`
	StateSeconds       float64 `json:"state_seconds"`
	Statement          string  `json:"statement"` // the last one, 500 characters at most
}

// ReadActivity reports what goes on now: in the queues that the role may receive from, in at most so many of the
// conversations at their heads, and in the sessions. Nothing is locked, and the cost does not grow with what waits.
func ReadActivity(ctx context.Context, db parley.DB, conversations int) (a Activity, err error) {
	err = db.QueryRow(ctx, "select clock_timestamp(), current_database()").Scan(&a.At, &a.Database)
	if err != nil {
		return a, fmt.Errorf("read the time: %w", err)
	}
	if a.Queues, err = readQueueActivity(ctx, db); err != nil {
		return a, pgdb.StatementError(err, "read what goes on in the queues")
	}
	if a.Conversations, err = readConversationActivity(ctx, db, conversations); err != nil {
		return a, pgdb.StatementError(err, "read what goes on in conversations")
	}
	if a.Sessions, err = readSessionActivity(ctx, db); err != nil {
		return a, pgdb.StatementError(err, "read the sessions")
	}
	return a, nil
}

func readQueueActivity(ctx context.Context, db parley.DB) ([]QueueActivity, error) {
	rows, err := db.Query(ctx, `
		select a.queue_name, a.service_queue_id, a.status, a.readers_paused_at, a.waiting_messages, a.held_messages, a.delayed_messages,
			a.is_estimated,
			extract(epoch from clock_timestamp() - a.oldest_enqueue_time)::float8, a.enqueued_rows, a.messages_per_row,
			a.max_readers, a.running_readers, a.failures, a.last_error, a.locked_groups, a.lock_holders
		from parley.queue_activity() as a
		where a.service_queue_id >= 65536 or a.waiting_messages > 0
		order by a.queue_name`)
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows([]QueueActivity{}, rows, func(row pgx.CollectableRow) (q QueueActivity, err error) {
		err = row.Scan(
			&q.Queue, &q.QueueID, &q.Status, &q.ReadersPausedAt, &q.WaitingMessages, &q.HeldMessages, &q.DelayedMessages,
			&q.IsEstimated,
			&q.OldestSeconds, &q.EnqueuedRows, &q.MessagesPerRow,
			&q.MaxReaders, &q.RunningReaders, &q.Failures, &q.LastError, &q.LockedGroups, &q.LockHolders,
		)
		return q, err
	})
}

func readConversationActivity(ctx context.Context, db parley.DB, top int) ([]ConversationActivity, error) {
	rows, err := db.Query(ctx, `
		select a.conversation_handle, a.conversation_group_id, a.queue_name, a.service_name, a.far_service, a.state,
			a.waiting_messages, a.is_more, extract(epoch from clock_timestamp() - a.oldest_enqueue_time)::float8, a.is_locked, a.locked_by,
			coalesce(a.locked_by_one_of, '{}'), a.locked_by_prepared, s.pid is not null, coalesce(s.usename::text, ''),
			coalesce(s.application_name, ''), coalesce(s.state, ''),
			coalesce(extract(epoch from clock_timestamp() - s.xact_start)::float8, 0), s.state is null,
			a.claimed_by, extract(epoch from clock_timestamp() - a.claimed_at)::float8
		from parley.conversation_activity(top => $1) as a
		left join pg_catalog.pg_stat_activity as s on s.pid = a.locked_by`, top)
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows([]ConversationActivity{}, rows, func(row pgx.CollectableRow) (c ConversationActivity, err error) {
		var holder LockHolder
		var isThere bool
		err = row.Scan(
			&c.ConversationHandle, &c.ConversationGroupID, &c.Queue, &c.ServiceName, &c.FarService, &c.State,
			&c.WaitingMessages, &c.IsMore, &c.OldestSeconds, &c.IsLocked, &c.LockedBy,
			&c.LockedByOneOf, &c.LockedByPrepared, &isThere, &holder.Role, &holder.ApplicationName, &holder.State, &holder.TransactionSeconds,
			&holder.IsHidden, &c.ClaimedBy, &c.ClaimedSeconds,
		)
		if isThere {
			c.Holder = &holder
		}
		return c, err
	})
}

func readSessionActivity(ctx context.Context, db parley.DB) ([]SessionActivity, error) {
	rows, err := db.Query(ctx, `
		select s.pid, coalesce(s.role_name, ''), coalesce(s.application_name, ''), coalesce(s.state, ''), coalesce(s.wait_event_type, ''),
			coalesce(s.wait_event, ''), s.blocked_by, s.waits_in_queue, coalesce(s.transaction_seconds, 0), coalesce(s.state_seconds, 0),
			coalesce(s.statement, '')
		from parley.broker_sessions as s
		order by cardinality(s.blocked_by) desc, s.transaction_seconds desc nulls last, s.pid
		limit 1000`)
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows([]SessionActivity{}, rows, func(row pgx.CollectableRow) (s SessionActivity, err error) {
		err = row.Scan(
			&s.PID, &s.Role, &s.ApplicationName, &s.State, &s.WaitEventType,
			&s.WaitEvent, &s.BlockedBy, &s.WaitsInQueue, &s.TransactionSeconds, &s.StateSeconds, &s.Statement,
		)
		return s, err
	})
}

// SetQueueStatus switches a queue on or off (ALTER QUEUE ... WITH STATUS). Nothing can be received from a queue that is
// off; what is sent to it waits with its senders.
//
// Errors: a [parley.Error] with number [parley.QueueNotFound] or [parley.PermissionDenied].
func SetQueueStatus(ctx context.Context, db parley.DB, queue string, on bool) error {
	_, err := db.Exec(ctx, "select parley.alter_queue(queue => $1, status => $2)", queue, on)
	if err != nil {
		return pgdb.StatementError(err, "switch queue "+queue+" "+onOrOff(on))
	}
	return nil
}

func onOrOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
