package sqlrules

// bodyLinesMax is how long the body of a function may be: what fits two screens.
const bodyLinesMax = 80

// longBodies names the functions that may be longer, up to how many lines, with the reason. The numbers may only fall, but for
// shorter lines, and no name may be added.
var longBodies = map[string]struct {
	lines  int
	reason string
}{
	"parley.receive":              {250, "rows from a function of its own would be copied once more: a fifth of RECEIVE by TOP (100)"},
	"parley._p_lock_next_group":   {101, "the hot path: one walk over the lanes, whose state would have to be handed to each part of it"},
	"parley._p_take":              {100, "the hot path: what is taken, put back and numbered is one loop over one cursor"},
	"parley._p_record_scan":       {117, "the hot path: it runs within RECEIVE and compares each part of the old hint with the new one"},
	"parley._p_accept_runs":       {120, "the hot path between servers: one statement takes in all runs of a batch"},
	"parley._p_take_runs":         {83, "the hot path between servers: it runs for each batch that leaves"},
	"parley.explain_conversation": {95, "one chain of questions, each of which is asked only when those before it found nothing"},
}

// checkBodyLength holds the rule that a body is short.
func checkBodyLength(r routine, report reporter) {
	name := dotted(r.name)
	long, ok := longBodies[name]
	switch {
	case ok && r.lines <= bodyLinesMax:
		report(r.line, "body length", "remove %s from longBodies: its body has no more than %d lines", name, bodyLinesMax)
	case r.lines > max(long.lines, bodyLinesMax):
		report(r.line, "body length", "the body of %s has %d lines, at most %d: split it by idea", name, r.lines, max(long.lines, bodyLinesMax))
	}
}
