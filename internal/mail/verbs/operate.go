package verbs

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/pgdb"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
	"github.com/parley-broker/parley/internal/verb"
)

// mailOperation is an operation on messages that flags choose, in steps that are a transaction each.
type mailOperation struct {
	name   string // the verb
	done   string // what was done to them, as in "3 messages removed"
	filter mailFilterFlags
	all    bool
	dryRun bool
	step   int
	limit  int
	run    func(context.Context, *pgx.Conn, mailstore.Filter, mailstore.Step) (int, error)
	// queues is done before to the queues of these messages, once; nil for nothing.
	queues func(context.Context, *pgx.Conn, mailstore.Filter, bool) (int, error)
}

// changedMail is the output of an operation on messages for programs; a stable format.
type changedMail struct {
	Messages int  `json:"messages"`
	Queues   *int `json:"queues,omitempty"`
	DryRun   bool `json:"dry_run"`
}

func (o *mailOperation) add(a *verb.App, cmd *cobra.Command) {
	o.filter.add(a, cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.all, "all", false, "all messages that this can be done to")
	flags.BoolVar(&o.dryRun, "dry-run", false, "only count the messages")
	flags.IntVar(&o.step, "step", 1000, "so many messages in one transaction")
	flags.IntVar(&o.limit, "limit", 0, "at most so many messages; 0 for all")
}

// operate does it until nothing is left to do.
func (o *mailOperation) operate(a *verb.App, cmd *cobra.Command) error {
	filter, err := o.filter.filter()
	if err != nil {
		return err
	}
	switch {
	case o.step < 1 || o.limit < 0:
		return verb.Usagef("--step is positive, --limit is not negative")
	case len(filter) == 0 && !o.all:
		return verb.Usagef("choose messages by --queue, --message or another flag, or all by --all")
	case len(filter) > 0 && o.all:
		return verb.Usagef("--all goes with no other choice")
	}
	ctx := cmd.Context()
	return a.WithConnection(ctx, func(conn *pgx.Conn) error {
		changed, err := o.repeat(ctx, a, conn, filter)
		if changed.Messages > 0 && pgdb.SQLState(err) == mailstore.CodeAbsent {
			// Nothing more of it can be.
			err = nil
		}
		if err == nil && changed.Messages == 0 && verb.OrZero(changed.Queues) == 0 && filter["messages"] != nil {
			err = mailstore.RequireChangeable(ctx, conn, o.name, filter)
		}
		if err != nil {
			if changed.Messages > 0 {
				fmt.Fprintf(a.Stderr, "%s before it failed; do it again for the rest\n", o.report(changed))
			}
			return fmt.Errorf("%s messages: %w", o.name, err)
		}
		if a.JSON {
			return verb.EncodeJSON(cmd.OutOrStdout(), changed)
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), o.report(changed))
		return err
	})
}

// repeat does it step by step, and gives what is done also where it fails.
func (o *mailOperation) repeat(ctx context.Context, a *verb.App, conn *pgx.Conn, filter mailstore.Filter) (changedMail, error) {
	changed := changedMail{DryRun: o.dryRun}
	progress := verb.NewProgressLine(a.Stderr)
	defer progress.Clear()
	if o.queues != nil {
		n, err := o.queues(ctx, conn, filter, o.dryRun)
		if err != nil {
			return changed, err
		}
		changed.Queues = &n
	}
	for steps := 0; ; steps++ {
		top := o.step
		if o.limit > 0 && !o.dryRun {
			top = min(top, o.limit-changed.Messages)
		}
		n, err := o.run(ctx, conn, filter, mailstore.Step{Top: top, DryRun: o.dryRun})
		if err != nil {
			return changed, err
		}
		changed.Messages += n
		if o.dryRun || n == 0 || o.limit > 0 && changed.Messages >= o.limit {
			return changed, nil
		}
		if steps > 0 {
			progress.Show(o.report(changed))
		}
	}
}

func (o *mailOperation) report(changed changedMail) string {
	what := verb.Counted(changed.Messages, "message")
	if changed.Queues != nil {
		what = verb.Counted(*changed.Queues, "queue") + " and " + what
	}
	if changed.DryRun {
		return fmt.Sprintf("%s would be %s", what, o.done)
	}
	return fmt.Sprintf("%s %s", what, o.done)
}

// changedMailQueue is the output of an operation on a queue for programs; a stable format.
type changedMailQueue struct {
	Queue  string `json:"queue"`
	IsDone bool   `json:"is_done"`
}

// newMailQueueOrMessagesCommand is a verb for a queue that is named, or for messages that flags choose.
func newMailQueueOrMessagesCommand(
	a *verb.App, o *mailOperation, short, long, example, reached, notReached string, reason *string,
) *cobra.Command {
	cmd := &cobra.Command{
		Use:     o.name + " {QUEUE | --all | --queue QUEUE ...}",
		Short:   short,
		Long:    long,
		Example: example,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return o.operate(a, cmd)
			}
			if chosen, err := o.filter.filter(); err != nil {
				return err
			} else if len(chosen) > 0 || o.all {
				return verb.Usagef("name a queue, or choose messages by flags")
			}
			if o.queues != nil && strings.Contains(args[0], "*") {
				if err := cmd.Flags().Set("queue", args[0]); err != nil {
					return err
				}
				return o.operate(a, cmd)
			}
			if o.dryRun {
				return verb.Usagef("name a queue, or choose messages by flags")
			}
			ctx := cmd.Context()
			return a.WithConnection(ctx, func(conn *pgx.Conn) error {
				text := ""
				if reason != nil {
					text = *reason
				}
				isDone, err := mailstore.ChangeQueue(ctx, conn, o.name, args[0], text)
				if err != nil {
					return fmt.Errorf("%s the queue: %w", o.name, err)
				}
				if a.JSON {
					return verb.EncodeJSON(cmd.OutOrStdout(), changedMailQueue{args[0], isDone})
				}
				if !isDone {
					reached = notReached
				}
				_, err = fmt.Fprintln(cmd.OutOrStdout(), reached)
				return err
			})
		},
	}
	o.add(a, cmd)
	if reason != nil {
		cmd.Flags().StringVar(reason, "reason", "", "why, for those who see it suspended")
	}
	a.CompleteArgument(cmd, completeMailQueues, 1)
	return cmd
}

func newMailSuspendCommand(a *verb.App) *cobra.Command {
	var reason string
	o := &mailOperation{name: "suspend", done: "suspended"}
	o.run = func(ctx context.Context, conn *pgx.Conn, filter mailstore.Filter, step mailstore.Step) (int, error) {
		return mailstore.SuspendMessages(ctx, conn, filter, step, reason)
	}
	return newMailQueueOrMessagesCommand(a, o, "Have nothing leave a queue, or hold messages",
		`Have nothing leave a queue any more, as parley mail queues names it, or SUBMISSION: new messages are taken, and what is under way goes
on. Or hold messages that flags choose: they stay in their queues and do not expire; one that is under way is held when its
attempt has failed.`,
		`  parley mail suspend DNS/internet/example.com --reason 'their host is moving'
  parley mail suspend --sender 'news@*' --dry-run`, "the queue is suspended", "the queue was suspended before", &reason)
}

func newMailResumeCommand(a *verb.App) *cobra.Command {
	o := &mailOperation{name: "resume", done: "resumed"}
	o.run = func(ctx context.Context, conn *pgx.Conn, filter mailstore.Filter, step mailstore.Step) (int, error) {
		return mailstore.ResumeMessages(ctx, conn, filter, step)
	}
	return newMailQueueOrMessagesCommand(a, o, "Have a suspended queue, or messages, go on",
		`Have a suspended queue go on; of UNREACHABLE/-/- and POISON/-/- all messages are categorized anew. Or have messages go on that were
suspended and that flags choose, at the end of their queues; those that are poison are categorized anew.`,
		`  parley mail resume DNS/internet/example.com
  parley mail resume --queue POISON --message 17`, "the queue goes on", "there was nothing to resume", nil)
}

func newMailRetryCommand(a *verb.App) *cobra.Command {
	o := &mailOperation{name: "retry", done: "tried at once"}
	o.run = func(ctx context.Context, conn *pgx.Conn, filter mailstore.Filter, step mailstore.Step) (int, error) {
		return mailstore.RetryMessages(ctx, conn, filter, step)
	}
	o.queues = func(ctx context.Context, conn *pgx.Conn, filter mailstore.Filter, dryRun bool) (int, error) {
		return mailstore.RetryQueues(ctx, conn, filter, dryRun)
	}
	return newMailQueueOrMessagesCommand(a, o, "Try a queue, or messages, at once",
		`Try the next hop of a queue in RETRY at once, or of all whose names match where there is a * in it; when one fails again, its time
begins anew. Or try messages at once that flags choose and that wait for their next attempt, and with them the next hops of queues in
RETRY in which they wait: --all for everything after an outage. Queues and messages are counted.`,
		`  parley mail retry DNS/internet/example.com
  parley mail retry 'SMART_HOST/*'
  parley mail retry --recipient '*@example.com'`, "the queue is tried at once", "the queue is not in RETRY", nil)
}

func newMailResubmitCommand(a *verb.App) *cobra.Command {
	o := &mailOperation{name: "resubmit", done: "categorized anew"}
	o.run = func(ctx context.Context, conn *pgx.Conn, filter mailstore.Filter, step mailstore.Step) (int, error) {
		return mailstore.ResubmitMessages(ctx, conn, filter, step)
	}
	cmd := &cobra.Command{
		Use:   "resubmit {--all | --queue QUEUE ...}",
		Short: "Categorize messages anew, by the configuration of now",
		Long: `Categorize messages anew: those that wait in a queue in RETRY or for a retry of their own, and those that are unreachable.
Suspended ones are left alone; resume poison instead.`,
		Example: `  parley mail resubmit --queue UNREACHABLE
  parley mail resubmit --queue 'SMART_HOST/old/*' --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.operate(a, cmd) },
	}
	o.add(a, cmd)
	return cmd
}

func newMailRemoveCommand(a *verb.App) *cobra.Command {
	var withReport, withoutReport bool
	o := &mailOperation{name: "remove", done: "removed"}
	o.run = func(ctx context.Context, conn *pgx.Conn, filter mailstore.Filter, step mailstore.Step) (int, error) {
		return mailstore.RemoveMessages(ctx, conn, filter, step, !withoutReport)
	}
	cmd := &cobra.Command{
		Use:   "remove {--all | --queue QUEUE ...}",
		Short: "Give messages up, with a report to their senders or without",
		Long: `Give messages up. Senders who want reports get one unless --without-report says no. One that is under way is removed when its
attempt has failed. What waits in the submission queue stays, unless it is scheduled for later: remove it when it has been categorized.`,
		Example: `  parley mail remove --sender 'spam@*' --without-report --dry-run
  parley mail remove --queue DNS/internet/exmaple.com`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.operate(a, cmd) },
	}
	o.add(a, cmd)
	cmd.Flags().BoolVar(&withReport, "with-report", false, "inform the senders (default)")
	cmd.Flags().BoolVar(&withoutReport, "without-report", false, "inform nobody")
	cmd.MarkFlagsMutuallyExclusive("with-report", "without-report")
	return cmd
}
