package activation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// The questions of a daemon to a database, and its reports to it. The role of the daemon has to be the owner of the schema, a member of
// that role, or a superuser. Statements that change something carry the daemon's term, and are refused when that is over.

// Lead renews the lease of the daemon that holds a term, or takes over when nobody leads; term is 0 for a daemon that has
// not led yet. Databases is how many the daemon serves, this one among them, or 0 when that is not known. It returns the term to use
// from now on, or false when another daemon leads.
func Lead(
	ctx context.Context, db pgdb.DB, name string, term int64, lease time.Duration, databases int,
) (newTerm int64, leads bool, err error) {
	var given *int64
	err = db.QueryRow(ctx, `
		select parley._p_lead(
			leader => $1::text, term => $2::bigint, milliseconds => $3::integer, serves_neighbours => nullif($4::integer, 0) > 1
		)`,
		name, term, lease.Milliseconds(), databases).Scan(&given)
	if err != nil {
		return 0, false, pgdb.StatementError(err, "lead")
	}
	if given == nil {
		return 0, false, nil
	}
	return *given, true, nil
}

// Resign ends a term, so that another daemon can lead at once.
func Resign(ctx context.Context, db pgdb.DB, term int64) error {
	if _, err := db.Exec(ctx, "select parley._p_resign($1::bigint)", term); err != nil {
		return pgdb.StatementError(err, "resign")
	}
	return nil
}

// BeginReader reports whether the daemon that has a term may start a reader of a queue on a connection now. It gives the connection the
// role of the reader, and lets the server end it unless the reader's statement follows within two seconds and before the lease is over.
// When it is not direct, because it may lead through a pooler, it only asks. The call is the statement's procedure, which must be that of
// the queue now. The error has SQLSTATE 42501 when who said what reads the queue may not, or no longer, or the procedure is another role's.
func BeginReader(ctx context.Context, db pgdb.DB, term int64, queueID int32, role, call string, isDirect bool) (bool, error) {
	var may bool
	err := db.QueryRow(ctx, `
		select parley._p_begin_reader(
			term => $1::bigint, queue_id => $2::integer, role => $3::text, procedure_call => $4::text, is_direct => $5::boolean
		)`,
		term, queueID, role, call, isDirect).Scan(&may)
	if err != nil {
		return false, pgdb.StatementError(err, "begin a reader")
	}
	return may, nil
}

// MayBeginReader is [BeginReader] for a reader that runs elsewhere than on the connection that asks. It gets how long the lease of the
// daemon must last; an empty role and an empty call are for readers that are no procedures.
func MayBeginReader(ctx context.Context, db pgdb.DB, term int64, queueID int32, role, call string, lease time.Duration) (bool, error) {
	var may bool
	err := db.QueryRow(ctx,
		`
		select parley._p_may_begin_reader(
			term => $1::bigint, queue_id => $2::integer, role => nullif($3::text, ''), procedure_call => nullif($4::text, ''),
			milliseconds => $5::integer
		)`,
		term, queueID, role, call, lease.Milliseconds()).Scan(&may)
	if err != nil {
		return false, pgdb.StatementError(err, "begin a reader")
	}
	return may, nil
}

// ActivatedQueue is a queue with activation on, and what to start for it.
type ActivatedQueue struct {
	QueueID    int32
	Name       string
	MaxReaders int32
	MinReaders int32
	Kind       string // procedure, program or webhook
	// ProcedureCall is the procedure as CALL takes it, nil when it is gone; ExecuteAs is nil when the role is gone.
	ProcedureCall, Procedure, ExecuteAs *string
	External                            json.RawMessage
	// Version changes whenever anything about the definition does.
	Version string
	// Refusal reports why nothing may be started: who said what reads could not do it himself. Nil when he could.
	Refusal *string
}

// ReadActivatedQueues reads the queues with activation on; none when the broker is disabled.
func ReadActivatedQueues(ctx context.Context, db pgdb.DB) ([]ActivatedQueue, error) {
	rows, err := db.Query(ctx, `
		select q.queue_id, q.name, q.max_readers, q.min_readers, q.kind, q.procedure_call, q.procedure_name, q.execute_as,
			q.external, q.version, q.refusal
		from parley._p_activated_queues() as q`)
	if err != nil {
		return nil, pgdb.StatementError(err, "read the activated queues")
	}
	queues, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ActivatedQueue])
	if err != nil {
		return nil, pgdb.StatementError(err, "read the activated queues")
	}
	return queues, nil
}

// ReceivableQueue is a queue in which messages can be received.
type ReceivableQueue struct {
	QueueID int32
	// Groups is how many conversation groups have messages and are not locked, up to the number asked for.
	Groups int32
	// Head is the position of the first such message, 0 when there is none.
	Head int64
	// IsPartial reports that only a part of what waits was scanned.
	IsPartial bool
}

// ReadReceivableQueues finds, without disturbing readers, in which of some queues messages can be received; queues in which
// none can are left out. For each queue readersMax says how many groups are of interest; rowsMax bounds the scan.
func ReadReceivableQueues(ctx context.Context, db pgdb.DB, queueIDs, readersMax []int32, rowsMax int) ([]ReceivableQueue, error) {
	rows, err := db.Query(ctx, `
		select q.queue_id, q.groups, coalesce(q.head, 0), q.is_partial
		from parley._p_receivable(queue_ids => $1::integer[], readers_max => $2::integer[], rows_max => $3::integer) as q`,
		queueIDs, readersMax, rowsMax)
	if err != nil {
		return nil, pgdb.StatementError(err, "find receivable messages")
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ReceivableQueue])
	if err != nil {
		return nil, pgdb.StatementError(err, "find receivable messages")
	}
	return found, nil
}

// AskForWakeUps asks senders to notify channel parley of messages to some queues, for a time. A few hundred queues at once
// are enough for one statement.
func AskForWakeUps(ctx context.Context, db pgdb.DB, queueIDs []int32, d time.Duration) error {
	_, err := db.Exec(ctx, "select parley._p_ask_for_wakeups($1::integer[], $2::integer)", queueIDs, pgdb.Seconds(d))
	if err != nil {
		return pgdb.StatementError(err, "ask for wake-ups")
	}
	return nil
}

// CancelWakeUps makes senders stop to notify of messages to some queues, until they are asked again.
func CancelWakeUps(ctx context.Context, db pgdb.DB, queueIDs []int32) error {
	if _, err := db.Exec(ctx, "select parley._p_cancel_wakeups($1::integer[])", queueIDs); err != nil {
		return pgdb.StatementError(err, "cancel wake-ups")
	}
	return nil
}

// NotifyActivation raises QUEUE_ACTIVATION for a queue, and returns how many messages were sent.
//
// Errors: a [pgdb.Error] with number parley.QueueNotFound, or 15151 for others than administrators.
func NotifyActivation(ctx context.Context, db pgdb.DB, queue string) (int, error) {
	var sent int
	if err := db.QueryRow(ctx, "select parley.notify_activation($1::text)", queue).Scan(&sent); err != nil {
		return 0, pgdb.StatementError(err, "raise QUEUE_ACTIVATION of queue "+queue)
	}
	return sent, nil
}

// FireDue fires timers and ends lifetimes that are due, up to a number, and returns in what time to call it again. With
// oneByOne those that cannot be fired now are put off instead of failing the others. It returns false when the term is over.
func FireDue(ctx context.Context, db pgdb.DB, term int64, top int, oneByOne bool) (fired int, next time.Duration, leads bool, err error) {
	var count *int
	var nextMS *float64
	err = db.QueryRow(ctx, `
		select d.fired, d.next_ms
		from parley._p_fire_due(term => $1::bigint, top => $2::integer, one_by_one => $3::boolean) as d`,
		term, top, oneByOne).Scan(&count, &nextMS)
	if err != nil {
		return 0, 0, false, pgdb.StatementError(err, "fire timers")
	}
	if count == nil || nextMS == nil {
		return 0, 0, false, nil
	}
	return *count, time.Duration(*nextMS * float64(time.Millisecond)), true, nil
}

// States of a queue monitor (spec 5.4).
const (
	MonitorInactive          = "INACTIVE"
	MonitorNotified          = "NOTIFIED"
	MonitorReceivesOccurring = "RECEIVES_OCCURRING"
)

// MonitorReport is a daemon's report about a queue monitor. Times are seconds from now, nil for never.
type MonitorReport struct {
	QueueID        int32    `json:"queue_id"`
	IsGone         bool     `json:"is_gone"` // activation is off now
	State          string   `json:"state"`
	RunningReaders int      `json:"running_readers"`
	ActivatedAgo   *float64 `json:"activated_ago_s"`
	EmptyAgo       *float64 `json:"empty_ago_s"`
	FailingFor     *float64 `json:"failing_for_s"`
	Failures       int      `json:"failures"`
	LastError      *string  `json:"last_error"`
	LastSQLState   *string  `json:"last_sqlstate"`
	NextAttemptIn  *float64 `json:"next_attempt_in_s"`
	// Since the last report.
	Started      int64 `json:"started"`
	Aborted      int64 `json:"aborted"`
	LimitReached int64 `json:"limit_reached"`
}

// TaskReport is a daemon's report about a reader that is running.
type TaskReport struct {
	QueueID    int32   `json:"queue_id"`
	Reader     int     `json:"reader"`
	PID        *uint32 `json:"pid"` // of its session
	Procedure  string  `json:"procedure_name"`
	ExecuteAs  *string `json:"execute_as"`
	StartedAgo float64 `json:"started_ago_s"`
}

// ReportActivation reports to the database the monitors that have changed, and about all running readers; nil tasks are as
// they were. It returns false when the term is over.
func ReportActivation(ctx context.Context, db pgdb.DB, term int64, monitors []MonitorReport, tasks []TaskReport) (leads bool, err error) {
	if monitors == nil {
		monitors = []MonitorReport{}
	}
	about, err := json.Marshal(monitors)
	if err != nil {
		return false, fmt.Errorf("report activation: %w", err)
	}
	var running *string
	if tasks != nil {
		text, err := json.Marshal(tasks)
		if err != nil {
			return false, fmt.Errorf("report activation: %w", err)
		}
		running = new(string(text))
	}
	err = db.QueryRow(ctx, `
		select parley._p_report_activation(term => $1::bigint, monitors => $2::text::jsonb, tasks => $3::text::jsonb)`,
		term, string(about), running).Scan(&leads)
	if err != nil {
		return false, pgdb.StatementError(err, "report activation")
	}
	return leads, nil
}
