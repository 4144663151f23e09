package operate

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// Destination is where messages to other databases go.
type Destination struct {
	Address            string
	WaitingMessages    int64
	IsEstimated        bool
	MessagesInTransit  int64
	OldestEnqueueTime  *time.Time
	TransmissionStatus *string // why the last attempt failed; nil when it did not
	Attempts           *int32
	FailingSince       *time.Time
	NextAttemptTime    *time.Time
}

// ReadDestinations reads where messages wait to go, those with most first. The cost does not grow with what waits.
func ReadDestinations(ctx context.Context, db parley.DB) ([]Destination, error) {
	rows, err := db.Query(ctx, `
		select
			coalesce(d.address, ''), d.waiting_messages, d.is_estimated, d.messages_in_transit, d.oldest_enqueue_time,
			d.transmission_status, d.attempts, d.failing_since, d.next_attempt_time
		from parley.transmission_destinations() as d
		order by d.waiting_messages desc, d.address`)
	if err != nil {
		return nil, pgdb.StatementError(err, "read the destinations")
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Destination])
	if err != nil {
		return nil, pgdb.StatementError(err, "read the destinations")
	}
	return found, nil
}
