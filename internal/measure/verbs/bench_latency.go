package verbs

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/present"
)

func newLatencyCommand(a *measuring) *cobra.Command {
	var config bench.LatencyConfig
	cmd := &cobra.Command{
		Use:   "latency",
		Short: "Measure the way from a sender's commit to the work on its message",
		Long: `Measure how long it takes from a sender's commit to the first statement of the work on its message. The command of
the module bench/peers measures the same work through River beside it, a job queue for Go that is woken by LISTEN/NOTIFY.

Messages are offered at a steady rate, each in a transaction of its own, whether or not those before it have been
worked on. All times are the server's: the sender's is read in the round trip of its commit, directly after it.

Systems:
` + listSystemsOf(bench.LatencySystems(a.peers.Jobs)),
		Example: `  parley bench latency
  parley bench latency --rate 200 --duration 5s --system parley_consumer --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runLatency(cmd, &config) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&config.Systems, "system", nil, "systems to measure, separated by commas (default all)")
	flags.IntVar(&config.Rate, "rate", 1000, "messages offered a second")
	flags.DurationVar(&config.Duration, "duration", 30*time.Second, "time of a run")
	flags.DurationVar(&config.WarmUp, "warm-up", 2*time.Second, "time before it that does not count")
	flags.IntVar(&config.Senders, "senders", 4, "sessions that send")
	flags.IntVar(&config.Readers, "readers", 4, "messages worked on at once")
	flags.IntVar(&config.Conversations, "conversations", 100, "conversations that the messages are spread over")
	flags.IntVar(&config.Size, "size", bench.DefaultSize, "bytes of a message body")
	flags.IntVar(&config.Repeat, "repeat", 1, "runs of each system, in turns, of which the median counts")
	return cmd
}

func (a *measuring) runLatency(cmd *cobra.Command, config *bench.LatencyConfig) error {
	config.Peers = a.peers.Jobs
	return a.run(cmd, measurement{
		frame: &config.Frame,
		check: config.Check,
		measure: func(ctx context.Context) (outcome, error) {
			report, err := bench.MeasureLatency(ctx, *config)
			return &report, err
		},
		numbers: func(out io.Writer, o outcome) error {
			return writeLatency(out, *o.(*bench.LatencyReport), a.peers.Jobs) //nolint:forcetypeassert // as measured
		},
		changes: []string{bottleneck.SettingReaders, bottleneck.SettingSessions},
		change:  func(string) string { return changeNumber("readers", &config.Readers, 1, 2) },
		hint: func(outcome) {
			if len(config.Systems) == 0 {
				a.suggestPeers("latency")
			}
		},
	})
}

func writeLatency(out io.Writer, report bench.LatencyReport, peers []bench.Peer) error {
	writeMachine(out, report.Machine, report.Settings)
	writeMissing(out, report.Settings)
	table := present.Numbers("system", "messages", "offered/s", "sent/s", "p50 ms", "p90 ms", "p99 ms", "max ms", "spread")
	for _, r := range report.Results {
		var messages int64
		var rate float64
		for _, run := range r.Runs {
			messages += run.Messages
			rate += run.SentPerSecond / float64(len(r.Runs))
		}
		row := []any{r.System, messages, report.Settings["rate"], fmt.Sprintf("%.0f", rate)}
		for _, ms := range []float64{r.P50MS, r.P90MS, r.P99MS, r.MaxMS} {
			row = append(row, fmt.Sprintf("%.2f", ms))
		}
		table.Row(append(row, fmt.Sprintf("%.0f%%", 100*r.Spread))...)
	}
	table.Write(out)
	writePeerRatios(out, report, peers)
	return nil
}

// writePeerRatios compares the times with those of each peer that was measured.
func writePeerRatios(out io.Writer, report bench.LatencyReport, peers []bench.Peer) {
	table, has := present.Numbers("system", "beside", "p50 to it", "p99 to it"), false
	for _, r := range report.Results {
		for _, p := range peers {
			p50, p99 := ratioCell(report.Ratios, "p50:"+r.System+"/"+p.Name), ratioCell(report.Ratios, "p99:"+r.System+"/"+p.Name)
			if p50 != "" || p99 != "" {
				table.Row(r.System, p.Name, p50, p99)
				has = true
			}
		}
	}
	if has {
		fmt.Fprintln(out)
		table.Write(out)
	}
}

// ratioCell shows a ratio, where it was measured.
func ratioCell(ratios map[string]float64, key string) string {
	value, ok := ratios[key]
	if !ok {
		return ""
	}
	return strconv.FormatFloat(value, 'f', 2, 64)
}
