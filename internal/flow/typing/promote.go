package typing

import (
	"errors"
	"io"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// PromotedMost is how long a value may be to be promoted, in bytes. A longer one is carried with the message, and counted.
const PromotedMost = 8 << 10

// KeptMost is how many bytes of a value are kept.
const KeptMost = 1 << 20

// A Property is a value of messages by its path.
type Property struct {
	Namespace, Name string
	Path            *Path
}

// A Value is what a message has for a property. Where the path fits several times, it is the first.
type Value struct {
	Property int // index in the list that the Promoter was made of
	Text     string
	IsLong   bool  // longer than PromotedMost
	IsCut    bool  // longer than KeptMost: Text is its beginning
	Bytes    int64 // of the whole value
	Times    int   // how often the path fitted
	kept     []byte
}

// TypeOf is the message type of a root element.
func TypeOf(space, root string) string {
	if space == "" {
		return root
	}
	return space + "#" + root
}

// A Promoter finds the values of properties. It can be used by several readers at a time.
type Promoter struct {
	count int
	root  *step
}

// A step is an element on the way to a value.
type step struct {
	name       xsd.Name
	children   []*step
	element    []int // properties that are its text
	attributes []attribute
}

type attribute struct {
	name     xsd.Name
	property int
}

// NewPromoter makes a promoter of properties.
func NewPromoter(properties []Property) *Promoter {
	p := &Promoter{count: len(properties), root: &step{}}
	for i, property := range properties {
		at := p.root
		steps := property.Path.Steps
		if property.Path.IsAttribute {
			steps = steps[:len(steps)-1]
		}
		for _, name := range steps {
			at = at.child(name, true)
		}
		if property.Path.IsAttribute {
			at.attributes = append(at.attributes, attribute{property.Path.Steps[len(steps)], i})
		} else {
			at.element = append(at.element, i)
		}
	}
	return p
}

// FromSchema gives the properties that the annotation of a schema's root promotes. Distinguished fields have no name and are left out.
func FromSchema(root *xsd.Element) ([]Property, error) {
	var all []Property
	for _, p := range root.Properties {
		if p.Distinguished || p.Name == "" {
			continue
		}
		path, err := ParsePath(p.XPath)
		if err != nil {
			if f, ok := fault.Of(err); ok {
				f.File, f.Place, f.Field = root.File, p.Place, p.Name
			}
			return nil, err
		}
		all = append(all, Property{Namespace: p.Namespace, Name: p.Name, Path: path})
	}
	return all, nil
}

func (s *step) child(name xsd.Name, add bool) *step {
	for _, c := range s.children {
		if c.name == name {
			return c
		}
	}
	if !add {
		return nil
	}
	c := &step{name: name}
	s.children = append(s.children, c)
	return c
}

// A Run follows one message. It can be used again after Reset.
type Run struct {
	promoter *Promoter
	path     []*step // of the open elements, as far as they lead to a value
	depth    int
	values   []Value
	index    []int // of values, by property; -1: none yet
	taking   []taken
}

type taken struct {
	value, depth int
}

// NewRun follows one message.
func (p *Promoter) NewRun() *Run {
	r := &Run{promoter: p, index: make([]int, p.count)}
	r.Reset()
	return r
}

// Reset begins another message.
func (r *Run) Reset() {
	r.path, r.depth, r.values, r.taking = append(r.path[:0], r.promoter.root), 0, r.values[:0], r.taking[:0]
	for i := range r.index {
		r.index[i] = -1
	}
}

// Values are the values found, in their order. They are valid until Reset.
func (r *Run) Values() []Value {
	for i := range r.values {
		v := &r.values[i]
		v.Text = string(v.kept)
	}
	return r.values
}

// Token takes the token that a scanner has read.
func (r *Run) Token(s *xmlscan.Scanner, kind xmlscan.Kind) {
	switch kind {
	case xmlscan.StartElement:
		r.start(s)
	case xmlscan.EndElement:
		for len(r.taking) > 0 && r.taking[len(r.taking)-1].depth == r.depth {
			r.taking = r.taking[:len(r.taking)-1]
		}
		if r.depth < len(r.path) {
			r.path = r.path[:r.depth]
		}
		r.depth--
	case xmlscan.Text, xmlscan.CDATA:
		for i := len(r.taking) - 1; i >= 0 && r.taking[i].depth == r.depth; i-- {
			r.values[r.taking[i].value].take(s.Text())
		}
	case xmlscan.Comment, xmlscan.Instruction:
	}
}

func (r *Run) start(s *xmlscan.Scanner) {
	r.depth++
	if len(r.path) < r.depth {
		return // no value below here
	}
	name := s.Name()
	at := r.path[r.depth-1].child(xsd.Name{Space: name.Space, Local: name.Local}, false)
	if at == nil {
		return
	}
	r.path = append(r.path, at)
	for _, property := range at.element {
		if v, isFirst := r.found(property); isFirst {
			r.taking = append(r.taking, taken{v, r.depth})
		}
	}
	if len(at.attributes) == 0 {
		return
	}
	for _, a := range s.Attrs() {
		for _, wanted := range at.attributes {
			if a.Name.Is(wanted.name.Space, wanted.name.Local) {
				if v, isFirst := r.found(wanted.property); isFirst {
					r.values[v].take([]byte(a.Value))
				}
			}
		}
	}
}

func (r *Run) found(property int) (value int, isFirst bool) {
	if i := r.index[property]; i >= 0 {
		r.values[i].Times++
		return i, false
	}
	r.index[property] = len(r.values)
	r.values = append(r.values, Value{Property: property, Times: 1})
	return len(r.values) - 1, true
}

func (v *Value) take(text []byte) {
	v.Bytes += int64(len(text))
	v.IsLong = v.Bytes > PromotedMost
	if room := KeptMost - len(v.kept); len(text) > room {
		v.IsCut = true
		text = text[:room]
	}
	v.kept = append(v.kept, text...)
}

// A Result is what a message says of itself.
type Result struct {
	Type   string
	Values []Value
}

// Read reads a whole message through a scanner.
func (r *Run) Read(s *xmlscan.Scanner) (Result, error) {
	r.Reset()
	result := Result{}
	isTyped := false
	for {
		kind, err := s.Next()
		if errors.Is(err, io.EOF) {
			result.Values = r.Values()
			return result, nil
		}
		if err != nil {
			return result, err
		}
		if kind == xmlscan.StartElement && !isTyped {
			result.Type, isTyped = TypeOf(s.Name().Space, s.Name().Local), true
		}
		r.Token(s, kind)
	}
}
