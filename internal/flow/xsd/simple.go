package xsd

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A SimpleType is a built-in type with the facets that restrict it.
type SimpleType struct {
	Base   string // local name of the built-in type
	Facets []Facet
	IsList bool
	Union  []*SimpleType
}

// A Facet is a restriction of a value.
type Facet struct {
	Name    string // as in XSD: length, pattern, maxInclusive ...
	Value   string
	Values  []string // of enumeration
	number  int
	pattern []*regexp.Regexp // one of them matches
}

// IsNumber reports whether values of the type are numbers.
func (t *SimpleType) IsNumber() bool {
	if t.IsList || len(t.Union) > 0 {
		return false
	}
	_, isInteger := integers[t.Base]
	return isInteger || t.Base == "decimal" || t.Base == "float" || t.Base == "double"
}

// namedSimple finds a built-in or a declared simple type.
func (b *builder) namedSimple(n *node, written string) (*SimpleType, error) {
	if written == "" {
		return &SimpleType{Base: "string"}, nil
	}
	name, err := n.qname(written)
	if err != nil {
		return nil, err
	}
	if name.Space == Space {
		if !isBuiltIn(name.Local) {
			return nil, n.broken(fmt.Sprintf("type %s does not exist", written), "name a built-in type of XML Schema")
		}
		return &SimpleType{Base: name.Local}, nil
	}
	found, err := b.global(b.set.types, n, written, "type")
	if err != nil {
		return nil, err
	}
	if found.node.is("complexType") {
		e := &Element{}
		if err := b.complexType(e, found.node, found.document); err != nil {
			return nil, err
		}
		if e.Simple == nil {
			return nil, n.broken(fmt.Sprintf("type %s has child elements", written), "name a simple type")
		}
		return e.Simple, nil
	}
	return b.simpleType(found.node)
}

func (b *builder) simpleType(n *node) (*SimpleType, error) {
	if slices.Contains(b.open, n) {
		return nil, n.broken("simple types are made of each other in a circle", "let one of them restrict a built-in type")
	}
	b.parts++
	if b.parts > partsMost {
		return nil, n.broken(fmt.Sprintf("the schema has more than %d parts", partsMost), "split it")
	}
	b.open = append(b.open, n)
	defer func() { b.open = b.open[:len(b.open)-1] }()
	switch c := n.child("restriction", "list", "union"); {
	case c == nil:
		return nil, n.broken("a simple type without restriction, list or union", "write one of them")
	case c.is("list"):
		return &SimpleType{Base: "string", IsList: true}, nil
	case c.is("union"):
		return b.union(c)
	default:
		base, err := b.baseOf(c)
		if err != nil {
			return nil, err
		}
		derived := &SimpleType{Base: base.Base, IsList: base.IsList, Union: base.Union, Facets: append([]Facet(nil), base.Facets...)}
		return derived, derived.restrict(c)
	}
}

func (b *builder) baseOf(n *node) (*SimpleType, error) {
	if inner := n.child("simpleType"); inner != nil {
		return b.simpleType(inner)
	}
	return b.namedSimple(n, n.attrs["base"])
}

func (b *builder) union(n *node) (*SimpleType, error) {
	t := &SimpleType{Base: "string"}
	for written := range strings.FieldsSeq(n.attrs["memberTypes"]) {
		member, err := b.namedSimple(n, written)
		if err != nil {
			return nil, err
		}
		t.Union = append(t.Union, member)
	}
	for _, c := range n.children {
		if c.is("simpleType") {
			member, err := b.simpleType(c)
			if err != nil {
				return nil, err
			}
			t.Union = append(t.Union, member)
		}
	}
	return t, nil
}

// restrict adds the facets of a restriction.
func (t *SimpleType) restrict(n *node) error {
	var enumeration, pattern Facet
	for _, c := range n.children {
		f := Facet{Name: c.name.Local, Value: c.attrs["value"]}
		switch {
		case c.is("enumeration"):
			enumeration.Name = f.Name
			enumeration.Values = append(enumeration.Values, f.Value)
		case c.is("pattern"):
			compiled, err := compilePattern(f.Value)
			if err != nil {
				return c.broken(fmt.Sprintf("pattern %q cannot be checked: %v", f.Value, err),
					"write it without what XML Schema alone has, such as the subtraction of classes")
			}
			pattern.Name, pattern.Value = f.Name, strings.TrimPrefix(pattern.Value+" | "+f.Value, " | ")
			pattern.pattern = append(pattern.pattern, compiled)
		case c.is("length"), c.is("minLength"), c.is("maxLength"), c.is("totalDigits"), c.is("fractionDigits"):
			n, err := strconv.Atoi(f.Value)
			if err != nil || n < 0 {
				return c.broken(fmt.Sprintf("%s is %q", f.Name, f.Value), "write a number from 0")
			}
			f.number = n
			t.Facets = append(t.Facets, f)
		case c.is("minInclusive"), c.is("maxInclusive"), c.is("minExclusive"), c.is("maxExclusive"):
			t.Facets = append(t.Facets, f)
		}
	}
	if enumeration.Name != "" {
		t.Facets = append(t.Facets, enumeration)
	}
	if pattern.Name != "" {
		t.Facets = append(t.Facets, pattern)
	}
	return nil
}
