package xmlscan

import (
	"bytes"
	"fmt"
	"slices"
)

// internedMost bounds how many different names and namespaces are kept.
const internedMost = 10_000

func (s *Scanner) intern(p []byte) string {
	if known, ok := s.interned[string(p)]; ok {
		return known
	}
	text := string(p)
	if len(s.interned) < internedMost {
		s.interned[text] = text
	}
	return text
}

// bindPrefixes takes the declarations of namespaces from the attributes of an element.
func (s *Scanner) bindPrefixes() error {
	clear(s.known)
	first := len(s.bound)
	for _, a := range s.attrs {
		if !a.isDeclaration {
			continue
		}
		var prefix []byte
		if a.nameEnd-a.nameStart > 5 {
			prefix = s.buf[a.nameStart+6 : a.nameEnd]
		}
		b := binding{prefix: s.intern(prefix), space: s.intern(s.attrValue(a))}
		switch {
		case b.prefix == "xmlns", b.space == XMLNSSpace, (b.prefix == "xml") != (b.space == xmlSpace):
			return s.broken(a.nameStart, fmt.Sprintf("prefix %q cannot be bound to %q", b.prefix, b.space),
				"declare another prefix or namespace")
		case b.prefix != "" && b.space == "":
			return s.broken(a.nameStart, fmt.Sprintf("prefix %s is bound to no namespace", b.prefix),
				"give its namespace, or leave the declaration away")
		}
		for _, other := range s.bound[first:] {
			if other.prefix == b.prefix {
				return s.broken(a.nameStart, fmt.Sprintf("prefix %q is declared twice", b.prefix), "declare it once")
			}
		}
		s.bound = append(s.bound, b)
	}
	return nil
}

// resolve gives the name that is written so.
func (s *Scanner) resolve(written []byte, isElement bool, at int) (Name, error) {
	if isElement {
		if known, ok := s.known[string(written)]; ok {
			return known, nil
		}
	}
	var name Name
	if colon := bytes.IndexByte(written, ':'); colon >= 0 {
		name.Prefix = s.intern(written[:colon])
		written = written[colon+1:]
		space, ok := s.spaceOf(name.Prefix)
		if !ok {
			return name, s.broken(at, fmt.Sprintf("prefix %s is not declared", name.Prefix), fmt.Sprintf("declare xmlns:%s", name.Prefix))
		}
		name.Space = space
	} else if isElement {
		name.Space, _ = s.spaceOf("")
	}
	name.Local = s.intern(written)
	if isElement && len(s.known) < internedMost {
		key := name.Local
		if name.Prefix != "" {
			key = name.Prefix + ":" + name.Local
		}
		s.known[key] = name
	}
	return name, nil
}

func (s *Scanner) spaceOf(prefix string) (string, bool) {
	for _, b := range slices.Backward(s.bound) {
		if b.prefix == prefix {
			return b.space, true
		}
	}
	switch prefix {
	case "":
		return "", true
	case "xml":
		return xmlSpace, true
	}
	return "", false
}

func (s *Scanner) attrName(a span) Name {
	written := s.buf[a.nameStart:a.nameEnd]
	if a.isDeclaration {
		if len(written) == 5 {
			return Name{Space: XMLNSSpace, Local: "xmlns"}
		}
		return Name{Space: XMLNSSpace, Local: s.intern(written[6:]), Prefix: "xmlns"}
	}
	name, _ := s.resolve(written, false, a.nameStart) // checked before
	return name
}

// checkAttrNames refuses prefixes that are not declared, and an attribute that is there twice.
func (s *Scanner) checkAttrNames() error {
	hasPrefix := false
	for i, a := range s.attrs {
		written := s.buf[a.nameStart:a.nameEnd]
		for _, other := range s.attrs[:i] {
			if bytes.Equal(written, s.buf[other.nameStart:other.nameEnd]) {
				return s.broken(a.nameStart, fmt.Sprintf("attribute %s is there twice", written), "leave one away")
			}
		}
		if !a.isDeclaration && bytes.IndexByte(written, ':') >= 0 {
			hasPrefix = true
			if _, err := s.resolve(written, false, a.nameStart); err != nil {
				return err
			}
		}
	}
	if !hasPrefix {
		return nil
	}
	for i, a := range s.attrs {
		name := s.attrName(a)
		for _, other := range s.attrs[:i] {
			if o := s.attrName(other); name.Space == o.Space && name.Local == o.Local {
				return s.broken(a.nameStart, fmt.Sprintf("attribute %s of namespace %s is there twice", name.Local, name.Space), "leave one away")
			}
		}
	}
	return nil
}
