package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/hop"
	"github.com/parley-broker/parley/internal/measure/observe"
	"github.com/parley-broker/parley/internal/measure/site"
	"github.com/parley-broker/parley/internal/measure/statistics"
)

// flow is a measurement of hops.
type flow struct {
	FlowConfig

	cluster *cluster
	daemons int
}

// flowTrial is a system with bodies of a size.
type flowTrial struct {
	system, promise string
	size            int
	run             func(ctx context.Context) (FlowRound, error)
}

// measure runs each system with each size, in turns, and then the latency of Parley.
func (f *flow) measure(ctx context.Context, report *FlowReport) error {
	trials := f.trials(report)
	rounds := make([][]FlowRound, len(trials))
	title := func(t flowTrial) string { return fmt.Sprintf("%s, %d bytes", t.system, t.size) }
	err := inTurns(ctx, &f.Frame, trials, f.Repeat, title, func(i int, t flowTrial) error {
		round, err := t.run(ctx)
		rounds[i] = append(rounds[i], round)
		return err
	})
	if err != nil {
		return fmt.Errorf("measure %w", err)
	}
	for i, t := range trials {
		report.Results = append(report.Results, summarizeFlow(t, rounds[i]))
	}
	report.Ratios = flowRatios(report.Results, f.Peers)
	for _, r := range report.Results {
		if r.System == systemParley {
			f.progress("latency, %d bytes", r.Size)
			if report.Latency, err = f.latency(ctx, r.Size, max(1, int(r.ProcessedPerSecond/4))); err != nil {
				return err
			}
			break
		}
	}
	if f.wants(systemRequest) {
		f.progress("requests, %d bytes", f.Sizes[0])
		report.Requests, err = f.requests(ctx, f.Sizes[0])
	}
	return err
}

// wants reports whether a system is to be measured.
func (f *flow) wants(system string) bool {
	return len(f.Systems) == 0 || slices.Contains(f.Systems, system)
}

// trials are the systems that were asked for and are there.
func (f *flow) trials(report *FlowReport) (trials []flowTrial) {
	report.Missing = make(map[string]string)
	for _, size := range f.Sizes {
		if f.wants(systemParley) {
			trials = append(trials, flowTrial{system: systemParley, size: size, run: func(ctx context.Context) (FlowRound, error) {
				return f.through(ctx, hop.Parley{}, size, f.startParley)
			}})
		}
		if f.wants(systemOrchestration) {
			trials = append(trials, flowTrial{system: systemOrchestration, size: size, run: func(ctx context.Context) (FlowRound, error) {
				return f.through(ctx, hop.Parley{}, size, f.startOrchestration)
			}})
		}
		if f.wants(systemFloor) {
			trials = append(trials, flowTrial{
				system: systemFloor, size: size, promise: "no subscriptions, no deliveries",
				run: func(ctx context.Context) (FlowRound, error) { return f.copyAndDelete(ctx, size) },
			})
		}
		for _, p := range f.Peers {
			if !f.wants(p.Name) {
				continue
			}
			if missing := p.Missing(); missing != "" {
				report.Missing[p.Name] = missing
				continue
			}
			trials = append(trials, flowTrial{
				system: p.Name, promise: p.Promise, size: size,
				run: func(ctx context.Context) (FlowRound, error) { return f.through(ctx, p.Frames, size, p.Start) },
			})
		}
	}
	return trials
}

// startHop starts an engine.
type startHop = func(ctx context.Context, place HopPlace) (stop func(ctx context.Context) error, err error)

// patience is how long an engine may give nothing to the back end while it has messages.
const patience = 30 * time.Second

// through sends bodies through an engine as fast as it acknowledges them, and waits until the back end has them all.
func (f *flow) through(ctx context.Context, frames hop.Frames, size int, start startHop) (round FlowRound, err error) {
	watch := observe.From(ctx)
	bodies := bodiesOf(size)
	body := func(number int64) []byte {
		watch.In(1)
		return bodies(number)
	}
	isOurs := frames == hop.Parley{}
	err = f.onEngine(ctx, frames, func([]byte) { watch.Out(1) }, start, func(d database, back *hop.BackEnd, listen string) error {
		g := hop.Generator{Address: listen, Frames: frames, Connections: f.Connections, Body: body}
		warm, err := g.Run(ctx, 0, f.WarmUp)
		if err != nil {
			return err
		}
		if err := back.Await(ctx, warm.Messages, patience); err != nil {
			return err
		}
		defer observe.From(ctx).Window()()
		begun := time.Now()
		sent, err := g.Run(ctx, 0, f.Duration)
		if err != nil {
			return err
		}
		round.Messages, round.Backlog = sent.Messages, warm.Messages+sent.Messages-back.Taken()
		round.ReceivedPerSecond = float64(sent.Messages) / sent.Took.Seconds()
		if err := back.Await(ctx, warm.Messages+sent.Messages, patience); err != nil {
			return err
		}
		round.ProcessedPerSecond = float64(sent.Messages) / time.Since(begun).Seconds()
		if isOurs {
			return requireCounted(ctx, d, warm.Messages+sent.Messages)
		}
		return nil
	})
	return round, err
}

// onEngine runs work on an engine between a generator and a back end.
func (f *flow) onEngine(
	ctx context.Context, frames hop.Frames, taken func(body []byte), start startHop,
	work func(d database, back *hop.BackEnd, listen string) error,
) (err error) {
	prepare := f.empty
	if (frames == hop.Parley{}) {
		prepare = f.broker
	}
	d, err := prepare(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.cluster.drop(context.WithoutCancel(ctx), d)) }()
	folder, err := os.MkdirTemp("", "parley-bench-hop-")
	if err != nil {
		return fmt.Errorf("make a folder for the engine: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	back, err := hop.Listen(ctx, frames, taken)
	if err != nil {
		return err
	}
	defer back.Close()
	listen, err := site.FreeAddress(ctx)
	if err != nil {
		return err
	}
	stop, err := start(ctx, HopPlace{Listen: listen, Target: back.Address(), Database: d.config, Folder: folder, Workers: f.Workers})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop(context.WithoutCancel(ctx))) }()
	return work(d, back, listen)
}

// empty makes a database with nothing in it.
func (f *flow) empty(ctx context.Context) (database, error) { return f.cluster.create(ctx, database{}) }

// broker makes a database with the broker: a copy takes less time than installing.
func (f *flow) broker(ctx context.Context) (d database, err error) {
	furnished, err := f.cluster.furnish(ctx)
	if err != nil {
		return database{}, err
	}
	if d, err = f.cluster.create(ctx, furnished); err != nil {
		return database{}, err
	}
	return d, d.withConnection(ctx, func(conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "select parley.new_broker()"); err != nil {
			return fmt.Errorf("name the broker of a copy: %w", err)
		}
		return nil
	})
}

// requireCounted fails unless the database has counted so many messages as received, and at least as many as processed: TCP may bring one
// twice. Hosts report their counts a little later.
func requireCounted(ctx context.Context, d database, messages int64) error {
	return d.withConnection(ctx, func(conn *pgx.Conn) error {
		for deadline := time.Now().Add(patience); ; {
			var received, processed int64
			err := conn.QueryRow(ctx, `
				select
					coalesce(sum(c.value) filter (where c.counter = 'Documents received'), 0)::bigint,
					coalesce(sum(c.value) filter (where c.counter = 'Documents processed'), 0)::bigint
				from parley_flow.counters as c`).Scan(&received, &processed)
			switch {
			case err != nil:
				return fmt.Errorf("read the counters of the database: %w", err)
			case received == messages && processed >= messages:
				return nil
			case time.Now().After(deadline):
				return fmt.Errorf("%d messages were acknowledged; the database counted %d received and %d processed", messages, received,
					processed)
			case !waitUntil(ctx, time.Now().Add(100*time.Millisecond)):
				return context.Cause(ctx)
			}
		}
	})
}

// The body of message 7 of 188 bytes begins so; its number has always as many digits.
const (
	bodyBegin   = `<Order xmlns="http://bench.example/orders"><Number>`
	bodyMiddle  = `</Number><Text>`
	bodyEnd     = `</Text></Order>`
	bodyDigits  = 12
	bodyPadding = 'x'
)

// bodiesOf makes XML of so many bytes.
func bodiesOf(size int) func(number int64) []byte {
	padding := bytes.Repeat([]byte{bodyPadding}, size-len(bodyBegin)-bodyDigits-len(bodyMiddle)-len(bodyEnd))
	return func(number int64) []byte {
		body := make([]byte, 0, size+1)
		body = fmt.Appendf(append(body, bodyBegin...), "%0*d", bodyDigits, number)
		return append(append(append(body, bodyMiddle...), padding...), bodyEnd...)
	}
}

// numberOf reads the number of a body.
func numberOf(body []byte) (int64, error) {
	_, rest, found := bytes.Cut(body, []byte("<Number>"))
	if !found || len(rest) < bodyDigits {
		return 0, fmt.Errorf("the back end got something else: %q", body)
	}
	return strconv.ParseInt(string(rest[:bodyDigits]), 10, 64)
}

func summarizeFlow(t flowTrial, rounds []FlowRound) FlowResult {
	of := func(field func(FlowRound) float64) (values []float64) {
		for _, round := range rounds {
			values = append(values, field(round))
		}
		return values
	}
	processed := of(func(r FlowRound) float64 { return r.ProcessedPerSecond })
	return FlowResult{
		System: t.system, Size: t.size, Promise: t.promise, Runs: rounds, Spread: statistics.Spread(processed),
		FlowRound: FlowRound{
			Messages:           int64(statistics.Median(of(func(r FlowRound) float64 { return float64(r.Messages) }))),
			ReceivedPerSecond:  statistics.Median(of(func(r FlowRound) float64 { return r.ReceivedPerSecond })),
			ProcessedPerSecond: statistics.Median(processed),
			Backlog:            int64(statistics.Median(of(func(r FlowRound) float64 { return float64(r.Backlog) }))),
		},
	}
}

// flowRatios compares Parley with each other system that had bodies of the same size, and orchestrations with one hop and with peers that
// run workflows.
func flowRatios(results []FlowResult, peers []HopPeer) map[string]float64 {
	orchestrates := map[string]bool{}
	for _, p := range peers {
		orchestrates[p.Name] = p.Orchestrates
	}
	ratios := make(map[string]float64)
	compare := func(over, under FlowResult) {
		if over.Size == under.Size && under.ProcessedPerSecond > 0 {
			ratios[fmt.Sprintf("%s/%s %d", over.System, under.System, over.Size)] = over.ProcessedPerSecond / under.ProcessedPerSecond
		}
	}
	for _, ours := range results {
		for _, r := range results {
			switch {
			case ours.System == systemParley && r.System == systemOrchestration:
				compare(r, ours)
			case ours.System == systemParley && r.System != systemParley, ours.System == systemOrchestration && orchestrates[r.System]:
				compare(ours, r)
			}
		}
	}
	return ratios
}
