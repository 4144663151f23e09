package sqlrules

import (
	"slices"
	"strings"
)

// unpinned names the functions that may leave their search_path as the caller set it, with the reason. Each name,
// type and operator in them is written in full, and what they call pins its own.
var unpinned = map[string]string{
	"parley._p_keeps_snapshot": "a pinned search_path would keep the planner from putting it in line; it is asked on the way of every wait",
	"parley._p_lane":           "a pinned search_path would keep the planner from putting it in line, in statements full of lanes",
	"parley.send":              "the hot path: setting the search_path costs a tenth of a bare insert",
}

// compiled names the functions that go without sequential scans and leave compiling as the caller set it, with the reason.
var compiled = map[string]string{
	"parley.send": "the hot path: its one statement reads one table, which has an index for it; what it calls sets it",
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
	{
		function: "parley.error_broker_conversations",
		message:  "control reached end of function without RETURN",
		reason:   "its handler ends in _p_raise_in_use, which never returns",
	},
	{
		function: "parley.new_broker",
		message:  "control reached end of function without RETURN",
		reason:   "its handler ends in _p_raise_in_use, which never returns",
	},
	{
		function: "parley._p_wait_for_message",
		message:  "control reached end of function without RETURN",
		reason:   "its loop is left by return only",
	},
	{
		function: "parley.get_conversation_group",
		message:  "control reached end of function without RETURN",
		reason:   "its loop is left by return only",
	},
}

// Tolerates tells whether plpgsql_check may say this about a function.
func Tolerates(function, message string) bool {
	return slices.ContainsFunc(tolerated, func(t tolerance) bool {
		return t.function == function && t.reason != "" && strings.Contains(message, t.message)
	})
}

// withinReach names the private functions that run with their owner's rights for everybody, with the reason. None
// may believe its arguments: whoever calls it can make them up.
var withinReach = map[string]string{
	"parley._p_broker_state()":               "parley.databases calls it for whoever looks",
	"parley._p_is_poisoned(integer)":         "the queue views call it for whoever looks",
	"parley._p_performance_counters()":       "the view of counters calls it; it looks at rights itself",
	"parley._p_current_term()":               "the views of the daemon call it for whoever looks",
	"parley._p_failing_conversations()":      "the views of poison call it; it looks at rights itself",
	"parley._p_sees_definition(oid,integer)": "the view of external activations calls it for whoever looks",
	"parley._p_count_set_aside(integer)":     "the view of queues calls it for whoever looks",
}

// MayBeWithinReach tells whether everybody may call a private function, given by its argument types.
func MayBeWithinReach(function string) bool { return withinReach[function] != "" }
