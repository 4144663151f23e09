package verbs

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
	"github.com/parley-broker/parley/internal/verb"
)

func newMailQueuesCommand(a *verb.App) *cobra.Command {
	var where []string
	var sort string
	cmd := &cobra.Command{
		Use:   "queues",
		Short: "List the queues of mail, by next hop",
		Long: `List the queues of mail: one for each next hop, and SUBMISSION, UNREACHABLE and POISON. You need the right VIEW.

A queue is ACTIVE while it has messages, CONNECTING while its next hop has not been reached yet, READY when it is empty, in RETRY when
its next hop could not be reached, or SUSPENDED. Rates are messages a second over the last minute.`,
		Example: `  parley mail queues
  parley mail queues --where status=RETRY --where 'messages>100'
  parley mail queues --sort oldest_at`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter := mailstore.Filter{}
			if err := addMailConditions(filter, where); err != nil {
				return err
			}
			return verb.ShowAll(a, cmd, func(ctx context.Context, db parley.DB) ([]mailstore.Queue, error) {
				return mailstore.FindQueues(ctx, db, filter, sort)
			}, func(out io.Writer, queues []mailstore.Queue) error {
				if len(queues) == 0 && len(where) > 0 {
					_, err := fmt.Fprintln(out, "no queue")
					return err
				}
				return writeMailQueues(out, queues)
			})
		},
	}
	cmd.Flags().StringArrayVar(&where, "where", nil, "queues by "+mailWhereUsage)
	cmd.Flags().StringVar(&sort, "sort", "messages:desc", mailSortUsage)
	return cmd
}

// mailErrorWidth is how much of an error a list shows in its last column, where nothing stands behind it: what to do is often at the end.
const mailErrorWidth = 200

func writeMailQueues(out io.Writer, queues []mailstore.Queue) error {
	if len(queues) == 0 {
		_, err := fmt.Fprintln(out, "there are no queues")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "QUEUE\tSTATUS\tMESSAGES\tDEFERRED\tIN/S\tOUT/S\tOLDEST\tNEXT RETRY\tLAST ERROR")
	for _, q := range queues {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", verb.OneLine(q.Queue, 0), q.Status, q.Messages, q.Deferred,
			mailRate(q.IncomingRate), mailRate(q.OutgoingRate), verb.Moment(q.OldestAt), verb.Moment(q.NextRetryAt),
			verb.OrNone(verb.OneLine(verb.OrEmpty(q.LastError), mailErrorWidth)))
	}
	return table.Flush()
}

func mailRate(rate *float64) string {
	if rate == nil {
		return "-"
	}
	return strconv.FormatFloat(*rate, 'f', 1, 64)
}

func newMailMessagesCommand(a *verb.App) *cobra.Command {
	var filter mailFilterFlags
	var page mailstore.Page
	cmd := &cobra.Command{
		Use:   "messages",
		Short: "List messages that wait",
		Long: `List messages that wait, the oldest first or by a column: those that match each flag that is given. One that waits in several
queues is listed for each. You need the right VIEW.`,
		Example: `  parley mail messages --queue 'DNS/*' --status RETRY
  parley mail messages --sender 'shop@*' --older-than 1h --json
  parley mail messages --larger-than '5 MB' --sort size:desc`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if page.Top < 1 {
				return verb.Usagef("--limit %d: give a positive number", page.Top)
			}
			if page.Sort != "" && page.After != "" {
				return verb.Usagef("--after goes on in the usual order: leave --sort out, or give a larger --limit")
			}
			chosen, err := filter.filter()
			if err != nil {
				return err
			}
			return verb.ShowAll(a, cmd, func(ctx context.Context, db parley.DB) ([]mailstore.WaitingMessage, error) {
				return mailstore.FindMessages(ctx, db, chosen, page)
			}, func(out io.Writer, found []mailstore.WaitingMessage) error {
				return writeMailMessages(out, found, page)
			})
		},
	}
	filter.add(a, cmd)
	cmd.Flags().IntVar(&page.Top, "limit", 100, "list at most so many")
	cmd.Flags().StringVar(&page.After, "after", "", "list those behind this bookmark, which ends the list before")
	cmd.Flags().StringVar(&page.Sort, "sort", "", mailSortUsage)
	return cmd
}

func writeMailMessages(out io.Writer, found []mailstore.WaitingMessage, page mailstore.Page) error {
	if len(found) == 0 {
		_, err := fmt.Fprintln(out, "no message")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "MESSAGE\tQUEUE\tSTATUS\tSENDER\tRECIPIENTS\tSIZE\tRECEIVED\tSUBJECT\tLAST ERROR")
	for _, m := range found {
		sender := m.Sender
		if sender == "" {
			sender = "<>"
		}
		lastError := verb.OrNone(verb.OneLine(verb.OrEmpty(m.LastError), mailErrorWidth))
		if m.Status == "SCHEDULED" {
			lastError = "at " + verb.Moment(m.NextAttemptAt)
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n",
			m.MessageID, verb.OneLine(m.Queue, 0), m.Status, verb.OneLine(sender, 0),
			mailRecipients(m.Recipients, m.RecipientCount), m.Size, verb.Moment(&m.ReceivedAt),
			verb.OrNone(verb.OneLine(verb.OrEmpty(m.Subject), 40)), lastError)
	}
	if err := table.Flush(); err != nil || len(found) < page.Top {
		return err
	}
	if page.Sort != "" {
		return verb.ReportLimit(out, len(found), page.Top)
	}
	_, err := fmt.Fprintf(out, "%d shown; for the next ones: --after '%s'\n", page.Top, verb.OneLine(found[len(found)-1].Bookmark, 0))
	return err
}

// mailRecipients writes the first of so many recipients.
func mailRecipients(addresses []string, count int) string {
	switch {
	case len(addresses) == 0:
		return "-"
	case count > 1:
		return fmt.Sprintf("%s +%d", verb.OneLine(addresses[0], 0), count-1)
	}
	return verb.OneLine(addresses[0], 0)
}
