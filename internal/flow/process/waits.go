package process

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// alive has the timers and activities of an instance, and where it stands.
type alive struct {
	timers     []Timer
	activities map[string]bool
	at         []string
}

func (r *run) live() alive {
	found := alive{activities: map[string]bool{}}
	var walk func(*node)
	walk = func(n *node) {
		if n.At != nil && n.ID != "" {
			found.timers = append(found.timers, Timer{ID: n.ID, At: *n.At})
		}
		if _, is := n.shape.act.(*activity); is && n.ID != "" {
			found.activities[n.ID] = true
		}
		hasKids := false
		for _, kid := range n.Kids {
			if kid != nil {
				hasKids = true
				walk(kid)
			}
		}
		if _, is := n.shape.act.(*sequence); !hasKids && !is {
			found.at = append(found.at, n.shape.place)
		}
	}
	walk(r.state.Root)
	return found
}

// waitOf gives the wait of a receive, as it is from a node on. It is a fault when a set has no values yet.
func (r *run) waitOf(s *shape, from *node) (Wait, *Fault) {
	a, is := s.act.(*receive)
	if !is {
		return Wait{}, r.broken(errForeignState)
	}
	sets := a.follow
	if a.isActivating {
		sets = a.initialise
	}
	wait := Wait{Receive: s.place, Equal: map[string]string{}, Filter: slices.Clone(a.must)}
	if len(a.filter) > 0 {
		wait.Filter = append(wait.Filter, a.filter[0]...)
	}
	inner := 0
	for _, set := range sets {
		values, fault := r.setValues(from, set, s.place)
		if fault != nil {
			return Wait{}, fault
		}
		maps.Copy(wait.Equal, values)
		inner = max(inner, from.frameOf(set.owner).ID)
	}
	wait.ID = s.place + "@" + strconv.Itoa(inner)
	return wait, nil
}

// waits gives the receives that the instance stands at or may still reach, whose correlation sets have values.
func (r *run) waits() []Wait {
	found := map[string]Wait{}
	add := func(s *shape, from *node, isOpen bool) {
		wait, fault := r.waitOf(s, from)
		if fault != nil || len(wait.Equal) == 0 {
			return
		}
		wait.IsOpen = isOpen || found[wait.ID].IsOpen
		found[wait.ID] = wait
	}
	reachableFrom(r.state.Root, add)
	all := make([]Wait, 0, len(found))
	for _, id := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[id])
	}
	return all
}

// reachableFrom gives the receives that a node stands at, and those to which a way leads from it.
func reachableFrom(n *node, add func(s *shape, from *node, isOpen bool)) {
	ahead := func(shapes ...*shape) {
		for _, s := range shapes {
			s.receives(func(rec *shape) bool {
				add(rec, n, false)
				return true
			})
		}
	}
	hasKids := false
	for _, kid := range n.Kids {
		if kid != nil {
			hasKids = true
			reachableFrom(kid, add)
		}
	}
	if n.Subject != nil {
		return
	}
	children := n.shape.children
	switch a := n.shape.act.(type) {
	case *receive:
		add(n.shape, n, n.Step == 0)
	case *sequence:
		from := n.Step
		if hasKids {
			from++
		}
		ahead(children[min(from, len(children)):]...)
	case *while, *aggregate:
		ahead(children...)
	case *forEach:
		if n.Step <= len(n.List) {
			ahead(children...)
		}
	case *scope:
		if n.Step <= inBody || n.Step == isBrokenOff {
			for _, handler := range a.catches {
				ahead(handler.block)
			}
		}
		if n.Step == 0 {
			ahead(a.body)
		}
	default:
		if !hasKids {
			ahead(children...)
		}
	}
}

// holds gives the messages of the box to which the state refers.
func (r *run) holds() []int64 {
	found := map[int64]bool{}
	ofFrame := func(f *frame) {
		for _, m := range f.Messages {
			found[m.ID] = true
		}
		for _, value := range f.Values {
			heldIn(value, found)
		}
	}
	var ofCommitted func(c *committed)
	ofCommitted = func(c *committed) {
		for _, f := range c.Frames {
			ofFrame(f)
		}
		for _, inner := range c.Inner {
			ofCommitted(inner)
		}
	}
	var walk func(n *node)
	walk = func(n *node) {
		for _, f := range n.Frames {
			ofFrame(f)
		}
		for _, value := range n.List {
			heldIn(value, found)
		}
		for _, c := range slices.Concat(n.Done, n.Left) {
			ofCommitted(c)
		}
		for _, kid := range n.Kids {
			if kid != nil {
				walk(kid)
			}
		}
	}
	walk(r.state.Root)
	delete(found, 0)
	return slices.Sorted(maps.Keys(found))
}

// heldIn finds the messages in a value of the state.
func heldIn(value json.RawMessage, found map[int64]bool) {
	if !bytes.Contains(value, []byte(`"`+messageKey+`"`)) {
		return
	}
	read, err := readJSON(value)
	if err != nil {
		return
	}
	var walk func(any)
	walk = func(value any) {
		switch v := value.(type) {
		case []any:
			for _, element := range v {
				walk(element)
			}
		case map[string]any:
			if message, is := v[messageKey].(map[string]any); is && len(v) == 1 {
				if number, is := message["id"].(json.Number); is {
					if id, err := number.Int64(); err == nil {
						found[id] = true
					}
				}
				return
			}
			for _, member := range v {
				walk(member)
			}
		}
	}
	walk(read)
}
