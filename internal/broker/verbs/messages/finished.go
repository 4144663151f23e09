package messages

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

func newFinishedCommand(a *verb.App) *cobra.Command {
	var queue string
	var limit int
	cmd := &cobra.Command{
		Use:        "finished",
		Short:      "List work that is done, with its results, and say how long a queue keeps it",
		SuggestFor: []string{"done", "completed", "results", "archive"},
		Long: `List work on messages of simple queues that is done, the newest first: when it began, how long it took and what came of it, as
its worker said. A queue keeps nothing unless it is asked to by parley finished keep.`,
		Example: `  parley finished keep jobs --for 168h
  parley finished --queue jobs`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return verb.ShowAll(a, cmd, func(ctx context.Context, db parley.DB) ([]operate.FinishedMessage, error) {
				return operate.ReadFinished(ctx, db, queue, limit)
			}, writeFinished)
		},
	}
	cmd.Flags().StringVar(&queue, "queue", "", "of this queue alone")
	cmd.Flags().IntVar(&limit, "limit", 100, "list at most so many")
	a.CompleteFlag(cmd, "queue", verb.CompleteQueues)
	cmd.AddCommand(newFinishedKeepCommand(a))
	return cmd
}

func writeFinished(out io.Writer, finished []operate.FinishedMessage) error {
	if len(finished) == 0 {
		_, err := fmt.Fprintln(out, "nothing is kept")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "MESSAGE ID\tQUEUE\tFINISHED\tTOOK\tRESULT")
	for _, f := range finished {
		took := time.Duration(f.Duration * float64(time.Second)).Round(time.Millisecond)
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", f.MessageID, verb.OneLine(f.Queue, 0), verb.Moment(&f.FinishedAt), took, jsonCell(f.Result))
	}
	return table.Flush()
}

// jsonCell shows a document of JSON in a table.
func jsonCell(document []byte) string {
	if document == nil {
		return "-"
	}
	return verb.OneLine(string(document), 80)
}

// queueKeeping is the output of finished keep for programs; a stable format.
type queueKeeping struct {
	Queue       string   `json:"queue"`
	KeepSeconds *float64 `json:"keep_seconds"` // null for nothing
}

func newFinishedKeepCommand(a *verb.App) *cobra.Command {
	var keep time.Duration
	var none bool
	cmd := &cobra.Command{
		Use:     "keep QUEUE (--for TIME | --none)",
		Example: "  parley finished keep jobs --for 168h\n  parley finished keep jobs --none",
		Short:   "Say for how long a simple queue keeps what its workers say of work that is done",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			done := queueKeeping{Queue: args[0]}
			wanted, text := verb.Given(cmd, "for", keep), fmt.Sprintf("queue %s keeps nothing of what is done", args[0])
			if wanted != nil {
				seconds := keep.Seconds()
				done.KeepSeconds, text = &seconds, fmt.Sprintf("queue %s keeps what is done for %s", args[0], keep)
			}
			return a.Change(cmd, done, cmd.OutOrStdout(), text, func(ctx context.Context, conn *pgx.Conn) error {
				return operate.KeepFinished(ctx, conn, args[0], wanted)
			})
		},
	}
	cmd.Flags().DurationVar(&keep, "for", 0, "for so long, 1s to 366 days, such as 168h")
	cmd.Flags().BoolVar(&none, "none", false, "keep nothing from now on")
	cmd.MarkFlagsOneRequired("for", "none")
	cmd.MarkFlagsMutuallyExclusive("for", "none")
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	return cmd
}
