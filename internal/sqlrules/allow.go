package sqlrules

import (
	"slices"
	"strings"
)

// unpinned names the functions that may leave their search_path as the caller set it, with the reason. Each name,
// type and operator in them is written in full, and what they call pins its own.
var unpinned = map[string]string{
	"parley.send": "the hot path: setting the search_path costs a tenth of a bare insert",
}

// A tolerance is what plpgsql_check may say about a function, with the reason.
type tolerance struct {
	function string // by its full name; each of its overloads
	message  string // part of what is said
	reason   string
}

var tolerated = []tolerance{
	{
		function: "parley._p_broker_instance",
		message:  "control reached end of function without RETURN",
		reason:   "its handler ends in _p_raise, which never returns",
	},
}

// Tolerates tells whether plpgsql_check may say this about a function.
func Tolerates(function, message string) bool {
	return slices.ContainsFunc(tolerated, func(t tolerance) bool {
		return t.function == function && t.reason != "" && strings.Contains(message, t.message)
	})
}
