package parser_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/tsql/parser"
)

// constructs gives the statements of a file of testdata; a line with -- alone separates them.
func constructs(t testing.TB, file string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(content)), "\n--\n")
}

// Each construct of the language parses; the text of its tree has the same tree, and no token of it is lost.
func TestEachConstructIsReadWhole(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal("no constructs", err)
	}
	for _, file := range files {
		for _, construct := range constructs(t, filepath.Base(file)) {
			if problem := whole(construct, parser.Options{}); problem != "" {
				t.Errorf("%s: %s\n%s", file, construct, problem)
			}
		}
	}
}
