package text

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/transform"

	"github.com/parley-broker/parley/internal/flow/fault"
)

// sniffed is how much of a body is searched for a mark and a declaration, in bytes.
const sniffed = 1024

// ErrCharset is in the chain of faults of bytes that are not of the charset of their body, and of charsets that are not known.
var ErrCharset = errors.New("the charset of the body")

// A Source is an open body: UTF-8 comes out of Read, without the byte-order mark.
type Source struct {
	io.Reader
	Charset      *Charset
	MarkBytes    int      // length of the byte-order mark
	Declared     string   // charset of the XML declaration, as written
	Disagreement string   // what mark, declaration and setting say, where they differ; empty otherwise
	By           Decision // which of them decided
	buffered     *bufio.Reader
}

// readers are those of bodies that were released.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 4*sniffed) }}

// Release gives back the memory of a body that nobody reads any more. It need not be called.
func (s *Source) Release() {
	if s.buffered != nil {
		s.buffered.Reset(nil)
		readers.Put(s.buffered)
		s.buffered, s.Reader = nil, nil
	}
}

// A Decision says why a charset was taken.
type Decision string

// The rule: a byte-order mark before a declaration before a setting before UTF-8.
const (
	ByMark        Decision = "byte-order mark"
	ByDeclaration Decision = "declaration"
	BySetting     Decision = "setting"
	ByDefault     Decision = "default"
)

// xmlDeclaration finds the encoding of an XML declaration in ASCII.
var xmlDeclaration = regexp.MustCompile(`^<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z0-9._:-]+)["']`)

// Open finds the charset of a body. The setting is the name of a charset, or empty; isXML lets an XML declaration count.
func Open(r io.Reader, setting string, isXML bool) (*Source, error) {
	buffered, _ := readers.Get().(*bufio.Reader) // the pool holds nothing else
	buffered.Reset(r)
	head, err := buffered.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	s := &Source{Charset: UTF8, By: ByDefault, buffered: buffered}
	if setting != "" {
		found, err := Lookup(setting)
		if err != nil {
			return nil, &fault.Fault{
				Message: err.Error(), Err: ErrCharset, Remedy: "name a charset of the Internet's registry or the number of a code page",
			}
		}
		s.Charset, s.By = found, BySetting
	}
	if isXML {
		if err := s.declared(head); err != nil {
			return nil, err
		}
	}
	if marked := markOf(head); marked != nil {
		if s.By != ByDefault && !sameFamily(marked, s.Charset) {
			s.Disagreement = fmt.Sprintf("the %s says %s, the byte-order mark %s, which was taken", s.By, s.Charset.Name, marked.Name)
		}
		s.Charset, s.By, s.MarkBytes = marked, ByMark, len(marked.mark)
		if _, err := buffered.Discard(s.MarkBytes); err != nil {
			return nil, fmt.Errorf("read the body: %w", err)
		}
	}
	s.Reader = &checked{r: buffered, charset: s.Charset, at: int64(s.MarkBytes)}
	if !s.Charset.IsUTF8() {
		s.Reader = &checked{
			r: transform.NewReader(buffered, s.Charset.encoding.NewDecoder()), charset: s.Charset,
			at: int64(s.MarkBytes), isDecoded: true,
		}
	}
	return s, nil
}

// declared lets an XML declaration decide before the setting.
func (s *Source) declared(head []byte) error {
	plain := bytes.TrimPrefix(head, UTF8.mark)
	if wide := wideWithoutMark(plain); wide != nil {
		s.Charset, s.By = wide, ByDeclaration // the form of its first characters says which
		return nil
	}
	found := xmlDeclaration.FindSubmatch(plain)
	if found == nil {
		return nil
	}
	s.Declared = string(found[1])
	charset, err := Lookup(s.Declared)
	if err != nil {
		return &fault.Fault{
			Message: "the XML declaration: " + err.Error(), Place: fault.Place{Line: 1, Column: 1}, Err: ErrCharset,
			Remedy: "declare the charset in which the document is written",
		}
	}
	if charset == UTF16LE || charset == UTF16BE || charset.unit == 4 {
		// It was read as ASCII, so it cannot be true.
		s.Disagreement = fmt.Sprintf("the declaration says %s, but the document is written in single bytes; it was read as UTF-8", s.Declared)
		s.Charset, s.By = UTF8, ByDefault
		return nil
	}
	if s.By == BySetting && charset.Name != s.Charset.Name {
		s.Disagreement = fmt.Sprintf("the setting says %s, the declaration %s, which was taken", s.Charset.Name, s.Declared)
	}
	s.Charset, s.By = charset, ByDeclaration
	return nil
}

// wideWithoutMark finds UTF-16 that begins with "<?" or "<" and a letter, without a mark.
func wideWithoutMark(head []byte) *Charset {
	switch {
	case len(head) < 4:
		return nil
	case head[0] == '<' && head[1] == 0 && head[3] == 0:
		return UTF16LE
	case head[0] == 0 && head[1] == '<' && head[2] == 0:
		return UTF16BE
	}
	return nil
}

func markOf(head []byte) *Charset {
	for _, c := range []*Charset{utf32LE, utf32BE, UTF8, UTF16LE, UTF16BE} {
		if bytes.HasPrefix(head, c.mark) {
			return c
		}
	}
	return nil
}

// sameFamily takes UTF-16 without an order for the order that the mark gives.
func sameFamily(a, b *Charset) bool {
	return a == b || strings.HasPrefix(a.Name, "utf-16") && strings.HasPrefix(b.Name, "utf-16")
}

// checked gives only whole characters, and ends with a fault at the first that its charset does not have.
type checked struct {
	r         io.Reader
	charset   *Charset
	isDecoded bool
	at        int64 // bytes of the body before what is given next
	line      int64 // line ends before it
	column    int   // characters of its line before it
	held      [utf8.UTFMax]byte
	heldBytes int
	ready     []byte // read and not given yet, because whoever reads has no room for a character
	err       error
}

func (c *checked) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if len(c.ready) == 0 && len(p) >= utf8.UTFMax {
		return c.read(p)
	}
	if len(c.ready) == 0 {
		small := make([]byte, 64)
		n, err := c.read(small)
		if n == 0 {
			return 0, err // which comes again behind what was read before it
		}
		c.ready = small[:n]
	}
	n := copy(p, c.ready)
	c.ready = c.ready[n:]
	return n, nil
}

// read gives whole characters, or an error.
func (c *checked) read(p []byte) (int, error) {
	for {
		n := copy(p, c.held[:c.heldBytes])
		c.heldBytes = 0
		if c.err == nil {
			var got int
			got, c.err = c.r.Read(p[n:])
			n += got
		}
		whole, bad := c.wholeCharacters(p[:n])
		c.advance(p[:whole])
		switch {
		case bad:
			c.err = c.undecodable(p[whole:n])
			return whole, c.err
		case c.err == nil:
			c.heldBytes = copy(c.held[:], p[whole:n])
		case whole < n: // the body ends within a character
			c.err = c.undecodable(p[whole:n])
		}
		if whole > 0 {
			return whole, nil
		}
		if c.err != nil {
			return 0, c.err
		}
	}
}

// wholeCharacters says how many bytes of p are whole characters, and whether the next one is none.
func (c *checked) wholeCharacters(p []byte) (whole int, bad bool) {
	if c.isDecoded { // the decoder writes U+FFFD for what it does not know
		if i := bytes.Index(p, []byte("\uFFFD")); i >= 0 {
			return i, true
		}
	}
	cut := len(p)
	for back := 1; back < utf8.UTFMax && back <= len(p); back++ {
		if b := p[len(p)-back]; utf8.RuneStart(b) {
			if !utf8.FullRune(p[len(p)-back:]) {
				cut = len(p) - back
			}
			break
		}
	}
	if utf8.Valid(p[:cut]) {
		return cut, false
	}
	for i := 0; i < cut; {
		r, size := utf8.DecodeRune(p[i:cut])
		if r == utf8.RuneError && size == 1 {
			return i, true
		}
		i += size
	}
	return cut, false
}

func (c *checked) advance(p []byte) {
	c.at += int64(c.charset.Width(p))
	if last := bytes.LastIndexByte(p, '\n'); last >= 0 {
		c.line += int64(bytes.Count(p, []byte("\n")))
		c.column = utf8.RuneCount(p[last+1:])
		return
	}
	c.column += utf8.RuneCount(p)
}

func (c *checked) undecodable(p []byte) error {
	f := &fault.Fault{
		Place:   fault.Place{Byte: c.at, Line: c.line + 1, Column: c.column + 1},
		Message: "a byte here is no character of " + c.charset.Name, Err: ErrCharset,
		Remedy: "send the body in " + c.charset.Name + ", or set the charset in which it is written",
	}
	if !c.isDecoded && len(p) > 0 {
		f.Message = fmt.Sprintf("byte 0x%02X is no character of %s", p[0], c.charset.Name)
		f.Remedy = "send the body in UTF-8, or set the charset in which it is written, such as windows-1252"
	}
	return f
}
