package checker

import (
	"cmp"
	"fmt"
	"slices"
)

// Violation is one broken promise.
type Violation struct {
	// Invariant is its name: S1 no phantom, S2 no loss, S3 no duplicate, S4 order, S5 integrity, S6 prefix at any instant, S7 atomic
	// send, S8 atomic receive, S11 end, S12 end with an error, S19 order of commits; T1 what is acknowledged is durable, T2 what is
	// forgotten is with the receiver, T5 repetition changes nothing; F1 what was committed survives, F2 lost history ends in
	// an error, F3 a copy and F4 an old primary are refused; L1 quiet after the last fault.
	Invariant string
	Text      string
}

func (v Violation) String() string { return v.Invariant + ": " + v.Text }

// message identifies a message for good.
type message struct {
	Direction
	stream string
	n      int64
}

func (m message) String() string {
	return fmt.Sprintf("%s stream %s number %d", m.Direction, m.stream, m.n)
}

// String names a direction for people.
func (d Direction) String() string {
	if d.FromInitiator {
		return d.Dialog + " from the initiator"
	}
	return d.Dialog + " from the target"
}

// Check gives all violations of a history, in no particular order of importance; none when it is as it should be.
func Check(h History) []Violation {
	c := &check{
		history: h, sent: map[message]Sent{}, received: map[message]Received{}, torn: map[string]string{}, sides: map[Direction]bool{},
	}
	c.findSides()
	for _, s := range h.Sent {
		c.sent[message{s.Direction, s.Stream, s.N}] = s
	}
	c.deliveries()
	c.losses()
	c.order()
	c.ends()
	c.commitOrder()
	c.lostHistory()
	c.prefixes()
	c.rollbacks()
	c.acknowledgements()
	c.survival()
	c.outcasts()
	c.quiet()
	return c.violations
}

type check struct {
	history    History
	sent       map[message]Sent
	received   map[message]Received
	violations []Violation
	// torn are the dialogs whose two sides do not agree on what was sent, which is excused where a database has lost history.
	torn map[string]string
	// sides are those that have entered anything, as the senders that they are.
	sides map[Direction]bool
}

func (c *check) report(invariant, format string, args ...any) {
	c.violations = append(c.violations, Violation{invariant, fmt.Sprintf(format, args...)})
}

// tear enters that the sides of a dialog do not fit together: a violation, unless a database has lost history.
func (c *check) tear(invariant, dialog, format string, args ...any) {
	if len(c.history.LostHistory) == 0 {
		c.report(invariant, format, args...)
		return
	}
	c.torn[dialog] = fmt.Sprintf(format, args...)
}

// deliveries checks each received or waiting message by itself: S1, S3, S5.
func (c *check) deliveries() {
	for _, r := range slices.Concat(c.history.Received, c.history.Waiting) {
		m := message{r.Direction, r.Stream, r.N}
		s, ok := c.sent[m]
		switch {
		case !ok:
			c.tear("S1", m.Dialog, "%v was received and never sent", m)
		case s.Hash != r.Hash:
			c.tear("S5", m.Dialog, "%v was sent with hash %s and received with %s", m, s.Hash, r.Hash)
		}
		if _, twice := c.received[m]; twice {
			c.report("S3", "%v was received twice", m)
		}
		c.received[m] = r
	}
}

// losses finds messages that are nowhere: S2. Messages sent to a side that ends may vanish with it, as may those of a side that ends with
// an error, as long as they have not left (spec 3.2).
func (c *check) losses() {
	over := c.deaf()
	for _, e := range c.history.Ended {
		if e.Kind == EndError {
			over[e.Direction] = true
		}
	}
	for _, s := range c.history.Sent {
		m := message{s.Direction, s.Stream, s.N}
		if _, ok := c.received[m]; !ok && !over[s.Direction] {
			c.tear("S2", m.Dialog, "%v was sent and is neither received nor waiting", m)
		}
	}
}

// order checks whether the numbers of each stream, in the order they were received, are 1, 2, 3 and so on: S4.
func (c *check) order() {
	type stream struct {
		Direction
		name string
	}
	streams := map[stream][]Received{}
	for _, r := range c.history.Received {
		key := stream{r.Direction, r.Stream}
		streams[key] = append(streams[key], r)
	}
	for key, list := range streams {
		slices.SortFunc(list, func(a, b Received) int { return cmp.Compare(a.Seq, b.Seq) })
		for i, r := range list {
			if r.N != int64(i)+1 {
				c.report("S4", "%s stream %s: number %d was received where %d should be", key.Direction, key.name, r.N, i+1)
				break
			}
		}
	}
}
