package conversation_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"
)

// priority is that of the initiators that begin now.
func (m *sidesModel) priority() int {
	if m.isPreferred {
		return 8
	}
	return 5
}

// prefer changes the priority of the initiators that begin from now on. A change of the catalog waits for those who use it.
func (m *sidesModel) prefer(r *rapid.T) {
	if m.sessions[0].isOpen || m.sessions[1].isOpen {
		r.Skip("a transaction is open")
	}
	if m.isPreferred {
		m.exec(r, m.DB, "select parley.drop_broker_priority($1)", m.names[0])
	} else {
		m.exec(r, m.DB, "select parley.create_broker_priority($1, local_service_name => $1, priority_level => 8)", m.names[0])
		// The first conversation of a priority writes the row of its queue, for which others would wait.
		m.exec(r, m.DB, "select parley.end_conversation(parley.begin_dialog($1, $2, '//test/Work'))", m.names[0], m.names[1])
	}
	m.isPreferred = !m.isPreferred
}

// isDoubtful reports whether another session may hold a group, or keep a message of it.
func (m *sidesModel) isDoubtful(other *modelSession, group int) bool {
	return other.isOpen && (slices.Contains(m.suspicious, group) || other.mayLock(group))
}

// isEndable reports whether END of a side waits for no other session.
func (m *sidesModel) isEndable(other *modelSession, w modelWorld, side int) bool {
	group := w.sides[side].group
	if m.isDoubtful(other, group) {
		return false
	}
	return !other.touches(side/2) && !other.hasSent(side, side^1) && isFree(other, w, group)
}

// ended gives the deed of a session that ends some sides.
func (m *sidesModel) ended(w modelWorld, sides ...int) (d deed) {
	first := m.position + 1
	m.position += len(sides)
	for _, side := range sides {
		d.changed, d.locked = append(d.changed, side/2), append(d.locked, w.sides[side].group)
		d.maybeLocked = append(d.maybeLocked, w.groupsThatGo(side)...)
	}
	d.apply = func(w *modelWorld) {
		for n, side := range sides {
			// END of its far side may have taken it along.
			if _, isThere := w.sides[side]; isThere {
				w.end(side, first+n, endDialog)
			}
		}
	}
	return d
}

// receiveAndEnd receives all of a group and ends its conversation.
func (m *sidesModel) receiveAndEnd(r *rapid.T) {
	i, s, w, other := m.session(r)
	role := rapid.IntRange(0, 1).Draw(r, "role")
	var want []arrivedMessage
	group := -1
	for _, next := range w.groupsInOrder(role) {
		if m.isDoubtful(other, next) {
			r.Skip("a message has come back")
		}
		waiting := w.waiting(func(n int) bool { return n%2 == role && w.sides[n].group == next })
		if other.locks(next) || other.keepsFirst(waiting) {
			continue
		}
		want, group = waiting, next
		break
	}
	if group >= 0 && (slices.ContainsFunc(want, func(o arrivedMessage) bool { return o.to != want[0].to }) ||
		!m.isEndable(other, w, want[0].to)) {
		r.Skip("it ends several conversations, or waits")
	}
	if group >= 0 {
		// The call may take the conversation away, and what tells whose handle it is.
		m.sides[m.handleOf(r, m.dbs[i].DB, want[0].to)] = want[0].to
	}
	rows := m.rows(r, m.dbs[i].DB, "select * from parley.receive_and_end($1)", m.names[role])
	if group < 0 {
		if len(rows) > 0 {
			r.Fatalf("receive_and_end gives %v, where nothing is free", bodiesOf(rows))
		}
		return
	}
	m.took(r, i, s, w, want, rows, len(want)+1, group)
	m.done(s, m.ended(s.view(m.modelWorld), want[0].to))
}

// receiveFromGroups receives from several groups at once: of each conversation what comes first there, and only of groups that nobody else
// has. Which share of a call each has is none of the specification.
func (m *sidesModel) receiveFromGroups(r *rapid.T) {
	i, s, w, other := m.session(r)
	role, groups := rapid.IntRange(0, 1).Draw(r, "role"), rapid.IntRange(2, 5).Draw(r, "groups")
	top := rapid.SampledFrom([]int{1, 3, 10, 1000}).Draw(r, "top")
	rows := m.rows(r, m.dbs[i].DB, "select * from parley.receive($1, top => $2, groups => $3)", m.names[role], top, groups)
	bySide, got := map[int][]string{}, []int{}
	for _, row := range rows {
		side := m.sideOf(r, m.dbs[i].DB, row)
		bySide[side] = append(bySide[side], fmt.Sprintf("%d %s", row.MessageSequenceNumber, cmpBody(row)))
		if group := w.sides[side].group; !slices.Contains(got, group) {
			got = append(got, group)
		}
	}
	if len(got) > groups || len(rows) > top {
		r.Fatalf("RECEIVE of %d from %d groups gives %d from %d", top, groups, len(rows), len(got))
	}
	for _, group := range got {
		if other.locks(group) {
			r.Fatalf("RECEIVE gives %v of groups of which another session has one", bodiesOf(rows))
		}
	}
	m.requireFirstGroup(r, role, w, other, got)
	d := deed{locked: got, received: got}
	var taken []arrivedMessage
	for side, texts := range bySide {
		number := w.sides[side].received
		var want []string
		for _, o := range w.waiting(func(n int) bool { return n == side })[:len(texts)] {
			if o.isInSequence() {
				want = append(want, fmt.Sprintf("%d %s%s", number, o.kind, o.body))
				number++
			} else {
				want = append(want, fmt.Sprintf("-1 %s", o.kind))
			}
			taken, d.taken = append(taken, o), append(d.taken, o.position)
		}
		if !slices.Equal(want, texts) {
			r.Fatalf("of side %d RECEIVE gives %q, want %q", side, texts, want)
		}
	}
	for _, group := range w.groupsInOrder(role) {
		if slices.Contains(m.suspicious, group) && !other.locks(group) {
			d.maybeLocked = append(d.maybeLocked, group)
		}
	}
	d.apply = func(w *modelWorld) { w.take(taken) }
	m.done(s, d)
}

// requireFirstGroup requires that the first free group is among those that were received from, where it is known which that is.
func (m *sidesModel) requireFirstGroup(r *rapid.T, role int, w modelWorld, other *modelSession, got []int) {
	for _, group := range w.groupsInOrder(role) {
		switch {
		case slices.Contains(got, group):
			return
		case m.isDoubtful(other, group):
		case other.locks(group):
		default:
			r.Fatalf("RECEIVE takes nothing of group %d, the first that is free, and something of %v", group, got)
		}
	}
	if len(got) > 0 {
		r.Fatalf("RECEIVE gives messages of groups %v, where nothing waits", got)
	}
}

// timer lets time pass for a side: its timer fires. No session has a part in its conversation.
func (m *sidesModel) timer(r *rapid.T) {
	w := m.modelWorld
	side := drawSide(r, w, func(n int) bool {
		isOpen := slices.Contains([]string{"SO", "CO", "DI"}, w.sides[n].state)
		return isOpen && m.isEndable(m.sessions[0], w, n) && m.isEndable(m.sessions[1], w, n)
	})
	m.exec(r, m.DB, "select parley.begin_conversation_timer($1::uuid, 0)", m.handleOf(r, m.DB, side))
	m.exec(r, m.DB, "select parley.fire_timers()")
	m.position++
	m.arrive(arrivedMessage{position: m.position, to: side, kind: timer})
}
