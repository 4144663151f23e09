package operating

import (
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/schema"
)

func newUpgradeCommand(a *verb.App) *cobra.Command {
	var repair bool
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Bring the schema parley to the version of this program",
		Long: `Bring the schema parley to the version of this program, in one transaction. Conversations and waiting
messages stay. When the schema has this version already, nothing happens.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			conn, err := a.Connect(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			change := schema.Upgrade
			if repair {
				change = schema.Repair
			}
			if err := change(ctx, conn); err != nil {
				return err
			}
			return printStatus(a, cmd, conn, false)
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "re-create functions, views, comments and grants even when the version is right")
	return cmd
}
