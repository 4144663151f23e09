package pipeline

import (
	"regexp"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/typing"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// localName finds the name in a step of a path in which it stands in a predicate.
var localName = regexp.MustCompile(`local-name\(\)\s*=\s*["']([^"']+)["']`)

// instead adds to the fault of a path the path in its canonical form, where the schema or the form of the path says which it is.
func (c *compiledType) instead(written string, err error) error {
	f, is := fault.Of(err)
	if !is {
		return err
	}
	if path := c.canonical(written); path != nil {
		f.Remedy = "write instead " + path.String()
		if c.root == nil && len(path.Steps) > 1 {
			f.Remedy += ", with the namespaces that the elements have"
		}
	}
	return f
}

// canonical reads a path of names, with or without prefixes and predicates, by the schema of the message type. It gives nil where the path
// asks for more, or leads to nothing that the schema has.
func (c *compiledType) canonical(written string) *typing.Path {
	if strings.Contains(written, "//") || !strings.HasPrefix(written, "/") {
		return nil
	}
	path := &typing.Path{}
	in := c.root
	steps := splitSteps(written[1:])
	for i, step := range steps {
		isAttribute := strings.HasPrefix(step, "@")
		name := nameOf(strings.TrimPrefix(step, "@"))
		if name == "" || isAttribute && i < len(steps)-1 {
			return nil
		}
		switch {
		case isAttribute:
			path.IsAttribute = true
			path.Steps = append(path.Steps, attributeOf(in, name))
			continue
		case i == 0:
			root := rootName(c.name)
			if root.Local != name {
				return nil
			}
			path.Steps = append(path.Steps, root)
			continue
		case in == nil && c.root != nil:
			return nil
		}
		in = childOf(in, name)
		if in == nil {
			if c.root != nil {
				return nil
			}
			// Without a schema children are most often those of schemas whose elements are not qualified.
			path.Steps = append(path.Steps, xsd.Name{Local: name})
			continue
		}
		path.Steps = append(path.Steps, in.Name)
	}
	return path
}

// splitSteps splits at the slashes that stand in no predicate.
func splitSteps(written string) []string {
	var steps []string
	depth, from := 0, 0
	for i, c := range written {
		switch {
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == '/' && depth == 0:
			steps = append(steps, written[from:i])
			from = i + 1
		}
	}
	return append(steps, written[from:])
}

// nameOf gives the local name that a step asks for, or nothing where it asks for something else.
func nameOf(step string) string {
	before, predicate, has := strings.Cut(step, "[")
	if before == "*" && has {
		if found := localName.FindStringSubmatch(predicate); found != nil && !strings.Contains(predicate, "position()") {
			return found[1]
		}
		return ""
	}
	if has || strings.ContainsAny(before, "()*. |") {
		return ""
	}
	if _, local, hasPrefix := strings.Cut(before, ":"); hasPrefix {
		return local
	}
	return before
}

func attributeOf(in *xsd.Element, name string) xsd.Name {
	if in != nil {
		for _, a := range in.Attributes {
			if a.Name.Local == name {
				return a.Name
			}
		}
	}
	return xsd.Name{Local: name}
}

func childOf(in *xsd.Element, name string) *xsd.Element {
	if in == nil {
		return nil
	}
	return inGroup(in.Content, name)
}

func inGroup(g *xsd.Group, name string) *xsd.Element {
	if g == nil {
		return nil
	}
	for _, part := range g.Parts {
		if part.Element != nil && part.Element.Name.Local == name {
			return part.Element
		}
		if found := inGroup(part.Group, name); found != nil {
			return found
		}
	}
	return nil
}
