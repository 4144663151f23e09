package parley

import (
	"context"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// outage lets one reader of a consumer try to reach a database that is away. The others wait until it has succeeded: they would only
// multiply the attempts.
type outage struct {
	mu   sync.Mutex
	over chan struct{} // nil while nobody has found the database away
}

// isOutage reports whether the database could not be reached. A handler that could not reach another one has failed, and is no outage.
func isOutage(err error) bool {
	if _, ofHandler := errors.AsType[*handlerError](err); ofHandler {
		return false
	}
	_, isAway := errors.AsType[*pgconn.ConnectError](err)
	return isAway
}

// join records that a reader could not reach the database. The first one goes on trying; the others get a channel that is closed when the
// outage is over.
func (o *outage) join() (over <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over == nil {
		o.over = make(chan struct{})
		return nil
	}
	return o.over
}

// known gives the channel of an outage that somebody has found; nil while there is none.
func (o *outage) known() (over <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.over
}

// end records that the reader that went on trying has reached the database.
func (o *outage) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over != nil {
		close(o.over)
		o.over = nil
	}
}

// sitOut waits until the outage is over, or ctx ends.
func sitOut(ctx context.Context, over <-chan struct{}) {
	select {
	case <-ctx.Done():
	case <-over:
	}
}
