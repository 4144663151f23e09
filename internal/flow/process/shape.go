package process

import "slices"

// outcome is how far a shape has come.
type outcome uint8

const (
	hasEnded outcome = iota
	waits
	hasStopped // the whole run: suspended, terminated, or broken
)

// action runs a shape. A fault that it gives goes to the scopes around it.
type action interface {
	advance(r *run, n *node) (outcome, *Fault)
}

// shape is a part of a program: an element of a body, or a sequence of them.
type shape struct {
	id       int
	kind     string
	label    string   // its name, or that of the branch
	detail   string   // what the picture says of it
	place    string   // path within the orchestration
	path     []string // path within the definitions
	digest   string   // of what is written of it; empty of a sequence
	parent   *shape
	children []*shape
	names    *names // that it declares; each node of it has a frame of them
	act      action

	reads, fills   []reference // messages
	follows, inits []reference // correlation sets
	endsAlways     bool        // nothing comes behind it
}

// reference is a name with the shape that declares it.
type reference struct {
	owner *shape
	name  string
}

// receives gives the receives within a shape that no message begins an instance with, but for those of compensation.
func (s *shape) receives(yield func(*shape) bool) bool {
	if rec, is := s.act.(*receive); is && !rec.isActivating {
		return yield(s)
	}
	if sc, is := s.act.(*scope); is && sc.compensation != nil {
		for _, child := range s.children {
			if child != sc.compensation && !child.receives(yield) {
				return false
			}
		}
		return true
	}
	for _, child := range s.children {
		if !child.receives(yield) {
			return false
		}
	}
	return true
}

// stateful is an action whose nodes have another form than one child at most.
type stateful interface {
	isState(s *shape, n *node) bool
}

// isState reports whether a node can be one of the shape.
func (s *shape) isState(n *node) bool {
	if n.Subject != nil { // a scope that is taken back
		return len(n.Kids) == 0 || len(n.Kids) == 1 && (n.Kids[0].isOf(s.children...) || n.Kids[0] != nil && n.Kids[0].Subject != nil)
	}
	if special, is := s.act.(stateful); is {
		return special.isState(s, n)
	}
	return len(n.Kids) == 0 || len(n.Kids) == 1 && n.Kids[0].isOf(s.children...)
}

// isOf reports whether a node is one of some shapes.
func (n *node) isOf(shapes ...*shape) bool {
	return n != nil && slices.ContainsFunc(shapes, func(s *shape) bool { return s.id == n.Shape })
}

func (*sequence) isState(s *shape, n *node) bool {
	if len(n.Kids) == 0 {
		return n.Step <= len(s.children)
	}
	return len(n.Kids) == 1 && n.Step < len(s.children) && n.Kids[0].isOf(s.children[n.Step])
}

func (*parallel) isState(s *shape, n *node) bool {
	if n.Step == 0 {
		return len(n.Kids) == 0
	}
	for i, kid := range n.Kids {
		if len(n.Kids) != len(s.children) || kid != nil && !kid.isOf(s.children[i]) {
			return false
		}
	}
	return n.Step == 1
}

func (a *forEach) isState(s *shape, n *node) bool {
	for _, kid := range n.Kids {
		if !kid.isOf(s.children...) {
			return false
		}
	}
	return n.Step <= len(n.List)+1 && len(n.Kids) <= a.parallel
}

func (*listen) isState(s *shape, n *node) bool {
	if n.Step > 0 {
		return n.Step <= len(s.children) && len(n.Kids) == 1 && n.Kids[0].isOf(s.children[n.Step-1])
	}
	for i, kid := range n.Kids {
		if len(n.Kids) != len(s.children) || !kid.isOf(s.children[i]) || kid.Step != 0 || len(kid.Kids) != 1 {
			return false
		}
	}
	return true
}

func (*compensate) isState(_ *shape, n *node) bool {
	return len(n.Kids) == 0 || len(n.Kids) == 1 && n.Kids[0] != nil && n.Kids[0].Subject != nil
}
