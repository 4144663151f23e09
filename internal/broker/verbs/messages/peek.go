package messages

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
)

func newPeekCommand(a *verb.App) *cobra.Command {
	var top int
	var handle, way string
	var full bool
	cmd := &cobra.Command{
		Use:   "peek QUEUE",
		Short: "Show the first messages of a queue without taking them",
		Long: `Show the first messages of a queue, by priority and arrival, without taking them and without disturbing anybody.
Messages that a reader holds at the moment are among them. Those of a simple queue show with their keys; what is not due yet is in
the view parley.delayed_messages.

A body that is text (UTF-8, or UTF-16 with a byte-order mark) is shown as text, any other in hex (base64 in JSON).`,
		Example: `  parley peek shop
  parley peek shop --top 1 --full
  parley peek shop --json --body json | jq '.[].body.item'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkBody(way); err != nil {
				return err
			}
			if top < 1 {
				return verb.Usagef("--top %d: give a positive number", top)
			}
			options := []parley.ReceiveOption{parley.Top(top)}
			if handle != "" {
				conversation, err := verb.ParseHandle(handle)
				if err != nil {
					return err
				}
				options = append(options, parley.FromConversation(conversation))
			}
			ctx := cmd.Context()
			conn, err := a.Attach(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			if handle == "" {
				messages, err := parley.PeekMessages(ctx, conn, args[0], top)
				if err == nil {
					return printPut(a, cmd.OutOrStdout(), messages, way, full)
				}
				// The queue is one of conversations, or Peek says what is wrong.
			}
			messages, err := parley.Peek(ctx, conn, args[0], options...)
			if err != nil {
				return err
			}
			if len(messages) == 0 && !a.JSON {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "no messages")
				return err
			}
			return printMessages(a, cmd.OutOrStdout(), messages, way, full)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&top, "top", 10, "show at most so many messages")
	flags.StringVar(&handle, "conversation", "", "only messages of the conversation with this handle")
	flags.StringVar(&way, "body", bodyText, "show bodies as text, hex or json")
	flags.BoolVar(&full, "full", false, "show bodies in full")
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	a.CompleteFlag(cmd, "conversation", verb.CompleteHandles)
	return cmd
}
