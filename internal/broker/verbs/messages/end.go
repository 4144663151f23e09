package messages

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
)

// endFlags are the flags of end.
type endFlags struct {
	code        int32
	description string
	cleanup     bool
	withError   bool
}

// endedConversations is the output of end for programs; a stable format.
type endedConversations struct {
	ConversationHandles []parley.UUID `json:"conversation_handles"`
	Form                string        `json:"form"` // plain, error or cleanup
}

func newEndCommand(a *verb.App) *cobra.Command {
	var flags endFlags
	cmd := &cobra.Command{
		Use:   "end HANDLE...",
		Short: "End a side of a conversation",
		Long: `End one side of each conversation, all of them in one transaction. What waits for that side in its queue is gone. The
other side gets an EndDialog message, or with --error an Error message.

With --cleanup the side is removed at once without a message to the other side. That is for administrators, and for conversations
whose other side is lost.`,
		Example: `  parley end 7d3ea1d8-5c5a-4f1c-9d54-0a6a7ed10b2f
  parley end 7d3ea1d8-5c5a-4f1c-9d54-0a6a7ed10b2f --error 31472 --description "no such customer"
  parley conversations --state DI --json | jq -r '.[].conversation_handle' | xargs parley end`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.withError = cmd.Flags().Changed("error")
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
			err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
				for _, handle := range handles {
					if err := flags.end(ctx, tx, handle); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			if a.JSON {
				return verb.EncodeJSON(cmd.OutOrStdout(), endedConversations{ConversationHandles: handles, Form: flags.form()})
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "ended %s\n", verb.Counted(len(handles), "conversation"))
			return err
		},
	}
	set := cmd.Flags()
	set.Int32Var(&flags.code, "error", 0, "end with an error: a code above 0")
	set.StringVar(&flags.description, "description", "", "what the error is, up to 3000 characters")
	set.BoolVar(&flags.cleanup, "cleanup", false, "remove this side without a message to the other side")
	cmd.MarkFlagsMutuallyExclusive("error", "cleanup")
	cmd.MarkFlagsRequiredTogether("error", "description")
	a.CompleteArgument(cmd, verb.CompleteHandles, 0)
	return cmd
}

func parseHandles(args []string) ([]parley.UUID, error) {
	var handles []parley.UUID
	for _, arg := range args {
		handle, err := verb.ParseHandle(arg)
		if err != nil {
			return nil, err
		}
		handles = append(handles, handle)
	}
	return handles, nil
}

func (f endFlags) form() string {
	switch {
	case f.cleanup:
		return "cleanup"
	case f.withError:
		return "error"
	}
	return "plain"
}

func (f endFlags) end(ctx context.Context, tx pgx.Tx, handle parley.UUID) error {
	switch f.form() {
	case "cleanup":
		return parley.CleanupConversation(ctx, tx, handle)
	case "error":
		return parley.EndConversationWithError(ctx, tx, handle, f.code, f.description)
	}
	return parley.EndConversation(ctx, tx, handle)
}
