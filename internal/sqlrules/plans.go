package sqlrules

// checkPlans holds the rule that a function without sequential scans is not compiled either: a table that has no other way in costs so much
// then, by the planner's reckoning, that every call would be compiled, in tens of milliseconds.
func checkPlans(r routine, report reporter) {
	name := dotted(r.name)
	if r.has("set", "enable_seqscan") && !r.has("set", "jit") && compiled[name] == "" {
		report(r.line, "plans", "%s sets enable_seqscan: set jit = off too", name)
	}
}
