package pages

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// Pages whose statements run.
var pages = []string{
	"README.md", "docs/concepts.md", "docs/differences.md", "docs/migration.md", "docs/tutorial.md", "docs/operations.md", "docs/poison.md",
	"docs/daemon.md", "docs/activation.md", "docs/diagnose.md", "docs/backup.md", "docs/upgrading.md", "docs/routing.md",
}

func TestStatementsOfTheDocumentationRun(t *testing.T) {
	t.Parallel()
	for _, page := range pages {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(page)))
			if err != nil {
				t.Fatal(err)
			}
			blocks := readBlocks(string(text))
			if len(blocks) == 0 {
				t.Fatal("the page has no statements")
			}
			s := newSession(t, parleytest.Database(t))
			for _, b := range blocks {
				shown := s.run(b)
				if b.output == "" {
					continue
				}
				if got, want := essential(shown), essential(b.output); got != want {
					t.Errorf("%s:%d: the page shows\n%s\nbut the statement gives\n%s", page, b.line, b.output, shown)
				}
			}
		})
	}
}
