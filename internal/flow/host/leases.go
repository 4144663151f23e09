package host

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// errLeaseGone ends what a lease carried that is over: others have its messages.
var errLeaseGone = errors.New("the lease is over: another node has the messages")

// lease is a term in which messages of one lane are this node's.
type lease struct {
	number int64
	items  []flowstore.Claimed
	//nolint:containedctx // it ends with errLeaseGone when the lease is gone
	ctx    context.Context
	cancel context.CancelCauseFunc
	until  time.Time // by our own clock, the earliest time at which it may run out
	open   int       // items without an outcome
	handed int       // those of them whose outcome is being recorded
}

func newLease(ctx context.Context, number int64, until time.Time) *lease {
	l := &lease{number: number, until: until}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	return l
}

// leases keeps the leases of a host.
type leases struct {
	host   *Host
	length time.Duration

	mu   sync.Mutex
	held map[int64]*lease
}

func newLeases(h *Host) *leases {
	return &leases{host: h, length: h.server.config.Lease, held: map[int64]*lease{}}
}

// add takes messages that were claimed not before a time, those of each lease together.
func (l *leases) add(ctx context.Context, claimed []flowstore.Claimed, since time.Time) []*lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	added := []*lease{}
	for _, c := range claimed {
		taken := l.held[c.Lease]
		if taken == nil {
			taken = newLease(ctx, c.Lease, since.Add(l.length))
			l.held[c.Lease] = taken
			added = append(added, taken)
		}
		taken.items = append(taken.items, c)
		taken.open++
	}
	return added
}

// hand takes how many messages of a lease have an outcome that is being recorded.
func (l *leases) hand(number int64, items int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held := l.held[number]; held != nil {
		held.handed += items
	}
}

// ended takes how many messages of a lease have an outcome now. One that has none left is kept no more.
func (l *leases) ended(number int64, items int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if held := l.held[number]; held != nil {
		held.handed = max(held.handed-items, 0)
		if held.open -= items; held.open <= 0 {
			delete(l.held, number)
			held.cancel(nil)
		}
	}
}

// lose ends a lease that is gone.
func (l *leases) lose(number int64) {
	l.mu.Lock()
	held := l.held[number]
	delete(l.held, number)
	l.mu.Unlock()
	if held != nil {
		held.cancel(errLeaseGone)
		l.host.counts.leasesLost.Add(1)
		l.host.logger.Warn("a lease is gone: another node may have its messages", "lease", number, "messages", len(held.items))
	}
}

// numbers gives the leases that are held.
func (l *leases) numbers() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	numbers := make([]int64, 0, len(l.held))
	for number := range l.held {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	return numbers
}

// keep renews leases until ctx ends.
func (l *leases) keep(ctx context.Context) {
	failures := backoff.NewFailures(l.host.logger, "leases cannot be renewed")
	pause := l.length / 3
	for {
		if backoff.Wait(ctx, pause) != nil {
			return
		}
		pause = l.length / 3
		l.loseOld()
		numbers := l.numbers()
		if len(numbers) == 0 {
			continue
		}
		began := time.Now()
		renewing, cancel := context.WithTimeout(ctx, l.length/3)
		gone, err := flowstore.Renew(renewing, l.host.pool, l.host.name, numbers, l.length)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			pause = min(failures.Failed(err), l.length/6)
		default:
			failures.Succeeded()
			l.renewed(numbers, gone, began)
		}
	}
}

// renewed takes which leases go on since a time, and which are gone. One is gone too whose last outcome was just recorded: whoever records
// learns what became of it.
func (l *leases) renewed(numbers, gone []int64, since time.Time) {
	l.mu.Lock()
	lost := []int64{}
	for _, number := range numbers {
		held := l.held[number]
		switch {
		case held == nil:
		case !slices.Contains(gone, number):
			held.until = since.Add(l.length)
		case held.handed < held.open:
			lost = append(lost, number)
		}
	}
	l.mu.Unlock()
	for _, number := range lost {
		l.lose(number)
	}
}

// loseOld ends the leases that may have run out by our own clock, before what they carry is done twice.
func (l *leases) loseOld() {
	l.mu.Lock()
	old := []int64{}
	for number, held := range l.held {
		if time.Until(held.until) < l.length/10 {
			old = append(old, number)
		}
	}
	l.mu.Unlock()
	for _, number := range old {
		l.lose(number)
	}
}
