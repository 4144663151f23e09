// Package typing finds the type of an XML message, namespace#root, and the values that a schema promotes, while the message streams by.
package typing

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/xsd"
)

// A Path names an element or attribute: the names of the elements from the root on. It is written in the canonical form
//
//	/*[local-name()='Order' and namespace-uri()='urn:orders']/*[local-name()='Id' and namespace-uri()='']
//
// with /@* before the last predicate for an attribute.
type Path struct {
	Steps       []xsd.Name
	IsAttribute bool // the last step is one
}

const canonicalForm = "write each step as /*[local-name()='Name' and namespace-uri()='urn:namespace'], " +
	"the last as /@*[...] for an attribute; namespace-uri()='' stands for no namespace"

// ParsePath reads a path in the canonical form. Any other is refused with its place, a column from 1.
func ParsePath(written string) (*Path, error) {
	p := &Path{}
	rest := written
	for rest != "" {
		at := len(written) - len(rest)
		switch {
		case p.IsAttribute:
			return nil, badPath(written, at, "a step behind an attribute")
		case strings.HasPrefix(rest, "/@*["):
			p.IsAttribute = true
			rest = rest[len("/@*["):]
		case strings.HasPrefix(rest, "/*["):
			rest = rest[len("/*["):]
		case strings.HasPrefix(rest, "//"):
			return nil, badPath(written, at, "// searches the whole document, which cannot be done while it streams by")
		default:
			return nil, badPath(written, at, "a step that is not in the canonical form")
		}
		name, behind, why := predicate(rest)
		if why != "" {
			return nil, badPath(written, len(written)-len(behind), why)
		}
		p.Steps = append(p.Steps, name)
		rest = behind
	}
	if len(p.Steps) == 0 {
		return nil, badPath(written, 0, "the path is empty")
	}
	return p, nil
}

// predicate reads local-name()='...' and namespace-uri()='...'] in either order of quotes.
func predicate(p string) (name xsd.Name, rest string, why string) {
	value, rest, ok := test(p, "local-name()")
	if !ok || value == "" {
		if strings.HasPrefix(strings.TrimSpace(p), "position()") {
			return name, p, "position() counts elements, which a promoted value does not do"
		}
		return name, p, "no test of local-name()"
	}
	name.Local = value
	trimmed := strings.TrimLeft(rest, " \t\r\n")
	if strings.HasPrefix(trimmed, "]") {
		return name, rest, "the test of namespace-uri() is missing: the step would take an element of any namespace"
	}
	if !strings.HasPrefix(trimmed, "and") {
		return name, rest, "a predicate that is not in the canonical form"
	}
	space, rest, ok := test(trimmed[len("and"):], "namespace-uri()")
	if !ok {
		return name, trimmed, "no test of namespace-uri()"
	}
	name.Space = space
	rest = strings.TrimLeft(rest, " \t\r\n")
	if !strings.HasPrefix(rest, "]") {
		return name, rest, "more than the two tests of the canonical form"
	}
	return name, rest[1:], ""
}

func test(p, function string) (value, rest string, ok bool) {
	p = strings.TrimLeft(p, " \t\r\n")
	if !strings.HasPrefix(p, function) {
		return "", p, false
	}
	p = strings.TrimLeft(p[len(function):], " \t\r\n")
	if !strings.HasPrefix(p, "=") {
		return "", p, false
	}
	p = strings.TrimLeft(p[1:], " \t\r\n")
	if p == "" || p[0] != '\'' && p[0] != '"' {
		return "", p, false
	}
	end := strings.IndexByte(p[1:], p[0])
	if end < 0 {
		return "", p, false
	}
	return p[1 : 1+end], p[2+end:], true
}

func badPath(written string, at int, why string) error {
	return &fault.Fault{
		Message: fmt.Sprintf("path %s: %s", written, why), Remedy: canonicalForm,
		Place: fault.Place{Byte: int64(at), Line: 1, Column: utf8.RuneCountInString(written[:at]) + 1},
	}
}

// String writes the path in the canonical form.
func (p *Path) String() string {
	var b strings.Builder
	for i, s := range p.Steps {
		b.WriteString("/")
		if p.IsAttribute && i == len(p.Steps)-1 {
			b.WriteString("@")
		}
		fmt.Fprintf(&b, "*[local-name()=%s and namespace-uri()=%s]", quoted(s.Local), quoted(s.Space))
	}
	return b.String()
}

func quoted(text string) string {
	if strings.Contains(text, "'") {
		return `"` + text + `"`
	}
	return "'" + text + "'"
}
