package xmlscan

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

// Classes of bytes.
const (
	nameStartChar = 1 << iota
	nameChar
	ampersand
	lessThan
	bracket // ]
	blanks  // tab, line feed, carriage return
	carriageReturn
	illegalChar
	last3 // the first byte of U+FFFE and U+FFFF, and of others
)

var classes = func() (table [256]uint16) {
	for b := range 256 {
		c := byte(b)
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', c == ':':
			table[b] |= nameStartChar | nameChar
		case c >= '0' && c <= '9', c == '-', c == '.':
			table[b] |= nameChar
		case c == '\t', c == '\n':
			table[b] |= blanks
		case c == '\r':
			table[b] |= blanks | carriageReturn
		case c < 0x20:
			table[b] |= illegalChar
		case c == '&':
			table[b] |= ampersand
		case c == '<':
			table[b] |= lessThan
		case c == ']':
			table[b] |= bracket
		case c == 0xef:
			table[b] |= last3
		}
	}
	return table
}()

// classify gives the classes of the bytes of a text, and the first byte of a character that XML does not have, or -1.
func classify(p []byte) (flags uint16, bad int) {
	for _, b := range p {
		flags |= classes[b]
	}
	if flags&illegalChar != 0 {
		for i, b := range p {
			if classes[b]&illegalChar != 0 {
				return flags, i
			}
		}
	}
	if flags&last3 != 0 {
		for rest := p; ; {
			i := bytes.IndexByte(rest, 0xef)
			if i < 0 {
				break
			}
			if len(rest) >= i+3 && rest[i+1] == 0xbf && rest[i+2] >= 0xbe {
				return flags, len(p) - len(rest) + i
			}
			rest = rest[i+1:]
		}
	}
	return flags, -1
}

func isNameRune(r rune, first bool) bool {
	switch {
	case r >= 0xc0 && r <= 0x2ff:
		return r != 0xd7 && r != 0xf7
	case r >= 0x370 && r <= 0x1fff:
		return r != 0x37e
	case r == 0x200c, r == 0x200d, r >= 0x2070 && r <= 0x218f, r >= 0x2c00 && r <= 0x2fef, r >= 0x3001 && r <= 0xd7ff,
		r >= 0xf900 && r <= 0xfdcf, r >= 0xfdf0 && r <= 0xfffd, r >= 0x10000 && r <= 0xeffff:
		return true
	}
	return !first && (r == 0xb7 || r >= 0x300 && r <= 0x36f || r == 0x203f || r == 0x2040)
}

// InName reports whether a character may stand in a name without a prefix, or begin one.
func InName(r rune, first bool) bool {
	if r < 0x80 {
		return r == '_' || 'a' <= r|0x20 && r|0x20 <= 'z' || !first && (r == '-' || r == '.' || '0' <= r && r <= '9')
	}
	return isNameRune(r, first)
}

// isChar reports whether XML has the character.
func isChar(r rune) bool {
	return r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r <= 0xd7ff || r >= 0xe000 && r <= 0xfffd || r >= 0x10000 && r <= 0x10ffff
}

// longestReference is more than any reference has: &#x10FFFF; and some zeros.
const longestReference = 32

// reference reads what stands at p[0], which is an ampersand: its character and length, or why it is none.
func reference(p []byte) (r rune, length int, why string) {
	end := bytes.IndexByte(p[:min(len(p), longestReference)], ';')
	if end < 0 {
		return 0, 0, "an & that begins no reference"
	}
	switch body := string(p[1:end]); {
	case body == "lt":
		r = '<'
	case body == "gt":
		r = '>'
	case body == "amp":
		r = '&'
	case body == "quot":
		r = '"'
	case body == "apos":
		r = '\''
	case len(body) > 1 && body[0] == '#':
		digits, base := body[1:], 10
		if digits[0] == 'x' {
			digits, base = digits[1:], 16
		}
		n, err := strconv.ParseUint(digits, base, 32)
		if err != nil || !isChar(rune(n)) {
			return 0, 0, "&" + body + "; is no character"
		}
		r = rune(n)
	default:
		return 0, 0, "entity " + body + " is not defined"
	}
	return r, end + 1, ""
}

// checkReferences finds the first ampersand that begins no reference, or -1.
func checkReferences(p []byte) (at int, why string) {
	for i := 0; ; {
		next := bytes.IndexByte(p[i:], '&')
		if next < 0 {
			return -1, ""
		}
		i += next
		_, length, why := reference(p[i:])
		if why != "" {
			return i, why
		}
		i += length
	}
}

// appendDecoded appends what a raw text says: references replaced outside of CDATA, line ends as line feeds, and in attributes blanks.
func appendDecoded(to, raw []byte, isCDATA, isAttribute bool) []byte {
	for i := 0; i < len(raw); {
		switch b := raw[i]; {
		case b == '&' && !isCDATA:
			r, length, _ := reference(raw[i:])
			to = utf8.AppendRune(to, r)
			i += length
			continue
		case b == '\r':
			if i+1 < len(raw) && raw[i+1] == '\n' {
				i++
			}
			fallthrough
		case b == '\n', b == '\t':
			switch {
			case isAttribute:
				to = append(to, ' ')
			case b == '\t':
				to = append(to, '\t')
			default:
				to = append(to, '\n')
			}
		default:
			to = append(to, b)
		}
		i++
	}
	return to
}
