package xsd

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// A Resolver reads the schema document at a location that another one names. It gives the document's own name.
type Resolver func(from, location string) (name string, body []byte, err error)

// set is all documents that belong together, with their global components by name.
type set struct {
	resolve    Resolver
	read       map[string]bool
	elements   map[Name]component
	attributes map[Name]component
	types      map[Name]component
	groups     map[Name]component
	attrGroups map[Name]component
	missing    []string // locations that could not be read, for errors about what they would have held
}

// component is a global component, with the document that it stands in.
type component struct {
	node     *node
	document *document
}

// document is the part of the root of a schema document that concerns its components.
type document struct {
	space              string
	qualifiedElements  bool
	qualifiedAttribute bool
}

// Load reads a schema file and what it includes and imports beside it.
func Load(file string) (*Schema, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	return Parse(file, body, func(from, location string) (string, []byte, error) {
		name := filepath.Join(filepath.Dir(from), filepath.FromSlash(strings.ReplaceAll(location, `\`, "/")))
		body, err := os.ReadFile(name)
		return name, body, err
	})
}

// Parse reads a schema of this name. Without a resolver it may name no other documents that hold what it needs.
func Parse(name string, body []byte, resolve Resolver) (*Schema, error) {
	s := &set{
		resolve: resolve, read: map[string]bool{}, elements: map[Name]component{}, attributes: map[Name]component{},
		types: map[Name]component{}, groups: map[Name]component{}, attrGroups: map[Name]component{},
	}
	root, err := s.add(name, body, "")
	if err != nil {
		return nil, err
	}
	schema := &Schema{TargetNamespace: root.attrs["targetNamespace"], Info: root.annotation("schemaInfo"), file: name, set: s}
	if info := root.appinfo("schemaInfo"); info != nil {
		if schema.Restricted, err = restrictedRanges(info); err != nil {
			return nil, err
		}
	}
	for _, c := range root.children {
		if c.is("element") {
			schema.Elements = append(schema.Elements, Name{Space: schema.TargetNamespace, Local: c.attrs["name"]})
		}
	}
	return schema, nil
}

// add reads a document and those that it names. An included document without a namespace takes that of the including one.
func (s *set) add(name string, body []byte, space string) (*node, error) {
	s.read[name] = true
	root, err := parse(name, body)
	if err != nil {
		return nil, err
	}
	if !root.is("schema") {
		return nil, root.broken("this is no XML schema: its root is "+root.name.Local, "name a file whose root is xs:schema")
	}
	d := &document{
		space: root.attrs["targetNamespace"], qualifiedElements: root.attrs["elementFormDefault"] == "qualified",
		qualifiedAttribute: root.attrs["attributeFormDefault"] == "qualified",
	}
	if d.space == "" {
		d.space = space
	}
	for _, c := range root.children {
		key := Name{Space: d.space, Local: c.attrs["name"]}
		switch {
		case c.is("element"):
			s.elements[key] = component{c, d}
		case c.is("attribute"):
			s.attributes[key] = component{c, d}
		case c.is("complexType"), c.is("simpleType"):
			s.types[key] = component{c, d}
		case c.is("group"):
			s.groups[key] = component{c, d}
		case c.is("attributeGroup"):
			s.attrGroups[key] = component{c, d}
		case c.is("include"), c.is("redefine"), c.is("import"):
			if err := s.follow(c, d); err != nil {
				return nil, err
			}
		}
	}
	return root, nil
}

// follow reads a document that another one names. One that is not there is an error only if something of it is needed.
func (s *set) follow(n *node, d *document) error {
	location := n.attrs["schemaLocation"]
	if n.is("redefine") {
		return n.broken("xs:redefine is not read", "write the types as they are to be")
	}
	if location == "" || s.resolve == nil {
		return nil
	}
	name, body, err := s.resolve(n.file, location)
	if err != nil {
		s.missing = append(s.missing, location)
		return nil //nolint:nilerr // what is missing is reported when something of it is needed
	}
	if s.read[name] {
		return nil
	}
	space := ""
	if n.is("include") {
		space = d.space
	}
	_, err = s.add(name, body, space)
	return err
}

func restrictedRanges(info *node) ([]Range, error) {
	var ranges []Range
	for _, c := range info.children {
		if c.name.Local != "restrictedCharacterRanges" {
			continue
		}
		for _, interval := range c.children {
			first, err1 := characterNumber(interval.attrs["start"])
			last, err2 := characterNumber(interval.attrs["end"])
			if err1 != nil || err2 != nil || last < first {
				return nil, interval.broken("an interval of restricted characters that cannot be read",
					"write start and end as numbers, such as 0x00 and 0x1F")
			}
			ranges = append(ranges, Range{First: first, Last: last})
		}
	}
	return ranges, nil
}

func characterNumber(written string) (rune, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(written), 0, 32)
	return rune(n), err
}

// Root finds the root element: that of root_reference, or the one of this name, or the only one.
func (s *Schema) Root(name string) (*Element, error) {
	if name == "" {
		name = s.Info["root_reference"]
	}
	if name == "" && len(s.Elements) == 1 {
		name = s.Elements[0].Local
	}
	if name == "" {
		return nil, s.broken(fmt.Sprintf("the schema has %d root elements", len(s.Elements)),
			"name the root, or set root_reference in its schemaInfo")
	}
	return s.Element(Name{Space: s.TargetNamespace, Local: name})
}

// Element builds a global element with all it contains.
func (s *Schema) Element(name Name) (*Element, error) {
	found, ok := s.set.elements[name]
	if !ok {
		return nil, s.broken(fmt.Sprintf("the schema has no root element %s", name.Local), "name one that it has")
	}
	b := &builder{set: s.set}
	return b.element(found.node, found.document)
}

func (s *Schema) broken(message, remedy string) error {
	return &fault.Fault{Message: message, Remedy: remedy, File: s.file}
}

// File is the name under which the schema was read.
func (s *Schema) File() string { return s.file }
