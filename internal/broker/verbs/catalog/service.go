package catalog

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

func newServiceCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "service",
		Short: "List, create, alter and drop services",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newServiceListCommand(a), newServiceCreateCommand(a), newServiceAlterCommand(a), newServiceDropCommand(a))
	return cmd
}

func newServiceListCommand(a *verb.App) *cobra.Command {
	return verb.Lists(a, &cobra.Command{
		Use:     "list",
		Example: "  parley service list",
		Short:   "List the services, their queues and the contracts they accept",
	}, verb.Listing[operate.ServiceStatus]{
		Read:     operate.ReadServices,
		IsSystem: func(service operate.ServiceStatus) bool { return service.IsSystem },
		Write:    writeServices,
		AllHelp:  "list the broker's own services too",
	})
}

func writeServices(out io.Writer, services []operate.ServiceStatus) error {
	if len(services) == 0 {
		_, err := fmt.Fprintln(out, "no services; parley service create SERVICE QUEUE creates one")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "SERVICE\tQUEUE\tCONTRACTS")
	for _, service := range services {
		fmt.Fprintf(table, "%s\t%s\t%s\n",
			verb.OneLine(service.Service, 0), verb.OneLine(service.Queue, 0), verb.OrNone(verb.OneLine(strings.Join(service.Contracts, ", "), 0)))
	}
	return table.Flush()
}

func newServiceCreateCommand(a *verb.App) *cobra.Command {
	var contracts []string
	cmd := &cobra.Command{
		Use:   "create SERVICE QUEUE",
		Short: "Create a service on a queue",
		Long: `Create a service on a queue. It can be the target of dialogs on the contracts that it accepts; without any it can only
begin dialogs. DEFAULT is the contract for messages of any kind.`,
		Example: `  parley service create Web web
  parley service create Shop shop --contract DEFAULT`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeObject(a, cmd, objectChange{"service", args[0], "created"}, func(ctx context.Context, conn *pgx.Conn) error {
				return operate.CreateService(ctx, conn, args[0], args[1], contracts...)
			})
		},
	}
	cmd.Flags().StringArrayVar(&contracts, "contract", nil, "contract that it accepts; may be given several times")
	a.CompleteFlag(cmd, "contract", verb.CompleteContracts)
	return cmd
}

func newServiceAlterCommand(a *verb.App) *cobra.Command {
	var queue string
	var window time.Duration
	var change operate.ServiceChange
	cmd := &cobra.Command{
		Use:   "alter SERVICE",
		Short: "Move a service to another queue, or change the contracts it accepts",
		Long: `Move a service, with its waiting messages, to another queue, or change the contracts it accepts. Conversations on a contract
that it no longer accepts end with an error on both sides.`,
		Example: `  parley service alter Shop --queue orders
  parley service alter Shop --add-contract //example.com/order --drop-contract DEFAULT`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			change.Queue = verb.Given(cmd, "queue", queue)
			change.DeduplicationSeconds = verb.Given(cmd, "deduplication-window", int32(window.Seconds()))
			return changeObject(a, cmd, objectChange{"service", args[0], "altered"}, func(ctx context.Context, conn *pgx.Conn) error {
				return operate.AlterService(ctx, conn, args[0], change)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&queue, "queue", "", "queue to move it to")
	flags.StringArrayVar(&change.AddContracts, "add-contract", nil, "contract to accept besides; may be given several times")
	flags.StringArrayVar(&change.DropContracts, "drop-contract", nil, "contract to accept no longer; may be given several times")
	flags.DurationVar(&window, "deduplication-window", 0, "for how long a deduplication key that is used as the service counts, such as 5m")
	cmd.MarkFlagsOneRequired("queue", "add-contract", "drop-contract", "deduplication-window")
	a.CompleteArgument(cmd, verb.CompleteServices, 1)
	a.CompleteFlag(cmd, "queue", verb.CompleteQueues)
	a.CompleteFlag(cmd, "add-contract", verb.CompleteContracts)
	a.CompleteFlag(cmd, "drop-contract", verb.CompleteContracts)
	return cmd
}

func newServiceDropCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "drop SERVICE",
		Example: "  parley service drop Shop",
		Short:   "Drop a service, its conversations and what waits in them",
		Long:    "Drop a service, its conversations and what waits in them. The other sides of its open conversations get an Error.",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeObject(a, cmd, objectChange{"service", args[0], "dropped"}, func(ctx context.Context, conn *pgx.Conn) error {
				return operate.DropService(ctx, conn, args[0])
			})
		},
	}
	a.CompleteArgument(cmd, verb.CompleteServices, 1)
	return cmd
}
