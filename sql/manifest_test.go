package sql_test

import (
	"io/fs"
	"slices"
	"testing"

	"github.com/parley-broker/parley/sql"
)

// A file that the manifest forgets would be embedded and never installed.
func TestManifestListsEachFileOnce(t *testing.T) {
	t.Parallel()
	listed, err := sql.Manifest(sql.Files)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(listed)
	present, err := fs.Glob(sql.Files, "*/*.sql")
	if err != nil || len(present) == 0 {
		t.Fatalf("no files: %v", err)
	}
	if !slices.Equal(listed, present) {
		t.Errorf("sql/manifest lists\n%q\nand the folders hold\n%q", listed, present)
	}
}
