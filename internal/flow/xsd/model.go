// Package xsd reads XML schemas with the annotations of BizTalk Server into the trees that pipelines are made of. It reads what schemas of
// messages are built from: elements, attributes, types with their restrictions, groups, references, includes and imports. Wildcards,
// identity constraints and substitution groups say nothing about a flat file and are passed over.
package xsd

import (
	"github.com/parley-broker/parley/internal/flow/fault"
)

// Namespaces of a schema.
const (
	Space        = "http://www.w3.org/2001/XMLSchema"
	BizTalkSpace = "http://schemas.microsoft.com/BizTalk/2003"
)

// Unbounded is the most occurrences of what has no limit.
const Unbounded = -1

// A Name is the name of a component.
type Name struct{ Space, Local string }

// Annotation is the attributes of an annotation of BizTalk: schemaInfo, recordInfo, fieldInfo or groupInfo. It is nil where there is none.
type Annotation map[string]string

// A Schema is a schema document with all that it includes and imports.
type Schema struct {
	TargetNamespace string
	Info            Annotation
	Restricted      []Range // characters that restrictedCharacterRanges names
	Elements        []Name  // global elements of the document itself, in their order
	file            string
	set             *set
}

// A Range is an interval of characters.
type Range struct{ First, Last rune }

// IsEnvelope reports whether the schema describes envelopes.
func (s *Schema) IsEnvelope() bool { return s.Info["is_envelope"] == "yes" }

// An Element is an element with its content, as it occurs in a place.
type Element struct {
	Name       Name
	Min, Max   int
	Default    *string
	Fixed      *string
	Nillable   bool
	Record     Annotation
	Field      Annotation
	Properties []Property // of a root: what is promoted
	Simple     *SimpleType
	Content    *Group // nil: no child elements
	Attributes []*Attribute
	IsMixed    bool // text and attributes, or text and elements
	HasAny     bool
	// Of a graph alone.
	Same            *Element // whose content this one has too: its own is empty then
	IsAnything      bool     // content of any kind
	IsAbstract      bool
	HasAnyAttribute bool
	Place           fault.Place
	File            string
}

// An Attribute is an attribute with its type.
type Attribute struct {
	Name     Name
	Required bool
	Default  *string
	Fixed    *string
	Field    Annotation
	Simple   *SimpleType
	Place    fault.Place
	File     string
}

// Order is how the parts of a group follow each other.
type Order string

// The orders.
const (
	Sequence Order = "sequence"
	Choice   Order = "choice"
	All      Order = "all"
)

// A Group is a model group.
type Group struct {
	Order    Order
	Min, Max int
	Info     Annotation
	Parts    []Part
	HasAny   bool
	Place    fault.Place
}

// A Part is an element, a group, or in a graph a wildcard; the others are nil.
type Part struct {
	Element *Element
	Group   *Group
	Any     *Any
}

// Any is a wildcard.
type Any struct {
	Min, Max   int
	Namespaces string // ##any, ##other, or namespaces with ##targetNamespace and ##local among them
	Target     string // the namespace of the schema
	Process    string // strict, lax or skip
}

// A Property is a value of a message that is promoted, or distinguished, as the schema's annotation says.
type Property struct {
	Name          string // without its prefix; empty for a distinguished field
	Namespace     string // of the property schema
	XPath         string
	Distinguished bool
	Place         fault.Place
}
