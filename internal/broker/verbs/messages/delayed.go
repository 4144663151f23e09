package messages

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

// dueFlags are those of verbs that send for later.
type dueFlags struct {
	at    string
	delay time.Duration
}

func (f *dueFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.at, "at", "", "not before this time, such as 2030-01-31T12:00:00Z")
	cmd.Flags().DurationVar(&f.delay, "delay", 0, "not before so long from now, such as 10m")
	cmd.MarkFlagsMutuallyExclusive("at", "delay")
}

// due is the time that was given, by the clock of the database; nil for none.
func (f *dueFlags) due(ctx context.Context, db parley.DB) (*time.Time, error) {
	switch {
	case f.at != "":
		due, err := time.Parse(time.RFC3339, f.at)
		if err != nil {
			return nil, verb.Usagef("--at %s: give a time such as 2030-01-31T12:00:00Z", f.at)
		}
		return &due, nil
	case f.delay < 0:
		return nil, verb.Usagef("--delay %v lies in the past: give a time from now, such as 10m", f.delay)
	case f.delay > 0:
		due, err := verb.DueIn(ctx, db, f.delay)
		return &due, err
	}
	return nil, nil
}

func newDelayedCommand(a *verb.App) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use:   "delayed",
		Short: "List messages that are not due yet, withdraw them, or change when they are due",
		Long: `List messages that are not due yet: of conversations (parley send --delay) and of simple queues (parley put --delay),
of the queues
that you may receive from.`,
		Example: `  parley delayed
  parley delayed withdraw 17 --queue jobs
  parley delayed reschedule 3 --conversation 7d3ea1d8-5c5a-4f1c-9d54-0a6a7ed10b2f --delay 2h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return verb.ShowAll(a, cmd, func(ctx context.Context, db parley.DB) ([]operate.DelayedMessage, error) {
				return operate.ReadDelayedMessages(ctx, db, limit)
			}, writeDelayed)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 100, "list at most so many of each kind")
	cmd.AddCommand(newDelayedChangeCommand(a, false), newDelayedChangeCommand(a, true))
	return cmd
}

func writeDelayed(out io.Writer, delayed []operate.DelayedMessage) error {
	if len(delayed) == 0 {
		_, err := fmt.Fprintln(out, "no delayed messages")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "ID\tDUE\tQUEUE\tCONVERSATION HANDLE\tTO\tTYPE\tBODY")
	for _, d := range delayed {
		handle, to, kind := "-", "-", "-"
		if d.ConversationHandle != nil {
			handle, to, kind = d.ConversationHandle.String(), *d.FarService, *d.MessageType
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
			d.DelayedID, verb.Moment(&d.DueAt), verb.OneLine(d.Queue, 0), handle,
			verb.OneLine(to, 0), verb.OneLine(kind, 0), bodyCell(d.Body, bodyText, 40))
	}
	return table.Flush()
}

// delayedChange is the output of withdraw and reschedule for programs; a stable format.
type delayedChange struct {
	DelayedID int64  `json:"delayed_id"`
	Change    string `json:"change"` // withdrawn or rescheduled
}

func newDelayedChangeCommand(a *verb.App, reschedules bool) *cobra.Command {
	var conversation, queue string
	var due dueFlags
	cmd := &cobra.Command{
		Use:     "withdraw ID (--conversation HANDLE | --queue QUEUE)",
		Example: "  parley delayed withdraw 17 --queue jobs",
		Short:   "Withdraw a message that is not due yet",
		Args:    cobra.ExactArgs(1),
	}
	done := "withdrawn"
	if reschedules {
		done = "rescheduled"
		cmd.Use = "reschedule ID (--conversation HANDLE | --queue QUEUE) (--at TIME | --delay DURATION)"
		cmd.Example = "  parley delayed reschedule 17 --queue jobs --delay 2h"
		cmd.Short = "Change when a message that is not due yet will be"
		due.add(cmd)
		cmd.MarkFlagsOneRequired("at", "delay")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id, err := strconv.ParseInt(args[0], 10, 64)
		if err != nil {
			return verb.Usagef("%s is no id of a delayed message; parley delayed lists them", args[0])
		}
		run := func(ctx context.Context, conn *pgx.Conn) error {
			wasThere, err := changeDelayed(ctx, conn, conversation, queue, id, reschedules, due)
			if err == nil && !wasThere {
				return fmt.Errorf("message %d is not there any more; parley delayed lists those that are", id)
			}
			return err
		}
		return a.Change(cmd, delayedChange{id, done}, cmd.OutOrStdout(), fmt.Sprintf("message %d %s", id, done), run)
	}
	cmd.Flags().StringVar(&conversation, "conversation", "", "it was sent on the conversation with this handle")
	cmd.Flags().StringVar(&queue, "queue", "", "it was put into this simple queue")
	cmd.MarkFlagsOneRequired("conversation", "queue")
	cmd.MarkFlagsMutuallyExclusive("conversation", "queue")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	a.CompleteFlag(cmd, "conversation", verb.CompleteHandles)
	a.CompleteFlag(cmd, "queue", verb.CompleteQueues)
	return cmd
}

func changeDelayed(
	ctx context.Context, conn *pgx.Conn, conversation, queue string, id int64, reschedules bool, flags dueFlags,
) (bool, error) {
	var handle parley.UUID
	if conversation != "" {
		var err error
		if handle, err = verb.ParseHandle(conversation); err != nil {
			return false, err
		}
	}
	due, err := flags.due(ctx, conn)
	switch {
	case err != nil:
		return false, err
	case reschedules && conversation != "":
		return parley.RescheduleSend(ctx, conn, handle, id, *due)
	case reschedules:
		return parley.RescheduleMessage(ctx, conn, queue, id, *due)
	case conversation != "":
		return parley.WithdrawSend(ctx, conn, handle, id)
	default:
		return parley.WithdrawMessage(ctx, conn, queue, id)
	}
}
