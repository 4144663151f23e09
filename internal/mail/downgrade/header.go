package downgrade

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/mail/message"
)

// kind is of what a message or part consists.
type kind int

const (
	single kind = iota
	multipart
	whole  // a message
	status // what is for programs, and may have no encoding
)

// boundaryOf finds the boundary among the parameters of a type, however the others are written.
var boundaryOf = regexp.MustCompile(`(?i);\s*boundary\s*=\s*(?:"([^"]*)"|([^\s;]+))`)

// typeOf is the kind of a part, and the boundary of its parts.
func typeOf(header message.Header) (kind, string) {
	value := header.Value("Content-Type")
	name, _, _ := strings.Cut(value, ";")
	name = strings.ToLower(strings.TrimSpace(name))
	switch {
	case strings.HasPrefix(name, "multipart/"):
		if found := boundaryOf.FindStringSubmatch(value); len(found) == 3 && found[1]+found[2] != "" {
			return multipart, found[1] + found[2]
		}
		return status, ""
	case name == "message/rfc822":
		return whole, ""
	case strings.HasPrefix(name, "message/") && !strings.HasPrefix(name, "message/global"):
		return status, ""
	}
	return single, ""
}

func encodingOf(header message.Header) string {
	return strings.ToLower(strings.TrimSpace(header.Value("Content-Transfer-Encoding")))
}

// asSevenBit gives a header that says no more of bytes above 127.
func asSevenBit(header message.Header, encoding string) message.Header {
	if encoding != "8bit" && encoding != "binary" {
		return header
	}
	changed := slices.Clone(header)
	for i, field := range changed {
		if field.Is("Content-Transfer-Encoding") {
			changed[i] = message.NewField(field.Name, "7bit")
		}
	}
	return changed
}

// asEncoded gives the header of a part that becomes quoted-printable. One of which nothing was said is text.
func (c *converter) asEncoded(header message.Header, found leaf) message.Header {
	changed := header.Without(func(field message.Field) bool { return field.Is("Content-Transfer-Encoding") })
	if _, isGiven := header.Get("MIME-Version"); !isGiven && !c.isInner {
		changed = append(changed, message.NewField("MIME-Version", "1.0"))
	}
	if _, isGiven := header.Get("Content-Type"); !isGiven {
		charset := "unknown-8bit" // RFC 1428
		if found.isUTF8 {
			charset = "utf-8"
		}
		changed = append(changed, message.NewField("Content-Type", "text/plain; charset="+charset))
	}
	return append(changed, message.NewField("Content-Transfer-Encoding", "quoted-printable"))
}

// addressFields have addresses, whose names alone may be encoded words.
var addressFields = []string{
	"from", "sender", "reply-to", "to", "cc", "bcc",
	"resent-from", "resent-sender", "resent-to", "resent-cc", "resent-bcc", "resent-reply-to",
	"return-path", "disposition-notification-to", "delivered-to", "errors-to",
}

// ascii writes a header in ASCII, with the empty line behind it.
func ascii(header message.Header) ([]byte, error) {
	changed := slices.Clone(header)
	for i, field := range changed {
		if isASCII(field.Raw) {
			continue
		}
		value := unfolded(field.Raw)
		switch name := strings.ToLower(field.Name); {
		case slices.Contains(addressFields, name):
			addresses, err := asciiAddresses(value)
			if err != nil {
				return nil, err
			}
			value = addresses
		case strings.HasPrefix(name, "content-"):
			value = asciiParameters(value)
		default:
			value = asciiWords(value)
		}
		changed[i] = message.NewField(field.Name, folded(field.Name, value))
	}
	return changed.Bytes(), nil
}

// unfolded is the value of a field on one line, byte for byte.
func unfolded(raw []byte) string {
	_, value, _ := bytes.Cut(raw, []byte{':'})
	return strings.TrimSpace(string(bytes.ReplaceAll(value, []byte("\r\n"), nil)))
}

// lineLength is how long lines are that can be folded, in bytes.
const lineLength = 76

// folded folds a value at its blanks.
func folded(name, value string) string {
	var lines strings.Builder
	length := len(name) + 1
	for i, word := range strings.Split(strings.ReplaceAll(value, "\r\n ", " "), " ") {
		if length+1+len(word) > lineLength && i > 0 && word != "" {
			lines.WriteString("\r\n")
			length = 0
		}
		if i > 0 {
			lines.WriteByte(' ')
		}
		lines.WriteString(word)
		length += 1 + len(word)
	}
	return lines.String()
}

// asciiWords makes encoded words of what is not ASCII. Words side by side become one: blanks between encoded words are none.
func asciiWords(value string) string {
	words := strings.Split(value, " ")
	var written []string
	for i := 0; i < len(words); {
		if isASCII(words[i]) {
			written = append(written, words[i])
			i++
			continue
		}
		end := i + 1
		for end < len(words) && !isASCII(words[end]) {
			end++
		}
		written = append(written, message.EncodedWords(strings.Join(words[i:end], " ")))
		i = end
	}
	return strings.Join(written, " ")
}

// asciiAddresses makes encoded words of the names of addresses.
func asciiAddresses(value string) (string, error) {
	var written, phrase strings.Builder
	flush := func(isName bool) error {
		text := phrase.String()
		phrase.Reset()
		if isASCII(text) {
			written.WriteString(text)
			return nil
		}
		if isASCII(outsideComments(text)) {
			written.WriteString(asciiComments(text))
			return nil
		}
		name := strings.TrimSpace(unquoted(text))
		if !isName && strings.Contains(outsideComments(text), "@") {
			return ErrAddress
		}
		if written.Len() > 0 {
			written.WriteByte(' ')
		}
		written.WriteString(message.EncodedWords(name) + " ")
		return nil
	}
	isQuoted, depth := false, 0
	for i := 0; i < len(value); i++ {
		b := value[i]
		switch {
		case b == '\\' && i+1 < len(value):
			phrase.WriteString(value[i : i+2])
			i++
			continue
		case depth == 0 && b == '"':
			isQuoted = !isQuoted
		case !isQuoted && b == '(':
			depth++
		case !isQuoted && b == ')' && depth > 0:
			depth--
		}
		if isQuoted || depth > 0 || !strings.ContainsRune("<,;:", rune(b)) {
			phrase.WriteByte(b)
			continue
		}
		if err := flush(b == '<' || b == ':'); err != nil {
			return "", err
		}
		if b != '<' {
			written.WriteByte(b)
			continue
		}
		end := strings.IndexByte(value[i:], '>')
		if end < 0 || !isASCII(value[i:i+end+1]) {
			return "", ErrAddress
		}
		written.WriteString(value[i : i+end+1])
		i += end
	}
	if err := flush(false); err != nil {
		return "", err
	}
	return strings.TrimSpace(written.String()), nil
}

// unquoted takes quotes and escapes out of a phrase.
func unquoted(phrase string) string {
	var plain strings.Builder
	for i := 0; i < len(phrase); i++ {
		switch {
		case phrase[i] == '\\' && i+1 < len(phrase):
			i++
			plain.WriteByte(phrase[i])
		case phrase[i] != '"':
			plain.WriteByte(phrase[i])
		}
	}
	return plain.String()
}

// outsideComments is a text without what stands in parentheses.
func outsideComments(text string) string {
	var kept strings.Builder
	depth := 0
	for i := range len(text) {
		switch {
		case text[i] == '(':
			depth++
		case text[i] == ')' && depth > 0:
			depth--
		case depth == 0:
			kept.WriteByte(text[i])
		}
	}
	return kept.String()
}

// asciiComments makes encoded words of what stands in parentheses.
func asciiComments(text string) string {
	return comment.ReplaceAllStringFunc(text, func(found string) string {
		if isASCII(found) {
			return found
		}
		return "(" + message.EncodedWords(found[1:len(found)-1]) + ")"
	})
}

// comment is one with what is within it.
var comment = regexp.MustCompile(`(?s)\(.*\)`)

// asciiParameters writes parameters that are not ASCII as RFC 2231 has them; other text becomes encoded words.
func asciiParameters(value string) string {
	parts := splitParameters(value)
	for i, part := range parts {
		if isASCII(part) {
			continue
		}
		name, text, found := strings.Cut(part, "=")
		if !found || !isASCII(name) || i == 0 {
			parts[i] = asciiWords(part)
			continue
		}
		text = unquoted(strings.TrimSpace(text))
		charset := "utf-8"
		if !utf8.ValidString(text) {
			charset = "unknown-8bit"
		}
		parts[i] = "\r\n " + strings.TrimSpace(name) + "*=" + charset + "''" + percentEncoded(text)
	}
	return strings.Join(parts, ";")
}

// splitParameters takes a value apart at semicolons outside of quotes.
func splitParameters(value string) (parts []string) {
	begin, isQuoted := 0, false
	for i := 0; i < len(value); i++ {
		switch {
		case value[i] == '\\' && isQuoted:
			i++
		case value[i] == '"':
			isQuoted = !isQuoted
		case value[i] == ';' && !isQuoted:
			parts = append(parts, value[begin:i])
			begin = i + 1
		}
	}
	return append(parts, value[begin:])
}

func percentEncoded(text string) string {
	const digits = "0123456789ABCDEF"
	var encoded strings.Builder
	for i := range len(text) {
		b := text[i]
		if b < 0x80 && (b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '.' || b == '-' || b == '_') {
			encoded.WriteByte(b)
		} else {
			encoded.WriteString("%" + string(digits[b>>4]) + string(digits[b&15]))
		}
	}
	return encoded.String()
}

func isUTF8(line []byte) bool { return utf8.Valid(line) }

func isASCII[T string | []byte](text T) bool {
	for i := range len(text) {
		if text[i] > 0x7f {
			return false
		}
	}
	return true
}
