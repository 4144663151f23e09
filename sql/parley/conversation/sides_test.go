package conversation_test

import (
	"cmp"
	"maps"
	"slices"
)

// A side of a conversation as the model knows it: side 2n began conversation n, side 2n+1 is its target.
type modelSide struct {
	state    string // SO, CO, DI, DO or ER; a side that is closed is none of the world
	group    int
	priority int
	received int // sequence number of the next message
	hasSent  bool
	later    []laterMessage
	isEnding bool // in state DO, and EndDialog waits behind what was sent for later
}

// An arrivedMessage waits for a side. Its kind is "" for what an application has sent.
type arrivedMessage struct {
	position, to int
	kind, body   string
}

// isInSequence reports whether a message has a sequence number: Errors and timer messages stand outside the sequence.
func (m arrivedMessage) isInSequence() bool { return m.kind != failure && m.kind != timer }

const (
	endDialog = "EndDialog"
	failure   = "Error"
	timer     = "DialogTimer"
)

// modelWorld is the state that a session sees: all that is committed, and its own deeds.
type modelWorld struct {
	sides    map[int]modelSide
	messages []arrivedMessage // in the order of their positions
	nextID   int              // of groups
}

func (w modelWorld) clone() modelWorld {
	w.sides, w.messages = maps.Clone(w.sides), slices.Clone(w.messages)
	return w
}

// isOpen reports whether a side is there and has not ended: a message that comes later for any other is dropped.
func (w *modelWorld) isOpen(side int) bool {
	s, isThere := w.sides[side]
	return isThere && s.state != "DO"
}

func (w *modelWorld) setState(side int, state string) {
	s := w.sides[side]
	s.state = state
	w.sides[side] = s
}

// arrive puts a message into the queue of a side.
func (w *modelWorld) arrive(m arrivedMessage) {
	if !w.isOpen(m.to) {
		return
	}
	at, _ := slices.BinarySearchFunc(w.messages, m, func(a, b arrivedMessage) int { return cmp.Compare(a.position, b.position) })
	w.messages = slices.Insert(w.messages, at, m)
}

// discard drops what waits for a side.
func (w *modelWorld) discard(side int) {
	w.messages = slices.DeleteFunc(w.messages, func(m arrivedMessage) bool { return m.to == side })
}

// send is SEND (spec 3.2): the first one makes the side of the target, in a group of its own.
func (w *modelWorld) send(side, group int, sent []arrivedMessage) {
	if w.sides[side].state == "SO" {
		w.setState(side, "CO")
	}
	if s, isThere := w.sides[side]; isThere {
		if _, hasFar := w.sides[side^1]; !hasFar {
			w.sides[side^1] = modelSide{state: "CO", group: group, priority: 5}
		}
		s.hasSent = true
		w.sides[side] = s
	}
	for _, m := range sent {
		w.arrive(m)
	}
}

// end is END CONVERSATION in both forms (spec 3.2), and the end of a side that has waited for what it had sent for later.
func (w *modelWorld) end(side, position int, kind string) {
	w.discard(side)
	far, isThere := w.sides[side^1]
	s := w.sides[side]
	switch {
	case s.state == "CO" && len(s.later) > 0 && kind == endDialog:
		s.state, s.isEnding = "DO", true
		w.sides[side] = s
	case !isThere || far.state == "DO":
		delete(w.sides, side)
		delete(w.sides, side^1)
	default:
		w.sides[side] = modelSide{state: "DO", group: s.group, priority: s.priority, received: s.received, hasSent: s.hasSent}
		w.setState(side^1, map[string]string{endDialog: "DI", failure: "ER"}[kind])
		w.arrive(arrivedMessage{position: position, to: side ^ 1, kind: kind})
	}
}

// groupsThatGo gives the group that END of a side locks beside its own, if it is free: that of a far side which goes too.
func (w *modelWorld) groupsThatGo(side int) []int {
	if far, isThere := w.sides[side^1]; isThere && far.state == "DO" {
		return []int{far.group}
	}
	return nil
}

// take is RECEIVE of certain messages.
func (w *modelWorld) take(taken []arrivedMessage) {
	for _, m := range taken {
		w.messages = slices.DeleteFunc(w.messages, func(o arrivedMessage) bool { return o.position == m.position })
		if s, isThere := w.sides[m.to]; isThere && m.isInSequence() {
			s.received++
			w.sides[m.to] = s
		}
	}
}

// move is MOVE CONVERSATION.
func (w *modelWorld) move(side, group int) {
	s := w.sides[side]
	s.group = group
	w.sides[side] = s
}

// waiting gives the messages of some sides in the order in which RECEIVE takes them: conversation by conversation, by priority
// and then by their first messages; in each what timers gave, the Error, and the rest (spec 3.4, 4.3).
func (w *modelWorld) waiting(isWanted func(side int) bool) []arrivedMessage {
	var order []int
	bySide := map[int][]arrivedMessage{}
	for _, m := range w.byPriority() {
		if !isWanted(m.to) {
			continue
		}
		if _, isKnown := bySide[m.to]; !isKnown {
			order = append(order, m.to)
		}
		bySide[m.to] = append(bySide[m.to], m)
	}
	rank := func(m arrivedMessage) int { return slices.Index([]string{timer, failure, m.kind}, m.kind) }
	var all []arrivedMessage
	for _, side := range order {
		slices.SortStableFunc(bySide[side], func(a, b arrivedMessage) int { return cmp.Compare(rank(a), rank(b)) })
		all = append(all, bySide[side]...)
	}
	return all
}

// byPriority gives all messages by the priority of their conversations, and by their positions.
func (w *modelWorld) byPriority() []arrivedMessage {
	ordered := slices.Clone(w.messages)
	slices.SortStableFunc(ordered, func(a, b arrivedMessage) int { return cmp.Compare(w.sides[b.to].priority, w.sides[a.to].priority) })
	return ordered
}

// groupsInOrder gives the groups of one role, initiator 0 and target 1, for which messages wait, by their first ones.
func (w *modelWorld) groupsInOrder(role int) (groups []int) {
	for _, m := range w.byPriority() {
		if group := w.sides[m.to].group; m.to%2 == role && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

// members gives the sides of a group.
func (w *modelWorld) members(group int) (members []int) {
	for number, s := range w.sides {
		if s.group == group {
			members = append(members, number)
		}
	}
	return members
}

// numbers gives all sides, in order.
func (w *modelWorld) numbers() []int {
	numbers := make([]int, 0, len(w.sides))
	for number := range w.sides {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	return numbers
}

// A deed is what a transaction has done, and may take back.
type deed struct {
	apply func(w *modelWorld)
	// Conversations that it has begun, opened, ended or moved.
	changed []int
	// Sides that it has sent on, and groups that it has locked.
	sent, locked []int
	// Groups that it has received from, and positions of what it has received: it keeps both when it goes back to a savepoint.
	received, taken []int
	// Groups that it may have locked: in vain, or because a side that had ended before has gone.
	maybeLocked []int
}

// modelSession is a session with a transaction, or without one.
type modelSession struct {
	isOpen     bool
	deeds      []deed
	savepoints []int // how many deeds there were
	kept       []int // groups whose messages it has given back
	keptRows   []int // positions of these messages
}

// view gives the state that a session sees.
func (s *modelSession) view(committed modelWorld) modelWorld {
	w := committed.clone()
	for _, d := range s.deeds {
		d.apply(&w)
	}
	return w
}

// touches reports whether a session has changed one of some conversations.
func (s *modelSession) touches(conversations ...int) bool {
	return slices.ContainsFunc(s.deeds, func(d deed) bool { return overlap(d.changed, conversations) })
}

// hasSent reports whether a session has sent on one of some sides.
func (s *modelSession) hasSent(sides ...int) bool {
	return slices.ContainsFunc(s.deeds, func(d deed) bool { return overlap(d.sent, sides) })
}

// locks reports whether a session has locked a group.
func (s *modelSession) locks(group int) bool {
	return slices.ContainsFunc(s.deeds, func(d deed) bool { return slices.Contains(d.locked, group) })
}

// holds reports whether a session has locked a group or may have, or keeps it after it has gone back to a savepoint.
func (s *modelSession) holds(group int) bool {
	return s.keeps(group) || s.locks(group) || s.mayLock(group)
}

// mayLock reports whether a session may have locked a group in vain, or because a side of it has gone.
func (s *modelSession) mayLock(group int) bool {
	return slices.ContainsFunc(s.deeds, func(d deed) bool { return slices.Contains(d.maybeLocked, group) })
}

// keeps reports whether a session has gone back to a savepoint behind which it received from a group.
func (s *modelSession) keeps(group int) bool { return slices.Contains(s.kept, group) }

// keepsFirst reports whether a session keeps the message that came first in the first conversation of some messages. Those that it
// has sent and received behind one savepoint went with it, and leave nothing to keep.
func (s *modelSession) keepsFirst(messages []arrivedMessage) bool {
	ofFirst := slices.DeleteFunc(slices.Clone(messages), func(m arrivedMessage) bool { return m.to != messages[0].to })
	first := slices.MinFunc(ofFirst, func(a, b arrivedMessage) int { return cmp.Compare(a.position, b.position) })
	return slices.Contains(s.keptRows, first.position)
}

func overlap(some, others []int) bool {
	return slices.ContainsFunc(some, func(x int) bool { return slices.Contains(others, x) })
}

// goBack undoes what a session has done since it had done some deeds.
func (s *modelSession) goBack(deeds int) {
	for _, d := range s.deeds[deeds:] {
		s.kept = append(s.kept, d.received...)
		s.keptRows = append(s.keptRows, d.taken...)
	}
	s.deeds = s.deeds[:deeds]
}
