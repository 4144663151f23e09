package message

import "bytes"

// MaximumLine is how many bytes a line may have without its CRLF (RFC 5322 section 2.1.1): hosts refuse longer ones, or cut them, after
// which a signature no longer fits.
const MaximumLine = 998

// Lines describes the lines of a text that came in pieces of any size.
type Lines struct {
	// Longest is the length of the longest line without its end, in bytes, and IsEightBit whether there were bytes above 127.
	Longest    int
	IsEightBit bool
	length     int
}

// Add takes a piece of text.
func (l *Lines) Add(p []byte) {
	l.IsEightBit = l.IsEightBit || isEightBit(p)
	for len(p) > 0 {
		at := bytes.IndexAny(p, "\r\n")
		if at < 0 {
			l.length += len(p)
			l.Longest = max(l.Longest, l.length)
			return
		}
		l.Longest = max(l.Longest, l.length+at)
		l.length, p = 0, p[at+1:]
	}
}

// AreTooLong reports whether a line is longer than lines may be.
func (l Lines) AreTooLong() bool { return l.Longest > MaximumLine }

// LinesOf describes the lines of a text.
func LinesOf(text []byte) (lines Lines) {
	lines.Add(text)
	return lines
}

func isEightBit(p []byte) bool {
	for _, b := range p {
		if b > 0x7f {
			return true
		}
	}
	return false
}
