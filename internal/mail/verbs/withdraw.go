package verbs

import (
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	mailstore "github.com/parley-broker/parley/internal/store/mail"
	"github.com/parley-broker/parley/internal/verb"
)

func newMailWithdrawCommand(a *verb.App) *cobra.Command {
	return &cobra.Command{
		Use:   "withdraw MESSAGE",
		Short: "Withdraw a message of yours that is scheduled for later",
		Long: `Withdraw a message that this role has submitted and that is scheduled for later, by the number that sending it gave. That is
possible until its time has come. An operator removes messages of others: parley mail remove.`,
		Example: `  parley mail withdraw 64`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return verb.Usagef("%q is no number of a message: sending it has given one", args[0])
			}
			ctx := cmd.Context()
			return a.WithConnection(ctx, func(conn *pgx.Conn) error {
				n, err := mailstore.Withdraw(ctx, conn, id)
				if err != nil {
					return err
				}
				if a.JSON {
					return verb.EncodeJSON(cmd.OutOrStdout(), changedMail{Messages: n})
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s withdrawn\n", verb.Counted(n, "message"))
				return err
			})
		},
	}
}
