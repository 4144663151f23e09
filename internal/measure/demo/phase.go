package demo

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// killPhase is the phase in whose middle a reader is killed.
const killPhase = 1

// playPhase sends messages of one size for its share of the time, and waits until all are received.
func (r *run) playPhase(ctx context.Context, payloadBytes int, withKill bool) (Payload, error) {
	begun, err := r.now(ctx)
	if err != nil {
		return Payload{}, err
	}
	before := r.sent.Load()
	if err := r.send(ctx, payloadBytes, r.config.Duration/time.Duration(len(PayloadBytes)), withKill); err != nil {
		return Payload{}, err
	}
	stopped, err := r.now(ctx)
	if err != nil {
		return Payload{}, err
	}
	if err := r.drain(ctx); err != nil {
		return Payload{}, err
	}
	payload, err := readPhase(ctx, r.control, begun)
	if err != nil {
		return Payload{}, err
	}
	payload.PayloadBytes = payloadBytes
	payload.MessagesSent = r.sent.Load() - before
	payload.SendSeconds = stopped.Sub(begun).Seconds()
	payload.begun = begun.Sub(r.watch.start).Seconds()
	payload.takeSends(r.senders)
	return payload, nil
}

// takeSends records how long the sends of a phase took.
func (p *Payload) takeSends(senders []*sender) {
	var took []time.Duration
	for _, s := range senders {
		took = append(took, s.took...)
	}
	slices.Sort(took)
	p.SendP50MS, p.SendP99MS = milliseconds(took, 0.50), milliseconds(took, 0.99)
}

// send lets all senders send for a time, and for as long as it takes to kill a reader if one is to be killed.
func (r *run) send(ctx context.Context, payloadBytes int, share time.Duration, withKill bool) error {
	sending, ctx := newCrew(ctx)
	defer sending.fail(nil)
	var stopped atomic.Bool
	for _, s := range r.senders {
		s.took = s.took[:0]
		sending.start(func() error { return s.sendUntil(ctx, payloadBytes, &stopped, &r.sent) })
	}
	err := pause(ctx, share/2)
	if err == nil && withKill {
		err = r.killReader(ctx)
	}
	if err == nil {
		err = pause(ctx, share/2)
	}
	stopped.Store(true)
	sending.working.Wait()
	if err != nil {
		return err
	}
	return context.Cause(ctx)
}

func (r *run) killReader(ctx context.Context) error {
	process, err := r.readers.killOne(ctx)
	if err != nil {
		return err
	}
	at, err := r.now(ctx)
	if err != nil {
		return err
	}
	r.kill = kill{seconds: at.Sub(r.watch.start).Seconds(), process: process}
	r.notice(fmt.Sprintf("A reader (process %d) was killed after it had received and inserted, before its commit. "+
		"The queue monitor starts another in its place.", process))
	return nil
}

// drain waits until everything that was sent is received.
func (r *run) drain(ctx context.Context) error {
	return r.await(ctx, func() (int64, error) {
		_, received, err := readProgress(ctx, r.control)
		return r.sent.Load() - received, err
	})
}

// await waits until nothing is left.
func (r *run) await(ctx context.Context, left func() (int64, error)) error {
	return awaitNone(ctx, stallTimeout, left, r.notice)
}

// awaitNone waits until nothing is left. What is stuck for long does not come any more; the check reports it.
func awaitNone(ctx context.Context, patience time.Duration, left func() (int64, error), notice func(string)) error {
	least, since := int64(-1), time.Now()
	for {
		n, err := left()
		switch {
		case err != nil:
			return err
		case n <= 0:
			return nil
		case least < 0 || n < least:
			least, since = n, time.Now()
		case time.Since(since) > patience:
			notice(fmt.Sprintf("Nothing has moved for %v; %d are still open.", patience, n))
			return nil
		}
		if err := pause(ctx, drainPoll); err != nil {
			return err
		}
	}
}

// now is the time by the clock of the server, by which all is measured.
func (r *run) now(ctx context.Context) (time.Time, error) { return serverTime(ctx, r.control) }

func serverTime(ctx context.Context, conn *pgx.Conn) (at time.Time, err error) {
	if err := conn.QueryRow(ctx, "select clock_timestamp()").Scan(&at); err != nil {
		return at, fmt.Errorf("ask for the time: %w", err)
	}
	return at, nil
}

// readPhase reads what the readers logged since a phase began.
func readPhase(ctx context.Context, conn *pgx.Conn, begun time.Time) (Payload, error) {
	var p Payload
	err := conn.QueryRow(ctx, `
		select
			coalesce(sum(messages), 0)::bigint, count(*), coalesce(percentile_disc(0.5) within group (order by messages), 0)::bigint,
			coalesce(max(messages), 0)::bigint, coalesce(extract(epoch from max(received_at) - $1), 0)::double precision
		from receive_log
		where received_at >= $1`, begun,
	).Scan(&p.MessagesReceived, &p.ReceiveCalls, &p.MessagesPerCallMedian, &p.MessagesPerCallMax, &p.Seconds)
	if err != nil {
		return Payload{}, fmt.Errorf("read the log of the readers: %w", err)
	}
	p.MessagesPerSecond = perSecond(p.MessagesReceived, p.Seconds)
	return p, nil
}

// readBatches counts the receive calls by how many messages they brought, in classes that double.
func readBatches(ctx context.Context, conn *pgx.Conn) ([]batch, error) {
	rows, err := conn.Query(ctx, `
		select c.class, count(l.messages)
		from (select floor(log(2, max(messages)))::integer as largest from receive_log) as m
		cross join lateral (select 1 << n as class from generate_series(0, m.largest) as n) as c
		left join receive_log as l on l.messages >= c.class and l.messages < c.class * 2
		group by c.class
		order by c.class`)
	if err != nil {
		return nil, fmt.Errorf("read the log of the readers: %w", err)
	}
	batches, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (b batch, err error) {
		return b, row.Scan(&b.atLeast, &b.calls)
	})
	if err != nil {
		return nil, fmt.Errorf("read the log of the readers: %w", err)
	}
	return batches, nil
}

func lastReceived(ctx context.Context, conn *pgx.Conn) (at time.Time, err error) {
	if err := conn.QueryRow(ctx, "select coalesce(max(received_at), clock_timestamp()) from receive_log").Scan(&at); err != nil {
		return at, fmt.Errorf("read the log of the readers: %w", err)
	}
	return at, nil
}

// milliseconds gives the value below which a share of the sorted durations lies.
func milliseconds(sorted []time.Duration, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[int(share*float64(len(sorted)-1))]) / float64(time.Millisecond)
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
