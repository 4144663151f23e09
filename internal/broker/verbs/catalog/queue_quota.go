package catalog

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

func newQueueQuotaCommand(a *verb.App) *cobra.Command {
	var messages, bytes int64
	var none bool
	cmd := &cobra.Command{
		Use:   "quota QUEUE {--messages N | --bytes N | --none}",
		Short: "Limit what a queue may hold; senders beyond it are refused",
		Long: `Limit how many messages, or how many bytes of them, a queue may hold. Senders are refused with error 10928 when that is used
up, and get a notice from four fifths on. What is not given is not limited. Messages from other servers wait there.`,
		Example: "  parley queue quota shop --messages 100000\n  parley queue quota shop --none",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			quota := operate.QueueQuota{Messages: verb.Given(cmd, "messages", messages), Bytes: verb.Given(cmd, "bytes", bytes)}
			if none == (quota != operate.QueueQuota{}) {
				return verb.Usagef("give --messages, --bytes or both, or --none")
			}
			return changeObject(a, cmd, objectChange{"queue", args[0], limited(!none)}, func(ctx context.Context, conn *pgx.Conn) error {
				return operate.SetQueueQuota(ctx, conn, args[0], quota)
			})
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&messages, "messages", 0, "how many messages may wait")
	flags.Int64Var(&bytes, "bytes", 0, "how long their bodies may be in all")
	flags.BoolVar(&none, "none", false, "take the limits away")
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	return cmd
}
