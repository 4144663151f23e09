package checker

import (
	"cmp"
	"fmt"
	"slices"
)

// Violation is one broken promise.
type Violation struct {
	// Invariant is its name: S1 no phantom, S2 no loss, S3 no duplicate, S4 order, S5 integrity, S11 end, S12 end with an
	// error, S19 order of commits.
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
	c := &check{history: h, sent: map[message]Sent{}, received: map[message]Received{}}
	for _, s := range h.Sent {
		c.sent[message{s.Direction, s.Stream, s.N}] = s
	}
	c.deliveries()
	c.losses()
	c.order()
	c.ends()
	c.commitOrder()
	return c.violations
}

type check struct {
	history    History
	sent       map[message]Sent
	received   map[message]Received
	violations []Violation
}

func (c *check) report(invariant, format string, args ...any) {
	c.violations = append(c.violations, Violation{invariant, fmt.Sprintf(format, args...)})
}

// deliveries looks at each received or waiting message by itself: S1, S3, S5.
func (c *check) deliveries() {
	for _, r := range slices.Concat(c.history.Received, c.history.Waiting) {
		m := message{r.Direction, r.Stream, r.N}
		s, ok := c.sent[m]
		switch {
		case !ok:
			c.report("S1", "%v was received and never sent", m)
		case s.Hash != r.Hash:
			c.report("S5", "%v was sent with hash %s and received with %s", m, s.Hash, r.Hash)
		}
		if _, twice := c.received[m]; twice {
			c.report("S3", "%v was received twice", m)
		}
		c.received[m] = r
	}
}

// losses looks for messages that are nowhere: S2. What is sent to a side that ends may vanish with it.
func (c *check) losses() {
	deaf := map[Direction]bool{}
	for _, e := range c.history.Ended {
		deaf[Direction{e.Dialog, !e.FromInitiator}] = true
	}
	for _, s := range c.history.Sent {
		m := message{s.Direction, s.Stream, s.N}
		if _, ok := c.received[m]; !ok && !deaf[s.Direction] {
			c.report("S2", "%v was sent and is neither received nor waiting", m)
		}
	}
}

// order looks whether the numbers of each stream, in the order they were received, are 1, 2, 3 and so on: S4.
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
