package parts

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/parley-broker/parley/internal/flow/xmlscan"
)

func (d *Document) readXML() error {
	scanner := xmlscan.New(bytes.NewReader(d.source), xmlscan.Limits{Depth: depthMax})
	at := int32(0)
	for {
		kind, err := scanner.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		switch kind {
		case xmlscan.StartElement:
			name := scanner.Name()
			at = d.add(node{
				kind: isElement, parent: at, start: int32(scanner.Offset()), inner: int32(scanner.End()), local: name.Local, space: name.Space,
			})
			d.readAttributes(at, scanner.Attrs())
		case xmlscan.EndElement:
			n := &d.nodes[at]
			n.behind, n.end = int32(scanner.Offset()), int32(scanner.End())
			at = n.parent
		case xmlscan.Text, xmlscan.CDATA:
			if at > 0 {
				d.add(node{
					kind: isText, parent: at, start: int32(scanner.Offset()), end: int32(scanner.End()), value: string(scanner.Text()),
				})
			}
		case xmlscan.Comment, xmlscan.Instruction:
		}
	}
}

func (d *Document) readAttributes(at int32, attributes []xmlscan.Attr) {
	for _, a := range attributes {
		if a.Name.Space == xmlscan.XMLNSSpace {
			prefix := a.Name.Local
			if a.Name.Prefix == "" {
				prefix = ""
			}
			d.declared[at] = append(d.declared[at], binding{prefix, a.Value})
			continue
		}
		d.add(node{kind: isAttribute, parent: at, local: a.Name.Local, space: a.Name.Space, value: a.Value})
	}
}

// bindings gives the namespaces that hold in an element and it does not declare itself.
func (d *Document) bindings(at int32) []binding {
	var found []binding
	isKnown := map[string]bool{}
	for _, b := range d.declared[at] {
		isKnown[b.prefix] = true
	}
	for at = d.nodes[at].parent; at > 0; at = d.nodes[at].parent {
		for _, b := range d.declared[at] {
			if !isKnown[b.prefix] {
				isKnown[b.prefix] = true
				found = append(found, b)
			}
		}
	}
	return found
}

// Fragment is the part as it stands, with what it needs of namespaces, so that it can stand elsewhere.
func (p Part) Fragment() []byte {
	d, n := p.document, &p.document.nodes[p.at]
	switch {
	case n.kind == isAttribute:
		return appendEscaped(nil, n.value)
	case n.kind == isRoot && !d.isJSON:
		return d.source[d.nodes[d.rootElement()].start:d.nodes[d.rootElement()].end]
	case n.kind == isRoot:
		return bytes.TrimSpace(d.source)
	}
	whole := d.source[n.start:n.end]
	if d.isJSON || n.kind == isText {
		return whole
	}
	var added []byte
	for _, b := range d.bindings(p.at) {
		if b.prefix != "" && !bytes.Contains(whole, []byte(b.prefix+":")) || b.prefix == "" && b.space == "" {
			continue
		}
		added = append(added, " xmlns"...)
		if b.prefix != "" {
			added = append(append(added, ':'), b.prefix...)
		}
		added = append(appendEscaped(append(added, `="`...), b.space), '"')
	}
	name := 1
	for name < len(whole) && !strings.ContainsRune(" \t\r\n/>", rune(whole[name])) {
		name++
	}
	return append(append(append([]byte{}, whole[:name]...), added...), whole[name:]...)
}

func (d *Document) rootElement() int32 {
	for at := d.nodes[0].first; at != none; at = d.nodes[at].next {
		if d.nodes[at].kind == isElement {
			return at
		}
	}
	return 0
}

// Escape writes a text so that it can stand in an element or in an attribute of XML. Characters that XML does not have are left out.
func Escape(text string) string { return string(appendEscaped(nil, text)) }

func appendEscaped(to []byte, text string) []byte {
	for _, r := range text {
		switch {
		case r == '<':
			to = append(to, "&lt;"...)
		case r == '>':
			to = append(to, "&gt;"...)
		case r == '&':
			to = append(to, "&amp;"...)
		case r == '"':
			to = append(to, "&quot;"...)
		case r == '\'':
			to = append(to, "&apos;"...)
		case r == '\r':
			to = append(to, "&#13;"...)
		case r < ' ' && r != '\t' && r != '\n', r == 0xFFFE, r == 0xFFFF:
		default:
			to = append(to, string(r)...)
		}
	}
	return to
}
