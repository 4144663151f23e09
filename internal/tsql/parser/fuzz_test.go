package parser_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-broker/parley/internal/tsql/parser"
)

func seed(f *testing.F) {
	f.Helper()
	files, err := filepath.Glob("testdata/*.sql")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			f.Fatal(err)
		}
		for _, construct := range constructs(f, filepath.Base(file)) {
			f.Add(construct, false)
		}
	}
}

// No text makes the parser panic, and the text of a tree has the same tree.
func FuzzParse(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text string, quotes bool) {
		options := parser.Options{StringsInDoubleQuotes: quotes}
		batch, err := parser.Parse(text, options)
		if err != nil {
			return
		}
		if printed, problem := again(batch, options); problem != "" {
			t.Fatalf("%q\nis %q\n%s", text, printed, problem)
		}
	})
}
