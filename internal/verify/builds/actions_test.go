package builds_test

import (
	"fmt"
	"strings"

	"github.com/parley-broker/parley/internal/sqltest"
)

// draw draws the next step of a session that sees some sides.
func (s *script) draw(i int, labels []string) action {
	isOpen := s.worlds[0].sessions[i].PgConn().TxStatus() == 'T'
	for {
		switch n := s.random.IntN(59); {
		case n < 33:
			a, _ := s.drawCall(i, n, labels)
			return a
		case n < 38 && !isOpen:
			return s.statement(i, "begin")
		case n < 43 && isOpen:
			s.savepoints[i]++
			return s.statement(i, fmt.Sprint("savepoint s", s.savepoints[i]-1))
		case n < 48 && s.savepoints[i] > 0:
			return s.goBack(i)
		case n < 52 && isOpen:
			s.savepoints[i] = 0
			return s.statement(i, "commit")
		case n < 54 && isOpen:
			return s.rollBack(i)
		case n >= 54 && n < 56 && isOpen:
			return s.crashBetween(i)
		case n >= 56 && n < 58:
			return s.crashInside(i, labels)
		case n == 58 && s.chance(s.stopRarity()):
			return s.crashServer()
		}
	}
}

// drawCall gives the call of a number under 33, and whether it deletes messages.
func (s *script) drawCall(i, n int, labels []string) (a action, isTaking bool) {
	switch {
	case n < 2:
		return s.begin(i, labels), false
	case n < 5 || len(labels) == 0:
		return s.beginAndSend(i), false
	case n < 10:
		return s.send(i, labels), false
	case n < 13:
		return s.sendBatch(i, labels), false
	case n < 14:
		return s.sendToAll(i, labels), false
	case n < 22:
		return s.receive(i), true
	case n < 24:
		return s.receiveNamed(i, labels), true
	case n < 25:
		return s.lockGroup(i), true
	case n < 30:
		return s.endOne(i, labels), true
	case n < 31:
		return s.endSome(i, labels), true
	default:
		return s.move(i, labels), true
	}
}

func (s *script) sideOf(labels []string) string { return labels[s.random.IntN(len(labels))] }

// bodiesOf gives bodies that differ: some are long, so that a frame of a batch has few of them.
func (s *script) bodiesOf(count int) (bodies []string) {
	padding := strings.Repeat("x", []int{0, 60, 700}[s.random.IntN(3)])
	for range count {
		s.bodies++
		bodies = append(bodies, fmt.Sprint("message ", s.bodies, padding))
	}
	return bodies
}

func (s *script) begin(i int, labels []string) action {
	number, names := s.begun, s.names
	s.begun++
	if len(labels) == 0 || !s.chance(3) {
		return action{fmt.Sprint("begin ", number), func(w *world) string {
			return w.begun(i, number, "select parley.begin_dialog($1, $2, '//test/Work')::text", names[0], names[1])
		}}
	}
	related := s.sideOf(labels)
	return action{fmt.Sprintf("begin %d beside %s", number, related), func(w *world) string {
		return w.begun(
			i, number, "select parley.begin_dialog($1, $2, '//test/Work', related_conversation => $3)::text", names[0], names[1],
			w.handles[related],
		)
	}}
}

func (s *script) beginAndSend(i int) action {
	number, names, body := s.begun, s.names, s.bodiesOf(1)[0]
	s.begun++
	return action{fmt.Sprint("begin and send ", number), func(w *world) string {
		return w.begun(
			i, number, "select parley.begin_and_send($1, $2, '//test/Request', $3::text, '//test/Work')::text", names[0], names[1], body,
		)
	}}
}

// messageType is one that the side may send, now and then not.
func (s *script) messageType(label string) string {
	switch {
	case s.chance(3):
		return sqltest.Note
	case strings.HasSuffix(label, "a") != s.chance(20):
		return sqltest.Request
	default:
		return sqltest.Reply
	}
}

func (s *script) send(i int, labels []string) action {
	label, body := s.sideOf(labels), s.bodiesOf(1)[0]
	messageType := s.messageType(label)
	return action{fmt.Sprintf("send a %s on %s", messageType, label), func(w *world) string {
		return w.run(i, "select parley.send($1::uuid, $2, $3::text) is null", w.handles[label], messageType, body)
	}}
}

func (s *script) sendBatch(i int, labels []string) action {
	label := s.sideOf(labels)
	messageType, bodies := s.messageType(label), s.bodiesOf([]int{2, 5, 80, 150}[s.random.IntN(4)])
	return action{fmt.Sprintf("send a batch of %d on %s", len(bodies), label), func(w *world) string {
		return w.run(i, "select parley.send_batch($1, $2, $3)::text", w.handles[label], messageType, bodies)
	}}
}

func (s *script) sendToAll(i int, labels []string) action {
	chosen, body := []string{s.sideOf(labels), s.sideOf(labels), s.sideOf(labels)}, s.bodiesOf(1)[0]
	return action{fmt.Sprint("send to all of ", chosen), func(w *world) string {
		return w.run(i, "select parley.send_to_all($1::text[]::uuid[], $2, $3::text)::text", w.handlesOf(chosen), sqltest.Note, body)
	}}
}

func (w *world) handlesOf(labels []string) (handles []string) {
	for _, label := range labels {
		handles = append(handles, w.handles[label])
	}
	return handles
}

// top is how many messages RECEIVE asks for; nil is all.
func (s *script) top() *int {
	top := []int{1, 1, 2, 3, 20, 100, 1000, 0}[s.random.IntN(8)]
	if top == 0 {
		return nil
	}
	return &top
}

func (s *script) receive(i int) action {
	queue, top := s.names[s.random.IntN(2)], s.top()
	var groups *int
	if s.chance(4) {
		groups = new(1 + s.random.IntN(5))
	}
	return s.taking(fmt.Sprintf("receive from %s, top %s, groups %s", queue, text(top), text(groups)), func(w *world) string {
		return w.received(i, "select * from parley.receive($1, top => $2, groups => $3)", queue, top, groups)
	})
}

// taking is a step that receives: it counts what it gives.
func (s *script) taking(name string, play func(w *world) string) action {
	return action{name, func(w *world) string {
		result := play(w)
		if w == s.worlds[1] && result != "" && !strings.HasPrefix(result, "SQLSTATE") {
			s.deeds.Received += 1 + strings.Count(result, "\n")
		}
		return result
	}}
}

func text(number *int) string {
	if number == nil {
		return "null"
	}
	return fmt.Sprint(*number)
}

func (s *script) receiveNamed(i int, labels []string) action {
	label, top := s.sideOf(labels), s.top()
	queue := s.names[0]
	if strings.HasSuffix(label, "b") {
		queue = s.names[1]
	}
	if s.chance(2) {
		return s.taking(fmt.Sprintf("receive from %s, top %s", label, text(top)), func(w *world) string {
			return w.received(
				i, "select * from parley.receive($1, top => $2, conversation_handle => $3::uuid)", queue, top, w.handles[label],
			)
		})
	}
	return s.taking(fmt.Sprintf("receive from the group of %s, top %s", label, text(top)), func(w *world) string {
		return w.received(i, `
			select r.* from parley.conversation_endpoints as e
			cross join parley.receive($1, top => $2, conversation_group_id => e.conversation_group_id) as r
			where e.conversation_handle = $3::uuid`, queue, top, w.handles[label])
	})
}

func (s *script) lockGroup(i int) action {
	return s.statement(i, "select parley.get_conversation_group($1) is null", s.names[s.random.IntN(2)])
}

func (s *script) endOne(i int, labels []string) action {
	statements := []string{
		"select parley.end_conversation($1::uuid)", "select parley.end_conversation($1::uuid)",
		"select parley.end_conversation($1::uuid, 7, 'it failed')", "select parley.end_conversation($1::uuid, cleanup => true)",
	}
	return s.end(i, s.sideOf(labels), statements[s.random.IntN(len(statements))])
}

func (s *script) end(i int, label, statement string) action {
	s.deeds.Ended++
	return action{fmt.Sprint(statement, " ", label), func(w *world) string { return w.run(i, statement, w.handles[label]) }}
}

// endSome ends one side, one that is named twice, or both sides of a conversation. Those of several conversations are ended in the order of
// their handles, which are random.
func (s *script) endSome(i int, labels []string) action {
	chosen := []string{s.sideOf(labels), s.sideOf(labels)}
	if number := len(chosen[0]) - 1; chosen[0][:number] != chosen[1][:number] {
		chosen = chosen[:1]
	}
	return action{fmt.Sprint("end all of ", chosen), func(w *world) string {
		return w.run(i, "select parley.end_conversations($1::text[]::uuid[])", w.handlesOf(chosen))
	}}
}

func (s *script) move(i int, labels []string) action {
	label, to := s.sideOf(labels), s.sideOf(labels)
	return action{fmt.Sprintf("move %s to the group of %s", label, to), func(w *world) string {
		return w.run(i, `
			select parley.move_conversation($1::uuid, e.conversation_group_id)
			from parley.conversation_endpoints as e where e.conversation_handle = $2::uuid`, w.handles[label], w.handles[to])
	}}
}
