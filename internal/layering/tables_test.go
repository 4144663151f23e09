package layering

import (
	"regexp"
	"strings"
	"testing"
)

const architecturePage = "docs/internals/architecture.md"

var codeSpan = regexp.MustCompile("`([^`]+)`")

// A row of a table of the architecture page: the name in its first cell, and those in its second.
type row struct {
	name    string
	allowed []string
	tests   []string // what only tests may import: it stands behind "in tests"
	all     bool     // the second cell says "everything"
}

// table reads the table whose first heading cell is the given one.
func table(t *testing.T, heading string) []row {
	t.Helper()
	var rows []row
	inside := false
	for line := range strings.Lines(read(t, architecturePage)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case !strings.HasPrefix(line, "|") || len(cells) < 2:
			inside = false
		case strings.TrimSpace(cells[0]) == heading:
			inside = true
		case inside && !strings.HasPrefix(strings.TrimSpace(cells[0]), "---"):
			names := spans(cells[0])
			if len(names) != 1 {
				t.Fatalf("%s: write one name in the first cell of %q", architecturePage, strings.TrimSpace(line))
			}
			always, tests, _ := strings.Cut(cells[1], "in tests")
			rows = append(rows, row{
				name: names[0], allowed: spans(always), tests: spans(tests), all: strings.Contains(cells[1], "everything"),
			})
		}
	}
	if len(rows) == 0 {
		t.Fatalf("%s has no table headed %q", architecturePage, heading)
	}
	return rows
}

// spans gives the words that a cell sets as code.
func spans(cell string) []string {
	var names []string
	for _, found := range codeSpan.FindAllStringSubmatch(cell, -1) {
		names = append(names, found[1])
	}
	return names
}

// byName indexes rows, and refuses a name that stands twice.
func byName(t *testing.T, rows []row) map[string]row {
	t.Helper()
	index := make(map[string]row, len(rows))
	for _, r := range rows {
		if _, twice := index[r.name]; twice {
			t.Fatalf("%s lists %s twice", architecturePage, r.name)
		}
		index[r.name] = r
	}
	return index
}
