package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/measure/driver"
)

const (
	// jobWorkers is how many jobs a peer fetches at once, at most, and completes in one statement.
	jobWorkers = 100
	// jobsWaiting is how many jobs may wait to be worked before the sessions that insert wait too.
	jobsWaiting = 1000
	// jobPatience is how long nothing may be worked on while so many wait: its workers have failed then.
	jobPatience = 20 * time.Second
	// jobSettled is how long nothing may happen before what is left, after all was inserted, is taken for the end.
	jobSettled = 10 * time.Second
)

// jobTrial measures a job of a peer that is inserted in a transaction of its own and worked.
func (b *bench) jobTrial(p Peer, variant string, sessions int) trial {
	return trial{
		result: Result{System: p.Name, Variant: variant, Sessions: sessions, Size: b.Size, Batch: 1},
		run: func(ctx context.Context) (float64, error) {
			s, err := b.stage(ctx, "jobs of "+p.Name, func(ctx context.Context, conn *pgx.Conn, _ *stage) error {
				return p.Prepare(ctx, conn)
			})
			if err != nil {
				return 0, err
			}
			return b.onCopy(ctx, s, func(d database) (float64, error) { return b.workJobs(ctx, d, p, sessions) })
		},
	}
}

// workJobs gives the jobs worked a second while the sessions insert as many as are worked. The work on each is to count it. In the end all
// that was inserted is worked, and the peer itself has to have counted as many.
func (b *bench) workJobs(ctx context.Context, d database, p Peer, sessions int) (rate float64, err error) {
	var inserted, worked atomic.Int64
	stop, err := p.start(ctx, d, p.Connections, jobWorkers, func(*pgxpool.Pool) WorkJob {
		return func(context.Context, int64) error {
			worked.Add(1)
			return nil
		}
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	insert, err := p.Inserter()
	if err != nil {
		return 0, err
	}
	err = d.withConnection(ctx, func(conn *pgx.Conn) error {
		before, err := p.count(ctx, conn)
		if err != nil {
			return err
		}
		rate, err = b.drive(ctx, d, sessions, insertingJobs(insert, &inserted, &worked, strings.Repeat("x", b.Size)))
		if err != nil {
			return err
		}
		after, err := p.settled(ctx, conn, &inserted, &worked)
		b.miscounted(p.compare(before, after, inserted.Load(), worked.Load()))
		return err
	})
	return rate, err
}

// count asks the peer. One that cannot be asked has counted nothing.
func (p Peer) count(ctx context.Context, conn *pgx.Conn) (PeerCount, error) {
	if p.Count == nil {
		return PeerCount{In: -1}, nil
	}
	counted, err := p.Count(ctx, conn)
	if err != nil {
		return PeerCount{}, fmt.Errorf("ask %s what it has counted: %w", p.Name, err)
	}
	return counted, nil
}

// settled waits until all jobs are worked and nothing is left of them, or nothing moves any more.
func (p Peer) settled(ctx context.Context, conn *pgx.Conn, inserted, worked *atomic.Int64) (counted PeerCount, err error) {
	var seen [2]int64
	for since := time.Now(); ; {
		if counted, err = p.count(ctx, conn); err != nil {
			return counted, err
		}
		if worked.Load() >= inserted.Load() && counted.Left == 0 {
			return counted, nil
		}
		if now := [2]int64{worked.Load(), counted.Left}; now != seen {
			seen, since = now, time.Now()
		} else if time.Since(since) > jobSettled {
			return counted, nil
		}
		if !waitUntil(ctx, time.Now().Add(arrivalPoll)) {
			return counted, context.Cause(ctx)
		}
	}
}

// compare compares the counts of the clients with those of the peer.
func (p Peer) compare(before, after PeerCount, inserted, worked int64) error {
	in := inserted
	if before.In >= 0 {
		in = after.In - before.In
	}
	if in == inserted && worked == inserted && after.Left == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s: the clients inserted %d jobs and worked on %d; it counted %d that came in, and has %d left", errMiscounted,
		p.Name, inserted, worked, in, after.Left)
}

// insertingJobs is the operation that inserts a job and counts those that were worked since.
func insertingJobs(insert InsertJob, inserted, working *atomic.Int64, padding string) driver.Operation {
	var numbers, counted atomic.Int64
	return func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return insert(ctx, tx, numbers.Add(1), padding) })
		if err != nil {
			return 0, err
		}
		inserted.Add(1)
		for seen, since := working.Load(), time.Now(); inserted.Load()-working.Load() > jobsWaiting; {
			if now := working.Load(); now != seen {
				seen, since = now, time.Now()
			} else if time.Since(since) > jobPatience {
				return 0, fmt.Errorf("of %d jobs that wait none was worked on in %s", inserted.Load()-now, jobPatience)
			}
			select {
			case <-ctx.Done():
				return 0, context.Cause(ctx)
			case <-time.After(time.Millisecond):
			}
		}
		worked := working.Load()
		return int(worked - counted.Swap(worked)), nil
	}
}
