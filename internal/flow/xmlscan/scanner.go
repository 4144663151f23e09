// Package xmlscan reads XML over its bytes, token by token, with bounded memory. It gives places and the bytes as they stand: written
// one behind the other, the raw bytes of all tokens are the document. It reads no document type declaration, so there are no entities but
// the five that XML knows and references to characters.
package xmlscan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// A Kind is what a token is.
type Kind uint8

// The kinds of tokens.
const (
	StartElement Kind = iota + 1
	EndElement        // of an empty-element tag too, then without bytes
	Text              // a piece of character data: a long text comes in several
	CDATA             // a piece of a CDATA section, with its marks at its ends
	Comment
	Instruction // a processing instruction, or the XML declaration
)

// A Name is the name of an element or attribute.
type Name struct {
	Space, Local string
	Prefix       string
}

// Is reports whether the name has this namespace and local part.
func (n Name) Is(space, local string) bool { return n.Local == local && n.Space == space }

// An Attr is an attribute. Declarations of namespaces are attributes too: their names have the namespace of xmlns.
type Attr struct {
	Name  Name
	Value string
}

// XMLNSSpace is the namespace of declarations of namespaces.
const (
	XMLNSSpace = "http://www.w3.org/2000/xmlns/"
	xmlSpace   = "http://www.w3.org/XML/1998/namespace"
)

// Limits bound what a document may ask for. A zero is the default.
type Limits struct {
	Depth      int // elements in each other, 256
	Attributes int // of one element, 256
	NameBytes  int // of a name with its prefix, 1024
	TokenBytes int // of a tag, a comment or an instruction, 1 MiB
}

func (l Limits) orDefault() Limits {
	for _, one := range []struct {
		limit *int
		value int
	}{{&l.Depth, 256}, {&l.Attributes, 256}, {&l.NameBytes, 1024}, {&l.TokenBytes, 1 << 20}} {
		if *one.limit <= 0 {
			*one.limit = one.value
		}
	}
	return l
}

const (
	windowBytes  = 64 << 10
	minRead      = 4 << 10
	bufferedMost = 4 * windowBytes // what Reset keeps
)

// A Scanner reads one document of UTF-8.
type Scanner struct {
	r      io.Reader
	limits Limits

	buf        []byte
	start, pos int   // of the token in buf, and behind it
	base       int64 // bytes before buf
	placed     placed
	readErr    error // why no more is read
	err        error

	kind     Kind
	name     Name
	attrs    []span
	values   []Attr
	decoded  bool
	text     span
	scratch  []byte
	open     []element
	names    []byte // of the open elements, one behind the other, as written
	bound    []binding
	interned map[string]string
	known    map[string]Name // by the name as written, while the bindings are what they were
	pending  bool            // the end of an empty-element tag is due
	inCDATA  bool
	hadRoot  bool
}

// placed is a place in buf from which later ones are counted: places are asked for in their order.
type placed struct {
	at     int
	line   int64 // line ends before it
	column int   // characters of its line before it
}

type span struct {
	nameStart, nameEnd int
	start, end         int
	mustDecode         bool
	isDeclaration      bool
}

type element struct {
	name      Name
	nameStart int // in names
	bound     int // bindings before it
}

type binding struct{ prefix, space string }

// New reads a document of UTF-8 without a byte-order mark.
func New(r io.Reader, limits Limits) *Scanner {
	return &Scanner{
		r: r, limits: limits.orDefault(), buf: make([]byte, 0, windowBytes),
		interned: map[string]string{}, known: map[string]Name{},
	}
}

// Reset reads another document with the memory of this one.
func (s *Scanner) Reset(r io.Reader) {
	s.r, s.buf, s.start, s.pos, s.base, s.placed = r, s.buf[:0], 0, 0, 0, placed{}
	s.readErr, s.err, s.pending, s.inCDATA, s.hadRoot = nil, nil, false, false, false
	s.open, s.names, s.bound = s.open[:0], s.names[:0], s.bound[:0]
	clear(s.known)
	if len(s.interned) > internedMost/4 {
		clear(s.interned) // names of documents before
	}
	if cap(s.buf) > bufferedMost {
		s.buf = make([]byte, 0, windowBytes)
	}
}

// Next reads a token and gives its kind, or io.EOF behind the document. Any other error is a *fault.Fault or one of the reader.
func (s *Scanner) Next() (Kind, error) {
	if s.err != nil {
		return 0, s.err
	}
	kind, err := s.next()
	if err != nil {
		s.err = err
		return 0, err
	}
	s.kind = kind
	return kind, nil
}

func (s *Scanner) next() (Kind, error) {
	if s.kind == EndElement && len(s.open) > 0 && !s.pending {
		s.pop()
	}
	if s.pending {
		s.pending, s.start = false, s.pos
		return EndElement, nil
	}
	s.discard()
	s.start = s.pos
	if !s.have(s.pos) {
		return 0, s.atEnd()
	}
	switch {
	case s.inCDATA:
		return s.cdata(s.pos)
	case s.buf[s.pos] != '<':
		return s.characterData()
	case !s.have(s.pos + 1):
		return 0, s.broken(s.pos, "the document ends within a tag", "send the whole document")
	}
	switch s.buf[s.pos+1] {
	case '/':
		return s.endTag()
	case '?':
		return s.instruction()
	case '!':
		return s.declaration()
	}
	return s.startTag()
}

// atEnd says whether the document may end here.
func (s *Scanner) atEnd() error {
	if !errors.Is(s.readErr, io.EOF) {
		return s.readErr
	}
	if len(s.open) > 0 {
		return s.broken(s.pos, "the document ends, and element "+s.open[len(s.open)-1].name.Local+" is open", "send the whole document")
	}
	if !s.hadRoot {
		return s.broken(s.pos, "there is no root element", "send an XML document, or name the pipeline that reads this body")
	}
	return io.EOF
}

// discard forgets what was read, when it is much.
func (s *Scanner) discard() {
	if s.pos < windowBytes/2 {
		return
	}
	s.placeOf(s.pos)
	s.placed.at = 0
	s.base += int64(s.pos)
	s.buf = s.buf[:copy(s.buf, s.buf[s.pos:])]
	s.start, s.pos = 0, 0
}

// have reports whether there is a byte at i, and reads for it.
func (s *Scanner) have(i int) bool {
	for i >= len(s.buf) {
		if s.readErr != nil {
			return false
		}
		if cap(s.buf)-len(s.buf) < minRead {
			grown := make([]byte, len(s.buf), 2*cap(s.buf))
			copy(grown, s.buf)
			s.buf = grown
		}
		n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		s.readErr = err
	}
	return true
}

// index finds a byte at or behind from, within the limit of a token.
func (s *Scanner) index(from int, b byte) int {
	for {
		if i := bytes.IndexByte(s.buf[from:], b); i >= 0 {
			return from + i
		}
		from = len(s.buf)
		if from-s.start > s.limits.TokenBytes || !s.have(from) {
			return -1
		}
	}
}

// unended explains why the end of a token was not found.
func (s *Scanner) unended(what string) error {
	switch {
	case len(s.buf)-s.start > s.limits.TokenBytes:
		return s.broken(s.start, fmt.Sprintf("%s has more than %d bytes", what, s.limits.TokenBytes), "raise the limit, or send less in it")
	case s.readErr != nil && !errors.Is(s.readErr, io.EOF):
		return s.readErr
	}
	return s.broken(s.start, "the document ends within "+what, "send the whole document")
}

func (s *Scanner) broken(at int, message, remedy string) error {
	return &fault.Fault{Message: message, Remedy: remedy, Place: s.placeOf(at)}
}

func (s *Scanner) placeOf(at int) fault.Place {
	p := s.placed
	if at < p.at { // of a token that was passed: counted anew, as far as the window reaches
		p = placed{}
	}
	between := s.buf[p.at:at]
	if last := bytes.LastIndexByte(between, '\n'); last >= 0 {
		p.line += int64(bytes.Count(between, []byte{'\n'}))
		p.column = utf8.RuneCount(between[last+1:])
	} else {
		p.column += utf8.RuneCount(between)
	}
	if p.at = at; at >= s.placed.at {
		s.placed = p
	}
	return fault.Place{Byte: s.base + int64(at), Line: p.line + 1, Column: p.column + 1}
}

// Name is the name of the element that begins or ends.
func (s *Scanner) Name() Name { return s.name }

// Depth is how many elements are open, with the one that begins or ends.
func (s *Scanner) Depth() int { return len(s.open) }

// Place is where the token begins.
func (s *Scanner) Place() fault.Place { return s.placeOf(s.start) }

// Offset and End are the bytes before the token and before what follows it.
func (s *Scanner) Offset() int64 { return s.base + int64(s.start) }

// End is the byte behind the token.
func (s *Scanner) End() int64 { return s.base + int64(s.pos) }

// Raw is the token as it stands. It is valid until the next call of Next.
func (s *Scanner) Raw() []byte { return s.buf[s.start:s.pos] }

// Text is the content of a piece of text or CDATA. It is valid until the next call of Next.
func (s *Scanner) Text() []byte {
	raw := s.buf[s.text.start:s.text.end]
	if !s.text.mustDecode {
		return raw
	}
	s.scratch = appendDecoded(s.scratch[:0], raw, s.kind == CDATA, false)
	return s.scratch
}

// Attrs are the attributes of the element that begins, in their order. They are valid until the next call of Next.
func (s *Scanner) Attrs() []Attr {
	if !s.decoded {
		s.values = s.values[:0]
		for _, a := range s.attrs {
			s.values = append(s.values, Attr{Name: s.attrName(a), Value: string(s.attrValue(a))})
		}
		s.decoded = true
	}
	return s.values
}

// Bindings gives the prefixes that hold where the element begins, the innermost last; a prefix may be there several times.
func (s *Scanner) Bindings(yield func(prefix, space string) bool) {
	for _, b := range s.bound {
		if !yield(b.prefix, b.space) {
			return
		}
	}
}
