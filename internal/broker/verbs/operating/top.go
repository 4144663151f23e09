package operating

import (
	"context"
	"errors"
	"fmt"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/broker/verbs/top"
	"github.com/parley-broker/parley/internal/verb"
)

// leastInterval keeps a screen from becoming a load.
const leastInterval = 200 * time.Millisecond

func newTopCommand(a *verb.App) *cobra.Command {
	var once bool
	var interval time.Duration
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch queues, conversations, waits, and hosts and ports of integration, live",
		Long: `Watch what goes on: the queues (how much waits and for how long, what comes and goes, readers, who holds locks), the
conversations at the heads of the queues (who has them locked), the sessions that use the broker (who waits for whom), and of
integration the hosts with their nodes, and the send ports.

A poll locks nothing and takes nothing, and costs no more when more waits. Numbers with ~ are estimates, a few percent off
at most. IN/S and OUT/S are derived from two polls; a batch that came and went between them counts as few messages.
READERS are those of the daemon. LOCK HOLDERS and LOCKED BY are process ids, of the conversations at the heads of the
queues only. Of hosts IN/S and OUT/S are what their nodes reported last, THROTTLED has the states of parley flow hosts; of ports
OUT/S is that of the last minute, and SUSPENDED is counted up to 10,000. You see those for which you hold VIEW.
Roles that may not see the activity of others find few sessions: grant them pg_monitor.

Keys: 1 to 5 or tab choose the screen, the arrows a line; s sorts by the next column, r the other way round; / filters, Esc
shows all again; p pauses or resumes the selected queue (ALTER QUEUE ... WITH STATUS) after asking; space polls now; q quits.

--once prints one poll and ends; with --interval it takes two, so that there are rates.`,
		Example: `  parley top
  parley top --once
  parley top --once --interval 5s --json | jq '.queues[] | {queue, waiting_messages, out_per_second}'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if interval < leastInterval {
				return verb.Usagef("--interval %s: use %s or more", interval, leastInterval)
			}
			if !once && !a.JSON && !verb.IsTerminal(a.Stdout) {
				return verb.ExitWith(errNoTerminal, verb.ExitUsage)
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			pool, err := openPool(ctx, a)
			if err != nil {
				return err
			}
			defer pool.Close()
			// A mistake in the DSN is better reported at once than shown on a screen that tries again.
			if err := pool.Ping(ctx); err != nil {
				return verb.ExplainConnection(err)
			}
			if !once && !a.JSON {
				return showTop(ctx, a, cancel, pool, interval)
			}
			snapshot, err := takeSnapshot(ctx, pool, interval, cmd.Flags().Changed("interval"))
			if err != nil {
				return err
			}
			if a.JSON {
				return verb.EncodeJSON(cmd.OutOrStdout(), snapshot)
			}
			return top.Print(cmd.OutOrStdout(), snapshot)
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "print one poll as tables and end; --json implies it")
	cmd.Flags().DurationVar(&interval, "interval", 2*time.Second, "time between two polls")
	return cmd
}

// openPool opens the few connections of a screen, which come back after the server was restarted.
func openPool(ctx context.Context, a *verb.App) (*pgxpool.Pool, error) {
	dsn, err := a.ResolveDSN(ctx)
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, a.BadDSN(err)
	}
	config.MaxConns = 2
	config.ConnConfig.RuntimeParams["application_name"] = "parley top"
	config.AfterConnect = verb.PrepareSession
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open connections: %w", err)
	}
	return pool, nil
}

var errNoTerminal = errors.New("top draws on a terminal, and here is none: parley top --once prints tables, --json is for programs")

// showTop shows the screen until the person quits. A statement that is being read then is cut off before the connections are closed.
func showTop(ctx context.Context, a *verb.App, cancel context.CancelFunc, pool *pgxpool.Pool, interval time.Duration) error {
	program := tea.NewProgram(top.New(ctx, pool, interval),
		tea.WithContext(ctx), tea.WithInput(a.Stdin), tea.WithOutput(a.Stdout))
	_, err := program.Run()
	cancel()
	if errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}

// takeSnapshot reads once, or twice when rates are asked for.
func takeSnapshot(ctx context.Context, db parley.DB, interval time.Duration, twice bool) (top.Snapshot, error) {
	now, err := top.Read(ctx, db)
	if err != nil || !twice {
		return top.Compare(nil, now), err
	}
	before := now
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return top.Snapshot{}, ctx.Err()
	case <-timer.C:
	}
	now, err = top.Read(ctx, db)
	return top.Compare(&before, now), err
}
