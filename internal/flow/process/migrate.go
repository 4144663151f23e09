package process

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Migrated is an instance as it stands in another version of its orchestration.
type Migrated struct {
	State  json.RawMessage
	Waits  []Wait
	Timers []Timer
	At     []string // paths of the shapes where it stands
}

// migration takes an instance from one version to another.
type migration struct {
	from, to *Program
	found    map[int]*shape // counterparts, by the shapes of from
}

// Migrate gives an instance of this version as it stands in another one. It is a [*Fault] with the place and a remedy where the state does
// not fit: nothing of an instance is guessed. Give the instance an event [Resumed] in the new version: it sets times and begins branches
// that it did not have.
func (p *Program) Migrate(to *Program, snapshot json.RawMessage) (Migrated, error) {
	m := &migration{from: p, to: to, found: map[int]*shape{}}
	was, err := p.readState(snapshot)
	if err != nil {
		return Migrated{}, err
	}
	// Messages of a convoy find its instances by their key: one that has none, or another, would get no message any more.
	if isConvoy(to.activations) &&
		!slices.EqualFunc(p.activations, to.activations, func(a, b Activation) bool { return slices.Equal(a.Convoy, b.Convoy) }) {
		return Migrated{}, &Fault{
			Code: codeVersion, Message: "messages are brought together into instances by other properties",
			Remedy: "keep the correlation set of the first receive, or have such instances end with their version",
		}
	}
	r := &run{program: to, state: &state{Version: to.version, Serial: was.Serial}}
	activities := (&run{program: p, state: was}).live().activities
	root, fault := m.node(r, was.Root, nil)
	if fault != nil {
		return Migrated{}, fault
	}
	r.state.Root = root
	written, err := json.Marshal(r.state)
	if err != nil {
		return Migrated{}, fmt.Errorf("write the state of an instance: %w", err)
	}
	if r.state, err = to.readState(written); err != nil {
		return Migrated{}, err
	}
	if fault := r.standsWell(r.state.Root); fault != nil {
		return Migrated{}, fault
	}
	live := r.live()
	if !maps.Equal(activities, live.activities) {
		return Migrated{}, errForeignState
	}
	return Migrated{State: written, Waits: r.waits(), Timers: live.timers, At: live.at}, nil
}

func isConvoy(activations []Activation) bool {
	return slices.ContainsFunc(activations, func(a Activation) bool { return len(a.Convoy) > 0 })
}

// standsWell reports a receive at which the instance stands and which it could not wait for.
func (r *run) standsWell(n *node) *Fault {
	if rec, is := n.shape.act.(*receive); is && n.Step == 0 {
		if _, fault := r.waitOf(n.shape, n); fault != nil && !rec.isActivating {
			return &Fault{
				Code: codeVersion, Path: n.shape.place, Message: "it would stand at this receive: " + fault.Message,
				Remedy: "follow a set that the instance has, or have such instances end with their version",
			}
		}
	}
	for _, kid := range n.Kids {
		if kid != nil {
			if fault := r.standsWell(kid); fault != nil {
				return fault
			}
		}
	}
	return nil
}

// node gives a node as one of the other version.
func (m *migration) node(r *run, n, parent *node) (*node, *Fault) {
	if n.Subject != nil || len(n.Left) > 0 || n.Step >= isTakingBack && isScope(n) {
		return nil, &Fault{
			Code: codeVersion, Path: n.shape.place, Message: "the instance is taking back what it did",
			Remedy: "migrate it when that has ended",
		}
	}
	to, fault := m.counterpart(n.shape)
	if fault != nil {
		return nil, fault
	}
	if to.kind != n.shape.kind {
		return nil, &Fault{
			Code: codeVersion, Path: n.shape.place, Message: fmt.Sprintf("%s is a %s now", n.shape.describe(), to.kind),
			Remedy: "keep the kind of shapes at which instances stand, or have such instances end with their version",
		}
	}
	made := &node{
		Shape: to.id, Step: n.Step, ID: n.ID, At: n.At, List: n.List, Fault: n.Fault, shape: to, parent: parent,
	}
	if made.Frames, fault = m.frames(n, to); fault != nil {
		return nil, fault
	}
	if made.Done, fault = m.committed(n.Done); fault != nil {
		return nil, fault
	}
	if fault := m.kids(r, n, made); fault != nil {
		return nil, fault
	}
	return made, m.settle(n, made)
}

// kids gives the node those of the other version.
func (m *migration) kids(r *run, n, made *node) *Fault {
	switch n.shape.act.(type) {
	case *parallel:
		if n.Step == 0 {
			return nil
		}
		made.Kids = make([]*node, len(made.shape.children))
		isOld := map[*shape]bool{}
		for i, kid := range n.Kids {
			branch, fault := m.counterpart(n.shape.children[i])
			if fault != nil && kid != nil {
				return fault
			}
			if fault != nil {
				continue // it had ended
			}
			isOld[branch] = true
			if kid == nil {
				continue
			}
			if made.Kids[slices.Index(made.shape.children, branch)], fault = m.node(r, kid, made); fault != nil {
				return fault
			}
		}
		for i, branch := range made.shape.children {
			if !isOld[branch] {
				made.Kids[i] = r.begin(branch, made)
			}
		}
		return nil
	case *listen:
		if n.Step == 0 {
			return m.branches(r, n, made)
		}
	}
	for _, kid := range n.Kids {
		migrated, fault := m.node(r, kid, made)
		if fault != nil {
			return fault
		}
		made.Kids = append(made.Kids, migrated)
	}
	return nil
}

// branches gives a listen that has not chosen those of the other version: it goes on waiting by the old ones, and begins the new ones.
func (m *migration) branches(r *run, n, made *node) *Fault {
	if len(n.Kids) == 0 {
		return nil
	}
	old := map[*shape]*node{}
	for i, kid := range n.Kids {
		if branch, fault := m.counterpart(n.shape.children[i]); fault == nil {
			migrated, fault := m.node(r, kid, made)
			if fault != nil {
				return fault
			}
			old[branch] = migrated
		}
	}
	for _, s := range made.shape.children {
		branch := old[s]
		if branch == nil {
			branch = r.begin(s, made)
			branch.Kids = []*node{r.begin(s.children[0], branch)}
		}
		made.Kids = append(made.Kids, branch)
	}
	return nil
}

// settle makes what a node counts that of the other version.
func (m *migration) settle(n, made *node) *Fault {
	children := made.shape.children
	place := func() int {
		return slices.IndexFunc(children, func(s *shape) bool { return s.id == made.Kids[0].Shape })
	}
	switch a := made.shape.act.(type) {
	case *sequence:
		switch {
		case len(made.Kids) > 0:
			made.Step = place()
		case n.Step >= len(n.shape.children):
			made.Step = len(children)
		case n.Step > 0:
			next, fault := m.counterpart(n.shape.children[n.Step])
			if fault != nil {
				return fault
			}
			made.Step = slices.Index(children, next)
		}
	case *decide, *listen:
		if n.Step > 0 && len(made.Kids) > 0 {
			made.Step = place() + 1
		}
	case *forEach:
		if len(made.Kids) > a.parallel {
			return &Fault{
				Code: codeVersion, Path: n.shape.place,
				Message: fmt.Sprintf("%d elements are in work, and %d may be at once now", len(made.Kids), a.parallel),
				Remedy:  "keep parallel as large, or migrate the instance when fewer are in work",
			}
		}
	case *scope:
		if a.timeout == nil {
			made.ID, made.At = "", nil
		}
	case *aggregate:
		if a.after == nil {
			made.ID, made.At = "", nil
		}
	case *call:
		if was, is := n.shape.act.(*call); is && was.name != a.name {
			return &Fault{
				Code: codeVersion, Path: n.shape.place, Message: fmt.Sprintf("it calls %s now, and the instance is within %s", a.name, was.name),
				Remedy: "keep the call, or have such instances end with their version",
			}
		}
	}
	return nil
}

// committed gives scopes that have ended, and can be taken back, as those of the other version.
func (m *migration) committed(done []*committed) ([]*committed, *Fault) {
	var made []*committed
	for _, c := range done {
		to, fault := m.counterpart(m.from.shapes[c.Shape])
		if fault != nil {
			return nil, fault
		}
		another := &committed{Shape: to.id, Serial: c.Serial}
		if another.Frames, fault = m.framesOf(c.Frames); fault != nil {
			return nil, fault
		}
		if another.Inner, fault = m.committed(c.Inner); fault != nil {
			return nil, fault
		}
		made = append(made, another)
	}
	return made, nil
}

func (m *migration) framesOf(frames []*frame) (made []*frame, fault *Fault) {
	for _, f := range frames {
		owner, fault := m.counterpart(m.from.shapes[f.Owner])
		if fault != nil {
			return nil, fault
		}
		if owner.names == nil {
			continue // it declares nothing any more
		}
		another, fault := m.frame(f, owner)
		if fault != nil {
			return nil, fault
		}
		made = append(made, another)
	}
	return made, nil
}

// frames gives the values of what a node declares, and first values where it declares something for the first time.
func (m *migration) frames(n *node, to *shape) ([]*frame, *Fault) {
	made, fault := m.framesOf(n.Frames)
	if fault != nil || to.names == nil || slices.ContainsFunc(made, func(f *frame) bool { return f.Owner == to.id }) {
		return made, fault
	}
	return append(made, firstFrame(to)), nil
}
