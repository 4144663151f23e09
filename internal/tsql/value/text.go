package value

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"
)

// isASCII reports whether text has one byte for each character, which is the common case.
func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// UnitsOf gives the number of UTF-16 units of text, as LEN counts them.
func UnitsOf(text string) int {
	n := 0
	for i := range len(text) {
		switch b := text[i]; {
		case b >= 0xF0:
			n += 2
		case b < 0x80 || b >= 0xC0:
			n++
		}
	}
	return n
}

// offset gives the byte at which the unit stands; a unit inside a pair gives the byte of the pair, inside reports so.
func offset(text string, units int) (at int, inside bool) {
	for units > 0 && at < len(text) {
		switch b := text[at]; {
		case b < 0x80:
			at++
		case b < 0xE0:
			at += 2
		case b < 0xF0:
			at += 3
		default:
			if units == 1 {
				return at, true
			}
			at += 4
			units--
		}
		units--
	}
	return min(at, len(text)), false
}

// CutUnits gives the part of text from a unit, counted from 0, and at most so many units; halves of pairs are kept.
func CutUnits(text string, from, units int) string {
	if isASCII(text) {
		from = min(max(from, 0), len(text))
		return text[from:min(len(text), from+units)]
	}
	start, startsInside := offset(text, from)
	end, endsInside := offset(text, from+units)
	if !startsInside && !endsInside {
		return text[start:end]
	}
	encoded := UTF16(text)
	from = min(from, len(encoded))
	return FromUTF16(encoded[from:min(len(encoded), from+units)])
}

// sizedText cuts text to the length of a type and pads it where the length is fixed.
func sizedText(t Type, text string) string {
	if t.Length == Max || t.Length == 0 {
		return text
	}
	length := int(t.Length)
	if len(text) <= length && !t.Kind.IsFixedLength() {
		return text
	}
	units := UnitsOf(text)
	if units > length {
		return CutUnits(text, 0, length)
	}
	if t.Kind.IsFixedLength() {
		return text + strings.Repeat(" ", length-units)
	}
	return text
}

// sizedBytes cuts bytes to the length of a type and pads them with zeros where the length is fixed.
func sizedBytes(t Type, bytes string) string {
	length := int(t.Length)
	switch {
	case t.Length == Max || t.Kind == Image:
		return bytes
	case len(bytes) > length:
		return bytes[:length]
	case t.Kind.IsFixedLength():
		return bytes + strings.Repeat("\x00", length-len(bytes))
	}
	return bytes
}

// UTF16 gives the units of text.
func UTF16(text string) []uint16 {
	units := make([]uint16, 0, len(text))
	for i := 0; i < len(text); {
		r, size := decode(text[i:])
		if r > 0xFFFF {
			high, low := utf16.EncodeRune(r)
			units = append(units, uint16(high), uint16(low))
		} else {
			units = append(units, uint16(r))
		}
		i += size
	}
	return units
}

// decode gives the first character of text, which may be a lone half of a pair.
func decode(text string) (rune, int) {
	r, size := utf8.DecodeRuneInString(text)
	if r == utf8.RuneError && size == 1 && len(text) >= 3 && text[0] == 0xED {
		return rune(text[0]&0x0F)<<12 | rune(text[1]&0x3F)<<6 | rune(text[2]&0x3F), 3
	}
	return r, size
}

// FromUTF16 gives the text of units; a lone half of a pair stays as it is.
func FromUTF16(units []uint16) string {
	text := make([]byte, 0, len(units))
	for i := 0; i < len(units); i++ {
		u := units[i]
		switch {
		case u >= 0xD800 && u < 0xDC00 && i+1 < len(units) && units[i+1] >= 0xDC00 && units[i+1] < 0xE000:
			text = utf8.AppendRune(text, utf16.DecodeRune(rune(u), rune(units[i+1])))
			i++
		case u >= 0xD800 && u < 0xE000:
			text = append(text, 0xE0|byte(u>>12), 0x80|byte(u>>6)&0x3F, 0x80|byte(u)&0x3F)
		default:
			text = utf8.AppendRune(text, rune(u))
		}
	}
	return string(text)
}

// EncodeUTF16 gives the bytes of nchar and nvarchar: UTF-16, the low byte first, without a mark.
func EncodeUTF16(text string) string {
	units := UTF16(text)
	bytes := make([]byte, 0, 2*len(units))
	for _, u := range units {
		bytes = append(bytes, byte(u), byte(u>>8))
	}
	return string(bytes)
}

// DecodeUTF16 gives the text of such bytes; an odd byte at the end is half of a unit.
func DecodeUTF16(bytes string) string {
	units := make([]uint16, 0, (len(bytes)+1)/2)
	for i := 0; i < len(bytes); i += 2 {
		u := uint16(bytes[i])
		if i+1 < len(bytes) {
			u |= uint16(bytes[i+1]) << 8
		}
		units = append(units, u)
	}
	return FromUTF16(units)
}

// ToCodePage gives text with the characters that code page 1252 has: accents that it has not are dropped, the rest is '?'.
func ToCodePage(text string) string {
	if isASCII(text) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		r, size := decode(text[i:])
		i += size
		switch {
		case r > 0xFFFF:
			b.WriteString("??") // one for each half
		case inCodePage(r):
			b.WriteRune(r)
		default:
			base, _ := utf8.DecodeRuneInString(norm.NFD.String(string(r)))
			if base == r || !inCodePage(base) {
				base = '?'
			}
			b.WriteRune(base)
		}
	}
	return b.String()
}

func inCodePage(r rune) bool {
	_, ok := codePageByte(r)
	return ok
}

// codePageByte gives the byte of a character. The five bytes that the code page leaves free stand for the control characters of
// the same number, so that bytes of any kind survive as varchar.
func codePageByte(r rune) (byte, bool) {
	switch r {
	case 0x81, 0x8D, 0x8F, 0x90, 0x9D:
		return byte(r), true
	case utf8.RuneError:
		return 0, false
	}
	return charmap.Windows1252.EncodeRune(r)
}

// EncodeCodePage gives the bytes of char and varchar: one of code page 1252 for each character.
func EncodeCodePage(text string) string {
	if isASCII(text) {
		return text
	}
	bytes := make([]byte, 0, len(text))
	for _, r := range ToCodePage(text) {
		b, _ := codePageByte(r)
		bytes = append(bytes, b)
	}
	return string(bytes)
}

// DecodeCodePage gives the text of such bytes.
func DecodeCodePage(bytes string) string {
	if isASCII(bytes) {
		return bytes
	}
	var b strings.Builder
	for i := range len(bytes) {
		if r := charmap.Windows1252.DecodeByte(bytes[i]); r != utf8.RuneError {
			b.WriteRune(r)
		} else {
			b.WriteRune(rune(bytes[i]))
		}
	}
	return b.String()
}
