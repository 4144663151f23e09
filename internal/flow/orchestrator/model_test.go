package orchestrator_test

import (
	"fmt"
	"slices"
	"strings"
)

// A modelMessage is one that was published. Its body is a number, and a letter s where the instance that takes it suspends itself.
type modelMessage struct {
	id              int64
	kind, key, body string
	began           int // the step in which it was published
}

// A delivery is a message on its way: to an activation, to the convoy of its key, or to an instance.
type delivery struct {
	message      *modelMessage
	isConvoy     bool
	to           *modelInstance
	began, ended int // the steps in which its transaction wrote first, and committed; ended is 0 while it is open
	isInHand     bool
}

// key gives the order key by which the delivery is claimed.
func (d *delivery) key() string {
	switch {
	case d.to != nil:
		return fmt.Sprintf("i%d", d.to.number)
	case d.isConvoy:
		return "k" + d.message.key
	}
	return ""
}

// A modelInstance is one that is not over. A life takes an answer or a time-out, and then the next beginning of its key; a convoy takes
// three parts.
type modelInstance struct {
	number      int64 // 0 while it is not known
	isConvoy    bool
	key         string
	began       int
	phase       int // of a life 0 or 1, of a convoy how many parts it has
	before      int // the phase before the transaction, -1 of an instance that begins in it
	seen        []string
	isSuspended bool // where it stands
	isResumed   bool // an operator lets it go on
	isDue       bool // the time of its timer has come
	inbox       []inboxed
}

// inboxed is a message that an instance has not taken.
type inboxed struct {
	message    *modelMessage
	isOfConvoy bool
}

// isOpenFor reports whether the instance takes a message now.
func (i *modelInstance) isOpenFor(m *modelMessage) bool {
	if i.isConvoy {
		return m.kind == "part"
	}
	return m.kind == []string{"answer", "begin"}[i.phase]
}

// mayTake reports whether the instance takes a message now, or later.
func (i *modelInstance) mayTake(m *modelMessage) bool {
	return i.isOpenFor(m) || !i.isConvoy && i.phase == 0 && m.kind == "begin"
}

// waits gives how many receives are open, and how many others the instance may still reach.
func (i *modelInstance) waits() (open, others int) {
	switch {
	case i.isSuspended:
		return 0, 1
	case i.isConvoy || i.phase == 1:
		return 1, 0
	}
	return 1, 1
}

// stillTakes reports whether the database finds the instance by what it waits for: one that is just ending waits as it did before.
func (i *modelInstance) stillTakes(m *modelMessage) bool {
	if i.phase < 2 || i.isConvoy {
		return i.mayTake(m)
	}
	then := *i
	then.phase = i.before
	return i.before >= 0 && then.mayTake(m)
}

// take has the instance take a message; true: it is over.
func (i *modelInstance) take(m *modelMessage) bool {
	i.seen = append(i.seen, m.body)
	isLast := i.phase == 1
	if i.isConvoy {
		isLast = i.phase == 2
	}
	i.phase++
	i.isDue = false
	i.isSuspended = !isLast && strings.HasSuffix(m.body, "s")
	return isLast
}

// world is all instances of an application, what is on its way to them and what has become of messages.
type world struct {
	policy     string
	instances  []*modelInstance // in the order of their numbers
	deliveries []*delivery
	unread     []*modelMessage // they wait for an operator
	unrouted   []*modelMessage // the same: nobody asked for them
	results    []string
	step       int
}

// publish routes a message: a beginning begins a life, a part goes to its convoy, and each life that waits for it gets what it waits for.
// ended is 0 in a transaction that stays open.
func (w *world) publish(m *modelMessage, ended int) (sent []*delivery) {
	send := func(d *delivery) {
		d.message, d.began, d.ended = m, m.began, ended
		sent = append(sent, d)
	}
	if m.kind == "begin" {
		send(&delivery{})
	}
	if m.kind == "part" {
		send(&delivery{isConvoy: true})
	}
	for _, i := range w.instances {
		if !i.isConvoy && i.key == m.key && i.mayTake(m) {
			send(&delivery{to: i})
		}
	}
	w.deliveries = append(w.deliveries, sent...)
	return sent
}

// A turn is what one transaction does.
type turn struct {
	*world
	touched []*modelInstance // in the order in which they are met
	over    []*modelInstance
	missed  []func() // the fates of messages that instances have not read
	gone    []func() // the same, of messages for instances that were over before
}

// run has instances take deliveries of one lease in their order, as one transaction; woken are those that go on without a message.
func (w *world) run(batch []*delivery, woken []int64) {
	t := &turn{world: w}
	w.deliveries = slices.DeleteFunc(w.deliveries, func(d *delivery) bool { return slices.Contains(batch, d) })
	isFor := func(i *modelInstance) bool {
		return slices.Contains(woken, i.number) || slices.ContainsFunc(batch, func(d *delivery) bool {
			return d.to == i || d.isConvoy && i.isConvoy && d.message.key == i.key
		})
	}
	for _, i := range w.instances {
		i.before = i.phase
		if isFor(i) {
			t.touched = append(t.touched, i)
		}
	}
	for _, d := range batch {
		t.take(d)
	}
	for _, i := range t.touched {
		if slices.Contains(woken, i.number) || !i.isConvoy {
			t.advance(i)
		}
	}
	for _, i := range t.touched {
		if i.before < 0 && !slices.Contains(t.over, i) {
			w.instances = append(w.instances, i)
		}
	}
	for _, decide := range t.missed {
		decide()
	}
	w.instances = slices.DeleteFunc(w.instances, func(i *modelInstance) bool { return slices.Contains(t.over, i) })
	for _, decide := range t.gone {
		decide()
	}
}

// take gives a delivery to whom it is for.
func (t *turn) take(d *delivery) {
	m := d.message
	switch {
	case d.to != nil && !slices.Contains(t.touched, d.to):
		t.gone = append(t.gone, func() { t.decide(m, false, d.to) })
	case d.to != nil:
		d.to.inbox = append(d.to.inbox, inboxed{m, false})
	case !d.isConvoy:
		t.touched = append(t.touched, &modelInstance{key: m.key, seen: []string{m.body}, began: t.step, before: -1})
	default:
		for _, i := range t.touched { // the oldest that may take it
			if i.isConvoy && i.key == m.key && !slices.Contains(t.over, i) {
				i.inbox = append(i.inbox, inboxed{m, true})
				t.advance(i)
				return
			}
		}
		t.touched = append(t.touched, &modelInstance{isConvoy: true, key: m.key, seen: []string{m.body}, phase: 1, began: t.step, before: -1})
	}
}

// advance has an instance take what it can, and finds what it cannot take any more.
func (t *turn) advance(i *modelInstance) {
	if i.isSuspended && !i.isResumed || slices.Contains(t.over, i) {
		return
	}
	if i.isResumed {
		i.isResumed, i.isSuspended = false, false
	}
	if i.isDue {
		i.seen, i.phase, i.isDue = append(i.seen, "late"), 1, false
	}
	isOver := false
	for !i.isSuspended && !isOver {
		at := slices.IndexFunc(i.inbox, func(b inboxed) bool { return i.isOpenFor(b.message) })
		if at < 0 {
			break
		}
		m := i.inbox[at].message
		i.inbox = slices.Delete(i.inbox, at, at+1)
		isOver = i.take(m)
	}
	if i.isSuspended {
		return
	}
	if isOver {
		t.over = append(t.over, i)
		t.results = append(t.results, strings.Join(i.seen, " "))
	}
	for _, b := range i.inbox {
		if isOver || !i.mayTake(b.message) {
			t.missed = append(t.missed, func() { t.decide(b.message, b.isOfConvoy, i) })
		}
	}
	i.inbox = slices.DeleteFunc(i.inbox, func(b inboxed) bool { return isOver || !i.mayTake(b.message) })
}

// terminate ends an instance where it stands.
func (w *world) terminate(i *modelInstance) {
	w.instances = slices.DeleteFunc(w.instances, func(other *modelInstance) bool { return other == i })
	for _, b := range i.inbox {
		w.decide(b.message, b.isOfConvoy, i)
	}
}

// decide is the fate of a message that an instance has not read.
func (w *world) decide(m *modelMessage, isOfConvoy bool, by *modelInstance) {
	given := []*delivery{}
	switch {
	case isOfConvoy && w.policy != "dead_letter":
		given = append(given, &delivery{isConvoy: true})
	case w.policy == "hand_over" && m.kind == "begin":
		given = append(given, &delivery{})
	case w.policy == "republish" && !isOfConvoy:
		for _, i := range w.instances {
			if !i.isConvoy && i != by && i.key == m.key && i.began > m.began && i.stillTakes(m) {
				given = append(given, &delivery{to: i})
			}
		}
	}
	for _, d := range given {
		d.message, d.began, d.ended = m, w.step, w.step
	}
	w.deliveries = append(w.deliveries, given...)
	if len(given) == 0 {
		w.unread = append(w.unread, m)
	}
}
