package charset

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/transform"
)

// utf7 reads UTF-7 (RFC 2152). Nothing is written in it here.
type utf7 struct{}

func (utf7) NewDecoder() *encoding.Decoder { return &encoding.Decoder{Transformer: &runs{}} }

func (utf7) NewEncoder() *encoding.Encoder { return encoding.Nop.NewEncoder() }

// runs decodes UTF-7. Between a plus sign and what is no letter of base64 stands a run of UTF-16.
type runs struct {
	isIn    bool
	isFresh bool // the run has no letter yet
	bits    uint32
	count   uint // of bits
	high    rune // the first half of a character
}

func (r *runs) Reset() { *r = runs{} }

// Transform decodes a byte at a time, so that it is the same however the text comes.
func (r *runs) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		if len(dst)-nDst < 2*utf8.UTFMax {
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst += r.step(dst[nDst:], src[nSrc])
		nSrc++
	}
	if atEOF && r.isIn {
		if len(dst)-nDst < 2*utf8.UTFMax {
			return nDst, nSrc, transform.ErrShortDst
		}
		nDst += r.endRun(dst[nDst:])
	}
	return nDst, nSrc, nil
}

// step takes a byte, and gives how much it has written: at most two characters.
func (r *runs) step(dst []byte, c byte) (n int) {
	value := strings.IndexByte(alphabet, c)
	switch {
	case !r.isIn && c == '+':
		*r = runs{isIn: true, isFresh: true}
		return 0
	case r.isIn && value >= 0:
		r.isFresh = false
		r.bits, r.count = r.bits<<6|uint32(value), r.count+6
		if r.count < 16 {
			return 0
		}
		r.count -= 16
		return r.unit(dst, rune(r.bits>>r.count&0xffff))
	case r.isIn && r.isFresh && c == '-':
		r.isIn = false
		return copy(dst, "+")
	case r.isIn:
		n = r.endRun(dst)
		if c == '-' {
			return n
		}
	}
	if c >= utf8.RuneSelf {
		return n + copy(dst[n:], "\uFFFD")
	}
	dst[n] = c
	return n + 1
}

// unit takes sixteen bits of UTF-16.
func (r *runs) unit(dst []byte, unit rune) (n int) {
	high := r.high
	r.high = 0
	if high != 0 {
		if whole := utf16.DecodeRune(high, unit); whole != utf8.RuneError {
			return utf8.EncodeRune(dst, whole)
		}
		n = copy(dst, "\uFFFD")
	}
	if unit >= 0xd800 && unit < 0xdc00 {
		r.high = unit
		return n
	}
	return n + utf8.EncodeRune(dst[n:], unit)
}

// endRun ends a run. A plus sign that begins none is one.
func (r *runs) endRun(dst []byte) (n int) {
	switch {
	case r.isFresh:
		n = copy(dst, "+")
	case r.high != 0:
		n = copy(dst, "\uFFFD")
	}
	*r = runs{}
	return n
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// iso2022kr reads ISO-2022-KR (RFC 1557): ASCII, and EUC-KR without its high bits between SO and SI. Nothing is written in it here.
type iso2022kr struct{}

func (iso2022kr) NewDecoder() *encoding.Decoder {
	return &encoding.Decoder{Transformer: transform.Chain(&shifted{}, korean.EUCKR.NewDecoder())}
}

func (iso2022kr) NewEncoder() *encoding.Encoder { return encoding.Nop.NewEncoder() }

const (
	shiftOut, shiftIn = 0x0e, 0x0f
	designation       = "\x1b$)C"
)

// shifted gives the bytes between SO and SI their high bits.
type shifted struct{ isOut bool }

func (s *shifted) Reset() { s.isOut = false }

func (s *shifted) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		c := src[nSrc]
		switch {
		case c == shiftOut, c == shiftIn:
			s.isOut = c == shiftOut
			nSrc++
			continue
		case c == designation[0]:
			if len(src)-nSrc < len(designation) && !atEOF {
				return nDst, nSrc, transform.ErrShortSrc
			}
			if rest := src[nSrc:]; len(rest) >= len(designation) && string(rest[:len(designation)]) == designation {
				nSrc += len(designation)
				continue
			}
		case c == '\n':
			s.isOut = false // a line begins in ASCII
		case s.isOut && c > ' ' && c < 0x7f:
			c |= 0x80
		}
		if nDst == len(dst) {
			return nDst, nSrc, transform.ErrShortDst
		}
		dst[nDst] = c
		nDst, nSrc = nDst+1, nSrc+1
	}
	return nDst, nSrc, nil
}
