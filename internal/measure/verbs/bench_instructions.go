package verbs

import (
	"cmp"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/measure/bench"
	"github.com/parley-broker/parley/internal/measure/instructions"
	"github.com/parley-broker/parley/internal/measure/present"
	"github.com/parley-broker/parley/internal/verb"
)

func newInstructionsCommand(a *measuring) *cobra.Command {
	config := instructions.Config{}
	var systems []bench.Variant
	for _, v := range instructions.Variants() {
		systems = append(systems, bench.Variant{Name: v.Name, Short: v.Short})
	}
	cmd := &cobra.Command{
		Use:   "instructions",
		Short: "Count the instructions that calls take",
		Long: `Count the instructions of the processor that the server takes for a call, on a private server under callgrind: figures that no
neighbour on the machine changes. It needs valgrind, and a minute for each hundred calls or so.

Variants:
` + listSystemsOf(systems),
		Example: "  parley bench instructions\n  parley bench instructions --variant send,life --calls 50 --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if config.Calls < 1 {
				return verb.Usagef("give a number of calls from 1")
			}
			progress := verb.NewProgressLine(a.Stderr)
			config.Progress = progress.Show
			config.Version = cmp.Or(a.PostgresVersion, os.Getenv("PARLEY_POSTGRES_VERSION"))
			report, err := instructions.Measure(cmd.Context(), config)
			progress.Clear()
			if err != nil {
				return err
			}
			if a.JSON {
				return verb.EncodeJSON(cmd.OutOrStdout(), report)
			}
			return writeInstructions(cmd.OutOrStdout(), report)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&config.Calls, "calls", 100, "calls that are counted of each variant")
	flags.StringSliceVar(&config.Variants, "variant", nil, "variants to count, separated by commas (default all)")
	return cmd
}

func writeInstructions(out io.Writer, r instructions.Report) error {
	fmt.Fprintf(out, "PostgreSQL %s, %d calls of each\n", r.PostgresVersion, r.Calls)
	table := present.Numbers("variant", "instructions", "ratio to insert")
	for _, result := range r.Results {
		table.Row(result.Variant, fmt.Sprintf("%.0f", result.Instructions), fmt.Sprintf("%.2f", result.ToInsert))
	}
	table.Write(out)
	return nil
}
