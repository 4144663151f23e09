package sqlrules

import (
	"slices"

	"github.com/parley-broker/parley/internal/sqltext"
)

// The only pinned search path: nothing in it that an outsider can create objects in. pg_temp stands last, because a path that does not name
// it searches it first.
var pathSchemas = []string{"pg_catalog", "parley", "pg_temp"}

// checkSearchPath holds the rule that a caller's search_path never decides what a function of ours means:
// a function pins its own, or is on the list of those that spell everything in full.
func checkSearchPath(r routine, report reporter) {
	name := dotted(r.name)
	start := r.after("set", "search_path")
	if start < 0 && r.isBound {
		return
	}
	if start < 0 {
		if unpinned[name] == "" {
			report(r.line, "search path", "%s must pin its search_path: set search_path = pg_catalog, pg_temp", name)
			return
		}
		checkQualified(r, report)
		return
	}
	var path []string
	for i := start + 1; sqltext.At(r.head, i).IsName(); i += 2 {
		path = append(path, r.head[i].Name())
		if !sqltext.At(r.head, i+1).Is(",") {
			break
		}
	}
	if len(path) == 0 || path[len(path)-1] != "pg_temp" {
		report(r.line, "search path", "the search_path of %s must end with pg_temp", name)
	}
	for _, schema := range path {
		if !slices.Contains(pathSchemas, schema) {
			report(r.line, "search path", "%s may not search the schema %s", name, schema)
		}
	}
}
