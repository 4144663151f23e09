package process

import (
	"maps"
	"slices"

	"github.com/parley-broker/parley/internal/flow/match"
)

// activate finds the receives that begin instances: those of the first shape.
func (c *compiler) activate(root *shape) {
	var allowed []*shape
	isConvoy := false
	if len(root.children) > 0 {
		switch first := root.children[0]; a := first.act.(type) {
		case *receive:
			allowed = []*shape{first}
		case *aggregate:
			allowed = first.children
		case *listen:
			_ = a
			for _, branch := range first.children {
				allowed = append(allowed, branch.children[:min(1, len(branch.children))]...)
			}
		case *parallel:
			isConvoy = true
			for _, branch := range first.children {
				allowed = append(allowed, branch.children[:min(1, len(branch.children))]...)
			}
		}
	}
	var activating []*shape
	for _, s := range c.program.shapes {
		a, is := s.act.(*receive)
		if !is || !a.isActivating || c.isCalled(s, root) {
			continue
		}
		if !slices.Contains(allowed, s) {
			c.problem(s.path, "Move it to the beginning, or into the first listen, or take activate out.",
				"a receive that activates is not the first shape")
			continue
		}
		activating = append(activating, s)
	}
	if len(activating) == 0 {
		return
	}
	for _, s := range allowed {
		if !slices.Contains(activating, s) {
			c.problem(s.path, "Give it activate: true, or move it behind.",
				"a branch of the first shape does not begin with a receive that activates")
		}
	}
	for _, s := range activating {
		c.activation(s, activating, isConvoy && len(activating) > 1)
	}
}

// isCalled reports whether a shape is one of an orchestration that is called.
func (c *compiler) isCalled(s, root *shape) bool {
	for ; s != nil && s != root; s = s.parent {
		if _, is := s.act.(*call); is {
			return true
		}
	}
	return false
}

func (c *compiler) activation(s *shape, all []*shape, isConvoy bool) {
	a, is := s.act.(*receive)
	if !is {
		return
	}
	activation := Activation{Receive: s.place}
	groups := a.filter
	if len(groups) == 0 {
		groups = [][]match.Predicate{nil}
	}
	for _, group := range groups {
		activation.Filter = append(activation.Filter, append(slices.Clone(a.must), group...))
	}
	for _, set := range a.initialise {
		if isConvoy || c.isFollowed(set.reference) {
			for _, property := range set.properties {
				if !slices.Contains(activation.Convoy, property) {
					activation.Convoy = append(activation.Convoy, property)
				}
			}
		}
	}
	c.program.activations = append(c.program.activations, activation)
	if !isConvoy {
		return
	}
	first, is := all[0].act.(*receive)
	if !is {
		return
	}
	isSame := slices.EqualFunc(first.initialise, a.initialise, func(x, y setReference) bool { return x.reference == y.reference })
	if len(a.initialise) == 0 || !isSame {
		c.problem(s.path, "Give all of them the same initialise.",
			"receives that begin an instance in parallel do not initialise the same correlation sets")
	}
}

// isFollowed reports whether a receive that does not begin instances follows a set.
func (c *compiler) isFollowed(set reference) bool {
	return slices.ContainsFunc(c.program.shapes, func(s *shape) bool {
		a, is := s.act.(*receive)
		if _, isOfAggregate := s.parentAct().(*aggregate); is && isOfAggregate && slices.Contains(s.inits, set) {
			return true
		}
		return is && slices.Contains(s.follows, set) && !a.isActivating
	})
}

func (s *shape) parentAct() action {
	if s.parent == nil {
		return nil
	}
	return s.parent.act
}

// facts are known before a shape: messages that may have content, correlation sets that may have values.
type facts map[reference]bool

func (f facts) with(others ...facts) facts {
	all := maps.Clone(f)
	for _, other := range others {
		maps.Copy(all, other)
	}
	return all
}

// analyse finds what cannot work: messages and sets that are used before they can have content, and shapes that are never reached.
func (c *compiler) analyse(root *shape) { c.follow(root, facts{}, true) }

// follow goes through a shape with what may be known, and gives what may be known behind it, and whether something can come there.
func (c *compiler) follow(s *shape, known facts, reports bool) (after facts, goesOn bool) {
	if reports {
		c.checkUses(s, known)
	}
	here := known
	if len(s.fills)+len(s.inits) > 0 {
		here = maps.Clone(known)
		for _, of := range append(slices.Clone(s.fills), s.inits...) {
			here[of] = true
		}
	}
	switch a := s.act.(type) {
	case *sequence:
		return c.followSequence(s, here, reports)
	case *decide:
		return c.followBranches(s, here, reports, !a.hasOtherwise)
	case *listen:
		return c.followBranches(s, here, reports, false)
	case *while, *forEach, *aggregate:
		again, _ := c.followBranches(s, here, false, true)
		after, _ = c.followBranches(s, again, reports, true)
		return after, true
	case *parallel:
		all := here.with(everythingIn(s))
		goesOn = true
		for _, branch := range s.children {
			_, branchGoesOn := c.follow(branch, all, reports)
			goesOn = goesOn && branchGoesOn
		}
		return all, goesOn
	case *scope:
		return c.followScope(s, a, here, reports)
	case *call:
		return here, true // it was read by itself
	}
	return here, !s.endsAlways
}

func (c *compiler) followSequence(s *shape, known facts, reports bool) (facts, bool) {
	for i, child := range s.children {
		var goesOn bool
		if known, goesOn = c.follow(child, known, reports); goesOn {
			continue
		}
		if reports && i+1 < len(s.children) {
			c.problem(s.children[i+1].path, "Take it out, or move it before what ends.", "the shape is never reached")
		}
		return known, false
	}
	return known, true
}

func (c *compiler) followBranches(s *shape, known facts, reports, mayPass bool) (facts, bool) {
	after, goesOn := known, mayPass
	for _, branch := range s.children {
		behind, branchGoesOn := c.follow(branch, known, reports)
		after, goesOn = after.with(behind), goesOn || branchGoesOn
	}
	return after, goesOn
}

func (c *compiler) followScope(s *shape, a *scope, known facts, reports bool) (facts, bool) {
	after, goesOn := c.follow(a.body, known, reports)
	during := known.with(everythingIn(a.body))
	for _, handler := range a.catches {
		behind, handlerGoesOn := c.follow(handler.block, during, reports)
		after, goesOn = after.with(behind), goesOn || handlerGoesOn
	}
	if a.compensation != nil {
		c.follow(a.compensation, during, reports)
	}
	_ = s
	return after, goesOn
}

// everythingIn is all that may come to be within a shape.
func everythingIn(s *shape) facts {
	all := facts{}
	for _, of := range append(slices.Clone(s.fills), s.inits...) {
		all[of] = true
	}
	for _, child := range s.children {
		maps.Copy(all, everythingIn(child))
	}
	return all
}

func (c *compiler) checkUses(s *shape, known facts) {
	for _, of := range s.reads {
		if of.owner != nil && !known[of] && !slices.Contains(s.fills, of) && !c.isMisread(of.name) {
			c.problem(s.path, "Receive or construct it before.", "message %s has no content here", of.name)
		}
	}
	for _, of := range s.follows {
		if !known[of] && !c.isMisread(of.name) {
			c.problem(s.path, "Initialise it by a receive or send before.", "correlation set %s has no values here", of.name)
		}
	}
}
