package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
)

func newPeekCommand(a *app) *cobra.Command {
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
				return usagef("--top %d: give a positive number", top)
			}
			options := []parley.ReceiveOption{parley.Top(top)}
			if handle != "" {
				conversation, err := parseHandle(handle)
				if err != nil {
					return err
				}
				options = append(options, parley.FromConversation(conversation))
			}
			ctx := cmd.Context()
			conn, err := a.attach(ctx)
			if err != nil {
				return err
			}
			defer closeConnection(ctx, conn)
			if handle == "" {
				messages, err := parley.PeekMessages(ctx, conn, args[0], top)
				if err == nil {
					return a.printPut(cmd.OutOrStdout(), messages, way, full)
				}
				// The queue is one of conversations, or Peek says what is wrong.
			}
			messages, err := parley.Peek(ctx, conn, args[0], options...)
			if err != nil {
				return err
			}
			if len(messages) == 0 && !a.json {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "no messages")
				return err
			}
			return a.printMessages(cmd.OutOrStdout(), messages, way, full)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&top, "top", 10, "show at most so many messages")
	flags.StringVar(&handle, "conversation", "", "only messages of the conversation with this handle")
	flags.StringVar(&way, "body", bodyText, "show bodies as text, hex or json")
	flags.BoolVar(&full, "full", false, "show bodies in full")
	a.completeArgument(cmd, completeQueues, 1)
	a.completeFlag(cmd, "conversation", completeHandles)
	return cmd
}

// parseHandle reads a handle, or the id of a group, from the command line.
func parseHandle(text string) (parley.UUID, error) {
	handle, err := parley.ParseUUID(text)
	if err != nil {
		return handle, asUsage(fmt.Errorf("%w; parley conversations lists the handles, and with --json the groups", err))
	}
	return handle, nil
}
