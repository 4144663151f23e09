package validation

import (
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/flow/xsd"
)

// statesMost bounds at how many places of its content an element may be at a time. A schema that keeps the rules of XML Schema has one, and
// where parts may be missing a few. Equal places count once. A message that needs more is refused, and the error says so.
const statesMost = 1024

// A state is a place in a group of content, and in the groups around it. States are never changed.
type state struct {
	group *xsd.Group
	at    int    // the part; in a choice -1 before one is chosen
	done  int    // how often it has occurred
	seen  []bool // of an all group, by part
	up    *state // of the group around, which is at this group
}

// models know the contents of elements.
type models struct {
	emptiable map[*xsd.Group]bool
	whole     map[*xsd.Element]*xsd.Group // a sequence of the content alone, because the content may repeat
}

// shape gives the element that has the content of another one.
func shape(e *xsd.Element) *xsd.Element {
	for e.Same != nil {
		e = e.Same
	}
	return e
}

// prepare learns the contents below an element.
func (m *models) prepare(e *xsd.Element) {
	e = shape(e)
	if e.Content == nil || m.whole[e] != nil {
		return
	}
	m.whole[e] = &xsd.Group{Order: xsd.Sequence, Min: 1, Max: 1, Parts: []xsd.Part{{Group: e.Content}}}
	m.prepareGroup(m.whole[e])
}

func (m *models) prepareGroup(g *xsd.Group) {
	for _, part := range g.Parts {
		switch {
		case part.Element != nil:
			m.prepare(part.Element)
		case part.Group != nil:
			m.prepareGroup(part.Group)
		}
	}
	m.emptiable[g] = g.Order != xsd.Choice && !slices.ContainsFunc(g.Parts, func(p xsd.Part) bool { return !m.mayMiss(p) }) ||
		g.Order == xsd.Choice && (len(g.Parts) == 0 || slices.ContainsFunc(g.Parts, m.mayMiss))
}

// occurs gives how often a part occurs.
func occurs(p xsd.Part) (least, most int) {
	switch {
	case p.Element != nil:
		return p.Element.Min, p.Element.Max
	case p.Any != nil:
		return p.Any.Min, p.Any.Max
	}
	return p.Group.Min, p.Group.Max
}

// mayMiss reports whether nothing has to be there of a part.
func (m *models) mayMiss(p xsd.Part) bool {
	least, _ := occurs(p)
	return least == 0 || p.Group != nil && m.emptiable[p.Group]
}

// begin is the state before the content of an element.
func (m *models) begin(e *xsd.Element) []*state { return []*state{enter(m.whole[e], nil)} }

func enter(g *xsd.Group, up *state) *state {
	s := &state{group: g, up: up}
	switch g.Order {
	case xsd.Choice:
		s.at = -1
	case xsd.All:
		s.seen = make([]bool, len(g.Parts))
	case xsd.Sequence:
	}
	return s
}

// isFresh reports whether nothing of the group has occurred.
func (s *state) isFresh() bool {
	if s.seen != nil {
		return !slices.Contains(s.seen, true)
	}
	return s.done == 0 && (s.at == 0 || s.at == -1)
}

// after is the state of the group around when this one has ended.
func (m *models) after(s *state) *state {
	up := s.up
	return &state{group: up.group, at: up.at, done: m.counted(up.group.Parts[up.at], up.done+1), seen: up.seen, up: up.up}
}

// A taker is asked for each part that may come next, and says whether it takes it.
type taker func(p xsd.Part) bool

// step gives the states behind the next element, for each part that takes it.
func (m *models) step(s *state, take taker, found []*state) []*state {
	switch s.group.Order {
	case xsd.Choice:
		if s.at < 0 {
			for i := range s.group.Parts {
				found = m.try(&state{group: s.group, at: i, up: s.up}, take, found)
			}
			return found
		}
		found = m.try(s, take, found)
		if least, _ := occurs(s.group.Parts[s.at]); s.done < least && !m.mayMiss(s.group.Parts[s.at]) {
			return found
		}
	case xsd.All:
		for i, part := range s.group.Parts {
			if !s.seen[i] && take(part) {
				seen := slices.Clone(s.seen)
				seen[i] = true
				found = append(found, &state{group: s.group, seen: seen, up: s.up})
			}
		}
		if !m.allSeen(s) {
			return found
		}
	case xsd.Sequence:
		for i := s.at; i < len(s.group.Parts); i++ {
			here := s
			if i > s.at {
				here = &state{group: s.group, at: i, up: s.up}
			}
			found = m.try(here, take, found)
			if least, _ := occurs(s.group.Parts[i]); here.done < least && !m.mayMiss(s.group.Parts[i]) {
				return found
			}
		}
	}
	// The group may end here. One of which nothing has occurred is passed over by the group around.
	if s.up == nil || s.isFresh() {
		return found
	}
	return m.step(m.after(s), take, found)
}

// try takes another occurrence of the part at which a state is.
func (m *models) try(s *state, take taker, found []*state) []*state {
	part := s.group.Parts[s.at]
	if _, most := occurs(part); most != xsd.Unbounded && s.done >= most {
		return found
	}
	if part.Group != nil {
		return m.step(enter(part.Group, s), take, found)
	}
	if take(part) {
		found = append(found, &state{group: s.group, at: s.at, done: m.counted(part, s.done+1), up: s.up})
	}
	return found
}

// counted is how often a part occurred, as far as it matters: what may occur for ever is counted to its least number.
func (m *models) counted(part xsd.Part, done int) int {
	least, most := occurs(part)
	if m.mayMiss(part) {
		least = 0
	}
	if most == xsd.Unbounded {
		return min(done, max(least, 1))
	}
	return done
}

func (m *models) allSeen(s *state) bool {
	for i, part := range s.group.Parts {
		if !s.seen[i] && !m.mayMiss(part) {
			return false
		}
	}
	return true
}

// next gives the states behind an element of a name, with its declaration, or that a wildcard takes it.
func (m *models) next(states []*state, name xsd.Name) (next []*state, declared *xsd.Element, isAny bool) {
	for _, s := range states {
		next = m.step(s, func(p xsd.Part) bool {
			switch {
			case p.Element != nil && p.Element.Name == name:
				if declared == nil {
					declared = p.Element
				}
				return true
			case p.Any != nil && takes(p.Any, name.Space):
				isAny = true
				return true
			}
			return false
		}, next)
	}
	return distinct(next), declared, isAny && declared == nil
}

// distinct leaves out places that are there twice: a schema may lead to the same place in several ways, and their number would double with
// each element.
func distinct(states []*state) []*state {
	kept := states[:0]
	for _, s := range states {
		if !slices.ContainsFunc(kept, s.isAt) {
			kept = append(kept, s)
		}
	}
	return kept
}

// isAt reports whether two states are the same place with the same counts.
func (s *state) isAt(other *state) bool {
	for s != other {
		if s == nil || other == nil || s.group != other.group || s.at != other.at || s.done != other.done || !slices.Equal(s.seen, other.seen) {
			return false
		}
		s, other = s.up, other.up
	}
	return true
}

// takes reports whether a wildcard takes elements of a namespace.
func takes(wild *xsd.Any, space string) bool {
	switch wild.Namespaces {
	case "##any":
		return true
	case "##other":
		return space != wild.Target && space != ""
	}
	for one := range strings.FieldsSeq(wild.Namespaces) {
		if one == space && space != "" || one == "##targetNamespace" && space == wild.Target || one == "##local" && space == "" {
			return true
		}
	}
	return false
}

// canEnd reports whether the content may end here.
func (m *models) canEnd(states []*state) bool { return slices.ContainsFunc(states, m.mayEnd) }

func (m *models) mayEnd(s *state) bool {
	switch s.group.Order {
	case xsd.Choice:
		if s.at < 0 {
			if !m.emptiable[s.group] {
				return false
			}
		} else if least, _ := occurs(s.group.Parts[s.at]); s.done < least && !m.mayMiss(s.group.Parts[s.at]) {
			return false
		}
	case xsd.All:
		if !m.allSeen(s) {
			return false
		}
	case xsd.Sequence:
		for i := s.at; i < len(s.group.Parts); i++ {
			done := 0
			if i == s.at {
				done = s.done
			}
			if least, _ := occurs(s.group.Parts[i]); done < least && !m.mayMiss(s.group.Parts[i]) {
				return false
			}
		}
	}
	return s.up == nil || m.mayEnd(m.after(s))
}

// expected lists the elements that may come next.
func (m *models) expected(states []*state) string {
	names := []string{}
	for _, s := range states {
		m.step(s, func(p xsd.Part) bool {
			switch {
			case p.Element != nil:
				names = append(names, written(p.Element.Name))
			case p.Any != nil:
				names = append(names, "any of "+p.Any.Namespaces)
			}
			return false
		}, nil)
	}
	found := listed(names, "element")
	switch {
	case found == "":
		return "the end of the element"
	case m.canEnd(states):
		return found + ", or the end of the element"
	}
	return found
}
