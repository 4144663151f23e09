package parts

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// A Value is written at a path: a text or a literal of JSON, a part of a document, or nothing, which removes what is there.
type Value struct {
	IsRemoval bool
	Fragment  []byte // of XML, or a value of JSON
	Text      string // for XML
	JSON      []byte // for JSON
}

// Set gives the body with a value at a path that leads to one part. A part that is missing is made where the last step of the path is a
// name: the last one of its element or object.
func (d *Document) Set(path *Path, value Value, steps *int) ([]byte, error) {
	found, _, err := d.Root().Find(path, steps)
	switch {
	case err != nil:
		return nil, err
	case len(found) > 1:
		return nil, &fault.Fault{
			Message: fmt.Sprintf("path %s leads to %d parts", path.Written, len(found)), Remedy: "say which, such as /Order/Line[1]",
		}
	case len(found) == 0:
		return d.make(path, value, steps)
	}
	part := found[0]
	switch n := &d.nodes[part.at]; {
	case n.kind == isRoot:
		return nil, &fault.Fault{Message: "the whole of a message cannot be set by a path", Remedy: "construct it anew"}
	case d.isJSON:
		return d.setJSON(part.at, value), nil
	case n.kind == isAttribute:
		return d.setAttribute(n, value)
	case n.kind == isText:
		return d.replaced(n.start, n.end, value.xml()), nil
	case value.IsRemoval:
		return d.replaced(n.start, n.end, nil), nil
	case n.behind == n.inner && n.end == n.inner: // an empty-element tag
		tag := d.source[n.start:n.end]
		open := bytes.TrimRight(bytes.TrimSuffix(tag, []byte("/>")), " \t\r\n")
		whole := append(append(append(bytes.Clone(open), '>'), value.xml()...), "</"+tagName(tag)+">"...)
		return d.replaced(n.start, n.end, whole), nil
	default:
		return d.replaced(n.inner, n.behind, value.xml()), nil
	}
}

func (v Value) xml() []byte {
	if v.Fragment != nil {
		return v.Fragment
	}
	return appendEscaped(nil, v.Text)
}

func (v Value) json() []byte {
	if v.Fragment != nil {
		return v.Fragment
	}
	return v.JSON
}

// tagName is the name of an element as its tag has it.
func tagName(tag []byte) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(string(tag), "<"), ">")
	if i := strings.IndexAny(name, " \t\r\n/"); i >= 0 {
		name = name[:i]
	}
	return name
}

// replaced gives the body with other bytes in place of some.
func (d *Document) replaced(start, end int32, by []byte) []byte {
	body := make([]byte, 0, len(d.source)+len(by))
	body = append(append(body, d.source[:start]...), by...)
	return append(body, d.source[end:]...)
}

func (d *Document) make(path *Path, value Value, steps *int) ([]byte, error) {
	if value.IsRemoval {
		return d.source, nil
	}
	missing := &fault.Fault{
		Message: "there is no part at " + path.Written,
		Remedy:  "name one that is there; the last step is made where it is a name and the part around it is there",
	}
	if path.parent == nil {
		return nil, missing
	}
	found, _, err := d.Root().find(path.parent, steps)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, missing
	}
	n := &d.nodes[found[0].at]
	switch {
	case d.isJSON && n.isObject:
		return d.makeMember(n, path.last, value), nil
	case d.isJSON || n.kind != isElement:
		return nil, missing
	case path.isAttribute && !strings.Contains(path.last, ":"):
		at := n.start + int32(len(tagName(d.source[n.start:n.inner]))) + 1
		return d.replaced(at, at, append(appendEscaped([]byte(" "+path.last+`="`), value.Text), '"')), nil
	case path.isAttribute:
		return nil, missing
	}
	return d.makeElement(n, path.last, value), nil
}

// makeElement adds an element behind all others of one, in its namespace.
func (d *Document) makeElement(n *node, local string, value Value) []byte {
	tag := d.source[n.start:n.inner]
	name := local[strings.IndexByte(local, ':')+1:]
	if prefix, _, has := strings.Cut(tagName(tag), ":"); has {
		name = prefix + ":" + name
	}
	element := append([]byte("<"+name+">"), value.xml()...)
	element = append(element, "</"+name+">"...)
	if n.behind == n.inner && n.end == n.inner {
		open := bytes.TrimRight(bytes.TrimSuffix(tag, []byte("/>")), " \t\r\n")
		whole := append(append(append(bytes.Clone(open), '>'), element...), "</"+tagName(tag)+">"...)
		return d.replaced(n.start, n.end, whole)
	}
	return d.replaced(n.behind, n.behind, element)
}

func (d *Document) makeMember(n *node, name string, value Value) []byte {
	member := append(append(Quote(name), ':'), value.json()...)
	if n.last != none {
		behind := d.nodes[n.last].end
		return d.replaced(behind, behind, append([]byte(","), member...))
	}
	return d.replaced(n.start+1, n.start+1, member)
}

func (d *Document) setJSON(at int32, value Value) []byte {
	n := &d.nodes[at]
	if n.kind == isText {
		n = &d.nodes[n.parent]
	}
	if !value.IsRemoval || n.kind == isRoot {
		return d.replaced(n.start, n.end, value.json())
	}
	switch {
	case n.next != none:
		return d.replaced(n.member, d.nodes[n.next].member, nil)
	case n.previous != none:
		return d.replaced(d.nodes[n.previous].end, n.end, nil)
	}
	return d.replaced(n.member, n.end, nil)
}

// setAttribute changes an attribute within the bytes of its tag.
func (d *Document) setAttribute(n *node, value Value) ([]byte, error) {
	parent := &d.nodes[n.parent]
	tag := d.source[parent.start:parent.inner]
	for at := len(tagName(tag)) + 1; at < len(tag); {
		begin := at
		for at < len(tag) && isBlank(tag[at]) {
			at++
		}
		nameStart := at
		for at < len(tag) && tag[at] != '=' && !isBlank(tag[at]) {
			at++
		}
		name := string(tag[nameStart:at])
		for at < len(tag) && tag[at] != '"' && tag[at] != '\'' {
			at++
		}
		if at >= len(tag) {
			break
		}
		length := bytes.IndexByte(tag[at+1:], tag[at])
		if length < 0 {
			break
		}
		valueStart, behind := at+1, at+1+length
		at = behind + 1
		if name[strings.IndexByte(name, ':')+1:] != n.local || strings.HasPrefix(name, "xmlns") || !d.isSpaceOf(n, name) {
			continue
		}
		if value.IsRemoval {
			return d.replaced(parent.start+int32(begin), parent.start+int32(at), nil), nil
		}
		return d.replaced(parent.start+int32(valueStart), parent.start+int32(behind), appendEscaped(nil, value.Text)), nil
	}
	return nil, errors.New("the attribute was not found in its tag")
}

// isSpaceOf reports whether the prefix of an attribute, as its tag has it, stands for the namespace of a node.
func (d *Document) isSpaceOf(n *node, name string) bool {
	prefix, _, has := strings.Cut(name, ":")
	if !has {
		return n.space == ""
	}
	for at := n.parent; at > 0; at = d.nodes[at].parent {
		for _, b := range d.declared[at] {
			if b.prefix == prefix {
				return b.space == n.space
			}
		}
	}
	return n.space != ""
}

func isBlank(b byte) bool { return b == ' ' || b == '\t' || b == '\r' || b == '\n' }
