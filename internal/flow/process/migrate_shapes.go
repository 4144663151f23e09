package process

import (
	"fmt"
	"slices"
)

// counterpart finds the shape of another version that is the same as one of this version: by its name, as it is written, or by its place
// where all before it, or all behind it, is written as it was.
func (m *migration) counterpart(c *shape) (*shape, *Fault) {
	if c.parent == nil {
		return m.to.root, nil
	}
	if found := m.found[c.id]; found != nil {
		return found, nil
	}
	parent, fault := m.counterpart(c.parent)
	if fault != nil {
		return nil, fault
	}
	found := childLike(c, parent)
	if found == nil {
		return nil, &Fault{
			Code: codeVersion, Path: c.place,
			Message: fmt.Sprintf("%s is not there any more, or it cannot be told which shape it is now", c.describe()),
			Remedy: "give the shape the same name in both versions, keep the shapes before it or behind it as they were, or have such " +
				"instances end with their version",
		}
	}
	m.found[c.id] = found
	return found, nil
}

func (s *shape) describe() string {
	if s.label != "" {
		return fmt.Sprintf("%s %q", s.kind, s.label)
	}
	return s.kind
}

// childLike finds among the children of a shape the one that is the same as a child of its counterpart.
func childLike(c, parent *shape) *shape {
	switch was := c.parent.act.(type) {
	case *scope:
		is, isScope := parent.act.(*scope)
		if !isScope {
			return nil
		}
		return scopePartLike(c, was, is)
	case *decide:
		if found := labelled(parent.children, c); found != nil {
			return found
		}
		return parent.child(slices.Index(c.parent.children, c))
	case *parallel:
		return labelled(parent.children, c)
	case *listen:
		return branchLike(c, parent)
	case *sequence:
		return elementLike(c, parent)
	default:
		return parent.child(slices.Index(c.parent.children, c))
	}
}

func (s *shape) child(at int) *shape {
	if at < 0 || at >= len(s.children) {
		return nil
	}
	return s.children[at]
}

// labelled gives the one shape of the same kind and name; nil where there is none or several.
func labelled(among []*shape, c *shape) (found *shape) {
	for _, s := range among {
		if s.kind == c.kind && s.label == c.label && c.label != "" {
			if found != nil {
				return nil
			}
			found = s
		}
	}
	return found
}

func scopePartLike(c *shape, was, is *scope) *shape {
	switch c {
	case was.body:
		return is.body
	case was.compensation:
		return is.compensation
	}
	for _, handler := range was.catches {
		for _, other := range is.catches {
			if handler.block == c && handler.code == other.code {
				return other.block
			}
		}
	}
	return nil
}

// branchLike finds a branch of a listen: by its name, or by the receive or delay with which it begins.
func branchLike(c, parent *shape) *shape {
	if found := labelled(parent.children, c); found != nil {
		return found
	}
	first := func(s *shape) string {
		if len(s.children) == 0 {
			return ""
		}
		return s.children[0].digest
	}
	var found *shape
	for _, s := range parent.children {
		if first(s) == first(c) && first(c) != "" {
			if found != nil {
				return nil
			}
			found = s
		}
	}
	return found
}

// elementLike finds an element of a list of shapes.
func elementLike(c, parent *shape) *shape {
	was, is := c.parent.children, parent.children
	if c.label != "" {
		return labelled(is, c)
	}
	alike := func(among []*shape) (found []*shape) {
		for _, s := range among {
			if s.label == "" && s.kind == c.kind && s.digest == c.digest {
				found = append(found, s)
			}
		}
		return found
	}
	if then, now := alike(was), alike(is); len(now) > 0 {
		if len(then) != len(now) {
			return nil
		}
		return now[slices.Index(then, c)]
	}
	at := slices.Index(was, c)
	isSame := func(a, b []*shape) bool {
		return slices.EqualFunc(a, b, func(x, y *shape) bool { return x.kind == y.kind && x.label == y.label && x.digest == y.digest })
	}
	behind := len(was) - at
	var found *shape
	switch {
	case at < len(is) && isSame(was[:at], is[:at]):
		found = is[at]
	case behind <= len(is) && isSame(was[at+1:], is[len(is)-behind+1:]):
		found = is[len(is)-behind]
	}
	if found == nil || found.kind != c.kind || found.label != "" {
		return nil
	}
	return found
}
