// Package validation holds XML against the structure of schemas while it streams by: names and order of elements, how often they occur,
// attributes, and the types of texts.
package validation

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/text"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

const instanceSpace = "http://www.w3.org/2001/XMLSchema-instance"

// textMost bounds the text of an element that has a type, in bytes: longer ones are refused.
const textMost = 1 << 20

// A Validator holds messages against schemas. It can be used by several readers at a time.
type Validator struct {
	roots     map[xsd.Name]*xsd.Element
	unchecked []*fault.Fault
	models    *models
}

// New makes a validator of the global elements of schemas. An error says that a schema cannot be used at all.
func New(schemas ...*xsd.Schema) (*Validator, error) {
	v := &Validator{
		roots:  map[xsd.Name]*xsd.Element{},
		models: &models{emptiable: map[*xsd.Group]bool{}, whole: map[*xsd.Element]*xsd.Group{}},
	}
	for _, schema := range schemas {
		v.unchecked = append(v.unchecked, schema.Unchecked()...)
		for _, name := range schema.Elements {
			root, err := schema.Graph(name)
			if err != nil {
				return nil, err
			}
			v.roots[name] = root
			v.models.prepare(root)
		}
	}
	return v, nil
}

// Unchecked gives what the schemas ask for and nobody checks.
func (v *Validator) Unchecked() []*fault.Fault { return v.unchecked }

// Has reports whether the schemas have a root element of this name.
func (v *Validator) Has(space, local string) bool {
	return v.roots[xsd.Name{Space: space, Local: local}] != nil
}

// Check reads a whole message, of any charset. The error is a [fault.Fault] with the place of the first thing that is wrong.
func (v *Validator) Check(message io.Reader, charset string) error {
	source, err := text.Open(message, charset, true)
	if err != nil {
		return err
	}
	s := xmlscan.New(source, xmlscan.Limits{})
	run := v.NewRun()
	for {
		kind, err := s.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := run.Token(s, kind); err != nil {
			return err
		}
	}
}

// A Run follows one message. It can be used again after Reset.
type Run struct {
	validator *Validator
	open      []element
	skipped   int // open elements that a wildcard took, or that have content of any kind
	text      strings.Builder
}

// An element is one that is open.
type element struct {
	declared *xsd.Element // in its place
	content  *xsd.Element // with the content: the same, or another of its type
	states   []*state     // where in its content it may be; nil for a simple one
	isNil    bool
	hasText  bool
}

// NewRun follows one message.
func (v *Validator) NewRun() *Run { return &Run{validator: v} }

// Reset begins another message.
func (r *Run) Reset() {
	r.open, r.skipped = r.open[:0], 0
	r.text.Reset()
}

// Token takes the token that a scanner has read. The error is a [fault.Fault]: the message is not as its schema demands. Its place is that
// of the scanner.
func (r *Run) Token(s *xmlscan.Scanner, kind xmlscan.Kind) error {
	switch kind {
	case xmlscan.StartElement:
		if r.skipped > 0 {
			r.skipped++
			return nil
		}
		return r.start(s)
	case xmlscan.EndElement:
		if r.skipped > 0 {
			r.skipped--
			return nil
		}
		return r.end(s)
	case xmlscan.Text, xmlscan.CDATA:
		if r.skipped > 0 || len(r.open) == 0 {
			return nil
		}
		return r.characters(s)
	case xmlscan.Comment, xmlscan.Instruction:
	}
	return nil
}

func (r *Run) start(s *xmlscan.Scanner) error {
	name := xsd.Name{Space: s.Name().Space, Local: s.Name().Local}
	declared, err := r.find(s, name)
	if err != nil || declared == nil {
		return err
	}
	e := element{declared: declared, content: shape(declared)}
	if declared.IsAbstract {
		return r.broken(s, written(name), "the element is abstract: another one has to stand in its place", "", "send that one")
	}
	if e.isNil, err = r.attributes(s, &e, name); err != nil {
		return err
	}
	if e.content.IsAnything && !e.isNil {
		r.skipped = 1
		return nil
	}
	if e.content.Content != nil {
		e.states = r.validator.models.begin(e.content)
	}
	r.open = append(r.open, e)
	r.text.Reset()
	return nil
}

// find gives the declaration of the element that begins, or nil where a wildcard takes it.
func (r *Run) find(s *xmlscan.Scanner, name xsd.Name) (*xsd.Element, error) {
	if len(r.open) == 0 {
		root := r.validator.roots[name]
		if root == nil {
			return nil, r.broken(s, written(name), "the schema has no root element of this name", r.validator.rootNames(),
				"send a message of the schema, or add its schema")
		}
		return root, nil
	}
	parent := &r.open[len(r.open)-1]
	if parent.states == nil || parent.isNil {
		why := "the element has a value, and no elements in it"
		if parent.isNil {
			why = "the element is nil, and has no elements in it"
		}
		return nil, r.broken(s, "", why+", but "+written(name)+" begins", "", "correct the message")
	}
	next, found, isAny := r.validator.models.next(parent.states, name)
	if len(next) == 0 {
		return nil, r.broken(s, "", "element "+written(name)+" is not expected here", r.validator.models.expected(parent.states),
			"correct the message, or the schema")
	}
	if len(next) > statesMost {
		return nil, r.broken(s, "", fmt.Sprintf("the schema allows more than %d readings of the content up to here", statesMost), "",
			"let each element be taken by one part of the schema alone, or do not validate")
	}
	parent.states = next
	if isAny {
		r.skipped = 1
		return nil, nil
	}
	return found, nil
}

// attributes holds the attributes of an element against its declaration.
func (r *Run) attributes(s *xmlscan.Scanner, e *element, name xsd.Name) (isNil bool, err error) {
	given := map[xsd.Name]bool{}
	for _, a := range s.Attrs() {
		attribute := xsd.Name{Space: a.Name.Space, Local: a.Name.Local}
		switch {
		case attribute.Space == xmlscan.XMLNSSpace || strings.HasSuffix(attribute.Space, "/XML/1998/namespace"):
			continue
		case attribute.Space == instanceSpace:
			switch attribute.Local {
			case "nil":
				isNil = strings.TrimSpace(a.Value) == "true" || strings.TrimSpace(a.Value) == "1"
				if isNil && !e.declared.Nillable {
					return false, r.broken(s, written(name), "xsi:nil stands at an element that may not be nil", "", "send a value")
				}
			case "type":
				return false, r.broken(s, written(name), "xsi:type names another type, which cannot be checked", "",
					"send the element without it, or do not validate")
			}
			continue
		}
		declared := attributeOf(e.content, attribute)
		switch {
		case declared == nil && (e.content.HasAnyAttribute || e.content.IsAnything):
			continue
		case declared == nil:
			return false, r.broken(s, written(name), "attribute "+written(attribute)+" is not declared", attributeNames(e.content),
				"leave it out, or declare it")
		}
		given[attribute] = true
		if why := checkValue(declared.Simple, declared.Fixed, a.Value); why != "" {
			return false, r.broken(s, written(name)+"/@"+written(attribute), why, typeName(declared.Simple), "correct the value")
		}
	}
	for _, declared := range e.content.Attributes {
		if declared.Required && !given[declared.Name] {
			missing := "attribute " + written(declared.Name)
			return false, r.broken(s, written(name), missing+" is missing", missing, "add it")
		}
	}
	return isNil, nil
}

func attributeOf(e *xsd.Element, name xsd.Name) *xsd.Attribute {
	for _, a := range e.Attributes {
		if a.Name == name {
			return a
		}
	}
	return nil
}

func (r *Run) characters(s *xmlscan.Scanner) error {
	e := &r.open[len(r.open)-1]
	if e.states != nil {
		if !e.content.IsMixed && strings.TrimLeft(string(s.Text()), " \t\r\n") != "" {
			return r.broken(s, "", "text stands between the elements", r.validator.models.expected(e.states), "put it into an element")
		}
		return nil
	}
	if e.isNil {
		return r.broken(s, "", "the element is nil, and has a text", "", "leave out xsi:nil, or the text")
	}
	if r.text.Len()+len(s.Text()) > textMost {
		return r.broken(s, "", fmt.Sprintf("the value has more than %d bytes", textMost), typeName(e.content.Simple), "send a shorter value")
	}
	e.hasText = true
	r.text.Write(s.Text())
	return nil
}

func (r *Run) end(s *xmlscan.Scanner) error {
	last := len(r.open) - 1
	e := &r.open[last]
	switch {
	case e.isNil:
	case e.states != nil:
		if !r.validator.models.canEnd(e.states) {
			return r.broken(s, "", "the element ends too early", r.validator.models.expected(e.states), "add what is missing")
		}
	default:
		value := r.text.String()
		if value == "" && e.declared.Default != nil {
			value = *e.declared.Default
		}
		if value == "" && e.declared.Fixed != nil {
			value = *e.declared.Fixed
		}
		if why := checkValue(e.content.Simple, e.declared.Fixed, value); why != "" {
			return r.broken(s, "", why, typeName(e.content.Simple), "correct the value")
		}
	}
	r.open = r.open[:last]
	r.text.Reset()
	return nil
}

// broken makes a fault of an element within those that are open; below is its path from there, or empty for the last of them.
func (r *Run) broken(s *xmlscan.Scanner, below, message, expected, remedy string) error {
	steps := []string{""}
	for _, e := range r.open {
		steps = append(steps, written(e.declared.Name))
	}
	if below != "" {
		steps = append(steps, below)
	}
	path := strings.Join(steps, "/")
	return &fault.Fault{Message: message, Expected: expected, Remedy: remedy, Place: s.Place(), Field: path}
}
