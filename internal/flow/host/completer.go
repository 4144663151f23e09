package host

import (
	"context"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// completedAtOnce is how many messages one statement records as sent.
const completedAtOnce = 2000

// completion is a message that was sent.
type completion struct {
	lease, item int64
	detail      *string
	answers     []draft            // what the destination has answered
	recorded    func(recorded int) // called with 1 when it is recorded, or with 0 when it was in the hands of others
}

// completer records what was sent, all of it together that has come while the statement before was under way.
type completer struct {
	host *Host
	wake *signal

	mu        sync.Mutex
	waiting   []completion
	recording int // how many are being recorded
}

func newCompleter(h *Host) *completer { return &completer{host: h, wake: newSignal()} }

// add has messages recorded as sent.
func (c *completer) add(sent []completion) {
	if len(sent) == 0 {
		return
	}
	for _, one := range sent {
		c.host.leases.hand(one.lease, 1)
	}
	c.mu.Lock()
	c.waiting = append(c.waiting, sent...)
	c.mu.Unlock()
	c.wake.send()
}

// run records until ctx ends.
func (c *completer) run(ctx context.Context) {
	for ctx.Err() == nil {
		if batch := c.next(); len(batch) > 0 {
			c.record(ctx, batch)
			continue
		}
		c.wake.wait(ctx, time.Minute)
	}
}

// flush returns when all is recorded that was sent, or the time is over.
func (c *completer) flush(most time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	for c.count() > 0 && backoff.Wait(ctx, 10*time.Millisecond) == nil {
	}
}

func (c *completer) next() []completion {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(c.waiting), completedAtOnce)
	batch := c.waiting[:n:n]
	c.waiting, c.recording = c.waiting[n:], n
	return batch
}

// record records a batch, and tries again while the database is away. Where a lease is gone, each lease is recorded by itself.
func (c *completer) record(ctx context.Context, batch []completion) {
	failures := backoff.NewFailures(c.host.logger, "what was sent cannot be recorded")
	for {
		err := c.complete(ctx, batch)
		switch {
		case err == nil:
			failures.Succeeded()
			c.ended(batch, 1)
			return
		case pgdb.SQLState(err) == "PF007" && isOfOneLease(batch):
			c.host.leases.lose(batch[0].lease)
			c.ended(batch, 0)
			return
		case pgdb.SQLState(err) == "PF007":
			for _, part := range byLease(batch) {
				c.record(ctx, part)
			}
			return
		case isOfData(err) && len(batch) > 1:
			for i := range batch {
				c.record(ctx, batch[i:i+1])
			}
			return
		case isOfData(err) && batch[0].failAnswers(err):
			continue
		}
		if backoff.Wait(ctx, failures.Failed(err)) != nil {
			c.ended(batch, 0)
			return
		}
		// By then others may have them: their leases are over by our own clock.
		if kept := c.kept(batch); len(kept) < len(batch) {
			c.host.logger.Warn("messages were sent and could not be recorded in time; they are sent again", "messages", len(batch)-len(kept))
			if batch = kept; len(batch) == 0 {
				return
			}
		}
	}
}

func (c *completer) complete(ctx context.Context, batch []completion) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	leases, items, details, hasDetails := make([]int64, len(batch)), make([]int64, len(batch)), make([]*string, len(batch)), false
	for i, one := range batch {
		leases[i], items[i], details[i] = one.lease, one.item, one.detail
		hasDetails = hasDetails || one.detail != nil
	}
	if !hasDetails {
		details = nil
	}
	began := time.Now()
	err := c.host.completeWith(ctx, c.host.pool, leases, items, details, func(i int) []draft { return batch[i].answers })
	if err == nil {
		c.host.server.governing.latency.Observe(time.Since(began))
	}
	return err
}

// kept gives those of a batch whose leases are held, and ends the others.
func (c *completer) kept(batch []completion) []completion {
	held := map[int64]bool{}
	for _, number := range c.host.leases.numbers() {
		held[number] = true
	}
	kept := []completion{}
	for _, one := range batch {
		if held[one.lease] {
			kept = append(kept, one)
		} else {
			one.recorded(0)
		}
	}
	return kept
}

func (c *completer) ended(batch []completion, recorded int) {
	for _, one := range batch {
		c.host.leases.ended(one.lease, 1)
		one.recorded(recorded)
	}
}

func isOfOneLease(batch []completion) bool {
	for _, one := range batch {
		if one.lease != batch[0].lease {
			return false
		}
	}
	return true
}

// byLease gives a batch by its leases.
func byLease(batch []completion) [][]completion {
	at, parts := map[int64]int{}, [][]completion{}
	for _, one := range batch {
		i, isThere := at[one.lease]
		if !isThere {
			i = len(parts)
			at[one.lease], parts = i, append(parts, nil)
		}
		parts[i] = append(parts[i], one)
	}
	return parts
}

// fail records that messages of a lease were not sent, and gives all of which that decides, with those that stood behind them.
func (h *Host) fail(ctx context.Context, number int64, items []int64, f flowstore.Failure, isPermanent bool) ([]flowstore.Ended, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementTimeout)
	defer cancel()
	if isPermanent {
		return flowstore.Suspend(ctx, h.pool, h.name, number, items, f, true)
	}
	return flowstore.Retry(ctx, h.pool, h.name, number, items, f)
}

// release gives messages of a lease back that were not tried. Those that cannot be given back come back when the lease is over.
func (h *Host) release(number int64, items []int64) {
	if len(items) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.server.config.Lease)
	defer cancel()
	if err := flowstore.Release(ctx, h.pool, h.name, number, items); err != nil && pgdb.SQLState(err) != "PF007" {
		h.logger.Warn("messages could not be given back; they come back when their lease is over", "messages", len(items), "error", err)
	}
	h.leases.ended(number, len(items))
}
