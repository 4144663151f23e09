// Package xquery evaluates the methods of the type xml: value, query, exist and nodes, over the part of XQuery that is a path: steps,
// predicates, functions of XPath 1.0, value comparisons, a prolog of namespaces, sql:variable.
package xquery

import (
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"strings"

	"github.com/antchfx/xpath"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// A Node is a node of a document or of a fragment; the root has the nodes at the top as children.
type Node struct {
	kind     xpath.NodeType
	local    string
	space    string // the namespace's URI
	prefix   string
	value    string // of text, attributes, comments and instructions
	parent   *Node
	children []*Node
	attrs    []*Node
	at       int // the place among its brothers
	declared []declaration
}

// A declaration binds a prefix to a namespace at an element.
type declaration struct{ prefix, space string }

// Parse reads the text of a value of xml, which is well formed.
func Parse(text string) (*Node, *fault.Error) {
	return parseUnder(&Node{kind: xpath.RootNode}, text)
}

// parseUnder reads the text as children of a root.
func parseUnder(root *Node, text string) (*Node, *fault.Error) {
	decoder := xml.NewDecoder(strings.NewReader(text))
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	at := root
	for {
		token, err := decoder.RawToken()
		if errors.Is(err, io.EOF) {
			return root, nil
		}
		if err != nil {
			return nil, fault.New(9422, 1, decoder.InputOffset())
		}
		switch token := token.(type) {
		case xml.StartElement:
			at = at.add(element(at, token))
		case xml.EndElement:
			if at.parent != nil {
				at = at.parent
			}
		case xml.CharData:
			if n := len(at.children); n > 0 && at.children[n-1].kind == xpath.TextNode {
				at.children[n-1].value += string(token)
			} else {
				at.add(&Node{kind: xpath.TextNode, value: string(token)})
			}
		case xml.Comment:
			at.add(&Node{kind: xpath.CommentNode, value: string(token)})
		}
	}
}

func (n *Node) add(child *Node) *Node {
	child.parent, child.at = n, len(n.children)
	n.children = append(n.children, child)
	return child
}

// element makes an element with its attributes; prefixes are those in force at its place.
func element(parent *Node, start xml.StartElement) *Node {
	n := &Node{kind: xpath.ElementNode, local: start.Name.Local, prefix: start.Name.Space, parent: parent}
	for _, a := range start.Attr {
		switch {
		case a.Name.Space == "" && a.Name.Local == "xmlns":
			n.declared = append(n.declared, declaration{"", a.Value})
		case a.Name.Space == "xmlns":
			n.declared = append(n.declared, declaration{a.Name.Local, a.Value})
		}
	}
	n.space = n.bound(n.prefix)
	for _, a := range start.Attr {
		if a.Name.Space == "xmlns" || a.Name.Space == "" && a.Name.Local == "xmlns" {
			continue
		}
		attribute := &Node{
			kind: xpath.AttributeNode, local: a.Name.Local, prefix: a.Name.Space, value: a.Value, parent: n, at: len(n.attrs),
		}
		if a.Name.Space != "" {
			attribute.space = n.bound(a.Name.Space)
		}
		n.attrs = append(n.attrs, attribute)
	}
	return n
}

// bound gives the namespace of a prefix at an element.
func (n *Node) bound(prefix string) string {
	if prefix == "xml" {
		return "http://www.w3.org/XML/1998/namespace"
	}
	for ; n != nil; n = n.parent {
		for _, d := range n.declared {
			if d.prefix == prefix {
				return d.space
			}
		}
	}
	return ""
}

// text gives the string value of a node.
func (n *Node) text() string {
	if n.kind != xpath.ElementNode && n.kind != xpath.RootNode {
		return n.value
	}
	var b strings.Builder
	n.write(&b)
	return b.String()
}

func (n *Node) write(b *strings.Builder) {
	for _, child := range n.children {
		switch child.kind {
		case xpath.TextNode:
			b.WriteString(child.value)
		case xpath.ElementNode:
			child.write(b)
		default: // comments
		}
	}
}

// XML writes a node; namespaces that its ancestors declare and it needs are declared at it.
func (n *Node) XML() string {
	var b strings.Builder
	n.serialize(&b, map[string]string{})
	return b.String()
}

func (n *Node) serialize(b *strings.Builder, inForce map[string]string) {
	switch n.kind {
	case xpath.RootNode:
		for _, child := range n.children {
			child.serialize(b, inForce)
		}
	case xpath.TextNode:
		escape(b, n.value, false)
	case xpath.CommentNode:
		b.WriteString("<!--" + n.value + "-->")
	case xpath.AttributeNode:
		escape(b, n.value, false)
	default:
		n.serializeElement(b, inForce)
	}
}

func (n *Node) serializeElement(b *strings.Builder, inForce map[string]string) {
	name := qualified(n.prefix, n.local)
	b.WriteString("<" + name)
	inside := maps.Clone(inForce)
	declare := func(prefix, space string) {
		if inside[prefix] == space {
			return
		}
		inside[prefix] = space
		b.WriteString(" " + strings.TrimSuffix("xmlns:"+prefix, ":") + "=\"")
		escape(b, space, true)
		b.WriteByte('"')
	}
	declare(n.prefix, n.space)
	for _, d := range n.declared {
		declare(d.prefix, d.space)
	}
	for _, a := range n.attrs {
		if a.prefix != "" && a.prefix != "xml" {
			declare(a.prefix, a.space)
		}
	}
	for _, a := range n.attrs {
		b.WriteString(" " + qualified(a.prefix, a.local) + "=\"")
		escape(b, a.value, true)
		b.WriteByte('"')
	}
	if len(n.children) == 0 {
		b.WriteString("/>")
		return
	}
	b.WriteByte('>')
	for _, child := range n.children {
		child.serialize(b, inside)
	}
	b.WriteString("</" + name + ">")
}

func qualified(prefix, local string) string {
	if prefix == "" {
		return local
	}
	return prefix + ":" + local
}

func escape(b *strings.Builder, text string, inAttribute bool) {
	for _, r := range text {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"' && inAttribute:
			b.WriteString("&quot;")
		case r == '\r':
			b.WriteString("&#x0D;")
		case r == '\n' && inAttribute:
			b.WriteString("&#x0A;")
		case r == '\t' && inAttribute:
			b.WriteString("&#x09;")
		default:
			b.WriteRune(r)
		}
	}
}
