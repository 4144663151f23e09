package operating

import (
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/schema"
)

func newUninstallCommand(a *verb.App) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the schema parley from the database",
		Long: `Remove the schema parley with everything in it, in one transaction. While conversations exist, queues hold
messages, or objects of your own depend on the schema, that is refused unless --force is given: they would
be gone too.`,
		Example: `  parley uninstall
  parley uninstall --force`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			conn, err := a.Connect(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			if err := schema.Uninstall(ctx, conn, force); err != nil {
				return err
			}
			return printStatus(a, cmd, conn, false)
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "remove conversations, their messages and dependent objects too")
	return cmd
}
