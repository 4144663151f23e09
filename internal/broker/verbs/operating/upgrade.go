package operating

import (
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/schema"
)

func newUpgradeCommand(a *verb.App) *cobra.Command {
	var repair, install bool
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Bring the schema parley to the version of this program",
		Long: `Bring the schema parley to the version of this program, in one transaction. Conversations and waiting
messages stay. When the schema has this version already, nothing happens.

With --install a database without the schema gets it: one command for each start of a container or a rollout.`,
		Example: `  parley upgrade --dsn postgres://shop_owner@db1/shop
  parley upgrade --install`,
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
			if install {
				before, err := schema.ReadStatus(ctx, conn)
				if err != nil {
					return err
				}
				if !before.Installed {
					change = schema.Install
				}
			}
			if err := change(ctx, conn); err != nil {
				return err
			}
			return printStatus(a, cmd, conn, false)
		},
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "re-create functions, views, comments and grants even when the version is right")
	cmd.Flags().BoolVar(&install, "install", false, "install the schema where it is missing")
	return cmd
}
