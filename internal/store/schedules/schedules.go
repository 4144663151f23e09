// Package schedules has the statements with which the daemon that leads a database runs schedules.
package schedules

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// Due is a schedule that is due, or has no time yet. Its row is locked to the end of the transaction.
type Due struct {
	ID        int32
	Cron      *string  // in TimeZone
	Every     *float64 // seconds, counted from StartedAt, in place of Cron
	TimeZone  string
	Missed    string // ONCE, ALL or SKIP
	StartedAt time.Time
	NextAt    *time.Time // the time that it is due for; nil when it has none yet
	Now       time.Time  // by the clock of the database
}

// Run has the messages to put for a schedule now, and its next time.
type Run struct {
	DueAt  []time.Time // times for which a message is put
	Missed int         // how many times before them are left out
	NextAt *time.Time
	Fault  string // why its times cannot be found out; "" when they can
}

// Find locks and gives schedules that are due. It gives none when the term is over.
func Find(ctx context.Context, tx pgx.Tx, term int64, top int) ([]Due, error) {
	rows, err := tx.Query(ctx, `
		select d.schedule_id, d.cron, d.every_seconds, d.time_zone, d.missed, d.started_at, d.next_at, d.now
		from parley._p_due_schedules(term => $1::bigint, top => $2::integer) as d`, term, top)
	if err != nil {
		return nil, pgdb.StatementError(err, "find schedules that are due")
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Due])
	if err != nil {
		return nil, pgdb.StatementError(err, "find schedules that are due")
	}
	return found, nil
}

// Put puts the messages of a schedule and sets its next time. It gives why it could not, "" when it did; then it is tried again later.
func Put(ctx context.Context, tx pgx.Tx, id int32, run Run) (fault string, err error) {
	var failed *string
	dueAt := run.DueAt
	if dueAt == nil {
		dueAt = []time.Time{}
	}
	err = tx.QueryRow(ctx, `
		select parley._p_run_due(
			schedule_id => $1::integer, due_at => $2::timestamptz[], missed => $3::integer, next_at => $4::timestamptz,
			fault => nullif($5::text, '')
		)`, id, dueAt, run.Missed, run.NextAt, run.Fault).Scan(&failed)
	if err != nil {
		return "", pgdb.StatementError(err, fmt.Sprintf("run schedule %d", id))
	}
	if failed != nil {
		return *failed, nil
	}
	return "", nil
}

// Wait says in what time a schedule is due next; false when none is.
func Wait(ctx context.Context, db pgdb.DB) (time.Duration, bool, error) {
	var ms *float64
	if err := db.QueryRow(ctx, "select parley._p_next_schedule_ms()").Scan(&ms); err != nil {
		return 0, false, pgdb.StatementError(err, "find the next schedule")
	}
	if ms == nil {
		return 0, false, nil
	}
	return time.Duration(*ms * float64(time.Millisecond)), true, nil
}
