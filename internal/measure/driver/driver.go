// Package driver repeats an operation in many sessions at once and measures its rate.
package driver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/observe"
)

// ErrNothingLeft ends a run before its time: there is nothing left to do.
var ErrNothingLeft = errors.New("nothing is left")

// Operation does one call, on the connection of a session, and returns how many messages that was.
type Operation func(ctx context.Context, conn *pgx.Conn, session int) (messages int, err error)

// Drive repeats an operation in all sessions at once and gives the messages per second between the warm-up and the end.
// The end is when the time is up and something was counted, or when nothing is left.
func Drive(ctx context.Context, conns []*pgx.Conn, warmUp, duration time.Duration, op Operation) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		count   atomic.Int64
		stopped atomic.Bool
		emptied = make(chan struct{})
		once    sync.Once
		working sync.WaitGroup
		watch   = observe.From(ctx)
		takes   = observe.Takes(ctx)

		before int64
		begun  = time.Now()
	)
	for session, conn := range conns {
		working.Go(func() {
			for !stopped.Load() {
				// Not cancelled when the time is up: a statement cut off would cost its session the connection.
				called := time.Now()
				messages, err := op(ctx, conn, session)
				if errors.Is(err, ErrNothingLeft) {
					once.Do(func() { close(emptied) })
					return
				}
				if err != nil {
					cancel(err)
					return
				}
				count.Add(int64(messages))
				watch.Took(time.Since(called))
				if takes {
					watch.Out(messages)
				} else {
					watch.In(messages)
				}
			}
		})
	}
	// When a session ends early, none may still use its connection.
	defer working.Wait()
	defer stopped.Store(true)

	isOver := wait(ctx, emptied, warmUp)
	defer watch.Window()()
	if !isOver { // otherwise it was over within the warm-up, and all of it counts
		before, begun = count.Load(), time.Now()
	}
	for !isOver {
		isOver = wait(ctx, emptied, duration) || count.Load() > before
	}
	rate := float64(count.Load()-before) / time.Since(begun).Seconds()
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	return rate, nil
}

// wait waits for a time, and reports whether the run is over before.
func wait(ctx context.Context, emptied <-chan struct{}, duration time.Duration) (isOver bool) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return true
	case <-emptied:
		return true
	case <-timer.C:
		return false
	}
}
