package sqlrules

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/sqltext"
)

// Knot gives the files of the largest knot of a wing: files that all use each other, each by the names that others of them create. None of
// them can be read, moved or changed without the others. Names in strings, of statements that are put together, do not count.
func Knot(files []File, wing string) []string {
	creator := creators(files)
	uses := map[string][]string{}
	for _, f := range files {
		for _, tokens := range sqltext.Runs(f.Tokens) {
			for i := 0; i < len(tokens); {
				parts, next := sqltext.Qualified(tokens, i)
				if len(parts) > 1 && sqltext.At(tokens, i-1).Text != "." {
					if file := creator[dotted(parts[:2])]; file != "" && file != f.Name {
						uses[f.Name] = append(uses[f.Name], file)
					}
				}
				i = max(next, i+1)
			}
		}
	}
	var largest []string
	for _, f := range files {
		if !strings.HasPrefix(f.Name, wing+"/") || slices.Contains(largest, f.Name) {
			continue
		}
		knot := []string{f.Name}
		for name := range reached(uses, f.Name) {
			if name != f.Name && reached(uses, name)[f.Name] {
				knot = append(knot, name)
			}
		}
		if len(knot) > len(largest) {
			largest = knot
		}
	}
	slices.Sort(largest)
	return largest
}

// reached gives the files that a file uses, directly or by others; itself only where it comes back to itself.
func reached(uses map[string][]string, from string) map[string]bool {
	found := map[string]bool{}
	next := uses[from]
	for len(next) > 0 {
		name := next[len(next)-1]
		next = next[:len(next)-1]
		if !found[name] {
			found[name] = true
			next = append(next, uses[name]...)
		}
	}
	return found
}
