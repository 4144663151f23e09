package verbs

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/maprate"
	"github.com/parley-broker/parley/internal/verb"
)

func newMapsCommand(a *measuring) *cobra.Command {
	config := maprate.Config{}
	cmd := &cobra.Command{
		Use:   "maps",
		Short: "Measure maps in XSLT beside xsltproc",
		Long: `Measure how many orders of 2 KB one worker for stylesheets maps a second, beside one xsltproc that is given all documents at
once, and one xsltproc for each document, in turns. Then small orders are mapped alone, and while a large one is. It needs no database. In a
clone of the repository bench/peers measures the component xslt of Camel beside it: go -C bench/peers run . bench maps`,
		Example: "  parley bench maps\n  parley bench maps --repeat 5 --large-mb 0 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if config.Documents < 1 || config.Processes < 1 || config.Repeat < 1 || config.LargeMB < 0 {
				return verb.Usagef("give numbers of documents, processes and repetitions from 1")
			}
			progress := verb.NewProgressLine(a.Stderr)
			config.Peers = a.peers.Maps
			config.Progress = progress.Show
			report, err := maprate.Measure(cmd.Context(), config)
			progress.Clear()
			if err != nil {
				return err
			}
			if a.JSON {
				return verb.EncodeJSON(cmd.OutOrStdout(), report)
			}
			return writeMaps(cmd.OutOrStdout(), report)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&config.Documents, "documents", 1000, "documents of a run")
	flags.IntVar(&config.Processes, "processes", 50, "processes of the run with one for each document")
	flags.IntVar(&config.Repeat, "repeat", 5, "runs of each, in turns, of which the median counts")
	flags.IntVar(&config.LargeMB, "large-mb", 100, "size of the large document in megabytes; 0 for none")
	return cmd
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
