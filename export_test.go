package parley

import (
	"context"
	"time"

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
