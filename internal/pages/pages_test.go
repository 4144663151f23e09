package pages

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/activation"
	"github.com/parley-broker/parley/parleytest"
)

// Pages whose statements run.
var pages = []string{
	"README.md", "docs/concepts.md", "docs/differences.md", "docs/migration.md", "docs/tutorial.md", "docs/operations.md", "docs/poison.md",
	"docs/daemon.md", "docs/activation.md", "docs/diagnose.md", "docs/backup.md", "docs/upgrading.md", "docs/routing.md", "docs/monitoring.md",
}

// Pages that show what a daemon does.
var pagesWithDaemon = []string{"docs/activation.md"}

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

// startDaemon starts readers that are procedures, to the end of the test. Nobody allows programs and web addresses.
func startDaemon(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	engine, err := activation.New(activation.Config{Pool: pool, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- engine.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the daemon: %v", err)
		}
	})
}
