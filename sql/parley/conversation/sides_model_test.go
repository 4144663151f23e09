package conversation_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/sqltest"
)

// services numbers the pairs of services of the checks.
var services atomic.Int64

// sidesModel is a pair of services, what is committed of their conversations, and two sessions.
type sidesModel struct {
	*sqltest.Broker
	modelWorld

	names       [2]string // of the services, and of their queues
	sessions    [2]*modelSession
	dbs         [2]sqltest.Session
	handles     map[int]string // of the sides that began
	sides       map[string]int // by handle
	position    int
	suspicious  []int // groups of which messages have come back from a savepoint
	isPreferred bool  // what initiators begin has priority 8
	isRetained  bool  // both queues keep what is sent and received
}

// Two sessions begin, send, receive, end, fail, move, commit, roll back and go back to savepoints in any order. Each sees the
// states, groups and messages that the specification gives them (spec 3.2, 3.4, 3.6, 4.1 to 4.6), each message is received
// once, in its order, and nothing is left when all is ended.
func TestConversationsModel(t *testing.T) {
	t.Parallel()
	// A check takes a second; an engineer who wants more gives -rapid.checks and -rapid.steps.
	for name, value := range map[string][2]string{"rapid.checks": {"6", "150"}, "rapid.steps": {"60", "150"}} {
		given := flag.Lookup(name)
		if given.Value.String() != given.DefValue {
			continue
		}
		if err := given.Value.Set(value[min(len(os.Getenv("PARLEY_TEST_LONG")), 1)]); err != nil {
			t.Fatal(err)
		}
	}
	b := sqltest.NewWorld(t)
	dbs := [2]sqltest.Session{b.Connection(), b.Connection()}
	for _, db := range dbs {
		// The model knows whom a statement would wait for, and makes none that waits.
		db.Exec("set lock_timeout = '20s'")
	}
	rapid.Check(t, func(r *rapid.T) {
		m := &sidesModel{Broker: b, dbs: dbs, handles: map[int]string{}, sides: map[string]int{}}
		m.modelWorld.sides = map[int]modelSide{}
		m.isRetained = rapid.IntRange(0, 2).Draw(r, "of three") == 0
		pair := services.Add(1)
		for i, role := range []string{"asks", "answers"} {
			m.names[i] = fmt.Sprintf("%s %d", role, pair)
			m.exec(r, b.DB, "select parley.create_queue($1, poison_message_handling => false, retention => $2)", m.names[i], m.isRetained)
			m.exec(r, b.DB, "select parley.create_service($1, $1, array['//test/Work'])", m.names[i])
			m.sessions[i] = &modelSession{}
		}
		defer m.rollBackAll()
		for range 3 {
			m.beginAndSendIn(r, 0)
		}
		r.Repeat(map[string]func(*rapid.T){
			"begin": m.begin, "begin and send": m.beginAndSend, "send": m.send, "send more": m.send, "send again": m.send,
			"receive": m.receive, "receive more": m.receive, "receive again": m.receive, "receive named": m.receiveNamed,
			"end": m.end, "move": m.move, "give back": m.giveBack, "give back again": m.giveBack,
			"open": m.open, "savepoint": m.savepoint, "go back": m.goBack, "finish": m.finish, "": m.compare,
			"end many": m.endMany, "receive and end": m.receiveAndEnd, "receive from groups": m.receiveFromGroups, "timer": m.timer,
			"prefer": m.prefer, "send later": m.sendLater, "send more for later": m.sendLater, "let time pass": m.letTimePass,
		})
		m.endAll(r)
	})
}

func (m *sidesModel) exec(r *rapid.T, db sqltest.Querier, statement string, arguments ...any) {
	if _, err := db.Exec(m.Context(), statement, arguments...); err != nil {
		r.Fatalf("%s: %v", sqltest.Clip(statement), sqltest.Describe(err))
	}
}

// text gives the one value of a query, as text.
func (m *sidesModel) text(r *rapid.T, db sqltest.Querier, query string, arguments ...any) (v string) {
	if err := db.QueryRow(m.Context(), query, arguments...).Scan(&v); err != nil {
		r.Fatalf("%s: %v", sqltest.Clip(query), sqltest.Describe(err))
	}
	return v
}

// session draws a session; it gives what the session sees, and the other one.
func (m *sidesModel) session(r *rapid.T) (i int, s *modelSession, w modelWorld, other *modelSession) {
	i = rapid.IntRange(0, 1).Draw(r, "session")
	return i, m.sessions[i], m.sessions[i].view(m.modelWorld), m.sessions[1-i]
}

// done records what a session has done: in its transaction, or committed.
func (m *sidesModel) done(s *modelSession, d deed) {
	if s.isOpen {
		s.deeds = append(s.deeds, d)
		return
	}
	d.apply(&m.modelWorld)
}

// drawSide draws a side that a session sees.
func drawSide(r *rapid.T, w modelWorld, isWanted func(number int) bool) int {
	numbers := slices.DeleteFunc(w.numbers(), func(number int) bool { return !isWanted(number) })
	if len(numbers) == 0 {
		r.Skip("no such side")
	}
	return rapid.SampledFrom(numbers).Draw(r, "side")
}

// handleOf gives the handle of a side.
func (m *sidesModel) handleOf(r *rapid.T, db sqltest.Querier, side int) string {
	if side%2 == 0 {
		return m.handles[side]
	}
	return m.text(r, db, `
		select f.conversation_handle::text
		from parley.conversation_endpoints as e
		join parley.conversation_endpoints as f on f.conversation_id = e.conversation_id and f.is_initiator <> e.is_initiator
		where e.conversation_handle = $1`, m.handles[side-1])
}

// groupID gives the identity of the group of a side.
func (m *sidesModel) groupID(r *rapid.T, db sqltest.Querier, side int) string {
	return m.text(
		r, db, "select conversation_group_id::text from parley.conversation_endpoints where conversation_handle = $1", m.handleOf(r, db, side),
	)
}

// isFree reports whether a statement that locks a group does not wait for a session.
func isFree(other *modelSession, w modelWorld, group int) bool {
	for _, member := range w.members(group) {
		if other.touches(member / 2) {
			return false
		}
	}
	return !other.holds(group)
}

// isUnsent reports whether a session has sent on no side of the conversations of a group.
func isUnsent(other *modelSession, w modelWorld, group int) bool {
	return !slices.ContainsFunc(w.members(group), func(n int) bool { return other.hasSent(n, n^1) })
}

func (m *sidesModel) newGroup() int {
	m.nextID++
	return m.nextID
}

// know records a conversation that was begun.
func (m *sidesModel) know(handle string) (side int) {
	side = 2 * len(m.handles)
	m.handles[side], m.sides[handle] = handle, side
	return side
}

func (m *sidesModel) begin(r *rapid.T) {
	i, s, w, other := m.session(r)
	db, priority := m.dbs[i].DB, m.priority()
	if rapid.IntRange(0, 3).Draw(r, "of four") > 0 {
		group := m.newGroup()
		side := m.know(m.text(r, db, "select parley.begin_dialog($1, $2, '//test/Work')::text", m.names[0], m.names[1]))
		m.done(s, deed{
			apply:   func(w *modelWorld) { w.sides[side] = modelSide{state: "SO", group: group, priority: priority} },
			changed: []int{side / 2}, locked: []int{group},
		})
		return
	}
	related := drawSide(r, w, func(n int) bool {
		return n%2 == 0 && isFree(other, w, w.sides[n].group) && isUnsent(other, w, w.sides[n].group)
	})
	group := w.sides[related].group
	side := m.know(m.text(
		r, db, "select parley.begin_dialog($1, $2, '//test/Work', related_conversation => $3)::text", m.names[0], m.names[1],
		m.handleOf(r, db, related),
	))
	changed := []int{side / 2}
	for _, member := range w.members(group) {
		changed = append(changed, member/2)
	}
	m.done(s, deed{
		apply:   func(w *modelWorld) { w.sides[side] = modelSide{state: "SO", group: group, priority: priority} },
		changed: changed, locked: []int{group},
	})
}

func (m *sidesModel) beginAndSend(r *rapid.T) {
	i, _, _, _ := m.session(r) //nolint:dogsled // the session alone
	m.beginAndSendIn(r, i)
}

func (m *sidesModel) beginAndSendIn(r *rapid.T, i int) {
	group, far, priority := m.newGroup(), m.newGroup(), m.priority()
	sent := m.bodies(1)
	side := m.know(m.text(
		r, m.dbs[i].DB, "select parley.begin_and_send($1, $2, '//test/Request', $3::text, '//test/Work')::text", m.names[0], m.names[1],
		sent[0].body,
	))
	sent[0].to = side + 1
	m.done(m.sessions[i], deed{
		apply: func(w *modelWorld) {
			w.sides[side] = modelSide{state: "SO", group: group, priority: priority}
			w.send(side, far, sent)
		},
		changed: []int{side / 2}, locked: []int{group}, sent: []int{side},
	})
}

// bodies makes messages that differ.
func (m *sidesModel) bodies(count int) (sent []arrivedMessage) {
	for range count {
		m.position++
		sent = append(sent, arrivedMessage{position: m.position, body: fmt.Sprint("message ", m.position)})
	}
	return sent
}

func (m *sidesModel) send(r *rapid.T) {
	i, s, w, other := m.session(r)
	db := m.dbs[i].DB
	// The first send of a side writes its way into its row, and one that is retained numbers its copy there.
	side := drawSide(r, w, func(n int) bool {
		return !other.touches(n/2) && (m.modelWorld.sides[n].hasSent && !m.isRetained || !other.hasSent(n))
	})
	messageType := []string{sqltest.Request, sqltest.Reply}[side%2]
	if rapid.Bool().Draw(r, "is a note") {
		messageType = sqltest.Note
	}
	count := rapid.SampledFrom([]int{1, 1, 1, 2, 5}).Draw(r, "messages")
	handle := m.handleOf(r, db, side)
	before := w.sides[side].state
	if before != "SO" && before != "CO" {
		m.refused(r, i, []int{8426, 8429}, "select parley.send($1::uuid, $2, 'x'::text)", handle, messageType)
		return
	}
	sent := m.bodies(count)
	var bodies []string
	for n := range sent {
		sent[n].to = side ^ 1
		bodies = append(bodies, sent[n].body)
	}
	if count == 1 {
		m.exec(r, db, "select parley.send($1::uuid, $2, $3::text)", handle, messageType, bodies[0])
	} else {
		m.exec(r, db, "select parley.send_batch($1, $2, $3)", handle, messageType, bodies)
	}
	group := m.newGroup()
	d := deed{apply: func(w *modelWorld) { w.send(side, group, sent) }, sent: []int{side}}
	if _, hasFar := w.sides[side^1]; !hasFar {
		d.changed = []int{side / 2}
	}
	m.done(s, d)
}

// refused makes a statement that has to fail with one of some errors.
func (m *sidesModel) refused(r *rapid.T, i int, numbers []int, statement string, arguments ...any) {
	db := m.dbs[i].DB
	if m.sessions[i].isOpen {
		m.exec(r, db, "savepoint refused")
	}
	_, err := db.Exec(m.Context(), statement, arguments...)
	refusal, isRefusal := errors.AsType[*pgconn.PgError](err)
	if !isRefusal || !slices.ContainsFunc(numbers, func(n int) bool { return refusal.Code == sqltest.SQLState(n) }) {
		r.Fatalf("%s: got %v, want one of the errors %v", sqltest.Clip(statement), err, numbers)
	}
	if m.sessions[i].isOpen {
		m.exec(r, db, "rollback to savepoint refused; release savepoint refused")
	}
}

func (m *sidesModel) receive(r *rapid.T) {
	i, s, w, other := m.session(r)
	m.receiveIn(r, i, s, w, other)
}

func (m *sidesModel) receiveIn(r *rapid.T, i int, s *modelSession, w modelWorld, other *modelSession) {
	role := rapid.IntRange(0, 1).Draw(r, "role")
	top := rapid.SampledFrom([]int{1, 2, 3, 1000}).Draw(r, "top")
	rows := m.rows(r, m.dbs[i].DB, "select * from parley.receive($1, top => $2)", m.names[role], top)
	// The first group that nobody else has. A message that has come back from a savepoint of a transaction that still runs is
	// kept for that; readers that cannot say whose it is pass it by. One that is not kept and stands in front of those that are
	// may be received, with all behind it or up to the next conversation.
	for _, group := range w.groupsInOrder(role) {
		isWanted := func(n int) bool { return n%2 == role && w.sides[n].group == group }
		want := w.waiting(isWanted)
		isDoubtful := m.isDoubtful(other, group)
		if other.locks(group) || other.keepsFirst(want) ||
			isDoubtful && (len(rows) == 0 || !isWanted(m.sideOf(r, m.dbs[i].DB, rows[0]))) {
			continue
		}
		if other.keeps(group) {
			want = want[:min(max(len(rows), 1), len(want))]
		}
		m.took(r, i, s, w, want, rows, top, group)
		return
	}
	if len(rows) > 0 {
		r.Fatalf("RECEIVE gives %v, where nothing is free", bodiesOf(rows))
	}
}

func (m *sidesModel) receiveNamed(r *rapid.T) {
	i, s, w, other := m.session(r)
	db := m.dbs[i].DB
	side := drawSide(r, w, func(n int) bool { return w.sides[n].state != "DO" && isFree(other, w, w.sides[n].group) })
	group := w.sides[side].group
	top := rapid.SampledFrom([]int{1, 2, 1000}).Draw(r, "top")
	if m.isDoubtful(other, group) {
		r.Skip("it may wait for a message that came back")
	}
	if rapid.Bool().Draw(r, "by group") {
		id := m.groupID(r, db, side)
		rows := m.rows(r, db, "select * from parley.receive($1, top => $2, conversation_group_id => $3::uuid)", m.names[side%2], top, id)
		m.took(r, i, s, w, w.waiting(func(n int) bool { return w.sides[n].group == group }), rows, top, group)
		return
	}
	rows := m.rows(
		r, db, "select * from parley.receive($1, top => $2, conversation_handle => $3::uuid)", m.names[side%2], top, m.handleOf(r, db, side),
	)
	m.took(r, i, s, w, w.waiting(func(n int) bool { return n == side }), rows, top, group)
}

func (m *sidesModel) rows(r *rapid.T, db sqltest.Querier, query string, arguments ...any) []sqltest.Message {
	rows, err := db.Query(m.Context(), query, arguments...)
	if err != nil {
		r.Fatalf("%s: %v", query, err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sqltest.Message])
	if err != nil {
		r.Fatalf("%s: %v", query, sqltest.Describe(err))
	}
	return got
}

// sideOf finds out which side received a message.
func (m *sidesModel) sideOf(r *rapid.T, db sqltest.Querier, row sqltest.Message) int {
	if side, isKnown := m.sides[row.ConversationHandle]; isKnown {
		return side
	}
	initiator := m.text(r, db, `
		select f.conversation_handle::text
		from parley.conversation_endpoints as e
		join parley.conversation_endpoints as f on f.conversation_id = e.conversation_id and f.is_initiator <> e.is_initiator
		where e.conversation_handle = $1`, row.ConversationHandle)
	side := m.sides[initiator] + 1
	m.sides[row.ConversationHandle] = side
	return side
}

// took compares what RECEIVE gave with what it had to give, and records it.
func (m *sidesModel) took(
	r *rapid.T, i int, s *modelSession, w modelWorld, want []arrivedMessage, rows []sqltest.Message, top, group int,
) {
	want = want[:min(top, len(want))]
	numbers := map[int]int{}
	var expected, got []string
	for _, o := range want {
		number := -1
		if o.isInSequence() {
			number = w.sides[o.to].received + numbers[o.to]
			numbers[o.to]++
		}
		expected = append(expected, fmt.Sprintf("%d:%d %s%s", o.to, number, o.kind, o.body))
	}
	for _, row := range rows {
		got = append(got, fmt.Sprintf("%d:%d %s", m.sideOf(r, m.dbs[i].DB, row), row.MessageSequenceNumber, cmpBody(row)))
		if row.ConversationGroupID != rows[0].ConversationGroupID {
			r.Fatalf("RECEIVE gives messages of two groups: %v", got)
		}
	}
	if !slices.Equal(expected, got) {
		r.Fatalf("session %d receives %q, want %q", i, got, expected)
	}
	var positions []int
	for _, o := range want {
		positions = append(positions, o.position)
	}
	m.done(s, deed{
		apply: func(w *modelWorld) { w.take(want) }, locked: []int{group}, received: []int{group}, taken: positions,
	})
}
