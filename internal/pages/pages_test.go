package pages

import (
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// Pages whose statements run.
var pages = []string{
	"README.md", "docs/concepts.md", "docs/differences.md", "docs/migration.md", "docs/tutorial.md", "docs/operations.md", "docs/poison.md",
	"docs/daemon.md", "docs/activation.md", "docs/diagnose.md", "docs/backup.md", "docs/upgrading.md", "docs/routing.md", "docs/monitoring.md",
}

func TestStatementsOfTheDocumentationRun(t *testing.T) {
	t.Parallel()
	for _, page := range pages {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			newSession(t, parleytest.Database(t)).runPage(page)
		})
	}
}
