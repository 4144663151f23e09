package verbs

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
	"github.com/parley-broker/parley/internal/verb"
)

// suspendedFilter are the flags that choose suspended messages. The database defines the conditions.
type suspendedFilter struct {
	cmd                   *cobra.Command
	texts                 map[string]*string
	suspensions, messages []int64
	cause                 int64
	olderThan, newerThan  time.Duration
	isResumable           bool
}

func (f *suspendedFilter) add(env environment, cmd *cobra.Command) {
	f.cmd = cmd
	flags := cmd.Flags()
	f.texts = map[string]*string{}
	for _, condition := range []struct{ flag, key, usage string }{
		{"application", "application", "of this application"},
		{"receive-port", "receive_port", "that came by this receive port"},
		{"location", "location", "that came by this receive location"},
		{"send-port", "send_port", "that this send port could not send"},
		{"host", "host", "of this host"},
		{"stage", "stage", "that failed at RECEIVE, ROUTE, SEND or PROCESS"},
		{"code", "code", "with this failure code"},
		{"error", "error", "whose error contains this text"},
		{"message-type", "message_type", "of this type"},
		{"order-key", "order_key", "with this order key"},
		{"property", "property", "with this property, namespace#Name, that has the value of --value"},
		{"value", "value", "with this value of --property"},
	} {
		f.texts[condition.key] = flags.String(condition.flag, "", "messages "+condition.usage)
	}
	flags.Int64SliceVar(&f.suspensions, "suspension", nil, "these suspensions, by their numbers")
	flags.Int64SliceVar(&f.messages, "message", nil, "these messages, by their numbers")
	flags.Int64Var(&f.cause, "cause", 0, "messages that matched nothing for this cause, as parley flow failures lists it")
	flags.DurationVar(&f.olderThan, "older-than", 0, "messages that were suspended longer ago, such as 1h")
	flags.DurationVar(&f.newerThan, "newer-than", 0, "messages that were suspended since, such as 1h")
	flags.BoolVar(&f.isResumable, "resumable", true, "messages that can be resumed, or with =false that cannot")
	env.CompleteFlag(cmd, "send-port", completeSendPorts)
	env.CompleteFlag(cmd, "location", completeLocations)
}

// filter writes the flags that were given as the database takes them.
func (f *suspendedFilter) filter() (flowstore.Filter, error) {
	filter := flowstore.Filter{}
	flags := f.cmd.Flags()
	if flags.Changed("property") != flags.Changed("value") {
		return nil, verb.Usagef("--property and --value go together: give both")
	}
	for _, condition := range []struct {
		flag, key string
		value     any
	}{
		{"application", "application", f.texts["application"]},
		{"receive-port", "receive_port", f.texts["receive_port"]},
		{"location", "location", f.texts["location"]},
		{"send-port", "send_port", f.texts["send_port"]},
		{"host", "host", f.texts["host"]},
		{"stage", "stage", f.texts["stage"]},
		{"code", "code", f.texts["code"]},
		{"error", "error", f.texts["error"]},
		{"message-type", "message_type", f.texts["message_type"]},
		{"order-key", "order_key", f.texts["order_key"]},
		{"property", "property", f.texts["property"]},
		{"value", "value", f.texts["value"]},
		{"suspension", "suspensions", f.suspensions},
		{"message", "messages", f.messages},
		{"cause", "cause", f.cause},
		{"older-than", "older", fmt.Sprintf("%f seconds", f.olderThan.Seconds())},
		{"newer-than", "newer", fmt.Sprintf("%f seconds", f.newerThan.Seconds())},
		{"resumable", "is_resumable", f.isResumable},
	} {
		if flags.Changed(condition.flag) {
			filter[condition.key] = condition.value
		}
	}
	return filter, nil
}

func newSuspendedCommand(env environment) *cobra.Command {
	var filter suspendedFilter
	var areGroups bool
	var top int
	var after int64
	cmd := &cobra.Command{
		Use:   "suspended",
		Short: "List messages that wait for an operator; resume, terminate, save or resubmit them",
		Long: `List messages that wait for an operator, the oldest first: where they failed, why, and what to do. With --groups count them by
that, the largest group first. You see those of applications for which you hold the right VIEW.`,
		Example: `  parley flow suspended --groups
  parley flow suspended --send-port ERP --code send.refused
  parley flow suspended resume --send-port ERP --rate 50`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if top < 1 || after < 0 {
				return verb.Usagef("--limit is positive, --after is the number of a suspension")
			}
			chosen, err := filter.filter()
			if err != nil {
				return err
			}
			if areGroups {
				return verb.ShowAll(env.App, cmd, func(ctx context.Context, db parley.DB) ([]flowstore.SuspendedGroup, error) {
					return flowstore.SuspendedGroups(ctx, db, chosen)
				}, writeSuspendedGroups)
			}
			return verb.ShowAll(env.App, cmd, func(ctx context.Context, db parley.DB) ([]flowstore.Suspended, error) {
				return flowstore.FindSuspended(ctx, db, chosen, top, after)
			}, func(out io.Writer, found []flowstore.Suspended) error { return writeSuspended(out, found, top) })
		},
	}
	filter.add(env, cmd)
	cmd.Flags().BoolVar(&areGroups, "groups", false, "count them by where and why they failed")
	cmd.Flags().IntVar(&top, "limit", 100, "list at most so many")
	cmd.Flags().Int64Var(&after, "after", 0, "list those behind this suspension, the last one that was listed")
	cmd.AddCommand(newResumeCommand(env), newTerminateCommand(env), newSaveCommand(env), newResubmitCommand(env))
	return cmd
}

func writeSuspended(out io.Writer, found []flowstore.Suspended, top int) error {
	if len(found) == 0 {
		_, err := fmt.Fprintln(out, "no message is suspended")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "SUSPENSION\tMESSAGE\tSUSPENDED\tSTAGE\tPLACE\tTYPE\tCODE\tERROR")
	for _, s := range found {
		fmt.Fprintf(table, "%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
			s.SuspensionID, s.MessageID, verb.Moment(&s.SuspendedAt), s.Stage, place(s.SendPort, s.Location, s.ReceivePort),
			textOr(s.MessageType), s.Code, verb.OrNone(verb.OneLine(verb.OrEmpty(s.Error), errorWidth)))
	}
	if err := table.Flush(); err != nil || len(found) < top {
		return err
	}
	_, err := fmt.Fprintf(out, "%d shown; for the next ones: --after %d\n", top, found[len(found)-1].SuspensionID)
	return err
}

func writeSuspendedGroups(out io.Writer, found []flowstore.SuspendedGroup) error {
	if len(found) == 0 {
		_, err := fmt.Fprintln(out, "no message is suspended")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "MESSAGES\tBYTES\tSTAGE\tPLACE\tTYPE\tCODE\tOLDEST\tNEWEST\tSAMPLE")
	for _, g := range found {
		fmt.Fprintf(table, "%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%d\n",
			g.Messages, g.Bytes, g.Stage, place(g.SendPort, g.Location), textOr(g.MessageType),
			g.Code, verb.Moment(&g.Oldest), verb.Moment(&g.Newest), g.Sample)
	}
	return table.Flush()
}

// place gives where a message failed: the first of these that there is.
func place(names ...*string) string {
	for _, name := range names {
		if name != nil {
			return verb.OneLine(*name, 0)
		}
	}
	return "-"
}
