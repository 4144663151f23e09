package catalog

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

func newQueueLimitsCommand(a *verb.App) *cobra.Command {
	var concurrency, rate int32
	var shared string
	var per, ageing time.Duration
	var none bool
	cmd := &cobra.Command{
		Use:   "limits [QUEUE {--concurrency N [--shared NAME] | --rate N [--per TIME] | --ageing TIME | --none}]",
		Short: "List the limits of simple queues, or limit how many messages are worked on at once, or in a time",
		Long: `Limit how many transactions and claims may hold messages of a simple queue at once, of this queue or of all queues
of its owner that give the same name, and how many messages may be taken in a time. With --ageing a message that has waited for so long
counts as one priority higher. The limits replace those that the queue has; a session that they hold back takes nothing.
Without a queue, list the limits of all that you may take from.`,
		Example: "  parley queue limits jobs --concurrency 10\n  parley queue limits jobs --rate 100 --per 1m\n" +
			"  parley queue limits jobs --none",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			limits := operate.QueueLimits{
				Concurrency: verb.Given(cmd, "concurrency", concurrency), Shared: verb.Given(cmd, "shared", shared),
				Rate: verb.Given(cmd, "rate", rate), Per: verb.Given(cmd, "per", per), Ageing: verb.Given(cmd, "ageing", ageing),
			}
			isLimited := limits.Concurrency != nil || limits.Rate != nil || limits.Ageing != nil
			switch {
			case len(args) == 0 && limits == operate.QueueLimits{} && !none:
				return verb.ShowAll(a, cmd, operate.ReadQueueLimits, writeLimits)
			case len(args) == 0:
				return verb.Usagef("give the queue whose limits these are")
			case none == isLimited:
				return verb.Usagef("give --concurrency, --rate or --ageing, or --none")
			case limits.Shared != nil && limits.Concurrency == nil:
				return verb.Usagef("--shared names who shares --concurrency: give that, too")
			case limits.Per != nil && limits.Rate == nil:
				return verb.Usagef("--per is the time of --rate: give that, too")
			}
			return changeObject(a, cmd, objectChange{"queue", args[0], limited(!none)}, func(ctx context.Context, conn *pgx.Conn) error {
				return operate.SetQueueLimits(ctx, conn, args[0], limits)
			})
		},
	}
	flags := cmd.Flags()
	flags.Int32Var(&concurrency, "concurrency", 0, "how many transactions may hold messages at once")
	flags.StringVar(&shared, "shared", "", "the name under which queues share --concurrency")
	flags.Int32Var(&rate, "rate", 0, "how many messages may be taken in the time --per")
	flags.DurationVar(&per, "per", time.Second, "the time of --rate")
	flags.DurationVar(&ageing, "ageing", 0, "time of waiting that counts as one priority")
	flags.BoolVar(&none, "none", false, "take the limits away")
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	return cmd
}

func writeLimits(out io.Writer, queues []operate.LimitedQueue) error {
	if len(queues) == 0 {
		_, err := fmt.Fprintln(out, "no limits")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "QUEUE\tCONCURRENCY\tIN USE\tSHARED\tRATE\tAGEING")
	for _, q := range queues {
		concurrency, inUse, rate, ageing := "-", "-", "-", "-"
		if q.Concurrency != nil {
			concurrency, inUse = fmt.Sprint(*q.Concurrency), fmt.Sprint(q.InUse)
		}
		if q.Rate != nil && q.Per != nil {
			rate = fmt.Sprintf("%d in %s", *q.Rate, span(*q.Per))
		}
		if q.Ageing != nil {
			ageing = span(*q.Ageing).String()
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", verb.OneLine(q.Queue, 0), concurrency, inUse,
			verb.OrNone(verb.OneLine(verb.OrEmpty(q.Shared), 0)), rate, ageing)
	}
	return table.Flush()
}

func span(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// limited says what became of a queue whose limits, or whose quota, were set or taken away.
func limited(is bool) string {
	if is {
		return "limited"
	}
	return "unlimited"
}
