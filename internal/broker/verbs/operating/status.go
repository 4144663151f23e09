package operating

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/schema"
)

func newStatusCommand(a *verb.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "status",
		Example: "  parley status\n  parley status --json",
		Short:   "Show what is installed in the database",
		Long: `Show what is installed in the database, and how many objects it has. Conversations are counted by sides; those that are
closed, and only remembered for a while, are counted with --all.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			conn, err := a.Connect(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			return printStatus(a, cmd, conn, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also count conversations that are closed and only remembered for a while")
	return cmd
}

// printStatus reports what is installed now; it is the last act of every verb that changes that.
func printStatus(a *verb.App, cmd *cobra.Command, conn *pgx.Conn, all bool) error {
	status, err := schema.ReadStatus(cmd.Context(), conn)
	if err != nil {
		return err
	}
	if a.JSON {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(status)
	}
	return writeStatus(cmd.OutOrStdout(), status, all)
}

func writeStatus(out io.Writer, status schema.Status, all bool) error {
	if !status.Installed {
		_, err := fmt.Fprintf(out, "schema parley is not installed; parley install creates version %d\n", status.CurrentSchemaVersion)
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "schema version\t%d%s\n", status.SchemaVersion, versionRemark(status))
	fmt.Fprintf(table, "release\t%s\n", status.Release)
	fmt.Fprintf(table, "owner\t%s\n", status.Owner)
	fmt.Fprintf(table, "installed\t%s\n", status.InstalledAt.Format(time.RFC3339))
	if status.UpgradedAt != nil {
		fmt.Fprintf(table, "upgraded\t%s\n", status.UpgradedAt.Format(time.RFC3339))
	}
	fmt.Fprintf(table, "message types\t%d\n", status.MessageTypes)
	fmt.Fprintf(table, "contracts\t%d\n", status.Contracts)
	fmt.Fprintf(table, "queues\t%d\n", status.Queues)
	fmt.Fprintf(table, "services\t%d\n", status.Services)
	fmt.Fprintf(table, "conversation endpoints\t%s\n", estimated(status.Conversations, status.ConversationsAreEstimate))
	if all {
		fmt.Fprintf(table, "closed endpoints\t%s\n", estimated(status.ClosedConversations, status.ClosedConversationsAreEstimate))
	}
	return table.Flush()
}

// estimated marks a number that is not a count.
func estimated(number int64, isEstimate bool) string {
	if isEstimate {
		return fmt.Sprintf("%d (estimated)", number)
	}
	return fmt.Sprint(number)
}

// versionRemark reports what to do when the program has another version.
func versionRemark(status schema.Status) string {
	switch {
	case status.UpgradeNeeded():
		return fmt.Sprintf(" (older than this program's %d: run parley upgrade)", status.CurrentSchemaVersion)
	case status.SchemaVersion > status.CurrentSchemaVersion:
		return fmt.Sprintf(" (newer than this program's %d: use a newer release)", status.CurrentSchemaVersion)
	}
	return ""
}
