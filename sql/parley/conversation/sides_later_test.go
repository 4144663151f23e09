package conversation_test

import (
	"cmp"
	"slices"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A laterMessage was sent for later and is not due yet.
type laterMessage struct {
	hours, number int // of two that are due in the same hour the one that was sent first comes first
	body          string
}

// sendLater is SEND of a message that is not due yet: a conversation begins by it, and its target does not.
func (w *modelWorld) sendLater(side int, m laterMessage) {
	s := w.sides[side]
	s.state = "CO"
	s.later = append(slices.Clone(s.later), m)
	w.sides[side] = s
}

// letTimePass sends what one side has sent for later, and its EndDialog behind the last of it. A side whose far side has ended, or that has
// failed, sends nothing more.
func (w *modelWorld) letTimePass(side, group, position int) {
	s := w.sides[side]
	later, isEnding := s.later, s.isEnding
	s.later, s.isEnding = nil, false
	w.sides[side] = s
	if s.state != "CO" && !isEnding {
		return
	}
	slices.SortFunc(later, func(a, b laterMessage) int {
		return cmp.Or(cmp.Compare(a.hours, b.hours), cmp.Compare(a.number, b.number))
	})
	for _, m := range later {
		w.send(side, group, []arrivedMessage{{position: position, to: side ^ 1, body: m.body}})
		position++
	}
	if isEnding {
		w.end(side, position, endDialog)
	}
}

func (m *sidesModel) sendLater(r *rapid.T) {
	i, _, w, other := m.session(r)
	db := m.dbs[i].DB
	side := drawSide(r, w, func(n int) bool { return !other.touches(n/2) && !other.hasSent(n, n^1) })
	later := laterMessage{hours: rapid.IntRange(1, 3).Draw(r, "hours"), number: m.position, body: m.bodies(1)[0].body}
	const send = "select parley.send($1::uuid, $2, $3::text, deliver_at => clock_timestamp() + $4 * interval '1 hour')"
	handle := m.handleOf(r, db, side)
	if state := w.sides[side].state; state != "SO" && state != "CO" {
		m.refused(r, i, []int{8426, 8429}, send, handle, sqltest.Note, later.body, later.hours)
		return
	}
	m.exec(r, db, send, handle, sqltest.Note, later.body, later.hours)
	m.done(m.sessions[i], deed{apply: func(w *modelWorld) { w.sendLater(side, later) }, changed: []int{side / 2}})
}

// letTimePass lets what a side has sent for later come due. No session has a part in its conversation.
func (m *sidesModel) letTimePass(r *rapid.T) {
	isFreeOf := func(n int) bool {
		return !slices.ContainsFunc(m.sessions[:], func(s *modelSession) bool { return !m.isEndable(s, m.modelWorld, n) })
	}
	side := drawSide(r, m.modelWorld, func(n int) bool {
		_, hasFar := m.modelWorld.sides[n^1]
		return len(m.modelWorld.sides[n].later) > 0 && isFreeOf(n) && (!hasFar || isFreeOf(n^1))
	})
	m.makeDue(r, side)
}

func (m *sidesModel) makeDue(r *rapid.T, side int) {
	m.exec(r, m.DB, `
		update parley._p_delayed_send as d
		set due_at = d.due_at - interval '1 day', try_at = d.due_at - interval '1 day'
		from parley._p_endpoint as e
		where e.endpoint_id = d.endpoint_id and e.conversation_handle = $1::uuid`, m.handleOf(r, m.DB, side))
	m.exec(r, m.DB, "select parley.fire_timers()")
	first := m.position + 1
	m.position += len(m.modelWorld.sides[side].later) + 1
	m.modelWorld.letTimePass(side, m.newGroup(), first)
}

// makeAllDue lets all come due that was sent for later.
func (m *sidesModel) makeAllDue(r *rapid.T) {
	for _, side := range m.numbers() {
		if len(m.modelWorld.sides[side].later) > 0 {
			m.makeDue(r, side)
		}
	}
}

// endMany ends several sides in one call, and names one of them twice.
func (m *sidesModel) endMany(r *rapid.T) {
	i, s, w, other := m.session(r)
	db := m.dbs[i].DB
	var sides []int
	var handles []string
	isWanted := func(n int) bool {
		return w.sides[n].state != "DO" && m.isEndable(other, w, n) && !slices.Contains(sides, n)
	}
	for range rapid.IntRange(2, 5).Draw(r, "sides") {
		if !slices.ContainsFunc(w.numbers(), isWanted) {
			break
		}
		side := drawSide(r, w, isWanted)
		sides, handles = append(sides, side), append(handles, m.handleOf(r, db, side))
		if _, hasFar := w.sides[side^1]; hasFar {
			m.sides[m.handleOf(r, db, side^1)] = side ^ 1
		}
	}
	if len(sides) == 0 {
		r.Skip("no such side")
	}
	m.exec(r, db, "select parley.end_conversations($1::text[]::uuid[])", append(handles, handles[0]))
	// The EndDialogs of one call come into a queue in any order.
	order := m.endDialogs(r, db)
	slices.SortStableFunc(sides, func(a, b int) int { return cmp.Compare(slices.Index(order, a^1), slices.Index(order, b^1)) })
	m.done(s, m.ended(w, sides...))
}

// endDialogs gives the sides for which EndDialog waits, in the order of each queue.
func (m *sidesModel) endDialogs(r *rapid.T, db sqltest.Querier) (sides []int) {
	for _, name := range m.names {
		for _, row := range m.rows(r, db, "select * from parley_queue."+sqltest.Quote(name)+" as q where q.status = 1 order by q.queuing_order") {
			if side, isKnown := m.sides[row.ConversationHandle]; isKnown && row.MessageTypeName == sqltest.EndDialog {
				sides = append(sides, side)
			}
		}
	}
	return sides
}
