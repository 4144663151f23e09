package process

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

// isState reports whether a node can be one of the shape.
func (s *shape) isState(n *node) bool {
	isChild := func(kid *node, among []*shape) bool {
		for _, child := range among {
			if kid != nil && kid.Shape == child.id {
				return true
			}
		}
		return false
	}
	if n.Subject != nil { // a scope that is taken back
		for _, kid := range n.Kids {
			if kid == nil || kid.Subject == nil && !isChild(kid, s.children) {
				return false
			}
		}
		return len(n.Kids) <= 1
	}
	switch a := s.act.(type) {
	case *sequence:
		if len(n.Kids) > 1 || n.Step > len(s.children) || len(n.Kids) == 1 && n.Step == len(s.children) {
			return false
		}
		return len(n.Kids) == 0 || isChild(n.Kids[0], s.children[n.Step:n.Step+1])
	case *parallel:
		if n.Step == 0 {
			return len(n.Kids) == 0
		}
		for i, kid := range n.Kids {
			if len(n.Kids) != len(s.children) || kid != nil && kid.Shape != s.children[i].id {
				return false
			}
		}
		return n.Step == 1
	case *forEach:
		for _, kid := range n.Kids {
			if !isChild(kid, s.children) {
				return false
			}
		}
		return n.Step <= len(n.List)+1 && len(n.Kids) <= a.parallel
	case *listen:
		if n.Step == 0 {
			return len(n.Kids) == 0 || len(n.Kids) == len(s.children) && a.areWaiting(s, n)
		}
		return n.Step <= len(s.children) && len(n.Kids) == 1 && isChild(n.Kids[0], s.children[n.Step-1:n.Step])
	case *scope:
		return a.isState(n)
	case *compensate:
		return len(n.Kids) <= 1 && (len(n.Kids) == 0 || n.Kids[0] != nil && n.Kids[0].Subject != nil)
	}
	return len(n.Kids) <= 1 && (len(n.Kids) == 0 || isChild(n.Kids[0], s.children))
}
