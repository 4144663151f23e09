package typing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/flow/xsd"
)

// A Field is a value at a path of a message.
type Field struct {
	Path  *Path
	Value string
}

// instanceDepth is how deep the elements of an instance may stand in each other.
const instanceDepth = 64

// Instance makes a message of a schema that holds what the schema requires, with the defaults that it gives, and some fields. With a body
// it is cut where the content of the element at that path stands; hasBody says whether it has that element. hasValue says whether any text
// or attribute of it has a value.
func Instance(root *xsd.Element, fields []Field, body *Path) (before, after string, hasBody, hasValue bool) {
	w := &instance{body: body}
	under := make([]field, len(fields))
	for i, f := range fields {
		under[i] = field{steps: f.Path.Steps, isAttribute: f.Path.IsAttribute, value: f.Value}
	}
	var steps []xsd.Name
	if body != nil {
		steps = body.Steps
	}
	w.element(root, below(under, root.Name), onWay(steps, root.Name), nil, 0)
	if w.hasBody {
		return w.before, w.out.String(), true, w.hasValue
	}
	return w.out.String(), "", false, w.hasValue
}

type instance struct {
	out      strings.Builder
	body     *Path
	before   string
	hasBody  bool
	hasValue bool
}

// field is a value with the steps that are left to it.
type field struct {
	steps       []xsd.Name
	isAttribute bool
	value       string
}

// below gives the fields that stand in an element, with a step less.
func below(fields []field, name xsd.Name) []field {
	var in []field
	for _, f := range fields {
		if len(f.steps) > 0 && f.steps[0] == name {
			in = append(in, field{f.steps[1:], f.isAttribute, f.value})
		}
	}
	return in
}

// onWay gives the steps that are left behind an element, nil where it is not on the way.
func onWay(steps []xsd.Name, name xsd.Name) []xsd.Name {
	if len(steps) == 0 || steps[0] != name {
		return nil
	}
	return append(make([]xsd.Name, 0, len(steps)), steps[1:]...)
}

// element writes an element. toBody has the steps that are left to the body: none where it is this one, nil where it is elsewhere.
func (w *instance) element(e *xsd.Element, fields []field, toBody []xsd.Name, spaces map[string]string, depth int) {
	if depth > instanceDepth {
		return
	}
	declared := map[string]string{}
	maps.Copy(declared, spaces)
	declarations := ""
	prefixed := func(n xsd.Name) string {
		if n.Space == "" {
			return n.Local
		}
		prefix, isKnown := declared[n.Space]
		if !isKnown {
			prefix = fmt.Sprintf("env%d", len(declared))
			declared[n.Space] = prefix
			declarations += " xmlns:" + prefix + `="` + EscapeValue(n.Space) + `"`
		}
		return prefix + ":" + n.Local
	}
	name, attributes := prefixed(e.Name), ""
	for _, a := range e.Attributes {
		value, isGiven := valueOf(fields, a.Name, true, a.Default, a.Fixed)
		if isGiven || a.Required {
			attributes += " " + prefixed(a.Name) + `="` + EscapeValue(value) + `"`
			w.hasValue = w.hasValue || value != ""
		}
	}
	w.out.WriteString("<" + name + declarations + attributes + ">")
	if e.Content == nil {
		text, _ := valueOf(fields, xsd.Name{}, false, e.Default, e.Fixed)
		w.out.WriteString(EscapeText(text))
		w.hasValue = w.hasValue || text != ""
	}
	w.group(e.Content, fields, toBody, declared, depth)
	if toBody != nil && len(toBody) == 0 && !w.hasBody {
		w.before, w.hasBody = w.out.String(), true
		w.out.Reset()
	}
	w.out.WriteString("</" + name + ">")
}

// valueOf gives the value of an attribute, or of the text of an element.
func valueOf(fields []field, name xsd.Name, isAttribute bool, byDefault, fixed *string) (value string, isGiven bool) {
	for _, f := range fields {
		if f.isAttribute == isAttribute && (isAttribute && len(f.steps) == 1 && f.steps[0] == name || !isAttribute && len(f.steps) == 0) {
			return f.value, true
		}
	}
	for _, given := range []*string{fixed, byDefault} {
		if given != nil {
			return *given, true
		}
	}
	return "", false
}

func (w *instance) group(g *xsd.Group, fields []field, toBody []xsd.Name, spaces map[string]string, depth int) {
	if g == nil {
		return
	}
	parts := g.Parts
	if g.Order == xsd.Choice {
		isAsked := func(p xsd.Part) bool { return isWanted(p, fields, toBody) }
		if i := slices.IndexFunc(parts, isAsked); i >= 0 {
			parts = parts[i : i+1]
		} else {
			parts = parts[:min(len(parts), 1)]
		}
	}
	for _, p := range parts {
		asked := isWanted(p, fields, toBody)
		switch {
		case p.Element != nil && (asked || p.Element.Min > 0 && g.Min > 0):
			w.element(p.Element, below(fields, p.Element.Name), onWay(toBody, p.Element.Name), spaces, depth+1)
		case p.Group != nil && (asked || p.Group.Min > 0 && g.Min > 0):
			w.group(p.Group, fields, toBody, spaces, depth)
		}
	}
}

// isWanted reports whether a field or the body stands in a part of a group.
func isWanted(p xsd.Part, fields []field, toBody []xsd.Name) bool {
	if p.Element != nil {
		return onWay(toBody, p.Element.Name) != nil || slices.ContainsFunc(fields, func(f field) bool {
			return len(f.steps) > 0 && f.steps[0] == p.Element.Name && (!f.isAttribute || len(f.steps) > 1)
		})
	}
	return p.Group != nil && slices.ContainsFunc(p.Group.Parts, func(in xsd.Part) bool { return isWanted(in, fields, toBody) })
}
