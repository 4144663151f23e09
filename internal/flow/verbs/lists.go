package verbs

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
	"github.com/parley-broker/parley/internal/verb"
)

// errorWidth is how much of an error a list shows in its last column.
const errorWidth = 200

// list is a verb that shows rows of a view.
type list[T any] struct {
	name, short, long, example string
	nothing                    string
	header                     string
	read                       func(context.Context, parley.DB, flowstore.Scope) ([]T, error)
	write                      func(io.Writer, T)
	flags                      func(*cobra.Command, *flowstore.Scope)
}

func (l list[T]) command(env environment) *cobra.Command {
	var scope flowstore.Scope
	cmd := &cobra.Command{
		Use: l.name, Short: l.short, Long: l.long + "\n\nYou see those of applications for which you hold the right VIEW.", Example: l.example,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return verb.ShowAll(env.App, cmd, func(ctx context.Context, db parley.DB) ([]T, error) { return l.read(ctx, db, scope) }, l.writeAll)
		},
	}
	l.flags(cmd, &scope)
	return cmd
}

func (l list[T]) writeAll(out io.Writer, found []T) error {
	if len(found) == 0 {
		_, err := fmt.Fprintln(out, l.nothing)
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, l.header)
	for _, row := range found {
		l.write(table, row)
	}
	return table.Flush()
}

// shownError has an error with its time; one that is over says so first.
func shownError(e flowstore.LastError) string {
	if e.Text == nil {
		return verb.OrNone("")
	}
	text := verb.Moment(e.At) + ": " + verb.OneLine(*e.Text, errorWidth)
	if e.RecoveredAt != nil {
		text = "over since " + verb.Moment(e.RecoveredAt) + "; " + text
	}
	return text
}

func textOr(text *string) string { return verb.OrNone(verb.OneLine(verb.OrEmpty(text), 0)) }

// window says behind a state that a schedule keeps something from its work.
func window(isClosed bool, opensAt *time.Time) string {
	switch {
	case !isClosed:
		return ""
	case opensAt == nil:
		return ", its schedule is over"
	default:
		return ", outside its window until " + verb.Moment(opensAt)
	}
}

func newPortsCommand(env environment) *cobra.Command {
	return list[flowstore.SendPort]{
		name: "ports", short: "List send ports, and what waits for them", nothing: "there is no send port",
		long: `List send ports with their states and what waits for them: WAITING has deliveries that are not ended nor suspended, FAILING
those of them that have failed. LAST ERROR says when it was, and is over once the port has sent something after it.`,
		example: "  parley flow ports --state Stopped", read: flowstore.SendPorts,
		header: "PORT\tAPPLICATION\tSTATE\tWAITING\tFAILING\tSUSPENDED\tSENT/S\tOLDEST\tNEXT ATTEMPT\tADDRESS\tLAST ERROR",
		write: func(out io.Writer, p flowstore.SendPort) {
			fmt.Fprintf(out, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n",
				verb.OneLine(p.Name, 0), verb.OneLine(p.Application, 0), p.State+window(p.IsClosed, p.OpensAt), p.Waiting, p.Failing, p.Suspended,
				strconv.FormatFloat(p.SentPerSecond, 'f', 1, 64), verb.Moment(p.Oldest), verb.Moment(p.NextAttemptAt),
				verb.OneLine(p.Address, verb.BodyWidth), shownError(p.LastError))
		},
		flags: func(cmd *cobra.Command, s *flowstore.Scope) {
			cmd.Flags().StringVar(&s.Application, "application", "", "of this application")
			cmd.Flags().StringVar(&s.Host, "host", "", "of this host")
			cmd.Flags().StringVar(&s.State, "state", "", "Bound, Stopped or Started")
		},
	}.command(env)
}

func newLocationsCommand(env environment) *cobra.Command {
	return list[flowstore.Location]{
		name: "locations", short: "List receive locations, and how they are doing", nothing: "there is no receive location",
		long: `List receive locations, and how they were doing when a node last reported. LAST ERROR says when it was, and is over once the
source could be reached again.`,
		example: "  parley flow locations --receive-port 'Orders in'", read: flowstore.Locations,
		header: "LOCATION\tRECEIVE PORT\tAPPLICATION\tSTATE\tADDRESS\tNODE\tREPORTED\tLAST ERROR",
		write: func(out io.Writer, l flowstore.Location) {
			state := "Disabled"
			if l.IsEnabled {
				state = "Enabled"
			}
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
				verb.OneLine(l.Name, 0), verb.OneLine(l.ReceivePort, 0), verb.OneLine(l.Application, 0), state+window(l.IsClosed, l.OpensAt),
				verb.OneLine(l.Address, verb.BodyWidth), textOr(l.Node), verb.Moment(l.ReportedAt),
				shownError(l.LastError))
		},
		flags: func(cmd *cobra.Command, s *flowstore.Scope) {
			cmd.Flags().StringVar(&s.Application, "application", "", "of this application")
			cmd.Flags().StringVar(&s.Host, "host", "", "of this host")
			cmd.Flags().StringVar(&s.ReceivePort, "receive-port", "", "of this receive port")
		},
	}.command(env)
}

func newMessagesCommand(env environment) *cobra.Command {
	var top int
	var before int64
	cmd := list[flowstore.Message]{
		name: "messages", short: "List messages that are there", nothing: "no message",
		long: `List messages that are there, the newest first: those with deliveries that are open or suspended, and those that are kept.`,
		example: `  parley flow messages --message-type 'http://shop.example/orders#Order'
  parley flow messages --before 1700 --limit 20`,
		header: "MESSAGE\tRECEIVED\tTYPE\tSIZE\tDELIVERIES\tRECEIVE PORT\tLOCATION\tPROPERTIES",
		read: func(ctx context.Context, db parley.DB, scope flowstore.Scope) ([]flowstore.Message, error) {
			if top < 1 || before < 0 {
				return nil, verb.Usagef("--limit is positive, --before is the number of a message")
			}
			return flowstore.Messages(ctx, db, scope, top, before)
		},
		write: func(out io.Writer, m flowstore.Message) {
			fmt.Fprintf(out, "%d\t%s\t%s\t%d\t%d\t%s\t%s\t%s\n",
				m.MessageID, verb.Moment(&m.ReceivedAt), textOr(m.MessageType), m.Size, m.Deliveries,
				textOr(m.ReceivePort), textOr(m.Location), verb.OneLine(string(m.Promoted), errorWidth))
		},
		flags: func(cmd *cobra.Command, s *flowstore.Scope) {
			cmd.Flags().StringVar(&s.Application, "application", "", "of this application")
			cmd.Flags().StringVar(&s.ReceivePort, "receive-port", "", "that came by this receive port")
			cmd.Flags().StringVar(&s.Location, "location", "", "that came by this receive location")
			cmd.Flags().StringVar(&s.MessageType, "message-type", "", "of this type")
		},
	}.command(env)
	cmd.Flags().IntVar(&top, "limit", 100, "list at most so many")
	cmd.Flags().Int64Var(&before, "before", 0, "list messages with smaller numbers than this: the last one that was listed")
	return cmd
}

func newFailuresCommand(env environment) *cobra.Command {
	return list[flowstore.RoutingFailure]{
		name: "failures", short: "List why messages matched nothing", nothing: "no message has matched nothing",
		long: `List why messages matched no subscription, one row for a cause: which send port, or receive of an orchestration, was nearest,
what it missed, how many messages, and what to do. Messages of a cause are found by parley flow suspended --cause.`,
		example: "  parley flow failures --receive-port 'Orders in'", read: flowstore.RoutingFailures,
		header: "CAUSE\tFAILURES\tFIRST\tLAST\tRECEIVE PORT\tTYPE\tEXPLANATION\tREMEDY",
		write: func(out io.Writer, f flowstore.RoutingFailure) {
			fmt.Fprintf(out, "%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
				f.CauseID, f.Failures, verb.Moment(&f.FirstAt), verb.Moment(&f.LastAt), textOr(f.ReceivePort), textOr(f.MessageType),
				f.Explanation, verb.OneLine(f.Remedy, 2*errorWidth))
		},
		flags: func(cmd *cobra.Command, s *flowstore.Scope) {
			cmd.Flags().StringVar(&s.ReceivePort, "receive-port", "", "of messages that came by this receive port")
			cmd.Flags().StringVar(&s.Location, "location", "", "of messages that came by this receive location")
			cmd.Flags().StringVar(&s.MessageType, "message-type", "", "of messages of this type")
		},
	}.command(env)
}

func newSubscriptionsCommand(env environment) *cobra.Command {
	return list[flowstore.Subscription]{
		name: "subscriptions", short: "List what is routed where", nothing: "there is no subscription",
		long:    `List what is routed where, a row for each AND group of a filter. GROUP is the send port group whose filter it is.`,
		example: "  parley flow subscriptions --send-port ERP", read: flowstore.Subscriptions,
		header: "PORT\tAPPLICATION\tSTATE\tGROUP\tNUMBER\tPREDICATES",
		write: func(out io.Writer, s flowstore.Subscription) {
			fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%d\t%s\n",
				verb.OneLine(s.SendPort, 0), verb.OneLine(s.Application, 0), s.State, textOr(s.PortGroup), s.Ordinal,
				verb.OneLine(string(s.Predicates), 0))
		},
		flags: func(cmd *cobra.Command, s *flowstore.Scope) {
			cmd.Flags().StringVar(&s.Application, "application", "", "of this application")
			cmd.Flags().StringVar(&s.SendPort, "send-port", "", "of this send port")
		},
	}.command(env)
}
