package checker

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// ends checks how dialogs end: S11, S12.
func (c *check) ends() {
	ended := map[Direction]Ended{}
	for _, e := range c.history.Ended {
		if _, twice := ended[e.Direction]; twice {
			c.report("S11", "%v was ended twice", e.Direction)
		}
		ended[e.Direction] = e
	}
	last := map[Direction]EndReceived{}
	for _, r := range c.history.EndsReceived {
		if _, twice := last[r.Direction]; twice {
			c.report("S11", "the end of %v was received twice", r.Direction)
		}
		last[r.Direction] = r
		e, ok := ended[r.Direction]
		switch {
		case c.reportsLostHistory(r):
		case !ok:
			c.tear("S11", r.Dialog, "the end of %v was received and nobody ended it", r.Direction)
		case e.Kind != r.Kind || e.Text != r.Text:
			c.tear("S12", r.Dialog, "%v was ended with %q and its end received with %q", r.Direction, e.Text, r.Text)
		}
	}
	for _, r := range c.history.Received {
		// An Error overtakes what waits; an EndDialog does not.
		if end, ok := last[r.Direction]; ok && end.Kind == EndDialog && r.Seq > end.Seq {
			c.report("S11", "%v stream %s number %d was received after the end", r.Direction, r.Stream, r.N)
		}
	}
	for _, s := range c.history.Sent {
		end, ok := last[s.Direction]
		if !ok || end.Kind != EndDialog {
			continue
		}
		if _, ok := c.received[message{s.Direction, s.Stream, s.N}]; !ok {
			c.tear("S11", s.Dialog, "the end of %v was received and stream %s number %d was not", s.Direction, s.Stream, s.N)
		}
	}
	if c.history.Quiet > 0 {
		c.unreported(ended, last)
	}
}

// unreported finds, once all is quiet, sides that never received the end of the other one: S11.
func (c *check) unreported(ended map[Direction]Ended, received map[Direction]EndReceived) {
	hasSent := map[Direction]bool{}
	for _, s := range c.history.Sent {
		hasSent[s.Direction] = true
	}
	for direction, e := range ended {
		other := Direction{direction.Dialog, !direction.FromInitiator}
		_, informed := received[direction]
		_, endedToo := ended[other]
		switch {
		case informed, endedToo:
		case !c.sides[other] && (e.Kind == EndError || !hasSent[direction]):
			// Messages that were not transmitted yet are dropped by an error, and a side that never knew of a dialog gets no end of it.
		default:
			c.tear("S11", direction.Dialog, "%v was ended and the other side never received it", direction)
		}
	}
}

// commitOrder checks whether a send that began after another's commit is received after it: S19.
func (c *check) commitOrder() {
	type stamped struct {
		Sent
		seq int64
	}
	directions := map[Direction][]stamped{}
	for _, r := range c.history.Received {
		s, ok := c.sent[message{r.Direction, r.Stream, r.N}]
		if ok && s.Begun > 0 && c.torn[r.Dialog] == "" {
			directions[r.Direction] = append(directions[r.Direction], stamped{s, r.Seq})
		}
	}
	for direction, list := range directions {
		slices.SortFunc(list, func(a, b stamped) int { return cmp.Compare(a.seq, b.seq) })
		// From the last one back: nothing may have committed later in the list before an earlier one began.
		earliest := time.Duration(math.MaxInt64)
		var which stamped
		for _, s := range slices.Backward(list) {
			if s.Begun > earliest {
				c.report("S19", "%v: stream %s number %d began after stream %s number %d had committed, and was received before it",
					direction, s.Stream, s.N, which.Stream, which.N)
				break
			}
			if s.Committed > 0 && s.Committed < earliest {
				earliest, which = s.Committed, s
			}
		}
	}
}
