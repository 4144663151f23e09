package conversation_test

import (
	"context"
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

func (m *sidesModel) end(r *rapid.T) {
	i, s, w, other := m.session(r)
	db := m.dbs[i].DB
	side := drawSide(r, w, func(n int) bool {
		return !other.touches(n/2) && !other.hasSent(n, n^1) && isFree(other, w, w.sides[n].group)
	})
	if m.isDoubtful(other, w.sides[side].group) {
		r.Skip("it may wait for a message that came back")
	}
	kind := rapid.SampledFrom([]string{endDialog, endDialog, failure}).Draw(r, "kind")
	statement := "select parley.end_conversation($1::uuid)"
	if kind == failure {
		statement = "select parley.end_conversation($1::uuid, 7, 'it failed')"
	} else if rapid.IntRange(0, 2).Draw(r, "of three") == 0 {
		statement = "select parley.end_conversations(array[$1::uuid])"
	}
	handle := m.handleOf(r, db, side)
	if w.sides[side].state == "DO" {
		m.refused(r, i, []int{8426, 8427}, statement, handle)
		return
	}
	m.exec(r, db, statement, handle)
	m.position++
	position := m.position
	m.done(s, deed{
		apply:   func(w *modelWorld) { w.end(side, position, kind) },
		changed: []int{side / 2}, locked: []int{w.sides[side].group}, maybeLocked: w.groupsThatGo(side),
	})
}

func (m *sidesModel) move(r *rapid.T) {
	i, s, w, other := m.session(r)
	db := m.dbs[i].DB
	isMovable := func(n int) bool {
		return !other.touches(n/2) && isFree(other, w, w.sides[n].group) && isUnsent(other, w, w.sides[n].group)
	}
	side := drawSide(r, w, func(n int) bool { return isMovable(n) && w.sides[n].state != "DO" })
	to := drawSide(r, w, func(n int) bool { return isMovable(n) && n%2 == side%2 })
	from, group := w.sides[side].group, w.sides[to].group
	changed := []int{side / 2}
	for _, member := range append(w.members(from), w.members(group)...) {
		changed = append(changed, member/2)
	}
	if m.isDoubtful(other, from) || m.isDoubtful(other, group) {
		r.Skip("it may wait for a message that came back")
	}
	m.exec(r, db, "select parley.move_conversation($1, $2::uuid)", m.handleOf(r, db, side), m.groupID(r, db, to))
	m.done(s, deed{apply: func(w *modelWorld) { w.move(side, group) }, changed: changed, locked: []int{from, group}})
}

func (m *sidesModel) open(r *rapid.T) {
	i, s, _, _ := m.session(r)
	if s.isOpen {
		r.Skip("it is open")
	}
	m.exec(r, m.dbs[i].DB, "begin")
	s.isOpen = true
}

func (m *sidesModel) savepoint(r *rapid.T) {
	i, s, _, _ := m.session(r)
	if !s.isOpen {
		r.Skip("no transaction")
	}
	m.exec(r, m.dbs[i].DB, fmt.Sprint("savepoint s", len(s.savepoints)))
	s.savepoints = append(s.savepoints, len(s.deeds))
}

func (m *sidesModel) goBack(r *rapid.T) {
	i, s, _, _ := m.session(r)
	if len(s.savepoints) == 0 {
		r.Skip("no savepoint")
	}
	n := rapid.IntRange(0, len(s.savepoints)-1).Draw(r, "savepoint")
	m.exec(r, m.dbs[i].DB, fmt.Sprint("rollback to savepoint s", n))
	m.undo(s, s.savepoints[n])
	s.savepoints = s.savepoints[:n+1]
}

// giveBack receives behind a savepoint and goes back to it, as a reader does whose work has failed.
func (m *sidesModel) giveBack(r *rapid.T) {
	i, s, w, other := m.session(r)
	if !s.isOpen {
		m.exec(r, m.dbs[i].DB, "begin")
		s.isOpen = true
	}
	deeds := len(s.deeds)
	m.exec(r, m.dbs[i].DB, "savepoint work")
	m.receiveIn(r, i, s, w, other)
	m.exec(r, m.dbs[i].DB, "rollback to savepoint work; release savepoint work")
	m.undo(s, deeds)
}

// undo takes back what a session has done since it had done some deeds. RECEIVE by others cannot say of each message that it
// has deleted whether it keeps it: those that END has discarded count too.
func (m *sidesModel) undo(s *modelSession, deeds int) {
	for _, d := range s.deeds[deeds:] {
		m.suspicious = append(m.suspicious, d.locked...)
	}
	s.goBack(deeds)
}

func (m *sidesModel) finish(r *rapid.T) {
	i, s, _, _ := m.session(r)
	if !s.isOpen {
		r.Skip("no transaction")
	}
	m.finishIn(r, i, rapid.IntRange(0, 2).Draw(r, "of three") > 0)
}

func (m *sidesModel) finishIn(r *rapid.T, i int, isCommitted bool) {
	s := m.sessions[i]
	if isCommitted {
		m.exec(r, m.dbs[i].DB, "commit")
		for _, d := range s.deeds {
			d.apply(&m.modelWorld)
		}
	} else {
		m.exec(r, m.dbs[i].DB, "rollback")
		m.undo(s, 0)
	}
	*s = modelSession{}
}

func (m *sidesModel) rollBackAll() {
	for _, db := range m.dbs {
		_, _ = db.DB.Exec(context.WithoutCancel(m.Context()), "rollback")
	}
}

// compare holds the views against the model: the states of all sides, which share a group, and how much waits. A side that is
// closed may be shown as DO for a while.
func (m *sidesModel) compare(r *rapid.T) {
	i := rapid.IntRange(0, 1).Draw(r, "session that looks")
	w := m.sessions[i].view(m.modelWorld)
	db := m.dbs[i].DB
	rows, err := db.Query(m.Context(), `
		select coalesce(f.conversation_handle, e.conversation_handle)::text, e.is_initiator, e.state, e.conversation_group_id::text
		from parley.conversation_endpoints as e
		left join parley.conversation_endpoints as f
			on f.conversation_id = e.conversation_id and f.is_initiator > e.is_initiator
		where e.service_name = any ($1) and e.state <> 'CD'`, m.names[:])
	if err != nil {
		r.Fatal(err)
	}
	defer rows.Close()
	groups, ids, count := map[int]string{}, map[string]int{}, 0
	for rows.Next() {
		var initiator, state, id string
		var isInitiator int
		if err := rows.Scan(&initiator, &isInitiator, &state, &id); err != nil {
			r.Fatal(err)
		}
		side, isKnown := m.sides[initiator]
		if isInitiator == 0 && side%2 == 0 {
			side++
		}
		want, isThere := w.sides[side]
		if state == "DO" && (!isThere || !isKnown) {
			continue
		}
		count++
		if !isThere || want.state != state {
			r.Fatalf("side %d is shown in state %s, want %q", side, state, want.state)
		}
		if known, isShown := groups[want.group]; isShown && known != id {
			r.Fatalf("side %d is shown in another group than the others of its group", side)
		}
		if known, isShown := ids[id]; isShown && known != want.group {
			r.Fatalf("side %d is shown in the group of others", side)
		}
		groups[want.group], ids[id] = id, want.group
	}
	if err := rows.Err(); err != nil {
		r.Fatal(err)
	}
	if count != len(w.sides) {
		r.Fatalf("%d sides are shown, want %d", count, len(w.sides))
	}
	for role, name := range m.names {
		want := len(w.waiting(func(n int) bool { return n%2 == role }))
		if got := m.text(r, db, "select count(*)::text from parley_queue."+sqltest.Quote(name)+" where status = 1"); got != fmt.Sprint(want) {
			r.Fatalf("%s messages are shown in queue %q, want %d", got, name, want)
		}
	}
}

// endAll ends what is open, and asks that nothing is left.
func (m *sidesModel) endAll(r *rapid.T) {
	for i, s := range m.sessions {
		if s.isOpen {
			m.finishIn(r, i, true)
		}
	}
	m.makeAllDue(r)
	m.compare(r)
	for _, side := range m.numbers() {
		if state := m.modelWorld.sides[side].state; state != "" && state != "DO" {
			m.exec(r, m.DB, "select parley.end_conversation($1::uuid)", m.handleOf(r, m.DB, side))
			m.modelWorld.end(side, 0, endDialog)
		}
	}
	parleytest.Until(m.T, "nothing is left", func() bool {
		m.exec(r, m.DB, "select parley.fire_timers()")
		return m.text(r, m.DB, `
			select (
				select count(*) from parley._p_endpoint as e where e.service_name = any ($1)
			) + (
				select count(*) from parley._p_conversation_group as g join parley._p_service as s using (service_id) where s.name = any ($1)
			) + (
				select count(*) from parley._p_message as m
				join parley._p_queue as q on m.lane / 16 = q.queue_id
				where q.lookup_name = any ($1)
			) + (
				select count(*) from parley._p_retained as k join parley._p_queue as q using (queue_id) where q.lookup_name = any ($1)
			)`, m.names[:]) == "0"
	})
}

func bodiesOf(rows []sqltest.Message) (bodies []string) {
	for _, row := range rows {
		bodies = append(bodies, cmpBody(row))
	}
	return bodies
}

// cmpBody writes a message as bodies of the model are written; of one of the broker its kind.
func cmpBody(row sqltest.Message) string {
	if at := strings.LastIndex(row.MessageTypeName, "ServiceBroker/"); at >= 0 {
		return row.MessageTypeName[at+len("ServiceBroker/"):]
	}
	return string(row.MessageBody)
}
