// Package parts finds parts of bodies of XML and JSON by paths, and changes them in place: all bytes that are not named stay as they are.
//
// Paths are XPath 1.0 for both. In JSON the names of members are those of elements, and an element of a list is called item. A name
// without a prefix is found in any namespace.
package parts

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// Limits of a body.
const (
	BytesMax = 16 << 20
	depthMax = 256
)

type kind uint8

const (
	isRoot kind = iota
	isElement
	isAttribute
	isText
)

// none stands for no node.
const none = -1

// node is a part of a body. Numbers of others count from the first node, which is the root.
type node struct {
	kind           kind
	isList         bool // of JSON: its elements are called item
	isObject       bool
	parent         int32
	first, last    int32 // children
	attribute      int32 // the first
	next, previous int32 // siblings; of an attribute the next one
	start, end     int32 // bytes of the whole: an element with its tags, a value of JSON
	inner, behind  int32 // bytes of the content of an element of XML
	member         int32 // where the key of a member of JSON begins
	local, space   string
	value          string // of a text or an attribute
}

// A Document is a body that was read.
type Document struct {
	source   []byte
	nodes    []node
	isJSON   bool
	declared map[int32][]binding // namespaces that an element declares
}

type binding struct{ prefix, space string }

// A Part is an element, a member, an attribute or a text of a document.
type Part struct {
	document *Document
	at       int32
}

// Parse reads a body in UTF-8: JSON where it does not begin with <.
func Parse(body []byte) (*Document, error) {
	if len(body) > BytesMax {
		return nil, &fault.Fault{
			Message: fmt.Sprintf("a body of %d bytes is too large to be read by paths", len(body)),
			Remedy:  "promote what is needed of it in its message type",
		}
	}
	d := &Document{source: body, declared: map[int32][]binding{}}
	d.add(node{kind: isRoot, parent: none, end: int32(len(body))})
	trimmed := bytes.TrimLeft(body, " \t\r\n")
	if len(trimmed) == 0 {
		return nil, &fault.Fault{Message: "the body is empty", Remedy: "send XML or JSON"}
	}
	if trimmed[0] == '<' {
		return d, d.readXML()
	}
	d.isJSON = true
	return d, d.readJSON()
}

// IsJSON reports whether the body is JSON, and not XML.
func (d *Document) IsJSON() bool { return d.isJSON }

// Root gives the whole document as a part.
func (d *Document) Root() Part { return Part{d, 0} }

// add adds a node as the last child of its parent, or as its last attribute.
func (d *Document) add(n node) int32 {
	n.first, n.last, n.attribute, n.next, n.previous = none, none, none, none, none
	at := int32(len(d.nodes))
	if n.parent >= 0 {
		parent := &d.nodes[n.parent]
		switch {
		case n.kind == isAttribute && parent.attribute == none:
			parent.attribute = at
		case n.kind == isAttribute:
			last := parent.attribute
			for d.nodes[last].next != none {
				last = d.nodes[last].next
			}
			d.nodes[last].next = at
		default:
			if n.previous = parent.last; n.previous != none {
				d.nodes[n.previous].next = at
			} else {
				parent.first = at
			}
			parent.last = at
		}
	}
	d.nodes = append(d.nodes, n)
	return at
}

// IsJSON reports whether the part is one of JSON.
func (p Part) IsJSON() bool { return p.document.isJSON }

// Text is the text of the part and of all in it.
func (p Part) Text() string { return p.document.text(p.at) }

func (d *Document) text(at int32) string {
	n := &d.nodes[at]
	switch {
	case n.kind == isText || n.kind == isAttribute:
		return n.value
	case n.first == none:
		return ""
	case n.first == n.last && d.nodes[n.first].kind == isText:
		return d.nodes[n.first].value
	}
	var whole []byte
	var collect func(int32)
	collect = func(at int32) {
		for child := d.nodes[at].first; child != none; child = d.nodes[child].next {
			if d.nodes[child].kind == isText {
				whole = append(whole, d.nodes[child].value...)
				continue
			}
			collect(child)
		}
	}
	collect(at)
	return string(whole)
}

// errDeep refuses a body whose parts are nested too deeply.
var errDeep = errors.New("the body is nested too deeply to be read by paths")

// Inner is the first element of a whole document; of an element it is the element itself.
func (p Part) Inner() Part {
	if p.at == 0 && !p.document.isJSON {
		return Part{p.document, p.document.rootElement()}
	}
	return p
}
