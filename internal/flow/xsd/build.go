package xsd

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// partsMost bounds how large a tree a schema may make.
const partsMost = 50_000

// builder makes trees of components. open are the types that are being built.
type builder struct {
	set   *set
	open  []*node
	parts int
	// In a graph each type is built once, and elements of it share its content. So types may contain themselves.
	isGraph bool
	built   map[*node]*Element // by the node of the complex type
}

// element builds an element where it stands: its own node may only refer to a global one.
func (b *builder) element(n *node, d *document) (*Element, error) {
	b.parts++
	if b.parts > partsMost {
		return nil, n.broken(fmt.Sprintf("the schema has more than %d parts", partsMost), "split it")
	}
	e := &Element{Record: n.annotation("recordInfo"), Field: n.annotation("fieldInfo"), Place: n.place, File: n.file}
	var err error
	if e.Min, e.Max, err = occurs(n); err != nil {
		return nil, err
	}
	declared, in := n, d
	if ref := n.attrs["ref"]; ref != "" {
		found, err := b.global(b.set.elements, n, ref, "element")
		if err != nil {
			return nil, err
		}
		declared, in = found.node, found.document
		if e.Record == nil {
			e.Record = declared.annotation("recordInfo")
		}
		if e.Field == nil {
			e.Field = declared.annotation("fieldInfo")
		}
	}
	e.Name = Name{Local: declared.attrs["name"]}
	if e.Name.Local == "" {
		return nil, n.broken("an element without a name", "give its name or ref")
	}
	if b.isGlobal(declared, in, b.set.elements) || qualified(declared, in.qualifiedElements) {
		e.Name.Space = in.space
	}
	e.Default, e.Fixed = optional(declared, "default"), optional(declared, "fixed")
	e.Nillable = declared.attrs["nillable"] == "true"
	e.Properties = properties(declared)
	e.IsAbstract = declared.attrs["abstract"] == "true"
	return e, b.content(e, declared, in)
}

func (b *builder) isGlobal(n *node, d *document, all map[Name]component) bool {
	return all[Name{Space: d.space, Local: n.attrs["name"]}].node == n
}

func qualified(n *node, byDefault bool) bool {
	switch n.attrs["form"] {
	case "qualified":
		return true
	case "unqualified":
		return false
	}
	return byDefault
}

func optional(n *node, name string) *string {
	if value, ok := n.attrs[name]; ok {
		return &value
	}
	return nil
}

func occurs(n *node) (least, most int, err error) {
	least, most = 1, 1
	if v, ok := n.attrs["minOccurs"]; ok {
		if least, err = strconv.Atoi(v); err != nil || least < 0 {
			return 0, 0, n.broken(fmt.Sprintf("minOccurs is %q", v), "write a number from 0")
		}
	}
	switch v, ok := n.attrs["maxOccurs"]; {
	case v == "unbounded":
		most = Unbounded
	case ok:
		if most, err = strconv.Atoi(v); err != nil || most < 0 {
			return 0, 0, n.broken(fmt.Sprintf("maxOccurs is %q", v), "write a number, or unbounded")
		}
	}
	if most != Unbounded && least > most {
		if _, ok := n.attrs["maxOccurs"]; ok {
			return 0, 0, n.broken("minOccurs is more than maxOccurs", "write a larger maxOccurs")
		}
		most = least
	}
	return least, most, nil
}

// content finds what an element contains: by its type or by the type within it.
func (b *builder) content(e *Element, n *node, d *document) error {
	if own := n.child("complexType"); own != nil {
		return b.shared(e, own, d)
	}
	if own := n.child("simpleType"); own != nil {
		simple, err := b.simpleType(own)
		e.Simple = simple
		return err
	}
	written := n.attrs["type"]
	if written == "" && b.isGraph {
		e.IsAnything = true
		return nil
	}
	if written == "" {
		e.Simple = &SimpleType{Base: "string"} // anyType: in a flat file it can be text only
		return nil
	}
	name, err := n.qname(written)
	if err != nil {
		return err
	}
	if b.isGraph && name == (Name{Space: Space, Local: "anyType"}) {
		e.IsAnything = true
		return nil
	}
	if found, ok := b.set.types[name]; ok && found.node.is("complexType") {
		return b.shared(e, found.node, found.document)
	}
	e.Simple, err = b.namedSimple(n, written)
	return err
}

// shared builds the content of an element of a complex type: in a graph once for the type.
func (b *builder) shared(e *Element, n *node, d *document) error {
	if !b.isGraph {
		return b.complexType(e, n, d)
	}
	if same := b.built[n]; same != nil {
		e.Same = same
		return nil
	}
	b.built[n] = e
	// A circle of types is one of derivations now, and no more one of elements.
	outer := b.open
	b.open = nil
	defer func() { b.open = outer }()
	return b.complexType(e, n, d)
}

func (b *builder) complexType(e *Element, n *node, d *document) error {
	if slices.Contains(b.open, n) {
		return n.broken("a type contains itself", "write out as many levels as the messages have: a flat file has no recursion")
	}
	b.open = append(b.open, n)
	defer func() { b.open = b.open[:len(b.open)-1] }()
	e.IsMixed = e.IsMixed || n.attrs["mixed"] == "true"
	if simple := n.child("simpleContent"); simple != nil {
		return b.simpleContent(e, simple, d)
	}
	if complexContent := n.child("complexContent"); complexContent != nil {
		return b.complexContent(e, complexContent, d)
	}
	return b.ownContent(e, n, d)
}

// ownContent adds the group and the attributes that stand in a type or an extension.
func (b *builder) ownContent(e *Element, n *node, d *document) error {
	for _, c := range n.children {
		switch {
		case c.is("sequence"), c.is("choice"), c.is("all"), c.is("group"):
			group, err := b.group(c, d)
			if err != nil {
				return err
			}
			if e.Content == nil {
				e.Content = group
			} else { // an extension: what the base has, then what it adds
				e.Content = &Group{Order: Sequence, Min: 1, Max: 1, Parts: []Part{{Group: e.Content}, {Group: group}}, Place: c.place}
			}
		case c.is("attribute"), c.is("attributeGroup"):
			if err := b.attribute(e, c, d); err != nil {
				return err
			}
		case c.is("anyAttribute"):
			e.HasAnyAttribute = true
		}
	}
	if e.Content == nil {
		e.Content = &Group{Order: Sequence, Min: 1, Max: 1, Place: n.place}
	}
	e.HasAny = e.HasAny || e.Content.HasAny
	return nil
}

func (b *builder) complexContent(e *Element, n *node, d *document) error {
	e.IsMixed = e.IsMixed || n.attrs["mixed"] == "true"
	derived := n.child("extension", "restriction")
	if derived == nil {
		return n.broken("complexContent without extension or restriction", "write one of them")
	}
	if derived.is("extension") {
		base, err := derived.qname(derived.attrs["base"])
		if err != nil {
			return err
		}
		if base == (Name{Space: Space, Local: "anyType"}) {
			e.IsAnything = b.isGraph
		} else {
			found, err := b.global(b.set.types, derived, derived.attrs["base"], "type")
			if err != nil {
				return err
			}
			if err := b.complexType(e, found.node, found.document); err != nil {
				return err
			}
		}
	}
	return b.ownContent(e, derived, d)
}

func (b *builder) simpleContent(e *Element, n *node, d *document) error {
	derived := n.child("extension", "restriction")
	if derived == nil {
		return n.broken("simpleContent without extension or restriction", "write one of them")
	}
	simple, err := b.namedSimple(derived, derived.attrs["base"])
	if err != nil {
		return err
	}
	e.Simple = simple
	for _, c := range derived.children {
		if c.is("attribute") || c.is("attributeGroup") {
			if err := b.attribute(e, c, d); err != nil {
				return err
			}
		}
		e.HasAnyAttribute = e.HasAnyAttribute || c.is("anyAttribute")
	}
	e.IsMixed = len(e.Attributes) > 0
	return nil
}

func (b *builder) group(n *node, d *document) (*Group, error) {
	g := &Group{Order: Order(n.name.Local), Info: n.annotation("groupInfo"), Place: n.place}
	var err error
	if g.Min, g.Max, err = occurs(n); err != nil {
		return nil, err
	}
	if n.is("group") {
		found, err := b.global(b.set.groups, n, n.attrs["ref"], "group")
		if err != nil {
			return nil, err
		}
		if slices.Contains(b.open, found.node) {
			return nil, n.broken("a group contains itself", "write out as many levels as the messages have")
		}
		b.open = append(b.open, found.node)
		defer func() { b.open = b.open[:len(b.open)-1] }()
		inner := found.node.child("sequence", "choice", "all")
		if inner == nil {
			return nil, found.node.broken("a group without content", "write a sequence or a choice in it")
		}
		built, err := b.group(inner, found.document)
		if err != nil {
			return nil, err
		}
		built.Min, built.Max = g.Min, g.Max
		if g.Info != nil {
			built.Info = g.Info
		}
		return built, nil
	}
	for _, c := range n.children {
		switch {
		case c.is("element"):
			e, err := b.element(c, d)
			if err != nil {
				return nil, err
			}
			g.Parts = append(g.Parts, Part{Element: e})
		case c.is("sequence"), c.is("choice"), c.is("all"), c.is("group"):
			inner, err := b.group(c, d)
			if err != nil {
				return nil, err
			}
			g.Parts = append(g.Parts, Part{Group: inner})
			g.HasAny = g.HasAny || inner.HasAny
		case c.is("any"):
			g.HasAny = true
			if b.isGraph {
				wild, err := wildcard(c, d)
				if err != nil {
					return nil, err
				}
				g.Parts = append(g.Parts, Part{Any: wild})
			}
		}
	}
	return g, nil
}

// global finds a component by a name that a node writes.
func (b *builder) global(all map[Name]component, n *node, written, kind string) (component, error) {
	name, err := n.qname(written)
	if err != nil {
		return component{}, err
	}
	if found, ok := all[name]; ok {
		return found, nil
	}
	remedy := "declare it, or import the schema that does"
	if len(b.set.missing) > 0 {
		remedy = "put the schemas beside this one that it names and that were not found: " + strings.Join(b.set.missing, ", ")
	}
	return component{}, n.broken(fmt.Sprintf("%s %s is not declared", kind, written), remedy)
}
