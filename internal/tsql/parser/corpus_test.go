package parser_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/tsql/parser"
	"github.com/parley-broker/parley/internal/tsql/script"
)

// Each batch of the scripts in the folder that PARLEY_TEST_TSQL names parses, prints and parses again to the same tree, and
// loses no token. Batches that SQL Server refuses are named with their error.
func TestScriptsOfAFolderAreReadWhole(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("PARLEY_TEST_TSQL")
	if folder == "" {
		t.Skip("PARLEY_TEST_TSQL names no folder with scripts")
	}
	files, batches := 0, 0
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.EqualFold(filepath.Ext(path), ".sql") {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		text, _ := script.Decode(content)
		options := script.Options{
			Read: func(from, name string) (string, []byte, error) {
				path := filepath.Join(filepath.Dir(from), filepath.FromSlash(strings.ReplaceAll(name, `\`, "/")))
				content, err := os.ReadFile(path)
				return path, content, err
			},
		}
		for batch, err := range script.Batches(path, text, options) {
			if err != nil {
				t.Log(err)
				break
			}
			batches++
			if problem := whole(batch.Text, parser.Options{}); strings.HasPrefix(problem, "Msg ") {
				t.Logf("%s, batch at line %d: %s", path, batch.Origin(1).Line, problem)
			} else if problem != "" {
				t.Errorf("%s, batch at line %d: %s", path, batch.Origin(1).Line, problem)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files, %d batches", files, batches)
}
