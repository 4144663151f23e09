package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/hop"
	"github.com/parley-broker/parley/internal/measure/observe"
	"github.com/parley-broker/parley/internal/measure/statistics"
)

// bbw is one play of a scenario.
type bbw struct {
	BBWConfig

	flow    flow
	control *pgx.Conn // to the database of the engine

	mu      sync.Mutex
	sent    map[int64]time.Time
	arrived map[int64]int
	times   []float64
	bad     error
	busy    atomic.Int64  // nanoseconds that the back end worked
	next    int64         // the number of the first body of the next run of the generator
	room    chan struct{} // has an element for each body on its way, where their number is bounded
}

// newBBW prepares a play on a server.
func newBBW(config BBWConfig, c *cluster) *bbw {
	return &bbw{
		BBWConfig: config, sent: map[int64]time.Time{}, arrived: map[int64]int{}, flow: flow{
			FlowConfig: FlowConfig{Frame: config.Frame, Connections: config.Connections, Workers: config.Workers, Program: config.Program},
			cluster:    c,
		},
	}
}

// play runs the engine between a generator and a back end, and takes samples.
func (b *bbw) play(ctx context.Context, report *BBWReport) error {
	observe.From(ctx).Plan(1)
	return b.onEngine(ctx, func(back *hop.BackEnd, listen string) error {
		if err := b.measured(ctx, back, listen, &report.BBWPlay); err != nil {
			return err
		}
		observe.From(ctx).Done()
		if !b.Sustain {
			return nil
		}
		var err error
		report.Patterns, err = b.patterns(ctx, back, listen, report.BBWPlay)
		return err
	})
}

// once plays the scenario, without the patterns.
func (b *bbw) once(ctx context.Context) (play BBWPlay, err error) {
	err = b.onEngine(ctx, func(back *hop.BackEnd, listen string) error { return b.measured(ctx, back, listen, &play) })
	return play, err
}

// onEngine runs work on an engine that is warm.
func (b *bbw) onEngine(ctx context.Context, work func(back *hop.BackEnd, listen string) error) error {
	return b.flow.onEngine(ctx, hop.Parley{}, b.arrive, b.start, func(_ database, back *hop.BackEnd, listen string) error {
		defer func() { closeAll(ctx, []*pgx.Conn{b.control}) }()
		if b.WarmUp > 0 {
			b.progress("warming up, %s", b.WarmUp)
			if _, err := b.generate(ctx, listen, float64(b.Rate), b.WarmUp); err != nil {
				return err
			}
			if err := b.drain(ctx, back); err != nil {
				return err
			}
		}
		b.progress("measuring, %s", b.Duration)
		return work(back, listen)
	})
}

// measured is the part that counts: samples while the generator sends, then the accounts.
func (b *bbw) measured(ctx context.Context, back *hop.BackEnd, listen string, report *BBWPlay) error {
	b.mu.Lock()
	b.times = nil
	b.mu.Unlock()
	before, err := b.settled(ctx, bbwCount{}, back.Taken())
	if err != nil {
		return err
	}
	b.busy.Store(0)
	end := observe.From(ctx).Window()
	defer end()
	begun := time.Now()
	sending, cancel := context.WithCancel(ctx)
	taken := make(chan error, 1)
	go func() {
		var err error
		report.Taken, err = b.sample(sending)
		taken <- err
	}()
	sent, err := b.generate(ctx, listen, float64(b.Rate), b.Duration)
	cancel()
	if err := errors.Join(err, <-taken); err != nil {
		return err
	}
	ended := time.Now()
	after, err := b.count(ctx)
	if err != nil {
		return err
	}
	backlog := float64(max(0, b.offered()-back.Taken()))
	drained := make(chan error, 1)
	go func() {
		err := b.drain(ctx, back)
		report.Drained = time.Since(ended).Seconds()
		drained <- err
	}()
	end() // which takes its time to conclude
	report.Balance = bottleneck.Balance{
		In:      (after.received - before.received) / ended.Sub(begun).Seconds(),
		Out:     (after.processed - before.processed) / ended.Sub(begun).Seconds(),
		Backlog: backlog, BackEndBusy: b.busyPart(ended.Sub(begun)),
	}
	if taken := after.processed - before.processed; taken > 0 {
		report.Balance.BackEndMS = float64(b.busy.Load()) / float64(time.Millisecond) / taken
	}
	if err := <-drained; err != nil {
		return err
	}
	if len(report.Taken) == 0 { // it was shorter than a sample
		report.Taken = []BBWSample{{
			Seconds: sent.Took.Seconds(), Received: (after.received - before.received) / sent.Took.Seconds(),
			Processed: (after.processed - before.processed) / sent.Took.Seconds(), Spool: after.spool,
		}}
	}
	return b.account(ctx, before, sent, report)
}

// drain waits until the back end has all, or until that takes too long: the accounts say then what is left.
func (b *bbw) drain(ctx context.Context, back *hop.BackEnd) error {
	waiting, cancel := context.WithTimeout(ctx, time.Duration(mostDrain*float64(time.Second)))
	defer cancel()
	if err := back.Await(waiting, b.offered(), patience); err != nil && ctx.Err() == nil {
		b.progress("the back end has %d of %d messages", back.Taken(), b.offered())
	}
	return ctx.Err()
}

// busyPart is the part of the time in which the connections of the back end were busy with messages.
func (b *bbw) busyPart(span time.Duration) float64 {
	return float64(b.busy.Load()) / (float64(span) * float64(min(b.Workers, mostConnections)))
}

// account counts what was acknowledged, what the database has counted, and what arrived.
func (b *bbw) account(ctx context.Context, before bbwCount, sent hop.Sent, report *BBWPlay) error {
	at, err := b.settled(ctx, before, min(sent.Messages, b.taken()))
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a := &report.Accounts
	a.Acknowledged, a.Received, a.Processed = sent.Messages, int64(at.received-before.received), int64(at.processed-before.processed)
	a.Throttled = int64(at.changes - before.changes)
	report.Offered, report.GeneratorBusy = float64(sent.Messages)/sent.Took.Seconds(), sent.Waiting
	report.Rate = float64(a.Processed) / (sent.Took.Seconds() + report.Drained)
	for number := range b.sent {
		switch times := b.arrived[number]; {
		case times == 0:
			a.Lost++
		case times > 1:
			a.Doubled += int64(times - 1)
		}
		a.Arrived += int64(b.arrived[number])
	}
	// A message that is still in the message box is late, not lost.
	a.Left = min(a.Lost, int64(at.spool))
	a.Lost -= a.Left
	if n := len(report.Taken); n > 1 {
		first, last := report.Taken[0], report.Taken[n-1]
		a.SpoolSlope = (last.Spool - first.Spool) / max(last.Seconds-first.Seconds, 0.001)
	}
	if len(b.times) > 0 {
		sorted := slices.Sorted(slices.Values(b.times))
		report.Latency = percentilesOf(sorted)
		report.P95MS = statistics.Percentile(sorted, 0.95)
	}
	return b.bad
}

// offered is how many bodies were sent so far: numbers may be left out.
func (b *bbw) offered() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(len(b.sent))
}

// taken is how many different bodies have arrived.
func (b *bbw) taken() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int64(len(b.arrived))
}

// settled waits until the database has counted what was acknowledged: hosts report their counts a little later.
func (b *bbw) settled(ctx context.Context, before bbwCount, messages int64) (at bbwCount, err error) {
	for deadline := time.Now().Add(patience); ; {
		if at, err = b.count(ctx); err != nil {
			return at, err
		}
		if int64(at.received-before.received) >= messages && int64(at.processed-before.processed) >= messages || time.Now().After(deadline) {
			return at, nil
		}
		if !waitUntil(ctx, time.Now().Add(100*time.Millisecond)) {
			return at, context.Cause(ctx)
		}
	}
}

// generate sends bodies with new numbers for a time: at a rate, or where that is 0 as long as no more than Outstanding are on their way.
func (b *bbw) generate(ctx context.Context, listen string, rate float64, span time.Duration) (hop.Sent, error) {
	first, bodies := b.next, bodiesIn(b.Charset, b.Size)
	watch := observe.From(ctx)
	g := hop.Generator{Address: listen, Frames: hop.Parley{}, Connections: b.Connections, Rate: rate, Body: func(number int64) []byte {
		number += first
		b.mu.Lock()
		b.sent[number] = time.Now()
		b.next = max(b.next, number+1)
		b.mu.Unlock()
		watch.In(1)
		return bodies(number)
	}}
	if rate == 0 {
		room := make(chan struct{}, b.Outstanding)
		g.Hold = func(ctx context.Context) {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
			}
		}
		b.mu.Lock()
		b.room = room
		b.mu.Unlock()
	}
	return g.Run(ctx, 0, span)
}

// arrive is the back end, which takes its time for each body.
func (b *bbw) arrive(body []byte) {
	if b.BackEndTime > 0 {
		begun := time.Now()
		<-time.After(b.BackEndTime) // its work
		b.busy.Add(int64(time.Since(begun)))
	}
	number, err := numberIn(body)
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.bad = errors.Join(b.bad, err)
		return
	}
	b.arrived[number]++
	select {
	case <-b.room:
	default: // it was sent before the bound
	}
	b.times = append(b.times, float64(time.Since(b.sent[number]))/float64(time.Millisecond))
	b.Watch.Out(1)
	b.Watch.Took(time.Since(b.sent[number]))
}

// bbwCount has the counters of the database.
type bbwCount struct{ received, processed, spool, changes float64 }

func (b *bbw) count(ctx context.Context) (at bbwCount, err error) {
	err = b.control.QueryRow(ctx, `
		select
			coalesce(sum(c.value) filter (where c.counter = 'Documents received' and c.instance = $1), 0)::double precision,
			coalesce(sum(c.value) filter (where c.counter = 'Documents processed' and c.instance = $2), 0)::double precision,
			coalesce(sum(c.value) filter (where c.counter = 'Spool Size'), 0)::double precision,
			(select count(*) from parley_store.pressure_changes as p where p.system = 'flow')::double precision
		from parley_flow.counters as c`, bbwReceiveHost, bbwSendHost).Scan(&at.received, &at.processed, &at.spool, &at.changes)
	if err != nil {
		return at, fmt.Errorf("read the counters of the database: %w", err)
	}
	return at, nil
}

// sample takes a sample every so often, until ctx ends.
func (b *bbw) sample(ctx context.Context) (taken []BBWSample, err error) {
	asking := context.WithoutCancel(ctx)
	begun := time.Now()
	before, err := b.count(asking)
	if err != nil {
		return nil, err
	}
	last := begun
	for {
		isOver := false
		busy, stolen, _ := bottleneck.BusyPart(func() { isOver = !waitUntil(ctx, time.Now().Add(b.Every)) })
		if isOver {
			return taken, nil
		}
		after, err := b.count(asking)
		if err != nil {
			return taken, err
		}
		now := time.Now()
		span := now.Sub(last).Seconds()
		taken = append(taken, BBWSample{
			Seconds: now.Sub(begun).Seconds(), Received: (after.received - before.received) / span,
			Processed: (after.processed - before.processed) / span,
			Processor: 100 * (busy + stolen), Spool: after.spool,
		})
		if after.changes > before.changes {
			b.Watch.Throttling("a level of pressure changed")
		}
		before, last = after, now
	}
}

// start defines the scenario in an empty database and starts a node that serves its hosts.
func (b *bbw) start(ctx context.Context, place HopPlace) (func(ctx context.Context) error, error) {
	d := database{name: place.Database.Database, config: place.Database}
	conn, err := d.connect(ctx)
	if err != nil {
		return nil, err
	}
	b.control = conn
	flags := []string{"--allow-listen", place.Listen, "--allow-connect", place.Target}
	return b.flow.startFlow(ctx, d, place.Folder, place.Listen, flags, func(role string) map[string]any {
		return bbwDefinitions(b.Scenario, place, role)
	})
}
