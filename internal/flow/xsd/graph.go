package xsd

import (
	"cmp"
	"slices"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// Graph builds a global element for validation: each type once, so that types may contain themselves, and with wildcards in their places.
func (s *Schema) Graph(name Name) (*Element, error) {
	found, ok := s.set.elements[name]
	if !ok {
		return nil, s.broken("the schema has no root element "+name.Local, "name one that it has")
	}
	b := &builder{set: s.set, isGraph: true, built: map[*node]*Element{}}
	return b.element(found.node, found.document)
}

func wildcard(n *node, d *document) (*Any, error) {
	wild := &Any{Namespaces: n.attrs["namespace"], Process: n.attrs["processContents"], Target: d.space}
	if wild.Namespaces == "" {
		wild.Namespaces = "##any"
	}
	var err error
	wild.Min, wild.Max, err = occurs(n)
	return wild, err
}

// uncheckable are elements of schemas that ask for what a graph does not say.
var uncheckable = map[string]string{
	"key": "a key", "keyref": "a reference to a key", "unique": "values that occur once", "assert": "a condition",
	"alternative": "another type by a condition",
	"openContent": "open content",
}

// Unchecked gives what the schema and its documents ask for that a graph does not say, each with its place, in the order of files.
func (s *Schema) Unchecked() []*fault.Fault {
	found := []*fault.Fault{}
	seen := map[*node]bool{}
	var visit func(n *node)
	visit = func(n *node) {
		if seen[n] {
			return
		}
		seen[n] = true
		what := uncheckable[n.name.Local]
		if n.name.Space != Space {
			what = ""
		}
		switch {
		case n.is("element") && n.attrs["substitutionGroup"] != "":
			what = "element " + n.attrs["name"] + " in place of " + n.attrs["substitutionGroup"]
		case n.is("list"):
			what = "the type of the items of a list"
		case n.is("any") && n.attrs["processContents"] != "skip":
			what = "the content of elements that a wildcard takes"
		}
		if what != "" {
			found = append(found, &fault.Fault{
				Message: what + " is not checked", File: n.file, Place: n.place, Remedy: "check it in the program that gets the message",
			})
		}
		for _, c := range n.children {
			visit(c)
		}
	}
	for _, all := range []map[Name]component{s.set.elements, s.set.attributes, s.set.types, s.set.groups, s.set.attrGroups} {
		for _, c := range all {
			visit(c.node)
		}
	}
	slices.SortFunc(found, func(a, b *fault.Fault) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Place.Byte, b.Place.Byte), cmp.Compare(a.Message, b.Message))
	})
	return found
}
