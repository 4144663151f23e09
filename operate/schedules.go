package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// NewSchedule says what is put into a simple queue again and again, or begins a conversation, and when. Settings that are nil have the
// broker's defaults.
type NewSchedule struct {
	Name  string
	Queue string // "" where conversations are begun
	// FromService and ToService, in place of a queue, have each due time begin a conversation between them.
	FromService, ToService *string
	Contract               *string // DEFAULT
	MessageType            *string // DEFAULT

	Body     string
	Cron     *string        // in place of Every
	Every    *time.Duration // counted from now
	TimeZone *string        // in which Cron is meant; UTC
	Key      *string        // in a queue
	Priority *int32         // in a queue
	Missed   *string        // ONCE, ALL or SKIP: what becomes of times for which no daemon was there
}

// Schedule is a schedule as it stands; as JSON it is a stable format.
type Schedule struct {
	Name          string     `json:"name"`
	Queue         *string    `json:"queue"` // name as the statements take it; nil where conversations are begun
	Cron          *string    `json:"cron"`
	Every         *float64   `json:"every_seconds"`
	TimeZone      string     `json:"time_zone"`
	Missed        string     `json:"missed"`
	Key           *string    `json:"key"`
	Priority      int32      `json:"priority"`
	Owner         string     `json:"owner"`
	IsPaused      bool       `json:"is_paused"`
	NextAt        *time.Time `json:"next_at"` // nil as long as no daemon has seen it, and while it is paused
	LastAt        *time.Time `json:"last_at"`
	LastMessageID *int64     `json:"last_message_id"`
	Fault         *string    `json:"fault"` // why it could not be run

	// These are nil for a schedule of a queue.
	FromService            *string      `json:"from_service"`
	ToService              *string      `json:"to_service"`
	Contract               *string      `json:"contract"`
	MessageType            *string      `json:"message_type"`
	LastConversationHandle *parley.UUID `json:"last_conversation_handle"`
}

// ScheduleRun is one of the last hundred runs of a schedule; as JSON it is a stable format.
type ScheduleRun struct {
	DueAt     *time.Time `json:"due_at"` // nil where somebody asked for it
	SentAt    time.Time  `json:"sent_at"`
	MessageID *int64     `json:"message_id"`
	Missed    int32      `json:"missed"` // how many times before it were left out
	Error     *string    `json:"error"`  // why nothing was put

	ConversationHandle *parley.UUID `json:"conversation_handle"` // of the conversation that was begun
}

// SetSchedule makes a schedule or changes the one of that name, and reports whether it is new or changed.
//
// Errors: a [parley.Error] with number [parley.QueueNotFound], [parley.PermissionDenied], 2714 when it belongs to somebody else, 8402 for
// what cannot be, or 8423 and 8425 for a service and a contract that are not there.
func SetSchedule(ctx context.Context, db parley.DB, schedule NewSchedule) (changed bool, err error) {
	var every *string
	if schedule.Every != nil {
		text := fmt.Sprintf("%d milliseconds", schedule.Every.Milliseconds())
		every = &text
	}
	err = db.QueryRow(ctx, `
		select parley.schedule(
			name => $1::text, queue => nullif($2::text, ''), body => $3::text, cron => $4::text, every => $5::text::interval,
			time_zone => coalesce($6::text, 'UTC'), key => $7::text, priority => coalesce($8::integer, 5), missed => coalesce($9::text, 'ONCE'),
			from_service => $10::text, to_service => $11::text, contract => coalesce($12::text, 'DEFAULT'),
			message_type => coalesce($13::text, 'DEFAULT')
		)`, schedule.Name, schedule.Queue, schedule.Body, schedule.Cron, every, schedule.TimeZone, schedule.Key, schedule.Priority,
		schedule.Missed, schedule.FromService, schedule.ToService, schedule.Contract, schedule.MessageType).Scan(&changed)
	if err != nil {
		return false, pgdb.StatementError(err, "set schedule "+schedule.Name)
	}
	return changed, nil
}

// RemoveSchedule removes a schedule and its history.
//
// Errors: a [parley.Error] with number 208 when there is none that the role may change.
func RemoveSchedule(ctx context.Context, db parley.DB, name string) error {
	return onSchedule(ctx, db, "unschedule", name)
}

// PauseSchedule pauses a schedule: times that pass meanwhile are not made up for.
//
// Errors: as [RemoveSchedule].
func PauseSchedule(ctx context.Context, db parley.DB, name string) error {
	return onSchedule(ctx, db, "pause_schedule", name)
}

// ResumeSchedule has a schedule that is paused go on.
//
// Errors: as [RemoveSchedule].
func ResumeSchedule(ctx context.Context, db parley.DB, name string) error {
	return onSchedule(ctx, db, "resume_schedule", name)
}

// RunSchedule puts the message of a schedule now; its next time stays.
//
// Errors: as [RemoveSchedule], and those of [parley.Put].
func RunSchedule(ctx context.Context, db parley.DB, name string) error {
	return onSchedule(ctx, db, "run_schedule", name)
}

func onSchedule(ctx context.Context, db parley.DB, function, name string) error {
	c := pgdb.Call{Function: function}
	c.Give("name", "text", name)
	return c.Exec(ctx, db, function+" "+name)
}

// ReadSchedules reads the schedules of the role, and of queues that it may take from, by name.
func ReadSchedules(ctx context.Context, db parley.DB) ([]Schedule, error) {
	rows, err := db.Query(ctx, `
		select s.name, s.queue_name, s.cron, extract(epoch from s.every)::float8, s.time_zone, s.missed, s.key, s.priority, s.owner,
			s.is_paused, s.next_at, s.last_at, s.last_message_id, s.fault, s.from_service, s.to_service, s.contract, s.message_type,
			s.last_conversation_handle
		from parley.schedules as s
		order by s.name`)
	if err != nil {
		return nil, fmt.Errorf("read the schedules: %w", err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Schedule])
	if err != nil {
		return nil, fmt.Errorf("read the schedules: %w", err)
	}
	return found, nil
}

// ReadScheduleRuns reads the last runs of a schedule, the newest first.
func ReadScheduleRuns(ctx context.Context, db parley.DB, name string) ([]ScheduleRun, error) {
	rows, err := db.Query(ctx, `
		select r.due_at, r.sent_at, r.message_id, r.missed, r.error, r.conversation_handle
		from parley.schedule_runs as r
		where r.name = $1
		order by r.sent_at desc`, name)
	if err != nil {
		return nil, fmt.Errorf("read the runs of schedule %s: %w", name, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ScheduleRun])
	if err != nil {
		return nil, fmt.Errorf("read the runs of schedule %s: %w", name, err)
	}
	return found, nil
}
