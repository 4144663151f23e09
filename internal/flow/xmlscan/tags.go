package xmlscan

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// startTag reads a start tag or an empty-element tag.
func (s *Scanner) startTag() (Kind, error) {
	if len(s.open) == 0 && s.hadRoot {
		return 0, s.broken(s.start, "a second root element", "send one document in a message; an envelope holds several")
	}
	if len(s.open) >= s.limits.Depth {
		return 0, s.broken(s.start, fmt.Sprintf("more than %d elements in each other", s.limits.Depth),
			"raise the limit of depth, or send less deep documents")
	}
	nameStart := s.pos + 1
	nameEnd, err := s.readName(nameStart, "the name of an element")
	if err != nil {
		return 0, err
	}
	end, hasDeclarations, err := s.attributes(nameEnd)
	if err != nil {
		return 0, err
	}
	s.pos = end
	bound := len(s.bound)
	if hasDeclarations {
		if err := s.bindPrefixes(); err != nil {
			return 0, err
		}
	}
	written := s.buf[nameStart:nameEnd]
	s.name, err = s.resolve(written, true, nameStart)
	if err != nil {
		return 0, err
	}
	if len(s.attrs) > 1 || len(s.attrs) == 1 && !hasDeclarations {
		if err := s.checkAttrNames(); err != nil {
			return 0, err
		}
	}
	s.open = append(s.open, element{name: s.name, nameStart: len(s.names), bound: bound})
	s.names = append(s.names, written...)
	s.hadRoot = true
	return StartElement, nil
}

// attributes reads the attributes of a tag from behind its name, and gives where the tag ends.
func (s *Scanner) attributes(i int) (end int, hasDeclarations bool, err error) {
	s.attrs, s.decoded = s.attrs[:0], false
	for {
		spaceStart := i
		for s.have(i) && isSpace(s.buf[i]) {
			i++
		}
		if !s.have(i) {
			return 0, false, s.unended("a tag")
		}
		if i-s.start > s.limits.TokenBytes {
			return 0, false, s.unended("a tag")
		}
		b := s.buf[i]
		if b == '>' {
			return i + 1, hasDeclarations, nil
		}
		if b == '/' {
			if !s.have(i + 1) {
				return 0, false, s.unended("a tag")
			}
			if s.buf[i+1] != '>' {
				return 0, false, s.broken(i, "a slash within a tag", "write /> at the end of an empty element")
			}
			s.pending = true
			return i + 2, hasDeclarations, nil
		}
		if i == spaceStart {
			return 0, false, s.broken(i, "no blank before an attribute", "put a blank between attributes")
		}
		var a span
		a, i, err = s.readAttr(i)
		if err != nil {
			return 0, false, err
		}
		if len(s.attrs) == s.limits.Attributes {
			return 0, false, s.broken(a.nameStart, fmt.Sprintf("more than %d attributes", s.limits.Attributes), "raise the limit of attributes")
		}
		hasDeclarations = hasDeclarations || a.isDeclaration
		s.attrs = append(s.attrs, a)
	}
}

func (s *Scanner) readName(i int, what string) (int, error) {
	first := i
	for s.have(i) {
		b := s.buf[i]
		if b < utf8.RuneSelf {
			class := classes[b]
			if class&nameChar == 0 || i == first && class&nameStartChar == 0 {
				break
			}
			i++
			continue
		}
		for n := 1; n < utf8.UTFMax && !utf8.FullRune(s.buf[i:]); n++ {
			if !s.have(i + n) {
				break
			}
		}
		r, size := utf8.DecodeRune(s.buf[i:])
		if !isNameRune(r, i == first) || r == utf8.RuneError && size == 1 {
			break
		}
		i += size
	}
	if i == first {
		if !s.have(i) {
			return 0, s.unended("a tag")
		}
		return 0, s.broken(i, "this is not "+what, "names begin with a letter or _; write &lt; for a < in a text")
	}
	if i-first > s.limits.NameBytes {
		return 0, s.broken(first, fmt.Sprintf("a name has more than %d bytes", s.limits.NameBytes), "raise the limit of names")
	}
	if colon := bytes.IndexByte(s.buf[first:i], ':'); colon >= 0 {
		local := s.buf[first+colon+1 : i]
		if colon == 0 || len(local) == 0 || bytes.IndexByte(local, ':') >= 0 || !startsName(local) {
			return 0, s.broken(first, fmt.Sprintf("%q is no name with a prefix", s.buf[first:i]), "write prefix:name")
		}
	}
	return i, nil
}

func startsName(p []byte) bool {
	r, _ := utf8.DecodeRune(p)
	return r < utf8.RuneSelf && classes[byte(r)]&nameStartChar != 0 || r >= utf8.RuneSelf && isNameRune(r, true)
}

func (s *Scanner) readAttr(i int) (span, int, error) {
	a := span{nameStart: i}
	i, err := s.readName(i, "the name of an attribute")
	if err != nil {
		return a, i, err
	}
	a.nameEnd = i
	name := s.buf[a.nameStart:a.nameEnd]
	a.isDeclaration = len(name) >= 5 && string(name[:5]) == "xmlns" && (len(name) == 5 || name[5] == ':')
	for s.have(i) && isSpace(s.buf[i]) {
		i++
	}
	if !s.have(i) {
		return a, i, s.unended("a tag")
	}
	if s.buf[i] != '=' {
		return a, i, s.broken(i, fmt.Sprintf("attribute %s has no value", s.buf[a.nameStart:a.nameEnd]), `write name="value"`)
	}
	i++
	for s.have(i) && isSpace(s.buf[i]) {
		i++
	}
	if !s.have(i) {
		return a, i, s.unended("a tag")
	}
	quote := s.buf[i]
	if quote != '"' && quote != '\'' {
		return a, i, s.broken(i, fmt.Sprintf("the value of attribute %s is not in quotes", s.buf[a.nameStart:a.nameEnd]), `write name="value"`)
	}
	a.start = i + 1
	end := s.index(i+1, quote)
	if end < 0 {
		return a, i, s.unended("a tag")
	}
	a.end = end
	flags, bad := classify(s.buf[a.start:a.end])
	if bad >= 0 {
		return a, i, s.illegal(a.start + bad)
	}
	if flags&lessThan != 0 {
		at := a.start + bytes.IndexByte(s.buf[a.start:a.end], '<')
		return a, i, s.broken(at, "a < in the value of an attribute", "write &lt;")
	}
	if flags&ampersand != 0 {
		if at, why := checkReferences(s.buf[a.start:a.end]); at >= 0 {
			return a, i, s.badReference(a.start+at, why)
		}
	}
	a.mustDecode = flags&(ampersand|blanks) != 0
	return a, end + 1, nil
}

func (s *Scanner) attrValue(a span) []byte {
	raw := s.buf[a.start:a.end]
	if !a.mustDecode {
		return raw
	}
	return appendDecoded(nil, raw, false, true)
}

// endTag reads an end tag, which must be that of the innermost open element.
func (s *Scanner) endTag() (Kind, error) {
	if len(s.open) == 0 {
		return 0, s.broken(s.start, "an end tag, and no element is open", "remove it")
	}
	top := s.open[len(s.open)-1]
	written := s.names[top.nameStart:]
	i := s.pos + 2
	if !s.have(i + len(written)) {
		return 0, s.unended("a tag")
	}
	if !bytes.Equal(s.buf[i:i+len(written)], written) || !isSpace(s.buf[i+len(written)]) && s.buf[i+len(written)] != '>' {
		return 0, s.broken(s.start, fmt.Sprintf("an end tag that is not that of element %s, which is open", written),
			fmt.Sprintf("end elements in the opposite order: </%s> first", written))
	}
	i += len(written)
	for s.have(i) && isSpace(s.buf[i]) {
		i++
	}
	if !s.have(i) {
		return 0, s.unended("a tag")
	}
	if s.buf[i] != '>' {
		return 0, s.broken(i, "an end tag holds more than its name", fmt.Sprintf("write </%s>", written))
	}
	s.pos = i + 1
	s.name = top.name
	return EndElement, nil
}

// pop closes the element whose end was given.
func (s *Scanner) pop() {
	top := s.open[len(s.open)-1]
	s.open = s.open[:len(s.open)-1]
	s.names = s.names[:top.nameStart]
	if len(s.bound) != top.bound {
		s.bound = s.bound[:top.bound]
		clear(s.known)
	}
	s.kind = 0
}

func isSpace(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }
