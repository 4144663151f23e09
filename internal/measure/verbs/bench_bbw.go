package verbs

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/report"
	"github.com/parley-broker/parley/internal/verb"
)

func newBBWCommand(a *measuring) *cobra.Command {
	var config bench.BBWConfig
	var environments string
	cmd := &cobra.Command{
		Use:   "bbw-messaging",
		Short: "Measure the messaging scenario of BizTalk's Benchmark Wizard, with its five figures and its verdict beside ours",
		Long: `Measure the messaging scenario of BizTalk's Benchmark Wizard: a generator sends over TCP, with up to 200 bodies of 188 bytes that
wait for their acknowledgement; a location of the host BBW_RxHost publishes them; a send port of BBW_TxHost is the only subscriber and sends
them on to a back end that forgets them. Tracking is on. The first 120 s do not count; a sample is taken every 5 s.

The original's verdict is about five averages. Ours also asks whether what came in went out, nothing was lost, nothing throttled, and
the queue drained. An environment gives the limits.

Environments:
` + listEnvironments(nil),
		Example: `  parley bench bbw-messaging
  parley bench bbw-messaging --duration 20s --warm-up 5s --sample 1s --size 2048 --environment 1-1
  parley bench bbw-messaging --sustain --duration 1h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if environments != "" {
				text, err := os.ReadFile(environments)
				if err != nil {
					return verb.AsUsage(err)
				}
				config.Further = text
			}
			return a.runBBW(cmd, &config)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&config.Environment, "environment", "single", "the environment whose limits count")
	flags.StringVar(&environments, "environments", "", "a file of environments beside those of the original")
	flags.StringVar(&config.Edition, "edition", "later", "the edition of the original whose targets count: later or earlier")
	flags.IntVar(&config.Size, "size", 188, "bytes of a body; the vendor's study has 2048")
	flags.IntVar(&config.Connections, "connections", 200, "connections of the generator, each with one body on its way")
	flags.IntVar(&config.Workers, "workers", 2, "connections to the back end")
	flags.IntVar(&config.Rate, "rate", 0, "messages offered a second (default as fast as they are acknowledged)")
	flags.DurationVar(&config.Duration, "duration", 10*time.Minute, "time that counts")
	flags.DurationVar(&config.WarmUp, "warm-up", 2*time.Minute, "time before it that does not count")
	flags.DurationVar(&config.Every, "sample", 5*time.Second, "time of a sample")
	flags.DurationVar(&config.BackEndTime, "back-end-time", 0, "how long the back end takes for a message")
	flags.Float64Var(&config.P95, "p95", 0, "limit of the time from end to end, in ms, that 95 of 100 keep; 0 for none")
	flags.BoolVar(&config.Sustain, "sustain", false, "search the highest sustained rate, and play the patterns sustained, overdrive "+
		"and floodgate")
	return cmd
}

func listEnvironments(further []byte) string {
	all, err := bench.Environments(further)
	if err != nil {
		return err.Error()
	}
	var list []bench.Variant
	for _, e := range all {
		list = append(list, bench.Variant{Name: e.Name, Short: fmt.Sprintf("%s: %.0f/s, earlier %.0f/s", e.Short, e.Messaging["later"],
			e.Messaging["earlier"])})
	}
	return listSystemsOf(list)
}

func (a *measuring) runBBW(cmd *cobra.Command, config *bench.BBWConfig) error {
	return a.run(cmd, measurement{
		frame: &config.Frame,
		check: config.Check,
		measure: func(ctx context.Context) (outcome, error) {
			found, err := bench.MeasureBBW(ctx, *config)
			return &found, err
		},
		numbers:  func(out io.Writer, o outcome) error { return writeBBW(out, *o.(*bench.BBWReport)) }, //nolint:forcetypeassert // as measured
		sections: func(o outcome) []report.Section { return bbwSections(*o.(*bench.BBWReport)) },       //nolint:forcetypeassert // as measured
		changes:  []string{bottleneck.SettingWorkers, bottleneck.SettingSessions},
		change: func(setting string) string {
			if setting == bottleneck.SettingWorkers {
				return changeNumber("workers", &config.Workers, 1, 4)
			}
			return changeNumber("connections", &config.Connections, 1, 2)
		},
	})
}

func succeeded(yes bool) string {
	if yes {
		return "Succeeded"
	}
	return "Failed"
}

func writeBBW(out io.Writer, r bench.BBWReport) error {
	writeMachine(out, r.Machine, r.Settings)
	fmt.Fprintf(out, "The original's verdict: %s (%s). All three processors are of this machine.\n", r.Original, r.Environment.Short)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "KPI\tvalue\tlimit\t")
	for _, k := range r.KPIs {
		fmt.Fprintf(table, "%s\t%.1f\t%.0f\t%s\n", k.Name, k.Value, k.Limit, succeeded(k.Succeeded))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	a := r.Accounts
	fmt.Fprintf(out, "\nAcknowledged %d; the database counted %d received and %d processed; lost %d, doubled %d; drained in %.1f s\n",
		a.Acknowledged, a.Received, a.Processed, a.Lost, a.Doubled, r.Drained)
	fmt.Fprintf(out, "From end to end p50 %.1f ms, p95 %.1f ms, p99 %.1f ms\n", r.Latency.P50MS, r.P95MS, r.Latency.P99MS)
	if len(r.Patterns) == 0 {
		return nil
	}
	table = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\npattern\toffered/s\tseconds\tbacklog\trecovered in s\tflat\t")
	for _, p := range r.Patterns {
		fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%d\t%.1f\t%v\t\n", p.Name, p.Offered, p.Seconds, p.Backlog, p.Recovery, p.IsFlat)
	}
	return table.Flush()
}

func bbwSections(r bench.BBWReport) []report.Section {
	table := &report.Table{
		Caption: "The original's verdict: " + r.Original + ", for " + r.Environment.Short, Head: []string{"KPI", "Value", "Limit", "Result"},
	}
	for _, k := range r.KPIs {
		table.Rows = append(table.Rows, []string{k.Name, fmt.Sprintf("%.1f", k.Value), fmt.Sprintf("%.0f", k.Limit), succeeded(k.Succeeded)})
	}
	sections := []report.Section{{Title: "The five figures of BizTalk's wizard", Table: table, After: []string{
		"All three processors are of one machine here: generator, node, database and back end share it.",
	}}}
	if len(r.Taken) > 1 {
		received, processed := report.Series{Name: "received"}, report.Series{Name: "processed"}
		for _, s := range r.Taken {
			received.Points = append(received.Points, report.Point{X: s.Seconds, Y: s.Received})
			processed.Points = append(processed.Points, report.Point{X: s.Seconds, Y: s.Processed})
		}
		sections = append(sections, report.Section{Title: "Received and processed, by the counters of the database", Lines: &report.LineChart{
			ID: "documents", Title: "Documents a second",
			Description: "What was received and what was processed, by the counters of the database.",
			Unit:        "messages/s", XUnit: "seconds", Series: []report.Series{received, processed},
		}})
	}
	return sections
}
