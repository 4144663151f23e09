package work

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
)

// LaneSettings are what a lane is given; nil leaves a setting as it is.
type LaneSettings struct {
	IsPermanent *bool
	LeaseMax    *int // how many leases may be out at a time; 0 for any number
	RetryPolicy *string
}

// SetLane makes a lane, or changes its settings.
func SetLane(ctx context.Context, db pgdb.DB, system, lane string, s LaneSettings) error {
	_, err := db.Exec(ctx, "select parley_store.set_lane($1::text, $2::text, $3::boolean, $4::integer, $5::text)",
		system, lane, s.IsPermanent, s.LeaseMax, s.RetryPolicy)
	if err != nil {
		return pgdb.StatementError(err, "set lane "+lane)
	}
	return nil
}

// FailLane reports that the next hop of a lane could not be reached by an attempt that began at a time, and returns when to try
// again. Until then nothing is claimed from it. What was claimed is to be given to [Release].
func FailLane(ctx context.Context, db pgdb.DB, system, lane, failure string, began time.Time) (next time.Time, err error) {
	var at *time.Time
	const statement = "select parley_store.fail_lane($1::text, $2::text, $3::text, $4::timestamptz)"
	err = db.QueryRow(ctx, statement, system, lane, failure, began).Scan(&at)
	if err != nil {
		return time.Time{}, pgdb.StatementError(err, "report the failure of lane "+lane)
	}
	if at == nil {
		return time.Time{}, nil
	}
	return *at, nil
}

// SucceedLane reports that the next hop of a lane was reached.
func SucceedLane(ctx context.Context, db pgdb.DB, system, lane string) error {
	if _, err := db.Exec(ctx, "select parley_store.succeed_lane($1::text, $2::text)", system, lane); err != nil {
		return pgdb.StatementError(err, "report the success of lane "+lane)
	}
	return nil
}

// Filter says which items an operation touches: all that meet each condition that is set.
type Filter struct {
	Lane     string        // in which * stands for anything
	States   []string      // WAITING, DELAYED, IN_FLIGHT, SUSPENDED
	Items    []int64       // by their numbers
	Subjects []int64       // by those of the system
	Error    string        // a part of the last error
	Reason   string        // a part of the reason of a suspension
	Attempts int           // so many failed ones at least
	Older    time.Duration // it came longer ago
	Priority int
}

// MarshalJSON writes the filter as the schema takes it.
func (f Filter) MarshalJSON() ([]byte, error) {
	conditions := map[string]any{}
	set := func(name string, value any, isSet bool) {
		if isSet {
			conditions[name] = value
		}
	}
	set("lane", f.Lane, f.Lane != "")
	set("state", f.States, len(f.States) > 0)
	// None is not all: an empty list matches nothing.
	set("items", f.Items, f.Items != nil)
	set("subjects", f.Subjects, f.Subjects != nil)
	set("error", f.Error, f.Error != "")
	set("reason", f.Reason, f.Reason != "")
	set("attempts", f.Attempts, f.Attempts > 0)
	set("older", fmt.Sprintf("%f seconds", f.Older.Seconds()), f.Older > 0)
	set("priority", f.Priority, f.Priority > 0)
	return json.Marshal(conditions)
}

// Operation is what an operator does to many items, some at a time.
type Operation string

// The operations.
const (
	Suspend  Operation = "suspend"
	Resume   Operation = "resume"
	RetryNow Operation = "retry now"
)

// Apply does an operation to all items that match, by default 1,000 in a transaction, and returns how many. With isDry it only
// counts them. On a pgx.Tx all of it is one transaction. Reason is for [Suspend].
func Apply(
	ctx context.Context, db pgdb.DB, system string, operation Operation, filter Filter, reason, doneBy string, step int, isDry bool,
) (total int, err error) {
	if step == 0 {
		step = 1000
	}
	conditions, err := filter.MarshalJSON()
	if err != nil {
		return 0, fmt.Errorf("write the filter: %w", err)
	}
	arguments := []any{system, string(conditions), step, isDry, doneBy}
	var query string
	switch operation {
	case Suspend:
		query = "select parley_store.suspend_work($1::text, $2::jsonb, $6::text, $3::integer, $4::boolean, nullif($5::text, ''))"
		arguments = append(arguments, reason)
	case Resume:
		query = "select parley_store.resume_work($1::text, $2::jsonb, $3::integer, $4::boolean, nullif($5::text, ''))"
	case RetryNow:
		query = "select parley_store.retry_work_now($1::text, $2::jsonb, $3::integer, $4::boolean, nullif($5::text, ''))"
	default:
		return 0, fmt.Errorf("unknown operation %q: use suspend, resume or retry now", operation)
	}
	for {
		n, err := count(ctx, db, string(operation)+" work", query, arguments...)
		total += n
		if err != nil || n == 0 || isDry {
			return total, err
		}
	}
}
