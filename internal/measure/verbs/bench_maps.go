package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/maprate"
	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/measure/statistics"
)

// mapsReport is the result of the scenario maps. As JSON it is a stable format, described in docs/reference/json.md.
type mapsReport struct {
	record.Head
	maprate.Report
}

// The parts that the worker has to reach of what is beside it.
const (
	leastToOnce  = 0.7
	leastToEach  = 10
	leastToAlone = 0.8
)

func newMapsCommand(a *measuring) *cobra.Command {
	var config maprate.Config
	cmd := &cobra.Command{
		Use:   "maps",
		Short: "Measure maps in XSLT beside xsltproc",
		Long: `Measure how many orders of 2 KB one worker for stylesheets maps a second, beside one xsltproc that is given all documents at
once, and one xsltproc for each document, in turns. Then small orders are mapped alone, and while a large one is. It needs no database, but
the worker (parley flow map-worker install) and xsltproc. In a clone of the repository bench/peers measures the component xslt of Camel
beside it: go -C bench/peers run . bench maps`,
		Example: "  parley bench maps\n  parley bench maps --repeat 5 --large-mb 0 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var f bench.Frame
			config.Peers = a.peers.Maps
			return a.run(cmd, measurement{
				frame: &f, needsNoServer: true,
				check: func() error {
					if config.Documents < 1 || config.Processes < 1 || config.Repeat < 1 || config.LargeMB < 0 {
						return errors.New("give numbers of documents, processes and repetitions from 1")
					}
					return nil
				},
				measure: func(ctx context.Context) (outcome, error) { return measureMaps(ctx, &f, config) },
				numbers: func(out io.Writer, o outcome) error {
					return writeMaps(out, o.(*mapsReport).Report) //nolint:forcetypeassert // as measured
				},
			})
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&config.Documents, "documents", 1000, "documents of a run")
	flags.IntVar(&config.Processes, "processes", 50, "processes of the run with one for each document")
	flags.IntVar(&config.Repeat, "repeat", 5, "runs of each, in turns, of which the median counts")
	flags.StringVar(&config.Worker, "worker", "", "the worker for stylesheets (default the one that nodes of this machine run)")
	flags.IntVar(&config.LargeMB, "large-mb", 100, "size of the large document in megabytes; 0 for none")
	return cmd
}

func measureMaps(ctx context.Context, f *bench.Frame, config maprate.Config) (*mapsReport, error) {
	asked := map[string]any{
		"documents": config.Documents, "processes": config.Processes, "repeat": config.Repeat, "large_megabytes": config.LargeMB,
	}
	var report mapsReport
	var err error
	report.Head, err = f.OnMachine(ctx, "maps", asked, func(ctx context.Context, head *record.Head, step func(string)) error {
		config.Progress = step
		var err error
		if report.Report, err = maprate.Measure(ctx, config); err != nil {
			return err
		}
		head.Figures = mapsFigures(report.Report)
		return nil
	})
	return &report, err
}

func mapsFigures(r maprate.Report) (figures []record.Figure) {
	for _, f := range []record.Figure{
		{Name: maprate.WorkerRate, Unit: "documents/s", Value: r.Worker},
		{Name: maprate.OnceRate, Unit: "documents/s", Value: r.Once},
		{Name: maprate.EachRate, Unit: "documents/s", Value: r.Each},
		{Name: maprate.ToOnce, Unit: "times", Value: r.ToOnce, Limit: record.Limit{AtLeast: leastToOnce}},
		{Name: maprate.ToEach, Unit: "times", Value: r.ToEach, Limit: record.Limit{AtLeast: leastToEach}},
		{Name: "beside a large one", Unit: "documents/s", Value: r.BesideLarge},
		{Name: "beside a large one to alone", Unit: "times", Value: r.BesideLargeTo, Limit: record.Limit{AtLeast: leastToAlone}},
	} {
		if f.Value > 0 {
			f.Runs = r.Rounds[f.Name]
			if len(f.Runs) > 0 {
				f.Spread = statistics.Spread(f.Runs)
			}
			figures = append(figures, f)
		}
	}
	for _, p := range r.Peers {
		figures = append(figures, record.Figure{Name: p.System, Unit: "documents/s", Value: p.PerSecond})
	}
	return figures
}

func writeMaps(out io.Writer, r maprate.Report) error {
	fmt.Fprintf(out, "documents of %d bytes a second: one worker %.0f, one xsltproc given all %.0f, an xsltproc for each %.0f\n",
		r.Bytes, r.Worker, r.Once, r.Each)
	_, err := fmt.Fprintf(out, "ratio of the worker: %.2f to xsltproc given all, %.1f to one for each\n", r.ToOnce, r.ToEach)
	for _, p := range r.Peers {
		_, err = fmt.Fprintf(out, "%s: %.0f a second, ratio of the worker %.2f (%s)\n", p.System, p.PerSecond, p.WorkerTo, p.Short)
	}
	for _, system := range slices.Sorted(maps.Keys(r.Missing)) {
		_, err = fmt.Fprintf(out, "%s was left out: %s\n", system, r.Missing[system])
	}
	if r.LargeMegabytes > 0 {
		_, err = fmt.Fprintf(out, "beside a document of %d MB, which took %.1f s: %.0f a second, %.2f of their rate alone\n",
			r.LargeMegabytes, r.LargeSeconds, r.BesideLarge, r.BesideLargeTo)
	}
	return err
}
