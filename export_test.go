package parley

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/notifier"
)

// AttachKnowing is Attach of a program that knows a version of the schema.
func AttachKnowing(ctx context.Context, db DB, version int) (Broker, error) {
	return attach(ctx, db, version)
}

// ConsumerWakeUps are the wake-ups of a consumer that does not run.
type ConsumerWakeUps struct{ w *wakeUps }

func NewConsumerWakeUps() ConsumerWakeUps {
	return ConsumerWakeUps{&wakeUps{next: notifier.NewWakeUp()}}
}

// Received is a RECEIVE with messages.
func (c ConsumerWakeUps) Received(now time.Time) { c.w.received(now) }

// Polls reports whether the consumer scans instead of asking senders to notify.
func (c ConsumerWakeUps) Polls(now time.Time) bool { return c.w.polls(now) }

// SeparateFailed gives how many messages a consumer receives alone that had planned so many, when so many fail together.
func SeparateFailed(planned, failed int) int {
	execution := &consumerExecution{}
	execution.singles.Store(int64(planned))
	execution.separateFailed(failed)
	return int(execution.singles.Load())
}

// CountsWhatItTakes reports whether a consumer of a simple queue that takes what is there counts it in the demand, by which it ceases to
// ask senders to notify.
func CountsWhatItTakes(ctx context.Context, pool *pgxpool.Pool, queue string, handler TakenHandler) (bool, error) {
	execution, err := newConsumerExecution(Consumer{Pool: pool, Queue: queue, Top: 1, Readers: 1})
	if err != nil {
		return false, err
	}
	if done, err := execution.takeTurn(ctx, ctx, &taking{execution: execution, handler: handler}); err != nil || !done.committed {
		return false, err
	}
	return !execution.wakeUps.receivedAt.IsZero(), nil
}
