package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/measure/site"
	"github.com/parley-broker/parley/internal/measure/statistics"
)

// Scenario is one measurement: that of one command.
type Scenario struct {
	Name     string
	Short    string
	Variants []Variant
	// Takes are the options of Config that it takes besides those of all.
	Takes Options
	// Messages is how many wait unless Config says it; 0 for a million.
	Messages int
	// Changes are the settings of Config that --try may change: batch, sessions, rows.
	Changes []string
	// HasPeers reports that the peers of Config are measured, too.
	HasPeers bool
	// Paper is the seed paper's figure of the kind, or "".
	Paper   string
	seed    []SeedColumn // what the seed has measured of the kind
	hasSize bool         // its variants have sizes of their own
	// servers gives the settings of the private servers that it makes when Config has no DSN; nil where it makes none.
	servers func(Config) map[string]string
	measure func(ctx context.Context, b *bench) ([]Result, error)
	// conclude, if set, adds to the head of the report what only this scenario knows.
	conclude func(b *bench, head *record.Head, results []Result)
}

// Options are a part of Config that some scenarios take.
type Options int

// The options: those of all alone, Config.Dialog, Config.Mail, Config.Rows, Config.Matrix, the rate of Config.Dialog.
const (
	TakesCommon Options = iota
	TakesDialog
	TakesMail
	TakesRows
	TakesMatrix
	TakesRate
)

// MakesServers reports whether it makes private servers of its own when Config has no DSN.
func (s Scenario) MakesServers() bool { return s.servers != nil }

// Variant is one way to do what a scenario is about.
type Variant struct {
	Name  string
	Short string
}

// Scenarios lists what can be measured.
func Scenarios() []Scenario {
	return []Scenario{
		drainScenario(), mixedScenario(), chaosScenario(), queuesScenario(), jobsScenario(), matrixScenario(), sendScenario(),
		receiveScenario(), simpleScenario(), lifeScenario(), decayScenario(), dialogScenario(), mailScenario(), consoleScenario(),
	}
}

// bench is one run of a scenario.
type bench struct {
	Config
	cluster *cluster
	stages  map[string]stage
	settled map[string]any // settings that turn out on the way

	// Further settings of dialogs: servers of our own, if there are, the further ones among them, and the daemons' folder.
	servers *site.Servers
	places  []*bench
	folder  *site.Folder
	daemons int
	isWarm  bool // the server has been warmed up
	// extra are figures that no result has.
	extra []record.Figure
	cells []Cell // of the matrix
	// differences are between the counts of clients and those of the database, each of which makes the run invalid.
	differences []error
	// serverSettings are those of the servers of our own.
	serverSettings map[string]string
}

// Run measures the scenario. It makes databases of its own on the server and drops them before it returns, also when ctx ends.
func (s Scenario) Run(ctx context.Context, config Config) (report Report, err error) {
	if !s.hasSize {
		config.Size = or(config.Size, DefaultSize)
	}
	if err := config.Check(s); err != nil {
		return Report{}, err
	}
	b := &bench{Config: config, stages: map[string]stage{}, settled: map[string]any{}}
	if s.MakesServers() {
		b.serverSettings = s.servers(config)
		defer func() { err = errors.Join(err, b.closeServers(ctx)) }()
		if err := b.openServers(ctx); err != nil {
			return Report{}, err
		}
	}
	asked := map[string]any{
		"repeat": config.Repeat, "duration_seconds": config.Duration.Seconds(), "warm_up_seconds": config.WarmUp.Seconds(),
		"messages": config.Messages,
	}
	report.Head, err = b.onServer(ctx, s.Name, asked, b.expected(s), func(ctx context.Context, c *cluster, head *record.Head) error {
		b.cluster = c
		if err := b.keepAvailable(ctx); err != nil {
			return err
		}
		results, err := s.measure(ctx, b)
		if err != nil {
			return fmt.Errorf("measure %s: %w", s.Name, err)
		}
		maps.Copy(head.Settings, b.settled)
		report.Paper, report.Seed, report.Results, report.Ratios = s.Paper, s.seed, results, ratios(results)
		report.Cells = b.cells
		head.Figures = append(figures(results), b.extra...)
		if s.conclude != nil {
			s.conclude(b, head, results)
		}
		for _, difference := range b.differences {
			head.Verdict.Lower(record.Invalid, "%v", difference)
		}
		return nil
	})
	return report, err
}

// expected is how long is measured in all, roughly: it only sets how often the waits are sampled.
func (b *bench) expected(s Scenario) time.Duration {
	variants := len(b.Variants)
	if variants == 0 {
		variants = len(s.Variants)
	}
	return time.Duration(2*b.Repeat*variants) * b.Duration
}

func (s Scenario) names() []string {
	names := make([]string, 0, len(s.Variants))
	for _, variant := range s.Variants {
		names = append(names, variant.Name)
	}
	return names
}

// trial is one thing to measure; run prepares what it needs and times only what counts.
type trial struct {
	result Result
	run    func(ctx context.Context) (messagesPerSecond float64, err error)
	// conclude, if set, completes the result when all runs are done.
	conclude func(r *Result)
}

// measure runs trials in turns, as often as asked for.
func (b *bench) measure(ctx context.Context, trials []trial) ([]Result, error) {
	results := make([]Result, len(trials))
	for i, t := range trials {
		results[i] = t.result
	}
	err := inTurns(ctx, &b.Frame, trials, b.Repeat, func(t trial) string { return t.result.title() }, func(i int, t trial) error {
		rate, err := t.run(ctx)
		results[i].Runs = append(results[i].Runs, rate)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, t := range trials {
		results[i].MessagesPerSecond = statistics.Median(results[i].Runs)
		results[i].Spread = statistics.Spread(results[i].Runs)
		if t.conclude != nil {
			t.conclude(&results[i])
		}
	}
	return results, nil
}

// onCopy runs work on a fresh copy of a stage.
func (b *bench) onCopy(ctx context.Context, s stage, work func(d database) (float64, error)) (float64, error) {
	d, err := b.cluster.create(ctx, s.database)
	if err != nil {
		return 0, err
	}
	rate, err := work(d)
	if err != nil {
		return 0, err // the clean-up drops it
	}
	return rate, b.cluster.drop(ctx, d)
}

// randomBodies makes bodies that do not compress, as full-page images are compressed where the server is set so.
func randomBodies(n, size int) [][]byte {
	bodies := make([][]byte, n)
	for i := range bodies {
		bodies[i] = make([]byte, size)
		_, _ = rand.Read(bodies[i])
	}
	return bodies
}
