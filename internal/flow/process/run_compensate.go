package process

import (
	"cmp"
	"slices"
)

// takeBackOf takes back scopes that a node has of a list, the last one first.
func (r *run) takeBackOf(n *node, list *[]*committed) (outcome, *Fault) {
	for {
		if len(n.Kids) == 0 {
			if len(*list) == 0 {
				return hasEnded, nil
			}
			// It leaves the list before it begins: it is taken back once at most.
			last := (*list)[len(*list)-1]
			*list = (*list)[:len(*list)-1]
			s := r.program.shapes[last.Shape]
			n.Kids = []*node{{Shape: s.id, Subject: last, Frames: last.Frames, Done: last.Inner, shape: s, parent: n}}
		}
		reached, fault := r.advance(n.Kids[0])
		if fault != nil || reached != hasEnded {
			return reached, fault
		}
		n.Kids = nil
	}
}

// takeBack takes a scope back that has ended well: by its compensation, or by that of its inner scopes.
func (r *run) takeBack(n *node) (outcome, *Fault) {
	a, is := n.shape.act.(*scope)
	if !is {
		return waits, r.broken(errForeignState)
	}
	if len(n.Kids) == 0 && !r.pass(n.shape) {
		return hasStopped, nil
	}
	var reached outcome
	var fault *Fault
	if a.compensation != nil {
		reached, fault = r.only(n, a.compensation)
	} else {
		reached, fault = r.takeBackOf(n, &n.Done)
	}
	if fault == nil && reached == hasEnded {
		r.through(n.shape, "compensated")
	}
	return reached, fault
}

// commit keeps a scope that has ended well, where it can still be taken back.
func (r *run) commit(n *node, a *scope) {
	if a.compensation == nil && len(n.Done) == 0 {
		return
	}
	done := &committed{Shape: n.Shape, Serial: r.number(), Inner: n.Done}
	for _, f := range n.Frames {
		done.Frames = append(done.Frames, f.copied())
	}
	for around := n.parent; around != nil; around = around.parent {
		if isScope(around) {
			around.Done = append(around.Done, done.seenFrom(n.parent, around))
			return
		}
	}
}

// seenFrom gives a scope that has ended within a node as a node around it keeps it. Loops, calls and scopes between the two have values of
// their own, which go with it.
func (c *committed) seenFrom(n, around *node) *committed {
	seen := *c
	for ; n != around; n = n.parent {
		frames := make([]*frame, 0, len(n.Frames)+len(seen.Frames))
		for _, f := range n.Frames {
			frames = append(frames, f.copied())
		}
		seen.Frames = append(frames, seen.Frames...)
	}
	return &seen
}

// unended gives the scopes that have ended well within others that have not, in the order in which they ended. One whose compensation runs
// has none: its compensation stands for them.
func (n *node) unended() []*committed {
	var all []*committed
	var walk func(*node)
	walk = func(inner *node) {
		s, is := inner.shape.act.(*scope)
		if !is || inner.Subject == nil || s.compensation == nil {
			for _, done := range slices.Concat(inner.Done, inner.Left) {
				all = append(all, done.seenFrom(inner, n))
			}
		}
		for _, kid := range inner.Kids {
			if kid != nil {
				walk(kid)
			}
		}
	}
	for _, kid := range n.Kids {
		if kid != nil {
			walk(kid)
		}
	}
	return inOrder(all)
}

func inOrder(all []*committed) []*committed {
	slices.SortStableFunc(all, func(a, b *committed) int { return cmp.Compare(a.Serial, b.Serial) })
	return all
}

func (a *compensate) advance(r *run, n *node) (outcome, *Fault) {
	if n.Step == 0 {
		n.Step = 1
		source := n.parent
		for source != nil && source.Subject == nil && source.Step < inCatch || source != nil && !isScope(source) {
			source = source.parent
		}
		if source == nil {
			return waits, r.broken(errForeignState)
		}
		var left []*committed
		for _, done := range source.Done {
			if a.isAll || slices.Contains(a.scopes, done.Shape) {
				n.Done = append(n.Done, done)
			} else {
				left = append(left, done)
			}
		}
		source.Done = left
	}
	reached, fault := r.takeBackOf(n, &n.Done)
	if fault == nil && reached == hasEnded {
		r.through(n.shape, "")
	}
	return reached, fault
}

func isScope(n *node) bool {
	_, is := n.shape.act.(*scope)
	return is
}
