package sql_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
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
	present, err := fs.Glob(sql.Files, "*/*/*.sql")
	if err != nil || len(present) == 0 {
		t.Fatalf("no files: %v", err)
	}
	if !slices.Equal(listed, present) {
		t.Errorf("sql/manifest lists\n%q\nand the folders hold\n%q", listed, present)
	}
}

// docs/internals/architecture.md states what each folder holds, in the order in which one may call another.
func TestArchitectureListsTheFoldersInTheOrderOfTheManifest(t *testing.T) {
	t.Parallel()
	listed, err := sql.Manifest(sql.Files)
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, name := range listed {
		folders = append(folders, path.Dir(name))
	}
	folders = slices.Compact(folders)
	page, err := os.ReadFile("../docs/internals/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?s)\n\| Folder \|.*?\n\n`).Find(page)
	var described []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z/]+)`").FindAllSubmatch(table, -1) {
		described = append(described, string(row[1]))
	}
	if !slices.Equal(folders, described) {
		t.Errorf("the manifest has the folders %q, docs/internals/architecture.md %q", folders, described)
	}
}
