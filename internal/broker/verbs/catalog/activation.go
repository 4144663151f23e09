package catalog

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	activationstore "github.com/parley-broker/parley/internal/store/activation"
	"github.com/parley-broker/parley/internal/verb"
)

func newActivationCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "activation",
		Short: "Say which program or web address reads a queue",
		Long: `Say which program or web address reads a queue: the daemon (parley serve) starts the program, or posts the messages to the
address, while messages wait. You need the right to ALTER the queue. The daemon starts and calls only what its operator
allows: parley serve --allow-program, --allow-webhook.

A procedure of the database that reads a queue is set with parley.alter_queue.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(
		newActivationListCommand(a), newActivationSetProgramCommand(a), newActivationSetWebhookCommand(a), newActivationDropCommand(a),
	)
	return cmd
}

func newActivationListCommand(a *verb.App) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the programs and web addresses that read queues",
		Long: `List the programs and web addresses that read queues. Secrets, values of variables and the query of an address are not shown.

FAILING is how many conversations wait because a web address did not accept their message; see parley.delivery_failures.`,
		Example: `  parley activation list
  parley activation list --json | jq '.[] | select(.failing_conversations > 0) | .queue'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return verb.ShowAll(a, cmd, activationstore.ReadExternalActivations, writeActivations)
		},
	}
}

func writeActivations(out io.Writer, activations []activationstore.ExternalActivation) error {
	if len(activations) == 0 {
		_, err := fmt.Fprintln(out, "no program and no web address reads a queue")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "QUEUE\tKIND\tSTATUS\tINSTANCES\tFAILING\tWHAT")
	for _, activation := range activations {
		what := strings.Join(activation.Program, " ")
		if activation.URL != nil {
			what = *activation.URL
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%d to %d\t%d\t%s\n",
			verb.OneLine(activation.Queue, 0), activation.Kind, verb.OnOff(activation.IsEnabled),
			activation.MinInstances, activation.MaxInstances, activation.Failing, verb.OneLine(what, 100))
	}
	return table.Flush()
}

func newActivationDropCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "drop QUEUE",
		Example: "  parley activation drop shop",
		Short:   "Let no program and no web address read a queue any more",
		Long:    `Drop the program or the web address of a queue. Nothing new is started; what runs already leaves when it finds nothing.`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			conn, err := a.Attach(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			if err := activationstore.DropExternalActivation(ctx, conn, args[0]); err != nil {
				return err
			}
			return reportActivation(a, cmd, activationChange{Queue: args[0], Change: "dropped"})
		},
	}
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	return cmd
}

// activationChange is the result of a command; as JSON it is a stable format.
type activationChange struct {
	Queue  string  `json:"queue"`
	Change string  `json:"change"` // created, altered or dropped
	Secret *string `json:"secret"`
}

func reportActivation(a *verb.App, cmd *cobra.Command, change activationChange) error {
	if a.JSON {
		return verb.EncodeJSON(cmd.OutOrStdout(), change)
	}
	if change.Secret != nil {
		fmt.Fprintln(a.Stderr, "The secret that signs the requests; it is not shown again:")
		_, err := fmt.Fprintln(cmd.OutOrStdout(), *change.Secret)
		return err
	}
	_, err := fmt.Fprintf(a.Stderr, "%s the external activation of queue %s\n", change.Change, change.Queue)
	return err
}
