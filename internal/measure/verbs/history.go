package verbs

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/present"
	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/verb"
)

func newHistoryCommand(a *measuring) *cobra.Command {
	var scenario string
	var limit int
	cmd := &cobra.Command{
		Use:     "history",
		Example: "  parley bench history",
		Short:   "List the runs of benchmarks on this machine, the latest last",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			runs, err := (record.History{Path: a.flags.history}).Runs()
			if err != nil {
				return err
			}
			var shown []record.Head
			for _, run := range runs {
				if scenario == "" || run.Scenario == scenario {
					shown = append(shown, run)
				}
			}
			shown = shown[max(0, len(shown)-limit):]
			if a.JSON {
				if shown == nil {
					shown = []record.Head{}
				}
				return verb.EncodeJSON(cmd.OutOrStdout(), shown)
			}
			writeHistory(cmd.OutOrStdout(), shown)
			return nil
		},
	}
	cmd.Flags().StringVar(&scenario, "scenario", "", "runs of this scenario only")
	cmd.Flags().IntVar(&limit, "limit", 20, "runs to list")
	return cmd
}

// mostHistoryFigures are those of a run that are listed.
const mostHistoryFigures = 3

// writeHistory writes a line for each run, and below it its first figures.
func writeHistory(out io.Writer, runs []record.Head) {
	table := present.Columns("when", "scenario", "parley", "PostgreSQL", "verdict")
	for _, run := range runs {
		grade := record.Grade("-")
		if run.Verdict != nil {
			grade = run.Verdict.Grade
		}
		version, _, _ := strings.Cut(run.Machine.PostgresVersion, " ")
		table.Row(verb.Moment(&run.StartedAt), run.Scenario, run.Parley, version, grade)
	}
	for i, line := range table.Lines() {
		fmt.Fprintln(out, line)
		if i == 0 {
			continue
		}
		var figures []string
		for _, f := range runs[i-1].Figures[:min(mostHistoryFigures, len(runs[i-1].Figures))] {
			figures = append(figures, f.Name+" "+record.Text(f.Value, f.Unit))
		}
		if len(figures) > 0 {
			present.Prose(out, "    ", strings.Join(figures, ", "))
		}
	}
}
