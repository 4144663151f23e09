package sqlrules

import "slices"

// What a pinned search path may name: nothing that a stranger can create objects in. pg_temp stands last,
// because a path that does not name it searches it first.
var pathSchemas = []string{"pg_catalog", "parley", "pg_temp"}

// checkSearchPath holds the rule that a caller's search_path never decides what a function of ours means.
func checkSearchPath(r routine, report reporter) {
	name := dotted(r.name)
	start := r.after("set", "search_path")
	if start < 0 {
		switch {
		case unpinned[r.local()] != "":
		case !r.isPrivate():
			report(r.line, "search path", "%s must pin its search_path: set search_path = pg_catalog, pg_temp", name)
		case r.has("security", "definer"):
			report(r.line, "search path", "%s runs with the rights of its owner and must pin its search_path", name)
		}
		return
	}
	var path []string
	for i := start + 1; at(r.head, i).isName(); i += 2 {
		path = append(path, r.head[i].name())
		if !at(r.head, i+1).is(",") {
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
