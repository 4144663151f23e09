package messages

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

func newBatchCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "batch",
		Short: "List batches of messages that are not done, show one, or put one",
		Long: `List batches of messages of simple queues that are not done, and how many of each are left. When all of them are done the
daemon puts another message. You see your own and those of queues that you may take from.`,
		Example: `  parley batch
  parley batch put pages 'page 1' 'page 2' --then-queue books --then 'bind the book'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return verb.ShowAll(a, cmd, operate.ReadBatches, writeBatches)
		},
	}
	cmd.AddCommand(newBatchPutCommand(a), newBatchShowCommand(a))
	return cmd
}

func writeBatches(out io.Writer, batches []operate.Batch) error {
	if len(batches) == 0 {
		_, err := fmt.Fprintln(out, "no batches")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "BATCH\tQUEUE\tMESSAGES\tLEFT\tTHEN\tCREATED\tFAULT")
	for _, b := range batches {
		fault := "-"
		if b.Fault != nil {
			fault = verb.OneLine(*b.Fault, 80)
		}
		fmt.Fprintf(table, "%d\t%s\t%d\t%d\t%s\t%s\t%s\n", b.BatchID, verb.OneLine(b.Queue, 0), b.Messages, b.Left,
			verb.OneLine(b.ThenQueue, 0), verb.Moment(&b.CreatedAt), fault)
	}
	return table.Flush()
}

// batchPut is the output of batch put for programs; a stable format.
type batchPut struct {
	BatchID int64 `json:"batch_id"`
}

func newBatchPutCommand(a *verb.App) *cobra.Command {
	var thenQueue, then string
	var priority int
	cmd := &cobra.Command{
		Use:     "put QUEUE BODY... --then-queue QUEUE --then BODY",
		Example: "  parley batch put pages 'page 1' 'page 2' --then-queue books --then 'bind the book'",
		Short:   "Put a batch of messages, and have another one put when all of them are done",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if then == standardInput || slices.Contains(args[1:], standardInput) {
				return verb.Usagef("- stands for standard input, and a batch has more than one body: give each as an argument")
			}
			var done batchPut
			return a.WithConnection(cmd.Context(), func(conn *pgx.Conn) (err error) {
				done.BatchID, err = parley.PutGroup(cmd.Context(), conn, args[0], args[1:], thenQueue, then, parley.WithPriority(priority))
				switch {
				case err != nil:
					return err
				case a.JSON:
					return verb.EncodeJSON(cmd.OutOrStdout(), done)
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "batch %d put\n", done.BatchID)
				return err
			})
		},
	}
	set := cmd.Flags()
	set.StringVar(&thenQueue, "then-queue", "", "the simple queue of the message that comes after them")
	set.StringVar(&then, "then", "", "the body of the message that comes after them")
	set.IntVar(&priority, "priority", 5, "1 is last, 10 is first")
	for _, flag := range []string{"then-queue", "then"} {
		_ = cmd.MarkFlagRequired(flag)
	}
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	a.CompleteFlag(cmd, "then-queue", verb.CompleteQueues)
	return cmd
}

func newBatchShowCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "show BATCH",
		Example:           "  parley batch show 1",
		Short:             "Show how many messages of a batch are left",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[0], 10, 64)
			if err != nil {
				return verb.Usagef("%s is no number of a batch; parley batch lists them", args[0])
			}
			return verb.ShowAll(a, cmd, func(ctx context.Context, db parley.DB) ([]operate.Batch, error) {
				batches, err := operate.ReadBatches(ctx, db)
				for _, b := range batches {
					if b.BatchID == id {
						return []operate.Batch{b}, nil
					}
				}
				if err == nil {
					err = fmt.Errorf("batch %d is done, or there is none that you may see; parley batch lists those that are not done", id)
				}
				return nil, err
			}, writeBatches)
		},
	}
	return cmd
}
