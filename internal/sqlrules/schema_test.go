package sqlrules_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqlrules"
	"github.com/parley-broker/parley/sql"
)

func TestSchemaKeepsTheRules(t *testing.T) {
	t.Parallel()
	files, err := sqlrules.Read(sql.Files)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("the schema has no files")
	}
	for _, v := range sqlrules.Check(files) {
		t.Error(v)
	}
}

// knots are how many files the largest knot of a wing has, where files use each other in a circle at all. The numbers may only fall.
var knots = map[string]int{"parley": 39, "store": 3, "mail": 3}

func TestKnotsOfFilesOnlyBecomeSmaller(t *testing.T) {
	t.Parallel()
	files, err := sqlrules.Read(sql.Files)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range sql.Wings() {
		folder := w.Folders[0]
		most := max(knots[folder], 1) // a file alone is no circle
		switch knot := sqlrules.Knot(files, folder); {
		case len(knot) > most:
			t.Errorf("%d files of sql/%s use each other in a circle, at most %d did: let a call go down, or move what is called: %q",
				len(knot), folder, most, knot)
		case len(knot) < most:
			t.Errorf("the largest knot of sql/%s has %d files: write that here in place of %d", folder, len(knot), most)
		}
	}
}
