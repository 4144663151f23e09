package sqlrules

import "strings"

// advisory names the functions that take advisory locks, with the reason. Any role can take such a lock, for as long as it likes, and so
// hold up whoever waits for it; the row of a table that only the owner of the schema may write is a lock that nobody else can take.
var advisory = map[string]string{
	"parley.begin_dialog":           sharedByFirstSends,
	"parley._p_begin_and_send":      sharedByFirstSends,
	"parley._p_may_remember_routes": sharedByFirstSends,
	"parley._p_send_first":          sharedByFirstSends,
	"parley._p_await_service":       sharedByFirstSends,
	"parley._p_wait_for_turn":       "waiting sessions take turns without a write: an outsider who holds it has each scan now and then",
	"parley._p_forget_later_routes": "waits for first sends, which share it: an outsider who does so, too, holds up who changes a service",
}

const sharedByFirstSends = "many first sends share it at once, and only try it: the lock of a row would be a write by each, to one page"

// checkAdvisory holds the rule that nobody else can hold the locks of the schema.
func checkAdvisory(r routine, report reporter) {
	name, takes := dotted(r.name), false
	for _, t := range r.body {
		takes = takes || t.IsName() && strings.Contains(t.Name(), "advisory_")
	}
	switch {
	case takes && advisory[name] == "":
		report(r.line, "advisory lock", "%s takes an advisory lock, which anybody can hold: lock a row instead", name)
	case !takes && advisory[name] != "":
		report(r.line, "advisory lock", "remove %s from the list: it takes no advisory lock", name)
	}
}
