package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
)

func newInstallCommand(a *app) *cobra.Command {
	var script bool
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Create the schema parley in the database",
		Long: `Create the schema parley, with the whole broker in it, in one transaction. When it is there already in
this version, nothing happens. The role needs the right to create schemas in the database, nothing more.

With --print nothing is touched: the SQL is printed, to be run with a tool of your own.`,
		Example: `  parley install --dsn postgres://localhost/orders
  parley install --print | psql --set ON_ERROR_STOP=1 orders`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if script {
				if a.json {
					return usagef("--print gives SQL, not JSON: leave one of the two out")
				}
				_, err := fmt.Fprint(cmd.OutOrStdout(), parley.Script())
				return err
			}
			ctx := cmd.Context()
			conn, err := a.connect(ctx)
			if err != nil {
				return err
			}
			defer closeConnection(ctx, conn)
			if err := parley.Install(ctx, conn); err != nil {
				return err
			}
			return a.printStatus(cmd, conn)
		},
	}
	cmd.Flags().BoolVar(&script, "print", false, "print the SQL instead of running it")
	return cmd
}
