package verbs

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	mailstore "github.com/parley-broker/parley/internal/store/mail"
	"github.com/parley-broker/parley/internal/verb"
)

func newMailChangeCommand(a *verb.App) *cobra.Command {
	var change mailstore.MessageChange
	var expiresIn, nextIn time.Duration
	o := &mailOperation{name: "change", done: "changed"}
	o.run = func(ctx context.Context, conn *pgx.Conn, filter mailstore.Filter, step mailstore.Step) (int, error) {
		return mailstore.ChangeMessages(ctx, conn, filter, step, change)
	}
	cmd := &cobra.Command{
		Use:   "change {--all | --queue QUEUE ...} [--set-priority P] [--expires-in T] [--next-attempt-in T]",
		Short: "Give messages another priority, expiry or time of the next attempt",
		Long:  `Give messages that wait another priority, expiry or time of the next attempt. Those that are under way stay as they are.`,
		Example: `  parley mail change --sender 'news@*' --set-priority LOW
  parley mail change --queue DNS/internet/example.com --expires-in 96h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, flags := cmd.Context(), cmd.Flags()
			if !flags.Changed("set-priority") && !flags.Changed("expires-in") && !flags.Changed("next-attempt-in") {
				return verb.Usagef("say what is to change: --set-priority, --expires-in or --next-attempt-in")
			}
			err := a.WithConnection(ctx, func(conn *pgx.Conn) error {
				for _, t := range []struct {
					flag string
					in   time.Duration
					at   **time.Time
				}{{"expires-in", expiresIn, &change.Expires}, {"next-attempt-in", nextIn, &change.NextAttempt}} {
					if !flags.Changed(t.flag) {
						continue
					}
					at, err := verb.DueIn(ctx, conn, t.in)
					if err != nil {
						return err
					}
					*t.at = &at
				}
				return nil
			})
			if err != nil {
				return err
			}
			return o.operate(a, cmd)
		},
	}
	o.add(a, cmd)
	flags := cmd.Flags()
	flags.StringVar(&change.Priority, "set-priority", "", "HIGH, NORMAL or LOW")
	flags.DurationVar(&expiresIn, "expires-in", 0, "give them up after so long from now")
	flags.DurationVar(&nextIn, "next-attempt-in", 0, "try them next so long from now")
	return cmd
}

// heldDomain is the output of hold and release for programs; a stable format.
type heldDomain struct {
	Domain string `json:"domain"`
	IsDone bool   `json:"is_done"`
}

func newMailHoldCommand(a *verb.App) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "hold DOMAIN",
		Short: "Have nothing leave for a domain",
		Long: `Have nothing leave for a domain, also from queues that come into being later: messages for it are taken and wait. What goes
by a smart host waits in the queue of the host, and is not held.`,
		Example: `  parley mail hold example.com --reason 'their host is moving'`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeDomain(a, cmd, args[0], "the domain is held", "the domain was held before",
				func(ctx context.Context, conn *pgx.Conn) (bool, error) {
					return mailstore.HoldDomain(ctx, conn, args[0], reason)
				})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who see it held")
	return cmd
}

func newMailReleaseCommand(a *verb.App) *cobra.Command {
	return &cobra.Command{
		Use:     "release DOMAIN",
		Short:   "Have mail for a domain that is held leave again",
		Example: `  parley mail release example.com`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeDomain(a, cmd, args[0], "mail for the domain leaves again", "the domain was not held",
				func(ctx context.Context, conn *pgx.Conn) (bool, error) {
					return mailstore.ReleaseDomain(ctx, conn, args[0])
				})
		},
	}
}

func changeDomain(a *verb.App,
	cmd *cobra.Command, domain, done, notDone string, run func(context.Context, *pgx.Conn) (bool, error),
) error {
	ctx := cmd.Context()
	return a.WithConnection(ctx, func(conn *pgx.Conn) error {
		isDone, err := run(ctx, conn)
		if err != nil {
			return err
		}
		if a.JSON {
			return verb.EncodeJSON(cmd.OutOrStdout(), heldDomain{domain, isDone})
		}
		if !isDone {
			done = notDone
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), done)
		return err
	})
}
