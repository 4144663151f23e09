package host

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/orchestrator"
	"github.com/parley-broker/parley/internal/flow/pipeline"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

const (
	// hungAfter is after how long without an outcome a port counts as one whose destination hangs.
	hungAfter = 5 * time.Second
	// orderedRuns is how many lanes of the keys of an order are worked on at once.
	orderedRuns = 16
	// askingRuns bounds how many messages of a port that asks another system are sent at once. The settings of its adapter bound them too.
	askingRuns = 128
	// smallUnit is the number of messages below which a lease is not divided, so that they are sent side by side.
	smallUnit = 8
)

// outlet is a send port in one definition: its sender and pipeline. It is closed when it was replaced and nothing uses it any more.
type outlet struct {
	fingerprint  string
	definition   sendPort
	sender       adapter.Sender
	pipeline     *pipeline.Send
	response     *pipeline.Receive           // of answers; nil of a port that does not respond
	responseMaps *portMaps                   // of answers
	maps         *portMaps                   // nil: it has none
	process      *orchestrator.Orchestration // of an orchestration, which has neither sender nor pipeline
	users        int                         // guarded by the mutex of the ports
	isReplaced   bool
}

// port is a send port on this node. Its fields are guarded by the mutex of the ports. An orchestration has two: one for what begins
// instances, and one for what is for instances, with a budget of its own.
type port struct {
	name          string
	isOfInstances bool
	outlet        *outlet // nil where it cannot be served
	inHand        int     // messages without an outcome
	running       int     // batches that are being sent
	waiting       []unit
	progress      time.Time // when it last had an outcome, or began to have something in its hands
	isFailed      bool      // whether the last outcome was a failure
	reported      time.Time // when the database was notified last that something was sent
}

// unit has messages that are sent in one go: some of an unordered port, or all of a lease of an ordered one.
type unit struct {
	lease *lease
	items []*flowstore.Claimed
}

func (u unit) numbers() []int64 {
	numbers := make([]int64, len(u.items))
	for i, item := range u.items {
		numbers[i] = item.Item
	}
	return numbers
}

// ports are the send ports of a host on this node.
type ports struct {
	host *Host
	room *signal // sent when something has left the hands of the node

	mu     sync.Mutex
	byName map[string]*port // by key
	inHand int
	work   sync.WaitGroup
	ended  chan struct{} // closed when nothing more may begin
	isOver bool
}

func newPorts(h *Host) *ports {
	return &ports{host: h, room: newSignal(), byName: map[string]*port{}, ended: make(chan struct{})}
}

// use makes the senders of a configuration, and closes those that it has no more.
func (ps *ports) use(c *configuration) {
	retired := []*outlet{}
	var renewed []string
	for _, name := range names(c.SendPorts) {
		wanted := c.SendPorts[name]
		fingerprint := c.fingerprint(wanted, slices.Concat(wanted.Maps, wanted.ResponseMaps), wanted.pipelines()...)
		ps.mu.Lock()
		p, wasKnown := ps.byName[name]
		if !wasKnown {
			p = &port{name: name}
			ps.byName[name] = p
		}
		isSame := p.outlet != nil && p.outlet.fingerprint == fingerprint
		ps.mu.Unlock()
		if isSame {
			continue
		}
		var made *outlet
		if wanted.State == "Started" {
			var err error
			made, err = ps.host.makeOutlet(name, wanted, c)
			if ps.host.problems.set(problemPort, "send port", name, err) && err != nil {
				ps.host.logger.Warn("the port is left out", "send_port", name, "error", err)
			}
		} else {
			ps.host.problems.set(problemPort, "send port", name, nil)
		}
		if made != nil {
			made.fingerprint = fingerprint
			if wasKnown {
				renewed = append(renewed, name)
			}
		}
		ps.mu.Lock()
		retired = append(retired, ps.replace(p, made)...)
		ps.mu.Unlock()
	}
	retired = append(retired, ps.useOrchestrations(c)...)
	ps.mu.Lock()
	for name, p := range ps.byName {
		_, isPort := c.SendPorts[name]
		_, isProcess := c.Orchestrations[p.name]
		if !isPort && !isProcess {
			retired = append(retired, ps.replace(p, nil)...)
			ps.host.problems.set(problemPort, "send port", name, nil)
			if p.inHand == 0 {
				delete(ps.byName, name)
			}
		}
	}
	ps.mu.Unlock()
	ps.close(retired)
	ps.tryAgain(renewed)
	ps.room.send()
}

// replace gives a port another outlet, and returns the old one where nothing uses it. The caller holds mu.
func (ps *ports) replace(p *port, by *outlet) []*outlet {
	old := p.outlet
	p.outlet = by
	if old == nil {
		return nil
	}
	old.isReplaced = true
	if old.users > 0 {
		return nil
	}
	return []*outlet{old}
}

// close closes outlets.
func (ps *ports) close(outlets []*outlet) {
	for _, o := range outlets {
		if o.sender == nil {
			continue
		}
		if err := guarded(o.sender.Close); err != nil {
			ps.host.logger.Warn("a sender could not be closed", "adapter", o.definition.Adapter, "error", err)
		}
	}
}

// makeOutlet makes the sender and the pipeline of a port.
func (h *Host) makeOutlet(name string, p sendPort, c *configuration) (*outlet, error) {
	kind, known := h.server.config.Adapters.Find(p.Adapter)
	if !known || kind.NewSender == nil {
		return nil, fmt.Errorf("there is no adapter %q that sends; there are %v", p.Adapter, h.server.config.Adapters.Names())
	}
	permission := h.server.config.Permission
	if err := checkSecrets(p.Secrets, permission); err != nil {
		return nil, err
	}
	if kind.Check != nil {
		if found := kind.Check(adapter.Send, p.Address, p.Settings, names(p.Secrets)); len(found) > 0 {
			return nil, fmt.Errorf("%v: %s. %s", found[0].Path, found[0].Message, found[0].Remedy)
		}
	}
	if p.opening.err != nil {
		return nil, p.opening.err
	}
	definition, err := c.definition(p.Pipeline)
	if err != nil {
		return nil, err
	}
	compiled, err := pipeline.CompileSend(definition, c.types, p.PipelineSettings)
	if err != nil {
		return nil, err
	}
	made := &outlet{definition: p, pipeline: compiled}
	if made.maps, err = h.mapsOf(c, p.Maps, codeSendMap); err != nil {
		return nil, err
	}
	if made.response, err = h.compileAnswers(kind, p, c); err != nil {
		return nil, err
	}
	if made.responseMaps, err = h.mapsOf(c, p.ResponseMaps, codeReceiveMap); err != nil {
		return nil, err
	}
	err = guarded(func() error {
		made.sender, err = kind.NewSender(adapter.Endpoint{
			Name: name, Address: p.Address, Settings: p.Settings, Secret: secretsOf(p.Secrets, permission), Pool: h.pool, Role: c.Host.Role,
			Permission: permission, Node: h.server.config.Node, Logger: h.logger.With("send_port", name, "adapter", p.Adapter),
			Responds: p.Responds,
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return made, nil
}

// isClosed reports whether the schedule of a port keeps it from sending. The caller holds mu.
func (ps *ports) isClosed(p *port) bool {
	if p.outlet == nil {
		return false
	}
	isOpen, _ := p.outlet.definition.opening.at(ps.host.now())
	return !isOpen
}

// giveBack gives messages back of which none was tried.
func (ps *ports) giveBack(u unit) {
	if len(u.items) > 0 {
		ps.host.release(u.lease.number, u.numbers())
		ps.left(keyOf(u.lease), len(u.items), false)
	}
}

// left takes that messages of a port have left the hands of the node. isOutcome says that they were tried.
func (ps *ports) left(key string, messages int, isOutcome bool) {
	ps.mu.Lock()
	if p := ps.byName[key]; p != nil {
		p.inHand -= messages
		if isOutcome {
			p.progress = time.Now()
		}
	}
	ps.inHand -= messages
	ps.mu.Unlock()
	ps.room.send()
}

// enter takes claimed messages of a port, and begins to send them where it may.
func (ps *ports) enter(l *lease) {
	ps.mu.Lock()
	p := ps.portOf(l)
	if p.inHand == 0 {
		p.progress = time.Now()
	}
	p.inHand += len(l.items)
	ps.inHand += len(l.items)
	p.waiting = append(p.waiting, p.outlet.units(l)...)
	isServed := p.outlet != nil
	ps.begin(p)
	ps.mu.Unlock()
	if !isServed {
		ps.giveBackAll(p)
	}
}

// giveBackAll gives back what waits for a port.
func (ps *ports) giveBackAll(p *port) {
	ps.mu.Lock()
	back := p.waiting
	p.waiting = nil
	ps.mu.Unlock()
	for _, u := range back {
		ps.giveBack(u)
	}
}

// begin begins to work on leases that wait for a port, as many as it may at once. The caller holds mu.
func (ps *ports) begin(p *port) {
	for len(p.waiting) > 0 && p.outlet != nil && p.running < p.outlet.runs() && !ps.isOver {
		u, o := p.waiting[0], p.outlet
		p.waiting = p.waiting[1:]
		p.running++
		o.users++
		ps.work.Go(func() {
			if o.process != nil {
				newStepping(ps.host, p, o, u).work()
			} else {
				newRun(ps.host, p, o, u).work()
			}
			ps.mu.Lock()
			p.running--
			o.users--
			retired := []*outlet{}
			if o.isReplaced && o.users == 0 {
				retired = append(retired, o)
			}
			ps.begin(p)
			ps.mu.Unlock()
			ps.close(retired)
		})
	}
}

// runs is how many leases of the port are worked on at once.
func (o *outlet) runs() int {
	switch {
	case o.definition.IsOrdered:
		return max(o.definition.Concurrency, orderedRuns)
	case o.asksAnother():
		return min(max(o.definition.Concurrency, 1)*max(o.definition.Batch, 1), askingRuns)
	}
	return max(o.definition.Concurrency, 1)
}

// asksAnother reports whether a port has answers of another system, each of which somebody may wait for. Its messages are sent singly, so
// that no answer waits for those of the same batch; the completer records those together that come at the same time.
func (o *outlet) asksAnother() bool {
	if !o.definition.Responds || o.definition.IsOrdered {
		return false
	}
	in, is := o.sender.(adapter.TransactionSender)
	return !is || !in.InTransaction()
}

// units divides a lease into what is sent in one go. An outlet of nil sends nothing.
func (o *outlet) units(l *lease) []unit {
	all := make([]*flowstore.Claimed, len(l.items))
	for i := range l.items {
		all[i] = &l.items[i]
	}
	if o == nil || o.definition.IsOrdered || o.process != nil && l.items[0].OrderKey != nil {
		return []unit{{l, all}}
	}
	if o.asksAnother() {
		each := make([]unit, len(all))
		for i := range all {
			each[i] = unit{l, all[i : i+1]}
		}
		return each
	}
	each := min(max((len(all)+o.runs()-1)/o.runs(), smallUnit), max(o.definition.Batch, 1))
	units := []unit{}
	for part := range slices.Chunk(all, each) {
		units = append(units, unit{l, part})
	}
	return units
}
