package messages

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
	"github.com/parley-broker/parley/operate"
)

// retriedPoison is the output of retry for programs; a stable format.
type retriedPoison struct {
	ConversationHandles []parley.UUID `json:"conversation_handles"`
	Messages            int64         `json:"messages"`
}

// retryFlags are the flags of poison retry.
type retryFlags struct {
	filter      operate.PoisonFilter
	all         bool
	errorNumber int
	olderThan   time.Duration
	rate        float64
}

func newPoisonRetryCommand(a *verb.App) *cobra.Command {
	var flags retryFlags
	cmd := &cobra.Command{
		Use:   "retry {HANDLE... | --all | --queue QUEUE ...}",
		Short: "Put conversations that are set aside back into their queues",
		Long: `Put conversations that are set aside back into their queues: all messages of each, in their order, behind what waits there
now. Their rollbacks are forgotten, so each is tried as often as a new one.

Name them by their handles, or choose them: all, or those that match each flag that is given, the oldest first. Chosen ones
are put back in small transactions, so many a second with --rate; one that fails again meanwhile is not tried again, and one that
somebody holds is passed over.`,
		Example: `  parley poison retry 7d3ea1d8-5c5a-4f1c-9d54-0a6a7ed10b2f
  parley poison retry --queue shop --sqlstate 40001 --rate 10
  parley poison retry --error 'connection refused' --older-than 1h --limit 500`,
		RunE: func(cmd *cobra.Command, args []string) error {
			handles, err := parseHandles(args)
			if err != nil {
				return err
			}
			if err := flags.check(len(handles) > 0); err != nil {
				return err
			}
			ctx := cmd.Context()
			conn, err := a.Attach(ctx)
			if err != nil {
				return err
			}
			defer verb.CloseConnection(ctx, conn)
			done := retriedPoison{ConversationHandles: []parley.UUID{}}
			for _, handle := range handles {
				messages, err := operate.RetryPoison(ctx, conn, handle)
				if err != nil {
					return err
				}
				done.add(operate.RetriedPoison{ConversationHandle: handle, Messages: messages})
			}
			if len(handles) == 0 {
				err = flags.retry(ctx, conn, &done)
			}
			return errors.Join(err, printRetried(a, cmd.OutOrStdout(), done))
		},
	}
	set := cmd.Flags()
	set.BoolVar(&flags.all, "all", false, "all conversations that are set aside")
	set.StringVar(&flags.filter.Queue, "queue", "", "those of this queue")
	set.StringVar(&flags.filter.ServiceName, "service", "", "those of this service, by its exact name")
	set.StringVar(&flags.filter.Contract, "contract", "", "those on this contract")
	set.StringVar(&flags.filter.SQLState, "sqlstate", "", "those whose last error had this SQLSTATE, such as 40001")
	set.IntVar(&flags.errorNumber, "error-number", 0, "those whose last error was the broker's with this number")
	set.StringVar(&flags.filter.ErrorText, "error", "", "those whose last error contains this text")
	set.DurationVar(&flags.olderThan, "older-than", 0, "those that are set aside for at least so long, such as 1h")
	set.IntVar(&flags.filter.Limit, "limit", 0, "put back at most so many; 0 for all")
	set.Float64Var(&flags.rate, "rate", 0, "put back so many a second; 0 for as fast as it goes")
	cmd.MarkFlagsMutuallyExclusive("sqlstate", "error-number")
	a.CompleteArgument(cmd, completePoison, 0)
	a.CompleteFlag(cmd, "queue", verb.CompleteQueues)
	a.CompleteFlag(cmd, "service", verb.CompleteServices)
	a.CompleteFlag(cmd, "contract", verb.CompleteContracts)
	return cmd
}

// check refuses conversations that are named and chosen at once, or neither.
func (f *retryFlags) check(isNamed bool) error {
	chosen := f.filter.Queue + f.filter.ServiceName + f.filter.Contract + f.filter.SQLState + f.filter.ErrorText
	switch isChosen := chosen != "" || f.errorNumber != 0 || f.olderThan != 0; {
	case isNamed && (isChosen || f.all || f.rate != 0 || f.filter.Limit != 0) || !isNamed && isChosen == f.all:
		return verb.Usagef("name conversations, or choose them by --queue or another flag, or by --all")
	case f.rate < 0 || f.filter.Limit < 0 || f.olderThan < 0 || f.errorNumber < 0:
		return verb.Usagef("--rate, --limit, --older-than and --error-number must not be negative")
	}
	return nil
}

func (f *retryFlags) retry(ctx context.Context, conn *pgx.Conn, done *retriedPoison) error {
	err := conn.QueryRow(ctx, `
		select coalesce(parley.sqlstate_of(nullif($1::integer, 0)), $2::text), clock_timestamp() - make_interval(secs => $3)`,
		f.errorNumber, f.filter.SQLState, f.olderThan.Seconds()).Scan(&f.filter.SQLState, &f.filter.SetAsideBefore)
	if err != nil {
		return fmt.Errorf("read the clock of the database: %w", err)
	}
	_, err = operate.RetryPoisonAtRate(ctx, conn, f.filter, f.rate, func(retried []operate.RetriedPoison) {
		for _, r := range retried {
			done.add(r)
		}
	})
	return err
}

func (done *retriedPoison) add(retried operate.RetriedPoison) {
	done.ConversationHandles = append(done.ConversationHandles, retried.ConversationHandle)
	done.Messages += retried.Messages
}

func printRetried(a *verb.App, out io.Writer, done retriedPoison) error {
	if a.JSON {
		return verb.EncodeJSON(out, done)
	}
	_, err := fmt.Fprintf(out, "put back %s with %s\n",
		verb.Counted(len(done.ConversationHandles), "conversation"), verb.Counted(int(done.Messages), "message"))
	return err
}
