package flatfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/flow/fault"
	"github.com/parley-broker/parley/internal/flow/text"
)

const (
	windowBytes = 64 << 10
	minRead     = 8 << 10
)

// A window is the part of a file that is in memory: what is being read, and what was read ahead.
type window struct {
	source  io.Reader
	charset *text.Charset
	buf     []byte
	pos     int
	most    int   // bytes it may hold
	gone    int64 // bytes of the file before buf, in its charset
	lines   int64 // line ends before buf
	column  int   // characters of its line before buf[0]
	err     error // why no more is read; io.EOF at the end
}

// have reports whether there is a byte at i, and reads for it.
func (w *window) have(i int) bool {
	for i >= len(w.buf) {
		if w.err != nil {
			return false
		}
		if cap(w.buf)-len(w.buf) < minRead {
			if len(w.buf) >= w.most {
				w.err = &fault.Fault{
					Message: fmt.Sprintf("more than %d bytes were read without the end of a record", w.most),
					Remedy:  "raise the limit of records, or check the delimiters of the schema against the file", Place: w.placeOf(w.pos),
				}
				return false
			}
			grown := make([]byte, len(w.buf), max(2*cap(w.buf), windowBytes))
			copy(grown, w.buf)
			w.buf = grown
		}
		n, err := w.source.Read(w.buf[len(w.buf):cap(w.buf)])
		w.buf = w.buf[:len(w.buf)+n]
		w.err = err
	}
	return true
}

// atEnd reports whether the file ends here.
func (w *window) atEnd() bool { return !w.have(w.pos) }

// broken gives why reading ended, if not because of the end.
func (w *window) broken() error {
	if w.err == nil || errors.Is(w.err, io.EOF) {
		return nil
	}
	return w.err
}

// discard forgets what stands before pos. Values that are slices of the window must have been given out.
func (w *window) discard() {
	if w.pos < windowBytes/2 {
		return
	}
	passed := w.buf[:w.pos]
	w.gone += int64(w.charset.Width(passed))
	if last := bytes.LastIndexByte(passed, '\n'); last >= 0 {
		w.lines += int64(bytes.Count(passed, []byte{'\n'}))
		w.column = utf8.RuneCount(passed[last+1:])
	} else {
		w.column += utf8.RuneCount(passed)
	}
	w.buf = w.buf[:copy(w.buf, w.buf[w.pos:])]
	w.pos = 0
}

// byteOf is how many bytes of the file stand before a place.
func (w *window) byteOf(at int) int64 {
	return w.gone + int64(w.charset.Width(w.buf[:min(at, len(w.buf))]))
}

func (w *window) placeOf(at int) fault.Place {
	before := w.buf[:min(at, len(w.buf))]
	place := fault.Place{Byte: w.gone + int64(w.charset.Width(before)), Line: w.lines + 1, Column: w.column + 1}
	if last := bytes.LastIndexByte(before, '\n'); last >= 0 {
		place.Line += int64(bytes.Count(before, []byte{'\n'}))
		place.Column = 1
		before = before[last+1:]
	}
	place.Column += utf8.RuneCount(before)
	return place
}

// match gives the length of a delimiter that stands at i, or 0.
func (w *window) match(d *delimiter, i int) int {
	if d == nil {
		return 0
	}
	if d.anyNewline {
		if !w.have(i) {
			return 0
		}
		switch w.buf[i] {
		case '\n':
			return 1
		case '\r':
			if w.have(i+1) && w.buf[i+1] == '\n' {
				return 2
			}
			return 1
		}
		return 0
	}
	if len(d.text) == 1 {
		if i < len(w.buf) || w.have(i) {
			if w.buf[i] == d.text[0] {
				return 1
			}
		}
		return 0
	}
	if w.begins(d.text, i) {
		return len(d.text)
	}
	return 0
}

// begins reports whether a text stands at i.
func (w *window) begins(text []byte, i int) bool {
	if i+len(text) > len(w.buf) && (!w.have(i) || w.buf[i] != text[0] || !w.have(i+len(text)-1)) {
		return false
	}
	return bytes.Equal(w.buf[i:i+len(text)], text)
}

// matchAny gives the length of the longest of some delimiters at i, or 0.
func (w *window) matchAny(s *stops, i int) int {
	longest := 0
	if s == nil || !w.have(i) || !s.first[w.buf[i]] {
		return 0
	}
	for _, d := range s.delimiters {
		longest = max(longest, w.match(d, i))
	}
	return longest
}

// stop finds where a value ends that begins at from: at the first of some texts, or at the end of the file. A character behind the escape
// character is none of them; hasEscape reports whether there was one.
func (w *window) stop(from int, s *stops) (at int, hasEscape bool) {
	for i := from; ; {
		switch {
		case s.only >= 0:
			next := bytes.IndexByte(w.buf[i:], byte(s.only))
			if next < 0 {
				i = len(w.buf)
			} else {
				i += next
			}
		case len(s.delimiters) == 0 && len(s.escape) == 0:
			i = len(w.buf)
		default:
			buf, first := w.buf, &s.first
			for i < len(buf) && !first[buf[i]] {
				i++
			}
		}
		if i >= len(w.buf) {
			if !w.have(i) {
				return len(w.buf), hasEscape
			}
			continue
		}
		if s.sure[w.buf[i]] {
			return i, hasEscape
		}
		if len(s.escape) > 0 && w.begins(s.escape, i) {
			hasEscape = true
			i += len(s.escape)
			if w.have(i) {
				i += w.runeBytes(i)
			}
			continue
		}
		for _, d := range s.delimiters {
			if w.match(d, i) > 0 {
				return i, hasEscape
			}
		}
		i++
	}
}

func (w *window) runeBytes(i int) int {
	w.have(i + utf8.UTFMax - 1)
	_, size := utf8.DecodeRune(w.buf[i:])
	return size
}
