package parts

import "bytes"

// decoder takes the encoding of a body off it (RFC 2045 section 6). None refuses anything: sql/mail/services/parts.sql decodes in
// the same way, and says where it does.
type decoder interface {
	write(encoded []byte)
	end() (isValid bool)
}

func decoderOf(encoding string, to func([]byte)) decoder {
	switch encoding {
	case "base64":
		return &base64Decoder{to: to, isValid: true}
	case "quoted-printable":
		return &quotedDecoder{to: to}
	default:
		return identity{to: to}
	}
}

type identity struct{ to func([]byte) }

func (i identity) write(encoded []byte) { i.to(encoded) }
func (identity) end() bool              { return true }

// base64Decoder passes by what is no letter of the alphabet, and everything behind the first padding.
type base64Decoder struct {
	to       func([]byte)
	bits     uint32
	letters  int
	isPadded bool
	isValid  bool
	out      []byte
}

// letterOf is the value of each letter of the alphabet, and 64 of what is none.
var letterOf = func() (table [256]byte) {
	for i := range table {
		table[i] = 64
	}
	for i, letter := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") {
		table[letter] = byte(i)
	}
	return table
}()

func (d *base64Decoder) write(encoded []byte) {
	d.out = d.out[:0]
	for _, c := range encoded {
		value := letterOf[c]
		switch {
		case c == '=':
			d.isPadded = true
		case value == 64:
			d.isValid = d.isValid && (c == '\r' || c == '\n' || c == ' ' || c == '\t')
		case d.isPadded:
			d.isValid = false
		default:
			d.bits = d.bits<<6 | uint32(value)
			d.letters++
			if d.letters == 4 {
				d.out = append(d.out, byte(d.bits>>16), byte(d.bits>>8), byte(d.bits))
				d.bits, d.letters = 0, 0
			}
		}
	}
	if len(d.out) > 0 {
		d.to(d.out)
	}
}

func (d *base64Decoder) end() bool {
	switch d.letters {
	case 1:
		d.isValid = false
	case 2:
		d.to([]byte{byte(d.bits >> 4)})
	case 3:
		d.to([]byte{byte(d.bits >> 10), byte(d.bits >> 2)})
	}
	return d.isValid
}

const (
	// longestPadding is how many blanks may stand between the sign of a soft line break and the line end.
	longestPadding = 64
	// longestBlanks is how many blanks at a line end are taken off: other programs add them on the way. A line of mail has not many more.
	longestBlanks = 255
)

// quotedDecoder leaves a sign that is none where it stands, and takes off the blanks at line ends (RFC 2045 section 6.7).
type quotedDecoder struct {
	to      func([]byte)
	pending []byte // a sign and what may belong to it
	blanks  []byte // may be the end of a line
	isLong  bool   // the blanks that are read are too many
	hasCR   bool   // behind the blanks
}

func (d *quotedDecoder) write(encoded []byte) {
	for len(encoded) > 0 {
		switch {
		case len(d.pending) == 0:
			encoded = encoded[d.plain(encoded):]
		case d.take(encoded[0]):
			encoded = encoded[1:]
		default:
			d.endSign()
		}
	}
}

// endSign gives a sign that quotes nothing, and reads anew the bytes that follow it.
func (d *quotedDecoder) endSign() {
	rest := append([]byte(nil), d.pending[1:]...)
	d.text(d.pending[:1])
	d.pending = d.pending[:0]
	d.write(rest)
}

// plain takes what stands in front of a sign, or the sign, and gives how much it has taken.
func (d *quotedDecoder) plain(encoded []byte) (taken int) {
	switch c := encoded[0]; {
	case d.hasCR:
		if d.hasCR = false; c == '\n' {
			d.blanks = d.blanks[:0]
			d.text([]byte("\r\n"))
			return 1
		}
		d.text([]byte{'\r'})
		return 0
	case c == '=':
		d.flush()
		d.pending = append(d.pending, c)
		return 1
	case c == '\r':
		d.hasCR = true
		return 1
	}
	end := bytes.IndexAny(encoded, "=\r")
	if end < 0 {
		end = len(encoded)
	}
	if text := bytes.TrimRight(encoded[:end], " \t"); len(text) > 0 {
		d.text(text)
		d.hold(encoded[len(text):end])
	} else {
		d.hold(encoded[:end])
	}
	return end
}

// hold keeps blanks that may be the end of a line.
func (d *quotedDecoder) hold(blanks []byte) {
	if d.isLong = d.isLong && len(blanks) > 0 || len(d.blanks)+len(blanks) > longestBlanks; !d.isLong {
		d.blanks = append(d.blanks, blanks...)
		return
	}
	d.flush()
	d.to(blanks)
	d.isLong = true
}

func (d *quotedDecoder) flush() {
	if len(d.blanks) > 0 {
		d.to(d.blanks)
	}
	d.blanks, d.isLong = d.blanks[:0], false
}

// text gives decoded bytes that are no blanks of a line end.
func (d *quotedDecoder) text(decoded []byte) {
	d.flush()
	d.to(decoded)
}

// take takes a character behind a sign, and says whether it can belong to it.
func (d *quotedDecoder) take(c byte) bool {
	n, last := len(d.pending), d.pending[len(d.pending)-1]
	isPadding := n == 1 || last == ' ' || last == '\t'
	switch {
	case c == '\n' && last == '\r':
		d.pending = d.pending[:0]
	case last == '\r':
		return false
	case isPadding && (c == '\r' || (c == ' ' || c == '\t') && n <= longestPadding):
		d.pending = append(d.pending, c)
	case n == 1 && hexOf(c) >= 0:
		d.pending = append(d.pending, c)
	case n == 2 && hexOf(last) >= 0 && hexOf(c) >= 0:
		d.text([]byte{byte(hexOf(last)<<4 | hexOf(c))})
		d.pending = d.pending[:0]
	default:
		return false
	}
	return true
}

func (d *quotedDecoder) end() bool {
	for len(d.pending) > 0 {
		d.endSign()
	}
	if d.hasCR {
		d.text([]byte{'\r'})
	}
	return true
}

func hexOf(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	default:
		return -1
	}
}
