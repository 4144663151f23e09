package messages

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
)

// receiveFlags are the flags of receive.
type receiveFlags struct {
	top                 int
	timeout             time.Duration
	groups              int
	conversation, group string
	body                string
	full                bool
}

func newReceiveCommand(a *verb.App) *cobra.Command {
	var flags receiveFlags
	cmd := &cobra.Command{
		Use:   "receive QUEUE",
		Short: "Take messages from a queue and print them",
		Long: `Receive messages of one conversation group, or of several with --groups, print them, and commit when all of them are
printed. When that fails, or on Ctrl-C, they stay in the queue, and a rollback is counted as for any reader.

When a message is EndDialog or Error, end your side of its conversation with parley end.

A body that is text (UTF-8, or UTF-16 with a byte-order mark) is shown as text, any other in hex (base64 in JSON).`,
		Example: `  parley receive shop
  parley receive shop --top 1 --timeout 30s --json
  parley receive shop --conversation 7d3ea1d8-5c5a-4f1c-9d54-0a6a7ed10b2f`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := flags.options()
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			conn, err := a.Attach(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			return receive(ctx, a, cmd, conn, args[0], options, flags)
		},
	}
	set := cmd.Flags()
	set.IntVar(&flags.top, "top", 100, "take at most so many messages; 0 for all of the group")
	set.IntVar(&flags.groups, "groups", 1, "take from up to so many conversation groups, 1 to 10000")
	set.DurationVar(&flags.timeout, "timeout", 0, "wait so long for a message, such as 30s; negative for ever")
	set.StringVar(&flags.conversation, "conversation", "", "only from the conversation with this handle")
	set.StringVar(&flags.group, "group", "", "only from this conversation group")
	set.StringVar(&flags.body, "body", bodyText, "show bodies as text, hex or json")
	set.BoolVar(&flags.full, "full", false, "show bodies in full")
	cmd.MarkFlagsMutuallyExclusive("conversation", "group", "groups")
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	a.CompleteFlag(cmd, "conversation", verb.CompleteHandles)
	a.CompleteFlag(cmd, "group", verb.CompleteGroups)
	return cmd
}

func (f receiveFlags) options() ([]parley.ReceiveOption, error) {
	if err := checkBody(f.body); err != nil {
		return nil, err
	}
	if f.top < 0 {
		return nil, verb.Usagef("--top %d: give a positive number, or 0 for all of the group", f.top)
	}
	var options []parley.ReceiveOption
	if f.top > 0 {
		options = append(options, parley.Top(f.top))
	}
	if f.groups != 1 {
		options = append(options, parley.Groups(f.groups))
	}
	if f.timeout != 0 {
		options = append(options, parley.Wait(f.timeout))
	}
	if f.conversation != "" {
		handle, err := verb.ParseHandle(f.conversation)
		if err != nil {
			return nil, err
		}
		options = append(options, parley.FromConversation(handle))
	}
	if f.group != "" {
		group, err := verb.ParseHandle(f.group)
		if err != nil {
			return nil, err
		}
		options = append(options, parley.FromGroup(group))
	}
	return options, nil
}

// receive commits only what was printed.
func receive(
	ctx context.Context, a *verb.App, cmd *cobra.Command, conn *pgx.Conn, queue string, options []parley.ReceiveOption, flags receiveFlags,
) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		messages, err := parley.Receive(ctx, tx, queue, options...)
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted: nothing was received: %w", ctx.Err())
		}
		if err != nil {
			return err
		}
		if len(messages) == 0 && !a.JSON {
			_, err := fmt.Fprintln(a.Stderr, "no messages")
			return err
		}
		return printMessages(a, cmd.OutOrStdout(), messages, flags.body, flags.full)
	})
}
