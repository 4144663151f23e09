package messages

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

// discardFlags are the flags of discard.
type discardFlags struct {
	messageOnly bool
	code        int32
	description string
}

// discardedPoison is the output of discard for programs; a stable format.
type discardedPoison struct {
	ConversationHandles []parley.UUID  `json:"conversation_handles"`
	MessageOnly         bool           `json:"message_only"`
	Messages            []shownMessage `json:"messages"`
}

func newPoisonDiscardCommand(a *verb.App) *cobra.Command {
	var flags discardFlags
	var way string
	cmd := &cobra.Command{
		Use:   "discard HANDLE...",
		Short: "Give up conversations that are set aside, or the poisonous message of each",
		Long: `Give up conversations that are set aside, all of them in one transaction: this side is ended with an error, which the other
side receives, and all that waits is removed.

With --message-only just the message that came back is removed, as if it had been received, and the rest goes back into
the queue as by parley poison retry.

What is removed is printed with --json, bodies included, so that it can be kept.`,
		Example: `  parley poison discard 7d3ea1d8-5c5a-4f1c-9d54-0a6a7ed10b2f --message-only --json >> lost.json
  parley poison discard 7d3ea1d8-5c5a-4f1c-9d54-0a6a7ed10b2f --error 31472 --description "no such customer"`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkBody(way); err != nil {
				return err
			}
			handles, err := parseHandles(args)
			if err != nil {
				return err
			}
			ctx := cmd.Context()
			conn, err := a.Attach(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			done := discardedPoison{ConversationHandles: handles, MessageOnly: flags.messageOnly, Messages: []shownMessage{}}
			err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
				for _, handle := range handles {
					lost, err := flags.discard(ctx, tx, handle)
					if err != nil {
						return err
					}
					for _, m := range lost {
						done.Messages = append(done.Messages, show(m, way))
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			if a.JSON {
				return verb.EncodeJSON(cmd.OutOrStdout(), done)
			}
			what := "ended"
			if flags.messageOnly {
				what = "put back"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "discarded %s and %s %s\n",
				verb.Counted(len(done.Messages), "message"), what, verb.Counted(len(handles), "conversation"))
			return err
		},
	}
	set := cmd.Flags()
	set.BoolVar(&flags.messageOnly, "message-only", false, "remove just the message that came back, and put the rest back")
	set.Int32Var(&flags.code, "error", 1, "code of the error that the other side gets, above 0")
	set.StringVar(&flags.description, "description", "A message of this conversation could not be handled.",
		"what the error is, up to 3000 characters")
	set.StringVar(&way, "body", bodyText, "with --json: give bodies as text, hex or json")
	cmd.MarkFlagsMutuallyExclusive("message-only", "error")
	cmd.MarkFlagsMutuallyExclusive("message-only", "description")
	a.CompleteArgument(cmd, completePoison, 0)
	return cmd
}

func (f discardFlags) discard(ctx context.Context, tx pgx.Tx, handle parley.UUID) ([]parley.Message, error) {
	if f.messageOnly {
		return operate.DiscardPoisonMessage(ctx, tx, handle)
	}
	return operate.DiscardPoisonConversation(ctx, tx, handle, f.code, f.description)
}
