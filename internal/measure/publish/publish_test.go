package publish_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-broker/parley/internal/measure/publish"
)

// The pages and the picture show the run that is kept beside them: after a change of how they show it, or of the run, the command of
// docs/reference/benchmarks.md writes them anew.
func TestPagesShowTheRunThatIsKept(t *testing.T) {
	t.Parallel()
	repository := filepath.Join("..", "..", "..")
	files, err := publish.Files(repository)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		is, err := os.ReadFile(filepath.Join(repository, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(is, want) {
			t.Errorf("%s does not show the run of docs/reference/queues.json", name)
		}
	}
	for name, atLeast := range map[string]int{"README.md": 3, "docs/reference/performance.md": 3} {
		if rows := bytes.Count(files[name], []byte("| Parley, ")); rows < atLeast-1 {
			t.Errorf("%s has %d rows of Parley", name, rows)
		}
	}
}
