package sql_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/sql"
)

// A file that belongs to no wing would be held to no rule of one.
func TestEachFileBelongsToTheWingWhoseTurnItIs(t *testing.T) {
	t.Parallel()
	listed, err := sql.Manifest(sql.Files)
	if err != nil {
		t.Fatal(err)
	}
	turn := 0
	for _, file := range listed {
		of := slices.IndexFunc(sql.Wings(), func(w sql.Wing) bool { return w.Has(file) })
		if of < turn {
			t.Errorf("%s: its wing is number %d of sql/wings, and that of the file before it number %d", file, of, turn)
		}
		turn = max(turn, of)
	}
	if turn != len(sql.Wings())-1 {
		t.Errorf("the last file is of wing %d of %d", turn+1, len(sql.Wings()))
	}
}

func TestWingsRefuse(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"flow parley_flow flow":                "3 fields",
		"flow Parley flow - users":             "lower case",
		"flow parley_flow flow mail users":     `calls "mail"`,
		"flow parley_flow flow - everybody":    "write users or owner",
		"flow parley_flow,other' flow - owner": "lower case",
	} {
		_, err := sql.ReadWings("# A comment.\n\n" + line + "\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want one with %q", line, err, want)
		}
	}
}

func TestAFileIsOfTheWingThatHasItsFolder(t *testing.T) {
	t.Parallel()
	w := sql.Wing{Folders: []string{"flow"}}
	for file, want := range map[string]bool{"flow/a.sql": true, "flow/ports/a.sql": true, "flows/a.sql": false, "a.sql": false} {
		if w.Has(file) != want {
			t.Errorf("%s: got %v, want %v", file, !want, want)
		}
	}
}
