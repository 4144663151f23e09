package xmlscan

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// pieceBytes is about how long a piece of text gets.
const pieceBytes = 64 << 10

// characterData reads a piece of text up to the next tag.
func (s *Scanner) characterData() (Kind, error) {
	var end int
	for from := s.pos; ; {
		if i := bytes.IndexByte(s.buf[from:], '<'); i >= 0 {
			end = from + i
			break
		}
		from = len(s.buf)
		if from-s.pos >= pieceBytes {
			end = s.pos + wholePiece(s.buf[s.pos:])
			break
		}
		if !s.have(from) {
			end = len(s.buf)
			break
		}
	}
	piece := s.buf[s.pos:end]
	flags, bad := classify(piece)
	if bad >= 0 {
		return 0, s.illegal(s.pos + bad)
	}
	if len(s.open) == 0 {
		if at := bytes.IndexFunc(piece, func(r rune) bool { return r > ' ' || !isSpace(byte(r)) }); at >= 0 {
			return 0, s.broken(s.pos+at, "text outside of the root element", "send an XML document, or name the pipeline that reads this body")
		}
	}
	if flags&ampersand != 0 {
		if at, why := checkReferences(piece); at >= 0 {
			return 0, s.badReference(s.pos+at, why)
		}
	}
	if flags&bracket != 0 {
		if at := bytes.Index(piece, []byte("]]>")); at >= 0 {
			return 0, s.broken(s.pos+at, "]]> in a text", "write ]]&gt;")
		}
	}
	s.text = span{start: s.pos, end: end, mustDecode: flags&(ampersand|carriageReturn) != 0}
	s.pos = end
	return Text, nil
}

// wholePiece says how much of a text can be given before the rest is read: no reference, mark, line end or character is cut.
func wholePiece(p []byte) int {
	end := len(p)
	if amp := bytes.LastIndexByte(p[len(p)-longestReference:], '&'); amp >= 0 && bytes.IndexByte(p[len(p)-longestReference+amp:], ';') < 0 {
		end = len(p) - longestReference + amp
	}
	for back := 1; back < utf8.UTFMax; back++ {
		if utf8.RuneStart(p[end-back]) {
			if !utf8.FullRune(p[end-back : end]) {
				end -= back
			}
			break
		}
	}
	for range 2 {
		if b := p[end-1]; b == ']' || b == '\r' {
			end--
		}
	}
	return end
}

const cdataOpen, cdataClose = "<![CDATA[", "]]>"

// declaration reads what begins with <!: a comment, a CDATA section, or a document type declaration, which is refused.
func (s *Scanner) declaration() (Kind, error) {
	switch {
	case s.begins("<!--"):
		return s.comment()
	case s.begins(cdataOpen):
		if len(s.open) == 0 {
			return 0, s.broken(s.start, "a CDATA section outside of the root element", "remove it")
		}
		s.inCDATA = true
		return s.cdata(s.pos + len(cdataOpen))
	case s.begins("<!DOCTYPE"):
		return 0, s.broken(s.start, "a document type declaration, which is not read",
			"send the document without it, and its entities written out")
	}
	return 0, s.broken(s.start, "<! begins a comment or a CDATA section", "write &lt; for a < in a text")
}

func (s *Scanner) begins(mark string) bool {
	return s.have(s.pos+len(mark)-1) && string(s.buf[s.pos:s.pos+len(mark)]) == mark
}

func (s *Scanner) comment() (Kind, error) {
	for i := s.pos + 4; ; {
		at := s.index(i, '-')
		if at < 0 || !s.have(at+2) {
			return 0, s.unended("a comment")
		}
		if s.buf[at+1] != '-' {
			i = at + 1
			continue
		}
		if s.buf[at+2] != '>' {
			return 0, s.broken(at, "-- within a comment", "write one hyphen")
		}
		if _, bad := classify(s.buf[s.pos:at]); bad >= 0 {
			return 0, s.illegal(s.pos + bad)
		}
		s.text = span{start: s.pos + 4, end: at}
		s.pos = at + 3
		return Comment, nil
	}
}

// cdata reads a piece of a CDATA section, of which what stands at first is to be read.
func (s *Scanner) cdata(first int) (Kind, error) {
	for from := first; ; {
		if i := bytes.Index(s.buf[from:], []byte(cdataClose)); i >= 0 {
			s.inCDATA = false
			return s.cdataPiece(first, from+i, from+i+len(cdataClose))
		}
		if len(s.buf)-first >= pieceBytes {
			end := first + wholePiece(s.buf[first:])
			return s.cdataPiece(first, end, end)
		}
		from = max(first, len(s.buf)-2)
		if !s.have(len(s.buf)) {
			return 0, s.unended("a CDATA section")
		}
	}
}

func (s *Scanner) cdataPiece(first, end, behind int) (Kind, error) {
	flags, bad := classify(s.buf[first:end])
	if bad >= 0 {
		return 0, s.illegal(first + bad)
	}
	s.text = span{start: first, end: end, mustDecode: flags&carriageReturn != 0}
	s.pos = behind
	return CDATA, nil
}

// instruction reads a processing instruction or the XML declaration.
func (s *Scanner) instruction() (Kind, error) {
	nameEnd, err := s.readName(s.pos+2, "the name of an instruction")
	if err != nil {
		return 0, err
	}
	var end int
	for i := nameEnd; ; i++ {
		i = s.index(i, '?')
		if i < 0 || !s.have(i+1) {
			return 0, s.unended("an instruction")
		}
		if s.buf[i+1] == '>' {
			end = i
			break
		}
	}
	name := string(s.buf[s.pos+2 : nameEnd])
	if end > nameEnd && !isSpace(s.buf[nameEnd]) {
		return 0, s.broken(nameEnd, "no blank behind the name of an instruction", "put one there")
	}
	if _, bad := classify(s.buf[s.pos:end]); bad >= 0 {
		return 0, s.illegal(s.pos + bad)
	}
	if strings.EqualFold(name, "xml") {
		if name != "xml" || s.base+int64(s.start) != 0 {
			return 0, s.broken(s.start, "an XML declaration behind the beginning", "let the document begin with it")
		}
		if err := s.checkDeclaration(s.buf[nameEnd:end]); err != nil {
			return 0, err
		}
	}
	s.text = span{start: nameEnd, end: end}
	s.pos = end + 2
	return Instruction, nil
}

// Target is the name of the instruction that was read last.
func (s *Scanner) Target() string {
	raw := s.Raw()
	if len(raw) < 4 {
		return ""
	}
	name, _, _ := bytes.Cut(raw[2:len(raw)-2], []byte(" "))
	return string(bytes.TrimSpace(name))
}

// checkDeclaration reads version, encoding and standalone; the encoding has been heeded before.
func (s *Scanner) checkDeclaration(p []byte) error {
	order := 0
	for rest := p; ; {
		rest = bytes.TrimLeft(rest, " \t\r\n")
		if len(rest) == 0 {
			break
		}
		name, value, behind, ok := pseudoAttribute(rest)
		at := map[string]int{"version": 1, "encoding": 2, "standalone": 3}[name]
		if !ok || at <= order || order == 0 && at != 1 {
			return s.broken(s.start, "an XML declaration that cannot be read", `write <?xml version="1.0" encoding="utf-8"?>`)
		}
		if name == "version" && value != "1.0" {
			return s.broken(s.start, fmt.Sprintf("XML of version %q", value), "send XML 1.0")
		}
		if name == "standalone" && value != "yes" && value != "no" {
			return s.broken(s.start, fmt.Sprintf("standalone is %q", value), "write yes or no, or leave it away")
		}
		order, rest = at, behind
		if len(rest) > 0 && !isSpace(rest[0]) {
			return s.broken(s.start, "an XML declaration that cannot be read", `write <?xml version="1.0" encoding="utf-8"?>`)
		}
	}
	if order == 0 {
		return s.broken(s.start, "an XML declaration without a version", `write <?xml version="1.0" encoding="utf-8"?>`)
	}
	return nil
}

func pseudoAttribute(p []byte) (name, value string, rest []byte, ok bool) {
	equals := bytes.IndexByte(p, '=')
	if equals < 0 {
		return "", "", nil, false
	}
	name = string(bytes.TrimRight(p[:equals], " \t\r\n"))
	p = bytes.TrimLeft(p[equals+1:], " \t\r\n")
	if len(p) < 2 || p[0] != '"' && p[0] != '\'' {
		return "", "", nil, false
	}
	end := bytes.IndexByte(p[1:], p[0])
	if end < 0 {
		return "", "", nil, false
	}
	return name, string(p[1 : 1+end]), p[2+end:], true
}

func (s *Scanner) illegal(at int) error {
	r, _ := utf8.DecodeRune(s.buf[at:])
	return s.broken(at, fmt.Sprintf("character U+%04X, which XML does not have", r),
		"remove it before the document is sent; XML has no control characters but tab and line ends")
}

func (s *Scanner) badReference(at int, why string) error {
	return s.broken(at, why, "write &amp; for an &; known are &lt; &gt; &amp; &quot; &apos; and numbers")
}
