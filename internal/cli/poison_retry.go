package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
)

// retriedPoison is what retry prints for programs; a stable format.
type retriedPoison struct {
	ConversationHandles []parley.UUID `json:"conversation_handles"`
	Messages            int64         `json:"messages"`
}

func newPoisonRetryCommand(a *app) *cobra.Command {
	var queue string
	var all bool
	cmd := &cobra.Command{
		Use:   "retry {HANDLE... | --queue QUEUE | --all}",
		Short: "Put conversations that are set aside back into their queues",
		Long: `Put conversations that are set aside back into their queues: all messages of each, in their order, behind what waits there
now. Their rollbacks are forgotten, so each is tried as often as a new one.

Each conversation is put back in a transaction of its own. One that has been put back or ended meanwhile is passed over
when it was not named.`,
		Example: `  parley poison retry 7d3ea1d8-5c5a-4f1c-9d54-0a6a7ed10b2f
  parley poison retry --queue shop`,
		RunE: func(cmd *cobra.Command, args []string) error {
			handles, err := parseHandles(args)
			if err != nil {
				return err
			}
			if len(handles) > 0 == (queue != "" || all) {
				return usagef("name conversations, or choose them by --queue or --all")
			}
			ctx := cmd.Context()
			conn, err := a.attach(ctx)
			if err != nil {
				return err
			}
			defer closeConnection(ctx, conn)
			retry := retryNamed
			if len(handles) == 0 {
				retry = retryFound
				if handles, err = findPoison(ctx, conn, queue); err != nil {
					return err
				}
			}
			done := retriedPoison{ConversationHandles: []parley.UUID{}}
			for _, handle := range handles {
				if err := retry(ctx, conn, handle, &done); err != nil {
					return err
				}
			}
			if a.json {
				return encodeJSON(cmd.OutOrStdout(), done)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "put back %s with %s\n",
				counted(len(done.ConversationHandles), "conversation"), counted(int(done.Messages), "message"))
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&queue, "queue", "", "all conversations of this queue")
	flags.BoolVar(&all, "all", false, "all conversations that are set aside")
	cmd.MarkFlagsMutuallyExclusive("queue", "all")
	a.completeArgument(cmd, completePoison, 0)
	a.completeFlag(cmd, "queue", completeQueues)
	return cmd
}

// findPoison returns the handles of conversations that are set aside, in one queue or in all.
func findPoison(ctx context.Context, conn *pgx.Conn, queue string) ([]parley.UUID, error) {
	found, err := parley.ReadPoisonConversations(ctx, conn, parley.PoisonFilter{Queue: queue})
	if err != nil {
		return nil, err
	}
	var handles []parley.UUID
	for _, c := range found {
		handles = append(handles, c.ConversationHandle)
	}
	return handles, nil
}

func retryNamed(ctx context.Context, conn *pgx.Conn, handle parley.UUID, done *retriedPoison) error {
	messages, err := parley.RetryPoison(ctx, conn, handle)
	if err != nil {
		return err
	}
	done.ConversationHandles = append(done.ConversationHandles, handle)
	done.Messages += messages
	return nil
}

// retryFound passes over conversations that were retried or discarded since they were found.
func retryFound(ctx context.Context, conn *pgx.Conn, handle parley.UUID, done *retriedPoison) error {
	err := retryNamed(ctx, conn, handle, done)
	if refusal, ok := errors.AsType[*parley.Error](err); ok && refusal.Number == parley.ConversationNotFound {
		return nil
	}
	return err
}
