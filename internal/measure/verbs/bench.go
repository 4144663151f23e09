// Package verbs is the commands that measure: benchmarks of the broker, and the demo whose every message is checked.
package verbs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/machine"
	"github.com/parley-broker/parley/internal/measure/present"
	"github.com/parley-broker/parley/internal/measure/publish"
	"github.com/parley-broker/parley/internal/measure/report"
	"github.com/parley-broker/parley/internal/tsql/runner"
	"github.com/parley-broker/parley/internal/verb"
)

// measuring holds the settings that the verbs of benchmarks share.
type measuring struct {
	*verb.App

	peers bench.Peers // measured beside Parley; the product itself has none
	flags *frame
	// publish is the folder of a repository that a run of queues is written into; empty for none.
	publish string
	tsql    bool // drain measures procedures in T-SQL too
	// scenarios are the commands that measure, those that answer most first.
	scenarios []*cobra.Command
}

// NewBench makes parley bench, which measures the peers beside the broker.
func NewBench(a *verb.App, peers bench.Peers) *cobra.Command {
	m := &measuring{App: a, peers: peers, flags: &frame{}}
	var scenario string
	given := map[string]*string{"duration": new(string), "rate": new(string), "repeat": new(string)}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Find out what this machine and database do with Parley, and what limits it",
		Long: `Find out what this machine and database do with Parley, how that compares, and what limits it. Before a terminal it is a
wizard: it checks the set-up, asks for a scenario, measures it, and ends with a verdict, the numbers, charts, and the one
thing to try next. Each scenario is a command of its own, too.

It measures on the chosen server, in databases of its own that are dropped in the end. Everything is compared within one
run, in turns; the median counts. How it is done, and what to make of the figures, is in docs/reference/benchmarks.md.`,
		Example: `  parley bench
  parley bench --scenario drain --html drain.html
  parley bench mixed --duration 10s --json > before.json
  parley bench mixed --duration 10s --compare before.json
  parley bench history`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			values := map[string]string{}
			for name, value := range given {
				if *value != "" {
					values[name] = *value
				}
			}
			return m.wizard(cmd, values, scenario)
		},
	}
	m.flags.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&scenario, "scenario", "", "the scenario to measure, without a question")
	flags.StringVar(given["duration"], "duration", "", "time of a run, in scenarios whose runs have no end of their own")
	flags.StringVar(given["rate"], "rate", "", "messages offered a second, in scenarios that offer them at a rate")
	flags.StringVar(given["repeat"], "repeat", "", "runs of each kind, of which the median counts")
	for _, scenario := range bench.Scenarios() {
		m.scenarios = append(m.scenarios, newScenarioCommand(m, scenario))
	}
	m.scenarios = append(m.scenarios, newLatencyCommand(m), newFlowCommand(m), newBBWCommand(m, bench.BBWMessaging),
		newBBWCommand(m, bench.BBWOrchestration), newBBWRatioCommand(m), newMapsCommand(m))
	cmd.AddCommand(m.scenarios...)
	cmd.AddCommand(newHistoryCommand(m), newPresetsCommand(m), newPublishCommand(m), newInstructionsCommand(m))
	return cmd
}

func newScenarioCommand(a *measuring, scenario bench.Scenario) *cobra.Command {
	var config bench.Config
	cmd := &cobra.Command{
		Use:   scenario.Name,
		Short: "Measure " + scenario.Short,
		Long:  "Measure " + scenario.Short + ".\n\nVariants:\n" + listSystemsOf(scenario.Variants),
		Example: fmt.Sprintf("  parley bench %[1]s\n  parley bench %[1]s --variant %[2]s --repeat 5 --json",
			scenario.Name, scenario.Variants[0].Name),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runScenario(cmd, scenario, &config) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&config.Variants, "variant", nil, "variants to measure, separated by commas (default all)")
	flags.IntVar(&config.Sessions, "sessions", 0, "sessions at once (default the variant's own)")
	flags.IntVar(&config.Conversations, "conversations", 0, "conversations, in variants with many (default the variant's own)")
	flags.IntVar(&config.Size, "size", bench.DefaultSize, "bytes of a message body")
	flags.IntVar(&config.Batch, "batch", 0, "messages of a call, in variants that send batches (default the variant's own)")
	flags.IntVar(&config.Messages, "messages", or(scenario.Messages, 1_000_000), "messages that wait to be received, or that age a database")
	flags.DurationVar(&config.Duration, "duration", 5*time.Second, "time of a run that has no end of its own")
	flags.DurationVar(&config.WarmUp, "warm-up", time.Second, "time before such a run that does not count")
	flags.IntVar(&config.Repeat, "repeat", 3, "runs of each kind, in turns, of which the median counts")
	if scenario.Name == "drain" {
		flags.BoolVar(&a.tsql, "tsql", false, "measure the same procedures in T-SQL too, as the daemon interprets them")
	}
	if slices.Contains(publish.Scenarios, scenario.Name) {
		flags.StringVar(&a.publish, "publish", "", "write the run into the documentation of the repository in this folder")
	}
	switch scenario.Takes {
	case bench.TakesMail:
		addMailBenchFlags(cmd, &config)
	case bench.TakesDialog:
		addDialogFlags(cmd, &config.Dialog)
	case bench.TakesRows:
		flags.IntVar(&config.Rows, "rows", bench.DefaultRows, "rows that the business transactions change one of")
	case bench.TakesMatrix:
		addMatrixFlags(cmd, &config)
	case bench.TakesRate:
		flags.IntVar(&config.Dialog.Rate, "rate", 0, "messages offered a second where latency is measured (default the scenario's own)")
	case bench.TakesCommon:
	}
	return cmd
}

func or(asked, usual int) int {
	if asked > 0 {
		return asked
	}
	return usual
}

func (a *measuring) runScenario(cmd *cobra.Command, scenario bench.Scenario, config *bench.Config) error {
	config.Peers = a.peers.Jobs
	if a.tsql {
		config.TSQL = runner.RunOn
	}
	config.Dialog.PostgresVersion, config.Dialog.Logger = cmp.Or(a.PostgresVersion, os.Getenv("PARLEY_POSTGRES_VERSION")), a.Notices()
	return a.run(cmd, measurement{
		frame: &config.Frame,
		check: func() error {
			if len(config.Matrix.Versions) > 0 && a.NamesDatabase() {
				return errNamedVersions
			}
			return config.Check(scenario)
		},
		parts: func() []func() { return partsOfVersions(config) }, join: joinVersions,
		makesServers: scenario.MakesServers(),
		measure: func(ctx context.Context) (outcome, error) {
			report, err := scenario.Run(ctx, *config)
			if err == nil && a.publish != "" {
				err = a.publishRun(cmd, scenario, report)
			}
			return &report, err
		},
		numbers: func(out io.Writer, o outcome) error { return writeReport(out, *o.(*bench.Report)) }, //nolint:forcetypeassert // as measured
		sections: func(o outcome) []report.Section {
			return matrixSections(o.(*bench.Report).Cells) //nolint:forcetypeassert // as measured
		},
		changes: scenario.Changes,
		change:  changeOf(config),
		hint: func(outcome) {
			if scenario.HasPeers {
				a.suggestPeers(scenario.Name)
			}
		},
	})
}

// suggestPeers reports, after a measurement without them, how job queues of others are measured in the same run.
func (a *measuring) suggestPeers(scenario string) {
	if len(a.peers.Jobs) == 0 {
		fmt.Fprintf(a.Stderr, "No peer was measured. "+
			"In a clone of the repository this measures other job queues and brokers, too: go -C bench/peers run . bench %s\n", scenario)
	}
}

// listSystemsOf gives a line for each of some systems.
func listSystemsOf(systems []bench.Variant) string {
	var list strings.Builder
	table := tabwriter.NewWriter(&list, 0, 0, 2, ' ', 0)
	for _, system := range systems {
		fmt.Fprintf(table, "  %s\t%s\n", system.Name, system.Short)
	}
	_ = table.Flush()
	return strings.TrimRight(list.String(), "\n")
}

// writeMissing reports which peers were not measured, and how to get them.
func writeMissing(out io.Writer, settings map[string]any) {
	missing, _ := settings["missing"].(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		present.Prose(out, name+" was not measured: ", missing[name])
	}
}

func writeReport(out io.Writer, report bench.Report) error {
	writeMachine(out, report.Machine, report.Settings)
	writeMissing(out, report.Settings)
	table := present.Numbers("variant", "system", "sessions", "conversations", "size", "batch", "messages/s", "spread", "ratio")
	for _, r := range report.Results {
		variant := strings.Join(append([]string{r.Variant}, nonEmpty(r.Operation, r.Phase)...), " ")
		table.Row(variant, r.System, r.Sessions, r.Conversations, r.Size, r.Batch, fmt.Sprintf("%.0f", r.MessagesPerSecond),
			fmt.Sprintf("%.0f%%", 100*r.Spread), ratioCell(report.Ratios, r.RatioKey()))
	}
	table.Write(out)
	for _, r := range report.Results {
		if l := r.Latency; l != nil {
			present.Prose(out, r.Variant+" "+cmp.Or(r.Operation, r.System)+": ",
				fmt.Sprintf("p50 %.1f ms, p90 %.1f ms, p99 %.1f ms, max %.1f ms", l.P50MS, l.P90MS, l.P99MS, l.MaxMS))
		}
		if r.ProcessorMSPerJob != nil {
			fmt.Fprintf(out, "%s %s: %.2f ms of the server's processor a job\n", r.Variant, r.System, *r.ProcessorMSPerJob)
		}
		if r.ProcessorMSPerMinute != nil {
			fmt.Fprintf(out, "%s: %.0f ms of a processor a minute for each of %d sessions\n", r.Variant, *r.ProcessorMSPerMinute, r.Sessions)
		}
	}
	if report.Paper != "" {
		fmt.Fprintln(out)
		present.Prose(out, "", "The paper: "+report.Paper)
	}
	return writeMailFigures(out, report)
}

func writeMachine(out io.Writer, m machine.Machine, settings map[string]any) {
	present.Prose(out, "", fmt.Sprintf("%s, %d cores, %s", m.CPU, m.Cores, m.OS))
	present.Prose(out, "", fmt.Sprintf("PostgreSQL %s, fsync %v, synchronous_commit %v, shared_buffers %v", m.PostgresVersion,
		settings["fsync"], settings["synchronous_commit"], settings["shared_buffers"]))
	fmt.Fprintln(out)
}

func nonEmpty(values ...string) []string {
	var kept []string
	for _, value := range values {
		if value != "" {
			kept = append(kept, value)
		}
	}
	return kept
}
