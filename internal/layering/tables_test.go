package layering

import (
	"slices"
	"strings"
	"testing"
)

const (
	layersFile  = "internal/layering/layers.txt"
	modulesFile = "internal/layering/modules.txt"
)

// A row is an entry of one of the files: a package or a module, and the packages that its lines name.
type row struct {
	name    string
	allowed []string
	tests   []string // only for tests
	all     bool     // everything is allowed
}

// entries reads a file of packages or of modules. An entry begins with a name at the start of a line; the lines below it are indented and
// begin with imports, in or tests.
func entries(t *testing.T, file string) []row {
	t.Helper()
	var rows []row
	for line := range strings.Lines(read(t, file)) {
		text, _, _ := strings.Cut(line, "#")
		words := strings.Fields(text)
		switch {
		case len(words) == 0:
		case !strings.HasPrefix(line, " ") && len(words) == 1:
			rows = append(rows, row{name: words[0]})
		case len(rows) == 0 || !strings.HasPrefix(line, " "):
			t.Fatalf("%s: a name stands alone at the start of its line, not %q", file, strings.TrimSpace(line))
		case words[0] == "imports" && slices.Equal(words[1:], []string{"everything"}):
			rows[len(rows)-1].all = true
		case words[0] == "imports" || words[0] == "in":
			rows[len(rows)-1].allowed = append(rows[len(rows)-1].allowed, words[1:]...)
		case words[0] == "tests":
			rows[len(rows)-1].tests = append(rows[len(rows)-1].tests, words[1:]...)
		default:
			t.Fatalf("%s: %q begins with none of imports, in and tests", file, strings.TrimSpace(line))
		}
	}
	if len(rows) < 20 {
		t.Fatalf("%s has only %d entries", file, len(rows))
	}
	return rows
}

// byName indexes rows, and refuses a name that stands twice in a file.
func byName(t *testing.T, file string) map[string]row {
	t.Helper()
	index := map[string]row{}
	for _, r := range entries(t, file) {
		if _, twice := index[r.name]; twice {
			t.Fatalf("%s lists %s twice", file, r.name)
		}
		index[r.name] = r
	}
	return index
}
