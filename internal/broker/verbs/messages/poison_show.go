package messages

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

// shownPoison is the output of show for programs; a stable format.
type shownPoison struct {
	operate.PoisonConversation
	// Messages are the first that wait, the one that came back first.
	Messages []shownMessage `json:"messages"`
}

func newPoisonShowCommand(a *verb.App) *cobra.Command {
	var top int
	var way string
	var full bool
	cmd := &cobra.Command{
		Use:   "show HANDLE",
		Short: "Show a conversation that is set aside or fails, its error and its first messages",
		Long: `Show a conversation that is set aside, or one of parley poison list --failing: what failed, how often, since when, the last
error that was reported, what the web address answered, and the first messages that wait, beginning with the one that came back.`,
		Example: `  parley poison show 7d3ea1d8-5c5a-4f1c-9d54-0a6a7ed10b2f --full`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkBody(way); err != nil {
				return err
			}
			if top < 1 {
				return verb.Usagef("--top %d: give a positive number", top)
			}
			handle, err := verb.ParseHandle(args[0])
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			conn, err := a.Attach(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			found, err := operate.ReadPoisonConversations(ctx, conn, operate.PoisonFilter{Conversation: handle})
			if err == nil && len(found) == 0 {
				found, err = operate.ReadPoisonConversations(ctx, conn, operate.PoisonFilter{Conversation: handle, Failing: true})
			}
			if err != nil {
				return err
			}
			if len(found) == 0 {
				return fmt.Errorf("conversation %s is not set aside and does not fail, or you may not receive from its queue; "+
					"see parley poison list, also with --failing", handle)
			}
			messages, err := parley.Peek(ctx, conn, found[0].Queue, parley.FromConversation(handle), parley.Top(top))
			if err != nil {
				return err
			}
			if a.JSON {
				shown := shownPoison{PoisonConversation: found[0], Messages: []shownMessage{}}
				for _, m := range messages {
					shown.Messages = append(shown.Messages, show(m, way))
				}
				return verb.EncodeJSON(cmd.OutOrStdout(), shown)
			}
			if err := writeOnePoison(cmd.OutOrStdout(), found[0], full); err != nil {
				return err
			}
			return writeMessages(cmd.OutOrStdout(), messages, way, full)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&top, "top", 3, "show at most so many messages")
	flags.StringVar(&way, "body", bodyText, "show bodies as text, hex or json")
	flags.BoolVar(&full, "full", false, "show bodies, and the answer of the web address, in full")
	a.CompleteArgument(cmd, completePoison, 1)
	return cmd
}

func writeOnePoison(out io.Writer, c operate.PoisonConversation, full bool) error {
	lines := [][2]string{
		{"conversation", c.ConversationHandle.String()},
		{"group", c.ConversationGroupID.String()},
		{"queue", verb.OneLine(c.Queue, 0)},
		{"service", fmt.Sprintf("%s with %s, contract %s, state %s",
			verb.OneLine(c.ServiceName, 0), verb.OneLine(c.FarService, 0), verb.OneLine(c.ServiceContractName, 0), c.State)},
	}
	if c.SetAsideSince != nil {
		times := verb.Counted(int(c.Rollbacks), "rollback")
		lines = append(lines, [2]string{"set aside", fmt.Sprintf("%s after %s", verb.Moment(c.SetAsideSince), times)})
	} else {
		lines = append(lines, [2]string{"failed times", failedTimes(c)})
	}
	if c.RetryAt != nil {
		lines = append(lines, [2]string{"delivered again", verb.Moment(c.RetryAt)})
	}
	lines = append(lines, [2]string{"waiting", poisonWaiting(c)}, [2]string{"last error", poisonError(c, 0)})
	if c.Answer != nil {
		width := verb.BodyWidth
		if full {
			width = 0
		}
		lines = append(lines, [2]string{"answer", verb.OneLine(*c.Answer, width)})
	}
	lines = append(lines, [2]string{"reported", verb.Moment(c.ErrorTime)})
	if c.SetAsideSince != nil {
		lines = append(lines,
			[2]string{"put back", "parley poison retry " + c.ConversationHandle.String()},
			[2]string{"give up", "parley poison discard " + c.ConversationHandle.String() + " [--message-only]"})
	}
	table := verb.NewTable(out)
	for _, line := range lines {
		fmt.Fprintf(table, "%s:\t%s\n", line[0], line[1])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}
