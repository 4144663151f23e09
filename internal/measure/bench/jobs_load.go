package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/measure/driver"
	"github.com/parley-broker/parley/internal/measure/observe"
)

// measuredJobs is a run of workers: jobs a second, milliseconds of the server's processor for each where that is known, and how many
// milliseconds after it was about to be inserted a worker had it.
type measuredJobs struct {
	rate  float64
	cost  *float64
	begun []float64
}

// jobsClock holds when jobs were about to be inserted, and when they were worked on.
type jobsClock struct {
	worked   atomic.Int64
	inserted atomic.Int64

	mu    sync.Mutex
	at    map[int64]time.Time
	begun []float64
}

func (c *jobsClock) insert(number int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at[number] = time.Now()
}

// begin counts a job whose work begins; one that comes twice counts once.
func (c *jobsClock) begin(number int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, is := c.at[number]; is {
		c.begun = append(c.begun, float64(time.Since(at))/float64(time.Millisecond))
		delete(c.at, number)
	}
}

// workJobsOf lets the workers wait and work, as the load of a variant has it.
func (b *bench) workJobsOf(ctx context.Context, d database, p Peer, v jobsVariant) (measured measuredJobs, err error) {
	if v.behind {
		release, err := holdKeys(ctx, d)
		if err != nil {
			return measuredJobs{}, err
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	clock := &jobsClock{at: map[int64]time.Time{}}
	stop, err := p.start(ctx, d, p.Connections+v.workers, v.workers*v.batch, func(*pgxpool.Pool) WorkJob {
		return func(ctx context.Context, number int64) error {
			clock.begin(number)
			if !v.answered && !waitUntil(ctx, time.Now().Add(jobTime)) {
				return context.Cause(ctx)
			}
			clock.worked.Add(1)
			return nil
		}
	})
	if err != nil {
		return measuredJobs{}, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	insert, err := p.Inserter()
	if err != nil {
		return measuredJobs{}, err
	}
	padding := strings.Repeat("x", b.Size)
	if v.offered > 0 {
		return b.offerJobs(ctx, d, clock, func(ctx context.Context, tx pgx.Tx, number int64) error {
			return insert(ctx, tx, number, padding)
		}, v.offered*b.Dialog.Rate)
	}
	op, sessions := clock.fill(insert, padding), 2
	if v.answered {
		op, sessions = insertingJobs(insert, &clock.inserted, &clock.worked, padding), v.workers
	}
	spent, before := b.processorOf(ctx), clock.worked.Load()
	measured.rate, err = b.drive(ctx, d, sessions, op)
	measured.cost = costOf(spent, b.processorOf(ctx), clock.worked.Load()-before)
	return measured, err
}

// fill is the operation that inserts jobs in transactions of many whenever too few wait, and counts those that were worked since.
func (c *jobsClock) fill(insert InsertJob, padding string) driver.Operation {
	var counted atomic.Int64
	return func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
		if last := c.inserted.Add(jobsFill); last-c.worked.Load() <= jobsDepth {
			err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
				for number := last - jobsFill + 1; number <= last; number++ {
					if err := insert(ctx, tx, number, padding); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return 0, err
			}
		} else {
			c.inserted.Add(-jobsFill)
			if !waitUntil(ctx, time.Now().Add(time.Millisecond)) {
				return 0, context.Cause(ctx)
			}
		}
		worked := c.worked.Load()
		return int(worked - counted.Swap(worked)), nil
	}
}

// offerJobs inserts jobs at a rate, one a transaction, waits until all are worked on, and counts from the end of the warm-up on.
func (b *bench) offerJobs(ctx context.Context, d database, clock *jobsClock, insert send, rate int) (measured measuredJobs, err error) {
	const sessions = queuesReaders
	conns, err := d.sessions(ctx, sessions)
	if err != nil {
		return measuredJobs{}, err
	}
	defer closeAll(ctx, conns)
	offer := func(first, total int64) error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		begun := time.Now()
		var working sync.WaitGroup
		for session, conn := range conns {
			working.Go(func() {
				for number := int64(session); number < total; number += sessions {
					if !waitUntil(ctx, begun.Add(time.Duration(float64(number)/float64(rate)*float64(time.Second)))) {
						return
					}
					clock.insert(first + number)
					err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return insert(ctx, tx, first+number) })
					if err != nil {
						cancel(fmt.Errorf("insert job %d: %w", first+number, err))
						return
					}
					observe.From(ctx).In(1)
				}
			})
		}
		working.Wait()
		return context.Cause(ctx)
	}
	warm := int64(float64(rate) * b.WarmUp.Seconds())
	total := max(1, int64(float64(rate)*b.Duration.Seconds()))
	if err := errors.Join(offer(0, warm), clock.waitForWorked(ctx, warm)); err != nil {
		return measuredJobs{}, err
	}
	clock.begun = nil
	spent, begun := b.processorOf(ctx), time.Now()
	defer observe.From(ctx).Window()()
	if err := errors.Join(offer(warm, total), clock.waitForWorked(ctx, warm+total)); err != nil {
		return measuredJobs{}, err
	}
	measured.rate = float64(total) / time.Since(begun).Seconds()
	measured.cost = costOf(spent, b.processorOf(ctx), total)
	measured.begun = clock.begun
	return measured, nil
}

// waitForWorked waits until so many jobs were worked on, and fails when none is for long.
func (c *jobsClock) waitForWorked(ctx context.Context, jobs int64) error {
	for seen, since := c.worked.Load(), time.Now(); c.worked.Load() < jobs; {
		if now := c.worked.Load(); now != seen {
			seen, since = now, time.Now()
		} else if time.Since(since) > jobPatience {
			return fmt.Errorf("%d of %d jobs were worked on, and none in %s", now, jobs, jobPatience)
		}
		if !waitUntil(ctx, time.Now().Add(time.Millisecond)) {
			return context.Cause(ctx)
		}
	}
	return nil
}
