package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

func newUpCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Keep the private PostgreSQL running and print its DSN",
		Long: `Start the private PostgreSQL, or join the one that another command runs on the same data folder,
print its DSN and keep it running until Ctrl-C. A server that crashes is started again.
The last command that uses the data folder stops the server.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			dsn, err := a.startPrivate(ctx)
			if err != nil {
				return err
			}
			if a.json {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]string{"dsn": dsn})
			} else {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), dsn)
			}
			if err != nil {
				return err
			}
			<-ctx.Done()
			return nil
		},
	}
}
