// Package event raises QUEUE_ACTIVATION for queues that have event notifications of that name, in the place of a reader.
//
// The receiver of the notification starts readers of its own; the broker cannot know how many there are. So after an event nothing more is
// said until what waits has been received, or a time is over (spec 5.5).
package event

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/activation"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
)

// Kind is that of queues with QUEUE_ACTIVATION event notifications.
const Kind = "event"

const (
	defaultTimeout = 30 * time.Second
	poll           = 500 * time.Millisecond
	rowsMax        = 256
)

// Starter makes readers that raise the event.
type Starter struct {
	Pool *pgxpool.Pool
	// Timeout is how long to wait for somebody to receive before the event may be raised again; 0 means 30 seconds.
	Timeout time.Duration
}

// NewReader prepares to raise the event for a queue.
func (s *Starter) NewReader(q activation.Queue, _ int) (activation.Reader, error) {
	return &reader{pool: s.Pool, queue: q, timeout: cmp.Or(s.Timeout, defaultTimeout)}, nil
}

type reader struct {
	pool    *pgxpool.Pool
	queue   activation.Queue
	timeout time.Duration
}

// Run raises the event, and waits until nothing can be received, or the time is over. The engine notices when nobody has
// received anything, and raises the event again after a growing pause.
func (r *reader) Run(ctx context.Context) error {
	sent, err := activationstore.NotifyActivation(ctx, r.pool, r.queue.Name)
	if err != nil {
		return err
	}
	if sent == 0 {
		return errors.New("nobody could be notified: the conversations of the event notifications are over")
	}
	deadline := time.Now().Add(r.timeout)
	tick := time.NewTicker(min(poll, r.timeout))
	defer tick.Stop()
	for time.Now().Before(deadline) {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		receivable, err := activationstore.ReadReceivableQueues(ctx, r.pool, []int32{int32(r.queue.ID)}, []int32{1}, rowsMax)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case len(receivable) == 0:
			return nil
		}
	}
	return nil
}
