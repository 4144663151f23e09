package operate

import (
	"context"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// QueueLimits are those of a simple queue; nil is no limit.
type QueueLimits struct {
	Concurrency *int32         // how many transactions and claims may hold messages at once, 1 to 1,000
	Shared      *string        // a name: queues of one owner that give the same one share that number
	Rate        *int32         // how many messages may be taken in the time Per, 1 to 1,000,000
	Per         *time.Duration // a millisecond to a day; a second where it is nil
	Ageing      *time.Duration // a message that has waited for so long counts as one priority higher, up to 7 days
}

// SetQueueLimits sets the limits of a simple queue, in place of those that it has.
//
// Errors: a [parley.Error] with number [parley.QueueNotFound], [parley.PermissionDenied], or 8402 for a queue that is not simple and for
// what is out of range.
func SetQueueLimits(ctx context.Context, db parley.DB, queue string, limits QueueLimits) error {
	c := pgdb.Call{Function: "set_queue_limits"}
	c.Give("queue", "text", queue)
	pgdb.Give(&c, "concurrency", "integer", limits.Concurrency)
	pgdb.Give(&c, "shared", "text", limits.Shared)
	pgdb.Give(&c, "rate", "integer", limits.Rate)
	pgdb.Give(&c, "per", "interval", limits.Per)
	pgdb.Give(&c, "ageing", "interval", limits.Ageing)
	return c.Exec(ctx, db, "set the limits of queue "+queue)
}

// LimitedQueue is a simple queue with its limits; as JSON it is a stable format.
type LimitedQueue struct {
	Queue       string   `json:"queue"` // name as the statements take it
	Concurrency *int32   `json:"concurrency"`
	Shared      *string  `json:"shared"`
	InUse       int32    `json:"in_use"` // transactions and claims that count towards the concurrency now
	Rate        *int32   `json:"rate"`
	Per         *float64 `json:"per_seconds"`
	Ageing      *float64 `json:"ageing_seconds"`
}

// ReadQueueLimits reads the limits of all queues that the role may take from and that have some, by name.
func ReadQueueLimits(ctx context.Context, db parley.DB) ([]LimitedQueue, error) {
	return readAll[LimitedQueue](ctx, db, "read the limits", `
		select l.queue_name, l.concurrency, l.shared, l.in_use, l.rate, extract(epoch from l.per)::float8,
			extract(epoch from l.ageing)::float8
		from parley.queue_limits as l
		order by l.queue_name`)
}

// KeepFinished has a simple queue keep for a time what its workers say of work that is done ([parley.Done]); nil for not at all.
//
// Errors: as [SetQueueLimits].
func KeepFinished(ctx context.Context, db parley.DB, queue string, keep *time.Duration) error {
	c := pgdb.Call{Function: "keep_finished"}
	c.Give("queue", "text", queue)
	c.Give("keep", "interval", keep)
	return c.Exec(ctx, db, "keep what is finished in queue "+queue)
}
