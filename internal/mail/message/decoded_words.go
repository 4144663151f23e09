package message

import (
	"strings"
	"unicode"

	"github.com/parley-broker/parley/internal/mail/charset"
)

// DecodeWords gives a text with its encoded words decoded (RFC 2047), on one line and without control characters. They are decoded
// wherever they stand: in quoted strings too, beside other text, with blanks in them, without padding. isKnown is false where a charset
// is one that nobody knows; its words are read as UTF-8, and what is no character is U+FFFD. The text is UTF-8 and unfolded.
func DecodeWords(text string) (decoded string, isKnown bool) {
	isKnown = true
	if !strings.Contains(text, "=?") {
		return withoutControls(text), true
	}
	var out strings.Builder
	var pending encodedWord // is waited for by what may go on with its last character
	flush := func() {
		out.WriteString(pending.decoded())
		pending = encodedWord{}
	}
	for rest := text; rest != ""; {
		at := strings.Index(rest, "=?")
		if at < 0 {
			flush()
			out.WriteString(rest)
			break
		}
		word, length := wordAt(rest[at:])
		if length == 0 {
			flush()
			out.WriteString(rest[:at+len("=?")])
			rest = rest[at+len("=?"):]
			continue
		}
		isKnown = isKnown && charset.Lookup(word.charset) != nil
		isBeside := pending.charset != "" && strings.Trim(rest[:at], " \t\r\n") == ""
		switch {
		case isBeside && pending.isOpen() && strings.EqualFold(pending.charset, word.charset):
			word.bytes = append(pending.bytes, word.bytes...)
		case isBeside:
			flush()
		default:
			flush()
			out.WriteString(rest[:at])
		}
		pending, rest = word, rest[at+length:]
	}
	flush()
	return withoutControls(out.String()), isKnown
}

// encodedWord is an encoded word whose encoding is taken off.
type encodedWord struct {
	charset string
	bytes   []byte
}

// isOpen reports whether the word may end within a character.
func (w encodedWord) isOpen() bool { return len(w.bytes) > 0 && w.bytes[len(w.bytes)-1] >= 0x80 }

func (w encodedWord) decoded() string {
	if found := charset.Lookup(w.charset); found != nil && len(w.bytes) > 0 {
		if text, err := found.NewDecoder().Bytes(w.bytes); err == nil {
			return validUTF8(string(text))
		}
	}
	return validUTF8(string(w.bytes))
}

// longestWord is how many bytes of an encoded word are searched for its end. The standard allows 75.
const longestWord = 8 << 10

// wordAt reads the encoded word that a text begins with, and gives its length; 0 where it is none.
func wordAt(text string) (word encodedWord, length int) {
	text = text[:min(len(text), longestWord)]
	name, rest, has := strings.Cut(text[len("=?"):], "?")
	if !has || name == "" || strings.ContainsAny(name, " \t\r\n=") || len(rest) < 2 || rest[1] != '?' {
		return encodedWord{}, 0
	}
	encoded, behind, has := strings.Cut(rest[2:], "?=")
	if !has {
		return encodedWord{}, 0
	}
	word.charset, _, _ = strings.Cut(name, "*") // RFC 2231 section 5: charset*language
	switch rest[0] {
	case 'q', 'Q':
		word.bytes = quoted(strings.ReplaceAll(encoded, "_", " "), '=')
	case 'b', 'B':
		word.bytes = lettersOf(encoded)
	default:
		return encodedWord{}, 0
	}
	return word, len(text) - len(behind)
}

// quoted decodes bytes in hexadecimal behind a sign. A sign that is followed by others stays.
func quoted(text string, sign byte) []byte {
	decoded := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		if text[i] == sign && i+2 < len(text) {
			if high, low := hexOf(text[i+1]), hexOf(text[i+2]); high >= 0 && low >= 0 {
				decoded = append(decoded, byte(high<<4|low))
				i += 2
				continue
			}
		}
		decoded = append(decoded, text[i])
	}
	return decoded
}

// DecodePercent decodes the values of parameters (RFC 2231 section 4).
func DecodePercent(text string) []byte { return quoted(text, '%') }

func hexOf(c byte) int {
	if c >= 'A' && c <= 'F' {
		c += 'a' - 'A'
	}
	return strings.IndexByte("0123456789abcdef", c)
}

// lettersOf decodes base64, with padding or without, and passes by what is no letter of it.
func lettersOf(text string) []byte {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	decoded := make([]byte, 0, len(text)*3/4)
	bits, count := uint32(0), uint(0)
	for i := range len(text) {
		value := strings.IndexByte(alphabet, text[i])
		if value < 0 {
			continue
		}
		bits, count = bits<<6|uint32(value), count+6
		if count >= 8 {
			count -= 8
			decoded = append(decoded, byte(bits>>count))
		}
	}
	return decoded
}

// withoutControls takes control characters out of a text, and makes blanks of tabs.
func withoutControls(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, text)
}
