package operating

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

// traceChange is the result of trace start and stop; as JSON it is a stable format.
type traceChange struct {
	Change string     `json:"change"` // started or stopped
	Until  *time.Time `json:"until,omitempty"`
}

// changeTrace starts or stops the trace and reports it.
func changeTrace(a *verb.App, cmd *cobra.Command, change traceChange, text string, run func(context.Context, *pgx.Conn) error) error {
	return a.Change(cmd, change, cmd.OutOrStdout(), text, run)
}

func newTraceStartCommand(a *verb.App) *cobra.Command {
	var settings operate.TraceSettings
	var conversation string
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Begin to trace what is begun, sent, received and ended",
		Long: `Begin to trace what is begun, sent, received and ended, as SQL Server's profiler does, and remove what was traced before.
parley trace events shows it. SEND and RECEIVE are slower until parley trace stop. The role needs ALTER TRACE on the database.
Connections, logins and acknowledgements are in the log of the daemon: parley serve --log-level debug.`,
		Example: `  parley trace start --for 10m
  parley trace start --event 'Broker:Message Classify' --conversation 7d3ea1d8-5c5a-4f1c-9d54-0a6a7ed10b2f`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if settings.Duration < time.Second {
				return verb.Usagef("--for %s: give a second or more", settings.Duration)
			}
			if settings.MaxEvents < 1 {
				return verb.Usagef("--max-events %d: give a positive number", settings.MaxEvents)
			}
			if conversation != "" {
				handle, err := verb.ParseHandle(conversation)
				if err != nil {
					return err
				}
				settings.Conversation = &handle
			}
			until := time.Now().Add(settings.Duration)
			text := fmt.Sprintf("tracing until %s; parley trace events shows, parley trace stop ends it", until.Local().Format("15:04:05"))
			return changeTrace(a, cmd, traceChange{"started", &until}, text, func(ctx context.Context, conn *pgx.Conn) error {
				return operate.StartTrace(ctx, conn, settings)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&settings.Events, "event", nil, "only this class of events, such as 'Broker:Conversation'; may be given again")
	flags.StringVar(&conversation, "conversation", "", "only the conversations with this handle, id or group")
	flags.DurationVar(&settings.Duration, "for", time.Hour, "trace no longer than this")
	flags.IntVar(&settings.MaxEvents, "max-events", 1_000_000, "trace no more than this")
	a.CompleteFlag(cmd, "conversation", verb.CompleteHandles)
	return cmd
}

func newTraceStopCommand(a *verb.App) *cobra.Command {
	return &cobra.Command{
		Use:     "stop",
		Example: "  parley trace stop",
		Short:   "End the trace",
		Long:    "End the trace, if one runs. What was traced stays until the next one begins.",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return changeTrace(a, cmd, traceChange{Change: "stopped"}, "stopped; parley trace events shows what was traced",
				func(ctx context.Context, conn *pgx.Conn) error { return operate.StopTrace(ctx, conn) })
		},
	}
}

func newTraceEventsCommand(a *verb.App) *cobra.Command {
	var after int64
	cmd := &cobra.Command{
		Use:     "events",
		Example: "  parley trace events",
		Short:   "Show what the trace has seen",
		Long: `Show what the trace that runs, or ran last, has seen, in order. What a transaction that rolled back has done is not in it.
--after leaves out the events up to a number.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return verb.ShowAll(a, cmd, func(ctx context.Context, db parley.DB) ([]operate.TracedEvent, error) {
				return operate.ReadTracedEvents(ctx, db, after)
			}, writeTracedEvents)
		},
	}
	cmd.Flags().Int64Var(&after, "after", 0, "only events with a larger number")
	return cmd
}

func writeTracedEvents(out io.Writer, events []operate.TracedEvent) error {
	table := verb.NewTable(out)
	fmt.Fprintln(table, "NUMBER\tTIME\tEVENT\tSUBCLASS\tSIDE\tSTATE\tHANDLE\tMESSAGES\tDETAIL")
	for _, e := range events {
		handle, messages, detail := "-", "-", "-"
		if e.ConversationHandle != nil {
			handle = e.ConversationHandle.String()
		}
		if e.Messages != nil && e.MessageTypeName != nil {
			messages = fmt.Sprintf("%d %s", *e.Messages, verb.OneLine(*e.MessageTypeName, 0))
		}
		switch {
		case e.Error != nil:
			detail = fmt.Sprintf("error %d: %s", *e.Error, verb.OneLine(textOr(e.Text, ""), 160))
		case e.Text != nil:
			detail = verb.OneLine(*e.Text, 200)
		case e.NextHop != nil:
			detail = verb.OneLine(*e.NextHop, 200)
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%d %s\t%s\t%s\t%s\t%s\t%s\n", e.Sequence, e.StartTime.Local().Format("15:04:05.000"), e.EventName,
			e.EventSubclass, e.EventSubclassName, textOr(e.Role, "-"), textOr(e.State, "-"), handle, messages, detail)
	}
	return table.Flush()
}

func textOr(text *string, otherwise string) string {
	if text == nil {
		return otherwise
	}
	return *text
}
