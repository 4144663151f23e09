package operating

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

func newTraceCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace CONVERSATION",
		Short: "Show the history of a conversation in order",
		Long: `Show the history of a conversation in order, as far as the database remembers it: when its sides were begun, what was
received, what waits, is delayed or was kept by retention, what failed, who holds its group, and what is to come.
CONVERSATION is a handle, a conversation id, or a group. Where its messages are and what keeps them there is shown by
parley diagnose --conversation. What happens from now on is traced by parley trace start.`,
		Example: `  parley trace 7d3ea1d8-5c5a-4f1c-9d54-0a6a7ed10b2f
  parley trace 7d3ea1d8-5c5a-4f1c-9d54-0a6a7ed10b2f --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			conversation, err := verb.ParseHandle(args[0])
			if err != nil {
				return err
			}
			if conversation == (parley.UUID{}) {
				return verb.ExitWith(errors.New("no conversation has the UUID of zeros; parley conversations lists the handles"), verb.ExitUsage)
			}
			return verb.ShowAll(a, cmd, func(ctx context.Context, db parley.DB) ([]operate.TraceEvent, error) {
				return operate.TraceConversation(ctx, db, conversation)
			}, writeTrace)
		},
	}
	a.CompleteArgument(cmd, verb.CompleteHandles, 1)
	cmd.AddCommand(newTraceStartCommand(a), newTraceEventsCommand(a), newTraceStopCommand(a))
	return cmd
}

func writeTrace(out io.Writer, events []operate.TraceEvent) error {
	table := verb.NewTable(out)
	fmt.Fprintln(table, "TIME\tSIDE\tEVENT\tMESSAGE TYPE\tBYTES\tDETAIL")
	for _, e := range events {
		at, messageType, size, detail := "-", "-", "-", "-"
		if e.At != nil {
			at = e.At.Local().Format("2006-01-02 15:04:05.000")
		}
		if e.MessageTypeName != nil {
			messageType = verb.OneLine(*e.MessageTypeName, 0)
			size = "0"
		}
		if e.BodyBytes != nil {
			size = fmt.Sprint(*e.BodyBytes)
		}
		if e.Detail != nil {
			detail = verb.OneLine(*e.Detail, 200)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", at, e.Side, e.Event, messageType, size, detail)
	}
	return table.Flush()
}
