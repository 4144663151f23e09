package verbs

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/present"
)

func newFlowCommand(a *measuring) *cobra.Command {
	var config bench.FlowConfig
	cmd := &cobra.Command{
		Use:   "flow",
		Short: "Measure one hop through the integration engine, from TCP to TCP",
		Long: `Measure one hop through the integration engine: a generator sends XML over TCP, with up to 200 bodies that wait for
their acknowledgement, a receive location types and publishes them, a send port that subscribes by content sends them on
over TCP, and a back end takes and forgets them. A run is over when the back end has all of them. Then bodies are offered
at a quarter of that rate, and the time of each on its way is taken. Requests by HTTP are measured so too, with as many
clients as connections, which each wait for the answer of a function.

The floor in the same run is COPY and DELETE of the same bodies, in batches of 100. The command of the module
bench/peers measures Spring Integration, Camel, Benthos and DBOS beside it.

Systems:
` + listSystemsOf(bench.FlowSystems(a.peers.Hops)),
		Example: `  parley bench flow
  parley bench flow --duration 5s --size 188 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runFlow(cmd, &config) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&config.Systems, "system", nil, "systems to measure, separated by commas (default all)")
	flags.IntSliceVar(&config.Sizes, "size", []int{188, 2048}, "bytes of a body; several are measured one after the other")
	flags.IntVar(&config.Connections, "connections", 200, "connections of the generator, each with one body on its way")
	flags.IntVar(&config.Workers, "workers", 8, "deliveries of a peer at once")
	flags.DurationVar(&config.Duration, "duration", 20*time.Second, "time of a run")
	flags.DurationVar(&config.WarmUp, "warm-up", 5*time.Second, "time before it that does not count")
	flags.IntVar(&config.Repeat, "repeat", 3, "runs of each system, in turns, of which the median counts")
	return cmd
}

func (a *measuring) runFlow(cmd *cobra.Command, config *bench.FlowConfig) error {
	config.Peers = a.peers.Hops
	return a.run(cmd, measurement{
		frame: &config.Frame,
		check: config.Check,
		measure: func(ctx context.Context) (outcome, error) {
			report, err := bench.MeasureFlow(ctx, *config)
			return &report, err
		},
		numbers: func(out io.Writer, o outcome) error { return writeFlow(out, *o.(*bench.FlowReport)) }, //nolint:forcetypeassert // as measured
		changes: []string{bottleneck.SettingWorkers, bottleneck.SettingSessions},
		change: func(setting string) string {
			switch setting {
			case bottleneck.SettingWorkers:
				return changeNumber("workers", &config.Workers, 1, 2)
			case bottleneck.SettingSessions:
				return changeNumber("connections", &config.Connections, 1, 2)
			}
			return ""
		},
		hint: func(outcome) {
			if len(a.peers.Hops) == 0 && len(config.Systems) == 0 {
				fmt.Fprintln(a.Stderr, "No peer was measured. "+
					"In a clone of the repository this measures Spring Integration, Camel, Benthos and DBOS, too: "+
					"go -C bench/peers run . bench flow")
			}
		},
	})
}

func writeFlow(out io.Writer, report bench.FlowReport) error {
	writeMachine(out, report.Machine, report.Settings)
	table := present.Numbers("system", "size", "messages", "received/s", "processed/s", "backlog", "spread", "Parley to it")
	for _, r := range report.Results {
		table.Row(r.System, r.Size, r.Messages, fmt.Sprintf("%.0f", r.ReceivedPerSecond), fmt.Sprintf("%.0f", r.ProcessedPerSecond), r.Backlog,
			fmt.Sprintf("%.0f%%", 100*r.Spread), ratioCell(report.Ratios, fmt.Sprintf("parley/%s %d", r.System, r.Size)))
	}
	table.Write(out)
	for _, name := range slices.Sorted(maps.Keys(report.Ratios)) {
		if strings.HasPrefix(name, "parley-orchestration/") {
			fmt.Fprintf(out, "%s bytes: %.2f\n", name, report.Ratios[name])
		}
	}
	if l := report.Latency; l != nil {
		fmt.Fprintln(out)
		present.Prose(out, "", fmt.Sprintf("At %d messages of %d bytes a second: p50 %.2f ms, p90 %.2f ms, p99 %.2f ms, max %.2f ms",
			l.Rate, l.Size, l.P50MS, l.P90MS, l.P99MS, l.MaxMS))
		present.Prose(out, "", fmt.Sprintf("An INSERT with its commit: p50 %.2f ms; the hop takes %.1f of them, its p99 %.1f",
			l.InsertP50MS, l.P50MS/l.InsertP50MS, l.P99MS/l.InsertP50MS))
	}
	if r := report.Requests; r != nil {
		fmt.Fprintln(out)
		present.Prose(out, "", fmt.Sprintf("Requests of %d bytes: %.0f a second at most; at %d a second p50 %.2f ms, p90 %.2f ms, p99 %.2f "+
			"ms, max %.2f ms", r.Size, r.PeakPerSecond, r.Rate, r.P50MS, r.P90MS, r.P99MS, r.MaxMS))
		fmt.Fprintf(out, "An INSERT with its commit: p50 %.2f ms; a request takes %.1f of them\n", r.InsertP50MS, r.ToInsert)
	}
	for _, r := range report.Results {
		if r.Promise != "" && r.Size == report.Results[0].Size {
			present.Prose(out, r.System+" promises less: ", r.Promise)
		}
	}
	for _, system := range slices.Sorted(maps.Keys(report.Missing)) {
		present.Prose(out, system+" was left out: ", report.Missing[system])
	}
	return nil
}
