package operating

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/schema"
)

func newVerifyCommand(a *verb.App) *cobra.Command {
	return &cobra.Command{
		Use:     "verify",
		Example: "  parley verify --dsn postgres://localhost/orders",
		Short:   "Compare the installed schema with its definition",
		Long: `Compare every function, table, column, constraint, index, view, sequence, grant and comment of the installed
schema with its definition in this program. Nothing is changed, and senders and receivers notice nothing.
The exit code is 1 when anything is different; parley upgrade --repair re-creates what holds no data.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			conn, err := a.Connect(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			differences, err := schema.Verify(ctx, conn)
			if err != nil {
				return err
			}
			if err := printDifferences(a, cmd.OutOrStdout(), differences); err != nil {
				return err
			}
			if n := len(differences); n > 0 {
				return fmt.Errorf("schema parley is not as version %d defines it: differences: %d", parley.SchemaVersion, n)
			}
			return nil
		},
	}
}

func printDifferences(a *verb.App, out io.Writer, differences []schema.Difference) error {
	if a.JSON {
		// A list even when it is empty.
		return json.NewEncoder(out).Encode(map[string]any{
			"schema_version": parley.SchemaVersion,
			"differences":    append([]schema.Difference{}, differences...),
		})
	}
	for _, difference := range differences {
		if _, err := fmt.Fprintln(out, difference); err != nil {
			return err
		}
	}
	if len(differences) > 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "schema parley is as version %d defines it\n", parley.SchemaVersion)
	return err
}
