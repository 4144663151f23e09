package timers

import (
	"context"
	"slices"
	"time"

	"github.com/parley-broker/parley/internal/pgdb"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
)

// takeCare does beside the timers what is not urgent and what anybody may do, so it needs no term, until ctx ends.
func (t *Timers) takeCare(ctx context.Context) {
	pause := careInterval
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
			pause = t.care(ctx)
		}
	}
}

// care says when to do it again: the longer it takes, the later. The time of endpoints that are late does not count.
func (t *Timers) care(ctx context.Context) time.Duration {
	began := time.Now()
	within, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	delayed, err := activationstore.TakeCare(within, t.pool, caresAtOnce)
	var late time.Duration
	if err == nil {
		late, err = t.deliver(ctx, delayed)
	}
	if err != nil && ctx.Err() == nil {
		t.logger.Warn("what has expired could not be removed, or delayed messages not be classified; trying again", "error", err)
	}
	return max(careInterval, 20*(time.Since(began)-late))
}

// deliver finds the way again of what was delayed, a few endpoints at a time. An endpoint that takes too long is tried again, for longer,
// when all others are done, and put off then; deliver says how long it took with such.
func (t *Timers) deliver(ctx context.Context, senders []int64) (lost time.Duration, err error) {
	var late []int64
	for some := range slices.Chunk(senders, deliveredAtOnce) {
		began := time.Now()
		if err := t.deliverOf(ctx, some, sendMost); !isRefused(err) {
			if err != nil {
				return lost, err
			}
			continue
		}
		for _, endpoint := range some {
			if err := t.deliverOf(ctx, []int64{endpoint}, sendMost); isRefused(err) {
				late = append(late, endpoint)
			} else if err != nil {
				return lost, err
			}
		}
		lost += time.Since(began)
	}
	began := time.Now()
	for _, endpoint := range late {
		err := t.deliverOf(ctx, []int64{endpoint}, oneMost)
		if isRefused(err) {
			t.logger.Warn("delayed messages could not be delivered; trying again in a minute", "endpoint", endpoint, "error", err)
			err = activationstore.PutOffDelivery(ctx, t.pool, endpoint, lateDelay)
		}
		if err != nil || time.Since(began) > sendsMost {
			return lost + time.Since(began), err
		}
	}
	return lost + time.Since(began), nil
}

// deliverOf delivers what was delayed of endpoints.
func (t *Timers) deliverOf(ctx context.Context, endpoints []int64, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return activationstore.DeliverDelayed(ctx, t.pool, endpoints, most)
}

// isRefused reports whether the server has refused something, which concerns what was asked for, and not the way to the server.
func isRefused(err error) bool { return pgdb.SQLState(err) != "" }
