package verbs

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/record"
	"github.com/parley-broker/parley/internal/verb"
)

func newHistoryCommand(a *measuring) *cobra.Command {
	var scenario string
	var limit int
	cmd := &cobra.Command{
		Use:   "history",
		Short: "List the runs of benchmarks on this machine, the latest last",
		Args:  cobra.NoArgs,
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
			table := verb.NewTable(cmd.OutOrStdout())
			fmt.Fprintln(table, "when\tscenario\tparley\tPostgreSQL\tverdict\tfigures")
			for _, run := range shown {
				var figures []string
				for _, f := range run.Figures[:min(3, len(run.Figures))] {
					figures = append(figures, f.Name+" "+record.Text(f.Value, f.Unit))
				}
				grade := record.Grade("-")
				if run.Verdict != nil {
					grade = run.Verdict.Grade
				}
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", verb.Moment(&run.StartedAt), run.Scenario, run.Parley,
					run.Machine.PostgresVersion, grade,
					strings.Join(figures, ", "))
			}
			return table.Flush()
		},
	}
	cmd.Flags().StringVar(&scenario, "scenario", "", "runs of this scenario only")
	cmd.Flags().IntVar(&limit, "limit", 20, "runs to list")
	return cmd
}
