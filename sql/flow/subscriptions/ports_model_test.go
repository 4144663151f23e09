package subscriptions_test

import (
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// A port as the model knows it. Its order is "", "whole" or "keyed".
type modelPort struct {
	isThere                      bool
	state, order, host, onFailed string
	filter                       int // of filters
	holds                        map[string]*hold
}

// A hold is a key of an ordered port whose head failed.
type hold struct {
	attempts             int
	isDelayed, isWaiting bool // for its next attempt, for an operator
}

// A modelMessage is one that was published.
type modelMessage struct {
	id         int64
	kind, key  string
	deliveries []*modelDelivery // none: it is suspended, because nothing matched
	isGone     bool
}

// States of a delivery.
const (
	waiting   = "waiting"
	inHand    = "in the hands of a host"
	delayed   = "delayed"
	suspended = "suspended"
	over      = "over"
)

type modelDelivery struct {
	message      *modelMessage
	port, state  string
	attempts     int
	began, ended int  // the steps in which its transaction wrote first, and committed
	isStray      bool // its transaction was open across a change of definitions: its place in an order is not promised
	lease, item  int64
	// isOfKey says that it was claimed from the lane of its key, into which messages are moved as long as the key is held, and behind what
	// is there still.
	isOfKey bool
}

// Definitions as they are, or as an old snapshot sees them.
type definitions struct {
	ports       map[string]*modelPort
	members     []string // of the group
	groupFilter int
	groupState  string
	version     int // how often they have changed
}

func (d definitions) clone() definitions {
	ports := map[string]*modelPort{}
	for name, p := range d.ports {
		copied := *p
		ports[name] = &copied
	}
	d.ports, d.members = ports, slices.Clone(d.members)
	return d
}

// filters are AND groups joined by OR; $ is the application.
var filters = []string{
	`[[{"property": "MessageType", "operator": "=", "value": "$:a"}]]`,
	`[[{"property": "MessageType", "operator": "=", "value": "$:b"}, {"property": "urn:p#Key", "operator": "=", "value": "one"}]]`,
	`[[{"property": "MessageType", "operator": "=", "value": "$:a"}], [{"property": "MessageType", "operator": "=", "value": "$:b"}]]`,
	`[[{"property": "ReceivePortName", "operator": "=", "value": "$ in"}, {"property": "urn:p#Key", "operator": "<>", "value": "one"}]]`,
	`null`,
}

// matches says what each of filters asks.
func matches(filter int, m *modelMessage) bool {
	return []bool{m.kind == "a", m.kind == "b" && m.key == "one", m.kind == "a" || m.kind == "b", m.key != "one", false}[filter]
}

// route gives the ports that get a message.
func (d definitions) route(m *modelMessage) []string {
	var got []string
	for _, name := range portNames {
		p := d.ports[name]
		byGroup := d.groupState == "Started" && slices.Contains(d.members, name) && matches(d.groupFilter, m)
		if p.isThere && p.state != "Bound" && (matches(p.filter, m) || byGroup) {
			got = append(got, name)
		}
	}
	return got
}

// keyOf gives in which order of its port a delivery stands; of a port without an order in none.
func (d definitions) keyOf(x *modelDelivery) (key string, isOrdered bool) {
	switch d.ports[x.port].order {
	case "keyed":
		return x.message.key, true
	case "whole":
		return "", true
	}
	return "", false
}

// isBlocked reports whether something else has to happen before a waiting delivery is claimed.
func (m *model) isBlocked(x *modelDelivery) bool {
	p := m.ports[x.port]
	key, isOrdered := m.keyOf(x)
	if !isOrdered {
		return false
	}
	h := p.holds[key]
	return h != nil && (h.isDelayed || h.isWaiting)
}

// misses gives a delivery that a host has to get and has not. In an order what was moved behind others waits until these are sent.
func (m *model) misses(host string, claimed []*modelDelivery) *modelDelivery {
	for _, x := range m.deliveries {
		p := m.ports[x.port]
		if x.state == waiting && p.isThere && p.state == "Started" && p.host == host && !m.isBlocked(x) && !slices.Contains(claimed, x) &&
			!slices.ContainsFunc(claimed, func(other *modelDelivery) bool { return m.isBehind(x, other) }) {
			return x
		}
	}
	return nil
}

// isBehind reports whether two deliveries are of one order, whose key is held, or was and has its own lane still.
func (m *model) isBehind(x, other *modelDelivery) bool {
	key, isOrdered := m.keyOf(x)
	otherKey, _ := m.keyOf(other)
	return isOrdered && x.port == other.port && key == otherKey && (m.holdOf(x) != nil || other.isOfKey)
}

// checkClaim holds what a host was given against what it had to get, and the order in which.
func (m *model) checkClaim(r *rapid.T, host string, claimed []*modelDelivery) {
	if x := m.misses(host, claimed); x != nil {
		r.Fatalf("host %s did not get message %d for port %s, which waits", host, x.message.id, x.port)
	}
	for i, x := range claimed {
		p := m.ports[x.port]
		switch {
		case x.state != waiting:
			r.Fatalf("message %d for port %s was claimed, which is %s", x.message.id, x.port, x.state)
		case !p.isThere || p.state != "Started" || p.host != host:
			r.Fatalf("message %d was claimed by host %s for port %s, which is %+v", x.message.id, host, x.port, p)
		case m.isBlocked(x):
			r.Fatalf("message %d was claimed for port %s, whose key is held", x.message.id, x.port)
		}
		key, isOrdered := m.keyOf(x)
		for _, before := range m.deliveries {
			other, _ := m.keyOf(before)
			if !isOrdered || before.port != x.port || other != key || before.state != waiting || before.isStray || x.isStray || before.ended >= x.began {
				continue
			}
			if place := slices.Index(claimed, before); place < 0 || place > i {
				r.Fatalf("message %d was claimed for port %s before %d, which stands before it", x.message.id, x.port, before.message.id)
			}
		}
	}
}

// fail takes that a delivery of a lease failed, and what the database said became of it and of what was behind it.
func (m *model) fail(r *rapid.T, x *modelDelivery, isRetried bool, outcomes map[int64]string) {
	p := m.ports[x.port]
	key, isOrdered := m.keyOf(x)
	attempts := &x.attempts
	if isOrdered {
		if p.holds[key] == nil {
			p.holds[key] = &hold{}
		}
		attempts = &p.holds[key].attempts
	}
	*attempts++
	isOver := !isRetried || *attempts > 1
	want := "RETRY"
	switch {
	case isOrdered && isOver && p.onFailed == "stop":
		want = "STOPPED"
	case isOrdered && (!isOver || p.onFailed != "park"):
		want = "HELD"
	case isOver:
		want = "SUSPENDED"
	}
	if got := outcomes[x.item]; got != want {
		r.Fatalf("message %d failed at port %s: %s, want %s", x.message.id, x.port, got, want)
	}
	switch want {
	case "RETRY":
		x.state = delayed
	case "SUSPENDED":
		x.state = suspended
		if isOrdered {
			delete(p.holds, key)
		}
	default:
		for _, y := range m.deliveries {
			if y.state == inHand && outcomes[y.item] != "" {
				y.state = waiting
			}
		}
		h := p.holds[key]
		h.isDelayed, h.isWaiting = !isOver, isOver
		if isOver {
			x.state = suspended
		}
		if want == "STOPPED" {
			p.state = "Stopped"
		}
	}
}

// resume takes that suspended messages are tried again, and gives how many.
func (m *model) resume() int {
	resumed := 0
	for _, message := range m.messages {
		if len(message.deliveries) == 0 && !message.isGone {
			if ports := m.route(message); len(ports) > 0 {
				m.deliver(message, ports)
				resumed++
			}
		}
	}
	for _, x := range m.deliveries {
		p := m.ports[x.port]
		if x.state != suspended || !p.isThere {
			continue
		}
		resumed++
		x.state = waiting
		if h := m.holdOf(x); h != nil && h.isWaiting {
			*h = hold{}
			continue
		}
		x.attempts, x.began, x.ended = 0, m.step, m.step
	}
	return resumed
}

// terminate takes that suspended messages are given up, and gives how many.
func (m *model) terminate() int {
	terminated := 0
	for _, message := range m.messages {
		if len(message.deliveries) == 0 && !message.isGone {
			message.isGone = true
			terminated++
		}
	}
	for _, x := range m.deliveries {
		if x.state == suspended {
			x.state = over
			terminated++
			if h := m.holdOf(x); h != nil && h.isWaiting {
				*h = hold{}
			}
		}
	}
	return terminated
}

func (m *model) holdOf(x *modelDelivery) *hold {
	key, isOrdered := m.keyOf(x)
	if !isOrdered {
		return nil
	}
	return m.ports[x.port].holds[key]
}

// complete takes that a delivery was sent: the next one of its key begins anew.
func (m *model) complete(x *modelDelivery) {
	x.state = over
	if h := m.holdOf(x); h != nil {
		h.attempts = 0
	}
}

// tryNow takes that a port is started, or was: what waits for its next attempt is tried at once.
func (m *model) tryNow(port string) {
	for _, x := range m.deliveries {
		if x.port == port && x.state == delayed {
			x.state = waiting
		}
	}
	for _, h := range m.ports[port].holds {
		h.isDelayed = false
	}
}

// deliver makes the deliveries of a message that is new, or that matches something now.
func (m *model) deliver(message *modelMessage, ports []string) {
	if !slices.Contains(m.messages, message) {
		m.messages = append(m.messages, message)
	}
	for _, name := range ports {
		x := &modelDelivery{message: message, port: name, state: waiting, began: m.step, ended: m.step}
		message.deliveries = append(message.deliveries, x)
		m.deliveries = append(m.deliveries, x)
	}
}

// suspensions counts what an operator has to find.
func (m *model) suspensions() int {
	n := 0
	for _, message := range m.messages {
		if len(message.deliveries) == 0 && !message.isGone {
			n++
		}
	}
	for _, x := range m.deliveries {
		if x.state == suspended {
			n++
		}
	}
	return n
}

// waitsFor reports whether deliveries keep a port from getting another order or host.
func (m *model) waitsFor(port string) bool {
	return slices.ContainsFunc(m.deliveries, func(x *modelDelivery) bool {
		h := m.holdOf(x)
		return x.port == port && (x.state == waiting || x.state == inHand || x.state == delayed || (x.state == suspended && h != nil && h.isWaiting))
	})
}

// mayStray reports whether deliveries of a port may be where it had its lanes before.
func (m *model) mayStray(port string) bool {
	return slices.ContainsFunc(m.deliveries, func(x *modelDelivery) bool {
		return x.port == port && x.isStray && x.state != over
	})
}

// find gives the delivery that a host has claimed.
func (m *model) find(r *rapid.T, id int64, port string) *modelDelivery {
	i := slices.IndexFunc(m.deliveries, func(x *modelDelivery) bool {
		return x.message.id == id && x.port == port && x.state != over
	})
	if i < 0 {
		r.Fatalf("message %d was claimed for port %s, which has not to get it, or has got it", id, port)
	}
	return m.deliveries[i]
}

func (m *model) text(s string) string { return strings.ReplaceAll(s, "$", m.application) }
