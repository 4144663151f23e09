package messages

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

// shownFailedMessage is a message of a simple queue that fails, as messages prints it for programs; a stable format.
type shownFailedMessage struct {
	operate.FailedMessage
	BodyEncoding string `json:"body_encoding"`
	Body         any    `json:"body"` // in place of the bytes
}

// retriedMessages is the output of retry-messages for programs; a stable format.
type retriedMessages struct {
	Queue      string  `json:"queue"`
	MessageIDs []int64 `json:"message_ids"`
}

func newPoisonMessagesCommand(a *verb.App) *cobra.Command {
	var filter operate.FailedMessageFilter
	var way string
	cmd := &cobra.Command{
		Use:   "messages",
		Short: "List the messages of simple queues that are set aside",
		Long: `List the messages of simple queues that are set aside, those of longest ago first, with the last error that a reader
reported. You see those of queues that you may take from.

With --failing those are listed whose last failure was reported and is not over, or that a web address did not accept, but that
are not set aside yet.`,
		Example: `  parley poison messages
  parley poison messages --queue jobs --json | jq '.[] | {message_id, sqlstate, error}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if filter.Limit < 0 {
				return verb.Usagef("--limit %d: give a positive number, or 0 for all", filter.Limit)
			}
			if err := checkBody(way); err != nil {
				return err
			}
			return verb.ShowAll(a, cmd, func(ctx context.Context, db parley.DB) ([]shownFailedMessage, error) {
				found, err := operate.ReadFailedMessages(ctx, db, filter)
				shown := make([]shownFailedMessage, 0, len(found))
				for _, m := range found {
					encoding, body := encodeBody(m.Body, way)
					shown = append(shown, shownFailedMessage{m, encoding, body})
				}
				return shown, err
			}, func(out io.Writer, found []shownFailedMessage) error {
				return writeFailedMessages(out, found, filter, way)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&filter.Queue, "queue", "", "only messages of this queue")
	flags.BoolVar(&filter.Failing, "failing", false, "list those that fail and are not set aside yet")
	flags.IntVar(&filter.Limit, "limit", 100, "list at most so many; 0 for all")
	flags.StringVar(&way, "body", bodyText, "show bodies as text, hex or json")
	a.CompleteFlag(cmd, "queue", verb.CompleteQueues)
	return cmd
}

func writeFailedMessages(out io.Writer, found []shownFailedMessage, filter operate.FailedMessageFilter, way string) error {
	if len(found) == 0 {
		none := "no message of a simple queue is set aside"
		if filter.Failing {
			none = "no message of a simple queue is failing"
		}
		_, err := fmt.Fprintln(out, none)
		return err
	}
	table := verb.NewTable(out)
	if filter.Failing {
		fmt.Fprintln(table, "QUEUE\tMESSAGE\tKEY\tFAILED\tTIMES\tNEXT\tERROR")
	} else {
		fmt.Fprintln(table, "QUEUE\tMESSAGE\tKEY\tSET ASIDE\tROLLBACKS\tBODY\tERROR")
	}
	for _, m := range found {
		key := verb.OrNone(verb.OneLine(verb.OrEmpty(m.Key), verb.BodyWidth))
		failure := poisonError(operate.PoisonConversation{Error: m.Error, SQLState: m.SQLState}, verb.BodyWidth)
		if filter.Failing {
			fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%s\n", verb.OneLine(m.Queue, 0), m.MessageID, key,
				verb.Moment(m.ErrorTime), timesFailed(m.FailedMessage), verb.Moment(m.RetryAt), failure)
		} else {
			fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%d\t%s\t%s\n",
				verb.OneLine(m.Queue, 0), m.MessageID, key, verb.Moment(m.SetAsideSince), m.Rollbacks,
				bodyCell(m.FailedMessage.Body, way, verb.BodyWidth), failure)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return verb.ReportLimit(out, len(found), filter.Limit)
}

// timesFailed is how often a message is known to have failed, for whatever reason.
func timesFailed(m operate.FailedMessage) string {
	times := int32(0)
	for _, count := range []*int32{m.Losses, cmp.Or(m.Failures, m.Attempts)} {
		if count != nil {
			times += *count
		}
	}
	return verb.OrNone(strings.TrimPrefix(strconv.Itoa(int(times)), "0"))
}

func newPoisonRetryMessagesCommand(a *verb.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "retry-messages QUEUE {MESSAGE... | --all}",
		Short: "Put messages that are set aside back into their simple queue",
		Long: `Put messages that are set aside back at the end of their simple queue, all of them in one transaction. Their rollbacks are
forgotten, so each is tried as often as a new one, and has another number.`,
		Example: `  parley poison retry-messages jobs 5120 6144
  parley poison retry-messages jobs --all`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 1) {
				return verb.Usagef("name messages by their numbers, or choose all of the queue by --all")
			}
			done := retriedMessages{Queue: args[0]}
			return onMessages(a, cmd, args, func(ctx context.Context, tx pgx.Tx, queue string, ids []int64) error {
				if all {
					found, err := operate.ReadFailedMessages(ctx, tx, operate.FailedMessageFilter{Queue: queue})
					if err != nil {
						return err
					}
					for _, m := range found {
						ids = append(ids, m.MessageID)
					}
				}
				done.MessageIDs = append([]int64{}, ids...)
				for _, id := range ids {
					if err := operate.RetryMessage(ctx, tx, queue, id); err != nil {
						return err
					}
				}
				return nil
			}, func(out io.Writer) error {
				if a.JSON {
					return verb.EncodeJSON(out, done)
				}
				_, err := fmt.Fprintf(out, "put back %s\n", verb.Counted(len(done.MessageIDs), "message"))
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all messages of the queue that are set aside")
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	return cmd
}

func newPoisonDiscardMessagesCommand(a *verb.App) *cobra.Command {
	var way string
	cmd := &cobra.Command{
		Use:   "discard-messages QUEUE MESSAGE...",
		Short: "Remove messages that are set aside from their simple queue",
		Long: `Remove messages that are set aside from their simple queue, all of them in one transaction.

What is removed is printed, bodies included, so that it can be kept.`,
		Example: `  parley poison discard-messages jobs 5120 --json >> lost.json`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkBody(way); err != nil {
				return err
			}
			var lost []parley.TakenMessage
			return onMessages(a, cmd, args, func(ctx context.Context, tx pgx.Tx, queue string, ids []int64) error {
				for _, id := range ids {
					message, err := operate.DiscardMessage(ctx, tx, queue, id)
					if err != nil {
						return err
					}
					lost = append(lost, message)
				}
				return nil
			}, func(out io.Writer) error { return printTaken(a, out, lost, way) })
		},
	}
	cmd.Flags().StringVar(&way, "body", bodyText, "show bodies as text, hex or json")
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	return cmd
}

// onMessages does something with messages of a queue in one transaction, args being its name and their numbers, and reports it.
func onMessages(a *verb.App,
	cmd *cobra.Command, args []string, work func(ctx context.Context, tx pgx.Tx, queue string, ids []int64) error,
	report func(out io.Writer) error,
) error {
	var ids []int64
	for _, arg := range args[1:] {
		id, err := strconv.ParseInt(arg, 10, 64)
		if err != nil {
			return verb.Usagef("%s: give the number of a message, as parley poison messages lists it", arg)
		}
		ids = append(ids, id)
	}
	ctx := cmd.Context()
	return a.WithConnection(ctx, func(conn *pgx.Conn) error {
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error { return work(ctx, tx, args[0], ids) })
		if err != nil {
			return err
		}
		return report(cmd.OutOrStdout())
	})
}
