package sqlrules

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/sqltext"
)

// checkLayers holds the rule that a file's SQL uses what its own folder and the folders before it in the manifest create. It gives
// each use of a later folder that callsUpward does not name, and each of its names that nothing uses any more.
func checkLayers(files []File) []Violation {
	order := map[string]int{}
	creator := map[string]string{}
	for _, f := range files {
		folder := path.Dir(f.Name)
		if _, ok := order[folder]; !ok {
			order[folder] = len(order)
		}
		for _, s := range f.Statements {
			if _, name := created(s); len(name) > 1 && creator[dotted(name)] == "" {
				creator[dotted(name)] = folder
			}
		}
	}
	var found []Violation
	used := map[string][]string{}
	for _, f := range files {
		folder := path.Dir(f.Name)
		for _, tokens := range sqltext.Runs(f.Tokens) {
			for i := 0; i < len(tokens); {
				parts, next := sqltext.Qualified(tokens, i)
				if len(parts) > 1 && sqltext.At(tokens, i-1).Text != "." {
					name := dotted(parts[:2])
					to, ok := creator[name]
					switch {
					case !ok || order[to] <= order[folder]:
					case slices.Contains(callsUpward[f.Name], strings.TrimPrefix(name, "parley.")):
						used[f.Name] = append(used[f.Name], strings.TrimPrefix(name, "parley."))
					default:
						found = append(found, Violation{
							File: f.Name, Line: tokens[i].Line, Rule: "upward call",
							Text: fmt.Sprintf("%s is created by the folder %s, which comes later in the manifest: move one of the two", name, to),
						})
					}
				}
				i = max(next, i+1)
			}
		}
	}
	return append(found, unusedExceptions(files, used)...)
}

// unusedExceptions gives the names in callsUpward that are not needed: the list may only become shorter.
func unusedExceptions(files []File, used map[string][]string) []Violation {
	var found []Violation
	for _, f := range files {
		for _, name := range callsUpward[f.Name] {
			if !slices.Contains(used[f.Name], name) {
				found = append(found, Violation{
					File: f.Name, Line: 1, Rule: "upward call", Text: "remove " + name + " from the exceptions of layers_allow.go",
				})
			}
		}
	}
	return found
}
