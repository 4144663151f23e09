package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"

	"github.com/parley-broker/parley/internal/measure/machine"
	"github.com/parley-broker/parley/internal/measure/site"
	"github.com/parley-broker/parley/internal/measure/statistics"
)

// Scenario is what one command measures.
type Scenario struct {
	Name     string
	Short    string
	Variants []Variant
	// MakesServers reports that it makes private servers of its own when Config has no DSN.
	MakesServers bool
	// HasPeers reports that the peers of Config are measured, too.
	HasPeers bool
	// IsMail reports that it takes MailOptions, and that its variants have sizes of their own.
	IsMail bool
	// Paper is what the seed paper has measured of the kind, or "".
	Paper   string
	measure func(ctx context.Context, b *bench) ([]Result, error)
}

// Variant is one way to do what a scenario is about.
type Variant struct {
	Name  string
	Short string
}

// Scenarios lists what can be measured.
func Scenarios() []Scenario {
	return []Scenario{
		sendScenario(), receiveScenario(), simpleScenario(), lifeScenario(), decayScenario(), dialogScenario(), mailScenario(),
	}
}

// bench is one run of a scenario.
type bench struct {
	Config
	cluster *cluster
	stages  map[string]stage
	settled map[string]any // settings that turn out on the way

	// What dialogs need besides: servers of our own, if there are, the further ones among them, and the daemons' folder.
	servers *site.Servers
	places  []*bench
	folder  *site.Folder
	daemons int
	isWarm  bool // the server has been warmed up
	// serverSettings are those of the servers of our own.
	serverSettings map[string]string
}

// Run measures the scenario. It makes databases of its own on the server and drops them before it returns, also when ctx ends.
func (s Scenario) Run(ctx context.Context, config Config) (report Report, err error) {
	if !s.IsMail {
		config.Size = or(config.Size, DefaultSize)
	}
	if err := config.Check(s); err != nil {
		return Report{}, err
	}
	b := &bench{Config: config, stages: map[string]stage{}, settled: map[string]any{}}
	b.serverSettings = dialogSettings
	if s.IsMail {
		b.serverSettings = mailServerSettings(config.Mail.ServerCache)
	}
	if s.MakesServers {
		defer func() { err = errors.Join(err, b.closeServers(ctx)) }()
		if err := b.openServers(ctx); err != nil {
			return Report{}, err
		}
		config.DSN = b.DSN
	}
	cluster, err := openCluster(ctx, config.DSN)
	if err != nil {
		return Report{}, err
	}
	b.cluster = cluster
	defer func() {
		b.progress("cleaning up")
		err = errors.Join(err, cluster.cleanUp(ctx))
	}()
	report.Scenario, report.Paper = s.Name, s.Paper
	if s.IsMail {
		report.Seed = mailSeed()
	}
	if report.Machine, err = machine.Read(ctx, cluster.admin); err != nil {
		return Report{}, err
	}
	if report.Settings, err = readSettings(ctx, cluster.admin, config); err != nil {
		return Report{}, err
	}
	if report.Results, err = s.measure(ctx, b); err != nil {
		return Report{}, fmt.Errorf("measure %s: %w", s.Name, err)
	}
	maps.Copy(report.Settings, b.settled)
	report.Ratios = ratios(report.Results)
	return report, nil
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
	for repeat := range b.Repeat {
		for i, t := range trials {
			b.progress("run %d of %d: %s", repeat+1, b.Repeat, t.result.title())
			rate, err := t.run(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.result.title(), err)
			}
			results[i].Runs = append(results[i].Runs, rate)
		}
	}
	for i := range results {
		results[i].MessagesPerSecond = statistics.Median(results[i].Runs)
		results[i].Spread = statistics.Spread(results[i].Runs)
		if conclude := trials[i].conclude; conclude != nil {
			conclude(&results[i])
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
