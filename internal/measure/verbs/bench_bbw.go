package verbs

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/bottleneck"
	"github.com/parley-broker/parley/internal/measure/present"
	"github.com/parley-broker/parley/internal/measure/report"
	"github.com/parley-broker/parley/internal/verb"
)

// bbwTexts are the help of the commands, by their scenario.
var bbwTexts = map[bench.BBWScenario]struct{ short, long string }{
	bench.BBWMessaging: {
		"Measure the messaging scenario of BizTalk's Benchmark Wizard, with its five figures and its verdict beside ours",
		`Measure the messaging scenario of BizTalk's Benchmark Wizard: a generator sends over TCP, with up to 200 bodies of 188 bytes that
wait for their acknowledgement; a location of the host BBW_RxHost publishes them; a send port of BBW_TxHost is the only subscriber and sends
them on to a back end that forgets them.`,
	},
	bench.BBWOrchestration: {
		"Measure the orchestration scenario of BizTalk's Benchmark Wizard, with its five figures and its verdict beside ours",
		`Measure the orchestration scenario of BizTalk's Benchmark Wizard: a generator sends over TCP, with up to 200 bodies of 188 bytes
that wait for their acknowledgement; a location of the host BBW_RxHost finds their type and publishes them; an orchestration of BBW_PxHost
takes each and sends it; a send port of BBW_TxHost is the only subscriber of its output and sends it on to a back end that forgets it. Four
copies of the orchestration are deployed, one is started.`,
	},
}

func newBBWCommand(a *measuring, scenario bench.BBWScenario) *cobra.Command {
	config := bench.BBWConfig{Scenario: scenario}
	var environments string
	cmd := &cobra.Command{
		Use:   string(scenario),
		Short: bbwTexts[scenario].short,
		Long: bbwTexts[scenario].long + ` Tracking is on. The first 120 s do not count; a sample is taken every 5 s.

The original's verdict is about five averages. Ours also asks whether what came in went out, nothing was lost, nothing throttled, and
the queue drained. An environment gives the limits.

Environments:
` + listEnvironments(scenario, nil),
		Example: fmt.Sprintf(`  parley bench %[1]s
  parley bench %[1]s --duration 20s --warm-up 5s --sample 1s --size 2048 --environment 1-1
  parley bench %[1]s --sustain --duration 1h`, scenario),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if config.Further, err = readEnvironments(environments); err != nil {
				return err
			}
			return a.runBBW(cmd, &config)
		},
	}
	flags := cmd.Flags()
	addBBWFlags(cmd, &config, &environments)
	flags.IntVar(&config.Size, "size", 188, "bytes of a body; the vendor's study has 2048")
	flags.IntVar(&config.Rate, "rate", 0, "messages offered a second (default as fast as they are acknowledged)")
	flags.DurationVar(&config.Duration, "duration", 10*time.Minute, "time that counts")
	flags.DurationVar(&config.WarmUp, "warm-up", 2*time.Minute, "time before it that does not count")
	flags.DurationVar(&config.Every, "sample", 5*time.Second, "time of a sample")
	flags.Float64Var(&config.P95, "p95", 0, "limit of the time from end to end, in ms, that 95 of 100 keep; 0 for none")
	flags.BoolVar(&config.Sustain, "sustain", false, "search the highest sustained rate, and play the patterns sustained, overdrive "+
		"and floodgate")
	return cmd
}

// addBBWFlags adds the flags that the scenarios and their comparison share.
func addBBWFlags(cmd *cobra.Command, config *bench.BBWConfig, environments *string) {
	flags := cmd.Flags()
	flags.StringVar(&config.Environment, "environment", "single", "the environment whose limits count")
	flags.StringVar(environments, "environments", "", "a file of environments beside those of the original")
	flags.StringVar(&config.Edition, "edition", "later", "the edition of the original whose targets count: later or earlier")
	flags.StringVar(&config.Charset, "charset", "utf-16", "charset of a body: utf-16, with a mark, as the original's, or utf-8")
	flags.IntVar(&config.Connections, "connections", 200, "connections of the generator, each with one body on its way")
	flags.IntVar(&config.Outstanding, "outstanding", 1000, "bodies that the back end does not have yet, at most, where there is no --rate; "+
		"the original has 10000")
	flags.IntVar(&config.Workers, "workers", 2, "connections to the back end")
	flags.DurationVar(&config.BackEndTime, "back-end-time", 0, "how long the back end takes for a message")
}

// readEnvironments reads a file of environments, if one is named.
func readEnvironments(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, verb.AsUsage(err)
	}
	return text, nil
}

func listEnvironments(scenario bench.BBWScenario, further []byte) string {
	all, err := bench.Environments(further)
	if err != nil {
		return err.Error()
	}
	var list []bench.Variant
	for _, e := range all {
		targets := e.Targets(scenario)
		list = append(list, bench.Variant{Name: e.Name, Short: fmt.Sprintf("%s: %.0f/s, earlier %.0f/s", e.Short, targets["later"],
			targets["earlier"])})
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
		change:   changeOfBBW(config),
	})
}

// changeOfBBW makes changes of a scenario of the original.
func changeOfBBW(config *bench.BBWConfig) func(setting string) string {
	return func(setting string) string {
		switch setting {
		case bottleneck.SettingWorkers:
			return changeNumber("workers", &config.Workers, 1, 4)
		case bottleneck.SettingSessions:
			return changeNumber("connections", &config.Connections, 1, 2)
		}
		return ""
	}
}

func succeeded(yes bool) string {
	if yes {
		return "Succeeded"
	}
	return "Failed"
}

func writeBBW(out io.Writer, r bench.BBWReport) error {
	writeMachine(out, r.Machine, r.Settings)
	present.Prose(out, "", fmt.Sprintf("The original's verdict: %s (%s). All three processors are of this machine.", r.Original,
		r.Environment.Short))
	table := present.Columns("KPI", "value", "limit", "")
	for _, k := range r.KPIs {
		table.Row(k.Name, fmt.Sprintf("%.1f", k.Value), fmt.Sprintf("%.0f", k.Limit), succeeded(k.Succeeded))
	}
	table.Write(out)
	fmt.Fprintln(out)
	for _, edition := range []string{"earlier", "later"} {
		present.Prose(out, fmt.Sprintf("Thresholds of the %s edition: ", edition), thresholdsOf(r.Thresholds, edition))
	}
	a := r.Accounts
	fmt.Fprintf(out, "Acknowledged %d; the database counted %d received and %d processed;\n  lost %d, doubled %d; drained in %.1f s\n",
		a.Acknowledged, a.Received, a.Processed, a.Lost, a.Doubled, r.Drained)
	fmt.Fprintf(out, "From end to end p50 %.1f ms, p95 %.1f ms, p99 %.1f ms\n", r.Latency.P50MS, r.P95MS, r.Latency.P99MS)
	if len(r.Patterns) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	table = present.Numbers("pattern", "offered/s", "seconds", "backlog", "recovered in s", "flat")
	for _, p := range r.Patterns {
		table.Row(p.Name, fmt.Sprintf("%.0f", p.Offered), fmt.Sprintf("%.0f", p.Seconds), p.Backlog, fmt.Sprintf("%.1f", p.Recovery), p.IsFlat)
	}
	table.Write(out)
	return nil
}

// thresholdsOf lists the rates that the original asks for, with a mark at those that were reached.
func thresholdsOf(thresholds []bench.Threshold, edition string) string {
	var list []string
	for _, t := range thresholds {
		if t.Edition != edition {
			continue
		}
		mark := "no"
		if t.IsAbove {
			mark = "yes"
		}
		list = append(list, fmt.Sprintf("%.0f %s", t.Rate, mark))
	}
	return strings.Join(list, ", ")
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
	rungs := &report.Table{Caption: "Both rates have to be above", Head: []string{"Environment", "Edition", "Messages/s", "Reached"}}
	for _, t := range r.Thresholds {
		rungs.Rows = append(rungs.Rows, []string{t.Environment, t.Edition, fmt.Sprintf("%.0f", t.Rate), succeeded(t.IsAbove)})
	}
	sections = append(sections, report.Section{Title: "The thresholds of its environments", Table: rungs})
	if len(r.Patterns) > 0 {
		sections = append(sections, patternSection(r.Patterns))
	}
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

func patternSection(patterns []bench.BBWPattern) report.Section {
	table := &report.Table{Head: []string{"Pattern", "Offered/s", "Seconds", "Backlog", "Recovered in s", "Flat"}}
	for _, p := range patterns {
		table.Rows = append(table.Rows, []string{
			p.Name, fmt.Sprintf("%.0f", p.Offered), fmt.Sprintf("%.0f", p.Seconds), strconv.FormatInt(p.Backlog, 10),
			fmt.Sprintf("%.1f", p.Recovery), strconv.FormatBool(p.IsFlat),
		})
	}
	return report.Section{Title: "Highest sustained throughput", Table: table}
}
