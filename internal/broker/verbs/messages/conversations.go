package messages

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

func newConversationsCommand(a *verb.App) *cobra.Command {
	var filter operate.EndpointFilter
	var stuck, pooled, all bool
	cmd := &cobra.Command{
		Use:   "conversations",
		Short: "List the sides of conversations and their states",
		Long: `List the sides of conversations in this database, those that changed their state last first. A conversation between
two services of this database has two sides. You see those of your own services; administrators see all.

States: SO begun, nothing sent. CO conversing. DI the other side has ended. DO this side has ended, the other has
not. ER failed. CD closed, remembered for a while: listed with --all or --state CD only.

With --stuck only those that wait for somebody are listed, with the reason and what to do, longest first. With --pooled
those are listed that parley.get_conversation gives: with their keys, and when they are replaced and ended.`,
		Example: `  parley conversations --state DI --limit 20
  parley conversations --stuck
  parley conversations --service //example.com/shop --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			state, err := stateCode(filter.State)
			if err != nil {
				return err
			}
			filter.State = state
			filter.LeaveOutClosed = !all && state != "CD"
			if filter.Limit < 0 {
				return verb.Usagef("--limit %d: give a positive number, or 0 for all", filter.Limit)
			}
			if pooled {
				return listPooled(a, cmd, filter.Limit)
			}
			if stuck {
				return listStuck(a, cmd, filter)
			}
			return listEndpoints(a, cmd, filter)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&filter.ServiceName, "service", "", "only sides of this service, by its exact name")
	flags.StringVar(&filter.State, "state", "", "only sides in this state, such as CO or CONVERSING")
	flags.BoolVar(&all, "all", false, "also sides that are closed and only remembered for a while")
	flags.BoolVar(&stuck, "stuck", false, "only conversations that wait for somebody, with the reason")
	flags.BoolVar(&pooled, "pooled", false, "only conversations that are used again, of roles that you are a member of")
	flags.IntVar(&filter.Limit, "limit", 100, "list at most so many; 0 for all")
	for _, flag := range []string{"stuck", "service", "state", "all"} {
		cmd.MarkFlagsMutuallyExclusive("pooled", flag)
	}
	cmd.MarkFlagsMutuallyExclusive("stuck", "all")
	a.CompleteFlag(cmd, "service", verb.CompleteServices)
	a.CompleteFlag(cmd, "state", verb.CompleteStates)
	cmd.AddCommand(newConversationsWarmCommand(a))
	return cmd
}

// stateCode finds the code of a state that is given by code or name.
func stateCode(state string) (string, error) {
	if state == "" {
		return "", nil
	}
	wanted := strings.ReplaceAll(strings.ToUpper(state), " ", "_")
	i := slices.IndexFunc(verb.EndpointStates, func(s [2]string) bool { return s[0] == wanted || s[1] == wanted })
	if i < 0 {
		return "", verb.Usagef("--state %s: there is no such state; use SO, SI, CO, DI, DO, ER or CD", state)
	}
	return verb.EndpointStates[i][0], nil
}

func listEndpoints(a *verb.App, cmd *cobra.Command, filter operate.EndpointFilter) error {
	return verb.ShowAll(a, cmd, func(ctx context.Context, db parley.DB) ([]operate.Endpoint, error) {
		return operate.ReadEndpoints(ctx, db, filter)
	}, func(out io.Writer, found []operate.Endpoint) error { return writeEndpoints(out, found, filter.Limit) })
}

func writeEndpoints(out io.Writer, endpoints []operate.Endpoint, limit int) error {
	if len(endpoints) == 0 {
		_, err := fmt.Fprintln(out, "no conversations")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "CONVERSATION HANDLE\tSTATE\tSINCE\tSIDE\tSERVICE\tFAR SERVICE\tCONTRACT\tPRIORITY")
	for _, e := range endpoints {
		side := "target"
		if e.IsInitiator {
			side = "initiator"
		}
		fmt.Fprintf(table, "%s\t%s %s\t%s\t%s\t%s\t%s\t%s\t%d\n",
			e.ConversationHandle, e.State, strings.ToLower(e.StateDesc), verb.Moment(e.StateSince), side,
			verb.OrNone(verb.OneLine(e.ServiceName, 0)), verb.OneLine(e.FarService, 0),
			verb.OrNone(verb.OneLine(e.ServiceContractName, 0)), e.Priority)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return verb.ReportLimit(out, len(endpoints), limit)
}

func listStuck(a *verb.App, cmd *cobra.Command, filter operate.EndpointFilter) error {
	return verb.ShowAll(a, cmd, func(ctx context.Context, db parley.DB) ([]operate.StuckConversation, error) {
		return operate.ReadStuckConversations(ctx, db, filter)
	}, func(out io.Writer, found []operate.StuckConversation) error {
		return writeStuck(out, found, filter.Limit)
	})
}

func writeStuck(out io.Writer, stuck []operate.StuckConversation, limit int) error {
	if len(stuck) == 0 {
		_, err := fmt.Fprintln(out, "no conversation is stuck")
		return err
	}
	for _, s := range stuck {
		_, err := fmt.Fprintf(out, "%s  %s since %s  %s with %s, %d waiting\n  %s\n  %s\n",
			s.ConversationHandle, s.State, verb.Moment(&s.StateSince), verb.OneLine(s.ServiceName, 0), verb.OneLine(s.FarService, 0), s.Waiting,
			verb.OneLine(s.Reason, 0), verb.OneLine(s.Remedy, 0))
		if err != nil {
			return err
		}
	}
	return verb.ReportLimit(out, len(stuck), limit)
}
