package messages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

func newClaimsCommand(a *verb.App) *cobra.Command {
	var queue string
	cmd := &cobra.Command{
		Use:   "claims",
		Short: "List long work and deliveries that are under way, with their progress",
		Long: `List messages that somebody works on while no transaction is open: workers that have claimed them, and web addresses to which
they are being delivered; who that is, until when nobody else gets them, and how far the work is, as the worker said.`,
		Example: `  parley claims
  parley claims progress jobs 7d3ea1d8-5c5a-4f1c-9d54-0a6a7ed10b2f '{"pages": 3}'
  parley cancel jobs 5120 --running`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return verb.ShowAll(a, cmd, func(ctx context.Context, db parley.DB) ([]operate.ClaimedWork, error) {
				return operate.ReadClaimed(ctx, db, queue)
			}, writeClaims)
		},
	}
	cmd.Flags().StringVar(&queue, "queue", "", "of this queue alone")
	a.CompleteFlag(cmd, "queue", verb.CompleteQueues)
	cmd.AddCommand(newClaimsProgressCommand(a))
	return cmd
}

func writeClaims(out io.Writer, claims []operate.ClaimedWork) error {
	if len(claims) == 0 {
		_, err := fmt.Fprintln(out, "nothing is claimed")
		return err
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "CLAIM\tQUEUE\tMESSAGE ID\tSINCE\tLEASED UNTIL\tBY\tPROGRESS")
	for _, c := range claims {
		subject := "-"
		switch {
		case c.MessageID != nil:
			subject = strconv.FormatInt(*c.MessageID, 10)
		case c.ConversationGroupID != nil:
			subject = "group " + c.ConversationGroupID.String()
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Claim, verb.OneLine(c.Queue, 0), subject, verb.Moment(&c.ClaimedAt),
			verb.Moment(&c.LeasedUntil), verb.OneLine(c.ClaimedBy, 60), jsonCell(c.Progress))
	}
	return table.Flush()
}

// claimProgress is the output of claims progress for programs; a stable format.
type claimProgress struct {
	Queue    string          `json:"queue"`
	Claim    parley.UUID     `json:"claim"`
	Progress json.RawMessage `json:"progress"`
}

func newClaimsProgressCommand(a *verb.App) *cobra.Command {
	var lease time.Duration
	cmd := &cobra.Command{
		Use:     "progress QUEUE CLAIM JSON",
		Example: "  parley claims progress films 7d3ea1d8-5c5a-4f1c-9d54-0a6a7ed10b2f '{\"done\": 7}'",
		Short:   "Renew a claim, and show those who wait how far its work is",
		Args:    cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			claim, err := parley.ParseUUID(args[1])
			if err != nil {
				return verb.Usagef("%w; parley claims lists the claims", err)
			}
			if !json.Valid([]byte(args[2])) {
				return verb.Usagef("%s is no JSON: give a document such as '{\"pages\": 3}'", args[2])
			}
			claimed := &parley.Claimed{Queue: args[0], ID: claim, Lease: lease}
			done := claimProgress{args[0], claim, json.RawMessage(args[2])}
			return a.Change(cmd, done, cmd.OutOrStdout(), "claim renewed", func(ctx context.Context, conn *pgx.Conn) error {
				isHeld, err := parley.Renew(ctx, conn, claimed, []byte(args[2]))
				if err == nil && !isHeld {
					err = errors.New("nothing of this claim is held any more: break the work off; parley claims lists those that are")
				}
				return err
			})
		},
	}
	cmd.Flags().DurationVar(&lease, "lease", time.Minute, "keep it for so long from now on, up to 1h")
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	return cmd
}

// messageCancelled is the output of cancel for programs; a stable format.
type messageCancelled struct {
	Queue     string `json:"queue"`
	MessageID int64  `json:"message_id"`
	Change    string `json:"change"` // cancelled
}

func newCancelCommand(a *verb.App) *cobra.Command {
	var running bool
	cmd := &cobra.Command{
		Use:   "cancel QUEUE MESSAGE_ID",
		Short: "Withdraw a message that waits in a simple queue",
		Long: `Withdraw a message that waits in a simple queue, for its turn or for another attempt; with --running also one that a worker has
claimed, who learns it from its next heartbeat. One that is not due yet parley delayed withdraw takes back, one that is set aside
parley poison discard-messages.`,
		Example: `  parley put jobs 'resize 17.png' --json
  parley cancel jobs 5120`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil {
				return verb.Usagef("%s is no number of a message; parley peek %s lists them", args[1], args[0])
			}
			done := messageCancelled{args[0], id, "cancelled"}
			text := fmt.Sprintf("message %d cancelled", id)
			return a.Change(cmd, done, cmd.OutOrStdout(), text, func(ctx context.Context, conn *pgx.Conn) error {
				wasThere, err := parley.CancelMessage(ctx, conn, args[0], id, running)
				if err == nil && !wasThere {
					err = fmt.Errorf("message %d does not wait in queue %s: it is gone, or somebody has it in his hands; parley peek and "+
						"parley claims list what is there", id, args[0])
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&running, "running", false, "also when a worker has claimed it")
	a.CompleteArgument(cmd, verb.CompleteQueues, 1)
	return cmd
}
