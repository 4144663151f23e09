package host

import (
	"time"

	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// ofInstances ends the key of what is for instances of an orchestration; no name has it.
const ofInstances = "#"

// key is the name under which the node counts a port, and under which a claim passes it by.
func (p *port) key() string {
	if p.isOfInstances {
		return p.name + ofInstances
	}
	return p.name
}

// keyOf gives the key of the port that a lease is of.
func keyOf(l *lease) string {
	first := &l.items[0]
	isOfProcess := first.Stage == flowstore.StageProcess || first.Stage == flowstore.StageKilled
	if isOfProcess && first.OrderKey != nil && *first.OrderKey != "" {
		return first.SendPort + ofInstances
	}
	return first.SendPort
}

// port gives a port, and makes it where there is none. The caller holds mu.
func (ps *ports) port(name string, isOfInstances bool) *port {
	p := &port{name: name, isOfInstances: isOfInstances}
	if found := ps.byName[p.key()]; found != nil {
		return found
	}
	ps.byName[p.key()] = p
	return p
}

// portOf gives the port of a lease. The caller holds mu.
func (ps *ports) portOf(l *lease) *port {
	name := l.items[0].SendPort
	return ps.port(name, keyOf(l) != name)
}

// limit is how many messages may be in the hands of the node for this host.
func (ps *ports) limit() int {
	c := ps.host.settings.Load()
	if c == nil {
		return 0
	}
	return max(c.Host.InProcessPerCPU*processors, 1)
}

// isHung reports whether a port has something in its hands and no outcome for long. The caller holds mu.
func (p *port) isHung(now time.Time) bool { return p.inHand > 0 && now.Sub(p.progress) > hungAfter }

// budget bounds a claim.
type budget struct {
	room        int      // messages of all kinds
	ofInstances int      // messages for instances, of which a quarter of the limit is kept free of all others
	passedBy    []string // ports from which nothing is claimed, by their keys
	others      []string // all that is not for instances
}

// forInstances leaves what may be claimed when nothing else may: what ends the work that is there comes in while what begins more waits.
func (b budget) forInstances() budget {
	return budget{room: b.ofInstances, ofInstances: b.ofInstances, passedBy: append(b.passedBy, b.others...)}
}

// budget gives how much may be claimed now. Messages of ports whose destinations hang do not count against the others; each has a share of
// its own that bounds them.
func (ps *ports) budget(now time.Time) budget {
	limit := ps.limit()
	kept := max(limit/4, 1)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	b := budget{others: []string{""}} // the empty key is that of what operators resubmit
	busy, busyOfInstances, hasInstances := 0, 0, false
	for key, p := range ps.byName {
		isHung := p.isHung(now)
		share := max(limit/2, 1)
		taken := p.inHand
		if isHung {
			taken = 0
		}
		if p.isOfInstances {
			hasInstances = true
			busyOfInstances += taken
		} else {
			b.others = append(b.others, key)
			busy += taken
		}
		if p.outlet == nil || p.inHand >= share || isHung || ps.isClosed(p) {
			b.passedBy = append(b.passedBy, key)
		}
	}
	b.room = limit - busy - max(busyOfInstances-kept, 0)
	if hasInstances {
		b.ofInstances = max(limit-busy, 0) + kept - busyOfInstances
	}
	return b
}

// giveBackHung gives back what waits, and is not begun, for ports whose destinations hang or whose schedules have closed.
func (ps *ports) giveBackHung(now time.Time) {
	ps.mu.Lock()
	back := []unit{}
	for _, p := range ps.byName {
		if p.isHung(now) || ps.isClosed(p) {
			back = append(back, p.waiting...)
			p.waiting = nil
		}
	}
	ps.mu.Unlock()
	for _, u := range back {
		ps.giveBack(u)
	}
}
