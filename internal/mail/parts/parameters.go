package parts

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/parley-broker/parley/internal/mail/charset"
	"github.com/parley-broker/parley/internal/mail/message"
)

// longestParameters is how much of a field with parameters is read, in bytes.
const longestParameters = 8 << 10

// parameters are those of a field of MIME, by their names in lower case.
type parameters struct {
	values map[string]string
	// hasUnknownCharset says that a value is in a charset that nobody knows, and stands as far as it is UTF-8.
	hasUnknownCharset bool
}

// section is a piece of a value that is continued, or the whole of one that names its charset (RFC 2231).
type section struct {
	text      string
	isEncoded bool
}

// parametersOf reads a field of MIME: what stands in front of its parameters, in lower case and without comments, and the parameters, as
// far as they can be read. A value without quotes that should have them is read to the next semicolon.
func parametersOf(value string) (first string, read parameters) {
	pieces := piecesOf(cut(value, longestParameters))
	words := strings.Fields(strings.ToLower(withoutComments(pieces[0])))
	for i, word := range words {
		// Some programs leave out the semicolon: text/html charset=utf-8.
		if i > 0 && strings.Contains(word, "=") {
			pieces = append(pieces, words[i:]...)
			words = words[:i]
			break
		}
	}
	values, sections := map[string]string{}, map[string]map[int]section{}
	for _, piece := range pieces[1:] {
		name, text, has := strings.Cut(piece, "=")
		name = strings.ToLower(strings.Join(strings.Fields(withoutComments(name)), ""))
		if !has || name == "" {
			continue
		}
		text = valueOf(text)
		base, at, isEncoded := sectionName(name)
		switch _, isThere := sections[base][at]; {
		case at < 0:
			if _, isThere := values[name]; !isThere {
				values[name] = text
			}
		case !isThere:
			if sections[base] == nil {
				sections[base] = map[int]section{}
			}
			sections[base][at] = section{text: text, isEncoded: isEncoded}
		}
	}
	read.values = values
	for base, of := range sections {
		if text, isKnown, is := joinSections(of); is {
			values[base] = text
			read.hasUnknownCharset = read.hasUnknownCharset || !isKnown
		}
	}
	return strings.Join(words, ""), read
}

// wholeSection is the place of a value that is not continued, in front of all others.
const wholeSection = 0

// sectionName takes the name of a parameter apart: name*, name*0, name*0*. The place is -1 where it is a name alone. A value that is
// encoded and not continued has the place 0, as the first piece of one that is.
func sectionName(name string) (base string, at int, isEncoded bool) {
	base, rest, has := strings.Cut(name, "*")
	if !has || base == "" {
		return name, -1, false
	}
	if rest == "" {
		return base, wholeSection, true
	}
	number, isEncoded := strings.CutSuffix(rest, "*")
	at, err := strconv.Atoi(number)
	if err != nil || at < 0 || strconv.Itoa(at) != number {
		return name, -1, false
	}
	return base, at, isEncoded
}

// joinSections puts a value together, as far as no piece is missing. Bytes are joined before they are decoded: a character may be divided.
func joinSections(sections map[int]section) (text string, isKnown, is bool) {
	name, joined := "", []byte(nil)
	for at := range len(sections) {
		one, has := sections[at]
		if !has {
			break
		}
		is = true
		if !one.isEncoded {
			joined = append(joined, one.text...)
			continue
		}
		if parts := strings.SplitN(one.text, "'", 3); at == 0 && len(parts) == 3 {
			name, one.text = parts[0], parts[2]
		}
		joined = append(joined, message.DecodePercent(one.text)...)
	}
	text, problem := toUTF8(joined, token(name), false)
	return text, problem != "UNKNOWN_CHARSET", is
}

// piecesOf divides a field at semicolons that stand in no quoted string and in no comment; there is one piece at least.
func piecesOf(value string) (pieces []string) {
	from := 0
	hasQuotes, hasComments := true, true
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == ';':
			pieces = append(pieces, value[from:i])
			from = i + 1
		case c == '"' && hasQuotes:
			if length := quotedLength(value[i:]); length > 0 {
				i += length - 1
			} else {
				hasQuotes = false
			}
		case c == '(' && hasComments:
			if length := commentLength(value[i:]); length > 0 {
				i += length - 1
			} else {
				hasComments = false
			}
		}
	}
	return append(pieces, value[from:])
}

// valueOf reads a value behind its sign of equality. A comment behind it goes, where nothing follows the comment.
func valueOf(text string) string {
	text = afterComments(text)
	if length := quotedLength(text); length > 0 {
		return unquoted(text[1 : length-1])
	}
	if end := strings.IndexAny(text, " \t("); end >= 0 && afterComments(text[end:]) == "" {
		return text[:end]
	}
	return strings.Trim(text, " \t\"")
}

// afterComments gives the text behind the blanks and the comments with which it begins.
func afterComments(text string) string {
	for {
		text = strings.TrimLeft(text, " \t")
		length := commentLength(text)
		if length == 0 {
			return text
		}
		text = text[length:]
	}
}

// withoutComments gives a text with a blank for each of its comments.
func withoutComments(text string) string {
	var out strings.Builder
	hasComments := true
	for i := 0; i < len(text); i++ {
		if text[i] == '(' && hasComments {
			length := commentLength(text[i:])
			if hasComments = length > 0; hasComments {
				out.WriteByte(' ')
				i += length - 1
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// quotedLength gives the length of the quoted string that a text begins with; 0 where there is none.
func quotedLength(text string) int {
	if !strings.HasPrefix(text, `"`) {
		return 0
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return 0
}

// commentLength gives the length of the comment that a text begins with; 0 where there is none.
func commentLength(text string) int {
	if !strings.HasPrefix(text, "(") {
		return 0
	}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// unquoted takes the backslashes off that quote. Some programs write folders of Windows without quoting theirs.
func unquoted(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out bytes.Buffer
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (text[i+1] == '"' || text[i+1] == '\\') {
			i++
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// isUTF8 reports whether text of a charset is read as UTF-8: ASCII is a part of it, and some programs say ASCII and mean UTF-8.
func isUTF8(name string) bool {
	return name == "" || name == "unknown-8bit" || charset.Lookup(name) == charset.UTF8
}
