package pages

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/daemon/timers"
	"github.com/parley-broker/parley/parleytest"
)

// Pages whose statements run.
var pages = []string{
	"README.md", "docs/concepts/broker.md", "docs/reference/differences.md", "docs/guides/migration.md", "docs/tutorial/broker.md", "docs/guides/operations.md", "docs/guides/poison.md", "docs/guides/simple-queues.md",
	"docs/internals/store.md", "docs/tutorial/mail.md",
	"docs/guides/daemon.md", "docs/guides/activation.md", "docs/reference/diagnose.md", "docs/guides/backup.md", "docs/guides/upgrading.md", "docs/guides/routing.md", "docs/guides/monitoring.md",
}

// Pages that show what a daemon does.
var pagesWithDaemon = []string{"docs/guides/activation.md", "docs/tutorial/broker.md"}

func TestStatementsOfTheDocumentationRun(t *testing.T) {
	t.Parallel()
	for _, page := range pages {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			pool := parleytest.Database(t)
			if slices.Contains(pagesWithDaemon, page) {
				startDaemon(t, pool)
			}
			newSession(t, pool).runPage(page)
		})
	}
}

// startDaemon starts readers that are procedures, until stop is called or the test ends. Programs and web addresses are not allowed.
func startDaemon(t *testing.T, pool *pgxpool.Pool) (stop func()) {
	t.Helper()
	leader, err := newLeader(pool)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- leader.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the daemon: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// newLeader makes what the daemon runs for a database.
func newLeader(pool *pgxpool.Pool) (*daemon.Leader, error) {
	log := slog.New(slog.DiscardHandler)
	engine, err := activation.New(activation.Config{Pool: pool, Logger: log})
	if err != nil {
		return nil, err
	}
	return daemon.NewLeader(daemon.LeaderConfig{
		Pool: pool, Parts: []daemon.LedPart{timers.New(pool, log), engine}, Logger: log,
	})
}
