package messages

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
)

func newPeekCommand(a *verb.App) *cobra.Command {
	var top int
	var handle, way, after string
	var full bool
	cmd := &cobra.Command{
		Use:   "peek QUEUE",
		Short: "Show the first messages of a queue without taking them",
		Long: `Show the first messages of a queue, by priority and arrival, without taking them and without disturbing anybody.
Messages that a reader holds at the moment are among them. Those of a simple queue show with their keys; what is not due yet is in
the view parley.delayed_messages. A page that is full ends with what --after takes for the next one.

A body that is text (UTF-8, or UTF-16 with a byte-order mark) is shown as text, any other in hex (base64 in JSON).`,
		Example: `  parley peek shop
  parley peek shop --top 1 --full
  parley peek shop --top 100 --after 5:1024000
  parley peek shop --json --body json | jq '.[].body.item'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkBody(way); err != nil {
				return err
			}
			if top < 1 {
				return verb.Usagef("--top %d: give a positive number", top)
			}
			options, err := peekOptions(top, handle, after)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			conn, err := a.Attach(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			if handle == "" {
				messages, err := parley.PeekMessages(ctx, conn, args[0], top, options...)
				if err == nil {
					if len(messages) == top {
						last := messages[top-1]
						defer sayNext(a, last.Priority, last.MessageID)
					}
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
			if len(messages) == top {
				last := messages[top-1]
				defer sayNext(a, last.Priority, last.QueuingOrder)
			}
			return printMessages(a, cmd.OutOrStdout(), messages, way, full)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&top, "top", 10, "show at most so many messages")
	flags.StringVar(&after, "after", "", "show what comes behind the message with this PRIORITY:NUMBER")
	flags.StringVar(&handle, "conversation", "", "only messages of the conversation with this handle")
	flags.StringVar(&way, "body", bodyText, "show bodies as text, hex or json")
	flags.BoolVar(&full, "full", false, "show bodies in full")
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	a.CompleteFlag(cmd, "conversation", verb.CompleteHandles)
	return cmd
}

// peekOptions reads what is asked for: how many messages, of which conversation and behind which message, both empty for any.
func peekOptions(top int, handle, after string) ([]parley.ReceiveOption, error) {
	options := []parley.ReceiveOption{parley.Top(top)}
	if handle != "" {
		conversation, err := verb.ParseHandle(handle)
		if err != nil {
			return nil, err
		}
		options = append(options, parley.FromConversation(conversation))
	}
	if after != "" {
		begin, err := parsePlace(after)
		if err != nil {
			return nil, err
		}
		options = append(options, begin)
	}
	return options, nil
}

// parsePlace reads the place of a message in its queue: its priority and its number.
func parsePlace(text string) (parley.ReceiveOption, error) {
	first, second, _ := strings.Cut(text, ":")
	priority, err := strconv.ParseInt(first, 10, 16)
	if err == nil {
		var number int64
		if number, err = strconv.ParseInt(second, 10, 64); err == nil {
			return parley.After(int16(priority), number), nil
		}
	}
	return nil, verb.Usagef("--after %s: give the priority and the number of a message, such as 5:1024", text)
}

// sayNext says how the page behind a message is had. It is for people: a program finds both in the last message.
func sayNext(a *verb.App, priority int16, number int64) {
	if !a.JSON {
		fmt.Fprintf(a.Stderr, "for the next page: --after %d:%d\n", priority, number)
	}
}
