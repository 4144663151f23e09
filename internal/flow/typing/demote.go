package typing

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xmlscan"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// A Filling writes values into one message while it is read: into the element or attribute to which the path of a property leads first,
// where that is there and empty. It is the way back of a [Run].
type Filling struct {
	promoter *Promoter
	values   []string // by property; empty: none
	path     []*step
	depth    int
	isFound  []bool
	held     []byte // the start tag of an element that is empty so far and gets value
	value    string
}

// NewFilling fills values, one for each property of the promoter, into a message. It refuses characters that XML does not have.
func (p *Promoter) NewFilling(values []string) (*Filling, error) {
	for _, value := range values {
		if at := strings.IndexFunc(value, isNoCharacter); at >= 0 || !utf8.ValidString(value) {
			return nil, &fault.Fault{
				Message: fmt.Sprintf("property value %.100q has a character that XML does not have", value),
				Remedy:  "publish the message without it",
			}
		}
	}
	return &Filling{promoter: p, values: values, path: []*step{p.root}, isFound: make([]bool, p.count)}, nil
}

func isNoCharacter(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF
}

// Token takes the token that a scanner has read, and gives what is written at its place. It is valid until the next one.
func (f *Filling) Token(s *xmlscan.Scanner, kind xmlscan.Kind) []byte {
	raw := s.Raw()
	if f.held != nil {
		raw = f.unhold(raw, kind)
	}
	switch kind {
	case xmlscan.StartElement:
		return f.start(s, raw)
	case xmlscan.EndElement:
		if f.depth < len(f.path) {
			f.path = f.path[:f.depth]
		}
		f.depth--
	case xmlscan.Text, xmlscan.CDATA, xmlscan.Comment, xmlscan.Instruction:
	}
	return raw
}

// unhold writes the start tag that was held back, and the value behind it where the element ends here.
func (f *Filling) unhold(raw []byte, kind xmlscan.Kind) []byte {
	tag := f.held
	f.held = nil
	if kind != xmlscan.EndElement {
		return append(tag, raw...)
	}
	if len(raw) == 0 {
		name, _, _ := bytes.Cut(bytes.TrimRight(tag[1:len(tag)-2], " \t\r\n"), []byte(" "))
		if i := bytes.IndexAny(name, "\t\r\n"); i >= 0 {
			name = name[:i]
		}
		raw = []byte("</" + string(name) + ">")
		tag = append(tag[:len(tag)-2], '>')
	}
	return append(append(tag, EscapeText(f.value)...), raw...)
}

func (f *Filling) start(s *xmlscan.Scanner, raw []byte) []byte {
	f.depth++
	if len(f.path) < f.depth {
		return raw // no value below here
	}
	name := s.Name()
	at := f.path[f.depth-1].child(xsd.Name{Space: name.Space, Local: name.Local}, false)
	if at == nil {
		return raw
	}
	f.path = append(f.path, at)
	tag := s.Raw()
	before := raw[:len(raw)-len(tag)]
	for _, a := range s.Attrs() {
		for _, wanted := range at.attributes {
			if value := f.take(wanted.property, a.Name.Is(wanted.name.Space, wanted.name.Local)); value != "" && a.Value == "" {
				tag = fillAttribute(tag, a.Name, value)
			}
		}
	}
	for _, property := range at.element {
		if value := f.take(property, true); value != "" && f.held == nil {
			f.held, f.value = bytes.Clone(tag), value
		}
	}
	if f.held != nil {
		return before
	}
	if len(before) == 0 {
		return tag
	}
	return append(bytes.Clone(before), tag...)
}

// take gives the value of a property at the first place to which its path leads.
func (f *Filling) take(property int, isHere bool) string {
	if !isHere || f.isFound[property] {
		return ""
	}
	f.isFound[property] = true
	return f.values[property]
}

// fillAttribute writes a value into an attribute of a start tag that is empty.
func fillAttribute(tag []byte, name xmlscan.Name, value string) []byte {
	written := name.Local
	if name.Prefix != "" {
		written = name.Prefix + ":" + name.Local
	}
	i := bytes.IndexAny(tag, " \t\r\n") // behind the name of the element
	for i >= 0 && i < len(tag) {
		for i < len(tag) && strings.IndexByte(" \t\r\n", tag[i]) >= 0 {
			i++
		}
		equals := bytes.IndexByte(tag[i:], '=')
		if equals < 0 {
			break
		}
		quote := i + equals + 1 + bytes.IndexAny(tag[i+equals+1:], `"'`)
		end := bytes.IndexByte(tag[quote+1:], tag[quote])
		if string(bytes.TrimRight(tag[i:i+equals], " \t\r\n")) == written {
			return []byte(string(tag[:quote+1]) + EscapeValue(value) + string(tag[quote+1:]))
		}
		i = quote + 1 + end + 1
	}
	return tag
}

var (
	textEscapes  = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;")
	valueEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", `"`, "&quot;", "'", "&apos;", "\t", "&#9;", "\n", "&#10;", "\r", "&#13;")
)

// EscapeText writes text as content of an element.
func EscapeText(text string) string { return textEscapes.Replace(text) }

// EscapeValue writes text as the value of an attribute, in quotes of either kind.
func EscapeValue(text string) string { return valueEscapes.Replace(text) }
