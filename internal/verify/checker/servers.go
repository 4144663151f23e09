package checker

import (
	"maps"
	"slices"
)

// findSides records which sides of the dialogs have entered anything.
func (c *check) findSides() {
	other := func(d Direction) Direction { return Direction{d.Dialog, !d.FromInitiator} }
	for _, s := range c.history.Sent {
		c.sides[s.Direction] = true
	}
	for _, r := range slices.Concat(c.history.Received, c.history.Waiting) {
		c.sides[other(r.Direction)] = true
	}
	for _, e := range c.history.Ended {
		c.sides[e.Direction] = true
	}
	for _, r := range c.history.EndsReceived {
		c.sides[other(r.Direction)] = true
	}
}

// reportsLostHistory reports whether an end is that with which the broker ends a dialog whose history was lost.
func (c *check) reportsLostHistory(r EndReceived) bool {
	return r.Kind == EndError && slices.Contains(c.history.LostHistory, r.Code)
}

// lostHistory checks whether each torn dialog has ended with the error at every side that knows it, and no other has: F2.
func (c *check) lostHistory() {
	informed := map[Direction]bool{}
	for _, r := range c.history.EndsReceived {
		if c.reportsLostHistory(r) {
			informed[Direction{r.Dialog, !r.FromInitiator}] = true
		}
	}
	ended, peaceful := map[Direction]bool{}, map[string]bool{}
	for _, e := range c.history.Ended {
		ended[e.Direction] = true
	}
	for _, r := range c.history.EndsReceived {
		peaceful[r.Dialog] = peaceful[r.Dialog] || r.Kind == EndDialog
	}
	for _, dialog := range slices.Sorted(maps.Keys(c.torn)) {
		// A side that has ended by itself gets no end (spec 3.2); then the other one gets it.
		excused := 0
		for _, fromInitiator := range []bool{true, false} {
			side := Direction{dialog, fromInitiator}
			if c.sides[side] && !informed[side] && ended[side] {
				excused++
			}
			if c.sides[side] && !informed[side] && !ended[side] {
				c.report("F2", "%s, and the side that sends %v got no error that history was lost", c.torn[dialog], side)
			}
		}
		if excused == 2 && peaceful[dialog] {
			c.report("F2", "%s, and both sides have ended as if nothing were wrong", c.torn[dialog])
		}
	}
	for _, dialog := range c.history.Untouched {
		if informed[Direction{dialog, true}] || informed[Direction{dialog, false}] {
			c.report("F2", "%s was ended for lost history, though nothing of it was on the way", dialog)
		}
	}
}

// prefixes checks the samples: S6.
func (c *check) prefixes() {
	for _, p := range c.history.Prefixes {
		if p.Received > p.Sent {
			c.report("S6", "%v stream %s: %d were received when %d had been sent", p.Direction, p.Stream, p.Received, p.Sent)
		}
	}
}

// rollbacks checks what its client knows to be rolled back: S7, S8.
func (c *check) rollbacks() {
	arrived := map[Undone]bool{}
	for _, r := range slices.Concat(c.history.Received, c.history.Waiting) {
		arrived[Undone{r.Direction, r.Hash}] = true
	}
	for _, u := range c.history.Undone {
		if arrived[u] {
			c.report("S7", "%v: a message with hash %s was rolled back and arrived all the same", u.Direction, u.Hash)
		}
	}
	over := c.deaf()
	for _, r := range c.history.PutBack {
		m := message{r.Direction, r.Stream, r.N}
		if _, ok := c.received[m]; !ok && !over[r.Direction] && c.torn[r.Dialog] == "" {
			c.report("S8", "%v was received by a transaction that rolled back, and never came again", m)
		}
	}
}

// acknowledgements checks whether the receiver has what it acknowledged, and what the sender forgot: T1, T2.
func (c *check) acknowledgements() {
	expects := map[Direction]int64{}
	for _, e := range c.history.Expects {
		expects[e.Direction] = max(expects[e.Direction], e.Next)
	}
	for _, each := range []struct {
		invariant, what string
		marks           []Mark
	}{
		{"T1", "were acknowledged", c.history.Acknowledged}, {"T2", "were forgotten by the sender", c.history.Forgotten},
	} {
		for _, m := range each.marks {
			next, known := expects[m.Direction]
			if known && m.Next > next {
				c.report(each.invariant, "%v: all below %d %s, and the receiver expects %d", m.Direction, m.Next, each.what, next)
			}
		}
	}
}

// survival finds what a client knows to be committed and is not there: F1.
func (c *check) survival() {
	for _, s := range c.history.Survived {
		m := message{s.Direction, s.Stream, s.N}
		if _, ok := c.sent[m]; !ok {
			c.report("F1", "the commit of %v was acknowledged, and it was not sent", m)
		}
	}
	received := map[message]bool{}
	for _, r := range c.history.Received {
		received[message{r.Direction, r.Stream, r.N}] = true
	}
	for _, r := range c.history.SurvivedReceipts {
		m := message{r.Direction, r.Stream, r.N}
		if !received[m] {
			c.report("F1", "the receipt of %v was acknowledged, and is not there", m)
		}
	}
}

// outcasts finds messages of databases that must be refused: F3, F4.
func (c *check) outcasts() {
	type stream struct {
		Direction
		name string
	}
	banned := map[stream]string{}
	for _, o := range c.history.Outcasts {
		banned[stream{o.Direction, o.Stream}] = o.Invariant
	}
	for _, r := range slices.Concat(c.history.Received, c.history.Waiting) {
		if invariant := banned[stream{r.Direction, r.Stream}]; invariant != "" {
			c.report(invariant, "%v stream %s number %d was taken from a database that may not speak", r.Direction, r.Stream, r.N)
		}
	}
}

// quiet checks whether the history came to rest in time, and left nothing behind: L1.
func (c *check) quiet() {
	h := c.history
	switch {
	case h.QuietMax == 0:
		return
	case h.Quiet == 0:
		c.report("L1", "it did not become quiet within %v after the last fault", h.QuietMax)
	case h.Quiet-h.Healed > h.QuietMax:
		c.report("L1", "it became quiet %v after the last fault, later than %v", h.Quiet-h.Healed, h.QuietMax)
	}
	for _, left := range h.Left {
		c.report("L1", "left when all was over: %s", left)
	}
}

// deaf are the directions whose receiver has ended: what is sent there may vanish.
func (c *check) deaf() map[Direction]bool {
	deaf := map[Direction]bool{}
	for _, e := range c.history.Ended {
		deaf[Direction{e.Dialog, !e.FromInitiator}] = true
	}
	return deaf
}

// SameOutcome compares two histories, of which one received things once and the other again and again, and reports each direction of which
// they have not received the same: T5. Dialogs are matched by a name that both histories give them.
func SameOutcome(once, often History) []Violation {
	c := &check{}
	read := func(h History) map[Direction][]Received {
		directions := map[Direction][]Received{}
		for _, r := range h.Received {
			directions[r.Direction] = append(directions[r.Direction], r)
		}
		for _, list := range directions {
			slices.SortFunc(list, func(a, b Received) int { return int(a.Seq - b.Seq) })
		}
		return directions
	}
	a, b := read(once), read(often)
	all := map[Direction]bool{}
	for d := range a {
		all[d] = true
	}
	for d := range b {
		all[d] = true
	}
	for d := range all {
		if !slices.EqualFunc(a[d], b[d], func(x, y Received) bool { return x.Stream == y.Stream && x.N == y.N && x.Hash == y.Hash }) {
			c.report("T5", "%v: delivered once %d were received, delivered again and again %d, or not the same", d, len(a[d]), len(b[d]))
		}
	}
	return c.violations
}
