package messages

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

// completePoison lists the conversations that are set aside.
const completePoison verb.Completer = `
	select c.conversation_handle || chr(9) || c.queue_name || ' ' || coalesce(c.sqlstate || ' ', '') || left(coalesce(c.error, ''), 60)
	from parley.poison_conversations as c
	order by c.set_aside_since
	limit 50`

func newPoisonCommand(a *verb.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:        "poison",
		Short:      "List conversations and messages that are set aside, put them back or give them up",
		SuggestFor: []string{"failed", "failing", "failures", "retry", "discard", "dead", "dlq"},
		Long: `A message whose transaction was rolled back too often (five times, unless the queue says otherwise) is poison: its
conversation is set aside, so that nothing is received from it and the others go on. Here you see which ones
that are and why, and put them back when the cause is cured, or give them up. Of a simple queue it is the message alone that is
set aside: for these there are messages, retry-messages and discard-messages.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newPoisonListCommand(a), newPoisonShowCommand(a), newPoisonRetryCommand(a), newPoisonDiscardCommand(a),
		newPoisonMessagesCommand(a), newPoisonRetryMessagesCommand(a), newPoisonDiscardMessagesCommand(a))
	return cmd
}

func newPoisonListCommand(a *verb.App) *cobra.Command {
	var filter operate.PoisonFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the conversations that are set aside",
		Long: `List the conversations that are set aside, those of longest ago first, with the last error that a reader reported. You see
those of queues that you may receive from.

With --failing those are listed whose last failure was reported and is not over, or whose message a web address did not
accept, but that are not set aside yet. Messages of simple queues are listed by parley poison messages.`,
		Example: `  parley poison list
  parley poison list --queue shop --json | jq '.[] | {conversation_handle, sqlstate, error}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if filter.Limit < 0 {
				return verb.Usagef("--limit %d: give a positive number, or 0 for all", filter.Limit)
			}
			var messages bool
			return verb.ShowAll(a, cmd, func(ctx context.Context, db parley.DB) ([]operate.PoisonConversation, error) {
				failed, err := operate.ReadFailedMessages(ctx, db,
					operate.FailedMessageFilter{Queue: filter.Queue, Failing: filter.Failing, Limit: 1})
				if err != nil {
					return nil, err
				}
				messages = len(failed) > 0
				return operate.ReadPoisonConversations(ctx, db, filter)
			}, func(out io.Writer, found []operate.PoisonConversation) error {
				if err := writePoison(out, found, filter); err != nil || !messages {
					return err
				}
				return mentionMessages(a, filter.Failing)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&filter.Queue, "queue", "", "only conversations of this queue")
	flags.BoolVar(&filter.Failing, "failing", false, "list those that fail and are not set aside yet")
	flags.IntVar(&filter.Limit, "limit", 100, "list at most so many; 0 for all")
	a.CompleteFlag(cmd, "queue", verb.CompleteQueues)
	return cmd
}

// mentionMessages says where the messages of simple queues are listed, because they are not among the conversations.
func mentionMessages(a *verb.App, failing bool) error {
	are, flag := "are set aside", ""
	if failing {
		are, flag = "are failing", " --failing"
	}
	_, err := fmt.Fprintf(a.Stderr, "messages of simple queues %s: parley poison messages%s lists them\n", are, flag)
	return err
}

func writePoison(out io.Writer, found []operate.PoisonConversation, filter operate.PoisonFilter) error {
	if len(found) == 0 {
		none := "no conversation is set aside"
		if filter.Failing {
			none = "no conversation is failing"
		}
		_, err := fmt.Fprintln(out, none)
		return err
	}
	table := verb.NewTable(out)
	when := "SET ASIDE\tROLLBACKS"
	if filter.Failing {
		when = "FAILED\tTIMES\tNEXT"
	}
	fmt.Fprintf(table, "CONVERSATION HANDLE\tQUEUE\tSERVICE\t%s\tWAITING\tMESSAGE TYPE\tERROR\n", when)
	for _, c := range found {
		when := fmt.Sprintf("%s\t%d", verb.Moment(c.SetAsideSince), c.Rollbacks)
		if filter.Failing {
			when = fmt.Sprintf("%s\t%s\t%s", verb.Moment(c.ErrorTime), failedTimes(c), verb.Moment(c.RetryAt))
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			c.ConversationHandle, verb.OneLine(c.Queue, 0), verb.OneLine(c.ServiceName, 0), when, poisonWaiting(c),
			verb.OrNone(verb.OneLine(verb.OrEmpty(c.MessageTypeName), 0)), poisonError(c, verb.BodyWidth))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return verb.ReportLimit(out, len(found), filter.Limit)
}

// failedTimes reports how often a message failed: came back, or was not accepted by a web address. Failures that do not count are shown
// separately.
func failedTimes(c operate.PoisonConversation) string {
	switch {
	case c.Failures == nil || c.Attempts == nil:
		return fmt.Sprint(c.Rollbacks)
	case *c.Failures == *c.Attempts:
		return fmt.Sprint(*c.Failures)
	}
	return fmt.Sprintf("%d, %d counted", *c.Failures, *c.Attempts)
}

func poisonWaiting(c operate.PoisonConversation) string {
	if c.IsEstimated {
		return fmt.Sprintf("%d or more", c.WaitingMessages)
	}
	return fmt.Sprint(c.WaitingMessages)
}

// poisonError reports what was reported last, with the SQLSTATE if there is one.
func poisonError(c operate.PoisonConversation, width int) string {
	switch {
	case c.Error == nil:
		return "not reported"
	case c.SQLState == nil:
		return verb.OneLine(*c.Error, width)
	}
	return verb.OneLine(*c.SQLState+" "+*c.Error, width)
}
